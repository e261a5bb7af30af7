/* SPDX-License-Identifier: Apache-2.0 */
/* net/stream.c - byte streams over TCP and TLS.
 *
 *     owner's writes ──► out ──────────────────────────────► writev
 *                         └── TLS: encrypt ──► wire ──────► writev
 *
 * Both queues are lists of segments: pooled ones that small writes are copied
 * into, and borrowed ones that point to an owner's large bytes.
 *
 * S1  Bytes enter the kernel in the order they were written.
 * S2  At most one uv_write is under way (`writing`); its segments stay at the
 *     front of the queue until its callback.
 * S3  A segment is released once, when its bytes are taken or the stream is closed.
 * S4  Callbacks run from the loop only: what an owner's call finds out (an error,
 *     an empty queue) is put on the lane's list and told by on_prepare().
 * S5  After cn_stream_close() only on_closed runs.
 * S6  Encryption stops while WIRE_HIGH bytes wait, so TLS needs no second bound. */
#include "net/stream.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/tls.h"

#define READ_SIZE (64 << 10)
#define SEGMENT_SIZE (16 << 10)
#define SPARE_SEGMENT_MAX 64
#define SPARE_STREAM_MAX 256
#define OWNED_MIN 4096          /* smaller owned writes are copied: cheaper than a segment */
#define DIRECT_MIN SEGMENT_SIZE /* larger borrowed writes are tried on the socket first */
#define WIRE_HIGH (256 << 10)
#define WRITE_PARTS_MAX 32
#define WRITE_PART_SIZE_MAX (1 << 30) /* uv_buf_init() takes an unsigned int */

struct segment {
    struct cn_list link;
    uint8_t *data;
    size_t pos, size; /* data[pos..size) is still to be sent */
    size_t capacity;  /* 0: `data` is an owner's */
    cn_stream_release_cb release;
    void *release_data;
    uint8_t bytes[];
};

struct cn_stream_lane {
    uv_loop_t *loop;
    uv_prepare_t prepare;
    uv_idle_t idle;      /* active while work is left over, so that the loop does not sleep */
    struct cn_list work; /* streams with something to do before the loop sleeps */
    struct cn_list spare_segments, spare_streams;
    size_t spare_segment_count, spare_stream_count;
    size_t stream_count;
    void (*on_gone)(void *data);
    void *gone_data;
    unsigned handle_count;
    void (*free_cb)(void *data);
    void *free_data;
    uint8_t input[READ_SIZE]; /* every read lands here; emptied before the callback returns */
    uint8_t clear[READ_SIZE]; /* what TLS made of it */
};

struct cn_stream {
    uv_tcp_t tcp;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct cn_stream_lane *lane;
    const struct cn_stream_callbacks *callbacks;
    void *owner;
    struct cn_tls *tls; /* owned; NULL: plain TCP */
    uint8_t *unread;    /* owned; comes before anything read from now on */
    size_t unread_size;
    struct cn_list work_link; /* in lane->work, or unlinked */
    struct cn_list out, wire; /* of struct segment; wire is used by TLS only */
    size_t out_size, wire_size;
    size_t write_size; /* bytes of the uv_write under way */
    uint64_t sent;     /* taken by the kernel, uv_write under way not counted */
    int error;         /* first error of the connection */
    bool reading, writing, closing;
    bool want_drain, want_turn;
    bool want_shutdown, shut_down;
    bool read_pending; /* TLS: decrypted bytes may wait although the socket is silent */
    bool ended;        /* on_end has run: nothing is read any more */
    bool error_told;   /* on_end has run with an error */
    bool secure_told;
    bool remote_known;
    uint16_t remote_port;
    char remote[46];
};

static void on_prepare(uv_prepare_t *handle);
static void on_idle(uv_idle_t *handle);

/* --- the lane --------------------------------------------------------------------------- */

struct cn_stream_lane *cn_stream_lane_new(uv_loop_t *loop, void (*on_gone)(void *data), void *data)
{
    cn_loop_assert_owner(loop);
    struct cn_stream_lane *lane = CN_NEW(struct cn_stream_lane);
    lane->loop = loop;
    lane->on_gone = on_gone;
    lane->gone_data = data;
    cn_list_init(&lane->work);
    cn_list_init(&lane->spare_segments);
    cn_list_init(&lane->spare_streams);
    CN_ASSERT(uv_prepare_init(loop, &lane->prepare) == 0);
    CN_ASSERT(uv_idle_init(loop, &lane->idle) == 0);
    lane->handle_count = 2;
    CN_ASSERT(uv_prepare_start(&lane->prepare, on_prepare) == 0);
    uv_unref((uv_handle_t *)&lane->prepare);
    uv_unref((uv_handle_t *)&lane->idle);
    return lane;
}

