/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/mem.h"
#include "store/catalog.h"
#include "store/checkpoint.h"
#include "store/image.h"
#include "store/recovery.h"
#include "store/sink.h"
#include "store/sqlite.h"
#include "store/store_private.h"

enum { FORMAT_VERSION = 2 }; /* 1 had no checksums of pages */

static const char format_path[] = "FORMAT";
static const char format_words[] = "cairn data format ";

/* ---- Format and lock ---- */

static int format_write(struct cn_disk *disk, struct cn_err *err)
{
    char text[64];
    int size = snprintf(text, sizeof(text), "%s%d\n", format_words, FORMAT_VERSION);
    int rc = cn_disk_replace(disk, format_path, text, (size_t)size);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write %s", format_path) : 0;
}

/* Refuses a directory of a newer version, or one that is not ours. One of an older version becomes
 * one of this: the number changes first, so that an older program never opens what is half changed.
 */
static int format_check(struct cn_disk *disk, struct cn_err *err)
{
    char text[64] = {0}, again[64];
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk, format_path, CN_DISK_READONLY, &file);
    if (rc == -ENOENT)
        return format_write(disk, err);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open %s", format_path);
    int64_t got = cn_disk_read(file, text, sizeof(text) - 1, 0);
    cn_disk_close(file);
    if (got < 0)
        return cn_err_errno(err, (int)-got, "cannot read %s", format_path);
    int version = 0;
    if (strncmp(text, format_words, strlen(format_words)) == 0)
        (void)sscanf(text + strlen(format_words), "%d", &version);
    snprintf(again, sizeof(again), "%s%d\n", format_words, version);
    if (version < 1 || strcmp(text, again) != 0)
        return cn_err_set(err, CN_ECORRUPT,
                          "%s is not \"%sN\": not a data directory of cairn, or damaged",
                          format_path, format_words);
    if (version > FORMAT_VERSION)
        return cn_err_set(err, CN_EVERSION,
                          "data format %d is newer than the %d that this version reads", version,
                          FORMAT_VERSION);
    return version < FORMAT_VERSION ? format_write(disk, err) : 0;
}

