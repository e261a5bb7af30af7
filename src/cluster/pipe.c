/* SPDX-License-Identifier: Apache-2.0 */
/* cluster/pipe.c - pipes between lanes of nodes. See pipe.h.
 *
 * A *peer* is a lane of another disk that is asked; it has its questions, and at most one dial or
 * one connection. A *connection* (conn) is a stream with its channels: of one that we have dialed a
 * channel is a question of ours (struct cn_pipe_asked), of one that has come in a question of
 * theirs (struct incoming). Numbers of channels are given by who asks, and used again when the
 * answer has come whole.
 *
 * A message that goes out (struct out) is in one of four places: the list `ready` of its
 * connection, which is sent from by turns; `behind` another one of the same order that is not sent
 * yet (T3); nowhere, while it waits for ROOM; or it is sent. One that comes in pieces (struct in)
 * waits for the budget in `starved`, first come, first served. */
#include "cluster/pipe.h"

#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/handles.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/wire.h"
#include "cluster/dial.h"
#include "net/stream.h"
#include "net/tls.h"

enum {
    TICK_MS = 100,
    SEND_AHEAD = 256 << 10, /* bytes that a stream is given before it has sent them */
    PEERS_MAX = 16384,
    SLOTS_FIRST = 64,
    /* T5: of a stream that has come in, with a frame without a body for every channel. */
    QUEUED_MAX = SEND_AHEAD + 2 * (int)CN_PIPE_PIECE_MAX + 64 * (int)CN_PIPE_CHANNELS_MAX,
};

struct out {
    struct cn_list link;
    struct conn *conn; /* NULL: it is sent, or not begun */
    uint32_t channel;
    const uint8_t *head, *body;
    size_t head_size, body_size, at; /* at: how much is sent */
    uint64_t order;
    struct cn_list behind;     /* of struct out */
    struct cn_list large_link; /* of conn->large, while it is large and not sent */
    bool announced, sent;
};

struct in {
    struct cn_list link; /* of pipes->starved */
    struct conn *conn;
    uint32_t channel;
    uint8_t *bytes; /* owned; NULL: not granted, or nobody wants it */
    size_t size, got;
    bool wanted, granted;
};

struct cn_pipe_asked {
    struct cn_list link; /* of its peer: waiting, or under_way */
    struct peer *peer;
    struct conn *conn;                 /* NULL: it has no channel yet */
    struct cn_pipe_question *question; /* NULL: cancelled */
    size_t size;
    struct out out;
    struct in in;
};

struct incoming {
    struct conn *conn;
    uint64_t ticket; /* 0: it is not whole yet, or was answered */
    size_t size;     /* of the question */
    uint8_t *head, *body;
    struct out out;
    struct in in;
};

struct peer {
    struct cn_pipes *pipes;
    uint64_t disk;
    unsigned lane;
    struct conn *conn;
    struct cn_dial *dial;
    uint64_t dial_until_ms, retry_at_ms, retry_ms;
    unsigned turn;
    struct cn_list waiting, under_way; /* of struct cn_pipe_asked, oldest first */
    size_t asked_bytes;
};

struct conn {
    struct cn_list link; /* of pipes->conns */
    struct cn_pipes *pipes;
    struct cn_stream *stream;
    struct cn_frame_reader reader;
    struct peer *peer; /* who is asked; NULL: it came in, or is over */
    struct cn_pipe_asker asker;
    bool came_in, up, over;
    uint64_t opened_ms, heard_ms, sent_ms;
    uint64_t took_ms, taken;       /* T7: when it last took something of what it is sent */
    uint64_t piece_ms;             /* and sent something of what it has room for */
    unsigned granted;              /* messages that it has room for */
    size_t came_bytes, left_bytes; /* of one that came in: questions, answers that wait */
    struct cn_list ready;          /* of struct out */
    struct cn_list large;          /* of struct out, by large_link */
    void **slots; /* owned: by channel - 1, a struct cn_pipe_asked or struct incoming */
    uint32_t slot_count;
    uint32_t *free; /* owned: slots that are not used, of one that asks */
    uint32_t free_count;
};

/* What is known of a disk. */
struct known {
    uint64_t disk;
    unsigned lane_count;
};

struct cn_pipes {
    uv_loop_t *loop;
    struct cn_pipes_config config;
    struct cn_stream_lane *streams;
    uv_timer_t timer;
    bool timer_open;
    struct cn_list conns, starved;
    struct cn_map peers; /* struct key -> struct peer, owned */
    struct cn_map disks; /* uint64_t -> struct known, owned */
    struct cn_handles tickets;
    unsigned dials, in_count, granted_count;
    uint64_t last_number, ticked_ms;
    uint64_t session; /* T10 */
    struct cn_pipes_stats stats;
    bool freed;
    void (*closed)(void *data);
    void *closed_data;
};

struct key {
    uint64_t disk, lane;
};

/* --- greetings: T1 ---------------------------------------------------------------------------- */

struct hello {
    uint32_t version_min, version_max;
    char cluster[CN_FRAME_CLUSTER_SIZE];
    uint64_t disk, life, to;
    uint32_t lane, to_lane;
    uint64_t features; /* none yet */
    uint64_t session;  /* T10 */
};

static const struct cn_wire_field hello_fields[] = {
    CN_WIRE_UINT(1, struct hello, version_min, UINT32_MAX),
    CN_WIRE_UINT(2, struct hello, version_max, UINT32_MAX),
    CN_WIRE_FIXED(3, struct hello, cluster),
    CN_WIRE_UINT(4, struct hello, disk, UINT64_MAX),
    CN_WIRE_UINT(5, struct hello, life, UINT64_MAX),
    CN_WIRE_UINT(6, struct hello, to, UINT64_MAX),
    CN_WIRE_UINT(7, struct hello, lane, UINT32_MAX),
    CN_WIRE_UINT(8, struct hello, to_lane, UINT32_MAX),
    CN_WIRE_UINT(9, struct hello, features, UINT64_MAX),
    CN_WIRE_UINT(10, struct hello, session, UINT64_MAX),
    CN_WIRE_END};

struct welcome {
    uint32_t version; /* 0: refused */
    uint64_t disk, life;
    uint32_t lane, lane_count;
    uint64_t features;
};

