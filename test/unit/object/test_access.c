/* SPDX-License-Identifier: Apache-2.0 */
/* A visitor from another thread: one more event of a live object, the only owner of one that is
 * not, and never beside anybody else. */
#include "object/access.h"

#include <pthread.h>
#include <stdatomic.h>

#include "object/object.h"
#include "store/database.h"
#include "test/unit/object/world.h"

enum { ADD = 1, COUNT, PARK };

static int64_t rows(struct cn_database *db)
{
    static const char sql[] = "SELECT count(*) FROM t";
    struct cn_statement *statement;
    size_t used;
    struct cn_err err;
    CHECK_INT(0, cn_database_prepare(db, sql, sizeof(sql) - 1, 0, &statement, &used, &err));
    CHECK_INT(1, cn_statement_step(statement, &err));
    int64_t count = cn_statement_column_int(statement, 0);
    cn_statement_release(statement);
    return count;
}

static int table_create(struct cn_object *object, void *class_data, void **instance,
                        struct cn_err *err)
{
    struct world *world = class_data;
    struct cn_database *db = cn_object_database(object, err);
    world->created++;
    *instance = world;
    return db ? cn_database_exec(db, "CREATE TABLE IF NOT EXISTS t(x)", err) : err->code;
}

static void table_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    struct world *world = instance;
    struct cn_err err;
    struct cn_database *db = cn_object_database(object, &err);
    CHECK(db);
    if ((intptr_t)call->payload == PARK) {
        world->parked = call;
        return;
    }
    if ((intptr_t)call->payload == ADD)
        CHECK_INT(0, cn_database_exec(db, "INSERT INTO t VALUES(1)", &err));
    cn_call_reply(call, (void *)(intptr_t)rows(db));
}

static void table_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    ((struct world *)instance)->destroyed++;
}

static const struct cn_class table = {
    .create = table_create, .deliver = table_deliver, .destroy = table_destroy};

/* A visit on a thread; the test runs the lane meanwhile. */
struct visitor {
    struct cn_access visit;
    pthread_t thread;
    atomic_bool begun, may_end, ended;
    int result;
    struct cn_err err;
    struct world *world;
    const char *sql; /* what it does */
    int64_t seen;
};

static int visit_turn(struct cn_object *object, struct cn_database *db, void *data,
                      struct cn_err *err)
{
    struct visitor *visitor = data;
    CHECK(object->lane->current == object);
    int rc = cn_database_exec(db, visitor->sql, err);
    visitor->seen = rc == 0 ? rows(db) : -1;
    return rc;
}

static void visit_alone(struct visitor *visitor)
{
    struct cn_database *db;
    uint64_t lsn;
    CHECK_INT(0, cn_database_open(visitor->world->store, &visitor->visit.key, NULL, &db, NULL));
    CHECK_INT(0, cn_database_exec(db, visitor->sql, NULL));
    visitor->seen = rows(db);
    CHECK_INT(0, cn_database_commit(db, &lsn, NULL));
    cn_database_close(db);
}

static void *visitor_main(void *arg)
{
    struct visitor *visitor = arg;
    visitor->result = cn_access_begin(&visitor->visit, &visitor->err);
    atomic_store(&visitor->begun, true);
    while (visitor->result == 0 && !atomic_load(&visitor->may_end))
        uv_sleep(1);
    if (visitor->result == 0) {
        visit_alone(visitor);
        cn_access_end(&visitor->visit);
    }
    atomic_store(&visitor->ended, true);
    return NULL;
}

static void visitor_start(struct visitor *visitor, struct world *world, const char *name,
                          const char *sql)
{
    struct answer *answer = post(world, "nobody", COUNT); /* only for the key's namespace */
    run_until(world, answer);
    visitor->world = world;
    visitor->sql = sql;
    visitor->visit = (struct cn_access){.node = world->node,
                                        .key = answer->call.key,
                                        .turn = visit_turn,
                                        .exclusive = visitor->visit.exclusive,
                                        .reason = "visited",
                                        .data = visitor};
    cn_id_from_name(&world->ns->keys, CN_JURISDICTION_NONE, name, strlen(name),
                    visitor->visit.key.id);
    cn_free(answer);
    CHECK_INT(0, pthread_create(&visitor->thread, NULL, visitor_main, visitor));
}

