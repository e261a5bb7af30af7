/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/dispatch.c - calls to workers as the prelude sees them: service bindings, ctx.exports,
 * and the answers to all that worker/dispatch.h delivers.
 *
 * `h` is the handle of an event (worker/event.h). */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "bindings/call.h"
#include "border/dispatch.h"
#include "js/native.h"
#include "object/object.h"
#include "worker/compiled.h"
#include "worker/dispatch.h"
#include "worker/event.h"
#include "worker/event_life.h"
#include "worker/instance.h"
#include "worker/jsclass.h"
#include "worker/lane.h"
#include "worker/runtime.h"
#include "worker/script.h"

static struct cn_lane *lane_of(JSContextRef ctx)
{
    return ((struct cn_instance *)cn_runtime_of(ctx)->data)->lane;
}

static void on_done(struct cn_dispatch *dispatch)
{
    cn_call_tell(&dispatch->callback, dispatch->envelope.faults, &dispatch->envelope.err,
                 &dispatch->result, dispatch->result_size); /* false: whoever asked is gone */
    cn_dispatch_free(dispatch);
}

void cn_dispatch_from_js(JSContextRef ctx, struct cn_dispatch *dispatch, const uint8_t *bytes,
                         size_t size, JSValueRef callback)
{
    struct cn_lane *lane = lane_of(ctx);
    dispatch->bytes = cn_memdup(bytes, size);
    dispatch->size = size;
    dispatch->on_done = on_done;
    dispatch->envelope.origin = cn_lane_origin(lane);
    cn_js_pin_set(&dispatch->callback, cn_js_context_of(ctx), callback);
    if (cn_place_is_desk(&dispatch->envelope.to, &lane->desk))
        cn_js_pin_set_passive(&dispatch->callback); /* its event is on this lane, too */
    cn_dispatch_send(dispatch, cn_jsclass_gate(lane));
}

static char *optional_text(JSContextRef ctx, JSValueRef value)
{
    return JSValueIsString(ctx, value) ? cn_js_to_text(ctx, value, NULL) : NULL;
}

/* The name of a kind of call, as the dispatch keeps it. */
static const char *handler_of(JSContextRef ctx, JSValueRef value)
{
    static const char *const kinds[] = {"rpc", "fetch", "handler"};
    char *name = cn_js_to_text(ctx, value, NULL);
    const char *found = kinds[0];
    for (size_t i = 0; i < CN_ARRAY_COUNT(kinds); i++) {
        if (strcmp(name, kinds[i]) == 0)
            found = kinds[i];
    }
    cn_free(name);
    return found;
}

/* serviceCall(worker, "rpc" | "fetch" | "handler", entrypoint | undefined, method | undefined,
 * props | undefined, bytes, callback): as objectCall(). The worker runs on this lane. */
