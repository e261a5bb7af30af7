/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/derive.h - secrets made of secrets: HKDF, PBKDF2, scrypt. Errors: crypto.h C2.
 * Threads: any. */
#ifndef CN_CRYPTO_DERIVE_H
#define CN_CRYPTO_DERIVE_H
#include "crypto/digest.h"

int cn_crypto_hkdf(enum cn_crypto_hash hash, struct cn_bytes key, struct cn_bytes salt,
                   struct cn_bytes info, size_t size, struct cn_buf *out, struct cn_err *err);
int cn_crypto_pbkdf2(enum cn_crypto_hash hash, struct cn_bytes password, struct cn_bytes salt,
                     uint32_t iterations, size_t size, struct cn_buf *out, struct cn_err *err);

/* PBKDF2 over a hash of OpenSSL's name, or scrypt. */
struct cn_crypto_derivation {
    const char *hash; /* NULL: scrypt */
    struct cn_bytes password, salt;
    size_t size;                          /* of the result */
    uint64_t cost;                        /* iterations of PBKDF2, N of scrypt */
    uint64_t block_size, parallelization; /* of scrypt: r and p */
    uint64_t memory_max;                  /* of scrypt, bytes */
};
#define CN_CRYPTO_DERIVED_MAX (64u << 20) /* bytes */
/* Whether there is such a hash. */
bool cn_crypto_derive_knows(const char *hash);
int cn_crypto_derive(const struct cn_crypto_derivation *derivation, struct cn_buf *out,
                     struct cn_err *err);

#endif
