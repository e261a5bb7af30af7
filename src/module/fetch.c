/* SPDX-License-Identifier: Apache-2.0 */
/* module/fetch.c - code in C asks other workers and objects for responses, and what requests and
 * responses are as values.
 *
 *     fetch()          other servers: fetch_out.c
 *     service_fetch()  an event for a worker, by the host's dispatch()
 *     object_fetch()   a call to an object: async.c
 *
 * No redirect is followed here: as with stub.fetch() of a request whose mode is "manual", whoever
 * asks is told of it. */
#include "module/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/mem.h"
#include "module/async.h"
#include "module/guard.h"
#include "module/lent.h"
#include "module/stream.h"
#include "object/node.h"
#include "text/clone.h"

#define RESPONSE_BYTES_MAX ((size_t)16 << 20)

/* --- requests and responses as values -------------------------------------------------------- */

/* How many headers; negative: a mistake. */
static int check_headers(cairn_object *self, const struct cairn_request *request)
{
    int count = 0;
    for (const char *const *at = request->headers; at && at[0]; at += 2) {
        if (!at[1])
            return cn_compiled_refuse(self, CAIRN_EMISUSE, "a header has a name and a value");
        if (++count > CN_REQUEST_HEADERS_MAX)
            return cn_compiled_refuse(self, CAIRN_ELIMIT, "a request has 256 headers at most");
    }
    return count;
}

int cn_request_read(cairn_object *self, const struct cairn_request *given,
                    struct cairn_request *request)
{
    *request = (struct cairn_request){0};
    memcpy(request, given, given->size < sizeof(*request) ? given->size : sizeof(*request));
    bool given_stream = request->stream != NULL;
    if (!request->url)
        return cn_compiled_refuse(self, CAIRN_EMISUSE, "a request has a URL");
    if (!request->method)
        request->method = "GET";
    if (given->size < offsetof(struct cairn_request, redirect) + sizeof(int))
        request->redirect = CAIRN_REDIRECT_MANUAL; /* made before there was another */
    if (request->stream)
        request->stream = cn_guard_take(request->stream, CN_GUARD_STREAM, "fetch", NULL);
    if (given_stream &&
        (!request->stream || !cn_stream_is_free(request->stream) || request->stream->self != self))
        return cn_compiled_refuse(self, CAIRN_EMISUSE,
                                  "a stream has one reader, and only one that is written is given");
    if (!request->response_max || request->response_max > RESPONSE_BYTES_MAX)
        request->response_max = RESPONSE_BYTES_MAX;
    int rc = cn_pending_admit(self);
    return rc < 0 ? rc : check_headers(self, request);
}

static void build_member(cairn_builder *b, const char *name, const char *text)
{
    cn_build_name(b, name);
    cn_build_text(b, text, strlen(text));
}

/* The parts that prelude/workers/object/fetch-values.js reads. */
static void build_request(cairn_builder *b, const struct cairn_request *request)
{
    cn_build_object(b);
    build_member(b, "url", request->url);
    build_member(b, "method", request->method);
    build_member(b, "redirect", "manual");
    cn_build_name(b, "headers");
    cn_build_array(b);
    for (const char *const *at = request->headers; at && at[0]; at += 2) {
        cn_build_array(b);
        cn_build_text(b, at[0], strlen(at[0]));
        cn_build_text(b, at[1], strlen(at[1]));
        cn_build_end(b);
    }
    cn_build_end(b);
    cn_build_name(b, "body");
    if (request->stream)
        cn_api_build_stream(b, request->stream);
    else if (request->body)
        cn_build_bytes(b, request->body, request->body_size);
    else
        cn_build_null(b);
    cn_build_end(b);
}

void cn_build_pair(cairn_builder *b, const char *name, size_t name_size, const char *value,
                   size_t value_size)
{
    char *lower = cn_strndup(name, name_size);
    for (char *at = lower; *at; at++)
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at | 32) : *at;
    cn_build_array(b);
    cn_build_text(b, lower, name_size);
    cn_build_text(b, value, value_size);
    cn_build_end(b);
    cn_free(lower);
}

/* "name: value\r\n..." */
static void build_block(cairn_builder *b, const char *at)
{
    while (*at) {
        const char *colon = strstr(at, ": "), *end = strstr(at, "\r\n");
        if (!end)
            end = at + strlen(at);
        if (colon && colon < end)
            cn_build_pair(b, at, (size_t)(colon - at), colon + 2, (size_t)(end - colon - 2));
        at = *end ? end + 2 : end;
    }
}

