/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dispatch.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "js/value.h"
#include "worker/event_life.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/runtime.h"
#include "worker/trace.h"

/* So many in one go; then connections are served. */
#define STEP_MAX 1000

struct cn_dispatch *cn_dispatch_new(struct cn_lane *from, struct cn_lane *to)
{
    struct cn_dispatch *dispatch = CN_NEW(struct cn_dispatch);
    dispatch->from = from;
    dispatch->to = to;
    cn_list_init(&dispatch->link);
    return dispatch;
}

void cn_dispatch_free(struct cn_dispatch *dispatch)
{
    cn_js_pin_clear(&dispatch->callback);
    cn_free(dispatch->script);
    cn_free(dispatch->entrypoint);
    cn_free(dispatch->method);
    cn_free(dispatch->props);
    cn_free(dispatch->bytes);
    cn_free(dispatch->result);
    cn_free(dispatch);
}

/* --- the way there and back ------------------------------------------------------------------ */

static void on_spin(uv_idle_t *spin)
{
    cn_dispatch_step(spin->data);
}

static void enqueue(struct cn_lane *lane, struct cn_dispatch *dispatch)
{
    cn_list_push_back(&lane->dispatches, &dispatch->link);
    if (!uv_is_active((uv_handle_t *)&lane->dispatch_spin))
        uv_idle_start(&lane->dispatch_spin, on_spin);
}

static void deliver_mail(struct cn_mail *mail, void *data)
{
    enqueue(data, CN_CONTAINER_OF(mail, struct cn_dispatch, mail));
    cn_dispatch_step(data);
}

static void fail_unsent(struct cn_dispatch *dispatch, unsigned faults, int code, const char *text)
{
    cn_err_set(&dispatch->err, code, "%s", text);
    dispatch->faults = faults;
    dispatch->answered = true;
}

void cn_dispatch_send(struct cn_dispatch *dispatch)
{
    CN_ASSERT(dispatch->on_done && dispatch->handler && (dispatch->serial || dispatch->script));
    if (dispatch->from == dispatch->to) {
        enqueue(dispatch->to, dispatch);
        return;
    }
    dispatch->mail.deliver = deliver_mail;
    if (cn_mailbox_send(&dispatch->to->mailbox, &dispatch->mail))
        return;
    fail_unsent(dispatch, CN_FAULT_RETRYABLE, CN_ECLOSED, "the server is stopping");
    enqueue(dispatch->from, dispatch);
}

static void go_back(struct cn_dispatch *dispatch)
{
    dispatch->answered = true;
    if (dispatch->from == dispatch->to) {
        enqueue(dispatch->from, dispatch);
        return;
    }
    dispatch->mail.deliver = deliver_mail;
    if (!cn_mailbox_send(&dispatch->from->mailbox, &dispatch->mail)) {
        /* The sender's lane has ended, and its pins with it: nobody is left to be told. */
        dispatch->callback = (struct cn_js_pin){0};
        cn_dispatch_free(dispatch);
    }
}

/* --- at the worker --------------------------------------------------------------------------- */

static struct cn_instance *find_instance(struct cn_lane *lane, const struct cn_dispatch *dispatch)
{
    if (dispatch->serial) {
        CN_LIST_FOREACH(&lane->instances, node)
        {
            struct cn_instance *each = CN_CONTAINER_OF(node, struct cn_instance, link);
            if (each->serial == dispatch->serial)
                return each;
        }
        return NULL;
    }
    for (size_t i = 0; lane->deployment && i < lane->deployment->script_count; i++) {
        if (strcmp(lane->deployment->scripts[i]->name, dispatch->script) == 0)
            return lane->current[i];
    }
    return NULL;
}

static JSValueRef text_or_undefined(JSContextRef ctx, const char *text)
{
    return text ? cn_js_text_z(ctx, text) : JSValueMakeUndefined(ctx);
}

static JSValueRef take_bytes(JSContextRef ctx, uint8_t **bytes, size_t size)
{
    if (!*bytes)
        return JSValueMakeUndefined(ctx);
    JSValueRef value = cn_js_uint8array_take(ctx, *bytes, size);
    *bytes = NULL;
    return value;
}

/* I1 of instance.h. */
static bool takes(const struct cn_instance *instance, const struct cn_dispatch *dispatch)
{
    return instance->state == CN_INSTANCE_CURRENT ||
           (dispatch->serial && instance->state == CN_INSTANCE_RETIRED);
}

/* Gives the event to the prelude, which answers now or later. */
static void run(struct cn_event *event)
{
    struct cn_dispatch *dispatch = event->dispatch;
    struct cn_instance *instance = event->instance;
    struct cn_lane *lane = instance->lane;
    struct cn_js_context *context = instance->runtime->context;
    JSContextRef ctx = context->ref;
    double handle = (double)event->handle;
    struct cn_err err;
    struct cn_js_cause cause = cn_event_cause(event);
    cn_js_enter_cause(context, &cause);
    JSValueRef argv[] = {
        JSValueMakeNumber(ctx, handle),
        cn_js_text_z(ctx, dispatch->handler),
        text_or_undefined(ctx, dispatch->entrypoint),
        text_or_undefined(ctx, dispatch->method),
        take_bytes(ctx, &dispatch->props, dispatch->props_size),
        take_bytes(ctx, &dispatch->bytes, dispatch->size),
    };
    int rc = cn_js_call(context, (JSObjectRef)instance->dispatch_event.value, CN_ARRAY_COUNT(argv),
                        argv, NULL, &err);
    cn_js_leave(context);
    if (context->vm->terminated)
        rc = cn_err_set(&err, CN_ELIMIT, "The script %s.",
                        cn_js_end_text(context->vm->end, instance->script->cpu_limit_ms));
    if (rc == 0)
        return;
    event = cn_event_find(lane, handle); /* it may be over already */
    if (!event)
        return;
    bool answered = cn_event_is_answered(event);
    cn_event_done(event); /* so that its answer is its end */
    if (!answered)
        cn_dispatch_fail(event, CN_FAULT_REMOTE, err.code, err.text, NULL, 0);
}

