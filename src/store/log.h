/* SPDX-License-Identifier: Apache-2.0 */
/* store/log.h - the redo log of a node: every commit of every object becomes durable here.
 *
 * Append from any thread; one flusher thread writes and syncs whatever has
 * gathered (group commit) and then publishes the durable LSN; a preparer
 * thread keeps the next segment file ready. The format is in store/record.h,
 * the invariants are in log.c.
 *
 * A *driven* log (config.driven) belongs to a shard of a cluster. It has no threads: appended
 * records wait in memory until the driver declares them settled (cn_log_settle(): they are written,
 * not synced, and durable) or lost (cn_log_fail()). It can also be fed with records of another
 * node's log. A process has many of them; log_driven.c has what is different.
 *
 * Threads:   every function from any thread unless it says otherwise.
 * Ownership: cn_log_open() allocates, cn_log_close() frees; the disk and the
 *            clock are borrowed and outlive the log. */
#ifndef CN_STORE_LOG_H
#define CN_STORE_LOG_H
#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/disk.h"
#include "base/list.h"
#include "store/record.h"
#include "store/segment.h"

struct cn_buf;
struct cn_clock;
struct cn_log;
struct cn_sink;

enum cn_log_sync {
    CN_LOG_FSYNC, /* durable means on disk */
    CN_LOG_OS, /* durable means given to the operating system: survives kill -9, not power loss */
};

/* Bugs that tests plant to see that they are found. 0 in life. */
enum cn_planted {
    CN_PLANTED_EARLY_ACK = 1, /* durable is published before the sync */
    CN_PLANTED_NO_IMAGE = 2,  /* the first change of a page is logged without the page (R7) */
    CN_PLANTED_EARLY_WRITE_BACK = 4, /* pages go to their files before they are durable */
    CN_PLANTED_ANY_BOUNDARY = 8,     /* a replica's redo starts with any record (R9) */
    CN_PLANTED_EARLY_SETTLE = 16,    /* what is refused is written all the same (K2) */
};

/* One bound for what all driven logs of a process keep in memory. */
struct cn_log_budget;
struct cn_log_budget *cn_log_budget_new(uint64_t size_max);
void cn_log_budget_free(struct cn_log_budget *budget);

struct cn_log_driven {
    struct cn_log_budget *budget; /* borrowed; may be NULL */
    /* There are records to settle. Called at most once between two calls of cn_log_take_hint(), on
     * the thread that appends, without locks. Must not block and must not call the log. */
    void (*appended)(void *data);
    /* For tests with one thread: called where the log would wait for a settlement, to make one.
     * NULL: it waits. */
    void (*stall)(void *data);
    void *data;
};

struct cn_log_config {
    struct cn_disk *disk;
    struct cn_clock *clock;
    enum cn_log_sync sync;
    const struct cn_sink *sink; /* borrowed; what has to have a batch first, NULL: nothing */
    const struct cn_log_driven *driven; /* copied; NULL: the log works by itself */
    uint64_t segment_size;              /* bytes of a segment file */
    uint64_t pending_max; /* bytes appended and not yet durable; an append beyond it waits (L11) */
    uint64_t live_max;    /* bytes of live segments; an append beyond it is refused */
    bool manual;          /* no threads: cn_log_flush() and waiting do the work; for tests */
    unsigned planted;     /* enum cn_planted */
    uint64_t next_lsn;    /* where to go on: the last LSN found by recovery, plus one */
    uint64_t next_number; /* number of the next segment file */
    int64_t last_time_ms; /* time of the last record found by recovery */
};

/* Called after each flush on the flusher's thread, and once with a negative
 * `status` when the log has failed; by cn_log_wake() with UINT64_MAX: look again.
 * Must not block and must not call the log. */
struct cn_log_listener {
    struct cn_list link; /* the log's */
    void (*on_durable)(struct cn_log_listener *listener, uint64_t durable_lsn, int status);
};

int cn_log_open(const struct cn_log_config *config, struct cn_log **log, struct cn_err *err);
/* Flushes what was appended, then ends the threads. */
void cn_log_close(struct cn_log *log);

struct cn_log_entry {
    enum cn_record_kind kind;
    const void *body;
    size_t size;
    uint64_t boundary; /* what cn_log_boundary() returned before the body was encoded */
    /* NULL, or what has the body, behind CN_LOG_ROOM bytes for the log: a large one is taken rather
     * than copied if nothing else waits to be written, and the buffer is then empty. */
    struct cn_buf *owner;
};
#define CN_LOG_ROOM sizeof(struct cn_record_header)
/* Appends one record; its LSN is durable once cn_log_durable() has reached it.
 * If a checkpoint has started since `boundary`, nothing is appended and -EAGAIN
 * returned, because the body lacks page images (R7); encode again. CN_EREADONLY:
 * the log has failed, or the disk is full. CN_ELIMIT: the body is too large. CN_EOVERLOADED: too
 * much waits for the disk. Waits for room on threads that may, and takes more than its bound on
 * others (L11). */
int cn_log_append(struct cn_log *log, const struct cn_log_entry *entry, uint64_t *lsn,
                  int64_t *time_ms, struct cn_err *err);

