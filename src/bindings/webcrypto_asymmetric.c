/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/webcrypto_asymmetric.c - signatures, RSA encryption, key agreement. */
#include "bindings/webcrypto.h"

#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

/* Bytes of r and of s. */
static size_t half_size(enum cn_crypto_kind kind)
{
    return kind == CN_KEY_P256 ? 32 : kind == CN_KEY_P384 ? 48 : 66;
}

static bool scheme_fits(enum cn_crypto_scheme scheme, enum cn_crypto_kind kind,
                        enum cn_crypto_hash hash)
{
    switch (scheme) {
    case CN_SIGN_RSA_PKCS1:
    case CN_SIGN_RSA_PSS:
        return kind == CN_KEY_RSA && cn_crypto_md(hash);
    case CN_SIGN_ECDSA:
        return kind >= CN_KEY_P256 && kind <= CN_KEY_P521 && cn_crypto_md(hash);
    case CN_SIGN_ED25519:
        return kind == CN_KEY_ED25519;
    }
    return false;
}

static bool set_padding(EVP_PKEY_CTX *ctx, enum cn_crypto_scheme scheme, size_t salt_size)
{
    if (scheme == CN_SIGN_RSA_PKCS1)
        return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) > 0;
    if (scheme == CN_SIGN_RSA_PSS)
        return salt_size <= INT32_MAX &&
               EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) > 0 &&
               EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, (int)salt_size) > 0;
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

int cn_crypto_sign(enum cn_crypto_scheme scheme, enum cn_crypto_kind kind, enum cn_crypto_hash hash,
                   size_t salt_size, struct cn_bytes pkcs8, struct cn_bytes data,
                   struct cn_buf *out, struct cn_err *err)
{
    if (!scheme_fits(scheme, kind, hash))
        return cn_err_set(err, CN_EINVALID, "the key, the algorithm and the hash do not fit");
    EVP_PKEY *key = cn_crypto_key(kind, true, pkcs8, err);
    if (!key)
        return CN_EINVALID;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    CN_ASSERT(ctx);
    EVP_PKEY_CTX *key_ctx;
    const EVP_MD *md = scheme == CN_SIGN_ED25519 ? NULL : cn_crypto_md(hash);
    size_t size = 0;
    uint8_t *bytes = NULL;
    bool ok = EVP_DigestSignInit(ctx, &key_ctx, md, NULL, key) > 0 &&
              set_padding(key_ctx, scheme, salt_size) &&
              EVP_DigestSign(ctx, NULL, &size, data.data, data.size) > 0;
    if (ok) {
        bytes = cn_alloc(size);
        ok = EVP_DigestSign(ctx, bytes, &size, data.data, data.size) > 0;
    }
    if (ok && scheme == CN_SIGN_ECDSA)
        ok = der_to_halves(bytes, size, half_size(kind), out);
    else if (ok)
        cn_buf_append(out, bytes, size);
    cn_free(bytes);
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return ok ? 0 : cn_crypto_fail(err, CN_EPROTOCOL, "signing failed");
}

int cn_crypto_verify(enum cn_crypto_scheme scheme, enum cn_crypto_kind kind,
                     enum cn_crypto_hash hash, size_t salt_size, struct cn_bytes spki,
                     struct cn_bytes data, struct cn_bytes signature, struct cn_err *err)
{
    if (!scheme_fits(scheme, kind, hash))
        return cn_err_set(err, CN_EINVALID, "the key, the algorithm and the hash do not fit");
    EVP_PKEY *key = cn_crypto_key(kind, false, spki, err);
    if (!key)
        return CN_EINVALID;
    uint8_t *der = NULL;
    if (scheme == CN_SIGN_ECDSA)
        signature = (struct cn_bytes){.size = halves_to_der(signature, half_size(kind), &der)};
    if (der)
        signature.data = der;
    int rc = 0;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    CN_ASSERT(ctx);
    EVP_PKEY_CTX *key_ctx;
    const EVP_MD *md = scheme == CN_SIGN_ED25519 ? NULL : cn_crypto_md(hash);
    if (EVP_DigestVerifyInit(ctx, &key_ctx, md, NULL, key) <= 0 ||
        !set_padding(key_ctx, scheme, salt_size))
        rc = cn_crypto_fail(err, CN_EPROTOCOL, "the signature cannot be checked");
    else if (signature.size > 0)
        rc = EVP_DigestVerify(ctx, signature.data, signature.size, data.data, data.size) == 1;
    ERR_clear_error(); /* a signature that does not fit leaves its reason there */
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    OPENSSL_free(der);
    return rc;
}

