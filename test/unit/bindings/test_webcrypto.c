/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of Web Crypto against published vectors. Where a scheme is randomised, a
 * published signature is verified and our own is made and verified. */
#include "bindings/webcrypto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "test/lib/test.h"

/* Bytes of hexadecimal text; kept until the program ends. */
static struct cn_bytes hex(const char *text)
{
    size_t size = strlen(text) / 2;
    uint8_t *bytes = cn_alloc(size + 1);
    for (size_t i = 0; i < size; i++) {
        char two[3] = {text[2 * i], text[2 * i + 1], 0};
        bytes[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    static uint8_t *kept[500];
    static size_t count;
    CHECK(count < CN_ARRAY_COUNT(kept));
    kept[count++] = bytes;
    return (struct cn_bytes){bytes, size};
}

static struct cn_bytes text(const char *bytes)
{
    return (struct cn_bytes){(const uint8_t *)bytes, strlen(bytes)};
}

/* Base64url, as JSON Web Keys have it. */
static struct cn_bytes b64(const char *in)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct cn_buf out = {0};
    unsigned bits = 0, count = 0;
    for (; *in; in++) {
        bits = bits << 6 | (unsigned)(strchr(digits, *in) - digits);
        count += 6;
        if (count >= 8) {
            count -= 8;
            cn_buf_append_byte(&out, (uint8_t)(bits >> count));
        }
    }
    static uint8_t *kept[100];
    static size_t kept_count;
    CHECK(kept_count < CN_ARRAY_COUNT(kept));
    kept[kept_count++] = out.data;
    return (struct cn_bytes){out.data, out.size};
}

static void check_bytes(const char *file, int line, const char *want_hex, struct cn_buf *got)
{
    struct cn_buf text_got = {0};
    for (size_t i = 0; i < got->size; i++)
        cn_buf_printf(&text_got, "%02x", got->data[i]);
    test_check_str(file, line, want_hex, cn_buf_text(&text_got));
    cn_buf_fini(&text_got);
    cn_buf_fini(got);
}
#define CHECK_HEX(want, got) check_bytes(__FILE__, __LINE__, want, got)

static struct cn_bytes span(const struct cn_buf *buf)
{
    return (struct cn_bytes){buf->data, buf->size};
}

/* ---- digests, HMAC ---- */

static const struct {
    enum cn_crypto_hash hash;
    const char *abc; /* FIPS 180-4's and RFC 1321's "abc" */
} digests[] = {
    {CN_HASH_SHA1, "a9993e364706816aba3e25717850c26c9cd0d89d"},
    {CN_HASH_SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {CN_HASH_SHA384, "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
                     "8086072ba1e7cc2358baeca134c825a7"},
    {CN_HASH_SHA512, "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                     "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
    {CN_HASH_MD5, "900150983cd24fb0d6963f7d28e17f72"},
};

TEST(webcrypto, digests_whole_and_in_pieces)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(digests); i++) {
        struct cn_buf out = {0};
        CHECK_INT(0, cn_crypto_digest(digests[i].hash, text("abc"), &out, NULL));
        CHECK_HEX(digests[i].abc, &out);
        uint8_t state[CN_CRYPTO_STATE_SIZE], moved[CN_CRYPTO_STATE_SIZE];
        CHECK_INT(0, cn_crypto_digest_start(digests[i].hash, state, NULL));
        cn_crypto_digest_update(state, text("a"));
        memcpy(moved, state, sizeof(state)); /* the state may move */
        memset(state, 0xaa, sizeof(state));
        cn_crypto_digest_update(moved, text(""));
        cn_crypto_digest_update(moved, text("bc"));
        cn_crypto_digest_finish(moved, &out);
        CHECK_HEX(digests[i].abc, &out);
    }
    struct cn_buf none = {0};
    CHECK_INT(CN_EUNSUPPORTED, cn_crypto_digest(99, text("abc"), &none, NULL));
}

TEST(webcrypto, hmac_rfc4231)
{
    struct cn_buf out = {0};
    CHECK_INT(0, cn_crypto_hmac(CN_HASH_SHA256, text("Jefe"), text("what do ya want for nothing?"),
                                &out, NULL));
    CHECK_HEX("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", &out);
    CHECK_INT(0, cn_crypto_hmac(CN_HASH_SHA512, text("Jefe"), text("what do ya want for nothing?"),
                                &out, NULL));
    CHECK_HEX("164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
              "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
              &out);
}

TEST(webcrypto, equality_sees_every_byte)
{
    uint8_t a[64], b[64];
    memset(a, 7, sizeof(a));
    for (size_t i = 0; i < sizeof(a); i++) {
        memcpy(b, a, sizeof(a));
        CHECK(cn_crypto_equal((struct cn_bytes){a, 64}, (struct cn_bytes){b, 64}));
        b[i] ^= 1;
        CHECK(!cn_crypto_equal((struct cn_bytes){a, 64}, (struct cn_bytes){b, 64}));
    }
    CHECK(!cn_crypto_equal((struct cn_bytes){a, 64}, (struct cn_bytes){a, 63}));
    CHECK(cn_crypto_equal((struct cn_bytes){NULL, 0}, (struct cn_bytes){a, 0}));
}

/* ---- AES ---- */

/* Encrypts, compares, decrypts, compares. */
static void check_cipher(int line, enum cn_crypto_cipher cipher, const char *key,
                         struct cn_crypto_cipher_params params, const char *plain,
                         const char *coded)
{
    struct cn_buf out = {0};
    CHECK_INT(0, cn_crypto_cipher(cipher, true, hex(key), &params, hex(plain), &out, NULL));
    check_bytes(__FILE__, line, coded, &out);
    CHECK_INT(0, cn_crypto_cipher(cipher, false, hex(key), &params, hex(coded), &out, NULL));
    check_bytes(__FILE__, line, plain, &out);
}

#define SP800_38A_PLAIN                                                \
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51" \
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"

TEST(webcrypto, aes_cbc_sp800_38a)
{
    /* F.2.1, with the block of padding that Web Crypto adds. */
    check_cipher(__LINE__, CN_CIPHER_CBC, "2b7e151628aed2a6abf7158809cf4f3c",
                 (struct cn_crypto_cipher_params){.iv = hex("000102030405060708090a0b0c0d0e0f")},
                 SP800_38A_PLAIN,
                 "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"
                 "73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7"
                 "8cb82807230e1321d3fae00d18cc2012");
    struct cn_buf out = {0};
    struct cn_crypto_cipher_params params = {.iv = hex("000102030405060708090a0b0c0d0e0f")};
    struct cn_bytes key = hex("2b7e151628aed2a6abf7158809cf4f3c");
    CHECK(cn_crypto_cipher(CN_CIPHER_CBC, false, key, &params, hex("00"), &out, NULL) < 0);
    CHECK(cn_crypto_cipher(CN_CIPHER_CBC, false, key, &params, (struct cn_bytes){0}, &out, NULL) <
          0);
    cn_buf_fini(&out);
}

TEST(webcrypto, aes_ctr_sp800_38a)
{
    struct cn_crypto_cipher_params params = {.iv = hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"),
                                             .counter_bits = 128};
    check_cipher(__LINE__, CN_CIPHER_CTR, "2b7e151628aed2a6abf7158809cf4f3c", params,
                 SP800_38A_PLAIN,
                 "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
                 "5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee");
    check_cipher(__LINE__, CN_CIPHER_CTR,
                 "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", params,
                 SP800_38A_PLAIN,
                 "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
                 "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6");
}

/* A short counter wraps within its bits; each block equals one made with that counter alone. */
TEST(webcrypto, aes_ctr_wraps_within_its_bits)
{
    struct cn_bytes key = hex("2b7e151628aed2a6abf7158809cf4f3c"), data = hex(SP800_38A_PLAIN);
    struct cn_bytes start = hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfefe"); /* low two bits: 10 */
    struct cn_crypto_cipher_params params = {.iv = start, .counter_bits = 2};
    struct cn_buf whole = {0};
    CHECK_INT(0, cn_crypto_cipher(CN_CIPHER_CTR, true, key, &params, data, &whole, NULL));
    const uint8_t order[] = {0xfe, 0xff, 0xfc, 0xfd};
    for (size_t i = 0; i < 4; i++) {
        uint8_t block[16];
        memcpy(block, start.data, 16);
        block[15] = order[i];
        struct cn_crypto_cipher_params one = {.iv = {block, 16}, .counter_bits = 128};
        struct cn_buf out = {0};
        CHECK_INT(0, cn_crypto_cipher(CN_CIPHER_CTR, true, key, &one,
                                      (struct cn_bytes){data.data + 16 * i, 16}, &out, NULL));
        CHECK(memcmp(out.data, whole.data + 16 * i, 16) == 0);
        cn_buf_fini(&out);
    }
    cn_buf_fini(&whole);
    params.counter_bits = 1; /* four blocks do not fit */
    CHECK(cn_crypto_cipher(CN_CIPHER_CTR, true, key, &params, data, &whole, NULL) < 0);
    cn_buf_fini(&whole);
}

TEST(webcrypto, aes_gcm_mcgrew_viega)
{
    /* Test cases 3, 4 and 16 of the GCM specification, and a tag cut short. */
    const char *plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
    const char *aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
    struct cn_crypto_cipher_params params = {
        .iv = hex("cafebabefacedbaddecaf888"), .aad = hex(aad), .tag_bits = 128};
    const char *key = "feffe9928665731c6d6a8f9467308308";
    const char *coded = "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
                        "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
                        "5bc94fbc3221a5db94fae95ae7121a47";
    check_cipher(__LINE__, CN_CIPHER_GCM, key, params, plain, coded);
    check_cipher(__LINE__, CN_CIPHER_GCM,
                 "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", params, plain,
                 "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                 "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
                 "76fc6ece0f4e1768cddf8853bb2d551b");
    params.tag_bits = 96;
    char shorter[400];
    snprintf(shorter, sizeof(shorter), "%.*s", (int)strlen(coded) - 8, coded);
    check_cipher(__LINE__, CN_CIPHER_GCM, key, params, plain, shorter);
}

TEST(webcrypto, aes_gcm_refuses_what_was_changed)
{
    struct cn_bytes key = hex("feffe9928665731c6d6a8f9467308308");
    struct cn_crypto_cipher_params params = {
        .iv = hex("cafebabefacedbaddecaf888"), .aad = text("header"), .tag_bits = 128};
    struct cn_buf coded = {0}, out = {0};
    CHECK_INT(0, cn_crypto_cipher(CN_CIPHER_GCM, true, key, &params, text("secret"), &coded, NULL));
    for (size_t i = 0; i < coded.size; i++) {
        coded.data[i] ^= 1;
        CHECK(cn_crypto_cipher(CN_CIPHER_GCM, false, key, &params, span(&coded), &out, NULL) < 0);
        coded.data[i] ^= 1;
    }
    params.aad = text("Header");
    CHECK(cn_crypto_cipher(CN_CIPHER_GCM, false, key, &params, span(&coded), &out, NULL) < 0);
    params.aad = text("header");
    CHECK(cn_crypto_cipher(CN_CIPHER_GCM, false, key, &params, text("short"), &out, NULL) < 0);
    CHECK_INT(0, out.size);
    CHECK_INT(0, cn_crypto_cipher(CN_CIPHER_GCM, false, key, &params, span(&coded), &out, NULL));
    CHECK_STR("secret", cn_buf_text(&out));
    cn_buf_fini(&coded);
    cn_buf_fini(&out);
}

TEST(webcrypto, aes_kw_rfc3394)
{
    check_cipher(__LINE__, CN_CIPHER_KW, "000102030405060708090a0b0c0d0e0f",
                 (struct cn_crypto_cipher_params){0}, "00112233445566778899aabbccddeeff",
                 "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5");
    check_cipher(
        __LINE__, CN_CIPHER_KW, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        (struct cn_crypto_cipher_params){0},
        "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f",
        "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21");
    struct cn_buf out = {0};
    struct cn_crypto_cipher_params none = {0};
    CHECK(cn_crypto_cipher(CN_CIPHER_KW, false, hex("000102030405060708090a0b0c0d0e0f"), &none,
                           hex("1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe4"), &out,
                           NULL) < 0);
    cn_buf_fini(&out);
}

/* ---- key derivation ---- */

TEST(webcrypto, hkdf_rfc5869)
{
    struct cn_buf out = {0};
    CHECK_INT(0, cn_crypto_hkdf(CN_HASH_SHA256, hex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"),
                                hex("000102030405060708090a0b0c"), hex("f0f1f2f3f4f5f6f7f8f9"), 42,
                                &out, NULL));
    CHECK_HEX(
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        &out);
    CHECK_INT(0, cn_crypto_hkdf(CN_HASH_SHA256, hex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"),
                                hex(""), hex(""), 42, &out, NULL));
    CHECK_HEX(
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
        &out);
    CHECK(cn_crypto_hkdf(CN_HASH_SHA256, text("k"), hex(""), hex(""), 255 * 32 + 1, &out, NULL) <
          0);
    cn_buf_fini(&out);
}

TEST(webcrypto, pbkdf2_rfc6070)
{
    struct cn_buf out = {0};
    CHECK_INT(0,
              cn_crypto_pbkdf2(CN_HASH_SHA1, text("password"), text("salt"), 4096, 20, &out, NULL));
    CHECK_HEX("4b007901b765489abead49d926f721d065a429c1", &out);
    CHECK_INT(0,
              cn_crypto_pbkdf2(CN_HASH_SHA256, text("password"), text("salt"), 2, 32, &out, NULL));
    CHECK_HEX("ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43", &out);
    CHECK(cn_crypto_pbkdf2(CN_HASH_SHA256, text("p"), text("s"), 0, 32, &out, NULL) < 0);
}

/* ---- signatures ---- */

#define JWS_ES256                                                                                  \
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmN" \
    "vbS9pc19yb290Ijp0cnVlfQ"
#define JWS_RS256                                                                                  \
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmN" \
    "vbS9pc19yb290Ijp0cnVlfQ"

TEST(webcrypto, ecdsa_rfc7515)
{
    struct cn_crypto_parts parts = {{b64("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
                                     b64("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"),
                                     b64("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI")}};
    struct cn_buf spki = {0}, pkcs8 = {0}, own = {0}, back = {0};
    CHECK_INT(0, cn_crypto_import_parts(CN_KEY_P256, &parts, false, &spki, NULL));
    CHECK_INT(0, cn_crypto_import_parts(CN_KEY_P256, &parts, true, &pkcs8, NULL));
    struct cn_bytes signature =
        b64("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlS"
            "ApmWQxfKTUJqPP3-Kg6NU1Q");
    CHECK_INT(1, cn_crypto_verify(CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0, span(&spki),
                                  text(JWS_ES256), signature, NULL));
    CHECK_INT(0, cn_crypto_verify(CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0, span(&spki),
                                  text(JWS_RS256), signature, NULL));
    CHECK_INT(0, cn_crypto_verify(CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0, span(&spki),
                                  text(JWS_ES256), (struct cn_bytes){signature.data, 63}, NULL));
    CHECK_INT(0, cn_crypto_sign(CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0, span(&pkcs8),
                                text(JWS_ES256), &own, NULL));
    CHECK_INT(64, own.size);
    CHECK_INT(1, cn_crypto_verify(CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0, span(&spki),
                                  text(JWS_ES256), span(&own), NULL));
    /* The numbers come back as they went in. */
    CHECK_INT(0, cn_crypto_export_parts(CN_KEY_P256, true, span(&pkcs8), &back, NULL));
    CHECK_INT(3 * 36, back.size);
    for (size_t i = 0; i < 3; i++)
        CHECK(memcmp(back.data + 36 * i + 4, parts.part[i].data, 32) == 0);
    cn_buf_fini(&spki);
    cn_buf_fini(&pkcs8);
    cn_buf_fini(&own);
    cn_buf_fini(&back);
}

/* RFC 6979, A.2.5 and A.2.7: signatures of "sample". */
TEST(webcrypto, ecdsa_rfc6979)
{
    struct cn_crypto_parts p256 = {
        {hex("60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"),
         hex("7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299")}};
    struct cn_buf spki = {0};
    CHECK_INT(0, cn_crypto_import_parts(CN_KEY_P256, &p256, false, &spki, NULL));
    CHECK_INT(1, cn_crypto_verify(
                     CN_SIGN_ECDSA, CN_KEY_P256, CN_HASH_SHA256, 0, span(&spki), text("sample"),
                     hex("efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
                         "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"),
                     NULL));
    cn_buf_fini(&spki);
}

#define RSA_N                                                                                     \
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm" \
    "4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-"                   \
    "bSf63kpaSHSXndS5z5re"                                                                        \
    "xMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_"              \
    "I5IhlJH7aGhyxXF"                                                                             \
    "vUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"

TEST(webcrypto, rsa_pkcs1_rfc7515)
{
    struct cn_crypto_parts parts = {{b64(RSA_N), b64("AQAB")}};
    struct cn_buf spki = {0};
    CHECK_INT(0, cn_crypto_import_parts(CN_KEY_RSA, &parts, false, &spki, NULL));
    struct cn_bytes signature = b64(
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2"
        "Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjt"
        "QBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6"
        "IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw");
    CHECK_INT(1, cn_crypto_verify(CN_SIGN_RSA_PKCS1, CN_KEY_RSA, CN_HASH_SHA256, 0, span(&spki),
                                  text(JWS_RS256), signature, NULL));
    CHECK_INT(0, cn_crypto_verify(CN_SIGN_RSA_PKCS1, CN_KEY_RSA, CN_HASH_SHA512, 0, span(&spki),
                                  text(JWS_RS256), signature, NULL));
    CHECK_INT(0, cn_crypto_verify(CN_SIGN_RSA_PSS, CN_KEY_RSA, CN_HASH_SHA256, 32, span(&spki),
                                  text(JWS_RS256), signature, NULL));
    cn_buf_fini(&spki);
}

TEST(webcrypto, rsa_signs_and_encrypts)
{
    struct cn_buf pkcs8 = {0}, spki = {0}, out = {0}, plain = {0};
    struct cn_err err = {0};
    CHECK_INT(0, cn_crypto_generate(CN_KEY_RSA, 2048, hex("010001"), &pkcs8, &spki, &err));
    const enum cn_crypto_scheme schemes[] = {CN_SIGN_RSA_PKCS1, CN_SIGN_RSA_PSS};
    for (size_t s = 0; s < 2; s++) {
        for (enum cn_crypto_hash hash = CN_HASH_SHA1; hash <= CN_HASH_SHA512; hash++) {
            cn_buf_clear(&out);
            CHECK_INT(0, cn_crypto_sign(schemes[s], CN_KEY_RSA, hash, 20, span(&pkcs8), text("m"),
                                        &out, &err));
            CHECK_INT(256, out.size);
            CHECK_INT(1, cn_crypto_verify(schemes[s], CN_KEY_RSA, hash, 20, span(&spki), text("m"),
                                          span(&out), &err));
            CHECK_INT(0, cn_crypto_verify(schemes[s], CN_KEY_RSA, hash, 20, span(&spki), text("n"),
                                          span(&out), &err));
        }
    }
    CHECK_INT(0, cn_crypto_verify(CN_SIGN_RSA_PSS, CN_KEY_RSA, CN_HASH_SHA512, 21, span(&spki),
                                  text("m"), span(&out), &err)); /* another salt's length */
    cn_buf_clear(&out);
    CHECK_INT(0, cn_crypto_rsa_oaep(true, CN_HASH_SHA256, span(&spki), text("label"),
                                    text("secret"), &out, &err));
    CHECK(cn_crypto_rsa_oaep(false, CN_HASH_SHA256, span(&pkcs8), text("other"), span(&out), &plain,
                             &err) < 0);
    CHECK_INT(0, cn_crypto_rsa_oaep(false, CN_HASH_SHA256, span(&pkcs8), text("label"), span(&out),
                                    &plain, &err));
    CHECK_STR("secret", cn_buf_text(&plain));
    char large[300] = {0};
    CHECK(cn_crypto_rsa_oaep(true, CN_HASH_SHA256, span(&spki), text(""),
                             (struct cn_bytes){(uint8_t *)large, sizeof(large)}, &out, &err) < 0);
    CHECK(cn_crypto_generate(CN_KEY_RSA, 512, hex("010001"), &pkcs8, &spki, &err) < 0);
    CHECK(cn_crypto_generate(CN_KEY_RSA, 2048, hex("02"), &pkcs8, &spki, &err) < 0);
    cn_buf_fini(&pkcs8);
    cn_buf_fini(&spki);
    cn_buf_fini(&out);
    cn_buf_fini(&plain);
}

TEST(webcrypto, ed25519_rfc8032)
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
        struct cn_crypto_parts parts = {{hex(cases[i].public), hex(cases[i].secret)}};
        struct cn_buf pkcs8 = {0}, spki = {0}, out = {0};
        CHECK_INT(0, cn_crypto_import_parts(CN_KEY_ED25519, &parts, true, &pkcs8, NULL));
        CHECK_INT(0, cn_crypto_import_raw(CN_KEY_ED25519, hex(cases[i].public), &spki, NULL));
        CHECK_INT(0, cn_crypto_sign(CN_SIGN_ED25519, CN_KEY_ED25519, 0, 0, span(&pkcs8),
                                    hex(cases[i].message), &out, NULL));
        CHECK_INT(1, cn_crypto_verify(CN_SIGN_ED25519, CN_KEY_ED25519, 0, 0, span(&spki),
                                      hex(cases[i].message), span(&out), NULL));
        CHECK_HEX(cases[i].signature, &out);
        parts.part[0] = hex(cases[1 - i].public); /* another key's x */
        CHECK_INT(CN_EINVALID, cn_crypto_import_parts(CN_KEY_ED25519, &parts, true, &out, NULL));
        cn_buf_fini(&pkcs8);
        cn_buf_fini(&spki);
    }
}

