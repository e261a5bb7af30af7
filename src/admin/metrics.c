/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/metrics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/counter.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/points.h"
#include "store/history.h"
#include "store/store.h"
#include "worker/metrics.h"
#include "worker/server.h"

/* --- the text -------------------------------------------------------------------------------- */

/* A family of metrics begins; each sample follows with its labels. */
static void family(struct cn_buf *out, const char *name, const char *type, const char *help)
{
    cn_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void append_label(struct cn_buf *out, const char *name, const char *value)
{
    cn_buf_printf(out, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            cn_buf_append_byte(out, '\\');
        if (*value == '\n')
            cn_buf_append_str(out, "\\n");
        else
            cn_buf_append_byte(out, (uint8_t)*value);
    }
    cn_buf_append_byte(out, '"');
}

/* One sample; `label` NULL: without labels. */
static void sample(struct cn_buf *out, const char *name, const char *label, const char *value,
                   uint64_t number)
{
    cn_buf_append_str(out, name);
    if (label) {
        cn_buf_append_byte(out, '{');
        append_label(out, label, value);
        cn_buf_append_byte(out, '}');
    }
    cn_buf_printf(out, " %" PRIu64 "\n", number);
}

static void single(struct cn_buf *out, const char *name, const char *type, const char *help,
                   uint64_t number)
{
    family(out, name, type, help);
    sample(out, name, NULL, NULL, number);
}

/* A histogram as numbers, perhaps added up over lanes. */
struct sums {
    uint64_t ranges[CN_HISTOGRAM_BOUNDS + 1];
    uint64_t sum;
};

static void add_histogram(struct sums *sums, const struct cn_histogram *histogram)
{
    for (size_t i = 0; i <= CN_HISTOGRAM_BOUNDS; i++)
        sums->ranges[i] += cn_counter_get(&histogram->ranges[i]);
    sums->sum += cn_counter_get(&histogram->sum);
}

/* `scale` turns what was counted into the unit: 1e-6 for microseconds. */
static void histogram(struct cn_buf *out, const char *name, const char *label, const char *value,
                      const struct sums *sums, const uint64_t bounds[CN_HISTOGRAM_BOUNDS],
                      double scale)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= CN_HISTOGRAM_BOUNDS; i++) {
        count += sums->ranges[i];
        cn_buf_printf(out, "%s_bucket{", name);
        if (label) {
            append_label(out, label, value);
            cn_buf_append_byte(out, ',');
        }
        if (i < CN_HISTOGRAM_BOUNDS)
            cn_buf_printf(out, "le=\"%g\"} %" PRIu64 "\n", (double)bounds[i] * scale, count);
        else
            cn_buf_printf(out, "le=\"+Inf\"} %" PRIu64 "\n", count);
    }
    for (int i = 0; i < 2; i++) {
        cn_buf_printf(out, "%s_%s", name, i ? "count" : "sum");
        if (label) {
            cn_buf_append_byte(out, '{');
            append_label(out, label, value);
            cn_buf_append_byte(out, '}');
        }
        if (i)
            cn_buf_printf(out, " %" PRIu64 "\n", count);
        else
            cn_buf_printf(out, " %.17g\n", (double)sums->sum * scale);
    }
}

/* --- the process ----------------------------------------------------------------------------- */

