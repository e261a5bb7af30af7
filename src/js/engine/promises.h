/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/promises.h - whether a promise has settled, and with what, for those who show values.
 *
 * The engine's C API does not tell. It is read from two words of what is a promise by its cell's
 * type, which is a byte; the proof checks all of these places with promises of every kind. An object
 * that only has the prototype of a promise is none.
 *
 * R1  Nothing is run and nothing changed by looking: the promise is not taken for handled.
 *
 * Threads: that of the context. */
#ifndef CN_JS_ENGINE_PROMISES_H
#define CN_JS_ENGINE_PROMISES_H
#include <JavaScriptCore/JavaScript.h>

#include "js/engine/patch.h"

extern const struct cn_js_patch cn_js_patch_promises;

enum cn_js_promise {
    CN_JS_PROMISE_UNKNOWN = -1, /* it is none, or nobody can tell */
    CN_JS_PROMISE_PENDING,
    CN_JS_PROMISE_FULFILLED,
    CN_JS_PROMISE_REJECTED,
};

/* Of any value; of what has settled also its result. */
enum cn_js_promise cn_js_engine_promise(JSContextRef ctx, JSValueRef value, JSValueRef *result);

#endif
