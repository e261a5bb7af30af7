/* SPDX-License-Identifier: Apache-2.0 */
#include "text/base64.h"

#include "base/buf.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Four digits of up to three bytes. */
static inline void put_three(uint8_t *out, unsigned a, unsigned b, unsigned c, size_t count)
{
    out[0] = (uint8_t)digits[a >> 2 & 63];
    out[1] = (uint8_t)digits[(a << 4 | b >> 4) & 63];
    out[2] = count > 1 ? (uint8_t)digits[(b << 2 | c >> 6) & 63] : '=';
    out[3] = count > 2 ? (uint8_t)digits[c & 63] : '=';
}

void cn_base64_encode(struct cn_buf *out, const void *bytes, size_t size)
{
    const uint8_t *in = bytes;
    cn_buf_reserve(out, cn_base64_size(size));
    for (size_t i = 0; i < size; i += 3, out->size += 4)
        put_three(out->data + out->size, in[i], i + 1 < size ? in[i + 1] : 0,
                  i + 2 < size ? in[i + 2] : 0, size - i);
}

bool cn_base64_encode_units(const uint16_t *units, size_t count, uint8_t *out)
{
    unsigned all = 0;
    for (size_t i = 0; i < count; i += 3, out += 4) {
        unsigned a = units[i], b = i + 1 < count ? units[i + 1] : 0,
                 c = i + 2 < count ? units[i + 2] : 0;
        all |= a | b | c;
        put_three(out, a, b, c, count - i);
    }
    return all <= 0xff;
}

bool cn_base64_decode(struct cn_buf *out, const char *text, size_t size)
{
    uint32_t bits = 0;
    if (size > 0 && size % 4 == 0 && text[size - 1] == '=')
        size -= text[size - 2] == '=' ? 2 : 1;
    if (size % 4 == 1)
        return false;
    for (size_t i = 0; i < size; i++) {
        int value = cn_base64_value((unsigned char)text[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 != 0)
            cn_buf_append_byte(out, (uint8_t)(bits >> (6 - 2 * (i % 4))));
    }
    return true;
}

bool cn_base64_decode_units(const uint16_t *units, size_t count, uint8_t *out, size_t *size)
{
    size_t used = 0, found = 0, padding = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned c = units[i];
        if (c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r')
            continue;
        if (c == '=') {
            if (++padding > 2)
                return false;
            continue;
        }
        int value = cn_base64_value(c);
        if (value < 0 || padding)
            return false;
        bits = bits << 6 | (uint32_t)value;
        if (++found % 4 == 0) {
            out[used++] = (uint8_t)(bits >> 16);
            out[used++] = (uint8_t)(bits >> 8);
            out[used++] = (uint8_t)bits;
        }
    }
    if ((padding && (found + padding) % 4 != 0) || found % 4 == 1)
        return false;
    if (found % 4 == 2) {
        out[used++] = (uint8_t)(bits >> 4);
    } else if (found % 4 == 3) {
        out[used++] = (uint8_t)(bits >> 10);
        out[used++] = (uint8_t)(bits >> 2);
    }
    *size = used;
    return true;
}
