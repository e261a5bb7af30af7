/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/metrics.h"

#include "admin/otlp.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "base/account.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "module/counters.h"
#include "object/node.h"
#include "service/def.h"
#include "service/service.h"
#include "store/history.h"
#include "store/store.h"
#include "worker/metrics.h"

/* --- telling the sink ------------------------------------------------------------------------ */

static void family(struct cn_metrics_sink *sink, const char *name, enum cn_metric_type type,
                   const char *help)
{
    sink->family(sink, name, type, help);
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
static void sample_histogram(struct cn_metrics_sink *sink, const char *label, const char *name,
                             const struct sums *sums, const uint64_t bounds[CN_HISTOGRAM_BOUNDS],
                             double scale)
{
    struct cn_metric_value value = {.labels = {{label, name}},
                                    .real = true,
                                    .number = (double)sums->sum * scale,
                                    .ranges = sums->ranges};
    for (size_t i = 0; i < CN_HISTOGRAM_BOUNDS; i++)
        value.bounds[i] = (double)bounds[i] * scale;
    sink->value(sink, &value);
}

static void histogram_us(struct cn_metrics_sink *sink, const char *label, const char *name,
                         const struct sums *sums)
{
    sample_histogram(sink, label, name, sums, cn_histogram_us, 1e-6);
}

static double ticks_seconds(uint64_t ticks)
{
    return (double)cn_clock_ticks_ns(ticks) * 1e-9;
}

/* --- the process ----------------------------------------------------------------------------- */

static void sample_patch(void *data, const char *patch, bool on)
{
    cn_metrics_sample(data, "patch", patch, on);
}

static void read_process(struct cn_metrics_sink *sink)
{
    struct rusage usage;
    size_t resident = 0;
    family(sink, "cairn_build_info", CN_METRIC_GAUGE, "The running version.");
    cn_metrics_sample(sink, "version", CN_VERSION, 1);
    (void)getrusage(RUSAGE_SELF, &usage); /* cannot fail with these arguments */
    (void)uv_resident_set_memory(&resident);
    family(sink, "cairn_process_cpu_seconds_total", CN_METRIC_COUNTER, "CPU time of the process.");
    cn_metrics_sample_real(sink, NULL, NULL,
                           (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    cn_metrics_single(sink, "cairn_process_resident_memory_bytes", CN_METRIC_GAUGE,
                      "Resident memory.", resident);
    family(sink, "cairn_engine_patch", CN_METRIC_GAUGE,
           "Whether a patch of the JavaScript engine is in use, or not needed.");
    cn_worker_each_patch(sample_patch, sink);
}

/* The account (base/account.h). */
static void read_account(struct cn_metrics_sink *sink)
{
    family(sink, "cairn_memory_bytes", CN_METRIC_GAUGE, "Memory of the process by kind.");
    for (unsigned i = 0; i < CN_ACCOUNT_KIND_COUNT; i++)
        cn_metrics_sample(sink, "kind", cn_account_kind_names[i], cn_account_kind_bytes(i));
    cn_metrics_sample(sink, "kind", "other", cn_account_other_bytes());
    cn_metrics_single(sink, "cairn_memory_used_bytes", CN_METRIC_GAUGE,
                      "Memory of the process that is its own.", cn_account_used());
    cn_metrics_single(sink, "cairn_memory_limit_bytes", CN_METRIC_GAUGE,
                      "What it may have; 0: any.", cn_account_limit());
    cn_metrics_single(sink, "cairn_memory_level", CN_METRIC_GAUGE,
                      "How short memory is: 0 calm, to 6, when the largest is reset.",
                      cn_account_level());
    family(sink, "cairn_memory_relief_total", CN_METRIC_COUNTER,
           "What gave way for want of memory, by step.");
    for (unsigned i = CN_ACCOUNT_CALM + 1; i < CN_ACCOUNT_LEVEL_COUNT; i++)
        cn_metrics_sample(sink, "step", cn_account_level_names[i], cn_account_relief_count(i));
}

/* --- lanes and workers ----------------------------------------------------------------------- */

static void read_lane_family(struct cn_metrics_sink *sink, const struct cn_metrics_sources *sources,
                             size_t offset)
{
    const struct cn_lane_metrics *metrics;
    for (unsigned i = 0; (metrics = sources->lane(sources->server, i)); i++) {
        char lane[16];
        snprintf(lane, sizeof(lane), "%u", i);
        const char *counter = (const char *)metrics + offset;
        cn_metrics_sample(sink, "lane", lane, cn_counter_get((const struct cn_counter *)counter));
    }
}

static void read_lanes(struct cn_metrics_sink *sink, const struct cn_metrics_sources *sources)
{
#define AT(member) offsetof(struct cn_lane_metrics, member)
    static const struct {
        const char *name;
        enum cn_metric_type type;
        const char *help;
        size_t offset;
    } families[] = {
        {"cairn_lane_heap_bytes", CN_METRIC_GAUGE, "JavaScript heap in use.", AT(heap_bytes)},
        {"cairn_lane_heap_capacity_bytes", CN_METRIC_GAUGE, "JavaScript heap held.",
         AT(heap_capacity)},
        {"cairn_lane_turns_total", CN_METRIC_COUNTER, "Entries into JavaScript.", AT(turns)},
        {"cairn_lane_events", CN_METRIC_GAUGE, "Events under way, waitUntil() included.",
         AT(events)},
        {"cairn_lane_objects", CN_METRIC_GAUGE, "Objects in memory.", AT(objects)},
        {"cairn_connections_open", CN_METRIC_GAUGE, "Connections of clients.", AT(connections)},
        {"cairn_requests_in_flight", CN_METRIC_GAUGE, "Requests without a complete answer.",
         AT(busy)},
        {"cairn_connections_accepted_total", CN_METRIC_COUNTER, "Connections accepted.",
         AT(accepted)},
        {"cairn_connections_rejected_total", CN_METRIC_COUNTER, "Connections over the limit.",
         AT(rejected)},
        {"cairn_bad_requests_total", CN_METRIC_COUNTER,
         "Requests that broke the protocol or a limit.", AT(bad_requests)},
        {"cairn_requests_aborted_total", CN_METRIC_COUNTER, "Clients that left before the answer.",
         AT(aborted)},
        {"cairn_websockets_open", CN_METRIC_GAUGE, "WebSocket connections.", AT(websockets)},
        {"cairn_object_sockets", CN_METRIC_GAUGE, "WebSockets that belong to objects.",
         AT(sockets)},
        {"cairn_object_sockets_hibernated", CN_METRIC_GAUGE, "... whose object is not in memory.",
         AT(hibernated)},
        {"cairn_alarms_running", CN_METRIC_GAUGE, "Alarms under way.", AT(alarms_running)},
        {"cairn_alarms_due", CN_METRIC_GAUGE, "Alarms whose time has come and that wait.",
         AT(alarms_due)},
        {"cairn_tail_events_total", CN_METRIC_COUNTER, "Invocations told to tail consumers.",
         AT(tail_events)},
        {"cairn_tail_events_dropped_total", CN_METRIC_COUNTER,
         "... not told: a consumer was too slow.", AT(tail_dropped)},
        {"cairn_tail_failures_total", CN_METRIC_COUNTER, "Runs of tail() that failed.",
         AT(tail_failures)},
    };
#undef AT
    for (size_t i = 0; i < CN_ARRAY_COUNT(families); i++) {
        family(sink, families[i].name, families[i].type, families[i].help);
        read_lane_family(sink, sources, families[i].offset);
    }
    family(sink, "cairn_refusals_total", CN_METRIC_COUNTER,
           "Requests refused before a worker saw them.");
    for (size_t reason = 0; reason < CN_REFUSAL_COUNT; reason++) {
        uint64_t count = 0;
        const struct cn_lane_metrics *metrics;
        for (unsigned i = 0; (metrics = sources->lane(sources->server, i)); i++)
            count += cn_counter_get(&metrics->refusals[reason]);
        cn_metrics_sample(sink, "reason", cn_refusal_names[reason], count);
    }
}

static const char *const status_names[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

/* A worker's numbers over all lanes. */
struct worker_sums {
    const char *name; /* the first lane's that has it */
    uint64_t statuses[CN_ARRAY_COUNT(status_names)], exceptions, limits, ticks, memory, failed;
    struct sums latency;
};

struct workers {
    struct worker_sums *items; /* owned */
    size_t count;
};

static struct worker_sums *find_worker(struct workers *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->items[i].name, name) == 0)
            return &all->items[i];
    }
    all->items = cn_realloc(all->items, (all->count + 1) * sizeof(*all->items));
    all->items[all->count] = (struct worker_sums){.name = name};
    return &all->items[all->count++];
}

static void add_worker(struct worker_sums *sums, const struct cn_worker_metrics *worker)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(status_names); i++)
        sums->statuses[i] += cn_counter_get(&worker->statuses[i]);
    sums->exceptions += cn_counter_get(&worker->exceptions);
    sums->limits += cn_counter_get(&worker->limits);
    sums->ticks += cn_counter_get(&worker->ticks);
    sums->memory += cn_counter_get(&worker->memory);
    if (sums->failed < cn_counter_get(&worker->failed))
        sums->failed = cn_counter_get(&worker->failed);
    add_histogram(&sums->latency, &worker->latency);
}

