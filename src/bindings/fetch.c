/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/fetch.c - outgoing HTTP for the prelude's fetch() (prelude/web/fetch/fetch.js).
 *
 * One fetch is one exchange: redirects are followed above. JavaScript holds an
 * number (base/handles.h); everything that happens later arrives through the one
 * callback it gave:
 *
 *     callback(FETCH_HEAD, status, reason, "name\nvalue\n...")   once
 *     callback(FETCH_DATA, chunk | null)                         for a read that had to wait
 *     callback(FETCH_WANT)                                       the upload may go on
 *     callback(FETCH_FAILED, text)                               instead of FETCH_HEAD, or of DATA
 *
 * F1  Received bytes wait in `in`, INPUT_HIGH of them at most: then the request is
 *     paused until JavaScript has taken them.
 * F2  Between the head and the first read a request whose body has a content coding is
 *     paused, so that the reader decides whether it is decoded or goes on as it came.
 *     Others are received ahead: a short answer that nobody reads holds no connection.
 * F3  A fetch lives until its request is over (on_done) and its handle is closed:
 *     by the read that delivers the end, by fetchClose(), or with the runtime.
 * F4  No callback runs after the handle was closed.
 * F5  Bytes of a head are characters of the same number, in both directions, as in requests
 *     that come in (http.c): a header that is passed on arrives as it was.
 *
 * F6  A worker that asks for its own host again and again ends: such a request says in CDN-Loop
 *     (RFC 8586) how many came before it, and past LOOPS_MAX it fails.
 *
 * Threads: the lane's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "border/fetch.h"
#include "js/engine/alloc.h"
#include "js/native.h"
#include "net/client.h"
#include "net/server.h"
#include "worker/event.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/runtime.h"

#define FETCHES_MAX 4096
#define HEADERS_MAX 512
#define LOOPS_MAX 16 /* F6 */
#define LOOP_MARK "cairn; loops="
#define LOOP_TEXT_SIZE 40
#define INPUT_HIGH (256 * 1024)
#define OUTPUT_HIGH (128 * 1024)

_Static_assert(FETCHES_MAX < CN_HANDLES_MAX, "each has a number");

struct fetch {
    struct cn_operation operation;
    struct cn_runtime *runtime;        /* NULL once the handle is closed */
    struct cn_client_request *request; /* NULL once it is over */
    struct cn_js_pin callback;
    struct cn_buf in; /* received, not yet read (F1) */
    size_t unsent;    /* written since the last on_want */
    uint64_t handle;
    struct cn_js_holding holding; /* F3: of the request, which is over first */
    bool head_seen, started;      /* started: the body may come (F2) */
    bool paused;
    bool reading; /* JavaScript waits for DATA */
    bool telling; /* on_done is calling JavaScript, which may close the handle */
    bool failed;
    struct cn_err error; /* if failed */
};

static struct fetch *fetch_find(JSContextRef ctx, JSValueRef value)
{
    return cn_handles_find(&cn_runtime_of(ctx)->fetches, cn_js_to_number(ctx, value));
}

static void fetch_free_if_over(struct fetch *fetch)
{
    if (fetch->runtime || fetch->request || fetch->telling)
        return;
    cn_buf_fini(&fetch->in);
    cn_js_holding_end(&fetch->holding);
    cn_free(fetch);
}

/* JavaScript is done with it: nothing is delivered any more (F4). `keep`: what is left of the
 * body may be skipped to keep the connection, instead of cutting it. */
static void handle_close(struct fetch *fetch, bool keep)
{
    struct cn_runtime *runtime = fetch->runtime;
    if (!runtime)
        return;
    cn_handles_remove(&runtime->fetches, fetch->handle);
    cn_operation_end(&fetch->operation);
    cn_js_pin_clear(&fetch->callback);
    fetch->runtime = NULL;
    if (fetch->request && keep && fetch->head_seen)
        cn_client_discard(fetch->request);
    else if (fetch->request)
        cn_client_abort(fetch->request);
    fetch_free_if_over(fetch);
}

