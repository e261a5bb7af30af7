/* SPDX-License-Identifier: Apache-2.0 */
/* What one page change costs, for the changes SQLite makes: nanoseconds to encode and to apply,
 * bytes of log, and what LZ4 alone would need for the same change. */
#include <lz4.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/rand.h"
#include "store/pagediff.h"

enum { PAGE = 4096, ROUNDS = 200000 };

static double ns_per_round(uint64_t start)
{
    return (double)(cn_clock_mono_ns(cn_clock_system()) - start) / ROUNDS;
}

static void measure(const char *name, const uint8_t *before, const uint8_t *after)
{
    static uint8_t diff[PAGE + CN_PAGEDIFF_OVERHEAD], page[PAGE], image[PAGE];
    static char packed[LZ4_COMPRESSBOUND(PAGE)];
    struct cn_clock *clock = cn_clock_system();
    size_t size = 0;
    uint64_t start = cn_clock_mono_ns(clock);
    for (int i = 0; i < ROUNDS; i++)
        size = cn_pagediff_encode(before, after, PAGE, diff);
    double encode_ns = ns_per_round(start);
    memcpy(page, after, PAGE);
    start = cn_clock_mono_ns(clock);
    for (int i = 0; i < ROUNDS; i++)
        cn_pagediff_apply(page, PAGE, diff, size);
    double apply_ns = ns_per_round(start);
    int lz4_size = 0;
    start = cn_clock_mono_ns(clock);
    for (int i = 0; i < ROUNDS; i++) {
        for (int j = 0; j < PAGE; j++)
            image[j] = (before ? before[j] : 0) ^ after[j];
        lz4_size = LZ4_compress_default((char *)image, packed, PAGE, sizeof(packed));
    }
    printf("%-26s %5zu bytes  encode %5.0f ns  apply %5.0f ns   (LZ4 alone %5d bytes %5.0f ns)\n",
           name, size, encode_ns, apply_ns, lz4_size, ns_per_round(start));
}

int main(void)
{
    static uint8_t before[PAGE], after[PAGE];
    struct cn_rand rand;
    cn_rand_init(&rand, 1);
    /* A leaf page half full of rows: text that repeats a little. */
    for (int i = PAGE / 2; i < PAGE; i++)
        before[i] =
            i % 40 < 20 ? (uint8_t) "name=alice&address="[i % 19] : (uint8_t)cn_rand_next(&rand);
    memcpy(after, before, PAGE);
    after[3000] ^= 1;
    measure("counter", before, after);
    after[24] ^= 3, after[95] ^= 3;
    measure("counter and file header", before, after);
    memcpy(after + PAGE / 2 - 120, before + 3000, 120); /* a new row */
    after[5] ^= 1, after[7] ^= 9, after[70] = 9, after[71] = 0x17;
    measure("insert of 120 bytes", before, after);
    measure("whole page, half full", NULL, after);
    for (int i = 0; i < PAGE; i++)
        after[i] = (uint8_t)cn_rand_next(&rand);
    measure("whole page, random", NULL, after);
    uint64_t start = cn_clock_mono_ns(cn_clock_system());
    uint32_t crc = 0;
    for (int i = 0; i < ROUNDS; i++)
        crc = cn_crc32c(crc, after, PAGE);
    double ns = ns_per_round(start);
    printf("%-26s %5.0f ns (%.1f GB/s, %08x)\n", "crc32c of a page", ns, PAGE / ns, crc);
    return 0;
}
