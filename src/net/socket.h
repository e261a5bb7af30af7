/* SPDX-License-Identifier: Apache-2.0 */
/* net/socket.h - outgoing TCP connections, plain, over TLS, or upgraded to it later.
 *
 * What `connect()` of cloudflare:sockets stands on; WebSocket clients use it too.
 *
 *     cn_socket_connect() --> on_open --> on_data*, on_drain* --> on_end --> on_closed
 *
 * S1  Callbacks run from the loop, never from inside a function of this header.
 * S2  on_closed is the last callback and comes exactly once for every socket that
 *     cn_socket_connect() returned. The socket is valid until it returns.
 * S3  After cn_socket_close() only on_closed follows.
 * S4  While paused no on_data comes and the peer is held back; at most one read
 *     buffer (64 KiB) of decrypted bytes waits.
 * S5  Bytes of a TLS socket are delivered, and accepted ones sent, only after the
 *     peer's certificate was verified for the host name.
 *
 * Threads:   the loop's.
 * Ownership: the lane's struct cn_sockets owns every socket until its on_closed. */
#ifndef CN_NET_SOCKET_H
#define CN_NET_SOCKET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"

struct sockaddr;
struct cn_sockets; /* the outgoing sockets of one lane */
struct cn_socket;
struct cn_trust;

/* Zero in a number means the default in brackets. */
struct cn_sockets_options {
    struct cn_trust *trust;      /* borrowed; not NULL */
    unsigned count_max;          /* sockets at a time [1024] */
    unsigned connect_timeout_ms; /* name, TCP and TLS together; also an upgrade [30 s] */
    size_t queue_max;            /* bytes accepted and not yet sent, per socket [1 MiB] */
    /* May this address be connected to? NULL: every address may. */
    bool (*address_allowed)(const struct sockaddr *address, void *data);
    void *address_data;
};

enum cn_socket_secure {
    CN_SOCKET_PLAIN,
    CN_SOCKET_TLS,      /* from the start */
    CN_SOCKET_STARTTLS, /* plain until cn_socket_start_tls() */
};

struct cn_socket_params {
    const char *host; /* a name or an address; an IPv6 address may have its brackets */
    uint16_t port;
    enum cn_socket_secure secure;
    const char *alpn; /* the one protocol to offer, or NULL */
    /* false: when the peer ends its side ours is ended too, after what is queued. */
    bool allow_half_open;
};

struct cn_socket_callbacks {
    /* Connected and, with TLS, verified; again after an upgrade. */
    void (*on_open)(struct cn_socket *socket, void *data);
    void (*on_data)(struct cn_socket *socket, const void *bytes, size_t size, void *data);
    /* The queue is empty again after a cn_socket_write() that returned 1. */
    void (*on_drain)(struct cn_socket *socket, void *data);
    /* The peer will send no more. */
    void (*on_end)(struct cn_socket *socket, void *data);
    /* NULL: closed by us, or ended by both sides. Codes: UV_EAI_* (name), UV_E* (network),
     * CN_ETLS, CN_ETIMEOUT, CN_EDENIED, CN_EPROTOCOL, CN_ECLOSED (the lane is stopping). */
    void (*on_closed)(struct cn_socket *socket, const struct cn_err *error, void *data);
};

struct cn_sockets *cn_sockets_new(uv_loop_t *loop, const struct cn_sockets_options *options);
/* Closes every socket with CN_ECLOSED, frees, then calls back. */
void cn_sockets_close(struct cn_sockets *sockets, void (*cb)(void *data), void *data);
/* W3 of base/loop.h */
void cn_sockets_check(const struct cn_sockets *sockets);
unsigned cn_sockets_count(const struct cn_sockets *sockets);

/* NULL on failure: CN_EINVALID (no host, port 0), CN_EOVERLOADED (count_max). */
struct cn_socket *cn_socket_connect(struct cn_sockets *sockets,
                                    const struct cn_socket_params *params,
                                    const struct cn_socket_callbacks *callbacks, void *data,
                                    struct cn_err *err);
/* From the next callback on. */
void cn_socket_set_callbacks(struct cn_socket *socket, const struct cn_socket_callbacks *callbacks,
                             void *data);
/* Turns an open STARTTLS socket into a TLS one. `server_name` NULL: the host connected to.
 * What is queued is sent before it. CN_EINVALID: not such a socket, not open, or done already. */
int cn_socket_start_tls(struct cn_socket *socket, const char *server_name, struct cn_err *err);

void cn_socket_pause(struct cn_socket *socket);
void cn_socket_resume(struct cn_socket *socket);

/* Takes a copy. 0: sent; 1: queued (also before on_open), on_drain will follow. CN_EOVERLOADED:
 * queue_max bytes wait already, nothing was taken. CN_ECLOSED: closed, or our side was ended. */
int cn_socket_write(struct cn_socket *socket, const void *bytes, size_t size, struct cn_err *err);
void cn_socket_end(struct cn_socket *socket);   /* ends our side after what is queued */
void cn_socket_close(struct cn_socket *socket); /* both sides at once; drops the queue */

/* Addresses as "127.0.0.1:80" or "[::1]:80"; "" before on_open. Borrowed. */
const char *cn_socket_local(const struct cn_socket *socket);
const char *cn_socket_remote(const struct cn_socket *socket);
/* The protocol agreed upon, "" if none. Borrowed. */
const char *cn_socket_alpn(const struct cn_socket *socket);

#endif
