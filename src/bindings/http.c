/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/http.c - the request and the response of a fetch event.
 *
 * JavaScript names an event by its handle (worker/event.h). A handle whose event
 * is over is no mistake of the script: reads then give null or end, writes
 * give false. */
#include "bindings/http.h"

#include <stdio.h>
#include <string.h>

#include "base/account.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "border/http.h"
#include "js/native.h"
#include "net/server.h"
#include "worker/address.h"
#include "worker/dispatch.h"
#include "worker/event.h"
#include "worker/event_life.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/runtime.h"
#include "worker/websocket.h"

#define HEADERS_MAX 256
#define NO_MEMORY "There is no memory for the request body"
/* What a Content-Length is believed before its bytes have come. */
#define BODY_RESERVE_MAX (1u << 20)

static struct cn_instance *instance_of(JSContextRef ctx)
{
    return cn_runtime_of(ctx)->data;
}

/* An event of the script that asks: another's number says nothing to it. */
static struct cn_event *event_of(JSContextRef ctx, JSValueRef handle)
{
    struct cn_instance *instance = instance_of(ctx);
    struct cn_event *event = cn_event_find(instance->lane, cn_js_to_number(ctx, handle));
    return event && event->instance == instance ? event : NULL;
}

/* One that has come by HTTP; NULL for others too. */
static struct cn_event *request_event(JSContextRef ctx, JSValueRef handle)
{
    struct cn_event *event = event_of(ctx, handle);
    return event && event->http ? event : NULL;
}

static JSValueRef http_text(JSContextRef ctx, struct cn_http_text text)
{
    return cn_js_text(ctx, text.data, text.size);
}

/* requestMethod(h) -> string */
static JSValueRef native_request_method(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return cn_js_text_z(ctx, "GET");
    return http_text(ctx, event->http->method_text);
}

/* requestUrl(h) -> string, not yet normalised by the URL parser */
static JSValueRef native_request_url(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return cn_js_text_z(ctx, "http://invalid/");
    struct cn_buf url = {0};
    cn_http_request_url(event->http, &url);
    JSValueRef value = cn_js_text(ctx, (char *)url.data, url.size);
    cn_buf_fini(&url);
    return value;
}

/* --- headers (A1 of worker/address.h) -------------------------------------------------------- */

static bool is_address_header(const struct cn_http_header *header)
{
    return header->name_size == sizeof(CN_ADDRESS_HEADER) - 1 &&
           memcmp(header->name, CN_ADDRESS_HEADER, header->name_size) == 0;
}

/* requestHeaders(h) -> "name\nvalue\nname\nvalue\n"; values as Latin-1, as Fetch has them */
static JSValueRef native_request_headers(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return cn_js_text_z(ctx, "");
    struct cn_buf out = {0};
    for (size_t i = 0; i < event->http->header_count; i++) {
        const struct cn_http_header *header = &event->http->headers[i];
        if (is_address_header(header))
            continue;
        cn_buf_append(&out, header->name, header->name_size);
        cn_buf_append_byte(&out, '\n');
        cn_buf_append(&out, header->value, header->value_size);
        cn_buf_append_byte(&out, '\n');
    }
    char address[CN_ADDRESS_SIZE];
    if (cn_event_address(event, address)) {
        cn_buf_append_str(&out, CN_ADDRESS_HEADER "\n");
        cn_buf_append_str(&out, address);
        cn_buf_append_byte(&out, '\n');
    }
    JSValueRef value = cn_js_latin1(ctx, out.data ? out.data : (uint8_t *)"", out.size);
    cn_buf_fini(&out);
    return value;
}

