/* SPDX-License-Identifier: Apache-2.0 */
/* service/tally/command.c - cairn tally get|add ... */
#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "cli/args.h"
#include "cli/verb.h"
#include "service/tally/tally.h"

static int run_verb(struct cn_verb_run *cli, struct cn_err *err)
{
    bool adds = cli->rest_count > 1;
    cn_verb_target(cli, "/api/tallies", cli->rest[0], NULL);
    if (adds)
        cn_buf_printf(&cli->body, "{\"by\":%s}", cli->rest[1]); /* checked there */
    int rc = cn_verb_call(cli, adds ? "POST" : "GET", err);
    if (rc == 0)
        printf("%" PRId64 "\n", cn_json_int(cli->answer, "count"));
    return rc;
}

static int run(const struct cn_args *args)
{
    static const struct cn_verb verbs[] = {{NULL, "get", 1, 1, false, run_verb},
                                           {NULL, "add", 2, 2, true, run_verb}};
    return cn_verb_main(args, verbs, CN_ARRAY_COUNT(verbs),
                        "tally needs one of: get NAME | add NAME NUMBER");
}

static const struct cn_option flags[] = {
    CN_OPTION_DATA(offsetof(struct cn_verb_options, project.data)),
    CN_OPTION_CONFIG(offsetof(struct cn_verb_options, config)),
};

const struct cn_command cn_tally_command = {
    .name = "tally",
    .usage = "get|add NAME [NUMBER]",
    .summary = "read tallies, count on",
    .rest_max = 3,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct cn_verb_options),
    .run = run,
};
