/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <string.h>

#include "base/utf8.h"
#include "test/lib/test.h"

TEST(buf, grows_and_consumes)
{
    struct cn_buf buf = {0};
    for (int i = 0; i < 1000; i++)
        cn_buf_printf(&buf, "%d,", i);
    CHECK(memcmp(buf.data, "0,1,2,", 6) == 0);
    cn_buf_consume(&buf, 2);
    CHECK(memcmp(buf.data, "1,2,", 4) == 0);
    cn_buf_fini(&buf);
}

TEST(buf, numbers_are_written_with_every_digit)
{
    struct cn_buf buf = {0};
    cn_buf_append_uint(&buf, 0);
    cn_buf_append_byte(&buf, ' ');
    cn_buf_append_uint(&buf, UINT64_MAX);
    cn_buf_append_byte(&buf, ' ');
    cn_buf_append_int(&buf, INT64_MIN);
    cn_buf_append_byte(&buf, ' ');
    cn_buf_append_int(&buf, 1200);
    CHECK_STR("0 18446744073709551615 -9223372036854775808 1200", cn_buf_text(&buf));
    cn_buf_fini(&buf);
}

TEST(buf, json_strings_escape_and_repair)
{
    struct cn_buf buf = {0};
    cn_buf_append_json(&buf, "a\"\\\n\x01\xff\xc3\xa9", 8);
    CHECK_STR("\"a\\\"\\\\\\n\\u0001\xef\xbf\xbd\xc3\xa9\"", cn_buf_text(&buf));
    cn_buf_fini(&buf);
}

TEST(utf8, refuses_what_rfc_3629_refuses)
{
    CHECK(cn_utf8_valid("plain ascii text", 16));
    CHECK(cn_utf8_valid("\xf0\x9f\x98\x80", 4));
    CHECK(!cn_utf8_valid("\xc0\x80", 2));         /* overlong */
    CHECK(!cn_utf8_valid("\xed\xa0\x80", 3));     /* surrogate */
    CHECK(!cn_utf8_valid("\xf4\x90\x80\x80", 4)); /* past U+10FFFF */
    CHECK(!cn_utf8_valid("\xe2\x82", 2));         /* cut short */
    CHECK(!cn_utf8_valid("12345678\x80", 9));     /* lone tail after a fast word */
}
