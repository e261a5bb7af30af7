/* SPDX-License-Identifier: Apache-2.0 */
/* store/history.c - what is kept of the past, and for how long; moments in it.
 *
 * Every LSN ever given out is in exactly one of: archives that retention has
 * removed, archives, live log segments. "Archived" happens before "released by
 * the log", so there is never a gap between the two; a segment may be in both for a while.
 *
 * H1  `archives` is ordered by LSN, without overlap; after the first one there is no gap.
 * H2  An archive is removed only from the front.
 * H3  A database set aside at LSN n is kept while any archive or segment with n is.
 */
#include "store/history.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/mem.h"
#include "store/archive.h"
#include "store/history_private.h"
#include "store/image.h"
#include "store/pagediff.h"
#include "store/segment.h"

/* ---- the list of archives ---- */

static void add_archive(struct cn_history *history, const struct cn_history_archive *archive)
{
    size_t at = history->archive_count;
    while (at > 0 && history->archives[at - 1].first_lsn >= archive->first_lsn)
        at--;
    if (at < history->archive_count && history->archives[at].first_lsn == archive->first_lsn) {
        history->total_size += archive->size - history->archives[at].size;
        history->archives[at] = *archive; /* archived again after a crash */
        return;
    }
    CN_GROW(history->archives, history->archive_count, history->archive_room);
    memmove(history->archives + at + 1, history->archives + at,
            (history->archive_count - at) * sizeof(*archive));
    history->archives[at] = *archive;
    history->archive_count++;
    history->total_size += archive->size;
}

