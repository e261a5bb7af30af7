/* SPDX-License-Identifier: Apache-2.0 */
#include "js/context.h"

#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "js/engine/string8.h"
#include "js/native.h"
#include "js/value.h"
#include "js/work.h"

struct cn_js_context *cn_js_context_new(struct cn_js_vm *vm, void *data)
{
    CN_ASSERT(vm == cn_js_vm_current());
    struct cn_js_context *context = CN_NEW(struct cn_js_context);
    context->vm = vm;
    context->data = data;
    context->ref = JSGlobalContextCreateInGroup(vm->group, NULL);
    cn_list_init(&context->pins);
    cn_list_init(&context->works);
    cn_list_push_back(&vm->contexts, &context->link);
    return context;
}

/* X1 */
static void silence_natives(struct cn_js_context *context)
{
    if (!context->natives)
        return;
    JSContextRef ctx = context->ref;
    JSPropertyNameArrayRef names = JSObjectCopyPropertyNames(ctx, context->natives);
    size_t count = JSPropertyNameArrayGetCount(names);
    for (size_t i = 0; i < count; i++) {
        JSStringRef name = JSPropertyNameArrayGetNameAtIndex(names, i);
        JSObjectSetProperty(ctx, context->natives, name, context->vm->nothing,
                            kJSPropertyAttributeNone, NULL);
    }
    JSPropertyNameArrayRelease(names);
    JSValueUnprotect(ctx, context->natives);
    context->natives = NULL;
}

void cn_js_context_free(struct cn_js_context *context)
{
    CN_ASSERT(context->vm == cn_js_vm_current() && !context->vm->entered); /* X2 */
    silence_natives(context);
    cn_js_work_give_up(context);
    CN_LIST_FOREACH(&context->pins, node)
    cn_js_pin_clear(CN_CONTAINER_OF(node, struct cn_js_pin, link));
    if (context->stacks)
        JSValueUnprotect(context->ref, context->stacks);
    cn_list_remove(&context->link);
    if (context->vm->hit == context)
        context->vm->hit = NULL;
    /* The engine holds the callback for unhandled rejections strongly, and with it the global it is
     * of, for ever: another global's function takes its place. */
    JSGlobalContextSetUnhandledRejectionCallback(context->ref, context->vm->nothing, NULL);
    JSGlobalContextRelease(context->ref);
    cn_js_meter_end(&context->meter);
    cn_free(context);
}

struct cn_js_context *cn_js_context_of(JSContextRef ctx)
{
    struct cn_js_vm *vm = cn_js_vm_current();
    CN_ASSERT(vm);
    /* A function is given its global itself; the engine's own answer is the slower way. */
    if (vm->hit && vm->hit->ref == ctx)
        return vm->hit;
    struct cn_js_context *context = cn_js_context_find(vm, JSContextGetGlobalContext(ctx));
    CN_ASSERT(context);
    vm->hit = context;
    return context;
}

struct cn_js_context *cn_js_context_find(struct cn_js_vm *vm, JSContextRef global)
{
    CN_LIST_FOREACH(&vm->contexts, node)
    {
        struct cn_js_context *context = CN_CONTAINER_OF(node, struct cn_js_context, link);
        if (context->ref == global)
            return context;
    }
    return NULL;
}

void cn_js_context_shape_stacks(struct cn_js_context *context, JSObjectRef function)
{
    if (context->stacks)
        JSValueUnprotect(context->ref, context->stacks);
    JSValueProtect(context->ref, function);
    context->stacks = function;
}

/* The lines of a stack after what was thrown. One that was shaped (engine/stacks.h) begins with it.
 */
static void append_stack(JSContextRef ctx, JSValueRef value, struct cn_buf *text)
{
    struct cn_buf stack = {0};
    cn_js_append_utf8(ctx, value, &stack);
    const char *lines = strstr(cn_buf_text(&stack), "\n    at ");
    if (lines || (stack.size && memcmp(cn_buf_text(&stack), text->data,
                                       stack.size < text->size ? stack.size : text->size) != 0)) {
        if (!lines)
            cn_buf_append_byte(text, '\n');
        cn_buf_append_str(text, lines ? lines : cn_buf_text(&stack));
    }
    cn_buf_fini(&stack);
}

