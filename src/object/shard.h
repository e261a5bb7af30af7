/* SPDX-License-Identifier: Apache-2.0 */
/* object/shard.h - the stores that this process answers for: opened, stopped and closed in use.
 *
 * The objects of a node are cut into shards. A shard is a store of its own (log, catalog, history)
 * with the objects whose ids fall into it. A single node has one, which is open for as long as the
 * node lives. A node of a cluster has many numbers and the stores of those that it owns at the
 * moment; which ones is decided elsewhere (membership/), by a thread that is no lane's, and this is
 * what it calls.
 *
 *     cluster's thread            the set of shards               each lane
 *     open(store)  ────────────►  OPENING ── a letter ──────────► takes it up: restores, alarms
 *                                 OPEN    ◄─ the last has         its calls are taken
 *     stop()       ────────────►  STOPPING ─ a letter ──────────► takes no more; what runs ends
 *                                 STOPPED ◄─ the last has nothing left, nor has any thread
 *     close()      ────────────►  CLOSING ── a letter ──────────► lets go, at its next safe point
 *     done()       ◄────────────  CLOSED  ◄─ the last has, and the last thread too: now, and not
 *                                            before, the store may be closed
 *
 *     state      what lanes do                                          moves to
 *     CLOSED     know nothing of it: calls go elsewhere                 OPENING
 *     OPENING    take it up, each when its letter comes                 OPEN, STOPPING, CLOSING
 *     OPEN       serve it                                               STOPPING, CLOSING
 *     STOPPING   take no event; those that came before end and leave    STOPPED, OPENING, CLOSING
 *     STOPPED    have nothing of it but WebSockets that sleep           OPENING, CLOSING
 *     CLOSING    reset its objects, fail what is held, close sockets    CLOSED
 *
 * A letter only says "look": what a lane does follows from the state at the moment when it looks,
 * and every change asks all lanes for an answer anew. So changes may follow each other as they
 * like; one that is overtaken is reported as not reached.
 *
 * A lane knows a shard by a struct of its own (struct cn_lane_shard), which every object and every
 * output of it points to. That one is the lane's alone; its `store` is there exactly while the lane
 * has taken the shard up. Letters come from the loop, where no turn runs: code of an object is
 * never on the stack when its shard goes.
 *
 * S1  The shard of an object is, for ever, the number in bytes 16 to 23 of its id (the lowest
 *     byte first) modulo the number of shards, which a cluster never changes. Its lane, on a node,
 *     follows from bytes 24 to 31, so every shard has objects on every lane.
 * S2  Once close() has been called, no lane begins to send anything that rests on the shard:
 *     cn_lane_shard_may_leave() says no. What a lane is about to send at that moment was allowed
 *     when it asked; by how much an answer may be late is what a lease leaves room for
 *     (store/sink.h, K4).
 * S3  The store stays until `done` of close(): a turn that was under way commits into it, or fails;
 *     what it wanted to tell is held, and fails with the letter.
 * S4  A store is used by lanes that have taken its shard up, and by other threads while they hold
 *     it (cn_shards_hold()); close() and stop() wait for both.
 * S5  After close() nothing of the shard is left above the store: no object, no output, no hint of
 *     an alarm, no retry, no restore, no socket, no value in a cache. What it was is read from its
 *     store when it is opened again, here or elsewhere.
 * S6  LSNs of two shards, or of two lives of one, are never compared: an output names its shard,
 *     close() fails those that are held, and an object that close() has ended (`cut`) can give out
 *     no others, however long something still holds its memory.
 * S7  stop() loses nothing that was promised: calls that have arrived are answered, alarms that run
 *     end, answers leave. Objects are then ended as by an eviction; timers and waitUntil() are not
 *     waited for. Messages for sleeping WebSockets wait, so that resume() goes on with them.
 * S8  Bodies that others read of an object are counted by turns: cn_shards_turn() begins another,
 *     and tells when those that had begun before are over. So whoever moves a shard can let streams
 *     end while all else is served, and new ones do not keep it.
 *
 * Who is hurt by close(): calls under way fail as CN_FAULT_RETRYABLE, WebSockets end with 1012
 * (service restart) unless the shard was STOPPED (K7 of object/socket.h), an alarm that ran is
 * still stored and fires where the shard is opened next.
 *
 * Threads:   open, stop, resume, close, hold and release from any but, for open, a lane's: it
 *            reads the disk. `done` runs on whichever thread was last, possibly inside the call
 *            itself; it must not block. A cn_lane_shard belongs to its lane.
 * Ownership: cn_shards_new() allocates, cn_shards_free() frees, when lanes and node have ended and
 *            nobody holds a shard. Stores and histories are the caller's. */
#ifndef CN_OBJECT_SHARD_H
#define CN_OBJECT_SHARD_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "store/log.h"
#include "store/record.h"
#include "store/store.h"

struct cn_database_pool;
struct cn_history;
struct cn_node_db;
struct cn_object_lane;
struct cn_shards;

