/* SPDX-License-Identifier: Apache-2.0 */
/* test/module/flow.c - a module that is given functions, stubs and streams, gives stubs and
 * streams, and makes requests: what a test asks for, a method each. */
#include <cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct flow {
    cairn_remote *kept;
    int wanted;  /* how often a reader has asked for more */
    int refused; /* writes that came too late */
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

static int64_t int_arg(cairn_event *event, size_t index)
{
    int64_t number = 0;
    cairn->value_int(arg(event, index), &number);
    return number;
}

static int later(int rc)
{
    return rc < 0 ? rc : CAIRN_LATER;
}

/* The event ends as the reply did. */
static void pass_on(cairn_object *object, void *instance, const struct cairn_reply *reply,
                    void *data)
{
    cairn_event *event = data;
    if (reply->error) {
        const char *type = cairn->value_text(cairn->value_get(reply->value, "name"), NULL);
        cairn->error(object, type, "%s", reply->error);
        cairn->event_fail(event);
        return;
    }
    cairn->build_value(cairn->event_result(event), reply->value);
    cairn->event_answer(event);
}

/* --- functions and stubs ------------------------------------------------------------------------
 */

/* Calls a function with 0, 1, ... and adds up what it returns. */
struct loop {
    cairn_event *event;
    cairn_remote *function;
    int64_t next, count, sum;
};

static void loop_step(cairn_object *object, void *instance, const struct cairn_reply *reply,
                      void *data)
{
    struct loop *loop = data;
    int64_t got = 0;
    if (reply)
        cairn->value_int(reply->value, &got);
    loop->sum += got;
    int rc = 0;
    if (reply && reply->error) {
        cairn->error(object, cairn->value_text(cairn->value_get(reply->value, "name"), NULL), "%s",
                     reply->error);
        rc = CAIRN_ERROR;
    } else if (loop->next < loop->count) {
        cairn_builder *arguments = cairn->builder(object);
        cairn->build_array(arguments);
        cairn->build_int(arguments, loop->next++);
        cairn->build_end(arguments);
        rc = cairn->remote_call(loop->function, NULL, arguments, loop_step, loop);
        if (rc == 0)
            return;
    }
    cairn->remote_release(loop->function);
    cairn->build_int(cairn->event_result(loop->event), loop->sum);
    if (rc < 0)
        cairn->event_fail(loop->event);
    else
        cairn->event_answer(loop->event);
    free(loop);
}

static int m_loop(cairn_object *object, struct flow *flow, cairn_event *event)
{
    struct loop *loop = calloc(1, sizeof(*loop));
    loop->event = event;
    loop->count = int_arg(event, 1);
    loop->function = cairn->remote_keep(object, arg(event, 0));
    if (!loop->function) {
        free(loop);
        return CAIRN_ERROR;
    }
    loop_step(object, flow, NULL, loop);
    return CAIRN_LATER;
}

static int m_keep(cairn_object *object, struct flow *flow, cairn_event *event)
{
    if (flow->kept)
        cairn->remote_release(flow->kept);
    flow->kept = cairn->remote_keep(object, arg(event, 0));
    return flow->kept ? 0 : CAIRN_ERROR;
}

/* use(method | undefined, arguments) */
static int m_use(cairn_object *object, struct flow *flow, cairn_event *event)
{
    cairn_builder *arguments = cairn->builder(object);
    if (!flow->kept)
        return cairn->error(object, NULL, "nothing was kept");
    cairn->build_value(arguments, arg(event, 1));
    return later(cairn->remote_call(flow->kept, cairn->value_text(arg(event, 0), NULL), arguments,
                                    pass_on, event));
}

static int m_give(cairn_object *object, struct flow *flow, cairn_event *event)
{
    if (!flow->kept)
        return cairn->error(object, NULL, "nothing was kept");
    cairn->build_remote(cairn->event_result(event), flow->kept);
    return 0;
}

static int m_release(cairn_object *object, struct flow *flow, cairn_event *event)
{
    if (flow->kept)
        cairn->remote_release(flow->kept);
    flow->kept = NULL;
    return 0;
}

static int m_stub(cairn_object *object, struct flow *flow, cairn_event *event)
{
    cairn_builder *out = cairn->event_result(event);
    cairn->build_object(out);
    cairn->build_name(out, "stub");
    cairn->build_stub(out, object, text_arg(event, 0), cairn->value_text(arg(event, 1), NULL));
    cairn->build_end(out);
    return 0;
}

