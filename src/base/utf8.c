/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include "base/assert.h"

#include <stdint.h>
#include <string.h>

static bool is_tail(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t cn_utf8_sequence(const char *text, size_t length)
{
    const uint8_t *p = (const uint8_t *)text;
    if (!length)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2)
        return 0;
    if (p[0] < 0xe0)
        return length >= 2 && is_tail(p[1]) ? 2 : 0;
    if (p[0] < 0xf0) {
        if (length < 3 || !is_tail(p[1]) || !is_tail(p[2]))
            return 0;
        if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
            return 0;
        return 3;
    }
    if (p[0] > 0xf4 || length < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3]))
        return 0;
    if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return 4;
}

bool cn_utf8_valid(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length) {
        /* Eight ASCII bytes at a time: most text is. */
        if (length - i >= 8) {
            uint64_t word;
            memcpy(&word, text + i, 8);
            if (!(word & 0x8080808080808080u)) {
                i += 8;
                continue;
            }
        }
        size_t used = cn_utf8_sequence(text + i, length - i);
        if (!used)
            return false;
        i += used;
    }
    return true;
}

size_t cn_utf8_encode(uint32_t code, char bytes[4])
{
    CN_ASSERT(code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff));
    if (code < 0x80) {
        bytes[0] = (char)code;
        return 1;
    }
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    size_t extra = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    bytes[0] = (char)(lead[extra] | code >> (6 * extra));
    for (size_t i = 1; i <= extra; i++)
        bytes[i] = (char)(0x80 | (code >> (6 * (extra - i)) & 0x3f));
    return extra + 1;
}
