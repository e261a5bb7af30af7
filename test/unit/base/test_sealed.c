/* SPDX-License-Identifier: Apache-2.0 */
/* A sealed text is JSON as before, and no bit of it changes unnoticed. */
#include "base/sealed.h"

#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "test/lib/test.h"

TEST(sealed, is_json_as_before)
{
    struct cn_buf text = {0};
    struct cn_err err = {0};
    cn_buf_append_str(&text, "{\"a\":1}");
    CHECK_INT(0, cn_sealed_check(&text)); /* not yet */
    cn_sealed_put(&text);
    CHECK_INT(1, cn_sealed_check(&text));
    struct cn_json *json = cn_json_parse((const char *)text.data, text.size, &err);
    CHECK_INT(1, cn_json_int(json, "a"));
    CHECK_INT(8, strlen(cn_json_text(json, "crc32c")));
    cn_json_free(json);
    cn_buf_fini(&text);
}

TEST(sealed, no_bit_changes_unnoticed)
{
    struct cn_buf text = {0};
    cn_buf_append_str(&text, "{\"name\":\"x\",\"list\":[1,2,3]}");
    cn_sealed_put(&text);
    for (size_t i = 0; i < text.size * 8; i++) {
        text.data[i / 8] ^= (uint8_t)(1u << i % 8);
        CHECK(cn_sealed_check(&text) != 1);
        text.data[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    CHECK_INT(1, cn_sealed_check(&text));
    for (; text.size > 0; text.size--) {
        struct cn_buf cut = {.data = text.data, .size = text.size - 1};
        CHECK(cn_sealed_check(&cut) != 1);
    }
    cn_buf_fini(&text);
}
