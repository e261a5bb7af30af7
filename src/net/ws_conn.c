/* SPDX-License-Identifier: Apache-2.0 */
/* net/ws_conn.c - see ws_conn.h.
 *
 * W1  A connection is in exactly one of the lane's two lists: `open`, in the order
 *     in which they are to be pinged, or `closing`, in the order in which they are
 *     given up. All deadlines of a list are equally far ahead when they are set,
 *     so both are sorted, and a tick looks at what is due and at nothing else.
 * W2  After a close frame was sent nothing more is; after one was received nothing
 *     more is read. When both have been, the server ends TCP and waits for the peer
 *     to do so too: closing at once could reset the connection and destroy our
 *     close frame before it is read.
 * W3  `end` is set until the conversation is over. What comes later is ignored.
 * W4  When more than output_size_max bytes wait for a peer it does not read, and gets 1013.
 * W5  No more than OUTPUT_HIGH and a message are in the stream; the rest waits in the end's
 *     queue, where a broadcast is one message for all, and from where it can go at once: a peer
 *     that is given up gets what the stream has already, whole, and then its close. */
#include "net/ws_conn.h"

#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/rand.h"
#include "net/server.h"
#include "net/socket.h"
#include "net/ws_deflate.h"
#include "net/ws_end.h"
#include "net/ws_frame.h"

#define TICK_MS 1000
#define OUTPUT_HIGH (256u << 10)
#define COPY_MAX (CN_STREAM_RESERVE_MAX - CN_WS_HEAD_MAX)

struct cn_ws_lane {
    uv_loop_t *loop;
    uv_timer_t timer; /* runs while there are connections */
    struct cn_ws_options options;
    struct cn_ws_deflate *deflate;
    struct cn_list open, closing; /* of struct cn_ws (W1) */
    struct cn_list cut; /* of those that were cut, until their wire says that it is closed */
    size_t count;
    bool shut_down, freeing;
};

struct cn_ws {
    struct cn_ws_lane *lane;
    struct cn_list link; /* in lane->open, closing or cut */
    uint64_t deadline_ms;
    uint64_t heard_ms;        /* when the peer last sent anything */
    struct cn_stream *stream; /* of a server; NULL: a client's */
    struct cn_socket *socket; /* of a client */
    struct cn_buf pending;    /* of a client: what the socket did not take */
    struct cn_ws_end *end;    /* W3; NULL: the conversation is over */
    struct cn_ws_reader reader;
    struct cn_ws_terms terms;
    bool pinged; /* and nothing has been heard since */
    bool close_sent, close_received;
    bool timed; /* its program has closed it: the rest and the close have close_timeout_ms */
};

static void end_ready(struct cn_ws_end *end);
static void end_hold(struct cn_ws_end *end, bool hold);
static const struct cn_ws_end_ops end_ops = {end_ready, end_hold, NULL};
static void on_timer(uv_timer_t *timer);

/* --- the lane --------------------------------------------------------------------------- */

struct cn_ws_lane *cn_ws_lane_new(uv_loop_t *loop, const struct cn_ws_options *options)
{
    cn_loop_assert_owner(loop);
    struct cn_ws_lane *lane = CN_NEW(struct cn_ws_lane);
    lane->loop = loop;
    lane->options = *options;
    struct cn_ws_options *o = &lane->options;
    o->message_size_max = o->message_size_max ? o->message_size_max : 32u << 20;
    o->output_size_max = o->output_size_max ? o->output_size_max : 16u << 20;
    o->ping_interval_ms = o->ping_interval_ms ? o->ping_interval_ms : 30000;
    o->close_timeout_ms = o->close_timeout_ms ? o->close_timeout_ms : 10000;
    lane->deflate = cn_ws_deflate_new();
    cn_list_init(&lane->open);
    cn_list_init(&lane->closing);
    cn_list_init(&lane->cut);
    CN_ASSERT(uv_timer_init(loop, &lane->timer) == 0);
    lane->timer.data = lane;
    return lane;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct cn_ws_lane *lane = handle->data;
    cn_ws_deflate_free(lane->deflate);
    cn_free(lane);
}

