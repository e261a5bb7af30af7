/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/cipher.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define AES_BLOCK 16

/* By mode and size of the key; found once, because a search takes longer than a small block. */
static EVP_CIPHER *aes_table[CN_CIPHER_KW + 1][3];

static void aes_table_fill(void)
{
    static const char *const modes[] = {[CN_CIPHER_CBC] = "CBC",
                                        [CN_CIPHER_CTR] = "CTR",
                                        [CN_CIPHER_GCM] = "GCM",
                                        [CN_CIPHER_KW] = "WRAP"};
    for (int mode = CN_CIPHER_CBC; mode <= CN_CIPHER_KW; mode++) {
        for (int i = 0; i < 3; i++) {
            char name[32];
            snprintf(name, sizeof(name), "AES-%d-%s", 128 + 64 * i, modes[mode]);
            aes_table[mode][i] = EVP_CIPHER_fetch(NULL, name, NULL);
            CN_ASSERT(aes_table[mode][i]);
        }
    }
}

/* NULL if there is no such cipher. */
static const EVP_CIPHER *aes_of(enum cn_crypto_cipher cipher, size_t key_size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, aes_table_fill);
    if (cipher < CN_CIPHER_CBC || cipher > CN_CIPHER_KW ||
        (key_size != 16 && key_size != 24 && key_size != 32))
        return NULL;
    return aes_table[cipher][key_size / 8 - 2];
}

/* Feeds `size` bytes in pieces that fit OpenSSL's int; -1 on failure, else what was made. */
static int64_t update_all(EVP_CIPHER_CTX *ctx, const uint8_t *data, size_t size, uint8_t *out)
{
    const size_t piece_max = 1u << 30; /* a multiple of the block */
    int64_t made = 0;
    while (size > 0) {
        int piece = (int)(size < piece_max ? size : piece_max), got;
        if (!EVP_CipherUpdate(ctx, out ? out + made : NULL, &got, data, piece))
            return -1;
        made += out ? got : 0;
        data += piece;
        size -= (size_t)piece;
    }
    return made;
}

