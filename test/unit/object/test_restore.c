/* SPDX-License-Identifier: Apache-2.0 */
/* Point-in-time recovery of objects of a class in C: bookmarks, the restore before the next start,
 * what survives a crash in between. */
#include "object/restore.h"

#include "object/alarm.h"
#include "store/database.h"
#include "test/lib/simdisk.h"
#include "test/unit/object/shard_world.h"

/* --- a register whose instances can ask for bookmarks and restores --------------------------- */

/* What to do; other numbers are stored as the register's value. */
enum {
    READ = -1,
    BOOKMARK = -2,
    BOOKMARK_AT = -3,
    RESTORE = -4,
    RESTORE_ABORT = -5,
    ABORT = -6,
    ALARM = -7
};

struct asked {
    struct cn_restore_request request;
    struct cn_call *call;
    struct world *world;
};

/* The argument and the answer of the call under way. */
static struct {
    char bookmark[CN_BOOKMARK_SIZE + 8];
    int64_t time_ms;
    struct cn_object_key source;
    bool from_source;
    struct cn_err err;
    char name[64]; /* as the object sees it when it starts */
} desk;

static int register_create(struct cn_object *object, void *class_data, void **instance,
                           struct cn_err *err)
{
    struct world *world = class_data;
    struct cn_database *db = cn_object_database(object, err);
    if (!db)
        return err->code;
    world->created++;
    *instance = world;
    snprintf(desk.name, sizeof(desk.name), "%s", object->name ? object->name : "");
    return cn_database_exec(db, "CREATE TABLE IF NOT EXISTS r(v INTEGER)", err);
}

static int64_t read_register(struct cn_object *object)
{
    struct cn_err err;
    struct cn_statement *statement;
    size_t used;
    struct cn_database *db = cn_object_database(object, &err);
    CHECK(db);
    CHECK_INT(0, cn_database_prepare(db, "SELECT max(v) FROM r", 20, 0, &statement, &used, &err));
    CHECK_INT(1, cn_statement_step(statement, &err));
    int64_t value = cn_statement_column_int(statement, 0);
    cn_statement_release(statement);
    return value;
}

static void on_asked(struct cn_restore_request *request, const struct cn_err *err)
{
    struct asked *asked = CN_CONTAINER_OF(request, struct asked, request);
    if (!err)
        memcpy(desk.bookmark, request->bookmark, CN_BOOKMARK_SIZE);
    desk.err = err ? *err : (struct cn_err){0};
    struct cn_object *object = asked->call ? asked->call->object : NULL;
    if (object && object->lane->stopping)
        object = NULL;
    if (object) {
        cn_object_enter(object);
        cn_call_reply(asked->call, NULL);
        cn_object_leave(object);
        cn_object_lane_step(object->lane);
    }
    cn_free(asked);
}

static void ask_history(struct cn_object *object, struct world *world, struct cn_call *call,
                        int what)
{
    struct asked *asked = CN_NEW(struct asked);
    asked->request.done = on_asked;
    asked->call = call;
    asked->world = world;
    if (what == BOOKMARK)
        cn_restore_bookmark_now(object, &asked->request);
    else if (what == BOOKMARK_AT)
        cn_restore_bookmark_at(object, desk.time_ms, &asked->request);
    else
        cn_restore_next(object, desk.from_source ? &desk.source : NULL, desk.bookmark,
                        strlen(desk.bookmark), &asked->request);
}

