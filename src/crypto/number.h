/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/number.h - large numbers for Diffie-Hellman and primes, as big-endian bytes.
 * Errors: crypto.h C2. Threads: any. */
#ifndef CN_CRYPTO_NUMBER_H
#define CN_CRYPTO_NUMBER_H
#include "crypto/crypto.h"

#define CN_NUMBER_BITS_MAX 16384

/* base ** exponent % modulus, as long as the modulus, which is odd and not 1. The exponent is a
 * secret: the time does not tell it. */
int cn_number_mod_exp(struct cn_bytes base, struct cn_bytes exponent, struct cn_bytes modulus,
                      struct cn_buf *out, struct cn_err *err);
/* The prime of that size of RFC 2409 and RFC 3526. */
int cn_number_group(unsigned bits, struct cn_buf *out, struct cn_err *err);

struct cn_number_wish {
    unsigned bits;               /* 1 to CN_NUMBER_BITS_MAX */
    bool safe;                   /* (p - 1) / 2 is prime too */
    const struct cn_bytes *add;  /* p % add is rem, or 1; NULL: any p */
    const struct cn_bytes *rem;  /* NULL: none */
    const atomic_bool *given_up; /* C4 */
};
int cn_number_prime(const struct cn_number_wish *wish, struct cn_buf *out, struct cn_err *err);
/* 1, 0 (also if it was given up: C4), or negative: it is too large. */
int cn_number_is_prime(struct cn_bytes number, const atomic_bool *given_up, struct cn_err *err);
/* How long it is without the zeros in front. */
size_t cn_number_bits(struct cn_bytes number);

#endif
