/* SPDX-License-Identifier: Apache-2.0 */
/* net/http_conn.c - the life of a connection and of its requests.
 *
 *   HANDSHAKE ──► IDLE ──► HEAD ──► BUSY ──► SKIP       SKIP: the unread rest of a body
 *                  ▲                  │         │
 *                  ├──────────────────┴─────────┤        the connection stays
 *                  │
 *                FLUSH ◄── IDLE, HEAD, BUSY, SKIP        too much is queued, or the answer is
 *                  │                                     the last one (4xx, Connection: close)
 *                  └──► LINGER ──► CLOSED                see C5
 *
 * Every state goes to CLOSED on an error; IDLE also when it is idle for too long.
 *
 *  C1  One request at a time: `req` is set exactly in BUSY.
 *  C2  conn_pump() is the only place that starts a request or delivers to a
 *      pending read; it runs from the loop and never nests, so a handler is
 *      never entered from inside a call it makes.
 *  C3  Input is taken in order from `view`; what is left when on_data ends is
 *      moved to `input`, and the socket is paused past input_high_bytes.
 *  C4  A request is freed when the handler has released it and the response is
 *      complete or aborted (conn == NULL), whichever is later, exactly once.
 *  C5  After a response that ends the connection while input may still come, the
 *      close lingers: an early close() would make the kernel send RST, which
 *      can destroy the answer before the client has read it.
 *  C6  What a request says of itself, its client's address included, it says until it is
 *      freed: the address is asked for while there surely is a connection, and the
 *      request takes a copy along when it leaves it. */
#include "net/http_conn.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"

#define SPARE_CONN_MAX 256
#define SPARE_REQUEST_MAX 256
#define REFUSED_COUNT_MAX 64 /* connections over the limit that wait to read their 503 */
#define LINGER_SIZE_MAX (1 << 20)
#define INPUT_KEEP_SIZE 1024 /* a larger input buffer is freed once it is empty */

static void conn_pump(struct conn *conn);
static void conn_next(struct conn *conn);
static void conn_flush_then(struct conn *conn, bool closes);
static const struct cn_stream_callbacks stream_callbacks;

/* --- state ------------------------------------------------------------------------------ */

#define TO(state) (1u << (state))
static const unsigned moves[CONN_STATE_COUNT] = {
    [CONN_HANDSHAKE] = TO(CONN_IDLE) | TO(CONN_CLOSED),
    [CONN_IDLE] = TO(CONN_HEAD) | TO(CONN_BUSY) | TO(CONN_FLUSH) | TO(CONN_CLOSED),
    [CONN_HEAD] = TO(CONN_IDLE) | TO(CONN_BUSY) | TO(CONN_FLUSH) | TO(CONN_CLOSED),
    [CONN_BUSY] = TO(CONN_IDLE) | TO(CONN_SKIP) | TO(CONN_FLUSH) | TO(CONN_CLOSED),
    [CONN_SKIP] = TO(CONN_IDLE) | TO(CONN_FLUSH) | TO(CONN_CLOSED),
    [CONN_FLUSH] = TO(CONN_IDLE) | TO(CONN_LINGER) | TO(CONN_CLOSED),
    [CONN_LINGER] = TO(CONN_CLOSED),
};

static void conn_set_state(struct conn *conn, enum conn_state state)
{
    CN_ASSERT(moves[conn->state] & TO(state));
    conn->state = state;
}

void conn_arm(struct conn *conn, enum conn_deadline deadline)
{
    cn_list_remove(&conn->deadline_link);
    conn->deadline = deadline;
    if (deadline == DEADLINE_NONE)
        return;
    const struct cn_http_limits *limits = &conn->server->limits;
    const unsigned durations[DEADLINE_COUNT] = {
        [DEADLINE_HEAD] = limits->head_timeout_ms,     [DEADLINE_IDLE] = limits->idle_timeout_ms,
        [DEADLINE_BODY] = limits->body_timeout_ms,     [DEADLINE_WRITE] = limits->write_timeout_ms,
        [DEADLINE_LINGER] = limits->linger_timeout_ms,
    };
    uint64_t now_ms = uv_now(conn->server->loop);
    if (now_ms < conn->server->tick_ms)
        now_ms = conn->server->tick_ms;
    conn->deadline_ms = now_ms + durations[deadline];
    if (deadline == DEADLINE_WRITE)
        conn->deadline_acked = cn_stream_acked(conn->stream);
    cn_list_push_back(&conn->server->deadlines[deadline], &conn->deadline_link);
}

