/* SPDX-License-Identifier: Apache-2.0 */
/* Every counter of the process: told once, under names and labels that a collector takes, added up
 * over lanes. A server of two lanes is this file's. */
#include "admin/metrics.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "store/history.h"
#include "test/unit/object/counter.h"
#include "worker/metrics.h"

/* --- two lanes -----------------------------------------------------------------------------------
 */

static struct cn_lane_metrics lanes[2];
static struct cn_worker_metrics workers[3];

static const struct cn_lane_metrics *lane_metrics(const struct cn_server *server, unsigned lane)
{
    CHECK(server == (const struct cn_server *)&lanes);
    return lane < 2 ? &lanes[lane] : NULL;
}

/* --- a sink that remembers
 * ------------------------------------------------------------------------ */

struct memory {
    struct cn_metrics_sink sink;
    struct cn_map families, values; /* by name; by "name label=value ..." */
    char family[128];
    enum cn_metric_type type;
    unsigned family_count, value_count;
};

struct told {
    double number;
    uint64_t ranges[CN_HISTOGRAM_BOUNDS + 1];
    double bounds[CN_HISTOGRAM_BOUNDS];
};

static bool is_name(const char *text)
{
    for (const char *at = text; *at; at++)
        if (!islower((unsigned char)*at) && !isdigit((unsigned char)*at) && *at != '_')
            return false;
    return *text && !isdigit((unsigned char)*text);
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

static void on_family(struct cn_metrics_sink *sink, const char *name, enum cn_metric_type type,
                      const char *help)
{
    struct memory *memory = (struct memory *)sink;
    CHECK(is_name(name) && strncmp(name, "cairn_", 6) == 0);
    CHECK(help && *help && !strchr(help, '\n'));
    if (cn_map_set(&memory->families, name, strlen(name), memory))
        test_fail(__FILE__, __LINE__, "%s is told twice", name);
    /* Names say what they are, as collectors expect it. */
    if ((type == CN_METRIC_COUNTER) != ends_with(name, "_total"))
        test_fail(__FILE__, __LINE__, "%s: type %d", name, type);
    snprintf(memory->family, sizeof(memory->family), "%s", name);
    memory->type = type;
    memory->family_count++;
}

static void on_value(struct cn_metrics_sink *sink, const struct cn_metric_value *value)
{
    struct memory *memory = (struct memory *)sink;
    char key[512];
    int at = snprintf(key, sizeof(key), "%s", memory->family);
    CHECK(at > 0);
    bool ended = false;
    for (size_t i = 0; i < CN_METRIC_LABELS; i++) {
        ended = ended || !value->labels[i].name;
        CHECK(!ended || !value->labels[i].name); /* those that there are, first */
        if (ended)
            continue;
        CHECK(is_name(value->labels[i].name) && value->labels[i].value);
        at += snprintf(key + at, sizeof(key) - (size_t)at, " %s=%s", value->labels[i].name,
                       value->labels[i].value);
    }
    CHECK((memory->type == CN_METRIC_HISTOGRAM) == (value->ranges != NULL));
    struct told *told = CN_NEW(struct told);
    told->number = value->real ? value->number : (double)value->integer;
    if (value->ranges) {
        memcpy(told->ranges, value->ranges, sizeof(told->ranges));
        memcpy(told->bounds, value->bounds, sizeof(told->bounds));
        for (size_t i = 1; i < CN_HISTOGRAM_BOUNDS; i++)
            CHECK(told->bounds[i] > told->bounds[i - 1]);
    }
    if (cn_map_set(&memory->values, key, (size_t)at, told))
        test_fail(__FILE__, __LINE__, "%s is told twice", key);
    memory->value_count++;
}

static struct memory memory;

static void read_all(const struct cn_metrics_sources *sources)
{
    memory = (struct memory){.sink = {on_family, on_value}};
    cn_map_init(&memory.families);
    cn_map_init(&memory.values);
    cn_metrics_read(sources, &memory.sink);
}

static void forget(void)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&memory.values, &cursor, &entry))
        cn_free(entry->value);
    cn_map_fini(&memory.families);
    cn_map_fini(&memory.values);
}

static const struct told *find(const char *key)
{
    const struct told *told = cn_map_find(&memory.values, key, strlen(key));
    if (!told)
        test_fail(__FILE__, __LINE__, "no %s", key);
    return told;
}

#define CHECK_METRIC(want, key) CHECK_INT(want, find(key)->number)

