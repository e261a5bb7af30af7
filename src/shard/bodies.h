/* SPDX-License-Identifier: Apache-2.0 */
/* shard/bodies.h - large bodies on the disks of several nodes.
 *
 * A body (store/blob.h) is written once, never changed, and named by an object, its *index*. It
 * belongs to the shard of that object: the disks that have replicas of the shard should have its
 * bodies. (By the index's shard, not by a hash of the body's own id: then who owns the index has
 * its bodies on his own disk, one map says where both are, and one owner can say which are named.
 * The price: the bodies of one bucket are on as many disks as a shard has replicas, however many
 * nodes there are.) The engine knows nothing of bodies. Its id says its shard and its index's
 * namespace.
 *
 * Nodes ask each other nine questions (peer/frame.h, enum cn_frame_body_op), over the link between
 * them. Bytes travel in answers to READ, one piece for each question: the receiver sets the pace,
 * and the sender holds one piece for each question.
 *
 *     put     written and synced here ──► TAKE to every replica ──► READ ... ◄── synced there
 *             └─ all have answered ──► the index may name it
 *     get     the file here; else READ of one who has it
 *     repair  DIGESTS differ ──► LIST ──► KNOWN of the owner ──► READ ... ──► synced
 *     delete  the index has let go ──► the file here, DROP to all; who is away asks KNOWN later
 *     leave   not a replica any more ──► KNOWN, then HAS of every replica ──► the file goes
 *
 * Z1  A put is over when the body is synced, file and folder, on every replica that can be reached
 *     and does not fail, and on two disks at the least (on one, if the cluster keeps one replica).
 *     If there are too few replicas another node takes it in the place of one (and keeps it by Z5
 *     until the replicas have it). Else the put fails with CN_EOVERLOADED and can be tried again.
 *     Only then the index names it.
 * Z2  Before a body's file is in its place on any disk its index has noted its id, durably. What
 *     an index has noted is *known* to it until it has let go of it and let it be deleted, and
 *     never becomes known again: an index names only what it has a note of. So "not known", said
 *     by the owner of the shard about a file that somebody has, stays true for ever, whoever owns
 *     the shard by then: it is the only reason to delete a file, but for Z5. Who cannot be asked,
 *     or does not know the namespace, has not said so.
 * Z3  Replicas compare what they have with every node that can be reached, again and again, by a
 *     digest for each shard (how many, the XOR of their ids), and where those differ by lists;
 *     each takes what it lacks and is known. So puts and deletes that a disk has missed reach it,
 *     and so does everything if it is new or was emptied. Repair is slower than CN_BODIES_RATE.
 * Z4  What is copied is compared with the checksums of its sender; a file that is damaged is read
 *     from another disk, and replaced by a whole copy. It is never deleted before that.
 * Z5  A disk that is no replica of a shard deletes a body only when every disk that is one says
 *     that it has it and will keep it (HAS). While it asks, it says of the same body itself that
 *     it does not: so two that rely on each other both keep it. By this, and Z1, the number of
 *     copies never falls below that of replicas by anything but the loss of disks.
 * Z6  A replica is dropped from the map, by rebalancing or draining, only when its owner has seen
 *     every replica that is to stay have all that the owner has since they are replicas
 *     (CATCH_UP), and has itself all that others have: the member is told which are *whole*. So a
 *     node that shows no replica any more can be taken away with its disk.
 * Z7  Bounded: questions that wait by CN_BODIES_JOBS_MAX for each kind of work and
 *     CN_BODIES_BYTES_MAX in total; beyond it they are answered CN_EOVERLOADED. READ, LIST,
 *     DIGESTS, HAS and DROP are done by threads that never wait for another node, TAKE and
 *     CATCH_UP by others, KNOWN (which waits for a lane) by another: no ring of nodes can wait for
 *     itself.
 *
 * Z8  The ninth, STORE, is for backups: pieces of the shard's own store (shard/backup_stream.h).
 *     It has a thread of its own, since it waits for the disk for longer than others may. A node
 *     of a version that does not know it does not answer.
 *
 * Threads:   four kinds of workers and a keeper. frame() and link() are called by the host's
 *            thread and do not block; functions of the blobs' peers by any that may wait.
 * Ownership: new() allocates and starts; stop() joins all threads; free() after that. */
