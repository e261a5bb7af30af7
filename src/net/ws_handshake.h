/* SPDX-License-Identifier: Apache-2.0 */
/* net/ws_handshake.h - the opening handshake (RFC 6455, 4) and permessage-deflate's terms.
 *
 * Threads: any; nothing here has state. */
#ifndef CN_NET_WS_HANDSHAKE_H
#define CN_NET_WS_HANDSHAKE_H
#include <stdbool.h>
#include <stddef.h>

#define CN_WS_KEY_SIZE 24    /* 16 bytes in base64 */
#define CN_WS_ACCEPT_SIZE 28 /* 20 bytes in base64 */
#define CN_WS_WINDOW_BITS_MAX 15

struct cn_http_request;

/* What a connection has agreed on. */
struct cn_ws_terms {
    bool deflate;
    unsigned window_bits; /* how far back the peer can look, 9..15; of use with deflate */
};

void cn_ws_accept_of(const char *key, size_t size, char accept[CN_WS_ACCEPT_SIZE + 1]);
/* A new key for a client. */
void cn_ws_key_new(char key[CN_WS_KEY_SIZE + 1]);

/* 0 if the request asks for a WebSocket properly, with `accept` filled; else the HTTP status that
 * answers it (400, 426), or -1: it does not ask for one at all. */
int cn_ws_request_check(const struct cn_http_request *req, char accept[CN_WS_ACCEPT_SIZE + 1]);

/* A Sec-WebSocket-Extensions of a client: the first offer of permessage-deflate that we can take.
 * False: none. */
bool cn_ws_offer_choose(const char *value, size_t size, struct cn_ws_terms *terms);
/* What the server answers then; returns its length. */
size_t cn_ws_offer_answer(const struct cn_ws_terms *terms, char *text, size_t text_size);

/* What a client offers. */
#define CN_WS_OFFER "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
/* The server's answer to it. False: it is not one to CN_WS_OFFER. */
bool cn_ws_answer_check(const char *value, size_t size, struct cn_ws_terms *terms);

#endif
