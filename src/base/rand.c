/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"

#include <errno.h>
#include <sys/random.h>

#include "base/assert.h"

void cn_rand_secure(void *bytes, size_t size)
{
    uint8_t *at = bytes;
    while (size) {
        ssize_t got = getrandom(at, size, 0);
        if (got < 0) {
            CN_ASSERT(errno == EINTR);
            continue;
        }
        at += got;
        size -= (size_t)got;
    }
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void cn_rand_init(struct cn_rand *rand, uint64_t seed)
{
    /* splitmix64 spreads a small seed over the whole state. */
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15u;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        rand->state[i] = z ^ (z >> 31);
    }
}

uint64_t cn_rand_next(struct cn_rand *rand)
{
    uint64_t *s = rand->state;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t cn_rand_below(struct cn_rand *rand, uint64_t bound)
{
    CN_ASSERT(bound > 0);
    uint64_t threshold = -bound % bound;
    for (;;) {
        uint64_t value = cn_rand_next(rand);
        if (value >= threshold)
            return value % bound;
    }
}
