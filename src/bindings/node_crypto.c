/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node_crypto.c - what node:crypto needs beyond Web Crypto: hashes and ciphers by name,
 * fed piece by piece, and key derivations (crypto/hashing.h, crypto/ciphering.h, crypto/derive.h).
 *
 * A running hash or cipher is a handle. Failures that depend on the data (a wrong tag, bad padding)
 * are answers, not exceptions: a string says why. */
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "border/node_crypto.h"
#include "crypto/ciphering.h"
#include "crypto/derive.h"
#include "crypto/hashing.h"
#include "js/handle.h"
#include "js/native.h"
#include "js/work.h"
#include "worker/runtime.h"

#define UPDATE_MAX ((size_t)INT_MAX / 2)

struct hash_handle {
    struct cn_js_handle base;
    struct cn_hashing *hashing;
};

struct cipher_handle {
    struct cn_js_handle base;
    struct cn_ciphering *ciphering;
};

static void hash_free(void *data)
{
    struct hash_handle *handle = data;
    cn_hashing_free(handle->hashing);
    cn_free(handle);
}

static void cipher_free(void *data)
{
    struct cipher_handle *handle = data;
    cn_ciphering_free(handle->ciphering);
    cn_free(handle);
}

static const struct cn_js_handle_type hash_type = {.name = "hash", .free = hash_free};
static const struct cn_js_handle_type cipher_type = {.name = "cipher", .free = cipher_free};

/* The bytes of an argument. */
static bool bytes_arg(JSContextRef ctx, JSValueRef value, struct cn_bytes *bytes)
{
    uint8_t *data;
    size_t size;
    if (!cn_js_bytes(ctx, value, &data, &size) || size > UPDATE_MAX)
        return false;
    *bytes = (struct cn_bytes){data, size};
    return true;
}

static JSValueRef hash_value(JSContextRef ctx, struct cn_hashing *hashing)
{
    struct hash_handle *handle = CN_NEW(struct hash_handle);
    handle->hashing = hashing;
    return cn_js_handle_make(ctx, &handle->base, &hash_type, 512);
}

static struct cn_hashing *hash_arg(JSContextRef ctx, JSValueRef value)
{
    struct hash_handle *handle = cn_js_handle_find(ctx, value, &hash_type);
    return handle ? handle->hashing : NULL;
}

static struct cn_ciphering *cipher_arg(JSContextRef ctx, JSValueRef value)
{
    struct cipher_handle *handle = cn_js_handle_find(ctx, value, &cipher_type);
    return handle ? handle->ciphering : NULL;
}

/* nodeHash(name, hmacKey | undefined) -> state, or null if there is no such hash */
static JSValueRef native_node_hash(CN_JS_NATIVE_ARGS)
{
    char *name = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    struct cn_bytes key;
    bool is_hmac = bytes_arg(ctx, cn_js_arg(1), &key);
    struct cn_hashing *hashing = cn_hashing_new(name, is_hmac ? &key : NULL);
    cn_free(name);
    return hashing ? hash_value(ctx, hashing) : JSValueMakeNull(ctx);
}

/* nodeHashUpdate(state, bytes) */
static JSValueRef native_node_hash_update(CN_JS_NATIVE_ARGS)
{
    struct cn_hashing *hashing = hash_arg(ctx, cn_js_arg(0));
    struct cn_bytes bytes;
    if (!hashing || !bytes_arg(ctx, cn_js_arg(1), &bytes))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeHashUpdate: wrong arguments");
    if (cn_hashing_update(hashing, bytes, NULL) < 0)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "The hash failed");
    return JSValueMakeUndefined(ctx);
}

/* nodeHashFinal(state, length | 0) -> bytes; a length only for hashes that have any (SHAKE) */
static JSValueRef native_node_hash_final(CN_JS_NATIVE_ARGS)
{
    struct cn_hashing *hashing = hash_arg(ctx, cn_js_arg(0));
    double wanted = cn_js_to_number(ctx, cn_js_arg(1));
    if (!hashing || !(wanted >= 0 && wanted <= CN_CRYPTO_DERIVED_MAX))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeHashFinal: wrong arguments");
    struct cn_buf out = {0};
    int rc = cn_hashing_finish(hashing, (size_t)wanted, &out, NULL);
    if (rc == 0)
        return cn_js_uint8array_take_buf(ctx, &out);
    cn_buf_fini(&out);
    return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s",
                       rc == CN_EUNSUPPORTED ? "Unsupported state or length" : "The hash failed");
}

