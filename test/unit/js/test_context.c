/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of one VM: what is left of those that were freed. */
#include "js/context.h"

#include <pthread.h>

#include "js/native.h"
#include "js/value.h"
#include "test/lib/test.h"

/* The engine is set up once in a process: threads of its own run from then on. */
static struct cn_js_vm *vm_new(void)
{
    static bool set_up;
    if (!set_up)
        CHECK_INT(0, cn_js_setup(NULL));
    set_up = true;
    return cn_js_vm_new(NULL);
}

/* 1.6 MB, and a callback for rejections that holds on to its global. */
static void fill(struct cn_js_context *context)
{
    struct cn_err err;
    JSValueRef function;
    cn_js_enter(context);
    CHECK_INT(0, cn_js_evaluate(context,
                                "globalThis.kept = new Array(200000).fill(1.5);"
                                "(function () { return kept; })",
                                "test", &function, &err));
    JSGlobalContextSetUnhandledRejectionCallback(context->ref, (JSObjectRef)function, NULL);
    cn_js_leave(context);
}

TEST(js_context, what_is_freed_is_collected)
{
    struct cn_js_vm *vm = vm_new();
    struct cn_js_context *last = cn_js_context_new(vm, NULL);
    for (int i = 0; i < 20; i++) {
        struct cn_js_context *context = cn_js_context_new(vm, NULL);
        fill(context);
        cn_js_context_free(context);
    }
    cn_js_vm_collect(vm);
    struct cn_js_memory memory;
    cn_js_vm_memory(vm, &memory);
    /* The collector looks at the stack too, and may take an old word there for a pointer. */
    CHECK(memory.heap_bytes < 8u << 20);
    cn_js_context_free(last);
    cn_js_vm_free(vm);
}

/* The engine's own timers belong to the thread that a VM was made on first: a test that needs them
 * has a thread of its own, as a lane has. */
static void on_own_thread(void *(*run)(void *data))
{
    pthread_t thread;
    CHECK_INT(0, pthread_create(&thread, NULL, run, NULL));
    pthread_join(thread, NULL);
}

static unsigned native_calls;

static JSValueRef native_count(CN_JS_NATIVE_ARGS)
{
    native_calls++;
    CHECK(cn_js_context_of(ctx)); /* the server ended here */
    return JSValueMakeNumber(ctx, 7);
}

static const struct cn_js_native natives[] = {{"count", native_count}, {0}};

static JSObjectRef function_of(struct cn_js_context *context, const char *source)
{
    struct cn_err err;
    JSValueRef value;
    CHECK_INT(0, cn_js_evaluate(context, source, "test", &value, &err));
    return (JSObjectRef)value;
}

/* A native may have been given anything as its callback. */
TEST(js_context, what_is_no_function_is_not_called)
{
    static const char *const sources[] = {"5",      "undefined", "null",
                                          "'text'", "({})",      "Symbol('s')",
                                          "10n",    "true",      "new Proxy({}, {})"};
    struct cn_js_vm *vm = vm_new();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    cn_js_enter(context);
    for (size_t i = 0; i < CN_ARRAY_COUNT(sources); i++) {
        JSValueRef value;
        struct cn_err err;
        CHECK_INT(0, cn_js_evaluate(context, sources[i], "test.js", &value, &err));
        CHECK_INT(CN_EJS, cn_js_call(context, value, 0, NULL, NULL, &err));
        CHECK_STR("TypeError: what was to be called is no function", err.text);
    }
    struct cn_err err;
    CHECK_INT(CN_EJS, cn_js_call(context, NULL, 0, NULL, NULL, &err));
    cn_js_leave(context);
    cn_js_context_free(context);
    cn_js_vm_free(vm);
}

