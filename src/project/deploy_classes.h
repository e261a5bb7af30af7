/* SPDX-License-Identifier: Apache-2.0 */
/* project/deploy_classes.h - the class lifecycle of a deployment: plans it, applies it, finds
 * namespaces.
 *
 * A deletion must be allowed by name: on the command line of whoever deploys, or, for a
 * server that is running, in the file deploy.json that `cairn deploy` leaves in the data
 * directory before it has the server reload. The server removes the file when the
 * deployment is applied.
 *
 * Threads: the deploying one. */
#ifndef CN_PROJECT_DEPLOY_CLASSES_H
#define CN_PROJECT_DEPLOY_CLASSES_H
#include <stddef.h>
#include <stdint.h>

#include "project/migrate.h"

struct cn_buf;
struct cn_config_object;
struct cn_namespace;
struct cn_node;
struct cn_project;
struct cn_script;
struct cn_shards;

/* What the operator says about classes: their names, with commas between them; NULL: nothing. */
struct cn_deploy_wishes {
    const char *allow_delete; /* they may be deleted */
    const char *recover;      /* they were, and are taken back instead of created anew */
    const char *gone;         /* workers (!) that were deleted with all they had */
    int64_t history_ms;       /* how long a deleted class can be taken back; 0: the default */
};

/* A table of classes that several servers share: that of the file is a copy of it. */
struct cn_ledger {
    void *data;
    /* Makes the file what the table is. */
    int (*fetch)(void *data, struct cn_disk *disk, struct cn_err *err);
    /* Replaces it, if it is as it was fetched. */
    int (*keep)(void *data, const struct cn_buf *json, struct cn_err *err);
    /* A deployment serves from now on. */
    void (*served)(void *data);
};

/* What is deployed: bundled projects, and where. */
struct cn_deploy_input {
    const struct cn_project *projects;
    size_t count;
    const struct cn_deploy_wishes *asked;
    struct cn_disk *disk;
    const struct cn_ledger *ledger; /* NULL: the file is the table */
};

/* Plans the deployment on a table of classes. The plan borrows from all of them. */
void cn_deploy_plan(const struct cn_deploy_input *input, const struct cn_classes *classes,
                    struct cn_plan *plan);
/* Plans, logs the plan if it `tells`, prepares it. On success `classes` is the table as it shall
 * be, to be freed, and `pending` what cn_deploy_classes_commit() makes durable once the deployment
 * has started; if it does not, nothing has changed (K1). */
int cn_deploy_classes(const struct cn_deploy_input *input, bool tells, struct cn_shards *shards,
                      struct cn_classes *classes, struct cn_buf *pending, struct cn_err *err);
int cn_deploy_classes_commit(struct cn_disk *disk, const struct cn_ledger *ledger,
                             const struct cn_buf *pending, struct cn_err *err);
/* Leaves the wishes of the command line for a server that is running. */
int cn_deploy_leave_request(const struct cn_deploy_wishes *asked, struct cn_disk *disk,
                            struct cn_err *err);

/* Adds the classes that the script provides and the namespaces that its bindings reach. */
int cn_deploy_objects(struct cn_script *script, const struct cn_config *config,
                      struct cn_node *node, const struct cn_classes *classes, struct cn_err *err);

#endif
