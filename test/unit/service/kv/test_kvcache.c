/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of KV values: what it may answer, and what it must not. */
#include "service/kv/kvcache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "object/node.h"
#include "service/kv/kv.h"
#include "test/lib/test.h"

static struct cn_namespace ns = {.id = 7, .name = "$kv/test"};

/* A get of `key` that the shard has answered with `value` (NULL: not there). */
static struct cn_kv_call *answered(struct cn_kvcache *cache, const char *key, const char *value)
{
    struct cn_kv_call *call = cn_kv_call_new(&ns, CN_KV_GET, key, strlen(key));
    CHECK(!cn_kvcache_get(cache, call, 0));
    if (value) {
        call->found = true;
        call->value = (uint8_t *)cn_strdup(value);
        call->value_size = strlen(value);
    }
    return call;
}

static void keep(struct cn_kvcache *cache, struct cn_kv_call *call)
{
    cn_kvcache_keep(cache, call);
    cn_service_call_free(&call->base);
}

/* Whether the cache answers, and with this value. */
static bool has(struct cn_kvcache *cache, const char *key, const char *value, int64_t now_s)
{
    struct cn_kv_call *call = cn_kv_call_new(&ns, CN_KV_GET, key, strlen(key));
    bool hit = cn_kvcache_get(cache, call, now_s);
    if (hit)
        CHECK(call->found && call->value_size == strlen(value) &&
              memcmp(call->value, value, call->value_size) == 0);
    cn_service_call_free(&call->base);
    return hit;
}

static void drop(struct cn_kvcache *cache, const char *key)
{
    struct cn_kv_call *call = cn_kv_call_new(&ns, CN_KV_PUT, key, strlen(key));
    cn_kvcache_drop(cache, call);
    cn_service_call_free(&call->base);
}

TEST(kvcache, keeps_what_was_read)
{
    struct cn_kvcache *cache = cn_kvcache_new(1 << 20);
    struct cn_kv_call *call = answered(cache, "a", "one");
    cn_buf_append_str(&call->metadata, "{\"m\":1}");
    keep(cache, call);
    keep(cache, answered(cache, "absent", NULL));
    call = cn_kv_call_new(&ns, CN_KV_GET, "a", 1);
    CHECK(cn_kvcache_get(cache, call, 0));
    CHECK_STR("{\"m\":1}", cn_buf_text(&call->metadata));
    cn_service_call_free(&call->base);
    CHECK(!has(cache, "absent", "", 0));
    ns.id = 8; /* another namespace */
    CHECK(!has(cache, "a", "one", 0));
    ns.id = 7;
    cn_kvcache_free(cache);
}

TEST(kvcache, a_write_outdates_what_is_kept_and_what_is_on_its_way)
{
    struct cn_kvcache *cache = cn_kvcache_new(1 << 20);
    keep(cache, answered(cache, "a", "old"));
    drop(cache, "a");
    CHECK(!has(cache, "a", "old", 0));
    struct cn_kv_call *late = answered(cache, "a", "old");
    drop(cache, "a"); /* while the answer travels */
    keep(cache, late);
    CHECK(!has(cache, "a", "old", 0));
    keep(cache, answered(cache, "a", "new"));
    CHECK(has(cache, "a", "new", 0));
    cn_kvcache_free(cache);
}

TEST(kvcache, values_expire)
{
    struct cn_kvcache *cache = cn_kvcache_new(1 << 20);
    struct cn_kv_call *call = answered(cache, "a", "one");
    call->expires_s = 100;
    keep(cache, call);
    CHECK(has(cache, "a", "one", 99));
    CHECK(!has(cache, "a", "one", 100));
    CHECK(!has(cache, "a", "one", 99)); /* and is gone */
    cn_kvcache_free(cache);
}

