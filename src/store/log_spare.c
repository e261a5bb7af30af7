/* SPDX-License-Identifier: Apache-2.0 */
/* store/log_spare.c - files that will become segments.
 *
 * Those of a log with threads are filled with zeros, not only allocated: the sync of a flush then
 * changes no metadata of the file system and does not wait for its journal. A driven log does not
 * sync: its spares are only allocated, so that a full disk is met here (L5), and begin small. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cond.h"
#include "base/diag.h"
#include "base/mem.h"
#include "store/log_private.h"

enum {
    ZERO_CHUNK = 1 << 20, /* bytes written at a time when a spare is filled */
    RETRY_SPACE_MS = 500, /* how often a full disk is tried again */
};

void cn_log_spare_free(struct cn_log_spare *spare)
{
    if (spare->file)
        cn_disk_close(spare->file);
    cn_free(spare);
}

static int fill_with_zeros(struct cn_disk_file *file, uint64_t size)
{
    static const uint8_t zeros[64 << 10];
    struct iovec parts[ZERO_CHUNK / sizeof(zeros)];
    int rc = 0;
    for (uint64_t at = 0; at < size && rc == 0; at += ZERO_CHUNK) {
        uint64_t left = size - at;
        int count = 0;
        while (count < (int)CN_ARRAY_COUNT(parts) && left > 0) {
            size_t piece = left < sizeof(zeros) ? (size_t)left : sizeof(zeros);
            parts[count++] = (struct iovec){.iov_base = (void *)zeros, .iov_len = piece};
            left -= piece;
        }
        rc = cn_disk_writev_all(file, parts, count, at);
    }
    return rc;
}

/* Opens or creates the file of a spare; a new one is filled and synced. */
static int spare_open(struct cn_log *log, struct cn_log_spare *spare, bool reuse)
{
    struct cn_disk *disk = log->config.disk;
    int rc = cn_disk_open(disk, spare->path, reuse ? 0 : CN_DISK_CREATE | CN_DISK_TRUNCATE,
                          &spare->file);
    if (rc < 0)
        return rc;
    if (reuse)
        return 0;
    rc = cn_disk_allocate(spare->file, 0, spare->capacity);
    if (rc == 0 && !cn_log_is_driven(log))
        rc = fill_with_zeros(spare->file, spare->capacity);
    if (rc == 0 && log->config.sync == CN_LOG_FSYNC)
        rc = cn_disk_sync_data(spare->file);
    if (rc < 0) {
        cn_disk_close(spare->file);
        spare->file = NULL;
        (void)cn_disk_unlink(disk, spare->path); /* or it is removed at the next start */
    }
    return rc;
}

void cn_log_spare_make(struct cn_log *log)
{
    uint64_t size =
        cn_log_is_driven(log) ? cn_log_driven_segment_size(log) : log->config.segment_size;
    if (size < log->spare_size)
        size = log->spare_size;
    struct cn_log_spare *spare = NULL;
    struct cn_list *link =
        size == log->config.segment_size ? cn_list_take_front(&log->retired) : NULL;
    bool reuse = link != NULL;
    if (reuse) {
        spare = CN_CONTAINER_OF(link, struct cn_log_spare, link);
        log->retired_count--;
    } else {
        spare = CN_NEW(struct cn_log_spare);
        spare->capacity = size;
        snprintf(spare->path, sizeof(spare->path), "log/spare-%" PRIu64 ".tmp",
                 ++log->spare_serial);
    }
    pthread_mutex_unlock(&log->lock);
    int rc = spare_open(log, spare, reuse);
    pthread_mutex_lock(&log->lock);
    if (rc == 0) {
        if (log->no_space)
            cn_info("there is space for the log again");
        log->no_space = false;
        if (size >= log->spare_size)
            log->spare_size = 0;
        cn_list_push_back(&log->ready, &spare->link);
        log->ready_count++;
    } else {
        char reason[sizeof(log->reason)];
        snprintf(reason, sizeof(reason), "cannot make a log segment of %" PRIu64 " bytes: %s", size,
                 strerror(-rc));
        cn_log_spare_free(spare);
        if (rc == -ENOSPC || rc == -EDQUOT || rc == -EMFILE || rc == -ENFILE) { /* L5 */
            if (!log->no_space)
                cn_error("writes are refused until there is space: %s", reason);
            log->no_space = true;
            snprintf(log->reason, sizeof(log->reason), "%s", reason);
        } else {
            cn_log_fail_locked(log, reason);
            pthread_mutex_unlock(&log->lock);
            cn_log_notify(log, cn_log_durable(log), CN_EREADONLY);
            pthread_mutex_lock(&log->lock);
        }
    }
    pthread_cond_broadcast(&log->room);
}

int cn_log_spare_get(struct cn_log *log, struct cn_log_rotation *rotation)
{
    uint64_t need = rotation->header.file_size;
    struct cn_log_spare *spare;
    int rc = 0;
    pthread_mutex_lock(&log->lock);
    while (!(spare = cn_log_spare_take(log, need)) && rc == 0) {
        if (need > log->spare_size)
            log->spare_size = need;
        if (log->failed || (log->stopping && log->no_space)) {
            rc = log->failed ? -EIO : -ENOSPC;
        } else if (log->stopping) { /* the preparer has ended */
            cn_log_spare_make(log);
        } else { /* it tells of every attempt; a disk that is full is tried again */
            pthread_cond_signal(&log->spare_wanted);
            pthread_cond_wait(&log->room, &log->lock);
        }
    }
    log->owed--;
    pthread_mutex_unlock(&log->lock);
    if (rc < 0)
        return rc;
    rotation->spare = spare;
    rotation->header.file_size = spare->capacity;
    cn_segment_seal(&rotation->header);
    return 0;
}

void *cn_log_preparer_run(void *arg)
{
    struct cn_log *log = arg;
    pthread_mutex_lock(&log->lock);
    while (!log->stopping && !log->failed) {
        if (log->ready_count >= CN_LOG_SPARES_READY && log->spare_size == 0) {
            pthread_cond_wait(&log->spare_wanted, &log->lock);
            continue;
        }
        cn_log_spare_make(log);
        if (log->no_space && !log->stopping)
            (void)cn_cond_wait_ms(&log->spare_wanted, &log->lock, RETRY_SPACE_MS);
    }
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

struct cn_log_spare *cn_log_spare_take(struct cn_log *log, uint64_t size)
{
    CN_LIST_FOREACH(&log->ready, link)
    {
        struct cn_log_spare *spare = CN_CONTAINER_OF(link, struct cn_log_spare, link);
        if (spare->capacity >= size) {
            cn_list_remove(&spare->link);
            log->ready_count--;
            pthread_cond_signal(&log->spare_wanted);
            return spare;
        }
    }
    return NULL;
}
