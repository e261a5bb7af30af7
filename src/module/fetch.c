/* SPDX-License-Identifier: Apache-2.0 */
/* module/fetch.c - code in C asks for responses: of the world, of other workers, of objects.
 *
 *     fetch()          output gate ──► net/client.h ──► head, body ──► told; freed
 *     service_fetch()  an event for a worker, by the host's dispatch()
 *     object_fetch()   a call to an object: async.c
 *
 * X1  What an object asks for leaves when what it has written is on disk.
 * X2  A response is whole before it is told, and `response_max` bytes long at most: more is cut
 * off, and is an error. X3  No redirect is followed: whoever asks is told of it. X4  A worker that
 * asks for its own host without end comes to one: a request says in CDN-Loop (RFC 8586) how many
 * such came before it, and past LOOPS_MAX it fails. */
#include "module/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/mem.h"
#include "module/async.h"
#include "module/lent.h"
#include "module/pending.h"
#include "net/client.h"
#include "object/node.h"
#include "text/clone.h"

#define HEADERS_MAX 256
#define LOOPS_MAX 16
#define LOOP_MARK "cairn; loops="
#define RESPONSE_BYTES_MAX ((size_t)16 << 20)

/* --- requests and responses as values -------------------------------------------------------- */

/* How many headers; negative: a mistake. */
static int check_headers(cairn_object *self, const struct cairn_request *request)
{
    int count = 0;
    for (const char *const *at = request->headers; at && at[0]; at += 2) {
        if (!at[1])
            return cn_compiled_refuse(self, CAIRN_EMISUSE, "a header has a name and a value");
        if (++count > HEADERS_MAX)
            return cn_compiled_refuse(self, CAIRN_ELIMIT, "a request has 256 headers at most");
    }
    return count;
}

/* A copy: what an older module does not have is zero. */
static int read_request(cairn_object *self, const struct cairn_request *given,
                        struct cairn_request *request)
{
    *request = (struct cairn_request){0};
    memcpy(request, given, given->size < sizeof(*request) ? given->size : sizeof(*request));
    if (!request->url)
        return cn_compiled_refuse(self, CAIRN_EMISUSE, "a request has a URL");
    if (!request->method)
        request->method = "GET";
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

static void build_pair(cairn_builder *b, const char *name, size_t name_size, const char *value,
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
            build_pair(b, at, (size_t)(colon - at), colon + 2, (size_t)(end - colon - 2));
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
            build_pair(b, "content-type", 12, types[code], strlen(types[code]));
    } else {
        for (size_t i = 0; i < cn_value_count(headers); i++) {
            size_t name_size = 0, value_size = 0;
            const cairn_value *pair = cn_value_at(headers, i);
            const char *name = cn_value_text(cn_value_at(pair, 0), &name_size);
            const char *value = cn_value_text(cn_value_at(pair, 1), &value_size);
            if (name && value)
                build_pair(b, name, name_size, value, value_size);
        }
    }
    cn_build_end(b);
}

int cn_response_build(cairn_builder *b, const cairn_value *parts, bool streams, struct cn_err *err)
{
    const cairn_value *body = cn_value_get(parts, "body");
    const cairn_value *socket = cn_value_get(parts, "webSocket");
    size_t size = 0;
    int64_t status = 0;
    const void *bytes = cn_value_kind(body) == CAIRN_BYTES ? cn_value_bytes(body, &size)
                                                           : cn_value_text(body, &size);
    if (cn_value_int(cn_value_get(parts, "status"), &status) < 0)
        return cn_err_set(err, CN_EINVALID, "the answer is no response");
    if (cn_value_kind(socket) == CAIRN_TEXT || cn_value_kind(socket) == CAIRN_OTHER)
        return cn_err_set(err, CN_EUNSUPPORTED, "the response is a WebSocket, which C cannot take");
    if (cn_value_kind(body) == CAIRN_OTHER || (cn_value_kind(body) == CAIRN_STREAM && !streams))
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "the body of the response is a stream, which a worker in C cannot read");
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
            rc = cn_response_build(&builder, document.root, self->object, &err);
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
    struct cn_pending_end end = {err ? err->text : NULL, faults, bytes, size};
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
                    uint8_t *bytes, size_t size, cairn_done done, void *data)
{
    const cairn_value *props = cn_value_get(binding, "props");
    struct sent *sent = CN_NEW(struct sent);
    struct cn_compiled_dispatch *to = &sent->dispatch;
    struct cn_err err;
    sent->is_fetch = !method;
    to->worker = member(binding, "worker");
    to->entrypoint = member(binding, "entrypoint");
    to->method = method ? cn_strdup(method) : NULL;
    to->bytes = bytes;
    to->size = size;
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
    cn_pending_start(&sent->base, self, done, data);
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
    size_t size;
    int rc = cn_pending_depth(self);
    if (rc < 0)
        return rc;
    uint8_t *bytes = cn_pending_arguments(self, arguments, &size);
    return bytes ? dispatch(self, binding, method, bytes, size, done, data) : CAIRN_EMISUSE;
}