void cn_ws_lane_free(struct cn_ws_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    lane->freeing = true;
    if (lane->count == 0)
        uv_close((uv_handle_t *)&lane->timer, on_timer_closed);
}

void cn_ws_lane_check(const struct cn_ws_lane *lane)
{
    CN_ASSERT(lane->count == cn_list_length(&lane->open) + cn_list_length(&lane->closing) +
                                 cn_list_length(&lane->cut));
}

size_t cn_ws_lane_count(const struct cn_ws_lane *lane)
{
    return lane->count;
}

static void arm(struct cn_ws *ws, struct cn_list *list, unsigned after_ms)
{
    cn_list_remove(&ws->link);
    ws->deadline_ms = uv_now(ws->lane->loop) + after_ms;
    cn_list_push_back(list, &ws->link);
}

static void arm_closing(struct cn_ws *ws)
{
    arm(ws, &ws->lane->closing, ws->lane->options.close_timeout_ms);
}

static struct cn_ws *ws_new(struct cn_ws_lane *lane, const struct cn_ws_terms *terms)
{
    struct cn_ws *ws = CN_NEW(struct cn_ws);
    ws->lane = lane;
    ws->terms = *terms;
    ws->heard_ms = uv_now(lane->loop);
    cn_list_init(&ws->link);
    arm(ws, &lane->open, lane->options.ping_interval_ms);
    if (lane->count++ == 0)
        uv_timer_start(&lane->timer, on_timer, TICK_MS, TICK_MS);
    return ws;
}

static void ws_free(struct cn_ws *ws)
{
    CN_ASSERT(!ws->end);
    cn_list_remove(&ws->link);
    cn_ws_reader_fini(&ws->reader);
    cn_buf_fini(&ws->pending);
    struct cn_ws_lane *lane = ws->lane;
    cn_free(ws);
    if (--lane->count > 0)
        return;
    uv_timer_stop(&lane->timer);
    if (lane->freeing)
        uv_close((uv_handle_t *)&lane->timer, on_timer_closed);
}

/* --- the transport: a stream of the server, or a socket of ours -------------------------- */

static size_t io_queued(const struct cn_ws *ws)
{
    return ws->stream ? cn_stream_queued(ws->stream) : ws->pending.size;
}

/* All that waits for the peer (W5). */
static size_t waiting(const struct cn_ws *ws)
{
    return io_queued(ws) + (ws->end ? ws->end->queue_bytes : 0);
}

size_t cn_ws_waiting(const struct cn_ws_end *end)
{
    return end->state == CN_WS_END_CLAIMED && end->ops == &end_ops ? waiting(end->owner) : 0;
}

static void io_write(struct cn_ws *ws, const void *bytes, size_t size)
{
    if (ws->stream) {
        cn_stream_write(ws->stream, bytes, size);
        return;
    }
    /* In order: what waits already comes first. A socket that is closed says so itself. */
    struct cn_err err;
    if (ws->pending.size > 0 || cn_socket_write(ws->socket, bytes, size, &err) == CN_EOVERLOADED)
        cn_buf_append(&ws->pending, bytes, size);
}

static void io_close(struct cn_ws *ws, bool reset)
{
    if (ws->stream)
        cn_stream_close(ws->stream, reset);
    else
        cn_socket_close(ws->socket);
}

/* --- frames out --------------------------------------------------------------------------- */

static void release_message(void *data)
{
    cn_ws_message_unref(data);
}

/* A client masks what it sends. */
static void send_masked(struct cn_ws *ws, enum cn_ws_opcode opcode, bool compressed,
                        const uint8_t *bytes, size_t size)
{
    uint8_t mask[4], head[CN_WS_HEAD_MAX];
    cn_rand_secure(mask, sizeof(mask));
    size_t head_size = cn_ws_head(head, opcode, compressed, size, mask);
    struct cn_buf frame = {0};
    cn_buf_reserve(&frame, head_size + size);
    cn_buf_append(&frame, head, head_size);
    (void)cn_ws_mask(frame.data + head_size, bytes, size, mask, 0);
    io_write(ws, frame.data, head_size + size);
    cn_buf_fini(&frame);
}

