/* SPDX-License-Identifier: Apache-2.0 */
/* module/fetch_out.c - fetch() of code in C: outgoing HTTP, redirects, bodies whole or as streams.
 *
 *     output gate ──► net/client.h ──► head ──┬──► body ──► told; freed
 *          ▲                                  ├──► told; the body is a stream's; freed
 *          └── a redirect that is followed ───┘
 *
 * X1  What an object asks for leaves when what it has written is on disk; each piece of a body that
 *     it streams, too.
 * X2  A response that is not streamed is whole before it is told, and `response_max` bytes long at
 *     most: more is cut off, and is an error. Of a streamed one INPUT_HIGH bytes wait at most, then
 *     the connection is not read.
 * X3  Redirects are those of net/redirect.h. A body that came as a stream cannot be sent twice.
 * X4  A worker that asks for its own host without end comes to one: a request says in CDN-Loop (RFC
 *     8586) how many such came before it, and past LOOPS_MAX it fails.
 *
 * Threads:   the lane's.
 * Ownership: its own, until the exchange is over, nobody waits for the gate, and the stream of its
 *            response has been stopped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/mem.h"
#include "module/api.h"
#include "module/fetch.h"
#include "module/stream.h"
#include "net/client.h"
#include "net/redirect.h"
#include "object/node.h"

#define LOOPS_MAX 16
#define LOOP_MARK "cairn; loops="
#define INPUT_HIGH (256u << 10)
#define OUTPUT_PIECE (256u << 10)

struct fetch {
    struct cn_pending base;
    struct cn_output output; /* X1 */
    struct cn_soon *soon;    /* of a worker, in place of the gate */
    struct cn_client *client;
    uv_loop_t *loop;
    struct cn_client_request *request; /* NULL: not begun, or over */
    char *method, *url;                /* owned */
    struct cn_client_header headers[CN_REQUEST_HEADERS_MAX + 1];
    size_t header_count;
    uint8_t *body; /* owned; NULL: none */
    size_t body_size, response_max;
    uint64_t deadline_ms; /* of the loop; 0: none */
    int redirect;
    unsigned redirects; /* that were followed */
    cairn_builder result;
    struct cn_buf received; /* of the response; streamed: not yet taken */
    bool gated;             /* the gate, or the loop, has it */
    bool told;
    bool streamed;
    bool follows; /* the exchange is being ended, and another begins */
    bool over;    /* nothing more comes */
    bool ending;  /* finish() tells of it, and frees it */
    struct cn_err failure;
    /* The response as a stream. */
    cairn_stream *download; /* NULL: not yet, or stopped */
    bool taken, paused;
    /* The request's body as one. */
    cairn_stream *upload; /* NULL: none, or over */
    cairn_object *writer; /* whose it is */
    struct cn_output piece_output;
    struct cn_buf piece; /* waits for the gate */
    bool piece_gated;
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
    cn_buf_fini(&fetch->piece);
    cn_free(fetch);
}

static void free_if_over(struct fetch *fetch)
{
    if (!fetch->ending && !fetch->request && !fetch->gated && !fetch->piece_gated &&
        !fetch->download && !fetch->upload && fetch->told)
        free_fetch(fetch);
}

/* Nobody takes the rest of the body that the class writes. */
static void leave_upload(struct fetch *fetch)
{
    cairn_stream *stream = fetch->upload;
    fetch->upload = NULL;
    if (stream)
        cn_stream_left(stream);
}

/* --- the answer ------------------------------------------------------------------------------ */

static void tell(struct fetch *fetch, const char *error)
{
    cairn_object *self = cn_pending_leave(&fetch->base);
    struct cn_pending_end end = {.error = error};
    struct cn_err err;
    fetch->told = true;
    if (!self)
        return;
    if (!error) {
        cn_build_name(&fetch->result, "body");
        if (fetch->download)
            cn_build_null(&fetch->result);
        else
            cn_build_bytes(&fetch->result, fetch->received.data, fetch->received.size);
        cn_build_end(&fetch->result);
        if (cn_builder_finish(&fetch->result, &err) < 0)
            end.error = err.text;
        end.bytes = fetch->result.bytes.data;
        end.size = fetch->result.bytes.size;
        end.stream = fetch->download;
    }
    cn_pending_tell(self, &fetch->base, &end);
}

