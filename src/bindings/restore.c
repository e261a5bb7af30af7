/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/restore.c - bookmarks and restores as the prelude asks for them (object/restore.h).
 *
 * Every callback gets (bookmark, undefined) or (undefined, why it failed), in a later turn. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "border/restore.h"
#include "js/native.h"
#include "object/id.h"
#include "object/object.h"
#include "object/restore.h"
#include "worker/instance.h"
#include "worker/jsclass.h"
#include "worker/lane.h"
#include "worker/runtime.h"

struct asked {
    struct cn_restore_request request;
    struct cn_js_pin callback;
};

static void on_done(struct cn_restore_request *request, const struct cn_err *err)
{
    struct asked *asked = CN_CONTAINER_OF(request, struct asked, request);
    if (cn_js_enter_pin(&asked->callback)) {
        struct cn_js_context *context = asked->callback.context;
        JSContextRef ctx = context->ref;
        JSValueRef argv[2] = {JSValueMakeUndefined(ctx), JSValueMakeUndefined(ctx)};
        argv[err ? 1 : 0] = cn_js_text_z(ctx, err ? err->text : request->bookmark);
        cn_js_invoke(ctx, asked->callback.value, 2, argv, NULL);
        cn_js_pin_clear(&asked->callback);
        cn_js_leave(context);
    } else {
        cn_js_pin_clear(&asked->callback); /* the instance that asked has ended */
    }
    cn_free(asked);
}

/* NULL with the exception set if the object has been reset. */
static struct cn_object *object_arg(JSContextRef ctx, JSValueRef handle, JSValueRef *exception)
{
    struct cn_instance *instance = cn_runtime_of(ctx)->data;
    struct cn_jsobject *js = cn_jsobject_find(instance, cn_js_to_number(ctx, handle));
    if (js && !cn_object_is_broken(js->object))
        return js->object;
    cn_js_throw(ctx, exception, CN_JS_ERROR,
                "This instance of the Durable Object was reset; its storage cannot be used.");
    return NULL;
}

static struct cn_restore_request *request_new(JSContextRef ctx, JSValueRef callback)
{
    struct asked *asked = CN_NEW(struct asked);
    asked->request.done = on_done;
    cn_js_pin_set(&asked->callback, cn_js_context_of(ctx), callback);
    return &asked->request;
}

/* bookmarkNow(o, callback) */
static JSValueRef native_bookmark_now(CN_JS_NATIVE_ARGS)
{
    struct cn_object *object = object_arg(ctx, cn_js_arg(0), exception);
    if (object)
        cn_restore_bookmark_now(object, request_new(ctx, cn_js_arg(1)));
    return JSValueMakeUndefined(ctx);
}

/* bookmarkAt(o, milliseconds, callback) */
static JSValueRef native_bookmark_at(CN_JS_NATIVE_ARGS)
{
    struct cn_object *object = object_arg(ctx, cn_js_arg(0), exception);
    if (object)
        cn_restore_bookmark_at(object, cn_js_to_int64(ctx, cn_js_arg(1)),
                               request_new(ctx, cn_js_arg(2)));
    return JSValueMakeUndefined(ctx);
}

static bool parse_address(const char *text, struct cn_object_key *key)
{
    char hex[CN_OBJECT_HEX_SIZE + 1];
    return sscanf(text, "o%u:%64s", &key->namespace_id, hex) == 2 &&
           cn_id_from_hex(hex, strlen(hex), key->id);
}

/* restoreNext(o, bookmark, source | undefined, callback): `source` is the objectAddress() of the
 * object whose bookmark it is */
static JSValueRef native_restore_next(CN_JS_NATIVE_ARGS)
{
    struct cn_object *object = object_arg(ctx, cn_js_arg(0), exception);
    if (!object)
        return JSValueMakeUndefined(ctx);
    size_t size;
    struct cn_object_key source = object->key;
    if (!JSValueIsUndefined(ctx, cn_js_arg(2))) {
        char *address = cn_js_to_text(ctx, cn_js_arg(2), NULL);
        bool valid = parse_address(address, &source);
        cn_free(address);
        if (!valid)
            return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "restoreNext: bad source");
    }
    char *bookmark = cn_js_to_text(ctx, cn_js_arg(1), &size);
    cn_restore_next(object, &source, bookmark, size, request_new(ctx, cn_js_arg(3)));
    cn_free(bookmark);
    return JSValueMakeUndefined(ctx);
}
