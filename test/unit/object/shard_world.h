/* SPDX-License-Identifier: Apache-2.0 */
/* A node with several shards, each a store in a directory of its own, for tests of what happens
 * when they come and go. A second world on the same directories is another node. */
#ifndef CN_TEST_OBJECT_SHARD_WORLD_H
#define CN_TEST_OBJECT_SHARD_WORLD_H
#include <stdio.h>
#include <sys/stat.h>

#include "test/unit/object/world.h"

enum { SHARDS = 4 };

/* A shard's store. */
struct under {
    struct cn_disk *disk;
    struct cn_history *history;
    struct cn_store *store; /* NULL: closed */
};

/* Numbers of namespaces, the same for all nodes of a test. */
struct numbers {
    pthread_mutex_t lock;
    char names[16][64];
    uint32_t count;
};

static struct numbers numbers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int number(void *data, const char *name, uint32_t *namespace_id, struct cn_err *err)
{
    (void)data, (void)err;
    pthread_mutex_lock(&numbers.lock);
    uint32_t i = 0;
    while (i < numbers.count && strcmp(numbers.names[i], name) != 0)
        i++;
    if (i == numbers.count)
        snprintf(numbers.names[numbers.count++], sizeof(numbers.names[0]), "%s", name);
    pthread_mutex_unlock(&numbers.lock);
    *namespace_id = i + 11;
    return 0;
}

/* `sink` is what durable means for it; NULL: the disk. */
static void under_open(struct under *under, const char *dir, unsigned index, struct cn_clock *clock,
                       const struct cn_sink *sink)
{
    char path[300];
    struct cn_err err;
    snprintf(path, sizeof(path), "%s/%u", dir, index);
    (void)mkdir(path, 0700); /* it may be there */
    under->disk = cn_disk_system_new(path);
    CHECK(under->disk);
    struct cn_history_config history = {.disk = under->disk, .clock = clock};
    CHECK_INT(0, cn_history_open(&history, &under->history, &err));
    struct cn_store_config config = {.disk = under->disk,
                                     .clock = clock,
                                     .sync = CN_LOG_OS,
                                     .sink = sink,
                                     .segment_size = 1 << 20,
                                     .history = cn_history_callbacks(under->history)};
    if (cn_store_open(&config, &under->store, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void under_close(struct under *under)
{
    if (!under->store)
        return;
    cn_store_close(under->store);
    cn_history_close(under->history);
    cn_disk_system_free(under->disk);
    *under = (struct under){0};
}

struct shard_world {
    struct world world; /* first */
    const char *dir;
    struct under under[SHARDS];
};

/* All shards are closed. */
static inline void shard_world_start(struct shard_world *own, const char *dir,
                                     const struct cn_class *class_)
{
    *own = (struct shard_world){.dir = dir, .world = {.class_ = class_}};
    own->world.clock = (struct fake_clock){{fake_wall, fake_mono}, 1000000};
    own->world.shards =
        cn_shards_new(&(struct cn_shards_options){.count = SHARDS, .number = number});
    world_start(&own->world);
}

static inline void shard_open(struct shard_world *own, unsigned index)
{
    struct cn_err err;
    under_open(&own->under[index], own->dir, index, &own->world.clock.clock, NULL);
    CHECK_INT(0, cn_shards_open(own->world.shards, index, own->under[index].store,
                                own->under[index].history, NULL, NULL, &err));
}

/* What `done` was told. */
struct outcome {
    atomic_int count;
    atomic_bool reached;
};

static void on_outcome(void *data, unsigned index, bool reached)
{
    (void)index;
    struct outcome *outcome = data;
    atomic_store(&outcome->reached, reached);
    atomic_fetch_add(&outcome->count, 1);
}

static inline void await_outcome(struct shard_world *own, struct outcome *outcome)
{
    while (!atomic_load(&outcome->count))
        uv_run(&own->world.loop, UV_RUN_ONCE);
    CHECK_INT(1, atomic_load(&outcome->count));
}

static inline void await_state(struct shard_world *own, unsigned index, enum cn_shard_state state)
{
    while (cn_shards_state(own->world.shards, index) != state)
        uv_run(&own->world.loop, UV_RUN_ONCE);
}

/* Closes the shard and then its store. */
static inline void shard_close(struct shard_world *own, unsigned index)
{
    struct outcome outcome = {0};
    cn_shards_close(own->world.shards, index, on_outcome, &outcome);
    await_outcome(own, &outcome);
    CHECK(outcome.reached);
    under_close(&own->under[index]);
}

static inline void shard_world_open(struct shard_world *own, const char *dir,
                                    const struct cn_class *class_)
{
    shard_world_start(own, dir, class_);
    for (unsigned i = 0; i < SHARDS; i++) {
        shard_open(own, i);
        await_state(own, i, CN_SHARD_OPEN);
    }
}

static inline void shard_world_close(struct shard_world *own)
{
    world_close(&own->world);
    for (unsigned i = 0; i < SHARDS; i++)
        under_close(&own->under[i]);
}

static inline unsigned shard_of_name(struct shard_world *own, const char *name)
{
    struct cn_object_key key = {.namespace_id = own->world.ns->id};
    cn_id_from_name(&own->world.ns->keys, CN_JURISDICTION_NONE, name, strlen(name), key.id);
    return cn_shard_index(&key, SHARDS);
}

/* A name whose object is in the shard; `which` tells several apart. Good until the next call. */
static inline const char *name_in(struct shard_world *own, unsigned index, unsigned which)
{
    static char name[32];
    for (unsigned i = 0;; i++) {
        snprintf(name, sizeof(name), "object-%u-%u", which, i);
        if (shard_of_name(own, name) == index)
            return name;
    }
}

#endif
