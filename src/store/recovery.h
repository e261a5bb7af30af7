/* SPDX-License-Identifier: Apache-2.0 */
/* store/recovery.h - brings database files and catalog up to date from the log.
 *
 * Threads: runs alone, before the log is opened for writing; with `last_lsn`, beside a log that is
 * fed. */
#ifndef CN_STORE_RECOVERY_H
#define CN_STORE_RECOVERY_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/disk.h"
#include "store/segment.h"

struct cn_catalog;

/* Zeroed for the store of a single node. */
struct cn_recovery_config {
    bool settled;  /* the log is one whose records are all settled elsewhere (V6) */
    bool only_log; /* no redo, no catalog: only what the log has */
    bool sync;     /* files that it writes, and their names */
    uint64_t
        last_lsn; /* redo up to here, which is there, and leave the log as it is; 0: all of it */
    uint32_t pages_max;           /* in memory at a time; 0: 256 MB of them */
    unsigned planted;             /* enum cn_planted; for tests */
    const atomic_bool *cancelled; /* becomes true: ends with CN_EABORTED; may be NULL */
};

struct cn_recovery {
    uint64_t redo_lsn;    /* where it started */
    uint64_t boundary;    /* the last one behind that (record.h, R9); 0: none */
    uint64_t next_lsn;    /* for the next record */
    uint64_t next_number; /* for the next segment */
    int64_t last_time_ms;
    uint64_t record_count;            /* read */
    struct cn_segment_info *segments; /* owned: live, oldest first */
    size_t segment_count;
};

/* Reads every record from the last checkpoint on, writes the pages (unsynced: the
 * log keeps its records until the next checkpoint), enters metadata into the
 * catalog, cuts a torn tail off. CN_ECORRUPT if the log is damaged: then nothing
 * more is written. */
int cn_recovery_run(const struct cn_recovery_config *config, struct cn_disk *disk,
                    struct cn_catalog *catalog, struct cn_recovery *recovery, struct cn_err *err);
void cn_recovery_fini(struct cn_recovery *recovery);

#endif
