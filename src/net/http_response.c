/* SPDX-License-Identifier: Apache-2.0 */
/* net/http_response.c - what the server sends.
 *
 * A head is checked before anything of it is queued, then written straight into
 * the stream's queue, so a small answer is one buffer and one system call.
 *
 *  R1  Who frames the body is the server alone: Connection, Keep-Alive,
 *      Transfer-Encoding and Upgrade of the handler are left out, Content-Length
 *      is what is really sent.
 *  R2  HEAD, 204 and 304 never carry a body; 204 no Content-Length either.
 *  R3  HTTP/1.0 clients get no chunks: an unknown length ends with the connection.
 *  R4  A response that cannot be completed ends in a reset, never in something
 *      that a client could take for a whole one. */
#include "base/loop.h"
#include "net/http_conn.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hexdigit.h"
#include "base/mem.h"

#define FIXED_SIZE_MAX 256 /* status line, Date, length, Connection, empty line */

/* How a body is framed. */
enum framing {
    FRAMING_NONE,   /* no body and no length */
    FRAMING_LENGTH, /* Content-Length: response_left */
    FRAMING_GIVEN,  /* the handler's own Content-Length, if any, describes the missing body */
    FRAMING_CHUNKED,
    FRAMING_CLOSE,
};

/* --- writing text ----------------------------------------------------------------------- */

#define PUT_LITERAL(at, text) put((at), text, sizeof(text) - 1)

static char *put(char *at, const char *text, size_t size)
{
    memcpy(at, text, size);
    return at + size;
}

static char *put_number(char *at, uint64_t value)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[sizeof(digits) - ++count] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return put(at, digits + sizeof(digits) - count, count);
}

static char *put_hex(char *at, uint64_t value)
{
    char digits[16];
    size_t count = 0;
    do {
        digits[sizeof(digits) - ++count] = cn_hexdigit((unsigned)value);
        value >>= 4;
    } while (value > 0);
    return put(at, digits + sizeof(digits) - count, count);
}

static char *put_status(char *at, int status, const char *reason)
{
    if (status == 200 && !reason)
        return PUT_LITERAL(at, "HTTP/1.1 200 OK\r\n");
    if (!reason)
        reason = cn_http_reason(status);
    at = PUT_LITERAL(at, "HTTP/1.1 ");
    at = put_number(at, (unsigned)status);
    *at++ = ' ';
    at = put(at, reason, strlen(reason));
    return PUT_LITERAL(at, "\r\n");
}

/* --- heads ------------------------------------------------------------------------------ */

enum field { FIELD_OTHER, FIELD_OURS, FIELD_LENGTH, FIELD_DATE };

/* What the server thinks of a handler's field, by the length of its name first. */
static enum field field_of(const struct cn_http_header *header)
{
    const char *name = header->name;
    size_t size = header->name_size;
    switch (size) {
    case 4:
        return cn_http_name_equal(name, size, "date", 4) ? FIELD_DATE : FIELD_OTHER;
    case 7:
        return cn_http_name_equal(name, size, "upgrade", 7) ? FIELD_OURS : FIELD_OTHER;
    case 10:
        return cn_http_name_equal(name, size, "connection", 10) ||
                       cn_http_name_equal(name, size, "keep-alive", 10)
                   ? FIELD_OURS
                   : FIELD_OTHER;
    case 14:
        return cn_http_name_equal(name, size, "content-length", 14) ? FIELD_LENGTH : FIELD_OTHER;
    case 17:
        return cn_http_name_equal(name, size, "transfer-encoding", 17) ? FIELD_OURS : FIELD_OTHER;
    default:
        return FIELD_OTHER;
    }
}

/* Checks a head; on success `*size` is an upper bound of its text. */
static int head_check(const struct cn_http_head *head, size_t *size)
{
    size_t total = FIXED_SIZE_MAX;
    if (head->reason) {
        size_t reason_size = strlen(head->reason);
        if (!cn_http_value_valid(head->reason, reason_size))
            return CN_EINVALID;
        total += reason_size;
    }
    for (size_t i = 0; i < head->header_count; i++) {
        const struct cn_http_header *header = &head->headers[i];
        if (!cn_http_token_valid(header->name, header->name_size) ||
            !cn_http_value_valid(header->value, header->value_size))
            return CN_EINVALID;
        total += (size_t)header->name_size + header->value_size + 4;
    }
    *size = total;
    return 0;
}

static bool length_text_valid(const struct cn_http_header *header)
{
    for (size_t i = 0; i < header->value_size; i++)
        if (header->value[i] < '0' || header->value[i] > '9')
            return false;
    return header->value_size > 0 && header->value_size <= 18;
}

