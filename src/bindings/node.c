/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node.c - what of the prelude is evaluated on demand, so that contexts without it do not
 * pay for its parsing: the Node.js modules, and the parts of prelude/internal/parts.js. */
#include <string.h>

#include "base/err.h"
#include "border/node.h"
#include "js/engine/promises.h"
#include "js/native.h"
#include "worker/runtime.h"

/* From tools/embed.S. */
extern const char cn_prelude_node[];
extern const uint64_t cn_prelude_node_size;
extern const char cn_prelude_parts[];
extern const uint64_t cn_prelude_parts_size;

/* nodeBundle() -> the function that build-prelude.mjs describes */
static JSValueRef native_node_bundle(CN_JS_NATIVE_ARGS)
{
    JSValueRef bundle = NULL;
    struct cn_err err;
    if (cn_js_evaluate_static(cn_js_context_of(ctx), cn_prelude_node, (size_t)cn_prelude_node_size,
                              "cairn:node", &bundle, &err) < 0)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", err.text);
    return bundle;
}

/* preludePart(name, offset, length) -> the function of one part */
static JSValueRef native_prelude_part(CN_JS_NATIVE_ARGS)
{
    double offset = cn_js_to_number(ctx, cn_js_arg(1)), length = cn_js_to_number(ctx, cn_js_arg(2));
    if (!(offset >= 0 && length > 0 && offset + length <= (double)cn_prelude_parts_size))
        return cn_js_throw(ctx, exception, CN_JS_RANGE_ERROR, "preludePart: no such part");
    if (memcmp(cn_prelude_parts + (size_t)offset, "(function(", 10) != 0)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "preludePart: parts of another prelude");
    struct cn_buf url = {0};
    cn_buf_append_str(&url, "cairn:prelude/");
    cn_js_append_utf8(ctx, cn_js_arg(0), &url);
    JSValueRef part = NULL;
    struct cn_err err;
    int rc = cn_js_evaluate_static(cn_js_context_of(ctx), cn_prelude_parts + (size_t)offset,
                                   (size_t)length, cn_buf_text(&url), &part, &err);
    cn_buf_fini(&url);
    if (rc < 0)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "%s", err.text);
    return part;
}

/* Part of the library, though not of its public headers: the target of a proxy, or NULL. */
extern JSObjectRef JSObjectGetProxyTarget(JSObjectRef object) __attribute__((weak));

/* proxyDetails(object) -> [target, {}] of a proxy, else undefined. The library does not tell a
 * proxy's handler. The global object is a proxy too, in C alone. */
static JSValueRef native_proxy_details(CN_JS_NATIVE_ARGS)
{
    JSValueRef value = cn_js_arg(0);
    if (!JSObjectGetProxyTarget || !JSValueIsObject(ctx, value) ||
        JSValueIsStrictEqual(ctx, value, JSContextGetGlobalObject(ctx)))
        return JSValueMakeUndefined(ctx);
    JSObjectRef target = JSObjectGetProxyTarget((JSObjectRef)value);
    if (!target)
        return JSValueMakeUndefined(ctx);
    JSValueRef details[] = {target, JSObjectMake(ctx, NULL, NULL)};
    return JSObjectMakeArray(ctx, 2, details, exception);
}

/* promiseState(value) -> [0 pending, 1 fulfilled or 2 rejected, its result], or undefined: no promise, or nobody can tell */
static JSValueRef native_promise_state(CN_JS_NATIVE_ARGS)
{
    JSValueRef result = JSValueMakeUndefined(ctx);
    enum cn_js_promise state = cn_js_engine_promise(ctx, cn_js_arg(0), &result);
    if (state == CN_JS_PROMISE_UNKNOWN)
        return JSValueMakeUndefined(ctx);
    JSValueRef details[] = {JSValueMakeNumber(ctx, state), result};
    return JSObjectMakeArray(ctx, 2, details, exception);
}
