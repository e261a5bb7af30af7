/* SPDX-License-Identifier: Apache-2.0 */
/* module/async.c - what an object of a module has under way: calls to other objects, timers,
 * questions to history.
 *
 * Each is a struct cn_pending in its object's list. When it ends, the object's function runs in a
 * turn of the object; if the object has gone meanwhile, nobody is told.
 *
 *     started ──► ended: function of the object, in a turn; freed
 *        └──► the object goes: `self` is NULL; freed when it ends
 *
 * N1  What is pending holds its object in memory, as timers and calls of JavaScript do; the core
 *     lets such an object go when no event has come for long.
 * N2  Calls leave by the object's output gate, and their answers come as letters of their own:
 *     never from inside the function that asked.
 * N3  Bounded: PENDING_MAX of an object. */
#include "module/api.h"
#include "module/async.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"
#include "base/mem.h"
#include "module/crash.h"
#include "module/fetch.h"
#include "module/guard.h"
#include "module/internal.h"
#include "module/lent.h"
#include "module/pending.h"
#include "object/message.h"
#include "object/node.h"
#include "object/restore.h"

#define PENDING_MAX 10000
#define BLOCK_MS_MAX 30000

struct call {
    struct cn_pending base;
    struct cn_message message;
};

struct question {
    struct cn_pending base;
    struct cn_restore_request restore;
};

struct cn_compiled_timer {
    struct cn_pending base;
    uv_timer_t timer;
    int64_t number;
};

/* --- pending things -------------------------------------------------------------------------- */

int cn_pending_admit(cairn_object *self)
{
    if (cn_compiled_is_gone(self))
        return cn_compiled_refuse(self, CAIRN_ECLOSED, "the object was reset");
    if (!self->running)
        return cn_compiled_refuse(self, CAIRN_EMISUSE, "nothing can be started from here");
    if (self->pending_count == PENDING_MAX)
        return cn_compiled_refuse(self, CAIRN_ELIMIT,
                                  "an object has 10000 calls and timers under way at most");
    return 0;
}

/* The same for what only objects have. */
static int admit_object(cairn_object *self)
{
    if (!self->object)
        return cn_compiled_refuse(self, CAIRN_EMISUSE, "a worker has no storage and no gates");
    return cn_pending_admit(self);
}

void cn_pending_start(struct cn_pending *pending, cairn_object *self, cairn_done done, void *data)
{
    pending->self = self;
    pending->done = done;
    pending->data = data;
    pending->origin = self->origin;
    pending->trace = self->trace;
    pending->loops = self->loops;
    cn_list_push_back(&self->pending, &pending->link);
    self->pending_count++;
    if (self->object)
        cn_object_hold(self->object); /* N1 */
}

void cn_pending_let_go(cairn_object *self)
{
    if (self->object)
        cn_object_unhold(self->object);
}

uv_loop_t *cn_pending_loop(const cairn_object *self)
{
    return self->object ? self->object->lane->loop : self->host->loop;
}

struct cn_desk *cn_pending_desk(const cairn_object *self)
{
    return self->object ? self->object->lane->desk : self->host->desk;
}

cairn_object *cn_pending_leave(struct cn_pending *pending)
{
    cairn_object *self = pending->self;
    pending->self = NULL;
    if (!self)
        return NULL;
    cn_list_remove(&pending->link);
    self->pending_count--;
    return self;
}

static void run_done(cairn_object *self, const struct cn_pending *pending,
                     const struct cn_pending_end *end)
{
    struct cairn_reply reply = {.size = sizeof(reply), .error = end->error};
    if (end->bytes)
        reply.value = cn_compiled_lend_value(self, end->bytes, end->size);
    if (!reply.error && end->bytes && !reply.value)
        reply.error = cn_api_error_text(self); /* C cannot read it */
    cairn_stream *stream = end->stream;
    if (pending->streams && !reply.error) {
        stream = cn_api_stream_open(self, cn_value_get(reply.value, "body"));
        if (!stream)
            reply.error = cn_api_error_text(self);
    }
    reply.stream = cn_guard_show(stream);
    reply.retryable = (end->faults & CN_FAULT_RETRYABLE) != 0;
    reply.overloaded = (end->faults & CN_FAULT_OVERLOADED) != 0;
    pending->done(cn_guard_show(self), self->instance, &reply, pending->data);
}

