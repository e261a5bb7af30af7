/* SPDX-License-Identifier: Apache-2.0 */
/* peer/pipe_answer.c - answering: pipes that come in, questions that they bring, and the tickets
 * by which these are answered. See pipe_private.h. */
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/stream.h"
#include "peer/pipe_private.h"

struct cn_pipe_incoming {
    struct cn_pipe_conn *conn;
    uint64_t ticket; /* 0: it is not whole yet, or was answered */
    size_t size;     /* of the question */
    uint8_t *head, *body;
    struct cn_pipe_out out;
    struct cn_pipe_in in;
};

/* --- questions -------------------------------------------------------------------------------- */

void cn_pipe_answer_drop(struct cn_pipe_incoming *incoming)
{
    struct cn_pipe_conn *conn = incoming->conn;
    struct cn_pipes *pipes = conn->pipes;
    uint32_t channel = incoming->out.channel;
    if (incoming->out.conn)
        cn_pipe_out_leave(&incoming->out);
    pipes->stats.answer_bytes -= cn_pipe_out_size(&incoming->out);
    conn->left_bytes -= cn_pipe_out_size(&incoming->out);
    conn->came_bytes -= incoming->size;
    cn_pipe_in_release(pipes, &incoming->in);
    if (incoming->ticket)
        cn_handles_remove(&pipes->tickets, incoming->ticket);
    conn->slots[channel - 1] = NULL;
    cn_free(incoming->head);
    cn_free(incoming->body);
    cn_free(incoming);
}

void cn_pipe_answer_sent(struct cn_pipe_out *out)
{
    cn_pipe_answer_drop(CN_CONTAINER_OF(out, struct cn_pipe_incoming, out));
}

static struct cn_pipe_incoming *incoming_new(struct cn_pipe_conn *conn, uint32_t channel,
                                             size_t size)
{
    struct cn_pipe_incoming *incoming = CN_NEW(struct cn_pipe_incoming);
    incoming->conn = conn;
    incoming->size = size;
    conn->came_bytes += size;
    incoming->out.channel = channel;
    cn_pipe_out_init(&incoming->out);
    cn_list_init(&incoming->in.link);
    if (channel > conn->slot_count)
        cn_pipe_slots_grow(conn, channel);
    conn->slots[channel - 1] = incoming;
    return incoming;
}

/* It is whole. */
static bool deliver(struct cn_pipe_conn *conn, struct cn_pipe_incoming *incoming, uint8_t *bytes,
                    size_t size)
{
    struct cn_pipes *pipes = conn->pipes;
    incoming->ticket = cn_handles_add(&pipes->tickets, incoming);
    if (!incoming->ticket) { /* two million are under way on this lane */
        cn_free(bytes);
        cn_pipe_conn_end(conn);
        return false;
    }
    pipes->stats.answered++;
    pipes->config.hooks.asked(pipes->config.hooks.data, &conn->asker, incoming->ticket, bytes,
                              size);
    return !conn->over;
}

static bool on_whole(struct cn_pipe_conn *conn, const struct cn_frame *frame)
{
    uint8_t *bytes = cn_alloc(frame->size + 1);
    memcpy(bytes, frame->body, frame->size);
    return deliver(conn, incoming_new(conn, frame->channel, frame->size), bytes, frame->size);
}

static bool on_piece(struct cn_pipe_conn *conn, struct cn_pipe_incoming *incoming,
                     const struct cn_frame *frame)
{
    if (incoming->ticket || !cn_pipe_in_piece(&incoming->in, frame))
        return cn_pipe_malformed(conn);
    if (incoming->in.got < incoming->in.size)
        return true;
    uint8_t *bytes = incoming->in.bytes;
    size_t size = incoming->in.size;
    incoming->in.bytes = NULL;
    cn_pipe_in_release(conn->pipes, &incoming->in);
    cn_pipe_feed_starved(conn->pipes);
    if (!conn->over)
        return deliver(conn, incoming, bytes, size);
    cn_free(bytes);
    return false;
}

/* T5: whether it may ask so much more. Twice what it may ask, since another release may have
 * another bound. */
static bool may_come(const struct cn_pipe_conn *conn, size_t size)
{
    return !conn->came_bytes || conn->came_bytes + size <= 2 * conn->pipes->config.asked_max;
}