/* A function of a context, called before and after its end. */
TEST(js_context, X1_code_of_a_freed_context_reaches_no_native)
{
    struct cn_js_vm *vm = vm_new();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    cn_js_enter(context);
    JSObjectRef native = JSObjectMake(context->ref, NULL, NULL);
    cn_js_native_install(context, native, natives);
    JSObjectRef make = function_of(context, "(function (native) { return () => native.count(); })");
    JSValueRef argument = native, call, result;
    struct cn_err err;
    CHECK_INT(0, cn_js_call(context, make, 1, &argument, &call, &err));
    JSValueProtect(vm->bare, call);
    CHECK_INT(0, cn_js_call(context, call, 0, NULL, &result, &err));
    CHECK_INT(7, cn_js_to_number(context->ref, result));
    cn_js_leave(context);
    native_calls = 0;
    cn_js_context_free(context);
    cn_js_vm_collect(vm);
    result = JSObjectCallAsFunction(vm->bare, (JSObjectRef)call, NULL, 0, NULL, NULL);
    CHECK(result && JSValueIsUndefined(vm->bare, result));
    CHECK_INT(0, native_calls);
    JSValueUnprotect(vm->bare, call);
    cn_js_vm_free(vm);
}

/* Registered objects are collected with their context: their callbacks run when the engine likes.
 */
static void *finalize_after_the_end(void *data)
{
    struct cn_js_vm *vm = vm_new();
    struct cn_js_context *last = cn_js_context_new(vm, NULL);
    native_calls = 0;
    for (int i = 0; i < 5; i++) {
        struct cn_js_context *context = cn_js_context_new(vm, NULL);
        cn_js_enter(context);
        JSObjectRef native = JSObjectMake(context->ref, NULL, NULL);
        cn_js_native_install(context, native, natives);
        JSObjectRef fill = function_of(
            context, "(function (native) {"
                     "  globalThis.registry = new FinalizationRegistry(() => native.count());"
                     "  for (let i = 0; i < 100; i++) registry.register({ i }, i);"
                     "})");
        JSValueRef argument = native;
        struct cn_err err;
        CHECK_INT(0, cn_js_call(context, fill, 1, &argument, NULL, &err));
        cn_js_leave(context);
        cn_js_vm_collect(vm);
        cn_js_context_free(context);
        for (int k = 0; k < 5; k++)
            cn_js_vm_pump(vm);
    }
    cn_js_context_free(last);
    cn_js_vm_free(vm);
    return data;
}

TEST(js_context, X1_finalization_callbacks_of_a_freed_context_reach_no_native)
{
    on_own_thread(finalize_after_the_end);
    CHECK_INT(0, native_calls);
}

TEST(js_context, X3_lent_bytes_outlive_their_context)
{
    enum { SIZE = 1 << 20 };
    struct cn_js_vm *vm = vm_new();
    struct cn_js_context *other = cn_js_context_new(vm, NULL);
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    cn_js_enter(context);
    JSValueRef buffer = (JSValueRef)function_of(context, "new Uint8Array(1 << 20).fill(42)");
    uint8_t *bytes;
    size_t size;
    CHECK(cn_js_bytes(context->ref, buffer, &bytes, &size));
    CHECK_INT(SIZE, size);
    struct cn_js_loan *loan = cn_js_lend(context->ref, buffer);
    buffer = NULL;
    cn_js_leave(context);
    cn_js_context_free(context);
    cn_js_vm_collect(vm);
    cn_js_enter(other);
    function_of(
        other,
        "globalThis.kept = Array.from({ length: 20 }, () => new Uint8Array(1 << 20).fill(7))");
    cn_js_leave(other);
    for (size_t i = 0; i < size; i++)
        CHECK_INT(42, bytes[i]);
    cn_js_loan_return(loan);
    CHECK(cn_list_empty(&vm->loans));
    cn_js_context_free(other);
    cn_js_vm_free(vm);
}

static double endless_begun;

