/* SPDX-License-Identifier: Apache-2.0 */
/* The core of objects with a class in C: turns, gates, eviction, reset. */
#include "object/object.h"

#include "test/unit/object/counter.h"

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
        CHECK(cn_store_durable(world.store) >= answers[i]->call.envelope.output.lsn);
        CHECK(answers[i]->call.envelope.output.lsn > 0);
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
    CHECK_INT(CN_EABORTED, parked->call.envelope.err.code);
    CHECK(parked->call.envelope.faults & CN_FAULT_RESET);
    CHECK_STR("aborted on purpose", aborted->call.envelope.err.text);
    CHECK_INT(0, after->call.envelope.err.code); /* a new instance, on what was committed */
    CHECK_INT(1, (intptr_t)after->call.result);
    CHECK_INT(2, world.created);
    cn_free(parked);
    cn_free(aborted);
    cn_free(after);
    world_close(&world);
}

TEST(object, O3_a_turn_that_sqlite_has_rolled_back_is_not_answered_as_if_it_were_there)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    CHECK_INT(1, ask(&world, "a", ADD));
    struct answer *undone = post(&world, "a", UNDO);
    run_until(&world, undone);
    CHECK_INT(CN_EABORTED, undone->call.envelope.err.code);
    CHECK(strstr(undone->call.envelope.err.text, "UNIQUE constraint failed"));
    CHECK_INT(2, ask(&world, "a", ADD)); /* a new instance, which can write */
    CHECK_INT(2, world.created);
    cn_free(undone);
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
    CHECK(add->call.envelope.output.lsn > 0);
    CHECK(read->call.envelope.output.lsn >= add->call.envelope.output.lsn);
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
    settle(&world);
    CHECK(!first->done && !second->done);
    unlock_parked(&world);
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
    CHECK_STR("constructor failed", answer->call.envelope.err.text);
    cn_free(answer);
    world.fail_create = 0;
    CHECK_INT(1, ask(&world, "a", ADD));
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
