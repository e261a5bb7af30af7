/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/command.h - what the parts of `cairn d1` share: a project's database and the way to
 * it.
 *
 * Ownership: the struct owns what it points to, except where said. */
#ifndef CN_SERVICE_D1_COMMAND_H
#define CN_SERVICE_D1_COMMAND_H
#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/api.h"
#include "project/project.h"

struct cn_args;
struct cn_config_d1;

struct cn_d1_cli {
    const struct cn_args *args; /* borrowed */
    struct cn_project project;
    const struct cn_config_d1 *d1; /* in the project's configuration */
    char *id;                      /* cn_config_d1_id() */
    struct cn_api api;
};

/* Runs a script as one transaction. `count`: without rows, one answer for all. The answer
 * has them as "results" (service/d1/d1.h); the caller frees it. */
int cn_d1_cli_query(struct cn_d1_cli *cli, const char *sql, size_t size, bool count,
                    struct cn_json **answer, struct cn_err *err);

/* cairn d1 migrations list|apply|create NAME (command_migrations.c). */
int cn_d1_migrations_list(struct cn_d1_cli *cli, struct cn_err *err);
int cn_d1_migrations_apply(struct cn_d1_cli *cli, struct cn_err *err);
int cn_d1_migrations_create(struct cn_d1_cli *cli, struct cn_err *err);

#endif
