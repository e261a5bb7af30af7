/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node_crypto.c - what node:crypto needs beyond WebCrypto: any hash and cipher of
 * OpenSSL by name, fed piece by piece, and the key derivations over them.
 *
 * A running hash or cipher is a JavaScript object that owns a struct state; its finalizer only
 * frees memory, so it may run on any thread. Failures that depend on the data (a wrong tag, bad
 * padding) are answers, not exceptions: a string says why. */
#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <string.h>

#include "base/mem.h"
#include "border/node_crypto.h"
#include "crypto/crypto.h"
#include "js/native.h"
#include "js/work.h"
#include "worker/runtime.h"

#define UPDATE_MAX ((size_t)INT_MAX / 2)
#define KEY_MAX (64u << 20) /* bytes that a derivation may give */

struct state {
    EVP_MD_CTX *hash;
    EVP_PKEY *hmac_key; /* with `hash`: an HMAC */
    EVP_CIPHER_CTX *cipher;
    bool encrypts;
};

static void state_finalize(JSObjectRef object)
{
    struct state *state = JSObjectGetPrivate(object);
    if (!state)
        return;
    EVP_MD_CTX_free(state->hash);
    EVP_PKEY_free(state->hmac_key);
    EVP_CIPHER_CTX_free(state->cipher);
    cn_free(state);
}

