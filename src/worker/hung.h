/* SPDX-License-Identifier: Apache-2.0 */
/* worker/hung.h - events that can never be answered.
 *
 * A handler that awaits what nobody will settle would keep its client for ever. Nothing comes into
 * a script but through a pin (js/context.h): a timer, a fetch, an answer. So
 *
 * N1  an event is hung if it has no answer and its instance cannot go on.
 * N2  Of several in an instance the youngest is hung: the others may wait for it, and go on when
 *     it fails. Of several of one request in several instances, the innermost call.
 * N3  An instance may go on if it has a pin through which something comes, or an event in C; if
 *     something that was sent on behalf of a request of it is on the desk; or if an instance that
 *     may go on has a pin or a further call of a request of it. It is whole instances that go on
 *     or not: whatever comes to one event may be what another waits for.
 *
 * Pins of the prelude's entry points, of what an event's client does, and of calls that stay on the
 * lane do not count: they are passive. A lane that is never idle is swept all the same.
 *
 * Threads: the lane's. */
#ifndef CN_WORKER_HUNG_H
#define CN_WORKER_HUNG_H

struct cn_lane;

/* Fails what is hung; the lane calls it now and then, outside of any turn. */
void cn_hung_sweep(struct cn_lane *lane);

#endif
