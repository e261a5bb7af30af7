/* SPDX-License-Identifier: Apache-2.0 */
/* The core of objects with a class in C: calls, turns, gates, eviction, reset, alarms. */
#include "object/object.h"

#include <stdlib.h>

#include "base/mem.h"
#include "object/alarm.h"
#include "store/database.h"
#include "test/unit/object/world.h"

/* --- a counter in C -------------------------------------------------------------------------- */

enum { ADD = 1, READ, PARK, ABORT, LOCK, FAIL, SET_ALARM, HOLD, WAIT };

static int counter_create(struct cn_object *object, void *class_data, void **instance,
                          struct cn_err *err)
{
    struct world *world = class_data;
    world->created++;
    if (world->fail_create)
        return cn_err_set(err, CN_EJS, "constructor failed");
    struct cn_database *db = cn_object_database(object, err);
    if (!db)
        return err->code;
    *instance = world;
    if (world->write_once && world->created > 1)
        return 0;
    int rc = cn_database_exec(db,
                              "CREATE TABLE IF NOT EXISTS c(n INTEGER);"
                              "INSERT INTO c SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM c)",
                              err);
    return rc;
}

static int64_t read_counter(struct cn_object *object)
{
    struct cn_err err;
    struct cn_statement *statement;
    size_t used;
    struct cn_database *db = cn_object_database(object, &err);
    CHECK(db);
    CHECK_INT(0, cn_database_prepare(db, "SELECT n FROM c", 15, 0, &statement, &used, &err));
    CHECK_INT(1, cn_statement_step(statement, &err));
    int64_t n = cn_statement_column_int(statement, 0);
    cn_statement_release(statement);
    return n;
}

static void counter_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    struct world *world = instance;
    struct cn_err err;
    if (call->kind == CN_CALL_ALARM) {
        world->alarms++;
        cn_alarm_begin(object, call->payload);
        world->last_retry = ((struct cn_alarm_info *)call->payload)->retry_count;
        if (world->park_alarm)
            return;
        int64_t alarm;
        CHECK_INT(0, cn_object_alarm_get(object, &alarm, &err));
        CHECK_INT(CN_ALARM_NONE, alarm);
        if (world->fail_alarm) {
            cn_call_fail(call, CN_FAULT_REMOTE, CN_EJS, "alarm failed");
            return;
        }
        cn_alarm_succeeded(object);
        cn_call_reply(call, NULL);
        return;
    }
    switch ((intptr_t)call->payload) {
    case ADD:
        CHECK_INT(
            0, cn_database_exec(cn_object_database(object, &err), "UPDATE c SET n = n + 1", &err));
        cn_call_reply(call, (void *)(intptr_t)read_counter(object));
        break;
    case READ:
        cn_call_reply(call, (void *)(intptr_t)read_counter(object));
        break;
    case PARK:
        world->parked = call;
        break;
    case LOCK:
        cn_object_lock(object);
        world->parked = call;
        break;
    case ABORT:
        CHECK_INT(
            0, cn_database_exec(cn_object_database(object, &err), "UPDATE c SET n = 1000", &err));
        cn_object_reset(object, CN_FAULT_RESET, CN_EABORTED, "aborted on purpose");
        break;
    case HOLD:
        cn_object_hold(object);
        cn_call_reply(call, NULL);
        break;
    case WAIT:
        cn_object_wait(object);
        cn_call_reply(call, NULL);
        break;
    case FAIL:
        cn_call_fail(call, CN_FAULT_REMOTE, CN_EJS, "thrown by the object");
        break;
    case SET_ALARM:
        CHECK_INT(0, cn_object_alarm_set(object, world->clock.wall_ms + 5000, &err));
        cn_call_reply(call, NULL);
        break;
    }
}

static void counter_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    ((struct world *)instance)->destroyed++;
}

static const struct cn_class counter = {.create = counter_create,
                                        .deliver = counter_deliver,
                                        .destroy = counter_destroy,
                                        .lets_go = true};

TEST(object, counts_and_keeps_the_count_over_a_restart)
{
    struct world world;
    const char *dir = test_dir();
    world_open(&world, dir, &counter);
    CHECK_INT(1, ask(&world, "a", ADD));
    CHECK_INT(2, ask(&world, "a", ADD));
    CHECK_INT(1, ask(&world, "b", ADD));
    CHECK_INT(2, world.created);
    world_close(&world);
    CHECK_INT(2, world.destroyed);
    world_open(&world, dir, &counter);
    CHECK_INT(2, ask(&world, "a", READ));
    CHECK_INT(1, ask(&world, "b", READ));
    world_close(&world);
}

TEST(object, DO_TX_5_a_reply_waits_until_its_write_is_durable)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    struct answer *answers[50];
    for (int i = 0; i < 50; i++)
        answers[i] = post(&world, "a", ADD);
    for (int i = 0; i < 50; i++) {
        run_until(&world, answers[i]);
        CHECK_INT(i + 1, (intptr_t)answers[i]->call.result); /* C1: in order */
        CHECK(cn_store_durable(world.store) >= answers[i]->call.output.lsn);
        CHECK(answers[i]->call.output.lsn > 0);
        cn_free(answers[i]);
    }
    world_close(&world);
}

