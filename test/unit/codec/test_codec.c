/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs: every kind there and back in pieces of any size, bounded output, damaged input. */
#include <string.h>

#include "base/mem.h"
#include "codec/codec.h"
#include "test/lib/test.h"

static const struct cn_codec_options defaults = {.level = 5};

/* Feeds `in` in pieces of `step` and takes output in pieces of at most `limit`. */
static int run(struct cn_codec *codec, const struct cn_buf *in, size_t step, size_t limit,
               struct cn_buf *out, struct cn_err *err)
{
    for (size_t at = 0;; at += step) {
        bool last = at + step >= in->size;
        size_t size = last ? in->size - at : step;
        int rc = cn_codec_run(codec, in->data + at, size, last ? CN_CODEC_END : CN_CODEC_RUN, limit,
                              out, err);
        while (rc == 0 && codec->more) {
            size_t before = out->size;
            rc = cn_codec_step(codec, last ? CN_CODEC_END : CN_CODEC_RUN, limit, out, err);
            CHECK(out->size - before <= limit);
        }
        if (rc < 0 || last)
            return rc;
    }
}

static void fill(struct cn_buf *buf, size_t size)
{
    uint32_t state = 1;
    while (buf->size < size) {
        state = state * 1664525u + 1013904223u;
        cn_buf_append_byte(buf, (uint8_t)((state >> 24) & 31));
    }
}

static void there_and_back(enum cn_codec_kind encoder, enum cn_codec_kind decoder)
{
    static const size_t sizes[] = {0, 1, 1000, 300000};
    static const size_t steps[] = {7, 1000, 65536};
    for (size_t s = 0; s < 4; s++) {
        for (size_t k = 0; k < 3; k++) {
            struct cn_buf plain = {0}, packed = {0}, back = {0};
            struct cn_codec codec;
            struct cn_err err;
            cn_buf_reserve(&plain, 1);
            fill(&plain, sizes[s]);
            CHECK_INT(0, cn_codec_init(&codec, encoder, &defaults, &err));
            CHECK_INT(0, run(&codec, &plain, steps[k], 1000, &packed, &err));
            cn_codec_fini(&codec);
            CHECK_INT(0, cn_codec_init(&codec, decoder, &defaults, &err));
            CHECK_INT(0, run(&codec, &packed, steps[k], 1000, &back, &err));
            CHECK(codec.ended && !codec.trailing && !cn_codec_truncated(&codec));
            CHECK_INT(plain.size, back.size);
            CHECK(plain.size == 0 || memcmp(plain.data, back.data, plain.size) == 0);
            cn_codec_fini(&codec);
            cn_buf_fini(&plain);
            cn_buf_fini(&packed);
            cn_buf_fini(&back);
        }
    }
}

TEST(codec, every_kind_there_and_back)
{
    there_and_back(CN_CODEC_DEFLATE, CN_CODEC_INFLATE);
    there_and_back(CN_CODEC_DEFLATE_RAW, CN_CODEC_INFLATE_RAW);
    there_and_back(CN_CODEC_GZIP, CN_CODEC_GUNZIP);
    there_and_back(CN_CODEC_GZIP, CN_CODEC_UNZIP);
    there_and_back(CN_CODEC_DEFLATE, CN_CODEC_UNZIP);
    there_and_back(CN_CODEC_BROTLI_ENCODE, CN_CODEC_BROTLI_DECODE);
    there_and_back(CN_CODEC_ZSTD_ENCODE, CN_CODEC_ZSTD_DECODE);
}

static void tells_apart(enum cn_codec_kind encoder, enum cn_codec_kind decoder)
{
    struct cn_buf plain = {0}, packed = {0}, out = {0};
    struct cn_codec codec;
    struct cn_err err;
    fill(&plain, 5000);
    CHECK_INT(0, cn_codec_init(&codec, encoder, &defaults, &err));
    CHECK_INT(0, run(&codec, &plain, 5000, 100000, &packed, &err));
    cn_codec_fini(&codec);

    packed.size -= 3;
    CHECK_INT(0, cn_codec_init(&codec, decoder, &defaults, &err));
    CHECK_INT(0, run(&codec, &packed, 100, 100000, &out, &err));
    CHECK(cn_codec_truncated(&codec) && !codec.trailing);
    cn_codec_fini(&codec);
    packed.size += 3;

    cn_buf_append_byte(&packed, 0);
    cn_buf_clear(&out);
    CHECK_INT(0, cn_codec_init(&codec, decoder, &defaults, &err));
    CHECK_INT(0, run(&codec, &packed, packed.size, 100000, &out, &err));
    CHECK(codec.trailing);
    cn_codec_fini(&codec);

    packed.data[packed.size / 2] ^= 0xff;
    CHECK_INT(0, cn_codec_init(&codec, decoder, &defaults, &err));
    CHECK_INT(CN_EINVALID, run(&codec, &packed, 100, 100000, &out, &err));
    CHECK_INT(CN_EINVALID, cn_codec_step(&codec, CN_CODEC_RUN, 10, &out, &err));
    cn_codec_fini(&codec);
    cn_buf_fini(&plain);
    cn_buf_fini(&packed);
    cn_buf_fini(&out);
}

TEST(codec, tells_truncated_trailing_and_damaged_data_apart)
{
    tells_apart(CN_CODEC_GZIP, CN_CODEC_GUNZIP);
}

