/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of WebAssembly and of resizable buffers: invariants E1 to E3 of js/engine/pages.h. */
#include "js/engine/pages.h"

#include <stdio.h>

#include "base/account.h"
#include "js/context.h"
#include "js/engine/alloc.h"
#include "test/lib/js_rig.h"

#define MB ((uint64_t)1 << 20)

/* Everything that grows in place, and by how much it can. `grow` is a function inside a module of
 * WebAssembly: nothing of the prelude sees it. */
static const char *const growers[] = {
    "const m = new WebAssembly.Memory({initial: 1}); kept.push(m); m.grow(16)",
    "kept.push(new WebAssembly.Memory({initial: 17}))",
    "kept.push(new WebAssembly.Memory({initial: 17, maximum: 20, shared: true}))",
    "const b = new ArrayBuffer(0, {maxByteLength: 2 << 20}); kept.push(b); b.resize(17 << 16)",
    "const b = new SharedArrayBuffer(0, {maxByteLength: 2 << 20}); kept.push(b); b.grow(17 << 16)",
    "const i = new WebAssembly.Instance(module); kept.push(i);"
    "if (i.exports.g(16) < 0) throw new RangeError('-1')",
};
#define SETUP                                                                                     \
    "var kept = [], module = new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0," \
    "1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 5, 1, 1, 103, 0, 0, 10, 8, 1, 6," \
    "0, 32, 0, 64, 0, 11])); 0"

static struct js_rig rig;

static const char *repeat(const char *grower, unsigned count)
{
    char source[512];
    snprintf(source, sizeof(source),
             "(() => { let i = 0; try { for (; i < %u; i++) { %s } return 'all'; }"
             " catch (e) { return e.name; } })()",
             count, grower);
    return js_rig_run(&rig, source);
}

TEST(js_pages, what_is_usable_is_noted_and_goes_when_it_is_freed)
{
    for (size_t i = 0; i < sizeof(growers) / sizeof(growers[0]); i++) {
        js_rig_open(&rig);
        js_rig_run(&rig, SETUP);
        cn_js_vm_collect(rig.vm); /* what the proof left */
        uint64_t noted = cn_js_alloc_bytes(), usable = cn_js_pages_bytes();
        CHECK_STR("all", repeat(growers[i], 8));
        CHECK_INT(8 * (17 << 16), cn_js_pages_bytes() - usable); /* E1 */
        CHECK(cn_js_alloc_bytes() - noted > 8 * MB && cn_js_alloc_bytes() - noted < 14 * MB);
        js_rig_close(&rig);
        CHECK_INT(0, cn_js_pages_bytes());
    }
}

TEST(js_pages, past_the_bound_growing_fails_and_the_turn_goes_on)
{
    for (size_t i = 0; i < sizeof(growers) / sizeof(growers[0]); i++) {
        js_rig_open(&rig);
        js_rig_run(&rig, SETUP);
        size_t bound = cn_js_alloc_bound(cn_js_alloc_bytes() + 16 * MB);
        CHECK_STR("RangeError", repeat(growers[i], 1000)); /* E2 */
        CHECK(cn_js_pages_bytes() > 8 * MB && cn_js_pages_bytes() <= 17 * MB);
        CHECK_STR("3", js_rig_run(&rig, "kept = null; 1 + 2"));
        (void)cn_js_alloc_bound(bound);
        js_rig_close(&rig);
    }
}

TEST(js_pages, past_the_limit_of_the_process_growing_fails)
{
    js_rig_open(&rig);
    js_rig_run(&rig, SETUP);
    cn_account_set_limit(500 * MB);
    (void)cn_account_look(450 * MB);
    CHECK_STR("RangeError", repeat("new WebAssembly.Memory({initial: 1000})", 1));
    CHECK_STR("all", repeat("new WebAssembly.Memory({initial: 100})", 1));
    cn_account_set_limit(0);
    js_rig_close(&rig);
}

TEST(js_pages, what_was_given_up_is_not_resident_and_comes_back_as_zeros)
{
    js_rig_open(&rig);
    js_rig_run(&rig, "var b = new ArrayBuffer(0, {maxByteLength: 64 << 20}); b.resize(64 << 20);"
                     "new Uint8Array(b).fill(7); 0");
    uint64_t full = cn_account_read_used();
    js_rig_run(&rig, "b.resize(0); 0");
    CHECK(cn_account_read_used() + 60 * MB < full); /* E3 */
    CHECK_STR("0 0 67108864", js_rig_run(&rig, "b.resize(64 << 20); const a = new Uint8Array(b);"
                                               "`${a[0]} ${a[60 << 20]} ${a.length}`"));
    js_rig_close(&rig);
}
