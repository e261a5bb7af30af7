/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node_dh.c - numbers for Diffie-Hellman and primes of node:crypto, and agreement with
 * elliptic curves (crypto/number.h, crypto/curve.h, crypto/anykey.h). Numbers are big-endian bytes;
 * the classes are in prelude/node/internal/dh.js. */
#include "base/mem.h"
#include "border/node_dh.h"
#include "crypto/anykey.h"
#include "crypto/curve.h"
#include "crypto/number.h"
#include "js/native.h"
#include "js/work.h"
#include "worker/runtime.h"

static bool bytes_arg(JSContextRef ctx, JSValueRef value, struct cn_bytes *bytes)
{
    uint8_t *data;
    size_t size;
    if (!cn_js_bytes(ctx, value, &data, &size))
        return false;
    *bytes = (struct cn_bytes){data, size};
    return true;
}

/* What was made, or null. */
static JSValueRef bytes_or_null(JSContextRef ctx, int rc, struct cn_buf *out)
{
    if (rc == 0)
        return cn_js_uint8array_take_buf(ctx, out);
    cn_buf_fini(out);
    return JSValueMakeNull(ctx);
}

/* nodeModExp(base, exponent, modulus) -> base ** exponent % modulus, as long as the modulus; null
 * if one of them is no such number */
static JSValueRef native_node_mod_exp(CN_JS_NATIVE_ARGS)
{
    struct cn_bytes base, exponent, modulus;
    struct cn_buf out = {0};
    if (!bytes_arg(ctx, cn_js_arg(0), &base) || !bytes_arg(ctx, cn_js_arg(1), &exponent) ||
        !bytes_arg(ctx, cn_js_arg(2), &modulus))
        return JSValueMakeNull(ctx);
    return bytes_or_null(ctx, cn_number_mod_exp(base, exponent, modulus, &out, NULL), &out);
}

/* nodeDhGroup(bits) -> the prime of that size of RFC 2409 and RFC 3526, or null */
static JSValueRef native_node_dh_group(CN_JS_NATIVE_ARGS)
{
    double bits = cn_js_to_number(ctx, cn_js_arg(0));
    struct cn_buf out = {0};
    if (!(bits >= 0 && bits <= CN_NUMBER_BITS_MAX) || bits != (unsigned)bits)
        return JSValueMakeNull(ctx);
    return bytes_or_null(ctx, cn_number_group((unsigned)bits, &out, NULL), &out);
}

/* Finding a prime, or testing a number: off the lane, or at once. */
struct prime_work {
    struct cn_js_work work; /* first */
    bool tests;             /* `number` is tested; else a prime is found that is like `wish` */
    struct cn_bytes number, add, rem; /* copies, owned; no data: not given */
    struct cn_number_wish wish;
    struct cn_buf found;
    int rc;
};

/* A copy of an argument; false if it is not bytes, or too many. */
static bool number_arg(JSContextRef ctx, JSValueRef value, struct cn_bytes *copy)
{
    struct cn_bytes bytes;
    if (!bytes_arg(ctx, value, &bytes) || bytes.size > CN_NUMBER_BITS_MAX / 8)
        return false;
    *copy = (struct cn_bytes){cn_memdup(bytes.data, bytes.size), bytes.size};
    return true;
}

static void prime_run(struct cn_js_work *work)
{
    struct prime_work *p = (struct prime_work *)work;
    p->wish.given_up = &work->given_up;
    p->rc = p->tests ? cn_number_is_prime(p->number, &work->given_up, NULL)
                     : cn_number_prime(&p->wish, &p->found, NULL);
}

static JSValueRef prime_finish(struct cn_js_work *work, JSContextRef ctx, JSValueRef *exception)
{
    struct prime_work *p = (struct prime_work *)work;
    JSValueRef value = NULL;
    if (ctx && p->tests)
        value = JSValueMakeBoolean(ctx, p->rc == 1);
    else if (ctx && p->rc == 0)
        value = cn_js_uint8array_take_buf(ctx, &p->found);
    else if (ctx)
        value = cn_js_throw(ctx, exception, CN_JS_ERROR, "There is no such prime");
    cn_buf_fini(&p->found);
    cn_free((void *)p->number.data);
    cn_free((void *)p->add.data);
    cn_free((void *)p->rem.data);
    return value;
}

