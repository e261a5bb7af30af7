/* SPDX-License-Identifier: Apache-2.0 */
/* error.stack is shaped once, at the first look, by every way there is (T1 to T3). */
#include "js/engine/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "test/lib/js_rig.h"

static bool is_on(void)
{
    size_t count;
    const struct cn_js_patch_status *all = cn_js_engine_patches(&count);
    for (size_t i = 0; i < count; i++)
        if (all[i].patch == &cn_js_patch_stacks)
            return all[i].on;
    return false;
}

/* The function of the context: writes down how often it was called, and for what. */
static void shape_by(struct js_rig *rig, const char *source)
{
    JSValueRef function;
    struct cn_err err;
    cn_js_enter(rig->context);
    CHECK_INT(0, cn_js_evaluate(rig->context, source, "test", &function, &err));
    cn_js_context_shape_stacks(rig->context, (JSObjectRef)function);
    cn_js_leave(rig->context);
}

#define COUNTING                                                                               \
    "globalThis.calls = []; (e, touched) => { calls.push(touched === undefined ? 'look' : "    \
    "touched); if (touched !== 'stack') Object.defineProperty(e, 'stack', { value: 'shaped', " \
    "writable: true, configurable: true }); }"

static bool begin(struct js_rig *rig)
{
    js_rig_open(rig);
    if (!is_on())
        return false;
    shape_by(rig, COUNTING);
    return true;
}

/* Ways to the properties; what the function is told, and what the stack reads then. */
static const struct {
    const char *way, *told, *stack;
} ways[] = {
    {"e.stack", "look", "shaped"},
    {"e.line; e.column; e.sourceURL", "look", "shaped"},
    {"Object.getOwnPropertyNames(e)", "look", "shaped"},
    {"Reflect.ownKeys(e)", "look", "shaped"},
    {"Object.getOwnPropertyDescriptor(e, 'stack')", "look", "shaped"},
    {"Object.hasOwn(e, 'stack')", "look", "shaped"},
    {"'stack' in e", "look", "shaped"},
    {"Reflect.get(e, 'stack')", "look", "shaped"},
    {"({ ...e })", "look", "shaped"}, /* the engine asks for all names */
    {"Object.keys(e)", "", "shaped"},
    {"JSON.stringify(e)", "", "shaped"},
    {"e.message; e.name; e.other", "", "shaped"},
    {"e.other = 1", "", "shaped"},
    {"e.stack = 'mine'", "stack", "mine"},
    {"Reflect.set(e, 'stack', 'mine')", "stack", "mine"},
    {"delete e.stack", "stack", "undefined"},
    {"e.line = 7", "line", "shaped"},
    {"delete e.column", "column", "shaped"},
    {"e.sourceURL = ''", "sourceURL", "shaped"},
    {"Object.defineProperty(e, 'stack', { value: 'mine' })", "look", "mine"},
    {"Object.freeze(e)", "look", "shaped"},
};
static const char *const makers[] = {
    "new Error('m')",
    "new TypeError('m', { cause: 1 })",
    "new (class X extends RangeError {})('m')",
    "(() => { try { null.x; } catch (e) { return e; } })()",
    "(() => { try { JSON.parse('{'); } catch (e) { return e; } })()",
    "new AggregateError([], 'm')",
};

TEST(js_stacks, T1_every_way_shapes_once_and_none_that_does_not_look)
{
    struct js_rig rig;
    if (!begin(&rig))
        test_skip("the patch is off here");
    char source[512], want[64];
    for (size_t m = 0; m < sizeof(makers) / sizeof(makers[0]); m++) {
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
            snprintf(source, sizeof(source),
                     "(() => { calls.length = 0; const e = %s; %s; const told = calls.join(); "
                     "const stack = String(e.stack); e.stack; e.line; Reflect.ownKeys(e); "
                     "return told + '|' + stack + '|' + calls.length; })()",
                     makers[m], ways[i].way);
            snprintf(want, sizeof(want), "%s|%s|1", ways[i].told, ways[i].stack);
            const char *got = js_rig_run(&rig, source);
            if (strcmp(got, want) != 0)
                test_fail(__FILE__, __LINE__, "%s; %s: want %s, got %s", makers[m], ways[i].way,
                          want, got);
        }
    }
    js_rig_close(&rig);
}

