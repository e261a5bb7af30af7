/* SPDX-License-Identifier: Apache-2.0 */
/* A turn that is to end does, without a request by way of the stack limit. */
#include "js/engine/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/js_rig.h"

void engine_requests(void *traps,
                     unsigned event) __asm__("_ZN3JSC7VMTraps25requestThreadStopIfNeededEj");
void engine_cancels(void *traps) __asm__("_ZN3JSC7VMTraps24cancelThreadStopIfNeededEv");

static unsigned requests, cancels, last_event;
static void *last_traps;

static void librarys_request(void *traps, unsigned event)
{
    requests++;
    last_event = event;
    last_traps = traps;
}

static void librarys_cancel(void *traps)
{
    cancels++;
    last_traps = traps;
}

/* P1 of patch.h */
TEST(js_stop, off_requests_are_passed_on_and_on_they_are_not)
{
    int traps, other;
    cn_js_patch_stop.found((void *const[]){(void *)librarys_request, (void *)librarys_cancel});
    engine_requests(&traps, 7);
    CHECK(requests == 1 && last_event == 7 && last_traps == &traps);
    engine_cancels(&other);
    CHECK(cancels == 1 && last_traps == &other);
    cn_js_patch_stop.use(true);
    engine_requests(&traps, 8);
    engine_cancels(&traps);
    CHECK(requests == 1 && cancels == 1);
    cn_js_patch_stop.use(false);
    engine_requests(&traps, 9);
    engine_cancels(&traps);
    CHECK(requests == 2 && cancels == 2 && last_event == 9);
}

static JSValueRef end_turn(JSContextRef ctx, JSObjectRef function, JSObjectRef this_object,
                           size_t argc, const JSValueRef argv[], JSValueRef *exception)
{
    (void)function, (void)this_object, (void)argc, (void)argv, (void)exception;
    cn_js_end_turn(cn_js_vm_current());
    return JSValueMakeUndefined(ctx);
}

static void lend_end(struct js_rig *rig)
{
    JSContextRef ctx = rig->context->ref;
    JSStringRef name = JSStringCreateWithUTF8CString("end");
    cn_js_enter(rig->context);
    JSObjectSetProperty(ctx, JSContextGetGlobalObject(ctx), name,
                        JSObjectMakeFunctionWithCallback(ctx, name, end_turn), 0, NULL);
    cn_js_leave(rig->context);
    JSStringRelease(name);
}

/* Loops of every kind, each of which ends itself after half a minute: interpreted, compiled,
 * caught, finally, and in the engine's own functions. */
static const char *const loops[] = {
    "end(); for (;;) if (Date.now() > last) break;",
    "let n = 0; for (let i = 0; i < 1e6; i++) n += i; end(); for (;;) if (Date.now() > last) "
    "break;",
    "end(); try { for (;;) if (Date.now() > last) break; } catch { globalThis.caught = true; }",
    "end(); try { for (;;) if (Date.now() > last) break; } finally { globalThis.caught = true; }",
    "end(); [...Array(1e5)].forEach(() => { while (Date.now() < last); });",
    "end(); new Promise((f) => f()).then(function again() { if (Date.now() < last) return "
    "Promise.resolve().then(again); })",
    "end(); JSON.parse('[1,2]', () => { while (Date.now() < last); });",
};

static void end_loops(void *data)
{
    struct js_rig rig;
    setenv("CAIRN_ENGINE_PATCHES", data ? "on" : "-stop,-clock", 1);
    js_rig_open(&rig);
    lend_end(&rig);
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
        char source[512];
        enum cn_js_end end;
        snprintf(source, sizeof(source), "{ const last = Date.now() + 30000; %s }", loops[i]);
        js_rig_evaluate(rig.context, source, &end);
        if (end != CN_JS_END_ASKED || !rig.context->cut)
            printf("not ended: %s\n", loops[i]);
        rig.context->cut = false;
        if (strcmp(js_rig_run(&rig, "String(globalThis.caught)"), "undefined") != 0)
            printf("caught: %s\n", loops[i]);
    }
    js_rig_close(&rig);
    printf("done");
}

TEST(js_stop, every_loop_that_is_to_end_does_and_cannot_catch_it)
{
    static int with;
    CHECK_STR("done", js_rig_child(end_loops, &with));
}

/* Needed by nobody: with the engine's own way a turn ends as well (P4). */
TEST(js_stop, so_it_does_without_the_patch)
{
    CHECK_STR("done", js_rig_child(end_loops, NULL));
}

TEST(js_stop, is_proven_by_what_the_engine_calls)
{
    struct js_rig rig;
    js_rig_open(&rig);
    cn_js_patch_stop.use(true);
    CHECK(!cn_js_patch_stop.prove(rig.vm));
    /* Off, the library's own functions are called, not ours: the proof would say so. */
    cn_js_patch_stop.use(false);
    const char *wrong = cn_js_patch_stop.prove(rig.vm);
    CHECK(wrong && strstr(wrong, "does not call"));
    cn_js_patch_stop.use(true);
    js_rig_close(&rig);
}
