/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node_dh.c - numbers for Diffie-Hellman and primes of node:crypto, and agreement with
 * elliptic curves. Numbers are big-endian bytes; the classes are in prelude/node/internal/dh.js. */
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/x509.h>
#include <string.h>

#include "base/mem.h"
#include "border/node_dh.h"
#include "crypto/crypto.h"
#include "js/native.h"
#include "js/work.h"
#include "worker/runtime.h"

#define BITS_MAX 16384
#define POINT_SIZE_MAX 512

static BIGNUM *number_arg(JSContextRef ctx, JSValueRef value)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, value, &bytes, &size) || size > BITS_MAX / 8)
        return NULL;
    return BN_bin2bn(bytes, (int)size, NULL);
}

/* At least one byte, filled up to `size` with zeros in front. */
static JSValueRef number_value(JSContextRef ctx, const BIGNUM *number, int size)
{
    int needed = BN_num_bytes(number);
    if (size < needed)
        size = needed;
    uint8_t *bytes = cn_alloc((size_t)size + 1);
    BN_bn2binpad(number, bytes, size);
    return cn_js_uint8array_take(ctx, bytes, (size_t)size);
}

/* nodeModExp(base, exponent, modulus) -> base ** exponent % modulus, as long as the modulus; null
 * if one of them is no such number. The exponent is a secret: the time does not tell it. */
static JSValueRef native_node_mod_exp(CN_JS_NATIVE_ARGS)
{
    BIGNUM *base = number_arg(ctx, cn_js_arg(0)), *exponent = number_arg(ctx, cn_js_arg(1)),
           *modulus = number_arg(ctx, cn_js_arg(2)), *result = BN_new();
    BN_CTX *bn_ctx = BN_CTX_new();
    JSValueRef value = JSValueMakeNull(ctx);
    if (base && exponent && modulus && BN_is_odd(modulus) && !BN_is_one(modulus)) {
        BN_set_flags(exponent, BN_FLG_CONSTTIME);
        if (BN_mod_exp(result, base, exponent, modulus, bn_ctx))
            value = number_value(ctx, result, BN_num_bytes(modulus));
    }
    ERR_clear_error();
    BN_CTX_free(bn_ctx);
    BN_free(base);
    BN_clear_free(exponent);
    BN_free(modulus);
    BN_clear_free(result);
    return value;
}

/* nodeDhGroup(bits) -> the prime of that size of RFC 2409 and RFC 3526, or null */
static JSValueRef native_node_dh_group(CN_JS_NATIVE_ARGS)
{
    static const struct {
        int bits;
        BIGNUM *(*prime)(BIGNUM *);
    } groups[] = {{768, BN_get_rfc2409_prime_768},   {1024, BN_get_rfc2409_prime_1024},
                  {1536, BN_get_rfc3526_prime_1536}, {2048, BN_get_rfc3526_prime_2048},
                  {3072, BN_get_rfc3526_prime_3072}, {4096, BN_get_rfc3526_prime_4096},
                  {6144, BN_get_rfc3526_prime_6144}, {8192, BN_get_rfc3526_prime_8192}};
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (cn_js_to_number(ctx, cn_js_arg(0)) != groups[i].bits)
            continue;
        BIGNUM *prime = groups[i].prime(NULL);
        JSValueRef value = number_value(ctx, prime, 0);
        BN_free(prime);
        return value;
    }
    return JSValueMakeNull(ctx);
}

/* Finding a prime, or testing a number: off the lane, or at once. */
struct prime_work {
    struct cn_js_work work; /* first */
    BIGNUM *number;         /* to test; NULL: one is to be found */
    BIGNUM *add, *rem;      /* what the prime is to be like, or NULL */
    int bits, checks, result;
    bool safe;
    BIGNUM *found;
};

static void prime_run(struct cn_js_work *work)
{
    struct prime_work *p = (struct prime_work *)work;
    BN_CTX *bn_ctx = BN_CTX_new();
    if (p->number) {
        p->result = BN_check_prime(p->number, bn_ctx, NULL);
    } else {
        p->found = BN_new();
        p->result = BN_generate_prime_ex2(p->found, p->bits, p->safe, p->add, p->rem, NULL, bn_ctx);
    }
    ERR_clear_error();
    BN_CTX_free(bn_ctx);
}

