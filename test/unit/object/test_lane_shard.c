/* SPDX-License-Identifier: Apache-2.0 */
/* Shards that are opened, stopped and closed while a lane uses them: what becomes of calls,
 * answers, alarms, sockets, restores and visits (S2 to S7). */
#include <unistd.h>

#include "object/access.h"
#include "object/restore.h"
#include "object/socket.h"
#include "store/catalog.h"
#include "store/sink.h"
#include "test/unit/object/counter.h"
#include "test/unit/object/shard_world.h"

/* --- help ------------------------------------------------------------------------------------ */

static intptr_t add(struct shard_world *own, unsigned shard, unsigned which)
{
    return ask(&own->world, name_in(own, shard, which), ADD);
}

/* The answer of a call that must fail; its faults. */
static unsigned fail_of(struct shard_world *own, struct answer *answer, int code)
{
    run_until(&own->world, answer);
    CHECK_INT(code, answer->call.envelope.err.code);
    unsigned faults = answer->call.envelope.faults;
    cn_free(answer);
    return faults;
}

static void reply_parked(struct shard_world *own)
{
    struct cn_call *call = own->world.parked;
    struct cn_object *object = call->object;
    own->world.parked = NULL;
    cn_object_enter(object);
    counter_add(object);
    cn_call_reply(call, (void *)(intptr_t)read_counter(object));
    cn_object_leave(object);
    cn_object_lane_step(&own->world.lane);
}

static void spin(struct shard_world *own, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        uv_run(&own->world.loop, UV_RUN_NOWAIT);
}

/* A sink that settles what it is given when it is told to. */
struct dam {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open, broken;
    atomic_uint waiting;
};

static int dam_settle(void *data, const struct cn_sink_batch *batch, struct cn_err *err)
{
    (void)batch;
    struct dam *dam = data;
    pthread_mutex_lock(&dam->lock);
    dam->waiting++;
    while (!dam->open && !dam->broken)
        pthread_cond_wait(&dam->changed, &dam->lock);
    dam->waiting--;
    bool broken = dam->broken;
    pthread_mutex_unlock(&dam->lock);
    return broken ? cn_err_set(err, CN_EREADONLY, "the shard is another's now") : 0;
}

static void dam_set(struct dam *dam, bool open, bool broken)
{
    pthread_mutex_lock(&dam->lock);
    dam->open = open;
    dam->broken = broken;
    pthread_cond_broadcast(&dam->changed);
    pthread_mutex_unlock(&dam->lock);
}

/* Opens the shard on a store behind the dam. */
static void shard_open_behind(struct shard_world *own, unsigned index, struct dam *dam,
                              const struct cn_sink *sink)
{
    struct cn_err err;
    *dam = (struct dam){
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .open = true};
    under_open(&own->under[index], own->dir, index, &own->world.clock.clock, sink);
    CHECK_INT(0, cn_shards_open(own->world.shards, index, own->under[index].store,
                                own->under[index].history, NULL, NULL, &err));
    await_state(own, index, CN_SHARD_OPEN);
}

/* --- open and close -------------------------------------------------------------------------- */

TEST(lane_shard, objects_of_each_shard_are_kept_in_its_store)
{
    struct shard_world own;
    struct cn_err err;
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1];
    shard_world_open(&own, test_dir(), &counter);
    for (unsigned i = 0; i < SHARDS; i++) {
        struct answer *answer = post(&own.world, name_in(&own, i, 0), ADD);
        run_until(&own.world, answer);
        CHECK_INT(0, answer->call.envelope.err.code);
        for (unsigned k = 0; k < SHARDS; k++)
            CHECK_INT(i == k, cn_catalog_find(cn_store_catalog(own.under[k].store),
                                              &answer->call.key, &entry, name, &err));
        CHECK_INT(0, cn_store_namespace_name(own.under[i].store, own.world.ns->id, name, &err));
        CHECK_STR("test/Counter", name);
        cn_free(answer);
    }
    shard_world_close(&own);
}

