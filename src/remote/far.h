/* SPDX-License-Identifier: Apache-2.0 */
/* remote/far.h - how WebSockets whose two ends are on different nodes (worker/ws_far.h) reach each
 * other: by questions of the type SOCKETS, one trunk's in the order in which they are asked. */
#ifndef CN_REMOTE_FAR_H
#define CN_REMOTE_FAR_H

struct cn_lane;

/* After cn_remote_lane_open(), on the lane. */
void cn_far_open(struct cn_lane *lane);

#endif
