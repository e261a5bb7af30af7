/* SPDX-License-Identifier: Apache-2.0 */
/* A node with one lane, run by hand, for tests of the core with classes in C. */
#ifndef CN_TEST_OBJECT_WORLD_H
#define CN_TEST_OBJECT_WORLD_H
#include <pthread.h>
#include <string.h>

#include "base/disk.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/call.h"
#include "object/node.h"
#include "store/history.h"
#include "store/store.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

struct fake_clock {
    struct cn_clock clock;
    int64_t wall_ms;
};

static int64_t fake_wall(struct cn_clock *clock)
{
    return ((struct fake_clock *)clock)->wall_ms;
}

static uint64_t fake_mono(struct cn_clock *clock)
{
    return (uint64_t)((struct fake_clock *)clock)->wall_ms * 1000000u;
}

struct world {
    struct fake_clock clock;
    struct cn_disk *disk, *own_disk; /* own_disk: NULL if the test has made it */
    struct cn_history *history;
    struct cn_store *store;
    struct cn_shards *shards;
    struct cn_node *node;
    uv_loop_t loop;
    struct cn_mailbox mailbox;
    struct cn_desk desk;
    struct cn_object_lane lane;
    struct cn_namespace *ns;
    const struct cn_class *class_;
    bool stopped;
    /* What the class saw. */
    int created, destroyed, alarms;
    int fail_create, fail_alarm, park_alarm, abort_alarm;
    unsigned alarm_faults;     /* of alarms that fail; 0: the class's own */
    int64_t alarm_in_ms;       /* of the next alarm that is set; 0: 5 s */
    unsigned last_retry;       /* of the last alarm */
    int64_t last_scheduled_ms; /* of the last alarm */
    int unordered;             /* alarms that were due before one that had fired already */
    bool write_once;           /* only the first constructor writes */
    struct cn_call *parked;    /* a call the class keeps for later */
};

static bool find_class(struct cn_object_lane *lane, struct cn_namespace *ns,
                       const struct cn_object_key *key, const struct cn_class **class_,
                       void **class_data)
{
    (void)ns, (void)key;
    struct world *world = lane->data;
    *class_ = world->class_;
    *class_data = world;
    return true;
}

/* For worlds opened from now on; 0: no limit. */
static unsigned world_new_objects_per_minute;

/* Of worlds opened from now on; only the first is ever started. 0: one. */
static unsigned world_lane_count;

/* The namespace of worlds opened from now on; NULL: the usual one. */
static const char *world_namespace;

/* What "durable" means for worlds opened from now on; NULL: on their disk. */
static const struct cn_sink *world_sink;

/* The node and its lane, on shards that are there. */
static void world_start(struct world *world)
{
    struct cn_err err;
    struct cn_node_options options = {.shards = world->shards,
                                      .clock = &world->clock.clock,
                                      .lane_count = world_lane_count ? world_lane_count : 1,
                                      .new_objects_per_minute = world_new_objects_per_minute,
                                      .find_class = find_class,
                                      .secret = "0123456789abcde"};
    world->node = cn_node_new(&options);
    CHECK_INT(0, cn_node_namespace(world->node, world_namespace ? world_namespace : "test/Counter",
                                   &world->ns, &err));
    CHECK_INT(0, cn_loop_init(&world->loop, NULL));
    CHECK_INT(0, cn_mailbox_open(&world->mailbox, &world->loop, &world->lane));
    cn_desk_open(&world->desk, 0, &world->loop, &world->mailbox, cn_object_lane_step_desk, world);
    CHECK_INT(0, cn_object_lane_start(&world->lane, world->node, &world->desk, world, &err));
}

/* `disk` is borrowed; with CN_LOG_FSYNC an answer waits for its syncs. */
static void world_open_on(struct world *world, struct cn_disk *disk, enum cn_log_sync sync,
                          const struct cn_class *class_)
{
    struct cn_err err;
    *world = (struct world){.class_ = class_};
    world->clock = (struct fake_clock){{fake_wall, fake_mono}, 1000000};
    world->disk = disk;
    struct cn_history_config history = {.disk = world->disk, .clock = &world->clock.clock};
    CHECK_INT(0, cn_history_open(&history, &world->history, &err));
    struct cn_store_config config = {.disk = world->disk,
                                     .clock = &world->clock.clock,
                                     .sync = sync,
                                     .sink = world_sink,
                                     .segment_size = 1 << 20,
                                     .history = cn_history_callbacks(world->history)};
    CHECK_INT(0, cn_store_open(&config, &world->store, &err));
    CHECK_INT(0, cn_shards_single(world->store, world->history, &world->shards, &err));
    world_start(world);
}

