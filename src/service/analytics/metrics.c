/* SPDX-License-Identifier: Apache-2.0 */
/* service/analytics/metrics.c - what became of data points. */
#include "admin/metrics.h"
#include "analytics/points.h"
#include "service/analytics/analytics.h"

void cn_analytics_metrics(struct cn_metrics_sink *sink, const struct cn_metrics_sources *sources)
{
    struct cn_points_stats stats;
    if (!sources->points)
        return;
    cn_points_stats(sources->points, &stats);
    cn_metrics_single(sink, "cairn_analytics_points_total", CN_METRIC_COUNTER,
                      "Data points written to disk.", stats.written);
    cn_metrics_single(sink, "cairn_analytics_points_sampled_total", CN_METRIC_COUNTER,
                      "Not kept, but counted in the sample interval of another.", stats.sampled);
    cn_metrics_single(sink, "cairn_analytics_points_lost_total", CN_METRIC_COUNTER,
                      "Lost: a buffer was full, or the disk refused.", stats.dropped);
}