TEST(lane_shard, a_call_to_a_shard_that_is_not_open_fails_and_may_be_tried_again)
{
    struct shard_world own;
    shard_world_start(&own, test_dir(), &counter);
    CHECK_INT(CN_FAULT_RETRYABLE,
              fail_of(&own, post(&own.world, name_in(&own, 1, 0), ADD), CN_ECLOSED));
    shard_open(&own, 1);
    await_state(&own, 1, CN_SHARD_OPEN);
    CHECK_INT(1, add(&own, 1, 0));
    CHECK_INT(CN_FAULT_RETRYABLE,
              fail_of(&own, post(&own.world, name_in(&own, 2, 0), ADD), CN_ECLOSED));
    shard_close(&own, 1);
    CHECK_INT(CN_FAULT_RETRYABLE,
              fail_of(&own, post(&own.world, name_in(&own, 1, 0), ADD), CN_ECLOSED));
    CHECK_INT(1, own.world.created);
    shard_open(&own, 1);
    await_state(&own, 1, CN_SHARD_OPEN);
    CHECK_INT(2, add(&own, 1, 0)); /* what was there is there */
    shard_world_close(&own);
}

static struct cn_call *kept[4];
static unsigned kept_count;

static void keep_call(struct cn_carrier *carrier, struct cn_envelope *envelope)
{
    (void)carrier;
    CHECK(kept_count < 4);
    kept[kept_count++] = cn_call_of(envelope);
}

static struct cn_carrier keeper = {keep_call};

static struct cn_call *give_back(unsigned index)
{
    cn_call_back(kept[index]);
    return kept[index];
}

TEST(lane_shard, a_call_may_be_taken_elsewhere_and_tried_again_later)
{
    struct shard_world own;
    kept_count = 0;
    shard_world_start(&own, test_dir(), &counter);
    own.world.desk.carrier = &keeper;
    struct answer *first = post(&own.world, name_in(&own, 1, 0), ADD);
    struct answer *second = post(&own.world, name_in(&own, 1, 0), ADD);
    struct answer *third = post(&own.world, name_in(&own, 1, 0), ADD);
    while (kept_count < 3)
        uv_run(&own.world.loop, UV_RUN_ONCE);
    CHECK(!first->done && !second->done);
    shard_open(&own, 1);
    await_state(&own, 1, CN_SHARD_OPEN);
    cn_call_take_in(give_back(0));
    cn_call_take_in(give_back(1));
    cn_call_turn_away(give_back(2), CN_FAULT_OVERLOADED, CN_EOVERLOADED, "no");
    cn_object_lane_step(&own.world.lane);
    run_until(&own.world, first);
    run_until(&own.world, second);
    CHECK_INT(1, (intptr_t)first->call.result);
    CHECK_INT(2, (intptr_t)second->call.result);
    CHECK_INT(CN_FAULT_OVERLOADED, fail_of(&own, third, CN_EOVERLOADED));
    cn_free(first);
    cn_free(second);
    shard_world_close(&own);
}

TEST(lane_shard, S5_close_ends_what_is_under_way_in_its_shard_and_in_no_other)
{
    struct shard_world own;
    shard_world_open(&own, test_dir(), &counter);
    struct answer *here = post(&own.world, name_in(&own, 1, 0), PARK);
    while (!own.world.parked)
        uv_run(&own.world.loop, UV_RUN_ONCE);
    own.world.parked = NULL; /* nobody answers it */
    struct answer *waiting = post(&own.world, name_in(&own, 1, 1), LOCK);
    while (!own.world.parked)
        uv_run(&own.world.loop, UV_RUN_ONCE);
    struct answer *behind = post(&own.world, name_in(&own, 1, 1), ADD);
    struct answer *other = post(&own.world, name_in(&own, 2, 0), PARK);
    own.world.parked = NULL;
    while (!own.world.parked)
        uv_run(&own.world.loop, UV_RUN_ONCE);
    shard_close(&own, 1);
    CHECK_INT(CN_FAULT_RETRYABLE, fail_of(&own, here, CN_ECLOSED));
    CHECK_INT(CN_FAULT_RETRYABLE, fail_of(&own, waiting, CN_ECLOSED));
    CHECK_INT(CN_FAULT_RETRYABLE, fail_of(&own, behind, CN_ECLOSED));
    CHECK(!other->done);
    reply_parked(&own);
    run_until(&own.world, other);
    CHECK_INT(0, other->call.envelope.err.code);
    cn_free(other);
    spin(&own, 10);
    cn_object_lane_check(&own.world.lane);
    CHECK(cn_list_empty(&own.world.lane.shards[1].objects)); /* swept */
    shard_world_close(&own);
}

