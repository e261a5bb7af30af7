/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a multipart/form-data body. The first byte is the length of the
 * boundary, which follows it. Contents lie inside the body, in order, and never
 * hold the delimiter. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t boundary_size = data[0] % 8;
    if (boundary_size + 1 > size)
        return 0;
    const char *boundary = (const char *)data + 1;
    const uint8_t *body = data + 1 + boundary_size;
    size_t body_size = size - 1 - boundary_size;
    struct cn_multipart parser;
    cn_multipart_init(&parser, body, body_size, boundary, boundary_size);
    struct cn_multipart_part part;
    struct cn_err err = {0};
    size_t last = 0;
    int rc;
    while ((rc = cn_multipart_next(&parser, &part, &err)) > 0) {
        CN_ASSERT(part.name && part.start >= last && part.end >= part.start);
        CN_ASSERT(part.end <= body_size && part.type);
        CN_ASSERT(part.end == part.start || !memmem(body + part.start, part.end - part.start,
                                                    parser.needle.data, parser.needle.size));
        last = part.end;
    }
    CN_ASSERT(rc == 0 || (rc == CN_EINVALID && err.text[0]));
    cn_multipart_fini(&parser);
    return 0;
}
