/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/cluster_restore.h - a backup of a cluster becomes a single server, or another cluster.
 *
 *     to a server    a data directory: every object of every shard is written into one store, with
 *                    its name and its alarm; bodies of R2, classes, tokens and what was deployed
 *                    beside it. The past does not come along: LSNs are a store's own.
 *     to a cluster   the data directory of its first node, with a replica of every shard, history
 *                    and all; then, in one transaction, the engine of a cluster that was never used
 *                    learns secret, namespaces, documents, deployments, and that this disk has them
 *                    (D13 of engine_pg_depot.c). The node that is started on the directory claims
 *                    its shards; others are started empty, and get replicas.
 *
 * V1  Only what the manifest lists is used, and all of it: a file that is missing or does not match
 *     ends the restore.
 * V2  The directory is new or empty. Until all of it is there and synced it has the file RESTORING,
 *     and nobody opens it; what a restore that failed has left is to be removed.
 * V3  A cluster that any node was ever part of, or that has any state, is refused, and nothing of
 *     it changes. So is one with another number of shards.
 *
 * Threads:   the caller's, which it blocks.
 * Ownership: nothing is kept. */
#ifndef CN_FLEET_CLUSTER_RESTORE_H
#define CN_FLEET_CLUSTER_RESTORE_H
#include <stdbool.h>
#include <stdint.h>

struct cn_check_report;
struct cn_disk;
struct cn_err;

struct cn_restore {
    const char *from, *to; /* folders */
    const char *url;       /* of the engine; NULL: to a single server */
    unsigned replicas;     /* of the cluster; 0: as many as it had */
    bool allow_async;      /* V3 of an engine that may lose data, as cairn serve has it */
    /* What was done. */
    uint64_t object_count, body_count, bytes;
    unsigned shard_count;
};

/* A file that is there while a directory is being restored: nobody opens it. */
#define CN_CLUSTER_RESTORING "RESTORING"

int cn_restore(struct cn_restore *restore, struct cn_err *err);

/* Of a backup: every file against the manifest, every store as store/check.h does it, and whether
 * the bodies that it refers to are there. As cn_check(). */
int cn_restore_check(struct cn_disk *disk, struct cn_check_report *report, struct cn_err *err);

#endif
