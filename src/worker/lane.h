/* SPDX-License-Identifier: Apache-2.0 */
/* worker/lane.h - one thread with its loop, its JavaScript VM and its HTTP server.
 *
 * Terms: docs/understand/glossary.md.
 *
 * Lanes share nothing but immutable deployments; they are reached through their
 * mailbox. Every connection stays on the lane that accepted it.
 *
 *     deploy ──► instances start ──► on_deployed(lane, error)
 *     request ──► route ──► instance ──► event ──► JavaScript ──► response
 *
 * N1  A request runs from its first to its last byte on the instance it began
 *     with; a new deployment affects only requests that arrive after it.
 * N2  A script whose instance has ended and has no other yet answers 503: requests never come to
 *     one that is not CURRENT (instance.h).
 * N3  Of a lane that stops the HTTP server goes first; the house has ended with it, and what still
 *     arrives by mail finds none.
 * N4  A script that did not start (F1 of script.h) is started again after a second, then two, four
 *     and so on up to an hour; and never sooner than a hundred times as long as it held the lane.
 * N5  A lane that serves waits for nothing (base/block.h). What a deployment changes durably is
 *     written by a thread of the pool: until that has ended requests go to the former one, and no
 *     other deployment is taken.
 * N6  A lane that stops takes no deployment. One that was starting ends with the lane, and nobody
 *     is told: the instances are retired, though what it changes may be durable by then.
 *
 * A trial lane (`trial`) serves nothing and has no objects: it starts what is new in a deployment,
 * tells whether it could, and ends. So a script that uses up its time at its start holds no lane
 * that serves (server.c, S2).
 *
 * Threads:   cn_lane_start/deploy/drain/stop from any; the callbacks run on the lane.
 * Ownership: struct cn_server. */
#ifndef CN_WORKER_LANE_H
#define CN_WORKER_LANE_H
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <uv.h>

#include "base/account.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "base/origin.h"
#include "base/rand.h"
#include "js/context.h"
#include "module/crash.h"
#include "module/worker.h"
#include "net/server.h"
#include "net/ws_conn.h"
#include "object/node.h"
#include "worker/background.h"
#include "worker/event.h"
#include "worker/jsclass.h"
#include "worker/jstarget.h"
#include "worker/metrics.h"
#include "worker/remote.h"
#include "worker/script.h"

struct cn_instance;
struct cn_lane;
struct cn_runtime;
struct cn_client;
struct cn_sockets;
struct cn_ws_carrier;
struct cn_egress;
struct cn_taps;
struct cn_trace_exporter;
struct cn_trust;

struct cn_dispatch;
struct cn_profile;
struct cn_guest;
struct cn_hold;

struct cn_lane_options {
    unsigned index, lane_count;
    int listen_fd; /* from cn_http_bind(); becomes the lane's; -1: none */
    struct cn_http_limits limits;
    struct cn_ws_options websockets;
    struct cn_tls_context *tls; /* NULL: plain HTTP */
    struct cn_trust *trust;     /* for fetch; NULL: the system's */
    struct cn_egress *proxies;  /* denies the proxies that are trusted; NULL: none is */
    struct cn_egress *egress;   /* where it may go; NULL: everywhere */
    struct cn_node *node;       /* for Durable Objects; NULL: none */
    const struct cn_trace_exporter *exporter; /* NULL: none */
    struct cn_taps *taps;                     /* who listens; borrowed; NULL: nobody can */
    size_t heap_bytes_max;                    /* watermark of the JavaScript heap */
    bool show_errors;     /* dev: error pages with the stack instead of a reference */
    struct cn_hold *hold; /* dev, borrowed: hold.h; NULL: requests are routed at once */
    const struct cn_guest *guest;
    const struct cn_background_operations *background; /* NULL: none */
    const struct cn_lane_remote *remote;               /* NULL: a single node */
    bool commits; /* the first lane, whose start commits a deployment (script.h) */
    bool trial;
    /* Results of cn_lane_deploy() and cn_lane_drain(), on the lane. */
    void (*on_deployed)(struct cn_lane *lane, struct cn_deployment *deployment,
                        const struct cn_err *err);
    void (*on_drained)(struct cn_lane *lane);
    void *data;
};

/* What a lane knows of a script of its deployment that did not start (N4). */
struct cn_lane_place {
    bool failed;
    unsigned attempts;
    uint64_t retry_ns; /* uv_hrtime() */
};

