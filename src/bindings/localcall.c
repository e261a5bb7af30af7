/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/localcall.c - calls that stay on the lane and in its script.
 *
 * When the object called runs on this very instance, arguments and result need not
 * become bytes: the prelude keeps copies of them under a number, a slot, and only
 * the slot goes through the core, by the same mailbox and the same gates as every
 * call (prelude/workers/object/local.js).
 *
 * An object of a module (module/module.h) reads bytes, on whichever lane it lives. A call to it has
 * a slot too, and arguments and results that are plain become bytes, and values again, right here
 * (js/plain.h).
 *
 * S1  The prelude gives a slot to one call; localReply() is called once for it, and
 *     the slot is free again.
 * S2  Only an object whose home is here, or whose class is a module's, has a number: a stub asks
 *     once where its object lives, and copies nothing for one that lives elsewhere.
 * S3  A number is good for the instance that it was given to alone.
 * S4  In a cluster an object of this lane may be on another node, today and not tomorrow: that is
 *     asked anew with every call, before anything is copied. Where it moves in between, the call
 *     goes by bytes that are made of the copies: an argument is read once, wherever its object is.
 */
#include <math.h>

#include "base/mem.h"
#include "bindings/call.h"
#include "border/localcall.h"
#include "js/native.h"
#include "js/plain.h"
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

/* S2 */
enum home { HOME_ELSEWHERE, HOME_HERE, HOME_COMPILED, HOME_FAR /* S4 */ };

/* S4 */
static bool is_far(struct cn_lane *lane, const struct cn_object_key *key)
{
    return lane->desk.carrier && !cn_object_lane_serves(&lane->object_lane, key);
}

/* Whether the object's home is the instance that runs, on this lane. */
static enum home find_home(const struct cn_instance *instance, struct cn_namespace *ns,
                           const struct cn_object_key *key)
{
    struct cn_lane *lane = instance->lane;
    const struct cn_class *class_;
    void *class_data;
    if (!cn_jsclass_find(&lane->object_lane, ns, key, &class_, &class_data))
        return HOME_ELSEWHERE;
    if (class_ != &cn_jsclass)
        return HOME_COMPILED;
    struct cn_place place = cn_node_place(lane->options.node, key);
    if (!cn_place_is_desk(&place, &lane->desk) ||
        ((struct cn_instance *)class_data)->serial != instance->serial)
        return HOME_ELSEWHERE;
    return is_far(lane, key) ? HOME_FAR : HOME_HERE;
}

/* targetNew(ns, hex, name | undefined) -> number, for localCall(); of an object of a module minus
 * its number, for compiledCall(); 0: it has none; NaN: none for now, S4 */
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
    enum home home = find_home(instance, ns, &key);
    if (home == HOME_ELSEWHERE)
        return JSValueMakeNumber(ctx, 0);
    if (home == HOME_FAR)
        return JSValueMakeNumber(ctx, NAN);
    char *name =
        JSValueIsString(ctx, cn_js_arg(2)) ? cn_js_to_text(ctx, cn_js_arg(2), &name_size) : NULL;
    double number =
        (double)cn_jstarget_add(&lane->targets, ns, &key, name, name_size, instance->serial);
    return JSValueMakeNumber(ctx, home == HOME_HERE ? number : -number);
}

/* What a call has ended with, for localReply(): bytes that become JavaScript's, or undefined. */
static JSValueRef take_result(JSContextRef ctx, struct cn_message *message)
{
    if (!message->result)
        return JSValueMakeUndefined(ctx);
    JSValueRef bytes = cn_js_uint8array_take(ctx, message->result, message->result_size);
    message->result = NULL;
    return bytes;
}