static JSValueRef native_service_call(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes, *props;
    size_t size, props_size;
    if (!cn_js_bytes(ctx, cn_js_arg(5), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "serviceCall: bad arguments");
    if (cn_call_too_large(ctx, exception, size) || cn_call_too_deep(ctx, exception))
        return JSValueMakeUndefined(ctx);
    struct cn_lane *lane = lane_of(ctx);
    struct cn_dispatch *dispatch = cn_dispatch_new(lane, lane);
    dispatch->script = cn_js_to_text(ctx, cn_js_arg(0), NULL);
    const struct cn_script *own = ((struct cn_instance *)cn_runtime_of(ctx)->data)->script;
    if (own->version && dispatch->script && strcmp(own->name, dispatch->script) == 0)
        dispatch->version = cn_strdup(own->version); /* R4 of worker/script.h */
    dispatch->handler = handler_of(ctx, cn_js_arg(1));
    dispatch->entrypoint = optional_text(ctx, cn_js_arg(2));
    dispatch->method = optional_text(ctx, cn_js_arg(3));
    if (cn_js_bytes(ctx, cn_js_arg(4), &props, &props_size)) {
        dispatch->props = cn_memdup(props, props_size);
        dispatch->props_size = props_size;
    }
    cn_dispatch_from_js(ctx, dispatch, bytes, size, cn_js_arg(6));
    return JSValueMakeUndefined(ctx);
}

static bool has_class(const struct cn_script *script, uint32_t ns)
{
    for (size_t i = 0; i < script->class_count; i++) {
        if (script->classes[i].ns->id == ns)
            return true;
    }
    return false;
}

/* The script that a stub leads to: the worker with this name, or the one whose class has this
 * namespace. NULL: there is none now. */
static const struct cn_script *stub_script(JSContextRef ctx, JSValueRef target)
{
    const struct cn_deployment *deployment = lane_of(ctx)->deployment;
    char *name = optional_text(ctx, target);
    uint32_t ns = name ? 0 : cn_js_to_uint32(ctx, target);
    const struct cn_script *found = NULL;
    for (size_t i = 0; deployment && !found && i < deployment->script_count; i++) {
        const struct cn_script *each = deployment->scripts[i];
        if (name ? strcmp(each->name, name) == 0 : has_class(each, ns))
            found = each;
    }
    cn_free(name);
    return found;
}

/* stubTarget(worker | ns) -> 0: stubs of it may be kept and used; 1: its worker does not allow
 * that, or not any more; 2: it does not exist */
static JSValueRef native_stub_target(CN_JS_NATIVE_ARGS)
{
    const struct cn_script *script = stub_script(ctx, cn_js_arg(0));
    if (!script)
        return JSValueMakeNumber(ctx, 2);
    return JSValueMakeNumber(ctx, script->keeps_stubs ? 0 : 1);
}

/* serviceIsCompiled(worker) -> whether its fetch() is written in C, and reads no streams */
static JSValueRef native_service_is_compiled(CN_JS_NATIVE_ARGS)
{
    const struct cn_script *script = stub_script(ctx, cn_js_arg(0));
    return JSValueMakeBoolean(ctx, script && cn_compiled_fetches(script));
}

static struct cn_event *event_arg(JSContextRef ctx, JSValueRef handle)
{
    return cn_event_find(lane_of(ctx), cn_js_to_number(ctx, handle));
}

/* eventLends(h, address, number): the answer that comes next has this by reference */
static JSValueRef native_event_lends(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = event_arg(ctx, cn_js_arg(0));
    if (event && event->dispatch && event->dispatch->lent.wanted)
        cn_lent_list_add(&event->dispatch->lent, cn_js_to_text(ctx, cn_js_arg(1), NULL),
                         cn_js_to_number(ctx, cn_js_arg(2)));
    return JSValueMakeUndefined(ctx);
}

/* eventReply(h, bytes, streams): the answer; with `streams`, eventEnd(h) follows */
static JSValueRef native_event_reply(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = event_arg(ctx, cn_js_arg(0));
    uint8_t *bytes = NULL;
    size_t size = 0;
    if (!event)
        return JSValueMakeUndefined(ctx); /* failed meanwhile */
    if (cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size) && cn_call_too_large(ctx, exception, size))
        return JSValueMakeUndefined(ctx);
    cn_dispatch_reply(event, bytes, size, JSValueToBoolean(ctx, cn_js_arg(2)));
    return JSValueMakeUndefined(ctx);
}

/* eventEnd(h): what the answer streamed is over */
static JSValueRef native_event_end(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = event_arg(ctx, cn_js_arg(0));
    if (event)
        cn_dispatch_end(event);
    return JSValueMakeUndefined(ctx);
}

/* eventReject(h, message, bytes | undefined): it threw; bytes are the error */
static JSValueRef native_event_reject(CN_JS_NATIVE_ARGS)
{
    struct cn_event *event = event_arg(ctx, cn_js_arg(0));
    uint8_t *bytes = NULL;
    size_t size = 0;
    if (!event)
        return JSValueMakeUndefined(ctx);
    if (!cn_js_bytes(ctx, cn_js_arg(2), &bytes, &size))
        bytes = NULL;
    char *message = cn_js_to_text(ctx, cn_js_arg(1), NULL);
    cn_dispatch_fail(event, CN_FAULT_REMOTE, CN_EJS, message, bytes, size);
    cn_free(message);
    return JSValueMakeUndefined(ctx);
}

/* eventHold() -> h: an event that lasts until eventDone(h), for a waitUntil() that belongs to no
 * other; 0 if there are too many */
static JSValueRef native_event_hold(CN_JS_NATIVE_ARGS)
{
    struct cn_instance *instance = cn_runtime_of(ctx)->data;
    struct cn_event *event = cn_event_new(instance);
    if (!event)
        return JSValueMakeNumber(ctx, 0);
    cn_event_answered(event);
    return JSValueMakeNumber(ctx, (double)event->handle);
}
