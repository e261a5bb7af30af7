/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the room share: reasons of OpenSSL, and room for results. */
#include "crypto/crypto.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

#include "test/lib/vector.h"

TEST(crypto, a_failure_has_openssls_reason_and_empties_its_queue)
{
    struct cn_err err = {0};
    ERR_raise(ERR_LIB_EVP, EVP_R_BAD_DECRYPT);
    CHECK_INT(CN_EPROTOCOL, cn_crypto_fail(&err, CN_EPROTOCOL, "decryption failed"));
    CHECK_STR("decryption failed: bad decrypt", err.text);
    CHECK_QUEUE();
    CHECK_INT(CN_EINVALID, cn_crypto_fail(&err, CN_EINVALID, "not a key"));
    CHECK_STR("not a key", err.text);
}

TEST(crypto, room_is_made_behind_what_is_there_and_only_where_it_is_missing)
{
    struct cn_buf out = {0};
    uint8_t *first = cn_crypto_room(&out, 100);
    CHECK(first && out.size == 0 && out.capacity >= 100);
    memset(first, 7, 60);
    out.size = 60;
    CHECK(cn_crypto_room(&out, 40) == first + 60);
    uint8_t *more = cn_crypto_room(&out, 100000);
    CHECK(more == out.data + 60 && out.size == 60 && out.capacity >= 100060);
    for (size_t i = 0; i < 60; i++)
        CHECK_INT(7, out.data[i]);
    CHECK_INT(60, out.size);
    cn_buf_fini(&out);
}

TEST(crypto, wiping_leaves_nothing)
{
    uint8_t secret[32], zeros[32] = {0};
    memset(secret, 0xaa, sizeof(secret));
    cn_crypto_wipe(secret, sizeof(secret));
    CHECK(memcmp(secret, zeros, sizeof(zeros)) == 0);
}
