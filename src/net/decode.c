/* SPDX-License-Identifier: Apache-2.0 */
/* net/decode.c - a chain of one to three decompressors.
 *
 * Each stage pulls from the one before it; the first pulls from the input fed.
 * A stage keeps one chunk of output, so memory is bounded by the stages' windows
 * whatever the input claims.
 *
 * "deflate" means zlib's format by the standard, but some origins send the bare
 * one: the first two bytes tell them apart (a zlib header is a multiple of 31). */
#define ZSTD_STATIC_LINKING_ONLY /* allocators; Debian's library has had them since 1.0 */
#include "net/decode.h"

#include <string.h>
#include <strings.h>

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/assert.h"
#include "base/holding.h"
#include "base/mem.h"

#define STAGE_COUNT_MAX 3
/* A zstd frame may ask for a window this large (2^23 = 8 MiB, RFC 8878's advice for
 * decoders and RFC 9659's rule for the web) and no larger. */
#define ZSTD_WINDOW_LOG_MAX 23

#define INPUT_MAX (1u << 30) /* what zlib's counters are given at once */

enum coding { CODING_GZIP, CODING_DEFLATE, CODING_BR, CODING_ZSTD };

static const char *const coding_names[] = {"gzip", "deflate", "br", "zstd"};

struct stage {
    enum coding coding;
    struct stage *before; /* NULL: the input fed */
    const uint8_t *input; /* borrowed from `before` or from the caller */
    size_t input_size;
    bool started;      /* saw a byte */
    bool flushed;      /* the library had no more output for the input it saw */
    bool between;      /* at the end of a member or frame: this may be the end of it all */
    bool done;         /* the coded data has ended; what follows is ignored */
    uint8_t head;      /* deflate: the first byte, until the second tells the format */
    bool head_held;    /* `head` waits */
    bool format_known; /* deflate: zlib or bare was decided */
    bool ready;        /* its library has what it begins with */
    union {
        z_stream z;
        BrotliDecoderState *br;
        ZSTD_DStream *zstd;
    } u;
    uint8_t output[CN_DECODE_CHUNK];
};

struct cn_decode {
    struct stage *stages[STAGE_COUNT_MAX]; /* owned; the last one yields the body */
    size_t stage_count;
};

static int coding_find(const char *name, size_t length)
{
    if (length > 2 && strncasecmp(name, "x-", 2) == 0) { /* x-gzip (RFC 9110, 8.4.1.3) */
        name += 2;
        length -= 2;
    }
    for (size_t i = 0; i < CN_ARRAY_COUNT(coding_names); i++) {
        if (strlen(coding_names[i]) == length && strncasecmp(name, coding_names[i], length) == 0)
            return (int)i;
    }
    return -1;
}

