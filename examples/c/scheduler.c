/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduler: many events, one alarm. An object has a single alarm; it is always set for the
 * earliest event. When it goes off, everything that is due runs, in order of its time.
 *
 * An event that ran and the note that it did are one turn, so one transaction: after a crash in the
 * middle the event runs again, and what it wrote before is undone.
 *
 *     const id = await env.SCHEDULERS.getByName("s").schedule("tea", Date.now() + 180_000, null);
 *
 * Teaches: rows as arrays of objects, RETURNING, SQL that does the arithmetic. */
#include <cairn.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 10000

/* The texts of all statements; `statements` has them prepared. */
enum { COUNT, INSERT, CANCEL, PENDING, RUNS, NOTE, ONCE, REPEAT, TRIM, NEXT, STATEMENTS };
static const char *const texts[STATEMENTS] = {
    [COUNT] = "SELECT count(*) FROM events",
    [INSERT] = "INSERT INTO events (due, label, every) VALUES (?, ?, ?) RETURNING id",
    [CANCEL] = "DELETE FROM events WHERE id = ? RETURNING id",
    [PENDING] = "SELECT id, due, label, every FROM events ORDER BY due, id LIMIT 100",
    [RUNS] = "SELECT id, label, due, ran FROM runs ORDER BY seq DESC LIMIT 20",
    [NOTE] = "INSERT INTO runs (id, label, due, ran) SELECT id, label, due, ?1 FROM events "
             "WHERE due <= ?1 ORDER BY due, id",
    [ONCE] = "DELETE FROM events WHERE due <= ?1 AND every IS NULL",
    /* From its own time on, so that it does not drift; times that passed meanwhile are left out. */
    [REPEAT] = "UPDATE events SET due = due + every * ((?1 - due) / every + 1) WHERE due <= ?1",
    [TRIM] = "DELETE FROM runs WHERE seq <= (SELECT max(seq) FROM runs) - 100",
    [NEXT] = "SELECT min(due) FROM events",
};

static int create(cairn_object *object, void **instance)
{
    cairn_statement **statements = calloc(STATEMENTS, sizeof(*statements));
    *instance = statements;
    if (!statements)
        return cairn->error(object, NULL, "there is no memory left");
    int rc = cairn->sql_exec(
        object,
        "CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY AUTOINCREMENT, due INTEGER NOT "
        "NULL, label TEXT NOT NULL, every INTEGER);"
        "CREATE INDEX IF NOT EXISTS events_due ON events (due, id);"
        "CREATE TABLE IF NOT EXISTS runs (seq INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT "
        "NULL, label TEXT NOT NULL, due INTEGER NOT NULL, ran INTEGER NOT NULL)");
    for (int i = 0; i < STATEMENTS && rc == 0; i++) {
        statements[i] = cairn->sql_prepare(object, texts[i]);
        rc = statements[i] ? 0 : CAIRN_ERROR;
    }
    return rc;
}

static void destroy(cairn_object *object, void *instance)
{
    free(instance);
}

static int set_alarm(cairn_object *object, cairn_statement **statements)
{
    cairn_statement *next = statements[NEXT];
    int rc = cairn->sql_step(next);
    if (rc < 0)
        return rc;
    int none = cairn->sql_column_kind(next, 0) == CAIRN_NULL;
    int64_t due = cairn->sql_column_int(next, 0);
    cairn->sql_reset(next);
    return none ? cairn->alarm_delete(object) : cairn->alarm_set(object, due);
}