/* requestHeader(h, name) -> string or null; `name` is lower-case */
static JSValueRef native_request_header(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeNull(ctx);
    struct cn_buf name = {0}, value = {0};
    cn_js_append_utf8(ctx, cn_js_arg(1), &name);
    if (strcmp(cn_buf_text(&name), CN_ADDRESS_HEADER) == 0) {
        char address[CN_ADDRESS_SIZE];
        cn_buf_fini(&name);
        return cn_event_address(event, address) ? cn_js_text_z(ctx, address) : JSValueMakeNull(ctx);
    }
    const struct cn_http_header *first = NULL;
    size_t found = 0;
    for (size_t i = 0; i < event->http->header_count; i++) {
        const struct cn_http_header *header = &event->http->headers[i];
        if (header->name_size != name.size || memcmp(header->name, name.data, name.size) != 0)
            continue;
        if (!found++) {
            first = header;
            continue;
        }
        if (found == 2)
            cn_buf_append(&value, first->value, first->value_size);
        cn_buf_append_str(&value, strcmp(cn_buf_text(&name), "cookie") == 0 ? "; " : ", ");
        cn_buf_append(&value, header->value, header->value_size);
    }
    JSValueRef result = !found ? JSValueMakeNull(ctx)
                        : found == 1
                            ? cn_js_latin1(ctx, (const uint8_t *)first->value, first->value_size)
                            : cn_js_latin1(ctx, value.data, value.size);
    cn_buf_fini(&name);
    cn_buf_fini(&value);
    return result;
}

/* requestHasBody(h) -> boolean */
static JSValueRef native_request_has_body(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeBoolean(ctx, false);
    return JSValueMakeBoolean(ctx, event->http->content_length != 0);
}

/* The whole body if it has all arrived. False: some is missing (nothing is lost: what was
 * taken is in `event->early`, which the next read gives first). */
static bool take_whole(struct cn_event *event, struct cn_buf *out)
{
    struct cn_http_request *http = event->http;
    if (!out->size && http->content_length > 0)
        cn_buf_reserve(out, (size_t)http->content_length < BODY_RESERVE_MAX
                                ? (size_t)http->content_length
                                : BODY_RESERVE_MAX);
    for (;;) {
        if (cn_http_request_body_done(http))
            return true;
        const uint8_t *bytes;
        size_t size;
        int rc = cn_http_request_read(http, &bytes, &size, NULL);
        if (rc == CN_HTTP_READ_END)
            return true;
        if (rc != CN_HTTP_READ_DATA)
            return false;
        cn_buf_append(out, bytes, size);
    }
}

static JSValueRef early_value(JSContextRef ctx, struct cn_event *event, bool as_text);

/* Calls whoever waits for the body: with what was collected, a chunk, the end, or a failure. */
static void call_reader(struct cn_event *event, JSValueRef value, int status)
{
    struct cn_js_context *context = event->read.context;
    struct cn_js_pin function;
    cn_js_pin_set(&function, context, event->read.value);
    cn_js_pin_clear(&event->read);
    event->collect = CN_COLLECT_NOTHING;
    JSValueRef argv[2] = {value, JSValueMakeUndefined(context->ref)};
    if (status < 0)
        argv[1] =
            cn_js_text_z(context->ref, status == CN_ELIMIT        ? "The request body is too large"
                                       : status == CN_EOVERLOADED ? NO_MEMORY
                                                                  : "The request body ended early");
    struct cn_err err;
    (void)cn_instance_enter(event->instance, &function, 2, argv, &err); /* it reports itself */
    cn_js_pin_clear(&function);
}

static void finish_read(struct cn_event *event, int status)
{
    struct cn_js_context *context = event->read.context;
    cn_event_gathered(event); /* it becomes the script's */
    cn_js_enter_cause(context, &event->read.cause);
    call_reader(event, early_value(context->ref, event, event->collect == CN_COLLECT_TEXT), status);
    cn_js_leave(context);
}

static void on_body(struct cn_http_request *http, int status, const uint8_t *bytes, size_t size)
{
    struct cn_event *event = http->data;
    if (!event || !event->read.context)
        return;
    struct cn_js_context *context = event->read.context;
    cn_js_enter_cause(context, &event->read.cause);
    call_reader(event,
                status == CN_HTTP_READ_DATA ? cn_js_uint8array(context->ref, bytes, size)
                                            : JSValueMakeNull(context->ref),
                status);
    cn_js_leave(context);
}

/* E4 */
static bool may_read(JSContextRef ctx, const struct cn_event *event, JSValueRef *exception)
{
    const char *problem = cn_event_is_read(event) ? "a read of this body is pending"
                          : event->body_lost      ? NO_MEMORY
                                                  : NULL;
    if (problem)
        cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "%s", problem);
    return !problem;
}

