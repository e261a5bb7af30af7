/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/lock.c - see lock.h.
 *
 * The engine lets any thread use a VM: every function of its C API takes the
 * VM's lock (five atomic instructions when it is held already), and a call from
 * JavaScript to C lets go of the lock and takes it again, so that each API
 * function inside takes and frees a mutex. A lane's VM is used by one thread, and a
 * turn holds the lock from its beginning to its end (vm.c), so all of this is for
 * nothing.
 *
 * The definitions below take the place of the library's constructors and
 * destructors of two classes, JSLockHolder and JSLock::DropAllLocks. In a turn they
 * do nothing; otherwise, and on other threads, they call the library's.
 *
 * E1  What a constructor here left alone has a null VM, which the library never
 *     leaves: the destructor knows by that whose it is, whatever the flag says now.
 * E2  The flag is set only between JSLock() and JSUnlock() of a turn.
 * E3  The flag stays off unless every constructor of the library lays its class out as
 *     below, every pair leaves the lock as it was, and the library calls ours. */
#include "js/engine/lock.h"

#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "js/context.h"
#include "js/jsc.h"
#include "js/vm.h"

struct holder {
    void *vm;
};

struct dropper {
    intptr_t count;
    void *vm;
    /* more, which only the library uses */
};

/* The library's own, in the order of the table at the end. */
enum function {
    HOLD_GLOBAL,
    HOLD_VM,
    HOLD_VM_REFERENCE,
    UNHOLD,
    DROP_GLOBAL,
    DROP_VM,
    DROP_VM_REFERENCE,
    UNDROP,
    FUNCTION_COUNT
};
static void *library[FUNCTION_COUNT];

enum held { NOT_HELD, HELD, PROVING };
static _Thread_local enum held held;
static bool usable;
/* While PROVING: what the constructors and destructors here were called for. */
static struct {
    unsigned constructed, destructed;
} counts[2];
enum { HOLDERS, DROPPERS };

void cn_js_engine_lock_held(bool now)
{
    held = now && usable ? HELD : NOT_HELD;
}

static void construct(enum function function, void *self, void *argument)
{
    void (*original)(void *, void *);
    CN_ASSERT(library[function]);
    *(void **)&original = library[function];
    original(self, argument);
}

static void destruct(enum function function, void *self)
{
    void (*original)(void *);
    CN_ASSERT(library[function]);
    *(void **)&original = library[function];
    original(self);
}

static void holder_new(struct holder *self, void *argument, enum function function)
{
    if (!held) {
        construct(function, self, argument);
        return;
    }
    self->vm = NULL;
    if (held == PROVING)
        counts[HOLDERS].constructed++;
}

static void holder_free(struct holder *self)
{
    if (held == PROVING)
        counts[HOLDERS].destructed++;
    if (self->vm) /* E1 */
        destruct(UNHOLD, self);
}

static void dropper_new(struct dropper *self, void *argument, enum function function)
{
    if (!held) {
        construct(function, self, argument);
        return;
    }
    self->count = 0;
    self->vm = NULL;
    if (held == PROVING)
        counts[DROPPERS].constructed++;
}

static void dropper_free(struct dropper *self)
{
    if (held == PROVING)
        counts[DROPPERS].destructed++;
    if (self->vm) /* E1 */
        destruct(UNDROP, self);
}

/* A constructor or destructor has two names, of the complete object and of one that is a base. */
#define HOLDER "_ZN3JSC12JSLockHolder"
#define DROPPER "_ZN3JSC6JSLock12DropAllLocks"
#define CONSTRUCTOR(name, type, class, arguments, function)                         \
    void name##_1(struct type *self, void *argument) __asm__(class "C1" arguments); \
    void name##_2(struct type *self, void *argument) __asm__(class "C2" arguments); \
    void name##_1(struct type *self, void *argument)                                \
    {                                                                               \
        type##_new(self, argument, function);                                       \
    }                                                                               \
    void name##_2(struct type *self, void *argument)                                \
    {                                                                               \
        type##_new(self, argument, function);                                       \
    }
#define DESTRUCTOR(name, type, class)                       \
    void name##_1(struct type *self) __asm__(class "D1Ev"); \
    void name##_2(struct type *self) __asm__(class "D2Ev"); \
    void name##_1(struct type *self)                        \
    {                                                       \
        type##_free(self);                                  \
    }                                                       \
    void name##_2(struct type *self)                        \
    {                                                       \
        type##_free(self);                                  \
    }

#define OF_GLOBAL "EPNS_14JSGlobalObjectE"
#define OF_VM "EPNS_2VME"
#define OF_VM_REFERENCE "ERNS_2VME"
CONSTRUCTOR(cn_js_engine_hold_global, holder, HOLDER, OF_GLOBAL, HOLD_GLOBAL)
CONSTRUCTOR(cn_js_engine_hold_vm, holder, HOLDER, OF_VM, HOLD_VM)
CONSTRUCTOR(cn_js_engine_hold_vm_reference, holder, HOLDER, OF_VM_REFERENCE, HOLD_VM_REFERENCE)
DESTRUCTOR(cn_js_engine_unhold, holder, HOLDER)
CONSTRUCTOR(cn_js_engine_drop_global, dropper, DROPPER, OF_GLOBAL, DROP_GLOBAL)
CONSTRUCTOR(cn_js_engine_drop_vm, dropper, DROPPER, OF_VM, DROP_VM)
CONSTRUCTOR(cn_js_engine_drop_vm_reference, dropper, DROPPER, OF_VM_REFERENCE, DROP_VM_REFERENCE)
DESTRUCTOR(cn_js_engine_undrop, dropper, DROPPER)

