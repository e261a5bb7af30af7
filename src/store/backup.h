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
 *   B5  Until it is whole and was compared, a copy has the file CN_BACKUP_UNFINISHED, and is no
 *       data directory (server/data.c, store/check.c). That file is the copy's manifest as well:
 *       of each file the CRC-32C of what was read from the original, its size and its path.
 *       Everything is read again and compared with it before the file goes:
 *       cn_store_backup_finish().
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

#define CN_BACKUP_UNFINISHED "UNFINISHED"
#define CN_BACKUP_UNFINISHED_TEXT \
    "a backup into this folder has not come to its end: it is no copy of anything"

struct cn_backup_report {
    uint64_t file_count, bytes;
    uint64_t lsn; /* the copy is as of this commit */
    /* Asked between pieces: true ends the backup with CN_EABORTED. The caller's; may be NULL. */
    bool (*cancelled)(void *data);
    void *data;
    bool compared_there; /* who has the folder compares what is in it: the caller's */
};

/* Copies everything to `to`, whose root must be empty. The copy is not finished then; on failure it
 * never is (B5). */
int cn_store_backup(struct cn_store *store, struct cn_disk *to, struct cn_backup_report *report,
                    struct cn_err *err);
/* B5: compares the copy with its manifest, and makes it a data directory. CN_ECORRUPT. */
int cn_store_backup_finish(struct cn_disk *copy, struct cn_err *err);

#endif
