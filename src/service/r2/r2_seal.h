/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/r2_seal.h - bodies of R2 that are encrypted with a key of the customer (SSE-C).
 *
 * A sealed blob begins with a header that has a salt, then come chunks of CN_R2_SEAL_CHUNK bytes
 * (the last one has what is left, the only one of an empty body nothing), each encrypted and
 * followed by its tag:
 *
 *     header | chunk 0, tag | chunk 1, tag | ... | last chunk, tag
 *
 * AES-256-GCM with a key of the blob's own, HMAC-SHA-256(customer's key, label and salt), so that a
 * nonce (number of the chunk, and whether it is the last) is used once with a key. Any chunk can be
 * read alone; one that was changed, moved, or left out at the end is found out.
 *
 * Sizes and offsets elsewhere (index, ranges, checksums, ETags) are those of the plain body. The
 * key is nowhere but in memory while a body is written or read; the index has its MD5.
 *
 * Threads:   one at a time.
 * Ownership: the caller's. */
#ifndef CN_SERVICE_R2_R2_SEAL_H
#define CN_SERVICE_R2_R2_SEAL_H
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/blob.h"

#define CN_R2_KEY_SIZE 32
#define CN_R2_SEAL_MAGIC 0x31435353u /* "SSC1" */
#define CN_R2_SEAL_CHUNK (64u << 10)
#define CN_R2_SEAL_TAG 16

/* Little-endian. */
struct cn_r2_seal_header {
    uint32_t magic;
    uint32_t chunk_size;
    uint8_t reserved[8];
    uint8_t salt[16];
};
static_assert(sizeof(struct cn_r2_seal_header) == 32, "on disk");

/* What a plain body of `size` bytes takes. */
uint64_t cn_r2_sealed_size(uint64_t size);

/* Encrypts a body on its way into a blob. */
struct cn_r2_sealer;
struct cn_r2_sealer *cn_r2_sealer_new(const uint8_t key[CN_R2_KEY_SIZE]);
void cn_r2_sealer_free(struct cn_r2_sealer *sealer); /* may be NULL */
int cn_r2_sealer_write(struct cn_r2_sealer *sealer, struct cn_blob_writer *blob, const void *bytes,
                       size_t size, struct cn_err *err);
/* Once, after everything: the last chunk. The blob is the caller's to finish. */
int cn_r2_sealer_end(struct cn_r2_sealer *sealer, struct cn_blob_writer *blob, struct cn_err *err);

/* Reads `size` bytes at `offset` of a plain body of `body_size` bytes, all of them inside it.
 * CN_ECORRUPT: the blob is not what was written with this key. */
int cn_r2_unseal(struct cn_blob_reader *blob, const uint8_t key[CN_R2_KEY_SIZE], uint64_t body_size,
                 void *bytes, size_t size, uint64_t offset, struct cn_err *err);

#endif
