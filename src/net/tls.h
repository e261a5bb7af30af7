/* SPDX-License-Identifier: Apache-2.0 */
/* net/tls.h - TLS: a server's certificate with its key, and the state of one connection.
 *
 * OpenSSL works on memory only; the sockets stay with net/stream.c. TLS 1.2 and
 * 1.3, ALPN "http/1.1".
 *
 * Threads:   a context is shared by all lanes: every function of it may run on any
 *            thread; a connection belongs to one lane. */
#ifndef CN_NET_TLS_H
#define CN_NET_TLS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct cn_tls_context;
struct cn_tls;
struct cn_trust;

/* Reads PEM files: the certificate followed by its chain, and the private key. */
int cn_tls_context_new(const char *cert_path, const char *key_path, struct cn_tls_context **context,
                       struct cn_err *err);
/* Reads the same files again (never of a keyed one): new connections use what they hold now, open
 * ones keep what they have. Nothing changes if this fails. */
int cn_tls_context_reload(struct cn_tls_context *context, struct cn_err *err);
struct cn_tls_context *cn_tls_context_ref(struct cn_tls_context *context);
void cn_tls_context_unref(struct cn_tls_context *context); /* NULL is fine */

/* For processes that share a secret: no certificates, TLS 1.3 only. Both sides prove that they have
 * the key, and agree on another for each connection, so that the key alone reads nothing that was
 * recorded. Who does not have it never completes a handshake. */
#define CN_TLS_KEY_SIZE 32
int cn_tls_context_new_keyed(const uint8_t key[CN_TLS_KEY_SIZE], struct cn_tls_context **context,
                             struct cn_err *err);
/* The client side of such a one; cn_tls_new() is the server's. NULL if out of memory. */
struct cn_tls *cn_tls_new_keyed(struct cn_tls_context *context);

/* One connection, server side. NULL if out of memory. */
struct cn_tls *cn_tls_new(struct cn_tls_context *context);
/* One connection, client side: the certificate must be believed by `trust` and belong to
 * `host` (a name or an address). `alpn` is the one protocol offered, or NULL. */
struct cn_tls *cn_tls_new_client(struct cn_trust *trust, const char *host, const char *alpn,
                                 struct cn_err *err);
void cn_tls_free(struct cn_tls *tls);

/* Gives bytes received from the network. */
void cn_tls_feed(struct cn_tls *tls, const uint8_t *bytes, size_t size);
/* Goes on with the handshake alone: 1 it is complete, 0 more input is needed, CN_EPROTOCOL. */
int cn_tls_handshake(struct cn_tls *tls);
/* Takes decrypted bytes: a count, 0 if more input is needed, UV_EOF after close_notify,
 * CN_EPROTOCOL if the peer broke TLS. Runs the handshake too. */
int cn_tls_read(struct cn_tls *tls, uint8_t *bytes, size_t size);
/* Encrypts up to `size` bytes; returns how many were taken, 0 before the handshake is done. */
int cn_tls_write(struct cn_tls *tls, const uint8_t *bytes, size_t size);
/* Takes bytes for the network: a count, 0 if there are none. */
size_t cn_tls_take_output(struct cn_tls *tls, uint8_t *bytes, size_t size);
void cn_tls_shutdown(struct cn_tls *tls);        /* produces close_notify */
bool cn_tls_is_secure(const struct cn_tls *tls); /* the handshake is complete */
/* Why cn_tls_read() or cn_tls_write() failed. Borrowed. */
const char *cn_tls_reason(const struct cn_tls *tls);
/* The protocol agreed upon by ALPN (not NUL-terminated), size 0 if none. Borrowed. */
size_t cn_tls_alpn(const struct cn_tls *tls, const uint8_t **protocol);

#endif
