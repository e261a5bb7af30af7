/* SPDX-License-Identifier: Apache-2.0 */
#include "store/backup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "store/checkpoint.h"
#include "store/log.h"
#include "store/segment.h"
#include "store/store_private.h"

enum { COPY_SIZE = 1 << 20, LINES_SIZE = 64 << 10 };

struct backup {
    struct cn_store *store;
    struct cn_disk *from, *to;
    struct cn_backup_report *report;
    struct cn_err *err;
    uint8_t *buffer;               /* owned */
    char folder[160];              /* the last one made */
    struct cn_disk_file *manifest; /* B5 */
    uint64_t manifest_size;
    struct cn_buf lines; /* that are not in it yet */
};

/* --- the manifest ---------------------------------------------------------------------------- */

static int flush_lines(struct backup *backup)
{
    struct cn_buf *lines = &backup->lines;
    int rc = cn_disk_write_all(backup->manifest, lines->data, lines->size, backup->manifest_size);
    backup->manifest_size += lines->size;
    cn_buf_clear(lines);
    return rc < 0 ? cn_err_errno(backup->err, -rc, "cannot write " CN_BACKUP_UNFINISHED) : 0;
}

static int note_file(struct backup *backup, const char *path, uint32_t crc, uint64_t size)
{
    cn_buf_printf(&backup->lines, "%08" PRIx32 " %" PRIu64 " %s\n", crc, size, path);
    return backup->lines.size < LINES_SIZE ? 0 : flush_lines(backup);
}

/* The same bytes of zeros that truncating adds. */
static uint32_t crc_of_zeros(uint32_t crc, uint64_t size)
{
    static const uint8_t zeros[4096];
    for (uint64_t left = size; left > 0;) {
        size_t part = left < sizeof(zeros) ? (size_t)left : sizeof(zeros);
        crc = cn_crc32c(crc, zeros, part);
        left -= part;
    }
    return crc;
}

static int begin_manifest(struct backup *backup)
{
    int rc = cn_disk_open(backup->to, CN_BACKUP_UNFINISHED, CN_DISK_CREATE | CN_DISK_EXCLUSIVE,
                          &backup->manifest);
    if (rc < 0)
        return cn_err_errno(backup->err, -rc, "cannot write in the folder of the backup");
    rc = cn_disk_sync_dir(backup->to, "");
    if (rc == 0)
        return 0;
    cn_disk_close(backup->manifest);
    return cn_err_errno(backup->err, -rc, "cannot write in the folder of the backup");
}

static int end_manifest(struct backup *backup, int rc)
{
    if (rc == 0)
        rc = flush_lines(backup);
    if (rc == 0 && (rc = cn_disk_sync_data(backup->manifest)) < 0)
        cn_err_errno(backup->err, -rc, "cannot write " CN_BACKUP_UNFINISHED);
    cn_disk_close(backup->manifest);
    cn_buf_fini(&backup->lines);
    return rc;
}

/* --- copying --------------------------------------------------------------------------------- */

static int make_folder(struct backup *backup, const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[sizeof(backup->folder)];
    if (!slash)
        return 0;
    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    if (strcmp(folder, backup->folder) == 0)
        return 0;
    memcpy(backup->folder, folder, sizeof(folder));
    return cn_disk_mkdirs(backup->to, folder);
}

/* A file of `size` bytes becomes one of `final_size`, if that is more, and is synced. */
static int end_file(struct backup *backup, struct cn_disk_file *out, const char *path,
                    uint64_t size, uint64_t final_size)
{
    int rc = size < final_size ? cn_disk_truncate(out, final_size) : 0;
    if (rc == 0)
        rc = cn_disk_sync_data(out);
    if (rc == 0)
        rc = cn_disk_sync_parent(backup->to, path);
    return rc < 0 ? cn_err_errno(backup->err, -rc, "cannot write %s in the backup", path) : 0;
}

