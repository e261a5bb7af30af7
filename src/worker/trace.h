/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trace.h - what an invocation was, did and said, for those who watch: tail consumers
 * (another worker's tail() handler), listeners (taps.h) and an exporter of spans.
 *
 *     event or call ──► cn_trace_begin() ──► turns: logs, exceptions, CPU ──► cn_trace_end()
 *                                                                                 │
 *              consumers' batches (dispatch.h) ◄── at the end of the turn ────────┤
 *              exporter ◄─────────────────────────────────────────────────────────┘
 *
 * A trace exists only for an instance that somebody watches (cn_trace_is_watched());
 * for all others cn_trace_begin() is one comparison, and nothing is collected.
 * Code finds its trace by the cause of its turn (js/vm.h), wherever it has waited.
 *
 * T1  Nobody waits for a watcher: what finds no room is dropped and counted.
 * T2  A trace is bounded: past CN_TRACE_BYTES_MAX of logs and the like it is `truncated`.
 * T3  A consumer has at most CN_TRACE_BATCHES batches under way on a lane; what
 *     ends meanwhile is the next batch, CN_TRACE_PENDING_MAX bytes at most.
 *
 * Threads:   the lane's. The exporter is called on every lane.
 * Ownership: the lane's table. */
#ifndef CN_WORKER_TRACE_H
#define CN_WORKER_TRACE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/origin.h"

struct cn_instance;
struct cn_lane;
struct cn_object;
struct cn_script;

#define CN_TRACE_BYTES_MAX (256u << 10)
#define CN_TRACE_BATCHES 4
#define CN_TRACE_BATCH_COUNT_MAX 500
#define CN_TRACE_PENDING_MAX (8u << 20)

enum cn_trace_kind {
    CN_TRACE_FETCH,
    CN_TRACE_RPC,
    CN_TRACE_ALARM,
    CN_TRACE_SOCKET,
    CN_TRACE_SCHEDULED,
    CN_TRACE_QUEUE,
    CN_TRACE_TAIL,
    CN_TRACE_OTHER,
};
extern const char *const cn_trace_kind_names[];

struct cn_trace {
    struct cn_list link; /* in lane->traces_ended, once it has */
    uint64_t handle;
    enum cn_trace_kind kind;
    struct cn_script *script; /* a reference */
    char *entrypoint;         /* owned; an export's name, a class; NULL: the default one */
    char object[65];          /* the object's id in hexadecimal, or "" */
    char *object_name;        /* owned; or NULL */
    struct cn_origin origin;  /* span: the parent's */
    uint64_t span;            /* its own */
    int64_t started_ms;       /* wall clock */
    uint64_t started_ns, ended_ns;
    uint64_t ticks;        /* of its turns (cn_clock_ticks()) */
    const char *outcome;   /* "ok", "exception", ...; static */
    int status;            /* of a response; 0: none */
    struct cn_buf subject; /* what it was: "GET /path", "method" */
    /* JSON: the members of `event`; then what the arrays of their names hold. */
    struct cn_buf event, logs, exceptions, channels;
    struct cn_buf spans; /* JSON objects, comma-separated: of the script's own (tracing.js) */
    bool truncated;
    bool sampled; /* the exporter is told of it */
    bool tapped;  /* and those who listen: taps.h */
};

/* Who is told of every trace that has ended, on the lane it ended on. */
struct cn_trace_exporter {
    void (*ended)(void *data, const struct cn_trace *trace);
    void *data;
};

/* A consumer as a lane knows it. */
struct cn_trace_consumer {
    struct cn_list link; /* in lane->trace_consumers */
    char *script;        /* owned */
    struct cn_buf items; /* JSON objects, comma-separated: the next batch */
    size_t item_count;
    unsigned under_way;
    bool failed; /* its last batch; said once */
};

void cn_trace_lane_init(struct cn_lane *lane);
void cn_trace_lane_fini(struct cn_lane *lane);

/* Whether somebody watches the instance, or listens to some worker. */
bool cn_trace_is_watched(const struct cn_instance *instance);
/* Whether who watches this trace wants all of it: what was asked, what was logged. */
bool cn_trace_is_whole(const struct cn_trace *trace);
/* Begins a trace if somebody watches the instance: its handle, or 0. `object` NULL: none. */
uint64_t cn_trace_begin(struct cn_instance *instance, enum cn_trace_kind kind,
                        const char *entrypoint, const struct cn_object *object,
                        const struct cn_origin *origin);
/* NULL for 0 and for a trace that has ended. */
struct cn_trace *cn_trace_find(const struct cn_lane *lane, uint64_t handle);
/* It has ended so; NULL: well, unless something else was said before. 0 is fine. */
void cn_trace_end(struct cn_lane *lane, uint64_t handle, const char *outcome);
/* What has ended goes to those who watch. Outside a turn. */
void cn_trace_flush(struct cn_lane *lane);

/* Adds an element to one of the arrays; it is dropped if there is no room (T2). */
void cn_trace_add(struct cn_trace *trace, struct cn_buf *array, const char *json, size_t size);
/* The trace in JSON up to its event, and what follows that. */
void cn_trace_append_head(const struct cn_trace *trace, struct cn_buf *out);
void cn_trace_append_rest(const struct cn_trace *trace, struct cn_buf *out);
/* The trace as a TraceItem in JSON. */
void cn_trace_append_json(const struct cn_trace *trace, struct cn_buf *out);
/* The ids of a traceparent header; false if it is none. */
bool cn_trace_parse_parent(const char *text, size_t size, struct cn_origin *origin);

#endif
