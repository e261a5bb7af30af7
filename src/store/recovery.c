/* SPDX-License-Identifier: Apache-2.0 */
/* store/recovery.c - redo after a crash, or after a clean stop with nothing to redo.
 *
 * The records from redo_lsn on are read once, in order. Pages are kept in memory
 * (a page begins with its image, R7, and takes the differences that follow), up
 * to PAGES_MAX; then all are written to their files and read back if they
 * change again. A file's own content is never the base of a difference unless
 * this recovery wrote it, so pages torn by the crash do no harm.
 *
 *   V1  Segments are contiguous: numbers and LSNs without a gap.
 *   V2  Only the last segment may end early, and only with a torn tail (R3).
 *   V3  The tail is cut and the cut synced before new records get its LSNs.
 *   V4  The log reaches what log/checkpoint says was durable.
 *   V5  A reset whose file aside/<lsn>... exists has been done: what the object's
 *       file holds now is newer than the reset and rebuilt from the records behind
 *       it. Otherwise it is done now, as write-back would have (image.c, I4).
 *   V6  A log whose records are all settled elsewhere is not synced behind the redo point, and may
 *       have lost anything there: it ends where V1 or R1 first do not hold, and what lies
 *       behind that is removed. It comes again from where it is settled. What it has from before
 *       the redo point, which may be nothing, reaches up to there (V4; store/replica.h, P2 to P4).
 *
 * Files may hold what is newer than the end of such a log: then it is written over with what is
 * older, or stays. Neither matters, since nobody reads before the log has come again: P3. */
#include "store/recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/map.h"
#include "base/mem.h"
#include "store/catalog.h"
#include "store/checkpoint.h"
#include "store/image_private.h"
#include "store/log.h"
#include "store/pagediff.h"

enum {
    PAGES_MAX = 65536,    /* 256 MB */
    SYNC_SINGLY_MAX = 32, /* more objects than this are synced by one sync_all */
};

/* What the log says about one object. */
struct object {
    struct cn_object_key key;
    struct cn_pagemap pages; /* bytes NULL: written to the file by this recovery */
    uint32_t page_count;
    uint32_t file_limit; /* the file is cut to this before it is written */
    bool unwritten;      /* pages or size are not in the file yet */
    struct cn_catalog_change change;
    bool changed;
    char *name;          /* owned; what change.name points to */
    struct cn_sums sums; /* of the file (image.c, I7) */
};

struct redo {
    const struct cn_recovery_config *config;
    struct cn_disk *disk;
    struct cn_catalog *catalog;
    struct cn_map objects; /* key -> struct object */
    uint64_t page_count;   /* with bytes in memory */
};

/* ---- Objects ---- */

static int object_get(struct redo *redo, const struct cn_object_key *key, struct object **result,
                      bool *fresh, struct cn_err *err)
{
    struct object *object = cn_map_find(&redo->objects, key, sizeof(*key));
    int rc = 0;
    *fresh = !object;
    if (!object) {
        object = CN_NEW(struct object);
        object->key = *key;
        object->file_limit = UINT32_MAX;
        (void)cn_map_set(&redo->objects, key, sizeof(*key), object);
        rc = cn_catalog_sums(redo->catalog, key, &object->sums, err);
    }
    *result = object;
    return rc;
}

/* Frees the bytes of every page; with `forget`, the pages too. */
static void object_drop_bytes(struct redo *redo, struct object *object, bool forget)
{
    uint32_t cursor = 0;
    for (struct cn_page *page; (page = cn_pagemap_next(&object->pages, &cursor));) {
        if (page->bytes)
            redo->page_count--;
        cn_image_page_free(page->bytes);
        page->bytes = NULL;
    }
    if (forget)
        cn_pagemap_clear(&object->pages);
}

