/* SPDX-License-Identifier: Apache-2.0 */
/* JSON becomes a stored value that can be read again, and is then the same as before. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "admin/clone.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_err err = {0};
    struct cn_json *json = cn_json_parse((const char *)data, size, &err);
    struct cn_buf bytes = {0}, shown = {0}, again = {0};
    if (json && cn_clone_from_json(&bytes, json, &err) == 0) {
        cn_clone_append_json(&shown, bytes.data, bytes.size);
        /* Unreadable bytes would be shown so; a member of that name is the input's own. */
        if (json->kind != CN_JSON_OBJECT)
            CN_ASSERT(shown.size < 9 || memcmp(shown.data, "{\"$raw\":\"", 9) != 0);
        struct cn_json *second = cn_json_parse((const char *)shown.data, shown.size, &err);
        /* What is nested too deeply is shown as something else. */
        if (second && cn_clone_from_json(&again, second, &err) == 0 && again.size == bytes.size)
            CN_ASSERT(memcmp(again.data, bytes.data, bytes.size) == 0);
        cn_json_free(second);
    }
    cn_json_free(json);
    cn_buf_fini(&bytes);
    cn_buf_fini(&shown);
    cn_buf_fini(&again);
    return 0;
}