static int m_who(cairn_object *object, struct flow *flow, cairn_event *event)
{
    const char *name = cairn->object_name(object);
    cairn->build_text(cairn->event_result(event), name ? name : "", name ? strlen(name) : 0);
    return 0;
}

/* --- streams that are read ----------------------------------------------------------------------
 */

struct reading {
    cairn_event *event;
    cairn_stream *stream;
    int64_t pieces, bytes, sum, most; /* `most` pieces are read; 0: all */
};

static void read_over(struct reading *reading)
{
    cairn_builder *out = cairn->event_result(reading->event);
    char line[64];
    if (cairn->request_url(reading->event)) {
        snprintf(line, sizeof(line), "%lld %lld", (long long)reading->bytes,
                 (long long)reading->sum);
        cairn->response_write(reading->event, line, strlen(line));
    }
    cairn->build_array(out);
    cairn->build_int(out, reading->pieces);
    cairn->build_int(out, reading->bytes);
    cairn->build_int(out, reading->sum);
    cairn->build_end(out);
    cairn->event_answer(reading->event);
    free(reading);
}

static void read_piece(cairn_object *object, void *instance, const struct cairn_reply *reply,
                       void *data)
{
    struct reading *reading = data;
    size_t size = 0;
    const unsigned char *bytes = cairn->value_bytes(reply->value, &size);
    int failed = reply->error != NULL;
    if (failed)
        cairn->error(object, NULL, "reading failed: %s", reply->error);
    for (size_t i = 0; i < size; i++)
        reading->sum += bytes[i];
    reading->bytes += (int64_t)size;
    reading->pieces += bytes != NULL;
    if (!failed && bytes && reading->pieces != reading->most) {
        failed = cairn->stream_read(reading->stream, read_piece, reading) < 0;
        if (!failed)
            return;
    }
    if (bytes)
        cairn->stream_fail(reading->stream, "that is enough");
    else
        cairn->stream_end(reading->stream);
    if (failed) {
        cairn->event_fail(reading->event);
        free(reading);
    } else {
        read_over(reading);
    }
}

static int read_stream(cairn_object *object, cairn_event *event, cairn_stream *stream, int64_t most)
{
    if (!stream)
        return CAIRN_ERROR;
    struct reading *reading = calloc(1, sizeof(*reading));
    *reading = (struct reading){.event = event, .stream = stream, .most = most};
    int rc = cairn->stream_read(stream, read_piece, reading);
    if (rc < 0)
        return rc;
    if (cairn->stream_read(stream, read_piece, reading) != CAIRN_EMISUSE)
        return cairn->error(object, NULL, "two reads at once");
    return CAIRN_LATER;
}

static int m_read(cairn_object *object, struct flow *flow, cairn_event *event)
{
    return read_stream(object, event, cairn->stream_open(object, arg(event, 0)), int_arg(event, 1));
}

static int m_openTwice(cairn_object *object, struct flow *flow, cairn_event *event)
{
    cairn_stream *stream = cairn->stream_open(object, arg(event, 0));
    if (!stream)
        return CAIRN_ERROR;
    int rc = cairn->stream_open(object, arg(event, 0)) ? 0 : CAIRN_ERROR;
    cairn->stream_end(stream);
    return rc;
}

/* --- streams that are written -------------------------------------------------------------------
 */

struct writing {
    cairn_stream *stream;
    int64_t left, size; /* pieces, and bytes of each */
    int fails;
    int eager; /* writes until it is told to wait */
};

static void write_more(cairn_object *object, void *instance, void *data)
{
    struct flow *flow = instance;
    struct writing *writing = data;
    char *piece = malloc((size_t)writing->size + 1);
    memset(piece, 'w', (size_t)writing->size);
    flow->wanted++;
    int rc = 1;
    while (writing->left > 0 && rc == 1) {
        rc = cairn->stream_write(writing->stream, piece, (size_t)writing->size);
        writing->left -= rc >= 0;
        flow->refused += rc < 0;
        if (!writing->eager)
            break;
    }
    free(piece);
    if (rc >= 0 && writing->left > 0)
        return;
    if (writing->fails)
        cairn->stream_fail(writing->stream, "the writer fails");
    else
        cairn->stream_end(writing->stream);
    free(writing);
}