size_t cn_stream_lane_count(const struct cn_stream_lane *lane)
{
    return lane->stream_count;
}

static void on_lane_closed(uv_handle_t *handle)
{
    struct cn_stream_lane *lane = handle->data;
    if (--lane->handle_count > 0)
        return;
    struct cn_list *link;
    while ((link = cn_list_take_front(&lane->spare_segments)) != NULL)
        cn_free(CN_CONTAINER_OF(link, struct segment, link));
    while ((link = cn_list_take_front(&lane->spare_streams)) != NULL)
        cn_free(CN_CONTAINER_OF(link, struct cn_stream, work_link));
    void (*cb)(void *data) = lane->free_cb;
    void *data = lane->free_data;
    cn_free(lane);
    if (cb)
        cb(data);
}

void cn_stream_lane_free(struct cn_stream_lane *lane, void (*cb)(void *data), void *data)
{
    cn_loop_assert_owner(lane->loop);
    CN_ASSERT(lane->stream_count == 0);
    lane->free_cb = cb;
    lane->free_data = data;
    lane->prepare.data = lane->idle.data = lane;
    uv_close((uv_handle_t *)&lane->prepare, on_lane_closed);
    uv_close((uv_handle_t *)&lane->idle, on_lane_closed);
}

static void schedule(struct cn_stream *stream)
{
    if (cn_list_empty(&stream->work_link))
        cn_list_push_back(&stream->lane->work, &stream->work_link);
}

/* --- segments --------------------------------------------------------------------------- */

static struct segment *segment_new(struct cn_stream_lane *lane, size_t capacity)
{
    struct segment *segment;
    struct cn_list *link =
        capacity <= SEGMENT_SIZE ? cn_list_take_front(&lane->spare_segments) : NULL;
    if (link) {
        lane->spare_segment_count--;
        segment = CN_CONTAINER_OF(link, struct segment, link);
    } else {
        if (capacity < SEGMENT_SIZE)
            capacity = SEGMENT_SIZE;
        segment = cn_alloc(sizeof(*segment) + capacity);
        segment->capacity = capacity;
        segment->data = segment->bytes;
        segment->release = NULL;
    }
    segment->pos = segment->size = 0;
    return segment;
}

static void segment_free(struct cn_stream_lane *lane, struct segment *segment)
{
    cn_list_remove(&segment->link);
    if (segment->capacity == SEGMENT_SIZE && lane->spare_segment_count < SPARE_SEGMENT_MAX) {
        lane->spare_segment_count++;
        cn_list_push_front(&lane->spare_segments, &segment->link); /* warm in the cache */
        return;
    }
    if (segment->release)
        segment->release(segment->release_data);
    cn_free(segment);
}

static struct segment *first(struct cn_list *list)
{
    return CN_CONTAINER_OF(list->next, struct segment, link);
}

/* A segment at the end of `list` with room for at least `size` bytes. */
static struct segment *segment_with_room(struct cn_stream_lane *lane, struct cn_list *list,
                                         size_t size)
{
    if (!cn_list_empty(list)) {
        struct segment *last = CN_CONTAINER_OF(list->prev, struct segment, link);
        if (last->size + size <= last->capacity)
            return last;
    }
    struct segment *segment = segment_new(lane, size);
    cn_list_push_back(list, &segment->link);
    return segment;
}

/* Drops `size` sent bytes from the front of `list`. */
static void consume(struct cn_stream *stream, struct cn_list *list, size_t size)
{
    while (size > 0) {
        struct segment *segment = first(list);
        size_t left = segment->size - segment->pos;
        if (left > size) {
            segment->pos += size;
            return;
        }
        size -= left;
        segment_free(stream->lane, segment);
    }
}

static void drop_all(struct cn_stream *stream, struct cn_list *list)
{
    while (!cn_list_empty(list))
        segment_free(stream->lane, first(list));
}

/* --- writing ---------------------------------------------------------------------------- */

static void fail(struct cn_stream *stream, int status)
{
    if (stream->error == 0)
        stream->error = status;
    schedule(stream);
}

