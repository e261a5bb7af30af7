/* SPDX-License-Identifier: Apache-2.0 */
/* shard/host.h - carries out what the member of a node decides.
 *
 * A member (membership/member.h) only decides. A host is the thread that acts: it owns the member,
 * the driver of the engine (membership/engine_pg.h) and the links to other nodes (peer/link.h). It
 * turns the member's actions into calls of two tables that it is given: a *disk* (the stores of
 * shards on this machine, store/replica.h) and a *front* (what serves from them: the lanes). Tests
 * give it stores that are lists. Terms: docs/understand/glossary.md.
 *
 *      lanes                      the host's thread                       its workers
 *      ─────                      ─────────────────                       ───────────
 *      append ─ appended() ─────► member ─► APPEND (disk.records)
 *      may leave? ◄─ lease, gate  answer ─► disk.settled() ─► listeners
 *                                        └► feeds ─► links
 *                                 acts ──► steps of the shard, in order ─► disk.create, write,
 *      front.serve, stop, ... ◄───────────                                 open, close, ...
 *
 * H1  Each shard has a queue of steps, and does one at a time, in the order in which the member
 *     wanted them. A step is a call of the disk that may block, and then runs on a worker, or a
 *     call of the front, which answers later. The host's own thread never waits for either, nor for
 *     a file, a lane or a lock that is held for longer than a few instructions: it has a beat to
 *     send every half second.
 * H2  The gate of a shard is shut, for all lanes at once, before the host does anything else about
 *     a CLOSE; it is opened when its store is open, and shut again between `stopped` and RESUME
 *     (C7). What the member sends to the engine afterwards, and what others may do after that, is
 *     later than everything that passed the gate.
 * H3  disk.settled(shard, lsn) is called with LSNs that the engine has, rising, between the end of
 *     disk.open() and the shard's CLOSE, and never elsewhere (C6, K1).
 * H4  Bodies of APPEND come from the store's window of what is not settled, byte for byte the same
 *     as often as they are asked for; the window keeps them until settled(). A batch is sent again
 *     with the same bytes after a link broke (C1).
 * H5  Followers are fed from that same window, at the moment at which the engine is known to have
 *     it and before it is settled here (C6). What does not fit a frame or the link's queue is not
 *     fed: the follower finds the gap and reads it from the engine. So a slow follower costs its
 *     owner a bounded queue, and nothing waits for it.
 * H6  What a shard has been given and its worker has not written yet is bounded for each shard and
 *     in total. Beyond it feeds are dropped, and tails are not asked for (cn_member_busy()).
 * H7  A disk that fails (a write, a sync, a file that should be there) or is full ends the
 *     membership at the first failure, whoever met it (a step of the host, a checkpoint, pages that
 *     are written back, a segment that is to come): a node that cannot write is no owner. Gates
 *     shut, the session is given back so that others take over at once, and failed() is told. What
 *     is on such a disk is not trusted to be repaired by trying again. The engine and the other
 *     replicas have all of it. (A body of R2 that does not fit fails its put, and nothing else.)
 * H8  Leaving hands over what can be handed over (C7), ends the session, closes every store, and
 *     then tells left().
 * H9  Steps of a shard that is to be opened go before the steps of other shards, because calls wait
 *     for it. So a take-over or a move waits for the steps that run, and not for everything that
 *     replicas have to write.
 * H10 What the member has seen of the engine (C15) is written by a thread of its own: the newest
 *     counts, the member is told when it is on the disk, and the last is written before left() is
 *     told.
 *
 * The lease, as lanes ask it (C5). `cn_host_may_leave(shard)` is two atomic loads and the reading
 * of CLOCK_BOOTTIME; it takes no lock and does not depend on the host's thread: if that is slow or
 * stuck, the lease runs out by itself. It is asked after durability was seen (K4: store/sink.h).
 *
 *   What leaves late. A process may be stopped between asking and sending, and send when it wakes,
 *   after others have taken over. Nothing bounds how late that is, as nothing bounds a network; and
 *   nothing needs to. When the question was asked the lease was valid and the shard was ours, so
 *   nobody else could have changed it yet, and what the answer tells was the state then. Whoever
 *   waits for the answer had asked before, so the answer is of a moment between question and
 *   answer, which is all that is promised. A write that it acknowledges was durable. What is
 *   different is anything *decided* after the wake-up: that asks again, with a clock that counted
 *   the sleep, and is refused. So one rule for lanes: read the state first, ask last, and let go
 *   what was asked about as a whole, never a part of it and more later without asking again.
 *   Messages that nobody asked for (WebSockets) may reach a client after it has heard newer ones by
 *   another connection from the new owner; each connection is still in order, and the late one
 *   ends, since its shard is closed when the process wakes.
 *
 * When the engine is away: after lease_ms nothing leaves and, by cn_host_may_take(), no event is
 * taken. What is appended until then waits in the store's window, which is bounded (store/log.h);
 * the append beyond it is refused with CN_EOVERLOADED, for the caller to try again. If the session
 * turns out to be alive, all of it is appended and leaves; if it was fenced, it never was (K2).
 *
 * Threads:   cn_host_new(), _start() and _free() by the maker; the rest says. The tables' functions
 *            say on which thread they are called.
 * Ownership: the host has its thread, loop, member, driver and links. The tables are borrowed and
 *            outlive it. */
