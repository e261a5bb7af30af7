/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/webcrypto.c - bytes between prelude/web/crypto/ and the operations of src/crypto/.
 *
 * One function does them all, so that each operation crosses the border once:
 *
 *     crypto(operation, background, n0, n1, n2, n3, ...buffers)
 *
 * The result is a Uint8Array, a boolean (verify), an array of two (generate), or a
 * string: why it failed. With `background` the buffers are copied, the work is done
 * by the thread pool, and the result comes as a promise; the prelude asks for that
 * where the work takes longer than handing it over (some 50 us). The standard wants
 * the copy: a script may change its buffer, or detach it, as soon as the call returns.
 * What a cipher works on is copied to where its result will be, and worked on there. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "border/webcrypto.h"
#include "crypto/agree.h"
#include "crypto/cipher.h"
#include "crypto/derive.h"
#include "crypto/jwk.h"
#include "crypto/rsa.h"
#include "crypto/sign.h"
#include "js/handle.h"
#include "js/native.h"
#include "js/work.h"
#include "worker/runtime.h"

#define INPUT_MAX CN_CRYPTO_PART_COUNT
#define NUMBER_MAX 4
#define KEY_SIZE_MAX 65536 /* of an RSA key in DER, with room to spare */

struct job {
    struct cn_js_work work;
    const struct operation *operation;
    uint32_t n[NUMBER_MAX];
    struct cn_bytes in[INPUT_MAX];
    uint8_t *copies; /* owned: what `in` points into, when in the background */
    struct cn_buf out[2];
    int rc; /* negative: see err */
    struct cn_err err;
};

enum result { RESULT_BYTES, RESULT_PAIR, RESULT_BOOLEAN };

struct operation {
    int (*run)(struct job *job);
    enum result result;
    int kind_at; /* which number is a kind of key, counted from 1; 0: none */
};

static int run_digest(struct job *job)
{
    return cn_crypto_digest((enum cn_crypto_hash)job->n[0], job->in[0], &job->out[0], &job->err);
}

static int run_hmac(struct job *job)
{
    return cn_crypto_hmac((enum cn_crypto_hash)job->n[0], job->in[0], job->in[1], &job->out[0],
                          &job->err);
}

static int run_hmac_verify(struct job *job)
{
    int rc = run_hmac(job);
    if (rc < 0)
        return rc;
    return cn_crypto_equal((struct cn_bytes){job->out[0].data, job->out[0].size}, job->in[2]);
}

static int run_cipher(struct job *job)
{
    struct cn_crypto_cipher_params params = {
        .iv = job->in[2], .aad = job->in[3], .tag_bits = job->n[2], .counter_bits = job->n[2]};
    return cn_crypto_cipher((enum cn_crypto_cipher)job->n[0], job->n[1] != 0, job->in[0], &params,
                            job->in[1], &job->out[0], &job->err);
}

static int run_hkdf(struct job *job)
{
    return cn_crypto_hkdf((enum cn_crypto_hash)job->n[0], job->in[0], job->in[1], job->in[2],
                          job->n[1], &job->out[0], &job->err);
}

static int run_pbkdf2(struct job *job)
{
    return cn_crypto_pbkdf2((enum cn_crypto_hash)job->n[0], job->in[0], job->in[1], job->n[2],
                            job->n[1], &job->out[0], &job->err);
}

static struct cn_crypto_way way_of(const struct job *job)
{
    return (struct cn_crypto_way){.scheme = (enum cn_crypto_scheme)job->n[0],
                                  .kind = (enum cn_crypto_kind)job->n[1],
                                  .hash = (enum cn_crypto_hash)job->n[2],
                                  .salt_size = job->n[3]};
}

static int run_sign(struct job *job)
{
    struct cn_crypto_way way = way_of(job);
    return cn_crypto_sign(&way, job->in[0], job->in[1], &job->out[0], &job->err);
}

