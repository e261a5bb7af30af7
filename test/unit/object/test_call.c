/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: their way to an object and back, within a lane and between two, and every way it can end.
 */
#include "object/call.h"

#include <stdlib.h>

#include "test/unit/object/counter.h"

/* --- a second lane, on the same loop --------------------------------------------------------- */

struct second {
    struct cn_mailbox mailbox;
    struct cn_desk desk;
    struct cn_object_lane lane;
};

static void second_open(struct world *world, struct second *second)
{
    struct cn_err err;
    world_lane_count = 2;
    world_open(world, test_dir(), &counter);
    world_lane_count = 0;
    CHECK_INT(0, cn_mailbox_open(&second->mailbox, &world->loop, &second->lane));
    cn_desk_open(&second->desk, 1, &world->loop, &second->mailbox, cn_object_lane_step_desk, world);
    CHECK_INT(0, cn_object_lane_start(&second->lane, world->node, &second->desk, world, &err));
}

static void second_close(struct second *second)
{
    cn_object_lane_stop(&second->lane, on_stopped);
    cn_desk_close(&second->desk);
    cn_mailbox_close(&second->mailbox, NULL);
}

/* A name whose object lives on the lane with this index. */
static const char *name_on(struct world *world, unsigned index)
{
    static char name[2] = "a";
    for (name[0] = 'a'; name[0] <= 'z'; name[0]++) {
        struct cn_object_key key = {.namespace_id = world->ns->id};
        cn_id_from_name(&world->ns->keys, CN_JURISDICTION_NONE, name, 1, key.id);
        if (cn_node_owner(world->node, &key)->index == index)
            return name;
    }
    test_fail(__FILE__, __LINE__, "no name leads to lane %u", index);
}

TEST(call, DO_LC_7_past_the_bound_the_caller_is_told_overloaded)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    struct answer *locker = post(&world, "a", LOCK);
    settle(&world);
    enum { COUNT = CN_OBJECT_INBOX_MAX + 5 };
    struct answer **answers = malloc(COUNT * sizeof(*answers));
    for (int i = 0; i < COUNT; i++)
        answers[i] = post(&world, "a", READ);
    run_until(&world, answers[COUNT - 1]);
    CHECK(answers[COUNT - 1]->call.envelope.faults & CN_FAULT_OVERLOADED);
    CHECK(!answers[0]->done);
    unlock_parked(&world);
    for (int i = 0; i < COUNT; i++) {
        run_until(&world, answers[i]);
        CHECK_INT(i < CN_OBJECT_INBOX_MAX ? 0 : CN_EOVERLOADED, answers[i]->call.envelope.err.code);
        cn_free(answers[i]);
    }
    free(answers);
    run_until(&world, locker);
    cn_free(locker);
    world_close(&world);
}

TEST(call, DO_LC_7_the_bytes_that_wait_for_an_object_are_bounded_too)
{
    enum { HALF = CN_OBJECT_INBOX_BYTES_MAX / 2 };
    struct world world;
    world_open(&world, test_dir(), &counter);
    struct answer *locker = post(&world, "a", LOCK);
    settle(&world);
    struct answer *first = post_sized(&world, "a", ADD, HALF);
    struct answer *second = post_sized(&world, "a", ADD, HALF);
    struct answer *third = post_sized(&world, "a", ADD, 1);
    run_until(&world, third);
    CHECK(third->call.envelope.faults & CN_FAULT_OVERLOADED);
    CHECK_STR("Durable Object is overloaded. Too much data queued.", third->call.envelope.err.text);
    unlock_parked(&world);
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

TEST(call, DO_LC_new_objects_of_a_namespace_are_limited_per_minute)
{
    struct world world;
    world_new_objects_per_minute = 2;
    world_open(&world, test_dir(), &counter);
    world_new_objects_per_minute = 0;
    CHECK_INT(1, ask(&world, "a", ADD));
    CHECK_INT(1, ask(&world, "b", ADD));
    struct answer *answer = post(&world, "c", ADD);
    run_until(&world, answer);
    CHECK_INT(CN_EOVERLOADED, answer->call.envelope.err.code);
    CHECK(answer->call.envelope.faults & CN_FAULT_OVERLOADED);
    cn_free(answer);
    CHECK_INT(2, cn_object_lane_evict(&world.lane, 10));
    CHECK_INT(2, ask(&world, "a", ADD)); /* not a new one */
    world.clock.wall_ms += 60000;
    CHECK_INT(1, ask(&world, "c", ADD));
    world_close(&world);
}

TEST(call, DO_ERR_1_an_error_of_the_object_is_marked_remote)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    struct answer *answer = post(&world, "a", FAIL);
    run_until(&world, answer);
    CHECK_INT(CN_FAULT_REMOTE, answer->call.envelope.faults);
    CHECK_STR("thrown by the object", answer->call.envelope.err.text);
    cn_free(answer);
    CHECK_INT(1, world.created); /* it lives on */
    CHECK_INT(0, ask(&world, "a", READ));
    CHECK_INT(1, world.created);
    world_close(&world);
}

