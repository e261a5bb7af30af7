/* SPDX-License-Identifier: Apache-2.0 */
/* analytics/points.h - the data points of Analytics Engine, in columns, on disk.
 *
 *     lane: cn_points_write() ──► the lane's buffer ──┐ every CN_POINTS_FLUSH_MS, or
 *     lane: cn_points_write() ──► the lane's buffer ──┤ when one has CN_POINTS_WAKE bytes
 *                                                     ▼
 *                     flusher: rows become columns ──► a block at the end of the dataset's
 *                     segment, analytics/DATASET/YYYYMMDD-NUMBER.seg, and fdatasync
 *
 * P1  A write never waits: it takes a lock that the flusher holds only to swap two pointers.
 * P2  Memory is bounded. When the disk does not keep up and a lane's buffer is more than half
 *     full, only one point in 10, later in 100, is kept, and says so in its sample interval;
 *     when it is full, points are dropped and counted.
 * P3  What was flushed survives every crash. A crash loses what was written in the last
 *     CN_POINTS_FLUSH_MS plus the time of one sync; an orderly stop loses nothing.
 * P4  A segment is written by one process only and never repaired: readers skip what is torn or
 *     damaged, block by block. The next process begins the next segment.
 * P5  A segment holds the points that were flushed on one day (UTC), so that those which are too
 *     old go by the name of their file.
 *
 * Threads:   cn_points_write() on its lane; the others on any. Reading: analytics/points_scan.h.
 * Ownership: the owner's; free it after the lanes have ended. */
#ifndef CN_ANALYTICS_POINTS_H
#define CN_ANALYTICS_POINTS_H
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct cn_clock;
struct cn_disk;
struct cn_points;

#define CN_POINTS_DIR "analytics"
#define CN_POINTS_FLUSH_MS 1000
#define CN_POINTS_WAKE ((size_t)1 << 20)
#define CN_POINTS_BUFFER_MAX ((size_t)8 << 20) /* of each lane */
#define CN_POINTS_BLOCK_ROWS_MAX 32768
#define CN_POINTS_SEGMENT_MAX ((uint64_t)64 << 20)
#define CN_POINTS_RETENTION_DAYS 90
#define CN_POINTS_DATASET_MAX 1024 /* at the same time */

#define CN_POINT_BLOB_COUNT 20
#define CN_POINT_DOUBLE_COUNT 20
#define CN_POINT_INDEX_SIZE_MAX 96
#define CN_POINT_BLOB_SIZE_MAX 16384 /* of all blobs together */

/* The columns of a dataset, and their numbers on disk. Those that a block does not have are "",
 * 0, and an interval of 1. */
enum cn_points_column {
    CN_POINTS_TIME,                                                /* int64_t, ms since 1970 */
    CN_POINTS_INDEX,                                               /* text */
    CN_POINTS_BLOB,                                                /* text, 20 of them */
    CN_POINTS_DOUBLE = CN_POINTS_BLOB + CN_POINT_BLOB_COUNT,       /* double, 20 of them */
    CN_POINTS_INTERVAL = CN_POINTS_DOUBLE + CN_POINT_DOUBLE_COUNT, /* int64_t */
    CN_POINTS_COLUMN_COUNT,
};

static inline int cn_points_is_text(unsigned column)
{
    return column >= CN_POINTS_INDEX && column < CN_POINTS_DOUBLE;
}

/* A block: this header, a struct cn_points_part per column that it has, in their order, and
 * their contents, each at a multiple of 8. Numbers: 8 bytes per row. Texts: where each ends
 * (4 bytes per row), then the bytes. Little-endian. */
#define CN_POINTS_MAGIC 0x31424541u /* "AEB1" */
struct cn_points_block {
    uint32_t magic;
    uint32_t crc;  /* CRC-32C of the header from here on, and of the parts behind it */
    uint32_t size; /* of the whole block, a multiple of 8 */
    uint32_t row_count;
    int64_t first_ms, last_ms; /* of its points */
    uint64_t columns;          /* bit n: it has column n */
};
static_assert(sizeof(struct cn_points_block) == 40, "on disk");
struct cn_points_part {
    uint32_t size; /* without padding */
    uint32_t crc;
};
static_assert(sizeof(struct cn_points_part) == 8, "on disk");

struct cn_point_text {
    const char *text;
    size_t size;
};

/* Sizes and counts are within the limits above: the caller has looked. */
struct cn_point {
    int64_t time_ms;
    struct cn_point_text index;
    struct cn_point_text blobs[CN_POINT_BLOB_COUNT];
    unsigned blob_count;
    double doubles[CN_POINT_DOUBLE_COUNT];
    unsigned double_count;
};

struct cn_points_options {
    struct cn_disk *disk;   /* borrowed */
    struct cn_clock *clock; /* borrowed; NULL: the machine's */
    unsigned lane_count;
    unsigned retention_days; /* 0: CN_POINTS_RETENTION_DAYS */
};

struct cn_points_stats {
    uint64_t written; /* points on disk */
    uint64_t sampled; /* not kept, but counted in the interval of one that was */
    uint64_t dropped; /* lost: a buffer was full, or the disk refused */
};

struct cn_points *cn_points_new(const struct cn_points_options *options);
void cn_points_free(struct cn_points *points); /* flushes; NULL is fine */

/* The number of a dataset, whose folder is made if it is absent. Letters, digits, '_' and '-', at
 * most 64 of them. */
int cn_points_dataset(struct cn_points *points, const char *name, uint32_t *number,
                      struct cn_err *err);
void cn_points_write(struct cn_points *points, unsigned lane, uint32_t dataset,
                     const struct cn_point *point);
/* Waits until all that was written before is on disk. */
void cn_points_flush(struct cn_points *points);
void cn_points_stats(struct cn_points *points, struct cn_points_stats *stats);

/* Around a query: one at a time, so that the memory of queries is bounded too. Waits. */
void cn_points_query_begin(struct cn_points *points);
void cn_points_query_end(struct cn_points *points);

/* Whether it can be the name of a dataset. */
int cn_points_name_check(const char *name, struct cn_err *err);

#endif
