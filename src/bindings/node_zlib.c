/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node_zlib.c - one step of a compressor or decompressor, as node:zlib takes them.
 *
 *     zlibOpen(mode, windowBits, level, memLevel, strategy, dictionary) -> handle
 *     zlibOpenBrotli(mode, params)  zlibOpenZstd(mode, params, size)    -> handle, or undefined
 *     zlibWrite(handle, flush, input, output, state)                    -> undefined, or a failure
 *     zlibParams(handle, level, strategy)  zlibReset(handle)            -> undefined, or a failure
 *     zlibClose(handle)
 *
 * A write uses what it can of `input`, fills what it can of `output`, and tells in `state`, two
 * numbers, how much of the output and of the input is left. A failure is [errno, code, message]
 * with the codes of Node.js.
 *
 * N1  Bytes of JavaScript are touched during a call only.
 * N2  After zlibClose() a handle does nothing: every call on it throws. */
#include <brotli/decode.h>
#include <brotli/encode.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/assert.h"
#include "base/mem.h"
#include "border/node_zlib.h"
#include "js/handle.h"
#include "js/native.h"

enum mode {
    MODE_NONE,
    MODE_DEFLATE,
    MODE_INFLATE,
    MODE_GZIP,
    MODE_GUNZIP,
    MODE_DEFLATERAW,
    MODE_INFLATERAW,
    MODE_UNZIP,
    MODE_BROTLI_DECODE,
    MODE_BROTLI_ENCODE,
    MODE_ZSTD_COMPRESS,
    MODE_ZSTD_DECOMPRESS,
};

enum { GZIP_MAGIC1 = 0x1f, GZIP_MAGIC2 = 0x8b, PARAM_UNSET = -1 };

struct stream {
    struct cn_js_handle base;
    enum mode mode;      /* what it does now: MODE_UNZIP becomes one of the others */
    enum mode opened_as; /* what reset() goes back to */
    int window_bits, level, mem_level, strategy;
    unsigned magic_seen; /* MODE_UNZIP: bytes of gzip's magic so far */
    bool open, z_ready;
    bool frame_done; /* zstd: a frame has ended, and no other begun */
    z_stream z;
    uint8_t *dictionary;
    size_t dictionary_size;
    BrotliEncoderState *encoder;
    BrotliDecoderState *decoder;
    ZSTD_CCtx *zstd_encoder;
    ZSTD_DCtx *zstd_decoder;
};

/* What a step works on. */
struct step {
    const uint8_t *in;
    size_t in_size;
    uint8_t *out;
    size_t out_size;
    int flush;
};

struct failure {
    int number;
    const char *code; /* NULL: none */
    const char *text;
};

static bool is_zlib(const struct stream *s)
{
    return s->opened_as < MODE_BROTLI_DECODE;
}

static bool inflates(enum mode mode)
{
    return mode == MODE_INFLATE || mode == MODE_GUNZIP || mode == MODE_INFLATERAW ||
           mode == MODE_UNZIP;
}

static void stream_close(struct stream *s)
{
    if (!s->open)
        return;
    s->open = false;
    if (s->z_ready && inflates(s->opened_as))
        inflateEnd(&s->z);
    else if (s->z_ready)
        deflateEnd(&s->z);
    s->z_ready = false;
    BrotliEncoderDestroyInstance(s->encoder);
    BrotliDecoderDestroyInstance(s->decoder);
    ZSTD_freeCCtx(s->zstd_encoder);
    ZSTD_freeDCtx(s->zstd_decoder);
    s->encoder = NULL;
    s->decoder = NULL;
    s->zstd_encoder = NULL;
    s->zstd_decoder = NULL;
    cn_free(s->dictionary);
    s->dictionary = NULL;
}

static void on_collected(void *data)
{
    stream_close(data);
    cn_free(data);
}

static const struct cn_js_handle_type stream_type = {.name = "zlib", .free = on_collected};

static int int_arg(JSContextRef ctx, JSValueRef value, int fallback)
{
    double number = JSValueIsNumber(ctx, value) ? cn_js_to_number(ctx, value) : fallback;
    return number >= -2147483648.0 && number <= 2147483647.0 ? (int)number : fallback;
}

static JSValueRef failure_value(JSContextRef ctx, struct failure failure, JSValueRef *exception)
{
    if (!failure.code)
        return JSValueMakeUndefined(ctx);
    JSValueRef values[] = {JSValueMakeNumber(ctx, failure.number), cn_js_text_z(ctx, failure.code),
                           cn_js_text_z(ctx, failure.text)};
    return JSObjectMakeArray(ctx, 3, values, exception);
}

