/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/recent.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/loop.h"

/* Which metric goes into which value; `labelled`: only with one of these values of its last label,
 * with commas around each. */
static const struct {
    const char *name, *family, *labelled;
} values[CN_RECENT_VALUES] = {
    {"ok", "cairn_requests_total", ",1xx,2xx,3xx,"},
    {"client", "cairn_requests_total", ",4xx,"},
    {"failed", "cairn_requests_total", ",5xx,none,"},
    {"refused", "cairn_refusals_total", NULL},
    {"exceptions", "cairn_worker_exceptions_total", NULL},
    {"objects", "cairn_lane_objects", NULL},
    {"started", "cairn_objects_started_total", NULL},
    {"memory", "cairn_process_resident_memory_bytes", NULL},
    {"heap", "cairn_lane_heap_bytes", NULL},
    {"cpu", "cairn_process_cpu_seconds_total", NULL},
    {"commits", "cairn_log_commits_total", NULL},
    {"written", "cairn_log_written_bytes_total", NULL},
};
static const struct {
    const char *name, *family;
} histograms[CN_RECENT_HISTOGRAMS] = {
    {"latency", "cairn_request_duration_seconds"},
    {"flush", "cairn_log_flush_duration_seconds"},
};

struct reading {
    struct cn_metrics_sink sink; /* first */
    const char *family;
    struct cn_recent_point *point;
};

static void on_family(struct cn_metrics_sink *sink, const char *name, enum cn_metric_type type,
                      const char *help)
{
    (void)type;
    (void)help;
    ((struct reading *)sink)->family = name;
}

static bool is_labelled(const struct cn_metric_value *value, const char *wanted)
{
    const char *last = "";
    for (size_t i = 0; i < CN_METRIC_LABELS && value->labels[i].name; i++)
        last = value->labels[i].value;
    const char *found = *last ? strstr(wanted, last) : NULL;
    return found && found > wanted && found[-1] == ',' && found[strlen(last)] == ',';
}

static void on_value(struct cn_metrics_sink *sink, const struct cn_metric_value *value)
{
    struct reading *reading = (struct reading *)sink;
    struct cn_recent_point *point = reading->point;
    for (size_t i = 0; i < CN_RECENT_VALUES && !value->ranges; i++) {
        if (strcmp(values[i].family, reading->family) == 0 &&
            (!values[i].labelled || is_labelled(value, values[i].labelled)))
            point->values[i] += value->real ? value->number : (double)value->integer;
    }
    for (size_t i = 0; i < CN_RECENT_HISTOGRAMS && value->ranges; i++) {
        if (strcmp(histograms[i].family, reading->family) != 0)
            continue;
        for (size_t k = 0; k <= CN_HISTOGRAM_BOUNDS; k++)
            point->ranges[i][k] += value->ranges[k];
    }
}

static void take_point(struct cn_recent *recent)
{
    struct cn_recent_point *point = &recent->points[recent->next];
    struct reading reading = {.sink = {on_family, on_value}, .family = "", .point = point};
    *point = (struct cn_recent_point){.time_ms = cn_clock_wall_ms(cn_clock_system())};
    cn_metrics_read(&recent->sources, &reading.sink);
    recent->next = (recent->next + 1) % CN_RECENT_COUNT;
    if (recent->count < CN_RECENT_COUNT)
        recent->count++;
}

static void on_timer(uv_timer_t *timer)
{
    take_point(timer->data);
}

void cn_recent_start(struct cn_recent *recent, uv_loop_t *loop,
                     const struct cn_metrics_sources *sources)
{
    cn_loop_assert_owner(loop);
    recent->sources = *sources;
    int rc = uv_timer_init(loop, &recent->timer);
    CN_ASSERT(rc == 0);
    recent->timer.data = recent;
    take_point(recent);
    rc = uv_timer_start(&recent->timer, on_timer, CN_RECENT_EVERY_MS, CN_RECENT_EVERY_MS);
    CN_ASSERT(rc == 0);
}

void cn_recent_close(struct cn_recent *recent)
{
    cn_loop_assert_owner(recent->timer.loop);
    uv_close((uv_handle_t *)&recent->timer, NULL);
}

static void append_point(const struct cn_recent_point *point, struct cn_buf *out)
{
    cn_buf_printf(out, "[%" PRId64, point->time_ms);
    for (size_t i = 0; i < CN_RECENT_VALUES; i++)
        cn_buf_printf(out, ",%.17g", point->values[i]);
    for (size_t i = 0; i < CN_RECENT_HISTOGRAMS; i++) {
        for (size_t k = 0; k <= CN_HISTOGRAM_BOUNDS; k++)
            cn_buf_printf(out, "%s%" PRIu64, k ? "," : ",[", point->ranges[i][k]);
        cn_buf_append_byte(out, ']');
    }
    cn_buf_append_byte(out, ']');
}

void cn_recent_append(const struct cn_recent *recent, struct cn_buf *out)
{
    cn_buf_printf(out, "{\"now\":%" PRId64 ",\"every\":%d,\"values\":[",
                  cn_clock_wall_ms(cn_clock_system()), CN_RECENT_EVERY_MS);
    for (size_t i = 0; i < CN_RECENT_VALUES; i++)
        cn_buf_printf(out, "%s\"%s\"", i ? "," : "", values[i].name);
    cn_buf_append_str(out, "],\"histograms\":[");
    for (size_t i = 0; i < CN_RECENT_HISTOGRAMS; i++)
        cn_buf_printf(out, "%s\"%s\"", i ? "," : "", histograms[i].name);
    cn_buf_append_str(out, "],\"bounds\":[");
    for (size_t i = 0; i < CN_HISTOGRAM_BOUNDS; i++)
        cn_buf_printf(out, "%s%g", i ? "," : "", (double)cn_histogram_us[i] * 1e-6);
    cn_buf_append_str(out, "],\"points\":[");
    for (unsigned i = 0; i < recent->count; i++) {
        unsigned at = (recent->next + CN_RECENT_COUNT - recent->count + i) % CN_RECENT_COUNT;
        cn_buf_append_str(out, i ? "," : "");
        append_point(&recent->points[at], out);
    }
    cn_buf_append_str(out, "]}\n");
}
