/* SPDX-License-Identifier: Apache-2.0 */
/* shard/disk.h - the replicas of this machine (store/replica.h), as the disk of a host.
 *
 * Turns calls of a host (struct cn_host_disk) into calls of the replicas, and their results into
 * calls of the host. It adds three things:
 *   - the gate that lanes ask by way of their store (cn_store_may_leave(), K4) is the host's;
 *   - the file shards/CLUSTER has the id of the cluster: an empty engine, or that of another
 *     cluster, is refused (G4);
 *   - the file shards/SEEN has the highest numbers that the engine has told: an engine that went
 *     back is refused (C15). A directory of a release before this file accepts the engine as it is.
 *
 * Threads:   open and close by the maker; the rest as struct cn_host_disk says.
 * Ownership: the caller has the struct, which must not move; open and close what is in it. */
#ifndef CN_SHARD_DISK_H
#define CN_SHARD_DISK_H
#include <stdatomic.h>
#include <stdint.h>

#include "shard/host.h"
#include "store/replica.h"
#include "store/sink.h"

struct cn_cluster_disk {
    struct cn_host_disk hands; /* for the host */
    struct cn_replicas *replicas;
    struct cn_disk *files; /* borrowed */
    struct cn_host *_Atomic host;
    uint64_t id, life;                  /* of the disk */
    struct cn_engine_seen seen;         /* as it was when it was opened */
    char cluster[CN_ENGINE_PG_ID_SIZE]; /* "": it belongs to none yet */
    struct cn_cluster_entry {
        struct cn_cluster_disk *disk;
        uint32_t shard;
        struct cn_sink sink;
        struct cn_replica_copy *coming; /* of the shard's worker */
    } entries[CN_REPLICA_SHARDS_MAX];
};

/* `config`: hooks are set here. CN_ELOCKED, CN_ECORRUPT. */
int cn_cluster_disk_open(struct cn_cluster_disk *disk, const struct cn_replicas_config *config,
                         struct cn_err *err);
/* From the host's joined(): keeps the id, tells what is found. */
int cn_cluster_disk_join(struct cn_cluster_disk *disk, struct cn_host *host,
                         const struct cn_engine_pg_info *info, struct cn_err *err);
/* Before the host is made, if it verifies (C5): answers take a ticket. */
void cn_cluster_disk_verify(struct cn_cluster_disk *disk);
/* After the host has left. */
void cn_cluster_disk_close(struct cn_cluster_disk *disk);

/* Of a shard that is open: between a front's serve() and its cn_host_shut(). NULL: it is not. */
struct cn_store *cn_cluster_disk_store(struct cn_cluster_disk *disk, uint32_t shard);
struct cn_history *cn_cluster_disk_history(struct cn_cluster_disk *disk, uint32_t shard);

#endif
