/* SPDX-License-Identifier: Apache-2.0 */
/* module/stream.c - streams that objects of modules read and write: L1 to L4 of lent.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/rand.h"
#include "module/async.h"
#include "module/crash.h"
#include "module/lent.h"
#include "module/pending.h"
#include "object/message.h"
#include "object/node.h"
#include "text/clone.h"

enum state { STREAM_OPEN, STREAM_ENDED, STREAM_FAILED, STREAM_CLOSED };

struct cairn_stream {
    struct cn_list link; /* in cn_compiled_outside.streams */
    cairn_object *self;
    bool writes;
    enum state state;    /* of one that is read: OPEN, or ENDED: nothing is left to ask for */
    double number;       /* by which its owner knows it; of one that is written this object */
    struct cn_buf bytes; /* waiting: to be read by others, or, without an address, by the class */
    void *data;
    /* One that is read. */
    char *address; /* owned; NULL: it is `bytes` */
    cairn_done done;
    bool reading; /* L2 */
    bool ended_by_class;
    cairn_event *collects; /* a request's body, for the class; NULL: it is the class's own */
    void (*then)(cairn_event *event, const struct cn_err *err);
    /* One that is written. */
    unsigned readers; /* how often it is counted; 0: nobody has it yet, or any more */
    bool given;       /* somebody has had it */
    cairn_fired wanted;
    struct cn_call *pull; /* that waits: L3; NULL: none */
    char *failure;        /* owned */
};

static cairn_stream *stream_new(cairn_object *self, bool writes)
{
    if (!cn_compiled_has_outside(self))
        return NULL;
    struct cn_compiled_outside *outside = cn_compiled_outside(self);
    if (outside->stream_count == CN_STREAMS_MAX) {
        cn_compiled_refuse(self, CAIRN_ELIMIT, "an object has 1000 streams at most");
        return NULL;
    }
    cairn_stream *stream = CN_NEW(cairn_stream);
    stream->self = self;
    stream->writes = writes;
    cn_list_push_back(&outside->streams, &stream->link);
    outside->stream_count++;
    return stream;
}

static void stream_free(cairn_stream *stream)
{
    CN_ASSERT(!stream->pull);
    cn_list_remove(&stream->link);
    stream->self->outside->stream_count--;
    cn_buf_fini(&stream->bytes);
    cn_free(stream->address);
    cn_free(stream->failure);
    cn_free(stream);
}

/* --- reading --------------------------------------------------------------------------------- */

cairn_stream *cn_api_stream_open(cairn_object *self, const cairn_value *value)
{
    struct cn_value_remote *from =
        cn_value_kind(value) == CAIRN_STREAM ? cn_value_remote(value) : NULL;
    size_t size = 0;
    const void *bytes = cn_value_kind(value) == CAIRN_BYTES ? cn_value_bytes(value, &size)
                                                            : cn_value_text(value, &size);
    enum cairn_kind kind = cn_value_kind(value);
    if (!from && kind > CAIRN_NULL && kind != CAIRN_BYTES && kind != CAIRN_TEXT) {
        cn_compiled_refuse(self, CAIRN_EMISMATCH, "the value is no stream, no bytes and no text");
        return NULL;
    }
    if (from && from->taken) {
        cn_compiled_refuse(self, CAIRN_EMISUSE, "the stream has been opened already");
        return NULL;
    }
    cairn_stream *stream = stream_new(self, false);
    if (!stream)
        return NULL;
    if (!from) {
        cn_buf_append(&stream->bytes, size ? bytes : "", size);
        return stream;
    }
    stream->address = cn_strdup(from->address);
    stream->number = from->number;
    if (from->lent)
        cn_compiled_note_lent(self, "~retain", from->address, from->number);
    from->taken = true; /* L1 */
    return stream;
}

cairn_stream *cn_api_request_stream(cairn_event *event)
{
    cairn_object *self = event->object;
    if (event->kind != CN_COMPILED_FETCH || event->streamed) {
        cn_compiled_refuse(self, CAIRN_EMISUSE,
                           event->streamed ? "the body of the request has been opened already"
                                           : "the event is no request");
        return NULL;
    }
    event->streamed = true;
    if (!event->collected)
        return cn_api_stream_open(self, cn_value_get(event->document.root, "body"));
    cairn_stream *stream = stream_new(self, false);
    if (stream)
        cn_buf_append(&stream->bytes, event->request.data, event->request.size);
    return stream;
}