#ifndef CN_SHARD_HOST_H
#define CN_SHARD_HOST_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "membership/engine_pg.h"
#include "membership/member.h"

struct cn_buf;
struct cn_frame;
struct cn_histogram;
struct cn_host;
struct cn_stream_moved;

/* Gives a piece of a copy on; blocks while there is no room. Negative: the copy is given up. */
typedef int (*cn_host_piece)(void *copy, const void *bytes, size_t size);

/* The shards' stores on this machine. Records are whole ones (store/record.h), as the store's log
 * has them, one after the other; this layer looks into none of them.
 *
 * Those marked [worker] may block; for one shard one of them runs at a time. Negative: H7. Those
 * marked [host] run on the host's thread and must not block. */
struct cn_host_disk {
    void *data;
    /* [worker] An empty store; whatever was there goes. */
    int (*create)(void *data, uint32_t shard, struct cn_err *err);
    /* [worker] The log of a store that is not open grows by these; those it has are passed over. */
    int (*write)(void *data, uint32_t shard, const void *records, size_t size, struct cn_err *err);
    /* [worker] From now on it takes commits, the first is `lsn` + 1, and calls cn_host_appended().
     */
    int (*open)(void *data, uint32_t shard, uint64_t lsn, struct cn_err *err);
    /* [worker] The front has let go of it. It has what was settled, and nothing else. */
    int (*close)(void *data, uint32_t shard, struct cn_err *err);
    /* [worker] It is of no use here: set aside for a while. A copy that is coming in goes. */
    int (*discard)(void *data, uint32_t shard, struct cn_err *err);
    /* [worker] What a store that is not open has survives a loss of power. */
    int (*sync)(void *data, uint32_t shard, struct cn_err *err);

    /* [host] The last LSN appended. From now on cn_host_appended() is called again for a later. */
    uint64_t (*appended)(void *data, uint32_t shard);
    /* [host] Appends records `from` to `to` of the window (H4) to `records`, as many as `size_max`
     * bytes take, but at least the first. The last LSN that it gave; 0: they are not there. */
    uint64_t (*records)(void *data, uint32_t shard, uint64_t from, uint64_t to, size_t size_max,
                        struct cn_buf *records);
    /* [host] The engine has all up to there: it is durable. H3. Negative: H7. It may write to a
     * file and not sync it: that is as quick as memory, unless the disk hangs. Then the beat stops
     * with it, leases run out and others take over, which is what a hanging disk should lead to. */
    int (*settled)(void *data, uint32_t shard, uint64_t lsn, struct cn_err *err);
    /* [host] The shard is lost: what is not settled never will be. close() follows. */
    void (*refuse)(void *data, uint32_t shard, const char *reason);

