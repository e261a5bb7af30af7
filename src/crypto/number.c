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

/* C4 */
static bool goes_on(const atomic_bool *given_up)
{
    return !given_up || !atomic_load_explicit(given_up, memory_order_relaxed);
}

static int on_candidate(int event, int count, BN_GENCB *watch)
{
    (void)event, (void)count;
    return goes_on(BN_GENCB_get_arg(watch));
}

static BN_GENCB *watch_new(const atomic_bool *given_up)
{
    BN_GENCB *watch = BN_GENCB_new();
    CN_ASSERT(watch);
    BN_GENCB_set(watch, on_candidate, (void *)given_up);
    return watch;
}

struct search {
    const struct cn_number_wish *wish;
    BIGNUM *add, *rem, *found, *part;
    BN_CTX *bn_ctx;
    BN_GENCB *watch;
};

/* The next random number of the size that leaves `rem`. */
static bool candidate(const struct search *s)
{
    int bits = (int)s->wish->bits;
    return BN_priv_rand(s->found, bits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD) == 1 &&
           BN_mod(s->part, s->found, s->add, s->bn_ctx) == 1 &&
           BN_sub(s->found, s->found, s->part) == 1 &&
           (s->rem ? BN_add(s->found, s->found, s->rem)
                   : BN_add_word(s->found, s->wish->safe ? 3 : 1)) == 1 &&
           (BN_num_bits(s->found) >= bits || BN_add(s->found, s->found, s->add) == 1);
}

static bool is_wanted(const struct search *s)
{
    if (BN_check_prime(s->found, s->bn_ctx, s->watch) != 1)
        return false;
    return !s->wish->safe || (BN_rshift1(s->part, s->found) == 1 &&
                              BN_check_prime(s->part, s->bn_ctx, s->watch) == 1);
}

/* With a remainder. The library's own search looks at nothing while all it meets has small factors,
 * which for some remainders is for ever. */
static bool search_rest(const struct search *s)
{
    while (goes_on(s->wish->given_up) && candidate(s)) {
        if (is_wanted(s))
            return true;
    }
    return false;
}

int cn_number_prime(const struct cn_number_wish *wish, struct cn_buf *out, struct cn_err *err)
{
    if (wish->bits < 1 || wish->bits > CN_NUMBER_BITS_MAX)
        return cn_err_set(err, CN_EINVALID, "a prime cannot have %u bits here", wish->bits);
    struct search s = {.wish = wish,
                       .add = wish->add ? number_of(*wish->add) : NULL,
                       .rem = wish->rem ? number_of(*wish->rem) : NULL,
                       .found = BN_new(),
                       .part = BN_new(),
                       .bn_ctx = BN_CTX_new(),
                       .watch = watch_new(wish->given_up)};
    CN_ASSERT(s.found && s.part && s.bn_ctx);
    bool good = s.add && wish->bits > 1
                    ? search_rest(&s)
                    : BN_generate_prime_ex2(s.found, (int)wish->bits, wish->safe, s.add, s.rem,
                                            s.watch, s.bn_ctx) == 1;
    if (good)
        number_append(s.found, 0, out);
    BN_GENCB_free(s.watch);
    BN_CTX_free(s.bn_ctx);
    BN_free(s.add);
    BN_free(s.rem);
    BN_clear_free(s.found);
    BN_clear_free(s.part);
    if (!good)
        return cn_crypto_fail(err, CN_EPROTOCOL, "there is no such prime");
    ERR_clear_error();
    return 0;
}

int cn_number_is_prime(struct cn_bytes bytes, const atomic_bool *given_up, struct cn_err *err)
{
    BIGNUM *number = number_of(bytes);
    if (!number)
        return cn_err_set(err, CN_EINVALID, "the number is too large");
    BN_CTX *bn_ctx = BN_CTX_new();
    CN_ASSERT(bn_ctx);
    BN_GENCB *watch = watch_new(given_up);
    bool is = BN_check_prime(number, bn_ctx, watch) == 1;
    ERR_clear_error();
    BN_GENCB_free(watch);
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