static void read_workers(struct cn_metrics_sink *sink, const struct cn_metrics_sources *sources)
{
    struct workers all = {0};
    const struct cn_lane_metrics *metrics;
    for (unsigned lane = 0; (metrics = sources->lane(sources->server, lane)); lane++) {
        const struct cn_worker_metrics *worker = atomic_load(&metrics->workers);
        for (; worker; worker = worker->next)
            add_worker(find_worker(&all, worker->worker), worker);
    }
    family(sink, "cairn_requests_total", CN_METRIC_COUNTER,
           "Answered requests by class of status.");
    for (size_t w = 0; w < all.count; w++) {
        for (size_t i = 0; i < CN_ARRAY_COUNT(status_names); i++)
            sink->value(sink, &(struct cn_metric_value){.labels = {{"worker", all.items[w].name},
                                                                   {"status", status_names[i]}},
                                                        .integer = all.items[w].statuses[i]});
    }
    family(sink, "cairn_worker_exceptions_total", CN_METRIC_COUNTER,
           "Requests whose handler threw.");
    for (size_t w = 0; w < all.count; w++)
        cn_metrics_sample(sink, "worker", all.items[w].name, all.items[w].exceptions);
    family(sink, "cairn_worker_limits_total", CN_METRIC_COUNTER,
           "Requests ended for CPU time or memory.");
    for (size_t w = 0; w < all.count; w++)
        cn_metrics_sample(sink, "worker", all.items[w].name, all.items[w].limits);
    family(sink, "cairn_worker_cpu_seconds_total", CN_METRIC_COUNTER,
           "Time in JavaScript, that of its objects included.");
    for (size_t w = 0; w < all.count; w++)
        cn_metrics_sample_real(sink, "worker", all.items[w].name,
                               ticks_seconds(all.items[w].ticks));
    family(sink, "cairn_worker_memory_bytes", CN_METRIC_GAUGE,
           "Memory that it and its objects hold in JavaScript.");
    for (size_t w = 0; w < all.count; w++)
        cn_metrics_sample(sink, "worker", all.items[w].name, all.items[w].memory);
    family(sink, "cairn_worker_failed", CN_METRIC_GAUGE,
           "Versions of it that should serve and do not: damaged, or they did not start.");
    for (size_t w = 0; w < all.count; w++)
        cn_metrics_sample(sink, "worker", all.items[w].name, all.items[w].failed);
    family(sink, "cairn_request_duration_seconds", CN_METRIC_HISTOGRAM,
           "From a request's head to the end of its answer.");
    for (size_t w = 0; w < all.count; w++)
        histogram_us(sink, "worker", all.items[w].name, &all.items[w].latency);
    cn_free(all.items);
}