static void send_frame(struct cn_ws *ws, enum cn_ws_opcode opcode, bool compressed,
                       const uint8_t *bytes, size_t size)
{
    if (!ws->stream) {
        send_masked(ws, opcode, compressed, bytes, size);
        return;
    }
    CN_ASSERT(size <= COPY_MAX);
    uint8_t *at = cn_stream_reserve(ws->stream, CN_WS_HEAD_MAX + size);
    size_t head_size = cn_ws_head(at, opcode, compressed, size, NULL);
    if (size > 0)
        memcpy(at + head_size, bytes, size);
    cn_stream_commit(ws->stream, head_size + size);
}

static void send_message(struct cn_ws *ws, struct cn_ws_message *message)
{
    enum cn_ws_opcode opcode = message->text ? CN_WS_OP_TEXT : CN_WS_OP_BINARY;
    struct cn_ws_message *deflated = NULL;
    if (ws->terms.deflate)
        deflated = cn_ws_deflate(ws->lane->deflate, message, ws->terms.window_bits);
    struct cn_ws_message *payload = deflated ? deflated : message;
    if (!ws->stream || payload->size <= COPY_MAX) {
        send_frame(ws, opcode, deflated != NULL, payload->bytes, payload->size);
        return;
    }
    uint8_t *at = cn_stream_reserve(ws->stream, CN_WS_HEAD_MAX);
    cn_stream_commit(ws->stream, cn_ws_head(at, opcode, deflated != NULL, payload->size, NULL));
    cn_stream_write_owned(ws->stream, payload->bytes, payload->size, release_message,
                          cn_ws_message_ref(payload));
}

static void send_close(struct cn_ws *ws, uint16_t code, const char *reason, size_t reason_size)
{
    uint8_t payload[CN_WS_CONTROL_MAX];
    size_t size = 0;
    if (ws->close_sent)
        return;
    ws->close_sent = true;
    if (code != CN_WS_NO_STATUS) {
        if (reason_size > CN_WS_REASON_MAX)
            reason_size = 0; /* the layers above refuse it; ours are short */
        payload[0] = (uint8_t)(code >> 8);
        payload[1] = (uint8_t)code;
        if (reason_size > 0)
            memcpy(payload + 2, reason, reason_size);
        size = 2 + reason_size;
    }
    send_frame(ws, CN_WS_OP_CLOSE, false, payload, size);
}

/* --- the end ------------------------------------------------------------------------------ */

/* The conversation is over: nobody is behind the wire any more (W3). */
static void let_go(struct cn_ws *ws)
{
    struct cn_ws_end *end = ws->end;
    if (!end)
        return;
    ws->end = NULL;
    cn_ws_end_release(end);
}

/* W2: both close frames are on their way. */
static void finish(struct cn_ws *ws)
{
    let_go(ws);
    arm_closing(ws);
    if (ws->stream)
        cn_stream_shutdown(ws->stream);
    else if (ws->pending.size == 0)
        cn_socket_end(ws->socket);
}

/* The wire is gone, or is to go at once. */
static void cut(struct cn_ws *ws, const char *error)
{
    if (ws->end && !ws->close_received)
        cn_ws_end_abort(ws->end, error);
    let_go(ws);
    io_close(ws, true);
}

/* Its time is over: it is looked at no more. */
static void cut_for_good(struct cn_ws *ws)
{
    cn_list_remove(&ws->link);
    cn_list_push_back(&ws->lane->cut, &ws->link);
    cut(ws, NULL);
}

/* The peer broke the protocol: tell it how, and those behind the other end that it is over. */
static void refuse(struct cn_ws *ws, uint16_t code, const char *problem)
{
    send_close(ws, code, problem, strlen(problem));
    ws->close_received = true; /* nothing more is read */
    if (ws->end)
        cn_ws_end_abort(ws->end, problem);
    finish(ws);
}

