/* SPDX-License-Identifier: Apache-2.0 */
/* peer/pipe_message.c - frames, and messages made of them: greetings, what goes out by turns,
 * what comes in pieces and the budget for it. See pipe_private.h. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/stream.h"
#include "peer/pipe_private.h"

enum {
    SEND_AHEAD = 256 << 10, /* bytes that a stream is given before it has sent them */
    /* T5: of a stream that has come in, with a frame without a body for every channel. */
    QUEUED_MAX = SEND_AHEAD + 2 * (int)CN_PIPE_PIECE_MAX + 64 * (int)CN_PIPE_CHANNELS_MAX,
};

/* --- greetings: T1 ---------------------------------------------------------------------------- */

const struct cn_wire_field cn_pipe_hello_fields[] = {
    CN_WIRE_UINT(1, struct cn_pipe_hello, version_min, UINT32_MAX),
    CN_WIRE_UINT(2, struct cn_pipe_hello, version_max, UINT32_MAX),
    CN_WIRE_FIXED(3, struct cn_pipe_hello, cluster),
    CN_WIRE_UINT(4, struct cn_pipe_hello, disk, UINT64_MAX),
    CN_WIRE_UINT(5, struct cn_pipe_hello, life, UINT64_MAX),
    CN_WIRE_UINT(6, struct cn_pipe_hello, to, UINT64_MAX),
    CN_WIRE_UINT(7, struct cn_pipe_hello, lane, UINT32_MAX),
    CN_WIRE_UINT(8, struct cn_pipe_hello, to_lane, UINT32_MAX),
    CN_WIRE_UINT(9, struct cn_pipe_hello, features, UINT64_MAX),
    CN_WIRE_UINT(10, struct cn_pipe_hello, session, UINT64_MAX),
    CN_WIRE_END};

const struct cn_wire_field cn_pipe_welcome_fields[] = {
    CN_WIRE_UINT(1, struct cn_pipe_welcome, version, UINT32_MAX),
    CN_WIRE_UINT(2, struct cn_pipe_welcome, disk, UINT64_MAX),
    CN_WIRE_UINT(3, struct cn_pipe_welcome, life, UINT64_MAX),
    CN_WIRE_UINT(4, struct cn_pipe_welcome, lane, UINT32_MAX),
    CN_WIRE_UINT(5, struct cn_pipe_welcome, lane_count, UINT32_MAX),
    CN_WIRE_UINT(6, struct cn_pipe_welcome, features, UINT64_MAX),
    CN_WIRE_END};

/* --- frames ----------------------------------------------------------------------------------- */

