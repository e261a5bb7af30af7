/* SPDX-License-Identifier: Apache-2.0 */
/* cli/main.c - the list of commands. Each is in its own file, cmd_NAME.c, or in the folder of its
 * service. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "cli/args.h"
#include "server/schema.h"
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
static const struct cn_command *const before[] = {&cn_cmd_serve,  &cn_cmd_dev,    &cn_cmd_build,
                                                  &cn_cmd_deploy, &cn_cmd_tokens, &cn_cmd_new,
                                                  &cn_cmd_objects};
static const struct cn_command *const after[] = {&cn_cmd_tail,   &cn_cmd_replay, &cn_cmd_dashboard,
                                                 &cn_cmd_backup, &cn_cmd_check,  &cn_cmd_version,
                                                 &help};

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

static int refuse_command(const char *name)
{
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
        fprintf(out, "  %-10s %s\n", command->name, command->summary);
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
