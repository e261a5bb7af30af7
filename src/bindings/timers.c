/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/timers.c - setTimeout, setInterval and scheduler.wait stand on these.
 *
 * One libuv timer each: libuv keeps them in a heap, so many timers cost their
 * memory and nothing else. The callback runs as a turn of its own.
 *
 * T1  A timer's id is the prelude's, which counts them: scripts see it, so it is a small
 *     integer. No id is used twice, and one is what the script gave or nothing: it is not
 *     cut to fewer bits.
 * T2  A timer that is started by another one runs in the next round of the loop at the earliest,
 *     however short it is: connections are served between them (cn_loop_delay()). */
#include <math.h>
#include <uv.h>

#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "border/timers.h"
#include "js/native.h"
#include "worker/runtime.h"

/* A worker that leaks timers is stopped by this and not by the machine's memory. */
#define TIMERS_MAX 100000

struct timer {
    uv_timer_t uv;
    struct cn_operation operation;
    struct cn_runtime *runtime;
    struct cn_js_pin function;
    double id; /* its key in runtime->timers */
    bool repeats;
};

static void on_closed(uv_handle_t *handle)
{
    cn_free(handle->data);
}

static void timer_stop(struct timer *timer)
{
    cn_operation_end(&timer->operation);
    cn_map_take(&timer->runtime->timers, &timer->id, sizeof(timer->id));
    cn_js_pin_clear(&timer->function);
    timer->runtime = NULL;
    uv_close((uv_handle_t *)&timer->uv, on_closed);
}

static void on_cancel(struct cn_operation *operation)
{
    timer_stop(CN_CONTAINER_OF(operation, struct timer, operation));
}

static void on_timer(uv_timer_t *handle)
{
    struct timer *timer = handle->data;
    struct cn_runtime *runtime = timer->runtime;
    struct cn_js_context *context = runtime->context;
    if (!cn_js_enter_pin(&timer->function)) {
        timer_stop(timer); /* whoever set it is gone */
        return;
    }
    JSValueRef function = timer->function.value;
    JSValueProtect(context->ref, function);
    if (!timer->repeats)
        timer_stop(timer);
    /* The prelude's function catches and reports what the user's throws. */
    struct cn_js_vm *vm = context->vm;
    vm->timing = true;
    cn_js_invoke(context->ref, function, 0, NULL, NULL);
    JSValueUnprotect(context->ref, function);
    cn_js_leave(context);
    vm->timing = false;
}

/* timerStart(id, milliseconds, repeats, function); ids are the prelude's, unique. */
static JSValueRef native_timer_start(CN_JS_NATIVE_ARGS)
{
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    double delay = cn_js_to_number(ctx, cn_js_arg(1));
    if (!JSValueIsObject(ctx, cn_js_arg(3)))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "timerStart: not a function");
    if (runtime->timers.count >= TIMERS_MAX)
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR,
                           "More than %d timers are running in this worker.", TIMERS_MAX);
    if (!(delay >= 0))
        delay = 0;
    if (delay > 2147483647.0)
        delay = 2147483647.0;
    struct timer *timer = CN_NEW(struct timer);
    timer->runtime = runtime;
    timer->id = cn_js_to_number(ctx, cn_js_arg(0));
    timer->repeats = JSValueToBoolean(ctx, cn_js_arg(2));
    uv_timer_init(runtime->loop, &timer->uv);
    timer->uv.data = timer;
    uint64_t ms = (uint64_t)delay;
    uv_timer_start(&timer->uv, on_timer,
                   cn_loop_delay(runtime->loop, ms, runtime->context->vm->timing),
                   timer->repeats ? (ms ? ms : 1) : 0);
    cn_js_pin_set(&timer->function, runtime->context, argv[3]);
    cn_operation_start(runtime, &timer->operation, on_cancel);
    cn_map_set(&runtime->timers, &timer->id, sizeof(timer->id), timer);
    return JSValueMakeUndefined(ctx);
}

/* timerStop(id): nothing happens if it has fired already. */
static JSValueRef native_timer_stop(CN_JS_NATIVE_ARGS)
{
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    double id = cn_js_to_number(ctx, cn_js_arg(0));
    struct timer *timer = cn_map_find(&runtime->timers, &id, sizeof(id));
    if (timer)
        timer_stop(timer);
    return JSValueMakeUndefined(ctx);
}