static void build_head(struct fetch *fetch, const struct cn_client_head *head)
{
    cairn_builder *b = &fetch->result;
    cn_build_object(b);
    cn_build_name(b, "status");
    cn_build_int(b, head->status);
    cn_build_name(b, "url");
    cn_build_text(b, fetch->url, strcspn(fetch->url, "#"));
    cn_build_name(b, "redirected");
    cn_build_bool(b, fetch->redirects > 0);
    cn_build_name(b, "headers");
    cn_build_array(b);
    for (size_t i = 0; i < head->header_count; i++) {
        const struct cn_client_header *header = &head->headers[i];
        cn_build_pair(b, header->name, header->name_length, header->value, header->value_length);
    }
    cn_build_end(b);
}

/* --- the response as a stream ---------------------------------------------------------------- */

static int ask(void *data)
{
    struct fetch *fetch = data;
    if (fetch->taken)
        cn_buf_clear(&fetch->received);
    fetch->taken = false;
    if (fetch->received.size || fetch->over)
        return 1;
    if (fetch->paused && fetch->request) {
        fetch->paused = false;
        cn_client_resume(fetch->request);
    }
    return 0;
}

static void take(void *data, struct cn_stream_piece *piece)
{
    struct fetch *fetch = data;
    piece->bytes = fetch->received.size ? fetch->received.data : NULL;
    piece->size = fetch->received.size;
    piece->over = !piece->size && !fetch->failure.code;
    piece->error = !piece->size && fetch->failure.code ? fetch->failure.text : NULL;
    fetch->taken = true;
}

static void stop(void *data, const char *reason)
{
    struct fetch *fetch = data;
    (void)reason; /* a server is not told */
    fetch->download = NULL;
    if (fetch->request)
        cn_client_discard(fetch->request);
    free_if_over(fetch);
}

static const struct cn_stream_source source = {ask, take, stop};

/* --- the request's body as a stream ---------------------------------------------------------- */

static void write_piece(struct fetch *fetch)
{
    struct cn_err err;
    if (fetch->request && fetch->upload && fetch->piece.size &&
        cn_client_write(fetch->request, fetch->piece.data, fetch->piece.size, &err) < 0)
        leave_upload(fetch); /* the exchange is over, or says so itself */
    cn_buf_clear(&fetch->piece);
}

static void on_piece_open(struct cn_output *output, const struct cn_err *gate_err)
{
    struct fetch *fetch = CN_CONTAINER_OF(output, struct fetch, piece_output);
    fetch->piece_gated = false;
    if (!gate_err)
        write_piece(fetch);
    free_if_over(fetch);
}

static int give(void *data, struct cn_buf *bytes)
{
    struct fetch *fetch = data;
    struct cn_object *object = fetch->writer->object;
    size_t size = bytes->size < OUTPUT_PIECE ? bytes->size : OUTPUT_PIECE;
    CN_ASSERT(!fetch->piece.size);
    cn_buf_append(&fetch->piece, bytes->data, size);
    cn_buf_consume(bytes, size);
    if (!object) {
        struct cn_err err;
        int rc = cn_client_write(fetch->request, fetch->piece.data, size, &err);
        cn_buf_clear(&fetch->piece);
        if (rc < 0)
            fetch->upload = NULL;
        return rc < 0 ? -1 : 0;
    }
    fetch->piece_gated = true;
    cn_object_enter(object);
    cn_object_output(object, &fetch->piece_output, on_piece_open); /* X1 */
    cn_object_leave(object);
    return 0;
}

