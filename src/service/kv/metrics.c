/* SPDX-License-Identifier: Apache-2.0 */
/* service/kv/metrics.c - the numbers of the cache of values. */
#include "admin/metrics.h"
#include "object/node.h"
#include "service/kv/kv.h"
#include "service/kv/kvcache.h"

void cn_kv_cache_numbers(const struct cn_metrics_sources *sources, struct cn_service_cache *numbers)
{
    const struct cn_services *services = cn_node_data(sources->node);
    struct cn_kvcache_stats stats = {0};
    if (services && services->kv_cache)
        cn_kvcache_stats(services->kv_cache, &stats);
    *numbers = (struct cn_service_cache){.name = "kv",
                                         .hits = stats.hits,
                                         .misses = stats.misses,
                                         .entries = stats.entries,
                                         .bytes = stats.bytes};
}
