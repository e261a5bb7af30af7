/* SPDX-License-Identifier: Apache-2.0 */
/* worker/relief.h - what a lane gives up when memory is short, and in which order.
 *
 * Two bounds are kept here: that of the lane's own heap (`heap_bytes`, looked at every second) and
 * that of the process (base/account.h, whose levels the watchdog passes on).
 *
 * R1  The order is that of base/account.h; of each kind the largest goes first, and no more of it
 *     than is needed.
 * R2  One script or one object answers for its memory: it is reset and named in a line. Others on
 *     the lane keep their state, their requests and their sockets.
 * R3  An object is held to account if it has most of what its script and all its objects hold;
 *     otherwise the script is, with all its objects.
 * R4  Between two resets the heap is collected: what was left behind is not counted twice. Before
 *     one it is too, and if that frees what is missing (what slow readers were sent, say, who have
 *     just been cut), nobody is reset.
 * R5  Without meters (js/engine/alloc.h, M4) it is the script that has used most CPU time lately.
 * R6  Who holds little of the process's memory is not reset for it: that would give back nothing.
 *     What was closed and dropped a moment ago takes a while to be seen. Nor are its new requests
 *     refused before the limit is reached: they would pay for what another holds.
 * R7  To refuse is no lasting state. If what gives way on a level does not bring the process below
 *     it (requests within a second, bodies within five), the largest is reset as on the last
 *     level: otherwise a script that stops growing just below the limit would have all others
 *     refused for ever.
 * R8  Nobody is accused of a lane's heap who holds little of it, unless all of it is held: the
 *     rest is what somebody who was reset has left, which the collector has yet to find.
 *
 * Threads:   the lane's. */
#ifndef CN_WORKER_RELIEF_H
#define CN_WORKER_RELIEF_H
#include <stdbool.h>

struct cn_instance;
struct cn_lane;

/* Once a second: the heap of the lane, and what the account is told of it. */
void cn_relief_tick(struct cn_lane *lane);
/* At the end of a turn: whether the heap has passed its bound. Then idle objects go soon, rather
 * than at the next tick: what the engine cannot have is refused to a script (js/engine/alloc.h,
 * M2). */
void cn_relief_turn(struct cn_lane *lane);
/* Whether a new request of the instance is refused for want of memory. */
bool cn_relief_refuses(const struct cn_instance *instance);
/* The watchdog has woken the lane: the process is short of memory. */
void cn_relief_step(struct cn_lane *lane);
/* The lane ends: what it has told the account is taken back. */
void cn_relief_end(struct cn_lane *lane);

#endif
