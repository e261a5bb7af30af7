/* SPDX-License-Identifier: Apache-2.0 */
/* module/forward.c - what comes is passed on: a stream to another, a request to an object or a
 * worker, and its response, with its body or its WebSocket, to whoever asked.
 *
 * P1  A piece is read of one stream when the other one's reader has taken the piece before: nothing
 *     piles up in between.
 * P2  The end of either, well or not, is the end of both.
 * P3  What is passed on is the server's: a module has no handle of it any more, but for the stream
 *     that is written, which it may still give to somebody, once. */
#include "module/api.h"
#include "module/forward.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "module/fetch.h"
#include "module/guard.h"
#include "module/http.h"
#include "module/lent.h"
#include "module/stream.h"

/* --- streams --------------------------------------------------------------------------------- */

static void end_both(cairn_stream *to, const char *failure)
{
    cairn_stream *from = to->piped;
    to->piped = NULL;
    if (failure) {
        cn_api_stream_fail(from, failure);
        cn_api_stream_fail(to, failure);
        return;
    }
    cn_api_stream_end(from);
    cn_api_stream_end(to);
}

static void on_piece(cairn_object *self, void *instance, const struct cairn_reply *reply,
                     void *data)
{
    cairn_stream *to = data;
    size_t size = 0;
    (void)self, (void)instance; /* which are shown as to a module */
    if (reply->error || !reply->value) {
        end_both(to, reply->error);
        return;
    }
    const void *bytes = cn_value_bytes(reply->value, &size);
    if (cn_api_stream_write(to, bytes, size) < 0)
        end_both(to, cn_api_error_text(to->self));
}

/* P1 */
static void on_wanted(cairn_object *self, void *instance, void *data)
{
    cairn_stream *to = data;
    (void)self, (void)instance;
    if (!to->piped)
        return;
    if (to->state == CN_STREAM_CLOSED)
        end_both(to, "The stream was given up by its reader.");
    else if (!to->piped->reading && cn_api_stream_read(to->piped, on_piece, to) < 0)
        end_both(to, cn_api_error_text(to->self));
}

int cn_api_stream_pipe(cairn_stream *from, cairn_stream *to)
{
    cairn_object *self = from->self;
    if (from->writes || from->reading || !to->writes || to->ended_by_class || to->piped ||
        to->self != self)
        return cn_compiled_refuse(self, CAIRN_EMISUSE,
                                  "a stream that is read goes into one that is written");
    cn_guard_remove(from); /* P3 */
    to->piped = from;
    to->wanted = on_wanted;
    to->data = to;
    on_wanted(NULL, NULL, to);
    return 0;
}

/* --- responses ------------------------------------------------------------------------------- */

/* Not those that the connection has its own of; nor, of a body that was decoded on its way, those
 * that say how it came. */
static bool is_passed_on(const char *name, bool decoded)
{
    static const char *const not [] = {"connection", "keep-alive",     "transfer-encoding",
                                       "upgrade",    "content-length", "content-encoding"};
    size_t count = decoded ? 6 : 4;
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(name, not [i]) == 0)
            return false;
    }
    return true;
}

