/* SPDX-License-Identifier: Apache-2.0 */
/* A class of somebody who has not read cairn.h: it calls every function of the header with handles
 * that are none, are gone, are of another kind, another thread's or another object's, without what
 * they need, and at times that are not for them. What was not refused is told by its text. */
#include <cairn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the functions are called with. */
struct hand {
    cairn_object *object;
    cairn_event *event;
    cairn_builder *builder;
    cairn_statement *statement;
    cairn_remote *remote;
    cairn_stream *stream, *other;
    cairn_socket *socket;
    const char *text;
    int refused; /* each is to be refused */
    char told[4096];
};

static struct hand kept; /* of calls before */
static cairn_object *first;

static void on_done(cairn_object *object, void *instance, const struct cairn_reply *reply,
                    void *data)
{
    (void)object, (void)instance, (void)reply, (void)data;
}

static void on_fired(cairn_object *object, void *instance, void *data)
{
    (void)object, (void)instance, (void)data;
}

static int each_pair(void *data, const char *key, const cairn_value *value)
{
    (void)data, (void)key, (void)value;
    return 0;
}

static int each_socket(void *data, cairn_socket *socket)
{
    (void)data, (void)socket;
    return 0;
}

static void note(struct hand *h, const char *call, int64_t rc)
{
    size_t size = strlen(h->told);
    if (h->refused)
        snprintf(h->told + size, sizeof(h->told) - size, "%s: %lld\n", call, (long long)rc);
}

