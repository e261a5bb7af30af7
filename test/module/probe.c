/* SPDX-License-Identifier: Apache-2.0 */
/* test/module/probe.c - a module whose class does whatever a test asks for: one method for each
 * thing of cairn.h. -DVERSION=2 makes another one of it. */
#define _POSIX_C_SOURCE 200809L
#include <cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 1
#endif

struct probe {
    int64_t lives; /* calls in this life */
    cairn_statement *insert;
    cairn_event *kept; /* answered later */
};

static const cairn_value *arg(cairn_event *event, size_t index)
{
    return cairn->value_at(cairn->event_arguments(event), index);
}

static const char *text_arg(cairn_event *event, size_t index)
{
    const char *text = cairn->value_text(arg(event, index), NULL);
    return text ? text : "";
}

static int create(cairn_object *object, void **instance)
{
    struct probe *probe = calloc(1, sizeof(*probe));
    *instance = probe;
    const char *name = cairn->object_name(object);
    if (name && strcmp(name, "refuses") == 0)
        return cairn->error(object, "RangeError", "no such object: %s", name);
    return cairn->sql_exec(object, "CREATE TABLE IF NOT EXISTS items(id INTEGER PRIMARY KEY, "
                                   "text TEXT, number REAL, bytes BLOB)");
}

static void destroy(cairn_object *object, void *instance)
{
    free(instance);
}

/* What the value is, in words of the builder. */
static int m_echo(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn->build_value(cairn->event_result(event), arg(event, 0));
    return 0;
}

static int m_kind(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn_builder *out = cairn->event_result(event);
    const cairn_value *value = arg(event, 0);
    double number = 0;
    int64_t integer = 0;
    size_t size = 0;
    cairn->value_number(value, &number);
    int rc = cairn->value_int(value, &integer);
    cairn->build_object(out);
    cairn->build_name(out, "kind");
    cairn->build_int(out, cairn->value_kind(value));
    cairn->build_name(out, "number");
    cairn->build_number(out, number);
    cairn->build_name(out, "int");
    if (rc == 0)
        cairn->build_bigint(out, integer);
    else
        cairn->build_null(out);
    cairn->build_name(out, "count");
    cairn->build_int(out, (int64_t)cairn->value_count(value));
    cairn->build_name(out, "bytes");
    const void *bytes = cairn->value_bytes(value, &size);
    if (bytes)
        cairn->build_bytes(out, bytes, size);
    else
        cairn->build_undefined(out);
    cairn->build_name(out, "message");
    cairn->build_value(out, cairn->value_get(value, "message"));
    cairn->build_name(out, "name");
    cairn->build_value(out, cairn->value_get(value, "name"));
    cairn->build_end(out);
    return 0;
}

static int m_count(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn->build_int(cairn->event_result(event), ++probe->lives);
    return 0;
}

static int m_version(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn->build_int(cairn->event_result(event), VERSION);
    return 0;
}

static int m_add(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int64_t sum = 0, by = 1;
    cairn->value_int(cairn->kv_get(object, "sum"), &sum);
    cairn->value_int(arg(event, 0), &by);
    cairn_builder *kept = cairn->builder(object);
    cairn->build_int(kept, sum + by);
    int rc = cairn->kv_put(object, "sum", kept);
    cairn->build_int(cairn->event_result(event), sum + by);
    return rc;
}

static int m_put(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn_builder *kept = cairn->builder(object);
    cairn->build_value(kept, arg(event, 1));
    return cairn->kv_put(object, text_arg(event, 0), kept);
}

static int m_get(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn->build_value(cairn->event_result(event), cairn->kv_get(object, text_arg(event, 0)));
    return 0;
}

static int m_delete(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int rc = cairn->kv_delete(object, text_arg(event, 0));
    cairn->build_bool(cairn->event_result(event), rc == 1);
    return rc < 0 ? rc : 0;
}

