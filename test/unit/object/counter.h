/* SPDX-License-Identifier: Apache-2.0 */
/* A class in C that counts, for tests of the core: what it does is said by the call's payload. */
#ifndef CN_TEST_OBJECT_COUNTER_H
#define CN_TEST_OBJECT_COUNTER_H
#include "object/alarm.h"
#include "object/object.h"
#include "store/database.h"
#include "test/unit/object/world.h"

enum { ADD = 1, READ, PARK, ABORT, LOCK, FAIL, SET_ALARM, DELETE_ALARM, HOLD, WAIT, UNDO };

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

static void counter_add(struct cn_object *object)
{
    struct cn_err err;
    CHECK_INT(0,
              cn_database_exec(cn_object_database(object, &err), "UPDATE c SET n = n + 1", &err));
}

static void counter_alarm(struct cn_object *object, struct world *world, struct cn_call *call)
{
    const struct cn_alarm_info *info = call->payload;
    struct cn_err err;
    CHECK(!object->alarm_running); /* A1 */
    world->alarms++;
    cn_alarm_begin(object, info);
    world->last_retry = info->retry_count;
    world->unordered += info->scheduled_ms < world->last_scheduled_ms;
    world->last_scheduled_ms = info->scheduled_ms;
    if (world->park_alarm) {
        world->parked = call;
        return;
    }
    int64_t alarm;
    CHECK_INT(0, cn_object_alarm_get(object, &alarm, &err));
    CHECK_INT(CN_ALARM_NONE, alarm); /* DO-AL-2 */
    if (world->abort_alarm) {
        counter_add(object);
        if (world->alarm_in_ms)
            CHECK_INT(0,
                      cn_object_alarm_set(object, world->clock.wall_ms + world->alarm_in_ms, &err));
        cn_alarm_give_up(object);
        cn_object_reset(object, CN_FAULT_RESET, CN_EABORTED, "aborted on purpose");
        return;
    }
    if (world->fail_alarm) {
        cn_call_fail(call, world->alarm_faults ? world->alarm_faults : CN_FAULT_REMOTE, CN_EJS,
                     "alarm failed");
        return;
    }
    cn_alarm_succeeded(object);
    cn_call_reply(call, NULL);
}

static void counter_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    struct world *world = instance;
    struct cn_err err;
    if (call->kind == CN_CALL_ALARM) {
        counter_alarm(object, world, call);
        return;
    }
    switch ((intptr_t)call->payload) {
    case ADD:
        counter_add(object);
        cn_call_reply(call, (void *)(intptr_t)read_counter(object));
        break;
    case READ:
        cn_call_reply(call, (void *)(intptr_t)read_counter(object));
        break;
    case UNDO: /* SQLite rolls back what was written, and the code makes nothing of it */
        counter_add(object);
        CHECK_INT(CN_ESQL, cn_database_exec(cn_object_database(object, &err),
                                            "INSERT OR ROLLBACK INTO c(rowid) VALUES(1)", &err));
        cn_call_reply(call, NULL);
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
        CHECK_INT(0, cn_object_alarm_set(object,
                                         world->clock.wall_ms +
                                             (world->alarm_in_ms ? world->alarm_in_ms : 5000),
                                         &err));
        cn_call_reply(call, NULL);
        break;
    case DELETE_ALARM:
        CHECK_INT(0, cn_object_alarm_set(object, CN_ALARM_NONE, &err));
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

/* Lets the loop run until nothing more can happen by itself. */
static inline void settle(struct world *world)
{
    for (int i = 0; i < 20; i++)
        uv_run(&world->loop, UV_RUN_NOWAIT);
}

/* Answers the call that LOCK has parked, and opens the gate. */
static inline void unlock_parked(struct world *world)
{
    struct cn_object *object = world->parked->object;
    cn_object_enter(object);
    cn_call_reply(world->parked, NULL);
    cn_object_unlock(object);
    cn_object_leave(object);
}

#endif
