/* SPDX-License-Identifier: Apache-2.0 */
#include "object/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "object/internal.h"
#include "object/moved.h"
#include "store/catalog.h"
#include "store/store.h"

struct cn_node {
    struct cn_node_options options;
    struct cn_object_lane **lanes; /* borrowed; by index, set once each at start */
    pthread_mutex_t lock;          /* guards namespaces */
    struct cn_list namespaces;     /* of struct cn_namespace, owned */
    atomic_uint namespace_count;   /* of them; grows only */
    char **old_names;              /* owned, and each of them: of namespaces renamed meanwhile */
    size_t old_name_count;
    char mark[CN_NODE_MARK_SIZE];
};

struct cn_node *cn_node_new(const struct cn_node_options *options)
{
    CN_ASSERT(options->shards);
    struct cn_node *node = CN_NEW(struct cn_node);
    node->options = *options;
    if (!node->options.clock)
        node->options.clock = cn_clock_system();
    node->lanes = cn_alloc_zero(options->lane_count * sizeof(*node->lanes));
    pthread_mutex_init(&node->lock, NULL);
    cn_list_init(&node->namespaces);
    if (options->disk)
        snprintf(node->mark, sizeof(node->mark), "@%" PRIx64 ".%" PRIx64, options->disk,
                 options->life);
    return node;
}

void cn_node_free(struct cn_node *node)
{
    CN_LIST_FOREACH(&node->namespaces, link)
    {
        struct cn_namespace *ns = CN_CONTAINER_OF(link, struct cn_namespace, link);
        cn_free(ns->name);
        cn_free(ns->metrics);
        cn_free(ns);
    }
    for (size_t i = 0; i < node->old_name_count; i++)
        cn_free(node->old_names[i]);
    cn_free(node->old_names);
    pthread_mutex_destroy(&node->lock);
    cn_free(node->lanes);
    cn_free(node);
}

struct cn_shards *cn_node_shards(struct cn_node *node)
{
    return node->options.shards;
}

struct cn_clock *cn_node_clock(struct cn_node *node)
{
    return node->options.clock;
}

const char *cn_node_mark(const struct cn_node *node)
{
    return node->mark;
}

void *cn_node_data(struct cn_node *node)
{
    return node->options.data;
}

void cn_node_idle_times(struct cn_node *node, unsigned *idle_ms, unsigned *idle_long_ms)
{
    *idle_ms = node->options.idle_ms;
    *idle_long_ms = node->options.idle_long_ms;
}

bool cn_node_class(struct cn_object_lane *lane, struct cn_namespace *ns,
                   const struct cn_object_key *key, const struct cn_class **class_,
                   void **class_data)
{
    return lane->node->options.find_class(lane, ns, key, class_, class_data);
}

void cn_node_register_lane(struct cn_node *node, struct cn_object_lane *lane)
{
    CN_ASSERT(lane->index < node->options.lane_count && !node->lanes[lane->index]);
    node->lanes[lane->index] = lane;
}

/* Takes one of this minute's share. */
static bool take_new_object(struct cn_namespace *ns, uint32_t minute, uint32_t limit)
{
    uint64_t old = atomic_load(&ns->new_objects), next;
    do {
        uint64_t count = old >> 32 == minute ? old & UINT32_MAX : 0;
        if (count >= limit)
            return false;
        next = (uint64_t)minute << 32 | (count + 1);
    } while (!atomic_compare_exchange_weak(&ns->new_objects, &old, next));
    return true;
}

bool cn_node_admits(struct cn_node *node, struct cn_namespace *ns, const struct cn_object_key *key,
                    struct cn_store *store)
{
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1];
    struct cn_err err;
    unsigned limit = node->options.new_objects_per_minute;
    if (!limit || ns->name[0] == '$')
        return true;
    if (cn_catalog_find(cn_store_catalog(store), key, &entry, name, &err) != 0)
        return true; /* it is there; or nobody knows, and opening it will say why */
    return take_new_object(ns, (uint32_t)(cn_clock_wall_ms(node->options.clock) / 60000), limit);
}

unsigned cn_node_owner_index(struct cn_node *node, const struct cn_object_key *key)
{
    /* The second half of an id is a keyed hash: as even as can be. */
    uint64_t hash;
    memcpy(&hash, key->id + CN_OBJECT_ID_SIZE - sizeof(hash), sizeof(hash));
    return (unsigned)(hash % node->options.lane_count);
}

struct cn_object_lane *cn_node_owner(struct cn_node *node, const struct cn_object_key *key)
{
    struct cn_object_lane *lane = node->lanes[cn_node_owner_index(node, key)];
    CN_ASSERT(lane);
    return lane;
}

struct cn_place cn_node_place(struct cn_node *node, const struct cn_object_key *key)
{
    return cn_desk_place(cn_node_owner(node, key)->desk);
}