TEST(kvcache, a_shard_that_changed_while_it_was_away_is_forgotten)
{
    struct cn_kvcache *cache = cn_kvcache_new(1 << 20);
    struct cn_kv_call *call = cn_kv_call_new(&ns, CN_KV_GET, "a", 1);
    struct cn_object_key key = call->base.call.key;
    cn_service_call_free(&call->base);
    cn_kvcache_start(cache, &key, 5);
    keep(cache, answered(cache, "a", "one"));
    cn_kvcache_end(cache, &key, 9);
    CHECK(has(cache, "a", "one", 0)); /* away, but nobody else writes */
    cn_kvcache_start(cache, &key, 9);
    CHECK(has(cache, "a", "one", 0));
    struct cn_kv_call *late = cn_kv_call_new(&ns, CN_KV_GET, "b", 1);
    late->base.call.key = key;
    CHECK(!cn_kvcache_get(cache, late, 0));
    cn_kvcache_end(cache, &key, 9);
    cn_kvcache_start(cache, &key, 12); /* restored */
    CHECK(!has(cache, "a", "one", 0));
    late->found = true; /* read before the restore */
    late->value = (uint8_t *)cn_strdup("old");
    late->value_size = 3;
    keep(cache, late);
    CHECK(!has(cache, "b", "old", 0));
    cn_kvcache_free(cache);
}

TEST(kvcache, is_bounded)
{
    enum { BYTES = 1 << 20, VALUE = 1000 };
    struct cn_kvcache *cache = cn_kvcache_new(BYTES);
    char value[VALUE + 1], key[16];
    memset(value, 'x', VALUE);
    value[VALUE] = 0;
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        keep(cache, answered(cache, key, value));
    }
    int count = 0;
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        count += has(cache, key, value, 0);
    }
    CHECK(count > 100 && count < BYTES / VALUE);
    CHECK(has(cache, "k4999", value, 0)); /* the last one stays */
    char *large = malloc(CN_KVCACHE_VALUE_MAX + 2);
    memset(large, 'x', CN_KVCACHE_VALUE_MAX + 1);
    large[CN_KVCACHE_VALUE_MAX + 1] = 0;
    keep(cache, answered(cache, "large", large));
    CHECK(!has(cache, "large", large, 0));
    free(large);
    cn_kvcache_free(cache);
}

/* --- readers and a writer, as lanes have them ------------------------------------------------ */

struct world {
    struct cn_kvcache *cache;
    atomic_int written; /* the shard's value */
    atomic_int told;    /* the last write that was acknowledged */
    atomic_bool done;
    atomic_int wrong, hits;
};

static void *read_on(void *data)
{
    struct world *world = data;
    while (!atomic_load(&world->done)) {
        int told = atomic_load(&world->told), got;
        struct cn_kv_call *call = cn_kv_call_new(&ns, CN_KV_GET, "k", 1);
        if (cn_kvcache_get(world->cache, call, 0)) {
            memcpy(&got, call->value, sizeof(got));
            atomic_fetch_add(&world->hits, 1);
        } else {
            got = atomic_load(&world->written);
            call->found = true;
            call->value = cn_memdup(&got, sizeof(got));
            call->value_size = sizeof(got);
            cn_kvcache_keep(world->cache, call);
        }
        if (got < told)
            atomic_fetch_add(&world->wrong, 1);
        cn_service_call_free(&call->base);
    }
    return NULL;
}