static void build_headers(cairn_builder *b, const cairn_value *headers)
{
    static const char *const types[] = {NULL, "text/plain;charset=UTF-8", "application/json"};
    int64_t code = 0;
    cn_build_array(b);
    if (cn_value_kind(headers) == CAIRN_TEXT) {
        build_block(b, cn_value_text(headers, NULL));
    } else if (cn_value_int(headers, &code) == 0) {
        if (code > 0 && code < (int64_t)CN_ARRAY_COUNT(types))
            cn_build_pair(b, "content-type", 12, types[code], strlen(types[code]));
    } else {
        for (size_t i = 0; i < cn_value_count(headers); i++) {
            size_t name_size = 0, value_size = 0;
            const cairn_value *pair = cn_value_at(headers, i);
            const char *name = cn_value_text(cn_value_at(pair, 0), &name_size);
            const char *value = cn_value_text(cn_value_at(pair, 1), &value_size);
            if (name && value)
                cn_build_pair(b, name, name_size, value, value_size);
        }
    }
    cn_build_end(b);
}

int cn_response_build(cairn_builder *b, const cairn_value *parts, struct cn_err *err)
{
    const cairn_value *body = cn_value_get(parts, "body");
    const cairn_value *socket = cn_value_get(parts, "webSocket");
    size_t size = 0;
    int64_t status = 0;
    const void *bytes = cn_value_kind(body) == CAIRN_BYTES ? cn_value_bytes(body, &size)
                                                           : cn_value_text(body, &size);
    if (cn_value_int(cn_value_get(parts, "status"), &status) < 0)
        return cn_err_set(err, CN_EINVALID, "the answer is no response");
    if (cn_value_kind(body) == CAIRN_OTHER)
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "the body of the response is something that C cannot read");
    cn_build_object(b);
    cn_build_name(b, "status");
    cn_build_int(b, status);
    cn_build_name(b, "headers");
    build_headers(b, cn_value_get(parts, "headers"));
    cn_build_name(b, "body");
    if (cn_value_kind(body) == CAIRN_STREAM)
        cn_build_reference(b, TAG_HOST_STREAM, cn_value_remote(body)->address,
                           cn_value_remote(body)->number); /* the new value has it */
    else if (bytes)
        cn_build_bytes(b, bytes, size);
    else
        cn_build_null(b);
    if (cn_value_kind(cn_value_get(parts, "encodeBody")) == CAIRN_TEXT) {
        cn_build_name(b, "encodeBody"); /* the body is as it is to be sent */
        cn_build_value(b, cn_value_get(parts, "encodeBody"));
    }
    if (cn_value_kind(socket) == CAIRN_TEXT) {
        cn_build_name(b, "webSocket");
        cn_build_value(b, socket);
    }
    cn_build_end(b);
    return 0;
}

const char *cn_api_response_find(const cairn_value *response, const char *name)
{
    const cairn_value *headers = cn_value_get(response, "headers");
    for (size_t i = 0; i < cn_value_count(headers); i++) {
        const cairn_value *pair = cn_value_at(headers, i);
        const char *each = cn_value_text(cn_value_at(pair, 0), NULL);
        if (each && strcasecmp(each, name) == 0)
            return cn_value_text(cn_value_at(pair, 1), NULL);
    }
    return NULL;
}

/* --- other workers --------------------------------------------------------------------------- */

struct sent {
    struct cn_pending base;
    struct cn_compiled_dispatch dispatch;
    bool is_fetch;
};

static struct sent *sent_of(struct cn_compiled_dispatch *dispatch)
{
    return CN_CONTAINER_OF(dispatch, struct sent, dispatch);
}

static void free_sent(struct sent *sent)
{
    cn_free(sent->dispatch.worker);
    cn_free(sent->dispatch.entrypoint);
    cn_free(sent->dispatch.method);
    cn_free(sent->dispatch.bytes);
    cn_free(sent->dispatch.props);
    cn_free(sent);
}

static void tell_sent(cairn_object *self, struct sent *sent, struct cn_pending_end *end)
{
    struct cn_document document = {0};
    cairn_builder builder;
    struct cn_err err;
    cn_builder_init(&builder, 64u << 20);
    if (sent->is_fetch && !end->error) {
        int rc = end->bytes ? cn_document_read(&document, end->bytes, end->size, &err)
                            : cn_err_set(&err, CN_EINVALID, "the answer is no response");
        if (rc == 0)
            rc = cn_response_build(&builder, document.root, &err);
        if (rc == 0)
            rc = cn_builder_finish(&builder, &err);
        end->error = rc < 0 ? err.text : NULL;
        end->bytes = rc < 0 ? NULL : builder.bytes.data;
        end->size = builder.bytes.size;
    }
    cn_pending_tell(self, &sent->base, end);
    cn_document_fini(&document);
    cn_builder_fini(&builder);
}

