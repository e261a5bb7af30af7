/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/digest.h - the hashes of Web Crypto, and HMAC over them. Errors: crypto.h C2.
 * Threads: any. */
#ifndef CN_CRYPTO_DIGEST_H
#define CN_CRYPTO_DIGEST_H
#include "crypto/crypto.h"

/* Shared with the prelude: bindings/border.ts. */
enum cn_crypto_hash {
    CN_HASH_NONE,
    CN_HASH_SHA1,
    CN_HASH_SHA256,
    CN_HASH_SHA384,
    CN_HASH_SHA512,
    CN_HASH_MD5
};

int cn_crypto_digest(enum cn_crypto_hash hash, struct cn_bytes data, struct cn_buf *out,
                     struct cn_err *err);
/* Digest in pieces: `state` is CN_CRYPTO_STATE_SIZE bytes that may be moved and kept anywhere. */
#define CN_CRYPTO_STATE_SIZE 256
int cn_crypto_digest_start(enum cn_crypto_hash hash, uint8_t *state, struct cn_err *err);
void cn_crypto_digest_update(uint8_t *state, struct cn_bytes data);
void cn_crypto_digest_finish(uint8_t *state, struct cn_buf *out);

int cn_crypto_hmac(enum cn_crypto_hash hash, struct cn_bytes key, struct cn_bytes data,
                   struct cn_buf *out, struct cn_err *err);
/* Takes the same time wherever the difference is. */
bool cn_crypto_equal(struct cn_bytes a, struct cn_bytes b);

/* ---- for the files of this room ---- */

const EVP_MD *cn_crypto_md(enum cn_crypto_hash hash); /* NULL: not a hash */
int cn_crypto_no_hash(struct cn_err *err);

#endif
