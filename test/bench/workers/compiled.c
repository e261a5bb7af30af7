/* SPDX-License-Identifier: Apache-2.0 */
/* test/bench/workers/compiled.c - the objects of objects.js and sockets.js in C, and the worker of
 * objects.js in front of them, for `make bench`. */
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

/* --- the worker: /hello, /counter/METHOD?name=a, /memory/hit?name=a, /limit?name=7 ---------------
 */

/* The path of "https://host/path?query". */
static const char *path_of(const char *url)
{
    const char *host = strstr(url, "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;
    return path ? path : "/";
}

/* The name in the query, "a" if there is none; `size` bytes of room. */
static const char *name_of(const char *path, char *out, size_t size)
{
    const char *query = strchr(path, '?');
    const char *name = query ? strstr(query, "name=") : NULL;
    size_t length = name ? strcspn(name + 5, "&") : 0;
    if (length == 0 || length >= size)
        return "a";
    memcpy(out, name + 5, length);
    out[length] = 0;
    return out;
}

static int answer_json(cairn_event *event, const char *text, size_t size)
{
    cairn->response_header(event, "content-type", "application/json");
    return cairn->response_write(event, text, size);
}

static void end_with(cairn_object *worker, cairn_event *event, const struct cairn_reply *reply,
                     const char *text, int size)
{
    if (reply->error)
        cairn->error(worker, NULL, "%s", reply->error);
    else if (answer_json(event, text, (size_t)size) == 0) {
        cairn->event_answer(event);
        return;
    }
    cairn->event_fail(event);
}

static void on_number(cairn_object *worker, void *instance, const struct cairn_reply *reply,
                      void *data)
{
    char text[40];
    int64_t n = 0;
    cairn->value_int(reply->value, &n);
    int size = snprintf(text, sizeof(text), "{\"n\":%lld}", (long long)n);
    end_with(worker, data, reply, text, size);
}

static void on_allowed(cairn_object *worker, void *instance, const struct cairn_reply *reply,
                       void *data)
{
    char text[64];
    int64_t n = 0;
    int allowed = cairn->value_bool(cairn->value_get(reply->value, "allowed"));
    cairn->value_int(cairn->value_get(reply->value, "n"), &n);
    int size = snprintf(text, sizeof(text), "{\"allowed\":%s,\"n\":%lld}",
                        allowed ? "true" : "false", (long long)n);
    end_with(worker, data, reply, text, size);
}

static int ask_limiter(cairn_object *worker, cairn_event *event, const char *name)
{
    char shard[32];
    snprintf(shard, sizeof(shard), "shard%d", (int)(strtol(name, NULL, 10) % 10));
    cairn_builder *arguments = cairn->builder(worker);
    cairn->build_array(arguments);
    cairn->build_text(arguments, name, strlen(name));
    cairn->build_int(arguments, 1000000000);
    cairn->build_int(arguments, 1000);
    cairn->build_end(arguments);
    return cairn->object_call(worker, "C_LIMITER", shard, "allow", arguments, on_allowed, event);
}

static int front_fetch(cairn_object *worker, void *instance, cairn_event *event)
{
    char name[64], method[32];
    const char *path = path_of(cairn->request_url(event));
    int rc;
    if (strcmp(path, "/hello") == 0) {
        cairn->response_header(event, "content-type", "text/plain;charset=UTF-8");
        return cairn->response_write(event, "hello", 5);
    }
    if (sscanf(path, "/counter/%31[a-z]", method) == 1)
        rc = cairn->object_call(worker, "C_COUNTER", name_of(path, name, sizeof(name)), method,
                                NULL, on_number, event);
    else if (strncmp(path, "/memory/", 8) == 0)
        rc = cairn->object_call(worker, "C_MEMORY", name_of(path, name, sizeof(name)), "hit", NULL,
                                on_number, event);
    else if (strncmp(path, "/limit", 6) == 0)
        rc = ask_limiter(worker, event, name_of(path, name, sizeof(name)));
    else
        return cairn->response_status(event, 404);
    return rc < 0 ? rc : CAIRN_LATER;
}

static const struct cairn_class classes[] = {
    {.name = "Front", .fetch = front_fetch},
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
