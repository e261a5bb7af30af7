/* SPDX-License-Identifier: Apache-2.0 */
/* A lane of objects: its steps, whom it lets go and when, and how it stops. */
#include <stdio.h>

#include "object/alarm.h"
#include "object/socket.h"
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

/* --- W3 of base/loop.h: each counter of the lane, off by one, is found -------------------------
 */

static void check(void *data)
{
    cn_object_lane_check(&((struct world *)data)->lane);
}

static struct cn_object *only_object(struct world *world)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    CHECK(cn_map_next(&world->lane.objects, &cursor, &entry));
    return entry->value;
}

TEST(lane, W3_counters_are_compared_with_what_they_count)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    ask(&world, "a", READ);
    struct cn_object *object = only_object(&world);
    cn_object_lane_check(&world.lane);
    struct {
        unsigned *counter;
        const char *found;
    } small[] = {
        {&object->inbox_count, "object->inbox_count == cn_list_length"},
        {&object->running_count, "object->running_count == cn_list_length"},
        {&object->sockets, "object->sockets == cn_object_socket_held_count"},
        {&object->holds, "!object->holds && !object->waits"}, /* and yet it is idle */
        {&object->waits, "!object->holds && !object->waits"},
        {&world.lane.turn_depth, "!lane->turn_depth"},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(small); i++) {
        (*small[i].counter)++;
        CHECK_ASSERTS(small[i].found, check, &world);
        (*small[i].counter)--;
    }
    struct {
        size_t *counter;
        const char *found;
    } large[] = {
        {&object->inbox_bytes, "object->inbox_bytes == waiting_bytes"},
        {&world.lane.live_count, "lane->live_count == lane->objects.count"},
        {&world.lane.socket_count, "lane->socket_count == count"},
        {&world.lane.hibernated_count, "lane->hibernated_count == asleep"},
        {&world.lane.objects.count, "map->count == used"},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(large); i++) {
        (*large[i].counter)++;
        CHECK_ASSERTS(large[i].found, check, &world);
        (*large[i].counter)--;
    }
    cn_object_lane_check(&world.lane);
    world_close(&world);
}

/* An envelope that is on its way and not counted as out. */
TEST(lane, W3_envelopes_under_way_are_counted)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    ask(&world, "a", READ);
    struct answer *answer = post(&world, "a", READ);
    CHECK_INT(1, world.desk.out);
    cn_object_lane_check(&world.lane);
    world.desk.out--;
    CHECK_ASSERTS("desk->out >= cn_list_length(&desk->ready) + others", check, &world);
    world.desk.out++;
    run_until(&world, answer);
    CHECK_INT(0, world.desk.out);
    cn_free(answer);
    world_close(&world);
}

/* --- W1 and W2: what belongs to the lane's thread is not used from another ---------------------
 */

static void use_step(void *data)
{
    cn_object_lane_step(&((struct world *)data)->lane);
}

static void use_turn(void *data)
{
    cn_turn_begin(&((struct world *)data)->lane);
}

static void use_evict(void *data)
{
    (void)cn_object_lane_evict(&((struct world *)data)->lane, 1);
}

static void use_hold(void *data)
{
    cn_object_hold(only_object(data));
}

static void use_reset(void *data)
{
    cn_object_reset(only_object(data), 0, CN_ECLOSED, "no");
}

static void use_alarm(void *data)
{
    struct cn_err err;
    (void)cn_object_alarm_set(only_object(data), 1, &err);
}

static void use_socket(void *data)
{
    cn_object_socket_set_event_timeout(only_object(data), 1);
}

static void use_kick(void *data)
{
    cn_desk_kick(&((struct world *)data)->desk);
}

static void use_send(void *data)
{
    (void)post(data, "a", READ);
}

static void use_mailbox(void *data)
{
    cn_mailbox_close(&((struct world *)data)->mailbox, NULL);
}

TEST(lane, W1_another_thread_is_stopped_at_the_door)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    ask(&world, "a", READ);
    void (*const uses[])(void *data) = {use_step,  use_turn,   use_evict, use_hold, use_reset,
                                        use_alarm, use_socket, use_kick,  use_send, use_mailbox};
    cn_loop_give(&world.loop); /* so that it is not the calling thread's */
    for (size_t i = 0; i < CN_ARRAY_COUNT(uses); i++)
        CHECK_ASSERTS("cn_loop_is_mine(loop)", uses[i], &world);
    cn_loop_take(&world.loop);
    ask(&world, "a", READ);
    world_close(&world);
}

/* --- L4: code of a class that runs while objects end -------------------------------------------
 */

/* Each that ends does this to all others that are there. */
static enum { NOTHING, HOLDS, WAITS, UNHOLDS, TOUCHES, RESETS, CALLS } last_deed;
static struct cn_object *others[8];
static struct answer *last_calls[64];
static int last_call_count;

static void forget(struct cn_object *object)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(others); i++)
        if (others[i] == object)
            others[i] = NULL;
}

