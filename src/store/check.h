/* SPDX-License-Identifier: Apache-2.0 */
/* store/check.h - is everything in a data directory what we wrote?
 *
 * Reads every log record, every database (as recovery would leave it), every
 * archive and every blob, and compares the catalog with the databases. Recovery runs
 * on an overlay (base/overlay.h): nothing on the disk changes.
 *
 * Threads: the caller's. The directory is locked meanwhile. */
#ifndef CN_STORE_CHECK_H
#define CN_STORE_CHECK_H
#include <stdint.h>

#include "base/disk.h"
#include "base/err.h"

struct cn_check_report {
    /* Called with a sentence for each thing that is wrong. */
    void (*problem)(void *data, const char *text);
    void *data;
    /* What was looked at. */
    uint64_t record_count, object_count, object_bytes, archive_count, blob_count;
    uint64_t problem_count;
};

/* Counts and tells one: for those who look at more than a data directory. */
void cn_check_problem(struct cn_check_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* 0 if the directory could be checked, whatever was found; negative if not: it is in use
 * (CN_ELOCKED), of a newer version, or no data directory. */
int cn_check(struct cn_disk *disk, struct cn_check_report *report, struct cn_err *err);

#endif
