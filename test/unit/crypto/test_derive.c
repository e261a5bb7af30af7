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
