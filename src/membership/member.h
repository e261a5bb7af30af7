/* SPDX-License-Identifier: Apache-2.0 */
/* membership/member.h - what a node of a cluster decides.
 *
 * N nodes are one store. The state is cut into shards; each has one owner, which answers for its
 * objects, and replicas, which are disks. Nodes agree by way of the engine only (membership/engine.h).
 * A member decides for one node: which statements it sends to the engine, which shards it serves,
 * follows, takes over, gives away, copies or deletes, and whether an answer may leave.
 *
 * A member is a pure state machine: it has no socket, thread, file or clock. Events and the time
 * are arguments of its functions; effects are calls of struct cn_member_host (in a server, those of
 * shard/host.h). The simulation (test/simulate/) therefore runs the object code that a server runs.
 *
 * Terms: docs/understand/glossary.md.
 *
 * The rules. Each is cited where it is kept, and broken by a planted bug of the simulation:
 *
 * C1  A session is the fence. What a node appends counts only if its session is live in the same
 *     statement; batches are numbered by `head`. After a link broke, nothing is sent but HELLO: it
 *     ends what lingers on older links (E4), its `head` tells which batches are there, and the
 *     rest goes out again as it was, with the same numbers. What became of other statements is
 *     told by a map that was asked for *after* HELLO was answered (E7). Sessions of a disk are
 *     ordered by `life`, so that a JOIN that lingers cannot end the session that followed it.
 * C2  Ending another's session: after its beat has not changed for `ttl_ms` of one's own clock,
 *     during which one has had the engine all the time; the statement repeats the beat. Beats count
 *     only as seen by a statement that was itself replicated: one that was seen and then lost in a
 *     fail-over may come again with the same number, and mean a younger one.
 * C3  Fence, then claim, then read: what was read before one's own claim was answered is no tail.
 * C4  Barrier: what was read is used after a later write of one's own was answered *on the same
 *     link*; that answer tells whether the shard is still one's own. (On another link it may be
 *     another server: the read was of one that had been replaced, the barrier of its successor.)
 * C5  Output gate: what leaves needs its writes durable in the engine, and the lease valid
 *     afterwards: `lease_ms` since a statement was *sent* that proved the session live. With
 *     verified reads instead: a statement that was sent after it was ready has proved that.
 * C6  Only what is durable in the engine is fed to followers, copied, or written to database files.
 * C7  A planned move: stop taking events, let what runs end, wait until all is durable and has
 *     left, hand over. Until the answer is there it is neither served nor followed; if the link
 *     breaks, the map after HELLO tells whether it happened, and by C1 it will not happen later.
 * C8  A replica is a disk with an identity, and knows what it has: one that has less than the trim
 *     is no replica, throws away what it has, and copies anew. One that has nothing may claim a
 *     shard whose log is whole (trim = 0) and whose replicas are all away; it becomes a replica in
 *     the statement that asks for the trim, so nothing can be cut in between.
 * C9  Ownership is the pair (shard, epoch). A shard that comes back with another epoch is read
 *     anew; a row of the map with a lower epoch than one's own is old.
 * C10 A peer that is silent: look at the map again, at once.
 * C11 A link to an engine that would lose data is refused. So is one of an older timeline than one
 *     seen, which is a server that was replaced or one restored from a backup: whether an operator
 *     has accepted the latter is asked by a JOIN that tells of a map that no engine has, which
 *     nothing but a later decision answers with a session. A member in DOUBT asks once its session
 *     may have been ended by others (C2). A timeline is seen once an answer on its link has proved
 *     the session.
 * C12 Who claims and serves can run what it owns: a member that is made `shut` joins, follows and
 *     copies, and claims and serves nothing before cn_member_open(). Others see that, and hand it
 *     nothing; what they handed to it all the same waits.
 * C13 A session that a map does not have any more is over. Whoever sees that tells the one whose it
 *     was (HINT): if that one is in DOUBT, and so cannot ask the engine, it takes the word for it.
 *     Nobody else's session is judged by it: at worst a live session is given back.
 * C14 A disk that the engine has seen in a later life is another process's, or was set back: it is
 *     not asked again, since it would be the same for ever. Lives are counted by the disk: a copy of
 *     an earlier state that is started more often than its original is not known for what it is,
 *     and counts as having what the map says until it has read the rest.
 * C15 An engine that went back (one restored from a backup, a standby without the last commits) is
 *     not used. The disk remembers the highest it was told (struct cn_engine_seen), durably: with
 *     each JOIN and each change of the map at once, after appends within `remember_ms`. JOIN and
 *     HELLO compare (E8), each map does, and each READ: an engine whose log of a shard ends before
 *     what is here has lost it. No map is taken before the JOIN is remembered: whoever has acted
 *     on anything can tell. The node is GONE then, before it has acted on anything it was told,
 *     and so is the next process of the disk, until an operator accepts the engine (`decision`) or
 *     the right one is back.
 * C16 An engine that was accepted has shards that are `restored`: the map does not say who has the
 *     last copy. Nothing is thrown away for such a shard, nor cut from its log. Whoever has a copy
 *     may claim it, those that the map names first; the first owner makes its copy the only one
 *     (ADOPT) when that is synced, and others copy it anew.
 *
 * A member as a whole:
 *
 *     state     what is true                                     moves to
 *     AWAY      has no session                                   JOINING, GONE
 *     JOINING   JOIN is under way                                LIVE, AWAY if the link breaks
 *     LIVE      the session was live when last heard of          DOUBT, AWAY if fenced, LEAVING
 *     DOUBT     the link broke; HELLO is to be answered          LIVE, AWAY if fenced
 *     LEAVING   LEAVE is under way, the gate is closed           GONE; AWAY if it only starts anew
 *     GONE      has left, or found the engine to have gone back (C15)
 *
 * and each shard on it:
 *
 *     role       what is here                          moves to
 *     NONE       nothing                               COPYING; CLAIMING (its log is whole);
 *                                                      FOLLOWING (the map names the disk, the
 *                                                      log is whole)
 *     COPYING    a copy on its way from the owner      JOINING, NONE
 *     JOINING    a whole copy; ADD is under way        FOLLOWING, NONE
 *     FOLLOWING  a replica, fed by the owner           CLAIMING, TAKING (handed over), NONE
 *     CLAIMING   CLAIM is under way                    TAKING, FOLLOWING, NONE
 *     TAKING     owned, its tail is being read         SERVING, TAKING (again: C9), FOLLOWING
 *     SERVING    owned, takes events                   STOPPING, FOLLOWING, TAKING
 *     STOPPING   owned, takes none; a move waits       MOVING, SERVING, FOLLOWING, TAKING
 *     MOVING     MOVE is under way                     FOLLOWING, SERVING, TAKING
 *
 * Bounded: what is per shard is in one array of the size given at start; batches (by records and by
 * bytes), reads, copies and moves under way have the limits below; a view with more sessions than
 * CN_CLUSTER_NODES_MAX is cut.
 *
 * Threads:   one, the host's. Lanes ask the host for the lease and the gate (shard/host.h).
 * Ownership: the caller has the struct; init allocates its arrays and fini frees them. The host is
 *            borrowed, and calls nothing of the member from inside its functions. */
