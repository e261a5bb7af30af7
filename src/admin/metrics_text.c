/* SPDX-License-Identifier: Apache-2.0 */
/* admin/metrics_text.c - metrics as Prometheus reads them. */
#include <inttypes.h>
#include <stdio.h>

#include "admin/metrics.h"
#include "base/buf.h"
#include "base/list.h"

struct text_sink {
    struct cn_metrics_sink sink;
    struct cn_buf *out;
    const char *name; /* of the family; borrowed: they are all static */
};

static const char *const type_names[] = {"counter", "gauge", "histogram"};

static void on_family(struct cn_metrics_sink *sink, const char *name, enum cn_metric_type type,
                      const char *help)
{
    struct text_sink *text = CN_CONTAINER_OF(sink, struct text_sink, sink);
    text->name = name;
    cn_buf_printf(text->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type_names[type]);
}

static void append_label(struct cn_buf *out, const struct cn_metric_label *label)
{
    cn_buf_printf(out, "%s=\"", label->name);
    for (const char *at = label->value; *at; at++) {
        if (*at == '\\' || *at == '"')
            cn_buf_append_byte(out, '\\');
        if (*at == '\n')
            cn_buf_append_str(out, "\\n");
        else
            cn_buf_append_byte(out, (uint8_t)*at);
    }
    cn_buf_append_byte(out, '"');
}

/* {a="b",...}, with `le` (or NULL) as the last one. */
static void append_labels(struct cn_buf *out, const struct cn_metric_label *labels, const char *le)
{
    bool any = false;
    for (size_t i = 0; i < CN_METRIC_LABELS && labels[i].name; i++) {
        cn_buf_append_byte(out, any ? ',' : '{');
        append_label(out, &labels[i]);
        any = true;
    }
    if (le) {
        cn_buf_append_byte(out, any ? ',' : '{');
        append_label(out, &(struct cn_metric_label){"le", le});
        any = true;
    }
    if (any)
        cn_buf_append_byte(out, '}');
}

static void append_histogram(struct text_sink *text, const struct cn_metric_value *value)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= CN_HISTOGRAM_BOUNDS; i++) {
        char le[32] = "+Inf";
        count += value->ranges[i];
        if (i < CN_HISTOGRAM_BOUNDS)
            snprintf(le, sizeof(le), "%g", value->bounds[i]);
        cn_buf_printf(text->out, "%s_bucket", text->name);
        append_labels(text->out, value->labels, le);
        cn_buf_printf(text->out, " %" PRIu64 "\n", count);
    }
    cn_buf_printf(text->out, "%s_sum", text->name);
    append_labels(text->out, value->labels, NULL);
    cn_buf_printf(text->out, " %.17g\n%s_count", value->number, text->name);
    append_labels(text->out, value->labels, NULL);
    cn_buf_printf(text->out, " %" PRIu64 "\n", count);
}

static void on_value(struct cn_metrics_sink *sink, const struct cn_metric_value *value)
{
    struct text_sink *text = CN_CONTAINER_OF(sink, struct text_sink, sink);
    if (value->ranges)
        return append_histogram(text, value);
    cn_buf_append_str(text->out, text->name);
    append_labels(text->out, value->labels, NULL);
    if (value->real)
        cn_buf_printf(text->out, " %.17g\n", value->number);
    else
        cn_buf_printf(text->out, " %" PRIu64 "\n", value->integer);
}

void cn_metrics_append(const struct cn_metrics_sources *sources, struct cn_buf *out)
{
    struct text_sink text = {{on_family, on_value}, out, NULL};
    cn_metrics_read(sources, &text.sink);
}
