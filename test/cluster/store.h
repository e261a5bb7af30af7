/* SPDX-License-Identifier: Apache-2.0 */
/* test/cluster/store.h - the stores of a node of the test: lists of writes (store_list.c), or real
 * replicas with databases (store_real.c). Which of them is the node's last argument.
 *
 * A write is a number; an object is the list of its writes. */
#ifndef CN_TEST_CLUSTER_STORE_H
#define CN_TEST_CLUSTER_STORE_H
#include <stdbool.h>
#include <stdint.h>

#include "shard/host.h"

struct stores {
    const struct cn_host_disk *hands;
    /* Opens what is in the directory: the disk's identity, and a life that was never used. */
    bool (*open)(const char *dir, uint64_t *disk, uint64_t *life);
    /* The host is there: tells it what was found. */
    void (*found)(struct cn_host *host, const struct cn_engine_pg_info *info);
    /* By the lane, for a shard that is served. False: refused. *lsn: after it. */
    bool (*write)(uint32_t shard, uint32_t object, uint32_t record, uint64_t *lsn);
    /* How many writes the object has, and which, as wire_hash(); *lsn: what it rests on. False:
     * refused. */
    bool (*read)(uint32_t shard, uint32_t object, uint32_t *count, uint64_t *hash, uint64_t *lsn);
    /* All writes of the shard: their number. */
    uint32_t (*dump)(uint32_t shard, uint32_t *records, uint32_t max, uint64_t *lsn);
    uint64_t (*durable)(uint32_t shard);
    /* The lane lets go of a shard. */
    void (*let_go)(uint32_t shard);
    void (*close)(void);
};
extern const struct stores list_stores, real_stores;

/* By the node: something is durable. Any thread. */
void node_wake(void);

#endif
