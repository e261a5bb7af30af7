/* SPDX-License-Identifier: Apache-2.0 */
/* store/walk.c - an object as it was at an LSN.
 *
 * A walk from LSN s back to t takes one source (archive or segment) after the
 * other, the one that holds s first, and holds the object's records of one
 * source in memory at a time. A segment may be archived and its file used again while
 * it is read: the reader then stops early, because LSNs no longer follow
 * each other, and the walk looks for the archive that must be there by then. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/mem.h"
#include "store/archive.h"
#include "store/history_private.h"
#include "store/image.h"
#include "store/pagediff.h"
#include "store/segment.h"
#include "store/sums.h"

/* ---- sources: archives and live segments ---- */

static bool find_archive(struct cn_history *history, uint64_t lsn, struct cn_history_source *source)
{
    bool found = false;
    pthread_mutex_lock(&history->lock);
    for (size_t i = 0; !found && i < history->archive_count; i++) {
        const struct cn_history_archive *archive = &history->archives[i];
        if (lsn < archive->first_lsn || lsn > archive->last_lsn)
            continue;
        *source = (struct cn_history_source){.first_lsn = archive->first_lsn};
        cn_archive_path(archive->first_lsn, archive->last_lsn, source->path);
        found = true;
    }
    pthread_mutex_unlock(&history->lock);
    return found;
}

struct segment_search {
    struct cn_disk *disk;
    uint64_t lsn;
    struct cn_history_source best;
};

static void look_at_segment(void *data, const char *name, bool is_dir)
{
    struct segment_search *search = data;
    struct cn_segment_reader reader;
    if (!cn_history_open_segment(search->disk, name, is_dir, &reader))
        return;
    uint64_t first_lsn = reader.header.first_lsn;
    if (first_lsn <= search->lsn && first_lsn > search->best.first_lsn) {
        search->best = (struct cn_history_source){.first_lsn = first_lsn, .live = true};
        snprintf(search->best.path, sizeof(search->best.path), "%s", reader.path);
    }
    cn_segment_reader_close(&reader);
}

