/* SPDX-License-Identifier: Apache-2.0 */
#include "test/simulate/whole/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/simulate/whole/machine.h"
#include "test/simulate/world.h"

enum { ACTIVE = 1, CLOSING = 2 };

struct loop *loop_of(uv_loop_t *uv)
{
    return uv->internal_fields;
}

void loop_wake(struct loop *loop)
{
    fiber_wake(loop, true);
}

void loop_pend(struct loop *loop, struct pending *pending)
{
    if (pending->queued)
        return;
    pending->queued = true;
    pending->next = NULL;
    *loop->pending_end = pending;
    loop->pending_end = &pending->next;
    loop_wake(loop);
}

static uint64_t clock_ms(void)
{
    return (uint64_t)process_clock_ns(process_current()) / 1000000;
}

int uv_loop_init(uv_loop_t *uv)
{
    struct process *process = process_current();
    struct loop *loop = calloc(1, sizeof(*loop));
    memset(uv, 0, sizeof(*uv));
    loop->uv = uv;
    loop->pending_end = &loop->pending;
    loop->time_ms = clock_ms();
    uv->internal_fields = loop;
    if (process->loop_count == LOOPS_MAX)
        abort();
    process->loops[process->loop_count++] = loop;
    return 0;
}

int uv_loop_close(uv_loop_t *uv)
{
    struct process *process = process_current();
    struct loop *loop = loop_of(uv);
    if (loop->handles || loop->closing || loop->pending || loop->others)
        return UV_EBUSY;
    for (unsigned i = 0; i < process->loop_count; i++)
        if (process->loops[i] == loop)
            process->loops[i] = process->loops[--process->loop_count];
    free(loop);
    return 0;
}

uint64_t uv_now(const uv_loop_t *uv)
{
    return ((struct loop *)uv->internal_fields)->time_ms;
}

void uv_update_time(uv_loop_t *uv)
{
    loop_of(uv)->time_ms = clock_ms();
}

uint64_t uv_hrtime(void)
{
    return (uint64_t)process_clock_ns(process_current());
}

const char *uv_strerror(int code)
{
    static char text[40];
    snprintf(text, sizeof(text), "error %d", code);
    return text;
}

/* --- handles ---------------------------------------------------------------------------------- */

static void handle_init(uv_loop_t *uv, uv_handle_t *handle, uv_handle_type type)
{
    struct loop *loop = loop_of(uv);
    void *data = handle->data;
    memset(handle, 0, sizeof(*handle));
    handle->data = data;
    handle->loop = uv;
    handle->type = type;
    handle->u.reserved[0] = loop->handles;
    if (loop->handles)
        loop->handles->u.reserved[1] = handle;
    loop->handles = handle;
}

static void handle_unlink(struct loop *loop, uv_handle_t *handle)
{
    uv_handle_t *next = handle->u.reserved[0], *last = handle->u.reserved[1];
    if (next)
        next->u.reserved[1] = last;
    if (last)
        last->u.reserved[0] = next;
    else
        loop->handles = next;
}

int uv_is_active(const uv_handle_t *handle)
{
    return (handle->flags & ACTIVE) != 0;
}

int uv_is_closing(const uv_handle_t *handle)
{
    return (handle->flags & CLOSING) != 0;
}

void uv_close(uv_handle_t *handle, uv_close_cb cb)
{
    struct loop *loop = loop_of(handle->loop);
    if (handle->flags & CLOSING)
        abort();
    handle->flags = CLOSING;
    handle->close_cb = cb;
    handle_unlink(loop, handle);
    handle->next_closing = loop->closing;
    loop->closing = handle;
}

int uv_timer_init(uv_loop_t *uv, uv_timer_t *timer)
{
    handle_init(uv, (uv_handle_t *)timer, UV_TIMER);
    return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat)
{
    struct loop *loop = loop_of(timer->loop);
    if (timer->flags & CLOSING)
        return UV_EINVAL;
    timer->timer_cb = cb;
    timer->timeout = loop->time_ms + timeout;
    timer->repeat = repeat;
    timer->start_id = loop->starts++;
    timer->flags |= ACTIVE;
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    timer->flags &= ~(unsigned)ACTIVE;
    return 0;
}

int uv_async_init(uv_loop_t *uv, uv_async_t *async, uv_async_cb cb)
{
    handle_init(uv, (uv_handle_t *)async, UV_ASYNC);
    async->async_cb = cb;
    async->pending = 0;
    async->flags |= ACTIVE;
    return 0;
}

int uv_async_send(uv_async_t *async)
{
    if (!async->pending && !(async->flags & CLOSING)) {
        async->pending = 1;
        loop_wake(loop_of(async->loop));
    }
    fiber_step();
    return 0;
}

int uv_idle_init(uv_loop_t *uv, uv_idle_t *idle)
{
    handle_init(uv, (uv_handle_t *)idle, UV_IDLE);
    return 0;
}

int uv_idle_start(uv_idle_t *idle, uv_idle_cb cb)
{
    idle->idle_cb = cb;
    idle->flags |= ACTIVE;
    return 0;
}

int uv_idle_stop(uv_idle_t *idle)
{
    idle->flags &= ~(unsigned)ACTIVE;
    return 0;
}

/* A listener: net.c has who connects. */
int uv_tcp_init(uv_loop_t *uv, uv_tcp_t *tcp)
{
    handle_init(uv, (uv_handle_t *)tcp, UV_TCP);
    tcp->flags |= ACTIVE;
    return 0;
}