/* ---- key agreement ---- */

#define X25519_PKCS8 "302e020100300506032b656e04220420" /* and the 32 bytes */

/* Section 5.2, first vector. */
TEST(webcrypto, x25519_rfc7748)
{
    struct cn_buf pkcs8 = {0}, spki = {0}, out = {0};
    CHECK_INT(
        0, cn_crypto_import_pkcs8(
               CN_KEY_X25519,
               hex(X25519_PKCS8 "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"),
               &pkcs8, NULL));
    CHECK_INT(0, cn_crypto_import_raw(
                     CN_KEY_X25519,
                     hex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"), &spki,
                     NULL));
    CHECK_INT(0, cn_crypto_agree(CN_KEY_X25519, span(&pkcs8), span(&spki), &out, NULL));
    CHECK_HEX("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552", &out);
    struct cn_buf zero = {0}; /* a point of low order agrees on nothing */
    CHECK_INT(0, cn_crypto_import_raw(
                     CN_KEY_X25519,
                     hex("0000000000000000000000000000000000000000000000000000000000000000"), &zero,
                     NULL));
    CHECK(cn_crypto_agree(CN_KEY_X25519, span(&pkcs8), span(&zero), &out, NULL) < 0);
    cn_buf_fini(&zero);
    cn_buf_fini(&pkcs8);
    cn_buf_fini(&spki);
    cn_buf_fini(&out);
}

