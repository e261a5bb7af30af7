/* SPDX-License-Identifier: Apache-2.0 */
/* base/siphash.c - after the description by Aumasson and Bernstein. */
#include "base/siphash.h"

#include <string.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotl(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void rounds(struct state *s, int count)
{
    while (count--) {
        s->v0 += s->v1;
        s->v1 = rotl(s->v1, 13) ^ s->v0;
        s->v0 = rotl(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotl(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotl(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotl(s->v1, 17) ^ s->v2;
        s->v2 = rotl(s->v2, 32);
    }
}

void cn_siphash(const uint8_t key[CN_SIPHASH_KEY_SIZE], const void *bytes, size_t size,
                uint8_t out[CN_SIPHASH_SIZE])
{
    const uint8_t *at = bytes;
    uint64_t k0, k1;
    memcpy(&k0, key, 8);
    memcpy(&k1, key + 8, 8);
    struct state s = {
        k0 ^ 0x736f6d6570736575u,
        k1 ^ 0x646f72616e646f6du ^ 0xee,
        k0 ^ 0x6c7967656e657261u,
        k1 ^ 0x7465646279746573u,
    };
    size_t left = size;
    while (left >= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        s.v3 ^= word;
        rounds(&s, 2);
        s.v0 ^= word;
        at += 8;
        left -= 8;
    }
    uint64_t last = (uint64_t)size << 56;
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)at[i] << (8 * i);
    s.v3 ^= last;
    rounds(&s, 2);
    s.v0 ^= last;
    s.v2 ^= 0xee;
    rounds(&s, 4);
    uint64_t word = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    memcpy(out, &word, 8);
    s.v1 ^= 0xdd;
    rounds(&s, 4);
    word = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    memcpy(out + 8, &word, 8);
}
