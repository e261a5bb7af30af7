/* SPDX-License-Identifier: Apache-2.0 */
/* Back-pressure: O8 of object/object.h, with a disk that takes nothing until the test lets it. */
#include "base/block.h"
#include "object/internal.h"
#include "object/object.h"
#include "store/database.h"
#include "store/sink.h"
#include "test/unit/object/world.h"

enum { WRITE = 1, READ, WRITES_MAX = 1000 };

static int delivered[3]; /* by what */
static int presses, releases;

static int cell_create(struct cn_object *object, void *class_data, void **instance,
                       struct cn_err *err)
{
    struct world *world = class_data;
    world->created++;
    *instance = world;
    struct cn_database *db = cn_object_database(object, err);
    return db ? cn_database_exec(db, "CREATE TABLE IF NOT EXISTS t(x)", err) : err->code;
}

static void cell_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    (void)instance;
    struct cn_err err;
    intptr_t what = (intptr_t)call->payload;
    delivered[what]++;
    if (what == WRITE)
        CHECK_INT(0, cn_database_exec(cn_object_database(object, &err),
                                      "INSERT INTO t VALUES (randomblob(1048576))", &err));
    cn_call_reply(call, NULL);
}

static void cell_press(struct cn_object *object, void *instance, bool begins)
{
    (void)instance;
    CHECK(cn_object_in_turn(object));
    presses += begins;
    releases += !begins;
}

static void cell_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    ((struct world *)instance)->destroyed++;
}

static const struct cn_class cell = {
    .create = cell_create, .deliver = cell_deliver, .press = cell_press, .destroy = cell_destroy};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool open_;

static int settle(void *data, const struct cn_sink_batch *batch, struct cn_err *err)
{
    (void)data, (void)batch, (void)err;
    pthread_mutex_lock(&lock);
    while (!open_)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return 0;
}

static void set_open(bool open)
{
    pthread_mutex_lock(&lock);
    open_ = open;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void run_once(struct world *world)
{
    for (int i = 0; i < 20; i++)
        uv_run(&world->loop, UV_RUN_NOWAIT);
}

static void begin(struct world *world)
{
    static const struct cn_sink sink = {.settle = settle};
    delivered[WRITE] = delivered[READ] = presses = releases = 0;
    set_open(true);
    world_sink = &sink;
    world_open(world, test_dir(), &cell);
    world_sink = NULL;
    (void)ask(world, "a", READ);
    (void)ask(world, "b", READ);
    set_open(false);
    cn_block_forbid(true);
}

static void end(struct world *world)
{
    cn_block_forbid(false); /* B3 */
    world_close(world);
}

/* Posts writes to the object until it is held back; returns how many. */
static int press(struct world *world, const char *name, struct answer **writes)
{
    int count = 0;
    while (cn_list_empty(&world->lane.pressed) && count < WRITES_MAX) {
        writes[count++] = post(world, name, WRITE);
        run_once(world);
    }
    CHECK(count < WRITES_MAX);
    return count;
}

static void finish(struct world *world, struct answer *answer)
{
    run_until(world, answer);
    CHECK_INT(0, answer->call.envelope.err.code);
    cn_free(answer);
}

TEST(press, O8_who_writes_more_than_the_disk_takes_waits_and_nobody_else)
{
    struct world world;
    static struct answer *writes[WRITES_MAX];
    begin(&world);
    int count = press(&world, "a", writes);
    CHECK_INT(count, delivered[WRITE]);
    CHECK_INT(1, presses);
    struct answer *more = post(&world, "a", WRITE);
    struct answer *other = post(&world, "b", READ);
    run_once(&world);
    CHECK_INT(count, delivered[WRITE]); /* it waits */
    CHECK_INT(3, delivered[READ]);      /* the other does not */
    set_open(true);
    for (int i = 0; i < count; i++)
        finish(&world, writes[i]);
    finish(&world, more);
    finish(&world, other);
    CHECK_INT(count + 1, delivered[WRITE]);
    CHECK_INT(presses, releases);
    CHECK(cn_list_empty(&world.lane.pressed));
    CHECK_INT(presses, (long long)cn_counter_get(&world.ns->metrics[0].held));
    end(&world);
}

/* At twice the bound nobody begins, and nothing is refused. */
TEST(press, O8_a_crowd_of_writers_is_let_in_one_after_the_other)
{
    enum { OBJECTS = 200 };
    struct world world;
    struct answer *writes[OBJECTS];
    char name[16];
    begin(&world);
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(name, sizeof(name), "o%d", i);
        writes[i] = post(&world, name, WRITE);
        run_once(&world);
    }
    CHECK(delivered[WRITE] < OBJECTS);
    CHECK(cn_log_pending(cn_store_log(world.store)) < 3 * (64ull << 20));
    set_open(true);
    for (int i = 0; i < OBJECTS; i++)
        finish(&world, writes[i]);
    CHECK_INT(OBJECTS, delivered[WRITE]);
    end(&world);
}

/* An object that is reset while it waits is waited for by nobody. */
TEST(press, O8_ends_with_the_object)
{
    struct world world;
    static struct answer *writes[WRITES_MAX];
    begin(&world);
    int count = press(&world, "a", writes);
    struct cn_object *object =
        CN_CONTAINER_OF(world.lane.pressed.next, struct cn_object, press_link);
    struct answer *more = post(&world, "a", WRITE);
    run_once(&world);
    cn_object_reset(object, CN_FAULT_RESET, CN_ECLOSED, "by the test");
    CHECK(cn_list_empty(&world.lane.pressed));
    run_until(&world, more);
    CHECK_INT(CN_ECLOSED, more->call.envelope.err.code);
    cn_free(more);
    set_open(true);
    for (int i = 0; i < count; i++)
        finish(&world, writes[i]);
    (void)ask(&world, "a", WRITE); /* a new instance writes on */
    end(&world);
}
