/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/trace.c - what the prelude adds to the trace of the running turn (worker/trace.h). It
 * calls these only if there is one: prelude/internal/trace.js. */
#include <inttypes.h>

#include "base/clock.h"
#include "border/trace.h"
#include "js/native.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/runtime.h"
#include "worker/trace.h"

static struct cn_trace *current(JSContextRef ctx)
{
    struct cn_lane *lane = ((struct cn_instance *)cn_runtime_of(ctx)->data)->lane;
    return cn_trace_find(lane, cn_js_cause(lane->vm).trace);
}

/* ,"name": and the value of the argument as JSON text. */
static void append_text(JSContextRef ctx, struct cn_buf *out, const char *name, JSValueRef value)
{
    struct cn_buf text = {0};
    cn_js_append_utf8(ctx, value, &text);
    cn_buf_printf(out, ",\"%s\":", name);
    cn_buf_append_json(out, cn_buf_text(&text), text.size);
    cn_buf_fini(&text);
}

static void begin_element(struct cn_buf *out)
{
    cn_buf_printf(out, "{\"timestamp\":%" PRId64, cn_clock_wall_ms(cn_clock_system()));
}

static void end_element(struct cn_trace *trace, struct cn_buf *array, struct cn_buf *element)
{
    cn_buf_append_byte(element, '}');
    cn_trace_add(trace, array, cn_buf_text(element), element->size);
    cn_buf_fini(element);
}

/* traceIsWhole(): whether somebody wants what was asked and logged, and not only that it ran */
static JSValueRef native_trace_is_whole(CN_JS_NATIVE_ARGS)
{
    const struct cn_trace *trace = current(ctx);
    return JSValueMakeBoolean(ctx, trace && cn_trace_is_whole(trace));
}

/* traceEvent(subject, members): what it is: for people, and the members of TraceItem.event as JSON
 * without the braces */
static JSValueRef native_trace_event(CN_JS_NATIVE_ARGS)
{
    struct cn_trace *trace = current(ctx);
    if (trace) {
        cn_buf_clear(&trace->subject);
        cn_buf_clear(&trace->event);
        cn_js_append_utf8(ctx, cn_js_arg(0), &trace->subject);
        cn_js_append_utf8(ctx, cn_js_arg(1), &trace->event);
    }
    return JSValueMakeUndefined(ctx);
}

/* traceStatus(status): of the response */
static JSValueRef native_trace_status(CN_JS_NATIVE_ARGS)
{
    struct cn_trace *trace = current(ctx);
    if (trace)
        trace->status = cn_js_to_int32(ctx, cn_js_arg(0));
    return JSValueMakeUndefined(ctx);
}

/* traceFail(): it has failed, whatever its caller is told */
static JSValueRef native_trace_fail(CN_JS_NATIVE_ARGS)
{
    struct cn_trace *trace = current(ctx);
    if (trace)
        trace->outcome = "exception";
    return JSValueMakeUndefined(ctx);
}

/* traceLog(level, args): args is a JSON array */
static JSValueRef native_trace_log(CN_JS_NATIVE_ARGS)
{
    struct cn_trace *trace = current(ctx);
    struct cn_buf element = {0};
    if (!trace)
        return JSValueMakeUndefined(ctx);
    begin_element(&element);
    append_text(ctx, &element, "level", cn_js_arg(0));
    cn_buf_append_str(&element, ",\"message\":");
    cn_js_append_utf8(ctx, cn_js_arg(1), &element);
    end_element(trace, &trace->logs, &element);
    return JSValueMakeUndefined(ctx);
}

/* traceException(name, message, stack | undefined) */
static JSValueRef native_trace_exception(CN_JS_NATIVE_ARGS)
{
    struct cn_trace *trace = current(ctx);
    struct cn_buf element = {0};
    if (!trace)
        return JSValueMakeUndefined(ctx);
    begin_element(&element);
    append_text(ctx, &element, "name", cn_js_arg(0));
    append_text(ctx, &element, "message", cn_js_arg(1));
    if (JSValueIsString(ctx, cn_js_arg(2))) {
        struct cn_buf stack = {0}, explained = {0};
        cn_js_append_utf8(ctx, cn_js_arg(2), &stack);
        cn_script_explain(trace->script, cn_buf_text(&stack), stack.size, false, &explained);
        cn_buf_append_str(&element, ",\"stack\":");
        cn_buf_append_json(&element, cn_buf_text(&explained), explained.size);
        cn_buf_fini(&stack);
        cn_buf_fini(&explained);
    }
    end_element(trace, &trace->exceptions, &element);
    return JSValueMakeUndefined(ctx);
}

/* traceChannel(channel, message): message is JSON */
static JSValueRef native_trace_channel(CN_JS_NATIVE_ARGS)
{
    struct cn_trace *trace = current(ctx);
    struct cn_buf element = {0};
    if (!trace)
        return JSValueMakeUndefined(ctx);
    begin_element(&element);
    append_text(ctx, &element, "channel", cn_js_arg(0));
    cn_buf_append_str(&element, ",\"message\":");
    cn_js_append_utf8(ctx, cn_js_arg(1), &element);
    end_element(trace, &trace->channels, &element);
    return JSValueMakeUndefined(ctx);
}

/* traceSpanIds(): for a span of the script's own: the trace's id, its own and a new one in
 * hexadecimal, one behind the other; "" if no exporter wants this trace */
static JSValueRef native_trace_span_ids(CN_JS_NATIVE_ARGS)
{
    const struct cn_trace *trace = current(ctx);
    struct cn_lane *lane = ((struct cn_instance *)cn_runtime_of(ctx)->data)->lane;
    char text[65] = "";
    if (trace && trace->sampled)
        snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64,
                 trace->origin.trace[0], trace->origin.trace[1], trace->span,
                 cn_rand_next(&lane->rand) | 1);
    return cn_js_text_z(ctx, text);
}

/* traceTime(): milliseconds, with their parts, on the clock that the trace itself is told in */
static JSValueRef native_trace_time(CN_JS_NATIVE_ARGS)
{
    const struct cn_trace *trace = current(ctx);
    double now = trace ? (double)trace->started_ms + (double)(uv_hrtime() - trace->started_ns) / 1e6
                       : (double)cn_clock_wall_ms(cn_clock_system());
    return JSValueMakeNumber(ctx, now);
}

/* traceSpan(trace, span): one has ended; it may have begun in another trace than the current one */
static JSValueRef native_trace_span(CN_JS_NATIVE_ARGS)
{
    struct cn_lane *lane = ((struct cn_instance *)cn_runtime_of(ctx)->data)->lane;
    struct cn_trace *trace = cn_trace_find(lane, cn_js_to_uint64(ctx, cn_js_arg(0)));
    struct cn_buf span = {0};
    if (!trace)
        return JSValueMakeUndefined(ctx);
    cn_js_append_utf8(ctx, cn_js_arg(1), &span);
    cn_trace_add(trace, &trace->spans, cn_buf_text(&span), span.size);
    cn_buf_fini(&span);
    return JSValueMakeUndefined(ctx);
}
