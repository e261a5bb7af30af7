/* SPDX-License-Identifier: Apache-2.0 */
/* A class that calls cairn.h in every way that its text forbids, and tells what came of it. */
#include <cairn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cairn_object *first; /* the object that was made first */
static cairn_event *gone_event, *kept;
static cairn_builder *gone_builder;
static cairn_statement *gone_statement;
static cairn_stream *gone_stream;

static int create(cairn_object *object, void **instance)
{
    (void)instance;
    if (!first)
        first = object;
    return 0;
}

static void tell(cairn_event *event, int64_t code)
{
    cairn->build_int(cairn->event_result(event), code);
}

static void *on_thread(void *data)
{
    cairn_object *object = data;
    static int64_t codes[8];
    cairn_builder *builder = cairn->builder(object);
    codes[0] = cairn->kv_put(object, "k", builder);
    codes[1] = cairn->kv_get(object, "k") != NULL;
    codes[2] = cairn->sql_exec(object, "create table t(a)");
    codes[3] = cairn->error(object, NULL, "from a thread");
    codes[4] = cairn->timer_start(object, 1, NULL, NULL);
    codes[5] = cairn->stream_new(object, NULL, NULL) != NULL;
    codes[6] = cairn->now(NULL) > 0;
    codes[7] = builder != NULL;
    cairn->build_int(builder, 1);
    cairn->abort(object, "from a thread");
    cairn->log(NULL, CAIRN_INFO, "a thread may log");
    return codes;
}

static int wrong_thread(cairn_object *object, cairn_event *event)
{
    pthread_t thread;
    void *codes;
    pthread_create(&thread, NULL, on_thread, object);
    pthread_join(thread, &codes);
    cairn->build_array(cairn->event_result(event));
    for (int i = 0; i < 8; i++)
        tell(event, ((int64_t *)codes)[i]);
    cairn->build_end(cairn->event_result(event));
    return 0;
}

/* What was good in the call before. */
static int stale(cairn_event *event)
{
    cairn->build_array(cairn->event_result(event));
    tell(event, cairn->response_status(gone_event, 200));
    tell(event, cairn->request_url(gone_event) != NULL);
    tell(event, (int64_t)strlen(cairn->event_method(gone_event)));
    cairn->event_answer(gone_event);
    cairn->event_fail(gone_event);
    cairn->build_int(gone_builder, 1);
    tell(event, cairn->sql_step(gone_statement));
    tell(event, cairn->sql_bind_int(gone_statement, 1, 1));
    cairn->sql_finalize(gone_statement);
    cairn->sql_finalize(NULL);
    tell(event, cairn->stream_write(gone_stream, "a", 1));
    cairn->stream_end(gone_stream);
    cairn->build_end(cairn->event_result(event));
    return 0;
}

static int leave(cairn_object *object, cairn_event *event)
{
    gone_event = event;
    gone_builder = cairn->builder(object);
    gone_statement = cairn->sql_prepare(object, "select 1");
    cairn->sql_finalize(gone_statement);
    gone_stream = cairn->stream_new(object, NULL, NULL);
    cairn->stream_end(gone_stream);
    return 0;
}

static int nonsense(cairn_object *object, cairn_event *event)
{
    static char bytes[4096];
    void *none = bytes + 128;
    cairn->build_array(cairn->event_result(event));
    tell(event, cairn->kv_delete(none, "k"));
    tell(event, cairn->kv_delete(NULL, "k"));
    tell(event, cairn->stream_write(none, "a", 1));
    tell(event, cairn->stream_write((cairn_stream *)object, "a", 1)); /* of another kind */
    tell(event, cairn->remote_call(none, NULL, NULL, NULL, NULL));
    tell(event, cairn->socket_send(object, none, 1, "a", 1));
    tell(event, cairn->socket_end(object, (cairn_socket *)(uintptr_t)12345, 1000, ""));
    tell(event, cairn->socket_attachment(object, NULL) != NULL);
    cairn->remote_release(none);
    cairn->build_end(cairn->event_result(event));
    return 0;
}

/* Of an object whose function does not run. */
static int another(cairn_event *event)
{
    cairn->build_array(cairn->event_result(event));
    tell(event, cairn->kv_delete(first, "k"));
    tell(event, cairn->sql_prepare(first, "select 1") != NULL);
    tell(event, cairn->error(first, NULL, "of another"));
    tell(event, (int64_t)strlen(cairn->object_id(first)));
    cairn->abort(first, "of another");
    cairn->build_end(cairn->event_result(event));
    return 0;
}

static void on_timer(cairn_object *object, void *instance, void *data)
{
    (void)object, (void)instance;
    tell(data, 1);
    cairn->event_answer(data);
    cairn->event_answer(data);
    cairn->event_fail(data);
}

static void spin(void)
{
    volatile int on = 1;
    while (on)
        ;
}

static int call(cairn_object *object, void *instance, cairn_event *event)
{
    const char *method = cairn->event_method(event);
    (void)instance;
    if (strcmp(method, "wrongThread") == 0)
        return wrong_thread(object, event);
    if (strcmp(method, "leave") == 0)
        return leave(object, event);
    if (strcmp(method, "stale") == 0)
        return stale(event);
    if (strcmp(method, "nonsense") == 0)
        return nonsense(object, event);
    if (strcmp(method, "another") == 0)
        return another(event);
    if (strcmp(method, "twice") == 0) {
        tell(event, 2);
        cairn->event_answer(event);
        cairn->event_answer(event);
        return 0;
    }
    if (strcmp(method, "twiceLater") == 0)
        return cairn->timer_start(object, 1, on_timer, event) < 0 ? CAIRN_ERROR : CAIRN_LATER;
    if (strcmp(method, "keep") == 0) {
        kept = event;
        return CAIRN_LATER;
    }
    if (strcmp(method, "spin") == 0)
        spin();
    tell(event, 7);
    return 0;
}

static const struct cairn_class classes[] = {{.name = "Misuse", .create = create, .call = call}};
CAIRN_MODULE(classes)