/* The peer does not read, and what waits for it is wanted back: W4, or memory is short. */
static void give_up(struct cn_ws *ws, const char *reason)
{
    uint16_t port;
    cn_warn("a WebSocket was closed with 1013: %zu bytes wait for a client that does not read (%s)",
            waiting(ws), ws->stream ? cn_stream_remote(ws->stream, &port) : "outgoing");
    send_close(ws, CN_WS_TRY_LATER, reason, strlen(reason));
    struct cn_ws_close close = {CN_WS_TRY_LATER, false, reason, strlen(reason), NULL};
    cn_ws_end_cut(ws->end, &close);
    ws->close_received = true;
    let_go(ws); /* with its queue */
    arm_closing(ws);
}

/* More waits than the stream takes (W5). */
static void wait_for_room(struct cn_ws *ws)
{
    if (waiting(ws) > ws->lane->options.output_size_max && !ws->close_sent) {
        give_up(ws, "the messages are not read fast enough"); /* W4 */
        return;
    }
    if (cn_ws_end_closed(ws->end->peer) && !ws->timed) {
        ws->timed = true;
        arm_closing(ws);
    }
    if (ws->stream)
        cn_stream_want_drain(ws->stream); /* a socket of ours tells by itself */
}

/* Something for the wire, or room on it. */
static void end_ready(struct cn_ws_end *end)
{
    struct cn_ws *ws = end->owner;
    struct cn_ws_item *item;
    while (ws->end && io_queued(ws) < OUTPUT_HIGH && (item = cn_ws_end_take(end))) {
        if (item->message) {
            if (!ws->close_sent)
                send_message(ws, item->message);
        } else if (item->close.code == CN_WS_ABNORMAL) {
            cut(ws, NULL);
        } else {
            send_close(ws, item->close.code, item->close.reason, item->close.reason_size);
            if (ws->close_received)
                finish(ws);
            else
                arm_closing(ws);
        }
        cn_ws_item_free(item);
    }
    if (ws->end && !cn_list_empty(&end->queue))
        wait_for_room(ws);
}

static void end_hold(struct cn_ws_end *end, bool hold)
{
    struct cn_ws *ws = end->owner;
    if (ws->stream && hold)
        cn_stream_pause(ws->stream);
    else if (ws->stream)
        cn_stream_resume(ws->stream);
    else if (hold)
        cn_socket_pause(ws->socket);
    else
        cn_socket_resume(ws->socket);
}

/* --- frames in ---------------------------------------------------------------------------- */

static void on_close_frame(struct cn_ws *ws, const struct cn_ws_event *event)
{
    ws->close_received = true;
    struct cn_ws_close close = {event->code, true, (const char *)event->bytes, event->size, NULL};
    if (ws->end)
        cn_ws_end_close(ws->end, &close);
    if (ws->close_sent)
        finish(ws);
    else if (ws->end)
        arm_closing(ws); /* for the answer of whoever is behind the other end */
}

static void receive(struct cn_ws *ws, const uint8_t *bytes, size_t size)
{
    const struct cn_ws_rules rules = {
        .masked = ws->stream != NULL,
        .any_mask = ws->lane->options.any_mask,
        .deflate = ws->terms.deflate,
        .message_size_max = ws->lane->options.message_size_max,
        .deflater = ws->lane->deflate,
    };
    struct cn_ws_event event;
    ws->heard_ms = uv_now(ws->lane->loop);
    ws->pinged = false;
    while (!ws->close_received && size > 0) {
        switch (cn_ws_reader_next(&ws->reader, &rules, &bytes, &size, &event)) {
        case CN_WS_MESSAGE:
            if (ws->end)
                (void)cn_ws_end_send(ws->end, event.message); /* a close of the pair comes back */
            cn_ws_message_unref(event.message);
            break;
        case CN_WS_PING:
            if (!ws->close_sent && io_queued(ws) < ws->lane->options.output_size_max)
                send_frame(ws, CN_WS_OP_PONG, false, event.bytes, event.size);
            break;
        case CN_WS_CLOSE:
            on_close_frame(ws, &event);
            break;
        case CN_WS_ERROR:
            refuse(ws, event.code, event.problem);
            break;
        case CN_WS_PONG: /* heard_ms says all */
        case CN_WS_MORE:
            break;
        }
    }
}

