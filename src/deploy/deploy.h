/* SPDX-License-Identifier: Apache-2.0 */
/* deploy/deploy.h - from projects on disk to a deployment that lanes can run.
 *
 * Projects lie on the server or were uploaded (deploy/hosted.h); a deployment is made of both.
 *
 *   P1  What a deployment changes durably (which versions serve, classes) is written when it has
 *       started on the first lane, and before a request reaches it (struct cn_deployment.commit).
 *   P2  A deployment by upload changes what was uploaded and nothing else. Projects on the server's
 *       disk are read and built at the start and when a reload is asked for; an upload leaves them
 *       as they last served (struct cn_own), whatever has become of their files.
 *   P3  At the start, a project that does not build or does not start takes no neighbour with it:
 *       it is `broken` as an upload is (H5 of hosted.h), or fails alone (F1 of worker/script.h). A
 *       project alone ends the start, and so does a configuration that cannot be read.
 *
 * Threads:   cn_deployer_load() runs on whichever thread cn_serve() chooses, one
 *            at a time; cn_deployer_changed() and _each_folder() beside it (a
 *            lock guards what they share).
 * Ownership: the caller's memory. */
#ifndef CN_DEPLOY_DEPLOY_H
#define CN_DEPLOY_DEPLOY_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "project/bundler.h"
#include "project/deploy_classes.h"
#include "project/project.h"

struct cn_depot;
struct cn_depot_script;
struct cn_depot_state;
struct cn_deployment;
struct cn_disk;
struct cn_fleet;
struct cn_monitor;
struct cn_err;
struct cn_node;

/* What a file looked like. */
struct cn_stamp {
    char *path;   /* owned */
    int64_t size; /* -1: absent */
    int64_t mtime_ns;
};

enum cn_tree_kind {
    CN_TREE_ASSETS,
    CN_TREE_BUILD, /* what a build command reads */
    CN_TREE_SOURCE /* where `main` is; looked at after a failure alone */
};

/* What a folder and those below it looked like. */
struct cn_tree {
    enum cn_tree_kind kind;
    char *folder; /* owned */
    uint64_t sum; /* of names, sizes and times */
};

/* The projects of the server's disk, as they are in a deployment (P2). */
struct cn_own {
    unsigned refs;               /* all on the thread that loads, or commits */
    struct cn_project *projects; /* owned; their sources are in: */
    struct cn_script **scripts;  /* references */
    size_t count;
};

/* Which projects, and what the command line says about them. Texts are borrowed. */
struct cn_deploy_options {
    const char *const *paths; /* of the projects */
    size_t path_count;        /* 0: the current folder, or none (`empty`) */
    bool empty;               /* no project is fine: what is served comes by upload */
    struct cn_project_options project;
    struct cn_deploy_wishes wishes;
    bool development; /* cairn dev */
};

struct cn_deployer {
    struct cn_deploy_options options; /* with at least one path */
    char *told;                       /* owned: what was last said about the configurations */
    struct cn_bundler bundler;
    struct cn_monitor *monitor; /* borrowed: builds for us, who are in a sandbox; NULL: we build */
    struct cn_disk *disk;       /* borrowed: the data directory, if there is a node */
    const struct cn_ledger *ledger; /* borrowed: classes that several servers share; NULL: none */
    struct cn_node *node;   /* borrowed; NULL: no project has Durable Objects, or nothing serves */
    struct cn_depot *depot; /* borrowed: workers deployed by upload; NULL: none are taken */
    struct cn_fleet *fleet; /* borrowed: servers that have the depot in common; NULL: none */
    struct cn_own *served;  /* a reference: of the last that was committed; or NULL */
    char *data;             /* owned: the data directory; the same until the end */
    struct cn_depot_state *state;     /* owned reference: of which the last deployment was made */
    struct cn_project bare;           /* what stands for a first project where there is none */
    struct cn_buf classes;            /* classes.json as it shall be, while a deployment starts */
    struct cn_bundler hosted_bundler; /* builds uploads beside a load */
    pthread_mutex_t building;         /* guards it */

    pthread_mutex_t lock;        /* guards what follows */
    struct cn_project *projects; /* as of the last good load: those of `own`, then uploads; owned */
    size_t project_count;
    struct cn_own *own; /* a reference; NULL: before the first load, all of `projects` are owned */
    struct cn_stamp *stamps; /* configuration, secrets... as last read, good or not; owned */
    size_t stamp_count;
    struct cn_tree *trees; /* likewise; owned */
    size_t tree_count;
    bool failed;   /* the last load did not succeed, */
    char *problem; /* and why: owned, or NULL */
};

int cn_deployer_init(struct cn_deployer *deployer, const struct cn_deploy_options *options,
                     struct cn_err *err);
void cn_deployer_fini(struct cn_deployer *deployer);

/* Reads the configurations; the server's own settings are in the first project's. */
int cn_deployer_open(struct cn_deployer *deployer, struct cn_err *err);

/* The first project, or what stands for it: the server's own settings. */
const struct cn_project *cn_deployer_settings(const struct cn_deployer *deployer);
/* Checks and builds a version of a worker that was uploaded (struct cn_v4.build). Any thread. */
int cn_deployer_build_version(void *deployer, const struct cn_depot_script *script,
                              const char *version, struct cn_err *err);

/* Whether a project has Durable Objects: then the server needs its data directory. */
bool cn_deployer_wants_node(const struct cn_deployer *deployer);

/* Makes the deployment (struct cn_serve_options.load); `reread`: projects on disk are read and
 * bundled again (P2). */
int cn_deployer_load(void *deployer, bool reread, struct cn_deployment **deployment,
                     struct cn_err *err);

/* Only the bundles: in the process outside of a sandbox (struct cn_monitor_builder.build). */
int cn_deployer_build(void *deployer, struct cn_err *err);
/* Ends what builds; from any thread. */
void cn_deployer_cancel(void *deployer);

/* In development: true if a file that went into the last load, good or not, has changed; `what` gets
 * its name, for people (may be NULL). */
bool cn_deployer_changed(struct cn_deployer *deployer, struct cn_buf *what);
/* Why the last load has failed: a title, an empty line, what the bundler said. Owned by the caller;
 * NULL: it has not. */
char *cn_deployer_problem(struct cn_deployer *deployer);
/* Calls `visit` for every folder in which a change matters; the same one may come twice. */
void cn_deployer_each_folder(struct cn_deployer *deployer,
                             void (*visit)(const char *folder, void *data), void *data);

#endif
