/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes by name in pieces: the same digests as crypto/digest.h's, copies, lengths, what is
 * refused. */
#include "crypto/hashing.h"

#include <string.h>

#include "base/assert.h"
#include "crypto/digest.h"
#include "test/lib/vector.h"

static const struct {
    const char *name;
    enum cn_crypto_hash hash;
} names[] = {{"sha1", CN_HASH_SHA1},
             {"SHA256", CN_HASH_SHA256},
             {"sha384", CN_HASH_SHA384},
             {"sha512", CN_HASH_SHA512},
             {"md5", CN_HASH_MD5}};

/* Both implementations, on data in two pieces. */
TEST(hashing, agrees_with_the_hashes_of_web_crypto)
{
    struct cn_bytes key = test_text("a key"), first = test_text("two "),
                    second = test_text("words");
    struct cn_bytes whole = test_text("two words");
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        for (int is_hmac = 0; is_hmac < 2; is_hmac++) {
            struct cn_buf want = {0}, got = {0};
            CHECK_INT(0, is_hmac ? cn_crypto_hmac(names[i].hash, key, whole, &want, NULL)
                                 : cn_crypto_digest(names[i].hash, whole, &want, NULL));
            struct cn_hashing *hashing = cn_hashing_new(names[i].name, is_hmac ? &key : NULL);
            CHECK(hashing);
            CHECK_INT(0, cn_hashing_update(hashing, first, NULL));
            CHECK_INT(0, cn_hashing_update(hashing, second, NULL));
            CHECK_INT(0, cn_hashing_finish(hashing, 0, &got, NULL));
            CHECK(cn_crypto_equal(test_span(&want), test_span(&got)));
            cn_hashing_free(hashing);
            cn_buf_fini(&want);
            cn_buf_fini(&got);
        }
    }
    CHECK_QUEUE();
}

TEST(hashing, a_copy_goes_its_own_way_and_hmacs_have_none)
{
    struct cn_buf one = {0}, other = {0}, want = {0};
    struct cn_hashing *hashing = cn_hashing_new("sha256", NULL);
    CHECK_INT(0, cn_hashing_update(hashing, test_text("ab"), NULL));
    struct cn_hashing *copy = cn_hashing_copy(hashing);
    CHECK(copy);
    CHECK_INT(0, cn_hashing_update(hashing, test_text("c"), NULL));
    CHECK_INT(0, cn_hashing_update(copy, test_text("d"), NULL));
    CHECK_INT(0, cn_hashing_finish(hashing, 0, &one, NULL));
    CHECK_INT(0, cn_hashing_finish(copy, 0, &other, NULL));
    CHECK_INT(0, cn_crypto_digest(CN_HASH_SHA256, test_text("abc"), &want, NULL));
    CHECK(cn_crypto_equal(test_span(&want), test_span(&one)));
    CHECK(!cn_crypto_equal(test_span(&want), test_span(&other)));
    CHECK_INT(CN_EPROTOCOL, cn_hashing_update(hashing, test_text("late"), NULL)); /* H1 */
    CHECK_INT(CN_EPROTOCOL, cn_hashing_finish(hashing, 0, &one, NULL));
    CHECK(cn_hashing_copy(hashing) == NULL);
    cn_hashing_free(hashing);
    cn_hashing_free(copy);
    struct cn_bytes key = test_text("k");
    struct cn_hashing *hmac = cn_hashing_new("sha256", &key);
    CHECK(hmac && cn_hashing_copy(hmac) == NULL);
    cn_hashing_free(hmac);
    CHECK_QUEUE();
    cn_buf_fini(&one);
    cn_buf_fini(&other);
    cn_buf_fini(&want);
}

/* FIPS 202: the empty message under SHAKE128, 32 bytes. */
TEST(hashing, only_some_hashes_have_any_length)
{
    struct cn_buf out = {0};
    struct cn_hashing *shake = cn_hashing_new("shake128", NULL);
    CHECK(shake);
    CHECK_INT(0, cn_hashing_finish(shake, 32, &out, NULL));
    CHECK_HEX("7f9c2ba4e88f827d616045507605853ed73b8093f6efbc88eb1a6eacfa66ef26", &out);
    cn_hashing_free(shake);
    struct cn_hashing *sha = cn_hashing_new("sha256", NULL);
    CHECK_INT(CN_EUNSUPPORTED, cn_hashing_finish(sha, 20, &out, NULL));
    cn_hashing_free(sha);
    cn_buf_fini(&out);
    CHECK(cn_hashing_new("no such hash", NULL) == NULL);
    cn_hashing_free(NULL);
    CHECK_QUEUE();
}

TEST(hashing, names_are_separated_by_blanks)
{
    struct cn_buf out = {0};
    cn_hashing_names(&out);
    CHECK(strstr(cn_buf_text(&out), "SHA256 "));
    CHECK(out.data[0] != ' ' && out.data[out.size - 1] != ' ');
    cn_buf_fini(&out);
}