static void tell(struct cn_jscall *jscall, enum cn_outcome outcome)
{
    struct cn_js_context *context = jscall->callback.context;
    struct cn_message *message = &jscall->message;
    JSContextRef ctx = context->ref;
    JSValueRef argv[5] = {JSValueMakeNumber(ctx, message->slot), JSValueMakeNumber(ctx, outcome)};
    size_t argc = 2;
    if (outcome == CN_OUTCOME_RETURNED && message->result && !message->home_serial)
        argv[2] = cn_js_plain_read(ctx, message->result, message->result_size); /* else NULL */
    if (outcome == CN_OUTCOME_FAILED || message->result) {
        if (!argv[2])
            argv[2] = take_result(ctx, message);
        argc = 3;
    }
    if (outcome == CN_OUTCOME_FAILED) {
        argv[argc++] = JSValueMakeNumber(
            ctx, cn_call_faults(message->call.envelope.faults, &message->call.envelope.err));
        argv[argc++] = cn_js_text_z(ctx, message->call.envelope.err.text);
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

/* S3: NULL: the number stands for nothing, or for nothing of this instance. */
static struct cn_jstarget *target_arg(JSContextRef ctx, JSValueRef number)
{
    const struct cn_instance *instance = instance_of(ctx);
    struct cn_jstarget *target =
        cn_jstarget_find(&instance->lane->targets, cn_js_to_number(ctx, number));
    return target && target->home_serial == instance->serial ? target : NULL;
}

static struct cn_jscall *call_new(JSContextRef ctx, const struct cn_jstarget *target, uint32_t slot,
                                  uint32_t kind)
{
    struct cn_instance *instance = instance_of(ctx);
    struct cn_lane *lane = instance->lane;
    struct cn_jscall *jscall = cn_jscall_new();
    struct cn_call *call = &jscall->message.call;
    jscall->message.slot = slot;
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
    return jscall;
}

/* localCall(target, slot, kind) -> LocalSend */
static JSValueRef native_local_call(CN_JS_NATIVE_ARGS)
{
    struct cn_instance *instance = instance_of(ctx);
    struct cn_lane *lane = instance->lane;
    const struct cn_jstarget *target = target_arg(ctx, cn_js_arg(0));
    if (!target || is_far(lane, &target->key))
        return JSValueMakeNumber(ctx, LOCAL_FORGOTTEN);
    uint32_t kind = cn_js_to_uint32(ctx, cn_js_arg(2));
    if (!cn_call_kind_sendable(kind))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "localCall: bad arguments");
    if (instance->state != CN_INSTANCE_CURRENT)
        return JSValueMakeNumber(ctx, LOCAL_ELSEWHERE);
    if (cn_call_at_depth(lane))
        return JSValueMakeNumber(ctx, LOCAL_TOO_DEEP);
    struct cn_jscall *jscall = call_new(ctx, target, cn_js_to_uint32(ctx, cn_js_arg(1)), kind);
    jscall->message.home_serial = instance->serial;
    cn_call_send(&jscall->message.call, cn_jsclass_gate(lane));
    return JSValueMakeNumber(ctx, LOCAL_SENT);
}

/* compiledCall(target, slot, method, ...arguments) -> LocalSend */
static JSValueRef native_compiled_call(CN_JS_NATIVE_ARGS)
{
    struct cn_lane *lane = instance_of(ctx)->lane;
    const struct cn_jstarget *target = target_arg(ctx, cn_js_arg(0));
    if (!target)
        return JSValueMakeNumber(ctx, LOCAL_FORGOTTEN);
    if (argc < 3 || !JSValueIsString(ctx, argv[2]))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "compiledCall: bad arguments");
    if (cn_call_at_depth(lane))
        return JSValueMakeNumber(ctx, LOCAL_TOO_DEEP);
    struct cn_buf bytes = {0};
    if (!cn_js_plain_write(ctx, argc - 3, argv + 3, &bytes) || bytes.size > CN_MESSAGE_SIZE_MAX) {
        cn_buf_fini(&bytes);
        return JSValueMakeNumber(ctx, LOCAL_NOT_PLAIN);
    }
    struct cn_jscall *jscall =
        call_new(ctx, target, cn_js_to_uint32(ctx, cn_js_arg(1)), CN_CALL_RPC);
    jscall->message.method = cn_js_to_text(ctx, argv[2], NULL);
    jscall->message.size = jscall->message.call.size = bytes.size;
    jscall->message.bytes = cn_buf_take(&bytes);
    cn_call_send(&jscall->message.call, cn_jsclass_gate(lane));
    return JSValueMakeNumber(ctx, LOCAL_SENT);
}
