/* SPDX-License-Identifier: Apache-2.0 */
/* base/utf8.h - UTF-8 (RFC 3629: no surrogates, no overlong forms). */
#ifndef CN_BASE_UTF8_H
#define CN_BASE_UTF8_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length (1 to 4) of the valid sequence at `text`, or 0 if there is none. */
size_t cn_utf8_sequence(const char *text, size_t length);
bool cn_utf8_valid(const char *text, size_t length);
/* Writes `code`, a Unicode scalar value, as 1 to 4 bytes; returns how many. */
size_t cn_utf8_encode(uint32_t code, char bytes[4]);

#endif