/* Brings the object's file up to date; it stays open for the caller if `keep`. */
static int object_write(struct redo *redo, struct object *object, struct cn_disk_file **keep,
                        struct cn_err *err)
{
    char path[CN_IMAGE_PATH_MAX];
    cn_image_path(&object->key, path);
    struct cn_disk_file *file;
    int rc;
    if (object->page_count == 0 && !keep) {
        rc = cn_disk_unlink(redo->disk, path);
        if (rc < 0 && rc != -ENOENT)
            return cn_err_errno(err, -rc, "cannot remove %s", path);
        object->unwritten = false;
        object->file_limit = UINT32_MAX;
        cn_sums_resize(&object->sums, 0);
        return 0;
    }
    size_t count = 0;
    uint32_t cursor = 0;
    struct cn_page_write *writes = cn_alloc((object->pages.count + 1) * sizeof(*writes));
    for (struct cn_page *page; (page = cn_pagemap_next(&object->pages, &cursor));) {
        if (page->bytes)
            writes[count++] =
                (struct cn_page_write){.page_no = page->page_no, .bytes = page->bytes};
    }
    qsort(writes, count, sizeof(*writes), cn_page_write_order);
    cn_page_writes_sum(writes, count);
    bool made;
    rc = cn_image_file_create(redo->disk, &object->key, &file, &made);
    if (rc == 0) {
        rc = cn_image_file_write(file, writes, count, object->file_limit, object->page_count);
        if (rc == 0 && keep)
            *keep = file;
        else
            cn_disk_close(file);
    }
    if (rc == 0)
        cn_page_writes_enter(writes, count, object->page_count, &object->sums);
    cn_free(writes);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot write %s", path);
    object_drop_bytes(redo, object, false);
    object->unwritten = false;
    object->file_limit = UINT32_MAX;
    return 0;
}

/* Syncs one file and its name; its folders may be new as well. */
static int object_sync(struct redo *redo, const struct object *object)
{
    char path[CN_IMAGE_PATH_MAX];
    struct cn_disk_file *file;
    cn_image_path(&object->key, path);
    int rc = cn_disk_open(redo->disk, path, 0, &file);
    if (rc == 0) {
        rc = cn_disk_sync_data(file);
        cn_disk_close(file);
    } else if (rc == -ENOENT) {
        rc = 0; /* it was removed: only the name is left to sync */
    }
    for (char *slash; rc == 0 && (slash = strrchr(path, '/'));) {
        *slash = '\0';
        rc = cn_disk_sync_dir(redo->disk, path);
        if (rc == -ENOENT)
            rc = 0; /* never made: nothing of it was in a file */
    }
    return rc;
}

static int redo_sync(struct redo *redo, struct cn_err *err)
{
    const struct cn_map_entry *entry;
    size_t cursor = 0;
    int rc = 0;
    if (redo->objects.count > SYNC_SINGLY_MAX)
        rc = cn_disk_sync_all(redo->disk);
    else
        while (rc == 0 && cn_map_next(&redo->objects, &cursor, &entry))
            rc = object_sync(redo, entry->value);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot sync database files") : 0;
}

/* Everything in memory goes to files and catalog. */
static int redo_flush(struct redo *redo, struct cn_err *err)
{
    const struct cn_map_entry *entry;
    size_t cursor = 0;
    int rc = 0;
    while (rc == 0 && cn_map_next(&redo->objects, &cursor, &entry)) {
        struct object *object = entry->value;
        if (object->unwritten)
            rc = object_write(redo, object, NULL, err);
        if (rc == 0 && object->changed) {
            struct cn_sums_part *parts;
            object->change.key = object->key;
            object->change.sums_cut = object->sums.cut;
            object->change.sums_pages = object->sums.count;
            object->change.part_count = cn_sums_take(&object->sums, &parts);
            object->change.parts = parts;
            rc = cn_catalog_apply(redo->catalog, &object->change, err);
            cn_free(parts);
            object->changed = false;
        }
    }
    return rc;
}

static void redo_fini(struct redo *redo)
{
    const struct cn_map_entry *entry;
    size_t cursor = 0;
    while (cn_map_next(&redo->objects, &cursor, &entry)) {
        struct object *object = entry->value;
        object_drop_bytes(redo, object, true);
        cn_sums_fini(&object->sums);
        cn_free(object->name);
        cn_free(object);
    }
    cn_map_fini(&redo->objects);
}

/* ---- One commit ---- */

/* The checksums go with a file that is set aside. One that an older version wrote and nothing in
 * the log has changed may have its trailer already: a crash came before it was renamed. */