/* One pass of a cipher other than GCM. */
static int aes_plain(const EVP_CIPHER *aes, bool encrypt, struct cn_bytes key, const uint8_t *iv,
                     struct cn_bytes data, struct cn_buf *out, struct cn_err *err)
{
    uint8_t *at = cn_crypto_room(out, data.size + 2 * AES_BLOCK);
    if (!at)
        return cn_crypto_no_room(err);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    CN_ASSERT(ctx);
    EVP_CIPHER_CTX_set_flags(ctx, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
    int last = 0;
    int64_t made = -1;
    if (EVP_CipherInit_ex(ctx, aes, NULL, key.data, iv, encrypt))
        made = update_all(ctx, data.data, data.size, at);
    bool ok = made >= 0 && EVP_CipherFinal_ex(ctx, at + made, &last);
    EVP_CIPHER_CTX_free(ctx);
    if (!ok)
        return cn_crypto_fail(err, CN_EPROTOCOL,
                              encrypt ? "encryption failed" : "decryption failed");
    out->size += (size_t)made + (size_t)last;
    return 0;
}

/* Web Crypto's counter is the last `counter_bits` of the block; it wraps within them, where
 * OpenSSL's would carry into the nonce. So the data is cut at the wrap. */
static int aes_ctr(const EVP_CIPHER *aes, struct cn_bytes key,
                   const struct cn_crypto_cipher_params *params, struct cn_bytes data,
                   struct cn_buf *out, struct cn_err *err)
{
    unsigned bits = params->counter_bits;
    if (params->iv.size != AES_BLOCK || bits < 1 || bits > 128)
        return cn_err_set(err, CN_EINVALID,
                          "the counter is not 16 bytes with 1 to 128 bits of count");
    uint8_t block[AES_BLOCK];
    memcpy(block, params->iv.data, AES_BLOCK);
    uint64_t blocks = data.size / AES_BLOCK + (data.size % AES_BLOCK != 0);
    if (bits < 64 && blocks > (uint64_t)1 << bits)
        return cn_err_set(err, CN_EPROTOCOL, "the data is too long for a counter of %u bits", bits);
    uint64_t until_wrap = UINT64_MAX; /* blocks; more than fit into memory */
    if (bits < 64) {
        uint64_t low = 0;
        for (int i = 8; i < AES_BLOCK; i++)
            low = low << 8 | block[i];
        uint64_t mask = ((uint64_t)1 << bits) - 1;
        until_wrap = mask - (low & mask) + 1;
    }
    struct cn_bytes first = data;
    if (blocks > until_wrap)
        first.size = (size_t)until_wrap * AES_BLOCK;
    int rc = aes_plain(aes, true, key, block, first, out, err);
    if (rc < 0 || first.size == data.size)
        return rc;
    for (unsigned i = 0; i < bits; i++) /* the counter starts over at zero */
        block[AES_BLOCK - 1 - i / 8] &= (uint8_t) ~(1u << i % 8);
    struct cn_bytes rest = {data.data + first.size, data.size - first.size};
    return aes_plain(aes, true, key, block, rest, out, err);
}

static bool tag_bits_allowed(unsigned bits)
{
    return bits == 32 || bits == 64 || (bits >= 96 && bits <= 128 && bits % 8 == 0);
}

static int aes_gcm(const EVP_CIPHER *aes, bool encrypt, struct cn_bytes key,
                   const struct cn_crypto_cipher_params *params, struct cn_bytes data,
                   struct cn_buf *out, struct cn_err *err)
{
    size_t tag_size = params->tag_bits / 8;
    if (!tag_bits_allowed(params->tag_bits))
        return cn_err_set(err, CN_EPROTOCOL, "a tag of %u bits is not allowed", params->tag_bits);
    if (params->iv.size == 0 || params->iv.size > INT32_MAX)
        return cn_err_set(err, CN_EPROTOCOL, "the initialisation vector is empty or too long");
    if (!encrypt && data.size < tag_size)
        return cn_err_set(err, CN_EPROTOCOL, "the data is shorter than its tag");
    uint8_t *at = cn_crypto_room(out, data.size + AES_BLOCK);
    if (!at)
        return cn_crypto_no_room(err);
    size_t text_size = encrypt ? data.size : data.size - tag_size;
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    CN_ASSERT(ctx);
    int last = 0;
    int64_t made = -1;
    bool ok = EVP_CipherInit_ex(ctx, aes, NULL, NULL, NULL, encrypt) &&
              EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, (int)params->iv.size, NULL) &&
              EVP_CipherInit_ex(ctx, NULL, NULL, key.data, params->iv.data, encrypt) &&
              update_all(ctx, params->aad.data, params->aad.size, NULL) >= 0;
    if (ok && !encrypt)
        ok = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, (int)tag_size,
                                 (void *)(data.data + text_size));
    if (ok)
        made = update_all(ctx, data.data, text_size, at);
    ok = made >= 0 && EVP_CipherFinal_ex(ctx, at + made, &last);
    if (ok && encrypt)
        ok = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, (int)tag_size, at + made + last);
    EVP_CIPHER_CTX_free(ctx);
    if (!ok)
        return cn_crypto_fail(err, CN_EPROTOCOL,
                              encrypt ? "encryption failed"
                                      : "decryption failed: the data is not "
                                        "authentic");
    out->size += (size_t)made + (size_t)last + (encrypt ? tag_size : 0);
    return 0;
}

bool cn_crypto_in_place(struct cn_bytes *data, struct cn_buf *out)
{
    /* As much as aes_plain() and aes_gcm() want, so that cn_crypto_room() does not move it. */
    uint8_t *at = cn_crypto_room(out, data->size + 2 * AES_BLOCK);
    if (!at)
        return false;
    if (data->size > 0)
        memcpy(at, data->data, data->size);
    data->data = at;
    return true;
}

int cn_crypto_cipher(enum cn_crypto_cipher cipher, bool encrypt, struct cn_bytes key,
                     const struct cn_crypto_cipher_params *params, struct cn_bytes data,
                     struct cn_buf *out, struct cn_err *err)
{
    const EVP_CIPHER *aes = aes_of(cipher, key.size);
    if (!aes)
        return cn_err_set(err, CN_EINVALID, "not an AES key of 128, 192 or 256 bits");
    ERR_clear_error();
    switch (cipher) {
    case CN_CIPHER_CBC:
        if (params->iv.size != AES_BLOCK)
            return cn_err_set(err, CN_EPROTOCOL, "the initialisation vector must have 16 bytes");
        if (!encrypt && (data.size == 0 || data.size % AES_BLOCK != 0))
            return cn_err_set(err, CN_EPROTOCOL, "decryption failed: not a whole number of blocks");
        return aes_plain(aes, encrypt, key, params->iv.data, data, out, err);
    case CN_CIPHER_CTR:
        return aes_ctr(aes, key, params, data, out, err);
    case CN_CIPHER_GCM:
        return aes_gcm(aes, encrypt, key, params, data, out, err);
    case CN_CIPHER_KW:
        if (data.size % 8 != 0 || data.size < (encrypt ? 16 : 24))
            return cn_err_set(err, CN_EPROTOCOL, "AES-KW works on 8 bytes at a time, 16 at least");
        return aes_plain(aes, encrypt, key, NULL, data, out, err);
    }
    CN_UNREACHABLE();
}
