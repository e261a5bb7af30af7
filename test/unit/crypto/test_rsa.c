/* SPDX-License-Identifier: Apache-2.0 */
/* RSA-OAEP: there and back, another label, data too large, keys that are none. */
#include "crypto/rsa.h"

#include <string.h>

#include "test/lib/vector.h"

TEST(rsa, oaep_gives_back_only_with_its_label_and_hash)
{
    struct cn_buf pkcs8 = {0}, spki = {0}, out = {0}, plain = {0};
    struct cn_err err = {0};
    CHECK_INT(0,
              cn_crypto_generate(CN_KEY_RSA, 2048, test_hex("010001"), NULL, &pkcs8, &spki, &err));
    CHECK_INT(0, cn_crypto_rsa_oaep(true, CN_HASH_SHA256, test_span(&spki), test_text("label"),
                                    test_text("secret"), &out, &err));
    CHECK(cn_crypto_rsa_oaep(false, CN_HASH_SHA256, test_span(&pkcs8), test_text("other"),
                             test_span(&out), &plain, &err) < 0);
    CHECK_INT(0, cn_crypto_rsa_oaep(false, CN_HASH_SHA256, test_span(&pkcs8), test_text("label"),
                                    test_span(&out), &plain, &err));
    CHECK_STR("secret", cn_buf_text(&plain));
    char large[300] = {0};
    CHECK(cn_crypto_rsa_oaep(true, CN_HASH_SHA256, test_span(&spki), test_text(""),
                             (struct cn_bytes){(uint8_t *)large, sizeof(large)}, &out, &err) < 0);
    CHECK(cn_crypto_rsa_oaep(false, CN_HASH_SHA1, test_span(&pkcs8), test_text("label"),
                             test_span(&out), &plain, &err) < 0);
    CHECK_INT(CN_EUNSUPPORTED, cn_crypto_rsa_oaep(true, CN_HASH_NONE, test_span(&spki),
                                                  test_text(""), test_text("m"), &out, &err));
    /* The public key does not decrypt, the private one does not encrypt: they are other forms. */
    CHECK_INT(CN_EINVALID, cn_crypto_rsa_oaep(false, CN_HASH_SHA256, test_span(&spki),
                                              test_text(""), test_text("m"), &out, &err));
    CHECK_INT(CN_EINVALID, cn_crypto_rsa_oaep(true, CN_HASH_SHA256, test_span(&pkcs8),
                                              test_text(""), test_text("m"), &out, &err));
    CHECK_QUEUE();
    cn_buf_fini(&pkcs8);
    cn_buf_fini(&spki);
    cn_buf_fini(&out);
    cn_buf_fini(&plain);
}
