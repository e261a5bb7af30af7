/* SPDX-License-Identifier: Apache-2.0 */
/* store/backup.h - a copy of a data directory that is in use.
 *
 * The copy is a data directory as a crash at one moment would have left it:
 * opening it runs recovery and gives every object as of that moment, which is
 * no earlier than the end of the copying of its files. Commits go on meanwhile.
 *
 *   B1  Checkpoints are held: recovery of the copy starts where that of the
 *       original would, and no segment it needs goes.
 *   B2  Database files are copied while they are written to. Whatever was written since
 *       the last checkpoint is in the log as whole pages (record.h, R7), and is
 *       durable there before it is in a file, so the log makes good what was
 *       copied half old and half new.
 *   B3  The log is copied behind the databases, exactly up to what is durable then.
 *   B4  Blobs are copied before and after: those that the copied databases refer to
 *       are there, except one that was made and deleted again during the second pass.
 *
 * A backup that takes long holds the log: beyond four times its live size
 * commits are refused as overloaded until the backup ends.
 *
 * Threads: any; one backup at a time. */
#ifndef CN_STORE_BACKUP_H
#define CN_STORE_BACKUP_H
#include <stdbool.h>
#include <stdint.h>

#include "base/disk.h"
#include "base/err.h"

struct cn_store;

struct cn_backup_report {
    uint64_t file_count, bytes;
    uint64_t lsn; /* the copy is as of this commit */
    /* Asked between pieces: true ends the backup with CN_EABORTED. The caller's; may be NULL. */
    bool (*cancelled)(void *data);
    void *data;
};

/* Copies everything to `to`, whose root must be empty. On failure what was copied stays there,
 * without FORMAT, so that it is not taken for a data directory. */
int cn_store_backup(struct cn_store *store, struct cn_disk *to, struct cn_backup_report *report,
                    struct cn_err *err);

#endif
