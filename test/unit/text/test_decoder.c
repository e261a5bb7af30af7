/* SPDX-License-Identifier: Apache-2.0 */
/* Legacy encodings by the Encoding standard: what bytes mean, what mistakes become, and that
 * neither depends on where a stream is cut (D1), what is put back included (D2). */
#include "text/decoder.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "test/lib/test.h"

/* Decodes in pieces of `step`; memory ends where the bytes and the room do. The units, owned. */
static uint16_t *decode(int encoding, const void *bytes, size_t size, size_t step, bool fatal,
                        int64_t *count)
{
    struct cn_decoder_state state = {0};
    struct cn_buf out = {0};
    int64_t got = 0;
    for (size_t at = 0; got >= 0; at += step) {
        size_t part = size - at < step ? size - at : step;
        bool last = at + part == size;
        uint8_t *exact = malloc(part ? part : 1);
        uint16_t *room = malloc(cn_decode_bound(part) * sizeof(*room));
        memcpy(exact, (const uint8_t *)bytes + at, part);
        got = cn_text_decode(encoding, &state, exact, part, last, fatal, room);
        if (got > 0)
            cn_buf_append(&out, room, (size_t)got * sizeof(*room));
        free(exact);
        free(room);
        if (last)
            break;
    }
    *count = got < 0 ? got : (int64_t)(out.size / 2);
    cn_buf_append(&out, "\0", 2);
    return (uint16_t *)cn_buf_take(&out);
}

static void check(const char *name, const char *bytes, size_t size, const uint16_t *want,
                  size_t count)
{
    int encoding = cn_encoding_find(name);
    CHECK(encoding >= 0);
    for (size_t step = 1; step <= size; step++) {
        int64_t got;
        uint16_t *units = decode(encoding, bytes, size, step, false, &got);
        bool same = got == (int64_t)count && memcmp(units, want, count * 2) == 0;
        if (!same)
            test_fail(__FILE__, __LINE__, "%s %02x%02x.. by %zu: %lld units, %04x %04x", name,
                      (uint8_t)bytes[0], size > 1 ? (uint8_t)bytes[1] : 0, step, (long long)got,
                      units[0], got > 1 ? units[1] : 0);
        cn_free(units);
    }
    bool mistake = false;
    for (size_t i = 0; i < count; i++)
        mistake = mistake || want[i] == 0xfffd;
    int64_t got;
    uint16_t *units = decode(encoding, bytes, size, size, true, &got);
    CHECK_INT(mistake ? CN_EINVALID : (int64_t)count, got);
    cn_free(units);
}

#define IS(name, bytes, ...)                                               \
    check(name, bytes, sizeof(bytes) - 1, (const uint16_t[]){__VA_ARGS__}, \
          sizeof((const uint16_t[]){__VA_ARGS__}) / sizeof(uint16_t))

TEST(text_decoder, encodings_are_found_by_their_names_alone)
{
    CHECK(cn_encoding_find("utf-8") < 0);
    CHECK(cn_encoding_find("") < 0 && cn_encoding_find("GBK") < 0 && cn_encoding_find("gbk ") < 0);
    CHECK(cn_encoding_find("x-user-defined") == (int)cn_encoding_count() - 1);
    CHECK_INT(38, cn_encoding_count());
}

TEST(text_decoder, single_bytes)
{
    IS("windows-1252", "a\x80\x81\x9f\xff", 'a', 0x20ac, 0x81, 0x178, 0xff);
    IS("iso-8859-2", "\xa1\xe6", 0x104, 0x107);
    IS("iso-8859-15", "\xa4", 0x20ac);
    IS("iso-8859-16", "\xa4\xa7\xff", 0x20ac, 0xa7, 0xff);
    IS("iso-8859-6", "\xa1\xc7", 0xfffd, 0x627);
    IS("iso-8859-8-i", "\xe0\xa1", 0x5d0, 0xfffd);
    IS("koi8-r", "\xc1", 0x430);
    IS("koi8-u", "\xae\xbe\xa4", 0x45e, 0x40e, 0x454);
    IS("ibm866", "\x80", 0x410);
    IS("macintosh", "\xf0", 0xf8ff);
    IS("windows-874", "\x80\xdb\xa1", 0x20ac, 0xfffd, 0xe01);
    IS("windows-1251", "\x98\xc0", 0x98, 0x410);
    IS("windows-1253", "\xaa\xe1", 0xfffd, 0x3b1);
    IS("windows-1255", "\xca\xd9", 0x5ba, 0xfffd);
    IS("x-mac-cyrillic", "\x80\xff", 0x410, 0x20ac);
    IS("x-user-defined", "\x7f\x80\xff", 0x7f, 0xf780, 0xf7ff);
}

