/* SPDX-License-Identifier: Apache-2.0 */
/* Flags, their values and mistakes in them; variables that mirror flags. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "cli/args.h"
#include "service/def.h"
#include "test/lib/test.h"

struct options {
    const char *listen, *data, *env, *lanes;
    const char **vars;
    size_t var_count;
    bool sandbox;
};

#define AT(member) offsetof(struct options, member)
static const struct cn_option flags[] = {
    {"listen", 'l', "HOST:PORT", "CAIRN_LISTEN", "", AT(listen), 0},
    CN_OPTION_DATA(AT(data)),
    CN_OPTION_ENV(AT(env)),
    CN_OPTION_VAR(AT(vars), AT(var_count)),
    {"lanes", 0, "N", NULL, "", AT(lanes), 0},
    {"sandbox", 0, NULL, "CAIRN_SANDBOX", "", AT(sandbox), 0},
};

static const struct cn_command serve = {
    .name = "serve",
    .usage = "[PROJECT...]",
    .summary = "",
    .rest_max = 2,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
};

static void check_refused(char **argv, int argc, const char *want)
{
    struct cn_args args;
    struct cn_err err = {0};
    CHECK(cn_args_parse(&args, &serve, argc, argv, &err) < 0);
    CHECK_STR(want, err.text);
    cn_args_fini(&args);
}

TEST(args, reads_flags_in_every_form)
{
    char *argv[] = {"a",     "--listen", "h:1",       "--data=d e", "-e",    "prod",
                    "--var", "A=1",      "--var=B=2", "--",         "--help"};
    struct cn_args args;
    struct cn_err err = {0};
    CHECK_INT(0, cn_args_parse(&args, &serve, 11, argv, &err));
    const struct options *options = args.options;
    CHECK_STR("h:1", options->listen);
    CHECK_STR("d e", options->data);
    CHECK_STR("prod", options->env);
    CHECK_INT(2, options->var_count);
    CHECK_STR("B=2", options->vars[1]);
    CHECK_INT(2, args.rest_count);
    CHECK_STR("--help", args.rest[1]);
    CHECK(!args.help);
    cn_args_fini(&args);
}

TEST(args, refuses_with_a_sentence)
{
    check_refused((char *[]){"--dat", "x"}, 2,
                  "unknown option --dat (did you mean --data?); `cairn help serve` lists the "
                  "options");
    check_refused((char *[]){"-x"}, 1, "unknown option -x; `cairn help serve` lists the options");
    check_refused((char *[]){"--lanes"}, 1, "--lanes needs a value: N");
    check_refused((char *[]){"--help=yes"}, 1, "--help takes no value");
    check_refused((char *[]){"a", "b", "c"}, 3,
                  "unexpected \"c\"; usage: cairn serve [PROJECT...]");
}

TEST(args, a_flag_wins_over_its_variable)
{
    setenv("CAIRN_LISTEN", "v:1", 1);
    setenv("CAIRN_DATA", "vd", 1);
    setenv("CAIRN_VAR", "A=1\nB=2", 1);
    char *argv[] = {"--listen", "f:2", "--var", "C=3"};
    struct cn_args args;
    struct cn_err err = {0};
    CHECK_INT(0, cn_args_parse(&args, &serve, 4, argv, &err));
    const struct options *options = args.options;
    CHECK_STR("f:2", options->listen);
    CHECK_STR("vd", options->data);
    CHECK_INT(3, options->var_count);
    CHECK_STR("A=1", options->vars[0]);
    CHECK_STR("C=3", options->vars[2]);
    cn_args_fini(&args);
    unsetenv("CAIRN_LISTEN");
    unsetenv("CAIRN_DATA");
    unsetenv("CAIRN_VAR");
}

/* What EnvironmentFile= of systemd makes of a comment behind a value. */
TEST(args, a_comment_behind_the_value_of_a_variable_is_refused)
{
    static const struct {
        const char *value, *why;
    } cases[] = {
        {"a:1        # b, c", "CAIRN_LISTEN has a comment behind its value (\"# b, c\"), which is "
                              "taken as a part of it: "
                              "put comments on lines of their own"},
        {"# none", "CAIRN_LISTEN has a comment behind its value (\"# none\"), which is taken as a "
                   "part of it: put comments on lines of their own"},
        {"a#b", NULL},
        {"password='a #b'", NULL},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(cases); i++) {
        struct cn_args args;
        struct cn_err err = {0};
        setenv("CAIRN_LISTEN", cases[i].value, 1);
        CHECK_INT(cases[i].why ? CN_EINVALID : 0, cn_args_parse(&args, &serve, 0, NULL, &err));
        CHECK_STR(cases[i].why ? cases[i].why : "", err.text);
        cn_args_fini(&args);
    }
    unsetenv("CAIRN_LISTEN");
    setenv("CAIRN_VAR", "A=b # c", 1); /* a value of somebody's own */
    struct cn_args args;
    CHECK_INT(0, cn_args_parse(&args, &serve, 0, NULL, NULL));
    cn_args_fini(&args);
    unsetenv("CAIRN_VAR");
    setenv("CAIRN_PROJECTS", "   # none", 1);
    CHECK_INT(CN_EINVALID, cn_args_parse(&args, &serve, 0, NULL, NULL));
    cn_args_fini(&args);
    unsetenv("CAIRN_PROJECTS");
}

/* A switch is off by its variable only as "0"; one that was not asked for stays off. */
TEST(args, a_switch_follows_its_variable)
{
    static const struct {
        const char *variable;
        char *flag;
        bool on;
    } cases[] = {
        {NULL, NULL, false}, {"1", NULL, true}, {"0", NULL, false}, {"0", "--sandbox", true}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(cases); i++) {
        char *argv[] = {cases[i].flag};
        struct cn_args args;
        if (cases[i].variable)
            setenv("CAIRN_SANDBOX", cases[i].variable, 1);
        CHECK_INT(0, cn_args_parse(&args, &serve, cases[i].flag ? 1 : 0, argv, NULL));
        CHECK_INT(cases[i].on, ((const struct options *)args.options)->sandbox);
        cn_args_fini(&args);
        unsetenv("CAIRN_SANDBOX");
    }
}

static void check_table(const struct cn_command *command)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct cn_option *option = &command->options[i];
        size_t size = option->value ? sizeof(char *) : sizeof(bool);
        CHECK(option->offset + size <= command->options_size);
        CHECK(option->count_offset + sizeof(size_t) <= command->options_size ||
              !option->count_offset);
        CHECK(option->letter != 'h' && strcmp(option->name, "help") != 0);
        for (size_t k = 0; k < i; k++) {
            CHECK(strcmp(option->name, command->options[k].name) != 0);
            CHECK(!option->letter || option->letter != command->options[k].letter);
        }
    }
}

/* The tables of the commands themselves: no name and no letter twice, texts within their struct. */
TEST(args, every_command_has_a_sound_table)
{
    static const struct cn_command *const commands[] = {
        &cn_cmd_serve,     &cn_cmd_dev,     &cn_cmd_build, &cn_cmd_deploy,
        &cn_cmd_new,       &cn_cmd_objects, &cn_cmd_tail,  &cn_cmd_replay,
        &cn_cmd_dashboard, &cn_cmd_backup,  &cn_cmd_check, &cn_cmd_version};
    for (size_t i = 0; i < CN_ARRAY_COUNT(commands); i++)
        check_table(commands[i]);
    for (size_t i = 0; cn_service_table[i]; i++)
        if (cn_service_table[i]->command)
            check_table(cn_service_table[i]->command);
}
