/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/turn.c - who runs: the prelude's contexts, as far as C must know of them.
 *
 * prelude/internal/turn.js writes the numbers of the code that goes on into the clock (js/vm.h,
 * V1) and calls turnSwitch() if the object or the trace is another than before. */
#include "border/turn.h"
#include "js/native.h"
#include "object/object.h"
#include "worker/instance.h"
#include "worker/jsclass.h"
#include "worker/lane.h"
#include "worker/runtime.h"

static JSValueRef shared(JSContextRef ctx, double *numbers, size_t count, JSValueRef *exception)
{
    return JSObjectMakeTypedArrayWithBytesNoCopy(ctx, kJSTypedArrayTypeFloat64Array, numbers,
                                                 count * sizeof(*numbers), NULL, NULL, exception);
}

/* clock() -> Float64Array over the VM's clock, which outlives every context; mark() -> another, of
 * one number */
static JSValueRef native_clock(CN_JS_NATIVE_ARGS)
{
    return shared(ctx, cn_js_vm_current()->clock, CN_JS_CLOCK_COUNT, exception);
}

static JSValueRef native_mark(CN_JS_NATIVE_ARGS)
{
    return shared(ctx, cn_js_vm_current()->mark, 1, exception);
}

/* turnSwitch() -> boolean: code of the object that the clock names, or of nobody, goes on. False:
 * the object is gone, and what it still had to do with it */
static JSValueRef native_turn_switch(CN_JS_NATIVE_ARGS)
{
    struct cn_js_vm *vm = cn_js_vm_current();
    struct cn_instance *instance = cn_runtime_of(ctx)->data;
    double handle = vm->clock[CN_JS_OBJECT];
    struct cn_object *object = NULL;
    if (handle != 0) {
        struct cn_jsobject *js = instance ? cn_jsobject_find(instance, handle) : NULL;
        if (!js || cn_object_is_broken(js->object))
            return JSValueMakeBoolean(ctx, false);
        object = js->object;
    }
    cn_js_switch(vm, object);
    return JSValueMakeBoolean(ctx, true);
}

/* objectKick(o): objectResume(o) is called in a turn of its own */
static JSValueRef native_object_kick(CN_JS_NATIVE_ARGS)
{
    struct cn_instance *instance = cn_runtime_of(ctx)->data;
    struct cn_jsobject *js =
        instance ? cn_jsobject_find(instance, cn_js_to_number(ctx, cn_js_arg(0))) : NULL;
    if (js && !cn_object_is_broken(js->object))
        cn_object_kick(js->object);
    return JSValueMakeUndefined(ctx);
}
