/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/promises.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "js/context.h"
#include "js/vm.h"

#define TYPE_AT 5 /* in a cell's header: which class of the engine's it is of */
#define OTHERS 5
/* Two words of a promise: its flags, whose lowest bits say how it stands, and what it has settled
 * with. The flags are a number of JavaScript up to 2.52, and above a pointer from 2.54 on. */
#define FLAGS_AT 16
#define RESULT_AT 24
#define STATUS_MASK 3
static const unsigned flags_shifts[] = {0, 48};

static atomic_int promise_type; /* 0: off */
static unsigned flags_shift;    /* set before it is on */

static uint8_t type_of(JSValueRef object)
{
    return ((const uint8_t *)object)[TYPE_AT];
}

static uint64_t word_at(JSValueRef object, size_t offset)
{
    uint64_t word;
    memcpy(&word, (const char *)object + offset, sizeof(word));
    return word;
}

enum cn_js_promise cn_js_engine_promise(JSContextRef ctx, JSValueRef value, JSValueRef *result)
{
    int type = atomic_load_explicit(&promise_type, memory_order_acquire);
    if (type == 0 || !JSValueIsObject(ctx, value) || type_of(value) != type)
        return CN_JS_PROMISE_UNKNOWN;
    unsigned status = (unsigned)(word_at(value, FLAGS_AT) >> flags_shift) & STATUS_MASK;
    if (status == CN_JS_PROMISE_PENDING)
        return CN_JS_PROMISE_PENDING;
    *result = (JSValueRef)word_at(value, RESULT_AT); /* read, and never written to */
    return status == CN_JS_PROMISE_FULFILLED ? CN_JS_PROMISE_FULFILLED : CN_JS_PROMISE_REJECTED;
}

static JSValueRef evaluate(JSContextRef ctx, const char *source)
{
    JSStringRef text = JSStringCreateWithUTF8CString(source);
    JSValueRef value = JSEvaluateScript(ctx, text, NULL, NULL, 1, NULL);
    JSStringRelease(text);
    return value;
}

static JSValueRef element(JSContextRef ctx, JSValueRef array, unsigned index)
{
    return JSObjectGetPropertyAtIndex(ctx, (JSObjectRef)array, index, NULL);
}

#define PROMISES 8
/* Promises in every state, settled in every way, waited for and not; with what each has, or how. */
static const char make_promises[] =
    "(() => { class P extends Promise {}"
    "  const p = P.reject(8); p.catch(() => {}); const w = new Promise(() => {}); w.then(() => 0);"
    "  let settle; const late = new Promise((done) => { settle = done; });"
    "  late.then(() => 0); late.then(() => 0); settle(11);"
    "  const other = new Promise((done, fail) => fail(12)); other.catch(() => 0);"
    "  return [new Promise(() => {}), w, Promise.resolve(7), p, (async () => 9)(), P.resolve(10),"
    "    late, other]; })()";
static const struct {
    enum cn_js_promise status;
    double result;
} wanted[PROMISES] = {
    {CN_JS_PROMISE_PENDING, 0},    {CN_JS_PROMISE_PENDING, 0},   {CN_JS_PROMISE_FULFILLED, 7},
    {CN_JS_PROMISE_REJECTED, 8},   {CN_JS_PROMISE_FULFILLED, 9}, {CN_JS_PROMISE_FULFILLED, 10},
    {CN_JS_PROMISE_FULFILLED, 11}, {CN_JS_PROMISE_REJECTED, 12},
};

static bool are_as_made(JSContextRef ctx, JSValueRef promises)
{
    for (unsigned i = 0; i < PROMISES; i++) {
        JSValueRef result = NULL;
        if (cn_js_engine_promise(ctx, element(ctx, promises, i), &result) != wanted[i].status)
            return false;
        /* A number is compared as it is: what is no value at all is not given to the engine. */
        if (result && result != JSValueMakeNumber(ctx, wanted[i].result))
            return false;
    }
    return true;
}

/* Promises have one type, which nothing else has, and are what they were made. */
static const char *compare(JSContextRef ctx)
{
    JSValueRef promises = evaluate(ctx, make_promises);
    JSValueRef others =
        evaluate(ctx, "[Object.create(Promise.prototype), {}, [], () => {}, Promise.prototype]");
    if (!promises || !others || !JSValueIsArray(ctx, promises) || !JSValueIsArray(ctx, others))
        return "promises cannot be made";
    uint8_t type = type_of(element(ctx, promises, 0));
    for (unsigned i = 0; i < PROMISES; i++)
        if (type == 0 || type_of(element(ctx, promises, i)) != type)
            return "promises have no type of their own";
    for (unsigned i = 0; i < OTHERS; i++)
        if (type_of(element(ctx, others, i)) == type)
            return "something else has the type of promises";
    for (size_t i = 0; i < CN_ARRAY_COUNT(flags_shifts); i++) {
        flags_shift = flags_shifts[i];
        atomic_store_explicit(&promise_type, type, memory_order_release);
        if (are_as_made(ctx, promises))
            return NULL;
        atomic_store_explicit(&promise_type, 0, memory_order_relaxed);
    }
    return "promises are laid out otherwise";
}

static const char *prove(struct cn_js_vm *vm)
{
    struct cn_js_context context = {.vm = vm, .ref = vm->bare};
    cn_js_enter(&context);
    const char *wrong = compare(vm->bare);
    cn_js_leave(&context);
    return wrong;
}

static void use(bool on)
{
    if (!on)
        atomic_store_explicit(&promise_type, 0, memory_order_relaxed);
}

const struct cn_js_patch cn_js_patch_promises = {
    .name = "promises",
    .replaces = "nothing; reads JSC::JSPromise",
    .why = "util.inspect() and console.log() show what a promise has settled with",
    .gain = "their output is the platform's",
    .without = "every promise is shown as pending",
    .use = use,
    .prove = prove,
};
