/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/compression.c - codecs as handles of the prelude.
 *
 *     codecOpen(kind, level, windowBits, memLevel, strategy, dictionary) -> handle
 *     codecRun(handle, bytes, flush, status) -> Uint8Array
 *     codecRunAsync(handle, bytes, flush, status) -> promise of the same
 *     codecClose(handle)
 *
 * `status` is a Uint32Array whose first element gets the STATUS_ bits. A run gives at most
 * OUTPUT_MAX bytes; STATUS_MORE asks for another run with no bytes.
 *
 * The asynchronous run works on the pool. A handle is used by one call at a time: the streams
 * above see to it, and a call that finds it busy throws. */
#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "border/compression.h"
#include "js/engine/alloc.h"
#include "js/handle.h"
#include "js/native.h"
#include "js/work.h"
#include "worker/runtime.h"

#define OUTPUT_MAX (256 * 1024)

enum { STATUS_MORE = 1, STATUS_ENDED = 2, STATUS_TRAILING = 4, STATUS_TRUNCATED = 8 };

struct handle {
    struct cn_js_handle base;
    atomic_int refs; /* the object's, and that of work under way */
    bool busy;       /* the lane's: work is under way */
    struct cn_js_holding holding;
    struct cn_codec codec;
};

static void handle_unref(struct handle *handle)
{
    if (atomic_fetch_sub(&handle->refs, 1) != 1)
        return;
    cn_codec_fini(&handle->codec);
    cn_js_holding_end(&handle->holding);
    cn_free(handle);
}

static void on_collected(void *data)
{
    handle_unref(data);
}

static const struct cn_js_handle_type codec_type = {
    .name = "codec", .free = on_collected, .counts = true};

static int int_arg(JSContextRef ctx, JSValueRef value, int fallback)
{
    return JSValueIsNumber(ctx, value) ? cn_js_to_int32(ctx, value) : fallback;
}

static JSValueRef native_codec_open(CN_JS_NATIVE_ARGS)
{
    int kind = int_arg(ctx, cn_js_arg(0), -1);
    if (kind < 0 || kind >= CN_CODEC_KINDS)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "codecOpen: no such kind");
    struct cn_codec_options options = {
        .level = int_arg(ctx, cn_js_arg(1), kind == CN_CODEC_BROTLI_ENCODE ? 5 : -1),
        .window_bits = int_arg(ctx, cn_js_arg(2), 0),
        .mem_level = int_arg(ctx, cn_js_arg(3), 0),
        .strategy = int_arg(ctx, cn_js_arg(4), 0),
    };
    uint8_t *dictionary = NULL;
    if (cn_js_bytes(ctx, cn_js_arg(5), &dictionary, &options.dictionary_size) &&
        options.dictionary_size > 0)
        options.dictionary = dictionary;
    struct handle *handle = CN_NEW(struct handle);
    atomic_init(&handle->refs, 1);
    cn_js_holding_begin(&handle->holding);
    options.holding = &handle->holding.base;
    struct cn_err err;
    int rc = cn_codec_init(&handle->codec, (enum cn_codec_kind)kind, &options, &err);
    if (rc < 0) {
        handle_unref(handle);
        return cn_js_throw(ctx, exception,
                           rc == CN_EINVALID || rc == CN_ENOMEM ? CN_JS_RANGE_ERROR : CN_JS_ERROR,
                           "%s", err.text);
    }
    return cn_js_handle_make(ctx, &handle->base, &codec_type, 256 * 1024);
}

/* The arguments of both runs. */
struct run_args {
    struct handle *handle; /* NULL: they are not what they should be, and that is thrown */
    uint8_t *bytes;
    size_t size;
    enum cn_codec_flush flush;
};

static struct run_args run_arguments(JSContextRef ctx, size_t argc, const JSValueRef argv[],
                                     JSValueRef *exception)
{
    struct run_args args = {.handle = cn_js_handle_find(ctx, cn_js_arg(0), &codec_type)};
    if (!args.handle) {
        cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "codecRun: not a codec");
        return args;
    }
    if (args.handle->busy) {
        cn_js_throw(ctx, exception, CN_JS_ERROR, "codecRun: a run is under way");
        args.handle = NULL;
        return args;
    }
    (void)cn_js_bytes(ctx, cn_js_arg(1), &args.bytes, &args.size); /* anything else is no input */
    int mode = int_arg(ctx, cn_js_arg(2), CN_CODEC_RUN);
    args.flush = mode == CN_CODEC_FLUSH ? CN_CODEC_FLUSH
                 : mode == CN_CODEC_END ? CN_CODEC_END
                                        : CN_CODEC_RUN;
    return args;
}