struct cn_lane {
    struct cn_lane_options options;
    uv_thread_t thread;
    clockid_t cpu_clock; /* of its thread, for the watchdog, */
    pid_t thread_id;     /* and its number */
    uv_loop_t loop;
    struct cn_mailbox mailbox;
    struct cn_desk desk; /* where calls and dispatches arrive */
    struct cn_js_vm *vm;
    struct cn_js_pulse pulse;            /* of `vm`, for the watchdog */
    struct cn_module_pulse module_pulse; /* the same of code in C */
    unsigned alloc;                      /* its number in js/engine/alloc.h */
    struct cn_http_server *http;         /* NULL: it has closed (N3) */
    struct cn_client *client;
    struct cn_sockets *sockets;
    struct cn_object_lane object_lane;         /* its Durable Objects; node NULL: there are none */
    struct cn_handles objects, calls, cursors; /* what JavaScript knows of them by number */
    struct cn_jstargets targets;               /* objects that scripts call */
    struct cn_ws_lane *ws;                     /* WebSocket connections */
    struct cn_handles ends;                    /* what JavaScript knows of WebSockets by number */
    struct cn_handles traces;                  /* of struct cn_trace, owned: trace.h */
    struct cn_list traces_ended;               /* of struct cn_trace */
    struct cn_list trace_consumers;            /* of struct cn_trace_consumer */
    struct cn_list sockets_ready;              /* of struct cn_jssocket with events to deliver, */
    uv_idle_t sockets_spin;                    /* which does it */
    struct cn_list sockets_transit;            /* ends on their way: websocket.c */
    /* The way to other nodes, borrowed, set before requests come; NULL: there are none. */
    const struct cn_ws_carrier *carrier;
    uint32_t
        stub_term; /* S4 of remote/leases.h: what came by reference in an earlier one has ended */
    struct cn_list far_trunks;        /* ws_far.c */
    struct cn_list far_parked;        /* there too */
    struct cn_list ws_moves;          /* ws_move.c */
    struct cn_rand rand;              /* for numbers of requests */
    struct cn_handles events;         /* every event under way on this lane */
    struct cn_list held;              /* hold.c: requests that wait to be routed */
    struct cn_deployment *deployment; /* current, a reference; NULL before the first */
    struct cn_instance **current;     /* one per script of the deployment: CURRENT, or NULL (N2) */
    struct cn_lane_place *places;     /* likewise; owned */
    uint32_t last_serial;             /* given to an instance */
    struct cn_list instances;         /* of all struct cn_instance, old ones too */
    struct cn_deployment *starting;   /* being started, or NULL */
    struct cn_instance **starting_instances;
    struct cn_lane_place *starting_places;
    size_t starting_left;
    struct cn_err starting_err;
    uv_timer_t house;          /* every second: memory, old events, the engine's timers */
    uint64_t house_turns;      /* vm->turn_count at the last tick, */
    uint64_t collect_turns;    /* and at the last collection */
    uint64_t collect_pause;    /* ticks until a lane that is not wholly quiet collects again */
    unsigned over_memory;      /* seconds above the watermark */
    unsigned memory_pause;     /* seconds until it is looked at again */
    unsigned held_pause;       /* the same for what workers hold: relief.c */
    _Atomic bool relieving;    /* mail of cn_lane_relieve() is under way: relief.h */
    _Atomic bool reset_wanted; /* and the largest of the lane is to start anew */
    bool reset_put_off;        /* once, because slow readers were cut for it: relief.h R1 */
    bool heap_wanted;          /* the heap has passed its bound: cn_relief_turn() */
    uint64_t heap_pause_ns;    /* uv_hrtime() until which that waits for the next tick */
    uint64_t collected_ms, slow_closed_ms; /* loop time of the last */
    uint64_t told[CN_ACCOUNT_KIND_COUNT];  /* to the account, by this lane */
    struct cn_lane_metrics metrics;
    struct cn_buf scratch;   /* for bytes on their way through a single call */
    double sql_out[4];       /* what a call of SQL says beside its row (bindings/storage.c) */
    struct cn_buf sql_names; /* of the columns of the last one, each with its NUL */
    struct cn_background background;
    struct cn_compiled_host host; /* for code in C */
    unsigned traced_functions;    /* of code in C, that run: compiled_trace.c */
    struct cn_profile *profile;   /* a reference, while it is sampled; NULL: it is not */
    bool listening;
    bool draining;
    bool stopping; /* nothing new is begun */
    int started;   /* of the thread: 0 not yet, 1 running, negative failed */
    struct cn_err start_err;
    uv_sem_t start_sem;
};

/* What the running turn goes back to, for the calls it makes. */
struct cn_origin cn_lane_origin(const struct cn_lane *lane);

/* Starts the thread and waits until the lane accepts mail. */
int cn_lane_start(struct cn_lane *lane, const struct cn_lane_options *options, struct cn_err *err);
/* Starts instances of every script; on success they become current and the old ones finish.
 * Takes over the caller's reference. */
void cn_lane_deploy(struct cn_lane *lane, struct cn_deployment *deployment);
/* From any thread, while the lane runs: memory is short (relief.h). */
void cn_lane_relieve(struct cn_lane *lane);
/* From any thread: samples for the profile (profile.h), or, with NULL, no more. */
void cn_lane_profile(struct cn_lane *lane, struct cn_profile *profile);
/* On the lane, outside of turns: the instance holds on to too much and ends; if it was current,
 * another takes its place. */
void cn_lane_replace(struct cn_lane *lane, struct cn_instance *instance);
/* W3 of base/loop.h, on the lane, outside of turns: what it and its parts count. */
void cn_lane_check(const struct cn_lane *lane);
/* Starts accepting connections. */
void cn_lane_listen(struct cn_lane *lane);
/* From any thread: cn_hold_release() on the lane; the problem is copied. */
void cn_lane_release(struct cn_lane *lane, uint64_t last, const char *problem);
/* Stops accepting and calls on_drained when no request is left. */
void cn_lane_drain(struct cn_lane *lane);
/* Ends everything; and joins the thread. */
void cn_lane_stop_begin(struct cn_lane *lane);
void cn_lane_stop_wait(struct cn_lane *lane);

#endif