static void begin_trace(struct cn_event *event)
{
    static const struct {
        const char *handler;
        enum cn_trace_kind kind;
    } kinds[] = {
        {"fetch", CN_TRACE_FETCH},         {"rpc", CN_TRACE_RPC},     {"target", CN_TRACE_RPC},
        {"scheduled", CN_TRACE_SCHEDULED}, {"queue", CN_TRACE_QUEUE}, {"tail", CN_TRACE_TAIL},
    };
    const struct cn_dispatch *dispatch = event->dispatch;
    struct cn_origin origin = dispatch->origin;
    enum cn_trace_kind kind = CN_TRACE_OTHER;
    for (size_t i = 0; i < CN_ARRAY_COUNT(kinds); i++) {
        if (strcmp(kinds[i].handler, dispatch->handler) == 0)
            kind = kinds[i].kind;
    }
    origin.request = event->id;
    event->unsampled = origin.unsampled;
    if (dispatch->method && dispatch->method[0] == '~')
        return; /* only the lifetime of a stub */
    event->trace = cn_trace_begin(event->instance, kind, dispatch->entrypoint, NULL, &origin);
}

static void deliver(struct cn_dispatch *dispatch)
{
    struct cn_lane *lane = dispatch->to;
    struct cn_instance *instance = find_instance(lane, dispatch);
    if (!instance || !takes(instance, dispatch)) {
        fail_unsent(dispatch, CN_FAULT_RETRYABLE, CN_ECLOSED,
                    dispatch->serial ? "The worker that this stub belongs to has ended."
                                     : "The worker behind this service binding is not running.");
        go_back(dispatch);
        return;
    }
    struct cn_event *event = cn_event_new(instance);
    if (!event) {
        fail_unsent(dispatch, CN_FAULT_OVERLOADED, CN_EOVERLOADED,
                    "The worker is overloaded: too many events are under way.");
        go_back(dispatch);
        return;
    }
    event->dispatch = dispatch;
    event->depth = dispatch->origin.depth;
    if (dispatch->origin.request)
        event->id = dispatch->origin.request;
    if (instance->watched)
        begin_trace(event);
    run(event);
}

/* --- answers --------------------------------------------------------------------------------- */

static void answer(struct cn_event *event, const uint8_t *bytes, size_t size)
{
    struct cn_dispatch *dispatch = event->dispatch;
    event->dispatch = NULL;
    if (bytes) {
        dispatch->result = cn_memdup(bytes, size);
        dispatch->result_size = size;
    }
    if (strcmp(dispatch->handler, "target") == 0)
        cn_event_leave(event); /* it has no context that could wait for more */
    go_back(dispatch);
}

void cn_dispatch_reply(struct cn_event *event, const uint8_t *bytes, size_t size, bool streams)
{
    if (!event->dispatch)
        return;
    answer(event, bytes, size);
    if (streams)
        cn_event_begin(event);
    else
        cn_event_answered(event);
}

void cn_dispatch_end(struct cn_event *event)
{
    if (cn_event_is_streaming(event) && !event->http)
        cn_event_answered(event);
}

void cn_dispatch_fail(struct cn_event *event, unsigned faults, int code, const char *text,
                      const uint8_t *bytes, size_t size)
{
    if (!event->outcome)
        event->outcome = code == CN_ELIMIT ? "exceededCpu" : "exception";
    if (event->dispatch) {
        cn_err_set(&event->dispatch->err, code, "%s", text);
        event->dispatch->faults = faults;
        answer(event, bytes, size);
        cn_event_answered(event);
    } else {
        cn_dispatch_end(event); /* it has answered: what it streams ends */
    }
}

/* --- steps ----------------------------------------------------------------------------------- */

void cn_dispatch_step(struct cn_lane *lane)
{
    if (lane->dispatching || lane->vm->entered || lane->object_lane.turn_depth)
        return; /* D1; the idle handle comes back to it */
    lane->dispatching = true;
    struct cn_list *node;
    for (unsigned i = 0; i < STEP_MAX && (node = cn_list_take_front(&lane->dispatches)); i++) {
        struct cn_dispatch *dispatch = CN_CONTAINER_OF(node, struct cn_dispatch, link);
        if (dispatch->answered)
            dispatch->on_done(dispatch);
        else
            deliver(dispatch);
    }
    lane->dispatching = false;
    if (cn_list_empty(&lane->dispatches))
        uv_idle_stop(&lane->dispatch_spin);
}

void cn_dispatch_stop(struct cn_lane *lane)
{
    struct cn_list *node;
    lane->dispatching = true; /* what on_done sends now is not delivered any more */
    while ((node = cn_list_take_front(&lane->dispatches))) {
        struct cn_dispatch *dispatch = CN_CONTAINER_OF(node, struct cn_dispatch, link);
        if (!dispatch->answered)
            fail_unsent(dispatch, CN_FAULT_RETRYABLE, CN_ECLOSED, "the server is stopping");
        if (dispatch->from != lane)
            go_back(dispatch);
        else if (dispatch->callback.context)
            cn_dispatch_free(dispatch); /* its sender ends too */
        else
            dispatch->on_done(dispatch);
    }
}
