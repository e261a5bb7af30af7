/* SPDX-License-Identifier: Apache-2.0 */
/* store/history.c - retention, and walking back.
 *
 * Every LSN ever given out is in exactly one of: archives that retention has
 * removed, archives, live log segments. "Archived" happens before "released by
 * the log", so there is never a gap between the two; a segment may be in both for a while.
 *
 * H1  `archives` is ordered by LSN, without overlap; after the first one there is no gap.
 * H2  An archive is removed only from the front.
 * H3  A database set aside at LSN n is kept while any archive or segment with n is.
 *
 * A walk from LSN s back to t takes one source (archive or segment) after the
 * other, the one that holds s first, and holds the object's records of one
 * source in memory at a time. A segment may be archived and its file used again while
 * it is read: the reader then stops early, because LSNs no longer follow
 * each other, and the walk looks for the archive that must be there by then. */
#include "store/history.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/mem.h"
#include "store/archive.h"
#include "store/image.h"
#include "store/pagediff.h"
#include "store/segment.h"

struct archived {
    uint64_t first_lsn, last_lsn;
    int64_t first_ms, last_ms;
    uint64_t size; /* of the file */
};

/* A database that was set aside. */
struct aside {
    struct cn_object_key key;
    uint64_t lsn;
    uint64_t size;
};

struct cn_history {
    struct cn_history_config config;
    struct cn_store_history callbacks;
    pthread_mutex_t lock;      /* guards the rest */
    struct archived *archives; /* owned */
    size_t archive_count, archive_room;
    struct aside *asides; /* owned; in no order */
    size_t aside_count, aside_room;
    uint64_t total_size;
    uint64_t floor_lsn; /* retention has removed what lies below; 0: nothing yet */
    uint64_t serial;    /* of temporary files */
};

/* ---- the list of archives ---- */

static void add_archive(struct cn_history *history, const struct archived *archive)
{
    size_t at = history->archive_count;
    while (at > 0 && history->archives[at - 1].first_lsn >= archive->first_lsn)
        at--;
    if (at < history->archive_count && history->archives[at].first_lsn == archive->first_lsn) {
        history->total_size += archive->size - history->archives[at].size;
        history->archives[at] = *archive; /* archived again after a crash */
        return;
    }
    if (history->archive_count == history->archive_room) {
        history->archive_room = history->archive_room ? history->archive_room * 2 : 64;
        history->archives = cn_realloc(history->archives, history->archive_room * sizeof(*archive));
    }
    memmove(history->archives + at + 1, history->archives + at,
            (history->archive_count - at) * sizeof(*archive));
    history->archives[at] = *archive;
    history->archive_count++;
    history->total_size += archive->size;
}

static void add_aside(struct cn_history *history, const struct aside *aside)
{
    for (size_t i = 0; i < history->aside_count; i++) {
        if (history->asides[i].lsn == aside->lsn)
            return; /* archived again after a crash */
    }
    if (history->aside_count == history->aside_room) {
        history->aside_room = history->aside_room ? history->aside_room * 2 : 16;
        history->asides = cn_realloc(history->asides, history->aside_room * sizeof(*aside));
    }
    history->asides[history->aside_count++] = *aside;
    history->total_size += aside->size;
}

static int64_t size_of_file(struct cn_disk *disk, const char *path)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &file);
    if (rc < 0)
        return rc;
    int64_t size = cn_disk_size(file);
    cn_disk_close(file);
    return size;
}

/* What a look into the folder finds. */
struct scan {
    struct cn_history *history;
    struct cn_err *err;
    int rc;
    char **leftovers; /* owned, and each of them: temporary files of a crash */
    size_t leftover_count;
};

static void scan_archive(struct scan *scan, uint64_t first_lsn, uint64_t last_lsn)
{
    char path[CN_ARCHIVE_PATH_MAX];
    struct cn_archive archive;
    cn_archive_path(first_lsn, last_lsn, path);
    scan->rc = cn_archive_open(&archive, scan->history->config.disk, path, scan->err);
    if (scan->rc < 0)
        return;
    add_archive(scan->history, &(struct archived){.first_lsn = first_lsn,
                                                  .last_lsn = last_lsn,
                                                  .first_ms = archive.header.first_ms,
                                                  .last_ms = archive.header.last_ms,
                                                  .size = (uint64_t)cn_disk_size(archive.file)});
    cn_archive_close(&archive);
}

