/* SPDX-License-Identifier: Apache-2.0 */
#include "test/simulate/whole/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/server.h"
#include "net/stream.h"
#include "net/tls.h"
#include "peer/dial.h"
#include "test/simulate/whole/loop.h"
#include "test/simulate/whole/whole.h"

enum { ENDS = 4096, FD = 100000, KERNEL = 128 << 10, CUT_LOOK_MS = 40 };

/* Bytes on their way. */
struct chunk {
    struct chunk *next;
    bool end; /* no bytes: the other side has ended, with `status` */
    int status;
    struct cn_buf bytes;
};

struct end {
    bool used, over; /* over: nothing is sent or read any more here */
    struct process *process;
    struct end *other;
    struct cn_stream *stream; /* NULL: nobody has it at the moment */
    struct chunk *coming, **coming_end;
    size_t coming_bytes;   /* on their way, and what waits below */
    struct cn_buf arrived; /* and was not read */
    bool ended;
    int status;
    int64_t last_ms; /* of the last chunk that was sent to here */
    int32_t slow_ms; /* every chunk takes so long more */
    uint64_t taken;  /* bytes that have arrived here, ever */
};

struct cn_stream_lane {
    struct loop *loop;
    void (*on_gone)(void *data);
    void *data;
    size_t count;
    void (*freed)(void *data);
    void *freed_data;
    struct pending ending;
};

struct cn_stream {
    struct pending pending; /* first */
    struct cn_stream_lane *lane;
    const struct cn_stream_callbacks *callbacks;
    void *owner;
    struct end *end;
    struct cn_buf queue; /* that the kernel has not taken */
    bool reading, closing, told_end, want_drain, moved;
};

static struct end ends[ENDS];
static unsigned end_count;
/* A listener of each node, and who has come to it and was not accepted. */
static struct {
    struct process *process;
    uv_stream_t *handle;
    uv_connection_cb cb;
    struct pending pending;
    struct end *waiting[64];
    unsigned count;
} listeners[NODES];

void net_reset(void)
{
    memset(ends, 0, sizeof(ends[0]) * end_count);
    memset(listeners, 0, sizeof(listeners));
    end_count = 0;
}

static struct end *end_new(struct process *process)
{
    if (end_count == ENDS)
        abort();
    struct end *end = &ends[end_count++];
    *end = (struct end){.used = true, .process = process};
    end->coming_end = &end->coming;
    return end;
}

static bool is_cut(const struct end *a, const struct end *b)
{
    int i = a->process->index, k = b->process->index;
    return nodes[i].no_peer >> k & 1 || nodes[k].no_peer >> i & 1;
}

static void stream_look(struct end *end)
{
    if (end->stream && end->process->alive)
        loop_pend(end->stream->lane->loop, &end->stream->pending);
}

/* --- on the way ------------------------------------------------------------------------------- */

static void arrive(void *data);

static void on_its_way(struct end *to, struct chunk *chunk)
{
    int64_t at = now + (calm ? 0 : to->slow_ms) + (int32_t)rnd(one_in(25) && !calm ? 60 : 2);
    chunk->next = NULL;
    *to->coming_end = chunk;
    to->coming_end = &chunk->next;
    to->coming_bytes += chunk->bytes.size;
    if (at < to->last_ms)
        at = to->last_ms;
    to->last_ms = at;
    world_later((int32_t)at, arrive, to);
}

static void arrive(void *data)
{
    struct end *to = data;
    struct chunk *chunk = to->coming;
    if (!chunk)
        return;
    if (is_cut(to, to->other) && to->process->alive && !to->over) {
        world_later(now + CUT_LOOK_MS, arrive, to);
        return;
    }
    to->coming = chunk->next;
    if (!to->coming)
        to->coming_end = &to->coming;
    if (!to->over && to->process->alive) {
        cn_buf_append(&to->arrived, chunk->bytes.data, chunk->bytes.size);
        to->taken += chunk->bytes.size;
        if (chunk->end && !to->ended) {
            to->ended = true;
            to->status = chunk->status;
        }
        stream_look(to);
    } else if (!chunk->end && !to->other->ended && to->other->process->alive) {
        struct chunk *reset = cn_alloc_zero(sizeof(*reset)); /* nobody is there */
        reset->end = true;
        reset->status = UV_ECONNRESET;
        on_its_way(to->other, reset);
    }
    to->coming_bytes -= to->over ? chunk->bytes.size : 0;
    stream_look(to->other); /* there may be room */
    cn_buf_fini(&chunk->bytes);
    free(chunk);
}