static const struct cn_wire_field welcome_fields[] = {
    CN_WIRE_UINT(1, struct welcome, version, UINT32_MAX),
    CN_WIRE_UINT(2, struct welcome, disk, UINT64_MAX),
    CN_WIRE_UINT(3, struct welcome, life, UINT64_MAX),
    CN_WIRE_UINT(4, struct welcome, lane, UINT32_MAX),
    CN_WIRE_UINT(5, struct welcome, lane_count, UINT32_MAX),
    CN_WIRE_UINT(6, struct welcome, features, UINT64_MAX),
    CN_WIRE_END};

int cn_pipe_hello_lane(const uint8_t *body, size_t size, unsigned lane_count)
{
    struct hello hello = {0};
    if (!lane_count || cn_wire_get(hello_fields, &hello, body, size, NULL) < 0)
        return CN_EPROTOCOL;
    return (int)(hello.to_lane % lane_count);
}

/* --- frames ----------------------------------------------------------------------------------- */

static void end_if_empty(struct cn_pipes *pipes);
static void conn_end(struct conn *conn);
static void begin_waiting(struct peer *peer);

static void send_frame(struct conn *conn, enum cn_frame_kind kind, uint32_t channel,
                       const void *body, size_t body_size, const void *more, size_t more_size)
{
    uint8_t head[CN_FRAME_HEAD_SIZE];
    cn_frame_put_head(head, kind, channel, body_size + more_size);
    cn_stream_write(conn->stream, head, sizeof(head));
    if (body_size)
        cn_stream_write(conn->stream, body, body_size);
    if (more_size)
        cn_stream_write(conn->stream, more, more_size);
    conn->sent_ms = uv_now(conn->pipes->loop);
    conn->pipes->stats.sent_bytes += sizeof(head) + body_size + more_size;
}

static void send_struct(struct conn *conn, enum cn_frame_kind kind,
                        const struct cn_wire_field *fields, const void *of)
{
    struct cn_buf body = {0};
    cn_wire_put(fields, of, &body);
    send_frame(conn, kind, 0, body.data, body.size, NULL, 0);
    cn_buf_fini(&body);
}

static bool malformed(struct conn *conn)
{
    conn->pipes->stats.malformed++;
    conn_end(conn); /* T6 */
    return false;
}

/* --- messages that go out --------------------------------------------------------------------- */

static size_t out_size(const struct out *out)
{
    return out->head_size + out->body_size;
}

static bool out_is_large(const struct out *out)
{
    return out_size(out) > CN_PIPE_PIECE_MAX;
}

static void out_init(struct out *out)
{
    cn_list_init(&out->link);
    cn_list_init(&out->behind);
    cn_list_init(&out->large_link);
}

/* T3 */
static struct out *find_before(const struct conn *conn, uint64_t order)
{
    CN_LIST_FOREACH(&conn->large, node)
    {
        struct out *out = CN_CONTAINER_OF(node, struct out, large_link);
        if (order && out->order == order)
            return out;
    }
    return NULL;
}

static void out_enqueue(struct conn *conn, struct out *out)
{
    struct out *before = find_before(conn, out->order);
    out->conn = conn;
    if (before) {
        cn_list_push_back(&before->behind, &out->link);
        return;
    }
    if (out_is_large(out))
        cn_list_push_back(&conn->large, &out->large_link);
    cn_list_push_back(&conn->ready, &out->link);
}

/* It is sent, or will not be: those behind it go on. */
static void out_leave(struct out *out)
{
    struct conn *conn = out->conn;
    struct cn_list *node;
    cn_list_remove(&out->link);
    cn_list_remove(&out->large_link);
    out->conn = NULL;
    while ((node = cn_list_take_front(&out->behind)))
        out_enqueue(conn, CN_CONTAINER_OF(node, struct out, link));
}

static void incoming_free(struct incoming *incoming);

static void out_sent(struct conn *conn, struct out *out)
{
    out_leave(out);
    out->sent = true;
    if (conn->came_in)
        incoming_free(CN_CONTAINER_OF(out, struct incoming, out));
}

static void send_piece(struct conn *conn, struct out *out, enum cn_frame_kind kind)
{
    size_t left = out_size(out) - out->at;
    size_t size = left < CN_PIPE_PIECE_MAX ? left : CN_PIPE_PIECE_MAX;
    size_t of_head = out->at < out->head_size ? out->head_size - out->at : 0;
    if (of_head > size)
        of_head = size;
    const uint8_t *head = of_head ? out->head + out->at : NULL;
    size_t body_at = out->at + of_head - out->head_size;
    const uint8_t *body = size > of_head ? out->body + body_at : NULL;
    send_frame(conn, kind, out->channel, head, of_head, body, size - of_head);
    out->at += size;
}

/* One turn of a message. */
static void send_some(struct conn *conn, struct out *out)
{
    if (!out_is_large(out)) {
        send_piece(conn, out, CN_FRAME_WHOLE);
        out_sent(conn, out);
    } else if (!out->announced) {
        uint8_t size[4];
        for (unsigned i = 0; i < 4; i++)
            size[i] = (uint8_t)(out_size(out) >> (8 * i));
        out->announced = true;
        conn->pipes->stats.large++;
        send_frame(conn, CN_FRAME_LARGE, out->channel, size, sizeof(size), NULL, 0);
    } else {
        send_piece(conn, out, CN_FRAME_PIECE);
        if (out->at == out_size(out))
            out_sent(conn, out);
        else
            cn_list_push_back(&conn->ready, &out->link); /* T4: by turns */
    }
}

static void pump(struct conn *conn)
{
    struct cn_list *node = NULL;
    while (conn->up && cn_stream_queued(conn->stream) < SEND_AHEAD &&
           (node = cn_list_take_front(&conn->ready)))
        send_some(conn, CN_CONTAINER_OF(node, struct out, link));
    if (conn->up && !cn_list_empty(&conn->ready))
        cn_stream_want_drain(conn->stream);
}

/* --- messages that come in -------------------------------------------------------------------- */

static size_t budget_max(const struct cn_pipe_budget *budget)
{
    return budget->max ? budget->max : 128u << 20;
}

