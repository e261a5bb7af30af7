/* SPDX-License-Identifier: Apache-2.0 */
/* net/http_conn.h - inside the HTTP server: connections and requests.
 *
 * Shared by server.c (listening, time-outs, drain), http_conn.c (the life of a
 * connection) and http_response.c (what is sent). Nobody else includes it. */
#ifndef CN_NET_HTTP_CONN_H
#define CN_NET_HTTP_CONN_H
#include "base/buf.h"
#include "base/list.h"
#include "net/http_parser.h"
#include "net/server.h"

/* What a connection is doing; drawing and rules in http_conn.c. */
enum conn_state {
    CONN_HANDSHAKE,
    CONN_IDLE,
    CONN_HEAD,
    CONN_BUSY,
    CONN_SKIP,
    CONN_FLUSH,
    CONN_LINGER,
    CONN_CLOSED,
    CONN_STATE_COUNT
};

/* Which clock runs for a connection. Each kind has one duration, so a list that is appended to
 * is ordered by time, and arming costs a few stores. */
enum conn_deadline {
    DEADLINE_NONE,
    DEADLINE_HEAD,
    DEADLINE_IDLE,
    DEADLINE_BODY,
    DEADLINE_WRITE,
    DEADLINE_LINGER,
    DEADLINE_COUNT
};

#define REQUEST_INLINE_SIZE 2048
#define REQUEST_INLINE_HEADERS 32
#define REMOTE_SIZE 46 /* the longest address as text */
#define DATE_SIZE 29   /* "Sun, 06 Nov 1994 08:49:37 GMT" */

struct conn;

struct request {
    struct cn_http_request public; /* first */
    struct conn *conn;             /* NULL once the response is complete or aborted */
    bool released;                 /* by the handler */
    bool body_done;                /* once conn is NULL: the body had been read to its end */
    bool begun;                    /* a response head is in the queue */
    bool chunked;                  /* the response is */
    bool no_body;                  /* HEAD, 204, 304: what is written is counted and dropped */
    int64_t response_left;         /* bytes still to be written; -1: unknown */
    cn_http_read_cb read_cb;       /* a read pends */
    void (*drain_cb)(struct cn_http_request *req);
    uint16_t remote_port; /* once conn is NULL: C6 */
    char remote[REMOTE_SIZE];
    char *large; /* owned: head and headers that do not fit below */
    struct cn_http_header headers[REQUEST_INLINE_HEADERS];
    char head[REQUEST_INLINE_SIZE];
    struct cn_list link; /* among the spare ones */
};

struct conn {
    struct cn_http_server *server;
    struct cn_stream *stream; /* owned until closed or handed on */
    struct request *req;      /* the one being answered, or NULL */
    struct cn_list link;      /* in server->conns */
    struct cn_list deadline_link;
    enum conn_deadline deadline;
    uint64_t deadline_ms;
    uint64_t deadline_acked; /* cn_stream_acked() when DEADLINE_WRITE was armed */
    enum conn_state state;
    bool pumping;       /* inside conn_pump(): it will see every change of state */
    bool keep_alive;    /* another request may follow */
    bool skip_empty;    /* an empty line before this head has been skipped already */
    bool send_continue; /* the client waits for 100 Continue */
    bool flush_closes;  /* CONN_FLUSH ends in a close, not in the next request */
    bool ended;         /* the client has ended its side */
    /* Input that nobody has taken yet: `view` points into the lane's read buffer while on_data
     * runs, and into `input` otherwise. */
    const uint8_t *view;
    size_t view_size;
    struct cn_buf input;
    struct cn_http_scan scan;
    /* The request body. */
    bool body_done;
    bool body_chunked;
    int body_error;     /* CN_EPROTOCOL, CN_ELIMIT: framing is lost */
    uint64_t body_left; /* of a body with Content-Length */
    uint64_t body_seen; /* bytes of data so far */
    uint64_t skipped;   /* bytes taken by CONN_SKIP or CONN_LINGER */
    struct cn_http_chunked chunked;
};

struct cn_http_server {
    uv_loop_t *loop;
    struct cn_stream_lane *lane;
    struct cn_http_limits limits;
    struct cn_http_callbacks callbacks;
    void *data;
    struct cn_tls_context *tls;
    uv_tcp_t listener;
    uv_timer_t timer;
    bool listening;
    bool draining, closing, freeing;
    unsigned handle_count;
    void (*drain_cb)(void *data);
    void *drain_data;
    void (*close_cb)(void *data);
    void *close_data;
    struct cn_list conns;
    size_t conn_count; /* their number: upgraded ones are not among them */
    struct cn_list deadlines[DEADLINE_COUNT];
    uint64_t tick_ms; /* of the last cn_http_server_tick(); ahead of uv_now() only in tests */
    struct cn_list spare_conns, spare_requests;
    size_t spare_conn_count, spare_request_count;
    size_t request_count; /* not yet freed */
    struct cn_http_stats stats;
    uint64_t accept_warn_ms; /* of uv_now: no warning before it */
    uint64_t date_until_ms;  /* of uv_now: `date` is right until then */
    char date[DATE_SIZE + 1];
};

/* http_conn.c */
void conn_accept(struct cn_http_server *server);
void conn_expire(struct conn *conn);
/* Resets it; a running request gets on_abort. */
void conn_kill(struct conn *conn, int status);
/* Closes it if it is between requests. */
void conn_close_idle(struct conn *conn);
void conn_arm(struct conn *conn, enum conn_deadline deadline);
/* The response is in the queue, all of it: detaches the request and goes on. */
void conn_response_done(struct conn *conn);
/* The connection can carry another request after the one at hand. */
bool conn_can_continue(const struct conn *conn, bool response_is_whole);
void request_detach(struct request *req);
/* Gives the stream away, with what was read ahead; the connection is no more. */
struct cn_stream *conn_hand_on(struct conn *conn, const struct cn_stream_callbacks *callbacks,
                               void *owner);

/* http_response.c */
/* Queues the server's own answer to a request that it refuses; the connection closes after it. */
void response_refuse(struct conn *conn, int status);

/* server.c */
const char *server_date(struct cn_http_server *server);
void server_check_done(void *server); /* whether a drain or a close is complete */

#endif
