/* SPDX-License-Identifier: Apache-2.0 */
/* js/work.h - promises that C settles, and work off the lane.
 *
 * A deferred is a promise with its two functions, pinned until it is settled.
 * Settling enters the VM, so that the promise's reactions run as a turn of
 * their own.
 *
 * cn_js_work_start() runs `run` on libuv's thread pool: it may touch nothing of
 * JavaScript. Then `finish`, on the lane and inside the VM, makes the result.
 *
 * W1  Work that may take seconds (`slow`) has threads of its own, CN_JS_SLOW_THREADS in the
 *     process, and waits for them in order: whatever scripts have computed, names, files and short
 *     work find a thread of libuv's.
 * W2  At most CN_JS_SLOW_PENDING_MAX wait; further ones are rejected.
 * W3  Slow work goes with its context: what waits is never begun, and what runs is told by
 *     `given_up`, at which `run` looks as often as it can. Neither a reload nor the end of the
 *     server waits for a prime that nobody wants any more.
 * W4  Bytes that a work was given (`given`: copies of what JavaScript has) are reserved for who
 *     asked from its start to its end (engine/alloc.h, M6): if there is no room the promise is
 *     rejected with a RangeError, and nothing runs.
 * W5  Bytes that it will make (`made`, taken in `run`) are reserved when it begins. Those of a
 *     context that are under way make CN_JS_WORK_BYTES at most, or there is one alone: others
 *     wait, in order, and hold nothing. So nothing is read faster than the script takes it.
 *
 * Ownership: a work frees itself once settled. If its context is gone by then,
 * `finish` runs with ctx NULL: release, and return NULL. */
#ifndef CN_JS_WORK_H
#define CN_JS_WORK_H
#include <stdatomic.h>
#include <uv.h>

#include "base/list.h"
#include "js/context.h"

#define CN_JS_SLOW_THREADS 2
#define CN_JS_SLOW_PENDING_MAX 256
#define CN_JS_WORK_BYTES ((size_t)32 << 20) /* W5 */

struct cn_js_deferred {
    struct cn_js_pin resolve, reject;
};

/* Returns the promise; fills `deferred`. In a turn that is being ended there may be no promise to
 * have: undefined, and `deferred` is empty, as if its context were gone. */
JSValueRef cn_js_deferred_init(struct cn_js_context *context, struct cn_js_deferred *deferred);
/* Settles it and empties `deferred`; does nothing if its context is gone. */
void cn_js_deferred_resolve(struct cn_js_deferred *deferred, JSValueRef value);
void cn_js_deferred_reject(struct cn_js_deferred *deferred, JSValueRef value);
void cn_js_deferred_drop(struct cn_js_deferred *deferred);

struct cn_js_work {
    uv_work_t request;
    bool slow;                         /* W1; set before it is started */
    uv_async_t *done;                  /* slow: tells the lane; owned, until it has closed */
    struct cn_list link;               /* among those that wait (W5), or slow ones that do or run */
    const struct cn_js_context *owner; /* slow: only compared */
    atomic_bool given_up;              /* W3 */
    size_t given, made;                /* W4, W5; set before it is started */
    struct cn_js_reserve given_held, made_held;
    uv_loop_t *loop;
    struct cn_js_deferred deferred;
    void (*run)(struct cn_js_work *work);
    /* Returns the value, or sets *exception to reject. Releases what the struct around `work`
     * holds, but not the struct itself: that is freed afterwards with cn_free(). */
    JSValueRef (*finish)(struct cn_js_work *work, JSContextRef ctx, JSValueRef *exception);
};

/* `work` is the first field of a struct from cn_alloc(); returns the promise. */
JSValueRef cn_js_work_start(struct cn_js_context *context, uv_loop_t *loop,
                            struct cn_js_work *work);
/* W3: `context` goes. */
void cn_js_work_give_up(struct cn_js_context *context);

#endif
