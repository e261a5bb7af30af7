/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node_keys.c - asymmetric keys of node:crypto: reading and writing them in every usual
 * form, signatures, RSA encryption.
 *
 * JavaScript keeps a key as DER (PKCS #8 or SubjectPublicKeyInfo); each operation decodes it. What
 * the caller's data make fail is answered with a string that says why. */
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/decoder.h>
#include <openssl/encoder.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <string.h>

#include "base/mem.h"
#include "border/node_keys.h"
#include "crypto/crypto.h"
#include "js/native.h"
#include "js/work.h"
#include "worker/runtime.h"

#define INPUT_MAX (1u << 20) /* bytes of an encoded key */
#define RSA_BITS_MAX 16384
#define SPKAC_MAX (64 * 1024)

static JSValueRef reason(JSContextRef ctx, const char *otherwise)
{
    unsigned long code = ERR_peek_last_error();
    const char *known = code ? ERR_reason_error_string(code) : NULL;
    JSValueRef text = cn_js_text_z(ctx, known ? known : otherwise);
    ERR_clear_error();
    return text;
}

static EVP_PKEY *decode(const uint8_t *bytes, size_t size, int selection, const char *passphrase,
                        size_t passphrase_size)
{
    EVP_PKEY *key = NULL;
    OSSL_DECODER_CTX *decoder =
        OSSL_DECODER_CTX_new_for_pkey(&key, NULL, NULL, NULL, selection, NULL, NULL);
    if (!decoder)
        return NULL;
    /* Without one OpenSSL would ask at the terminal. */
    OSSL_DECODER_CTX_set_passphrase(decoder, (const uint8_t *)(passphrase ? passphrase : ""),
                                    passphrase_size);
    if (size > INPUT_MAX || OSSL_DECODER_from_data(decoder, &bytes, &size) != 1)
        key = NULL;
    OSSL_DECODER_CTX_free(decoder);
    return key;
}

/* The key in a DER argument that JavaScript keeps. */
static EVP_PKEY *key_arg(JSContextRef ctx, JSValueRef value, bool is_private)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, value, &bytes, &size) || !bytes)
        return NULL;
    const unsigned char *at = bytes;
    return is_private ? d2i_AutoPrivateKey(NULL, &at, (long)size)
                      : d2i_PUBKEY(NULL, &at, (long)size);
}

/* How a written key is encrypted; no cipher: not at all. */
struct protection {
    const char *cipher;
    uint8_t *passphrase;
    size_t size;
};

static JSValueRef encode(JSContextRef ctx, EVP_PKEY *key, bool is_private, const char *form,
                         const char *structure, const struct protection *protection)
{
    uint8_t *out = NULL;
    size_t size = 0;
    int selection = is_private ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY;
    OSSL_ENCODER_CTX *encoder =
        OSSL_ENCODER_CTX_new_for_pkey(key, selection, form, structure, NULL);
    JSValueRef value;
    bool ready =
        encoder &&
        (!protection->cipher ||
         (OSSL_ENCODER_CTX_set_cipher(encoder, protection->cipher, NULL) == 1 &&
          OSSL_ENCODER_CTX_set_passphrase(encoder, protection->passphrase, protection->size) == 1));
    if (ready && OSSL_ENCODER_to_data(encoder, &out, &size) == 1)
        value = cn_js_uint8array(ctx, out, size);
    else
        value = reason(ctx, "The key cannot be written in this form");
    OSSL_ENCODER_CTX_free(encoder);
    OPENSSL_clear_free(out, size);
    return value;
}

/* [type, DER of the key, bits, curve] */
static JSValueRef describe(JSContextRef ctx, EVP_PKEY *key, bool is_private, JSValueRef *exception)
{
    char curve[64] = "";
    EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, curve, sizeof(curve), NULL);
    ERR_clear_error();
    const char *type = EVP_PKEY_get0_type_name(key);
    JSValueRef items[4] = {
        cn_js_text_z(ctx, type ? type : ""),
        encode(ctx, key, is_private, "DER", is_private ? "PrivateKeyInfo" : "SubjectPublicKeyInfo",
               &(struct protection){0}),
        JSValueMakeNumber(ctx, EVP_PKEY_get_bits(key)),
        cn_js_text_z(ctx, curve),
    };
    return JSObjectMakeArray(ctx, 4, items, exception);
}

