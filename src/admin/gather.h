/* SPDX-License-Identifier: Apache-2.0 */
/* admin/gather.h - what happens on other nodes, while it happens, for those who listen on this one.
 *
 * A *subject* is something to listen to: all messages (admin/tail.h), or a worker (worker/taps.h).
 * For each there is a *source* on every other node of the cluster: a relayed call (admin/relay.h)
 * that answers with lines and does not end. One thread asks all of them, and hands lines over.
 *
 *     a source     is                                      goes on to
 *     OPENING      asked for, nothing has come             LISTENING, LOST
 *     LISTENING    its first line has come, {"listening"}  LOST
 *     LOST         its node has left, or cannot be asked   OPENING, when AGAIN_MS are over and the
 *                                                          node is part of the cluster
 *
 * H1  Nobody waits for a listener. A source holds what one answer holds (CN_RELAY_READY_MAX) and
 *     a line that is not complete, of CN_GATHER_LINE_MAX bytes at most, here; what there is no room
 *     for is dropped where it happened, and counted there.
 * H2  When a source that was LISTENING is lost, or comes back, a line says so; so does a node that
 *     joins.
 * H3  A subject is *ready* when every node of the moment of its beginning listens, or READY_MS have
 *     passed. Who is told then misses nothing of what comes after.
 * H4  When cn_gather_remove() has returned, nothing of the subject is called any more.
 *
 * Threads:   any; callbacks come from the gatherer's thread, with its lock held: they must not
 *            block, nor call the functions of this header.
 * Ownership: embedded in the admin. What `data` of a subject is goes by its `free`. */
#ifndef CN_ADMIN_GATHER_H
#define CN_ADMIN_GATHER_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "admin/relay.h"
#include "base/list.h"

#define CN_GATHER_LINE_MAX ((size_t)1 << 20)
#define CN_GATHER_SUBJECTS_MAX 80u

struct cn_gather_ops {
    const char *method, *target; /* what is asked of the other nodes */
    /* Appends the body of that, or NULL. */
    void (*body)(void *data, struct cn_buf *out);
    /* A line of a node, without its end. */
    void (*line)(void *data, const char *node, const char *text, size_t size);
    /* H2: a sentence about a node. */
    void (*note)(void *data, const char *node, const char *text);
    /* H3; or NULL. */
    void (*ready)(void *data);
    /* 0: nobody listens any more, it ends. Another number than before: it is asked for anew. NULL:
     * until it is removed. */
    unsigned (*wanted)(void *data);
    void (*free)(void *data); /* or NULL */
};

struct cn_gather_subject;

struct cn_gather {
    const struct cn_relay_net *net; /* NULL: there are no other nodes */
    struct cn_relay_waiter waiter;
    uv_thread_t thread;
    pthread_mutex_t lock;  /* guards what follows */
    pthread_cond_t change; /* a subject is ready */
    struct cn_list subjects;
    unsigned count;
    uint64_t last_id;
    bool running, stopping;
};

void cn_gather_init(struct cn_gather *gather, const struct cn_relay_net *net);
/* Ends all subjects and the thread. */
void cn_gather_fini(struct cn_gather *gather);

/* Its number; 0: there are too many, the server stops, or there are no other nodes, and `free` is
 * not called. */
uint64_t cn_gather_add(struct cn_gather *gather, const struct cn_gather_ops *ops, void *data);
void cn_gather_remove(struct cn_gather *gather, uint64_t id);
/* Blocks until it is ready. */
void cn_gather_await(struct cn_gather *gather, uint64_t id);

#endif
