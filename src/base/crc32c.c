/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* Castagnoli, bits reversed */

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_fill(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        table[byte] = crc;
    }
}

uint32_t cn_crc32c_portable(uint32_t crc, const void *bytes, size_t size)
{
    pthread_once(&table_once, table_fill);
    const uint8_t *at = bytes, *end = at + size;
    crc = ~crc;
    while (at < end)
        crc = crc >> 8 ^ table[(crc ^ *at++) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *bytes,
                                                               size_t size)
{
    const uint8_t *at = bytes;
    uint64_t wide = ~crc;
    for (; size >= 64; at += 64, size -= 64) {
        uint64_t words[8];
        memcpy(words, at, sizeof(words));
        wide = _mm_crc32_u64(wide, words[0]);
        wide = _mm_crc32_u64(wide, words[1]);
        wide = _mm_crc32_u64(wide, words[2]);
        wide = _mm_crc32_u64(wide, words[3]);
        wide = _mm_crc32_u64(wide, words[4]);
        wide = _mm_crc32_u64(wide, words[5]);
        wide = _mm_crc32_u64(wide, words[6]);
        wide = _mm_crc32_u64(wide, words[7]);
    }
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    uint32_t narrow = (uint32_t)wide;
    for (; size > 0; at++, size--)
        narrow = _mm_crc32_u8(narrow, *at);
    return ~narrow;
}

uint32_t cn_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    if (__builtin_cpu_supports("sse4.2"))
        return crc32c_sse42(crc, bytes, size);
    return cn_crc32c_portable(crc, bytes, size);
}
#else
uint32_t cn_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    return cn_crc32c_portable(crc, bytes, size);
}
#endif
