/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/sockets.c - outgoing TCP and TLS for cloudflare:sockets (prelude/workers/sockets.js).
 *
 * JavaScript holds a number; what happens later arrives through the one callback
 * that belongs to the connection:
 *
 *     callback(CONNECTION_OPEN, remote, local)      once, and again after an upgrade to TLS
 *     callback(CONNECTION_DATA, chunk | null)       for a read that had to wait; null: the peer
 * ended callback(CONNECTION_DRAIN)                    after a write that returned 1
 *     callback(CONNECTION_CLOSED, text | null)      last; text: what went wrong
 *
 * B1  Received bytes wait in `in`, INPUT_HIGH of them at most: then the socket is
 *     paused until JavaScript has taken them.
 * B2  A connection lives until its socket is closed (on_closed). After CONNECTION_CLOSED, and
 *     once its runtime is gone, nothing is delivered.
 *
 * Threads: the lane's. */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "border/sockets.h"
#include "js/native.h"
#include "net/socket.h"
#include "worker/runtime.h"

#define INPUT_HIGH (256 * 1024)
#define CONNECTIONS_MAX 65535 /* as many as one address has ports */
_Static_assert(CONNECTIONS_MAX < CN_HANDLES_MAX, "each has a number");

struct connection {
    struct cn_operation operation;
    struct cn_runtime *runtime; /* NULL: nothing is delivered any more */
    struct cn_socket *socket;
    struct cn_js_pin callback;
    struct cn_buf in; /* received, not yet read (B1) */
    uint64_t handle;
    bool paused, ended;
    bool reading; /* JavaScript waits for DATA */
};

/* The connection called `value`, or NULL if it is closed. */
static struct connection *connection_find(JSContextRef ctx, JSValueRef value)
{
    return cn_handles_find(&cn_runtime_of(ctx)->connections, cn_js_to_number(ctx, value));
}

/* Takes the connection from its runtime; its socket goes on until it is closed. */
static void connection_detach(struct connection *connection)
{
    struct cn_runtime *runtime = connection->runtime;
    if (!runtime)
        return;
    cn_handles_remove(&runtime->connections, connection->handle);
    cn_operation_end(&connection->operation);
    cn_js_pin_clear(&connection->callback);
    connection->runtime = NULL;
}

static void on_cancel(struct cn_operation *operation)
{
    struct connection *connection = CN_CONTAINER_OF(operation, struct connection, operation);
    connection_detach(connection);
    cn_socket_close(connection->socket);
}

/* Calls the callback as a turn of its own; `chunk` is used for DATA. */
static void tell(struct connection *connection, int what, const char *first, const char *second,
                 JSValueRef chunk)
{
    struct cn_js_context *context = connection->runtime->context;
    JSContextRef ctx = context->ref;
    JSValueRef argv[3] = {
        JSValueMakeNumber(ctx, what),
        chunk   ? chunk
        : first ? cn_js_text_z(ctx, first)
                : JSValueMakeNull(ctx),
        second ? cn_js_text_z(ctx, second) : JSValueMakeNull(ctx),
    };
    /* The prelude's function throws nothing. */
    cn_js_invoke(ctx, connection->callback.value, 3, argv, NULL);
}

static JSValueRef take_input(struct connection *connection, JSContextRef ctx)
{
    size_t size = connection->in.size;
    uint8_t *bytes = cn_buf_take(&connection->in);
    if (connection->paused) {
        connection->paused = false;
        cn_socket_resume(connection->socket);
    }
    return cn_js_uint8array_take(ctx, bytes, size);
}

static void on_open(struct cn_socket *socket, void *data)
{
    struct connection *connection = data;
    if (!connection->runtime)
        return;
    struct cn_js_context *context = connection->runtime->context;
    cn_js_enter_cause(context, &connection->callback.cause);
    tell(connection, CONNECTION_OPEN, cn_socket_remote(socket), cn_socket_local(socket), NULL);
    cn_js_leave(context);
}

static void on_data(struct cn_socket *socket, const void *bytes, size_t size, void *data)
{
    struct connection *connection = data;
    if (!connection->runtime)
        return;
    cn_buf_append(&connection->in, bytes, size);
    if (!connection->reading) {
        if (connection->in.size >= INPUT_HIGH) {
            connection->paused = true;
            cn_socket_pause(socket);
        }
        return;
    }
    connection->reading = false;
    struct cn_js_context *context = connection->runtime->context;
    cn_js_enter_cause(context, &connection->callback.cause);
    tell(connection, CONNECTION_DATA, NULL, NULL, take_input(connection, context->ref));
    cn_js_leave(context);
}

static void on_drain(struct cn_socket *socket, void *data)
{
    struct connection *connection = data;
    if (!connection->runtime)
        return;
    struct cn_js_context *context = connection->runtime->context;
    cn_js_enter_cause(context, &connection->callback.cause);
    tell(connection, CONNECTION_DRAIN, NULL, NULL, NULL);
    cn_js_leave(context);
}

static void on_end(struct cn_socket *socket, void *data)
{
    struct connection *connection = data;
    connection->ended = true;
    if (!connection->runtime || !connection->reading)
        return;
    connection->reading = false;
    struct cn_js_context *context = connection->runtime->context;
    cn_js_enter_cause(context, &connection->callback.cause);
    tell(connection, CONNECTION_DATA, NULL, NULL, NULL);
    cn_js_leave(context);
}