#define CN_SHARD_COUNT_MAX 65536
/* What a caller is told. */
#define CN_SHARD_AWAY "this node does not answer for the object at the moment; try again"
/* The same of a call that had begun, or may have. */
#define CN_SHARD_CUT CN_SHARD_AWAY CN_SHARD_UNKNOWN
#define CN_SHARD_UNKNOWN " (the call was under way: whether it was carried out is not known)"
/* In such a text: behind it are the name and the address of the node that does, then ')'. */
#define CN_SHARD_OWNER "cairn-owner: "

enum cn_shard_state {
    CN_SHARD_CLOSED,
    CN_SHARD_OPENING,
    CN_SHARD_OPEN,
    CN_SHARD_STOPPING,
    CN_SHARD_STOPPED,
    CN_SHARD_CLOSING,
    CN_SHARD_STATES
};

/* A change has been carried out by everybody; or, `reached` false, another one came before that. */
typedef void (*cn_shard_done)(void *data, unsigned index, bool reached);

struct cn_shards_options {
    unsigned count; /* 1 on a single node */
    /* The number of a namespace, the same in every shard and on every node; made if it is new, and
     * durable when it returns. Any thread that may block. NULL: the store of the only shard gives
     * them out. */
    int (*number)(void *data, const char *name, uint32_t *namespace_id, struct cn_err *err);
    /* A number has this name from now on, here and on every node (K2 of project/classes.h). Any
     * thread that may block. NULL: nobody is told. */
    int (*named)(void *data, uint32_t namespace_id, const char *name, struct cn_err *err);
    /* Whether the node may take events of this shard now: its lease. On lanes, for every call; must
     * not block. NULL: always. */
    bool (*may_take)(void *data, unsigned index);
    void *data; /* for them */
};

struct cn_shards *cn_shards_new(const struct cn_shards_options *options);
void cn_shards_free(struct cn_shards *shards); /* NULL is fine */
/* A set of one that is open: a single node. */
int cn_shards_single(struct cn_store *store, struct cn_history *history, struct cn_shards **shards,
                     struct cn_err *err);

unsigned cn_shards_count(const struct cn_shards *shards);
/* By whoever keeps what shards have said (a cache): called once for each that has been closed, when
 * no lane serves it any more and before `done`, with the lock held: no function of this header may
 * be called. There is one, set before lanes start. */
void cn_shards_on_close(struct cn_shards *shards, void (*closed)(void *data, unsigned index),
                        void *data);
/* S1 */
static inline unsigned cn_shard_index(const struct cn_object_key *key, unsigned count)
{
    const uint8_t *id = key->id + CN_OBJECT_ID_SIZE / 2;
    uint64_t hash = 0;
    for (unsigned i = 0; i < 8; i++)
        hash |= (uint64_t)id[i] << (8 * i);
    return (unsigned)(hash % count);
}
enum cn_shard_state cn_shards_state(struct cn_shards *shards, unsigned index);

/* --- the life of a shard --------------------------------------------------------------------- */

/* `history` may be NULL: its objects cannot be restored. It must be CLOSED. A failure has changed
 * nothing, and `done` (which may be NULL, here and below) is not called. Blocks for the disk. */
int cn_shards_open(struct cn_shards *shards, unsigned index, struct cn_store *store,
                   struct cn_history *history, cn_shard_done done, void *data, struct cn_err *err);
/* From OPENING and OPEN; otherwise `done` is told that it was not reached. How long it may take is
 * the caller's to say: close() ends what does not end by itself. */
void cn_shards_stop(struct cn_shards *shards, unsigned index, cn_shard_done done, void *data);
/* S8. Any thread: begins another turn, and returns the one before; whether any stream of it is left.
 */
unsigned cn_shards_turn(struct cn_shards *shards, unsigned index);
bool cn_shards_streams(struct cn_shards *shards, unsigned index, unsigned turn);
/* From STOPPING and STOPPED; otherwise as above. */
void cn_shards_resume(struct cn_shards *shards, unsigned index, cn_shard_done done, void *data);
/* From every state but CLOSED and CLOSING, where `done` is told as above. It is always reached. */
void cn_shards_close(struct cn_shards *shards, unsigned index, cn_shard_done done, void *data);

/* What may be taken or leave has become more, in all of them (cn_store_wake()). */
void cn_shards_wake(struct cn_shards *shards);

/* --- other threads --------------------------------------------------------------------------- */

/* A shard as those see it who hold it. */
struct cn_shard {
    struct cn_shards *shards;
    unsigned index;
    struct cn_store *store;     /* borrowed; NULL: it is CLOSED */
    struct cn_history *history; /* borrowed; NULL: none is kept */
    struct cn_node_db *db;      /* owned: what the node itself remembers of the shard */
    /* Of struct cn_restore_entry, owned: what lanes find to be restored when they take it up, each
     * its own; guarded by the lock of the set. */
    struct cn_list restores;
    /* S2: set by close(), before anything else. */
    atomic_bool shut;
    atomic_uint stream_turn, streams[2]; /* S8: the last bit of the turn chooses */
    /* Of shard.c; guarded by the lock of the set. */
    enum cn_shard_state state;
    unsigned holds;   /* of threads */
    uint64_t change;  /* counts them */
    unsigned awaited; /* lanes that have not answered the last one */
    cn_shard_done done;
    void *done_data;
};

