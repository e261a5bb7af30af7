/* SPDX-License-Identifier: Apache-2.0 */
/* test/bench/workers/compiled.c - the objects of objects.js and sockets.js in C, for `make bench`.
 */
#include <cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_method(cairn_object *object, cairn_event *event)
{
    return cairn->error(object, "TypeError", "there is no method \"%s\"",
                        cairn->event_method(event));
}

static void destroy(cairn_object *object, void *instance)
{
    free(instance);
}

/* --- a counter: memory, one read, and two kinds of durable write --------------------------------
 */

struct counter {
    int64_t n;
    cairn_statement *select, *update;
};

static int counter_create(cairn_object *object, void **instance)
{
    struct counter *counter = calloc(1, sizeof(*counter));
    *instance = counter;
    int rc = cairn->sql_exec(object, "CREATE TABLE IF NOT EXISTS counter(id INTEGER PRIMARY KEY, n "
                                     "INTEGER); INSERT OR IGNORE INTO counter VALUES(1, 0)");
    if (rc < 0)
        return rc;
    counter->select = cairn->sql_prepare(object, "SELECT n FROM counter WHERE id = 1");
    counter->update =
        cairn->sql_prepare(object, "UPDATE counter SET n = n + 1 WHERE id = 1 RETURNING n");
    return counter->select && counter->update ? 0 : CAIRN_ERROR;
}

static int answer_row(cairn_event *event, cairn_statement *statement)
{
    int rc = cairn->sql_step(statement);
    if (rc == 1)
        cairn->build_int(cairn->event_result(event), cairn->sql_column_int(statement, 0));
    cairn->sql_reset(statement);
    return rc < 0 ? rc : 0;
}

static int add_to_pair(cairn_object *object, cairn_event *event)
{
    int64_t n = 0;
    cairn->value_int(cairn->kv_get(object, "n"), &n);
    cairn_builder *kept = cairn->builder(object);
    cairn->build_int(kept, n + 1);
    cairn->build_int(cairn->event_result(event), n + 1);
    return cairn->kv_put(object, "n", kept);
}

static int counter_call(cairn_object *object, void *instance, cairn_event *event)
{
    struct counter *counter = instance;
    const char *method = cairn->event_method(event);
    if (strcmp(method, "memory") == 0) {
        cairn->build_int(cairn->event_result(event), ++counter->n);
        return 0;
    }
    if (strcmp(method, "read") == 0)
        return answer_row(event, counter->select);
    if (strcmp(method, "sql") == 0)
        return answer_row(event, counter->update);
    return strcmp(method, "kv") == 0 ? add_to_pair(object, event) : no_method(object, event);
}

static int counter_fetch(cairn_object *object, void *instance, cairn_event *event)
{
    struct counter *counter = instance;
    char text[64];
    int size = snprintf(text, sizeof(text), "{\"n\":%lld,\"path\":\"/c/counter/fetch\"}",
                        (long long)++counter->n);
    cairn->response_header(event, "content-type", "application/json");
    return cairn->response_write(event, text, (size_t)size);
}

/* --- a sliding window ---------------------------------------------------------------------------
 */

struct limiter {
    cairn_statement *count, *insert;
};

static int limiter_create(cairn_object *object, void **instance)
{
    struct limiter *limiter = calloc(1, sizeof(*limiter));
    *instance = limiter;
    int rc = cairn->sql_exec(object, "CREATE TABLE IF NOT EXISTS hits(key TEXT, at INTEGER); "
                                     "CREATE INDEX IF NOT EXISTS hits_by_key ON hits(key, at)");
    if (rc < 0)
        return rc;
    limiter->count =
        cairn->sql_prepare(object, "SELECT COUNT(*) FROM hits WHERE key = ? AND at > ?");
    limiter->insert = cairn->sql_prepare(object, "INSERT INTO hits(key, at) VALUES(?, ?)");
    return limiter->count && limiter->insert ? 0 : CAIRN_ERROR;
}

static int64_t int_argument(cairn_event *event, size_t index)
{
    int64_t number = 0;
    cairn->value_int(cairn->value_at(cairn->event_arguments(event), index), &number);
    return number;
}

static int limiter_call(cairn_object *object, void *instance, cairn_event *event)
{
    struct limiter *limiter = instance;
    size_t size = 0;
    const char *key = cairn->value_text(cairn->value_at(cairn->event_arguments(event), 0), &size);
    if (strcmp(cairn->event_method(event), "allow") != 0 || !key)
        return no_method(object, event);
    int64_t limit = int_argument(event, 1), now = cairn->now(object), n = 0;
    cairn->sql_bind_text(limiter->count, 1, key, size);
    cairn->sql_bind_int(limiter->count, 2, now - int_argument(event, 2));
    int rc = cairn->sql_step(limiter->count);
    if (rc == 1)
        n = cairn->sql_column_int(limiter->count, 0);
    cairn->sql_reset(limiter->count);
    if (rc >= 0 && n < limit) {
        cairn->sql_bind_text(limiter->insert, 1, key, size);
        cairn->sql_bind_int(limiter->insert, 2, now);
        rc = cairn->sql_step(limiter->insert);
    }
    cairn_builder *result = cairn->event_result(event);
    cairn->build_object(result);
    cairn->build_name(result, "allowed");
    cairn->build_bool(result, n < limit);
    cairn->build_name(result, "n");
    cairn->build_int(result, n < limit ? n + 1 : n);
    cairn->build_end(result);
    return rc < 0 ? rc : 0;
}

/* --- no storage at all --------------------------------------------------------------------------
 */

static int memory_create(cairn_object *object, void **instance)
{
    *instance = calloc(1, sizeof(int64_t));
    return 0;
}

static int memory_call(cairn_object *object, void *instance, cairn_event *event)
{
    cairn->build_int(cairn->event_result(event), ++*(int64_t *)instance);
    return 0;
}

/* --- a room: "e..." is echoed, "b..." goes to everyone -------------------------------------------
 */

static int room_fetch(cairn_object *object, void *instance, cairn_event *event)
{
    return cairn->socket_accept(event, NULL, 0) ? 0 : CAIRN_ERROR;
}

static int room_message(cairn_object *object, void *instance, cairn_socket *socket, int is_text,
                        const void *bytes, size_t size)
{
    if (size && *(const char *)bytes == 'b')
        return cairn->socket_broadcast(object, NULL, is_text, bytes, size) < 0 ? CAIRN_ERROR : 0;
    int rc = cairn->socket_send(object, socket, is_text, bytes, size);
    return rc < 0 ? rc : 0;
}

static int room_close(cairn_object *object, void *instance, cairn_socket *socket, int code,
                      const char *reason, int is_clean)
{
    int rc = cairn->socket_end(object, socket, 1000, "bye");
    return rc < 0 ? rc : 0;
}

static const struct cairn_class classes[] = {
    {.name = "Counter",
     .create = counter_create,
     .destroy = destroy,
     .call = counter_call,
     .fetch = counter_fetch},
    {.name = "Limiter", .create = limiter_create, .destroy = destroy, .call = limiter_call},
    {.name = "Memory", .create = memory_create, .destroy = destroy, .call = memory_call},
    {.name = "Room",
     .fetch = room_fetch,
     .socket_message = room_message,
     .socket_close = room_close},
};
CAIRN_MODULE(classes)