static void send_end(struct end *from, int status)
{
    struct chunk *chunk = cn_alloc_zero(sizeof(*chunk));
    chunk->end = true;
    chunk->status = status;
    on_its_way(from->other, chunk);
}

static void end_over(struct end *end, int status)
{
    if (end->over)
        return;
    end->over = true;
    send_end(end, status);
}

/* As much as the kernels on both sides take. */
static void push_queue(struct cn_stream *stream)
{
    struct end *end = stream->end, *to = end->other;
    while (stream->queue.size && !end->over && to->coming_bytes < KERNEL) {
        size_t size = KERNEL - to->coming_bytes;
        if (size > stream->queue.size)
            size = stream->queue.size;
        if (size > 1 && one_in(8)) /* cut anywhere */
            size = 1 + rnd((uint32_t)size);
        struct chunk *chunk = cn_alloc_zero(sizeof(*chunk));
        cn_buf_append(&chunk->bytes, stream->queue.data, size);
        memmove(stream->queue.data, stream->queue.data + size, stream->queue.size - size);
        stream->queue.size -= size;
        on_its_way(to, chunk);
    }
}

/* --- streams ---------------------------------------------------------------------------------- */

static void stream_gone(struct cn_stream *stream)
{
    struct cn_stream_lane *lane = stream->lane;
    stream->callbacks->on_closed(stream);
    lane->count--;
    lane->loop->others--;
    cn_buf_fini(&stream->queue);
    free(stream);
    if (lane->on_gone)
        lane->on_gone(lane->data);
}

static void stream_read(struct cn_stream *stream)
{
    struct end *end = stream->end;
    size_t size = end->arrived.size > 16384 ? 16384 : end->arrived.size;
    uint8_t bytes[16384];
    memcpy(bytes, end->arrived.data, size);
    memmove(end->arrived.data, end->arrived.data + size, end->arrived.size - size);
    end->arrived.size -= size;
    end->coming_bytes -= size;
    stream_look(end->other);
    stream->callbacks->on_data(stream, bytes, size);
}

static void stream_run(struct pending *pending)
{
    struct cn_stream *stream = (struct cn_stream *)pending;
    if (stream->closing) {
        stream_gone(stream);
        return;
    }
    push_queue(stream);
    if (stream->want_drain && !stream->queue.size) {
        stream->want_drain = false;
        if (stream->callbacks->on_drain)
            stream->callbacks->on_drain(stream);
    }
    if (stream->reading && !stream->closing && stream->end->arrived.size)
        stream_read(stream);
    else if (stream->reading && !stream->closing && stream->end->ended && !stream->told_end) {
        stream->told_end = true;
        stream->callbacks->on_end(stream, stream->end->status);
    }
    bool more =
        stream->reading && (stream->end->arrived.size || (stream->end->ended && !stream->told_end));
    if (stream->closing || more || (stream->want_drain && !stream->queue.size))
        loop_pend(stream->lane->loop, &stream->pending);
}

static void lane_end(struct pending *pending)
{
    struct cn_stream_lane *lane = CN_CONTAINER_OF(pending, struct cn_stream_lane, ending);
    void (*freed)(void *) = lane->freed;
    void *data = lane->freed_data;
    free(lane);
    if (freed)
        freed(data);
}

struct cn_stream_lane *cn_stream_lane_new(uv_loop_t *loop, void (*on_gone)(void *data), void *data)
{
    struct cn_stream_lane *lane = cn_alloc_zero(sizeof(*lane));
    *lane = (struct cn_stream_lane){
        .loop = loop_of(loop), .on_gone = on_gone, .data = data, .ending.run = lane_end};
    return lane;
}

size_t cn_stream_lane_count(const struct cn_stream_lane *lane)
{
    return lane->count;
}

void cn_stream_lane_free(struct cn_stream_lane *lane, void (*cb)(void *data), void *data)
{
    lane->freed = cb;
    lane->freed_data = data;
    loop_pend(lane->loop, &lane->ending);
}

static struct cn_stream *stream_new(struct cn_stream_lane *lane, struct end *end,
                                    const struct cn_stream_callbacks *callbacks, void *owner)
{
    struct cn_stream *stream = cn_alloc_zero(sizeof(*stream));
    *stream = (struct cn_stream){.pending.run = stream_run,
                                 .lane = lane,
                                 .callbacks = callbacks,
                                 .owner = owner,
                                 .end = end};
    end->stream = stream;
    lane->count++;
    lane->loop->others++;
    return stream;
}