/* nodeKeyRead(bytes, isPrivate, passphrase | undefined) -> [type, DER, bits, curve], or a string */
static JSValueRef native_node_key_read(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes, *passphrase = NULL;
    size_t size, passphrase_size = 0;
    bool is_private = JSValueToBoolean(ctx, cn_js_arg(1));
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeKeyRead: not a buffer");
    (void)cn_js_bytes(ctx, cn_js_arg(2), &passphrase, &passphrase_size); /* may be absent */
    EVP_PKEY *key = decode(bytes, size, is_private ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY,
                           (const char *)passphrase, passphrase_size);
    if (!key)
        return reason(ctx, "unsupported");
    ERR_clear_error();
    JSValueRef value = describe(ctx, key, is_private, exception);
    EVP_PKEY_free(key);
    return value;
}

/* nodeKeyPublic(private DER) -> [type, DER of the public key, bits, curve] */
static JSValueRef native_node_key_public(CN_JS_NATIVE_ARGS)
{
    EVP_PKEY *key = key_arg(ctx, cn_js_arg(0), true);
    if (!key)
        return reason(ctx, "unsupported");
    JSValueRef value = describe(ctx, key, false, exception);
    EVP_PKEY_free(key);
    return value;
}

/* nodeKeyWrite(DER, isPrivate, "PEM" | "DER", structure, cipher, passphrase) -> bytes, or a string;
 * without a cipher the key is not encrypted */
static JSValueRef native_node_key_write(CN_JS_NATIVE_ARGS)
{
    bool is_private = JSValueToBoolean(ctx, cn_js_arg(1));
    EVP_PKEY *key = key_arg(ctx, cn_js_arg(0), is_private);
    if (!key)
        return reason(ctx, "unsupported");
    char *form = cn_js_to_text(ctx, cn_js_arg(2), NULL);
    char *structure = cn_js_to_text(ctx, cn_js_arg(3), NULL);
    char *cipher =
        JSValueIsString(ctx, cn_js_arg(4)) ? cn_js_to_text(ctx, cn_js_arg(4), NULL) : NULL;
    struct protection protection = {.cipher = cipher};
    (void)cn_js_bytes(ctx, cn_js_arg(5), &protection.passphrase, &protection.size);
    JSValueRef value = encode(ctx, key, is_private, form, structure, &protection);
    cn_free(cipher);
    cn_free(form);
    cn_free(structure);
    EVP_PKEY_free(key);
    return value;
}

/* Sets RSA's padding and, for PSS, the length of the salt. */
static bool set_padding(EVP_PKEY_CTX *pkey_ctx, EVP_PKEY *key, int padding, int salt)
{
    if (!EVP_PKEY_is_a(key, "RSA") || padding == 0)
        return true;
    return EVP_PKEY_CTX_set_rsa_padding(pkey_ctx, padding) == 1 &&
           (padding != RSA_PKCS1_PSS_PADDING ||
            EVP_PKEY_CTX_set_rsa_pss_saltlen(pkey_ctx, salt) == 1);
}

/* nodeSign(hash | null, DER, data, padding, salt, signature | undefined) -> signature bytes; with a
 * signature it is verified and the result is a boolean; a string says why it failed */
