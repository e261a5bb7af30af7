/* SPDX-License-Identifier: Apache-2.0 */
/* store/log_driven.c - a log that is driven from outside: many of them in one process.
 *
 *      any thread                 whoever drives it
 *     append ----> window  --- records ---> the engine of a cluster
 *                    |                           |
 *                    |  <------- settle ---------+   write, durable_lsn ---> listeners
 *
 * The invariants L1 to L7 of log.c hold, but for what is said of syncs: nothing is synced before a
 * checkpoint asks for it (cn_log_sync()), since what is here is safe elsewhere. Besides:
 *
 * L8  The window has every record that is appended and not settled, as it will be in the file. So a
 *     record has one form: in the engine, on every replica, after every retry. (R3's durable_lsn is
 *     0 in all of them: such a log claims nothing by itself.)
 * L9  Only cn_log_settle() takes records out of the window, and only to write them. Those of a log
 *     that has failed stay until it is closed and are written nowhere.
 * L10 What all windows of a budget have together is bounded by it, as each is by pending_max. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/block.h"
#include "base/mem.h"
#include "store/log_private.h"

enum {
    SEGMENT_MIN = 256 << 10,
    READ_MIN = 64 << 10,  /* bytes read from a segment at a time, at least */
    FEED_PIECE = 4 << 20, /* of a feed that is written at a time */
};

/* ---- Budget (L10) ---- */

struct cn_log_budget {
    pthread_mutex_t lock; /* guards the rest; taken inside a log's lock, or alone */
    pthread_cond_t room;
    atomic_uint_fast64_t used; /* read without the lock too */
    uint64_t size_max;
    uint64_t serial; /* rises whenever waiting may be over */
};

struct cn_log_budget *cn_log_budget_new(uint64_t size_max)
{
    struct cn_log_budget *budget = CN_NEW(struct cn_log_budget);
    budget->size_max = size_max;
    pthread_mutex_init(&budget->lock, NULL);
    pthread_cond_init(&budget->room, NULL);
    return budget;
}

void cn_log_budget_free(struct cn_log_budget *budget)
{
    CN_ASSERT(budget->used == 0);
    pthread_mutex_destroy(&budget->lock);
    pthread_cond_destroy(&budget->room);
    cn_free(budget);
}

bool cn_log_budget_take(struct cn_log *log, uint64_t size)
{
    struct cn_log_budget *budget = log->driven.budget;
    if (!budget)
        return true;
    pthread_mutex_lock(&budget->lock);
    /* One record alone is taken whatever its size, as by L6. */
    uint64_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);
    bool fits = used == 0 || used + size <= cn_log_bound(budget->size_max, cn_may_block());
    if (fits)
        atomic_store_explicit(&budget->used, used + size, memory_order_relaxed);
    else
        log->budget_serial = budget->serial;
    pthread_mutex_unlock(&budget->lock);
    return fits;
}

void cn_log_budget_give(struct cn_log *log, uint64_t size)
{
    struct cn_log_budget *budget = log->driven.budget;
    if (!budget)
        return;
    pthread_mutex_lock(&budget->lock);
    uint64_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);
    CN_ASSERT(used >= size);
    atomic_store_explicit(&budget->used, used - size, memory_order_relaxed);
    budget->serial++;
    pthread_cond_broadcast(&budget->room);
    pthread_mutex_unlock(&budget->lock);
}

void cn_log_budget_wake(struct cn_log *log)
{
    cn_log_budget_give(log, 0);
}

enum cn_log_pressure cn_log_budget_pressure(const struct cn_log *log)
{
    const struct cn_log_budget *budget = log->driven.budget;
    return budget ? cn_log_level(atomic_load_explicit(&budget->used, memory_order_relaxed),
                                 budget->size_max)
                  : CN_LOG_ROOMY;
}

