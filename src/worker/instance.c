/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loop.h"
#include "worker/guest.h"
#include "worker/instance.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/mem.h"
#include "js/value.h"
#include "module/worker.h"
#include "worker/advice.h"
#include "worker/compiled.h"
#include "worker/dispatch.h"
#include "worker/event_life.h"
#include "worker/lane.h"
#include "worker/runtime.h"
#include "worker/trace.h"
#include "worker/websocket.h"

#define TO(state) (1u << (state))
static const unsigned moves[CN_INSTANCE_STATES] = {
    [CN_INSTANCE_STARTING] = TO(CN_INSTANCE_READY) | TO(CN_INSTANCE_FAILED),
    [CN_INSTANCE_READY] = TO(CN_INSTANCE_CURRENT) | TO(CN_INSTANCE_RETIRED),
    [CN_INSTANCE_CURRENT] = TO(CN_INSTANCE_RETIRED),
};

static void set_state(struct cn_instance *instance, enum cn_instance_state state)
{
    CN_ASSERT(moves[instance->state] & TO(state));
    instance->state = state;
}

static void on_log(struct cn_runtime *runtime, int level, const char *text, size_t length)
{
    struct cn_instance *instance = runtime->data;
    if (instance->lane->options.trial)
        return; /* it is said where it serves */
    const struct cn_object *object = instance->lane->object_lane.current;
    uint64_t cause = cn_js_cause(instance->lane->vm).request;
    char id[CN_OBJECT_HEX_SIZE + 1], request[17], trace_id[33], span[17];
    struct cn_diag_field fields[] = {{"worker", instance->script->name, 0, false},
                                     {"request", NULL, 0, false},
                                     {"class", NULL, 0, false},
                                     {"object", NULL, 0, false},
                                     {"name", NULL, 0, false},
                                     {"trace", NULL, 0, false},
                                     {"span", NULL, 0, false},
                                     {CN_DIAG_EXCEPTION, NULL, 0, false}};
    bool exception = level == 4;
    size_t count = CN_ARRAY_COUNT(fields) - !exception; /* the last one, of exceptions alone */
    level = exception ? CN_DIAG_ERROR : level;
    if (object) {
        const char *slash = strrchr(object->ns->name, '/');
        cn_id_to_hex(object->key.id, id);
        fields[2].text = slash ? slash + 1 : object->ns->name;
        fields[3].text = id;
        fields[4].text = object->name_size ? object->name : NULL;
        fields[4].length = object->name_size;
    }
    if (cause) {
        cn_event_id_text(cause, request);
        fields[1].text = request;
    }
    const struct cn_trace *trace =
        cn_trace_find(instance->lane, cn_js_cause(instance->lane->vm).trace);
    if (trace && instance->lane->options.exporter) {
        snprintf(trace_id, sizeof(trace_id), "%016" PRIx64 "%016" PRIx64, trace->origin.trace[0],
                 trace->origin.trace[1]);
        cn_event_id_text(trace->span, span);
        fields[5].text = trace_id;
        fields[6].text = span;
    }
    struct cn_buf explained = {0};
    if (exception && instance->lane->options.show_errors) {
        cn_advice_explain(instance->script, text, length, &explained);
        text = (const char *)explained.data;
        length = explained.size;
    } else if (memmem(text, length, instance->script->url, strlen(instance->script->url))) {
        cn_script_explain(instance->script, text, length, false, &explained);
        text = (const char *)explained.data;
        length = explained.size;
    }
    cn_diag_fields((enum cn_diag_level)level, fields, count, text, length);
    cn_buf_fini(&explained);
}

static bool pin_entry(struct cn_instance *instance, struct cn_js_pin *pin, const char *name)
{
    JSObjectRef entry = cn_runtime_entry(instance->runtime, name);
    if (!entry)
        return false;
    cn_js_pin_set(pin, instance->runtime->context, entry);
    cn_js_pin_set_passive(pin);
    return true;
}

