/* SPDX-License-Identifier: Apache-2.0 */
/* store/log.c - the redo log: append, group commit, segments.
 *
 *      any thread                 flusher                       outside
 *     append ----> batch  ===>  write, sync  --- durable_lsn --->  listeners
 *                   |                 |
 *              takes a spare     makes it a segment
 *              when it is full   (header, rename)
 *                   ^
 *     preparer: creates spares ahead of need, or takes files of released segments
 *
 * An append decides at once where its bytes will go: behind the last record if the
 * segment has room, else at the start of a spare file, so that an append that
 * was accepted can only fail because a write or a sync fails.
 *
 * L1  durable <= appended, and neither goes back.
 * L2  Appends are written in the order of their LSNs; no byte of a segment is
 *     written before all of the segment before it is synced.
 * L3  A segment gets its name only after its header and first records are synced,
 *     and nothing in it is durable before its name is (sync of the folder).
 * L4  After a failed write or sync nothing more is written or acknowledged until
 *     restart: the kernel may have dropped the pages it could not write.
 * L5  A full disk is met while a spare is made, never while records are
 *     written: appends are refused until a spare can be made, and nothing breaks.
 * L6  At most pending_max bytes (and one record) wait in memory; appends wait beyond.
 * L7  With a sink, a batch is written after the sink has settled it; one that it refuses is not
 *     written, and the log has failed (L4): K1, K2 of store/sink.h.
 * L11 A thread that may not wait (base/block.h) never does so here. Beyond L6's bound its records
 *     are taken up to CN_LOG_SLACK times as much, and refused then; cn_log_pressure() tells, and
 *     whoever gives it the writes holds back the writer (O8 of object/object.h). If no spare is
 *     ready and the disk has space, the segment is begun all the same and owed: the flusher waits
 *     for its file, and if the disk is full nevertheless, until it no longer is (L5): what was
 *     appended is neither acknowledged nor refused meanwhile.
 *
 * log_spare.c makes spares. log_driven.c has logs without threads of their own. */
#include "store/log_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/block.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/diag.h"
#include "base/mem.h"
#include "store/sink.h"

enum {
    BATCH_KEEP = 4 << 20, /* a batch buffer larger than this is given back */
    TAKE_MIN = 1 << 20,   /* a record is copied into the batch unless it has so many bytes */
};

/* ---- Failure ---- */

void cn_log_end(struct cn_log *log, const char *reason)
{
    log->failed = true;
    snprintf(log->reason, sizeof(log->reason), "%s", reason);
    pthread_cond_broadcast(&log->room);
    pthread_cond_broadcast(&log->durable_moved);
    pthread_cond_broadcast(&log->flush_wanted);
    if (cn_log_is_driven(log))
        cn_log_budget_wake(log);
}

void cn_log_fail_locked(struct cn_log *log, const char *reason)
{
    if (log->failed)
        return;
    cn_error("the store stops accepting writes: %s", reason);
    cn_log_end(log, reason);
}

void cn_log_notify(struct cn_log *log, uint64_t durable, int status)
{
    pthread_mutex_lock(&log->listener_lock);
    CN_LIST_FOREACH(&log->listeners, link)
    {
        struct cn_log_listener *listener = CN_CONTAINER_OF(link, struct cn_log_listener, link);
        listener->on_durable(listener, durable, status);
    }
    pthread_mutex_unlock(&log->listener_lock);
}

void cn_log_fail(struct cn_log *log, const char *reason)
{
    pthread_mutex_lock(&log->lock);
    cn_log_fail_locked(log, reason);
    pthread_mutex_unlock(&log->lock);
    cn_log_notify(log, cn_log_durable(log), CN_EREADONLY);
}

int cn_log_refused(struct cn_log *log, struct cn_err *err)
{
    return cn_err_set(err, CN_EREADONLY, "writes are refused: %s", log->reason);
}

/* ---- Append ---- */

