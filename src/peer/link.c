/* SPDX-License-Identifier: Apache-2.0 */
/* peer/link.c - connections to other nodes.
 *
 * A *peer* is a disk that is known, or has said HELLO. A *connection* is a stream: one of ours that
 * was dialed has its peer from the start, one that was accepted gets it with HELLO. A *dial* is
 * what comes before a stream: the name, and TCP. Each of them is freed by the last callback of
 * libuv that it waits for; a peer stays for as long as the links, so that its pauses and its life
 * are remembered. */
#include "peer/link.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/server.h"
#include "net/stream.h"
#include "net/tls.h"
#include "peer/dial.h"

enum { BACKLOG = 64, LEAVE_MS = 500 };

struct conn {
    struct cn_list link; /* of links->conns */
    struct cn_links *links;
    struct cn_stream *stream;
    struct peer *peer; /* NULL: accepted, and nobody yet */
    struct cn_frame_reader reader;
    bool up, dialed;
    uint64_t opened_ms, heard_ms, sent_ms;
};

struct dial {
    struct cn_list link; /* of links->dials */
    struct cn_links *links;
    struct peer *peer;
    struct cn_dial *dial;
    bool over;
};

struct peer {
    uint64_t disk, life;
    bool known;
    char address[CN_LINK_ADDRESS_MAX + 1];
    struct conn *conn; /* UP, or dialed and greeting; NULL: none */
    struct dial *dial;
    uint64_t dial_at_ms; /* while one connects: until when */
    uint64_t retry_ms;
    unsigned turn;      /* which of a name's addresses is tried next */
    uint64_t alone_ms;  /* without a link since; 0: has one */
    uint64_t leaves_ms; /* its link is closed then: nobody knows it any more; 0: it stays */
    bool troubled;      /* L8 */
    char why[80];       /* the last try failed */
    bool want_room;
};

struct cn_links {
    uv_loop_t *loop;
    struct cn_links_config config;
    struct cn_tls_context *tls;
    struct cn_stream_lane *streams;
    uv_tcp_t listener;
    uv_timer_t timer;
    unsigned handles; /* of the two above, that are open */
    struct cn_list conns, dials;
    struct peer peers[CN_CLUSTER_NODES_MAX];
    unsigned peer_count;
    uint64_t ticked_ms;
    struct cn_links_stats stats;
    char strangers[CN_LINKS_STRANGERS_MAX][46]; /* L8 */
    unsigned stranger_count;
    bool freed;
    void (*closed)(void *data);
    void *closed_data;
};

/* --- peers ------------------------------------------------------------------------------------ */

static struct peer *peer_find(const struct cn_links *links, uint64_t disk)
{
    for (unsigned i = 0; i < links->peer_count; i++)
        if (links->peers[i].disk == disk)
            return (struct peer *)&links->peers[i];
    return NULL;
}

/* One that nobody knows any more and that has nothing gives its place. NULL: all are in use. */
static struct peer *peer_get(struct cn_links *links, uint64_t disk)
{
    struct peer *peer = peer_find(links, disk);
    if (peer)
        return peer;
    for (unsigned i = 0; i < links->peer_count && !peer; i++)
        if (!links->peers[i].known && !links->peers[i].conn && !links->peers[i].dial)
            peer = &links->peers[i];
    if (!peer && links->peer_count < CN_CLUSTER_NODES_MAX)
        peer = &links->peers[links->peer_count++];
    if (peer)
        *peer = (struct peer){.disk = disk, .retry_ms = links->config.retry_ms};
    return peer;
}

/* The disk with the lower number dials. */
static bool dials(const struct cn_links *links, const struct peer *peer)
{
    return peer->known && peer->address[0] && links->config.disk < peer->disk;
}

static void dial_later(struct cn_links *links, struct peer *peer)
{
    peer->dial_at_ms = uv_now(links->loop) + peer->retry_ms;
    peer->retry_ms *= 2;
    if (peer->retry_ms > links->config.retry_max_ms)
        peer->retry_ms = links->config.retry_max_ms;
}

/* --- trouble: L8 ------------------------------------------------------------------------------ */

