/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of any kind: there and back in every form, signatures, RSA, agreement, SPKAC. */
#include "crypto/anykey.h"

#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <string.h>

#include "base/assert.h"
#include "test/lib/vector.h"

static const struct cn_anykey_recipe recipes[] = {
    {.type = "RSA", .curve = "", .bits = 1024, .exponent = 65537},
    {.type = "EC", .curve = "prime256v1"},
    {.type = "EC", .curve = "secp256k1"},
    {.type = "ED25519", .curve = ""},
    {.type = "ED448", .curve = ""},
};

/* A pair as DER; the caller releases both. */
static void make_pair(const struct cn_anykey_recipe *recipe, struct cn_anykey *private,
                      struct cn_anykey *public)
{
    CHECK_INT(0, cn_anykey_generate(recipe, private, NULL));
    CHECK_INT(0, cn_anykey_public(test_span(&private->der), public, NULL));
}

static void drop_pair(struct cn_anykey *private, struct cn_anykey *public)
{
    cn_buf_fini(&private->der);
    cn_buf_fini(&public->der);
}

static bool same(const struct cn_buf *a, const struct cn_buf *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

TEST(anykey, every_kind_is_read_as_it_was_written)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(recipes); i++) {
        struct cn_anykey private, public;
        make_pair(&recipes[i], &private, &public);
        CHECK_STR(recipes[i].type, private.type);
        CHECK_STR(recipes[i].curve, private.curve);
        for (int is_private = 0; is_private < 2; is_private++) {
            const struct cn_anykey *key = is_private ? &private : &public;
            static const char *const formats[] = {"PEM", "DER"};
            for (size_t f = 0; f < 2; f++) {
                struct cn_anykey_form form = {.format = formats[f],
                                              .structure = is_private ? "PrivateKeyInfo"
                                                                      : "SubjectPublicKeyInfo"};
                struct cn_buf out = {0};
                struct cn_anykey back;
                CHECK_INT(0, cn_anykey_write(test_span(&key->der), is_private, &form, &out, NULL));
                CHECK_INT(0, cn_anykey_read(test_span(&out), is_private, (struct cn_bytes){0},
                                            &back, NULL));
                CHECK(same(&key->der, &back.der));
                CHECK_INT(key->bits, back.bits);
                cn_buf_fini(&out);
                cn_buf_fini(&back.der);
            }
        }
        drop_pair(&private, &public);
    }
    CHECK_QUEUE();
}

TEST(anykey, an_encrypted_key_is_read_with_its_passphrase_only)
{
    struct cn_anykey private, public, back = {0};
    make_pair(&recipes[1], &private, &public);
    struct cn_anykey_form form = {.format = "PEM",
                                  .structure = "EncryptedPrivateKeyInfo",
                                  .cipher = "aes-256-cbc",
                                  .passphrase = test_text("a secret")};
    struct cn_buf out = {0};
    CHECK_INT(0, cn_anykey_write(test_span(&private.der), true, &form, &out, NULL));
    CHECK(strstr(cn_buf_text(&out), "BEGIN ENCRYPTED PRIVATE KEY"));
    struct cn_bytes none = {0};
    CHECK(cn_anykey_read(test_span(&out), true, test_text("another"), &back, NULL) < 0);
    CHECK(cn_anykey_read(test_span(&out), true, none, &back, NULL) < 0); /* asks nobody */
    CHECK_INT(0, cn_anykey_read(test_span(&out), true, test_text("a secret"), &back, NULL));
    CHECK(same(&private.der, &back.der));
    form.cipher = "no-such-cipher";
    CHECK_INT(CN_EUNSUPPORTED, cn_anykey_write(test_span(&private.der), true, &form, &out, NULL));
    CHECK_QUEUE();
    cn_buf_fini(&out);
    cn_buf_fini(&back.der);
    drop_pair(&private, &public);
}

