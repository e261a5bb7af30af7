/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum gives the published values, in pieces as in one, by table as by instruction. */
#include "base/crc32c.h"

#include <string.h>

#include "base/rand.h"
#include "test/lib/test.h"

TEST(crc32c, gives_the_published_values)
{
    uint8_t zeros[32] = {0}, ones[32];
    memset(ones, 0xff, sizeof(ones));
    CHECK(cn_crc32c(0, "123456789", 9) == 0xe3069283u);
    CHECK(cn_crc32c(0, zeros, sizeof(zeros)) == 0x8a9136aau); /* RFC 3720, B.4 */
    CHECK(cn_crc32c(0, ones, sizeof(ones)) == 0x62a8ab43u);
    CHECK(cn_crc32c(0, "", 0) == 0);
}

TEST(crc32c, pieces_and_table_agree)
{
    static uint8_t bytes[20000];
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)cn_rand_next(&rand);
    for (int round = 0; round < 200; round++) {
        size_t size = cn_rand_below(&rand, sizeof(bytes)), cut = cn_rand_below(&rand, size + 1);
        uint32_t whole = cn_crc32c(0, bytes, size);
        CHECK(cn_crc32c(cn_crc32c(0, bytes, cut), bytes + cut, size - cut) == whole);
        CHECK(cn_crc32c_portable(0, bytes, size) == whole);
    }
}
