/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/websocket.c - WebSockets as the prelude sees them: ends by number (worker/websocket.h),
 * an object's sockets, outgoing connections.
 *
 * `w` is the number of an end, `o` of a live object. A number whose end is gone is
 * no mistake of the script: what it would send goes nowhere. */
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "border/websocket.h"
#include "js/native.h"
#include "net/ws_client.h"
#include "net/ws_conn.h"
#include "object/socket.h"
#include "worker/instance.h"
#include "worker/jsclass.h"
#include "worker/lane.h"
#include "worker/runtime.h"
#include "worker/websocket.h"

#define SHARED_SIZE_MAX 65536 /* a longer message is not kept in case it is sent again */

static struct cn_instance *instance_of(JSContextRef ctx)
{
    return cn_runtime_of(ctx)->data;
}

static struct cn_ws_end *end_arg(JSContextRef ctx, JSValueRef handle)
{
    return cn_websocket_find(instance_of(ctx)->lane, cn_js_to_number(ctx, handle));
}

/* The object `o`, or NULL if it is gone. */
static struct cn_object *object_arg(JSContextRef ctx, JSValueRef handle)
{
    struct cn_jsobject *js = cn_jsobject_find(instance_of(ctx), cn_js_to_number(ctx, handle));
    return js && !cn_object_is_broken(js->object) ? js->object : NULL;
}

static JSValueRef array_of(JSContextRef ctx, size_t count, const JSValueRef values[])
{
    return JSObjectMakeArray(ctx, count, values, NULL);
}

/* --- ends ------------------------------------------------------------------------------------ */

/* wsPair() -> [w, w] */
static JSValueRef native_ws_pair(CN_JS_NATIVE_ARGS)
{
    if (!instance_of(ctx))
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "there are no WebSockets here");
    struct cn_lane *lane = instance_of(ctx)->lane;
    struct cn_ws_end *a, *b;
    cn_ws_pair_new(&a, &b);
    if (!cn_websocket_number(lane, a) || !cn_websocket_number(lane, b)) {
        cn_ws_end_release(a->handle ? a : b);
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "Too many WebSockets are open.");
    }
    cn_websocket_keep(instance_of(ctx), a);
    cn_websocket_keep(instance_of(ctx), b);
    JSValueRef numbers[] = {JSValueMakeNumber(ctx, (double)a->handle),
                            JSValueMakeNumber(ctx, (double)b->handle)};
    return array_of(ctx, 2, numbers);
}

/* wsAccept(w, callback | undefined): events go to the callback (kind, ...), or, in an object, to
 * objectSocket() */
static JSValueRef native_ws_accept(CN_JS_NATIVE_ARGS)
{
    struct cn_ws_end *end = end_arg(ctx, cn_js_arg(0));
    struct cn_object *object = instance_of(ctx)->lane->vm->owner;
    if (!end || end->state != CN_WS_END_NEW)
        return JSValueMakeUndefined(ctx);
    if (object) {
        cn_websocket_attach(end);
        (void)cn_object_socket_accept(object, end, false, false, NULL, 0); /* or it is closed */
    } else {
        cn_websocket_accept(instance_of(ctx), end, cn_js_arg(1));
    }
    return JSValueMakeUndefined(ctx);
}

/* The text as a message. A room's sockets are often sent the same one: `again` says that it is what
 * was sent last. */
static struct cn_ws_message *text_message(JSContextRef ctx, JSValueRef text, bool again)
{
    struct cn_instance *instance = instance_of(ctx);
    if (again && instance->last_sent)
        return cn_ws_message_ref(instance->last_sent);
    struct cn_buf *scratch = &instance->lane->scratch;
    cn_buf_clear(scratch);
    cn_js_append_utf8(ctx, text, scratch);
    struct cn_ws_message *message = cn_ws_message_new(true, scratch->data, scratch->size);
    cn_ws_message_unref(instance->last_sent);
    instance->last_sent =
        message && message->size <= SHARED_SIZE_MAX ? cn_ws_message_ref(message) : NULL;
    if (scratch->capacity > SHARED_SIZE_MAX)
        cn_buf_fini(scratch);
    return message;
}

/* What wsSend() says. */
/* wsSend(w, text | bytes, again) -> 0: the script has closed it; 1; 2: the text is kept, and may be
 * sent `again` */
