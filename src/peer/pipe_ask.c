/* SPDX-License-Identifier: Apache-2.0 */
/* peer/pipe_ask.c - asking: lanes of other disks that are dialed, questions on their way to
 * them, and what ends these. See pipe_private.h. */
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mem.h"
#include "peer/dial.h"
#include "peer/pipe_private.h"

enum { PEERS_MAX = 16384 };

struct cn_pipe_asked {
    struct cn_list link; /* of its peer: waiting, or under_way */
    struct cn_pipe_peer *peer;
    struct cn_pipe_conn *conn;         /* NULL: it has no channel yet */
    struct cn_pipe_question *question; /* NULL: cancelled */
    size_t size;
    struct cn_pipe_out out;
    struct cn_pipe_in in;
};

struct cn_pipe_peer {
    struct cn_pipes *pipes;
    uint64_t disk;
    unsigned lane;
    struct cn_pipe_conn *conn;
    struct cn_dial *dial;
    uint64_t dial_until_ms, retry_at_ms, retry_ms;
    unsigned turn;
    struct cn_list waiting, under_way; /* of struct cn_pipe_asked, oldest first */
    size_t asked_bytes;
};

/* What is known of a disk. */
struct known {
    uint64_t disk;
    unsigned lane_count;
};

struct key {
    uint64_t disk, lane;
};

/* --- channels --------------------------------------------------------------------------------- */

static void begin_waiting(struct cn_pipe_peer *peer);

/* A channel for a question; 0: all are in use. */
static uint32_t take_channel(struct cn_pipe_conn *conn)
{
    if (!conn->free_count && conn->slot_count < CN_PIPE_CHANNELS_MAX)
        cn_pipe_slots_grow(conn, conn->slot_count + 1);
    return conn->free_count ? conn->free[--conn->free_count] : 0;
}

static void give_channel(struct cn_pipe_conn *conn, uint32_t channel)
{
    conn->slots[channel - 1] = NULL;
    conn->free[conn->free_count++] = channel;
    if (conn->peer && conn->up)
        begin_waiting(conn->peer);
}

/* --- questions -------------------------------------------------------------------------------- */

