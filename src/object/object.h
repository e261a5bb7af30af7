/* SPDX-License-Identifier: Apache-2.0 */
/* object/object.h - one live object: identity, database, gates, events under way.
 *
 *     absent ──► NEW ──► RESTORING ──► STARTING ──► RUNNING ──┬─evicted──► GONE ──► absent
 *                │ ▲ ◄──────┘              │             │     │             ▲
 *                ▼ │                       └──failed─────┴─reset──► BROKEN ──┘
 *            SUSPENDED                                         from every state before it
 *
 * An object whose call has come is restored first, if that was asked for, and then started. BROKEN
 * has no key, no database, no calls and no sockets any more; it is freed when its last turn has
 * ended and nothing holds it, or its class lets go.
 *
 * Turns. A lane has one turn at a time; code runs in it for one object after the
 * other, or for nobody. An object takes part from cn_object_join() on; when the turn
 * ends, what each has written is committed (one transaction each, with the alarm),
 * and then the outputs of all go to the output gate. A commit that fails resets the
 * object: its outputs of that turn fail, and so does everything it has under way.
 * cn_object_enter() and cn_object_leave() are a turn of one object, or a part of the one
 * that runs.
 *
 * Input gate. While it is locked (constructor, blockConcurrencyWhile) no call is
 * delivered; calls wait in the inbox, bounded by CN_OBJECT_INBOX_MAX and _BYTES_MAX, past which
 * the caller is told "overloaded". Storage needs no lock: its operations complete
 * within the turn, so nothing can come between.
 *
 * O1  One live instance per key on the node: an object lives on the lane that the
 *     hash of its id names, in that lane's table.
 * O2  At most one turn at a time on a lane; calls are delivered in order of arrival.
 * O3  Nothing that an object writes in a turn is durable unless all of it is, up to the end of the
 *     turn or to where it is divided (cn_object_commit()).
 * O4  What is written to an object is committed with a turn that it takes part in, whoever
 *     writes: storage is reached through cn_object_touch().
 * O5  Code that uses the storage of an object for which it does not run (cn_object_touch() finds
 *     another one current, or none) is not held by that object's gate; so from then on everything
 *     that leaves the lane waits for what is written there (cn_object_lane_gate(), object/gate.c),
 *     whatever becomes of the object. What such code sends in the very turn fails if that turn
 *     breaks an object: the write may be lost.
 * O6  A broken object stays so: nothing is delivered to it, committed or accepted for it. Its key
 * may have another instance from then on.
 * O7  The database of an object that is RESTORING or SUSPENDED is somebody else's: nothing on the
 *     lane opens it.
 * O8  No commit waits for the disk (L11 of store/log.c). An object whose commit has left the log or
 *     the pages in memory beyond their bound waits instead, until there is room: its input gate is
 *     locked, and code of it that has waited does not go on (cn_class.press). At twice the bound no
 *     event is delivered to any object of the shard. Nobody else waits.
 * O9  The store of a shard that has never had an object of its namespace is told the name of that
 *     first (in a cluster, where numbers come from elsewhere): by a thread, for it waits until that
 *     is durable. Objects of the namespace are RESTORING until then, and their calls wait.
 *
 * Threads:   the lane's.
 * Ownership: the lane's table. */
#ifndef CN_OBJECT_OBJECT_H
#define CN_OBJECT_OBJECT_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "object/call.h"
#include "object/class.h"
#include "object/output.h"

struct cn_database;
struct cn_object_lane;
struct cn_socket_outbox;

#define CN_OBJECT_INBOX_MAX 10000
#define CN_OBJECT_INBOX_BYTES_MAX (128u << 20)

enum cn_object_state {
    CN_OBJECT_NEW,       /* the next call starts it */
    CN_OBJECT_RESTORING, /* waits for a restore before it starts (restore.h) */
    CN_OBJECT_STARTING,  /* `create` has not finished */
    CN_OBJECT_RUNNING,
    CN_OBJECT_SUSPENDED, /* a visitor has its database (object/access.h); calls wait */
    CN_OBJECT_BROKEN,    /* reset: leaves memory when its last turn ends; then in lane->broken */
    CN_OBJECT_GONE,      /* in lane->gone, and then being freed (L4 of lane.c) */
    CN_OBJECT_STATES
};

