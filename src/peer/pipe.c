/* SPDX-License-Identifier: Apache-2.0 */
/* peer/pipe.c - connections between lanes of nodes, their time, and the life of what has them.
 * See pipe.h and pipe_private.h. */
#include "peer/pipe.h"

#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/stream.h"
#include "net/tls.h"
#include "peer/pipe_private.h"

enum { TICK_MS = 100, SLOTS_FIRST = 64 };

/* --- channels --------------------------------------------------------------------------------- */

void *cn_pipe_slot(const struct cn_pipe_conn *conn, uint32_t channel)
{
    return channel && channel <= conn->slot_count ? conn->slots[channel - 1] : NULL;
}

static uint32_t slots_enough(const struct cn_pipe_conn *conn, uint32_t channel)
{
    uint32_t count = conn->slot_count ? conn->slot_count : SLOTS_FIRST;
    while (count < channel)
        count *= 2;
    return count;
}

void cn_pipe_slots_grow(struct cn_pipe_conn *conn, uint32_t channel)
{
    uint32_t count = slots_enough(conn, channel);
    conn->slots = cn_realloc(conn->slots, count * sizeof(*conn->slots));
    conn->free = cn_realloc(conn->free, count * sizeof(*conn->free));
    for (uint32_t i = conn->slot_count; i < count; i++)
        conn->slots[i] = NULL;
    for (uint32_t i = count; i > conn->slot_count && !conn->came_in; i--)
        conn->free[conn->free_count++] = i;
    conn->slot_count = count;
}

/* --- connections ------------------------------------------------------------------------------ */

static void drop_slots(struct cn_pipe_conn *conn)
{
    for (uint32_t i = 0; i < conn->slot_count; i++) {
        if (!conn->slots[i])
            continue;
        if (conn->came_in) {
            cn_pipe_answer_drop(conn->slots[i]);
        } else { /* what was cancelled: the rest is its peer's */
            struct cn_pipe_asked *asked = conn->slots[i];
            conn->slots[i] = NULL;
            cn_pipe_ask_drop(asked);
        }
    }
}

void cn_pipe_conn_end(struct cn_pipe_conn *conn)
{
    struct cn_pipes *pipes = conn->pipes;
    struct cn_pipe_peer *peer = conn->peer;
    if (conn->over)
        return;
    bool was_up = conn->up;
    conn->over = true;
    conn->up = false;
    conn->peer = NULL;
    cn_stream_close(conn->stream, true);
    pipes->stats.broken += was_up;
    if (peer)
        cn_pipe_ask_lost(peer);
    drop_slots(conn);
    if (conn->came_in) {
        pipes->in_count--;
        if (was_up && pipes->config.hooks.gone && !pipes->freed)
            pipes->config.hooks.gone(pipes->config.hooks.data, &conn->asker);
    }
    if (!pipes->freed)
        cn_pipe_feed_starved(pipes);
}

bool cn_pipe_malformed(struct cn_pipe_conn *conn)
{
    conn->pipes->stats.malformed++;
    cn_pipe_conn_end(conn); /* T6 */
    return false;
}

static bool on_frame(void *data, const struct cn_frame *frame)
{
    struct cn_pipe_conn *conn = data;
    if (!conn->up)
        return cn_pipe_ask_welcome(conn, frame);
    if (frame->kind == CN_FRAME_BEAT)
        return (!frame->size && !frame->channel) || cn_pipe_malformed(conn);
    return conn->came_in ? cn_pipe_answer_frame(conn, frame) : cn_pipe_ask_frame(conn, frame);
}

static void on_data(struct cn_stream *stream, const uint8_t *bytes, size_t size)
{
    struct cn_pipe_conn *conn = cn_stream_owner(stream);
    if (conn->over)
        return;
    conn->pipes->stats.received_bytes += size;
    conn->heard_ms = uv_now(conn->pipes->loop);
    if (cn_frame_read(&conn->reader, bytes, size, on_frame, conn) < 0 && !conn->over)
        (void)cn_pipe_malformed(conn);
}

static void on_end(struct cn_stream *stream, int status)
{
    (void)status;
    cn_pipe_conn_end(cn_stream_owner(stream));
}

static void on_drain(struct cn_stream *stream)
{
    struct cn_pipe_conn *conn = cn_stream_owner(stream);
    if (!conn->over)
        cn_pipe_pump(conn);
}

static void on_closed(struct cn_stream *stream)
{
    struct cn_pipe_conn *conn = cn_stream_owner(stream);
    cn_list_remove(&conn->link);
    cn_frame_reader_fini(&conn->reader);
    cn_free(conn->slots);
    cn_free(conn->free);
    cn_free(conn);
}

