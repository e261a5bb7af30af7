/* SPDX-License-Identifier: Apache-2.0 */
/* admin/inspector.h - a small face of the Chrome DevTools Protocol: `cairn dev --inspector-port`.
 *
 *     GET /json, /json/list    the one target, with the address of its WebSocket
 *     GET /json/version
 *     WS  /ID                  the protocol
 *
 * What the engine's C API gives: console lines and exceptions with the places of the project's
 * files, the scripts with their source maps, the size of the heap, CPU profiles by sampling
 * (worker/profile.h, admin/cpuprofile.h). What it does not give is refused with a sentence:
 * breakpoints and stepping, evaluation, snapshots of the heap.
 *
 *   I1  It listens on loopback alone. The Host of a request must be a loopback name (DNS
 *       rebinding); a request with an Origin must come from DevTools itself, which no page can
 *       claim.
 *   I2  Nothing that is sent to it runs code or changes a worker.
 *   I3  Everything is bounded: clients, messages kept for who comes later, what waits for a client,
 *       what a client sends, a profile. Who logs never waits: what finds no room is dropped, and
 *       told.
 *   I4  One profile at a time, of the client that started it. It ends with its client.
 *
 * Threads:   the admin thread's; messages arrive from any.
 * Ownership: embedded in the admin. */
#ifndef CN_ADMIN_INSPECTOR_H
#define CN_ADMIN_INSPECTOR_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/diag.h"
#include "base/err.h"
#include "base/list.h"

struct cn_control;
struct cn_cpuprofile;
struct cn_deployment;
struct cn_http_server;
struct cn_profile;
struct cn_server;
struct cn_ws_lane;

#define CN_INSPECTOR_CLIENT_MAX 8
#define CN_INSPECTOR_KEPT_MAX 1000          /* messages, */
#define CN_INSPECTOR_KEPT_BYTES (1u << 20)  /* and their bytes */
#define CN_INSPECTOR_TEXT_MAX (64u << 10)   /* of one */
#define CN_INSPECTOR_WAITING_MAX (1u << 20) /* bytes for a client before messages wait */
#define CN_INSPECTOR_SENT_MAX (256u << 10)  /* bytes of what a client sends at once */
#define CN_INSPECTOR_MAP_MAX (16u << 20)    /* bytes of a source map that is shown */

struct cn_inspector {
    const struct cn_control *control; /* borrowed: what is served */
    struct cn_server *server;         /* borrowed: whose lanes are asked; NULL: none */
    struct cn_http_server *http;      /* NULL: it is off */
    struct cn_ws_lane *ws;
    uint16_t port;
    char id[33]; /* random */
    struct cn_list clients;
    unsigned client_count;
    struct cn_deployment *shown; /* a reference, while there are clients */
    unsigned generation;         /* of it */
    struct cn_profile *profile;  /* a reference, while lanes sample; NULL: they do not (I4) */
    struct cn_cpuprofile *tree;  /* owned: what it has become so far */
    void *profiler;              /* whose it is: a client */
    int64_t profile_id;          /* of the command that waits for it; -1: none does yet */
    uv_async_t async;
    uv_timer_t timer; /* looks for a new deployment, while there are clients */
    struct cn_diag_tap tap;
    pthread_mutex_t lock; /* guards what follows */
    struct cn_list kept;  /* of messages, oldest first */
    size_t kept_count, kept_bytes;
    uint64_t next_number;
};

/* Opens it on 127.0.0.1; port 0: any. */
int cn_inspector_open(struct cn_inspector *inspector, uv_loop_t *loop,
                      const struct cn_control *control, struct cn_server *server, uint16_t port,
                      struct cn_err *err);
/* Cuts its clients and closes the listener; `closed` runs when that is done. One that is off does
 * nothing, and returns false. */
bool cn_inspector_stop(struct cn_inspector *inspector, void (*closed)(void *data), void *data);
/* After that: closes the handles. */
void cn_inspector_close(struct cn_inspector *inspector);
void cn_inspector_fini(struct cn_inspector *inspector); /* after the loop has ended */

#endif
