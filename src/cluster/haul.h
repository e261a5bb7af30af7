/* SPDX-License-Identifier: Apache-2.0 */
/* cluster/haul.h - the stores of this node's shards, whole, for who makes a backup.
 *
 * A *haul* is one copy of a shard that is owned here, on its way out: the stream of
 * cn_replica_copy() (store/replica.h), which a thread writes and somebody takes in pieces, as he
 * asks for them. He is on another node, and asks by the link (cluster/bodies.h, STORE), or on this
 * one.
 *
 *     thread   cn_replica_copy() ──► write: a piece, waits until it is taken
 *     asker    cn_haul_next(id, offset) ──► the bytes from `offset` on, in order; the last says so
 *
 *     state     what is there                                     goes on to
 *     OPEN      the thread writes, the shard is held              ENDED: all is written; CUT
 *     ENDED     the rest waits to be taken                        gone, when it is
 *     CUT       the shard goes, or nobody asks: nothing is given  gone, when its thread has ended
 *
 * Y1  A haul begins only while the node may answer for the shard (C5) and holds it (S4 of
 *     object/shard.h). So whatever was acknowledged before it began is settled here, and in it;
 *     what is in it is settled, by P1. Whether the shard is lost later makes no difference to that.
 * Y2  A shard that is to stop or to close does not wait for its haul: cn_hauls_cut() ends it at the
 *     next frame, and who asks is told that it has ended. He begins anew, with the next owner.
 * Y3  A stream is given out once, in order and without a gap: who asks for another place than the
 *     one that comes next has lost his copy, and begins anew.
 * Y4  Bounded: CN_HAULS_MAX at a time, a piece of each in memory; one that nobody has asked for in
 *     CN_HAUL_IDLE_MS is cut, so an asker that died holds no checkpoint for longer.
 *
 * Threads:   all functions any; next() waits, for CN_HAUL_WAIT_MS at most. cut() does not block.
 * Ownership: new() allocates; stop() cuts all and joins their threads; free() after that. */
#ifndef CN_CLUSTER_HAUL_H
#define CN_CLUSTER_HAUL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct cn_err;
struct cn_hauls;

#define CN_HAUL_ID_SIZE 16
#define CN_HAUL_PIECE_MAX ((size_t)256 << 10)
#define CN_HAULS_MAX 8
#define CN_HAUL_IDLE_MS 30000
#define CN_HAUL_WAIT_MS 5000

struct cn_hauls_hands {
    void *data;
    /* Y1: a hold of the shard, and its epoch. NULL: it is not served here. Must not block. */
    void *(*hold)(void *data, uint32_t shard, uint64_t *epoch);
    void (*release)(void *data, void *hold);
    /* Writes all of the store until `write` returns something negative. On the haul's thread. */
    int (*copy)(void *data, uint32_t shard, int (*write)(void *to, const void *bytes, size_t size),
                void *to, struct cn_err *err);
};

struct cn_hauls *cn_hauls_new(const struct cn_hauls_hands *hands);
void cn_hauls_stop(struct cn_hauls *hauls);
void cn_hauls_free(struct cn_hauls *hauls); /* NULL is fine */

/* Of whom, and what. */
struct cn_haul_ask {
    uint64_t disk; /* of who asks */
    uint32_t shard;
    uint8_t id[CN_HAUL_ID_SIZE]; /* drawn by him, for this copy */
    uint64_t offset;             /* 0: begins it */
    size_t size;                 /* at most so many, and CN_HAUL_PIECE_MAX */
};
struct cn_haul_piece {
    struct cn_buf bytes; /* appended to; nothing: there is nothing yet, ask again */
    uint64_t epoch;      /* of the shard when it began */
    bool ended;          /* that was all */
};
/* CN_ECLOSED: the shard is not served here, or not any more. CN_ENOTFOUND: there is no such haul
 * (any more). CN_EOVERLOADED: Y4. Else what the copy failed with. */
int cn_haul_next(struct cn_hauls *hauls, const struct cn_haul_ask *ask, struct cn_haul_piece *piece,
                 struct cn_err *err);
/* Y2. */
void cn_hauls_cut(struct cn_hauls *hauls, uint32_t shard);

#endif