/* ---- zlib */

static const char *zlib_code(int rc)
{
    switch (rc) {
    case Z_NEED_DICT:
        return "Z_NEED_DICT";
    case Z_ERRNO:
        return "Z_ERRNO";
    case Z_STREAM_ERROR:
        return "Z_STREAM_ERROR";
    case Z_DATA_ERROR:
        return "Z_DATA_ERROR";
    case Z_MEM_ERROR:
        return "Z_MEM_ERROR";
    case Z_BUF_ERROR:
        return "Z_BUF_ERROR";
    case Z_VERSION_ERROR:
        return "Z_VERSION_ERROR";
    default:
        return "Z_ERRNO";
    }
}

static struct failure zlib_failure(const struct stream *s, int rc, const char *text)
{
    return (struct failure){rc, zlib_code(rc), s->z.msg ? s->z.msg : text};
}

static int z_window(const struct stream *s)
{
    switch (s->opened_as) {
    case MODE_GZIP:
    case MODE_GUNZIP:
        return s->window_bits + 16;
    case MODE_UNZIP:
        return s->window_bits + 32;
    case MODE_DEFLATERAW:
    case MODE_INFLATERAW:
        return -s->window_bits;
    default:
        return s->window_bits;
    }
}

static int z_start(struct stream *s)
{
    memset(&s->z, 0, sizeof(s->z));
    int rc = inflates(s->opened_as) ? inflateInit2(&s->z, z_window(s))
                                    : deflateInit2(&s->z, s->level, Z_DEFLATED, z_window(s),
                                                   s->mem_level, s->strategy);
    s->z_ready = rc == Z_OK;
    return rc;
}

/* Raw data and compressors take their dictionary at once, others when they ask for it. */
static int z_set_dictionary(struct stream *s)
{
    if (!s->dictionary)
        return Z_OK;
    if (!inflates(s->opened_as) && s->opened_as != MODE_GZIP)
        return deflateSetDictionary(&s->z, s->dictionary, (unsigned)s->dictionary_size);
    if (s->opened_as == MODE_INFLATERAW)
        return inflateSetDictionary(&s->z, s->dictionary, (unsigned)s->dictionary_size);
    return Z_OK;
}

static int z_reset(struct stream *s)
{
    s->mode = s->opened_as;
    s->magic_seen = 0;
    int rc = inflates(s->opened_as) ? inflateReset(&s->z) : deflateReset(&s->z);
    return rc == Z_OK ? z_set_dictionary(s) : rc;
}

/* Whether data is gzip's shows in its first two bytes, which may come one by one. */
static void z_find_mode(struct stream *s)
{
    const uint8_t *next = s->z.next_in;
    size_t left = s->z.avail_in;
    if (s->magic_seen == 0 && left > 0) {
        if (*next++ != GZIP_MAGIC1) {
            s->mode = MODE_INFLATE;
            return;
        }
        s->magic_seen = 1;
        left--;
    }
    if (s->magic_seen == 1 && left > 0) {
        s->mode = *next == GZIP_MAGIC2 ? MODE_GUNZIP : MODE_INFLATE;
        s->magic_seen = 2;
    }
}

static int z_inflate(struct stream *s, int flush)
{
    if (s->mode == MODE_UNZIP)
        z_find_mode(s);
    int rc = inflate(&s->z, flush);
    if (s->mode != MODE_INFLATERAW && rc == Z_NEED_DICT && s->dictionary) {
        rc = inflateSetDictionary(&s->z, s->dictionary, (unsigned)s->dictionary_size);
        if (rc == Z_OK)
            rc = inflate(&s->z, flush);
        else if (rc == Z_DATA_ERROR)
            rc = Z_NEED_DICT; /* not the one that was wanted */
    }
    /* Members of gzip may follow one another; zeros after the last one are padding. */
    while (s->z.avail_in > 0 && s->mode == MODE_GUNZIP && rc == Z_STREAM_END &&
           s->z.next_in[0] != 0) {
        rc = inflateReset(&s->z);
        if (rc == Z_OK)
            rc = inflate(&s->z, flush);
    }
    return rc;
}

