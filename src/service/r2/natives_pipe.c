/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/natives_pipe.c - the body of an R2 object as the body of a response, without
 * JavaScript.
 *
 * `new Response(object.body)` of an untouched body comes here. Pieces are read on the thread pool
 * and handed to the connection as they are; while the client takes one, the next is read.
 *
 *     read ──► write ──► read the next ──┐
 *                └ queue full: wait ◄────┘ for the client to have taken it
 *
 * Threads:   the lane's, but for the reads.
 * Ownership: a pipe belongs to itself; it goes when its event is over and no read runs. */
#include <uv.h>

#include "base/mem.h"
#include "bindings/http.h"
#include "service/r2/natives.h"
#include "border/r2/natives_pipe.h"
#include "js/native.h"
#include "net/server.h"
#include "worker/event.h"
#include "worker/event_life.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/runtime.h"

#define PIECE_SIZE (256u << 10)

struct pipe {
    uv_work_t work;
    struct cn_lane *lane;
    uint64_t event;              /* its handle */
    struct cn_r2_reader *reader; /* a reference */
    uint64_t offset, left;       /* not read yet */
    uint8_t *piece;              /* read, or being read into; owned */
    size_t size;
    int64_t result;
    struct cn_err err;
    bool reading, blocked; /* a read runs; the connection takes nothing more */
};

static void free_pipe(struct pipe *pipe)
{
    cn_free(pipe->piece);
    cn_r2_reader_unref(pipe->reader);
    cn_free(pipe);
}

/* The event if it is still there and this pipe still feeds it. */
static struct cn_event *event_of(struct pipe *pipe)
{
    struct cn_event *event = cn_event_find(pipe->lane, (double)pipe->event);
    return event && event->source == pipe && event->pipe.context ? event : NULL;
}

/* E3 of event.h: the event has ended another way. A read that runs finds that out. */
static void on_event_gone(void *source)
{
    struct pipe *pipe = source;
    if (!pipe->reading)
        free_pipe(pipe);
}

/* The client is gone: the pipe goes, now or when its read has ended. */
static void on_abort(struct cn_http_request *http, int status)
{
    struct cn_event *event = http->data;
    struct pipe *pipe = event ? event->source : NULL;
    if (pipe) {
        event->source = NULL;
        if (!pipe->reading)
            free_pipe(pipe);
    }
    cn_event_abort(http->server, http, status);
}

/* The pipe ends, and the event's answer with it. `failure` may be a text of the pipe's own. */
static void end(struct pipe *pipe, struct cn_event *event, const char *failure)
{
    struct cn_lane *lane = pipe->lane;
    double handle = (double)pipe->event;
    event->source = NULL;
    if (!failure && cn_http_end(event->http) < 0)
        failure = "The body is shorter than its Content-Length";
    bool whole = !failure;
    cn_http_pipe_end(event, failure);
    free_pipe(pipe);
    if (whole && (event = cn_event_find(lane, handle)))
        cn_event_answered(event);
}

static void run_read(uv_work_t *work)
{
    struct pipe *pipe = work->data;
    pipe->result = cn_r2_read(pipe->reader->blobs, &pipe->reader->body, pipe->piece, pipe->size,
                              pipe->offset, &pipe->err);
}

static void on_read(uv_work_t *work, int status);

static void read_next(struct pipe *pipe)
{
    if (!pipe->left)
        return;
    pipe->size = pipe->left < PIECE_SIZE ? (size_t)pipe->left : PIECE_SIZE;
    pipe->piece = cn_alloc(pipe->size);
    pipe->reading = true;
    pipe->work.data = pipe;
    uv_queue_work(&pipe->lane->loop, &pipe->work, run_read, on_read);
}

static void on_drain(struct cn_http_request *http);

/* Gives the piece that has been read to the connection. */
static void write_piece(struct pipe *pipe, struct cn_event *event)
{
    uint8_t *piece = pipe->piece;
    pipe->piece = NULL;
    int rc = cn_http_write(event->http, piece, pipe->size, cn_free, piece);
    if (rc < 0) {
        end(pipe, event,
            rc == CN_EINVALID ? "The body is longer than its Content-Length"
                              : "The client disconnected");
        return;
    }
    if (!pipe->left) {
        end(pipe, event, NULL);
        return;
    }
    if (rc == 0) {
        pipe->blocked = true;
        cn_http_on_drain(event->http, on_drain);
    }
    read_next(pipe);
}

static void on_drain(struct cn_http_request *http)
{
    struct cn_event *event = http->data;
    struct pipe *pipe = event ? event->source : NULL;
    if (!pipe)
        return;
    pipe->blocked = false;
    if (!pipe->reading)
        write_piece(pipe, event);
}

static void on_read(uv_work_t *work, int status)
{
    (void)status;
    struct pipe *pipe = work->data;
    struct cn_event *event = event_of(pipe);
    pipe->reading = false;
    if (!event) {
        free_pipe(pipe);
        return;
    }
    if (pipe->result != (int64_t)pipe->size) {
        end(pipe, event, pipe->result < 0 ? pipe->err.text : "The body ended early");
        return;
    }
    pipe->offset += pipe->size;
    pipe->left -= pipe->size;
    if (!pipe->blocked)
        write_piece(pipe, event);
}

/* respondR2(h, body, offset, size, callback): after respondStart(). The callback gets undefined at
 * the end, or a failure. False: the event is over, or has another body. */
static JSValueRef native_respond_r2(CN_JS_NATIVE_ARGS)
{
    struct cn_lane *lane = ((struct cn_instance *)cn_runtime_of(ctx)->data)->lane;
    struct cn_event *event = cn_event_find(lane, cn_js_to_number(ctx, cn_js_arg(0)));
    struct cn_r2_reader *reader = cn_r2_reader_arg(ctx, cn_js_arg(1));
    double offset = cn_js_to_number(ctx, cn_js_arg(2)), size = cn_js_to_number(ctx, cn_js_arg(3));
    if (!event || !event->http || !reader || !cn_event_is_streaming(event) || event->pipe.context ||
        event->source || !(size > 0))
        return JSValueMakeBoolean(ctx, false);
    struct pipe *pipe = CN_NEW(struct pipe);
    pipe->lane = lane;
    pipe->event = event->handle;
    pipe->reader = reader;
    atomic_fetch_add(&reader->refs, 1);
    pipe->offset = (uint64_t)offset;
    pipe->left = (uint64_t)size;
    event->source = pipe;
    event->source_gone = on_event_gone;
    event->http->on_abort = on_abort;
    cn_js_pin_set(&event->pipe, cn_js_context_of(ctx), cn_js_arg(4));
    read_next(pipe);
    return JSValueMakeBoolean(ctx, true);
}