static int take_headers(cairn_event *event, const cairn_value *response)
{
    const cairn_value *headers = cn_value_get(response, "headers");
    bool decoded = cn_api_response_find(response, "content-encoding") &&
                   cn_value_kind(cn_value_get(response, "encodeBody")) != CAIRN_TEXT;
    for (size_t i = 0; i < cn_value_count(headers); i++) {
        const cairn_value *pair = cn_value_at(headers, i);
        const char *name = cn_value_text(cn_value_at(pair, 0), NULL);
        const char *value = cn_value_text(cn_value_at(pair, 1), NULL);
        if (!name || !value || !is_passed_on(name, decoded))
            continue;
        int rc = cn_api_response_header(event, name, value);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The body becomes that of the event. */
static int take_body(cairn_event *event, cairn_stream *from)
{
    cairn_stream *to = cn_api_stream_new(event->object, NULL, NULL);
    int rc = to ? cn_api_stream_pipe(from, to) : CAIRN_ELIMIT;
    if (rc >= 0)
        return cn_api_response_stream(event, to);
    if (to)
        cn_api_stream_end(to);
    return rc;
}

int cn_api_response_from(cairn_event *event, const cairn_value *response, cairn_stream *stream)
{
    cairn_object *self = event->object;
    const cairn_value *body = cn_value_get(response, "body");
    const char *socket = cn_value_text(cn_value_get(response, "webSocket"), NULL);
    int64_t status = 0;
    size_t size = 0;
    if (event->kind != CN_COMPILED_FETCH ||
        cn_value_int(cn_value_get(response, "status"), &status) < 0)
        return cn_compiled_refuse(self, CAIRN_EMISMATCH, "the value is no response");
    int rc = take_headers(event, response);
    if (rc < 0)
        return rc;
    if (socket) {
        if (strlen(socket) >= sizeof(event->socket))
            return cn_compiled_refuse(self, CAIRN_EMISMATCH, "the value is no response");
        memcpy(event->socket, socket, strlen(socket) + 1);
        return 0;
    }
    rc = cn_api_response_status(event, (int)status);
    if (rc < 0)
        return rc;
    if (stream)
        return take_body(event, stream);
    if (cn_value_kind(body) == CAIRN_STREAM) {
        stream = cn_api_stream_open(self, body);
        return stream ? take_body(event, stream) : CAIRN_ELIMIT;
    }
    const void *bytes = cn_value_kind(body) == CAIRN_TEXT ? cn_value_text(body, &size)
                                                          : cn_value_bytes(body, &size);
    return bytes ? cn_api_response_write(event, bytes, size) : 0;
}

/* --- requests -------------------------------------------------------------------------------- */

static void on_answered(cairn_object *self, void *instance, const struct cairn_reply *reply,
                        void *data)
{
    cairn_event *event = data;
    (void)self, (void)instance;
    if (!reply->error && cn_api_response_from(event, reply->value, NULL) >= 0) {
        cn_compiled_answer(event);
        return;
    }
    if (reply->error) {
        const char *type = cn_value_text(cn_value_get(reply->value, "name"), NULL);
        cn_api_error(event->object, type, "%s", reply->error);
    }
    cn_compiled_fail(event);
}

/* Its body: bytes that are there, or a stream that is passed on. */
static int pass_body(cairn_event *event, struct cairn_request *request)
{
    cairn_object *self = event->object;
    const struct cn_compiled_asked *asked = event->asked;
    const cairn_value *body = cn_value_get(event->document.root, "body");
    if (event->streamed)
        return cn_compiled_refuse(self, CAIRN_EMISUSE,
                                  "the body of the request has been opened already");
    if (!(asked && asked->open_body) && cn_value_kind(body) != CAIRN_STREAM) {
        request->body = cn_api_request_body(event, &request->body_size);
        return 0;
    }
    cairn_stream *from = cn_api_request_stream(event);
    cairn_stream *to = from ? cn_api_stream_new(self, NULL, NULL) : NULL;
    request->stream = cn_guard_show(to); /* as a module has it */
    return to ? cn_api_stream_pipe(from, to) : CAIRN_ELIMIT;
}

/* The request as it came. `headers` has room for CN_REQUEST_HEADERS_MAX pairs. */
static int read_event(cairn_event *event, struct cairn_request *request, const char **headers)
{
    size_t count = cn_api_request_header_count(event), at = 0;
    if (event->kind != CN_COMPILED_FETCH || event->has_body || event->stream)
        return cn_compiled_refuse(event->object, CAIRN_EMISUSE,
                                  "the event is no request, or has a response");
    for (size_t i = 0; i < count && i < CN_REQUEST_HEADERS_MAX; i++) {
        const char *value = NULL;
        const char *name = cn_api_request_header_at(event, i, &value);
        if (!name || !value)
            continue;
        headers[at++] = name;
        headers[at++] = value;
    }
    headers[at] = NULL;
    *request = (struct cairn_request){.size = sizeof(*request),
                                      .url = cn_api_request_url(event),
                                      .method = cn_api_request_method(event),
                                      .headers = headers};
    return pass_body(event, request);
}

/* P3: from here on it is answered by on_answered() alone. */
static int passed_on(cairn_event *event)
{
    event->passed_on = true;
    cn_compiled_event_hide(event);
    return CAIRN_LATER;
}

int cn_api_object_forward(cairn_event *event, const char *binding, const char *name)
{
    const char *headers[2 * CN_REQUEST_HEADERS_MAX + 1];
    struct cairn_request request;
    int rc = read_event(event, &request, headers);
    if (rc >= 0)
        rc = cn_api_object_fetch(event->object, binding, name, &request, on_answered, event);
    return rc < 0 ? rc : passed_on(event);
}

int cn_api_service_forward(cairn_event *event, const char *binding)
{
    const char *headers[2 * CN_REQUEST_HEADERS_MAX + 1];
    struct cairn_request request;
    int rc = read_event(event, &request, headers);
    if (rc >= 0)
        rc = cn_api_service_fetch(event->object, binding, &request, on_answered, event);
    return rc < 0 ? rc : passed_on(event);
}