static void look_for_trouble(struct cn_links *links, struct peer *peer, uint64_t now)
{
    const struct cn_links_hooks *hooks = &links->config.hooks;
    if (!peer->known || (peer->conn && peer->conn->up)) {
        peer->alone_ms = 0;
        peer->troubled = false;
        return;
    }
    if (!peer->alone_ms)
        peer->alone_ms = now;
    if (peer->troubled || now - peer->alone_ms < links->config.trouble_ms)
        return;
    peer->troubled = true;
    if (hooks->trouble)
        hooks->trouble(hooks->data, peer->disk,
                       peer->why[0] ? peer->why : "it does not connect to this node");
}

/* Once for each address. */
static void note_stranger(struct cn_links *links, const char *address)
{
    const struct cn_links_hooks *hooks = &links->config.hooks;
    links->stats.strangers++;
    for (unsigned i = 0; i < links->stranger_count; i++)
        if (strcmp(links->strangers[i], address) == 0)
            return;
    if (links->stranger_count == CN_LINKS_STRANGERS_MAX)
        return;
    snprintf(links->strangers[links->stranger_count++], sizeof(links->strangers[0]), "%s", address);
    if (hooks->stranger)
        hooks->stranger(hooks->data, address);
}

/* --- connections ------------------------------------------------------------------------------ */

static void end_if_empty(struct cn_links *links);

static void send_frame(struct conn *conn, enum cn_frame_kind kind, const void *body,
                       size_t body_size, const void *more, size_t more_size)
{
    uint8_t head[CN_FRAME_HEAD_SIZE];
    cn_frame_put_head(head, kind, 0, body_size + more_size);
    cn_stream_write(conn->stream, head, sizeof(head));
    if (body_size)
        cn_stream_write(conn->stream, body, body_size);
    if (more_size)
        cn_stream_write(conn->stream, more, more_size);
    conn->sent_ms = uv_now(conn->links->loop);
    conn->links->stats.sent_bytes += sizeof(head) + body_size + more_size;
}

static void send_hello(struct conn *conn, uint64_t to)
{
    const struct cn_links_config *config = &conn->links->config;
    struct cn_frame_hello hello = {
        .version = CN_FRAME_VERSION, .disk = config->disk, .life = config->life, .to = to};
    uint8_t body[CN_FRAME_HELLO_SIZE];
    memcpy(hello.cluster, config->cluster, CN_FRAME_CLUSTER_SIZE);
    cn_frame_put_hello(body, &hello);
    send_frame(conn, CN_FRAME_HELLO, body, sizeof(body), NULL, 0);
}

/* The connection is over; on_closed() follows. `why` NULL: nobody is told. */
static void conn_end(struct conn *conn, bool silent, const char *why)
{
    struct cn_links *links = conn->links;
    struct peer *peer = conn->peer;
    bool was_up = conn->up;
    if (peer && peer->conn == conn && !was_up && why)
        snprintf(peer->why, sizeof(peer->why), "%s", why);
    conn->up = false;
    conn->peer = NULL;
    cn_stream_close(conn->stream, !was_up || silent);
    if (!peer || peer->conn != conn)
        return;
    peer->conn = NULL;
    dial_later(links, peer);
    if (!was_up)
        return;
    links->stats.broken++;
    links->stats.silent += silent;
    if (why)
        links->config.hooks.down(links->config.hooks.data, peer->disk, silent, why);
}

static void conn_malformed(struct conn *conn, const char *what)
{
    conn->links->stats.malformed++;
    conn_end(conn, false, what);
}

/* It is no link: others go on with it. Nothing follows PIPE before it is answered. */
static void hand_over(struct conn *conn, const struct cn_frame *frame)
{
    const struct cn_links_hooks *hooks = &conn->links->config.hooks;
    struct cn_stream_moved moved;
    cn_stream_pause(conn->stream);
    if (conn->dialed || !hooks->pipe || !cn_stream_move(conn->stream, &moved))
        conn_malformed(conn, "its PIPE is not for us");
    else
        hooks->pipe(hooks->data, &moved, frame->body, frame->size);
}

