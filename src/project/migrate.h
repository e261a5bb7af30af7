/* SPDX-License-Identifier: Apache-2.0 */
/* project/migrate.h - from `migrations` and `exports` of the configurations to the next table of
 * classes.
 *
 * Planning is pure: it takes the table as it is (project/classes.h) and the projects,
 * and gives the table as it shall be, a line for every difference, and a line for
 * everything that is refused. With a refusal nothing is applied. The lines tell the
 * net effect: a class created and renamed by one deployment is only created.
 *
 *   M1  Migrations are applied in the order of the list, each tag once. The last tag
 *       applied must still be in the list, nothing new before it.
 *   M2  No objects are lost silently: a class goes only by `deleted_classes` or the state
 *       `deleted` and when it is named as allowed to go; a living class that the code or
 *       `exports` no longer has is refused.
 *   M3  After planning, every binding leads to a class that lives, or will once a
 *       transfer is complete.
 *   M4  Without any rules what is bound exists, as in development. Rules that come later may create
 *       it: a class of this storage that is there already is the one that they mean.
 *
 * Threads:   none of its own.
 * Ownership: cn_plan_fini() frees what a plan holds; it borrows the table and the projects. */
#ifndef CN_PROJECT_MIGRATE_H
#define CN_PROJECT_MIGRATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "project/classes.h"

struct cn_buf;
struct cn_config;
struct cn_config_object;

/* One worker to be deployed. */
struct cn_migrate_project {
    const struct cn_config *config;
    const struct cn_strings *exported; /* names the code exports; NULL: not known */
};

struct cn_migrate_options {
    const char *const *allow_delete; /* "Class" or "worker/Class" */
    size_t allow_delete_count;
    const char *const *recover; /* the same: take the deleted one back instead of a new one */
    size_t recover_count;
    int64_t now_ms;
    int64_t retention_ms; /* how long a deleted class can be taken back */
};

enum cn_plan_kind {
    CN_PLAN_CREATE,
    CN_PLAN_RECOVER,
    CN_PLAN_RENAME,
    CN_PLAN_TRANSFER,
    CN_PLAN_DELETE,
    CN_PLAN_NOTE,
    CN_PLAN_REFUSE,
};

struct cn_plan_line {
    enum cn_plan_kind kind;
    char *text; /* owned */
};

struct cn_plan {
    struct cn_classes next;
    struct cn_plan_line *lines;
    size_t line_count;
    size_t refused; /* how many of them are refusals */
    bool changes;   /* `next` differs from the table */
};

/* The worker whose class a binding is to. Owned. */
char *cn_migrate_owner(const struct cn_config *config, const struct cn_config_object *object);

void cn_plan_make(struct cn_plan *plan, const struct cn_classes *classes,
                  const struct cn_migrate_project *projects, size_t project_count,
                  const struct cn_migrate_options *options);
void cn_plan_fini(struct cn_plan *plan);
/* A line of text for each: "create    worker/Class (sqlite)". */
void cn_plan_print(const struct cn_plan *plan, struct cn_buf *out);
/* CN_EDENIED with the first refusal if there is one. */
int cn_plan_check(const struct cn_plan *plan, struct cn_err *err);
/* Brings names in line and gives new classes their numbers: what it takes to start with the plan.
 * Without the file nothing of it lasts (K2). Nothing may be refused. */
int cn_plan_number(struct cn_plan *plan, struct cn_shards *shards, struct cn_err *err);
/* The same, and replaces the file. */
int cn_plan_apply(struct cn_plan *plan, struct cn_disk *disk, struct cn_shards *shards,
                  struct cn_err *err);

#endif
