/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node.c - the second part of the prelude: the Node.js modules, evaluated on demand, so
 * that contexts without them do not pay for their parsing. */
#include "base/err.h"
#include "js/native.h"
#include "worker/runtime.h"

/* From tools/embed.S. */
extern const char cn_prelude_node[];
extern const uint64_t cn_prelude_node_size;

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

const struct cn_js_native cn_native_node[] = {
    {"nodeBundle", native_node_bundle},
    {0},
};
