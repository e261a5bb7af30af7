/* SPDX-License-Identifier: Apache-2.0 */
#include "store/backup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "store/checkpoint.h"
#include "store/log.h"
#include "store/segment.h"
#include "store/store_private.h"

enum { COPY_SIZE = 1 << 20 };

struct backup {
    struct cn_store *store;
    struct cn_disk *from, *to;
    struct cn_backup_report *report;
    struct cn_err *err;
    uint8_t *buffer;  /* owned */
    char folder[160]; /* the last one made */
};

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
    for (uint64_t at = 0; rc == 0 && at < size;) {
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
        at += (uint64_t)count;
        backup->report->bytes += (uint64_t)count;
    }
    if (rc == 0) {
        rc = cn_disk_size(out) < (int64_t)final_size ? cn_disk_truncate(out, final_size) : 0;
        if (rc == 0)
            rc = cn_disk_sync_data(out);
        if (rc == 0)
            rc = cn_disk_sync_parent(backup->to, path);
        if (rc < 0)
            cn_err_errno(backup->err, -rc, "cannot write %s in the backup", path);
    }
    cn_disk_close(out);
    backup->report->file_count++;
    return rc;
}

static int copy_file(void *data, const char *path)
{
    struct backup *backup = data;
    struct cn_disk_file *in;
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".tmp") == 0)
        return 0;
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
    static const char *const names[] = {"blobs", "catalog", "objects", "aside",       "history",
                                        "log",   "FORMAT",  "LOCK",    "control.sock"};
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
    cn_keeper_hold(store->keeper);
    rc = copy_all(&backup);
    cn_keeper_release(store->keeper);
    cn_free(backup.buffer);
    if (rc < 0 && err)
        *err = own;
    return rc;
}
