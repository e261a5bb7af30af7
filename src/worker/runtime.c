/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime.h"

#include <string.h>

#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "js/native.h"
#include "js/value.h"

/* From tools/embed.S. */
extern const char cn_prelude[];
extern const uint64_t cn_prelude_size;

int cn_runtime_new(const struct cn_runtime_options *options, struct cn_runtime **out,
                   struct cn_err *err)
{
    cn_loop_assert_owner(options->loop);
    struct cn_runtime *runtime = CN_NEW(struct cn_runtime);
    runtime->loop = options->loop;
    runtime->log = options->log;
    runtime->data = options->data;
    cn_list_init(&runtime->operations);
    cn_map_init(&runtime->timers);
    runtime->context = cn_js_context_new(options->vm, runtime);
    JSContextRef ctx = runtime->context->ref;
    cn_js_enter(runtime->context);
    JSValueRef function;
    int rc = cn_js_evaluate_static(runtime->context, cn_prelude, (size_t)cn_prelude_size,
                                   "cairn:prelude", &function, err);
    if (rc < 0)
        goto leave;
    JSObjectRef native = JSObjectMake(ctx, NULL, NULL);
    options->install(runtime, native);
    const char *options_json = options->options_json ? options->options_json : "{}";
    JSStringRef json = cn_js_string(options_json, strlen(options_json));
    JSValueRef parsed = JSValueMakeFromJSONString(ctx, json);
    JSStringRelease(json);
    if (!parsed) { /* U1 */
        rc = cn_err_set(err, CN_EJS, "the options of the prelude could not be read");
        goto leave;
    }
    JSValueRef argv[2] = {native, parsed};
    JSValueRef entry;
    rc = cn_js_call(runtime->context, function, 2, argv, &entry, err);
    if (rc < 0)
        goto leave;
    cn_js_pin_set(&runtime->entry, runtime->context, entry);
    cn_js_pin_set_passive(&runtime->entry);
    cn_js_leave(runtime->context);
    *out = runtime;
    return 0;
leave:
    cn_js_leave(runtime->context);
    cn_runtime_free(runtime);
    return rc;
}

void cn_runtime_free(struct cn_runtime *runtime)
{
    cn_loop_assert_owner(runtime->loop);
    while (!cn_list_empty(&runtime->operations)) {
        struct cn_operation *operation =
            CN_CONTAINER_OF(runtime->operations.next, struct cn_operation, link);
        cn_operation_end(operation);
        operation->cancel(operation);
    }
    cn_js_context_free(runtime->context);
    CN_ASSERT(!runtime->timers.count && !runtime->fetches.live && !runtime->connections.live);
    cn_map_fini(&runtime->timers);
    cn_handles_fini(&runtime->fetches);
    cn_handles_fini(&runtime->connections);
    cn_free(runtime);
}

void cn_operation_start(struct cn_runtime *runtime, struct cn_operation *operation,
                        void (*cancel)(struct cn_operation *operation))
{
    cn_loop_assert_owner(runtime->loop);
    operation->cancel = cancel;
    cn_list_push_back(&runtime->operations, &operation->link);
}

void cn_operation_end(struct cn_operation *operation)
{
    cn_list_remove(&operation->link);
}

JSObjectRef cn_runtime_entry(struct cn_runtime *runtime, const char *name)
{
    JSContextRef ctx = runtime->context->ref;
    JSStringRef name_ref = JSStringCreateWithUTF8CString(name);
    JSValueRef exception = NULL;
    JSValueRef value =
        JSObjectGetProperty(ctx, (JSObjectRef)runtime->entry.value, name_ref, &exception);
    JSStringRelease(name_ref);
    if (exception || !value)
        return NULL; /* U1 */
    CN_ASSERT(JSValueIsObject(ctx, value));
    return (JSObjectRef)value;
}
