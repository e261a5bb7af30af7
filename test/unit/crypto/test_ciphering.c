/* SPDX-License-Identifier: Apache-2.0 */
/* Ciphers by name in pieces: the same bytes as crypto/cipher.h's, tags, and what is refused. */
#include "crypto/ciphering.h"

#include <string.h>

#include "base/assert.h"
#include "crypto/cipher.h"
#include "test/lib/vector.h"

#define KEY "000102030405060708090a0b0c0d0e0f"
#define IV "101112131415161718191a1b1c1d1e1f"
#define TEXT "a sentence of more than one block of sixteen bytes"

static struct cn_ciphering *opened(const char *name, bool encrypts, const char *iv)
{
    struct cn_ciphering_params params = {
        .name = name, .encrypts = encrypts, .pads = true, .key = test_hex(KEY), .iv = test_hex(iv)};
    struct cn_ciphering *ciphering = NULL;
    CHECK_INT(0, cn_ciphering_new(&params, &ciphering, NULL));
    return ciphering;
}

static void feed(struct cn_ciphering *ciphering, struct cn_bytes data, size_t piece,
                 struct cn_buf *out)
{
    for (size_t at = 0; at < data.size; at += piece) {
        size_t size = data.size - at < piece ? data.size - at : piece;
        CHECK_INT(
            0, cn_ciphering_update(ciphering, (struct cn_bytes){data.data + at, size}, out, NULL));
    }
}

/* The first thing that this process asks of OpenSSL: the names are there all the same. */
TEST(ciphering, names_are_there_before_any_was_asked_for)
{
    struct cn_buf names = {0};
    cn_ciphering_names(&names);
    CHECK(strstr(cn_buf_text(&names), " aes-128-ctr "));
    cn_buf_fini(&names);
}

TEST(ciphering, in_pieces_of_any_size_it_is_what_web_crypto_makes_at_once)
{
    static const struct {
        const char *name;
        enum cn_crypto_cipher cipher;
    } modes[] = {{"aes-128-cbc", CN_CIPHER_CBC}, {"aes-128-ctr", CN_CIPHER_CTR}};
    for (size_t m = 0; m < CN_ARRAY_COUNT(modes); m++) {
        struct cn_crypto_cipher_params params = {.iv = test_hex(IV), .counter_bits = 128};
        struct cn_buf want = {0};
        CHECK_INT(0, cn_crypto_cipher(modes[m].cipher, true, test_hex(KEY), &params,
                                      test_text(TEXT), &want, NULL));
        for (size_t piece = 1; piece <= sizeof(TEXT); piece += 7) {
            struct cn_buf coded = {0}, plain = {0};
            struct cn_ciphering *there = opened(modes[m].name, true, IV);
            feed(there, test_text(TEXT), piece, &coded);
            CHECK_INT(0, cn_ciphering_finish(there, &coded, NULL));
            CHECK(coded.size == want.size && memcmp(coded.data, want.data, want.size) == 0);
            struct cn_ciphering *back = opened(modes[m].name, false, IV);
            feed(back, test_span(&coded), piece, &plain);
            CHECK_INT(0, cn_ciphering_finish(back, &plain, NULL));
            CHECK_STR(TEXT, cn_buf_text(&plain));
            cn_ciphering_free(there);
            cn_ciphering_free(back);
            cn_buf_fini(&coded);
            cn_buf_fini(&plain);
        }
        cn_buf_fini(&want);
    }
    CHECK_QUEUE();
}