    /* [a thread of its own] Writes all that is durable to `piece`, while the store is in use; ends
     * when that fails. close() and discard() wait for it. */
    int (*copy_out)(void *data, uint32_t shard, cn_host_piece piece, void *copy,
                    struct cn_err *err);
    /* [worker] A copy comes in: whatever was there goes; */
    int (*copy_begin)(void *data, uint32_t shard, struct cn_err *err);
    /* [worker] its bytes; */
    int (*copy_take)(void *data, uint32_t shard, const void *bytes, size_t size,
                     struct cn_err *err);
    /* [worker] and its end: checked, synced, in its place; *lsn is how far it goes. CN_EINVALID or
     * CN_ECORRUPT of these two: nothing of it is left, it is asked for again. */
    int (*copy_end)(void *data, uint32_t shard, uint64_t *lsn, struct cn_err *err);

    /* [a thread of its own] H10: durably, in place of what was remembered before. */
    int (*remember)(void *data, const struct cn_engine_seen *seen, struct cn_err *err);
    /* [the same thread] Every tidy_ms, however busy it is: what was set aside long ago goes. */
    void (*tidy)(void *data);
};

/* Who serves from the stores. serve() follows a disk.open(), and close() a serve(); stop() and
 * resume() come between the two. Those marked [host] must not block. */
struct cn_host_front {
    void *data;
    /* [worker] Take events of the shard, until close(). Negative: H7. */
    int (*serve)(void *data, uint32_t shard, struct cn_err *err);
    /* [host] Take none, let what runs end and leave; then cn_host_stopped() with this ticket. */
    void (*stop)(void *data, uint32_t shard, uint64_t ticket);
    /* [host] */
    void (*resume)(void *data, uint32_t shard);
    /* [host] At once: nothing of it leaves any more, what waits fails; let go of the store, then
     * cn_host_shut(). */
    void (*close)(void *data, uint32_t shard);
    /* [host] What may leave or be taken has become more: ask again. */
    void (*wake)(void *data);
};

#define CN_HOST_LIFE_JOINS (1u << 20)

/* A session that is live, as the engine told. */
struct cn_host_session {
    uint64_t id, disk;
};

/* What lies beside the stores (shard/bodies.h). On the host's thread; must not block. */
struct cn_host_beside {
    void *data;
    /* False: it is malformed (peer/link.h, L6). */
    bool (*frame)(void *data, uint64_t disk, const struct cn_frame *frame);
    void (*link)(void *data, uint64_t disk, bool up);
};