/* Nothing more is asked for; its owner may let go of it. */
static void finish_reading(cairn_stream *stream)
{
    if (stream->state == STREAM_OPEN && stream->address)
        cn_compiled_note_lent(stream->self, "~release", stream->address, stream->number);
    stream->state = STREAM_ENDED;
}

static void tell_read(cairn_stream *stream, const struct cairn_reply *reply)
{
    cairn_object *self = stream->self;
    cairn_done done = stream->done;
    void *data = stream->data;
    stream->reading = false;
    if (stream->ended_by_class)
        stream_free(stream); /* it does not want to know */
    else
        done(self, self->instance, reply, data);
}

/* A question to the owner was answered. */
static void on_pulled(cairn_object *self, void *instance, const struct cairn_reply *reply,
                      void *data)
{
    cairn_stream *stream = data;
    struct cairn_reply told = *reply;
    if (reply->error || cn_value_kind(reply->value) <= CAIRN_NULL) {
        finish_reading(stream);
        told.value = reply->error ? reply->value : NULL;
    }
    tell_read(stream, &told);
}

/* The same of bytes that were there all the time. */
static void on_turn(cairn_object *self, void *instance, void *data)
{
    cairn_stream *stream = data;
    struct cairn_reply reply = {.size = sizeof(reply)};
    if (stream->bytes.size && !stream->ended_by_class) {
        cairn_builder *builder = cn_compiled_lend_builder(self);
        struct cn_err err;
        cn_build_bytes(builder, stream->bytes.data, stream->bytes.size);
        cn_buf_clear(&stream->bytes);
        if (cn_builder_finish(builder, &err) == 0)
            reply.value = cn_compiled_lend_value(self, builder->bytes.data, builder->bytes.size);
        else
            reply.error = "the body is too large";
    }
    tell_read(stream, &reply);
}

static int pull(cairn_stream *stream, cairn_done done, cn_compiled_ended ended)
{
    struct cn_compiled_lent_call call = {.address = stream->address,
                                         .number = stream->number,
                                         .method = "pull",
                                         .done = done,
                                         .ended = ended,
                                         .data = stream};
    call.bytes = cn_pending_arguments(stream->self, NULL, &call.size);
    return call.bytes ? cn_compiled_call_lent(stream->self, &call) : CAIRN_EMISUSE;
}

int cn_api_stream_read(cairn_stream *stream, cairn_done done, void *data)
{
    cairn_object *self = stream->self;
    if (stream->writes || stream->reading)
        return cn_compiled_refuse(self, CAIRN_EMISUSE,
                                  stream->writes ? "the stream is written, not read"
                                                 : "a read of the stream is under way");
    stream->done = done;
    stream->data = data;
    int64_t rc = stream->address && stream->state == STREAM_OPEN
                     ? pull(stream, on_pulled, NULL)
                     : cn_api_timer_start(self, 0, on_turn, stream);
    stream->reading = rc >= 0;
    return rc < 0 ? (int)rc : 0;
}

static void ignore(cairn_object *self, void *data, const struct cn_pending_end *ending)
{
}

/* The class, or the object, has enough of it. */
static void give_up(cairn_stream *stream, const char *reason)
{
    cairn_object *self = stream->self;
    if (stream->state == STREAM_OPEN && stream->address && self->running) {
        cairn_builder *arguments = cn_compiled_lend_builder(self);
        struct cn_compiled_lent_call call = {.address = stream->address,
                                             .number = stream->number,
                                             .method = "cancelled",
                                             .ended = ignore};
        cn_build_array(arguments);
        cn_build_error(arguments, "Error", reason, NULL);
        cn_build_end(arguments);
        call.bytes = cn_pending_arguments(self, arguments, &call.size);
        if (call.bytes)
            (void)cn_compiled_call_lent(self, &call); /* its owner has gone: so has the stream */
    }
    finish_reading(stream);
}

/* --- a request's body as a whole ------------------------------------------------------------- */

static void collect_more(cairn_stream *stream);

static void collected(cairn_stream *stream, const struct cn_err *err)
{
    cairn_event *event = stream->collects;
    void (*then)(cairn_event * event, const struct cn_err *err) = stream->then;
    if (err)
        give_up(stream, err->text);
    stream_free(stream);
    event->collected = true;
    then(event, err);
}

