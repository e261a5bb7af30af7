/* SPDX-License-Identifier: Apache-2.0 */
#define ZSTD_STATIC_LINKING_ONLY /* allocators; Debian's library has had them since 1.0 */
#include "codec/zstep.h"

#include <string.h>
#include <zstd_errors.h>

#include "base/assert.h"
#include "base/mem.h"
#include "codec/codec.h"

#define ENCODER_SIZE ((size_t)64 << 10) /* of brotli's, when it is new */

enum { GZIP_MAGIC1 = 0x1f, GZIP_MAGIC2 = 0x8b };

static bool is_zlib(const struct cn_zstep *s)
{
    return s->opened_as < CN_ZSTEP_BROTLI_DECODE;
}

static bool inflates(enum cn_zstep_mode mode)
{
    return mode == CN_ZSTEP_INFLATE || mode == CN_ZSTEP_GUNZIP || mode == CN_ZSTEP_INFLATERAW ||
           mode == CN_ZSTEP_UNZIP;
}

void cn_zstep_close(struct cn_zstep *s)
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

static struct cn_zstep_failure zlib_failure(const struct cn_zstep *s, int rc, const char *text)
{
    return (struct cn_zstep_failure){rc, zlib_code(rc), s->z.msg ? s->z.msg : text};
}

static int z_window(const struct cn_zstep *s)
{
    switch (s->opened_as) {
    case CN_ZSTEP_GZIP:
    case CN_ZSTEP_GUNZIP:
        return s->window_bits + 16;
    case CN_ZSTEP_UNZIP:
        return s->window_bits + 32;
    case CN_ZSTEP_DEFLATERAW:
    case CN_ZSTEP_INFLATERAW:
        return -s->window_bits;
    default:
        return s->window_bits;
    }
}

static int z_start(struct cn_zstep *s)
{
    s->z = (z_stream){
        .zalloc = cn_holding_alloc_items, .zfree = cn_holding_free, .opaque = s->holding};
    int rc = inflates(s->opened_as) ? inflateInit2(&s->z, z_window(s))
                                    : deflateInit2(&s->z, s->level, Z_DEFLATED, z_window(s),
                                                   s->mem_level, s->strategy);
    s->z_ready = rc == Z_OK;
    return rc;
}

/* Raw data and compressors take their dictionary at once, others when they ask for it. */
static int z_set_dictionary(struct cn_zstep *s)
{
    if (!s->dictionary)
        return Z_OK;
    if (!inflates(s->opened_as) && s->opened_as != CN_ZSTEP_GZIP)
        return deflateSetDictionary(&s->z, s->dictionary, (unsigned)s->dictionary_size);
    if (s->opened_as == CN_ZSTEP_INFLATERAW)
        return inflateSetDictionary(&s->z, s->dictionary, (unsigned)s->dictionary_size);
    return Z_OK;
}

static int z_reset(struct cn_zstep *s)
{
    s->mode = s->opened_as;
    s->magic_seen = 0;
    int rc = inflates(s->opened_as) ? inflateReset(&s->z) : deflateReset(&s->z);
    return rc == Z_OK ? z_set_dictionary(s) : rc;
}

/* Whether data is gzip's shows in its first two bytes, which may come one by one. */
static void z_find_mode(struct cn_zstep *s)
{
    const uint8_t *next = s->z.next_in;
    size_t left = s->z.avail_in;
    if (s->magic_seen == 0 && left > 0) {
        if (*next++ != GZIP_MAGIC1) {
            s->mode = CN_ZSTEP_INFLATE;
            return;
        }
        s->magic_seen = 1;
        left--;
    }
    if (s->magic_seen == 1 && left > 0) {
        s->mode = *next == GZIP_MAGIC2 ? CN_ZSTEP_GUNZIP : CN_ZSTEP_INFLATE;
        s->magic_seen = 2;
    }
}