TEST(object, DO_CTX_4_abort_undoes_the_turn_and_fails_what_is_under_way)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    CHECK_INT(1, ask(&world, "a", ADD));
    struct answer *parked = post(&world, "a", PARK);
    struct answer *aborted = post(&world, "a", ABORT);
    struct answer *after = post(&world, "a", READ);
    run_until(&world, parked);
    run_until(&world, aborted);
    run_until(&world, after);
    CHECK_INT(CN_EABORTED, parked->call.err.code);
    CHECK(parked->call.faults & CN_FAULT_RESET);
    CHECK_STR("aborted on purpose", aborted->call.err.text);
    CHECK_INT(0, after->call.err.code); /* a new instance, on what was committed */
    CHECK_INT(1, (intptr_t)after->call.result);
    CHECK_INT(2, world.created);
    cn_free(parked);
    cn_free(aborted);
    cn_free(after);
    world_close(&world);
}

TEST(object, DO_TX_5_a_new_instance_waits_for_what_the_one_before_it_wrote)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    world.write_once = true;
    struct answer *add = post(&world, "a", ADD);
    struct answer *aborted = post(&world, "a", ABORT);
    struct answer *read = post(&world, "a", READ);
    run_until(&world, add);
    run_until(&world, aborted);
    run_until(&world, read);
    CHECK_INT(2, world.created);
    CHECK_INT(1, (intptr_t)read->call.result);
    CHECK(add->call.output.lsn > 0);
    CHECK(read->call.output.lsn >= add->call.output.lsn);
    cn_free(add);
    cn_free(aborted);
    cn_free(read);
    world_close(&world);
}

TEST(object, DO_CTX_3_a_locked_input_gate_holds_calls_back_in_order)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    struct answer *locker = post(&world, "a", LOCK);
    struct answer *first = post(&world, "a", ADD);
    struct answer *second = post(&world, "a", ADD);
    struct answer *other = post(&world, "b", ADD);
    run_until(&world, other); /* another object is not concerned */
    for (int i = 0; i < 20; i++)
        uv_run(&world.loop, UV_RUN_NOWAIT);
    CHECK(!first->done && !second->done);
    struct cn_object *object = world.parked->object;
    cn_object_enter(object);
    cn_call_reply(world.parked, NULL);
    cn_object_unlock(object);
    cn_object_leave(object);
    run_until(&world, locker);
    run_until(&world, first);
    run_until(&world, second);
    CHECK_INT(1, (intptr_t)first->call.result);
    CHECK_INT(2, (intptr_t)second->call.result);
    cn_free(locker);
    cn_free(first);
    cn_free(second);
    cn_free(other);
    world_close(&world);
}

TEST(object, a_failing_constructor_fails_the_call_and_the_next_one_tries_again)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    world.fail_create = 1;
    struct answer *answer = post(&world, "a", ADD);
    run_until(&world, answer);
    CHECK_STR("constructor failed", answer->call.err.text);
    cn_free(answer);
    world.fail_create = 0;
    CHECK_INT(1, ask(&world, "a", ADD));
    world_close(&world);
}

TEST(object, DO_LC_7_past_the_bound_the_caller_is_told_overloaded)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    struct answer *locker = post(&world, "a", LOCK);
    for (int i = 0; i < 20; i++)
        uv_run(&world.loop, UV_RUN_NOWAIT);
    enum { COUNT = CN_OBJECT_INBOX_MAX + 5 };
    struct answer **answers = malloc(COUNT * sizeof(*answers));
    for (int i = 0; i < COUNT; i++)
        answers[i] = post(&world, "a", READ);
    run_until(&world, answers[COUNT - 1]);
    CHECK(answers[COUNT - 1]->call.faults & CN_FAULT_OVERLOADED);
    CHECK(!answers[0]->done);
    struct cn_object *object = world.parked->object;
    cn_object_enter(object);
    cn_call_reply(world.parked, NULL);
    cn_object_unlock(object);
    cn_object_leave(object);
    for (int i = 0; i < COUNT; i++) {
        run_until(&world, answers[i]);
        CHECK_INT(i < CN_OBJECT_INBOX_MAX ? 0 : CN_EOVERLOADED, answers[i]->call.err.code);
        cn_free(answers[i]);
    }
    free(answers);
    run_until(&world, locker);
    cn_free(locker);
    world_close(&world);
}