/* The peer ended its side, or the connection broke. */
static void wire_ended(struct cn_ws *ws, int status)
{
    (void)status;
    if (ws->end && !ws->close_received)
        cn_ws_end_abort(ws->end, NULL);
    let_go(ws);
    io_close(ws, false);
}

/* --- streams of the server ---------------------------------------------------------------- */

static void on_stream_data(struct cn_stream *stream, const uint8_t *bytes, size_t size)
{
    receive(cn_stream_owner(stream), bytes, size);
}

static void on_stream_end(struct cn_stream *stream, int status)
{
    wire_ended(cn_stream_owner(stream), status);
}

static void on_stream_closed(struct cn_stream *stream)
{
    ws_free(cn_stream_owner(stream));
}

static void on_stream_drain(struct cn_stream *stream)
{
    struct cn_ws *ws = cn_stream_owner(stream);
    if (ws->end)
        end_ready(ws->end);
}

static const struct cn_stream_callbacks stream_callbacks = {
    .on_data = on_stream_data,
    .on_end = on_stream_end,
    .on_drain = on_stream_drain,
    .on_closed = on_stream_closed,
};

/* Begins to work for `end`. */
static void join(struct cn_ws *ws, struct cn_ws_end *end)
{
    ws->end = end;
    end->peer->deflate = ws->terms.deflate;
    if (ws->stream)
        cn_stream_resume(ws->stream);
    cn_ws_end_claim(end, &end_ops, ws);
    if (ws->lane->shut_down && ws->end) {
        send_close(ws, CN_WS_RESTART, NULL, 0);
        arm_closing(ws);
    }
}

/* Fields that the handshake itself sets. */
static bool is_handshake_field(const struct cn_http_header *header)
{
    static const char *const names[] = {"connection",
                                        "upgrade",
                                        "content-length",
                                        "transfer-encoding",
                                        "sec-websocket-key",
                                        "sec-websocket-accept",
                                        "sec-websocket-extensions"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++)
        if (cn_http_name_equal(header->name, header->name_size, names[i], strlen(names[i])))
            return true;
    return false;
}

static void keep_protocol(struct cn_ws_end *end, const struct cn_http_header *header)
{
    static const char name[] = "sec-websocket-protocol";
    if (!cn_http_name_equal(header->name, header->name_size, name, sizeof(name) - 1))
        return;
    cn_free(end->peer->protocol);
    end->peer->protocol = cn_strndup(header->value, header->value_size);
}

static struct cn_http_header field(const char *name, const char *value, size_t size)
{
    return (struct cn_http_header){name, value, (uint32_t)strlen(name), (uint32_t)size};
}

/* Sends the 101. The new connection does not read yet. */
static int shake_hands(struct cn_ws_lane *lane, struct cn_http_request *req,
                       const struct cn_http_header *headers, size_t header_count,
                       struct cn_ws_end *end, struct cn_ws **out)
{
    char accept[CN_WS_ACCEPT_SIZE + 1], extensions[160];
    int rc = cn_ws_request_check(req, accept);
    if (rc != 0)
        return rc < 0 ? CN_EINVALID : rc;
    struct cn_ws_terms terms = {0};
    const struct cn_http_header *offer = cn_http_request_find(req, "sec-websocket-extensions");
    if (offer && !lane->options.no_deflate)
        (void)cn_ws_offer_choose(offer->value, offer->value_size, &terms);
    struct cn_http_header *all = cn_alloc((header_count + 4) * sizeof(*all));
    size_t count = 0;
    all[count++] = field("Upgrade", "websocket", 9);
    all[count++] = field("Connection", "Upgrade", 7);
    all[count++] = field("Sec-WebSocket-Accept", accept, CN_WS_ACCEPT_SIZE);
    if (terms.deflate)
        all[count++] = field("Sec-WebSocket-Extensions", extensions,
                             cn_ws_offer_answer(&terms, extensions, sizeof(extensions)));
    for (size_t i = 0; i < header_count; i++) {
        if (is_handshake_field(&headers[i]))
            continue;
        keep_protocol(end, &headers[i]);
        all[count++] = headers[i];
    }
    struct cn_ws *ws = ws_new(lane, &terms);
    struct cn_http_head head = {.status = 101, .headers = all, .header_count = count};
    rc = cn_http_upgrade(req, &head, &stream_callbacks, ws, &ws->stream);
    cn_free(all);
    if (rc < 0) {
        ws_free(ws);
        return rc;
    }
    *out = ws;
    return 0;
}

