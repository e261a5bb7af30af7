/* SPDX-License-Identifier: Apache-2.0 */
/* store/blob.h - large bodies (R2 objects and their parts) as files.
 *
 * A blob is written once and never changed. Its life:
 *
 *     blobs/tmp/<id>  --finish: sync, rename, sync folder-->  blobs/<xx>/<id>
 *                                                                  |
 *     the owner's index refers to it, durably, only after finish   |
 *                                                                  v
 *     the owner drops the reference, durably, and only then   cn_blob_delete()
 *
 * A crash leaves at worst files no index refers to: unfinished ones in tmp/,
 * which opening removes, and finished ones. An owner that must not lose sight of
 * those notes the id down before it finishes the blob (cn_blob_create_as()), or
 * says which are in use (cn_blobs_collect()). <id> is 32 hexadecimal digits, drawn at
 * random, <xx> the first two of them.
 *
 * The file is the body, behind it the checksums of its chunks, and a struct cn_blob_footer with its
 * size: a blob can be checked without its index, and what is read of it is compared before it is
 * given.
 *
 * Threads: any; one writer or reader from one thread at a time. Functions wait
 * for the disk: call them where that is allowed. */
#ifndef CN_STORE_BLOB_H
#define CN_STORE_BLOB_H
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/disk.h"
#include "base/err.h"

#define CN_BLOB_ID_SIZE 16
#define CN_BLOB_MAGIC_1 0x31424c42u /* "BLB1": no checksums of chunks */
#define CN_BLOB_MAGIC 0x32424c42u   /* "BLB2" */
#define CN_BLOB_CHUNK (64u << 10)
#define CN_BLOB_SIZE_MAX (5ull << 40) /* 5 TiB, as R2 */

struct cn_blob_id {
    uint8_t bytes[CN_BLOB_ID_SIZE];
};

/* Little-endian, at the end of the file. */
struct cn_blob_footer {
    uint32_t magic;
    uint32_t crc;      /* CRC-32C of the fields below */
    uint32_t sums_crc; /* of the checksums, 4 bytes per chunk; of the body, in BLB1 */
    uint32_t reserved;
    uint64_t size; /* of the body */
};
static_assert(sizeof(struct cn_blob_footer) == 24, "on disk");

struct cn_blobs;
struct cn_blob_writer;
struct cn_blob_reader;

/* Opens (creating if need be) the folder `path` of `disk`; removes unfinished blobs. */
int cn_blobs_open(struct cn_disk *disk, const char *path, struct cn_blobs **blobs,
                  struct cn_err *err);
void cn_blobs_close(struct cn_blobs *blobs);

/* A random number of this opening, not 0: what was begun under another one is not being written any
 * more. */
int64_t cn_blobs_opening(const struct cn_blobs *blobs);

/* Starts a blob. Every writer ends in finish or abandon. */
int cn_blob_create(struct cn_blobs *blobs, struct cn_blob_writer **writer, struct cn_err *err);
/* The same with an id that the caller has drawn, by cn_blob_id_draw(), to note it down before. */
int cn_blob_create_as(struct cn_blobs *blobs, const struct cn_blob_id *id,
                      struct cn_blob_writer **writer, struct cn_err *err);
void cn_blob_id_draw(struct cn_blob_id *id);
int cn_blob_write(struct cn_blob_writer *writer, const void *bytes, size_t size,
                  struct cn_err *err);
/* Makes it durable and gives its id. The writer is gone, whatever the result; on failure so is
 * the blob. */
int cn_blob_finish(struct cn_blob_writer *writer, struct cn_blob_id *id, struct cn_err *err);
void cn_blob_abandon(struct cn_blob_writer *writer);

/* CN_ENOTFOUND if there is none, CN_ECORRUPT if its footer is damaged. */
int cn_blob_open(struct cn_blobs *blobs, const struct cn_blob_id *id,
                 struct cn_blob_reader **reader, struct cn_err *err);
uint64_t cn_blob_size(const struct cn_blob_reader *reader);
/* Returns the number of bytes read: fewer than asked only at the end. CN_ECORRUPT: they are not
 * those that were written. */
int64_t cn_blob_read(struct cn_blob_reader *reader, void *bytes, size_t size, uint64_t offset,
                     struct cn_err *err);
/* The same without waiting for the disk; -EAGAIN (and no text): it would have to. */
int64_t cn_blob_read_now(struct cn_blob_reader *reader, void *bytes, size_t size, uint64_t offset,
                         struct cn_err *err);
/* Reads the whole body and compares its checksums. */
int cn_blob_verify(struct cn_blob_reader *reader, struct cn_err *err);
void cn_blob_close(struct cn_blob_reader *reader);
/* Readers that are open, each with a file: who keeps one for later should not when they are many.
 */
size_t cn_blobs_reader_count(const struct cn_blobs *blobs);

/* Removes a blob; one that is not there is no error. Open readers go on reading. */
int cn_blob_delete(struct cn_blobs *blobs, const struct cn_blob_id *id, struct cn_err *err);

/* Calls `each` for every finished blob. A negative return ends the walk and is returned. */
typedef int (*cn_blob_each)(void *data, const struct cn_blob_id *id);
int cn_blobs_walk(struct cn_blobs *blobs, cn_blob_each each, void *data, struct cn_err *err);

/* Deletes every finished blob for which `in_use` says no; returns how many. Run it before
 * blobs are created: it knows nothing of ids on their way into an index. */
int64_t cn_blobs_collect(struct cn_blobs *blobs,
                         bool (*in_use)(void *data, const struct cn_blob_id *id), void *data,
                         struct cn_err *err);

#endif
