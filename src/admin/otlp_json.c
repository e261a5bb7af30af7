/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/otlp_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/json.h"
#include "worker/script.h"

/* --- pieces ---------------------------------------------------------------------------------- */

static void append_string(struct cn_buf *out, const char *text, size_t size)
{
    cn_buf_append_json(out, text, size);
}

/* A KeyValue up to its value; begins with a comma unless it is the first of its array. */
static void append_member(struct cn_buf *out, const char *key)
{
    if (out->data[out->size - 1] != '[')
        cn_buf_append_byte(out, ',');
    cn_buf_append_str(out, "{\"key\":");
    append_string(out, key, strlen(key));
    cn_buf_append_str(out, ",\"value\":");
}

static void append_attribute(struct cn_buf *out, const char *key, const char *text, size_t size)
{
    append_member(out, key);
    cn_buf_append_str(out, "{\"stringValue\":");
    append_string(out, text, size);
    cn_buf_append_str(out, "}}");
}

static void append_text(struct cn_buf *out, const char *key, const char *text)
{
    if (text)
        append_attribute(out, key, text, strlen(text));
}

static void append_int(struct cn_buf *out, const char *key, int64_t value)
{
    if (out->data[out->size - 1] != '[')
        cn_buf_append_byte(out, ',');
    cn_buf_printf(out, "{\"key\":\"%s\",\"value\":{\"intValue\":\"%" PRId64 "\"}}", key, value);
}

static void append_double(struct cn_buf *out, const char *key, double value)
{
    if (out->data[out->size - 1] != '[')
        cn_buf_append_byte(out, ',');
    cn_buf_printf(out, "{\"key\":\"%s\",\"value\":{\"doubleValue\":%.6g}}", key, value);
}

/* --- requests -------------------------------------------------------------------------------- */

void cn_otlp_begin(struct cn_buf *out, enum cn_otlp_signal signal,
                   const struct cn_otlp_pair *resource, size_t resource_count)
{
    static const char *const kinds[] = {"Spans", "Logs", "Metrics"};
    static const char *const elements[] = {"spans", "logRecords", "metrics"};
    cn_buf_printf(out, "{\"resource%s\":[{\"resource\":{\"attributes\":[", kinds[signal]);
    for (size_t i = 0; i < resource_count; i++)
        append_text(out, resource[i].name, resource[i].value);
    cn_buf_printf(out,
                  "]},\"scope%s\":[{\"scope\":{\"name\":\"cairn\",\"version\":\"%s\"},\"%s\":[",
                  kinds[signal], CN_VERSION, elements[signal]);
}

void cn_otlp_end(struct cn_buf *out)
{
    cn_buf_append_str(out, "]}]}]}");
}

/* --- spans ----------------------------------------------------------------------------------- */

/* An array of the trace, whose elements are kept without brackets. */
static struct cn_json *parse_array(const struct cn_buf *elements)
{
    struct cn_buf text = {0};
    struct cn_err err;
    cn_buf_append_byte(&text, '[');
    cn_buf_append(&text, elements->data, elements->size);
    cn_buf_append_byte(&text, ']');
    struct cn_json *list = cn_json_parse(cn_buf_text(&text), text.size, &err);
    cn_buf_fini(&text);
    return list;
}

/* Exceptions as events of a span. */
static void append_events(struct cn_buf *out, const struct cn_json *list)
{
    cn_buf_append_str(out, ",\"events\":[");
    for (const struct cn_json *each = list ? list->first : NULL; each; each = each->next) {
        cn_buf_printf(out,
                      "%s{\"timeUnixNano\":\"%" PRId64
                      "000000\",\"name\":\"exception\",\"attributes\":[",
                      each == list->first ? "" : ",", cn_json_int(each, "timestamp"));
        append_text(out, "exception.type", cn_json_text(each, "name"));
        append_text(out, "exception.message", cn_json_text(each, "message"));
        append_text(out, "exception.stacktrace", cn_json_text(each, "stack"));
        cn_buf_append_str(out, "]}");
    }
    cn_buf_append_byte(out, ']');
}

/* Where and in what a span is; `parent` "": in nothing. */
static void append_ids(struct cn_buf *out, const struct cn_trace *trace, const char *id,
                       const char *parent)
{
    cn_buf_printf(out, "{\"traceId\":\"%016" PRIx64 "%016" PRIx64 "\",\"spanId\":\"%s\",",
                  trace->origin.trace[0], trace->origin.trace[1], id);
    if (*parent)
        cn_buf_printf(out, "\"parentSpanId\":\"%s\",", parent);
}