static struct failure z_write(struct stream *s, struct step *step)
{
    s->z.next_in = (uint8_t *)step->in;
    s->z.avail_in = (unsigned)step->in_size;
    s->z.next_out = step->out;
    s->z.avail_out = (unsigned)step->out_size;
    int rc = inflates(s->opened_as) ? z_inflate(s, step->flush) : deflate(&s->z, step->flush);
    step->in_size = s->z.avail_in;
    step->out_size = s->z.avail_out;
    if (rc == Z_OK || rc == Z_BUF_ERROR) {
        if (s->z.avail_out != 0 && step->flush == Z_FINISH)
            return (struct failure){Z_BUF_ERROR, "Z_BUF_ERROR", "unexpected end of file"};
        return (struct failure){0};
    }
    if (rc == Z_STREAM_END)
        return (struct failure){0};
    if (rc == Z_NEED_DICT)
        return (struct failure){Z_NEED_DICT, "Z_NEED_DICT",
                                s->dictionary ? "Bad dictionary" : "Missing dictionary"};
    return zlib_failure(s, rc, "Zlib error");
}

/* ---- brotli */

static struct failure brotli_write(struct stream *s, struct step *step)
{
    size_t in_left = step->in_size, out_left = step->out_size;
    const uint8_t *in = step->in;
    uint8_t *out = step->out;
    struct failure failure = {0};
    if (s->encoder) {
        if (!BrotliEncoderCompressStream(s->encoder, (BrotliEncoderOperation)step->flush, &in_left,
                                         &in, &out_left, &out, NULL))
            failure = (struct failure){-1, "ERR_BROTLI_COMPRESSION_FAILED", "Compression failed"};
    } else {
        BrotliDecoderResult result =
            BrotliDecoderDecompressStream(s->decoder, &in_left, &in, &out_left, &out, NULL);
        BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(s->decoder);
        if (result == BROTLI_DECODER_RESULT_ERROR)
            failure =
                (struct failure){(int)code, BrotliDecoderErrorString(code), "Decompression failed"};
        else if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT &&
                 step->flush == BROTLI_OPERATION_FINISH)
            failure = (struct failure){Z_BUF_ERROR, "Z_BUF_ERROR", "unexpected end of file"};
    }
    step->in_size = in_left;
    step->out_size = out_left;
    return failure;
}

/* ---- zstd */

static const char *zstd_code(ZSTD_ErrorCode code)
{
    switch (code) {
    case ZSTD_error_prefix_unknown:
        return "ZSTD_error_prefix_unknown";
    case ZSTD_error_version_unsupported:
        return "ZSTD_error_version_unsupported";
    case ZSTD_error_frameParameter_unsupported:
        return "ZSTD_error_frameParameter_unsupported";
    case ZSTD_error_frameParameter_windowTooLarge:
        return "ZSTD_error_frameParameter_windowTooLarge";
    case ZSTD_error_corruption_detected:
        return "ZSTD_error_corruption_detected";
    case ZSTD_error_checksum_wrong:
        return "ZSTD_error_checksum_wrong";
    case ZSTD_error_dictionary_corrupted:
        return "ZSTD_error_dictionary_corrupted";
    case ZSTD_error_dictionary_wrong:
        return "ZSTD_error_dictionary_wrong";
    case ZSTD_error_parameter_unsupported:
        return "ZSTD_error_parameter_unsupported";
    case ZSTD_error_parameter_outOfBound:
        return "ZSTD_error_parameter_outOfBound";
    case ZSTD_error_stage_wrong:
        return "ZSTD_error_stage_wrong";
    case ZSTD_error_memory_allocation:
        return "ZSTD_error_memory_allocation";
    case ZSTD_error_dstSize_tooSmall:
        return "ZSTD_error_dstSize_tooSmall";
    case ZSTD_error_srcSize_wrong:
        return "ZSTD_error_srcSize_wrong";
    default:
        return "ZSTD_error_GENERIC";
    }
}

static struct failure zstd_write(struct stream *s, struct step *step)
{
    ZSTD_inBuffer in = {step->in, step->in_size, 0};
    ZSTD_outBuffer out = {step->out, step->out_size, 0};
    size_t rc;
    if (s->zstd_encoder)
        rc = ZSTD_compressStream2(s->zstd_encoder, &out, &in, (ZSTD_EndDirective)step->flush);
    else
        rc = ZSTD_decompressStream(s->zstd_decoder, &out, &in);
    step->in_size = in.size - in.pos;
    step->out_size = out.size - out.pos;
    if (ZSTD_isError(rc)) {
        ZSTD_ErrorCode code = ZSTD_getErrorCode(rc);
        return (struct failure){(int)code, zstd_code(code), ZSTD_getErrorString(code)};
    }
    /* More is wanted, and no more will come. */
    bool nothing = s->frame_done && in.size == 0;
    s->frame_done = nothing || rc == 0;
    if (s->zstd_decoder && rc > 0 && !nothing && step->flush == ZSTD_e_end && step->in_size == 0 &&
        step->out_size > 0)
        return (struct failure){Z_BUF_ERROR, "Z_BUF_ERROR", "unexpected end of file"};
    return (struct failure){0};
}

