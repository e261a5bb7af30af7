/* SPDX-License-Identifier: Apache-2.0 */
#include "object/id.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/rand.h"
#include "object/moved.h"
#include "text/hex.h"

enum { KIND_NAME = 0, KIND_UNIQUE = 1 };
#define JURISDICTION_SHIFT 4

void cn_id_keys_init(struct cn_id_keys *keys, const uint8_t secret[CN_SIPHASH_KEY_SIZE],
                     uint32_t namespace_id)
{
    uint8_t input[5];
    memcpy(input, &namespace_id, 4);
    input[4] = 'n';
    cn_siphash(secret, input, sizeof(input), keys->name);
    input[4] = 'p';
    cn_siphash(secret, input, sizeof(input), keys->proof);
    keys->moved = NULL;
}

static void prove(const struct cn_id_keys *keys, uint8_t id[CN_OBJECT_ID_SIZE])
{
    cn_siphash(keys->proof, id, CN_OBJECT_ID_SIZE / 2, id + CN_OBJECT_ID_SIZE / 2);
}

/* The jurisdiction is hashed too: a sub-namespace has its own objects. */
static void hash_name(const struct cn_id_keys *keys, enum cn_jurisdiction jurisdiction,
                      const char *name, size_t size, uint8_t hash[CN_SIPHASH_SIZE])
{
    uint8_t small[256];
    uint8_t *input = size < sizeof(small) ? small : cn_alloc(size + 1);
    input[0] = (uint8_t)jurisdiction;
    memcpy(input + 1, name, size);
    cn_siphash(keys->name, input, size + 1, hash);
    if (input != small)
        cn_free(input);
}

void cn_id_name_hash(const struct cn_id_keys *keys, const char *name, size_t size,
                     uint8_t hash[CN_SIPHASH_SIZE])
{
    hash_name(keys, CN_JURISDICTION_NONE, name, size, hash);
}

void cn_id_from_name(const struct cn_id_keys *keys, enum cn_jurisdiction jurisdiction,
                     const char *name, size_t size, uint8_t id[CN_OBJECT_ID_SIZE])
{
    hash_name(keys, jurisdiction, name, size, id);
    if (keys->moved && jurisdiction == CN_JURISDICTION_NONE) {
        uint8_t hash[CN_SIPHASH_SIZE];
        memcpy(hash, id, sizeof(hash));
        if (cn_moved_named(keys->moved, hash, name, size, id)) /* V1 */
            return;
    }
    id[0] = (uint8_t)(KIND_NAME | jurisdiction << JURISDICTION_SHIFT);
    prove(keys, id);
}

void cn_id_unique(const struct cn_id_keys *keys, enum cn_jurisdiction jurisdiction,
                  uint8_t id[CN_OBJECT_ID_SIZE])
{
    cn_rand_secure(id, CN_OBJECT_ID_SIZE / 2);
    id[0] = (uint8_t)(KIND_UNIQUE | jurisdiction << JURISDICTION_SHIFT);
    prove(keys, id);
}

/* Whether it was made here. */
static bool is_own(const struct cn_id_keys *keys, const uint8_t id[CN_OBJECT_ID_SIZE])
{
    if ((id[0] & 15) > KIND_UNIQUE || id[0] >> JURISDICTION_SHIFT >= CN_JURISDICTION_COUNT)
        return false;
    uint8_t proven[CN_OBJECT_ID_SIZE];
    memcpy(proven, id, CN_OBJECT_ID_SIZE / 2);
    prove(keys, proven);
    /* In constant time: a forger must not learn how many bytes were right. */
    uint8_t difference = 0;
    for (size_t i = 0; i < CN_OBJECT_ID_SIZE; i++)
        difference |= proven[i] ^ id[i];
    return difference == 0;
}

bool cn_id_valid(const struct cn_id_keys *keys, const uint8_t id[CN_OBJECT_ID_SIZE])
{
    return is_own(keys, id) || (keys->moved && cn_moved_valid(keys->moved, id));
}

enum cn_jurisdiction cn_id_jurisdiction(const struct cn_id_keys *keys,
                                        const uint8_t id[CN_OBJECT_ID_SIZE])
{
    if (keys->moved && !is_own(keys, id))
        return CN_JURISDICTION_NONE; /* V2 */
    return (enum cn_jurisdiction)(id[0] >> JURISDICTION_SHIFT);
}

void cn_id_to_hex(const uint8_t id[CN_OBJECT_ID_SIZE], char hex[CN_OBJECT_HEX_SIZE + 1])
{
    cn_hex_encode(id, CN_OBJECT_ID_SIZE, hex);
}

bool cn_id_from_hex(const char *hex, size_t size, uint8_t id[CN_OBJECT_ID_SIZE])
{
    uint8_t out[CN_OBJECT_ID_SIZE];
    if (size != CN_OBJECT_HEX_SIZE || !cn_hex_decode(hex, CN_OBJECT_ID_SIZE, out))
        return false;
    memcpy(id, out, sizeof(out));
    return true;
}
