/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/key.h - the asymmetric keys of Web Crypto: made, read and written as PKCS #8, SPKI and raw
 * bytes. Errors: crypto.h C2.
 *
 * K1  A form that was written here is read again as the same key, and a key has one form: what is
 *     imported is written anew.
 * K2  A key of another kind, a point that is not on its curve, a public key that is not the private
 *     one's, and bytes after the key's end are refused.
 *
 * Threads: any; each keeps the keys it has read lately. */
#ifndef CN_CRYPTO_KEY_H
#define CN_CRYPTO_KEY_H
#include <openssl/types.h>

#include "crypto/crypto.h"

/* Shared with the prelude: bindings/border.ts. */
enum cn_crypto_kind {
    CN_KEY_RSA = 1,
    CN_KEY_P256,
    CN_KEY_P384,
    CN_KEY_P521,
    CN_KEY_ED25519,
    CN_KEY_X25519,
};

#define CN_CRYPTO_RSA_BITS_MIN 512 /* to import; generating needs 1024 */
#define CN_CRYPTO_RSA_BITS_MAX 16384

/* Whether a number from a script is an enum cn_crypto_kind: nothing below asks again. */
bool cn_crypto_kind_known(uint32_t kind);

/* `exponent` (big-endian) and `bits` are RSA's; `given_up`: C4. */
int cn_crypto_generate(enum cn_crypto_kind kind, unsigned bits, struct cn_bytes exponent,
                       const atomic_bool *given_up, struct cn_buf *pkcs8, struct cn_buf *spki,
                       struct cn_err *err);
/* Checks that DER is a whole key of this kind, and writes it in its one canonical form. */
int cn_crypto_import_pkcs8(enum cn_crypto_kind kind, struct cn_bytes der, struct cn_buf *pkcs8,
                           struct cn_err *err);
int cn_crypto_import_spki(enum cn_crypto_kind kind, struct cn_bytes der, struct cn_buf *spki,
                          struct cn_err *err);
/* A public key from its raw form: a point (compressed or not), or 32 bytes. */
int cn_crypto_import_raw(enum cn_crypto_kind kind, struct cn_bytes raw, struct cn_buf *spki,
                         struct cn_err *err);
int cn_crypto_export_raw(enum cn_crypto_kind kind, struct cn_bytes spki, struct cn_buf *raw,
                         struct cn_err *err);

/* ---- for the files of this room ---- */

struct cn_crypto_kind_info {
    const char *name;  /* for messages */
    const char *group; /* OpenSSL's name of the curve; NULL: not one */
    int base_id;
    size_t width; /* bytes of a coordinate, or of an OKP key */
};
const struct cn_crypto_kind_info *cn_crypto_kind_info(enum cn_crypto_kind kind);
bool cn_crypto_is_curve(enum cn_crypto_kind kind);

/* The caller frees the key with EVP_PKEY_free() and does not change it: it may be shared.
 * NULL on failure. */
EVP_PKEY *cn_crypto_key(enum cn_crypto_kind kind, bool is_private, struct cn_bytes der,
                        struct cn_err *err);
/* Checks (K2) and writes. */
int cn_crypto_key_write(EVP_PKEY *key, enum cn_crypto_kind kind, bool is_private,
                        struct cn_buf *out, struct cn_err *err);
EVP_PKEY *cn_crypto_key_from_params(const char *type, int selection, OSSL_PARAM_BLD *build);
EVP_PKEY *cn_crypto_curve_key(enum cn_crypto_kind kind, struct cn_bytes point,
                              struct cn_bytes secret);
/* Of big-endian bytes; NULL if they are empty or absurdly many. */
BIGNUM *cn_crypto_number(struct cn_bytes bytes);

#endif
