/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node_keys.c - asymmetric keys of node:crypto (crypto/anykey.h): read and written in
 * every usual form, signatures, RSA encryption.
 *
 * JavaScript keeps a key as DER (PKCS #8 or SubjectPublicKeyInfo). What the caller's data make fail
 * is answered with a string that says why. */
#include <limits.h>

#include "base/mem.h"
#include "border/node_keys.h"
#include "crypto/anykey.h"
#include "js/native.h"
#include "js/work.h"
#include "worker/runtime.h"

/* The bytes of an argument; empty if it has none. */
static struct cn_bytes bytes_arg(JSContextRef ctx, JSValueRef value)
{
    uint8_t *data = NULL;
    size_t size = 0;
    return cn_js_bytes(ctx, value, &data, &size) ? (struct cn_bytes){data, size}
                                                 : (struct cn_bytes){0};
}

static bool is_bytes(JSContextRef ctx, JSValueRef value)
{
    uint8_t *data;
    size_t size;
    return cn_js_bytes(ctx, value, &data, &size);
}

/* What was made, or why it was not. `out` is used up. */
static JSValueRef bytes_or_reason(JSContextRef ctx, int rc, struct cn_buf *out,
                                  const struct cn_err *err)
{
    if (rc < 0) {
        cn_buf_fini(out);
        return cn_js_text_z(ctx, err->text);
    }
    return cn_js_uint8array_take_buf(ctx, out);
}

/* [type, DER of the key, bits, curve], or why there is none. `key` is used up. */
static JSValueRef key_or_reason(JSContextRef ctx, int rc, struct cn_anykey *key,
                                const struct cn_err *err, JSValueRef *exception)
{
    if (rc < 0)
        return bytes_or_reason(ctx, rc, &key->der, err);
    JSValueRef items[4] = {
        cn_js_text_z(ctx, key->type),
        bytes_or_reason(ctx, 0, &key->der, err),
        JSValueMakeNumber(ctx, key->bits),
        cn_js_text_z(ctx, key->curve),
    };
    return JSObjectMakeArray(ctx, 4, items, exception);
}

/* nodeKeyRead(bytes, isPrivate, passphrase | undefined) -> [type, DER, bits, curve], or a string */
static JSValueRef native_node_key_read(CN_JS_NATIVE_ARGS)
{
    if (!is_bytes(ctx, cn_js_arg(0)))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeKeyRead: not a buffer");
    struct cn_anykey key = {0};
    struct cn_err err;
    int rc = cn_anykey_read(bytes_arg(ctx, cn_js_arg(0)), JSValueToBoolean(ctx, cn_js_arg(1)),
                            bytes_arg(ctx, cn_js_arg(2)), &key, &err);
    return key_or_reason(ctx, rc, &key, &err, exception);
}

/* nodeKeyPublic(private DER) -> [type, DER of the public key, bits, curve], or a string */
static JSValueRef native_node_key_public(CN_JS_NATIVE_ARGS)
{
    struct cn_anykey key = {0};
    struct cn_err err;
    int rc = cn_anykey_public(bytes_arg(ctx, cn_js_arg(0)), &key, &err);
    return key_or_reason(ctx, rc, &key, &err, exception);
}

/* nodeKeyWrite(DER, isPrivate, "PEM" | "DER", structure, cipher, passphrase) -> bytes, or a string;
 * without a cipher the key is not encrypted */
static JSValueRef native_node_key_write(CN_JS_NATIVE_ARGS)
{
    char *format = cn_js_to_text(ctx, cn_js_arg(2), NULL);
    char *structure = cn_js_to_text(ctx, cn_js_arg(3), NULL);
    char *cipher =
        JSValueIsString(ctx, cn_js_arg(4)) ? cn_js_to_text(ctx, cn_js_arg(4), NULL) : NULL;
    struct cn_anykey_form form = {.format = format,
                                  .structure = structure,
                                  .cipher = cipher,
                                  .passphrase = bytes_arg(ctx, cn_js_arg(5))};
    struct cn_buf out = {0};
    struct cn_err err;
    int rc = cn_anykey_write(bytes_arg(ctx, cn_js_arg(0)), JSValueToBoolean(ctx, cn_js_arg(1)),
                             &form, &out, &err);
    cn_free(cipher);
    cn_free(format);
    cn_free(structure);
    return bytes_or_reason(ctx, rc, &out, &err);
}

/* nodeSign(hash | null, DER, data, padding, salt, signature | undefined) -> signature bytes; with a
 * signature it is verified and the result is a boolean; a string says why it failed */
static JSValueRef native_node_sign(CN_JS_NATIVE_ARGS)
{
    if (!is_bytes(ctx, cn_js_arg(2)))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeSign: not a buffer");
    char *hash = JSValueIsNull(ctx, cn_js_arg(0)) ? NULL : cn_js_to_text(ctx, cn_js_arg(0), NULL);
    struct cn_anykey_way way = {.hash = hash};
    way.padding = cn_js_to_int32(ctx, cn_js_arg(3));
    way.salt = cn_js_to_int32(ctx, cn_js_arg(4));
    way.der = bytes_arg(ctx, cn_js_arg(1));
    struct cn_bytes data = bytes_arg(ctx, cn_js_arg(2));
    struct cn_buf out = {0};
    struct cn_err err;
    bool verifies = is_bytes(ctx, cn_js_arg(5));
    int rc = verifies ? cn_anykey_verify(&way, data, bytes_arg(ctx, cn_js_arg(5)), &err)
                      : cn_anykey_sign(&way, data, &out, &err);
    cn_free(hash);
    return verifies && rc >= 0 ? JSValueMakeBoolean(ctx, rc == 1)
                               : bytes_or_reason(ctx, rc, &out, &err);
}

/* nodeRsa(encrypts, DER, isPrivate, data, padding, OAEP hash) -> bytes, or a string */
static JSValueRef native_node_rsa(CN_JS_NATIVE_ARGS)
{
    if (!is_bytes(ctx, cn_js_arg(3)))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeRsa: not a buffer");
    char *hash = cn_js_to_text(ctx, cn_js_arg(5), NULL);
    struct cn_anykey_rsa way = {.encrypts = JSValueToBoolean(ctx, cn_js_arg(0)),
                                .is_private = JSValueToBoolean(ctx, cn_js_arg(2)),
                                .padding = cn_js_to_int32(ctx, cn_js_arg(4)),
                                .hash = hash};
    way.der = bytes_arg(ctx, cn_js_arg(1));
    struct cn_buf out = {0};
    struct cn_err err;
    int rc = cn_anykey_rsa(&way, bytes_arg(ctx, cn_js_arg(3)), &out, &err);
    cn_free(hash);
    return bytes_or_reason(ctx, rc, &out, &err);
}

/* Generating takes up to seconds: off the lane, or at once. */
struct generation {
    struct cn_js_work work; /* first */
    struct cn_anykey_recipe recipe;
    char *type, *curve; /* owned: what `recipe` points to */
    struct cn_anykey key;
    struct cn_err err;
    int rc;
};

static void generation_run(struct cn_js_work *work)
{
    struct generation *g = (struct generation *)work;
    g->recipe.given_up = &work->given_up;
    g->rc = cn_anykey_generate(&g->recipe, &g->key, &g->err);
}

static JSValueRef generation_finish(struct cn_js_work *work, JSContextRef ctx,
                                    JSValueRef *exception)
{
    struct generation *g = (struct generation *)work;
    cn_free(g->type);
    cn_free(g->curve);
    if (ctx && g->rc == 0)
        return key_or_reason(ctx, 0, &g->key, &g->err, exception);
    cn_buf_fini(&g->key.der);
    return ctx ? cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", g->err.text) : NULL;
}

/* nodeKeyGenerate(background, type, bits, exponent, curve) -> [type, private DER, bits, curve] or
 * a promise of it */
static JSValueRef native_node_key_generate(CN_JS_NATIVE_ARGS)
{
    double bits = cn_js_to_number(ctx, cn_js_arg(2)), exponent = cn_js_to_number(ctx, cn_js_arg(3));
    if (!(bits >= 0 && bits <= CN_ANYKEY_RSA_BITS_MAX && exponent >= 0 && exponent <= UINT_MAX))
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "Invalid RSA parameters");
    struct generation *g = CN_NEW(struct generation);
    g->work.run = generation_run;
    g->work.finish = generation_finish;
    g->type = cn_js_to_text(ctx, cn_js_arg(1), NULL);
    g->curve = cn_js_to_text(ctx, cn_js_arg(4), NULL);
    g->recipe = (struct cn_anykey_recipe){
        .type = g->type, .curve = g->curve, .bits = (unsigned)bits, .exponent = (unsigned)exponent};
    g->work.slow = bits > CN_CRYPTO_RSA_FAST_BITS;
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
    struct cn_bytes text = bytes_arg(ctx, cn_js_arg(1));
    uint32_t what = cn_js_to_uint32(ctx, cn_js_arg(0));
    if (what == 0)
        return JSValueMakeBoolean(ctx, cn_anykey_spkac_verify(text));
    struct cn_buf out = {0};
    int rc = what == 1   ? cn_anykey_spkac_key(text, &out, NULL)
             : what == 2 ? cn_anykey_spkac_challenge(text, &out, NULL)
                         : CN_EINVALID;
    if (rc == 0)
        return bytes_or_reason(ctx, rc, &out, NULL);
    cn_buf_fini(&out);
    return JSValueMakeUndefined(ctx);
}
