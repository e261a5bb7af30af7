/* SPDX-License-Identifier: Apache-2.0 */
/* The output gate on a disk whose syncs take as long as the test wants, or fail. */
#include <errno.h>

#include "object/object.h"
#include "store/database.h"
#include "store/sink.h"
#include "store/store_private.h"
#include "test/unit/object/world.h"

enum { WRITE = 1, WRITE_UNCONFIRMED, READ, SYNC };

struct sync {
    struct cn_output output;
    struct cn_call *call;
};

static void on_synced(struct cn_output *output, const struct cn_err *err)
{
    struct sync *sync = (struct sync *)output;
    CHECK(!err);
    cn_call_reply(sync->call, NULL);
    cn_free(sync);
}

static int cell_create(struct cn_object *object, void *class_data, void **instance,
                       struct cn_err *err)
{
    struct world *world = class_data;
    world->created++;
    *instance = world;
    return cn_object_database(object, err) ? 0 : err->code;
}

static int64_t count_rows(struct cn_database *db)
{
    struct cn_err err;
    struct cn_statement *statement;
    size_t used;
    static const char sql[] = "SELECT count(*) FROM sqlite_master";
    CHECK_INT(0, cn_database_prepare(db, sql, sizeof(sql) - 1, 0, &statement, &used, &err));
    CHECK_INT(1, cn_statement_step(statement, &err));
    int64_t count = cn_statement_column_int(statement, 0);
    cn_statement_release(statement);
    return count;
}

static void cell_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    (void)instance;
    struct cn_err err;
    struct cn_database *db = cn_object_database(object, &err);
    CHECK(db);
    switch ((intptr_t)call->payload) {
    case WRITE:
        CHECK_INT(0, cn_database_exec(db, "CREATE TABLE a(x)", &err));
        break;
    case WRITE_UNCONFIRMED:
        CHECK_INT(0, cn_database_exec(db, "CREATE TABLE b(x)", &err));
        object->unconfirmed = true;
        break;
    case SYNC: {
        struct sync *sync = CN_NEW(struct sync);
        sync->call = call;
        cn_object_sync(object, &sync->output, on_synced);
        return;
    }
    }
    cn_call_reply(call, (void *)(intptr_t)count_rows(db));
}

static void cell_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    ((struct world *)instance)->destroyed++;
}

static const struct cn_class cell = {
    .create = cell_create, .deliver = cell_deliver, .destroy = cell_destroy};

static void run_once(struct world *world)
{
    for (int i = 0; i < 20; i++)
        uv_run(&world->loop, UV_RUN_NOWAIT);
}

static struct simdisk *open_world(struct world *world)
{
    struct simdisk *sim = simdisk_new();
    world_open_on(world, simdisk_disk(sim), CN_LOG_FSYNC, &cell);
    return sim;
}

TEST(gate, DO_KV_2_an_unconfirmed_write_holds_no_output_back_and_sync_waits_for_it)
{
    struct world world;
    struct simdisk *sim = open_world(&world);
    struct answer *first = post(&world, "a", READ);
    run_until(&world, first); /* the object is there, its name durable */
    world_hold_syncs(sim);
    struct answer *unconfirmed = post(&world, "a", WRITE_UNCONFIRMED);
    run_until(&world, unconfirmed);
    CHECK_INT(1, (intptr_t)unconfirmed->call.result);
    struct answer *sync = post(&world, "a", SYNC);
    struct answer *write = post(&world, "a", WRITE);
    run_once(&world);
    CHECK(!sync->done && !write->done);
    world_let_syncs_go_on();
    run_until(&world, sync);
    run_until(&world, write);
    CHECK_INT(0, sync->call.envelope.err.code);
    CHECK_INT(2, (intptr_t)write->call.result);
    cn_free(first);
    cn_free(unconfirmed);
    cn_free(sync);
    cn_free(write);
    world_close(&world);
    simdisk_free(sim);
}

