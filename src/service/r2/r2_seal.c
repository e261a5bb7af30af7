/* SPDX-License-Identifier: Apache-2.0 */
#include "service/r2/r2_seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/rand.h"

#define NONCE_SIZE 12
#define STRIDE (CN_R2_SEAL_CHUNK + CN_R2_SEAL_TAG)

struct cn_r2_sealer {
    EVP_CIPHER_CTX *cipher;
    struct cn_r2_seal_header header;
    bool begun;           /* the header is written */
    uint64_t chunk_count; /* written */
    size_t used;          /* of `plain` */
    uint8_t key[CN_R2_KEY_SIZE];
    uint8_t plain[CN_R2_SEAL_CHUNK];
    uint8_t sealed[STRIDE];
};

static uint64_t chunks_of(uint64_t size)
{
    return size ? (size + CN_R2_SEAL_CHUNK - 1) / CN_R2_SEAL_CHUNK : 1;
}

uint64_t cn_r2_sealed_size(uint64_t size)
{
    return sizeof(struct cn_r2_seal_header) + size + chunks_of(size) * CN_R2_SEAL_TAG;
}

/* The key of one blob. */
static void derive(const uint8_t key[CN_R2_KEY_SIZE], const struct cn_r2_seal_header *header,
                   uint8_t out[CN_R2_KEY_SIZE])
{
    static const char label[] = "cairn r2 ssec 1";
    uint8_t input[sizeof(label) + sizeof(header->salt)];
    unsigned size = 0;
    memcpy(input, label, sizeof(label));
    memcpy(input + sizeof(label), header->salt, sizeof(header->salt));
    uint8_t *made = HMAC(EVP_sha256(), key, CN_R2_KEY_SIZE, input, sizeof(input), out, &size);
    CN_ASSERT(made && size == CN_R2_KEY_SIZE);
}

static void make_nonce(uint64_t chunk, bool last, uint8_t nonce[NONCE_SIZE])
{
    memset(nonce, 0, NONCE_SIZE);
    nonce[0] = last;
    for (int i = 0; i < 8; i++)
        nonce[NONCE_SIZE - 1 - i] = (uint8_t)(chunk >> 8 * i);
}

/* --- writing --------------------------------------------------------------------------------- */

struct cn_r2_sealer *cn_r2_sealer_new(const uint8_t key[CN_R2_KEY_SIZE])
{
    struct cn_r2_sealer *sealer = CN_NEW(struct cn_r2_sealer);
    sealer->header =
        (struct cn_r2_seal_header){.magic = CN_R2_SEAL_MAGIC, .chunk_size = CN_R2_SEAL_CHUNK};
    cn_rand_secure(sealer->header.salt, sizeof(sealer->header.salt));
    derive(key, &sealer->header, sealer->key);
    sealer->cipher = EVP_CIPHER_CTX_new();
    int ok = EVP_EncryptInit_ex(sealer->cipher, EVP_aes_256_gcm(), NULL, sealer->key, NULL);
    CN_ASSERT(ok == 1);
    return sealer;
}

void cn_r2_sealer_free(struct cn_r2_sealer *sealer)
{
    if (!sealer)
        return;
    EVP_CIPHER_CTX_free(sealer->cipher);
    OPENSSL_cleanse(sealer, sizeof(*sealer));
    cn_free(sealer);
}

static int write_chunk(struct cn_r2_sealer *sealer, struct cn_blob_writer *blob, bool last,
                       struct cn_err *err)
{
    uint8_t nonce[NONCE_SIZE];
    int size = 0, rest = 0;
    make_nonce(sealer->chunk_count, last, nonce);
    int ok = EVP_EncryptInit_ex(sealer->cipher, NULL, NULL, NULL, nonce) == 1 &&
             EVP_EncryptUpdate(sealer->cipher, sealer->sealed, &size, sealer->plain,
                               (int)sealer->used) == 1 &&
             EVP_EncryptFinal_ex(sealer->cipher, sealer->sealed + size, &rest) == 1 &&
             EVP_CIPHER_CTX_ctrl(sealer->cipher, EVP_CTRL_GCM_GET_TAG, CN_R2_SEAL_TAG,
                                 sealer->sealed + sealer->used) == 1;
    CN_ASSERT(ok && (size_t)size + (size_t)rest == sealer->used);
    int rc = sealer->begun ? 0 : cn_blob_write(blob, &sealer->header, sizeof(sealer->header), err);
    sealer->begun = true;
    if (rc == 0)
        rc = cn_blob_write(blob, sealer->sealed, sealer->used + CN_R2_SEAL_TAG, err);
    sealer->chunk_count++;
    sealer->used = 0;
    return rc;
}

