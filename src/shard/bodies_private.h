/* SPDX-License-Identifier: Apache-2.0 */
/* shard/bodies_private.h - what the parts of bodies.h tell each other: bodies.c has the
 * questions, the answers and the functions for blobs, bodies_keep.c the keeper. */
#ifndef CN_SHARD_BODIES_PRIVATE_H
#define CN_SHARD_BODIES_PRIVATE_H
#include <pthread.h>

#include "base/buf.h"
#include "base/list.h"
#include "shard/bodies.h"

enum {
    CN_BODIES_PAGE = 512,
    CN_BODIES_DAMAGED_MAX = 64,
    CN_BODIES_SERVERS = 2,
    CN_BODIES_TAKERS = 3
};

/* Who does it: Z7. */
enum cn_bodies_work { CN_WORK_SERVE, CN_WORK_TAKE, CN_WORK_ASK, CN_WORK_STORE, CN_WORKS };

struct cn_bodies_digest {
    uint64_t count;
    uint8_t sum[CN_BLOB_ID_SIZE]; /* XOR of the ids */
};

/* A question of ours. On the stack of who waits. */
struct cn_bodies_call {
    struct cn_list link;
    uint64_t number, disk;
    enum cn_frame_body_op op;
    uint32_t shard;
    struct cn_blob_id id;
    int64_t until_ms; /* later, when the other side is heard to work at it */
    bool done;
    int rc;
    struct cn_frame_body answer; /* its bytes are `bytes` */
    struct cn_buf bytes;
};

/* What the keeper knows of a shard; its own, but for those guarded by the lock. */
struct cn_bodies_shard {
    struct cn_bodies_digest digest; /* guarded by lock */
    /* Z6, guarded by lock: of this epoch, the replicas that have caught up (this disk, if it has
     * what others have; 0: room for another), and those that were told. */
    uint64_t epoch, caught_up[CN_CLUSTER_REPLICAS_MAX];
    uint64_t told[CN_CLUSTER_REPLICAS_MAX];
    bool swept; /* every id was asked about since the start */
    int64_t leave_at_ms;
    /* Pairs of digests that were compared: nothing is left to be done about them. */
    struct {
        uint64_t disk;
        struct cn_bodies_digest mine, theirs;
    } seen[4];
    unsigned seen_next;
};

struct cn_bodies {
    struct cn_bodies_config config;
    struct cn_blob_peers peers;
    struct cn_bodies_shard *shards;
    pthread_t threads[CN_BODIES_SERVERS + CN_BODIES_TAKERS + 3];
    unsigned thread_count;
    /* Of the keeper: something could not be done in this round; since when that is so. */
    bool failed;
    unsigned lacking;
    int64_t failing_since_ms;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool stopping, hurry; /* hurry: the keeper is wanted now */
    uint64_t number;
    struct cn_list calls; /* of struct cn_bodies_call */
    struct cn_list jobs[CN_WORKS];
    unsigned job_count[CN_WORKS];
    size_t job_bytes;
    struct cn_list busy; /* of ids that are being written or deleted */
    struct cn_blob_id damaged[CN_BODIES_DAMAGED_MAX];
    unsigned damaged_count;
    const struct cn_blob_id *leaving; /* Z5: rising; of the keeper */
    size_t leaving_count;
    struct cn_bodies_stats stats;
};

int64_t cn_bodies_now_ms(void);
/* With the lock held. */
void cn_bodies_wait(struct cn_bodies *bodies, int64_t until_ms);

/* Asks and waits; negative: no answer, or the answer's error. The call is to be ended. */
int cn_bodies_ask(struct cn_bodies *bodies, uint64_t disk, const struct cn_frame_body *question,
                  struct cn_bodies_call *call, struct cn_err *err);
void cn_bodies_call_fini(struct cn_bodies_call *call);

/* Has it here afterwards, from that disk. `again`: also if a file is there. */
int cn_bodies_pull(struct cn_bodies *bodies, const struct cn_blob_id *id, uint64_t disk, bool again,
                   bool slowly, struct cn_err *err);
int cn_bodies_find(struct cn_bodies *bodies, const struct cn_blob_id *id, uint64_t *disk,
                   uint64_t *size, struct cn_err *err);
/* Deletes the file of this disk. */
int cn_bodies_delete(struct cn_bodies *bodies, const struct cn_blob_id *id, struct cn_err *err);
/* Of the owner of the shard, wherever it is. */
int cn_bodies_known(struct cn_bodies *bodies, uint32_t shard, const struct cn_blob_id *ids,
                    size_t count, uint8_t *known, struct cn_err *err);

/* bodies_keep.c */
void *cn_bodies_keeper(void *data);
int cn_bodies_catch_up(struct cn_bodies *bodies, uint32_t shard, uint64_t disk, struct cn_err *err);
void cn_bodies_fell_behind(struct cn_bodies *bodies, uint32_t shard, uint64_t disk);

#endif
