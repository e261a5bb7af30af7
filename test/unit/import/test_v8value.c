/* SPDX-License-Identifier: Apache-2.0 */
/* Values that V8 has written are the same here (E1); what has no form is refused, and so is every
 * piece of one (E2). */
#include "import/v8value.h"

#include <string.h>

#include "admin/clone.h"
#include "base/buf.h"
#include "test/lib/test.h"
#include "text/hex.h"

/* As v8.Serializer of Node.js has written them, and what they are. */
static const struct {
    const char *hex, *json;
} values[] = {
    {"ff0f41145f30544649004e00000000000000804902490149de0149e001491f49214980a8d6b9074e000000000000e"
     "0414e000000000000f87f4e000000000000f07f4e000000000000f83f5a005a1105000000000000005a20d20a3f4e"
     "eee073c3f60fe98e01000000240014",
     "[{\"$undefined\":true},null,true,false,0,-0,1,-1,111,112,-16,-17,1000000000,2147483648,{\"$"
     "number\":\"NaN\"},{\"$number\":\"Infinity\"},1.5,{\"$bigint\":\"0x0\"},{\"$bigint\":\"-0x5\"}"
     ",{\"$bigint\":\"0x18ee90ff6c373e0ee4e3f0ad2\"}]"},
    {"ff0f6f2201614902220473656c665e007b02", "{\"a\":1,\"self\":{\"$ref\":0}}"},
    {"ff0f41026f2201614902220473656c665e017b025e01240002",
     "[{\"a\":1,\"self\":{\"$ref\":1}},{\"$ref\":1}]"},
    {"ff0f61034900490249044906400203", "{\"$array\":{\"length\":3,\"0\":1,\"2\":3}}"},
    {"ff0f410249024101490422017a4902240101220178220179240102",
     "{\"$array\":{\"length\":2,\"0\":1,\"1\":{\"$array\":{\"length\":1,\"0\":2,\"z\":1}},\"x\":"
     "\"y\"}}"},
    {"ff0f61c1843d4980897a49024001c1843d", "{\"$array\":{\"length\":1000001,\"1000000\":1}}"},
    {"ff0f6102400002", "{\"$array\":{\"length\":2}}"},
    {"ff0f4100240000", "{\"$array\":{\"length\":0}}"},
    {"ff0f6f490a49022201e949046302032649067b03", "{\"5\":1,\"é\":2,\"☃\":3}"},
    {"ff0f44000000a2941a6d42", "{\"$date\":1000000000000}"},
    {"ff0f522203612262bf01", "{\"$regexp\":[\"a\\\"b\",\"dgimsuy\"]}"},
    {"ff0f3b49023b22016b410149022400013a026f7b0049043a04",
     "{\"$map\":[[1,{\"$map\":[[\"k\",[1]]]}],[{},2]]}"},
    {"ff0f2749022201616f7b002c03", "{\"$set\":[1,\"a\",{}]}"},
    {"ff0f4104796e000000000000f83f732201737a100500000000000000240004",
     "[{\"$boxed\":true},{\"$boxed\":1.5},{\"$boxed\":\"s\"},{\"$boxed\":{\"$bigint\":\"0x5\"}}]"},
    {"ff0f410542020102564200020042100000000000000000000000000000000056570206005e03563f0010005e035e0"
     "35646001000240005",
     "[{\"$bytes\":\"AQI=\"},{\"$view\":{\"$bytes\":\"AAAAAAAAAAAAAAAAAAAAAA==\"},\"offset\":2,"
     "\"length\":3},{\"$view\":{\"$ref\":4},\"offset\":0,\"length\":16},{\"$ref\":4},{\"$view\":{"
     "\"$ref\":4},\"offset\":0,\"length\":2}]"},
    {"ff0f41014203000000240001", "[{\"$bytes\":\"AAAA\"}]"},
    {"ff0f72526d22026e6f636f2203776879410149022400017b0173221452616e67654572726f723a206e6f0a2061742"
     "0782e",
     "{\"$error\":{\"type\":\"RangeError\",\"message\":\"no\",\"stack\":\"RangeError: no\\n at "
     "x\",\"cause\":{\"why\":[1]}}}"},
};

static size_t read_hex(const char *hex, uint8_t *bytes)
{
    CHECK(cn_hex_decode(hex, strlen(hex) / 2, bytes));
    return strlen(hex) / 2;
}

TEST(v8value, every_kind_of_value_is_the_same_here)
{
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        uint8_t bytes[512];
        struct cn_buf out = {0}, json = {0};
        struct cn_err err = {0};
        size_t size = read_hex(values[i].hex, bytes);
        if (cn_v8value_convert(bytes, size, &out, &err) != 0)
            test_fail(__FILE__, __LINE__, "%s: %s", values[i].json, err.text);
        cn_clone_append_json(&json, out.data, out.size);
        CHECK_STR(values[i].json, cn_buf_text(&json));
        cn_buf_fini(&out);
        cn_buf_fini(&json);
    }
}

TEST(v8value, a_value_that_is_cut_or_followed_is_refused_and_nothing_is_appended)
{
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        uint8_t bytes[512];
        struct cn_buf out = {0};
        struct cn_err err = {0};
        size_t size = read_hex(values[i].hex, bytes);
        for (size_t cut = 0; cut < size; cut++) {
            CHECK_INT(CN_ECORRUPT, cn_v8value_convert(bytes, cut, &out, &err));
            CHECK_INT(0, out.size);
        }
        bytes[size] = 'T';
        CHECK_INT(CN_ECORRUPT, cn_v8value_convert(bytes, size + 1, &out, &err));
        CHECK_INT(0, out.size);
        cn_buf_fini(&out);
    }
}

TEST(v8value, what_has_no_form_is_told)
{
    static const struct {
        const char *hex, *text;
    } cases[] = {{"ff0f5c01", "an object of the platform"},
                 {"ff10540a", "V8's format 16"},
                 {"ff0c5f", "V8's format 12"},
                 {"ff0f522201618008", "such flags"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t bytes[16];
        struct cn_buf out = {0};
        struct cn_err err = {0};
        size_t size = read_hex(cases[i].hex, bytes);
        CHECK_INT(CN_EUNSUPPORTED, cn_v8value_convert(bytes, size, &out, &err));
        CHECK(strstr(err.text, cases[i].text));
    }
}

TEST(v8value, nesting_has_a_bound)
{
    struct cn_buf deep = {0}, out = {0};
    struct cn_err err = {0};
    cn_buf_append(&deep, "\xff\x0f", 2);
    for (int i = 0; i < 100000; i++)
        cn_buf_append(&deep, "o\"\001a", 4);
    CHECK_INT(CN_EUNSUPPORTED, cn_v8value_convert(deep.data, deep.size, &out, &err));
    cn_buf_fini(&deep);
    cn_buf_fini(&out);
}
