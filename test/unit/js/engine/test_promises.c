/* SPDX-License-Identifier: Apache-2.0 */
/* What a promise has settled with can be told, and only of promises (R1). */
#include "js/engine/promises.h"

#include "test/lib/js_rig.h"

static enum cn_js_promise state_of(struct js_rig *rig, const char *source, double *number)
{
    cn_js_enter(rig->context);
    JSContextRef ctx = rig->context->ref;
    JSStringRef text = JSStringCreateWithUTF8CString(source);
    JSValueRef value = JSEvaluateScript(ctx, text, NULL, NULL, 1, NULL);
    JSStringRelease(text);
    JSValueRef result = NULL;
    enum cn_js_promise state = cn_js_engine_promise(ctx, value, &result);
    if (state > CN_JS_PROMISE_PENDING)
        *number = JSValueToNumber(ctx, result, NULL);
    cn_js_leave(rig->context);
    return state;
}

TEST(js_promises, tells_what_a_promise_has_settled_with)
{
    struct js_rig rig;
    js_rig_open(&rig);
    double number = 0;
    CHECK_INT(CN_JS_PROMISE_FULFILLED, state_of(&rig, "Promise.resolve(41)", &number));
    CHECK_INT(41, (int)number);
    CHECK_INT(CN_JS_PROMISE_REJECTED,
              state_of(&rig,
                       "(() => { const p = Promise.reject(42); p.catch(() => {}); return p; })()",
                       &number));
    CHECK_INT(42, (int)number);
    CHECK_INT(CN_JS_PROMISE_PENDING, state_of(&rig, "new Promise(() => {})", &number));
    CHECK_INT(CN_JS_PROMISE_PENDING,
              state_of(&rig, "new (class P extends Promise {})(() => {})", &number));
    js_rig_close(&rig);
}

TEST(js_promises, tells_nothing_of_what_only_looks_like_one)
{
    struct js_rig rig;
    js_rig_open(&rig);
    static const char *const others[] = {"Object.create(Promise.prototype)",
                                         "Promise.prototype",
                                         "({ then() {} })",
                                         "[]",
                                         "5",
                                         "'text'",
                                         "null",
                                         "undefined",
                                         "Symbol()",
                                         "1n"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK_INT(CN_JS_PROMISE_UNKNOWN, state_of(&rig, others[i], NULL));
    js_rig_close(&rig);
}

TEST(js_promises, tells_nothing_when_it_is_off)
{
    struct js_rig rig;
    js_rig_open(&rig);
    cn_js_patch_promises.use(false);
    CHECK_INT(CN_JS_PROMISE_UNKNOWN, state_of(&rig, "Promise.resolve(1)", NULL));
    js_rig_close(&rig);
}