static int run_verify(struct job *job)
{
    struct cn_crypto_way way = way_of(job);
    return cn_crypto_verify(&way, job->in[0], job->in[1], job->in[2], &job->err);
}

static int run_rsa_oaep(struct job *job)
{
    return cn_crypto_rsa_oaep(job->n[1] != 0, (enum cn_crypto_hash)job->n[0], job->in[0],
                              job->in[2], job->in[1], &job->out[0], &job->err);
}

static int run_agree(struct job *job)
{
    return cn_crypto_agree((enum cn_crypto_kind)job->n[0], job->in[0], job->in[1], &job->out[0],
                           &job->err);
}

static int run_generate(struct job *job)
{
    return cn_crypto_generate((enum cn_crypto_kind)job->n[0], job->n[1], job->in[0],
                              &job->work.given_up, &job->out[0], &job->out[1], &job->err);
}

static int run_import_pkcs8(struct job *job)
{
    return cn_crypto_import_pkcs8((enum cn_crypto_kind)job->n[0], job->in[0], &job->out[0],
                                  &job->err);
}

static int run_import_spki(struct job *job)
{
    return cn_crypto_import_spki((enum cn_crypto_kind)job->n[0], job->in[0], &job->out[0],
                                 &job->err);
}

static int run_import_raw(struct job *job)
{
    return cn_crypto_import_raw((enum cn_crypto_kind)job->n[0], job->in[0], &job->out[0],
                                &job->err);
}

static int run_export_raw(struct job *job)
{
    return cn_crypto_export_raw((enum cn_crypto_kind)job->n[0], job->in[0], &job->out[0],
                                &job->err);
}

static int run_import_parts(struct job *job)
{
    struct cn_crypto_parts parts;
    memcpy(parts.part, job->in, sizeof(parts.part));
    return cn_crypto_import_parts((enum cn_crypto_kind)job->n[0], &parts, job->n[1] != 0,
                                  &job->out[0], &job->err);
}

static int run_export_parts(struct job *job)
{
    return cn_crypto_export_parts((enum cn_crypto_kind)job->n[0], job->n[1] != 0, job->in[0],
                                  &job->out[0], &job->err);
}

/* In the order of prelude/web/crypto/native-ids.js. */
static const struct operation operations[] = {
    [OP_DIGEST] = {run_digest, RESULT_BYTES, 0},
    [OP_HMAC] = {run_hmac, RESULT_BYTES, 0},
    [OP_HMAC_VERIFY] = {run_hmac_verify, RESULT_BOOLEAN, 0},
    [OP_CIPHER] = {run_cipher, RESULT_BYTES, 0},
    [OP_HKDF] = {run_hkdf, RESULT_BYTES, 0},
    [OP_PBKDF2] = {run_pbkdf2, RESULT_BYTES, 0},
    [OP_SIGN] = {run_sign, RESULT_BYTES, 2},
    [OP_VERIFY] = {run_verify, RESULT_BOOLEAN, 2},
    [OP_RSA_OAEP] = {run_rsa_oaep, RESULT_BYTES, 0},
    [OP_AGREE] = {run_agree, RESULT_BYTES, 1},
    [OP_GENERATE] = {run_generate, RESULT_PAIR, 1},
    [OP_IMPORT_PKCS8] = {run_import_pkcs8, RESULT_BYTES, 1},
    [OP_IMPORT_SPKI] = {run_import_spki, RESULT_BYTES, 1},
    [OP_IMPORT_RAW] = {run_import_raw, RESULT_BYTES, 1},
    [OP_EXPORT_RAW] = {run_export_raw, RESULT_BYTES, 1},
    [OP_IMPORT_PARTS] = {run_import_parts, RESULT_BYTES, 1},
    [OP_EXPORT_PARTS] = {run_export_parts, RESULT_BYTES, 1},
};

