/* SPDX-License-Identifier: Apache-2.0 */
#include "net/server.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/whose.h"
#include "net/http_conn.h"
#include "net/tls.h"

#define BACKLOG 4096 /* the kernel lowers it to net.core.somaxconn */
#define TICK_MS_MAX 1000

/* --- listening sockets ------------------------------------------------------------------ */

static int socket_bind(const struct addrinfo *address, bool shared, struct cn_err *err)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return cn_err_errno(err, errno, "socket");
    int on = 1, off = 0, rc;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)) {
        rc = cn_err_errno(err, errno, "setsockopt");
        goto close_fd;
    }
    /* "::" also takes IPv4; where the system forbids that, IPv6 alone is what one gets. */
    if (address->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, address->ai_addr, address->ai_addrlen) < 0) {
        rc = cn_err_errno(err, errno, "bind");
        goto close_fd;
    }
    return fd;
close_fd:
    close(fd);
    return rc;
}

/* Sockets that share a port also share it with any other program of the same user, which would
 * then take half of our connections. A socket that does not share finds out. */
static int port_probe(const struct addrinfo *address, struct cn_err *err)
{
    int fd = socket_bind(address, false, err);
    if (fd < 0)
        return fd;
    int rc = listen(fd, 1) < 0 ? cn_err_errno(err, errno, "listen") : 0;
    close(fd);
    return rc;
}

static int bound_port_of(int fd, uint16_t *port, struct cn_err *err)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return cn_err_errno(err, errno, "getsockname");
    *port = ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                               : ((struct sockaddr_in6 *)&address)->sin6_port);
    return 0;
}

static void port_set(struct addrinfo *address, uint16_t port)
{
    if (address->ai_family == AF_INET)
        ((struct sockaddr_in *)(void *)address->ai_addr)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)(void *)address->ai_addr)->sin6_port = htons(port);
}

/* A name such as localhost often has both kinds of address; everything can reach IPv4. */
static struct addrinfo *address_choose(struct addrinfo *all)
{
    for (struct addrinfo *address = all; address; address = address->ai_next)
        if (address->ai_family == AF_INET)
            return address;
    return all;
}

