/* SPDX-License-Identifier: Apache-2.0 */
/* deploy/deploy_env.h - from a project's configuration to what its script finds: plain values,
 * classes, bindings.
 *
 * Plain values go to the prelude as JSON in script->env_json. A binding goes as an entry of
 * options.bindings, {"name", "type", ...}; makeBinding() in prelude/workers/dispatch.js makes
 * the object of it. Those of services are written in their folders (config/service_config.h).
 *
 * Threads: the deploying one. Ownership: returned texts are the caller's. */
#ifndef CN_DEPLOY_DEPLOY_ENV_H
#define CN_DEPLOY_DEPLOY_ENV_H
#include <stdbool.h>
#include <stddef.h>

struct cn_config;
struct cn_config_service;
struct cn_err;
struct cn_node;
struct cn_project;
struct cn_script;

/* Reads the folder of static assets, if the project has one. */
int cn_deploy_assets(struct cn_script *script, const struct cn_config *config, struct cn_err *err);
/* Its path. Owned; NULL: none. */
char *cn_deploy_assets_folder(const struct cn_config *config);

/* {"NAME": value}: vars, secrets and version metadata. */
char *cn_deploy_env(const struct cn_project *project);

/* What administration shows of the project: {"main","routes","exports","deployedAt"}. */
char *cn_deploy_about(const struct cn_project *project);

/* Whether the project has anything durable: objects, or a service that keeps something. */
bool cn_deploy_wants_node(const struct cn_config *config);

/* Whether every service binding of the project at `index` leads to one of these; if not, `err` says
 * where it stands. Of a project on disk that is a warning, as with wrangler: one worker of several
 * may run alone, and what calls the binding fails and names it. */
int cn_deploy_check_services(const struct cn_project *projects, size_t count, size_t index,
                             struct cn_err *err);
/* The name of the worker that a service binding means. */
char *cn_deploy_service_name(const struct cn_config_service *service);
/* Where the i-th entry of the list `key` stands, as "file:line:column". Owned. */
char *cn_deploy_entry_place(const struct cn_config *config, const char *key, size_t index);

/* Tail consumers (deploy_tail.c): each is a project of this server, and nobody is told of what it
 * does itself by being told, directly or by way of others. */
int cn_deploy_check_tails(const struct cn_project *projects, size_t count, size_t index,
                          struct cn_err *err);
void cn_deploy_tails(struct cn_script *script, const struct cn_config *config);
/* `observability`: which part of its invocations an exporter of spans is told of. */
int cn_deploy_observability(struct cn_script *script, const struct cn_config *config,
                            struct cn_err *err);

/* __options of the prelude: the date, the flags that cairn honours and that are on, the bindings.
 * Makes the namespaces of services. After cn_deploy_objects(). NULL: failed. */
char *cn_deploy_options(const struct cn_config *config, struct cn_script *script, bool development,
                        struct cn_node *node, struct cn_err *err);

#endif
