/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that are made here: what is read of them, and what they answer. */
#include "crypto/certificate.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/assert.h"
#include "test/lib/vector.h"

static void extend(X509 *x509, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x509, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    CHECK(extension && X509_add_ext(x509, extension, -1));
    X509_EXTENSION_free(extension);
}

/* One with the name `common`, from 2020 to 2040, signed with `issuer_key`. */
static X509 *make(const char *common, EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key)
{
    X509 *x509 = X509_new();
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 0x1234);
    ASN1_TIME_set_string(X509_getm_notBefore(x509), "200102030405Z");
    ASN1_TIME_set_string(X509_getm_notAfter(x509), "400102030405Z");
    X509_set_pubkey(x509, key);
    X509_NAME *name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const uint8_t *)common, -1, -1, 0);
    X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, (const uint8_t *)"Tests", -1, -1, 0);
    X509_set_issuer_name(x509, issuer ? X509_get_subject_name(issuer) : name);
    if (issuer) {
        extend(x509, issuer, NID_subject_alt_name,
               "DNS:*.example.com, IP:192.0.2.1, email:me@example.com");
        extend(x509, issuer, NID_ext_key_usage, "serverAuth,clientAuth");
    } else {
        extend(x509, x509, NID_basic_constraints, "critical,CA:TRUE");
    }
    CHECK(X509_sign(x509, issuer_key, EVP_sha256()) > 0);
    return x509;
}

static void append_key(EVP_PKEY *key, bool is_private, struct cn_buf *out)
{
    uint8_t *der = NULL;
    int size = is_private ? i2d_PrivateKey(key, &der) : i2d_PUBKEY(key, &der);
    CHECK(size > 0);
    cn_buf_append(out, der, (size_t)size);
    OPENSSL_free(der);
}

struct family {
    EVP_PKEY *root_key, *leaf_key;
    X509 *root, *leaf;
    struct cn_certificate root_read, leaf_read;
};

/* PEM of one, DER of the other. */
static void family_make(struct family *family)
{
    family->root_key = EVP_EC_gen("P-256");
    family->leaf_key = EVP_EC_gen("P-256");
    family->root = make("root", family->root_key, NULL, family->root_key);
    family->leaf = make("leaf", family->leaf_key, family->root, family->root_key);
    uint8_t *der = NULL;
    int size = i2d_X509(family->root, &der);
    CHECK_INT(0,
              cn_certificate_read((struct cn_bytes){der, (size_t)size}, &family->root_read, NULL));
    OPENSSL_free(der);
    BIO *bio = BIO_new(BIO_s_mem());
    char *pem;
    CHECK(PEM_write_bio_X509(bio, family->leaf));
    size_t pem_size = (size_t)BIO_get_mem_data(bio, &pem);
    CHECK_INT(0, cn_certificate_read((struct cn_bytes){(uint8_t *)pem, pem_size},
                                     &family->leaf_read, NULL));
    BIO_free(bio);
}

static void family_drop(struct family *family)
{
    cn_certificate_fini(&family->root_read);
    cn_certificate_fini(&family->leaf_read);
    X509_free(family->root);
    X509_free(family->leaf);
    EVP_PKEY_free(family->root_key);
    EVP_PKEY_free(family->leaf_key);
}

TEST(certificate, says_whose_it_is_and_what_for)
{
    struct family family;
    family_make(&family);
    struct cn_certificate *leaf = &family.leaf_read, *root = &family.root_read;
    CHECK_STR("CN=leaf\nO=Tests", cn_buf_text(&leaf->subject));
    CHECK_STR("CN=root\nO=Tests", cn_buf_text(&leaf->issuer));
    CHECK_STR("DNS:*.example.com, IP Address:192.0.2.1, email:me@example.com",
              cn_buf_text(&leaf->alternative_names));
    CHECK_STR("1234", cn_buf_text(&leaf->serial));
    CHECK_STR("Jan  2 03:04:05 2020 GMT", cn_buf_text(&leaf->valid_from));
    CHECK_STR("Jan  2 03:04:05 2040 GMT", cn_buf_text(&leaf->valid_to));
    CHECK(leaf->has_usages && !leaf->is_authority);
    static const char usages[] = "1.3.6.1.5.5.7.3.1\0001.3.6.1.5.5.7.3.2";
    CHECK(leaf->usages.size == sizeof(usages) &&
          memcmp(leaf->usages.data, usages, sizeof(usages)) == 0);
    struct cn_buf key = {0};
    append_key(family.leaf_key, false, &key);
    CHECK(key.size == leaf->key.size && memcmp(key.data, leaf->key.data, key.size) == 0);
    CHECK(root->is_authority && !root->has_usages);
    CHECK_INT(0, root->alternative_names.size + root->info_access.size + root->usages.size);
    CHECK_QUEUE();
    cn_buf_fini(&key);
    family_drop(&family);
}

