/* SPDX-License-Identifier: Apache-2.0 */
/* store/store.h - the durable state of a node: one redo log, a database per object, a catalog.
 *
 * The way of a write:
 *
 *     cn_database_open()                 one lane owns the database while it is open
 *     cn_statement_..., cn_kvtable_...   the first write opens the turn's transaction
 *     cn_database_commit() -> LSN        changed pages + metadata are one log record
 *     durable >= LSN                     from now on, and not before, answers may tell of it
 *
 * A commit never waits for the disk. The lane registers a cn_store_listener,
 * whose callback (on the flusher's thread) wakes the lane's loop; the lane then
 * asks cn_store_may_leave() with the LSNs its outputs wait for.
 *
 * Opening runs recovery, in time proportional to the live log. When writes
 * fail (broken disk, full disk) commits return CN_EREADONLY and
 * cn_store_status() says why; reading goes on.
 *
 *     store/database.h   databases, statements, transactions, metadata
 *     store/kvtable.h    the key-value table of a database
 *     store/catalog.h    which objects exist; alarms
 *
 * A *driven* store (config.driven) is one of many in a process, a shard of a cluster
 * (store/replica.h): it has no threads, and what is durable is told from outside (cn_log_settle()).
 * For its users nothing else differs. It takes no LOCK, since its driver has one for all of them.
 *
 * Terms: docs/understand/glossary.md.
 *
 * Data directory: FORMAT (version), LOCK, log/, objects/, aside/, catalog/.
 *
 * Threads:   every function here from any thread.
 * Ownership: cn_store_open() allocates; databases are closed before cn_store_close(). */
#ifndef CN_STORE_STORE_H
#define CN_STORE_STORE_H
#include <stdbool.h>
#include <stdint.h>

#include "store/log.h"
#include "store/record.h"

struct cn_catalog;
struct cn_sink;
struct cn_store;

/* What becomes of the past. All functions run on the store's keeper thread;
 * paths are relative to the data directory. Without history, segments are
 * used again and files set aside are removed. */
struct cn_store_history {
    void *data;
    /* The log no longer needs this segment: take what you want of the file. 0:
     * done, the store may use the file again. Negative: keep it; asked again at the next
     * checkpoint. */
    int (*segment)(void *data, const char *path, const struct cn_segment_info *segment,
                   struct cn_err *err);
    /* deleteAll or deletion at `lsn` left this file: the object's database as
     * it was before, complete and synced. 0: taken (renamed, copied) or not
     * wanted; the store removes `path` if it is still there. */
    int (*set_aside)(void *data, const struct cn_object_key *key, uint64_t lsn, const char *path,
                     struct cn_err *err);
};

struct cn_chores;
struct cn_images_budget;

/* What many stores of one process share, and whom they tell. Borrowed pointers. */
struct cn_store_driven {
    struct cn_log_driven log;        /* log.h */
    struct cn_chores *chores;        /* NULL: manual */
    struct cn_images_budget *budget; /* of pages in memory and open files; may be NULL */
    /* A checkpoint has ended: recovery would start behind `lsn`. On a keeper's thread; must not
     * block. */
    void (*checkpointed)(void *data, uint64_t lsn);
    /* The disk takes nothing any more: it is full, or has failed. The same, and again while it is
     * so. */
    void (*unwritable)(void *data, const struct cn_err *err);
    void *data;
};

#define CN_STORE_LOG_LIVE_DEFAULT (256ull << 20)

/* Zero means default everywhere. */
struct cn_store_config {
    struct cn_disk *disk;   /* borrowed; the data directory is its root */
    struct cn_clock *clock; /* borrowed; NULL: the machine's */
    enum cn_log_sync sync;
    const struct cn_sink *sink;           /* borrowed; what "durable" means, NULL: on this disk */
    const struct cn_store_driven *driven; /* copied; NULL: the store works by itself */
    uint64_t log_live_size;               /* 256 MB: a checkpoint starts at half of it */
    uint64_t log_live_max;    /* 4 times that: commits beyond are refused as overloaded */
    uint64_t segment_size;    /* 16 MB */
    uint64_t dirty_size_max;  /* 64 MB: committed pages kept in memory before write-back */
    uint32_t open_files_max;  /* 512 database files held open, whatever the number of databases */
    uint32_t commit_size_max; /* 128 MB: changed pages of one transaction */
    bool manual;      /* no threads: waiting flushes, cn_store_checkpoint() works in the caller; for
                         tests that must repeat exactly */
    unsigned planted; /* enum cn_planted; for tests */
    const struct cn_store_history *history; /* borrowed; NULL: none */
};

int cn_store_open(const struct cn_store_config *config, struct cn_store **store,
                  struct cn_err *err);
/* Makes everything durable, writes a checkpoint, frees. One that is driven is dropped as it is:
 * what is not settled never was, and what is comes again from its log. */
void cn_store_close(struct cn_store *store);

/* Namespaces: a durable number for a name ("worker/Class", "$kv", ...), which
 * appears in every key. Finds it or makes a new one. */
int cn_store_namespace(struct cn_store *store, const char *name, uint32_t *namespace_id,
                       struct cn_err *err);
/* Who gives out numbers for many stores tells each those that it uses: enters the name, or another
 * one, of a number. */
int cn_store_namespace_learn(struct cn_store *store, uint32_t namespace_id, const char *name,
                             struct cn_err *err);
/* The number stays, so objects keep their data. CN_ENOTFOUND; CN_EEXISTS if `to` is in use. */
int cn_store_namespace_rename(struct cn_store *store, const char *from, const char *to,
                              struct cn_err *err);