static void on_cancel(struct cn_operation *operation)
{
    handle_close(CN_CONTAINER_OF(operation, struct fetch, operation), false);
}

/* Calls the callback as a turn of its own. The fetch may be gone afterwards. */
static void tell(struct fetch *fetch, int what, size_t argc, const JSValueRef *values)
{
    struct cn_js_context *context = fetch->runtime->context;
    JSValueRef argv[4] = {JSValueMakeNumber(context->ref, what)};
    CN_ASSERT(argc < CN_ARRAY_COUNT(argv));
    for (size_t i = 0; i < argc; i++)
        argv[i + 1] = values[i];
    /* The prelude's function throws nothing. */
    cn_js_invoke(context->ref, fetch->callback.value, argc + 1, argv, NULL);
}

static JSValueRef take_input(struct fetch *fetch, JSContextRef ctx)
{
    size_t size = fetch->in.size;
    uint8_t *bytes = cn_buf_take(&fetch->in);
    JSValueRef chunk = cn_js_uint8array_take(ctx, bytes, size);
    if (fetch->paused && fetch->request) {
        fetch->paused = false;
        cn_client_resume(fetch->request);
    }
    return chunk;
}

static void append_lower(struct cn_buf *out, const char *text, size_t size)
{
    cn_buf_reserve(out, size);
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        out->data[out->size++] = (uint8_t)(c >= 'A' && c <= 'Z' ? c | 32 : c);
    }
}

static void on_head(struct cn_client_request *request, const struct cn_client_head *head,
                    void *data)
{
    struct fetch *fetch = data;
    if (!fetch->runtime)
        return;
    fetch->head_seen = true;
    fetch->started = true;
    struct cn_buf block = {0};
    for (size_t i = 0; i < head->header_count; i++) {
        const struct cn_client_header *header = &head->headers[i];
        if (header->name_length == 16 && !strncasecmp(header->name, "content-encoding", 16))
            fetch->started = false;
        append_lower(&block, header->name, header->name_length);
        cn_buf_append_byte(&block, '\n');
        cn_buf_append(&block, header->value, header->value_length);
        cn_buf_append_byte(&block, '\n');
    }
    if (!fetch->started) {
        fetch->paused = true;
        cn_client_pause(request);
    }
    struct cn_js_context *context = fetch->runtime->context;
    if (!cn_js_enter_pin(&fetch->callback)) {
        cn_buf_fini(&block);
        handle_close(fetch, false); /* whoever asked is gone */
        return;
    }
    /* Fetch has bytes of a head as characters of the same number: Latin-1 (F5). */
    JSValueRef values[] = {
        JSValueMakeNumber(context->ref, head->status),
        cn_js_latin1(context->ref, (const uint8_t *)head->reason, strlen(head->reason)),
        cn_js_latin1(context->ref, (const uint8_t *)cn_buf_text(&block), block.size),
    };
    cn_buf_fini(&block);
    tell(fetch, FETCH_HEAD, CN_ARRAY_COUNT(values), values);
    cn_js_leave(context);
}

static void on_body(struct cn_client_request *request, const void *bytes, size_t size, void *data)
{
    struct fetch *fetch = data;
    if (!fetch->runtime)
        return;
    cn_buf_append(&fetch->in, bytes, size);
    if (!fetch->reading) {
        if (fetch->in.size >= INPUT_HIGH && !fetch->paused) {
            fetch->paused = true;
            cn_client_pause(request);
        }
        return;
    }
    fetch->reading = false;
    struct cn_js_context *context = fetch->runtime->context;
    if (!cn_js_enter_pin(&fetch->callback)) {
        handle_close(fetch, false); /* whoever asked is gone */
        return;
    }
    JSValueRef chunk = take_input(fetch, context->ref);
    tell(fetch, FETCH_DATA, 1, &chunk);
    cn_js_leave(context);
}