/* js/work.h W1: a second of CPU time or more. */
static bool is_slow(size_t operation, const uint32_t n[])
{
    return (operation == OP_GENERATE && n[0] == CN_KEY_RSA && n[1] > CN_CRYPTO_RSA_FAST_BITS) ||
           (operation == OP_PBKDF2 && n[2] > CN_CRYPTO_PBKDF2_FAST_ROUNDS);
}

/* The job's result as a value; its buffers are used up. */
static JSValueRef job_result(struct job *job, JSContextRef ctx)
{
    if (job->rc < 0)
        return cn_js_text_z(ctx, job->err.text);
    switch (job->operation->result) {
    case RESULT_BOOLEAN:
        return JSValueMakeBoolean(ctx, job->rc > 0);
    case RESULT_BYTES:
        return cn_js_uint8array_take_buf(ctx, &job->out[0]);
    case RESULT_PAIR: {
        JSValueRef pair[2] = {cn_js_uint8array_take_buf(ctx, &job->out[0]),
                              cn_js_uint8array_take_buf(ctx, &job->out[1])};
        return JSObjectMakeArray(ctx, 2, pair, NULL);
    }
    }
    CN_UNREACHABLE();
}

/* Whether the i-th input is copied to where the result will be. */
static bool is_in_place(const struct job *job, size_t i)
{
    return job->operation->run == run_cipher && i == 1;
}

static void job_fini(struct job *job)
{
    for (size_t i = 0; i < 2; i++) {
        if (job->out[i].data)
            cn_crypto_wipe(job->out[i].data, job->out[i].capacity);
        cn_buf_fini(&job->out[i]);
    }
    /* Keys are to leave no trace; data the script has in the clear, or had. */
    for (size_t i = 0; job->copies && i < INPUT_MAX; i++) {
        if (job->in[i].size <= KEY_SIZE_MAX && !is_in_place(job, i))
            cn_crypto_wipe((void *)job->in[i].data, job->in[i].size);
    }
    cn_free(job->copies);
}

static void on_run(struct cn_js_work *work)
{
    struct job *job = CN_CONTAINER_OF(work, struct job, work);
    job->rc = job->operation->run(job);
}

static JSValueRef on_finish(struct cn_js_work *work, JSContextRef ctx, JSValueRef *exception)
{
    struct job *job = CN_CONTAINER_OF(work, struct job, work);
    JSValueRef result = ctx ? job_result(job, ctx) : NULL;
    job_fini(job);
    return result;
}

/* Moves the inputs into memory of the job's own. */
static bool inputs_copy(struct job *job)
{
    size_t size = 0;
    for (size_t i = 0; i < INPUT_MAX; i++)
        size += is_in_place(job, i) ? 0 : job->in[i].size;
    job->copies = cn_try_alloc_large(size + 1);
    if (!job->copies)
        return false;
    uint8_t *at = job->copies;
    for (size_t i = 0; i < INPUT_MAX; i++) {
        if (is_in_place(job, i)) {
            if (!cn_crypto_in_place(&job->in[i], &job->out[0]))
                return false;
            continue;
        }
        if (job->in[i].size > 0)
            memcpy(at, job->in[i].data, job->in[i].size);
        job->in[i].data = at;
        at += job->in[i].size;
    }
    return true;
}