TEST(anykey, what_is_no_key_is_refused_with_a_reason)
{
    struct cn_anykey key;
    struct cn_err err;
    struct cn_buf out = {0};
    struct cn_bytes junk =
        test_text("-----BEGIN PUBLIC KEY-----\nbm8=\n-----END PUBLIC KEY-----\n");
    CHECK_INT(CN_EINVALID, cn_anykey_read(junk, false, (struct cn_bytes){0}, &key, &err));
    CHECK(err.text[0]);
    CHECK_INT(CN_EINVALID,
              cn_anykey_read((struct cn_bytes){0}, true, (struct cn_bytes){0}, &key, &err));
    CHECK_INT(CN_EINVALID, cn_anykey_public(test_text("x"), &key, &err));
    struct cn_anykey_form form = {.format = "PEM", .structure = "PrivateKeyInfo"};
    CHECK_INT(CN_EINVALID, cn_anykey_write((struct cn_bytes){0}, true, &form, &out, &err));
    static const struct cn_anykey_recipe bad[] = {
        {.type = "no kind", .curve = ""},
        {.type = "EC", .curve = "no curve"},
        {.type = "RSA", .curve = "", .bits = CN_ANYKEY_RSA_BITS_MAX + 8, .exponent = 3},
        {.type = "RSA", .curve = "", .bits = 16, .exponent = 3},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(bad); i++) {
        CHECK_INT(CN_EINVALID, cn_anykey_generate(&bad[i], &key, &err));
        CHECK_STR("The key could not be generated", err.text);
    }
    CHECK_QUEUE();
}

TEST(anykey, a_signature_fits_its_key_and_its_data)
{
    static const struct {
        size_t recipe;
        const char *hash;
        int padding, salt;
    } ways[] = {{0, "sha256", 0, 0},
                {0, "sha1", RSA_PKCS1_PSS_PADDING, 20},
                {0, "sha256", RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_DIGEST},
                {1, "sha512", 0, 0},
                {2, "sha256", RSA_PKCS1_PSS_PADDING, 1}, /* padding is RSA's only */
                {3, NULL, 0, 0},
                {4, NULL, 0, 0}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(ways); i++) {
        struct cn_anykey private, public;
        struct cn_buf out = {0};
        make_pair(&recipes[ways[i].recipe], &private, &public);
        struct cn_anykey_way way = {.hash = ways[i].hash,
                                    .padding = ways[i].padding,
                                    .salt = ways[i].salt,
                                    .der = test_span(&private.der)};
        CHECK_INT(0, cn_anykey_sign(&way, test_text("data"), &out, NULL));
        way.der = test_span(&public.der);
        CHECK_INT(1, cn_anykey_verify(&way, test_text("data"), test_span(&out), NULL));
        CHECK_INT(0, cn_anykey_verify(&way, test_text("Data"), test_span(&out), NULL));
        CHECK_INT(0, cn_anykey_verify(&way, test_text("data"), test_text("none"), NULL));
        way.hash = "no such hash";
        CHECK_INT(CN_EUNSUPPORTED,
                  cn_anykey_verify(&way, test_text("data"), test_span(&out), NULL));
        way.hash = ways[i].hash;
        CHECK_INT(CN_EINVALID, cn_anykey_sign(&way, test_text("data"), &out, NULL)); /* public */
        CHECK_QUEUE();
        cn_buf_fini(&out);
        drop_pair(&private, &public);
    }
}

TEST(anykey, rsa_goes_both_ways)
{
    struct cn_anykey private, public;
    make_pair(&recipes[0], &private, &public);
    static const int paddings[] = {RSA_PKCS1_OAEP_PADDING, RSA_PKCS1_PADDING};
    for (int first = 0; first < 2; first++) { /* with which key it is encrypted */
        struct cn_buf coded = {0}, plain = {0};
        struct cn_anykey_rsa way = {.encrypts = true,
                                    .is_private = first,
                                    .der = test_span(first ? &private.der : &public.der),
                                    .padding = paddings[first],
                                    .hash = "sha1"};
        CHECK_INT(0, cn_anykey_rsa(&way, test_text("hello"), &coded, NULL));
        way.encrypts = false;
        way.is_private = !first;
        way.der = test_span(first ? &public.der : &private.der);
        CHECK_INT(0, cn_anykey_rsa(&way, test_span(&coded), &plain, NULL));
        CHECK_STR("hello", cn_buf_text(&plain));
        CHECK_INT(CN_EPROTOCOL, cn_anykey_rsa(&way, test_text("short"), &plain, NULL));
        way.hash = "no such hash";
        CHECK_INT(CN_EPROTOCOL, cn_anykey_rsa(&way, test_span(&coded), &plain, NULL));
        CHECK_QUEUE();
        cn_buf_fini(&coded);
        cn_buf_fini(&plain);
    }
    drop_pair(&private, &public);
}