static void append_times(struct cn_buf *out, int64_t start_ns, int64_t end_ns)
{
    cn_buf_printf(out,
                  ",\"startTimeUnixNano\":\"%" PRId64 "\",\"endTimeUnixNano\":\"%" PRId64
                  "\",\"attributes\":[",
                  start_ns, end_ns);
}

static int64_t ns_of(const struct cn_json *object, const char *key)
{
    const struct cn_json *ms = cn_json_find(object, key);
    return ms && (ms->kind == CN_JSON_NUMBER || ms->kind == CN_JSON_INT)
               ? (int64_t)(ms->number * 1e6)
               : 0;
}

static void append_value(struct cn_buf *out, const struct cn_json *value)
{
    if (value->kind == CN_JSON_STRING) {
        append_attribute(out, value->name, value->text, value->size);
    } else if (value->kind == CN_JSON_INT) {
        append_member(out, value->name);
        cn_buf_printf(out, "{\"intValue\":\"%" PRId64 "\"}}", value->integer);
    } else if (value->kind == CN_JSON_NUMBER) {
        append_member(out, value->name);
        cn_buf_printf(out, "{\"doubleValue\":%.17g}}", value->number);
    } else if (value->kind == CN_JSON_BOOL) {
        append_member(out, value->name);
        cn_buf_printf(out, "{\"boolValue\":%s}}", value->boolean ? "true" : "false");
    }
}

/* A span of the script's own: see Span in prelude/workers/tracing.js. */
static void append_own(struct cn_buf *out, const struct cn_trace *trace, const struct cn_json *span)
{
    const char *id = cn_json_text(span, "id"), *parent = cn_json_text(span, "parent");
    const char *name = cn_json_text(span, "name");
    const struct cn_json *status = cn_json_find(span, "status");
    const struct cn_json *attributes = cn_json_find(span, "attributes");
    const char *code = status ? cn_json_text(status, "code") : NULL;
    if (!id || !parent || !name || !attributes || !code)
        return; /* too much for the parser */
    append_ids(out, trace, id, parent);
    cn_buf_append_str(out, "\"flags\":1,\"kind\":1,\"name\":");
    append_string(out, name, strlen(name));
    append_times(out, ns_of(span, "start"), ns_of(span, "end"));
    append_text(out, "cairn.worker", trace->script->name);
    for (const struct cn_json *each = attributes->first; each; each = each->next)
        append_value(out, each);
    cn_buf_append_byte(out, ']');
    append_events(out, cn_json_find(span, "exceptions"));
    cn_buf_printf(out, ",\"status\":{\"code\":%d",
                  strcmp(code, "ok") == 0      ? 1
                  : strcmp(code, "error") == 0 ? 2
                                               : 0);
    const char *message = cn_json_text(status, "message");
    if (message) {
        cn_buf_append_str(out, ",\"message\":");
        append_string(out, message, strlen(message));
    }
    cn_buf_append_str(out, "}}");
}

size_t cn_otlp_append_own_spans(struct cn_buf *out, const struct cn_trace *trace)
{
    size_t count = 0;
    struct cn_json *list = parse_array(&trace->spans);
    for (const struct cn_json *each = list ? list->first : NULL; each; each = each->next) {
        size_t before = out->size;
        if (count)
            cn_buf_append_byte(out, ',');
        size_t begin = out->size;
        append_own(out, trace, each);
        if (out->size == begin)
            out->size = before;
        else
            count++;
    }
    cn_json_free(list);
    return count;
}

/* What the kind of event has besides. */
static void append_subject(struct cn_buf *out, const struct cn_trace *trace, const char *subject)
{
    const char *space = strchr(subject, ' ');
    switch (trace->kind) {
    case CN_TRACE_FETCH:
        if (space) {
            append_attribute(out, "http.request.method", subject, (size_t)(space - subject));
            append_text(out, "url.path", space + 1);
        }
        if (trace->status)
            append_int(out, "http.response.status_code", trace->status);
        break;
    case CN_TRACE_RPC:
        append_text(out, "rpc.method", subject);
        break;
    case CN_TRACE_QUEUE:
        append_text(out, "messaging.destination.name", subject);
        break;
    case CN_TRACE_SCHEDULED:
        append_text(out, "faas.cron", subject);
        break;
    default:
        break;
    }
}

