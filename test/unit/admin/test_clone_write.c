/* SPDX-License-Identifier: Apache-2.0 */
/* The way back of test_clone.c: JSON that people have edited becomes the bytes of a value. */
#include <string.h>

#include "admin/clone.h"
#include "base/buf.h"
#include "base/json.h"
#include "test/lib/test.h"

/* Written and shown again; or the sentence of a refusal behind "!". */
static const char *round_trip(const char *text)
{
    static struct cn_buf out;
    struct cn_buf bytes = {0};
    struct cn_err err = {0};
    struct cn_json *json = cn_json_parse(text, strlen(text), &err);
    CHECK(json);
    cn_buf_clear(&out);
    if (cn_clone_from_json(&bytes, json, &err) == 0) {
        cn_clone_append_json(&out, bytes.data, bytes.size);
    } else {
        CHECK(err.code == CN_EINVALID && err.text[0]);
        cn_buf_printf(&out, "!%s", err.text);
    }
    cn_json_free(json);
    cn_buf_fini(&bytes);
    return cn_buf_text(&out);
}

TEST(clone_write, json_means_itself)
{
    static const char *const texts[] = {"null",
                                        "true",
                                        "false",
                                        "0",
                                        "-16",
                                        "-17",
                                        "111",
                                        "112",
                                        "-2147483648",
                                        "2147483647",
                                        "2147483648",
                                        "1.5",
                                        "\"\"",
                                        "\"a\"",
                                        "\"\xc3\xbc\"",
                                        "\"\xe2\x82\xac\xf0\x9f\x98\x80\"",
                                        "\"a text that is longer than thirty-one characters\"",
                                        "[]",
                                        "[1,[2,[3]]]",
                                        "{}",
                                        "{\"a\":{\"b\":[null]},\"a b\":\"\",\"\xe2\x82\xac\":1}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK_STR(texts[i], round_trip(texts[i]));
}

TEST(clone_write, objects_with_a_dollar_sign_mean_what_they_stand_for)
{
    static const char *const texts[] = {"{\"$undefined\":true}",
                                        "{\"$number\":\"NaN\"}",
                                        "{\"$number\":\"-Infinity\"}",
                                        "{\"$bigint\":\"0x1f\"}",
                                        "{\"$bigint\":\"-0x123456789abcdef0123\"}",
                                        "{\"$date\":1.5}",
                                        "{\"$map\":[[1,{\"$set\":[]}],[\"k\",null]]}",
                                        "{\"$set\":[1,\"a\"]}",
                                        "{\"$bytes\":\"AQL/\"}",
                                        "{\"$bytes\":\"\"}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK_STR(texts[i], round_trip(texts[i]));
}

TEST(clone_write, what_cannot_be_given_back_is_refused)
{
    static const char *const texts[] = {"{\"$regexp\":[\"a\",\"g\"]}",
                                        "{\"$error\":{}}",
                                        "{\"$ref\":0}",
                                        "{\"$raw\":\"AQ==\"}",
                                        "{\"$bigint\":\"x\"}",
                                        "{\"$bigint\":1}",
                                        "{\"$bytes\":\"*\"}",
                                        "{\"$bytes\":1}",
                                        "{\"$map\":[[1]]}",
                                        "{\"$map\":{}}",
                                        "{\"$set\":1}",
                                        "{\"$number\":\"1x\"}",
                                        "[{\"$ref\":0}]"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (round_trip(texts[i])[0] != '!')
            test_fail(__FILE__, __LINE__, "taken: %s as %s", texts[i], round_trip(texts[i]));
}
