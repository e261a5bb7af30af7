/* SPDX-License-Identifier: Apache-2.0 */
/* A rate limiter: a sliding window in SQL, one row for each request that was let in during the last
 * window. One object per client; the object gets its calls one at a time, so nothing can come
 * between the count and the insert, and the limit is exact whatever comes at once.
 *
 *     const verdict = await env.LIMITERS.getByName(user).take(10, 10_000);
 *
 * Teaches: a table, statements that are prepared once and kept, a result with names, an alarm that
 * forgets clients who have gone. */
#include <cairn.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_MS 60000

/* Statements live as long as the object does in memory: preparing them costs more than running. */
struct limiter {
    cairn_statement *forget, *look, *insert;
};

static const char schema[] = "CREATE TABLE IF NOT EXISTS hits (at INTEGER NOT NULL);"
                             "CREATE INDEX IF NOT EXISTS hits_at ON hits (at)";

static int create(cairn_object *object, void **instance)
{
    struct limiter *limiter = calloc(1, sizeof(*limiter));
    *instance = limiter;
    if (!limiter)
        return cairn->error(object, NULL, "there is no memory left");
    int rc = cairn->sql_exec(object, schema);
    if (rc < 0)
        return rc;
    limiter->forget = cairn->sql_prepare(object, "DELETE FROM hits WHERE at <= ?");
    limiter->look = cairn->sql_prepare(object, "SELECT count(*), min(at), max(at) FROM hits");
    limiter->insert = cairn->sql_prepare(object, "INSERT INTO hits (at) VALUES (?)");
    return limiter->forget && limiter->look && limiter->insert ? 0 : CAIRN_ERROR;
}

static void destroy(cairn_object *object, void *instance)
{
    free(instance); /* the statements go with the object */
}

static int run_with(cairn_statement *statement, int64_t number)
{
    int rc = cairn->sql_bind_int(statement, 1, number);
    return rc < 0 ? rc : cairn->sql_step(statement);
}

static int answer(cairn_event *event, int allowed, int64_t limit, int64_t remaining, int64_t after)
{
    cairn_builder *out = cairn->event_result(event);
    cairn->build_object(out);
    cairn->build_name(out, "allowed");
    cairn->build_bool(out, allowed);
    cairn->build_name(out, "limit");
    cairn->build_int(out, limit);
    cairn->build_name(out, "remaining");
    cairn->build_int(out, remaining);
    cairn->build_name(out, "retryAfterMs");
    cairn->build_int(out, after);
    cairn->build_end(out);
    return 0;
}

static int take(cairn_object *object, struct limiter *limiter, cairn_event *event)
{
    const cairn_value *arguments = cairn->event_arguments(event);
    int64_t limit, window, now = cairn->now(object);
    if (cairn->value_int(cairn->value_at(arguments, 0), &limit) < 0 ||
        cairn->value_int(cairn->value_at(arguments, 1), &window) < 0)
        return cairn->error(object, "TypeError", "take(limit, windowMs) takes two numbers");
    int rc = run_with(limiter->forget, now - window);
    if (rc == 0)
        rc = cairn->sql_step(limiter->look);
    if (rc < 0)
        return rc;
    int64_t count = cairn->sql_column_int(limiter->look, 0);
    int64_t oldest = cairn->sql_column_int(limiter->look, 1);
    cairn->sql_reset(limiter->look);
    if (count >= limit) {
        int64_t after = oldest + window - now;
        return answer(event, 0, limit, 0, after > 1 ? after : 1);
    }
    rc = run_with(limiter->insert, now);
    if (rc == 0 && count == 0) /* who has been away for two windows is forgotten */
        rc = cairn->alarm_set(object, now + 2 * window);
    return rc < 0 ? rc : answer(event, 1, limit, limit - count - 1, 0);
}

static int call(cairn_object *object, void *instance, cairn_event *event)
{
    if (strcmp(cairn->event_method(event), "take") == 0)
        return take(object, instance, event);
    return cairn->error(object, "TypeError", "there is no such method");
}

static int alarm(cairn_object *object, void *instance, cairn_event *event)
{
    struct limiter *limiter = instance;
    int rc = cairn->sql_step(limiter->look);
    if (rc < 0)
        return rc;
    int64_t count = cairn->sql_column_int(limiter->look, 0);
    int64_t newest = cairn->sql_column_int(limiter->look, 2);
    cairn->sql_reset(limiter->look);
    if (count && cairn->now(object) - newest < KEEP_MS)
        return cairn->alarm_set(object, newest + KEEP_MS);
    rc = cairn->delete_all(object); /* an idle client costs hardly any storage */
    return rc < 0 ? rc : cairn->sql_exec(object, schema);
}

static const struct cairn_class classes[] = {
    {.name = "Limiter", .create = create, .destroy = destroy, .call = call, .alarm = alarm},
};
CAIRN_MODULE(classes)