static int aside_seal(const struct object *object, struct cn_disk_file *file)
{
    uint32_t page_count = object->sums.count;
    if (page_count == 0) {
        struct cn_sums there = {0};
        int64_t size = cn_disk_size(file);
        int rc = size < 0 ? (int)size : cn_sums_read(&there, file, &page_count, NULL);
        cn_sums_fini(&there);
        if (size < 0 || (rc == 0 && size % CN_PAGE_SIZE != 0))
            return size < 0 ? (int)size : 0;
        page_count = (uint32_t)(size / CN_PAGE_SIZE);
    }
    return cn_sums_append(&object->sums, file, page_count);
}

/* V5 */
static int redo_reset(struct redo *redo, struct object *object, uint64_t lsn, struct cn_err *err)
{
    char path[CN_IMAGE_PATH_MAX], aside[CN_IMAGE_PATH_MAX];
    cn_image_path(&object->key, path);
    cn_image_aside_path(&object->key, lsn, aside);
    bool done = cn_disk_has(redo->disk, aside);
    bool has_old = object->unwritten ? object->page_count > 0 : cn_disk_has(redo->disk, path);
    if (!done && has_old) {
        struct cn_disk_file *file;
        int rc;
        if (object->unwritten) {
            rc = object_write(redo, object, &file, err);
            if (rc < 0)
                return rc;
        } else {
            rc = cn_disk_open(redo->disk, path, 0, &file);
            if (rc < 0)
                return cn_err_errno(err, -rc, "cannot open %s", path);
        }
        rc = aside_seal(object, file);
        if (rc == 0)
            rc = cn_disk_sync_data(file);
        cn_disk_close(file);
        if (rc == 0)
            rc = cn_disk_rename(redo->disk, path, aside);
        if (rc == 0)
            rc = cn_disk_sync_dir(redo->disk, "aside");
        if (rc == 0)
            rc = cn_disk_sync_parent(redo->disk, path);
        if (rc < 0)
            return cn_err_errno(err, -rc, "cannot set %s aside", path);
    }
    object_drop_bytes(redo, object, true);
    object->page_count = 0;
    object->file_limit = 0;
    cn_sums_resize(&object->sums, 0);
    return 0;
}

static int redo_page(struct redo *redo, struct object *object, const struct cn_commit_page *from,
                     uint64_t lsn, struct cn_err *err)
{
    struct cn_page *page;
    int rc;
    if (from->image) {
        page = cn_pagemap_add(&object->pages, from->page_no);
        if (!page->bytes) {
            page->bytes = cn_image_page_new();
            redo->page_count++;
        }
        rc = cn_pagediff_expand(page->bytes, CN_PAGE_SIZE, from->image, from->image_size);
    } else {
        page = cn_pagemap_find(&object->pages, from->page_no);
        if (!page)
            return cn_err_set(err, CN_ECORRUPT,
                              "record %" PRIu64 " has a difference of page %" PRIu32
                              " and no record before it has the page",
                              lsn, from->page_no);
        if (!page->bytes) {
            char path[CN_IMAGE_PATH_MAX];
            struct cn_disk_file *file;
            cn_image_path(&object->key, path);
            rc = cn_disk_open(redo->disk, path, CN_DISK_READONLY, &file);
            if (rc < 0)
                return cn_err_errno(err, -rc, "cannot open %s", path);
            page->bytes = cn_image_page_new();
            redo->page_count++;
            int64_t got = cn_disk_read(file, page->bytes, CN_PAGE_SIZE,
                                       (uint64_t)(from->page_no - 1) * CN_PAGE_SIZE);
            cn_disk_close(file);
            if (got != CN_PAGE_SIZE)
                return cn_err_errno(err, got < 0 ? (int)-got : EIO, "cannot read %s", path);
            rc = cn_sums_check(&object->sums, from->page_no, page->bytes, err);
            if (rc < 0)
                return rc;
        }
        rc = cn_pagediff_apply(page->bytes, CN_PAGE_SIZE, from->diff, from->diff_size);
    }
    if (rc < 0)
        return cn_err_set(err, CN_ECORRUPT,
                          "record %" PRIu64 ": page %" PRIu32 " cannot be decoded", lsn,
                          from->page_no);
    return 0;
}

