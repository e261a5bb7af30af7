/* SPDX-License-Identifier: Apache-2.0 */
/* net/socket.c - outgoing TCP connections.
 *
 *     RESOLVING --> CONNECTING --> SECURING --> OPEN --> CLOSING --> freed
 *      (a name)     (each of its    (TLS)    <---+
 *                    addresses)          start_tls
 *
 * and from each of them to CLOSING. socket_set_state() knows no other moves.
 *
 * The TCP handle is a struct of its own (wire): an address that did not answer is
 * closed, which takes libuv a turn of the loop, while the next is already tried.
 *
 * W1  on_closed runs when the last libuv handle and request of the socket is gone
 *     (use_count 0), so nothing can call into freed memory.
 * W2  Bytes accepted before the socket is open, or while TLS is being set up, wait
 *     in `early`; afterwards they are encrypted and given to libuv at once.
 * W3  queued = early.size + unsent is what queue_max limits. */
#include "net/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/tls.h"

#define READ_SIZE 65536
#define ADDRESS_COUNT_MAX 16 /* addresses tried for one name */
#define HOST_LENGTH_MAX 255
#define ADDRESS_TEXT_SIZE 64

enum state { RESOLVING, CONNECTING, SECURING, OPEN, CLOSING };

struct cn_sockets {
    uv_loop_t *loop;
    struct cn_sockets_options options;
    struct cn_list list; /* of struct cn_socket */
    unsigned count;
    bool closing;
    void (*close_cb)(void *data);
    void *close_data;
    uv_timer_t close_timer;   /* calls back when there was no socket to wait for */
    uint8_t bytes[READ_SIZE]; /* what is being read, by whichever socket */
    uint8_t plain[READ_SIZE]; /* and decrypted */
};

struct wire {
    uv_tcp_t tcp;
    struct cn_socket *socket;
};

struct cn_socket {
    struct cn_sockets *sockets;
    struct cn_list link;
    const struct cn_socket_callbacks *callbacks;
    void *data;
    enum state state;
    unsigned use_count; /* handles and requests that point here (W1) */
    struct cn_err error;

    char *host; /* without brackets */
    uint16_t port;
    enum cn_socket_secure secure;
    char *alpn;
    bool allow_half_open;

    uv_getaddrinfo_t lookup;
    struct sockaddr_storage addresses[ADDRESS_COUNT_MAX];
    size_t address_count, address_index;
    uv_connect_t connect;
    struct wire *wire; /* NULL before CONNECTING and once closing */
    /* RESOLVING to SECURING: the time-out. OPEN: due at once when something is to be
     * done outside the owner's call. */
    uv_timer_t timer;
    struct cn_tls *tls; /* NULL: plain */

    struct cn_buf early; /* accepted and not yet written (W2) */
    size_t unsent;       /* bytes libuv has and the kernel has not */
    bool drain_wanted;
    bool end_wanted, end_sent; /* our side */
    uv_shutdown_t shutdown;
    bool paused, reading;
    bool peer_ended;
    char local[ADDRESS_TEXT_SIZE], remote[ADDRESS_TEXT_SIZE], agreed[256];
};

struct outgoing {
    uv_write_t write;
    struct cn_socket *socket;
    size_t size;
    uint8_t bytes[];
};

static void socket_set_state(struct cn_socket *socket, enum state state)
{
    static const unsigned allowed[] = {
        [RESOLVING] = 1u << CONNECTING | 1u << CLOSING,
        [CONNECTING] = 1u << SECURING | 1u << OPEN | 1u << CLOSING,
        [SECURING] = 1u << OPEN | 1u << CLOSING,
        [OPEN] = 1u << SECURING | 1u << CLOSING,
        [CLOSING] = 0,
    };
    CN_ASSERT(allowed[socket->state] & 1u << state);
    socket->state = state;
}

/* ---- closing ---- */

static void sockets_free(struct cn_sockets *sockets)
{
    void (*cb)(void *data) = sockets->close_cb;
    void *data = sockets->close_data;
    cn_free(sockets);
    cb(data);
}

