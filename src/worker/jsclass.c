/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jsclass.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "js/value.h"
#include "module/module.h"
#include "object/alarm.h"
#include "object/socket.h"
#include "store/database.h"
#include "worker/event.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/rollout.h"
#include "worker/runtime.h"
#include "worker/trace.h"
#include "worker/websocket.h"

/* --- owners ---------------------------------------------------------------------------------- */

static bool owner_enter(void *owner)
{
    struct cn_object *object = owner;
    if (cn_object_is_broken(object))
        return false;
    struct cn_jsobject *js = object->instance;
    js->instance->lane->vm->clock[CN_JS_OBJECT] = (double)js->handle;
    js->instance->lane->vm->meter = &js->meter;
    cn_object_enter(object);
    return true;
}

static void turn_begin(void *data)
{
    struct cn_lane *lane = data;
    cn_turn_begin(&lane->object_lane);
}

static void turn_end(void *data)
{
    struct cn_lane *lane = data;
    cn_turn_end(&lane->object_lane);
}

static void turn_focus(void *data, void *owner)
{
    struct cn_lane *lane = data;
    struct cn_object *object = owner;
    struct cn_jsobject *js = object ? object->instance : NULL;
    lane->vm->meter = js ? &js->meter : NULL;
    if (owner)
        cn_object_join(owner);
    cn_turn_focus(&lane->object_lane, owner);
}

static void reset_for_limit(struct cn_object *object, enum cn_js_end end);

static void turn_terminated(void *data, void *culprit)
{
    struct cn_lane *lane = data;
    if (culprit)
        reset_for_limit(culprit, lane->vm->end);
}

static void owner_hold(void *owner)
{
    cn_object_hold(owner);
}

static void owner_unhold(void *owner)
{
    cn_object_unhold(owner);
}

const struct cn_js_owner_hooks cn_jsclass_hooks = {
    .begin = turn_begin,
    .enter = owner_enter,
    .end = turn_end,
    .focus = turn_focus,
    .terminated = turn_terminated,
    .hold = owner_hold,
    .unhold = owner_unhold,
};

struct cn_object *cn_jsclass_gate(struct cn_lane *lane)
{
    if (lane->vm->owner || !lane->object_lane.node)
        return lane->vm->owner;
    return cn_object_lane_gate(&lane->object_lane);
}

/* --- the class ------------------------------------------------------------------------------- */

static struct cn_lane *lane_of(struct cn_object *object)
{
    return object->lane->data;
}

bool cn_jsclass_find(struct cn_object_lane *object_lane, struct cn_namespace *ns,
                     const struct cn_object_key *key, const struct cn_class **class_,
                     void **class_data)
{
    cn_loop_assert_owner(object_lane->loop);
    struct cn_lane *lane = object_lane->data;
    if (!lane->deployment)
        return false;
    for (size_t i = 0; i < lane->deployment->script_count; i++) {
        struct cn_script *script = lane->deployment->scripts[i];
        for (size_t k = 0; k < script->class_count; k++) {
            if (script->classes[k].ns != ns)
                continue;
            if (script->classes[k].compiled) {
                *class_ = &cn_compiled_class;
                *class_data = (void *)script->classes[k].compiled;
                return true;
            }
            size_t place = cn_rollout_object(lane->deployment, i, key);
            *class_ = &cn_jsclass;
            *class_data = lane->current[place];
            return lane->current[place] != NULL; /* N2 of lane.h */
        }
    }
    return false;
}

static const char *class_name(struct cn_instance *instance, struct cn_namespace *ns)
{
    for (size_t i = 0; i < instance->script->class_count; i++) {
        if (instance->script->classes[i].ns == ns)
            return instance->script->classes[i].name;
    }
    CN_UNREACHABLE();
}

