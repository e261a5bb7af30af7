/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/backup_shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/overlay.h"
#include "base/subdisk.h"
#include "service/def.h"
#include "service/service.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/store.h"

enum { BATCH = 128 };

void cn_backup_shard_path(uint32_t shard, char path[CN_BACKUP_SHARD_PATH_SIZE])
{
    snprintf(path, CN_BACKUP_SHARD_PATH_SIZE, "shards/%04" PRIu32, shard % 10000);
}

int cn_backup_shard_open(struct cn_backup_shard *own, struct cn_disk *disk, uint32_t shard,
                         uint64_t lsn, struct cn_err *err)
{
    char path[CN_BACKUP_SHARD_PATH_SIZE];
    cn_backup_shard_path(shard, path);
    *own = (struct cn_backup_shard){.folder = cn_disk_sub_new(disk, path)};
    own->overlay = cn_disk_overlay_new(own->folder);
    int rc = 0;
    if (!cn_disk_has(own->folder, "FORMAT") || !cn_disk_has(own->folder, "REPLICA"))
        rc = cn_err_set(err, CN_ECORRUPT, "the store is missing");
    struct cn_store_config config = {.disk = own->overlay, .manual = true};
    if (rc == 0)
        rc = cn_store_open(&config, &own->store, err);
    if (rc == 0 && cn_store_durable(own->store) != lsn)
        rc = cn_err_set(err, CN_ECORRUPT, "it ends with commit %" PRIu64 ", not %" PRIu64,
                        cn_store_durable(own->store), lsn);
    if (rc < 0) {
        cn_err_context(err, "shard %" PRIu32, shard);
        cn_backup_shard_close(own);
    }
    return rc;
}

void cn_backup_shard_close(struct cn_backup_shard *own)
{
    if (own->store)
        cn_store_close(own->store);
    cn_disk_overlay_free(own->overlay);
    cn_disk_sub_free(own->folder);
    *own = (struct cn_backup_shard){0};
}

/* --- objects ---------------------------------------------------------------------------------- */

struct batch {
    struct cn_catalog_entry entries[BATCH];
    char *names[BATCH]; /* owned; NULL: none */
    int count;
};

static int collect(void *data, const struct cn_catalog_entry *entry)
{
    struct batch *batch = data;
    batch->names[batch->count] = entry->name ? cn_strndup(entry->name, entry->name_size) : NULL;
    batch->entries[batch->count] = *entry;
    batch->entries[batch->count].name = batch->names[batch->count];
    batch->count++;
    return 0;
}

static int each_of_namespace(struct cn_backup_shard *own, uint32_t namespace_id,
                             int (*each)(void *data, const struct cn_catalog_entry *entry,
                                         const char *namespace_name, struct cn_err *err),
                             void *data, struct cn_err *err)
{
    char name[CN_OBJECT_NAME_MAX + 1];
    struct cn_catalog *catalog = cn_store_catalog(own->store);
    struct batch *batch = CN_NEW(struct batch);
    uint8_t after[CN_OBJECT_ID_SIZE];
    bool first = true;
    if (cn_catalog_namespace_name(catalog, namespace_id, name, NULL) <= 0)
        snprintf(name, sizeof(name), "~%" PRIu32, namespace_id);
    int rc = 0;
    do {
        batch->count = 0;
        rc = cn_catalog_list(catalog, namespace_id, first ? NULL : after, BATCH, collect, batch,
                             err);
        rc = rc < 0 ? rc : 0;
        for (int i = 0; i < batch->count; i++) {
            if (rc == 0)
                rc = each(data, &batch->entries[i], name, err);
            cn_free(batch->names[i]);
        }
        if (batch->count > 0)
            memcpy(after, batch->entries[batch->count - 1].key.id, sizeof(after));
        first = false;
    } while (rc == 0 && batch->count == BATCH);
    cn_free(batch);
    return rc;
}

int cn_backup_shard_objects(struct cn_backup_shard *own,
                            int (*each)(void *data, const struct cn_catalog_entry *entry,
                                        const char *namespace_name, struct cn_err *err),
                            void *data, struct cn_err *err)
{
    uint32_t last;
    int rc = cn_catalog_namespace_last(cn_store_catalog(own->store), &last, err);
    for (uint32_t i = 1; rc == 0 && i <= last; i++)
        rc = each_of_namespace(own, i, each, data, err);
    return rc;
}

struct bodies {
    struct cn_backup_shard *own;
    int (*each)(void *data, const struct cn_blob_id *id);
    void *data;
};

static int bodies_of(void *data, const struct cn_catalog_entry *entry, const char *namespace_name,
                     struct cn_err *err)
{
    struct bodies *bodies = data;
    struct cn_database_options options = {.must_exist = true};
    const struct cn_service_def *def = cn_service_of(namespace_name);
    struct cn_database *db;
    if (!def || !def->blobs_named || !entry->size)
        return 0;
    int rc = cn_database_open(bodies->own->store, &entry->key, &options, &db, err);
    if (rc < 0)
        return rc;
    rc = def->blobs_named(db, bodies->each, bodies->data, err);
    cn_database_close(db);
    return rc;
}

int cn_backup_shard_bodies(struct cn_backup_shard *own,
                           int (*each)(void *data, const struct cn_blob_id *id), void *data,
                           struct cn_err *err)
{
    struct bodies bodies = {own, each, data};
    return cn_backup_shard_objects(own, bodies_of, &bodies, err);
}