TEST(lane_shard, S2_S3_what_was_committed_and_is_not_durable_is_never_told)
{
    struct shard_world own;
    struct dam dam;
    const struct cn_sink sink = {.data = &dam, .settle = dam_settle};
    shard_world_start(&own, test_dir(), &counter);
    shard_open_behind(&own, 1, &dam, &sink);
    shard_open(&own, 2);
    await_state(&own, 2, CN_SHARD_OPEN);
    CHECK_INT(1, add(&own, 1, 0));
    CHECK_INT(1, add(&own, 2, 0));
    dam_set(&dam, false, false);
    struct answer *lost = post(&own.world, name_in(&own, 1, 0), ADD);
    struct answer *behind = post(&own.world, name_in(&own, 2, 0), ADD); /* G2: behind the other */
    while (!dam.waiting || own.world.lane.held.next == own.world.lane.held.prev)
        uv_run(&own.world.loop, UV_RUN_NOWAIT);
    CHECK(!lost->done && !behind->done);
    struct outcome closed = {0};
    cn_shards_close(own.world.shards, 1, on_outcome, &closed);
    await_outcome(&own, &closed);
    /* The commit becomes durable after all, too late. */
    dam_set(&dam, true, false);
    under_close(&own.under[1]);
    CHECK_INT(CN_FAULT_RESET | CN_FAULT_RETRYABLE,
              fail_of(&own, lost, CN_ECLOSED)); /* it may have happened */
    run_until(&own.world, behind);
    CHECK_INT(0, behind->call.envelope.err.code);
    cn_free(behind);
    shard_world_close(&own);
}

TEST(lane_shard, S2_nothing_leaves_between_close_and_its_letter)
{
    struct shard_world own;
    struct dam dam;
    const struct cn_sink sink = {.data = &dam, .settle = dam_settle};
    shard_world_start(&own, test_dir(), &counter);
    shard_open_behind(&own, 1, &dam, &sink);
    CHECK_INT(1, add(&own, 1, 0));
    dam_set(&dam, false, false);
    struct answer *lost = post(&own.world, name_in(&own, 1, 0), ADD);
    while (!dam.waiting || cn_list_empty(&own.world.lane.held))
        uv_run(&own.world.loop, UV_RUN_NOWAIT);
    struct outcome closed = {0};
    cn_shards_close(own.world.shards, 1, on_outcome, &closed);
    uint64_t durable = cn_store_durable(own.under[1].store);
    dam_set(&dam, true, false);
    while (cn_store_durable(own.under[1].store) == durable)
        usleep(100);
    cn_object_lane_step(&own.world.lane); /* durable, and the letter has not been read */
    CHECK(!cn_list_empty(&own.world.lane.held));
    CHECK(!cn_object_output_open(
        CN_CONTAINER_OF(own.world.lane.shards[1].objects.next, struct cn_object, shard_link)));
    await_outcome(&own, &closed);
    CHECK_INT(CN_FAULT_RESET | CN_FAULT_RETRYABLE, fail_of(&own, lost, CN_ECLOSED));
    under_close(&own.under[1]);
    shard_world_close(&own);
}

/* What an object gives out, by hand. */
TEST(lane_shard, S6_an_object_of_a_life_before_gives_out_nothing_in_the_next)
{
    struct shard_world own;
    struct cn_class clinging = counter;
    clinging.lets_go = false;
    shard_world_open(&own, test_dir(), &clinging);
    ask(&own.world, name_in(&own, 1, 0), HOLD); /* stays in memory when it is reset */
    struct cn_object *old =
        CN_CONTAINER_OF(own.world.lane.shards[1].objects.next, struct cn_object, shard_link);
    struct cn_object *broken;
    ask(&own.world, name_in(&own, 1, 1), HOLD);
    broken = CN_CONTAINER_OF(own.world.lane.shards[1].objects.prev, struct cn_object, shard_link);
    CHECK(old != broken);
    cn_object_reset(broken, CN_FAULT_RESET, CN_EABORTED, "before");
    shard_close(&own, 1);
    CHECK(old->cut && broken->cut);
    struct parcel parcels[3] = {0};
    cn_object_output(old, &parcels[0].output, parcel_send);
    CHECK_INT(-1, parcels[0].sent);
    shard_open(&own, 1);
    await_state(&own, 1, CN_SHARD_OPEN);
    CHECK_INT(1, add(&own, 1, 0)); /* a new instance */
    cn_object_output(old, &parcels[1].output, parcel_send);
    cn_object_sync(broken, &parcels[2].output, parcel_send);
    CHECK(parcels[1].sent == -1 && parcels[2].sent == -1);
    cn_object_unhold(old);
    cn_object_unhold(broken);
    shard_world_close(&own);
}

