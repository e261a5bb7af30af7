/* SPDX-License-Identifier: Apache-2.0 */
/* Alarms: when they fire, in which order, how often, and what a crash leaves of them. */
#include "object/alarm.h"

#include <stdio.h>

#include "test/lib/simdisk.h"
#include "test/unit/object/counter.h"

static void fire_due(struct world *world, int64_t wait_ms)
{
    int before = world->alarms;
    world->clock.wall_ms += wait_ms;
    cn_alarm_tick(&world->lane);
    while (world->alarms == before)
        uv_run(&world->loop, UV_RUN_ONCE);
    ask(world, "b", READ);
}

/* Time goes by, and nothing is due. */
static void fire_none(struct world *world, int64_t wait_ms)
{
    int before = world->alarms;
    world->clock.wall_ms += wait_ms;
    cn_alarm_tick(&world->lane);
    ask(world, "b", READ);
    settle(world);
    CHECK_INT(before, world->alarms);
}

/* Ends the run that is parked, well. */
static void succeed_parked(struct world *world)
{
    struct cn_call *call = world->parked;
    struct cn_object *object = call->object;
    world->parked = NULL;
    cn_object_enter(object);
    cn_alarm_succeeded(object);
    cn_call_reply(call, NULL);
    cn_object_leave(object);
    settle(world);
}

TEST(alarm, DO_AL_1_an_alarm_fires_once_when_it_is_due)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    ask(&world, "a", SET_ALARM);
    cn_alarm_tick(&world.lane);
    ask(&world, "b", READ);
    CHECK_INT(0, world.alarms);
    world.clock.wall_ms += 5000;
    cn_alarm_tick(&world.lane);
    while (!world.alarms)
        uv_run(&world.loop, UV_RUN_ONCE);
    ask(&world, "b", READ);
    world.clock.wall_ms += 100000;
    cn_alarm_tick(&world.lane);
    ask(&world, "b", READ);
    CHECK_INT(1, world.alarms);
    world_close(&world);
}

/* The server starts without the worker that has the class; a later deployment brings it back. */
TEST(alarm, A4_an_overdue_alarm_of_an_unknown_namespace_fires_when_it_is_known)
{
    struct world world;
    const char *dir = test_dir();
    world_open(&world, dir, &counter);
    ask(&world, "a", SET_ALARM);
    world_close(&world);
    world_namespace = "test/Other";
    world_open(&world, dir, &counter);
    world_namespace = NULL;
    world.clock.wall_ms += 6000;
    for (int i = 0; i < 3; i++) {
        cn_alarm_tick(&world.lane);
        ask(&world, "b", READ);
    }
    CHECK_INT(0, world.alarms);
    struct cn_namespace *ns;
    struct cn_err err;
    CHECK_INT(0, cn_node_namespace(world.node, "test/Counter", &ns, &err));
    cn_alarm_tick(&world.lane);
    for (uint64_t end = uv_hrtime() + 30000000000u; !world.alarms && uv_hrtime() < end;)
        uv_run(&world.loop, UV_RUN_NOWAIT);
    CHECK_INT(1, world.alarms);
    world_close(&world);
}

TEST(alarm, Q1_alarms_of_a_lane_that_has_not_started_wait_for_it)
{
    struct world world;
    const char *dir = test_dir();
    world_open(&world, dir, &counter);
    for (char name[] = "a"; name[0] <= 'p'; name[0]++)
        ask(&world, name, SET_ALARM);
    world_close(&world);
    int fired = 0;
    for (unsigned lanes = 2; lanes >= 1; lanes--) { /* the first of two, then all there is */
        world_lane_count = lanes;
        world_open(&world, dir, &counter);
        world_lane_count = 0;
        world.clock.wall_ms += 60000;
        cn_alarm_tick(&world.lane);
        while (lanes == 1 ? fired + world.alarms < 16 : world.alarms < 1)
            uv_run(&world.loop, UV_RUN_ONCE);
        for (int i = 0; i < 100; i++)
            uv_run(&world.loop, UV_RUN_NOWAIT);
        fired += world.alarms;
        CHECK(lanes == 1 ? fired == 16 : fired < 16);
        world_close(&world);
    }
}

TEST(alarm, DO_AL_3_an_overdue_alarm_fires_after_a_restart)
{
    struct world world;
    const char *dir = test_dir();
    world_open(&world, dir, &counter);
    ask(&world, "a", SET_ALARM);
    world_close(&world);
    world_open(&world, dir, &counter);
    world.clock.wall_ms += 60000;
    cn_alarm_tick(&world.lane);
    while (!world.alarms)
        uv_run(&world.loop, UV_RUN_ONCE);
    ask(&world, "b", READ);
    CHECK_INT(1, world.alarms);
    world_close(&world);
}