/* T5 */
static bool budget_take(struct cn_pipes *pipes, size_t size)
{
    struct cn_pipe_budget *budget = pipes->config.budget;
    size_t before = atomic_fetch_add(&budget->used, size);
    if (before + size > budget_max(budget) && pipes->granted_count) {
        atomic_fetch_sub(&budget->used, size);
        return false;
    }
    pipes->granted_count++;
    return true;
}

/* T5: it does not take what it is sent. */
static bool is_deaf(const struct conn *conn)
{
    return conn->came_in && cn_stream_queued(conn->stream) > QUEUED_MAX;
}

static void grant(struct in *in)
{
    struct conn *conn = in->conn;
    in->bytes = cn_try_alloc(in->size);
    in->granted = true;
    if (!conn->granted++)
        conn->piece_ms = uv_now(conn->pipes->loop);
    if (in->bytes)
        send_frame(conn, CN_FRAME_ROOM, in->channel, NULL, 0, NULL, 0);
    if (!in->bytes) /* the machine has no memory: it may come again */
        conn_end(conn);
    else if (is_deaf(conn))
        (void)malformed(conn);
}

static void feed_starved(struct cn_pipes *pipes)
{
    while (!cn_list_empty(&pipes->starved)) {
        struct in *in = CN_CONTAINER_OF(pipes->starved.next, struct in, link);
        if (!budget_take(pipes, in->size))
            return;
        cn_list_remove(&in->link);
        grant(in);
    }
}

static void in_want(struct conn *conn, struct in *in, uint32_t channel, size_t size)
{
    struct cn_pipes *pipes = conn->pipes;
    *in = (struct in){.conn = conn, .channel = channel, .size = size, .wanted = true};
    cn_list_push_back(&pipes->starved, &in->link);
    feed_starved(pipes);
}

/* Gives back what it has of the budget, and its bytes unless they were taken. */
static void in_release(struct cn_pipes *pipes, struct in *in)
{
    cn_free(in->bytes);
    in->bytes = NULL;
    if (!in->wanted)
        return;
    cn_list_remove(&in->link);
    in->wanted = false;
    if (!in->granted)
        return;
    atomic_fetch_sub(&pipes->config.budget->used, in->size);
    pipes->granted_count--;
    in->conn->granted--;
}

static bool get_size(const struct cn_frame *frame, size_t *size)
{
    *size = 0;
    for (unsigned i = 0; i < 4 && frame->size == 4; i++)
        *size |= (size_t)frame->body[i] << (8 * i);
    return *size > CN_PIPE_PIECE_MAX && *size <= CN_PIPE_MESSAGE_MAX;
}

/* False: it is none of this message. */
static bool in_piece(struct in *in, const struct cn_frame *frame)
{
    if (!in->granted || !frame->size || frame->size > CN_PIPE_PIECE_MAX ||
        frame->size > in->size - in->got)
        return false;
    if (in->bytes)
        memcpy(in->bytes + in->got, frame->body, frame->size);
    in->got += frame->size;
    in->conn->piece_ms = uv_now(in->conn->pipes->loop);
    return true;
}

/* --- channels --------------------------------------------------------------------------------- */

static void *slot_at(const struct conn *conn, uint32_t channel)
{
    return channel && channel <= conn->slot_count ? conn->slots[channel - 1] : NULL;
}

static void grow_slots(struct conn *conn, uint32_t count)
{
    conn->slots = cn_realloc(conn->slots, count * sizeof(*conn->slots));
    conn->free = cn_realloc(conn->free, count * sizeof(*conn->free));
    for (uint32_t i = conn->slot_count; i < count; i++)
        conn->slots[i] = NULL;
    for (uint32_t i = count; i > conn->slot_count && !conn->came_in; i--)
        conn->free[conn->free_count++] = i;
    conn->slot_count = count;
}

static uint32_t slots_enough(const struct conn *conn, uint32_t channel)
{
    uint32_t count = conn->slot_count ? conn->slot_count : SLOTS_FIRST;
    while (count < channel)
        count *= 2;
    return count;
}

/* A channel for a question; 0: all are in use. */
static uint32_t take_channel(struct conn *conn)
{
    if (!conn->free_count && conn->slot_count < CN_PIPE_CHANNELS_MAX)
        grow_slots(conn, slots_enough(conn, conn->slot_count + 1));
    return conn->free_count ? conn->free[--conn->free_count] : 0;
}

static void give_channel(struct conn *conn, uint32_t channel)
{
    conn->slots[channel - 1] = NULL;
    conn->free[conn->free_count++] = channel;
    if (conn->peer && conn->up)
        begin_waiting(conn->peer);
}

/* --- our questions ---------------------------------------------------------------------------- */

static void asked_free(struct cn_pipe_asked *asked)
{
    struct cn_pipes *pipes = asked->peer->pipes;
    if (asked->out.conn)
        out_leave(&asked->out);
    in_release(pipes, &asked->in);
    cn_free(asked);
}

/* It is under way no more. */
static struct cn_pipe_question *asked_forget(struct cn_pipe_asked *asked)
{
    struct cn_pipe_question *question = asked->question;
    cn_list_remove(&asked->link);
    asked->peer->asked_bytes -= asked->size;
    asked->peer->pipes->stats.asked_bytes -= asked->size;
    asked->question = NULL;
    question->asked = NULL;
    return question;
}

static void begin(struct conn *conn, struct cn_pipe_asked *asked, uint32_t channel)
{
    asked->conn = conn;
    asked->out.channel = channel;
    conn->slots[channel - 1] = asked;
    cn_list_remove(&asked->link);
    cn_list_push_back(&asked->peer->under_way, &asked->link);
    out_enqueue(conn, &asked->out);
}

static void begin_waiting(struct peer *peer)
{
    uint32_t channel;
    while (!cn_list_empty(&peer->waiting) && (channel = take_channel(peer->conn)))
        begin(peer->conn, CN_CONTAINER_OF(peer->waiting.next, struct cn_pipe_asked, link), channel);
    pump(peer->conn);
}

static void asked_end(struct cn_pipe_asked *asked, enum cn_pipe_end end)
{
    struct cn_pipes *pipes = asked->peer->pipes;
    struct cn_pipe_question *question = asked_forget(asked);
    uint8_t *bytes = end == CN_PIPE_ANSWERED ? asked->in.bytes : NULL;
    size_t size = asked->in.size;
    if (bytes)
        asked->in.bytes = NULL;
    asked_free(asked);
    pipes->stats.unsent += end == CN_PIPE_UNSENT;
    pipes->stats.lost += end == CN_PIPE_LOST;
    question->done(question, end, bytes, bytes ? size : 0);
}