int cn_js_exception(struct cn_js_context *context, JSValueRef exception, struct cn_err *err)
{
    JSContextRef ctx = context->ref;
    struct cn_buf text = {0};
    cn_js_append_any(ctx, exception, &text);
    if (JSValueIsObject(ctx, exception)) {
        JSValueRef stack = cn_js_get(ctx, (JSObjectRef)exception, "stack");
        if (JSValueIsString(ctx, stack))
            append_stack(ctx, stack, &text);
    }
    int rc = cn_err_set(err, CN_EJS, "%s", cn_buf_text(&text));
    cn_buf_fini(&text);
    return rc;
}

static int finish(struct cn_js_context *context, JSValueRef value, JSValueRef exception,
                  JSValueRef *result, struct cn_err *err)
{
    if (exception || !value) {
        if (!exception)
            return cn_err_set(err, CN_EJS, "the script was ended");
        return cn_js_exception(context, exception, err);
    }
    if (result)
        *result = value;
    return 0;
}

/* The engine keeps what it has compiled by the text of the script: a second context that evaluates
 * the same text in a VM does not parse it again. */
static int evaluate(struct cn_js_context *context, JSStringRef source, const char *url,
                    JSValueRef *result, struct cn_err *err)
{
    JSStringRef url_ref = cn_js_string(url, strlen(url));
    JSValueRef exception = NULL;
    JSValueRef value = JSEvaluateScript(context->ref, source, NULL, url_ref, 1, &exception);
    JSStringRelease(source);
    JSStringRelease(url_ref);
    return finish(context, value, exception, result, err);
}

int cn_js_evaluate(struct cn_js_context *context, const char *source, const char *url,
                   JSValueRef *result, struct cn_err *err)
{
    return evaluate(context, cn_js_string(source, strlen(source)), url, result, err);
}

int cn_js_evaluate_static(struct cn_js_context *context, const char *source, size_t length,
                          const char *url, JSValueRef *result, struct cn_err *err)
{
    JSStringRef string = cn_js_string8_static((const uint8_t *)source, length);
    if (!string) {
        string = cn_js_string(source, length);
    }
    return evaluate(context, string, url, result, err);
}

int cn_js_call(struct cn_js_context *context, JSValueRef function, size_t argc,
               const JSValueRef argv[], JSValueRef *result, struct cn_err *err)
{
    JSValueRef exception = NULL;
    JSValueRef value = cn_js_invoke(context->ref, function, argc, argv, &exception);
    if (!value && !exception) {
        JSObjectRef object = cn_js_object(context->ref, function);
        if (!object || !JSObjectIsFunction(context->ref, object))
            return cn_err_set(err, CN_EJS, "TypeError: what was to be called is no function");
    }
    return finish(context, value, exception, result, err);
}

void cn_js_pin_borrow(struct cn_js_pin *pin, struct cn_js_context *context, JSValueRef value)
{
    *pin = (struct cn_js_pin){.context = context,
                              .value = value,
                              .owner = context->vm->owner,
                              .cause = context->vm->entered ? cn_js_cause(context->vm)
                                                            : context->vm->cause,
                              .borrowed = true};
    cn_list_push_back(&context->pins, &pin->link);
    context->waiting++;
    if (pin->owner)
        context->vm->hooks->hold(pin->owner);
}

void cn_js_pin_set(struct cn_js_pin *pin, struct cn_js_context *context, JSValueRef value)
{
    JSValueProtect(context->ref, value);
    cn_js_pin_borrow(pin, context, value);
    pin->borrowed = false;
}

void cn_js_pin_set_passive(struct cn_js_pin *pin)
{
    CN_ASSERT(pin->context && !pin->passive);
    pin->passive = true;
    pin->context->waiting--;
}