TEST(metrics, what_is_not_there_is_left_out)
{
    struct cn_metrics_sources sources = {0};
    read_all(&sources);
    CHECK_METRIC(1, "cairn_build_info version=" CN_VERSION);
    CHECK(find("cairn_process_resident_memory_bytes")->number > 1e6);
    CHECK_METRIC(0, "cairn_otlp_sent_total signal=traces");
    CHECK(!cn_map_find(&memory.families, "cairn_requests_total", 20));
    CHECK(!cn_map_find(&memory.families, "cairn_store_writable", 20));
    CHECK(!cn_map_find(&memory.families, "cairn_objects_live", 18));
    forget();
}

TEST(metrics, lanes_are_added_up_or_told_apart)
{
    struct cn_metrics_sources sources = {.server = (const struct cn_server *)&lanes,
                                         .lane = lane_metrics};
    workers[0].worker = workers[1].worker = "shop";
    workers[2].worker = "a \"b\"\n";
    atomic_store(&lanes[0].workers, &workers[0]);
    atomic_store(&lanes[1].workers, &workers[1]);
    workers[1].next = &workers[2];
    cn_counter_add(&workers[0].statuses[2], 5);
    cn_counter_add(&workers[1].statuses[2], 7);
    cn_counter_add(&workers[1].statuses[5], 1);
    cn_counter_add(&workers[2].statuses[0], 2);
    cn_counter_add(&workers[0].exceptions, 3);
    cn_counter_add(&workers[1].exceptions, 4);
    cn_counter_add(&workers[0].memory, 1000);
    cn_counter_add(&workers[1].memory, 24);
    cn_histogram_note(&workers[0].latency, cn_histogram_us, 1);
    cn_histogram_note(&workers[1].latency, cn_histogram_us, 1);
    cn_histogram_note(&workers[1].latency, cn_histogram_us, 4000000000u);
    cn_counter_set(&lanes[0].connections, 11);
    cn_counter_set(&lanes[1].connections, 22);
    cn_counter_add(&lanes[0].refusals[0], 1);
    cn_counter_add(&lanes[1].refusals[0], 2);
    read_all(&sources);
    CHECK_METRIC(12, "cairn_requests_total worker=shop status=2xx");
    CHECK_METRIC(1, "cairn_requests_total worker=shop status=5xx");
    CHECK_METRIC(0, "cairn_requests_total worker=shop status=none");
    CHECK_METRIC(2, "cairn_requests_total worker=a \"b\"\n status=none");
    CHECK_METRIC(7, "cairn_worker_exceptions_total worker=shop");
    CHECK_METRIC(1024, "cairn_worker_memory_bytes worker=shop");
    const struct told *latency = find("cairn_request_duration_seconds worker=shop");
    CHECK_INT(2, latency->ranges[0]);
    CHECK_INT(1, latency->ranges[CN_HISTOGRAM_BOUNDS]);
    CHECK(latency->number > 4000 && latency->number < 4001); /* in seconds */
    CHECK_METRIC(11, "cairn_connections_open lane=0");
    CHECK_METRIC(22, "cairn_connections_open lane=1");
    char key[128];
    snprintf(key, sizeof(key), "cairn_refusals_total reason=%s", cn_refusal_names[0]);
    CHECK_METRIC(3, key);
    forget();
}

TEST(metrics, objects_and_the_store_are_told_as_they_are)
{
    struct world world;
    world_open(&world, test_dir(), &counter);
    struct cn_metrics_sources sources = {.node = world.node, .shards = world.shards};
    ask(&world, "a", READ);
    ask(&world, "a", READ);
    ask(&world, "b", READ);
    read_all(&sources);
    CHECK_METRIC(3, "cairn_object_calls_total namespace=test/Counter");
    CHECK_METRIC(2, "cairn_objects_live namespace=test/Counter");
    CHECK_METRIC(2, "cairn_objects_started_total namespace=test/Counter");
    CHECK_METRIC(0, "cairn_objects_evicted_total namespace=test/Counter");
    CHECK_METRIC(1, "cairn_store_writable");
    const struct told *latency = find("cairn_object_call_duration_seconds namespace=test/Counter");
    uint64_t calls = 0;
    for (size_t i = 0; i <= CN_HISTOGRAM_BOUNDS; i++)
        calls += latency->ranges[i];
    CHECK_INT(3, calls);
    double commits = find("cairn_log_commits_total")->number;
    forget();
    CHECK_INT(2, cn_object_lane_evict(&world.lane, 10));
    ask(&world, "a", ADD);
    read_all(&sources);
    CHECK_METRIC(1, "cairn_objects_live namespace=test/Counter");
    CHECK_METRIC(2, "cairn_objects_evicted_total namespace=test/Counter");
    CHECK(find("cairn_log_commits_total")->number > commits);
    forget();
    world_close(&world);
}
