/* SPDX-License-Identifier: Apache-2.0 */
/* cli/import_objects.c - Durable Objects of the local simulator: do/WORKER-CLASS/ID.sqlite. */
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "cli/import.h"
#include "import/v8value.h"
#include "object/shard.h"
#include "project/project.h"
#include "store/catalog.h"
#include "store/plain.h"
#include "store/store.h"

#define SYNC_EVERY 64 /* objects between two waits for the disk */

/* A class, and the folder of its objects. */
struct folder {
    struct cn_import *import;
    const struct cn_class_entry *class_;
    char *path;  /* owned */
    char *label; /* owned: "worker/Class" */
    uint8_t key[CN_MOVED_KEY_SIZE];
    struct cn_import_ids own;
    struct cn_plain *metadata; /* `path`/metadata.sqlite, if it could be read */
};

static int convert(void *data, const void *bytes, size_t size, struct cn_buf *out,
                   struct cn_err *err)
{
    (void)data;
    return cn_v8value_convert(bytes, size, out, err);
}

/* --- ids ------------------------------------------------------------------------------------- */

/* V3 of object/moved.h: before the objects. */
static int accept_ids(struct folder *folder, struct cn_err *err)
{
    struct cn_import *import = folder->import;
    struct cn_moved_ids *ids = &folder->own.ids;
    char *name = cn_sprintf("%s-%s", folder->class_->script, folder->class_->name);
    cn_moved_key(name, strlen(name), folder->key);
    cn_free(name);
    int rc =
        cn_import_ids_begin(import, &folder->own, (uint32_t)folder->class_->ns, folder->key, err);
    if (rc < 0)
        return rc;
    if (ids->derived && memcmp(ids->key, folder->key, sizeof(ids->key)) != 0)
        return cn_err_set(err, CN_EEXISTS,
                          "%s has objects that were imported under another name of the class",
                          folder->label);
    ids->derived = true;
    memcpy(ids->key, folder->key, sizeof(ids->key));
    return import->verify ? 0 : cn_moved_keep(cn_offline_disk(&import->api.dir), ids, err);
}

/* --- one object ------------------------------------------------------------------------------ */

struct found {
    struct cn_replace_meta meta;
    char name[CN_OBJECT_NAME_MAX + 1];
    bool has_name, has_alarm_row;
};

static int take_alarm(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    (void)err;
    struct found *found = data;
    found->has_alarm_row = true;
    found->meta.has_alarm = !cn_plain_null(row, 0);
    found->meta.alarm_ms = cn_plain_int(row, 0) / 1000000;
    return 0;
}

static int take_name(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    (void)err;
    struct found *found = data;
    size_t size;
    const char *name = cn_plain_text(row, 0, &size);
    found->has_name = size > 0 && size <= CN_OBJECT_NAME_MAX && !memchr(name, 0, size);
    if (found->has_name)
        memcpy(found->name, name, size + 1);
    return 0;
}

/* What the tables of workerd and miniflare say of it. */
static int read_about(struct folder *folder, struct cn_plain *plain, const char *id,
                      const uint8_t bytes[CN_OBJECT_ID_SIZE], struct found *found,
                      struct cn_err *err)
{
    uint8_t named[CN_OBJECT_ID_SIZE];
    int rc = cn_plain_has(plain, "_cf_METADATA", err);
    if (rc > 0)
        rc = cn_plain_query(plain, "SELECT value FROM _cf_METADATA WHERE key = 1", NULL, take_alarm,
                            found, err);
    if (rc == 0 && !found->has_alarm_row && folder->metadata)
        rc = cn_plain_query(folder->metadata,
                            "SELECT scheduled_time FROM _cf_ALARM WHERE actor_id = ?1", id,
                            take_alarm, found, err);
    if (rc == 0)
        rc = cn_plain_has(plain, "__miniflare_do_name", err);
    if (rc > 0)
        rc = cn_plain_query(plain, "SELECT name FROM __miniflare_do_name WHERE id = 1", NULL,
                            take_name, found, err);
    if (rc < 0 || !found->has_name)
        return rc;
    cn_moved_from_name(folder->key, found->name, strlen(found->name), named);
    if (memcmp(named, bytes, sizeof(named)) == 0) {
        found->meta.name = found->name;
        found->meta.name_size = (uint16_t)strlen(found->name);
    }
    return 0;
}

/* Its name leads to an object that was here before. */
static bool is_name_taken(const struct folder *folder, const struct found *found,
                          const uint8_t id[CN_OBJECT_ID_SIZE])
{
    const char *name = found->meta.name;
    uint8_t hash[CN_SIPHASH_SIZE], leads_to[CN_OBJECT_ID_SIZE];
    if (!name || folder->import->verify)
        return false;
    cn_id_name_hash(&folder->own.keys, name, found->meta.name_size, hash);
    return cn_moved_named(&folder->own.ids, hash, name, found->meta.name_size, leads_to) &&
           memcmp(leads_to, id, sizeof(leads_to)) != 0;
}

static int store_object(struct folder *folder, struct cn_plain *plain, const char *id,
                        const struct cn_object_key *key, enum cn_import_outcome *outcome,
                        struct cn_err *err)
{
    struct cn_import *import = folder->import;
    struct found *found = CN_NEW(struct found);
    uint32_t page_count = 0;
    found->meta.alarm_ms = CN_ALARM_NONE;
    int rc = read_about(folder, plain, id, key->id, found, err);
    if (rc == 0 && is_name_taken(folder, found, key->id))
        rc = cn_err_set(err, CN_EEXISTS, "the name \"%.100s\" is that of another object here",
                        found->name);
    if (rc == 0)
        rc = cn_plain_rewrite(plain, convert, NULL, err);
    if (rc == 0)
        rc = cn_plain_settle(plain, &page_count, err);
    if (rc == 0 && page_count == 0 && !found->meta.has_alarm) {
        *outcome = CN_IMPORT_LEFT;
    } else if (rc == 0) {
        struct cn_plain_file file = {import->scratch, page_count, &found->meta, import->verify};
        rc = cn_import_store(import, key, &file, outcome, err);
    }
    cn_free(found);
    return rc;
}

