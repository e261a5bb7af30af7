/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/names.h"

#include <dlfcn.h>

#include "base/assert.h"
#include "base/clock.h"
#include "js/context.h"
#include "js/vm.h"

#define LOOK_EVERY 4096 /* names: a few milliseconds */
#define FEW 255u        /* a mask */
#define OF_UNSIGNED "_ZN3JSC10Identifier4fromERNS_2VMEj"
#define OF_INT "_ZN3JSC10Identifier4fromERNS_2VMEi"

static bool (*is_overdue)(uint64_t now_mono_ns);
static bool usable;
static _Thread_local bool pretend; /* that it is overdue: for the proof */
static _Thread_local struct {
    unsigned left; /* names until the next look */
    bool overdue;  /* as of the last */
} mine;

static bool look(void)
{
    if (mine.left-- > 0)
        return mine.overdue;
    mine.left = LOOK_EVERY;
    mine.overdue = usable && (pretend || is_overdue(cn_clock_mono_ns(cn_clock_system())));
    return mine.overdue;
}

/* The result is in memory of the caller. */
typedef void *(*make)(void *name, void *vm, unsigned index);

#define NAME(function, symbol)                                            \
    void *function(void *name, void *vm, unsigned index) __asm__(symbol); \
    void *function(void *name, void *vm, unsigned index)                  \
    {                                                                     \
        static make original;                                             \
        if (__builtin_expect(!original, 0))                               \
            *(void **)&original = dlsym(RTLD_NEXT, symbol);               \
        CN_ASSERT(original);                                              \
        return original(name, vm, look() ? index & FEW : index); /* K1 */ \
    }
NAME(cn_js_engine_name_of_unsigned, OF_UNSIGNED)
NAME(cn_js_engine_name_of_int, OF_INT)

void cn_js_engine_names_setup(bool (*overdue)(uint64_t now_mono_ns))
{
    is_overdue = overdue;
}

static double count_names(struct cn_js_vm *vm, const char *source)
{
    struct cn_js_context context = {.vm = vm, .ref = vm->bare};
    JSStringRef text = JSStringCreateWithUTF8CString(source);
    mine.left = 0;
    cn_js_enter(&context);
    JSValueRef value = JSEvaluateScript(vm->bare, text, NULL, NULL, 1, NULL);
    double count = value ? JSValueToNumber(vm->bare, value, NULL) : -1;
    cn_js_leave(&context);
    JSStringRelease(text);
    return count;
}

/* All names are there; of a turn that is past its limit, few. The first name is looked at, so a
 * list need not be longer than what few are. */
static const char *prove(struct cn_js_vm *vm)
{
    static const char *const lists[] = {"Object.keys(new Uint8Array(600)).length",
                                        "Object.keys(new Array(600).fill(1)).length",
                                        "Object.keys(Object('x'.repeat(600))).length"};
    const char *problem = NULL;
    for (size_t i = 0; i < CN_ARRAY_COUNT(lists) && !problem; i++) {
        if (count_names(vm, lists[i]) != 600)
            problem = "a list of names is not whole";
        pretend = true;
        if (count_names(vm, lists[i]) > FEW + 1)
            problem = "a list of names goes on when its turn is to end";
        pretend = false;
    }
    mine.left = 0;
    return problem;
}

static void use(bool on)
{
    usable = on;
}

const struct cn_js_patch cn_js_patch_names = {
    .name = "names",
    .replaces = "JSC::Identifier::from(VM&, unsigned), (VM&, int)",
    .why =
        "a list of millions of names (Object.keys, JSON.stringify, for-in) is made without a look "
        "at the time",
    .gain = "no speed; the turn ends in its time",
    .without = "the lane hangs until the list is made, or until the server starts itself anew",
    .symbols = {OF_UNSIGNED, OF_INT},
    .use = use,
    .prove = prove,
};
