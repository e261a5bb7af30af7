/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node_zlib.c - steps of compressors and decompressors (codec/zstep.h) as handles.
 *
 *     zlibOpen(mode, windowBits, level, memLevel, strategy, dictionary) -> handle
 *     zlibOpenBrotli(mode, params)  zlibOpenZstd(mode, params, size)    -> handle, or undefined
 *     zlibWrite(handle, flush, input, output, state)                    -> undefined, or a failure
 *     zlibParams(handle, level, strategy)  zlibReset(handle)            -> undefined, or a failure
 *     zlibClose(handle)
 *
 * A write tells in `state`, two numbers, how much of the output and of the input is left. A failure
 * is [errno, code, message].
 *
 * N1  Bytes of JavaScript are touched during a call only.
 * N2  After zlibClose() a handle does nothing: every call on it throws. */
#include <string.h>

#include "base/mem.h"
#include "border/node_zlib.h"
#include "codec/zstep.h"
#include "js/engine/alloc.h"
#include "js/handle.h"
#include "js/native.h"

struct stream {
    struct cn_js_handle base;
    struct cn_js_holding holding;
    struct cn_zstep step;
};

static void on_collected(void *data)
{
    struct stream *s = data;
    cn_zstep_close(&s->step);
    cn_js_holding_end(&s->holding);
    cn_free(s);
}

static struct stream *stream_new(void)
{
    struct stream *s = CN_NEW(struct stream);
    cn_js_holding_begin(&s->holding);
    return s;
}

static const struct cn_js_handle_type stream_type = {
    .name = "zlib", .free = on_collected, .counts = true};

static int int_arg(JSContextRef ctx, JSValueRef value, int fallback)
{
    double number = JSValueIsNumber(ctx, value) ? cn_js_to_number(ctx, value) : fallback;
    return number >= -2147483648.0 && number <= 2147483647.0 ? (int)number : fallback;
}

static JSValueRef failure_value(JSContextRef ctx, struct cn_zstep_failure failure,
                                JSValueRef *exception)
{
    if (!failure.code)
        return JSValueMakeUndefined(ctx);
    JSValueRef values[] = {JSValueMakeNumber(ctx, failure.number), cn_js_text_z(ctx, failure.code),
                           cn_js_text_z(ctx, failure.text)};
    return JSObjectMakeArray(ctx, 3, values, exception);
}

static JSValueRef native_zlib_open(CN_JS_NATIVE_ARGS)
{
    int mode = int_arg(ctx, cn_js_arg(0), 0);
    if (mode < CN_ZSTEP_DEFLATE || mode > CN_ZSTEP_UNZIP)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "zlibOpen: no such mode");
    struct cn_zstep_options options = {.window_bits = int_arg(ctx, cn_js_arg(1), 15),
                                       .level = int_arg(ctx, cn_js_arg(2), -1),
                                       .mem_level = int_arg(ctx, cn_js_arg(3), 8),
                                       .strategy = int_arg(ctx, cn_js_arg(4), 0)};
    uint8_t *bytes;
    size_t size;
    if (cn_js_bytes(ctx, cn_js_arg(5), &bytes, &size) && size > 0 && size <= UINT32_MAX) {
        options.dictionary = bytes;
        options.dictionary_size = size;
    }
    struct stream *s = stream_new();
    const char *wrong =
        cn_zstep_open(&s->step, (enum cn_zstep_mode)mode, &options, &s->holding.base);
    if (!wrong)
        return cn_js_handle_make(ctx, &s->base, &stream_type, 256 * 1024);
    on_collected(s);
    return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", wrong);
}

/* An Int32Array or Uint32Array of parameters. */
static bool params_arg(JSContextRef ctx, JSValueRef value, int32_t *params, size_t *count)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, value, &bytes, &size))
        return false;
    size_t given = size / sizeof(int32_t);
    *count = given < *count ? given : *count;
    memcpy(params, bytes, *count * sizeof(int32_t));
    return true;
}

/* The handle, or undefined: it was not opened. */
static JSValueRef opened(JSContextRef ctx, struct stream *s, bool ok)
{
    if (ok)
        return cn_js_handle_make(ctx, &s->base, &stream_type, 1024 * 1024);
    on_collected(s);
    return JSValueMakeUndefined(ctx);
}

