/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/anykey.h"

#include <openssl/core_names.h>
#include <openssl/decoder.h>
#include <openssl/encoder.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static int fail(struct cn_err *err, int code, const char *otherwise)
{
    const char *known = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return cn_err_set(err, code, "%s", known ? known : otherwise);
}

static EVP_PKEY *decode(struct cn_bytes encoded, int selection, struct cn_bytes passphrase)
{
    EVP_PKEY *key = NULL;
    OSSL_DECODER_CTX *decoder =
        OSSL_DECODER_CTX_new_for_pkey(&key, NULL, NULL, NULL, selection, NULL, NULL);
    if (!decoder)
        return NULL;
    /* Without one OpenSSL would ask at the terminal. */
    OSSL_DECODER_CTX_set_passphrase(
        decoder, passphrase.data ? passphrase.data : (const uint8_t *)"", passphrase.size);
    const unsigned char *at = encoded.data;
    size_t size = encoded.size;
    if (size > CN_ANYKEY_INPUT_MAX || OSSL_DECODER_from_data(decoder, &at, &size) != 1)
        key = NULL;
    OSSL_DECODER_CTX_free(decoder);
    return key;
}

/* The key that is kept as `der`. */
static EVP_PKEY *key_of(struct cn_bytes der, bool is_private)
{
    const unsigned char *at = der.data;
    if (!at)
        return NULL;
    return is_private ? d2i_AutoPrivateKey(NULL, &at, (long)der.size)
                      : d2i_PUBKEY(NULL, &at, (long)der.size);
}

static int encode(EVP_PKEY *key, bool is_private, const struct cn_anykey_form *form,
                  struct cn_buf *out, struct cn_err *err)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    int selection = is_private ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY;
    OSSL_ENCODER_CTX *encoder =
        OSSL_ENCODER_CTX_new_for_pkey(key, selection, form->format, form->structure, NULL);
    bool good = encoder &&
                (!form->cipher || (OSSL_ENCODER_CTX_set_cipher(encoder, form->cipher, NULL) == 1 &&
                                   OSSL_ENCODER_CTX_set_passphrase(encoder, form->passphrase.data,
                                                                   form->passphrase.size) == 1));
    good = good && OSSL_ENCODER_to_data(encoder, &bytes, &size) == 1;
    if (good)
        cn_buf_append(out, bytes, size);
    OSSL_ENCODER_CTX_free(encoder);
    OPENSSL_clear_free(bytes, size);
    return good ? 0 : fail(err, CN_EUNSUPPORTED, "The key cannot be written in this form");
}

/* Takes `handle`, which may be NULL: it could not be read. */
static int describe(EVP_PKEY *handle, bool is_private, struct cn_anykey *key, struct cn_err *err)
{
    if (!handle)
        return fail(err, CN_EINVALID, "unsupported");
    *key = (struct cn_anykey){.bits = (unsigned)EVP_PKEY_get_bits(handle)};
    EVP_PKEY_get_utf8_string_param(handle, OSSL_PKEY_PARAM_GROUP_NAME, key->curve,
                                   sizeof(key->curve), NULL);
    ERR_clear_error();
    const char *type = EVP_PKEY_get0_type_name(handle);
    snprintf(key->type, sizeof(key->type), "%s", type ? type : "");
    const struct cn_anykey_form der = {
        .format = "DER", .structure = is_private ? "PrivateKeyInfo" : "SubjectPublicKeyInfo"};
    int rc = encode(handle, is_private, &der, &key->der, err);
    EVP_PKEY_free(handle);
    return rc;
}

int cn_anykey_read(struct cn_bytes encoded, bool is_private, struct cn_bytes passphrase,
                   struct cn_anykey *key, struct cn_err *err)
{
    int selection = is_private ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY;
    return describe(decode(encoded, selection, passphrase), is_private, key, err);
}

int cn_anykey_public(struct cn_bytes private_der, struct cn_anykey *key, struct cn_err *err)
{
    return describe(key_of(private_der, true), false, key, err);
}

int cn_anykey_write(struct cn_bytes der, bool is_private, const struct cn_anykey_form *form,
                    struct cn_buf *out, struct cn_err *err)
{
    EVP_PKEY *key = key_of(der, is_private);
    if (!key)
        return fail(err, CN_EINVALID, "unsupported");
    ERR_clear_error();
    int rc = encode(key, is_private, form, out, err);
    EVP_PKEY_free(key);
    return rc;
}