static void scan_name(void *data, const char *name, bool is_dir)
{
    struct scan *scan = data;
    struct cn_history *history = scan->history;
    uint64_t first_lsn, last_lsn;
    struct aside aside = {0};
    char path[CN_ARCHIVE_PATH_MAX];
    size_t length = strlen(name);
    if (scan->rc < 0 || is_dir)
        return;
    if (cn_archive_name_parse(name, &first_lsn, &last_lsn)) {
        scan_archive(scan, first_lsn, last_lsn);
    } else if (cn_archive_image_name_parse(name, &aside.key, &aside.lsn)) {
        cn_archive_image_path(&aside.key, aside.lsn, path);
        int64_t size = size_of_file(history->config.disk, path);
        aside.size = size > 0 ? (uint64_t)size : 0;
        add_aside(history, &aside);
    } else if (length > 4 && strcmp(name + length - 4, ".tmp") == 0) {
        scan->leftovers = cn_realloc(scan->leftovers, (scan->leftover_count + 1) * sizeof(char *));
        scan->leftovers[scan->leftover_count++] = cn_sprintf("history/%s", name);
    }
}

/* ---- retention ---- */

static bool goes(const struct cn_history *history, const struct archived *oldest, int64_t now_ms)
{
    return oldest->last_ms < now_ms - history->config.retention_ms ||
           (history->config.size_max && history->total_size > history->config.size_max);
}

/* Removes what is past its time or too much; H2, H3. With the lock held. */
static void trim(struct cn_history *history)
{
    struct cn_disk *disk = history->config.disk;
    int64_t now_ms = cn_clock_wall_ms(history->config.clock);
    char path[CN_ARCHIVE_PATH_MAX];
    size_t gone = 0;
    while (gone < history->archive_count && goes(history, &history->archives[gone], now_ms)) {
        const struct archived *oldest = &history->archives[gone];
        cn_archive_path(oldest->first_lsn, oldest->last_lsn, path);
        int rc = cn_disk_unlink(disk, path);
        if (rc < 0 && rc != -ENOENT) {
            cn_warn("cannot remove %s, which is past its time: %s", path, cn_err_name(rc));
            break; /* tried again with the next segment */
        }
        history->total_size -= oldest->size;
        history->floor_lsn = oldest->last_lsn + 1;
        gone++;
    }
    history->archive_count -= gone;
    if (gone > 0)
        memmove(history->archives, history->archives + gone,
                history->archive_count * sizeof(history->archives[0]));
    for (size_t i = 0; i < history->aside_count;) {
        const struct aside *aside = &history->asides[i];
        if (aside->lsn >= history->floor_lsn) {
            i++;
            continue;
        }
        cn_archive_image_path(&aside->key, aside->lsn, path);
        (void)cn_disk_unlink(disk, path); /* at worst found and removed at the next start */
        history->total_size -= aside->size;
        history->asides[i] = history->asides[--history->aside_count];
    }
}

/* ---- callbacks of the store ---- */

static int on_segment(void *data, const char *path, const struct cn_segment_info *segment,
                      struct cn_err *err)
{
    struct cn_history *history = data;
    if (history->config.retention_ms < 0 || segment->last_lsn < segment->first_lsn)
        return 0;
    struct cn_archive_header header;
    int rc = cn_archive_write(history->config.disk, path, segment->last_lsn, &header, err);
    if (rc < 0)
        return rc;
    struct archived archive = {header.first_lsn, header.last_lsn, header.first_ms, header.last_ms,
                               header.directory_offset + header.directory_size};
    pthread_mutex_lock(&history->lock);
    add_archive(history, &archive);
    trim(history);
    pthread_mutex_unlock(&history->lock);
    return 0;
}

static int on_set_aside(void *data, const struct cn_object_key *key, uint64_t lsn, const char *path,
                        struct cn_err *err)
{
    struct cn_history *history = data;
    if (history->config.retention_ms < 0)
        return 0;
    int rc = cn_archive_image_write(history->config.disk, path, key, lsn, err);
    if (rc < 0)
        return rc;
    char image[CN_ARCHIVE_PATH_MAX];
    cn_archive_image_path(key, lsn, image);
    int64_t size = size_of_file(history->config.disk, image);
    struct aside aside = {.key = *key, .lsn = lsn, .size = size > 0 ? (uint64_t)size : 0};
    pthread_mutex_lock(&history->lock);
    add_aside(history, &aside);
    pthread_mutex_unlock(&history->lock);
    return 0;
}

/* ---- opening ---- */

/* Opens the entry of log/ if it is a segment. One that cannot be opened is passed over: it may
 * just have gone, and if it was needed that shows as a gap. */
static bool open_segment(struct cn_disk *disk, const char *name, bool is_dir,
                         struct cn_segment_reader *reader)
{
    char path[CN_ARCHIVE_PATH_MAX];
    size_t length = strlen(name);
    if (is_dir || length < 4 || strcmp(name + length - 4, ".seg") != 0 || length > 100)
        return false;
    snprintf(path, sizeof(path), "log/%s", name);
    return cn_segment_reader_open(reader, disk, path, NULL) == 0;
}