static JSValueRef native_ws_send(CN_JS_NATIVE_ARGS)
{
    struct cn_ws_end *end = end_arg(ctx, cn_js_arg(0));
    if (!end)
        return JSValueMakeNumber(ctx, SEND_DONE); /* it is gone, by no fault of the script */
    if (cn_ws_end_close_asked(end))
        return JSValueMakeNumber(ctx, SEND_CLOSED);
    struct cn_ws_message *message;
    uint8_t *bytes;
    size_t size;
    if (JSValueIsString(ctx, cn_js_arg(1)))
        message = text_message(ctx, cn_js_arg(1), JSValueToBoolean(ctx, cn_js_arg(2)));
    else if (cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size))
        message = cn_ws_message_new(false, bytes, size);
    else
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "wsSend: not a message");
    if (!message)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "The message is too large.");
    struct cn_object *object = cn_jsclass_gate(instance_of(ctx)->lane);
    int rc = object ? cn_object_socket_send(object, end, message) : cn_ws_end_send(end, message);
    bool kept = message == instance_of(ctx)->last_sent;
    cn_ws_message_unref(message);
    if (object && rc == CN_EOVERLOADED)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR,
                           "More was sent in one go than can be kept until it leaves.");
    return JSValueMakeNumber(ctx, kept ? SEND_KEPT : SEND_DONE);
}

/* wsClose(w, code, reason) */
static JSValueRef native_ws_close(CN_JS_NATIVE_ARGS)
{
    struct cn_ws_end *end = end_arg(ctx, cn_js_arg(0));
    if (!end || cn_ws_end_close_asked(end))
        return JSValueMakeUndefined(ctx);
    struct cn_buf *reason = &instance_of(ctx)->lane->scratch;
    cn_buf_clear(reason);
    cn_js_append_utf8(ctx, cn_js_arg(2), reason);
    struct cn_ws_close close = {.code = (uint16_t)cn_js_to_uint32(ctx, cn_js_arg(1)),
                                .clean = true,
                                .reason = (const char *)reason->data,
                                .reason_size = reason->size};
    struct cn_object *object = cn_jsclass_gate(instance_of(ctx)->lane);
    cn_ws_end_closing(end);
    if (object) {
        cn_object_socket_close(object, end, &close);
    } else {
        cn_websocket_close(end, &close);
    }
    return JSValueMakeUndefined(ctx);
}

/* wsState(w) -> 0 nobody's, 1 open, 2 closed by the script, 3 by the other side, 4 both or gone */
static JSValueRef native_ws_state(CN_JS_NATIVE_ARGS)
{
    const struct cn_ws_end *end = end_arg(ctx, cn_js_arg(0));
    int state = 4;
    bool asked = end && cn_ws_end_close_asked(end);
    if (end && end->state != CN_WS_END_CLAIMED)
        state = 0;
    else if (end && !(asked && end->close_taken))
        state = asked ? 2 : end->close_taken ? 3 : 1;
    return JSValueMakeNumber(ctx, state);
}

/* wsProtocol(w) -> [protocol | null, whether it compresses] */
static JSValueRef native_ws_protocol(CN_JS_NATIVE_ARGS)
{
    const struct cn_ws_end *end = end_arg(ctx, cn_js_arg(0));
    JSValueRef values[] = {end && end->protocol ? cn_js_text_z(ctx, end->protocol)
                                                : JSValueMakeNull(ctx),
                           JSValueMakeBoolean(ctx, end && end->deflate)};
    return array_of(ctx, 2, values);
}

/* wsAttach(w, bytes), wsAttachment(w) -> Uint8Array | null */
static JSValueRef native_ws_attach(CN_JS_NATIVE_ARGS)
{
    struct cn_ws_end *end = end_arg(ctx, cn_js_arg(0));
    uint8_t *bytes;
    size_t size;
    if (!end || !cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size))
        return JSValueMakeUndefined(ctx);
    cn_free(end->attachment);
    end->attachment = cn_memdup(bytes, size);
    end->attachment_size = (uint32_t)size;
    return JSValueMakeUndefined(ctx);
}

static JSValueRef native_ws_attachment(CN_JS_NATIVE_ARGS)
{
    const struct cn_ws_end *end = end_arg(ctx, cn_js_arg(0));
    if (!end || !end->attachment)
        return JSValueMakeNull(ctx);
    return cn_js_uint8array(ctx, end->attachment, end->attachment_size);
}

