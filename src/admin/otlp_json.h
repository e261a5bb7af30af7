/* SPDX-License-Identifier: Apache-2.0 */
/* admin/otlp_json.h - the messages of OTLP in its JSON encoding.
 *
 * Numbers of 64 bits are strings, ids are hexadecimal, enumerations are numbers: the protocol's
 * own rules for JSON. */
#ifndef CN_ADMIN_OTLP_JSON_H
#define CN_ADMIN_OTLP_JSON_H
#include <stddef.h>
#include <stdint.h>

#include "admin/otlp.h"
#include "base/buf.h"

struct cn_diag_note;

/* The text before and after the elements of a request. */
void cn_otlp_begin(struct cn_buf *out, enum cn_otlp_signal signal,
                   const struct cn_otlp_pair *resource, size_t resource_count);
void cn_otlp_end(struct cn_buf *out);

/* Elements: a Span, a LogRecord, and (comma-separated) all Metrics. */
void cn_otlp_append_span(struct cn_buf *out, const struct cn_trace *trace);
/* Comma-separated: those of the script's own in it. Returns how many there are. */
size_t cn_otlp_append_own_spans(struct cn_buf *out, const struct cn_trace *trace);
void cn_otlp_append_log(struct cn_buf *out, const struct cn_diag_note *note);
/* Returns how many data points there are. `started_ms`: since when counters count. */
size_t cn_otlp_append_metrics(struct cn_buf *out, const struct cn_metrics_sources *sources,
                              int64_t started_ms, int64_t now_ms);

#endif