/* The next turn is for `call`, which gets its trace if it has none yet. */
static void set_cause(struct cn_object *object, struct cn_instance *instance, struct cn_call *call)
{
    static const enum cn_trace_kind kinds[] = {
        [CN_CALL_FETCH] = CN_TRACE_FETCH,  [CN_CALL_RPC] = CN_TRACE_RPC,
        [CN_CALL_ALARM] = CN_TRACE_ALARM,  [CN_CALL_OTHER] = CN_TRACE_RPC,
        [CN_CALL_ACCESS] = CN_TRACE_OTHER, [CN_CALL_SOCKET] = CN_TRACE_SOCKET,
    };
    struct cn_lane *lane = instance->lane;
    const struct cn_message *message = call->kind == CN_CALL_OTHER ? call->payload : NULL;
    bool lifetime = message && message->method && message->method[0] == '~'; /* of a stub */
    if (!call->envelope.origin.request)
        call->envelope.origin.request = cn_rand_next(&lane->rand);
    if (cn_trace_is_watched(instance) && !call->trace && !lifetime && call->kind != CN_CALL_ACCESS)
        call->trace = cn_trace_begin(instance, kinds[call->kind], class_name(instance, object->ns),
                                     object, &call->envelope.origin);
    lane->vm->cause =
        (struct cn_js_cause){call->envelope.origin.request, call->trace, 0,
                             call->envelope.origin.depth, call->envelope.origin.unsampled};
}

/* Begins a turn for the call. False: the object was reset meanwhile, and the call has failed. */
static bool enter_for_call(struct cn_object *object, struct cn_instance *instance,
                           struct cn_call *call)
{
    struct cn_lane *lane = instance->lane;
    set_cause(object, instance, call);
    uint64_t trace = call->trace; /* the call may be gone if it cannot be entered */
    if (cn_js_enter_for(instance->runtime->context, object))
        return true;
    cn_trace_end(lane, trace, "exception");
    return false;
}

static const char *limit_text(enum cn_js_end end)
{
    return end == CN_JS_END_MEMORY ? "Durable Object exceeded its memory limit and was reset."
           : end == CN_JS_END_CPU  ? "Durable Object exceeded its CPU time limit and was reset."
                                   : "Durable Object was reset: its turn had to make way.";
}

/* Calls a function of the prelude, inside JavaScript already, and leaves it: the turn ends. */
static int call_and_leave(struct cn_instance *instance, struct cn_js_pin *function, size_t argc,
                          const JSValueRef argv[], struct cn_err *err)
{
    struct cn_js_context *context = instance->runtime->context;
    int rc = cn_js_call(context, function->value, argc, argv, NULL, err);
    enum cn_js_end end = cn_js_leave(context);
    if (end)
        return cn_err_set(err, CN_ELIMIT, "%s", limit_text(end));
    return rc;
}

struct cn_jsobject *cn_jsobject_find(const struct cn_instance *instance, double number)
{
    struct cn_jsobject *js = cn_handles_find(&instance->lane->objects, number);
    return js && js->instance == instance ? js : NULL; /* J1 */
}

struct cn_jscursor *cn_jscursor_find(const struct cn_instance *instance, double number)
{
    struct cn_jscursor *cursor = cn_handles_find(&instance->lane->cursors, number);
    return cursor && cursor->js->instance == instance ? cursor : NULL; /* J1 */
}

struct cn_call *cn_jscall_find(const struct cn_instance *instance, double number)
{
    struct cn_call *call = cn_handles_find(&instance->lane->calls, number);
    const struct cn_jsobject *js = call && call->object ? call->object->instance : NULL;
    return js && js->instance == instance ? call : NULL; /* J1 */
}

void cn_jsobject_describe(struct cn_jsobject *js, char *text, size_t size)
{
    char hex[CN_OBJECT_HEX_SIZE + 1];
    struct cn_object *object = js->object;
    bool named = object->name && object->name_size <= CN_OBJECT_NAME_MAX;
    cn_id_to_hex(object->key.id, hex);
    snprintf(text, size, "object %s%s%.*s%s of class %s", hex, named ? " (\"" : "",
             named ? (int)object->name_size : 0, named ? object->name : "", named ? "\")" : "",
             class_name(js->instance, object->ns));
}

