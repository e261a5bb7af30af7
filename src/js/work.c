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
    *deferred = (struct cn_js_deferred){0};
    if (!promise) /* the turn is being ended: nobody is told (cn_js_enter_pin()) */
        return JSValueMakeUndefined(context->ref);
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

static void start_waiting(struct cn_js_context *context);

/* It runs no longer: what it holds becomes a value's now, or goes. */
static void settle_bytes(struct cn_js_context *context, struct cn_js_work *work)
{
    cn_js_alloc_release(&work->given_held);
    cn_js_alloc_release(&work->made_held);
    if (context)
        context->work_bytes -= work->made;
}

static void finish(struct cn_js_work *work)
{
    struct cn_js_context *context = work->deferred.resolve.context;
    settle_bytes(context, work);
    if (!cn_js_enter_pin(&work->deferred.resolve)) {
        cn_js_deferred_drop(&work->deferred);
        work->finish(work, NULL, NULL);
        cn_free(work);
        if (context) {
            cn_js_enter(context);
            start_waiting(context);
            cn_js_leave(context);
        }
        return;
    }
    JSValueRef exception = NULL;
    JSValueRef value = work->finish(work, context->ref, &exception);
    if (exception)
        cn_js_deferred_reject(&work->deferred, exception);
    else
        cn_js_deferred_resolve(&work->deferred, value);
    cn_free(work);
    start_waiting(context);
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
    /* The thread sends with the lock held: taken here, it orders what the thread has written before
     * what follows. */
    pthread_mutex_lock(&slow.lock);
    pthread_mutex_unlock(&slow.lock);
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

/* W5: those that wait were never begun. */
static void drop_waiting(struct cn_js_context *context)
{
    struct cn_list *node;
    while ((node = cn_list_take_front(&context->works))) {
        struct cn_js_work *work = CN_CONTAINER_OF(node, struct cn_js_work, link);
        cn_js_alloc_release(&work->given_held);
        cn_js_deferred_drop(&work->deferred);
        work->finish(work, NULL, NULL);
        cn_free(work);
    }
}

void cn_js_work_give_up(struct cn_js_context *context)
{
    drop_waiting(context);
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

/* False: too many wait (W2), or there is no thread at all and nothing would ever run. */
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
        room = slow.thread_count > 0;
        if (!room) {
            cn_list_remove(&work->link);
            slow.pending_count--;
            uv_close((uv_handle_t *)work->done, on_done_closed);
        }
    }
    pthread_mutex_unlock(&slow.lock);
    return room;
}

/* Nothing runs, or has run: the promise is rejected. */
static void refuse(struct cn_js_context *context, struct cn_js_work *work, const char *text)
{
    JSValueRef error = NULL;
    cn_js_throw(context->ref, &error, CN_JS_RANGE_ERROR, "%s", text);
    cn_js_deferred_reject(&work->deferred, error);
    cn_js_alloc_release(&work->given_held);
    cn_js_alloc_release(&work->made_held);
    work->finish(work, NULL, NULL);
    cn_free(work);
}

static void begin(struct cn_js_context *context, struct cn_js_work *work)
{
    if (!cn_js_alloc_reserve(&work->made_held, work->made)) {
        refuse(context, work, "There is no memory for this now.");
        return;
    }
    context->work_bytes += work->made;
    if (!work->slow) {
        int rc = uv_queue_work(work->loop, &work->request, on_run, on_finish);
        CN_ASSERT(rc == 0);
    } else if (!slow_start(work->loop, work)) {
        context->work_bytes -= work->made;
        refuse(context, work,
               "Too many keys and primes are being made, or there are no threads; "
               "try again later.");
    }
}

/* W5 */
static bool has_room(const struct cn_js_context *context, const struct cn_js_work *work)
{
    return !work->made || !context->work_bytes ||
           context->work_bytes + work->made <= CN_JS_WORK_BYTES;
}

static void start_waiting(struct cn_js_context *context)
{
    while (!cn_list_empty(&context->works)) {
        struct cn_js_work *work = CN_CONTAINER_OF(context->works.next, struct cn_js_work, link);
        if (!has_room(context, work))
            return;
        cn_list_remove(&work->link);
        begin(context, work);
    }
}

JSValueRef cn_js_work_start(struct cn_js_context *context, uv_loop_t *loop, struct cn_js_work *work)
{
    JSValueRef promise = cn_js_deferred_init(context, &work->deferred);
    work->owner = context;
    work->loop = loop;
    if (!work->deferred.resolve.context) { /* the turn is being ended: nobody would be told */
        work->finish(work, NULL, NULL);
        cn_free(work);
    } else if (!cn_js_alloc_reserve(&work->given_held, work->given)) { /* W4 */
        refuse(context, work, "There is no memory for this now.");
    } else if (!has_room(context, work) || (work->made && !cn_list_empty(&context->works))) {
        cn_list_push_back(&context->works, &work->link);
    } else {
        begin(context, work);
    }
    return promise;
}
