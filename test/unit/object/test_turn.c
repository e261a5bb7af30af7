/* SPDX-License-Identifier: Apache-2.0 */
/* Turns that several objects take part in, code that uses another's storage, and what waits for the
 * input gate inside a class. */
#include "object/object.h"

#include "base/block.h"
#include "store/database.h"
#include "test/unit/object/world.h"

enum { PARK = 1, LENT };

static struct cn_object *objects[2]; /* "a" and "b", as they were delivered to */
static struct cn_call *parked[2];
static int resumed, lent;

static int cell_create(struct cn_object *object, void *class_data, void **instance,
                       struct cn_err *err)
{
    *instance = class_data;
    struct cn_database *db = cn_object_database(object, err);
    return db ? cn_database_exec(db, "CREATE TABLE IF NOT EXISTS t(x)", err) : err->code;
}

static void cell_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    (void)instance;
    int index = object->name[0] - 'a';
    if ((intptr_t)call->payload == LENT) {
        lent++;
        cn_call_reply(call, NULL);
        return;
    }
    objects[index] = object;
    parked[index] = call;
}

static void cell_resume(struct cn_object *object, void *instance)
{
    (void)instance;
    CHECK(object->lane->current == object && cn_object_in_turn(object));
    if (++resumed == 1)
        cn_object_kick(object);
}

static void cell_destroy(struct cn_object *object, void *instance)
{
    (void)object, (void)instance;
}

static const struct cn_class cell = {.create = cell_create,
                                     .deliver = cell_deliver,
                                     .resume = cell_resume,
                                     .destroy = cell_destroy,
                                     .lets_go = true};
static const struct cn_class cell_gates = {.create = cell_create,
                                           .deliver = cell_deliver,
                                           .destroy = cell_destroy,
                                           .lets_go = true,
                                           .gates_lent = true};

static void write_row(struct cn_object *object)
{
    struct cn_err err;
    cn_object_touch(object);
    CHECK_INT(0,
              cn_database_exec(cn_object_database(object, &err), "INSERT INTO t VALUES(1)", &err));
}

struct rig {
    struct world world;
    struct simdisk *sim;
    struct answer *answers[2];
};

/* "a" and "b" live and have a call each that they have not answered. */
static void rig_open(struct rig *rig, const struct cn_class *class_)
{
    rig->sim = simdisk_new();
    world_open_on(&rig->world, simdisk_disk(rig->sim), CN_LOG_FSYNC, class_);
    for (int i = 0; i < 2; i++) {
        parked[i] = NULL;
        rig->answers[i] = post(&rig->world, i ? "b" : "a", PARK);
        while (!parked[i])
            uv_run(&rig->world.loop, UV_RUN_ONCE);
    }
    resumed = lent = 0;
}

static void rig_close(struct rig *rig)
{
    for (int i = 0; i < 2; i++) {
        run_until(&rig->world, rig->answers[i]);
        cn_free(rig->answers[i]);
    }
    world_close(&rig->world);
    simdisk_free(rig->sim);
}

static void reply_both(void)
{
    for (int i = 0; i < 2; i++)
        cn_call_reply(parked[i], NULL);
}

/* Of the last write that strayed; it is not known to be durable. */
static uint64_t stray_lsn(const struct cn_object_lane *lane)
{
    CHECK(!cn_list_empty(&lane->strays));
    return CN_CONTAINER_OF(lane->strays.prev, struct cn_stray, link)->lsn;
}

TEST(turn, O3_O4_each_object_of_a_turn_is_committed_by_itself)
{
    struct rig rig;
    rig_open(&rig, &cell);
    uint64_t before[2] = {objects[0]->last_lsn, objects[1]->last_lsn};
    struct cn_object_lane *lane = &rig.world.lane;
    cn_turn_begin(lane);
    cn_object_join(objects[0]);
    cn_turn_focus(lane, objects[0]);
    write_row(objects[0]);
    cn_object_join(objects[1]);
    cn_turn_focus(lane, objects[1]);
    write_row(objects[1]);
    reply_both();
    CHECK(objects[0]->last_lsn == before[0]); /* not before the turn ends */
    cn_turn_end(lane);
    CHECK(objects[0]->last_lsn > before[0] && objects[1]->last_lsn > objects[0]->last_lsn);
    CHECK(!cn_object_in_turn(objects[0]) && !lane->current && !lane->turn_depth);
    /* G1: each by its own commit. */
    CHECK(rig.answers[0]->call.envelope.output.lsn == objects[0]->last_lsn);
    CHECK(rig.answers[1]->call.envelope.output.lsn == objects[1]->last_lsn);
    CHECK(cn_list_empty(&lane->strays));
    rig_close(&rig);
}

TEST(turn, O3_a_reset_object_takes_nobody_with_it)
{
    struct rig rig;
    rig_open(&rig, &cell);
    struct cn_object_lane *lane = &rig.world.lane;
    uint64_t before = objects[1]->last_lsn;
    cn_turn_begin(lane);
    cn_object_join(objects[0]);
    cn_object_join(objects[1]);
    cn_turn_focus(lane, objects[0]);
    write_row(objects[0]);
    cn_turn_focus(lane, objects[1]);
    write_row(objects[1]);
    cn_call_reply(parked[1], NULL);
    cn_object_reset(objects[0], CN_FAULT_RESET, CN_EABORTED, "on purpose");
    cn_turn_end(lane);
    CHECK(objects[1]->last_lsn > before);
    run_until(&rig.world, rig.answers[1]);
    CHECK_INT(0, rig.answers[1]->call.envelope.err.code);
    run_until(&rig.world, rig.answers[0]);
    CHECK_INT(CN_EABORTED, rig.answers[0]->call.envelope.err.code);
    rig_close(&rig);
}

