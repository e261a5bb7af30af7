/* SPDX-License-Identifier: Apache-2.0 */
/* peer/dial.h - a TCP connection to HOST:PORT, with the client's side of TLS by a key.
 *
 * The name is looked up (on libuv's threads) and one of its addresses is tried. `turn` says which
 * one, so that a caller that tries again tries the next. The caller limits the time it may take.
 *
 * A1  `done` runs once, from the loop, unless the dial was dropped: with a connection for
 *     cn_stream_arrive(), or NULL and why there is none, an error of libuv.
 * A2  `gone` runs once, last, in every case: nothing of the dial is left, and `data` may go.
 *
 * Threads:   that of the loop.
 * Ownership: the dial frees itself; who was told `done` or has dropped it forgets it. */
#ifndef CN_PEER_DIAL_H
#define CN_PEER_DIAL_H
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct cn_dial;
struct cn_stream_moved;
struct cn_tls_context;

struct cn_dial_hooks {
    void *data;
    void (*done)(void *data, struct cn_stream_moved *moved, int status);
    void (*gone)(void *data);
};

/* `tls` is borrowed until it has gone. NULL: `address` is no HOST:PORT (an IPv6 address has
 * brackets), and no hook is called. */
struct cn_dial *cn_dial_new(uv_loop_t *loop, const char *address, unsigned turn,
                            struct cn_tls_context *tls, const struct cn_dial_hooks *hooks);
void cn_dial_drop(struct cn_dial *dial);

#endif