static void on_closed(struct cn_socket *socket, const struct cn_err *error, void *data)
{
    struct connection *connection = data;
    connection->socket = NULL;
    if (connection->runtime) {
        struct cn_js_context *context = connection->runtime->context;
        cn_js_enter_cause(context, &connection->callback.cause);
        /* What was received and not read goes with it, before the end is told. */
        if (connection->in.size > 0 && !error) {
            connection->paused = false;
            tell(connection, CONNECTION_DATA, NULL, NULL, take_input(connection, context->ref));
        }
        if (connection->runtime)
            tell(connection, CONNECTION_CLOSED, error ? error->text : NULL, NULL, NULL);
        connection_detach(connection);
        cn_js_leave(context);
    }
    cn_buf_fini(&connection->in);
    cn_free(connection);
}

static const struct cn_socket_callbacks callbacks = {on_open, on_data, on_drain, on_end, on_closed};

/* socketConnect(host, port, secure, allowHalfOpen, callback) -> number; throws if it cannot start
 */
static JSValueRef native_socket_connect(CN_JS_NATIVE_ARGS)
{
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    if (!runtime->sockets)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "there is no network here");
    if (!JSValueIsObject(ctx, cn_js_arg(4)))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "socketConnect: not a function");
    if (runtime->connections.live == CONNECTIONS_MAX)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "too many sockets at once (%d)",
                           CONNECTIONS_MAX);
    char *host = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    double port = cn_js_to_number(ctx, cn_js_arg(1));
    struct cn_socket_params params = {
        .host = host,
        .port = port > 0 && port <= 65535 ? (uint16_t)port : 0,
        .secure = (enum cn_socket_secure)cn_js_to_uint32(ctx, cn_js_arg(2)),
        .allow_half_open = JSValueToBoolean(ctx, cn_js_arg(3)),
    };
    struct cn_err err;
    struct connection *connection = CN_NEW(struct connection);
    connection->socket = cn_socket_connect(runtime->sockets, &params, &callbacks, connection, &err);
    cn_free(host);
    if (!connection->socket) {
        cn_free(connection);
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", err.text);
    }
    connection->runtime = runtime;
    connection->handle = cn_handles_add(&runtime->connections, connection);
    cn_js_pin_set(&connection->callback, runtime->context, argv[4]);
    cn_operation_start(runtime, &connection->operation, on_cancel);
    return JSValueMakeNumber(ctx, (double)connection->handle);
}

/* socketRead(id) -> Uint8Array, null at the end, or undefined: DATA follows */
static JSValueRef native_socket_read(CN_JS_NATIVE_ARGS)
{
    struct connection *connection = connection_find(ctx, cn_js_arg(0));
    if (!connection)
        return JSValueMakeNull(ctx);
    if (connection->in.size > 0)
        return take_input(connection, ctx);
    if (connection->ended)
        return JSValueMakeNull(ctx);
    connection->reading = true;
    return JSValueMakeUndefined(ctx);
}

/* socketWrite(id, bytes) -> 0 sent, 1 DRAIN follows, -1 closed */
static JSValueRef native_socket_write(CN_JS_NATIVE_ARGS)
{
    struct connection *connection = connection_find(ctx, cn_js_arg(0));
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "socketWrite: not a buffer");
    if (!connection || !connection->socket)
        return JSValueMakeNumber(ctx, -1);
    struct cn_err err;
    int rc = cn_socket_write(connection->socket, bytes, size, &err);
    if (rc == CN_EOVERLOADED || rc == CN_ENOMEM)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "%s", err.text);
    return JSValueMakeNumber(ctx, rc < 0 ? -1 : rc);
}

/* socketEnd(id): no more will be written */
static JSValueRef native_socket_end(CN_JS_NATIVE_ARGS)
{
    struct connection *connection = connection_find(ctx, cn_js_arg(0));
    if (connection && connection->socket)
        cn_socket_end(connection->socket);
    return JSValueMakeUndefined(ctx);
}

/* socketClose(id): both sides, at once; CLOSED follows */
static JSValueRef native_socket_close(CN_JS_NATIVE_ARGS)
{
    struct connection *connection = connection_find(ctx, cn_js_arg(0));
    if (connection && connection->socket) {
        cn_buf_fini(&connection->in);
        cn_socket_close(connection->socket);
    }
    return JSValueMakeUndefined(ctx);
}

/* socketStartTls(id, serverName | undefined, callback): OPEN follows, through the new callback;
 * what was received and not read is dropped, for nobody vouches for it. Throws if it cannot. */
static JSValueRef native_socket_start_tls(CN_JS_NATIVE_ARGS)
{
    struct connection *connection = connection_find(ctx, cn_js_arg(0));
    if (!connection || !connection->socket)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "the socket is closed");
    if (!JSValueIsObject(ctx, cn_js_arg(2)))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "socketStartTls: not a function");
    char *name =
        JSValueIsUndefined(ctx, cn_js_arg(1)) ? NULL : cn_js_to_text(ctx, cn_js_arg(1), NULL);
    struct cn_err err;
    int rc = cn_socket_start_tls(connection->socket, name, &err);
    cn_free(name);
    if (rc < 0)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", err.text);
    cn_buf_fini(&connection->in);
    connection->reading = false;
    if (connection->paused) {
        connection->paused = false;
        cn_socket_resume(connection->socket);
    }
    cn_js_pin_clear(&connection->callback);
    cn_js_pin_set(&connection->callback, connection->runtime->context, argv[2]);
    return JSValueMakeUndefined(ctx);
}
