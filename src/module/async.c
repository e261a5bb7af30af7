/* SPDX-License-Identifier: Apache-2.0 */
/* module/async.c - what an object of a module has under way: calls to other objects, timers,
 * questions to history.
 *
 * Each is a struct pending in its object's list. When it ends, the object's function runs in a turn
 * of the object; if the object has gone meanwhile, nobody is told.
 *
 *     started ──► ended: function of the object, in a turn; freed
 *        └──► the object goes: `self` is NULL; freed when it ends
 *
 * N1  What is pending holds its object in memory, as timers and calls of JavaScript do; the core
 * lets such an object go when no event has come for long. N2  Calls leave by the object's output
 * gate, and their answers come as letters of their own: never from inside the function that asked.
 * N3  Bounded: PENDING_MAX of an object. */
#include "module/async.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"
#include "base/mem.h"
#include "module/crash.h"
#include "module/internal.h"
#include "object/message.h"
#include "object/node.h"
#include "object/restore.h"

#define PENDING_MAX 10000
#define BLOCK_MS_MAX 30000

enum pending_kind { PENDING_CALL, PENDING_TIMER, PENDING_RESTORE };

struct cn_compiled_pending {
    struct cn_list link; /* in cairn_object.pending; alone once the object has gone */
    cairn_object *self;  /* NULL: it has gone */
    enum pending_kind kind;
    cairn_done done;
    cairn_fired fired;
    void *data;
    struct cn_origin origin; /* of the event that it was started for */
    union {
        struct cn_message message;
        struct cn_restore_request restore;
        struct {
            uv_timer_t timer;
            int64_t number;
        };
    };
};

/* --- pending things -------------------------------------------------------------------------- */

static int admit(cairn_object *self)
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
    return admit(self);
}

static struct cn_compiled_pending *start(cairn_object *self, enum pending_kind kind, void *data)
{
    struct cn_compiled_pending *pending = CN_NEW(struct cn_compiled_pending);
    pending->self = self;
    pending->kind = kind;
    pending->data = data;
    pending->origin = self->origin;
    cn_list_push_back(&self->pending, &pending->link);
    self->pending_count++;
    if (self->object)
        cn_object_hold(self->object); /* N1 */
    return pending;
}

static void let_go(cairn_object *self)
{
    if (self->object)
        cn_object_unhold(self->object);
}

static uv_loop_t *loop_of(const cairn_object *self)
{
    return self->object ? self->object->lane->loop : self->host->loop;
}

static struct cn_desk *desk_of(const cairn_object *self)
{
    return self->object ? self->object->lane->desk : self->host->desk;
}

/* It is the object's no more. Returns that, or NULL if it has gone. */
static cairn_object *leave(struct cn_compiled_pending *pending)
{
    cairn_object *self = pending->self;
    pending->self = NULL;
    if (!self)
        return NULL;
    cn_list_remove(&pending->link);
    self->pending_count--;
    return self;
}

/* How something has ended: an error, or bytes of a value; the bytes of an error are what was
 * thrown. */
struct ending {
    const char *error; /* NULL: well */
    unsigned faults;   /* of enum cn_call_fault */
    const uint8_t *bytes;
    size_t size;
};

static void run_done(cairn_object *self, const struct cn_compiled_pending *pending,
                     const struct ending *ending)
{
    struct cairn_reply reply = {.size = sizeof(reply), .error = ending->error};
    if (ending->bytes)
        reply.value = cn_compiled_lend_value(self, ending->bytes, ending->size);
    if (!reply.error && ending->bytes && !reply.value)
        reply.error = cn_compiled_api.error_text(self); /* C cannot read it */
    reply.retryable = (ending->faults & CN_FAULT_RETRYABLE) != 0;
    reply.overloaded = (ending->faults & CN_FAULT_OVERLOADED) != 0;
    pending->done(self, self->instance, &reply, pending->data);
}

static void run_function(cairn_object *self, const struct cn_compiled_pending *pending,
                         const struct ending *ending)
{
    self->origin = pending->origin;
    cn_compiled_enter(self);
    const struct cn_module_class *before = cn_module_crash_note(self->class_);
    if (ending)
        run_done(self, pending, ending);
    else
        pending->fired(self, self->instance, pending->data);
    cn_module_crash_note(before);
    if (cn_compiled_leave(self) < 0)
        cn_compiled_api.log(self, CAIRN_FAILURE, "%s", cn_compiled_api.error_text(self));
}

