/* SPDX-License-Identifier: Apache-2.0 */
/* %XX in URLs: what is resolved, what stands for itself, what is refused. */
#include <string.h>

#include "base/buf.h"
#include "test/lib/test.h"
#include "text/percent.h"

static const char *decoded(const char *text, unsigned flags)
{
    static char out[64];
    ptrdiff_t size = cn_percent_decode(text, strlen(text), flags, out);
    if (size < 0)
        return "refused";
    out[size] = 0;
    return out;
}

TEST(percent, resolves_escapes_in_either_case)
{
    CHECK_STR("a/b\xc3\xa9", decoded("a%2Fb%c3%A9", 0));
    CHECK_STR("a/b", decoded("a%2fb", CN_PERCENT_STRICT));
    CHECK_STR("%41", decoded("%2541", 0)); /* once, not until nothing is left */
}

TEST(percent, an_escape_that_is_none_stands_for_itself_or_is_refused)
{
    static const char *const broken[] = {"%", "a%", "a%4", "%zz", "%4z", "%%", "% 41", "%+4"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        CHECK_STR(broken[i], decoded(broken[i], 0));
        CHECK_STR("refused", decoded(broken[i], CN_PERCENT_STRICT));
    }
}

TEST(percent, plus_is_a_space_in_forms_alone)
{
    CHECK_STR("a b+", decoded("a+b%2B", CN_PERCENT_FORM));
    CHECK_STR("a+b+", decoded("a+b%2B", 0));
}

TEST(percent, looks_at_nothing_behind_the_text)
{
    char out[4];
    CHECK_INT(2, cn_percent_decode("%4142", 2, 0, out)); /* "%4" */
    CHECK(memcmp(out, "%4", 2) == 0);
    CHECK_INT(-1, cn_percent_decode("%4142", 2, CN_PERCENT_STRICT, out));
    CHECK_INT(1, cn_percent_decode("%00", 3, CN_PERCENT_STRICT, out));
    CHECK_INT(0, out[0]);
}

TEST(percent, works_in_place)
{
    char text[] = "%61%62+c";
    CHECK_INT(4, cn_percent_decode(text, strlen(text), CN_PERCENT_FORM, text));
    CHECK(memcmp(text, "ab c", 4) == 0);
}

TEST(percent, what_is_encoded_comes_back)
{
    char bytes[256], again[256];
    struct cn_buf text = {0};
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    cn_percent_encode(&text, bytes, sizeof(bytes), CN_PERCENT_UNRESERVED);
    CHECK_INT(256 + 2 * (256 - 66), text.size); /* 62 letters and digits, four others */
    CHECK_INT(256, cn_percent_decode((char *)text.data, text.size, CN_PERCENT_STRICT, again));
    CHECK(memcmp(bytes, again, sizeof(bytes)) == 0);
    cn_buf_clear(&text);
    cn_percent_encode(&text, "a/b c\0\xff", 7, "/");
    CHECK_STR("a/b%20c%00%FF", cn_buf_text(&text));
    cn_buf_fini(&text);
}
