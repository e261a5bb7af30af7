/* SPDX-License-Identifier: Apache-2.0 */
/* object/metrics.h - what a lane counts of its objects, by namespace.
 *
 * Threads:   the lane counts; any thread reads (base/counter.h).
 * Ownership: one for each lane, in an array of the namespace (object/node.h). */
#ifndef CN_OBJECT_METRICS_H
#define CN_OBJECT_METRICS_H
#include "base/counter.h"

#define CN_OBJECT_OPS 15 /* that services count apart; more share the last one */

struct cn_object_metrics {
    struct cn_counter calls;      /* answered by the class */
    struct cn_counter failures;   /* ... with an error */
    struct cn_counter overloaded; /* refused: a bound was reached */
    struct cn_counter held;       /* waited because the disk did not keep up (O8) */
    struct cn_counter started, evicted, resets;
    struct cn_counter alarms, alarm_failures, alarms_given_up;
    struct cn_counter live;               /* gauge: in memory */
    struct cn_counter ticks;              /* cn_clock_ticks() of its turns, commits included */
    struct cn_counter ops[CN_OBJECT_OPS]; /* calls of a service by operation */
    /* Gauges of a queue; the age is that of the oldest message. */
    struct cn_counter backlog_count, backlog_bytes, backlog_oldest_ms;
    struct cn_histogram latency;        /* us from arrival at the lane to the answer */
    struct cn_histogram alarm_lateness; /* us from the alarm's time to its run */
};

#endif
