/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/derive.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

int cn_crypto_hkdf(enum cn_crypto_hash hash, struct cn_bytes key, struct cn_bytes salt,
                   struct cn_bytes info, size_t size, struct cn_buf *out, struct cn_err *err)
{
    const EVP_MD *md = cn_crypto_md(hash);
    if (!md)
        return cn_crypto_no_hash(err);
    if (size > 255 * (size_t)EVP_MD_get_size(md))
        return cn_err_set(err, CN_EPROTOCOL, "HKDF gives at most 255 times the size of its hash");
    if (size == 0)
        return 0;
    uint8_t *at = cn_crypto_room(out, size);
    if (!at)
        return cn_crypto_no_room(err);
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
        return cn_crypto_no_hash(err);
    if (iterations == 0 || iterations > INT32_MAX || size > INT32_MAX || salt.size > INT32_MAX ||
        password.size > INT32_MAX)
        return cn_err_set(err, CN_EPROTOCOL, "PBKDF2: a parameter is zero or too large");
    if (size == 0)
        return 0;
    uint8_t *at = cn_crypto_room(out, size);
    if (!at)
        return cn_crypto_no_room(err);
    const char *text = password.data ? (const char *)password.data : "";
    if (!PKCS5_PBKDF2_HMAC(text, (int)password.size, salt.data, (int)salt.size, (int)iterations, md,
                           (int)size, at))
        return cn_crypto_fail(err, CN_EPROTOCOL, "PBKDF2 failed");
    out->size += size;
    return 0;
}

bool cn_crypto_derive_knows(const char *hash)
{
    return EVP_get_digestbyname(hash) != NULL;
}

static bool pbkdf2_named(const struct cn_crypto_derivation *d, const EVP_MD *md, uint8_t *at)
{
    return d->cost >= 1 && d->cost <= INT_MAX && d->password.size <= INT_MAX &&
           d->salt.size <= INT_MAX && d->size <= INT_MAX &&
           PKCS5_PBKDF2_HMAC((const char *)d->password.data, (int)d->password.size, d->salt.data,
                             (int)d->salt.size, (int)d->cost, md, (int)d->size, at) == 1;
}

int cn_crypto_derive(const struct cn_crypto_derivation *d, struct cn_buf *out, struct cn_err *err)
{
    const EVP_MD *md = d->hash ? EVP_get_digestbyname(d->hash) : NULL;
    if (d->hash && !md)
        return cn_crypto_no_hash(err);
    if (d->size > CN_CRYPTO_DERIVED_MAX)
        return cn_err_set(err, CN_EINVALID, "more than %u bytes", CN_CRYPTO_DERIVED_MAX);
    uint8_t *at = cn_crypto_room(out, d->size + 1);
    if (!at)
        return cn_crypto_no_room(err);
    bool good = md ? pbkdf2_named(d, md, at)
                   : EVP_PBE_scrypt((const char *)d->password.data, d->password.size, d->salt.data,
                                    d->salt.size, d->cost, d->block_size, d->parallelization,
                                    d->memory_max, at, d->size) == 1;
    if (!good)
        return cn_crypto_fail(err, CN_EPROTOCOL, "the derivation failed");
    ERR_clear_error();
    out->size += d->size;
    return 0;
}
