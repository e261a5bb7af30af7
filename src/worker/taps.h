/* SPDX-License-Identifier: Apache-2.0 */
/* worker/taps.h - those who listen to a worker while it runs (`wrangler tail`): each invocation of
 * it, once it has ended, becomes a message in the platform's form.
 *
 *     lanes: trace ends ──► filters ──► pending messages ──► notify ──► who reads them
 * (admin/live.h)
 *
 *   L1  A worker to which nobody listens pays one comparison for it.
 *   L2  Nobody waits for a listener: what finds no room is dropped and counted, and a message says
 *       how many.
 *   L3  A listener sees headers and URLs without what looks like a secret.
 *   L5  In a cluster a tap has a copy on every other node (`far`), which the node that has the tap
 *       reads (admin/gather.h) and ends; what comes of them goes into the tap by its bounds. Every
 *       message then says its node.
 *   L4  A tap ends when it is removed, when its time is over, or when its reader goes; one that
 *       nobody has come to read is forgotten.
 *
 * Threads:   any; a lock guards all of it.
 * Ownership: the owner's, which outlives lanes and readers. A tap belongs to the table until it is
 *            attached, then to its reader too. */
#ifndef CN_WORKER_TAPS_H
#define CN_WORKER_TAPS_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/rand.h"

struct cn_json;
struct cn_trace;

#define CN_TAPS_MAX 64                   /* of all workers */
#define CN_TAPS_WORKER_MAX 10            /* of one */
#define CN_TAP_PENDING_MAX (1u << 20)    /* bytes that wait for a reader */
#define CN_TAP_MS (24ll * 3600 * 1000)   /* how long one lasts, */
#define CN_TAP_UNREAD_MS (5 * 60 * 1000) /* and without a reader */
#define CN_TAP_FILTER_MAX 16

struct cn_tap {
    struct cn_list link;
    char id[33], secret[33]; /* random; who knows the secret may read */
    char worker[64];
    char by[33]; /* the id of the token that asked for it; empty: the operator */
    int64_t until_ms, unread_until_ms;
    struct cn_json *filters; /* owned: a list */
    char self[48];           /* the reader's address, for client_ip "self" */
    bool attached, ended;
    bool far;               /* L5: of a listener on another node */
    struct cn_list pending; /* of messages, oldest first */
    size_t pending_bytes;
    uint64_t dropped;
};

struct cn_taps {
    pthread_mutex_t lock;
    struct cn_list items; /* of struct cn_tap, without those that have ended */
    unsigned attached_count;
    struct cn_rand rand;
    char node[64];              /* L5: the name of this one; empty: a single server */
    void (*notify)(void *data); /* something is there for a reader; or NULL */
    void *notify_data;
    atomic_uint count; /* of `items` (L1) */
};

void cn_taps_init(struct cn_taps *taps);
void cn_taps_fini(struct cn_taps *taps); /* no tap is attached */
/* Who is told when there is something to read, from any thread; NULL: nobody. */
void cn_taps_set_notify(struct cn_taps *taps, void (*notify)(void *data), void *data);

/* What is asked for: borrowed. */
struct cn_tap_wish {
    const char *worker, *by;
    const struct cn_json *filters; /* a list as wrangler sends it, or NULL */
    const char *base;              /* of the address, before the secret */
    bool far;                      /* L5 */
};
/* Listens from now on. `shown` gets {"id","url","expires_at"}. */
int cn_taps_add(struct cn_taps *taps, const struct cn_tap_wish *wish, int64_t now_ms,
                struct cn_buf *shown, struct cn_err *err);
/* Appends those of a worker, without what is secret. */
void cn_taps_append(struct cn_taps *taps, const char *worker, struct cn_buf *json);
/* L4. False: there is none. */
bool cn_taps_remove(struct cn_taps *taps, const char *worker, const char *id);

/* Whether somebody listens to the worker. */
bool cn_taps_want(struct cn_taps *taps, const char *worker);
/* The trace has ended. */
void cn_taps_give(struct cn_taps *taps, const struct cn_trace *trace);

/* Becomes the one reader of the tap with this secret. NULL: there is none, or it has one. */
struct cn_tap *cn_taps_attach(struct cn_taps *taps, const char *secret, size_t size,
                              const char *self, int64_t now_ms);
/* 1: a message, the caller's; 0: none is there; negative: the tap has ended. */
int cn_tap_take(struct cn_taps *taps, struct cn_tap *tap, int64_t now_ms, struct cn_buf *message);
/* L4: the reader goes. */
void cn_taps_detach(struct cn_taps *taps, struct cn_tap *tap);

/* --- a cluster: L5 --------------------------------------------------------------------------- */

/* Before lanes start. */
void cn_taps_set_node(struct cn_taps *taps, const char *node);
/* 0: the tap is not there any more. Another number than before: what its copies should know has
 * changed. */
unsigned cn_taps_wanted(struct cn_taps *taps, const char *id);
/* What a copy is made of: {"worker","filters","self"}. */
void cn_taps_append_wish(struct cn_taps *taps, const char *id, struct cn_buf *json);
/* A message of another node, which is an object. */
void cn_taps_pass(struct cn_taps *taps, const char *id, const char *text, size_t size);
/* A sentence about another node. */
void cn_taps_pass_note(struct cn_taps *taps, const char *id, const char *text, int64_t now_ms);

/* The trace as listeners see it. */
void cn_taps_append_trace(const struct cn_trace *trace, struct cn_buf *out);

#endif