static int each(void *data, const char *key, const cairn_value *value)
{
    cairn_builder *out = data;
    cairn->build_text(out, key, strlen(key));
    cairn->build_value(out, value);
    return 0;
}

static int m_list(cairn_object *object, struct probe *probe, cairn_event *event)
{
    struct cairn_range range = {sizeof(range), text_arg(event, 0), NULL, NULL, 0, 0, 0};
    range.reverse = cairn->value_bool(arg(event, 1));
    cairn->value_int(arg(event, 2), &range.limit);
    cairn_builder *out = cairn->event_result(event);
    cairn->build_map(out);
    int rc = cairn->kv_list(object, &range, each, out);
    cairn->build_end(out);
    return rc;
}

static int m_insert(cairn_object *object, struct probe *probe, cairn_event *event)
{
    size_t size;
    double number = 0;
    if (!probe->insert) {
        probe->insert =
            cairn->sql_prepare(object, "INSERT INTO items(text, number, bytes) VALUES (?, ?, ?)");
        if (!probe->insert)
            return CAIRN_ERROR;
    }
    const char *text = text_arg(event, 0);
    const void *bytes = cairn->value_bytes(arg(event, 2), &size);
    cairn->value_number(arg(event, 1), &number);
    int rc = cairn->sql_bind_text(probe->insert, 1, text, strlen(text));
    if (rc == 0)
        rc = cairn->sql_bind_real(probe->insert, 2, number);
    if (rc == 0)
        rc = bytes ? cairn->sql_bind_blob(probe->insert, 3, bytes, size)
                   : cairn->sql_bind_null(probe->insert, 3);
    if (rc == 0)
        rc = cairn->sql_step(probe->insert);
    cairn->build_int(cairn->event_result(event), cairn->sql_last_rowid(object));
    return rc;
}

static int m_rows(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int64_t limit = 1000;
    cairn_builder *out = cairn->event_result(event);
    cairn_statement *rows = cairn->sql_prepare(object, text_arg(event, 0));
    if (!rows)
        return CAIRN_ERROR;
    cairn->value_int(arg(event, 1), &limit);
    int rc = 0;
    cairn->build_array(out);
    while (limit-- > 0 && (rc = cairn->sql_step(rows)) == 1) {
        cairn->build_object(out);
        for (int i = 0; i < cairn->sql_column_count(rows); i++) {
            size_t size;
            cairn->build_name(out, cairn->sql_column_name(rows, i));
            switch (cairn->sql_column_kind(rows, i)) {
            case CAIRN_NUMBER:
                cairn->build_number(out, cairn->sql_column_real(rows, i));
                break;
            case CAIRN_TEXT: {
                const char *text = cairn->sql_column_text(rows, i, &size);
                cairn->build_text(out, text, size);
                break;
            }
            case CAIRN_BYTES: {
                const void *bytes = cairn->sql_column_blob(rows, i, &size);
                cairn->build_bytes(out, bytes, size);
                break;
            }
            default:
                cairn->build_null(out);
            }
        }
        cairn->build_end(out);
    }
    cairn->build_end(out);
    return rc < 0 ? rc : 0; /* a statement with rows left ends with the function */
}

static int m_exec(cairn_object *object, struct probe *probe, cairn_event *event)
{
    return cairn->sql_exec(object, text_arg(event, 0));
}

static int put_text(cairn_object *object, const char *key, const char *text)
{
    cairn_builder *kept = cairn->builder(object);
    cairn->build_text(kept, text, strlen(text));
    return cairn->kv_put(object, key, kept);
}