static int z_inflate(struct cn_zstep *s, int flush)
{
    if (s->mode == CN_ZSTEP_UNZIP)
        z_find_mode(s);
    int rc = inflate(&s->z, flush);
    if (s->mode != CN_ZSTEP_INFLATERAW && rc == Z_NEED_DICT && s->dictionary) {
        rc = inflateSetDictionary(&s->z, s->dictionary, (unsigned)s->dictionary_size);
        if (rc == Z_OK)
            rc = inflate(&s->z, flush);
        else if (rc == Z_DATA_ERROR)
            rc = Z_NEED_DICT; /* not the one that was wanted */
    }
    /* Members of gzip may follow one another; zeros after the last one are padding. */
    while (s->z.avail_in > 0 && s->mode == CN_ZSTEP_GUNZIP && rc == Z_STREAM_END &&
           s->z.next_in[0] != 0) {
        rc = inflateReset(&s->z);
        if (rc == Z_OK)
            rc = inflate(&s->z, flush);
    }
    return rc;
}

static struct cn_zstep_failure z_write(struct cn_zstep *s, struct cn_zstep_io *io)
{
    s->z.next_in = (uint8_t *)io->in;
    s->z.avail_in = (unsigned)io->in_size;
    s->z.next_out = io->out;
    s->z.avail_out = (unsigned)io->out_size;
    int rc = inflates(s->opened_as) ? z_inflate(s, io->flush) : deflate(&s->z, io->flush);
    io->in_size = s->z.avail_in;
    io->out_size = s->z.avail_out;
    if (rc == Z_OK || rc == Z_BUF_ERROR) {
        if (s->z.avail_out != 0 && io->flush == Z_FINISH)
            return (struct cn_zstep_failure){Z_BUF_ERROR, "Z_BUF_ERROR", "unexpected end of file"};
        return (struct cn_zstep_failure){0};
    }
    if (rc == Z_STREAM_END)
        return (struct cn_zstep_failure){0};
    if (rc == Z_NEED_DICT)
        return (struct cn_zstep_failure){Z_NEED_DICT, "Z_NEED_DICT",
                                         s->dictionary ? "Bad dictionary" : "Missing dictionary"};
    return zlib_failure(s, rc, "Zlib error");
}

/* ---- brotli */

static struct cn_zstep_failure brotli_write(struct cn_zstep *s, struct cn_zstep_io *io)
{
    size_t in_left = io->in_size, out_left = io->out_size;
    const uint8_t *in = io->in;
    uint8_t *out = io->out;
    struct cn_zstep_failure failure = {0};
    if (s->encoder) {
        s->fed += in_left;
        size_t needs = cn_codec_brotli_needs(s->largest, s->fed);
        if (!cn_holding_has_room(s->holding, needs)) /* H3 of holding.h */
            return (struct cn_zstep_failure){Z_MEM_ERROR, "Z_MEM_ERROR", "Compression failed"};
        if (!BrotliEncoderCompressStream(s->encoder, (BrotliEncoderOperation)io->flush, &in_left,
                                         &in, &out_left, &out, NULL))
            failure = (struct cn_zstep_failure){-1, "ERR_BROTLI_COMPRESSION_FAILED",
                                                "Compression failed"};
    } else {
        BrotliDecoderResult result =
            BrotliDecoderDecompressStream(s->decoder, &in_left, &in, &out_left, &out, NULL);
        BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(s->decoder);
        if (result == BROTLI_DECODER_RESULT_ERROR)
            failure = (struct cn_zstep_failure){(int)code, BrotliDecoderErrorString(code),
                                                "Decompression failed"};
        else if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT &&
                 io->flush == BROTLI_OPERATION_FINISH)
            failure =
                (struct cn_zstep_failure){Z_BUF_ERROR, "Z_BUF_ERROR", "unexpected end of file"};
    }
    io->in_size = in_left;
    io->out_size = out_left;
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

