/* SPDX-License-Identifier: Apache-2.0 */
/* Large numbers: powers, groups, primes. */
#include "crypto/number.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "test/lib/vector.h"

TEST(number, powers_are_as_long_as_their_modulus)
{
    struct cn_buf out = {0};
    /* 2 ** 10 % 1000003 = 1024, in three bytes */
    CHECK_INT(0, cn_number_mod_exp(test_hex("02"), test_hex("0a"), test_hex("0f4243"), &out, NULL));
    CHECK_HEX("000400", &out);
    CHECK_INT(0, cn_number_mod_exp(test_hex("02"), test_hex(""), test_hex("07"), &out, NULL));
    CHECK_HEX("01", &out);
    static const char *const bad[] = {"", "00", "01", "08"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(bad); i++)
        CHECK_INT(CN_EINVALID,
                  cn_number_mod_exp(test_hex("02"), test_hex("0a"), test_hex(bad[i]), &out, NULL));
    uint8_t *large = cn_alloc(CN_NUMBER_BITS_MAX / 8 + 1);
    memset(large, 0xff, CN_NUMBER_BITS_MAX / 8 + 1);
    struct cn_bytes too_large = {large, CN_NUMBER_BITS_MAX / 8 + 1};
    CHECK_INT(CN_EINVALID,
              cn_number_mod_exp(too_large, test_hex("01"), test_hex("07"), &out, NULL));
    CHECK_INT(CN_EINVALID, cn_number_is_prime(too_large, NULL, NULL));
    cn_free(large);
    CHECK_INT(0, out.size);
    CHECK_QUEUE();
    cn_buf_fini(&out);
}

/* Two that raise the generator and each other's number agree. */
TEST(number, the_groups_agree_on_a_secret)
{
    static const unsigned sizes[] = {768, 1024, 1536, 2048};
    for (size_t i = 0; i < CN_ARRAY_COUNT(sizes); i++) {
        struct cn_buf prime = {0}, a = {0}, b = {0}, one = {0}, other = {0};
        CHECK_INT(0, cn_number_group(sizes[i], &prime, NULL));
        CHECK_INT(sizes[i] / 8, prime.size);
        CHECK_INT(sizes[i], cn_number_bits(test_span(&prime)));
        struct cn_bytes x = test_hex("0123456789abcdef"), y = test_hex("fedcba9876543211");
        struct cn_bytes p = test_span(&prime), two = test_hex("02");
        CHECK_INT(0, cn_number_mod_exp(two, x, p, &a, NULL));
        CHECK_INT(0, cn_number_mod_exp(two, y, p, &b, NULL));
        CHECK_INT(0, cn_number_mod_exp(test_span(&b), x, p, &one, NULL));
        CHECK_INT(0, cn_number_mod_exp(test_span(&a), y, p, &other, NULL));
        CHECK(one.size == other.size && memcmp(one.data, other.data, one.size) == 0);
        cn_buf_fini(&prime);
        cn_buf_fini(&a);
        cn_buf_fini(&b);
        cn_buf_fini(&one);
        cn_buf_fini(&other);
    }
    struct cn_buf none = {0};
    CHECK_INT(CN_EUNSUPPORTED, cn_number_group(512, &none, NULL));
}

TEST(number, primes_are_what_was_wished_for)
{
    struct cn_bytes add = test_hex("0c"), rem = test_hex("0b");
    struct cn_number_wish wishes[] = {{.bits = 64},
                                      {.bits = 64, .safe = true},
                                      {.bits = 64, .add = &add, .rem = &rem},
                                      {.bits = 3}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(wishes); i++) {
        struct cn_buf out = {0};
        CHECK_INT(0, cn_number_prime(&wishes[i], &out, NULL));
        CHECK_INT(1, cn_number_is_prime(test_span(&out), NULL, NULL));
        CHECK_INT(wishes[i].bits, cn_number_bits(test_span(&out)));
        uint64_t value = 0;
        for (size_t k = 0; k < out.size; k++)
            value = value << 8 | out.data[k];
        if (wishes[i].add)
            CHECK_INT(11, value % 12);
        if (wishes[i].safe) {
            uint8_t half[8];
            for (size_t k = 0; k < 8; k++)
                half[k] = (uint8_t)((value - 1) / 2 >> (56 - 8 * k));
            CHECK_INT(1, cn_number_is_prime((struct cn_bytes){half, 8}, NULL, NULL));
        }
        cn_buf_fini(&out);
    }
    struct cn_buf none = {0};
    CHECK_INT(CN_EINVALID, cn_number_prime(&(struct cn_number_wish){.bits = 0}, &none, NULL));
    CHECK_INT(CN_EINVALID, cn_number_prime(&(struct cn_number_wish){.bits = CN_NUMBER_BITS_MAX + 1},
                                           &none, NULL));
    CHECK_INT(CN_EPROTOCOL, cn_number_prime(&(struct cn_number_wish){.bits = 1}, &none, NULL));
    CHECK_QUEUE();
}

TEST(number, small_numbers_are_told_apart_and_measured)
{
    static const uint8_t primes[] = {2, 3, 5, 7, 11, 13, 251};
    static const uint8_t others[] = {0, 1, 4, 9, 15, 255};
    for (size_t i = 0; i < CN_ARRAY_COUNT(primes); i++)
        CHECK_INT(1, cn_number_is_prime((struct cn_bytes){&primes[i], 1}, NULL, NULL));
    for (size_t i = 0; i < CN_ARRAY_COUNT(others); i++)
        CHECK_INT(0, cn_number_is_prime((struct cn_bytes){&others[i], 1}, NULL, NULL));
    CHECK_INT(0, cn_number_bits(test_hex("")));
    CHECK_INT(0, cn_number_bits(test_hex("0000")));
    CHECK_INT(1, cn_number_bits(test_hex("0001")));
    CHECK_INT(8, cn_number_bits(test_hex("80")));
    CHECK_INT(9, cn_number_bits(test_hex("000100")));
}

/* C4: also a search that can find nothing, 3 being a factor of all there is. */
TEST(number, C4_a_search_that_is_given_up_ends)
{
    const atomic_bool given_up = true;
    struct cn_bytes six = test_hex("06"), three = test_hex("03"),
                    prime = test_hex("ffffffffffffffc5");
    struct cn_number_wish wishes[] = {{.bits = 4096, .safe = true},
                                      {.bits = 64, .add = &six, .rem = &three},
                                      {.bits = 64, .safe = true, .add = &six, .rem = &three}};
    struct cn_buf out = {0};
    for (size_t i = 0; i < CN_ARRAY_COUNT(wishes); i++) {
        wishes[i].given_up = &given_up;
        CHECK_INT(CN_EPROTOCOL, cn_number_prime(&wishes[i], &out, NULL));
    }
    CHECK_INT(0, out.size);
    CHECK_INT(1, cn_number_is_prime(prime, NULL, NULL));
    CHECK_INT(0, cn_number_is_prime(prime, &given_up, NULL));
    cn_buf_fini(&out);
}
