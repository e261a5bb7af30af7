/* SPDX-License-Identifier: Apache-2.0 */
/* membership/engine.h - what a node says to the engine of its cluster, and what it is told.
 *
 * The engine is a database with a synchronous standby. It has little data, and its answers decide:
 *
 *     session(id, disk, life, live, link, head, beat, draining)  a life of a node; the fence
 *     shard(id, owner, epoch, trim, restored)                    who may append to it
 *     replica(shard, disk, checkpoint)                           which disks have it, and how much
 *     log(shard, lsn, body)                                      the tail that not all of them have
 *     version                                                    rises with each change of the map
 *
 * This header has the statements as plain data. A driver of the engine (membership/engine_pg.h) and
 * the simulation of one (test/simulate/engine.c) carry them out by the same rules:
 *
 * E1  A statement is one: it happens as a whole or not at all, and its conditions are part of it. A
 *     transaction of several could stop half way with its locks held.
 * E2  A link is a connection. Statements of a link are carried out in the order in which they were
 *     sent, and answered in it; several may be under way. An answer that does not come, comes with
 *     an error, or with a warning that the standby was not waited for, is the end of the link: none
 *     of its later answers is told, and none of its statements is sent again by the driver.
 * E3  What writes is answered when the standby has it, and with it all that was visible to it.
 *     CN_ENGINE_READ alone writes nothing: what it tells may be gone after a fail-over.
 * E4  `session live AND session.link = the statement's link` is a condition of every statement but
 *     JOIN and BURY; `live` of the answer tells whether it held. So a statement that is still under
 *     way on a broken link does nothing once a later link of the same session has said HELLO.
 * E5  `beat` rises with each statement of the session that writes, in the same statement.
 * E6  The answers of READ, MOVE, ADD, DROP and ADOPT name the shard in items[0], done or not.
 * E7  What a statement's conditions ask of a session or of a shard (its replicas too) is in one row
 *     each, and is as it is when that row is changed. A view may be as old as the statement's
 *     begin.
 * E8  The engine never goes back: `version`, the life of a disk, and the beat of a session are
 *     never lower than in an earlier answer. In an engine that was restored from a backup they are
 *     lower. JOIN therefore compares them with what the disk has seen, and HELLO compares the beat,
 *     both before they change anything; a statement that finds a lower number changes nothing. Only
 *     a disk itself raises its life and its beat, so other nodes cannot make a restored engine
 *     catch up.
 *
 * What is asked of the engine on every connect (sync, fsync, the standby's name) and its timeline
 * is told with the link (struct cn_engine_link). A notification of the engine is a hint to look,
 * never news: cn_member_hint().
 *
 * Threads and ownership: plain data; what a statement or an answer points to is borrowed until the
 * call that it is given to returns. */
#ifndef CN_MEMBERSHIP_ENGINE_H
#define CN_MEMBERSHIP_ENGINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CN_CLUSTER_SHARDS_MAX 1024
#define CN_CLUSTER_NODES_MAX 128
#define CN_CLUSTER_REPLICAS_MAX 5 /* of one shard, those on their way included */
#define CN_ENGINE_ITEMS_MAX 64    /* of one statement */

enum cn_engine_kind {
    /* A session for `disk`: ends the others of the disk, whose process is dead, since this one has
     * the lock of its directory. Only if none of them has a `life` as high: a JOIN that lingered
     * does not end its successor. Only if the engine knows all that `seen` tells (E8), or an
     * operator has accepted it since: a later decision than the one in `seen`. Sets its link.
     * Answers: session; `less`: it knew less; decision: its last. */
    CN_ENGINE_JOIN,
    /* The first of a further link: session.link = link, if it was lower and the session is of this
     * disk (an engine that went back gives out the same numbers again: E8), and its beat is not
     * lower than `seen` tells: else live is false, and `less` true. Answers: head and beat, as the
     * row is after what it had to wait for. It tells no map: a statement sees the map as it was
     * when it began, and one of the old link that it waited for may have changed it since. */
    CN_ENGINE_HELLO,
    /* Nothing but a beat. Answers: head, view. Also the barrier after a READ. */
    CN_ENGINE_BEAT,
    /* head = seq, if head = seq - 1, and the records of items (shard, from..to), whose bodies the
     * driver takes from the store. Answers: done. */
    CN_ENGINE_APPEND,
    /* items (session, beat): live = false, if beat is still that. */
    CN_ENGINE_FENCE,
    /* items (shard, epoch): owner = session, epoch + 1, if the epoch is that, its owner's session
     * is not live, and the disk has a replica; or its log is whole (trim = 0: nobody ever had it,
     * or nothing was ever cut) or it is `restored`, and there are fewer than
     * CN_CLUSTER_REPLICAS_MAX, which makes the disk one in the same statement, checkpoint = 0: from
     * then on nothing is cut that it lacks. An item that is `fresh` is given only if trim = 0, and
     * sets checkpoint = 0 also of a disk that is a replica by an older map (C16). Answers: those
     * that were done, with their new epochs. */
    CN_ENGINE_CLAIM,
    /* items[0] (shard, from): the records after `from`, as many as one answer takes. Answers
     * items[0]: `to`, the last of them or `from`; `more`; `from`: the trim; `last`: the last record
     * that the engine has or has cut. */
    CN_ENGINE_READ,
    /* items (shard, epoch, session): owner = session, epoch + 1, if the epoch is that, the owner is
     * this session, and that one lives and its disk has a replica. Answers: those done. */
    CN_ENGINE_MOVE,
    /* items (shard, to): the disk's replica has all up to `to` synced; cuts what all have, unless
     * the shard is `restored`: who is named may have nothing any more. */
    CN_ENGINE_CHECKPOINT,
    /* items[0] (shard, to): the disk is a replica, checkpoint = to, unless to < trim, or there are
     * CN_CLUSTER_REPLICAS_MAX. Answers: done. */
    CN_ENGINE_ADD,
    /* items[0] (shard, disk): that disk is no replica any more: it is the session's own and the
     * session does not own the shard; or the session owns the shard, the disk is another, and as
     * many as are wanted, on disks of live sessions that are not draining, remain. */
    CN_ENGINE_DROP,
    /* items[0] (shard, epoch, to): of a shard that is `restored` and owned by the session under the
     * epoch: it is not any more; the disk is its only replica, checkpoint = trim = to, unless to is
     * less than the trim. */
    CN_ENGINE_ADOPT,
    /* live = false, by its own wish. */
    CN_ENGINE_LEAVE,
    /* (disk, life): live = false for the sessions of the disk up to that life. Of no session: sent
     * by the parent of a process that it has seen end, never by a member. */
    CN_ENGINE_BURY,
    CN_ENGINE_KINDS
};