static void register_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    struct world *world = instance;
    struct cn_err err;
    if (call->kind == CN_CALL_ALARM) {
        world->alarms++;
        cn_alarm_begin(object, call->payload);
        cn_alarm_succeeded(object);
        cn_call_reply(call, NULL);
        return;
    }
    int what = (int)(intptr_t)call->payload;
    if (what == READ) {
        cn_call_reply(call, (void *)(intptr_t)read_register(object));
    } else if (what == ALARM) {
        CHECK_INT(0, cn_object_alarm_set(object, world->clock.wall_ms + 1000, &err));
        cn_call_reply(call, NULL);
    } else if (what == ABORT) {
        cn_object_reset(object, CN_FAULT_RESET, CN_EABORTED, "aborted");
    } else if (what == RESTORE_ABORT) {
        ask_history(object, world, NULL, RESTORE);
        cn_object_reset(object, CN_FAULT_RESET, CN_EABORTED, "aborted");
    } else if (what < 0) {
        ask_history(object, world, call, what);
    } else {
        char sql[64];
        snprintf(sql, sizeof(sql), "DELETE FROM r; INSERT INTO r VALUES(%d)", what);
        CHECK_INT(0, cn_database_exec(cn_object_database(object, &err), sql, &err));
        cn_call_reply(call, NULL);
    }
}

static void register_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    ((struct world *)instance)->destroyed++;
}

static const struct cn_class register_class = {
    .create = register_create, .deliver = register_deliver, .destroy = register_destroy};

/* A call that ends in a reset. */
static void ask_reset(struct world *world, const char *name, int what)
{
    struct answer *answer = post(world, name, what);
    run_until(world, answer);
    CHECK_INT(CN_EABORTED, answer->call.envelope.err.code);
    cn_free(answer);
}

static void bookmark_of(struct world *world, const char *name, char bookmark[CN_BOOKMARK_SIZE])
{
    ask(world, name, BOOKMARK);
    CHECK_INT(0, desk.err.code);
    memcpy(bookmark, desk.bookmark, CN_BOOKMARK_SIZE);
}

/* The register was 1 and is 2; the bookmark of 1 lies on the desk. */
static void set_scene(struct world *world)
{
    char one[CN_BOOKMARK_SIZE];
    ask(world, "a", 1);
    bookmark_of(world, "a", one);
    ask(world, "a", 2);
    memcpy(desk.bookmark, one, sizeof(one));
}

TEST(restore, DO_PITR_1_bookmarks_are_ordered_and_name_the_state_at_the_end_of_the_turn)
{
    struct world world;
    char one[CN_BOOKMARK_SIZE], two[CN_BOOKMARK_SIZE];
    world_open(&world, test_dir(), &register_class);
    ask(&world, "a", 1);
    bookmark_of(&world, "a", one);
    ask(&world, "a", 2);
    bookmark_of(&world, "a", two);
    CHECK_INT(CN_BOOKMARK_SIZE - 1, strlen(one));
    CHECK(strcmp(one, two) < 0);
    ask(&world, "a", 3);
    memcpy(desk.bookmark, two, sizeof(two));
    ask(&world, "a", RESTORE);
    CHECK_INT(0, desk.err.code);
    CHECK_INT(3, ask(&world, "a", READ)); /* not before the next start */
    ask_reset(&world, "a", ABORT);
    CHECK_INT(2, ask(&world, "a", READ));
    world_close(&world);
}

TEST(restore, DO_PITR_2_a_moment_has_a_bookmark_unless_it_is_yet_to_come)
{
    struct world world;
    world_open(&world, test_dir(), &register_class);
    ask(&world, "a", 1);
    desk.time_ms = world.clock.wall_ms;
    world.clock.wall_ms += 1000;
    ask(&world, "a", 2);
    ask(&world, "a", BOOKMARK_AT);
    CHECK_INT(0, desk.err.code);
    ask(&world, "a", RESTORE);
    CHECK_INT(0, desk.err.code);
    ask_reset(&world, "a", ABORT);
    CHECK_INT(1, ask(&world, "a", READ));
    desk.time_ms = world.clock.wall_ms + 1;
    ask(&world, "a", BOOKMARK_AT);
    CHECK_INT(CN_EINVALID, desk.err.code);
    world_close(&world);
}

