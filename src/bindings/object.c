/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/object.c - Durable Objects as the prelude sees them: ids, calls, life, gates.
 *
 * `ns` is the store's number of a namespace, `o` the number of a live object, `c`
 * that of a call delivered to it (worker/jsclass.h).
 *
 * What is sent by reference (functions, RpcTargets, streams) has an address, a
 * text: "o<namespace>:<id>" for what an object has exported, "w<lane>:<serial>" for
 * what a worker's instance on a lane has. A call to an object's goes through its
 * mailbox and gates; one to a worker's goes straight to its lane. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "bindings/call.h"
#include "border/object.h"
#include "js/native.h"
#include "object/alarm.h"
#include "object/call.h"
#include "object/id.h"
#include "object/lent.h"
#include "service/service.h"
#include "worker/dispatch.h"
#include "worker/instance.h"
#include "worker/jsclass.h"
#include "worker/lane.h"
#include "worker/remote.h"
#include "worker/runtime.h"
#include "worker/trace.h"

static struct cn_instance *instance_of(JSContextRef ctx)
{
    return cn_runtime_of(ctx)->data;
}

struct cn_namespace *cn_call_namespace(const struct cn_lane *lane, uint32_t id)
{
    struct cn_namespace *ns =
        lane->options.node ? cn_node_namespace_find(lane->options.node, id) : NULL;
    return ns && !cn_service_owns(ns->name) ? ns : NULL; /* C1 */
}

bool cn_call_kind_sendable(uint32_t kind)
{
    return kind == CN_CALL_FETCH || kind == CN_CALL_RPC; /* C1 */
}

struct cn_namespace *cn_call_own_namespace(JSContextRef ctx, uint32_t id)
{
    const struct cn_script *script = instance_of(ctx)->script;
    for (size_t i = 0; i < script->namespace_count; i++) {
        if (script->namespaces[i]->id == id)
            return script->namespaces[i];
    }
    for (size_t i = 0; i < script->class_count; i++) { /* ctx.exports */
        if (script->classes[i].ns->id == id)
            return script->classes[i].ns;
    }
    return NULL;
}

struct cn_namespace *cn_call_address(JSContextRef ctx, uint32_t ns_id, const uint8_t id[])
{
    struct cn_namespace *ns = cn_call_own_namespace(ctx, ns_id);
    if (ns)
        return ns;
    ns = cn_call_namespace(instance_of(ctx)->lane, ns_id);
    return ns && cn_id_valid(&ns->keys, id) ? ns : NULL; /* C2 */
}

/* NULL: no binding of the script names it. */
static struct cn_namespace *namespace_arg(JSContextRef ctx, JSValueRef value)
{
    return cn_call_own_namespace(ctx, cn_js_to_uint32(ctx, value));
}

static JSValueRef no_namespace(JSContextRef ctx, JSValueRef *exception)
{
    return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "There is no such namespace.");
}

static struct cn_jsobject *object_arg(JSContextRef ctx, JSValueRef handle)
{
    return cn_jsobject_find(instance_of(ctx), cn_js_to_number(ctx, handle));
}

static struct cn_call *call_arg(JSContextRef ctx, JSValueRef handle)
{
    return cn_jscall_find(instance_of(ctx), cn_js_to_number(ctx, handle));
}

static JSValueRef hex_value(JSContextRef ctx, const uint8_t id[CN_OBJECT_ID_SIZE])
{
    char hex[CN_OBJECT_HEX_SIZE + 1];
    cn_id_to_hex(id, hex);
    return cn_js_text_z(ctx, hex);
}