static void on_piece(cairn_object *self, void *data, const struct cn_pending_end *ending)
{
    cairn_stream *stream = data;
    struct cn_buf *body = &stream->collects->request;
    struct cn_document document = {0};
    struct cn_err err;
    size_t size;
    if (ending->error) {
        finish_reading(stream);
        cn_err_set(&err, CN_EABORTED, "the body of the request did not come to its end: %s",
                   ending->error);
        collected(stream, &err);
        return;
    }
    if (cn_document_read(&document, ending->bytes, ending->size, &err) < 0) {
        collected(stream, &err);
        return;
    }
    const void *bytes = cn_value_bytes(document.root, &size);
    bool over = cn_value_kind(document.root) <= CAIRN_NULL;
    bool fits = size <= CN_MODULE_BODY_MAX && body->size <= CN_MODULE_BODY_MAX - size;
    if (fits)
        cn_buf_append(body, size ? bytes : "", size);
    cn_compiled_end_document(self, &document);
    if (over) {
        finish_reading(stream);
        collected(stream, NULL);
    } else if (fits) {
        collect_more(stream);
    } else {
        cn_err_set(&err, CN_ELIMIT,
                   "The body of a request to an object of a module is limited to 16 MiB.");
        collected(stream, &err);
    }
}

static void collect_more(cairn_stream *stream)
{
    cairn_object *self = stream->self;
    cn_compiled_enter(self);
    int rc = pull(stream, NULL, on_piece);
    struct cn_err err;
    if (rc < 0)
        cn_err_set(&err, CN_EABORTED, "%s", cn_compiled_api.error_text(self));
    (void)cn_compiled_leave(self); /* no function of the class has run */
    if (rc < 0)
        collected(stream, &err);
}

void cn_compiled_collect(cairn_event *event,
                         void (*then)(cairn_event *event, const struct cn_err *err))
{
    cairn_object *self = event->object;
    struct cn_err err;
    cn_compiled_enter(self);
    cairn_stream *stream = cn_api_stream_open(self, cn_value_get(event->document.root, "body"));
    if (!stream)
        cn_err_set(&err, CN_EOVERLOADED, "%s", cn_compiled_api.error_text(self));
    (void)cn_compiled_leave(self); /* no function of the class has run */
    if (!stream) {
        then(event, &err);
        return;
    }
    stream->collects = event;
    stream->then = then;
    collect_more(stream);
}

/* --- writing --------------------------------------------------------------------------------- */

cairn_stream *cn_api_stream_new(cairn_object *self, cairn_fired wanted, void *data)
{
    cairn_stream *stream = stream_new(self, true);
    if (!stream)
        return NULL;
    stream->number = (double)(cn_rand_next(&self->object->lane->rand) >> 17) + 1;
    stream->wanted = wanted;
    stream->data = data;
    return stream;
}

/* Somebody gets it. False: it is none to give, or was given already. */
static bool give(cairn_stream *stream)
{
    if (!stream->writes || stream->given)
        return false;
    stream->given = true;
    stream->readers = 1;
    cn_object_wait(stream->self->object); /* L4 */
    return true;
}

int cn_api_response_stream(cairn_event *event, cairn_stream *stream)
{
    cairn_object *self = event->object;
    if (event->kind != CN_COMPILED_FETCH || event->has_body || event->stream || !stream->writes ||
        stream->given)
        return cn_compiled_refuse(self, CAIRN_EMISUSE,
                                  "a response has one body, and a stream one reader");
    if (!event->call)
        return cn_compiled_refuse(self, CAIRN_ECLOSED, "the object was reset");
    stream->given = true; /* counted when the answer leaves */
    event->stream = stream;
    return 0;
}

static void build(cairn_builder *builder, const cairn_stream *stream)
{
    char address[CN_OBJECT_HEX_SIZE + 32];
    snprintf(address, sizeof(address), "o%u:%s", stream->self->object->ns->id, stream->self->id);
    cn_build_reference(builder, TAG_HOST_STREAM, address, stream->number);
}

void cn_compiled_build_stream(cairn_builder *builder, cairn_stream *stream)
{
    stream->given = false;
    (void)give(stream); /* it writes, and was kept for this */
    build(builder, stream);
}