TEST(anykey, two_keys_of_a_kind_agree)
{
    static const struct cn_anykey_recipe kinds[] = {{.type = "EC", .curve = "secp384r1"},
                                                    {.type = "X25519", .curve = ""},
                                                    {.type = "X448", .curve = ""}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(kinds); i++) {
        struct cn_anykey private[2], public[2];
        struct cn_buf secret[2] = {{0}};
        for (size_t k = 0; k < 2; k++)
            make_pair(&kinds[i], &private[k], &public[k]);
        for (size_t k = 0; k < 2; k++)
            CHECK_INT(0, cn_anykey_agree(test_span(&private[k].der), test_span(&public[1 - k].der),
                                         &secret[k], NULL));
        CHECK(secret[0].size > 0 && same(&secret[0], &secret[1]));
        CHECK_INT(CN_EINVALID, cn_anykey_agree(test_span(&private[0].der), test_text("no key"),
                                               &secret[0], NULL));
        CHECK_QUEUE();
        for (size_t k = 0; k < 2; k++) {
            drop_pair(&private[k], &public[k]);
            cn_buf_fini(&secret[k]);
        }
    }
}

/* One that is made here, for no command is sure to be there. */
TEST(anykey, spkac_gives_its_key_and_its_challenge)
{
    struct cn_anykey private, public;
    make_pair(&recipes[0], &private, &public);
    const unsigned char *at = private.der.data;
    EVP_PKEY *key = d2i_AutoPrivateKey(NULL, &at, (long)private.der.size);
    NETSCAPE_SPKI *spki = NETSCAPE_SPKI_new();
    CHECK(key && spki);
    CHECK(ASN1_STRING_set(spki->spkac->challenge, "a challenge", -1));
    CHECK(NETSCAPE_SPKI_set_pubkey(spki, key) && NETSCAPE_SPKI_sign(spki, key, EVP_sha256()) > 0);
    char *text = NETSCAPE_SPKI_b64_encode(spki);
    struct cn_buf padded = {0}, out = {0};
    cn_buf_append_str(&padded, text);
    cn_buf_append_str(&padded, " \r\n");
    struct cn_bytes spkac = test_span(&padded);
    CHECK(cn_anykey_spkac_verify(spkac));
    CHECK_INT(0, cn_anykey_spkac_challenge(spkac, &out, NULL));
    CHECK_STR("a challenge", cn_buf_text(&out));
    cn_buf_clear(&out);
    CHECK_INT(0, cn_anykey_spkac_key(spkac, &out, NULL));
    struct cn_anykey back;
    CHECK_INT(0, cn_anykey_read(test_span(&out), false, (struct cn_bytes){0}, &back, NULL));
    CHECK(same(&public.der, &back.der));
    ASN1_STRING_set(spki->spkac->challenge, "a Challenge", -1); /* not what was signed */
    char *other = NETSCAPE_SPKI_b64_encode(spki);
    CHECK(!cn_anykey_spkac_verify(test_text(other)));
    CHECK(!cn_anykey_spkac_verify(test_text("")) && !cn_anykey_spkac_verify(test_text("  ")));
    CHECK_INT(CN_EINVALID, cn_anykey_spkac_key(test_text("AAAA"), &out, NULL));
    CHECK_INT(CN_EINVALID, cn_anykey_spkac_challenge(test_text("AAAA"), &out, NULL));
    CHECK_QUEUE();
    OPENSSL_free(text);
    OPENSSL_free(other);
    NETSCAPE_SPKI_free(spki);
    EVP_PKEY_free(key);
    cn_buf_fini(&padded);
    cn_buf_fini(&out);
    cn_buf_fini(&back.der);
    drop_pair(&private, &public);
}
