/* SPDX-License-Identifier: Apache-2.0 */
/* cli/main.c - the list of commands. Each is in its own file, cmd_NAME.c, or in the folder of its
 * service. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "cli/args.h"
#include "config/schema.h"
#include "service/def.h"

static int run_help(const struct cn_args *args);

static const struct cn_command help = {
    .name = "help",
    .usage = "[COMMAND]",
    .summary = "explain a command",
    .rest_max = 1,
    .plain = true,
    .run = run_help,
};

/* In the order of the help: those before the services' (service/def.h), and those after them. */
static const struct cn_command *const before[] = {
    &cn_cmd_new,      &cn_cmd_init,     &cn_cmd_dev,    &cn_cmd_serve,  &cn_cmd_build,
    &cn_cmd_types,    &cn_cmd_login,    &cn_cmd_logout, &cn_cmd_whoami, &cn_cmd_deploy,
    &cn_cmd_versions, &cn_cmd_rollback, &cn_cmd_secret, &cn_cmd_delete, &cn_cmd_deployments,
    &cn_cmd_tokens,   &cn_cmd_objects,  &cn_cmd_cluster};
static const struct cn_command *const after[] = {
    &cn_cmd_tail,   &cn_cmd_replay, &cn_cmd_dashboard, &cn_cmd_backup,  &cn_cmd_restore,
    &cn_cmd_import, &cn_cmd_check,  &cn_cmd_health,    &cn_cmd_version, &help};

/* The i-th command, or NULL. */
static const struct cn_command *command_at(size_t index)
{
    if (index < CN_ARRAY_COUNT(before))
        return before[index];
    index -= CN_ARRAY_COUNT(before);
    for (size_t i = 0; cn_service_table[i]; i++) {
        if (cn_service_table[i]->command && index-- == 0)
            return cn_service_table[i]->command;
    }
    return index < CN_ARRAY_COUNT(after) ? after[index] : NULL;
}

static const struct cn_command *find_command(const char *name)
{
    const struct cn_command *command;
    for (size_t i = 0; (command = command_at(i)); i++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

static const char *command_name_at(const void *data, size_t index)
{
    (void)data;
    const struct cn_command *command = command_at(index);
    return command ? command->name : NULL;
}

/* Commands of wrangler that will not be here, and why. */
static const struct {
    const char *name, *why;
} elsewhere[] = {
    {"ai", "models are whatever server [cairn.ai] names: docs/reference/ai.md"},
    {"ai-search", "AI Search belongs to the hosted platform"},
    {"auth",
     "tokens are the server's: `cairn tokens` makes them there, `cairn login` keeps one here"},
    {"browser", "there is no browser rendering here"},
    {"cert", "certificates for mTLS bindings belong to the hosted platform"},
    {"cloudchamber", "containers belong to the hosted platform"},
    {"complete", "completions for bash, zsh and fish are installed with the package"},
    {"containers", "containers belong to the hosted platform"},
    {"dispatch-namespace", "dispatch namespaces belong to the hosted platform"},
    {"docs", "the documentation is in docs/, and `cairn help COMMAND` explains a command"},
    {"email",
     "mail is sent by `send_email` (docs/reference/email.md); routing of incoming mail belongs "
     "to the hosted platform"},
    {"generate", "`cairn new DIR --template NAME` has starters"},
    {"hyperdrive", "a Hyperdrive binding takes its database from the configuration or a variable: "
                   "docs/reference/ai.md"},
    {"mtls-certificate", "certificates for mTLS bindings belong to the hosted platform"},
    {"pages", "a Pages project is served as it is: `cairn dev`, `cairn serve`, `cairn deploy`"},
    {"pipelines", "pipelines belong to the hosted platform"},
    {"preview", "previews belong to the hosted platform; `cairn versions upload` makes a version "
                "that serves nobody yet"},
    {"publish", "it is `cairn deploy --server URL`"},
    {"pubsub", "Pub/Sub belongs to the hosted platform"},
    {"secrets-store", "the secrets store belongs to the hosted platform; `cairn secret` has a "
                      "worker's own"},
    {"route", "routes are in the configuration and go with `cairn deploy --server`"},
    {"setup", "there is nothing to set up: `cairn dev` serves the project in this folder"},
    {"subdomain", "a worker answers at NAME.localhost, and at NAME.HOST with `cairn serve --domain "
                  "HOST`"},
    {"telemetry", "nothing is sent to anybody"},
    {"triggers", "routes and schedules go with `cairn deploy --server`"},
    {"tunnel", "tunnels belong to the hosted platform"},
    {"vectorize", "vector indexes belong to the hosted platform"},
    {"vpc", "VPC networks belong to the hosted platform"},
    {"workflows", "workflows are not built"},
};

static const char *why_elsewhere(const char *name)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(elsewhere); i++) {
        if (strcmp(elsewhere[i].name, name) == 0)
            return elsewhere[i].why;
    }
    return NULL;
}

static int refuse_command(const char *name)
{
    const char *why = why_elsewhere(name);
    if (why) {
        fprintf(stderr, "cairn: %s: %s\n", name, why);
        return 2;
    }
    const char *meant = cn_suggest(name, command_name_at, NULL);
    fprintf(stderr, "cairn: unknown command \"%s\"%s%s%s; `cairn help` lists the commands\n", name,
            meant ? " (did you mean \"" : "", meant ? meant : "", meant ? "\"?)" : "");
    return 2;
}

static void print_commands(FILE *out)
{
    fprintf(out, "cairn runs Workers projects on your own machines.\n\n"
                 "usage: cairn COMMAND [ARGUMENTS]\n\nCommands:\n");
    const struct cn_command *command;
    for (size_t i = 0; (command = command_at(i)); i++)
        fprintf(out, "  %-12s %s\n", command->name, command->summary);
    fprintf(out, "\n`cairn help COMMAND` explains one.\n");
}

static int run_help(const struct cn_args *args)
{
    if (args->rest_count == 0) {
        print_commands(stdout);
        return 0;
    }
    const struct cn_command *command = find_command(args->rest[0]);
    if (!command)
        return refuse_command(args->rest[0]);
    cn_args_print_help(command);
    return 0;
}

int main(int argc, char **argv)
{
    struct cn_args args;
    struct cn_err err = {0};
    const char *name = argc > 1 ? argv[1] : "";
    if (!*name) {
        print_commands(stderr);
        return 2;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-v") == 0)
        name = "version";
    const struct cn_command *command = find_command(name);
    if (!command)
        return refuse_command(name);
    int status = 2;
    if (cn_args_parse(&args, command, argc - 2, argv + 2, &err) < 0)
        fprintf(stderr, "cairn: %s\n", err.text);
    else if (args.help)
        status = (cn_args_print_help(command), 0);
    else
        status = command->run(&args);
    cn_args_fini(&args);
    return status;
}
