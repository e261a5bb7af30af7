/* SPDX-License-Identifier: Apache-2.0 */
/* cluster/lookout.h - a link to the engine that stays, for who asks the same again and again.
 *
 * A book (cluster/book.h) has a link for each question. A lookout keeps one, and hears on it that
 * something has changed: a notification, which is a hint to ask and never news. A hint may be lost
 * with the link; so who waits asks again after some time in any case.
 *
 * Threads:   the one that made it; cn_lookout_wake() any.
 * Ownership: cn_lookout_new() allocates; the book is borrowed and outlives it. */
#ifndef CN_CLUSTER_LOOKOUT_H
#define CN_CLUSTER_LOOKOUT_H
#include <stddef.h>

struct cn_book;
struct cn_buf;
struct cn_err;
struct cn_lookout;

int cn_lookout_new(const struct cn_book *book, struct cn_lookout **lookout, struct cn_err *err);
void cn_lookout_free(struct cn_lookout *lookout); /* NULL is fine */

/* As cn_book_ask(), on the link there is; one that is lost is made anew, and the question asked
 * again, until the book's time is over. Or until it is woken: CN_ECLOSED. */
int cn_lookout_ask(struct cn_lookout *lookout, const char *sql, const char *const *values,
                   size_t count, struct cn_buf *text, struct cn_err *err);
/* Until there is a hint that was not waited for yet, the time is over, or it is woken. */
void cn_lookout_wait(struct cn_lookout *lookout, unsigned timeout_ms);
/* From now on nothing is waited for. */
void cn_lookout_wake(struct cn_lookout *lookout);

#endif