/* idFromName(ns, name, jurisdiction) -> 64 hex digits */
static JSValueRef native_id_from_name(CN_JS_NATIVE_ARGS)
{
    struct cn_namespace *ns = namespace_arg(ctx, cn_js_arg(0));
    uint32_t jurisdiction = cn_js_to_uint32(ctx, cn_js_arg(2));
    if (!ns || jurisdiction >= CN_JURISDICTION_COUNT)
        return no_namespace(ctx, exception);
    struct cn_buf *name = &instance_of(ctx)->lane->scratch;
    cn_buf_clear(name);
    cn_js_append_utf8(ctx, cn_js_arg(1), name);
    uint8_t id[CN_OBJECT_ID_SIZE];
    cn_id_from_name(&ns->keys, (enum cn_jurisdiction)jurisdiction,
                    name->data ? (const char *)name->data : "", name->size, id);
    return hex_value(ctx, id);
}

/* idUnique(ns, jurisdiction) -> 64 hex digits */
static JSValueRef native_id_unique(CN_JS_NATIVE_ARGS)
{
    struct cn_namespace *ns = namespace_arg(ctx, cn_js_arg(0));
    uint32_t jurisdiction = cn_js_to_uint32(ctx, cn_js_arg(1));
    if (!ns || jurisdiction >= CN_JURISDICTION_COUNT)
        return no_namespace(ctx, exception);
    uint8_t id[CN_OBJECT_ID_SIZE];
    cn_id_unique(&ns->keys, (enum cn_jurisdiction)jurisdiction, id);
    return hex_value(ctx, id);
}

static bool id_arg(JSContextRef ctx, JSValueRef value, uint8_t id[CN_OBJECT_ID_SIZE])
{
    char hex[3 * CN_OBJECT_HEX_SIZE + 1];
    JSStringRef string = JSValueToStringCopy(ctx, value, NULL);
    if (!string)
        return false;
    bool ok = JSStringGetLength(string) == CN_OBJECT_HEX_SIZE &&
              JSStringGetUTF8CString(string, hex, sizeof(hex)) == CN_OBJECT_HEX_SIZE + 1 &&
              cn_id_from_hex(hex, CN_OBJECT_HEX_SIZE, id);
    JSStringRelease(string);
    return ok;
}

/* idCheck(ns, hex) -> jurisdiction (0: none), -1 not an id, -2 of another namespace */
static JSValueRef native_id_check(CN_JS_NATIVE_ARGS)
{
    struct cn_namespace *ns =
        cn_call_namespace(instance_of(ctx)->lane, cn_js_to_uint32(ctx, cn_js_arg(0)));
    uint8_t id[CN_OBJECT_ID_SIZE];
    if (!ns)
        return no_namespace(ctx, exception);
    if (!id_arg(ctx, cn_js_arg(1), id))
        return JSValueMakeNumber(ctx, -1);
    if (!cn_id_valid(&ns->keys, id))
        return JSValueMakeNumber(ctx, -2);
    return JSValueMakeNumber(ctx, cn_id_jurisdiction(&ns->keys, id));
}

/* --- calls from here ------------------------------------------------------------------------- */

double cn_call_faults(unsigned faults, const struct cn_err *err)
{
    return err->code == CN_ECLOSED ? faults | CN_FAULT_AWAY : faults;
}

bool cn_call_tell(struct cn_js_pin *callback, unsigned faults, const struct cn_err *err,
                  uint8_t **result, size_t size)
{
    if (!cn_js_enter_pin(callback))
        return false;
    struct cn_js_context *context = callback->context;
    JSContextRef ctx = context->ref;
    JSValueRef argv[4] = {JSValueMakeNumber(ctx, CN_OUTCOME_RETURNED), JSValueMakeUndefined(ctx)};
    size_t argc = 2;
    if (err->code) {
        argv[0] = JSValueMakeNumber(ctx, CN_OUTCOME_FAILED);
        argv[2] = JSValueMakeNumber(ctx, cn_call_faults(faults, err));
        argv[3] = cn_js_text_z(ctx, err->text);
        argc = 4;
    }
    if (*result) {
        argv[1] = cn_js_uint8array_take(ctx, *result, size);
        *result = NULL;
    }
    cn_js_invoke(ctx, callback->value, argc, argv, NULL); /* it reports itself */
    cn_js_pin_clear(callback);
    cn_js_leave(context);
    return true;
}