/* --- requests --------------------------------------------------------------------------- */

/* NULL: no memory for a large head. */
static struct request *request_new(struct cn_http_server *server, const uint8_t *head,
                                   const struct cn_http_scan *scan, char **head_copy)
{
    struct cn_list *link = cn_list_take_front(&server->spare_requests);
    struct request *req;
    if (link) {
        server->spare_request_count--;
        req = CN_CONTAINER_OF(link, struct request, link);
    } else
        req = cn_alloc(sizeof(*req));
    memset(req, 0, offsetof(struct request, headers));
    cn_list_init(&req->link);
    req->public.server = server;
    req->public.headers = req->headers;
    *head_copy = req->head;
    if (scan->pos > REQUEST_INLINE_SIZE || scan->header_count > REQUEST_INLINE_HEADERS) {
        size_t headers_size = scan->header_count * sizeof(struct cn_http_header);
        req->large = cn_try_alloc(headers_size + scan->pos);
        if (!req->large) {
            cn_free(req);
            return NULL;
        }
        req->public.headers = (struct cn_http_header *)(void *)req->large;
        *head_copy = req->large + headers_size;
    }
    memcpy(*head_copy, head, scan->pos);
    server->request_count++;
    return req;
}

static void request_free(struct request *req)
{
    struct cn_http_server *server = req->public.server;
    cn_free(req->large);
    server->request_count--;
    if (server->spare_request_count < SPARE_REQUEST_MAX) {
        server->spare_request_count++;
        cn_list_push_front(&server->spare_requests, &req->link);
    } else
        cn_free(req);
    if (server->closing)
        server_check_done(server);
}

void request_detach(struct request *req)
{
    struct conn *conn = req->conn;
    CN_ASSERT(conn && conn->req == req);
    if (!req->released) { /* C6 */
        const char *remote = cn_stream_remote(conn->stream, &req->remote_port);
        size_t size = strnlen(remote, sizeof(req->remote) - 1);
        memcpy(req->remote, remote, size);
        req->remote[size] = 0;
    }
    conn->req = NULL;
    req->conn = NULL;
    req->body_done = conn->body_done;
    req->read_cb = NULL;
    req->drain_cb = NULL;
    conn->server->stats.busy_count--;
    if (req->released)
        request_free(req); /* C4 */
}

void cn_http_request_release(struct cn_http_request *public)
{
    cn_loop_assert_owner(public->server->loop);
    struct request *req = (struct request *)public;
    CN_ASSERT(!req->released);
    req->released = true;
    if (!req->conn) {
        request_free(req); /* C4 */
        return;
    }
    cn_http_abort(public); /* nobody is left to answer: the client must not wait for ever */
}

/* Detaches a request that got no whole answer and tells its handler. */
static void request_abort(struct conn *conn, int status)
{
    struct request *req = conn->req;
    struct cn_http_server *server = conn->server;
    server->stats.aborted_count++;
    bool tell = !req->released;
    request_detach(req);
    if (tell && req->public.on_abort)
        req->public.on_abort(&req->public, status);
    else if (tell && server->callbacks.on_abort)
        server->callbacks.on_abort(server, &req->public, status);
}

/* --- the end of a connection ------------------------------------------------------------ */

static void conn_close(struct conn *conn, bool reset)
{
    conn_set_state(conn, CONN_CLOSED);
    conn_arm(conn, DEADLINE_NONE);
    cn_stream_close(conn->stream, reset);
}

void conn_kill(struct conn *conn, int status)
{
    if (conn->state == CONN_CLOSED)
        return;
    conn_close(conn, true);
    if (conn->req)
        request_abort(conn, status);
}

