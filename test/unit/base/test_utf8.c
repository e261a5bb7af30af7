/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

#include "test/lib/test.h"

TEST(utf8, every_scalar_value_is_written_and_read_back)
{
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code < 0xe000)
            continue;
        char bytes[4];
        size_t size = cn_utf8_encode(code, bytes);
        CHECK_INT(code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4, size);
        CHECK_INT(size, cn_utf8_sequence(bytes, size));
        for (size_t cut = 1; cut < size; cut++)
            CHECK_INT(0, cn_utf8_sequence(bytes, cut)); /* it needs all of it */
    }
}

static const struct {
    const char *bytes;
    size_t size;
} wrong[] = {
    {"\x80", 1},     /* a continuation alone */
    {"\xc0\xaf", 2}, /* overlong "/" */
    {"\xc1\xbf", 2},
    {"\xe0\x80\xaf", 3},
    {"\xe0\x9f\xbf", 3},
    {"\xf0\x80\x80\xaf", 4},
    {"\xf0\x8f\xbf\xbf", 4},
    {"\xed\xa0\x80", 3}, /* a surrogate */
    {"\xed\xbf\xbf", 3},
    {"\xf4\x90\x80\x80", 4}, /* beyond U+10FFFF */
    {"\xf5\x80\x80\x80", 4},
    {"\xfe", 1},
    {"\xff", 1},
    {"\xe2\x82", 2},     /* cut off */
    {"\xe2\x28\xa1", 3}, /* not continued */
    {"\xf0\x9f\x98\x28", 4},
};

TEST(utf8, what_rfc_3629_forbids_is_refused_wherever_it_stands)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_INT(0, cn_utf8_sequence(wrong[i].bytes, wrong[i].size));
        for (size_t before = 0; before < 20; before++) { /* whatever a fast path reads at once */
            char text[64];
            memset(text, 'a', sizeof(text));
            memcpy(text + before, wrong[i].bytes, wrong[i].size);
            CHECK(!cn_utf8_valid(text, before + wrong[i].size));
            CHECK(!cn_utf8_valid(text, sizeof(text)));
        }
    }
    CHECK(cn_utf8_valid("", 0));
    CHECK(cn_utf8_valid("a\0b", 3));
    CHECK(cn_utf8_valid("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", 15));
}