/* The list whose bytes go to the socket as they are. */
static struct cn_list *socket_list(struct cn_stream *stream)
{
    return stream->tls ? &stream->wire : &stream->out;
}

static size_t *socket_size(struct cn_stream *stream)
{
    return stream->tls ? &stream->wire_size : &stream->out_size;
}

static unsigned gather(struct cn_list *list, uv_buf_t *parts, unsigned count_max, size_t *total)
{
    unsigned count = 0;
    *total = 0;
    CN_LIST_FOREACH(list, link)
    {
        struct segment *segment = CN_CONTAINER_OF(link, struct segment, link);
        if (segment->pos == segment->size)
            continue;
        if (count == count_max)
            break;
        size_t size = segment->size - segment->pos;
        if (size > WRITE_PART_SIZE_MAX) {
            size = WRITE_PART_SIZE_MAX;
            count_max = count + 1; /* the rest of this segment comes before any other */
        }
        parts[count++] = uv_buf_init((char *)segment->data + segment->pos, (unsigned)size);
        *total += size;
    }
    return count;
}

static void on_write(uv_write_t *req, int status)
{
    struct cn_stream *stream = CN_CONTAINER_OF(req, struct cn_stream, write);
    stream->writing = false;
    if (stream->closing)
        return;
    if (status < 0) {
        fail(stream, status);
        return;
    }
    *socket_size(stream) -= stream->write_size;
    stream->sent += stream->write_size;
    consume(stream, socket_list(stream), stream->write_size);
    schedule(stream);
}

/* Moves cleartext through TLS to the wire, up to S6's bound. */
static void encrypt(struct cn_stream *stream)
{
    struct cn_tls *tls = stream->tls;
    for (;;) {
        for (;;) {
            struct segment *room = segment_with_room(stream->lane, &stream->wire, 2048);
            size_t got =
                cn_tls_take_output(tls, room->data + room->size, room->capacity - room->size);
            if (got == 0)
                break;
            room->size += got;
            stream->wire_size += got;
        }
        if (stream->wire_size >= WIRE_HIGH || stream->out_size == 0)
            break;
        struct segment *segment = first(&stream->out);
        int taken = cn_tls_write(tls, segment->data + segment->pos, segment->size - segment->pos);
        if (taken <= 0) {
            if (taken < 0)
                fail(stream, taken);
            break;
        }
        stream->out_size -= (size_t)taken;
        consume(stream, &stream->out, (size_t)taken);
    }
    struct segment *last = CN_CONTAINER_OF(stream->wire.prev, struct segment, link);
    if (last->pos == last->size)
        segment_free(stream->lane, last); /* an idle connection holds no segment */
}

/* Writes until the socket is full (then a uv_write waits for it) or nothing is left. */
static void write_out(struct cn_stream *stream)
{
    uv_buf_t parts[WRITE_PARTS_MAX];
    for (;;) {
        if (stream->writing || stream->closing || stream->error != 0)
            return;
        if (stream->tls)
            encrypt(stream);
        struct cn_list *list = socket_list(stream);
        size_t total;
        unsigned count = gather(list, parts, WRITE_PARTS_MAX, &total);
        if (count == 0)
            return;
        int rc = uv_try_write((uv_stream_t *)&stream->tcp, parts, count);
        if (rc < 0 && rc != UV_EAGAIN) {
            fail(stream, rc);
            return;
        }
        if (rc > 0) {
            *socket_size(stream) -= (size_t)rc;
            stream->sent += (size_t)rc;
            consume(stream, list, (size_t)rc);
            if ((size_t)rc == total)
                continue;
            count = gather(list, parts, WRITE_PARTS_MAX, &total);
        }
        stream->write_size = total;
        rc = uv_write(&stream->write, (uv_stream_t *)&stream->tcp, parts, count, on_write);
        if (rc < 0) {
            fail(stream, rc);
            return;
        }
        stream->writing = true;
    }
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
    /* A failure means that the peer has gone, which the read side reports. */
    (void)req;
    (void)status;
}

static void shutdown_if_drained(struct cn_stream *stream)
{
    if (!stream->want_shutdown || stream->shut_down || stream->closing || stream->error != 0 ||
        cn_stream_queued(stream) > 0)
        return;
    stream->shut_down = true;
    if (stream->tls) {
        cn_tls_shutdown(stream->tls);
        write_out(stream);
    }
    /* libuv sends FIN after its own queue, so the close_notify is before it in any case. A
     * failure to start means not connected any more: see on_shutdown. */
    (void)uv_shutdown(&stream->shutdown, (uv_stream_t *)&stream->tcp, on_shutdown);
}

