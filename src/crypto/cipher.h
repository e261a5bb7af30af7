/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/cipher.h - AES in the modes of Web Crypto. Errors: crypto.h C2. Threads: any. */
#ifndef CN_CRYPTO_CIPHER_H
#define CN_CRYPTO_CIPHER_H
#include "crypto/crypto.h"

/* Shared with the prelude: bindings/border.ts. */
enum cn_crypto_cipher { CN_CIPHER_CBC = 1, CN_CIPHER_CTR, CN_CIPHER_GCM, CN_CIPHER_KW };

/* What a cipher takes besides key and data. */
struct cn_crypto_cipher_params {
    struct cn_bytes iv;    /* CBC 16, CTR 16 (the counter block), GCM any but 0, KW none */
    struct cn_bytes aad;   /* GCM */
    unsigned tag_bits;     /* GCM */
    unsigned counter_bits; /* CTR: 1 to 128 */
};
int cn_crypto_cipher(enum cn_crypto_cipher cipher, bool encrypt, struct cn_bytes key,
                     const struct cn_crypto_cipher_params *params, struct cn_bytes data,
                     struct cn_buf *out, struct cn_err *err);

/* Copies `data` to where cn_crypto_cipher() will write its result, so that it works in place: pass
 * both on to it. False if there is no memory. */
bool cn_crypto_in_place(struct cn_bytes *data, struct cn_buf *out);

#endif