static int schedule(cairn_object *object, cairn_statement **statements, cairn_event *event)
{
    const cairn_value *arguments = cairn->event_arguments(event);
    cairn_statement *insert = statements[INSERT];
    int64_t due, every;
    size_t size;
    const char *label = cairn->value_text(cairn->value_at(arguments, 0), &size);
    if (!label || cairn->value_int(cairn->value_at(arguments, 1), &due) < 0)
        return cairn->error(object, "TypeError",
                            "schedule(label, due, every) takes a text, a time");
    int rc = cairn->sql_step(statements[COUNT]);
    int64_t count = cairn->sql_column_int(statements[COUNT], 0);
    cairn->sql_reset(statements[COUNT]);
    if (rc < 0)
        return rc;
    if (count >= EVENTS_MAX) {
        cairn->build_null(cairn->event_result(event));
        return 0;
    }
    rc = cairn->sql_bind_int(insert, 1, due);
    if (rc == 0)
        rc = cairn->sql_bind_text(insert, 2, label, size);
    if (rc == 0)
        rc = cairn->value_int(cairn->value_at(arguments, 2), &every) == 0
                 ? cairn->sql_bind_int(insert, 3, every)
                 : cairn->sql_bind_null(insert, 3);
    if (rc == 0)
        rc = cairn->sql_step(insert);
    if (rc < 0)
        return rc;
    cairn->build_int(cairn->event_result(event), cairn->sql_column_int(insert, 0));
    cairn->sql_reset(insert);
    return set_alarm(object, statements);
}

static int cancel(cairn_object *object, cairn_statement **statements, cairn_event *event)
{
    int64_t id = 0;
    cairn->value_int(cairn->value_at(cairn->event_arguments(event), 0), &id);
    int rc = cairn->sql_bind_int(statements[CANCEL], 1, id);
    if (rc == 0)
        rc = cairn->sql_step(statements[CANCEL]);
    cairn->sql_reset(statements[CANCEL]);
    cairn->build_bool(cairn->event_result(event), rc == 1);
    return rc < 0 ? rc : set_alarm(object, statements);
}

/* All rows, as an array of objects. */
static int build_rows(cairn_statement *rows, cairn_builder *out)
{
    int rc;
    cairn->build_array(out);
    while ((rc = cairn->sql_step(rows)) == 1) {
        cairn->build_object(out);
        for (int i = 0; i < cairn->sql_column_count(rows); i++) {
            size_t size;
            const char *text;
            cairn->build_name(out, cairn->sql_column_name(rows, i));
            switch (cairn->sql_column_kind(rows, i)) {
            case CAIRN_NUMBER:
                cairn->build_int(out, cairn->sql_column_int(rows, i));
                break;
            case CAIRN_TEXT:
                text = cairn->sql_column_text(rows, i, &size);
                cairn->build_text(out, text, size);
                break;
            default:
                cairn->build_null(out);
            }
        }
        cairn->build_end(out);
    }
    cairn->build_end(out);
    return rc;
}

static int state(cairn_object *object, cairn_statement **statements, cairn_event *event)
{
    cairn_builder *out = cairn->event_result(event);
    int64_t time;
    cairn->build_object(out);
    cairn->build_name(out, "pending");
    int rc = build_rows(statements[PENDING], out);
    cairn->build_name(out, "runs");
    if (rc == 0)
        rc = build_rows(statements[RUNS], out);
    cairn->build_name(out, "alarm");
    if (rc == 0)
        rc = cairn->alarm_get(object, &time);
    if (rc == 0 && time >= 0)
        cairn->build_int(out, time);
    else
        cairn->build_null(out);
    cairn->build_end(out);
    return rc;
}

static int call(cairn_object *object, void *instance, cairn_event *event)
{
    const char *method = cairn->event_method(event);
    if (strcmp(method, "schedule") == 0)
        return schedule(object, instance, event);
    if (strcmp(method, "cancel") == 0)
        return cancel(object, instance, event);
    if (strcmp(method, "state") == 0)
        return state(object, instance, event);
    return cairn->error(object, "TypeError", "there is no such method");
}

static int alarm(cairn_object *object, void *instance, cairn_event *event)
{
    static const int steps[] = {NOTE, ONCE, REPEAT};
    cairn_statement **statements = instance;
    int64_t now = cairn->now(object);
    int rc = 0;
    for (size_t i = 0; i < 3 && rc == 0; i++) {
        rc = cairn->sql_bind_int(statements[steps[i]], 1, now);
        if (rc == 0)
            rc = cairn->sql_step(statements[steps[i]]);
    }
    if (rc == 0)
        rc = cairn->sql_step(statements[TRIM]);
    return rc < 0 ? rc : set_alarm(object, statements);
}

static const struct cairn_class classes[] = {
    {.name = "Scheduler", .create = create, .destroy = destroy, .call = call, .alarm = alarm},
};
CAIRN_MODULE(classes)