int cn_stream_flush(struct cn_stream *stream)
{
    cn_loop_assert_owner(stream->tcp.loop);
    write_out(stream);
    if (stream->want_drain || stream->want_shutdown)
        schedule(stream);
    return stream->error;
}

uint8_t *cn_stream_reserve(struct cn_stream *stream, size_t size)
{
    cn_loop_assert_owner(stream->tcp.loop);
    CN_ASSERT(size <= CN_STREAM_RESERVE_MAX);
    struct segment *segment = segment_with_room(stream->lane, &stream->out, size);
    return segment->data + segment->size;
}

void cn_stream_commit(struct cn_stream *stream, size_t size)
{
    struct segment *segment = CN_CONTAINER_OF(stream->out.prev, struct segment, link);
    CN_ASSERT(segment->size + size <= segment->capacity);
    segment->size += size;
    stream->out_size += size;
    schedule(stream);
}

/* Sends the queue and a large borrowed run in one writev, without copying. Returns how much of
 * `bytes` was taken; the rest must be copied. */
static size_t write_direct(struct cn_stream *stream, const uint8_t *bytes, size_t size)
{
    uv_buf_t parts[WRITE_PARTS_MAX];
    size_t queued;
    unsigned count = gather(&stream->out, parts, WRITE_PARTS_MAX - 1, &queued);
    if (queued != stream->out_size || size > WRITE_PART_SIZE_MAX)
        return 0;
    parts[count++] = uv_buf_init((char *)bytes, (unsigned)size);
    int rc = uv_try_write((uv_stream_t *)&stream->tcp, parts, count);
    if (rc < 0) {
        if (rc != UV_EAGAIN)
            fail(stream, rc);
        return 0;
    }
    stream->sent += (size_t)rc;
    size_t of_queue = (size_t)rc < queued ? (size_t)rc : queued;
    stream->out_size -= of_queue;
    consume(stream, &stream->out, of_queue);
    return (size_t)rc - of_queue;
}

void cn_stream_write(struct cn_stream *stream, const void *bytes, size_t size)
{
    cn_loop_assert_owner(stream->tcp.loop);
    if (stream->closing || stream->error != 0 || size == 0)
        return;
    const uint8_t *from = bytes;
    if (size >= DIRECT_MIN && !stream->tls && !stream->writing) {
        size_t taken = write_direct(stream, from, size);
        from += taken;
        size -= taken;
    }
    if (size > 0) {
        struct segment *segment = segment_with_room(stream->lane, &stream->out, size);
        memcpy(segment->data + segment->size, from, size);
        segment->size += size;
        stream->out_size += size;
    }
    schedule(stream);
}

void cn_stream_write_owned(struct cn_stream *stream, const void *bytes, size_t size,
                           cn_stream_release_cb release, void *data)
{
    cn_loop_assert_owner(stream->tcp.loop);
    if (size < OWNED_MIN || stream->closing || stream->error != 0) {
        cn_stream_write(stream, bytes, size);
        release(data);
        return;
    }
    struct segment *segment = cn_alloc_zero(sizeof(*segment));
    segment->data = (uint8_t *)bytes; /* only read */
    segment->size = size;
    segment->release = release;
    segment->release_data = data;
    cn_list_push_back(&stream->out, &segment->link);
    stream->out_size += size;
    schedule(stream);
}

size_t cn_stream_queued(const struct cn_stream *stream)
{
    return stream->out_size + stream->wire_size;
}

uint64_t cn_stream_acked(const struct cn_stream *stream)
{
    uint64_t sent = stream->sent;
    if (stream->writing)
        sent +=
            stream->write_size - uv_stream_get_write_queue_size((const uv_stream_t *)&stream->tcp);
    /* The kernel may hold megabytes and call the socket full until a third of them is gone:
     * only what it no longer holds says that a slow reader reads. */
    uv_os_fd_t fd;
    int held;
    if (uv_fileno((const uv_handle_t *)&stream->tcp, &fd) == 0 && ioctl(fd, SIOCOUTQ, &held) == 0 &&
        (uint64_t)held <= sent)
        sent -= (uint64_t)held;
    return sent;
}

