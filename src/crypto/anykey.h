/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/anykey.h - asymmetric keys of whatever kind OpenSSL knows: read and written in every usual
 * form, generated, and used for signatures, RSA and agreement.
 *
 * A key is kept as DER (PKCS #8 or SubjectPublicKeyInfo, crypto.h C1); each operation decodes it. A
 * failure has OpenSSL's newest reason as its whole text, or a sentence of ours.
 *
 * Threads: any. */
#ifndef CN_CRYPTO_ANYKEY_H
#define CN_CRYPTO_ANYKEY_H
#include "crypto/crypto.h"

#define CN_ANYKEY_INPUT_MAX (1u << 20) /* bytes of an encoded key */
#define CN_ANYKEY_RSA_BITS_MAX 16384
#define CN_ANYKEY_SPKAC_MAX (64 * 1024)

/* What is told of a key; `der` is the caller's to release. */
struct cn_anykey {
    struct cn_buf der;
    char type[64];  /* as OpenSSL names it */
    char curve[64]; /* or "" */
    unsigned bits;
};

/* From PEM or DER of any structure. */
int cn_anykey_read(struct cn_bytes encoded, bool is_private, struct cn_bytes passphrase,
                   struct cn_anykey *key, struct cn_err *err);
/* The public key of a private one. */
int cn_anykey_public(struct cn_bytes private_der, struct cn_anykey *key, struct cn_err *err);

struct cn_anykey_form {
    const char *format;    /* "PEM" or "DER" */
    const char *structure; /* as OpenSSL names it: "PrivateKeyInfo", "pkcs1", ... */
    const char *cipher;    /* the key is encrypted; NULL: it is not */
    struct cn_bytes passphrase;
};
int cn_anykey_write(struct cn_bytes der, bool is_private, const struct cn_anykey_form *form,
                    struct cn_buf *out, struct cn_err *err);

struct cn_anykey_recipe {
    const char *type;            /* as OpenSSL names it */
    const char *curve;           /* of EC keys, else "" */
    unsigned bits, exponent;     /* of RSA keys, else 0 */
    const atomic_bool *given_up; /* C4 */
};
int cn_anykey_generate(const struct cn_anykey_recipe *recipe, struct cn_anykey *key,
                       struct cn_err *err);

struct cn_anykey_way {
    const char *hash;    /* NULL: the key's own */
    int padding;         /* RSA: OpenSSL's number; 0: its default */
    int salt;            /* PSS: the length, or one of OpenSSL's numbers below zero */
    struct cn_bytes der; /* private to sign, public to verify */
};
int cn_anykey_sign(const struct cn_anykey_way *way, struct cn_bytes data, struct cn_buf *out,
                   struct cn_err *err);
/* 1: it fits; 0: it does not; negative: the key is unusable. */
int cn_anykey_verify(const struct cn_anykey_way *way, struct cn_bytes data,
                     struct cn_bytes signature, struct cn_err *err);

struct cn_anykey_rsa {
    bool encrypts, is_private; /* with the private key one encrypts by signing */
    struct cn_bytes der;
    int padding;
    const char *hash; /* of OAEP */
};
int cn_anykey_rsa(const struct cn_anykey_rsa *way, struct cn_bytes data, struct cn_buf *out,
                  struct cn_err *err);

/* The secret that two keys share. */
int cn_anykey_agree(struct cn_bytes private_der, struct cn_bytes public_der, struct cn_buf *out,
                    struct cn_err *err);

/* A signed public key with a challenge, as browsers once made them (SPKAC): whether its signature
 * is right; its key as PEM; its challenge. */
bool cn_anykey_spkac_verify(struct cn_bytes text);
int cn_anykey_spkac_key(struct cn_bytes text, struct cn_buf *out, struct cn_err *err);
int cn_anykey_spkac_challenge(struct cn_bytes text, struct cn_buf *out, struct cn_err *err);

#endif
