/* SPDX-License-Identifier: Apache-2.0 */
/* AES in every mode, against published vectors. */
#include "crypto/cipher.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "test/lib/vector.h"

/* Encrypts, compares, decrypts, compares. */
static void check_cipher(int line, enum cn_crypto_cipher cipher, const char *key,
                         struct cn_crypto_cipher_params params, const char *plain,
                         const char *coded)
{
    struct cn_buf out = {0};
    CHECK_INT(0,
              cn_crypto_cipher(cipher, true, test_hex(key), &params, test_hex(plain), &out, NULL));
    test_check_hex(__FILE__, line, coded, &out);
    CHECK_INT(0,
              cn_crypto_cipher(cipher, false, test_hex(key), &params, test_hex(coded), &out, NULL));
    test_check_hex(__FILE__, line, plain, &out);
}

#define SP800_38A_PLAIN                                                \
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51" \
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"

TEST(cipher, aes_cbc_sp800_38a)
{
    /* F.2.1, with the block of padding that Web Crypto adds. */
    check_cipher(
        __LINE__, CN_CIPHER_CBC, "2b7e151628aed2a6abf7158809cf4f3c",
        (struct cn_crypto_cipher_params){.iv = test_hex("000102030405060708090a0b0c0d0e0f")},
        SP800_38A_PLAIN,
        "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"
        "73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7"
        "8cb82807230e1321d3fae00d18cc2012");
    struct cn_buf out = {0};
    struct cn_crypto_cipher_params params = {.iv = test_hex("000102030405060708090a0b0c0d0e0f")};
    struct cn_bytes key = test_hex("2b7e151628aed2a6abf7158809cf4f3c");
    CHECK(cn_crypto_cipher(CN_CIPHER_CBC, false, key, &params, test_hex("00"), &out, NULL) < 0);
    CHECK(cn_crypto_cipher(CN_CIPHER_CBC, false, key, &params, (struct cn_bytes){0}, &out, NULL) <
          0);
    cn_buf_fini(&out);
    CHECK_QUEUE();
}

TEST(cipher, aes_ctr_sp800_38a)
{
    struct cn_crypto_cipher_params params = {.iv = test_hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"),
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
    CHECK_QUEUE();
}

/* A short counter wraps within its bits; each block equals one made with that counter alone. */
TEST(cipher, aes_ctr_wraps_within_its_bits)
{
    struct cn_bytes key = test_hex("2b7e151628aed2a6abf7158809cf4f3c"),
                    data = test_hex(SP800_38A_PLAIN);
    struct cn_bytes start = test_hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfefe"); /* low two bits: 10 */
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
    CHECK_QUEUE();
}

TEST(cipher, aes_gcm_mcgrew_viega)
{
    /* Test cases 3, 4 and 16 of the GCM specification, and a tag cut short. */
    const char *plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
    const char *aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
    struct cn_crypto_cipher_params params = {
        .iv = test_hex("cafebabefacedbaddecaf888"), .aad = test_hex(aad), .tag_bits = 128};
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
    CHECK_QUEUE();
}

TEST(cipher, aes_gcm_refuses_what_was_changed)
{
    struct cn_bytes key = test_hex("feffe9928665731c6d6a8f9467308308");
    struct cn_crypto_cipher_params params = {
        .iv = test_hex("cafebabefacedbaddecaf888"), .aad = test_text("header"), .tag_bits = 128};
    struct cn_buf coded = {0}, out = {0};
    CHECK_INT(
        0, cn_crypto_cipher(CN_CIPHER_GCM, true, key, &params, test_text("secret"), &coded, NULL));
    for (size_t i = 0; i < coded.size; i++) {
        coded.data[i] ^= 1;
        CHECK(cn_crypto_cipher(CN_CIPHER_GCM, false, key, &params, test_span(&coded), &out, NULL) <
              0);
        coded.data[i] ^= 1;
    }
    params.aad = test_text("Header");
    CHECK(cn_crypto_cipher(CN_CIPHER_GCM, false, key, &params, test_span(&coded), &out, NULL) < 0);
    params.aad = test_text("header");
    CHECK(cn_crypto_cipher(CN_CIPHER_GCM, false, key, &params, test_text("short"), &out, NULL) < 0);
    CHECK_INT(0, out.size);
    CHECK_INT(0,
              cn_crypto_cipher(CN_CIPHER_GCM, false, key, &params, test_span(&coded), &out, NULL));
    CHECK_STR("secret", cn_buf_text(&out));
    cn_buf_fini(&coded);
    cn_buf_fini(&out);
    CHECK_QUEUE();
}

TEST(cipher, aes_kw_rfc3394)
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
    CHECK(cn_crypto_cipher(CN_CIPHER_KW, false, test_hex("000102030405060708090a0b0c0d0e0f"), &none,
                           test_hex("1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe4"), &out,
                           NULL) < 0);
    cn_buf_fini(&out);
    CHECK_QUEUE();
}