#ifndef CN_MEMBERSHIP_MEMBER_H
#define CN_MEMBERSHIP_MEMBER_H
#include "membership/engine.h"

/* Appends under way. The engine carries out one after the other, and each waits for the standby:
 * the second is there when the first is done, a third would only be smaller than what gathers here
 * until then. A batch costs the engine more than a record does. */
#define CN_MEMBER_BATCHES_MAX 2
#define CN_MEMBER_BATCH_SHARDS CN_ENGINE_ITEMS_MAX /* shards of one */
#define CN_MEMBER_BATCH_RECORDS 256                /* records of one shard of one */
#define CN_MEMBER_BATCH_BYTES (4u << 20)           /* of one, unless its only record is larger */
#define CN_MEMBER_FLIGHT_BYTES \
    (16u << 20)                      /* appends under way: no further one once it is reached */
#define CN_MEMBER_BYTES_PER_MS 16384 /* that an engine takes at the least: link_ms */
#define CN_MEMBER_READS_MAX 16       /* tails being read */
#define CN_MEMBER_COPIES_MAX 2       /* copies coming here */
#define CN_MEMBER_MOVES_MAX 2        /* shards being given away for balance */
#define CN_MEMBER_OUTS_MAX 128       /* statements under way */

enum cn_member_state {
    CN_MEMBER_AWAY,
    CN_MEMBER_JOINING,
    CN_MEMBER_LIVE,
    CN_MEMBER_DOUBT,
    CN_MEMBER_LEAVING,
    CN_MEMBER_GONE,
    CN_MEMBER_STATES
};