TEST(gate, DO_TX_5_a_failed_flush_resets_the_object_and_fails_every_held_output)
{
    struct world world;
    struct simdisk *sim = open_world(&world);
    struct answer *before = post(&world, "a", READ), *other = post(&world, "b", READ);
    run_until(&world, before);
    run_until(&world, other);
    world_hold_syncs(sim);
    struct simdisk_fault fault = {.kinds = SIMDISK_SYNC, .at = 1, .code = -EIO, .sticky = true};
    simdisk_set_fault(sim, &fault);
    struct answer *held[3] = {post(&world, "a", WRITE), post(&world, "a", READ),
                              post(&world, "a", READ)};
    run_once(&world);
    for (int i = 0; i < 3; i++)
        CHECK(!held[i]->done);
    world_let_syncs_go_on();
    for (int i = 0; i < 3; i++) {
        run_until(&world, held[i]);
        CHECK(held[i]->call.envelope.err.code != 0);
        CHECK(held[i]->call.envelope.faults & CN_FAULT_RESET);
        cn_free(held[i]);
    }
    for (int i = 0; i < 1000000 && !world.destroyed; i++)
        run_once(&world);          /* until the lane has seen that it is empty */
    CHECK_INT(1, world.destroyed); /* a's instance is gone, b's has written nothing and stays */
    struct answer *after = post(&world, "b", READ);
    run_until(&world, after);
    CHECK_INT(0, after->call.envelope.err.code);
    cn_free(after);
    cn_free(before);
    cn_free(other);
    world_close(&world);
    simdisk_set_fault(sim, &(struct simdisk_fault){0});
    simdisk_free(sim);
}

/* The disk is full, as the keeper tells the store: its own syncs wait here too, so it says nothing
 * else meanwhile. */
TEST(gate, G3_what_the_log_has_taken_is_answered_when_it_is_durable_on_a_full_disk_too)
{
    struct world world;
    struct simdisk *sim = open_world(&world);
    struct answer *first = post(&world, "a", READ);
    run_until(&world, first);
    struct cn_err err;
    world_hold_syncs(sim);
    struct answer *write = post(&world, "a", WRITE);
    run_once(&world);
    CHECK(!write->done);
    atomic_store(&world.store->images.no_space, true);
    CHECK_INT(CN_EREADONLY, cn_store_status(world.store, &err));
    CHECK_INT(0, cn_store_lost(world.store, &err));
    struct answer *read = post(&world, "a", READ); /* the gate is asked again */
    run_once(&world);
    CHECK(!write->done && !read->done);
    world_let_syncs_go_on();
    run_until(&world, write);
    run_until(&world, read);
    CHECK_INT(0, write->call.envelope.err.code);
    CHECK_INT(0, read->call.envelope.err.code);
    cn_free(first);
    cn_free(write);
    cn_free(read);
    world_close(&world);
    simdisk_free(sim);
}

static void let_syncs_go_on_later(void *data)
{
    (void)data;
    uv_sleep(50); /* so long that a lane which does not wait has gone */
    world_let_syncs_go_on();
}

/* An answer that rests on nothing is held behind one that waits for its write (G2): the lane waits
 * for that one too. */
TEST(gate, L3_a_lane_that_stops_sends_what_it_holds)
{
    struct world world;
    struct simdisk *sim = open_world(&world);
    struct answer *first = post(&world, "a", READ), *second = post(&world, "b", READ);
    run_until(&world, first);
    run_until(&world, second);
    world_hold_syncs(sim);
    struct answer *write = post(&world, "a", WRITE), *read = post(&world, "b", READ);
    run_once(&world);
    CHECK(!write->done && !read->done);
    uv_thread_t thread;
    CHECK_INT(0, uv_thread_create(&thread, let_syncs_go_on_later, NULL));
    world_close(&world);
    uv_thread_join(&thread);
    CHECK(write->done && read->done);
    CHECK_INT(0, write->call.envelope.err.code);
    CHECK_INT(0, read->call.envelope.err.code);
    cn_free(first);
    cn_free(second);
    cn_free(write);
    cn_free(read);
    simdisk_free(sim);
}

/* --- a sink: store/sink.h -------------------------------------------------------------------- */

static atomic_bool lease, refuses;

static int sink_settle(void *data, const struct cn_sink_batch *batch, struct cn_err *err)
{
    (void)data, (void)batch;
    world_before_sync(NULL, NULL, NULL);
    return atomic_load(&refuses) ? cn_err_set(err, CN_EREADONLY, "the session is over") : 0;
}

static bool sink_may_leave(void *data)
{
    (void)data;
    return atomic_load(&lease);
}

static const struct cn_sink sink = {.settle = sink_settle, .may_leave = sink_may_leave};

static struct simdisk *open_world_with_sink(struct world *world)
{
    atomic_store(&lease, true);
    atomic_store(&refuses, false);
    world_sink = &sink;
    struct simdisk *sim = open_world(world);
    world_sink = NULL;
    return sim;
}

