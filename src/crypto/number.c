/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/number.h"

#include <openssl/bn.h>
#include <openssl/err.h>

#include "base/assert.h"

/* NULL: too large. */
static BIGNUM *number_of(struct cn_bytes bytes)
{
    return bytes.size > CN_NUMBER_BITS_MAX / 8 ? NULL
                                               : BN_bin2bn(bytes.data, (int)bytes.size, NULL);
}

/* At least `size` bytes, with zeros in front. */
static void number_append(const BIGNUM *number, int size, struct cn_buf *out)
{
    int needed = BN_num_bytes(number);
    if (size < needed)
        size = needed;
    cn_buf_reserve(out, (size_t)size + 1);
    BN_bn2binpad(number, out->data + out->size, size);
    out->size += (size_t)size;
}

int cn_number_mod_exp(struct cn_bytes base_bytes, struct cn_bytes exponent_bytes,
                      struct cn_bytes modulus_bytes, struct cn_buf *out, struct cn_err *err)
{
    BIGNUM *base = number_of(base_bytes), *exponent = number_of(exponent_bytes),
           *modulus = number_of(modulus_bytes), *result = BN_new();
    BN_CTX *bn_ctx = BN_CTX_new();
    CN_ASSERT(result && bn_ctx);
    bool good = base && exponent && modulus && BN_is_odd(modulus) && !BN_is_one(modulus);
    if (good) {
        BN_set_flags(exponent, BN_FLG_CONSTTIME);
        good = BN_mod_exp(result, base, exponent, modulus, bn_ctx) == 1;
    }
    if (good)
        number_append(result, BN_num_bytes(modulus), out);
    BN_CTX_free(bn_ctx);
    BN_free(base);
    BN_clear_free(exponent);
    BN_free(modulus);
    BN_clear_free(result);
    return good ? 0 : cn_crypto_fail(err, CN_EINVALID, "not numbers of such a group");
}

int cn_number_group(unsigned bits, struct cn_buf *out, struct cn_err *err)
{
    static const struct {
        unsigned bits;
        BIGNUM *(*prime)(BIGNUM *);
    } groups[] = {{768, BN_get_rfc2409_prime_768},   {1024, BN_get_rfc2409_prime_1024},
                  {1536, BN_get_rfc3526_prime_1536}, {2048, BN_get_rfc3526_prime_2048},
                  {3072, BN_get_rfc3526_prime_3072}, {4096, BN_get_rfc3526_prime_4096},
                  {6144, BN_get_rfc3526_prime_6144}, {8192, BN_get_rfc3526_prime_8192}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(groups); i++) {
        if (bits != groups[i].bits)
            continue;
        BIGNUM *prime = groups[i].prime(NULL);
        CN_ASSERT(prime);
        number_append(prime, 0, out);
        BN_free(prime);
        return 0;
    }
    return cn_err_set(err, CN_EUNSUPPORTED, "there is no group of %u bits", bits);
}

int cn_number_prime(const struct cn_number_wish *wish, struct cn_buf *out, struct cn_err *err)
{
    if (wish->bits < 1 || wish->bits > CN_NUMBER_BITS_MAX)
        return cn_err_set(err, CN_EINVALID, "a prime cannot have %u bits here", wish->bits);
    BIGNUM *add = wish->add ? number_of(*wish->add) : NULL;
    BIGNUM *rem = wish->rem ? number_of(*wish->rem) : NULL;
    BIGNUM *found = BN_new();
    BN_CTX *bn_ctx = BN_CTX_new();
    CN_ASSERT(found && bn_ctx);
    bool good =
        BN_generate_prime_ex2(found, (int)wish->bits, wish->safe, add, rem, NULL, bn_ctx) == 1;
    if (good)
        number_append(found, 0, out);
    BN_CTX_free(bn_ctx);
    BN_free(add);
    BN_free(rem);
    BN_clear_free(found);
    if (!good)
        return cn_crypto_fail(err, CN_EPROTOCOL, "there is no such prime");
    ERR_clear_error();
    return 0;
}

int cn_number_is_prime(struct cn_bytes bytes, struct cn_err *err)
{
    BIGNUM *number = number_of(bytes);
    if (!number)
        return cn_err_set(err, CN_EINVALID, "the number is too large");
    BN_CTX *bn_ctx = BN_CTX_new();
    CN_ASSERT(bn_ctx);
    bool is = BN_check_prime(number, bn_ctx, NULL) == 1;
    ERR_clear_error();
    BN_CTX_free(bn_ctx);
    BN_free(number);
    return is;
}

size_t cn_number_bits(struct cn_bytes number)
{
    size_t zeros = 0;
    while (zeros < number.size && number.data[zeros] == 0)
        zeros++;
    if (zeros == number.size)
        return 0;
    size_t bits = 8 * (number.size - zeros);
    for (unsigned top = number.data[zeros]; !(top & 0x80); top <<= 1)
        bits--;
    return bits;
}
