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

/* The instruction takes three cycles and can begin every cycle, so long runs are cut into three
 * blocks that are summed side by side. The register is linear: that of a block that follows
 * another is its own, begun with 0, xor the other's after as many zero bytes; `skip` has those. */
#define BLOCK ((size_t)1024)
static uint32_t skip[4][256]; /* a byte of the register, BLOCK zero bytes later */
static pthread_once_t skip_once = PTHREAD_ONCE_INIT;

__attribute__((target("sse4.2"))) static void skip_fill(void)
{
    for (int byte = 0; byte < 4; byte++) {
        for (int bit = 0; bit < 8; bit++) {
            uint64_t wide = 1ull << (8 * byte + bit);
            for (size_t i = 0; i < BLOCK / 8; i++)
                wide = _mm_crc32_u64(wide, 0);
            for (unsigned value = 0; value < 256; value++)
                skip[byte][value] ^= value >> bit & 1 ? (uint32_t)wide : 0;
        }
    }
}

static uint32_t skip_block(uint64_t wide)
{
    return skip[0][wide & 0xff] ^ skip[1][wide >> 8 & 0xff] ^ skip[2][wide >> 16 & 0xff] ^
           skip[3][wide >> 24 & 0xff];
}

/* The register after three blocks. */
__attribute__((target("sse4.2"))) static uint64_t three_blocks(uint64_t first, const uint8_t *at)
{
    uint64_t second = 0, third = 0;
    for (const uint8_t *end = at + BLOCK; at < end; at += 8) {
        uint64_t words[3];
        memcpy(&words[0], at, 8);
        memcpy(&words[1], at + BLOCK, 8);
        memcpy(&words[2], at + 2 * BLOCK, 8);
        first = _mm_crc32_u64(first, words[0]);
        second = _mm_crc32_u64(second, words[1]);
        third = _mm_crc32_u64(third, words[2]);
    }
    return skip_block(skip_block(first) ^ second) ^ third;
}

__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *bytes,
                                                               size_t size)
{
    const uint8_t *at = bytes;
    uint64_t wide = ~crc;
    if (size >= 3 * BLOCK)
        pthread_once(&skip_once, skip_fill);
    for (; size >= 3 * BLOCK; at += 3 * BLOCK, size -= 3 * BLOCK)
        wide = three_blocks(wide, at);
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
