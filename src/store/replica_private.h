/* SPDX-License-Identifier: Apache-2.0 */
/* store/replica_private.h - inside replicas: replica.c has their life, replica_copy.c their way to
 * other disks. */
#ifndef CN_STORE_REPLICA_PRIVATE_H
#define CN_STORE_REPLICA_PRIVATE_H
#include <pthread.h>
#include <stdatomic.h>

#include "store/chores.h"
#include "store/history.h"
#include "store/image.h"
#include "store/replica.h"

struct cn_replicas {
    struct cn_replicas_config config;
    struct cn_disk_file *lock_file; /* owned, as are all below */
    uint64_t disk_id, life;
    struct cn_chores *chores;
    struct cn_log_budget *log_budget;
    struct cn_images_budget images_budget;

    pthread_mutex_t lock; /* guards the rest; innermost */
    struct cn_replica *list[CN_REPLICA_SHARDS_MAX];
    struct cn_replica_copy *copies[CN_REPLICA_SHARDS_MAX]; /* arriving; borrowed */
};

struct cn_replica {
    struct cn_replicas *all;
    uint32_t shard;
    struct cn_disk *disk; /* owned: its folder */
    struct cn_chore chore;

    /* Held by whatever is (slow), one at a time. Whoever cannot wait for a checkpoint or a copy
     * makes `cancelled` true first. Taken before `form_lock`. */
    pthread_mutex_t slow;
    atomic_bool cancelled;
    struct cn_history *history; /* guarded by `slow`; owned; NULL: not opened yet */
    uint64_t checkpoint_ms;     /* guarded by `slow`: when the last one ended */

    /* For writing while the form changes. */
    pthread_rwlock_t form_lock;
    enum cn_replica_form form;
    struct cn_log *log;     /* LOG; owned; NULL if it could not be opened again */
    struct cn_store *store; /* OPEN; owned */
    char why[256];          /* without a log: the reason */

    atomic_uint_fast64_t redo_lsn;
    atomic_uint_fast64_t boundary; /* the last one behind it, found or fed; 0: none */
};

/* The files of a folder that is no replica. Empty folders may stay. */
int cn_replica_remove(struct cn_disk *disk, struct cn_err *err);
/* Opens the folder of a shard, which is whole, and enters it. */
int cn_replica_enter(struct cn_replicas *replicas, uint32_t shard, struct cn_replica **replica,
                     struct cn_err *err);
/* Makes a folder a replica (P9); what is in it is synced. */
int cn_replica_name(struct cn_disk *disk, uint32_t shard, struct cn_err *err);
/* shards/NNNN */
struct cn_disk *cn_replica_disk_new(struct cn_replicas *replicas, uint32_t shard);
int cn_replica_history_open(struct cn_replica *replica, struct cn_err *err); /* with `slow` held */
/* CN_EINVALID unless it is a number of a shard. */
int cn_replica_shard_check(uint32_t shard, struct cn_err *err);

#endif