static void run_function(cairn_object *self, const struct cn_pending *pending,
                         const struct cn_pending_end *end)
{
    self->origin = pending->origin;
    self->trace = pending->trace;
    self->loops = pending->loops;
    if (pending->ended) {
        pending->ended(self, pending->data, end);
        return;
    }
    cn_compiled_enter(self);
    const struct cn_module_class *before = cn_module_crash_note(self->class_);
    if (end && pending->done)
        run_done(self, pending, end);
    else if (!end)
        pending->fired(cn_guard_show(self), self->instance, pending->data);
    cn_module_crash_note(before);
    if (cn_compiled_leave(self) < 0)
        cn_api_log(self, CAIRN_FAILURE, "%s", cn_api_error_text(self));
}

void cn_pending_tell(cairn_object *self, const struct cn_pending *pending,
                     const struct cn_pending_end *end)
{
    struct cn_object *object = self->object;
    if (!object) {
        run_function(self, pending, end);
        self->host->turn_ended(self->host->data);
        return;
    }
    if (!cn_object_is_broken(object)) {
        cn_object_enter(object);
        run_function(self, pending, end);
        cn_object_leave(object);
    }
    cn_object_unhold(object);
}

static void stop_block_timer(cairn_object *self);

static void timer_closed(uv_handle_t *handle)
{
    cn_free(CN_CONTAINER_OF((uv_timer_t *)handle, struct cn_compiled_timer, timer));
}

void cn_compiled_drop_pending(cairn_object *self)
{
    CN_LIST_FOREACH(&self->pending, node)
    {
        struct cn_pending *pending = CN_CONTAINER_OF(node, struct cn_pending, link);
        cn_pending_leave(pending);
        if (pending->dropped)
            pending->dropped(pending);
    }
    stop_block_timer(self);
}

int cn_pending_depth(cairn_object *self)
{
    if (self->origin.depth < CN_CALL_DEPTH_MAX)
        return 0;
    return cn_compiled_refuse(self, CAIRN_ELIMIT,
                              "Subrequest depth limit exceeded: workers and objects have "
                              "called one another 32 times, each call made by the one before.");
}

uint8_t *cn_pending_arguments(cairn_object *self, cairn_builder *arguments, size_t *size)
{
    struct cn_err err;
    if (!arguments || cn_builder_is_empty(arguments)) {
        arguments = cn_compiled_lend_builder(self);
        cn_build_array(arguments);
        cn_build_end(arguments);
    }
    uint8_t *bytes = cn_builder_take(arguments, size, &err);
    if (!bytes) {
        cn_compiled_fault(self, &err);
        return NULL;
    }
    if (!cn_builder_is_array(bytes, *size)) {
        cn_free(bytes);
        cn_compiled_refuse(self, CAIRN_EMISUSE, "the arguments of a call are an array");
        return NULL;
    }
    return bytes;
}

/* --- calls ----------------------------------------------------------------------------------- */

static struct call *call_of(struct cn_envelope *envelope)
{
    return CN_CONTAINER_OF(cn_message_of(envelope), struct call, message);
}

static void call_free(struct call *call)
{
    cn_message_fini(&call->message);
    cn_free(call);
}

/* The object was reset before its gate opened, or its lane has ended. */
static void on_drop(struct cn_envelope *envelope)
{
    struct call *call = call_of(envelope);
    cairn_object *self = cn_pending_leave(&call->base);
    if (self)
        cn_pending_let_go(self);
    call_free(call);
}