static int pin_entries(struct cn_instance *instance, struct cn_err *err)
{
    struct cn_js_context *context = instance->runtime->context;
    cn_js_enter(context);
    bool good = pin_entry(instance, &instance->dispatch_fetch, "dispatchFetch") &&
                pin_entry(instance, &instance->dispatch_event, "dispatchEvent") &&
                pin_entry(instance, &instance->object_create, "objectCreate") &&
                pin_entry(instance, &instance->object_deliver, "objectDeliver") &&
                pin_entry(instance, &instance->object_socket, "objectSocket") &&
                pin_entry(instance, &instance->object_destroy, "objectDestroy") &&
                pin_entry(instance, &instance->object_resume, "objectResume") &&
                pin_entry(instance, &instance->object_press, "objectPress") &&
                pin_entry(instance, &instance->local_reply, "localReply") &&
                pin_entry(instance, &instance->quiet, "quiet");
    enum cn_js_end end = cn_js_leave(context);
    if (good)
        return 0;
    return cn_err_set(err, CN_ELIMIT, "worker %s is not started yet: the turn that prepares it %s",
                      instance->script->name, cn_js_end_text(end, 0));
}

/* {name: ArrayBuffer} of the files a bundle imports. */
static JSValueRef make_files(JSContextRef ctx, const struct cn_script *script)
{
    JSObjectRef files = JSObjectMake(ctx, NULL, NULL);
    for (size_t i = 0; i < script->file_count; i++) {
        const struct cn_script_file *file = &script->files[i];
        cn_js_set(ctx, files, file->name,
                  cn_js_arraybuffer_take(ctx, cn_memdup(file->bytes, file->size), file->size));
    }
    return files;
}

static void start(struct cn_instance *instance)
{
    struct cn_script *script = instance->script;
    struct cn_js_context *context = instance->runtime->context;
    JSContextRef ctx = context->ref;
    struct cn_err err;
    if (script->front && cn_compiled_start(instance, &err) < 0) {
        cn_instance_started(instance, err.text);
        return;
    }
    uint64_t limit_ms = script->start_limit_ms ? script->start_limit_ms : script->cpu_limit_ms;
    context->budget_ns = limit_ms * 1000000u;
    instance->began_ns = uv_hrtime();
    cn_js_enter(context);
    JSValueRef function;
    int rc = cn_js_evaluate(context, script->source, script->url, &function, &err);
    if (rc == 0) {
        const char *env_json = script->env_json ? script->env_json : "{}";
        JSStringRef json = cn_js_string(env_json, strlen(env_json));
        JSValueRef env = JSValueMakeFromJSONString(ctx, json);
        JSStringRelease(json);
        JSObjectRef entry = env ? cn_runtime_entry(instance->runtime, "start") : NULL;
        JSValueRef argv[] = {function, make_files(ctx, script), env};
        rc = entry ? cn_js_call(context, entry, 3, argv, NULL, &err)
                   : cn_err_set(&err, CN_EJS, "its start was ended"); /* runtime.h, U1 */
    }
    enum cn_js_end end = cn_js_leave(context);
    char ended[160];
    snprintf(ended, sizeof(ended), "%sthe script %s",
             end == CN_JS_END_CPU ? "Script startup exceeded CPU time limit: " : "while starting, ",
             cn_js_end_text(end, limit_ms));
    if ((rc < 0 || end) && instance->state == CN_INSTANCE_STARTING)
        cn_instance_started(instance, end ? ended : err.text);
}

void cn_instance_check_start(struct cn_instance *instance)
{
    if (instance->state == CN_INSTANCE_STARTING &&
        uv_hrtime() - instance->began_ns > CN_INSTANCE_START_MS * 1000000ull)
        cn_instance_started(instance, "its top level awaits something that does not come");
}