/* L2. False: it was closed. */
static bool conn_greet(struct conn *conn, const struct cn_frame *frame)
{
    struct cn_links *links = conn->links;
    struct cn_frame_hello hello;
    if (frame->kind == CN_FRAME_PIPE) {
        hand_over(conn, frame);
        return false;
    }
    if (!cn_frame_get_hello(frame, &hello) || hello.version != CN_FRAME_VERSION ||
        memcmp(hello.cluster, links->config.cluster, CN_FRAME_CLUSTER_SIZE) != 0 ||
        hello.to != links->config.disk || !hello.disk || hello.disk == links->config.disk ||
        (conn->dialed && hello.disk != conn->peer->disk)) {
        conn_malformed(conn, "its HELLO is not for us");
        return false;
    }
    struct peer *peer = peer_get(links, hello.disk);
    if (!peer || hello.life < peer->life) {
        conn_end(conn, false, NULL);
        return false;
    }
    if (peer->conn && peer->conn != conn) {
        struct conn *old = peer->conn;
        conn_end(old, false, "another took its place");
        if (links->freed)
            return false;
    }
    if (peer->conn == NULL) {
        conn->peer = peer;
        peer->conn = conn;
    }
    peer->life = hello.life;
    peer->retry_ms = links->config.retry_ms;
    peer->want_room = false;
    peer->why[0] = 0;
    conn->up = true;
    if (!conn->dialed)
        send_hello(conn, hello.disk);
    links->config.hooks.up(links->config.hooks.data, hello.disk);
    return conn->up;
}

static bool on_frame(void *data, const struct cn_frame *frame)
{
    struct conn *conn = data;
    struct cn_links *links = conn->links;
    conn->heard_ms = uv_now(links->loop);
    if (!conn->up)
        return conn_greet(conn, frame);
    if (frame->kind == CN_FRAME_HELLO || frame->kind == CN_FRAME_PIPE ||
        (frame->kind == CN_FRAME_BEAT && frame->size)) {
        conn_malformed(conn, "it sent a frame that is none");
        return false;
    }
    if (frame->kind == CN_FRAME_BEAT)
        return true;
    bool good = links->config.hooks.frame(links->config.hooks.data, conn->peer->disk, frame);
    if (!good && conn->up)
        conn_malformed(conn, "it sent a frame that is none");
    return conn->up;
}

static void on_data(struct cn_stream *stream, const uint8_t *bytes, size_t size)
{
    struct conn *conn = cn_stream_owner(stream);
    conn->links->stats.received_bytes += size;
    conn->heard_ms = uv_now(conn->links->loop);
    if (cn_frame_read(&conn->reader, bytes, size, on_frame, conn) < 0)
        conn_malformed(conn, "it sent a frame that is none");
}

static void on_end(struct cn_stream *stream, int status)
{
    struct conn *conn = cn_stream_owner(stream);
    bool unkeyed = status == CN_EPROTOCOL && !conn->up;
    if (unkeyed && !conn->dialed)
        note_stranger(conn->links, cn_stream_remote(stream, NULL));
    conn_end(conn, false,
             unkeyed       ? "it does not have the key of this cluster"
             : status == 0 ? "it closed the connection"
                           : cn_err_name(status));
}

static void on_drain(struct cn_stream *stream)
{
    struct conn *conn = cn_stream_owner(stream);
    struct peer *peer = conn->peer;
    if (!conn->up || !peer || !peer->want_room)
        return;
    peer->want_room = false;
    conn->links->config.hooks.room(conn->links->config.hooks.data, peer->disk);
}

static void on_closed(struct cn_stream *stream)
{
    struct conn *conn = cn_stream_owner(stream);
    cn_list_remove(&conn->link);
    cn_frame_reader_fini(&conn->reader);
    cn_free(conn);
}

static void on_gone(void *data)
{
    end_if_empty(data);
}

static const struct cn_stream_callbacks callbacks = {
    .on_data = on_data, .on_end = on_end, .on_drain = on_drain, .on_closed = on_closed};

static struct conn *conn_new(struct cn_links *links, struct peer *peer)
{
    struct conn *conn = CN_NEW(struct conn);
    conn->links = links;
    conn->peer = peer;
    conn->dialed = peer != NULL;
    conn->opened_ms = conn->heard_ms = conn->sent_ms = uv_now(links->loop);
    return conn;
}

/* --- who dials us ----------------------------------------------------------------------------- */