TEST(lane_shard, O5_what_strayed_into_a_shard_that_goes_takes_those_with_it_that_wait_for_it)
{
    struct shard_world own;
    struct dam dam;
    const struct cn_sink sink = {.data = &dam, .settle = dam_settle};
    struct cn_object_lane *lane = &own.world.lane;
    shard_world_start(&own, test_dir(), &counter);
    shard_open_behind(&own, 1, &dam, &sink);
    shard_open(&own, 2);
    await_state(&own, 2, CN_SHARD_OPEN);
    CHECK_INT(1, add(&own, 1, 0));
    CHECK_INT(1, add(&own, 2, 0));
    dam_set(&dam, false, false);
    struct cn_object *one =
        CN_CONTAINER_OF(lane->shards[1].objects.next, struct cn_object, shard_link);
    struct cn_object *two =
        CN_CONTAINER_OF(lane->shards[2].objects.next, struct cn_object, shard_link);
    struct parcel before = {0}, after = {0}, later = {0};
    cn_object_output(two, &before.output, parcel_send);
    CHECK_INT(1, before.sent);
    cn_turn_begin(lane); /* code of nobody's writes to it */
    cn_object_touch(one);
    counter_add(one);
    cn_turn_end(lane);
    CHECK(!cn_object_lane_open(lane));
    cn_object_output(two, &after.output, parcel_send);
    cn_object_lane_step(lane);
    CHECK_INT(0, after.sent);
    struct outcome closed = {0};
    cn_shards_close(own.world.shards, 1, on_outcome, &closed);
    await_outcome(&own, &closed);
    CHECK_INT(-1, after.sent);
    CHECK(cn_object_lane_open(lane));
    cn_object_output(two, &later.output, parcel_send);
    CHECK_INT(1, later.sent);
    dam_set(&dam, false, true); /* it never was */
    under_close(&own.under[1]);
    shard_world_close(&own);
}

static atomic_bool has_lease;

static bool ask_lease(void *data, unsigned index)
{
    (void)data;
    return index != 1 || atomic_load(&has_lease);
}

TEST(lane_shard, without_a_lease_no_event_is_taken_and_alarms_wait_for_it)
{
    struct shard_world own;
    atomic_store(&has_lease, true);
    own = (struct shard_world){.dir = test_dir(), .world = {.class_ = &counter}};
    own.world.clock = (struct fake_clock){{fake_wall, fake_mono}, 1000000};
    own.world.shards = cn_shards_new(
        &(struct cn_shards_options){.count = SHARDS, .number = number, .may_take = ask_lease});
    world_start(&own.world);
    shard_open(&own, 1);
    shard_open(&own, 2);
    await_state(&own, 1, CN_SHARD_OPEN);
    await_state(&own, 2, CN_SHARD_OPEN);
    struct answer *first = post(&own.world, name_in(&own, 1, 0), SET_ALARM);
    struct cn_object_key key = first->call.key;
    run_until(&own.world, first);
    cn_free(first);
    CHECK(cn_object_lane_serves(&own.world.lane, &key));
    cn_alarm_tick(&own.world.lane);
    atomic_store(&has_lease, false);
    CHECK(!cn_object_lane_serves(&own.world.lane, &key));
    CHECK_INT(CN_FAULT_RETRYABLE,
              fail_of(&own, post(&own.world, name_in(&own, 1, 0), ADD), CN_ECLOSED));
    CHECK_INT(1, add(&own, 2, 0));
    own.world.clock.wall_ms += 10000;
    cn_alarm_tick(&own.world.lane);
    spin(&own, 20);
    CHECK_INT(0, own.world.alarms);
    atomic_store(&has_lease, true);
    own.world.clock.wall_ms += 1000;
    cn_alarm_tick(&own.world.lane);
    cn_object_lane_step(&own.world.lane);
    spin(&own, 20);
    CHECK_INT(1, own.world.alarms);
    shard_world_close(&own);
}