static int m_transaction(cairn_object *object, struct probe *probe, cairn_event *event)
{
    const char *how = text_arg(event, 0);
    int rc = put_text(object, "before", how);
    if (rc == 0)
        rc = cairn->transaction_begin(object);
    if (rc == 0)
        rc = put_text(object, "inside", how);
    if (rc == 0 && strcmp(how, "nested") == 0) {
        rc = cairn->transaction_begin(object);
        put_text(object, "deep", how);
        cairn->transaction_rollback(object);
        rc = cairn->transaction_commit(object);
    }
    if (rc == 0 && strcmp(how, "commit") == 0)
        rc = cairn->transaction_commit(object);
    if (rc == 0 && strcmp(how, "rollback") == 0)
        rc = cairn->transaction_rollback(object);
    return rc;
}

/* How deep transactions nest before one is refused. */
static int m_depth(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int depth = 0;
    while (cairn->transaction_begin(object) == 0)
        depth++;
    put_text(object, "depths", "innermost");
    for (int i = 0; i < depth; i++) {
        int rc = i % 2 ? cairn->transaction_rollback(object) : cairn->transaction_commit(object);
        if (rc < 0)
            return rc;
    }
    cairn->build_int(cairn->event_result(event), depth);
    return 0;
}

static int m_fail(cairn_object *object, struct probe *probe, cairn_event *event)
{
    put_text(object, "written", "before the error");
    return cairn->error(object, text_arg(event, 0), "%s", text_arg(event, 1));
}

static int m_silent(cairn_object *object, struct probe *probe, cairn_event *event)
{
    return -77;
}

static int m_abort(cairn_object *object, struct probe *probe, cairn_event *event)
{
    put_text(object, "undone", "by the reset");
    cairn->abort(object, text_arg(event, 0));
    int rc = put_text(object, "undone", "and closed");
    return rc == CAIRN_ECLOSED ? 0 : cairn->error(object, NULL, "storage is open after abort()");
}

static int m_later(cairn_object *object, struct probe *probe, cairn_event *event)
{
    if (probe->kept)
        return cairn->error(object, NULL, "one is kept already");
    probe->kept = event;
    return CAIRN_LATER;
}

static int m_now(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn_event *kept = probe->kept;
    if (!kept)
        return cairn->error(object, NULL, "none is kept");
    probe->kept = NULL;
    if (strcmp(text_arg(event, 0), "fail") == 0) {
        cairn->error(object, "TypeError", "%s", text_arg(kept, 0));
        cairn->event_fail(kept);
    } else {
        cairn->build_value(cairn->event_result(kept), arg(kept, 0));
        cairn->event_answer(kept);
    }
    return 0;
}

static int m_alarm(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int64_t delay = 0;
    cairn->value_int(arg(event, 0), &delay);
    put_text(object, "alarm", text_arg(event, 1));
    return cairn->alarm_set(object, cairn->now(object) + delay);
}

static int m_alarmAt(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int64_t time;
    int rc = cairn->alarm_get(object, &time);
    cairn->build_int(cairn->event_result(event), time);
    return rc;
}

static int m_alarmOff(cairn_object *object, struct probe *probe, cairn_event *event)
{
    return cairn->alarm_delete(object);
}

static int m_mistake(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn_builder *out = cairn->event_result(event);
    cairn->build_object(out);
    cairn->build_int(out, 1);
    return 0;
}

static int m_open(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn->build_array(cairn->event_result(event));
    return 0;
}

static int m_clear(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int rc = cairn->delete_all(object);
    return rc < 0 ? rc
                  : cairn->sql_exec(object, "CREATE TABLE items(id INTEGER PRIMARY KEY, text TEXT, "
                                            "number REAL, bytes BLOB)");
}

static int m_log(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn->log(object, CAIRN_WARN, "the probe says %s", text_arg(event, 0));
    return 0;
}

static int m_id(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn->build_text(cairn->event_result(event), cairn->object_id(object), 64);
    return 0;
}

static int m_crash(cairn_object *object, struct probe *probe, cairn_event *event)
{
    if (strcmp(text_arg(event, 0), "abort") == 0)
        abort();
    *(volatile int *)(intptr_t)text_arg(event, 9)[0] = 1;
    return 0;
}