/* The last LSN that is safe. Never goes back. */
uint64_t cn_log_durable(const struct cn_log *log);
/* The last LSN given out. */
uint64_t cn_log_appended(const struct cn_log *log);
/* Writes and syncs what was appended, in the caller's thread; only if `manual`. */
void cn_log_flush(struct cn_log *log);
/* Bytes that wait in memory (L6). */
uint64_t cn_log_pending(struct cn_log *log);
/* How far they are beyond the bound (L11): 0, who wrote may go on; 1, it should wait; 2, nobody
 * who may write should begin. When it has sunk, listeners are called, at the latest with the next
 * flush. Without a lock. */
enum cn_log_pressure { CN_LOG_ROOMY, CN_LOG_PRESSED, CN_LOG_CROWDED };
enum cn_log_pressure cn_log_pressure(const struct cn_log *log);
/* Blocks until `lsn` is durable (base/block.h); negative if the log has failed before. */
int cn_log_wait(struct cn_log *log, uint64_t lsn, struct cn_err *err);
/* 0, or CN_EREADONLY with the reason why appends are refused. */
int cn_log_status(struct cn_log *log, struct cn_err *err);
/* Has the log failed for good (not: is the disk full)? Then nothing must be written
 * to other files on the strength of it. */
bool cn_log_failed(struct cn_log *log, struct cn_err *err);
/* Refuses every later append, as after a failed write: something else below
 * the store has failed (a database file). The first reason stays. */
void cn_log_fail(struct cn_log *log, const char *reason);

void cn_log_listen(struct cn_log *log, struct cn_log_listener *listener);
/* Calls all listeners, as after a flush. */
void cn_log_wake(struct cn_log *log);
/* After this the listener is not called any more. */
void cn_log_unlisten(struct cn_log *log, struct cn_log_listener *listener);

/* Checkpoints. The boundary is the LSN up to which the running or last
 * checkpoint makes the log unnecessary: a page whose last image has an LSN up to
 * it needs a new image. Starting one moves the boundary to the last LSN appended. */
uint64_t cn_log_boundary(const struct cn_log *log);
uint64_t cn_log_checkpoint_start(struct cn_log *log);
/* Bytes of the segments not yet released. */
uint64_t cn_log_live_size(struct cn_log *log);
/* How long flushes take (us) and how many commits each makes durable. */
struct cn_log_metrics {
    struct cn_histogram flush_us, batch;
};
const struct cn_log_metrics *cn_log_metrics(const struct cn_log *log);
/* Bytes appended and flushes made since the log was opened. */
void cn_log_counters(struct cn_log *log, uint64_t *bytes, uint64_t *flush_count);

/* Segments below the current one whose records are all below `lsn`: oldest
 * first, at most `max`. They stay until released. */
int cn_log_segments_before(struct cn_log *log, uint64_t lsn, struct cn_segment_info *segments,
                           int max);
/* The oldest segment goes: its file is used again or removed. */
int cn_log_release(struct cn_log *log, uint64_t number, struct cn_err *err);
/* ---- Driven logs (log_driven.c) ---- */

/* Everything up to `lsn`, which was appended, is safe elsewhere: writes it, publishes it, calls
 * listeners. What was settled before is passed over. CN_EREADONLY: it could not be written, and the
 * log has failed. One thread at a time. */
int cn_log_settle(struct cn_log *log, uint64_t lsn, struct cn_err *err);
/* What is not settled never was: as cn_log_fail(), without a word to the operator. */
void cn_log_refuse(struct cn_log *log, const char *reason);
/* Tries again to make room on a disk that was full. */
void cn_log_retry_space(struct cn_log *log);
/* Whether its disk takes nothing any more: a write has failed, or there is no space for a segment.
 */
bool cn_log_unwritable(struct cn_log *log, struct cn_err *err);
/* The last LSN appended; from now on the hint for a later one is given. */
uint64_t cn_log_take_hint(struct cn_log *log);
/* Records that are settled elsewhere already, whole and one after the other, for a log that nobody
 * appends to: written and durable when it returns. What is there is passed over. CN_EINVALID: no
 * records, or not those that come next; nothing is used. CN_EREADONLY as append. */
int cn_log_feed(struct cn_log *log, const void *bytes, size_t size, struct cn_err *err);
/* Appends the records `from` to `to` to `records`, as they are or will be in the file; stops before
 * `size_max` bytes are exceeded, but gives one at least. Returns the last LSN it gave; 0: `from` is
 * not appended yet, or no longer in the log's files. */
uint64_t cn_log_records(struct cn_log *log, uint64_t from, uint64_t to, size_t size_max,
                        struct cn_buf *records);
/* Syncs what is durable up to `lsn`, and the names of segments: the log that a checkpoint leaves
 * behind. Nothing else syncs a driven log. */
int cn_log_sync(struct cn_log *log, uint64_t lsn, struct cn_err *err);
/* Since it was opened: the last boundary that was fed (record.h, R9); 0: none. */
uint64_t cn_log_fed_boundary(struct cn_log *log);

/* Tells the log of a segment found by recovery, oldest first, before appends begin. */
void cn_log_adopt(struct cn_log *log, const struct cn_segment_info *segment);

#endif
