/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzers of configuration files share: any bytes are a tree that can be written as JSON,
 * or an error with a sentence. */
#ifndef CN_FUZZ_CONFNODE_H
#define CN_FUZZ_CONFNODE_H
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "config/confnode.h"

typedef struct cn_confnode *(*confnode_parse)(const char *file, const char *text, size_t size,
                                              struct cn_err *err);

static inline void try_confnode(confnode_parse parse, const uint8_t *data, size_t size)
{
    struct cn_err err = {0};
    struct cn_buf out = {0};
    struct cn_confnode *root = parse("fuzz", (const char *)data, size, &err);
    CN_ASSERT(!root == (err.code < 0));
    if (root) {
        cn_confnode_write_json(root, &out);
        /* What was read can be read again. */
        struct cn_confnode *again = cn_jsonc_parse("json", (const char *)out.data, out.size, &err);
        CN_ASSERT(again || err.code == CN_ELIMIT);
        cn_confnode_free(again);
    }
    cn_confnode_free(root);
    cn_buf_fini(&out);
}

#endif
