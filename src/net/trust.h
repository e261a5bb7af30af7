/* SPDX-License-Identifier: Apache-2.0 */
/* net/trust.h - the certificate authorities that outgoing TLS connections trust.
 *
 * The system's certificate authorities (OpenSSL's default file and folder, or where other
 * distributions have them; read when the first connection needs them, so that starting
 * costs nothing) and, if asked for, those of one more PEM file, read at once.
 *
 * Threads:   any, once made.
 * Ownership: main()'s; outlives every client and socket that was given it. */
#ifndef CN_NET_TRUST_H
#define CN_NET_TRUST_H
#include "base/err.h"

struct cn_trust;
struct ssl_ctx_st;

/* `extra_ca_file` may be NULL. NULL on failure. */
struct cn_trust *cn_trust_new(const char *extra_ca_file, struct cn_err *err);
void cn_trust_free(struct cn_trust *trust); /* NULL is fine */
/* Makes a client-side SSL_CTX check the peer against it. */
void cn_trust_apply(struct cn_trust *trust, struct ssl_ctx_st *ctx);
/* A client-side SSL_CTX that does: TLS 1.2 and 1.3. Borrowed. */
struct ssl_ctx_st *cn_trust_context(struct cn_trust *trust);

#endif