void cn_log_budget_wait(struct cn_log *log)
{
    cn_may_block_here();
    struct cn_log_budget *budget = log->driven.budget;
    uint64_t serial = log->budget_serial;
    pthread_mutex_unlock(&log->lock);
    if (log->driven.stall) {
        log->driven.stall(log->driven.data);
    } else {
        pthread_mutex_lock(&budget->lock);
        while (budget->serial == serial)
            pthread_cond_wait(&budget->room, &budget->lock);
        pthread_mutex_unlock(&budget->lock);
    }
    pthread_mutex_lock(&log->lock);
}

/* ---- The window ---- */

void cn_log_window_add(struct cn_log *log, uint64_t size)
{
    CN_GROW(log->ends, log->end_count, log->end_capacity);
    uint64_t before = log->end_count ? log->ends[log->end_count - 1] : log->window_start;
    log->ends[log->end_count++] = before + size;
}

/* The LSN of its first record, or of the one that will be. */
static uint64_t window_first(const struct cn_log *log)
{
    return cn_log_appended(log) + 1 - log->end_count;
}

/* Where in `filling` the record behind `lsn` begins; `lsn` is in the window, or just before it. */
static size_t window_end(const struct cn_log *log, uint64_t lsn)
{
    size_t count = (size_t)(lsn + 1 - window_first(log));
    return count ? (size_t)(log->ends[count - 1] - log->window_start) : 0;
}

/* Copies the records up to `lsn` to a batch, with the rotations among them. */
static void window_batch(struct cn_log *log, uint64_t lsn, struct cn_log_batch *batch)
{
    struct cn_log_batch *from = log->filling;
    size_t size = window_end(log, lsn);
    CN_ASSERT(batch->bytes.size == 0 && batch->rotation_count == 0);
    cn_buf_append(&batch->bytes, from->bytes.data, size);
    batch->last_lsn = lsn;
    size_t count = 0;
    while (count < from->rotation_count && from->rotations[count].offset < size)
        count++;
    if (batch->rotation_capacity < count) {
        batch->rotation_capacity = count;
        batch->rotations = cn_realloc(batch->rotations, count * sizeof(*batch->rotations));
    }
    if (count == 0)
        return;
    memcpy(batch->rotations, from->rotations, count * sizeof(*batch->rotations));
    batch->rotation_count = count;
    from->rotation_count -= count;
    memmove(from->rotations, from->rotations + count,
            from->rotation_count * sizeof(*from->rotations));
}

/* L9: what was written leaves. */
static void window_leave(struct cn_log *log, uint64_t lsn)
{
    size_t size = window_end(log, lsn), count = (size_t)(lsn + 1 - window_first(log));
    cn_buf_consume(&log->filling->bytes, size);
    for (size_t i = 0; i < log->filling->rotation_count; i++)
        log->filling->rotations[i].offset -= size;
    log->window_start += size;
    log->end_count -= count;
    memmove(log->ends, log->ends + count, log->end_count * sizeof(*log->ends));
    if (log->filling->bytes.size == 0 && log->end_capacity > 1024) { /* an idle log keeps little */
        cn_free(log->ends);
        log->ends = NULL;
        log->end_capacity = 0;
    }
    if (log->filling->bytes.size == 0)
        cn_buf_fini(&log->filling->bytes);
}

void cn_log_window_drop(struct cn_log *log)
{
    if (!log->fed)
        cn_log_budget_give(log, log->filling->bytes.size);
}

uint64_t cn_log_driven_segment_size(const struct cn_log *log)
{
    uint64_t size = 0;
    for (size_t i = 0; i < log->segment_count; i++)
        size += 2 * log->segments[i].size;
    if (size < SEGMENT_MIN)
        size = SEGMENT_MIN;
    return size < log->config.segment_size ? size : log->config.segment_size;
}

/* ---- Settling ---- */

void cn_log_hint(struct cn_log *log)
{
    if (!atomic_load_explicit(&log->hinted, memory_order_relaxed) &&
        !atomic_exchange_explicit(&log->hinted, true, memory_order_acq_rel) && log->driven.appended)
        log->driven.appended(log->driven.data);
}

uint64_t cn_log_take_hint(struct cn_log *log)
{
    /* Before the look: what is appended behind it is told again. */
    atomic_exchange_explicit(&log->hinted, false, memory_order_acq_rel);
    return cn_log_appended(log);
}