/* The shard of this object, to be used until it is released; it must be OPENING or OPEN.
 * CN_ECLOSED, with a sentence: it is not here. Keep it for no longer than one piece of work:
 * stop() and close() wait. */
int cn_shards_hold(struct cn_shards *shards, const struct cn_object_key *key,
                   struct cn_shard **shard, struct cn_err *err);
/* The same by number. NULL: it is not here. */
struct cn_shard *cn_shards_hold_index(struct cn_shards *shards, unsigned index);
void cn_shard_release(struct cn_shard *shard);
/* A number that is the same later if the shard has been OPENING or OPEN all the time; 0: it is
 * neither. */
uint64_t cn_shards_mark(struct cn_shards *shards, unsigned index);
/* Another hold, for who has one; and, in every state, for a lane that has taken the shard up and
 * leaves work to a thread. */
void cn_shard_hold_more(struct cn_shard *shard);

/* The number of a namespace, as the set's option says. Blocks. */
int cn_shards_number(struct cn_shards *shards, const char *name, uint32_t *namespace_id,
                     struct cn_err *err);
/* A number that came from elsewhere has another name. Blocks. */
int cn_shards_named(struct cn_shards *shards, uint32_t namespace_id, const char *name,
                    struct cn_err *err);
/* Whether numbers come from elsewhere: then a store has to be told the name of a number before it
 * is used there (cn_store_namespace_learn()). */
bool cn_shards_numbered(const struct cn_shards *shards);

/* --- lanes ----------------------------------------------------------------------------------- */

/* A shard as one lane knows it. */
struct cn_lane_shard {
    struct cn_shard *shard;
    struct cn_object_lane *lane;
    struct cn_store *store; /* NULL: not taken up */
    struct cn_database_pool
        *databases;          /* owned: connections, which are of one store; NULL: as above */
    bool serves;             /* takes events: it was OPENING or OPEN when the lane looked */
    bool draining;           /* STOPPING, and something is left */
    bool rests;              /* STOPPING or STOPPED, and nothing is */
    uint64_t change;         /* that it is to answer then */
    struct cn_list objects;  /* of struct cn_object by shard_link: all that are not freed yet */
    int64_t alarm_window_ms; /* alarms up to this are in the lane's heap; INT64_MIN: none */
    unsigned away;           /* calls to its objects that are AWAY (P8 of envelope.h) */
    bool (*may_take)(void *data, unsigned index); /* the set's options, for ever */
    void *may_take_data;
    uint32_t *learnt; /* owned: numbers of namespaces whose names the store has */
    size_t learnt_count;
    struct cn_list learning; /* of struct learning (lane_shard.c): O9 of object.h */
    /* The listener of the store, on the flusher's thread. */
    struct cn_log_listener listener;
    atomic_uint_least64_t wanted_lsn; /* wakes the lane at this one; 0: never */
    atomic_uint pressed_count; /* objects that wait for room (O8): every flush wakes the lane */
    atomic_bool log_failed;
    /* Guarded by the lock of the set. */
    struct cn_mail letter;
    bool posted;   /* it is on its way */
    bool answered; /* the last change */
};

/* Whether what rests on commits of this shard up to `lsn` may leave. On the lane, which has taken
 * the shard up. */
static inline bool cn_lane_shard_may_leave(const struct cn_lane_shard *own, uint64_t lsn)
{
    return cn_store_may_leave(own->store, lsn) &&
           !atomic_load_explicit(&own->shard->shut, memory_order_acquire); /* S2 */
}

/* Whether this node answers for the shard now, as far as the lane knows. */
static inline bool cn_lane_shard_is_here(const struct cn_lane_shard *own)
{
    return own->serves && (!own->may_take || own->may_take(own->may_take_data, own->shard->index));
}

/* Whether the lane takes events of the shard now. Not while calls are AWAY that came before them:
 * they may come back, and go first. */
static inline bool cn_lane_shard_takes(const struct cn_lane_shard *own)
{
    return !own->away && cn_lane_shard_is_here(own);
}

/* On the lane's thread: it starts, and takes up what is there; it ends, and has let go of all. */
void cn_shards_join(struct cn_shards *shards, struct cn_object_lane *lane);
void cn_shards_leave(struct cn_shards *shards, struct cn_object_lane *lane);
/* Moves those of the shard's restores that are for objects of the lane to `mine`. */
void cn_shard_take_restores(struct cn_shard *shard, struct cn_object_lane *lane,
                            struct cn_list *mine);
/* The lane has done what the change asks for. */
void cn_lane_shard_answer(struct cn_lane_shard *own, uint64_t change);

#endif