static void on_want(struct cn_client_request *request, void *data)
{
    struct fetch *fetch = data;
    fetch->unsent = 0;
    if (!fetch->runtime)
        return;
    struct cn_js_context *context = fetch->runtime->context;
    if (!cn_js_enter_pin(&fetch->callback)) {
        handle_close(fetch, false); /* whoever asked is gone */
        return;
    }
    tell(fetch, FETCH_WANT, 0, NULL);
    cn_js_leave(context);
}

static void on_done(struct cn_client_request *request, const struct cn_err *error, void *data)
{
    struct fetch *fetch = data;
    fetch->request = NULL;
    if (!fetch->runtime) {
        fetch_free_if_over(fetch);
        return;
    }
    if (error) {
        fetch->failed = true;
        fetch->error = *error;
    }
    if (fetch->head_seen && !fetch->reading)
        return; /* the next read finds out */
    struct cn_js_context *context = fetch->runtime->context;
    if (!cn_js_enter_pin(&fetch->callback)) {
        handle_close(fetch, false); /* whoever asked is gone */
        return;
    }
    fetch->telling = true;
    if (fetch->failed) {
        JSValueRef text = cn_js_text_z(context->ref, fetch->error.text);
        tell(fetch, FETCH_FAILED, 1, &text);
    } else {
        JSValueRef end = JSValueMakeNull(context->ref);
        tell(fetch, FETCH_DATA, 1, &end);
    }
    fetch->telling = false;
    if (fetch->runtime)
        handle_close(fetch, false);
    else
        fetch_free_if_over(fetch);
    cn_js_leave(context);
}

static const struct cn_client_callbacks callbacks = {
    .on_head = on_head, .on_body = on_body, .on_want = on_want, .on_done = on_done};

/* Cuts "name\nvalue\n..." in place; returns the number of headers or -1. */
static int headers_split(char *block, size_t size, struct cn_client_header *headers)
{
    int count = 0;
    for (char *at = block, *end = block + size; at < end; count++) {
        if (count == HEADERS_MAX)
            return -1;
        char *name_end = memchr(at, '\n', (size_t)(end - at));
        char *value = name_end ? name_end + 1 : end;
        char *value_end = memchr(value, '\n', (size_t)(end - value));
        if (!value_end)
            return -1;
        *name_end = *value_end = 0;
        headers[count] = (struct cn_client_header){.name = at,
                                                   .name_length = (size_t)(name_end - at),
                                                   .value = value,
                                                   .value_length = (size_t)(value_end - value)};
        at = value_end + 1;
    }
    return count;
}

static const struct cn_lane *lane_of(const struct cn_runtime *runtime)
{
    const struct cn_instance *instance = runtime->data;
    return instance ? instance->lane : NULL; /* without one: tests of the prelude alone */
}

/* If spans are exported, the request says which one it belongs to, unless the script says so
 * itself. Returns how many headers there are. */
static int add_parent(const struct cn_lane *lane, struct cn_client_header *headers, int count,
                      char text[56])
{
    if (!lane || !lane->options.exporter || !cn_js_cause(lane->vm).trace)
        return count;
    for (int i = 0; i < count; i++) {
        if (strcasecmp(headers[i].name, "traceparent") == 0)
            return count;
    }
    struct cn_origin origin = cn_lane_origin(lane);
    if (!origin.span)
        return count;
    snprintf(text, 56, "00-%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 "-01", origin.trace[0],
             origin.trace[1], origin.span);
    headers[count] = (struct cn_client_header){"traceparent", text, 11, 55};
    return count + 1;
}

/* How many requests of this server to itself led to this one. */
static unsigned loops_before(const struct cn_http_request *http)
{
    unsigned loops = 0;
    for (size_t i = 0; i < http->header_count; i++) {
        const struct cn_http_header *header = &http->headers[i];
        const size_t mark = sizeof(LOOP_MARK) - 1;
        if (header->name_size != 8 || memcmp(header->name, "cdn-loop", 8) != 0 ||
            header->value_size < mark || memcmp(header->value, LOOP_MARK, mark) != 0)
            continue;
        for (size_t k = mark; k < header->value_size && loops <= LOOPS_MAX; k++) {
            if (header->value[k] < '0' || header->value[k] > '9')
                break;
            loops = loops * 10 + (unsigned)(header->value[k] - '0');
        }
    }
    return loops;
}

