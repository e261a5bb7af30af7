/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of NAME=VALUE as fields of a form: they are refused with a sentence, or become JSON that
 * can be read, if their texts are UTF-8. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/utf8.h"
#include "v4/formtree.h"

static int add_line(struct cn_formtree *tree, const char *line, size_t size, struct cn_err *err)
{
    const char *equals = memchr(line, '=', size);
    size_t name_size = equals ? (size_t)(equals - line) : size;
    if (!cn_formtree_has("m", line, name_size))
        return 0;
    const char *value = equals ? equals + 1 : line + size;
    return cn_formtree_add(tree, line, name_size, value, size - (size_t)(value - line), err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_formtree tree = {0};
    struct cn_err err = {0};
    const char *at = (const char *)data, *end = at + size;
    int rc = 0;
    while (at < end && rc == 0) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        const char *stop = lf ? lf : end;
        rc = add_line(&tree, at, (size_t)(stop - at), &err);
        at = lf ? lf + 1 : end;
    }
    CN_ASSERT(rc == 0 || ((rc == CN_EINVALID || rc == CN_ELIMIT) && err.text[0]));
    if (rc == 0 && tree.root) {
        struct cn_buf json = {0};
        cn_formtree_write(&tree, &json);
        struct cn_json *root = cn_json_parse((const char *)json.data, json.size, &err);
        CN_ASSERT(root || !cn_utf8_valid((const char *)data, size));
        cn_json_free(root);
        cn_buf_fini(&json);
    }
    cn_formtree_fini(&tree);
    return 0;
}