static void redo_drop(void *data, const struct cn_page *page)
{
    struct redo *redo = data;
    if (page->bytes)
        redo->page_count--;
    cn_image_page_free(page->bytes);
}

static void redo_cut(struct redo *redo, struct object *object, uint32_t page_count)
{
    cn_pagemap_cut(&object->pages, page_count, redo_drop, redo);
    if (object->file_limit > page_count)
        object->file_limit = page_count;
    if (object->sums.count > page_count)
        cn_sums_resize(&object->sums, page_count);
}

static void redo_meta(struct object *object, const struct cn_record *record,
                      const struct cn_commit *commit)
{
    struct cn_catalog_change *change = &object->change;
    change->lsn = record->header.lsn;
    change->time_ms = record->header.time_ms;
    change->page_count = commit->head.pages_after;
    object->changed = true;
    if (commit->head.flags & CN_COMMIT_DELETED) {
        cn_free(object->name);
        object->name = NULL;
        change->name = NULL;
        change->name_size = 0;
        change->has_alarm = false;
        change->deleted = true;
        change->reborn_lsn = record->header.lsn; /* whatever comes next is a new object */
        return;
    }
    change->deleted = false;
    if (commit->has_alarm) {
        change->has_alarm = true;
        change->alarm_ms = commit->alarm_ms;
    }
    if (commit->name) {
        cn_free(object->name);
        object->name = cn_strndup(commit->name, commit->name_size);
        change->name = object->name;
        change->name_size = commit->name_size;
    }
}

static int redo_commit(struct redo *redo, const struct cn_record *record, struct cn_err *err)
{
    struct cn_commit commit;
    uint64_t lsn = record->header.lsn;
    int rc = cn_commit_read(record, &commit, err);
    if (rc < 0) {
        if (err)
            cn_err_context(err, "record %" PRIu64, lsn);
        return rc;
    }
    bool fresh;
    struct object *object;
    rc = object_get(redo, &commit.head.key, &object, &fresh, err);
    if (rc < 0)
        return rc;
    if (commit.head.flags & CN_COMMIT_RESET) {
        rc = redo_reset(redo, object, lsn, err);
        if (rc < 0)
            return rc;
    } else if (fresh) {
        object->page_count = commit.head.pages_before;
    } else if (object->page_count != commit.head.pages_before) {
        return cn_err_set(err, CN_ECORRUPT,
                          "record %" PRIu64 " follows a database of %" PRIu32
                          " pages, but it has %" PRIu32,
                          lsn, commit.head.pages_before, object->page_count);
    }
    if (commit.head.pages_after < object->page_count)
        redo_cut(redo, object, commit.head.pages_after);
    object->page_count = commit.head.pages_after;
    if (commit.head.page_count > 0 || commit.head.flags ||
        commit.head.pages_before != commit.head.pages_after)
        object->unwritten = true;

    size_t offset = 0;
    for (struct cn_commit_page page; cn_commit_page(&commit, &offset, &page);) {
        if (page.page_no > commit.head.pages_after)
            continue;
        rc = redo_page(redo, object, &page, lsn, err);
        if (rc < 0)
            return rc;
    }
    redo_meta(object, record, &commit);
    uint64_t pages_max = redo->config->pages_max ? redo->config->pages_max : PAGES_MAX;
    return redo->page_count > pages_max ? redo_flush(redo, err) : 0;
}

static int redo_record(struct redo *redo, const struct cn_record *record, struct cn_err *err)
{
    uint32_t namespace_id;
    const char *name;
    size_t name_size;
    int rc;
    switch (record->header.kind) {
    case CN_RECORD_COMMIT:
        return redo_commit(redo, record, err);
    case CN_RECORD_NAMESPACE:
        rc = cn_namespace_read(record, &namespace_id, &name, &name_size, err);
        return rc < 0 ? rc
                      : cn_catalog_namespace_set(redo->catalog, namespace_id, name, name_size,
                                                 record->header.lsn, err);
    case CN_RECORD_MARK:
        return 0;
    default:
        return cn_err_set(err, CN_EVERSION,
                          "record %" PRIu64 " is of kind %u, which this version does not know",
                          record->header.lsn, record->header.kind);
    }
}

/* ---- Segments ---- */