int cn_anykey_generate(const struct cn_anykey_recipe *recipe, struct cn_anykey *key,
                       struct cn_err *err)
{
    EVP_PKEY *made = NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, recipe->type, NULL);
    size_t bits = recipe->bits;
    unsigned exponent = recipe->exponent;
    OSSL_PARAM rsa[] = {OSSL_PARAM_construct_size_t(OSSL_PKEY_PARAM_RSA_BITS, &bits),
                        OSSL_PARAM_construct_uint(OSSL_PKEY_PARAM_RSA_E, &exponent),
                        OSSL_PARAM_construct_end()};
    OSSL_PARAM ec[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)recipe->curve, 0),
        OSSL_PARAM_construct_end()};
    OSSL_PARAM none[] = {OSSL_PARAM_construct_end()};
    OSSL_PARAM *params = bits ? rsa : recipe->curve[0] ? ec : none;
    if (ctx)
        cn_crypto_keygen_watch(ctx, recipe->given_up);
    if (bits > CN_ANYKEY_RSA_BITS_MAX || !ctx || EVP_PKEY_keygen_init(ctx) != 1 ||
        EVP_PKEY_CTX_set_params(ctx, params) != 1 || EVP_PKEY_generate(ctx, &made) != 1)
        made = NULL;
    EVP_PKEY_CTX_free(ctx);
    ERR_clear_error();
    if (!made)
        return cn_err_set(err, CN_EINVALID, "The key could not be generated");
    return describe(made, true, key, err);
}

/* ---- signatures ---- */

/* Sets RSA's padding and, for PSS, the length of the salt. */
static bool set_padding(EVP_PKEY_CTX *ctx, EVP_PKEY *key, const struct cn_anykey_way *way)
{
    if (!EVP_PKEY_is_a(key, "RSA") || way->padding == 0)
        return true;
    return EVP_PKEY_CTX_set_rsa_padding(ctx, way->padding) == 1 &&
           (way->padding != RSA_PKCS1_PSS_PADDING ||
            EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, way->salt) == 1);
}

/* A context that is ready to sign or to verify, or NULL with the reason. */
static EVP_MD_CTX *signature_open(const struct cn_anykey_way *way, bool verifies, int *rc,
                                  struct cn_err *err)
{
    const EVP_MD *md = way->hash ? EVP_get_digestbyname(way->hash) : NULL;
    if (way->hash && !md) {
        *rc = cn_err_set(err, CN_EUNSUPPORTED, "Invalid digest");
        return NULL;
    }
    EVP_PKEY *key = key_of(way->der, !verifies);
    if (!key) {
        *rc = fail(err, CN_EINVALID, "unsupported");
        return NULL;
    }
    EVP_MD_CTX *md_ctx = EVP_MD_CTX_new();
    CN_ASSERT(md_ctx);
    EVP_PKEY_CTX *ctx = NULL;
    bool good = (verifies ? EVP_DigestVerifyInit(md_ctx, &ctx, md, NULL, key)
                          : EVP_DigestSignInit(md_ctx, &ctx, md, NULL, key)) == 1 &&
                set_padding(ctx, key, way);
    EVP_PKEY_free(key); /* the context has its own reference */
    if (good)
        return md_ctx;
    EVP_MD_CTX_free(md_ctx);
    *rc = fail(err, CN_EUNSUPPORTED, "The key does not sign");
    return NULL;
}

int cn_anykey_sign(const struct cn_anykey_way *way, struct cn_bytes data, struct cn_buf *out,
                   struct cn_err *err)
{
    int rc = 0;
    EVP_MD_CTX *ctx = signature_open(way, false, &rc, err);
    if (!ctx)
        return rc;
    size_t size = 0;
    bool good = EVP_DigestSign(ctx, NULL, &size, data.data, data.size) == 1;
    if (good) {
        cn_buf_reserve(out, size + 1);
        good = EVP_DigestSign(ctx, out->data + out->size, &size, data.data, data.size) == 1;
    }
    EVP_MD_CTX_free(ctx);
    if (!good)
        return fail(err, CN_EPROTOCOL, "The signature failed");
    ERR_clear_error();
    out->size += size;
    return 0;
}

int cn_anykey_verify(const struct cn_anykey_way *way, struct cn_bytes data,
                     struct cn_bytes signature, struct cn_err *err)
{
    int rc = 0;
    EVP_MD_CTX *ctx = signature_open(way, true, &rc, err);
    if (!ctx)
        return rc;
    bool fits = EVP_DigestVerify(ctx, signature.data, signature.size, data.data, data.size) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_clear_error(); /* a signature that does not fit leaves its reason there */
    return fits;
}

/* ---- RSA, agreement ---- */

/* By [encrypts][is_private]. */
static const struct rsa_way {
    int (*init)(EVP_PKEY_CTX *);
    int (*run)(EVP_PKEY_CTX *, unsigned char *, size_t *, const unsigned char *, size_t);
} rsa_ways[2][2] = {
    {{EVP_PKEY_verify_recover_init, EVP_PKEY_verify_recover},
     {EVP_PKEY_decrypt_init, EVP_PKEY_decrypt}},
    {{EVP_PKEY_encrypt_init, EVP_PKEY_encrypt}, {EVP_PKEY_sign_init, EVP_PKEY_sign}},
};

