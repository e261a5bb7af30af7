/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/describe.c - the table of patches for people. They are proven as a server would, on a
 * VM of its own. */
#include <stdio.h>

#include "base/err.h"
#include "js/engine/patch.h"
#include "js/vm.h"

static void print_patch(const struct cn_js_patch_status *status)
{
    const struct cn_js_patch *patch = status->patch;
    const char *state = status->on ? "on" : status->is_unneeded ? "not needed, " : "off, ";
    printf("\n%s: %s%s\n", patch->name, state, status->on ? "" : status->reason);
    printf("  replaces  %s\n  why       %s\n  gains     %s\n  without   %s\n", patch->replaces,
           patch->why, patch->gain, patch->without);
}

int cn_js_engine_describe(struct cn_err *err)
{
    int rc = cn_js_setup(err);
    if (rc < 0)
        return rc;
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
