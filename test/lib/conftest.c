/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/conftest.h"

#include "base/buf.h"
#include "base/err.h"
#include "config/confnode.h"

const char *conftest_text(struct cn_confnode *root, const struct cn_err *err)
{
    static struct cn_buf out;
    cn_buf_clear(&out);
    if (root)
        cn_confnode_write_json(root, &out);
    else
        cn_buf_append_str(&out, err->text);
    cn_confnode_free(root);
    return cn_buf_text(&out);
}
