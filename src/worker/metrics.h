/* SPDX-License-Identifier: Apache-2.0 */
/* worker/metrics.h - what a lane counts of its workers' requests.
 *
 * Counters outlive deployments: those of a worker are found by its name and stay until the lane
 * ends.
 *
 * Threads:   the lane counts; any thread reads (base/counter.h).
 * Ownership: the lane's. */
#ifndef CN_WORKER_METRICS_H
#define CN_WORKER_METRICS_H
#include <stdatomic.h>
#include <stdbool.h>

#include "base/counter.h"

enum cn_refusal {
    CN_REFUSAL_STARTING, /* no deployment yet */
    CN_REFUSAL_ROUTE,    /* no worker for host and path */
    CN_REFUSAL_MEMORY,   /* the heap is above its watermark */
    CN_REFUSAL_EVENTS,   /* too many requests under way */
    CN_REFUSAL_BROKEN,   /* the worker's version is damaged or did not start (script.h, F1) */
    CN_REFUSAL_COUNT
};
extern const char *const cn_refusal_names[CN_REFUSAL_COUNT];

struct cn_worker_metrics {
    struct cn_worker_metrics *next; /* set before it is listed, then never changed */
    char *worker;                   /* owned */
    struct cn_counter statuses[6];  /* answers by status / 100; 0: cut without one */
    struct cn_counter exceptions;   /* handlers that threw */
    struct cn_counter limits;       /* ended for CPU time or memory */
    struct cn_counter ticks;        /* cn_clock_ticks() of its turns; once a second */
    struct cn_counter failed;       /* versions that do not serve here (script.h, F1); a gauge */
    struct cn_counter memory;       /* bytes that it and its objects hold; a gauge */
    struct cn_histogram latency;    /* us from the request's head to the answer's last byte */
};

/* Gauges are refreshed once a second. */
struct cn_lane_metrics {
    _Atomic(struct cn_worker_metrics *) workers;
    struct cn_counter refusals[CN_REFUSAL_COUNT];
    struct cn_counter turns;                     /* entries into JavaScript */
    struct cn_counter heap_bytes, heap_capacity; /* gauges from here on */
    struct cn_counter accepted, rejected, bad_requests, aborted, connections, busy;
    struct cn_counter events;
    struct cn_counter objects;
    struct cn_counter websockets;          /* connections */
    struct cn_counter sockets, hibernated; /* WebSockets of objects; of those not in memory */
    struct cn_counter alarms_running, alarms_due; /* due: and not running yet */
    /* Counters: traces given to tail consumers, not given for want of room, and batches that
     * failed. */
    struct cn_counter tail_events, tail_dropped, tail_failures;
};

/* What is replaced inside the engine (js/engine/patch.h), and whether it is in use. Any thread. */
void cn_worker_each_patch(void (*each)(void *data, const char *patch, bool on), void *data);

/* Finds or makes the counters of a worker. On the lane. */
struct cn_worker_metrics *cn_lane_metrics_worker(struct cn_lane_metrics *metrics, const char *name);
void cn_lane_metrics_fini(struct cn_lane_metrics *metrics);

#endif
