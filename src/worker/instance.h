/* SPDX-License-Identifier: Apache-2.0 */
/* worker/instance.h - a script running on one lane: its global, its handlers
 * (docs/understand/glossary.md).
 *
 *     STARTING ──► READY ──► CURRENT ──► RETIRED ──► freed
 *         │          └──────────────────────▲         ▲
 *         └──────► FAILED ────────────────────────────┘
 *
 * Starting evaluates the bundle, which may await at its top level. READY waits for the other
 * scripts of its deployment. A start has the CPU time that the script says, and has FAILED when
 * CN_INSTANCE_START_MS are over and its top level still waits: nothing that could come takes so
 * long, since a script that starts does no I/O.
 *
 * The end. Whatever ends an instance, cn_instance_retire() does it: a reload, a restart for
 * memory, the end of the server. Its WebSockets close, its objects are reset, and its events fail
 * or, if the ending says so, go on. A turn that was ended for its CPU time fails events in the same
 * way (cn_instance_fail_events()), and what ends a single object is cn_object_reset() in all cases.
 *
 * I1  New events come to CURRENT instances only; what a script has lent (stubs) can be called as
 *     long as its instance is there and has not FAILED.
 * I2  An instance is retired outside of its own JavaScript, and freed outside of any (X2).
 * I3  It is freed when it is RETIRED or FAILED and has no event and no object. What it has started
 *     (timers, fetches, sockets, work on other threads) is cancelled then, its unclaimed WebSockets
 *     are released, and what it has lent stays until it is given back (js/context.h X3).
 *
 * Threads:   the lane's.
 * Ownership: the lane's list. */
#ifndef CN_WORKER_INSTANCE_H
#define CN_WORKER_INSTANCE_H
#include "base/err.h"
#include "base/list.h"
#include "js/context.h"
#include "worker/script.h"

#define CN_INSTANCE_START_MS 10000

struct cn_lane;
struct cn_runtime;
struct cn_worker_metrics;
struct cn_event;
struct cairn_object;

enum cn_instance_state {
    CN_INSTANCE_STARTING,
    CN_INSTANCE_READY,
    CN_INSTANCE_CURRENT,
    CN_INSTANCE_RETIRED,
    CN_INSTANCE_FAILED,
    CN_INSTANCE_STATES
};

/* Why an instance ends, as its objects and its clients are told. */
struct cn_ending {
    unsigned object_faults; /* of enum cn_call_fault */
    const char *object_text;
    const char *event_text; /* NULL: events go on to their end */
    const char *outcome;    /* of those that do not, for their traces */
};
extern const struct cn_ending cn_ending_reload, cn_ending_memory, cn_ending_stop;

struct cn_instance {
    struct cn_lane *lane;
    struct cn_script *script; /* a reference */
    struct cn_runtime *runtime;
    struct cn_list link;             /* in lane->instances */
    struct cn_list events;           /* of struct cn_event */
    struct cn_list objects;          /* of struct cn_jsobject, worker/jsclass.h */
    struct cn_list sockets;          /* of struct cn_jssocket, worker/websocket.h */
    struct cn_list ends;             /* of struct cn_ws_end that are NEW: worker/websocket.h */
    struct cn_ws_message *last_sent; /* a reference: what send() was last given; NULL: nothing */
    enum cn_instance_state state;
    bool over_memory;                /* gets no new requests: relief.h */
    uint64_t held_bytes;             /* by it and its objects, when last looked at: relief.h */
    bool may_go_on;                  /* during a sweep: hung.h */
    bool watched;                    /* its invocations are traced: trace.h */
    struct cn_js_pin dispatch_fetch; /* functions of the prelude */
    struct cn_js_pin dispatch_event;
    struct cn_js_pin object_create, object_deliver, object_socket, object_destroy, object_resume,
        object_press, local_reply, quiet;
    struct cairn_object *compiled;     /* owned: its worker in C (worker/compiled.h); NULL: none */
    uint64_t began_ns;                 /* uv_hrtime() when it began to start */
    uint64_t retired_ms;               /* loop time */
    struct cn_worker_metrics *metrics; /* the lane's */
    uint32_t serial; /* distinguishes it from others on the lane, also in stubs elsewhere */
    /* Once: when it is READY or FAILED. */
    void (*on_started)(struct cn_instance *instance, const struct cn_err *err);
};

/* Begins to start; `on_started` runs later, or before this returns. NULL if the prelude
 * itself failed, which is our mistake: `err` says what. */
struct cn_instance *cn_instance_new(struct cn_lane *lane, struct cn_script *script,
                                    void (*on_started)(struct cn_instance *instance,
                                                       const struct cn_err *err),
                                    struct cn_err *err);
/* Adds what its turns have taken to the worker's counter. */
void cn_instance_publish(struct cn_instance *instance);
/* I1: it gets the events of its script from now on. */
void cn_instance_install(struct cn_instance *instance);
/* Ends it. One that was retired before, and whose events went on, ends them if this ending does. */
void cn_instance_retire(struct cn_instance *instance, const struct cn_ending *ending);
/* Soon after a turn of it was cut (js/context.h): whatever was under way then and waits for nothing
 * that could still come is failed rather than left waiting. */
void cn_instance_after_cut(struct cn_instance *instance);
/* Every event that has no answer yet gets 503, or the same inside the server. `outcome` is static.
 */
void cn_instance_fail_events(struct cn_instance *instance, const char *outcome, const char *why);
/* I3 */
bool cn_instance_is_over(const struct cn_instance *instance);
void cn_instance_free(struct cn_instance *instance);
/* Fails it if it has been starting for too long. Outside of turns. */
void cn_instance_check_start(struct cn_instance *instance);
/* Called from JavaScript through bindings/http.c: the bundle has been evaluated, or failed. */
void cn_instance_started(struct cn_instance *instance, const char *failure);

/* Runs a function of the prelude with one number as a turn under the script's CPU limit.
 * CN_ELIMIT: the limit ended it. */
int cn_instance_enter(struct cn_instance *instance, struct cn_js_pin *function, size_t argc,
                      const JSValueRef argv[], struct cn_err *err);

#endif