static inline void world_open(struct world *world, const char *dir, const struct cn_class *class_)
{
    struct cn_disk *disk = cn_disk_system_new(dir);
    world_open_on(world, disk, CN_LOG_OS, class_);
    world->own_disk = disk;
}

static void on_stopped(struct cn_object_lane *lane)
{
    ((struct world *)lane->data)->stopped = true;
}

/* After its lanes were told to stop. */
static void world_end(struct world *world)
{
    uv_run(&world->loop, UV_RUN_DEFAULT);
    CHECK(world->stopped);
    CHECK_INT(0, uv_loop_close(&world->loop));
    cn_node_free(world->node);
    cn_shards_free(world->shards);
    if (world->store)
        cn_store_close(world->store);
    if (world->history)
        cn_history_close(world->history);
    if (world->own_disk)
        cn_disk_system_free(world->own_disk);
}

static void world_close(struct world *world)
{
    cn_object_lane_check(&world->lane);
    cn_object_lane_stop(&world->lane, on_stopped);
    cn_desk_close(&world->desk);
    cn_mailbox_close(&world->mailbox, NULL);
    world_end(world);
}

/* --- calls ----------------------------------------------------------------------------------- */

struct answer {
    struct cn_call call;
    bool done;
};

static void on_drop(struct cn_envelope *envelope)
{
    cn_free(cn_call_of(envelope)->name);
    cn_free(envelope);
}

static void on_done(struct cn_envelope *envelope)
{
    struct cn_call *call = cn_call_of(envelope);
    struct answer *answer = (struct answer *)call;
    CHECK(!answer->done);
    answer->done = true;
    cn_free(call->name);
    call->name = NULL;
}

static struct answer *post_sized(struct world *world, const char *name, intptr_t what, size_t size)
{
    struct answer *answer = CN_NEW(struct answer);
    answer->call.kind = CN_CALL_OTHER;
    answer->call.ns = world->ns;
    answer->call.key.namespace_id = world->ns->id;
    cn_id_from_name(&world->ns->keys, CN_JURISDICTION_NONE, name, strlen(name),
                    answer->call.key.id);
    answer->call.name = cn_strdup(name);
    answer->call.name_size = strlen(name);
    answer->call.envelope.from = cn_desk_place(&world->desk);
    answer->call.payload = (void *)what;
    answer->call.size = size;
    answer->call.envelope.on_done = on_done;
    answer->call.envelope.drop = on_drop;
    cn_call_send(&answer->call, NULL);
    CHECK(!answer->done); /* C2: never from inside the call */
    return answer;
}

static struct answer *post(struct world *world, const char *name, intptr_t what)
{
    return post_sized(world, name, what, 0);
}

static void run_until(struct world *world, struct answer *answer)
{
    while (!answer->done)
        uv_run(&world->loop, UV_RUN_ONCE);
}

static inline intptr_t ask(struct world *world, const char *name, intptr_t what)
{
    struct answer *answer = post(world, name, what);
    run_until(world, answer);
    CHECK_INT(0, answer->call.envelope.err.code);
    intptr_t result = (intptr_t)answer->call.result;
    cn_free(answer);
    return result;
}

/* --- syncs that wait while a test looks at what waits for them --------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held;
} world_syncs = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

/* A sync, on its thread. */
static inline void world_before_sync(void *data, const char *name, const char *path)
{
    (void)data, (void)name, (void)path;
    pthread_mutex_lock(&world_syncs.lock);
    while (world_syncs.held)
        pthread_cond_wait(&world_syncs.changed, &world_syncs.lock);
    pthread_mutex_unlock(&world_syncs.lock);
}

/* From here on nothing becomes durable on `sim`. */
static inline void world_hold_syncs(struct simdisk *sim)
{
    pthread_mutex_lock(&world_syncs.lock);
    world_syncs.held = true;
    pthread_mutex_unlock(&world_syncs.lock);
    simdisk_set_hook(sim, SIMDISK_SYNC, world_before_sync, NULL);
}

static inline void world_let_syncs_go_on(void)
{
    pthread_mutex_lock(&world_syncs.lock);
    world_syncs.held = false;
    pthread_cond_broadcast(&world_syncs.changed);
    pthread_mutex_unlock(&world_syncs.lock);
}

/* An output by itself. */
struct parcel {
    struct cn_output output;
    int sent; /* 1: left; -1: failed */
};

static inline void parcel_send(struct cn_output *output, const struct cn_err *err)
{
    ((struct parcel *)output)->sent = err ? -1 : 1;
}

#endif
