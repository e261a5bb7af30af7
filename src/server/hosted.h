/* SPDX-License-Identifier: Apache-2.0 */
/* server/hosted.h - workers that were deployed by upload (deploy/depot.h) as projects: from there
 * on they are like those that lie on the server.
 *
 *   H1  What is built is kept with the version: a restart needs no Node.js. A newer server builds
 *       it again if it can, and takes what is there if it cannot.
 *   H2  A migration that deletes a class is the permission to do so: it came with a token that may
 *       deploy. The class can be taken back for the retention time.
 *   H3  What is built is made of the modules that were uploaded and of nothing else: a file of the
 *       server never gets into a bundle or into a message about it.
 *
 *   H4  Of a worker with several versions that serve, the newest is a project like any other; the
 *       others come after all of those and are `beside`: they have the same routes, schedules and
 *       classes, and nothing is planned for them (deploy.c).
 *
 * Threads: the deploying one; cn_hosted_build() any, with a bundler of its own. */
#ifndef CN_SERVER_HOSTED_H
#define CN_SERVER_HOSTED_H
#include <stddef.h>

struct cn_buf;
struct cn_bundler;
struct cn_depot;
struct cn_depot_script;
struct cn_depot_state;
struct cn_err;
struct cn_project;

/* How many projects the state has: versions that serve. */
size_t cn_hosted_count(const struct cn_depot_state *state);
/* Opens them, in order. On failure none is left open. */
int cn_hosted_open(struct cn_depot *depot, const struct cn_depot_state *state, const char *data,
                   struct cn_project *projects, struct cn_err *err);
/* Builds or finds the bundle of one. */
int cn_hosted_bundle(struct cn_project *project, struct cn_bundler *bundler,
                     struct cn_buf *messages, struct cn_err *err);
/* Checks the configuration of a version and builds it; what esbuild says goes to `err` too. */
int cn_hosted_build(struct cn_depot *depot, const struct cn_depot_script *script,
                    const char *version, const char *data, struct cn_bundler *bundler,
                    struct cn_err *err);
/* H2: "worker/Class,..." of all of them, and what `asked` says. Owned. */
char *cn_hosted_allowed(const struct cn_project *projects, size_t count, const char *asked);

#endif
