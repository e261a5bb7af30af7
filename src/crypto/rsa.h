/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/rsa.h - encryption by RSA-OAEP. Errors: crypto.h C2. Threads: any. */
#ifndef CN_CRYPTO_RSA_H
#define CN_CRYPTO_RSA_H
#include "crypto/digest.h"
#include "crypto/key.h"

/* `key` is SPKI to encrypt, PKCS #8 to decrypt. */
int cn_crypto_rsa_oaep(bool encrypt, enum cn_crypto_hash hash, struct cn_bytes key,
                       struct cn_bytes label, struct cn_bytes data, struct cn_buf *out,
                       struct cn_err *err);

#endif