TEST(call, C1_C2_C3_between_lanes_in_order_once_and_not_before_its_writes_are_durable)
{
    struct world world;
    struct second second;
    second_open(&world, &second);
    const char *name = name_on(&world, 1);
    enum { COUNT = 200 };
    struct answer *answers[COUNT];
    for (int i = 0; i < COUNT; i++)
        answers[i] = post(&world, name, ADD); /* C2 is checked by it and by on_done() */
    for (int i = 0; i < COUNT; i++) {
        run_until(&world, answers[i]);
        CHECK_INT(0, answers[i]->call.envelope.err.code);
        CHECK_INT(i + 1, (intptr_t)answers[i]->call.result); /* C1 */
        CHECK(answers[i]->call.envelope.output.lsn > 0);
        CHECK(cn_store_durable(world.store) >= answers[i]->call.envelope.output.lsn); /* C3 */
        CHECK(answers[i]->call.envelope.to.desk == &second.desk);
        cn_free(answers[i]);
    }
    CHECK_INT(1, world.created);
    CHECK_INT(0, world.lane.live_count);
    CHECK_INT(1, second.lane.live_count);
    second_close(&second);
    world_close(&world);
}

TEST(call, one_under_way_when_the_other_lane_stops_is_failed_and_may_be_tried_again)
{
    struct world world;
    struct second second;
    second_open(&world, &second);
    const char *name = name_on(&world, 1);
    struct answer *parked = post(&world, name, PARK);
    while (!world.parked)
        uv_run(&world.loop, UV_RUN_ONCE);
    second_close(&second);
    struct answer *late = post(&world, name, READ); /* its mailbox is closed: C2 all the same */
    run_until(&world, parked);
    run_until(&world, late);
    CHECK_INT(CN_ECLOSED, parked->call.envelope.err.code);
    CHECK_INT(CN_FAULT_RETRYABLE, parked->call.envelope.faults);
    CHECK_INT(CN_ECLOSED, late->call.envelope.err.code);
    CHECK_INT(CN_FAULT_RETRYABLE, late->call.envelope.faults);
    CHECK_STR("the server is stopping", late->call.envelope.err.text);
    cn_free(parked);
    cn_free(late);
    world_close(&world);
}

static int dropped;

static void count_drop(struct cn_envelope *envelope)
{
    on_drop(envelope);
    dropped++;
}

TEST(call, an_answer_to_a_lane_that_has_ended_is_dropped_and_nobody_is_told)
{
    struct world world;
    struct second second;
    second_open(&world, &second);
    dropped = 0;
    struct answer *answer = post(&world, name_on(&world, 1), PARK);
    answer->call.envelope.drop = count_drop;
    while (!world.parked)
        uv_run(&world.loop, UV_RUN_ONCE);
    cn_object_lane_stop(&world.lane, on_stopped);
    cn_desk_close(&world.desk);
    cn_mailbox_close(&world.mailbox, NULL);
    struct cn_object *object = world.parked->object;
    cn_object_enter(object);
    cn_call_reply(world.parked, NULL); /* the call is dropped */
    cn_object_leave(object);
    while (!dropped) /* when what its constructor wrote is durable */
        uv_run(&world.loop, UV_RUN_ONCE);
    CHECK_INT(1, dropped);
    second_close(&second);
    world_end(&world);
}

static int taken_back;

static void count_taken_back(struct cn_call *call)
{
    CHECK(call->object); /* the class still finds out of whom */
    taken_back++;
}

TEST(call, a_reset_takes_back_what_the_class_has_not_answered_once)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    taken_back = 0;
    struct answer *parked = post(&world, "a", PARK);
    while (!world.parked)
        uv_run(&world.loop, UV_RUN_ONCE);
    world.parked->taken_back = count_taken_back;
    struct answer *aborted = post(&world, "a", ABORT);
    run_until(&world, parked);
    run_until(&world, aborted);
    CHECK_INT(1, taken_back);
    CHECK(parked->call.envelope.faults & CN_FAULT_RESET);
    CHECK(!parked->call.object);
    cn_free(parked);
    cn_free(aborted);
    world_close(&world);
}

TEST(call, each_is_counted_by_its_operation_and_those_without_a_number_of_their_own_together)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    static const unsigned ops[] = {0, 1, 1, CN_OBJECT_OPS - 1, CN_OBJECT_OPS, 1000000};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct answer *answer = post(&world, "a", i == 0 ? FAIL : ADD);
        answer->call.op = ops[i];
        run_until(&world, answer);
        cn_free(answer);
    }
    const struct cn_object_metrics *metrics = world.ns->metrics;
    CHECK_INT(6, cn_counter_get(&metrics->calls));
    CHECK_INT(1, cn_counter_get(&metrics->failures));
    CHECK_INT(1, cn_counter_get(&metrics->ops[0]));
    CHECK_INT(2, cn_counter_get(&metrics->ops[1]));
    CHECK_INT(3, cn_counter_get(&metrics->ops[CN_OBJECT_OPS - 1]));
    world_close(&world);
}
