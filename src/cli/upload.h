/* SPDX-License-Identifier: Apache-2.0 */
/* cli/upload.h - a project as an upload to a server elsewhere: what `cairn deploy --server` and
 * `cairn versions upload` send (v4/v4_upload.c has the other side).
 *
 *     project ──► modules (tools/bundler/upload.mjs) ─┐
 *             ──► files of assets ──► a session ──────┤ PUT or POST, multipart ──► a version
 *             ──► bindings, migrations, limits ───────┘
 *                 then routes, host names, schedules, consumers of queues: requests of their own
 *
 *   L3  Secrets of the project (.dev.vars, .env) stay here: a server gets secrets by `cairn
 *       secret`.
 *   L4  What the project asks for and an upload cannot carry is refused before anything is sent.
 *
 * Ownership: the struct owns what it points to but `remote` and `options`. */
#ifndef CN_CLI_UPLOAD_H
#define CN_CLI_UPLOAD_H
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/remote.h"
#include "project/project.h"

struct cn_assets;

struct cn_upload_options {
    struct cn_remote_options remote; /* first */
    struct cn_project_options project;
    const char *path;  /* of the project; NULL: the current folder */
    bool keep_vars;    /* those that the server has and the configuration does not */
    bool only_version; /* it is kept, and serves nobody yet */
};

struct cn_upload {
    const struct cn_upload_options *options;
    struct cn_remote *remote; /* NULL: nothing is sent */
    struct cn_project project;
    struct cn_bundler bundler;
    struct cn_assets *assets; /* NULL: none */
    struct cn_buf bindings;   /* a list of JSON, without brackets */
    struct cn_buf shown;      /* "NAME\tRESOURCE\n" of each of them */
    char *jwt;                /* of the files of assets */
    char *site_id;            /* of the namespace with the files of a Workers Site; NULL: none */
    char *migration_tag;      /* where the worker on the server is; NULL: nowhere yet */
    bool exists;              /* the server has it */
    size_t new_assets;        /* files that were sent */
    char version[64];         /* its id, once it is there */
};

/* Reads and bundles the project (L4); nothing is sent. */
int cn_upload_prepare(struct cn_upload *upload, const struct cn_upload_options *options,
                      struct cn_err *err);
/* Sends it. */
int cn_upload_run(struct cn_upload *upload, struct cn_remote *remote, struct cn_err *err);
void cn_upload_fini(struct cn_upload *upload);

/* The size of what is sent of modules. */
size_t cn_upload_size(const struct cn_upload *upload);
/* Prints the bindings as a table, if there are any. */
void cn_upload_print_bindings(const struct cn_upload *upload);

/* --- shared by its files -----------------------------------------------------------------------
 */

/* upload_send.c: files of assets that the server does not have, and the session's token. */
int cn_upload_assets(struct cn_upload *upload, struct cn_err *err);
/* upload_site.c: files of a Workers Site that the server does not have. */
int cn_upload_site(struct cn_upload *upload, struct cn_err *err);
/* Routes, host names, schedules, consumers; what came of it is printed. */
int cn_upload_triggers(struct cn_upload *upload, struct cn_err *err);

#endif
