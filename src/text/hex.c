/* SPDX-License-Identifier: Apache-2.0 */
#include "text/hex.h"

#include "base/buf.h"
#include "base/hexdigit.h"

void cn_hex_encode(const void *bytes, size_t size, char *out)
{
    const uint8_t *in = bytes;
    for (size_t i = 0; i < size; i++) {
        *out++ = cn_hexdigit(in[i] >> 4);
        *out++ = cn_hexdigit(in[i]);
    }
    *out = 0;
}

void cn_hex_append(struct cn_buf *out, const void *bytes, size_t size)
{
    const uint8_t *in = bytes;
    cn_buf_reserve(out, 2 * size);
    for (size_t i = 0; i < size; i++)
        cn_buf_append(out, (char[]){cn_hexdigit(in[i] >> 4), cn_hexdigit(in[i])}, 2);
}

bool cn_hex_decode(const char *digits, size_t size, uint8_t *out)
{
    for (size_t i = 0; i < size; i++) {
        int high = cn_hexdigit_value((unsigned char)digits[2 * i]);
        int low = high < 0 ? -1 : cn_hexdigit_value((unsigned char)digits[2 * i + 1]);
        if (low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
