/* SPDX-License-Identifier: Apache-2.0 */
/* deploy/hosted.h - workers that were deployed by upload (v4/depot.h) as projects: from there
 * on they are like those that lie on the server.
 *
 *   H1  What is built is kept with the version: a restart needs no Node.js. A newer server builds
 *       it again if it can, and takes what is there if it cannot.
 *   H2  A migration that deletes a class is the permission to do so: it came with a token that may
 *       deploy. The class can be taken back for the retention time.
 *   H3  What is built is made of the modules that were uploaded and of nothing else: a file of the
 *       server never gets into a bundle or into a message about it. It takes no longer than a
 *       minute: deployments of others wait meanwhile.
 *   H4  Of a worker with several versions that serve, the newest is a project like any other; the
 *       others come after all of those and are `beside`: they have the same routes, schedules and
 *       classes, and nothing is planned for them (deploy.c).
 *   H5  A version that served before and cannot be opened any more (a file is damaged or missing,
 *       its configuration does not fit what else is served, it cannot be built) is `broken`, and
 *       takes nobody with it: what is known of it without its files, its name and its routes, stays
 *       in the deployment, so that requests are answered and its objects keep their classes. It is
 *       said in the log, with a version that could be rolled back to; nothing is rolled back. One
 *       that is new is refused. Of projects on the server's own disk, P3 of deploy.h tells.
 *   H6  Nothing of the operator's (variables of the process and of --var, files, what other
 *       projects are configured with) comes to an uploaded worker by a name that the upload chose.
 *       What is for whoever may deploy he gives by an id: CAIRN_HYPERDRIVE_ID_...
 *
 * Threads: the deploying one; cn_hosted_build() any, with a bundler of its own. */
#ifndef CN_DEPLOY_HOSTED_H
#define CN_DEPLOY_HOSTED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_buf;
struct cn_bundler;
struct cn_depot;
struct cn_depot_script;
struct cn_depot_state;
struct cn_err;
struct cn_project;

/* Of what a deployment is made. All borrowed. */
struct cn_hosted {
    struct cn_depot *depot;
    const struct cn_depot_state *state;   /* as it shall be */
    const struct cn_depot_state *current; /* as it is: what serves in it is tolerated (H5) */
    uint64_t start_limit_ms;              /* CPU time of a version's start */
    bool builds;                          /* false: what was built before is taken as it is */
};

/* How many projects the state has: versions that serve. */
size_t cn_hosted_count(const struct cn_depot_state *state);
/* Opens them, in order. On failure none is left open. */
int cn_hosted_open(const struct cn_hosted *hosted, const char *data, struct cn_project *projects,
                   struct cn_err *err);
/* Checks the files of one (D9 of depot.h), and builds or finds its bundle. */
int cn_hosted_bundle(const struct cn_hosted *hosted, struct cn_project *project,
                     struct cn_bundler *bundler, struct cn_buf *messages, struct cn_err *err);
/* H5: whether the deployment can do without this project, for which `err` stands. Then it is
 * `broken`, and 0 is returned; else the error. Any project; `hosted` is NULL where none is an
 * upload. */
int cn_hosted_tolerate(const struct cn_hosted *hosted, struct cn_project *project,
                       struct cn_err *err);
/* Says of the broken ones what was not said before (`told`, count of `told_count`). */
void cn_hosted_tell(const struct cn_project *projects, size_t count, const struct cn_project *told,
                    size_t told_count);
/* Checks the configuration of a version and builds it; what esbuild says goes to `err` too. */
int cn_hosted_build(struct cn_depot *depot, const struct cn_depot_script *script,
                    const char *version, const char *data, struct cn_bundler *bundler,
                    struct cn_err *err);
/* H2: "worker/Class,..." of all of them, and what `asked` says. Owned. */
char *cn_hosted_allowed(const struct cn_project *projects, size_t count, const char *asked);

#endif
