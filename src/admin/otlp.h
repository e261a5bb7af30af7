/* SPDX-License-Identifier: Apache-2.0 */
/* admin/otlp.h - export of traces, logs and metrics to a collector: OTLP over HTTP, in JSON.
 *
 *     lanes: traces that ended ──┐                       ┌─ POST ENDPOINT/v1/traces
 *     any thread: messages ──────┼─► bounded buffers ──► │  POST ENDPOINT/v1/logs
 *     counters (admin/metrics.h) ┘    one thread         └─ POST ENDPOINT/v1/metrics
 *
 * What is exported has been written as JSON by whoever made it, under a lock that is
 * held for the copy. The thread sends what has gathered once a second, or sooner when
 * it is much, and the metrics every `interval_ms`; one request per signal at a time.
 *
 * E1  Nobody waits for the collector: what finds no room is dropped and counted.
 * E2  An answer of 429, 502, 503 or 504, or none at all, is tried again after 1 s, 2 s,
 *     ... 60 s, or when Retry-After says; any other failure drops what was sent.
 *     Metrics are never repeated: the next ones say the same and more.
 * E3  The end sends what is left, for CN_OTLP_STOP_MS at most.
 *
 * Threads:   start, detach and stop on the owner's; the rest as above.
 * Ownership: the owner's, who keeps it until the lanes have ended. */
#ifndef CN_ADMIN_OTLP_H
#define CN_ADMIN_OTLP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/metrics.h"
#include "base/err.h"
#include "worker/trace.h"

struct cn_otlp;
struct cn_trust;

#define CN_OTLP_PENDING_MAX (4u << 20) /* bytes of one signal that wait */
#define CN_OTLP_SEND_EARLY (512u << 10)
#define CN_OTLP_KEEP_MS 300000 /* how long what could not be sent is tried again */
#define CN_OTLP_STOP_MS 3000

enum cn_otlp_signal { CN_OTLP_TRACES, CN_OTLP_LOGS, CN_OTLP_METRICS, CN_OTLP_SIGNALS };
extern const char *const cn_otlp_signal_names[CN_OTLP_SIGNALS];

struct cn_otlp_pair {
    char *name, *value; /* owned by whoever has the array */
};

struct cn_otlp_options {
    const char *endpoint;               /* "http://host:4318", without "/v1/..." */
    const struct cn_otlp_pair *headers; /* of each request; copied */
    size_t header_count;
    const struct cn_otlp_pair *resource; /* attributes of this process; copied */
    size_t resource_count;
    bool signals[CN_OTLP_SIGNALS];
    unsigned interval_ms, timeout_ms;
    struct cn_trust *trust; /* borrowed */
};

int cn_otlp_start(const struct cn_otlp_options *options, struct cn_otlp **otlp, struct cn_err *err);
/* Whom lanes tell of traces; NULL if they are not exported. */
const struct cn_trace_exporter *cn_otlp_exporter(const struct cn_otlp *otlp);
/* What metrics are read from, from now on. Before the sources go: cn_otlp_detach(), which reads
 * them a last time. NULL as an exporter is fine for all of these. */
void cn_otlp_attach(struct cn_otlp *otlp, const struct cn_metrics_sources *sources);
void cn_otlp_detach(struct cn_otlp *otlp);
void cn_otlp_stop(struct cn_otlp *otlp);

struct cn_otlp_stats {
    uint64_t sent[CN_OTLP_SIGNALS];     /* spans, records, data points */
    uint64_t dropped[CN_OTLP_SIGNALS];  /* no room, or refused by the collector */
    uint64_t failures[CN_OTLP_SIGNALS]; /* requests that failed, repeated ones included */
};
/* Zeros without an exporter. */
void cn_otlp_stats(struct cn_otlp *otlp, struct cn_otlp_stats *stats);

#endif
