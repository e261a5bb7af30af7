/* SPDX-License-Identifier: Apache-2.0 */
/* membership/poller.h - a persistent connection to the engine, for questions that are repeated.
 *
 * A registry (membership/registry.h) opens a connection for each question. A poller keeps one, on
 * which the engine also notifies it that something has changed. A notification is only a hint to
 * ask, and may be lost with the connection; a caller that waits asks again after some time anyway.
 *
 * Threads:   the one that made it; cn_poller_wake() any.
 * Ownership: cn_poller_new() allocates; the registry is borrowed and outlives it. */
#ifndef CN_MEMBERSHIP_POLLER_H
#define CN_MEMBERSHIP_POLLER_H
#include <stddef.h>

struct cn_registry;
struct cn_buf;
struct cn_err;
struct cn_poller;

int cn_poller_new(const struct cn_registry *registry, struct cn_poller **poller,
                  struct cn_err *err);
void cn_poller_free(struct cn_poller *poller); /* NULL is fine */

/* As cn_registry_ask(), on the link there is; one that is lost is made anew, and the question asked
 * again, until the registry's time is over. Or until it is woken: CN_ECLOSED. */
int cn_poller_ask(struct cn_poller *poller, const char *sql, const char *const *values,
                  size_t count, struct cn_buf *text, struct cn_err *err);
/* Until there is a hint that was not waited for yet, the time is over, or it is woken. */
void cn_poller_wait(struct cn_poller *poller, unsigned timeout_ms);
/* From now on nothing is waited for. */
void cn_poller_wake(struct cn_poller *poller);

#endif