TEST(restore, DO_PITR_3_the_undo_bookmark_brings_back_what_was_there_before_the_restore)
{
    struct world world;
    char undo[CN_BOOKMARK_SIZE];
    world_open(&world, test_dir(), &register_class);
    set_scene(&world);
    ask(&world, "a", RESTORE);
    memcpy(undo, desk.bookmark, sizeof(undo));
    ask(&world, "a", 3); /* after the request, before the restore */
    ask_reset(&world, "a", ABORT);
    CHECK_INT(1, ask(&world, "a", READ));
    ask(&world, "a", 4);
    memcpy(desk.bookmark, undo, sizeof(undo));
    ask(&world, "a", RESTORE);
    CHECK_INT(0, desk.err.code);
    ask_reset(&world, "a", ABORT);
    CHECK_INT(3, ask(&world, "a", READ));
    ask_reset(&world, "a", ABORT); /* once, not at every start */
    ask(&world, "a", 5);
    ask_reset(&world, "a", ABORT);
    CHECK_INT(5, ask(&world, "a", READ));
    world_close(&world);
}

TEST(restore, DO_PITR_3_a_request_survives_the_end_of_the_node)
{
    struct world world;
    const char *dir = test_dir();
    world_open(&world, dir, &register_class);
    ask(&world, "b", 7);
    set_scene(&world);
    ask(&world, "a", RESTORE);
    CHECK_INT(0, desk.err.code);
    world_close(&world);
    world_open(&world, dir, &register_class);
    CHECK_INT(1, ask(&world, "a", READ));
    CHECK_STR("a", desk.name);
    CHECK_INT(7, ask(&world, "b", READ));
    ask(&world, "a", 3);
    world_close(&world);
    world_open(&world, dir, &register_class);
    CHECK_INT(3, ask(&world, "a", READ));
    world_close(&world);
}

TEST(restore, DO_PITR_3_the_next_instance_waits_for_a_request_that_nobody_awaited)
{
    struct world world;
    world_open(&world, test_dir(), &register_class);
    set_scene(&world);
    struct answer *aborted = post(&world, "a", RESTORE_ABORT);
    struct answer *read = post(&world, "a", READ);
    struct answer *again = post(&world, "a", READ);
    run_until(&world, aborted);
    run_until(&world, read);
    run_until(&world, again);
    CHECK_INT(0, read->call.envelope.err.code);
    CHECK_INT(1, (intptr_t)read->call.result);
    CHECK_INT(1, (intptr_t)again->call.result);
    CHECK_INT(2, world.created);
    cn_free(aborted);
    cn_free(read);
    cn_free(again);
    world_close(&world);
}

TEST(restore, bad_bookmarks_are_refused_and_change_nothing)
{
    struct world world;
    char other[CN_BOOKMARK_SIZE];
    world_open(&world, test_dir(), &register_class);
    ask(&world, "b", 1);
    bookmark_of(&world, "b", other);
    ask(&world, "a", 2);
    snprintf(desk.bookmark, sizeof(desk.bookmark), "not a bookmark");
    ask(&world, "a", RESTORE);
    CHECK_INT(CN_EINVALID, desk.err.code);
    memcpy(desk.bookmark, other, sizeof(other));
    ask(&world, "a", RESTORE); /* another object's */
    CHECK_INT(CN_EINVALID, desk.err.code);
    CHECK_INT(0, world.lane.restores.count);
    ask_reset(&world, "a", ABORT);
    CHECK_INT(2, ask(&world, "a", READ));
    world_close(&world);
}

TEST(restore, DO_PITR_5_a_snapshot_of_one_object_becomes_the_state_of_another)
{
    struct world world;
    const char *dir = test_dir();
    char moment[CN_BOOKMARK_SIZE];
    world_open(&world, dir, &register_class);
    ask(&world, "a", 1);
    bookmark_of(&world, "a", moment);
    ask(&world, "a", 2);
    ask(&world, "new", READ);
    cn_id_from_name(&world.ns->keys, CN_JURISDICTION_NONE, "a", 1, desk.source.id);
    desk.source.namespace_id = world.ns->id;
    desk.from_source = true;
    memcpy(desk.bookmark, moment, sizeof(moment));
    ask(&world, "new", RESTORE);
    desk.from_source = false;
    CHECK_INT(0, desk.err.code);
    ask_reset(&world, "new", ABORT);
    CHECK_INT(1, ask(&world, "new", READ));
    CHECK_STR("new", desk.name);
    CHECK_INT(2, ask(&world, "a", READ));
    world_close(&world);
}