static void on_close_timer_closed(uv_handle_t *handle)
{
    sockets_free(handle->data);
}

static void socket_release(struct cn_socket *socket)
{
    CN_ASSERT(socket->use_count > 0);
    if (--socket->use_count > 0)
        return;
    struct cn_sockets *sockets = socket->sockets;
    CN_ASSERT(socket->state == CLOSING);
    socket->callbacks->on_closed(socket, socket->error.code ? &socket->error : NULL, socket->data);
    cn_list_remove(&socket->link);
    sockets->count--;
    cn_tls_free(socket->tls);
    cn_buf_fini(&socket->early);
    cn_free(socket->host);
    cn_free(socket->alpn);
    cn_free(socket);
    if (sockets->closing && sockets->count == 0)
        uv_close((uv_handle_t *)&sockets->close_timer, on_close_timer_closed);
}

static void on_wire_closed(uv_handle_t *handle)
{
    struct wire *wire = handle->data;
    struct cn_socket *socket = wire->socket;
    cn_free(wire);
    socket_release(socket);
}

static void on_timer_closed(uv_handle_t *handle)
{
    socket_release(handle->data);
}

static void wire_close(struct cn_socket *socket)
{
    if (socket->wire)
        uv_close((uv_handle_t *)&socket->wire->tcp, on_wire_closed);
    socket->wire = NULL;
}

void cn_socket_close(struct cn_socket *socket)
{
    cn_loop_assert_owner(socket->sockets->loop);
    if (socket->state == CLOSING)
        return;
    if (socket->state == RESOLVING)
        (void)uv_cancel((uv_req_t *)&socket->lookup); /* if too late its callback sees CLOSING */
    if (socket->tls && socket->wire && !socket->end_sent) {
        /* A close_notify if it fits, so that the peer knows the end from a cut. */
        cn_tls_shutdown(socket->tls);
        uint8_t bytes[512];
        size_t size = cn_tls_take_output(socket->tls, bytes, sizeof(bytes));
        uv_buf_t buf = uv_buf_init((char *)bytes, (unsigned)size);
        if (size > 0)
            (void)uv_try_write((uv_stream_t *)&socket->wire->tcp, &buf, 1); /* best effort */
    }
    socket_set_state(socket, CLOSING);
    wire_close(socket);
    uv_close((uv_handle_t *)&socket->timer, on_timer_closed);
}