TEST(alarm, DO_AL_4_a_failing_alarm_is_tried_six_more_times_and_then_dropped)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    world.fail_alarm = 1;
    ask(&world, "a", SET_ALARM);
    int64_t delay = 5000;
    for (int run = 1; run <= 7; run++) {
        world.clock.wall_ms += delay - 1;
        cn_alarm_tick(&world.lane);
        ask(&world, "b", READ);
        CHECK_INT(run - 1, world.alarms); /* not early */
        world.clock.wall_ms += 1 + delay / 4 + 1;
        cn_alarm_tick(&world.lane);
        while (world.alarms < run)
            uv_run(&world.loop, UV_RUN_ONCE);
        ask(&world, "b", READ);
        delay = 2000 << (run - 1);
    }
    world.clock.wall_ms += 10000000;
    cn_alarm_tick(&world.lane);
    ask(&world, "b", READ);
    CHECK_INT(7, world.alarms);
    world_close(&world);
}

TEST(alarm, DO_AL_4_retries_are_counted_though_the_object_is_evicted_between_them)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    world.fail_alarm = 1;
    ask(&world, "a", SET_ALARM);
    fire_due(&world, 5000);
    for (unsigned run = 1; run <= 6; run++) {
        cn_object_lane_evict(&world.lane, 100);
        fire_due(&world, 2 * (2000 << (run - 1)));
        CHECK_INT(run, world.last_retry);
    }
    world.clock.wall_ms += 10000000;
    cn_alarm_tick(&world.lane);
    ask(&world, "b", READ);
    CHECK_INT(7, world.alarms);
    world_close(&world);
}

TEST(alarm, DO_AL_8_an_alarm_that_runs_for_15_minutes_is_ended_and_tried_again)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    world.park_alarm = 1;
    ask(&world, "a", SET_ALARM);
    fire_due(&world, 5000);
    world.clock.wall_ms += 15 * 60 * 1000;
    cn_alarm_tick(&world.lane);
    ask(&world, "b", READ);
    CHECK_INT(0, world.destroyed);
    world.clock.wall_ms += 1;
    cn_alarm_tick(&world.lane);
    ask(&world, "b", READ);
    CHECK_INT(1, world.destroyed);
    fire_due(&world, 5000);
    CHECK_INT(1, world.last_retry);
    world_close(&world);
}

TEST(alarm, A1_one_that_becomes_due_while_another_runs_waits_for_its_end)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    world.park_alarm = 1;
    ask(&world, "a", SET_ALARM);
    fire_due(&world, 5000);
    ask(&world, "a", SET_ALARM); /* meanwhile: this one stands (A2) */
    fire_none(&world, 5000);
    fire_none(&world, 5000);
    world.park_alarm = 0;
    succeed_parked(&world);
    for (int i = 0; i < 1000 && world.alarms < 2; i++)
        uv_run(&world.loop, UV_RUN_ONCE);
    CHECK_INT(2, world.alarms);
    fire_none(&world, 10000000);
    world_close(&world);
}

/* The run's end comes to a lane that has let the object go: the one that waits is looked for in the
 * catalog. */
TEST(alarm, A5_one_that_waits_for_the_end_of_another_outlives_its_object)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    world.park_alarm = 1;
    ask(&world, "a", SET_ALARM);
    fire_due(&world, 5000);
    ask(&world, "a", SET_ALARM);
    fire_none(&world, 5000);
    world.park_alarm = 0;
    struct cn_call *call = world.parked;
    struct cn_object *object = call->object;
    world.parked = NULL;
    cn_object_enter(object);
    cn_alarm_succeeded(object);
    cn_call_reply(call, NULL);
    cn_object_leave(object);
    for (uint64_t end = uv_hrtime() + 30000000000u; world.lane.live_count && uv_hrtime() < end;) {
        cn_object_lane_evict(&world.lane, 10);
        cn_object_lane_step(&world.lane);
    }
    CHECK_INT(0, world.lane.live_count);
    for (uint64_t end = uv_hrtime() + 30000000000u; world.alarms < 2 && uv_hrtime() < end;)
        uv_run(&world.loop, UV_RUN_NOWAIT);
    CHECK_INT(2, world.alarms);
    world_close(&world);
}