static uv_sem_t threads;
static void wait_thread(uv_work_t *work)
{
    (void)work;
    uv_sem_wait(&threads);
}

/* A7, O7: the alarm that is due is of the state that goes; looking at it is not in the way. */
TEST(restore, an_alarm_that_is_due_meanwhile_does_not_hinder_it)
{
    enum { THREADS = 4 };
    struct world world;
    uv_work_t works[THREADS];
    world_open(&world, test_dir(), &register_class);
    set_scene(&world);
    ask(&world, "a", ALARM);
    ask(&world, "a", RESTORE);
    ask_reset(&world, "a", ABORT);
    CHECK_INT(0, uv_sem_init(&threads, 0));
    for (int i = 0; i < THREADS; i++) /* the restore waits for a thread */
        CHECK_INT(0, uv_queue_work(&world.loop, &works[i], wait_thread, NULL));
    struct answer *read = post(&world, "a", READ);
    cn_object_lane_step(&world.lane);
    world.clock.wall_ms += 5000;
    for (int i = 0; i < 10; i++)
        cn_alarm_tick(&world.lane);
    for (int i = 0; i < THREADS; i++)
        uv_sem_post(&threads);
    run_until(&world, read);
    CHECK_INT(0, read->call.envelope.err.code);
    CHECK_INT(1, (intptr_t)read->call.result);
    world.clock.wall_ms += 5000;
    cn_alarm_tick(&world.lane);
    CHECK_INT(1, ask(&world, "a", READ));
    CHECK_INT(0, world.alarms); /* there was none at that moment */
    cn_free(read);
    world_close(&world);
    uv_sem_destroy(&threads);
}

TEST(restore, a_lane_that_stops_meanwhile_leaves_nothing_behind)
{
    struct world world;
    const char *dir = test_dir();
    world_open(&world, dir, &register_class);
    set_scene(&world);
    struct answer *aborted = post(&world, "a", RESTORE_ABORT);
    struct answer *read = post(&world, "a", READ);
    run_until(&world, aborted); /* the request is on the thread pool, the read waits for it */
    world_close(&world);
    CHECK(read->done && read->call.envelope.err.code == CN_ECLOSED);
    cn_free(aborted);
    cn_free(read);
    world_open(&world, dir, &register_class);
    CHECK_INT(1, ask(&world, "a", READ));
    world_close(&world);
}

/* --- losing power at every operation --------------------------------------------------------- */

enum { IMAGES_MAX = 300 };
struct images {
    struct simdisk *sim;
    pthread_mutex_t lock;
    struct simdisk *items[IMAGES_MAX];
    int count;
    bool on;
};

static void take_image(void *data, const char *name, const char *path)
{
    struct images *images = data;
    (void)name, (void)path;
    pthread_mutex_lock(&images->lock);
    if (images->on && images->count < IMAGES_MAX) {
        images->items[images->count] = simdisk_crash(images->sim, (uint64_t)images->count);
        images->count++;
    }
    pthread_mutex_unlock(&images->lock);
}

static void set_images(struct images *images, bool on)
{
    pthread_mutex_lock(&images->lock);
    images->on = on;
    pthread_mutex_unlock(&images->lock);
}