static void do_to(struct world *world, struct cn_object *other)
{
    switch (last_deed) {
    case NOTHING:
        break;
    case HOLDS:
        cn_object_hold(other);
        break;
    case WAITS:
        cn_object_wait(other);
        break;
    case UNHOLDS:
        if (other->holds)
            cn_object_unhold(other);
        break;
    case TOUCHES:
        cn_object_touch(other);
        break;
    case RESETS:
        cn_object_reset(other, CN_FAULT_RESET, CN_EABORTED, "by another's end");
        break;
    case CALLS:
        if (other->name && last_call_count < (int)CN_ARRAY_COUNT(last_calls))
            last_calls[last_call_count++] = post(world, other->name, READ);
        break;
    }
}

static void vengeful_destroy(struct cn_object *object, void *instance)
{
    struct world *world = instance;
    world->destroyed++;
    forget(object);
    cn_turn_begin(object->lane);
    for (size_t i = 0; i < CN_ARRAY_COUNT(others); i++)
        if (others[i])
            do_to(world, others[i]);
    cn_turn_end(object->lane);
    cn_object_lane_step(object->lane); /* as JavaScript does when its turn ends */
}

static const struct cn_class vengeful = {.create = counter_create,
                                         .deliver = counter_deliver,
                                         .destroy = vengeful_destroy,
                                         .lets_go = true};

static void know_all(struct world *world)
{
    size_t cursor = 0, count = 0;
    const struct cn_map_entry *entry;
    memset(others, 0, sizeof(others));
    while (cn_map_next(&world->lane.objects, &cursor, &entry))
        others[count++] = entry->value;
}

/* `what` keeps them waiting, or READ: they are idle. */
static void end_while(intptr_t what, int deed, bool by_clock)
{
    struct world world;
    world_open(&world, test_dir(), &vengeful);
    for (char name[] = "a"; name[0] <= 'f'; name[0]++)
        ask(&world, name, name[0] % 2 ? what : READ);
    know_all(&world);
    last_deed = deed;
    last_call_count = 0;
    if (by_clock) {
        world.lane.idle_ms = world.lane.idle_long_ms = 0;
        while (!world.destroyed)
            uv_run(&world.loop, UV_RUN_ONCE);
    } else {
        CHECK(cn_object_lane_evict(&world.lane, SIZE_MAX) >= 3);
    }
    settle(&world);
    last_deed = NOTHING;
    for (int i = 0; i < last_call_count; i++) {
        run_until(&world, last_calls[i]);
        CHECK_INT(0, last_calls[i]->call.envelope.err.code);
        cn_free(last_calls[i]);
    }
    for (char name[] = "a"; name[0] <= 'f'; name[0]++)
        ask(&world, name, READ);
    world_close(&world);
    CHECK_INT(world.created, world.destroyed);
}

TEST(lane, L4_whatever_an_object_does_at_its_end_to_others_the_others_end_once)
{
    static const intptr_t kinds[] = {READ, HOLD, WAIT};
    for (size_t kind = 0; kind < CN_ARRAY_COUNT(kinds); kind++)
        for (int deed = HOLDS; deed <= CALLS; deed++)
            for (int by_clock = 0; by_clock < 2; by_clock++)
                end_while(kinds[kind], deed, by_clock);
}

/* --- L4: those who are told of a broken object's outputs ---------------------------------------
 */

struct told {
    struct cn_output output;
    struct cn_object *object; /* it holds it, or NULL */
    struct cn_object_lane *lane;
    int *count;
};

/* As a promise in JavaScript that is rejected: lets go of its object, and its turn ends with a
 * step.
 */
static void on_told(struct cn_output *output, const struct cn_err *err)
{
    struct told *told = CN_CONTAINER_OF(output, struct told, output);
    CHECK(err);
    ++*told->count;
    cn_turn_begin(told->lane);
    if (told->object)
        cn_object_unhold(told->object);
    cn_turn_end(told->lane);
    cn_object_lane_step(told->lane);
}

TEST(lane, L4_an_object_that_breaks_in_a_turn_stays_until_all_its_outputs_were_told)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    ask(&world, "a", READ);
    struct cn_object *object = only_object(&world);
    int count = 0;
    struct told told[3];
    cn_object_enter(object);
    for (int i = 0; i < 3; i++) {
        told[i] =
            (struct told){.object = i == 0 ? object : NULL, .lane = &world.lane, .count = &count};
        if (told[i].object)
            cn_object_hold(object);
        cn_object_sync(object, &told[i].output, on_told);
    }
    cn_object_reset(object, CN_FAULT_RESET, CN_EABORTED, "aborted on purpose");
    cn_object_leave(object);
    CHECK_INT(3, count);
    settle(&world);
    CHECK_INT(1, world.destroyed);
    CHECK_INT(0, world.lane.live_count);
    ask(&world, "a", READ);
    world_close(&world);
}
