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