int cn_http_bind(const char *host, uint16_t port, int *fds, size_t count, uint16_t *bound_port,
                 struct cn_err *err)
{
    CN_ASSERT(count > 0);
    bool any = host[0] == '\0' || strcmp(host, "*") == 0;
    char service[8];
    snprintf(service, sizeof(service), "%u", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *all;
    int rc = getaddrinfo(any ? "0.0.0.0" : host, service, &hints, &all);
    if (rc != 0)
        return cn_err_set(err, CN_EINVALID, "listen address %s: %s", host, gai_strerror(rc));
    struct addrinfo *address = address_choose(all);
    size_t opened = 0;
    rc = port == 0 ? 0 : port_probe(address, err);
    while (rc == 0 && opened < count) {
        int fd = socket_bind(address, true, err);
        if (fd < 0) {
            rc = fd;
            break;
        }
        fds[opened++] = fd;
        if (opened == 1) {
            rc = bound_port_of(fd, &port, err);
            port_set(address, port);
        }
    }
    freeaddrinfo(all);
    if (rc < 0) {
        char who[CN_WHOSE_TEXT_MAX];
        while (opened > 0)
            close(fds[--opened]);
        if (rc == -EADDRINUSE) {
            cn_whose_port(port, who);
            return cn_err_set(err, rc, "port %u is taken by %s", port, who);
        }
        cn_err_context(err, "listen on %s port %u", any ? "*" : host, port);
        return rc;
    }
    *bound_port = port;
    return 0;
}

/* --- the server ------------------------------------------------------------------------- */

static void limits_fill(struct cn_http_limits *limits)
{
    const struct cn_http_limits *fallback = &cn_http_limits_default;
#define FILL(field) limits->field = limits->field ? limits->field : fallback->field
    FILL(target_size_max);
    FILL(head_size_max);
    FILL(header_count_max);
    FILL(body_size_max);
    FILL(drain_size_max);
    FILL(output_high_bytes);
    FILL(output_size_max);
    FILL(input_high_bytes);
    FILL(connection_count_max);
    FILL(head_timeout_ms);
    FILL(idle_timeout_ms);
    FILL(body_timeout_ms);
    FILL(write_timeout_ms);
    FILL(linger_timeout_ms);
#undef FILL
}

void cn_http_server_tick(struct cn_http_server *server, uint64_t now_ms)
{
    cn_loop_assert_owner(server->loop);
    server->tick_ms = now_ms;
    for (int i = DEADLINE_NONE + 1; i < DEADLINE_COUNT; i++) {
        struct cn_list *list = &server->deadlines[i];
        /* Expiring one may arm it again, at the end of a list and in the future. */
        while (!cn_list_empty(list)) {
            struct conn *conn = CN_CONTAINER_OF(list->next, struct conn, deadline_link);
            if (conn->deadline_ms > now_ms)
                break;
            conn_expire(conn);
        }
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct cn_http_server *server = timer->data;
    cn_http_server_tick(server, uv_now(server->loop));
    if (CN_DEBUG_CHECKS)
        cn_http_server_check(server);
}

/* A quarter of the shortest time-out, so that none is late by more. */
static uint64_t tick_ms(const struct cn_http_limits *limits)
{
    unsigned shortest = TICK_MS_MAX * 4;
    const unsigned all[] = {limits->head_timeout_ms, limits->idle_timeout_ms,
                            limits->body_timeout_ms, limits->write_timeout_ms,
                            limits->linger_timeout_ms};
    for (size_t i = 0; i < CN_ARRAY_COUNT(all); i++)
        if (all[i] < shortest)
            shortest = all[i];
    return shortest < 4 ? 1 : shortest / 4;
}

int cn_http_server_new(uv_loop_t *loop, const struct cn_http_server_options *options,
                       struct cn_http_server **result, struct cn_err *err)
{
    cn_loop_assert_owner(loop);
    CN_ASSERT(options->callbacks.on_request);
    (void)err; /* nothing below can fail today; callers are ready for the day it does */
    struct cn_http_server *server = CN_NEW(struct cn_http_server);
    server->loop = loop;
    server->limits = options->limits;
    limits_fill(&server->limits);
    server->callbacks = options->callbacks;
    server->data = options->data;
    server->tls = options->tls ? cn_tls_context_ref(options->tls) : NULL;
    cn_list_init(&server->conns);
    cn_list_init(&server->spare_conns);
    cn_list_init(&server->spare_requests);
    for (int i = 0; i < DEADLINE_COUNT; i++)
        cn_list_init(&server->deadlines[i]);
    server->lane = cn_stream_lane_new(loop, server_check_done, server);
    CN_ASSERT(uv_tcp_init(loop, &server->listener) == 0);
    CN_ASSERT(uv_timer_init(loop, &server->timer) == 0);
    server->listener.data = server->timer.data = server;
    uint64_t every_ms = tick_ms(&server->limits);
    CN_ASSERT(uv_timer_start(&server->timer, on_timer, every_ms, every_ms) == 0);
    uv_unref((uv_handle_t *)&server->timer);
    *result = server;
    return 0;
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct cn_http_server *server = listener->data;
    if (status < 0) {
        /* Out of descriptors, say: once a second is enough to know. */
        uint64_t now_ms = uv_now(server->loop);
        if (now_ms >= server->accept_warn_ms) {
            cn_warn("cannot accept a connection: %s", uv_strerror(status));
            server->accept_warn_ms = now_ms + 1000;
        }
        return;
    }
    conn_accept(server);
}

int cn_http_server_listen(struct cn_http_server *server, int fd, struct cn_err *err)
{
    cn_loop_assert_owner(server->loop);
    CN_ASSERT(!server->listening);
    int rc = uv_tcp_open(&server->listener, fd);
    if (rc < 0) {
        close(fd);
        return cn_err_set(err, rc, "listening socket: %s", uv_strerror(rc));
    }
    rc = uv_listen((uv_stream_t *)&server->listener, BACKLOG, on_connection);
    if (rc < 0)
        return cn_err_set(err, rc, "listen: %s", uv_strerror(rc));
    server->listening = true;
    return 0;
}

void *cn_http_server_data(const struct cn_http_server *server)
{
    return server->data;
}

struct cn_stream_lane *cn_http_server_streams(struct cn_http_server *server)
{
    return server->lane;
}

void cn_http_server_stats(const struct cn_http_server *server, struct cn_http_stats *stats)
{
    *stats = server->stats;
    stats->connection_count = (uint32_t)cn_stream_lane_count(server->lane);
}

void cn_http_server_check(const struct cn_http_server *server)
{
    size_t count = 0, busy = 0, timed = 0, armed = 0;
    CN_LIST_FOREACH(&server->conns, node)
    {
        const struct conn *conn = CN_CONTAINER_OF(node, struct conn, link);
        CN_ASSERT(conn->server == server && (!conn->req || conn->req->conn == conn));
        count++;
        busy += conn->req != NULL;
        timed += conn->deadline != DEADLINE_NONE;
    }
    for (int i = DEADLINE_NONE + 1; i < DEADLINE_COUNT; i++)
        armed += cn_list_length(&server->deadlines[i]);
    CN_ASSERT(server->conn_count == count && count <= cn_stream_lane_count(server->lane));
    CN_ASSERT(server->stats.busy_count == busy && busy <= server->request_count);
    CN_ASSERT(timed == armed);
    CN_ASSERT(server->spare_conn_count == cn_list_length(&server->spare_conns));
    CN_ASSERT(server->spare_request_count == cn_list_length(&server->spare_requests));
}

size_t cn_http_server_bytes(const struct cn_http_server *server)
{
    size_t bytes = 0;
    CN_LIST_FOREACH(&server->conns, link)
    {
        const struct conn *conn = CN_CONTAINER_OF(link, struct conn, link);
        bytes += conn->state == CONN_CLOSED ? 0 : cn_stream_queued(conn->stream);
    }
    return bytes;
}

/* NULL: less than `least` waits for everyone. */
static struct conn *slowest(struct cn_http_server *server, size_t least)
{
    struct conn *found = NULL;
    CN_LIST_FOREACH(&server->conns, link)
    {
        struct conn *conn = CN_CONTAINER_OF(link, struct conn, link);
        size_t bytes = conn->state == CONN_CLOSED ? 0 : cn_stream_queued(conn->stream);
        if (bytes < least)
            continue;
        found = conn;
        least = bytes + 1;
    }
    return found;
}

size_t cn_http_server_relieve(struct cn_http_server *server, uint64_t bytes)
{
    cn_loop_assert_owner(server->loop);
    size_t count = 0;
    struct conn *conn;
    for (uint64_t freed = 0; freed < bytes && (conn = slowest(server, CN_HTTP_SLOW_MIN)); count++) {
        freed += cn_stream_queued(conn->stream);
        conn_kill(conn, CN_EOVERLOADED);
    }
    return count;
}

const char *server_date(struct cn_http_server *server)
{
    uint64_t now_ms = uv_now(server->loop);
    if (now_ms < server->date_until_ms)
        return server->date;
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char text[64]; /* strftime() would use the locale; the compiler fears for five-digit years */
    snprintf(text, sizeof(text), "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + tm.tm_wday * 3,
             tm.tm_mday, months + tm.tm_mon * 3, tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
             tm.tm_sec);
    memcpy(server->date, text, DATE_SIZE);
    server->date_until_ms = now_ms + 1000 - (uint64_t)now.tv_nsec / 1000000;
    return server->date;
}

/* --- the end ---------------------------------------------------------------------------- */

static void on_lane_freed(void *data)
{
    struct cn_http_server *server = data;
    struct cn_list *link;
    while ((link = cn_list_take_front(&server->spare_conns)) != NULL)
        cn_free(CN_CONTAINER_OF(link, struct conn, link));
    while ((link = cn_list_take_front(&server->spare_requests)) != NULL)
        cn_free(CN_CONTAINER_OF(link, struct request, link));
    cn_tls_context_unref(server->tls);
    void (*cb)(void *data) = server->close_cb;
    void *cb_data = server->close_data;
    cn_free(server);
    if (cb)
        cb(cb_data);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct cn_http_server *server = handle->data;
    server->handle_count--;
    server_check_done(server);
}

void server_check_done(void *data)
{
    struct cn_http_server *server = data;
    if (cn_stream_lane_count(server->lane) > 0)
        return;
    if (server->draining && server->drain_cb) {
        void (*cb)(void *data) = server->drain_cb;
        server->drain_cb = NULL;
        cb(server->drain_data);
    }
    if (server->closing && !server->freeing && server->handle_count == 0 &&
        server->request_count == 0) {
        server->freeing = true;
        cn_stream_lane_free(server->lane, on_lane_freed, server);
    }
}

static void stop_listening(struct cn_http_server *server)
{
    if (uv_is_closing((uv_handle_t *)&server->listener))
        return;
    server->handle_count++;
    uv_close((uv_handle_t *)&server->listener, on_handle_closed);
}

void cn_http_server_drain(struct cn_http_server *server, void (*cb)(void *data), void *data)
{
    cn_loop_assert_owner(server->loop);
    CN_ASSERT(!server->closing && !server->draining);
    server->draining = true;
    server->drain_cb = cb;
    server->drain_data = data;
    stop_listening(server); /* its close callback finds out if nothing is open */
    CN_LIST_FOREACH(&server->conns, link)
    {
        conn_close_idle(CN_CONTAINER_OF(link, struct conn, link));
    }
}

void cn_http_server_close(struct cn_http_server *server, void (*cb)(void *data), void *data)
{
    cn_loop_assert_owner(server->loop);
    CN_ASSERT(!server->closing);
    server->closing = true;
    server->close_cb = cb;
    server->close_data = data;
    stop_listening(server);
    server->handle_count++;
    uv_close((uv_handle_t *)&server->timer, on_handle_closed);
    CN_LIST_FOREACH(&server->conns, link)
    {
        conn_kill(CN_CONTAINER_OF(link, struct conn, link), CN_ECLOSED);
    }
}

/* --- small things of requests ------------------------------------------------------------ */

void cn_http_request_url(const struct cn_http_request *req, struct cn_buf *out)
{
    cn_buf_reserve(out, 32 + req->host.size + req->target.size);
    cn_buf_append_str(out, req->https ? "https://" : "http://");
    if (req->host.size)
        cn_buf_append(out, req->host.data, req->host.size);
    else
        cn_buf_append_str(out, "localhost");
    if (!req->target.size || req->target.data[0] != '/')
        cn_buf_append_byte(out, '/'); /* "*" of OPTIONS */
    cn_buf_append(out, req->target.data, req->target.size);
}

const struct cn_http_header *cn_http_request_find(const struct cn_http_request *req,
                                                  const char *lower_name)
{
    size_t size = strlen(lower_name);
    for (size_t i = 0; i < req->header_count; i++) {
        const struct cn_http_header *header = &req->headers[i];
        if (header->name_size == size && memcmp(header->name, lower_name, size) == 0)
            return header;
    }
    return NULL;
}

const char *cn_http_request_remote(struct cn_http_request *public, uint16_t *port)
{
    struct request *req = (struct request *)public;
    if (req->conn)
        return cn_stream_remote(req->conn->stream, port);
    if (port)
        *port = req->remote_port;
    return req->remote;
}
