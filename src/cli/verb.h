/* SPDX-License-Identifier: Apache-2.0 */
/* cli/verb.h - what the commands on services' data share (`cairn kv`, `r2`, `queues`): finding
 * the verb, the data directory and the server on it, making calls, printing lists.
 *
 * Exit codes: 0 done, 1 failed with a sentence on standard error, 2 a wrong command line.
 *
 * Ownership: the struct owns what it points to but `args`. */
#ifndef CN_CLI_VERB_H
#define CN_CLI_VERB_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/api.h"
#include "cli/print.h"
#include "project/project.h"

struct cn_args;
struct cn_progress;

/* What the commands all take: the first member of their struct of options. */
struct cn_verb_options {
    struct cn_project_options project;
    const char *config;
    const char *binding; /* kv: of the project */
    bool json, force;
};

struct cn_verb_run {
    const struct cn_args *args;
    const struct cn_verb_options *common; /* in its options */
    struct cn_project project;            /* opened with --config or --binding; config NULL: not */
    struct cn_api api;
    struct cn_buf target, body;
    struct cn_json *answer; /* the last one */
    size_t printed;         /* entries so far */
    const char **rest;      /* what follows the verb */
    size_t rest_count;
};

struct cn_verb {
    const char *group, *name;  /* "key", "get"; group NULL: none */
    size_t rest_min, rest_max; /* of what follows */
    bool writes;
    int (*run)(struct cn_verb_run *cli, struct cn_err *err);
};

/* The exit code. `usage` names the verbs. */
int cn_verb_main(const struct cn_args *args, const struct cn_verb *verbs, size_t count,
                 const char *usage);

/* Begins the target: the text, then each of the texts after it (up to NULL) encoded, a slash before
 * every one. */
void cn_verb_target(struct cn_verb_run *cli, const char *path, ...);
/* Adds a parameter, unless the value is NULL. */
void cn_verb_param(struct cn_verb_run *cli, const char *name, const char *value);
/* Calls the target; cli->body is sent if it is not empty. */
int cn_verb_call(struct cn_verb_run *cli, const char *method, struct cn_err *err);
/* Gets the list at the target page by page and calls `each` with every entry of its member. */
int cn_verb_list(struct cn_verb_run *cli, const char *member,
                 int (*each)(void *data, const struct cn_json *entry, struct cn_err *err),
                 void *data, struct cn_err *err);

/* For `each`: prints the entry as a line of JSON. */
int cn_verb_print(void *data, const struct cn_json *entry, struct cn_err *err);

/* Asks whether to go on unless --force was given; CN_EDENIED if not. */
int cn_verb_confirm(struct cn_verb_run *cli, const char *question, struct cn_err *err);

/* Cells of a table. */
void cn_verb_cell(struct cn_table *table, const char *text); /* NULL: nothing */
void cn_verb_size_cell(struct cn_table *table, int64_t bytes);
void cn_verb_time_cell(struct cn_table *table, const struct cn_json *object, const char *name);

/* A file as a body, and as where an answer goes. fd 0 and 1 stay open. */
struct cn_verb_file {
    int fd;
    const char *path;
    struct cn_progress *progress; /* NULL: none */
};
int64_t cn_verb_read_file(void *file, void *bytes, size_t size, struct cn_err *err);
int cn_verb_write_file(void *file, const void *bytes, size_t size, struct cn_err *err);

#endif