struct cn_host_config {
    const char *conninfo; /* of the engine; copied */
    const char *node;     /* its name: letters, digits, '-', '_', '.'; at most 63; copied */
    const char *address;  /* HOST:PORT where other nodes reach it; copied */
    int listen_fd;        /* from cn_links_bind(); becomes the host's */
    const char *cluster;  /* G4: the id that this disk belongs to; NULL: none yet; copied */
    uint64_t disk;        /* C8 */
    uint64_t life; /* higher than any before, by CN_HOST_LIFE_JOINS at the least: a join each */
    struct cn_engine_seen seen;    /* that was remembered last; 0: nothing */
    unsigned shard_count;          /* of a cluster that this node makes; 0: 256 */
    unsigned replicas;             /* the same; 0: 2 */
    unsigned allow_flaws;          /* C11 */
    bool verified;                 /* C5 */
    bool shut;                     /* C12: until cn_host_open() */
    unsigned workers;              /* threads; 0: 2 */
    unsigned tidy_ms;              /* between calls of tidy(); 0: a minute */
    uint64_t queue_max;            /* H6, bytes of a shard; 0: 16 MiB */
    uint64_t queue_total;          /* and in total; 0: 128 MiB */
    struct cn_member_config times; /* its *_ms fields alone; 0: the member's own */
    const struct cn_host_disk *disk_hands;
    const struct cn_host_front *front;
    const struct cn_host_beside *beside; /* NULL: there is nothing */
    /* Told on the host's thread. */
    void *data;
    /* The engine's cluster, once, before anything is asked of the tables: its id is to be kept with
     * the disk (G4). Shards that this disk has are told by cn_host_found() from inside. Negative:
     * as failed(). */
    int (*joined)(void *data, struct cn_host *host, const struct cn_engine_pg_info *info,
                  struct cn_err *err);
    /* H7, or the engine has gone back (CN_EOLDER, C15), or refuses this disk. Nothing is served any
     * more; left() follows. */
    void (*failed)(void *data, const struct cn_err *err);
    /* The session is over and every store is closed. Once; nothing is called after it. */
    void (*left)(void *data);
    /* A pipe has come in (peer/link.h); becomes the callee's. NULL: they are closed. */
    void (*pipe)(void *data, struct cn_stream_moved *moved, const uint8_t *body, size_t size);
    /* The node of this disk is silent: whatever waits for it waits in vain (C10). NULL: nobody is
     * told. */
    void (*silent)(void *data, uint64_t disk);
    /* Which sessions are live, this node's among them if it has one (`own`; 0: it has none), when
     * that has changed, and every CN_HOST_TOLD_MS. What was told before and is missing is over, and
     * does not come again (C1). Without a session of its own nothing is told of others: `sessions`
     * is NULL. The hook may be NULL. */
    void (*sessions)(void *data, uint64_t own, const struct cn_host_session *sessions,
                     unsigned count);
};
#define CN_HOST_TOLD_MS 5000

/* CN_EINVALID, CN_EUNSUPPORTED (no libpq). No thread yet. */
int cn_host_new(const struct cn_host_config *config, struct cn_host **host, struct cn_err *err);
int cn_host_start(struct cn_host *host, struct cn_err *err);
/* C12: it may claim and serve. Any thread; after joined(). */
void cn_host_open(struct cn_host *host);
/* H8; left() follows. Any thread, also more than once. `hand_over` false: ends the session without
 * moving anything first. */
void cn_host_leave(struct cn_host *host, bool hand_over);
/* After left(): whether the engine knows that the session is over. */
bool cn_host_has_parted(const struct cn_host *host);
/* After left(), or if it was never started. Waits for its thread. */
void cn_host_free(struct cn_host *host);

/* From inside joined(): the disk has a replica of the shard, up to `have`, and synced up to
 * `checkpoint`. */
void cn_host_found(struct cn_host *host, uint32_t shard, uint64_t have, uint64_t checkpoint);

/* By the stores, from any thread; cheap, and calls that come quickly become one. */
void cn_host_appended(struct cn_host *host, uint32_t shard);
void cn_host_checkpointed(struct cn_host *host, uint32_t shard, uint64_t lsn);
/* H7: something below the stores cannot be written. */
void cn_host_disk_failed(struct cn_host *host, const struct cn_err *err);
/* By the front, from any thread. */
void cn_host_stopped(struct cn_host *host, uint32_t shard, uint64_t ticket);
void cn_host_shut(struct cn_host *host, uint32_t shard);

/* The gate, for any thread; see above. may_leave() after durability was seen. */
bool cn_host_may_take(struct cn_host *host, uint32_t shard);
bool cn_host_may_leave(struct cn_host *host, uint32_t shard);
/* With verified reads: to be remembered when an answer is ready, and asked for with it. 0 without.
 */
uint64_t cn_host_ticket(struct cn_host *host);
bool cn_host_confirmed(struct cn_host *host, uint64_t ticket);

/* Who answers for a shard, as far as is known here. Any thread. */
struct cn_host_owner {
    uint64_t disk; /* 0: nobody is known to */
    bool here;
};
struct cn_host_owner cn_host_owner(struct cn_host *host, uint32_t shard);