/* The parts of a response become what C reads. */
static void read_response(const struct cn_message *message, cairn_builder *builder,
                          struct cn_err *err)
{
    struct cn_document document = {0};
    int rc = cn_document_read(&document, message->result, message->result_size, err);
    if (rc == 0)
        rc = cn_response_build(builder, document.root, err);
    if (rc == 0)
        (void)cn_builder_finish(builder, err); /* `err` says it */
    cn_document_fini(&document);
}

static void on_done(struct cn_envelope *envelope)
{
    struct call *call = call_of(envelope);
    struct cn_message *message = &call->message;
    cairn_object *self = cn_pending_leave(&call->base);
    if (self) {
        cairn_builder builder;
        struct cn_err err = {0};
        cn_builder_init(&builder, 64u << 20);
        cn_message_settle(message);
        struct cn_pending_end end = {envelope->err.code ? envelope->err.text : NULL,
                                     envelope->faults, message->result, message->result_size, NULL};
        if (message->call.kind == CN_CALL_FETCH && !end.error) {
            read_response(message, &builder, &err);
            end.error = err.code ? err.text : NULL;
            end.bytes = err.code ? NULL : builder.bytes.data;
            end.size = builder.bytes.size;
        }
        cn_pending_tell(self, &call->base, &end);
        cn_builder_fini(&builder);
    }
    call_free(call);
}

/* Whom a call goes to. */
struct target {
    struct cn_namespace *ns;
    uint8_t id[CN_OBJECT_ID_SIZE];
    const char *name; /* NULL: not known */
};

/* `method` NULL: a request. */
static void send_bytes(cairn_object *self, const struct target *to, const char *method,
                       const struct cn_compiled_letter *letter)
{
    struct call *sent = CN_NEW(struct call);
    struct cn_message *message = &sent->message;
    struct cn_call *call = &message->call;
    cn_pending_start(&sent->base, self, letter->done, letter->data);
    sent->base.streams = letter->streams;
    message->method = method ? cn_strdup(method) : NULL;
    message->bytes = letter->bytes;
    message->size = call->size = letter->size;
    call->kind = method ? CN_CALL_RPC : CN_CALL_FETCH;
    call->payload = message;
    call->ns = to->ns;
    call->key.namespace_id = to->ns->id;
    memcpy(call->key.id, to->id, CN_OBJECT_ID_SIZE);
    if (to->name) {
        call->name_size = strlen(to->name);
        call->name = cn_strndup(to->name, call->name_size);
    }
    call->envelope.origin = self->origin;
    call->envelope.origin.depth++;
    call->envelope.from = cn_desk_place(cn_pending_desk(self));
    call->envelope.on_done = on_done;
    call->envelope.drop = on_drop;
    cn_call_send(call, self->object);
}

static int send_call(cairn_object *self, const struct target *to, const char *method,
                     cairn_builder *arguments, cairn_done done, void *data)
{
    struct cn_compiled_letter letter = {.done = done, .data = data};
    int rc = cn_pending_depth(self);
    if (rc < 0)
        return rc;
    letter.bytes = cn_pending_arguments(self, arguments, &letter.size);
    if (!letter.bytes)
        return CAIRN_EMISUSE;
    send_bytes(self, to, method, &letter);
    return 0;
}

static struct cn_namespace *find_namespace(cairn_object *self, const char *binding)
{
    struct cn_namespace *ns = cn_modules_namespace(self->class_->modules, binding);
    char text[200];
    if (!ns) {
        snprintf(text, sizeof(text), "there is no Durable Object binding \"%.100s\"", binding);
        cn_compiled_refuse(self, CAIRN_EMISUSE, text);
    }
    return ns;
}

int cn_api_object_call(cairn_object *self, const char *binding, const char *name,
                       const char *method, cairn_builder *arguments, cairn_done done, void *data)
{
    int rc = cn_pending_admit(self);
    struct target to = {.ns = rc == 0 ? find_namespace(self, binding) : NULL, .name = name};
    if (!to.ns)
        return rc < 0 ? rc : CAIRN_EMISUSE;
    cn_id_from_name(&to.ns->keys, CN_JURISDICTION_NONE, name, strlen(name), to.id);
    return send_call(self, &to, method, arguments, done, data);
}