/* --- objects --------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct cn_object_metrics, member)
static const struct {
    const char *name;
    enum cn_metric_type type;
    const char *help;
    size_t offset;
} object_families[] = {
    {"cairn_object_calls_total", CN_METRIC_COUNTER, "Calls answered by objects.", AT(calls)},
    {"cairn_object_call_failures_total", CN_METRIC_COUNTER, "... with an error.", AT(failures)},
    {"cairn_object_overloaded_total", CN_METRIC_COUNTER,
     "Calls refused because a bound was reached.", AT(overloaded)},
    {"cairn_objects_held_total", CN_METRIC_COUNTER,
     "Times that an object waited because the disk did not keep up with its writes.", AT(held)},
    {"cairn_objects_live", CN_METRIC_GAUGE, "Instances in memory.", AT(live)},
    {"cairn_objects_started_total", CN_METRIC_COUNTER, "Instances started.", AT(started)},
    {"cairn_objects_evicted_total", CN_METRIC_COUNTER, "Instances that left memory.", AT(evicted)},
    {"cairn_objects_reset_total", CN_METRIC_COUNTER, "Instances that were reset.", AT(resets)},
    {"cairn_alarms_fired_total", CN_METRIC_COUNTER, "Alarms handed to objects, retries included.",
     AT(alarms)},
    {"cairn_alarms_failed_total", CN_METRIC_COUNTER, "Runs of alarm() that failed.",
     AT(alarm_failures)},
    {"cairn_alarms_given_up_total", CN_METRIC_COUNTER, "Alarms dropped after their last retry.",
     AT(alarms_given_up)},
};
#undef AT

struct namespace_sums {
    char *name; /* owned */
    uint64_t counters[CN_ARRAY_COUNT(object_families)];
    uint64_t ops[CN_OBJECT_OPS];
    uint64_t ticks;
    struct sums latency, lateness;
};