/* requestRead(h, callback) -> Uint8Array now | null at the end | undefined: callback later */
static JSValueRef native_request_read(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeNull(ctx);
    if (!may_read(ctx, event, exception))
        return JSValueMakeUndefined(ctx);
    if (event->early.size) {
        size_t size = event->early.size;
        return cn_js_uint8array_take(ctx, cn_buf_take(&event->early), size);
    }
    const uint8_t *bytes;
    size_t size;
    int rc = cn_http_request_read(event->http, &bytes, &size, on_body);
    if (rc == CN_HTTP_READ_DATA)
        return cn_js_uint8array(ctx, bytes, size);
    if (rc == CN_HTTP_READ_END)
        return JSValueMakeNull(ctx);
    if (rc < 0)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "The client disconnected");
    cn_js_pin_set(&event->read, cn_js_context_of(ctx), cn_js_arg(1));
    return JSValueMakeUndefined(ctx);
}

/* What has gathered in `event->early`, as text (without a byte order mark) or bytes. */
static JSValueRef early_value(JSContextRef ctx, struct cn_event *event, bool as_text)
{
    size_t size = event->early.size;
    if (!as_text) {
        uint8_t *data = cn_buf_take(&event->early);
        return cn_js_uint8array_take(ctx, data ? data : cn_alloc(1), size);
    }
    const char *text = event->early.data ? (const char *)event->early.data : "";
    size_t skip = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    JSValueRef value = cn_js_text(ctx, text + skip, size - skip);
    cn_buf_fini(&event->early);
    return value;
}

static JSValueRef whole_or_undefined(JSContextRef ctx, struct cn_event *event, bool as_text)
{
    if (cn_event_is_read(event) || event->body_lost || !take_whole(event, &event->early))
        return JSValueMakeUndefined(ctx);
    return early_value(ctx, event, as_text);
}

/* requestBytes(h) -> Uint8Array of the whole body, or undefined if some has yet to arrive */
static JSValueRef native_request_bytes(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeUndefined(ctx);
    return whole_or_undefined(ctx, event, false);
}

/* requestText(h) -> string, or undefined; a byte order mark is dropped */
static JSValueRef native_request_text(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeUndefined(ctx);
    return whole_or_undefined(ctx, event, true);
}

/* Memory is short, and the body would take more: the client is told at once, the script after it.
 */
static void give_up_body(struct cn_event *event)
{
    static const char text[] = "the server is short of memory; the request body was not taken";
    struct cn_lane *lane = event->instance->lane;
    uint64_t handle = event->handle;
    cn_account_relieved(CN_ACCOUNT_RELIEVE_BODIES, 1);
    cn_buf_fini(&event->early);
    cn_event_gathered(event);
    event->body_lost = true;
    cn_http_request_read_stop(event->http);
    if (cn_event_is_running(event))
        cn_event_fail(event, 503, text, sizeof(text) - 1);
    event = cn_event_find(lane, (double)handle);
    if (event && event->read.context)
        finish_read(event, CN_EOVERLOADED);
}

/* Adds to what has been taken of the body. False: there is no memory for it. */
static bool gather(struct cn_event *event, const uint8_t *bytes, size_t size)
{
    if (!cn_account_take(CN_ACCOUNT_BODIES, size))
        return false;
    event->gathered += size;
    cn_buf_append(&event->early, bytes, size);
    return true;
}

static void on_collect(struct cn_http_request *http, int status, const uint8_t *bytes, size_t size)
{
    struct cn_event *event = http->data;
    if (!event || !event->read.context)
        return;
    for (;;) {
        if (status != CN_HTTP_READ_DATA)
            break;
        if (!gather(event, bytes, size)) {
            give_up_body(event);
            return;
        }
        status = cn_http_request_read(http, &bytes, &size, on_collect);
        if (status == CN_HTTP_READ_PENDING)
            return;
    }
    finish_read(event, status);
}

