/* SPDX-License-Identifier: Apache-2.0 */
#include "text/percent.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/hexdigit.h"
#include "text/hex.h"

ptrdiff_t cn_percent_decode(const char *text, size_t size, unsigned flags, char *out)
{
    const char *begin = out;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte;
        if (text[i] == '%' && size - i > 2 && cn_hex_decode(text + i + 1, 1, &byte)) {
            *out++ = (char)byte;
            i += 2;
        } else if (text[i] == '%' && (flags & CN_PERCENT_STRICT)) {
            return -1;
        } else {
            *out++ = text[i] == '+' && (flags & CN_PERCENT_FORM) ? ' ' : text[i];
        }
    }
    return out - begin;
}

static bool is_alphanumeric(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static char upper_digit(unsigned value)
{
    char digit = cn_hexdigit(value);
    return digit >= 'a' ? (char)(digit - 'a' + 'A') : digit;
}

void cn_percent_encode(struct cn_buf *out, const void *bytes, size_t size, const char *plain)
{
    const unsigned char *in = bytes;
    size_t plain_size = strlen(plain);
    for (size_t i = 0; i < size; i++) {
        if (is_alphanumeric(in[i]) || memchr(plain, in[i], plain_size))
            cn_buf_append_byte(out, in[i]);
        else
            cn_buf_append(out, (char[]){'%', upper_digit(in[i] >> 4), upper_digit(in[i])}, 3);
    }
}