struct namespaces {
    struct namespace_sums *items; /* owned */
    size_t count;
    unsigned lane_count;
};

static void add_lane(struct namespace_sums *sums, const struct cn_object_metrics *metrics)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(object_families); i++)
        sums->counters[i] += cn_counter_get(
            (const struct cn_counter *)((const char *)metrics + object_families[i].offset));
    for (size_t i = 0; i < CN_OBJECT_OPS; i++)
        sums->ops[i] += cn_counter_get(&metrics->ops[i]);
    sums->ticks += cn_counter_get(&metrics->ticks);
    add_histogram(&sums->latency, &metrics->latency);
    add_histogram(&sums->lateness, &metrics->alarm_lateness);
}

static void add_namespace(void *data, const struct cn_namespace *ns)
{
    struct namespaces *all = data;
    all->items = cn_realloc(all->items, (all->count + 1) * sizeof(*all->items));
    struct namespace_sums *sums = &all->items[all->count++];
    *sums = (struct namespace_sums){.name = cn_strdup(ns->name)};
    for (unsigned lane = 0; lane < all->lane_count; lane++)
        add_lane(sums, &ns->metrics[lane]);
}

static void read_operations(struct cn_metrics_sink *sink, const struct namespaces *all)
{
    family(sink, "cairn_service_operations_total", CN_METRIC_COUNTER,
           "Operations on KV, D1, R2, queues and the like, from caches or not.");
    for (size_t n = 0; n < all->count; n++) {
        const struct cn_service_def *def = cn_service_of(all->items[n].name);
        for (unsigned op = 0; def && op < CN_OBJECT_OPS && def->operations[op]; op++)
            sink->value(sink, &(struct cn_metric_value){
                                  .labels = {{"service", def->name},
                                             {"name", strchr(all->items[n].name, '/') + 1},
                                             {"operation", def->operations[op]}},
                                  .integer = all->items[n].ops[op]});
    }
}

static void read_objects(struct cn_metrics_sink *sink, struct cn_node *node)
{
    struct namespaces all = {.lane_count = cn_node_lane_count(node)};
    cn_node_each_namespace(node, add_namespace, &all);
    for (size_t i = 0; i < CN_ARRAY_COUNT(object_families); i++) {
        family(sink, object_families[i].name, object_families[i].type, object_families[i].help);
        for (size_t n = 0; n < all.count; n++)
            cn_metrics_sample(sink, "namespace", all.items[n].name, all.items[n].counters[i]);
    }
    family(sink, "cairn_object_cpu_seconds_total", CN_METRIC_COUNTER,
           "Time in turns of objects, SQL and commits included.");
    for (size_t n = 0; n < all.count; n++)
        cn_metrics_sample_real(sink, "namespace", all.items[n].name,
                               ticks_seconds(all.items[n].ticks));
    family(sink, "cairn_object_call_duration_seconds", CN_METRIC_HISTOGRAM,
           "From a call's arrival at its object to the answer.");
    for (size_t n = 0; n < all.count; n++)
        histogram_us(sink, "namespace", all.items[n].name, &all.items[n].latency);
    family(sink, "cairn_alarm_lateness_seconds", CN_METRIC_HISTOGRAM,
           "From an alarm's time to its run.");
    for (size_t n = 0; n < all.count; n++)
        histogram_us(sink, "namespace", all.items[n].name, &all.items[n].lateness);
    read_operations(sink, &all);
    for (size_t n = 0; n < all.count; n++)
        cn_free(all.items[n].name);
    cn_free(all.items);
}

