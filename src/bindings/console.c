/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/console.c - console lines, the clock and randomness. */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/rand.h"
#include "border/console.h"
#include "js/native.h"
#include "worker/instance.h"
#include "worker/runtime.h"
#include "worker/script.h"

/* log(level, text): level 0 debug, 1 info, 2 warn, 3 error, 4 an exception that nobody caught. */
static JSValueRef native_log(CN_JS_NATIVE_ARGS)
{
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    struct cn_buf text = {0};
    cn_js_append_utf8(ctx, cn_js_arg(1), &text);
    uint32_t level = cn_js_to_uint32(ctx, cn_js_arg(0));
    if (runtime->log)
        runtime->log(runtime, level <= 4 ? (int)level : 3, cn_buf_text(&text), text.size);
    cn_buf_fini(&text);
    return JSValueMakeUndefined(ctx);
}

/* monotonicTime(): milliseconds from an arbitrary start, with a fraction. */
static JSValueRef native_monotonic_time(CN_JS_NATIVE_ARGS)
{
    return JSValueMakeNumber(ctx, (double)cn_clock_mono_ns(cn_clock_system()) / 1e6);
}

/* randomFill(view): fills an ArrayBuffer or view with strong random bytes. */
static JSValueRef native_random_fill(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "randomFill: not a buffer");
    cn_rand_secure(bytes, size);
    return JSValueMakeUndefined(ctx);
}

/* isProxy(value) */
static JSValueRef native_is_proxy(CN_JS_NATIVE_ARGS)
{
    return JSValueMakeBoolean(ctx, JSValueIsObject(ctx, cn_js_arg(0)) &&
                                       JSObjectGetProxyTarget((JSObjectRef)cn_js_arg(0)));
}

/* onUnhandledRejection(function): called with the promise and the reason once the microtasks of
 * the turn have run and nobody has handled it. */
static JSValueRef native_on_unhandled_rejection(CN_JS_NATIVE_ARGS)
{
    JSObjectRef callback = cn_js_object(ctx, cn_js_arg(0));
    if (callback && JSObjectIsFunction(ctx, callback))
        JSGlobalContextSetUnhandledRejectionCallback(JSContextGetGlobalContext(ctx), callback,
                                                     exception);
    return JSValueMakeUndefined(ctx);
}

/* onErrorStack(function): called with an error whose stack is first looked at (js/engine/stacks.h).
 */
static JSValueRef native_on_error_stack(CN_JS_NATIVE_ARGS)
{
    JSObjectRef callback = cn_js_object(ctx, cn_js_arg(0));
    if (callback && JSObjectIsFunction(ctx, callback))
        cn_js_context_shape_stacks(cn_js_context_of(ctx), callback);
    return JSValueMakeUndefined(ctx);
}

/* explainStack(text): the text with its places in the bundle replaced by those in the project. */
static JSValueRef native_explain_stack(CN_JS_NATIVE_ARGS)
{
    struct cn_instance *instance = cn_runtime_of(ctx)->data;
    if (!instance || !instance->script->url)
        return cn_js_arg(0);
    struct cn_buf text = {0}, explained = {0};
    cn_js_append_utf8(ctx, cn_js_arg(0), &text);
    cn_script_explain(instance->script, cn_buf_text(&text), text.size, false, &explained);
    JSValueRef value = cn_js_text(ctx, cn_buf_text(&explained), explained.size);
    cn_buf_fini(&text);
    cn_buf_fini(&explained);
    return value;
}
