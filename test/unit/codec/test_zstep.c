/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of node:zlib: there and back with any sizes of input and output, failures by their codes.
 */
#include "codec/zstep.h"

#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "test/lib/test.h"

static const struct cn_zstep_options usual = {.window_bits = 15, .level = 6, .mem_level = 8};

/* Opens with defaults. */
static void open_any(struct cn_zstep *step, enum cn_zstep_mode mode)
{
    if (mode <= CN_ZSTEP_UNZIP)
        CHECK(cn_zstep_open(step, mode, &usual, NULL) == NULL);
    else if (mode <= CN_ZSTEP_BROTLI_ENCODE)
        CHECK(cn_zstep_open_brotli(step, mode, NULL, 0, NULL));
    else
        CHECK(cn_zstep_open_zstd(step, mode, NULL, 0, -1, NULL));
}

/* The number of a library for "no more will come". */
static int finish_of(enum cn_zstep_mode mode)
{
    return mode <= CN_ZSTEP_UNZIP           ? Z_FINISH
           : mode <= CN_ZSTEP_BROTLI_ENCODE ? (int)BROTLI_OPERATION_FINISH
                                            : (int)ZSTD_e_end;
}

/* Gives all of `in` in pieces of `in_step` and takes output in pieces of `out_step`. */
static struct cn_zstep_failure run(struct cn_zstep *step, const struct cn_buf *in, size_t in_step,
                                   size_t out_step, struct cn_buf *out)
{
    size_t at = 0;
    for (;;) {
        size_t size = in->size - at < in_step ? in->size - at : in_step;
        bool last = at + size == in->size;
        cn_buf_reserve(out, out_step);
        struct cn_zstep_io io = {.in = in->data ? in->data + at : NULL,
                                 .in_size = size,
                                 .out = out->data + out->size,
                                 .out_size = out_step,
                                 .flush = last ? finish_of(step->opened_as) : 0};
        struct cn_zstep_failure failure = cn_zstep_write(step, &io);
        out->size += out_step - io.out_size;
        at += size - io.in_size;
        if (failure.code || (last && io.out_size > 0))
            return failure;
    }
}

static void fill(struct cn_buf *buf, size_t size)
{
    uint32_t state = 7;
    while (buf->size < size) {
        state = state * 1664525u + 1013904223u;
        cn_buf_append_byte(buf, (uint8_t)((state >> 24) & 15));
    }
}

static const struct {
    enum cn_zstep_mode packs, unpacks;
} pairs[] = {{CN_ZSTEP_DEFLATE, CN_ZSTEP_INFLATE},
             {CN_ZSTEP_GZIP, CN_ZSTEP_GUNZIP},
             {CN_ZSTEP_DEFLATERAW, CN_ZSTEP_INFLATERAW},
             {CN_ZSTEP_DEFLATE, CN_ZSTEP_UNZIP},
             {CN_ZSTEP_GZIP, CN_ZSTEP_UNZIP},
             {CN_ZSTEP_BROTLI_ENCODE, CN_ZSTEP_BROTLI_DECODE},
             {CN_ZSTEP_ZSTD_COMPRESS, CN_ZSTEP_ZSTD_DECOMPRESS}};

TEST(zstep, every_kind_there_and_back_in_pieces_of_any_size)
{
    static const size_t sizes[] = {0, 1, 20000}, steps[] = {1, 999, 70000};
    for (size_t p = 0; p < CN_ARRAY_COUNT(pairs); p++) {
        for (size_t s = 0; s < CN_ARRAY_COUNT(sizes) * CN_ARRAY_COUNT(steps); s++) {
            struct cn_buf plain = {0}, packed = {0}, back = {0};
            struct cn_zstep there, here;
            size_t step = steps[s % CN_ARRAY_COUNT(steps)];
            fill(&plain, sizes[s / CN_ARRAY_COUNT(steps)]);
            open_any(&there, pairs[p].packs);
            open_any(&here, pairs[p].unpacks);
            for (int again = 0; again < 2; again++) { /* and once more after a reset */
                cn_buf_clear(&packed);
                cn_buf_clear(&back);
                CHECK(!run(&there, &plain, step, 1000, &packed).code);
                CHECK(!run(&here, &packed, step, 999, &back).code);
                CHECK_INT(plain.size, back.size);
                CHECK(plain.size == 0 || memcmp(plain.data, back.data, plain.size) == 0);
                CHECK(!cn_zstep_reset(&there).code && !cn_zstep_reset(&here).code);
            }
            cn_zstep_close(&there);
            cn_zstep_close(&here);
            cn_zstep_close(&here); /* Z1: twice is harmless */
            cn_buf_fini(&plain);
            cn_buf_fini(&packed);
            cn_buf_fini(&back);
        }
    }
}

