/* SPDX-License-Identifier: Apache-2.0 */
/* object/node.h - all objects of this process: namespaces, lanes, the way to an owner.
 *
 * A namespace is a class of a worker (or of a service) with its number in the
 * store and its keys for ids. The node knows all of them; they are never removed
 * while it runs, so pointers to them stay good.
 *
 * An object lives at a place (object/envelope.h): on the lane number hash(id) mod
 * lanes, or on that lane of the node that has its shard (P7 there). Only that lane touches it. With
 * a different number of lanes after a restart the owner is another: nothing on disk depends on it.
 *
 * Threads:   namespaces may be added from any thread (a lock); found ones are read
 *            freely. A cn_object_lane belongs to its thread.
 * Ownership: main() owns the node; lanes are embedded in the worker layer's lanes. */
#ifndef CN_OBJECT_NODE_H
#define CN_OBJECT_NODE_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "base/map.h"
#include "base/rand.h"
#include "object/class.h"
#include "object/envelope.h"
#include "object/id.h"
#include "object/metrics.h"
#include "object/object.h"
#include "object/shard.h"
#include "object/socket.h"

struct cn_node;
struct cn_alarm_queue;
struct cn_database_pool;
struct cn_lent_letter;
struct cn_moved;
struct cn_ws_end;

struct cn_namespace {
    struct cn_node *node;
    uint32_t id;        /* the store's number */
    char *_Atomic name; /* owned by the node: "worker/Class"; another after a rename */
    struct cn_id_keys keys;
    struct cn_object_metrics *metrics; /* owned; one for each lane, by index */
    atomic_uint_least64_t new_objects; /* in a minute: its number times 2^32, plus how many */
    struct cn_list link;
};

/* How a lane finds the class of an object: classes differ by lane (a JavaScript global each), and
 * those of a namespace may by object (worker/script.h, R3). */
typedef bool (*cn_class_find)(struct cn_object_lane *lane, struct cn_namespace *ns,
                              const struct cn_object_key *key, const struct cn_class **class_,
                              void **class_data);

struct cn_node_options {
    struct cn_shards *shards; /* borrowed: the stores it answers for */
    struct cn_clock *clock;   /* borrowed; NULL: the machine's */
    unsigned lane_count;
    uint8_t secret[CN_SIPHASH_KEY_SIZE];
    const struct cn_moved *moved; /* borrowed: ids of objects that came from elsewhere; or NULL */
    cn_class_find find_class;
    void *data;                      /* borrowed: for find_class, by cn_node_data() */
    unsigned idle_ms;                /* 0: 10 s, for hibernatable objects */
    unsigned idle_long_ms;           /* 0: 70 s, for the others */
    unsigned new_objects_per_minute; /* of a namespace of workers; 0: no limit */
    uint64_t disk, life;             /* of a node of a cluster, for addresses; 0: a single one */
};

/* A write by code that did not run for the object (O5). */
struct cn_stray {
    struct cn_list link;
    struct cn_lane_shard *shard;
    uint64_t lsn;
    uint64_t number; /* of its turn: larger ones are later */
};

struct cn_object_lane {
    struct cn_node *node;
    unsigned index;
    uv_loop_t *loop;
    struct cn_desk *desk;       /* borrowed: of the lane around it, */
    struct cn_mailbox *mailbox; /* and that one's */
    void *data;                 /* the lane around it */
    struct cn_map objects;      /* key bytes -> struct cn_object */
    struct cn_list woken;       /* of struct cn_object whose gate has opened */
    struct cn_list pressed;     /* of struct cn_object that wait for the disk (O8), oldest first */
    uint64_t pressed_since_ms;  /* there have been some */
    bool pressed_said;          /* and somebody was told */
    struct cn_list held;        /* of struct cn_output, oldest first (G2) */
    struct cn_list idle;        /* of struct cn_object, longest idle first */
    struct cn_list waiting;     /* of struct cn_object that only holds and waits keep */
    struct cn_list broken;      /* of struct cn_object to be retired by the next sweep */
    struct cn_list gone;        /* of struct cn_object that were, to be freed by it */
    struct cn_lane_shard *shards; /* borrowed: shard_count of them, by index */
    unsigned shard_count;
    unsigned draining_count;      /* of them that are to say when nothing is left */
    struct cn_lane_shard *wanted; /* whose flusher is to wake the lane; NULL: none */
    uv_async_t durable;           /* flushers wake the lane */
    atomic_bool log_failed;       /* set by one of them; so is that of its shard */
    uv_timer_t clock;             /* evictions and alarms */
    unsigned turn_depth;          /* 0: no turn */
    struct cn_list turn;          /* of struct cn_object that take part in the running turn */
    struct cn_object *current;    /* for whom code runs in it; NULL: nobody */
    struct cn_object *nobody;     /* owned: its gate holds what code of no object sends (O5) */
    bool strayed;                 /* in the running turn an object was written to by others */
    struct cn_list strays;        /* of struct cn_stray, oldest first: not known to be durable */
    uint64_t stray_last;          /* number of the last */
    uint64_t stray_done;          /* all up to this number are durable */
    bool learns;                  /* the store of one is told a name (O9) */
    bool stopping;
    unsigned idle_ms, idle_long_ms;
    struct cn_alarm_queue *alarms; /* owned; alarm.c */
    struct cn_map restores;        /* key bytes -> what restore.c knows of it */
    struct cn_map socket_sets;     /* key bytes -> struct cn_socket_set; socket.c */
    struct cn_list socket_events;  /* of struct cn_socket_event with a time to watch */
    struct cn_list sockets_told;   /* of struct cn_object_socket that have left their sets */
    struct cn_rand rand;
    size_t live_count;
    size_t socket_count;     /* WebSockets of its objects, and */
    size_t hibernated_count; /* those among them whose object is not in memory */
    uint64_t turn_ticks;     /* when code began to run for `current` */
    unsigned handle_count;   /* libuv handles to be closed */
    size_t check_pause;      /* cn_check_due() */
    void (*stopped)(struct cn_object_lane *lane);
    /* For classes without JavaScript: `own` is to be accepted by an object, `other` goes on its way
     * in a response, which has the address. False: there are too many, and both have been released.
     * NULL: the lane has no WebSockets. */
    bool (*offer_socket)(struct cn_object_lane *lane, struct cn_ws_end *own,
                         struct cn_ws_end *other, char address[CN_SOCKET_ADDRESS_SIZE]);
    /* K7 of object/socket.h: sockets go to the node that has their object now; takes their ends
     * over. NULL: there are no other nodes. */
    void (*send_sockets)(struct cn_object_lane *lane, const struct cn_socket_party *party);
    /* And come from one: what the call carries is adopted, and it is answered. */
    void (*take_sockets)(struct cn_object_lane *lane, struct cn_call *call);
    const struct cn_compiled_host *host; /* for them: module/worker.h; NULL: none */
    /* For them too: sends a call to what a worker has lent (object/lent.h) when the gate opens.
     * False: there is no such worker, and the letter is as it was. NULL: the lane has no workers.
     */
    bool (*send_lent)(struct cn_object_lane *lane, struct cn_lent_letter *letter,
                      struct cn_object *gate);
};

