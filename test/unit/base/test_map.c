/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table against a plain array: every operation gives the same answer. */
#include "base/map.h"

#include <stdio.h>
#include <string.h>

#include "base/rand.h"
#include "test/lib/test.h"

TEST(map, finds_what_was_set_and_nothing_else)
{
    struct cn_map map;
    cn_map_init(&map);
    int a = 1, b = 2;
    CHECK(!cn_map_find(&map, "a", 1));
    CHECK(!cn_map_set(&map, "a", 1, &a));
    CHECK(cn_map_set(&map, "a", 1, &b) == &a);
    CHECK(cn_map_find(&map, "a", 1) == &b);
    CHECK(!cn_map_find(&map, "aa", 2));
    CHECK(cn_map_take(&map, "a", 1) == &b);
    CHECK(!cn_map_take(&map, "a", 1));
    cn_map_fini(&map);
}

TEST(map, agrees_with_an_array_under_random_operations)
{
    enum { KEYS = 500 };
    static int values[KEYS];
    bool present[KEYS] = {0};
    struct cn_map map;
    cn_map_init(&map);
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (int step = 0; step < 20000; step++) {
        int k = (int)cn_rand_below(&rand, KEYS);
        char key[16];
        size_t size = (size_t)snprintf(key, sizeof(key), "key-%d", k);
        switch (cn_rand_below(&rand, 3)) {
        case 0:
            CHECK((cn_map_set(&map, key, size, &values[k]) != NULL) == present[k]);
            present[k] = true;
            break;
        case 1:
            CHECK(cn_map_take(&map, key, size) == (present[k] ? &values[k] : NULL));
            present[k] = false;
            break;
        default:
            CHECK(cn_map_find(&map, key, size) == (present[k] ? &values[k] : NULL));
        }
    }
    size_t cursor = 0, seen = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&map, &cursor, &entry))
        seen++;
    CHECK_INT(map.count, seen);
    cn_map_fini(&map);
}

static void check(void *data)
{
    cn_map_check(data);
}

/* W3 of base/loop.h */
TEST(map, is_counted)
{
    struct cn_map map;
    int value = 1;
    cn_map_init(&map);
    cn_map_check(&map);
    for (char key = 'a'; key <= 'z'; key++)
        cn_map_set(&map, &key, 1, &value);
    cn_map_take(&map, "m", 1);
    cn_map_check(&map);
    map.count++;
    CHECK_ASSERTS("map->count == used", check, &map);
    map.count--;
    cn_map_fini(&map);
}
