/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/rand.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t cn_hash_bytes(uint64_t seed, const void *bytes, size_t size)
{
    const uint8_t *p = bytes;
    const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xe7037ed1a0b428dbu;
    uint64_t h = seed ^ mix(size ^ k0, k1);
    while (size >= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = mix(h ^ word, k0 ^ k1);
        p += 8;
        size -= 8;
    }
    uint64_t tail = 0;
    if (size)
        memcpy(&tail, p, size);
    return mix(h ^ tail ^ k1, k0 + size);
}

void cn_map_init(struct cn_map *map)
{
    *map = (struct cn_map){0};
}

void cn_map_fini(struct cn_map *map)
{
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].hash)
            cn_free(map->slots[i].key);
    }
    cn_free(map->slots);
    *map = (struct cn_map){0};
}

static uint32_t slot_hash(const struct cn_map *map, const void *key, size_t key_size)
{
    uint32_t hash = (uint32_t)(cn_hash_bytes(map->seed, key, key_size) >> 32);
    return hash ? hash : 1;
}

/* The slot that holds the key, or the free slot where it would go. */
static struct cn_map_entry *slot_for(const struct cn_map *map, uint32_t hash, const void *key,
                                     size_t key_size)
{
    size_t mask = map->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct cn_map_entry *slot = &map->slots[i];
        if (!slot->hash)
            return slot;
        if (slot->hash == hash && slot->key_size == key_size &&
            memcmp(slot->key, key, key_size) == 0)
            return slot;
    }
}

static void grow(struct cn_map *map)
{
    struct cn_map old = *map;
    if (!old.capacity) /* most tables stay empty: the kernel is asked with the first entry */
        cn_rand_secure(&map->seed, sizeof(map->seed));
    map->capacity = old.capacity ? old.capacity * 2 : 8;
    map->slots = cn_alloc_zero(map->capacity * sizeof(*map->slots));
    for (size_t i = 0; i < old.capacity; i++) {
        struct cn_map_entry *entry = &old.slots[i];
        if (entry->hash)
            *slot_for(map, entry->hash, entry->key, entry->key_size) = *entry;
    }
    cn_free(old.slots);
}

void *cn_map_find(const struct cn_map *map, const void *key, size_t key_size)
{
    if (!map->count)
        return NULL;
    struct cn_map_entry *slot = slot_for(map, slot_hash(map, key, key_size), key, key_size);
    return slot->hash ? slot->value : NULL;
}

void *cn_map_set(struct cn_map *map, const void *key, size_t key_size, void *value)
{
    CN_ASSERT(value && key_size < UINT32_MAX);
    if ((map->count + 1) * 4 > map->capacity * 3)
        grow(map);
    uint32_t hash = slot_hash(map, key, key_size);
    struct cn_map_entry *slot = slot_for(map, hash, key, key_size);
    if (slot->hash) {
        void *before = slot->value;
        slot->value = value;
        return before;
    }
    *slot = (struct cn_map_entry){hash, (uint32_t)key_size, cn_strndup(key, key_size), value};
    map->count++;
    return NULL;
}

void *cn_map_take(struct cn_map *map, const void *key, size_t key_size)
{
    if (!map->count)
        return NULL;
    struct cn_map_entry *slot = slot_for(map, slot_hash(map, key, key_size), key, key_size);
    if (!slot->hash)
        return NULL;
    void *value = slot->value;
    cn_free(slot->key);
    map->count--;
    /* Close the gap: move back every later entry of the run that may come here. */
    size_t mask = map->capacity - 1;
    size_t hole = (size_t)(slot - map->slots);
    for (size_t i = (hole + 1) & mask; map->slots[i].hash; i = (i + 1) & mask) {
        size_t home = map->slots[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole] = (struct cn_map_entry){0};
    return value;
}

bool cn_map_next(const struct cn_map *map, size_t *cursor, const struct cn_map_entry **entry)
{
    while (*cursor < map->capacity) {
        const struct cn_map_entry *slot = &map->slots[(*cursor)++];
        if (slot->hash) {
            *entry = slot;
            return true;
        }
    }
    return false;
}

void cn_map_check(const struct cn_map *map)
{
    size_t used = 0;
    for (size_t i = 0; i < map->capacity; i++)
        used += map->slots[i].hash != 0;
    CN_ASSERT(map->count == used);
}