static char *put_headers(char *at, const struct cn_http_head *head, enum framing framing,
                         bool *has_date)
{
    bool has_length = false;
    for (size_t i = 0; i < head->header_count; i++) {
        const struct cn_http_header *header = &head->headers[i];
        enum field field = head->status == 101 ? FIELD_OTHER : field_of(header);
        if (field == FIELD_OURS)
            continue;
        if (field == FIELD_LENGTH) {
            if (framing != FRAMING_GIVEN || has_length || !length_text_valid(header))
                continue;
            has_length = true;
        }
        *has_date |= field == FIELD_DATE;
        at = put(at, header->name, header->name_size);
        at = PUT_LITERAL(at, ": ");
        at = put(at, header->value, header->value_size);
        at = PUT_LITERAL(at, "\r\n");
    }
    return at;
}

static char *put_head(char *at, struct conn *conn, const struct cn_http_head *head,
                      enum framing framing, uint64_t length)
{
    bool has_date = false;
    at = put_status(at, head->status, head->reason);
    at = put_headers(at, head, framing, &has_date);
    if (!has_date) {
        at = PUT_LITERAL(at, "Date: ");
        at = put(at, server_date(conn->server), DATE_SIZE);
        at = PUT_LITERAL(at, "\r\n");
    }
    if (framing == FRAMING_LENGTH) {
        at = PUT_LITERAL(at, "Content-Length: ");
        at = put_number(at, length);
        at = PUT_LITERAL(at, "\r\n");
    } else if (framing == FRAMING_CHUNKED)
        at = PUT_LITERAL(at, "Transfer-Encoding: chunked\r\n");
    if (head->status == 101)
        return PUT_LITERAL(at, "\r\n");
    if (!conn->keep_alive)
        at = PUT_LITERAL(at, "Connection: close\r\n");
    else if (conn->req && conn->req->public.version_minor == 0)
        at = PUT_LITERAL(at, "Connection: keep-alive\r\n");
    return PUT_LITERAL(at, "\r\n");
}

/* Queues a head of at most `size` bytes and leaves room for `extra` more, which the caller
 * writes at the returned place and counts in with cn_stream_commit(); NULL if both together
 * are too large for one reservation. */
static char *queue_head(struct conn *conn, const struct cn_http_head *head, enum framing framing,
                        uint64_t length, size_t size, size_t extra)
{
    if (size + extra <= CN_STREAM_RESERVE_MAX) {
        char *start = (char *)cn_stream_reserve(conn->stream, size + extra);
        char *end = put_head(start, conn, head, framing, length);
        cn_stream_commit(conn->stream, (size_t)(end - start));
        return end;
    }
    char *text = cn_alloc(size); /* what the script gave, and already holds in memory itself */
    char *end = put_head(text, conn, head, framing, length);
    cn_stream_write(conn->stream, text, (size_t)(end - text));
    cn_free(text);
    return NULL;
}

/* Decides framing and persistence, and queues the head. */
static int response_start(struct request *req, const struct cn_http_head *head, int64_t length,
                          bool whole, const void *body)
{
    struct conn *conn = req->conn;
    if (!conn)
        return CN_ECLOSED;
    size_t size;
    if (req->begun || head->status < 200 || head->status > 599 || head_check(head, &size) != 0)
        return CN_EINVALID;
    bool is_head = req->public.method == CN_HTTP_HEAD;
    enum framing framing;
    if (head->status == 204)
        framing = FRAMING_NONE;
    else if (head->status == 304 || (is_head && length <= 0))
        framing = FRAMING_GIVEN;
    else if (length >= 0)
        framing = FRAMING_LENGTH;
    else
        framing = req->public.version_minor > 0 ? FRAMING_CHUNKED : FRAMING_CLOSE;
    req->no_body = is_head || head->status == 204 || head->status == 304;
    req->begun = true;
    req->chunked = framing == FRAMING_CHUNKED && !req->no_body;
    req->response_left = req->no_body ? -1 : length;
    conn->keep_alive = conn_can_continue(conn, whole) && framing != FRAMING_CLOSE;
    bool with_body = body && !req->no_body;
    char *room =
        queue_head(conn, head, framing, (uint64_t)length, size, with_body ? (size_t)length : 0);
    if (with_body && room) {
        memcpy(room, body, (size_t)length);
        cn_stream_commit(conn->stream, (size_t)length);
    } else if (with_body)
        return 1; /* the body is too large to go with the head */
    return 0;
}

int cn_http_respond(struct cn_http_request *public, const struct cn_http_head *head,
                    const void *body, size_t body_size, cn_stream_release_cb release,
                    void *release_data)
{
    cn_loop_assert_owner(public->server->loop);
    struct request *req = (struct request *)public;
    int rc = response_start(req, head, (int64_t)body_size, true, body_size > 0 ? body : NULL);
    if (rc == 1 && release) {
        cn_stream_write_owned(req->conn->stream, body, body_size, release, release_data);
        release = NULL;
    } else if (rc == 1)
        cn_stream_write(req->conn->stream, body, body_size);
    if (release)
        release(release_data);
    if (rc < 0)
        return rc;
    conn_response_done(req->conn);
    return 0;
}

