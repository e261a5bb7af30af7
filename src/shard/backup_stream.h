/* SPDX-License-Identifier: Apache-2.0 */
/* shard/backup_stream.h - whole stores of this node's shards, for a backup of the cluster.
 *
 * A *stream* is one copy of a shard that this node owns. A thread produces it with
 * cn_replica_copy() (store/replica.h); the node that makes the backup pulls it in pieces, over the
 * link if it is another node (shard/bodies.h, STORE).
 *
 *     thread   cn_replica_copy() ──► write: a piece, waits until it is taken
 *     asker    cn_backup_stream_next(id, offset) ──► bytes from `offset` on, in order, and whether
 *              they are the last
 *
 *     state     what is there                                     goes on to
 *     OPEN      the thread writes, the shard is held              ENDED: all is written; CUT
 *     ENDED     the rest waits to be taken                        gone, when it is
 *     CUT       the shard goes, or nobody asks: nothing is given  gone, when its thread has ended
 *
 * Y1  A stream begins only while the node may answer for the shard (C5) and holds it (S4 of
 *     object/shard.h). So whatever was acknowledged before it began is settled here, and in it;
 *     what is in it is settled, by P1. Whether the shard is lost later makes no difference to that.
 * Y2  A shard that is to stop or to close does not wait for its stream: cn_backup_streams_cut()
 *     ends it at the next frame, and the asker is told. It begins anew, with the next owner.
 * Y3  A stream is given out once, in order and without a gap. A question for any other offset than
 *     the next one ends the stream: the asker has lost its copy, and begins anew.
 * Y4  Bounded: CN_BACKUP_STREAMS_MAX at a time, with one piece of each in memory. A stream that was
 *     not asked for in CN_BACKUP_STREAM_IDLE_MS is cut, so a dead asker holds no checkpoint for
 *     longer.
 *
 * Threads:   all functions any; next() waits, for CN_BACKUP_STREAM_WAIT_MS at most. cut() does not block.
 * Ownership: new() allocates; stop() cuts all and joins their threads; free() after that. */
#ifndef CN_SHARD_BACKUP_STREAM_H
#define CN_SHARD_BACKUP_STREAM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct cn_err;
struct cn_backup_streams;

#define CN_BACKUP_STREAM_ID_SIZE 16
#define CN_BACKUP_STREAM_PIECE_MAX ((size_t)256 << 10)
#define CN_BACKUP_STREAMS_MAX 8
#define CN_BACKUP_STREAM_IDLE_MS 30000
#define CN_BACKUP_STREAM_WAIT_MS 5000

struct cn_backup_streams_host {
    void *data;
    /* Y1: a hold of the shard, and its epoch. NULL: it is not served here. Must not block. */
    void *(*hold)(void *data, uint32_t shard, uint64_t *epoch);
    void (*release)(void *data, void *hold);
    /* Writes all of the store until `write` returns something negative. On the stream's thread. */
    int (*copy)(void *data, uint32_t shard, int (*write)(void *to, const void *bytes, size_t size),
                void *to, struct cn_err *err);
};

struct cn_backup_streams *cn_backup_streams_new(const struct cn_backup_streams_host *hands);
void cn_backup_streams_stop(struct cn_backup_streams *streams);
void cn_backup_streams_free(struct cn_backup_streams *streams); /* NULL is fine */

/* Of whom, and what. */
struct cn_backup_stream_ask {
    uint64_t disk; /* of who asks */
    uint32_t shard;
    uint8_t id[CN_BACKUP_STREAM_ID_SIZE]; /* drawn by him, for this copy */
    uint64_t offset;                      /* 0: begins it */
    size_t size;                          /* at most so many, and CN_BACKUP_STREAM_PIECE_MAX */
};
struct cn_backup_stream_piece {
    struct cn_buf bytes; /* appended to; nothing: there is nothing yet, ask again */
    uint64_t epoch;      /* of the shard when it began */
    bool ended;          /* that was all */
};
/* CN_ECLOSED: the shard is not served here, or not any more. CN_ENOTFOUND: there is no such stream
 * (any more). CN_EOVERLOADED: Y4. Else what the copy failed with. */
int cn_backup_stream_next(struct cn_backup_streams *streams, const struct cn_backup_stream_ask *ask,
                          struct cn_backup_stream_piece *piece, struct cn_err *err);
/* Y2. */
void cn_backup_streams_cut(struct cn_backup_streams *streams, uint32_t shard);

#endif