static JSValueRef prime_finish(struct cn_js_work *work, JSContextRef ctx, JSValueRef *exception)
{
    struct prime_work *p = (struct prime_work *)work;
    JSValueRef value = NULL;
    if (ctx && p->number)
        value = JSValueMakeBoolean(ctx, p->result == 1);
    else if (ctx && p->result == 1)
        value = number_value(ctx, p->found, 0);
    else if (ctx)
        value = cn_js_throw(ctx, exception, CN_JS_ERROR, "There is no such prime");
    BN_free(p->number);
    BN_free(p->add);
    BN_free(p->rem);
    BN_clear_free(p->found);
    return value;
}

static JSValueRef prime_start(JSContextRef ctx, struct prime_work *p, bool background,
                              JSValueRef *exception)
{
    p->work.run = prime_run;
    p->work.finish = prime_finish;
    p->work.slow =
        (p->number ? BN_num_bits(p->number) : p->bits) > CN_CRYPTO_PRIME_FAST_BITS || p->safe;
    if (background)
        return cn_js_work_start(cn_js_context_of(ctx), cn_runtime_of(ctx)->loop, &p->work);
    prime_run(&p->work);
    JSValueRef value = prime_finish(&p->work, ctx, exception);
    cn_free(p);
    return value;
}

/* nodePrime(background, bits, safe, add, rem) -> bytes, or a promise of them */
static JSValueRef native_node_prime(CN_JS_NATIVE_ARGS)
{
    double bits = cn_js_to_number(ctx, cn_js_arg(1));
    if (!(bits >= 1 && bits <= BITS_MAX))
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "invalid bits");
    struct prime_work *p = CN_NEW(struct prime_work);
    p->bits = (int)bits;
    p->safe = JSValueToBoolean(ctx, cn_js_arg(2));
    p->add = number_arg(ctx, cn_js_arg(3));
    p->rem = number_arg(ctx, cn_js_arg(4));
    return prime_start(ctx, p, JSValueToBoolean(ctx, cn_js_arg(0)), exception);
}

/* nodeIsPrime(background, number) -> boolean, or a promise of it */
static JSValueRef native_node_is_prime(CN_JS_NATIVE_ARGS)
{
    BIGNUM *number = number_arg(ctx, cn_js_arg(1));
    if (!number)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "The number is too large");
    struct prime_work *p = CN_NEW(struct prime_work);
    p->number = number;
    return prime_start(ctx, p, JSValueToBoolean(ctx, cn_js_arg(0)), exception);
}

/* --- elliptic curves ------------------------------------------------------------------------- */

static EC_GROUP *group_arg(JSContextRef ctx, JSValueRef value)
{
    char *name = cn_js_to_text(ctx, value, NULL);
    int nid = OBJ_txt2nid(name);
    EC_GROUP *group = nid == NID_undef ? NULL : EC_GROUP_new_by_curve_name(nid);
    cn_free(name);
    return group;
}

static EC_POINT *point_arg(JSContextRef ctx, const EC_GROUP *group, JSValueRef value)
{
    uint8_t *bytes;
    size_t size;
    EC_POINT *point = EC_POINT_new(group);
    if (cn_js_bytes(ctx, value, &bytes, &size) && size > 0 && size <= POINT_SIZE_MAX &&
        EC_POINT_oct2point(group, point, bytes, size, NULL) == 1 &&
        !EC_POINT_is_at_infinity(group, point))
        return point;
    EC_POINT_free(point);
    return NULL;
}

static JSValueRef point_value(JSContextRef ctx, const EC_GROUP *group, const EC_POINT *point,
                              int form)
{
    uint8_t bytes[POINT_SIZE_MAX];
    size_t size =
        EC_POINT_point2oct(group, point, (point_conversion_form_t)form, bytes, sizeof(bytes), NULL);
    return size ? cn_js_uint8array(ctx, bytes, size) : JSValueMakeNull(ctx);
}

/* nodeEcPoint(curve, point, form) -> the point in another form (2: compressed, 4: not, 6: hybrid);
 * null if it is none of the curve */