struct numbers {
    uint64_t *list;
    size_t count, capacity;
};

static void number_collect(void *data, const char *name, bool is_dir)
{
    struct numbers *numbers = data;
    char path[CN_SEGMENT_PATH_MAX];
    unsigned long long number;
    if (is_dir || sscanf(name, "%20llu.seg", &number) != 1 || number == 0)
        return;
    cn_segment_path(number, path);
    if (strcmp(path + strlen("log/"), name) != 0)
        return;
    CN_GROW(numbers->list, numbers->count, numbers->capacity);
    numbers->list[numbers->count++] = number;
}

static int number_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* V3: the records of the last segment end at `size`. Where all of them are settled, the cut need
 * not be synced: what is behind it cannot be anything else than what comes there again. */
static int tail_cut(struct redo *redo, const char *path, uint64_t size, struct cn_err *err)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(redo->disk, path, 0, &file);
    if (rc == 0) {
        rc = cn_disk_truncate(file, size);
        if (rc == 0 && !redo->config->settled)
            rc = cn_disk_sync_data(file);
        cn_disk_close(file);
    }
    return rc < 0 ? cn_err_errno(err, -rc, "cannot cut the tail of %s", path) : 0;
}

static int record_next(struct redo *redo, struct cn_recovery *recovery,
                       const struct cn_record *record, struct cn_err *err)
{
    const struct cn_recovery_config *config = redo->config;
    recovery->last_time_ms = record->header.time_ms;
    if (record->header.lsn < recovery->redo_lsn)
        return 0;
    if (config->cancelled && atomic_load_explicit(config->cancelled, memory_order_relaxed))
        return cn_err_set(err, CN_EABORTED, "the redo was cancelled");
    recovery->record_count++;
    bool boundary =
        (record->header.flags & CN_RECORD_BOUNDARY) || (config->planted & CN_PLANTED_ANY_BOUNDARY);
    if (boundary && record->header.lsn > recovery->redo_lsn)
        recovery->boundary = record->header.lsn;
    return config->only_log ? 0 : redo_record(redo, record, err);
}

/* V2, V3 for the segment that the reader has read to its end. */
static int tail_end(struct redo *redo, struct cn_segment_reader *reader, const char *path,
                    struct cn_err *err)
{
    int rc = redo->config->settled ? 0 : cn_segment_reader_damaged(reader, err);
    if (rc == 1)
        rc = cn_err_set(err, CN_ECORRUPT,
                        "%s: record %" PRIu64 " at offset %" PRIu64
                        " is damaged, and records behind it show that it was durable",
                        path, reader->next_lsn, reader->offset);
    if (rc == 0)
        rc = tail_cut(redo, path, reader->offset, err);
    return rc;
}

/* Reads one segment and redoes its records from redo_lsn on. */
static int segment_redo(struct redo *redo, struct cn_recovery *recovery, uint64_t number, bool last,
                        struct cn_err *err)
{
    uint64_t last_lsn = redo->config->last_lsn ? redo->config->last_lsn : UINT64_MAX;
    struct cn_segment_reader reader;
    struct cn_record record;
    char path[CN_SEGMENT_PATH_MAX];
    cn_segment_path(number, path);
    int rc = cn_segment_reader_open(&reader, redo->disk, path, err);
    if (rc < 0)
        return rc;
    if (reader.header.number != number) {
        rc = cn_err_set(err, CN_ECORRUPT, "%s says that it is segment %" PRIu64, path,
                        reader.header.number);
        goto close_reader;
    }
    if (reader.header.first_lsn != recovery->next_lsn && recovery->next_lsn != 0) {
        rc = cn_err_set(err, CN_ECORRUPT,
                        "%s begins with record %" PRIu64 ", but record %" PRIu64
                        " is missing or damaged",
                        path, reader.header.first_lsn, recovery->next_lsn);
        goto close_reader;
    }
    while (reader.next_lsn <= last_lsn &&
           (rc = cn_segment_reader_next(&reader, &record, err)) == 1) {
        rc = record_next(redo, recovery, &record, err);
        if (rc < 0)
            break;
    }
    if (rc < 0)
        goto close_reader;
    rc = 0;
    if (last && !redo->config->last_lsn)
        rc = tail_end(redo, &reader, path, err);
    recovery->next_lsn = reader.next_lsn;
    recovery->segments[recovery->segment_count++] = (struct cn_segment_info){
        .number = number,
        .first_lsn = reader.header.first_lsn,
        .last_lsn = reader.next_lsn - 1,
        .size = reader.offset,
    };
close_reader:
    cn_segment_reader_close(&reader);
    return rc;
}

