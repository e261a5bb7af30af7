/* SPDX-License-Identifier: Apache-2.0 */
/* A lane of objects: its steps, whom it lets go and when, and how it stops. */
#include <stdio.h>

#include "test/unit/object/counter.h"

TEST(lane, L2_a_step_does_a_thousand_things_and_then_lets_the_loop_run)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    ask(&world, "a", READ);
    enum { COUNT = 2500 };
    struct answer **answers = cn_alloc_zero(COUNT * sizeof(*answers));
    for (int i = 0; i < COUNT; i++)
        answers[i] = post(&world, "a", READ);
    cn_object_lane_step(&world.lane);
    int done = 0;
    for (int i = 0; i < COUNT; i++)
        done += answers[i]->done;
    CHECK(done < 1000);                       /* each is a thing on its way there and one back */
    CHECK(!cn_list_empty(&world.desk.ready)); /* and the rest has not been forgotten: */
    CHECK(uv_is_active((uv_handle_t *)&world.desk.spin));
    for (int i = 0; i < COUNT; i++) {
        run_until(&world, answers[i]);
        cn_free(answers[i]);
    }
    cn_free(answers);
    world_close(&world);
}

TEST(lane, L1_a_step_inside_a_turn_does_nothing)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    ask(&world, "a", READ);
    struct answer *answer = post(&world, "a", READ);
    cn_turn_begin(&world.lane);
    for (int i = 0; i < 3; i++)
        cn_object_lane_step(&world.lane);
    CHECK(!answer->done);
    CHECK(!cn_list_empty(&world.desk.ready));
    cn_turn_end(&world.lane);
    run_until(&world, answer);
    cn_free(answer);
    world_close(&world);
}

TEST(lane, the_longest_idle_goes_first_and_no_more_than_asked_for)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    for (char name[] = "a"; name[0] <= 'e'; name[0]++)
        ask(&world, name, READ);
    ask(&world, "a", READ); /* now the one that was used last */
    CHECK_INT(0, cn_object_lane_evict(&world.lane, 0));
    CHECK_INT(4, cn_object_lane_evict(&world.lane, 4));
    CHECK_INT(1, world.lane.live_count);
    ask(&world, "a", READ);
    CHECK_INT(5, world.created); /* it was still there */
    CHECK_INT(1, cn_object_lane_evict(&world.lane, 100));
    CHECK_INT(0, cn_object_lane_evict(&world.lane, 100));
    CHECK_INT(0, world.lane.live_count);
    world_close(&world);
}

TEST(lane, what_is_under_way_is_not_evicted)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    struct answer *parked = post(&world, "a", PARK);
    while (!world.parked)
        uv_run(&world.loop, UV_RUN_ONCE);
    ask(&world, "b", HOLD);
    ask(&world, "c", READ);
    CHECK_INT(1, cn_object_lane_evict(&world.lane, 100)); /* only c */
    CHECK_INT(2, world.lane.live_count);
    struct cn_object *object = world.parked->object;
    cn_object_enter(object);
    cn_call_reply(world.parked, NULL);
    cn_object_leave(object);
    run_until(&world, parked);
    cn_free(parked);
    CHECK_INT(1, cn_object_lane_evict(&world.lane, 100));
    world_close(&world);
    CHECK_INT(3, world.destroyed);
}

TEST(lane, one_that_stops_fails_what_waits_and_what_runs_and_answers_each_once)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    struct answer *locker = post(&world, "a", LOCK);
    while (!world.parked)
        uv_run(&world.loop, UV_RUN_ONCE);
    struct answer *waiting = post(&world, "a", ADD);
    struct answer *asleep = post(&world, "never-started", ADD);
    settle(&world);
    struct answer *unseen = post(&world, "unseen", ADD); /* still on the lane's own list */
    world_close(&world);
    struct answer *all[] = {locker, waiting, asleep, unseen};
    for (int i = 0; i < 4; i++) {
        CHECK(all[i]->done);
        if (all[i] != asleep) { /* it had all it needed */
            CHECK_INT(CN_ECLOSED, all[i]->call.envelope.err.code);
            CHECK(all[i]->call.envelope.faults & CN_FAULT_RETRYABLE);
        }
        cn_free(all[i]);
    }
    CHECK_INT(world.created, world.destroyed);
}
