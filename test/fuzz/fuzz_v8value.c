/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a value of V8: what is taken is a value here, and the same each time (E2, E3). */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "admin/clone.h"
#include "base/assert.h"
#include "base/buf.h"
#include "import/v8value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_buf out = {0}, again = {0}, shown = {0};
    struct cn_err err = {0};
    int rc = cn_v8value_convert(data, size, &out, &err);
    CN_ASSERT(rc == 0 ? out.size > 1 : err.code == rc && out.size == 0);
    if (rc == 0) {
        CN_ASSERT(cn_v8value_convert(data, size, &again, &err) == 0);
        CN_ASSERT(out.size == again.size && memcmp(out.data, again.data, out.size) == 0);
        cn_clone_append_json(&shown, out.data, out.size);
    }
    cn_buf_fini(&out);
    cn_buf_fini(&again);
    cn_buf_fini(&shown);
    return 0;
}
