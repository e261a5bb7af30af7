/* SPDX-License-Identifier: Apache-2.0 */
/* Base64: the vectors of RFC 4648, padded or not, and what is none. */
#include "text/base64.h"

#include <string.h>

#include "base/buf.h"
#include "test/lib/test.h"

TEST(base64, goes_both_ways)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct cn_buf text = {0}, bytes = {0}, bare = {0};
        cn_base64_encode(&text, pairs[i][0], strlen(pairs[i][0]));
        CHECK_STR(pairs[i][1], cn_buf_text(&text));
        CHECK(cn_base64_decode(&bytes, pairs[i][1], strlen(pairs[i][1])));
        CHECK_STR(pairs[i][0], cn_buf_text(&bytes));
        CHECK(cn_base64_decode(&bare, pairs[i][1], strcspn(pairs[i][1], "=")));
        CHECK_STR(pairs[i][0], cn_buf_text(&bare));
        cn_buf_fini(&text);
        cn_buf_fini(&bytes);
        cn_buf_fini(&bare);
    }
}

TEST(base64, refuses_what_is_none)
{
    static const char *const bad[] = {
        "A", "=", "====", "Zg=", "Z===", "Zm9v?", "Zm 9v", "-_-_", "Zg==Zg=="};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct cn_buf bytes = {0};
        CHECK(!cn_base64_decode(&bytes, bad[i], strlen(bad[i])));
        cn_buf_fini(&bytes);
    }
    struct cn_buf bytes = {0};
    CHECK(!cn_base64_decode(&bytes, "Zm\0v", 4));
    cn_buf_fini(&bytes);
}

/* As code units, forgiving: the same vectors, with white space anywhere and padding or none. */
TEST(base64, of_code_units_goes_both_ways)
{
    static const char *const pairs[][2] = {
        {"", ""},      {"f", "Zg=="},    {"fo", "Zm8="},    {"foo", "Zm9v"},     {"f", "Zg"},
        {"fo", "Zm8"}, {"f", " Z\tg\n"}, {"f", "Z g = = "}, {"foob", "Zm9v\fYg"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        uint16_t units[32];
        uint8_t out[32];
        size_t count = strlen(pairs[i][1]), size = 99;
        for (size_t k = 0; k < count; k++)
            units[k] = (uint16_t)pairs[i][1][k];
        CHECK(cn_base64_decode_units(units, count, out, &size));
        CHECK_INT(strlen(pairs[i][0]), size);
        CHECK(memcmp(out, pairs[i][0], size) == 0);
        for (size_t k = 0; k < size; k++)
            units[k] = out[k];
        struct cn_buf text = {0};
        cn_base64_encode(&text, pairs[i][0], size);
        CHECK(cn_base64_encode_units(units, size, out));
        CHECK_INT(cn_base64_size(size), text.size);
        CHECK(text.size == 0 || memcmp(out, text.data, text.size) == 0);
        cn_buf_fini(&text);
    }
}

TEST(base64, of_code_units_refuses_what_is_none)
{
    static const char *const bad[] = {
        "A", "=", "Zg=", "Z===", "Zm9v=", "Zg==Zg==", "Zm9v?", "-_-_"};
    uint8_t out[32];
    size_t size;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint16_t units[16];
        for (size_t k = 0; bad[i][k]; k++)
            units[k] = (uint16_t)bad[i][k];
        CHECK(!cn_base64_decode_units(units, strlen(bad[i]), out, &size));
    }
    /* A unit whose low byte is a digit is none. */
    CHECK(!cn_base64_decode_units((const uint16_t[]){'Z', 'm', '9', 0x100 + 'v'}, 4, out, &size));
    CHECK(!cn_base64_encode_units((const uint16_t[]){'a', 0x100}, 2, out));
    CHECK(cn_base64_encode_units((const uint16_t[]){'a', 0xff}, 2, out));
}
