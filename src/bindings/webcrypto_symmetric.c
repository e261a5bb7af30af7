/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/webcrypto_symmetric.c - digests, MACs, AES, key derivation.
 *
 * Digests and HMAC use OpenSSL's low-level functions, which it calls deprecated: their structs
 * hold no pointers, so that a DigestStream can keep its state in a byte array that JavaScript's
 * collector frees, and they spare small inputs the search for a provider (1 us each time). */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "bindings/webcrypto.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

#define AES_BLOCK 16

int cn_crypto_fail(struct cn_err *err, int code, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    cn_err_set(err, code, "%s%s%s", what, reason ? ": " : "", reason ? reason : "");
    ERR_clear_error();
    return code;
}

const EVP_MD *cn_crypto_md(enum cn_crypto_hash hash)
{
    switch (hash) {
    case CN_HASH_SHA1:
        return EVP_sha1();
    case CN_HASH_SHA256:
        return EVP_sha256();
    case CN_HASH_SHA384:
        return EVP_sha384();
    case CN_HASH_SHA512:
        return EVP_sha512();
    case CN_HASH_MD5:
        return EVP_md5();
    default:
        return NULL;
    }
}

static int no_hash(struct cn_err *err)
{
    return cn_err_set(err, CN_EUNSUPPORTED, "not a hash that is known here");
}

/* Room for `size` more bytes in `out`, chosen by a script; NULL if there is none. */
static uint8_t *room(struct cn_buf *out, size_t size)
{
    if (size > out->capacity - out->size) {
        uint8_t *grown =
            out->data ? cn_try_realloc(out->data, out->size + size) : cn_try_alloc_large(size);
        if (!grown)
            return NULL;
        out->data = grown;
        out->capacity = out->size + size;
    }
    return out->data + out->size;
}

static int no_room(struct cn_err *err)
{
    return cn_err_set(err, CN_ENOMEM, "not enough memory for the result");
}

/* ---- digests ---- */

struct digest_state {
    enum cn_crypto_hash hash;
    union {
        SHA_CTX sha1;
        SHA256_CTX sha256;
        SHA512_CTX sha512; /* SHA-384 too */
        MD5_CTX md5;
    } u;
};
_Static_assert(sizeof(struct digest_state) <= CN_CRYPTO_STATE_SIZE, "the state fits");

int cn_crypto_digest_start(enum cn_crypto_hash hash, uint8_t *state, struct cn_err *err)
{
    struct digest_state digest = {.hash = hash};
    switch (hash) {
    case CN_HASH_SHA1:
        SHA1_Init(&digest.u.sha1);
        break;
    case CN_HASH_SHA256:
        SHA256_Init(&digest.u.sha256);
        break;
    case CN_HASH_SHA384:
        SHA384_Init(&digest.u.sha512);
        break;
    case CN_HASH_SHA512:
        SHA512_Init(&digest.u.sha512);
        break;
    case CN_HASH_MD5:
        MD5_Init(&digest.u.md5);
        break;
    default:
        return no_hash(err);
    }
    memcpy(state, &digest, sizeof(digest));
    return 0;
}

void cn_crypto_digest_update(uint8_t *state, struct cn_bytes data)
{
    struct digest_state digest;
    memcpy(&digest, state, sizeof(digest));
    switch (digest.hash) {
    case CN_HASH_SHA1:
        SHA1_Update(&digest.u.sha1, data.data, data.size);
        break;
    case CN_HASH_SHA256:
        SHA256_Update(&digest.u.sha256, data.data, data.size);
        break;
    case CN_HASH_SHA384:
        SHA384_Update(&digest.u.sha512, data.data, data.size);
        break;
    case CN_HASH_SHA512:
        SHA512_Update(&digest.u.sha512, data.data, data.size);
        break;
    case CN_HASH_MD5:
        MD5_Update(&digest.u.md5, data.data, data.size);
        break;
    default:
        CN_UNREACHABLE();
    }
    memcpy(state, &digest, sizeof(digest));
}

void cn_crypto_digest_finish(uint8_t *state, struct cn_buf *out)
{
    struct digest_state digest;
    memcpy(&digest, state, sizeof(digest));
    uint8_t bytes[SHA512_DIGEST_LENGTH];
    size_t size;
    switch (digest.hash) {
    case CN_HASH_SHA1:
        SHA1_Final(bytes, &digest.u.sha1);
        size = SHA_DIGEST_LENGTH;
        break;
    case CN_HASH_SHA256:
        SHA256_Final(bytes, &digest.u.sha256);
        size = SHA256_DIGEST_LENGTH;
        break;
    case CN_HASH_SHA384:
        SHA384_Final(bytes, &digest.u.sha512);
        size = SHA384_DIGEST_LENGTH;
        break;
    case CN_HASH_SHA512:
        SHA512_Final(bytes, &digest.u.sha512);
        size = SHA512_DIGEST_LENGTH;
        break;
    case CN_HASH_MD5:
        MD5_Final(bytes, &digest.u.md5);
        size = MD5_DIGEST_LENGTH;
        break;
    default:
        CN_UNREACHABLE();
    }
    cn_buf_append(out, bytes, size);
}

int cn_crypto_digest(enum cn_crypto_hash hash, struct cn_bytes data, struct cn_buf *out,
                     struct cn_err *err)
{
    uint8_t state[CN_CRYPTO_STATE_SIZE];
    int rc = cn_crypto_digest_start(hash, state, err);
    if (rc < 0)
        return rc;
    cn_crypto_digest_update(state, data);
    cn_crypto_digest_finish(state, out);
    return 0;
}

