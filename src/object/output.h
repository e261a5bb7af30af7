/* SPDX-License-Identifier: Apache-2.0 */
/* object/output.h - the output gate: what leaves an object waits for its writes.
 *
 * Everything an object sends (replies, outgoing requests, WebSocket frames, queue
 * messages) embeds a cn_output. Given out during a turn, it is held until the
 * turn's writes are in the log and the log is durable up to them; then `send`
 * runs, in the order in which outputs were given. If the writes cannot be made
 * durable, `send` runs with an error instead and nothing must be sent.
 *
 * G1  send(NULL error) runs only when durable >= the object's last commit at the
 *     end of the turn that gave it out; commits that hold nothing but writes with
 *     allowUnconfirmed do not count.
 * G2  Outputs of one lane leave in the order they were given: a later one never
 *     overtakes, whichever object or shard it is of. Those of a shard that is closed
 *     fail at once, wherever they stand.
 * G3  What the log has taken becomes durable, on a full disk too: an output that waits for its
 *     commit is told an error only when the log has failed, and then that nobody knows whether the
 *     commit is there. Whether writes are accepted at the moment (cn_store_status()) is not asked.
 *
 * Threads:   the lane that owns the object.
 * Ownership: the giver's; linked until `send` has begun. */
#ifndef CN_OBJECT_OUTPUT_H
#define CN_OBJECT_OUTPUT_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"

struct cn_lane_shard;

struct cn_output {
    struct cn_list link;
    struct cn_lane_shard *shard; /* of its object; set when its turn has ended, as are these: */
    uint64_t lsn;                /* of the commit that it waits for, in that shard */
    uint64_t ticket;             /* K5 of store/sink.h */
    uint64_t stray;              /* the last of the lane's strays that it waits for (O5); 0: none */
    bool all;                    /* waits for unconfirmed writes too */
    void (*send)(struct cn_output *output, const struct cn_err *err);
};

#endif
