/* SPDX-License-Identifier: Apache-2.0 */
/* A page change survives encoding in both directions, stays small, and malformed ones are refused.
 */
#include "store/pagediff.h"

#include <string.h>

#include "base/err.h"
#include "base/rand.h"
#include "test/lib/test.h"

enum { PAGE = 4096 };

static void fill_random(struct cn_rand *rand, uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)cn_rand_next(rand);
}

static void check_both_ways(const uint8_t *before, const uint8_t *after, size_t page_size)
{
    static uint8_t diff[CN_PAGEDIFF_PAGE_MAX + CN_PAGEDIFF_OVERHEAD], page[CN_PAGEDIFF_PAGE_MAX];
    size_t size = cn_pagediff_encode(before, after, page_size, diff);
    CHECK(size >= 1 && size <= page_size + CN_PAGEDIFF_OVERHEAD);
    memcpy(page, before, page_size);
    CHECK_INT(0, cn_pagediff_apply(page, page_size, diff, size));
    CHECK(memcmp(page, after, page_size) == 0);
    CHECK_INT(0, cn_pagediff_apply(page, page_size, diff, size));
    CHECK(memcmp(page, before, page_size) == 0);
    size = cn_pagediff_encode(NULL, after, page_size, diff);
    CHECK_INT(0, cn_pagediff_expand(page, page_size, diff, size));
    CHECK(memcmp(page, after, page_size) == 0);
}

TEST(pagediff, runs_both_ways_for_changes_of_every_density)
{
    static uint8_t before[CN_PAGEDIFF_PAGE_MAX], after[CN_PAGEDIFF_PAGE_MAX];
    static const size_t sizes[] = {512, 1024, 4096, 8192, 65536};
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (int round = 0; round < 500; round++) {
        size_t size = sizes[round % 5];
        memset(before, 0, size);
        if (cn_rand_below(&rand, 2))
            fill_random(&rand, before, size);
        memcpy(after, before, size);
        for (uint64_t spot = cn_rand_below(&rand, 20); spot > 0; spot--) {
            size_t at = cn_rand_below(&rand, size);
            size_t length = cn_rand_below(&rand, cn_rand_below(&rand, 4) ? 20 : size) + 1;
            if (length > size - at)
                length = size - at;
            fill_random(&rand, after + at, length);
        }
        check_both_ways(before, after, size);
    }
}

TEST(pagediff, costs_a_few_bytes_for_a_few_bytes)
{
    static uint8_t before[PAGE], after[PAGE], diff[PAGE + CN_PAGEDIFF_OVERHEAD];
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    fill_random(&rand, before, PAGE);
    memcpy(after, before, PAGE);
    CHECK_INT(1, cn_pagediff_encode(before, after, PAGE, diff));
    after[0] ^= 1;
    CHECK_INT(4, cn_pagediff_encode(before, after, PAGE, diff));
    after[0] ^= 1, after[PAGE - 1] ^= 1, after[PAGE - 9] ^= 1;
    CHECK_INT(1 + 3 + 9, cn_pagediff_encode(before, after, PAGE, diff));
    fill_random(&rand, after, PAGE);
    CHECK_INT(PAGE + 1, cn_pagediff_encode(before, after, PAGE, diff));
    memset(after, 'x', PAGE);
    CHECK(cn_pagediff_encode(NULL, after, PAGE, diff) < 64);
}

TEST(pagediff, refuses_what_is_no_encoding)
{
    static uint8_t page[PAGE];
    static const struct {
        uint8_t bytes[8];
        size_t size;
    } bad[] = {
        {{0}, 0},                         /* nothing */
        {{0, 1}, 2},                      /* bytes after "nothing changed" */
        {{1, 0}, 2},                      /* no length */
        {{1, 0, 0}, 3},                   /* length 0 */
        {{1, 0, 2, 1}, 4},                /* fewer bytes than its length */
        {{1, 0xff, 0x1f, 2, 1, 1}, 6},    /* one byte past the end of the page */
        {{1, 0x80, 0x20, 1, 1}, 5},       /* begins at the end of the page */
        {{1, 0xff, 0xff, 0xff, 0, 1}, 6}, /* a number of four bytes */
        {{2, 0}, 2},                      /* LZ4 of nothing */
        {{3, 1, 2}, 3},                   /* raw, but not a page */
        {{4}, 1},                         /* unknown tag */
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_INT(CN_ECORRUPT, cn_pagediff_apply(page, PAGE, bad[i].bytes, bad[i].size));
    CHECK_INT(0, cn_pagediff_apply(page, PAGE, (uint8_t[]){1, 0xff, 0x1f, 1, 7}, 5));
    CHECK_INT(7, page[PAGE - 1]);
}
