/* SPDX-License-Identifier: Apache-2.0 */
#define ZSTD_STATIC_LINKING_ONLY /* allocators; Debian's library has had them since 1.0 */
#include "codec/codec.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

#define OUTPUT_STEP (32 * 1024)
#define ZSTD_WINDOW_LOG_MAX 27 /* a decoder takes at most 128 MiB, whatever a frame asks for */

static bool is_encoder(enum cn_codec_kind kind)
{
    return kind <= CN_CODEC_GZIP || kind == CN_CODEC_BROTLI_ENCODE || kind == CN_CODEC_ZSTD_ENCODE;
}

static bool is_brotli(enum cn_codec_kind kind)
{
    return kind == CN_CODEC_BROTLI_ENCODE || kind == CN_CODEC_BROTLI_DECODE;
}

static bool is_zlib(enum cn_codec_kind kind)
{
    return kind < CN_CODEC_BROTLI_ENCODE;
}

/* zlib says the format by the number of window bits. */
static int format_bits(enum cn_codec_kind kind, int bits)
{
    switch (kind) {
    case CN_CODEC_DEFLATE_RAW:
    case CN_CODEC_INFLATE_RAW:
        return -bits;
    case CN_CODEC_GZIP:
    case CN_CODEC_GUNZIP:
        return bits + 16;
    case CN_CODEC_UNZIP:
        return bits + 32;
    default:
        return bits;
    }
}

size_t cn_codec_brotli_largest(int quality, int window_bits)
{
    int bits = window_bits < 10 || window_bits > 24 ? 22 : window_bits;
    return ((size_t)1 << bits) * (quality >= 10 ? 16 : 3) + ((size_t)1 << 20);
}

size_t cn_codec_brotli_needs(size_t largest, size_t fed)
{
    size_t needs = ((size_t)1 << 20) + (fed < largest ? fed * 64 : 0);
    return fed < largest && needs < largest ? needs : largest;
}

static int init_brotli(struct cn_codec *codec, const struct cn_codec_options *options,
                       struct cn_err *err)
{
    if (codec->kind == CN_CODEC_BROTLI_DECODE) {
        codec->decoder =
            BrotliDecoderCreateInstance(cn_holding_alloc, cn_holding_free, codec->holding);
        return codec->decoder ? 0 : cn_err_set(err, CN_ENOMEM, "no memory for brotli");
    }
    codec->largest = cn_codec_brotli_largest(options->level, options->window_bits);
    if (!cn_holding_has_room(codec->holding, cn_codec_brotli_needs(codec->largest, 0)))
        return cn_err_set(err, CN_ENOMEM, "no memory for brotli");
    codec->encoder =
        BrotliEncoderCreateInstance(cn_holding_alloc_always, cn_holding_free, codec->holding);
    if (!codec->encoder)
        return cn_err_set(err, CN_ENOMEM, "no memory for brotli");
    BrotliEncoderSetParameter(codec->encoder, BROTLI_PARAM_QUALITY, (uint32_t)options->level);
    if (options->window_bits)
        BrotliEncoderSetParameter(codec->encoder, BROTLI_PARAM_LGWIN,
                                  (uint32_t)options->window_bits);
    BrotliEncoderSetParameter(codec->encoder, BROTLI_PARAM_MODE, (uint32_t)options->strategy);
    return 0;
}

