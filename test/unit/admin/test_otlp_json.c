/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP's messages in JSON: well-formed whatever the texts hold, numbers and ids as the protocol has
 * them. */
#include "admin/otlp_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "test/lib/test.h"
#include "worker/script.h"

/* What metrics there are is this file's. */
void cn_metrics_read(const struct cn_metrics_sources *sources, struct cn_metrics_sink *sink)
{
    static uint64_t ranges[CN_HISTOGRAM_BOUNDS + 1] = {3, 0, 4};
    struct cn_metric_value histogram = {
        .labels = {{"worker", "w"}}, .real = true, .number = 2.5, .ranges = ranges};
    if (sources->points)
        return; /* there are none at all */
    for (size_t i = 0; i < CN_HISTOGRAM_BOUNDS; i++)
        histogram.bounds[i] = 0.001 * (double)(i + 1);
    sink->family(sink, "a_total", CN_METRIC_COUNTER, "How \"many\".");
    sink->value(sink, &(struct cn_metric_value){.labels = {{"x", "1\n\""}}, .integer = UINT64_MAX});
    sink->value(sink, &(struct cn_metric_value){.labels = {{"x", "2"}, {"y", "3"}}, .integer = 1});
    sink->family(sink, "b_bytes", CN_METRIC_GAUGE, "None.");
    sink->family(sink, "c_seconds", CN_METRIC_GAUGE, "Real.");
    sink->value(sink, &(struct cn_metric_value){.real = true, .number = 0.25});
    sink->value(sink, &(struct cn_metric_value){.real = true, .number = NAN});
    sink->value(sink, &(struct cn_metric_value){.real = true, .number = INFINITY});
    sink->family(sink, "h_seconds", CN_METRIC_HISTOGRAM, "How long.");
    sink->value(sink, &histogram);
}

static struct cn_buf out;

static struct cn_json *parse(void)
{
    struct cn_err err = {0};
    struct cn_json *json = cn_json_parse(cn_buf_text(&out), out.size, &err);
    if (!json)
        test_fail(__FILE__, __LINE__, "%s: %.500s", err.text, cn_buf_text(&out));
    cn_buf_clear(&out);
    return json;
}

/* The text of the attribute, of whatever type; NULL: there is none. Twice is an error. */
static const char *attribute(const struct cn_json *of, const char *key)
{
    static const char *const kinds[] = {"stringValue", "intValue"};
    const char *found = NULL;
    for (const struct cn_json *each = cn_json_find(of, "attributes")->first; each;
         each = each->next) {
        if (strcmp(cn_json_text(each, "key"), key) != 0)
            continue;
        CHECK(!found);
        for (size_t i = 0; i < 2 && !found; i++)
            found = cn_json_text(cn_json_find(each, "value"), kinds[i]);
    }
    return found;
}

/* --- requests ------------------------------------------------------------------------------------
 */

TEST(otlp_json, a_request_has_the_names_of_its_signal)
{
    static const char *const names[CN_OTLP_SIGNALS][3] = {
        {"resourceSpans", "scopeSpans", "spans"},
        {"resourceLogs", "scopeLogs", "logRecords"},
        {"resourceMetrics", "scopeMetrics", "metrics"},
    };
    struct cn_otlp_pair resource[] = {{"service.name", "a \"shop\"\n"}, {"host", ""}};
    for (unsigned signal = 0; signal < CN_OTLP_SIGNALS; signal++) {
        for (size_t count = 0; count <= 2; count++) {
            cn_otlp_begin(&out, signal, resource, count);
            cn_otlp_end(&out);
            struct cn_json *json = parse();
            const struct cn_json *one = cn_json_find(json, names[signal][0])->first;
            CHECK(one && !one->next);
            const struct cn_json *about = cn_json_find(one, "resource");
            if (count)
                CHECK_STR("a \"shop\"\n", attribute(about, "service.name"));
            CHECK((attribute(about, "host") != NULL) == (count == 2));
            const struct cn_json *scope = cn_json_find(one, names[signal][1])->first;
            CHECK_STR("cairn", cn_json_text(cn_json_find(scope, "scope"), "name"));
            CHECK(cn_json_find(scope, names[signal][2])->kind == CN_JSON_ARRAY);
            cn_json_free(json);
        }
    }
    cn_buf_fini(&out);
}

