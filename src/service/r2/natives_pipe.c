/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/natives_pipe.c - the body of an R2 object as the body of a response, without
 * JavaScript.
 *
 * `new Response(object.body)` of an untouched body comes here. Its blob is opened and its first
 * piece read on the thread pool. What the system has in memory is then read on the lane, each piece
 * into the same few bytes, which are still in the processor's cache when the socket takes them; a
 * change of threads would cost more than the copy. With the first piece that is not in memory the
 * pipe is cold: the rest comes from the thread pool, and while the client takes a piece, the next
 * is read.
 *
 *     open, read ──► write ──► send: read now, write, ... ──► the client is slow: wait
 *                                     └ would wait: cold ─┐                  │
 *     cold:  read ──► write ──► read the next ──┐ ◄───────┘      send ◄──────┘
 *                       └ queue full: wait ◄────┘ for the client to have taken it
 *
 * N1  A pipe that waits for its client keeps its blob open only while few are (READERS_KEPT): slow
 *     clients do not use up descriptors.
 * N2  A pipe gives at most TURN_SIZE bytes in a row, then lets the lane's others go on.
 * N3  end() frees the pipe: what is to be known of it afterwards is read before.
 *
 * Threads:   the lane's, but for the reads on the pool.
 * Ownership: a pipe belongs to itself; it goes when its event is over and no read runs. */
#include <errno.h>
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

#define PIECE_SIZE (256u << 10) /* of a cold pipe */
#define NOW_SIZE (64u << 10)
#define TURN_SIZE (1u << 20)
#define READERS_KEPT 256

struct pipe {
    uv_work_t work;
    struct cn_lane *lane;
    uint64_t event;              /* its handle */
    struct cn_r2_reader *reader; /* a reference */
    struct cn_r2_cursor cursor;
    uint64_t offset, left; /* not read yet */
    uint8_t *piece;        /* read, or being read into; owned */
    size_t size;
    int64_t result;
    struct cn_err err;
    bool reading, blocked; /* a read runs; the connection takes nothing more */
    bool cold;             /* a piece was not in memory */
};

static void free_pipe(struct pipe *pipe)
{
    cn_free(pipe->piece);
    cn_r2_cursor_close(&pipe->cursor);
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
    pipe->result = cn_r2_read_on(&pipe->cursor, pipe->reader->blobs, &pipe->reader->body,
                                 pipe->piece, pipe->size, pipe->offset, &pipe->err);
}

static void on_read(uv_work_t *work, int status);

static void read_next(struct pipe *pipe)
{
    size_t most = pipe->cold ? PIECE_SIZE : NOW_SIZE;
    pipe->size = pipe->left < most ? (size_t)pipe->left : most;
    pipe->piece = cn_alloc(pipe->size);
    pipe->reading = true;
    pipe->work.data = pipe;
    uv_queue_work(&pipe->lane->loop, &pipe->work, run_read, on_read);
}

static void on_drain(struct cn_http_request *http);

/* What cn_http_write() has returned: whether the pipe goes on. If not, it is gone (N3). */
static bool goes_on(struct pipe *pipe, struct cn_event *event, int rc)
{
    bool more = rc >= 0 && pipe->left;
    if (rc < 0)
        end(pipe, event,
            rc == CN_EINVALID ? "The body is longer than its Content-Length"
                              : "The client disconnected");
    else if (!more)
        end(pipe, event, NULL);
    return more;
}

/* N1; not while a read runs. */
static void close_if_many(struct pipe *pipe)
{
    if (cn_blobs_reader_count(pipe->reader->blobs) > READERS_KEPT)
        cn_r2_cursor_close(&pipe->cursor);
}

static void wait_for_client(struct pipe *pipe, struct cn_event *event)
{
    pipe->blocked = true;
    close_if_many(pipe);
    cn_http_on_drain(event->http, on_drain);
}

/* Gives what is in memory to the connection while it takes it at once. The pipe may be gone
 * afterwards. */
static void send_now(struct pipe *pipe, struct cn_event *event)
{
    uint8_t bytes[NOW_SIZE];
    for (size_t sent = 0; sent < TURN_SIZE && cn_http_queued(event->http) == 0;) {
        size_t size = pipe->left < NOW_SIZE ? (size_t)pipe->left : NOW_SIZE;
        pipe->cursor.now = true;
        int64_t got = cn_r2_read_on(&pipe->cursor, pipe->reader->blobs, &pipe->reader->body, bytes,
                                    size, pipe->offset, &pipe->err);
        pipe->cursor.now = false;
        if (got == -EAGAIN) {
            pipe->cold = true;
            read_next(pipe);
            return;
        }
        if (got != (int64_t)size) {
            end(pipe, event, got < 0 ? pipe->err.text : "The body ended early");
            return;
        }
        pipe->offset += size;
        pipe->left -= size;
        sent += size;
        if (!goes_on(pipe, event, cn_http_write(event->http, bytes, size, NULL, NULL)))
            return;
    }
    wait_for_client(pipe, event);
}

/* Gives the piece that has been read to the connection. */
static void write_piece(struct pipe *pipe, struct cn_event *event)
{
    uint8_t *piece = pipe->piece;
    pipe->piece = NULL;
    int rc = cn_http_write(event->http, piece, pipe->size, cn_free, piece);
    if (!goes_on(pipe, event, rc))
        return;
    if (rc == 0)
        wait_for_client(pipe, event);
    if (pipe->cold)
        read_next(pipe);
    else if (!pipe->blocked)
        send_now(pipe, event);
}

static void on_drain(struct cn_http_request *http)
{
    struct cn_event *event = http->data;
    struct pipe *pipe = event ? event->source : NULL;
    if (!pipe)
        return;
    pipe->blocked = false;
    if (pipe->piece && !pipe->reading)
        write_piece(pipe, event);
    else if (!pipe->cold)
        send_now(pipe, event);
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
    else
        close_if_many(pipe);
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
