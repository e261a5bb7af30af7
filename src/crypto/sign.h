/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/sign.h - signatures of Web Crypto. Errors: crypto.h C2. Threads: any. */
#ifndef CN_CRYPTO_SIGN_H
#define CN_CRYPTO_SIGN_H
#include "crypto/digest.h"
#include "crypto/key.h"

/* Shared with the prelude: bindings/border.ts. */
enum cn_crypto_scheme { CN_SIGN_RSA_PKCS1 = 1, CN_SIGN_RSA_PSS, CN_SIGN_ECDSA, CN_SIGN_ED25519 };

/* How something is signed. ECDSA signatures are r and s side by side (IEEE P1363). */
struct cn_crypto_way {
    enum cn_crypto_scheme scheme;
    enum cn_crypto_kind kind;
    enum cn_crypto_hash hash; /* not Ed25519's */
    size_t salt_size;         /* PSS's */
};

int cn_crypto_sign(const struct cn_crypto_way *way, struct cn_bytes pkcs8, struct cn_bytes data,
                   struct cn_buf *out, struct cn_err *err);
/* 1: it fits; 0: it does not; negative: the key is unusable. */
int cn_crypto_verify(const struct cn_crypto_way *way, struct cn_bytes spki, struct cn_bytes data,
                     struct cn_bytes signature, struct cn_err *err);

#endif