struct cn_stream *cn_stream_accept(struct cn_stream_lane *lane, uv_stream_t *listener,
                                   struct cn_tls_context *tls,
                                   const struct cn_stream_callbacks *callbacks, void *owner)
{
    (void)listener;
    (void)tls;
    int n = process_current()->index;
    if (!listeners[n].count)
        return NULL;
    struct end *end = listeners[n].waiting[0];
    memmove(listeners[n].waiting, listeners[n].waiting + 1,
            --listeners[n].count * sizeof(struct end *));
    return stream_new(lane, end, callbacks, owner);
}

struct cn_stream *cn_stream_arrive(struct cn_stream_lane *lane, struct cn_stream_moved *moved,
                                   const struct cn_stream_callbacks *callbacks, void *owner)
{
    return stream_new(lane, &ends[moved->fd - FD], callbacks, owner);
}

bool cn_stream_move(struct cn_stream *stream, struct cn_stream_moved *moved)
{
    push_queue(stream);
    if (stream->queue.size || stream->end->over || stream->end->ended)
        return false;
    *moved = (struct cn_stream_moved){.fd = FD + (int)(stream->end - ends)};
    stream->end->stream = NULL;
    stream->closing = true;
    loop_pend(stream->lane->loop, &stream->pending);
    return true;
}

void cn_stream_moved_drop(struct cn_stream_moved *moved)
{
    end_over(&ends[moved->fd - FD], UV_ECONNRESET);
}

void *cn_stream_owner(const struct cn_stream *stream)
{
    return stream->owner;
}

const char *cn_stream_remote(struct cn_stream *stream, uint16_t *port)
{
    (void)stream;
    if (port)
        *port = 1;
    return "10.0.0.1";
}

void cn_stream_resume(struct cn_stream *stream)
{
    stream->reading = true;
    loop_pend(stream->lane->loop, &stream->pending);
}

void cn_stream_pause(struct cn_stream *stream)
{
    stream->reading = false;
}

void cn_stream_write(struct cn_stream *stream, const void *bytes, size_t size)
{
    if (stream->closing)
        return;
    cn_buf_append(&stream->queue, bytes, size);
    loop_pend(stream->lane->loop, &stream->pending);
}

size_t cn_stream_queued(const struct cn_stream *stream)
{
    return stream->queue.size;
}

uint64_t cn_stream_acked(const struct cn_stream *stream)
{
    return stream->end->other->taken;
}

void cn_stream_want_drain(struct cn_stream *stream)
{
    stream->want_drain = true;
    loop_pend(stream->lane->loop, &stream->pending);
}

int cn_stream_flush(struct cn_stream *stream)
{
    if (!stream->closing)
        push_queue(stream);
    return 0;
}

void cn_stream_close(struct cn_stream *stream, bool reset)
{
    if (stream->closing)
        return;
    push_queue(stream);
    stream->closing = true;
    stream->end->stream = NULL;
    end_over(stream->end, reset ? UV_ECONNRESET : 0);
    loop_pend(stream->lane->loop, &stream->pending);
}

bool cn_stream_closing(const struct cn_stream *stream)
{
    return stream->closing;
}

/* --- TLS: everybody has the key --------------------------------------------------------------- */

int cn_tls_context_new_keyed(const uint8_t key[CN_TLS_KEY_SIZE], struct cn_tls_context **context,
                             struct cn_err *err)
{
    (void)key;
    (void)err;
    static char only;
    *context = (struct cn_tls_context *)&only;
    return 0;
}

struct cn_tls_context *cn_tls_context_ref(struct cn_tls_context *context)
{
    return context;
}

void cn_tls_context_unref(struct cn_tls_context *context)
{
    (void)context;
}

/* --- who connects ----------------------------------------------------------------------------- */

int cn_http_bind(const char *host, uint16_t port, int *fds, size_t count, uint16_t *bound_port,
                 struct cn_err *err)
{
    (void)host;
    (void)port;
    (void)count;
    (void)err;
    *fds = FD - 1 - process_current()->index;
    *bound_port = 1;
    return 0;
}

int uv_tcp_open(uv_tcp_t *tcp, uv_os_sock_t sock)
{
    (void)tcp;
    (void)sock;
    return 0;
}

