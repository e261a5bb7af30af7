/* SPDX-License-Identifier: Apache-2.0 */
/* store/replica.h - the shards of a cluster that are on this disk, owned by this node or another.
 *
 * The state of a cluster is cut into shards. A shard is a store of its own, with its own LSNs,
 * catalog and history; a replica is one disk's copy of it, the folder shards/NNNN of the data
 * directory (NNNN: its number). The log of the engine, which all nodes share, decides what is
 * durable; a record is *settled* once that log has it.
 *
 *     form   what is there                                          moves to
 *     LOG    a closed store whose log grows by what it is fed:      OPEN  promote()
 *            a follower, or an owner-to-be that reads the tail      gone  discard()
 *     OPEN   a cn_store that takes commits, driven from outside     LOG   demote()
 *
 * A replica in LOG form costs next to nothing: no thread, no SQLite, no page in memory, at most one
 * open file. In OPEN form it costs what a driven store does (store/store.h): no thread of its own.
 *
 * P1  No file of a replica has what is not settled (store/sink.h, K1, K2). So record n of a shard
 *     is the same bytes on every disk and in the engine, for ever, and a record found in a file
 *     counts if its checksums do, whatever has happened to that file.
 * P2  Redo starts at a boundary (record.h, R9). Whatever was changed before it is in the files of
 *     databases and catalog, and those, and the log up to there, are synced before the redo point
 *     moves. The engine keeps the records from every replica's redo point on: `checkpoint`, the
 *     LSN before it, is what it is told.
 * P3  Whatever was changed at the redo point or behind it is not trusted in files: it may be
 *     older, newer than the log that is here, torn, or have no checksum. It is rebuilt from the
 *     log before anyone reads it: images first (R7), so that no page of a file is a base. That
 *     needs a log that reaches as far as anything that was ever written to a file here. It does:
 *     files have what is settled, and promote() demands all that is settled.
 * P4  Therefore the log behind the redo point is never synced, and a crash of the process is not
 *     told apart from a loss of power. After the one, everything is there; after the other, a
 *     beginning of it: the log is cut at the first record that does not count (P1), later
 *     segments go, and the rest comes from the engine. A record that is missing before the redo
 *     point is damage: the folder is kept, but is no replica any more (its file REPLICA becomes
 *     DAMAGED), until a new one takes its place.
 * P5  A follower's checkpoint redoes all that is there, not only what is before the boundary at
 *     which the redo point will be: pages of a former life as owner may be newer than that
 *     boundary, and older ones would be written over them. (By P3 that would do no harm. It would
 *     not save anything either: checkpoints follow boundaries closely.)
 * P6  An owner's checkpoint ends with a record, a mark if nothing else comes, so that followers
 *     have a boundary behind the last change, and the engine can forget a shard that has become
 *     idle.
 * P7  History is a replica's own: segments that redo no longer needs are archived here whoever
 *     wrote them, so a moment can be restored after a take-over. A copy takes the archives along.
 * P8  Time never goes back in a shard (R4): an owner begins with the time of the last record,
 *     whoever gave it out.
 * P9  A folder is a replica if it has the file REPLICA. A copy gets it when all of it is synced:
 *     it is whole or is none, and what is found without it at the start is removed. A copy is a
 *     store as a crash would have left it (store/backup.h, B1 to B3): pages copied while they were
 *     written are those of P3.
 * P10 A replica that is discarded is not removed: its folder becomes shards/aside/NNNN-TIME, as a
 *     whole, and stays there for `aside_ms`. Whoever decided that it is of no use may have been
 *     told so by an engine that went back.
 *
 * Data directory: shards/LOCK, shards/DISK (identity and life), shards/NNNN/ (REPLICA, and a
 * store: FORMAT, log/, objects/, aside/, catalog/, history/), shards/aside/NNNN-TIME/.
 *
 * Threads:   all functions from any thread. Those marked (slow) read or write files at length and
 *            belong on a thread of their own; of one replica only one of them runs at a time, and
 *            the others wait. Hooks are called on any thread, hold no lock of theirs, must not
 *            block, and must not call back.
 * Ownership: cn_replicas_open() allocates; cn_replicas_close() frees it and all replicas. A replica
 *            lives until discard() or close. The store of promote() belongs to the replica: whoever
 *            uses it has closed its databases, and ended every call of it, before demote(). */