static cairn_stream *written(cairn_object *object, int64_t pieces, int64_t size, int fails,
                             int eager)
{
    struct writing *writing = calloc(1, sizeof(*writing));
    *writing = (struct writing){NULL, pieces, size, fails, eager};
    writing->stream = cairn->stream_new(object, write_more, writing);
    return writing->stream;
}

/* write(pieces, size, fails, eager) -> ReadableStream */
static int m_write(cairn_object *object, struct flow *flow, cairn_event *event)
{
    cairn_stream *stream =
        written(object, int_arg(event, 0), int_arg(event, 1), cairn->value_bool(arg(event, 2)),
                cairn->value_bool(arg(event, 3)));
    if (!stream)
        return CAIRN_ERROR;
    cairn->build_stream(cairn->event_result(event), stream);
    return 0;
}

/* How often more was wanted, and how many writes were refused. */
static int m_counts(cairn_object *object, struct flow *flow, cairn_event *event)
{
    cairn_builder *out = cairn->event_result(event);
    cairn->build_array(out);
    cairn->build_int(out, flow->wanted);
    cairn->build_int(out, flow->refused);
    cairn->build_end(out);
    return 0;
}

/* Passes a stream of its own to a method of another object. */
static int m_send(cairn_object *object, struct flow *flow, cairn_event *event)
{
    cairn_builder *arguments = cairn->builder(object);
    cairn->build_array(arguments);
    cairn->build_stream(arguments, written(object, int_arg(event, 3), 1000, 0, 1));
    cairn->build_end(arguments);
    return later(cairn->object_call(object, text_arg(event, 0), text_arg(event, 1),
                                    text_arg(event, 2), arguments, pass_on, event));
}

static int m_streams(cairn_object *object, struct flow *flow, cairn_event *event)
{
    int64_t count = 0;
    cairn_stream *streams[1100];
    while (count < 1100 && (streams[count] = cairn->stream_new(object, NULL, NULL)))
        count++;
    for (int64_t i = 0; i < count; i++)
        cairn->stream_end(streams[i]);
    cairn->build_int(cairn->event_result(event), count);
    return 0;
}

/* --- requests -----------------------------------------------------------------------------------
 */

struct asking {
    cairn_event *event;
    cairn_stream *stream;
};

static void body_piece(cairn_object *object, void *instance, const struct cairn_reply *reply,
                       void *data)
{
    struct asking *asking = data;
    cairn_builder *out = cairn->event_result(asking->event);
    if (!reply->error && reply->value) {
        cairn->build_value(out, reply->value);
        if (cairn->stream_read(asking->stream, body_piece, asking) == 0)
            return;
    }
    cairn->stream_end(asking->stream);
    cairn->build_end(out); /* of the body's pieces */
    cairn->build_end(out);
    if (reply->error) {
        cairn->error(object, NULL, "the body failed: %s", reply->error);
        cairn->event_fail(asking->event);
    } else {
        cairn->event_answer(asking->event);
    }
    free(asking);
}

static void answered(cairn_object *object, void *instance, const struct cairn_reply *reply,
                     void *data)
{
    struct asking *asking = data;
    cairn_builder *out = cairn->event_result(asking->event);
    if (reply->error) {
        pass_on(object, instance, reply, asking->event);
        free(asking);
        return;
    }
    cairn->build_object(out);
    cairn->build_name(out, "status");
    cairn->build_value(out, cairn->value_get(reply->value, "status"));
    cairn->build_name(out, "headers");
    cairn->build_value(out, cairn->value_get(reply->value, "headers"));
    cairn->build_name(out, "pieces");
    cairn->build_array(out);
    asking->stream = cairn->stream_open(object, cairn->value_get(reply->value, "body"));
    if (asking->stream && cairn->stream_read(asking->stream, body_piece, asking) == 0)
        return;
    cairn->event_fail(asking->event);
    free(asking);
}

/* fetch(binding, name, url, method, body | number of pieces | undefined) */
static int m_fetch(cairn_object *object, struct flow *flow, cairn_event *event)
{
    static const char *const headers[] = {"X-From", "c", "x-more", "1", NULL};
    struct cairn_request request = {.size = sizeof(request),
                                    .method = text_arg(event, 3),
                                    .url = text_arg(event, 2),
                                    .headers = headers};
    if (cairn->value_kind(arg(event, 4)) == CAIRN_NUMBER)
        request.stream = written(object, int_arg(event, 4), 1000, 0, 1);
    else
        request.body = cairn->value_text(arg(event, 4), &request.body_size);
    struct asking *asking = calloc(1, sizeof(*asking));
    asking->event = event;
    int rc = cairn->object_fetch(object, text_arg(event, 0), text_arg(event, 1), &request, answered,
                                 asking);
    if (rc < 0)
        free(asking);
    return later(rc);
}

