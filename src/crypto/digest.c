/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/digest.c - digests and HMAC.
 *
 * They use OpenSSL's low-level functions, which it calls deprecated: their structs hold no
 * pointers, so that a state may be moved and is freed like any bytes, and they spare small inputs
 * the search for a provider (1 us each time). */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "crypto/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/assert.h"

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

int cn_crypto_no_hash(struct cn_err *err)
{
    return cn_err_set(err, CN_EUNSUPPORTED, "not a hash that is known here");
}

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
        return cn_crypto_no_hash(err);
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