TEST(zstep, data_that_are_cut_short_or_changed_have_a_code)
{
    static const char *const codes[] = {"Z_DATA_ERROR",
                                        "Z_DATA_ERROR",
                                        "Z_DATA_ERROR",
                                        "Z_DATA_ERROR",
                                        "Z_DATA_ERROR",
                                        NULL,
                                        "ZSTD_error_prefix_unknown"};
    for (size_t p = 0; p < CN_ARRAY_COUNT(pairs); p++) {
        struct cn_buf plain = {0}, packed = {0}, back = {0};
        struct cn_zstep step;
        fill(&plain, 5000);
        open_any(&step, pairs[p].packs);
        CHECK(!run(&step, &plain, 5000, 9000, &packed).code);
        cn_zstep_close(&step);
        struct cn_buf shorter = {.data = packed.data, .size = packed.size - 5};
        open_any(&step, pairs[p].unpacks);
        struct cn_zstep_failure failure = run(&step, &shorter, 9000, 9000, &back);
        CHECK_STR("Z_BUF_ERROR", failure.code);
        CHECK_INT(Z_BUF_ERROR, failure.number);
        CHECK_STR("unexpected end of file", failure.text);
        cn_zstep_close(&step);
        memset(packed.data, 0xff, 8);
        open_any(&step, pairs[p].unpacks);
        cn_buf_clear(&back);
        failure = run(&step, &packed, 9000, 9000, &back);
        CHECK(failure.code);
        if (codes[p]) /* brotli has its own, by version */
            CHECK_STR(codes[p], failure.code);
        CHECK(failure.number != 0 && failure.text[0]);
        cn_zstep_close(&step);
        cn_buf_fini(&plain);
        cn_buf_fini(&packed);
        cn_buf_fini(&back);
    }
}

/* Z2 */
TEST(zstep, members_of_gzip_are_read_as_one_and_zeros_after_them_are_padding)
{
    struct cn_buf first = {0}, both = {0}, back = {0};
    struct cn_zstep step;
    cn_buf_append_str(&first, "one ");
    open_any(&step, CN_ZSTEP_GZIP);
    for (int i = 0; i < 2; i++) {
        CHECK(!run(&step, &first, 100, 100, &both).code);
        CHECK(!cn_zstep_reset(&step).code);
    }
    cn_zstep_close(&step);
    cn_buf_append(&both, "\0\0\0", 3);
    open_any(&step, CN_ZSTEP_GUNZIP);
    cn_buf_reserve(&back, 100);
    struct cn_zstep_io io = {
        .in = both.data, .in_size = both.size, .out = back.data, .out_size = 100};
    CHECK(!cn_zstep_write(&step, &io).code);
    CHECK_INT(8, 100 - io.out_size);
    CHECK_INT(3, io.in_size);
    CHECK(memcmp(back.data, "one one ", 8) == 0);
    cn_zstep_close(&step);
    cn_buf_fini(&first);
    cn_buf_fini(&both);
    cn_buf_fini(&back);
}

TEST(zstep, a_dictionary_is_needed_where_one_was_used)
{
    static const uint8_t words[] = "the quick brown fox", others[] = "something else";
    struct cn_zstep_options with = usual;
    with.dictionary = words;
    with.dictionary_size = sizeof(words);
    struct cn_buf plain = {0}, packed = {0}, back = {0};
    struct cn_zstep step;
    cn_buf_append_str(&plain, "the quick brown fox again");
    CHECK(cn_zstep_open(&step, CN_ZSTEP_DEFLATE, &with, NULL) == NULL);
    CHECK(!run(&step, &plain, 100, 100, &packed).code);
    cn_zstep_close(&step);
    CHECK(cn_zstep_open(&step, CN_ZSTEP_INFLATE, &with, NULL) == NULL);
    CHECK(!run(&step, &packed, 100, 100, &back).code);
    CHECK_STR("the quick brown fox again", cn_buf_text(&back));
    cn_zstep_close(&step);
    CHECK(cn_zstep_open(&step, CN_ZSTEP_INFLATE, &usual, NULL) == NULL);
    CHECK_STR("Missing dictionary", run(&step, &packed, 100, 100, &back).text);
    cn_zstep_close(&step);
    with.dictionary = others;
    with.dictionary_size = sizeof(others);
    CHECK(cn_zstep_open(&step, CN_ZSTEP_INFLATE, &with, NULL) == NULL);
    CHECK_STR("Bad dictionary", run(&step, &packed, 100, 100, &back).text);
    cn_zstep_close(&step);
    cn_buf_fini(&plain);
    cn_buf_fini(&packed);
    cn_buf_fini(&back);
}