/* Callers hear of it; who looks at the log should too, and an alarm or a message has no caller. */
static void reset_for_limit(struct cn_object *object, enum cn_js_end end)
{
    struct cn_jsobject *js = object->instance;
    const char *text = limit_text(end);
    char name[256], line[400];
    if (object->state == CN_OBJECT_BROKEN)
        return;
    cn_jsobject_describe(js, name, sizeof(name));
    int size = snprintf(line, sizeof(line), "%s: %s", name, text);
    struct cn_diag_field fields[] = {{"worker", js->instance->script->name, 0, false},
                                     {CN_DIAG_EXCEPTION, NULL, 0, false}};
    cn_diag_fields(CN_DIAG_ERROR, fields, 2, line,
                   size < (int)sizeof(line) ? (size_t)size : sizeof(line) - 1);
    cn_counter_add(&js->instance->metrics->limits, 1);
    cn_object_reset(object, CN_FAULT_RESET, CN_ELIMIT, "%s", text);
}

static int js_create(struct cn_object *object, void *class_data, void **out, struct cn_err *err)
{
    struct cn_instance *instance = class_data;
    struct cn_js_context *context = instance->runtime->context;
    JSContextRef ctx = context->ref;
    struct cn_jsobject *js = CN_NEW(struct cn_jsobject);
    js->object = object;
    js->instance = instance;
    js->meter.parent = &context->meter;
    js->handle = cn_handles_add(&instance->lane->objects, js);
    if (!js->handle) {
        cn_free(js);
        return cn_err_set(err, CN_EOVERLOADED, "Too many Durable Objects are in memory.");
    }
    cn_list_push_back(&instance->objects, &js->link);
    cn_list_init(&js->cursors);
    *out = js;
    /* Its name may be known only to the database, from an earlier call. */
    if (!object->name && !cn_object_database(object, err))
        return err->code;
    if (object->inbox_count) /* the constructor runs for the first call */
        set_cause(object, instance,
                  CN_CONTAINER_OF(object->inbox.next, struct cn_call, envelope.link));
    if (!cn_js_enter_for(context, object))
        return cn_err_set(err, CN_ECLOSED, "the object was reset");
    char hex[CN_OBJECT_HEX_SIZE + 1];
    cn_id_to_hex(object->key.id, hex);
    JSValueRef argv[] = {
        JSValueMakeNumber(ctx, (double)js->handle),
        cn_js_text_z(ctx, class_name(instance, object->ns)),
        cn_js_text_z(ctx, hex),
        object->name && object->name_size <= CN_OBJECT_NAME_MAX
            ? cn_js_text(ctx, object->name, object->name_size)
            : JSValueMakeUndefined(ctx),
    };
    /* The prelude answers through objectStarted(), now or later. */
    int rc = call_and_leave(instance, &instance->object_create, CN_ARRAY_COUNT(argv), argv, err);
    return rc < 0 ? rc : 1;
}

/* How the calls of an object end that is reset. */
static const char *outcome_of(const struct cn_object *object)
{
    return object && object->broken && object->broken->code == CN_ELIMIT ? "exceededCpu"
                                                                         : "exception";
}

static void call_taken_back(struct cn_call *call)
{
    struct cn_lane *lane = lane_of(call->object);
    cn_handles_remove(&lane->calls, call->tag);
    cn_trace_end(lane, call->trace, outcome_of(call->object));
}

/* Gives the call the number by which JavaScript knows it. False: there are too many, and the call
 * has failed; an event of a WebSocket is then tried again (object/socket.c). */
static bool number_call(struct cn_object *object, struct cn_call *call)
{
    struct cn_lane *lane = lane_of(object);
    call->tag = cn_handles_add(&lane->calls, call);
    if (call->tag) {
        call->taken_back = call_taken_back;
        return true;
    }
    cn_trace_end(lane, call->trace, "exception");
    cn_call_fail(call, CN_FAULT_OVERLOADED, CN_EOVERLOADED,
                 "Durable Object is overloaded. Too many requests are under way.");
    return false;
}

