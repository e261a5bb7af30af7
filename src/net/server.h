/* SPDX-License-Identifier: Apache-2.0 */
/* net/server.h - the HTTP/1.1 server of one lane.
 *
 * Every lane has its own server with its own listening socket on the same
 * address (SO_REUSEPORT, cn_http_bind). A request is given to `on_request` when
 * its head is complete; the handler answers it there or at any later time.
 *
 *     on_request ──► read the body (0..n) ──► respond, or begin / write.. / end ──► release
 *                         └── on_abort at any time before the response is complete
 *
 * Requests of one connection are handled one after the other; answers to
 * pipelined requests leave in one write where possible.
 *
 * Threads:   the lane that owns the loop.
 * Ownership: a request belongs to the server and, until cn_http_request_release(),
 *            also to the handler, which must release every request exactly once,
 *            aborted ones too. It may do so long after the response has ended.
 *            After an abort, calls on the request are harmless and return CN_ECLOSED. */
#ifndef CN_NET_SERVER_H
#define CN_NET_SERVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "net/http.h"
#include "net/stream.h"

struct cn_buf;
struct cn_http_server;
struct cn_tls_context;

/* The part of a request that a handler may read (not write, but for `data`). All text
 * stays valid until the request is released. */
struct cn_http_request {
    struct cn_http_server *server;
    struct cn_http_text method_text;
    struct cn_http_text target; /* path and query: "/a?b"; "*" of OPTIONS */
    struct cn_http_text host;   /* of the Host field or an absolute target; empty in HTTP/1.0 */
    const struct cn_http_header *headers; /* in order of arrival, duplicates kept */
    size_t header_count;
    int64_t content_length; /* -1: unknown (chunked); 0: there is no body */
    enum cn_http_method method;
    uint8_t version_minor; /* HTTP/1.0 or HTTP/1.1 */
    bool https;
    bool upgrade; /* Connection: upgrade and an Upgrade field are present */
    void *data;   /* the handler's own; NULL at first */
    /* The handler's own: called instead of the server's on_abort for this request; NULL at first */
    void (*on_abort)(struct cn_http_request *req, int status);
};

struct cn_http_callbacks {
    void (*on_request)(struct cn_http_server *server, struct cn_http_request *req);
    /* The client went away, stalled or broke the protocol (or the server is closing) before
     * the response was complete. Runs at most once, never inside a call on the request.
     * A pending read or drain callback is not called any more. May be NULL. */
    void (*on_abort)(struct cn_http_server *server, struct cn_http_request *req, int status);
};

struct cn_http_server_options {
    struct cn_http_limits limits; /* zero fields: defaults */
    struct cn_http_callbacks callbacks;
    void *data;                 /* for cn_http_server_data() */
    struct cn_tls_context *tls; /* NULL: plain HTTP; the server keeps its own reference */
};

/* Opens `count` listening sockets on one address, one for each lane. `host` is a name or an
 * address ("" or "*": all of IPv4, "::": all), `port` 0 picks a free one. Fails with EADDRINUSE if
 * anyone else listens there, although the sockets share it among themselves. */
int cn_http_bind(const char *host, uint16_t port, int *fds, size_t count, uint16_t *bound_port,
                 struct cn_err *err);

int cn_http_server_new(uv_loop_t *loop, const struct cn_http_server_options *options,
                       struct cn_http_server **server, struct cn_err *err);
/* Starts accepting on `fd` (from cn_http_bind), which becomes the server's. */
int cn_http_server_listen(struct cn_http_server *server, int fd, struct cn_err *err);
void *cn_http_server_data(const struct cn_http_server *server);
/* Where its connections are; those that arrive from other lanes go there too. */
struct cn_stream_lane *cn_http_server_streams(struct cn_http_server *server);

/* Stops accepting, closes idle connections, lets running requests finish (their answers say
 * Connection: close) and calls back when no connection is left; upgraded ones count too,
 * until their owners close them. */
void cn_http_server_drain(struct cn_http_server *server, void (*cb)(void *data), void *data);
/* Resets what is still open (requests get on_abort), waits for their release, frees the
 * server, calls back. Upgraded streams must be closed by their owners before it ends. */
void cn_http_server_close(struct cn_http_server *server, void (*cb)(void *data), void *data);

/* Applies time-outs as of `now_ms` (of uv_now). The server's own timer calls it; tests call it
 * with a later time, which then counts as the present until uv_now() has caught up. */
void cn_http_server_tick(struct cn_http_server *server, uint64_t now_ms);

struct cn_http_stats {
    uint64_t accepted_count, rejected_count, request_count, bad_request_count, aborted_count;
    uint32_t connection_count; /* open now, upgraded ones included */
    uint32_t busy_count;       /* requests whose response is not complete */
};
void cn_http_server_stats(const struct cn_http_server *server, struct cn_http_stats *stats);
/* W3 of base/loop.h: the counts of connections and requests against the lists. */
void cn_http_server_check(const struct cn_http_server *server);
/* What waits for clients that read slowly. */
size_t cn_http_server_bytes(const struct cn_http_server *server);
/* Memory is short: cuts the connections for which most waits, until `bytes` have been given back or
 * none has as much as CN_HTTP_SLOW_MIN waiting. Returns how many. */
