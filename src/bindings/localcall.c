/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/localcall.c - calls that stay on the lane and in its script.
 *
 * When the object called runs on this very instance, arguments and result need not
 * become bytes: the prelude keeps copies of them under a number, a slot, and only
 * the slot goes through the core, by the same mailbox and the same gates as every
 * call (prelude/workers/object/local.js).
 *
 * S1  The prelude gives a slot to one call; localReply() is called once for it, and
 *     the slot is free again. */
#include "base/mem.h"
#include "bindings/call.h"
#include "border/localcall.h"
#include "js/native.h"
#include "object/id.h"
#include "object/object.h"
#include "worker/instance.h"
#include "worker/jsclass.h"
#include "worker/jstarget.h"
#include "worker/lane.h"
#include "worker/runtime.h"

enum { DROPPED = -2 }; /* instead of faults: there is nobody to be told */

static struct cn_instance *instance_of(JSContextRef ctx)
{
    return cn_runtime_of(ctx)->data;
}

/* targetNew(ns, hex, name | undefined) -> number, for localCall() */
static JSValueRef native_target_new(CN_JS_NATIVE_ARGS)
{
    struct cn_instance *instance = instance_of(ctx);
    struct cn_lane *lane = instance->lane;
    size_t hex_size, name_size = 0;
    char *hex = cn_js_to_text(ctx, cn_js_arg(1), &hex_size);
    struct cn_object_key key;
    struct cn_namespace *ns = cn_id_from_hex(hex, hex_size, key.id)
                                  ? cn_call_address(ctx, cn_js_to_uint32(ctx, cn_js_arg(0)), key.id)
                                  : NULL;
    cn_free(hex);
    if (!ns)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "targetNew: bad arguments");
    key.namespace_id = ns->id;
    const struct cn_class *class_;
    void *class_data;
    uint32_t home = 0;
    if (cn_node_owner(lane->options.node, &key) == &lane->object_lane &&
        cn_jsclass_find(&lane->object_lane, ns, &class_, &class_data))
        home = ((struct cn_instance *)class_data)->serial;
    char *name =
        JSValueIsString(ctx, cn_js_arg(2)) ? cn_js_to_text(ctx, cn_js_arg(2), &name_size) : NULL;
    return JSValueMakeNumber(
        ctx, (double)cn_jstarget_add(&lane->targets, ns, &key, name, name_size, home));
}

static void tell(struct cn_jscall *jscall, int faults)
{
    struct cn_js_context *context = jscall->callback.context;
    JSContextRef ctx = context->ref;
    JSValueRef undefined = JSValueMakeUndefined(ctx);
    JSValueRef argv[] = {JSValueMakeNumber(ctx, jscall->slot), JSValueMakeNumber(ctx, faults),
                         undefined, undefined};
    if (jscall->result) {
        argv[2] = cn_js_uint8array_take(ctx, jscall->result, jscall->result_size);
        jscall->result = NULL;
    }
    if (faults >= 0)
        argv[3] = cn_js_text_z(ctx, jscall->call.err.text);
    cn_js_invoke(ctx, jscall->callback.value, CN_ARRAY_COUNT(argv), argv,
                 NULL); /* it reports itself */
}

/* S1 where the caller, an object, was reset. */
static void free_slot(struct cn_jscall *jscall)
{
    struct cn_js_context *context = jscall->callback.context;
    if (context) {
        cn_js_enter(context);
        tell(jscall, DROPPED);
        cn_js_leave(context);
    }
    cn_jscall_free(jscall);
}

static void on_reply(struct cn_call *call)
{
    struct cn_jscall *jscall = CN_CONTAINER_OF(call, struct cn_jscall, call);
    struct cn_js_context *context = jscall->callback.context;
    cn_jscall_settle(jscall);
    if (!cn_js_enter_pin(&jscall->callback)) {
        free_slot(jscall);
        return;
    }
    tell(jscall, call->err.code ? (int)call->faults : -1);
    cn_jscall_free(jscall);
    cn_js_leave(context);
}

static void on_gate(struct cn_output *output, const struct cn_err *err)
{
    struct cn_call *call = CN_CONTAINER_OF(output, struct cn_call, output);
    if (err)
        free_slot(CN_CONTAINER_OF(call, struct cn_jscall, call));
    else
        cn_call_send(call);
}

/* localCall(target, slot, kind) -> 1 it is sent; 0 the object is not here: call it by bytes; -1
 * there is no such target any more */
static JSValueRef native_local_call(CN_JS_NATIVE_ARGS)
{
    struct cn_instance *instance = instance_of(ctx);
    struct cn_lane *lane = instance->lane;
    struct cn_jstarget *target =
        cn_jstarget_find(&lane->targets, cn_js_to_number(ctx, cn_js_arg(0)));
    if (!target)
        return JSValueMakeNumber(ctx, -1);
    uint32_t kind = cn_js_to_uint32(ctx, cn_js_arg(2));
    if (!cn_call_kind_sendable(kind))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "localCall: bad arguments");
    if (target->home_serial != instance->serial || instance->state != CN_INSTANCE_CURRENT ||
        cn_call_at_depth(lane)) /* objectCall() says so */
        return JSValueMakeNumber(ctx, 0);
    struct cn_jscall *jscall = cn_jscall_new();
    struct cn_call *call = &jscall->call;
    jscall->home_serial = instance->serial;
    jscall->slot = cn_js_to_uint32(ctx, cn_js_arg(1));
    call->kind = (enum cn_call_kind)kind;
    call->ns = target->ns;
    call->key = target->key;
    call->caller = &lane->object_lane;
    call->on_reply = on_reply;
    call->origin = cn_lane_origin(lane);
    const struct cn_object *object =
        cn_map_find(&lane->object_lane.objects, &call->key, sizeof(call->key));
    if (target->name && (!object || !object->name)) {
        call->name = cn_strndup(target->name, target->name_size);
        call->name_size = target->name_size;
    }
    cn_js_pin_borrow(&jscall->callback, cn_js_context_of(ctx), instance->local_reply.value);
    struct cn_object *from = cn_jsclass_gate(lane);
    if (from)
        cn_object_output(from, &call->output, on_gate); /* DO-TX-5 */
    else
        cn_call_send(call);
    return JSValueMakeNumber(ctx, 1);
}