/* T2: a place in the program that was compiled for errors that were made before sees new ones, and
 * the other way round. */
TEST(js_stacks, T2_compiled_code_sees_what_interpreted_code_does)
{
    struct js_rig rig;
    if (!begin(&rig))
        test_skip("the patch is off here");
    CHECK_STR(
        "0", js_rig_run(&rig,
                        "(() => { let wrong = 0;"
                        "const set = (e) => { e.stack = 'mine'; return e.stack === 'mine'; };"
                        "const drop = (e) => delete e.stack && e.stack === undefined;"
                        "const read = (e) => e.stack === 'shaped';"
                        "const line = (e) => { e.line = 7; return e.line === 7 && e.stack === "
                        "'shaped'; };"
                        "for (let i = 0; i < 20000; i++) for (const way of [set, drop, read, line])"
                        "  if (!way(new Error(i))) wrong++;"
                        "return wrong; })()"));
    js_rig_close(&rig);
}

TEST(js_stacks, T3_what_the_function_throws_is_dropped)
{
    struct js_rig rig;
    if (!begin(&rig))
        test_skip("the patch is off here");
    shape_by(&rig, "globalThis.thrown = 0; () => { thrown++; throw new Error('no'); }");
    /* The error that it throws is never looked at: no circle. */
    CHECK_STR("string 1", js_rig_run(&rig, "(() => { const e = new Error('m'); const s = typeof "
                                           "e.stack; return s + ' ' + thrown; })()"));
    /* One that looks at its own errors, and at the one it was given. */
    shape_by(&rig, "globalThis.depth = 0; (e) => { depth++; e.stack; if (depth < 50) new "
                   "Error().stack; }");
    CHECK_STR("string", js_rig_run(&rig, "typeof new Error('m').stack"));
    CHECK_STR("50", js_rig_run(&rig, "depth"));
    js_rig_close(&rig);
}

/* Of another global of the same VM, and one without a function. */
TEST(js_stacks, a_global_has_a_function_of_its_own_or_the_engines_form)
{
    struct js_rig rig;
    if (!begin(&rig))
        test_skip("the patch is off here");
    struct js_rig plain = {rig.vm, cn_js_context_new(rig.vm, NULL)};
    CHECK_STR("shaped", js_rig_run(&rig, "new Error('m').stack"));
    CHECK(strstr(js_rig_run(&plain, "(function f() { return new Error('m').stack; })()"), "f@"));
    shape_by(&plain, "(e) => { e.stack = 'other'; }");
    CHECK_STR("other", js_rig_run(&plain, "new Error('m').stack"));
    CHECK_STR("shaped", js_rig_run(&rig, "new Error('m').stack"));
    cn_js_context_free(plain.context);
    js_rig_close(&rig);
}

/* P1 of patch.h: switched off, errors are the engine's, those too that were there before. */
TEST(js_stacks, switched_off_errors_are_the_engines)
{
    struct js_rig rig;
    if (!begin(&rig))
        test_skip("the patch is off here");
    js_rig_run(&rig, "globalThis.before = (function f() { return new Error('m'); })()");
    cn_js_patch_stacks.use(false);
    CHECK(strstr(js_rig_run(&rig, "before.stack"), "f@"));
    CHECK_STR("0", js_rig_run(&rig, "calls.length"));
    cn_js_patch_stacks.use(true);
    CHECK_STR("shaped", js_rig_run(&rig, "new Error('m').stack"));
    CHECK(!cn_js_patch_stacks.prove(rig.vm));
    js_rig_close(&rig);
}
