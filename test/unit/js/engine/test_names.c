/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of property names: whole while a turn is within its limits (K1), short once it is not. */
#include "js/engine/names.h"

#include <stdio.h>
#include <string.h>

#include "test/lib/js_rig.h"

static const struct cn_js_patch_status *status(void)
{
    size_t count;
    const struct cn_js_patch_status *all = cn_js_engine_patches(&count);
    for (size_t i = 0; i < count; i++)
        if (all[i].patch == &cn_js_patch_names)
            return &all[i];
    return NULL;
}

/* Of an array, a typed one, a text, an object with indices: more names than are made between two
 * looks at the time. */
static const char *const lists[] = {
    "Object.keys(new Uint8Array(10000)).length",
    "Object.keys(new Array(10000).fill(1)).length",
    "Object.keys(Object('x'.repeat(10000))).length",
    "Object.keys(Object.fromEntries(Array.from({ length: 10000 }, (_, i) => [i, i]))).length",
    "(() => { let n = 0; for (const i in new Array(10000).fill(0)) n++; return n; })()",
    "Object.keys(JSON.parse(JSON.stringify(Object.assign({}, new Array(10000).fill(1))))).length",
    "Reflect.ownKeys(new Array(9999).fill(0)).length", /* and `length` */
    "new Set(Object.keys(new Uint8Array(10000))).size",
};

TEST(js_names, K1_within_its_limits_a_turn_gets_every_name)
{
    struct js_rig rig;
    js_rig_open(&rig);
    for (int i = 0; i < 3; i++) /* wherever the count of names stands */
        for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
            CHECK_STR("10000", js_rig_run(&rig, lists[k]));
    CHECK_STR("0,1,255,256,257,9999",
              js_rig_run(&rig, "(() => { const k = Object.keys(new Uint8Array(10000));"
                               "return [0, 1, 255, 256, 257, 9999].map((i) => k[i]).join(); })()"));
    js_rig_close(&rig);
}

static unsigned asked;
static bool late;

static bool is_late(uint64_t now_mono_ns)
{
    asked++;
    return now_mono_ns > 0 && late;
}

/* The one who decides is asked now and then, not for every name; and what he says holds. */
TEST(js_names, past_its_limit_a_list_stays_short)
{
    struct js_rig rig;
    js_rig_open(&rig);
    if (!status()->on)
        test_skip("the patch is off here");
    cn_js_engine_names_setup(is_late);
    late = true;
    /* At most those until the next look, and few of the rest. */
    const char *text = js_rig_run(&rig, "Object.keys(new Uint8Array(1000000)).length");
    long count = 0;
    CHECK(sscanf(text, "%ld", &count) == 1);
    CHECK(count <= 4097 + 256);
    CHECK(asked > 100 && asked < 400);
    CHECK_STR("true", js_rig_run(&rig, "Object.keys(new Uint8Array(20000)).length <= 256"));
    late = false;
    js_rig_run(&rig, "Object.keys(new Uint8Array(5000)).length"); /* up to the next look */
    CHECK_STR("10000", js_rig_run(&rig, lists[0]));
    /* P1 of patch.h: off, nobody is asked. */
    cn_js_patch_names.use(false);
    late = true;
    js_rig_run(&rig, "Object.keys(new Uint8Array(5000)).length");
    asked = 0;
    CHECK_STR("10000", js_rig_run(&rig, lists[0]));
    CHECK_INT(0, asked);
    cn_js_patch_names.use(true);
    late = false;
    js_rig_close(&rig);
}

TEST(js_names, is_proven_and_would_not_be_if_lists_were_cut)
{
    struct js_rig rig;
    js_rig_open(&rig);
    if (!status()->on)
        test_skip("the patch is off here");
    cn_js_engine_names_setup(is_late);
    late = false;
    CHECK(!cn_js_patch_names.prove(rig.vm));
    late = true;
    const char *wrong = cn_js_patch_names.prove(rig.vm);
    CHECK(wrong && strstr(wrong, "not whole"));
    late = false;
    cn_js_patch_names.use(false);
    wrong = cn_js_patch_names.prove(rig.vm);
    CHECK(wrong && strstr(wrong, "goes on"));
    cn_js_patch_names.use(true);
    CHECK(!cn_js_patch_names.prove(rig.vm));
    js_rig_close(&rig);
}