/* E3: what the library's own constructors write, on memory that can be looked at. */

#define UNTOUCHED ((uintptr_t)0x5a5a5a5a)
#define WORDS 16

/* How often the calling thread has the lock, as the library counts it; -1 if it does not say. */
static intptr_t depth(struct cn_js_vm *vm, enum function function)
{
    uintptr_t words[WORDS] = {UNTOUCHED, UNTOUCHED};
    void *argument = function == DROP_GLOBAL ? (void *)vm->bare : (void *)vm->group;
    construct(function, words, argument);
    intptr_t count = (intptr_t)words[0];
    bool good = words[1] == (uintptr_t)vm->group;
    destruct(UNDROP, words);
    return good ? count : -1;
}

static bool all_say(struct cn_js_vm *vm, intptr_t wanted)
{
    return depth(vm, DROP_GLOBAL) == wanted && depth(vm, DROP_VM) == wanted &&
           depth(vm, DROP_VM_REFERENCE) == wanted;
}

static bool holds_once(struct cn_js_vm *vm, enum function function)
{
    uintptr_t words[WORDS] = {UNTOUCHED, UNTOUCHED};
    void *argument = function == HOLD_GLOBAL ? (void *)vm->bare : (void *)vm->group;
    construct(function, words, argument);
    bool good = words[0] == (uintptr_t)vm->group && words[1] == UNTOUCHED && all_say(vm, 1);
    destruct(UNHOLD, words);
    return good && all_say(vm, 0);
}

/* Goes through the API as a native function does, from JavaScript and back into it. */
static JSValueRef call_back(JSContextRef ctx, JSObjectRef function, JSObjectRef this_object,
                            size_t argc, const JSValueRef argv[], JSValueRef *exception)
{
    if (argc == 0 || !JSValueIsObject(ctx, argv[0]))
        return JSValueMakeUndefined(ctx);
    JSValueRef number = JSValueMakeNumber(ctx, 42);
    return JSObjectCallAsFunction(ctx, (JSObjectRef)argv[0], NULL, 1, &number, exception);
}

/* A turn in which the lock is left alone comes to the right result, by our functions. */
static const char *turn_works(struct cn_js_vm *vm)
{
    static const char source[] =
        "(f => { let r = 0; r += f(n => n + 1); Promise.resolve().then(() => "
        "f(n => n)); return r; })";
    counts[HOLDERS].constructed = counts[HOLDERS].destructed = 0;
    counts[DROPPERS].constructed = counts[DROPPERS].destructed = 0;
    JSLock(vm->bare);
    held = PROVING;
    JSStringRef text = JSStringCreateWithUTF8CString(source);
    JSValueRef function = JSEvaluateScript(vm->bare, text, NULL, NULL, 1, NULL);
    JSStringRelease(text);
    JSValueRef argument = JSObjectMakeFunctionWithCallback(vm->bare, NULL, call_back);
    JSValueRef result =
        function && JSValueIsObject(vm->bare, function)
            ? JSObjectCallAsFunction(vm->bare, (JSObjectRef)function, NULL, 1, &argument, NULL)
            : NULL;
    bool right = result && JSValueToNumber(vm->bare, result, NULL) == 43;
    JSUnlock(vm->bare);
    held = NOT_HELD;
    if (!right)
        return "a function that C calls and that calls C gives a wrong result";
    if (!counts[HOLDERS].constructed || !counts[DROPPERS].constructed)
        return "the library does not call what is put in the place of its functions";
    if (counts[HOLDERS].constructed != counts[HOLDERS].destructed ||
        counts[DROPPERS].constructed != counts[DROPPERS].destructed)
        return "constructors and destructors are not called in pairs";
    return NULL;
}

static const char *prove(struct cn_js_vm *vm)
{
    if (!all_say(vm, 0))
        return "JSLock::DropAllLocks is laid out otherwise";
    if (!holds_once(vm, HOLD_GLOBAL) || !holds_once(vm, HOLD_VM) ||
        !holds_once(vm, HOLD_VM_REFERENCE))
        return "JSLockHolder is laid out otherwise";
    const char *wrong = turn_works(vm);
    if (!wrong && !all_say(vm, 0))
        wrong = "the lock is not free after a turn";
    return wrong;
}

static void found(void *const functions[])
{
    for (size_t i = 0; i < FUNCTION_COUNT; i++)
        library[i] = functions[i];
}

static void use(bool on)
{
    usable = on;
}

const struct cn_js_patch cn_js_patch_lock = {
    .name = "lock",
    .replaces = "JSLockHolder, JSLock::DropAllLocks (constructors, destructors)",
    .why =
        "every API function and every native function would take and free the VM's lock, which a "
        "turn has anyway",
    .gain = "CPU of a call to a Durable Object 21.0 -> 17.5 us, of a plain request 13 -> 12 us",
    .without = "calls between C and JavaScript cost more",
    .symbols = {HOLDER "C1" OF_GLOBAL, HOLDER "C1" OF_VM, HOLDER "C1" OF_VM_REFERENCE,
                HOLDER "D1Ev", DROPPER "C1" OF_GLOBAL, DROPPER "C1" OF_VM,
                DROPPER "C1" OF_VM_REFERENCE, DROPPER "D1Ev"},
    .found = found,
    .use = use,
    .prove = prove,
};