void cn_log_stalled(struct cn_log *log)
{
    uint64_t durable = cn_log_durable(log);
    pthread_mutex_unlock(&log->lock);
    log->driven.stall(log->driven.data);
    pthread_mutex_lock(&log->lock);
    CN_ASSERT(log->failed || cn_log_durable(log) > durable);
}

void cn_log_refuse(struct cn_log *log, const char *reason)
{
    if (log->config.planted & CN_PLANTED_EARLY_SETTLE)
        (void)cn_log_settle(log, cn_log_appended(log), NULL); /* a bug, for tests */
    pthread_mutex_lock(&log->lock);
    bool first = !log->failed;
    if (first) {
        log->given_up = true;
        cn_log_end(log, reason);
    }
    pthread_mutex_unlock(&log->lock);
    if (first)
        cn_log_notify(log, cn_log_durable(log), CN_EREADONLY);
}

/* Writes the window up to `lsn`. */
static int settle_locked(struct cn_log *log, uint64_t lsn, struct cn_err *err)
{
    if (log->failed)
        return cn_log_refused(log, err);
    CN_ASSERT(!log->flushing && lsn <= cn_log_appended(log));
    window_batch(log, lsn, log->writing);
    size_t size = log->writing->bytes.size;
    if (cn_log_batch_flush(log, log->writing) < 0)
        return cn_log_refused(log, err);
    window_leave(log, lsn);
    if (!log->fed)
        cn_log_budget_give(log, size);
    return 0;
}

int cn_log_settle(struct cn_log *log, uint64_t lsn, struct cn_err *err)
{
    CN_ASSERT(cn_log_is_driven(log));
    if (lsn <= cn_log_durable(log))
        return 0;
    pthread_mutex_lock(&log->lock);
    int rc = settle_locked(log, lsn, err);
    pthread_mutex_unlock(&log->lock);
    cn_log_notify(log, cn_log_durable(log), rc);
    return rc;
}

void cn_log_retry_space(struct cn_log *log)
{
    pthread_mutex_lock(&log->lock);
    if (log->no_space && !log->making && !log->failed && log->ready_count == 0) {
        log->making = true;
        cn_log_spare_make(log);
        log->making = false;
    }
    pthread_mutex_unlock(&log->lock);
}

bool cn_log_unwritable(struct cn_log *log, struct cn_err *err)
{
    pthread_mutex_lock(&log->lock);
    bool unwritable = log->failed ? !log->given_up : log->no_space && log->ready_count == 0;
    if (unwritable)
        (void)cn_log_refused(log, err);
    pthread_mutex_unlock(&log->lock);
    return unwritable;
}

/* ---- Feeding ---- */

/* Are these records, one after the other, and none missing behind what is there? *skip: how many
 * bytes of them are there already. */
static int feed_check(uint64_t have, const uint8_t *bytes, size_t size, size_t *skip,
                      struct cn_err *err)
{
    uint64_t next = 0; /* 0: the first may be any that leaves no gap */
    *skip = 0;
    for (size_t at = 0; at < size;) {
        struct cn_record record;
        uint64_t taken = cn_record_read(bytes + at, size - at, &record);
        if (taken == 0)
            return cn_err_set(err, CN_EINVALID, "byte %zu of %zu begins no record", at, size);
        uint64_t lsn = record.header.lsn;
        if (next ? lsn != next : lsn == 0 || lsn > have + 1)
            return cn_err_set(err, CN_EINVALID, "record %" PRIu64 " where %" PRIu64 " should be",
                              lsn, next ? next : have + 1);
        at += taken;
        next = lsn + 1;
        if (lsn <= have)
            *skip = at;
    }
    return 0;
}

static int feed_one(struct cn_log *log, const struct cn_record *record, struct cn_err *err)
{
    uint64_t size = cn_record_size(record->header.body_size);
    int rc = 0;
    while (rc == 0) {
        if (log->failed)
            return cn_log_refused(log, err);
        rc = cn_log_place_try(log, size, err);
    }
    if (rc < 0)
        return rc;
    cn_log_put(log, &record->header, record->body, NULL);
    log->last_time_ms = record->header.time_ms;
    if (record->header.flags & CN_RECORD_BOUNDARY)
        log->fed_boundary = record->header.lsn;
    return log->pending < FEED_PIECE ? 0 : settle_locked(log, record->header.lsn, err);
}