/* requestCollect(h, asText, callback): all of the body, once it is there; the callback gets
 * (value) or (undefined, failure). */
static JSValueRef native_request_collect(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeUndefined(ctx);
    if (!may_read(ctx, event, exception))
        return JSValueMakeUndefined(ctx);
    cn_js_pin_set(&event->read, cn_js_context_of(ctx), cn_js_arg(2));
    event->give_up = give_up_body;
    event->collect = JSValueToBoolean(ctx, cn_js_arg(1)) ? CN_COLLECT_TEXT : CN_COLLECT_BYTES;
    const uint8_t *bytes = NULL;
    size_t size = 0;
    int rc = cn_http_request_read(event->http, &bytes, &size, on_collect);
    if (rc != CN_HTTP_READ_PENDING)
        on_collect(event->http, rc, bytes, size);
    return JSValueMakeUndefined(ctx);
}

/* onAbort(h, callback): called once if the client goes away */
static JSValueRef native_on_abort(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeBoolean(ctx, false);
    if (cn_event_is_canceled(event))
        return JSValueMakeBoolean(ctx, true);
    cn_js_pin_clear(&event->abort);
    cn_js_pin_set(&event->abort, cn_js_context_of(ctx), cn_js_arg(1));
    cn_js_pin_set_passive(&event->abort);
    return JSValueMakeBoolean(ctx, false);
}

/* --- the response ---------------------------------------------------------------------------- */

static const struct cn_http_header header_sets[][1] = {
    {{0}},
    {{"content-type", "text/plain;charset=UTF-8", 12, 24}},
    {{"content-type", "application/json", 12, 16}},
};

struct head {
    struct cn_http_head head;
    struct cn_buf reason; /* with a NUL; empty: the usual one */
    struct cn_buf text;   /* the block the headers point into */
    struct cn_http_header headers[HEADERS_MAX];
};

/* Splits "name: value\r\n..." in place. head_fini() must follow, whatever is returned. */
static bool head_parse(JSContextRef ctx, struct head *head, JSValueRef status, JSValueRef reason,
                       JSValueRef block)
{
    head->reason = (struct cn_buf){0};
    head->text = (struct cn_buf){0};
    head->head = (struct cn_http_head){.status = cn_js_to_int32(ctx, status)};
    if (JSValueIsString(ctx, reason)) {
        cn_js_append_latin1(ctx, reason, &head->reason);
        head->head.reason = cn_buf_text(&head->reason);
    }
    if (JSValueIsNumber(ctx, block)) {
        size_t set = cn_js_to_uint64(ctx, block);
        if (set < CN_ARRAY_COUNT(header_sets)) {
            head->head.headers = header_sets[set];
            head->head.header_count = set ? 1 : 0;
        }
        return true;
    }
    cn_js_append_latin1(ctx, block, &head->text);
    const char *at = (const char *)head->text.data;
    const char *end = at + head->text.size;
    size_t count = 0;
    while (at < end) {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        const char *line_end = memchr(at, '\r', (size_t)(end - at));
        if (!colon || !line_end || colon > line_end || count == HEADERS_MAX)
            return false;
        const char *value = colon + 2; /* ": " */
        if (value > line_end)
            value = line_end;
        head->headers[count++] = (struct cn_http_header){at, value, (uint32_t)(colon - at),
                                                         (uint32_t)(line_end - value)};
        at = line_end + 2;
    }
    head->head.headers = head->headers;
    head->head.header_count = count;
    return true;
}

static void head_fini(struct head *head)
{
    cn_buf_fini(&head->reason);
    cn_buf_fini(&head->text);
}

static JSValueRef bad_response(JSContextRef ctx, JSValueRef *exception, struct head *head, int rc)
{
    head_fini(head);
    if (rc == CN_ECLOSED)
        return JSValueMakeBoolean(ctx, false);
    return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR,
                       "The response has a status or header that cannot be sent");
}

#define LARGE_BODY 65536

static void release_string(void *string)
{
    JSStringRelease(string);
}