/* A channel has its answer whole. False: the connection is over. */
static bool on_answer(struct conn *conn, uint32_t channel, struct cn_pipe_asked *asked)
{
    if (asked->question)
        asked_end(asked, CN_PIPE_ANSWERED);
    else
        asked_free(asked);
    if (conn->over)
        return false;
    give_channel(conn, channel);
    feed_starved(conn->pipes);
    return !conn->over;
}

/* A frame of the one who is asked. */
static bool on_asked_frame(struct conn *conn, const struct cn_frame *frame)
{
    struct cn_pipe_asked *asked = slot_at(conn, frame->channel);
    struct in *in = asked ? &asked->in : NULL;
    size_t size;
    if (!asked)
        return malformed(conn);
    switch (frame->kind) {
    case CN_FRAME_ROOM:
        if (frame->size || !asked->out.announced || asked->out.sent)
            return malformed(conn);
        if (asked->question && asked->out.conn && cn_list_empty(&asked->out.link))
            cn_list_push_back(&conn->ready, &asked->out.link);
        pump(conn);
        return true;
    case CN_FRAME_WHOLE:
        if (!asked->out.sent || in->wanted || frame->size > CN_PIPE_PIECE_MAX)
            return malformed(conn);
        *in = (struct in){.bytes = cn_alloc(frame->size + 1), .size = frame->size};
        cn_list_init(&in->link);
        memcpy(in->bytes, frame->body, frame->size);
        return on_answer(conn, frame->channel, asked);
    case CN_FRAME_LARGE:
        if (!asked->out.sent || in->wanted || !get_size(frame, &size))
            return malformed(conn);
        if (asked->question)
            in_want(conn, in, frame->channel, size);
        return !conn->over;
    case CN_FRAME_PIECE:
        if (!in_piece(in, frame))
            return malformed(conn);
        return in->got < in->size || on_answer(conn, frame->channel, asked);
    case CN_FRAME_CANCELLED:
        if (asked->question || frame->size)
            return malformed(conn);
        return on_answer(conn, frame->channel, asked);
    default:
        return malformed(conn);
    }
}

/* --- their questions -------------------------------------------------------------------------- */

static void incoming_free(struct incoming *incoming)
{
    struct conn *conn = incoming->conn;
    struct cn_pipes *pipes = conn->pipes;
    uint32_t channel = incoming->out.channel;
    if (incoming->out.conn)
        out_leave(&incoming->out);
    pipes->stats.answer_bytes -= out_size(&incoming->out);
    conn->left_bytes -= out_size(&incoming->out);
    conn->came_bytes -= incoming->size;
    in_release(pipes, &incoming->in);
    if (incoming->ticket)
        cn_handles_remove(&pipes->tickets, incoming->ticket);
    conn->slots[channel - 1] = NULL;
    cn_free(incoming->head);
    cn_free(incoming->body);
    cn_free(incoming);
}

static struct incoming *incoming_new(struct conn *conn, uint32_t channel, size_t size)
{
    struct incoming *incoming = CN_NEW(struct incoming);
    incoming->conn = conn;
    incoming->size = size;
    conn->came_bytes += size;
    incoming->out.channel = channel;
    out_init(&incoming->out);
    cn_list_init(&incoming->in.link);
    if (channel > conn->slot_count)
        grow_slots(conn, slots_enough(conn, channel));
    conn->slots[channel - 1] = incoming;
    return incoming;
}

/* It is whole. */
static bool deliver(struct conn *conn, struct incoming *incoming, uint8_t *bytes, size_t size)
{
    struct cn_pipes *pipes = conn->pipes;
    incoming->ticket = cn_handles_add(&pipes->tickets, incoming);
    if (!incoming->ticket) { /* two million are under way on this lane */
        cn_free(bytes);
        conn_end(conn);
        return false;
    }
    pipes->stats.answered++;
    pipes->config.hooks.asked(pipes->config.hooks.data, &conn->asker, incoming->ticket, bytes,
                              size);
    return !conn->over;
}

static bool on_whole(struct conn *conn, const struct cn_frame *frame)
{
    uint8_t *bytes = cn_alloc(frame->size + 1);
    memcpy(bytes, frame->body, frame->size);
    return deliver(conn, incoming_new(conn, frame->channel, frame->size), bytes, frame->size);
}

static bool on_piece(struct conn *conn, struct incoming *incoming, const struct cn_frame *frame)
{
    if (incoming->ticket || !in_piece(&incoming->in, frame))
        return malformed(conn);
    if (incoming->in.got < incoming->in.size)
        return true;
    uint8_t *bytes = incoming->in.bytes;
    size_t size = incoming->in.size;
    incoming->in.bytes = NULL;
    in_release(conn->pipes, &incoming->in);
    feed_starved(conn->pipes);
    if (!conn->over)
        return deliver(conn, incoming, bytes, size);
    cn_free(bytes);
    return false;
}

/* T5: whether it may ask so much more. Twice what it may ask, since another release may have
 * another bound. */
static bool may_come(const struct conn *conn, size_t size)
{
    return !conn->came_bytes || conn->came_bytes + size <= 2 * conn->pipes->config.asked_max;
}

