/* SPDX-License-Identifier: Apache-2.0 */
/* base/loop.h - which thread owns an event loop, and everything that belongs to that thread.
 *
 * Most data of Cairn needs no locks because it belongs to the thread of one loop: a lane's, that of
 * the administration, or the main one. Functions on such data begin with cn_loop_assert_owner(): a
 * call from another thread ends the process at the caller, and not later, by data that is damaged.
 *
 *     cn_loop_init() ──► the maker's ──cn_loop_give()──► nobody's ──cn_loop_take()──► the taker's
 *
 * W1  A loop has one owner or none. Who made it owns it; a loop that is to run on another thread is
 *     given away before that thread starts, and taken by it. While a loop has no owner, no thread
 *     may touch what belongs to it; sending mail is allowed.
 * W2  Asserted at the outermost functions of a type: one that is only reached through such a
 *     function of the same thing need not ask again.
 * W3  Counters that stand for something that could be walked over are compared with it
 *     (cn_*_check() functions) in builds for finding mistakes (CN_DEBUG_CHECKS: those with
 *     sanitizers), at moments at which nothing is half done.
 * W4  A loop needs descriptors, and a thread a place, of which there may be none: who needs one and
 *     gets none fails with a sentence, and ends no process. Timers and asyncs of a loop that is
 *     there need neither.
 *
 * The owner is kept in `loop->data`, which nobody else uses: the address of a variable that every
 * thread has for itself. The question is one load and one comparison, and stays in release builds.
 * Any thread may ask while another takes the loop, so it is read and written atomically. Relaxed
 * order is enough: only a thread itself writes its own address, and it is this that it asks for.
 *
 * Threads: as said. Ownership: the loop's memory is its maker's. */
#ifndef CN_BASE_LOOP_H
#define CN_BASE_LOOP_H
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/assert.h"
#include "base/err.h"

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

/* uv_loop_init() (W4); the loop is the calling thread's. */
__attribute__((warn_unused_result)) int cn_loop_init(uv_loop_t *loop, struct cn_err *err);
/* By its owner: it is nobody's until cn_loop_take(). */
void cn_loop_give(uv_loop_t *loop);
/* By the thread that has it from now on. */
void cn_loop_take(uv_loop_t *loop);

/* cn_thread_self() of the thread whose it is; NULL: nobody's. */
static inline const void *cn_loop_owner(const uv_loop_t *loop)
{
    return __atomic_load_n(&loop->data, __ATOMIC_RELAXED);
}

static inline bool cn_loop_is_mine(const uv_loop_t *loop)
{
    return cn_loop_owner(loop) == cn_thread_self();
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

/* What to give uv_timer_start() for a timer that is due in `ms` from now. The loop's own time is
 * that of the beginning of its round: brought up to date inside a timer's callback
 * (uv_update_time()), it would let libuv run what was started there in the same round, and timers
 * that start each other would keep connections waiting for ever. `timing`: it is started inside
 * such a callback. */
static inline uint64_t cn_loop_delay(const uv_loop_t *loop, uint64_t ms, bool timing)
{
    uint64_t now = uv_hrtime() / 1000000, then = uv_now(loop);
    uint64_t delay = ms + (now > then ? now - then : 0);
    return delay || !timing ? delay : 1;
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
