/* SPDX-License-Identifier: Apache-2.0 */
#include "service/kv/kvcache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "service/kv/kv.h"

#define STRIPES 64
/* Shards share these by their hash: one that starts may outdate another's values, which costs no
 * more than reading them again. */
#define BIRTHS 4096
#define NOT_KEPT UINT64_MAX  /* no generation */
#define FAR (UINT64_MAX - 1) /* what was read from another node: C5 */

struct entry {
    struct cn_list link; /* in stripe->recent */
    int64_t expires_s;   /* 0: never */
    uint64_t since_ns;   /* FAR: when its get was sent */
    bool has_metadata;
    size_t value_size, metadata_size, key_size;
    uint8_t bytes[]; /* value, metadata, key */
};

struct stripe {
    _Alignas(64) pthread_mutex_t lock; /* guards all below */
    struct cn_map entries;             /* key -> struct entry, owned */
    struct cn_list recent;             /* least recently used first */
    size_t bytes;
    uint64_t drops; /* the ticket: how many there were */
    uint64_t hits, misses;
};

/* Of the shards with one hash. */
struct birth {
    atomic_uint_least64_t generation; /* what was kept under another is out of date */
    atomic_uint_least64_t lsn;        /* that the last one ended with, mixed with its key */
};

struct cn_kvcache {
    size_t stripe_bytes_max;
    atomic_bool is_far; /* something of other nodes was asked for: a single server never has it */
    struct stripe stripes[STRIPES];
    struct birth births[BIRTHS];
};

/* What stands for a key here: whose it is, since when, and the key itself. */
struct key {
    uint8_t bytes[16 + CN_KV_KEY_MAX];
    size_t size;
};

struct cn_kvcache *cn_kvcache_new(size_t bytes_max)
{
    struct cn_kvcache *cache = aligned_alloc(64, sizeof(*cache));
    CN_ASSERT(cache);
    memset(cache, 0, sizeof(*cache));
    cache->stripe_bytes_max = bytes_max / STRIPES;
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = &cache->stripes[i];
        pthread_mutex_init(&stripe->lock, NULL);
        cn_map_init(&stripe->entries);
        cn_list_init(&stripe->recent);
    }
    return cache;
}

static size_t cost(const struct entry *entry)
{
    return sizeof(*entry) + 2 * entry->key_size + entry->value_size + entry->metadata_size;
}

static void remove_entry(struct stripe *stripe, struct entry *entry)
{
    const uint8_t *key = entry->bytes + entry->value_size + entry->metadata_size;
    (void)cn_map_take(&stripe->entries, key, entry->key_size);
    cn_list_remove(&entry->link);
    stripe->bytes -= cost(entry);
    cn_free(entry);
}

void cn_kvcache_free(struct cn_kvcache *cache)
{
    for (size_t i = 0; cache && i < STRIPES; i++) {
        struct stripe *stripe = &cache->stripes[i];
        CN_LIST_FOREACH(&stripe->recent, node)
        remove_entry(stripe, CN_CONTAINER_OF(node, struct entry, link));
        cn_map_fini(&stripe->entries);
        pthread_mutex_destroy(&stripe->lock);
    }
    cn_free(cache);
}

void cn_kvcache_forget(struct cn_kvcache *cache)
{
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = &cache->stripes[i];
        pthread_mutex_lock(&stripe->lock);
        CN_LIST_FOREACH(&stripe->recent, node)
        remove_entry(stripe, CN_CONTAINER_OF(node, struct entry, link));
        pthread_mutex_unlock(&stripe->lock);
    }
}

static struct birth *birth_of(struct cn_kvcache *cache, const struct cn_object_key *key)
{
    return &cache->births[cn_hash_bytes(1, key, sizeof(*key)) % BIRTHS];
}

/* False if the key is too long to be one. */
static bool make_key(const struct cn_kv_call *call, uint64_t generation, struct key *key)
{
    uint32_t namespace_id = call->base.call.key.namespace_id;
    if (call->key.size > CN_KV_KEY_MAX)
        return false;
    memcpy(key->bytes, &generation, 8);
    memcpy(key->bytes + 8, &namespace_id, 4);
    if (call->key.size)
        memcpy(key->bytes + 12, call->key.data, call->key.size);
    key->size = 12 + call->key.size;
    return true;
}

static struct stripe *stripe_of(struct cn_kvcache *cache, const struct key *key)
{
    return &cache->stripes[cn_hash_bytes(0, key->bytes, key->size) % STRIPES];
}

static void copy_out(const struct entry *entry, struct cn_kv_call *call)
{
    call->value = cn_memdup(entry->bytes, entry->value_size ? entry->value_size : 1);
    call->value_size = entry->value_size;
    if (entry->has_metadata)
        cn_buf_append(&call->metadata, entry->bytes + entry->value_size, entry->metadata_size);
    call->expires_s = entry->expires_s;
    call->found = true;
}

/* What is taken must have been read since `since_ns`. */
static bool take(struct cn_kvcache *cache, struct cn_kv_call *call, int64_t now_s,
                 uint64_t since_ns)
{
    struct key key;
    if (!make_key(call, call->generation, &key))
        return false;
    struct stripe *stripe = stripe_of(cache, &key);
    pthread_mutex_lock(&stripe->lock);
    struct entry *entry = cn_map_find(&stripe->entries, key.bytes, key.size);
    if (entry && ((entry->expires_s && entry->expires_s <= now_s) || entry->since_ns < since_ns)) {
        remove_entry(stripe, entry);
        entry = NULL;
    }
    if (entry) {
        copy_out(entry, call);
        cn_list_remove(&entry->link);
        cn_list_push_back(&stripe->recent, &entry->link);
    }
    *(entry ? &stripe->hits : &stripe->misses) += 1;
    call->ticket = stripe->drops;
    pthread_mutex_unlock(&stripe->lock);
    return entry != NULL;
}