TEST(text_decoder, utf_16_of_both_orders)
{
    IS("utf-16le", "a\0\xac\x20", 'a', 0x20ac);
    IS("utf-16be", "\0a\x20\xac", 'a', 0x20ac);
    IS("utf-16le", "\x3d\xd8\x00\xde", 0xd83d, 0xde00);
    IS("utf-16be", "\xd8\x3d\xde\x00", 0xd83d, 0xde00);
    IS("utf-16le", "a", 0xfffd);
    IS("utf-16le", "\x3d\xd8", 0xfffd);
    IS("utf-16le",
       "\x3d\xd8"
       "a",
       0xfffd); /* one mistake: the end is met once */
    IS("utf-16le",
       "\x3d\xd8"
       "a\0",
       0xfffd, 'a');
    IS("utf-16le", "\x3d\xd8\x3d\xd8\x00\xde", 0xfffd, 0xd83d, 0xde00);
    IS("utf-16le", "\x00\xde", 0xfffd);
    IS("utf-16be", "\0\0", 0);
}

TEST(text_decoder, gb18030_and_gbk)
{
    IS("gbk", "\xc4\xe3", 0x4f60);
    IS("gb18030", "a\x80", 'a', 0x20ac);
    IS("gb18030", "\x81\x30\x81\x30", 0x80);
    IS("gb18030", "\x94\x39\xfc\x36", 0xd83d, 0xde00);
    IS("gb18030", "\x90\x30\x81\x30", 0xd800, 0xdc00);
    IS("gb18030", "\xe3\x32\x9a\x35", 0xdbff, 0xdfff);
    IS("gb18030", "\xe3\x32\x9a\x36", 0xfffd);
    IS("gb18030", "\xff", 0xfffd);
    IS("gb18030", "\x81", 0xfffd);
    IS("gb18030", "\x81\x30", 0xfffd);
    IS("gb18030", "\x81\x30\x81", 0xfffd);
    IS("gb18030", "\x81 ", 0xfffd, ' ');
    IS("gb18030", "\x81\x30 ", 0xfffd, '0', ' ');
    IS("gb18030", "\x81\x30\x81 ", 0xfffd, '0', 0xfffd, ' '); /* D2: three bytes back */
    IS("gb18030", "\x81\x30\x81\x40", 0xfffd, '0', 0x4e02);   /* D2: which mean a character */
    IS("gb18030", "\xa8\xbc", 0x1e3f);
    IS("gb18030", "\xa2\xe3", 0x20ac);
    IS("gb18030", "\xa6\xd9", 0xfe10);
}

TEST(text_decoder, big5)
{
    IS("big5", "\xa7\x41", 0x4f60);
    IS("big5", "\x88\x62", 0xca, 0x304); /* two code points */
    IS("big5", "\x88\xa5", 0xea, 0x30c);
    IS("big5", "\x87\x40", 0x43f0);
    IS("big5", "\x80", 0xfffd);
    IS("big5", "\xa7", 0xfffd);
    IS("big5", "\xa7\x39", 0xfffd, '9'); /* ASCII is spared */
    IS("big5", "\xa7\xff", 0xfffd);
    IS("big5", "\x81\x40", 0xfffd, '@');
}

TEST(text_decoder, japanese)
{
    IS("shift_jis", "\x82\xa0\xb1\x80", 0x3042, 0xff71, 0x80);
    IS("shift_jis", "\\~", '\\', '~');
    IS("shift_jis", "\x81\x20", 0xfffd, ' ');
    IS("shift_jis", "\xf0\x40", 0xe000);
    IS("shift_jis", "\xfd", 0xfffd);
    IS("shift_jis", "\x81\xff", 0xfffd);
    IS("euc-jp", "\xa4\xa2\x8e\xb1", 0x3042, 0xff71);
    IS("euc-jp", "\x8f\xb0\xa1", 0x4e02);
    IS("euc-jp", "\x8f\xb0", 0xfffd);
    IS("euc-jp", "\x8e\xe0", 0xfffd);
    IS("euc-jp",
       "\xa4"
       "a",
       0xfffd, 'a');
    IS("euc-jp",
       "\x8f\xb0"
       "a\xa4\xa2",
       0xfffd, 'a', 0x3042);
    IS("iso-2022-jp", "\x1b$B$\"\x1b(Ba", 0x3042, 'a');
    IS("iso-2022-jp", "\x1b(J\\~", 0xa5, 0x203e);
    IS("iso-2022-jp", "\x1b(I1", 0xff71);
    IS("iso-2022-jp", "\x1b(B\x1b(Ba", 0xfffd, 'a'); /* twice without text between them */
    IS("iso-2022-jp", "\x1b(Xa", 0xfffd, '(', 'X', 'a');
    IS("iso-2022-jp", "\x1b", 0xfffd);
    IS("iso-2022-jp", "\x1b$", 0xfffd, '$');
    IS("iso-2022-jp", "\x1b$B$", 0xfffd);
    IS("iso-2022-jp", "\x1b$B$\x1b(Ba", 0xfffd, 'a');
    IS("iso-2022-jp", "\x0e\xff", 0xfffd, 0xfffd);
}