/* A frame of the one who asks. */
static bool on_asker_frame(struct conn *conn, const struct cn_frame *frame)
{
    struct incoming *incoming = slot_at(conn, frame->channel);
    size_t size;
    bool good = frame->channel && frame->channel <= CN_PIPE_CHANNELS_MAX;
    switch (frame->kind) {
    case CN_FRAME_WHOLE:
        if (!good || incoming || frame->size > CN_PIPE_PIECE_MAX || !may_come(conn, frame->size))
            return malformed(conn);
        return on_whole(conn, frame);
    case CN_FRAME_LARGE:
        if (!good || incoming || !get_size(frame, &size) || !may_come(conn, size))
            return malformed(conn);
        in_want(conn, &incoming_new(conn, frame->channel, size)->in, frame->channel, size);
        return !conn->over;
    case CN_FRAME_PIECE:
        return incoming ? on_piece(conn, incoming, frame) : malformed(conn);
    case CN_FRAME_ROOM:
        if (!incoming || frame->size || !incoming->out.announced ||
            !cn_list_empty(&incoming->out.link) || incoming->out.at)
            return malformed(conn);
        cn_list_push_back(&conn->ready, &incoming->out.link);
        pump(conn);
        return true;
    case CN_FRAME_CANCEL:
        if (!good || frame->size)
            return malformed(conn);
        if (!incoming)
            return true; /* it was answered meanwhile */
        incoming_free(incoming);
        send_frame(conn, CN_FRAME_CANCELLED, frame->channel, NULL, 0, NULL, 0);
        if (is_deaf(conn))
            return malformed(conn);
        feed_starved(conn->pipes);
        return !conn->over;
    default:
        return malformed(conn);
    }
}

/* --- connections ------------------------------------------------------------------------------ */

static void pause_peer(struct peer *peer)
{
    const struct cn_pipes_config *config = &peer->pipes->config;
    peer->retry_at_ms = uv_now(peer->pipes->loop) + peer->retry_ms;
    peer->retry_ms *= 2;
    if (peer->retry_ms > config->retry_max_ms)
        peer->retry_ms = config->retry_max_ms;
}

/* The way to it is broken. Who is told may ask anew, and is refused while it pauses. */
static void fail_peer(struct peer *peer)
{
    struct cn_list ending, *node;
    cn_list_init(&ending);
    cn_list_splice(&ending, &peer->under_way);
    cn_list_splice(&ending, &peer->waiting);
    pause_peer(peer);
    CN_LIST_FOREACH(&ending, each)
    {
        struct cn_pipe_asked *asked = CN_CONTAINER_OF(each, struct cn_pipe_asked, link);
        if (asked->conn)
            asked->conn->slots[asked->out.channel - 1] = NULL;
        if (asked->out.conn) /* by hand: all of them go */
            cn_list_remove(&asked->out.link);
        cn_list_remove(&asked->out.large_link);
        asked->out.conn = NULL;
        asked->conn = NULL;
        in_release(peer->pipes, &asked->in);
    }
    while (!cn_list_empty(&ending)) {
        node = ending.next;
        struct cn_pipe_asked *asked = CN_CONTAINER_OF(node, struct cn_pipe_asked, link);
        cn_list_init(&asked->out.behind);
        asked_end(asked, asked->out.sent ? CN_PIPE_LOST : CN_PIPE_UNSENT); /* T2 */
    }
}

static void drop_slots(struct conn *conn)
{
    for (uint32_t i = 0; i < conn->slot_count; i++) {
        if (!conn->slots[i])
            continue;
        if (conn->came_in) {
            incoming_free(conn->slots[i]);
        } else { /* what was cancelled: the rest is its peer's */
            struct cn_pipe_asked *asked = conn->slots[i];
            conn->slots[i] = NULL;
            asked_free(asked);
        }
    }
}

static void conn_end(struct conn *conn)
{
    struct cn_pipes *pipes = conn->pipes;
    struct peer *peer = conn->peer;
    if (conn->over)
        return;
    bool was_up = conn->up;
    conn->over = true;
    conn->up = false;
    conn->peer = NULL;
    cn_stream_close(conn->stream, true);
    pipes->stats.broken += was_up;
    if (peer) {
        peer->conn = NULL;
        fail_peer(peer);
    }
    drop_slots(conn);
    if (conn->came_in) {
        pipes->in_count--;
        if (was_up && pipes->config.hooks.gone && !pipes->freed)
            pipes->config.hooks.gone(pipes->config.hooks.data, &conn->asker);
    }
    if (!pipes->freed)
        feed_starved(pipes);
}

static struct known *known_of(struct cn_pipes *pipes, uint64_t disk)
{
    struct known *known = cn_map_find(&pipes->disks, &disk, sizeof(disk));
    if (known)
        return known;
    known = CN_NEW(struct known);
    *known = (struct known){disk, pipes->config.lane_count};
    (void)cn_map_set(&pipes->disks, &disk, sizeof(disk), known);
    return known;
}

/* The answer to our PIPE. */
static bool on_welcome(struct conn *conn, const struct cn_frame *frame)
{
    struct peer *peer = conn->peer;
    struct welcome welcome = {0};
    if (frame->kind != CN_FRAME_WELCOME || frame->channel ||
        cn_wire_get(welcome_fields, &welcome, frame->body, frame->size, NULL) < 0)
        return malformed(conn);
    if (welcome.lane_count && welcome.disk == peer->disk)
        known_of(conn->pipes, peer->disk)->lane_count = welcome.lane_count;
    if (welcome.version < CN_PIPE_VERSION_MIN || welcome.version > CN_PIPE_VERSION_MAX ||
        welcome.disk != peer->disk || welcome.lane != peer->lane) {
        peer->retry_ms = conn->pipes->config.retry_ms;
        conn_end(conn); /* refused, or it has another number of lanes: whoever asks anew finds it */
        return false;
    }
    conn->up = true;
    conn->asker.life = welcome.life;
    peer->retry_ms = conn->pipes->config.retry_ms;
    begin_waiting(peer);
    return !conn->over;
}

static bool on_frame(void *data, const struct cn_frame *frame)
{
    struct conn *conn = data;
    if (!conn->up)
        return on_welcome(conn, frame);
    if (frame->kind == CN_FRAME_BEAT)
        return (!frame->size && !frame->channel) || malformed(conn);
    return conn->came_in ? on_asker_frame(conn, frame) : on_asked_frame(conn, frame);
}

static void on_data(struct cn_stream *stream, const uint8_t *bytes, size_t size)
{
    struct conn *conn = cn_stream_owner(stream);
    if (conn->over)
        return;
    conn->pipes->stats.received_bytes += size;
    conn->heard_ms = uv_now(conn->pipes->loop);
    if (cn_frame_read(&conn->reader, bytes, size, on_frame, conn) < 0 && !conn->over)
        (void)malformed(conn);
}

static void on_end(struct cn_stream *stream, int status)
{
    (void)status;
    conn_end(cn_stream_owner(stream));
}

