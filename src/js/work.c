/* SPDX-License-Identifier: Apache-2.0 */
#include "js/work.h"

#include "base/assert.h"
#include "base/mem.h"
#include "js/value.h"

JSValueRef cn_js_deferred_init(struct cn_js_context *context, struct cn_js_deferred *deferred)
{
    JSObjectRef resolve, reject;
    JSValueRef exception = NULL;
    JSObjectRef promise = JSObjectMakeDeferredPromise(context->ref, &resolve, &reject, &exception);
    CN_ASSERT(promise);
    cn_js_pin_set(&deferred->resolve, context, resolve);
    cn_js_pin_set(&deferred->reject, context, reject);
    return promise;
}

static void settle(struct cn_js_deferred *deferred, struct cn_js_pin *function, JSValueRef value)
{
    struct cn_js_context *context = function->context;
    if (!cn_js_enter_pin(function)) {
        cn_js_deferred_drop(deferred);
        return;
    }
    JSObjectCallAsFunction(context->ref, (JSObjectRef)function->value, NULL, 1, &value, NULL);
    cn_js_deferred_drop(deferred);
    cn_js_leave(context);
}

void cn_js_deferred_resolve(struct cn_js_deferred *deferred, JSValueRef value)
{
    settle(deferred, &deferred->resolve, value);
}

void cn_js_deferred_reject(struct cn_js_deferred *deferred, JSValueRef value)
{
    settle(deferred, &deferred->reject, value);
}

void cn_js_deferred_drop(struct cn_js_deferred *deferred)
{
    cn_js_pin_clear(&deferred->resolve);
    cn_js_pin_clear(&deferred->reject);
}

static void on_run(uv_work_t *request)
{
    struct cn_js_work *work = CN_CONTAINER_OF(request, struct cn_js_work, request);
    work->run(work);
}

static void on_finish(uv_work_t *request, int status)
{
    (void)status; /* cancellation is never asked for */
    struct cn_js_work *work = CN_CONTAINER_OF(request, struct cn_js_work, request);
    struct cn_js_context *context = work->deferred.resolve.context;
    if (!cn_js_enter_pin(&work->deferred.resolve)) {
        cn_js_deferred_drop(&work->deferred);
        work->finish(work, NULL, NULL);
        cn_free(work);
        return;
    }
    JSValueRef exception = NULL;
    JSValueRef value = work->finish(work, context->ref, &exception);
    if (exception)
        cn_js_deferred_reject(&work->deferred, exception);
    else
        cn_js_deferred_resolve(&work->deferred, value);
    cn_free(work);
    cn_js_leave(context);
}

JSValueRef cn_js_work_start(struct cn_js_context *context, uv_loop_t *loop, struct cn_js_work *work)
{
    JSValueRef promise = cn_js_deferred_init(context, &work->deferred);
    int rc = uv_queue_work(loop, &work->request, on_run, on_finish);
    CN_ASSERT(rc == 0);
    return promise;
}
