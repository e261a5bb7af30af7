/* SPDX-License-Identifier: Apache-2.0 */
/* net/egress.h - which addresses scripts may connect to, by fetch(), connect() and WebSockets.
 *
 * Two lists of ranges: "10.0.0.0/8", "fd00::/8", a single address, "private" (every range
 * that is not on the internet: loopback, link-local, private use, shared, ...), or "all".
 *
 *   E1  An address is refused if it is in `deny` and not in `allow`.
 *   E2  It is the address that counts, after the name was resolved, for each connection: a name
 *       that resolves to something else the second time gains nothing.
 *   E3  An IPv4 address inside an IPv6 one (mapped, 64:ff9b::/96, 2002::/16) counts as itself.
 *
 * Threads: immutable; any. */
#ifndef CN_NET_EGRESS_H
#define CN_NET_EGRESS_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct cn_egress;
struct sockaddr;

/* NULL with a sentence if a range is malformed. */
struct cn_egress *cn_egress_new(const char *const *deny, size_t deny_count,
                                const char *const *allow, size_t allow_count, struct cn_err *err);
void cn_egress_free(struct cn_egress *egress); /* NULL is fine */
/* For the options of clients and sockets; `egress` NULL: every address may. */
bool cn_egress_allowed(const struct sockaddr *address, void *egress);

#endif
