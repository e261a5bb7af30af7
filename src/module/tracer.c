/* SPDX-License-Identifier: Apache-2.0 */
#include "module/worker_api.h"
#include "module/http.h"
#include "module/tracer.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "module/internal.h"
#include "object/call.h"

static const struct cn_compiled_tracer *tracer_of(const cairn_object *self)
{
    return self->host ? self->host->tracer : NULL;
}

void cn_compiled_trace_call(cairn_object *self, struct cn_call *call)
{
    const struct cn_compiled_tracer *tracer = tracer_of(self);
    if (tracer)
        call->trace = tracer->begin(self->host->data, self->class_->modules, self->class_->name,
                                    self->object, call);
    self->origin = call->envelope.origin;
    self->trace = call->trace;
    if (self->trace)
        tracer->mark(self->host->data, self->trace, &self->origin);
}

static void append_member(struct cn_buf *out, const char *name, const char *text)
{
    cn_buf_printf(out, "%s\"%s\":", out->size ? "," : "", name);
    cn_buf_append_json(out, text, strlen(text));
}

/* The path of "https://host/path?query". */
static void append_path(struct cn_buf *out, const char *url)
{
    const char *host = strstr(url, "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;
    if (path)
        cn_buf_append(out, path, strcspn(path, "?#"));
}

static void append_headers(struct cn_buf *out, cairn_event *event)
{
    size_t count = cn_api_request_header_count(event);
    cn_buf_append_str(out, ",\"headers\":{");
    for (size_t i = 0; i < count; i++) {
        const char *value = "";
        const char *name = cn_api_request_header_at(event, i, &value);
        if (i)
            cn_buf_append_byte(out, ',');
        cn_buf_append_json(out, name, strlen(name));
        cn_buf_append_byte(out, ':');
        cn_buf_append_json(out, value, strlen(value));
    }
    cn_buf_append_byte(out, '}');
}

static void describe_request(cairn_event *event, bool is_whole, struct cn_buf *subject,
                             struct cn_buf *members)
{
    const char *method = cn_api_request_method(event);
    const char *url = cn_api_request_url(event);
    cn_buf_printf(subject, "%s ", method);
    append_path(subject, url);
    if (!is_whole)
        return;
    struct cn_buf request = {0};
    append_member(&request, "url", url);
    append_member(&request, "method", method);
    append_headers(&request, event);
    cn_buf_append_str(members, "\"request\":{");
    cn_buf_append(members, request.data, request.size);
    cn_buf_append_byte(members, '}');
    cn_buf_fini(&request);
}

static void describe(cairn_event *event, bool is_whole, struct cn_buf *subject,
                     struct cn_buf *members)
{
    switch (event->kind) {
    case CN_COMPILED_CALL:
        cn_buf_append_str(subject, event->method);
        append_member(members, "rpcMethod", event->method);
        return;
    case CN_COMPILED_FETCH:
        describe_request(event, is_whole, subject, members);
        return;
    case CN_COMPILED_ALARM:
        cn_buf_append_str(subject, "alarm");
        cn_buf_printf(members, "\"scheduledTime\":%" PRId64, event->scheduled_ms);
        return;
    case CN_COMPILED_SCHEDULED:
        cn_buf_append_str(subject, cn_api_scheduled_cron(event));
        append_member(members, "cron", cn_api_scheduled_cron(event));
        cn_buf_printf(members, ",\"scheduledTime\":%" PRId64, cn_api_scheduled_time(event));
        return;
    case CN_COMPILED_QUEUE:
        cn_buf_append_str(subject, cn_api_queue_name(event));
        append_member(members, "queue", cn_api_queue_name(event));
        cn_buf_printf(members, ",\"batchSize\":%zu", cn_api_queue_count(event));
        return;
    case CN_COMPILED_TARGET: /* no function of the class runs for it */
        return;
    }
}

void cn_compiled_trace_event(cairn_event *event)
{
    cairn_object *self = event->object;
    self->trace = event->trace;
    if (!event->trace)
        return;
    const struct cn_compiled_tracer *tracer = tracer_of(self);
    struct cn_buf subject = {0}, members = {0};
    describe(event, tracer->is_whole(self->host->data, event->trace), &subject, &members);
    tracer->note(self->host->data, event->trace, &subject, &members);
}

void cn_compiled_trace_socket(cairn_object *self, const char *kind, const int *code, bool is_clean)
{
    if (!self->trace)
        return;
    struct cn_buf subject = {0}, members = {0};
    cn_buf_append_str(&subject, kind);
    cn_buf_printf(&members, "\"getWebSocketEvent\":{\"webSocketEventType\":\"%s\"", kind);
    if (code)
        cn_buf_printf(&members, ",\"code\":%d,\"wasClean\":%s", *code, is_clean ? "true" : "false");
    cn_buf_append_byte(&members, '}');
    tracer_of(self)->note(self->host->data, self->trace, &subject, &members);
}

void cn_compiled_trace_log(cairn_object *self, enum cairn_level level, const char *text,
                           size_t size)
{
    const char *name = level == CAIRN_DEBUG     ? "debug"
                       : level == CAIRN_WARN    ? "warn"
                       : level == CAIRN_FAILURE ? "error"
                                                : "info";
    if (self->trace && tracer_of(self)->is_whole(self->host->data, self->trace))
        tracer_of(self)->log(self->host->data, self->trace, name, text, size);
}

void cn_compiled_trace_failed(cairn_object *self, uint64_t trace, const char *type,
                              const char *text)
{
    if (trace)
        tracer_of(self)->exception(self->host->data, trace, type, text);
}

void cn_compiled_trace_status(cairn_event *event)
{
    cairn_object *self = event->object;
    if (event->trace && event->kind == CN_COMPILED_FETCH)
        tracer_of(self)->status(self->host->data, event->trace,
                                event->socket[0] ? 101 : event->status);
}

void cn_compiled_trace_end(cairn_object *self, uint64_t trace, const char *outcome)
{
    if (trace)
        tracer_of(self)->end(self->host->data, trace, outcome);
}

void cn_compiled_trace_enter(cairn_object *self)
{
    self->entered_trace = self->trace;
    if (self->trace || self->ticks)
        self->entered_ticks = cn_clock_ticks();
    if (self->trace)
        tracer_of(self)->enter(self->host->data);
}

void cn_compiled_trace_leave(cairn_object *self)
{
    if (!self->entered_trace && !self->ticks)
        return;
    uint64_t ticks = cn_clock_ticks() - self->entered_ticks;
    if (self->ticks)
        cn_counter_add(self->ticks, ticks);
    if (self->entered_trace)
        tracer_of(self)->leave(self->host->data, self->entered_trace, ticks);
    self->entered_trace = 0;
}