/* --- caches ---------------------------------------------------------------------------------- */

/* The caches of services. */
static void read_caches(struct cn_metrics_sink *sink, const struct cn_metrics_sources *sources)
{
#define AT(member) offsetof(struct cn_service_cache, member)
    static const struct {
        const char *name;
        enum cn_metric_type type;
        const char *help;
        size_t offset;
    } families[] = {
        {"cairn_cache_hits_total", CN_METRIC_COUNTER, "Found in a cache: of responses, of values.",
         AT(hits)},
        {"cairn_cache_misses_total", CN_METRIC_COUNTER, "Not found.", AT(misses)},
        {"cairn_cache_entries", CN_METRIC_GAUGE, "Entries kept.", AT(entries)},
        {"cairn_cache_memory_bytes", CN_METRIC_GAUGE, "Memory they take.", AT(bytes)},
    };
#undef AT
    struct cn_service_cache caches[CN_SERVICE_MAX];
    size_t count = 0;
    for (size_t i = 0; cn_service_table[i]; i++) {
        if (cn_service_table[i]->cache)
            cn_service_table[i]->cache(sources, &caches[count++]);
    }
    for (size_t i = 0; i < CN_ARRAY_COUNT(families); i++) {
        family(sink, families[i].name, families[i].type, families[i].help);
        for (size_t k = 0; k < count; k++)
            cn_metrics_sample(sink, "cache", caches[k].name,
                              *(const uint64_t *)((const char *)&caches[k] + families[i].offset));
    }
}

/* --- the store ------------------------------------------------------------------------------- */

static void tell_counter(void *data, const char *worker, const char *name, uint64_t number)
{
    struct cn_metrics_sink *sink = data;
    sink->value(sink, &(struct cn_metric_value){.labels = {{"worker", worker}, {"name", name}},
                                                .integer = number});
}

static void read_counters(struct cn_metrics_sink *sink)
{
    family(sink, "cairn_module_count_total", CN_METRIC_COUNTER,
           "What objects and workers in C have counted.");
    cn_counters_each(tell_counter, sink);
}

/* The stores of all open shards together. */
struct store_sums {
    struct cn_store_stats stats;
    uint64_t lag;
    bool writable;
    struct sums flush, batch;
};

static void add_store(struct store_sums *sums, struct cn_store *store)
{
    struct cn_store_stats one, *all = &sums->stats;
    struct cn_err err;
    cn_store_stats(store, &one);
    all->appended_lsn += one.appended_lsn;
    all->durable_lsn += one.durable_lsn;
    all->log_bytes += one.log_bytes;
    all->log_live_bytes += one.log_live_bytes;
    all->checkpoint_count += one.checkpoint_count;
    all->dirty_pages += one.dirty_pages;
    all->open_databases += one.open_databases;
    all->open_files += one.open_files;
    sums->lag += one.appended_lsn + 1 - one.redo_lsn; /* redo begins there */
    sums->writable &= cn_store_status(store, &err) == 0;
    const struct cn_log_metrics *log = cn_log_metrics(cn_store_log(store));
    add_histogram(&sums->flush, &log->flush_us);
    add_histogram(&sums->batch, &log->batch);
}