/* Copies the first `size` bytes, and makes the copy `final_size` long. */
static int copy_bytes(struct backup *backup, struct cn_disk_file *in, const char *path,
                      uint64_t size, uint64_t final_size)
{
    struct cn_disk_file *out;
    int rc = make_folder(backup, path);
    if (rc == 0)
        rc = cn_disk_open(backup->to, path, CN_DISK_CREATE | CN_DISK_EXCLUSIVE, &out);
    if (rc == -EEXIST)
        return 0; /* a blob of the first pass; blobs never change */
    if (rc < 0)
        return cn_err_errno(backup->err, -rc, "cannot create %s in the backup", path);
    uint64_t at = 0;
    uint32_t crc = 0;
    while (rc == 0 && at < size) {
        if (backup->report->cancelled && backup->report->cancelled(backup->report->data)) {
            rc = cn_err_set(backup->err, CN_EABORTED, "the backup was cancelled");
            break;
        }
        size_t part = size - at < COPY_SIZE ? (size_t)(size - at) : COPY_SIZE;
        int64_t count = cn_disk_read(in, backup->buffer, part, at);
        if (count < 0) {
            rc = cn_err_errno(backup->err, (int)-count, "cannot read %s", path);
            break;
        }
        if (count == 0)
            break; /* it became shorter; the log knows */
        rc = cn_disk_write_all(out, backup->buffer, (size_t)count, at);
        if (rc < 0)
            cn_err_errno(backup->err, -rc, "cannot write %s in the backup", path);
        crc = cn_crc32c(crc, backup->buffer, (size_t)count);
        at += (uint64_t)count;
        backup->report->bytes += (uint64_t)count;
    }
    if (rc == 0)
        rc = end_file(backup, out, path, at, final_size);
    cn_disk_close(out);
    backup->report->file_count++;
    if (rc < 0 || at >= final_size)
        return rc < 0 ? rc : note_file(backup, path, crc, at);
    return note_file(backup, path, crc_of_zeros(crc, final_size - at), final_size);
}

static int copy_file(void *data, const char *path)
{
    struct backup *backup = data;
    struct cn_disk_file *in;
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".tmp") == 0)
        return 0;
    const char *slash = strrchr(path, '/');
    if (slash && strcmp(slash + 1, CN_BACKUP_UNFINISHED) == 0) /* by a mount that nobody saw */
        return cn_err_set(backup->err, CN_EINVALID,
                          "the data directory has the folder of an unfinished backup in it: %s",
                          path);
    int rc = cn_disk_open(backup->from, path, CN_DISK_READONLY, &in);
    if (rc == -ENOENT)
        return 0; /* gone meanwhile, by a commit that the copied log has */
    if (rc < 0)
        return cn_err_errno(backup->err, -rc, "cannot open %s", path);
    int64_t size = cn_disk_size(in);
    rc = size < 0 ? cn_err_errno(backup->err, (int)-size, "cannot read %s", path)
                  : copy_bytes(backup, in, path, (uint64_t)size, 0);
    cn_disk_close(in);
    return rc;
}

static int copy_folder(struct backup *backup, const char *path)
{
    int rc = cn_disk_walk(backup->from, path, copy_file, backup);
    if (rc < 0 && backup->err && backup->err->code == 0)
        return cn_err_errno(backup->err, -rc, "cannot list %s", path);
    return rc;
}

/* A segment up to `lsn`, and zeros behind: bytes being written now may be half there. */
static int copy_segment(struct backup *backup, const char *path, uint64_t lsn)
{
    struct cn_segment_reader reader;
    struct cn_record record;
    int rc = cn_segment_reader_open(&reader, backup->from, path, backup->err);
    if (rc < 0)
        return rc;
    while (reader.next_lsn <= lsn &&
           (rc = cn_segment_reader_next(&reader, &record, backup->err)) == 1)
        ;
    if (rc >= 0 && reader.header.first_lsn <= lsn)
        rc = copy_bytes(backup, reader.file, path, reader.offset, reader.file_size);
    cn_segment_reader_close(&reader);
    return rc < 0 ? rc : 0;
}

