/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/promises.h"

#include <stdatomic.h>
#include <stdint.h>

#include "js/context.h"
#include "js/vm.h"

#define STATUS "_ZNK3JSC9JSPromise6statusERNS_2VME"
#define RESULT "_ZNK3JSC9JSPromise6resultERNS_2VME"
#define TYPE_AT 5 /* in a cell's header: which class of the engine's it is of */
#define OTHERS 5

static unsigned (*library_status)(const void *promise, void *vm);
static JSValueRef (*library_result)(const void *promise, void *vm);
static atomic_int promise_type; /* 0: off */

static uint8_t type_of(JSValueRef object)
{
    return ((const uint8_t *)object)[TYPE_AT];
}

enum cn_js_promise cn_js_engine_promise(JSContextRef ctx, JSValueRef value, JSValueRef *result)
{
    int type = atomic_load_explicit(&promise_type, memory_order_relaxed);
    if (type == 0 || !JSValueIsObject(ctx, value) || type_of(value) != type)
        return CN_JS_PROMISE_UNKNOWN;
    void *vm = (void *)JSContextGetGroup(ctx);
    unsigned status = library_status(value, vm);
    if (status == CN_JS_PROMISE_PENDING)
        return CN_JS_PROMISE_PENDING;
    *result = library_result(value, vm);
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

/* Three promises have one type, which nothing else has, and are what they were made. */
static const char *compare(JSContextRef ctx)
{
    JSValueRef promises =
        evaluate(ctx, "(() => { class P extends Promise {}"
                      "  const p = P.reject(8); p.catch(() => {});"
                      "  return [new Promise(() => {}), Promise.resolve(7), p]; })()");
    JSValueRef others =
        evaluate(ctx, "[Object.create(Promise.prototype), {}, [], () => {}, Promise.prototype]");
    if (!promises || !others || !JSValueIsArray(ctx, promises) || !JSValueIsArray(ctx, others))
        return "promises cannot be made";
    uint8_t type = type_of(element(ctx, promises, 0));
    for (unsigned i = 0; i < 3; i++)
        if (type == 0 || type_of(element(ctx, promises, i)) != type)
            return "promises have no type of their own";
    for (unsigned i = 0; i < OTHERS; i++)
        if (type_of(element(ctx, others, i)) == type)
            return "something else has the type of promises";
    atomic_store_explicit(&promise_type, type, memory_order_relaxed);
    static const enum cn_js_promise wanted[] = {CN_JS_PROMISE_PENDING, CN_JS_PROMISE_FULFILLED,
                                                CN_JS_PROMISE_REJECTED};
    for (unsigned i = 0; i < 3; i++) {
        JSValueRef result = NULL;
        if (cn_js_engine_promise(ctx, element(ctx, promises, i), &result) != wanted[i])
            return "a promise is not what it is said to be";
        if (i > 0 && JSValueToNumber(ctx, result, NULL) != 6 + i)
            return "a promise has another result";
    }
    return NULL;
}

static const char *prove(struct cn_js_vm *vm)
{
    struct cn_js_context context = {.vm = vm, .ref = vm->bare};
    cn_js_enter(&context);
    const char *wrong = compare(vm->bare);
    cn_js_leave(&context);
    return wrong;
}

static void found(void *const functions[])
{
    *(void **)&library_status = functions[0];
    *(void **)&library_result = functions[1];
}

static void use(bool on)
{
    if (!on)
        atomic_store_explicit(&promise_type, 0, memory_order_relaxed);
}

const struct cn_js_patch cn_js_patch_promises = {
    .name = "promises",
    .replaces = "nothing; calls JSC::JSPromise::status and result",
    .why = "util.inspect() and console.log() show what a promise has settled with",
    .gain = "their output is the platform's",
    .without = "every promise is shown as pending",
    .symbols = {STATUS, RESULT},
    .found = found,
    .use = use,
    .prove = prove,
};