#ifndef CN_STORE_REPLICA_H
#define CN_STORE_REPLICA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_buf;
struct cn_clock;
struct cn_disk;
struct cn_err;
struct cn_history;
struct cn_replica;
struct cn_replica_copy;
struct cn_replicas;
struct cn_sink;
struct cn_store;

#define CN_REPLICA_SHARDS_MAX 1024 /* numbers 0 to this, exclusive */

struct cn_replica_hooks {
    void *data;
    /* The owner's store has records that are not settled: cn_replica_appended() tells how far.
     * Called once until that is asked. */
    void (*appended)(void *data, uint32_t shard);
    /* All up to `lsn` is synced in files here: what cn_replica_state.checkpoint is now. */
    void (*checkpointed)(void *data, uint32_t shard, uint64_t lsn);
    /* For tests with one thread: called where a store would wait for a settlement, to make one.
     * NULL: it waits. */
    void (*stall)(void *data, uint32_t shard);
    /* The disk takes nothing any more, whether the replica is open or fed. Again while it is so. */
    void (*unwritable)(void *data, uint32_t shard, const struct cn_err *err);
};

/* Zero means default everywhere. The bounds are for all replicas together. */
struct cn_replicas_config {
    struct cn_disk *disk;   /* borrowed; the data directory is its root */
    struct cn_clock *clock; /* borrowed; NULL: the machine's */
    struct cn_replica_hooks hooks;
    unsigned keepers;          /* 2: threads that write back and checkpoint, whatever the number */
    uint64_t pending_max;      /* 256 MB: appended and not settled; an append beyond it waits */
    uint64_t dirty_size_max;   /* 256 MB: committed pages in memory before write-back */
    uint32_t open_files_max;   /* 2048 database files held open */
    uint64_t log_live_size;    /* 32 MB: of one store; a checkpoint starts at half of it */
    uint64_t log_live_max;     /* 1 GB: of one store; commits beyond it are refused as overloaded */
    uint64_t segment_size;     /* 4 MB: segments begin small and grow to this */
    int64_t aside_ms;          /* P10; 0: an hour */
    int64_t retention_ms;      /* of history: 0: 30 days; negative: keep nothing */
    uint64_t history_size_max; /* of one shard; 0: no limit */
    bool manual;      /* no threads: cn_replica_checkpoint() works in the caller; for tests */
    unsigned planted; /* enum cn_planted; for tests */
};

/* (slow) Finds the replicas that are there, all in LOG form; their logs are read. What cannot be
 * one is set aside with a line of the diag log (P4). CN_ELOCKED: another process has them. */
int cn_replicas_open(const struct cn_replicas_config *config, struct cn_replicas **replicas,
                     struct cn_err *err);
/* (slow) Demotes what is open; nothing that is not settled is written. */
void cn_replicas_close(struct cn_replicas *replicas);

/* The identity of the disk: random, given once, never 0. */
uint64_t cn_replicas_disk(const struct cn_replicas *replicas);
/* Higher than any that was told before, by a distance that leaves room for 2^20 increments by
 * whoever is told; durable when it returns. */
int cn_replicas_life(struct cn_replicas *replicas, uint64_t *life, struct cn_err *err);

/* NULL: none. */
struct cn_replica *cn_replicas_find(struct cn_replicas *replicas, uint32_t shard);
/* A replica of a shard that has no record yet, or whose log is whole in the engine. CN_EEXISTS. */
int cn_replicas_create(struct cn_replicas *replicas, uint32_t shard, struct cn_replica **replica,
                       struct cn_err *err);
/* (slow) Files and all; the store, if it is open, is closed first. Nothing there is success. A copy
 * that is arriving is not there yet: whoever takes it aborts it. */
int cn_replicas_discard(struct cn_replicas *replicas, uint32_t shard, struct cn_err *err);
/* (slow) P10: what was set aside long enough ago is removed. */
void cn_replicas_tidy(struct cn_replicas *replicas);

enum cn_replica_form {
    CN_REPLICA_LOG,
    CN_REPLICA_OPEN,
};

