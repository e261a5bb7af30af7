/* SPDX-License-Identifier: Apache-2.0 */
/* module/object.c - objects of modules: their life, their events and the answers.
 *
 * The core has entered a turn of the object whenever a function here runs; what a function of the
 * class writes is committed at the end of that turn, and the answer waits for it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/mem.h"
#include "module/guard.h"
#include "module/api.h"
#include "module/crash.h"
#include "module/internal.h"
#include "module/lent.h"
#include "module/sockets.h"
#include "module/tracer.h"
#include "object/alarm.h"
#include "object/message.h"
#include "object/node.h"

/* A live object that has nothing under way and no database costs less than 1 kB, with its name, its
 * place in the table of its lane and a small instance of the module's
 * (docs/understand/performance.md). */
static_assert(sizeof(struct cn_object) + sizeof(cairn_object) <= 768, "costs every live object");

/* --- errors ---------------------------------------------------------------------------------- */

static struct cn_compiled_error *error_of(cairn_object *self)
{
    if (!self->error)
        self->error = CN_NEW(struct cn_compiled_error);
    return self->error;
}

static int code_of(int code)
{
    switch (code) {
    case CN_ESQL:
        return CAIRN_ESQL;
    case CN_ELIMIT:
    case CN_EOVERLOADED:
        return CAIRN_ELIMIT;
    case CN_ECLOSED:
        return CAIRN_ECLOSED;
    default:
        return CAIRN_ERROR;
    }
}

int cn_compiled_refuse(cairn_object *self, int code, const char *text)
{
    struct cn_compiled_error *error = error_of(self);
    snprintf(error->type, sizeof(error->type), "Error");
    snprintf(error->text, sizeof(error->text), "%s", text);
    return code;
}

int cn_compiled_fault(cairn_object *self, const struct cn_err *err)
{
    return cn_compiled_refuse(self, code_of(err->code), err->text);
}

/* What an event is told that has failed without a sentence. */
static const struct cn_compiled_error *last_error(cairn_object *self, int rc)
{
    struct cn_compiled_error *error = error_of(self);
    if (!error->text[0]) {
        snprintf(error->type, sizeof(error->type), "Error");
        snprintf(error->text, sizeof(error->text),
                 rc == CAIRN_EMISUSE
                     ? "the class %s has used cairn.h in a way that it forbids: the "
                       "log says how (%d)"
                     : "the class %s failed with %d and no error text",
                 self->class_->name, rc);
    }
    return error;
}

uint8_t *cn_compiled_error_bytes(cairn_object *self, const struct cn_compiled_error *error,
                                 size_t *size)
{
    cairn_builder builder;
    struct cn_err err;
    cn_builder_init(&builder, 4096);
    cn_build_error(&builder, error->type, error->text, self->object ? self->id : NULL);
    uint8_t *bytes = cn_builder_take(&builder, size, &err);
    cn_builder_fini(&builder);
    return bytes;
}

bool cn_compiled_is_gone(const cairn_object *self)
{
    return self->object && cn_object_is_broken(self->object);
}

/* --- functions of the class ------------------------------------------------------------------ */

struct lent {
    struct cn_list link; /* in cairn_object.lent */
    struct cn_document document;
    uint8_t *bytes; /* owned */
    cairn_builder builder;
};

static struct lent *lend(cairn_object *self)
{
    struct lent *lent = CN_NEW(struct lent);
    cn_builder_init(&lent->builder, CN_MESSAGE_SIZE_MAX);
    cn_guard_add(&lent->builder, CN_GUARD_BUILDER, self);
    cn_list_push_back(&self->lent, &lent->link);
    return lent;
}

static void take_back(cairn_object *self)
{
    struct cn_list *node;
    while ((node = cn_list_take_front(&self->lent))) {
        struct lent *lent = CN_CONTAINER_OF(node, struct lent, link);
        cn_guard_remove(&lent->builder);
        cn_compiled_end_document(self, &lent->document);
        cn_builder_fini(&lent->builder);
        cn_free(lent->bytes);
        cn_free(lent);
    }
}