/* The request as bytes; NULL: the last error. */
static uint8_t *request_bytes(cairn_object *self, const struct cairn_request *request, size_t *size)
{
    struct cn_err err;
    cairn_builder *builder = cn_compiled_lend_builder(self);
    build_request(builder, request);
    uint8_t *bytes = cn_builder_take(builder, size, &err);
    if (!bytes)
        cn_compiled_fault(self, &err);
    return bytes;
}

int cn_api_service_fetch(cairn_object *self, const char *name, const struct cairn_request *given,
                         cairn_done done, void *data)
{
    struct cairn_request request;
    size_t size;
    int rc = read_request(self, given, &request);
    if (rc >= 0)
        rc = cn_pending_depth(self);
    if (rc < 0)
        return rc;
    const cairn_value *binding = worker_binding(self, name);
    uint8_t *bytes = binding ? request_bytes(self, &request, &size) : NULL;
    return bytes ? dispatch(self, binding, NULL, bytes, size, done, data) : CAIRN_EMISUSE;
}

int cn_api_object_fetch(cairn_object *self, const char *binding, const char *name,
                        const struct cairn_request *given, cairn_done done, void *data)
{
    struct cairn_request request;
    size_t size;
    int rc = read_request(self, given, &request);
    if (rc < 0)
        return rc;
    uint8_t *bytes = request_bytes(self, &request, &size);
    return bytes ? cn_compiled_object_fetch(self, binding, name, bytes, size, done, data)
                 : CAIRN_ELIMIT;
}

/* --- the world ------------------------------------------------------------------------------- */

struct fetch {
    struct cn_pending base;
    struct cn_output output; /* X1 */
    struct cn_client *client;
    struct cn_client_request *request; /* NULL: not begun, or over */
    char *method, *url;                /* owned */
    struct cn_client_header headers[HEADERS_MAX + 1];
    size_t header_count;
    uint8_t *body; /* owned; NULL: none */
    size_t body_size, response_max;
    unsigned timeout_ms;
    char loop[40];
    cairn_builder result;
    struct cn_buf received;
    bool has_head, too_large;
};

static void free_fetch(struct fetch *fetch)
{
    for (size_t i = 0; i < fetch->header_count; i++) {
        cn_free((char *)fetch->headers[i].name);
        cn_free((char *)fetch->headers[i].value);
    }
    cn_free(fetch->method);
    cn_free(fetch->url);
    cn_free(fetch->body);
    cn_builder_fini(&fetch->result);
    cn_buf_fini(&fetch->received);
    cn_free(fetch);
}

static void finish_fetch(struct fetch *fetch, const char *error)
{
    cairn_object *self = cn_pending_leave(&fetch->base);
    struct cn_err err;
    if (self) {
        struct cn_pending_end end = {error, 0, NULL, 0};
        if (!error) {
            cn_build_name(&fetch->result, "body");
            cn_build_bytes(&fetch->result, fetch->received.data, fetch->received.size);
            cn_build_end(&fetch->result);
            if (cn_builder_finish(&fetch->result, &err) < 0)
                end.error = err.text;
            end.bytes = fetch->result.bytes.data;
            end.size = fetch->result.bytes.size;
        }
        cn_pending_tell(self, &fetch->base, &end);
    }
    free_fetch(fetch);
}

static void on_head(struct cn_client_request *request, const struct cn_client_head *head,
                    void *data)
{
    struct fetch *fetch = data;
    cairn_builder *b = &fetch->result;
    (void)request;
    fetch->has_head = true;
    cn_build_object(b);
    cn_build_name(b, "status");
    cn_build_int(b, head->status);
    cn_build_name(b, "headers");
    cn_build_array(b);
    for (size_t i = 0; i < head->header_count; i++) {
        const struct cn_client_header *header = &head->headers[i];
        build_pair(b, header->name, header->name_length, header->value, header->value_length);
    }
    cn_build_end(b);
}

static void on_body(struct cn_client_request *request, const void *bytes, size_t size, void *data)
{
    struct fetch *fetch = data;
    if (fetch->too_large)
        return;
    if (size > fetch->response_max || fetch->received.size > fetch->response_max - size) {
        fetch->too_large = true; /* X2 */
        cn_client_abort(request);
        return;
    }
    cn_buf_append(&fetch->received, bytes, size);
}

static void on_done(struct cn_client_request *request, const struct cn_err *error, void *data)
{
    struct fetch *fetch = data;
    (void)request;
    fetch->request = NULL;
    if (fetch->too_large)
        finish_fetch(fetch, "the body of the response is larger than the request allows");
    else
        finish_fetch(fetch, error ? error->text : NULL);
}