TEST(kvcache, nobody_reads_what_is_older_than_what_was_acknowledged)
{
    struct world world = {.cache = cn_kvcache_new(1 << 20)};
    pthread_t readers[3];
    for (size_t i = 0; i < 3; i++)
        pthread_create(&readers[i], NULL, read_on, &world);
    for (int i = 1; i < 20000 || atomic_load(&world.hits) < 1000; i++) {
        /* As the shard does: written and dropped in one turn, then told. */
        atomic_store(&world.written, i);
        drop(world.cache, "k");
        atomic_store(&world.told, i);
    }
    atomic_store(&world.done, true);
    for (size_t i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    CHECK_INT(0, atomic_load(&world.wrong));
    cn_kvcache_free(world.cache);
}

TEST(kvcache, C4_a_shard_that_was_closed_outdates_what_is_kept_and_what_is_on_its_way)
{
    struct cn_kvcache *cache = cn_kvcache_new(1 << 20);
    keep(cache, answered(cache, "a", "old"));
    struct cn_kv_call *late = answered(cache, "b", "old");
    CHECK(has(cache, "a", "old", 0));
    cn_kvcache_outdate(cache);
    CHECK(!has(cache, "a", "old", 0));
    keep(cache, late);
    CHECK(!has(cache, "b", "old", 0));
    /* One that passed by the cache is not kept, whoever answered it. */
    struct cn_kv_call *passed = answered(cache, "c", "elsewhere");
    cn_kvcache_pass(passed);
    keep(cache, passed);
    CHECK(!has(cache, "c", "elsewhere", 0));
    keep(cache, answered(cache, "a", "new"));
    CHECK(has(cache, "a", "new", 0));
    cn_kvcache_free(cache);
}

/* --- values of other nodes: C5 and C6 --------------------------------------------------------- */

#define SECOND 1000000000ull

static struct cn_kv_call *far_get(struct cn_kvcache *cache, uint64_t now_ns, uint64_t age_s,
                                  bool *hit)
{
    struct cn_kv_call *call = cn_kv_call_new(&ns, CN_KV_GET, "a", 1);
    *hit = cn_kvcache_get_far(cache, call, 0, now_ns, age_s * SECOND);
    return call;
}

static void read_far(struct cn_kvcache *cache, uint64_t now_ns, const char *value)
{
    bool hit;
    struct cn_kv_call *call = far_get(cache, now_ns, 0, &hit);
    CHECK(!hit);
    call->found = true;
    call->value = (uint8_t *)cn_strdup(value);
    call->value_size = strlen(value);
    keep(cache, call);
}

static bool has_far(struct cn_kvcache *cache, uint64_t now_ns, uint64_t age_s)
{
    bool hit;
    cn_service_call_free(&far_get(cache, now_ns, age_s, &hit)->base);
    return hit;
}

TEST(kvcache, values_of_other_nodes_are_as_old_as_the_reader_allows)
{
    struct cn_kvcache *cache = cn_kvcache_new(1 << 20);
    read_far(cache, 100 * SECOND, "one");
    CHECK(has_far(cache, 100 * SECOND, 30));
    CHECK(has_far(cache, 130 * SECOND, 30));
    CHECK(!has(cache, "a", "one", 0)); /* who reads where the shard is never gets it */
    CHECK(!has_far(cache, 130 * SECOND + 1, 30));
    read_far(cache, 200 * SECOND, "two");
    CHECK(has_far(cache, 3000 * SECOND, 3600)); /* each reader has its own bound */
    read_far(cache, 3100 * SECOND, "three");    /* and a newer answer takes the place of an older */
    CHECK(has_far(cache, 3130 * SECOND, 30));
    cn_kvcache_free(cache);
}

TEST(kvcache, a_write_through_this_node_takes_out_what_was_read_before_it)
{
    struct cn_kvcache *cache = cn_kvcache_new(1 << 20);
    bool hit;
    read_far(cache, 100 * SECOND, "one");
    drop(cache, "a"); /* the write is sent */
    CHECK(!has_far(cache, 101 * SECOND, 30));
    struct cn_kv_call *before = far_get(cache, 101 * SECOND, 30, &hit);
    before->found = true;
    before->value = (uint8_t *)cn_strdup("one"); /* the owner answered it before the write came */
    before->value_size = 3;
    drop(cache, "a"); /* the write is acknowledged */
    keep(cache, before);
    CHECK(!has_far(cache, 102 * SECOND, 30));
    cn_kvcache_free(cache);
}
