/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/certificate.h - X.509 certificates: read once into texts, and asked by their DER from then
 * on. Errors: crypto.h C2. Threads: any. */
#ifndef CN_CRYPTO_CERTIFICATE_H
#define CN_CRYPTO_CERTIFICATE_H
#include "crypto/crypto.h"

#define CN_CERTIFICATE_INPUT_MAX (1u << 20)
#define CN_CERTIFICATE_USAGE_MAX 64 /* more are left out */

struct cn_certificate {
    struct cn_buf der;
    struct cn_buf key; /* SubjectPublicKeyInfo */
    /* Texts; one that is empty is not there. */
    struct cn_buf subject, issuer, alternative_names, info_access, valid_from, valid_to, serial;
    bool is_authority;
    bool has_usages;      /* it says what it is for: */
    struct cn_buf usages; /* numbers with dots, each with a NUL behind it */
};

/* PEM or DER. */
int cn_certificate_read(struct cn_bytes encoded, struct cn_certificate *certificate,
                        struct cn_err *err);
void cn_certificate_fini(struct cn_certificate *certificate);

/* Shared with the prelude: bindings/border.ts. */
enum cn_certificate_question {
    CN_CERTIFICATE_HOST, /* about a text */
    CN_CERTIFICATE_EMAIL,
    CN_CERTIFICATE_IP,
    CN_CERTIFICATE_ISSUED, /* about DER: of the issuer's certificate */
    CN_CERTIFICATE_PRIVATE_KEY,
    CN_CERTIFICATE_VERIFY, /* of the issuer's public key */
};
/* `about` has a NUL behind it that is not counted if it is a text; `flags` are OpenSSL's
 * X509_CHECK_FLAG_. What cannot be read fits nothing. */
bool cn_certificate_ask(struct cn_bytes der, enum cn_certificate_question question,
                        struct cn_bytes about, unsigned flags);

#endif