/* wsTransit(w) -> address for wsClaim() of whichever script gets it; null: it is gone or in use */
static JSValueRef native_ws_transit(CN_JS_NATIVE_ARGS)
{
    struct cn_ws_end *end = end_arg(ctx, cn_js_arg(0));
    char address[CN_SOCKET_ADDRESS_SIZE];
    if (!end || end->state != CN_WS_END_NEW)
        return JSValueMakeNull(ctx);
    cn_websocket_transit(instance_of(ctx)->lane, end, address);
    return cn_js_text_z(ctx, address);
}

/* wsClaim(address) -> w, or 0 */
static JSValueRef native_ws_claim(CN_JS_NATIVE_ARGS)
{
    struct cn_buf *address = &instance_of(ctx)->lane->scratch;
    cn_buf_clear(address);
    cn_js_append_utf8(ctx, cn_js_arg(0), address);
    return JSValueMakeNumber(ctx,
                             (double)cn_websocket_claim(instance_of(ctx), cn_buf_text(address)));
}

/* wsAbandon(w): the collector has found it; nobody can use it any more */
static JSValueRef native_ws_abandon(CN_JS_NATIVE_ARGS)
{
    struct cn_ws_end *end = end_arg(ctx, cn_js_arg(0));
    if (end && end->state == CN_WS_END_NEW)
        cn_ws_end_release(end);
    return JSValueMakeUndefined(ctx);
}

/* --- an object's sockets ---------------------------------------------------------------------- */

/* The strings of an array as texts in `buf`, `max` at most: the prelude has refused more. */
static size_t texts_of(JSContextRef ctx, JSValueRef value, struct cn_buf *buf,
                       struct cn_text texts[], size_t max)
{
    size_t count = cn_js_length(ctx, value, (uint32_t)max);
    size_t ends[CN_SOCKET_TAGS_MAX];
    CN_ASSERT(max <= CN_SOCKET_TAGS_MAX);
    for (size_t i = 0; i < count; i++) {
        cn_js_append_utf8(ctx, cn_js_at(ctx, value, (unsigned)i), buf);
        ends[i] = buf->size;
    }
    for (size_t i = 0; i < count; i++) {
        size_t start = i ? ends[i - 1] : 0;
        texts[i] = (struct cn_text){(const char *)buf->data + start, ends[i] - start};
    }
    return count;
}

/* socketAccept(o, w, tags, autoReply) */
static JSValueRef native_socket_accept(CN_JS_NATIVE_ARGS)
{
    struct cn_object *object = object_arg(ctx, cn_js_arg(0));
    struct cn_ws_end *end = end_arg(ctx, cn_js_arg(1));
    if (!object || !end || end->state != CN_WS_END_NEW || !JSValueIsObject(ctx, cn_js_arg(2)))
        return JSValueMakeUndefined(ctx);
    struct cn_text tags[CN_SOCKET_TAGS_MAX];
    struct cn_buf buf = {0};
    size_t count = texts_of(ctx, cn_js_arg(2), &buf, tags, CN_SOCKET_TAGS_MAX);
    cn_websocket_attach(end);
    (void)cn_object_socket_accept(object, end, true, JSValueToBoolean(ctx, cn_js_arg(3)), tags,
                                  count);
    cn_buf_fini(&buf);
    return JSValueMakeUndefined(ctx);
}

struct numbers {
    JSContextRef ctx;
    JSValueRef *values; /* owned; numbers are no heap values, so nothing needs protection */
    size_t count, capacity;
};

static void add_number(struct cn_object_socket *socket, void *data)
{
    struct numbers *numbers = data;
    CN_GROW(numbers->values, numbers->count, numbers->capacity);
    numbers->values[numbers->count++] =
        JSValueMakeNumber(numbers->ctx, (double)socket->end->handle);
}

