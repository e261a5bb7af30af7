/* SPDX-License-Identifier: Apache-2.0 */
#include "module/guard.h"
#include "module/api.h"
#include "module/worker.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "module/batch.h"
#include "module/fetch.h"
#include "module/internal.h"
#include "module/lent.h"
#include "module/request.h"
#include "module/tracer.h"

/* --- the instance ---------------------------------------------------------------------------- */

cairn_object *cn_compiled_worker_new(const struct cn_module_class *class_,
                                     const struct cn_compiled_host *host, uint32_t serial,
                                     struct cn_counter *ticks, struct cn_err *err)
{
    cairn_object *self = CN_NEW(cairn_object);
    cn_guard_add(self, CN_GUARD_OBJECT, self);
    self->ticks = ticks;
    self->class_ = class_;
    self->host = host;
    self->serial = serial;
    cn_modules_ref(class_->modules); /* M2 */
    cn_list_init(&self->events);
    cn_list_init(&self->statements);
    cn_list_init(&self->lent);
    cn_list_init(&self->pending);
    if (cn_compiled_begin(self, err) == 0)
        return self;
    cn_compiled_finish(self);
    return NULL;
}

void cn_compiled_worker_free(cairn_object *self)
{
    CN_ASSERT(!self->running);
    cn_compiled_finish(self);
}

typedef int (*function)(cairn_object *object, void *instance, cairn_event *event);

static function function_of(const struct cn_module_class *class_, enum cn_compiled_kind kind)
{
    switch (kind) {
    case CN_COMPILED_CALL:
        return class_->table.call;
    case CN_COMPILED_FETCH:
        return class_->table.fetch_stream ? class_->table.fetch_stream : class_->table.fetch;
    case CN_COMPILED_SCHEDULED:
        return class_->table.scheduled;
    case CN_COMPILED_QUEUE:
        return class_->table.queue;
    default: /* a worker has no alarms, and no function for its own streams */
        return NULL;
    }
}

bool cn_compiled_takes(const struct cn_module_class *class_, enum cn_compiled_kind kind)
{
    return function_of(class_, kind) != NULL;
}

bool cn_compiled_streams(const struct cn_module_class *class_)
{
    return class_->table.fetch_stream != NULL;
}

bool cn_compiled_worker_waits(const cairn_object *worker)
{
    return worker->pending_count > 0 || (worker->outside && worker->outside->given_count > 0);
}

/* --- events ---------------------------------------------------------------------------------- */

void cn_compiled_asked_free(struct cn_compiled_asked *asked)
{
    cn_outside_end(asked);
    cn_batch_free(asked->batch);
    cn_free(asked->address);
    cn_free(asked);
}

/* What the event's function is given besides. */
static int read_question(cairn_event *event, const struct cn_compiled_question *question,
                         struct cn_err *err)
{
    int rc;
    event->bytes = question->bytes;
    switch (event->kind) {
    case CN_COMPILED_FETCH:
        if (question->http) {
            event->asked->body_size = question->size;
            cn_outside_begin(event->asked);
            return 0;
        }
        rc = cn_document_read(&event->document, event->bytes, question->size, err);
        return rc < 0 ? rc : cn_compiled_check_request(event, err);
    case CN_COMPILED_TARGET:
        event->asked->body_size = question->size;
        return 0;
    case CN_COMPILED_CALL:
        rc = cn_document_read(&event->document, event->bytes, question->size, err);
        if (rc == 0 && cn_value_kind(event->document.root) != CAIRN_ARRAY)
            rc = cn_err_set(err, CN_EINVALID,
                            "The RPC receiver does not implement the property \"%.200s\".",
                            event->method);
        return rc;
    default:
        return cn_batch_read(event, question->size, err);
    }
}

/* An event that ends before it is one. */
static void turn_away(const struct cn_compiled_question *question, const char *text)
{
    struct cn_compiled_answer answer = {.error_type = "Error", .error = text, .status = 503};
    cn_free(question->bytes);
    question->ended(question->data, &answer);
}

/* The whole body is there, or will not be. */
static void fetch_collected(cairn_event *event, const struct cn_err *err)
{
    if (err)
        cn_compiled_reject(event, err->code == CN_ELIMIT ? "RangeError" : "Error", err->text);
    else
        cn_compiled_handle(event, event->object->class_->table.fetch);
}

