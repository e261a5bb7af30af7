/* SPDX-License-Identifier: Apache-2.0 */
/* net/trust.h - which certificates outgoing TLS connections believe.
 *
 * The system's certificate authorities and, if asked for, those of one more PEM
 * file. Reading them takes some 20 ms, so it happens at the first TLS connection,
 * once for all lanes.
 *
 * Threads:   any.
 * Ownership: main()'s; outlives every client and socket that was given it. */
#ifndef CN_NET_TRUST_H
#define CN_NET_TRUST_H
#include "base/err.h"

struct cn_trust;
typedef struct x509_store_st X509_STORE;

/* `extra_ca_file` may be NULL; a file that cannot be read fails when first needed. */
struct cn_trust *cn_trust_new(const char *extra_ca_file);
void cn_trust_free(struct cn_trust *trust);
/* Borrowed; NULL on failure. */
X509_STORE *cn_trust_store(struct cn_trust *trust, struct cn_err *err);

#endif