static void on_sent(struct cn_compiled_dispatch *dispatch, const struct cn_err *err,
                    unsigned faults, const uint8_t *bytes, size_t size)
{
    struct sent *sent = sent_of(dispatch);
    cairn_object *self = cn_pending_leave(&sent->base);
    struct cn_pending_end end = {err ? err->text : NULL, faults, bytes, size, NULL};
    if (self)
        tell_sent(self, sent, &end);
    free_sent(sent);
}

static void on_lost(struct cn_compiled_dispatch *dispatch)
{
    struct sent *sent = sent_of(dispatch);
    cairn_object *self = cn_pending_leave(&sent->base);
    if (self)
        cn_pending_let_go(self);
    free_sent(sent);
}

static char *member(const cairn_value *binding, const char *name)
{
    const char *text = cn_value_text(cn_value_get(binding, name), NULL);
    return text ? cn_strdup(text) : NULL;
}

static int dispatch(cairn_object *self, const cairn_value *binding, const char *method,
                    const struct cn_compiled_letter *letter)
{
    const cairn_value *props = cn_value_get(binding, "props");
    struct sent *sent = CN_NEW(struct sent);
    struct cn_compiled_dispatch *to = &sent->dispatch;
    struct cn_err err;
    sent->is_fetch = !method;
    to->worker = member(binding, "worker");
    to->entrypoint = member(binding, "entrypoint");
    to->method = method ? cn_strdup(method) : NULL;
    to->bytes = letter->bytes;
    to->size = letter->size;
    to->done = on_sent;
    to->lost = on_lost;
    to->origin = self->origin;
    to->origin.depth++;
    if (props) {
        cairn_builder builder;
        cn_builder_init(&builder, 1u << 20);
        cn_build_value(&builder, props);
        to->props = cn_builder_take(&builder, &to->props_size, &err); /* of JSON: it always is */
        cn_builder_fini(&builder);
    }
    cn_pending_start(&sent->base, self, letter->done, letter->data);
    sent->base.streams = letter->streams;
    self->host->dispatch(self->host->data, to, self->object);
    return 0;
}

/* The binding of another worker; NULL: that is the last error. */
static const cairn_value *worker_binding(cairn_object *self, const char *name)
{
    const cairn_value *binding = cn_modules_binding(self->class_->modules, name);
    const char *type = cn_value_text(cn_value_get(binding, "type"), NULL);
    char text[200];
    if (type && strcmp(type, "service") == 0 && self->host)
        return binding;
    snprintf(text, sizeof(text), "there is no service binding \"%.100s\"", name);
    cn_compiled_refuse(self, CAIRN_EMISUSE, text);
    return NULL;
}

int cn_worker_call(cairn_object *self, const cairn_value *binding, const char *method,
                   cairn_builder *arguments, cairn_done done, void *data)
{
    struct cn_compiled_letter letter = {.done = done, .data = data};
    int rc = cn_pending_depth(self);
    if (rc < 0)
        return rc;
    letter.bytes = cn_pending_arguments(self, arguments, &letter.size);
    return letter.bytes ? dispatch(self, binding, method, &letter) : CAIRN_EMISUSE;
}

/* The request as what is sent. Negative: the last error. */
static int write_request(cairn_object *self, const struct cairn_request *request,
                         struct cn_compiled_letter *letter)
{
    struct cn_err err;
    cairn_builder *builder = cn_compiled_lend_builder(self);
    build_request(builder, request);
    letter->bytes = cn_builder_take(builder, &letter->size, &err);
    letter->streams = request->streamed != 0;
    return letter->bytes ? 0 : cn_compiled_fault(self, &err);
}

int cn_api_service_fetch(cairn_object *self, const char *name, const struct cairn_request *given,
                         cairn_done done, void *data)
{
    struct cn_compiled_letter letter = {.done = done, .data = data};
    struct cairn_request request;
    int rc = cn_request_read(self, given, &request);
    if (rc >= 0)
        rc = cn_pending_depth(self);
    if (rc < 0)
        return rc;
    const cairn_value *binding = worker_binding(self, name);
    rc = binding ? write_request(self, &request, &letter) : CAIRN_EMISUSE;
    return rc < 0 ? rc : dispatch(self, binding, NULL, &letter);
}

int cn_api_object_fetch(cairn_object *self, const char *binding, const char *name,
                        const struct cairn_request *given, cairn_done done, void *data)
{
    struct cn_compiled_letter letter = {.done = done, .data = data};
    struct cairn_request request;
    int rc = cn_request_read(self, given, &request);
    if (rc >= 0)
        rc = write_request(self, &request, &letter);
    return rc < 0 ? rc : cn_compiled_object_fetch(self, binding, name, &letter);
}
