/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_delete.c - `cairn delete`: a worker goes from a server. */
#include <stddef.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/print.h"
#include "cli/remote.h"

struct options {
    struct cn_remote_options remote; /* first */
    bool force;
};

static int delete_worker(struct cn_remote *remote, const char *worker,
                         const struct options *options, struct cn_err *err)
{
    const struct cn_json *result = NULL;
    char *question = cn_sprintf("Delete %s with its versions, secrets and Durable Objects from %s?",
                                worker, remote->url);
    char *target = cn_remote_script(worker, options->force ? "?force=true" : "");
    int rc = cn_remote_confirm(&options->remote, question, err);
    if (rc == 0)
        rc = cn_remote_ask(remote, "DELETE", target, &result, err);
    if (rc == 0)
        printf("%s is deleted; its objects can be taken back for the retention time (--recover)\n",
               worker);
    else if (rc != CN_EDENIED)
        cn_remote_context(err, worker);
    cn_free(target);
    cn_free(question);
    return rc;
}

static int run(const struct cn_args *args)
{
    struct options options = *(const struct options *)args->options;
    struct cn_err err = {0};
    struct cn_remote remote = {.socket_dir = -1};
    if (args->rest_count)
        options.remote.name = args->rest[0];
    options.remote.yes |= options.force;
    char *worker = cn_remote_worker(&options.remote, &err);
    int rc = worker ? cn_remote_open(&remote, &options.remote, &err) : err.code;
    if (rc == 0)
        rc = delete_worker(&remote, worker, &options, &err);
    cn_remote_close(&remote);
    cn_free(worker);
    return cn_print_outcome(rc, &err);
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTIONS_REMOTE,
    CN_OPTION_REMOTE_YES("without asking"),
    {"force", 'f', NULL, NULL, "the same, and also if other workers need it", AT(force), 0},
};

const struct cn_command cn_cmd_delete = {
    .name = "delete",
    .usage = "[WORKER] [OPTIONS]",
    .summary = "delete a worker from a server",
    .text = "Deletes a worker that was deployed to a server (default: that of the project in this "
            "folder), with\n"
            "its versions, secrets, schedules, routes and Durable Objects. KV, D1, R2 and queues "
            "stay.",
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