/* ---- what JavaScript calls */

static struct stream *stream_new(enum mode mode)
{
    struct stream *s = CN_NEW(struct stream);
    s->mode = s->opened_as = mode;
    s->open = true;
    return s;
}

static JSValueRef native_zlib_open(CN_JS_NATIVE_ARGS)
{
    int mode = int_arg(ctx, cn_js_arg(0), 0);
    if (mode < MODE_DEFLATE || mode > MODE_UNZIP)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "zlibOpen: no such mode");
    int window_bits = int_arg(ctx, cn_js_arg(1), 15);
    if (window_bits < 0 || window_bits > 15)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "Initialization failed");
    struct stream *s = stream_new((enum mode)mode);
    s->window_bits = window_bits;
    s->level = int_arg(ctx, cn_js_arg(2), -1);
    s->mem_level = int_arg(ctx, cn_js_arg(3), 8);
    s->strategy = int_arg(ctx, cn_js_arg(4), 0);
    uint8_t *bytes;
    size_t size;
    if (cn_js_bytes(ctx, cn_js_arg(5), &bytes, &size) && size > 0 && size <= UINT32_MAX) {
        s->dictionary = cn_alloc(size);
        memcpy(s->dictionary, bytes, size);
        s->dictionary_size = size;
    }
    int rc = z_start(s);
    if (rc == Z_OK)
        rc = z_set_dictionary(s);
    if (rc != Z_OK) {
        stream_close(s);
        cn_free(s);
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s",
                           rc == Z_STREAM_ERROR || rc == Z_DATA_ERROR ? "Failed to set dictionary"
                                                                      : "Initialization failed");
    }
    return cn_js_handle_make(ctx, &s->base, &stream_type, 256 * 1024);
}

/* An Int32Array or Uint32Array of parameters by number; PARAM_UNSET leaves the default. */
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

static JSValueRef native_zlib_open_brotli(CN_JS_NATIVE_ARGS)
{
    int32_t params[16];
    size_t count = 16;
    int mode = int_arg(ctx, cn_js_arg(0), 0);
    if ((mode != MODE_BROTLI_ENCODE && mode != MODE_BROTLI_DECODE) ||
        !params_arg(ctx, cn_js_arg(1), params, &count))
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "zlibOpenBrotli: wrong arguments");
    struct stream *s = stream_new((enum mode)mode);
    bool ok = true;
    if (mode == MODE_BROTLI_ENCODE)
        s->encoder = BrotliEncoderCreateInstance(NULL, NULL, NULL);
    else
        s->decoder = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    ok = s->encoder || s->decoder;
    for (size_t i = 0; ok && i < count; i++) {
        if (params[i] == PARAM_UNSET)
            continue;
        ok = s->encoder ? BrotliEncoderSetParameter(s->encoder, (BrotliEncoderParameter)i,
                                                    (uint32_t)params[i])
                        : BrotliDecoderSetParameter(s->decoder, (BrotliDecoderParameter)i,
                                                    (uint32_t)params[i]);
    }
    if (!ok) {
        stream_close(s);
        cn_free(s);
        return JSValueMakeUndefined(ctx);
    }
    return cn_js_handle_make(ctx, &s->base, &stream_type, 1024 * 1024);
}

/* zlibOpenZstd(mode, [number, value, number, value...], pledged size or -1) */
static JSValueRef native_zlib_open_zstd(CN_JS_NATIVE_ARGS)
{
    int32_t params[64];
    size_t count = 64;
    int mode = int_arg(ctx, cn_js_arg(0), 0);
    if ((mode != MODE_ZSTD_COMPRESS && mode != MODE_ZSTD_DECOMPRESS) ||
        !params_arg(ctx, cn_js_arg(1), params, &count))
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "zlibOpenZstd: wrong arguments");
    struct stream *s = stream_new((enum mode)mode);
    if (mode == MODE_ZSTD_COMPRESS)
        s->zstd_encoder = ZSTD_createCCtx();
    else
        s->zstd_decoder = ZSTD_createDCtx();
    bool ok = s->zstd_encoder || s->zstd_decoder;
    for (size_t i = 0; ok && i + 1 < count; i += 2) {
        size_t rc =
            s->zstd_encoder
                ? ZSTD_CCtx_setParameter(s->zstd_encoder, (ZSTD_cParameter)params[i], params[i + 1])
                : ZSTD_DCtx_setParameter(s->zstd_decoder, (ZSTD_dParameter)params[i],
                                         params[i + 1]);
        ok = !ZSTD_isError(rc);
    }
    double pledged = cn_js_to_number(ctx, cn_js_arg(2));
    if (ok && s->zstd_encoder && pledged >= 0)
        ok = !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(s->zstd_encoder, (uint64_t)pledged));
    if (!ok) {
        stream_close(s);
        cn_free(s);
        return JSValueMakeUndefined(ctx);
    }
    return cn_js_handle_make(ctx, &s->base, &stream_type, 1024 * 1024);
}

