/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/backup_shard.h - the store of a shard in a backup, opened to be looked at.
 *
 * What opening it would write (recovery) stays in memory: the backup does not change.
 *
 * Threads:   the caller's.
 * Ownership: the struct owns what it points to. */
#ifndef CN_FLEET_BACKUP_SHARD_H
#define CN_FLEET_BACKUP_SHARD_H
#include <stdbool.h>
#include <stdint.h>

#include "store/record.h"

struct cn_blob_id;
struct cn_catalog_entry;
struct cn_disk;
struct cn_err;
struct cn_store;

struct cn_backup_shard {
    struct cn_disk *folder, *overlay;
    struct cn_store *store;
};

#define CN_BACKUP_SHARD_PATH_SIZE 16
void cn_backup_shard_path(uint32_t shard, char path[CN_BACKUP_SHARD_PATH_SIZE]);

/* `disk` is that of the backup, borrowed. CN_ECORRUPT: it does not end with the commit `lsn`. */
int cn_backup_shard_open(struct cn_backup_shard *own, struct cn_disk *disk, uint32_t shard,
                         uint64_t lsn, struct cn_err *err);
void cn_backup_shard_close(struct cn_backup_shard *own);

/* Calls back for every object; the entry's name is terminated, and is the callee's to read during
 * the call, which may use the store. A negative return ends it and is returned. */
int cn_backup_shard_objects(struct cn_backup_shard *own,
                            int (*each)(void *data, const struct cn_catalog_entry *entry,
                                        const char *namespace_name, struct cn_err *err),
                            void *data, struct cn_err *err);
/* The bodies that objects of services (indexes of R2) refer to. */
int cn_backup_shard_bodies(struct cn_backup_shard *own,
                           int (*each)(void *data, const struct cn_blob_id *id), void *data,
                           struct cn_err *err);

#endif