/* NIST's ECC CDH primitive vectors, P-256, count 0. */
TEST(webcrypto, ecdh_nist)
{
    struct cn_crypto_parts ours = {
        {hex("ead218590119e8876b29146ff89ca61770c4edbbf97d38ce385ed281d8a6b230"),
         hex("28af61281fd35e2fa7002523acc85a429cb06ee6648325389f59edfce1405141"),
         hex("7d7dc5f71eb29ddaf80d6214632eeae03d9058af1fb6d22ed80badb62bc1a534")}};
    struct cn_buf pkcs8 = {0}, spki = {0}, out = {0};
    CHECK_INT(0, cn_crypto_import_parts(CN_KEY_P256, &ours, true, &pkcs8, NULL));
    CHECK_INT(0, cn_crypto_import_raw(
                     CN_KEY_P256,
                     hex("04700c48f77f56584c5cc632ca65640db91b6bacce3a4df6b42ce7cc838833d287"
                         "db71e509e3fd9b060ddb20ba5c51dcc5948d46fbf640dfe0441782cab85fa4ac"),
                     &spki, NULL));
    CHECK_INT(0, cn_crypto_agree(CN_KEY_P256, span(&pkcs8), span(&spki), &out, NULL));
    CHECK_HEX("46fc62106420ff012e54a434fbdd2d25ccc5852060561e68040dd7778997bd7b", &out);
    ours.part[2] = hex("7d7dc5f71eb29ddaf80d6214632eeae03d9058af1fb6d22ed80badb62bc1a535");
    CHECK_INT(CN_EINVALID, cn_crypto_import_parts(CN_KEY_P256, &ours, true, &out, NULL));
    cn_buf_fini(&pkcs8);
    cn_buf_fini(&spki);
    cn_buf_fini(&out);
}

