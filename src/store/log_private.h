/* SPDX-License-Identifier: Apache-2.0 */
/* store/log_private.h - shared by log.c (append, flush, segments), log_spare.c (files made ahead of
 * need) and log_driven.c (logs that are driven from outside). The design and its invariants are in
 * log.c. */
#ifndef CN_STORE_LOG_PRIVATE_H
#define CN_STORE_LOG_PRIVATE_H
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "store/log.h"

enum {
    CN_LOG_SPARES_READY = 2, /* kept ahead of need */
    CN_LOG_SPARE_PATH_MAX = 64,
    CN_LOG_CURSORS = 4,
};

/* A file that will become a segment. */
struct cn_log_spare {
    struct cn_list link;
    struct cn_disk_file *file;
    uint64_t capacity;
    char path[CN_LOG_SPARE_PATH_MAX];
};

/* The bytes from `offset` of a batch begin a new segment. */
struct cn_log_rotation {
    size_t offset;
    struct cn_log_spare *spare; /* NULL: owed, the flusher gets it (L11) */
    struct cn_segment_header header;
};

struct cn_log_batch {
    struct cn_buf bytes;
    struct cn_log_rotation *rotations;
    size_t rotation_count, rotation_capacity;
    uint64_t last_lsn;
};

struct cn_log {
    struct cn_log_config config;

    pthread_mutex_t lock; /* guards everything down to the blank line */
    pthread_cond_t flush_wanted, room, durable_moved, spare_wanted;
    struct cn_log_batch *filling, *writing; /* `writing` is the flusher's while it flushes */
    bool flushing;
    uint64_t pending;                        /* bytes in both batches; cn_log_pending_set() */
    uint64_t next_number;                    /* of the next segment */
    uint64_t segment_used, segment_capacity; /* of the segment that appends go to */
    int64_t last_time_ms;
    struct cn_segment_info *segments; /* live, oldest first; the last one takes appends */
    size_t segment_count, segment_list_capacity;
    struct cn_list ready; /* of struct cn_log_spare */
    int ready_count;
    struct cn_list retired; /* of struct cn_log_spare without a file: may be used again */
    int retired_count;
    uint64_t spare_size; /* least capacity the next spare must have */
    uint64_t spare_serial;
    bool no_space; /* the last spare could not be made */
    unsigned owed; /* rotations whose spare is not there yet */
    bool stopping;
    bool failed;
    bool given_up;    /* failed by cn_log_refuse(): its disk is as it was */
    char reason[256]; /* why it failed or what fills the disk */
    uint64_t log_bytes, flush_count;
    /* Driven: what is appended and not settled is in `filling`. */
    struct cn_log_driven driven;
    uint64_t *ends; /* owned; of each record of the window, in bytes since the log was opened */
    size_t end_count, end_capacity;
    uint64_t window_start; /* bytes that left the window */
    uint64_t fed_boundary;
    uint64_t unsynced_number; /* segments before this one are synced */
    bool making;              /* a spare */
    bool fed;                 /* takes records of others: they do not count for the budget */
    uint64_t budget_serial;   /* when there was last no room */
    struct cn_log_cursor {
        uint64_t lsn, number, offset; /* where that record begins; lsn 0: unused */
    } cursors[CN_LOG_CURSORS];        /* where others have read to */
    unsigned cursor_next;
    struct cn_log_metrics metrics; /* counted by whoever flushes, one at a time */

    atomic_uint_fast64_t pending_seen; /* `pending` for those without the lock */
    atomic_bool hinted; /* driven: told that there is something, and not asked since */
    atomic_uint_fast64_t appended, durable, boundary; /* written under `lock` (durable: flusher) */

    struct cn_disk_file *file; /* flusher: the current segment */
    uint64_t file_offset;      /* flusher: where the next byte goes */
    uint64_t claimed_lsn;      /* flusher: synced so far; 0 in `os` mode (R3) */
    struct cn_log_batch batches[2];

    pthread_mutex_t listener_lock; /* guards `listeners`; taken after no other lock */
    struct cn_list listeners;
    pthread_t flusher, preparer;
};

static inline bool cn_log_is_driven(const struct cn_log *log)
{
    return log->config.driven != NULL;
}

void cn_log_notify(struct cn_log *log, uint64_t durable, int status); /* without the lock */

/* All below with the lock held, unless they say otherwise. */

/* The log has failed, for whatever reason; the second one says so to the operator. Whoever calls
 * either tells the listeners (cn_log_notify()) when it has given the lock back: what they hold for
 * a commit waits for nothing else. */
void cn_log_end(struct cn_log *log, const char *reason);
void cn_log_fail_locked(struct cn_log *log, const char *reason);
int cn_log_refused(struct cn_log *log, struct cn_err *err);
/* 1: a segment has a place for `size` bytes. 0: look again, the lock was given away. */
int cn_log_place_try(struct cn_log *log, uint64_t size, struct cn_err *err);
/* Takes in a record whose place is there. */
void cn_log_put(struct cn_log *log, const struct cn_record_header *header, const void *body,
                struct cn_buf *owner);
/* Settles (L7), writes and publishes a batch that is no longer filled, and empties it. Gives the
 * lock away meanwhile. */
int cn_log_batch_flush(struct cn_log *log, struct cn_log_batch *batch);

/* log_spare.c */
void cn_log_spare_free(struct cn_log_spare *spare);
/* Makes one spare and puts it into `ready`. Gives the lock away meanwhile. */
void cn_log_spare_make(struct cn_log *log);
/* Waits for the spare that a rotation was promised. Negative: there will be none. */
int cn_log_spare_get(struct cn_log *log, struct cn_log_rotation *rotation);
/* A ready spare with room for `size` bytes, or NULL. */
struct cn_log_spare *cn_log_spare_take(struct cn_log *log, uint64_t size);
void *cn_log_preparer_run(void *log); /* a thread */

/* log_driven.c */
/* L11: how much more than its bound a log takes from threads that may not wait. */
#define CN_LOG_SLACK 4
static inline uint64_t cn_log_bound(uint64_t size_max, bool waits)
{
    return waits || size_max > UINT64_MAX / CN_LOG_SLACK ? size_max : CN_LOG_SLACK * size_max;
}
static inline enum cn_log_pressure cn_log_level(uint64_t used, uint64_t size_max)
{
    return used <= size_max ? CN_LOG_ROOMY : used / 2 <= size_max ? CN_LOG_PRESSED : CN_LOG_CROWDED;
}
enum cn_log_pressure cn_log_budget_pressure(const struct cn_log *log); /* without the lock */
/* False: the budget has no room for `size` bytes. */
bool cn_log_budget_take(struct cn_log *log, uint64_t size);
void cn_log_budget_give(struct cn_log *log, uint64_t size);
void cn_log_budget_wake(struct cn_log *log);
/* Gives the lock away until there may be room. */
void cn_log_budget_wait(struct cn_log *log);
void cn_log_window_add(struct cn_log *log, uint64_t size);
void cn_log_window_drop(struct cn_log *log);
/* Calls whoever drives it, in place of waiting for it. Gives the lock away meanwhile. */
void cn_log_stalled(struct cn_log *log);
void cn_log_hint(struct cn_log *log); /* without the lock */
uint64_t cn_log_driven_segment_size(const struct cn_log *log);

#endif