/* --- work of the pool ------------------------------------------------------------------------- */

struct work {
    struct pending pending; /* first */
    uv_work_t *request;
    uv_work_cb work;
    uv_after_work_cb after;
};

static void work_after(struct pending *pending)
{
    struct work *work = (struct work *)pending;
    loop_of(work->request->loop)->others--;
    work->after(work->request, 0);
    free(work);
}

static void *work_main(void *data)
{
    struct work *work = data;
    work->work(work->request);
    loop_pend(loop_of(work->request->loop), &work->pending);
    return NULL;
}

int uv_queue_work(uv_loop_t *uv, uv_work_t *request, uv_work_cb cb, uv_after_work_cb after)
{
    struct work *work = calloc(1, sizeof(*work));
    *work =
        (struct work){.pending.run = work_after, .request = request, .work = cb, .after = after};
    request->loop = uv;
    loop_of(uv)->others++;
    (void)fiber_spawn(process_current(), work_main, work);
    return 0;
}

int uv_sem_init(uv_sem_t *sem, unsigned value)
{
    memset(sem, 0, sizeof(*sem));
    *(unsigned *)sem = value;
    return 0;
}

void uv_sem_destroy(uv_sem_t *sem)
{
    (void)sem;
}

void uv_sem_post(uv_sem_t *sem)
{
    ++*(unsigned *)sem;
    fiber_wake(sem, true);
    fiber_step();
}

void uv_sem_wait(uv_sem_t *sem)
{
    while (!*(unsigned *)sem)
        (void)fiber_wait(sem, INT64_MAX);
    --*(unsigned *)sem;
}

/* --- rounds ----------------------------------------------------------------------------------- */

static uv_timer_t *first_timer(const struct loop *loop)
{
    uv_timer_t *first = NULL;
    for (uv_handle_t *at = loop->handles; at; at = at->u.reserved[0]) {
        uv_timer_t *timer = (uv_timer_t *)at;
        if (at->type != UV_TIMER || !(at->flags & ACTIVE))
            continue;
        if (!first || timer->timeout < first->timeout ||
            (timer->timeout == first->timeout && timer->start_id < first->start_id))
            first = timer;
    }
    return first;
}

/* Those that are started meanwhile are for the next round, unless they are due already: as libuv
 * has it. */
static void run_timers(struct loop *loop)
{
    for (;;) {
        uv_timer_t *timer = first_timer(loop);
        if (!timer || timer->timeout > loop->time_ms)
            return;
        uv_timer_stop(timer);
        if (timer->repeat)
            uv_timer_start(timer, timer->timer_cb, timer->repeat, timer->repeat);
        timer->timer_cb(timer);
    }
}

static uv_async_t *next_async(const struct loop *loop)
{
    for (uv_handle_t *at = loop->handles; at; at = at->u.reserved[0])
        if (at->type == UV_ASYNC && ((uv_async_t *)at)->pending)
            return (uv_async_t *)at;
    return NULL;
}

static bool run_idle(struct loop *loop)
{
    bool any = false;
    for (uv_handle_t *at = loop->handles, *next; at; at = next) {
        next = at->u.reserved[0];
        if (at->type != UV_IDLE || !(at->flags & ACTIVE))
            continue;
        any = true;
        ((uv_idle_t *)at)->idle_cb((uv_idle_t *)at);
    }
    return any;
}

static void run_pending(struct loop *loop)
{
    struct pending *all = loop->pending;
    loop->pending = NULL;
    loop->pending_end = &loop->pending;
    while (all) {
        struct pending *one = all;
        all = one->next;
        one->queued = false;
        one->run(one);
    }
    for (uv_async_t *async; (async = next_async(loop));) {
        async->pending = 0;
        async->async_cb(async);
    }
}

static void run_closing(struct loop *loop)
{
    uv_handle_t *all = loop->closing;
    loop->closing = NULL;
    while (all) {
        uv_handle_t *one = all;
        all = one->next_closing;
        if (one->close_cb)
            one->close_cb(one);
    }
}

static bool is_alive(const struct loop *loop)
{
    bool alive = loop->closing || loop->pending || loop->others;
    for (uv_handle_t *at = loop->handles; at && !alive; at = at->u.reserved[0])
        alive = (at->flags & ACTIVE) != 0;
    return alive;
}

static void wait_for_more(struct loop *loop)
{
    const uv_timer_t *timer = first_timer(loop);
    int64_t until = INT64_MAX;
    if (loop->closing || loop->pending || next_async(loop))
        return;
    if (timer)
        until = process_true_ns(process_current(), (int64_t)timer->timeout * 1000000);
    if (until > now_ns)
        (void)fiber_wait(loop, until);
}

int uv_run(uv_loop_t *uv, uv_run_mode mode)
{
    struct loop *loop = loop_of(uv);
    while (is_alive(loop)) {
        uv_update_time(uv);
        run_timers(loop);
        bool idle = run_idle(loop);
        if (mode == UV_RUN_DEFAULT && !idle)
            wait_for_more(loop);
        else
            fiber_step();
        uv_update_time(uv);
        run_pending(loop);
        run_closing(loop);
        if (mode != UV_RUN_DEFAULT)
            break;
    }
    return is_alive(loop);
}
