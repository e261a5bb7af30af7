/* SPDX-License-Identifier: Apache-2.0 */
/* admin/tail.h - GET /api/tail: every message and every request, as JSON lines, while they happen.
 *
 * Messages come from any thread through the tap of base/diag.h, which is on only
 * while somebody listens. They gather in a buffer with a limit; the loop hands
 * them to the listeners. Nobody who logs ever waits: what finds no room, in the
 * buffer or on its way to a slow listener, is dropped, and a line {"dropped":n} says so.
 *
 * In a cluster a listener hears all nodes (admin/gather.h): every line says whose it is
 * ("node"), and {"listening":true} comes when all of them are heard. What other nodes say goes
 * through the same buffer, with its limit. A node that is asked by another (cn_tail_relay()) has a
 * tap and a buffer, as large, for each.
 *
 * Threads:   the admin thread's; messages arrive from any.
 * Ownership: embedded in the admin. A listener's request is released when it goes. */
#ifndef CN_ADMIN_TAIL_H
#define CN_ADMIN_TAIL_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/list.h"

struct cn_control_call;
struct cn_err;
struct cn_gather;
struct cn_http_request;

#define CN_TAIL_PENDING_MAX ((size_t)1 << 20)
#define CN_TAIL_LISTENER_MAX 16

struct cn_tail {
    uv_async_t async;
    struct cn_list listeners; /* of struct cn_tail_listener */
    unsigned listener_count;
    struct cn_diag_tap tap;   /* while there are any */
    struct cn_gather *gather; /* borrowed; its net is NULL on a single server */
    const char *node;         /* the name of this one; NULL: a single server */
    uint64_t subject;         /* while there are listeners; 0: none */
    pthread_mutex_t lock;     /* guards what follows */
    bool heard;               /* all nodes are */
    struct cn_buf pending;    /* whole lines */
    uint64_t dropped;         /* since the last time the loop looked */
};

/* `gather` is borrowed. */
int cn_tail_init(struct cn_tail *tail, uv_loop_t *loop, struct cn_gather *gather);
/* Answers with the stream; the request is the tail's from here on. */
void cn_tail_add(struct cn_tail *tail, struct cn_http_request *http);
/* A listener left: its request was aborted. False if it is none of ours. */
bool cn_tail_abort(struct cn_tail *tail, struct cn_http_request *http);
/* No listener is left; closes the handle. */
void cn_tail_close(struct cn_tail *tail);
void cn_tail_fini(struct cn_tail *tail); /* after the loop has ended */

/* The lines of this node for another one: GET /node/tail, relayed. A handler of control.c. */
int cn_tail_relay(struct cn_control_call *call, struct cn_err *err);

#endif