static const struct cn_stream_callbacks callbacks = {
    .on_data = on_data, .on_end = on_end, .on_drain = on_drain, .on_closed = on_closed};

struct cn_pipe_conn *cn_pipe_conn_new(struct cn_pipes *pipes, struct cn_stream_moved *moved)
{
    struct cn_pipe_conn *conn = CN_NEW(struct cn_pipe_conn);
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
    cn_pipe_keep_time(pipes);
    return conn;
}

/* --- time ------------------------------------------------------------------------------------- */

/* T7 */
static bool is_stuck(struct cn_pipe_conn *conn, uint64_t now)
{
    const uint64_t silent_ms = conn->pipes->config.silent_ms;
    uint64_t taken = cn_stream_queued(conn->stream) ? cn_stream_acked(conn->stream) + 1 : 0;
    if (taken != conn->taken || !taken)
        conn->took_ms = now;
    conn->taken = taken;
    return now - conn->heard_ms >= silent_ms || now - conn->took_ms >= silent_ms ||
           (conn->granted && now - conn->piece_ms >= silent_ms);
}

static void tick_conn(struct cn_pipe_conn *conn, uint64_t now)
{
    const struct cn_pipes_config *config = &conn->pipes->config;
    if (!conn->up && now - conn->opened_ms >= config->greet_ms)
        cn_pipe_conn_end(conn);
    else if (conn->up && is_stuck(conn, now))
        cn_pipe_conn_end(conn);
    else if (conn->up && now - conn->sent_ms >= config->beat_ms &&
             cn_stream_queued(conn->stream) == 0)
        cn_pipe_send(conn, CN_FRAME_BEAT, 0, NULL, 0, NULL, 0);
}

static void on_time(uv_timer_t *timer)
{
    struct cn_pipes *pipes = CN_CONTAINER_OF(timer, struct cn_pipes, timer);
    uint64_t now = uv_now(pipes->loop);
    /* If it was us who stood still, what the others said meanwhile waits to be read. */
    bool away = now - pipes->ticked_ms > pipes->config.silent_ms / 2;
    pipes->ticked_ms = now;
    for (struct cn_list *node = pipes->conns.next; node != &pipes->conns;) {
        struct cn_pipe_conn *conn = CN_CONTAINER_OF(node, struct cn_pipe_conn, link);
        node = node->next; /* a connection leaves the list when the loop has closed it */
        if (away)
            conn->heard_ms = conn->took_ms = conn->piece_ms = now;
        if (!conn->over)
            tick_conn(conn, now);
    }
    cn_pipe_ask_tick(pipes, now);
    cn_pipe_feed_starved(pipes); /* other lanes may have given back */
    if (cn_list_empty(&pipes->conns) && !pipes->dials)
        uv_timer_stop(timer);
}

void cn_pipe_keep_time(struct cn_pipes *pipes)
{
    if (!uv_is_active((uv_handle_t *)&pipes->timer))
        uv_timer_start(&pipes->timer, on_time, TICK_MS, TICK_MS);
}

void cn_pipes_break(struct cn_pipes *pipes, uint64_t disk)
{
    cn_loop_assert_owner(pipes->loop);
    for (struct cn_list *node = pipes->conns.next; node != &pipes->conns;) {
        struct cn_pipe_conn *conn = CN_CONTAINER_OF(node, struct cn_pipe_conn, link);
        node = node->next; /* as above */
        if (conn->asker.disk == disk)
            cn_pipe_conn_end(conn);
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
    cn_pipe_end_if_empty(data);
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

void cn_pipe_end_if_empty(struct cn_pipes *pipes)
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
    cn_pipe_end_if_empty(pipes);
}

void cn_pipes_free(struct cn_pipes *pipes, void (*closed)(void *data), void *data)
{
    cn_loop_assert_owner(pipes->loop);
    CN_ASSERT(!pipes->freed);
    pipes->freed = true;
    pipes->closed = closed;
    pipes->closed_data = data;
    CN_LIST_FOREACH(&pipes->conns, node)
    cn_pipe_conn_end(CN_CONTAINER_OF(node, struct cn_pipe_conn, link));
    cn_pipe_ask_end(pipes);
    uv_close((uv_handle_t *)&pipes->timer, on_timer_closed);
}

void cn_pipes_stats(const struct cn_pipes *pipes, struct cn_pipes_stats *stats)
{
    *stats = pipes->stats;
    CN_LIST_FOREACH(&pipes->conns, node)
    {
        const struct cn_pipe_conn *conn = CN_CONTAINER_OF(node, struct cn_pipe_conn, link);
        stats->in_up += conn->up && conn->came_in;
        stats->out_up += conn->up && !conn->came_in;
    }
}
