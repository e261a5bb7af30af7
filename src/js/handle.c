/* SPDX-License-Identifier: Apache-2.0 */
#include "js/handle.h"

#include <pthread.h>

#include "js/engine/alloc.h"

static JSClassRef handle_class; /* immutable once made */
static pthread_once_t handle_class_once = PTHREAD_ONCE_INIT;

static void on_finalize(JSObjectRef object)
{
    struct cn_js_handle *handle = JSObjectGetPrivate(object);
    if (!handle)
        return;
    if (!handle->type->counts)
        cn_js_alloc_returned(handle); /* before the address is another's */
    handle->type->free(handle);
}

static void make_class(void)
{
    JSClassDefinition definition = kJSClassDefinitionEmpty;
    definition.className = "NativeHandle";
    definition.finalize = on_finalize;
    handle_class = JSClassCreate(&definition);
}

JSValueRef cn_js_handle_make(JSContextRef ctx, struct cn_js_handle *handle,
                             const struct cn_js_handle_type *type, size_t cost_bytes)
{
    pthread_once(&handle_class_once, make_class);
    handle->type = type;
    JSObjectRef object = JSObjectMake(ctx, handle_class, handle);
    if (!type->counts)
        cn_js_alloc_lent(handle, cost_bytes);
    JSReportExtraMemoryCost(ctx, cost_bytes);
    return object;
}

void *cn_js_handle_find(JSContextRef ctx, JSValueRef value, const struct cn_js_handle_type *type)
{
    pthread_once(&handle_class_once, make_class);          /* another thread may be making it */
    if (!JSValueIsObjectOfClass(ctx, value, handle_class)) /* N2 */
        return NULL;
    struct cn_js_handle *handle = JSObjectGetPrivate((JSObjectRef)value);
    return handle && handle->type == type ? handle : NULL;
}