static void conn_free(struct conn *conn)
{
    struct cn_http_server *server = conn->server;
    server->conn_count--;
    cn_list_remove(&conn->link);
    cn_list_remove(&conn->deadline_link);
    cn_buf_fini(&conn->input);
    if (server->spare_conn_count < SPARE_CONN_MAX) {
        server->spare_conn_count++;
        cn_list_push_front(&server->spare_conns, &conn->link);
    } else
        cn_free(conn);
}

static void on_closed(struct cn_stream *stream)
{
    struct conn *conn = cn_stream_owner(stream);
    CN_ASSERT(!conn->req);
    conn_free(conn);
}

void conn_close_idle(struct conn *conn)
{
    bool idle = conn->state == CONN_HANDSHAKE || (conn->state == CONN_IDLE && conn->view_size == 0);
    if (idle && cn_stream_queued(conn->stream) == 0)
        conn_close(conn, false);
    else if (idle && conn->state == CONN_IDLE)
        conn_flush_then(conn, true);
}

struct cn_stream *conn_hand_on(struct conn *conn, const struct cn_stream_callbacks *callbacks,
                               void *owner)
{
    struct cn_stream *stream = conn->stream;
    cn_stream_pause(stream);
    cn_stream_set_owner(stream, callbacks, owner);
    cn_stream_unread(stream, conn->view, conn->view_size);
    request_detach(conn->req);
    conn_set_state(conn, CONN_CLOSED);
    conn_arm(conn, DEADLINE_NONE);
    if (!conn->pumping)
        conn_free(conn); /* otherwise on_data or on_turn does, when the pump has returned */
    return stream;
}

/* The queue of a connection in CONN_FLUSH is empty. */
static void conn_flushed(struct conn *conn)
{
    if (!conn->flush_closes) {
        conn_next(conn);
        return;
    }
    /* C5: nothing can be unread if the client has sent exactly what we took. */
    if (conn->ended || (conn->body_done && conn->view_size == 0 && !conn->body_error)) {
        conn_close(conn, false);
        return;
    }
    conn_set_state(conn, CONN_LINGER);
    conn->skipped = 0;
    conn->view_size = 0;
    cn_buf_fini(&conn->input);
    conn_arm(conn, DEADLINE_LINGER);
    cn_stream_shutdown(conn->stream);
    cn_stream_resume(conn->stream);
}

/* Waits until the queue is out, then goes on or closes. */
static void conn_flush_then(struct conn *conn, bool closes)
{
    conn_set_state(conn, CONN_FLUSH);
    conn->flush_closes = closes;
    conn_arm(conn, DEADLINE_WRITE);
    cn_stream_want_drain(conn->stream);
}

/* Answers a request that never reaches the handler. */
static void conn_refuse(struct conn *conn, int status)
{
    conn->server->stats.bad_request_count++;
    conn->body_done = false; /* whatever follows is not understood: C5 */
    response_refuse(conn, status);
    conn_flush_then(conn, true);
}

/* --- between requests ------------------------------------------------------------------- */

/* Ready for the next request of the connection. */
static void conn_next(struct conn *conn)
{
    if (conn->server->draining && conn->view_size == 0) {
        if (cn_stream_queued(conn->stream) == 0)
            conn_close(conn, false);
        else
            conn_flush_then(conn, true);
        return;
    }
    conn_set_state(conn, CONN_IDLE);
    conn->scan = (struct cn_http_scan){0};
    conn->skip_empty = false;
    conn_arm(conn, DEADLINE_IDLE);
    if (conn->view_size > 0 && !conn->pumping)
        cn_stream_want_turn(conn->stream);
}

bool conn_can_continue(const struct conn *conn, bool response_is_whole)
{
    if (!conn->keep_alive || conn->server->draining || conn->body_error)
        return false;
    if (conn->body_done || !response_is_whole)
        return true;
    /* The client may or may not send a body that it was never invited to. */
    if (conn->send_continue)
        return false;
    return conn->body_chunked || conn->body_left <= conn->server->limits.drain_size_max;
}

