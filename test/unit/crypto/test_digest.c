/* SPDX-License-Identifier: Apache-2.0 */
/* Digests, HMAC and comparison, against published vectors. */
#include "crypto/digest.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "test/lib/vector.h"

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

TEST(digest, digests_whole_and_in_pieces)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(digests); i++) {
        struct cn_buf out = {0};
        CHECK_INT(0, cn_crypto_digest(digests[i].hash, test_text("abc"), &out, NULL));
        CHECK_HEX(digests[i].abc, &out);
        uint8_t state[CN_CRYPTO_STATE_SIZE], moved[CN_CRYPTO_STATE_SIZE];
        CHECK_INT(0, cn_crypto_digest_start(digests[i].hash, state, NULL));
        cn_crypto_digest_update(state, test_text("a"));
        memcpy(moved, state, sizeof(state)); /* the state may move */
        memset(state, 0xaa, sizeof(state));
        cn_crypto_digest_update(moved, test_text(""));
        cn_crypto_digest_update(moved, test_text("bc"));
        cn_crypto_digest_finish(moved, &out);
        CHECK_HEX(digests[i].abc, &out);
    }
    struct cn_buf none = {0};
    CHECK_INT(CN_EUNSUPPORTED, cn_crypto_digest(99, test_text("abc"), &none, NULL));
    CHECK_QUEUE();
}

TEST(digest, hmac_rfc4231)
{
    struct cn_buf out = {0};
    CHECK_INT(0, cn_crypto_hmac(CN_HASH_SHA256, test_text("Jefe"),
                                test_text("what do ya want for nothing?"), &out, NULL));
    CHECK_HEX("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", &out);
    CHECK_INT(0, cn_crypto_hmac(CN_HASH_SHA512, test_text("Jefe"),
                                test_text("what do ya want for nothing?"), &out, NULL));
    CHECK_HEX("164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
              "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
              &out);
    CHECK_QUEUE();
}

TEST(digest, equality_sees_every_byte)
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
    CHECK_QUEUE();
}