static void set_status(JSContextRef ctx, JSValueRef array, const struct cn_codec *codec,
                       enum cn_codec_flush flush)
{
    uint32_t bits = 0;
    if (codec->more)
        bits |= STATUS_MORE;
    if (codec->ended)
        bits |= STATUS_ENDED;
    if (codec->trailing)
        bits |= STATUS_TRAILING;
    if (flush == CN_CODEC_END && !codec->more && cn_codec_truncated(codec))
        bits |= STATUS_TRUNCATED;
    uint8_t *bytes;
    size_t size;
    if (cn_js_bytes(ctx, array, &bytes, &size) && size >= sizeof(bits))
        memcpy(bytes, &bits, sizeof(bits));
}

static JSValueRef output_value(JSContextRef ctx, struct cn_buf *out)
{
    size_t size = out->size;
    uint8_t *bytes = cn_buf_take(out);
    if (size == 0) {
        cn_free(bytes);
        return JSObjectMakeTypedArray(ctx, kJSTypedArrayTypeUint8Array, 0, NULL);
    }
    return cn_js_uint8array_take(ctx, cn_realloc(bytes, size), size);
}

static JSValueRef native_codec_run(CN_JS_NATIVE_ARGS)
{
    struct run_args args = run_arguments(ctx, argc, argv, exception);
    if (!args.handle)
        return JSValueMakeUndefined(ctx);
    struct cn_buf out = {0};
    struct cn_err err;
    if (cn_codec_run(&args.handle->codec, args.bytes, args.size, args.flush, OUTPUT_MAX, &out,
                     &err) < 0) {
        cn_buf_fini(&out);
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", err.text);
    }
    set_status(ctx, cn_js_arg(3), &args.handle->codec, args.flush);
    return output_value(ctx, &out);
}

struct run_work {
    struct cn_js_work work; /* first: see work.h */
    struct handle *handle;
    struct cn_js_pin status;
    enum cn_codec_flush flush;
    struct cn_buf out;
    struct cn_err err;
    int rc;
};

static void on_run(struct cn_js_work *work)
{
    struct run_work *run = (struct run_work *)work;
    run->rc = cn_codec_step(&run->handle->codec, run->flush, OUTPUT_MAX, &run->out, &run->err);
}

static JSValueRef on_finish(struct cn_js_work *work, JSContextRef ctx, JSValueRef *exception)
{
    struct run_work *run = (struct run_work *)work;
    run->handle->busy = false;
    JSValueRef value = NULL;
    if (ctx && run->rc < 0) {
        value = cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", run->err.text);
    } else if (ctx) {
        set_status(ctx, run->status.value, &run->handle->codec, run->flush);
        value = output_value(ctx, &run->out);
    }
    cn_buf_fini(&run->out);
    cn_js_pin_clear(&run->status);
    handle_unref(run->handle);
    return value;
}

static JSValueRef native_codec_run_async(CN_JS_NATIVE_ARGS)
{
    struct run_args args = run_arguments(ctx, argc, argv, exception);
    if (!args.handle)
        return JSValueMakeUndefined(ctx);
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    cn_codec_feed(&args.handle->codec, args.bytes, args.size);
    struct run_work *run = CN_NEW(struct run_work);
    run->work.run = on_run;
    run->work.finish = on_finish;
    run->handle = args.handle;
    run->flush = args.flush;
    run->work.given = args.size;
    run->work.made = OUTPUT_MAX;
    cn_js_pin_set(&run->status, runtime->context, cn_js_arg(3));
    atomic_fetch_add(&args.handle->refs, 1);
    args.handle->busy = true;
    return cn_js_work_start(runtime->context, runtime->loop, &run->work);
}

static JSValueRef native_codec_close(CN_JS_NATIVE_ARGS)
{
    struct handle *handle = cn_js_handle_find(ctx, cn_js_arg(0), &codec_type);
    if (handle && !handle->busy)
        cn_codec_fini(&handle->codec);
    return JSValueMakeUndefined(ctx);
}