static JSValueRef native_zlib_open_brotli(CN_JS_NATIVE_ARGS)
{
    int32_t params[16];
    size_t count = 16;
    int mode = int_arg(ctx, cn_js_arg(0), 0);
    if ((mode != CN_ZSTEP_BROTLI_ENCODE && mode != CN_ZSTEP_BROTLI_DECODE) ||
        !params_arg(ctx, cn_js_arg(1), params, &count))
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "zlibOpenBrotli: wrong arguments");
    struct stream *s = stream_new();
    return opened(
        ctx, s,
        cn_zstep_open_brotli(&s->step, (enum cn_zstep_mode)mode, params, count, &s->holding.base));
}

/* zlibOpenZstd(mode, [number, value, number, value...], pledged size or -1) */
static JSValueRef native_zlib_open_zstd(CN_JS_NATIVE_ARGS)
{
    int32_t params[64];
    size_t count = 64;
    int mode = int_arg(ctx, cn_js_arg(0), 0);
    if ((mode != CN_ZSTEP_ZSTD_COMPRESS && mode != CN_ZSTEP_ZSTD_DECOMPRESS) ||
        !params_arg(ctx, cn_js_arg(1), params, &count))
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "zlibOpenZstd: wrong arguments");
    double pledged = cn_js_to_number(ctx, cn_js_arg(2));
    struct stream *s = stream_new();
    return opened(ctx, s,
                  cn_zstep_open_zstd(&s->step, (enum cn_zstep_mode)mode, params, count, pledged,
                                     &s->holding.base));
}

static struct cn_zstep *step_arg(JSContextRef ctx, JSValueRef value, JSValueRef *exception)
{
    struct stream *s = cn_js_handle_find(ctx, value, &stream_type);
    if (s && s->step.open)
        return &s->step;
    cn_js_throw(ctx, exception, CN_JS_ERROR, "zlib: the handle is closed");
    return NULL;
}

static JSValueRef native_zlib_write(CN_JS_NATIVE_ARGS)
{
    struct cn_zstep *step = step_arg(ctx, cn_js_arg(0), exception);
    if (!step)
        return JSValueMakeUndefined(ctx);
    struct cn_zstep_io io = {.flush = int_arg(ctx, cn_js_arg(1), 0)};
    uint8_t *in = NULL, *state;
    size_t state_size;
    (void)cn_js_bytes(ctx, cn_js_arg(2), &in, &io.in_size); /* anything else is no input */
    io.in = in;
    if (!cn_js_bytes(ctx, cn_js_arg(3), &io.out, &io.out_size) ||
        !cn_js_bytes(ctx, cn_js_arg(4), &state, &state_size) || state_size < 8 ||
        io.in_size > UINT32_MAX || io.out_size > UINT32_MAX)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "zlibWrite: wrong arguments");
    struct cn_zstep_failure failure = cn_zstep_write(step, &io);
    uint32_t left[2] = {(uint32_t)io.out_size, (uint32_t)io.in_size};
    memcpy(state, left, sizeof(left));
    return failure_value(ctx, failure, exception);
}

static JSValueRef native_zlib_params(CN_JS_NATIVE_ARGS)
{
    struct cn_zstep *step = step_arg(ctx, cn_js_arg(0), exception);
    if (!step)
        return JSValueMakeUndefined(ctx);
    int level = int_arg(ctx, cn_js_arg(1), -1), strategy = int_arg(ctx, cn_js_arg(2), 0);
    return failure_value(ctx, cn_zstep_params(step, level, strategy), exception);
}

static JSValueRef native_zlib_reset(CN_JS_NATIVE_ARGS)
{
    struct cn_zstep *step = step_arg(ctx, cn_js_arg(0), exception);
    return step ? failure_value(ctx, cn_zstep_reset(step), exception) : JSValueMakeUndefined(ctx);
}

static JSValueRef native_zlib_close(CN_JS_NATIVE_ARGS)
{
    struct stream *s = cn_js_handle_find(ctx, cn_js_arg(0), &stream_type);
    if (s)
        cn_zstep_close(&s->step);
    return JSValueMakeUndefined(ctx);
}

/* zlibCrc32(bytes, value) -> number */
static JSValueRef native_zlib_crc32(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes;
    size_t size;
    double start = cn_js_to_number(ctx, cn_js_arg(1));
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size) || !(start >= 0 && start <= UINT32_MAX))
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "zlibCrc32: wrong arguments");
    return JSValueMakeNumber(ctx, (double)crc32_z((uint32_t)start, bytes, size));
}