static const struct cn_client_callbacks callbacks = {
    .on_head = on_head, .on_body = on_body, .on_done = on_done};

/* The gate has opened. */
static void on_open(struct cn_output *output, const struct cn_err *gate_err)
{
    struct fetch *fetch = CN_CONTAINER_OF(output, struct fetch, output);
    struct cn_err err;
    if (gate_err) {
        finish_fetch(fetch, gate_err->text);
        return;
    }
    struct cn_client_params params = {
        .method = fetch->method,
        .url = fetch->url,
        .headers = fetch->headers,
        .header_count = fetch->header_count,
        .body_kind = fetch->body ? CN_CLIENT_BODY_BYTES : CN_CLIENT_BODY_NONE,
        .body = fetch->body,
        .body_size = fetch->body_size,
        .accept_encoding = true,
        .decode = true,
        .total_timeout_ms = fetch->timeout_ms,
    };
    fetch->request = cn_client_fetch(fetch->client, &params, &callbacks, fetch, &err);
    if (!fetch->request)
        finish_fetch(fetch, err.text);
}

/* The object goes: nobody wants the answer. Until the gate has opened there is nothing to end. */
static void fetch_dropped(struct cn_pending *pending)
{
    struct fetch *fetch = CN_CONTAINER_OF(pending, struct fetch, base);
    if (fetch->request)
        cn_client_abort(fetch->request);
}

static void on_now_closed(uv_handle_t *handle)
{
    struct fetch *fetch = handle->data;
    cn_free(handle);
    on_open(&fetch->output, NULL);
}

static void on_now(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, on_now_closed);
}

static void add_header(struct fetch *fetch, const char *name, const char *value)
{
    fetch->headers[fetch->header_count++] =
        (struct cn_client_header){cn_strdup(name), cn_strdup(value), strlen(name), strlen(value)};
}

/* X4 */
static int add_loop(cairn_object *self, struct fetch *fetch)
{
    if (self->object)
        return 0;
    if (self->loops >= LOOPS_MAX)
        return cn_compiled_refuse(self, CAIRN_ELIMIT,
                                  "the worker has asked for itself 16 times in a row: it is in a "
                                  "loop");
    snprintf(fetch->loop, sizeof(fetch->loop), LOOP_MARK "%u", self->loops + 1);
    add_header(fetch, "cdn-loop", fetch->loop);
    return 0;
}

static struct fetch *make_fetch(cairn_object *self, const struct cairn_request *request)
{
    struct fetch *fetch = CN_NEW(struct fetch);
    cn_builder_init(&fetch->result, 64u << 20);
    fetch->client = self->host->client;
    fetch->method = cn_strdup(request->method);
    fetch->url = cn_strdup(request->url);
    for (const char *const *at = request->headers; at && at[0]; at += 2) {
        if (strcasecmp(at[0], "cdn-loop") != 0 || self->object)
            add_header(fetch, at[0], at[1]);
    }
    if (request->body) {
        fetch->body =
            request->body_size ? cn_memdup(request->body, request->body_size) : cn_alloc(1);
        fetch->body_size = request->body_size;
    }
    fetch->response_max = request->response_max;
    fetch->timeout_ms =
        request->timeout > 0 && request->timeout < 86400000 ? (unsigned)request->timeout : 0;
    fetch->base.dropped = fetch_dropped;
    return fetch;
}

int cn_api_http_fetch(cairn_object *self, const struct cairn_request *given, cairn_done done,
                      void *data)
{
    struct cairn_request request;
    int rc = read_request(self, given, &request);
    if (rc < 0)
        return rc;
    if (!self->host || !self->host->client)
        return cn_compiled_refuse(self, CAIRN_ERROR, "there is no network here");
    struct fetch *fetch = make_fetch(self, &request);
    rc = add_loop(self, fetch);
    if (rc < 0) {
        free_fetch(fetch);
        return rc;
    }
    cn_pending_start(&fetch->base, self, done, data);
    if (self->object) {
        cn_object_output(self->object, &fetch->output, on_open); /* X1 */
        return 0;
    }
    uv_timer_t *timer = CN_NEW(uv_timer_t);
    uv_timer_init(self->host->loop, timer);
    timer->data = fetch;
    uv_timer_start(timer, on_now, 0, 0);
    return 0;
}

unsigned cn_fetch_loops(const char *header)
{
    const size_t mark = sizeof(LOOP_MARK) - 1;
    if (!header || strncmp(header, LOOP_MARK, mark) != 0)
        return 0;
    unsigned long loops = strtoul(header + mark, NULL, 10);
    return loops < LOOPS_MAX ? (unsigned)loops : LOOPS_MAX;
}
