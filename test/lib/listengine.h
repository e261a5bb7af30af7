/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/listengine.h - the log of a cluster's engine, as a list in memory, for tests of
 * replicas.
 *
 * Settles what the owner of one shard appended, gives it out to others, and remembers what every
 * record was: one that comes again must be the same bytes (store/replica.h, P1).
 *
 * Threads: one. */
#ifndef CN_TEST_LISTENGINE_H
#define CN_TEST_LISTENGINE_H
#include "base/buf.h"
#include "store/replica.h"

struct listengine {
    struct cn_buf bytes;      /* of all records */
    size_t *ends;             /* owned; where record n ends, from 1; [0] is 0 */
    uint64_t last;            /* settled */
    struct cn_replica *owner; /* borrowed; whom stall() settles for */
    uint64_t held;            /* nothing behind this is settled; 0: everything is */
    unsigned hints, checkpoints;
    uint64_t checkpointed; /* told last */
};

void listengine_init(struct listengine *engine);
void listengine_fini(struct listengine *engine);
/* Hooks for cn_replicas_config, of one shard. */
struct cn_replica_hooks listengine_hooks(struct listengine *engine);
/* Takes in and settles everything the owner has appended, or up to `held`. */
int listengine_settle(struct listengine *engine, struct cn_err *err);
/* Takes it in, and does not tell the owner: its answer was lost. */
void listengine_take(struct listengine *engine);
/* Feeds a replica what it lacks, up to `lsn`, in pieces of about `piece` bytes. */
int listengine_feed(struct listengine *engine, struct cn_replica *replica, uint64_t lsn,
                    size_t piece, struct cn_err *err);

#endif
