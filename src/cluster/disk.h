/* SPDX-License-Identifier: Apache-2.0 */
/* cluster/disk.h - the replicas of this machine (store/replica.h), as the disk of a host.
 *
 * Turns what a host asks (struct cn_host_disk) into calls of the replicas, and what those tell into
 * calls of the host. It adds two things: the gate that lanes ask by way of their store
 * (cn_store_may_leave(), K4) is the host's; and the id of the cluster is kept beside the replicas
 * (shards/CLUSTER), so that an empty or another engine is refused (G4).
 *
 * Threads:   open and close by the maker; the rest as struct cn_host_disk says.
 * Ownership: the caller has the struct, which must not move; open and close what is in it. */
#ifndef CN_CLUSTER_DISK_H
#define CN_CLUSTER_DISK_H
#include <stdatomic.h>
#include <stdint.h>

#include "cluster/host.h"
#include "store/replica.h"
#include "store/sink.h"

struct cn_cluster_disk {
    struct cn_host_disk hands; /* for the host */
    struct cn_replicas *replicas;
    struct cn_disk *files; /* borrowed */
    struct cn_host *_Atomic host;
    uint64_t id, life;                  /* of the disk */
    char cluster[CN_ENGINE_PG_ID_SIZE]; /* "": it belongs to none yet */
    struct cn_cluster_spot {
        struct cn_cluster_disk *disk;
        uint32_t shard;
        struct cn_sink sink;
        struct cn_replica_copy *coming; /* of the shard's worker */
    } spots[CN_REPLICA_SHARDS_MAX];
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