void cn_js_pin_clear(struct cn_js_pin *pin)
{
    if (!pin->context)
        return;
    struct cn_js_vm *vm = pin->context->vm;
    if (!pin->borrowed)
        JSValueUnprotect(pin->context->ref, pin->value);
    cn_list_remove(&pin->link);
    if (!pin->passive)
        pin->context->waiting--;
    pin->context = NULL;
    pin->value = NULL;
    void *owner = pin->owner;
    pin->owner = NULL;
    if (owner)
        vm->hooks->unhold(owner);
}

void cn_js_pin_orphan(struct cn_js_context *context, void *owner)
{
    CN_LIST_FOREACH(&context->pins, node)
    {
        struct cn_js_pin *pin = CN_CONTAINER_OF(node, struct cn_js_pin, link);
        if (pin->owner != owner)
            continue;
        pin->owner = NULL;
        pin->orphan = true;
        context->vm->hooks->unhold(owner);
    }
}

void cn_js_context_check(const struct cn_js_context *context)
{
    size_t waiting = 0;
    CN_LIST_FOREACH(&context->pins, node)
    {
        const struct cn_js_pin *pin = CN_CONTAINER_OF(node, struct cn_js_pin, link);
        CN_ASSERT(pin->context == context && pin->value);
        CN_ASSERT(!pin->orphan || !pin->owner);
        waiting += !pin->passive;
    }
    CN_ASSERT(context->waiting == waiting);
}

bool cn_js_context_waits(const struct cn_js_context *context, uint64_t event)
{
    CN_LIST_FOREACH(&context->pins, node)
    {
        const struct cn_js_pin *pin = CN_CONTAINER_OF(node, struct cn_js_pin, link);
        if (pin->cause.event == event && !pin->orphan)
            return true;
    }
    return false;
}

bool cn_js_enter_pin(struct cn_js_pin *pin)
{
    if (!pin->context || pin->orphan)
        return false;
    if (!pin->context->vm->entered)
        pin->context->vm->cause = pin->cause;
    return cn_js_enter_for(pin->context, pin->owner);
}

void cn_js_pin_call(struct cn_js_pin *pin, size_t argc, const JSValueRef argv[])
{
    struct cn_js_context *context = pin->context;
    if (!cn_js_enter_pin(pin)) {
        cn_js_pin_clear(pin);
        return;
    }
    JSValueRef function = pin->value;
    JSValueProtect(context->ref, function);
    cn_js_pin_clear(pin);
    cn_js_invoke(context->ref, function, argc, argv, NULL);
    JSValueUnprotect(context->ref, function);
    cn_js_leave(context);
}

struct cn_js_loan *cn_js_lend(JSContextRef ctx, JSValueRef buffer)
{
    struct cn_js_vm *vm = cn_js_vm_current();
    struct cn_js_loan *loan = CN_NEW(struct cn_js_loan);
    loan->vm = vm;
    loan->buffer = buffer;
    JSValueProtect(ctx, buffer); /* in the heap, which is the VM's (X3) */
    cn_list_push_back(&vm->loans, &loan->link);
    return loan;
}

void cn_js_loan_return(void *data)
{
    struct cn_js_loan *loan = data;
    JSValueUnprotect(loan->vm->bare, loan->buffer); /* its own context may be gone */
    cn_list_remove(&loan->link);
    cn_free(loan);
}

void cn_js_native_install(struct cn_js_context *context, JSObjectRef object,
                          const struct cn_js_native *table)
{
    if (!context->natives) {
        JSValueProtect(context->ref, object);
        context->natives = object;
    }
    CN_ASSERT(context->natives == object);
    for (; table->name; table++) {
        JSStringRef name = JSStringCreateWithUTF8CString(table->name);
        JSObjectRef function = JSObjectMakeFunctionWithCallback(context->ref, name, table->call);
        JSObjectSetProperty(context->ref, object, name, function, kJSPropertyAttributeNone, NULL);
        JSStringRelease(name);
    }
}