static int lock_take(struct cn_store *store, struct cn_err *err)
{
    int rc = cn_disk_open(store->disk, "LOCK", CN_DISK_CREATE, &store->lock_file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open LOCK");
    rc = cn_disk_lock(store->lock_file);
    if (rc == -EAGAIN || rc == -EWOULDBLOCK)
        return cn_err_set(err, CN_ELOCKED, "the data directory is in use by another process");
    return rc < 0 ? cn_err_errno(err, -rc, "cannot lock LOCK") : 0;
}

/* ---- Opening and closing ---- */

static uint64_t or_default(uint64_t value, uint64_t fallback)
{
    return value ? value : fallback;
}

static void on_wake_keeper(void *data)
{
    cn_keeper_wake(((struct cn_store *)data)->keeper);
}

static int log_start(struct cn_store *store, const struct cn_store_config *config,
                     const struct cn_recovery *recovery, struct cn_err *err)
{
    uint64_t live = or_default(config->log_live_size, CN_STORE_LOG_LIVE_DEFAULT);
    struct cn_log_config log_config = {
        .disk = store->disk,
        .clock = config->clock ? config->clock : cn_clock_system(),
        .sync = config->driven ? CN_LOG_OS : config->sync,
        .sink = config->driven ? NULL : config->sink, /* settling is done from outside */
        .driven = config->driven ? &store->driven.log : NULL,
        .segment_size = or_default(config->segment_size, 16 << 20),
        .pending_max = 64 << 20,
        .live_max = or_default(config->log_live_max, 4 * live),
        .manual = config->manual && !config->driven, /* it is flushed from outside */
        .planted = config->planted,
        .next_lsn = recovery->next_lsn,
        .next_number = recovery->next_number,
        .last_time_ms = recovery->last_time_ms,
    };
    int rc = cn_log_open(&log_config, &store->log, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < recovery->segment_count; i++)
        cn_log_adopt(store->log, &recovery->segments[i]);

    uint64_t dirty_max = or_default(config->dirty_size_max, 64 << 20) / CN_PAGE_SIZE;
    struct cn_images_config images_config = {
        .disk = store->disk,
        .log = store->log,
        .dirty_pages_max = dirty_max,
        .open_files_max = (uint32_t)or_default(config->open_files_max, 512),
        .commit_pages_max = (uint32_t)or_default(config->commit_size_max, 128 << 20) / CN_PAGE_SIZE,
        .manual = config->manual,
        .planted = config->planted,
        .budget = store->driven.budget,
        .wake_keeper = on_wake_keeper,
        .data = store,
    };
    cn_images_init(&store->images, &images_config);
    store->images.names_unsynced = recovery->record_count > 0; /* recovery wrote and did not sync */
    cn_catalog_attach(store->catalog, &store->images);
    struct cn_keeper_config keeper_config = {
        .disk = store->disk,
        .log = store->log,
        .images = &store->images,
        .catalog = store->catalog,
        .history = config->history,
        .live_size = live,
        .dirty_pages_max = dirty_max,
        .redo_lsn = recovery->redo_lsn,
        .trust_os = config->sync == CN_LOG_OS,
        .manual = config->manual,
        .driven = config->driven ? &store->driven : NULL,
    };
    store->keeper = cn_keeper_new(&keeper_config);
    return 0;
}

int cn_store_open(const struct cn_store_config *config, struct cn_store **result,
                  struct cn_err *err)
{
    struct cn_recovery recovery = {0};
    CN_ASSERT(!config->driven || config->driven->chores || config->manual);
    int rc = cn_sqlite_setup(err);
    if (rc < 0)
        return rc;
    cn_vfs_setup();
    struct cn_store *store = CN_NEW(struct cn_store);
    store->disk = config->disk;
    store->sink = config->sink;
    store->is_driven = config->driven != NULL;
    if (store->is_driven)
        store->driven = *config->driven;
    pthread_mutex_init(&store->namespace_lock, NULL);
    rc = config->driven ? 0 : lock_take(store, err);
    if (rc < 0)
        goto close_lock;
    rc = format_check(store->disk, err);
    static const char *const folders[] = {"log", "objects", "aside"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(folders) && rc == 0; i++) {
        rc = cn_disk_mkdirs(store->disk, folders[i]);
        if (rc < 0)
            cn_err_errno(err, -rc, "cannot make the folder %s", folders[i]);
    }
    if (rc < 0)
        goto close_lock;
    rc = cn_catalog_open(store->disk, &store->catalog, err);
    if (rc < 0)
        goto close_lock;
    if (store->is_driven)
        cn_catalog_keep_small(store->catalog);
    struct cn_recovery_config recovery_config = {.settled = config->driven != NULL};
    rc = cn_recovery_run(&recovery_config, store->disk, store->catalog, &recovery, err);
    if (rc < 0)
        goto close_catalog;
    rc = log_start(store, config, &recovery, err);
    if (rc < 0)
        goto free_recovery;
    store->recovered_records = recovery.record_count;
    cn_recovery_fini(&recovery);
    if (config->sync == CN_LOG_OS)
        cn_warn("durability is \"os\": writes survive the end of the process, not a loss of power");
    *result = store;
    return 0;

free_recovery:
    cn_recovery_fini(&recovery);
close_catalog:
    cn_catalog_close(store->catalog);
close_lock:
    if (store->lock_file)
        cn_disk_close(store->lock_file);
    pthread_mutex_destroy(&store->namespace_lock);
    cn_free(store);
    return rc;
}

void cn_store_close(struct cn_store *store)
{
    bool healthy = cn_log_status(store->log, NULL) == 0;
    if (store->is_driven) /* what waits to be settled never will be: nobody waits for it in vain */
        cn_log_refuse(store->log, "the store is being closed");
    cn_keeper_free(store->keeper, healthy && !store->is_driven);
    cn_catalog_attach(store->catalog, NULL);
    cn_images_fini(&store->images);
    cn_log_close(store->log);
    cn_catalog_close(store->catalog);
    if (store->lock_file)
        cn_disk_close(store->lock_file);
    pthread_mutex_destroy(&store->namespace_lock);
    cn_free(store);
}

/* ---- Namespaces ---- */

/* Logs and enters a name. The gate makes both one step for a checkpoint. */
static int namespace_write(struct cn_store *store, uint32_t namespace_id, const char *name,
                           struct cn_err *err)
{
    uint8_t bytes[sizeof(struct cn_namespace_body) + CN_OBJECT_NAME_MAX];
    struct cn_namespace_body body = {namespace_id, (uint32_t)strlen(name)};
    memcpy(bytes, &body, sizeof(body));
    memcpy(bytes + sizeof(body), name, body.name_size);
    uint64_t lsn;
    int64_t time_ms;
    struct cn_log_entry entry = {
        .kind = CN_RECORD_NAMESPACE, .body = bytes, .size = sizeof(body) + body.name_size};
    int rc;
    pthread_rwlock_rdlock(&store->images.commit_gate);
    do {
        entry.boundary = cn_log_boundary(store->log);
        rc = cn_log_append(store->log, &entry, &lsn, &time_ms, err);
    } while (rc == -EAGAIN);
    if (rc == 0)
        rc = cn_catalog_namespace_set(store->catalog, namespace_id, name, body.name_size, lsn, err);
    if (rc == 0) /* unlike an image's, this change could not come again */
        rc = cn_catalog_flush(store->catalog, store->log, err);
    pthread_rwlock_unlock(&store->images.commit_gate);
    return rc;
}

static int namespace_name_check(const char *name, struct cn_err *err)
{
    size_t size = strlen(name);
    if (size == 0 || size > CN_OBJECT_NAME_MAX)
        return cn_err_set(err, CN_EINVALID, "a namespace name of %zu bytes", size);
    return 0;
}

int cn_store_namespace(struct cn_store *store, const char *name, uint32_t *namespace_id,
                       struct cn_err *err)
{
    int rc = namespace_name_check(name, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&store->namespace_lock);
    uint32_t id;
    rc = cn_catalog_namespace_find(store->catalog, name, strlen(name), &id, err);
    if (rc == 0) {
        rc = cn_catalog_namespace_last(store->catalog, &id, err);
        id++;
        if (rc == 0)
            rc = namespace_write(store, id, name, err);
    }
    pthread_mutex_unlock(&store->namespace_lock);
    if (rc < 0)
        return rc;
    *namespace_id = id;
    return 0;
}

int cn_store_namespace_learn(struct cn_store *store, uint32_t namespace_id, const char *name,
                             struct cn_err *err)
{
    char known[CN_OBJECT_NAME_MAX + 1];
    int rc = namespace_name_check(name, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&store->namespace_lock);
    rc = cn_catalog_namespace_name(store->catalog, namespace_id, known, err);
    if (rc == 0 || (rc == 1 && strcmp(known, name) != 0))
        rc = namespace_write(store, namespace_id, name, err);
    pthread_mutex_unlock(&store->namespace_lock);
    return rc < 0 ? rc : 0;
}

int cn_store_namespace_rename(struct cn_store *store, const char *from, const char *to,
                              struct cn_err *err)
{
    int rc = namespace_name_check(to, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&store->namespace_lock);
    uint32_t id, other;
    rc = cn_catalog_namespace_find(store->catalog, to, strlen(to), &other, err);
    if (rc == 1)
        rc = cn_err_set(err, CN_EEXISTS, "the namespace %s exists already", to);
    if (rc == 0) {
        rc = cn_catalog_namespace_find(store->catalog, from, strlen(from), &id, err);
        if (rc == 0)
            rc = cn_err_set(err, CN_ENOTFOUND, "there is no namespace %s", from);
    }
    if (rc == 1)
        rc = namespace_write(store, id, to, err);
    pthread_mutex_unlock(&store->namespace_lock);
    return rc;
}

int cn_store_namespace_name(struct cn_store *store, uint32_t namespace_id,
                            char name[CN_OBJECT_NAME_MAX + 1], struct cn_err *err)
{
    int rc = cn_catalog_namespace_name(store->catalog, namespace_id, name, err);
    if (rc == 0)
        return cn_err_set(err, CN_ENOTFOUND, "there is no namespace %u", namespace_id);
    return rc < 0 ? rc : 0;
}

/* ---- Durability ---- */

uint64_t cn_store_durable(const struct cn_store *store)
{
    return cn_log_durable(store->log);
}

bool cn_store_may_leave(const struct cn_store *store, uint64_t lsn)
{
    const struct cn_sink *sink = store->sink;
    if (lsn > cn_log_durable(store->log))
        return false;
    return !sink || !sink->may_leave || sink->may_leave(sink->data); /* K4 */
}

bool cn_store_verifies(const struct cn_store *store)
{
    return store->sink && store->sink->ticket;
}

uint64_t cn_store_ticket(const struct cn_store *store)
{
    return cn_store_verifies(store) ? store->sink->ticket(store->sink->data) : 0;
}

bool cn_store_confirmed(const struct cn_store *store, uint64_t ticket)
{
    return !cn_store_verifies(store) || store->sink->confirmed(store->sink->data, ticket);
}

void cn_store_wake(struct cn_store *store)
{
    cn_log_wake(store->log);
}

int cn_store_lost(struct cn_store *store, struct cn_err *err)
{
    struct cn_err reason;
    if (!cn_log_failed(store->log, &reason))
        return 0;
    return cn_err_set(err, CN_EREADONLY, "it is not known whether this was written: %s",
                      reason.text);
}

int cn_store_wait(struct cn_store *store, uint64_t lsn, struct cn_err *err)
{
    return cn_log_wait(store->log, lsn, NULL) < 0 ? cn_store_lost(store, err) : 0;
}

enum cn_log_pressure cn_store_pressure(const struct cn_store *store)
{
    enum cn_log_pressure log = cn_log_pressure(store->log);
    enum cn_log_pressure pages = cn_images_pressure(&store->images);
    return log > pages ? log : pages;
}

int cn_store_status(struct cn_store *store, struct cn_err *err)
{
    if (atomic_load_explicit(&store->images.no_space, memory_order_relaxed))
        return cn_err_set(err, CN_EREADONLY,
                          "writes are refused: no space to write database files");
    return cn_log_status(store->log, err);
}

void cn_store_listen(struct cn_store *store, struct cn_log_listener *listener)
{
    cn_log_listen(store->log, listener);
}

void cn_store_unlisten(struct cn_store *store, struct cn_log_listener *listener)
{
    cn_log_unlisten(store->log, listener);
}

/* ---- Whole databases ---- */

int cn_store_delete(struct cn_store *store, const struct cn_object_key *key, uint64_t *lsn,
                    struct cn_err *err)
{
    struct cn_image *image;
    int rc = cn_image_open(&store->images, store->catalog, key, true, &image, err);
    if (rc == CN_ENOTFOUND) {
        *lsn = 0;
        return 0;
    }
    if (rc < 0)
        return rc;
    struct cn_pagemap none = {0};
    struct cn_image_change change = {
        .pages = &none,
        .flags = CN_COMMIT_RESET | CN_COMMIT_DELETED,
    };
    rc = cn_image_commit(image, &change, lsn, err);
    cn_image_close(image);
    return rc;
}

/* What of it is new. Its name is to be freed. */
static struct cn_image_meta meta_of(struct cn_image *image, const struct cn_replace_meta *with)
{
    const struct cn_image_meta *present = cn_image_meta(image);
    struct cn_image_meta meta = {0};
    if (with && with->has_alarm && with->alarm_ms != present->alarm_ms) {
        meta.has_alarm = true;
        meta.alarm_ms = with->alarm_ms;
    }
    if (with && with->name && !present->name) {
        meta.has_name = true;
        meta.name = cn_strndup(with->name, with->name_size);
        meta.name_size = with->name_size;
    }
    return meta;
}

/* Commits them as one restore; the pages are gone. */
static int commit_pages(struct cn_image *image, struct cn_pagemap *pages, uint32_t pages_after,
                        const struct cn_replace_meta *with, int rc, uint64_t *lsn,
                        struct cn_err *err)
{
    struct cn_image_meta meta = meta_of(image, with);
    struct cn_image_change change = {
        .pages = pages,
        .pages_after = pages_after,
        .flags = CN_COMMIT_RESTORE,
        .meta = &meta,
    };
    if (rc == 0)
        rc = cn_image_commit(image, &change, lsn, err);
    uint32_t cursor = 0;
    for (struct cn_page *left; (left = cn_pagemap_next(pages, &cursor));)
        cn_image_page_free(left->bytes); /* only after a failure */
    cn_pagemap_clear(pages);
    cn_free(meta.name);
    return rc;
}

static void add_page(struct cn_pagemap *pages, uint32_t no, const uint8_t page[CN_PAGE_SIZE])
{
    struct cn_page *entry = cn_pagemap_add(pages, no);
    entry->bytes = cn_image_page_new();
    memcpy(entry->bytes, page, CN_PAGE_SIZE);
}

int cn_store_replace(struct cn_store *store, const struct cn_object_key *key, uint32_t page_count,
                     const struct cn_page_source *source, const struct cn_replace_meta *with,
                     uint64_t *lsn, struct cn_err *err)
{
    struct cn_image *image;
    int rc = cn_image_open(&store->images, store->catalog, key, false, &image, err);
    if (rc < 0)
        return rc;
    struct cn_pagemap pages = {0};
    uint8_t page[CN_PAGE_SIZE], present[CN_PAGE_SIZE];
    for (uint32_t no = 1; no <= page_count && rc == 0; no++) {
        rc = source->read(source->data, no, page, err);
        /* Only what differs: the rest would cost memory until the commit drops it. */
        if (rc == 0)
            rc = cn_image_read(image, no, 0, CN_PAGE_SIZE, present, err);
        if (rc == 0 && (no > cn_image_page_count(image) || memcmp(page, present, CN_PAGE_SIZE)))
            add_page(&pages, no, page);
    }
    rc = commit_pages(image, &pages, page_count, with, rc, lsn, err);
    cn_image_close(image);
    return rc;
}

int cn_store_extend(struct cn_store *store, const struct cn_object_key *key, const uint8_t *bytes,
                    uint32_t page_count, const struct cn_replace_meta *with, uint64_t *lsn,
                    struct cn_err *err)
{
    struct cn_image *image;
    int rc = cn_image_open(&store->images, store->catalog, key, false, &image, err);
    if (rc < 0)
        return rc;
    struct cn_pagemap pages = {0};
    uint32_t before = cn_image_page_count(image);
    for (uint32_t i = 0; i < page_count; i++)
        add_page(&pages, before + 1 + i, bytes + (size_t)i * CN_PAGE_SIZE);
    rc = commit_pages(image, &pages, before + page_count, with, 0, lsn, err);
    cn_image_close(image);
    return rc;
}

int cn_store_heal(struct cn_store *store, const struct cn_object_key *key,
                  const struct cn_page_source *source, uint32_t *healed, struct cn_err *err)
{
    return cn_images_heal(&store->images, store->catalog, key, source, healed, err);
}

int cn_store_snapshot(struct cn_store *store, const struct cn_object_key *key,
                      int (*each)(void *data, uint32_t page_no, const uint8_t *page), void *data,
                      uint32_t *page_count, uint64_t *lsn, struct cn_err *err)
{
    struct cn_image_snapshot snapshot = {.each = each, .data = data};
    int rc = cn_image_snapshot(&store->images, store->catalog, key, &snapshot, err);
    *page_count = snapshot.page_count;
    *lsn = snapshot.lsn;
    return rc;
}

/* ---- The rest ---- */

int cn_store_checkpoint(struct cn_store *store, struct cn_err *err)
{
    return cn_keeper_checkpoint(store->keeper, err);
}

struct cn_catalog *cn_store_catalog(struct cn_store *store)
{
    return store->catalog;
}

struct cn_log *cn_store_log(struct cn_store *store)
{
    return store->log;
}

uint64_t cn_store_redo_lsn(struct cn_store *store)
{
    return cn_keeper_redo_lsn(store->keeper);
}

void cn_store_stats(struct cn_store *store, struct cn_store_stats *stats)
{
    *stats = (struct cn_store_stats){
        .appended_lsn = cn_log_appended(store->log),
        .durable_lsn = cn_log_durable(store->log),
        .redo_lsn = cn_keeper_redo_lsn(store->keeper),
        .log_live_bytes = cn_log_live_size(store->log),
        .dirty_pages = atomic_load(&store->images.dirty_pages),
        .checkpoint_count = cn_keeper_count(store->keeper),
        .recovered_records = store->recovered_records,
    };
    cn_log_counters(store->log, &stats->log_bytes, &stats->flush_count);
    pthread_mutex_lock(&store->images.lock);
    stats->open_databases = store->images.open_count;
    stats->image_count = store->images.table.count;
    stats->open_files = store->images.open_files;
    pthread_mutex_unlock(&store->images.lock);
}

uint64_t cn_store_memory(struct cn_store *store)
{
    return cn_log_pending(store->log) +
           (uint64_t)atomic_load(&store->images.dirty_pages) * CN_PAGE_SIZE;
}