/* The first LSN of a segment; CN_ECORRUPT if the file does not begin like one. */
static int segment_first_lsn(struct cn_disk *disk, uint64_t number, uint64_t *first_lsn,
                             struct cn_err *err)
{
    struct cn_segment_reader reader;
    char path[CN_SEGMENT_PATH_MAX];
    cn_segment_path(number, path);
    int rc = cn_segment_reader_open(&reader, disk, path, err);
    if (rc == 0)
        *first_lsn = reader.header.first_lsn;
    cn_segment_reader_close(&reader);
    return rc;
}

/* V6: removes segments that do not follow, the last one first, so that a crash leaves no gap. */
static int segments_drop(struct redo *redo, struct numbers *numbers, size_t count,
                         struct cn_err *err)
{
    char path[CN_SEGMENT_PATH_MAX];
    int rc = 0;
    if (redo->config->last_lsn) /* all that matters is there, and the rest is being written */
        numbers->count = count;
    if (count == numbers->count)
        return 0;
    while (rc == 0 && numbers->count > count) {
        cn_segment_path(numbers->list[--numbers->count], path);
        rc = cn_disk_unlink(redo->disk, path);
    }
    if (rc == 0)
        rc = cn_disk_sync_dir(redo->disk, "log");
    return rc < 0 ? cn_err_errno(err, -rc, "cannot remove %s", path) : 0;
}

/* V6: leaves those that follow each other and begin like segments. */
static int segments_chain(struct redo *redo, struct numbers *numbers, struct cn_err *err)
{
    size_t count = 0;
    uint64_t first_lsn;
    int rc = 0;
    while (count < numbers->count && rc == 0 &&
           (count == 0 || numbers->list[count] == numbers->list[count - 1] + 1)) {
        rc = segment_first_lsn(redo->disk, numbers->list[count], &first_lsn, err);
        count += rc == 0;
    }
    if (rc < 0 && rc != CN_ECORRUPT)
        return rc;
    return segments_drop(redo, numbers, count, err);
}

/* Does the segment that was just read go on in the next one? */
static int segment_follows(struct redo *redo, const struct cn_recovery *recovery, uint64_t next,
                           bool *follows, struct cn_err *err)
{
    uint64_t first_lsn;
    int rc = segment_first_lsn(redo->disk, next, &first_lsn, err);
    *follows = rc == 0 && first_lsn == recovery->next_lsn;
    return rc;
}

/* Redoes the segments from `start` on. */
static int segments_read(struct redo *redo, struct cn_recovery *recovery, struct numbers *numbers,
                         size_t start, struct cn_err *err)
{
    const struct cn_recovery_config *config = redo->config;
    int rc = 0;
    for (size_t i = start; i < numbers->count && rc == 0; i++) {
        bool last = i + 1 == numbers->count, follows;
        rc = segment_redo(redo, recovery, numbers->list[i], last, err);
        if (config->last_lsn && recovery->next_lsn > config->last_lsn)
            break;
        if (rc < 0 || last || !config->settled)
            continue;
        rc = segment_follows(redo, recovery, numbers->list[i + 1], &follows, err);
        if (rc == 0 && !follows) {
            char path[CN_SEGMENT_PATH_MAX];
            cn_segment_path(numbers->list[i], path);
            rc = segments_drop(redo, numbers, i + 1, err);
            if (rc == 0)
                rc =
                    tail_cut(redo, path, recovery->segments[recovery->segment_count - 1].size, err);
        }
    }
    return rc;
}

