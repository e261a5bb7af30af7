/* SPDX-License-Identifier: Apache-2.0 */
/* HKDF and PBKDF2, against published vectors. */
#include "crypto/derive.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "test/lib/vector.h"

TEST(derive, hkdf_rfc5869)
{
    struct cn_buf out = {0};
    CHECK_INT(0, cn_crypto_hkdf(CN_HASH_SHA256,
                                test_hex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"),
                                test_hex("000102030405060708090a0b0c"),
                                test_hex("f0f1f2f3f4f5f6f7f8f9"), 42, &out, NULL));
    CHECK_HEX(
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        &out);
    CHECK_INT(0, cn_crypto_hkdf(CN_HASH_SHA256,
                                test_hex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"),
                                test_hex(""), test_hex(""), 42, &out, NULL));
    CHECK_HEX(
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
        &out);
    CHECK(cn_crypto_hkdf(CN_HASH_SHA256, test_text("k"), test_hex(""), test_hex(""), 255 * 32 + 1,
                         &out, NULL) < 0);
    cn_buf_fini(&out);
    CHECK_QUEUE();
}

TEST(derive, pbkdf2_rfc6070)
{
    struct cn_buf out = {0};
    CHECK_INT(0, cn_crypto_pbkdf2(CN_HASH_SHA1, test_text("password"), test_text("salt"), 4096, 20,
                                  &out, NULL));
    CHECK_HEX("4b007901b765489abead49d926f721d065a429c1", &out);
    CHECK_INT(0, cn_crypto_pbkdf2(CN_HASH_SHA256, test_text("password"), test_text("salt"), 2, 32,
                                  &out, NULL));
    CHECK_HEX("ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43", &out);
    CHECK(cn_crypto_pbkdf2(CN_HASH_SHA256, test_text("p"), test_text("s"), 0, 32, &out, NULL) < 0);
    CHECK_QUEUE();
}

/* RFC 7914, section 12. */
TEST(derive, scrypt_rfc7914)
{
    struct cn_buf out = {0};
    struct cn_crypto_derivation derivation = {.password = test_text("password"),
                                              .salt = test_text("NaCl"),
                                              .size = 64,
                                              .cost = 1024,
                                              .block_size = 8,
                                              .parallelization = 16,
                                              .memory_max = 64 << 20};
    CHECK_INT(0, cn_crypto_derive(&derivation, &out, NULL));
    CHECK_HEX("fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
              "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640",
              &out);
    derivation.memory_max = 1024; /* it wants more */
    CHECK_INT(CN_EPROTOCOL, cn_crypto_derive(&derivation, &out, NULL));
    derivation.memory_max = 64 << 20;
    derivation.cost = 1000; /* not a power of two */
    CHECK_INT(CN_EPROTOCOL, cn_crypto_derive(&derivation, &out, NULL));
    CHECK_INT(0, out.size);
    CHECK_QUEUE();
    cn_buf_fini(&out);
}

TEST(derive, pbkdf2_by_the_name_of_a_hash_is_the_same)
{
    struct cn_buf one = {0}, other = {0};
    CHECK_INT(0,
              cn_crypto_pbkdf2(CN_HASH_SHA512, test_text("p"), test_text(""), 3, 100, &one, NULL));
    struct cn_crypto_derivation derivation = {
        .hash = "sha512", .password = test_text("p"), .size = 100, .cost = 3};
    CHECK_INT(0, cn_crypto_derive(&derivation, &other, NULL));
    CHECK(cn_crypto_equal(test_span(&one), test_span(&other)));
    derivation.cost = 0;
    CHECK_INT(CN_EPROTOCOL, cn_crypto_derive(&derivation, &other, NULL));
    derivation.hash = "no such hash";
    CHECK_INT(CN_EUNSUPPORTED, cn_crypto_derive(&derivation, &other, NULL));
    CHECK(!cn_crypto_derive_knows("no such hash") && cn_crypto_derive_knows("sha512"));
    derivation = (struct cn_crypto_derivation){
        .hash = "sha512", .cost = 1, .size = CN_CRYPTO_DERIVED_MAX + 1};
    CHECK_INT(CN_EINVALID, cn_crypto_derive(&derivation, &other, NULL));
    CHECK_QUEUE();
    cn_buf_fini(&one);
    cn_buf_fini(&other);
}