/* Calls a function of the object in a turn of its own; `ending` NULL: a timer's. Lets go of N1. */
static void tell(cairn_object *self, const struct cn_compiled_pending *pending,
                 const struct ending *ending)
{
    struct cn_object *object = self->object;
    if (!object) {
        run_function(self, pending, ending);
        self->host->turn_ended(self->host->data);
        return;
    }
    if (!cn_object_is_broken(object)) {
        cn_object_enter(object);
        run_function(self, pending, ending);
        cn_object_leave(object);
    }
    cn_object_unhold(object);
}

static void stop_block_timer(cairn_object *self);

static void timer_closed(uv_handle_t *handle)
{
    cn_free(CN_CONTAINER_OF((uv_timer_t *)handle, struct cn_compiled_pending, timer));
}

void cn_compiled_drop_pending(cairn_object *self)
{
    CN_LIST_FOREACH(&self->pending, node)
    {
        struct cn_compiled_pending *pending =
            CN_CONTAINER_OF(node, struct cn_compiled_pending, link);
        leave(pending);
        if (pending->kind == PENDING_TIMER)
            uv_close((uv_handle_t *)&pending->timer, timer_closed);
    }
    stop_block_timer(self);
}

/* --- calls ----------------------------------------------------------------------------------- */

static struct cn_compiled_pending *pending_of(struct cn_envelope *envelope)
{
    return CN_CONTAINER_OF(cn_message_of(envelope), struct cn_compiled_pending, message);
}

static void call_free(struct cn_compiled_pending *pending)
{
    cn_message_fini(&pending->message);
    cn_free(pending);
}

/* The object was reset before its gate opened, or its lane has ended. */
static void on_drop(struct cn_envelope *envelope)
{
    struct cn_compiled_pending *pending = pending_of(envelope);
    cairn_object *self = leave(pending);
    if (self)
        let_go(self);
    call_free(pending);
}

static void on_done(struct cn_envelope *envelope)
{
    struct cn_compiled_pending *pending = pending_of(envelope);
    struct cn_message *message = &pending->message;
    cairn_object *self = leave(pending);
    if (self) {
        cn_message_settle(message);
        struct ending ending = {envelope->err.code ? envelope->err.text : NULL, envelope->faults,
                                message->result, message->result_size};
        tell(self, pending, &ending);
    }
    call_free(pending);
}

/* Whom a call goes to. */
struct target {
    struct cn_namespace *ns;
    uint8_t id[CN_OBJECT_ID_SIZE];
    const char *name; /* NULL: not known */
};

static int send_call(cairn_object *self, const struct target *to, const char *method,
                     cairn_builder *arguments, cairn_done done, void *data)
{
    struct cn_err err;
    size_t size;
    if (self->origin.depth >= CN_CALL_DEPTH_MAX)
        return cn_compiled_refuse(self, CAIRN_ELIMIT,
                                  "Subrequest depth limit exceeded: workers and objects have "
                                  "called one another 32 times, each call made by the one before.");
    if (arguments && cn_builder_is_empty(arguments))
        arguments = NULL;
    if (!arguments) {
        arguments = cn_compiled_lend_builder(self);
        cn_build_array(arguments);
        cn_build_end(arguments);
    }
    uint8_t *bytes = cn_builder_take(arguments, &size, &err);
    if (!bytes)
        return cn_compiled_fault(self, &err);
    if (!cn_builder_is_array(bytes, size)) {
        cn_free(bytes);
        return cn_compiled_refuse(self, CAIRN_EMISUSE, "the arguments of a call are an array");
    }
    struct cn_compiled_pending *pending = start(self, PENDING_CALL, data);
    struct cn_message *message = &pending->message;
    struct cn_call *call = &message->call;
    pending->done = done;
    message->method = cn_strdup(method);
    message->bytes = bytes;
    message->size = call->size = size;
    call->kind = CN_CALL_RPC;
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
    call->envelope.from = cn_desk_place(desk_of(self));
    call->envelope.on_done = on_done;
    call->envelope.drop = on_drop;
    cn_call_send(call, self->object);
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
    int rc = admit(self);
    struct target to = {.ns = rc == 0 ? find_namespace(self, binding) : NULL, .name = name};
    if (!to.ns)
        return rc < 0 ? rc : CAIRN_EMISUSE;
    cn_id_from_name(&to.ns->keys, CN_JURISDICTION_NONE, name, strlen(name), to.id);
    return send_call(self, &to, method, arguments, done, data);
}

