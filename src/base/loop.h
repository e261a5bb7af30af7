/* SPDX-License-Identifier: Apache-2.0 */
/* base/loop.h - whose an event loop is, and with it all that belongs to its thread.
 *
 * Most of Cairn has no locks because it belongs to the thread of one loop: a lane's, that of the
 * administration, the main one. Functions of such things say so at their door, by
 * cn_loop_assert_owner(): a call from another thread ends the process at the caller, rather than in
 * data that has come apart, some time later.
 *
 *     cn_loop_init() ──► the maker's ──cn_loop_give()──► nobody's ──cn_loop_take()──► the taker's
 *
 * W1  A loop has one owner or none. Who made it owns it; a loop that is to run on another thread is
 *     given away before that thread starts, and taken by it. While it is nobody's nobody may touch
 *     what belongs to it, but send mail.
 * W2  Asserted at the outermost functions of a type: one that is only reached through such a
 *     function of the same thing need not ask again.
 * W3  Counters that stand for something that could be walked over are compared with it
 *     (cn_*_check() functions) in builds for finding mistakes (CN_DEBUG_CHECKS: those with
 *     sanitizers), at moments at which nothing is half done.
 *
 * The owner is kept in `loop->data`, which nobody else uses: the address of a variable that every
 * thread has for itself. The question is one load and one comparison, and stays in release builds.
 *
 * Threads: as said. Ownership: the loop's memory is its maker's. */
#ifndef CN_BASE_LOOP_H
#define CN_BASE_LOOP_H
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/assert.h"

#ifdef CN_DEBUG
#define CN_DEBUG_CHECKS 1
#else
#define CN_DEBUG_CHECKS 0
#endif

extern _Thread_local char cn_thread_mark;

/* Distinguishes the calling thread from every other that runs. */
static inline const void *cn_thread_self(void)
{
    return &cn_thread_mark;
}

/* uv_loop_init(); the loop is the calling thread's. */
int cn_loop_init(uv_loop_t *loop);
/* By its owner: it is nobody's until cn_loop_take(). */
void cn_loop_give(uv_loop_t *loop);
/* By the thread that has it from now on. */
void cn_loop_take(uv_loop_t *loop);

static inline bool cn_loop_is_mine(const uv_loop_t *loop)
{
    return loop->data == cn_thread_self();
}

static inline void cn_loop_assert_owner(const uv_loop_t *loop)
{
    CN_ASSERT(cn_loop_is_mine(loop));
}

/* Before a thread waits for what the loop is to do: its own would wait for ever. */
static inline void cn_loop_assert_other(const uv_loop_t *loop)
{
    CN_ASSERT(!cn_loop_is_mine(loop));
}

/* When a table of `size` things is due to be walked over (W3): with so many quiet moments between
 * two walks that each costs about as much as one thing. False in builds without checks. */
static inline bool cn_check_due(size_t *pause, size_t size)
{
    if (!CN_DEBUG_CHECKS || (*pause)-- > 0)
        return false;
    *pause = size;
    return true;
}

#endif
