/* SPDX-License-Identifier: Apache-2.0 */
/* module/services.c - calls of code in C to services: the engine of module/face.h.
 *
 *     ┌──► WAITING: for a call, a thread, or nothing (the loop) ──► next ──┐
 *     └────────────────────────────────────────────────────────────────────┴──► told; freed
 *
 * V1  Whatever happens, the function of the object is called once, from the loop; or never, if the
 *     object has gone. A work goes on all the same: what was asked of a service is not undone.
 * V2  The first call leaves by the output gate of the object that asks. Those after it need not
 *     wait again: they are part of what left.
 * V3  But for those of a work that takes a stream, which the object may have gone on to write: they
 *     wait until what it has written by then is on disk, too. */
#include "module/services.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "module/face.h"
#include "module/api.h"
#include "module/fetch.h"
#include "module/internal.h"
#include "module/lent.h"
#include "module/pending.h"
#include "module/stream.h"
#include "object/node.h"
#include "service/def.h"
#include "service/pool.h"
#include "service/service.h"

struct asking {
    struct cn_pending base;
    struct cn_modules *modules; /* a reference: the work looks at the binding */
    const struct cn_face_method *method;
    struct cn_face_work work;
    cairn_builder result;
    struct cn_pool_job job;
    uv_timer_t now; /* for what has ended already */
    struct cn_err err;
    unsigned faults;
    bool streams; /* V3 */
};

bool cn_face_bytes(const cairn_value *value, const void **bytes, size_t *size)
{
    *bytes = cn_value_kind(value) == CAIRN_BYTES ? cn_value_bytes(value, size)
                                                 : cn_value_text(value, size);
    return *bytes != NULL;
}

bool cn_face_absent(const cairn_value *value)
{
    enum cairn_kind kind = cn_value_kind(value);
    return kind == CAIRN_UNDEFINED || kind == CAIRN_NULL;
}

static void free_asking(struct asking *asking)
{
    if (asking->work.upload)
        cn_stream_left(asking->work.upload); /* nobody takes more of it */
    if (asking->work.source)
        asking->work.source->stop(asking->work.source_data, "nobody reads it");
    cn_buf_fini(&asking->work.piece);
    if (asking->work.free)
        asking->work.free(asking->work.state);
    cn_builder_fini(&asking->result);
    cn_modules_unref(asking->modules);
    cn_free(asking);
}

/* The body of the result, for its reader. */
static cairn_stream *open_body(cairn_object *self, struct asking *asking, const char **error)
{
    struct cn_face_work *work = &asking->work;
    if (!work->source || *error || !asking->base.done)
        return NULL;
    cairn_stream *stream = cn_stream_from(self, work->source, work->source_data);
    if (!stream) {
        *error = cn_api_error_text(self);
        return NULL;
    }
    work->source = NULL;
    work->opened(work->source_data, stream);
    return stream;
}

/* V1 */
static void finish(struct asking *asking)
{
    cairn_object *self = cn_pending_leave(&asking->base);
    if (self) {
        struct cn_pending_end end = {NULL, asking->faults, NULL, 0, NULL};
        if (!asking->err.code && cn_builder_finish(&asking->result, &asking->err) == 0) {
            end.bytes = asking->result.bytes.data;
            end.size = asking->result.bytes.size;
        } else {
            end.error = asking->err.text;
        }
        end.stream = open_body(self, asking, &end.error);
        cn_pending_tell(self, &asking->base, &end);
    }
    free_asking(asking);
}

static void go_on(struct asking *asking, struct cn_object *gate);

static void next(struct asking *asking, struct cn_service_call *call)
{
    if (asking->method->next(&asking->work, call, &asking->result, &asking->err) < 0)
        CN_ASSERT(asking->err.code);
}

static void on_answered(struct cn_service_call *call)
{
    struct asking *asking = call->call.envelope.data;
    const struct cn_envelope *envelope = &call->call.envelope;
    if (envelope->err.code && !asking->work.takes_failures) {
        asking->faults = envelope->faults & ~(unsigned)CN_FAULT_REMOTE;
        cn_err_set(&asking->err, envelope->err.code, "%s%s",
                   asking->method->failure ? asking->method->failure : "", envelope->err.text);
    } else {
        next(asking, call);
    }
    cn_service_call_free(call);
    go_on(asking, NULL);
}

