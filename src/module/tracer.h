/* SPDX-License-Identifier: Apache-2.0 */
/* module/tracer.h - what code in C tells those who watch it: tail consumers, listeners and the
 * exporter of spans see objects and workers in C as they see those in JavaScript.
 *
 *     a call of an object ──► begin ──┐
 *     an event of a worker, which ────┴──► note: what it is ──► log, exception, CPU ──► end
 *     has a trace already
 *
 * Traces are the host's (worker/trace.h); here they are numbers, 0 where nobody watches, and then
 * nothing is collected. A number whose trace has ended is as good as 0.
 *
 * Threads:   the lane's.
 * Ownership: the host's. */
#ifndef CN_MODULE_TRACER_H
#define CN_MODULE_TRACER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/origin.h"
#include "include/cairn.h"

struct cn_buf;
struct cn_call;
struct cn_modules;
struct cn_object;

/* `data` is that of cn_compiled_host. */
struct cn_compiled_tracer {
    /* A call to an object of such a class: its trace. It gets a number for log lines, if it has
     * none. */
    uint64_t (*begin)(void *data, const struct cn_modules *modules, const char *class_name,
                      const struct cn_object *object, struct cn_call *call);
    /* What is caused by the event from now on: the ids of the trace, its span as the caller. */
    void (*mark)(void *data, uint64_t trace, struct cn_origin *origin);
    /* Whether somebody wants what was asked and logged, and not only that it ran. */
    bool (*is_whole)(void *data, uint64_t trace);
    /* For people; and the members of the event as JSON, without braces. Buffers are taken. */
    void (*note)(void *data, uint64_t trace, struct cn_buf *subject, struct cn_buf *members);
    void (*log)(void *data, uint64_t trace, const char *level, const char *text, size_t size);
    void (*exception)(void *data, uint64_t trace, const char *type, const char *text);
    void (*status)(void *data, uint64_t trace, int status);
    /* A function of the event begins and ends. Traces that end between are told after. */
    void (*enter)(void *data);
    void (*leave)(void *data, uint64_t trace, uint64_t ticks);
    void (*end)(void *data, uint64_t trace, const char *outcome); /* NULL: well */
    /* Whether log lines name traces: somebody exports them. */
    bool (*is_exported)(void *data);
};

/* A call comes to the object: from now on it runs for that. */
void cn_compiled_trace_call(cairn_object *self, struct cn_call *call);
/* The event's function is about to run: what it is. */
void cn_compiled_trace_event(cairn_event *event);
void cn_compiled_trace_socket(cairn_object *self, const char *kind, const int *code, bool is_clean);
/* A line of the object's log, for the trace of what runs. */
void cn_compiled_trace_log(cairn_object *self, enum cairn_level level, const char *text,
                           size_t size);
void cn_compiled_trace_failed(cairn_object *self, uint64_t trace, const char *type,
                              const char *text);
void cn_compiled_trace_status(cairn_event *event);
/* `outcome` NULL: well. */
void cn_compiled_trace_end(cairn_object *self, uint64_t trace, const char *outcome);
/* Around functions of the class. */
void cn_compiled_trace_enter(cairn_object *self);
void cn_compiled_trace_leave(cairn_object *self);

#endif
