/* SPDX-License-Identifier: Apache-2.0 */
/* cairn dashboard: the address of a running server's dashboard, with the token. It stands behind
 * the #, which a browser keeps to itself. */
#include <stdio.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/api.h"
#include "cli/args.h"

struct options {
    const char *data;
};

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    struct cn_err err = {0};
    struct cn_api api = {0};
    struct cn_json *answer = NULL;
    struct cn_buf address = {0};
    int rc = cn_api_connect(&api, options->data, &err);
    if (rc == 0)
        rc = cn_api_call(&api, "GET", "/api/address", NULL, &answer, &err);
    if (rc == 0) {
        cn_buf_printf(&address, "%s/#", cn_json_text(answer, "url"));
        cn_api_append_param(&address, "token", cn_json_text(answer, "token"));
        puts(cn_buf_text(&address));
    } else {
        fprintf(stderr, "cairn: %s\n", err.text);
    }
    cn_buf_fini(&address);
    cn_json_free(answer);
    cn_api_close(&api);
    return rc < 0 ? 1 : 0;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA_FOUND(AT(data)),
};

const struct cn_command cn_cmd_dashboard = {
    .name = "dashboard",
    .usage = "[OPTIONS]",
    .summary = "print the address of the dashboard",
    .text = "Prints the address of a running server's dashboard. It holds the token: give it to "
            "nobody.",
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
