/* SPDX-License-Identifier: Apache-2.0 */
#include "base/siphash.h"

#include <string.h>

#include "test/lib/test.h"

TEST(siphash, matches_the_published_vector)
{
    /* Key 00..0f, message 00..0e: from the reference's table for 128 bits of output. */
    uint8_t key[16], message[15], out[16];
    for (int i = 0; i < 16; i++)
        key[i] = (uint8_t)i;
    for (int i = 0; i < 15; i++)
        message[i] = (uint8_t)i;
    static const uint8_t want[16] = {0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11,
                                     0x7e, 0x08, 0xec, 0x0f, 0x97, 0xcf, 0xc3, 0xd9};
    cn_siphash(key, message, sizeof(message), out);
    CHECK(memcmp(want, out, 16) == 0);
}

TEST(siphash, every_bit_of_key_and_message_and_the_length_count)
{
    uint8_t key[16] = {1}, message[40] = {2}, first[16], out[16];
    cn_siphash(key, message, 32, first);
    for (unsigned bit = 0; bit < 16 * 8; bit++) {
        key[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cn_siphash(key, message, 32, out);
        CHECK(memcmp(first, out, 16) != 0);
        key[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (unsigned bit = 0; bit < 32 * 8; bit++) {
        message[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cn_siphash(key, message, 32, out);
        CHECK(memcmp(first, out, 16) != 0);
        message[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t size = 0; size < sizeof(message); size++) { /* zeros at the end are not padding */
        cn_siphash(key, message, size, out);
        CHECK_INT(size == 32, memcmp(first, out, 16) == 0);
    }
}