/* --- stop and resume ------------------------------------------------------------------------- */

TEST(lane_shard, S7_stop_lets_what_runs_end_and_leave)
{
    struct shard_world own;
    struct outcome stopped = {0}, resumed = {0};
    shard_world_open(&own, test_dir(), &counter);
    CHECK_INT(1, add(&own, 1, 1));
    struct answer *runs = post(&own.world, name_in(&own, 1, 0), PARK);
    while (!own.world.parked)
        uv_run(&own.world.loop, UV_RUN_ONCE);
    cn_shards_stop(own.world.shards, 1, on_outcome, &stopped);
    spin(&own, 20); /* the letter is read */
    CHECK_INT(CN_FAULT_RETRYABLE,
              fail_of(&own, post(&own.world, name_in(&own, 1, 1), ADD), CN_ECLOSED));
    CHECK(!stopped.count && !runs->done);
    CHECK_INT(1, add(&own, 2, 0)); /* others go on */
    reply_parked(&own);
    await_outcome(&own, &stopped);
    CHECK(stopped.reached);
    CHECK(runs->done || !cn_list_empty(&own.world.desk.ready)); /* it has left */
    run_until(&own.world, runs);
    CHECK_INT(0, runs->call.envelope.err.code);
    CHECK_INT(1, (intptr_t)runs->call.result);
    cn_free(runs);
    spin(&own, 20);
    CHECK(cn_list_empty(&own.world.lane.shards[1].objects));
    cn_shards_resume(own.world.shards, 1, on_outcome, &resumed);
    await_outcome(&own, &resumed);
    CHECK_INT(2, add(&own, 1, 0));
    shard_world_close(&own);
}

TEST(lane_shard, S7_stop_waits_for_what_is_not_durable)
{
    struct shard_world own;
    struct dam dam;
    const struct cn_sink sink = {.data = &dam, .settle = dam_settle};
    struct outcome stopped = {0};
    shard_world_start(&own, test_dir(), &counter);
    shard_open_behind(&own, 1, &dam, &sink);
    CHECK_INT(1, add(&own, 1, 0));
    dam_set(&dam, false, false);
    struct answer *held = post(&own.world, name_in(&own, 1, 0), ADD);
    while (!dam.waiting)
        uv_run(&own.world.loop, UV_RUN_NOWAIT);
    cn_shards_stop(own.world.shards, 1, on_outcome, &stopped);
    spin(&own, 20);
    CHECK(!stopped.count && !held->done);
    dam_set(&dam, true, false);
    await_outcome(&own, &stopped);
    CHECK(stopped.reached);
    run_until(&own.world, held);
    CHECK_INT(0, held->call.envelope.err.code);
    cn_free(held);
    shard_close(&own, 1);
    shard_world_close(&own);
}

TEST(lane_shard, close_ends_what_stop_waits_for)
{
    struct shard_world own;
    struct outcome stopped = {0};
    shard_world_open(&own, test_dir(), &counter);
    struct answer *runs = post(&own.world, name_in(&own, 1, 0), PARK);
    while (!own.world.parked)
        uv_run(&own.world.loop, UV_RUN_ONCE);
    cn_shards_stop(own.world.shards, 1, on_outcome, &stopped);
    spin(&own, 5);
    shard_close(&own, 1);
    CHECK(stopped.count == 1 && !stopped.reached);
    CHECK_INT(CN_FAULT_RETRYABLE, fail_of(&own, runs, CN_ECLOSED));
    shard_world_close(&own);
}

TEST(lane_shard, resume_while_it_stops_loses_nothing)
{
    struct shard_world own;
    struct outcome stopped = {0}, resumed = {0};
    shard_world_open(&own, test_dir(), &counter);
    struct answer *runs = post(&own.world, name_in(&own, 1, 0), PARK);
    while (!own.world.parked)
        uv_run(&own.world.loop, UV_RUN_ONCE);
    cn_shards_stop(own.world.shards, 1, on_outcome, &stopped);
    spin(&own, 5);
    cn_shards_resume(own.world.shards, 1, on_outcome, &resumed);
    await_outcome(&own, &resumed);
    CHECK(stopped.count == 1 && !stopped.reached && resumed.reached);
    CHECK_INT(1, add(&own, 1, 1));
    reply_parked(&own);
    run_until(&own.world, runs);
    CHECK_INT(0, runs->call.envelope.err.code);
    cn_free(runs);
    CHECK_INT(2, ask(&own.world, name_in(&own, 1, 0), ADD));
    shard_world_close(&own);
}