/* --- fetch_stream() -----------------------------------------------------------------------------
 */

/* What comes goes out again, a piece at a time. */
struct pipe {
    cairn_stream *from, *to;
    int reading;
};

static void pipe_read(cairn_object *object, void *instance, const struct cairn_reply *reply,
                      void *data);

static void pipe_wanted(cairn_object *object, void *instance, void *data)
{
    struct pipe *pipe = data;
    if (!pipe->reading && pipe->from)
        pipe->reading = cairn->stream_read(pipe->from, pipe_read, pipe) == 0;
}

static void pipe_read(cairn_object *object, void *instance, const struct cairn_reply *reply,
                      void *data)
{
    struct pipe *pipe = data;
    size_t size;
    const void *bytes = cairn->value_bytes(reply->value, &size);
    int rc = -1;
    pipe->reading = 0;
    if (bytes && !reply->error)
        rc = cairn->stream_write(pipe->to, bytes, size);
    if (rc == 1)
        pipe_wanted(object, instance, pipe);
    if (rc >= 0)
        return;
    if (reply->error)
        cairn->stream_fail(pipe->to, reply->error);
    else
        cairn->stream_end(pipe->to);
    cairn->stream_end(pipe->from);
    free(pipe);
}

static int ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), size_of_end = strlen(end);
    return size >= size_of_end && strcmp(text + size - size_of_end, end) == 0;
}

static int fetch_stream(cairn_object *object, void *instance, cairn_event *event)
{
    const char *url = cairn->request_url(event);
    if (ends_with(url, "/echo")) {
        struct pipe *pipe = calloc(1, sizeof(*pipe));
        pipe->from = cairn->request_stream(event);
        pipe->to = cairn->stream_new(object, pipe_wanted, pipe);
        if (!pipe->from || !pipe->to)
            return CAIRN_ERROR;
        cairn->response_header(event, "content-type", "application/octet-stream");
        return cairn->response_stream(event, pipe->to);
    }
    if (ends_with(url, "/endless")) {
        cairn_stream *stream = written(object, INT64_MAX, 50000, 0, 1);
        return stream ? cairn->response_stream(event, stream) : CAIRN_ERROR;
    }
    if (ends_with(url, "/late")) { /* a stream, and then an error */
        cairn_stream *stream = cairn->stream_new(object, NULL, NULL);
        int rc = cairn->response_stream(event, stream);
        cairn->stream_end(stream);
        return rc < 0 ? rc : cairn->error(object, "RangeError", "too late");
    }
    if (ends_with(url, "/both")) {
        cairn->response_write(event, "x", 1);
        cairn_stream *stream = cairn->stream_new(object, NULL, NULL);
        int rc = cairn->response_stream(event, stream);
        cairn->stream_end(stream);
        return rc;
    }
    if (ends_with(url, "/ignore"))
        return cairn->response_write(event, "ignored", 7);
    /* /count: the body is counted, and not kept */
    return read_stream(object, event, cairn->request_stream(event), 0);
}

/* --- the classes --------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    int (*run)(cairn_object *object, struct flow *flow, cairn_event *event);
} methods[] = {
    {"loop", m_loop},       {"keep", m_keep},           {"use", m_use},   {"give", m_give},
    {"release", m_release}, {"stub", m_stub},           {"who", m_who},   {"read", m_read},
    {"write", m_write},     {"counts", m_counts},       {"send", m_send}, {"streams", m_streams},
    {"fetchOf", m_fetch},   {"openTwice", m_openTwice},
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

static int create(cairn_object *object, void **instance)
{
    *instance = calloc(1, sizeof(struct flow));
    return 0;
}

static void destroy(cairn_object *object, void *instance)
{
    free(instance);
}

static const struct cairn_class classes[] = {
    {.name = "Flow",
     .create = create,
     .destroy = destroy,
     .call = call,
     .fetch_stream = fetch_stream},
};
CAIRN_MODULE(classes)