/* Sends text. ASCII goes from where JavaScript keeps it. */
static int respond_text(JSContextRef ctx, struct cn_event *event, const struct cn_http_head *head,
                        JSValueRef body)
{
    const uint8_t *text;
    size_t size;
    JSStringRef string = cn_js_ascii(ctx, body, &text, &size);
    if (string)
        return cn_http_respond(event->http, head, text, size, release_string, string);
    struct cn_buf *out = &instance_of(ctx)->lane->scratch;
    cn_buf_clear(out);
    cn_js_append_utf8(ctx, body, out);
    size = out->size;
    if (size <= LARGE_BODY)
        return cn_http_respond(event->http, head, out->data, size, NULL, NULL);
    void *bytes = cn_buf_take(out);
    return cn_http_respond(event->http, head, bytes, size, cn_free, bytes);
}

/* Sends bytes, or nothing if `body` is null. The prelude gives bytes that no script can change
 * any more, so many of them are not copied. */
static int respond_bytes(JSContextRef ctx, struct cn_event *event, const struct cn_http_head *head,
                         JSValueRef body)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    (void)cn_js_bytes(ctx, body, &bytes, &size); /* null: no body */
    if (size <= LARGE_BODY)
        return cn_http_respond(event->http, head, bytes, size, NULL, NULL);
    /* The client may read long after the context is gone: X3 of js/context.h. */
    return cn_http_respond(event->http, head, bytes, size, cn_js_loan_return,
                           cn_js_lend(ctx, body));
}

/* The event that may be answered now, and the head of its response: handle, status, statusText and
 * headers are the first four arguments. NULL, or what the native gives back instead. */
static JSValueRef response_begin(JSContextRef ctx, size_t argc, const JSValueRef argv[],
                                 struct cn_event **event, struct head *head, JSValueRef *exception)
{
    *event = request_event(ctx, cn_js_arg(0));
    if (!*event || !cn_event_is_running(*event))
        return JSValueMakeBoolean(ctx, false);
    if (!head_parse(ctx, head, cn_js_arg(1), cn_js_arg(2), cn_js_arg(3)))
        return bad_response(ctx, exception, head, CN_EINVALID);
    (*event)->status = head->head.status;
    return NULL;
}

/* respond(h, status, statusText, headers, body) -> whether it was sent */
static JSValueRef native_respond(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event;
    struct head head;
    JSValueRef refused = response_begin(ctx, argc, argv, &event, &head, exception);
    if (refused)
        return refused;
    JSValueRef body = cn_js_arg(4);
    int rc = JSValueIsString(ctx, body) ? respond_text(ctx, event, &head.head, body)
                                        : respond_bytes(ctx, event, &head.head, body);
    if (rc < 0)
        return bad_response(ctx, exception, &head, rc);
    head_fini(&head);
    cn_event_answered(event);
    return JSValueMakeBoolean(ctx, true);
}

/* respondSocket(h, headers, w) -> whether the client got the 101 */
static JSValueRef native_respond_socket(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeBoolean(ctx, false);
    struct cn_ws_end *end =
        cn_websocket_find(instance_of(ctx)->lane, cn_js_to_number(ctx, cn_js_arg(2)));
    if (!cn_event_is_running(event))
        return JSValueMakeBoolean(ctx, false);
    if (!end || end->state != CN_WS_END_NEW)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR,
                           "The WebSocket of the response is in use already, or closed.");
    struct head head;
    JSValueRef status = JSValueMakeNumber(ctx, 101);
    if (!head_parse(ctx, &head, status, JSValueMakeUndefined(ctx), cn_js_arg(1)))
        return bad_response(ctx, exception, &head, CN_EINVALID);
    int rc = cn_websocket_respond(event, head.head.headers, head.head.header_count, end);
    head_fini(&head);
    if (rc == CN_EINVALID)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR,
                           "Worker tried to return WebSocket in a response to a request which did "
                           "not contain the header \"Upgrade: websocket\".");
    if (rc != 0) {
        cn_ws_end_release(end);
        if (rc > 0)
            cn_websocket_refuse(event, rc);
        return JSValueMakeBoolean(ctx, false);
    }
    event->status = 101;
    cn_event_answered(event);
    return JSValueMakeBoolean(ctx, true);
}