static void end_upload(void *data, const char *failure)
{
    struct fetch *fetch = data;
    fetch->upload = NULL;
    if (failure && !fetch->failure.code)
        cn_err_set(&fetch->failure, CN_EABORTED, "%s", failure);
    if (failure && fetch->request)
        cn_client_abort(fetch->request);
    else if (fetch->request)
        cn_client_end(fetch->request);
    free_if_over(fetch);
}

static const struct cn_stream_sink sink = {give, end_upload};

static void on_want(struct cn_client_request *request, void *data)
{
    struct fetch *fetch = data;
    (void)request;
    if (fetch->upload && !fetch->piece_gated)
        cn_stream_want(fetch->upload);
}

/* --- the exchange ---------------------------------------------------------------------------- */

static void begin(struct fetch *fetch);

static void drop_header(struct fetch *fetch, size_t index)
{
    cn_free((char *)fetch->headers[index].name);
    cn_free((char *)fetch->headers[index].value);
    memmove(&fetch->headers[index], &fetch->headers[index + 1],
            (--fetch->header_count - index) * sizeof(fetch->headers[0]));
}

/* X3: makes another request of this one. Negative: `err` says why not. */
static int follow(struct fetch *fetch, int status, const char *location, struct cn_err *err)
{
    struct cn_redirect redirect;
    if (fetch->redirect == CAIRN_REDIRECT_ERROR)
        return cn_err_set(err, CN_EABORTED,
                          "The request was redirected to %.200s, and its redirect mode is "
                          "\"error\".",
                          location);
    if (fetch->redirects == CN_REDIRECTS_MAX)
        return cn_err_set(err, CN_ELIMIT, "Too many redirects: more than %d.", CN_REDIRECTS_MAX);
    if (status != 303 && fetch->writer)
        return cn_err_set(err, CN_EABORTED,
                          "A request with a body that is a stream was redirected, and the body "
                          "cannot be sent again.");
    int rc = cn_redirect_read(status, fetch->method, fetch->url, location, &redirect, err);
    if (rc < 0)
        return rc;
    fetch->redirects++;
    cn_free(fetch->url);
    fetch->url = redirect.url;
    for (size_t i = fetch->header_count; i-- > 0;) {
        if (!cn_redirect_keeps(&redirect, fetch->headers[i].name))
            drop_header(fetch, i);
    }
    if (redirect.becomes_get) {
        cn_free(fetch->method);
        fetch->method = cn_strdup("GET");
        cn_free(fetch->body);
        fetch->body = NULL;
        leave_upload(fetch);
        fetch->writer = NULL;
    }
    return 0;
}

static const char *location_of(const struct cn_client_head *head)
{
    for (size_t i = 0; i < head->header_count; i++) {
        if (strcasecmp(head->headers[i].name, "location") == 0)
            return head->headers[i].value;
    }
    return NULL;
}

static void on_head(struct cn_client_request *request, const struct cn_client_head *head,
                    void *data)
{
    struct fetch *fetch = data;
    const char *location = cn_redirect_is(head->status) ? location_of(head) : NULL;
    cairn_object *self = fetch->base.self;
    if (location && fetch->redirect != CAIRN_REDIRECT_MANUAL) {
        fetch->follows = follow(fetch, head->status, location, &fetch->failure) == 0;
        cn_client_discard(request);
        return;
    }
    build_head(fetch, head);
    if (!fetch->streamed || !self)
        return;
    fetch->download = cn_stream_from(self, &source, fetch);
    if (!fetch->download) {
        cn_err_set(&fetch->failure, CN_ELIMIT, "%s", cn_api_error_text(self));
        cn_client_abort(request);
        return;
    }
    tell(fetch, NULL);
}

