/* SPDX-License-Identifier: Apache-2.0 */
/* codec/zstep.h - one step of a compressor or decompressor, as node:zlib takes them: it uses what
 * it can of the input, fills what it can of the output, and tells how much of both is left. codec.h
 * is the one for streams; here the caller drives, with the libraries' own parameters and flushes.
 *
 * A failure has the number, the code and the text of Node.js.
 *
 * Z1  After cn_zstep_close() nothing but another close may be called.
 * Z2  Members of gzip that follow one another are read as one; zeros after the last are padding.
 *
 * Threads:   one at a time, any.
 * Ownership: the caller's memory; cn_zstep_close() releases the libraries' state. */
#ifndef CN_CODEC_ZSTEP_H
#define CN_CODEC_ZSTEP_H
#include <brotli/decode.h>
#include <brotli/encode.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>
#include <zstd.h>

#include "base/holding.h"

/* As Node.js counts them: prelude/node/zlib.js. */
enum cn_zstep_mode {
    CN_ZSTEP_NONE,
    CN_ZSTEP_DEFLATE,
    CN_ZSTEP_INFLATE,
    CN_ZSTEP_GZIP,
    CN_ZSTEP_GUNZIP,
    CN_ZSTEP_DEFLATERAW,
    CN_ZSTEP_INFLATERAW,
    CN_ZSTEP_UNZIP, /* gzip or zlib, by its first two bytes */
    CN_ZSTEP_BROTLI_DECODE,
    CN_ZSTEP_BROTLI_ENCODE,
    CN_ZSTEP_ZSTD_COMPRESS,
    CN_ZSTEP_ZSTD_DECOMPRESS,
};

struct cn_zstep {
    enum cn_zstep_mode mode;      /* what it does now: CN_ZSTEP_UNZIP becomes one of the others */
    enum cn_zstep_mode opened_as; /* what reset() goes back to */
    int window_bits, level, mem_level, strategy;
    unsigned magic_seen; /* CN_ZSTEP_UNZIP: bytes of gzip's magic so far */
    bool open, z_ready;
    struct cn_holding *holding; /* borrowed */
    bool frame_done;            /* zstd: a frame has ended, and no other begun */
    z_stream z;
    uint8_t *dictionary;
    size_t dictionary_size;
    BrotliEncoderState *encoder;
    size_t largest, fed; /* it may take so much; what it was given */
    BrotliDecoderState *decoder;
    ZSTD_CCtx *zstd_encoder;
    ZSTD_DCtx *zstd_decoder;
};

struct cn_zstep_failure {
    int number;
    const char *code; /* NULL: none */
    const char *text;
};

struct cn_zstep_options {
    int window_bits; /* 0 to 15 */
    int level, mem_level, strategy;
    const uint8_t *dictionary; /* copied; NULL: none */
    size_t dictionary_size;
};
/* `holding` is asked for all memory of the libraries, until the step is closed; NULL: nobody is.
 * NULL, or what is wrong. After a failure there is nothing to close. */
const char *cn_zstep_open(struct cn_zstep *step, enum cn_zstep_mode mode,
                          const struct cn_zstep_options *options, struct cn_holding *holding);

#define CN_ZSTEP_UNSET (-1) /* of a parameter: the default stays */
/* `params` by their number. False: they are not taken. */
bool cn_zstep_open_brotli(struct cn_zstep *step, enum cn_zstep_mode mode, const int32_t *params,
                          size_t count, struct cn_holding *holding);
/* `params` are pairs of a number and its value; `pledged` is how much will come, or negative. */
bool cn_zstep_open_zstd(struct cn_zstep *step, enum cn_zstep_mode mode, const int32_t *params,
                        size_t count, double pledged, struct cn_holding *holding);
void cn_zstep_close(struct cn_zstep *step);

/* What a step works on. Sizes are at most UINT32_MAX, and tell afterwards what is left. */
struct cn_zstep_io {
    const uint8_t *in;
    size_t in_size;
    uint8_t *out;
    size_t out_size;
    int flush; /* as the library counts it */
};
struct cn_zstep_failure cn_zstep_write(struct cn_zstep *step, struct cn_zstep_io *io);
/* Another level from here on; nothing happens to what is no compressor of zlib's. */
struct cn_zstep_failure cn_zstep_params(struct cn_zstep *step, int level, int strategy);
/* As it was opened, without parameters of brotli's. */
struct cn_zstep_failure cn_zstep_reset(struct cn_zstep *step);

#endif