static int init_zstd(struct cn_codec *codec, const struct cn_codec_options *options,
                     struct cn_err *err)
{
    ZSTD_customMem memory = {cn_holding_alloc, cn_holding_free, codec->holding};
    if (codec->kind == CN_CODEC_ZSTD_DECODE) {
        codec->zstd_decoder = ZSTD_createDCtx_advanced(memory);
        if (!codec->zstd_decoder)
            return cn_err_set(err, CN_ENOMEM, "no memory for zstd");
        (void)ZSTD_DCtx_setParameter(codec->zstd_decoder, ZSTD_d_windowLogMax,
                                     ZSTD_WINDOW_LOG_MAX); /* in range: cannot fail */
        return 0;
    }
    codec->zstd_encoder = ZSTD_createCCtx_advanced(memory);
    if (!codec->zstd_encoder)
        return cn_err_set(err, CN_ENOMEM, "no memory for zstd");
    size_t rc =
        ZSTD_CCtx_setParameter(codec->zstd_encoder, ZSTD_c_compressionLevel, options->level);
    if (!ZSTD_isError(rc))
        return 0;
    cn_codec_fini(codec);
    return cn_err_set(err, CN_EINVALID, "these compression parameters do not go together");
}

int cn_codec_init(struct cn_codec *codec, enum cn_codec_kind kind,
                  const struct cn_codec_options *options, struct cn_err *err)
{
    *codec = (struct cn_codec){
        .kind = kind,
        .holding = options->holding,
        .z = {.zalloc = cn_holding_alloc_items,
              .zfree = cn_holding_free,
              .opaque = options->holding},
    };
    if (is_brotli(kind))
        return init_brotli(codec, options, err);
    if (!is_zlib(kind))
        return init_zstd(codec, options, err);
    if (options->window_bits < 0 || options->window_bits > 15)
        return cn_err_set(err, CN_EINVALID, "these compression parameters do not go together");
    int bits = options->window_bits ? options->window_bits : 15;
    int rc;
    if (is_encoder(kind))
        rc = deflateInit2(&codec->z, options->level, Z_DEFLATED, format_bits(kind, bits),
                          options->mem_level ? options->mem_level : 8, options->strategy);
    else
        rc = inflateInit2(&codec->z, format_bits(kind, bits));
    if (rc == Z_MEM_ERROR)
        return cn_err_set(err, CN_ENOMEM, "no memory for zlib");
    if (rc != Z_OK)
        return cn_err_set(err, CN_EINVALID, "these compression parameters do not go together");
    if (!options->dictionary)
        return 0;
    if (is_encoder(kind)) {
        rc = deflateSetDictionary(&codec->z, options->dictionary, (uInt)options->dictionary_size);
    } else if (kind == CN_CODEC_INFLATE_RAW) {
        rc = inflateSetDictionary(&codec->z, options->dictionary, (uInt)options->dictionary_size);
    } else {
        codec->dictionary = cn_memdup(options->dictionary, options->dictionary_size);
        codec->dictionary_size = options->dictionary_size;
    }
    if (rc != Z_OK) {
        cn_codec_fini(codec);
        return cn_err_set(err, CN_EINVALID, "the dictionary is not usable");
    }
    return 0;
}

void cn_codec_fini(struct cn_codec *codec)
{
    if (codec->encoder)
        BrotliEncoderDestroyInstance(codec->encoder);
    if (codec->decoder)
        BrotliDecoderDestroyInstance(codec->decoder);
    ZSTD_freeCCtx(codec->zstd_encoder);
    ZSTD_freeDCtx(codec->zstd_decoder);
    if (is_zlib(codec->kind) && codec->z.state)
        (void)(is_encoder(codec->kind) ? deflateEnd(&codec->z)
                                       : inflateEnd(&codec->z)); /* reports only misuse */
    cn_free(codec->dictionary);
    cn_buf_fini(&codec->input);
    *codec = (struct cn_codec){.kind = codec->kind, .failed = true};
}

/* What goes in and out of one call of a library. */
struct pass {
    const uint8_t *next; /* moves on by what is read */
    size_t left;
    uint8_t *to;
    size_t room;
    enum cn_codec_flush flush;
    bool again; /* the library has more to give */
};

