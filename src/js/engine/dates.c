/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/dates.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"
#include "js/context.h"
#include "js/vm.h"

#define SYMBOL "_ZN3JSC9DateCache20resetIfNecessarySlowEv"
/* 2.54 has this instead, for who changes the time zone, and does not call it at entries. */
#define CLEAR "_ZN3JSC9DateCache22clearForTimeZoneChangeEv"

/* Off: the library forgets. Tried: it does not, and what it would have done is counted. */
enum use { USE_OFF, USE_TRIED, USE_ON };
static atomic_int state; /* asked on every lane */
static atomic_uint kept;
static void (*library)(void *cache);

void cn_js_engine_forget_dates(void *cache) __asm__(SYMBOL);
void cn_js_engine_forget_dates(void *cache)
{
    int now = atomic_load_explicit(&state, memory_order_relaxed);
    if (now == USE_ON)
        return;
    if (now == USE_TRIED) {
        atomic_fetch_add_explicit(&kept, 1, memory_order_relaxed);
        return;
    }
    CN_ASSERT(library);
    library(cache);
}

static bool evaluates_to_true(struct cn_js_vm *vm, const char *source)
{
    struct cn_js_context context = {.vm = vm, .ref = vm->bare};
    JSStringRef text = JSStringCreateWithUTF8CString(source);
    cn_js_enter(&context);
    JSValueRef value = JSEvaluateScript(vm->bare, text, NULL, NULL, 1, NULL);
    bool is_true = value && JSValueToBoolean(vm->bare, value);
    cn_js_leave(&context);
    JSStringRelease(text);
    return is_true;
}

/* Entered again and again, dates are right: both those seen before and new ones. A library that
 * nobody knows is asked for local ones too, which are those of UTC; that loads 2 MB of zones (and
 * toString(), which names the zone, would load 3 MB more). */
static const char *prove(struct cn_js_vm *vm)
{
    static const char plain[] =
        "[0, 951782400000, -1e12].every(at => { const d = new Date(at); return Date.UTC("
        "  d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate(), d.getUTCHours()) <= at; })";
    static const char local[] =
        "[0, 1, 951782400000, 1719792000000, -1e12, Date.now()].every(at => {"
        "  const d = new Date(at);"
        "  return d.getTimezoneOffset() === 0 && d.getHours() === d.getUTCHours() &&"
        "    new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime() ==="
        "    Date.UTC(d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate()); })";
    const char *source = cn_js_engine_build_known() ? plain : local;
    unsigned before = atomic_load_explicit(&kept, memory_order_relaxed);
    for (int i = 0; i < 3; i++)
        if (!evaluates_to_true(vm, source))
            return "dates are wrong, or not those of UTC";
    if (atomic_load_explicit(&kept, memory_order_relaxed) == before)
        return "the library does not call what is put in the place of its function";
    atomic_store_explicit(&state, USE_ON, memory_order_relaxed);
    return NULL;
}

static void found(void *const functions[])
{
    *(void **)&library = functions[0];
}

static void use(bool on)
{
    atomic_store_explicit(&state, on ? USE_TRIED : USE_OFF, memory_order_relaxed);
}

const struct cn_js_patch cn_js_patch_dates = {
    .name = "dates",
    .replaces = "JSC::DateCache::resetIfNecessarySlow",
    .why = "the engine forgets what it knows of dates at every entry, in case the time zone was "
           "changed; scripts have UTC, always",
    .gain = "4 % of the instructions of a call to an object",
    .without = "those instructions",
    .symbols = {SYMBOL},
    .superseded = CLEAR,
    .found = found,
    .use = use,
    .prove = prove,
};
