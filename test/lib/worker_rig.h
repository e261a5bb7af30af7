/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/worker_rig.h - lanes with real JavaScript, for the files of worker/.
 *
 *     struct worker_rig rig;
 *     worker_rig_open(&rig, 1);
 *     CHECK(!worker_rig_deploy(&rig, "default: { fetch: () => new Response('hi') }"));
 *     CHECK_STR("hi", worker_rig_body(&rig, "/"));
 *     worker_rig_run(&rig, 0, look, &what);   look(lane, what) runs on the lane's thread
 *     worker_rig_close(&rig);
 *
 * A script is what a bundle exports, written as the inside of an object. The lanes have threads of
 * their own; the test's thread talks to them over sockets, which give up after thirty seconds, and
 * looks inside with worker_rig_run(). The house timer of a lane is stopped: what it does every
 * second a test does when it likes. With `objects`, each script has the Durable Object class Room,
 * which it exports, bound as ROOM; an object is on the lane that worker_rig_room() was asked for.
 */
#ifndef CN_TEST_WORKER_RIG_H
#define CN_TEST_WORKER_RIG_H
#include <uv.h>

#include "test/lib/test.h"
#include "worker/lane.h"

enum { WORKER_RIG_LANES_MAX = 2, WORKER_RIG_SCRIPTS_MAX = 3 };

struct worker_rig {
    struct cn_lane lanes[WORKER_RIG_LANES_MAX];
    unsigned lane_count;
    uint16_t port; /* lane 0 alone listens: a test knows where its requests are */
    size_t heap_bytes_max;
    uint64_t cpu_limit_ms;
    bool objects;         /* the lanes have a node: */
    struct cn_disk *disk; /* its data, in a fresh directory */
    struct cn_store *store;
    struct cn_shards *shards;
    struct cn_node *node;
    uv_sem_t answered; /* on_deployed and on_drained */
    struct cn_err deploy_err;
};

/* Of a rig that is zero, but for heap_bytes_max, cpu_limit_ms and objects, which may be set. */
void worker_rig_open(struct worker_rig *rig, unsigned lane_count);
void worker_rig_close(struct worker_rig *rig);

/* NULL: it is current on every lane; else why it is not. A script is called "worker". */
const char *worker_rig_deploy(struct worker_rig *rig, const char *exports);
/* On lane 0 alone, and with something that a thread has to do first (N5 of lane.h); `answered` is
 * posted at the end. */
void worker_rig_begin(struct worker_rig *rig, const char *exports,
                      int (*commit)(void *data, struct cn_err *err), void *data);
/* Several: names and exports in turns, each for the host NAME.test; NULL at the end. */
const char *worker_rig_deploy_named(struct worker_rig *rig, const char *name, ...);

void worker_rig_run(struct worker_rig *rig, unsigned lane,
                    void (*work)(struct cn_lane *lane, void *data), void *data);
/* Runs `holds` on the lane until it returns true; fails the test after thirty seconds. */
void worker_rig_until(struct worker_rig *rig, unsigned lane,
                      bool (*holds)(struct cn_lane *lane, void *data), void *data);

/* A request whose answer is read later; a socket. `host` may be NULL. */
int worker_rig_send(struct worker_rig *rig, const char *host, const char *path);
/* What came until the connection ended, head and all; closes the socket. Valid until the next
 * call. */
const char *worker_rig_receive(int fd);
const char *worker_rig_get(struct worker_rig *rig, const char *path);
const char *worker_rig_body(struct worker_rig *rig, const char *path);
/* The status of an answer as it was received. */
int worker_rig_status(const char *answer);

/* A name of an object of the worker's class Room that lives on this lane; valid until the next
 * call. */
const char *worker_rig_room(struct worker_rig *rig, const char *worker, unsigned lane);

/* The current instance of the first script. */
struct cn_instance *worker_rig_instance(struct cn_lane *lane);

#endif
