/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into the server of check.mjs: what the engine does by the clock, and not for a request,
 * is not there. The limit of a turn makes it look at all its code every 10 to 50 ms; its statistics
 * make it go through its heap every second.
 *
 * libuv's wakening is here without its spin: a loop that is woken while the sender is still in
 * uv_async_send() runs in a circle until that one is done, which is thousands of instructions where
 * one thread runs at a time. */
#include <JavaScriptCore/JavaScript.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>
#include <uv.h>

void JSContextGroupSetExecutionTimeLimit(JSContextGroupRef group, double limit,
                                         bool (*callback)(JSContextRef ctx, void *context),
                                         void *context);
JSObjectRef JSGetMemoryUsageStatistics(JSContextRef ctx);

void JSContextGroupSetExecutionTimeLimit(JSContextGroupRef group, double limit,
                                         bool (*callback)(JSContextRef ctx, void *context),
                                         void *context)
{
    (void)group;
    (void)limit;
    (void)callback;
    (void)context;
}

JSObjectRef JSGetMemoryUsageStatistics(JSContextRef ctx)
{
    return JSObjectMake(ctx, NULL, NULL);
}

/* 2: sent, and the sender is done with it. */
int uv_async_send(uv_async_t *async)
{
    if (__atomic_exchange_n(&async->pending, 2, __ATOMIC_SEQ_CST) == 0) {
        uint64_t one = 1;
        (void)!write(async->loop->async_io_watcher.fd, &one, sizeof(one));
    }
    return 0;
}
