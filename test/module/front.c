/* SPDX-License-Identifier: Apache-2.0 */
/* A worker in C that does what tests ask it for, by the path of the request. */
#include <cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 1
#endif

struct front {
    cairn_event *parked;
    int64_t served;
};

static int create(cairn_object *object, void **instance)
{
    const char *refuse = cairn->env(object, "REFUSE");
    *instance = calloc(1, sizeof(struct front));
    if (refuse)
        return cairn->error(object, "RangeError", "the front %s", refuse);
    return 0;
}

static void destroy(cairn_object *object, void *instance)
{
    cairn->log(object, CAIRN_INFO, "the front of version %d goes", VERSION);
    free(instance);
}

static int text(cairn_event *event, const char *bytes)
{
    cairn->response_header(event, "content-type", "text/plain;charset=UTF-8");
    return cairn->response_write(event, bytes, strlen(bytes));
}

static int json(cairn_object *object, cairn_event *event, cairn_builder *value)
{
    size_t size;
    const char *bytes = cairn->json_write(object, value, &size);
    if (!bytes)
        return CAIRN_ERROR;
    cairn->response_header(event, "content-type", "application/json");
    return cairn->response_write(event, bytes, size);
}

static void add_text(cairn_builder *b, const char *name, const char *value)
{
    cairn->build_name(b, name);
    if (value)
        cairn->build_text(b, value, strlen(value));
    else
        cairn->build_null(b);
}

/* What came, as JSON. */
static int echo(cairn_object *object, cairn_event *event)
{
    cairn_builder *b = cairn->builder(object);
    size_t size = 0;
    const void *body = cairn->request_body(event, &size);
    cairn->build_object(b);
    add_text(b, "method", cairn->request_method(event));
    add_text(b, "url", cairn->request_url(event));
    add_text(b, "twice", cairn->request_header(event, "X-Twice"));
    add_text(b, "cookie", cairn->request_header(event, "cookie"));
    add_text(b, "address", cairn->request_header(event, "CF-Connecting-IP"));
    add_text(b, "none", cairn->request_header(event, "x-none"));
    cairn->build_name(b, "body");
    if (body)
        cairn->build_text(b, body, size);
    else
        cairn->build_null(b);
    cairn->build_name(b, "headers");
    cairn->build_object(b);
    for (size_t i = 0; i < cairn->request_header_count(event); i++) {
        const char *value;
        const char *name = cairn->request_header_at(event, i, &value);
        add_text(b, name, value);
    }
    cairn->build_end(b);
    cairn->build_end(b);
    return json(object, event, b);
}

static void on_timer(cairn_object *object, void *instance, void *data)
{
    cairn_event *event = data;
    (void)object;
    (void)instance;
    text(event, "later\n");
    cairn->event_answer(event);
}

static void on_late(cairn_object *object, void *instance, void *data)
{
    (void)instance;
    cairn->log(object, CAIRN_INFO, "after the answer: %s", (const char *)data);
}

static void on_called(cairn_object *object, void *instance, const struct cairn_reply *reply,
                      void *data)
{
    cairn_event *event = data;
    cairn_builder *b = cairn->builder(object);
    (void)instance;
    if (reply->error) {
        cairn->error(object, "Error", "called: %s", reply->error);
        cairn->event_fail(event);
        return;
    }
    const cairn_value *shown = cairn->value_get(reply->value, "backlogCount");
    cairn->build_value(b, shown ? shown : reply->value);
    if (json(object, event, b) < 0)
        cairn->event_fail(event);
    else
        cairn->event_answer(event);
}

static void on_response(cairn_object *object, void *instance, const struct cairn_reply *reply,
                        void *data)
{
    cairn_event *event = data;
    (void)instance;
    if (reply->error) {
        cairn->error(object, "Error", "asked: %s", reply->error);
        cairn->event_fail(event);
        return;
    }
    const char *type = cairn->response_find(reply->value, "Content-Type");
    cairn->response_header(event, "x-type", type ? type : "(none)");
    if (cairn->response_from(event, reply->value, NULL) < 0)
        cairn->event_fail(event);
    else
        cairn->event_answer(event);
}

