/* SPDX-License-Identifier: Apache-2.0 */
/* cli/resource.h - what a server has by a name and an id and no worker owns: namespaces of KV,
 * databases of D1, buckets of R2, queues. They are found, made and deleted by name.
 *
 * Ownership: texts that are returned are the caller's. */
#ifndef CN_CLI_RESOURCE_H
#define CN_CLI_RESOURCE_H
#include "base/err.h"
#include "base/json.h"

struct cn_remote;
struct cn_remote_options;

/* `kind` is "kv", "d1", "r2" or "queue". The id, or NULL: there is none, or an error. */
char *cn_resource_find(struct cn_remote *remote, const char *kind, const char *name,
                       struct cn_err *err);
/* Makes it; what the server tells of it is good until the next call. */
int cn_resource_create(struct cn_remote *remote, const char *kind, const char *name,
                       const struct cn_json **result, struct cn_err *err);
/* The id of one that is there, or is made. */
char *cn_resource_provide(struct cn_remote *remote, const char *kind, const char *name,
                          struct cn_err *err);

/* A command: `verb` is "list", "create" or "delete", `name` NULL for the first. The exit code. */
int cn_resource_main(const struct cn_remote_options *options, const char *kind, const char *verb,
                     const char *name);

#endif
