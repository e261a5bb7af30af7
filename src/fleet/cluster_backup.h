/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/cluster_backup.h - one copy of a whole cluster, made by any of its nodes while it serves.
 *
 *     for each shard     bodies of R2 that are there by now, from whichever disk has them
 *                        its store, from its owner (shard/backup_stream.h), by the link or from this disk
 *                        bodies that the store refers to and that were not there before
 *     then, the engine   secret, namespaces, documents, deployed state, in one statement; the files
 *                        of the versions that the state names
 *     then               checksums of everything, and the manifest (fleet/backup_manifest.h)
 *
 * U1  Of each shard the backup is a state that its store had, whole, of a moment after the backup
 *     began: everything that was acknowledged before is in it, and nothing that was never durable
 *     (Y1). So each object is as it was at one moment; two objects of one shard are of the same,
 *     two of different shards are not.
 * U2  A shard is taken from one owner, as one stream. If that owner is lost, or hands it over, what
 *     came of it is thrown away, and it is taken from the next owner. A shard that cannot be had
 *     for CN_BACKUP_PATIENCE_MS, or not in CN_BACKUP_TRIES, ends the backup with a sentence.
 * U3  A body that a copied index refers to is in the backup, or the shard is taken again: it was
 *     deleted meanwhile, and a later copy does not refer to it. That is looked up in the copy, not
 *     assumed.
 * U4  The engine is asked behind the shards: numbers of namespaces are given out before anything is
 *     stored under them, so what is in a shard has a name in the backup.
 * U5  What ends a backup leaves a folder that says that it is none (I1).
 * U6  Memory: a piece of a stream, and what recovery of one shard takes (to look up U3). One shard
 *     at a time: a node gives to one backup what one reader takes.
 *
 * Not in it: data points of Analytics Engine and what the Cache API has, which are of nodes.
 *
 * Threads:   any that may block for long; one at a time on a node.
 * Ownership: nothing is kept. */
#ifndef CN_FLEET_CLUSTER_BACKUP_H
#define CN_FLEET_CLUSTER_BACKUP_H

struct cn_backup_report;
struct cn_buf;
struct cn_disk;
struct cn_err;

#define CN_BACKUP_PATIENCE_MS 60000
#define CN_BACKUP_TRIES 20

/* For struct cn_control.backup; `cluster` is a struct cn_cluster. Appends the answer as JSON. */
int cn_cluster_backup(void *cluster, struct cn_disk *to, struct cn_backup_report *report,
                      struct cn_buf *json, struct cn_err *err);

#endif