/* --- alarms ---------------------------------------------------------------------------------- */

/* Lets the clocks of the lane run. */
static void pass(struct shard_world *own, int64_t ms)
{
    own->world.clock.wall_ms += ms;
    cn_alarm_tick(&own->world.lane);
    cn_object_lane_step(&own->world.lane);
    while (own->world.lane.learns) /* O9: the first of its class here */
        uv_run(&own->world.loop, UV_RUN_ONCE);
    spin(own, 20);
}

TEST(lane_shard, A6_an_alarm_fires_once_wherever_its_shard_is_served)
{
    struct shard_world one, two;
    const char *dir = test_dir();
    shard_world_open(&one, dir, &counter);
    shard_world_start(&two, dir, &counter);
    ask(&one.world, name_in(&one, 1, 0), SET_ALARM); /* in 5 s */
    ask(&one.world, name_in(&one, 2, 0), SET_ALARM);
    pass(&one, 100);
    shard_close(&one, 1);
    two.world.clock.wall_ms = one.world.clock.wall_ms;
    shard_open(&two, 1);
    await_state(&two, 1, CN_SHARD_OPEN);
    pass(&one, 10000);
    CHECK_INT(1, one.world.alarms); /* of shard 2 */
    pass(&two, 10000);
    CHECK_INT(1, two.world.alarms);
    pass(&two, 100000);
    shard_close(&two, 1);
    shard_open(&one, 1);
    await_state(&one, 1, CN_SHARD_OPEN);
    pass(&one, 200000);
    pass(&one, 200000);
    CHECK(one.world.alarms == 1 && two.world.alarms == 1);
    shard_world_close(&one);
    shard_world_close(&two);
}

TEST(lane_shard, A2_an_alarm_that_runs_when_its_shard_is_closed_runs_again_elsewhere)
{
    struct shard_world one, two;
    const char *dir = test_dir();
    shard_world_open(&one, dir, &counter);
    shard_world_start(&two, dir, &counter);
    ask(&one.world, name_in(&one, 1, 0), SET_ALARM);
    one.world.park_alarm = 1;
    pass(&one, 10000);
    CHECK_INT(1, one.world.alarms);
    shard_close(&one, 1);
    spin(&one, 20);
    pass(&one, 100000);
    CHECK_INT(1, one.world.alarms);
    cn_object_lane_check(&one.world.lane);
    two.world.clock.wall_ms = one.world.clock.wall_ms;
    shard_open(&two, 1);
    await_state(&two, 1, CN_SHARD_OPEN);
    pass(&two, 10000);
    CHECK_INT(1, two.world.alarms);
    shard_world_close(&one);
    shard_world_close(&two);
}

TEST(lane_shard, A6_alarms_that_were_due_while_it_was_stopped_fire_when_it_is_resumed)
{
    struct shard_world own;
    struct outcome stopped = {0}, resumed = {0};
    shard_world_open(&own, test_dir(), &counter);
    ask(&own.world, name_in(&own, 1, 0), SET_ALARM);
    pass(&own, 100);
    cn_shards_stop(own.world.shards, 1, on_outcome, &stopped);
    await_outcome(&own, &stopped);
    pass(&own, 10000);
    CHECK_INT(0, own.world.alarms);
    cn_shards_resume(own.world.shards, 1, on_outcome, &resumed);
    await_outcome(&own, &resumed);
    pass(&own, 1000);
    CHECK_INT(1, own.world.alarms);
    pass(&own, 100000);
    CHECK_INT(1, own.world.alarms);
    shard_world_close(&own);
}

/* --- visits ---------------------------------------------------------------------------------- */

struct visit {
    struct cn_access access;
    struct cn_shards *shards;
    uv_sem_t begun, go;
    int begin_result;
    pthread_t thread;
};

