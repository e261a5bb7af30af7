/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dispatch.h"

#include <string.h>

#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "js/value.h"
#include "worker/compiled.h"
#include "worker/event_life.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/rollout.h"
#include "worker/runtime.h"
#include "worker/trace.h"

struct cn_dispatch *cn_dispatch_new(struct cn_lane *from, struct cn_lane *to)
{
    cn_loop_assert_owner(&from->loop);
    struct cn_dispatch *dispatch = CN_NEW(struct cn_dispatch);
    dispatch->envelope.from = cn_desk_place(&from->desk);
    dispatch->envelope.to = cn_desk_place(&to->desk);
    return dispatch;
}

void cn_dispatch_free(struct cn_dispatch *dispatch)
{
    cn_js_pin_clear(&dispatch->callback);
    cn_free(dispatch->script);
    cn_free(dispatch->version);
    cn_free(dispatch->entrypoint);
    cn_free(dispatch->method);
    cn_free(dispatch->props);
    cn_free(dispatch->bytes);
    cn_free(dispatch->result);
    cn_lent_list_fini(&dispatch->lent);
    cn_free(dispatch);
}

/* --- at the worker --------------------------------------------------------------------------- */

/* The place of the version that gets it. */
static size_t find_version(struct cn_lane *lane, size_t first, const struct cn_dispatch *dispatch)
{
    const char *own = dispatch->version;
    int same = own ? cn_deployment_find_version(lane->deployment, first, own, strlen(own)) : -1;
    if (same >= 0)
        return (size_t)same; /* R4 */
    return cn_rollout_event(lane->deployment, first, dispatch->envelope.origin.request,
                            &lane->rand);
}

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
    const struct cn_deployment *deployment = lane->deployment;
    for (size_t i = 0; deployment && i < deployment->script_count; i++) {
        if (strcmp(deployment->scripts[i]->name, dispatch->script) == 0) /* the first: R1 */
            return lane->current[find_version(lane, i, dispatch)];
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

bool cn_dispatch_has_taker(struct cn_lane *lane, const char *script)
{
    struct cn_dispatch dispatch = {.script = (char *)script};
    const struct cn_instance *instance = lane->draining ? NULL : find_instance(lane, &dispatch);
    return instance && takes(instance, &dispatch);
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
    int rc =
        cn_js_call(context, instance->dispatch_event.value, CN_ARRAY_COUNT(argv), argv, NULL, &err);
    enum cn_js_end end = cn_js_leave(context);
    if (end)
        rc = cn_err_set(&err, CN_ELIMIT, "The script %s.",
                        cn_js_end_text(end, instance->script->cpu_limit_ms));
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
    struct cn_origin origin = dispatch->envelope.origin;
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

static void refuse(struct cn_dispatch *dispatch, unsigned faults, int code, const char *text)
{
    cn_envelope_refuse(&dispatch->envelope, faults, code, text);
}

/* D1: a step, or the loop itself, is all that is on the stack. */
static void arrive(struct cn_envelope *envelope)
{
    struct cn_dispatch *dispatch = cn_dispatch_of(envelope);
    struct cn_lane *lane = envelope->to.desk->data;
    struct cn_instance *instance = find_instance(lane, dispatch);
    if (!instance || !takes(instance, dispatch)) {
        refuse(dispatch, CN_FAULT_RETRYABLE, CN_ECLOSED,
               dispatch->serial ? "The worker that this stub belongs to has ended."
                                : "The worker behind this service binding is not running.");
        return;
    }
    struct cn_event *event = cn_event_new(instance);
    if (!event) {
        refuse(dispatch, CN_FAULT_OVERLOADED, CN_EOVERLOADED,
               "The worker is overloaded: too many events are under way.");
        return;
    }
    event->dispatch = dispatch;
    event->depth = envelope->origin.depth;
    if (envelope->origin.request)
        event->id = envelope->origin.request;
    if (cn_trace_is_watched(instance))
        begin_trace(event);
    if (cn_compiled_takes_dispatch(event))
        cn_compiled_dispatch(event);
    else
        run(event);
}

static void on_done(struct cn_envelope *envelope)
{
    struct cn_dispatch *dispatch = cn_dispatch_of(envelope);
    dispatch->on_done(dispatch);
}

static void on_drop(struct cn_envelope *envelope)
{
    struct cn_dispatch *dispatch = cn_dispatch_of(envelope);
    if (dispatch->on_drop)
        dispatch->on_drop(dispatch);
    cn_dispatch_free(dispatch);
}

void cn_dispatch_send(struct cn_dispatch *dispatch, struct cn_object *gate)
{
    CN_ASSERT(dispatch->on_done && dispatch->handler);
    CN_ASSERT(dispatch->serial || dispatch->script || dispatch->envelope.to.kind == CN_PLACE_ENDED);
    dispatch->envelope.arrive = arrive;
    dispatch->envelope.on_done = on_done;
    dispatch->envelope.drop = on_drop;
    cn_envelope_send(&dispatch->envelope, gate);
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
    cn_envelope_answer(&dispatch->envelope, NULL);
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
        cn_lent_list_fini(&event->dispatch->lent); /* of no answer */
        cn_err_set(&event->dispatch->envelope.err, code, "%s", text);
        event->dispatch->envelope.faults = faults;
        answer(event, bytes, size);
        cn_event_answered(event);
    } else {
        cn_dispatch_end(event); /* it has answered: what it streams ends */
    }
}
