/* SPDX-License-Identifier: Apache-2.0 */
/* service/pool.h - threads for work of services that would hold up a lane.
 *
 *     start ──► PENDING ──► RUNNING ──► DONE ──► job->mail arrives at the lane
 *                  │                      ▲
 *                  └── finish: taken back └── finish waits for it
 *
 * They are threads of their own because such work may take half a minute, and libuv's few are
 * what resolves names and compresses. The first is there from the start and stays, so that what was
 * started runs though the machine has no thread to give. Others are made when they are needed and
 * end when nothing waits; there are at most as many as the pool was made with, and further jobs
 * wait their turn.
 *
 * Threads:   start and finish on the lane that owns the job.
 * Ownership: the job is the pool's from start until its mail is delivered (or `lost` is called),
 *            or finish returned false. */
#ifndef CN_SERVICE_POOL_H
#define CN_SERVICE_POOL_H
#include <stdbool.h>

#include "base/list.h"
#include "base/mailbox.h"

struct cn_pool;

enum cn_pool_state { CN_POOL_PENDING, CN_POOL_RUNNING, CN_POOL_DONE };

struct cn_pool_job {
    struct cn_list link; /* in the pool's list while PENDING */
    enum cn_pool_state state;
    void (*run)(struct cn_pool_job *job);  /* on a thread of the pool */
    struct cn_mail mail;                   /* `deliver` is the starter's; on the lane */
    struct cn_mailbox *mailbox;            /* of the lane */
    void (*lost)(struct cn_pool_job *job); /* it ran, but the lane has ended: free it */
};

/* NULL: there is no thread. */
struct cn_pool *cn_pool_new(unsigned threads_max);
/* Waits for the jobs that run. */
void cn_pool_free(struct cn_pool *pool);

void cn_pool_start(struct cn_pool *pool, struct cn_pool_job *job);
/* Waits until the job does not run any more, calling `nudge`, which tells it to end, again and
 * again. False: it never ran, its mail will not come, and it is the caller's again. True: its mail
 * comes, or has come. */
bool cn_pool_finish(struct cn_pool *pool, struct cn_pool_job *job,
                    void (*nudge)(struct cn_pool_job *job));

#endif
