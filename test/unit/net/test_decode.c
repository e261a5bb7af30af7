/* SPDX-License-Identifier: Apache-2.0 */
/* Content codings undone: whole, byte by byte, nested, cut at every place. */
#include "net/decode.h"

#include <brotli/encode.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/rand.h"
#include "test/lib/deflated.h"
#include "test/lib/test.h"

static struct cn_buf encoded(const char *coding, const void *bytes, size_t size)
{
    if (strcmp(coding, "gzip") == 0)
        return deflated(bytes, size, 16 + MAX_WBITS);
    if (strcmp(coding, "deflate") == 0)
        return deflated(bytes, size, MAX_WBITS);
    if (strcmp(coding, "deflate-raw") == 0)
        return deflated(bytes, size, -MAX_WBITS);
    struct cn_buf out = {0};
    cn_buf_reserve(&out, ZSTD_compressBound(size) + 1000);
    out.size = out.capacity;
    if (strcmp(coding, "br") == 0) {
        CHECK(BrotliEncoderCompress(5, 22, BROTLI_MODE_GENERIC, size, bytes, &out.size, out.data));
    } else {
        out.size = ZSTD_compress(out.data, out.capacity, bytes, size, 3);
        CHECK(!ZSTD_isError(out.size));
    }
    return out;
}

/* Decodes `size` bytes fed in pieces; the error, or 0 with the result in `out`. */
static int decoded(const char *header, const uint8_t *bytes, size_t size, size_t piece,
                   struct cn_buf *out)
{
    struct cn_decode *decode = cn_decode_new(header, NULL);
    CHECK(decode);
    int rc = 0;
    for (size_t at = 0; at < size && rc >= 0; at += piece) {
        cn_decode_feed(decode, bytes + at, size - at < piece ? size - at : piece);
        const uint8_t *got;
        while ((rc = cn_decode_next(decode, &got, NULL)) > 0) {
            CHECK(rc <= CN_DECODE_CHUNK);
            cn_buf_append(out, got, (size_t)rc);
        }
    }
    if (rc == 0)
        rc = cn_decode_finish(decode, NULL);
    cn_decode_free(decode);
    return rc;
}

static const struct {
    const char *made, *header;
} codings[] = {{"gzip", "gzip"},           {"gzip", " X-GZip "}, {"deflate", "deflate"},
               {"deflate-raw", "deflate"}, {"br", "BR"},         {"zstd", "zstd"}};

static struct cn_buf sample(size_t size)
{
    struct cn_buf out = {0};
    struct cn_rand rand;
    cn_rand_init(&rand, 1);
    while (out.size < size) /* half noise, half repeats */
        cn_buf_printf(&out, "%llx the same again and again ",
                      (unsigned long long)cn_rand_next(&rand));
    out.size = size;
    return out;
}

TEST(decode, gives_back_what_was_encoded)
{
    size_t sizes[] = {0, 1, 1000, CN_DECODE_CHUNK, 2 * CN_DECODE_CHUNK, 300000};
    size_t pieces[] = {1, 7, 16384, 1000000};
    for (size_t c = 0; c < CN_ARRAY_COUNT(codings); c++) {
        for (size_t s = 0; s < CN_ARRAY_COUNT(sizes); s++) {
            struct cn_buf plain = sample(sizes[s]);
            struct cn_buf coded = encoded(codings[c].made, plain.data, plain.size);
            for (size_t p = 0; p < CN_ARRAY_COUNT(pieces); p++) {
                struct cn_buf out = {0};
                CHECK_INT(0, decoded(codings[c].header, coded.data, coded.size, pieces[p], &out));
                CHECK_INT(plain.size, out.size);
                CHECK(plain.size == 0 || memcmp(plain.data, out.data, out.size) == 0);
                cn_buf_fini(&out);
            }
            cn_buf_fini(&plain);
            cn_buf_fini(&coded);
        }
    }
}

