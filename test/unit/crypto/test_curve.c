/* SPDX-License-Identifier: Apache-2.0 */
/* Points of curves by name. */
#include "crypto/curve.h"

#include <string.h>

#include "base/assert.h"
#include "test/lib/vector.h"

/* The generator of P-256, and the same compressed. */
#define G                                                                \
    "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296" \
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
#define G_SHORT "036b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"

TEST(curve, a_point_has_three_forms)
{
    struct cn_buf out = {0};
    CHECK_INT(0, cn_curve_point("prime256v1", test_hex(G), 2, &out, NULL));
    CHECK_HEX(G_SHORT, &out);
    CHECK_INT(0, cn_curve_point("prime256v1", test_hex(G_SHORT), 4, &out, NULL));
    CHECK_HEX(G, &out);
    CHECK_INT(0, cn_curve_point("prime256v1", test_hex(G_SHORT), 6, &out, NULL));
    CHECK_INT(65, out.size);
    CHECK_INT(7, out.data[0]);
    cn_buf_clear(&out);
    CHECK_INT(CN_EUNSUPPORTED, cn_curve_point("no curve", test_hex(G), 2, &out, NULL));
    CHECK_INT(CN_EINVALID, cn_curve_point("secp384r1", test_hex(G), 2, &out, NULL));
    CHECK_INT(CN_EINVALID, cn_curve_point("prime256v1", test_hex(""), 2, &out, NULL));
    CHECK_INT(CN_EINVALID,
              cn_curve_point("prime256v1", test_hex("00"), 2, &out, NULL));           /* infinity */
    CHECK_INT(CN_EINVALID, cn_curve_point("prime256v1", test_hex(G), 3, &out, NULL)); /* no form */
    CHECK_INT(0, out.size);
    CHECK_QUEUE();
    cn_buf_fini(&out);
}

TEST(curve, the_secret_one_makes_the_generator)
{
    struct cn_buf secret = {0}, point = {0};
    struct cn_bytes one = test_hex("01");
    CHECK_INT(0, cn_curve_pair("prime256v1", &one, &secret, &point, NULL));
    CHECK_HEX("0000000000000000000000000000000000000000000000000000000000000001", &secret);
    CHECK_HEX(G, &point);
    /* Zero, the order and more are no secrets. */
    static const char *const bad[] = {
        "", "00", "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(bad); i++) {
        struct cn_bytes number = test_hex(bad[i]);
        CHECK_INT(CN_EINVALID, cn_curve_pair("prime256v1", &number, &secret, &point, NULL));
        CHECK_INT(CN_EINVALID, cn_curve_multiply("prime256v1", number, test_hex(G), &point, NULL));
    }
    CHECK_INT(CN_EUNSUPPORTED, cn_curve_pair("", &one, &secret, &point, NULL));
    CHECK_INT(0, secret.size + point.size);
    CHECK_QUEUE();
}

TEST(curve, two_that_were_made_agree)
{
    static const char *const curves[] = {"prime256v1", "secp384r1", "secp521r1", "secp256k1"};
    static const size_t widths[] = {32, 48, 66, 32};
    for (size_t i = 0; i < CN_ARRAY_COUNT(curves); i++) {
        struct cn_buf secret[2] = {{0}}, point[2] = {{0}}, shared[2] = {{0}};
        for (size_t k = 0; k < 2; k++) {
            CHECK_INT(0, cn_curve_pair(curves[i], NULL, &secret[k], &point[k], NULL));
            CHECK_INT(widths[i], secret[k].size);
        }
        for (size_t k = 0; k < 2; k++) {
            CHECK_INT(0, cn_curve_multiply(curves[i], test_span(&secret[k]),
                                           test_span(&point[1 - k]), &shared[k], NULL));
            CHECK_INT(widths[i], shared[k].size);
        }
        CHECK(memcmp(shared[0].data, shared[1].data, widths[i]) == 0);
        CHECK(memcmp(secret[0].data, secret[1].data, widths[i]) != 0);
        for (size_t k = 0; k < 2; k++) {
            cn_buf_fini(&secret[k]);
            cn_buf_fini(&point[k]);
            cn_buf_fini(&shared[k]);
        }
    }
    CHECK_QUEUE();
}
