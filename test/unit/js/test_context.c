/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of one VM: what is left of those that were freed. */
#include "js/context.h"

#include "js/value.h"
#include "test/lib/test.h"

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
    cn_js_setup();
    struct cn_js_vm *vm = cn_js_vm_new(NULL);
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