/* Answers the event that waits for a reply with it. */
static void pass_on(cairn_object *object, void *instance, const struct cairn_reply *reply,
                    void *data)
{
    cairn_event *event = data;
    if (reply->error) {
        const char *type = cairn->value_text(cairn->value_get(reply->value, "name"), NULL);
        cairn->error(object, type, "%s%s%s", reply->error, reply->retryable ? " (retryable)" : "",
                     reply->overloaded ? " (overloaded)" : "");
        cairn->event_fail(event);
        return;
    }
    cairn->build_value(cairn->event_result(event), reply->value);
    cairn->event_answer(event);
}

static int later(int rc)
{
    return rc < 0 ? rc : CAIRN_LATER;
}

static int m_relay(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn_builder *arguments = cairn->builder(object);
    cairn->build_value(arguments, arg(event, 3));
    return later(cairn->object_call(object, text_arg(event, 0), text_arg(event, 1),
                                    text_arg(event, 2), arguments, pass_on, event));
}

static int m_relayId(cairn_object *object, struct probe *probe, cairn_event *event)
{
    return later(cairn->object_call_id(object, text_arg(event, 0), text_arg(event, 1),
                                       text_arg(event, 2), NULL, pass_on, event));
}

static int m_env(cairn_object *object, struct probe *probe, cairn_event *event)
{
    const char *text = cairn->env(object, text_arg(event, 0));
    if (text)
        cairn->build_text(cairn->event_result(event), text, strlen(text));
    return 0;
}

static void fire(cairn_object *object, void *instance, void *data)
{
    cairn_event *event = data;
    int64_t sum = 0;
    cairn->value_int(cairn->kv_get(object, "fired"), &sum);
    cairn_builder *kept = cairn->builder(object);
    cairn->build_int(kept, sum + 1);
    cairn->kv_put(object, "fired", kept);
    if (!event)
        return;
    cairn->build_int(cairn->event_result(event), sum + 1);
    cairn->event_answer(event);
}

static int m_sleep(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int64_t delay = 0;
    cairn->value_int(arg(event, 0), &delay);
    return later(cairn->timer_start(object, delay, fire, event) > 0 ? 0 : CAIRN_ERROR);
}

static int m_timers(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int64_t first = cairn->timer_start(object, 3600000, fire, NULL);
    int64_t second = cairn->timer_start(object, 3600000, fire, NULL);
    cairn_builder *out = cairn->event_result(event);
    cairn->build_array(out);
    cairn->build_int(out, cairn->timer_stop(object, first));
    cairn->build_int(out, cairn->timer_stop(object, first));
    cairn->build_int(out, cairn->timer_stop(object, second + 1));
    cairn->build_end(out);
    return second < 0 ? (int)second : 0;
}

static int m_manyTimers(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int64_t rc = 0;
    for (int i = 0; i < 20000 && rc >= 0; i++)
        rc = cairn->timer_start(object, 3600000, fire, NULL);
    return (int)rc;
}

static int m_bookmark(cairn_object *object, struct probe *probe, cairn_event *event)
{
    return later(cairn->bookmark_now(object, pass_on, event));
}

static int m_bookmarkAt(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int64_t time = 0;
    cairn->value_int(arg(event, 0), &time);
    return later(cairn->bookmark_at(object, time, pass_on, event));
}

static int m_restore(cairn_object *object, struct probe *probe, cairn_event *event)
{
    return later(cairn->restore(object, text_arg(event, 0), pass_on, event));
}

static void unblock(cairn_object *object, void *instance, void *data)
{
    put_text(object, "order", "unblocked");
    cairn->unblock_concurrency(object);
    cairn->event_answer(data);
}

