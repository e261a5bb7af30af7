/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/whole/whole.h - whole nodes in one thread, moved by one seed.
 *
 * What runs is the server's own code, the very objects of its binary: the host and its workers
 * (shard/), the member (membership/), links and pipes between nodes (peer/), calls between nodes
 * (remote/), objects of a class in C on a lane (object/), and replicas with their logs, databases
 * and checkpoints (store/, SQLite). Below them is simulated:
 *
 *   machine.c  threads, locks, clocks                    in place of pthreads and the kernel
 *   loop.c     timers, asyncs, the pool                  in place of libuv
 *   net.c      connections                               in place of net/stream.c, TLS, peer/dial.c
 *   pg.c       the engine, by test/simulate/engine.c     in place of membership/engine_pg.c
 *   node.c     a node: what server/ and fleet/ put together, and a class whose objects are lists
 *   whole.c    clients, faults, and what must be true
 *
 * and disks are test/lib/simdisk.h, which tear what was not synced, run full and are copied.
 *
 * An object is the list of the writes that it took, and each answer is the whole list: so a history
 * is judged by the rules of test/simulate/world.h. Clients come to any node, and their calls go
 * where the map of that node says.
 *
 * What is not brought in: JavaScript and its VM; services and bodies of R2; WebSockets; what
 * workers lend each other; deployments and administration; TLS and strangers; the text of SQL for
 * PostgreSQL (test/cluster has a real one); memory that threads share without a lock (see
 * machine.h). absent.c names what is left out by function. */
#ifndef CN_TEST_WHOLE_WHOLE_H
#define CN_TEST_WHOLE_WHOLE_H
#include <uv.h>

#include "base/err.h"
#include "fleet/cluster_private.h"
#include "object/node.h"
#include "remote/remote.h"
#include "test/lib/simdisk.h"
#include "test/simulate/whole/machine.h"
#include "test/simulate/world.h"

extern const char WHOLE_CLUSTER[CN_ENGINE_PG_ID_SIZE];

enum { WISHES = 128 };

/* What a node has besides struct node (world.h). All of it is of one life of its process but the
 * disk. */
struct whole {
    struct process process;
    struct simdisk *disk;
    struct cn_cluster *cluster;
    struct cn_remote *remote;
    struct cn_node *objects;
    struct cn_object_lane lane;
    struct cn_namespace *ns;
    uv_loop_t loop;
    struct cn_mailbox mailbox;
    struct cn_desk desk;
    /* What clients ask of the lane: ops, by their numbers. */
    uint16_t wishes[WISHES];
    unsigned wish_count;
    uv_async_t wished;
    bool lane_open;
    /* What an operator, or the world, wants of its main thread. */
    bool leave, hand_over;
    int move_shard, move_to; /* -1: none */
    bool ends, displaced;    /* its main thread is through */
    bool joined;
    struct cn_engine_pg *engine;
    int32_t disk_slow_ms; /* each sync takes up to so long */
    int32_t disk_hangs_at;
};
extern struct whole wholes[NODES];

/* Calls back at that time, as the world. */
void world_later(int32_t at, void (*call)(void *data), void *data);

/* node.c */
void whole_start(int n);
void whole_ask(int n, unsigned op); /* a client's request has come to it */
void whole_wake(int n);             /* its main thread looks what is wanted */

/* pg.c */
void pg_event(struct event *event);
void pg_reset(void);
void pg_hint_all(void);

/* whole.c */
void whole_answered(unsigned op, enum status status, const uint16_t *list, unsigned count);
void whole_ended(int n);

#endif