bool cn_pipe_answer_frame(struct cn_pipe_conn *conn, const struct cn_frame *frame)
{
    struct cn_pipe_incoming *incoming = cn_pipe_slot(conn, frame->channel);
    size_t size;
    bool good = frame->channel && frame->channel <= CN_PIPE_CHANNELS_MAX;
    switch (frame->kind) {
    case CN_FRAME_WHOLE:
        if (!good || incoming || frame->size > CN_PIPE_PIECE_MAX || !may_come(conn, frame->size))
            return cn_pipe_malformed(conn);
        return on_whole(conn, frame);
    case CN_FRAME_LARGE:
        if (!good || incoming || !cn_pipe_in_size(frame, &size) || !may_come(conn, size))
            return cn_pipe_malformed(conn);
        cn_pipe_in_want(conn, &incoming_new(conn, frame->channel, size)->in, frame->channel, size);
        return !conn->over;
    case CN_FRAME_PIECE:
        return incoming ? on_piece(conn, incoming, frame) : cn_pipe_malformed(conn);
    case CN_FRAME_ROOM:
        if (!incoming || frame->size || !incoming->out.announced ||
            !cn_list_empty(&incoming->out.link) || incoming->out.at)
            return cn_pipe_malformed(conn);
        cn_list_push_back(&conn->ready, &incoming->out.link);
        cn_pipe_pump(conn);
        return true;
    case CN_FRAME_CANCEL:
        if (!good || frame->size)
            return cn_pipe_malformed(conn);
        if (!incoming)
            return true; /* it was answered meanwhile */
        cn_pipe_answer_drop(incoming);
        cn_pipe_send(conn, CN_FRAME_CANCELLED, frame->channel, NULL, 0, NULL, 0);
        if (cn_pipe_is_deaf(conn))
            return cn_pipe_malformed(conn);
        cn_pipe_feed_starved(conn->pipes);
        return !conn->over;
    default:
        return cn_pipe_malformed(conn);
    }
}

/* --- coming in -------------------------------------------------------------------------------- */

int cn_pipe_hello_lane(const uint8_t *body, size_t size, unsigned lane_count)
{
    struct cn_pipe_hello hello = {0};
    if (!lane_count || cn_wire_get(cn_pipe_hello_fields, &hello, body, size, NULL) < 0)
        return CN_EPROTOCOL;
    return (int)(hello.to_lane % lane_count);
}

static struct cn_pipe_conn *find_in(const struct cn_pipes *pipes, const struct cn_pipe_hello *hello)
{
    CN_LIST_FOREACH(&pipes->conns, node)
    {
        struct cn_pipe_conn *conn = CN_CONTAINER_OF(node, struct cn_pipe_conn, link);
        if (conn->came_in && !conn->over && conn->asker.disk == hello->disk &&
            conn->asker.lane == hello->lane)
            return conn;
    }
    return NULL;
}

static bool hello_is_good(const struct cn_pipes *pipes, const struct cn_pipe_hello *hello)
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
    struct cn_pipe_hello hello = {0};
    if (pipes->freed || cn_wire_get(cn_pipe_hello_fields, &hello, body, size, NULL) < 0) {
        cn_stream_moved_drop(moved);
        return;
    }
    struct cn_pipe_conn *before = find_in(pipes, &hello);
    bool good = hello_is_good(pipes, &hello) && !(before && before->asker.life > hello.life);
    if (good && before)
        cn_pipe_conn_end(before); /* T8 */
    struct cn_pipe_conn *conn = cn_pipe_conn_new(pipes, moved);
    if (!conn)
        return;
    struct cn_pipe_welcome welcome = {.version = good ? CN_PIPE_VERSION_MAX : 0,
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
    cn_pipe_send_struct(conn, CN_FRAME_WELCOME, cn_pipe_welcome_fields, &welcome);
    conn->up = good;
    if (good)
        return;
    (void)cn_stream_flush(conn->stream); /* it is closed in any case */
    cn_pipe_conn_end(conn);
}

/* --- answers ---------------------------------------------------------------------------------- */

bool cn_pipes_waits(const struct cn_pipes *pipes, uint64_t ticket)
{
    return cn_handles_find(&pipes->tickets, (double)ticket) != NULL;
}

bool cn_pipes_answer(struct cn_pipes *pipes, uint64_t ticket, const void *head, size_t head_size,
                     uint8_t *body, size_t body_size)
{
    cn_loop_assert_owner(pipes->loop);
    struct cn_pipe_incoming *incoming = cn_handles_find(&pipes->tickets, (double)ticket);
    size_t size = head_size + body_size;
    if (!incoming) {
        cn_free(body);
        return true;
    }
    CN_ASSERT(!incoming->head && size <= CN_PIPE_MESSAGE_MAX);
    struct cn_pipe_conn *conn = incoming->conn;
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
    cn_pipe_out_enqueue(conn, &incoming->out);
    cn_pipe_pump(conn);
    return true;
}