struct oldest_segment {
    struct cn_disk *disk;
    uint64_t first_lsn; /* 0: none found */
};

static void look_for_oldest(void *data, const char *name, bool is_dir)
{
    struct oldest_segment *oldest = data;
    struct cn_segment_reader reader;
    if (!open_segment(oldest->disk, name, is_dir, &reader))
        return;
    if (oldest->first_lsn == 0 || reader.header.first_lsn < oldest->first_lsn)
        oldest->first_lsn = reader.header.first_lsn;
    cn_segment_reader_close(&reader);
}

int cn_history_open(const struct cn_history_config *config, struct cn_history **history,
                    struct cn_err *err)
{
    struct cn_history *opened = CN_NEW(struct cn_history);
    opened->config = *config;
    if (!opened->config.clock)
        opened->config.clock = cn_clock_system();
    if (opened->config.retention_ms == 0)
        opened->config.retention_ms = CN_HISTORY_RETENTION_MS_DEFAULT;
    opened->callbacks =
        (struct cn_store_history){.data = opened, .segment = on_segment, .set_aside = on_set_aside};
    pthread_mutex_init(&opened->lock, NULL);
    struct scan scan = {.history = opened, .err = err};
    int rc = cn_disk_list(config->disk, "history", scan_name, &scan);
    if (rc == -ENOENT)
        rc = 0;
    else if (rc < 0)
        rc = cn_err_errno(err, -rc, "cannot list the folder history");
    if (rc == 0)
        rc = scan.rc;
    for (size_t i = 0; i < scan.leftover_count; i++) {
        (void)cn_disk_unlink(config->disk, scan.leftovers[i]); /* only takes space */
        cn_free(scan.leftovers[i]);
    }
    cn_free(scan.leftovers);
    if (rc < 0) {
        cn_history_close(opened);
        return rc;
    }
    /* What is older than the oldest archive, or else the oldest segment, is gone. */
    struct oldest_segment oldest = {.disk = config->disk};
    if (opened->archive_count > 0)
        opened->floor_lsn = opened->archives[0].first_lsn;
    else if (cn_disk_list(config->disk, "log", look_for_oldest, &oldest) == 0)
        opened->floor_lsn = oldest.first_lsn;
    trim(opened);
    *history = opened;
    return 0;
}

void cn_history_close(struct cn_history *history)
{
    if (!history)
        return;
    pthread_mutex_destroy(&history->lock);
    cn_free(history->archives);
    cn_free(history->asides);
    cn_free(history);
}

const struct cn_store_history *cn_history_callbacks(struct cn_history *history)
{
    return &history->callbacks;
}

void cn_history_stats(struct cn_history *history, struct cn_history_stats *stats)
{
    pthread_mutex_lock(&history->lock);
    *stats = (struct cn_history_stats){.archive_count = history->archive_count,
                                       .archive_bytes = history->total_size};
    if (history->archive_count > 0) {
        stats->oldest_lsn = history->archives[0].first_lsn;
        stats->oldest_ms = history->archives[0].first_ms;
    }
    pthread_mutex_unlock(&history->lock);
}

/* ---- sources: archives and live segments ---- */

/* Where records of some range of LSNs are. */
struct source {
    uint64_t first_lsn;
    bool live; /* a segment of the log, not an archive */
    char path[CN_ARCHIVE_PATH_MAX];
};

static bool find_archive(struct cn_history *history, uint64_t lsn, struct source *source)
{
    bool found = false;
    pthread_mutex_lock(&history->lock);
    for (size_t i = 0; !found && i < history->archive_count; i++) {
        const struct archived *archive = &history->archives[i];
        if (lsn < archive->first_lsn || lsn > archive->last_lsn)
            continue;
        *source = (struct source){.first_lsn = archive->first_lsn};
        cn_archive_path(archive->first_lsn, archive->last_lsn, source->path);
        found = true;
    }
    pthread_mutex_unlock(&history->lock);
    return found;
}

struct segment_search {
    struct cn_disk *disk;
    uint64_t lsn;
    struct source best;
};

static void look_at_segment(void *data, const char *name, bool is_dir)
{
    struct segment_search *search = data;
    struct cn_segment_reader reader;
    if (!open_segment(search->disk, name, is_dir, &reader))
        return;
    uint64_t first_lsn = reader.header.first_lsn;
    if (first_lsn <= search->lsn && first_lsn > search->best.first_lsn) {
        search->best = (struct source){.first_lsn = first_lsn, .live = true};
        snprintf(search->best.path, sizeof(search->best.path), "%s", reader.path);
    }
    cn_segment_reader_close(&reader);
}

