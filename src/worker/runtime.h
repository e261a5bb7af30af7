/* SPDX-License-Identifier: Apache-2.0 */
/* worker/runtime.h - a JavaScript context with the prelude in it: what a script
 * runs in.
 *
 * The prelude (prelude/bootstrap.js) is evaluated with one object, `native`,
 * that holds the functions of src/bindings/, and returns its entry points:
 * functions that C calls (dispatch of events, start of a script).
 *
 * U1  Any turn may be told to end at any moment, by the watchdog or by a heap that is past its
 *     bound, those of C's own too: whatever is asked of the engine in one may fail. That is an
 *     error, of which the lane tries again, and never an assertion.
 *
 * Threads:   the lane's.
 * Ownership: the worker instance (or the test) that made it. */
#ifndef CN_WORKER_RUNTIME_H
#define CN_WORKER_RUNTIME_H
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/handles.h"
#include "base/list.h"
#include "base/map.h"
#include "js/context.h"

struct cn_runtime;
struct cn_client;
struct cn_sockets;
struct cn_http_request;

/* Where console output of a script goes: level is 0 debug, 1 info, 2 warn, 3 error. */
typedef void (*cn_runtime_log_cb)(struct cn_runtime *runtime, int level, const char *text,
                                  size_t length);

struct cn_runtime_options {
    uv_loop_t *loop;
    struct cn_js_vm *vm;
    /* Puts every native function on the object; bindings/all.c has it. */
    void (*install)(struct cn_runtime *runtime, JSObjectRef native);
    cn_runtime_log_cb log;
    const char *options_json; /* becomes __options in the prelude; NULL: {} */
    void *data;
};

struct cn_runtime {
    struct cn_js_context *context; /* owned; context->data is this struct */
    uv_loop_t *loop;
    struct cn_js_pin entry; /* what the prelude returned */
    cn_runtime_log_cb log;
    struct cn_map timers;          /* id -> struct timer, bindings/timers.c */
    struct cn_list operations;     /* of struct cn_operation: native work under way */
    void *data;                    /* the owner's: struct cn_instance */
    struct cn_client *client;      /* for fetch; the lane's, borrowed; may be NULL */
    struct cn_sockets *sockets;    /* for connect(); the lane's, borrowed; may be NULL */
    struct cn_handles connections; /* of bindings/sockets.c */
    struct cn_handles fetches;     /* of bindings/fetch.c */
};

/* Something native that lives as long as the runtime at most: a timer, a fetch, a socket. When
 * the runtime closes, `cancel` of each is called; it must unlink itself and never call JavaScript
 * again. */
struct cn_operation {
    struct cn_list link;
    void (*cancel)(struct cn_operation *operation);
};

int cn_runtime_new(const struct cn_runtime_options *options, struct cn_runtime **runtime,
                   struct cn_err *err);
void cn_runtime_free(struct cn_runtime *runtime);

/* The runtime a native function was called in. */
static inline struct cn_runtime *cn_runtime_of(JSContextRef ctx)
{
    return cn_js_context_of(ctx)->data;
}

void cn_operation_start(struct cn_runtime *runtime, struct cn_operation *operation,
                        void (*cancel)(struct cn_operation *operation));
void cn_operation_end(struct cn_operation *operation);

/* A function among the prelude's entry points, which has it; NULL: the turn is being ended (U1). */
JSObjectRef cn_runtime_entry(struct cn_runtime *runtime, const char *name);

#endif