/* --- spans
 * ---------------------------------------------------------------------------------------- */

static struct cn_script script = {.name = "shop"};

static struct cn_trace make_trace(enum cn_trace_kind kind, const char *subject)
{
    struct cn_trace trace = {.kind = kind,
                             .script = &script,
                             .origin = {.request = 0xabc, .trace = {0x1, 0x2}},
                             .span = 0x3,
                             .started_ms = 1700000000123,
                             .started_ns = 5000,
                             .ended_ns = 1005001,
                             .outcome = "ok"};
    cn_buf_append_str(&trace.subject, subject);
    return trace;
}

static struct cn_json *span_of(struct cn_trace *trace)
{
    cn_otlp_append_span(&out, trace);
    cn_buf_fini(&trace->subject);
    cn_buf_fini(&trace->exceptions);
    return parse();
}

TEST(otlp_json, a_span_has_ids_times_and_what_it_was)
{
    struct cn_trace trace = make_trace(CN_TRACE_FETCH, "GET /a\"b?c=\xc3\xa4");
    trace.status = 404;
    trace.origin.span = 0xfedcba9876543210;
    struct cn_json *span = span_of(&trace);
    CHECK_STR("00000000000000010000000000000002", cn_json_text(span, "traceId"));
    CHECK_STR("0000000000000003", cn_json_text(span, "spanId"));
    CHECK_STR("fedcba9876543210", cn_json_text(span, "parentSpanId"));
    CHECK_STR("GET /a\"b?c=\xc3\xa4", cn_json_text(span, "name"));
    CHECK_STR("1700000000123000000", cn_json_text(span, "startTimeUnixNano"));
    CHECK_STR("1700000000124000001", cn_json_text(span, "endTimeUnixNano"));
    CHECK_INT(2, cn_json_int(span, "kind"));
    CHECK_STR("GET", attribute(span, "http.request.method"));
    CHECK_STR("/a\"b?c=\xc3\xa4", attribute(span, "url.path"));
    CHECK_STR("404", attribute(span, "http.response.status_code"));
    CHECK_STR("0000000000000abc", attribute(span, "cairn.request"));
    CHECK_STR("shop", attribute(span, "cairn.worker"));
    CHECK(!attribute(span, "cairn.object.id") && !attribute(span, "cairn.entrypoint"));
    CHECK_INT(0, cn_json_int(cn_json_find(span, "status"), "code"));
    cn_json_free(span);
    /* the first of its trace has no parent */
    trace = make_trace(CN_TRACE_FETCH, "no space");
    trace.subject.size = 2;
    span = span_of(&trace);
    CHECK(!cn_json_find(span, "parentSpanId"));
    CHECK(!attribute(span, "http.request.method") && !attribute(span, "http.response.status_code"));
    cn_json_free(span);
}