TEST(codec, a_damaged_or_truncated_frame_of_zstd_is_refused_and_its_output_bounded)
{
    struct cn_buf plain = {0}, packed = {0}, out = {0};
    struct cn_codec codec;
    struct cn_err err;
    cn_buf_reserve(&plain, 1 << 20);
    memset(plain.data, 7, 1 << 20);
    plain.size = 1 << 20;
    CHECK_INT(0, cn_codec_init(&codec, CN_CODEC_ZSTD_ENCODE, &defaults, &err));
    CHECK_INT(0, run(&codec, &plain, 5000, 100000, &packed, &err));
    cn_codec_fini(&codec);
    CHECK(packed.size < 1000);

    CHECK_INT(0, cn_codec_init(&codec, CN_CODEC_ZSTD_DECODE, &defaults, &err));
    CHECK_INT(0, cn_codec_run(&codec, packed.data, packed.size, CN_CODEC_END, 4096, &out, &err));
    CHECK(out.size <= 4096 && codec.more);
    cn_codec_fini(&codec);

    cn_buf_clear(&out);
    packed.size -= 3;
    CHECK_INT(0, cn_codec_init(&codec, CN_CODEC_ZSTD_DECODE, &defaults, &err));
    CHECK_INT(0, run(&codec, &packed, 10, 2 << 20, &out, &err));
    CHECK(cn_codec_truncated(&codec));
    cn_codec_fini(&codec);

    packed.data[0] ^= 0xff;
    CHECK_INT(0, cn_codec_init(&codec, CN_CODEC_ZSTD_DECODE, &defaults, &err));
    CHECK_INT(CN_EINVALID, run(&codec, &packed, 100, 100000, &out, &err));
    cn_codec_fini(&codec);
    cn_buf_fini(&plain);
    cn_buf_fini(&packed);
    cn_buf_fini(&out);
}

TEST(codec, a_dictionary_is_used_on_both_sides)
{
    static const char words[] = "the quick brown fox jumps over the lazy dog";
    struct cn_codec_options options = {
        .level = 9, .dictionary = (const uint8_t *)words, .dictionary_size = sizeof(words)};
    struct cn_buf plain = {0}, packed = {0}, back = {0};
    struct cn_codec codec;
    struct cn_err err;
    cn_buf_append(&plain, words, sizeof(words));
    CHECK_INT(0, cn_codec_init(&codec, CN_CODEC_DEFLATE, &options, &err));
    CHECK_INT(0, run(&codec, &plain, 100, 1000, &packed, &err));
    cn_codec_fini(&codec);
    CHECK(packed.size < 20);
    CHECK_INT(0, cn_codec_init(&codec, CN_CODEC_INFLATE, &options, &err));
    CHECK_INT(0, run(&codec, &packed, 100, 1000, &back, &err));
    CHECK_STR(words, (char *)back.data);
    cn_codec_fini(&codec);
    CHECK_INT(0, cn_codec_init(&codec, CN_CODEC_INFLATE, &defaults, &err));
    CHECK_INT(CN_EINVALID, run(&codec, &packed, 100, 1000, &back, &err));
    cn_codec_fini(&codec);
    cn_buf_fini(&plain);
    cn_buf_fini(&packed);
    cn_buf_fini(&back);
}

TEST(codec, refuses_parameters_that_do_not_go_together)
{
    struct cn_codec codec;
    struct cn_err err;
    struct cn_codec_options options = {.level = 42};
    CHECK_INT(CN_EINVALID, cn_codec_init(&codec, CN_CODEC_GZIP, &options, &err));
}

/* A holding that has room for so many bytes. */
struct purse {
    struct cn_holding base;
    size_t room, held;
};

static bool purse_take(struct cn_holding *base, size_t bytes)
{
    struct purse *purse = (struct purse *)base;
    if (!base->must && purse->held + bytes > purse->room)
        return false;
    purse->held += bytes;
    return true;
}

static void purse_give(struct cn_holding *base, size_t bytes)
{
    struct purse *purse = (struct purse *)base;
    CHECK(bytes <= purse->held);
    purse->held -= bytes;
}

TEST(codec, C1_all_memory_is_asked_of_the_holding_and_a_refusal_is_an_error)
{
    struct cn_buf plain = {0};
    fill(&plain, 200000);
    for (int kind = 0; kind < CN_CODEC_KINDS; kind++) {
        bool encodes =
            kind <= CN_CODEC_GZIP || kind == CN_CODEC_BROTLI_ENCODE || kind == CN_CODEC_ZSTD_ENCODE;
        bool done = false, any = false;
        for (size_t room = 0; !done; room = room * 3 / 2 + 1000) {
            struct purse purse = {.base = {.take = purse_take, .give = purse_give}, .room = room};
            struct cn_codec_options options = {.level = 5, .holding = &purse.base};
            struct cn_codec codec;
            struct cn_buf out = {0};
            struct cn_err err;
            int rc = cn_codec_init(&codec, (enum cn_codec_kind)kind, &options, &err);
            if (rc == 0)
                rc = cn_codec_run(&codec, plain.data, plain.size,
                                  encodes ? CN_CODEC_END : CN_CODEC_RUN, 1000000, &out, &err);
            any |= purse.held > 0;
            done = rc == 0 || (!encodes && room > 10000000); /* what is fed is no data */
            CHECK(rc == 0 || err.text[0]);
            cn_codec_fini(&codec);
            CHECK_INT(0, purse.held);
            cn_buf_fini(&out);
        }
        CHECK(any);
    }
    cn_buf_fini(&plain);
}