enum cn_member_role {
    CN_ROLE_NONE,
    CN_ROLE_COPYING,
    CN_ROLE_JOINING,
    CN_ROLE_FOLLOWING,
    CN_ROLE_CLAIMING,
    CN_ROLE_TAKING,
    CN_ROLE_SERVING,
    CN_ROLE_STOPPING,
    CN_ROLE_MOVING,
    CN_ROLES
};

/* What the host does with a shard. It does so in the order in which it is told. */
enum cn_member_act {
    CN_ACT_CREATE,  /* an empty store: all that ever was is in the engine's log */
    CN_ACT_APPLY,   /* of what the last READ answered, use what is up to `lsn` */
    CN_ACT_FORGET,  /* what the last READ answered is not used */
    CN_ACT_FED,     /* of the feed that is being told, use what is after `from` up to `lsn` */
    CN_ACT_SETTLE,  /* the engine has what was appended after `from` up to `lsn` */
    CN_ACT_SERVE,   /* take events; the store goes on after `lsn`, under `epoch` */
    CN_ACT_STOP,    /* take none, let what runs end and leave; then cn_member_stopped() */
    CN_ACT_RESUME,  /* take events again: the move did not happen */
    CN_ACT_SYNC,    /* what is here up to `lsn` survives a loss of power; then cn_member_synced() */
    CN_ACT_CLOSE,   /* no owner any more: what is after `lsn` never was, nothing leaves */
    CN_ACT_DISCARD, /* of no use here: the host sets it aside; a copy on its way goes */
    CN_ACTS
};

enum cn_member_note {
    CN_NOTE_GATE,             /* ask cn_member_may_leave() again */
    CN_NOTE_FENCED,           /* the session is over; a new one is asked for */
    CN_NOTE_REFUSED,          /* C11: the link is refused */
    CN_NOTE_DRAINED,          /* no replica is here any more: the node may leave */
    CN_NOTE_LEFT,             /* LEAVE is done */
    CN_NOTE_ENGINE_LOST_DATA, /* C15: it knows less than it has told: nothing is served */
    CN_NOTE_DISPLACED,        /* C14 */
    CN_NOTE_ENGINE_ACCEPTED,  /* it knew less, and an operator has accepted it: C16 */
    CN_NOTES
};

enum cn_member_message_kind {
    CN_MESSAGE_FEED, /* records after `from` up to `to`, durable; none: `to` is how far it is */
    CN_MESSAGE_ASK,  /* for a copy */
    CN_MESSAGE_COPY, /* the host copies all up to `to` to there, and does not tell the member */
    CN_MESSAGE_HINT, /* the map has changed; `to`, if not 0, is a session that it lacks: C13 */
    CN_MESSAGE_KINDS
};

struct cn_member_message {
    enum cn_member_message_kind kind;
    uint32_t shard;
    uint64_t session; /* of the sender */
    uint64_t epoch;
    uint64_t from, to;
};