TEST(zstep, parameters_that_make_no_sense_are_refused)
{
    struct cn_zstep step;
    struct cn_zstep_options bad = usual;
    bad.window_bits = 16;
    CHECK_STR("Initialization failed", cn_zstep_open(&step, CN_ZSTEP_DEFLATE, &bad, NULL));
    bad = usual;
    bad.level = 99;
    CHECK(cn_zstep_open(&step, CN_ZSTEP_DEFLATE, &bad, NULL) != NULL);
    int32_t number_of_none[] = {CN_ZSTEP_UNSET, CN_ZSTEP_UNSET, CN_ZSTEP_UNSET, CN_ZSTEP_UNSET,
                                CN_ZSTEP_UNSET, CN_ZSTEP_UNSET, CN_ZSTEP_UNSET, CN_ZSTEP_UNSET,
                                CN_ZSTEP_UNSET, CN_ZSTEP_UNSET, CN_ZSTEP_UNSET, 5};
    CHECK(!cn_zstep_open_brotli(&step, CN_ZSTEP_BROTLI_ENCODE, number_of_none, 12, NULL));
    CHECK(cn_zstep_open_brotli(&step, CN_ZSTEP_BROTLI_ENCODE, number_of_none, 11, NULL));
    cn_zstep_close(&step);
    int32_t no_parameter[] = {99999, 1};
    CHECK(!cn_zstep_open_zstd(&step, CN_ZSTEP_ZSTD_COMPRESS, no_parameter, 2, -1, NULL));
    CHECK(!cn_zstep_open_zstd(&step, CN_ZSTEP_ZSTD_DECOMPRESS, no_parameter, 2, -1, NULL));
    /* Another level in the middle; a decompressor has none. */
    open_any(&step, CN_ZSTEP_DEFLATE);
    CHECK(!cn_zstep_params(&step, 1, Z_DEFAULT_STRATEGY).code);
    CHECK_STR("Z_STREAM_ERROR", cn_zstep_params(&step, 99, Z_DEFAULT_STRATEGY).code);
    cn_zstep_close(&step);
    open_any(&step, CN_ZSTEP_INFLATE);
    CHECK(!cn_zstep_params(&step, 99, 0).code);
    cn_zstep_close(&step);
}

/* What was promised to zstd is kept, or it fails. */
TEST(zstep, another_size_than_was_pledged_fails)
{
    struct cn_buf plain = {0}, packed = {0};
    struct cn_zstep step;
    fill(&plain, 100);
    CHECK(cn_zstep_open_zstd(&step, CN_ZSTEP_ZSTD_COMPRESS, NULL, 0, 50, NULL));
    CHECK_STR("ZSTD_error_srcSize_wrong", run(&step, &plain, 60, 1000, &packed).code);
    cn_zstep_close(&step);
    cn_buf_fini(&plain);
    cn_buf_fini(&packed);
}

static bool open_within(struct cn_holding *holding, size_t bytes)
{
    size_t *room = (size_t *)(holding + 1);
    if (!holding->must && bytes > *room)
        return false;
    *room -= bytes;
    return true;
}

static void close_within(struct cn_holding *holding, size_t bytes)
{
    *(size_t *)(holding + 1) += bytes;
}

TEST(zstep, a_reset_without_memory_is_a_failure_and_leaves_what_was)
{
    struct {
        struct cn_holding base;
        size_t room;
    } purse = {{.take = open_within, .give = close_within}, (size_t)256 << 20};
    for (int mode = CN_ZSTEP_BROTLI_DECODE; mode <= CN_ZSTEP_BROTLI_ENCODE; mode++) {
        struct cn_zstep step;
        purse.room = (size_t)256 << 20;
        CHECK(cn_zstep_open_brotli(&step, (enum cn_zstep_mode)mode, NULL, 0, &purse.base));
        size_t left = purse.room;
        purse.room = 0;
        CHECK_STR("Z_MEM_ERROR", cn_zstep_reset(&step).code);
        purse.room = left;
        uint8_t out[100];
        struct cn_zstep_io io = {.out = out, .out_size = sizeof(out), .flush = 0};
        CHECK(!cn_zstep_write(&step, &io).code);
        CHECK(!cn_zstep_reset(&step).code);
        cn_zstep_close(&step);
        CHECK_INT((size_t)256 << 20, purse.room);
    }
}
