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

#endif