static void append_process(struct cn_buf *out)
{
    struct rusage usage;
    size_t resident = 0;
    family(out, "cairn_build_info", "gauge", "The running version.");
    sample(out, "cairn_build_info", "version", CN_VERSION, 1);
    (void)getrusage(RUSAGE_SELF, &usage); /* cannot fail with these arguments */
    (void)uv_resident_set_memory(&resident);
    family(out, "cairn_process_cpu_seconds_total", "counter", "CPU time of the process.");
    cn_buf_printf(out, "cairn_process_cpu_seconds_total %.6f\n",
                  (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    single(out, "cairn_process_resident_memory_bytes", "gauge", "Resident memory.", resident);
}

/* --- lanes and workers ----------------------------------------------------------------------- */

static void append_lane_family(struct cn_buf *out, const struct cn_server *server, const char *name,
                               const char *type, const char *help, size_t offset)
{
    family(out, name, type, help);
    for (unsigned i = 0; i < cn_server_lane_count(server); i++) {
        char lane[16];
        snprintf(lane, sizeof(lane), "%u", i);
        const char *metrics = (const char *)cn_server_metrics(server, i);
        sample(out, name, "lane", lane,
               cn_counter_get((const struct cn_counter *)(metrics + offset)));
    }
}

static void append_lanes(struct cn_buf *out, const struct cn_server *server)
{
#define AT(member) offsetof(struct cn_lane_metrics, member)
    static const struct {
        const char *name, *type, *help;
        size_t offset;
    } families[] = {
        {"cairn_lane_heap_bytes", "gauge", "JavaScript heap.", AT(heap_bytes)},
        {"cairn_lane_turns_total", "counter", "Entries into JavaScript.", AT(turns)},
        {"cairn_lane_events", "gauge", "Events under way, waitUntil() included.", AT(events)},
        {"cairn_lane_objects", "gauge", "Objects in memory.", AT(objects)},
        {"cairn_connections_open", "gauge", "Connections of clients.", AT(connections)},
        {"cairn_requests_in_flight", "gauge", "Requests without a complete answer.", AT(busy)},
        {"cairn_connections_accepted_total", "counter", "Connections accepted.", AT(accepted)},
        {"cairn_connections_rejected_total", "counter", "Connections over the limit.",
         AT(rejected)},
        {"cairn_bad_requests_total", "counter", "Requests that broke the protocol or a limit.",
         AT(bad_requests)},
        {"cairn_requests_aborted_total", "counter", "Clients that left before the answer.",
         AT(aborted)},
    };
#undef AT
    for (size_t i = 0; i < CN_ARRAY_COUNT(families); i++)
        append_lane_family(out, server, families[i].name, families[i].type, families[i].help,
                           families[i].offset);
    family(out, "cairn_refusals_total", "counter", "Requests refused before a worker saw them.");
    for (size_t reason = 0; reason < CN_REFUSAL_COUNT; reason++) {
        uint64_t count = 0;
        for (unsigned i = 0; i < cn_server_lane_count(server); i++)
            count += cn_counter_get(&cn_server_metrics(server, i)->refusals[reason]);
        sample(out, "cairn_refusals_total", "reason", cn_refusal_names[reason], count);
    }
}

/* A worker's numbers over all lanes. */
struct worker_sums {
    const char *name; /* the first lane's that has it */
    uint64_t statuses[6], exceptions, limits;
    struct sums latency;
};

static struct worker_sums *find_worker(struct worker_sums **all, size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp((*all)[i].name, name) == 0)
            return &(*all)[i];
    }
    *all = cn_realloc(*all, (*count + 1) * sizeof(**all));
    (*all)[*count] = (struct worker_sums){.name = name};
    return &(*all)[(*count)++];
}