/* One call of a library. Returns how much was written. */
static int64_t zlib_once(struct cn_codec *codec, struct pass *pass, struct cn_err *err)
{
    z_stream *z = &codec->z;
    z->next_in = (Bytef *)pass->next;
    z->avail_in = (uInt)(pass->left > 1u << 30 ? 1u << 30 : pass->left);
    z->next_out = pass->to;
    z->avail_out = (uInt)pass->room;
    size_t given = z->avail_in;
    int rc;
    if (is_encoder(codec->kind)) {
        bool all = given == pass->left;
        int mode = !all || pass->flush == CN_CODEC_RUN ? Z_NO_FLUSH
                   : pass->flush == CN_CODEC_FLUSH     ? Z_SYNC_FLUSH
                                                       : Z_FINISH;
        rc = deflate(z, mode);
    } else {
        rc = inflate(z, Z_NO_FLUSH);
        if (rc == Z_NEED_DICT && codec->dictionary) {
            rc = inflateSetDictionary(z, codec->dictionary, (uInt)codec->dictionary_size);
            if (rc == Z_OK)
                rc = inflate(z, Z_NO_FLUSH);
        }
        if (rc == Z_NEED_DICT)
            return cn_err_set(err, CN_EINVALID, "Missing dictionary");
    }
    pass->next = z->next_in;
    pass->left -= given - z->avail_in;
    if (rc == Z_STREAM_END)
        codec->ended = true;
    else if (rc == Z_DATA_ERROR || rc == Z_STREAM_ERROR)
        return cn_err_set(err, CN_EINVALID, "%s", z->msg ? z->msg : "invalid data");
    else if (rc == Z_MEM_ERROR)
        return cn_err_set(err, CN_ENOMEM, "no memory for zlib");
    /* Z_BUF_ERROR: no progress was possible, which is no mistake. */
    pass->again = !codec->ended && z->avail_out == 0;
    return (int64_t)(pass->room - z->avail_out);
}

static int64_t brotli_once(struct cn_codec *codec, struct pass *pass, struct cn_err *err)
{
    size_t available = pass->room;
    if (codec->encoder) {
        codec->fed += pass->left;
        size_t needs = cn_codec_brotli_needs(codec->largest, codec->fed);
        if (!cn_holding_has_room(codec->holding, needs)) /* H3 of holding.h */
            return cn_err_set(err, CN_ENOMEM, "there is no memory to compress now");
        static const BrotliEncoderOperation operations[] = {
            BROTLI_OPERATION_PROCESS, BROTLI_OPERATION_FLUSH, BROTLI_OPERATION_FINISH};
        if (!BrotliEncoderCompressStream(codec->encoder, operations[pass->flush], &pass->left,
                                         &pass->next, &available, &pass->to, NULL))
            return cn_err_set(err, CN_EINVALID, "brotli could not compress");
        codec->ended = BrotliEncoderIsFinished(codec->encoder);
        pass->again = BrotliEncoderHasMoreOutput(codec->encoder) || (pass->left && !codec->ended);
        return (int64_t)(pass->room - available);
    }
    BrotliDecoderResult result = BrotliDecoderDecompressStream(
        codec->decoder, &pass->left, &pass->next, &available, &pass->to, NULL);
    if (result == BROTLI_DECODER_RESULT_ERROR)
        return cn_err_set(err, CN_EINVALID, "%s",
                          BrotliDecoderErrorString(BrotliDecoderGetErrorCode(codec->decoder)));
    codec->ended = result == BROTLI_DECODER_RESULT_SUCCESS;
    pass->again = result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    return (int64_t)(pass->room - available);
}