int cn_api_object_call_id(cairn_object *self, const char *binding, const char *hex,
                          const char *method, cairn_builder *arguments, cairn_done done, void *data)
{
    int rc = admit(self);
    struct target to = {.ns = rc == 0 ? find_namespace(self, binding) : NULL};
    if (!to.ns)
        return rc < 0 ? rc : CAIRN_EMISUSE;
    if (!cn_id_from_hex(hex, strlen(hex), to.id) || !cn_id_valid(&to.ns->keys, to.id))
        return cn_compiled_refuse(self, CAIRN_EMISMATCH, "it is no id of that binding's class");
    return send_call(self, &to, method, arguments, done, data);
}

const char *cn_api_env(cairn_object *self, const char *name)
{
    return cn_modules_var(self->class_->modules, name);
}

/* --- timers ---------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
    struct cn_compiled_pending *pending = CN_CONTAINER_OF(timer, struct cn_compiled_pending, timer);
    cairn_object *self = leave(pending);
    uv_close((uv_handle_t *)timer, timer_closed);
    if (self)
        tell(self, pending, NULL);
}

int64_t cn_api_timer_start(cairn_object *self, int64_t delay, cairn_fired fired, void *data)
{
    int rc = admit(self);
    if (rc < 0)
        return rc;
    struct cn_compiled_pending *pending = start(self, PENDING_TIMER, data);
    pending->fired = fired;
    pending->number = ++self->last_timer;
    uv_timer_init(loop_of(self), &pending->timer);
    uv_timer_start(&pending->timer, on_timer, delay > 0 ? (uint64_t)delay : 0, 0);
    return pending->number;
}

int cn_api_timer_stop(cairn_object *self, int64_t number)
{
    CN_LIST_FOREACH(&self->pending, node)
    {
        struct cn_compiled_pending *pending =
            CN_CONTAINER_OF(node, struct cn_compiled_pending, link);
        if (pending->kind != PENDING_TIMER || pending->number != number)
            continue;
        leave(pending);
        uv_close((uv_handle_t *)&pending->timer, timer_closed);
        let_go(self);
        return 1;
    }
    return 0;
}

/* --- history --------------------------------------------------------------------------------- */

static void on_restore(struct cn_restore_request *request, const struct cn_err *err)
{
    struct cn_compiled_pending *pending =
        CN_CONTAINER_OF(request, struct cn_compiled_pending, restore);
    cairn_object *self = leave(pending);
    if (self) {
        cairn_builder builder;
        struct cn_err ignored;
        cn_builder_init(&builder, 1024);
        if (!err)
            cn_build_text(&builder, request->bookmark, strlen(request->bookmark));
        (void)cn_builder_finish(&builder, &ignored); /* a short text always is */
        struct ending ending = {err ? err->text : NULL, 0, err ? NULL : builder.bytes.data,
                                builder.bytes.size};
        tell(self, pending, &ending);
        cn_builder_fini(&builder);
    }
    cn_free(pending);
}

static struct cn_restore_request *ask(cairn_object *self, cairn_done done, void *data)
{
    struct cn_compiled_pending *pending = start(self, PENDING_RESTORE, data);
    pending->done = done;
    pending->restore.done = on_restore;
    return &pending->restore;
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
    struct cn_compiled_pending *pending = CN_CONTAINER_OF(timer, struct cn_compiled_pending, timer);
    cn_object_reset(pending->self->object, CN_FAULT_RESET | CN_FAULT_OVERLOADED, CN_ETIMEOUT,
                    "block_concurrency() in a Durable Object lasted for too long, and the Durable "
                    "Object was reset.");
}

static void stop_block_timer(cairn_object *self)
{
    struct cn_compiled_pending *timer = self->block_timer;
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
    struct cn_compiled_pending *timer = CN_NEW(struct cn_compiled_pending);
    timer->self = self;
    cn_list_init(&timer->link);
    self->block_timer = timer;
    uv_timer_init(self->object->lane->loop, &timer->timer);
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
