/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/compiled_body.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "module/stream.h"
#include "net/server.h"
#include "worker/event.h"
#include "worker/event_life.h"

/* --- the request ----------------------------------------------------------------------------- */

struct cn_compiled_body {
    struct cn_event *event; /* NULL: it has gone */
    cairn_stream *stream;
    struct cn_buf in; /* what has come, and was not taken */
    bool taken;       /* `in` was: it goes with the next question */
    bool over;
    const char *error; /* static; NULL: none */
};

/* What a read has brought; 1: something, or the end. */
static int note(struct cn_compiled_body *body, int status, const uint8_t *bytes, size_t size)
{
    if (status == CN_HTTP_READ_PENDING)
        return 0;
    if (status == CN_HTTP_READ_DATA)
        cn_buf_append(&body->in, bytes, size);
    else if (status == CN_HTTP_READ_END)
        body->over = true;
    else
        body->error = status == CN_ELIMIT
                          ? "the body of the request is larger than the server takes"
                          : "the body of the request did not come to its end";
    return 1;
}

static void on_body(struct cn_http_request *http, int status, const uint8_t *bytes, size_t size)
{
    struct cn_event *event = http->data;
    if (!event || !event->body)
        return;
    note(event->body, status, bytes, size);
    cn_stream_ready(event->body->stream);
}

static int ask(void *data)
{
    struct cn_compiled_body *body = data;
    const uint8_t *bytes = NULL;
    size_t size = 0;
    if (body->taken)
        cn_buf_clear(&body->in);
    body->taken = false;
    if (body->over || body->error)
        return 1;
    int status = cn_http_request_read(body->event->http, &bytes, &size, on_body);
    return note(body, status, bytes, size);
}

static void take(void *data, struct cn_stream_piece *piece)
{
    struct cn_compiled_body *body = data;
    piece->error = body->in.size ? NULL : body->error;
    piece->over = !body->in.size && body->over;
    piece->bytes = body->in.size ? body->in.data : NULL;
    piece->size = body->in.size;
    body->taken = true;
}

static void stop(void *data, const char *reason)
{
    struct cn_compiled_body *body = data;
    (void)reason; /* a client is not told */
    if (body->event) {
        body->event->body = NULL;
        if (!body->over && !body->error)
            cn_http_request_read_stop(body->event->http);
    }
    cn_buf_fini(&body->in);
    cn_free(body);
}

static const struct cn_stream_source source = {ask, take, stop};

cairn_stream *cn_compiled_body_open(void *data, cairn_object *worker)
{
    struct cn_event *event = data;
    struct cn_compiled_body *body = CN_NEW(struct cn_compiled_body);
    body->stream = cn_stream_from(worker, &source, body);
    if (!body->stream) {
        cn_free(body);
        return NULL;
    }
    body->event = event;
    event->body = body;
    return body->stream;
}

void cn_compiled_body_gone(struct cn_compiled_body *body)
{
    body->event = NULL;
    if (body->over || body->error)
        return;
    body->error = "the client has gone, or its request was answered";
    cn_stream_ready_soon(body->stream); /* it may be the class that ends the event */
}

/* --- the response ---------------------------------------------------------------------------- */

static void on_drain(struct cn_http_request *http)
{
    struct cn_event *event = http->data;
    if (event && event->source)
        cn_stream_want(event->source);
}

static int give(void *data, struct cn_buf *bytes)
{
    struct cn_event *event = data;
    size_t at = 0;
    int rc = 1;
    while (rc == 1 && at < bytes->size) {
        size_t left = bytes->size - at;
        size_t size = left < CN_STREAM_BYTES_ENOUGH ? left : CN_STREAM_BYTES_ENOUGH;
        rc = cn_http_write(event->http, bytes->data + at, size, NULL, NULL);
        at += size;
    }
    cn_buf_consume(bytes, at);
    if (rc == 0)
        cn_http_on_drain(event->http, on_drain);
    if (rc >= 0)
        return rc;
    if (rc == CN_ECLOSED)
        return 0; /* on_abort follows, and ends the event */
    static const char text[] = "the response is longer than its Content-Length says";
    event->source = NULL;
    cn_event_fail(event, 500, text, sizeof(text) - 1);
    return -1;
}

static void end(void *data, const char *failure)
{
    struct cn_event *event = data;
    event->source = NULL;
    if (failure) {
        cn_event_fail(event, 500, failure, strlen(failure));
        return;
    }
    (void)cn_http_end(event->http); /* one that is too short is reset */
    cn_event_answered(event);
}

static const struct cn_stream_sink sink = {give, end};

static void on_event_gone(void *stream)
{
    cn_stream_left(stream);
}

static int64_t length_of(const struct cn_http_head *head)
{
    for (size_t i = 0; i < head->header_count; i++) {
        const struct cn_http_header *each = &head->headers[i];
        char *rest;
        if (!cn_http_name_equal(each->name, each->name_size, "content-length", 14))
            continue;
        unsigned long long length = strtoull(each->value, &rest, 10);
        return each->value_size && each->value[0] >= '0' && each->value[0] <= '9' && !*rest &&
                       length < INT64_MAX
                   ? (int64_t)length
                   : -1;
    }
    return -1;
}

int cn_compiled_body_respond(struct cn_event *event, const struct cn_http_head *head,
                             cairn_stream *stream)
{
    int rc = cn_http_begin(event->http, head, length_of(head));
    if (rc < 0)
        return rc;
    cn_event_begin(event);
    event->source = stream;
    event->source_gone = on_event_gone;
    cn_stream_sink(stream, &sink, event);
    cn_stream_want(stream);
    return 0;
}
