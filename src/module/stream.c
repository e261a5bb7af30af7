/* SPDX-License-Identifier: Apache-2.0 */
#include "module/guard.h"
#include "module/api.h"
#include "module/stream.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "module/crash.h"
#include "module/lent.h"
#include "object/node.h"

/* --- later ----------------------------------------------------------------------------------- */

struct cn_soon {
    uv_timer_t timer;
    void (*run)(void *data);
    void *data;
};

static void soon_closed(uv_handle_t *handle)
{
    cn_free(CN_CONTAINER_OF((uv_timer_t *)handle, struct cn_soon, timer));
}

static void on_soon(uv_timer_t *timer)
{
    struct cn_soon *soon = CN_CONTAINER_OF(timer, struct cn_soon, timer);
    uv_close((uv_handle_t *)timer, soon_closed);
    soon->run(soon->data);
}

struct cn_soon *cn_soon_start(uv_loop_t *loop, void (*run)(void *data), void *data)
{
    struct cn_soon *soon = CN_NEW(struct cn_soon);
    soon->run = run;
    soon->data = data;
    uv_timer_init(loop, &soon->timer);
    uv_timer_start(&soon->timer, on_soon, 0, 0);
    return soon;
}

void cn_soon_stop(struct cn_soon *soon)
{
    if (soon)
        uv_close((uv_handle_t *)&soon->timer, soon_closed);
}

/* --- both ------------------------------------------------------------------------------------ */

cairn_stream *cn_stream_new(cairn_object *self, bool writes)
{
    struct cn_compiled_outside *outside = cn_compiled_outside(self);
    if (cn_compiled_is_gone(self) || self->going) {
        cn_compiled_refuse(self, CAIRN_ECLOSED, "the object was reset");
        return NULL;
    }
    if (outside->stream_count == (self->object ? CN_STREAMS_MAX : CN_STREAMS_WORKER_MAX)) {
        cn_compiled_refuse(self, CAIRN_ELIMIT,
                           self->object ? "an object has 1000 streams at most"
                                        : "a worker has 20000 streams at most on a lane");
        return NULL;
    }
    cairn_stream *stream = CN_NEW(cairn_stream);
    stream->self = self;
    stream->writes = writes;
    cn_guard_add(stream, CN_GUARD_STREAM, self);
    stream->origin = self->origin;
    stream->trace = self->trace;
    cn_list_init(&stream->lent_link);
    cn_list_push_back(&outside->streams, &stream->link);
    outside->stream_count++;
    return stream;
}

void cn_stream_free(cairn_stream *stream)
{
    CN_ASSERT(!stream->pull && !stream->sink && !stream->source && !stream->reading);
    cn_guard_remove(stream);
    cn_soon_stop(stream->soon);
    cn_list_remove(&stream->link);
    cn_list_remove(&stream->lent_link);
    stream->self->outside->stream_count--;
    cn_buf_fini(&stream->bytes);
    cn_free(stream->failure);
    cn_free(stream);
}

/* --- reading --------------------------------------------------------------------------------- */

cairn_stream *cn_stream_from(cairn_object *self, const struct cn_stream_source *source, void *data)
{
    cairn_stream *stream = cn_stream_new(self, false);
    if (!stream)
        return NULL;
    stream->source = source;
    stream->source_data = data;
    return stream;
}

void cn_stream_stop(cairn_stream *stream, const char *reason)
{
    const struct cn_stream_source *source = stream->source;
    stream->state = CN_STREAM_ENDED;
    stream->source = NULL;
    if (source)
        source->stop(stream->source_data, reason); /* T4 */
}

/* What the class is told. */
static void read_piece(cairn_stream *stream, const struct cn_stream_piece *piece,
                       struct cairn_reply *reply)
{
    cairn_object *self = stream->self;
    const uint8_t *bytes = piece->bytes;
    size_t size = piece->size;
    struct cn_err err;
    if (bytes && !piece->is_value) {
        cairn_builder *builder = cn_compiled_lend_builder(self);
        cn_build_bytes(builder, bytes, size);
        if (cn_builder_finish(builder, &err) < 0) {
            reply->error = "the piece is too large";
            return;
        }
        bytes = builder->bytes.data;
        size = builder->bytes.size;
    }
    reply->error = piece->error;
    if (bytes)
        reply->value = cn_compiled_lend_value(self, bytes, size);
    if (!reply->error && bytes && !reply->value)
        reply->error = cn_api_error_text(self);
}

static void take_own(cairn_stream *stream, struct cn_stream_piece *piece)
{
    piece->over = stream->bytes.size == 0;
    piece->bytes = piece->over ? NULL : stream->bytes.data;
    piece->size = stream->bytes.size;
}

