/* SPDX-License-Identifier: Apache-2.0 */
/* worker/server.h - all lanes of a process, and what is asked of them together.
 *
 *     cn_server_start() ──► cn_server_deploy() ──► on_deployed ──► cn_server_listen()
 *                                 ▲    (again for every reload)          │
 *     cn_server_drain() ──► on_drained ──► cn_server_stop() ◄────────────┘
 *
 * Threads:   one, the owner's, which has a loop: the callbacks run there.
 * Ownership: the caller's; the listening sockets are the server's. */
#ifndef CN_WORKER_SERVER_H
#define CN_WORKER_SERVER_H
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/mailbox.h"
#include "net/http.h"
#include "net/ws_conn.h"
#include "worker/script.h"

struct cn_background_operations;
struct cn_lane_remote;
struct cn_egress;
struct cn_guest;
struct cn_hold;
struct cn_lane_metrics;
struct cn_node;
struct cn_profile;
struct cn_server;
struct cn_tls_context;
struct cn_taps;
struct cn_trace_exporter;
struct cn_trust;

struct cn_server_options {
    uv_loop_t *loop; /* of the owner */
    const char *host;
    uint16_t port;         /* 0: any free one */
    const int *listen_fds; /* borrowed: listening sockets at that address instead, */
    size_t listen_count;   /* one for each lane, or one for all; 0: none */
    unsigned lane_count;
    struct cn_http_limits limits;
    struct cn_ws_options websockets;
    struct cn_tls_context *tls;
    struct cn_trust *trust;    /* certificates that fetch() believes; NULL: no fetch */
    struct cn_egress *proxies; /* denies the proxies that are trusted; NULL: none is */
    struct cn_egress *egress;  /* addresses it may connect to; NULL: all */
    struct cn_node *node;      /* for Durable Objects; NULL: none */
    const struct cn_trace_exporter *exporter;   /* of spans; borrowed; NULL: none */
    struct cn_taps *taps;                       /* who listens; borrowed; NULL: nobody can */
    size_t heap_bytes_max;                      /* per lane; 0: 512 MB */
    unsigned stuck_ms, wall_ms;                 /* watchdog.h */
    void (*on_stuck)(struct cn_server *server); /* a lane hangs for good: on the owner's loop */
    bool show_errors;
    struct cn_hold *hold; /* dev: hold.h; borrowed; NULL: requests are routed at once */
    const struct cn_guest *guest;
    const struct cn_background_operations *background; /* NULL: none */
    const struct cn_lane_remote *remote;               /* NULL: a single node */
    /* Once for each cn_server_deploy(): every lane runs it, or (with `err`) none took it. */
    void (*on_deployed)(struct cn_server *server, const struct cn_err *err);
    void (*on_drained)(struct cn_server *server);
    void *data;
};

int cn_server_start(const struct cn_server_options *options, struct cn_server **server,
                    struct cn_err *err);
/* For a thread that looks at its counters; while the server is there. */
unsigned cn_server_lane_count(const struct cn_server *server);
/* NULL past the last lane. */
const struct cn_lane_metrics *cn_server_metrics(const struct cn_server *server, unsigned lane);
uint16_t cn_server_port(const struct cn_server *server);
void *cn_server_data(const struct cn_server *server);
/* Takes over the caller's reference. A rehearsal ends after the trial: no lane runs it. One at a
 * time: wait for on_deployed before the next. */
void cn_server_deploy(struct cn_server *server, struct cn_deployment *deployment);
/* Every lane samples for the profile, or, with NULL, none does (profile.h). */
void cn_server_profile(struct cn_server *server, struct cn_profile *profile);
/* Accepts connections from now on; once, after the first deployment. */
void cn_server_listen(struct cn_server *server);
void cn_server_drain(struct cn_server *server);
/* cn_lane_release() on every lane. */
void cn_server_release(struct cn_server *server, uint64_t last, const char *problem);
/* Ends the turns that have lasted for `age_ms` (watchdog.h). */
void cn_server_end_turns(struct cn_server *server, unsigned age_ms);
/* The process ends in `ms`, whatever the lanes do. */
void cn_server_end_by(struct cn_server *server, unsigned ms);
/* The listening sockets, one per lane, for a process that takes this one's place. Borrowed. */
int cn_server_listener(const struct cn_server *server, unsigned lane);
/* Ends what is left and frees the server. Does not return before the lanes have ended;
 * `cb` runs on the owner's loop when the last handle there is closed. */
void cn_server_stop(struct cn_server *server, void (*cb)(void *data), void *data);

#endif