/* "GET /path", "Room.speak", "queue name": what a list of spans shows. */
static void append_name(struct cn_buf *out, const struct cn_trace *trace, const char *subject)
{
    struct cn_buf name = {0};
    if (trace->object[0] && trace->kind != CN_TRACE_FETCH)
        cn_buf_printf(&name, "%s.%s", trace->entrypoint, subject);
    else if (trace->kind == CN_TRACE_FETCH || trace->kind == CN_TRACE_RPC)
        cn_buf_append_str(&name, subject);
    else
        cn_buf_printf(&name, "%s %s", cn_trace_kind_names[trace->kind], subject);
    append_string(out, cn_buf_text(&name), name.size);
    cn_buf_fini(&name);
}

void cn_otlp_append_span(struct cn_buf *out, const struct cn_trace *trace)
{
    /* SPAN_KIND_INTERNAL 1, SERVER 2, CONSUMER 5. */
    static const int kinds[] = {
        [CN_TRACE_FETCH] = 2,     [CN_TRACE_RPC] = 2,   [CN_TRACE_ALARM] = 1, [CN_TRACE_SOCKET] = 2,
        [CN_TRACE_SCHEDULED] = 1, [CN_TRACE_QUEUE] = 5, [CN_TRACE_TAIL] = 5,  [CN_TRACE_OTHER] = 1};
    struct cn_buf copy = {0};
    cn_buf_append(&copy, trace->subject.data, trace->subject.size);
    const char *subject = cn_buf_text(&copy);
    bool ok = strcmp(trace->outcome, "ok") == 0 || strcmp(trace->outcome, "canceled") == 0;
    int64_t start_ns = trace->started_ms * 1000000;
    int64_t end_ns = start_ns + (int64_t)(trace->ended_ns - trace->started_ns);
    char id[17], parent[17] = "";
    snprintf(id, sizeof(id), "%016" PRIx64, trace->span);
    if (trace->origin.span)
        snprintf(parent, sizeof(parent), "%016" PRIx64, trace->origin.span);
    append_ids(out, trace, id, parent);
    cn_buf_printf(out, "\"flags\":1,\"kind\":%d,\"name\":", kinds[trace->kind]);
    append_name(out, trace, subject);
    append_times(out, start_ns, end_ns);
    append_text(out, "cairn.worker", trace->script->name);
    append_text(out, "cairn.event", cn_trace_kind_names[trace->kind]);
    append_text(out, "cairn.outcome", trace->outcome);
    append_text(out, "cairn.entrypoint", trace->entrypoint);
    append_text(out, "cairn.object.id", trace->object[0] ? trace->object : NULL);
    append_text(out, "cairn.object.name", trace->object_name);
    char request[17];
    snprintf(request, sizeof(request), "%016" PRIx64, trace->origin.request);
    append_text(out, "cairn.request", request);
    append_double(out, "cairn.cpu_ms", (double)cn_clock_ticks_ns(trace->ticks) / 1e6);
    append_subject(out, trace, subject);
    cn_buf_append_byte(out, ']');
    struct cn_json *exceptions = parse_array(&trace->exceptions);
    append_events(out, exceptions);
    cn_json_free(exceptions);
    cn_buf_printf(out, ",\"status\":{\"code\":%d}}", ok ? 0 : 2);
    cn_buf_fini(&copy);
}

/* --- logs ------------------------------------------------------------------------------------ */

static bool is_field(const struct cn_diag_field *field, const char *name)
{
    return field->text && strcmp(field->name, name) == 0;
}

void cn_otlp_append_log(struct cn_buf *out, const struct cn_diag_note *note)
{
    static const struct {
        int number;
        const char *text;
    } levels[] = {[CN_DIAG_DEBUG] = {5, "DEBUG"},
                  [CN_DIAG_INFO] = {9, "INFO"},
                  [CN_DIAG_WARN] = {13, "WARN"},
                  [CN_DIAG_ERROR] = {17, "ERROR"}};
    cn_buf_printf(out,
                  "{\"timeUnixNano\":\"%" PRId64 "000000\",\"observedTimeUnixNano\":\"%" PRId64
                  "000000\",\"severityNumber\":%d,\"severityText\":\"%s\",\"body\":{"
                  "\"stringValue\":",
                  note->time_ms, note->time_ms, levels[note->level].number,
                  levels[note->level].text);
    append_string(out, note->text, note->length);
    cn_buf_append_str(out, "},\"attributes\":[");
    const struct cn_diag_field *trace = NULL, *span = NULL;
    for (size_t i = 0; i < note->count; i++) {
        const struct cn_diag_field *field = &note->fields[i];
        char key[64];
        if (is_field(field, "trace"))
            trace = field;
        else if (is_field(field, "span"))
            span = field;
        else if (field->text) {
            snprintf(key, sizeof(key), "cairn.%s", field->name);
            append_attribute(out, key, field->text,
                             field->length ? field->length : strlen(field->text));
        }
    }
    cn_buf_append_byte(out, ']');
    if (trace && span)
        cn_buf_printf(out, ",\"traceId\":\"%s\",\"spanId\":\"%s\",\"flags\":1", trace->text,
                      span->text);
    cn_buf_append_byte(out, '}');
}

