/* SPDX-License-Identifier: Apache-2.0 */
/* remote/target.h - calls to what workers of other nodes have lent, by address (object/lent.h). See
 * remote.h. */
#ifndef CN_REMOTE_TARGET_H
#define CN_REMOTE_TARGET_H

#include <stdint.h>

struct cn_dispatch;
struct cn_object_key;
struct cn_object_lane;

/* What struct cn_lane_remote.dispatch is (worker/lane.h): the dispatch has ARRIVED on its own lane,
 * and ends with the answer of the other node's. */
void cn_target_send(struct cn_object_lane *objects, struct cn_dispatch *dispatch);
/* And .lend. */
void cn_target_lend(struct cn_object_lane *objects, const struct cn_object_key *object,
                    uint32_t serial, double number, const char *mark);

#endif
