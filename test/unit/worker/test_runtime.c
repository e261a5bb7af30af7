/* SPDX-License-Identifier: Apache-2.0 */
/* A context with the prelude: what it is given, what it gives, and what ends with it. */
#include "worker/runtime.h"

#include <stdio.h>
#include <string.h>

#include "base/loop.h"
#include "base/mem.h"
#include "bindings/all.h"
#include "test/lib/js_rig.h"

static struct js_rig rig;
static uv_loop_t loop;
static char logged[256];
static int logged_level;

static void on_log(struct cn_runtime *runtime, int level, const char *text, size_t length)
{
    CHECK(runtime->data == &rig);
    logged_level = level;
    snprintf(logged, sizeof(logged), "%.*s", (int)length, text);
}

static void begin(void)
{
    js_rig_open(&rig);
    CHECK_INT(0, cn_loop_init(&loop, NULL));
}

static void end(void)
{
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(0, uv_loop_close(&loop));
    js_rig_close(&rig);
}

static struct cn_runtime *make(const char *options_json)
{
    struct cn_runtime_options options = {.loop = &loop,
                                         .vm = rig.vm,
                                         .install = cn_javascript.install,
                                         .log = on_log,
                                         .options_json = options_json,
                                         .data = &rig};
    struct cn_runtime *runtime = NULL;
    struct cn_err err = {0};
    if (cn_runtime_new(&options, &runtime, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return runtime;
}

TEST(runtime, has_the_apis_and_the_entry_points)
{
    begin();
    struct cn_runtime *runtime = make(NULL);
    CHECK(runtime->context->data == runtime && runtime->loop == &loop);
    CHECK(cn_runtime_of(runtime->context->ref) == runtime);
    CHECK_STR("function", js_rig_evaluate(runtime->context, "typeof fetch", NULL));
    CHECK_STR("undefined", js_rig_evaluate(runtime->context, "typeof native", NULL));
    cn_js_enter(runtime->context);
    JSObjectRef entry = cn_runtime_entry(runtime, "dispatchFetch");
    CHECK(JSObjectIsFunction(runtime->context->ref, entry));
    cn_js_leave(runtime->context);
    js_rig_evaluate(runtime->context, "console.warn('a', { b: 1 })", NULL);
    CHECK_INT(2, logged_level);
    CHECK(strstr(logged, "a") && strstr(logged, "b: 1"));
    CHECK_INT(0, runtime->context->waiting); /* its own pins promise nothing */
    cn_runtime_free(runtime);
    end();
}

/* Two in one VM share nothing but it. */
TEST(runtime, one_does_not_see_anothers_globals)
{
    begin();
    struct cn_runtime *a = make("{}"), *b = make(NULL);
    js_rig_evaluate(a->context, "globalThis.mine = 1; Array.prototype.added = 1", NULL);
    CHECK_STR("undefined,undefined",
              js_rig_evaluate(b->context, "[typeof mine, typeof [].added].join()", NULL));
    CHECK(cn_runtime_of(a->context->ref) == a && cn_runtime_of(b->context->ref) == b);
    cn_runtime_free(a);
    CHECK_STR("3", js_rig_evaluate(b->context, "1 + 2", NULL));
    cn_runtime_free(b);
    end();
}

/* --- operations
 * ----------------------------------------------------------------------------------- */

struct work {
    struct cn_operation operation; /* first */
    unsigned cancelled;
    struct work *also; /* ended by its cancel: both sides of something */
};
static unsigned cancelled_order[4], cancelled_count;
static struct work works[4];

static void on_cancel(struct cn_operation *operation)
{
    struct work *work = (struct work *)operation;
    work->cancelled++;
    cancelled_order[cancelled_count++] = (unsigned)(work - works);
    if (work->also)
        cn_operation_end(&work->also->operation);
}

TEST(runtime, what_is_under_way_is_cancelled_once_and_in_order)
{
    begin();
    struct cn_runtime *runtime = make(NULL);
    memset(works, 0, sizeof(works));
    cancelled_count = 0;
    for (int i = 0; i < 4; i++)
        cn_operation_start(runtime, &works[i].operation, on_cancel);
    cn_operation_end(&works[1].operation); /* it is over: nobody cancels it */
    works[0].also = &works[3];             /* goes with the first */
    cn_runtime_free(runtime);
    CHECK_INT(2, cancelled_count);
    CHECK(cancelled_order[0] == 0 && cancelled_order[1] == 2);
    CHECK(works[0].cancelled == 1 && !works[1].cancelled && works[2].cancelled == 1 &&
          !works[3].cancelled);
    end();
}

/* Timers that a script has set end with it: the loop has nothing left, and nothing is called. */
TEST(runtime, timers_of_a_script_go_with_it)
{
    begin();
    struct cn_runtime *runtime = make(NULL);
    js_rig_evaluate(runtime->context,
                    "for (let i = 0; i < 10; i++) setTimeout(() => console.log('late'), 3600000);"
                    "setInterval(() => console.log('late'), 1)",
                    NULL);
    CHECK_INT(11, runtime->timers.count);
    logged[0] = '\0';
    cn_runtime_free(runtime);
    uv_run(&loop, UV_RUN_DEFAULT); /* returns: no handle is open */
    CHECK_STR("", logged);
    end();
}

/* --- mistakes
 * ------------------------------------------------------------------------------------- */

static void install_nothing(struct cn_runtime *runtime, struct OpaqueJSValue *native)
{
    (void)runtime, (void)native;
}

/* The prelude without natives does not start; the sentence is the engine's, and nothing leaks. */
TEST(runtime, a_prelude_that_fails_says_why)
{
    begin();
    struct cn_runtime_options options = {
        .loop = &loop, .vm = rig.vm, .install = install_nothing, .data = &rig};
    struct cn_runtime *runtime = NULL;
    struct cn_err err = {0};
    CHECK_INT(CN_EJS, cn_runtime_new(&options, &runtime, &err));
    CHECK(!runtime && strstr(err.text, "Error"));
    CHECK_STR("3", js_rig_run(&rig, "1 + 2"));
    end();
}

/* U1: a turn that was told to end may find its entries or not, as the engine has it; the next one finds
 * them. */
TEST(runtime, a_turn_that_is_being_ended_may_find_no_entries)
{
    begin();
    struct cn_runtime *runtime = make(NULL);
    struct cn_err err;
    cn_js_enter(runtime->context);
    cn_js_end_turn(rig.vm);
    CHECK_INT(CN_EJS, cn_js_evaluate(runtime->context, "for (;;);", "test", NULL, &err));
    (void)cn_runtime_entry(runtime, "dispatchFetch"); /* no assertion either way */
    CHECK_INT(CN_JS_END_ASKED, cn_js_leave(runtime->context));
    cn_js_enter(runtime->context);
    CHECK(cn_runtime_entry(runtime, "dispatchFetch"));
    cn_js_leave(runtime->context);
    cn_runtime_free(runtime);
    end();
}

static void find_nothing(void *data)
{
    struct cn_runtime *runtime = data;
    cn_js_enter(runtime->context);
    (void)cn_runtime_entry(runtime, "no such entry");
}

static void free_it(void *data)
{
    cn_runtime_free(data);
}

TEST(runtime, mistakes_of_ours_are_found)
{
    begin();
    struct cn_runtime *runtime = make(NULL);
    CHECK_ASSERTS("JSValueIsObject(ctx, value)", find_nothing, runtime);
    cn_loop_give(&loop);
    CHECK_ASSERTS("cn_loop_is_mine(loop)", free_it, runtime);
    cn_loop_take(&loop);
    cn_runtime_free(runtime);
    end();
}