TEST(alarm, A2_a_power_loss_while_it_runs_fires_it_again)
{
    struct world world;
    struct simdisk *sim = simdisk_new();
    world_open_on(&world, simdisk_disk(sim), CN_LOG_FSYNC, &counter);
    world.park_alarm = 1;
    ask(&world, "a", SET_ALARM);
    fire_due(&world, 5000);
    struct simdisk *during = simdisk_crash(sim, test_seed());
    succeed_parked(&world);
    ask(&world, "a", ADD); /* what came after it is durable, so its end is too */
    struct simdisk *after = simdisk_crash(sim, test_seed());
    world_close(&world);

    world_open_on(&world, simdisk_disk(during), CN_LOG_FSYNC, &counter);
    fire_due(&world, 5000);
    CHECK_INT(1, world.alarms);
    CHECK_INT(0, world.last_retry);
    world_close(&world);
    world_open_on(&world, simdisk_disk(after), CN_LOG_FSYNC, &counter);
    fire_none(&world, 10000000);
    world_close(&world);
    simdisk_free(sim);
    simdisk_free(during);
    simdisk_free(after);
}

TEST(alarm, A2_one_that_its_own_run_sets_stands_though_the_run_fails)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    world.park_alarm = 1;
    ask(&world, "a", SET_ALARM);
    fire_due(&world, 5000);
    world.alarm_in_ms = 30000;
    ask(&world, "a", SET_ALARM);
    world.park_alarm = 0;
    struct cn_object *object = world.parked->object;
    cn_object_enter(object);
    cn_call_fail(world.parked, CN_FAULT_REMOTE, CN_EJS, "alarm failed");
    cn_object_leave(object);
    settle(&world);
    fire_none(&world, 29999); /* no retry after two seconds: the new one is the alarm */
    fire_due(&world, 1);
    CHECK_INT(0, world.last_retry);
    world_close(&world);
}

/* The run that is parked opens a transaction and sets or deletes the alarm in it. */
static int begin_and_set(struct world *world, int64_t alarm_ms)
{
    struct cn_object *object = world->parked->object;
    struct cn_err err;
    cn_object_enter(object);
    object->transactions++;
    int level = cn_object_savepoint(object, &err);
    CHECK_INT(0, cn_object_alarm_set(object, alarm_ms, &err));
    cn_object_leave(object);
    return level;
}

static void end_it(struct cn_object *object, int level, bool keep)
{
    struct cn_err err;
    cn_object_enter(object);
    CHECK_INT(0, cn_object_savepoint_end(object, level, keep, &err));
    object->transactions--;
    cn_object_leave(object);
}

static void check_alarm(struct cn_object *object, int64_t want_ms)
{
    struct cn_err err;
    int64_t alarm;
    CHECK_INT(0, cn_object_alarm_get(object, &alarm, &err));
    CHECK_INT(want_ms, alarm);
}

/* In the run, or as what the run has left open, a transaction sets another or deletes it; it is
 * undone or kept before the run ends, or afterwards. */
TEST(alarm, A8_one_that_a_transaction_has_set_counts_if_that_is_kept)
{
    for (int scene = 0; scene < 8; scene++) {
        bool sets = scene & 1, keep = scene & 2, late = scene & 4;
        struct world world;
        world_open(&world, test_dir(), &counter);
        world.park_alarm = 1;
        ask(&world, "a", SET_ALARM);
        fire_due(&world, 5000);
        struct cn_object *object = world.parked->object;
        int64_t next_ms = sets ? world.clock.wall_ms + 60000 : CN_ALARM_NONE;
        int level = begin_and_set(&world, next_ms);
        check_alarm(object, next_ms);
        if (!late)
            end_it(object, level, keep);
        if (!late && !keep)
            check_alarm(object, CN_ALARM_NONE); /* DO-AL-2 again */
        succeed_parked(&world);
        if (late)
            end_it(object, level, keep);
        check_alarm(object, keep ? next_ms : CN_ALARM_NONE);
        world.park_alarm = 0;
        fire_none(&world, 59000);
        if (keep && sets)
            fire_due(&world, 1000);
        fire_none(&world, 10000000);
        world_close(&world);
    }
}

/* Its failure is counted too: the next try is not the first. */
TEST(alarm, A8_a_run_that_fails_after_it_has_undone_another_is_tried_again)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    world.park_alarm = 1;
    ask(&world, "a", SET_ALARM);
    fire_due(&world, 5000);
    struct cn_object *object = world.parked->object;
    end_it(object, begin_and_set(&world, world.clock.wall_ms + 60000), false);
    cn_object_enter(object);
    cn_call_fail(world.parked, CN_FAULT_REMOTE, CN_EJS, "alarm failed");
    cn_object_leave(object);
    settle(&world);
    world.park_alarm = 0;
    fire_none(&world, 1999);
    fire_due(&world, 501);
    CHECK_INT(1, world.last_retry);
    world_close(&world);
}

