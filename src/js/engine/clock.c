/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/clock.h"

#include <math.h>

#include "base/assert.h"
#include "base/clock.h"
#include "js/context.h"
#include "js/vm.h"

#define SYMBOL "_ZN3WTF7CPUTime16forCurrentThreadEv"

static bool usable;
static double (*library)(void);
static bool (*is_overdue)(uint64_t now_mono_ns);

void cn_js_engine_clock_setup(bool (*overdue)(uint64_t now_mono_ns))
{
    is_overdue = overdue;
}

bool cn_js_engine_clock_used(void)
{
    return usable;
}

/* Takes the place of the library's WTF::CPUTime::forCurrentThread(). */
double cn_js_engine_cpu_seconds(void) __asm__(SYMBOL);
double cn_js_engine_cpu_seconds(void)
{
    if (!usable) {
        CN_ASSERT(library);
        return library();
    }
    uint64_t now = cn_clock_mono_ns(cn_clock_system());
    return is_overdue(now) ? INFINITY : (double)now * 1e-9;
}

/* An endless chain of microtasks comes to its end. It ends itself after some seconds, if nobody
 * does: a machine may be slow, but not that slow. Each of the microtasks sets a timer of the
 * engine, and two of them may meet: that ends the process, if the patch `stop` is off (P5). */
static const char *prove(struct cn_js_vm *vm)
{
    struct cn_js_context context = {.vm = vm, .ref = vm->bare, .budget_ns = 20000};
    static const char source[] =
        "(() => { const end = Date.now() + 5000;"
        "(function next() { if (Date.now() < end) Promise.resolve().then(next); })(); })()";
    JSStringRef text = JSStringCreateWithUTF8CString(source);
    cn_js_enter(&context);
    JSEvaluateScript(vm->bare, text, NULL, NULL, 1, NULL);
    cn_js_leave(&context);
    JSStringRelease(text);
    return context.cut ? NULL : "an endless chain of microtasks is not ended";
}

static void found(void *const functions[])
{
    *(void **)&library = functions[0];
}

static void use(bool on)
{
    usable = on;
}

const struct cn_js_patch cn_js_patch_clock = {
    .name = "clock",
    .replaces = "WTF::CPUTime::forCurrentThread",
    .why =
        "the engine counts a turn's time anew at every microtask, and never ends a chain of them",
    .gain = "CPU of a plain request 15 -> 12 us (no system call at each entry), and every chain is "
            "ended in time",
    .without =
        "an endless chain of microtasks is noticed when the heap is next collected; one that "
        "allocates nothing is not",
    .needs = "stop",
    .symbols = {SYMBOL},
    .found = found,
    .use = use,
    .prove = prove,
};
