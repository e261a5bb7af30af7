/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/metrics.c - what waits in queues. */
#include <string.h>

#include "admin/metrics.h"
#include "base/clock.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/queue/queue.h"

/* One lane has the gauges of a queue, the others zeros. */
struct backlog {
    char *name; /* owned */
    uint64_t count, bytes;
    int64_t oldest_ms; /* 0: it is empty */
};

struct backlogs {
    struct backlog *items; /* owned */
    size_t count;
    unsigned lane_count;
};

static void add_queue(void *data, const struct cn_namespace *ns)
{
    struct backlogs *all = data;
    if (cn_service_of(ns->name) != &cn_service_queue)
        return;
    all->items = cn_realloc(all->items, (all->count + 1) * sizeof(*all->items));
    struct backlog *queue = &all->items[all->count++];
    *queue = (struct backlog){.name = cn_strdup(strchr(ns->name, '/') + 1)};
    for (unsigned lane = 0; lane < all->lane_count; lane++) {
        const struct cn_object_metrics *metrics = &ns->metrics[lane];
        queue->count += cn_counter_get(&metrics->backlog_count);
        queue->bytes += cn_counter_get(&metrics->backlog_bytes);
        queue->oldest_ms += (int64_t)cn_counter_get(&metrics->backlog_oldest_ms);
    }
}

static void tell(struct cn_metrics_sink *sink, const struct backlogs *all)
{
    int64_t now_ms = cn_clock_wall_ms(cn_clock_system());
    sink->family(sink, "cairn_queue_backlog_messages", CN_METRIC_GAUGE,
                 "Messages in a queue, delayed and delivered ones included.");
    for (size_t i = 0; i < all->count; i++)
        cn_metrics_sample(sink, "queue", all->items[i].name, all->items[i].count);
    sink->family(sink, "cairn_queue_backlog_bytes", CN_METRIC_GAUGE, "Their size.");
    for (size_t i = 0; i < all->count; i++)
        cn_metrics_sample(sink, "queue", all->items[i].name, all->items[i].bytes);
    sink->family(sink, "cairn_queue_oldest_message_age_seconds", CN_METRIC_GAUGE,
                 "Age of the oldest of them; 0 without any.");
    for (size_t i = 0; i < all->count; i++) {
        int64_t oldest = all->items[i].oldest_ms;
        cn_metrics_sample_real(sink, "queue", all->items[i].name,
                               oldest && oldest < now_ms ? (double)(now_ms - oldest) / 1000 : 0);
    }
}

void cn_queue_metrics(struct cn_metrics_sink *sink, const struct cn_metrics_sources *sources)
{
    if (!sources->node)
        return;
    struct backlogs all = {.lane_count = cn_node_lane_count(sources->node)};
    cn_node_each_namespace(sources->node, add_queue, &all);
    tell(sink, &all);
    for (size_t i = 0; i < all.count; i++)
        cn_free(all.items[i].name);
    cn_free(all.items);
}