static struct stage *stage_new(enum coding coding, struct cn_holding *holding)
{
    struct stage *stage = cn_alloc(sizeof(*stage));
    memset(stage, 0, offsetof(struct stage, output));
    stage->coding = coding;
    stage->flushed = true;
    stage->u.z =
        (z_stream){.zalloc = cn_holding_alloc_items, .zfree = cn_holding_free, .opaque = holding};
    switch (coding) {
    case CODING_GZIP:
        stage->ready = inflateInit2(&stage->u.z, 16 + MAX_WBITS) == Z_OK;
        break;
    case CODING_DEFLATE:
        stage->ready = inflateInit2(&stage->u.z, MAX_WBITS) == Z_OK;
        break;
    case CODING_BR:
        stage->u.br = BrotliDecoderCreateInstance(cn_holding_alloc, cn_holding_free, holding);
        stage->ready = stage->u.br != NULL;
        break;
    case CODING_ZSTD:
        stage->u.zstd =
            ZSTD_createDCtx_advanced((ZSTD_customMem){cn_holding_alloc, cn_holding_free, holding});
        stage->ready = stage->u.zstd != NULL;
        if (stage->ready)
            (void)ZSTD_DCtx_setParameter(stage->u.zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
        break;
    }
    return stage;
}

static void stage_free(struct stage *stage)
{
    switch (stage->coding) {
    case CODING_GZIP:
    case CODING_DEFLATE:
        inflateEnd(&stage->u.z);
        break;
    case CODING_BR:
        BrotliDecoderDestroyInstance(stage->u.br);
        break;
    case CODING_ZSTD:
        ZSTD_freeDStream(stage->u.zstd);
        break;
    }
    cn_free(stage);
}

static int stage_damaged(struct stage *stage, const char *detail, struct cn_err *err)
{
    return cn_err_set(err, CN_EPROTOCOL, "the body is not valid %s data: %s",
                      coding_names[stage->coding], detail ? detail : "damaged");
}

static int no_memory(const struct stage *stage, struct cn_err *err)
{
    return cn_err_set(err, CN_ENOMEM, "there is no memory to undo %s now",
                      coding_names[stage->coding]);
}

static int inflate_some(struct stage *stage, struct cn_err *err)
{
    z_stream *z = &stage->u.z;
    if (stage->between) { /* one gzip member after another is one body */
        /* Zeros or text after the last member is padding, as gzip(1) has it. */
        stage->done = stage->input[0] != 0x1f;
        if (stage->done)
            return 0;
        if (inflateReset(z) != Z_OK)
            return stage_damaged(stage, "another member cannot begin", err);
        stage->between = false;
    }
    uInt given = stage->input_size < INPUT_MAX ? (uInt)stage->input_size : INPUT_MAX;
    z->next_in = (Bytef *)stage->input;
    z->avail_in = given;
    z->next_out = stage->output;
    z->avail_out = sizeof(stage->output);
    int rc = inflate(z, Z_NO_FLUSH);
    size_t made = sizeof(stage->output) - z->avail_out;
    stage->input += given - z->avail_in;
    stage->input_size -= given - z->avail_in;
    stage->flushed = z->avail_out > 0;
    if (rc == Z_STREAM_END) {
        stage->flushed = true;
        stage->between = stage->coding == CODING_GZIP;
        stage->done = !stage->between;
    } else if (rc == Z_MEM_ERROR) {
        return no_memory(stage, err);
    } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
        return stage_damaged(stage, z->msg, err);
    }
    return (int)made;
}

/* Feeds a bare-deflate or zlib decoder once its first two bytes are there. */
static int deflate_some(struct stage *stage, struct cn_err *err)
{
    if (stage->format_known)
        return inflate_some(stage, err);
    if (!stage->head_held) {
        stage->head = stage->input[0];
        stage->head_held = true;
        stage->input++;
        stage->input_size--;
        return 0;
    }
    unsigned first = stage->head, second = stage->input[0];
    bool zlib_format = (first & 0x0f) == 8 && ((first << 8) | second) % 31 == 0;
    if (!zlib_format && inflateReset2(&stage->u.z, -MAX_WBITS) != Z_OK)
        return stage_damaged(stage, "the decoder cannot be reset", err);
    stage->format_known = true;
    /* The held byte first; it is too little to make output. */
    const uint8_t *rest = stage->input;
    size_t rest_size = stage->input_size;
    stage->input = &stage->head;
    stage->input_size = 1;
    int rc = inflate_some(stage, err);
    CN_ASSERT(rc < 0 || (rc == 0 && stage->input_size == 0));
    stage->input = rest;
    stage->input_size = rest_size;
    return rc < 0 ? rc : inflate_some(stage, err);
}

static int brotli_some(struct stage *stage, struct cn_err *err)
{
    uint8_t *out = stage->output;
    size_t room = sizeof(stage->output);
    BrotliDecoderResult rc = BrotliDecoderDecompressStream(stage->u.br, &stage->input_size,
                                                           &stage->input, &room, &out, NULL);
    if (rc == BROTLI_DECODER_RESULT_ERROR) {
        BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(stage->u.br);
        if (code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
            code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES)
            return no_memory(stage, err);
        return stage_damaged(stage, BrotliDecoderErrorString(code), err);
    }
    stage->flushed = rc != BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    stage->done = rc == BROTLI_DECODER_RESULT_SUCCESS;
    return (int)(sizeof(stage->output) - room);
}