#define CN_HTTP_SLOW_MIN (256u << 10)
size_t cn_http_server_relieve(struct cn_http_server *server, uint64_t bytes);

/* --- the request ------------------------------------------------------------------------ */

/* The first header with this (lower-case) name, or NULL. */
/* Its URL as the client meant it, not yet normalised by a parser of URLs. */
void cn_http_request_url(const struct cn_http_request *req, struct cn_buf *out);
const struct cn_http_header *cn_http_request_find(const struct cn_http_request *req,
                                                  const char *lower_name);
/* The client's address as text, also once it has gone ("": it has none), and port (if not NULL).
 * Borrowed. */
const char *cn_http_request_remote(struct cn_http_request *req, uint16_t *port);

enum cn_http_read {
    CN_HTTP_READ_PENDING = 0, /* nothing yet: the callback runs once, later */
    CN_HTTP_READ_DATA = 1,    /* bytes are there now; no callback */
    CN_HTTP_READ_END = 2,     /* the body is complete; no callback */
};

/* Later result of a read: CN_HTTP_READ_DATA with bytes, CN_HTTP_READ_END, or negative
 * (CN_ELIMIT: the body passed its limit; CN_EPROTOCOL; the answer, if none was begun, has been
 * given and on_abort follows). */
typedef void (*cn_http_read_cb)(struct cn_http_request *req, int status, const uint8_t *bytes,
                                size_t size);

/* Pulls the next piece of the body. What has already arrived is returned at once, so a small
 * body costs no extra turn. The bytes stay valid until the next read or until the handler
 * returns to the loop. The client is held back while nobody reads. At most one read pends. With
 * a NULL callback PENDING only says that nothing has arrived, and nothing pends. The rest of a
 * body cannot be read once the response is complete: CN_ECLOSED. */
int cn_http_request_read(struct cn_http_request *req, const uint8_t **bytes, size_t *size,
                         cn_http_read_cb cb);
/* Whoever waits for the rest of the body is not called any more, and another may read. */
void cn_http_request_read_stop(struct cn_http_request *req);
/* There is no body, or all of it has been read. */
bool cn_http_request_body_done(const struct cn_http_request *req);

/* The handler is finished with it. If the response is not complete, it is aborted. */
void cn_http_request_release(struct cn_http_request *req);

/* --- the response ----------------------------------------------------------------------- */

/* Fields the server sets itself and leaves out of what it is given: Connection, Keep-Alive,
 * Transfer-Encoding, Upgrade, Content-Length (used for HEAD and 304, where there is no body to
 * measure). Date is added unless given. Every function refuses an invalid status (not
 * 200..599), name or value with CN_EINVALID and sends nothing. */
struct cn_http_head {
    int status;
    const struct cn_http_header *headers;
    size_t header_count;
    const char *reason; /* NULL: the usual one; what a header's value may hold */
};

/* The whole answer at once. The body is borrowed for the call, unless `release` is given:
 * then it is owned, not copied when large, and given back exactly once, whatever is returned. */
int cn_http_respond(struct cn_http_request *req, const struct cn_http_head *head, const void *body,
                    size_t body_size, cn_stream_release_cb release, void *release_data);

/* Streaming. `content_length` -1 if unknown: chunked, or until close for HTTP/1.0. */
int cn_http_begin(struct cn_http_request *req, const struct cn_http_head *head,
                  int64_t content_length);
/* Queues a piece; ownership as above. Returns 1 to go on, 0 if it was taken but the queue is
 * full: the drain callback runs once when there is room. CN_EOVERLOADED: the queue is past its
 * bound, the piece was refused. CN_EINVALID: more than content_length. */
int cn_http_write(struct cn_http_request *req, const void *bytes, size_t size,
                  cn_stream_release_cb release, void *release_data);
/* Bytes of the connection that the system has not taken yet. */
size_t cn_http_queued(const struct cn_http_request *req);
void cn_http_on_drain(struct cn_http_request *req, void (*cb)(struct cn_http_request *req));
/* Completes the response. Fewer bytes than content_length: the connection is reset, CN_EINVALID. */
int cn_http_end(struct cn_http_request *req);
/* Gives up a response: the connection is reset, so the client sees that it is cut. No on_abort. */
void cn_http_abort(struct cn_http_request *req);

/* Answers 101 and hands the connection on. `head->status` is 101 and its headers are sent as
 * given, Connection and Upgrade included. Bytes that the client has sent already arrive through
 * on_data like all later ones, once the new owner calls cn_stream_resume(). The response is
 * complete; the request stays until released. */
int cn_http_upgrade(struct cn_http_request *req, const struct cn_http_head *head,
                    const struct cn_stream_callbacks *callbacks, void *owner,
                    struct cn_stream **stream);

#endif