const cairn_value *cn_compiled_lend_value(cairn_object *self, const void *bytes, size_t size)
{
    struct cn_err err;
    struct lent *lent = lend(self);
    lent->bytes = cn_memdup(bytes, size);
    if (cn_document_read(&lent->document, lent->bytes, size, &err) < 0)
        cn_compiled_fault(self, &err);
    return lent->document.root;
}

cairn_builder *cn_compiled_lend_builder(cairn_object *self)
{
    return &lend(self)->builder;
}

void cn_compiled_enter(cairn_object *self)
{
    if (self->running++ == 0) {
        if (self->error)
            self->error->text[0] = '\0';
        CN_ASSERT(!self->transactions);
        cn_compiled_trace_enter(self);
    }
}

int cn_compiled_leave(cairn_object *self)
{
    CN_ASSERT(self->running);
    if (--self->running)
        return 0;
    take_back(self);
    if (self->busy)
        cn_compiled_reset_statements(self);
    cn_compiled_trace_leave(self);
    return self->transactions ? cn_compiled_undo_transactions(self) : 0;
}

/* Calls a function of the class for an event. */
static int run(cairn_object *self, cairn_event *event,
               int (*function)(cairn_object *object, void *instance, cairn_event *event))
{
    cn_compiled_enter(self);
    const struct cn_module_class *before = cn_module_crash_note(self->class_);
    int rc = function(cn_guard_show(self), self->instance, cn_guard_show(event));
    cn_module_crash_note(before);
    int left = cn_compiled_leave(self);
    return left < 0 ? left : rc;
}

/* --- events ---------------------------------------------------------------------------------- */

void cn_compiled_event_hide(cairn_event *event)
{
    cn_guard_remove(event);
    cn_guard_remove(&event->result);
}

void cn_compiled_event_free(cairn_event *event)
{
    CN_ASSERT(!event->call);
    cn_compiled_event_hide(event);
    cn_list_remove(&event->link);
    if (event->asked) {
        cn_compiled_asked_free(event->asked);
        event->object->event_count--;
    }
    cn_compiled_end_document(event->object, &event->document);
    cn_builder_fini(&event->result);
    cn_buf_fini(&event->headers);
    cn_buf_fini(&event->body);
    cn_buf_fini(&event->request);
    cn_free(event->bytes);
    cn_free(event);
}

/* The core takes the call back: the object was reset. */
static void on_taken_back(struct cn_call *call)
{
    cairn_event *event = (cairn_event *)(uintptr_t)call->tag;
    event->call = NULL;
}

cairn_event *cn_compiled_event_new(cairn_object *self, enum cn_compiled_kind kind)
{
    cairn_event *event = CN_NEW(cairn_event);
    event->object = self;
    event->kind = kind;
    event->method = "";
    event->status = 200;
    cn_builder_init(&event->result, CN_MESSAGE_SIZE_MAX);
    cn_guard_add(event, CN_GUARD_EVENT, self);
    cn_guard_add(&event->result, CN_GUARD_BUILDER, self);
    cn_list_push_back(&self->events, &event->link);
    return event;
}

static cairn_event *event_new(cairn_object *self, struct cn_call *call, enum cn_compiled_kind kind)
{
    cairn_event *event = cn_compiled_event_new(self, kind);
    event->call = call;
    event->trace = call->trace;
    call->tag = (uint64_t)(uintptr_t)event;
    call->taken_back = on_taken_back;
    return event;
}

/* The event ends. Its call is the caller's from here on. */
static struct cn_call *end(cairn_event *event)
{
    struct cn_call *call = event->call;
    event->call = NULL;
    event->done = true;
    cn_compiled_event_hide(event);
    if (!event->running)
        cn_compiled_event_free(event);
    return call;
}