/* respondStart(h, status, statusText, headers, contentLength | -1) -> boolean */
static JSValueRef native_respond_start(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event;
    struct head head;
    JSValueRef refused = response_begin(ctx, argc, argv, &event, &head, exception);
    if (refused)
        return refused;
    int rc = cn_http_begin(event->http, &head.head, cn_js_to_int64(ctx, cn_js_arg(4)));
    if (rc < 0)
        return bad_response(ctx, exception, &head, rc);
    head_fini(&head);
    cn_event_begin(event);
    return JSValueMakeBoolean(ctx, true);
}

static void on_drain(struct cn_http_request *http)
{
    struct cn_event *event = http->data;
    if (!event || !event->drain.context)
        return;
    struct cn_js_context *context = event->drain.context;
    struct cn_js_pin function;
    cn_js_enter_cause(context, &event->drain.cause);
    cn_js_pin_set(&function, context, event->drain.value);
    cn_js_pin_clear(&event->drain);
    struct cn_err err;
    (void)cn_instance_enter(event->instance, &function, 0, NULL, &err); /* it reports itself */
    cn_js_pin_clear(&function);
    cn_js_leave(context);
}

/* respondWrite(h, bytes, callback) -> 1 go on | 0 wait for the callback | -1 nobody listens.
 * The callback gets (undefined, errorText) if the client goes away meanwhile. */
static JSValueRef native_respond_write(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeNumber(ctx, -1);
    if (!cn_event_is_streaming(event))
        return JSValueMakeNumber(ctx, -1);
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "respondWrite: not a buffer");
    int rc = cn_http_write(event->http, bytes, size, NULL, NULL);
    if (rc == CN_EINVALID)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR,
                           "The body is longer than its Content-Length");
    if (rc < 0)
        return JSValueMakeNumber(ctx, -1);
    if (rc == 0) {
        cn_js_pin_clear(&event->drain);
        cn_js_pin_set(&event->drain, cn_js_context_of(ctx), cn_js_arg(2));
        cn_http_on_drain(event->http, on_drain);
    }
    return JSValueMakeNumber(ctx, rc);
}

/* --- a request's body as the response's body, without JavaScript ------------------------------ */

void cn_http_pipe_end(struct cn_event *event, const char *failure)
{
    struct cn_js_context *context = event->pipe.context;
    if (!context)
        return;
    struct cn_instance *instance = event->instance;
    struct cn_js_pin function;
    cn_js_enter_cause(context, &event->pipe.cause);
    cn_js_pin_set(&function, context, event->pipe.value);
    cn_js_pin_clear(&event->pipe);
    JSValueRef argv[1] = {failure ? cn_js_text_z(context->ref, failure)
                                  : JSValueMakeUndefined(context->ref)};
    struct cn_err err;
    (void)cn_instance_enter(instance, &function, 1, argv, &err); /* it reports itself */
    cn_js_pin_clear(&function);
    cn_js_leave(context);
}

static void pipe_run(struct cn_event *event);

static void on_pipe_drain(struct cn_http_request *http)
{
    struct cn_event *event = http->data;
    if (event)
        pipe_run(event);
}

/* True: go on reading. */
static bool pipe_write(struct cn_event *event, const void *bytes, size_t size)
{
    int rc = cn_http_write(event->http, bytes, size, NULL, NULL);
    if (rc == 1)
        return true;
    if (rc == 0)
        cn_http_on_drain(event->http, on_pipe_drain);
    else
        cn_http_pipe_end(event, rc == CN_EINVALID ? "The body is longer than its Content-Length"
                                                  : "The client disconnected");
    return false;
}

static void on_pipe_read(struct cn_http_request *http, int status, const uint8_t *bytes,
                         size_t size)
{
    struct cn_event *event = http->data;
    if (!event || !event->pipe.context)
        return;
    if (status == CN_HTTP_READ_DATA) {
        if (pipe_write(event, bytes, size))
            pipe_run(event);
    } else if (status == CN_HTTP_READ_END) {
        pipe_run(event);
    } else {
        cn_http_pipe_end(event, "The request body ended early");
    }
}

