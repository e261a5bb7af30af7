/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's clock: whose it is, and that no turn outlives its budget by it (P1, P4 of
 * js/engine/patch.h). */
#include "js/engine/clock.h"

#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "test/lib/js_rig.h"

/* What the engine calls: ours, by the library's name. */
double engine_seconds(void) __asm__("_ZN3WTF7CPUTime16forCurrentThreadEv");

static double librarys(void)
{
    return 42;
}

static bool late;
static uint64_t asked_ns;

static bool is_late(uint64_t now_mono_ns)
{
    asked_ns = now_mono_ns;
    return late;
}

/* P1. Before anything of the engine is set up. */
TEST(js_clock, off_it_is_the_librarys)
{
    void *const functions[] = {(void *)librarys};
    cn_js_patch_clock.found(functions);
    CHECK(!cn_js_engine_clock_used());
    late = true;
    cn_js_engine_clock_setup(is_late);
    CHECK(engine_seconds() == 42);
    CHECK_INT(0, asked_ns);
}

TEST(js_clock, on_it_is_the_monotonic_clock_and_past_every_deadline_for_who_is_late)
{
    cn_js_patch_clock.use(true);
    CHECK(cn_js_engine_clock_used());
    late = false;
    uint64_t before = cn_clock_mono_ns(cn_clock_system());
    double now = engine_seconds();
    uint64_t after = cn_clock_mono_ns(cn_clock_system());
    CHECK(now >= (double)before * 1e-9 && now <= (double)after * 1e-9);
    CHECK(asked_ns >= before && asked_ns <= after); /* the time that it is asked about */
    late = true;
    CHECK(isinf(engine_seconds()) && engine_seconds() > 0);
    late = false;
    CHECK(!isinf(engine_seconds()));
    cn_js_patch_clock.use(false);
    CHECK(!cn_js_engine_clock_used());
    CHECK(engine_seconds() == 42);
}

static void without(void *data)
{
    (void)data;
    late = true;
    CHECK(engine_seconds() == 42);
    cn_js_patch_clock.found((void *const[]){NULL});
    (void)engine_seconds();
}

/* A patch that was switched off although its library was not found would call nothing. */
TEST(js_clock, off_without_a_library_is_our_mistake)
{
    CHECK_ASSERTS("library", without, NULL);
}

/* A chain that makes no garbage to speak of and gives up by itself after half a minute. */
#define CHAIN(seconds)                                                                        \
    "(() => { const end = Date.now() + " #seconds "000; globalThis.rounds = 0;"               \
    "(function next() { rounds++; if (Date.now() < end) Promise.resolve().then(next); })(); " \
    "return 'begun'; })()"

TEST(js_clock, an_endless_chain_of_microtasks_ends_with_its_budget)
{
    struct js_rig rig;
    js_rig_open(&rig);
    size_t count;
    CHECK(cn_js_engine_patches(&count) && count > 0);
    if (!cn_js_engine_clock_used())
        test_skip("the patch is off here");
    enum cn_js_end end;
    rig.context->budget_ns = 20000000;
    CHECK_STR("begun", js_rig_evaluate(rig.context, CHAIN(30), &end));
    CHECK_INT(CN_JS_END_CPU, end);
    CHECK(rig.context->cut);
    rig.context->cut = false;
    /* It is over for good, and the VM lives on. */
    CHECK_STR("true", js_rig_run(&rig, "globalThis.before = rounds; rounds > 1"));
    CHECK_STR("true", js_rig_run(&rig, "rounds === before"));
    /* One that stays below its budget comes to its end. */
    rig.context->budget_ns = 10000000000u;
    js_rig_run(&rig, "let left = 1000; (function next() { if (left--) "
                     "Promise.resolve().then(next); else globalThis.whole = true; })()");
    CHECK_STR("true", js_rig_run(&rig, "String(globalThis.whole)"));
    CHECK(!rig.context->cut);
    js_rig_close(&rig);
}