static void run(cairn_event *event)
{
    const struct cn_module_class *class_ = event->object->class_;
    const cairn_value *body = cn_value_get(event->document.root, "body");
    if (event->kind == CN_COMPILED_TARGET)
        cn_compiled_deliver_target(event->object, event);
    else if (event->kind == CN_COMPILED_FETCH && !class_->table.fetch_stream &&
             cn_value_kind(body) == CAIRN_STREAM)
        cn_compiled_collect(event, fetch_collected);
    else
        cn_compiled_handle(event, function_of(class_, event->kind));
}

void cn_compiled_ask(cairn_object *self, const struct cn_compiled_question *question,
                     cairn_event **place)
{
    struct cn_err err;
    if (self->event_count >= CN_COMPILED_EVENTS_MAX) { /* W4 */
        turn_away(question, "The worker is overloaded: too many events are under way.");
        return;
    }
    cairn_event *event = cn_compiled_event_new(self, question->kind);
    struct cn_compiled_asked *asked = CN_NEW(struct cn_compiled_asked);
    event->asked = asked;
    self->event_count++;
    asked->ended = question->ended;
    asked->data = question->data;
    asked->http = question->http;
    asked->open_body = question->open_body;
    asked->address = cn_strdup(question->address ? question->address : "");
    if (question->method)
        event->method = question->method;
    self->origin = question->origin;
    self->trace = event->trace = question->trace;
    self->loops = 0;
    *place = event;
    if (read_question(event, question, &err) < 0)
        cn_compiled_reject(event, "TypeError", err.text);
    else {
        if (question->http)
            self->loops = cn_fetch_loops(cn_outside_header(asked, "cdn-loop"));
        run(event);
    }
    self->host->turn_ended(self->host->data); /* W1 */
}

void cn_compiled_forget(cairn_event *event)
{
    event->asked->data = NULL;
    event->asked->http = NULL;
    event->method = "";
    if (event->kind != CN_COMPILED_TARGET)
        return;
    cn_compiled_forget_pull(event);
    cn_compiled_event_free(event);
}

/* What the asker gets of an event that has ended well. Negative: it has not. */
static int make_answer(cairn_event *event, struct cn_compiled_answer *answer, struct cn_err *err)
{
    switch (event->kind) {
    case CN_COMPILED_FETCH:
        if (event->asked->http) {
            answer->status = event->status;
            answer->headers = &event->headers;
            answer->body = &event->body;
            answer->stream = event->stream;
            answer->socket = event->socket[0] ? event->socket : NULL;
            return 0;
        }
        cn_compiled_build_response(event);
        event->stream = NULL;
        break;
    case CN_COMPILED_CALL:
    case CN_COMPILED_TARGET:
        break;
    case CN_COMPILED_QUEUE:
        answer->bytes = cn_batch_verdicts(event, false, &answer->size);
        return 0;
    default:
        return 0;
    }
    answer->bytes = cn_builder_take(&event->result, &answer->size, err);
    return answer->bytes ? 0 : err->code;
}

/* A batch that fails has verdicts all the same. */
static void make_failure(cairn_event *event, const struct cn_compiled_error *error,
                         struct cn_compiled_answer *answer)
{
    if (event->kind == CN_COMPILED_QUEUE) {
        cn_api_log(event->object, CAIRN_FAILURE, "queue() failed: %s", error->text);
        answer->bytes = cn_batch_verdicts(event, true, &answer->size);
        return;
    }
    answer->error_type = error->type;
    answer->error = error->text;
    answer->bytes = cn_compiled_error_bytes(event->object, error, &answer->size);
}

void cn_compiled_worker_end(cairn_event *event, const struct cn_compiled_error *error)
{
    struct cn_compiled_asked *asked = event->asked;
    cairn_object *self = event->object;
    struct cn_compiled_answer answer = {0};
    struct cn_err err;
    void *data = asked->data;
    event->done = true;
    cn_compiled_event_hide(event);
    if (data && !error && make_answer(event, &answer, &err) < 0) {
        cn_compiled_fault(self, &err);
        error = self->error;
    }
    if (data && error) {
        cn_compiled_trace_failed(self, event->trace, error->type, error->text);
        make_failure(event, error, &answer);
    } else if (data) {
        cn_compiled_trace_status(event);
    }
    asked->data = NULL;
    if (data)
        asked->ended(data, &answer); /* W2 */
    cn_free(answer.bytes);
    cairn_stream *left = answer.stream ? answer.stream : data ? NULL : event->stream;
    event->stream = NULL;
    if (left)
        cn_compiled_abandon(left); /* nobody wants it */
    if (!event->running)
        cn_compiled_event_free(event);
}