static void on_done(struct cn_envelope *envelope)
{
    struct cn_jscall *jscall = cn_jscall_of(envelope);
    cn_message_settle(&jscall->message);
    cn_call_tell(&jscall->callback, envelope->faults, &envelope->err, &jscall->message.result,
                 jscall->message.result_size); /* false: whoever asked is gone */
    cn_jscall_free(jscall);
}

static void on_drop(struct cn_envelope *envelope)
{
    cn_jscall_free(cn_jscall_of(envelope));
}

/* Fills in what every call from here has, and sends it once the gate of the object that makes it
 * is open. */
static void send_call(JSContextRef ctx, struct cn_jscall *jscall, const uint8_t *bytes, size_t size,
                      JSValueRef callback)
{
    struct cn_lane *lane = instance_of(ctx)->lane;
    jscall->message.bytes = cn_memdup(bytes, size);
    jscall->message.size = jscall->message.call.size = size;
    jscall->message.call.envelope.from = cn_desk_place(&lane->desk);
    jscall->message.call.envelope.on_done = on_done;
    jscall->message.call.envelope.drop = on_drop;
    jscall->message.call.envelope.origin = cn_lane_origin(lane);
    cn_js_pin_set(&jscall->callback, cn_js_context_of(ctx), callback);
    cn_call_send(&jscall->message.call, cn_jsclass_gate(lane));
}

bool cn_call_too_large(JSContextRef ctx, JSValueRef *exception, size_t size)
{
    if (size <= CN_MESSAGE_SIZE_MAX)
        return false;
    cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR,
                "Serialized RPC arguments or return values are limited to 32MiB, but the size of "
                "this value was: %zu bytes.",
                size);
    return true;
}

bool cn_call_at_depth(const struct cn_lane *lane)
{
    return cn_js_cause(lane->vm).depth >= CN_CALL_DEPTH_MAX;
}

bool cn_call_too_deep(JSContextRef ctx, JSValueRef *exception)
{
    if (!cn_call_at_depth(instance_of(ctx)->lane))
        return false;
    cn_js_throw(ctx, exception, CN_JS_ERROR,
                "Subrequest depth limit exceeded: workers and objects have called one another %d "
                "times, each call made by the one before.",
                CN_CALL_DEPTH_MAX);
    return true;
}

/* objectCall(ns, hex, name | undefined, kind, method | undefined, bytes, callback): the callback
 * gets what bindings/call.h says. */
