/* SPDX-License-Identifier: Apache-2.0 */
/* store/segment.h - the files of the log and reading them: for recovery, history and checks.
 *
 * Threads: a reader belongs to one thread. */
#ifndef CN_STORE_SEGMENT_H
#define CN_STORE_SEGMENT_H
#include <stdint.h>

#include "base/disk.h"
#include "store/record.h"

/* A finished or current segment that recovery still needs. */
struct cn_segment_info {
    uint64_t number;
    uint64_t first_lsn;
    uint64_t last_lsn; /* first_lsn - 1 while it is empty */
    uint64_t size;     /* bytes in use */
};

/* The file of a segment, relative to the data directory. */
#define CN_SEGMENT_PATH_MAX 48
void cn_segment_path(uint64_t number, char path[CN_SEGMENT_PATH_MAX]);

/* Reads a segment from its start. */
struct cn_segment_reader {
    struct cn_segment_header header;
    struct cn_disk_file *file; /* owned */
    uint8_t *buffer;           /* owned: a window of the file */
    uint64_t buffer_size, buffer_capacity;
    uint64_t buffer_offset; /* of the window in the file */
    uint64_t offset;        /* of the next record in the file */
    uint64_t file_size;
    uint64_t next_lsn;
    char path[128];
};
/* CN_ECORRUPT if it does not begin like a segment (-ENOENT if it is absent). */
int cn_segment_reader_open(struct cn_segment_reader *reader, struct cn_disk *disk, const char *path,
                           struct cn_err *err);
/* 1 and the next record (borrowed until the next call), or 0 where the records
 * of the segment end, which is for the caller to judge (R2, R3). */
int cn_segment_reader_next(struct cn_segment_reader *reader, struct cn_record *record,
                           struct cn_err *err);
/* R3: 1 if a valid record behind the end claims that `next_lsn` was durable. */
int cn_segment_reader_damaged(struct cn_segment_reader *reader, struct cn_err *err);
void cn_segment_reader_close(struct cn_segment_reader *reader);

#endif
