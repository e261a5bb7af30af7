/* SPDX-License-Identifier: Apache-2.0 */
/* admin/metrics.h - every counter of the process, read where it is counted.
 *
 * cn_metrics_read() goes over all of them without stopping anybody and tells a
 * sink: Prometheus text (below) or OTLP (admin/otlp_json.c). Numbers of different
 * lanes are added up unless the label `lane` tells them apart; gauges of a lane are
 * at most a second old. docs/reference/metrics.md lists the names.
 *
 * Threads: any one; the sources must stay while it runs. */
#ifndef CN_ADMIN_METRICS_H
#define CN_ADMIN_METRICS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"

struct cn_buf;
struct cn_history;
struct cn_lane_metrics;
struct cn_metrics_sink;
struct cn_node;
struct cn_otlp;
struct cn_points;
struct cn_server;
struct cn_shards;

/* What is NULL is left out. */
struct cn_metrics_sources {
    const struct cn_server *server;
    /* Those of its lanes, NULL past the last: cn_server_metrics(). */
    const struct cn_lane_metrics *(*lane)(const struct cn_server *server, unsigned lane);
    struct cn_node *node;
    struct cn_shards *shards;
    struct cn_points *points;
    struct cn_otlp *otlp;
    void (*more)(void *data, struct cn_metrics_sink *sink); /* of a room above; any thread */
    void *more_data;
};

enum cn_metric_type { CN_METRIC_COUNTER, CN_METRIC_GAUGE, CN_METRIC_HISTOGRAM };

struct cn_metric_label {
    const char *name, *value; /* NULL as a name: there is none */
};
#define CN_METRIC_LABELS 3

struct cn_metric_value {
    struct cn_metric_label labels[CN_METRIC_LABELS]; /* those that there are, first */
    bool real;
    uint64_t integer; /* unless `real` */
    double number;
    /* Of a histogram: how many fell into each range, the ranges' upper ends, and in `number` the
     * sum; ends and sum are in the metric's unit. */
    const uint64_t *ranges; /* CN_HISTOGRAM_BOUNDS + 1 */
    double bounds[CN_HISTOGRAM_BOUNDS];
};

/* A family begins; its values follow. */
struct cn_metrics_sink {
    void (*family)(struct cn_metrics_sink *sink, const char *name, enum cn_metric_type type,
                   const char *help);
    void (*value)(struct cn_metrics_sink *sink, const struct cn_metric_value *value);
};

/* For those who tell a sink: a value with a label or without (NULL), of a family that has begun; a
 * family with one value. */
void cn_metrics_sample(struct cn_metrics_sink *sink, const char *label, const char *value,
                       uint64_t number);
void cn_metrics_sample_real(struct cn_metrics_sink *sink, const char *label, const char *value,
                            double number);
void cn_metrics_single(struct cn_metrics_sink *sink, const char *name, enum cn_metric_type type,
                       const char *help, uint64_t number);

void cn_metrics_read(const struct cn_metrics_sources *sources, struct cn_metrics_sink *sink);
/* Prometheus text, version 0.0.4. */
void cn_metrics_append(const struct cn_metrics_sources *sources, struct cn_buf *out);

#endif