int cn_http_begin(struct cn_http_request *public, const struct cn_http_head *head,
                  int64_t content_length)
{
    cn_loop_assert_owner(public->server->loop);
    return response_start((struct request *)public, head, content_length < 0 ? -1 : content_length,
                          false, NULL);
}

static int write_check(const struct request *req, size_t size)
{
    if (!req->conn)
        return CN_ECLOSED;
    if (!req->begun || (req->response_left >= 0 && size > (uint64_t)req->response_left))
        return CN_EINVALID;
    if (cn_stream_queued(req->conn->stream) > req->conn->server->limits.output_size_max)
        return CN_EOVERLOADED;
    return 0;
}

int cn_http_write(struct cn_http_request *public, const void *bytes, size_t size,
                  cn_stream_release_cb release, void *release_data)
{
    cn_loop_assert_owner(public->server->loop);
    struct request *req = (struct request *)public;
    int rc = write_check(req, size);
    if (rc < 0 || size == 0 || req->no_body) {
        if (release)
            release(release_data);
        return rc < 0 ? rc : 1;
    }
    struct cn_stream *stream = req->conn->stream;
    if (req->response_left >= 0)
        req->response_left -= (int64_t)size;
    if (req->chunked) {
        char *start = (char *)cn_stream_reserve(stream, 32);
        char *end = put_hex(start, size);
        end = PUT_LITERAL(end, "\r\n");
        cn_stream_commit(stream, (size_t)(end - start));
    }
    if (release)
        cn_stream_write_owned(stream, bytes, size, release, release_data);
    else
        cn_stream_write(stream, bytes, size);
    if (req->chunked)
        cn_stream_write(stream, "\r\n", 2);
    if (cn_stream_queued(stream) < req->conn->server->limits.output_high_bytes)
        return 1;
    conn_arm(req->conn, DEADLINE_WRITE);
    cn_stream_want_drain(stream);
    return 0;
}

size_t cn_http_queued(const struct cn_http_request *public)
{
    const struct request *req = (const struct request *)public;
    return req->conn ? cn_stream_queued(req->conn->stream) : 0;
}

void cn_http_on_drain(struct cn_http_request *public, void (*cb)(struct cn_http_request *req))
{
    cn_loop_assert_owner(public->server->loop);
    struct request *req = (struct request *)public;
    if (!req->conn)
        return;
    req->drain_cb = cb;
    cn_stream_want_drain(req->conn->stream);
}

int cn_http_end(struct cn_http_request *public)
{
    cn_loop_assert_owner(public->server->loop);
    struct request *req = (struct request *)public;
    if (!req->conn)
        return CN_ECLOSED;
    if (!req->begun || req->response_left > 0) {
        cn_http_abort(public); /* R4 */
        return CN_EINVALID;
    }
    if (req->chunked)
        cn_stream_write(req->conn->stream, "0\r\n\r\n", 5);
    conn_response_done(req->conn);
    return 0;
}

void cn_http_abort(struct cn_http_request *public)
{
    cn_loop_assert_owner(public->server->loop);
    struct request *req = (struct request *)public;
    struct conn *conn = req->conn;
    if (!conn)
        return;
    conn->server->stats.aborted_count++;
    request_detach(req);
    conn_kill(conn, CN_EABORTED);
}

int cn_http_upgrade(struct cn_http_request *public, const struct cn_http_head *head,
                    const struct cn_stream_callbacks *callbacks, void *owner,
                    struct cn_stream **stream)
{
    cn_loop_assert_owner(public->server->loop);
    struct request *req = (struct request *)public;
    struct conn *conn = req->conn;
    size_t size;
    if (!conn)
        return CN_ECLOSED;
    if (req->begun || head->status != 101 || !conn->body_done || head_check(head, &size) != 0)
        return CN_EINVALID;
    (void)queue_head(conn, head, FRAMING_NONE, 0, size, 0);
    *stream = conn_hand_on(conn, callbacks, owner);
    return 0;
}

void response_refuse(struct conn *conn, int status)
{
    static const struct cn_http_header type = {
        .name = "Content-Type",
        .name_size = 12,
        .value = "text/plain; charset=utf-8",
        .value_size = 25,
    };
    char body[64];
    int size = snprintf(body, sizeof(body), "%d %s\n", status, cn_http_reason(status));
    struct cn_http_head head = {.status = status, .headers = &type, .header_count = 1};
    conn->keep_alive = false;
    char *room =
        queue_head(conn, &head, FRAMING_LENGTH, (uint64_t)size, FIXED_SIZE_MAX + 64, sizeof(body));
    bool is_head = conn->req && conn->req->public.method == CN_HTTP_HEAD;
    if (is_head)
        return;
    memcpy(room, body, (size_t)size);
    cn_stream_commit(conn->stream, (size_t)size);
}