void cn_api_build_stream(cairn_builder *builder, cairn_stream *stream)
{
    if (give(stream))
        build(builder, stream);
    else
        cn_build_mistake(builder, "a stream has one reader, and only one that is written is given");
}

/* Answers a call with what was built; with NULL, by an error. */
static void answer(struct cn_call *call, cairn_builder *builder)
{
    struct cn_message *message = call->payload;
    struct cn_err err;
    call->taken_back = NULL;
    message->result = cn_builder_take(builder, &message->result_size, &err);
    cn_builder_fini(builder);
    if (message->result)
        cn_call_reply(call, message);
    else
        cn_call_fail(call, CN_FAULT_REMOTE, CN_EINVALID, "%s", err.text);
}

static void answer_undefined(struct cn_call *call)
{
    cairn_builder builder;
    cn_builder_init(&builder, 64);
    cn_build_undefined(&builder);
    answer(call, &builder);
}

static void fail_call(const cairn_object *self, struct cn_call *call, const char *text)
{
    struct cn_message *message = call->payload;
    cairn_builder builder;
    struct cn_err err;
    call->taken_back = NULL;
    cn_builder_init(&builder, 4096);
    cn_build_error(&builder, "Error", text, self->id);
    message->result = cn_builder_take(&builder, &message->result_size, &err);
    cn_builder_fini(&builder);
    cn_call_fail(call, CN_FAULT_REMOTE, CN_EABORTED, "%s", text);
}

/* L4: nobody has it any more. */
static void writer_left(cairn_stream *stream)
{
    if (stream->readers)
        cn_object_unwait(stream->self->object);
    stream->readers = 0;
    if (stream->ended_by_class)
        stream_free(stream);
    else
        stream->state = STREAM_CLOSED;
}

/* Answers the question that waits, if there is something to say. Its reader that has seen the end
 * has no more questions: the stream may be gone then, if the class has ended it. */
static void serve(cairn_stream *stream)
{
    struct cn_call *call = stream->pull;
    cairn_builder builder;
    if (!call || (!stream->bytes.size && stream->state == STREAM_OPEN))
        return;
    stream->pull = NULL;
    if (!stream->bytes.size) {
        cn_builder_init(&builder, 64);
        cn_build_null(&builder);
        if (stream->state == STREAM_FAILED)
            fail_call(stream->self, call, stream->failure);
        else
            answer(call, &builder);
        cn_builder_fini(&builder);
        writer_left(stream);
        return;
    }
    cn_builder_init(&builder, CN_STREAM_BYTES_MAX + 64);
    cn_build_bytes(&builder, stream->bytes.data, stream->bytes.size);
    if (stream->bytes.size > CN_STREAM_BYTES_ENOUGH)
        cn_buf_fini(&stream->bytes);
    else
        cn_buf_clear(&stream->bytes);
    answer(call, &builder);
}

int cn_api_stream_write(cairn_stream *stream, const void *bytes, size_t size)
{
    cairn_object *self = stream->self;
    if (!stream->writes || stream->ended_by_class)
        return cn_compiled_refuse(self, CAIRN_EMISUSE, "the stream is read, not written");
    if (stream->state == STREAM_CLOSED)
        return cn_compiled_refuse(self, CAIRN_ECLOSED, "the stream was given up by its reader");
    if (size > CN_STREAM_BYTES_MAX || stream->bytes.size > CN_STREAM_BYTES_MAX - size)
        return cn_compiled_refuse(self, CAIRN_ELIMIT, "16 MiB of a stream wait at most");
    cn_buf_append(&stream->bytes, size ? bytes : "", size);
    serve(stream);
    return stream->bytes.size < CN_STREAM_BYTES_ENOUGH;
}

static void end_writing(cairn_stream *stream, const char *failure)
{
    stream->ended_by_class = true;
    if (stream->state == STREAM_CLOSED || !stream->given) {
        stream_free(stream);
        return;
    }
    stream->state = failure ? STREAM_FAILED : STREAM_ENDED;
    if (failure) {
        stream->failure = cn_strdup(failure);
        cn_buf_fini(&stream->bytes);
    }
    serve(stream);
}

void cn_compiled_abandon(cairn_stream *stream)
{
    writer_left(stream);
}

/* --- the end of either ----------------------------------------------------------------------- */