/* socketList(o, tag | undefined) -> [w...] */
static JSValueRef native_socket_list(CN_JS_NATIVE_ARGS)
{
    struct cn_object *object = object_arg(ctx, cn_js_arg(0));
    struct numbers numbers = {.ctx = ctx};
    if (object && JSValueIsString(ctx, cn_js_arg(1))) {
        struct cn_buf *text = &instance_of(ctx)->lane->scratch;
        cn_buf_clear(text);
        cn_js_append_utf8(ctx, cn_js_arg(1), text);
        struct cn_text tag = {text->data ? (const char *)text->data : "", text->size};
        cn_object_socket_each(object, &tag, add_number, &numbers);
    } else if (object) {
        cn_object_socket_each(object, NULL, add_number, &numbers);
    }
    JSValueRef array = array_of(ctx, numbers.count, numbers.values);
    cn_free(numbers.values);
    return array;
}

/* The hibernatable socket `w` of object `o`, or NULL. */
static struct cn_object_socket *socket_arg(JSContextRef ctx, JSValueRef o, JSValueRef w)
{
    struct cn_object *object = object_arg(ctx, o);
    struct cn_ws_end *end = end_arg(ctx, w);
    struct cn_object_socket *socket = end ? cn_object_socket_of(end) : NULL;
    bool own = object && socket && !socket->holder && socket->set == cn_object_sockets(object);
    return own ? socket : NULL;
}

/* socketTags(o, w) -> [tag...], or null: it is none of this object's */
static JSValueRef native_socket_tags(CN_JS_NATIVE_ARGS)
{
    struct cn_object_socket *socket = socket_arg(ctx, cn_js_arg(0), cn_js_arg(1));
    if (!socket)
        return JSValueMakeNull(ctx);
    JSValueRef tags[CN_SOCKET_TAGS_MAX];
    for (unsigned i = 0; i < socket->tag_count; i++) {
        struct cn_text name = cn_object_socket_tag_name(socket->tags[i].tag);
        tags[i] = cn_js_text(ctx, name.data, name.size);
    }
    return array_of(ctx, socket->tag_count, tags);
}

/* socketAutoResponse(o, [request, response] | null): sets or clears */
static JSValueRef native_socket_auto_response(CN_JS_NATIVE_ARGS)
{
    struct cn_object *object = object_arg(ctx, cn_js_arg(0));
    if (object && JSValueIsNull(ctx, cn_js_arg(1))) {
        cn_object_socket_set_auto_response(object, NULL, NULL);
    } else if (object) {
        struct cn_text texts[2];
        struct cn_buf buf = {0};
        texts_of(ctx, cn_js_arg(1), &buf, texts, 2);
        cn_object_socket_set_auto_response(object, &texts[0], &texts[1]);
        cn_buf_fini(&buf);
    }
    return JSValueMakeUndefined(ctx);
}

/* socketGetAutoResponse(o) -> [request, response] | null */
static JSValueRef native_socket_get_auto_response(CN_JS_NATIVE_ARGS)
{
    struct cn_object *object = object_arg(ctx, cn_js_arg(0));
    struct cn_text request, response;
    if (!object || !cn_object_socket_auto_response(object, &request, &response))
        return JSValueMakeNull(ctx);
    JSValueRef values[] = {cn_js_text(ctx, request.data, request.size),
                           cn_js_text(ctx, response.data, response.size)};
    return array_of(ctx, 2, values);
}

/* socketAutoResponseTime(o, w) -> milliseconds since 1970, 0 never, -1 none of this object's */
static JSValueRef native_socket_auto_response_time(CN_JS_NATIVE_ARGS)
{
    struct cn_object_socket *socket = socket_arg(ctx, cn_js_arg(0), cn_js_arg(1));
    return JSValueMakeNumber(ctx, socket ? (double)socket->auto_response_ms : -1);
}

/* socketEventTimeout(o, ms | undefined) -> ms: sets if given */
static JSValueRef native_socket_event_timeout(CN_JS_NATIVE_ARGS)
{
    struct cn_object *object = object_arg(ctx, cn_js_arg(0));
    if (object && JSValueIsNumber(ctx, cn_js_arg(1)))
        cn_object_socket_set_event_timeout(object, cn_js_to_uint32(ctx, cn_js_arg(1)));
    return JSValueMakeNumber(ctx, object ? cn_object_socket_event_timeout(object) : 0);
}

/* --- outgoing ----------------------------------------------------------------------------------
 */

struct outgoing {
    struct cn_operation operation;
    struct cn_instance *instance;
    struct cn_ws_client *client;
    struct cn_js_pin callback;
};

