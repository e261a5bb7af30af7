/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures against published ones; where a scheme is randomised, our own is made and verified
 * too. */
#include "crypto/sign.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "crypto/jwk.h"
#include "test/lib/vector.h"

/* How it is signed. */
#define WAY(scheme_, kind_, hash_, salt_) \
    (&(const struct cn_crypto_way){       \
        .scheme = (scheme_), .kind = (kind_), .hash = (hash_), .salt_size = (salt_)})

#define JWS_ES256                                                                                  \
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmN" \
    "vbS9pc19yb290Ijp0cnVlfQ"
#define JWS_RS256                                                                                  \
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmN" \
    "vbS9pc19yb290Ijp0cnVlfQ"

TEST(sign, ecdsa_rfc7515)
{
    struct cn_crypto_parts parts = {{test_b64url("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
                                     test_b64url("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"),
                                     test_b64url("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI")}};
    struct cn_buf spki = {0}, pkcs8 = {0}, own = {0}, back = {0};
    CHECK_INT(0, cn_crypto_import_parts(CN_KEY_P256, &parts, false, &spki, NULL));
    CHECK_INT(0, cn_crypto_import_parts(CN_KEY_P256, &parts, true, &pkcs8, NULL));
    struct cn_bytes signature =
        test_b64url("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlS"
                    "ApmWQxfKTUJqPP3-Kg6NU1Q");
    CHECK_INT(1, cn_crypto_verify(WAY(CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0),
                                  test_span(&spki), test_text(JWS_ES256), signature, NULL));
    CHECK_INT(0, cn_crypto_verify(WAY(CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0),
                                  test_span(&spki), test_text(JWS_RS256), signature, NULL));
    CHECK_INT(0,
              cn_crypto_verify(WAY(CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0), test_span(&spki),
                               test_text(JWS_ES256), (struct cn_bytes){signature.data, 63}, NULL));
    CHECK_INT(0, cn_crypto_sign(WAY(CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0),
                                test_span(&pkcs8), test_text(JWS_ES256), &own, NULL));
    CHECK_INT(64, own.size);
    CHECK_INT(1, cn_crypto_verify(WAY(CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0),
                                  test_span(&spki), test_text(JWS_ES256), test_span(&own), NULL));
    /* The numbers come back as they went in. */
    CHECK_INT(0, cn_crypto_export_parts(CN_KEY_P256, true, test_span(&pkcs8), &back, NULL));
    CHECK_INT(3 * 36, back.size);
    for (size_t i = 0; i < 3; i++)
        CHECK(memcmp(back.data + 36 * i + 4, parts.part[i].data, 32) == 0);
    cn_buf_fini(&spki);
    cn_buf_fini(&pkcs8);
    cn_buf_fini(&own);
    cn_buf_fini(&back);
    CHECK_QUEUE();
}

/* RFC 6979, A.2.5 and A.2.7: signatures of "sample". */
TEST(sign, ecdsa_rfc6979)
{
    struct cn_crypto_parts p256 = {
        {test_hex("60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"),
         test_hex("7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299")}};
    struct cn_buf spki = {0};
    CHECK_INT(0, cn_crypto_import_parts(CN_KEY_P256, &p256, false, &spki, NULL));
    CHECK_INT(1, cn_crypto_verify(
                     WAY(CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0), test_span(&spki),
                     test_text("sample"),
                     test_hex("efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
                              "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"),
                     NULL));
    cn_buf_fini(&spki);
    CHECK_QUEUE();
}

#define RSA_N                                                                                     \
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm" \
    "4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-"                   \
    "bSf63kpaSHSXndS5z5re"                                                                        \
    "xMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_"              \
    "I5IhlJH7aGhyxXF"                                                                             \
    "vUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"

TEST(sign, rsa_pkcs1_rfc7515)
{
    struct cn_crypto_parts parts = {{test_b64url(RSA_N), test_b64url("AQAB")}};
    struct cn_buf spki = {0};
    CHECK_INT(0, cn_crypto_import_parts(CN_KEY_RSA, &parts, false, &spki, NULL));
    struct cn_bytes signature = test_b64url(
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2"
        "Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjt"
        "QBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6"
        "IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw");
    CHECK_INT(1, cn_crypto_verify(WAY(CN_SIGN_RSA_PKCS1, CN_KEY_RSA, CN_HASH_SHA256, 0),
                                  test_span(&spki), test_text(JWS_RS256), signature, NULL));
    CHECK_INT(0, cn_crypto_verify(WAY(CN_SIGN_RSA_PKCS1, CN_KEY_RSA, CN_HASH_SHA512, 0),
                                  test_span(&spki), test_text(JWS_RS256), signature, NULL));
    CHECK_INT(0, cn_crypto_verify(WAY(CN_SIGN_RSA_PSS, CN_KEY_RSA, CN_HASH_SHA256, 32),
                                  test_span(&spki), test_text(JWS_RS256), signature, NULL));
    cn_buf_fini(&spki);
    CHECK_QUEUE();
}

TEST(sign, rsa_signs_with_every_hash)
{
    struct cn_buf pkcs8 = {0}, spki = {0}, out = {0};
    struct cn_err err = {0};
    CHECK_INT(0,
              cn_crypto_generate(CN_KEY_RSA, 2048, test_hex("010001"), NULL, &pkcs8, &spki, &err));
    const enum cn_crypto_scheme schemes[] = {CN_SIGN_RSA_PKCS1, CN_SIGN_RSA_PSS};
    for (size_t s = 0; s < 2; s++) {
        for (enum cn_crypto_hash hash = CN_HASH_SHA1; hash <= CN_HASH_SHA512; hash++) {
            cn_buf_clear(&out);
            CHECK_INT(0, cn_crypto_sign(WAY(schemes[s], CN_KEY_RSA, hash, 20), test_span(&pkcs8),
                                        test_text("m"), &out, &err));
            CHECK_INT(256, out.size);
            CHECK_INT(1, cn_crypto_verify(WAY(schemes[s], CN_KEY_RSA, hash, 20), test_span(&spki),
                                          test_text("m"), test_span(&out), &err));
            CHECK_INT(0, cn_crypto_verify(WAY(schemes[s], CN_KEY_RSA, hash, 20), test_span(&spki),
                                          test_text("n"), test_span(&out), &err));
        }
    }
    CHECK_INT(0, cn_crypto_verify(WAY(CN_SIGN_RSA_PSS, CN_KEY_RSA, CN_HASH_SHA512, 21),
                                  test_span(&spki), test_text("m"), test_span(&out),
                                  &err)); /* another salt's length */
    cn_buf_fini(&pkcs8);
    cn_buf_fini(&spki);
    cn_buf_fini(&out);
    CHECK_QUEUE();
}

TEST(sign, ed25519_rfc8032)
{
    static const struct {
        const char *secret, *public, *message, *signature;
    } cases[] = {
        {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
         "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
         "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701"
         "cf9b"
         "46bd25bf5f0595bbe24655141438e7a100b"},
        {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
         "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
         "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d"
         "0f11"
         "d8c387b2eaeb4302aeeb00d291612bb0c00"},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(cases); i++) {
        struct cn_crypto_parts parts = {{test_hex(cases[i].public), test_hex(cases[i].secret)}};
        struct cn_buf pkcs8 = {0}, spki = {0}, out = {0};
        CHECK_INT(0, cn_crypto_import_parts(CN_KEY_ED25519, &parts, true, &pkcs8, NULL));
        CHECK_INT(0, cn_crypto_import_raw(CN_KEY_ED25519, test_hex(cases[i].public), &spki, NULL));
        CHECK_INT(0, cn_crypto_sign(WAY(CN_SIGN_ED25519, CN_KEY_ED25519, 0, 0), test_span(&pkcs8),
                                    test_hex(cases[i].message), &out, NULL));
        CHECK_INT(1, cn_crypto_verify(WAY(CN_SIGN_ED25519, CN_KEY_ED25519, 0, 0), test_span(&spki),
                                      test_hex(cases[i].message), test_span(&out), NULL));
        CHECK_HEX(cases[i].signature, &out);
        parts.part[0] = test_hex(cases[1 - i].public); /* another key's x */
        CHECK_INT(CN_EINVALID, cn_crypto_import_parts(CN_KEY_ED25519, &parts, true, &out, NULL));
        cn_buf_fini(&pkcs8);
        cn_buf_fini(&spki);
    }
    CHECK_QUEUE();
}