void cn_pipe_ask_drop(struct cn_pipe_asked *asked)
{
    struct cn_pipes *pipes = asked->peer->pipes;
    if (asked->out.conn)
        cn_pipe_out_leave(&asked->out);
    cn_pipe_in_release(pipes, &asked->in);
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

static void begin(struct cn_pipe_conn *conn, struct cn_pipe_asked *asked, uint32_t channel)
{
    asked->conn = conn;
    asked->out.channel = channel;
    conn->slots[channel - 1] = asked;
    cn_list_remove(&asked->link);
    cn_list_push_back(&asked->peer->under_way, &asked->link);
    cn_pipe_out_enqueue(conn, &asked->out);
}

static void begin_waiting(struct cn_pipe_peer *peer)
{
    uint32_t channel;
    while (!cn_list_empty(&peer->waiting) && (channel = take_channel(peer->conn)))
        begin(peer->conn, CN_CONTAINER_OF(peer->waiting.next, struct cn_pipe_asked, link), channel);
    cn_pipe_pump(peer->conn);
}

static void asked_end(struct cn_pipe_asked *asked, enum cn_pipe_end end)
{
    struct cn_pipes *pipes = asked->peer->pipes;
    struct cn_pipe_question *question = asked_forget(asked);
    uint8_t *bytes = end == CN_PIPE_ANSWERED ? asked->in.bytes : NULL;
    size_t size = asked->in.size;
    if (bytes)
        asked->in.bytes = NULL;
    cn_pipe_ask_drop(asked);
    pipes->stats.unsent += end == CN_PIPE_UNSENT;
    pipes->stats.lost += end == CN_PIPE_LOST;
    question->done(question, end, bytes, bytes ? size : 0);
}

/* A channel has its answer whole. False: the connection is over. */
static bool on_answer(struct cn_pipe_conn *conn, uint32_t channel, struct cn_pipe_asked *asked)
{
    if (asked->question)
        asked_end(asked, CN_PIPE_ANSWERED);
    else
        cn_pipe_ask_drop(asked);
    if (conn->over)
        return false;
    give_channel(conn, channel);
    cn_pipe_feed_starved(conn->pipes);
    return !conn->over;
}

bool cn_pipe_ask_frame(struct cn_pipe_conn *conn, const struct cn_frame *frame)
{
    struct cn_pipe_asked *asked = cn_pipe_slot(conn, frame->channel);
    struct cn_pipe_in *in = asked ? &asked->in : NULL;
    size_t size;
    if (!asked)
        return cn_pipe_malformed(conn);
    switch (frame->kind) {
    case CN_FRAME_ROOM:
        if (frame->size || !asked->out.announced || asked->out.sent)
            return cn_pipe_malformed(conn);
        if (asked->question && asked->out.conn && cn_list_empty(&asked->out.link))
            cn_list_push_back(&conn->ready, &asked->out.link);
        cn_pipe_pump(conn);
        return true;
    case CN_FRAME_WHOLE:
        if (!asked->out.sent || in->wanted || frame->size > CN_PIPE_PIECE_MAX)
            return cn_pipe_malformed(conn);
        *in = (struct cn_pipe_in){.bytes = cn_alloc(frame->size + 1), .size = frame->size};
        cn_list_init(&in->link);
        memcpy(in->bytes, frame->body, frame->size);
        return on_answer(conn, frame->channel, asked);
    case CN_FRAME_LARGE:
        if (!asked->out.sent || in->wanted || !cn_pipe_in_size(frame, &size))
            return cn_pipe_malformed(conn);
        if (asked->question)
            cn_pipe_in_want(conn, in, frame->channel, size);
        return !conn->over;
    case CN_FRAME_PIECE:
        if (!cn_pipe_in_piece(in, frame))
            return cn_pipe_malformed(conn);
        return in->got < in->size || on_answer(conn, frame->channel, asked);
    case CN_FRAME_CANCELLED:
        if (asked->question || frame->size)
            return cn_pipe_malformed(conn);
        return on_answer(conn, frame->channel, asked);
    default:
        return cn_pipe_malformed(conn);
    }
}

/* --- peers ------------------------------------------------------------------------------------ */

static void pause_peer(struct cn_pipe_peer *peer)
{
    const struct cn_pipes_config *config = &peer->pipes->config;
    peer->retry_at_ms = uv_now(peer->pipes->loop) + peer->retry_ms;
    peer->retry_ms *= 2;
    if (peer->retry_ms > config->retry_max_ms)
        peer->retry_ms = config->retry_max_ms;
}

/* The way to it is broken. Who is told may ask anew, and is refused while it pauses. */
static void fail_peer(struct cn_pipe_peer *peer)
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
        cn_pipe_in_release(peer->pipes, &asked->in);
    }
    while (!cn_list_empty(&ending)) {
        node = ending.next;
        struct cn_pipe_asked *asked = CN_CONTAINER_OF(node, struct cn_pipe_asked, link);
        cn_list_init(&asked->out.behind);
        asked_end(asked, asked->out.sent ? CN_PIPE_LOST : CN_PIPE_UNSENT); /* T2 */
    }
}

void cn_pipe_ask_lost(struct cn_pipe_peer *peer)
{
    peer->conn = NULL;
    fail_peer(peer);
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

bool cn_pipe_ask_welcome(struct cn_pipe_conn *conn, const struct cn_frame *frame)
{
    struct cn_pipe_peer *peer = conn->peer;
    struct cn_pipe_welcome welcome = {0};
    if (frame->kind != CN_FRAME_WELCOME || frame->channel ||
        cn_wire_get(cn_pipe_welcome_fields, &welcome, frame->body, frame->size, NULL) < 0)
        return cn_pipe_malformed(conn);
    if (welcome.lane_count && welcome.disk == peer->disk)
        known_of(conn->pipes, peer->disk)->lane_count = welcome.lane_count;
    if (welcome.version < CN_PIPE_VERSION_MIN || welcome.version > CN_PIPE_VERSION_MAX ||
        welcome.disk != peer->disk || welcome.lane != peer->lane) {
        /* Refused, or it has another number of lanes: whoever asks anew finds it. */
        peer->retry_ms = conn->pipes->config.retry_ms;
        cn_pipe_conn_end(conn);
        return false;
    }
    conn->up = true;
    conn->asker.life = welcome.life;
    peer->retry_ms = conn->pipes->config.retry_ms;
    begin_waiting(peer);
    return !conn->over;
}

/* --- dialing ---------------------------------------------------------------------------------- */

static void on_dialed(void *data, struct cn_stream_moved *moved, int status)
{
    (void)status; /* the links of the node tell why: L8 */
    struct cn_pipe_peer *peer = data;
    struct cn_pipes *pipes = peer->pipes;
    peer->dial = NULL;
    struct cn_pipe_conn *conn = moved ? cn_pipe_conn_new(pipes, moved) : NULL;
    if (!conn) {
        fail_peer(peer);
        return;
    }
    conn->peer = peer;
    conn->asker.disk = peer->disk;
    peer->conn = conn;
    struct cn_pipe_hello hello = {.version_min = CN_PIPE_VERSION_MIN,
                                  .version_max = CN_PIPE_VERSION_MAX,
                                  .disk = pipes->config.disk,
                                  .life = pipes->config.life,
                                  .to = peer->disk,
                                  .lane = pipes->config.lane,
                                  .to_lane = peer->lane,
                                  .session = pipes->session};
    memcpy(hello.cluster, pipes->config.cluster, CN_FRAME_CLUSTER_SIZE);
    cn_pipe_send_struct(conn, CN_FRAME_PIPE, cn_pipe_hello_fields, &hello);
}

static void on_dial_gone(void *data)
{
    struct cn_pipe_peer *peer = data;
    peer->pipes->dials--;
    cn_pipe_end_if_empty(peer->pipes);
}

static int dial(struct cn_pipe_peer *peer)
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
    cn_pipe_keep_time(pipes);
    return 0;
}

