/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a source map, then every place and a stack through it. */
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "worker/sourcemap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_err err = {0};
    struct cn_sourcemap *map = cn_sourcemap_parse("fuzz", (const char *)data, size, &err);
    CN_ASSERT(!map == (err.code < 0));
    if (!map)
        return 0;
    struct cn_buf out = {0};
    struct cn_sourcemap_place place;
    for (uint32_t line = 0; line < 6; line++)
        for (uint32_t column = 0; column < 40; column += 3)
            if (cn_sourcemap_find(map, line, column, &place))
                cn_sourcemap_frame(map, &place, &out);
    static const char stack[] = "Error: x\nf@w:2:5\n@w:1:1\n    at g (w:3:9)\nw:4";
    cn_sourcemap_rewrite(map, "w", stack, sizeof(stack) - 1, &place, &out);
    cn_buf_fini(&out);
    cn_sourcemap_free(map);
    return 0;
}