int cn_log_feed(struct cn_log *log, const void *bytes, size_t size, struct cn_err *err)
{
    CN_ASSERT(cn_log_is_driven(log));
    size_t at;
    int rc = feed_check(cn_log_appended(log), bytes, size, &at, err);
    if (rc < 0 || at == size)
        return rc;
    pthread_mutex_lock(&log->lock);
    log->fed = true; /* nothing waits here: it does not count for the budget */
    while (rc == 0 && at < size) {
        struct cn_record record;
        at += cn_record_read((const uint8_t *)bytes + at, size - at, &record);
        rc = feed_one(log, &record, err);
    }
    /* What found its place before one did not is kept: it is a beginning. */
    if (!log->failed && log->end_count > 0) {
        int written = settle_locked(log, cn_log_appended(log), rc == 0 ? err : NULL);
        rc = rc < 0 ? rc : written;
    }
    pthread_mutex_unlock(&log->lock);
    return rc;
}

uint64_t cn_log_fed_boundary(struct cn_log *log)
{
    pthread_mutex_lock(&log->lock);
    uint64_t lsn = log->fed_boundary;
    pthread_mutex_unlock(&log->lock);
    return lsn;
}

/* ---- Reading ---- */

/* The segment that has `lsn`, and where to begin in it: at the record itself if someone has read up
 * to there, else at the first. */
static bool segment_find(struct cn_log *log, uint64_t lsn, struct cn_log_cursor *at)
{
    for (size_t i = log->segment_count; i-- > 0;) {
        const struct cn_segment_info *segment = &log->segments[i];
        if (segment->first_lsn > lsn || segment->last_lsn < lsn)
            continue;
        *at = (struct cn_log_cursor){segment->first_lsn, segment->number,
                                     sizeof(struct cn_segment_header)};
        for (int c = 0; c < CN_LOG_CURSORS; c++) {
            const struct cn_log_cursor *cursor = &log->cursors[c];
            if (cursor->number == segment->number && cursor->lsn <= lsn && cursor->lsn > at->lsn)
                *at = *cursor;
        }
        return true;
    }
    return false;
}

static void cursor_keep(struct cn_log *log, const struct cn_log_cursor *cursor, uint64_t from)
{
    unsigned place = log->cursor_next;
    for (unsigned c = 0; c < CN_LOG_CURSORS; c++) {
        if (log->cursors[c].lsn == from && log->cursors[c].number == cursor->number)
            place = c; /* it moved on */
    }
    if (place == log->cursor_next)
        log->cursor_next = (log->cursor_next + 1) % CN_LOG_CURSORS;
    log->cursors[place] = *cursor;
}

/* Records `from` to `to` of the segment at the cursor, which moves behind them; what is in front of
 * them is read over. Returns the last LSN that was given. */
static uint64_t segment_read(struct cn_log *log, struct cn_log_cursor *at, uint64_t from,
                             uint64_t to, size_t size_max, struct cn_buf *records)
{
    char path[CN_SEGMENT_PATH_MAX];
    struct cn_disk_file *file;
    cn_segment_path(at->number, path);
    if (cn_disk_open(log->config.disk, path, CN_DISK_READONLY, &file) < 0)
        return 0; /* released meanwhile */
    size_t want = size_max < READ_MIN ? READ_MIN : size_max > FEED_PIECE ? FEED_PIECE : size_max;
    uint8_t *buffer = cn_alloc(want);
    size_t given = 0;
    uint64_t last = 0;
    for (bool more = true; more && at->lsn <= to;) {
        int64_t got = cn_disk_read(file, buffer, want, at->offset);
        size_t used = 0;
        struct cn_record record;
        uint64_t taken = 0;
        while (got > 0 && at->lsn <= to &&
               (taken = cn_record_read(buffer + used, (size_t)got - used, &record)) > 0 &&
               record.header.lsn == at->lsn) {
            if (at->lsn >= from && last && given + taken > size_max) {
                more = false;
                break;
            }
            if (at->lsn >= from) {
                cn_buf_append(records, buffer + used, taken);
                given += taken;
                last = at->lsn;
            }
            used += taken;
            at->lsn++;
            at->offset += taken;
        }
        if (more && used == 0 && got == (int64_t)want && want < CN_RECORD_BODY_MAX) {
            want *= 4; /* one record that is larger */
            uint8_t *larger = cn_try_realloc(buffer, want);
            more = larger != NULL;
            buffer = larger ? larger : buffer;
        } else if (used == 0) {
            more = false;
        }
    }
    cn_free(buffer);
    cn_disk_close(file);
    return last;
}