static JSValueRef prime_start(JSContextRef ctx, struct prime_work *p, bool background,
                              JSValueRef *exception)
{
    p->work.run = prime_run;
    p->work.finish = prime_finish;
    size_t bits = p->tests ? cn_number_bits(p->number) : p->wish.bits;
    p->work.slow = bits > CN_CRYPTO_PRIME_FAST_BITS || p->wish.safe;
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
    if (!(bits >= 1 && bits <= CN_NUMBER_BITS_MAX))
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "invalid bits");
    struct prime_work *p = CN_NEW(struct prime_work);
    p->wish.bits = (unsigned)bits;
    p->wish.safe = JSValueToBoolean(ctx, cn_js_arg(2));
    if (number_arg(ctx, cn_js_arg(3), &p->add))
        p->wish.add = &p->add;
    if (number_arg(ctx, cn_js_arg(4), &p->rem))
        p->wish.rem = &p->rem;
    return prime_start(ctx, p, JSValueToBoolean(ctx, cn_js_arg(0)), exception);
}

/* nodeIsPrime(background, number) -> boolean, or a promise of it */
static JSValueRef native_node_is_prime(CN_JS_NATIVE_ARGS)
{
    struct cn_bytes number;
    if (!number_arg(ctx, cn_js_arg(1), &number))
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "The number is too large");
    struct prime_work *p = CN_NEW(struct prime_work);
    p->tests = true;
    p->number = number;
    return prime_start(ctx, p, JSValueToBoolean(ctx, cn_js_arg(0)), exception);
}

/* --- elliptic curves ------------------------------------------------------------------------- */

/* nodeEcPoint(curve, point, form) -> the point in another form (2: compressed, 4: not, 6: hybrid);
 * null if it is none of the curve */
static JSValueRef native_node_ec_point(CN_JS_NATIVE_ARGS)
{
    struct cn_bytes point;
    struct cn_buf out = {0};
    char *curve = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    uint32_t form = cn_js_to_uint32(ctx, cn_js_arg(2));
    int rc = bytes_arg(ctx, cn_js_arg(1), &point) ? cn_curve_point(curve, point, form, &out, NULL)
                                                  : CN_EINVALID;
    cn_free(curve);
    return bytes_or_null(ctx, rc, &out);
}

/* [secret, public point] */
static JSValueRef pair_value(JSContextRef ctx, const char *curve, const struct cn_bytes *secret,
                             int *rc, JSValueRef *exception)
{
    struct cn_buf out[2] = {{0}};
    JSValueRef value = NULL;
    *rc = cn_curve_pair(curve, secret, &out[0], &out[1], NULL);
    if (*rc == 0) {
        JSValueRef pair[2] = {cn_js_uint8array_take_buf(ctx, &out[0]),
                              cn_js_uint8array_take_buf(ctx, &out[1])};
        value = JSObjectMakeArray(ctx, 2, pair, exception);
    }
    cn_buf_fini(&out[0]);
    cn_buf_fini(&out[1]);
    return value;
}

/* nodeEcMultiply(curve, secret, point | undefined) -> without a point, [secret, public point], the
 * secret being made if it is undefined; with one, the x coordinate of the product. undefined: no
 * such curve; null: the numbers are not of it */
static JSValueRef native_node_ec_multiply(CN_JS_NATIVE_ARGS)
{
    struct cn_bytes secret = {0}, point = {0};
    struct cn_buf out = {0};
    bool makes = JSValueIsUndefined(ctx, cn_js_arg(1));
    int rc;
    JSValueRef value = NULL;
    char *curve = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    /* What is no buffer is empty, which is no number of any curve. */
    (void)bytes_arg(ctx, cn_js_arg(1), &secret);
    (void)bytes_arg(ctx, cn_js_arg(2), &point);
    if (JSValueIsUndefined(ctx, cn_js_arg(2)))
        value = pair_value(ctx, curve, makes ? NULL : &secret, &rc, exception);
    else
        rc = cn_curve_multiply(curve, secret, point, &out, NULL);
    cn_free(curve);
    if (rc == CN_EUNSUPPORTED)
        return JSValueMakeUndefined(ctx);
    return value ? value : bytes_or_null(ctx, rc, &out);
}

/* nodeAgree(private DER, public DER) -> the shared secret, or null */
static JSValueRef native_node_agree(CN_JS_NATIVE_ARGS)
{
    struct cn_bytes ours, theirs;
    struct cn_buf out = {0};
    if (!bytes_arg(ctx, cn_js_arg(0), &ours) || !bytes_arg(ctx, cn_js_arg(1), &theirs))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeAgree: not a buffer");
    return bytes_or_null(ctx, cn_anykey_agree(ours, theirs, &out, NULL), &out);
}