__attribute__((format(printf, 3, 4))) static void socket_fail(struct cn_socket *socket, int code,
                                                              const char *format, ...)
{
    if (socket->state == CLOSING)
        return;
    char text[CN_ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    cn_err_set(&socket->error, code, "%.255s:%u: %.200s", socket->host, (unsigned)socket->port,
               text);
    cn_socket_close(socket);
}

static void socket_fail_uv(struct cn_socket *socket, int code, const char *doing)
{
    socket_fail(socket, code, "%s: %s", doing, uv_strerror(code));
}

/* ---- writing ---- */

static void socket_check_ended(struct cn_socket *socket)
{
    if (socket->peer_ended && socket->end_sent && socket->unsent == 0)
        cn_socket_close(socket);
}

static void on_written(uv_write_t *write, int status)
{
    struct outgoing *outgoing = write->data;
    struct cn_socket *socket = outgoing->socket;
    socket->unsent -= outgoing->size;
    cn_free(outgoing);
    if (socket->state != CLOSING) {
        if (status < 0)
            socket_fail_uv(socket, status, "sending failed");
        else if (socket->unsent == 0 && socket->early.size == 0 && socket->drain_wanted) {
            socket->drain_wanted = false;
            socket->callbacks->on_drain(socket, socket->data);
        }
    }
    socket_release(socket);
}

/* Gives bytes to the kernel or, as far as it takes no more, to libuv. */
static int wire_write(struct cn_socket *socket, const uint8_t *bytes, size_t size)
{
    uv_stream_t *stream = (uv_stream_t *)&socket->wire->tcp;
    uv_buf_t buf = {.base = (char *)bytes, .len = size};
    int sent = socket->unsent == 0 ? uv_try_write(stream, &buf, 1) : UV_EAGAIN;
    if (sent == UV_EAGAIN)
        sent = 0;
    if (sent < 0)
        return sent;
    if ((size_t)sent == size)
        return 0;
    size -= (size_t)sent;
    struct outgoing *outgoing = cn_try_alloc(sizeof(*outgoing) + size);
    if (!outgoing)
        return UV_ENOMEM;
    outgoing->socket = socket;
    outgoing->size = size;
    memcpy(outgoing->bytes, bytes + sent, size);
    outgoing->write.data = outgoing;
    buf = (uv_buf_t){.base = (char *)outgoing->bytes, .len = size};
    int rc = uv_write(&outgoing->write, stream, &buf, 1, on_written);
    if (rc < 0) {
        cn_free(outgoing);
        return rc;
    }
    socket->unsent += size;
    socket->use_count++;
    return 0;
}

/* Sends what TLS has for the network. */
static int tls_flush(struct cn_socket *socket)
{
    uint8_t bytes[16384 + 512];
    for (size_t size; (size = cn_tls_take_output(socket->tls, bytes, sizeof(bytes))) > 0;) {
        int rc = wire_write(socket, bytes, size);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Encrypts if need be, and sends. 0, or an error the socket is to be failed with. */
static int plain_write(struct cn_socket *socket, const uint8_t *bytes, size_t size)
{
    if (!socket->tls)
        return wire_write(socket, bytes, size);
    while (size > 0) {
        int taken = cn_tls_write(socket->tls, bytes, size);
        if (taken <= 0)
            return taken < 0 ? taken : CN_EPROTOCOL;
        bytes += taken;
        size -= (size_t)taken;
        int rc = tls_flush(socket);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
    struct cn_socket *socket = shutdown->data;
    /* A peer that is gone already is seen by reading, too. */
    socket_check_ended(socket);
    socket_release(socket);
}

static void send_end(struct cn_socket *socket)
{
    if (socket->end_sent)
        return;
    socket->end_sent = true;
    if (socket->tls) {
        cn_tls_shutdown(socket->tls);
        int rc = tls_flush(socket);
        if (rc < 0) {
            socket_fail_uv(socket, rc, "sending failed");
            return;
        }
    }
    socket->shutdown.data = socket;
    int rc = uv_shutdown(&socket->shutdown, (uv_stream_t *)&socket->wire->tcp, on_shutdown);
    if (rc < 0)
        socket_fail_uv(socket, rc, "ending our side failed");
    else
        socket->use_count++;
}

int cn_socket_write(struct cn_socket *socket, const void *bytes, size_t size, struct cn_err *err)
{
    cn_loop_assert_owner(socket->sockets->loop);
    if (socket->state == CLOSING || socket->end_wanted)
        return cn_err_set(err, CN_ECLOSED, "the socket is closed for writing");
    if (socket->early.size + socket->unsent >= socket->sockets->options.queue_max)
        return cn_err_set(err, CN_EOVERLOADED, "too much waits to be sent on the socket");
    if (size == 0)
        return 0;
    if (socket->state != OPEN) {
        if (!cn_buf_try_append(&socket->early, bytes, size))
            return cn_err_set(err, CN_ENOMEM, "no memory for %zu bytes to send", size);
        socket->drain_wanted = true;
        return 1;
    }
    int rc = plain_write(socket, bytes, size);
    if (rc < 0) {
        socket_fail_uv(socket, rc, "sending failed");
        return cn_err_set(err, CN_ECLOSED, "%.400s", socket->error.text);
    }
    socket->drain_wanted = socket->unsent > 0;
    return socket->drain_wanted;
}

void cn_socket_end(struct cn_socket *socket)
{
    cn_loop_assert_owner(socket->sockets->loop);
    if (socket->state == CLOSING || socket->end_wanted)
        return;
    socket->end_wanted = true;
    if (socket->state == OPEN)
        send_end(socket);
}

/* ---- reading ---- */

static void socket_read(struct cn_socket *socket);

static void socket_soon(struct cn_socket *socket);

static void peer_end(struct cn_socket *socket)
{
    if (socket->peer_ended)
        return;
    socket->peer_ended = true;
    if (socket->wire)
        uv_read_stop((uv_stream_t *)&socket->wire->tcp);
    socket->callbacks->on_end(socket, socket->data);
    if (socket->state == CLOSING)
        return;
    if (!socket->allow_half_open)
        cn_socket_end(socket);
    if (socket->state != CLOSING)
        socket_check_ended(socket);
}

static void socket_opened(struct cn_socket *socket)
{
    uv_timer_stop(&socket->timer);
    socket_set_state(socket, OPEN);
    if (socket->tls) {
        const uint8_t *protocol;
        size_t size = cn_tls_alpn(socket->tls, &protocol);
        snprintf(socket->agreed, sizeof(socket->agreed), "%.*s", (int)size,
                 size ? (const char *)protocol : "");
    }
    socket->callbacks->on_open(socket, socket->data);
    if (socket->state != OPEN)
        return;
    if (socket->early.size > 0) {
        int rc = plain_write(socket, socket->early.data, socket->early.size);
        cn_buf_fini(&socket->early);
        if (rc < 0) {
            socket_fail_uv(socket, rc, "sending failed");
            return;
        }
    }
    if (socket->end_wanted)
        send_end(socket);
    if (socket->state == OPEN)
        socket_soon(socket); /* an on_drain may be due, and bytes may wait inside TLS */
}

/* Goes on with the handshake. */
static void tls_secure(struct cn_socket *socket)
{
    int done = cn_tls_handshake(socket->tls);
    int rc = tls_flush(socket); /* an alert, too, if it failed */
    if (done < 0)
        socket_fail(socket, CN_ETLS, "TLS failed: %s", cn_tls_reason(socket->tls));
    else if (rc < 0)
        socket_fail_uv(socket, rc, "sending failed");
    else if (done > 0)
        socket_opened(socket);
}

/* Delivers what TLS can decrypt, as far as the owner takes it. */
static void tls_deliver(struct cn_socket *socket)
{
    while (socket->state == OPEN && !socket->paused && !socket->peer_ended) {
        uint8_t *plain = socket->sockets->plain;
        int size = cn_tls_read(socket->tls, plain, READ_SIZE);
        int rc = tls_flush(socket); /* key updates and alerts */
        if (size > 0)
            socket->callbacks->on_data(socket, plain, (size_t)size, socket->data);
        else if (size == UV_EOF)
            peer_end(socket);
        else if (size < 0)
            socket_fail(socket, CN_EPROTOCOL, "TLS failed: %s", cn_tls_reason(socket->tls));
        else if (rc < 0)
            socket_fail_uv(socket, rc, "sending failed");
        else
            return;
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct wire *wire = handle->data;
    *buf = uv_buf_init((char *)wire->socket->sockets->bytes, READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct wire *wire = stream->data;
    struct cn_socket *socket = wire->socket;
    if (socket->wire != wire || size == 0)
        return;
    if (size == UV_EOF && socket->tls) {
        socket_fail(socket, socket->state == SECURING ? CN_ETLS : CN_EPROTOCOL,
                    "the peer closed the connection without ending TLS");
    } else if (size == UV_EOF) {
        peer_end(socket);
    } else if (size < 0) {
        socket_fail_uv(socket, (int)size, "receiving failed");
    } else if (!socket->tls) {
        socket->callbacks->on_data(socket, buf->base, (size_t)size, socket->data);
    } else {
        cn_tls_feed(socket->tls, (const uint8_t *)buf->base, (size_t)size);
        if (socket->state == SECURING)
            tls_secure(socket);
        if (socket->state == OPEN)
            tls_deliver(socket);
    }
    socket_read(socket);
}

/* Starts or stops reading as the state asks for. */
static void socket_read(struct cn_socket *socket)
{
    bool want = socket->state == SECURING ||
                (socket->state == OPEN && !socket->paused && !socket->peer_ended);
    if (!socket->wire || want == socket->reading)
        return;
    uv_stream_t *stream = (uv_stream_t *)&socket->wire->tcp;
    int rc = want ? uv_read_start(stream, on_alloc, on_read) : uv_read_stop(stream);
    socket->reading = want;
    if (rc < 0)
        socket_fail_uv(socket, rc, "receiving failed");
}

void cn_socket_pause(struct cn_socket *socket)
{
    cn_loop_assert_owner(socket->sockets->loop);
    socket->paused = true;
    socket_read(socket);
}

void cn_socket_resume(struct cn_socket *socket)
{
    cn_loop_assert_owner(socket->sockets->loop);
    socket->paused = false;
    if (socket->state == OPEN)
        socket_soon(socket);
}

/* What could not be done inside the owner's call (S1). */
static void on_soon(uv_timer_t *timer)
{
    struct cn_socket *socket = timer->data;
    if (socket->drain_wanted && socket->unsent == 0 && socket->early.size == 0) {
        socket->drain_wanted = false;
        socket->callbacks->on_drain(socket, socket->data);
    }
    if (socket->tls && socket->state == OPEN)
        tls_deliver(socket);
    socket_read(socket);
}

static void socket_soon(struct cn_socket *socket)
{
    CN_ASSERT(socket->state == OPEN);
    uv_timer_start(&socket->timer, on_soon, 0, 0);
}

/* ---- connecting ---- */

static void address_text(const struct sockaddr *address, char *text)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
        uv_ip6_name(six, host, sizeof(host));
        snprintf(text, ADDRESS_TEXT_SIZE, "[%s]:%u", host, ntohs(six->sin6_port));
    } else {
        const struct sockaddr_in *four = (const struct sockaddr_in *)address;
        uv_ip4_name(four, host, sizeof(host));
        snprintf(text, ADDRESS_TEXT_SIZE, "%s:%u", host, ntohs(four->sin_port));
    }
}

static void on_connect_timeout(uv_timer_t *timer)
{
    static const char *const doing[] = {[RESOLVING] = "the name was looked up",
                                        [CONNECTING] = "connecting",
                                        [SECURING] = "TLS was set up"};
    struct cn_socket *socket = timer->data;
    CN_ASSERT(socket->state < OPEN);
    socket_fail(socket, CN_ETIMEOUT, "timed out while %s", doing[socket->state]);
}

static void timeout_start(struct cn_socket *socket)
{
    uv_timer_start(&socket->timer, on_connect_timeout, socket->sockets->options.connect_timeout_ms,
                   0);
}

/* From here on the bytes of the wire are TLS. */
static int secure_start(struct cn_socket *socket, const char *server_name, struct cn_err *err)
{
    socket->tls = cn_tls_new_client(socket->sockets->options.trust, server_name, socket->alpn, err);
    if (!socket->tls)
        return err->code;
    socket_set_state(socket, SECURING);
    return 0;
}

static void on_connected(uv_connect_t *connect, int status);

/* Tries the next address; `reason` is why the one before it failed. */
static void connect_next(struct cn_socket *socket, int reason)
{
    const struct cn_sockets_options *options = &socket->sockets->options;
    while (socket->address_index < socket->address_count) {
        struct sockaddr *address = (struct sockaddr *)&socket->addresses[socket->address_index++];
        if (options->address_allowed && !options->address_allowed(address, options->address_data)) {
            reason = CN_EDENIED;
            continue;
        }
        struct wire *wire = CN_NEW(struct wire);
        wire->socket = socket;
        int rc = uv_tcp_init(socket->sockets->loop, &wire->tcp);
        CN_ASSERT(rc == 0); /* makes no descriptor yet */
        wire->tcp.data = wire;
        socket->wire = wire;
        socket->use_count++;
        socket->connect.data = wire;
        rc = uv_tcp_connect(&socket->connect, &wire->tcp, address, on_connected);
        if (rc == 0) {
            socket->use_count++; /* the request */
            return;
        }
        reason = rc;
        wire_close(socket);
    }
    if (reason == CN_EDENIED)
        socket_fail(socket, CN_EDENIED, "connections to its address are not allowed");
    else
        socket_fail_uv(socket, reason, "no connection");
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct wire *wire = connect->data;
    struct cn_socket *socket = wire->socket;
    if (socket->state == CLOSING)
        goto release;
    CN_ASSERT(socket->state == CONNECTING && socket->wire == wire);
    if (status < 0) {
        wire_close(socket);
        connect_next(socket, status);
        goto release;
    }
    (void)uv_tcp_nodelay(&wire->tcp, 1); /* slower without, not wrong */
    struct sockaddr_storage address;
    int size = sizeof(address);
    if (uv_tcp_getsockname(&wire->tcp, (struct sockaddr *)&address, &size) == 0)
        address_text((struct sockaddr *)&address, socket->local);
    size = sizeof(address);
    if (uv_tcp_getpeername(&wire->tcp, (struct sockaddr *)&address, &size) == 0)
        address_text((struct sockaddr *)&address, socket->remote);
    if (socket->secure == CN_SOCKET_TLS) {
        struct cn_err err;
        if (secure_start(socket, socket->host, &err) < 0)
            socket_fail(socket, err.code, "%s", err.text);
        else
            tls_secure(socket);
    } else {
        socket_opened(socket);
    }
    if (socket->state != CLOSING)
        socket_read(socket);
release:
    socket_release(socket);
}

static void on_resolved(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found)
{
    struct cn_socket *socket = lookup->data;
    if (socket->state == CLOSING) {
        /* nobody waits any more */
    } else if (status < 0) {
        socket_fail_uv(socket, status, "the host name cannot be resolved");
    } else {
        for (struct addrinfo *at = found; at && socket->address_count < ADDRESS_COUNT_MAX;
             at = at->ai_next) {
            if (at->ai_family == AF_INET || at->ai_family == AF_INET6)
                memcpy(&socket->addresses[socket->address_count++], at->ai_addr, at->ai_addrlen);
        }
        socket_set_state(socket, CONNECTING);
        connect_next(socket, UV_EAI_NODATA);
    }
    uv_freeaddrinfo(found);
    socket_release(socket);
}

/* "[::1]" is ::1. NULL if it cannot be a host. */
static char *host_copy(const char *host)
{
    size_t length = host ? strlen(host) : 0;
    if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    if (length == 0 || length > HOST_LENGTH_MAX)
        return NULL;
    return cn_strndup(host, length);
}

struct cn_socket *cn_socket_connect(struct cn_sockets *sockets,
                                    const struct cn_socket_params *params,
                                    const struct cn_socket_callbacks *callbacks, void *data,
                                    struct cn_err *err)
{
    cn_loop_assert_owner(sockets->loop);
    CN_ASSERT(!sockets->closing);
    if (sockets->count >= sockets->options.count_max) {
        cn_err_set(err, CN_EOVERLOADED, "too many outgoing sockets are open (%u)", sockets->count);
        return NULL;
    }
    char *host = host_copy(params->host);
    if (!host || params->port == 0) {
        cn_err_set(err, CN_EINVALID, host ? "port 0 cannot be connected to" : "not a host name");
        cn_free(host);
        return NULL;
    }
    struct cn_socket *socket = CN_NEW(struct cn_socket);
    socket->sockets = sockets;
    socket->callbacks = callbacks;
    socket->data = data;
    socket->host = host;
    socket->port = params->port;
    socket->secure = params->secure;
    socket->alpn = params->alpn ? cn_strdup(params->alpn) : NULL;
    socket->allow_half_open = params->allow_half_open;

    char port[8];
    snprintf(port, sizeof(port), "%u", (unsigned)params->port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG};
    struct in6_addr literal; /* AI_ADDRCONFIG would hide an address of the loopback's family */
    if (inet_pton(AF_INET, host, &literal) == 1 || inet_pton(AF_INET6, host, &literal) == 1)
        hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST;
    socket->lookup.data = socket;
    int rc = uv_getaddrinfo(sockets->loop, &socket->lookup, on_resolved, host, port, &hints);
    if (rc < 0) {
        cn_err_set(err, rc, "%s: the host name cannot be looked up: %s", host, uv_strerror(rc));
        cn_free(socket->host);
        cn_free(socket->alpn);
        cn_free(socket);
        return NULL;
    }
    uv_timer_init(sockets->loop, &socket->timer);
    socket->timer.data = socket;
    socket->use_count = 2; /* the lookup and the timer */
    timeout_start(socket);
    cn_list_push_back(&sockets->list, &socket->link);
    sockets->count++;
    return socket;
}

void cn_socket_set_callbacks(struct cn_socket *socket, const struct cn_socket_callbacks *callbacks,
                             void *data)
{
    socket->callbacks = callbacks;
    socket->data = data;
}

int cn_socket_start_tls(struct cn_socket *socket, const char *server_name, struct cn_err *err)
{
    cn_loop_assert_owner(socket->sockets->loop);
    struct cn_err own;
    if (socket->secure != CN_SOCKET_STARTTLS)
        return cn_err_set(err, CN_EINVALID, "the socket was not opened for an upgrade to TLS");
    if (socket->tls)
        return cn_err_set(err, CN_EINVALID, "the socket speaks TLS already");
    if (socket->state != OPEN || socket->end_wanted || socket->peer_ended)
        return cn_err_set(err, CN_EINVALID, "only an open socket can be upgraded to TLS");
    if (secure_start(socket, server_name ? server_name : socket->host, err ? err : &own) < 0)
        return err ? err->code : own.code;
    timeout_start(socket);
    (void)cn_tls_handshake(socket->tls); /* makes the greeting; cannot fail without input */
    int rc = tls_flush(socket);
    if (rc < 0)
        socket_fail_uv(socket, rc, "sending failed");
    socket_read(socket);
    return 0;
}

const char *cn_socket_local(const struct cn_socket *socket)
{
    return socket->local;
}

const char *cn_socket_remote(const struct cn_socket *socket)
{
    return socket->remote;
}

const char *cn_socket_alpn(const struct cn_socket *socket)
{
    return socket->agreed;
}

/* ---- all sockets of a lane ---- */

struct cn_sockets *cn_sockets_new(uv_loop_t *loop, const struct cn_sockets_options *options)
{
    cn_loop_assert_owner(loop);
    CN_ASSERT(options->trust);
    struct cn_sockets *sockets = CN_NEW(struct cn_sockets);
    sockets->loop = loop;
    sockets->options = *options;
    if (!sockets->options.count_max)
        sockets->options.count_max = 1024;
    if (!sockets->options.connect_timeout_ms)
        sockets->options.connect_timeout_ms = 30000;
    if (!sockets->options.queue_max)
        sockets->options.queue_max = 1 << 20;
    cn_list_init(&sockets->list);
    uv_timer_init(loop, &sockets->close_timer);
    sockets->close_timer.data = sockets;
    return sockets;
}

void cn_sockets_close(struct cn_sockets *sockets, void (*cb)(void *data), void *data)
{
    cn_loop_assert_owner(sockets->loop);
    CN_ASSERT(!sockets->closing);
    sockets->closing = true;
    sockets->close_cb = cb;
    sockets->close_data = data;
    if (sockets->count == 0)
        uv_close((uv_handle_t *)&sockets->close_timer, on_close_timer_closed);
    CN_LIST_FOREACH(&sockets->list, node)
    {
        struct cn_socket *socket = CN_CONTAINER_OF(node, struct cn_socket, link);
        socket_fail(socket, CN_ECLOSED, "the server is stopping");
    }
}

void cn_sockets_check(const struct cn_sockets *sockets)
{
    CN_ASSERT(sockets->count == cn_list_length(&sockets->list));
}

unsigned cn_sockets_count(const struct cn_sockets *sockets)
{
    return sockets->count;
}