static void segment_list_add(struct cn_log *log, struct cn_segment_info info)
{
    CN_GROW(log->segments, log->segment_count, log->segment_list_capacity);
    log->segments[log->segment_count++] = info;
}

/* Directs the following appends to the start of `spare`, or of one of so many bytes to come. */
static void rotate(struct cn_log *log, struct cn_log_spare *spare, uint64_t capacity)
{
    struct cn_log_batch *batch = log->filling;
    CN_GROW(batch->rotations, batch->rotation_count, batch->rotation_capacity);
    struct cn_segment_header header = {
        .number = log->next_number++,
        .first_lsn = cn_log_appended(log) + 1,
        .file_size = capacity,
        .created_ms = cn_clock_wall_ms(log->config.clock),
    };
    cn_segment_seal(&header);
    batch->rotations[batch->rotation_count++] =
        (struct cn_log_rotation){.offset = batch->bytes.size, .spare = spare, .header = header};
    log->segment_used = sizeof(header);
    log->segment_capacity = capacity;
    segment_list_add(log, (struct cn_segment_info){.number = header.number,
                                                   .first_lsn = header.first_lsn,
                                                   .last_lsn = header.first_lsn - 1,
                                                   .size = sizeof(header)});
}

static uint64_t live_size_locked(const struct cn_log *log)
{
    uint64_t size = 0;
    for (size_t i = 0; i < log->segment_count; i++)
        size += log->segments[i].size;
    return size;
}

static void flush_locked(struct cn_log *log);

/* For what is owed already, and a segment more than is needed. */
static bool has_space(const struct cn_log *log, uint64_t need)
{
    return !log->no_space && cn_disk_space(log->config.disk) / (log->owed + 1) >
                                 need + log->config.segment_size + log->pending;
}

/* L11: the segment is begun though its file is not there. */
static void rotate_owed(struct cn_log *log, uint64_t need)
{
    uint64_t capacity = need > log->config.segment_size ? need : log->config.segment_size;
    log->owed++;
    if (capacity > log->config.segment_size && capacity > log->spare_size)
        log->spare_size = capacity;
    pthread_cond_signal(&log->spare_wanted);
    rotate(log, NULL, capacity);
}

int cn_log_place_try(struct cn_log *log, uint64_t size, struct cn_err *err)
{
    bool driven = cn_log_is_driven(log);
    if (log->owed && log->no_space) /* L5: nothing more for a segment that may never be */
        return cn_log_refused(log, err);
    if (log->segment_used + size <= log->segment_capacity)
        return 1;
    if (live_size_locked(log) > log->config.live_max)
        return cn_err_set(err, CN_EOVERLOADED,
                          "the log holds %" PRIu64 " MB that are not yet in database files",
                          live_size_locked(log) >> 20);
    uint64_t need = sizeof(struct cn_segment_header) + size;
    struct cn_log_spare *spare = cn_log_spare_take(log, need);
    if (spare) {
        rotate(log, spare, spare->capacity);
        return 1;
    }
    if (!cn_may_block() && !driven && !log->config.manual && has_space(log, need)) {
        rotate_owed(log, need);
        return 1;
    }
    if (driven && log->making) { /* by another thread that appends */
        pthread_cond_wait(&log->room, &log->lock);
        return 0;
    }
    if (need > log->config.segment_size || driven)
        log->spare_size = need;
    if (log->config.manual || driven) {
        log->making = true;
        cn_log_spare_make(log);
        log->making = false;
    } else if (!log->no_space) {
        pthread_cond_signal(&log->spare_wanted);
        pthread_cond_wait(&log->room, &log->lock);
    }
    if (log->no_space) {
        log->spare_size = 0; /* whoever comes next may need less */
        return cn_log_refused(log, err);
    }
    return 0;
}

