/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_new.c - `cairn new DIR` and `cairn init`: a small starter (cli/starter.h) in a new
 * folder, or in one that has files already. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/print.h"
#include "cli/starter.h"
#include "config/config.h"
#include "config/findconf.h"

struct options {
    const char *template;
    bool yes; /* wrangler's, without meaning here */
};

static const char *template_of(const struct options *options)
{
    return options->template ? options->template : "hello";
}

static bool check_template(const struct options *options)
{
    if (cn_starter_has(template_of(options)))
        return true;
    struct cn_buf all = {0};
    cn_starter_list(&all);
    fprintf(stderr, "cairn: there is no template \"%s\"; there are %s\n", options->template,
            cn_buf_text(&all));
    cn_buf_fini(&all);
    return false;
}

static int run_new(const struct cn_args *args)
{
    const struct options *options = args->options;
    struct cn_err err = {0};
    if (args->rest_count == 0) {
        struct cn_buf all = {0};
        cn_starter_list(&all);
        fprintf(stderr,
                "cairn: which folder? usage: cairn new DIR [--template NAME]; templates: %s\n",
                cn_buf_text(&all));
        cn_buf_fini(&all);
        return 2;
    }
    if (!check_template(options))
        return 2;
    const char *dir = args->rest[0];
    if (access(dir, F_OK) == 0 && rmdir(dir) < 0) { /* an empty folder is as good as none */
        fprintf(stderr, "cairn: %s is there already; `cairn init` adds to a folder\n", dir);
        return 1;
    }
    char *name = cn_config_name_from(dir);
    int rc = cn_starter_write(template_of(options), dir, name, false, &err);
    if (rc == 0)
        printf("%s is ready:\n    cd %s && cairn dev\n", dir, dir);
    cn_free(name);
    return cn_print_outcome(rc, &err);
}

static int run_init(const struct cn_args *args)
{
    const struct options *options = args->options;
    const char *dir = args->rest_count ? args->rest[0] : ".";
    struct cn_err err = {0};
    if (!check_template(options))
        return 2;
    char *there = cn_findconf_in(dir);
    if (there) {
        fprintf(stderr, "cairn: %s is a project already: it has %s\n", dir, there);
        cn_free(there);
        return 1;
    }
    char *full = realpath(dir, NULL), *name = cn_config_name_from(full ? full : dir);
    int rc = cn_starter_write(template_of(options), dir, name, true, &err);
    if (rc == 0)
        printf("%s is ready: `cairn dev` serves it; files that were there are as they were\n",
               name);
    free(full);
    cn_free(name);
    return cn_print_outcome(rc, &err);
}

#define AT(member) offsetof(struct options, member)

#define TEMPLATES                                                                      \
    "  hello            a worker in TypeScript (the default)\n"                        \
    "  durable-object   a Durable Object with SQLite, and the worker in front of it\n" \
    "  chat             rooms with WebSockets, and a page\n"                           \
    "  d1-api           an API with a D1 database and its migrations\n"                \
    "  static           a site of files\n"                                             \
    "  c-object         a Durable Object in C"

static const struct cn_option flags[] = {
    {"template", 0, "NAME", NULL, "which starter (hello)", AT(template), 0},
    CN_OPTION_YES(AT(yes)),
};

const struct cn_command cn_cmd_new = {
    .name = "new",
    .usage = "DIR [OPTIONS]",
    .summary = "write a small starter",
    .text = "Writes a small Workers project into the new folder DIR. Templates:\n\n" TEMPLATES,
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run_new,
};

const struct cn_command cn_cmd_init = {
    .name = "init",
    .usage = "[DIR] [OPTIONS]",
    .summary = "make a project of the current folder",
    .text =
        "Writes what a Workers project needs and is not there yet into the folder (default: the "
        "current\n"
        "one). Files that are there stay as they are. Templates:\n\n" TEMPLATES,
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run_init,
};
