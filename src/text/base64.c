/* SPDX-License-Identifier: Apache-2.0 */
#include "text/base64.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void cn_base64_encode(struct cn_buf *out, const void *bytes, size_t size)
{
    const uint8_t *in = bytes;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)in[i] << 16;
        if (i + 1 < size)
            three |= (uint32_t)in[i + 1] << 8;
        if (i + 2 < size)
            three |= in[i + 2];
        cn_buf_append_byte(out, (uint8_t)digits[three >> 18]);
        cn_buf_append_byte(out, (uint8_t)digits[three >> 12 & 63]);
        cn_buf_append_byte(out, i + 1 < size ? (uint8_t)digits[three >> 6 & 63] : '=');
        cn_buf_append_byte(out, i + 2 < size ? (uint8_t)digits[three & 63] : '=');
    }
}

bool cn_base64_decode(struct cn_buf *out, const char *text, size_t size)
{
    uint32_t bits = 0;
    if (size > 0 && size % 4 == 0 && text[size - 1] == '=')
        size -= text[size - 2] == '=' ? 2 : 1;
    if (size % 4 == 1)
        return false;
    for (size_t i = 0; i < size; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return false;
        bits = bits << 6 | (uint32_t)(digit - digits);
        if (i % 4 != 0)
            cn_buf_append_byte(out, (uint8_t)(bits >> (6 - 2 * (i % 4))));
    }
    return true;
}
