/* SPDX-License-Identifier: Apache-2.0 */
/* admin/metrics.h - every counter of the process as Prometheus text (version 0.0.4).
 *
 * Counters are read where they are counted, without stopping anybody; those of different lanes are
 * added up unless the label `lane` tells them apart. Gauges of a lane are at most a second old.
 * docs/features/admin.md lists the names.
 *
 * Threads: any one; the sources must stay while it runs. */
#ifndef CN_ADMIN_METRICS_H
#define CN_ADMIN_METRICS_H

struct cn_buf;
struct cn_history;
struct cn_points;
struct cn_node;
struct cn_server;
struct cn_store;

/* What is NULL is left out. */
struct cn_metrics_sources {
    const struct cn_server *server;
    struct cn_node *node;
    struct cn_store *store;
    struct cn_history *history;
    struct cn_points *points;
};

void cn_metrics_append(const struct cn_metrics_sources *sources, struct cn_buf *out);

#endif
