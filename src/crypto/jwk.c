/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/jwk.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <string.h>

#include "base/assert.h"

static const char *const rsa_names[CN_CRYPTO_PART_COUNT] = {
    OSSL_PKEY_PARAM_RSA_N,         OSSL_PKEY_PARAM_RSA_E,
    OSSL_PKEY_PARAM_RSA_D,         OSSL_PKEY_PARAM_RSA_FACTOR1,
    OSSL_PKEY_PARAM_RSA_FACTOR2,   OSSL_PKEY_PARAM_RSA_EXPONENT1,
    OSSL_PKEY_PARAM_RSA_EXPONENT2, OSSL_PKEY_PARAM_RSA_COEFFICIENT1,
};

static EVP_PKEY *rsa_from_parts(const struct cn_crypto_parts *parts, size_t count)
{
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    CN_ASSERT(build);
    BIGNUM *numbers[CN_CRYPTO_PART_COUNT] = {NULL};
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++) {
        numbers[i] = cn_crypto_number(parts->part[i]);
        ok = numbers[i] && OSSL_PARAM_BLD_push_BN(build, rsa_names[i], numbers[i]);
    }
    EVP_PKEY *key = NULL;
    if (ok)
        key = cn_crypto_key_from_params("RSA", count > 2 ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY,
                                        build);
    for (size_t i = 0; i < count; i++)
        BN_clear_free(numbers[i]);
    OSSL_PARAM_BLD_free(build);
    return key;
}

static EVP_PKEY *curve_from_parts(enum cn_crypto_kind kind, const struct cn_crypto_parts *parts,
                                  bool is_private)
{
    size_t width = cn_crypto_kind_info(kind)->width;
    for (size_t i = 0; i < (is_private ? 3u : 2u); i++) {
        if (parts->part[i].size != width)
            return NULL;
    }
    uint8_t point[2 * 66 + 1] = {4};
    memcpy(point + 1, parts->part[0].data, width);
    memcpy(point + 1 + width, parts->part[1].data, width);
    return cn_crypto_curve_key(kind, (struct cn_bytes){point, 2 * width + 1},
                               is_private ? parts->part[2] : (struct cn_bytes){0});
}

/* A private OKP key's x must be the one that d makes. */
static EVP_PKEY *okp_from_parts(enum cn_crypto_kind kind, const struct cn_crypto_parts *parts,
                                bool is_private)
{
    const struct cn_crypto_kind_info *info = cn_crypto_kind_info(kind);
    struct cn_bytes x = parts->part[0], d = parts->part[1];
    if (x.size != info->width || (is_private && d.size != info->width))
        return NULL;
    if (!is_private)
        return EVP_PKEY_new_raw_public_key(info->base_id, NULL, x.data, x.size);
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(info->base_id, NULL, d.data, d.size);
    uint8_t own[32];
    size_t size = sizeof(own);
    if (key && (!EVP_PKEY_get_raw_public_key(key, own, &size) || memcmp(own, x.data, size) != 0)) {
        EVP_PKEY_free(key);
        return NULL;
    }
    return key;
}

int cn_crypto_import_parts(enum cn_crypto_kind kind, const struct cn_crypto_parts *parts,
                           bool is_private, struct cn_buf *der, struct cn_err *err)
{
    ERR_clear_error();
    EVP_PKEY *key;
    if (kind == CN_KEY_RSA)
        key = rsa_from_parts(parts, is_private ? 8 : 2);
    else if (cn_crypto_is_curve(kind))
        key = curve_from_parts(kind, parts, is_private);
    else
        key = okp_from_parts(kind, parts, is_private);
    if (!key)
        return cn_crypto_fail(err, CN_EINVALID, "the numbers of the key do not make one");
    int rc = cn_crypto_key_write(key, kind, is_private, der, err);
    EVP_PKEY_free(key);
    return rc;
}

static void part_append(struct cn_buf *out, const uint8_t *bytes, size_t size)
{
    uint8_t head[4] = {(uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
                       (uint8_t)size};
    cn_buf_append(out, head, sizeof(head));
    cn_buf_append(out, bytes, size);
}

/* Appends the number called `name`, padded to `width` bytes (0: as short as it is). */
static bool number_append(EVP_PKEY *key, const char *name, size_t width, struct cn_buf *out)
{
    BIGNUM *value = NULL;
    if (!EVP_PKEY_get_bn_param(key, name, &value))
        return false;
    uint8_t bytes[CN_CRYPTO_RSA_BITS_MAX / 8 + 1];
    size_t size = width ? width : (size_t)BN_num_bytes(value);
    bool ok = size <= sizeof(bytes) && BN_bn2binpad(value, bytes, (int)size) >= 0;
    if (ok)
        part_append(out, bytes, size);
    BN_clear_free(value);
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return ok;
}

int cn_crypto_export_parts(enum cn_crypto_kind kind, bool is_private, struct cn_bytes der,
                           struct cn_buf *out, struct cn_err *err)
{
    EVP_PKEY *key = cn_crypto_key(kind, is_private, der, err);
    if (!key)
        return CN_EINVALID;
    size_t width = cn_crypto_kind_info(kind)->width;
    bool ok = true;
    if (kind == CN_KEY_RSA) {
        for (size_t i = 0; i < (is_private ? 8u : 2u) && ok; i++)
            ok = number_append(key, rsa_names[i], 0, out);
    } else if (cn_crypto_is_curve(kind)) {
        ok = number_append(key, OSSL_PKEY_PARAM_EC_PUB_X, width, out) &&
             number_append(key, OSSL_PKEY_PARAM_EC_PUB_Y, width, out) &&
             (!is_private || number_append(key, OSSL_PKEY_PARAM_PRIV_KEY, width, out));
    } else {
        uint8_t bytes[32];
        size_t size = sizeof(bytes);
        ok = EVP_PKEY_get_raw_public_key(key, bytes, &size);
        if (ok)
            part_append(out, bytes, size);
        if (ok && is_private) {
            size = sizeof(bytes);
            ok = EVP_PKEY_get_raw_private_key(key, bytes, &size);
            if (ok)
                part_append(out, bytes, size);
            OPENSSL_cleanse(bytes, sizeof(bytes));
        }
    }
    EVP_PKEY_free(key);
    return ok ? 0 : cn_crypto_fail(err, CN_EINVALID, "the key's numbers cannot be read");
}