struct cn_object {
    struct cn_object_lane *lane;
    struct cn_lane_shard *shard; /* that it belongs to, */
    struct cn_list shard_link;   /* and among its objects, until it is freed */
    struct cn_namespace *ns;
    struct cn_object_key key;
    char *name; /* owned; NULL if it has none or it is not known */
    size_t name_size;
    enum cn_object_state state;
    const struct cn_class *class_; /* NULL until it was started */
    void *instance;                /* the class's */
    struct cn_database *db;        /* opened at first use; NULL before */
    struct cn_list inbox;          /* of struct cn_call, waiting for the input gate */
    unsigned inbox_count;
    size_t inbox_bytes;     /* of their payloads */
    struct cn_list running; /* of struct cn_call, delivered and not answered */
    unsigned running_count;
    unsigned gate_locks;      /* input gate: 0 open */
    unsigned holds;           /* reasons to stay in memory: timers, calls */
    unsigned sockets;         /* accept()ed WebSockets: they keep it as long as they are open */
    unsigned waits;           /* waitUntil() promises */
    unsigned streams[2];      /* that others read of it: S8 of shard.h */
    unsigned transactions;    /* async transactions open: the turn's end does not commit */
    struct cn_list turn_link; /* in lane->turn while it takes part in the running turn */
    struct cn_list outputs;   /* of struct cn_output given in the running turn */
    /* Among them: what the turn sends on WebSockets; or NULL. */
    struct cn_socket_outbox *outbox;
    uint64_t lsn;      /* of the last commit that outputs wait for, */
    uint64_t last_lsn; /* and of the last one at all */
    /* All that the transaction has written so far may leave before it is durable
     * (allowUnconfirmed). Whoever writes anything else clears it. */
    bool unconfirmed;
    struct cn_list idle_link;  /* in lane->idle while nothing is under way, in lane->waiting while
                                  only holds and waits keep it */
    uint64_t idle_since_ms;    /* in lane->idle */
    uint64_t event_ms;         /* the last event came, or ended */
    bool hibernatable;         /* evicted after 10 s, else after 70 s */
    struct cn_list wake_link;  /* in lane->woken */
    struct cn_list press_link; /* in lane->pressed (O8) */
    bool learning;             /* RESTORING, because of O9 */
    bool press_told;           /* what its class knows of that */
    bool kicked;               /* its class has something to go on with: cn_object_kick() */
    bool busy;                 /* cn_object_deliver_all() or cn_object_reset() is on the stack */
    struct cn_list gone_link;  /* in lane->gone */
    /* Alarms (alarm.c). */
    bool alarm_running; /* alarm() is under way */
    bool alarm_set;     /* and it, or somebody meanwhile, has set another; */
    uint64_t
        alarm_was_set;  /* the same when each savepoint was opened, the first in the lowest bit */
    bool alarm_changed; /* in the running turn */
    int64_t alarm_scheduled_ms;
    int64_t alarm_started_ms; /* of the run under way */
    struct cn_err *broken;    /* owned: why it was reset; NULL: it was not */
    bool cut;                 /* its shard was closed: nothing that it gives out leaves any more */
    unsigned broken_faults;
};

/* O6 */
static inline bool cn_object_is_broken(const struct cn_object *object)
{
    return object->state >= CN_OBJECT_BROKEN;
}

/* Its database, opened now if need be. NULL: it cannot be opened, `err` says why. */
struct cn_database *cn_object_database(struct cn_object *object, struct cn_err *err);

/* A turn of the lane; may be nested, and the outermost end commits. */
void cn_turn_begin(struct cn_object_lane *lane);
void cn_turn_end(struct cn_object_lane *lane);
/* Within a turn: the object takes part in it. */
void cn_object_join(struct cn_object *object);
bool cn_object_in_turn(const struct cn_object *object);
/* Within a turn: code runs for `object` from now on, which has joined; NULL: for nobody. */
void cn_turn_focus(struct cn_object_lane *lane, struct cn_object *object);
/* A turn of the object. */
void cn_object_enter(struct cn_object *object);
void cn_object_leave(struct cn_object *object);
/* Within a turn: what the object has written so far is committed, whatever becomes of the turn
 * (O3); not while a transaction is open. Negative: it could not be, and the object is broken. */
int cn_object_commit(struct cn_object *object, struct cn_err *err);
/* Within a turn: its storage is about to be used (O4, O5). */
void cn_object_touch(struct cn_object *object);
/* Within a turn, code running for nobody: what holds that which leaves the lane now (O5), in the
 * turn; NULL: nothing need wait. */
struct cn_object *cn_object_lane_gate(struct cn_object_lane *lane);
/* Whether what leaves for nobody would leave at once. */
bool cn_object_lane_open(struct cn_object_lane *lane);
/* Inside a turn: hold it back as the gate demands. */
void cn_object_output(struct cn_object *object, struct cn_output *output,
                      void (*send)(struct cn_output *output, const struct cn_err *err));
/* Outside a turn or inside: runs `output->send` when everything written by the end of the turn is
 * durable, what was allowed to be unconfirmed too. */
void cn_object_sync(struct cn_object *object, struct cn_output *output,
                    void (*send)(struct cn_output *output, const struct cn_err *err));
/* Whether an output given now would leave at once. */
bool cn_object_output_open(const struct cn_object *object);

/* The constructor has finished (create returned 1). `err` NULL: well. */
void cn_object_started(struct cn_object *object, const struct cn_err *err);

/* Input gate. Unlocking lets waiting calls in, after the running turn. */
void cn_object_lock(struct cn_object *object);
void cn_object_unlock(struct cn_object *object);

/* Calls the class's `resume` in a turn of its own, soon. */
void cn_object_kick(struct cn_object *object);

/* Keep it in memory: something that its code has started is under way. Objects of a class that lets
 * go leave after idle_long_ms without an event all the same. */
void cn_object_hold(struct cn_object *object);
void cn_object_unhold(struct cn_object *object);
/* The same for a waitUntil() promise: for 15 minutes (DO-CTX-2). */
void cn_object_wait(struct cn_object *object);
void cn_object_unwait(struct cn_object *object);

/* A body of it begins to be read by others; the number is for its end. S8 of shard.h. */
unsigned cn_object_stream_begin(struct cn_object *object);
void cn_object_stream_end(struct cn_object *object, unsigned turn);

/* Ends this instance: rolls back the running turn, fails everything under way with `faults`
 * and the sentence; the next call starts a new instance. */
void cn_object_reset(struct cn_object *object, unsigned faults, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Alarms, as the running turn sees them. */
int cn_object_alarm_get(struct cn_object *object, int64_t *alarm_ms, struct cn_err *err);
int cn_object_alarm_set(struct cn_object *object, int64_t alarm_ms, struct cn_err *err);

/* Savepoints of its database (store/database.h), and of what is known of its alarm (A8 of
 * object/alarm.h): no other way to open one, or to end it. */
int cn_object_savepoint(struct cn_object *object, struct cn_err *err);
int cn_object_savepoint_end(struct cn_object *object, int level, bool keep, struct cn_err *err);

#endif