static JSValueRef native_object_call(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes, id[CN_OBJECT_ID_SIZE];
    size_t size;
    uint32_t kind = cn_js_to_uint32(ctx, cn_js_arg(3));
    struct cn_namespace *ns = id_arg(ctx, cn_js_arg(1), id)
                                  ? cn_call_address(ctx, cn_js_to_uint32(ctx, cn_js_arg(0)), id)
                                  : NULL;
    if (!ns || !cn_call_kind_sendable(kind) || !cn_js_bytes(ctx, cn_js_arg(5), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "objectCall: bad arguments");
    if (cn_call_too_large(ctx, exception, size) || cn_call_too_deep(ctx, exception))
        return JSValueMakeUndefined(ctx);
    struct cn_jscall *jscall = cn_jscall_new();
    struct cn_call *call = &jscall->message.call;
    call->kind = (enum cn_call_kind)kind;
    call->ns = ns;
    call->key.namespace_id = ns->id;
    memcpy(call->key.id, id, sizeof(id));
    if (JSValueIsString(ctx, cn_js_arg(2)))
        call->name = cn_js_to_text(ctx, cn_js_arg(2), &call->name_size);
    if (JSValueIsString(ctx, cn_js_arg(4)))
        jscall->message.method = cn_js_to_text(ctx, cn_js_arg(4), NULL);
    send_call(ctx, jscall, bytes, size, cn_js_arg(6));
    return JSValueMakeUndefined(ctx);
}

/* --- calls by address ------------------------------------------------------------------------ */

/* objectAddress(o) */
static JSValueRef native_object_address(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    if (!js)
        return cn_js_text_z(ctx, "");
    char hex[CN_OBJECT_HEX_SIZE + 1], text[CN_OBJECT_HEX_SIZE + 32];
    cn_id_to_hex(js->object->key.id, hex);
    snprintf(text, sizeof(text), "o%u:%s", js->object->ns->id, hex);
    return cn_js_text_z(ctx, text);
}

/* workerAddress() */
static JSValueRef native_worker_address(CN_JS_NATIVE_ARGS)
{
    struct cn_instance *instance = instance_of(ctx);
    struct cn_node *node = instance->lane->options.node;
    char text[64 + CN_NODE_MARK_SIZE];
    snprintf(text, sizeof(text), "w%u:%u%s", instance->lane->options.index, instance->serial,
             node ? cn_node_mark(node) : "");
    return cn_js_text_z(ctx, text);
}

static struct cn_lane *lane_at(struct cn_lane *lane, unsigned index)
{
    if (index == lane->options.index)
        return lane;
    struct cn_object_lane *other =
        lane->options.node ? cn_node_lane(lane->options.node, index) : NULL;
    return other ? other->data : NULL;
}

/* stubTerm(): of what comes by reference now */
static JSValueRef native_stub_term(CN_JS_NATIVE_ARGS)
{
    return JSValueMakeNumber(ctx, instance_of(ctx)->lane->stub_term);
}

/* lend(o, number, mark): what the object, or with 0 the worker, has lent under this number is held
 * by that session of another node */
static JSValueRef native_lend(CN_JS_NATIVE_ARGS)
{
    struct cn_instance *instance = instance_of(ctx);
    const struct cn_lane_remote *remote = instance->lane->options.remote;
    bool is_object = cn_js_to_number(ctx, cn_js_arg(0)) != 0;
    struct cn_jsobject *js = is_object ? object_arg(ctx, cn_js_arg(0)) : NULL;
    if (!remote || (is_object && !js))
        return JSValueMakeUndefined(ctx);
    char *mark = cn_js_to_text(ctx, cn_js_arg(2), NULL);
    remote->lend(&instance->lane->object_lane, js ? &js->object->key : NULL, instance->serial,
                 cn_js_to_number(ctx, cn_js_arg(1)), mark);
    cn_free(mark);
    return JSValueMakeUndefined(ctx);
}

/* A call by a stub of an earlier term (S4 of remote/leases.h) fails. What is of a worker of this node
 * lives as long as that. */
static bool is_stale(JSContextRef ctx, const struct cn_lent_address *address, JSValueRef term)
{
    bool here = address->kind == CN_LENT_WORKER && !address->disk;
    return !here && cn_js_to_uint32(ctx, term) != instance_of(ctx)->lane->stub_term;
}

/* targetCall(address, method, bytes, callback, term): as objectCall(); `term` is that in which the
 * stub came */
static JSValueRef native_target_call(CN_JS_NATIVE_ARGS)
{
    struct cn_lane *lane = instance_of(ctx)->lane;
    uint8_t *bytes;
    size_t size;
    struct cn_buf *text = &lane->scratch;
    cn_buf_clear(text);
    cn_js_append_utf8(ctx, cn_js_arg(0), text);
    struct cn_lent_address address = cn_lent_parse(lane->options.node, cn_buf_text(text));
    if (!cn_js_bytes(ctx, cn_js_arg(2), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "targetCall: bad arguments");
    if (cn_call_too_large(ctx, exception, size))
        return JSValueMakeUndefined(ctx);
    bool stale = is_stale(ctx, &address, cn_js_arg(4));
    struct cn_lane *to = address.disk || stale ? lane : lane_at(lane, address.lane);
    if ((address.kind == CN_LENT_WORKER && to) || (address.kind == CN_LENT_OBJECT && stale)) {
        struct cn_dispatch *dispatch = cn_dispatch_new(lane, to);
        if (stale)
            dispatch->envelope.to.kind = CN_PLACE_ENDED;
        else if (address.disk)
            dispatch->envelope.to =
                cn_node_place_of(&lane->desk, address.disk, address.life, address.lane);
        dispatch->serial = address.serial;
        dispatch->handler = "target";
        dispatch->method = cn_js_to_text(ctx, cn_js_arg(1), NULL);
        cn_dispatch_from_js(ctx, dispatch, bytes, size, cn_js_arg(3));
        return JSValueMakeUndefined(ctx);
    }
    if (address.kind != CN_LENT_OBJECT)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "the stub has no valid address");
    struct cn_jscall *jscall = cn_jscall_new();
    struct cn_call *call = &jscall->message.call;
    call->kind = CN_CALL_OTHER;
    call->ns = address.ns;
    call->key = address.key;
    jscall->message.method = cn_js_to_text(ctx, cn_js_arg(1), NULL);
    send_call(ctx, jscall, bytes, size, cn_js_arg(3));
    return JSValueMakeUndefined(ctx);
}

/* --- calls to here --------------------------------------------------------------------------- */

/* The call is answered; `outcome` NULL: well. */
static struct cn_call *take_call(JSContextRef ctx, JSValueRef handle, const char *outcome)
{
    struct cn_call *call = call_arg(ctx, handle);
    if (call) {
        struct cn_lane *lane = instance_of(ctx)->lane;
        cn_handles_remove(&lane->calls, call->tag);
        cn_trace_end(lane, call->trace, outcome);
    }
    return call;
}

static void set_result(JSContextRef ctx, struct cn_call *call, JSValueRef value)
{
    uint8_t *bytes;
    size_t size;
    if (call->kind == CN_CALL_ALARM || call->kind == CN_CALL_SOCKET ||
        !cn_js_bytes(ctx, value, &bytes, &size))
        return;
    struct cn_message *message = call->payload;
    message->result = cn_memdup(bytes, size);
    message->result_size = size;
}

/* callLends(c, address, number): the answer that comes next has this by reference */
static JSValueRef native_call_lends(CN_JS_NATIVE_ARGS)
{
    struct cn_call *call = call_arg(ctx, cn_js_arg(0));
    if (!call || call->kind == CN_CALL_ALARM || call->kind == CN_CALL_SOCKET)
        return JSValueMakeUndefined(ctx);
    struct cn_message *message = call->payload;
    if (message->lent.wanted)
        cn_lent_list_add(&message->lent, cn_js_to_text(ctx, cn_js_arg(1), NULL),
                         cn_js_to_number(ctx, cn_js_arg(2)));
    return JSValueMakeUndefined(ctx);
}

/* callReply(c, bytes): the answer; an alarm that succeeded */
static JSValueRef native_call_reply(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes;
    size_t size;
    if (cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size) && cn_call_too_large(ctx, exception, size))
        return JSValueMakeUndefined(ctx);
    struct cn_call *call = take_call(ctx, cn_js_arg(0), NULL);
    if (!call)
        return JSValueMakeUndefined(ctx); /* the object was reset, or the time is over */
    if (call->kind == CN_CALL_ALARM)
        cn_alarm_succeeded(call->object);
    set_result(ctx, call, cn_js_arg(1));
    cn_call_reply(call, call->payload);
    return JSValueMakeUndefined(ctx);
}

