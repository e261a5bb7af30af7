/* SPDX-License-Identifier: Apache-2.0 */
/* cairn version: this program's, and with --engine what it does inside JavaScriptCore here
 * (js/engine/patch.h). The patches are proven as a server would, on a VM of its own. */
#include <stdio.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/err.h"
#include "bindings/all.h"
#include "cli/args.h"

struct options {
    bool engine;
};

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    struct cn_err err = {0};
    puts("cairn " CN_VERSION);
    if (!options->engine)
        return 0;
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR); /* what is off is in the table */
    if (cn_javascript.describe(&err) == 0)
        return 0;
    fprintf(stderr, "cairn: %s\n", err.text);
    return 2;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    {"engine", 0, NULL, NULL, "what is replaced inside the JavaScript engine, and whether",
     AT(engine), 0},
};

const struct cn_command cn_cmd_version = {
    .name = "version",
    .usage = "[OPTIONS]",
    .summary = "print the version",
    .text =
        "Prints the version; with --engine also what Cairn replaces inside JavaScriptCore, why, "
        "and "
        "what\n"
        "of it is on with the library of this machine. CAIRN_ENGINE_PATCHES=off serves without it.",
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