/* L11 */
static int refuse_crowded(uint64_t pending, struct cn_err *err)
{
    return cn_err_set(err, CN_EOVERLOADED,
                      "the disk does not keep up: the log holds %" PRIu64
                      " MB that it has not taken",
                      pending >> 20);
}

static void pending_set(struct cn_log *log, uint64_t pending)
{
    log->pending = pending;
    atomic_store_explicit(&log->pending_seen, pending, memory_order_relaxed);
}

enum cn_log_pressure cn_log_pressure(const struct cn_log *log)
{
    enum cn_log_pressure own = cn_log_level(
        atomic_load_explicit(&log->pending_seen, memory_order_relaxed), log->config.pending_max);
    enum cn_log_pressure all = cn_log_budget_pressure(log);
    return own > all ? own : all;
}

/* Waits until there is a place for `size` bytes: in memory (L6, L10) and in a segment. */
static int room_wait(struct cn_log *log, uint64_t size, struct cn_err *err)
{
    bool waits = cn_may_block();
    uint64_t bound = cn_log_bound(log->config.pending_max, waits);
    for (;;) {
        if (log->failed)
            return cn_log_refused(log, err);
        if (log->pending > 0 && log->pending + size > bound) {
            if (!waits)
                return refuse_crowded(log->pending, err);
            if (log->config.manual)
                flush_locked(log);
            else if (log->driven.stall)
                cn_log_stalled(log);
            else
                pthread_cond_wait(&log->room, &log->lock);
            continue;
        }
        int rc = cn_log_place_try(log, size, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            continue;
        if (!cn_log_is_driven(log) || cn_log_budget_take(log, size))
            return 0;
        if (!waits)
            return refuse_crowded(log->pending, err);
        cn_log_budget_wait(log);
    }
}

/* A record of many megabytes would be in memory twice. */
static bool take_record(struct cn_log_batch *batch, const struct cn_record_header *header,
                        struct cn_buf *owner)
{
    if (!owner || batch->bytes.size > 0 || header->body_size < TAKE_MIN)
        return false;
    CN_ASSERT(owner->size == CN_LOG_ROOM + header->body_size);
    cn_buf_fini(&batch->bytes);
    batch->bytes = *owner;
    *owner = (struct cn_buf){0};
    memcpy(batch->bytes.data, header, sizeof(*header));
    return true;
}

void cn_log_put(struct cn_log *log, const struct cn_record_header *header, const void *body,
                struct cn_buf *owner)
{
    static const uint8_t padding[8];
    uint64_t record_size = cn_record_size(header->body_size);
    struct cn_log_batch *batch = log->filling;
    if (!take_record(batch, header, owner)) {
        cn_buf_append(&batch->bytes, header, sizeof(*header));
        cn_buf_append(&batch->bytes, body, header->body_size);
    }
    cn_buf_append(&batch->bytes, padding, record_size - sizeof(*header) - header->body_size);
    batch->last_lsn = header->lsn;
    pending_set(log, log->pending + record_size);
    log->log_bytes += record_size;
    log->segment_used += record_size;
    struct cn_segment_info *segment = &log->segments[log->segment_count - 1];
    segment->last_lsn = header->lsn;
    segment->size = log->segment_used;
    atomic_store_explicit(&log->appended, header->lsn, memory_order_release);
    if (cn_log_is_driven(log))
        cn_log_window_add(log, record_size);
}

int cn_log_append(struct cn_log *log, const struct cn_log_entry *entry, uint64_t *lsn,
                  int64_t *time_ms, struct cn_err *err)
{
    const void *body = entry->body;
    size_t size = entry->size;
    if (size > CN_RECORD_BODY_MAX)
        return cn_err_set(err, CN_ELIMIT, "a log record of %zu bytes is too large", size);
    struct cn_record_header header = {.body_size = (uint32_t)size, .kind = (uint16_t)entry->kind};
    cn_record_seal(&header, body);
    uint64_t record_size = cn_record_size(size);

    pthread_mutex_lock(&log->lock);
    int rc = room_wait(log, record_size, err);
    uint64_t boundary = atomic_load_explicit(&log->boundary, memory_order_relaxed);
    if (rc == 0 && entry->boundary != boundary) {
        rc = -EAGAIN;
        if (cn_log_is_driven(log))
            cn_log_budget_give(log, record_size);
    }
    if (rc < 0) {
        pthread_mutex_unlock(&log->lock);
        return rc;
    }
    int64_t now_ms = cn_clock_wall_ms(log->config.clock);
    if (now_ms > log->last_time_ms)
        log->last_time_ms = now_ms;
    header.lsn = cn_log_appended(log) + 1;
    header.time_ms = log->last_time_ms;                                 /* R4 */
    header.flags = header.lsn == boundary + 1 ? CN_RECORD_BOUNDARY : 0; /* R9 */
    cn_record_seal_header(&header);
    cn_log_put(log, &header, body, entry->owner);
    bool wake = !log->flushing && log->filling->bytes.size == record_size;
    pthread_mutex_unlock(&log->lock);
    if (cn_log_is_driven(log))
        cn_log_hint(log);
    else if (wake)
        pthread_cond_signal(&log->flush_wanted);
    *lsn = header.lsn;
    *time_ms = header.time_ms;
    return 0;
}

/* ---- Flush ---- */

/* Sets R3's mark in the first record of a flush. */
static void claim(struct cn_log *log, uint8_t *record)
{
    struct cn_record_header header;
    if (cn_log_is_driven(log))
        return; /* L8 */
    memcpy(&header, record, sizeof(header));
    CN_ASSERT(header.magic == CN_RECORD_MAGIC);
    header.durable_lsn = log->claimed_lsn;
    cn_record_seal_header(&header);
    memcpy(record, &header, sizeof(header));
}

static int sync_file(struct cn_log *log)
{
    return log->config.sync == CN_LOG_FSYNC ? cn_disk_sync_data(log->file) : 0;
}

/* Makes `spare` the current segment, with the bytes that begin it. */
static int segment_begin(struct cn_log *log, struct cn_log_rotation *rotation, uint8_t *bytes,
                         size_t size)
{
    struct iovec parts[2] = {{.iov_base = &rotation->header, .iov_len = sizeof(rotation->header)},
                             {.iov_base = bytes, .iov_len = size}};
    char path[CN_SEGMENT_PATH_MAX];
    int rc = rotation->spare ? 0 : cn_log_spare_get(log, rotation);
    if (rc < 0)
        return rc;
    if (log->file)
        cn_disk_close(log->file);
    log->file = rotation->spare->file;
    rotation->spare->file = NULL;
    log->file_offset = sizeof(rotation->header) + size;
    rc = cn_disk_writev_all(log->file, parts, 2, 0);
    if (rc == 0)
        rc = sync_file(log);
    if (rc < 0)
        return rc;
    cn_segment_path(rotation->header.number, path);
    rc = cn_disk_rename(log->config.disk, rotation->spare->path, path);
    if (rc == 0 && log->config.sync == CN_LOG_FSYNC)
        rc = cn_disk_sync_dir(log->config.disk, "log"); /* L3 */
    return rc;
}

/* Writes and syncs a batch, segment by segment (L2). */
static int batch_write(struct cn_log *log, struct cn_log_batch *batch)
{
    uint8_t *bytes = batch->bytes.data;
    size_t end = batch->rotation_count ? batch->rotations[0].offset : batch->bytes.size;
    int rc = 0;
    if (end > 0) {
        claim(log, bytes);
        rc = cn_disk_write_all(log->file, bytes, end, log->file_offset);
        if (rc == 0)
            rc = sync_file(log);
        log->file_offset += end;
    }
    for (size_t i = 0; i < batch->rotation_count && rc == 0; i++) {
        struct cn_log_rotation *rotation = &batch->rotations[i];
        bool last = i + 1 == batch->rotation_count;
        end = last ? batch->bytes.size : rotation[1].offset;
        CN_ASSERT(end > rotation->offset);
        if (log->config.sync == CN_LOG_FSYNC)
            log->claimed_lsn = rotation->header.first_lsn - 1;
        claim(log, bytes + rotation->offset);
        rc = segment_begin(log, rotation, bytes + rotation->offset, end - rotation->offset);
    }
    return rc;
}

static void batch_clear(struct cn_log_batch *batch)
{
    for (size_t i = 0; i < batch->rotation_count; i++) {
        if (batch->rotations[i].spare)
            cn_log_spare_free(batch->rotations[i].spare);
    }
    batch->rotation_count = 0;
    if (batch->bytes.capacity > BATCH_KEEP)
        cn_buf_fini(&batch->bytes);
    cn_buf_clear(&batch->bytes);
}

/* L7. */
static int batch_settle(struct cn_log *log, const struct cn_log_batch *batch, struct cn_err *err)
{
    const struct cn_sink *sink = log->config.sink;
    struct cn_sink_batch settled = {.first_lsn = cn_log_durable(log) + 1,
                                    .last_lsn = batch->last_lsn,
                                    .bytes = batch->bytes.data,
                                    .size = batch->bytes.size};
    return sink ? sink->settle(sink->data, &settled, err) : 0;
}

int cn_log_batch_flush(struct cn_log *log, struct cn_log_batch *batch)
{
    log->flushing = true;
    pthread_mutex_unlock(&log->lock);

    CN_ASSERT(batch->last_lsn > cn_log_durable(log)); /* L1 */
    if (log->config.planted & CN_PLANTED_EARLY_ACK)
        atomic_store_explicit(&log->durable, batch->last_lsn, memory_order_release);
    uint64_t batch_count = batch->last_lsn - cn_log_durable(log);
    uint64_t start_ns = cn_clock_mono_ns(cn_clock_system());
    struct cn_err err;
    err.text[0] = 0;
    bool settled = batch_settle(log, batch, &err) == 0;
    int rc = settled ? batch_write(log, batch) : CN_EREADONLY;
    cn_histogram_note(&log->metrics.flush_us, cn_histogram_us,
                      (cn_clock_mono_ns(cn_clock_system()) - start_ns) / 1000);
    cn_histogram_note(&log->metrics.batch, cn_histogram_count, batch_count);
    if (rc == 0) {
        if (log->config.sync == CN_LOG_FSYNC)
            log->claimed_lsn = batch->last_lsn;
        atomic_store_explicit(&log->durable, batch->last_lsn, memory_order_release);
    }

    pthread_mutex_lock(&log->lock);
    log->flushing = false;
    log->flush_count++;
    pending_set(log, log->pending - batch->bytes.size);
    batch_clear(batch);
    if (rc < 0) {
        char reason[sizeof(log->reason)];
        snprintf(reason, sizeof(reason), "writing the log failed: %.200s",
                 settled ? strerror(-rc) : err.text);
        cn_log_fail_locked(log, reason); /* L4 */
    }
    pthread_cond_broadcast(&log->room);
    pthread_cond_broadcast(&log->durable_moved);
    return rc;
}

/* Flushes what has gathered. Called and returns with the lock held. */
static void flush_locked(struct cn_log *log)
{
    if (log->failed || log->filling->bytes.size == 0)
        return;
    struct cn_log_batch *batch = log->filling;
    log->filling = log->writing;
    log->writing = batch;
    int rc = cn_log_batch_flush(log, batch);
    pthread_mutex_unlock(&log->lock);
    cn_log_notify(log, cn_log_durable(log), rc < 0 ? CN_EREADONLY : 0);
    pthread_mutex_lock(&log->lock);
}

static void *flusher_run(void *arg)
{
    struct cn_log *log = arg;
    pthread_mutex_lock(&log->lock);
    for (;;) {
        if (!log->failed && log->filling->bytes.size > 0)
            flush_locked(log);
        else if (log->stopping)
            break;
        else
            pthread_cond_wait(&log->flush_wanted, &log->lock);
    }
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

void cn_log_flush(struct cn_log *log)
{
    CN_ASSERT(log->config.manual);
    pthread_mutex_lock(&log->lock);
    flush_locked(log);
    pthread_mutex_unlock(&log->lock);
}

/* ---- State ---- */

uint64_t cn_log_durable(const struct cn_log *log)
{
    return atomic_load_explicit(&log->durable, memory_order_acquire);
}

uint64_t cn_log_appended(const struct cn_log *log)
{
    return atomic_load_explicit(&log->appended, memory_order_acquire);
}

uint64_t cn_log_boundary(const struct cn_log *log)
{
    return atomic_load_explicit(&log->boundary, memory_order_acquire);
}

int cn_log_wait(struct cn_log *log, uint64_t lsn, struct cn_err *err)
{
    if (cn_log_durable(log) >= lsn)
        return 0;
    cn_may_block_here();
    int rc = 0;
    pthread_mutex_lock(&log->lock);
    CN_ASSERT(lsn <= cn_log_appended(log));
    while (cn_log_durable(log) < lsn && rc == 0) {
        if (log->failed)
            rc = cn_log_refused(log, err);
        else if (log->config.manual)
            flush_locked(log);
        else if (log->driven.stall)
            cn_log_stalled(log);
        else
            pthread_cond_wait(&log->durable_moved, &log->lock);
    }
    pthread_mutex_unlock(&log->lock);
    return rc;
}

int cn_log_status(struct cn_log *log, struct cn_err *err)
{
    pthread_mutex_lock(&log->lock);
    bool full = log->no_space && log->ready_count == 0;
    int rc = log->failed || full ? cn_log_refused(log, err) : 0;
    pthread_mutex_unlock(&log->lock);
    return rc;
}

bool cn_log_failed(struct cn_log *log, struct cn_err *err)
{
    pthread_mutex_lock(&log->lock);
    bool failed = log->failed;
    if (failed)
        (void)cn_log_refused(log, err);
    pthread_mutex_unlock(&log->lock);
    return failed;
}

void cn_log_listen(struct cn_log *log, struct cn_log_listener *listener)
{
    pthread_mutex_lock(&log->listener_lock);
    cn_list_push_back(&log->listeners, &listener->link);
    pthread_mutex_unlock(&log->listener_lock);
}

void cn_log_unlisten(struct cn_log *log, struct cn_log_listener *listener)
{
    pthread_mutex_lock(&log->listener_lock);
    cn_list_remove(&listener->link);
    pthread_mutex_unlock(&log->listener_lock);
}

void cn_log_wake(struct cn_log *log)
{
    cn_log_notify(log, UINT64_MAX, 0);
}

uint64_t cn_log_checkpoint_start(struct cn_log *log)
{
    pthread_mutex_lock(&log->lock);
    uint64_t boundary = cn_log_appended(log);
    atomic_store_explicit(&log->boundary, boundary, memory_order_release);
    pthread_mutex_unlock(&log->lock);
    return boundary;
}

uint64_t cn_log_pending(struct cn_log *log)
{
    pthread_mutex_lock(&log->lock);
    uint64_t bytes = log->pending;
    pthread_mutex_unlock(&log->lock);
    return bytes;
}

uint64_t cn_log_live_size(struct cn_log *log)
{
    pthread_mutex_lock(&log->lock);
    uint64_t size = live_size_locked(log);
    pthread_mutex_unlock(&log->lock);
    return size;
}

const struct cn_log_metrics *cn_log_metrics(const struct cn_log *log)
{
    return &log->metrics;
}

void cn_log_counters(struct cn_log *log, uint64_t *bytes, uint64_t *flush_count)
{
    pthread_mutex_lock(&log->lock);
    *bytes = log->log_bytes;
    *flush_count = log->flush_count;
    pthread_mutex_unlock(&log->lock);
}

/* ---- Segments ---- */

int cn_log_segments_before(struct cn_log *log, uint64_t lsn, struct cn_segment_info *segments,
                           int max)
{
    pthread_mutex_lock(&log->lock);
    int count = 0;
    uint64_t durable = cn_log_durable(log);
    /* The last segment stays: appends go to it or, after an open without any, it tells the next
     * one where LSNs continue. So does one that the flusher may still write. */
    for (size_t i = 0; i < log->segment_count && count < max; i++) {
        const struct cn_segment_info *segment = &log->segments[i];
        if (i + 1 == log->segment_count || segment->last_lsn >= lsn ||
            segment->last_lsn > durable || log->segments[i + 1].first_lsn > durable)
            break;
        segments[count++] = *segment;
    }
    pthread_mutex_unlock(&log->lock);
    return count;
}

int cn_log_release(struct cn_log *log, uint64_t number, struct cn_err *err)
{
    char path[CN_SEGMENT_PATH_MAX];
    cn_segment_path(number, path);
    struct cn_disk *disk = log->config.disk;

    pthread_mutex_lock(&log->lock);
    CN_ASSERT(log->segment_count > 0 && log->segments[0].number == number);
    bool reuse =
        log->retired_count < CN_LOG_SPARES_READY && !log->config.manual && !cn_log_is_driven(log);
    uint64_t serial = reuse ? ++log->spare_serial : 0;
    pthread_mutex_unlock(&log->lock);

    struct cn_log_spare *spare = NULL;
    if (reuse) {
        struct cn_disk_file *file;
        int64_t size = -1;
        if (cn_disk_open(disk, path, CN_DISK_READONLY, &file) == 0) {
            size = cn_disk_size(file);
            cn_disk_close(file);
        }
        reuse = size == (int64_t)log->config.segment_size;
    }
    int rc;
    if (reuse) {
        spare = CN_NEW(struct cn_log_spare);
        spare->capacity = log->config.segment_size;
        snprintf(spare->path, sizeof(spare->path), "log/spare-%" PRIu64 ".tmp", serial);
        rc = cn_disk_rename(disk, path, spare->path);
    } else {
        rc = cn_disk_unlink(disk, path);
    }
    /* Synced, so that the names of segments go in order (no gap after a crash), and before the
     * file is written again under its new name (the old name would show new bytes). */
    if (rc == 0)
        rc = cn_disk_sync_dir(disk, "log");
    if (rc < 0 && rc != -ENOENT) {
        cn_free(spare);
        return cn_err_errno(err, -rc, "cannot release %s", path);
    }

    pthread_mutex_lock(&log->lock);
    log->segment_count--;
    memmove(log->segments, log->segments + 1, log->segment_count * sizeof(*log->segments));
    if (spare && rc == 0) {
        cn_list_push_back(&log->retired, &spare->link);
        log->retired_count++;
        pthread_cond_signal(&log->spare_wanted);
    } else {
        cn_free(spare);
    }
    pthread_mutex_unlock(&log->lock);
    return 0;
}

void cn_log_adopt(struct cn_log *log, const struct cn_segment_info *segment)
{
    pthread_mutex_lock(&log->lock);
    CN_ASSERT(log->segment_capacity == 0);
    segment_list_add(log, *segment);
    pthread_mutex_unlock(&log->lock);
}

/* ---- Opening and closing ---- */

static void remove_spare(void *data, const char *name, bool is_dir)
{
    struct cn_log *log = data;
    char path[CN_LOG_SPARE_PATH_MAX + 256];
    if (is_dir || strncmp(name, "spare-", 6) != 0)
        return;
    snprintf(path, sizeof(path), "log/%s", name);
    (void)cn_disk_unlink(log->config.disk,
                         path); /* if it stays, it is overwritten or tried again */
}

static void log_free(struct cn_log *log)
{
    struct cn_list *link;
    if (cn_log_is_driven(log))
        cn_log_window_drop(log);
    for (int i = 0; i < 2; i++) {
        batch_clear(&log->batches[i]);
        cn_buf_fini(&log->batches[i].bytes);
        cn_free(log->batches[i].rotations);
    }
    while ((link = cn_list_take_front(&log->ready)) || (link = cn_list_take_front(&log->retired)))
        cn_log_spare_free(CN_CONTAINER_OF(link, struct cn_log_spare, link));
    if (log->file)
        cn_disk_close(log->file);
    cn_free(log->segments);
    cn_free(log->ends);
    pthread_mutex_destroy(&log->lock);
    pthread_mutex_destroy(&log->listener_lock);
    pthread_cond_destroy(&log->flush_wanted);
    pthread_cond_destroy(&log->room);
    pthread_cond_destroy(&log->durable_moved);
    pthread_cond_destroy(&log->spare_wanted);
    cn_free(log);
}

int cn_log_open(const struct cn_log_config *config, struct cn_log **result, struct cn_err *err)
{
    CN_ASSERT(config->next_lsn > 0 && config->next_number > 0);
    int rc = cn_disk_mkdirs(config->disk, "log");
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot make the log folder");
    struct cn_log *log = CN_NEW(struct cn_log);
    log->config = *config;
    log->filling = &log->batches[0];
    log->writing = &log->batches[1];
    log->next_number = config->next_number;
    log->last_time_ms = config->last_time_ms;
    atomic_init(&log->appended, config->next_lsn - 1);
    atomic_init(&log->durable, config->next_lsn - 1);
    atomic_init(&log->boundary, config->next_lsn - 1);
    log->claimed_lsn = config->sync == CN_LOG_FSYNC ? config->next_lsn - 1 : 0;
    cn_list_init(&log->ready);
    cn_list_init(&log->retired);
    cn_list_init(&log->listeners);
    pthread_mutex_init(&log->lock, NULL);
    pthread_mutex_init(&log->listener_lock, NULL);
    pthread_cond_init(&log->flush_wanted, NULL);
    pthread_cond_init(&log->room, NULL);
    pthread_cond_init(&log->durable_moved, NULL);
    cn_cond_init(&log->spare_wanted);
    rc = cn_disk_list(config->disk, "log", remove_spare, log);
    if (rc < 0) {
        log_free(log);
        return cn_err_errno(err, -rc, "cannot list the log folder");
    }
    if (config->driven) {
        log->driven = *config->driven;
        log->config.driven = &log->driven;
    } else if (!config->manual) {
        if (pthread_create(&log->flusher, NULL, flusher_run, log) != 0 ||
            pthread_create(&log->preparer, NULL, cn_log_preparer_run, log) != 0)
            cn_assert_fail("the threads of the log start", __FILE__, __LINE__);
        (void)pthread_setname_np(log->flusher, "cairn-flush"); /* only for those who look */
        (void)pthread_setname_np(log->preparer, "cairn-prepare");
    }
    *result = log;
    return 0;
}

void cn_log_close(struct cn_log *log)
{
    pthread_mutex_lock(&log->lock);
    bool threads = !log->config.manual && !cn_log_is_driven(log);
    if (log->config.manual && !cn_log_is_driven(log))
        flush_locked(log);
    log->stopping = true;
    pthread_cond_broadcast(&log->flush_wanted);
    pthread_cond_broadcast(&log->spare_wanted);
    pthread_cond_broadcast(&log->room);
    pthread_mutex_unlock(&log->lock);
    if (threads) {
        pthread_join(log->flusher, NULL);
        pthread_join(log->preparer, NULL);
    }
    log_free(log);
}
