/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/certificate.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/assert.h"

/* Appends what was written to `bio`, which is freed. */
static void take_text(BIO *bio, bool written, struct cn_buf *out)
{
    char *text;
    long size = BIO_get_mem_data(bio, &text);
    if (written && size > 0)
        cn_buf_append(out, text, (size_t)size);
    BIO_free(bio);
}

static BIO *text_new(void)
{
    BIO *bio = BIO_new(BIO_s_mem());
    CN_ASSERT(bio);
    return bio;
}

static void read_name(const X509_NAME *name, struct cn_buf *out)
{
    BIO *bio = text_new();
    int written =
        X509_NAME_print_ex(bio, name, 0,
                           ASN1_STRFLGS_ESC_2253 | ASN1_STRFLGS_ESC_CTRL |
                               ASN1_STRFLGS_UTF8_CONVERT | XN_FLAG_SEP_MULTILINE | XN_FLAG_FN_SN);
    take_text(bio, written >= 0, out);
}

static void read_time(const ASN1_TIME *time, struct cn_buf *out)
{
    BIO *bio = text_new();
    take_text(bio, ASN1_TIME_print(bio, time) == 1, out);
}

static void read_extension(const X509 *x509, int nid, struct cn_buf *out)
{
    int index = X509_get_ext_by_NID(x509, nid, -1);
    if (index < 0)
        return;
    BIO *bio = text_new();
    take_text(bio, X509V3_EXT_print(bio, X509_get_ext(x509, index), 0, 0) == 1, out);
}

static void read_serial(const X509 *x509, struct cn_buf *out)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x509), NULL);
    char *hex = number ? BN_bn2hex(number) : NULL;
    if (hex)
        cn_buf_append_str(out, hex);
    OPENSSL_free(hex);
    BN_free(number);
}

static void read_usages(X509 *x509, struct cn_certificate *certificate)
{
    EXTENDED_KEY_USAGE *usages = X509_get_ext_d2i(x509, NID_ext_key_usage, NULL, NULL);
    if (!usages)
        return;
    certificate->has_usages = true;
    for (int i = 0; i < sk_ASN1_OBJECT_num(usages) && i < CN_CERTIFICATE_USAGE_MAX; i++) {
        char text[128];
        if (OBJ_obj2txt(text, sizeof(text), sk_ASN1_OBJECT_value(usages, i), 1) > 0)
            cn_buf_append(&certificate->usages, text, strlen(text) + 1);
    }
    sk_ASN1_OBJECT_pop_free(usages, ASN1_OBJECT_free);
}

/* Takes `der`, which OpenSSL has allocated. */
static void take_der(uint8_t *der, int size, struct cn_buf *out)
{
    if (size > 0)
        cn_buf_append(out, der, (size_t)size);
    OPENSSL_free(der);
}

static X509 *x509_of(struct cn_bytes der)
{
    const unsigned char *at = der.data;
    return der.size > 0 ? d2i_X509(NULL, &at, (long)der.size) : NULL;
}

static X509 *x509_decode(struct cn_bytes encoded)
{
    if (encoded.size == 0 || encoded.size > CN_CERTIFICATE_INPUT_MAX)
        return NULL;
    BIO *bio = BIO_new_mem_buf(encoded.data, (int)encoded.size);
    CN_ASSERT(bio);
    X509 *x509 = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);
    BIO_free(bio);
    return x509 ? x509 : x509_of(encoded);
}

int cn_certificate_read(struct cn_bytes encoded, struct cn_certificate *certificate,
                        struct cn_err *err)
{
    X509 *x509 = x509_decode(encoded);
    ERR_clear_error();
    if (!x509)
        return cn_err_set(err, CN_EINVALID, "not a certificate");
    *certificate = (struct cn_certificate){.is_authority = X509_check_ca(x509) == 1};
    uint8_t *der = NULL, *key = NULL;
    int der_size = i2d_X509(x509, &der);
    take_der(der, der_size, &certificate->der);
    int key_size = i2d_PUBKEY(X509_get0_pubkey(x509), &key);
    take_der(key, key_size, &certificate->key);
    read_name(X509_get_subject_name(x509), &certificate->subject);
    read_name(X509_get_issuer_name(x509), &certificate->issuer);
    read_extension(x509, NID_subject_alt_name, &certificate->alternative_names);
    read_extension(x509, NID_info_access, &certificate->info_access);
    read_time(X509_get0_notBefore(x509), &certificate->valid_from);
    read_time(X509_get0_notAfter(x509), &certificate->valid_to);
    read_serial(x509, &certificate->serial);
    read_usages(x509, certificate);
    X509_free(x509);
    ERR_clear_error();
    return 0;
}

void cn_certificate_fini(struct cn_certificate *certificate)
{
    struct cn_buf *all[] = {&certificate->der,
                            &certificate->key,
                            &certificate->subject,
                            &certificate->issuer,
                            &certificate->alternative_names,
                            &certificate->info_access,
                            &certificate->valid_from,
                            &certificate->valid_to,
                            &certificate->serial,
                            &certificate->usages};
    for (size_t i = 0; i < CN_ARRAY_COUNT(all); i++)
        cn_buf_fini(all[i]);
}

static bool key_fits(X509 *x509, bool is_private, struct cn_bytes der)
{
    const unsigned char *at = der.data;
    EVP_PKEY *key = is_private ? d2i_AutoPrivateKey(NULL, &at, (long)der.size)
                               : d2i_PUBKEY(NULL, &at, (long)der.size);
    bool good =
        key && (is_private ? X509_check_private_key(x509, key) : X509_verify(x509, key)) == 1;
    EVP_PKEY_free(key);
    return good;
}

static bool issued_by(X509 *x509, struct cn_bytes issuer_der)
{
    X509 *issuer = x509_of(issuer_der);
    bool issued = issuer && X509_check_issued(issuer, x509) == X509_V_OK;
    X509_free(issuer);
    return issued;
}

static bool answer(X509 *x509, enum cn_certificate_question question, struct cn_bytes about,
                   unsigned flags)
{
    const char *text = (const char *)about.data;
    switch (question) {
    case CN_CERTIFICATE_HOST:
        return X509_check_host(x509, text, about.size, flags, NULL) == 1;
    case CN_CERTIFICATE_EMAIL:
        return X509_check_email(x509, text, about.size, flags) == 1;
    case CN_CERTIFICATE_IP:
        return X509_check_ip_asc(x509, text, flags) == 1;
    case CN_CERTIFICATE_ISSUED:
        return issued_by(x509, about);
    case CN_CERTIFICATE_PRIVATE_KEY:
    case CN_CERTIFICATE_VERIFY:
        return key_fits(x509, question == CN_CERTIFICATE_PRIVATE_KEY, about);
    }
    return false;
}

bool cn_certificate_ask(struct cn_bytes der, enum cn_certificate_question question,
                        struct cn_bytes about, unsigned flags)
{
    X509 *x509 = x509_of(der);
    bool yes = x509 && answer(x509, question, about, flags);
    ERR_clear_error();
    X509_free(x509);
    return yes;
}