static void *visit_run(void *data)
{
    struct visit *visit = data;
    struct cn_shard *shard;
    struct cn_err err;
    if (cn_shards_hold(visit->shards, &visit->access.key, &shard, &err) < 0) {
        visit->begin_result = err.code;
        uv_sem_post(&visit->begun);
        return NULL;
    }
    visit->begin_result = cn_access_begin(&visit->access, &err);
    uv_sem_post(&visit->begun);
    if (visit->begin_result == 0) {
        uv_sem_wait(&visit->go);
        struct cn_database *db;
        uint64_t lsn;
        CHECK_INT(0, cn_database_open(shard->store, &visit->access.key, NULL, &db, &err));
        CHECK_INT(0, cn_database_exec(db, "UPDATE c SET n = 77", &err));
        CHECK_INT(0, cn_database_commit(db, &lsn, &err));
        cn_database_close(db);
        cn_access_end(&visit->access);
    }
    cn_shard_release(shard);
    return NULL;
}

static void visit_start(struct visit *visit, struct shard_world *own, const char *name)
{
    *visit =
        (struct visit){.shards = own->world.shards,
                       .access = {.node = own->world.node, .exclusive = true, .reason = "a visit"}};
    visit->access.key.namespace_id = own->world.ns->id;
    cn_id_from_name(&own->world.ns->keys, CN_JURISDICTION_NONE, name, strlen(name),
                    visit->access.key.id);
    CHECK(uv_sem_init(&visit->begun, 0) == 0 && uv_sem_init(&visit->go, 0) == 0);
    CHECK_INT(0, pthread_create(&visit->thread, NULL, visit_run, visit));
    while (uv_sem_trywait(&visit->begun) != 0)
        uv_run(&own->world.loop, UV_RUN_NOWAIT);
}

static void visit_end(struct visit *visit)
{
    pthread_join(visit->thread, NULL);
    uv_sem_destroy(&visit->begun);
    uv_sem_destroy(&visit->go);
}

TEST(lane_shard, S4_close_waits_for_a_visitor_who_finds_the_object_gone)
{
    struct shard_world own;
    struct visit visit, late;
    struct outcome closed = {0};
    shard_world_open(&own, test_dir(), &counter);
    CHECK_INT(1, add(&own, 1, 0));
    visit_start(&visit, &own, name_in(&own, 1, 0));
    CHECK_INT(0, visit.begin_result);
    struct answer *waits = post(&own.world, name_in(&own, 1, 0), ADD);
    spin(&own, 5);
    cn_shards_close(own.world.shards, 1, on_outcome, &closed);
    CHECK_INT(CN_FAULT_RETRYABLE, fail_of(&own, waits, CN_ECLOSED));
    spin(&own, 20);
    CHECK(!closed.count);
    visit_start(&late, &own, name_in(&own, 1, 1));
    CHECK_INT(CN_ECLOSED, late.begin_result);
    visit_end(&late);
    uv_sem_post(&visit.go);
    await_outcome(&own, &closed);
    visit_end(&visit);
    under_close(&own.under[1]);
    spin(&own, 10);
    CHECK(cn_list_empty(&own.world.lane.shards[1].objects));
    cn_object_lane_check(&own.world.lane);
    shard_open(&own, 1);
    await_state(&own, 1, CN_SHARD_OPEN);
    CHECK_INT(78, add(&own, 1, 0));
    shard_world_close(&own);
}

TEST(lane_shard, S7_stop_waits_for_a_visitor_and_those_who_wait_for_him)
{
    struct shard_world own;
    struct visit visit;
    struct outcome stopped = {0};
    shard_world_open(&own, test_dir(), &counter);
    CHECK_INT(1, add(&own, 1, 0));
    visit_start(&visit, &own, name_in(&own, 1, 0));
    struct answer *waits = post(&own.world, name_in(&own, 1, 0), ADD);
    spin(&own, 5);
    cn_shards_stop(own.world.shards, 1, on_outcome, &stopped);
    spin(&own, 20);
    CHECK(!stopped.count && !waits->done);
    uv_sem_post(&visit.go);
    await_outcome(&own, &stopped);
    CHECK(stopped.reached);
    visit_end(&visit);
    run_until(&own.world, waits);
    CHECK_INT(78, (intptr_t)waits->call.result);
    cn_free(waits);
    shard_world_close(&own);
}