static void on_drain(struct cn_stream *stream)
{
    struct conn *conn = cn_stream_owner(stream);
    if (!conn->over)
        pump(conn);
}

static void on_closed(struct cn_stream *stream)
{
    struct conn *conn = cn_stream_owner(stream);
    cn_list_remove(&conn->link);
    cn_frame_reader_fini(&conn->reader);
    cn_free(conn->slots);
    cn_free(conn->free);
    cn_free(conn);
}

static const struct cn_stream_callbacks callbacks = {
    .on_data = on_data, .on_end = on_end, .on_drain = on_drain, .on_closed = on_closed};

static void on_time(uv_timer_t *timer);

/* NULL: it is gone. */
static struct conn *conn_new(struct cn_pipes *pipes, struct cn_stream_moved *moved)
{
    struct conn *conn = CN_NEW(struct conn);
    conn->pipes = pipes;
    conn->reader.pipe = true;
    conn->opened_ms = conn->heard_ms = conn->sent_ms = conn->took_ms = uv_now(pipes->loop);
    cn_list_init(&conn->ready);
    cn_list_init(&conn->large);
    conn->stream = cn_stream_arrive(pipes->streams, moved, &callbacks, conn);
    if (!conn->stream) {
        cn_free(conn);
        return NULL;
    }
    cn_list_push_back(&pipes->conns, &conn->link);
    cn_stream_resume(conn->stream);
    if (!uv_is_active((uv_handle_t *)&pipes->timer))
        uv_timer_start(&pipes->timer, on_time, TICK_MS, TICK_MS);
    return conn;
}

/* --- coming in -------------------------------------------------------------------------------- */

static struct conn *find_in(const struct cn_pipes *pipes, const struct hello *hello)
{
    CN_LIST_FOREACH(&pipes->conns, node)
    {
        struct conn *conn = CN_CONTAINER_OF(node, struct conn, link);
        if (conn->came_in && !conn->over && conn->asker.disk == hello->disk &&
            conn->asker.lane == hello->lane)
            return conn;
    }
    return NULL;
}

static bool hello_is_good(const struct cn_pipes *pipes, const struct hello *hello)
{
    return hello->version_min <= CN_PIPE_VERSION_MAX && hello->version_max >= CN_PIPE_VERSION_MIN &&
           memcmp(hello->cluster, pipes->config.cluster, CN_FRAME_CLUSTER_SIZE) == 0 &&
           hello->disk && hello->disk != pipes->config.disk && hello->to == pipes->config.disk &&
           pipes->in_count < CN_PIPES_IN_MAX;
}

void cn_pipes_accept(struct cn_pipes *pipes, struct cn_stream_moved *moved, const uint8_t *body,
                     size_t size)
{
    cn_loop_assert_owner(pipes->loop);
    struct hello hello = {0};
    if (pipes->freed || cn_wire_get(hello_fields, &hello, body, size, NULL) < 0) {
        cn_stream_moved_drop(moved);
        return;
    }
    struct conn *before = find_in(pipes, &hello);
    bool good = hello_is_good(pipes, &hello) && !(before && before->asker.life > hello.life);
    if (good && before)
        conn_end(before); /* T8 */
    struct conn *conn = conn_new(pipes, moved);
    if (!conn)
        return;
    struct welcome welcome = {.version = good ? CN_PIPE_VERSION_MAX : 0,
                              .disk = pipes->config.disk,
                              .life = pipes->config.life,
                              .lane = pipes->config.lane,
                              .lane_count = pipes->config.lane_count};
    if (good && hello.version_max < welcome.version)
        welcome.version = hello.version_max;
    conn->came_in = true;
    conn->asker = (struct cn_pipe_asker){.disk = hello.disk,
                                         .life = hello.life,
                                         .lane = hello.lane,
                                         .number = ++pipes->last_number,
                                         .session = hello.session};
    pipes->in_count++;
    send_struct(conn, CN_FRAME_WELCOME, welcome_fields, &welcome);
    conn->up = good;
    if (good)
        return;
    (void)cn_stream_flush(conn->stream); /* it is closed in any case */
    conn_end(conn);
}

/* --- asking ----------------------------------------------------------------------------------- */

static void on_dialed(void *data, struct cn_stream_moved *moved)
{
    struct peer *peer = data;
    struct cn_pipes *pipes = peer->pipes;
    peer->dial = NULL;
    struct conn *conn = moved ? conn_new(pipes, moved) : NULL;
    if (!conn) {
        fail_peer(peer);
        return;
    }
    conn->peer = peer;
    conn->asker.disk = peer->disk;
    peer->conn = conn;
    struct hello hello = {.version_min = CN_PIPE_VERSION_MIN,
                          .version_max = CN_PIPE_VERSION_MAX,
                          .disk = pipes->config.disk,
                          .life = pipes->config.life,
                          .to = peer->disk,
                          .lane = pipes->config.lane,
                          .to_lane = peer->lane,
                          .session = pipes->session};
    memcpy(hello.cluster, pipes->config.cluster, CN_FRAME_CLUSTER_SIZE);
    send_struct(conn, CN_FRAME_PIPE, hello_fields, &hello);
}

static void on_dial_gone(void *data)
{
    struct peer *peer = data;
    peer->pipes->dials--;
    end_if_empty(peer->pipes);
}

static int dial(struct peer *peer)
{
    struct cn_pipes *pipes = peer->pipes;
    char address[CN_LINK_ADDRESS_MAX + 1];
    struct cn_dial_hooks hooks = {peer, on_dialed, on_dial_gone};
    if (uv_now(pipes->loop) < peer->retry_at_ms)
        return CN_ECLOSED;
    if (!pipes->config.hooks.address(pipes->config.hooks.data, peer->disk, address))
        return CN_ENOTFOUND;
    peer->dial = cn_dial_new(pipes->loop, address, peer->turn++, pipes->config.tls, &hooks);
    if (!peer->dial) {
        pause_peer(peer);
        return CN_ENOTFOUND;
    }
    pipes->dials++;
    peer->dial_until_ms = uv_now(pipes->loop) + pipes->config.greet_ms;
    if (!uv_is_active((uv_handle_t *)&pipes->timer))
        uv_timer_start(&pipes->timer, on_time, TICK_MS, TICK_MS);
    return 0;
}