/* L4: the oldest of those who have said nothing gives way. */
static void bound_greeting(struct cn_links *links)
{
    unsigned count = 0;
    struct conn *oldest = NULL;
    CN_LIST_FOREACH(&links->conns, node)
    {
        struct conn *conn = CN_CONTAINER_OF(node, struct conn, link);
        if (conn->up || conn->dialed || cn_stream_closing(conn->stream))
            continue;
        if (!oldest)
            oldest = conn;
        count++;
    }
    if (count > CN_LINKS_GREETING_MAX)
        conn_end(oldest, false, NULL);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct cn_links *links = CN_CONTAINER_OF(listener, struct cn_links, listener);
    if (status < 0 || links->freed)
        return;
    struct conn *conn = conn_new(links, NULL);
    conn->stream = cn_stream_accept(links->streams, listener, links->tls, &callbacks, conn);
    if (!conn->stream) {
        cn_free(conn);
        return;
    }
    cn_list_push_back(&links->conns, &conn->link);
    cn_stream_resume(conn->stream);
    bound_greeting(links);
}

/* --- whom we dial ----------------------------------------------------------------------------- */

static void on_dial_gone(void *data)
{
    struct dial *dial = data;
    struct cn_links *links = dial->links;
    cn_list_remove(&dial->link);
    cn_free(dial);
    end_if_empty(links);
}

static void dial_over(struct dial *dial)
{
    dial->over = true;
    dial->peer->dial = NULL;
    dial_later(dial->links, dial->peer);
}

/* It is of no use any more. */
static void dial_drop(struct dial *dial)
{
    if (dial->over)
        return;
    dial_over(dial);
    cn_dial_drop(dial->dial);
}

/* The connected socket goes on as a stream. */
static void on_dialed(void *data, struct cn_stream_moved *moved, int status)
{
    struct dial *dial = data;
    struct cn_links *links = dial->links;
    struct peer *peer = dial->peer;
    dial_over(dial);
    if (!moved) {
        snprintf(peer->why, sizeof(peer->why), "%s", uv_strerror(status));
        return;
    }
    if (peer->conn) {
        cn_stream_moved_drop(moved);
        return;
    }
    struct conn *conn = conn_new(links, peer);
    conn->stream = cn_stream_arrive(links->streams, moved, &callbacks, conn);
    if (!conn->stream) {
        cn_free(conn);
        return;
    }
    cn_list_push_back(&links->conns, &conn->link);
    peer->conn = conn;
    cn_stream_resume(conn->stream);
    send_hello(conn, peer->disk);
}

static void dial_begin(struct cn_links *links, struct peer *peer)
{
    struct dial *dial = CN_NEW(struct dial);
    struct cn_dial_hooks hooks = {dial, on_dialed, on_dial_gone};
    dial->links = links;
    dial->peer = peer;
    dial->dial = cn_dial_new(links->loop, peer->address, peer->turn++, links->tls, &hooks);
    if (!dial->dial) {
        cn_free(dial);
        dial_later(links, peer);
        return;
    }
    peer->dial = dial;
    peer->dial_at_ms = uv_now(links->loop) + links->config.greet_ms;
    cn_list_push_back(&links->dials, &dial->link);
}

/* --- time ------------------------------------------------------------------------------------- */

static void tick_conn(struct cn_links *links, struct conn *conn, uint64_t now)
{
    const struct cn_links_config *config = &links->config;
    if (cn_stream_closing(conn->stream))
        return;
    if (!conn->up) {
        if (now - conn->opened_ms >= config->greet_ms)
            conn_end(conn, false, "it does not answer");
    } else if (now - conn->heard_ms >= config->silent_ms) {
        conn_end(conn, true, "it is silent"); /* L5 */
    } else if (now - conn->sent_ms >= config->beat_ms && cn_stream_queued(conn->stream) == 0) {
        send_frame(conn, CN_FRAME_BEAT, NULL, 0, NULL, 0);
    }
}

