/* SPDX-License-Identifier: Apache-2.0 */
/* worker/hung.h - events that can never be answered.
 *
 * A handler that awaits what nobody will settle would keep its client for ever. Nothing comes into
 * a script but through a pin (js/context.h): a timer, a fetch, an answer. So
 *
 * N1  an event is hung if it has no answer, its instance has no pin through which anything could
 *     come, none on the lane was made on behalf of its request, and no other instance has an
 *     event of that request without an answer.
 * N2  Of several in an instance the youngest is hung: the others may wait for it, and go on when
 *     it fails.
 *
 * Pins of the prelude's entry points, of what an event's client does, and of calls that stay on the
 * lane do not count: they are passive. What another request of the same script still waits for
 * does count, since its outcome may be shared.
 *
 * Threads: the lane's. */
#ifndef CN_WORKER_HUNG_H
#define CN_WORKER_HUNG_H

struct cn_lane;

/* Fails what is hung; the lane calls it now and then, outside of any turn. */
void cn_hung_sweep(struct cn_lane *lane);

#endif
