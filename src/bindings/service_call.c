/* SPDX-License-Identifier: Apache-2.0 */
#include "bindings/service_call.h"

#include <string.h>

#include "base/mem.h"
#include "object/node.h"
#include "object/object.h"
#include "worker/instance.h"
#include "worker/jsclass.h"
#include "worker/lane.h"
#include "worker/runtime.h"
#include "worker/script.h"

/* The caller's side of a call: its `data`. */
struct waiting {
    struct cn_js_pin callback;
    cn_jsservice_convert convert;
    struct cn_js_reserve held; /* what the call was given */
};

static struct cn_lane *lane_of(JSContextRef ctx)
{
    return ((struct cn_instance *)cn_runtime_of(ctx)->data)->lane;
}

struct cn_object_lane *cn_jsservice_lane(JSContextRef ctx)
{
    return &lane_of(ctx)->object_lane;
}

struct cn_namespace *cn_jsservice_namespace(JSContextRef ctx, JSValueRef number, const char *prefix,
                                            JSValueRef *exception)
{
    struct cn_instance *instance = cn_runtime_of(ctx)->data;
    uint32_t id = cn_js_to_uint32(ctx, number);
    struct cn_namespace *ns = cn_script_is_granted(instance->script, id)
                                  ? cn_node_namespace_find(instance->lane->options.node, id)
                                  : NULL;
    if (ns && strncmp(ns->name, prefix, strlen(prefix)) == 0)
        return ns;
    cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "There is no such binding.");
    return NULL;
}

bool cn_jsservice_body(JSContextRef ctx, JSValueRef value, struct cn_buf *out)
{
    uint8_t *bytes;
    size_t size;
    if (JSValueIsString(ctx, value)) {
        cn_js_append_utf8(ctx, value, out);
        return true;
    }
    if (!cn_js_bytes(ctx, value, &bytes, &size))
        return false;
    cn_buf_append(out, bytes, size);
    return true;
}

static void free_call(struct cn_service_call *call)
{
    struct waiting *waiting = call->call.envelope.data;
    cn_js_pin_clear(&waiting->callback);
    cn_js_alloc_release(&waiting->held);
    cn_free(waiting);
    cn_service_call_free(call);
}

static void on_done(struct cn_service_call *call)
{
    struct waiting *waiting = call->call.envelope.data;
    if (!cn_js_enter_pin(&waiting->callback)) {
        free_call(call);
        return;
    }
    struct cn_js_context *context = waiting->callback.context;
    JSContextRef ctx = context->ref;
    JSValueRef argv[3] = {JSValueMakeUndefined(ctx)};
    size_t argc = 1;
    if (call->call.envelope.err.code) {
        argv[1] = cn_js_text_z(ctx, call->call.envelope.err.text);
        argv[2] = JSValueMakeNumber(ctx, call->call.envelope.err.code);
        argc = 3;
    } else if (waiting->convert) {
        argv[0] = waiting->convert(ctx, call);
    }
    cn_js_invoke(ctx, waiting->callback.value, argc, argv, NULL);
    free_call(call);
    cn_js_leave(context);
}

/* Nobody waits. */
static void on_drop(struct cn_envelope *envelope)
{
    free_call(cn_service_call_of(envelope));
}

void cn_jsservice_send(JSContextRef ctx, struct cn_service_call *call, JSValueRef callback,
                       cn_jsservice_convert convert)
{
    struct cn_lane *lane = lane_of(ctx);
    struct waiting *waiting = CN_NEW(struct waiting);
    waiting->convert = convert;
    cn_js_pin_set(&waiting->callback, cn_js_context_of(ctx), callback);
    call->call.envelope.data = waiting;
    call->call.envelope.origin = cn_lane_origin(lane);
    call->call.envelope.drop = on_drop;
    if (!cn_js_alloc_reserve(&waiting->held, call->call.size)) { /* M6 of js/engine/alloc.h */
        cn_err_set(&call->call.envelope.err, CN_EOVERLOADED, "There is no memory for this now.");
        on_done(call);
        return;
    }
    cn_service_call_send_gated(call, &lane->object_lane, cn_jsclass_gate(lane), on_done);
}