void conn_response_done(struct conn *conn)
{
    bool go_on = conn_can_continue(conn, true);
    request_detach(conn->req);
    if (!go_on)
        conn_flush_then(conn, true);
    else if (!conn->body_done) {
        conn_set_state(conn, CONN_SKIP);
        conn->skipped = 0;
        conn_arm(conn, DEADLINE_BODY);
        cn_stream_resume(conn->stream);
        if (!conn->pumping)
            cn_stream_want_turn(conn->stream);
    } else if (cn_stream_queued(conn->stream) > conn->server->limits.output_high_bytes)
        conn_flush_then(conn, false);
    else
        conn_next(conn);
}

/* --- input ------------------------------------------------------------------------------ */

static void view_advance(struct conn *conn, size_t size)
{
    CN_ASSERT(size <= conn->view_size);
    conn->view += size;
    conn->view_size -= size;
}

/* Makes `input` hold exactly what is unread (C3). */
static void view_keep(struct conn *conn)
{
    struct cn_buf *input = &conn->input;
    bool inside =
        input->data && conn->view >= input->data && conn->view <= input->data + input->size;
    if (conn->view_size == 0) {
        if (input->capacity > INPUT_KEEP_SIZE)
            cn_buf_fini(input);
        input->size = 0;
    } else if (inside) {
        if (conn->view > input->data)
            cn_buf_consume(input, (size_t)(conn->view - input->data));
    } else {
        input->size = 0;
        cn_buf_append(input, conn->view, conn->view_size);
    }
    conn->view = input->data;
}

/* The next piece of the body out of `view`. */
static int body_next(struct conn *conn, const uint8_t **bytes, size_t *size)
{
    if (conn->body_error)
        return conn->body_error;
    if (conn->body_done)
        return CN_HTTP_READ_END;
    if (!conn->body_chunked) {
        if (conn->view_size == 0)
            return CN_HTTP_READ_PENDING;
        *bytes = conn->view;
        *size = conn->view_size < conn->body_left ? conn->view_size : (size_t)conn->body_left;
        view_advance(conn, *size);
        conn->body_left -= *size;
        conn->body_seen += *size;
        conn->body_done = conn->body_left == 0;
        return CN_HTTP_READ_DATA;
    }
    size_t used;
    int rc = cn_http_chunked_next(&conn->chunked, conn->view, conn->view_size, &used, bytes, size);
    view_advance(conn, used);
    if (rc == CN_HTTP_CHUNKED_DATA) {
        conn->body_seen += *size;
        if (conn->body_seen > conn->server->limits.body_size_max)
            rc = CN_ELIMIT;
    }
    if (rc < 0)
        conn->body_error = rc;
    if (rc == CN_HTTP_CHUNKED_END)
        conn->body_done = true;
    return rc; /* MORE, DATA and END have the values of PENDING, DATA and END */
}

static_assert((int)CN_HTTP_CHUNKED_MORE == CN_HTTP_READ_PENDING &&
                  (int)CN_HTTP_CHUNKED_DATA == CN_HTTP_READ_DATA &&
                  (int)CN_HTTP_CHUNKED_END == CN_HTTP_READ_END,
              "body_next() returns one for the other");

/* The framing of the body is lost. */
static void conn_body_failed(struct conn *conn)
{
    if (conn->req->begun) {
        conn_kill(conn, conn->body_error);
        return;
    }
    conn->server->stats.bad_request_count++;
    response_refuse(conn, conn->body_error == CN_ELIMIT ? 413 : 400);
    conn_flush_then(conn, true);
    request_abort(conn, conn->body_error);
}

int cn_http_request_read(struct cn_http_request *public, const uint8_t **bytes, size_t *size,
                         cn_http_read_cb cb)
{
    cn_loop_assert_owner(public->server->loop);
    struct request *req = (struct request *)public;
    struct conn *conn = req->conn;
    if (!conn)
        return req->body_done ? CN_HTTP_READ_END : CN_ECLOSED;
    CN_ASSERT(!req->read_cb);
    int rc = body_next(conn, bytes, size);
    if (rc < 0)
        cn_stream_want_turn(conn->stream); /* on_turn answers and aborts */
    if (rc != CN_HTTP_READ_PENDING) {
        if (conn->view_size < conn->server->limits.input_high_bytes)
            cn_stream_resume(conn->stream);
        return rc;
    }
    if (!cb)
        return CN_HTTP_READ_PENDING;
    req->read_cb = cb;
    if (conn->send_continue) {
        conn->send_continue = false;
        static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
        if (!req->begun)
            cn_stream_write(conn->stream, text, sizeof(text) - 1);
    }
    if (conn->deadline == DEADLINE_NONE)
        conn_arm(conn, DEADLINE_BODY);
    cn_stream_resume(conn->stream);
    return CN_HTTP_READ_PENDING;
}

