/* SPDX-License-Identifier: Apache-2.0 */
/* peer/link.h - the connections of a node to the other nodes of its cluster.
 *
 * One TCP connection per pair of disks. It carries feeds of followers, copies of shards and hints;
 * nothing that is decided depends on it (that is the engine's, membership/member.h): a message may be
 * lost, late or doubled, and a link may break at any time.
 *
 *     DIALING    the name is looked up, TCP connects     (the disk with the lower number dials)
 *     GREETING   TLS, then HELLO of both sides           within greet_ms, else it is closed
 *     UP         frames both ways
 *     (closed)   the dialer tries again after retry_ms, doubled up to retry_max_ms
 *
 * L1  Authenticated both ways before a byte is believed: TLS 1.3 with a key that every node of the
 *     cluster has from the engine (net/tls.h, keyed contexts), no certificates. Who has the key is
 *     a node of the cluster. Whoever can read the engine's tables has the key.
 * L2  Then HELLO: version, cluster, the sender's disk and life, the disk it means. What does not
 *     match is closed. A disk has one link: one of a later life, or a further one of the same life,
 *     replaces it; one of an earlier life is closed.
 * L3  Frames of one link arrive in order, once, or not at all.
 * L4  Bounded: what waits to be sent has a limit per link and one for all of them, and a send
 *     beyond it is refused, never queued; what is read is given on at once (F2). Connections that
 *     have not said HELLO are at most CN_LINKS_GREETING_MAX; the oldest of them gives way.
 * L5  Each side sends something at least every beat_ms. A link on which nothing came for silent_ms
 *     is closed, and its disk is reported as silent (C10). TCP alone does not find a process that
 *     is stopped, since its kernel still acknowledges.
 * L6  A frame that is malformed, of an unknown kind or out of order closes its link and nothing
 *     else; whether its body is one of its kind, the owner of the links says. It is dialed again
 *     like any other, with the same pauses.
 * L8  A peer that is known and without a link for trouble_ms is told once, with the last reason, by
 *     both ends of it. A connection without the cluster's key is reported once for each address. So
 *     the log names a firewall or a wrong address before its consequences show.
 * L7  Hooks are called by the loop, never from inside a function of this header.
 *
 * Threads:   that of the loop.
 * Ownership: cn_links_new() allocates; cn_links_free() closes, and frees when the loop is through
 *            with it. Hooks may call everything here but free. */
#ifndef CN_PEER_LINK_H
#define CN_PEER_LINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "peer/frame.h"

struct cn_err;
struct cn_links;
struct cn_stream_moved;

#define CN_LINKS_GREETING_MAX 64
#define CN_LINKS_KEY_SIZE 32
#define CN_LINKS_STRANGERS_MAX 64 /* addresses that are told: L8 */
#define CN_LINK_ADDRESS_MAX 255   /* HOST:PORT, without its NUL */

enum cn_link_state { CN_LINK_NONE, CN_LINK_DIALING, CN_LINK_GREETING, CN_LINK_UP };

struct cn_links_hooks {
    void *data;
    void (*up)(void *data, uint64_t disk);
    /* A link that was UP is gone. `silent`: L5. */
    void (*down)(void *data, uint64_t disk, bool silent, const char *why);
    /* Not HELLO nor BEAT. False: it is malformed (L6). */
    bool (*frame)(void *data, uint64_t disk, const struct cn_frame *frame);
    /* Room again, after a send that was refused. */
    void (*room)(void *data, uint64_t disk);
    /* A connection that has come in is to be a pipe (peer/pipe.h): it becomes the callee's.
     * `body` is that of its first frame, borrowed. NULL: such are closed. */
    void (*pipe)(void *data, struct cn_stream_moved *moved, const uint8_t *body, size_t size);
    /* L8. up() ends the first. Each may be NULL. */
    void (*trouble)(void *data, uint64_t disk, const char *why);
    void (*stranger)(void *data, const char *address);
};

/* Zero in a number means the default in brackets. */
struct cn_links_config {
    int listen_fd; /* bound; becomes the links'; -1: nobody can dial us */
    uint64_t disk, life;
    char cluster[CN_FRAME_CLUSTER_SIZE + 1];
    uint8_t key[CN_LINKS_KEY_SIZE];
    size_t queue_max;       /* of a link: 8 MiB */
    size_t queue_total_max; /* of all: 64 MiB */
    unsigned beat_ms;       /* 500 */
    unsigned silent_ms;     /* 2000 */
    unsigned greet_ms;      /* 5000 */
    unsigned retry_ms;      /* 100 */
    unsigned retry_max_ms;  /* 5000 */
    unsigned trouble_ms;    /* 10000 */
    struct cn_links_hooks hooks;
};

/* Opens a socket for listen_fd; *port: the one it got, if 0 was asked for. A descriptor, or
 * negative. */
int cn_links_bind(const char *host, uint16_t port, uint16_t *bound_port, struct cn_err *err);

int cn_links_new(uv_loop_t *loop, const struct cn_links_config *config, struct cn_links **links,
                 struct cn_err *err);
/* After this no hook is called; `closed` (may be NULL) is, once. */
void cn_links_free(struct cn_links *links, void (*closed)(void *data), void *data);

/* Who is there, and where: replaces what was known. Links to others are closed, half a second later
 * so that what was sent arrives; those whose address
 * has changed are dialed there when they break. An address that is no HOST:PORT is not dialed. */
struct cn_link_peer {
    uint64_t disk;
    const char *address;
};
void cn_links_know(struct cn_links *links, const struct cn_link_peer *peers, size_t count);

enum cn_link_state cn_links_state(const struct cn_links *links, uint64_t disk);
/* Bytes of bodies that cn_links_send() would take now; 0: none, or no link is UP. */
size_t cn_links_room(const struct cn_links *links, uint64_t disk);
/* Queues a frame; its body is `body` and then `more`, both copied. False: no link is UP, or there
 * is no room (L4), and nothing was sent. */
bool cn_links_send(struct cn_links *links, uint64_t disk, enum cn_frame_kind kind, const void *body,
                   size_t body_size, const void *more, size_t more_size);

struct cn_links_stats {
    unsigned up, greeting, dialing;
    uint64_t queued_bytes, sent_bytes, received_bytes;
    uint64_t refused_sends, broken, silent, malformed;
    uint64_t strangers; /* connections without the key */
    unsigned troubled;  /* L8: peers without a link */
};
void cn_links_stats(const struct cn_links *links, struct cn_links_stats *stats);

#endif
