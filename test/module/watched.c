/* SPDX-License-Identifier: Apache-2.0 */
/* test/module/watched.c - a room and a worker as test/integration/modules/watch.test.mjs has them
 * in JavaScript: what they do is to be told alike. */
#include <cairn.h>
#include <string.h>

#define LENGTH_MAX 100

static int is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static void spoken(cairn_object *object, void *instance, void *data)
{
    cairn->log(object, CAIRN_WARN, "room still speaks");
    cairn->build_int(cairn->event_result(data), 1);
    cairn->event_answer(data);
    cairn->log(object, CAIRN_DEBUG, "room has spoken");
}

static int speak(cairn_object *object, cairn_event *event)
{
    const char *text = cairn->value_text(cairn->value_at(cairn->event_arguments(event), 0), NULL);
    cairn->log(object, CAIRN_INFO, "room says %s", text ? text : "nothing");
    int64_t timer = cairn->timer_start(object, 1, spoken, event);
    return timer < 0 ? (int)timer : CAIRN_LATER;
}

static int keep(cairn_object *object, cairn_event *event)
{
    cairn_builder *kept = cairn->builder(object);
    cairn->build_value(kept, cairn->value_at(cairn->event_arguments(event), 0));
    int rc = cairn->kv_put(object, "kept", kept);
    return rc < 0
               ? rc
               : cairn->sql_exec(object, "CREATE TABLE IF NOT EXISTS notes(id INTEGER PRIMARY KEY, "
                                         "text TEXT); INSERT INTO notes(text) VALUES('one')");
}

static int room_call(cairn_object *object, void *instance, cairn_event *event)
{
    const char *method = cairn->event_method(event);
    if (is(method, "speak"))
        return speak(object, event);
    if (is(method, "keep"))
        return keep(object, event);
    if (is(method, "boom"))
        return cairn->error(object, "RangeError", "object boom");
    if (is(method, "ring"))
        return cairn->alarm_set(object, cairn->now(object));
    if (is(method, "reset")) {
        cairn->abort(object, "on purpose");
        return 0;
    }
    return cairn->error(object, "TypeError", "there is no such method");
}

static int room_alarm(cairn_object *object, void *instance, cairn_event *event)
{
    cairn->log(object, CAIRN_INFO, "alarm");
    return 0;
}

static int room_fetch(cairn_object *object, void *instance, cairn_event *event)
{
    if (cairn->request_header(event, "upgrade"))
        return cairn->socket_accept(event, NULL, 0) ? 0 : CAIRN_ERROR;
    cairn->log(object, CAIRN_INFO, "room is asked");
    cairn->response_status(event, 202);
    return cairn->response_write(event, "here", 4);
}

static int room_message(cairn_object *object, void *instance, cairn_socket *socket, int is_text,
                        const void *bytes, size_t size)
{
    cairn->log(object, CAIRN_INFO, "got %.*s", (int)(size < LENGTH_MAX ? size : LENGTH_MAX),
               (const char *)bytes);
    if (size == 5 && memcmp(bytes, "throw", 5) == 0)
        return cairn->error(object, NULL, "socket boom");
    return 0;
}

static int room_close(cairn_object *object, void *instance, cairn_socket *socket, int code,
                      const char *reason, int is_clean)
{
    return cairn->socket_end(object, socket, 1000, "") < 0 ? CAIRN_ERROR : 0;
}

static int worker_fetch(cairn_object *worker, void *instance, cairn_event *event)
{
    if (strstr(cairn->request_url(event), "/throw"))
        return cairn->error(worker, "TypeError", "worker boom");
    cairn->log(worker, CAIRN_INFO, "worker is asked");
    cairn->response_status(event, 201);
    return cairn->response_write(event, "ok", 2);
}

static int worker_call(cairn_object *worker, void *instance, cairn_event *event)
{
    cairn->log(worker, CAIRN_INFO, "worker is called");
    return 0;
}

static int worker_scheduled(cairn_object *worker, void *instance, cairn_event *event)
{
    cairn->log(worker, CAIRN_INFO, "scheduled");
    return 0;
}

static const struct cairn_class classes[] = {
    {.name = "Room",
     .call = room_call,
     .fetch = room_fetch,
     .alarm = room_alarm,
     .socket_message = room_message,
     .socket_close = room_close},
    {.name = "Front", .fetch = worker_fetch, .call = worker_call, .scheduled = worker_scheduled},
};
CAIRN_MODULE(classes)