static void append_workers(struct cn_buf *out, const struct cn_server *server)
{
    static const char *const statuses[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
    struct worker_sums *all = NULL;
    size_t count = 0;
    for (unsigned lane = 0; lane < cn_server_lane_count(server); lane++) {
        const struct cn_worker_metrics *worker =
            atomic_load(&cn_server_metrics(server, lane)->workers);
        for (; worker; worker = worker->next) {
            struct worker_sums *sums = find_worker(&all, &count, worker->worker);
            for (size_t i = 0; i < CN_ARRAY_COUNT(statuses); i++)
                sums->statuses[i] += cn_counter_get(&worker->statuses[i]);
            sums->exceptions += cn_counter_get(&worker->exceptions);
            sums->limits += cn_counter_get(&worker->limits);
            add_histogram(&sums->latency, &worker->latency);
        }
    }
    family(out, "cairn_requests_total", "counter", "Answered requests by class of status.");
    for (size_t w = 0; w < count; w++) {
        for (size_t i = 0; i < CN_ARRAY_COUNT(statuses); i++) {
            cn_buf_append_str(out, "cairn_requests_total{");
            append_label(out, "worker", all[w].name);
            cn_buf_printf(out, ",status=\"%s\"} %" PRIu64 "\n", statuses[i], all[w].statuses[i]);
        }
    }
    family(out, "cairn_worker_exceptions_total", "counter", "Requests whose handler threw.");
    for (size_t w = 0; w < count; w++)
        sample(out, "cairn_worker_exceptions_total", "worker", all[w].name, all[w].exceptions);
    family(out, "cairn_worker_limits_total", "counter", "Requests ended for CPU time or memory.");
    for (size_t w = 0; w < count; w++)
        sample(out, "cairn_worker_limits_total", "worker", all[w].name, all[w].limits);
    family(out, "cairn_request_duration_seconds", "histogram",
           "From a request's head to the end of its answer.");
    for (size_t w = 0; w < count; w++)
        histogram(out, "cairn_request_duration_seconds", "worker", all[w].name, &all[w].latency,
                  cn_histogram_us, 1e-6);
    cn_free(all);
}

/* --- objects --------------------------------------------------------------------------------- */

/* The counters of object/metrics.h, in this order. */
enum { CALLS, FAILURES, OVERLOADED, STARTED, EVICTED, RESETS, ALARMS, ALARM_FAILURES, GIVEN_UP };

static const struct {
    const char *name, *help;
    size_t offset;
} object_families[] = {
    [CALLS] = {"cairn_object_calls_total", "Calls answered by objects.",
               offsetof(struct cn_object_metrics, calls)},
    [FAILURES] = {"cairn_object_call_failures_total", "... with an error.",
                  offsetof(struct cn_object_metrics, failures)},
    [OVERLOADED] = {"cairn_object_overloaded_total", "Calls refused because a bound was reached.",
                    offsetof(struct cn_object_metrics, overloaded)},
    [STARTED] = {"cairn_objects_started_total", "Instances started.",
                 offsetof(struct cn_object_metrics, started)},
    [EVICTED] = {"cairn_objects_evicted_total", "Instances that left memory.",
                 offsetof(struct cn_object_metrics, evicted)},
    [RESETS] = {"cairn_objects_reset_total", "Instances that were reset.",
                offsetof(struct cn_object_metrics, resets)},
    [ALARMS] = {"cairn_alarms_fired_total", "Alarms handed to objects, retries included.",
                offsetof(struct cn_object_metrics, alarms)},
    [ALARM_FAILURES] = {"cairn_alarms_failed_total", "Runs of alarm() that failed.",
                        offsetof(struct cn_object_metrics, alarm_failures)},
    [GIVEN_UP] = {"cairn_alarms_given_up_total", "Alarms dropped after their last retry.",
                  offsetof(struct cn_object_metrics, alarms_given_up)},
};

struct namespace_sums {
    char *name; /* owned */
    uint64_t counters[CN_ARRAY_COUNT(object_families)];
    struct sums latency, lateness;
};

struct namespaces {
    struct namespace_sums *items; /* owned */
    size_t count;
    unsigned lane_count;
};

static void add_namespace(void *data, const struct cn_namespace *ns)
{
    struct namespaces *all = data;
    all->items = cn_realloc(all->items, (all->count + 1) * sizeof(*all->items));
    struct namespace_sums *sums = &all->items[all->count++];
    *sums = (struct namespace_sums){.name = cn_strdup(ns->name)};
    for (unsigned lane = 0; lane < all->lane_count; lane++) {
        const struct cn_object_metrics *metrics = &ns->metrics[lane];
        for (size_t i = 0; i < CN_ARRAY_COUNT(object_families); i++)
            sums->counters[i] += cn_counter_get(
                (const struct cn_counter *)((const char *)metrics + object_families[i].offset));
        add_histogram(&sums->latency, &metrics->latency);
        add_histogram(&sums->lateness, &metrics->alarm_lateness);
    }
}

static void append_objects(struct cn_buf *out, struct cn_node *node)
{
    struct namespaces all = {.lane_count = cn_node_lane_count(node)};
    cn_node_each_namespace(node, add_namespace, &all);
    for (size_t i = 0; i < CN_ARRAY_COUNT(object_families); i++) {
        family(out, object_families[i].name, "counter", object_families[i].help);
        for (size_t n = 0; n < all.count; n++)
            sample(out, object_families[i].name, "namespace", all.items[n].name,
                   all.items[n].counters[i]);
    }
    family(out, "cairn_object_call_duration_seconds", "histogram",
           "From a call's arrival at its object to the answer.");
    for (size_t n = 0; n < all.count; n++)
        histogram(out, "cairn_object_call_duration_seconds", "namespace", all.items[n].name,
                  &all.items[n].latency, cn_histogram_us, 1e-6);
    family(out, "cairn_alarm_lateness_seconds", "histogram", "From an alarm's time to its run.");
    for (size_t n = 0; n < all.count; n++)
        histogram(out, "cairn_alarm_lateness_seconds", "namespace", all.items[n].name,
                  &all.items[n].lateness, cn_histogram_us, 1e-6);
    for (size_t n = 0; n < all.count; n++)
        cn_free(all.items[n].name);
    cn_free(all.items);
}

/* --- the store ------------------------------------------------------------------------------- */

static void append_store(struct cn_buf *out, struct cn_store *store)
{
    struct cn_store_stats stats;
    struct sums flush = {0}, batch = {0};
    struct cn_err err;
    cn_store_stats(store, &stats);
    single(out, "cairn_store_writable", "gauge", "0 while writes are refused.",
           cn_store_status(store, &err) == 0);
    single(out, "cairn_log_commits_total", "counter", "The last commit's number.",
           stats.appended_lsn);
    single(out, "cairn_log_durable", "gauge", "The last durable commit's number.",
           stats.durable_lsn);
    single(out, "cairn_log_written_bytes_total", "counter", "Bytes appended to the log.",
           stats.log_bytes);
    single(out, "cairn_log_live_bytes", "gauge", "Log that a restart would read.",
           stats.log_live_bytes);
    single(out, "cairn_checkpoint_lag_commits", "gauge", "Commits behind the last checkpoint.",
           stats.appended_lsn + 1 - stats.redo_lsn); /* redo begins there */
    single(out, "cairn_checkpoints_total", "counter", "Checkpoints made.", stats.checkpoint_count);
    single(out, "cairn_store_dirty_pages", "gauge", "Committed pages not in their files yet.",
           stats.dirty_pages);
    single(out, "cairn_store_open_databases", "gauge", "Databases in use.", stats.open_databases);
    single(out, "cairn_store_open_files", "gauge", "Database files held open.", stats.open_files);
    const struct cn_log_metrics *log = cn_log_metrics(cn_store_log(store));
    add_histogram(&flush, &log->flush_us);
    add_histogram(&batch, &log->batch);
    family(out, "cairn_log_flush_duration_seconds", "histogram", "Writing and syncing the log.");
    histogram(out, "cairn_log_flush_duration_seconds", NULL, NULL, &flush, cn_histogram_us, 1e-6);
    family(out, "cairn_log_flush_commits", "histogram", "Commits that one flush made durable.");
    histogram(out, "cairn_log_flush_commits", NULL, NULL, &batch, cn_histogram_count, 1);
}

static void append_history(struct cn_buf *out, struct cn_history *history)
{
    struct cn_history_stats stats;
    cn_history_stats(history, &stats);
    single(out, "cairn_history_archives", "gauge", "Files of the past.", stats.archive_count);
    single(out, "cairn_history_bytes", "gauge", "Their size.", stats.archive_bytes);
    if (stats.oldest_lsn)
        single(out, "cairn_history_oldest_timestamp_seconds", "gauge",
               "Time of the oldest commit kept.", (uint64_t)(stats.oldest_ms / 1000));
}

static void append_points(struct cn_buf *out, struct cn_points *points)
{
    struct cn_points_stats stats;
    cn_points_stats(points, &stats);
    single(out, "cairn_analytics_points_total", "counter", "Data points written to disk.",
           stats.written);
    single(out, "cairn_analytics_points_sampled_total", "counter",
           "Not kept, but counted in the sample interval of another.", stats.sampled);
    single(out, "cairn_analytics_points_lost_total", "counter",
           "Lost: a buffer was full, or the disk refused.", stats.dropped);
}

void cn_metrics_append(const struct cn_metrics_sources *sources, struct cn_buf *out)
{
    append_process(out);
    if (sources->server) {
        append_workers(out, sources->server);
        append_lanes(out, sources->server);
    }
    if (sources->node)
        append_objects(out, sources->node);
    if (sources->store)
        append_store(out, sources->store);
    if (sources->history)
        append_history(out, sources->history);
    if (sources->points)
        append_points(out, sources->points);
}
