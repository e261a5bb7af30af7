/* SPDX-License-Identifier: Apache-2.0 */
/* codec/codec.h - streaming compression and decompression: zlib, brotli and zstd
 * behind one interface, without JavaScript.
 *
 * Bytes go in with cn_codec_feed(), which copies what it cannot use yet; output
 * comes out with cn_codec_step(), a bounded piece at a time, so that a small
 * input that expands enormously never does so in one call.
 *
 * Threads:   one at a time, any.
 * Ownership: the caller's; cn_codec_fini() releases the library's state.
 *
 * C1  All memory that the libraries take is asked of the holding. */
#ifndef CN_CODEC_CODEC_H
#define CN_CODEC_CODEC_H
#include <brotli/decode.h>
#include <brotli/encode.h>
#include <stdbool.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/holding.h"

/* Numbers shared with prelude/web/compression.js and prelude/node/zlib. */
enum cn_codec_kind {
    CN_CODEC_DEFLATE,     /* zlib's format */
    CN_CODEC_DEFLATE_RAW, /* without header and checksum */
    CN_CODEC_GZIP,
    CN_CODEC_INFLATE,
    CN_CODEC_INFLATE_RAW,
    CN_CODEC_GUNZIP, /* one member; what follows is reported as trailing */
    CN_CODEC_UNZIP,  /* gzip or zlib, by its header */
    CN_CODEC_BROTLI_ENCODE,
    CN_CODEC_BROTLI_DECODE,
    CN_CODEC_ZSTD_ENCODE,
    CN_CODEC_ZSTD_DECODE, /* one frame; what follows is reported as trailing */
    CN_CODEC_KINDS,
};

enum cn_codec_flush {
    CN_CODEC_RUN,   /* give out what there is no use keeping */
    CN_CODEC_FLUSH, /* everything fed so far becomes decodable */
    CN_CODEC_END,   /* no more input will come */
};

struct cn_codec_options {
    int level;                 /* zlib -1 to 9; brotli quality 0 to 11; zstd up to 22 */
    int window_bits;           /* zlib 8 to 15; brotli 10 to 24; 0: the library's default */
    int mem_level;             /* zlib 1 to 9; 0: default */
    int strategy;              /* zlib 0 to 4; brotli mode 0 to 2 */
    const uint8_t *dictionary; /* zlib only; borrowed during the call */
    size_t dictionary_size;
    struct cn_holding *holding; /* borrowed until cn_codec_fini(); NULL: nobody is asked */
};

struct cn_codec {
    enum cn_codec_kind kind;
    bool ended;    /* decoders: the end of the compressed data was reached */
    bool trailing; /* decoders: and bytes were fed after it */
    bool more;     /* output waits: call cn_codec_step() again before feeding */
    bool failed;
    z_stream z;
    BrotliEncoderState *encoder;
    size_t largest, fed; /* it may take so much; what it was given */
    BrotliDecoderState *decoder;
    ZSTD_CCtx *zstd_encoder;
    ZSTD_DCtx *zstd_decoder;
    uint8_t *dictionary; /* for a decoder that asks for it later */
    size_t dictionary_size;
    struct cn_holding *holding; /* borrowed */
    struct cn_buf input;        /* fed, not consumed yet */
    size_t input_used;
};

/* What brotli's encoder takes at the most, about (its window, tables and nodes); and of that, once
 * it was given so many bytes. */
size_t cn_codec_brotli_largest(int quality, int window_bits);
size_t cn_codec_brotli_needs(size_t largest, size_t fed);

int cn_codec_init(struct cn_codec *codec, enum cn_codec_kind kind,
                  const struct cn_codec_options *options, struct cn_err *err);
void cn_codec_fini(struct cn_codec *codec);

/* Adds input. */
void cn_codec_feed(struct cn_codec *codec, const uint8_t *bytes, size_t size);
/* Appends output to `out` until all input is used or `limit` bytes were added; in the latter case
 * `more` is set. CN_EINVALID for data that cannot be decoded; the codec is dead from then on. */
int cn_codec_step(struct cn_codec *codec, enum cn_codec_flush flush, size_t limit,
                  struct cn_buf *out, struct cn_err *err);
/* Both at once, without copying the input where it is used up. */
int cn_codec_run(struct cn_codec *codec, const uint8_t *bytes, size_t size,
                 enum cn_codec_flush flush, size_t limit, struct cn_buf *out, struct cn_err *err);
/* Decoders: all input came, and the data is not complete. */
bool cn_codec_truncated(const struct cn_codec *codec);

#endif
