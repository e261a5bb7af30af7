/* SPDX-License-Identifier: Apache-2.0 */
/* text/utf16.h - UTF-16 to and from UTF-8, eight or sixteen characters at a time where they are
 * ASCII. JavaScript strings cross the border this way when they are long. */
#ifndef CN_TEXT_UTF16_H
#define CN_TEXT_UTF16_H
#include <stddef.h>
#include <stdint.h>

/* Writes the UTF-8 of `count` units to `out`, which has room for 3 bytes each; returns its size.
 * A lone surrogate becomes U+FFFD. */
size_t cn_utf16_to_utf8(const uint16_t *units, size_t count, uint8_t *out);

/* Writes UTF-16 of `size` bytes to `out`, which has room for as many units; returns their number.
 * Mistakes become U+FFFD, one for each maximal part of a broken sequence, as the Encoding
 * standard has it. */
size_t cn_utf16_from_utf8(const char *text, size_t size, uint16_t *out);

/* Writes the UTF-8 of `count` characters of a byte each to `out`, which has room for 2 bytes each;
 * returns its size. */
size_t cn_utf16_latin1_to_utf8(const uint8_t *bytes, size_t count, uint8_t *out);

/* Length of the ASCII run at the start. */
size_t cn_utf16_ascii_prefix(const char *text, size_t size);

#endif
