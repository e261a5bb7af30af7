/* SPDX-License-Identifier: Apache-2.0 */
/* js/native.h - functions that C provides to the prelude.
 *
 * Each binding file has a table; the tables become properties of one object,
 * `native`, which the prelude sees and user code cannot reach:
 *
 *     static JSValueRef native_double(CN_JS_NATIVE_ARGS)
 *     {
 *         return JSValueMakeNumber(ctx, 2 * cn_js_to_number(ctx, cn_js_arg(0)));
 *     }
 *     const struct cn_js_native cn_native_example[] = {{"double", native_double}, {0}};
 *
 * The prelude converts and checks arguments (it follows the standards); C does
 * the work on plain values: numbers, strings, byte arrays, integer handles.
 * Long work leaves the lane: see work.h. */
#ifndef CN_JS_NATIVE_H
#define CN_JS_NATIVE_H
#include "js/context.h"
#include "js/value.h"

#define CN_JS_NATIVE_ARGS                                                         \
    JSContextRef ctx, JSObjectRef function, JSObjectRef this_object, size_t argc, \
        const JSValueRef argv[], JSValueRef *exception

/* The i-th argument, or undefined. Only inside a native function. */
#define cn_js_arg(i) ((size_t)(i) < argc ? argv[i] : JSValueMakeUndefined(ctx))

struct cn_js_native {
    const char *name; /* NULL ends a table */
    JSObjectCallAsFunctionCallback call;
};

/* The tables of a service (service/def.h); NULL ends them. Made by tools/border.mjs. */
#define CN_JS_NATIVE_TABLES_MAX 8
struct cn_js_natives {
    const struct cn_js_native *tables[CN_JS_NATIVE_TABLES_MAX];
};

/* Makes the functions of a table properties of `object`. */
void cn_js_native_install(struct cn_js_context *context, JSObjectRef object,
                          const struct cn_js_native *table);

#endif
