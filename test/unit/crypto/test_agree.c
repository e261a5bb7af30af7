/* SPDX-License-Identifier: Apache-2.0 */
/* The secret of two keys, against published vectors. */
#include "crypto/agree.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "crypto/jwk.h"
#include "test/lib/vector.h"

#define X25519_PKCS8 "302e020100300506032b656e04220420" /* and the 32 bytes */

/* Section 5.2, first vector. */
TEST(agree, x25519_rfc7748)
{
    struct cn_buf pkcs8 = {0}, spki = {0}, out = {0};
    CHECK_INT(0, cn_crypto_import_pkcs8(
                     CN_KEY_X25519,
                     test_hex(X25519_PKCS8
                              "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"),
                     &pkcs8, NULL));
    CHECK_INT(0, cn_crypto_import_raw(
                     CN_KEY_X25519,
                     test_hex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"),
                     &spki, NULL));
    CHECK_INT(0, cn_crypto_agree(CN_KEY_X25519, test_span(&pkcs8), test_span(&spki), &out, NULL));
    CHECK_HEX("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552", &out);
    struct cn_buf zero = {0}; /* a point of low order agrees on nothing */
    CHECK_INT(0, cn_crypto_import_raw(
                     CN_KEY_X25519,
                     test_hex("0000000000000000000000000000000000000000000000000000000000000000"),
                     &zero, NULL));
    CHECK(cn_crypto_agree(CN_KEY_X25519, test_span(&pkcs8), test_span(&zero), &out, NULL) < 0);
    cn_buf_fini(&zero);
    cn_buf_fini(&pkcs8);
    cn_buf_fini(&spki);
    cn_buf_fini(&out);
    CHECK_QUEUE();
}

/* NIST's ECC CDH primitive vectors, P-256, count 0. */
TEST(agree, ecdh_nist)
{
    struct cn_crypto_parts ours = {
        {test_hex("ead218590119e8876b29146ff89ca61770c4edbbf97d38ce385ed281d8a6b230"),
         test_hex("28af61281fd35e2fa7002523acc85a429cb06ee6648325389f59edfce1405141"),
         test_hex("7d7dc5f71eb29ddaf80d6214632eeae03d9058af1fb6d22ed80badb62bc1a534")}};
    struct cn_buf pkcs8 = {0}, spki = {0}, out = {0};
    CHECK_INT(0, cn_crypto_import_parts(CN_KEY_P256, &ours, true, &pkcs8, NULL));
    CHECK_INT(0, cn_crypto_import_raw(
                     CN_KEY_P256,
                     test_hex("04700c48f77f56584c5cc632ca65640db91b6bacce3a4df6b42ce7cc838833d287"
                              "db71e509e3fd9b060ddb20ba5c51dcc5948d46fbf640dfe0441782cab85fa4ac"),
                     &spki, NULL));
    CHECK_INT(0, cn_crypto_agree(CN_KEY_P256, test_span(&pkcs8), test_span(&spki), &out, NULL));
    CHECK_HEX("46fc62106420ff012e54a434fbdd2d25ccc5852060561e68040dd7778997bd7b", &out);
    ours.part[2] = test_hex("7d7dc5f71eb29ddaf80d6214632eeae03d9058af1fb6d22ed80badb62bc1a535");
    CHECK_INT(CN_EINVALID, cn_crypto_import_parts(CN_KEY_P256, &ours, true, &out, NULL));
    cn_buf_fini(&pkcs8);
    cn_buf_fini(&spki);
    cn_buf_fini(&out);
    CHECK_QUEUE();
}
