/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as hexadecimal digits and back: every byte, both cases, and what is no digit. */
#include <string.h>

#include "base/buf.h"
#include "base/hexdigit.h"
#include "test/lib/test.h"
#include "text/hex.h"

TEST(hex, every_byte_comes_back)
{
    uint8_t bytes[256], again[256];
    char digits[513];
    struct cn_buf appended = {0};
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    cn_hex_encode(bytes, sizeof(bytes), digits);
    CHECK_INT(512, strlen(digits));
    CHECK(memcmp(digits, "000102", 6) == 0 && strcmp(digits + 508, "feff") == 0);
    CHECK(cn_hex_decode(digits, sizeof(again), again));
    CHECK(memcmp(bytes, again, sizeof(bytes)) == 0);
    cn_hex_append(&appended, bytes, sizeof(bytes));
    CHECK_STR(digits, cn_buf_text(&appended));
    cn_buf_fini(&appended);
}

TEST(hex, only_digits_have_a_value)
{
    int count = 0;
    for (int c = 0; c < 256; c++) {
        int value = cn_hexdigit_value((unsigned char)c);
        if (value < 0)
            continue;
        count++;
        CHECK(value < 16 && (cn_hexdigit((unsigned)value) | 0x20) == (c | 0x20));
    }
    CHECK_INT(22, count); /* ten, and six in two cases */
}

TEST(hex, refuses_a_digit_that_is_none)
{
    uint8_t bytes[2];
    CHECK(cn_hex_decode("aBcD", 2, bytes));
    CHECK(bytes[0] == 0xab && bytes[1] == 0xcd);
    CHECK(!cn_hex_decode("aBcg", 2, bytes));
    CHECK(!cn_hex_decode("a Bc", 2, bytes));
    CHECK(!cn_hex_decode("-123", 2, bytes));
    CHECK(!cn_hex_decode("a", 1, bytes)); /* its NUL is looked at, and nothing behind that */
    CHECK(!cn_hex_decode("", 1, bytes));
}

TEST(hex, of_nothing_is_nothing)
{
    char digits[1] = {'x'};
    cn_hex_encode("", 0, digits);
    CHECK_STR("", digits);
    CHECK(cn_hex_decode("zz", 0, NULL));
}