TEST(turn, O5_what_nobody_writes_holds_back_what_nobody_sends)
{
    struct rig rig;
    rig_open(&rig, &cell);
    world_hold_syncs(rig.sim);
    struct cn_object_lane *lane = &rig.world.lane;
    cn_turn_begin(lane);
    CHECK(cn_object_lane_open(lane) && !cn_object_lane_gate(lane));
    write_row(objects[0]); /* code of nobody's uses its storage */
    CHECK(!cn_object_lane_open(lane));
    CHECK(cn_object_lane_gate(lane) == lane->nobody && cn_object_in_turn(lane->nobody));
    uint64_t before = objects[0]->last_lsn;
    cn_turn_end(lane);
    CHECK(objects[0]->last_lsn > before && stray_lsn(lane) == objects[0]->last_lsn);
    /* Another object's answer in a later turn, that has written nothing, waits for it too. */
    cn_object_enter(objects[1]);
    cn_call_reply(parked[1], NULL);
    cn_object_leave(objects[1]);
    CHECK(rig.answers[1]->call.envelope.output.stray == lane->stray_last);
    CHECK(lane->stray_last == 1);
    world_let_syncs_go_on();
    run_until(&rig.world, rig.answers[1]);
    CHECK(cn_store_durable(rig.world.store) >= objects[0]->last_lsn);
    CHECK(cn_object_lane_open(lane) && lane->stray_done == lane->stray_last);
    cn_object_enter(objects[0]);
    cn_call_reply(parked[0], NULL);
    cn_object_leave(objects[0]);
    rig_close(&rig);
}

TEST(turn, O5_when_the_object_is_reset_what_it_had_committed_is_waited_for)
{
    struct rig rig;
    rig_open(&rig, &cell);
    world_hold_syncs(rig.sim);
    struct cn_object_lane *lane = &rig.world.lane;
    cn_turn_begin(lane);
    write_row(objects[0]);
    cn_turn_end(lane);
    uint64_t lsn = stray_lsn(lane);
    cn_object_reset(objects[0], CN_FAULT_RESET, CN_EABORTED, "on purpose");
    struct parcel parcel = {0};
    bool before = cn_block_except(true); /* as a lane that serves */
    cn_turn_begin(lane);
    cn_object_output(cn_object_lane_gate(lane), &parcel.output, parcel_send);
    CHECK_INT(0, parcel.sent);
    cn_turn_end(lane);
    world_let_syncs_go_on();
    while (!parcel.sent)
        uv_run(&rig.world.loop, UV_RUN_ONCE);
    CHECK_INT(1, parcel.sent);
    CHECK(cn_store_durable(rig.world.store) >= lsn);
    (void)cn_block_except(before);
    cn_object_enter(objects[1]);
    cn_call_reply(parked[1], NULL);
    cn_object_leave(objects[1]);
    rig_close(&rig);
}

/* Of two objects that code of nobody's writes to in a turn, one is lost: so may be what it says. */
TEST(turn, O5_what_nobody_sends_fails_with_a_write_of_its_turn)
{
    for (int last = 0; last < 2; last++) {
        struct rig rig;
        rig_open(&rig, &cell);
        world_hold_syncs(rig.sim);
        struct cn_object_lane *lane = &rig.world.lane;
        struct parcel parcel = {0};
        cn_turn_begin(lane);
        write_row(objects[0]);
        write_row(objects[1]);
        cn_object_output(cn_object_lane_gate(lane), &parcel.output, parcel_send);
        cn_object_reset(objects[last], CN_FAULT_RESET, CN_EABORTED, "on purpose");
        CHECK_INT(0, parcel.sent);
        cn_turn_end(lane);
        CHECK_INT(-1, parcel.sent);
        world_let_syncs_go_on();
        cn_object_enter(objects[1 - last]);
        cn_call_reply(parked[1 - last], NULL);
        cn_object_leave(objects[1 - last]);
        rig_close(&rig);
    }
}

TEST(turn, a_kicked_object_resumes_in_turns_of_its_own_though_the_gate_is_closed)
{
    struct rig rig;
    rig_open(&rig, &cell);
    cn_object_lock(objects[0]);
    cn_object_kick(objects[0]);
    while (resumed < 2)
        uv_run(&rig.world.loop, UV_RUN_ONCE);
    cn_object_unlock(objects[0]);
    cn_turn_begin(&rig.world.lane);
    reply_both();
    cn_turn_end(&rig.world.lane);
    rig_close(&rig);
}

TEST(turn, calls_of_what_an_object_has_lent_pass_its_gate_if_the_class_says_so)
{
    for (int gates = 0; gates < 2; gates++) {
        struct rig rig;
        rig_open(&rig, gates ? &cell_gates : &cell);
        cn_object_lock(objects[0]);
        struct answer *called = post(&rig.world, "a", LENT);
        for (int i = 0; i < 20; i++)
            uv_run(&rig.world.loop, UV_RUN_NOWAIT);
        CHECK_INT(gates, lent);
        cn_object_unlock(objects[0]);
        run_until(&rig.world, called);
        CHECK_INT(1, lent);
        cn_free(called);
        cn_turn_begin(&rig.world.lane);
        reply_both();
        cn_turn_end(&rig.world.lane);
        rig_close(&rig);
    }
}
