/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's lock: taken once per turn, and left as it was by every pair (E1 to E3 of
 * js/engine/lock.c). */
#include "js/engine/lock.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "js/native.h"
#include "js/value.h"
#include "test/lib/js_rig.h"

/* What the engine calls: ours, by the library's names. */
void hold(void *self, void *vm) __asm__("_ZN3JSC12JSLockHolderC1EPNS_2VME");
void hold_global(void *self,
                 const void *global) __asm__("_ZN3JSC12JSLockHolderC1EPNS_14JSGlobalObjectE");
void unhold(void *self) __asm__("_ZN3JSC12JSLockHolderD1Ev");
void drop(void *self, void *vm) __asm__("_ZN3JSC6JSLock12DropAllLocksC1EPNS_2VME");
void undrop(void *self) __asm__("_ZN3JSC6JSLock12DropAllLocksD1Ev");

struct words {
    uintptr_t at[16];
};

static bool is_on(void)
{
    size_t count;
    const struct cn_js_patch_status *all = cn_js_engine_patches(&count);
    for (size_t i = 0; i < count; i++)
        if (all[i].patch == &cn_js_patch_lock)
            return all[i].on;
    return false;
}

/* How often the calling thread has the lock, as the library counts it. Outside of turns. */
static intptr_t depth(struct js_rig *rig)
{
    struct words words = {{0}};
    drop(&words, (void *)rig->vm->group);
    CHECK(words.at[1] == (uintptr_t)rig->vm->group);
    intptr_t count = (intptr_t)words.at[0];
    undrop(&words);
    return count;
}

/* Calls back into JavaScript, as natives do; with a number: so deep. */
static JSValueRef native_again(CN_JS_NATIVE_ARGS)
{
    (void)function, (void)this_object;
    return cn_js_invoke(ctx, cn_js_arg(0), 1, &argv[1], exception);
}

static const char script[] =
    "(() => { let sum = 0;"
    "  const deep = (n) => n ? again(deep, n - 1) + 1 : 0;"
    "  for (let i = 0; i < 200; i++) sum += deep(i % 20);"
    "  try { again(() => { throw new Error('out'); }, 0); } catch (e) { sum += e.message; }"
    "  Promise.resolve().then(() => { globalThis.later = again((n) => n * 2, 21); });"
    "  return sum; })()";

static void run_natives(void *data)
{
    struct js_rig rig;
    setenv("CAIRN_ENGINE_PATCHES", data ? "on" : "-lock", 1);
    js_rig_open(&rig);
    cn_js_enter(rig.context);
    JSContextRef ctx = rig.context->ref;
    JSStringRef name = JSStringCreateWithUTF8CString("again");
    JSObjectSetProperty(ctx, JSContextGetGlobalObject(ctx), name,
                        JSObjectMakeFunctionWithCallback(ctx, name, native_again), 0, NULL);
    JSStringRelease(name);
    cn_js_leave(rig.context);
    struct words holder = {{1}};
    cn_js_enter(rig.context);
    hold(&holder, (void *)rig.vm->group);
    bool taken = holder.at[0] != 0;
    unhold(&holder);
    cn_js_leave(rig.context);
    printf("%s %s", taken ? "taken" : "left", js_rig_run(&rig, script));
    printf(" %s %d", js_rig_run(&rig, "later"), (int)depth(&rig));
    js_rig_close(&rig);
}

/* P1 of patch.h: the same, with and without. */
TEST(js_lock, calls_to_and_fro_come_to_the_same_with_and_without_it)
{
    static int with;
    CHECK_STR("taken 1900out 42 0", js_rig_child(run_natives, NULL));
    const char *got = js_rig_child(run_natives, &with);
    CHECK(strstr(got, " 1900out 42 0"));
}

TEST(js_lock, E1_what_was_left_alone_in_a_turn_is_left_alone_after_it)
{
    struct js_rig rig;
    js_rig_open(&rig);
    if (!is_on())
        test_skip("the patch is off here");
    struct words holder = {{1}}, dropper = {{1, 1}};
    CHECK_INT(0, depth(&rig));
    cn_js_enter(rig.context);
    hold(&holder, (void *)rig.vm->group);
    drop(&dropper, (void *)rig.vm->group);
    CHECK(!holder.at[0] && !dropper.at[0] && !dropper.at[1]);
    cn_js_leave(rig.context);
    CHECK_INT(0, depth(&rig));
    undrop(&dropper); /* the flag is off now: neither gives back what it never had */
    unhold(&holder);
    CHECK_INT(0, depth(&rig));
    js_rig_close(&rig);
}

TEST(js_lock, E1_what_the_library_took_goes_back_to_it_in_the_middle_of_a_turn)
{
    struct js_rig rig;
    js_rig_open(&rig);
    if (!is_on())
        test_skip("the patch is off here");
    struct words holder = {{0}}, global = {{0}};
    hold(&holder, (void *)rig.vm->group);
    hold_global(&global, rig.context->ref);
    CHECK(holder.at[0] == (uintptr_t)rig.vm->group && global.at[0] == holder.at[0]);
    CHECK_INT(2, depth(&rig));
    cn_js_enter(rig.context);
    unhold(&global);
    unhold(&holder);
    cn_js_leave(rig.context);
    CHECK_INT(0, depth(&rig));
    js_rig_close(&rig);
}

/* E2 */
TEST(js_lock, E2_outside_of_turns_the_lock_is_the_librarys)
{
    struct js_rig rig;
    js_rig_open(&rig);
    struct words holder = {{0}};
    js_rig_run(&rig, "1");
    hold(&holder, (void *)rig.vm->group);
    CHECK(holder.at[0] == (uintptr_t)rig.vm->group);
    CHECK_INT(1, depth(&rig));
    unhold(&holder);
    CHECK_INT(0, depth(&rig));
    js_rig_close(&rig);
}

struct elsewhere {
    uintptr_t held;
    intptr_t depth;
};

/* A thread with a VM of its own, which is not in a turn while the first one is. */
static void *look_elsewhere(void *data)
{
    struct elsewhere *elsewhere = data;
    struct js_rig rig;
    js_rig_open(&rig);
    struct words holder = {{0}};
    hold(&holder, (void *)rig.vm->group);
    elsewhere->held = holder.at[0];
    elsewhere->depth = depth(&rig);
    unhold(&holder);
    js_rig_close(&rig);
    return NULL;
}

TEST(js_lock, the_flag_is_each_threads_own)
{
    struct js_rig rig;
    js_rig_open(&rig);
    struct elsewhere elsewhere = {0};
    pthread_t thread;
    cn_js_enter(rig.context);
    CHECK_INT(0, pthread_create(&thread, NULL, look_elsewhere, &elsewhere));
    pthread_join(thread, NULL);
    cn_js_leave(rig.context);
    CHECK(elsewhere.held);
    CHECK_INT(1, elsewhere.depth);
    js_rig_close(&rig);
}
