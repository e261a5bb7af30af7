/* SPDX-License-Identifier: Apache-2.0 */
/* cluster/engine.h - what a node says to the engine of its cluster, and what it is told.
 *
 * The engine is a database with a synchronous standby. It has little data and is the only judge:
 *
 *     session(id, disk, life, live, link, head, beat, draining)  a life of a node; the fence
 *     shard(id, owner, epoch, trim)                              who may append to it
 *     replica(shard, disk, checkpoint)                           which disks have it, and how much
 *     log(shard, lsn, body)                                      the tail that not all of them have
 *     version                                                    rises with each change of the map
 *
 * This header has the statements as plain data. Whoever sends them (a driver of the engine, a
 * simulation of one) gives them one meaning:
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
 *     JOIN and BURY; `live` of the answer tells whether it held. So one that lingers on a broken
 *     link does nothing once a later link of the same session has said HELLO.
 * E5  `beat` rises with each statement of the session that writes, in the same statement.
 * E6  The answers of READ, MOVE, ADD and DROP name the shard in items[0], done or not.
 * E7  What a statement's conditions ask of a session or of a shard (its replicas too) is in one row
 *     each, and is as it is when that row is changed. A view may be as old as the statement's
 * begin.
 *
 * What is asked of the engine on every connect (sync, fsync, the standby's name) and its timeline
 * is told with the link (struct cn_engine_link). A notification of the engine is a hint to look,
 * never news: cn_member_hint().
 *
 * Threads and ownership: plain data; what a statement or an answer points to is borrowed until the
 * call that it is given to returns. */
#ifndef CN_CLUSTER_ENGINE_H
#define CN_CLUSTER_ENGINE_H
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
     * does not end its successor. Sets its link. Answers: session. */
    CN_ENGINE_JOIN,
    /* The first of a further link: session.link = link, if it was lower. Answers: head, as the row
     * is after what it had to wait for. It tells no map: a statement sees the map as it was when it
     * began, and one of the old link that it waited for may have changed it since. */
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
     * or nothing was ever cut) and there are fewer than CN_CLUSTER_REPLICAS_MAX, which makes the
     * disk one in the same statement, checkpoint = 0: from then on nothing is cut that it lacks.
     * Answers: those that were done, with their new epochs. */
    CN_ENGINE_CLAIM,
    /* items[0] (shard, from): the records after `from`, as many as one answer takes. Answers
     * items[0]: `to`, the last of them or `from`; `more`; `from`: the trim. */
    CN_ENGINE_READ,
    /* items (shard, epoch, session): owner = session, epoch + 1, if the epoch is that, the owner is
     * this session, and that one lives and its disk has a replica. Answers: those done. */
    CN_ENGINE_MOVE,
    /* items (shard, to): the disk's replica has all up to `to` synced; cuts what all have. */
    CN_ENGINE_CHECKPOINT,
    /* items[0] (shard, to): the disk is a replica, checkpoint = to, unless to < trim, or there are
     * CN_CLUSTER_REPLICAS_MAX. Answers: done. */
    CN_ENGINE_ADD,
    /* items[0] (shard, disk): that disk is no replica any more: it is the session's own and the
     * session does not own the shard; or the session owns the shard, the disk is another, and as
     * many as are wanted, on disks of live sessions that are not draining, remain. */
    CN_ENGINE_DROP,
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
    uint64_t session;
    uint64_t disk;
    uint64_t beat;
};

struct cn_engine_statement {
    enum cn_engine_kind kind;
    uint64_t link;   /* E2 */
    uint64_t number; /* rises; the answer repeats it */
    uint64_t session;
    uint64_t disk, life; /* JOIN */
    uint64_t seq;        /* APPEND */
    uint64_t version;    /* BEAT: of the map that is known; 0: all of it is wanted */
    size_t count;
    const struct cn_engine_item *items;
};

struct cn_engine_session {
    uint64_t id, disk, beat;
    bool draining; /* an operator wants it empty */
};

struct cn_engine_shard {
    uint64_t owner; /* a session, perhaps one that is over; 0: never had one */
    uint64_t epoch;
    uint64_t trim; /* as it was when the map last changed: by now it may be higher */
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
    uint64_t session;
    uint64_t head;
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