int cn_ws_upgrade(struct cn_ws_lane *lane, struct cn_http_request *req,
                  const struct cn_http_header *headers, size_t header_count, struct cn_ws_end *end)
{
    cn_loop_assert_owner(lane->loop);
    struct cn_ws *ws;
    int rc = shake_hands(lane, req, headers, header_count, end, &ws);
    if (rc == 0)
        join(ws, end);
    return rc;
}

int cn_ws_upgrade_away(struct cn_ws_lane *lane, struct cn_http_request *req,
                       const struct cn_http_header *headers, size_t header_count,
                       struct cn_ws_end *end, struct cn_ws_moved *moved)
{
    cn_loop_assert_owner(lane->loop);
    struct cn_ws *ws;
    int rc = shake_hands(lane, req, headers, header_count, end, &ws);
    if (rc != 0)
        return rc;
    if (!cn_stream_move(ws->stream, &moved->stream)) {
        join(ws, end);
        return 1;
    }
    moved->terms = ws->terms; /* the struct goes when the old stream has closed */
    moved->protocol = end->peer->protocol;
    end->peer->protocol = NULL;
    return 0;
}

void cn_ws_moved_drop(struct cn_ws_moved *moved)
{
    cn_stream_moved_drop(&moved->stream);
    cn_free(moved->protocol);
}

void cn_ws_arrive(struct cn_ws_lane *lane, struct cn_stream_lane *streams,
                  struct cn_ws_moved *moved, struct cn_ws_end *end)
{
    cn_loop_assert_owner(lane->loop);
    struct cn_ws *ws = ws_new(lane, &moved->terms);
    ws->stream = cn_stream_arrive(streams, &moved->stream, &stream_callbacks, ws);
    if (!ws->stream) {
        cn_free(moved->protocol);
        ws_free(ws);
        cn_ws_end_release(end);
        return;
    }
    cn_free(end->peer->protocol);
    end->peer->protocol = moved->protocol;
    join(ws, end);
}

/* --- outgoing sockets --------------------------------------------------------------------- */

static void on_socket_data(struct cn_socket *socket, const void *bytes, size_t size, void *data)
{
    (void)socket;
    receive(data, bytes, size);
}

static void on_socket_drain(struct cn_socket *socket, void *data)
{
    struct cn_ws *ws = data;
    struct cn_err err;
    if (ws->pending.size > 0 &&
        cn_socket_write(socket, ws->pending.data, ws->pending.size, &err) != CN_EOVERLOADED)
        cn_buf_fini(&ws->pending);
    if (ws->end)
        end_ready(ws->end);
    if (ws->close_sent && ws->close_received && ws->pending.size == 0)
        cn_socket_end(socket);
}

static void on_socket_end(struct cn_socket *socket, void *data)
{
    (void)socket;
    wire_ended(data, 0);
}

static void on_socket_closed(struct cn_socket *socket, const struct cn_err *error, void *data)
{
    (void)socket, (void)error;
    struct cn_ws *ws = data;
    if (ws->end && !ws->close_received)
        cn_ws_end_abort(ws->end, NULL);
    let_go(ws);
    ws_free(ws);
}

static const struct cn_socket_callbacks socket_callbacks = {
    .on_data = on_socket_data,
    .on_drain = on_socket_drain,
    .on_end = on_socket_end,
    .on_closed = on_socket_closed,
};