/* ---- keys ---- */

TEST(webcrypto, every_kind_survives_its_forms)
{
    for (enum cn_crypto_kind kind = CN_KEY_RSA; kind <= CN_KEY_X25519; kind++) {
        struct cn_buf pkcs8 = {0}, spki = {0}, again = {0}, parts = {0}, raw = {0};
        struct cn_err err = {0};
        CHECK_INT(0, cn_crypto_generate(kind, 1024, hex("010001"), &pkcs8, &spki, &err));
        CHECK_INT(0, cn_crypto_import_pkcs8(kind, span(&pkcs8), &again, &err));
        CHECK(again.size == pkcs8.size && memcmp(again.data, pkcs8.data, again.size) == 0);
        cn_buf_clear(&again);
        CHECK_INT(0, cn_crypto_import_spki(kind, span(&spki), &again, &err));
        CHECK(again.size == spki.size && memcmp(again.data, spki.data, again.size) == 0);
        for (int is_private = 0; is_private < 2; is_private++) {
            struct cn_buf *der = is_private ? &pkcs8 : &spki;
            struct cn_crypto_parts list = {0};
            size_t count = 0;
            cn_buf_clear(&parts);
            CHECK_INT(0, cn_crypto_export_parts(kind, is_private, span(der), &parts, &err));
            for (size_t at = 0; at < parts.size; count++) {
                size_t size = (size_t)parts.data[at + 2] << 8 | parts.data[at + 3];
                list.part[count] = (struct cn_bytes){parts.data + at + 4, size};
                at += 4 + size;
            }
            cn_buf_clear(&again);
            CHECK_INT(0, cn_crypto_import_parts(kind, &list, is_private, &again, &err));
            CHECK(again.size == der->size && memcmp(again.data, der->data, again.size) == 0);
        }
        if (kind != CN_KEY_RSA) {
            CHECK_INT(0, cn_crypto_export_raw(kind, span(&spki), &raw, &err));
            cn_buf_clear(&again);
            CHECK_INT(0, cn_crypto_import_raw(kind, span(&raw), &again, &err));
            CHECK(again.size == spki.size && memcmp(again.data, spki.data, again.size) == 0);
        }
        /* Another kind does not accept it, nor does this one a cut or a longer form. */
        enum cn_crypto_kind other = kind == CN_KEY_X25519 ? CN_KEY_RSA : kind + 1;
        CHECK_INT(CN_EINVALID, cn_crypto_import_spki(other, span(&spki), &again, &err));
        CHECK_INT(CN_EINVALID, cn_crypto_import_pkcs8(other, span(&pkcs8), &again, &err));
        spki.size--;
        CHECK_INT(CN_EINVALID, cn_crypto_import_spki(kind, span(&spki), &again, &err));
        spki.size++;
        cn_buf_append_byte(&spki, 0);
        CHECK_INT(CN_EINVALID, cn_crypto_import_spki(kind, span(&spki), &again, &err));
        CHECK_INT(CN_EINVALID, cn_crypto_import_spki(kind, (struct cn_bytes){0}, &again, &err));
        cn_buf_fini(&pkcs8);
        cn_buf_fini(&spki);
        cn_buf_fini(&again);
        cn_buf_fini(&parts);
        cn_buf_fini(&raw);
    }
}

TEST(webcrypto, points_are_checked_and_may_be_compressed)
{
    struct cn_buf spki = {0}, raw = {0};
    /* The P-256 generator, compressed. */
    CHECK_INT(0, cn_crypto_import_raw(
                     CN_KEY_P256,
                     hex("036b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
                     &spki, NULL));
    CHECK_INT(0, cn_crypto_export_raw(CN_KEY_P256, span(&spki), &raw, NULL));
    CHECK_HEX("046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
              "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
              &raw);
    CHECK_INT(CN_EINVALID,
              cn_crypto_import_raw(
                  CN_KEY_P256,
                  hex("046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
                      "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f6"),
                  &spki, NULL));
    cn_buf_fini(&spki);
}