/* Whether a URL ("scheme://host/...") has the host that the client asked for. */
static bool is_own_host(const char *url, const struct cn_http_request *http)
{
    const char *host = strstr(url, "://");
    return host && http->host.size &&
           strncasecmp(host + 3, http->host.data, http->host.size) == 0 &&
           strchr("/?#", host[3 + http->host.size]); /* or the end */
}

/* F6. Returns how many headers there are, or CN_ELIMIT. */
static int add_loop(const struct cn_lane *lane, const char *url, struct cn_client_header *headers,
                    int count, char text[LOOP_TEXT_SIZE], struct cn_err *err)
{
    const struct cn_event *event =
        lane ? cn_event_find(lane, (double)cn_js_cause(lane->vm).event) : NULL;
    const struct cn_http_request *http = event ? event->http : NULL;
    unsigned loops = http ? loops_before(http) : 0;
    if (!http || (loops == 0 && !is_own_host(url, http)))
        return count;
    if (loops >= LOOPS_MAX)
        return cn_err_set(err, CN_ELIMIT,
                          "the worker has asked for itself %u times in a row: it is in a loop",
                          LOOPS_MAX);
    int size = snprintf(text, LOOP_TEXT_SIZE, LOOP_MARK "%u", loops + 1);
    int at = 0;
    while (at < count && strcasecmp(headers[at].name, "cdn-loop") != 0)
        at++;
    headers[at] = (struct cn_client_header){"cdn-loop", text, 8, (size_t)size};
    return at == count ? count + 1 : count;
}

/* fetchStart(method, url, headers, body, length, callback) -> handle
 * headers "name\nvalue\n..."; body null, a string, a Uint8Array, or undefined for a stream of
 * `length` bytes (-1: unknown). Throws if it cannot start. */
static JSValueRef native_fetch_start(CN_JS_NATIVE_ARGS)
{
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    if (!runtime->client)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "there is no network here");
    if (runtime->fetches.live == FETCHES_MAX)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "too many fetches at once (%d)",
                           FETCHES_MAX);
    struct fetch *fetch = CN_NEW(struct fetch);
    JSValueRef body = cn_js_arg(3);
    double length = cn_js_to_number(ctx, cn_js_arg(4));
    char *method = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    char *url = cn_js_to_text(ctx, cn_js_arg(1), NULL);
    struct cn_buf text = {0}, block = {0};
    cn_js_append_latin1(ctx, cn_js_arg(2), &block); /* F5 */
    struct cn_client_header headers[HEADERS_MAX + 2];
    char parent[56], loop[LOOP_TEXT_SIZE];
    struct cn_client_params params = {.method = method,
                                      .url = url,
                                      .headers = headers,
                                      .accept_encoding = true,
                                      .decode = true,
                                      .holding = &fetch->holding.base};
    cn_js_holding_begin(&fetch->holding);
    if (JSValueIsUndefined(ctx, body)) {
        params.body_kind = CN_CLIENT_BODY_STREAM;
        params.body_length = length >= 0 ? (uint64_t)length : CN_CLIENT_LENGTH_UNKNOWN;
    } else if (JSValueIsString(ctx, body)) {
        cn_js_append_utf8(ctx, body, &text);
        params.body_kind = CN_CLIENT_BODY_BYTES;
        params.body = cn_buf_text(&text);
        params.body_size = text.size;
    } else if (!JSValueIsNull(ctx, body)) {
        uint8_t *bytes = NULL;
        if (!cn_js_bytes(ctx, body, &bytes, &params.body_size))
            params.body_size = 0; /* the prelude gives nothing else */
        params.body_kind = CN_CLIENT_BODY_BYTES;
        params.body = bytes ? bytes : (const uint8_t *)"";
    }
    struct cn_err err = {0};
    int count = headers_split((char *)block.data, block.size, headers);
    if (count < 0) {
        (void)cn_err_set(&err, CN_ELIMIT, "more than %d headers", HEADERS_MAX);
    } else {
        count = add_parent(lane_of(runtime), headers, count, parent);
        count = add_loop(lane_of(runtime), url, headers, count, loop, &err);
        params.header_count = count < 0 ? 0 : (size_t)count;
        if (count >= 0)
            fetch->request = cn_client_fetch(runtime->client, &params, &callbacks, fetch, &err);
    }
    cn_buf_fini(&text);
    cn_free(method);
    cn_free(url);
    cn_buf_fini(&block);
    if (!fetch->request) {
        cn_js_holding_end(&fetch->holding);
        cn_free(fetch);
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", err.text);
    }
    fetch->runtime = runtime;
    fetch->handle = cn_handles_add(&runtime->fetches, fetch);
    cn_js_pin_set(&fetch->callback, runtime->context, cn_js_arg(5));
    cn_operation_start(runtime, &fetch->operation, on_cancel);
    return JSValueMakeNumber(ctx, (double)fetch->handle);
}