TEST(object, DO_LC_7_the_bytes_that_wait_for_an_object_are_bounded_too)
{
    enum { HALF = CN_OBJECT_INBOX_BYTES_MAX / 2 };
    struct world world;
    world_open(&world, test_dir(), &counter);
    struct answer *locker = post(&world, "a", LOCK);
    for (int i = 0; i < 20; i++)
        uv_run(&world.loop, UV_RUN_NOWAIT);
    struct answer *first = post_sized(&world, "a", ADD, HALF);
    struct answer *second = post_sized(&world, "a", ADD, HALF);
    struct answer *third = post_sized(&world, "a", ADD, 1);
    run_until(&world, third);
    CHECK(third->call.faults & CN_FAULT_OVERLOADED);
    CHECK_STR("Durable Object is overloaded. Too much data queued.", third->call.err.text);
    struct cn_object *object = world.parked->object;
    cn_object_enter(object);
    cn_call_reply(world.parked, NULL);
    cn_object_unlock(object);
    cn_object_leave(object);
    run_until(&world, first);
    run_until(&world, second);
    CHECK_INT(2, (intptr_t)second->call.result);
    struct answer *alone = post_sized(&world, "a", ADD, 3 * (size_t)HALF); /* a single one fits */
    run_until(&world, alone);
    CHECK_INT(3, (intptr_t)alone->call.result);
    cn_free(alone);
    run_until(&world, locker);
    cn_free(first);
    cn_free(second);
    cn_free(third);
    cn_free(locker);
    world_close(&world);
}

TEST(object, DO_LC_new_objects_of_a_namespace_are_limited_per_minute)
{
    struct world world;
    world_new_objects_per_minute = 2;
    world_open(&world, test_dir(), &counter);
    world_new_objects_per_minute = 0;
    CHECK_INT(1, ask(&world, "a", ADD));
    CHECK_INT(1, ask(&world, "b", ADD));
    struct answer *answer = post(&world, "c", ADD);
    run_until(&world, answer);
    CHECK_INT(CN_EOVERLOADED, answer->call.err.code);
    CHECK(answer->call.faults & CN_FAULT_OVERLOADED);
    cn_free(answer);
    CHECK_INT(2, cn_object_lane_evict(&world.lane, 10));
    CHECK_INT(2, ask(&world, "a", ADD)); /* not a new one */
    world.clock.wall_ms += 60000;
    CHECK_INT(1, ask(&world, "c", ADD));
    world_close(&world);
}

TEST(object, DO_ERR_1_an_error_of_the_object_is_marked_remote)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    struct answer *answer = post(&world, "a", FAIL);
    run_until(&world, answer);
    CHECK_INT(CN_FAULT_REMOTE, answer->call.faults);
    CHECK_STR("thrown by the object", answer->call.err.text);
    cn_free(answer);
    CHECK_INT(1, world.created); /* it lives on */
    CHECK_INT(0, ask(&world, "a", READ));
    CHECK_INT(1, world.created);
    world_close(&world);
}

TEST(object, eviction_drops_the_instance_and_keeps_the_data)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    CHECK_INT(1, ask(&world, "a", ADD));
    CHECK_INT(1, world.lane.live_count);
    cn_object_lane_evict(&world.lane, 10);
    CHECK_INT(0, world.lane.live_count);
    CHECK_INT(1, world.destroyed);
    CHECK_INT(1, ask(&world, "a", READ));
    CHECK_INT(2, world.created);
    world_close(&world);
}

TEST(object, DO_AL_1_an_alarm_fires_once_when_it_is_due)
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
TEST(object, A4_an_overdue_alarm_of_an_unknown_namespace_fires_when_it_is_known)
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
    for (int i = 0; i < 10000 && !world.alarms; i++)
        uv_run(&world.loop, UV_RUN_NOWAIT);
    CHECK_INT(1, world.alarms);
    world_close(&world);
}

TEST(object, Q1_alarms_of_a_lane_that_has_not_started_wait_for_it)
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

TEST(object, DO_AL_3_an_overdue_alarm_fires_after_a_restart)
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

TEST(object, DO_AL_4_a_failing_alarm_is_tried_six_more_times_and_then_dropped)
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

static void fire_due(struct world *world, int64_t wait_ms)
{
    int before = world->alarms;
    world->clock.wall_ms += wait_ms;
    cn_alarm_tick(&world->lane);
    while (world->alarms == before)
        uv_run(&world->loop, UV_RUN_ONCE);
    ask(world, "b", READ);
}

TEST(object, DO_AL_4_retries_are_counted_though_the_object_is_evicted_between_them)
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

TEST(object, DO_AL_8_an_alarm_that_runs_for_15_minutes_is_ended_and_tried_again)
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

TEST(object, DO_LC_3_DO_CTX_2_holds_keep_an_object_for_a_while_and_waitUntil_for_longer)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    world.lane.idle_ms = 1;
    world.lane.idle_long_ms = 20;
    ask(&world, "a", HOLD);
    ask(&world, "c", WAIT);
    while (world.destroyed == 0)
        uv_run(&world.loop, UV_RUN_ONCE);
    for (int i = 0; i < 4; i++)
        uv_run(&world.loop, UV_RUN_ONCE);
    CHECK_INT(1, world.destroyed);
    world_close(&world);
    CHECK_INT(2, world.destroyed);
}
