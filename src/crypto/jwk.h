/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/jwk.h - keys as the numbers of a JSON Web Key (RFC 7518), big-endian. The JSON around them
 * is the prelude's. Errors: crypto.h C2. Threads: any. */
#ifndef CN_CRYPTO_JWK_H
#define CN_CRYPTO_JWK_H
#include "crypto/key.h"

/* RSA: n e d p q dp dq qi. EC: x y d. OKP: x d. A public key has only the first two (OKP: one); the
 * others are empty. */
#define CN_CRYPTO_PART_COUNT 8
struct cn_crypto_parts {
    struct cn_bytes part[CN_CRYPTO_PART_COUNT];
};
/* Appends PKCS #8 if the private parts are there, else SPKI. */
int cn_crypto_import_parts(enum cn_crypto_kind kind, const struct cn_crypto_parts *parts,
                           bool is_private, struct cn_buf *der, struct cn_err *err);
/* Appends every part as four bytes of size, big-endian, and its bytes. EC and OKP numbers
 * have their full width. */
int cn_crypto_export_parts(enum cn_crypto_kind kind, bool is_private, struct cn_bytes der,
                           struct cn_buf *out, struct cn_err *err);

#endif