static void on_cancel(struct cn_operation *operation)
{
    struct outgoing *outgoing = CN_CONTAINER_OF(operation, struct outgoing, operation);
    cn_operation_end(operation);
    cn_js_pin_clear(&outgoing->callback);
    cn_ws_client_cancel(outgoing->client);
    cn_free(outgoing);
}

static JSValueRef header_lines(JSContextRef ctx, const struct cn_client_head *head)
{
    struct cn_buf lines = {0};
    for (size_t i = 0; i < head->header_count; i++) {
        cn_buf_append(&lines, head->headers[i].name, head->headers[i].name_length);
        cn_buf_append_byte(&lines, '\n');
        cn_buf_append(&lines, head->headers[i].value, head->headers[i].value_length);
        cn_buf_append_byte(&lines, '\n');
    }
    JSValueRef text = cn_js_latin1(ctx, lines.data, lines.size);
    cn_buf_fini(&lines);
    return text;
}

static void on_connected(const struct cn_ws_client_result *result, void *data)
{
    struct outgoing *outgoing = data;
    cn_operation_end(&outgoing->operation);
    if (!cn_js_enter_pin(&outgoing->callback)) {
        if (result->end)
            cn_ws_end_release(result->end);
        cn_js_pin_clear(&outgoing->callback);
        cn_free(outgoing);
        return;
    }
    struct cn_js_context *context = outgoing->callback.context;
    JSContextRef ctx = context->ref;
    JSValueRef argument;
    if (result->error) {
        argument = cn_js_text_z(ctx, result->error->text);
    } else {
        struct cn_instance *instance = outgoing->instance;
        uint64_t number = result->end ? cn_websocket_number(instance->lane, result->end) : 0;
        if (number)
            cn_websocket_keep(instance, result->end);
        JSValueRef values[] = {
            JSValueMakeNumber(ctx, result->head.status), header_lines(ctx, &result->head),
            JSValueMakeNumber(ctx, (double)number),
            result->body_size > 0 ? cn_js_uint8array(ctx, result->body, result->body_size)
                                  : JSValueMakeNull(ctx)};
        argument = array_of(ctx, CN_ARRAY_COUNT(values), values);
    }
    cn_js_invoke(ctx, outgoing->callback.value, 1, &argument, NULL); /* it throws nothing */
    cn_js_pin_clear(&outgoing->callback);
    cn_free(outgoing);
    cn_js_leave(context);
}

/* wsConnect(host, port, secure, authority, target, headers, deflate, callback): the callback gets
 * [status, "name\nvalue\n...", w | 0, body | null], or a text: what failed. Throws if it cannot
 * begin. */
static JSValueRef native_ws_connect(CN_JS_NATIVE_ARGS)
{
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    if (!instance_of(ctx) || !runtime->sockets)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "there is no network here");
    struct cn_lane *lane = instance_of(ctx)->lane;
    char *host = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    char *authority = cn_js_to_text(ctx, cn_js_arg(3), NULL);
    char *target = cn_js_to_text(ctx, cn_js_arg(4), NULL);
    struct cn_buf headers = {0};
    cn_js_append_latin1(ctx, cn_js_arg(5), &headers);
    struct cn_ws_client_params params = {
        .host = host,
        .port = (uint16_t)cn_js_to_uint32(ctx, cn_js_arg(1)),
        .secure = JSValueToBoolean(ctx, cn_js_arg(2)),
        .authority = authority,
        .target = target,
        .headers = cn_buf_text(&headers),
        .offer_deflate = JSValueToBoolean(ctx, cn_js_arg(6)),
    };
    struct outgoing *outgoing = CN_NEW(struct outgoing);
    struct cn_err err;
    outgoing->instance = instance_of(ctx);
    outgoing->client =
        cn_ws_client_start(lane->ws, runtime->sockets, &params, on_connected, outgoing, &err);
    cn_free(host);
    cn_free(authority);
    cn_free(target);
    cn_buf_fini(&headers);
    if (!outgoing->client) {
        cn_free(outgoing);
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", err.text);
    }
    cn_js_pin_set(&outgoing->callback, runtime->context, cn_js_arg(7));
    cn_operation_start(runtime, &outgoing->operation, on_cancel);
    return JSValueMakeUndefined(ctx);
}