/* callFail(c, message, bytes): it threw; bytes are the error */
static JSValueRef native_call_fail(CN_JS_NATIVE_ARGS)
{
    struct cn_call *call = take_call(ctx, cn_js_arg(0), "exception");
    if (!call)
        return JSValueMakeUndefined(ctx);
    char *message = cn_js_to_text(ctx, cn_js_arg(1), NULL);
    if (call->kind != CN_CALL_ALARM && call->kind != CN_CALL_SOCKET)
        cn_lent_list_fini(&((struct cn_message *)call->payload)->lent); /* of no answer */
    set_result(ctx, call, cn_js_arg(2));
    cn_call_fail(call, CN_FAULT_REMOTE, CN_EJS, "%s", message);
    cn_free(message);
    return JSValueMakeUndefined(ctx);
}

/* --- life ------------------------------------------------------------------------------------ */

/* The error that an object ends with, for its callers. */
static void keep_error(JSContextRef ctx, struct cn_jsobject *js, JSValueRef value)
{
    uint8_t *bytes;
    size_t size;
    if (js->error || !cn_js_bytes(ctx, value, &bytes, &size))
        return;
    js->error = cn_memdup(bytes, size);
    js->error_size = size;
}

/* objectStarted(o, failure | undefined, bytes): the constructor is done; bytes are the error */
static JSValueRef native_object_started(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    if (!js)
        return JSValueMakeUndefined(ctx);
    if (JSValueIsUndefined(ctx, cn_js_arg(1))) {
        cn_object_started(js->object, NULL);
    } else {
        struct cn_err err;
        char *failure = cn_js_to_text(ctx, cn_js_arg(1), NULL);
        keep_error(ctx, js, cn_js_arg(2));
        cn_err_set(&err, CN_EJS, "%s", failure);
        cn_free(failure);
        cn_object_started(js->object, &err);
    }
    return JSValueMakeUndefined(ctx);
}