int cn_anykey_rsa(const struct cn_anykey_rsa *rsa, struct cn_bytes data, struct cn_buf *out,
                  struct cn_err *err)
{
    EVP_PKEY *key = key_of(rsa->der, rsa->is_private);
    if (!key)
        return fail(err, CN_EINVALID, "unsupported");
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL);
    const EVP_MD *md = EVP_get_digestbyname(rsa->hash);
    const struct rsa_way *way = &rsa_ways[rsa->encrypts][rsa->is_private];
    size_t size = 0;
    bool good =
        ctx && md && way->init(ctx) == 1 && EVP_PKEY_CTX_set_rsa_padding(ctx, rsa->padding) == 1 &&
        (rsa->padding != RSA_PKCS1_OAEP_PADDING || EVP_PKEY_CTX_set_rsa_oaep_md(ctx, md) == 1) &&
        way->run(ctx, NULL, &size, data.data, data.size) == 1;
    if (good) {
        cn_buf_reserve(out, size + 1);
        good = way->run(ctx, out->data + out->size, &size, data.data, data.size) == 1;
    }
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(key);
    if (!good)
        return fail(err, CN_EPROTOCOL, "The operation failed");
    ERR_clear_error();
    out->size += size;
    return 0;
}

int cn_anykey_agree(struct cn_bytes private_der, struct cn_bytes public_der, struct cn_buf *out,
                    struct cn_err *err)
{
    EVP_PKEY *key = key_of(private_der, true), *peer = key_of(public_der, false);
    EVP_PKEY_CTX *ctx = key && peer ? EVP_PKEY_CTX_new(key, NULL) : NULL;
    size_t size = 0;
    bool good = ctx && EVP_PKEY_derive_init(ctx) == 1 && EVP_PKEY_derive_set_peer(ctx, peer) == 1 &&
                EVP_PKEY_derive(ctx, NULL, &size) == 1;
    if (good) {
        cn_buf_reserve(out, size + 1);
        good = EVP_PKEY_derive(ctx, out->data + out->size, &size) == 1;
    }
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(key);
    EVP_PKEY_free(peer);
    if (!good)
        return fail(err, CN_EINVALID, "The keys agree on no secret");
    ERR_clear_error();
    out->size += size;
    return 0;
}

/* ---- SPKAC ---- */

static NETSCAPE_SPKI *spkac_of(struct cn_bytes text)
{
    size_t size = text.size <= CN_ANYKEY_SPKAC_MAX ? text.size : 0;
    while (size > 0 && strchr(" \n\r\t", text.data[size - 1]))
        size--;
    /* Without a length OpenSSL would look for the end of a text, which these bytes have not. */
    return size > 0 ? NETSCAPE_SPKI_b64_decode((const char *)text.data, (int)size) : NULL;
}

bool cn_anykey_spkac_verify(struct cn_bytes text)
{
    NETSCAPE_SPKI *spki = spkac_of(text);
    EVP_PKEY *key = spki ? X509_PUBKEY_get(spki->spkac->pubkey) : NULL;
    bool right = key && NETSCAPE_SPKI_verify(spki, key) > 0;
    EVP_PKEY_free(key);
    NETSCAPE_SPKI_free(spki);
    ERR_clear_error();
    return right;
}

int cn_anykey_spkac_key(struct cn_bytes text, struct cn_buf *out, struct cn_err *err)
{
    NETSCAPE_SPKI *spki = spkac_of(text);
    EVP_PKEY *key = spki ? X509_PUBKEY_get(spki->spkac->pubkey) : NULL;
    const struct cn_anykey_form pem = {.format = "PEM", .structure = "SubjectPublicKeyInfo"};
    int rc = key ? encode(key, false, &pem, out, err) : fail(err, CN_EINVALID, "not an SPKAC");
    EVP_PKEY_free(key);
    NETSCAPE_SPKI_free(spki);
    ERR_clear_error();
    return rc;
}

int cn_anykey_spkac_challenge(struct cn_bytes text, struct cn_buf *out, struct cn_err *err)
{
    NETSCAPE_SPKI *spki = spkac_of(text);
    if (!spki)
        return fail(err, CN_EINVALID, "not an SPKAC");
    cn_buf_append(out, ASN1_STRING_get0_data(spki->spkac->challenge),
                  (size_t)ASN1_STRING_length(spki->spkac->challenge));
    NETSCAPE_SPKI_free(spki);
    ERR_clear_error();
    return 0;
}
