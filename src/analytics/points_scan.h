/* SPDX-License-Identifier: Apache-2.0 */
/* analytics/points_scan.h - reads the data points of a dataset, a block at a time.
 *
 * Only the columns that are asked for are read from blocks that are large, and only the blocks
 * (and files) that can have points of the time that is asked for. What is torn or damaged is
 * passed over and counted, never returned: each column has its checksum. Whether that makes an
 * answer wrong is for the caller to say: what a crash leaves at the end of a file was never
 * promised.
 *
 * Threads:   any, also while the flusher appends; one scan on one thread.
 * Ownership: the caller's; a batch is valid until the next call. */
#ifndef CN_ANALYTICS_POINTS_SCAN_H
#define CN_ANALYTICS_POINTS_SCAN_H
#include <stdbool.h>
#include <stdint.h>

#include "analytics/points.h"
#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"

struct cn_points_batch {
    uint32_t row_count;
    struct cn_points_values {
        const void *values;   /* int64_t or double of each row; NULL: the default for all of them */
        const uint32_t *ends; /* of texts; NULL: all are empty */
        const char *bytes;
    } columns[CN_POINTS_COLUMN_COUNT]; /* those that were not asked for look absent */
};

struct cn_points_scan {
    struct cn_disk *disk;
    char *folder; /* owned */
    uint64_t columns;
    int64_t first_ms, last_ms;
    struct cn_disk_entries segments;
    size_t next_segment;
    struct cn_disk_file *file; /* NULL: none is open */
    uint64_t offset, size;     /* in the file; of the file */
    struct cn_buf window;      /* bytes of the file from window_offset on */
    uint64_t window_offset;
    struct cn_buf body; /* the columns of a large block */
    uint64_t damaged;   /* places that were passed over */
    uint64_t holes;     /* those of them that blocks follow: no write that a crash cut short */
    bool suspect;       /* the last thing in this file was damaged */
};

/* All points from first_ms to last_ms, both inclusive, and perhaps others. `columns` has a bit for
 * each that is wanted. CN_ENOTFOUND: there is no such dataset. */
int cn_points_scan_open(struct cn_points_scan *scan, struct cn_disk *disk, const char *dataset,
                        uint64_t columns, int64_t first_ms, int64_t last_ms, struct cn_err *err);
/* 1: a batch; 0: that was all. */
int cn_points_scan_next(struct cn_points_scan *scan, struct cn_points_batch *batch,
                        struct cn_err *err);
void cn_points_scan_close(struct cn_points_scan *scan);

/* Reads all points of all datasets, and calls back for each file that has holes: its path below
 * CN_POINTS_DIR, and how many. */
typedef void (*cn_points_bad)(void *data, const char *path, uint64_t holes);
int cn_points_check(struct cn_disk *disk, cn_points_bad bad, void *data, struct cn_err *err);

#endif