static int segments_redo(struct redo *redo, struct cn_recovery *recovery, struct numbers *numbers,
                         struct cn_err *err)
{
    int rc = 0;
    uint64_t first_lsn, next_first = 0;
    /* Segments wholly below redo_lsn are only waiting to be handed over. */
    size_t start = 0;
    for (; start + 1 < numbers->count; start++) {
        rc = segment_first_lsn(redo->disk, numbers->list[start], &first_lsn, err);
        if (rc == 0)
            rc = segment_first_lsn(redo->disk, numbers->list[start + 1], &next_first, err);
        if (rc < 0)
            return rc;
        if (next_first > recovery->redo_lsn)
            break;
        recovery->segments[recovery->segment_count++] = (struct cn_segment_info){
            .number = numbers->list[start],
            .first_lsn = first_lsn,
            .last_lsn = next_first - 1,
        };
    }
    if (start < numbers->count) {
        rc = segment_first_lsn(redo->disk, numbers->list[start], &first_lsn, err);
        if (rc < 0)
            return rc;
        if (first_lsn > recovery->redo_lsn && redo->config->settled)
            return segments_drop(redo, numbers, 0, err); /* it is the first that is there */
        if (first_lsn > recovery->redo_lsn)
            return cn_err_set(err, CN_ECORRUPT,
                              "the log begins with record %" PRIu64 ", but recovery needs %" PRIu64,
                              first_lsn, recovery->redo_lsn);
    }
    return segments_read(redo, recovery, numbers, start, err);
}

int cn_recovery_run(const struct cn_recovery_config *config, struct cn_disk *disk,
                    struct cn_catalog *catalog, struct cn_recovery *recovery, struct cn_err *err)
{
    struct redo redo = {.config = config, .disk = disk, .catalog = catalog};
    struct cn_checkpoint checkpoint = {.redo_lsn = 1};
    struct numbers numbers = {0};
    *recovery = (struct cn_recovery){0};
    int rc = cn_checkpoint_read(disk, &checkpoint, err);
    if (rc < 0)
        return rc;
    bool has_checkpoint = rc == 1;
    recovery->redo_lsn = checkpoint.redo_lsn;
    rc = cn_disk_list(disk, "log", number_collect, &numbers);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot list the log folder");
    cn_map_init(&redo.objects);
    if (numbers.count > 0)
        qsort(numbers.list, numbers.count, sizeof(*numbers.list), number_order);
    if (config->settled)
        rc = segments_chain(&redo, &numbers, err);
    for (size_t i = 1; i < numbers.count && rc == 0; i++) {
        if (numbers.list[i] != numbers.list[i - 1] + 1)
            rc = cn_err_set(err, CN_ECORRUPT, "log segment %" PRIu64 " is missing",
                            numbers.list[i - 1] + 1);
    }
    if (rc == 0 && numbers.count == 0 && has_checkpoint && checkpoint.redo_lsn > 1 &&
        !config->settled)
        rc = cn_err_set(err, CN_ECORRUPT, "the log is missing");
    recovery->segments = cn_alloc_zero((numbers.count + 1) * sizeof(*recovery->segments));
    if (rc == 0)
        rc = segments_redo(&redo, recovery, &numbers, err);
    if (rc == 0)
        rc = redo_flush(&redo, err); /* nothing, if only the log was read */
    if (rc == 0 && config->sync)
        rc = redo_sync(&redo, err);
    if (rc == 0 && !config->only_log)
        rc = cn_catalog_flush(catalog, NULL, err); /* V3 made every record durable, or V6 */
    if (recovery->next_lsn == 0)                   /* V6: nothing before the redo point is needed */
        recovery->next_lsn = config->settled ? checkpoint.redo_lsn : 1;
    if (rc == 0 && recovery->next_lsn - 1 < checkpoint.durable_lsn) /* V4 */
        rc = cn_err_set(err, CN_ECORRUPT,
                        "the log ends with record %" PRIu64 ", but %" PRIu64 " was durable",
                        recovery->next_lsn - 1, checkpoint.durable_lsn);
    recovery->next_number = numbers.count ? numbers.list[numbers.count - 1] + 1 : 1;
    redo_fini(&redo);
    cn_free(numbers.list);
    if (rc < 0)
        cn_recovery_fini(recovery);
    return rc;
}

void cn_recovery_fini(struct cn_recovery *recovery)
{
    cn_free(recovery->segments);
    recovery->segments = NULL;
    recovery->segment_count = 0;
}
