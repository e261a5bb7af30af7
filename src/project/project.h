/* SPDX-License-Identifier: Apache-2.0 */
/* project/project.h - what the commands do with a project before it runs: read its
 * configuration, tell the operator what it says, find its data, bundle it. */
#ifndef CN_PROJECT_PROJECT_H
#define CN_PROJECT_PROJECT_H
#include <stdbool.h>
#include <stdint.h>

#include "project/bundle.h"
#include "project/bundler.h"

struct cn_config;
struct cn_err;
struct cn_modules;

struct cn_project {
    struct cn_config *config; /* owned */
    char *data;               /* owned: its data directory, absolute */
    char *code, *version;     /* owned; of one that was deployed by upload (hosted.h), else NULL */
    unsigned share;           /* of such a one: of new requests, up to CN_SHARE_ALL */
    bool beside;              /* H4 of hosted.h */
    uint64_t start_limit_ms;  /* CPU time of its start; 0: that of any turn */
    bool tolerated;           /* H5: it served before, so others can be served without it */
    char *broken, *way_back; /* owned; H5: why it cannot be served, and what can be done; or NULL */
    struct cn_bundle bundle;
    struct cn_modules *modules; /* a reference, once they are loaded; NULL: it has none */
};

/* What a command line says about projects. Texts are borrowed and outlive what is opened with them;
 * NULL: not given. */
struct cn_project_options {
    const char *data;          /* the data directory, in the place of the configuration's */
    const char *env;           /* environment of the configuration */
    const char *allow_missing; /* keys of the configuration, with commas between them */
    const char **vars;         /* "K=V" */
    size_t var_count;
};

/* Sets up messages by --log (else by [cairn] of the first project). Fails on an unknown form. */
int cn_project_setup_log(const char *log, struct cn_err *err);

int cn_project_open(struct cn_project *project, const char *path,
                    const struct cn_project_options *options, struct cn_err *err);
/* The data directory that --data (or NULL) and the configuration say, absolute. Owned. */
char *cn_project_data(const struct cn_config *config, const char *given);
/* Makes its data directory if there is none: nobody else can look into it. */
int cn_project_make_data(const struct cn_project *project, struct cn_err *err);
/* Appends what the operator should know about the configuration: a line per warning, and, as an
 * information, one for the keys that only the hosted platform uses. */
void cn_project_tell(const struct cn_project *project, struct cn_buf *lines);
/* Logs such lines. */
void cn_project_log(const struct cn_buf *lines);
/* Bundles into `out`, or into the data directory if that is NULL. What esbuild says is printed as
 * it words it; its errors go into `messages` too, unless that is NULL. */
int cn_project_bundle(struct cn_project *project, struct cn_bundler *bundler, const char *out,
                      bool development, struct cn_buf *messages, struct cn_err *err);
/* Bundles for another server: modules as they are uploaded, with a manifest that tells the types of
 * those that are no code ("types") and whether the main one is a service worker. */
int cn_project_bundle_upload(struct cn_project *project, struct cn_bundler *bundler,
                             struct cn_err *err);
/* Takes the bundle that another process has just made. */
int cn_project_take_bundle(struct cn_project *project, struct cn_bundler *bundler,
                           struct cn_err *err);
/* Loads the modules that [cairn.modules] names, if any, and checks that they have the classes that
 * its bindings and migrations name. */
int cn_project_load_modules(struct cn_project *project, struct cn_err *err);
/* The file of a module, absolute; owned. */
char *cn_project_module_path(const struct cn_config *config, const char *path);
/* How long the past of its data directory is kept. */
int64_t cn_project_history_ms(const struct cn_project *project);
void cn_project_close(struct cn_project *project);

#endif