static void run_while_not(struct world *world, atomic_bool *flag)
{
    while (!atomic_load(flag)) {
        uv_run(&world->loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
}

static void visitor_finish(struct visitor *visitor)
{
    atomic_store(&visitor->may_end, true);
    run_while_not(visitor->world, &visitor->ended);
    pthread_join(visitor->thread, NULL);
}

TEST(visit, a_live_object_is_joined_in_a_turn_of_its_own)
{
    struct world world;
    struct visitor visitor = {0};
    world_open(&world, test_dir(), &table);
    CHECK_INT(1, ask(&world, "a", ADD));
    int created = world.created;
    visitor_start(&visitor, &world, "a", "INSERT INTO t VALUES(2)");
    visitor_finish(&visitor);
    CHECK_INT(1, visitor.result);
    CHECK_INT(2, visitor.seen);
    CHECK_INT(3, ask(&world, "a", ADD));
    CHECK_INT(created + 1, world.created); /* "nobody", and no second instance of "a" */
    world_close(&world);
}

TEST(visit, what_a_failed_turn_wrote_is_undone)
{
    struct world world;
    struct visitor visitor = {0};
    world_open(&world, test_dir(), &table);
    CHECK_INT(1, ask(&world, "a", ADD));
    visitor_start(&visitor, &world, "a", "INSERT INTO t VALUES(2); INSERT INTO missing VALUES(1)");
    visitor_finish(&visitor);
    CHECK_INT(CN_ESQL, visitor.result);
    CHECK_INT(1, ask(&world, "a", COUNT));
    world_close(&world);
}

TEST(visit, an_object_that_is_not_in_memory_is_suspended_and_calls_wait)
{
    struct world world;
    struct visitor first = {0}, second = {0};
    const char *dir = test_dir();
    world_open(&world, dir, &table);
    CHECK_INT(1, ask(&world, "a", ADD));
    world_close(&world);
    world_open(&world, dir, &table);
    visitor_start(&first, &world, "a", "INSERT INTO t VALUES(2)");
    run_while_not(&world, &first.begun);
    CHECK_INT(0, first.result);
    visitor_start(&second, &world, "a", "INSERT INTO t VALUES(2)"); /* V1 */
    run_while_not(&world, &second.begun);
    CHECK_INT(CN_ELOCKED, second.result);
    visitor_finish(&second);
    int created = world.created;
    struct answer *waiting = post(&world, "a", ADD);
    for (int i = 0; i < 5; i++)
        uv_run(&world.loop, UV_RUN_NOWAIT);
    CHECK(!waiting->done && world.created == created);
    visitor_finish(&first);
    run_until(&world, waiting);
    CHECK_INT(3, (intptr_t)waiting->call.result); /* it sees what the visitor wrote */
    cn_free(waiting);
    world_close(&world);
}

TEST(visit, an_exclusive_one_ends_the_instance)
{
    struct world world;
    struct visitor visitor = {.visit = {.exclusive = true}};
    world_open(&world, test_dir(), &table);
    CHECK_INT(1, ask(&world, "a", ADD));
    struct answer *parked = post(&world, "a", PARK);
    while (!world.parked)
        uv_run(&world.loop, UV_RUN_ONCE);
    int destroyed = world.destroyed;
    visitor_start(&visitor, &world, "a", "DELETE FROM t");
    run_until(&world, parked);
    CHECK(parked->call.envelope.err.code < 0 && parked->call.envelope.faults & CN_FAULT_RESET);
    CHECK_STR("visited", parked->call.envelope.err.text);
    cn_free(parked);
    run_while_not(&world, &visitor.begun);
    CHECK_INT(0, visitor.result);
    visitor_finish(&visitor);
    CHECK_INT(destroyed + 1, world.destroyed);
    CHECK_INT(0, ask(&world, "a", COUNT));
    world_close(&world);
}

static void visit_own_lane(void *data)
{
    struct world *world = data;
    struct cn_access access = {.node = world->node, .exclusive = true, .reason = "test"};
    struct cn_err err;
    (void)cn_access_begin(&access, &err);
}

/* Never a lane's: it would wait for itself. */
TEST(access, a_lane_does_not_wait_for_itself)
{
    struct world world;
    world_open(&world, test_dir(), &table);
    CHECK_ASSERTS("!cn_loop_is_mine(loop)", visit_own_lane, &world);
    world_close(&world);
}
