/* SPDX-License-Identifier: Apache-2.0 */
/* server/offline_lane.h - a lane that stands in for a server's, so that services of a data
 * directory which no server uses can be asked: the node, one lane on a thread of its own, no
 * JavaScript.
 *
 * Only namespaces that were asked for are known to the node, so nothing of the workers runs: no
 * class of theirs, no alarm.
 *
 * Threads:   new and free on one thread.
 * Ownership: the caller's; disk and shards are borrowed and outlive it. */
#ifndef CN_SERVER_OFFLINE_LANE_H
#define CN_SERVER_OFFLINE_LANE_H
#include "base/err.h"

struct cn_disk;
struct cn_node;
struct cn_offline_lane;
struct cn_shards;

int cn_offline_lane_new(struct cn_disk *disk, struct cn_shards *shards,
                        struct cn_offline_lane **own, struct cn_err *err);
void cn_offline_lane_free(struct cn_offline_lane *own); /* NULL is fine */
struct cn_node *cn_offline_lane_node(struct cn_offline_lane *own);

#endif