/* Events wait until the timer has fired. */
static int m_block(cairn_object *object, struct probe *probe, cairn_event *event)
{
    int64_t delay = 0;
    cairn->value_int(arg(event, 0), &delay);
    int rc = put_text(object, "order", "blocked");
    if (rc == 0)
        rc = cairn->block_concurrency(object);
    if (rc == 0 && cairn->timer_start(object, delay, unblock, event) < 0)
        rc = CAIRN_ERROR;
    return later(rc);
}

/* Accepts a socket with the tags of x-tags, "a,b", and greets it. */
static int accept_socket(cairn_object *object, cairn_event *event)
{
    const char *asked = cairn->request_header(event, "x-tags");
    char text[1000] = "", *state = NULL;
    const char *tags[20];
    size_t count = 0;
    if (asked)
        strncat(text, asked, sizeof(text) - 1);
    for (char *tag = strtok_r(text, ",", &state); tag && count < 20;
         tag = strtok_r(NULL, ",", &state))
        tags[count++] = tag;
    cairn_socket *socket = cairn->socket_accept(event, tags, count);
    if (!socket)
        return CAIRN_ERROR;
    int rc = cairn->socket_auto_response(object, "ping", "pong");
    if (rc == 0)
        rc = cairn->socket_send(object, socket, 1, "welcome", 7);
    return rc < 0 ? rc : 0;
}

struct tags {
    cairn_object *object;
    cairn_builder *out;
};

static int add_tags(void *data, cairn_socket *socket)
{
    struct tags *tags = data;
    size_t size;
    const char *tag = cairn->socket_tag(tags->object, socket, 0, &size);
    cairn->build_text(tags->out, tag ? tag : "", size);
    return 0;
}

static int m_sockets(cairn_object *object, struct probe *probe, cairn_event *event)
{
    cairn_builder *out = cairn->event_result(event);
    cairn->build_array(out);
    struct tags tags = {object, out};
    int rc = cairn->socket_list(object, cairn->value_text(arg(event, 0), NULL), add_tags, &tags);
    cairn->build_end(out);
    return rc;
}

static int m_broadcast(cairn_object *object, struct probe *probe, cairn_event *event)
{
    const char *text = text_arg(event, 1);
    int64_t sent = cairn->socket_broadcast(object, cairn->value_text(arg(event, 0), NULL), 1, text,
                                           strlen(text));
    cairn->build_int(cairn->event_result(event), sent);
    return sent < 0 ? (int)sent : 0;
}

static const struct {
    const char *name;
    int (*run)(cairn_object *object, struct probe *probe, cairn_event *event);
} methods[] = {
    {"echo", m_echo},         {"depth", m_depth},
    {"kind", m_kind},         {"count", m_count},
    {"version", m_version},   {"add", m_add},
    {"put", m_put},           {"get", m_get},
    {"delete", m_delete},     {"list", m_list},
    {"insert", m_insert},     {"rows", m_rows},
    {"exec", m_exec},         {"fail", m_fail},
    {"silent", m_silent},     {"abort", m_abort},
    {"later", m_later},       {"now", m_now},
    {"alarm", m_alarm},       {"alarmAt", m_alarmAt},
    {"alarmOff", m_alarmOff}, {"mistake", m_mistake},
    {"open", m_open},         {"clear", m_clear},
    {"log", m_log},           {"id", m_id},
    {"crash", m_crash},       {"transaction", m_transaction},
    {"relay", m_relay},       {"relayId", m_relayId},
    {"env", m_env},           {"sleep", m_sleep},
    {"timers", m_timers},     {"manyTimers", m_manyTimers},
    {"bookmark", m_bookmark}, {"bookmarkAt", m_bookmarkAt},
    {"restore", m_restore},   {"block", m_block},
    {"sockets", m_sockets},   {"broadcast", m_broadcast},
};

static int call(cairn_object *object, void *instance, cairn_event *event)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(methods[i].name, cairn->event_method(event)) == 0)
            return methods[i].run(object, instance, event);
    }
    return cairn->error(object, "TypeError", "there is no method \"%s\"",
                        cairn->event_method(event));
}

