/* SPDX-License-Identifier: Apache-2.0 */
/* cairn health: whether the server of a data directory answers, by its exit code: for containers,
 * which have no other program that could ask. */
#include <stdio.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/api.h"
#include "cli/args.h"

struct options {
    const char *data;
    bool ready;
};

static int keep(void *data, const void *bytes, size_t size, struct cn_err *err)
{
    (void)err;
    cn_buf_append(data, bytes, size);
    return 0;
}

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    struct cn_err err = {0};
    struct cn_api api = {0};
    struct cn_buf answer = {0};
    int rc = cn_api_connect(&api, options->data, &err);
    if (rc == 0)
        rc = cn_api_fetch(&api, options->ready ? "/readyz" : "/healthz", keep, &answer, &err);
    if (rc == 0)
        fputs(cn_buf_text(&answer), stdout);
    else
        fprintf(stderr, "cairn: %s\n", err.text);
    cn_buf_fini(&answer);
    cn_api_close(&api);
    return rc < 0 ? 1 : 0;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA(AT(data)),
    {"ready", 0, NULL, NULL, "whether it takes requests, too: not while it starts or stops",
     AT(ready), 0},
};

const struct cn_command cn_cmd_health = {
    .name = "health",
    .usage = "[OPTIONS]",
    .summary = "say whether the server answers",
    .text =
        "Asks the server that has the data directory, by its control socket. Exits with 0 if it "
        "answers, else\n"
        "with 1 and the reason: for health checks of containers, and scripts that wait.",
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