static void on_time(uv_timer_t *timer)
{
    struct cn_links *links = CN_CONTAINER_OF(timer, struct cn_links, timer);
    uint64_t now = uv_now(links->loop);
    /* If it was us who stood still, what the others said meanwhile waits to be read. */
    bool away = now - links->ticked_ms > links->config.silent_ms / 2;
    links->ticked_ms = now;
    for (struct cn_list *node = links->conns.next; node != &links->conns;) {
        struct conn *conn = CN_CONTAINER_OF(node, struct conn, link);
        node = node->next; /* a connection leaves the list when the loop has closed it */
        if (away)
            conn->heard_ms = now;
        tick_conn(links, conn, now);
        if (links->freed)
            return;
    }
    for (unsigned i = 0; i < links->peer_count; i++) {
        struct peer *peer = &links->peers[i];
        if (dials(links, peer) && !peer->conn && !peer->dial && now >= peer->dial_at_ms)
            dial_begin(links, peer);
        else if (peer->dial && now >= peer->dial_at_ms) {
            snprintf(peer->why, sizeof(peer->why), "%s", uv_strerror(UV_ETIMEDOUT));
            dial_drop(peer->dial);
        }
        look_for_trouble(links, peer, now);
        if (peer->leaves_ms && now >= peer->leaves_ms) {
            peer->leaves_ms = 0;
            if (peer->conn)
                conn_end(peer->conn, false, NULL);
        }
    }
}

/* --- its life --------------------------------------------------------------------------------- */

int cn_links_bind(const char *host, uint16_t port, uint16_t *bound_port, struct cn_err *err)
{
    int fd;
    int rc = cn_http_bind(host, port, &fd, 1, bound_port, err);
    return rc < 0 ? rc : fd;
}

static void set_defaults(struct cn_links_config *config)
{
    const struct {
        unsigned *field, value;
    } times[] = {{&config->beat_ms, 500},       {&config->silent_ms, 2000},
                 {&config->greet_ms, 5000},     {&config->retry_ms, 100},
                 {&config->retry_max_ms, 5000}, {&config->trouble_ms, 10000}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(times); i++)
        if (!*times[i].field)
            *times[i].field = times[i].value;
    if (!config->queue_max)
        config->queue_max = 8u << 20;
    if (!config->queue_total_max)
        config->queue_total_max = 64u << 20;
}

int cn_links_new(uv_loop_t *loop, const struct cn_links_config *config, struct cn_links **result,
                 struct cn_err *err)
{
    cn_loop_assert_owner(loop);
    struct cn_links *links = CN_NEW(struct cn_links);
    *links = (struct cn_links){.loop = loop, .config = *config, .ticked_ms = uv_now(loop)};
    set_defaults(&links->config);
    cn_list_init(&links->conns);
    cn_list_init(&links->dials);
    int rc = cn_tls_context_new_keyed(config->key, &links->tls, err);
    if (rc < 0) {
        cn_free(links);
        return rc;
    }
    links->streams = cn_stream_lane_new(loop, on_gone, links);
    uv_timer_init(loop, &links->timer);
    links->handles = 1;
    if (config->listen_fd >= 0) {
        uv_tcp_init(loop, &links->listener);
        links->handles++;
        rc = uv_tcp_open(&links->listener, config->listen_fd);
        if (rc < 0)
            close(config->listen_fd);
        else
            rc = uv_listen((uv_stream_t *)&links->listener, BACKLOG, on_connection);
        if (rc < 0) {
            cn_links_free(links, NULL, NULL);
            return cn_err_set(err, rc, "cannot listen for other nodes: %s", uv_strerror(rc));
        }
    }
    unsigned period = links->config.beat_ms / 2 < 100 ? links->config.beat_ms / 2 : 100;
    uv_timer_start(&links->timer, on_time, period, period);
    *result = links;
    return 0;
}

static void on_streams_closed(void *data)
{
    struct cn_links *links = data;
    void (*closed)(void *) = links->closed;
    void *closed_data = links->closed_data;
    cn_tls_context_unref(links->tls);
    cn_free(links);
    if (closed)
        closed(closed_data);
}

static void end_if_empty(struct cn_links *links)
{
    if (!links->freed || links->handles || !cn_list_empty(&links->conns) ||
        !cn_list_empty(&links->dials) || !links->streams || cn_stream_lane_count(links->streams))
        return;
    struct cn_stream_lane *streams = links->streams;
    links->streams = NULL;
    cn_stream_lane_free(streams, on_streams_closed, links);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct cn_links *links = handle->type == UV_TIMER
                                 ? CN_CONTAINER_OF(handle, struct cn_links, timer)
                                 : CN_CONTAINER_OF(handle, struct cn_links, listener);
    links->handles--;
    end_if_empty(links);
}