TEST(ciphering, a_tag_covers_data_and_what_is_added_to_them)
{
    struct cn_buf coded = {0}, tag = {0}, plain = {0};
    struct cn_ciphering *there = opened("aes-128-gcm", true, "000000000000000000000001");
    CHECK_INT(0, cn_ciphering_cover(there, test_text("header"), NULL));
    feed(there, test_text(TEXT), 5, &coded);
    CHECK_INT(0, cn_ciphering_finish(there, &coded, NULL));
    CHECK_INT(0, cn_ciphering_get_tag(there, 16, &tag, NULL));
    CHECK_INT(CN_EINVALID, cn_ciphering_get_tag(there, 3, &tag, NULL));
    CHECK_INT(CN_EINVALID, cn_ciphering_get_tag(there, 17, &tag, NULL));
    CHECK_INT(16, tag.size);
    cn_ciphering_free(there);
    for (int wrong = 0; wrong < 3; wrong++) {
        struct cn_ciphering *back = opened("aes-128-gcm", false, "000000000000000000000001");
        CHECK_INT(0, cn_ciphering_cover(back, test_text(wrong == 1 ? "Header" : "header"), NULL));
        tag.data[0] ^= wrong == 2;
        CHECK_INT(0, cn_ciphering_set_tag(back, test_span(&tag), NULL));
        cn_buf_clear(&plain);
        feed(back, test_span(&coded), 9, &plain);
        CHECK_INT(wrong ? CN_EPROTOCOL : 0, cn_ciphering_finish(back, &plain, NULL));
        if (!wrong)
            CHECK_STR(TEXT, cn_buf_text(&plain));
        cn_ciphering_free(back);
    }
    CHECK_QUEUE();
    cn_buf_fini(&coded);
    cn_buf_fini(&tag);
    cn_buf_fini(&plain);
}

TEST(ciphering, bad_padding_has_openssls_reason)
{
    struct cn_buf plain = {0};
    struct cn_err err;
    struct cn_ciphering *back = opened("aes-128-cbc", false, IV);
    feed(back, test_hex("00000000000000000000000000000000"), 16, &plain);
    CHECK_INT(CN_EPROTOCOL, cn_ciphering_finish(back, &plain, &err));
    CHECK_STR("bad decrypt", err.text);
    cn_ciphering_free(back);
    cn_buf_fini(&plain);
    CHECK_QUEUE();
}

TEST(ciphering, what_does_not_fit_is_refused)
{
    static const struct {
        const char *name, *key, *iv;
        int rc;
        const char *why;
    } cases[] = {
        {"no-such-cipher", KEY, IV, CN_EUNSUPPORTED, "Unknown cipher"},
        {"aes-128-xts", KEY KEY, IV, CN_EUNSUPPORTED, "Unknown cipher"},
        {"aes-128-ccm", KEY, "00000000000000", CN_EUNSUPPORTED, "Unknown cipher"},
        {"aes-128-cbc", "00", IV, CN_EINVALID, "Invalid key length"},
        {"aes-128-cbc", KEY, "00", CN_EINVALID, "Invalid initialization vector"},
        {"aes-128-gcm", KEY, "", CN_EINVALID, "Invalid initialization vector"},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(cases); i++) {
        struct cn_ciphering_params params = {
            .name = cases[i].name, .key = test_hex(cases[i].key), .iv = test_hex(cases[i].iv)};
        struct cn_ciphering *ciphering = NULL;
        struct cn_err err;
        CHECK_INT(cases[i].rc, cn_ciphering_new(&params, &ciphering, &err));
        CHECK_STR(cases[i].why, err.text);
        CHECK(ciphering == NULL);
    }
    cn_ciphering_free(NULL);
    CHECK_QUEUE();
}

TEST(ciphering, ciphers_are_described)
{
    struct cn_ciphering_info info;
    CHECK(cn_ciphering_find("aes-256-gcm", &info));
    CHECK(info.key_size == 32 && info.iv_size == 12 && info.block_size == 1 && info.is_aead);
    CHECK(cn_ciphering_find("aes-192-cbc", &info));
    CHECK(info.key_size == 24 && info.iv_size == 16 && info.block_size == 16 && !info.is_aead);
    CHECK(!cn_ciphering_find("aes-128-ccm", &info) && !cn_ciphering_find("", &info));
}