/* An event of a WebSocket. */
static void deliver_socket(struct cn_object *object, struct cn_jsobject *js, struct cn_call *call)
{
    struct cn_instance *instance = js->instance;
    struct cn_js_context *context = instance->runtime->context;
    JSContextRef ctx = context->ref;
    struct cn_socket_event *event = call->payload;
    if (!event->socket) {
        cn_trace_end(instance->lane, call->trace, NULL);
        cn_call_reply(call, NULL); /* it has gone meanwhile */
        return;
    }
    if (!number_call(object, call) || !enter_for_call(object, instance, call))
        return;
    JSValueRef argv[3 + CN_WEBSOCKET_ARGUMENTS_MAX] = {
        JSValueMakeNumber(ctx, (double)js->handle), JSValueMakeNumber(ctx, (double)call->tag),
        JSValueMakeNumber(ctx, (double)event->socket->end->handle)};
    size_t argc = 3 + cn_websocket_arguments(ctx, (int)event->kind, event->item, argv + 3);
    struct cn_err err;
    int rc = call_and_leave(instance, &instance->object_socket, argc, argv, &err);
    if (rc < 0)
        cn_object_reset(object, CN_FAULT_RESET, rc, "%s", err.text);
}

static void js_deliver(struct cn_object *object, void *instance_, struct cn_call *call)
{
    struct cn_jsobject *js = instance_;
    struct cn_instance *instance = js->instance;
    struct cn_js_context *context = instance->runtime->context;
    JSContextRef ctx = context->ref;
    if (call->kind == CN_CALL_SOCKET) {
        deliver_socket(object, js, call);
        return;
    }
    struct cn_message *message = call->kind == CN_CALL_ALARM ? NULL : call->payload;
    if (message && message->home_serial && message->home_serial != instance->serial) {
        cn_trace_end(instance->lane, call->trace, "exception");
        cn_call_fail(call, CN_FAULT_RESET | CN_FAULT_RETRYABLE, CN_ECLOSED,
                     "Durable Object reset because its code was updated.");
        return;
    }
    if (!number_call(object, call) || !enter_for_call(object, instance, call))
        return;
    JSValueRef argv[] = {JSValueMakeNumber(ctx, (double)js->handle),
                         JSValueMakeNumber(ctx, (double)call->tag),
                         JSValueMakeNumber(ctx, call->kind), JSValueMakeUndefined(ctx), NULL};
    if (call->kind == CN_CALL_ALARM) {
        const struct cn_alarm_info *info = call->payload;
        cn_alarm_begin(object, info);
        argv[3] = JSValueMakeNumber(ctx, info->retry_count);
        argv[4] = JSValueMakeNumber(ctx, (double)info->scheduled_ms);
    } else if (message->home_serial) {
        argv[3] = JSValueMakeNumber(ctx, message->slot);
        argv[4] = JSValueMakeUndefined(ctx);
    } else {
        if (message->method)
            argv[3] = cn_js_text_z(ctx, message->method);
        argv[4] = cn_js_uint8array_take(ctx, message->bytes ? message->bytes : cn_alloc(1),
                                        message->size);
        message->bytes = NULL;
    }
    struct cn_err err;
    int rc = call_and_leave(instance, &instance->object_deliver, CN_ARRAY_COUNT(argv), argv, &err);
    if (rc < 0)
        cn_object_reset(object, CN_FAULT_RESET, rc, "%s", err.text);
}

/* Calls a function of the prelude that is about the object's input gate. */
static void call_gate(struct cn_object *object, struct cn_js_pin *function, bool begins)
{
    struct cn_jsobject *js = object->instance;
    struct cn_instance *instance = js->instance;
    struct cn_js_context *context = instance->runtime->context;
    struct cn_err err;
    JSValueRef argv[2] = {JSValueMakeNumber(context->ref, (double)js->handle),
                          JSValueMakeBoolean(context->ref, begins)};
    if (!cn_js_enter_for(context, object))
        return;
    int rc = call_and_leave(instance, function, 2, argv, &err);
    if (rc < 0)
        cn_object_reset(object, CN_FAULT_RESET, rc, "%s", err.text);
}

