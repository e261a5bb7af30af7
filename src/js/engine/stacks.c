/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/stacks.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "js/context.h"
#include "js/engine/string8.h"
#include "js/vm.h"

#define OF_OBJECT "_ZN3JSC8JSObject"
#define SPECIAL_NAMES OF_OBJECT "26getOwnSpecialPropertyNamesEPS0_PNS_14JSGlobalObjectERNS_"
#define NAMES_MODE "ENS_22DontEnumPropertiesModeE"
#define PROPERTY_NAME "EPNS_6JSCellEPNS_14JSGlobalObjectENS_12PropertyNameE"
/* What the library must have: the classes' descriptions, then functions of JSObject by which their
 * places in the tables are known. */
enum symbol {
    ERROR_INFO,
    OBJECT_INFO,
    OBJECT_PUT,
    OBJECT_DELETE,
    OBJECT_GET_BY_INDEX, /* follows the one that gets by name, which has no symbol */
    OBJECT_SPECIAL_NAMES,
    OBJECT_DEFINE,
    SYMBOL_COUNT
};
#define SYMBOLS                                                                                    \
    {                                                                                              \
        "_ZN3JSC13ErrorInstance6s_infoE", OF_OBJECT "6s_infoE",                                    \
            OF_OBJECT "3put" PROPERTY_NAME "NS_7JSValueERNS_15PutPropertySlotE",                   \
            OF_OBJECT "14deleteProperty" PROPERTY_NAME "RNS_18DeletePropertySlotE",                \
            OF_OBJECT "25getOwnPropertySlotByIndexEPS0_PNS_14JSGlobalObjectEjRNS_12PropertySlotE", \
            SPECIAL_NAMES "17PropertyNameArray" NAMES_MODE "|" SPECIAL_NAMES                       \
                          "24PropertyNameArrayBuilder" NAMES_MODE, /* 2.52 */                      \
            OF_OBJECT "17defineOwnPropertyEPS0_PNS_14JSGlobalObjectENS_12PropertyNameERKNS_"       \
                      "18PropertyDescriptorEb"                                                     \
    }

/* The part of a class's description in which its functions are, in pointers. */
#define TABLE_FIRST 6
#define TABLE_END 30
#define INCLUDE_HIDDEN 0 /* DontEnumPropertiesMode::Include */
/* The last bytes of an error: a bit among them says that the properties were made. */
#define FLAGS_AT 56

typedef bool get_function(JSObjectRef object, JSContextRef global, const void *name, void *slot);
typedef bool put_function(JSObjectRef object, JSContextRef global, const void *name,
                          uintptr_t value, void *slot);
typedef bool delete_function(JSObjectRef object, JSContextRef global, const void *name, void *slot);
typedef void names_function(JSObjectRef object, JSContextRef global, void *names, uint8_t mode);
typedef bool define_function(JSObjectRef object, JSContextRef global, const void *name,
                             const void *descriptor, bool throws);

static void *library[SYMBOL_COUNT];
/* The errors' own functions, in the places that `entry` says. */
static struct {
    get_function *get;
    put_function *put;
    delete_function *remove;
    names_function *names;
    define_function *define;
} original;
static struct {
    size_t get, put, remove, names, define; /* in pointers; 0: not found */
} entry;
static uint64_t made_bit;        /* 0: not known yet, and nothing is done */
static JSObjectRef proof_shaper; /* while it is proven: the bare context's */

static uint64_t flags_of(JSObjectRef error)
{
    uint64_t flags;
    memcpy(&flags, (const char *)(const void *)error + FLAGS_AT, sizeof(flags));
    return flags;
}

static bool is_unmade(JSObjectRef error)
{
    return made_bit && !(flags_of(error) & made_bit);
}

/* The name as the script would write it, of the four; NULL: another. */
static const char *made_name(const void *name)
{
    static const char *const names[] = {"stack", "line", "column", "sourceURL"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++)
        if (cn_js_string8_impl_equals(name, names[i]))
            return names[i];
    return NULL;
}

static JSObjectRef shaper_of(JSContextRef global)
{
    struct cn_js_vm *vm = cn_js_vm_current();
    if (!vm)
        return NULL;
    if (global == vm->bare)
        return proof_shaper;
    struct cn_js_context *context = cn_js_context_find(vm, global);
    return context ? context->stacks : NULL;
}

/* The engine has made the properties. `touched`: which of them was written or deleted; or NULL. */
static void shape(JSObjectRef error, JSContextRef global, const char *touched)
{
    JSObjectRef shaper = shaper_of(global);
    if (!shaper)
        return;
    JSValueRef arguments[2] = {error, JSValueMakeUndefined(global)};
    JSValueRef exception = NULL;
    if (touched) {
        JSStringRef text = JSStringCreateWithUTF8CString(touched);
        arguments[1] = JSValueMakeString(global, text);
        JSStringRelease(text);
    }
    JSObjectCallAsFunction(global, shaper, NULL, 2, arguments, &exception); /* T3 */
}