static int socket_message(cairn_object *object, void *instance, cairn_socket *socket, int is_text,
                          const void *bytes, size_t size)
{
    struct probe *probe = instance;
    char line[100];
    probe->lives++;
    if (!is_text || size >= sizeof(line))
        return cairn->socket_send(object, socket, is_text, bytes, size);
    snprintf(line, sizeof(line), "%.*s", (int)size, (const char *)bytes);
    if (strcmp(line, "lives") == 0)
        snprintf(line, sizeof(line), "%d", (int)probe->lives);
    if (strcmp(line, "bad") == 0)
        return cairn->socket_send(object, socket, 1, "\xff", 1);
    if (strcmp(line, "close") == 0)
        return cairn->socket_end(object, socket, 4000, "asked to");
    if (strncmp(line, "attach ", 7) == 0) {
        cairn_builder *kept = cairn->builder(object);
        cairn->build_text(kept, line + 7, strlen(line + 7));
        return cairn->socket_attach(object, socket, kept);
    }
    if (strcmp(line, "attachment") == 0) {
        const char *text = cairn->value_text(cairn->socket_attachment(object, socket), NULL);
        snprintf(line, sizeof(line), "%s", text ? text : "none");
    }
    return cairn->socket_send(object, socket, 1, line, strlen(line));
}

static int socket_close(cairn_object *object, void *instance, cairn_socket *socket, int code,
                        const char *reason, int is_clean)
{
    char text[200];
    snprintf(text, sizeof(text), "%d %s %s", code, reason, is_clean ? "clean" : "lost");
    return put_text(object, "closed", text);
}

/* Answers with what it was asked, in headers and body. */
static int fetch(cairn_object *object, void *instance, cairn_event *event)
{
    if (cairn->request_header(event, "upgrade"))
        return accept_socket(object, event);
    size_t size;
    const char *value, *status = cairn->request_header(event, "X-Status");
    const void *body = cairn->request_body(event, &size);
    int rc = cairn->response_status(event, status ? (int)strtol(status, NULL, 10) : 200);
    if (rc == 0)
        rc = cairn->response_header(event, "x-method", cairn->request_method(event));
    if (rc == 0)
        rc = cairn->response_header(event, "x-url", cairn->request_url(event));
    for (size_t i = 0; rc == 0 && i < cairn->request_header_count(event); i++) {
        const char *name = cairn->request_header_at(event, i, &value);
        if (strcmp(name, "x-bad") == 0)
            rc = cairn->response_header(event, value, "a\r\nb: c");
        else if (strncmp(name, "x-copy", 6) == 0)
            rc = cairn->response_header(event, name, value);
    }
    if (rc == 0 && body)
        rc = cairn->response_write(event, body, size);
    return rc;
}

static int alarm(cairn_object *object, void *instance, cairn_event *event)
{
    const char *how = cairn->value_text(cairn->kv_get(object, "alarm"), NULL);
    if (how && strcmp(how, "fails once") == 0 && cairn->alarm_retries(event) == 0)
        return cairn->error(object, NULL, "the alarm fails once");
    cairn_builder *kept = cairn->builder(object);
    cairn->build_object(kept);
    cairn->build_name(kept, "retries");
    cairn->build_int(kept, cairn->alarm_retries(event));
    cairn->build_name(kept, "due");
    cairn->build_bool(kept, cairn->alarm_scheduled(event) <= cairn->now(object));
    cairn->build_end(kept);
    return cairn->kv_put(object, "rang", kept);
}

static const struct cairn_class classes[] = {
    {.name = "Probe",
     .create = create,
     .destroy = destroy,
     .call = call,
     .fetch = fetch,
     .alarm = alarm,
     .socket_message = socket_message,
     .socket_close = socket_close},
    {.name = "Bare"},
};
CAIRN_MODULE(classes)
