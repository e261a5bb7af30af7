/* SPDX-License-Identifier: Apache-2.0 */
/* base/rand.h - randomness: from the kernel for secrets, seeded for everything
 * that a test must be able to repeat. */
#ifndef CN_BASE_RAND_H
#define CN_BASE_RAND_H
#include <stddef.h>
#include <stdint.h>

/* Cryptographically strong bytes from the kernel; aborts if it has none. */
void cn_rand_secure(void *bytes, size_t size);

/* A small fast generator (xoshiro256**), not for secrets. */
struct cn_rand {
    uint64_t state[4];
};
void cn_rand_init(struct cn_rand *rand, uint64_t seed);
uint64_t cn_rand_next(struct cn_rand *rand);
/* Uniform in [0, bound); bound > 0. */
uint64_t cn_rand_below(struct cn_rand *rand, uint64_t bound);

#endif
