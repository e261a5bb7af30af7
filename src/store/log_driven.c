/* SPDX-License-Identifier: Apache-2.0 */
/* store/log_driven.c - a log that is driven from outside: many of them in one process.
 *
 *      any thread                 whoever drives it
 *     append ----> window  --- records ---> the engine of a cluster
 *                    |                           |
 *                    |  <------- settle ---------+   write, durable_lsn ---> listeners
 *
 * The invariants L1 to L7 of log.c hold, but for what is said of syncs: nothing is synced before a
 * checkpoint asks for it (cn_log_sync()), since what is here is safe elsewhere. Besides:
 *
 * L8  The window has every record that is appended and not settled, as it will be in the file. So a
 *     record has one form: in the engine, on every replica, after every retry. (R3's durable_lsn is
 *     0 in all of them: such a log claims nothing by itself.)
 * L9  Only cn_log_settle() takes records out of the window, and only to write them. Those of a log
 *     that has failed stay until it is closed and are written nowhere.
 * L10 What all windows of a budget have together is bounded by it, as each is by pending_max. */
#include <pthread.h>

#include "base/mem.h"
#include "store/log.h"

struct cn_log_budget {
    pthread_mutex_t lock; /* guards the rest; taken inside a log's lock, or alone */
    pthread_cond_t room;
    uint64_t used, size_max;
    uint64_t serial; /* rises whenever waiting might be over */
};

struct cn_log_budget *cn_log_budget_new(uint64_t size_max)
{
    struct cn_log_budget *budget = CN_NEW(struct cn_log_budget);
    budget->size_max = size_max;
    pthread_mutex_init(&budget->lock, NULL);
    pthread_cond_init(&budget->room, NULL);
    return budget;
}

void cn_log_budget_free(struct cn_log_budget *budget)
{
    CN_ASSERT(budget->used == 0);
    pthread_mutex_destroy(&budget->lock);
    pthread_cond_destroy(&budget->room);
    cn_free(budget);
}
