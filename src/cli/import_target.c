/* SPDX-License-Identifier: Apache-2.0 */
/* cli/import_target.c - what the parts of `cairn import` do to the data directory: ids that are
 * accepted, objects, waiting for the disk. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "cli/import.h"
#include "store/catalog.h"
#include "store/plain.h"
#include "store/store.h"

void cn_import_ids_add(struct cn_import_ids *ids, const struct cn_moved_entry *entry)
{
    if (ids->ids.count == ids->room) {
        ids->room = 2 * ids->room + 16;
        ids->ids.entries = cn_realloc(ids->ids.entries, ids->room * sizeof(*ids->ids.entries));
    }
    ids->ids.entries[ids->ids.count++] = *entry;
}

void cn_import_ids_fini(struct cn_import_ids *ids)
{
    cn_free(ids->ids.entries);
    cn_free(ids->ids.by_name);
}

struct naming {
    struct cn_import_ids *ids;
    const uint8_t *key;
};

/* Names of objects that were made here before keep their ids. */
static int keep_name(void *data, const struct cn_catalog_entry *entry)
{
    struct naming *naming = data;
    struct cn_moved_entry moved;
    if (!entry->name || (naming->key && cn_moved_derived(naming->key, entry->key.id)))
        return 0;
    memcpy(moved.id, entry->key.id, sizeof(moved.id));
    cn_id_name_hash(&naming->ids->keys, entry->name, entry->name_size, moved.name);
    cn_import_ids_add(naming->ids, &moved);
    return 0;
}

int cn_import_ids_begin(struct cn_import *import, struct cn_import_ids *ids, uint32_t namespace_id,
                        const uint8_t *key, struct cn_err *err)
{
    struct cn_catalog *catalog = cn_store_catalog(import->api.dir.store);
    const struct cn_moved_ids *before = cn_moved_find(import->moved, namespace_id);
    struct naming naming = {ids, key};
    uint64_t count = 0, size;
    *ids = (struct cn_import_ids){.ids = {.namespace_id = namespace_id}};
    cn_id_keys_init(&ids->keys, import->secret, namespace_id);
    for (size_t i = 0; before && i < before->count; i++)
        cn_import_ids_add(ids, &before->entries[i]);
    if (before) {
        ids->ids.derived = before->derived;
        memcpy(ids->ids.key, before->key, sizeof(ids->ids.key));
        return 0;
    }
    int rc = cn_catalog_count(catalog, namespace_id, &count, &size, err);
    if (rc == 0 && count > INT32_MAX)
        rc = cn_err_set(err, CN_ELIMIT, "the class has too many objects");
    if (rc == 0 && count)
        rc = cn_catalog_list(catalog, namespace_id, NULL, (int)count, keep_name, &naming, err);
    return rc < 0 ? rc : 0;
}

bool cn_import_is_fatal(struct cn_import *import, int rc)
{
    return rc == CN_EREADONLY || rc == CN_EOVERLOADED || rc == CN_ENOMEM || rc == -ENOSPC ||
           (import->api.dir.store &&
            cn_store_status(import->api.dir.store, &(struct cn_err){0}) < 0);
}

int cn_import_store(struct cn_import *import, const struct cn_object_key *key,
                    const struct cn_plain_file *file, enum cn_import_outcome *outcome,
                    struct cn_err *err)
{
    enum cn_plain_outcome stored = CN_PLAIN_OTHER;
    int rc = cn_plain_store(import->api.dir.store, key, file, &stored, err);
    if (rc == 0)
        *outcome = stored == CN_PLAIN_CAME    ? CN_IMPORT_CAME
                   : stored == CN_PLAIN_THERE ? CN_IMPORT_THERE
                                              : CN_IMPORT_CONFLICT;
    return rc;
}

int cn_import_sync(struct cn_import *import, struct cn_err *err)
{
    struct cn_store_stats stats;
    cn_store_stats(import->api.dir.store, &stats);
    return cn_store_wait(import->api.dir.store, stats.appended_lsn, err);
}