/* The source that holds `lsn`. */
static int find_source(struct cn_history *history, uint64_t lsn, struct source *source,
                       struct cn_err *err)
{
    if (find_archive(history, lsn, source))
        return 0;
    struct segment_search search = {.disk = history->config.disk, .lsn = lsn};
    int rc = cn_disk_list(history->config.disk, "log", look_at_segment, &search);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot list the folder log");
    if (search.best.first_lsn == 0)
        return cn_err_set(err, CN_ENOTFOUND, "history does not reach back to commit %" PRIu64, lsn);
    *source = search.best;
    return 0;
}

/* Records of one object, oldest first, one behind the other as in the log. */
static int read_live(struct cn_history *history, const struct source *source,
                     const struct cn_object_key *key, uint64_t to, struct cn_buf *records,
                     struct cn_err *err)
{
    struct cn_segment_reader reader;
    int rc = cn_segment_reader_open(&reader, history->config.disk, source->path, err);
    if (rc < 0)
        return rc;
    while (reader.next_lsn <= to) {
        struct cn_record record;
        struct cn_commit commit;
        rc = cn_segment_reader_next(&reader, &record, err);
        if (rc == 0)
            rc = -EAGAIN; /* archived meanwhile, and its file used again */
        if (rc < 0)
            break;
        if (record.header.kind != CN_RECORD_COMMIT)
            continue;
        rc = cn_commit_read(&record, &commit, err);
        if (rc < 0)
            break;
        if (memcmp(&commit.head.key, key, sizeof(*key)) != 0)
            continue;
        size_t size = cn_record_size(record.header.body_size);
        size_t used = sizeof(record.header) + record.header.body_size;
        static const uint8_t padding[8];
        cn_buf_append(records, &record.header, sizeof(record.header));
        cn_buf_append(records, record.body, record.header.body_size);
        cn_buf_append(records, padding, size - used);
    }
    cn_segment_reader_close(&reader);
    return rc < 0 ? rc : 0;
}

static int read_archived(struct cn_history *history, const struct source *source,
                         const struct cn_object_key *key, struct cn_buf *records,
                         struct cn_err *err)
{
    struct cn_archive archive;
    struct cn_archive_object object;
    int rc = cn_archive_open(&archive, history->config.disk, source->path, err);
    if (rc < 0)
        return rc;
    if (cn_archive_find(&archive, key, &object))
        rc = cn_archive_read(&archive, &object, records, err);
    cn_archive_close(&archive);
    return rc;
}

/* Replaces `records` by the object's records in the source that holds `lsn`; *first_lsn is where
 * that source begins. Of a live segment nothing behind `lsn` is read. */
static int read_source(struct cn_history *history, const struct cn_object_key *key, uint64_t lsn,
                       uint64_t *first_lsn, struct cn_buf *records, struct cn_err *err)
{
    for (int attempt = 0;; attempt++) {
        struct source source;
        int rc = find_source(history, lsn, &source, err);
        if (rc < 0)
            return rc;
        *first_lsn = source.first_lsn;
        cn_buf_clear(records);
        if (!source.live)
            return read_archived(history, &source, key, records, err);
        rc = read_live(history, &source, key, lsn, records, err);
        if (rc == -EAGAIN && attempt == 3)
            return cn_err_set(err, CN_ECORRUPT, "commit %" PRIu64 " is missing in the log", lsn);
        if (rc != -EAGAIN && rc != -ENOENT)
            return rc;
    }
}

/* ---- an object as of an LSN ---- */

/* A database under construction in a file. */
struct canvas {
    struct cn_disk *disk; /* where the file is */
    struct cn_disk_file *file;
    const char *path;
    uint32_t page_count;
};

static int canvas_write(struct canvas *canvas, uint32_t page_no, const uint8_t *page)
{
    return cn_disk_write_all(canvas->file, page, CN_PAGE_SIZE,
                             (uint64_t)(page_no - 1) * CN_PAGE_SIZE);
}

static int on_page(void *data, uint32_t page_no, const uint8_t *page)
{
    struct canvas *canvas = data;
    if (page_no > canvas->page_count)
        canvas->page_count = page_no;
    return canvas_write(canvas, page_no, page);
}

static int canvas_resize(struct canvas *canvas, uint32_t page_count, struct cn_err *err)
{
    canvas->page_count = page_count;
    int rc = cn_disk_truncate(canvas->file, (uint64_t)page_count * CN_PAGE_SIZE);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot resize %s", canvas->path) : 0;
}

