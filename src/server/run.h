/* SPDX-License-Identifier: Apache-2.0 */
/* server/run.h - a server from its settings to its end: what `cairn serve` and `cairn dev` are.
 *
 * A setting is taken from the command line, else from [cairn] of the first project, else its
 * default. Then everything is opened in order (log, projects, sandbox, data directory, admin
 * listener, exporter), served (serve.h), and closed in the reverse order.
 *
 * U1  A connection whose other side is gone never ends the process: SIGPIPE is ignored before the
 *     first socket is opened. In a cluster that is long before it serves (serve.h): links to other
 *     nodes and the engine are there while projects are built and deployed.
 *
 * Threads: the main one. */
#ifndef CN_SERVER_RUN_H
#define CN_SERVER_RUN_H
#include <stdbool.h>

#include "deploy/deploy.h"

struct cn_err;
struct cn_guest;

/* What the command line says. Texts are borrowed; NULL: not given. */
struct cn_run_options {
    const struct cn_guest *guest; /* what runs scripts */
    struct cn_deploy_options deploy;
    const char *listen; /* HOST:PORT */
    const char *ip;     /* or the two parts of it, as wrangler has them */
    const char *port;
    const char *lanes;
    const char *log; /* "json" or "pretty" */
    const char *tls_cert, *tls_key;
    const char *domain; /* of the server: NAME.DOMAIN leads to the worker NAME */
    const char *admin;  /* HOST:PORT, or off */
    const char *health; /* HOST:PORT; NULL: none */
    const char *admin_token;
    const char *sandbox_write;         /* DIR[:DIR...] */
    const char *inspector_port;        /* dev: NULL: no inspector */
    const char *cluster, *node, *peer; /* fleet/cluster.h */
    bool sandbox, allow_async;
    bool remote, ignored; /* dev: wrangler's --remote, and what is so anyway */
    bool *unread;         /* becomes true if a configuration cannot be read; or NULL */
};

/* Serves until a signal ends it. */
int cn_run(const struct cn_run_options *options, struct cn_err *err);

#endif
