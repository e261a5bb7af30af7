/* SPDX-License-Identifier: Apache-2.0 */
/* module/stream_lent.c - streams whose other side is reached by calls (L1 of lent.h): those that an
 * object or a worker reads of somebody else, and those that others read of it.
 *
 * A reader has one question under way; it is answered with all that waits. What is read so far is
 * asked for by "pull", given up by "cancelled". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/rand.h"
#include "module/lent.h"
#include "module/stream.h"
#include "object/message.h"
#include "object/node.h"
#include "text/clone.h"

/* --- reading --------------------------------------------------------------------------------- */

struct lent_source {
    cairn_stream *stream; /* NULL: stopped; freed when the answer comes */
    cairn_object *self;
    char *address; /* owned */
    double number;
    bool asking;
    const struct cn_pending_end *answer; /* while it is told */
    struct cn_document document;
};

static void free_source(struct lent_source *source)
{
    cn_free(source->address);
    cn_free(source);
}

/* In a turn: its owner has answered. */
static void on_pulled(cairn_object *self, void *data, const struct cn_pending_end *end)
{
    struct lent_source *source = data;
    (void)self;
    source->asking = false;
    if (!source->stream) {
        free_source(source);
        return;
    }
    source->answer = end;
    cn_stream_ready_here(source->stream);
}

static int call_owner(struct lent_source *source, const char *method, cairn_builder *arguments,
                      cn_compiled_ended ended)
{
    struct cn_compiled_lent_call call = {.address = source->address,
                                         .number = source->number,
                                         .method = method,
                                         .ended = ended,
                                         .data = source};
    call.bytes = cn_pending_arguments(source->self, arguments, &call.size);
    return call.bytes ? cn_compiled_call_lent(source->self, &call) : CAIRN_EMISUSE;
}

static int ask(void *data)
{
    struct lent_source *source = data;
    int rc = call_owner(source, "pull", NULL, on_pulled);
    source->asking = rc >= 0;
    return rc;
}

/* What was answered is a value: bytes, or nothing at the end. */
static void take(void *data, struct cn_stream_piece *piece)
{
    struct lent_source *source = data;
    const struct cn_pending_end *end = source->answer;
    struct cn_document document = {0};
    struct cn_err err;
    piece->error = end->error;
    piece->is_value = true;
    piece->bytes = end->bytes;
    piece->size = end->size;
    if (end->error || !end->bytes)
        piece->over = true;
    else if (cn_document_read(&document, end->bytes, end->size, &err) < 0 ||
             cn_value_kind(document.root) <= CAIRN_NULL)
        piece->over = true;
    if (piece->over && !piece->error)
        piece->bytes = NULL;
    cn_document_fini(&document);
}

static void ignore(cairn_object *self, void *data, const struct cn_pending_end *end)
{
    (void)self, (void)data, (void)end;
}

static void stop(void *data, const char *reason)
{
    struct lent_source *source = data;
    cairn_object *self = source->self;
    if (reason && self->running && !self->going) {
        cairn_builder *arguments = cn_compiled_lend_builder(self);
        cn_build_array(arguments);
        cn_build_error(arguments, "Error", reason, NULL);
        cn_build_end(arguments);
        (void)call_owner(source, "cancelled", arguments, ignore); /* or its owner has gone */
    }
    cn_compiled_note_lent(self, "~release", source->address, source->number);
    source->stream = NULL;
    if (!source->asking || self->going)
        free_source(source);
}

static const struct cn_stream_source lent_source = {ask, take, stop};

static cairn_stream *open_remote(cairn_object *self, struct cn_value_remote *from)
{
    if (from->taken) {
        cn_compiled_refuse(self, CAIRN_EMISUSE, "the stream has been opened already");
        return NULL;
    }
    struct lent_source *source = CN_NEW(struct lent_source);
    source->self = self;
    source->address = cn_strdup(from->address);
    source->number = from->number;
    source->stream = cn_stream_from(self, &lent_source, source);
    if (!source->stream) {
        free_source(source);
        return NULL;
    }
    cairn_stream *stream = source->stream;
    if (from->lent)
        cn_compiled_note_lent(self, "~retain", from->address, from->number);
    from->taken = true; /* L1 */
    return stream;
}