void cn_ws_adopt(struct cn_ws_lane *lane, struct cn_socket *socket, const struct cn_ws_terms *terms,
                 struct cn_ws_end *end, const void *bytes, size_t size)
{
    cn_loop_assert_owner(lane->loop);
    struct cn_ws *ws = ws_new(lane, terms);
    ws->socket = socket;
    cn_socket_set_callbacks(socket, &socket_callbacks, ws);
    join(ws, end);
    if (size > 0)
        receive(ws, bytes, size);
}

/* --- memory ------------------------------------------------------------------------------- */

size_t cn_ws_lane_bytes(const struct cn_ws_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    size_t bytes = 0;
    CN_LIST_FOREACH(&lane->open, node)
    bytes += waiting(CN_CONTAINER_OF(node, struct cn_ws, link));
    CN_LIST_FOREACH(&lane->closing, node)
    bytes += waiting(CN_CONTAINER_OF(node, struct cn_ws, link));
    return bytes;
}

/* The one for whom most waits. NULL: less than `least` waits for everyone. */
static struct cn_ws *slowest(struct cn_ws_lane *lane, size_t least)
{
    struct cn_ws *found = NULL;
    CN_LIST_FOREACH(&lane->open, node)
    {
        struct cn_ws *ws = CN_CONTAINER_OF(node, struct cn_ws, link);
        size_t bytes = ws->end && !ws->close_sent ? waiting(ws) : 0;
        if (bytes < least)
            continue;
        found = ws;
        least = bytes + 1;
    }
    return found;
}

size_t cn_ws_lane_relieve(struct cn_ws_lane *lane, uint64_t bytes)
{
    cn_loop_assert_owner(lane->loop);
    size_t count = 0;
    struct cn_ws *ws;
    for (uint64_t freed = 0; freed < bytes && (ws = slowest(lane, CN_WS_SLOW_MIN)); count++) {
        freed += waiting(ws);
        give_up(ws, "memory is short, and the messages are not read fast enough");
    }
    return count;
}

/* --- time --------------------------------------------------------------------------------- */

void cn_ws_lane_tick(struct cn_ws_lane *lane, uint64_t now_ms)
{
    cn_loop_assert_owner(lane->loop);
    while (!cn_list_empty(&lane->open)) {
        struct cn_ws *ws = CN_CONTAINER_OF(lane->open.next, struct cn_ws, link);
        if (ws->deadline_ms > now_ms)
            break;
        if (ws->pinged) {
            arm_closing(ws);
            cut(ws, NULL); /* silent for two intervals, one of them after a ping */
            continue;
        }
        if (now_ms - ws->heard_ms >= lane->options.ping_interval_ms &&
            !(ws->end && ws->end->peer->holding)) {
            ws->pinged = true;
            send_frame(ws, CN_WS_OP_PING, false, NULL, 0);
        }
        cn_list_remove(&ws->link);
        ws->deadline_ms = now_ms + lane->options.ping_interval_ms;
        cn_list_push_back(&lane->open, &ws->link);
    }
    while (!cn_list_empty(&lane->closing)) {
        struct cn_ws *ws = CN_CONTAINER_OF(lane->closing.next, struct cn_ws, link);
        if (ws->deadline_ms > now_ms)
            break;
        cut_for_good(ws);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct cn_ws_lane *lane = timer->data;
    cn_ws_lane_tick(lane, uv_now(lane->loop));
}

void cn_ws_lane_shutdown(struct cn_ws_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    lane->shut_down = true;
    while (!cn_list_empty(&lane->open)) {
        struct cn_ws *ws = CN_CONTAINER_OF(lane->open.next, struct cn_ws, link);
        send_close(ws, CN_WS_RESTART, NULL, 0);
        arm_closing(ws);
    }
}

void cn_ws_lane_abort(struct cn_ws_lane *lane)
{
    cn_loop_assert_owner(lane->loop);
    cn_list_splice(&lane->closing, &lane->open);
    struct cn_list *node;
    while ((node = cn_list_take_front(&lane->closing)))
        cut_for_good(CN_CONTAINER_OF(node, struct cn_ws, link));
}