static JSValueRef native_node_ec_point(CN_JS_NATIVE_ARGS)
{
    JSValueRef value = JSValueMakeNull(ctx);
    EC_GROUP *group = group_arg(ctx, cn_js_arg(0));
    EC_POINT *point = group ? point_arg(ctx, group, cn_js_arg(1)) : NULL;
    if (point)
        value = point_value(ctx, group, point, cn_js_to_int32(ctx, cn_js_arg(2)));
    ERR_clear_error();
    EC_POINT_free(point);
    EC_GROUP_free(group);
    return value;
}

/* nodeEcMultiply(curve, secret, point | undefined) -> without a point, [secret, public point], the
 * secret being made if it is undefined; with one, the x coordinate of the product. undefined: no
 * such curve; null: the numbers are not of it */
static JSValueRef native_node_ec_multiply(CN_JS_NATIVE_ARGS)
{
    EC_GROUP *group = group_arg(ctx, cn_js_arg(0));
    ERR_clear_error();
    if (!group)
        return JSValueMakeUndefined(ctx);
    BN_CTX *bn_ctx = BN_CTX_new();
    const BIGNUM *order = EC_GROUP_get0_order(group);
    BIGNUM *secret = number_arg(ctx, cn_js_arg(1)), *x = BN_new();
    EC_POINT *result = EC_POINT_new(group), *other = NULL;
    JSValueRef value = JSValueMakeNull(ctx);
    if (JSValueIsUndefined(ctx, cn_js_arg(1))) {
        secret = BN_new();
        do {
            if (!BN_priv_rand_range(secret, order))
                goto out;
        } while (BN_is_zero(secret));
    }
    if (!secret || BN_is_zero(secret) || BN_cmp(secret, order) >= 0)
        goto out;
    if (JSValueIsUndefined(ctx, cn_js_arg(2))) {
        if (EC_POINT_mul(group, result, secret, NULL, NULL, bn_ctx) != 1)
            goto out;
        JSValueRef pair[2] = {number_value(ctx, secret, BN_num_bytes(order)),
                              point_value(ctx, group, result, POINT_CONVERSION_UNCOMPRESSED)};
        value = JSObjectMakeArray(ctx, 2, pair, exception);
        goto out;
    }
    other = point_arg(ctx, group, cn_js_arg(2));
    if (other && EC_POINT_mul(group, result, NULL, other, secret, bn_ctx) == 1 &&
        EC_POINT_get_affine_coordinates(group, result, x, NULL, bn_ctx) == 1)
        value = number_value(ctx, x, (EC_GROUP_get_degree(group) + 7) / 8);
out:
    ERR_clear_error();
    EC_POINT_free(other);
    EC_POINT_free(result);
    BN_clear_free(secret);
    BN_clear_free(x);
    BN_CTX_free(bn_ctx);
    EC_GROUP_free(group);
    return value;
}

/* nodeAgree(private DER, public DER) -> the shared secret, or null */
static JSValueRef native_node_agree(CN_JS_NATIVE_ARGS)
{
    uint8_t *private_der, *public_der;
    size_t private_size, public_size, size = 0;
    if (!cn_js_bytes(ctx, cn_js_arg(0), &private_der, &private_size) ||
        !cn_js_bytes(ctx, cn_js_arg(1), &public_der, &public_size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeAgree: not a buffer");
    const unsigned char *at = private_der, *public_at = public_der;
    EVP_PKEY *key = d2i_AutoPrivateKey(NULL, &at, (long)private_size);
    EVP_PKEY *peer = d2i_PUBKEY(NULL, &public_at, (long)public_size);
    EVP_PKEY_CTX *pkey_ctx = key && peer ? EVP_PKEY_CTX_new(key, NULL) : NULL;
    JSValueRef value = JSValueMakeNull(ctx);
    if (pkey_ctx && EVP_PKEY_derive_init(pkey_ctx) == 1 &&
        EVP_PKEY_derive_set_peer(pkey_ctx, peer) == 1 &&
        EVP_PKEY_derive(pkey_ctx, NULL, &size) == 1) {
        uint8_t *secret = cn_alloc(size + 1);
        if (EVP_PKEY_derive(pkey_ctx, secret, &size) == 1)
            value = cn_js_uint8array_take(ctx, secret, size);
        else
            cn_free(secret);
    }
    ERR_clear_error();
    EVP_PKEY_CTX_free(pkey_ctx);
    EVP_PKEY_free(key);
    EVP_PKEY_free(peer);
    return value;
}
