/* SPDX-License-Identifier: Apache-2.0 */
/* Stored values shown as JSON: each kind by its bytes (docs/reference/structured-clone.md), and
 * damage as what it is. */
#include "admin/clone.h"

#include <string.h>

#include "base/buf.h"
#include "test/lib/test.h"

static const char *shown(const char *bytes, size_t size)
{
    static struct cn_buf out;
    cn_buf_clear(&out);
    cn_clone_append_json(&out, bytes, size);
    return cn_buf_text(&out);
}
#define SHOWN(bytes) shown("\x01" bytes, sizeof(bytes))

TEST(clone, what_json_has_becomes_that)
{
    CHECK_STR("null", SHOWN("\x01"));
    CHECK_STR("false", SHOWN("\x02"));
    CHECK_STR("true", SHOWN("\x03"));
    CHECK_STR("0", SHOWN("\x90"));
    CHECK_STR("-16", SHOWN("\x80"));
    CHECK_STR("111", SHOWN("\xff"));
    CHECK_STR("1000", SHOWN("\x04\xd0\x0f"));
    CHECK_STR("-1000", SHOWN("\x04\xcf\x0f"));
    CHECK_STR("1.5", SHOWN("\x05\0\0\0\0\0\0\xf8\x3f"));
    CHECK_STR("\"ab\"", SHOWN("\x42"
                              "ab"));
    CHECK_STR("\"\xc3\xbc\"", SHOWN("\x08\x01\xfc"));         /* Latin-1 */
    CHECK_STR("\"\xe2\x82\xac\"", SHOWN("\x09\x01\xac\x20")); /* UTF-16 */
    CHECK_STR("[1,\"x\"]", SHOWN("\x11\x02\x91\x41"
                                 "x"));
    CHECK_STR("{\"a\":1}", SHOWN("\x10\x05"
                                 "a"
                                 "\x91\0"));
}

TEST(clone, the_rest_has_a_member_with_a_dollar_sign)
{
    CHECK_STR("{\"$undefined\":true}", SHOWN("\0"));
    CHECK_STR("{\"$number\":\"NaN\"}", SHOWN("\x05\0\0\0\0\0\0\xf8\x7f"));
    CHECK_STR("{\"$bigint\":\"0x1f\"}", SHOWN("\x06\x01\x1f"));
    CHECK_STR("{\"$bigint\":\"-0x1f\"}", SHOWN("\x07\x01\x1f"));
    CHECK_STR("{\"$date\":0}", SHOWN("\x13\0\0\0\0\0\0\0\0"));
    CHECK_STR("{\"$regexp\":[\"a\",\"g\"]}", SHOWN("\x14\x41"
                                                   "a"
                                                   "\x41"
                                                   "g"));
    CHECK_STR("{\"$map\":[[1,2]]}", SHOWN("\x15\x01\x91\x92"));
    CHECK_STR("{\"$set\":[1]}", SHOWN("\x16\x01\x91"));
    CHECK_STR("{\"$bytes\":\"AQL/\"}", SHOWN("\x18\x03\x01\x02\xff"));
    CHECK_STR("{\"$bytes\":\"AQL/\"}", SHOWN("\x1b\x01\x03\x01\x02\xff"));
}

TEST(clone, every_cut_and_every_wrong_byte_is_shown_raw_or_as_something_and_never_read_past)
{
    static const char value[] = "\x01\x10\x05"
                                "a"
                                "\x11\x02\x91\x42"
                                "bc"
                                "\x05"
                                "b"
                                "\x15\x01\x91\x92\0";
    size_t size = sizeof(value) - 1;
    CHECK_STR("{\"a\":[1,\"bc\"],\"b\":{\"$map\":[[1,2]]}}", shown(value, size));
    for (size_t cut = 0; cut < size; cut++)
        CHECK(strncmp(shown(value, cut), "{\"$raw\":\"", 9) == 0);
    for (size_t at = 0; at < size; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            char bytes[sizeof(value)];
            memcpy(bytes, value, size);
            bytes[at] = (char)byte;
            CHECK(shown(bytes, size)[0]);
        }
    CHECK(strstr(shown("\x02\x01", 2), "$raw"));              /* a later version */
    CHECK(strstr(SHOWN("\x01\x01"), "$raw"));                 /* more than one value */
    CHECK(strstr(SHOWN("\x11\xff\xff\xff\xff\x0f"), "$raw")); /* more than there is */
}

TEST(clone, nesting_without_end_is_not_followed)
{
    char deep[20001];
    deep[0] = 1;
    for (size_t i = 1; i + 1 < sizeof(deep); i += 2)
        deep[i] = 0x11, deep[i + 1] = 1;
    CHECK(shown(deep, sizeof(deep))[0]);
}
