/* SPDX-License-Identifier: Apache-2.0 */
/* service/cache/metrics.c - the numbers of the cache of responses. */
#include "admin/metrics.h"
#include "service/cache/cache.h"

void cn_cache_numbers(const struct cn_metrics_sources *sources, struct cn_service_cache *numbers)
{
    (void)sources;
    struct cn_cache_stats stats;
    cn_cache_stats(&stats);
    *numbers = (struct cn_service_cache){.name = "http",
                                         .hits = stats.hits,
                                         .misses = stats.misses,
                                         .entries = stats.entries,
                                         .bytes = stats.memory_bytes};
}

void cn_cache_metrics(struct cn_metrics_sink *sink, const struct cn_metrics_sources *sources)
{
    struct cn_cache_stats stats;
    if (!sources->node)
        return;
    cn_cache_stats(&stats);
    cn_metrics_single(sink, "cairn_cache_disk_bytes", CN_METRIC_GAUGE,
                      "Bodies of responses kept on disk.", stats.disk_bytes);
    cn_metrics_single(sink, "cairn_cache_evictions_total", CN_METRIC_COUNTER,
                      "Responses that made room for others.", stats.evictions);
}