/* Takes one commit away: its differences, applied to the pages after it, give those before. */
static int undo_commit(struct canvas *canvas, const struct cn_commit *commit, struct cn_err *err)
{
    uint8_t page[CN_PAGE_SIZE];
    struct cn_commit_page change;
    size_t at = 0;
    if (canvas->page_count != commit->head.pages_after)
        return cn_err_set(err, CN_ECORRUPT,
                          "a commit has %" PRIu32 " pages, the next begins with %" PRIu32,
                          commit->head.pages_after, canvas->page_count);
    int rc = 0;
    if (commit->head.pages_before > commit->head.pages_after)
        rc = canvas_resize(canvas, commit->head.pages_before, err); /* new pages are zeros */
    while (rc == 0 && cn_commit_page(commit, &at, &change)) {
        if (change.page_no > commit->head.pages_before)
            continue; /* it did not exist */
        uint64_t offset = (uint64_t)(change.page_no - 1) * CN_PAGE_SIZE;
        int64_t count = cn_disk_read(canvas->file, page, CN_PAGE_SIZE, offset);
        if (count != CN_PAGE_SIZE)
            return cn_err_errno(err, count < 0 ? (int)-count : EIO, "cannot read %s", canvas->path);
        rc = cn_pagediff_apply(page, CN_PAGE_SIZE, change.diff, change.diff_size);
        if (rc < 0)
            return cn_err_set(err, rc, "the difference of page %" PRIu32 " is malformed",
                              change.page_no);
        rc = canvas_write(canvas, change.page_no, page);
        if (rc < 0)
            return cn_err_errno(err, -rc, "cannot write %s", canvas->path);
    }
    if (rc == 0 && commit->head.pages_before < commit->head.pages_after)
        rc = canvas_resize(canvas, commit->head.pages_before, err);
    return rc;
}

/* Copies a plain database file that was set aside and is not archived yet. */
static int copy_aside(struct cn_history *history, struct canvas *canvas, const char *path)
{
    struct cn_disk_file *file;
    uint8_t page[CN_PAGE_SIZE];
    int rc = cn_disk_open(history->config.disk, path, CN_DISK_READONLY, &file);
    if (rc < 0)
        return rc;
    for (uint32_t page_no = 1; rc == 0; page_no++) {
        int64_t count =
            cn_disk_read(file, page, CN_PAGE_SIZE, (uint64_t)(page_no - 1) * CN_PAGE_SIZE);
        if (count != CN_PAGE_SIZE) {
            rc = count < 0 ? (int)count : 0;
            break;
        }
        rc = on_page(canvas, page_no, page);
    }
    cn_disk_close(file);
    return rc;
}

/* Reads the database that the commit `lsn` set aside, from either place. -ENOENT: from neither. */
static int read_set_aside(struct cn_history *history, struct canvas *canvas,
                          const struct cn_object_key *key, uint64_t lsn, struct cn_err *err)
{
    char image_path[CN_ARCHIVE_PATH_MAX], aside_path[CN_IMAGE_PATH_MAX];
    struct cn_archive_image image;
    cn_archive_image_path(key, lsn, image_path);
    cn_image_aside_path(key, lsn, aside_path);
    int rc = canvas_resize(canvas, 0, err);
    if (rc < 0)
        return rc;
    rc = copy_aside(history, canvas, aside_path);
    if (rc == 0)
        return 0;
    if (rc != -ENOENT)
        return cn_err_errno(err, -rc, "cannot read %s", aside_path);
    return cn_archive_image_read(history->config.disk, image_path, on_page, canvas, &image, err);
}

/* Takes away a commit that took the whole database away: the file it set aside comes back. */
static int undo_reset(struct cn_history *history, struct cn_store *store, struct canvas *canvas,
                      const struct cn_object_key *key, uint64_t lsn, struct cn_err *err)
{
    int rc = read_set_aside(history, canvas, key, lsn, err);
    if (rc == -ENOENT) { /* a checkpoint sets aside what still waits to be */
        rc = cn_store_checkpoint(store, err);
        if (rc == 0)
            rc = read_set_aside(history, canvas, key, lsn, err);
    }
    /* If the database was empty, nothing was set aside; undo_commit() checks the size. */
    return rc == -ENOENT ? 0 : rc;
}