static int zstd_some(struct stage *stage, struct cn_err *err)
{
    ZSTD_inBuffer in = {stage->input, stage->input_size, 0};
    ZSTD_outBuffer out = {stage->output, sizeof(stage->output), 0};
    size_t rc = ZSTD_decompressStream(stage->u.zstd, &out, &in);
    if (ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation)
        return no_memory(stage, err);
    if (ZSTD_isError(rc))
        return stage_damaged(stage, ZSTD_getErrorName(rc), err);
    stage->input += in.pos;
    stage->input_size -= in.pos;
    stage->between = rc == 0; /* another frame may follow */
    stage->flushed = stage->between || out.pos < out.size;
    return (int)out.pos;
}

/* The next piece of output of one stage: its size, 0 if more input is needed. */
static int stage_next(struct stage *stage, const uint8_t **bytes, struct cn_err *err)
{
    for (;;) {
        if (stage->done)
            stage->input_size = 0;
        if (stage->input_size == 0 && stage->flushed) {
            if (!stage->before)
                return 0;
            int rc = stage_next(stage->before, &stage->input, err);
            if (rc <= 0)
                return rc;
            stage->input_size = (size_t)rc;
            continue;
        }
        if (!stage->ready)
            return no_memory(stage, err);
        stage->started = true;
        int made;
        switch (stage->coding) {
        case CODING_GZIP:
            made = inflate_some(stage, err);
            break;
        case CODING_DEFLATE:
            made = deflate_some(stage, err);
            break;
        case CODING_BR:
            made = brotli_some(stage, err);
            break;
        case CODING_ZSTD:
            made = zstd_some(stage, err);
            break;
        default:
            CN_UNREACHABLE();
        }
        if (made != 0) {
            *bytes = stage->output;
            return made;
        }
    }
}

struct cn_decode *cn_decode_new(const char *coding, struct cn_holding *holding)
{
    enum coding found[STAGE_COUNT_MAX];
    size_t count = 0;
    for (const char *at = coding; *at;) {
        at += strspn(at, ", \t");
        size_t length = strcspn(at, ", \t");
        if (length == 0)
            break;
        if (!(length == 8 && strncasecmp(at, "identity", 8) == 0)) {
            int one = coding_find(at, length);
            if (one < 0 || count == STAGE_COUNT_MAX)
                return NULL;
            found[count++] = (enum coding)one;
        }
        at += length;
    }
    if (count == 0)
        return NULL;
    struct cn_decode *decode = CN_NEW(struct cn_decode);
    while (count > 0) { /* the coding named last was applied last */
        struct stage *stage = stage_new(found[--count], holding);
        if (decode->stage_count > 0)
            stage->before = decode->stages[decode->stage_count - 1];
        decode->stages[decode->stage_count++] = stage;
    }
    return decode;
}

void cn_decode_free(struct cn_decode *decode)
{
    if (!decode)
        return;
    for (size_t i = 0; i < decode->stage_count; i++)
        stage_free(decode->stages[i]);
    cn_free(decode);
}

void cn_decode_feed(struct cn_decode *decode, const void *bytes, size_t size)
{
    struct stage *first = decode->stages[0];
    CN_ASSERT(first->input_size == 0);
    first->input = bytes;
    first->input_size = size;
}

int cn_decode_next(struct cn_decode *decode, const uint8_t **bytes, struct cn_err *err)
{
    return stage_next(decode->stages[decode->stage_count - 1], bytes, err);
}

int cn_decode_finish(struct cn_decode *decode, struct cn_err *err)
{
    for (size_t i = 0; i < decode->stage_count; i++) {
        struct stage *stage = decode->stages[i];
        /* No byte at all is an empty body, whatever its headers say. */
        if (stage->started && !stage->done && !stage->between)
            return stage_damaged(stage, "it ends too early", err);
    }
    return 0;
}