struct cn_member_host {
    void (*send)(void *data, const struct cn_engine_statement *statement);
    /* Closes the link there is, and opens that one: cn_member_link_up() or _down() follows. */
    void (*connect)(void *data, uint64_t link);
    void (*tell)(void *data, uint64_t session, uint64_t disk,
                 const struct cn_member_message *message);
    void (*act)(void *data, enum cn_member_act act, uint32_t shard, uint64_t epoch, uint64_t from,
                uint64_t lsn);
    void (*note)(void *data, enum cn_member_note note);
    /* Bytes of a record that was told by cn_member_appended() and not settled yet. */
    uint64_t (*weigh)(void *data, uint32_t shard, uint64_t lsn);
    /* C15: to be kept with the disk, in place of what was told before; then
     * cn_member_remembered(). */
    void (*remember)(void *data, const struct cn_engine_seen *seen);
    void *data;
};

struct cn_member_config {
    uint64_t disk;              /* its identity: C8 */
    uint64_t life;              /* higher than any of this disk before; raised by each JOIN */
    struct cn_engine_seen seen; /* C15: what was remembered last */
    unsigned shard_count;
    unsigned replicas;    /* wanted of each shard, 1..CN_CLUSTER_REPLICAS_MAX - 1 */
    bool verified;        /* C5 */
    unsigned allow_flaws; /* C11: of enum cn_engine_flaw */
    bool shut;            /* C12: until cn_member_open() */
    bool waits_for_whole; /* P3: a replica counts as one that stays once cn_member_whole() names it
                           */
    int64_t ttl_ms;       /* 3000 */
    int64_t lease_ms;     /* 2100; the ratio to ttl_ms is what clocks may differ by */
    int64_t beat_ms;      /* 500 */
    int64_t link_ms;      /* 1000: an answer that takes longer breaks the link; and a millisecond
                             for every CN_MEMBER_BYTES_PER_MS of appends that are before it */
    int64_t retry_ms;     /* 100: between links, doubled up to ten times */
    int64_t settle_ms;    /* 5000: how long the map is quiet before shards move for balance */
    int64_t replace_ms;   /* 30000: how long a replica's node is away before it is replaced */
    int64_t copy_ms;      /* 60000: a copy that takes longer is begun anew */
    int64_t feed_ms;      /* 1000: followers are told how far it is */
    int64_t leave_ms;     /* 10000: how long leaving hands over before it just ends */
    int64_t remember_ms;  /* 1000: how long what appends have raised is not remembered: C15 */
};

struct cn_member_batch {
    uint64_t seq;
    uint64_t bytes;
    unsigned count;
    struct cn_engine_item items[CN_MEMBER_BATCH_SHARDS];
};

enum cn_member_read {
    CN_READ_IDLE,
    CN_READ_WANTED,
    CN_READ_SENT,
    CN_READ_HELD, /* C4: answered, waiting for the barrier */
};

struct cn_member_shard {
    enum cn_member_role role;
    struct cn_engine_shard row; /* of the map */
    uint64_t epoch;             /* under which it is TAKING, SERVING, ...: C9 */
    uint64_t have;              /* LSN: durable in the engine, and here */
    uint64_t checkpoint;        /* synced in files here */
    uint64_t checkpoint_told;
    uint64_t appended, sent; /* the owner's: by its store; in a batch */
    enum cn_member_read read;
    bool read_more;
    bool stopped;         /* STOPPING: nothing runs and nothing is left to leave */
    bool fresh;           /* CLAIMING: with nothing, its log is whole */
    bool voided;          /* thrown away: C8; the map may still name this disk */
    bool dropping;        /* DROP is under way */
    bool adopting;        /* ADOPT is, or what it needs: C16 */
    uint64_t synced;      /* TAKING: SYNC was done, up to there */
    bool busy;            /* its store has enough to write: no tail is asked for */
    uint64_t read_number; /* the statement; once HELD, the last one sent by then */
    uint64_t read_from, read_to, read_last;
    uint64_t move_to;      /* a session */
    int64_t since_ms;      /* of the role */
    int64_t fed_ms;        /* last heard of its owner */
    int64_t need_since_ms; /* lacks a replica, or an owner, since; 0: does not */
    int64_t asked_ms;      /* COPYING: an owner was asked for it then, */
    bool begun;            /* and it has begun to come */
    /* cn_member_whole(), as of this epoch */
    uint64_t whole_epoch, whole[CN_CLUSTER_REPLICAS_MAX];
};

