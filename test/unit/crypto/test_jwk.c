/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of JSON Web Keys: widths, order, and numbers that belong to no key. */
#include "crypto/jwk.h"

#include <string.h>

#include "test/lib/vector.h"

/* The numbers that cn_crypto_export_parts() has written, borrowed; how many. */
static size_t parts_read(const struct cn_buf *out, struct cn_crypto_parts *parts)
{
    size_t count = 0;
    for (size_t at = 0; at < out->size; count++) {
        CHECK(count < CN_CRYPTO_PART_COUNT && out->size - at >= 4);
        size_t size = (size_t)out->data[at + 2] << 8 | out->data[at + 3];
        CHECK(size <= out->size - at - 4);
        parts->part[count] = (struct cn_bytes){out->data + at + 4, size};
        at += 4 + size;
    }
    return count;
}

TEST(jwk, a_key_has_as_many_numbers_as_its_kind_and_they_have_full_width)
{
    static const struct {
        enum cn_crypto_kind kind;
        size_t count_public, count_private, width;
    } kinds[] = {{CN_KEY_RSA, 2, 8, 0},   {CN_KEY_P256, 2, 3, 32},    {CN_KEY_P384, 2, 3, 48},
                 {CN_KEY_P521, 2, 3, 66}, {CN_KEY_ED25519, 1, 2, 32}, {CN_KEY_X25519, 1, 2, 32}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct cn_buf pkcs8 = {0}, spki = {0};
        CHECK_INT(0, cn_crypto_generate(kinds[i].kind, 1024, test_hex("010001"), NULL, &pkcs8,
                                        &spki, NULL));
        for (int is_private = 0; is_private < 2; is_private++) {
            struct cn_buf out = {0};
            struct cn_crypto_parts parts = {0};
            const struct cn_buf *der = is_private ? &pkcs8 : &spki;
            CHECK_INT(
                0, cn_crypto_export_parts(kinds[i].kind, is_private, test_span(der), &out, NULL));
            size_t count = parts_read(&out, &parts);
            CHECK_INT(is_private ? kinds[i].count_private : kinds[i].count_public, count);
            for (size_t k = 0; kinds[i].width && k < count; k++)
                CHECK_INT(kinds[i].width, parts.part[k].size);
            struct cn_buf again = {0};
            CHECK_INT(0, cn_crypto_import_parts(kinds[i].kind, &parts, is_private, &again, NULL));
            CHECK(again.size == der->size && memcmp(again.data, der->data, again.size) == 0);
            /* A number that is missing, or one of another key in its place, makes no key. */
            struct cn_crypto_parts fewer = parts;
            fewer.part[count - 1] = (struct cn_bytes){0};
            CHECK_INT(CN_EINVALID,
                      cn_crypto_import_parts(kinds[i].kind, &fewer, is_private, &again, NULL));
            CHECK_QUEUE();
            cn_buf_fini(&out);
            cn_buf_fini(&again);
        }
        cn_buf_fini(&pkcs8);
        cn_buf_fini(&spki);
    }
}

TEST(jwk, numbers_of_two_keys_make_none)
{
    for (enum cn_crypto_kind kind = CN_KEY_P256; kind <= CN_KEY_X25519; kind++) {
        struct cn_buf pkcs8[2] = {{0}}, spki[2] = {{0}}, out[2] = {{0}}, der = {0};
        struct cn_crypto_parts parts[2] = {{{{0}}}};
        size_t count = 0;
        for (size_t i = 0; i < 2; i++) {
            CHECK_INT(0, cn_crypto_generate(kind, 0, (struct cn_bytes){0}, NULL, &pkcs8[i],
                                            &spki[i], NULL));
            CHECK_INT(0, cn_crypto_export_parts(kind, true, test_span(&pkcs8[i]), &out[i], NULL));
            count = parts_read(&out[i], &parts[i]);
        }
        parts[0].part[count - 1] = parts[1].part[count - 1]; /* the secret of the other */
        CHECK_INT(CN_EINVALID, cn_crypto_import_parts(kind, &parts[0], true, &der, NULL));
        CHECK_QUEUE();
        for (size_t i = 0; i < 2; i++) {
            cn_buf_fini(&pkcs8[i]);
            cn_buf_fini(&spki[i]);
            cn_buf_fini(&out[i]);
        }
    }
}