void cn_node_each_namespace(struct cn_node *node,
                            void (*each)(void *data, const struct cn_namespace *ns), void *data)
{
    pthread_mutex_lock(&node->lock);
    CN_LIST_FOREACH(&node->namespaces, link)
    each(data, CN_CONTAINER_OF(link, struct cn_namespace, link));
    pthread_mutex_unlock(&node->lock);
}

unsigned cn_node_lane_count(const struct cn_node *node)
{
    return node->options.lane_count;
}

struct cn_object_lane *cn_node_lane(struct cn_node *node, unsigned index)
{
    return index < node->options.lane_count ? node->lanes[index] : NULL;
}

/* With the lock held. */
static struct cn_namespace *add_namespace(struct cn_node *node, uint32_t id, const char *name)
{
    struct cn_namespace *ns = CN_NEW(struct cn_namespace);
    ns->node = node;
    ns->id = id;
    ns->name = cn_strdup(name);
    ns->metrics = cn_alloc_zero(node->options.lane_count * sizeof(*ns->metrics));
    cn_id_keys_init(&ns->keys, node->options.secret, id);
    ns->keys.moved = cn_moved_find(node->options.moved, id);
    cn_list_push_back(&node->namespaces, &ns->link);
    atomic_fetch_add(&node->namespace_count, 1);
    return ns;
}

/* With the lock held. */
static struct cn_namespace *find_named(struct cn_node *node, const char *name)
{
    CN_LIST_FOREACH(&node->namespaces, link)
    {
        struct cn_namespace *ns = CN_CONTAINER_OF(link, struct cn_namespace, link);
        if (strcmp(ns->name, name) == 0)
            return ns;
    }
    return NULL;
}

struct cn_namespace *cn_node_namespace_named(struct cn_node *node, const char *name)
{
    pthread_mutex_lock(&node->lock);
    struct cn_namespace *found = find_named(node, name);
    pthread_mutex_unlock(&node->lock);
    return found;
}

uint32_t cn_node_namespace_last(struct cn_node *node)
{
    uint32_t last = 0;
    pthread_mutex_lock(&node->lock);
    CN_LIST_FOREACH(&node->namespaces, link)
    {
        const struct cn_namespace *ns = CN_CONTAINER_OF(link, struct cn_namespace, link);
        last = ns->id > last ? ns->id : last;
    }
    pthread_mutex_unlock(&node->lock);
    return last;
}

int cn_node_namespace(struct cn_node *node, const char *name, struct cn_namespace **out,
                      struct cn_err *err)
{
    uint32_t id;
    *out = cn_node_namespace_named(node, name);
    if (*out)
        return 0;
    int rc = cn_shards_number(node->options.shards, name, &id, err); /* may take its time */
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&node->lock);
    *out = find_named(node, name);
    if (!*out)
        *out = add_namespace(node, id, name);
    pthread_mutex_unlock(&node->lock);
    return 0;
}

/* Numbers that come from elsewhere are taken as they are. */
static int check_number(struct cn_shards *shards, uint32_t id, struct cn_err *err)
{
    char stored[CN_OBJECT_NAME_MAX + 1];
    if (cn_shards_numbered(shards))
        return 0;
    struct cn_shard *only = cn_shards_hold_index(shards, 0);
    if (!only)
        return cn_err_set(err, CN_ECLOSED, "the store is closed");
    int rc = cn_store_namespace_name(only->store, id, stored, err);
    cn_shard_release(only);
    return rc;
}

int cn_node_namespace_open(struct cn_node *node, uint32_t id, const char *name,
                           struct cn_namespace **out, struct cn_err *err)
{
    int rc = check_number(node->options.shards, id, err);
    if (rc < 0)
        return rc;
    struct cn_namespace *ns = cn_node_namespace_find(node, id);
    pthread_mutex_lock(&node->lock);
    if (!ns) {
        ns = add_namespace(node, id, name);
    } else if (strcmp(ns->name, name) != 0) {
        /* A lane may be looking at the old name: it stays until the node ends. */
        node->old_names =
            cn_realloc(node->old_names, (node->old_name_count + 1) * sizeof(*node->old_names));
        node->old_names[node->old_name_count++] = ns->name;
        ns->name = cn_strdup(name);
    }
    pthread_mutex_unlock(&node->lock);
    *out = ns;
    return 0;
}

unsigned cn_node_namespace_count(struct cn_node *node)
{
    return atomic_load(&node->namespace_count);
}

struct cn_namespace *cn_node_namespace_find(struct cn_node *node, uint32_t id)
{
    struct cn_namespace *found = NULL;
    pthread_mutex_lock(&node->lock);
    CN_LIST_FOREACH(&node->namespaces, link)
    {
        struct cn_namespace *ns = CN_CONTAINER_OF(link, struct cn_namespace, link);
        if (ns->id == id)
            found = ns;
    }
    pthread_mutex_unlock(&node->lock);
    return found;
}
