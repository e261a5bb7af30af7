/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pagediff.h"

#include <lz4.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"

enum tag { TAG_NONE, TAG_SPANS, TAG_LZ4, TAG_RAW };

/* From here on LZ4 may be shorter than spans and is tried as well: below, its
 * fixed cost (clearing a 16 KiB hash table) is more than the whole encoding. */
#define TRY_LZ4_SIZE 192

static uint64_t word_at(const uint8_t *bytes, size_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, 8);
    return word;
}

/* to = a ^ b, 16 bytes at a time; `to` may be one of them. Written out because at -O2 the compiler
 * leaves the plain loop at one byte per step: 10 times slower. */
static void xor_bytes(uint8_t *to, const uint8_t *a, const uint8_t *b, size_t size)
{
    typedef uint64_t wide __attribute__((vector_size(16)));
    size_t at = 0;
    for (; at + sizeof(wide) <= size; at += sizeof(wide)) {
        wide x, y;
        memcpy(&x, a + at, sizeof(wide));
        memcpy(&y, b + at, sizeof(wide));
        x ^= y;
        memcpy(to + at, &x, sizeof(wide));
    }
    for (; at < size; at++)
        to[at] = a[at] ^ b[at];
}

static uint8_t *put_number(uint8_t *out, size_t number)
{
    while (number >= 0x80) {
        *out++ = (uint8_t)(number | 0x80);
        number >>= 7;
    }
    *out++ = (uint8_t)number;
    return out;
}

/* The bytes a number of put_number() takes. */
static size_t number_size(size_t number)
{
    return number < 0x80 ? 1 : number < 0x4000 ? 2 : 3;
}

/* Returns the offset of the first word at or after `at` that is not zero, or `size`. */
static size_t skip_zero_words(const uint8_t *image, size_t at, size_t size)
{
    /* Four words at a time: nearly all of nearly all images is zero. */
    while (at + 32 <= size && (word_at(image, at) | word_at(image, at + 8) |
                               word_at(image, at + 16) | word_at(image, at + 24)) == 0)
        at += 32;
    while (at < size && word_at(image, at) == 0)
        at += 8;
    return at;
}

/* Encodes runs of non-zero words, trimmed to their first and last non-zero byte.
 * Returns the size, or 0 if it would exceed `limit`. */
static size_t encode_spans(const uint8_t *image, size_t size, uint8_t *out, size_t limit)
{
    uint8_t *to = out;
    *to++ = TAG_SPANS;
    size_t done = 0; /* bytes of the image that are encoded */
    for (size_t at = skip_zero_words(image, 0, size); at < size;
         at = skip_zero_words(image, at, size)) {
        size_t first = at, last;
        while (at < size && word_at(image, at) != 0)
            at += 8;
        for (last = at; image[last - 1] == 0; last--)
            ;
        for (; image[first] == 0; first++)
            ;
        size_t skip = first - done, length = last - first;
        if ((size_t)(to - out) + number_size(skip) + number_size(length) + length > limit)
            return 0;
        to = put_number(to, skip);
        to = put_number(to, length);
        memcpy(to, image + first, length);
        to += length;
        done = last;
    }
    return (size_t)(to - out);
}

size_t cn_pagediff_encode(const uint8_t *before, const uint8_t *after, size_t page_size,
                          uint8_t *out)
{
    CN_ASSERT(page_size % 8 == 0 && page_size <= CN_PAGEDIFF_PAGE_MAX);
    uint8_t xor [CN_PAGEDIFF_PAGE_MAX];
    const uint8_t *image = after;
    if (before) {
        xor_bytes(xor, before, after, page_size);
        image = xor;
    }
    size_t best = encode_spans(image, page_size, out, page_size);
    if (best == 1) {
        out[0] = TAG_NONE;
        return 1;
    }
    if (best != 0 && best < TRY_LZ4_SIZE)
        return best;
    uint8_t packed[CN_PAGEDIFF_PAGE_MAX];
    int room = (int)(best ? best : page_size) - 2; /* shorter than what there is, or not at all */
    int packed_size =
        LZ4_compress_default((const char *)image, (char *)packed, (int)page_size, room);
    if (packed_size > 0) {
        out[0] = TAG_LZ4;
        memcpy(out + 1, packed, (size_t)packed_size);
        return 1 + (size_t)packed_size;
    }
    if (best)
        return best;
    out[0] = TAG_RAW;
    memcpy(out + 1, image, page_size);
    return 1 + page_size;
}

/* Reads a number of at most 3 bytes; NULL at malformed input. */
static const uint8_t *get_number(const uint8_t *at, const uint8_t *end, size_t *number)
{
    size_t value = 0;
    for (int shift = 0; shift < 21 && at < end; shift += 7) {
        uint8_t byte = *at++;
        value |= (size_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *number = value;
            return at;
        }
    }
    return NULL;
}

static int apply_spans(uint8_t *page, size_t page_size, const uint8_t *at, const uint8_t *end)
{
    size_t offset = 0;
    while (at < end) {
        size_t skip, length;
        at = get_number(at, end, &skip);
        if (at)
            at = get_number(at, end, &length);
        if (!at || skip > page_size - offset || length == 0 || length > page_size - offset - skip ||
            length > (size_t)(end - at))
            return CN_ECORRUPT;
        xor_bytes(page + offset + skip, page + offset + skip, at, length);
        offset += skip + length;
        at += length;
    }
    return 0;
}

int cn_pagediff_apply(uint8_t *page, size_t page_size, const uint8_t *diff, size_t diff_size)
{
    CN_ASSERT(page_size <= CN_PAGEDIFF_PAGE_MAX);
    if (diff_size == 0 || diff_size > page_size + CN_PAGEDIFF_OVERHEAD)
        return CN_ECORRUPT;
    const uint8_t *body = diff + 1;
    size_t body_size = diff_size - 1;
    switch (diff[0]) {
    case TAG_NONE:
        return body_size == 0 ? 0 : CN_ECORRUPT;
    case TAG_SPANS:
        return apply_spans(page, page_size, body, body + body_size);
    case TAG_LZ4: {
        uint8_t image[CN_PAGEDIFF_PAGE_MAX];
        int size =
            LZ4_decompress_safe((const char *)body, (char *)image, (int)body_size, (int)page_size);
        if (size != (int)page_size)
            return CN_ECORRUPT;
        xor_bytes(page, page, image, page_size);
        return 0;
    }
    case TAG_RAW:
        if (body_size != page_size)
            return CN_ECORRUPT;
        xor_bytes(page, page, body, page_size);
        return 0;
    default:
        return CN_ECORRUPT;
    }
}

int cn_pagediff_expand(uint8_t *page, size_t page_size, const uint8_t *diff, size_t diff_size)
{
    memset(page, 0, page_size);
    return cn_pagediff_apply(page, page_size, diff, diff_size);
}