/* T1: in a turn, in no function of the class. */
static void run_read(cairn_object *self, void *data, const struct cn_pending_end *unused)
{
    cairn_stream *stream = data;
    struct cn_stream_piece piece = {0};
    struct cn_buf kept = {0};
    (void)unused;
    stream->reading = false;
    if (stream->source) {
        stream->source->take(stream->source_data, &piece);
    } else {
        kept = stream->bytes;
        take_own(stream, &piece);
        stream->bytes = (struct cn_buf){0};
    }
    if (stream->collects) {
        cn_body_piece(stream, &piece);
        cn_buf_fini(&kept);
        return;
    }
    struct cairn_reply reply = {.size = sizeof(reply)};
    cairn_done done = stream->done;
    char error[CN_ERR_TEXT_MAX];
    cn_compiled_enter(self);
    if (piece.error) { /* which may be the source's, and that is stopped first */
        snprintf(error, sizeof(error), "%s", piece.error);
        piece.error = error;
    }
    read_piece(stream, &piece, &reply);
    if (piece.over || piece.error)
        cn_stream_stop(stream, NULL);
    const struct cn_module_class *before = cn_module_crash_note(self->class_);
    done(cn_guard_show(self), self->instance, &reply, stream->data);
    cn_module_crash_note(before);
    cn_buf_fini(&kept);
    if (cn_compiled_leave(self) < 0)
        cn_api_log(self, CAIRN_FAILURE, "%s", cn_api_error_text(self));
}

void cn_stream_ready(cairn_stream *stream)
{
    cairn_object *self = cn_pending_leave(&stream->read);
    if (self)
        cn_pending_tell(self, &stream->read, &(struct cn_pending_end){0});
}

void cn_stream_ready_here(cairn_stream *stream)
{
    cairn_object *self = cn_pending_leave(&stream->read);
    if (!self)
        return;
    run_read(self, stream, NULL);
    cn_pending_let_go(self);
}

static void ready_soon(void *data)
{
    cairn_stream *stream = data;
    stream->soon = NULL;
    cn_stream_ready(stream);
}

void cn_stream_ready_soon(cairn_stream *stream)
{
    if (stream->reading && !stream->soon)
        stream->soon = cn_soon_start(cn_pending_loop(stream->self), ready_soon, stream);
}

int cn_stream_ask(cairn_stream *stream)
{
    cairn_object *self = stream->self;
    int rc = cn_pending_admit(self);
    if (rc < 0)
        return rc;
    cn_pending_start(&stream->read, self, NULL, stream);
    stream->read.ended = run_read;
    stream->reading = true;
    rc = stream->source ? stream->source->ask(stream->source_data) : 1;
    if (rc == 1)
        cn_stream_ready_soon(stream);
    if (rc >= 0)
        return 0;
    stream->reading = false;
    cn_pending_leave(&stream->read);
    cn_pending_let_go(self);
    return rc;
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
    return cn_stream_ask(stream);
}

/* The class has enough of it, whether a read is under way or not. */
static void end_reading(cairn_stream *stream, const char *reason)
{
    cairn_object *self = cn_pending_leave(&stream->read);
    cn_stream_stop(stream, reason);
    if (self)
        cn_pending_let_go(self);
    stream->reading = false;
    cn_stream_free(stream);
}

/* --- writing --------------------------------------------------------------------------------- */

cairn_stream *cn_api_stream_new(cairn_object *self, cairn_fired wanted, void *data)
{
    cairn_stream *stream = cn_stream_new(self, true);
    if (!stream)
        return NULL;
    stream->wanted = wanted;
    stream->data = data;
    return stream;
}

/* A stream of an object that others read keeps it, and the move of its shard (N5). */
static void given_begin(cairn_stream *stream)
{
    cn_object_wait(stream->self->object);
    stream->turn = cn_object_stream_begin(stream->self->object);
}

static void given_end(cairn_stream *stream)
{
    cn_object_stream_end(stream->self->object, stream->turn);
    cn_object_unwait(stream->self->object);
}

/* T3 */
static void writer_left(cairn_stream *stream)
{
    cairn_object *self = stream->self;
    if (stream->sink && self->object)
        given_end(stream);
    else if (stream->sink)
        self->outside->given_count--;
    stream->sink = NULL;
    stream->wants = false;
    cn_buf_fini(&stream->bytes);
    if (stream->ended_by_class)
        cn_stream_free(stream);
    else
        stream->state = CN_STREAM_CLOSED;
}

void cn_stream_sink(cairn_stream *stream, const struct cn_stream_sink *sink, void *data)
{
    CN_ASSERT(!stream->sink && stream->writes);
    stream->given = true;
    stream->sink = sink;
    stream->sink_data = data;
    if (stream->self->object)
        given_begin(stream);
    else
        cn_compiled_outside(stream->self)->given_count++;
}

