/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into the server of check.mjs: what the engine does by the clock, and not for a request,
 * is not there. The limit of a turn makes it look at all its code every 10 to 50 ms; its statistics
 * make it go through its heap every second. */
#include <JavaScriptCore/JavaScript.h>
#include <stdbool.h>

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