struct cn_replica_state {
    enum cn_replica_form form;
    uint64_t have;       /* the last record in files here, all settled */
    uint64_t checkpoint; /* P2: all up to it is synced in files */
    uint64_t boundary;   /* LOG: the last boundary that was fed; 0: none since the redo point */
    uint64_t live_bytes; /* of the log that redo still needs */
};
void cn_replica_state(struct cn_replica *replica, struct cn_replica_state *state);

/* ---- LOG ---- */

/* Whole records, one after the other, as cn_replica_records() gave them out. What is there already
 * is passed over. Refused, and nothing of them is used: bytes that are no records (CN_EINVALID), a
 * gap before or between them (CN_EINVALID), a replica that is open (CN_EINVALID). CN_EREADONLY: the
 * disk is full or has failed. Not synced (P4). */
int cn_replica_feed(struct cn_replica *replica, const void *bytes, size_t size, struct cn_err *err);
/* (slow) LOG: moves the redo point to the last boundary, if there is one. OPEN: a checkpoint of the
 * store. Keepers do it by themselves. */
int cn_replica_checkpoint(struct cn_replica *replica, struct cn_err *err);

/* (slow) Becomes a store that goes on after `lsn`, the last record that is settled. CN_EINVALID:
 * less or more than that is here. `sink` may be NULL, and is borrowed: may_leave() of it is asked,
 * settle() is not. The store and its history belong to the replica. */
int cn_replica_promote(struct cn_replica *replica, uint64_t lsn, const struct cn_sink *sink,
                       struct cn_store **store, struct cn_err *err);

/* ---- OPEN ---- */

struct cn_store *cn_replica_store(struct cn_replica *replica); /* NULL in LOG form */
struct cn_history *cn_replica_history(struct cn_replica *replica);

/* The last LSN appended. From now on the hook is called again for a later one. */
uint64_t cn_replica_appended(struct cn_replica *replica);
/* Appends the records `from` to `to` to `records`, settled or not, each as it goes to the engine
 * and to followers. Stops before `size_max` bytes are exceeded, but not before the first. Returns
 * the last LSN that it gave. 0: `from` is not there: not appended yet, or no longer in this disk's
 * log. */
uint64_t cn_replica_records(struct cn_replica *replica, uint64_t from, uint64_t to, size_t size_max,
                            struct cn_buf *records);
/* The engine has everything up to `lsn`, which was appended: it is written to the log's file (not
 * synced), then durable, and listeners are called. What was settled before is passed over. If it
 * cannot be written the store fails (CN_EREADONLY), and nothing that waited is told: it is safe in
 * the engine, and the next owner has it. One thread at a time. */
int cn_replica_settled(struct cn_replica *replica, uint64_t lsn, struct cn_err *err);
/* What is not settled never was (K2): the store fails with this sentence, whoever waits is told. */
void cn_replica_refuse(struct cn_replica *replica, const char *reason);
/* (slow) Back to LOG form, with everything that was settled. Refuses the rest, if there is any.
 * Does not checkpoint: a move must not wait for that. */
int cn_replica_demote(struct cn_replica *replica, struct cn_err *err);

/* ---- Copies ---- */

/* (slow) Writes all there is of the replica, in either form, as one stream. Checkpoints wait until
 * it ends; commits and feeds go on. `lsn`: the stream has the log up to there. A negative
 * return of `write`, which may block, ends it and is returned. History goes first: it is the
 * largest part, and immutable, so checkpoints go on meanwhile. */
int cn_replica_copy(struct cn_replica *replica,
                    int (*write)(void *data, const void *bytes, size_t size), void *data,
                    uint64_t *lsn, struct cn_err *err);

/* The other end. One copy of a shard at a time; none if there is a replica of it (CN_EEXISTS). */
int cn_replica_copy_begin(struct cn_replicas *replicas, uint32_t shard,
                          struct cn_replica_copy **copy, struct cn_err *err);
/* The stream's bytes, cut anywhere. CN_EINVALID: this is no such stream. After an error only abort.
 */
int cn_replica_copy_take(struct cn_replica_copy *copy, const void *bytes, size_t size,
                         struct cn_err *err);
/* (slow) The stream has ended: checked, synced, a replica in LOG form. Frees the copy, also when it
 * fails: then nothing of it is left. */
int cn_replica_copy_end(struct cn_replica_copy *copy, struct cn_replica **replica,
                        struct cn_err *err);
void cn_replica_copy_abort(struct cn_replica_copy *copy);

#endif