static JSValueRef native_node_sign(CN_JS_NATIVE_ARGS)
{
    uint8_t *data, *signature = NULL;
    size_t size, signature_size = 0;
    if (!cn_js_bytes(ctx, cn_js_arg(2), &data, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeSign: not a buffer");
    bool verifies = cn_js_bytes(ctx, cn_js_arg(5), &signature, &signature_size);
    char *hash = JSValueIsNull(ctx, cn_js_arg(0)) ? NULL : cn_js_to_text(ctx, cn_js_arg(0), NULL);
    const EVP_MD *md = hash ? EVP_get_digestbyname(hash) : NULL;
    bool bad_hash = hash && !md;
    cn_free(hash);
    if (bad_hash)
        return cn_js_text_z(ctx, "Invalid digest");
    EVP_PKEY *key = key_arg(ctx, cn_js_arg(1), !verifies);
    if (!key)
        return reason(ctx, "unsupported");
    EVP_MD_CTX *md_ctx = EVP_MD_CTX_new();
    EVP_PKEY_CTX *pkey_ctx = NULL;
    int padding = cn_js_to_int32(ctx, cn_js_arg(3));
    int salt = cn_js_to_int32(ctx, cn_js_arg(4));
    JSValueRef value;
    if ((verifies ? EVP_DigestVerifyInit(md_ctx, &pkey_ctx, md, NULL, key)
                  : EVP_DigestSignInit(md_ctx, &pkey_ctx, md, NULL, key)) != 1 ||
        !set_padding(pkey_ctx, key, padding, salt)) {
        value = reason(ctx, "The key does not sign");
    } else if (verifies) {
        value = JSValueMakeBoolean(
            ctx, EVP_DigestVerify(md_ctx, signature, signature_size, data, size) == 1);
    } else {
        size_t made = 0;
        uint8_t *out = NULL;
        if (EVP_DigestSign(md_ctx, NULL, &made, data, size) == 1)
            out = cn_alloc(made + 1);
        if (out && EVP_DigestSign(md_ctx, out, &made, data, size) == 1) {
            value = cn_js_uint8array_take(ctx, out, made);
        } else {
            cn_free(out);
            value = reason(ctx, "The signature failed");
        }
    }
    ERR_clear_error();
    EVP_MD_CTX_free(md_ctx);
    EVP_PKEY_free(key);
    return value;
}

/* RSA by [encrypts][is_private]: with the private key one encrypts by signing. */
static const struct rsa_way {
    int (*init)(EVP_PKEY_CTX *);
    int (*run)(EVP_PKEY_CTX *, unsigned char *, size_t *, const unsigned char *, size_t);
} rsa_ways[2][2] = {
    {{EVP_PKEY_verify_recover_init, EVP_PKEY_verify_recover},
     {EVP_PKEY_decrypt_init, EVP_PKEY_decrypt}},
    {{EVP_PKEY_encrypt_init, EVP_PKEY_encrypt}, {EVP_PKEY_sign_init, EVP_PKEY_sign}},
};

/* nodeRsa(encrypts, DER, isPrivate, data, padding, OAEP hash) -> bytes, or a string */
static JSValueRef native_node_rsa(CN_JS_NATIVE_ARGS)
{
    uint8_t *data;
    size_t size;
    bool encrypts = JSValueToBoolean(ctx, cn_js_arg(0));
    if (!cn_js_bytes(ctx, cn_js_arg(3), &data, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeRsa: not a buffer");
    bool is_private = JSValueToBoolean(ctx, cn_js_arg(2));
    EVP_PKEY *key = key_arg(ctx, cn_js_arg(1), is_private);
    if (!key)
        return reason(ctx, "unsupported");
    EVP_PKEY_CTX *pkey_ctx = EVP_PKEY_CTX_new(key, NULL);
    int padding = cn_js_to_int32(ctx, cn_js_arg(4));
    char *hash = cn_js_to_text(ctx, cn_js_arg(5), NULL);
    const EVP_MD *md = EVP_get_digestbyname(hash);
    cn_free(hash);
    const struct rsa_way *way = &rsa_ways[encrypts][is_private];
    bool good =
        pkey_ctx && md && way->init(pkey_ctx) == 1 &&
        EVP_PKEY_CTX_set_rsa_padding(pkey_ctx, padding) == 1 &&
        (padding != RSA_PKCS1_OAEP_PADDING || EVP_PKEY_CTX_set_rsa_oaep_md(pkey_ctx, md) == 1);
    size_t made = 0;
    uint8_t *out = NULL;
    JSValueRef value;
    if (good && way->run(pkey_ctx, NULL, &made, data, size) == 1)
        out = cn_alloc(made + 1);
    if (out && way->run(pkey_ctx, out, &made, data, size) == 1) {
        value = cn_js_uint8array_take(ctx, out, made);
    } else {
        cn_free(out);
        value = reason(ctx, "The operation failed");
    }
    ERR_clear_error();
    EVP_PKEY_CTX_free(pkey_ctx);
    EVP_PKEY_free(key);
    return value;
}

/* Generating takes up to seconds: off the lane, or at once. */
struct generation {
    struct cn_js_work work;  /* first */
    char *type;              /* as OpenSSL names it; owned */
    char *curve;             /* of EC keys, else ""; owned */
    unsigned bits, exponent; /* of RSA keys */
    EVP_PKEY *key;
};

static void generation_run(struct cn_js_work *work)
{
    struct generation *g = (struct generation *)work;
    EVP_PKEY_CTX *pkey_ctx = EVP_PKEY_CTX_new_from_name(NULL, g->type, NULL);
    size_t bits = g->bits;
    OSSL_PARAM rsa[] = {OSSL_PARAM_construct_size_t(OSSL_PKEY_PARAM_RSA_BITS, &bits),
                        OSSL_PARAM_construct_uint(OSSL_PKEY_PARAM_RSA_E, &g->exponent),
                        OSSL_PARAM_construct_end()};
    OSSL_PARAM ec[] = {OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, g->curve, 0),
                       OSSL_PARAM_construct_end()};
    OSSL_PARAM none[] = {OSSL_PARAM_construct_end()};
    OSSL_PARAM *params = g->bits ? rsa : g->curve[0] ? ec : none;
    if (!pkey_ctx || EVP_PKEY_keygen_init(pkey_ctx) != 1 ||
        EVP_PKEY_CTX_set_params(pkey_ctx, params) != 1 || EVP_PKEY_generate(pkey_ctx, &g->key) != 1)
        g->key = NULL;
    ERR_clear_error();
    EVP_PKEY_CTX_free(pkey_ctx);
}

static JSValueRef generation_finish(struct cn_js_work *work, JSContextRef ctx,
                                    JSValueRef *exception)
{
    struct generation *g = (struct generation *)work;
    cn_free(g->type);
    cn_free(g->curve);
    JSValueRef value = NULL;
    if (ctx && g->key)
        value = describe(ctx, g->key, true, exception);
    else if (ctx)
        value = cn_js_throw(ctx, exception, CN_JS_ERROR, "The key could not be generated");
    EVP_PKEY_free(g->key);
    return value;
}

/* nodeKeyGenerate(background, type, bits, exponent, curve) -> [type, private DER, bits, curve] or
 * a promise of it */
static JSValueRef native_node_key_generate(CN_JS_NATIVE_ARGS)
{
    double bits = cn_js_to_number(ctx, cn_js_arg(2)), exponent = cn_js_to_number(ctx, cn_js_arg(3));
    if (!(bits >= 0 && bits <= RSA_BITS_MAX && exponent >= 0 && exponent <= UINT_MAX))
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "Invalid RSA parameters");
    struct generation *g = CN_NEW(struct generation);
    g->work.run = generation_run;
    g->work.finish = generation_finish;
    g->type = cn_js_to_text(ctx, cn_js_arg(1), NULL);
    g->bits = (unsigned)bits;
    g->work.slow = bits > CN_CRYPTO_RSA_FAST_BITS;
    g->exponent = (unsigned)exponent;
    g->curve = cn_js_to_text(ctx, cn_js_arg(4), NULL);
    if (JSValueToBoolean(ctx, cn_js_arg(0)))
        return cn_js_work_start(cn_js_context_of(ctx), cn_runtime_of(ctx)->loop, &g->work);
    generation_run(&g->work);
    JSValueRef value = generation_finish(&g->work, ctx, exception);
    cn_free(g);
    return value;
}

/* nodeSpkac(what, text) -> what 0: whether its signature is right; 1: its public key as PEM, 2: its
 * challenge, as bytes, or undefined */
static JSValueRef native_node_spkac(CN_JS_NATIVE_ARGS)
{
    uint8_t *text;
    size_t size;
    uint32_t what = cn_js_to_uint32(ctx, cn_js_arg(0));
    if (!cn_js_bytes(ctx, cn_js_arg(1), &text, &size) || size > SPKAC_MAX)
        return what == 0 ? JSValueMakeBoolean(ctx, false) : JSValueMakeUndefined(ctx);
    while (size > 0 && strchr(" \n\r\t", text[size - 1]))
        size--;
    /* Without a length OpenSSL would look for the end of a text, which these bytes have not. */
    NETSCAPE_SPKI *spki = size > 0 ? NETSCAPE_SPKI_b64_decode((const char *)text, (int)size) : NULL;
    EVP_PKEY *key = spki ? X509_PUBKEY_get(spki->spkac->pubkey) : NULL;
    JSValueRef value = JSValueMakeUndefined(ctx);
    if (what == 0)
        value = JSValueMakeBoolean(ctx, key && NETSCAPE_SPKI_verify(spki, key) > 0);
    else if (what == 1 && key)
        value = encode(ctx, key, false, "PEM", "SubjectPublicKeyInfo", &(struct protection){0});
    else if (what == 2 && spki)
        value = cn_js_uint8array(ctx, ASN1_STRING_get0_data(spki->spkac->challenge),
                                 (size_t)ASN1_STRING_length(spki->spkac->challenge));
    ERR_clear_error();
    EVP_PKEY_free(key);
    NETSCAPE_SPKI_free(spki);
    return value;
}