/* fetchRead(handle, raw) -> Uint8Array | null at the end | undefined: callback(FETCH_DATA) follows.
 * Throws if the exchange failed. `raw`, in the first read: content codings stay as they came. */
static JSValueRef native_fetch_read(CN_JS_NATIVE_ARGS)
{
    struct fetch *fetch = fetch_find(ctx, cn_js_arg(0));
    if (!fetch)
        return JSValueMakeNull(ctx);
    if (!fetch->started && fetch->request) {
        fetch->started = true;
        cn_client_set_decode(fetch->request, !JSValueToBoolean(ctx, cn_js_arg(1)));
        fetch->paused = false;
        cn_client_resume(fetch->request);
    }
    if (fetch->in.size)
        return take_input(fetch, ctx);
    if (fetch->request) {
        fetch->reading = true;
        return JSValueMakeUndefined(ctx);
    }
    JSValueRef result = JSValueMakeNull(ctx);
    if (fetch->failed)
        result = cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", fetch->error.text);
    handle_close(fetch, false);
    return result;
}

/* fetchWrite(handle, bytes) -> 1 go on, 0 wait for callback(FETCH_WANT), -1 nobody takes it any
 * more */
static JSValueRef native_fetch_write(CN_JS_NATIVE_ARGS)
{
    struct fetch *fetch = fetch_find(ctx, cn_js_arg(0));
    uint8_t *bytes;
    size_t size;
    if (!fetch || !fetch->request)
        return JSValueMakeNumber(ctx, -1);
    if (!cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "fetchWrite: not a buffer");
    struct cn_err err;
    int rc = cn_client_write(fetch->request, bytes, size, &err);
    if (rc == CN_ECLOSED)
        return JSValueMakeNumber(ctx, -1);
    if (rc < 0)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", err.text);
    fetch->unsent += size;
    return JSValueMakeNumber(ctx, fetch->unsent < OUTPUT_HIGH);
}

/* fetchEnd(handle): the upload is complete. */
static JSValueRef native_fetch_end(CN_JS_NATIVE_ARGS)
{
    struct fetch *fetch = fetch_find(ctx, cn_js_arg(0));
    if (fetch && fetch->request)
        cn_client_end(fetch->request);
    return JSValueMakeUndefined(ctx);
}

/* fetchClose(handle, keep): nothing more is wanted. `keep`: the rest of the body is read and
 * thrown away if it is short, so that the connection can be used again. */
static JSValueRef native_fetch_close(CN_JS_NATIVE_ARGS)
{
    struct fetch *fetch = fetch_find(ctx, cn_js_arg(0));
    if (fetch)
        handle_close(fetch, JSValueToBoolean(ctx, cn_js_arg(1)));
    return JSValueMakeUndefined(ctx);
}
