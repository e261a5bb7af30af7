/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/sign.h"

#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "base/assert.h"
#include "base/mem.h"

/* Bytes of r and of s. */
static size_t half_size(enum cn_crypto_kind kind)
{
    return kind == CN_KEY_P256 ? 32 : kind == CN_KEY_P384 ? 48 : 66;
}

static bool way_fits(const struct cn_crypto_way *way)
{
    switch (way->scheme) {
    case CN_SIGN_RSA_PKCS1:
    case CN_SIGN_RSA_PSS:
        return way->kind == CN_KEY_RSA && cn_crypto_md(way->hash);
    case CN_SIGN_ECDSA:
        return way->kind >= CN_KEY_P256 && way->kind <= CN_KEY_P521 && cn_crypto_md(way->hash);
    case CN_SIGN_ED25519:
        return way->kind == CN_KEY_ED25519;
    }
    return false;
}

static bool set_padding(EVP_PKEY_CTX *ctx, const struct cn_crypto_way *way)
{
    if (way->scheme == CN_SIGN_RSA_PKCS1)
        return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) > 0;
    if (way->scheme == CN_SIGN_RSA_PSS)
        return way->salt_size <= INT32_MAX &&
               EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) > 0 &&
               EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, (int)way->salt_size) > 0;
    return true;
}

/* r and s side by side, each of the curve's width, from OpenSSL's DER; false if it is not that. */
static bool der_to_halves(const uint8_t *der, size_t size, size_t half, struct cn_buf *out)
{
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &der, (long)size);
    if (!signature)
        return false;
    uint8_t halves[2 * 66];
    bool ok = BN_bn2binpad(ECDSA_SIG_get0_r(signature), halves, (int)half) > 0 &&
              BN_bn2binpad(ECDSA_SIG_get0_s(signature), halves + half, (int)half) > 0;
    ECDSA_SIG_free(signature);
    if (ok)
        cn_buf_append(out, halves, 2 * half);
    return ok;
}

/* The reverse; the caller frees the DER with OPENSSL_free(). Its size, or 0. */
static size_t halves_to_der(struct cn_bytes halves, size_t half, uint8_t **der)
{
    *der = NULL;
    if (halves.size != 2 * half)
        return 0;
    ECDSA_SIG *signature = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(halves.data, (int)half, NULL);
    BIGNUM *s = BN_bin2bn(halves.data + half, (int)half, NULL);
    CN_ASSERT(signature && r && s);
    ECDSA_SIG_set0(signature, r, s);
    int size = i2d_ECDSA_SIG(signature, der);
    ECDSA_SIG_free(signature);
    return size > 0 ? (size_t)size : 0;
}

int cn_crypto_sign(const struct cn_crypto_way *way, struct cn_bytes pkcs8, struct cn_bytes data,
                   struct cn_buf *out, struct cn_err *err)
{
    if (!way_fits(way))
        return cn_err_set(err, CN_EINVALID, "the key, the algorithm and the hash do not fit");
    EVP_PKEY *key = cn_crypto_key(way->kind, true, pkcs8, err);
    if (!key)
        return CN_EINVALID;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    CN_ASSERT(ctx);
    EVP_PKEY_CTX *key_ctx;
    const EVP_MD *md = way->scheme == CN_SIGN_ED25519 ? NULL : cn_crypto_md(way->hash);
    size_t size = 0;
    uint8_t *bytes = NULL;
    bool ok = EVP_DigestSignInit(ctx, &key_ctx, md, NULL, key) > 0 && set_padding(key_ctx, way) &&
              EVP_DigestSign(ctx, NULL, &size, data.data, data.size) > 0;
    if (ok) {
        bytes = cn_alloc(size);
        ok = EVP_DigestSign(ctx, bytes, &size, data.data, data.size) > 0;
    }
    if (ok && way->scheme == CN_SIGN_ECDSA)
        ok = der_to_halves(bytes, size, half_size(way->kind), out);
    else if (ok)
        cn_buf_append(out, bytes, size);
    cn_free(bytes);
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return ok ? 0 : cn_crypto_fail(err, CN_EPROTOCOL, "signing failed");
}

int cn_crypto_verify(const struct cn_crypto_way *way, struct cn_bytes spki, struct cn_bytes data,
                     struct cn_bytes signature, struct cn_err *err)
{
    if (!way_fits(way))
        return cn_err_set(err, CN_EINVALID, "the key, the algorithm and the hash do not fit");
    EVP_PKEY *key = cn_crypto_key(way->kind, false, spki, err);
    if (!key)
        return CN_EINVALID;
    uint8_t *der = NULL;
    if (way->scheme == CN_SIGN_ECDSA)
        signature = (struct cn_bytes){.size = halves_to_der(signature, half_size(way->kind), &der)};
    if (der)
        signature.data = der;
    int rc = 0;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    CN_ASSERT(ctx);
    EVP_PKEY_CTX *key_ctx;
    const EVP_MD *md = way->scheme == CN_SIGN_ED25519 ? NULL : cn_crypto_md(way->hash);
    if (EVP_DigestVerifyInit(ctx, &key_ctx, md, NULL, key) <= 0 || !set_padding(key_ctx, way))
        rc = cn_crypto_fail(err, CN_EPROTOCOL, "the signature cannot be checked");
    else if (signature.size > 0)
        rc = EVP_DigestVerify(ctx, signature.data, signature.size, data.data, data.size) == 1;
    ERR_clear_error(); /* a signature that does not fit leaves its reason there */
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    OPENSSL_free(der);
    return rc;
}