void cn_links_free(struct cn_links *links, void (*closed)(void *data), void *data)
{
    cn_loop_assert_owner(links->loop);
    CN_ASSERT(!links->freed);
    links->freed = true;
    links->closed = closed;
    links->closed_data = data;
    CN_LIST_FOREACH(&links->conns, node)
    conn_end(CN_CONTAINER_OF(node, struct conn, link), false, NULL);
    CN_LIST_FOREACH(&links->dials, node)
    dial_drop(CN_CONTAINER_OF(node, struct dial, link));
    if (links->config.listen_fd >= 0)
        uv_close((uv_handle_t *)&links->listener, on_handle_closed);
    uv_close((uv_handle_t *)&links->timer, on_handle_closed);
}

void cn_links_know(struct cn_links *links, const struct cn_link_peer *peers, size_t count)
{
    cn_loop_assert_owner(links->loop);
    for (unsigned i = 0; i < links->peer_count; i++)
        links->peers[i].known = false;
    for (size_t i = 0; i < count; i++) {
        struct peer *peer =
            peers[i].disk == links->config.disk ? NULL : peer_get(links, peers[i].disk);
        if (!peer)
            continue;
        peer->known = true;
        peer->leaves_ms = 0;
        if (strcmp(peer->address, peers[i].address) == 0 ||
            strlen(peers[i].address) > CN_LINK_ADDRESS_MAX)
            continue;
        snprintf(peer->address, sizeof(peer->address), "%s", peers[i].address);
        peer->dial_at_ms = 0;
        peer->retry_ms = links->config.retry_ms;
    }
    for (unsigned i = 0; i < links->peer_count; i++) {
        struct peer *peer = &links->peers[i];
        if (!peer->known && peer->conn && !peer->leaves_ms) /* what was sent is to get there */
            peer->leaves_ms = uv_now(links->loop) + LEAVE_MS;
        if (!peer->known && peer->dial)
            dial_drop(peer->dial);
    }
}

/* --- sending ---------------------------------------------------------------------------------- */

enum cn_link_state cn_links_state(const struct cn_links *links, uint64_t disk)
{
    const struct peer *peer = peer_find(links, disk);
    if (!peer || (!peer->conn && !peer->dial))
        return CN_LINK_NONE;
    if (!peer->conn)
        return CN_LINK_DIALING;
    return peer->conn->up ? CN_LINK_UP : CN_LINK_GREETING;
}

static size_t queued_total(const struct cn_links *links)
{
    size_t total = 0;
    for (unsigned i = 0; i < links->peer_count; i++)
        if (links->peers[i].conn)
            total += cn_stream_queued(links->peers[i].conn->stream);
    return total;
}

size_t cn_links_room(const struct cn_links *links, uint64_t disk)
{
    const struct peer *peer = peer_find(links, disk);
    if (!peer || !peer->conn || !peer->conn->up)
        return 0;
    size_t own = cn_stream_queued(peer->conn->stream) + CN_FRAME_HEAD_SIZE;
    size_t all = queued_total(links) + CN_FRAME_HEAD_SIZE;
    if (own >= links->config.queue_max || all >= links->config.queue_total_max)
        return 0;
    size_t room = links->config.queue_max - own;
    if (links->config.queue_total_max - all < room)
        room = links->config.queue_total_max - all;
    return room < CN_FRAME_BODY_MAX ? room : CN_FRAME_BODY_MAX;
}

bool cn_links_send(struct cn_links *links, uint64_t disk, enum cn_frame_kind kind, const void *body,
                   size_t body_size, const void *more, size_t more_size)
{
    cn_loop_assert_owner(links->loop);
    struct peer *peer = peer_find(links, disk);
    if (!peer || !peer->conn || !peer->conn->up)
        return false;
    if (cn_links_room(links, disk) < body_size + more_size) {
        links->stats.refused_sends++;
        peer->want_room = true;
        cn_stream_want_drain(peer->conn->stream);
        return false;
    }
    send_frame(peer->conn, kind, body, body_size, more, more_size);
    return true;
}

void cn_links_stats(const struct cn_links *links, struct cn_links_stats *stats)
{
    *stats = links->stats;
    stats->queued_bytes = queued_total(links);
    for (unsigned i = 0; i < links->peer_count; i++) {
        enum cn_link_state state = cn_links_state(links, links->peers[i].disk);
        stats->up += state == CN_LINK_UP;
        stats->greeting += state == CN_LINK_GREETING;
        stats->dialing += state == CN_LINK_DIALING;
        stats->troubled += links->peers[i].troubled;
    }
}
