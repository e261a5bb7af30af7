/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node_x509.c - certificates of node:crypto: read once into plain values, and asked by
 * their DER from then on. The class is in prelude/node/internal/x509.js. */
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/mem.h"
#include "border/node_x509.h"
#include "js/native.h"

#define INPUT_MAX (1u << 20)

/* The text that was written to `bio`, which is freed; undefined if there is none. */
static JSValueRef bio_text(JSContextRef ctx, BIO *bio, bool written)
{
    char *text;
    long size = BIO_get_mem_data(bio, &text);
    JSValueRef value =
        written && size > 0 ? cn_js_text(ctx, text, (size_t)size) : JSValueMakeUndefined(ctx);
    BIO_free(bio);
    ERR_clear_error();
    return value;
}

static JSValueRef name_text(JSContextRef ctx, const X509_NAME *name)
{
    BIO *bio = BIO_new(BIO_s_mem());
    int written =
        X509_NAME_print_ex(bio, name, 0,
                           ASN1_STRFLGS_ESC_2253 | ASN1_STRFLGS_ESC_CTRL |
                               ASN1_STRFLGS_UTF8_CONVERT | XN_FLAG_SEP_MULTILINE | XN_FLAG_FN_SN);
    return bio_text(ctx, bio, written >= 0);
}

static JSValueRef time_text(JSContextRef ctx, const ASN1_TIME *time)
{
    BIO *bio = BIO_new(BIO_s_mem());
    return bio_text(ctx, bio, ASN1_TIME_print(bio, time) == 1);
}

static JSValueRef extension_text(JSContextRef ctx, const X509 *certificate, int nid)
{
    int index = X509_get_ext_by_NID(certificate, nid, -1);
    if (index < 0)
        return JSValueMakeUndefined(ctx);
    BIO *bio = BIO_new(BIO_s_mem());
    return bio_text(ctx, bio, X509V3_EXT_print(bio, X509_get_ext(certificate, index), 0, 0) == 1);
}

static JSValueRef serial_text(JSContextRef ctx, const X509 *certificate)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
    char *hex = number ? BN_bn2hex(number) : NULL;
    JSValueRef value = hex ? cn_js_text_z(ctx, hex) : JSValueMakeUndefined(ctx);
    OPENSSL_free(hex);
    BN_free(number);
    return value;
}

/* The purposes of the extension "extended key usage", as numbers with dots; undefined: none. */
static JSValueRef usage_list(JSContextRef ctx, X509 *certificate, JSValueRef *exception)
{
    EXTENDED_KEY_USAGE *usages = X509_get_ext_d2i(certificate, NID_ext_key_usage, NULL, NULL);
    if (!usages)
        return JSValueMakeUndefined(ctx);
    JSValueRef items[64];
    size_t count = 0;
    for (int i = 0; i < sk_ASN1_OBJECT_num(usages) && count < 64; i++) {
        char text[128];
        if (OBJ_obj2txt(text, sizeof(text), sk_ASN1_OBJECT_value(usages, i), 1) > 0)
            items[count++] = cn_js_text_z(ctx, text);
    }
    sk_ASN1_OBJECT_pop_free(usages, ASN1_OBJECT_free);
    return JSObjectMakeArray(ctx, count, items, exception);
}

static JSValueRef der_value(JSContextRef ctx, uint8_t *der, int size)
{
    JSValueRef value = size > 0 ? cn_js_uint8array(ctx, der, (size_t)size) : JSValueMakeNull(ctx);
    OPENSSL_free(der);
    return value;
}

/* nodeX509Read(PEM or DER) -> [DER, subject, issuer, subjectAltName, infoAccess, validFrom,
 * validTo, serialNumber, ca, extended key usage, public key as DER], or null */
