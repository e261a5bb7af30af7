/* SPDX-License-Identifier: Apache-2.0 */
/* base/multipart.h - parts of a multipart/form-data body (RFC 7578) that is in memory.
 *
 *     struct cn_multipart parser;
 *     cn_multipart_init(&parser, bytes, size, boundary, boundary_size);
 *     while ((rc = cn_multipart_next(&parser, &part, &err)) > 0)
 *         ... part.name, part.start, part.end ...
 *     cn_multipart_fini(&parser);
 *
 * As lenient as the hosted platform: a preamble is skipped, lines may end in LF
 * alone, what follows the last delimiter is ignored.
 *
 * Ownership: the bytes are the caller's and outlive the parser; texts of a part
 *            are valid until the next call. */
#ifndef CN_BASE_MULTIPART_H
#define CN_BASE_MULTIPART_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct cn_multipart {
    const uint8_t *bytes;
    size_t size;
    size_t at;            /* behind the delimiter found last */
    struct cn_buf needle; /* LF, "--", boundary */
    struct cn_buf name, filename;
    bool started;
};

struct cn_multipart_part {
    const char *name, *filename, *type; /* not NUL-terminated; filename NULL: a field, no file */
    size_t name_size, filename_size, type_size;
    size_t start, end; /* of the content, in the bytes */
};

void cn_multipart_init(struct cn_multipart *parser, const uint8_t *bytes, size_t size,
                       const char *boundary, size_t boundary_size);
void cn_multipart_fini(struct cn_multipart *parser);
/* 1: `part` is filled. 0: that was the last one. CN_EINVALID: malformed, `err` says how. */
int cn_multipart_next(struct cn_multipart *parser, struct cn_multipart_part *part,
                      struct cn_err *err);

#endif