static void listener_run(struct pending *pending)
{
    for (int n = 0; n < NODES; n++)
        if (&listeners[n].pending == pending)
            for (unsigned i = listeners[n].count;
                 i > 0 && listeners[n].count &&
                 !(uv_is_closing((uv_handle_t *)listeners[n].handle));
                 i--)
                listeners[n].cb(listeners[n].handle, 0);
}

int uv_listen(uv_stream_t *stream, int backlog, uv_connection_cb cb)
{
    int n = process_current()->index;
    (void)backlog;
    listeners[n].process = process_current();
    listeners[n].handle = stream;
    listeners[n].cb = cb;
    listeners[n].pending = (struct pending){.run = listener_run};
    listeners[n].count = 0;
    return 0;
}

struct cn_dial {
    struct pending pending; /* first */
    struct process *process;
    struct loop *loop;
    struct cn_dial_hooks hooks;
    int to;
    bool dropped, arrived, told;
};

static void dial_run(struct pending *pending)
{
    struct cn_dial *dial = (struct cn_dial *)pending;
    struct cn_dial_hooks hooks = dial->hooks;
    if (!dial->dropped && !dial->told) {
        int n = dial->to;
        dial->told = true;
        struct process *to = listeners[n].process;
        bool there = dial->arrived && to && to->alive && listeners[n].handle &&
                     !uv_is_closing((uv_handle_t *)listeners[n].handle) && listeners[n].count < 64;
        if (there) {
            struct end *own = end_new(dial->process), *other = end_new(to);
            own->other = other;
            other->other = own;
            listeners[n].waiting[listeners[n].count++] = other;
            loop_pend(loop_of(listeners[n].handle->loop), &listeners[n].pending);
            struct cn_stream_moved moved = {.fd = FD + (int)(own - ends)};
            hooks.done(hooks.data, &moved, 0);
        } else {
            hooks.done(hooks.data, NULL, UV_ECONNREFUSED);
        }
        loop_pend(dial->loop, &dial->pending);
        return;
    }
    dial->loop->others--;
    free(dial);
    hooks.gone(hooks.data);
}

static void dial_over(void *data)
{
    struct cn_dial *dial = data;
    if (!dial->process->alive)
        return;
    if (!dial->dropped && (nodes[dial->to].no_peer >> dial->process->index & 1 ||
                           nodes[dial->process->index].no_peer >> dial->to & 1)) {
        world_later(now + 500, dial_over, dial); /* no answer */
        return;
    }
    dial->arrived = true;
    loop_pend(dial->loop, &dial->pending);
}

struct cn_dial *cn_dial_new(uv_loop_t *loop, const char *address, unsigned turn,
                            struct cn_tls_context *tls, const struct cn_dial_hooks *hooks)
{
    int n;
    (void)turn;
    (void)tls;
    if (sscanf(address, "node-%d:1", &n) != 1)
        return NULL;
    struct cn_dial *dial = cn_alloc_zero(sizeof(*dial));
    *dial = (struct cn_dial){.pending.run = dial_run,
                             .process = process_current(),
                             .loop = loop_of(loop),
                             .hooks = *hooks,
                             .to = n};
    dial->loop->others++;
    world_later(now + 1 + (int32_t)rnd(calm ? 2 : 20), dial_over, dial);
    return dial;
}

void cn_dial_drop(struct cn_dial *dial)
{
    dial->dropped = true; /* dial_over() is on its way */
}

/* --- what goes wrong -------------------------------------------------------------------------- */

void net_process_ends(struct process *process)
{
    for (unsigned i = 0; i < end_count; i++)
        if (ends[i].process == process) {
            ends[i].stream = NULL;
            end_over(&ends[i], UV_ECONNRESET);
        }
    for (int n = 0; n < NODES; n++)
        if (listeners[n].process == process)
            listeners[n].process = NULL;
}

void net_fault(int n)
{
    for (unsigned i = 0; i < end_count; i++) {
        struct end *end = &ends[i];
        if (end->over || end->process->index != n || !one_in(3))
            continue;
        if (one_in(2)) {
            end->slow_ms = 1 + (int32_t)rnd(one_in(3) ? 900 : 60);
            continue;
        }
        TRACE("net: a connection of nodes %d and %d breaks", n, end->other->process->index);
        end->ended = end->other->ended = true;
        end->status = end->other->status = UV_ECONNRESET;
        cn_buf_clear(&end->arrived);
        cn_buf_clear(&end->other->arrived);
        stream_look(end);
        if (one_in(2))
            stream_look(end->other); /* else it learns by its next look */
    }
}