void cn_stream_want_drain(struct cn_stream *stream)
{
    cn_loop_assert_owner(stream->tcp.loop);
    stream->want_drain = true;
    schedule(stream);
}

void cn_stream_want_turn(struct cn_stream *stream)
{
    cn_loop_assert_owner(stream->tcp.loop);
    stream->want_turn = true;
    schedule(stream);
}

void cn_stream_shutdown(struct cn_stream *stream)
{
    cn_loop_assert_owner(stream->tcp.loop);
    stream->want_shutdown = true;
    schedule(stream);
}

/* --- reading ---------------------------------------------------------------------------- */

static void end(struct cn_stream *stream, int status)
{
    /* After a clean end of the peer's side our writes may still fail, which is news. */
    bool told = status == 0 ? stream->ended : stream->error_told;
    if (told || stream->closing)
        return;
    cn_stream_pause(stream);
    stream->ended = true;
    if (status != 0) {
        stream->error = status;
        stream->error_told = true;
        stream->want_drain = false;
    }
    stream->callbacks->on_end(stream, status);
}

/* Delivers what was put back. */
static void pump_unread(struct cn_stream *stream)
{
    uint8_t *bytes = stream->unread;
    stream->unread = NULL;
    stream->callbacks->on_data(stream, bytes, stream->unread_size);
    cn_free(bytes);
}

void cn_stream_unread(struct cn_stream *stream, const uint8_t *bytes, size_t size)
{
    cn_loop_assert_owner(stream->tcp.loop);
    CN_ASSERT(!stream->unread);
    if (size == 0)
        return;
    stream->unread = cn_memdup(bytes, size); /* at most what was read from the socket before */
    stream->unread_size = size;
    schedule(stream);
}