TEST(certificate, answers_about_names)
{
    struct family family;
    family_make(&family);
    struct cn_bytes der = test_span(&family.leaf_read.der);
    static const struct {
        enum cn_certificate_question question;
        const char *about;
        bool yes;
    } cases[] = {
        {CN_CERTIFICATE_HOST, "www.example.com", true},
        {CN_CERTIFICATE_HOST, "a.b.example.com", false},
        {CN_CERTIFICATE_HOST, "example.org", false},
        {CN_CERTIFICATE_EMAIL, "me@example.com", true},
        {CN_CERTIFICATE_EMAIL, "you@example.com", false},
        {CN_CERTIFICATE_IP, "192.0.2.1", true},
        {CN_CERTIFICATE_IP, "192.0.2.2", false},
        {CN_CERTIFICATE_IP, "no address", false},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(cases); i++)
        CHECK_INT(cases[i].yes,
                  cn_certificate_ask(der, cases[i].question, test_text(cases[i].about), 0));
    CHECK(!cn_certificate_ask(der, CN_CERTIFICATE_HOST, test_text("www.example.com"),
                              X509_CHECK_FLAG_NO_WILDCARDS));
    CHECK(!cn_certificate_ask(test_text("no certificate"), CN_CERTIFICATE_HOST,
                              test_text("www.example.com"), 0));
    CHECK_QUEUE();
    family_drop(&family);
}

TEST(certificate, answers_about_its_issuer_and_keys)
{
    struct family family;
    family_make(&family);
    struct cn_bytes leaf = test_span(&family.leaf_read.der),
                    root = test_span(&family.root_read.der);
    struct cn_buf leaf_private = {0}, root_private = {0};
    append_key(family.leaf_key, true, &leaf_private);
    append_key(family.root_key, true, &root_private);
    CHECK(cn_certificate_ask(leaf, CN_CERTIFICATE_ISSUED, root, 0));
    CHECK(!cn_certificate_ask(root, CN_CERTIFICATE_ISSUED, leaf, 0));
    CHECK(cn_certificate_ask(leaf, CN_CERTIFICATE_PRIVATE_KEY, test_span(&leaf_private), 0));
    CHECK(!cn_certificate_ask(leaf, CN_CERTIFICATE_PRIVATE_KEY, test_span(&root_private), 0));
    CHECK(cn_certificate_ask(leaf, CN_CERTIFICATE_VERIFY, test_span(&family.root_read.key), 0));
    CHECK(!cn_certificate_ask(leaf, CN_CERTIFICATE_VERIFY, test_span(&family.leaf_read.key), 0));
    for (int question = CN_CERTIFICATE_ISSUED; question <= CN_CERTIFICATE_VERIFY; question++) {
        CHECK(!cn_certificate_ask(leaf, (enum cn_certificate_question)question, test_text("no DER"),
                                  0));
        CHECK(!cn_certificate_ask(leaf, (enum cn_certificate_question)question,
                                  (struct cn_bytes){0}, 0));
    }
    CHECK_QUEUE();
    cn_buf_fini(&leaf_private);
    cn_buf_fini(&root_private);
    family_drop(&family);
}

TEST(certificate, what_is_none_is_refused)
{
    struct cn_certificate certificate;
    CHECK_INT(CN_EINVALID, cn_certificate_read((struct cn_bytes){0}, &certificate, NULL));
    CHECK_INT(CN_EINVALID, cn_certificate_read(test_text("text"), &certificate, NULL));
    struct family family;
    family_make(&family);
    struct cn_bytes der = test_span(&family.leaf_read.der);
    for (size_t size = 0; size < der.size; size++)
        CHECK_INT(CN_EINVALID,
                  cn_certificate_read((struct cn_bytes){der.data, size}, &certificate, NULL));
    CHECK_QUEUE();
    family_drop(&family);
}