void cn_http_request_read_stop(struct cn_http_request *public)
{
    struct request *req = (struct request *)public;
    struct conn *conn = req->conn;
    if (!req->read_cb)
        return;
    req->read_cb = NULL;
    if (conn->deadline == DEADLINE_BODY)
        conn_arm(conn, DEADLINE_NONE);
}

bool cn_http_request_body_done(const struct cn_http_request *public)
{
    const struct request *req = (const struct request *)public;
    return req->conn ? req->conn->body_done : req->body_done;
}

/* Gives the pending read what there is. False: nothing was there. */
static bool body_deliver(struct conn *conn)
{
    struct request *req = conn->req;
    const uint8_t *bytes = NULL;
    size_t size = 0;
    int rc = body_next(conn, &bytes, &size);
    if (rc == CN_HTTP_READ_PENDING) {
        if (conn->deadline == DEADLINE_BODY)
            conn_arm(conn, DEADLINE_BODY); /* bytes came, if only framing */
        return false;
    }
    if (conn->deadline == DEADLINE_BODY)
        conn_arm(conn, DEADLINE_NONE);
    cn_http_read_cb cb = req->read_cb;
    req->read_cb = NULL;
    cb(&req->public, rc, bytes, size);
    if (rc < 0 && conn->req == req)
        conn_body_failed(conn);
    return true;
}

/* Takes body bytes that nobody wants. False: there are not enough yet. */
static bool body_skip(struct conn *conn)
{
    const uint8_t *bytes;
    size_t size;
    int rc = body_next(conn, &bytes, &size);
    if (rc == CN_HTTP_READ_PENDING) {
        conn_arm(conn, DEADLINE_BODY);
        return false;
    }
    if (rc == CN_HTTP_READ_DATA)
        conn->skipped += size;
    if (rc < 0 || conn->skipped > conn->server->limits.drain_size_max)
        conn_flush_then(conn, true);
    else if (conn->body_done)
        conn_next(conn);
    return true;
}

/* A complete head is at the front of `view`: takes it apart and calls the handler. */
static void request_start(struct conn *conn)
{
    struct cn_http_server *server = conn->server;
    char *head;
    struct request *req = request_new(server, conn->view, &conn->scan, &head);
    if (!req) {
        conn_refuse(conn, 503);
        return;
    }
    struct cn_http_request *public = &req->public;
    struct cn_http_message message;
    message.headers = (struct cn_http_header *)public->headers;
    int status = cn_http_parse_head(&conn->scan, head, &server->limits, &message);
    view_advance(conn, conn->scan.pos);
    if (status == 0 && message.content_length > 0 &&
        (uint64_t)message.content_length > server->limits.body_size_max)
        status = 413;
    if (status != 0) {
        request_free(req);
        conn_refuse(conn, status);
        return;
    }
    public->method_text = message.method_text;
    public->target = message.target;
    public->host = message.host;
    public->header_count = message.header_count;
    public->content_length = message.content_length;
    public->method = message.method;
    public->version_minor = message.version_minor;
    public->https = cn_stream_is_tls(conn->stream);
    public->upgrade = message.upgrade;

    conn->keep_alive = message.keep_alive;
    conn->body_done = message.content_length == 0;
    conn->body_chunked = message.content_length < 0;
    conn->body_left = message.content_length > 0 ? (uint64_t)message.content_length : 0;
    conn->body_error = 0;
    conn->body_seen = 0;
    conn->chunked = (struct cn_http_chunked){0};
    conn->send_continue = message.expect_continue && !conn->body_done && conn->view_size == 0;
    conn->req = req;
    req->conn = conn;
    (void)cn_stream_remote(conn->stream, NULL); /* C6 */
    conn_set_state(conn, CONN_BUSY);
    conn_arm(conn, DEADLINE_NONE);
    server->stats.request_count++;
    server->stats.busy_count++;
    server->callbacks.on_request(server, public);
}

