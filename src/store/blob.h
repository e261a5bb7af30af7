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
 * In a cluster a body lies on several disks (shard/bodies.h). Then its id says whose it is
 * (cn_blob_id_place()), files lie by shard, blobs/<shard>/<xx>/<id>, so that those of a shard can
 * be listed; and cn_blobs_among() gives a set that asks others by a table of functions:
 *
 *     finish    is over when others have it too, as many as its peers want; else there is no blob
 *     open      takes the file of this disk; where that is missing or damaged, another's
 *     read      the same for every run of bytes; what is damaged here is told, to be repaired
 *     delete    here, and elsewhere
 *
 * Threads: any; one writer or reader from one thread at a time. Functions wait
 * for the disk, and for others: call them where that is allowed. */
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

/* --- ids of a cluster ------------------------------------------------------------------------- */

/* Says whose it is in bytes 10 to 15 of an id: the number of the namespace of the object that names
 * it, and that object's shard. Ten random bytes are left. */
void cn_blob_id_place(struct cn_blob_id *id, uint32_t namespace_id, unsigned shard);
uint32_t cn_blob_id_namespace(const struct cn_blob_id *id);
unsigned cn_blob_id_shard(const struct cn_blob_id *id);

/* In what is told when a body can be stored or read later: too few of them can be reached. */
#define CN_BLOB_AWAY "no node that could have the body can be reached at the moment; try again"

/* Those who have other copies. Called where waiting is allowed. */
struct cn_blob_peers {
    void *data;
    /* It is durable here. 0: elsewhere too. */
    int (*spread)(void *data, const struct cn_blob_id *id, struct cn_err *err);
    /* Who has it: a disk, and its size. CN_ENOTFOUND: nobody who can be asked. */
    int (*find)(void *data, const struct cn_blob_id *id, uint64_t *disk, uint64_t *size,
                struct cn_err *err);
    /* So many bytes, all of them, or negative. */
    int (*read)(void *data, const struct cn_blob_id *id, uint64_t disk, void *bytes, size_t size,
                uint64_t offset, struct cn_err *err);
    /* The file of this disk is not what was written. */
    void (*damaged)(void *data, const struct cn_blob_id *id);
    int (*remove)(void *data, const struct cn_blob_id *id, struct cn_err *err);
};

/* Opens (creating if need be) the folder `path` of `disk`; removes unfinished blobs. */
int cn_blobs_open(struct cn_disk *disk, const char *path, struct cn_blobs **blobs,
                  struct cn_err *err);
/* The same with files by shard. */
int cn_blobs_open_by_shard(struct cn_disk *disk, const char *path, struct cn_blobs **blobs,
                           struct cn_err *err);
/* The same blobs for those who use them, with copies elsewhere. `blobs` and `peers` are borrowed.
 */
struct cn_blobs *cn_blobs_among(const struct cn_blobs *blobs, const struct cn_blob_peers *peers);
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
/* CRC-32C of the checksums of all chunks so far: two bodies with the same size and this are taken
 * to be the same. */
uint32_t cn_blob_written_sum(const struct cn_blob_writer *writer);

/* CN_ENOTFOUND if there is none, CN_ECORRUPT if its footer is damaged. */
int cn_blob_open(struct cn_blobs *blobs, const struct cn_blob_id *id,
                 struct cn_blob_reader **reader, struct cn_err *err);
uint64_t cn_blob_size(const struct cn_blob_reader *reader);
uint32_t cn_blob_sum(const struct cn_blob_reader *reader); /* cn_blob_written_sum() */
/* Whether its file is on this disk. */
bool cn_blob_is_here(struct cn_blobs *blobs, const struct cn_blob_id *id);
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

/* By shard alone: ids of one, rising, those behind `after` (NULL: from the first), as many as there
 * is room for; how many. */
int64_t cn_blobs_list(struct cn_blobs *blobs, unsigned shard, const struct cn_blob_id *after,
                      struct cn_blob_id *ids, size_t max, struct cn_err *err);

/* Deletes every finished blob for which `in_use` says no; returns how many. Run it before
 * blobs are created: it knows nothing of ids on their way into an index. */
int64_t cn_blobs_collect(struct cn_blobs *blobs,
                         bool (*in_use)(void *data, const struct cn_blob_id *id), void *data,
                         struct cn_err *err);

#endif
