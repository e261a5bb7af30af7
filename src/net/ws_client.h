/* SPDX-License-Identifier: Apache-2.0 */
/* net/ws_client.h - outgoing WebSockets: connect, shake hands, hand on.
 *
 * Threads:   the loop's.
 * Ownership: the operation frees itself after on_done or cn_ws_client_cancel(). */
#ifndef CN_NET_WS_CLIENT_H
#define CN_NET_WS_CLIENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/client.h"

struct cn_sockets;
struct cn_ws_client;
struct cn_ws_end;
struct cn_ws_lane;

#define CN_WS_CLIENT_BODY_MAX (1u << 20) /* of an answer that is no 101 */

struct cn_ws_client_params {
    const char *host; /* a name or an address */
    uint16_t port;
    bool secure;
    const char *authority; /* for the Host field */
    const char *target;    /* path and query */
    const char *headers;   /* lines that end in CRLF, checked; "" if none */
    bool offer_deflate;
};

struct cn_ws_client_result {
    const struct cn_err *error; /* NULL: there is an answer */
    struct cn_client_head head;
    struct cn_ws_end *end; /* of a 101: the program's end, the receiver's from now on; else NULL */
    const uint8_t *body;   /* of another answer */
    size_t body_size;
};

/* NULL: it cannot even begin. on_done runs once, later, unless it is cancelled. */
struct cn_ws_client *cn_ws_client_start(struct cn_ws_lane *lane, struct cn_sockets *sockets,
                                        const struct cn_ws_client_params *params,
                                        void (*on_done)(const struct cn_ws_client_result *result,
                                                        void *data),
                                        void *data, struct cn_err *err);
void cn_ws_client_cancel(struct cn_ws_client *client);

#endif
