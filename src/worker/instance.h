/* SPDX-License-Identifier: Apache-2.0 */
/* worker/instance.h - a script running on one lane: its global, its handlers.
 *
 *     STARTING ──► READY ──► (not current any more) ──► freed when no event is left
 *         └──────► FAILED
 *
 * Starting evaluates the bundle, which may await at its top level. Events come
 * only to instances that are READY.
 *
 * Threads:   the lane's.
 * Ownership: the lane's list. */
#ifndef CN_WORKER_INSTANCE_H
#define CN_WORKER_INSTANCE_H
#include "base/err.h"
#include "base/list.h"
#include "js/context.h"
#include "worker/allowance.h"
#include "worker/script.h"

struct cn_lane;
struct cn_runtime;
struct cn_worker_metrics;
struct cn_event;

enum cn_instance_state { CN_INSTANCE_STARTING, CN_INSTANCE_READY, CN_INSTANCE_FAILED };

struct cn_instance {
    struct cn_lane *lane;
    struct cn_script *script; /* a reference */
    struct cn_runtime *runtime;
    struct cn_list link;             /* in lane->instances */
    struct cn_list events;           /* of struct cn_event */
    size_t event_count;              /* of them */
    struct cn_allowance allowance;   /* for all of them: event.h */
    struct cn_list objects;          /* of struct cn_jsobject, worker/jsclass.h */
    struct cn_list sockets;          /* of struct cn_jssocket, worker/websocket.h */
    struct cn_list ends;             /* of struct cn_ws_end that are NEW: worker/websocket.h */
    struct cn_ws_message *last_sent; /* a reference: what send() was last given; NULL: nothing */
    enum cn_instance_state state;
    bool current;                    /* gets new events, or is about to */
    bool watched;                    /* its invocations are traced: trace.h */
    struct cn_js_pin dispatch_fetch; /* functions of the prelude */
    struct cn_js_pin dispatch_event;
    struct cn_js_pin object_create, object_deliver, object_socket, object_destroy, local_reply,
        quiet;
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
/* No event may be left. */
void cn_instance_free(struct cn_instance *instance);
/* Called from JavaScript through bindings/http.c: the bundle has been evaluated, or failed. */
void cn_instance_started(struct cn_instance *instance, const char *failure);

/* Runs a function of the prelude with one number as a turn under the script's CPU limit.
 * CN_ELIMIT: the limit ended it. */
int cn_instance_enter(struct cn_instance *instance, struct cn_js_pin *function, size_t argc,
                      const JSValueRef argv[], struct cn_err *err);

#endif
