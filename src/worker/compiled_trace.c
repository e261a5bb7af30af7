/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/compiled_trace.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/rand.h"
#include "module/tracer.h"
#include "object/call.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/script.h"
#include "worker/trace.h"

/* The instance of the script that has these modules; NULL: the script is gone. */
static struct cn_instance *instance_of(const struct cn_lane *lane, const struct cn_modules *modules)
{
    for (size_t i = 0; lane->deployment && i < lane->deployment->script_count; i++) {
        struct cn_instance *instance = lane->current[i];
        if (instance && instance->script->modules == modules)
            return instance;
    }
    return NULL;
}

static uint64_t begin(void *data, const struct cn_modules *modules, const char *class_name,
                      const struct cn_object *object, struct cn_call *call)
{
    static const enum cn_trace_kind kinds[] = {
        [CN_CALL_FETCH] = CN_TRACE_FETCH,
        [CN_CALL_RPC] = CN_TRACE_RPC,
        [CN_CALL_ALARM] = CN_TRACE_ALARM,
        [CN_CALL_SOCKET] = CN_TRACE_SOCKET,
    };
    struct cn_lane *lane = data;
    struct cn_origin *origin = &call->envelope.origin;
    if (!origin->request)
        origin->request = cn_rand_next(&lane->rand);
    if (call->kind == CN_CALL_OTHER)
        return 0; /* of streams, and of the lifetime of stubs */
    struct cn_instance *instance = instance_of(lane, modules);
    if (!instance || !cn_trace_is_watched(instance))
        return 0;
    return cn_trace_begin(instance, kinds[call->kind], class_name, object, origin);
}

static void mark(void *data, uint64_t handle, struct cn_origin *origin)
{
    const struct cn_trace *trace = cn_trace_find(data, handle);
    if (trace) {
        memcpy(origin->trace, trace->origin.trace, sizeof(origin->trace));
        origin->span = trace->span;
    }
}

static bool is_whole(void *data, uint64_t handle)
{
    const struct cn_trace *trace = cn_trace_find(data, handle);
    return trace && cn_trace_is_whole(trace);
}

static void note(void *data, uint64_t handle, struct cn_buf *subject, struct cn_buf *members)
{
    struct cn_trace *trace = cn_trace_find(data, handle);
    if (trace) {
        cn_buf_fini(&trace->subject);
        cn_buf_fini(&trace->event);
        trace->subject = *subject;
        trace->event = *members;
    } else {
        cn_buf_fini(subject);
        cn_buf_fini(members);
    }
}

static void begin_element(struct cn_buf *out)
{
    cn_buf_printf(out, "{\"timestamp\":%" PRId64, cn_clock_wall_ms(cn_clock_system()));
}

static void append_text(struct cn_buf *out, const char *before, const char *text, size_t size)
{
    cn_buf_append_str(out, before);
    cn_buf_append_json(out, text, size);
}

static void end_element(struct cn_trace *trace, struct cn_buf *array, struct cn_buf *element)
{
    cn_buf_append_byte(element, '}');
    cn_trace_add(trace, array, cn_buf_text(element), element->size);
    cn_buf_fini(element);
}

static void log_line(void *data, uint64_t handle, const char *level, const char *text, size_t size)
{
    struct cn_trace *trace = cn_trace_find(data, handle);
    struct cn_buf element = {0};
    if (!trace)
        return;
    begin_element(&element);
    append_text(&element, ",\"level\":", level, strlen(level));
    append_text(&element, ",\"message\":[", text, size);
    cn_buf_append_byte(&element, ']');
    end_element(trace, &trace->logs, &element);
}

static void exception(void *data, uint64_t handle, const char *type, const char *text)
{
    struct cn_trace *trace = cn_trace_find(data, handle);
    struct cn_buf element = {0};
    if (!trace)
        return;
    begin_element(&element);
    append_text(&element, ",\"name\":", type, strlen(type));
    append_text(&element, ",\"message\":", text, strlen(text));
    end_element(trace, &trace->exceptions, &element);
}

static void status(void *data, uint64_t handle, int number)
{
    struct cn_trace *trace = cn_trace_find(data, handle);
    if (trace)
        trace->status = number;
}

static void enter(void *data)
{
    struct cn_lane *lane = data;
    lane->traced_functions++;
}

static void leave(void *data, uint64_t handle, uint64_t ticks)
{
    struct cn_lane *lane = data;
    struct cn_trace *trace = cn_trace_find(lane, handle);
    CN_ASSERT(lane->traced_functions);
    lane->traced_functions--;
    if (trace)
        trace->ticks += ticks;
    if (!lane->traced_functions && !lane->vm->entered && !cn_list_empty(&lane->traces_ended))
        cn_trace_flush(lane);
}

static void end(void *data, uint64_t handle, const char *outcome)
{
    cn_trace_end(data, handle, outcome);
}

static bool is_exported(void *data)
{
    const struct cn_lane *lane = data;
    return lane->options.exporter != NULL;
}

const struct cn_compiled_tracer cn_compiled_lane_tracer = {.begin = begin,
                                                           .mark = mark,
                                                           .is_whole = is_whole,
                                                           .note = note,
                                                           .log = log_line,
                                                           .exception = exception,
                                                           .status = status,
                                                           .enter = enter,
                                                           .leave = leave,
                                                           .end = end,
                                                           .is_exported = is_exported};