/* P1, P2: from the answer on, whatever happens, the next instance finds the restored state. */
TEST(restore, DO_PITR_3_a_power_loss_between_request_and_restore_makes_no_difference)
{
    struct images images = {.sim = simdisk_new(), .lock = PTHREAD_MUTEX_INITIALIZER};
    struct world world;
    world_open_on(&world, simdisk_disk(images.sim), CN_LOG_FSYNC, &register_class);
    set_scene(&world);
    simdisk_set_hook(images.sim, SIMDISK_CHANGES, take_image, &images);
    ask(&world, "a", RESTORE);
    CHECK_INT(0, desk.err.code);
    set_images(&images, true);
    ask_reset(&world, "a", ABORT);
    CHECK_INT(1, ask(&world, "a", READ));
    set_images(&images, false);
    world_close(&world);
    CHECK(images.count > 5 && images.count < IMAGES_MAX);
    for (int i = 0; i < images.count; i++) {
        world_open_on(&world, simdisk_disk(images.items[i]), CN_LOG_FSYNC, &register_class);
        CHECK_INT(1, ask(&world, "a", READ));
        ask(&world, "a", 3);
        ask_reset(&world, "a", ABORT);
        CHECK_INT(3, ask(&world, "a", READ)); /* and it is over then */
        world_close(&world);
        simdisk_free(images.items[i]);
    }
    simdisk_free(images.sim);
}

/* --- shards that go --------------------------------------------------------------------------- */

TEST(restore, S5_what_was_asked_is_carried_out_where_the_shard_is_opened_next)
{
    struct shard_world one, two;
    const char *dir = test_dir();
    shard_world_open(&one, dir, &register_class);
    shard_world_start(&two, dir, &register_class);
    unsigned shard = shard_of_name(&one, "a");
    set_scene(&one.world);
    ask(&one.world, "a", RESTORE);
    CHECK_INT(0, desk.err.code);
    shard_close(&one, shard);
    CHECK_INT(0, one.world.lane.restores.count);
    two.world.clock.wall_ms = one.world.clock.wall_ms;
    shard_open(&two, shard);
    await_state(&two, shard, CN_SHARD_OPEN);
    CHECK_INT(1, two.world.lane.restores.count);
    CHECK_INT(1, ask(&two.world, "a", READ));
    CHECK_INT(0, two.world.lane.restores.count);
    shard_world_close(&one);
    shard_world_close(&two);
}

TEST(restore, S4_close_waits_for_a_thread_that_works_on_a_restore)
{
    struct shard_world own;
    struct outcome closed = {0};
    shard_world_open(&own, test_dir(), &register_class);
    unsigned shard = shard_of_name(&own, "a");
    set_scene(&own.world);
    ask(&own.world, "a", RESTORE);
    ask_reset(&own.world, "a", ABORT);
    struct answer *starts = post(&own.world, "a", READ);
    cn_object_lane_step(&own.world.lane); /* a thread works on it from now on */
    CHECK_INT(1, own.world.lane.objects.count);
    cn_shards_close(own.world.shards, shard, on_outcome, &closed);
    await_outcome(&own, &closed);
    under_close(&own.under[shard]);
    run_until(&own.world, starts);
    CHECK_INT(CN_ECLOSED, starts->call.envelope.err.code);
    cn_free(starts);
    while (!cn_list_empty(&own.world.lane.shards[shard].objects)) /* swept by the clock */
        uv_run(&own.world.loop, UV_RUN_ONCE);
    cn_object_lane_check(&own.world.lane);
    shard_open(&own, shard);
    await_state(&own, shard, CN_SHARD_OPEN);
    CHECK_INT(1, ask(&own.world, "a", READ)); /* P2: once or twice, to the same state */
    shard_world_close(&own);
}

TEST(restore, a_snapshot_of_an_object_in_another_shard_is_refused)
{
    struct shard_world own;
    shard_world_open(&own, test_dir(), &register_class);
    char name[16] = "b";
    while (shard_of_name(&own, name) == shard_of_name(&own, "a"))
        strcat(name, "b");
    set_scene(&own.world);
    desk.source.namespace_id = own.world.ns->id;
    cn_id_from_name(&own.world.ns->keys, CN_JURISDICTION_NONE, name, strlen(name), desk.source.id);
    desk.from_source = true;
    ask(&own.world, "a", RESTORE);
    desk.from_source = false;
    CHECK_INT(CN_EUNSUPPORTED, desk.err.code);
    CHECK_INT(2, ask(&own.world, "a", READ));
    shard_world_close(&own);
}
