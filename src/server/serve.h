/* SPDX-License-Identifier: Apache-2.0 */
/* server/serve.h - the life of a serving process: start, reload, drain, stop.
 *
 *     load ──► start lanes ──► deploy ──► listen, "cairn: ready on ..." ──► serve
 *                                 ▲                                          │
 *               SIGHUP, cn_serve_reload() (load again; the last good         │
 *               version keeps serving if that fails)                         │
 *               SIGTERM, SIGINT: drain up to 30 s, then stop ◄───────────────┘
 *               (a second signal stops at once)
 *
 * A lane that is stuck in a call that nothing can interrupt (worker/watchdog.h) ends only with the
 * process. So the process starts anew in its place: the other lanes finish what they can, then it
 * executes itself with the listening sockets open, so that clients who connect meanwhile wait and
 * are not refused. What was acknowledged is on disk, as after a crash; nothing else is promised.
 *
 * V1  SIGTERM ends the process within the time to drain and STOP_MS if a script runs on, and within
 *     half a minute more whatever else the lanes wait for.
 * V2  The sockets listen from the start of the first process to the end of the last.
 * V3  Once it serves, SIGTERM, SIGINT and SIGHUP never end the process by their default action,
 *     however many come and when: it ends by itself, in order, with its exit code.
 *
 * V5  A node of a cluster gives away what it answers for when its own requests have ended, before
 *     its lanes do (`depart`): calls of other nodes that run in its objects end in time, those
 *     that come later are carried out where the objects are then. All of it is part of the time to
 *     drain.
 *
 * V6  Where somebody is told of the end of every load (`on_settled`: cairn dev), a first deployment
 *     that fails is like any other: the process listens, and what is wrong can be mended.
 *
 * V4  A first deployment that fails with CN_EABORTED is outdated (fleet/fleet.h, W4): it is loaded
 *     again.
 *
 * Threads: cn_serve() runs on the calling thread until the end; `load` runs on
 * a thread of libuv's pool after the first time. */
#ifndef CN_SERVER_SERVE_H
#define CN_SERVER_SERVE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "worker/script.h"
#include "worker/server.h"

struct cn_admin_options;
struct cn_otlp;
struct cn_serve;

/* Where it is reached; texts are borrowed. Ports are 0 and hosts NULL where there is no listener. */
struct cn_serve_addresses {
    char url[160];       /* of the workers */
    bool tls, everybody; /* ... which listen on all interfaces */
    uint16_t port;
    const char *admin_host, *health_host;
    bool admin_tls;
    uint16_t admin_port, health_port, inspector_port;
};

struct cn_serve_options {
    /* Without an address that somebody chose, a port that is taken is no error: one of the next
     * PORTS_BESIDE is. */
    bool next_port;
    struct cn_server_options server; /* cn_serve() sets loop, exporter, background, callbacks */
    const struct cn_admin_options *admin; /* borrowed */
    struct cn_otlp *otlp;                 /* borrowed; NULL: nothing is exported */
    unsigned drain_ms;                    /* 0: 30 s */
    /* Makes the deployment anew: configuration, bundles. The reference becomes the caller's. */
    /* `reread`: cn_serve_reload() asked for it, or it is the first; else cn_serve_deploy() did. */
    int (*load)(void *data, bool reread, struct cn_deployment **deployment, struct cn_err *err);
    /* Once the loop exists, on its thread: a place to start watchers. May be NULL. */
    void (*on_start)(struct cn_serve *serve, void *data);
    /* The first deployment is on all lanes; before anything listens. May be NULL. */
    void (*on_serving)(void *data);
    /* It has said where it listens: says what else there is of addresses. NULL, or false: they are
     * a message each. */
    bool (*on_ready)(void *data);
    /* Serving ends: close what on_start opened. May be NULL. */
    void (*on_stop)(struct cn_serve *serve, void *data);
    /* V5, on a thread of libuv's pool: returns when it is done. May be NULL. */
    void (*depart)(void *data);
    /* cairn dev: what cannot be loaded or started does not end the process (V6); each time a load
     * is over, with what is wrong or NULL. May be NULL. */
    void (*on_settled)(struct cn_serve *serve, const struct cn_err *err, void *data);
    void *data;
};

/* Serves until a signal ends it. Returns 0 after an orderly end. */
int cn_serve(const struct cn_serve_options *options, struct cn_err *err);
/* Load and deploy again; from the serving thread. While one runs, another is remembered. */
void cn_serve_reload(struct cn_serve *serve);
/* The same from any other thread, for what was uploaded: projects on disk are not read again.
 * Waits: 0, or why the last good version keeps serving. */
int cn_serve_deploy(void *serve, struct cn_err *err);
/* The same, and projects on disk are read again. */
int cn_serve_read_again(void *serve, struct cn_err *err);
/* Whether a load or a deployment is under way; from the serving thread, as the next ones. */
bool cn_serve_is_loading(const struct cn_serve *serve);
/* cn_server_release() */
void cn_serve_release(struct cn_serve *serve, uint64_t last, const char *problem);
/* Once it is ready; from the serving thread. */
void cn_serve_addresses(const struct cn_serve *serve, struct cn_serve_addresses *at);
struct uv_loop_s *cn_serve_loop(struct cn_serve *serve);

#endif