static void read_stores(struct cn_metrics_sink *sink, struct cn_shards *shards)
{
    struct store_sums sums = {.writable = true};
    for (unsigned i = 0; i < cn_shards_count(shards); i++) {
        struct cn_shard *shard = cn_shards_hold_index(shards, i);
        if (!shard)
            continue;
        add_store(&sums, shard->store);
        cn_shard_release(shard);
    }
    const struct cn_store_stats stats = sums.stats;
    const struct {
        const char *name;
        enum cn_metric_type type;
        const char *help;
        uint64_t value;
    } families[] = {
        {"cairn_store_writable", CN_METRIC_GAUGE, "0 while writes are refused.", sums.writable},
        {"cairn_log_commits_total", CN_METRIC_COUNTER, "The last commit's number.",
         stats.appended_lsn},
        {"cairn_log_durable", CN_METRIC_GAUGE, "The last durable commit's number.",
         stats.durable_lsn},
        {"cairn_log_written_bytes_total", CN_METRIC_COUNTER, "Bytes appended to the log.",
         stats.log_bytes},
        {"cairn_log_live_bytes", CN_METRIC_GAUGE, "Log that a restart would read.",
         stats.log_live_bytes},
        {"cairn_checkpoint_lag_commits", CN_METRIC_GAUGE, "Commits behind the last checkpoint.",
         sums.lag},
        {"cairn_checkpoints_total", CN_METRIC_COUNTER, "Checkpoints made.", stats.checkpoint_count},
        {"cairn_store_dirty_pages", CN_METRIC_GAUGE, "Committed pages not in their files yet.",
         stats.dirty_pages},
        {"cairn_store_open_databases", CN_METRIC_GAUGE, "Databases in use.", stats.open_databases},
        {"cairn_store_open_files", CN_METRIC_GAUGE, "Database files held open.", stats.open_files},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(families); i++)
        cn_metrics_single(sink, families[i].name, families[i].type, families[i].help,
                          families[i].value);
    family(sink, "cairn_log_flush_duration_seconds", CN_METRIC_HISTOGRAM,
           "Writing and syncing the log.");
    histogram_us(sink, NULL, NULL, &sums.flush);
    family(sink, "cairn_log_flush_commits", CN_METRIC_HISTOGRAM,
           "Commits that one flush made durable.");
    sample_histogram(sink, NULL, NULL, &sums.batch, cn_histogram_count, 1);
}

static void read_history(struct cn_metrics_sink *sink, struct cn_shards *shards)
{
    struct cn_history_stats stats = {0};
    bool kept = false;
    for (unsigned i = 0; i < cn_shards_count(shards); i++) {
        struct cn_shard *shard = cn_shards_hold_index(shards, i);
        struct cn_history_stats one = {0};
        if (!shard)
            continue;
        if (shard->history)
            cn_history_stats(shard->history, &one);
        kept |= shard->history != NULL;
        cn_shard_release(shard);
        stats.archive_count += one.archive_count;
        stats.archive_bytes += one.archive_bytes;
        if (one.oldest_lsn && (!stats.oldest_lsn || one.oldest_ms < stats.oldest_ms)) {
            stats.oldest_lsn = one.oldest_lsn;
            stats.oldest_ms = one.oldest_ms;
        }
    }
    if (!kept)
        return;
    cn_metrics_single(sink, "cairn_history_archives", CN_METRIC_GAUGE, "Files of the past.",
                      stats.archive_count);
    cn_metrics_single(sink, "cairn_history_bytes", CN_METRIC_GAUGE, "Their size.",
                      stats.archive_bytes);
    if (stats.oldest_lsn)
        cn_metrics_single(sink, "cairn_history_oldest_timestamp_seconds", CN_METRIC_GAUGE,
                          "Time of the oldest commit kept.", (uint64_t)(stats.oldest_ms / 1000));
}

static void read_otlp(struct cn_metrics_sink *sink, struct cn_otlp *otlp)
{
    struct cn_otlp_stats stats;
    cn_otlp_stats(otlp, &stats);
    const struct {
        const char *name, *help;
        const uint64_t *numbers;
    } families[] = {
        {"cairn_otlp_sent_total", "Spans, log records and data points that a collector took.",
         stats.sent},
        {"cairn_otlp_dropped_total", "... that were dropped.", stats.dropped},
        {"cairn_otlp_failures_total", "Requests to the collector that failed.", stats.failures},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(families); i++) {
        family(sink, families[i].name, CN_METRIC_COUNTER, families[i].help);
        for (size_t k = 0; k < CN_OTLP_SIGNALS; k++)
            cn_metrics_sample(sink, "signal", cn_otlp_signal_names[k], families[i].numbers[k]);
    }
}

void cn_metrics_read(const struct cn_metrics_sources *sources, struct cn_metrics_sink *sink)
{
    read_process(sink);
    if (sources->server) {
        read_workers(sink, sources);
        read_account(sink);
        read_lanes(sink, sources);
    }
    if (sources->node) {
        read_objects(sink, sources->node);
        read_caches(sink, sources);
    }
    for (size_t i = 0; cn_service_table[i]; i++) {
        if (cn_service_table[i]->metrics)
            cn_service_table[i]->metrics(sink, sources);
    }
    read_counters(sink);
    if (sources->shards) {
        read_stores(sink, sources->shards);
        read_history(sink, sources->shards);
    }
    read_otlp(sink, sources->otlp);
    if (sources->more)
        sources->more(sources->more_data, sink);
}
