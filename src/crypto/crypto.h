/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/crypto.h - the room of cryptography: digests, ciphers, keys, signatures, derivation and
 * certificates on plain bytes, by OpenSSL.
 *
 * What Web Crypto does is in digest.h, cipher.h, derive.h, key.h, jwk.h, sign.h, rsa.h and agree.h;
 * what node:crypto does besides, with whatever OpenSSL knows by a name, in hashing.h, ciphering.h,
 * anykey.h, number.h, curve.h and certificate.h. Nothing here knows JavaScript: the prelude does
 * the specification (names, usages, errors), and the bindings carry bytes between the two.
 *
 * C1  A key is its bytes: raw for secrets, DER for the others (PKCS #8 for private,
 *     SubjectPublicKeyInfo for public keys). So a key has no native state, can be cloned and stored
 *     like any value, and may be used by any thread.
 * C2  A function that can fail returns 0, or negative with a sentence: CN_EINVALID for keys and
 *     parameters that make no sense (a DataError above), CN_EUNSUPPORTED for what is not known
 *     here, CN_ENOMEM, else the operation failed (an OperationError). Output is appended to a
 *     zeroed or reused buffer and means nothing after a failure.
 * C3  OpenSSL's queue of errors is empty after every function: what one operation left there is
 *     never the reason of another's failure.
 *
 * C4  What searches for primes looks at `given_up` (NULL: nobody gives it up) before every
 *     candidate, and fails once it is true.
 *
 * Threads: any. */
#ifndef CN_CRYPTO_CRYPTO_H
#define CN_CRYPTO_CRYPTO_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct cn_bytes {
    const uint8_t *data;
    size_t size;
};

/* What takes longer than a second or so, and wants a thread of its own. */
#define CN_CRYPTO_RSA_FAST_BITS 4096
#define CN_CRYPTO_PRIME_FAST_BITS 2048
#define CN_CRYPTO_PBKDF2_FAST_ROUNDS 1000000

/* Leaves no trace of secrets that were there. */
void cn_crypto_wipe(void *bytes, size_t size);

/* ---- for the files of this room ---- */

typedef struct evp_pkey_st EVP_PKEY;
typedef struct evp_md_st EVP_MD;
typedef struct evp_pkey_ctx_st EVP_PKEY_CTX;

/* "what: OpenSSL's newest reason"; empties its queue. Returns `code`. */
int cn_crypto_fail(struct cn_err *err, int code, const char *what);
/* Room for `size` more bytes in `out`, chosen by a script; NULL if there is none. */
uint8_t *cn_crypto_room(struct cn_buf *out, size_t size);
int cn_crypto_no_room(struct cn_err *err);
/* C4, of a key that is to be generated. */
void cn_crypto_keygen_watch(EVP_PKEY_CTX *ctx, const atomic_bool *given_up);

#endif
