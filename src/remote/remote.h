/* SPDX-License-Identifier: Apache-2.0 */
/* remote/remote.h - calls from a node to objects and workers of other nodes.
 *
 * A call goes to the lane of this node that would have the object. If its shard is not here, what
 * this room puts on the lane's desk takes it (the carrier of P8 of object/envelope.h): the call is
 * AWAY, its bytes go to the owner by the map, and it comes back with what the owner says.
 *
 *     sender's lane      lane that would have it          the owner's lane
 *     cn_call_send() ──► AWAY (object/envelope.h)
 *                          │ a way (of the shard)
 *                          ├─ send ── pipe ─────────────► taken in, if the shard is here
 *     on_done()    ◄───────┤ DONE, FAILED  ◄───────────── answered, by the object's output gate
 *                          │ REFUSED, never sent ──► it is held, and tried again
 *                          └ the time is over ──► it fails, as retryable
 *
 * A *way* is what a lane knows of a shard that others have: calls that were sent and are not
 * answered, and calls that are held, both in the order in which they came.
 *
 * O1  At most once. A call is sent again only if it is known that nothing has happened: it was
 *     never sent whole, or was REFUSED before it was delivered. One whose pipe broke after that
 *     fails with "Network connection lost."; whether it has happened is not known, and its caller
 *     decides (as on the platform; it is retryable).
 * O2  A call is held for wait_ms at most, counted from when it came, then fails as retryable and
 *     remote; nothing has happened. Held are at most held_max calls of a lane and held_bytes_max
 *     bytes of arguments; beyond that calls fail as overloaded. A way that is refused again and
 *     again ends with its calls' time.
 * O3  Order: calls of a lane to one object arrive in the order in which they came to the lane.
 *     While calls of a way are held, those that come later are held behind them. Once one was
 *     REFUSED, the owner refuses whatever came by the same pipe for that shard with the same or an
 *     earlier *turn*. In the next turn a call is sent when all that was on its way to its object
 *     has come back, or after the second of O4.
 * O4  Order when the owner changes: while calls to an object have not come back from one node,
 *     those that come later are not sent to another, nor taken in here, for a second: the old owner
 *     has let go, so they come soon, or it is out of reach. After that they are not tried again,
 *     should they come back. While something is held or sent, the lane takes no event of the shard
 *     by itself (cn_lane_shard_takes()), so held calls go first. Those of other nodes, whose order
 *     with ours is nobody's, are taken in all the same.
 * O5  Who is not the owner refuses, and never passes on: one hop. A stale map costs one refusal,
 *     which names the owner; it is asked at once.
 * O6  What another node asks is input: it is checked (remote/question.h, service/wire.h), and
 *     delivered with the bounds that every call has. Depth and trace of a call travel with it.
 * O7  When a lane ends, what it has held and sent away fails as "the server is stopping".
 * O8  A caller that disappears cancels no call, as on one node: calls that were sent run once, and
 *     their answers are dropped. What ends with it are the streams that it reads and writes, its
 *     signals, and what it held (remote/leases.h). So CANCEL of pipes is not for calls.
 *
 * What a worker has lent ("w<lane>:<serial>@<disk>.<life>", object/lent.h) is called by its address
 * (remote/stubs.h): never held, never tried again. It belongs to one life of a node; when that is
 * over, calls to it fail. How long what was lent to other nodes lasts is in remote/leases.h.
 *
 * Events of scripts (worker/background.h, B2) go to any lane of a node: never held, never tried
 * again by us. Whoever is not ready, or does not have the script, refuses them.
 *
 * Threads:   cn_remote_new(), _free() and cn_remote_pipe(), _silent(), _sessions() from any thread;
 *            the rest on the lane.
 * Ownership: the caller has the remote, and frees it when all lanes have ended; a lane's part
 *            belongs to the lane. */
#ifndef CN_REMOTE_REMOTE_H
#define CN_REMOTE_REMOTE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peer/pipe.h"

struct cn_call;
struct cn_err;
struct cn_host_session;
struct cn_object_lane;
struct cn_remote;
struct cn_stream_moved;

/* Who answers for a shard. */
struct cn_remote_owner {
    uint64_t disk; /* 0: nobody is known to */
    bool here;
};

struct cn_remote_options {
    uint64_t disk, life;
    char cluster[CN_FRAME_CLUSTER_SIZE + 1];
    uint8_t key[CN_LINKS_KEY_SIZE];
    unsigned lane_count;
    unsigned wait_ms;      /* O2; 0: 5000 */
    unsigned held_max;     /* of a lane; 0: 10000 */
    size_t held_bytes_max; /* 0: 64 MiB */
    void *data;            /* for the following, which are called on lanes and do not block */
    struct cn_remote_owner (*owner)(void *data, unsigned shard);
    bool (*address)(void *data, uint64_t disk, char address[CN_LINK_ADDRESS_MAX + 1]);
    /* Whether this node takes work of others that needs no object of it. NULL: yes. */
    bool (*is_ready)(void *data);
    /* Ends a call that was held for too long: cn_call_turn_away(). */
    void (*give_up)(void *data, struct cn_call *call);
};

int cn_remote_new(const struct cn_remote_options *options, struct cn_remote **remote,
                  struct cn_err *err);
void cn_remote_free(struct cn_remote *remote); /* NULL is fine */

/* --- lanes ----------------------------------------------------------------------------------- */

/* When the lane has started, before anything comes to it. The desk has a carrier from now on. */
void cn_remote_lane_open(struct cn_remote *remote, struct cn_object_lane *lane);
/* O7: when nothing new is begun, before its objects go. The loop runs on until it has closed. */
void cn_remote_lane_close(struct cn_object_lane *lane);
/* When the loop has ended. */
void cn_remote_lane_free(struct cn_object_lane *lane);

/* --- from the host's thread ------------------------------------------------------------------ */

/* A pipe has come in (shard/host.h). */
void cn_remote_pipe(struct cn_remote *remote, struct cn_stream_moved *moved, const uint8_t *body,
                    size_t size);
/* The node of the disk is silent (C10): what waits for it fails, and is looked up again. */
void cn_remote_silent(struct cn_remote *remote, uint64_t disk);

/* Which sessions are live: cn_host_config.sessions. */
void cn_remote_sessions(struct cn_remote *remote, uint64_t own,
                        const struct cn_host_session *sessions, unsigned count);

/* What was counted so far, of all lanes. Any thread. */
struct cn_remote_counts {
    uint64_t sent, served; /* calls to objects of other nodes, and of theirs to ours */
    uint64_t refused;      /* of those that were sent: not carried out, tried again */
    uint64_t lost;         /* O1 */
    uint64_t given_up;     /* O2 */
    uint64_t held;         /* now */
    uint64_t leases;       /* remote/leases.h: rows, now */
    uint64_t let_go;       /* S3: what sessions had that are over */
};
void cn_remote_count(struct cn_remote *remote, struct cn_remote_counts *counts);

#endif
