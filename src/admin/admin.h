/* SPDX-License-Identifier: Apache-2.0 */
/* admin/admin.h - the administration of a running server, on a thread of its own.
 *
 * Two listeners with the same requests: the control socket DATA/control.sock,
 * which the commands of this machine use and whose file mode says who may, and
 * (optional) an HTTP listener that asks for a token (admin/guard.h). A third, optional too, has
 * nothing but the first two requests below and may be open to a load balancer.
 *
 *     GET /              the dashboard (admin/dashboard.h)
 *     GET /healthz       the process answers
 *     GET /readyz        it serves: deployed, not draining, writes are accepted
 *     GET /metrics       Prometheus text (admin/metrics.h)
 *     GET /openapi.json  the control API
 *     /api/...           the control API (admin/control.h)
 *     /client/v4/tails/  WebSockets of listeners (admin/live.h)
 *
 * A1  Whoever can open the socket's file (mode 0600) may everything; on the port only what
 *     admin/guard.h lets through. The file goes with the server.
 * A2  A socket on which another server answers is left to it; one that nobody answers on, of a
 *     server that was killed, is taken over.
 * A3  The thread has a loop and never waits: all but the last are answered on it however busy lanes
 *     are. Each control call gets a thread for itself, CN_ADMIN_JOB_MAX at most, whose answer is
 *     streamed by the loop as fast as its reader takes it. No token takes all of them, and all of
 *     them together leave some to the operator.
 * A5  The listener for health answers /healthz and /readyz, and 404 to all else, whatever comes
 *     with it: no token, no host and no path leads from there to anything else.
 * A4  Its end cuts whoever listens and cancels calls, and waits for their threads.
 *
 * Threads:   start and stop on the owner's; cn_admin_set_state() from any.
 * Ownership: the owner's. Start it after the lanes, stop it before them. */
#ifndef CN_ADMIN_ADMIN_H
#define CN_ADMIN_ADMIN_H
#include <stdbool.h>
#include <stdint.h>

#include "admin/control.h"
#include "base/err.h"

struct cn_admin;
struct cn_metrics_sink;
struct cn_otlp;
struct cn_server;
struct cn_taps;
struct cn_tls_context;

#define CN_ADMIN_JOB_MAX 16
#define CN_ADMIN_TOKEN_JOB_MAX 12  /* of one token */
#define CN_ADMIN_TOKENS_JOB_MAX 14 /* of all but the operator's */

enum cn_admin_state { CN_ADMIN_STARTING, CN_ADMIN_SERVING, CN_ADMIN_DRAINING };

struct cn_admin_options {
    struct cn_control control;
    const char *socket_dir; /* where control.sock goes; NULL: nowhere */
    int control_fd;   /* from cn_admin_bind(), owned; 0: it is made; -1: there shall be none */
    const char *host; /* NULL: no TCP listener */
    uint16_t port;
    const char *health_host; /* A5; NULL: no such listener */
    uint16_t health_port;
    bool port_optional; /* a port that is taken is a warning, not an error */
    const char *token;  /* with `host`: not empty; borrowed until stop */
    /* Who else may ask (guard.h, G5), with control.more_data; or NULL. */
    void (*find_token)(void *data, const char *token, size_t size, struct cn_guard_who *who);
    struct cn_tls_context *tls; /* of the TCP listener; NULL: plain */
    struct cn_server *server;   /* whose lanes are counted; NULL: none */
    struct cn_otlp *otlp;       /* whose exports are counted; NULL: none */
    bool inspector;             /* the DevTools Protocol on 127.0.0.1 (inspector.h), */
    uint16_t inspector_port;    /* 0: any */
    struct cn_taps *taps;       /* who listens to workers (live.h); NULL: nobody can */
    /* What a room above knows of whether the process serves, and counts; any thread. Each may be
     * NULL. Ready: NULL; else `text` with why not. */
    const char *(*unready)(void *data, char *text, size_t size);
    void (*metrics)(void *data, struct cn_metrics_sink *sink);
    void *above; /* for them */
};

/* Makes control.sock in `dir` and listens: for a process that cannot do so later (a sandbox).
 * `*fd` becomes the descriptor; -1 if another server answers there, which is a warning. */
int cn_admin_bind(const char *dir, int *fd, struct cn_err *err);

int cn_admin_start(const struct cn_admin_options *options, struct cn_admin **admin,
                   struct cn_err *err);
/* Cancels what runs, waits for it, frees. NULL is fine. */
void cn_admin_stop(struct cn_admin *admin);
void cn_admin_set_state(struct cn_admin *admin, enum cn_admin_state state);
/* The TCP listener's port; 0: there is none. */
uint16_t cn_admin_port(const struct cn_admin *admin);
/* The same of the listener for health, */
uint16_t cn_admin_health_port(const struct cn_admin *admin);
/* and of the inspector. */
uint16_t cn_admin_inspector_port(const struct cn_admin *admin);

/* A stream socket bound to (with `listen`) or connected to the socket `name` in the folder `dir`,
 * however long its path is. A negative errno on failure. */
int cn_admin_socket(const char *dir, const char *name, bool listen);

#endif
