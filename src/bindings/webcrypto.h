/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/webcrypto.h - the operations of Web Crypto on plain bytes, by OpenSSL.
 *
 * Nothing here knows JavaScript: prelude/web/crypto/ does the specification
 * (names, usages, errors), bindings/webcrypto.c carries bytes between the two.
 *
 * A key is its bytes: raw for secrets, DER for the others (PKCS #8 for private,
 * SubjectPublicKeyInfo for public keys). So a key has no native state, can be
 * cloned and stored like any value, and may be used by any thread.
 *
 * Every function returns 0, or negative with a sentence: CN_EINVALID for keys and
 * parameters that make no sense (DataError above), CN_EUNSUPPORTED for what OpenSSL
 * lacks, else the operation failed. Output is appended to a zeroed or reused buffer
 * and means nothing after a failure.
 *
 * Threads: any. */
#ifndef CN_BINDINGS_WEBCRYPTO_H
#define CN_BINDINGS_WEBCRYPTO_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct cn_bytes {
    const uint8_t *data;
    size_t size;
};

/* The numbers of all enums are shared with prelude/web/crypto/native-ids.js. */
enum cn_crypto_hash {
    CN_HASH_NONE,
    CN_HASH_SHA1,
    CN_HASH_SHA256,
    CN_HASH_SHA384,
    CN_HASH_SHA512,
    CN_HASH_MD5
};

enum cn_crypto_kind {
    CN_KEY_RSA = 1,
    CN_KEY_P256,
    CN_KEY_P384,
    CN_KEY_P521,
    CN_KEY_ED25519,
    CN_KEY_X25519,
};

enum cn_crypto_scheme { CN_SIGN_RSA_PKCS1 = 1, CN_SIGN_RSA_PSS, CN_SIGN_ECDSA, CN_SIGN_ED25519 };

enum cn_crypto_cipher { CN_CIPHER_CBC = 1, CN_CIPHER_CTR, CN_CIPHER_GCM, CN_CIPHER_KW };

#define CN_CRYPTO_RSA_BITS_MIN 512 /* to import; generating needs 1024 */
#define CN_CRYPTO_RSA_BITS_MAX 16384
/* What takes longer than a second or so: js/work.h W1. */
#define CN_CRYPTO_RSA_FAST_BITS 4096
#define CN_CRYPTO_PRIME_FAST_BITS 2048
#define CN_CRYPTO_PBKDF2_FAST_ROUNDS 1000000

/* ---- webcrypto_symmetric.c ---- */

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

int cn_crypto_hkdf(enum cn_crypto_hash hash, struct cn_bytes key, struct cn_bytes salt,
                   struct cn_bytes info, size_t size, struct cn_buf *out, struct cn_err *err);
int cn_crypto_pbkdf2(enum cn_crypto_hash hash, struct cn_bytes password, struct cn_bytes salt,
                     uint32_t iterations, size_t size, struct cn_buf *out, struct cn_err *err);

/* ---- webcrypto_asymmetric.c ---- */

/* ECDSA signatures are r and s side by side (IEEE P1363). `salt_size` is PSS's. */
int cn_crypto_sign(enum cn_crypto_scheme scheme, enum cn_crypto_kind kind, enum cn_crypto_hash hash,
                   size_t salt_size, struct cn_bytes pkcs8, struct cn_bytes data,
                   struct cn_buf *out, struct cn_err *err);
/* 1: it fits; 0: it does not; negative: the key is unusable. */
int cn_crypto_verify(enum cn_crypto_scheme scheme, enum cn_crypto_kind kind,
                     enum cn_crypto_hash hash, size_t salt_size, struct cn_bytes spki,
                     struct cn_bytes data, struct cn_bytes signature, struct cn_err *err);
/* `key` is SPKI to encrypt, PKCS #8 to decrypt. */
int cn_crypto_rsa_oaep(bool encrypt, enum cn_crypto_hash hash, struct cn_bytes key,
                       struct cn_bytes label, struct cn_bytes data, struct cn_buf *out,
                       struct cn_err *err);
/* ECDH and X25519: the shared secret. */
int cn_crypto_agree(enum cn_crypto_kind kind, struct cn_bytes pkcs8, struct cn_bytes spki,
                    struct cn_buf *out, struct cn_err *err);

/* ---- webcrypto_keys.c ---- */

/* Whether a number from a script is an enum cn_crypto_kind: nothing below asks again. */
bool cn_crypto_kind_known(uint32_t kind);

/* `exponent` (big-endian) and `bits` are RSA's. */
int cn_crypto_generate(enum cn_crypto_kind kind, unsigned bits, struct cn_bytes exponent,
                       struct cn_buf *pkcs8, struct cn_buf *spki, struct cn_err *err);
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

/* The numbers of a JWK, big-endian. RSA: n e d p q dp dq qi. EC: x y d. OKP: x d. A public key
 * has only the first two (OKP: one); the others are empty. */
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

/* ---- shared by those files ---- */

typedef struct evp_pkey_st EVP_PKEY;
typedef struct evp_md_st EVP_MD;
const EVP_MD *cn_crypto_md(enum cn_crypto_hash hash); /* NULL: not a hash */
/* The caller frees the key with EVP_PKEY_free() and does not change it: it may be shared.
 * NULL on failure. */
EVP_PKEY *cn_crypto_key(enum cn_crypto_kind kind, bool is_private, struct cn_bytes der,
                        struct cn_err *err);
/* "what: OpenSSL's newest reason"; empties its queue. Returns `code`. */
int cn_crypto_fail(struct cn_err *err, int code, const char *what);

#endif