int cn_crypto_rsa_oaep(bool encrypt, enum cn_crypto_hash hash, struct cn_bytes key_der,
                       struct cn_bytes label, struct cn_bytes data, struct cn_buf *out,
                       struct cn_err *err)
{
    const EVP_MD *md = cn_crypto_md(hash);
    if (!md)
        return cn_err_set(err, CN_EUNSUPPORTED, "not a hash that is known here");
    EVP_PKEY *key = cn_crypto_key(CN_KEY_RSA, !encrypt, key_der, err);
    if (!key)
        return CN_EINVALID;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL);
    CN_ASSERT(ctx);
    bool ok = (encrypt ? EVP_PKEY_encrypt_init(ctx) : EVP_PKEY_decrypt_init(ctx)) > 0 &&
              EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_OAEP_PADDING) > 0 &&
              EVP_PKEY_CTX_set_rsa_oaep_md(ctx, md) > 0 &&
              EVP_PKEY_CTX_set_rsa_mgf1_md(ctx, md) > 0;
    if (ok && label.size > 0) {
        void *copy = OPENSSL_memdup(label.data, label.size); /* the context's own */
        ok = copy && EVP_PKEY_CTX_set0_rsa_oaep_label(ctx, copy, (int)label.size) > 0;
        if (!ok)
            OPENSSL_free(copy);
    }
    size_t size = (size_t)EVP_PKEY_get_size(key);
    cn_buf_reserve(out, size);
    if (ok)
        ok = (encrypt
                  ? EVP_PKEY_encrypt(ctx, out->data + out->size, &size, data.data, data.size)
                  : EVP_PKEY_decrypt(ctx, out->data + out->size, &size, data.data, data.size)) > 0;
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(key);
    if (!ok)
        return cn_crypto_fail(err, CN_EPROTOCOL,
                              encrypt ? "encryption failed" : "decryption failed");
    out->size += size;
    return 0;
}

int cn_crypto_agree(enum cn_crypto_kind kind, struct cn_bytes pkcs8, struct cn_bytes spki,
                    struct cn_buf *out, struct cn_err *err)
{
    int rc = CN_EINVALID;
    EVP_PKEY *ours = NULL, *theirs = NULL;
    EVP_PKEY_CTX *ctx = NULL;
    if (kind < CN_KEY_P256 || kind > CN_KEY_X25519 || kind == CN_KEY_ED25519)
        return cn_err_set(err, CN_EINVALID, "keys of this kind cannot agree on a secret");
    ours = cn_crypto_key(kind, true, pkcs8, err);
    if (!ours)
        goto free_all;
    theirs = cn_crypto_key(kind, false, spki, err);
    if (!theirs)
        goto free_all;
    ctx = EVP_PKEY_CTX_new(ours, NULL);
    CN_ASSERT(ctx);
    size_t size = 0;
    if (EVP_PKEY_derive_init(ctx) <= 0 || EVP_PKEY_derive_set_peer(ctx, theirs) <= 0 ||
        EVP_PKEY_derive(ctx, NULL, &size) <= 0) {
        rc = cn_crypto_fail(err, CN_EPROTOCOL, "the keys agree on no secret");
        goto free_all;
    }
    cn_buf_reserve(out, size);
    /* For X25519 this fails if the secret is all zeros, as RFC 7748 (6.1) asks for. */
    if (EVP_PKEY_derive(ctx, out->data + out->size, &size) <= 0) {
        rc = cn_crypto_fail(err, CN_EPROTOCOL, "the keys agree on no secret");
        goto free_all;
    }
    out->size += size;
    rc = 0;
free_all:
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(ours);
    EVP_PKEY_free(theirs);
    return rc;
}