cairn_stream *cn_api_stream_open(cairn_object *self, const cairn_value *value)
{
    enum cairn_kind kind = cn_value_kind(value);
    size_t size = 0;
    if (kind == CAIRN_STREAM)
        return open_remote(self, cn_value_remote(value));
    if (kind > CAIRN_NULL && kind != CAIRN_BYTES && kind != CAIRN_TEXT) {
        cn_compiled_refuse(self, CAIRN_EMISMATCH, "the value is no stream, no bytes and no text");
        return NULL;
    }
    const void *bytes =
        kind == CAIRN_BYTES ? cn_value_bytes(value, &size) : cn_value_text(value, &size);
    cairn_stream *stream = cn_stream_new(self, false);
    if (stream && size)
        cn_buf_append(&stream->bytes, bytes, size);
    return stream;
}

/* --- answering readers ----------------------------------------------------------------------- */

/* A call of a reader: to an object, or to a worker. */
struct question {
    struct cn_call *call;
    cairn_event *event;
};

/* Answers with what was built. */
static void answer(const struct question *question, cairn_builder *builder)
{
    struct cn_err err;
    if (question->event) {
        builder->handle = question->event->result.handle;
        cn_builder_fini(&question->event->result);
        question->event->result = *builder; /* which owns what was built */
        cn_compiled_answer(question->event);
        return;
    }
    struct cn_message *message = question->call->payload;
    question->call->taken_back = NULL;
    message->result = cn_builder_take(builder, &message->result_size, &err);
    cn_builder_fini(builder);
    if (message->result)
        cn_call_reply(question->call, message);
    else
        cn_call_fail(question->call, CN_FAULT_REMOTE, CN_EINVALID, "%s", err.text);
}

static void answer_undefined(const struct question *question)
{
    cairn_builder builder;
    cn_builder_init(&builder, 64);
    cn_build_undefined(&builder);
    answer(question, &builder);
}

static void refuse(cairn_object *self, const struct question *question, const char *text)
{
    if (question->event) {
        cn_compiled_reject(question->event, "Error", text);
        return;
    }
    struct cn_message *message = question->call->payload;
    struct cn_compiled_error error = {.type = "Error"};
    question->call->taken_back = NULL;
    snprintf(error.text, sizeof(error.text), "%s", text);
    message->result = cn_compiled_error_bytes(self, &error, &message->result_size);
    cn_call_fail(question->call, CN_FAULT_REMOTE, CN_EABORTED, "%s", text);
}

/* The question that waits is taken off the stream. */
static struct question take_question(cairn_stream *stream)
{
    struct question question = {stream->pull, stream->pull_event};
    stream->pull = NULL;
    stream->pull_event = NULL;
    return question;
}

static bool has_question(const cairn_stream *stream)
{
    return stream->pull || stream->pull_event;
}

static int give(void *data, struct cn_buf *bytes)
{
    cairn_stream *stream = data;
    cairn_builder builder;
    struct question question = take_question(stream);
    CN_ASSERT(question.call || question.event);
    cn_builder_init(&builder, CN_STREAM_BYTES_MAX + 64);
    cn_build_bytes(&builder, bytes->data, bytes->size);
    cn_buf_clear(bytes);
    answer(&question, &builder);
    return 0;
}

static void end(void *data, const char *failure)
{
    cairn_stream *stream = data;
    if (!has_question(stream))
        return; /* the object goes, and the core has failed it */
    struct question question = take_question(stream);
    if (failure) {
        refuse(stream->self, &question, failure);
        return;
    }
    cairn_builder builder;
    cn_builder_init(&builder, 64);
    cn_build_null(&builder);
    answer(&question, &builder);
}

static const struct cn_stream_sink lent_sink = {give, end};

/* --- giving away ----------------------------------------------------------------------------- */

static void build(cairn_builder *builder, cairn_stream *stream)
{
    cairn_object *self = stream->self;
    char address[CN_OBJECT_HEX_SIZE + 32];
    if (self->object)
        snprintf(address, sizeof(address), "o%u:%s", self->object->ns->id, self->id);
    else
        snprintf(address, sizeof(address), "w%u:%u%s", self->host->index, self->serial,
                 self->host->objects ? cn_node_mark(self->host->objects->node) : "");
    stream->number = (double)(cn_rand_next(self->host->rand) >> 17) + (double)(1ull << 40);
    stream->readers = 1;
    cn_list_push_back(&self->outside->lent, &stream->lent_link);
    cn_stream_sink(stream, &lent_sink, stream);
    cn_build_reference(builder, TAG_HOST_STREAM, address, stream->number);
}

void cn_compiled_build_stream(cairn_builder *builder, cairn_stream *stream)
{
    build(builder, stream);
}