/* Looks for a head. False: it is not complete. */
static bool head_step(struct conn *conn)
{
    if (conn->view_size == 0)
        return false;
    /* One empty line before a request is forgiven (RFC 9112, 2.2). */
    if (!conn->skip_empty && conn->scan.pos == 0 && conn->view_size >= 2 &&
        memcmp(conn->view, "\r\n", 2) == 0) {
        conn->skip_empty = true;
        view_advance(conn, 2);
        if (conn->state == CONN_HEAD && conn->view_size == 0) {
            conn_set_state(conn, CONN_IDLE); /* that was no request yet */
            conn_arm(conn, DEADLINE_IDLE);
        }
        return true;
    }
    int rc = cn_http_scan_head(&conn->scan, conn->view, conn->view_size, &conn->server->limits);
    if (rc == 0) {
        if (conn->state == CONN_IDLE) {
            conn_set_state(conn, CONN_HEAD);
            conn_arm(conn, DEADLINE_HEAD);
        }
        return false;
    }
    if (rc == 1)
        request_start(conn);
    else
        conn_refuse(conn, rc);
    return true;
}

/* Goes as far as the input allows (C2). */
static void conn_pump(struct conn *conn)
{
    CN_ASSERT(!conn->pumping);
    conn->pumping = true;
    bool more = true;
    while (more) {
        switch (conn->state) {
        case CONN_IDLE:
        case CONN_HEAD:
            more = head_step(conn);
            break;
        case CONN_BUSY:
            more = conn->req->read_cb && body_deliver(conn);
            break;
        case CONN_SKIP:
            more = body_skip(conn);
            break;
        default:
            more = false;
            break;
        }
    }
    conn->pumping = false;
}

/* After input was taken: keeps the rest, and the client back if it is much. */
static void conn_settle(struct conn *conn)
{
    view_keep(conn);
    if (conn->state == CONN_CLOSED || conn->state == CONN_LINGER)
        return;
    bool wants_more = conn->state == CONN_HEAD || conn->state == CONN_SKIP ||
                      (conn->state == CONN_BUSY && conn->req->read_cb);
    if (conn->view_size >= conn->server->limits.input_high_bytes && !wants_more)
        cn_stream_pause(conn->stream);
    else
        cn_stream_resume(conn->stream);
}

/* --- what the stream tells -------------------------------------------------------------- */

static void on_data(struct cn_stream *stream, const uint8_t *bytes, size_t size)
{
    struct conn *conn = cn_stream_owner(stream);
    if (conn->state == CONN_LINGER) {
        conn->skipped += size;
        if (conn->skipped > LINGER_SIZE_MAX)
            conn_close(conn, false);
        return;
    }
    if (conn->view_size > 0) {
        view_keep(conn); /* a handler may have read since */
        cn_buf_append(&conn->input, bytes, size);
        conn->view = conn->input.data;
        conn->view_size = conn->input.size;
    } else {
        conn->view = bytes;
        conn->view_size = size;
    }
    conn_pump(conn);
    if (cn_stream_owner(stream) != conn) {
        conn_free(conn); /* handed on */
        return;
    }
    conn_settle(conn);
    if (conn->state == CONN_CLOSED)
        return;
    (void)cn_stream_flush(stream); /* an error comes back through on_end */
}

static void on_turn(struct cn_stream *stream)
{
    struct conn *conn = cn_stream_owner(stream);
    if (conn->state == CONN_BUSY && conn->body_error) {
        conn_body_failed(conn);
        return;
    }
    conn_pump(conn);
    if (cn_stream_owner(stream) == conn)
        conn_settle(conn);
    else
        conn_free(conn); /* handed on */
}