/* Something that waited for the input gate goes on. */
static void js_resume(struct cn_object *object, void *instance)
{
    const struct cn_jsobject *js = instance;
    call_gate(object, &js->instance->object_resume, false);
}

static void js_press(struct cn_object *object, void *instance, bool begins)
{
    const struct cn_jsobject *js = instance;
    call_gate(object, &js->instance->object_press, begins);
}

static void js_destroy(struct cn_object *object, void *instance_)
{
    struct cn_jsobject *js = instance_;
    struct cn_instance *instance = js->instance;
    struct cn_js_context *context = instance->runtime->context;
    struct cn_err err;
    JSValueRef argv[2] = {JSValueMakeNumber(context->ref, (double)js->handle),
                          JSValueMakeBoolean(context->ref, !object->broken)};
    cn_js_enter(context);
    if (object->holds)
        cn_js_pin_orphan(context, object); /* what it waited for finds nobody */
    (void)cn_js_call(context, instance->object_destroy.value, 2, argv, NULL, &err);
    cn_js_leave(context);
    if (object->holds)
        cn_js_pin_orphan(context, object); /* nor does what its last turn began */
    cn_handles_remove(&lane_of(object)->objects, js->handle);
    cn_list_remove(&js->link);
    cn_js_meter_end(&js->meter);
    cn_free(js->error);
    cn_free(js);
}

void cn_jscursor_end(struct cn_lane *lane, struct cn_jscursor *cursor)
{
    cn_statement_release(cursor->statement);
    cn_handles_remove(&lane->cursors, cursor->handle);
    cn_list_remove(&cursor->link);
    cursor->js->cursor_count--;
    cn_js_holding_end(&cursor->holding);
    cn_free(cursor);
}

void cn_jscursor_end_all(struct cn_lane *lane, struct cn_jsobject *js)
{
    cn_loop_assert_owner(&lane->loop);
    CN_LIST_FOREACH(&js->cursors, node)
    cn_jscursor_end(lane, CN_CONTAINER_OF(node, struct cn_jscursor, link));
}

static void js_release(struct cn_object *object, void *instance)
{
    cn_jscursor_end_all(lane_of(object), instance);
}

/* What the constructor or a critical section threw reaches its callers whole. */
static void js_failed(struct cn_object *object, void *instance, struct cn_call *call)
{
    struct cn_jsobject *js = instance;
    cn_trace_end(lane_of(object), call->trace, outcome_of(object));
    bool carries =
        call->kind == CN_CALL_FETCH || call->kind == CN_CALL_RPC || call->kind == CN_CALL_OTHER;
    if (!js->error || !carries)
        return; /* its payload is no message */
    struct cn_message *message = call->payload;
    cn_free(message->result);
    message->result = cn_memdup(js->error, js->error_size);
    message->result_size = js->error_size;
}

const struct cn_class cn_jsclass = {.create = js_create,
                                    .deliver = js_deliver,
                                    .resume = js_resume,
                                    .press = js_press,
                                    .release = js_release,
                                    .destroy = js_destroy,
                                    .failed = js_failed,
                                    .lets_go = true,
                                    .gates_lent = true};

/* --- calls ----------------------------------------------------------------------------------- */

struct cn_jscall *cn_jscall_new(void)
{
    struct cn_jscall *jscall = CN_NEW(struct cn_jscall);
    jscall->message.call.payload = &jscall->message;
    return jscall;
}

void cn_jscall_free(struct cn_jscall *jscall)
{
    cn_js_pin_clear(&jscall->callback);
    cn_message_fini(&jscall->message);
    cn_free(jscall);
}