TEST(alarm, A3_failures_that_are_not_its_own_are_not_counted_and_wait_for_1024_seconds_at_most)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    world.fail_alarm = 1;
    world.alarm_faults = CN_FAULT_RESET;
    ask(&world, "a", SET_ALARM);
    fire_due(&world, 5000);
    int64_t delay = 2000;
    for (int run = 0; run < 14; run++) {
        fire_none(&world, delay - 1);
        fire_due(&world, 1 + delay / 4);
        CHECK_INT(run + 1, world.last_retry); /* told, and not given up */
        if (delay < 1024000)
            delay *= 2;
    }
    CHECK_INT(1024000, delay);
    world.fail_alarm = 0;
    fire_due(&world, 2 * delay);
    fire_none(&world, 2 * delay);
    world_close(&world);
}

TEST(alarm, one_that_was_moved_fires_at_its_new_time_and_one_that_was_deleted_never)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    ask(&world, "moved", SET_ALARM);
    ask(&world, "deleted", SET_ALARM);
    world.alarm_in_ms = 20000;
    ask(&world, "moved", SET_ALARM);
    ask(&world, "deleted", DELETE_ALARM);
    fire_none(&world, 19999);
    fire_due(&world, 1);
    CHECK_INT(1, world.alarms);
    fire_none(&world, 10000000);
    world_close(&world);
}

TEST(alarm, far_ahead_of_the_window_it_is_on_disk_alone_until_it_is_near)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    cn_alarm_tick(&world.lane);
    world.alarm_in_ms = 2 * 60 * 60 * 1000;
    ask(&world, "a", SET_ALARM);
    cn_object_lane_evict(&world.lane, 10);
    for (int64_t gone = 0; gone + 20000 < world.alarm_in_ms; gone += 20000)
        fire_none(&world, 20000);
    fire_due(&world, 20000);
    CHECK_INT(1, world.alarms);
    world_close(&world);
}

static void set_at(struct world *world, int number, int64_t in_ms)
{
    char name[16];
    snprintf(name, sizeof(name), "n%d", number);
    world->alarm_in_ms = in_ms;
    ask(world, name, SET_ALARM);
}

TEST(alarm, they_fire_in_the_order_of_their_times_whatever_the_order_they_were_set_in)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    enum { COUNT = 150 };
    for (int i = 0; i < COUNT; i++)
        set_at(&world, i, 1000 + (i * 7919) % 50000);
    world.clock.wall_ms += 60000;
    cn_alarm_tick(&world.lane);
    while (world.alarms < COUNT)
        uv_run(&world.loop, UV_RUN_ONCE);
    CHECK_INT(0, world.unordered);
    world_close(&world);
}

/* RUNNING_MAX of alarm.c: 256 at once on a lane. */
TEST(alarm, a_storm_goes_in_waves)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    enum { COUNT = 300, WAVE = 256 };
    for (int i = 0; i < COUNT; i++)
        set_at(&world, i, 1000);
    world.park_alarm = 1;
    world.clock.wall_ms += 1000;
    cn_alarm_tick(&world.lane);
    while (world.alarms < WAVE)
        uv_run(&world.loop, UV_RUN_ONCE);
    settle(&world);
    cn_alarm_tick(&world.lane);
    settle(&world);
    size_t running, due;
    cn_alarm_counts(&world.lane, &running, &due);
    CHECK_INT(WAVE, world.alarms);
    CHECK_INT(WAVE, running);
    CHECK_INT(COUNT - WAVE, due);
    world.park_alarm = 0;
    succeed_parked(&world); /* the end of one lets the rest in, one after the other */
    while (world.alarms < COUNT)
        uv_run(&world.loop, UV_RUN_ONCE);
    while (running != WAVE - 1) { /* the last answer waits for its writes */
        uv_run(&world.loop, UV_RUN_ONCE);
        cn_alarm_counts(&world.lane, &running, &due);
    }
    CHECK_INT(0, due);
    world_close(&world); /* with the others under way */
}

/* A8: another that its last turn sets is undone with that turn. */
TEST(alarm, one_that_is_given_up_is_gone_with_what_its_run_wrote)
{
    for (int sets = 0; sets < 2; sets++) {
        struct world world;
        world_open(&world, test_dir(), &counter);
        CHECK_INT(1, ask(&world, "a", ADD));
        ask(&world, "a", SET_ALARM);
        world.abort_alarm = 1;
        world.alarm_in_ms = sets * 60000;
        fire_due(&world, 5000);
        CHECK_INT(1, ask(&world, "a", READ));
        int64_t fired = world.alarms;
        for (int i = 0; i < 12; i++)
            world.clock.wall_ms += 1024000, cn_alarm_tick(&world.lane), settle(&world);
        CHECK_INT(fired, world.alarms);
        world_close(&world);
    }
}