static void fail(cairn_event *event, const struct cn_compiled_error *error)
{
    cairn_object *self = event->object;
    if (event->stream && (event->call || event->asked))
        cn_compiled_abandon(event->stream);
    event->stream = NULL;
    if (event->asked) {
        cn_compiled_worker_end(event, error);
        return;
    }
    if (event->kind == CN_COMPILED_ALARM)
        cn_api_log(self, CAIRN_FAILURE, "alarm() failed: %s", error->text);
    struct cn_call *call = end(event);
    if (!call)
        return;
    cn_compiled_trace_failed(self, call->trace, error->type, error->text);
    cn_compiled_trace_end(self, call->trace, "exception");
    if (call->kind != CN_CALL_ALARM) {
        struct cn_message *message = call->payload;
        message->result = cn_compiled_error_bytes(self, error, &message->result_size);
    }
    cn_call_fail(call, CN_FAULT_REMOTE, CN_EABORTED, "%s", error->text);
}

static void answer(cairn_event *event)
{
    struct cn_err err;
    struct cn_call *call = event->call;
    if (event->asked) {
        cn_compiled_worker_end(event, NULL);
        return;
    }
    if (!call) {
        end(event); /* the object was reset */
        return;
    }
    cairn_object *self = event->object;
    if (event->kind == CN_COMPILED_ALARM) {
        cn_alarm_succeeded(call->object);
        cn_compiled_trace_end(self, call->trace, NULL);
        cn_call_reply(end(event), NULL);
        return;
    }
    struct cn_message *message = call->payload;
    if (event->kind == CN_COMPILED_FETCH)
        cn_compiled_build_response(event);
    cn_lent_list_move(&message->lent, &event->result.given);
    message->result = cn_builder_take(&event->result, &message->result_size, &err);
    if (!message->result) {
        cn_lent_list_fini(&message->lent); /* of no answer */
        cn_compiled_fault(self, &err);
        fail(event, last_error(self, err.code));
        return;
    }
    cn_compiled_trace_status(event);
    cn_compiled_trace_end(self, call->trace, NULL);
    cn_call_reply(end(event), call->payload);
}

void cn_compiled_handle(cairn_event *event,
                        int (*function)(cairn_object *object, void *instance, cairn_event *event))
{
    cairn_object *self = event->object;
    event->running = true;
    cn_compiled_trace_event(event);
    int rc = run(self, event, function);
    event->running = false;
    if (event->done || (!event->call && !event->asked))
        cn_compiled_event_free(event); /* answered in there, or reset */
    else if (rc == CAIRN_LATER || event->passed_on)
        return;
    else if (rc < 0)
        fail(event, last_error(self, rc));
    else
        answer(event);
}

void cn_compiled_reject(cairn_event *event, const char *type, const char *text)
{
    struct cn_compiled_error error;
    snprintf(error.type, sizeof(error.type), "%s", type);
    snprintf(error.text, sizeof(error.text), "%s", text);
    if (event->kind == CN_COMPILED_CALL)
        cn_compiled_trace_event(event); /* the others cannot be read */
    fail(event, &error);
}

/* --- the class ------------------------------------------------------------------------------- */

int cn_compiled_begin(cairn_object *self, struct cn_err *err)
{
    const struct cn_module_class *class_ = self->class_;
    if (!class_->table.create)
        return 0;
    cn_compiled_enter(self);
    const struct cn_module_class *before = cn_module_crash_note(class_);
    int rc = class_->table.create(cn_guard_show(self), &self->instance);
    cn_module_crash_note(before);
    int left = cn_compiled_leave(self);
    if (left < 0 || rc < 0)
        return cn_err_set(err, CN_EABORTED, "%s", last_error(self, left < 0 ? left : rc)->text);
    return 0;
}