/* Takes the records away, newest first, down to and without `until_lsn`. */
static int undo_records(struct cn_history *history, struct cn_store *store, struct canvas *canvas,
                        const struct cn_object_key *key, const struct cn_buf *records,
                        uint64_t until_lsn, uint64_t from_lsn, struct cn_err *err)
{
    size_t *offsets = NULL, count = 0, room = 0;
    struct cn_record record;
    for (size_t at = 0; at < records->size;) {
        uint64_t size = cn_record_read(records->data + at, records->size - at, &record);
        CN_ASSERT(size > 0); /* checked when it was read */
        if (count == room) {
            room = room ? room * 2 : 64;
            offsets = cn_realloc(offsets, room * sizeof(*offsets));
        }
        if (record.header.lsn > until_lsn && record.header.lsn <= from_lsn)
            offsets[count++] = at;
        at += size;
    }
    int rc = 0;
    while (rc == 0 && count > 0) {
        struct cn_commit commit;
        size_t at = offsets[--count];
        (void)cn_record_read(records->data + at, records->size - at, &record); /* as above */
        rc = cn_commit_read(&record, &commit, err);
        if (rc < 0)
            break;
        if (commit.head.flags & (CN_COMMIT_RESET | CN_COMMIT_DELETED))
            rc = undo_reset(history, store, canvas, key, record.header.lsn, err);
        else
            rc = undo_commit(canvas, &commit, err);
        if (rc < 0)
            cn_err_context(err, "commit %" PRIu64, record.header.lsn);
    }
    cn_free(offsets);
    return rc;
}

/* Draws the object as of `lsn` on the canvas. */
static int draw(struct cn_history *history, struct cn_store *store, const struct cn_object_key *key,
                uint64_t lsn, struct canvas *canvas, struct cn_err *err)
{
    uint64_t present;
    uint32_t page_count;
    int rc = cn_store_snapshot(store, key, on_page, canvas, &page_count, &present, err);
    if (rc == CN_ENOTFOUND) {
        present = cn_store_durable(store);
        rc = 0;
    }
    /* The records to walk over must be in the files before they can be read there. */
    if (rc == 0)
        rc = cn_store_wait(store, present, err);
    if (rc < 0)
        return rc;
    struct cn_buf records = {0};
    while (rc == 0 && present > lsn) {
        uint64_t first_lsn;
        rc = read_source(history, key, present, &first_lsn, &records, err);
        if (rc < 0)
            break;
        rc = undo_records(history, store, canvas, key, &records, lsn, present, err);
        present = first_lsn - 1;
    }
    cn_buf_fini(&records);
    return rc;
}

/* ---- bookmarks ---- */

static uint64_t settled_lsn(struct cn_store *store, uint64_t lsn)
{
    /* Not the last LSN given out: after a crash it may belong to another commit. */
    uint64_t durable = cn_store_durable(store);
    return lsn > durable ? lsn : durable;
}

void cn_history_bookmark_now(struct cn_history *history, struct cn_store *store,
                             const struct cn_object_key *key, uint64_t lsn,
                             char text[CN_BOOKMARK_SIZE])
{
    struct cn_bookmark bookmark = {.lsn = settled_lsn(store, lsn),
                                   .time_ms = cn_clock_wall_ms(history->config.clock)};
    cn_bookmark_format(&bookmark, key, text);
}

void cn_history_bookmark_undo(struct cn_history *history, struct cn_store *store,
                              const struct cn_object_key *key, uint64_t lsn,
                              char text[CN_BOOKMARK_SIZE])
{
    struct cn_bookmark bookmark = {.lsn = settled_lsn(store, lsn),
                                   .time_ms = cn_clock_wall_ms(history->config.clock),
                                   .before_restore = true};
    cn_bookmark_format(&bookmark, key, text);
}

/* The last LSN of the live log at or before a time; 0 if all of it is later. */
static int live_lsn_at(struct cn_history *history, uint64_t from, uint64_t to, int64_t time_ms,
                       uint64_t *lsn, struct cn_err *err)
{
    int rc = 0;
    *lsn = from - 1;
    while (from <= to) {
        struct source source;
        struct cn_segment_reader reader;
        struct cn_record record;
        rc = find_source(history, from, &source, err);
        if (rc < 0)
            return rc;
        if (!source.live) {
            /* Archived since the caller looked. */
            struct cn_archive archive;
            rc = cn_archive_open(&archive, history->config.disk, source.path, err);
            if (rc < 0)
                return rc;
            *lsn = cn_archive_lsn_at(&archive, time_ms);
            bool ends = *lsn < archive.header.last_lsn;
            cn_archive_close(&archive);
            if (ends)
                return 0;
            from = *lsn + 1;
            continue;
        }
        rc = cn_segment_reader_open(&reader, history->config.disk, source.path, err);
        if (rc < 0)
            return rc;
        bool later = false;
        while (!later && reader.next_lsn <= to &&
               (rc = cn_segment_reader_next(&reader, &record, err)) == 1) {
            later = record.header.time_ms > time_ms;
            if (!later)
                *lsn = record.header.lsn;
        }
        uint64_t next = reader.next_lsn;
        cn_segment_reader_close(&reader);
        if (rc < 0 || later)
            return rc < 0 ? rc : 0;
        if (next <= from)
            return cn_err_set(err, CN_ECORRUPT, "commit %" PRIu64 " is missing in the log", from);
        from = next;
    }
    return 0;
}

