/* SPDX-License-Identifier: Apache-2.0 */
/* admin/metrics_sample.c - what services and rooms tell a sink by. Apart from metrics.c, which
 * knows all of them. */
#include "admin/metrics.h"

void cn_metrics_sample(struct cn_metrics_sink *sink, const char *label, const char *value,
                       uint64_t number)
{
    sink->value(sink, &(struct cn_metric_value){.labels = {{label, value}}, .integer = number});
}

void cn_metrics_sample_real(struct cn_metrics_sink *sink, const char *label, const char *value,
                            double number)
{
    sink->value(sink, &(struct cn_metric_value){
                          .labels = {{label, value}}, .real = true, .number = number});
}

void cn_metrics_single(struct cn_metrics_sink *sink, const char *name, enum cn_metric_type type,
                       const char *help, uint64_t number)
{
    sink->family(sink, name, type, help);
    cn_metrics_sample(sink, NULL, NULL, number);
}