static int on_create(struct cn_object *object, void *class_data, void **out, struct cn_err *err)
{
    const struct cn_module_class *class_ = class_data;
    cairn_object *self = CN_NEW(cairn_object);
    cn_guard_add(self, CN_GUARD_OBJECT, self);
    self->object = object;
    self->host = object->lane->host; /* NULL: nobody reads streams here */
    self->class_ = class_;
    cn_modules_ref(class_->modules); /* M2 */
    cn_list_init(&self->events);
    cn_list_init(&self->statements);
    cn_list_init(&self->lent);
    cn_list_init(&self->pending);
    cn_id_to_hex(object->key.id, self->id);
    *out = self;
    /* Its name may be known only to the database, from an earlier call. */
    if (!object->name && !cn_object_database(object, err))
        return err->code;
    int rc = cn_compiled_begin(self, err);
    self->stillborn = rc < 0 && !cn_object_is_broken(object);
    return rc;
}

static void deliver_call(cairn_object *self, struct cn_call *call)
{
    struct cn_message *message = call->payload;
    cairn_event *event = event_new(self, call, CN_COMPILED_CALL);
    struct cn_err err;
    char text[300];
    event->bytes = message->bytes;
    message->bytes = NULL;
    event->method = message->method ? message->method : "";
    if (cn_document_read(&event->document, event->bytes, message->size, &err) < 0) {
        cn_compiled_reject(event, "TypeError", err.text);
        return;
    }
    if (!self->class_->table.call || cn_value_kind(event->document.root) != CAIRN_ARRAY) {
        snprintf(text, sizeof(text), "The RPC receiver does not implement the %s \"%.200s\".",
                 self->class_->table.call ? "property" : "method", event->method);
        cn_compiled_reject(event, "TypeError", text);
        return;
    }
    cn_compiled_handle(event, self->class_->table.call);
}

/* The whole body is there, or will not be. */
static void fetch_collected(cairn_event *event, const struct cn_err *err)
{
    if (err)
        cn_compiled_reject(event, err->code == CN_ELIMIT ? "RangeError" : "Error", err->text);
    else
        cn_compiled_handle(event, event->object->class_->table.fetch);
}

static void deliver_fetch(cairn_object *self, struct cn_call *call)
{
    const struct cairn_class *table = &self->class_->table;
    struct cn_message *message = call->payload;
    cairn_event *event = event_new(self, call, CN_COMPILED_FETCH);
    struct cn_err err;
    event->bytes = message->bytes;
    message->bytes = NULL;
    if (!table->fetch && !table->fetch_stream)
        cn_compiled_reject(event, "TypeError", "The class has no fetch() function.");
    else if (cn_document_read(&event->document, event->bytes, message->size, &err) < 0 ||
             cn_compiled_check_request(event, &err) < 0)
        cn_compiled_reject(event, err.code == CN_ELIMIT ? "RangeError" : "TypeError", err.text);
    else if (table->fetch_stream)
        cn_compiled_handle(event, table->fetch_stream);
    else if (cn_value_kind(cn_value_get(event->document.root, "body")) == CAIRN_STREAM)
        cn_compiled_collect(event, fetch_collected);
    else
        cn_compiled_handle(event, table->fetch);
}

static void deliver_alarm(cairn_object *self, struct cn_call *call)
{
    const struct cn_alarm_info *info = call->payload;
    cairn_event *event = event_new(self, call, CN_COMPILED_ALARM);
    event->scheduled_ms = info->scheduled_ms;
    event->retries = info->retry_count;
    cn_alarm_begin(self->object, info);
    if (!self->class_->table.alarm)
        cn_compiled_reject(event, "TypeError", "The class has no alarm() function.");
    else
        cn_compiled_handle(event, self->class_->table.alarm);
}

