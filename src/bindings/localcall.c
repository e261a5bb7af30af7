/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/localcall.c - calls that stay on the lane and in its script.
 *
 * When the object called runs on this very instance, arguments and result need not
 * become bytes: the prelude keeps copies of them under a number, a slot, and only
 * the slot goes through the core, by the same mailbox and the same gates as every
 * call (prelude/workers/object/local.js).
 *
 * S1  The prelude gives a slot to one call; localReply() is called once for it, and
 *     the slot is free again.
 * S2  Only an object whose home is here has a number: a stub asks once where its object
 *     lives, and copies nothing for one that lives elsewhere. */
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

static struct cn_instance *instance_of(JSContextRef ctx)
{
    return cn_runtime_of(ctx)->data;
}

/* S2: whether the object's home is the instance that runs, on this lane: 1; else LocalHome. */
static int find_home(const struct cn_instance *instance, struct cn_namespace *ns,
                     const struct cn_object_key *key)
{
    struct cn_lane *lane = instance->lane;
    const struct cn_class *class_;
    void *class_data;
    if (!cn_jsclass_find(&lane->object_lane, ns, key, &class_, &class_data))
        return LOCAL_HOME_ELSEWHERE;
    if (class_ != &cn_jsclass)
        return LOCAL_HOME_COMPILED;
    struct cn_place place = cn_node_place(lane->options.node, key);
    return cn_place_is_desk(&place, &lane->desk) &&
                   ((struct cn_instance *)class_data)->serial == instance->serial
               ? 1
               : LOCAL_HOME_ELSEWHERE;
}

/* targetNew(ns, hex, name | undefined) -> number, for localCall(); or why there is none: LocalHome
 */
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
    int home = find_home(instance, ns, &key);
    if (home != 1)
        return JSValueMakeNumber(ctx, home);
    char *name =
        JSValueIsString(ctx, cn_js_arg(2)) ? cn_js_to_text(ctx, cn_js_arg(2), &name_size) : NULL;
    return JSValueMakeNumber(
        ctx, (double)cn_jstarget_add(&lane->targets, ns, &key, name, name_size, instance->serial));
}

static void tell(struct cn_jscall *jscall, enum cn_outcome outcome)
{
    struct cn_js_context *context = jscall->callback.context;
    JSContextRef ctx = context->ref;
    JSValueRef argv[5] = {JSValueMakeNumber(ctx, jscall->message.slot),
                          JSValueMakeNumber(ctx, outcome)};
    size_t argc = 2;
    if (outcome == CN_OUTCOME_FAILED || jscall->message.result)
        argv[argc++] = JSValueMakeUndefined(ctx);
    if (jscall->message.result) {
        argv[2] = cn_js_uint8array_take(ctx, jscall->message.result, jscall->message.result_size);
        jscall->message.result = NULL;
    }
    if (outcome == CN_OUTCOME_FAILED) {
        argv[argc++] = JSValueMakeNumber(ctx, jscall->message.call.envelope.faults);
        argv[argc++] = cn_js_text_z(ctx, jscall->message.call.envelope.err.text);
    }
    cn_js_invoke(ctx, jscall->callback.value, argc, argv, NULL); /* it reports itself */
}

/* S1 where the caller, an object, was reset. */
static void on_drop(struct cn_envelope *envelope)
{
    struct cn_jscall *jscall = cn_jscall_of(envelope);
    struct cn_js_context *context = jscall->callback.context;
    if (context) {
        cn_js_enter(context);
        tell(jscall, CN_OUTCOME_DROPPED);
        cn_js_leave(context);
    }
    cn_jscall_free(jscall);
}

static void on_done(struct cn_envelope *envelope)
{
    struct cn_jscall *jscall = cn_jscall_of(envelope);
    struct cn_js_context *context = jscall->callback.context;
    cn_message_settle(&jscall->message);
    if (!cn_js_enter_pin(&jscall->callback)) {
        on_drop(envelope);
        return;
    }
    tell(jscall, envelope->err.code ? CN_OUTCOME_FAILED : CN_OUTCOME_RETURNED);
    cn_jscall_free(jscall);
    cn_js_leave(context);
}

/* localCall(target, slot, kind) -> LocalSend */
static JSValueRef native_local_call(CN_JS_NATIVE_ARGS)
{
    struct cn_instance *instance = instance_of(ctx);
    struct cn_lane *lane = instance->lane;
    struct cn_jstarget *target =
        cn_jstarget_find(&lane->targets, cn_js_to_number(ctx, cn_js_arg(0)));
    if (!target)
        return JSValueMakeNumber(ctx, LOCAL_FORGOTTEN);
    uint32_t kind = cn_js_to_uint32(ctx, cn_js_arg(2));
    if (!cn_call_kind_sendable(kind))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "localCall: bad arguments");
    if (target->home_serial != instance->serial || instance->state != CN_INSTANCE_CURRENT)
        return JSValueMakeNumber(ctx, LOCAL_ELSEWHERE);
    if (cn_call_at_depth(lane))
        return JSValueMakeNumber(ctx, LOCAL_TOO_DEEP);
    struct cn_jscall *jscall = cn_jscall_new();
    struct cn_call *call = &jscall->message.call;
    jscall->message.home_serial = instance->serial;
    jscall->message.slot = cn_js_to_uint32(ctx, cn_js_arg(1));
    call->kind = (enum cn_call_kind)kind;
    call->ns = target->ns;
    call->key = target->key;
    call->envelope.from = cn_desk_place(&lane->desk);
    call->envelope.on_done = on_done;
    call->envelope.drop = on_drop;
    call->envelope.origin = cn_lane_origin(lane);
    const struct cn_object *object =
        cn_map_find(&lane->object_lane.objects, &call->key, sizeof(call->key));
    if (target->name && (!object || !object->name)) {
        call->name = cn_strndup(target->name, target->name_size);
        call->name_size = target->name_size;
    }
    cn_js_pin_borrow(&jscall->callback, cn_js_context_of(ctx), instance->local_reply.value);
    cn_call_send(call, cn_jsclass_gate(lane));
    return JSValueMakeNumber(ctx, LOCAL_SENT);
}