struct cn_instance *cn_instance_new(struct cn_lane *lane, struct cn_script *script,
                                    void (*on_started)(struct cn_instance *instance,
                                                       const struct cn_err *err),
                                    struct cn_err *err)
{
    cn_loop_assert_owner(&lane->loop);
    struct cn_instance *instance = CN_NEW(struct cn_instance);
    instance->lane = lane;
    instance->script = cn_script_ref(script);
    instance->on_started = on_started;
    instance->watched = script->tail_count || lane->options.exporter;
    instance->metrics = cn_lane_metrics_worker(&lane->metrics, script->name);
    cn_list_init(&instance->events);
    cn_list_init(&instance->objects);
    cn_list_init(&instance->sockets);
    cn_list_init(&instance->ends);
    struct cn_runtime_options options = {
        .loop = &lane->loop,
        .vm = lane->vm,
        .install = lane->options.guest->install,
        .log = on_log,
        .options_json = script->options_json,
        .data = instance,
    };
    if (cn_runtime_new(&options, &instance->runtime, err) < 0)
        goto free_instance;
    if (pin_entries(instance, err) < 0)
        goto free_runtime;
    instance->runtime->client = lane->client;
    instance->runtime->sockets = lane->sockets;
    cn_list_push_back(&lane->instances, &instance->link);
    instance->serial = ++lane->last_serial;
    start(instance);
    return instance;
free_runtime:
    cn_runtime_free(instance->runtime);
free_instance:
    cn_script_unref(script);
    cn_free(instance);
    return NULL;
}

void cn_instance_publish(struct cn_instance *instance)
{
    cn_loop_assert_owner(&instance->lane->loop);
    struct cn_js_context *context = instance->runtime->context;
    cn_counter_add(&instance->metrics->ticks, context->ticks);
    context->ticks = 0;
}

/* --- the end --------------------------------------------------------------------------------- */

const struct cn_ending cn_ending_reload = {
    .object_faults = CN_FAULT_RESET | CN_FAULT_RETRYABLE,
    .object_text = "Durable Object reset because its code was updated.",
};
const struct cn_ending cn_ending_memory = {
    .object_faults = CN_FAULT_RESET | CN_FAULT_RETRYABLE,
    .object_text = "Durable Object's isolate exceeded its memory limit and was reset.",
    .event_text = "the worker stayed above its memory limit and was restarted",
    .outcome = "exceededMemory",
};
const struct cn_ending cn_ending_stop = {
    .object_faults = CN_FAULT_RETRYABLE,
    .object_text = "the server is stopping",
    .event_text = "the server is stopping",
    .outcome = "canceled",
};

void cn_instance_install(struct cn_instance *instance)
{
    cn_loop_assert_owner(&instance->lane->loop);
    set_state(instance, CN_INSTANCE_CURRENT);
}

static void fail_event(struct cn_event *event, const char *outcome, const char *why)
{
    bool answered = cn_event_is_answered(event);
    event->outcome = outcome;
    cn_event_done(event); /* so that its answer is its end */
    if (answered)
        return;
    if (event->http)
        cn_event_fail(event, 503, why, strlen(why));
    else
        cn_dispatch_fail(event, CN_FAULT_RETRYABLE, CN_ELIMIT, why, NULL, 0);
}

void cn_instance_fail_events(struct cn_instance *instance, const char *outcome, const char *why)
{
    cn_loop_assert_owner(&instance->lane->loop);
    CN_LIST_FOREACH(&instance->events, node)
    fail_event(CN_CONTAINER_OF(node, struct cn_event, link), outcome, why);
}

/* Whether one of its calls was under way when the turn was cut. */
static bool was_running(const struct cn_object *object, const struct cn_js_context *context)
{
    CN_LIST_FOREACH(&object->running, node)
    {
        const struct cn_call *call = CN_CONTAINER_OF(node, struct cn_call, envelope.link);
        if (call->arrived_ns <= context->cut_ns)
            return true;
    }
    return false;
}

void cn_instance_after_cut(struct cn_instance *instance)
{
    cn_loop_assert_owner(&instance->lane->loop);
    struct cn_js_context *context = instance->runtime->context;
    if (!context->cut)
        return;
    context->cut = false;
    char why[160];
    const char *outcome = context->end == CN_JS_END_MEMORY ? "exceededMemory" : "exceededCpu";
    snprintf(why, sizeof(why), "the script %s",
             cn_js_end_text(context->end, instance->script->cpu_limit_ms));
    CN_LIST_FOREACH(&instance->events, node)
    {
        struct cn_event *event = CN_CONTAINER_OF(node, struct cn_event, link);
        if (cn_event_is_answered(event) || event->born_turn > context->cut_turn)
            continue;
        if (event->handle == context->cut_event)
            fail_event(event, outcome, why);
        else if (!cn_js_context_waits(context, event->handle))
            fail_event(event, "canceled",
                       "what the request waited for was lost: code of the worker that ran at the "
                       "same time used more than its CPU limit, or was aborted");
    }
    CN_LIST_FOREACH(&instance->objects, node)
    {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_jsobject, link)->object;
        if (!object->holds && was_running(object, context))
            cn_object_reset(object, CN_FAULT_RESET | CN_FAULT_RETRYABLE, CN_ELIMIT,
                            "Durable Object reset: what it waited for was lost, for code that ran "
                            "at the same time exceeded its CPU time limit or was aborted.");
    }
}