static void make(JSObjectRef error, JSContextRef global)
{
    original.names(error, global, NULL, INCLUDE_HIDDEN); /* does nothing else */
    shape(error, global, NULL);
}

static bool get(JSObjectRef error, JSContextRef global, const void *name, void *slot)
{
    if (is_unmade(error) && made_name(name))
        make(error, global);
    return original.get(error, global, name, slot);
}

static bool put(JSObjectRef error, JSContextRef global, const void *name, uintptr_t value,
                void *slot)
{
    const char *made = is_unmade(error) ? made_name(name) : NULL;
    bool done = original.put(error, global, name, value, slot); /* T2 */
    if (made)
        shape(error, global, made);
    return done;
}

static bool remove_property(JSObjectRef error, JSContextRef global, const void *name, void *slot)
{
    const char *made = is_unmade(error) ? made_name(name) : NULL;
    bool done = original.remove(error, global, name, slot); /* T2 */
    if (made)
        shape(error, global, made);
    return done;
}

static void special_names(JSObjectRef error, JSContextRef global, void *names, uint8_t mode)
{
    if (mode == INCLUDE_HIDDEN && is_unmade(error))
        make(error, global);
    original.names(error, global, names, mode);
}

static bool define(JSObjectRef error, JSContextRef global, const void *name, const void *descriptor,
                   bool throws)
{
    if (is_unmade(error) && made_name(name))
        make(error, global);
    return original.define(error, global, name, descriptor, throws);
}

/* The table. */

/* Where the class of all objects has `function`; 0: nowhere, or errors have no function of their
 * own there. */
static size_t place_of(const void *function, size_t before)
{
    void *const *object = library[OBJECT_INFO], *const *error = library[ERROR_INFO];
    for (size_t i = TABLE_FIRST; i < TABLE_END; i++)
        if (object[i] == function)
            return error[i - before] != object[i - before] ? i - before : 0;
    return 0;
}

static void found(void *const functions[])
{
    memcpy(library, functions, sizeof(library));
    for (size_t i = 0; i < SYMBOL_COUNT; i++)
        if (!library[i])
            return;
    entry.get = place_of(library[OBJECT_GET_BY_INDEX], 1);
    entry.put = place_of(library[OBJECT_PUT], 0);
    entry.remove = place_of(library[OBJECT_DELETE], 0);
    entry.names = place_of(library[OBJECT_SPECIAL_NAMES], 0);
    entry.define = place_of(library[OBJECT_DEFINE], 0);
    if (!entry.get || !entry.put || !entry.remove || !entry.names || !entry.define)
        return;
    void *const *error = library[ERROR_INFO];
    *(void **)&original.get = error[entry.get];
    *(void **)&original.put = error[entry.put];
    *(void **)&original.remove = error[entry.remove];
    *(void **)&original.names = error[entry.names];
    *(void **)&original.define = error[entry.define];
}

static void set_entry(size_t index, const void *function)
{
    _Atomic(const void *) *table = library[ERROR_INFO];
    atomic_store(&table[index], function);
}

/* The table is read-only once the library is loaded. */
static bool unlock_table(bool writable)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)library[ERROR_INFO] & ~(page - 1);
    uintptr_t end = (uintptr_t)((void **)library[ERROR_INFO] + TABLE_END);
    return mprotect((void *)first, end - first, writable ? PROT_READ | PROT_WRITE : PROT_READ) == 0;
}

static void use(bool on)
{
    if (!original.define || !unlock_table(true))
        return; /* the proof will tell */
    set_entry(entry.get, on ? (void *)get : (void *)original.get);
    set_entry(entry.put, on ? (void *)put : (void *)original.put);
    set_entry(entry.remove, on ? (void *)remove_property : (void *)original.remove);
    set_entry(entry.names, on ? (void *)special_names : (void *)original.names);
    set_entry(entry.define, on ? (void *)define : (void *)original.define);
    unlock_table(false);
}

/* The proof. */

static JSValueRef evaluate(struct cn_js_vm *vm, const char *source)
{
    JSStringRef text = JSStringCreateWithUTF8CString(source);
    JSValueRef exception = NULL;
    JSValueRef value = JSEvaluateScript(vm->bare, text, NULL, NULL, 1, &exception);
    JSStringRelease(text);
    return value ? value : JSValueMakeUndefined(vm->bare);
}

/* The one bit that is set when the properties are made, of errors of several kinds; 0: there is no
 * such bit. */
