/* SPDX-License-Identifier: Apache-2.0 */
#include "store/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/overlay.h"
#include "store/archive.h"
#include "store/backup.h"
#include "store/blob.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/image.h"
#include "store/pagediff.h"
#include "store/segment.h"
#include "store/store.h"
#include "store/sums.h"
#include "text/hex.h"

enum { LIST_BATCH = 256 };

struct check {
    struct cn_disk *disk;
    struct cn_check_report *report;
};

void cn_check_problem(struct cn_check_report *report, const char *format, ...)
{
    char text[CN_ERR_TEXT_MAX + 256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report->problem_count++;
    if (report->problem)
        report->problem(report->data, text);
}

/* ---- the log ---- */

/* Every length and count is checked by cn_commit_read(); here the pages are decoded. */
static int check_pages(const struct cn_commit *commit, struct cn_err *err)
{
    uint8_t page[CN_PAGE_SIZE];
    struct cn_commit_page change;
    for (size_t at = 0; cn_commit_page(commit, &at, &change);) {
        memset(page, 0, sizeof(page));
        if ((change.image &&
             cn_pagediff_expand(page, CN_PAGE_SIZE, change.image, change.image_size) < 0) ||
            (change.diff &&
             cn_pagediff_apply(page, CN_PAGE_SIZE, change.diff, change.diff_size) < 0))
            return cn_err_set(err, CN_ECORRUPT, "page %" PRIu32 " is malformed", change.page_no);
    }
    return 0;
}

static int check_record(const struct cn_record *record, struct cn_err *err)
{
    if (record->header.kind == CN_RECORD_COMMIT) {
        struct cn_commit commit;
        int rc = cn_commit_read(record, &commit, err);
        return rc < 0 ? rc : check_pages(&commit, err);
    }
    if (record->header.kind == CN_RECORD_NAMESPACE) {
        uint32_t namespace_id;
        const char *name;
        size_t name_size;
        return cn_namespace_read(record, &namespace_id, &name, &name_size, err);
    }
    if (record->header.kind == CN_RECORD_MARK) /* of a shard of a cluster: it has no body (P6) */
        return 0;
    return cn_err_set(err, CN_ECORRUPT, "unknown kind of record %u", record->header.kind);
}

/* One segment; *next_lsn goes from where it should begin to where the next one should. */
static void check_segment(struct check *check, const char *path, bool is_last, uint64_t *next_lsn,
                          uint64_t *next_number)
{
    struct cn_segment_reader reader;
    struct cn_record record;
    struct cn_err err = {0};
    int64_t time_ms = INT64_MIN;
    int rc = cn_segment_reader_open(&reader, check->disk, path, &err);
    if (rc < 0) {
        cn_check_problem(check->report, "%s: %s", path, err.text);
        *next_lsn = *next_number = 0;
        return;
    }
    if (*next_number && reader.header.number != *next_number)
        cn_check_problem(check->report, "%s: segment %" PRIu64 " is missing before it", path,
                         *next_number);
    else if (*next_lsn && reader.header.first_lsn != *next_lsn)
        cn_check_problem(check->report, "%s begins with LSN %" PRIu64 " instead of %" PRIu64, path,
                         reader.header.first_lsn, *next_lsn);
    while ((rc = cn_segment_reader_next(&reader, &record, &err)) == 1) {
        check->report->record_count++;
        if (check_record(&record, &err) < 0)
            cn_check_problem(check->report, "%s: record %" PRIu64 ": %s", path, record.header.lsn,
                             err.text);
        if (record.header.time_ms < time_ms)
            cn_check_problem(check->report,
                             "%s: record %" PRIu64 " is older than the one before it", path,
                             record.header.lsn);
        time_ms = record.header.time_ms;
    }
    if (rc == 0)
        rc = cn_segment_reader_damaged(&reader, &err);
    if (rc < 0)
        cn_check_problem(check->report, "%s: %s", path, err.text);
    else if (rc > 0)
        cn_check_problem(check->report, "%s: record %" PRIu64 " is damaged, but was durable", path,
                         reader.next_lsn);
    *next_lsn = is_last || rc != 0 ? 0 : reader.next_lsn;
    *next_number = reader.header.number + 1;
    cn_segment_reader_close(&reader);
}

static bool has_ending(const char *name, const char *ending)
{
    size_t length = strlen(name), size = strlen(ending);
    return length > size && strcmp(name + length - size, ending) == 0;
}

static int check_log(struct check *check, struct cn_err *err)
{
    struct cn_disk_entries entries;
    uint64_t next_lsn = 0, next_number = 0;
    int rc = cn_disk_entries(check->disk, "log", &entries);
    if (rc < 0)
        return rc == -ENOENT ? 0 : cn_err_errno(err, -rc, "cannot list the folder log");
    size_t last = 0;
    for (size_t i = 0; i < entries.count; i++)
        last = has_ending(entries.items[i].name, ".seg") ? i : last;
    for (size_t i = 0; i < entries.count; i++) {
        char path[128];
        snprintf(path, sizeof(path), "log/%.100s", entries.items[i].name);
        if (has_ending(entries.items[i].name, ".seg"))
            check_segment(check, path, i == last, &next_lsn, &next_number);
    }
    cn_disk_entries_fini(&entries);
    return 0;
}

/* ---- databases ---- */

struct batch {
    struct cn_catalog_entry entries[LIST_BATCH];
    int count;
};

static int collect_entry(void *data, const struct cn_catalog_entry *entry)
{
    struct batch *batch = data;
    batch->entries[batch->count++] = *entry;
    return 0;
}

static void object_text(const struct cn_object_key *key, char text[96])
{
    int at = snprintf(text, 96, "object %" PRIu32 "/", key->namespace_id);
    cn_hex_encode(key->id, CN_OBJECT_ID_SIZE, text + at);
}

static int integrity(struct cn_database *db, char *finding, size_t finding_size, struct cn_err *err)
{
    static const char sql[] = "PRAGMA integrity_check(1)";
    struct cn_statement *statement;
    size_t used, size = 0;
    int rc = cn_database_prepare(db, sql, sizeof(sql) - 1, 0, &statement, &used, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_step(statement, err);
    if (rc == 1) {
        const char *text = cn_statement_column_text(statement, 0, &size);
        snprintf(finding, finding_size, "%.*s", (int)size, text);
        rc = 0;
    }
    cn_statement_release(statement);
    return rc;
}

static int ignore_page(void *data, uint32_t page_no, const uint8_t *page)
{
    (void)data, (void)page_no, (void)page;
    return 0;
}

static void check_object(struct check *check, struct cn_store *store,
                         const struct cn_catalog_entry *entry)
{
    struct cn_database_options options = {.must_exist = true};
    struct cn_database *db;
    struct cn_err err = {0};
    char name[96], finding[256] = "";
    object_text(&entry->key, name);
    check->report->object_count++;
    check->report->object_bytes += entry->size;
    if (cn_database_open(store, &entry->key, &options, &db, &err) < 0) {
        cn_check_problem(check->report, "%s does not open: %s", name, err.text);
        return;
    }
    if (cn_database_size(db) != entry->size)
        cn_check_problem(check->report, "%s has %" PRIu64 " bytes, but %" PRIu64 " in the catalog",
                         name, cn_database_size(db), entry->size);
    if (cn_database_alarm(db) != entry->alarm_ms)
        cn_check_problem(check->report, "%s has another alarm than the catalog says", name);
    cn_database_close(db);
    if (entry->size == 0)
        return;
    /* Every page against its checksum, also those that no table leads to; then their structure. */
    uint32_t page_count;
    uint64_t lsn;
    if (cn_store_snapshot(store, &entry->key, ignore_page, NULL, &page_count, &lsn, &err) < 0) {
        cn_check_problem(check->report, "%s cannot be read: %s", name, err.text);
        return;
    }
    if (cn_database_open(store, &entry->key, &options, &db, &err) < 0) {
        cn_check_problem(check->report, "%s does not open: %s", name, err.text);
        return;
    }
    if (integrity(db, finding, sizeof(finding), &err) < 0)
        cn_check_problem(check->report, "%s cannot be read: %s", name, err.text);
    else if (strcmp(finding, "ok") != 0)
        cn_check_problem(check->report, "%s is damaged: %s", name, finding);
    cn_database_close(db);
}

static int check_namespace(struct check *check, struct cn_store *store, uint32_t namespace_id,
                           struct cn_err *err)
{
    struct batch batch;
    uint8_t after[CN_OBJECT_ID_SIZE];
    bool first = true;
    do {
        batch.count = 0;
        int rc = cn_catalog_list(cn_store_catalog(store), namespace_id, first ? NULL : after,
                                 LIST_BATCH, collect_entry, &batch, err);
        if (rc < 0)
            return rc;
        for (int i = 0; i < batch.count; i++)
            check_object(check, store, &batch.entries[i]);
        if (batch.count > 0)
            memcpy(after, batch.entries[batch.count - 1].key.id, sizeof(after));
        first = false;
    } while (batch.count == LIST_BATCH);
    return 0;
}

/* The key of objects/<namespace>/<xx>/<id>.db; false if it is no such path. */
static bool parse_object_path(const char *path, struct cn_object_key *key)
{
    char again[CN_IMAGE_PATH_MAX];
    uint8_t space[4];
    const char *name = strrchr(path, '/');
    memset(key, 0, sizeof(*key));
    if (!name || strlen(name) != 1 + 2 * CN_OBJECT_ID_SIZE + 3 || strlen(path) < 16 ||
        !cn_hex_decode(path + strlen("objects/"), sizeof(space), space) ||
        !cn_hex_decode(name + 1, CN_OBJECT_ID_SIZE, key->id))
        return false;
    for (size_t i = 0; i < sizeof(space); i++)
        key->namespace_id = key->namespace_id << 8 | space[i];
    cn_image_path(key, again);
    return strcmp(again, path) == 0;
}

struct file_check {
    struct check *check;
    struct cn_store *store;
};

static int check_object_file(void *data, const char *path)
{
    struct file_check *files = data;
    struct cn_object_key key;
    struct cn_catalog_entry entry;
    struct cn_err err = {0};
    char name[CN_OBJECT_NAME_MAX + 1];
    if (!parse_object_path(path, &key))
        cn_check_problem(files->check->report, "%s is no file of ours", path);
    else if (cn_catalog_find(cn_store_catalog(files->store), &key, &entry, name, &err) == 0)
        cn_check_problem(files->check->report, "%s belongs to no object of the catalog", path);
    return 0;
}

static void on_catalog_page(void *data, uint32_t page_no)
{
    struct check *check = data;
    cn_check_problem(check->report,
                     "catalog/catalog.db: page %" PRIu32 " does not match its checksum", page_no);
}

/* Recovers on an overlay and looks at what comes out. */
static int check_databases(struct check *check, struct cn_err *err)
{
    struct cn_disk *overlay = cn_disk_overlay_new(check->disk);
    struct cn_store_config config = {.disk = overlay, .manual = true};
    struct cn_store *store;
    struct cn_err own = {0};
    uint32_t last;
    int rc = cn_store_open(&config, &store, &own);
    if (rc == CN_ELOCKED || rc == CN_EVERSION) {
        if (err)
            *err = own;
        goto free_overlay;
    }
    if (rc < 0) {
        cn_check_problem(check->report, "recovery fails: %s", own.text);
        rc = 0;
        goto free_overlay;
    }
    rc = cn_catalog_namespace_last(cn_store_catalog(store), &last, &own);
    for (uint32_t i = 1; rc == 0 && i <= last; i++)
        rc = check_namespace(check, store, i, &own);
    if (rc == 0)
        rc =
            cn_disk_walk(overlay, "objects", check_object_file, &(struct file_check){check, store});
    if (rc < 0)
        cn_check_problem(check->report, "the catalog cannot be read: %s", own.text);
    rc = 0;
    cn_store_close(store);
    if (cn_catalog_check(overlay, on_catalog_page, check, &own) < 0)
        cn_check_problem(check->report, "the catalog cannot be read: %s", own.text);
free_overlay:
    cn_disk_overlay_free(overlay);
    return rc;
}

/* ---- history and blobs ---- */

static void check_archive(struct check *check, const char *path, uint64_t first_lsn,
                          uint64_t *next_lsn)
{
    struct cn_archive archive;
    struct cn_err err = {0};
    check->report->archive_count++;
    if (cn_archive_open(&archive, check->disk, path, &err) < 0) {
        cn_check_problem(check->report, "%s", err.text);
        *next_lsn = 0;
        return;
    }
    if (*next_lsn && first_lsn != *next_lsn)
        cn_check_problem(check->report, "%s: commits from %" PRIu64 " on are missing before it",
                         path, *next_lsn);
    if (archive.header.first_lsn != first_lsn)
        cn_check_problem(check->report, "%s begins with commit %" PRIu64, path,
                         archive.header.first_lsn);
    if (cn_archive_verify(&archive, &err) < 0)
        cn_check_problem(check->report, "%s: %s", path, err.text);
    *next_lsn = archive.header.last_lsn + 1;
    cn_archive_close(&archive);
}

static int check_history(struct check *check, struct cn_err *err)
{
    struct cn_disk_entries entries;
    uint64_t next_lsn = 0;
    int rc = cn_disk_entries(check->disk, "history", &entries);
    if (rc < 0)
        return rc == -ENOENT ? 0 : cn_err_errno(err, -rc, "cannot list the folder history");
    for (size_t i = 0; i < entries.count; i++) {
        struct cn_object_key key;
        struct cn_archive_image image;
        struct cn_err own = {0};
        uint64_t first_lsn, last_lsn;
        char path[CN_ARCHIVE_PATH_MAX];
        snprintf(path, sizeof(path), "history/%.140s", entries.items[i].name);
        if (cn_archive_name_parse(entries.items[i].name, &first_lsn, &last_lsn)) {
            check_archive(check, path, first_lsn, &next_lsn);
        } else if (cn_archive_image_name_parse(entries.items[i].name, &key, &last_lsn)) {
            check->report->archive_count++;
            if (cn_archive_image_read(check->disk, path, ignore_page, NULL, &image, &own) < 0)
                cn_check_problem(check->report, "%s", own.text);
            else if (image.lsn != last_lsn || memcmp(&image.key, &key, sizeof(key)) != 0)
                cn_check_problem(check->report, "%s is another object's, or of another moment",
                                 path);
        } else if (!has_ending(entries.items[i].name, ".tmp")) {
            cn_check_problem(check->report, "%s is no file of ours", path);
        }
    }
    cn_disk_entries_fini(&entries);
    return 0;
}

/* Databases that a reset took away, with the checksums behind their pages. */
static void check_aside(struct check *check, const char *path)
{
    struct cn_disk_file *file;
    struct cn_sums sums = {0};
    struct cn_err err = {0};
    uint8_t page[CN_PAGE_SIZE];
    uint32_t page_count = 0;
    if (cn_disk_open(check->disk, path, CN_DISK_READONLY, &file) < 0)
        return; /* gone meanwhile */
    int rc = cn_sums_read(&sums, file, &page_count, &err);
    for (uint32_t no = 1; rc == 0 && no <= page_count; no++) {
        int64_t got = cn_disk_read(file, page, CN_PAGE_SIZE, (uint64_t)(no - 1) * CN_PAGE_SIZE);
        rc = got == CN_PAGE_SIZE ? cn_sums_check(&sums, no, page, &err)
                                 : cn_err_set(&err, CN_ECORRUPT, "page %" PRIu32 " is missing", no);
    }
    if (rc < 0)
        cn_check_problem(check->report, "%s: %s", path, err.text);
    cn_sums_fini(&sums);
    cn_disk_close(file);
}

static int check_asides(struct check *check, struct cn_err *err)
{
    struct cn_disk_entries entries;
    int rc = cn_disk_entries(check->disk, "aside", &entries);
    if (rc < 0)
        return rc == -ENOENT ? 0 : cn_err_errno(err, -rc, "cannot list the folder aside");
    for (size_t i = 0; i < entries.count; i++) {
        struct cn_object_key key;
        uint64_t lsn;
        char path[CN_IMAGE_PATH_MAX + 16];
        snprintf(path, sizeof(path), "aside/%.120s", entries.items[i].name);
        if (cn_image_aside_parse(entries.items[i].name, &key, &lsn))
            check_aside(check, path);
        else
            cn_check_problem(check->report, "%s is damaged, or no file of ours", path);
    }
    cn_disk_entries_fini(&entries);
    return 0;
}

struct blob_check {
    struct check *check;
    struct cn_blobs *blobs;
};

static int check_blob(void *data, const struct cn_blob_id *id)
{
    struct blob_check *blobs = data;
    struct cn_blob_reader *reader;
    struct cn_err err = {0};
    blobs->check->report->blob_count++;
    int rc = cn_blob_open(blobs->blobs, id, &reader, &err);
    if (rc == 0) {
        rc = cn_blob_verify(reader, &err);
        cn_blob_close(reader);
    }
    if (rc < 0)
        cn_check_problem(blobs->check->report, "%s", err.text);
    return 0;
}

static int check_blobs(struct check *check, struct cn_err *err)
{
    struct cn_disk *overlay = cn_disk_overlay_new(check->disk); /* opening removes leftovers */
    struct blob_check blobs = {.check = check};
    int rc = cn_blobs_open(overlay, "blobs", &blobs.blobs, err);
    if (rc == 0) {
        rc = cn_blobs_walk(blobs.blobs, check_blob, &blobs, err);
        cn_blobs_close(blobs.blobs);
    }
    cn_disk_overlay_free(overlay);
    return rc;
}

int cn_check(struct cn_disk *disk, struct cn_check_report *report, struct cn_err *err)
{
    struct check check = {.disk = disk, .report = report};
    struct cn_disk_file *format;
    int rc = cn_disk_open(disk, "FORMAT", CN_DISK_READONLY, &format);
    if (rc == -ENOENT)
        return cn_err_set(err, CN_ENOTFOUND, "not a data directory: there is no file FORMAT");
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open FORMAT");
    cn_disk_close(format);
    if (cn_disk_has(disk, CN_BACKUP_UNFINISHED))
        return cn_err_set(err, CN_EINVALID, CN_BACKUP_UNFINISHED_TEXT);
    rc = check_databases(&check, err); /* first: it takes the lock, and knows versions */
    if (rc == 0)
        rc = check_log(&check, err);
    if (rc == 0)
        rc = check_history(&check, err);
    if (rc == 0)
        rc = check_asides(&check, err);
    if (rc == 0)
        rc = check_blobs(&check, err);
    return rc;
}