int cn_history_bookmark_at(struct cn_history *history, struct cn_store *store,
                           const struct cn_object_key *key, int64_t time_ms,
                           char text[CN_BOOKMARK_SIZE], struct cn_err *err)
{
    if (time_ms > cn_clock_wall_ms(history->config.clock))
        return cn_err_set(err, CN_EINVALID, "the time lies in the future");
    struct cn_bookmark bookmark = {.time_ms = time_ms};
    struct archived holder = {0}; /* the last archive that begins at or before the time */
    uint64_t live_from = 1, floor;
    pthread_mutex_lock(&history->lock);
    floor = history->floor_lsn;
    bool too_old =
        floor > 1 && history->archive_count > 0 && time_ms < history->archives[0].first_ms;
    for (size_t i = 0; i < history->archive_count; i++) {
        const struct archived *archive = &history->archives[i];
        live_from = archive->last_lsn + 1;
        if (archive->first_ms <= time_ms)
            holder = *archive;
    }
    bool in_live = history->archive_count == 0 ||
                   history->archives[history->archive_count - 1].last_ms <= time_ms;
    pthread_mutex_unlock(&history->lock);
    live_from = live_from > floor ? live_from : floor;
    if (too_old)
        return cn_err_set(err, CN_ENOTFOUND, "history does not reach back to that time");
    int rc = 0;
    if (in_live) {
        rc = live_lsn_at(history, live_from ? live_from : 1, cn_store_durable(store), time_ms,
                         &bookmark.lsn, err);
    } else if (holder.first_lsn > 0) {
        struct cn_archive archive;
        char path[CN_ARCHIVE_PATH_MAX];
        cn_archive_path(holder.first_lsn, holder.last_lsn, path);
        rc = cn_archive_open(&archive, history->config.disk, path, err);
        if (rc == 0) {
            bookmark.lsn = cn_archive_lsn_at(&archive, time_ms);
            cn_archive_close(&archive);
        }
    }
    if (rc == 0 && floor > 1 && bookmark.lsn < floor) /* before the oldest record there is */
        rc = cn_err_set(err, CN_ENOTFOUND, "history does not reach back to that time");
    if (rc == 0)
        cn_bookmark_format(&bookmark, key, text);
    return rc;
}

/* The LSN of the first restore of the object after `lsn`, or 0. */
static int first_restore(struct cn_history *history, struct cn_store *store,
                         const struct cn_object_key *key, uint64_t lsn, uint64_t *restore_lsn,
                         struct cn_err *err)
{
    struct cn_buf records = {0};
    uint64_t durable = cn_store_durable(store);
    int rc = 0;
    *restore_lsn = 0;
    /* Backwards over the sources; the oldest restore found last is the first. */
    for (uint64_t to = durable; rc == 0 && to > lsn;) {
        uint64_t source_lsn, first = 0;
        rc = read_source(history, key, to, &source_lsn, &records, err);
        if (rc < 0)
            break;
        for (size_t at = 0; at < records.size;) {
            struct cn_record record;
            struct cn_commit commit;
            uint64_t size = cn_record_read(records.data + at, records.size - at, &record);
            CN_ASSERT(size > 0); /* checked when it was read */
            at += size;
            if (record.header.lsn <= lsn || record.header.lsn > to || first)
                continue;
            rc = cn_commit_read(&record, &commit, err);
            if (rc == 0 && commit.head.flags & CN_COMMIT_RESTORE)
                first = record.header.lsn;
        }
        *restore_lsn = first ? first : *restore_lsn;
        to = source_lsn - 1;
    }
    cn_buf_fini(&records);
    return rc;
}

/* Turns a bookmark into the LSN it means, if that is within what is kept. */
static int resolve(struct cn_history *history, struct cn_store *store,
                   const struct cn_object_key *key, const char *text, uint64_t *lsn,
                   struct cn_err *err)
{
    struct cn_bookmark bookmark;
    int rc = cn_bookmark_parse(text, strlen(text), key, &bookmark, err);
    if (rc < 0)
        return rc;
    if (bookmark.lsn > cn_log_appended(cn_store_log(store)))
        return cn_err_set(err, CN_EINVALID, "the bookmark lies in the future");
    pthread_mutex_lock(&history->lock);
    uint64_t floor = history->floor_lsn;
    pthread_mutex_unlock(&history->lock);
    if (bookmark.lsn + 1 < floor)
        return cn_err_set(err, CN_ENOTFOUND,
                          "the bookmark is older than what is kept (see the retention time)");
    *lsn = bookmark.lsn;
    if (bookmark.before_restore) {
        uint64_t restore_lsn;
        rc = first_restore(history, store, key, bookmark.lsn, &restore_lsn, err);
        if (rc < 0)
            return rc;
        *lsn = restore_lsn ? restore_lsn - 1 : cn_log_appended(cn_store_log(store));
    }
    return 0;
}

