/* SPDX-License-Identifier: Apache-2.0 */
/* What every start pays for the proofs of js/engine/patch.h. */
#include "js/engine/patch.h"

#include <stdio.h>

#include "base/err.h"
#include "js/vm.h"
#include "test/lib/test.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Memory of the process that no file is behind, in KB. */
static long anonymous_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    while (file && fgets(line, sizeof(line), file))
        (void)sscanf(line, "RssAnon: %ld", &kb); /* other lines do not match */
    if (file)
        fclose(file);
    CHECK(kb > 0);
    return kb;
}
#endif

/* The engine's allocator keeps what a proof leaves until the lane is quiet: some seconds in which
 * every server would be that much larger. */
TEST(js_patch, the_first_vm_with_all_proofs_leaves_little_memory_behind)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    test_skip("a sanitizer has memory of its own");
#else
    struct cn_err err;
    long before = anonymous_kb();
    CHECK_INT(0, cn_js_setup(&err));
    struct cn_js_vm *vm = cn_js_vm_new(NULL);
    long taken = anonymous_kb() - before;
    /* A library that is new runs longer proofs. */
    if (taken > (cn_js_engine_build_known() ? 10 << 10 : 32 << 10))
        test_fail(__FILE__, __LINE__, "%ld KB", taken);
    cn_js_vm_free(vm);
#endif
}