/* crypto(operation, background, n0, n1, n2, n3, ...buffers) */
static JSValueRef native_crypto(CN_JS_NATIVE_ARGS)
{
    enum { FIRST_NUMBER = 2, FIRST_INPUT = FIRST_NUMBER + NUMBER_MAX };
    double id = cn_js_to_number(ctx, cn_js_arg(0));
    if (!(id >= 0 && id < CN_ARRAY_COUNT(operations)) || argc > FIRST_INPUT + INPUT_MAX)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "crypto: no such operation");
    struct job local = {.operation = &operations[(size_t)id]};
    for (size_t i = 0; i < NUMBER_MAX; i++) {
        double n = cn_js_to_number(ctx, cn_js_arg(FIRST_NUMBER + i));
        local.n[i] = n >= 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
    }
    int kind_at = local.operation->kind_at;
    if (kind_at && !cn_crypto_kind_known(local.n[kind_at - 1]))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "crypto: no such kind of key");
    for (size_t i = FIRST_INPUT; i < argc; i++) {
        uint8_t *bytes;
        size_t size;
        if (!cn_js_bytes(ctx, argv[i], &bytes, &size))
            return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "crypto: not a buffer");
        local.in[i - FIRST_INPUT] = (struct cn_bytes){bytes, size};
    }
    if (!JSValueToBoolean(ctx, cn_js_arg(1))) {
        local.rc = local.operation->run(&local);
        JSValueRef result = job_result(&local, ctx);
        job_fini(&local);
        return result;
    }
    if (!inputs_copy(&local)) {
        cn_free(local.copies);
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "Out of memory.");
    }
    struct job *job = cn_memdup(&local, sizeof(local));
    job->work.run = on_run;
    job->work.finish = on_finish;
    job->work.slow = is_slow((size_t)id, job->n);
    for (size_t i = 0; i < INPUT_MAX; i++)
        job->work.given += job->in[i].size;
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    return cn_js_work_start(runtime->context, runtime->loop, &job->work);
}

/* A digest that is being made. It is not in JavaScript's memory: a state that a script has made up
 * would lead the library astray. */
struct digest {
    struct cn_js_handle handle;
    uint8_t state[CN_CRYPTO_STATE_SIZE];
};
static const struct cn_js_handle_type digest_type = {.name = "digest", .free = cn_free};

static uint8_t *state_of(JSContextRef ctx, JSValueRef value)
{
    struct digest *digest = cn_js_handle_find(ctx, value, &digest_type);
    return digest ? digest->state : NULL;
}

/* digestStart(hash) -> state, digestUpdate(state, bytes), digestFinish(state) -> Uint8Array */
static JSValueRef native_digest_start(CN_JS_NATIVE_ARGS)
{
    struct digest *digest = CN_NEW(struct digest);
    struct cn_err err;
    if (cn_crypto_digest_start((enum cn_crypto_hash)cn_js_to_uint32(ctx, cn_js_arg(0)),
                               digest->state, &err) < 0) {
        cn_free(digest);
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "digestStart: bad arguments");
    }
    return cn_js_handle_make(ctx, &digest->handle, &digest_type, sizeof(*digest));
}

static JSValueRef native_digest_update(CN_JS_NATIVE_ARGS)
{
    uint8_t *state = state_of(ctx, cn_js_arg(0)), *bytes;
    size_t size;
    if (!state || !cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "digestUpdate: not a buffer");
    cn_crypto_digest_update(state, (struct cn_bytes){bytes, size});
    return JSValueMakeUndefined(ctx);
}

static JSValueRef native_digest_finish(CN_JS_NATIVE_ARGS)
{
    uint8_t *state = state_of(ctx, cn_js_arg(0));
    struct cn_buf out = {0};
    if (!state)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "digestFinish: not a state");
    cn_crypto_digest_finish(state, &out);
    return cn_js_uint8array_take_buf(ctx, &out);
}

/* timingSafeEqual(a, b) -> boolean */
static JSValueRef native_timing_safe_equal(CN_JS_NATIVE_ARGS)
{
    uint8_t *a, *b;
    size_t a_size, b_size;
    if (!cn_js_bytes(ctx, cn_js_arg(0), &a, &a_size) ||
        !cn_js_bytes(ctx, cn_js_arg(1), &b, &b_size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "timingSafeEqual: not a buffer");
    return JSValueMakeBoolean(
        ctx, cn_crypto_equal((struct cn_bytes){a, a_size}, (struct cn_bytes){b, b_size}));
}