static int64_t zstd_once(struct cn_codec *codec, struct pass *pass, struct cn_err *err)
{
    ZSTD_inBuffer in = {.src = pass->next, .size = pass->left};
    ZSTD_outBuffer out = {.dst = pass->to, .size = pass->room};
    size_t rc;
    if (codec->zstd_encoder) {
        static const ZSTD_EndDirective ends[] = {ZSTD_e_continue, ZSTD_e_flush, ZSTD_e_end};
        rc = ZSTD_compressStream2(codec->zstd_encoder, &out, &in, ends[pass->flush]);
    } else {
        rc = ZSTD_decompressStream(codec->zstd_decoder, &out, &in);
    }
    if (ZSTD_isError(rc))
        return cn_err_set(err, CN_EINVALID, "%s", ZSTD_getErrorName(rc));
    pass->next += in.pos;
    pass->left -= in.pos;
    if (codec->zstd_encoder) {
        codec->ended = pass->flush == CN_CODEC_END && rc == 0;
        pass->again = pass->flush == CN_CODEC_RUN ? pass->left > 0 : rc > 0;
    } else {
        /* 0: a frame is complete and given out. Before its first byte there is no frame. */
        codec->ended = rc == 0;
        pass->again = !codec->ended && out.pos == out.size;
    }
    return (int64_t)out.pos;
}

/* Works through `bytes` until they are used up or `limit` bytes came out; *left is how many of them
 * are not used. */
static int work(struct cn_codec *codec, const uint8_t *bytes, size_t *left,
                enum cn_codec_flush flush, size_t limit, struct cn_buf *out, struct cn_err *err)
{
    static const uint8_t nothing[1];
    size_t begin = out->size;
    struct pass pass = {
        .next = bytes ? bytes : nothing, .left = *left, .flush = flush, .again = true};
    while (pass.again && !codec->ended && out->size - begin < limit) {
        size_t want = limit - (out->size - begin);
        if (want > OUTPUT_STEP && out->size - begin < 4 * OUTPUT_STEP)
            want = OUTPUT_STEP;
        cn_buf_reserve(out, want);
        pass.again = false;
        pass.to = out->data + out->size;
        pass.room = want;
        int64_t wrote = is_brotli(codec->kind) ? brotli_once(codec, &pass, err)
                        : is_zlib(codec->kind) ? zlib_once(codec, &pass, err)
                                               : zstd_once(codec, &pass, err);
        if (wrote < 0) {
            codec->failed = true;
            return (int)wrote;
        }
        out->size += (size_t)wrote;
        if (!pass.again && pass.left && !codec->ended && is_zlib(codec->kind))
            pass.again = true; /* more than zlib's counter holds */
    }
    *left = pass.left;
    codec->more = pass.again && !codec->ended;
    if (codec->ended && pass.left && !is_encoder(codec->kind))
        codec->trailing = true;
    return 0;
}

void cn_codec_feed(struct cn_codec *codec, const uint8_t *bytes, size_t size)
{
    if (codec->input_used == codec->input.size) {
        cn_buf_clear(&codec->input);
        codec->input_used = 0;
    }
    cn_buf_append(&codec->input, bytes, size);
}

int cn_codec_step(struct cn_codec *codec, enum cn_codec_flush flush, size_t limit,
                  struct cn_buf *out, struct cn_err *err)
{
    if (codec->failed)
        return cn_err_set(err, CN_EINVALID, "the stream has failed or is closed");
    const uint8_t *bytes = codec->input.data ? codec->input.data + codec->input_used : NULL;
    size_t left = codec->input.size - codec->input_used;
    int rc = work(codec, bytes, &left, flush, limit, out, err);
    codec->input_used = codec->input.size - left;
    return rc;
}

int cn_codec_run(struct cn_codec *codec, const uint8_t *bytes, size_t size,
                 enum cn_codec_flush flush, size_t limit, struct cn_buf *out, struct cn_err *err)
{
    if (codec->failed || codec->input_used < codec->input.size || codec->more) {
        cn_codec_feed(codec, bytes, size);
        return cn_codec_step(codec, flush, limit, out, err);
    }
    size_t left = size;
    int rc = work(codec, bytes, &left, flush, limit, out, err);
    if (rc == 0 && left && !codec->ended)
        cn_codec_feed(codec, bytes + (size - left), left);
    return rc;
}

bool cn_codec_truncated(const struct cn_codec *codec)
{
    return !is_encoder(codec->kind) && !codec->ended;
}
