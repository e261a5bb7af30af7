/* SPDX-License-Identifier: Apache-2.0 */
/* net/stream.h - a connected byte stream, over TCP or over TLS, with a bounded queue.
 *
 * Writes never block and cost no system call of their own: bytes gather in the
 * queue and leave in one writev when cn_stream_flush() is called or, at the
 * latest, before the loop sleeps. Reading is pushed to the owner through the
 * callbacks; cn_stream_pause() holds the peer back.
 *
 * The HTTP server uses it for every connection; an upgraded connection is
 * handed on as a stream, and its new owner gives it new callbacks.
 *
 * Threads:   the lane that owns the loop.
 * Ownership: a stream belongs to whoever its callbacks point to; it is released
 *            after `on_closed`, which is the last callback and always runs once. */
#ifndef CN_NET_STREAM_H
#define CN_NET_STREAM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"

struct cn_stream;
struct cn_stream_lane;
struct cn_tls_context;

/* None of these runs inside a call of the owner on the same stream. */
struct cn_stream_callbacks {
    /* Bytes from the peer (decrypted), valid until the callback returns. */
    void (*on_data)(struct cn_stream *stream, const uint8_t *bytes, size_t size);
    /* The peer is gone: 0 it ended its side, negative an error (UV_..., CN_EPROTOCOL of TLS).
     * Nothing more is read or, after an error, written; an error may follow a clean end. The
     * owner closes the stream. */
    void (*on_end)(struct cn_stream *stream, int status);
    /* Asked for by cn_stream_want_drain(): the queue is empty. May be NULL. */
    void (*on_drain)(struct cn_stream *stream);
    /* Asked for by cn_stream_want_turn(): the owner's call has returned to the loop. May be NULL.
     */
    void (*on_turn)(struct cn_stream *stream);
    /* TLS: the handshake is complete (never called for plain TCP). May be NULL. */
    void (*on_secure)(struct cn_stream *stream);
    /* After cn_stream_close(). The stream's memory is released when this returns. */
    void (*on_closed)(struct cn_stream *stream);
};

/* Gives an owned run of bytes back; called exactly once. */
typedef void (*cn_stream_release_cb)(void *data);

/* The part of a lane that its streams share: read buffers, spare segments, the flush. */
/* `on_gone` (or NULL) runs after each stream has been released. */
struct cn_stream_lane *cn_stream_lane_new(uv_loop_t *loop, void (*on_gone)(void *data), void *data);
size_t cn_stream_lane_count(const struct cn_stream_lane *lane); /* streams not yet released */
/* All its streams must be closed; calls back when its handles are. `cb` may be NULL. */
void cn_stream_lane_free(struct cn_stream_lane *lane, void (*cb)(void *data), void *data);

/* Accepts a connection from `listener`. `tls` (or NULL) is borrowed for the call.
 * NULL if the kernel had none after all. Reading starts paused. */
struct cn_stream *cn_stream_accept(struct cn_stream_lane *lane, uv_stream_t *listener,
                                   struct cn_tls_context *tls,
                                   const struct cn_stream_callbacks *callbacks, void *owner);
void cn_stream_set_owner(struct cn_stream *stream, const struct cn_stream_callbacks *callbacks,
                         void *owner);
void *cn_stream_owner(const struct cn_stream *stream);
bool cn_stream_is_tls(const struct cn_stream *stream);
/* The peer's address as text, "" if unknown, and its port. Borrowed from the stream. */
const char *cn_stream_remote(struct cn_stream *stream, uint16_t *port);

void cn_stream_resume(struct cn_stream *stream); /* start or go on reading */
void cn_stream_pause(struct cn_stream *stream);
/* Puts a copy of `bytes` back in front of what is read next. Once per stream. */
void cn_stream_unread(struct cn_stream *stream, const uint8_t *bytes, size_t size);

/* Queues a copy. */
void cn_stream_write(struct cn_stream *stream, const void *bytes, size_t size);
/* Room for `size` (at most CN_STREAM_RESERVE_MAX) bytes at the end of the queue, to be
 * filled at once and then counted in by cn_stream_commit(). */
#define CN_STREAM_RESERVE_MAX 4096
uint8_t *cn_stream_reserve(struct cn_stream *stream, size_t size);
void cn_stream_commit(struct cn_stream *stream, size_t size);
/* Queues `bytes` without copying large ones; `release(data)` gives them back, perhaps at once. */
void cn_stream_write_owned(struct cn_stream *stream, const void *bytes, size_t size,
                           cn_stream_release_cb release, void *data);
/* Bytes queued and not yet taken by the kernel. */
size_t cn_stream_queued(const struct cn_stream *stream);
/* Bytes that have reached the peer's machine since the stream was opened; for stall detection. */
uint64_t cn_stream_acked(const struct cn_stream *stream);
/* Calls on_drain once, when the queue is empty (at the next turn if it is already). */
void cn_stream_want_drain(struct cn_stream *stream);
/* Calls on_turn once, before the loop sleeps. */
void cn_stream_want_turn(struct cn_stream *stream);
/* Hands the queue to the kernel now, as far as it takes it. 0, or the error of the
 * connection, which on_end also reports, later. */
int cn_stream_flush(struct cn_stream *stream);

/* A connection on its way from one lane to another; whoever holds it hands it to
 * cn_stream_arrive() or cn_stream_moved_drop(). */
struct cn_stream_moved {
    int fd;
    struct cn_tls *tls; /* owned; NULL: plain TCP */
    uint8_t *unread;    /* owned; read ahead, may be NULL */
    size_t unread_size;
};
/* Takes the connection out of its lane: sends the queue, then closes the stream (on_closed follows)
 * but not the connection. Reading must be paused. False: the kernel did not take the whole queue,
 * or the connection has failed; nothing has changed. */
bool cn_stream_move(struct cn_stream *stream, struct cn_stream_moved *moved);
/* Goes on with it, on the lane it has come to. Reading starts paused. NULL: it could not be opened
 * here and is gone. */
struct cn_stream *cn_stream_arrive(struct cn_stream_lane *lane, struct cn_stream_moved *moved,
                                   const struct cn_stream_callbacks *callbacks, void *owner);
void cn_stream_moved_drop(struct cn_stream_moved *moved);

/* Ends our side (TLS close_notify, FIN) once the queue is out; reading goes on. */
void cn_stream_shutdown(struct cn_stream *stream);
/* Drops the queue and closes: with FIN, or, if `reset`, with RST so that the peer cannot
 * take a cut answer for a whole one. Harmless when already closing. */
void cn_stream_close(struct cn_stream *stream, bool reset);
bool cn_stream_closing(const struct cn_stream *stream);

#endif
