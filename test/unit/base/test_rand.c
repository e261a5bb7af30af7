/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"

#include <string.h>

#include "test/lib/test.h"

TEST(rand, the_same_seed_gives_the_same_numbers_and_another_gives_others)
{
    struct cn_rand one, same, other;
    unsigned equal = 0;
    cn_rand_init(&one, 7);
    cn_rand_init(&same, 7);
    cn_rand_init(&other, 8);
    for (int i = 0; i < 1000; i++) {
        uint64_t value = cn_rand_next(&one);
        CHECK(value == cn_rand_next(&same));
        equal += value == cn_rand_next(&other);
    }
    CHECK_INT(0, equal);
}

TEST(rand, a_bounded_number_stays_below_its_bound_and_every_one_comes)
{
    struct cn_rand rand;
    unsigned counts[7] = {0};
    cn_rand_init(&rand, 0); /* a state of zeros would give only zeros */
    for (int i = 0; i < 7000; i++)
        counts[cn_rand_below(&rand, 7)]++;
    for (int i = 0; i < 7; i++)
        CHECK(counts[i] > 850 && counts[i] < 1150);
    CHECK_INT(0, cn_rand_below(&rand, 1));
    for (int i = 0; i < 1000; i++)
        CHECK(cn_rand_below(&rand, UINT64_MAX) < UINT64_MAX);
}

TEST(rand, strong_bytes_fill_all_they_were_asked_for)
{
    uint8_t bytes[300], ored[300] = {0};
    for (int round = 0; round < 20; round++) {
        memset(bytes, 0, sizeof(bytes));
        cn_rand_secure(bytes, sizeof(bytes) - 1);
        CHECK_INT(0, bytes[sizeof(bytes) - 1]); /* and no more */
        for (size_t i = 0; i < sizeof(bytes); i++)
            ored[i] |= bytes[i];
    }
    for (size_t i = 0; i < sizeof(bytes) - 1; i++)
        CHECK(ored[i]);
    cn_rand_secure(bytes, 0);
}