static struct stream *stream_arg(JSContextRef ctx, JSValueRef value, JSValueRef *exception)
{
    struct stream *s = cn_js_handle_find(ctx, value, &stream_type);
    if (s && s->open)
        return s;
    cn_js_throw(ctx, exception, CN_JS_ERROR, "zlib: the handle is closed");
    return NULL;
}

static JSValueRef native_zlib_write(CN_JS_NATIVE_ARGS)
{
    struct stream *s = stream_arg(ctx, cn_js_arg(0), exception);
    if (!s)
        return JSValueMakeUndefined(ctx);
    uint8_t *in = NULL, *out, *state;
    size_t in_size = 0, out_size, state_size;
    (void)cn_js_bytes(ctx, cn_js_arg(2), &in, &in_size); /* anything else is no input */
    if (!cn_js_bytes(ctx, cn_js_arg(3), &out, &out_size) ||
        !cn_js_bytes(ctx, cn_js_arg(4), &state, &state_size) || state_size < 8 ||
        in_size > UINT32_MAX || out_size > UINT32_MAX)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "zlibWrite: wrong arguments");
    static const uint8_t none;
    struct step step = {in ? in : &none, in_size, out, out_size, int_arg(ctx, cn_js_arg(1), 0)};
    struct failure failure = is_zlib(s)                 ? z_write(s, &step)
                             : s->encoder || s->decoder ? brotli_write(s, &step)
                                                        : zstd_write(s, &step);
    uint32_t left[2] = {(uint32_t)step.out_size, (uint32_t)step.in_size};
    memcpy(state, left, sizeof(left));
    return failure_value(ctx, failure, exception);
}

static JSValueRef native_zlib_params(CN_JS_NATIVE_ARGS)
{
    struct stream *s = stream_arg(ctx, cn_js_arg(0), exception);
    if (!s || !is_zlib(s) || inflates(s->opened_as))
        return JSValueMakeUndefined(ctx);
    uint8_t nothing[1];
    s->z.next_in = nothing;
    s->z.avail_in = 0;
    s->z.next_out = nothing;
    s->z.avail_out = 0;
    int rc = deflateParams(&s->z, int_arg(ctx, cn_js_arg(1), -1), int_arg(ctx, cn_js_arg(2), 0));
    if (rc == Z_OK || rc == Z_BUF_ERROR)
        return JSValueMakeUndefined(ctx);
    return failure_value(ctx, zlib_failure(s, rc, "Failed to set parameters"), exception);
}

static JSValueRef native_zlib_reset(CN_JS_NATIVE_ARGS)
{
    struct stream *s = stream_arg(ctx, cn_js_arg(0), exception);
    if (!s)
        return JSValueMakeUndefined(ctx);
    if (is_zlib(s)) {
        int rc = z_reset(s);
        if (rc != Z_OK)
            return failure_value(ctx, zlib_failure(s, rc, "Failed to reset stream"), exception);
    } else if (s->zstd_encoder) {
        ZSTD_CCtx_reset(s->zstd_encoder, ZSTD_reset_session_only);
    } else if (s->zstd_decoder) {
        ZSTD_DCtx_reset(s->zstd_decoder, ZSTD_reset_session_only);
    } else if (s->encoder) {
        BrotliEncoderDestroyInstance(s->encoder);
        s->encoder = BrotliEncoderCreateInstance(NULL, NULL, NULL);
        CN_ASSERT(s->encoder);
    } else {
        BrotliDecoderDestroyInstance(s->decoder);
        s->decoder = BrotliDecoderCreateInstance(NULL, NULL, NULL);
        CN_ASSERT(s->decoder);
    }
    return JSValueMakeUndefined(ctx);
}

static JSValueRef native_zlib_close(CN_JS_NATIVE_ARGS)
{
    struct stream *s = cn_js_handle_find(ctx, cn_js_arg(0), &stream_type);
    if (s)
        stream_close(s);
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
