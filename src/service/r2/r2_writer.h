/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/r2_writer.h - takes the pieces of one body of R2 and makes what the index is told of
 * it.
 *
 * Up to CN_R2_INLINE_MAX bytes are kept in memory, because a small body goes into the index; then a
 * blob is begun. Checksums are computed on the way, and with a key of the customer the blob is
 * encrypted (r2_seal.h); such a body is always a blob.
 *
 * Threads:   one at a time. Append and finish wait for the disk once there is a blob.
 * Ownership: the caller's; fini in any state, also instead of finish: the blob is abandoned. */
#ifndef CN_SERVICE_R2_R2_WRITER_H
#define CN_SERVICE_R2_R2_WRITER_H
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/blob.h"

struct cn_namespace;
struct cn_r2_sealer;

#define CN_R2_DIGEST_MAX 64

struct cn_r2_writer {
    struct cn_blobs *blobs;
    struct cn_blob_id id;        /* of the blob, if there will be one */
    struct cn_blob_writer *blob; /* NULL: not begun, or over */
    struct cn_r2_sealer *sealer; /* NULL: it is not encrypted */
    void *md5, *sha;             /* OpenSSL's; sha NULL: not asked for */
    struct cn_buf head;          /* what came before the blob was begun */
    uint64_t size;
    bool blob_only; /* a part, or encrypted: never in the index */
};

/* What a body has become. */
struct cn_r2_written {
    bool in_blob; /* else the writer's `head` has it */
    struct cn_blob_id blob;
    uint8_t md5[CN_R2_DIGEST_MAX], sha[CN_R2_DIGEST_MAX];
    unsigned md5_size, sha_size;
};

/* `ns` is the bucket's: its services have the blobs. `sha` is OpenSSL's name of a further checksum,
 * or NULL; `key`, of CN_R2_KEY_SIZE bytes, may be NULL. */
void cn_r2_writer_init(struct cn_r2_writer *writer, struct cn_namespace *ns, const char *sha,
                       bool blob_only, const uint8_t *key);
/* Whether this many more bytes would stay in memory, so that taking them cannot wait. */
bool cn_r2_writer_in_memory(const struct cn_r2_writer *writer, size_t more);
int cn_r2_writer_append(struct cn_r2_writer *writer, const void *bytes, size_t size,
                        struct cn_err *err);
/* Makes it durable. On failure there is no blob. If it is not in memory the index must have been
 * told its id before (R3 of r2.h). */
int cn_r2_writer_finish(struct cn_r2_writer *writer, struct cn_r2_written *written,
                        struct cn_err *err);
/* Gives the blob up. */
void cn_r2_writer_abandon(struct cn_r2_writer *writer);
void cn_r2_writer_fini(struct cn_r2_writer *writer);

#endif