static JSClassRef state_class(void)
{
    static JSClassRef class;
    JSClassRef found = __atomic_load_n(&class, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    JSClassDefinition definition = kJSClassDefinitionEmpty;
    definition.className = "CryptoState";
    definition.finalize = state_finalize;
    JSClassRef made = JSClassCreate(&definition);
    if (__atomic_compare_exchange_n(&class, &found, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    JSClassRelease(made);
    return found;
}

static struct state *state_of(JSContextRef ctx, JSValueRef value)
{
    if (!JSValueIsObjectOfClass(ctx, value, state_class()))
        return NULL;
    return JSObjectGetPrivate((JSObjectRef)value);
}

static JSValueRef reason(JSContextRef ctx)
{
    unsigned long code = ERR_get_error();
    char text[256] = "the operation failed";
    const char *known = code ? ERR_reason_error_string(code) : NULL;
    if (known)
        snprintf(text, sizeof(text), "%s", known);
    ERR_clear_error();
    return cn_js_text_z(ctx, text);
}

/* The bytes of an argument; an absent one is empty. */
static bool bytes_of(JSContextRef ctx, JSValueRef value, uint8_t **bytes, size_t *size)
{
    return cn_js_bytes(ctx, value, bytes, size) && *size <= UPDATE_MAX;
}

/* nodeHash(name, hmacKey | undefined) -> state, or null if there is no such hash */
static JSValueRef native_node_hash(CN_JS_NATIVE_ARGS)
{
    char *name = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    const EVP_MD *md = EVP_get_digestbyname(name);
    cn_free(name);
    struct state *state = CN_NEW(struct state);
    state->hash = EVP_MD_CTX_new();
    bool good = md != NULL;
    uint8_t *key;
    size_t key_size;
    if (good && bytes_of(ctx, cn_js_arg(1), &key, &key_size)) {
        state->hmac_key = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, key, key_size);
        good = state->hmac_key &&
               EVP_DigestSignInit(state->hash, NULL, md, NULL, state->hmac_key) == 1;
    } else if (good) {
        good = EVP_DigestInit_ex(state->hash, md, NULL) == 1;
    }
    JSObjectRef object = JSObjectMake(ctx, state_class(), state);
    ERR_clear_error();
    return good ? object : JSValueMakeNull(ctx);
}

/* nodeHashUpdate(state, bytes) */
static JSValueRef native_node_hash_update(CN_JS_NATIVE_ARGS)
{
    struct state *state = state_of(ctx, cn_js_arg(0));
    uint8_t *bytes;
    size_t size;
    if (!state || !bytes_of(ctx, cn_js_arg(1), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeHashUpdate: wrong arguments");
    int rc = state->hmac_key ? EVP_DigestSignUpdate(state->hash, bytes, size)
                             : EVP_DigestUpdate(state->hash, bytes, size);
    if (rc != 1)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "The hash failed");
    return JSValueMakeUndefined(ctx);
}

/* nodeHashFinal(state, length | 0) -> bytes; a length only for hashes that have any (SHAKE) */
static JSValueRef native_node_hash_final(CN_JS_NATIVE_ARGS)
{
    struct state *state = state_of(ctx, cn_js_arg(0));
    double wanted = cn_js_to_number(ctx, cn_js_arg(1));
    if (!state || !(wanted >= 0 && wanted <= KEY_MAX))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeHashFinal: wrong arguments");
    if (wanted > 0 && !state->hmac_key) {
        uint8_t *out = cn_alloc((size_t)wanted);
        if (EVP_DigestFinalXOF(state->hash, out, (size_t)wanted) != 1) {
            cn_free(out);
            ERR_clear_error();
            return cn_js_throw(ctx, exception, CN_JS_ERROR, "Unsupported state or length");
        }
        return cn_js_uint8array_take(ctx, out, (size_t)wanted);
    }
    uint8_t out[EVP_MAX_MD_SIZE];
    size_t size = sizeof(out);
    unsigned size_32 = 0;
    int rc = state->hmac_key ? EVP_DigestSignFinal(state->hash, out, &size)
                             : EVP_DigestFinal_ex(state->hash, out, &size_32);
    if (rc != 1)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "The hash failed");
    return cn_js_uint8array(ctx, out, state->hmac_key ? size : size_32);
}

/* nodeHashCopy(state) -> state */
static JSValueRef native_node_hash_copy(CN_JS_NATIVE_ARGS)
{
    struct state *state = state_of(ctx, cn_js_arg(0));
    if (!state || state->hmac_key)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeHashCopy: not a hash");
    struct state *copy = CN_NEW(struct state);
    copy->hash = EVP_MD_CTX_new();
    JSObjectRef object = JSObjectMake(ctx, state_class(), copy);
    if (EVP_MD_CTX_copy_ex(copy->hash, state->hash) != 1)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "Digest already called");
    return object;
}

static int mode_of(const EVP_CIPHER *cipher)
{
    return EVP_CIPHER_get_mode(cipher);
}

/* Ciphers whose modes need calls that nodeCipher() does not make. */
static bool is_supported(const EVP_CIPHER *cipher)
{
    int mode = mode_of(cipher);
    return mode != EVP_CIPH_WRAP_MODE && mode != EVP_CIPH_XTS_MODE && mode != EVP_CIPH_CCM_MODE &&
           mode != EVP_CIPH_SIV_MODE && mode != EVP_CIPH_OCB_MODE;
}

/* nodeCipherInfo(name) -> [key length, iv length, block size, is AEAD], or null */
static JSValueRef native_node_cipher_info(CN_JS_NATIVE_ARGS)
{
    char *name = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    const EVP_CIPHER *cipher = EVP_get_cipherbyname(name);
    cn_free(name);
    if (!cipher || !is_supported(cipher))
        return JSValueMakeNull(ctx);
    JSValueRef items[4] = {
        JSValueMakeNumber(ctx, EVP_CIPHER_get_key_length(cipher)),
        JSValueMakeNumber(ctx, EVP_CIPHER_get_iv_length(cipher)),
        JSValueMakeNumber(ctx, EVP_CIPHER_get_block_size(cipher)),
        JSValueMakeBoolean(ctx, (EVP_CIPHER_get_flags(cipher) & EVP_CIPH_FLAG_AEAD_CIPHER) != 0),
    };
    return JSObjectMakeArray(ctx, 4, items, exception);
}

/* nodeCipher(name, encrypts, key, iv, padding) -> state, or a string that says what is wrong */
static JSValueRef native_node_cipher(CN_JS_NATIVE_ARGS)
{
    char *name = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    const EVP_CIPHER *cipher = EVP_get_cipherbyname(name);
    cn_free(name);
    uint8_t *key, *iv;
    size_t key_size, iv_size;
    if (!cipher || !is_supported(cipher))
        return cn_js_text_z(ctx, "Unknown cipher");
    if (!bytes_of(ctx, cn_js_arg(2), &key, &key_size) ||
        !bytes_of(ctx, cn_js_arg(3), &iv, &iv_size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeCipher: not a buffer");
    if (key_size != (size_t)EVP_CIPHER_get_key_length(cipher))
        return cn_js_text_z(ctx, "Invalid key length");
    bool aead = (EVP_CIPHER_get_flags(cipher) & EVP_CIPH_FLAG_AEAD_CIPHER) != 0;
    if (aead ? iv_size == 0 || iv_size > 1024 : iv_size != (size_t)EVP_CIPHER_get_iv_length(cipher))
        return cn_js_text_z(ctx, "Invalid initialization vector");
    struct state *state = CN_NEW(struct state);
    state->cipher = EVP_CIPHER_CTX_new();
    state->encrypts = JSValueToBoolean(ctx, cn_js_arg(1));
    JSObjectRef object = JSObjectMake(ctx, state_class(), state);
    bool good = EVP_CipherInit_ex(state->cipher, cipher, NULL, NULL, NULL, state->encrypts) == 1 &&
                (!aead || EVP_CIPHER_CTX_ctrl(state->cipher, EVP_CTRL_AEAD_SET_IVLEN, (int)iv_size,
                                              NULL) == 1) &&
                EVP_CipherInit_ex(state->cipher, NULL, NULL, key, iv, state->encrypts) == 1;
    if (!good)
        return reason(ctx);
    EVP_CIPHER_CTX_set_padding(state->cipher, JSValueToBoolean(ctx, cn_js_arg(4)));
    return object;
}

/* nodeCipherUpdate(state, bytes, isAdditionalData) -> bytes (none for additional data) */
static JSValueRef native_node_cipher_update(CN_JS_NATIVE_ARGS)
{
    struct state *state = state_of(ctx, cn_js_arg(0));
    uint8_t *bytes;
    size_t size;
    if (!state || !state->cipher || !bytes_of(ctx, cn_js_arg(1), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeCipherUpdate: wrong arguments");
    bool additional = JSValueToBoolean(ctx, cn_js_arg(2));
    uint8_t *out = additional ? NULL : cn_alloc(size + EVP_MAX_BLOCK_LENGTH);
    int made = 0;
    if (EVP_CipherUpdate(state->cipher, out, &made, bytes, (int)size) != 1) {
        cn_free(out);
        ERR_clear_error();
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "Trying to add data in unsupported state");
    }
    return additional ? JSValueMakeUndefined(ctx) : cn_js_uint8array_take(ctx, out, (size_t)made);
}

/* nodeCipherFinal(state) -> bytes, or a string that says why it failed */
static JSValueRef native_node_cipher_final(CN_JS_NATIVE_ARGS)
{
    struct state *state = state_of(ctx, cn_js_arg(0));
    if (!state || !state->cipher)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeCipherFinal: wrong arguments");
    uint8_t out[EVP_MAX_BLOCK_LENGTH];
    int made = 0;
    if (EVP_CipherFinal_ex(state->cipher, out, &made) != 1)
        return reason(ctx);
    return cn_js_uint8array(ctx, out, (size_t)made);
}

/* nodeCipherTag(state, tag | length): sets the tag to verify, or gives the one that was made */
static JSValueRef native_node_cipher_tag(CN_JS_NATIVE_ARGS)
{
    struct state *state = state_of(ctx, cn_js_arg(0));
    if (!state || !state->cipher)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeCipherTag: wrong arguments");
    uint8_t *tag;
    size_t size;
    if (bytes_of(ctx, cn_js_arg(1), &tag, &size)) {
        if (size < 4 || size > 16 ||
            EVP_CIPHER_CTX_ctrl(state->cipher, EVP_CTRL_AEAD_SET_TAG, (int)size, tag) != 1)
            return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR,
                               "Invalid authentication tag length: %zu", size);
        return JSValueMakeUndefined(ctx);
    }
    double length = cn_js_to_number(ctx, cn_js_arg(1));
    uint8_t out[16];
    if (!(length >= 4 && length <= 16) ||
        EVP_CIPHER_CTX_ctrl(state->cipher, EVP_CTRL_AEAD_GET_TAG, (int)length, out) != 1)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "Invalid state for operation getAuthTag");
    return cn_js_uint8array(ctx, out, (size_t)length);
}

/* Derivations: off the lane, or at once. */

struct derivation {
    struct cn_js_work work; /* first */
    uint8_t *password, *salt, *out;
    size_t password_size, salt_size, out_size;
    const EVP_MD *md; /* PBKDF2; NULL: scrypt */
    uint64_t cost, block_size, parallelization, memory_max;
    bool failed;
};

static void derivation_run(struct cn_js_work *work)
{
    struct derivation *d = (struct derivation *)work;
    int rc;
    if (d->md)
        rc = PKCS5_PBKDF2_HMAC((const char *)d->password, (int)d->password_size, d->salt,
                               (int)d->salt_size, (int)d->cost, d->md, (int)d->out_size, d->out);
    else
        rc = EVP_PBE_scrypt((const char *)d->password, d->password_size, d->salt, d->salt_size,
                            d->cost, d->block_size, d->parallelization, d->memory_max, d->out,
                            d->out_size);
    d->failed = rc != 1;
    ERR_clear_error();
}

static JSValueRef derivation_finish(struct cn_js_work *work, JSContextRef ctx,
                                    JSValueRef *exception)
{
    struct derivation *d = (struct derivation *)work;
    OPENSSL_cleanse(d->password, d->password_size);
    cn_free(d->password);
    cn_free(d->salt);
    if (!ctx || d->failed) {
        cn_free(d->out);
        return ctx ? cn_js_throw(ctx, exception, CN_JS_ERROR, "Invalid scrypt params") : NULL;
    }
    return cn_js_uint8array_take(ctx, d->out, d->out_size);
}

/* nodeDerive(background, hash | null, password, salt, size, cost, r, p, memory) -> bytes or a
 * promise of them; with a hash PBKDF2 with `cost` iterations, otherwise scrypt */
static JSValueRef native_node_derive(CN_JS_NATIVE_ARGS)
{
    uint8_t *password, *salt;
    size_t password_size, salt_size;
    double numbers[5];
    for (size_t i = 0; i < 5; i++) {
        numbers[i] = cn_js_to_number(ctx, cn_js_arg(4 + i));
        if (!(numbers[i] >= 0 && numbers[i] <= 9007199254740992.0))
            return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "nodeDerive: wrong number");
    }
    const EVP_MD *md = NULL;
    if (!JSValueIsNull(ctx, cn_js_arg(1))) {
        char *name = cn_js_to_text(ctx, cn_js_arg(1), NULL);
        md = EVP_get_digestbyname(name);
        cn_free(name);
        if (!md || numbers[1] < 1 || numbers[1] > INT_MAX)
            return JSValueMakeNull(ctx);
    }
    if (numbers[0] > KEY_MAX || !bytes_of(ctx, cn_js_arg(2), &password, &password_size) ||
        !bytes_of(ctx, cn_js_arg(3), &salt, &salt_size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeDerive: wrong arguments");
    struct derivation *d = CN_NEW(struct derivation);
    d->work.run = derivation_run;
    d->work.finish = derivation_finish;
    d->password = cn_memdup(password, password_size);
    d->password_size = password_size;
    d->salt = cn_memdup(salt, salt_size);
    d->salt_size = salt_size;
    d->out_size = (size_t)numbers[0];
    d->out = cn_alloc(d->out_size + 1);
    d->md = md;
    d->cost = (uint64_t)numbers[1];
    d->work.slow = md && d->cost > CN_CRYPTO_PBKDF2_FAST_ROUNDS;
    d->block_size = (uint64_t)numbers[2];
    d->parallelization = (uint64_t)numbers[3];
    d->memory_max = (uint64_t)numbers[4];
    if (JSValueToBoolean(ctx, cn_js_arg(0)))
        return cn_js_work_start(cn_js_context_of(ctx), cn_runtime_of(ctx)->loop, &d->work);
    derivation_run(&d->work);
    JSValueRef value = derivation_finish(&d->work, ctx, exception);
    cn_free(d);
    return value;
}

static void add_name(const OBJ_NAME *name, void *data)
{
    struct cn_buf *names = data;
    if (names->size)
        cn_buf_append_byte(names, ' ');
    cn_buf_append_str(names, name->name);
}

/* nodeCryptoNames(ciphers) -> names of hashes or ciphers, separated by blanks */
static JSValueRef native_node_crypto_names(CN_JS_NATIVE_ARGS)
{
    struct cn_buf names = {0};
    OBJ_NAME_do_all_sorted(JSValueToBoolean(ctx, cn_js_arg(0)) ? OBJ_NAME_TYPE_CIPHER_METH
                                                               : OBJ_NAME_TYPE_MD_METH,
                           add_name, &names);
    JSValueRef value = cn_js_text(ctx, cn_buf_text(&names), names.size);
    cn_buf_fini(&names);
    return value;
}