static void end_stream(cairn_stream *stream, const char *failure)
{
    if (stream->writes) {
        end_writing(stream, failure);
        return;
    }
    give_up(stream, failure ? failure : "The stream was given up by its reader.");
    stream->ended_by_class = true;
    if (!stream->reading)
        stream_free(stream);
}

void cn_api_stream_end(cairn_stream *stream)
{
    end_stream(stream, NULL);
}

void cn_api_stream_fail(cairn_stream *stream, const char *reason)
{
    end_stream(stream, reason && *reason ? reason : "the stream failed");
}

void cn_compiled_free_streams(cairn_object *self)
{
    CN_LIST_FOREACH(&self->outside->streams, node)
    {
        cairn_stream *stream = CN_CONTAINER_OF(node, cairn_stream, link);
        stream->pull = NULL; /* the core has failed it */
        if (!stream->writes)
            finish_reading(stream);
        stream_free(stream); /* what waited for it (L4) goes with the object */
    }
}

/* --- calls of readers ------------------------------------------------------------------------ */

static cairn_stream *find(cairn_object *self, double number)
{
    if (!self->outside)
        return NULL;
    CN_LIST_FOREACH(&self->outside->streams, node)
    {
        cairn_stream *stream = CN_CONTAINER_OF(node, cairn_stream, link);
        if (stream->writes && stream->readers && stream->number == number)
            return stream;
    }
    return NULL;
}

static void tell_wanted(cairn_stream *stream)
{
    cairn_object *self = stream->self;
    if (!stream->wanted || stream->ended_by_class)
        return;
    cn_compiled_enter(self);
    const struct cn_module_class *before = cn_module_crash_note(self->class_);
    stream->wanted(self, self->instance, stream->data);
    cn_module_crash_note(before);
    if (cn_compiled_leave(self) < 0)
        cn_compiled_api.log(self, CAIRN_FAILURE, "%s", cn_compiled_api.error_text(self));
}

/* The reader has gone. */
static void close_stream(cairn_stream *stream)
{
    bool tells = !stream->ended_by_class;
    cn_buf_fini(&stream->bytes);
    writer_left(stream);
    if (tells)
        tell_wanted(stream);
}

static void pull_taken_back(struct cn_call *call)
{
    cairn_stream *stream = (cairn_stream *)(uintptr_t)call->tag;
    stream->pull = NULL;
}

static void deliver_pull(cairn_stream *stream, struct cn_call *call)
{
    if (stream->pull) {
        fail_call(stream->self, call, "A stream is asked for one piece at a time.");
        return;
    }
    stream->pull = call;
    call->tag = (uint64_t)(uintptr_t)stream;
    call->taken_back = pull_taken_back;
    bool waits = !stream->bytes.size && stream->state == STREAM_OPEN;
    serve(stream);
    if (waits)
        tell_wanted(stream);
}

static void deliver_note(cairn_object *self, struct cn_call *call, bool retains)
{
    struct cn_message *message = call->payload;
    struct cn_document document = {0};
    struct cn_err err;
    double number = -1;
    if (cn_document_read(&document, message->bytes, message->size, &err) == 0)
        (void)cn_value_number(document.root, &number); /* else it names nothing */
    cn_document_fini(&document);
    answer_undefined(call);
    cairn_stream *stream = find(self, number);
    if (!stream)
        return;
    if (retains)
        stream->readers++;
    else if (stream->readers > 1)
        stream->readers--;
    else
        close_stream(stream);
}

void cn_compiled_deliver_lent(cairn_object *self, struct cn_call *call)
{
    const struct cn_message *message = call->payload;
    const char *method = message->method ? message->method : "";
    if (strcmp(method, "~retain") == 0 || strcmp(method, "~release") == 0) {
        deliver_note(self, call, method[3] == 't');
        return;
    }
    char *path;
    cairn_stream *stream = find(self, strtod(method, &path));
    if (stream && strcmp(path, ":pull") == 0) {
        deliver_pull(stream, call);
    } else if (stream && strcmp(path, ":cancelled") == 0) {
        answer_undefined(call);
        cn_buf_fini(&stream->bytes);
        if (stream->pull)
            fail_call(self, stream->pull, "The stream was given up by its reader.");
        stream->pull = NULL;
        close_stream(stream);
    } else {
        fail_call(self, call,
                  stream ? "A stream has no such method."
                         : "The execution context which hosts this callback is no longer running.");
    }
}
