/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-16 and UTF-8 say the same, whatever the alignment of the ASCII runs between. */
#include "text/utf16.h"

#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "base/utf8.h"
#include "test/lib/test.h"

TEST(utf16, round_trips_random_text)
{
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (int round = 0; round < 2000; round++) {
        uint16_t units[100], back[400];
        uint8_t bytes[300];
        size_t count = 0, want = cn_rand_below(&rand, 90);
        while (count < want) {
            uint64_t kind = cn_rand_below(&rand, 20);
            if (kind < 16) {
                units[count++] = (uint16_t)cn_rand_below(&rand, 128);
            } else if (kind < 18) {
                units[count++] = (uint16_t)(128 + cn_rand_below(&rand, 0xd700));
            } else {
                units[count++] = (uint16_t)(0xd800 + cn_rand_below(&rand, 1024));
                units[count++] = (uint16_t)(0xdc00 + cn_rand_below(&rand, 1024));
            }
        }
        size_t size = cn_utf16_to_utf8(units, count, bytes);
        CHECK(cn_utf8_valid((char *)bytes, size));
        CHECK_INT(count, cn_utf16_from_utf8((char *)bytes, size, back));
        CHECK(memcmp(units, back, count * 2) == 0);
    }
}

TEST(utf16, lone_surrogates_become_replacement_characters)
{
    static const uint16_t units[] = {'a', 0xd800, 'b', 0xdc00};
    uint8_t out[12];
    CHECK_INT(8, cn_utf16_to_utf8(units, 4, out));
    CHECK(memcmp(out,
                 "a\xef\xbf\xbd"
                 "b\xef\xbf\xbd",
                 8) == 0);
}

TEST(utf16, characters_of_a_byte_each_are_as_the_same_of_two)
{
    for (size_t length = 0; length <= 256; length++) {
        uint8_t bytes[256], narrow[512], wide[768];
        uint16_t units[256];
        for (size_t i = 0; i < length; i++)
            units[i] = bytes[i] = (uint8_t)(length + i);
        size_t size = cn_utf16_to_utf8(units, length, wide);
        CHECK_INT(size, cn_utf16_latin1_to_utf8(bytes, length, narrow));
        CHECK(memcmp(wide, narrow, size) == 0);
    }
}

TEST(utf16, broken_sequences_become_one_replacement_per_maximal_part)
{
    static const struct {
        const char *bytes;
        size_t size, count;
    } cases[] = {
        {"\xff", 1, 1},
        {"\xc3", 1, 1},
        {"\xe2\x82", 2, 1},  /* cut short: one */
        {"\xe2\x82 ", 3, 2}, /* then a blank */
        {"\xf0\x9f\x98", 3, 1},
        {"\xed\xa0\x80", 3, 3},     /* a surrogate: each byte on its own */
        {"\xc0\x80", 2, 2},         /* overlong */
        {"\xf0\x80\x80\x80", 4, 4}, /* overlong */
        {"\xf4\x90\x80\x80", 4, 4}, /* past the end of Unicode */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint16_t out[8];
        char *exact = malloc(cases[i].size);
        memcpy(exact, cases[i].bytes, cases[i].size);
        CHECK_INT(cases[i].count, cn_utf16_from_utf8(exact, cases[i].size, out));
        CHECK_INT(0xfffd, out[0]);
        free(exact);
    }
}
