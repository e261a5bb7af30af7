/* SPDX-License-Identifier: Apache-2.0 */
#include "store/segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

enum { WINDOW_SIZE = 1 << 20 };

void cn_segment_path(uint64_t number, char path[CN_SEGMENT_PATH_MAX])
{
    snprintf(path, CN_SEGMENT_PATH_MAX, "log/%010" PRIu64 ".seg", number);
}

int cn_segment_reader_open(struct cn_segment_reader *reader, struct cn_disk *disk, const char *path,
                           struct cn_err *err)
{
    *reader = (struct cn_segment_reader){0};
    CN_ASSERT(strlen(path) < sizeof(reader->path));
    snprintf(reader->path, sizeof(reader->path), "%s", path);
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &reader->file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open %s", path);
    int64_t size = cn_disk_size(reader->file);
    int64_t got =
        size < 0 ? size : cn_disk_read(reader->file, &reader->header, sizeof(reader->header), 0);
    if (got < 0) {
        rc = cn_err_errno(err, (int)-got, "cannot read %s", path);
        goto close_file;
    }
    if ((size_t)got < sizeof(reader->header)) {
        rc = cn_err_set(err, CN_ECORRUPT, "%s: shorter than a segment header", path);
        goto close_file;
    }
    rc = cn_segment_check(&reader->header, err);
    if (rc < 0) {
        cn_err_context(err, "%s", path);
        goto close_file;
    }
    reader->file_size = (uint64_t)size;
    reader->offset = sizeof(reader->header);
    reader->next_lsn = reader->header.first_lsn;
    return 0;
close_file:
    cn_disk_close(reader->file);
    reader->file = NULL;
    return rc;
}

/* Makes at least `want` bytes at `offset` part of the window, or all there are;
 * returns how many the window has from there. */
static int64_t window_at(struct cn_segment_reader *reader, uint64_t offset, uint64_t want,
                         struct cn_err *err)
{
    if (offset >= reader->file_size)
        return 0;
    uint64_t left = reader->file_size - offset;
    if (want > left)
        want = left;
    bool inside = offset >= reader->buffer_offset &&
                  offset + want <= reader->buffer_offset + reader->buffer_size;
    if (inside)
        return (int64_t)(reader->buffer_offset + reader->buffer_size - offset);

    uint64_t size = want > WINDOW_SIZE ? want : WINDOW_SIZE;
    if (size > left)
        size = left;
    if (size > reader->buffer_capacity) {
        uint8_t *bigger = cn_try_realloc(reader->buffer, size);
        if (!bigger)
            return cn_err_set(err, CN_ENOMEM, "%s: no memory for a record of %" PRIu64 " bytes",
                              reader->path, size);
        reader->buffer = bigger;
        reader->buffer_capacity = size;
    }
    reader->buffer_size = 0;
    int64_t got = cn_disk_read(reader->file, reader->buffer, size, offset);
    if (got < 0)
        return cn_err_errno(err, (int)-got, "cannot read %s", reader->path);
    reader->buffer_offset = offset;
    reader->buffer_size = (uint64_t)got;
    return got;
}

/* Reads the record at `offset`, if there is a valid one. Returns its size, 0, or an error. */
static int64_t record_at(struct cn_segment_reader *reader, uint64_t offset,
                         struct cn_record *record, struct cn_err *err)
{
    int64_t got = window_at(reader, offset, sizeof(record->header), err);
    if (got < (int64_t)sizeof(record->header))
        return got < 0 ? got : 0;
    struct cn_record_header header;
    memcpy(&header, reader->buffer + (offset - reader->buffer_offset), sizeof(header));
    if (header.magic != CN_RECORD_MAGIC || header.body_size > CN_RECORD_BODY_MAX)
        return 0;
    got = window_at(reader, offset, cn_record_size(header.body_size), err);
    if (got < 0)
        return got;
    return (int64_t)cn_record_read(reader->buffer + (offset - reader->buffer_offset), (uint64_t)got,
                                   record);
}

int cn_segment_reader_next(struct cn_segment_reader *reader, struct cn_record *record,
                           struct cn_err *err)
{
    int64_t size = record_at(reader, reader->offset, record, err);
    if (size < 0)
        return (int)size;
    if (size == 0 || record->header.lsn != reader->next_lsn)
        return 0;
    reader->offset += (uint64_t)size;
    reader->next_lsn++;
    return 1;
}

int cn_segment_reader_damaged(struct cn_segment_reader *reader, struct cn_err *err)
{
    for (uint64_t at = reader->offset; at < reader->file_size; at += 8) {
        struct cn_record record;
        int64_t size = record_at(reader, at, &record, err);
        if (size < 0)
            return (int)size;
        if (size > 0 && record.header.lsn > reader->next_lsn &&
            record.header.durable_lsn >= reader->next_lsn)
            return 1;
    }
    return 0;
}

void cn_segment_reader_close(struct cn_segment_reader *reader)
{
    if (reader->file)
        cn_disk_close(reader->file);
    cn_free(reader->buffer);
    *reader = (struct cn_segment_reader){0};
}