/* The request that the headers x-url, x-method, x-max and x-timeout and the body say. */
static int ask(cairn_object *object, cairn_event *event, const char *path)
{
    const char *max = cairn->request_header(event, "x-max");
    const char *timeout = cairn->request_header(event, "x-timeout");
    const char *headers[] = {"x-from", "c", "accept-language", "de", NULL};
    struct cairn_request request = {.size = sizeof(request),
                                    .url = cairn->request_header(event, "x-url"),
                                    .method = cairn->request_header(event, "x-method"),
                                    .headers = headers,
                                    .response_max = max ? (size_t)atol(max) : 0,
                                    .timeout = timeout ? atol(timeout) : 0};
    request.body = cairn->request_body(event, &request.body_size);
    int rc = strcmp(path, "/ask/world") == 0 ? cairn->fetch(object, &request, on_response, event)
             : strncmp(path, "/ask/object/", 12) == 0
                 ? cairn->object_fetch(object, "OBJECT", path + 12, &request, on_response, event)
                 : cairn->service_fetch(object, path + 5, &request, on_response, event);
    return rc < 0 ? rc : CAIRN_LATER;
}

/* What a worker cannot do; the text says what came of it. */
static int misuse(cairn_object *object, cairn_event *event)
{
    char line[1000];
    int64_t time;
    int a = cairn->sql_exec(object, "select 1"), b = cairn->alarm_set(object, 1),
        c = cairn->alarm_get(object, &time), d = cairn->block_concurrency(object),
        e = cairn->bookmark_now(object, on_called, NULL),
        f = cairn->socket_accept(event, NULL, 0) ? 1 : -1,
        g = (int)cairn->socket_broadcast(object, NULL, 1, "", 0),
        h = (int)cairn->socket_count(object, NULL), i = cairn->transaction_begin(object),
        j = cairn->kv_get(object, "k") ? 1 : -1, k = cairn->unblock_concurrency(object),
        l = cairn->queue_ack(event, 0), m = (int)cairn->queue_count(event);
    cairn->abort(object, "a test");
    snprintf(line, sizeof(line), "%d %d %d %d %d %d %d %d %d %d %d %d %d [%s] [%s] [%s]", a, b, c,
             d, e, f, g, h, i, j, k, l, m, cairn->object_id(object), cairn->queue_name(event),
             cairn->scheduled_cron(event));
    return text(event, line);
}

