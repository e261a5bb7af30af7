/* SPDX-License-Identifier: Apache-2.0 */
/* Memory goes back to the system when it may, and the library is asked only then. */
#include "js/engine/memory.h"

#include <dlfcn.h>

#include "test/lib/js_rig.h"

static unsigned released;

static void librarys(void)
{
    released++;
}

static void take(void *function)
{
    cn_js_patch_memory.found((void *const[]){function});
}

/* P1 of patch.h */
TEST(js_memory, off_nothing_is_asked_of_the_library)
{
    take((void *)librarys);
    cn_js_engine_memory_release();
    CHECK_INT(0, released);
    cn_js_patch_memory.use(true);
    cn_js_engine_memory_release();
    CHECK_INT(1, released);
    cn_js_patch_memory.use(false);
    cn_js_engine_memory_release();
    CHECK_INT(1, released);
}

/* A library that is not known is tried in a child (P2), and there it is called; a known one is not
 * kept waiting for it at every start. */
TEST(js_memory, only_a_library_that_is_not_known_is_called_to_prove_it)
{
    released = 0;
    CHECK(!cn_js_engine_build_known()); /* nothing was set up yet */
    CHECK(!cn_js_patch_memory.prove(NULL));
    CHECK_INT(1, released);
    struct js_rig rig;
    js_rig_open(&rig);
    bool known = cn_js_engine_build_known();
    take((void *)librarys);
    released = 0;
    CHECK(!cn_js_patch_memory.prove(rig.vm));
    CHECK_INT(known ? 0 : 1, released);
    js_rig_close(&rig);
}

/* A collection releases once, and a VM without contexts has nothing to collect. */
TEST(js_memory, a_collection_gives_back_what_it_has_freed)
{
    struct js_rig rig;
    js_rig_open(&rig);
    void *real = dlsym(RTLD_DEFAULT, cn_js_patch_memory.symbols[0]);
    cn_js_patch_memory.use(true);
    take((void *)librarys);
    released = 0;
    cn_js_vm_collect(rig.vm);
    CHECK_INT(1, released);
    cn_js_context_free(rig.context);
    cn_js_vm_collect(rig.vm);
    CHECK_INT(1, released);
    if (real) { /* and the library's own comes back */
        rig.context = cn_js_context_new(rig.vm, NULL);
        take(real);
        js_rig_run(&rig, "globalThis.kept = Array.from({ length: 100 }, () => "
                         "new Uint8Array(100000).fill(1)); kept = null");
        cn_js_vm_collect(rig.vm);
        CHECK_STR("2", js_rig_run(&rig, "1 + 1"));
        cn_js_context_free(rig.context);
    }
    cn_js_vm_free(rig.vm);
}
