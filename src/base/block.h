/* SPDX-License-Identifier: Apache-2.0 */
/* base/block.h - a thread that serves clients never blocks.
 *
 * The thread of a lane serves all clients that are connected to it: while it waits, all of them
 * wait. Such a thread forbids itself to block. A function that can wait for a disk, the log, another
 * thread, a process or another machine first asks whether its thread may block.
 *
 * B1  A function that can wait for longer than a lock is held around a list says
 *     cn_may_block_here() first. On a thread that serves that is our mistake: it ends the process
 *     in builds for finding mistakes and where CAIRN_STRICT is set (all tests); elsewhere it is
 *     said once for each place, since a server that waits is better than one that has ended.
 * B2  Who is called by threads of both kinds asks cn_may_block(), and does something else in place
 *     of waiting: takes more than its bound and holds back who wrote (store/log.h), or refuses.
 * B3  A lane that starts or ends serves nobody, and may wait. Otherwise an exception is made by
 *     cn_block_except() around the one call, with the reason in a comment.
 *
 * Threads: any; what is forbidden is the calling thread's alone. */
#ifndef CN_BASE_BLOCK_H
#define CN_BASE_BLOCK_H
#include <stdbool.h>

extern _Thread_local bool cn_block_forbidden;

/* The calling thread serves from now on, or no longer. */
static inline void cn_block_forbid(bool forbidden)
{
    cn_block_forbidden = forbidden;
}

static inline bool cn_may_block(void)
{
    return !cn_block_forbidden;
}

void cn_block_fail(const char *function);

/* B1 */
#define cn_may_block_here()          \
    do {                             \
        if (cn_block_forbidden)      \
            cn_block_fail(__func__); \
    } while (0)

/* B3. Returns what was, for the second call, which ends the exception. */
static inline bool cn_block_except(bool forbidden)
{
    bool before = cn_block_forbidden;
    cn_block_forbidden = forbidden;
    return before;
}

#endif
