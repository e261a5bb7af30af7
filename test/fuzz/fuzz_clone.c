/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a stored value: what is shown of them is JSON. */
#include <stddef.h>
#include <stdint.h>

#include "admin/clone.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/json.h"

/* The reader refuses names that are there twice, which bytes nobody wrote may have. */
static int is_json(const struct cn_buf *text)
{
    struct cn_err err = {0};
    struct cn_json *root = cn_json_parse((const char *)text->data, text->size, &err);
    cn_json_free(root);
    return root != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_buf out = {0};
    cn_clone_append_json(&out, data, size);
    CN_ASSERT(out.size > 0);
    (void)is_json(&out);
    cn_buf_fini(&out);
    return 0;
}
