/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/schema.h"

static const struct cn_option help_option = {
    .name = "help", .letter = 'h', .help = "this text", .offset = 0};

/* The command's options, then --help; NULL: there are no more. */
static const struct cn_option *option_at(const struct cn_command *command, size_t index)
{
    if (index < command->option_count)
        return &command->options[index];
    return index == command->option_count && !command->plain ? &help_option : NULL;
}

static const char *option_name_at(const void *command, size_t index)
{
    const struct cn_option *option = option_at(command, index);
    return option ? option->name : NULL;
}

static const struct cn_option *find_option(const struct cn_command *command, const char *word,
                                           size_t size)
{
    bool is_letter = word[0] == '-' && word[1] != '-' && size == 2;
    const struct cn_option *option;
    for (size_t i = 0; (option = option_at(command, i)); i++) {
        if (is_letter
                ? word[1] == option->letter
                : size > 2 && strncmp(word, "--", 2) == 0 && strlen(option->name) == size - 2 &&
                      memcmp(word + 2, option->name, size - 2) == 0)
            return option;
    }
    return NULL;
}

static void push(const char ***list, size_t *count, const char *text)
{
    *list = cn_realloc(*list, (*count + 1) * sizeof(char *));
    (*list)[(*count)++] = text;
}

static void set_value(struct cn_args *args, const struct cn_option *option, const char *value)
{
    char *options = args->options;
    const char **at = (const char **)(options + option->offset);
    if (option->count_offset)
        push((const char ***)at, (size_t *)(options + option->count_offset), value);
    else
        *at = value;
}

static void set_switch(struct cn_args *args, const struct cn_option *option, bool on)
{
    bool *at =
        option == &help_option ? &args->help : (bool *)((char *)args->options + option->offset);
    *at = on;
}

static int parse_option(struct cn_args *args, const struct cn_command *command, int argc,
                        char **argv, int *index, struct cn_err *err)
{
    const char *word = argv[*index], *value = NULL;
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    size_t size = equals ? (size_t)(equals - word) : strlen(word);
    const struct cn_option *option = find_option(command, word, size);
    if (!option) {
        char *plain = cn_strndup(word + strspn(word, "-"), size - strspn(word, "-"));
        const char *meant = cn_suggest(plain, option_name_at, command);
        cn_free(plain);
        return cn_err_set(err, CN_EINVALID,
                          "unknown option %.*s%s%s%s; `cairn help %s` lists the options", (int)size,
                          word, meant ? " (did you mean --" : "", meant ? meant : "",
                          meant ? "?)" : "", command->name);
    }
    if (!option->value) {
        if (equals)
            return cn_err_set(err, CN_EINVALID, "--%s takes no value", option->name);
        set_switch(args, option, true);
        return 0;
    }
    if (equals)
        value = equals + 1;
    else if (*index + 1 < argc)
        value = argv[++*index];
    if (!value)
        return cn_err_set(err, CN_EINVALID, "--%s needs a value: %s", option->name, option->value);
    set_value(args, option, value);
    return 0;
}

/* A file of variables (EnvironmentFile= of systemd, --env-file of docker) knows no comment behind a
 * value: it becomes part of it. */
static int check_comment(const char *variable, struct cn_err *err)
{
    const char *value = getenv(variable);
    const char *mark = value ? strchr(value, '#') : NULL;
    bool quoted = value && value[strcspn(value, "'\"")];
    if (!mark || quoted || (mark > value && mark[-1] != ' ' && mark[-1] != '\t'))
        return 0;
    return cn_err_set(err, CN_EINVALID,
                      "%s has a comment behind its value (\"%.60s\"), which is taken as a part of "
                      "it: put comments on lines of their own",
                      variable, mark);
}

/* CAIRN_* variables for what no flag gave. */
static int read_variables(struct cn_args *args, struct cn_err *err)
{
    int rc = check_comment("CAIRN_PROJECTS", err); /* the unit's, which makes arguments of it */
    for (size_t i = 0; i < args->command->option_count && rc == 0; i++) {
        const struct cn_option *option = &args->command->options[i];
        const char *value = option->variable ? getenv(option->variable) : NULL;
        if (!value || !*value)
            continue;
        if (!option->count_offset)
            rc = check_comment(option->variable, err);
        if (rc < 0)
            break;
        if (!option->value) {
            set_switch(args, option, strcmp(value, "0") != 0);
            continue;
        }
        if (!option->count_offset) {
            set_value(args, option, value);
            continue;
        }
        CN_ASSERT(!args->lines); /* a command has one such option at most */
        args->lines = cn_strdup(value);
        char *state = NULL;
        for (char *line = strtok_r(args->lines, "\n", &state); line;
             line = strtok_r(NULL, "\n", &state))
            set_value(args, option, line);
    }
    return rc;
}

int cn_args_parse(struct cn_args *args, const struct cn_command *command, int argc, char **argv,
                  struct cn_err *err)
{
    bool only_rest = false;
    *args = (struct cn_args){.command = command};
    args->options = cn_alloc_zero(command->options_size ? command->options_size : 1);
    int rc = read_variables(args, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < argc; i++) {
        if (!only_rest && strcmp(argv[i], "--") == 0) {
            only_rest = true;
        } else if (!only_rest && argv[i][0] == '-' && argv[i][1]) {
            rc = parse_option(args, command, argc, argv, &i, err);
            if (rc < 0)
                return rc;
        } else {
            push(&args->rest, &args->rest_count, argv[i]);
        }
    }
    if (args->rest_count > command->rest_max && !args->help)
        return cn_err_set(err, CN_EINVALID, "unexpected \"%s\"; usage: cairn %s %s",
                          args->rest[command->rest_max], command->name, command->usage);
    return 0;
}

void cn_args_fini(struct cn_args *args)
{
    for (size_t i = 0; i < args->command->option_count; i++) {
        const struct cn_option *option = &args->command->options[i];
        if (option->count_offset)
            cn_free(*(const char ***)((char *)args->options + option->offset));
    }
    cn_free(args->options);
    cn_free(args->rest);
    cn_free(args->lines);
    *args = (struct cn_args){0};
}

const char *cn_args_data(const char *given)
{
    static bool told;
    struct stat info;
    if (given || stat(".cairn", &info) == 0 || stat(CN_ARGS_DATA_PACKAGED, &info) < 0)
        return given ? given : ".cairn";
    if (!told && isatty(STDERR_FILENO))
        fprintf(stderr, "cairn: on the data directory " CN_ARGS_DATA_PACKAGED "\n");
    told = true;
    return CN_ARGS_DATA_PACKAGED;
}

void cn_args_print_help(const struct cn_command *command)
{
    const struct cn_option *option;
    printf("usage: cairn %s%s%s\n\n%s\n", command->name, *command->usage ? " " : "", command->usage,
           command->text ? command->text : command->summary);
    if (command->plain)
        return;
    printf("\nOptions:\n");
    for (size_t i = 0; (option = option_at(command, i)); i++) {
        char name[60];
        snprintf(name, sizeof(name), "%c%c%s --%s%s%s", option->letter ? '-' : ' ',
                 option->letter ? option->letter : ' ', option->letter ? "," : " ", option->name,
                 option->value ? " " : "", option->value ? option->value : "");
        printf("  %-26s %s%s%s%s\n", name, option->help, option->variable ? " [" : "",
               option->variable ? option->variable : "", option->variable ? "]" : "");
    }
}