/* NULL: there are too many. */
static struct peer *peer_get(struct cn_pipes *pipes, uint64_t disk, unsigned lane)
{
    struct key key = {disk, lane};
    struct peer *peer = cn_map_find(&pipes->peers, &key, sizeof(key));
    if (peer || pipes->peers.count >= PEERS_MAX)
        return peer;
    peer = CN_NEW(struct peer);
    *peer = (struct peer){
        .pipes = pipes, .disk = disk, .lane = lane, .retry_ms = pipes->config.retry_ms};
    cn_list_init(&peer->waiting);
    cn_list_init(&peer->under_way);
    (void)cn_map_set(&pipes->peers, &key, sizeof(key), peer);
    return peer;
}

static int refuse(struct cn_pipes *pipes)
{
    pipes->stats.refused++;
    return CN_EOVERLOADED;
}

int cn_pipes_ask(struct cn_pipes *pipes, uint64_t disk, uint64_t hash,
                 struct cn_pipe_question *question)
{
    cn_loop_assert_owner(pipes->loop);
    CN_ASSERT(!question->asked && question->done);
    size_t size = question->head_size + question->body_size;
    if (pipes->freed)
        return CN_ECLOSED;
    struct peer *peer = peer_get(pipes, disk, (unsigned)(hash % known_of(pipes, disk)->lane_count));
    if (!peer || size > CN_PIPE_MESSAGE_MAX)
        return refuse(pipes);
    if (peer->asked_bytes && (peer->asked_bytes + size > pipes->config.asked_max ||
                              pipes->stats.asked_bytes + size > pipes->config.asked_total_max))
        return refuse(pipes); /* T5 */
    if (!peer->conn && !peer->dial) {
        int rc = dial(peer);
        if (rc < 0)
            return rc;
    }
    struct cn_pipe_asked *asked = CN_NEW(struct cn_pipe_asked);
    asked->peer = peer;
    asked->question = question;
    asked->size = size;
    out_init(&asked->out);
    cn_list_init(&asked->in.link);
    asked->out.head = question->head;
    asked->out.head_size = question->head_size;
    asked->out.body = question->body;
    asked->out.body_size = question->body_size;
    asked->out.order = question->order;
    question->asked = asked;
    peer->asked_bytes += size;
    pipes->stats.asked_bytes += size;
    pipes->stats.asked++;
    cn_list_push_back(&peer->waiting, &asked->link);
    if (peer->conn && peer->conn->up)
        begin_waiting(peer);
    return 0;
}

void cn_pipes_cancel(struct cn_pipes *pipes, struct cn_pipe_question *question)
{
    cn_loop_assert_owner(pipes->loop);
    struct cn_pipe_asked *asked = question->asked;
    if (!asked)
        return;
    struct conn *conn = asked->conn;
    uint32_t channel = asked->out.channel;
    (void)asked_forget(asked);
    if (asked->out.conn)
        out_leave(&asked->out);
    in_release(pipes, &asked->in); /* pieces that are on their way are counted, no more */
    if (!conn || (!asked->out.sent && !asked->out.announced)) {
        asked_free(asked);
        if (conn)
            give_channel(conn, channel);
        return;
    }
    send_frame(conn, CN_FRAME_CANCEL, channel, NULL, 0, NULL, 0);
    pump(conn);
}

/* --- answering -------------------------------------------------------------------------------- */

bool cn_pipes_waits(const struct cn_pipes *pipes, uint64_t ticket)
{
    return cn_handles_find(&pipes->tickets, (double)ticket) != NULL;
}

bool cn_pipes_answer(struct cn_pipes *pipes, uint64_t ticket, const void *head, size_t head_size,
                     uint8_t *body, size_t body_size)
{
    cn_loop_assert_owner(pipes->loop);
    struct incoming *incoming = cn_handles_find(&pipes->tickets, (double)ticket);
    size_t size = head_size + body_size;
    if (!incoming) {
        cn_free(body);
        return true;
    }
    CN_ASSERT(!incoming->head && size <= CN_PIPE_MESSAGE_MAX);
    struct conn *conn = incoming->conn;
    bool fits = !pipes->stats.answer_bytes ||
                (pipes->stats.answer_bytes + size <= pipes->config.answers_max &&
                 conn->left_bytes + size <= pipes->config.answers_max / 2);
    if (!fits && size > CN_PIPE_SMALL_MAX)
        return false; /* T5 */
    cn_handles_remove(&pipes->tickets, ticket);
    incoming->ticket = 0;
    incoming->head = cn_memdup(head, head_size);
    incoming->body = body;
    incoming->out.head = incoming->head;
    incoming->out.head_size = head_size;
    incoming->out.body = body;
    incoming->out.body_size = body_size;
    pipes->stats.answer_bytes += size;
    conn->left_bytes += size;
    out_enqueue(conn, &incoming->out);
    pump(conn);
    return true;
}

/* --- time ------------------------------------------------------------------------------------- */

/* T7 */
static bool is_stuck(struct conn *conn, uint64_t now)
{
    const uint64_t silent_ms = conn->pipes->config.silent_ms;
    uint64_t taken = cn_stream_queued(conn->stream) ? cn_stream_acked(conn->stream) + 1 : 0;
    if (taken != conn->taken || !taken)
        conn->took_ms = now;
    conn->taken = taken;
    return now - conn->heard_ms >= silent_ms || now - conn->took_ms >= silent_ms ||
           (conn->granted && now - conn->piece_ms >= silent_ms);
}

static void tick_conn(struct conn *conn, uint64_t now)
{
    const struct cn_pipes_config *config = &conn->pipes->config;
    if (!conn->up && now - conn->opened_ms >= config->greet_ms)
        conn_end(conn);
    else if (conn->up && is_stuck(conn, now))
        conn_end(conn);
    else if (conn->up && now - conn->sent_ms >= config->beat_ms &&
             cn_stream_queued(conn->stream) == 0)
        send_frame(conn, CN_FRAME_BEAT, 0, NULL, 0, NULL, 0);
}