/* NULL: there are too many. */
static struct cn_pipe_peer *peer_get(struct cn_pipes *pipes, uint64_t disk, unsigned lane)
{
    struct key key = {disk, lane};
    struct cn_pipe_peer *peer = cn_map_find(&pipes->peers, &key, sizeof(key));
    if (peer || pipes->peers.count >= PEERS_MAX)
        return peer;
    peer = CN_NEW(struct cn_pipe_peer);
    *peer = (struct cn_pipe_peer){
        .pipes = pipes, .disk = disk, .lane = lane, .retry_ms = pipes->config.retry_ms};
    cn_list_init(&peer->waiting);
    cn_list_init(&peer->under_way);
    (void)cn_map_set(&pipes->peers, &key, sizeof(key), peer);
    return peer;
}

/* --- asking ----------------------------------------------------------------------------------- */

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
    struct cn_pipe_peer *peer =
        peer_get(pipes, disk, (unsigned)(hash % known_of(pipes, disk)->lane_count));
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
    cn_pipe_out_init(&asked->out);
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
    struct cn_pipe_conn *conn = asked->conn;
    uint32_t channel = asked->out.channel;
    (void)asked_forget(asked);
    if (asked->out.conn)
        cn_pipe_out_leave(&asked->out);
    cn_pipe_in_release(pipes, &asked->in); /* pieces that are on their way are counted, no more */
    if (!conn || (!asked->out.sent && !asked->out.announced)) {
        cn_pipe_ask_drop(asked);
        if (conn)
            give_channel(conn, channel);
        return;
    }
    cn_pipe_send(conn, CN_FRAME_CANCEL, channel, NULL, 0, NULL, 0);
    cn_pipe_pump(conn);
}

void cn_pipes_session(struct cn_pipes *pipes, uint64_t session)
{
    cn_loop_assert_owner(pipes->loop);
    if (pipes->session == session)
        return;
    pipes->session = session;
    for (struct cn_list *node = pipes->conns.next; node != &pipes->conns;) {
        struct cn_pipe_conn *conn = CN_CONTAINER_OF(node, struct cn_pipe_conn, link);
        node = node->next; /* as above */
        struct cn_pipe_peer *peer = conn->peer;
        if (!peer)
            continue;
        cn_pipe_conn_end(conn);
        peer->retry_at_ms = 0; /* it was not its fault */
        peer->retry_ms = pipes->config.retry_ms;
    }
}

/* --- time, and the end ------------------------------------------------------------------------ */

void cn_pipe_ask_tick(struct cn_pipes *pipes, uint64_t now)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    struct cn_pipe_peer *late = NULL;
    while (pipes->dials && cn_map_next(&pipes->peers, &cursor, &entry)) {
        struct cn_pipe_peer *peer = entry->value;
        if (peer->dial && now >= peer->dial_until_ms)
            late = peer;
    }
    if (!late)
        return;
    /* One at a time: who is told may add peers. */
    cn_dial_drop(late->dial);
    late->dial = NULL;
    fail_peer(late);
}

void cn_pipe_ask_end(struct cn_pipes *pipes)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&pipes->peers, &cursor, &entry)) {
        struct cn_pipe_peer *peer = entry->value;
        if (peer->dial)
            cn_dial_drop(peer->dial);
        peer->dial = NULL;
        fail_peer(peer);
    }
}