int cn_compiled_object_fetch(cairn_object *self, const char *binding, const char *name,
                             const struct cn_compiled_letter *letter)
{
    struct target to = {.ns = find_namespace(self, binding), .name = name};
    int rc = cn_pending_depth(self);
    if (!to.ns || rc < 0) {
        cn_free(letter->bytes);
        return rc < 0 ? rc : CAIRN_EMISUSE;
    }
    cn_id_from_name(&to.ns->keys, CN_JURISDICTION_NONE, name, strlen(name), to.id);
    send_bytes(self, &to, NULL, letter);
    return 0;
}

int cn_api_object_call_id(cairn_object *self, const char *binding, const char *hex,
                          const char *method, cairn_builder *arguments, cairn_done done, void *data)
{
    int rc = cn_pending_admit(self);
    struct target to = {.ns = rc == 0 ? find_namespace(self, binding) : NULL};
    if (!to.ns)
        return rc < 0 ? rc : CAIRN_EMISUSE;
    if (!cn_id_from_hex(hex, strlen(hex), to.id) || !cn_id_valid(&to.ns->keys, to.id))
        return cn_compiled_refuse(self, CAIRN_EMISMATCH, "it is no id of that binding's class");
    return send_call(self, &to, method, arguments, done, data);
}

int cn_compiled_call_stub(cairn_object *self, const struct cn_value_remote *stub,
                          const char *method, cairn_builder *arguments, cairn_done done, void *data)
{
    int rc = cn_pending_admit(self);
    struct target to = {.name = stub->name};
    if (rc < 0)
        return rc;
    const struct cn_object_lane *lane = self->object ? self->object->lane : self->host->objects;
    to.ns = lane ? cn_node_namespace_find(lane->node, stub->ns) : NULL;
    if (!to.ns || !cn_id_from_hex(stub->hex, strlen(stub->hex), to.id) ||
        !cn_id_valid(&to.ns->keys, to.id))
        return cn_compiled_refuse(self, CAIRN_ECLOSED, "the stub is of no object");
    return send_call(self, &to, method, arguments, done, data);
}

const char *cn_api_env(cairn_object *self, const char *name)
{
    return cn_modules_var(self->class_->modules, name);
}

/* --- timers ---------------------------------------------------------------------------------- */

static struct cn_compiled_timer *timer_of(uv_timer_t *handle)
{
    return CN_CONTAINER_OF(handle, struct cn_compiled_timer, timer);
}

static void on_timer(uv_timer_t *handle)
{
    struct cn_compiled_timer *timer = timer_of(handle);
    cairn_object *self = cn_pending_leave(&timer->base);
    uv_close((uv_handle_t *)handle, timer_closed);
    if (self)
        cn_pending_tell(self, &timer->base, NULL);
}

static void timer_dropped(struct cn_pending *pending)
{
    struct cn_compiled_timer *timer = CN_CONTAINER_OF(pending, struct cn_compiled_timer, base);
    uv_close((uv_handle_t *)&timer->timer, timer_closed);
}

int64_t cn_api_timer_start(cairn_object *self, int64_t delay, cairn_fired fired, void *data)
{
    int rc = cn_pending_admit(self);
    if (rc < 0)
        return rc;
    struct cn_compiled_timer *timer = CN_NEW(struct cn_compiled_timer);
    cn_pending_start(&timer->base, self, NULL, data);
    timer->base.kind = CN_PENDING_TIMER;
    timer->base.fired = fired;
    timer->base.dropped = timer_dropped;
    timer->number = ++self->last_timer;
    uv_timer_init(cn_pending_loop(self), &timer->timer);
    uv_timer_start(&timer->timer, on_timer, delay > 0 ? (uint64_t)delay : 0, 0);
    return timer->number;
}