static void on_body(struct cn_client_request *request, const void *bytes, size_t size, void *data)
{
    struct fetch *fetch = data;
    if (fetch->failure.code || (fetch->streamed && !fetch->download))
        return;
    if (fetch->taken) {
        cn_buf_clear(&fetch->received);
        fetch->taken = false;
    }
    bool fits = fetch->streamed ||
                (size <= fetch->response_max && fetch->received.size <= fetch->response_max - size);
    if (!fits || !cn_buf_try_append(&fetch->received, bytes, size)) {
        cn_err_set(&fetch->failure, CN_ELIMIT,
                   "the body of the response is larger than the request allows"); /* X2 */
        cn_client_abort(request);
        return;
    }
    if (!fetch->streamed)
        return;
    if (fetch->received.size >= INPUT_HIGH && !fetch->paused) {
        fetch->paused = true;
        cn_client_pause(request);
    }
    cn_stream_ready(fetch->download);
}

static void finish(struct fetch *fetch, const struct cn_err *error)
{
    if (error && !fetch->failure.code)
        fetch->failure = *error;
    fetch->over = true;
    fetch->ending = true;
    leave_upload(fetch);
    if (!fetch->told)
        tell(fetch, fetch->failure.code ? fetch->failure.text : NULL);
    else if (fetch->download)
        cn_stream_ready(fetch->download);
    fetch->ending = false;
    free_if_over(fetch);
}

static void on_done(struct cn_client_request *request, const struct cn_err *error, void *data)
{
    struct fetch *fetch = data;
    (void)request;
    fetch->request = NULL;
    if (fetch->follows && fetch->base.self) {
        fetch->follows = false;
        begin(fetch);
        return;
    }
    /* One that is not wanted any more ends by being cut. */
    finish(fetch, fetch->told && !fetch->download ? NULL : error);
}

static const struct cn_client_callbacks callbacks = {
    .on_head = on_head, .on_body = on_body, .on_want = on_want, .on_done = on_done};

static uint64_t length_of(const struct fetch *fetch)
{
    for (size_t i = 0; i < fetch->header_count; i++) {
        const char *value = fetch->headers[i].value;
        if (strcasecmp(fetch->headers[i].name, "content-length") == 0 && *value &&
            value[strspn(value, "0123456789")] == '\0')
            return strtoull(value, NULL, 10);
    }
    return CN_CLIENT_LENGTH_UNKNOWN;
}

/* fetch() of JavaScript says of such requests that their body is empty. */
static bool has_body(const struct fetch *fetch)
{
    return fetch->body || strcmp(fetch->method, "POST") == 0 || strcmp(fetch->method, "PUT") == 0 ||
           strcmp(fetch->method, "PATCH") == 0;
}

static void start(struct fetch *fetch, const struct cn_err *gate_err)
{
    struct cn_err err;
    uint64_t now = uv_now(fetch->loop);
    fetch->gated = false;
    if (gate_err) {
        finish(fetch, gate_err);
        return;
    }
    if (fetch->deadline_ms && fetch->deadline_ms <= now) {
        cn_err_set(&err, CN_ETIMEOUT, "the request took longer than it was given");
        finish(fetch, &err);
        return;
    }
    struct cn_client_params params = {
        .method = fetch->method,
        .url = fetch->url,
        .headers = fetch->headers,
        .header_count = fetch->header_count,
        .body_kind = fetch->upload     ? CN_CLIENT_BODY_STREAM
                     : has_body(fetch) ? CN_CLIENT_BODY_BYTES
                                       : CN_CLIENT_BODY_NONE,
        .body = fetch->body ? (const void *)fetch->body : "",
        .body_size = fetch->body_size,
        .body_length = length_of(fetch),
        .accept_encoding = true,
        .decode = true,
        .total_timeout_ms = fetch->deadline_ms ? (unsigned)(fetch->deadline_ms - now) : 0,
    };
    if (!fetch->body)
        params.body_size = 0;
    fetch->request = cn_client_fetch(fetch->client, &params, &callbacks, fetch, &err);
    if (!fetch->request)
        finish(fetch, &err);
}

/* The gate has opened. */
static void on_open(struct cn_output *output, const struct cn_err *gate_err)
{
    start(CN_CONTAINER_OF(output, struct fetch, output), gate_err);
}