/* The object was reset before its gate opened, or the lane has ended. */
static void on_dropped(struct cn_envelope *envelope)
{
    struct asking *asking = envelope->data;
    cairn_object *self = cn_pending_leave(&asking->base);
    if (self)
        cn_pending_let_go(self);
    cn_service_call_free(cn_service_call_of(envelope));
    free_asking(asking);
}

static void send_call(struct asking *asking, struct cn_object *gate)
{
    struct cn_service_call *call = asking->work.call;
    asking->work.call = NULL;
    call->call.envelope.data = asking;
    call->call.envelope.origin = asking->base.origin;
    call->call.envelope.drop = on_dropped;
    cairn_object *self = asking->base.self;
    if (gate || !asking->streams || !self || !self->object || cn_compiled_is_gone(self)) {
        cn_service_call_send_gated(call, asking->work.lane, gate, on_answered);
        return;
    }
    cn_object_enter(self->object); /* V3 */
    cn_service_call_send_gated(call, asking->work.lane, self->object, on_answered);
    cn_object_leave(self->object);
}

static struct asking *asking_of(struct cn_pool_job *job)
{
    return CN_CONTAINER_OF(job, struct asking, job);
}

static void run(struct cn_pool_job *job)
{
    asking_of(job)->work.run(&asking_of(job)->work);
}

static void on_ran(struct cn_mail *mail, void *data)
{
    (void)data;
    struct asking *asking = asking_of(CN_CONTAINER_OF(mail, struct cn_pool_job, mail));
    asking->work.run = NULL;
    if (asking->work.run_err.code && !asking->work.takes_failures)
        asking->err = asking->work.run_err;
    else
        next(asking, NULL);
    go_on(asking, NULL);
}

static void on_lost(struct cn_pool_job *job)
{
    free_asking(asking_of(job)); /* its object has gone with the lane */
}

static void on_now_closed(uv_handle_t *handle)
{
    finish(CN_CONTAINER_OF((uv_timer_t *)handle, struct asking, now));
}

/* --- what the caller writes (A3) ------------------------------------------------------------- */

static void take_step(struct asking *asking)
{
    asking->work.wants = false;
    next(asking, NULL);
    go_on(asking, NULL);
}

static int take_piece(void *data, struct cn_buf *bytes)
{
    struct asking *asking = data;
    CN_ASSERT(asking->work.wants && !asking->work.piece.size);
    cn_buf_fini(&asking->work.piece);
    asking->work.piece = *bytes;
    *bytes = (struct cn_buf){0};
    take_step(asking);
    return 0;
}

static void end_upload(void *data, const char *failure)
{
    struct asking *asking = data;
    asking->work.upload = NULL;
    asking->work.is_over = !failure;
    if (failure)
        cn_err_set(&asking->work.upload_err, CN_EABORTED, "%s", failure);
    if (asking->work.wants)
        take_step(asking);
}

static const struct cn_stream_sink upload_sink = {take_piece, end_upload};

int cn_face_take_stream(struct cn_face_work *work, const cairn_value *value, struct cn_err *err)
{
    struct asking *asking = CN_CONTAINER_OF(work, struct asking, work);
    work->upload = cn_stream_take_lent(work->asker, value, &upload_sink, asking);
    asking->streams = true;
    return work->upload ? 0
                        : cn_err_set(err, CN_EINVALID, "the value is no stream of stream_new()");
}

/* What the last step has said comes next. */
static void go_on(struct asking *asking, struct cn_object *gate)
{
    CN_ASSERT(!asking->err.code || !asking->work.call);
    if (asking->work.call) {
        send_call(asking, gate);
    } else if (asking->work.run && !asking->err.code) {
        asking->job = (struct cn_pool_job){.run = run,
                                           .mail.deliver = on_ran,
                                           .mailbox = asking->work.lane->mailbox,
                                           .lost = on_lost};
        cn_pool_start(asking->work.services->pool, &asking->job);
    } else if (asking->work.wants && !asking->err.code) {
        if (asking->work.upload)
            cn_stream_want(asking->work.upload);
        else
            take_step(asking); /* it has failed meanwhile */
    } else {
        finish(asking);
    }
}