TEST(gate, K4_nothing_leaves_without_the_lease_though_it_is_durable_or_wrote_nothing)
{
    struct world world;
    struct simdisk *sim = open_world_with_sink(&world);
    struct answer *first = post(&world, "a", READ);
    run_until(&world, first);
    atomic_store(&lease, false);
    struct answer *held[3] = {post(&world, "a", READ), post(&world, "a", WRITE),
                              post(&world, "a", READ)};
    run_once(&world);
    CHECK_INT(0, cn_store_wait(world.store, cn_log_appended(cn_store_log(world.store)), NULL));
    run_once(&world);
    for (int i = 0; i < 3; i++)
        CHECK(!held[i]->done);
    atomic_store(&lease, true);
    cn_store_wake(world.store);
    for (int i = 0; i < 3; i++) {
        run_until(&world, held[i]);
        CHECK_INT(0, held[i]->call.envelope.err.code);
        cn_free(held[i]);
    }
    cn_free(first);
    world_close(&world);
    simdisk_free(sim);
}

static atomic_uint_least64_t tickets, confirmed;

static uint64_t sink_ticket(void *data)
{
    (void)data;
    return atomic_fetch_add(&tickets, 1) + 1;
}

static bool sink_confirmed(void *data, uint64_t ticket)
{
    (void)data;
    return ticket <= atomic_load(&confirmed);
}

TEST(gate, K5_an_answer_leaves_when_what_it_took_is_confirmed_and_in_order)
{
    static const struct cn_sink verifies = {.settle = sink_settle,
                                            .may_leave = sink_may_leave,
                                            .ticket = sink_ticket,
                                            .confirmed = sink_confirmed};
    struct world world;
    atomic_store(&lease, true);
    atomic_store(&tickets, 0);
    atomic_store(&confirmed, UINT64_MAX);
    world_sink = &verifies;
    struct simdisk *sim = open_world(&world);
    world_sink = NULL;
    struct answer *first = post(&world, "a", READ);
    run_until(&world, first);
    uint64_t taken = atomic_load(&tickets);
    CHECK(taken > 0);
    atomic_store(&confirmed, taken); /* all so far: that says nothing about the next */
    struct answer *one = post(&world, "a", READ), *two = post(&world, "b", READ);
    run_once(&world);
    CHECK(!one->done && !two->done);
    CHECK(atomic_load(&tickets) >= taken + 2);
    atomic_store(&confirmed, taken + 1);
    cn_store_wake(world.store);
    run_until(&world, one);
    CHECK_INT(0, one->call.envelope.err.code);
    run_once(&world);
    CHECK(!two->done);
    atomic_store(&confirmed, UINT64_MAX);
    cn_store_wake(world.store);
    run_until(&world, two);
    CHECK_INT(0, two->call.envelope.err.code);
    cn_free(first);
    cn_free(one);
    cn_free(two);
    world_close(&world);
    simdisk_free(sim);
}

TEST(gate, K2_what_the_sink_refuses_is_told_to_nobody_and_the_object_is_reset)
{
    struct world world;
    struct simdisk *sim = open_world_with_sink(&world);
    struct answer *first = post(&world, "a", READ), *other = post(&world, "b", READ);
    run_until(&world, first);
    run_until(&world, other);
    world_hold_syncs(sim);
    struct answer *held[2] = {post(&world, "a", WRITE), post(&world, "a", READ)};
    run_once(&world);
    CHECK(!held[0]->done && !held[1]->done);
    atomic_store(&refuses, true);
    atomic_store(&lease, false); /* and what is durable is kept by the lease */
    struct answer *kept = post(&world, "b", READ);
    run_once(&world);
    CHECK(!kept->done);
    world_let_syncs_go_on();
    for (int i = 0; i < 2; i++) {
        run_until(&world, held[i]);
        CHECK(held[i]->call.envelope.faults & CN_FAULT_RESET);
        cn_free(held[i]);
    }
    run_until(&world, kept);
    CHECK(kept->call.envelope.err.code != 0);
    cn_free(kept);
    cn_free(first);
    cn_free(other);
    world_close(&world);
    simdisk_free(sim);
}

TEST(gate, L3_a_lane_that_stops_without_a_lease_fails_what_it_holds)
{
    struct world world;
    struct simdisk *sim = open_world_with_sink(&world);
    struct answer *first = post(&world, "a", READ);
    run_until(&world, first);
    atomic_store(&lease, false);
    struct answer *write = post(&world, "a", WRITE);
    run_once(&world);
    CHECK(!write->done);
    world_close(&world);
    CHECK(write->done);
    CHECK(write->call.envelope.err.code != 0);
    cn_free(first);
    cn_free(write);
    simdisk_free(sim);
}
