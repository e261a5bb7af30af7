/* SPDX-License-Identifier: Apache-2.0 */
/* worker/remote.h - how lanes reach other nodes of a cluster: functions that are given to them
 * (remote/remote.h).
 *
 * Threads: the lane's. */
#ifndef CN_WORKER_REMOTE_H
#define CN_WORKER_REMOTE_H

#include <stdint.h>

struct cn_object_key;
struct cn_object_lane;

struct cn_lane_remote {
    void *data;
    /* When the objects of a lane have started; when it stops, before they go; when its loop has
     * ended. */
    void (*open)(void *data, struct cn_object_lane *objects);
    void (*close)(struct cn_object_lane *objects);
    void (*free)(struct cn_object_lane *objects);
    /* What the object (or, if it is NULL, the instance of a worker with this serial) of the lane
     * has lent under this number is held by the session that `mark` names, once more
     * (CN_LENT_LEND). */
    void (*lend)(struct cn_object_lane *objects, const struct cn_object_key *object,
                 uint32_t serial, double number, const char *mark);
};

#endif