static void on_drain(struct cn_stream *stream)
{
    struct conn *conn = cn_stream_owner(stream);
    struct request *req = conn->req;
    if (conn->state == CONN_FLUSH)
        conn_flushed(conn);
    else if (conn->state == CONN_BUSY) {
        conn_arm(conn, req->read_cb ? DEADLINE_BODY : DEADLINE_NONE);
        void (*cb)(struct cn_http_request * public) = req->drain_cb;
        req->drain_cb = NULL;
        if (cb)
            cb(&req->public);
    }
}

static void on_end(struct cn_stream *stream, int status)
{
    struct conn *conn = cn_stream_owner(stream);
    conn->ended = true;
    if (conn->state == CONN_BUSY) {
        /* A client that ends its side no longer waits for an answer; one that half-closes on
         * purpose cannot be told from one that has gone. */
        conn_kill(conn, status == 0 ? CN_ECLOSED : status);
        return;
    }
    /* An answer that is already complete is still sent to a client that half-closed. */
    bool answer_left = status == 0 && cn_stream_queued(stream) > 0;
    if (answer_left && conn->state == CONN_FLUSH)
        conn->flush_closes = true;
    else if (answer_left && conn->state != CONN_LINGER)
        conn_flush_then(conn, true);
    else
        conn_close(conn, false);
}

static void on_secure(struct cn_stream *stream)
{
    struct conn *conn = cn_stream_owner(stream);
    conn_set_state(conn, CONN_IDLE);
    conn_arm(conn, DEADLINE_IDLE);
}

static const struct cn_stream_callbacks stream_callbacks = {
    .on_data = on_data,
    .on_end = on_end,
    .on_drain = on_drain,
    .on_turn = on_turn,
    .on_secure = on_secure,
    .on_closed = on_closed,
};

void conn_expire(struct conn *conn)
{
    switch (conn->deadline) {
    case DEADLINE_HEAD:
        if (conn->state == CONN_HEAD)
            conn_refuse(conn, 408);
        else
            conn_close(conn, true); /* a TLS handshake has no room for an answer */
        break;
    case DEADLINE_WRITE:
        if (cn_stream_acked(conn->stream) != conn->deadline_acked)
            conn_arm(conn, DEADLINE_WRITE);
        else
            conn_kill(conn, CN_ETIMEOUT);
        break;
    case DEADLINE_BODY:
        if (conn->req && !conn->req->begun) {
            conn->server->stats.bad_request_count++;
            response_refuse(conn, 408);
            conn_flush_then(conn, true);
            request_abort(conn, CN_ETIMEOUT);
        } else
            conn_kill(conn, CN_ETIMEOUT);
        break;
    default:
        conn_close(conn, false);
        break;
    }
}

void conn_accept(struct cn_http_server *server)
{
    struct cn_list *link = cn_list_take_front(&server->spare_conns);
    struct conn *conn;
    if (link) {
        server->spare_conn_count--;
        conn = CN_CONTAINER_OF(link, struct conn, link);
        memset(conn, 0, sizeof(*conn));
    } else
        conn = CN_NEW(struct conn);
    conn->server = server;
    cn_list_init(&conn->deadline_link);
    cn_list_push_back(&server->conns, &conn->link);
    size_t count = server->conn_count++;
    conn->stream = cn_stream_accept(server->lane, (uv_stream_t *)&server->listener, server->tls,
                                    &stream_callbacks, conn);
    if (!conn->stream) {
        conn_free(conn);
        return;
    }
    conn->body_done = true;
    conn->state = server->tls ? CONN_HANDSHAKE : CONN_IDLE;
    if (count >= server->limits.connection_count_max) {
        server->stats.rejected_count++;
        /* Refusing must stay cheap: no handshake, and not many of them lingering. */
        if (server->tls || count >= server->limits.connection_count_max + REFUSED_COUNT_MAX)
            conn_close(conn, true);
        else
            conn_refuse(conn, 503);
        return;
    }
    server->stats.accepted_count++;
    conn_arm(conn, server->tls ? DEADLINE_HEAD : DEADLINE_IDLE);
    cn_stream_resume(conn->stream);
}