static int fetch(cairn_object *object, void *instance, cairn_event *event)
{
    struct front *front = instance;
    const char *url = cairn->request_url(event);
    const char *path = strchr(strstr(url, "://") + 3, '/');
    front->served++;
    if (strcmp(path, "/hello") == 0)
        return text(event, "hello\n");
    if (strncmp(path, "/echo", 5) == 0)
        return echo(object, event);
    if (strcmp(path, "/version") == 0)
        return text(event, VERSION == 1 ? "1" : "2");
    if (strncmp(path, "/env/", 5) == 0) {
        const char *value = cairn->env(object, path + 5);
        return text(event, value ? value : "(none)");
    }
    if (strcmp(path, "/later") == 0)
        return cairn->timer_start(object, 10, on_timer, event) < 0 ? CAIRN_ERROR : CAIRN_LATER;
    if (strcmp(path, "/after") == 0) { /* answers, and goes on */
        cairn->timer_start(object, 300, on_late, "done");
        return text(event, "answered\n");
    }
    if (strcmp(path, "/park") == 0) {
        if (front->parked)
            return cairn->error(object, NULL, "one is parked already");
        front->parked = event;
        return CAIRN_LATER;
    }
    if (strcmp(path, "/release") == 0) {
        if (!front->parked)
            return text(event, "nobody");
        text(front->parked, "released\n");
        cairn->event_answer(front->parked);
        front->parked = NULL;
        return text(event, "ok");
    }
    if (strncmp(path, "/object/", 8) == 0) { /* /object/NAME/METHOD */
        char name[100];
        const char *slash = strchr(path + 8, '/');
        snprintf(name, sizeof(name), "%.*s", (int)(slash - path - 8), path + 8);
        int rc = cairn->object_call(object, "OBJECT", name, slash + 1, NULL, on_called, event);
        return rc < 0 ? rc : CAIRN_LATER;
    }
    if (strncmp(path, "/service/", 9) == 0) { /* /service/BINDING/METHOD, arguments in the body */
        char binding[100];
        size_t size = 0;
        const char *slash = strchr(path + 9, '/');
        const void *body = cairn->request_body(event, &size);
        cairn_builder *arguments = cairn->builder(object);
        snprintf(binding, sizeof(binding), "%.*s", (int)(slash - path - 9), path + 9);
        if (body)
            cairn->build_value(arguments, cairn->json_read(object, body, size));
        int rc = cairn->service_call(object, binding, slash + 1, arguments, on_called, event);
        return rc < 0 ? rc : CAIRN_LATER;
    }
    if (strncmp(path, "/ask/", 5) == 0)
        return ask(object, event, path);
    if (strcmp(path, "/throw") == 0)
        return cairn->error(object, "RangeError", "thrown by C");
    if (strcmp(path, "/silent") == 0)
        return -77;
    if (strncmp(path, "/status/", 8) == 0)
        return cairn->response_status(event, atoi(path + 8));
    if (strcmp(path, "/headers") == 0) {
        cairn->response_header(event, "set-cookie", "a=1");
        cairn->response_header(event, "set-cookie", "b=2");
        int bad = cairn->response_header(event, "x-bad", "a\r\nb: c");
        int worse = cairn->response_header(event, "x bad", "a");
        char line[100];
        snprintf(line, sizeof(line), "%d %d", bad, worse);
        return text(event, line);
    }
    if (strcmp(path, "/control") == 0) { /* a header that only the server refuses */
        cairn->response_header(event, "x-bad", "a\x01z");
        return text(event, "never");
    }
    if (strcmp(path, "/many") == 0) {
        char name[20];
        for (int i = 0; i < 300; i++) {
            snprintf(name, sizeof(name), "x-%d", i);
            cairn->response_header(event, name, "1");
        }
        return text(event, "never");
    }
    if (strcmp(path, "/big") == 0) {
        char block[1 << 16];
        memset(block, 'x', sizeof(block));
        for (int i = 0; i < 64; i++)
            cairn->response_write(event, block, sizeof(block));
        return 0;
    }
    if (strcmp(path, "/log") == 0) {
        cairn->log(object, CAIRN_WARN, "the front says hello");
        return text(event, "logged");
    }
    if (strncmp(path, "/count/", 7) == 0) {
        int rc = cairn->count(object, path + 7, 2);
        return rc < 0 ? rc : text(event, "counted");
    }
    if (strcmp(path, "/misuse") == 0)
        return misuse(object, event);
    if (strcmp(path, "/crash") == 0)
        abort();
    cairn->response_status(event, 404);
    return text(event, "there is nothing here\n");
}

static int call(cairn_object *object, void *instance, cairn_event *event)
{
    struct front *front = instance;
    const char *method = cairn->event_method(event);
    cairn_builder *result = cairn->event_result(event);
    if (strcmp(method, "sum") == 0) {
        int64_t sum = 0, each = 0;
        const cairn_value *list = cairn->event_arguments(event);
        for (size_t i = 0; i < cairn->value_count(list); i++) {
            if (cairn->value_int(cairn->value_at(list, i), &each) < 0)
                return cairn->error(object, "TypeError", "argument %zu is no number", i);
            sum += each;
        }
        cairn->build_int(result, sum);
        return 0;
    }
    if (strcmp(method, "served") == 0) {
        cairn->build_int(result, front->served);
        return 0;
    }
    return cairn->error(object, "TypeError", "there is no method \"%s\"", method);
}

static int scheduled(cairn_object *object, void *instance, cairn_event *event)
{
    (void)instance;
    cairn->log(object, CAIRN_INFO, "cron %s is due, %s", cairn->scheduled_cron(event),
               cairn->scheduled_time(event) > 1700000000000 ? "in time" : "at a strange time");
    if (cairn->env(object, "CRON_FAILS"))
        return cairn->error(object, NULL, "the cron fails");
    return 0;
}