int cn_r2_sealer_write(struct cn_r2_sealer *sealer, struct cn_blob_writer *blob, const void *bytes,
                       size_t size, struct cn_err *err)
{
    const uint8_t *at = bytes;
    while (size > 0) {
        if (sealer->used == CN_R2_SEAL_CHUNK) { /* more comes: it was not the last */
            int rc = write_chunk(sealer, blob, false, err);
            if (rc < 0)
                return rc;
        }
        size_t room = CN_R2_SEAL_CHUNK - sealer->used, part = size < room ? size : room;
        memcpy(sealer->plain + sealer->used, at, part);
        sealer->used += part;
        at += part;
        size -= part;
    }
    return 0;
}

int cn_r2_sealer_end(struct cn_r2_sealer *sealer, struct cn_blob_writer *blob, struct cn_err *err)
{
    return write_chunk(sealer, blob, true, err);
}

/* --- reading --------------------------------------------------------------------------------- */

static int damaged(struct cn_err *err)
{
    return cn_err_set(err, CN_ECORRUPT, "an encrypted body is damaged");
}

static int read_exact(struct cn_blob_reader *blob, void *bytes, size_t size, uint64_t offset,
                      struct cn_err *err)
{
    int64_t got = cn_blob_read(blob, bytes, size, offset, err);
    if (got < 0)
        return (int)got;
    return (size_t)got == size ? 0 : damaged(err);
}

/* Decrypts in place: `bytes` has the chunk and its tag. */
static bool open_chunk(EVP_CIPHER_CTX *cipher, uint64_t chunk, bool last, uint8_t *bytes,
                       size_t size)
{
    uint8_t nonce[NONCE_SIZE];
    int got = 0, rest = 0;
    make_nonce(chunk, last, nonce);
    return EVP_DecryptInit_ex(cipher, NULL, NULL, NULL, nonce) == 1 &&
           EVP_DecryptUpdate(cipher, bytes, &got, bytes, (int)size) == 1 &&
           EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, CN_R2_SEAL_TAG, bytes + size) == 1 &&
           EVP_DecryptFinal_ex(cipher, bytes + got, &rest) == 1 && (size_t)(got + rest) == size;
}

static int unseal_chunks(struct cn_blob_reader *blob, EVP_CIPHER_CTX *cipher, uint64_t body_size,
                         uint8_t *out, size_t size, uint64_t offset, struct cn_err *err)
{
    uint64_t last = chunks_of(body_size) - 1;
    uint8_t *sealed = cn_alloc(STRIDE);
    int rc = 0;
    while (size > 0 && rc == 0) {
        uint64_t chunk = offset / CN_R2_SEAL_CHUNK;
        size_t skip = (size_t)(offset % CN_R2_SEAL_CHUNK);
        size_t whole =
            chunk < last ? CN_R2_SEAL_CHUNK : (size_t)(body_size - chunk * CN_R2_SEAL_CHUNK);
        size_t part = whole - skip < size ? whole - skip : size;
        rc = read_exact(blob, sealed, whole + CN_R2_SEAL_TAG,
                        sizeof(struct cn_r2_seal_header) + chunk * STRIDE, err);
        if (rc == 0 && !open_chunk(cipher, chunk, chunk == last, sealed, whole))
            rc = damaged(err);
        if (rc == 0)
            memcpy(out, sealed + skip, part);
        out += part;
        offset += part;
        size -= part;
    }
    OPENSSL_cleanse(sealed, STRIDE);
    cn_free(sealed);
    return rc;
}

int cn_r2_unseal(struct cn_blob_reader *blob, const uint8_t key[CN_R2_KEY_SIZE], uint64_t body_size,
                 void *bytes, size_t size, uint64_t offset, struct cn_err *err)
{
    CN_ASSERT(offset <= body_size && size <= body_size - offset);
    struct cn_r2_seal_header header;
    if (cn_blob_size(blob) != cn_r2_sealed_size(body_size))
        return damaged(err);
    int rc = read_exact(blob, &header, sizeof(header), 0, err);
    if (rc < 0)
        return rc;
    if (header.magic != CN_R2_SEAL_MAGIC || header.chunk_size != CN_R2_SEAL_CHUNK)
        return damaged(err);
    uint8_t own[CN_R2_KEY_SIZE];
    derive(key, &header, own);
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    int ok = EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, own, NULL);
    CN_ASSERT(ok == 1);
    rc = unseal_chunks(blob, cipher, body_size, bytes, size, offset, err);
    EVP_CIPHER_CTX_free(cipher);
    OPENSSL_cleanse(own, sizeof(own));
    return rc;
}
