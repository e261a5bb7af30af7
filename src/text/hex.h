/* SPDX-License-Identifier: Apache-2.0 */
/* text/hex.h - bytes as hexadecimal digits, two for each, the high one first. Threads: pure. */
#ifndef CN_TEXT_HEX_H
#define CN_TEXT_HEX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_buf;

/* Writes 2 * size digits in lower case, then a NUL. */
void cn_hex_encode(const void *bytes, size_t size, char *out);
/* The same at the end of a buffer, without the NUL. */
void cn_hex_append(struct cn_buf *out, const void *bytes, size_t size);
/* Reads `size` bytes of digits in either case. False: there is something else among the 2 * size
 * characters; `out` may have been written to. */
bool cn_hex_decode(const char *digits, size_t size, uint8_t *out);

#endif
