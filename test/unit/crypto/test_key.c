/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of every kind there and back, and what is refused. */
#include "crypto/key.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "crypto/jwk.h"
#include "test/lib/vector.h"

TEST(key, every_kind_survives_its_forms)
{
    for (enum cn_crypto_kind kind = CN_KEY_RSA; kind <= CN_KEY_X25519; kind++) {
        struct cn_buf pkcs8 = {0}, spki = {0}, again = {0}, parts = {0}, raw = {0};
        struct cn_err err = {0};
        CHECK_INT(0, cn_crypto_generate(kind, 1024, test_hex("010001"), NULL, &pkcs8, &spki, &err));
        CHECK_INT(0, cn_crypto_import_pkcs8(kind, test_span(&pkcs8), &again, &err));
        CHECK(again.size == pkcs8.size && memcmp(again.data, pkcs8.data, again.size) == 0);
        cn_buf_clear(&again);
        CHECK_INT(0, cn_crypto_import_spki(kind, test_span(&spki), &again, &err));
        CHECK(again.size == spki.size && memcmp(again.data, spki.data, again.size) == 0);
        for (int is_private = 0; is_private < 2; is_private++) {
            struct cn_buf *der = is_private ? &pkcs8 : &spki;
            struct cn_crypto_parts list = {0};
            size_t count = 0;
            cn_buf_clear(&parts);
            CHECK_INT(0, cn_crypto_export_parts(kind, is_private, test_span(der), &parts, &err));
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
            CHECK_INT(0, cn_crypto_export_raw(kind, test_span(&spki), &raw, &err));
            cn_buf_clear(&again);
            CHECK_INT(0, cn_crypto_import_raw(kind, test_span(&raw), &again, &err));
            CHECK(again.size == spki.size && memcmp(again.data, spki.data, again.size) == 0);
        }
        /* Another kind does not accept it, nor does this one a cut or a longer form. */
        enum cn_crypto_kind other = kind == CN_KEY_X25519 ? CN_KEY_RSA : kind + 1;
        CHECK_INT(CN_EINVALID, cn_crypto_import_spki(other, test_span(&spki), &again, &err));
        CHECK_INT(CN_EINVALID, cn_crypto_import_pkcs8(other, test_span(&pkcs8), &again, &err));
        spki.size--;
        CHECK_INT(CN_EINVALID, cn_crypto_import_spki(kind, test_span(&spki), &again, &err));
        spki.size++;
        cn_buf_append_byte(&spki, 0);
        CHECK_INT(CN_EINVALID, cn_crypto_import_spki(kind, test_span(&spki), &again, &err));
        CHECK_INT(CN_EINVALID, cn_crypto_import_spki(kind, (struct cn_bytes){0}, &again, &err));
        cn_buf_fini(&pkcs8);
        cn_buf_fini(&spki);
        cn_buf_fini(&again);
        cn_buf_fini(&parts);
        cn_buf_fini(&raw);
    }
    CHECK_QUEUE();
}

/* Sizes and exponents that make no key. */
TEST(key, an_rsa_key_with_senseless_parameters_is_not_made)
{
    struct cn_buf pkcs8 = {0}, spki = {0};
    struct cn_err err = {0};
    CHECK(cn_crypto_generate(CN_KEY_RSA, 512, test_hex("010001"), NULL, &pkcs8, &spki, &err) < 0);
    CHECK(cn_crypto_generate(CN_KEY_RSA, 2048, test_hex("02"), NULL, &pkcs8, &spki, &err) < 0);
    CHECK(cn_crypto_generate(CN_KEY_RSA, CN_CRYPTO_RSA_BITS_MAX + 1, test_hex("010001"), NULL,
                             &pkcs8, &spki, &err) < 0);
    CHECK(cn_crypto_generate(CN_KEY_RSA, 2048, test_hex("01"), NULL, &pkcs8, &spki, &err) < 0);
    CHECK(cn_crypto_generate(CN_KEY_RSA, 2048, (struct cn_bytes){0}, NULL, &pkcs8, &spki, &err) <
          0);
    CHECK_INT(0, pkcs8.size + spki.size);
    CHECK_QUEUE();
}

TEST(key, a_number_that_is_no_kind_is_known_as_such)
{
    CHECK(!cn_crypto_kind_known(0) && !cn_crypto_kind_known(CN_KEY_X25519 + 1) &&
          !cn_crypto_kind_known(UINT32_MAX));
    for (uint32_t kind = CN_KEY_RSA; kind <= CN_KEY_X25519; kind++)
        CHECK(cn_crypto_kind_known(kind));
    CHECK_QUEUE();
}

TEST(key, points_are_checked_and_may_be_compressed)
{
    struct cn_buf spki = {0}, raw = {0};
    /* The P-256 generator, compressed. */
    CHECK_INT(0, cn_crypto_import_raw(
                     CN_KEY_P256,
                     test_hex("036b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
                     &spki, NULL));
    CHECK_INT(0, cn_crypto_export_raw(CN_KEY_P256, test_span(&spki), &raw, NULL));
    CHECK_HEX("046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
              "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
              &raw);
    CHECK_INT(CN_EINVALID,
              cn_crypto_import_raw(
                  CN_KEY_P256,
                  test_hex("046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
                           "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f6"),
                  &spki, NULL));
    cn_buf_fini(&spki);
    CHECK_QUEUE();
}
