/* SPDX-License-Identifier: Apache-2.0 */
/* base/utf8.h - validation of UTF-8 (RFC 3629: no surrogates, no overlong forms). */
#ifndef CN_BASE_UTF8_H
#define CN_BASE_UTF8_H
#include <stdbool.h>
#include <stddef.h>

/* Length (1 to 4) of the valid sequence at `text`, or 0 if there is none. */
size_t cn_utf8_sequence(const char *text, size_t length);
bool cn_utf8_valid(const char *text, size_t length);

#endif