/* Those of the window, with the lock held. */
static uint64_t window_read(const struct cn_log *log, uint64_t from, uint64_t to, size_t size_max,
                            struct cn_buf *records)
{
    uint64_t appended = cn_log_appended(log);
    size_t start = window_end(log, from - 1);
    uint64_t last = from;
    if (from > appended)
        return 0;
    if (to > appended)
        to = appended;
    while (last < to && window_end(log, last + 1) - start <= size_max)
        last++;
    cn_buf_append(records, log->filling->bytes.data + start, window_end(log, last) - start);
    return last;
}

uint64_t cn_log_records(struct cn_log *log, uint64_t from, uint64_t to, size_t size_max,
                        struct cn_buf *records)
{
    CN_ASSERT(cn_log_is_driven(log));
    struct cn_log_cursor at;
    uint64_t last = 0;
    if (from == 0 || to < from)
        return 0;
    pthread_mutex_lock(&log->lock);
    uint64_t first = window_first(log);
    if (from >= first) {
        last = from > cn_log_appended(log) ? 0 : window_read(log, from, to, size_max, records);
        pthread_mutex_unlock(&log->lock);
        return last;
    }
    bool found = segment_find(log, from, &at);
    pthread_mutex_unlock(&log->lock);
    if (!found)
        return 0;
    last = segment_read(log, &at, from, to < first ? to : first - 1, size_max, records);
    pthread_mutex_lock(&log->lock);
    if (last)
        cursor_keep(log, &at, from);
    pthread_mutex_unlock(&log->lock);
    return last;
}

/* ---- Syncing ---- */

static int sync_segment(struct cn_disk *disk, uint64_t number)
{
    char path[CN_SEGMENT_PATH_MAX];
    struct cn_disk_file *file;
    cn_segment_path(number, path);
    int rc = cn_disk_open(disk, path, 0, &file);
    if (rc < 0)
        return rc;
    rc = cn_disk_sync_data(file);
    cn_disk_close(file);
    return rc;
}

int cn_log_sync(struct cn_log *log, uint64_t lsn, struct cn_err *err)
{
    int rc = 0;
    uint64_t number, last_lsn;
    CN_ASSERT(cn_log_is_driven(log) && lsn <= cn_log_durable(log));
    do {
        pthread_mutex_lock(&log->lock);
        number = 0;
        for (size_t i = 0; i < log->segment_count && !number; i++) {
            if (log->segments[i].number >= log->unsynced_number &&
                log->segments[i].first_lsn <= lsn) {
                number = log->segments[i].number;
                last_lsn = log->segments[i].last_lsn;
            }
        }
        pthread_mutex_unlock(&log->lock);
        if (!number)
            break;
        rc = sync_segment(log->config.disk, number);
        if (rc == 0) {
            pthread_mutex_lock(&log->lock);
            /* One that may still grow is synced again the next time. */
            if (log->segments[log->segment_count - 1].number > number && last_lsn <= lsn)
                log->unsynced_number = number + 1;
            pthread_mutex_unlock(&log->lock);
        }
    } while (rc == 0 && last_lsn < lsn);
    if (rc == 0)
        rc = cn_disk_sync_dir(log->config.disk, "log");
    return rc < 0 ? cn_err_errno(err, -rc, "cannot sync the log") : 0;
}