/* objectReset(o, faults, message, retryAlarm, bytes | undefined) */
static JSValueRef native_object_reset(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    if (!js)
        return JSValueMakeUndefined(ctx);
    if (!JSValueToBoolean(ctx, cn_js_arg(3)))
        cn_alarm_give_up(js->object);
    keep_error(ctx, js, cn_js_arg(4));
    char *message = cn_js_to_text(ctx, cn_js_arg(2), NULL);
    cn_object_reset(js->object, cn_js_to_uint32(ctx, cn_js_arg(1)), CN_EABORTED, "%s", message);
    cn_free(message);
    return JSValueMakeUndefined(ctx);
}

/* objectEnd(o) -> boolean: if it is the object's turn, the engine ends it soon */
static JSValueRef native_object_end(CN_JS_NATIVE_ARGS)
{
    struct cn_js_vm *vm = instance_of(ctx)->lane->vm;
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    bool own = js && vm->owner == js->object;
    if (own)
        cn_js_end_turn(vm);
    return JSValueMakeBoolean(ctx, own);
}

/* objectLock(o), objectUnlock(o): the input gate */
static JSValueRef native_object_lock(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    if (js) {
        js->locks++;
        cn_object_lock(js->object);
    }
    return JSValueMakeUndefined(ctx);
}

static JSValueRef native_object_unlock(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    if (js && js->locks) { /* the lock of the object's start is not its own */
        js->locks--;
        cn_object_unlock(js->object);
    }
    return JSValueMakeUndefined(ctx);
}

/* objectStream(o) -> turn, objectStreamEnd(o, turn): a body of it that others read */
static JSValueRef native_object_stream(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    return JSValueMakeNumber(ctx, js ? cn_object_stream_begin(js->object) : 0);
}

static JSValueRef native_object_stream_end(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    double turn = cn_js_to_number(ctx, cn_js_arg(1));
    if (js)
        cn_object_stream_end(js->object, turn == 1);
    return JSValueMakeUndefined(ctx);
}

/* objectWait(o), objectUnwait(o): waitUntil() keeps it in memory */
static JSValueRef native_object_wait(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    if (js)
        cn_object_wait(js->object);
    return JSValueMakeUndefined(ctx);
}

static JSValueRef native_object_unwait(CN_JS_NATIVE_ARGS)
{
    struct cn_jsobject *js = object_arg(ctx, cn_js_arg(0));
    if (js && js->object->waits)
        cn_object_unwait(js->object);
    return JSValueMakeUndefined(ctx);
}