/* Objects live on one version of their code: the next call starts them anew (DO-LC-4). */
static void reset_objects(struct cn_instance *instance, const struct cn_ending *ending)
{
    CN_LIST_FOREACH(&instance->objects, link)
    {
        struct cn_jsobject *js = CN_CONTAINER_OF(link, struct cn_jsobject, link);
        cn_object_reset(js->object, ending->object_faults, CN_ECLOSED, "%s", ending->object_text);
    }
}

void cn_instance_retire(struct cn_instance *instance, const struct cn_ending *ending)
{
    cn_loop_assert_owner(&instance->lane->loop);
    if (instance->state == CN_INSTANCE_FAILED)
        return;
    if (instance->state == CN_INSTANCE_STARTING) {
        set_state(instance, CN_INSTANCE_FAILED); /* nobody waits for it any more */
        return;
    }
    if (instance->state != CN_INSTANCE_RETIRED) {
        set_state(instance, CN_INSTANCE_RETIRED);
        instance->retired_ms = uv_now(&instance->lane->loop);
        cn_websocket_instance_end(instance); /* DO-WS-13 */
        reset_objects(instance, ending);
    }
    if (ending->event_text)
        cn_instance_fail_events(instance, ending->outcome, ending->event_text);
}

bool cn_instance_is_over(const struct cn_instance *instance)
{
    return (instance->state == CN_INSTANCE_RETIRED || instance->state == CN_INSTANCE_FAILED) &&
           cn_list_empty(&instance->events) && cn_list_empty(&instance->objects);
}

void cn_instance_free(struct cn_instance *instance)
{
    cn_loop_assert_owner(&instance->lane->loop);
    cn_instance_publish(instance);
    CN_ASSERT(cn_instance_is_over(instance)); /* I3 */
    if (instance->compiled)
        cn_compiled_worker_free(instance->compiled);
    cn_websocket_instance_free(instance);
    cn_ws_message_unref(instance->last_sent);
    cn_list_remove(&instance->link);
    cn_runtime_free(instance->runtime); /* clears the pins */
    cn_script_unref(instance->script);
    cn_free(instance);
}

void cn_instance_started(struct cn_instance *instance, const char *failure)
{
    cn_loop_assert_owner(&instance->lane->loop);
    if (instance->state != CN_INSTANCE_STARTING)
        return;
    struct cn_err err;
    instance->runtime->context->budget_ns = instance->script->cpu_limit_ms * 1000000u;
    set_state(instance, failure ? CN_INSTANCE_FAILED : CN_INSTANCE_READY);
    if (failure) {
        struct cn_buf explained = {0};
        if (instance->lane->options.show_errors)
            cn_advice_explain(instance->script, failure, strlen(failure), &explained);
        else
            cn_script_explain(instance->script, failure, strlen(failure), false, &explained);
        cn_err_set(&err, CN_EJS, "worker %s failed to start: %s", instance->script->name,
                   cn_buf_text(&explained));
        cn_buf_fini(&explained);
    }
    instance->on_started(instance, failure ? &err : NULL);
}

int cn_instance_enter(struct cn_instance *instance, struct cn_js_pin *function, size_t argc,
                      const JSValueRef argv[], struct cn_err *err)
{
    struct cn_js_context *context = instance->runtime->context;
    bool outermost = context->vm->entered == 0;
    cn_js_enter(context);
    int rc = cn_js_call(context, function->value, argc, argv, NULL, err);
    enum cn_js_end end = cn_js_leave(context);
    if (end && (outermost || rc < 0))
        rc = cn_err_set(err, CN_ELIMIT, "the script %s",
                        cn_js_end_text(end, instance->script->cpu_limit_ms));
    return rc;
}
