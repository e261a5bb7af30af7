/* SPDX-License-Identifier: Apache-2.0 */
/* text/base64.h - bytes as text (RFC 4648, section 4). Threads: pure. */
#ifndef CN_TEXT_BASE64_H
#define CN_TEXT_BASE64_H
#include <stdbool.h>
#include <stddef.h>

struct cn_buf;

/* Appends the text of the bytes, padded. */
void cn_base64_encode(struct cn_buf *out, const void *bytes, size_t size);
/* Appends the bytes of a text, padded or not; false if it is none. */
bool cn_base64_decode(struct cn_buf *out, const char *text, size_t size);

#endif
