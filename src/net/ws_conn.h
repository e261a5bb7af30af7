/* SPDX-License-Identifier: Apache-2.0 */
/* net/ws_conn.h - WebSocket connections of one lane: the wire behind an end.
 *
 * A connection owns one end of a pair (ws_end.h): messages of the other end go
 * out as frames, the peer's frames become messages of it. Pings, fragments,
 * compression and the closing handshake are dealt with here.
 *
 *     OPEN ── close of either side ──► CLOSING ── both sides, or time ──► gone
 *       └────── error, reset, silence ──────────────────────────────────────┘
 *
 * An idle connection holds its structs and nothing else: no buffers, no zlib.
 *
 * Threads:   the lane's, but for cn_ws_moved, which travels between lanes.
 * Ownership: the lane's list, until the stream is closed. */
#ifndef CN_NET_WS_CONN_H
#define CN_NET_WS_CONN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "net/http.h"
#include "net/stream.h"
#include "net/ws_handshake.h"

struct cn_http_request;
struct cn_http_server;
struct cn_socket;
struct cn_ws;
struct cn_ws_end;
struct cn_ws_lane;

/* Zero in a number means the default in brackets. */
struct cn_ws_options {
    size_t message_size_max;   /* of a peer [32 MiB]; past it: closed with 1009 */
    size_t output_size_max;    /* queued for a peer [16 MiB]; past it: closed with 1013 */
    unsigned ping_interval_ms; /* of silence, then a ping; as long again: the peer is gone [30 s] */
    unsigned close_timeout_ms; /* for the other half of a closing handshake [10 s] */
    bool no_deflate;           /* do not agree on compression */
    bool any_mask;             /* clients need not mask: of those that are no browsers */
};

struct cn_ws_lane *cn_ws_lane_new(uv_loop_t *loop, const struct cn_ws_options *options);
/* Goes when its last connection has, and the loop has closed its timer. */
void cn_ws_lane_free(struct cn_ws_lane *lane);
/* W3 of base/loop.h */
void cn_ws_lane_check(const struct cn_ws_lane *lane);
size_t cn_ws_lane_count(const struct cn_ws_lane *lane);
/* What waits for their peers. A message for many is counted for each. */
size_t cn_ws_lane_bytes(const struct cn_ws_lane *lane);
/* Memory is short: closes those that read slowest with 1013 until `bytes` have been given back, or
 * none has as much as CN_WS_SLOW_MIN waiting. Returns how many. */
#define CN_WS_SLOW_MIN (64u << 10)
size_t cn_ws_lane_relieve(struct cn_ws_lane *lane, uint64_t bytes);
/* Closes every connection with 1012 (service restart), and later ones as soon as they open. */
void cn_ws_lane_shutdown(struct cn_ws_lane *lane);
/* Cuts every connection now: the ends see 1006. */
void cn_ws_lane_abort(struct cn_ws_lane *lane);
/* Bytes that wait for the peer of a connection whose end this is. */
size_t cn_ws_waiting(const struct cn_ws_end *end);
/* Applies time-outs as of `now_ms`; the lane's own timer calls it, and tests do. */
void cn_ws_lane_tick(struct cn_ws_lane *lane, uint64_t now_ms);

/* Answers the request with 101 and joins the connection to `end`, which becomes its own. `headers`
 * are the script's; those of the handshake itself are left out. Returns 0; an HTTP status (400,
 * 426): the client's request is not proper; negative: CN_EINVALID (no WebSocket was asked for, or a
 * header is bad), CN_ECLOSED (the client is gone). On failure nothing was sent, and the end stays
 * the caller's. */
int cn_ws_upgrade(struct cn_ws_lane *lane, struct cn_http_request *req,
                  const struct cn_http_header *headers, size_t header_count, struct cn_ws_end *end);

/* The same without a connection yet: what an upgraded one needs to go on, on any lane. */
struct cn_ws_moved {
    struct cn_stream_moved stream;
    struct cn_ws_terms terms;
    char *protocol; /* owned; the subprotocol, or NULL */
};
/* If it arrives nowhere. */
void cn_ws_moved_drop(struct cn_ws_moved *moved);
/* As cn_ws_upgrade(), for a conversation whose other end is on another lane. If the 101 could not
 * be sent at once, 1: nothing was moved, and `end` has been taken as by cn_ws_upgrade(). */
int cn_ws_upgrade_away(struct cn_ws_lane *lane, struct cn_http_request *req,
                       const struct cn_http_header *headers, size_t header_count,
                       struct cn_ws_end *end, struct cn_ws_moved *moved);
/* On the lane it has come to: goes on as a connection of `streams`. */
void cn_ws_arrive(struct cn_ws_lane *lane, struct cn_stream_lane *streams,
                  struct cn_ws_moved *moved, struct cn_ws_end *end);

/* Takes over an outgoing socket whose handshake is complete; `bytes` came after it. */
void cn_ws_adopt(struct cn_ws_lane *lane, struct cn_socket *socket, const struct cn_ws_terms *terms,
                 struct cn_ws_end *end, const void *bytes, size_t size);

#endif
