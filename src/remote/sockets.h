/* SPDX-License-Identifier: Apache-2.0 */
/* remote/sockets.h - how WebSockets whose two ends are on different nodes (worker/ws_far.h) reach each
 * other: by questions of the type SOCKETS, one trunk's in the order in which they are asked.
 *
 * W1  What the other side cannot have had (UNSENT; or it could not be reached a moment ago, and is
 *     not dialed for a while) is asked again, for AGAIN_MS, and what is asked later waits behind
 *     it. A node that has just come back would lose the sockets of an object that moves to it else.
 * W2  What it may have had, fails; and with it all that was asked before that was known: nothing
 *     arrives behind something that is lost (F1 of worker/ws_far.h). So it is when the node is
 *     silent.
 * W3  A node whose session has ended, by the engine, is gone: nothing is asked of it again, and all
 *     conversations with it end at once. Their clients are told, and come again.
 *
 * Threads:   the lane's. */
#ifndef CN_REMOTE_SOCKETS_H
#define CN_REMOTE_SOCKETS_H

struct cn_lane;

/* After cn_remote_lane_open(), on the lane. */
void cn_remote_sockets_open(struct cn_lane *lane);

#endif