static void pipe_run(struct cn_event *event)
{
    const uint8_t *bytes;
    size_t size;
    for (;;) {
        if (!event->pipe.context)
            return;
        int rc = cn_http_request_read(event->http, &bytes, &size, on_pipe_read);
        if (rc == CN_HTTP_READ_PENDING)
            return;
        if (rc == CN_HTTP_READ_DATA) {
            if (!pipe_write(event, bytes, size))
                return;
            continue;
        }
        if (rc < 0) {
            cn_http_pipe_end(event, "The client disconnected");
            return;
        }
        rc = cn_http_end(event->http);
        double handle = (double)event->handle;
        struct cn_lane *lane = event->instance->lane;
        cn_http_pipe_end(event, rc < 0 ? "The body is shorter than its Content-Length" : NULL);
        if ((event = cn_event_find(lane, handle)))
            cn_event_answered(event);
        return;
    }
}

/* respondPipe(h, callback): the rest of the event's own request body is its response body;
 * after respondStart(). The callback gets undefined at the end, or a failure. */
static JSValueRef native_respond_pipe(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeBoolean(ctx, false);
    if (!cn_event_is_streaming(event) || cn_event_is_read(event) || event->pipe.context ||
        event->body_lost)
        return JSValueMakeBoolean(ctx, false);
    cn_js_pin_set(&event->pipe, cn_js_context_of(ctx), cn_js_arg(1));
    size_t size = event->early.size;
    uint8_t *early = cn_buf_take(&event->early);
    cn_event_gathered(event);
    if (!size || pipe_write(event, early, size))
        pipe_run(event); /* otherwise the callback may have ended the event */
    cn_free(early);
    return JSValueMakeBoolean(ctx, true);
}

/* respondEnd(h): the body is complete */
static JSValueRef native_respond_end(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = request_event(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeUndefined(ctx);
    if (cn_event_is_streaming(event)) {
        int rc = cn_http_end(event->http);
        cn_event_answered(event);
        if (rc == CN_EINVALID)
            return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR,
                               "The body is shorter than its Content-Length");
    }
    return JSValueMakeUndefined(ctx);
}

/* eventFail(h, reason, overloaded): the handler threw, or its body did */
static JSValueRef native_event_fail(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = event_of(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeUndefined(ctx);
    struct cn_buf reason = {0};
    cn_js_append_utf8(ctx, cn_js_arg(1), &reason);
    int status = JSValueToBoolean(ctx, cn_js_arg(2)) ? 503 : 500;
    struct cn_buf told = {0};
    cn_js_append_utf8(ctx, cn_js_arg(3), &told);
    if (event->http)
        cn_event_fail_told(event, status, cn_buf_text(&reason), reason.size, cn_buf_text(&told));
    else
        cn_dispatch_fail(event, CN_FAULT_REMOTE, CN_EJS, cn_buf_text(&reason), NULL, 0);
    cn_buf_fini(&told);
    cn_buf_fini(&reason);
    return JSValueMakeUndefined(ctx);
}

/* eventDone(h): nothing of the event runs any more */
static JSValueRef native_event_done(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = event_of(ctx, cn_js_arg(0));
    if (!event)
        return JSValueMakeUndefined(ctx);
    cn_event_done(event);
    return JSValueMakeUndefined(ctx);
}

/* scriptStarted(failure | undefined) */
static JSValueRef native_script_started(CN_JS_NATIVE_ARGS)
{
    struct cn_instance *instance = instance_of(ctx);
    if (JSValueIsUndefined(ctx, cn_js_arg(0))) {
        /* From here on eval() and new Function() throw, as on the hosted platform. */
        JSStringRef message = JSStringCreateWithUTF8CString(
            "Code generation from strings disallowed for this context");
        JSGlobalContextSetEvalEnabled(JSContextGetGlobalContext(ctx), false, message);
        JSStringRelease(message);
        cn_instance_started(instance, NULL);
    } else {
        char *failure = cn_js_to_text(ctx, cn_js_arg(0), NULL);
        cn_instance_started(instance, failure);
        cn_free(failure);
    }
    return JSValueMakeUndefined(ctx);
}