static void add_aside(struct cn_history *history, const struct cn_history_aside *aside)
{
    for (size_t i = 0; i < history->aside_count; i++) {
        if (history->asides[i].lsn == aside->lsn)
            return; /* archived again after a crash */
    }
    CN_GROW(history->asides, history->aside_count, history->aside_room);
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
    add_archive(scan->history,
                &(struct cn_history_archive){.first_lsn = first_lsn,
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
    struct cn_history_aside aside = {0};
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

/* Databases set aside by commits that are still in the log do not count: no archive that goes
 * would take them along. */
static uint64_t archived_size(const struct cn_history *history)
{
    uint64_t last_lsn = history->archives[history->archive_count - 1].last_lsn;
    uint64_t size = history->total_size;
    for (size_t i = 0; i < history->aside_count; i++) {
        if (history->asides[i].lsn > last_lsn)
            size -= history->asides[i].size;
    }
    return size;
}

static bool goes(const struct cn_history *history, const struct cn_history_archive *oldest,
                 int64_t now_ms)
{
    return oldest->last_ms < now_ms - history->config.retention_ms ||
           (history->config.size_max && archived_size(history) > history->config.size_max);
}

/* H3: databases set aside before what is left of the archives go with the others. */
static void drop_asides(struct cn_history *history)
{
    char path[CN_ARCHIVE_PATH_MAX];
    for (size_t i = 0; i < history->aside_count;) {
        const struct cn_history_aside *aside = &history->asides[i];
        if (aside->lsn >= history->floor_lsn) {
            i++;
            continue;
        }
        cn_archive_image_path(&aside->key, aside->lsn, path);
        (void)cn_disk_unlink(history->config.disk, path); /* or at the next start */
        history->total_size -= aside->size;
        history->asides[i] = history->asides[--history->aside_count];
    }
}

/* Removes what is past its time or too much; H2, H3. With the lock held. */
static void trim(struct cn_history *history)
{
    int64_t now_ms = cn_clock_wall_ms(history->config.clock);
    char path[CN_ARCHIVE_PATH_MAX];
    size_t gone = 0;
    while (gone < history->archive_count && goes(history, &history->archives[gone], now_ms)) {
        const struct cn_history_archive *oldest = &history->archives[gone];
        cn_archive_path(oldest->first_lsn, oldest->last_lsn, path);
        int rc = cn_disk_unlink(history->config.disk, path);
        if (rc < 0 && rc != -ENOENT) {
            cn_warn("cannot remove %s, which is past its time: %s", path, cn_err_name(rc));
            break; /* tried again with the next segment */
        }
        history->total_size -= oldest->size;
        history->floor_lsn = oldest->last_lsn + 1;
        gone++;
        drop_asides(history); /* before the next: their size counts */
    }
    history->archive_count -= gone;
    if (gone > 0)
        memmove(history->archives, history->archives + gone,
                history->archive_count * sizeof(history->archives[0]));
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
    struct cn_history_archive archive = {header.first_lsn, header.last_lsn, header.first_ms,
                                         header.last_ms,
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
    struct cn_history_aside aside = {
        .key = *key, .lsn = lsn, .size = size > 0 ? (uint64_t)size : 0};
    pthread_mutex_lock(&history->lock);
    add_aside(history, &aside);
    pthread_mutex_unlock(&history->lock);
    return 0;
}

/* ---- opening ---- */

/* Opens the entry of log/ if it is a segment. One that cannot be opened is passed over: it may
 * just have gone, and if it was needed that shows as a gap. */
bool cn_history_open_segment(struct cn_disk *disk, const char *name, bool is_dir,
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
    if (!cn_history_open_segment(oldest->disk, name, is_dir, &reader))
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
        struct cn_history_source source;
        struct cn_segment_reader reader;
        struct cn_record record;
        rc = cn_history_find_source(history, from, &source, err);
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
    struct cn_history_archive holder = {0}; /* the last archive that begins at or before the time */
    uint64_t live_from = 1, floor;
    pthread_mutex_lock(&history->lock);
    floor = history->floor_lsn;
    bool too_old =
        floor > 1 && history->archive_count > 0 && time_ms < history->archives[0].first_ms;
    for (size_t i = 0; i < history->archive_count; i++) {
        const struct cn_history_archive *archive = &history->archives[i];
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
        rc = cn_history_read_source(history, key, to, &source_lsn, &records, err);
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

struct presence {
    uint64_t lsn;
    bool whole; /* history reaches back to the first commit */
    bool there;
};

/* Of commits, the latest first: the last one up to the LSN says it, or else what the first one
 * after it found. One that began anew does not tell what it took away: something, unless it is the
 * first of all. */
static int look_at_commit(void *data, const struct cn_history_commit *commit)
{
    struct presence *presence = data;
    bool later = commit->lsn > presence->lsn, reset = commit->flags & CN_COMMIT_RESET;
    presence->there =
        later ? (reset && !presence->whole) || commit->pages_before > 0 : commit->pages_after > 0;
    return !later;
}

int cn_history_was_there(struct cn_history *history, struct cn_store *store,
                         const struct cn_object_key *key, const char *bookmark, struct cn_err *err)
{
    struct presence presence = {0};
    struct cn_history_listing listing = {
        .key = key, .limit = INT_MAX, .each = look_at_commit, .data = &presence};
    pthread_mutex_lock(&history->lock);
    presence.whole = history->floor_lsn <= 1;
    presence.there = !presence.whole; /* if it has no commits, as it is now */
    pthread_mutex_unlock(&history->lock);
    int rc = resolve(history, store, key, bookmark, &presence.lsn, err);
    if (rc == 0) /* the records must be in the files before they can be read there */
        rc = cn_store_wait(store, cn_log_appended(cn_store_log(store)), err);
    if (rc == 0)
        rc = cn_history_commits(history, store, &listing, err);
    return rc < 0 ? rc : presence.there;
}

/* ---- restoring and copying ---- */

/* `whole`: alarm and name come back too. */
static int restore(struct cn_history *history, struct cn_store *store,
                   const struct cn_object_key *key, const struct cn_history_moment *source,
                   bool whole, uint64_t *lsn, struct cn_err *err)
{
    uint64_t target;
    struct cn_canvas canvas;
    char path[64];
    int rc = resolve(history, store, source->key, source->bookmark, &target, err);
    if (rc < 0)
        return rc;
    rc = cn_disk_mkdirs(history->config.disk, "history");
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot create the folder history");
    pthread_mutex_lock(&history->lock);
    snprintf(path, sizeof(path), "history/restore-%" PRIu64 ".tmp", ++history->serial);
    pthread_mutex_unlock(&history->lock);
    (void)cn_disk_unlink(history->config.disk, path); /* usually there is none */
    rc = cn_canvas_open(&canvas, history->config.disk, path, err);
    if (rc < 0)
        return rc;
    rc = cn_history_draw(history, store, source->key, target, &canvas, err);
    if (rc == 0) {
        struct cn_page_source pages = {.data = &canvas, .read = cn_canvas_read};
        struct cn_replace_meta meta = {.has_alarm = canvas.alarm_known,
                                       .alarm_ms = canvas.alarm_ms,
                                       .name = canvas.name,
                                       .name_size = canvas.name_size};
        rc =
            cn_store_replace(store, key, canvas.page_count, &pages, whole ? &meta : NULL, lsn, err);
    }
    cn_canvas_close(&canvas);
    (void)cn_disk_unlink(history->config.disk, path); /* opening removes it otherwise */
    return rc;
}

static void undo_bookmark(struct cn_history *history, const struct cn_object_key *key,
                          uint64_t restored, char undo[CN_BOOKMARK_SIZE])
{
    struct cn_bookmark before = {.lsn = restored - 1,
                                 .time_ms = cn_clock_wall_ms(history->config.clock)};
    cn_bookmark_format(&before, key, undo);
}

int cn_history_restore(struct cn_history *history, struct cn_store *store,
                       const struct cn_object_key *key, const char *bookmark, uint64_t *lsn,
                       char undo[CN_BOOKMARK_SIZE], struct cn_err *err)
{
    uint64_t restored;
    struct cn_history_moment own = {key, bookmark};
    int rc = restore(history, store, key, &own, true, &restored, err);
    if (rc == 0 && undo)
        undo_bookmark(history, key, restored, undo);
    if (rc == 0 && lsn)
        *lsn = restored;
    return rc;
}

int cn_history_restore_from(struct cn_history *history, struct cn_store *store,
                            const struct cn_object_key *key, const struct cn_history_moment *source,
                            uint64_t *lsn, char undo[CN_BOOKMARK_SIZE], struct cn_err *err)
{
    uint64_t restored;
    int rc = restore(history, store, key, source, false, &restored, err);
    if (rc == 0 && undo)
        undo_bookmark(history, key, restored, undo);
    if (rc == 0 && lsn)
        *lsn = restored;
    return rc;
}

int cn_history_copy(struct cn_history *history, struct cn_store *store,
                    const struct cn_object_key *key, const char *bookmark, struct cn_disk *disk,
                    const char *path, struct cn_err *err)
{
    uint64_t target = UINT64_MAX;
    struct cn_canvas canvas;
    int rc = bookmark ? resolve(history, store, key, bookmark, &target, err) : 0;
    if (rc == 0)
        rc = cn_canvas_open(&canvas, disk, path, err);
    if (rc < 0)
        return rc;
    rc = cn_history_draw(history, store, key, target, &canvas, err);
    if (rc == 0 && canvas.page_count == 0)
        rc = cn_err_set(err, CN_ENOTFOUND, "the object had no database at that moment");
    if (rc == 0) {
        rc = cn_disk_sync_data(canvas.file);
        if (rc == 0)
            rc = cn_disk_sync_parent(disk, path);
        if (rc < 0)
            rc = cn_err_errno(err, -rc, "cannot write %s", path);
    }
    cn_canvas_close(&canvas);
    if (rc < 0)
        (void)cn_disk_unlink(disk, path); /* an incomplete copy is of no use */
    return rc;
}
