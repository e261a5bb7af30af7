/* SPDX-License-Identifier: Apache-2.0 */
/* remote/private.h - what the parts of remote/ tell each other: remote.c has the node and its
 * lanes, outgoing.c calls that go out, incoming.c those that come in, stubs.c calls to what workers have
 * lent, leases.c for how long it is, sockets.c WebSockets. */
#ifndef CN_REMOTE_PRIVATE_H
#define CN_REMOTE_PRIVATE_H
#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/list.h"
#include "base/map.h"
#include "object/envelope.h"
#include "object/node.h"
#include "object/shard.h"
#include "remote/leases.h"
#include "remote/remote.h"
#include "worker/ws_far.h"

struct cn_call;
struct cn_dispatch;
struct cn_node_calls_door;
struct cn_question;
struct cn_reply;

/* A shard that others have, on one lane. */
struct cn_outgoing {
    struct cn_remote_lane *lane;
    unsigned shard;
    struct cn_list link; /* of lane->blocked, while something is held */
    struct cn_list held; /* of struct cn_outgoing_call, oldest first */
    struct cn_list sent; /* the same, not answered */
    uint32_t turn;       /* O3; from 1 */
    uint64_t disk;       /* that a call was sent to last, */
    uint32_t sent_turn;  /* and in which turn */
    size_t others;       /* calls in `sent` that went to another one, or in another: O3, O4 */
    uint64_t hint;       /* O5: a disk that is asked next; 0: none */
    uint64_t hinted_ms;  /* when there was one last */
};

struct cn_remote_lane {
    struct cn_remote *remote;
    struct cn_object_lane *objects;
    struct cn_carrier carrier; /* of the lane's desk */
    struct cn_pipes *pipes;    /* NULL: closed */
    struct cn_outgoing *ways;  /* owned; by shard */
    struct cn_list blocked;    /* of struct cn_outgoing */
    uv_timer_t timer;          /* runs while something is held */
    uint64_t last_number;      /* of a call */
    uint64_t last_event;       /* that was sent: which lane of its node gets it */
    size_t held_count, held_bytes;
    struct cn_lane *worker;          /* the lane around it; NULL: it has objects alone */
    struct cn_ws_carrier ws_carrier; /* for it */
    struct cn_list far_routes;       /* sockets.c */
    uint64_t far_pass;
    uv_timer_t far_timer; /* runs while one of them has something to ask again */
    struct cn_map askers; /* number of a pipe -> uint32_t[]: O3, by shard */
    struct cn_leases leases;
    struct cn_host_session told[CN_CLUSTER_NODES_MAX]; /* the sessions that were live last, */
    unsigned told_count;                               /* W3 of sockets.h */
};

/* Relaxed: they are only looked at. */
struct cn_remote_numbers {
    atomic_uint_least64_t sent, served, refused, lost, given_up, held, leases, let_go;
};

struct cn_remote {
    struct cn_remote_options options;
    struct cn_tls_context *tls;
    struct cn_pipe_budget budget;
    struct cn_remote_numbers numbers;
    pthread_mutex_t lock;          /* guards what follows */
    struct cn_remote_lane **lanes; /* owned array; NULL: not open */
    /* What the engine told last, for lanes that open later. */
    uint64_t own;
    struct cn_host_session sessions[CN_CLUSTER_NODES_MAX];
    unsigned session_count;
    bool told;
    pthread_mutex_t door_lock; /* guards what follows, and who is in it */
    const struct cn_node_calls_door *door;
};

/* NULL: a single node. */
static inline struct cn_remote_lane *cn_remote_lane_of(const struct cn_object_lane *objects)
{
    struct cn_carrier *carrier = objects->desk->carrier;
    return carrier ? CN_CONTAINER_OF(carrier, struct cn_remote_lane, carrier) : NULL;
}

static inline void cn_remote_add(atomic_uint_least64_t *number, int64_t by)
{
    atomic_fetch_add_explicit(number, (uint64_t)by, memory_order_relaxed);
}

/* remote.c: a hook of the pipes */
bool cn_remote_address(void *data, uint64_t disk, char address[CN_LINK_ADDRESS_MAX + 1]);

/* outgoing.c */
void cn_outgoing_open(struct cn_remote_lane *lane);
void cn_outgoing_close(struct cn_remote_lane *lane);
void cn_outgoing_check(struct cn_remote_lane *lane); /* by the timer */
/* A call that is AWAY. */
void cn_outgoing_carry(struct cn_remote_lane *lane, struct cn_call *call);

/* incoming.c: a hook of the pipes */
void cn_incoming_asked(void *data, const struct cn_pipe_asker *asker, uint64_t ticket,
                       uint8_t *bytes, size_t size);
void cn_incoming_gone(void *data, const struct cn_pipe_asker *asker);
/* Answers, with `body` taken over; with less if there is no room for it. */
void cn_incoming_reply(struct cn_remote_lane *lane, uint64_t ticket, const struct cn_reply *reply,
                       uint8_t *body, size_t size);

/* A note to an object of the lane, which nobody waits for; to an instance of a worker. */
void cn_incoming_note(struct cn_remote_lane *lane, const struct cn_object_key *key,
                      const char *method, const uint8_t *bytes, size_t size);
void cn_stubs_note(struct cn_remote_lane *lane, uint32_t serial, const char *method,
                   const uint8_t *bytes, size_t size);

/* stubs.c: one that is AWAY, for a node; a question of the type EVENT; of the type TARGET. */
void cn_stubs_carry(struct cn_remote_lane *lane, struct cn_dispatch *dispatch);
void cn_event_asked(struct cn_remote_lane *lane, uint64_t ticket, struct cn_question *question,
                    const uint8_t *body, size_t size);
void cn_stubs_asked(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker, uint64_t ticket,
                    struct cn_question *question, const uint8_t *body, size_t size);

/* sockets.c: a question of the type SOCKETS; and a node that is silent. */
void cn_remote_sockets_asked(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker,
                             uint64_t ticket, const struct cn_question *question,
                             const uint8_t *body, size_t size);
void cn_remote_sockets_break(struct cn_remote_lane *lane, uint64_t disk);
void cn_remote_sockets_on_time(uv_timer_t *timer);
/* `pipes` is NULL: nothing is asked again. */
void cn_remote_sockets_close(struct cn_remote_lane *lane);

/* node_calls.c: a question of the type NODE; and who asked is gone. */
void cn_node_calls_asked(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker,
                         uint64_t ticket, const struct cn_question *question, const uint8_t *body,
                         size_t size);
void cn_node_calls_gone(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker);

#endif
