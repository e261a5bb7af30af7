/* SPDX-License-Identifier: Apache-2.0 */
/* admin/recent.h - GET /api/recent: the last ten minutes of what the dashboard's charts show, so
 * that whoever opens it because something is wrong sees how it began.
 *
 * Every few seconds the counters are read (admin/metrics.h), added up over workers and
 * lanes, and kept in a ring; whoever draws makes rates of them.
 *
 * Threads:   the admin thread's.
 * Ownership: embedded in the admin. */
#ifndef CN_ADMIN_RECENT_H
#define CN_ADMIN_RECENT_H
#include <stdint.h>
#include <uv.h>

#include "admin/metrics.h"

struct cn_buf;

#define CN_RECENT_EVERY_MS 5000
#define CN_RECENT_COUNT 120
#define CN_RECENT_VALUES 12
#define CN_RECENT_HISTOGRAMS 2

struct cn_recent_point {
    int64_t time_ms;
    double values[CN_RECENT_VALUES];
    uint64_t ranges[CN_RECENT_HISTOGRAMS][CN_HISTOGRAM_BOUNDS + 1];
};

struct cn_recent {
    uv_timer_t timer;
    struct cn_metrics_sources sources;
    struct cn_recent_point points[CN_RECENT_COUNT]; /* a ring */
    unsigned next, count;
};

/* Takes the first point and goes on from there. */
void cn_recent_start(struct cn_recent *recent, uv_loop_t *loop,
                     const struct cn_metrics_sources *sources);
void cn_recent_close(struct cn_recent *recent);
/* {"now": time, "every": ms, "values": [names], "histograms": [names], "bounds": [seconds],
 *  "points": [[time, value..., [count by range]...], ...]}, the oldest first. */
void cn_recent_append(const struct cn_recent *recent, struct cn_buf *out);

#endif