void cn_pipe_send(struct cn_pipe_conn *conn, enum cn_frame_kind kind, uint32_t channel,
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

void cn_pipe_send_struct(struct cn_pipe_conn *conn, enum cn_frame_kind kind,
                         const struct cn_wire_field *fields, const void *of)
{
    struct cn_buf body = {0};
    cn_wire_put(fields, of, &body);
    cn_pipe_send(conn, kind, 0, body.data, body.size, NULL, 0);
    cn_buf_fini(&body);
}

/* --- messages that go out --------------------------------------------------------------------- */

size_t cn_pipe_out_size(const struct cn_pipe_out *out)
{
    return out->head_size + out->body_size;
}

static bool out_is_large(const struct cn_pipe_out *out)
{
    return cn_pipe_out_size(out) > CN_PIPE_PIECE_MAX;
}

void cn_pipe_out_init(struct cn_pipe_out *out)
{
    cn_list_init(&out->link);
    cn_list_init(&out->behind);
    cn_list_init(&out->large_link);
}

/* T3 */
static struct cn_pipe_out *find_before(const struct cn_pipe_conn *conn, uint64_t order)
{
    CN_LIST_FOREACH(&conn->large, node)
    {
        struct cn_pipe_out *out = CN_CONTAINER_OF(node, struct cn_pipe_out, large_link);
        if (order && out->order == order)
            return out;
    }
    return NULL;
}

void cn_pipe_out_enqueue(struct cn_pipe_conn *conn, struct cn_pipe_out *out)
{
    struct cn_pipe_out *before = find_before(conn, out->order);
    out->conn = conn;
    if (before) {
        cn_list_push_back(&before->behind, &out->link);
        return;
    }
    if (out_is_large(out))
        cn_list_push_back(&conn->large, &out->large_link);
    cn_list_push_back(&conn->ready, &out->link);
}

void cn_pipe_out_leave(struct cn_pipe_out *out)
{
    struct cn_pipe_conn *conn = out->conn;
    struct cn_list *node;
    cn_list_remove(&out->link);
    cn_list_remove(&out->large_link);
    out->conn = NULL;
    while ((node = cn_list_take_front(&out->behind)))
        cn_pipe_out_enqueue(conn, CN_CONTAINER_OF(node, struct cn_pipe_out, link));
}

static void out_sent(struct cn_pipe_conn *conn, struct cn_pipe_out *out)
{
    cn_pipe_out_leave(out);
    out->sent = true;
    if (conn->came_in)
        cn_pipe_answer_sent(out);
}

static void send_piece(struct cn_pipe_conn *conn, struct cn_pipe_out *out, enum cn_frame_kind kind)
{
    size_t left = cn_pipe_out_size(out) - out->at;
    size_t size = left < CN_PIPE_PIECE_MAX ? left : CN_PIPE_PIECE_MAX;
    size_t of_head = out->at < out->head_size ? out->head_size - out->at : 0;
    if (of_head > size)
        of_head = size;
    const uint8_t *head = of_head ? out->head + out->at : NULL;
    size_t body_at = out->at + of_head - out->head_size;
    const uint8_t *body = size > of_head ? out->body + body_at : NULL;
    cn_pipe_send(conn, kind, out->channel, head, of_head, body, size - of_head);
    out->at += size;
}

/* One turn of a message. */
static void send_some(struct cn_pipe_conn *conn, struct cn_pipe_out *out)
{
    if (!out_is_large(out)) {
        send_piece(conn, out, CN_FRAME_WHOLE);
        out_sent(conn, out);
    } else if (!out->announced) {
        uint8_t size[4];
        for (unsigned i = 0; i < 4; i++)
            size[i] = (uint8_t)(cn_pipe_out_size(out) >> (8 * i));
        out->announced = true;
        conn->pipes->stats.large++;
        cn_pipe_send(conn, CN_FRAME_LARGE, out->channel, size, sizeof(size), NULL, 0);
    } else {
        send_piece(conn, out, CN_FRAME_PIECE);
        if (out->at == cn_pipe_out_size(out))
            out_sent(conn, out);
        else
            cn_list_push_back(&conn->ready, &out->link); /* T4: by turns */
    }
}

void cn_pipe_pump(struct cn_pipe_conn *conn)
{
    struct cn_list *node = NULL;
    while (conn->up && cn_stream_queued(conn->stream) < SEND_AHEAD &&
           (node = cn_list_take_front(&conn->ready)))
        send_some(conn, CN_CONTAINER_OF(node, struct cn_pipe_out, link));
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

bool cn_pipe_is_deaf(const struct cn_pipe_conn *conn)
{
    return conn->came_in && cn_stream_queued(conn->stream) > QUEUED_MAX;
}

static void grant(struct cn_pipe_in *in)
{
    struct cn_pipe_conn *conn = in->conn;
    in->bytes = cn_try_alloc(in->size);
    in->granted = true;
    if (!conn->granted++)
        conn->piece_ms = uv_now(conn->pipes->loop);
    if (in->bytes)
        cn_pipe_send(conn, CN_FRAME_ROOM, in->channel, NULL, 0, NULL, 0);
    if (!in->bytes) /* the machine has no memory: it may come again */
        cn_pipe_conn_end(conn);
    else if (cn_pipe_is_deaf(conn))
        (void)cn_pipe_malformed(conn);
}

void cn_pipe_feed_starved(struct cn_pipes *pipes)
{
    while (!cn_list_empty(&pipes->starved)) {
        struct cn_pipe_in *in = CN_CONTAINER_OF(pipes->starved.next, struct cn_pipe_in, link);
        if (!budget_take(pipes, in->size))
            return;
        cn_list_remove(&in->link);
        grant(in);
    }
}

void cn_pipe_in_want(struct cn_pipe_conn *conn, struct cn_pipe_in *in, uint32_t channel,
                     size_t size)
{
    struct cn_pipes *pipes = conn->pipes;
    *in = (struct cn_pipe_in){.conn = conn, .channel = channel, .size = size, .wanted = true};
    cn_list_push_back(&pipes->starved, &in->link);
    cn_pipe_feed_starved(pipes);
}

void cn_pipe_in_release(struct cn_pipes *pipes, struct cn_pipe_in *in)
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

bool cn_pipe_in_size(const struct cn_frame *frame, size_t *size)
{
    *size = 0;
    for (unsigned i = 0; i < 4 && frame->size == 4; i++)
        *size |= (size_t)frame->body[i] << (8 * i);
    return *size > CN_PIPE_PIECE_MAX && *size <= CN_PIPE_MESSAGE_MAX;
}

bool cn_pipe_in_piece(struct cn_pipe_in *in, const struct cn_frame *frame)
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
