/* SPDX-License-Identifier: Apache-2.0 */
/* worker/compiled_trace.h - traces (trace.h) of objects and workers in C, as their code reaches
 * them: module/tracer.h.
 *
 * Threads: the lane's. */
#ifndef CN_WORKER_COMPILED_TRACE_H
#define CN_WORKER_COMPILED_TRACE_H

struct cn_compiled_tracer;

/* For cn_compiled_host, whose data is a struct cn_lane. */
extern const struct cn_compiled_tracer cn_compiled_lane_tracer;

#endif