int cn_history_check(struct cn_history *history, struct cn_store *store,
                     const struct cn_object_key *key, const char *bookmark, struct cn_err *err)
{
    uint64_t lsn;
    return resolve(history, store, key, bookmark, &lsn, err);
}

/* ---- restoring and copying ---- */

static int canvas_open(struct canvas *canvas, struct cn_disk *disk, const char *path,
                       struct cn_err *err)
{
    *canvas = (struct canvas){.disk = disk, .path = path};
    int rc = cn_disk_open(disk, path, CN_DISK_CREATE | CN_DISK_EXCLUSIVE, &canvas->file);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot create %s", path) : 0;
}

static int read_canvas(void *data, uint32_t page_no, uint8_t page[CN_PAGE_SIZE], struct cn_err *err)
{
    struct canvas *canvas = data;
    int64_t count =
        cn_disk_read(canvas->file, page, CN_PAGE_SIZE, (uint64_t)(page_no - 1) * CN_PAGE_SIZE);
    if (count != CN_PAGE_SIZE)
        return cn_err_errno(err, count < 0 ? (int)-count : EIO, "cannot read %s", canvas->path);
    return 0;
}

int cn_history_restore(struct cn_history *history, struct cn_store *store,
                       const struct cn_object_key *key, const char *bookmark, uint64_t *lsn,
                       char undo[CN_BOOKMARK_SIZE], struct cn_err *err)
{
    return cn_history_restore_from(history, store, key, key, bookmark, lsn, undo, err);
}

int cn_history_restore_from(struct cn_history *history, struct cn_store *store,
                            const struct cn_object_key *key, const struct cn_object_key *source,
                            const char *bookmark, uint64_t *lsn, char undo[CN_BOOKMARK_SIZE],
                            struct cn_err *err)
{
    uint64_t target, restored;
    struct canvas canvas;
    char path[64];
    int rc = resolve(history, store, source, bookmark, &target, err);
    if (rc < 0)
        return rc;
    rc = cn_disk_mkdirs(history->config.disk, "history");
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot create the folder history");
    pthread_mutex_lock(&history->lock);
    snprintf(path, sizeof(path), "history/restore-%" PRIu64 ".tmp", ++history->serial);
    pthread_mutex_unlock(&history->lock);
    (void)cn_disk_unlink(history->config.disk, path); /* usually there is none */
    rc = canvas_open(&canvas, history->config.disk, path, err);
    if (rc < 0)
        return rc;
    rc = draw(history, store, source, target, &canvas, err);
    if (rc == 0) {
        struct cn_page_source pages = {.data = &canvas, .read = read_canvas};
        rc = cn_store_replace(store, key, canvas.page_count, &pages, &restored, err);
    }
    cn_disk_close(canvas.file);
    (void)cn_disk_unlink(history->config.disk, path); /* opening removes it otherwise */
    if (rc < 0)
        return rc;
    if (lsn)
        *lsn = restored;
    struct cn_bookmark before = {.lsn = restored - 1,
                                 .time_ms = cn_clock_wall_ms(history->config.clock)};
    if (undo)
        cn_bookmark_format(&before, key, undo);
    return 0;
}

int cn_history_copy(struct cn_history *history, struct cn_store *store,
                    const struct cn_object_key *key, const char *bookmark, struct cn_disk *disk,
                    const char *path, struct cn_err *err)
{
    uint64_t target = UINT64_MAX;
    struct canvas canvas;
    int rc = bookmark ? resolve(history, store, key, bookmark, &target, err) : 0;
    if (rc == 0)
        rc = canvas_open(&canvas, disk, path, err);
    if (rc < 0)
        return rc;
    rc = draw(history, store, key, target, &canvas, err);
    if (rc == 0 && canvas.page_count == 0)
        rc = cn_err_set(err, CN_ENOTFOUND, "the object had no database at that moment");
    if (rc == 0) {
        rc = cn_disk_sync_data(canvas.file);
        if (rc == 0)
            rc = cn_disk_sync_parent(disk, path);
        if (rc < 0)
            rc = cn_err_errno(err, -rc, "cannot write %s", path);
    }
    cn_disk_close(canvas.file);
    if (rc < 0)
        (void)cn_disk_unlink(disk, path); /* an incomplete copy is of no use */
    return rc;
}