#ifndef CN_SHARD_BODIES_H
#define CN_SHARD_BODIES_H
#include <stdbool.h>
#include <stdint.h>

#include "membership/engine.h"
#include "peer/frame.h"
#include "shard/backup_stream.h"
#include "shard/host.h"
#include "store/blob.h"

#define CN_BODIES_JOBS_MAX 256
#define CN_BODIES_BYTES_MAX (32u << 20)
#define CN_BODIES_RATE (64u << 20) /* bytes a second that repair takes */

struct cn_bodies;

/* Called from any thread. Only `known` and `store` may wait. */
struct cn_bodies_hands {
    void *data;
    /* To a node. False: there is no link. */
    bool (*send)(void *data, uint64_t disk, enum cn_frame_kind kind, const void *head,
                 size_t head_size, const void *more, size_t more_size);
    bool (*view)(void *data, uint32_t shard, struct cn_host_view *view);
    unsigned (*linked)(void *data, uint64_t disks[CN_CLUSTER_NODES_MAX]);
    /* Of a shard that is owned here: known[i] says whether ids[i] may be named (Z2). Negative: it
     * cannot be said now. */
    int (*known)(void *data, uint32_t shard, const struct cn_blob_id *ids, size_t count,
                 uint8_t *known, struct cn_err *err);
    /* Z6: of a shard that is owned here under this epoch, these replicas have everything. */
    void (*whole)(void *data, uint32_t shard, uint64_t epoch, const uint64_t *disks,
                  unsigned count);
    /* Z8: cn_backup_stream_next(). NULL: nothing is given. */
    int (*store)(void *data, const struct cn_backup_stream_ask *ask,
                 struct cn_backup_stream_piece *piece, struct cn_err *err);
};

/* Zero in a number means the default in brackets. */
struct cn_bodies_config {
    struct cn_blobs *blobs; /* of this disk, by shard; borrowed */
    uint64_t disk;
    unsigned shard_count, replicas;
    unsigned keep_ms; /* between two rounds of the keeper: 2000 */
    unsigned call_ms; /* an answer that takes longer does not come: 15000 */
    uint64_t rate;    /* CN_BODIES_RATE */
    struct cn_bodies_hands hands;
};

int cn_bodies_new(const struct cn_bodies_config *config, struct cn_bodies **bodies,
                  struct cn_err *err);
/* Fails what waits; nothing is sent afterwards. */
void cn_bodies_stop(struct cn_bodies *bodies);
void cn_bodies_free(struct cn_bodies *bodies); /* NULL is fine */

/* For cn_blobs_among(). */
const struct cn_blob_peers *cn_bodies_peers(struct cn_bodies *bodies);

/* For backups, where waiting is allowed. Z8: the next piece of a stream of another node. */
int cn_bodies_store(struct cn_bodies *bodies, uint64_t disk, const struct cn_backup_stream_ask *ask,
                    struct cn_backup_stream_piece *piece, struct cn_err *err);
/* Ids of the shard that a disk, this or another, has behind `after`, rising; how many. */
int64_t cn_bodies_list(struct cn_bodies *bodies, uint64_t disk, uint32_t shard,
                       const struct cn_blob_id *after, struct cn_blob_id ids[CN_FRAME_IDS_MAX],
                       struct cn_err *err);

/* By the host. */
/* False: it is malformed. */
bool cn_bodies_frame(struct cn_bodies *bodies, uint64_t disk, const struct cn_frame *frame);
void cn_bodies_link(struct cn_bodies *bodies, uint64_t disk, bool up);

struct cn_bodies_stats {
    uint64_t count;     /* files on this disk */
    uint64_t taken;     /* of puts of other nodes */
    uint64_t repaired;  /* copied because they were missing or damaged */
    uint64_t collected; /* deleted because nobody knew them */
    uint64_t left;      /* deleted by Z5 */
    uint64_t damaged;   /* waiting to be repaired */
    uint64_t refused;   /* puts: Z1 */
    uint64_t lacking;   /* shards owned here of which a replica lacks bodies, or cannot be asked */
    uint64_t rounds;    /* of the keeper */
};
void cn_bodies_stats(struct cn_bodies *bodies, struct cn_bodies_stats *stats);

#endif