int cn_face_nothing(struct cn_face_work *work, struct cn_service_call *call, cairn_builder *result,
                    struct cn_err *err)
{
    (void)work, (void)call, (void)err;
    cn_build_undefined(result);
    return 0;
}

/* --- the beginning --------------------------------------------------------------------------- */

static const struct cn_face_method *find_method(const struct cn_service_face *face,
                                                const char *name)
{
    for (const struct cn_face_method *method = face->methods; method->name; method++) {
        if (strcmp(method->name, name) == 0)
            return method;
    }
    return NULL;
}

static int refuse(cairn_object *self, const char *format, const char *a, const char *b)
{
    char text[300];
    snprintf(text, sizeof(text), format, a, b);
    return cn_compiled_refuse(self, CAIRN_EMISUSE, text);
}

static int begin(cairn_object *self, struct asking *asking, const uint8_t *bytes, size_t size)
{
    struct cn_document document = {0};
    struct cn_err err = {0};
    int rc = cn_document_read(&document, bytes, size, &err);
    asking->work.asker = self;
    if (rc == 0)
        rc = asking->method->begin(&asking->work, document.root, &asking->result, &err);
    asking->work.asker = NULL;
    cn_document_fini(&document);
    return rc < 0 ? cn_compiled_fault(self, &err) : 0;
}

/* The work of a method of a binding. NULL: there is none, and that is the last error. */
static struct asking *make(cairn_object *self, const char *name, const char *method_name)
{
    const cairn_value *binding = cn_modules_binding(self->class_->modules, name);
    const char *part = cn_value_text(cn_value_get(binding, "part"), NULL);
    const struct cn_service_def *def = part ? cn_service_named(part, strlen(part)) : NULL;
    struct cn_object_lane *lane = self->object ? self->object->lane : self->host->objects;
    if (!binding) {
        refuse(self, "there is no binding \"%.100s\"%s", name, "");
        return NULL;
    }
    if (!def || !def->face || !lane) {
        refuse(self,
               "the binding \"%.100s\"%s cannot be used from C: its kind is not among those that "
               "cairn.h lists for service_call()",
               name, "");
        return NULL;
    }
    const struct cn_face_method *method = find_method(def->face, method_name);
    if (!method) {
        refuse(self, "the binding \"%.100s\" has no method \"%.100s\" for C", name, method_name);
        return NULL;
    }
    struct asking *asking = CN_NEW(struct asking);
    int64_t number = 0;
    asking->modules = cn_modules_ref(self->class_->modules);
    asking->method = method;
    cn_builder_init(&asking->result, 64u << 20);
    asking->work.lane = lane;
    asking->work.services = cn_node_data(lane->node);
    asking->work.binding = binding;
    if (cn_value_int(cn_value_get(binding, "ns"), &number) == 0)
        asking->work.ns = cn_node_namespace_find(lane->node, (uint32_t)number);
    return asking;
}

static void on_now(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, on_now_closed);
}

int cn_api_service_call(cairn_object *self, const char *binding, const char *method,
                        cairn_builder *arguments, cairn_done done, void *data)
{
    size_t size;
    int rc = cn_pending_admit(self);
    if (rc < 0)
        return rc;
    const cairn_value *found = cn_modules_binding(self->class_->modules, binding);
    const char *type = cn_value_text(cn_value_get(found, "type"), NULL);
    if (type && strcmp(type, "service") == 0 && self->host)
        return cn_worker_call(self, found, method, arguments, done, data);
    struct asking *asking = make(self, binding, method);
    if (!asking)
        return CAIRN_EMISUSE;
    uint8_t *bytes = cn_pending_arguments(self, arguments, &size);
    rc = bytes ? begin(self, asking, bytes, size) : CAIRN_EMISUSE;
    cn_free(bytes);
    if (rc < 0) {
        free_asking(asking);
        return rc;
    }
    cn_pending_start(&asking->base, self, done, data);
    if (asking->work.call || asking->work.run) {
        go_on(asking, self->object); /* V2 */
        return 0;
    }
    uv_timer_init(cn_pending_loop(self), &asking->now);
    uv_timer_start(&asking->now, on_now, 0, 0);
    return 0;
}