/* Name of a number, or -CN_ENOTFOUND; the text is copied. */
int cn_store_namespace_name(struct cn_store *store, uint32_t namespace_id,
                            char name[CN_OBJECT_NAME_MAX + 1], struct cn_err *err);

/* Durability. */
uint64_t cn_store_durable(const struct cn_store *store);
/* May what depends on commits up to `lsn` be told to the outside? They are durable, and the sink,
 * if there is one, says so (store/sink.h). False may become true: listeners are called. */
bool cn_store_may_leave(const struct cn_store *store, uint64_t lsn);
/* K5 of store/sink.h; 0 and true where nothing is verified. */
bool cn_store_verifies(const struct cn_store *store);
uint64_t cn_store_ticket(const struct cn_store *store);
bool cn_store_confirmed(const struct cn_store *store, uint64_t ticket);
/* By whoever has the sink: may_leave() has changed. */
void cn_store_wake(struct cn_store *store);
int cn_store_wait(struct cn_store *store, uint64_t lsn, struct cn_err *err); /* blocks */
/* 0, or CN_EREADONLY: commits are refused for now, or for good. Says nothing of a commit that was
 * made: its LSN becomes durable on a full disk too (L5 of log.c). */
int cn_store_status(struct cn_store *store, struct cn_err *err);
/* 0, or CN_EREADONLY: the log has failed. What was not durable by then may be found by the next
 * start or not: nobody knows, and that is what `err` says. */
int cn_store_lost(struct cn_store *store, struct cn_err *err);
/* Does the disk (in a cluster, the engine) keep up? As cn_log_pressure(), with the pages in memory.
 */
enum cn_log_pressure cn_store_pressure(const struct cn_store *store);
void cn_store_listen(struct cn_store *store, struct cn_log_listener *listener);
void cn_store_unlisten(struct cn_store *store, struct cn_log_listener *listener);

struct cn_catalog *cn_store_catalog(struct cn_store *store);

/* Deletes an object that is not open: database, alarm, catalog entry, in one
 * record. CN_ELOCKED if it is open. Deleting what is not there is success. */
int cn_store_delete(struct cn_store *store, const struct cn_object_key *key, uint64_t *lsn,
                    struct cn_err *err);

/* Reading and replacing whole databases that are not open: backup and restore.
 * A snapshot is the committed state at one moment. */
struct cn_page_source {
    void *data;
    /* Fills `page` with page `page_no` (from 1). */
    int (*read)(void *data, uint32_t page_no, uint8_t page[CN_PAGE_SIZE], struct cn_err *err);
};
/* What goes with it besides pages. */
struct cn_replace_meta {
    bool has_alarm; /* else the present one stays */
    int64_t alarm_ms;
    const char *name; /* for an object that has none; NULL: none either */
    uint16_t name_size;
};
/* Makes the object's database equal to `page_count` pages of `source`, as one
 * ordinary commit (flag CN_COMMIT_RESTORE), so that it can be undone the same
 * way. `meta` may be NULL. CN_ELOCKED if the object is open. */
int cn_store_replace(struct cn_store *store, const struct cn_object_key *key, uint32_t page_count,
                     const struct cn_page_source *source, const struct cn_replace_meta *meta,
                     uint64_t *lsn, struct cn_err *err);
/* Appends pages to the object's database, which may be new; of one that is too large for one
 * commit, in parts: between them it is none that SQLite could read. */
int cn_store_extend(struct cn_store *store, const struct cn_object_key *key, const uint8_t *pages,
                    uint32_t page_count, const struct cn_replace_meta *meta, uint64_t *lsn,
                    struct cn_err *err);
/* The object's committed pages, one at a time: calls back for 1..page_count, all
 * as of *lsn (an LSN that covers them: wait for it before trusting them to be
 * durable). The object may be open; its commits wait meanwhile. */
int cn_store_snapshot(struct cn_store *store, const struct cn_object_key *key,
                      int (*each)(void *data, uint32_t page_no, const uint8_t *page), void *data,
                      uint32_t *page_count, uint64_t *lsn, struct cn_err *err);
/* Compares every page that is in the object's file with its checksum, and asks `source` for those
 * that do not match: they are written anew if they have the checksum that they should. *healed
 * counts them. The object may be open. */
int cn_store_heal(struct cn_store *store, const struct cn_object_key *key,
                  const struct cn_page_source *source, uint32_t *healed, struct cn_err *err);

/* Runs a checkpoint now and waits for it: afterwards the database files hold
 * everything that was durable when it was called. */
int cn_store_checkpoint(struct cn_store *store, struct cn_err *err);

/* The log, for history and backup. */
struct cn_log *cn_store_log(struct cn_store *store);
/* The LSN from which recovery would start. */
uint64_t cn_store_redo_lsn(struct cn_store *store);

struct cn_store_stats {
    uint64_t appended_lsn, durable_lsn, redo_lsn;
    uint64_t log_live_bytes;
    uint64_t flush_count; /* writes (and syncs) of the log */
    uint64_t log_bytes;   /* appended since the store was opened */
    uint64_t dirty_pages; /* committed, not yet in their files */
    uint64_t open_databases;
    uint64_t image_count; /* databases open, dirty or unsynced */
    uint64_t open_files;
    uint64_t checkpoint_count;
    uint64_t recovered_records; /* by the last open */
};
void cn_store_stats(struct cn_store *store, struct cn_store_stats *stats);
/* Memory of the log and of committed pages that are not in their files yet. */
uint64_t cn_store_memory(struct cn_store *store);

#endif
