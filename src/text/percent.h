/* SPDX-License-Identifier: Apache-2.0 */
/* text/percent.h - bytes in URLs: %XX (RFC 3986, section 2.1). Threads: pure. */
#ifndef CN_TEXT_PERCENT_H
#define CN_TEXT_PERCENT_H
#include <stddef.h>

struct cn_buf;

enum cn_percent_flag {
    CN_PERCENT_STRICT = 1, /* a % without two digits is a mistake; otherwise it stands for itself */
    CN_PERCENT_FORM = 2,   /* + is a space, as in the query that a form makes */
};

/* What RFC 3986 leaves unreserved besides letters and digits. */
#define CN_PERCENT_UNRESERVED "-_.~"

/* Writes the text with its escapes resolved to `out`, which has room for `size` bytes and may be
 * the text itself; no NUL is added, and there may be some in it. Returns how many bytes, or -1. */
ptrdiff_t cn_percent_decode(const char *text, size_t size, unsigned flags, char *out);
/* Appends the bytes; what is no letter, no digit and not in `plain` (of ASCII) as %XX. */
void cn_percent_encode(struct cn_buf *out, const void *bytes, size_t size, const char *plain);

#endif