/* A code; a count or number, or whether there is a pointer, which is not there; nothing. */
#define CODE(call)               \
    do {                         \
        int64_t rc = (call);     \
        if (rc != CAIRN_EMISUSE) \
            note(h, #call, rc);  \
    } while (0)
#define NONE(call)              \
    do {                        \
        int64_t rc = (call);    \
        if (rc)                 \
            note(h, #call, rc); \
    } while (0)

static void ask_events(struct hand *h)
{
    NONE(strlen(cairn->event_method(h->event)) > 0);
    NONE(cairn->event_arguments(h->event) != NULL);
    NONE(cairn->event_result(h->event) != NULL);
    NONE(cairn->request_method(h->event) != NULL);
    NONE(cairn->request_url(h->event) != NULL);
    NONE(cairn->request_header(h->event, h->text) != NULL);
    NONE((int64_t)cairn->request_header_count(h->event));
    NONE(cairn->request_header_at(h->event, 0, NULL) != NULL);
    NONE(cairn->request_body(h->event, NULL) != NULL);
    CODE(cairn->response_status(h->event, 200));
    CODE(cairn->response_header(h->event, h->text, h->text));
    CODE(cairn->response_write(h->event, h->text, 4));
    NONE(cairn->alarm_scheduled(h->event));
    NONE(cairn->alarm_retries(h->event));
    NONE(cairn->scheduled_time(h->event));
    NONE(strlen(cairn->scheduled_cron(h->event)) > 0);
    NONE(strlen(cairn->queue_name(h->event)) > 0);
    NONE((int64_t)cairn->queue_count(h->event));
    struct cairn_message message = {.size = sizeof(message)};
    CODE(cairn->queue_message(h->event, 0, h->text ? &message : NULL));
    CODE(cairn->queue_ack(h->event, 0));
    CODE(cairn->queue_retry(h->event, CAIRN_ALL, -1));
    NONE(cairn->socket_accept(h->event, NULL, 3) != NULL);
    NONE(cairn->request_stream(h->event) != NULL);
    CODE(cairn->response_stream(h->event, h->stream));
    CODE(cairn->response_from(h->event, NULL, h->stream));
    CODE(cairn->object_forward(h->event, h->text, h->text));
    CODE(cairn->service_forward(h->event, h->text));
}

static void build(struct hand *h)
{
    cairn->build_undefined(h->builder);
    cairn->build_null(h->builder);
    cairn->build_bool(h->builder, 1);
    cairn->build_int(h->builder, INT64_MAX);
    cairn->build_number(h->builder, 0.5);
    cairn->build_bigint(h->builder, INT64_MIN);
    cairn->build_text(h->builder, h->text, 4);
    cairn->build_bytes(h->builder, h->text, 4);
    cairn->build_date(h->builder, 1e300);
    cairn->build_end(h->builder);
    cairn->build_array(h->builder);
    cairn->build_object(h->builder);
    cairn->build_map(h->builder);
    cairn->build_name(h->builder, h->text);
    cairn->build_value(h->builder, NULL);
    cairn->build_remote(h->builder, h->remote);
    cairn->build_stub(h->builder, h->object, h->text, h->text);
    cairn->build_stream(h->builder, h->stream);
}

static void use_storage(struct hand *h)
{
    int64_t time;
    NONE(cairn->kv_get(h->object, h->text) != NULL);
    CODE(cairn->kv_put(h->object, h->text, h->builder));
    CODE(cairn->kv_delete(h->object, h->text));
    CODE(cairn->kv_list(h->object, NULL, h->text ? each_pair : NULL, NULL));
    CODE(cairn->sql_exec(h->object, h->text));
    NONE(cairn->sql_prepare(h->object, h->text) != NULL);
    CODE(cairn->sql_bind_null(h->statement, 1));
    CODE(cairn->sql_bind_int(h->statement, -1, 1));
    CODE(cairn->sql_bind_real(h->statement, 1 << 30, 1));
    CODE(cairn->sql_bind_text(h->statement, 1, h->text, 4));
    CODE(cairn->sql_bind_blob(h->statement, 1, h->text, 4));
    CODE(cairn->sql_step(h->statement));
    NONE(cairn->sql_column_count(h->statement));
    NONE(cairn->sql_column_name(h->statement, -1) != NULL);
    NONE(cairn->sql_column_kind(h->statement, 1 << 30) != CAIRN_UNDEFINED);
    NONE(cairn->sql_column_int(h->statement, 0));
    NONE(cairn->sql_column_real(h->statement, 0) != 0);
    NONE(cairn->sql_column_text(h->statement, 0, NULL) != NULL);
    NONE(cairn->sql_column_blob(h->statement, 0, NULL) != NULL);
    cairn->sql_reset(h->statement);
    cairn->sql_finalize(h->statement);
    cairn->sql_finalize(h->statement);
    CODE(cairn->sql_changes(h->object));
    CODE(cairn->sql_last_rowid(h->object));
    CODE(cairn->database_size(h->object));
    CODE(cairn->transaction_begin(h->object));
    CODE(cairn->transaction_commit(h->object));
    CODE(cairn->transaction_rollback(h->object));
    CODE(cairn->alarm_get(h->object, h->text ? &time : NULL));
    CODE(cairn->alarm_set(h->object, INT64_MIN));
    CODE(cairn->alarm_delete(h->object));
    CODE(cairn->delete_all(h->object));
}

static void start(struct hand *h)
{
    cairn_done done = h->text ? on_done : NULL;
    struct cairn_request request = {
        .size = sizeof(request), .url = h->text, .stream = h->other, .streamed = 1};
    const struct cairn_request *given = h->text ? &request : NULL;
    NONE(cairn->env(h->object, h->text) != NULL);
    CODE(cairn->object_call(h->object, h->text, h->text, h->text, h->builder, done, NULL));
    CODE(cairn->object_call_id(h->object, h->text, h->text, h->text, h->builder, done, NULL));
    CODE(cairn->service_call(h->object, h->text, h->text, h->builder, done, NULL));
    CODE(cairn->remote_call(h->remote, h->text, h->builder, done, NULL));
    CODE(cairn->fetch(h->object, given, done, NULL));
    CODE(cairn->service_fetch(h->object, h->text, given, done, NULL));
    CODE(cairn->object_fetch(h->object, h->text, h->text, given, done, NULL));
    CODE(cairn->timer_start(h->object, -1, h->text ? on_fired : NULL, NULL));
    CODE(cairn->timer_stop(h->object, INT64_MAX));
    CODE(cairn->bookmark_now(h->object, done, NULL));
    CODE(cairn->bookmark_at(h->object, INT64_MIN, done, NULL));
    CODE(cairn->restore(h->object, h->text, done, NULL));
    CODE(cairn->unblock_concurrency(h->object));
    CODE(cairn->block_concurrency(h->object));
    CODE(cairn->unblock_concurrency(h->object));
}

static void use_sockets(struct hand *h)
{
    CODE(cairn->socket_send(h->object, h->socket, 1, h->text, 4));
    CODE(cairn->socket_broadcast(h->object, h->text, 0, h->text, 4));
    CODE(cairn->socket_end(h->object, h->socket, -5, h->text));
    CODE(cairn->socket_list(h->object, h->text, h->text ? each_socket : NULL, NULL));
    NONE((int64_t)cairn->socket_count(h->object, h->text));
    NONE(cairn->socket_tag(h->object, h->socket, 99, NULL) != NULL);
    CODE(cairn->socket_attach(h->object, h->socket, h->builder));
    NONE(cairn->socket_attachment(h->object, h->socket) != NULL);
    CODE(cairn->socket_auto_response(h->object, h->text ? h->text : "ping", h->text));
}

static void use_streams(struct hand *h)
{
    NONE(cairn->stream_open(h->object, NULL) != NULL);
    NONE(cairn->stream_new(h->object, NULL, NULL) != NULL);
    CODE(cairn->stream_read(h->stream, h->text ? on_done : NULL, NULL));
    CODE(cairn->stream_write(h->stream, h->text, 4));
    CODE(cairn->stream_pipe(h->stream, h->other));
    CODE(cairn->stream_pipe(h->other, h->stream));
    cairn->stream_end(h->stream);
    cairn->stream_fail(h->stream, h->text);
    cairn->stream_fail(h->other, h->text);
    cairn->stream_end(h->other);
}

/* Of any thread, and with no value: nothing is refused, and nothing found. */
static void look(const char *text)
{
    int64_t whole = 0;
    double number = 0;
    cairn->value_kind(NULL);
    cairn->value_bool(NULL);
    cairn->value_int(NULL, text ? &whole : NULL);
    cairn->value_number(NULL, text ? &number : NULL);
    cairn->value_text(NULL, NULL);
    cairn->value_bytes(NULL, NULL);
    cairn->value_count(NULL);
    cairn->value_at(NULL, (size_t)-1);
    cairn->value_key(NULL, 0);
    cairn->value_get(NULL, text);
    cairn->response_find(NULL, text);
}

/* Every function of the header. */
static void everything(struct hand *h)
{
    h->told[0] = '\0';
    look(h->text);
    NONE(strlen(cairn->object_id(h->object)) > 0);
    NONE(cairn->object_name(h->object) != NULL);
    NONE(strlen(cairn->error_text(h->object)) > 0);
    cairn->now(h->object);
    cairn->log(h->object, (enum cairn_level)77, h->text ? "%s" : h->text, "a line");
    NONE(cairn->error(h->object, h->text, h->text ? "%s" : h->text, "an error") != CAIRN_ERROR);
    NONE(cairn->builder(h->object) != NULL);
    ask_events(h);
    build(h);
    use_storage(h);
    NONE(cairn->json_read(h->object, h->text, 4) != NULL);
    NONE(cairn->json_write(h->object, h->builder, NULL) != NULL);
    start(h);
    use_sockets(h);
    CODE(cairn->count(h->object, h->text, 1));
    NONE(cairn->remote_keep(h->object, NULL) != NULL);
    cairn->remote_release(h->remote);
    cairn->remote_release(h->remote);
    use_streams(h);
    cairn->event_fail(h->event);
    cairn->event_answer(h->event);
    cairn->event_fail(h->event);
    cairn->abort(h->object, h->text);
}

/* One of each that is good. */
static struct hand good(cairn_object *object, cairn_event *event)
{
    struct hand hand = {.object = object, .event = event, .text = "text"};
    hand.builder = cairn->builder(object);
    hand.statement = cairn->sql_prepare(object, "select ?");
    hand.stream = cairn->stream_new(object, NULL, NULL);
    hand.other = cairn->stream_open(object, NULL);
    const cairn_value *function = cairn->value_at(cairn->event_arguments(event), 0);
    if (cairn->value_kind(function) == CAIRN_FUNCTION)
        hand.remote = cairn->remote_keep(object, function);
    return hand;
}

static struct hand all(void *handle, const char *text)
{
    struct hand hand = {.object = handle,
                        .event = handle,
                        .builder = handle,
                        .statement = handle,
                        .remote = handle,
                        .stream = handle,
                        .other = handle,
                        .socket = handle,
                        .text = text,
                        .refused = 1};
    return hand;
}

static void *on_thread(void *data)
{
    everything(data);
    return NULL;
}

static void tell(cairn_event *event, const char *text)
{
    cairn->build_text(cairn->event_result(event), text, strlen(text));
}

static int try_all(cairn_event *event, void *handle, const char *text)
{
    struct hand hand = all(handle, text);
    everything(&hand);
    tell(event, hand.told);
    return 0;
}

static int garbage(cairn_event *event)
{
    static char bytes[4096];
    static void *places[] = {bytes,
                             bytes + 1,
                             bytes + 4095,
                             (void *)1,
                             (void *)(intptr_t)-1,
                             (void *)(intptr_t)INT64_MIN};
    char told[sizeof((struct hand *)0)->told] = "";
    memset(bytes, 0x5a, sizeof(bytes));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct hand hand = all(places[i], "text");
        everything(&hand);
        strncat(told, hand.told, sizeof(told) - strlen(told) - 1);
    }
    tell(event, told);
    return 0;
}

/* Each handle where another goes. */
static int kinds(cairn_object *object, cairn_event *event)
{
    struct hand h = good(object, event);
    struct hand wrong = {.object = (cairn_object *)h.event,
                         .event = (cairn_event *)h.object,
                         .builder = (cairn_builder *)h.statement,
                         .statement = (cairn_statement *)h.stream,
                         .remote = (cairn_remote *)h.builder,
                         .stream = (cairn_stream *)h.statement,
                         .other = (cairn_stream *)h.event,
                         .socket = (cairn_socket *)h.object,
                         .text = "text",
                         .refused = 1};
    everything(&wrong);
    cairn->stream_end(h.stream);
    cairn->stream_end(h.other);
    cairn->sql_finalize(h.statement);
    tell(event, wrong.told);
    return 0;
}

/* For `stale`: everything ends before the call does. */
static int leave(cairn_object *object, cairn_event *event)
{
    kept = good(object, event);
    cairn->sql_finalize(kept.statement);
    cairn->stream_end(kept.stream);
    cairn->stream_end(kept.other);
    if (kept.remote)
        cairn->remote_release(kept.remote);
    return 0;
}

/* Of those that are gone, with others in their memory: many more have come since. */
static int stale(cairn_object *object, cairn_event *event)
{
    struct hand again[40];
    struct hand hand = kept;
    for (int i = 0; i < 40; i++)
        again[i] = good(object, event);
    hand.object = NULL;
    hand.refused = 1;
    everything(&hand);
    for (int i = 0; i < 40; i++) {
        cairn->sql_finalize(again[i].statement);
        cairn->stream_end(again[i].stream);
        cairn->stream_end(again[i].other);
        if (again[i].remote)
            cairn->remote_release(again[i].remote);
    }
    tell(event, hand.told);
    return 0;
}

static int thread(cairn_object *object, cairn_event *event)
{
    pthread_t thread;
    struct hand hand = good(object, event);
    hand.refused = 1;
    pthread_create(&thread, NULL, on_thread, &hand);
    pthread_join(thread, NULL);
    cairn->stream_end(hand.stream);
    cairn->stream_end(hand.other);
    tell(event, hand.told);
    return 0;
}

/* What is good until the event ends is refused from then on; `again` is the end. */
static void on_later(cairn_object *object, void *instance, void *data)
{
    struct hand hand = {.event = data, .text = "text", .refused = 1};
    (void)instance, (void)object;
    cairn->event_answer(data);
    everything(&hand);
    cairn->log(NULL, hand.told[0] ? CAIRN_FAILURE : CAIRN_INFO, "after its answer: \"%s\"",
               hand.told);
}

static int abort_pair(void *data, const char *key, const cairn_value *value)
{
    (void)key, (void)value;
    cairn->abort(data, "in the middle of a list");
    return 0;
}

static int abort_list(cairn_object *object)
{
    char key[20];
    for (int i = 0; i < 1000; i++) {
        cairn_builder *builder = cairn->builder(object);
        snprintf(key, sizeof(key), "%d", i);
        cairn->build_int(builder, i);
        cairn->kv_put(object, key, builder);
    }
    return cairn->kv_list(object, NULL, abort_pair, object);
}

/* The object has no storage any more, but the function goes on. */
static int abort_first(cairn_object *object, cairn_event *event)
{
    struct hand hand = good(object, event);
    cairn->sql_step(hand.statement);
    cairn->abort(object, "before everything");
    everything(&hand);
    return 0;
}

static int roll_back(cairn_object *object)
{
    cairn_statement *statement = cairn->sql_prepare(object, "select key from t");
    (void)statement;
    cairn->sql_exec(object, "create table if not exists t(key); insert into t values (1), (2)");
    cairn->transaction_begin(object);
    statement = cairn->sql_prepare(object, "select key from t");
    cairn->sql_step(statement);
    cairn->transaction_rollback(object);
    cairn->sql_step(statement);
    cairn->delete_all(object);
    cairn->sql_step(statement);
    return 0;
}

/* More under way, and more open, than an object may have. */
static int limits(cairn_object *object, cairn_event *event)
{
    int64_t timers = 0, streams = 0, levels = 0;
    while (timers < 20000 && cairn->timer_start(object, 1000000, on_fired, NULL) > 0)
        timers++;
    while (streams < 20000 && cairn->stream_new(object, NULL, NULL))
        streams++;
    while (levels < 20000 && cairn->transaction_begin(object) == 0)
        levels++;
    for (int64_t i = 0; i < levels; i++)
        cairn->transaction_rollback(object);
    for (int64_t i = 0; i < timers; i++)
        cairn->timer_stop(object, i + 1);
    cairn_builder *result = cairn->event_result(event);
    cairn->build_array(result);
    cairn->build_int(result, timers);
    cairn->build_int(result, streams);
    cairn->build_int(result, levels);
    cairn->build_end(result);
    return 0;
}

static int echo(cairn_event *event)
{
    cairn->build_value(cairn->event_result(event),
                       cairn->value_at(cairn->event_arguments(event), 0));
    return 0;
}

static int create(cairn_object *object, void **instance)
{
    const char *name = cairn->object_name(object);
    *instance = object;
    if (!first)
        first = object;
    if (name && strcmp(name, "stillborn") == 0)
        cairn->abort(object, "before it was born");
    if (name && strcmp(name, "busy") == 0) {
        struct hand hand = {.object = object, .text = "text"};
        everything(&hand);
    }
    return 0;
}

static void destroy(cairn_object *object, void *instance)
{
    struct hand hand = kept;
    (void)instance;
    hand.object = object;
    everything(&hand);
}

static int call(cairn_object *object, void *instance, cairn_event *event)
{
    const char *method = cairn->event_method(event);
    (void)instance;
    if (strcmp(method, "null") == 0)
        return try_all(event, NULL, "text");
    if (strcmp(method, "garbage") == 0)
        return garbage(event);
    if (strcmp(method, "kinds") == 0)
        return kinds(object, event);
    if (strcmp(method, "leave") == 0)
        return leave(object, event);
    if (strcmp(method, "stale") == 0)
        return stale(object, event);
    if (strcmp(method, "thread") == 0)
        return thread(object, event);
    if (strcmp(method, "later") == 0)
        return cairn->timer_start(object, 0, on_later, event) < 0 ? CAIRN_ERROR : CAIRN_LATER;
    if (strcmp(method, "abortList") == 0)
        return abort_list(object);
    if (strcmp(method, "abortFirst") == 0)
        return abort_first(object, event);
    if (strcmp(method, "rollBack") == 0)
        return roll_back(object);
    if (strcmp(method, "limits") == 0)
        return limits(object, event);
    if (strcmp(method, "echo") == 0)
        return echo(event);
    if (strcmp(method, "never") == 0)
        return CAIRN_LATER;
    struct hand hand = good(object, event);
    if (strcmp(method, "texts") == 0) {
        hand.text = NULL;
        everything(&hand);
    } else if (strcmp(method, "all") == 0) {
        everything(&hand);
    }
    return 0;
}

/* --- requests -------------------------------------------------------------------------------- */

static int fetch_stream(cairn_object *object, void *instance, cairn_event *event)
{
    const char *url = cairn->request_url(event);
    (void)instance;
    if (strstr(url, "/forward") && strcmp(cairn->object_name(object), "plain") != 0) {
        int rc = cairn->object_forward(event, "OBJECT", "plain");
        cairn->response_write(event, "not this", 8);
        cairn->event_answer(event);
        (void)cairn->object_forward(event, "OBJECT", "plain");
        return rc < 0 ? rc : 0; /* and not CAIRN_LATER */
    }
    if (strstr(url, "/pipe")) {
        cairn_stream *from = cairn->request_stream(event);
        cairn_stream *to = cairn->stream_new(object, NULL, NULL);
        int rc = cairn->stream_pipe(from, to);
        cairn->stream_end(from);
        cairn->stream_read(from, on_done, NULL);
        cairn->stream_end(to);
        cairn->stream_write(to, "x", 1);
        return rc < 0 ? rc : cairn->response_stream(event, to);
    }
    if (strstr(url, "/everything")) {
        struct hand hand = {.object = object, .event = event, .text = "text"};
        hand.stream = cairn->stream_new(object, NULL, NULL);
        hand.other = cairn->request_stream(event);
        everything(&hand);
        return 0;
    }
    if (strstr(url, "/socket")) {
        cairn_socket *socket = cairn->socket_accept(event, NULL, 0);
        cairn->socket_list(object, NULL, each_socket, NULL);
        return socket ? 0 : CAIRN_ERROR;
    }
    return cairn->response_write(event, "plain", 5);
}

static int socket_message(cairn_object *object, void *instance, cairn_socket *socket, int is_text,
                          const void *bytes, size_t size)
{
    struct hand hand = {.object = object, .socket = socket, .text = "text"};
    (void)instance, (void)is_text, (void)bytes, (void)size;
    everything(&hand);
    return 0;
}

static const struct cairn_class classes[] = {{.name = "Hostile",
                                              .create = create,
                                              .destroy = destroy,
                                              .call = call,
                                              .fetch_stream = fetch_stream,
                                              .socket_message = socket_message}};
CAIRN_MODULE(classes)