/* Gives the sink what there is. A stream that has come to its end may be gone then. */
static void serve(cairn_stream *stream)
{
    while (stream->wants && stream->bytes.size) {
        stream->wants = false;
        int more = stream->sink->give(stream->sink_data, &stream->bytes);
        if (more < 0) {
            cn_stream_left(stream);
            return;
        }
        if (!stream->bytes.size && stream->bytes.capacity > CN_STREAM_BYTES_ENOUGH)
            cn_buf_fini(&stream->bytes);
        stream->wants = stream->wants || more > 0;
    }
    if (!stream->wants || stream->state == CN_STREAM_OPEN)
        return;
    stream->sink->end(stream->sink_data, stream->failure);
    writer_left(stream);
}

/* In a turn. */
static void tell_wanted(cairn_object *self, void *data, const struct cn_pending_end *unused)
{
    cairn_stream *stream = data;
    (void)unused;
    if (!stream->wanted || stream->ended_by_class)
        return;
    cn_compiled_enter(self);
    const struct cn_module_class *before = cn_module_crash_note(self->class_);
    stream->wanted(cn_guard_show(self), self->instance, stream->data);
    cn_module_crash_note(before);
    if (cn_compiled_leave(self) < 0)
        cn_api_log(self, CAIRN_FAILURE, "%s", cn_api_error_text(self));
}

/* Whether there is something that the class should hear of. */
static bool is_due(const cairn_stream *stream)
{
    if (!stream->wanted || stream->ended_by_class)
        return false;
    return stream->state == CN_STREAM_CLOSED ||
           (stream->state == CN_STREAM_OPEN && stream->wants && !stream->bytes.size);
}

static void wanted_soon(void *data)
{
    cairn_stream *stream = data;
    cairn_object *self = stream->self;
    stream->soon = NULL;
    if (!is_due(stream))
        return;
    struct cn_pending turn = {
        .ended = tell_wanted, .data = stream, .origin = stream->origin, .trace = stream->trace};
    if (self->object)
        cn_object_hold(self->object); /* which cn_pending_tell() lets go of */
    cn_pending_tell(self, &turn, &(struct cn_pending_end){0});
}

static void tell_soon(cairn_stream *stream)
{
    if (!stream->soon && is_due(stream))
        stream->soon = cn_soon_start(cn_pending_loop(stream->self), wanted_soon, stream);
}

void cn_stream_want(cairn_stream *stream)
{
    if (!stream->sink)
        return;
    bool is_open = stream->state == CN_STREAM_OPEN; /* and stays: only its end frees it */
    stream->wants = true;
    serve(stream);
    if (is_open)
        tell_soon(stream);
}

void cn_stream_want_here(cairn_stream *stream)
{
    stream->wants = true;
    if (stream->bytes.size || stream->state != CN_STREAM_OPEN)
        serve(stream);
    else if (is_due(stream))
        tell_wanted(stream->self, stream, NULL);
}

void cn_stream_left(cairn_stream *stream)
{
    bool tells = !stream->ended_by_class;
    writer_left(stream);
    if (tells)
        tell_soon(stream);
}

int cn_api_stream_write(cairn_stream *stream, const void *bytes, size_t size)
{
    cairn_object *self = stream->self;
    if (!stream->writes || stream->ended_by_class)
        return cn_compiled_refuse(self, CAIRN_EMISUSE, "the stream is read, not written");
    if (stream->state == CN_STREAM_CLOSED)
        return cn_compiled_refuse(self, CAIRN_ECLOSED, "the stream was given up by its reader");
    if (size > CN_STREAM_BYTES_MAX || stream->bytes.size > CN_STREAM_BYTES_MAX - size ||
        !cn_buf_try_append(&stream->bytes, size ? bytes : "", size))
        return cn_compiled_refuse(self, CAIRN_ELIMIT, "16 MiB of a stream wait at most");
    serve(stream);
    tell_soon(stream); /* the sink has room, and the class may write no more by itself */
    return stream->bytes.size < CN_STREAM_BYTES_ENOUGH;
}

static void end_writing(cairn_stream *stream, const char *failure)
{
    stream->ended_by_class = true;
    if (stream->state == CN_STREAM_CLOSED || !stream->given) {
        cn_stream_free(stream);
        return;
    }
    stream->state = failure ? CN_STREAM_FAILED : CN_STREAM_ENDED;
    if (failure) {
        stream->failure = cn_strdup(failure);
        cn_buf_fini(&stream->bytes);
    }
    serve(stream);
}

/* --- the end of either ----------------------------------------------------------------------- */

static void end_stream(cairn_stream *stream, const char *failure)
{
    cn_guard_remove(stream); /* which may wait for its reader */
    if (stream->writes)
        end_writing(stream, failure);
    else
        end_reading(stream, failure ? failure : "The stream was given up by its reader.");
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
        const struct cn_stream_sink *sink = stream->sink;
        stream->pull = NULL; /* the core has failed it */
        stream->pull_event = NULL;
        stream->sink = NULL; /* what waited for it (T3) goes with the object */
        stream->reading = false;
        if (sink)
            sink->end(stream->sink_data, "the object that writes the stream has gone");
        cn_stream_stop(stream, "The stream was given up by its reader.");
        cn_stream_free(stream);
    }
}