void cn_api_build_stream(cairn_builder *builder, cairn_stream *stream)
{
    if (!stream->self->host)
        cn_build_mistake(builder, "there is nobody here who could read a stream");
    else if (cn_stream_is_free(stream))
        build(builder, stream);
    else
        cn_build_mistake(builder, "a stream has one reader, and only one that is written is given");
}

static cairn_stream *find(cairn_object *self, double number)
{
    if (!self->outside)
        return NULL;
    CN_LIST_FOREACH(&self->outside->lent, node)
    {
        cairn_stream *stream = CN_CONTAINER_OF(node, cairn_stream, lent_link);
        if (stream->sink && stream->number == number)
            return stream;
    }
    return NULL;
}

cairn_stream *cn_stream_take_lent(cairn_object *self, const cairn_value *value,
                                  const struct cn_stream_sink *sink, void *data)
{
    const struct cn_value_remote *remote =
        cn_value_kind(value) == CAIRN_STREAM ? cn_value_remote(value) : NULL;
    cairn_stream *stream = remote ? find(self, remote->number) : NULL;
    if (!stream)
        return NULL;
    cn_list_remove(&stream->lent_link); /* nobody else knows its number */
    cn_list_init(&stream->lent_link);
    stream->sink = sink;
    stream->sink_data = data;
    return stream;
}

/* --- calls of readers ------------------------------------------------------------------------ */

static void pull_taken_back(struct cn_call *call)
{
    cairn_stream *stream = (cairn_stream *)(uintptr_t)call->tag;
    stream->pull = NULL;
    stream->wants = false;
}

static void deliver_pull(cairn_stream *stream, const struct question *question)
{
    if (has_question(stream)) {
        refuse(stream->self, question, "A stream is asked for one piece at a time.");
        return;
    }
    stream->pull = question->call;
    stream->pull_event = question->event;
    if (question->call) {
        question->call->tag = (uint64_t)(uintptr_t)stream;
        question->call->taken_back = pull_taken_back;
    }
    cn_stream_want_here(stream);
}

static double note_number(const uint8_t *bytes, size_t size)
{
    struct cn_document document = {0};
    struct cn_err err;
    double number = -1;
    if (bytes && cn_document_read(&document, bytes, size, &err) == 0)
        (void)cn_value_number(document.root, &number); /* else it names nothing */
    cn_document_fini(&document);
    return number;
}

static bool is_note(const char *method)
{
    return strcmp(method, "~retain") == 0 || strcmp(method, "~release") == 0;
}

static void deliver(cairn_object *self, const struct question *question, const char *method,
                    const uint8_t *bytes, size_t size)
{
    if (is_note(method)) {
        cairn_stream *stream = find(self, note_number(bytes, size));
        bool retains = method[3] == 't';
        answer_undefined(question);
        if (stream && retains)
            stream->readers++;
        else if (stream && --stream->readers == 0)
            cn_stream_left(stream);
        return;
    }
    char *path;
    cairn_stream *stream = find(self, strtod(method, &path));
    if (stream && strcmp(path, ":pull") == 0) {
        deliver_pull(stream, question);
    } else if (stream && strcmp(path, ":cancelled") == 0) {
        struct question waiting = take_question(stream);
        answer_undefined(question);
        if (waiting.call || waiting.event)
            refuse(self, &waiting, "The stream was given up by its reader.");
        cn_stream_left(stream);
    } else {
        refuse(self, question,
               stream ? "A stream has no such method."
                      : "The execution context which hosts this callback is no longer running.");
    }
}

void cn_compiled_deliver_lent(cairn_object *self, struct cn_call *call)
{
    const struct cn_message *message = call->payload;
    struct question question = {.call = call};
    deliver(self, &question, message->method ? message->method : "", message->bytes, message->size);
}

void cn_compiled_deliver_target(cairn_object *self, cairn_event *event)
{
    struct question question = {.event = event};
    deliver(self, &question, event->method, event->bytes, event->asked->body_size);
}

bool cn_compiled_has_lent(cairn_object *self, const char *method, const uint8_t *bytes, size_t size)
{
    return find(self, is_note(method) ? note_number(bytes, size) : strtod(method, NULL));
}

void cn_compiled_forget_pull(cairn_event *event)
{
    CN_LIST_FOREACH(&event->object->outside->lent, node)
    {
        cairn_stream *stream = CN_CONTAINER_OF(node, cairn_stream, lent_link);
        if (stream->pull_event == event) {
            stream->pull_event = NULL;
            stream->wants = false;
        }
    }
}