struct cn_node *cn_node_new(const struct cn_node_options *options);
void cn_node_free(struct cn_node *node); /* after every lane has stopped */
struct cn_shards *cn_node_shards(struct cn_node *node);
struct cn_clock *cn_node_clock(struct cn_node *node);
void *cn_node_data(struct cn_node *node);
/* Behind addresses that are of this life of this node: "@<disk>.<life>"; "" of a single node. */
const char *cn_node_mark(const struct cn_node *node);
#define CN_NODE_MARK_SIZE 36

/* Finds or makes a namespace; durable when it returns. */
int cn_node_namespace(struct cn_node *node, const char *name, struct cn_namespace **ns,
                      struct cn_err *err);
/* The namespace with this number, which the store knows, under its present name. */
int cn_node_namespace_open(struct cn_node *node, uint32_t id, const char *name,
                           struct cn_namespace **ns, struct cn_err *err);
/* The namespace with this number among those made so far, or NULL. */
struct cn_namespace *cn_node_namespace_find(struct cn_node *node, uint32_t id);
/* The same by its name. */
struct cn_namespace *cn_node_namespace_named(struct cn_node *node, const char *name);
/* The highest number among them; 0: there is none. */
uint32_t cn_node_namespace_last(struct cn_node *node);
/* How many have been made. Any thread. */
unsigned cn_node_namespace_count(struct cn_node *node);

/* On the lane's thread. */
int cn_object_lane_start(struct cn_object_lane *lane, struct cn_node *node, struct cn_desk *desk,
                         void *data, struct cn_err *err);
/* A desk's step for lanes that have nothing but objects. */
void cn_object_lane_step_desk(struct cn_desk *desk);
/* Lets every object go (their calls fail), closes its handles, calls back. */
void cn_object_lane_stop(struct cn_object_lane *lane, void (*stopped)(struct cn_object_lane *lane));
/* Does what is ready: calls to be delivered, outputs whose writes are durable. Called by the
 * guest when a turn has ended, so that no trip through the loop is needed. */
void cn_object_lane_step(struct cn_object_lane *lane);
/* Frees objects that have ended. Only from the loop, in no turn and no step (L4 of lane.c). */
void cn_object_lane_sweep(struct cn_object_lane *lane);

/* W3 of base/loop.h, outside of turns and steps: counts of objects, of what waits and runs for
 * each, and of sockets, alarms and envelopes, against the tables. */
void cn_object_lane_check(const struct cn_object_lane *lane);

/* Whether what the lane knows of the object (a value in a cache) may be told now: its shard is open
 * here, and the node may answer for it. */
bool cn_object_lane_serves(struct cn_object_lane *lane, const struct cn_object_key *key);
/* And whether it may not be told without the object: answers are verified (K5 of store/sink.h). */
bool cn_object_lane_verifies(struct cn_object_lane *lane, const struct cn_object_key *key);

/* Drops up to `count` idle objects now, the longest idle first: memory is short. Returns how
 * many. */
size_t cn_object_lane_evict(struct cn_object_lane *lane, size_t count);

/* The lane with this index, or NULL. */
unsigned cn_node_lane_count(const struct cn_node *node);
struct cn_object_lane *cn_node_lane(struct cn_node *node, unsigned index);
/* Where the object lives, or where it is known which node has it. */
struct cn_place cn_node_place(struct cn_node *node, const struct cn_object_key *key);
/* The lane of this process that it lives on. */
struct cn_object_lane *cn_node_owner(struct cn_node *node, const struct cn_object_key *key);

/* Calls back for every namespace made so far, under the lock that guards them: be quick. */
void cn_node_each_namespace(struct cn_node *node,
                            void (*each)(void *data, const struct cn_namespace *ns), void *data);

/* Where a lane counts what its object does. */
static inline struct cn_object_metrics *cn_object_metrics(const struct cn_object *object)
{
    return &object->ns->metrics[object->lane->index];
}

#endif