TEST(otlp_json, every_kind_of_event_is_named)
{
    static const struct {
        enum cn_trace_kind kind;
        const char *object, *name, *key;
        int span_kind;
    } cases[] = {
        {CN_TRACE_RPC, "", "speak", "rpc.method", 2},
        {CN_TRACE_RPC, "00ff", "Room.speak", "rpc.method", 2},
        {CN_TRACE_QUEUE, "", "queue speak", "messaging.destination.name", 5},
        {CN_TRACE_SCHEDULED, "", "scheduled speak", "faas.cron", 1},
        {CN_TRACE_ALARM, "00ff", "Room.speak", NULL, 1},
        {CN_TRACE_SOCKET, "00ff", "Room.speak", NULL, 2},
        {CN_TRACE_FETCH, "00ff", "speak", NULL, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cn_trace trace = make_trace(cases[i].kind, "speak");
        snprintf(trace.object, sizeof(trace.object), "%s", cases[i].object);
        trace.entrypoint = "Room";
        trace.object_name = "the \"one\"";
        struct cn_json *span = span_of(&trace);
        CHECK_STR(cases[i].name, cn_json_text(span, "name"));
        CHECK_INT(cases[i].span_kind, cn_json_int(span, "kind"));
        if (cases[i].key)
            CHECK_STR("speak", attribute(span, cases[i].key));
        CHECK_STR("Room", attribute(span, "cairn.entrypoint"));
        CHECK_STR("the \"one\"", attribute(span, "cairn.object.name"));
        if (cases[i].object[0])
            CHECK_STR("00ff", attribute(span, "cairn.object.id"));
        cn_json_free(span);
    }
}

TEST(otlp_json, exceptions_are_events_and_only_failures_are_errors)
{
    struct cn_trace trace = make_trace(CN_TRACE_RPC, "f");
    trace.outcome = "exception";
    cn_buf_append_str(
        &trace.exceptions,
        "{\"timestamp\":1700000000124,\"name\":\"TypeError\",\"message\":\"a \\\"b\\\""
        "\",\"stack\":\"TypeError\\n  at f\"},{\"timestamp\":5,\"name\":\"E\"}");
    struct cn_json *span = span_of(&trace);
    CHECK_INT(2, cn_json_int(cn_json_find(span, "status"), "code"));
    const struct cn_json *event = cn_json_find(span, "events")->first;
    CHECK_STR("exception", cn_json_text(event, "name"));
    CHECK_STR("1700000000124000000", cn_json_text(event, "timeUnixNano"));
    CHECK_STR("TypeError", attribute(event, "exception.type"));
    CHECK_STR("a \"b\"", attribute(event, "exception.message"));
    CHECK_STR("TypeError\n  at f", attribute(event, "exception.stacktrace"));
    event = event->next;
    CHECK_STR("E", attribute(event, "exception.type"));
    CHECK(!attribute(event, "exception.message") && !event->next);
    cn_json_free(span);
    static const struct {
        const char *outcome;
        int code;
    } outcomes[] = {{"ok", 0}, {"canceled", 0}, {"exceededCpu", 2}, {"unknown", 2}};
    for (size_t i = 0; i < 4; i++) {
        trace = make_trace(CN_TRACE_RPC, "f");
        trace.outcome = outcomes[i].outcome;
        span = span_of(&trace);
        CHECK_INT(outcomes[i].code, cn_json_int(cn_json_find(span, "status"), "code"));
        CHECK(!cn_json_find(span, "events")->first);
        cn_json_free(span);
    }
    /* What was cut short is no JSON any more: a span all the same. */
    trace = make_trace(CN_TRACE_RPC, "f");
    cn_buf_append_str(&trace.exceptions, "{\"timestamp\":17");
    span = span_of(&trace);
    CHECK(!cn_json_find(span, "events")->first);
    cn_json_free(span);
}

/* --- logs
 * ----------------------------------------------------------------------------------------- */

TEST(otlp_json, a_record_has_its_level_its_fields_and_its_trace)
{
    static const struct {
        enum cn_diag_level level;
        int number;
        const char *text;
    } levels[] = {{CN_DIAG_DEBUG, 5, "DEBUG"},
                  {CN_DIAG_INFO, 9, "INFO"},
                  {CN_DIAG_WARN, 13, "WARN"},
                  {CN_DIAG_ERROR, 17, "ERROR"}};
    struct cn_diag_field fields[] = {{"worker", "shop\"", 0, false},
                                     {"cut", "abcdef", 3, false},
                                     {"none", NULL, 0, false},
                                     {"trace", "0123", 0, false},
                                     {"span", "4567", 0, false}};
    for (size_t i = 0; i < 4; i++) {
        struct cn_diag_note note = {.time_ms = 1700000000123,
                                    .level = levels[i].level,
                                    .fields = fields,
                                    .count = 5 - (i == 1), /* without its span: no trace */
                                    .text = "a\n\"b\" and what is not of it",
                                    .length = 5};
        cn_otlp_append_log(&out, &note);
        struct cn_json *record = parse();
        CHECK_INT(levels[i].number, cn_json_int(record, "severityNumber"));
        CHECK_STR(levels[i].text, cn_json_text(record, "severityText"));
        CHECK_STR("1700000000123000000", cn_json_text(record, "timeUnixNano"));
        CHECK_STR("a\n\"b\"", cn_json_text(cn_json_find(record, "body"), "stringValue"));
        CHECK_STR("shop\"", attribute(record, "cairn.worker"));
        CHECK_STR("abc", attribute(record, "cairn.cut"));
        CHECK(!attribute(record, "cairn.none") && !attribute(record, "cairn.trace"));
        if (i == 1) {
            CHECK(!cn_json_find(record, "traceId"));
        } else {
            CHECK_STR("0123", cn_json_text(record, "traceId"));
            CHECK_STR("4567", cn_json_text(record, "spanId"));
        }
        cn_json_free(record);
    }
    cn_buf_fini(&out);
}

/* --- metrics
 * -------------------------------------------------------------------------------------- */

TEST(otlp_json, metrics_are_sums_gauges_and_histograms)
{
    struct cn_metrics_sources sources = {0};
    cn_buf_append_byte(&out, '[');
    CHECK_INT(6, cn_otlp_append_metrics(&out, &sources, 100, 200));
    cn_buf_append_byte(&out, ']');
    struct cn_json *list = parse();
    const struct cn_json *a = list->first, *b = a->next, *c = b->next, *h = c->next;
    CHECK(h && !h->next);
    const struct cn_json *sum = cn_json_find(a, "sum");
    CHECK_STR("a_total", cn_json_text(a, "name"));
    CHECK_STR("How \"many\".", cn_json_text(a, "description"));
    CHECK_STR("1", cn_json_text(a, "unit"));
    CHECK_INT(2, cn_json_int(sum, "aggregationTemporality")); /* since the start */
    CHECK(cn_json_find(sum, "isMonotonic")->boolean);
    const struct cn_json *point = cn_json_find(sum, "dataPoints")->first;
    CHECK_STR("18446744073709551615", cn_json_text(point, "asInt"));
    CHECK_STR("100000000", cn_json_text(point, "startTimeUnixNano"));
    CHECK_STR("200000000", cn_json_text(point, "timeUnixNano"));
    CHECK_STR("1\n\"", attribute(point, "x"));
    CHECK_STR("3", attribute(point->next, "y"));
    CHECK_STR("By", cn_json_text(b, "unit"));
    CHECK(!cn_json_find(cn_json_find(b, "gauge"), "dataPoints")->first);
    CHECK_STR("s", cn_json_text(c, "unit"));
    point = cn_json_find(cn_json_find(c, "gauge"), "dataPoints")->first;
    CHECK(cn_json_find(point, "asDouble")->number == 0.25);
    CHECK(!cn_json_find(point, "startTimeUnixNano"));             /* a gauge is of now */
    CHECK_INT(0, cn_json_find(point->next, "asDouble")->integer); /* JSON has no NaN */
    CHECK_INT(0, cn_json_find(point->next->next, "asDouble")->integer);
    const struct cn_json *histogram = cn_json_find(h, "histogram");
    CHECK_INT(2, cn_json_int(histogram, "aggregationTemporality"));
    CHECK(!cn_json_find(histogram, "isMonotonic"));
    point = cn_json_find(histogram, "dataPoints")->first;
    CHECK_STR("7", cn_json_text(point, "count"));
    CHECK(cn_json_find(point, "sum")->number == 2.5);
    size_t buckets = 0, bounds = 0;
    for (const struct cn_json *each = cn_json_find(point, "bucketCounts")->first; each;
         each = each->next, buckets++)
        CHECK_STR(buckets == 0 ? "3" : buckets == 2 ? "4" : "0", each->text); /* not cumulative */
    for (const struct cn_json *each = cn_json_find(point, "explicitBounds")->first; each;
         each = each->next)
        bounds++;
    CHECK_INT(CN_HISTOGRAM_BOUNDS + 1, buckets);
    CHECK_INT(CN_HISTOGRAM_BOUNDS, bounds);
    cn_json_free(list);
    /* Nothing to tell is nothing. */
    sources.points = (struct cn_points *)&sources;
    CHECK_INT(0, cn_otlp_append_metrics(&out, &sources, 100, 200));
    CHECK_INT(0, out.size);
    cn_buf_fini(&out);
}