static JSValueRef native_node_x509_read(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeX509Read: not a buffer");
    if (size == 0 || size > INPUT_MAX)
        return JSValueMakeNull(ctx);
    BIO *bio = BIO_new_mem_buf(bytes, (int)size);
    X509 *certificate = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);
    BIO_free(bio);
    const unsigned char *at = bytes;
    if (!certificate)
        certificate = d2i_X509(NULL, &at, (long)size);
    ERR_clear_error();
    if (!certificate)
        return JSValueMakeNull(ctx);
    uint8_t *der = NULL, *key = NULL;
    int der_size = i2d_X509(certificate, &der);
    int key_size = i2d_PUBKEY(X509_get0_pubkey(certificate), &key);
    JSValueRef items[] = {
        der_value(ctx, der, der_size),
        name_text(ctx, X509_get_subject_name(certificate)),
        name_text(ctx, X509_get_issuer_name(certificate)),
        extension_text(ctx, certificate, NID_subject_alt_name),
        extension_text(ctx, certificate, NID_info_access),
        time_text(ctx, X509_get0_notBefore(certificate)),
        time_text(ctx, X509_get0_notAfter(certificate)),
        serial_text(ctx, certificate),
        JSValueMakeBoolean(ctx, X509_check_ca(certificate) == 1),
        usage_list(ctx, certificate, exception),
        der_value(ctx, key, key_size),
    };
    ERR_clear_error();
    X509_free(certificate);
    return JSObjectMakeArray(ctx, sizeof(items) / sizeof(items[0]), items, exception);
}

static X509 *certificate_arg(JSContextRef ctx, JSValueRef value)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, value, &bytes, &size) || size == 0)
        return NULL;
    const unsigned char *at = bytes;
    return d2i_X509(NULL, &at, (long)size);
}

enum question { ASK_HOST, ASK_EMAIL, ASK_IP, ASK_ISSUED, ASK_PRIVATE_KEY, ASK_VERIFY };

/* Answers about a host, an address or an IP: true or false. */
static bool matches(X509 *certificate, enum question question, const char *text, size_t length,
                    unsigned flags)
{
    if (question == ASK_HOST)
        return X509_check_host(certificate, text, length, flags, NULL) == 1;
    if (question == ASK_EMAIL)
        return X509_check_email(certificate, text, length, flags) == 1;
    return X509_check_ip_asc(certificate, text, flags) == 1;
}

/* Answers about another certificate or a key, given as DER. */
static bool fits(X509 *certificate, enum question question, JSContextRef ctx, JSValueRef other)
{
    if (question == ASK_ISSUED) {
        X509 *issuer = certificate_arg(ctx, other);
        bool issued = issuer && X509_check_issued(issuer, certificate) == X509_V_OK;
        X509_free(issuer);
        return issued;
    }
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, other, &bytes, &size))
        return false;
    const unsigned char *at = bytes;
    EVP_PKEY *key = question == ASK_PRIVATE_KEY ? d2i_AutoPrivateKey(NULL, &at, (long)size)
                                                : d2i_PUBKEY(NULL, &at, (long)size);
    bool good = key && (question == ASK_PRIVATE_KEY ? X509_check_private_key(certificate, key)
                                                    : X509_verify(certificate, key)) == 1;
    EVP_PKEY_free(key);
    return good;
}

/* nodeX509Ask(DER, question, text or DER, flags) -> boolean */
static JSValueRef native_node_x509_ask(CN_JS_NATIVE_ARGS)
{
    X509 *certificate = certificate_arg(ctx, cn_js_arg(0));
    enum question question = (enum question)cn_js_to_uint32(ctx, cn_js_arg(1));
    bool answer = false;
    if (certificate && question <= ASK_IP) {
        size_t length;
        char *text = cn_js_to_text(ctx, cn_js_arg(2), &length);
        answer = matches(certificate, question, text, length, cn_js_to_uint32(ctx, cn_js_arg(3)));
        cn_free(text);
    } else if (certificate) {
        answer = fits(certificate, question, ctx, cn_js_arg(2));
    }
    ERR_clear_error();
    X509_free(certificate);
    return JSValueMakeBoolean(ctx, answer);
}
