/* SPDX-License-Identifier: Apache-2.0 */
/* store/sink.h - what "durable" means for a store.
 *
 * Without a sink (a single server) a commit is durable when its record is synced in the files of
 * the store's own log. With a sink (a node of a cluster) it is durable when the sink has it, which
 * there means the log of the engine. Code above store/ does not distinguish them:
 * cn_store_durable() tells up to which LSN commits are durable, and cn_store_may_leave() whether an
 * answer that depends on them may leave.
 *
 * K1  A batch is written to the log's files after the sink has settled it, and pages go to database
 *     files after that, as ever: what is on this disk is a beginning of what the sink has, and
 *     nothing else.
 * K2  What the sink refuses never was. The log fails with the sink's sentence, nothing that waits
 *     for it is told, and a later open finds the store without it.
 * K3  Records are settled in the order of their LSNs, one batch at a time.
 * K4  may_leave() is asked after durability was seen, not before: a lease that was valid earlier
 *     says nothing about what was read since.
 * K5  A sink that verifies confirms each answer before it leaves. When an answer is ready it takes
 *     a ticket, and leaves once a statement that was sent after that has confirmed the ticket. An
 *     earlier confirmation does not count.
 *
 * Threads:   settle() on the flusher's, where it may block: what is appended meanwhile gathers for
 *            the next batch. may_leave() on any, and must not block.
 * Ownership: borrowed; outlives the store. */
#ifndef CN_STORE_SINK_H
#define CN_STORE_SINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_err;

/* Whole records (store/record.h), one after the other. */
struct cn_sink_batch {
    uint64_t first_lsn, last_lsn;
    const uint8_t *bytes;
    size_t size;
};

struct cn_sink {
    void *data;
    /* Returns when the batch is safe there: 0; or when it never will be: negative. Whoever closes
     * the store sees to it that a call that is under way returns. */
    int (*settle)(void *data, const struct cn_sink_batch *batch, struct cn_err *err);
    /* May what is durable be told now? NULL: always. When it becomes true again, cn_store_wake().
     */
    bool (*may_leave)(void *data);
    /* K5; both or none. They must not block. When more is confirmed, cn_store_wake(). */
    uint64_t (*ticket)(void *data);
    bool (*confirmed)(void *data, uint64_t ticket);
};

#endif