/* --- metrics --------------------------------------------------------------------------------- */

struct metrics_json {
    struct cn_metrics_sink sink;
    struct cn_buf *out;
    enum cn_metric_type type; /* of the family under way */
    bool any, points;         /* a family has begun; it has a point */
    size_t point_count;
    int64_t started_ms, now_ms;
};

static void end_family(struct metrics_json *json)
{
    if (!json->any)
        return;
    cn_buf_append_byte(json->out, ']');
    if (json->type != CN_METRIC_GAUGE)
        cn_buf_append_str(json->out, ",\"aggregationTemporality\":2"); /* cumulative */
    if (json->type == CN_METRIC_COUNTER)
        cn_buf_append_str(json->out, ",\"isMonotonic\":true");
    cn_buf_append_str(json->out, "}}");
}

static const char *unit_of(const char *name)
{
    if (strstr(name, "_seconds"))
        return "s";
    return strstr(name, "_bytes") ? "By" : "1";
}

static void on_family(struct cn_metrics_sink *sink, const char *name, enum cn_metric_type type,
                      const char *help)
{
    static const char *const kinds[] = {"sum", "gauge", "histogram"};
    struct metrics_json *json = CN_CONTAINER_OF(sink, struct metrics_json, sink);
    end_family(json);
    if (json->any)
        cn_buf_append_byte(json->out, ',');
    json->any = true;
    json->points = false;
    json->type = type;
    cn_buf_printf(json->out, "{\"name\":\"%s\",\"unit\":\"%s\",\"description\":", name,
                  unit_of(name));
    append_string(json->out, help, strlen(help));
    cn_buf_printf(json->out, ",\"%s\":{\"dataPoints\":[", kinds[type]);
}

static void append_histogram(struct cn_buf *out, const struct cn_metric_value *value)
{
    uint64_t count = 0;
    cn_buf_append_str(out, ",\"bucketCounts\":[");
    for (size_t i = 0; i <= CN_HISTOGRAM_BOUNDS; i++) {
        count += value->ranges[i];
        cn_buf_printf(out, "%s\"%" PRIu64 "\"", i ? "," : "", value->ranges[i]);
    }
    cn_buf_append_str(out, "],\"explicitBounds\":[");
    for (size_t i = 0; i < CN_HISTOGRAM_BOUNDS; i++)
        cn_buf_printf(out, "%s%g", i ? "," : "", value->bounds[i]);
    cn_buf_printf(out, "],\"count\":\"%" PRIu64 "\",\"sum\":%.17g", count, value->number);
}

static void on_value(struct cn_metrics_sink *sink, const struct cn_metric_value *value)
{
    struct metrics_json *json = CN_CONTAINER_OF(sink, struct metrics_json, sink);
    struct cn_buf *out = json->out;
    cn_buf_append_str(out, json->points ? ",{\"attributes\":[" : "{\"attributes\":[");
    for (size_t i = 0; i < CN_METRIC_LABELS && value->labels[i].name; i++)
        append_text(out, value->labels[i].name, value->labels[i].value);
    cn_buf_append_byte(out, ']');
    if (json->type != CN_METRIC_GAUGE)
        cn_buf_printf(out, ",\"startTimeUnixNano\":\"%" PRId64 "000000\"", json->started_ms);
    cn_buf_printf(out, ",\"timeUnixNano\":\"%" PRId64 "000000\"", json->now_ms);
    if (value->ranges)
        append_histogram(out, value);
    else if (value->real)
        cn_buf_printf(out, ",\"asDouble\":%.17g", isfinite(value->number) ? value->number : 0);
    else
        cn_buf_printf(out, ",\"asInt\":\"%" PRIu64 "\"", value->integer);
    cn_buf_append_byte(out, '}');
    json->points = true;
    json->point_count++;
}

size_t cn_otlp_append_metrics(struct cn_buf *out, const struct cn_metrics_sources *sources,
                              int64_t started_ms, int64_t now_ms)
{
    struct metrics_json json = {
        .sink = {on_family, on_value}, .out = out, .started_ms = started_ms, .now_ms = now_ms};
    cn_metrics_read(sources, &json.sink);
    end_family(&json);
    return json.point_count;
}