/* The name of the node that has the disk. False: none of that disk is live. Any thread. */
/* Calls back for every node of the last look at the engine, this one too, with a lock held. */
void cn_host_each_node(struct cn_host *host,
                       void (*each)(void *data, uint64_t disk, const char *name), void *data);
bool cn_host_name(struct cn_host *host, uint64_t disk, char name[CN_ENGINE_PG_NODE_MAX + 1]);

/* The same of its address. */
bool cn_host_address(struct cn_host *host, uint64_t disk,
                     char address[CN_ENGINE_PG_ADDRESS_MAX + 1]);

/* Another disk with a live session and the name of this node, as far as is known; 0: none. */
uint64_t cn_host_twin(struct cn_host *host);

/* By an operator; any thread, waits for the host's. CN_ENOTFOUND, CN_EOVERLOADED: not now. */
int cn_host_move(struct cn_host *host, uint32_t shard, const char *node, struct cn_err *err);

/* For what lies beside the stores, from any thread; they do not block. */
/* A frame to a node: it waits here until the link has room. False: there is no link. Who sends
 * bounds how much waits. */
bool cn_host_send(struct cn_host *host, uint64_t disk, unsigned kind, const void *head,
                  size_t head_size, const void *more, size_t more_size);
/* The disks of nodes with a link that is up. */
unsigned cn_host_linked(struct cn_host *host, uint64_t disks[CN_CLUSTER_NODES_MAX]);
/* A shard as this node knows it. False: no map has come yet. */
struct cn_host_view {
    uint64_t owner; /* a disk; 0: none is known */
    uint64_t epoch;
    unsigned count;
    uint64_t disks[CN_CLUSTER_REPLICAS_MAX];
    bool good[CN_CLUSTER_REPLICAS_MAX]; /* its node is live, and not to be emptied */
};
bool cn_host_view(struct cn_host *host, uint32_t shard, struct cn_host_view *view);
/* cn_member_whole() */
void cn_host_whole(struct cn_host *host, uint32_t shard, uint64_t epoch, const uint64_t *disks,
                   unsigned count);

#define CN_HOST_SILENT_MS 5000

struct cn_host_status {
    enum cn_member_state state;
    bool lease; /* valid when it was asked */
    uint64_t session, disk;
    unsigned shard_count, serving, following, coming, leaving; /* shards, by role */
    unsigned nodes;                                            /* live sessions */
    bool draining;                                             /* an operator wants it empty */
    unsigned copies_in, copies_out;
    /* Of the replicas that follow: those that read what they lack from the engine, or have not
     * heard of their owner for CN_HOST_SILENT_MS; the longest that one has not. */
    unsigned behind;
    int64_t silent_ms;
    uint64_t unsettled_records, batches, appends;
    uint64_t takeovers, fenced, links_up, links_broken, queued_bytes, feeds_dropped;
    uint64_t link_bytes; /* waiting for other nodes to take them */
    uint64_t engine_links, engine_broken;
    char engine[200];   /* why its last link ended; "": none has */
    uint64_t strangers; /* connections of who does not have the cluster's key */
    unsigned unreached; /* live nodes to which there is no link: cn_host_troubles() */
};
/* Any thread; all but the lease as of the last beat, or of the end of the last link. */
void cn_host_status(struct cn_host *host, struct cn_host_status *status);

/* Live nodes without a link for longer than it takes to make one, and why (L8). Any thread. */
struct cn_host_trouble {
    uint64_t disk;
    char why[80];
};
unsigned cn_host_troubles(struct cn_host *host,
                          struct cn_host_trouble troubles[CN_CLUSTER_NODES_MAX]);

/* From an APPEND to its answer, in microseconds. Any thread reads. */
const struct cn_histogram *cn_host_append_us(const struct cn_host *host);

/* A time of the clock that leases are counted by: it goes on while the machine sleeps. */
int64_t cn_host_clock_ms(void);

#endif
