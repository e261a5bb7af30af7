/* SPDX-License-Identifier: Apache-2.0 */
/* store/checkpoint.h - the keeper: write-back and checkpoints in the background.
 *
 * The keeper of a driven store (store/store.h) has no thread of its own: it is a chore of threads
 * that many stores share (store/chores.h).
 *
 * A checkpoint moves the point from which recovery would start (redo_lsn), and
 * so bounds the log and the time of a restart. Commits go on meanwhile.
 *
 * Threads:   cn_keeper_... from any; the work is done on the keeper's thread or that of its chores,
 *            or, if `manual`, in the caller's. */
#ifndef CN_STORE_CHECKPOINT_H
#define CN_STORE_CHECKPOINT_H
#include <stdbool.h>
#include <stdint.h>

#include "base/disk.h"
#include "base/err.h"
#include "store/record.h"

struct cn_catalog;
struct cn_images;
struct cn_keeper;
struct cn_log;
struct cn_store_driven;
struct cn_store_history;

struct cn_keeper_config {
    struct cn_disk *disk;
    struct cn_log *log;
    struct cn_images *images;
    struct cn_catalog *catalog;
    const struct cn_store_history *history; /* may be NULL */
    uint64_t live_size;       /* a checkpoint starts when the live log is half as large */
    uint64_t dirty_pages_max; /* write-back starts when more are dirty */
    uint64_t redo_lsn;        /* found by recovery */
    bool trust_os;            /* `os` mode: the file claims nothing about durability */
    bool manual;
    const struct cn_store_driven *driven; /* borrowed; NULL: it has a thread */
};

struct cn_keeper *cn_keeper_new(const struct cn_keeper_config *config);
/* Ends the thread, after a last checkpoint if `checkpoint`. */
void cn_keeper_free(struct cn_keeper *keeper, bool checkpoint);
/* There is something to write back. */
void cn_keeper_wake(struct cn_keeper *keeper);
/* Asks for a checkpoint and waits for its end. */
int cn_keeper_checkpoint(struct cn_keeper *keeper, struct cn_err *err);
/* No checkpoint ends, no segment goes and the catalog's file stays as it is, until released;
 * writing pages back goes on. Waits for a running checkpoint. Holds may overlap. */
void cn_keeper_hold(struct cn_keeper *keeper);
void cn_keeper_release(struct cn_keeper *keeper);
uint64_t cn_keeper_redo_lsn(struct cn_keeper *keeper);
uint64_t cn_keeper_count(struct cn_keeper *keeper); /* checkpoints so far */

/* Step 5 of a checkpoint (checkpoint.c): hands to history, which may be NULL, what redo from
 * `redo_lsn` on does not need. */
int cn_checkpoint_hand_over(struct cn_disk *disk, struct cn_log *log,
                            const struct cn_store_history *history, uint64_t redo_lsn,
                            struct cn_err *err);

/* The file log/checkpoint. */
#define CN_CHECKPOINT_MAGIC 0x31504b43u /* "CKP1" */
struct cn_checkpoint {
    uint32_t magic;
    uint32_t crc; /* CRC-32C of the rest */
    uint32_t version;
    uint32_t reserved;
    uint64_t redo_lsn;    /* recovery starts with this record */
    uint64_t durable_lsn; /* the log reaches at least to here; 0: no claim */
};
static_assert(sizeof(struct cn_checkpoint) == 32, "on disk");
/* 1 and the checkpoint, or 0 if there is no file. CN_ECORRUPT, CN_EVERSION. */
int cn_checkpoint_read(struct cn_disk *disk, struct cn_checkpoint *checkpoint, struct cn_err *err);
int cn_checkpoint_write(struct cn_disk *disk, uint64_t redo_lsn, uint64_t durable_lsn,
                        struct cn_err *err);

#endif
