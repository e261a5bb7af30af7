/* SPDX-License-Identifier: Apache-2.0 */
/* text/base64.h - bytes as text (RFC 4648, section 4). Threads: pure. */
#ifndef CN_TEXT_BASE64_H
#define CN_TEXT_BASE64_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_buf;

/* Appends the text of the bytes, padded. */
void cn_base64_encode(struct cn_buf *out, const void *bytes, size_t size);
/* Appends the bytes of a text, padded or not; false if it is none. */
bool cn_base64_decode(struct cn_buf *out, const char *text, size_t size);

/* The value of a digit, or -1. */
static inline int cn_base64_value(unsigned c)
{
    if (c >= 'A' && c <= 'Z')
        return (int)c - 'A';
    if (c >= 'a' && c <= 'z')
        return (int)c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return (int)c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* What so many bytes take as text. */
static inline size_t cn_base64_size(size_t size)
{
    return (size + 2) / 3 * 4;
}
/* The text of bytes that come as UTF-16 code units; `out` has room for cn_base64_size(). False: one
 * of them is no byte. */
bool cn_base64_encode_units(const uint16_t *units, size_t count, uint8_t *out);
/* The bytes of a text in UTF-16 as https://infra.spec.whatwg.org/#forgiving-base64-decode has it:
 * white space is skipped, padding may be missing. `out` has room for count / 4 * 3 + 4. False: it
 * is none. */
bool cn_base64_decode_units(const uint16_t *units, size_t count, uint8_t *out, size_t *size);

#endif