struct cn_member_peer {
    uint64_t id, disk, beat;
    int64_t seen_ms; /* when this beat was first seen: C2 */
    bool draining, shut, suspected;
    unsigned owned, held; /* shards of it, replicas on its disk */
};

struct cn_member {
    struct cn_member_config config;
    const struct cn_member_host *host;
    enum cn_member_state state;
    uint64_t session;
    uint64_t link, number;
    bool link_up, link_asked, link_due;
    int64_t link_at_ms, link_wait_ms; /* the next try, and the pause after it */
    uint64_t timeline, link_timeline; /* C11: seen; of this link */
    struct cn_engine_seen highest;    /* C15 */
    bool remembering;                 /* the JOIN is not on the disk yet */
    bool remember;                    /* it has more than the host was told: appends, */
    int64_t remember_at_ms;           /* then */
    /* Statements without an answer: of the oldest, by C5 every one that proves. */
    struct cn_member_out {
        uint64_t number;
        int64_t sent_ms, late_ms; /* from when on the link is taken to be broken */
        enum cn_engine_kind kind;
    } * outs;
    unsigned out_first, out_count;
    int64_t lease_ms;   /* until when */
    uint64_t confirmed; /* the highest number that proved the session live */
    uint64_t confirm;   /* wanted: verified reads */
    bool barrier;       /* a BEAT is wanted now */
    bool beating;       /* one is under way */
    bool settling;      /* after HELLO, before the map that tells what became of the rest */
    int64_t beat_at_ms;
    int64_t steady_ms; /* has had the engine since: C2 */
    int64_t heard_ms;  /* the last answer that proved the session live */
    uint64_t seq;      /* of the last batch that is durable */
    struct cn_member_batch batches[CN_MEMBER_BATCHES_MAX];
    unsigned batch_first, batch_count;
    uint64_t flight; /* bytes of them */
    uint64_t version;
    bool seen; /* a map */
    struct cn_member_shard *shards;
    struct cn_member_peer peers[CN_CLUSTER_NODES_MAX];
    unsigned peer_count;
    unsigned reads, held, wanted; /* tails: SENT, HELD, WANTED */
    unsigned copies, moves;       /* shards COPYING or JOINING; STOPPING or MOVING */
    unsigned dirty;               /* shards with records that are in no batch */
    bool claiming, fencing;       /* such a statement is under way */
    unsigned append_next;         /* the shard where the next batch begins: fairness */
    int64_t changed_ms;           /* of the map */
    int64_t feed_at_ms;
    bool leaving, drained;
    int64_t leave_at_ms;
};

/* The values of the comments above, for what is 0. */
void cn_member_defaults(struct cn_member_config *config);
/* 0, or CN_EINVALID for a configuration that cannot be right. */
int cn_member_init(struct cn_member *member, const struct cn_member_config *config,
                   const struct cn_member_host *host);
void cn_member_fini(struct cn_member *member);
/* Before the start: the disk has a replica of the shard, up to `have`, and synced up to
 * `checkpoint`. */
void cn_member_found(struct cn_member *member, uint32_t shard, uint64_t have, uint64_t checkpoint);
void cn_member_start(struct cn_member *member, int64_t now_ms);
void cn_member_open(struct cn_member *member, int64_t now_ms); /* C12 */

/* Time. To be called at cn_member_next() at the latest; earlier and later do no harm. */
void cn_member_tick(struct cn_member *member, int64_t now_ms);
int64_t cn_member_next(const struct cn_member *member);

