/* SPDX-License-Identifier: Apache-2.0 */
/* store/chores.h - a few threads that look after many things.
 *
 * A chore is a function that does the work that is due, and returns at once if there is none. Each
 * chore is called at least every CN_CHORES_LOOK_MS, and soon after cn_chore_wake(). A chore never
 * runs twice at the same time. Woken chores run first, in the order in which they were woken. A
 * long chore occupies one thread, and the other threads go on with the rest.
 *
 *     idle  --wake, or its time has come-->  queued  -->  running  --woken meanwhile-->  queued
 *                                                            |
 *                                                            +---> idle
 *
 * Threads:   any. A chore's function does not add or remove chores.
 * Ownership: cn_chores_new() allocates; chores are embedded in what they are about, and removed
 *            before cn_chores_free(). */
#ifndef CN_STORE_CHORES_H
#define CN_STORE_CHORES_H
#include <stdbool.h>

#include "base/list.h"

#define CN_CHORES_LOOK_MS 200

struct cn_chores;

struct cn_chore {
    void (*run)(struct cn_chore *chore);
    struct cn_list link; /* the rest is theirs */
    enum { CN_CHORE_IDLE, CN_CHORE_QUEUED, CN_CHORE_RUNNING } state;
    bool again; /* woken while it ran */
};

struct cn_chores *cn_chores_new(unsigned threads);
void cn_chores_free(struct cn_chores *chores);
void cn_chore_add(struct cn_chores *chores, struct cn_chore *chore,
                  void (*run)(struct cn_chore *chore));
void cn_chore_wake(struct cn_chores *chores, struct cn_chore *chore);
/* Waits until it does not run; afterwards it is not called any more. */
void cn_chore_remove(struct cn_chores *chores, struct cn_chore *chore);

#endif