static void on_time(uv_timer_t *timer)
{
    struct cn_pipes *pipes = CN_CONTAINER_OF(timer, struct cn_pipes, timer);
    uint64_t now = uv_now(pipes->loop);
    /* If it was us who stood still, what the others said meanwhile waits to be read. */
    bool away = now - pipes->ticked_ms > pipes->config.silent_ms / 2;
    pipes->ticked_ms = now;
    for (struct cn_list *node = pipes->conns.next; node != &pipes->conns;) {
        struct conn *conn = CN_CONTAINER_OF(node, struct conn, link);
        node = node->next; /* a connection leaves the list when the loop has closed it */
        if (away)
            conn->heard_ms = conn->took_ms = conn->piece_ms = now;
        if (!conn->over)
            tick_conn(conn, now);
    }
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    struct peer *late = NULL;
    while (pipes->dials && cn_map_next(&pipes->peers, &cursor, &entry)) {
        struct peer *peer = entry->value;
        if (peer->dial && now >= peer->dial_until_ms)
            late = peer;
    }
    if (late) { /* one at a time: who is told may add peers */
        cn_dial_drop(late->dial);
        late->dial = NULL;
        fail_peer(late);
    }
    feed_starved(pipes); /* other lanes may have given back */
    if (cn_list_empty(&pipes->conns) && !pipes->dials)
        uv_timer_stop(timer);
}

void cn_pipes_break(struct cn_pipes *pipes, uint64_t disk)
{
    cn_loop_assert_owner(pipes->loop);
    for (struct cn_list *node = pipes->conns.next; node != &pipes->conns;) {
        struct conn *conn = CN_CONTAINER_OF(node, struct conn, link);
        node = node->next; /* as above */
        if (conn->asker.disk == disk)
            conn_end(conn);
    }
}

void cn_pipes_session(struct cn_pipes *pipes, uint64_t session)
{
    cn_loop_assert_owner(pipes->loop);
    if (pipes->session == session)
        return;
    pipes->session = session;
    for (struct cn_list *node = pipes->conns.next; node != &pipes->conns;) {
        struct conn *conn = CN_CONTAINER_OF(node, struct conn, link);
        node = node->next; /* as above */
        struct peer *peer = conn->peer;
        if (!peer)
            continue;
        conn_end(conn);
        peer->retry_at_ms = 0; /* it was not its fault */
        peer->retry_ms = pipes->config.retry_ms;
    }
}

/* --- its life --------------------------------------------------------------------------------- */

static void set_defaults(struct cn_pipes_config *config)
{
    const struct {
        unsigned *field, value;
    } times[] = {{&config->beat_ms, 5000},
                 {&config->silent_ms, 120000},
                 {&config->greet_ms, 2000},
                 {&config->retry_ms, 50},
                 {&config->retry_max_ms, 1000}};
    const struct {
        size_t *field, value;
    } sizes[] = {{&config->asked_max, 64u << 20},
                 {&config->asked_total_max, 256u << 20},
                 {&config->answers_max, 256u << 20}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(times); i++)
        if (!*times[i].field)
            *times[i].field = times[i].value;
    for (size_t i = 0; i < CN_ARRAY_COUNT(sizes); i++)
        if (!*sizes[i].field)
            *sizes[i].field = sizes[i].value;
}

static void on_gone(void *data)
{
    end_if_empty(data);
}

struct cn_pipes *cn_pipes_new(uv_loop_t *loop, const struct cn_pipes_config *config)
{
    cn_loop_assert_owner(loop);
    CN_ASSERT(config->lane_count && config->budget && config->tls);
    struct cn_pipes *pipes = CN_NEW(struct cn_pipes);
    *pipes = (struct cn_pipes){.loop = loop, .config = *config, .timer_open = true};
    set_defaults(&pipes->config);
    pipes->config.tls = cn_tls_context_ref(config->tls);
    cn_list_init(&pipes->conns);
    cn_list_init(&pipes->starved);
    cn_map_init(&pipes->peers);
    cn_map_init(&pipes->disks);
    pipes->streams = cn_stream_lane_new(loop, on_gone, pipes);
    uv_timer_init(loop, &pipes->timer);
    return pipes;
}

static void free_values(struct cn_map *map)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(map, &cursor, &entry))
        cn_free(entry->value);
    cn_map_fini(map);
}

static void on_streams_closed(void *data)
{
    struct cn_pipes *pipes = data;
    void (*closed)(void *) = pipes->closed;
    void *closed_data = pipes->closed_data;
    free_values(&pipes->peers);
    free_values(&pipes->disks);
    cn_handles_fini(&pipes->tickets);
    cn_tls_context_unref(pipes->config.tls);
    cn_free(pipes);
    if (closed)
        closed(closed_data);
}

static void end_if_empty(struct cn_pipes *pipes)
{
    if (!pipes->freed || pipes->timer_open || pipes->dials || !cn_list_empty(&pipes->conns) ||
        !pipes->streams || cn_stream_lane_count(pipes->streams))
        return;
    struct cn_stream_lane *streams = pipes->streams;
    pipes->streams = NULL;
    cn_stream_lane_free(streams, on_streams_closed, pipes);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct cn_pipes *pipes = CN_CONTAINER_OF(handle, struct cn_pipes, timer);
    pipes->timer_open = false;
    end_if_empty(pipes);
}

void cn_pipes_free(struct cn_pipes *pipes, void (*closed)(void *data), void *data)
{
    cn_loop_assert_owner(pipes->loop);
    CN_ASSERT(!pipes->freed);
    pipes->freed = true;
    pipes->closed = closed;
    pipes->closed_data = data;
    CN_LIST_FOREACH(&pipes->conns, node)
    conn_end(CN_CONTAINER_OF(node, struct conn, link));
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&pipes->peers, &cursor, &entry)) {
        struct peer *peer = entry->value;
        if (peer->dial)
            cn_dial_drop(peer->dial);
        peer->dial = NULL;
        fail_peer(peer);
    }
    uv_close((uv_handle_t *)&pipes->timer, on_timer_closed);
}

void cn_pipes_stats(const struct cn_pipes *pipes, struct cn_pipes_stats *stats)
{
    *stats = pipes->stats;
    CN_LIST_FOREACH(&pipes->conns, node)
    {
        const struct conn *conn = CN_CONTAINER_OF(node, struct conn, link);
        stats->in_up += conn->up && conn->came_in;
        stats->out_up += conn->up && !conn->came_in;
    }
}
