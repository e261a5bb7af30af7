/* SPDX-License-Identifier: Apache-2.0 */
/* cairn version: this program's, and with --engine what it does inside JavaScriptCore here
 * (js/engine/patch.h). The patches are proven as a server would, on a VM of its own. */
#include <stdio.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/err.h"
#include "cli/args.h"
#include "js/engine/patch.h"
#include "js/vm.h"

struct options {
    bool engine;
};

static void print_patch(const struct cn_js_patch_status *status)
{
    const struct cn_js_patch *patch = status->patch;
    printf("\n%s: %s%s%s\n", patch->name, status->on ? "on" : "off", status->on ? "" : ", ",
           status->reason);
    printf("  replaces  %s\n  why       %s\n  gains     %s\n  without   %s\n", patch->replaces,
           patch->why, patch->gain, patch->without);
}

static int print_engine(void)
{
    struct cn_err err = {0};
    if (cn_js_setup(&err) < 0) {
        fprintf(stderr, "cairn: %s\n", err.text);
        return 2;
    }
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR); /* what is off is in the table */
    struct cn_js_vm *vm = cn_js_vm_new(NULL);
    size_t count;
    const struct cn_js_patch_status *patches = cn_js_engine_patches(&count);
    printf("JavaScriptCore %s, build %s (%s)\n", cn_js_engine_version(), cn_js_engine_build_id(),
           cn_js_engine_build_known() ? "known" : "not known: tried in a child first");
    for (size_t i = 0; i < count; i++)
        print_patch(&patches[i]);
    cn_js_vm_free(vm);
    return 0;
}

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    puts("cairn " CN_VERSION);
    return options->engine ? print_engine() : 0;
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
