/* SPDX-License-Identifier: Apache-2.0 */
/* store/archive.h - the past on disk: log segments, and databases that were set aside, compressed.
 *
 * Two kinds of files below history/, written once (temporary, sync, rename):
 *
 * <first LSN, 16 hex>-<last LSN>.arc: the records of one log segment, ordered
 * by object and then by LSN, so that one object's past is read without the others'.
 *
 *     struct cn_archive_header
 *     chunks       each one zstd frame: records as in the log (header, body,
 *                  padding), about CN_ARCHIVE_CHUNK bytes before compression
 *     directory    one zstd frame: chunk_count times struct cn_archive_chunk,
 *                  object_count times struct cn_archive_object (ordered by key),
 *                  and the times of the records in order of LSN, as differences in ms
 *                  (little-endian base 128), the first to first_ms
 *
 * Records that are no commits (namespaces) stand under the key of zeros.
 *
 * <LSN, 16 hex>-<namespace, 8 hex>-<id, 64 hex>.img: the database file as it was
 * before the commit with this LSN took it away.
 *
 *     struct cn_archive_image
 *     page_count pages in runs of CN_ARCHIVE_RUN, each run a
 *     struct cn_archive_run and one zstd frame
 *
 * Numbers are little-endian, structures as they lie in memory.
 *
 * Threads: functions may run on any thread; a struct belongs to one at a time. */
#ifndef CN_STORE_ARCHIVE_H
#define CN_STORE_ARCHIVE_H
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "store/record.h"

#define CN_ARCHIVE_MAGIC 0x31435241u       /* "ARC1" */
#define CN_ARCHIVE_IMAGE_MAGIC 0x31474d49u /* "IMG1" */
#define CN_ARCHIVE_VERSION 1
#define CN_ARCHIVE_CHUNK (256u << 10)
#define CN_ARCHIVE_RUN 64
#define CN_ARCHIVE_PATH_MAX 160

struct cn_archive_header {
    uint32_t magic;
    uint32_t crc; /* CRC-32C of the rest of this struct */
    uint32_t version;
    uint32_t directory_crc; /* of the compressed bytes */
    uint64_t segment;       /* number of the log segment */
    uint64_t first_lsn, last_lsn;
    int64_t first_ms, last_ms;
    uint64_t records_size; /* bytes of all records before compression */
    uint64_t directory_offset;
    uint32_t directory_size, directory_raw_size;
    uint32_t chunk_count, object_count;
    uint8_t zeros[40];
};

struct cn_archive_chunk {
    uint64_t offset; /* in the file */
    uint32_t size, raw_size;
    uint32_t crc; /* of the compressed bytes */
    uint32_t reserved;
};

struct cn_archive_object {
    struct cn_object_key key;
    uint32_t chunk;  /* where its first record is */
    uint32_t offset; /* ... in the uncompressed chunk; further records follow */
    uint32_t record_count;
    uint64_t first_lsn, last_lsn;
};

struct cn_archive_image {
    uint32_t magic;
    uint32_t crc; /* CRC-32C of the rest of this struct */
    uint32_t version;
    uint32_t page_count;
    uint64_t lsn;
    struct cn_object_key key;
    uint32_t reserved;
};

struct cn_archive_run {
    uint32_t size, raw_size;
    uint32_t crc; /* of the compressed bytes */
    uint32_t reserved;
};

static_assert(sizeof(struct cn_archive_header) == 128, "on disk");
static_assert(sizeof(struct cn_archive_chunk) == 24, "on disk");
static_assert(sizeof(struct cn_archive_object) == 64, "on disk");
static_assert(sizeof(struct cn_archive_image) == 64, "on disk");
static_assert(sizeof(struct cn_archive_run) == 16, "on disk");

/* Archives the records of a segment up to `last_lsn` as history/<...>.arc. Replaces
 * an archive of the same records. The file is durable when it returns. */
int cn_archive_write(struct cn_disk *disk, const char *segment_path, uint64_t last_lsn,
                     struct cn_archive_header *header, struct cn_err *err);

/* An archive open for reading. */
struct cn_archive {
    struct cn_archive_header header;
    struct cn_disk_file *file;       /* owned */
    struct cn_buf directory;         /* uncompressed; the three below point into it */
    const uint8_t *chunks, *objects; /* arrays, perhaps not aligned */
    const uint8_t *times, *times_end;
    struct cn_buf chunk;  /* uncompressed, the one read last: neighbours often share it */
    uint32_t chunk_index; /* UINT32_MAX: none yet */
};
/* Reads and checks header and directory. CN_ECORRUPT, CN_EVERSION, or a negative errno. */
int cn_archive_open(struct cn_archive *archive, struct cn_disk *disk, const char *path,
                    struct cn_err *err);
void cn_archive_close(struct cn_archive *archive);

/* Finds an object. False if it has no record here. */
bool cn_archive_find(const struct cn_archive *archive, const struct cn_object_key *key,
                     struct cn_archive_object *object);
/* The n-th object, in order of keys; the key of zeros is that of records that are no commits. */
void cn_archive_object(const struct cn_archive *archive, uint32_t index,
                       struct cn_archive_object *object);
/* Appends an object's records, as in the log, to `records`; each has passed its checksums. */
int cn_archive_read(struct cn_archive *archive, const struct cn_archive_object *object,
                    struct cn_buf *records, struct cn_err *err);
/* The last LSN whose time is at or before `time_ms`; first_lsn - 1 if there is none. */
uint64_t cn_archive_lsn_at(const struct cn_archive *archive, int64_t time_ms);
/* The time of a record; `lsn` lies in the archive. */
int64_t cn_archive_time_of(const struct cn_archive *archive, uint64_t lsn);
/* Reads everything and checks every rule. */
int cn_archive_verify(struct cn_archive *archive, struct cn_err *err);

/* Names of archive files. */
void cn_archive_path(uint64_t first_lsn, uint64_t last_lsn, char path[CN_ARCHIVE_PATH_MAX]);
bool cn_archive_name_parse(const char *name, uint64_t *first_lsn, uint64_t *last_lsn);
void cn_archive_image_path(const struct cn_object_key *key, uint64_t lsn,
                           char path[CN_ARCHIVE_PATH_MAX]);
bool cn_archive_image_name_parse(const char *name, struct cn_object_key *key, uint64_t *lsn);

/* Archives a database file that was set aside. The file is durable when it returns. */
int cn_archive_image_write(struct cn_disk *disk, const char *from, const struct cn_object_key *key,
                           uint64_t lsn, struct cn_err *err);
/* Calls back with each page of an image, from 1. A negative return ends it and is returned. */
int cn_archive_image_read(struct cn_disk *disk, const char *path,
                          int (*each)(void *data, uint32_t page_no, const uint8_t *page),
                          void *data, struct cn_archive_image *image, struct cn_err *err);

#endif