/* Hands on what TLS can decrypt, until it needs more or the owner pauses. */
static void pump_tls(struct cn_stream *stream)
{
    struct cn_stream_lane *lane = stream->lane;
    for (;;) {
        if (!stream->reading) {
            stream->read_pending = true;
            return;
        }
        if (stream->unread) {
            pump_unread(stream); /* put back by an owner that handed the stream on just now */
            if (stream->closing || stream->ended)
                return;
            continue;
        }
        int got = cn_tls_read(stream->tls, lane->clear, sizeof(lane->clear));
        if (!stream->secure_told && cn_tls_is_secure(stream->tls)) {
            stream->secure_told = true;
            if (stream->callbacks->on_secure)
                stream->callbacks->on_secure(stream);
        }
        if (stream->closing)
            return;
        if (got <= 0) {
            stream->read_pending = false;
            write_out(stream); /* handshake records and alerts */
            if (got < 0)
                end(stream, got == UV_EOF ? 0 : got);
            return;
        }
        stream->callbacks->on_data(stream, lane->clear, (size_t)got);
        if (stream->closing || stream->ended)
            return;
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct cn_stream *stream = CN_CONTAINER_OF(handle, struct cn_stream, tcp);
    (void)suggested;
    *buf = uv_buf_init((char *)stream->lane->input, READ_SIZE);
}

static void on_read(uv_stream_t *handle, ssize_t count, const uv_buf_t *buf)
{
    struct cn_stream *stream = CN_CONTAINER_OF(handle, struct cn_stream, tcp);
    if (stream->unread && count != 0) {
        pump_unread(stream);
        CN_ASSERT(!stream->unread);
    }
    if (count == 0 || stream->closing)
        return;
    if (count < 0) {
        end(stream, count == UV_EOF ? 0 : (int)count);
        return;
    }
    if (!stream->tls) {
        stream->callbacks->on_data(stream, (const uint8_t *)buf->base, (size_t)count);
        return;
    }
    cn_tls_feed(stream->tls, (const uint8_t *)buf->base, (size_t)count);
    pump_tls(stream);
}

void cn_stream_resume(struct cn_stream *stream)
{
    cn_loop_assert_owner(stream->tcp.loop);
    if (stream->reading || stream->closing || stream->ended)
        return;
    stream->reading = true;
    int rc = uv_read_start((uv_stream_t *)&stream->tcp, on_alloc, on_read);
    if (rc < 0)
        fail(stream, rc);
    if (stream->read_pending || stream->unread)
        schedule(stream);
}

void cn_stream_pause(struct cn_stream *stream)
{
    cn_loop_assert_owner(stream->tcp.loop);
    if (!stream->reading)
        return;
    stream->reading = false;
    (void)uv_read_stop((uv_stream_t *)&stream->tcp); /* always succeeds */
}

/* --- the lane's turn -------------------------------------------------------------------- */

/* What one stream has to do before the loop sleeps. Any callback may close it. */
static void work(struct cn_stream *stream)
{
    if (stream->closing)
        return;
    write_out(stream);
    if (stream->error != 0) {
        end(stream, stream->error);
        return;
    }
    shutdown_if_drained(stream);
    if (stream->unread && stream->reading)
        pump_unread(stream);
    if (stream->read_pending && stream->reading)
        pump_tls(stream);
    if (stream->want_turn && !stream->closing) {
        stream->want_turn = false;
        stream->callbacks->on_turn(stream);
    }
    if (stream->want_drain && !stream->closing && cn_stream_queued(stream) == 0) {
        stream->want_drain = false;
        stream->callbacks->on_drain(stream);
    }
}

static void on_prepare(uv_prepare_t *handle)
{
    struct cn_stream_lane *lane = CN_CONTAINER_OF(handle, struct cn_stream_lane, prepare);
    if (cn_list_empty(&lane->work))
        return;
    /* Callbacks may schedule again: those wait for the next round, so that a fast stream
     * cannot keep the loop from the others. */
    struct cn_list now, *link;
    cn_list_init(&now);
    cn_list_splice(&now, &lane->work);
    while ((link = cn_list_take_front(&now)) != NULL)
        work(CN_CONTAINER_OF(link, struct cn_stream, work_link));
    if (!cn_list_empty(&lane->work))
        (void)uv_idle_start(&lane->idle, on_idle); /* cannot fail */
}

static void on_idle(uv_idle_t *handle)
{
    /* Its being active was enough: the loop did not sleep, and on_prepare is next. */
    (void)uv_idle_stop(handle);
}

/* --- opening and closing ---------------------------------------------------------------- */

/* One without a connection yet. */
static struct cn_stream *stream_new(struct cn_stream_lane *lane,
                                    const struct cn_stream_callbacks *callbacks, void *owner)
{
    struct cn_list *link = cn_list_take_front(&lane->spare_streams);
    struct cn_stream *stream;
    if (link) {
        lane->spare_stream_count--;
        stream = CN_CONTAINER_OF(link, struct cn_stream, work_link);
        memset(stream, 0, sizeof(*stream));
    } else
        stream = CN_NEW(struct cn_stream);
    stream->lane = lane;
    stream->callbacks = callbacks;
    stream->owner = owner;
    cn_list_init(&stream->work_link);
    cn_list_init(&stream->out);
    cn_list_init(&stream->wire);
    CN_ASSERT(uv_tcp_init(lane->loop, &stream->tcp) == 0);
    lane->stream_count++;
    return stream;
}

static void stream_free(struct cn_stream *stream)
{
    struct cn_stream_lane *lane = stream->lane;
    drop_all(stream, &stream->out);
    drop_all(stream, &stream->wire);
    cn_tls_free(stream->tls);
    cn_free(stream->unread);
    cn_list_remove(&stream->work_link);
    lane->stream_count--;
    if (lane->spare_stream_count < SPARE_STREAM_MAX) {
        lane->spare_stream_count++;
        cn_list_push_front(&lane->spare_streams, &stream->work_link);
    } else
        cn_free(stream);
    if (lane->on_gone)
        lane->on_gone(lane->gone_data);
}

static void on_refused(uv_handle_t *handle)
{
    stream_free(CN_CONTAINER_OF(handle, struct cn_stream, tcp));
}

struct cn_stream *cn_stream_accept(struct cn_stream_lane *lane, uv_stream_t *listener,
                                   struct cn_tls_context *tls,
                                   const struct cn_stream_callbacks *callbacks, void *owner)
{
    cn_loop_assert_owner(lane->loop);
    struct cn_stream *stream = stream_new(lane, callbacks, owner);
    int rc = uv_accept(listener, (uv_stream_t *)&stream->tcp);
    if (rc == 0 && tls) {
        stream->tls = cn_tls_new(tls);
        rc = stream->tls ? 0 : CN_ENOMEM;
    }
    if (rc < 0) {
        stream->closing = true;
        uv_close((uv_handle_t *)&stream->tcp, on_refused);
        return NULL;
    }
    /* Without it a small answer waits for the peer's delayed acknowledgement; if it fails
     * (the peer has gone already) the first read says so. */
    (void)uv_tcp_nodelay(&stream->tcp, 1);
    return stream;
}

bool cn_stream_move(struct cn_stream *stream, struct cn_stream_moved *moved)
{
    cn_loop_assert_owner(stream->tcp.loop);
    CN_ASSERT(!stream->reading);
    uv_os_fd_t fd;
    write_out(stream);
    if (stream->writing || stream->closing || stream->error != 0 || cn_stream_queued(stream) > 0 ||
        uv_fileno((const uv_handle_t *)&stream->tcp, &fd) != 0)
        return false;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return false;
    *moved = (struct cn_stream_moved){copy, stream->tls, stream->unread, stream->unread_size};
    stream->tls = NULL;
    stream->unread = NULL;
    cn_stream_close(stream, false);
    return true;
}

void cn_stream_moved_drop(struct cn_stream_moved *moved)
{
    close(moved->fd);
    cn_tls_free(moved->tls);
    cn_free(moved->unread);
}

struct cn_stream *cn_stream_arrive(struct cn_stream_lane *lane, struct cn_stream_moved *moved,
                                   const struct cn_stream_callbacks *callbacks, void *owner)
{
    cn_loop_assert_owner(lane->loop);
    struct cn_stream *stream = stream_new(lane, callbacks, owner);
    if (uv_tcp_open(&stream->tcp, moved->fd) != 0) {
        cn_stream_moved_drop(moved);
        stream->closing = true;
        uv_close((uv_handle_t *)&stream->tcp, on_refused);
        return NULL;
    }
    stream->tls = moved->tls;
    stream->secure_told = moved->tls != NULL;
    stream->read_pending = moved->tls != NULL; /* it may hold what was decrypted already */
    stream->unread = moved->unread;
    stream->unread_size = moved->unread_size;
    return stream;
}

void cn_stream_set_owner(struct cn_stream *stream, const struct cn_stream_callbacks *callbacks,
                         void *owner)
{
    stream->callbacks = callbacks;
    stream->owner = owner;
    stream->want_drain = stream->want_turn = false;
}

void *cn_stream_owner(const struct cn_stream *stream)
{
    return stream->owner;
}

bool cn_stream_is_tls(const struct cn_stream *stream)
{
    return stream->tls != NULL;
}

static void remote_find(struct cn_stream *stream)
{
    struct sockaddr_storage address;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;
    int size = sizeof(address);
    stream->remote_known = true;
    if (uv_tcp_getpeername(&stream->tcp, (struct sockaddr *)&address, &size) != 0)
        return; /* it has gone: the text stays empty */
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6)
        return; /* a socket of this machine has no address */
    char *text = stream->remote;
    size_t text_size = sizeof(stream->remote);
    /* The buffer holds the longest address, so none of these fails. */
    if (address.ss_family == AF_INET)
        (void)uv_ip4_name(v4, text, text_size);
    else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        (void)uv_inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text, text_size);
    else
        (void)uv_ip6_name(v6, text, text_size);
    stream->remote_port = ntohs(address.ss_family == AF_INET ? v4->sin_port : v6->sin6_port);
}

const char *cn_stream_remote(struct cn_stream *stream, uint16_t *port)
{
    if (!stream->remote_known)
        remote_find(stream);
    if (port)
        *port = stream->remote_port;
    return stream->remote;
}

static void on_closed(uv_handle_t *handle)
{
    struct cn_stream *stream = CN_CONTAINER_OF(handle, struct cn_stream, tcp);
    stream->callbacks->on_closed(stream);
    stream_free(stream);
}

void cn_stream_close(struct cn_stream *stream, bool reset)
{
    cn_loop_assert_owner(stream->tcp.loop);
    if (stream->closing)
        return;
    cn_stream_pause(stream);
    if (!reset && stream->tls && !stream->shut_down && cn_stream_queued(stream) == 0) {
        cn_tls_shutdown(stream->tls);
        write_out(stream); /* what the socket does not take now is not worth waiting for */
    }
    stream->closing = true;
    /* A reset is not possible once a shutdown is under way; the peer saw FIN then anyway. */
    if (!reset || uv_tcp_close_reset(&stream->tcp, on_closed) != 0)
        uv_close((uv_handle_t *)&stream->tcp, on_closed);
}

bool cn_stream_closing(const struct cn_stream *stream)
{
    return stream->closing;
}