/* A message is what is to become of it: "retry", "fail", or anything. */
static int queue(cairn_object *object, void *instance, cairn_event *event)
{
    int fails = 0;
    (void)instance;
    for (size_t i = 0; i < cairn->queue_count(event); i++) {
        struct cairn_message message = {.size = sizeof(message)};
        if (cairn->queue_message(event, i, &message) < 0)
            return CAIRN_ERROR;
        const cairn_value *wish = cairn->value_kind(message.body) == CAIRN_OBJECT
                                      ? cairn->value_get(message.body, "wish")
                                      : message.body;
        const char *word = cairn->value_text(wish, NULL);
        size_t byte_count = 0;
        if (!word && cairn->value_bytes(message.body, &byte_count))
            word = "bytes";
        cairn->log(object, CAIRN_INFO, "%s has %s, attempt %u, %zu bytes, id of %zu",
                   cairn->queue_name(event), word ? word : "(unreadable)", message.attempts,
                   message.byte_count, strlen(message.id));
        if (word && strcmp(word, "retry") == 0 && message.attempts == 1)
            cairn->queue_retry(event, i, 0);
        else if (word && strcmp(word, "fail") == 0 && message.attempts == 1)
            fails = 1;
        else
            cairn->queue_ack(event, i);
    }
    struct cairn_message none = {.size = sizeof(none)};
    if (cairn->queue_message(event, 1000, &none) != CAIRN_EMISMATCH)
        abort();
    return fails ? cairn->error(object, NULL, "a message fails") : 0;
}

/* ---- the same from an object ---- */

static void on_thing_called(cairn_object *object, void *instance, const struct cairn_reply *reply,
                            void *data)
{
    (void)instance;
    if (reply->error) {
        cairn->error(object, "Error", "%s", reply->error);
        cairn->event_fail(data);
        return;
    }
    cairn->build_value(cairn->event_result(data), reply->value);
    cairn->event_answer(data);
}

static void ignore(cairn_object *object, void *instance, const struct cairn_reply *reply,
                   void *data)
{
    (void)object, (void)instance, (void)reply, (void)data;
    abort(); /* it is asked only by objects that go at once */
}

static int thing_call(cairn_object *object, void *instance, cairn_event *event)
{
    const char *method = cairn->event_method(event);
    const cairn_value *arguments = cairn->event_arguments(event);
    const char *binding = cairn->value_text(cairn->value_at(arguments, 0), NULL);
    const char *name = cairn->value_text(cairn->value_at(arguments, 1), NULL);
    (void)instance;
    if (strcmp(method, "service") == 0 || strcmp(method, "abort") == 0) {
        cairn_builder *list = cairn->builder(object), *kept = cairn->builder(object);
        cairn->build_value(list, cairn->value_at(arguments, 2));
        cairn->build_int(kept, cairn->now(object));
        cairn->kv_put(object, "last", kept); /* so that the gate has something to hold back for */
        if (strcmp(method, "abort") == 0) {
            cairn->service_call(object, binding, name, list, ignore, NULL);
            cairn->abort(object, "asked to");
            return 0;
        }
        int rc = cairn->service_call(object, binding, name, list, on_thing_called, event);
        return rc < 0 ? rc : CAIRN_LATER;
    }
    if (strcmp(method, "ask") == 0) {
        struct cairn_request request = {.size = sizeof(request), .url = name};
        int rc = strcmp(binding, "world") == 0
                     ? cairn->fetch(object, &request, on_thing_called, event)
                     : cairn->service_fetch(object, binding, &request, on_thing_called, event);
        return rc < 0 ? rc : CAIRN_LATER;
    }
    return cairn->error(object, "TypeError", "there is no method \"%s\"", method);
}

static int thing_fetch(cairn_object *object, void *instance, cairn_event *event)
{
    (void)instance;
    return echo(object, event);
}

static const struct cairn_class classes[] = {
    {.name = "Thing", .call = thing_call, .fetch = thing_fetch},
    {.name = "Front",
     .create = create,
     .destroy = destroy,
     .fetch = fetch,
     .call = call,
     .scheduled = scheduled,
     .queue = queue},
    {.name = "Half", .fetch = fetch, .create = create, .destroy = destroy}};
CAIRN_MODULE(classes)