/* nodeHashCopy(state) -> state */
static JSValueRef native_node_hash_copy(CN_JS_NATIVE_ARGS)
{
    struct cn_hashing *hashing = hash_arg(ctx, cn_js_arg(0));
    if (!hashing)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeHashCopy: not a hash");
    struct cn_hashing *copy = cn_hashing_copy(hashing);
    if (!copy)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "Digest already called");
    return hash_value(ctx, copy);
}

/* nodeCipherInfo(name) -> [key length, iv length, block size, is AEAD], or null */
static JSValueRef native_node_cipher_info(CN_JS_NATIVE_ARGS)
{
    char *name = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    struct cn_ciphering_info info;
    bool found = cn_ciphering_find(name, &info);
    cn_free(name);
    if (!found)
        return JSValueMakeNull(ctx);
    JSValueRef items[4] = {
        JSValueMakeNumber(ctx, (double)info.key_size),
        JSValueMakeNumber(ctx, (double)info.iv_size),
        JSValueMakeNumber(ctx, (double)info.block_size),
        JSValueMakeBoolean(ctx, info.is_aead),
    };
    return JSObjectMakeArray(ctx, 4, items, exception);
}

/* nodeCipher(name, encrypts, key, iv, padding) -> state, or a string that says what is wrong */
static JSValueRef native_node_cipher(CN_JS_NATIVE_ARGS)
{
    struct cn_ciphering_params params = {.encrypts = JSValueToBoolean(ctx, cn_js_arg(1)),
                                         .pads = JSValueToBoolean(ctx, cn_js_arg(4))};
    char *name = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    params.name = name;
    if (!bytes_arg(ctx, cn_js_arg(2), &params.key) || !bytes_arg(ctx, cn_js_arg(3), &params.iv)) {
        cn_free(name);
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeCipher: not a buffer");
    }
    struct cipher_handle *handle = CN_NEW(struct cipher_handle);
    struct cn_err err;
    int rc = cn_ciphering_new(&params, &handle->ciphering, &err);
    cn_free(name);
    if (rc == 0)
        return cn_js_handle_make(ctx, &handle->base, &cipher_type, 1024);
    cn_free(handle);
    return cn_js_text_z(ctx, err.text);
}

/* nodeCipherUpdate(state, bytes, isAdditionalData) -> bytes (none for additional data) */
static JSValueRef native_node_cipher_update(CN_JS_NATIVE_ARGS)
{
    struct cn_ciphering *ciphering = cipher_arg(ctx, cn_js_arg(0));
    struct cn_bytes bytes;
    if (!ciphering || !bytes_arg(ctx, cn_js_arg(1), &bytes))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeCipherUpdate: wrong arguments");
    bool covers = JSValueToBoolean(ctx, cn_js_arg(2));
    struct cn_buf out = {0};
    if ((covers ? cn_ciphering_cover(ciphering, bytes, NULL)
                : cn_ciphering_update(ciphering, bytes, &out, NULL)) < 0) {
        cn_buf_fini(&out);
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "Trying to add data in unsupported state");
    }
    return covers ? JSValueMakeUndefined(ctx) : cn_js_uint8array_take_buf(ctx, &out);
}

/* nodeCipherFinal(state) -> bytes, or a string that says why it failed */
static JSValueRef native_node_cipher_final(CN_JS_NATIVE_ARGS)
{
    struct cn_ciphering *ciphering = cipher_arg(ctx, cn_js_arg(0));
    if (!ciphering)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeCipherFinal: wrong arguments");
    struct cn_buf out = {0};
    struct cn_err err;
    if (cn_ciphering_finish(ciphering, &out, &err) < 0)
        return cn_js_text_z(ctx, err.text);
    return cn_js_uint8array_take_buf(ctx, &out);
}

/* nodeCipherTag(state, tag | length): sets the tag to verify, or gives the one that was made */
static JSValueRef native_node_cipher_tag(CN_JS_NATIVE_ARGS)
{
    struct cn_ciphering *ciphering = cipher_arg(ctx, cn_js_arg(0));
    if (!ciphering)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeCipherTag: wrong arguments");
    struct cn_bytes tag;
    if (bytes_arg(ctx, cn_js_arg(1), &tag)) {
        if (cn_ciphering_set_tag(ciphering, tag, NULL) < 0)
            return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR,
                               "Invalid authentication tag length: %zu", tag.size);
        return JSValueMakeUndefined(ctx);
    }
    double length = cn_js_to_number(ctx, cn_js_arg(1));
    struct cn_buf out = {0};
    if (!(length >= 0 && length <= CN_CIPHERING_TAG_MAX) ||
        cn_ciphering_get_tag(ciphering, (size_t)length, &out, NULL) < 0)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "Invalid state for operation getAuthTag");
    return cn_js_uint8array_take_buf(ctx, &out);
}