/* What a statement or an answer lists; its kind says which fields. */
struct cn_engine_item {
    uint32_t shard;
    bool more;
    uint64_t epoch;
    uint64_t from, to; /* LSNs: after `from`, up to `to` */
    uint64_t last;
    uint64_t session;
    uint64_t disk;
    uint64_t beat;
    bool fresh; /* CLAIM of a restored shard (C16): with nothing; only while its log is whole */
};

/* No engine ever has a map of this version: `seen` that no engine knows all of (C11). */
#define CN_ENGINE_VERSION_MAX INT64_MAX

/* The highest that a disk was told by the engine: E8. All 0: nothing yet. */
struct cn_engine_seen {
    uint64_t version;       /* of the map */
    uint64_t life;          /* under which it joined, */
    uint64_t session, beat; /* the session that it got, and its beat */
    uint64_t decision;      /* of an operator, the last that the engine had */
};

struct cn_engine_statement {
    enum cn_engine_kind kind;
    uint64_t link;   /* E2 */
    uint64_t number; /* rises; the answer repeats it */
    uint64_t session;
    uint64_t disk, life; /* JOIN */
    struct cn_engine_seen seen;
    uint64_t seq;     /* APPEND */
    uint64_t version; /* BEAT: of the map that is known; 0: all of it is wanted */
    size_t count;
    const struct cn_engine_item *items;
};

struct cn_engine_session {
    uint64_t id, disk, beat;
    bool draining; /* an operator wants it empty */
    bool shut;     /* it does not serve yet (C12): nothing is to be handed to it */
};

struct cn_engine_shard {
    uint64_t owner; /* a session, perhaps one that is over; 0: never had one */
    uint64_t epoch;
    uint64_t trim; /* as it was when the map last changed: by now it may be higher */
    /* An operator has accepted an engine that went back: disks may have more of the shard than its
     * log, and others than the map names may have it. Until ADOPT says which copy it is. */
    bool restored;
    unsigned replica_count;
    uint64_t disks[CN_CLUSTER_REPLICAS_MAX];
};

/* What one statement saw: of one moment, and by E3 not to be undone. */
struct cn_engine_view {
    uint64_t version;
    const struct cn_engine_shard *shards; /* NULL: nothing is newer than the version asked with */
    size_t session_count;
    const struct cn_engine_session *sessions; /* the live ones */
};

struct cn_engine_answer {
    enum cn_engine_kind kind;
    uint64_t link, number;
    bool live; /* E4 */
    bool done; /* its other conditions held */
    bool less; /* JOIN, HELLO: E8 */
    uint64_t session, decision;
    uint64_t head, beat;
    const struct cn_engine_view *view; /* BEAT */
    size_t count;
    const struct cn_engine_item *items;
};

/* Why an engine would lose data: C11. */
enum cn_engine_flaw {
    CN_ENGINE_NO_STANDBY = 1,  /* synchronous_standby_names is empty */
    CN_ENGINE_ASYNC = 2,       /* synchronous_commit is below on */
    CN_ENGINE_NO_FSYNC = 4,    /* fsync is off */
    CN_ENGINE_TORN_PAGES = 8,  /* full_page_writes is off */
    CN_ENGINE_OTHER_MAJOR = 16 /* its tables are of another major version of ours */
};

struct cn_engine_link {
    uint64_t timeline;
    unsigned flaws; /* of enum cn_engine_flaw */
};

#endif