/* The engine. */
void cn_member_link_up(struct cn_member *member, int64_t now_ms, uint64_t link,
                       const struct cn_engine_link *info);
void cn_member_link_down(struct cn_member *member, int64_t now_ms, uint64_t link);
void cn_member_answer(struct cn_member *member, int64_t now_ms,
                      const struct cn_engine_answer *answer);
void cn_member_hint(struct cn_member *member, int64_t now_ms);

/* Other nodes. */
void cn_member_message(struct cn_member *member, int64_t now_ms,
                       const struct cn_member_message *message);
/* C10. Only with verified reads it is also reason enough to fence it: a hint can be forged. */
void cn_member_silent(struct cn_member *member, int64_t now_ms, uint64_t session);

/* The store. What it tells is of what is here now: never of what it was told to DISCARD since. */
void cn_member_appended(struct cn_member *member, int64_t now_ms, uint32_t shard, uint64_t lsn);
/* Of several shards: one batch takes them, not one each. */
struct cn_member_appends {
    uint32_t shard;
    uint64_t lsn;
};
void cn_member_appended_all(struct cn_member *member, int64_t now_ms,
                            const struct cn_member_appends *appends, size_t count);
void cn_member_checkpointed(struct cn_member *member, int64_t now_ms, uint32_t shard, uint64_t lsn);
void cn_member_stopped(struct cn_member *member, int64_t now_ms, uint32_t shard);
void cn_member_synced(struct cn_member *member, int64_t now_ms, uint32_t shard, uint64_t lsn);
/* C15: this is on the disk. */
void cn_member_remembered(struct cn_member *member, int64_t now_ms,
                          const struct cn_engine_seen *seen);
/* A copy is whole and synced, up to there. */
void cn_member_copied(struct cn_member *member, int64_t now_ms, uint32_t shard, uint64_t lsn);

/* These replicas of a shard that is owned here under this epoch have all that is beside its store
 * (shard/bodies.h, Z6): only they count when another is to be dropped. */
void cn_member_whole(struct cn_member *member, uint32_t shard, uint64_t epoch,
                     const uint64_t *disks, unsigned count);

/* The copy that was asked for has begun to come. */
void cn_member_copy_begun(struct cn_member *member, uint32_t shard);
/* No copy comes, or what came is none: it is asked for again. */
void cn_member_copy_failed(struct cn_member *member, int64_t now_ms, uint32_t shard);
/* Its store has been given more than it has written: feeds are not taken (the host drops them), and
 * tails not asked for, until it is told otherwise. */
void cn_member_busy(struct cn_member *member, int64_t now_ms, uint32_t shard, bool busy);

/* Leaves the cluster: hands over what it can, or not, then ends its session. */
void cn_member_leave(struct cn_member *member, int64_t now_ms, bool hand_over);
/* By an operator: gives the shard to a live session with a replica. False: not now. */
bool cn_member_move(struct cn_member *member, int64_t now_ms, uint32_t shard, uint64_t session);

/* The gate: C5. An event is taken only if may_take(); what it produces remembers epoch, the LSN
 * of the last commit before it and the ticket, and leaves when may_leave(). False for ever once
 * the shard was closed; then it is answered with "unknown", or not at all. */
bool cn_member_may_take(const struct cn_member *member, int64_t now_ms, uint32_t shard);
uint64_t cn_member_ticket(struct cn_member *member, int64_t now_ms);
bool cn_member_may_leave(const struct cn_member *member, int64_t now_ms, uint32_t shard,
                         uint64_t epoch, uint64_t lsn, uint64_t ticket);
/* Who answers for a shard: a session, 0 if nobody is known to; its disk. */
uint64_t cn_member_owner(const struct cn_member *member, uint32_t shard, uint64_t *disk);

bool cn_member_may_change(enum cn_member_state from, enum cn_member_state to);
bool cn_role_may_change(enum cn_member_role from, enum cn_member_role to);

#endif