TEST(text_decoder, korean)
{
    IS("euc-kr", "\xb0\xa1\x81\x41", 0xac00, 0xac02);
    IS("euc-kr", "\xb0", 0xfffd);
    IS("euc-kr", "\xb0 ", 0xfffd, ' ');
    IS("euc-kr", "\x80", 0xfffd);
    IS("euc-kr", "\xc9\x41", 0xfffd, 'A');
}

TEST(text_decoder, ascii_is_ascii_everywhere_but_in_two_bytes)
{
    uint8_t bytes[128];
    for (int i = 0; i < 128; i++)
        bytes[i] = (uint8_t)i;
    for (size_t encoding = 0; encoding < cn_encoding_count(); encoding++) {
        int64_t count;
        if ((int)encoding == cn_encoding_find("utf-16le") ||
            (int)encoding == cn_encoding_find("utf-16be") ||
            (int)encoding == cn_encoding_find("iso-2022-jp"))
            continue;
        uint16_t *units = decode((int)encoding, bytes, 128, 128, true, &count);
        CHECK_INT(128, count);
        for (int i = 0; i < 128; i++)
            CHECK_INT(i, units[i]);
        cn_free(units);
    }
}

/* D1, D2 */
TEST(text_decoder, any_bytes_mean_the_same_wherever_they_are_cut)
{
    static const uint8_t apt[] = {0x1b, '$',  'B',  '(',  'J',  'I',  0x30, 0x39,
                                  0x40, 0x7e, 0x7f, 0x80, 0x81, 0x88, 0x8e, 0x8f,
                                  0xa1, 0xa4, 0xb0, 0xd8, 0xdc, 0xfe, 0xff};
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (size_t encoding = 0; encoding < cn_encoding_count(); encoding++) {
        /* U+FFFD can be written in these, and is no mistake then. */
        bool can_say_it = (int)encoding == cn_encoding_find("utf-16le") ||
                          (int)encoding == cn_encoding_find("utf-16be") ||
                          (int)encoding == cn_encoding_find("gb18030") ||
                          (int)encoding == cn_encoding_find("gbk");
        for (int round = 0; round < 150; round++) {
            uint8_t bytes[24];
            size_t size = 1 + (size_t)cn_rand_below(&rand, sizeof(bytes));
            for (size_t i = 0; i < size; i++)
                bytes[i] = round % 2 ? (uint8_t)cn_rand_next(&rand)
                                     : apt[cn_rand_below(&rand, CN_ARRAY_COUNT(apt))];
            int64_t whole_count, count, fatal_count;
            uint16_t *whole = decode((int)encoding, bytes, size, size, false, &whole_count);
            CHECK(whole_count >= 0);
            bool mistake = false;
            for (int64_t i = 0; i < whole_count; i++)
                mistake = mistake || whole[i] == 0xfffd;
            for (size_t step = 1; step < 5; step++) {
                uint16_t *units = decode((int)encoding, bytes, size, step, false, &count);
                CHECK_INT(whole_count, count);
                CHECK(memcmp(whole, units, (size_t)count * 2) == 0);
                cn_free(units);
                units = decode((int)encoding, bytes, size, step, true, &fatal_count);
                CHECK(fatal_count == (mistake ? CN_EINVALID : count) ||
                      (can_say_it && fatal_count == count));
                cn_free(units);
            }
            cn_free(whole);
        }
    }
}

/* Tables are made at their first use, which may be on all lanes at once. */
static void *decode_all(void *data)
{
    static const uint8_t bytes[] = "\xb0\xa1\x82\xa0\x1b$B$\"";
    uint64_t *sum = data;
    for (size_t encoding = cn_encoding_count(); encoding-- > 0;) {
        int64_t count;
        uint16_t *units = decode((int)encoding, bytes, sizeof(bytes), 3, false, &count);
        for (int64_t i = 0; i < count; i++)
            *sum = *sum * 31 + units[i];
        cn_free(units);
    }
    return NULL;
}

TEST(text_decoder, threads_see_the_same_tables)
{
    pthread_t threads[8];
    uint64_t sums[8] = {0};
    for (int i = 0; i < 8; i++)
        CHECK_INT(0, pthread_create(&threads[i], NULL, decode_all, &sums[i]));
    for (int i = 0; i < 8; i++)
        CHECK_INT(0, pthread_join(threads[i], NULL));
    for (int i = 1; i < 8; i++)
        CHECK(sums[i] == sums[0] && sums[0]);
}