bool cn_kvcache_get(struct cn_kvcache *cache, struct cn_kv_call *call, int64_t now_s)
{
    call->generation = atomic_load(&birth_of(cache, &call->base.call.key)->generation);
    return take(cache, call, now_s, 0);
}

bool cn_kvcache_get_far(struct cn_kvcache *cache, struct cn_kv_call *call, int64_t now_s,
                        uint64_t now_ns, uint64_t age_ns)
{
    atomic_store(&cache->is_far, true); /* before the ticket: a later drop() counts */
    call->generation = FAR;
    call->since_ns = now_ns;
    return take(cache, call, now_s, now_ns > age_ns ? now_ns - age_ns : 0);
}

void cn_kvcache_stats(struct cn_kvcache *cache, struct cn_kvcache_stats *stats)
{
    *stats = (struct cn_kvcache_stats){0};
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = &cache->stripes[i];
        pthread_mutex_lock(&stripe->lock);
        stats->hits += stripe->hits;
        stats->misses += stripe->misses;
        stats->entries += stripe->entries.count;
        stats->bytes += stripe->bytes;
        pthread_mutex_unlock(&stripe->lock);
    }
}

static struct entry *make_entry(const struct cn_kv_call *call, const struct key *key)
{
    size_t metadata_size = call->metadata.size;
    struct entry *entry =
        cn_alloc(sizeof(*entry) + call->value_size + metadata_size + key->size + 1);
    *entry = (struct entry){.expires_s = call->expires_s,
                            .since_ns = call->since_ns,
                            .has_metadata = call->metadata.data != NULL,
                            .value_size = call->value_size,
                            .metadata_size = metadata_size,
                            .key_size = key->size};
    memcpy(entry->bytes, call->value, call->value_size);
    if (metadata_size)
        memcpy(entry->bytes + call->value_size, call->metadata.data, metadata_size);
    memcpy(entry->bytes + call->value_size + metadata_size, key->bytes, key->size);
    return entry;
}

void cn_kvcache_keep(struct cn_kvcache *cache, const struct cn_kv_call *call)
{
    struct key key;
    if (!call->found || call->generation == NOT_KEPT || call->value_size > CN_KVCACHE_VALUE_MAX ||
        !make_key(call, call->generation, &key))
        return;
    struct entry *entry = make_entry(call, &key);
    struct stripe *stripe = stripe_of(cache, &key);
    pthread_mutex_lock(&stripe->lock);
    struct entry *other = cn_map_find(&stripe->entries, key.bytes, key.size);
    if (other && other->since_ns < entry->since_ns) {
        remove_entry(stripe, other); /* this one may be given for longer */
        other = NULL;
    }
    if (stripe->drops != call->ticket || cost(entry) > cache->stripe_bytes_max || other) {
        cn_free(entry); /* C1, or another reader was first */
    } else {
        stripe->bytes += cost(entry);
        while (stripe->bytes > cache->stripe_bytes_max && !cn_list_empty(&stripe->recent))
            remove_entry(stripe, CN_CONTAINER_OF(stripe->recent.next, struct entry, link));
        cn_map_set(&stripe->entries, key.bytes, key.size, entry);
        cn_list_push_back(&stripe->recent, &entry->link);
    }
    pthread_mutex_unlock(&stripe->lock);
}

static void drop(struct cn_kvcache *cache, const struct cn_kv_call *call, uint64_t generation)
{
    struct key key;
    if (!make_key(call, generation, &key))
        return;
    struct stripe *stripe = stripe_of(cache, &key);
    pthread_mutex_lock(&stripe->lock);
    stripe->drops++;
    struct entry *entry = cn_map_find(&stripe->entries, key.bytes, key.size);
    if (entry)
        remove_entry(stripe, entry);
    pthread_mutex_unlock(&stripe->lock);
}

void cn_kvcache_drop(struct cn_kvcache *cache, const struct cn_kv_call *call)
{
    drop(cache, call, atomic_load(&birth_of(cache, &call->base.call.key)->generation));
    if (atomic_load(&cache->is_far))
        drop(cache, call, FAR); /* C6 */
}

/* Another shard with the same place cannot be taken for this one. */
static uint64_t mix(const struct cn_object_key *key, uint64_t lsn)
{
    return cn_hash_bytes(lsn, key, sizeof(*key));
}

void cn_kvcache_start(struct cn_kvcache *cache, const struct cn_object_key *key, uint64_t lsn)
{
    struct birth *birth = birth_of(cache, key);
    if (atomic_load(&birth->lsn) != mix(key, lsn))
        atomic_fetch_add(&birth->generation, 1); /* C3 */
}

void cn_kvcache_outdate(struct cn_kvcache *cache)
{
    for (size_t i = 0; i < BIRTHS; i++)
        atomic_fetch_add(&cache->births[i].generation, 1); /* C4 */
}

void cn_kvcache_pass(struct cn_kv_call *call)
{
    call->generation = NOT_KEPT;
}

void cn_kvcache_end(struct cn_kvcache *cache, const struct cn_object_key *key, uint64_t lsn)
{
    atomic_store(&birth_of(cache, key)->lsn, mix(key, lsn));
}