static int copy_log(struct backup *backup, uint64_t lsn)
{
    struct cn_disk_entries entries;
    int rc = copy_file(backup, "log/checkpoint");
    if (rc < 0)
        return rc;
    rc = cn_disk_entries(backup->from, "log", &entries);
    if (rc < 0)
        return cn_err_errno(backup->err, -rc, "cannot list the folder log");
    for (size_t i = 0; rc == 0 && i < entries.count; i++) {
        const char *name = entries.items[i].name;
        size_t length = strlen(name);
        char path[128];
        snprintf(path, sizeof(path), "log/%.100s", name);
        if (length > 4 && strcmp(name + length - 4, ".seg") == 0)
            rc = copy_segment(backup, path, lsn);
    }
    cn_disk_entries_fini(&entries);
    return rc;
}

/* What is copied in order, or not at all; everything else in the data directory follows. */
static bool is_special(const char *name)
{
    static const char *const names[] = {
        "blobs", "catalog", "objects", "aside",        "history",
        "log",   "FORMAT",  "LOCK",    "control.sock", CN_BACKUP_UNFINISHED};
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

/* The secret of object ids, for one. */
static int copy_others(struct backup *backup)
{
    struct cn_disk_entries entries;
    int rc = cn_disk_entries(backup->from, "", &entries);
    if (rc < 0)
        return cn_err_errno(backup->err, -rc, "cannot list the data directory");
    for (size_t i = 0; rc == 0 && i < entries.count; i++) {
        const struct cn_disk_entry *entry = &entries.items[i];
        if (!is_special(entry->name))
            rc = entry->is_dir ? copy_folder(backup, entry->name) : copy_file(backup, entry->name);
    }
    cn_disk_entries_fini(&entries);
    return rc;
}

static int copy_all(struct backup *backup)
{
    /* aside/ behind objects/: a database set aside meanwhile is copied at least once. */
    static const char *const folders[] = {"blobs", "catalog", "objects", "aside", "history"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < CN_ARRAY_COUNT(folders); i++) {
        /* A new namespace flushes the catalog by itself: not now. */
        bool catalog = strcmp(folders[i], "catalog") == 0;
        if (catalog)
            pthread_mutex_lock(&backup->store->namespace_lock);
        rc = copy_folder(backup, folders[i]);
        if (catalog)
            pthread_mutex_unlock(&backup->store->namespace_lock);
    }
    backup->report->lsn = cn_store_durable(backup->store); /* B3 */
    if (rc == 0)
        rc = copy_log(backup, backup->report->lsn);
    if (rc == 0)
        rc = copy_folder(backup, "blobs"); /* B4 */
    if (rc == 0)
        rc = copy_others(backup);
    if (rc == 0) /* empty: those who only look at the copy find something to lock */
        rc = copy_file(backup, "LOCK");
    if (rc == 0)
        rc = copy_file(backup, "FORMAT");
    return rc;
}

static void note_entry(void *data, const char *name, bool is_dir)
{
    (void)name, (void)is_dir;
    *(bool *)data = true;
}

int cn_store_backup(struct cn_store *store, struct cn_disk *to, struct cn_backup_report *report,
                    struct cn_err *err)
{
    struct cn_err own = {0};
    struct backup backup = {
        .store = store, .from = store->disk, .to = to, .report = report, .err = &own};
    bool occupied = false;
    report->file_count = report->bytes = report->lsn = 0;
    int rc = cn_disk_list(to, "", note_entry, &occupied);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot list the folder of the backup");
    if (occupied)
        return cn_err_set(err, CN_EEXISTS, "the folder of the backup is not empty");
    rc = cn_store_checkpoint(store, err); /* so that there is little log to copy */
    if (rc < 0)
        return rc;
    backup.buffer = cn_alloc(COPY_SIZE);
    rc = begin_manifest(&backup);
    if (rc == 0) {
        cn_keeper_hold(store->keeper);
        rc = copy_all(&backup);
        cn_keeper_release(store->keeper);
        rc = end_manifest(&backup, rc);
    }
    cn_free(backup.buffer);
    if (rc < 0 && err)
        *err = own;
    return rc;
}

/* --- comparing ------------------------------------------------------------------------------- */

static int compare_file(struct cn_disk *copy, uint32_t want, uint64_t size, const char *path,
                        uint8_t *buffer, struct cn_err *err)
{
    struct cn_disk_file *file;
    int64_t got = cn_disk_open(copy, path, CN_DISK_READONLY, &file);
    if (got < 0)
        return cn_err_errno(err, (int)-got, "cannot read %s of the backup again", path);
    uint32_t crc = 0;
    uint64_t at = 0;
    while ((got = cn_disk_read(file, buffer, COPY_SIZE, at)) > 0) {
        crc = cn_crc32c(crc, buffer, (size_t)got);
        at += (uint64_t)got;
    }
    cn_disk_close(file);
    if (got < 0)
        return cn_err_errno(err, (int)-got, "cannot read %s of the backup again", path);
    return crc == want && at == size
               ? 0
               : cn_err_set(err, CN_ECORRUPT, "%s in the backup is not what was written", path);
}

static int compare_line(struct cn_disk *copy, char *line, uint8_t *buffer, struct cn_err *err)
{
    char *at;
    uint32_t crc = (uint32_t)strtoul(line, &at, 16);
    uint64_t size = *at == ' ' ? strtoull(at + 1, &at, 10) : 0;
    if (at == line || *at != ' ')
        return cn_err_set(err, CN_ECORRUPT, "the backup's manifest is not what was written");
    return compare_file(copy, crc, size, at + 1, buffer, err);
}

/* The whole lines of `text`; the rest stays. */
static int compare_lines(struct cn_disk *copy, struct cn_buf *text, uint8_t *buffer,
                         struct cn_err *err)
{
    size_t at = 0;
    int rc = 0;
    uint8_t *end;
    while (rc == 0 && at < text->size && (end = memchr(text->data + at, '\n', text->size - at))) {
        *end = 0;
        rc = compare_line(copy, (char *)text->data + at, buffer, err);
        at = (size_t)(end - text->data) + 1;
    }
    cn_buf_consume(text, at);
    return rc;
}

static int compare_all(struct cn_disk *copy, struct cn_disk_file *manifest, struct cn_err *err)
{
    struct cn_buf text = {0};
    uint8_t *buffer = cn_alloc(COPY_SIZE);
    uint64_t offset = 0;
    int64_t got = 0;
    int rc = 0;
    do {
        cn_buf_reserve(&text, LINES_SIZE);
        got = cn_disk_read(manifest, text.data + text.size, LINES_SIZE, offset);
        if (got < 0)
            rc = cn_err_errno(err, (int)-got, "cannot read the backup's manifest");
        if (got > 0) {
            text.size += (size_t)got;
            offset += (uint64_t)got;
            rc = compare_lines(copy, &text, buffer, err);
        }
    } while (rc == 0 && got > 0);
    if (rc == 0 && (text.size || !offset))
        rc = cn_err_set(err, CN_ECORRUPT, "the backup's manifest is not what was written");
    cn_free(buffer);
    cn_buf_fini(&text);
    return rc;
}

int cn_store_backup_finish(struct cn_disk *copy, struct cn_err *err)
{
    struct cn_disk_file *manifest;
    int rc = cn_disk_open(copy, CN_BACKUP_UNFINISHED, CN_DISK_READONLY, &manifest);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot read the backup's manifest");
    rc = compare_all(copy, manifest, err);
    cn_disk_close(manifest);
    if (rc < 0)
        return rc;
    rc = cn_disk_unlink(copy, CN_BACKUP_UNFINISHED);
    if (rc == 0)
        rc = cn_disk_sync_dir(copy, "");
    return rc < 0 ? cn_err_errno(err, -rc, "cannot finish the backup") : 0;
}
