/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/backup_manifest.h - what says that a folder is a backup of a cluster, and what is in it.
 *
 *     BACKUP.json    which cluster, when, from which node; the shards with their last commits
 *                    (LSN), epochs and owners; how many files there are, and the SHA-256 of FILES
 *     FILES          a line for every other file: SHA-256, size, path, by spaces
 *     cluster.json   the secret, namespaces, documents and deployed state, as the engine had them
 *     shards/NNNN/   the store of a shard, as a crash would have left it (store/backup.h)
 *     blobs/         bodies of R2, by shard (store/blob.h)
 *     deployed/      versions: their own files, and their code (fleet/version_files.h)
 *
 * I1  BACKUP.json is there from the first moment on, and says "unfinished" until everything else is
 *     synced; it is then replaced by the whole one. So what was interrupted is never taken for a
 *     backup, and no folder of a backup is taken for a data directory (server/data.c): a node that
 *     was started on one would throw its shards away.
 * I2  A file counts if FILES has it and its size and checksum match; FILES if BACKUP.json has its
 *     checksum. Each is compared when it is read for a restore, not only by `cairn check`.
 * I3  Manifests are input: a path is one that a backup has (below one of the folders above, no ".."
 *     and no way out), numbers are in their bounds, and every shard is there exactly once; else
 *     nothing of it is used.
 * I4  FILES has every file once, in the order of their paths by segments, and cluster.json among
 *     them: what a restore reads of it is compared (I2). Their number and bytes are those of
 *     BACKUP.json.
 *
 * Threads:   the caller's.
 * Ownership: the struct owns nothing. */
#ifndef CN_FLEET_BACKUP_MANIFEST_H
#define CN_FLEET_BACKUP_MANIFEST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "membership/engine.h"
#include "membership/engine_pg.h"

struct cn_disk;
struct cn_err;

#define CN_MANIFEST_FILE "BACKUP.json"
#define CN_MANIFEST_FILES "FILES"
#define CN_MANIFEST_CLUSTER "cluster.json"
#define CN_MANIFEST_VERSION 1
#define CN_MANIFEST_SUM_SIZE 65 /* hexadecimal, and its NUL */
/* What is promised of it, in a sentence. */
#define CN_MANIFEST_CONSISTENCY \
    "each object is as it was at one moment; the moments of two objects may differ"

struct cn_manifest_shard {
    uint64_t lsn, epoch;
    char node[CN_ENGINE_PG_NODE_MAX + 1]; /* its owner */
};

struct cn_manifest {
    char cluster[CN_ENGINE_PG_ID_SIZE];
    char node[CN_ENGINE_PG_NODE_MAX + 1]; /* that was asked */
    int64_t began_ms, ended_ms;
    unsigned shard_count, replicas;
    struct cn_manifest_shard shards[CN_CLUSTER_SHARDS_MAX];
    uint64_t file_count, bytes; /* of FILES */
    char files_sum[CN_MANIFEST_SUM_SIZE];
};

/* I1: the folder becomes one that is not finished. */
int cn_manifest_begin(struct cn_disk *disk, struct cn_err *err);
/* Reads every file, writes FILES and syncs everything; counts and sum go to the manifest. `ask`
 * (may be NULL) is asked between pieces: true gives up with CN_EABORTED. */
int cn_manifest_list(struct cn_disk *disk, struct cn_manifest *manifest, bool (*cancelled)(void *),
                     void *data, struct cn_err *err);
/* I1: it is finished. */
int cn_manifest_write(struct cn_disk *disk, const struct cn_manifest *manifest, struct cn_err *err);

/* Whether there is one, finished or not. */
bool cn_manifest_is_there(struct cn_disk *disk);
/* CN_ENOTFOUND: there is none; CN_EINVALID: it is not finished, or I3; CN_EVERSION. */
int cn_manifest_read(struct cn_disk *disk, struct cn_manifest *manifest, struct cn_err *err);
int cn_manifest_parse(const char *text, size_t size, struct cn_manifest *manifest,
                      struct cn_err *err);

struct cn_manifest_entry {
    char sum[CN_MANIFEST_SUM_SIZE];
    uint64_t size;
    const char *path; /* borrowed */
};
/* A line of FILES, which is changed. False: I3. */
bool cn_manifest_entry_parse(char *line, const struct cn_manifest *manifest,
                             struct cn_manifest_entry *entry);
/* I2: compares FILES as a whole, then calls back for each line. A negative return ends it. I4 is
 * known when it has returned 0. */
int cn_manifest_each(struct cn_disk *disk, const struct cn_manifest *manifest,
                     int (*each)(void *data, const struct cn_manifest_entry *entry), void *data,
                     struct cn_err *err);
/* I2: compares a file. With `to`, copies it there under `path` (NULL: its own), making folders;
 * what is copied is synced later. CN_ECORRUPT, CN_ENOTFOUND, or the disk's error. */
int cn_manifest_take(struct cn_disk *disk, const struct cn_manifest_entry *entry,
                     struct cn_disk *to, const char *path, struct cn_err *err);

/* Reads every file and compares it (I2). CN_ECORRUPT, CN_ENOTFOUND, or the disk's error. */
int cn_manifest_compare(struct cn_disk *disk, const struct cn_manifest *manifest,
                        struct cn_err *err);

#endif
