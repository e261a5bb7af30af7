/* SPDX-License-Identifier: Apache-2.0 */
/* base/map.h - a hash table from byte strings to pointers.
 *
 * Open addressing, linear probing, tombstone-free deletion, load at most 3/4.
 * Keys are copied; values belong to the caller. Hashing is seeded per table,
 * so that a client cannot choose colliding keys.
 *
 * Threads: none of its own; the owner's. */
#ifndef CN_BASE_MAP_H
#define CN_BASE_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_map_entry {
    uint32_t hash; /* 0 marks a free slot */
    uint32_t key_size;
    char *key; /* owned, NUL-terminated for convenience */
    void *value;
};

struct cn_map {
    struct cn_map_entry *slots; /* owned; capacity is a power of two, or 0 */
    size_t capacity;
    size_t count;
    uint64_t seed;
};

void cn_map_init(struct cn_map *map);
void cn_map_fini(struct cn_map *map); /* frees keys, not values */
void *cn_map_find(const struct cn_map *map, const void *key, size_t key_size);
/* Sets or replaces; returns the value that was there before, or NULL. `value` is not NULL. */
void *cn_map_set(struct cn_map *map, const void *key, size_t key_size, void *value);
/* Removes; returns the value, or NULL if it was not there. */
void *cn_map_take(struct cn_map *map, const void *key, size_t key_size);

/* Iteration: start with *cursor = 0; false at the end. Do not change the table meanwhile. */
bool cn_map_next(const struct cn_map *map, size_t *cursor, const struct cn_map_entry **entry);

/* A fast 64-bit hash of bytes; not for secrets. */
uint64_t cn_hash_bytes(uint64_t seed, const void *bytes, size_t size);

/* W3 of base/loop.h: `count` is the number of slots in use. */
void cn_map_check(const struct cn_map *map);

#endif
