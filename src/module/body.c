/* SPDX-License-Identifier: Apache-2.0 */
/* module/body.c - bodies of requests and responses: as streams, and, for a class that wants a
 * request as a whole, collected. */
#include "base/mem.h"
#include "module/api.h"
#include "module/lent.h"
#include "module/stream.h"

cairn_stream *cn_api_request_stream(cairn_event *event)
{
    cairn_object *self = event->object;
    const struct cn_compiled_asked *asked = event->asked;
    if (event->kind != CN_COMPILED_FETCH || event->streamed) {
        cn_compiled_refuse(self, CAIRN_EMISUSE,
                           event->streamed ? "the body of the request has been opened already"
                                           : "the event is no request");
        return NULL;
    }
    cairn_stream *stream;
    if (asked && asked->open_body && asked->data) {
        stream = asked->open_body(asked->data, self);
    } else if (event->collected || (asked && asked->texts)) {
        size_t size = event->collected ? event->request.size : asked->body_size;
        stream = cn_stream_new(self, false);
        if (stream && size)
            cn_buf_append(&stream->bytes, event->collected ? event->request.data : event->bytes,
                          size);
    } else {
        stream = cn_api_stream_open(self, cn_value_get(event->document.root, "body"));
    }
    event->streamed = stream != NULL;
    return stream;
}

int cn_api_response_stream(cairn_event *event, cairn_stream *stream)
{
    cairn_object *self = event->object;
    if (event->kind != CN_COMPILED_FETCH || event->has_body || event->stream ||
        !cn_stream_is_free(stream) || stream->self != self)
        return cn_compiled_refuse(self, CAIRN_EMISUSE,
                                  "a response has one body, and a stream one reader");
    if (!event->call && !event->asked)
        return cn_compiled_refuse(self, CAIRN_ECLOSED, "the object was reset");
    stream->given = true; /* its sink comes when the answer leaves */
    event->stream = stream;
    return 0;
}

void cn_compiled_abandon(cairn_stream *stream)
{
    cn_stream_left(stream);
}

/* --- a request's body as a whole ------------------------------------------------------------- */

static void collected(cairn_stream *stream, const struct cn_err *err)
{
    cairn_event *event = stream->collects;
    void (*then)(cairn_event * event, const struct cn_err *err) = stream->then;
    cn_compiled_enter(event->object);
    cn_stream_stop(stream, err ? err->text : NULL);
    (void)cn_compiled_leave(event->object); /* no function of the class has run */
    cn_stream_free(stream);
    event->collected = true;
    then(event, err);
}

static void collect_more(cairn_stream *stream)
{
    cairn_object *self = stream->self;
    cn_compiled_enter(self);
    int rc = cn_stream_ask(stream);
    struct cn_err err;
    if (rc < 0)
        cn_err_set(&err, CN_EABORTED, "%s", cn_api_error_text(self));
    (void)cn_compiled_leave(self); /* no function of the class has run */
    if (rc < 0)
        collected(stream, &err);
}

void cn_body_piece(cairn_stream *stream, const struct cn_stream_piece *piece)
{
    cairn_object *self = stream->self;
    struct cn_buf *body = &stream->collects->request;
    struct cn_document document = {0};
    struct cn_err err;
    const uint8_t *bytes = piece->bytes;
    size_t size = piece->size;
    if (piece->error) {
        cn_err_set(&err, CN_EABORTED, "the body of the request did not come to its end: %s",
                   piece->error);
        collected(stream, &err);
        return;
    }
    if (piece->over) {
        collected(stream, NULL);
        return;
    }
    if (piece->is_value) {
        if (cn_document_read(&document, bytes, size, &err) < 0) {
            collected(stream, &err);
            return;
        }
        bytes = cn_value_bytes(document.root, &size);
    }
    bool fits = size <= CN_MODULE_BODY_MAX && body->size <= CN_MODULE_BODY_MAX - size &&
                cn_buf_try_append(body, size ? (const void *)bytes : "", size);
    cn_compiled_end_document(self, &document);
    if (fits) {
        collect_more(stream);
        return;
    }
    cn_err_set(&err, CN_ELIMIT,
               "The body of a request to an object of a module is limited to 16 MiB.");
    collected(stream, &err);
}

void cn_compiled_collect(cairn_event *event,
                         void (*then)(cairn_event *event, const struct cn_err *err))
{
    cairn_object *self = event->object;
    struct cn_err err;
    cn_compiled_enter(self);
    cairn_stream *stream = cn_api_stream_open(self, cn_value_get(event->document.root, "body"));
    if (!stream)
        cn_err_set(&err, CN_EOVERLOADED, "%s", cn_api_error_text(self));
    (void)cn_compiled_leave(self); /* no function of the class has run */
    if (!stream) {
        then(event, &err);
        return;
    }
    stream->collects = event;
    stream->then = then;
    collect_more(stream);
}