static uint64_t find_bit(struct cn_js_vm *vm)
{
    static const char *const errors[] = {
        "new Error('a')", "new RangeError()", "(() => { try { null.x } catch (e) { return e } })()",
        "Object.assign(new (class extends TypeError {})('b'), { more: 1 })"};
    uint64_t bits = ~UINT64_C(0);
    for (size_t i = 0; i < CN_ARRAY_COUNT(errors); i++) {
        JSValueRef value = evaluate(vm, errors[i]);
        if (!JSValueIsObject(vm->bare, value))
            return 0;
        JSObjectRef error = (JSObjectRef)value;
        uint64_t before = flags_of(error);
        original.names(error, vm->bare, NULL, INCLUDE_HIDDEN);
        bits &= flags_of(error) & ~before;
    }
    return __builtin_popcountll(bits) == 1 ? bits : 0;
}

/* Of a build that was tried before: every start waits for it. */
static const char short_trial[] =
    "(() => {"
    "  const a = new Error('m'), b = new Error('m'), c = new Error('m'), d = new Error('m');"
    "  b.line = 7; delete c.column;"
    "  return [a, b, c].every((e) => e.stack === 'shaped') && b.line === 7 &&"
    "    Object.getOwnPropertyNames(d).length === 2 && d.stack === 'shaped';"
    "})()";
/* Every way to the properties shapes them, in code that was compiled too. */
static const char trial[] =
    "(() => {"
    "  const S = 'shaped', own = (e, n) => Object.hasOwn(e, n);"
    "  const ways = ["
    "    (e) => e.stack === S && e.stack === S,"
    "    (e) => Object.getOwnPropertyNames(e).includes('stack') && e.stack === S,"
    "    (e) => Reflect.ownKeys(e).length > 0 && e.stack === S,"
    "    (e) => { e.line = 7; return e.line === 7 && e.stack === S; },"
    "    (e) => { e.column = 7; return e.stack === S; },"
    "    (e) => { e.stack = 'mine'; return e.stack === 'mine'; },"
    "    (e) => delete e.stack && e.stack === undefined,"
    "    (e) => delete e.sourceURL && e.stack === S,"
    "    (e) => Object.defineProperty(e, 'stack', { enumerable: true }).stack === S,"
    "    (e) => Object.getOwnPropertyDescriptor(e, 'stack').value === S,"
    "    (e) => own(e, 'stack') && e.stack === S,"
    "    (e) => { e.other = 1; return e.other === 1 && e.message === 'm' && e.stack === S; },"
    "  ];"
    "  const makers = ["
    "    () => new Error('m'), () => new TypeError('m', { cause: 1 }),"
    "    () => new (class X extends RangeError { constructor() { super('m'); this.name = 'X'; } "
    "})(),"
    "    () => { try { null.x; } catch (e) { e.message = 'm'; return e; } },"
    "  ];"
    "  for (let i = 0; i < 400; i++)"
    "    for (const way of ways) for (const make of makers) if (!way(make())) return false;"
    "  return true;"
    "})()";

static const char *try_out(struct cn_js_vm *vm)
{
    JSValueRef shaper = evaluate(
        vm, "(error, touched) => { if (touched !== 'stack') Object.defineProperty(error, 'stack', "
            "{ value: 'shaped', writable: true, configurable: true, enumerable: false });"
            "for (const name of ['line', 'column', 'sourceURL']) if (name !== touched) delete "
            "error[name]; }");
    if (!JSValueIsObject(vm->bare, shaper))
        return "its function cannot be made";
    proof_shaper = (JSObjectRef)shaper;
    JSValueProtect(vm->bare, shaper);
    JSValueRef good = evaluate(vm, cn_js_engine_build_known() ? short_trial : trial);
    proof_shaper = NULL;
    JSValueUnprotect(vm->bare, shaper);
    return JSValueIsBoolean(vm->bare, good) && JSValueToBoolean(vm->bare, good)
               ? NULL
               : "a stack is not given its form";
}

static const char *prove(struct cn_js_vm *vm)
{
    if (!original.define)
        return "the table of functions of errors is laid out otherwise";
    struct cn_js_context context = {.vm = vm, .ref = vm->bare};
    cn_js_enter(&context);
    made_bit = find_bit(vm);
    const char *problem = made_bit ? try_out(vm) : "no bit tells whether a stack was made";
    cn_js_leave(&context);
    if (problem)
        made_bit = 0;
    return problem;
}

const struct cn_js_patch cn_js_patch_stacks = {
    .name = "stacks",
    .replaces = "five functions in the method table of JSC::ErrorInstance",
    .why = "the engine's error.stack has no name and message, and lines that libraries do not know",
    .gain =
        "no speed; error.stack reads \"Name: message\" and \"    at function (file:line:column)\"",
    .without = "error.stack is in the engine's own form",
    .symbols = SYMBOLS,
    .found = found,
    .use = use,
    .prove = prove,
};
