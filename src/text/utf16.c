/* SPDX-License-Identifier: Apache-2.0 */
#include "text/utf16.h"

#include <string.h>

#include "base/utf8.h"

#if defined(__SSE2__)
#include <emmintrin.h>

/* Widens 16 bytes at a time while all are ASCII; returns how many were done. */
static size_t widen(const char *text, size_t size, uint16_t *out)
{
    size_t i = 0;
    const __m128i zero = _mm_setzero_si128();
    for (; size - i >= 16; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(text + i));
        if (_mm_movemask_epi8(bytes))
            break;
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm_unpacklo_epi8(bytes, zero));
        _mm_storeu_si128((__m128i *)(void *)(out + i + 8), _mm_unpackhi_epi8(bytes, zero));
    }
    return i;
}

/* Narrows 16 units at a time while all are ASCII; returns how many were done. */
static size_t narrow(const uint16_t *units, size_t count, uint8_t *out)
{
    size_t i = 0;
    const __m128i high = _mm_set1_epi16((short)0xff80);
    const __m128i zero = _mm_setzero_si128();
    for (; count - i >= 16; i += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(units + i));
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(units + i + 8));
        __m128i beyond = _mm_and_si128(_mm_or_si128(a, b), high);
        if (_mm_movemask_epi8(_mm_cmpeq_epi8(beyond, zero)) != 0xffff)
            break;
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm_packus_epi16(a, b));
    }
    return i;
}
#else
static size_t widen(const char *text, size_t size, uint16_t *out)
{
    size_t i = 0;
    while (i < size && (uint8_t)text[i] < 0x80) {
        out[i] = (uint8_t)text[i];
        i++;
    }
    return i;
}

static size_t narrow(const uint16_t *units, size_t count, uint8_t *out)
{
    size_t i = 0;
    while (i < count && units[i] < 0x80) {
        out[i] = (uint8_t)units[i];
        i++;
    }
    return i;
}
#endif

size_t cn_utf16_ascii_prefix(const char *text, size_t size)
{
    size_t i = 0;
    for (; size - i >= 32; i += 32) {
        uint64_t words[4];
        memcpy(words, text + i, sizeof(words));
        if ((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080u)
            break;
    }
    while (i < size && (uint8_t)text[i] < 0x80)
        i++;
    return i;
}

size_t cn_utf16_to_utf8(const uint16_t *units, size_t count, uint8_t *out)
{
    uint8_t *at = out;
    size_t i = 0;
    while (i < count) {
        size_t plain = narrow(units + i, count - i, at);
        i += plain;
        at += plain;
        if (i == count)
            break;
        uint32_t c = units[i++];
        if (c < 0x80) {
            *at++ = (uint8_t)c;
            continue;
        }
        if (c < 0x800) {
            *at++ = (uint8_t)(0xc0 | c >> 6);
            *at++ = (uint8_t)(0x80 | (c & 63));
            continue;
        }
        if (c >= 0xd800 && c < 0xe000) {
            if (c < 0xdc00 && i < count && units[i] >= 0xdc00 && units[i] < 0xe000) {
                c = 0x10000 + ((c - 0xd800) << 10) + (units[i++] - 0xdc00u);
                *at++ = (uint8_t)(0xf0 | c >> 18);
                *at++ = (uint8_t)(0x80 | (c >> 12 & 63));
                *at++ = (uint8_t)(0x80 | (c >> 6 & 63));
                *at++ = (uint8_t)(0x80 | (c & 63));
                continue;
            }
            c = 0xfffd;
        }
        *at++ = (uint8_t)(0xe0 | c >> 12);
        *at++ = (uint8_t)(0x80 | (c >> 6 & 63));
        *at++ = (uint8_t)(0x80 | (c & 63));
    }
    return (size_t)(at - out);
}

size_t cn_utf16_latin1_to_utf8(const uint8_t *bytes, size_t count, uint8_t *out)
{
    size_t ascii = cn_utf16_ascii_prefix((const char *)bytes, count);
    if (ascii)
        memcpy(out, bytes, ascii);
    uint8_t *at = out + ascii;
    for (size_t i = ascii; i < count; i++) {
        if (bytes[i] < 0x80) {
            *at++ = bytes[i];
        } else {
            *at++ = (uint8_t)(0xc0 | bytes[i] >> 6);
            *at++ = (uint8_t)(0x80 | (bytes[i] & 63));
        }
    }
    return (size_t)(at - out);
}

/* Bytes of the maximal part of a broken sequence at `p`: the lead byte and the tails that could
 * have continued it. */
static size_t broken_size(const uint8_t *p, size_t size)
{
    size_t tails = p[0] >= 0xc2 && p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : 3;
    if (p[0] < 0xc2 || p[0] > 0xf4 || size < 2)
        return 1;
    uint8_t low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high)
        return 1;
    size_t used = 2;
    while (used < tails + 1 && used < size && (p[used] & 0xc0) == 0x80)
        used++;
    return used;
}

size_t cn_utf16_from_utf8(const char *text, size_t size, uint16_t *out)
{
    size_t count = 0, i = 0;
    while (i < size) {
        size_t plain = widen(text + i, size - i, out + count);
        i += plain;
        count += plain;
        if (i == size)
            break;
        const uint8_t *p = (const uint8_t *)text + i;
        size_t used = cn_utf8_sequence(text + i, size - i);
        if (used == 1) {
            out[count++] = p[0];
        } else if (used == 2) {
            out[count++] = (uint16_t)((p[0] & 31) << 6 | (p[1] & 63));
        } else if (used == 3) {
            out[count++] = (uint16_t)((p[0] & 15) << 12 | (p[1] & 63) << 6 | (p[2] & 63));
        } else if (used == 4) {
            uint32_t c = ((uint32_t)(p[0] & 7) << 18 | (uint32_t)(p[1] & 63) << 12 |
                          (uint32_t)(p[2] & 63) << 6 | (p[3] & 63)) -
                         0x10000;
            out[count++] = (uint16_t)(0xd800 + (c >> 10));
            out[count++] = (uint16_t)(0xdc00 + (c & 1023));
        } else {
            out[count++] = 0xfffd;
            used = broken_size(p, size - i);
        }
        i += used;
    }
    return count;
}