static void on_soon(void *data)
{
    struct fetch *fetch = data;
    fetch->soon = NULL;
    start(fetch, NULL);
}

/* From within a turn, or from the loop. */
static void begin(struct fetch *fetch)
{
    cairn_object *self = fetch->base.self;
    fetch->gated = true;
    if (!self->object) {
        fetch->soon = cn_soon_start(fetch->loop, on_soon, fetch);
        return;
    }
    cn_object_enter(self->object);
    cn_object_output(self->object, &fetch->output, on_open); /* X1 */
    cn_object_leave(self->object);
}

/* The object goes: nobody wants the answer. */
static void fetch_dropped(struct cn_pending *pending)
{
    struct fetch *fetch = CN_CONTAINER_OF(pending, struct fetch, base);
    fetch->told = true;
    if (fetch->request) {
        cn_client_abort(fetch->request);
        return;
    }
    if (fetch->soon) {
        cn_soon_stop(fetch->soon);
        fetch->soon = NULL;
        fetch->gated = false;
        free_if_over(fetch); /* or when its upload, which goes too, ends */
    }
}

/* --- asking ---------------------------------------------------------------------------------- */

static void add_header(struct fetch *fetch, const char *name, const char *value)
{
    fetch->headers[fetch->header_count++] =
        (struct cn_client_header){cn_strdup(name), cn_strdup(value), strlen(name), strlen(value)};
}

/* X4 */
static int add_loop(cairn_object *self, struct fetch *fetch)
{
    char loop[40];
    if (self->object)
        return 0;
    if (self->loops >= LOOPS_MAX)
        return cn_compiled_refuse(self, CAIRN_ELIMIT,
                                  "the worker has asked for itself 16 times in a row: it is in a "
                                  "loop");
    snprintf(loop, sizeof(loop), LOOP_MARK "%u", self->loops + 1);
    add_header(fetch, "cdn-loop", loop);
    return 0;
}

/* What the client writes itself. */
static bool is_sent(const cairn_object *self, const char *name)
{
    static const char *const not [] = {"host", "transfer-encoding", "connection", "keep-alive",
                                       "upgrade"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(not ); i++) {
        if (strcasecmp(name, not [i]) == 0)
            return false;
    }
    return self->object || strcasecmp(name, "cdn-loop") != 0;
}

static struct fetch *make_fetch(cairn_object *self, const struct cairn_request *request)
{
    struct fetch *fetch = CN_NEW(struct fetch);
    cn_builder_init(&fetch->result, 64u << 20);
    fetch->client = self->host->client;
    fetch->loop = cn_pending_loop(self);
    fetch->method = cn_strdup(request->method);
    fetch->url = cn_strdup(request->url);
    for (const char *const *at = request->headers; at && at[0]; at += 2) {
        if (is_sent(self, at[0]))
            add_header(fetch, at[0], at[1]);
    }
    if (request->body) {
        fetch->body =
            request->body_size ? cn_memdup(request->body, request->body_size) : cn_alloc(1);
        fetch->body_size = request->body_size;
    }
    fetch->response_max = request->response_max;
    if (request->timeout > 0 && request->timeout < 86400000)
        fetch->deadline_ms = uv_now(fetch->loop) + (uint64_t)request->timeout;
    fetch->redirect = request->redirect;
    fetch->streamed = request->streamed != 0;
    fetch->base.dropped = fetch_dropped;
    return fetch;
}

int cn_api_http_fetch(cairn_object *self, const struct cairn_request *given, cairn_done done,
                      void *data)
{
    struct cairn_request request;
    int rc = cn_request_read(self, given, &request);
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
    if (request.stream) {
        fetch->upload = request.stream;
        fetch->writer = self;
        cn_stream_sink(request.stream, &sink, fetch);
    }
    cn_pending_start(&fetch->base, self, done, data);
    begin(fetch);
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
