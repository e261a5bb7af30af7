/* SPDX-License-Identifier: Apache-2.0 */
/* Flags, their values and mistakes in them; variables that mirror flags. */
#include <stdlib.h>

#include "base/err.h"
#include "cli/args.h"
#include "test/lib/test.h"

static const struct cn_command serve = {"serve", CN_COMMAND_SERVE, "[PROJECT...]", "", NULL, 2,
                                        NULL};

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
    CHECK_STR("h:1", args.listen);
    CHECK_STR("d e", args.data);
    CHECK_STR("prod", args.env);
    CHECK_INT(2, args.var_count);
    CHECK_STR("B=2", args.vars[1]);
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
    CHECK_STR("f:2", args.listen);
    CHECK_STR("vd", args.data);
    CHECK_INT(3, args.var_count);
    CHECK_STR("A=1", args.vars[0]);
    CHECK_STR("C=3", args.vars[2]);
    cn_args_fini(&args);
    unsetenv("CAIRN_LISTEN");
    unsetenv("CAIRN_DATA");
    unsetenv("CAIRN_VAR");
}
