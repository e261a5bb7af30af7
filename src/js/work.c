/* SPDX-License-Identifier: Apache-2.0 */
#include "js/work.h"

#include <pthread.h>

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
    (void)cn_js_invoke(context->ref, function->value, 1, &value, NULL); /* the engine's own */
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

static void finish(struct cn_js_work *work)
{
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

static void on_finish(uv_work_t *request, int status)
{
    (void)status; /* cancellation is never asked for */
    finish(CN_CONTAINER_OF(request, struct cn_js_work, request));
}

/* --- slow work ------------------------------------------------------------------------------- */

/* Of the process, as libuv's pool is: the bound is for all lanes together. */
static struct {
    pthread_mutex_t lock;   /* guards the rest */
    struct cn_list pending; /* of struct cn_js_work, oldest first */
    struct cn_list running;
    unsigned pending_count, thread_count;
} slow = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .pending = {&slow.pending, &slow.pending},
          .running = {&slow.running, &slow.running}};

static void on_done_closed(uv_handle_t *handle)
{
    cn_free(handle);
}

static void on_done(uv_async_t *done)
{
    struct cn_js_work *work = done->data;
    uv_close((uv_handle_t *)done, on_done_closed);
    finish(work);
}

static void *slow_main(void *data)
{
    (void)data;
    struct cn_list *node;
    pthread_mutex_lock(&slow.lock);
    while ((node = cn_list_take_front(&slow.pending))) {
        struct cn_js_work *work = CN_CONTAINER_OF(node, struct cn_js_work, link);
        slow.pending_count--;
        cn_list_push_back(&slow.running, &work->link);
        pthread_mutex_unlock(&slow.lock);
        work->run(work);
        pthread_mutex_lock(&slow.lock);
        cn_list_remove(&work->link);
        uv_async_send(work->done); /* from here on it is the lane's */
    }
    slow.thread_count--;
    pthread_mutex_unlock(&slow.lock);
    return NULL;
}

void cn_js_work_give_up(const struct cn_js_context *context)
{
    pthread_mutex_lock(&slow.lock);
    CN_LIST_FOREACH(&slow.running, node)
    {
        struct cn_js_work *work = CN_CONTAINER_OF(node, struct cn_js_work, link);
        if (work->owner == context)
            atomic_store(&work->given_up, true);
    }
    CN_LIST_FOREACH(&slow.pending, node)
    {
        struct cn_js_work *work = CN_CONTAINER_OF(node, struct cn_js_work, link);
        if (work->owner != context)
            continue;
        cn_list_remove(&work->link);
        slow.pending_count--;
        uv_async_send(work->done);
    }
    pthread_mutex_unlock(&slow.lock);
}

/* False: too many wait (W2). */
static bool slow_start(uv_loop_t *loop, struct cn_js_work *work)
{
    pthread_t thread;
    pthread_mutex_lock(&slow.lock);
    bool room = slow.pending_count < CN_JS_SLOW_PENDING_MAX;
    if (room) {
        work->done = CN_NEW(uv_async_t);
        work->done->data = work;
        int rc = uv_async_init(loop, work->done, on_done);
        CN_ASSERT(rc == 0);
        cn_list_push_back(&slow.pending, &work->link);
        slow.pending_count++;
        if (slow.thread_count < CN_JS_SLOW_THREADS &&
            pthread_create(&thread, NULL, slow_main, NULL) == 0) {
            pthread_detach(thread);
            slow.thread_count++;
        }
        CN_ASSERT(slow.thread_count > 0); /* no thread at all: nothing would ever run */
    }
    pthread_mutex_unlock(&slow.lock);
    return room;
}

JSValueRef cn_js_work_start(struct cn_js_context *context, uv_loop_t *loop, struct cn_js_work *work)
{
    JSValueRef promise = cn_js_deferred_init(context, &work->deferred);
    work->owner = context;
    if (!work->slow) {
        int rc = uv_queue_work(loop, &work->request, on_run, on_finish);
        CN_ASSERT(rc == 0);
    } else if (!slow_start(loop, work)) {
        JSValueRef error = NULL;
        cn_js_throw(context->ref, &error, CN_JS_RANGE_ERROR,
                    "Too many keys and primes are being made; try again later.");
        cn_js_deferred_reject(&work->deferred, error);
        work->finish(work, NULL, NULL);
        cn_free(work);
    }
    return promise;
}