/* What the engine runs on its own must not hold the lane. */
static void *defer_endless_code(void *data)
{
    struct cn_js_vm *vm = vm_new();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    cn_js_enter(context);
    function_of(context,
                "globalThis.begun = 0;"
                "globalThis.registry = new FinalizationRegistry(() => { begun++; for (;;); });"
                "for (let i = 0; i < 100; i++) registry.register({ i }, i); registry");
    cn_js_leave(context);
    cn_js_vm_collect(vm);
    cn_js_vm_pump(vm);
    cn_js_enter(context);
    struct cn_err err;
    JSValueRef value;
    (void)(cn_js_evaluate(context, "begun", "test", &value, &err));
    endless_begun = cn_js_to_number(context->ref, value);
    cn_js_leave(context);
    cn_js_context_free(context);
    cn_js_vm_free(vm);
    return data;
}

TEST(js_context, what_the_engine_deferred_is_ended_after_a_second)
{
    on_own_thread(defer_endless_code);
    CHECK_INT(1, endless_begun); /* it was, and others were not */
}

/* As an object that was reset does: its end is a turn. */
static void run_another(void *data)
{
    struct cn_js_context *context = data;
    struct cn_js_vm *vm = context->vm;
    vm->on_turn_end = NULL;
    cn_js_enter(context);
    CHECK_INT(CN_JS_END_NONE, cn_js_leave(context));
}

TEST(js_context, V3_who_leaves_is_told_that_its_turn_was_ended)
{
    struct cn_js_vm *vm = vm_new();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    struct cn_err err;
    context->budget_ns = 20000000;
    vm->data = context;
    vm->on_turn_end = run_another;
    cn_js_enter(context);
    CHECK(cn_js_evaluate(context, "for (;;);", "test", NULL, &err) < 0);
    CHECK_INT(CN_JS_END_CPU, cn_js_leave(context));
    cn_js_enter(context);
    CHECK_INT(0, cn_js_evaluate(context, "1", "test", NULL, &err));
    CHECK_INT(CN_JS_END_NONE, cn_js_leave(context));
    cn_js_context_free(context);
    cn_js_vm_free(vm);
}

static void check(void *data)
{
    cn_js_context_check(data);
}

/* W3 of base/loop.h: pins that wait are counted. */
TEST(js_context, pins_are_counted)
{
    struct cn_js_vm *vm = vm_new();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    struct cn_js_pin waits = {0}, passive = {0}, borrowed = {0};
    cn_js_enter(context);
    JSValueRef value = JSObjectMake(context->ref, NULL, NULL);
    cn_js_pin_set(&waits, context, value);
    cn_js_pin_set(&passive, context, value);
    cn_js_pin_set_passive(&passive);
    cn_js_pin_borrow(&borrowed, context, value);
    cn_js_leave(context);
    CHECK_INT(2, context->waiting);
    cn_js_context_check(context);
    context->waiting++;
    CHECK_ASSERTS("context->waiting == waiting", check, context);
    context->waiting--;
    cn_js_pin_clear(&borrowed);
    cn_js_pin_clear(&passive);
    cn_js_pin_clear(&passive); /* an empty one is fine */
    CHECK_INT(1, context->waiting);
    cn_js_context_check(context);
    cn_js_context_free(context); /* and the last pin with it */
    CHECK(!waits.context && !waits.value);
    cn_js_vm_free(vm);
}

static void enter(void *data)
{
    cn_js_enter(data);
}

static void *enter_elsewhere(void *data)
{
    CHECK_ASSERTS("vm == current", enter, data);
    return NULL;
}

/* A VM is one thread's. */
TEST(js_context, another_thread_is_stopped_at_the_door)
{
    struct cn_js_vm *vm = vm_new();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    pthread_t thread;
    CHECK_INT(0, pthread_create(&thread, NULL, enter_elsewhere, context));
    pthread_join(thread, NULL);
    cn_js_context_free(context);
    cn_js_vm_free(vm);
}