int cn_api_timer_stop(cairn_object *self, int64_t number)
{
    CN_LIST_FOREACH(&self->pending, node)
    {
        struct cn_pending *pending = CN_CONTAINER_OF(node, struct cn_pending, link);
        if (pending->kind != CN_PENDING_TIMER ||
            CN_CONTAINER_OF(pending, struct cn_compiled_timer, base)->number != number)
            continue;
        cn_pending_leave(pending);
        timer_dropped(pending);
        cn_pending_let_go(self);
        return 1;
    }
    return 0;
}

/* --- history --------------------------------------------------------------------------------- */

static void on_restore(struct cn_restore_request *request, const struct cn_err *err)
{
    struct question *question = CN_CONTAINER_OF(request, struct question, restore);
    cairn_object *self = cn_pending_leave(&question->base);
    if (self) {
        cairn_builder builder;
        struct cn_err ignored;
        cn_builder_init(&builder, 1024);
        if (!err)
            cn_build_text(&builder, request->bookmark, strlen(request->bookmark));
        (void)cn_builder_finish(&builder, &ignored); /* a short text always is */
        struct cn_pending_end end = {err ? err->text : NULL, 0, err ? NULL : builder.bytes.data,
                                     builder.bytes.size, NULL};
        cn_pending_tell(self, &question->base, &end);
        cn_builder_fini(&builder);
    }
    cn_free(question);
}

static struct cn_restore_request *ask(cairn_object *self, cairn_done done, void *data)
{
    struct question *question = CN_NEW(struct question);
    cn_pending_start(&question->base, self, done, data);
    question->restore.done = on_restore;
    return &question->restore;
}

int cn_api_bookmark_now(cairn_object *self, cairn_done done, void *data)
{
    int rc = admit_object(self);
    if (rc == 0)
        cn_restore_bookmark_now(self->object, ask(self, done, data));
    return rc;
}

int cn_api_bookmark_at(cairn_object *self, int64_t time, cairn_done done, void *data)
{
    int rc = admit_object(self);
    if (rc == 0)
        cn_restore_bookmark_at(self->object, time, ask(self, done, data));
    return rc;
}

int cn_api_restore(cairn_object *self, const char *bookmark, cairn_done done, void *data)
{
    int rc = admit_object(self);
    if (rc == 0)
        cn_restore_next(self->object, &self->object->key, bookmark, strlen(bookmark),
                        ask(self, done, data));
    return rc;
}

/* --- the input gate -------------------------------------------------------------------------- */

/* The block has lasted too long (DO-CTX-3). */
static void on_blocked(uv_timer_t *timer)
{
    cn_object_reset(timer_of(timer)->base.self->object, CN_FAULT_RESET | CN_FAULT_OVERLOADED,
                    CN_ETIMEOUT,
                    "block_concurrency() in a Durable Object lasted for too long, and the Durable "
                    "Object was reset.");
}

static void stop_block_timer(cairn_object *self)
{
    struct cn_compiled_timer *timer = self->block_timer;
    self->block_timer = NULL;
    if (timer)
        uv_close((uv_handle_t *)&timer->timer, timer_closed);
}

int cn_api_block_concurrency(cairn_object *self)
{
    int rc = admit_object(self);
    if (rc < 0)
        return rc;
    cn_object_lock(self->object);
    if (self->blocks++)
        return 0;
    struct cn_compiled_timer *timer = CN_NEW(struct cn_compiled_timer);
    timer->base.self = self;
    cn_list_init(&timer->base.link);
    self->block_timer = timer;
    uv_timer_init(cn_pending_loop(self), &timer->timer);
    uv_timer_start(&timer->timer, on_blocked, BLOCK_MS_MAX, 0);
    return 0;
}

int cn_api_unblock_concurrency(cairn_object *self)
{
    if (!self->blocks) /* nor has a worker any */
        return cn_compiled_refuse(self, CAIRN_EMISUSE, "concurrency is not blocked");
    if (--self->blocks == 0)
        stop_block_timer(self);
    cn_object_unlock(self->object);
    return 0;
}