static struct cn_zstep_failure zstd_write(struct cn_zstep *s, struct cn_zstep_io *io)
{
    ZSTD_inBuffer in = {io->in, io->in_size, 0};
    ZSTD_outBuffer out = {io->out, io->out_size, 0};
    size_t rc;
    if (s->zstd_encoder)
        rc = ZSTD_compressStream2(s->zstd_encoder, &out, &in, (ZSTD_EndDirective)io->flush);
    else
        rc = ZSTD_decompressStream(s->zstd_decoder, &out, &in);
    io->in_size = in.size - in.pos;
    io->out_size = out.size - out.pos;
    if (ZSTD_isError(rc)) {
        ZSTD_ErrorCode code = ZSTD_getErrorCode(rc);
        return (struct cn_zstep_failure){(int)code, zstd_code(code), ZSTD_getErrorString(code)};
    }
    /* More is wanted, and no more will come. */
    bool nothing = s->frame_done && in.size == 0;
    s->frame_done = nothing || rc == 0;
    if (s->zstd_decoder && rc > 0 && !nothing && io->flush == ZSTD_e_end && io->in_size == 0 &&
        io->out_size > 0)
        return (struct cn_zstep_failure){Z_BUF_ERROR, "Z_BUF_ERROR", "unexpected end of file"};
    return (struct cn_zstep_failure){0};
}

/* ---- life ---- */

static void start(struct cn_zstep *s, enum cn_zstep_mode mode, struct cn_holding *holding)
{
    *s = (struct cn_zstep){.mode = mode, .opened_as = mode, .open = true, .holding = holding};
}

const char *cn_zstep_open(struct cn_zstep *s, enum cn_zstep_mode mode,
                          const struct cn_zstep_options *options, struct cn_holding *holding)
{
    CN_ASSERT(mode >= CN_ZSTEP_DEFLATE && mode <= CN_ZSTEP_UNZIP);
    if (options->window_bits < 0 || options->window_bits > 15)
        return "Initialization failed";
    start(s, mode, holding);
    s->window_bits = options->window_bits;
    s->level = options->level;
    s->mem_level = options->mem_level;
    s->strategy = options->strategy;
    if (options->dictionary) {
        s->dictionary = cn_memdup(options->dictionary, options->dictionary_size);
        s->dictionary_size = options->dictionary_size;
    }
    int rc = z_start(s);
    if (rc == Z_OK)
        rc = z_set_dictionary(s);
    if (rc == Z_OK)
        return NULL;
    cn_zstep_close(s);
    return rc == Z_STREAM_ERROR || rc == Z_DATA_ERROR ? "Failed to set dictionary"
                                                      : "Initialization failed";
}

/* Of a quality and a window that may be unset. */
static size_t brotli_largest(const int32_t *params, size_t count)
{
    int quality = count > BROTLI_PARAM_QUALITY ? params[BROTLI_PARAM_QUALITY] : CN_ZSTEP_UNSET;
    int window = count > BROTLI_PARAM_LGWIN ? params[BROTLI_PARAM_LGWIN] : CN_ZSTEP_UNSET;
    return cn_codec_brotli_largest(quality == CN_ZSTEP_UNSET ? BROTLI_DEFAULT_QUALITY : quality,
                                   window);
}

bool cn_zstep_open_brotli(struct cn_zstep *s, enum cn_zstep_mode mode, const int32_t *params,
                          size_t count, struct cn_holding *holding)
{
    CN_ASSERT(mode == CN_ZSTEP_BROTLI_ENCODE || mode == CN_ZSTEP_BROTLI_DECODE);
    start(s, mode, holding);
    s->largest = brotli_largest(params, count);
    if (mode == CN_ZSTEP_BROTLI_ENCODE && cn_holding_has_room(holding, ENCODER_SIZE))
        s->encoder =
            BrotliEncoderCreateInstance(cn_holding_alloc_always, cn_holding_free, s->holding);
    else if (mode == CN_ZSTEP_BROTLI_DECODE)
        s->decoder = BrotliDecoderCreateInstance(cn_holding_alloc, cn_holding_free, s->holding);
    bool ok = s->encoder || s->decoder;
    for (size_t i = 0; ok && i < count; i++) {
        if (params[i] == CN_ZSTEP_UNSET)
            continue;
        ok = s->encoder ? BrotliEncoderSetParameter(s->encoder, (BrotliEncoderParameter)i,
                                                    (uint32_t)params[i])
                        : BrotliDecoderSetParameter(s->decoder, (BrotliDecoderParameter)i,
                                                    (uint32_t)params[i]);
    }
    if (!ok)
        cn_zstep_close(s);
    return ok;
}