static int import_object(struct folder *folder, const char *id, struct cn_err *err)
{
    struct cn_import *import = folder->import;
    struct cn_object_key key = {.namespace_id = folder->own.ids.namespace_id};
    enum cn_import_outcome outcome = CN_IMPORT_FAILED;
    struct cn_err why = {0};
    struct cn_plain *plain = NULL;
    char *what = cn_sprintf("%s %s", folder->label, id);
    char *path = cn_sprintf("%s/%s.sqlite", folder->path, id);
    int rc = 0;
    if (!cn_id_from_hex(id, strlen(id), key.id))
        rc = cn_err_set(&why, CN_EINVALID, "its file is not named by an id");
    else if (!cn_moved_derived(folder->key, key.id))
        rc = cn_err_set(&why, CN_EINVALID, "the id is none of this class");
    if (rc == 0)
        rc = cn_import_open(import, path, &plain, &why);
    if (rc == 0)
        rc = store_object(folder, plain, id, &key, &outcome, &why);
    cn_plain_close(plain);
    if (rc == CN_EEXISTS)
        outcome = CN_IMPORT_CONFLICT;
    bool fatal = rc < 0 && cn_import_is_fatal(import, rc);
    if (fatal)
        *err = why;
    else
        cn_import_tell(import, CN_IMPORT_OBJECTS, outcome, what,
                       outcome == CN_IMPORT_LEFT ? "it has nothing"
                       : rc < 0                  ? why.text
                                                 : NULL);
    cn_free(what);
    cn_free(path);
    return fatal ? rc : 0;
}

/* --- a class --------------------------------------------------------------------------------- */

/* Alarms of versions that kept them outside the objects. */
static void open_metadata(struct folder *folder)
{
    struct cn_import *import = folder->import;
    struct cn_err err;
    char *path = cn_sprintf("%s/metadata.sqlite", folder->path);
    char *scratch = import->scratch;
    import->scratch = cn_sprintf("%s.alarms", scratch);
    if (access(path, F_OK) == 0 && cn_import_open(import, path, &folder->metadata, &err) < 0)
        cn_import_tell(import, CN_IMPORT_OBJECTS, CN_IMPORT_FAILED, path, err.text);
    if (folder->metadata && cn_plain_has(folder->metadata, "_cf_ALARM", &err) != 1) {
        cn_plain_close(folder->metadata);
        folder->metadata = NULL;
    }
    cn_free(import->scratch);
    import->scratch = scratch;
    cn_free(path);
}

static int import_files(struct folder *folder, const struct cn_strings_owned *files,
                        struct cn_err *err)
{
    int rc = 0;
    for (size_t i = 0, count = 0; i < files->count && rc == 0; i++) {
        char *name = files->items[i];
        char *end = strstr(name, ".sqlite");
        if (!end || strcmp(end, ".sqlite") != 0 || strcmp(name, "metadata.sqlite") == 0)
            continue;
        *end = 0;
        rc = import_object(folder, name, err);
        if (rc == 0 && ++count % SYNC_EVERY == 0)
            rc = cn_import_sync(folder->import, err);
    }
    return rc == 0 ? cn_import_sync(folder->import, err) : rc; /* J4 */ /* J4 */
}

static int import_class(struct cn_import *import, const struct cn_class_entry *class_,
                        struct cn_err *err)
{
    struct folder folder = {.import = import, .class_ = class_};
    struct cn_strings_owned files = {0};
    char *below = cn_sprintf("do/%s-%s", class_->script, class_->name);
    folder.path = cn_sprintf("%s/%s", import->source, below);
    folder.label = cn_sprintf("%s/%s", class_->script, class_->name);
    int rc = cn_import_list(import, below, &files, err);
    if (rc == 0 && files.count) {
        rc = accept_ids(&folder, err);
        if (rc == 0) {
            open_metadata(&folder);
            rc = import_files(&folder, &files, err);
            cn_plain_close(folder.metadata);
        }
    }
    cn_import_list_free(&files);
    cn_import_ids_fini(&folder.own);
    cn_free(folder.path);
    cn_free(folder.label);
    cn_free(below);
    return rc;
}

static bool is_class_folder(const struct cn_import *import, const char *name)
{
    for (size_t i = 0; i < import->classes.entry_count; i++) {
        const struct cn_class_entry *entry = &import->classes.entries[i];
        size_t size = strlen(entry->script);
        if (!entry->deleted_ms && strncmp(name, entry->script, size) == 0 && name[size] == '-' &&
            strcmp(name + size + 1, entry->name) == 0)
            return true;
    }
    return false;
}

int cn_import_objects(struct cn_import *import, struct cn_err *err)
{
    struct cn_strings_owned folders = {0};
    int rc = cn_import_list(import, "do", &folders, err);
    for (size_t i = 0; i < folders.count && rc == 0; i++) {
        if (!is_class_folder(import, folders.items[i]))
            cn_import_tell(import, CN_IMPORT_OBJECTS, CN_IMPORT_FAILED, folders.items[i],
                           "no worker that is deployed here has this class");
    }
    for (size_t i = 0; i < import->classes.entry_count && rc == 0; i++) {
        const struct cn_class_entry *entry = &import->classes.entries[i];
        if (!entry->deleted_ms && entry->ns > 0)
            rc = import_class(import, entry, err);
    }
    cn_import_list_free(&folders);
    return rc;
}
