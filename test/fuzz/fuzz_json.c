/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as JSON: a tree, or an error with a sentence. */
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_err err = {0};
    struct cn_json *root = cn_json_parse((const char *)data, size, &err);
    CN_ASSERT(!root == (err.code < 0));
    cn_json_free(root);
    return 0;
}