bool cn_zstep_open_zstd(struct cn_zstep *s, enum cn_zstep_mode mode, const int32_t *params,
                        size_t count, double pledged, struct cn_holding *holding)
{
    CN_ASSERT(mode == CN_ZSTEP_ZSTD_COMPRESS || mode == CN_ZSTEP_ZSTD_DECOMPRESS);
    start(s, mode, holding);
    ZSTD_customMem memory = {cn_holding_alloc, cn_holding_free, holding};
    if (mode == CN_ZSTEP_ZSTD_COMPRESS)
        s->zstd_encoder = ZSTD_createCCtx_advanced(memory);
    else
        s->zstd_decoder = ZSTD_createDCtx_advanced(memory);
    bool ok = s->zstd_encoder || s->zstd_decoder;
    for (size_t i = 0; ok && i + 1 < count; i += 2) {
        size_t rc =
            s->zstd_encoder
                ? ZSTD_CCtx_setParameter(s->zstd_encoder, (ZSTD_cParameter)params[i], params[i + 1])
                : ZSTD_DCtx_setParameter(s->zstd_decoder, (ZSTD_dParameter)params[i],
                                         params[i + 1]);
        ok = !ZSTD_isError(rc);
    }
    if (ok && s->zstd_encoder && pledged >= 0)
        ok = !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(s->zstd_encoder, (uint64_t)pledged));
    if (!ok)
        cn_zstep_close(s);
    return ok;
}

struct cn_zstep_failure cn_zstep_write(struct cn_zstep *s, struct cn_zstep_io *io)
{
    CN_ASSERT(s->open); /* Z1 */
    static const uint8_t none;
    if (!io->in)
        io->in = &none;
    return is_zlib(s)                 ? z_write(s, io)
           : s->encoder || s->decoder ? brotli_write(s, io)
                                      : zstd_write(s, io);
}

struct cn_zstep_failure cn_zstep_params(struct cn_zstep *s, int level, int strategy)
{
    CN_ASSERT(s->open); /* Z1 */
    if (!is_zlib(s) || inflates(s->opened_as))
        return (struct cn_zstep_failure){0};
    uint8_t nothing[1];
    s->z.next_in = nothing;
    s->z.avail_in = 0;
    s->z.next_out = nothing;
    s->z.avail_out = 0;
    int rc = deflateParams(&s->z, level, strategy);
    if (rc == Z_OK || rc == Z_BUF_ERROR)
        return (struct cn_zstep_failure){0};
    return zlib_failure(s, rc, "Failed to set parameters");
}

/* A new one, without parameters; the old one stays if there is no memory for it. */
static bool brotli_again(struct cn_zstep *s)
{
    if (s->encoder) {
        if (!cn_holding_has_room(s->holding, ENCODER_SIZE))
            return false;
        BrotliEncoderState *fresh =
            BrotliEncoderCreateInstance(cn_holding_alloc_always, cn_holding_free, s->holding);
        BrotliEncoderDestroyInstance(fresh ? s->encoder : NULL);
        s->encoder = fresh ? fresh : s->encoder;
        return fresh;
    }
    BrotliDecoderState *fresh =
        BrotliDecoderCreateInstance(cn_holding_alloc, cn_holding_free, s->holding);
    BrotliDecoderDestroyInstance(fresh ? s->decoder : NULL);
    s->decoder = fresh ? fresh : s->decoder;
    return fresh;
}

struct cn_zstep_failure cn_zstep_reset(struct cn_zstep *s)
{
    CN_ASSERT(s->open); /* Z1 */
    if (is_zlib(s)) {
        int rc = z_reset(s);
        if (rc != Z_OK)
            return zlib_failure(s, rc, "Failed to reset stream");
    } else if (s->zstd_encoder) {
        ZSTD_CCtx_reset(s->zstd_encoder, ZSTD_reset_session_only);
    } else if (s->zstd_decoder) {
        ZSTD_DCtx_reset(s->zstd_decoder, ZSTD_reset_session_only);
    } else if (!brotli_again(s)) {
        return (struct cn_zstep_failure){Z_MEM_ERROR, "Z_MEM_ERROR", "Failed to reset stream"};
    }
    return (struct cn_zstep_failure){0};
}