/* The source that holds `lsn`. */
int cn_history_find_source(struct cn_history *history, uint64_t lsn,
                           struct cn_history_source *source, struct cn_err *err)
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
static int read_live(struct cn_history *history, const struct cn_history_source *source,
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

static int read_archived(struct cn_history *history, const struct cn_history_source *source,
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
int cn_history_read_source(struct cn_history *history, const struct cn_object_key *key,
                           uint64_t lsn, uint64_t *first_lsn, struct cn_buf *records,
                           struct cn_err *err)
{
    for (int attempt = 0;; attempt++) {
        struct cn_history_source source;
        int rc = cn_history_find_source(history, lsn, &source, err);
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

static int canvas_write(struct cn_canvas *canvas, uint32_t page_no, const uint8_t *page)
{
    return cn_disk_write_all(canvas->file, page, CN_PAGE_SIZE,
                             (uint64_t)(page_no - 1) * CN_PAGE_SIZE);
}

static int on_page(void *data, uint32_t page_no, const uint8_t *page)
{
    struct cn_canvas *canvas = data;
    if (page_no > canvas->page_count)
        canvas->page_count = page_no;
    return canvas_write(canvas, page_no, page);
}

static int canvas_resize(struct cn_canvas *canvas, uint32_t page_count, struct cn_err *err)
{
    canvas->page_count = page_count;
    int rc = cn_disk_truncate(canvas->file, (uint64_t)page_count * CN_PAGE_SIZE);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot resize %s", canvas->path) : 0;
}

/* Takes one commit away: its differences, applied to the pages after it, give those before. */
static int undo_commit(struct cn_canvas *canvas, const struct cn_commit *commit, struct cn_err *err)
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

/* Copies a database file that was set aside and is not archived yet. -ENOENT: there is none. */
static int copy_aside(struct cn_history *history, struct cn_canvas *canvas, const char *path,
                      struct cn_err *err)
{
    struct cn_disk_file *file;
    struct cn_sums sums = {0};
    uint8_t page[CN_PAGE_SIZE];
    uint32_t page_count = 0;
    int rc = cn_disk_open(history->config.disk, path, CN_DISK_READONLY, &file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open %s", path);
    rc = cn_sums_read(&sums, file, &page_count, err);
    for (uint32_t page_no = 1; rc == 0 && page_no <= page_count; page_no++) {
        int64_t count =
            cn_disk_read(file, page, CN_PAGE_SIZE, (uint64_t)(page_no - 1) * CN_PAGE_SIZE);
        if (count != CN_PAGE_SIZE)
            rc = cn_err_errno(err, count < 0 ? (int)-count : EIO, "cannot read %s", path);
        else
            rc = cn_sums_check(&sums, page_no, page, err);
        if (rc == 0)
            rc = on_page(canvas, page_no, page);
    }
    if (rc < 0)
        cn_err_context(err, "%s", path);
    cn_sums_fini(&sums);
    cn_disk_close(file);
    return rc;
}

/* Reads the database that the commit `lsn` set aside, from either place. -ENOENT: from neither. */
static int read_set_aside(struct cn_history *history, struct cn_canvas *canvas,
                          const struct cn_object_key *key, uint64_t lsn, struct cn_err *err)
{
    char image_path[CN_ARCHIVE_PATH_MAX], aside_path[CN_IMAGE_PATH_MAX];
    struct cn_archive_image image;
    cn_archive_image_path(key, lsn, image_path);
    cn_image_aside_path(key, lsn, aside_path);
    int rc = canvas_resize(canvas, 0, err);
    if (rc < 0)
        return rc;
    rc = copy_aside(history, canvas, aside_path, err);
    if (rc != -ENOENT)
        return rc;
    return cn_archive_image_read(history->config.disk, image_path, on_page, canvas, &image, err);
}

/* Takes away a commit that took the whole database away: the file it set aside comes back. */
static int undo_reset(struct cn_history *history, struct cn_store *store, struct cn_canvas *canvas,
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

/* Alarm and name before the commit. A record of an older version does not tell the alarm. */
static void undo_meta(struct cn_canvas *canvas, const struct cn_commit *commit)
{
    if (commit->has_alarm_before) {
        canvas->alarm_known = true;
        canvas->alarm_ms = commit->alarm_before_ms;
    } else if (commit->has_alarm) {
        canvas->alarm_known = false;
    } else if (commit->head.flags & CN_COMMIT_DELETED) {
        canvas->alarm_known = true;
        canvas->alarm_ms = CN_ALARM_NONE;
    }
    if (commit->name) { /* it had none before */
        cn_free(canvas->name);
        canvas->name = NULL;
    }
    if (commit->name_before) {
        cn_free(canvas->name);
        canvas->name = cn_strndup(commit->name_before, commit->name_before_size);
        canvas->name_size = commit->name_before_size;
    }
}

/* Records after one LSN and up to another. */
struct span {
    uint64_t after_lsn, up_to_lsn;
};

/* Where they begin, in their order. The caller's to free. */
static size_t *offsets_of(const struct cn_buf *records, struct span span, size_t *count)
{
    size_t *offsets = NULL, room = 0;
    struct cn_record record;
    *count = 0;
    for (size_t at = 0; at < records->size;) {
        uint64_t size = cn_record_read(records->data + at, records->size - at, &record);
        CN_ASSERT(size > 0); /* checked when it was read */
        CN_GROW(offsets, *count, room);
        if (record.header.lsn > span.after_lsn && record.header.lsn <= span.up_to_lsn)
            offsets[(*count)++] = at;
        at += size;
    }
    return offsets;
}

/* The commit of a record that has been read once. */
static int commit_at(const struct cn_buf *records, size_t at, struct cn_record *record,
                     struct cn_commit *commit, struct cn_err *err)
{
    (void)cn_record_read(records->data + at, records->size - at, record); /* as above */
    return cn_commit_read(record, commit, err);
}

/* Takes the records away, newest first. */
static int undo_records(struct cn_history *history, struct cn_store *store,
                        struct cn_canvas *canvas, const struct cn_object_key *key,
                        const struct cn_buf *records, struct span span, struct cn_err *err)
{
    size_t count, *offsets = offsets_of(records, span, &count);
    struct cn_record record;
    int rc = 0;
    while (rc == 0 && count > 0) {
        struct cn_commit commit;
        size_t at = offsets[--count];
        rc = commit_at(records, at, &record, &commit, err);
        if (rc < 0)
            break;
        undo_meta(canvas, &commit);
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

/* ---- a page that the disk has spoilt ---- */

struct lost_page {
    uint32_t page_no;
    uint8_t page[CN_PAGE_SIZE]; /* the differences walked over so far, and in the end the page */
    bool found, ended;
};

/* Looks at one commit, newest first: the page as a whole in it, changed by the differences behind
 * it, is the page at present. */
static int look_for_page(struct lost_page *lost, const struct cn_commit *commit, struct cn_err *err)
{
    struct cn_commit_page change;
    uint8_t whole[CN_PAGE_SIZE];
    int rc = 0;
    for (size_t at = 0; cn_commit_page(commit, &at, &change) && rc == 0 && !lost->found;) {
        if (change.page_no != lost->page_no)
            continue;
        if (change.image) {
            rc = cn_pagediff_expand(whole, CN_PAGE_SIZE, change.image, change.image_size);
            for (size_t i = 0; rc == 0 && i < CN_PAGE_SIZE; i++)
                lost->page[i] ^= whole[i];
            lost->found = rc == 0;
        } else if (change.diff) {
            rc = cn_pagediff_apply(lost->page, CN_PAGE_SIZE, change.diff, change.diff_size);
        }
    }
    lost->ended = commit->head.flags & (CN_COMMIT_RESET | CN_COMMIT_DELETED);
    return rc < 0 ? cn_err_set(err, rc, "page %" PRIu32 " is malformed", lost->page_no) : 0;
}

static int look_in_records(struct lost_page *lost, const struct cn_buf *records, uint64_t up_to,
                           struct cn_err *err)
{
    size_t count, *offsets = offsets_of(records, (struct span){0, up_to}, &count);
    struct cn_record record;
    struct cn_commit commit;
    int rc = 0;
    while (rc == 0 && count > 0 && !lost->found && !lost->ended) {
        size_t at = offsets[--count];
        rc = commit_at(records, at, &record, &commit, err);
        if (rc == 0)
            rc = look_for_page(lost, &commit, err);
    }
    cn_free(offsets);
    return rc;
}

struct healing {
    struct cn_history *history;
    struct cn_store *store;
    const struct cn_object_key *key;
};

/* For struct cn_page_source: the page as the commits since it was last logged whole make it. */
static int lost_page_read(void *data, uint32_t page_no, uint8_t page[CN_PAGE_SIZE],
                          struct cn_err *err)
{
    struct healing *healing = data;
    struct lost_page lost = {.page_no = page_no};
    struct cn_buf records = {0};
    int rc = 0;
    for (uint64_t to = cn_store_durable(healing->store);
         rc == 0 && to > 0 && !lost.found && !lost.ended;) {
        uint64_t first_lsn;
        rc = cn_history_read_source(healing->history, healing->key, to, &first_lsn, &records, err);
        if (rc == 0)
            rc = look_in_records(&lost, &records, to, err);
        to = first_lsn - 1;
    }
    cn_buf_fini(&records);
    if (rc == 0 && !lost.found)
        rc = cn_err_set(err, CN_ENOTFOUND, "history does not reach back to page %" PRIu32, page_no);
    if (rc == 0)
        memcpy(page, lost.page, CN_PAGE_SIZE);
    return rc;
}

int cn_history_heal(struct cn_history *history, struct cn_store *store,
                    const struct cn_object_key *key, uint32_t *healed, struct cn_err *err)
{
    struct healing healing = {history, store, key};
    struct cn_page_source source = {.data = &healing, .read = lost_page_read};
    return cn_store_heal(store, key, &source, healed, err);
}

/* The present on the canvas. A page that the disk has spoilt is taken from history. */
static int draw_present(struct cn_history *history, struct cn_store *store,
                        const struct cn_object_key *key, struct cn_canvas *canvas, uint64_t *lsn,
                        struct cn_err *err)
{
    uint32_t page_count, healed = 0;
    struct cn_err lost = {0};
    int rc = cn_store_snapshot(store, key, on_page, canvas, &page_count, lsn, err);
    if (rc != CN_ECORRUPT)
        return rc;
    rc = cn_history_heal(history, store, key, &healed, &lost);
    if (rc < 0) {
        if (err)
            cn_err_context(err, "%s", lost.text);
        return CN_ECORRUPT;
    }
    cn_warn("%u damaged pages of an object's database were taken from history", healed);
    return cn_store_snapshot(store, key, on_page, canvas, &page_count, lsn, err);
}

/* Draws the object as of `lsn` on the canvas. */
int cn_history_draw(struct cn_history *history, struct cn_store *store,
                    const struct cn_object_key *key, uint64_t lsn, struct cn_canvas *canvas,
                    struct cn_err *err)
{
    uint64_t present;
    int rc = draw_present(history, store, key, canvas, &present, err);
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
        rc = cn_history_read_source(history, key, present, &first_lsn, &records, err);
        if (rc < 0)
            break;
        rc = undo_records(history, store, canvas, key, &records, (struct span){lsn, present}, err);
        present = first_lsn - 1;
    }
    cn_buf_fini(&records);
    return rc;
}

int cn_canvas_open(struct cn_canvas *canvas, struct cn_disk *disk, const char *path,
                   struct cn_err *err)
{
    *canvas = (struct cn_canvas){.disk = disk, .path = path};
    int rc = cn_disk_open(disk, path, CN_DISK_CREATE | CN_DISK_EXCLUSIVE, &canvas->file);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot create %s", path) : 0;
}

int cn_canvas_read(void *data, uint32_t page_no, uint8_t page[CN_PAGE_SIZE], struct cn_err *err)
{
    struct cn_canvas *canvas = data;
    int64_t count =
        cn_disk_read(canvas->file, page, CN_PAGE_SIZE, (uint64_t)(page_no - 1) * CN_PAGE_SIZE);
    if (count != CN_PAGE_SIZE)
        return cn_err_errno(err, count < 0 ? (int)-count : EIO, "cannot read %s", canvas->path);
    return 0;
}

void cn_canvas_close(struct cn_canvas *canvas)
{
    cn_disk_close(canvas->file);
    cn_free(canvas->name);
}

/* ---- lists ---- */

/* Those of one source, newest first; stops at `limit`. Returns how many, and in *ended whether
 * nobody wants more. */
static int list_records(const struct cn_buf *records, const struct cn_history_listing *listing,
                        uint64_t up_to_lsn, int limit, bool *ended, struct cn_err *err)
{
    struct cn_record record;
    size_t count, *offsets = offsets_of(records, (struct span){0, up_to_lsn}, &count);
    int listed = 0, rc = 0;
    while (rc == 0 && !*ended && listed < limit && count > 0) {
        struct cn_commit commit;
        size_t at = offsets[--count];
        rc = commit_at(records, at, &record, &commit, err);
        if (rc < 0)
            break;
        struct cn_history_commit found = {.lsn = record.header.lsn,
                                          .time_ms = record.header.time_ms,
                                          .page_count = commit.head.page_count,
                                          .pages_before = commit.head.pages_before,
                                          .pages_after = commit.head.pages_after,
                                          .flags = commit.head.flags};
        struct cn_bookmark bookmark = {.lsn = found.lsn, .time_ms = found.time_ms};
        cn_bookmark_format(&bookmark, listing->key, found.bookmark);
        listed++;
        *ended = listing->each(listing->data, &found) != 0;
    }
    cn_free(offsets);
    return rc < 0 ? rc : listed;
}

int cn_history_commits(struct cn_history *history, struct cn_store *store,
                       const struct cn_history_listing *listing, struct cn_err *err)
{
    struct cn_buf records = {0};
    uint64_t to = cn_store_durable(store), floor;
    bool ended = false;
    int count = 0, rc = 0;
    pthread_mutex_lock(&history->lock);
    floor = history->floor_lsn ? history->floor_lsn : 1;
    pthread_mutex_unlock(&history->lock);
    if (listing->before_lsn && listing->before_lsn <= to)
        to = listing->before_lsn - 1;
    while (!ended && count < listing->limit && to >= floor) {
        uint64_t first_lsn;
        rc = cn_history_read_source(history, listing->key, to, &first_lsn, &records, err);
        if (rc == 0)
            rc = list_records(&records, listing, to, listing->limit - count, &ended, err);
        if (rc < 0)
            break;
        count += rc;
        to = first_lsn - 1;
    }
    cn_buf_fini(&records);
    return rc < 0 ? rc : count;
}