/* RFC 2104: H(key ^ opad, H(key ^ ipad, data)), the key filled up to a block. */
int cn_crypto_hmac(enum cn_crypto_hash hash, struct cn_bytes key, struct cn_bytes data,
                   struct cn_buf *out, struct cn_err *err)
{
    enum { BLOCK_MAX = 128 };
    size_t block_size = hash == CN_HASH_SHA384 || hash == CN_HASH_SHA512 ? 128 : 64;
    uint8_t state[CN_CRYPTO_STATE_SIZE], block[BLOCK_MAX] = {0};
    int rc = cn_crypto_digest_start(hash, state, err);
    if (rc < 0)
        return rc;
    struct cn_buf inner = {0};
    if (key.size > block_size) {
        cn_crypto_digest_update(state, key);
        cn_crypto_digest_finish(state, &inner);
        memcpy(block, inner.data, inner.size);
        cn_buf_clear(&inner);
        (void)cn_crypto_digest_start(hash, state, NULL); /* succeeded above */
    } else if (key.size > 0) {
        memcpy(block, key.data, key.size);
    }
    for (size_t i = 0; i < block_size; i++)
        block[i] ^= 0x36;
    cn_crypto_digest_update(state, (struct cn_bytes){block, block_size});
    cn_crypto_digest_update(state, data);
    cn_crypto_digest_finish(state, &inner);
    for (size_t i = 0; i < block_size; i++)
        block[i] ^= 0x36 ^ 0x5c;
    (void)cn_crypto_digest_start(hash, state, NULL);
    cn_crypto_digest_update(state, (struct cn_bytes){block, block_size});
    cn_crypto_digest_update(state, (struct cn_bytes){inner.data, inner.size});
    cn_crypto_digest_finish(state, out);
    OPENSSL_cleanse(block, sizeof(block));
    OPENSSL_cleanse(state, sizeof(state));
    cn_buf_fini(&inner);
    return 0;
}

bool cn_crypto_equal(struct cn_bytes a, struct cn_bytes b)
{
    return a.size == b.size && (a.size == 0 || CRYPTO_memcmp(a.data, b.data, a.size) == 0);
}

/* ---- AES ---- */

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
    uint8_t *at = room(out, data.size + 2 * AES_BLOCK);
    if (!at)
        return no_room(err);
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
    uint8_t *at = room(out, data.size + AES_BLOCK);
    if (!at)
        return no_room(err);
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
    /* As much as aes_plain() and aes_gcm() want, so that room() does not move it. */
    uint8_t *at = room(out, data->size + 2 * AES_BLOCK);
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

/* ---- key derivation ---- */

int cn_crypto_hkdf(enum cn_crypto_hash hash, struct cn_bytes key, struct cn_bytes salt,
                   struct cn_bytes info, size_t size, struct cn_buf *out, struct cn_err *err)
{
    const EVP_MD *md = cn_crypto_md(hash);
    if (!md)
        return no_hash(err);
    if (size > 255 * (size_t)EVP_MD_get_size(md))
        return cn_err_set(err, CN_EPROTOCOL, "HKDF gives at most 255 times the size of its hash");
    if (size == 0)
        return 0;
    uint8_t *at = room(out, size);
    if (!at)
        return no_room(err);
    /* RFC 5869 by hand: OpenSSL's EVP_KDF refuses an empty key. */
    struct cn_buf prk = {0};
    static const uint8_t zeros[EVP_MAX_MD_SIZE];
    struct cn_bytes salt_used = salt;
    if (salt.size == 0)
        salt_used = (struct cn_bytes){zeros, (size_t)EVP_MD_get_size(md)};
    int rc = cn_crypto_hmac(hash, salt_used, key, &prk, err);
    struct cn_buf block = {0}, input = {0};
    for (size_t done = 0, i = 1; rc == 0 && done < size; i++) {
        cn_buf_clear(&input);
        cn_buf_append(&input, block.data, block.size);
        cn_buf_append(&input, info.data, info.size);
        cn_buf_append_byte(&input, (uint8_t)i);
        cn_buf_clear(&block);
        rc = cn_crypto_hmac(hash, (struct cn_bytes){prk.data, prk.size},
                            (struct cn_bytes){input.data, input.size}, &block, err);
        size_t take = rc < 0 ? 0 : size - done < block.size ? size - done : block.size;
        memcpy(at + done, block.data, take);
        done += take;
    }
    if (prk.data)
        OPENSSL_cleanse(prk.data, prk.size);
    if (block.data)
        OPENSSL_cleanse(block.data, block.size);
    cn_buf_fini(&prk);
    cn_buf_fini(&block);
    cn_buf_fini(&input);
    if (rc == 0)
        out->size += size;
    return rc;
}

int cn_crypto_pbkdf2(enum cn_crypto_hash hash, struct cn_bytes password, struct cn_bytes salt,
                     uint32_t iterations, size_t size, struct cn_buf *out, struct cn_err *err)
{
    const EVP_MD *md = cn_crypto_md(hash);
    if (!md)
        return no_hash(err);
    if (iterations == 0 || iterations > INT32_MAX || size > INT32_MAX || salt.size > INT32_MAX ||
        password.size > INT32_MAX)
        return cn_err_set(err, CN_EPROTOCOL, "PBKDF2: a parameter is zero or too large");
    if (size == 0)
        return 0;
    uint8_t *at = room(out, size);
    if (!at)
        return no_room(err);
    const char *text = password.data ? (const char *)password.data : "";
    if (!PKCS5_PBKDF2_HMAC(text, (int)password.size, salt.data, (int)salt.size, (int)iterations, md,
                           (int)size, at))
        return cn_crypto_fail(err, CN_EPROTOCOL, "PBKDF2 failed");
    out->size += size;
    return 0;
}
