/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in Prometheus' text format, version 0.0.4. What there is to tell is this file's: it has
 * its own cn_metrics_read(). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "admin/metrics.h"
#include "base/buf.h"
#include "test/lib/test.h"

static void (*tell)(struct cn_metrics_sink *sink);

void cn_metrics_read(const struct cn_metrics_sources *sources, struct cn_metrics_sink *sink)
{
    CHECK(!sources->server);
    tell(sink);
}

static void check_text(const char *want)
{
    struct cn_buf out = {0};
    struct cn_metrics_sources sources = {0};
    cn_buf_append_str(&out, "before\n"); /* it appends */
    cn_metrics_append(&sources, &out);
    CHECK_STR(want, cn_buf_text(&out) + 7);
    cn_buf_fini(&out);
}

static void tell_plain(struct cn_metrics_sink *sink)
{
    sink->family(sink, "a_total", CN_METRIC_COUNTER, "How many.");
    sink->value(sink, &(struct cn_metric_value){.integer = UINT64_MAX});
    sink->family(sink, "b", CN_METRIC_GAUGE, "None yet.");
    sink->family(sink, "c", CN_METRIC_GAUGE, "Two.");
    sink->value(sink,
                &(struct cn_metric_value){.labels = {{"lane", "0"}}, .real = true, .number = 0.1});
    sink->value(sink, &(struct cn_metric_value){
                          .labels = {{"lane", "1"}, {"kind", "x"}, {"more", ""}}, .integer = 0});
}

TEST(metrics_text, numbers_are_whole_and_labels_in_order)
{
    tell = tell_plain;
    check_text("# HELP a_total How many.\n# TYPE a_total counter\na_total 18446744073709551615\n"
               "# HELP b None yet.\n# TYPE b gauge\n"
               "# HELP c Two.\n# TYPE c gauge\nc{lane=\"0\"} 0.10000000000000001\n"
               "c{lane=\"1\",kind=\"x\",more=\"\"} 0\n");
}

static void tell_hostile(struct cn_metrics_sink *sink)
{
    sink->family(sink, "a", CN_METRIC_GAUGE, "x");
    sink->value(
        sink, &(struct cn_metric_value){.labels = {{"name", "q\" 1\na{b=\"c\"} 2\n\\n \xc3\xa4 }"}},
                                        .integer = 1});
}

/* A name of a worker cannot make a line of its own. */
TEST(metrics_text, a_value_of_a_label_stays_one)
{
    tell = tell_hostile;
    check_text("# HELP a x\n# TYPE a gauge\n"
               "a{name=\"q\\\" 1\\na{b=\\\"c\\\"} 2\\n\\\\n \xc3\xa4 }\"} 1\n");
}

static void tell_histogram(struct cn_metrics_sink *sink)
{
    static uint64_t ranges[CN_HISTOGRAM_BOUNDS + 1];
    struct cn_metric_value value = {
        .labels = {{"worker", "w"}}, .real = true, .number = 2.5, .ranges = ranges};
    for (size_t i = 0; i < CN_HISTOGRAM_BOUNDS; i++)
        value.bounds[i] = 0.001 * (double)(i + 1);
    ranges[0] = 3;
    ranges[2] = 4;
    ranges[CN_HISTOGRAM_BOUNDS] = 1;
    sink->family(sink, "h_seconds", CN_METRIC_HISTOGRAM, "How long.");
    sink->value(sink, &value);
    value.labels[0].name = NULL;
    sink->value(sink, &value);
}

/* Buckets are cumulative, the last one has all, and the count agrees with it. */
TEST(metrics_text, a_histogram_is_cumulative_to_infinity)
{
    struct cn_buf out = {0};
    struct cn_metrics_sources sources = {0};
    tell = tell_histogram;
    cn_metrics_append(&sources, &out);
    const char *text = cn_buf_text(&out);
    CHECK(strstr(text, "# TYPE h_seconds histogram\n"));
    CHECK(strstr(text, "h_seconds_bucket{worker=\"w\",le=\"0.001\"} 3\n"
                       "h_seconds_bucket{worker=\"w\",le=\"0.002\"} 3\n"
                       "h_seconds_bucket{worker=\"w\",le=\"0.003\"} 7\n"));
    CHECK(strstr(text, "h_seconds_bucket{worker=\"w\",le=\"+Inf\"} 8\n"
                       "h_seconds_sum{worker=\"w\"} 2.5\nh_seconds_count{worker=\"w\"} 8\n"));
    CHECK(strstr(text, "h_seconds_bucket{le=\"0.001\"} 3\n"));
    CHECK(strstr(text, "h_seconds_sum 2.5\nh_seconds_count 8\n"));
    unsigned lines = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    CHECK_INT(2 + 2 * (CN_HISTOGRAM_BOUNDS + 1 + 2), lines);
    cn_buf_fini(&out);
}