TEST(decode, undoes_a_list_from_its_end)
{
    struct cn_buf plain = sample(200000);
    struct cn_buf one = encoded("gzip", plain.data, plain.size);
    struct cn_buf two = encoded("br", one.data, one.size);
    struct cn_buf three = encoded("zstd", two.data, two.size), out = {0};
    CHECK_INT(0, decoded("gzip, br,zstd", three.data, three.size, 1000, &out));
    CHECK_INT(plain.size, out.size);
    CHECK(memcmp(plain.data, out.data, out.size) == 0);
    cn_buf_fini(&plain);
    cn_buf_fini(&one);
    cn_buf_fini(&two);
    cn_buf_fini(&three);
    cn_buf_fini(&out);
}

TEST(decode, joins_gzip_members_and_zstd_frames)
{
    const char *names[] = {"gzip", "zstd"};
    for (size_t i = 0; i < 2; i++) {
        struct cn_buf all = encoded(names[i], "first ", 6), out = {0};
        struct cn_buf second = encoded(names[i], "second", 6);
        cn_buf_append(&all, second.data, second.size);
        for (size_t piece = 1; piece <= all.size; piece += 5) {
            cn_buf_clear(&out);
            CHECK_INT(0, decoded(names[i], all.data, all.size, piece, &out));
            CHECK_STR("first second", cn_buf_text(&out));
        }
        cn_buf_fini(&all);
        cn_buf_fini(&second);
        cn_buf_fini(&out);
    }
}

TEST(decode, ignores_padding_after_gzip)
{
    struct cn_buf all = encoded("gzip", "text", 4), out = {0};
    cn_buf_append(&all, "\0\0\0\0", 4);
    CHECK_INT(0, decoded("gzip", all.data, all.size, 1, &out));
    CHECK_STR("text", cn_buf_text(&out));
    cn_buf_fini(&all);
    cn_buf_fini(&out);
}

TEST(decode, a_cut_body_is_damaged)
{
    struct cn_buf plain = sample(500);
    for (size_t c = 0; c < CN_ARRAY_COUNT(codings); c++) {
        struct cn_buf coded = encoded(codings[c].made, plain.data, plain.size), out = {0};
        for (size_t size = 1; size < coded.size; size++) {
            cn_buf_clear(&out);
            if (decoded(codings[c].header, coded.data, size, 50, &out) != CN_EPROTOCOL)
                test_fail(__FILE__, __LINE__, "%s cut to %zu of %zu was accepted", codings[c].made,
                          size, coded.size);
        }
        cn_buf_fini(&coded);
        cn_buf_fini(&out);
    }
    cn_buf_fini(&plain);
}

TEST(decode, names_that_are_not_known_mean_no_decoding)
{
    const char *names[] = {"",   "identity", "utf-8", "gzip, what", "gzip, gzip, gzip, gzip",
                           "x-", " , "};
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++)
        CHECK(!cn_decode_new(names[i], NULL));
}

TEST(decode, refuses_a_window_larger_than_the_web_allows)
{
    struct cn_buf plain = {0}, out = {0}, coded = {0};
    cn_buf_reserve(&plain, 20 << 20);
    plain.size = 20 << 20;
    memset(plain.data, 'w', plain.size);
    cn_buf_reserve(&coded, ZSTD_compressBound(plain.size));
    ZSTD_CCtx *ctx = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(ctx, ZSTD_c_windowLog, 24);
    ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, 0);
    ZSTD_outBuffer to = {coded.data, coded.capacity, 0};
    ZSTD_inBuffer from = {plain.data, plain.size, 0};
    CHECK_INT(0, ZSTD_compressStream2(ctx, &to, &from, ZSTD_e_end));
    ZSTD_freeCCtx(ctx);
    CHECK_INT(CN_EPROTOCOL, decoded("zstd", coded.data, to.pos, 16384, &out));
    cn_buf_fini(&plain);
    cn_buf_fini(&coded);
    cn_buf_fini(&out);
}