static void on_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    cairn_object *self = instance;
    const struct cn_message *message =
        call->kind == CN_CALL_RPC || call->kind == CN_CALL_FETCH ? call->payload : NULL;
    if (message && message->home_serial) {
        /* Sent when the class was one of JavaScript. */
        cn_call_fail(call, CN_FAULT_RESET | CN_FAULT_RETRYABLE, CN_ECLOSED,
                     "Durable Object reset because its code was updated.");
        return;
    }
    cn_compiled_trace_call(self, call);
    switch (call->kind) {
    case CN_CALL_RPC:
        deliver_call(self, call);
        return;
    case CN_CALL_FETCH:
        deliver_fetch(self, call);
        return;
    case CN_CALL_ALARM:
        deliver_alarm(self, call);
        return;
    case CN_CALL_SOCKET:
        cn_compiled_deliver_socket(self, call);
        return;
    case CN_CALL_OTHER:
        cn_compiled_deliver_lent(self, call);
        return;
    default:
        CN_UNREACHABLE(); /* calls of the core are no class's */
    }
}

static void on_release(struct cn_object *object, void *instance)
{
    cn_compiled_release_statements(instance);
}

void cn_compiled_finish(cairn_object *self)
{
    self->going = true;
    cn_compiled_drop_pending(self);
    if (self->class_->table.destroy) {
        const struct cn_module_class *before = cn_module_crash_note(self->class_);
        self->class_->table.destroy(cn_guard_show(self), self->instance);
        cn_module_crash_note(before);
    }
    CN_LIST_FOREACH(&self->events, node)
    {
        cairn_event *event = CN_CONTAINER_OF(node, cairn_event, link);
        CN_ASSERT(!event->call); /* the core has failed it */
        cn_compiled_event_free(event);
    }
    cn_compiled_free_statements(self);
    take_back(self);
    cn_compiled_drop_outside(self);
    cn_guard_remove(self);
    cn_free(self->error);
    cn_modules_unref(self->class_->modules);
    cn_free(self);
}

static void on_destroy(struct cn_object *object, void *instance)
{
    cn_compiled_finish(instance);
}

/* What create() said reaches the callers as it would from a method. */
static void on_failed(struct cn_object *object, void *instance, struct cn_call *call)
{
    cairn_object *self = instance;
    cn_compiled_trace_end(self, call->trace, "exception");
    bool carries = call->kind == CN_CALL_RPC || call->kind == CN_CALL_FETCH;
    if (!carries || !self->stillborn || !self->error)
        return;
    struct cn_message *message = call->payload;
    cn_free(message->result);
    message->result = cn_compiled_error_bytes(self, self->error, &message->result_size);
}

const struct cn_class cn_compiled_class = {
    .create = on_create,
    .deliver = on_deliver,
    .release = on_release,
    .destroy = on_destroy,
    .failed = on_failed,
    .lets_go = true,
};

void cn_compiled_retire(struct cn_object_lane *lane,
                        bool (*is_current)(const struct cn_modules *modules, void *data),
                        void *data, unsigned faults, const char *text)
{
    struct cn_buf old = {0}; /* of struct cn_object *: a reset takes one out of the table */
    const struct cn_map_entry *entry;
    for (size_t cursor = 0; cn_map_next(&lane->objects, &cursor, &entry);) {
        struct cn_object *object = entry->value;
        cairn_object *self = object->class_ == &cn_compiled_class ? object->instance : NULL;
        if (self && !is_current(self->class_->modules, data))
            cn_buf_append(&old, &object, sizeof(struct cn_object *));
    }
    for (size_t at = 0; at < old.size; at += sizeof(struct cn_object *)) {
        struct cn_object *object;
        memcpy(&object, old.data + at, sizeof(struct cn_object *));
        cn_object_reset(object, faults, CN_EABORTED, "%s", text);
    }
    cn_buf_fini(&old);
}

/* --- what the api has of it ------------------------------------------------------------------ */

void cn_compiled_answer(cairn_event *event)
{
    answer(event);
}

void cn_compiled_fail(cairn_event *event)
{
    fail(event, last_error(event->object, CAIRN_ERROR));
}