/* Derivations: off the lane, or at once. */

struct derivation {
    struct cn_js_work work; /* first */
    struct cn_crypto_derivation asked;
    char *hash; /* owned, as are these: what `asked` points to */
    uint8_t *password, *salt;
    struct cn_buf out;
    int rc;
};

static void derivation_run(struct cn_js_work *work)
{
    struct derivation *d = (struct derivation *)work;
    d->rc = cn_crypto_derive(&d->asked, &d->out, NULL);
}

static JSValueRef derivation_finish(struct cn_js_work *work, JSContextRef ctx,
                                    JSValueRef *exception)
{
    struct derivation *d = (struct derivation *)work;
    cn_crypto_wipe(d->password, d->asked.password.size);
    cn_free(d->password);
    cn_free(d->salt);
    cn_free(d->hash);
    if (ctx && d->rc == 0)
        return cn_js_uint8array_take_buf(ctx, &d->out);
    cn_buf_fini(&d->out);
    return ctx ? cn_js_throw(ctx, exception, CN_JS_ERROR, "Invalid scrypt params") : NULL;
}

/* nodeDerive(background, hash | null, password, salt, size, cost, r, p, memory) -> bytes or a
 * promise of them; with a hash PBKDF2 with `cost` iterations, otherwise scrypt */
static JSValueRef native_node_derive(CN_JS_NATIVE_ARGS)
{
    double numbers[5];
    for (size_t i = 0; i < 5; i++) {
        numbers[i] = cn_js_to_number(ctx, cn_js_arg(4 + i));
        if (!(numbers[i] >= 0 && numbers[i] <= 9007199254740992.0))
            return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "nodeDerive: wrong number");
    }
    char *hash = JSValueIsNull(ctx, cn_js_arg(1)) ? NULL : cn_js_to_text(ctx, cn_js_arg(1), NULL);
    if (hash && (!cn_crypto_derive_knows(hash) || numbers[1] < 1 || numbers[1] > INT_MAX)) {
        cn_free(hash);
        return JSValueMakeNull(ctx);
    }
    struct cn_bytes password, salt;
    if (numbers[0] > CN_CRYPTO_DERIVED_MAX || !bytes_arg(ctx, cn_js_arg(2), &password) ||
        !bytes_arg(ctx, cn_js_arg(3), &salt)) {
        cn_free(hash);
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeDerive: wrong arguments");
    }
    struct derivation *d = CN_NEW(struct derivation);
    d->work.run = derivation_run;
    d->work.finish = derivation_finish;
    d->hash = hash;
    d->password = cn_memdup(password.data, password.size);
    d->salt = cn_memdup(salt.data, salt.size);
    d->asked = (struct cn_crypto_derivation){.hash = hash,
                                             .password = {d->password, password.size},
                                             .salt = {d->salt, salt.size},
                                             .size = (size_t)numbers[0],
                                             .cost = (uint64_t)numbers[1],
                                             .block_size = (uint64_t)numbers[2],
                                             .parallelization = (uint64_t)numbers[3],
                                             .memory_max = (uint64_t)numbers[4]};
    d->work.given = password.size + salt.size;
    d->work.made = d->asked.size;
    d->work.slow = hash && d->asked.cost > CN_CRYPTO_PBKDF2_FAST_ROUNDS;
    if (JSValueToBoolean(ctx, cn_js_arg(0)))
        return cn_js_work_start(cn_js_context_of(ctx), cn_runtime_of(ctx)->loop, &d->work);
    derivation_run(&d->work);
    JSValueRef value = derivation_finish(&d->work, ctx, exception);
    cn_free(d);
    return value;
}

/* nodeCryptoNames(ciphers) -> names of hashes or ciphers, separated by blanks */
static JSValueRef native_node_crypto_names(CN_JS_NATIVE_ARGS)
{
    struct cn_buf names = {0};
    if (JSValueToBoolean(ctx, cn_js_arg(0)))
        cn_ciphering_names(&names);
    else
        cn_hashing_names(&names);
    JSValueRef value = cn_js_text(ctx, cn_buf_text(&names), names.size);
    cn_buf_fini(&names);
    return value;
}
