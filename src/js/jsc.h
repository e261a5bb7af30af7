/* SPDX-License-Identifier: Apache-2.0 */
/* js/jsc.h - JavaScriptCore's C API, with the functions that the library
 * exports and its installed headers leave out. */
#ifndef CN_JS_JSC_H
#define CN_JS_JSC_H
#include <JavaScriptCore/JavaScript.h>
#include <stdbool.h>

typedef bool (*JSShouldTerminateCallback)(JSContextRef ctx, void *context);
void JSContextGroupSetExecutionTimeLimit(JSContextGroupRef group, double limit_seconds,
                                         JSShouldTerminateCallback callback, void *context);
void JSContextGroupClearExecutionTimeLimit(JSContextGroupRef group);
void JSGlobalContextSetUnhandledRejectionCallback(JSGlobalContextRef ctx, JSObjectRef function,
                                                  JSValueRef *exception);
void JSGlobalContextSetEvalEnabled(JSGlobalContextRef ctx, bool enabled, JSStringRef message);
/* What a Proxy stands for; NULL: it is none, or a revoked one. */
JSObjectRef JSObjectGetProxyTarget(JSObjectRef object);
void JSSynchronousGarbageCollectForDebugging(JSContextRef ctx);
JSObjectRef JSGetMemoryUsageStatistics(JSContextRef ctx);
void JSDisableGCTimer(void);
typedef void (*JSHeapFinalizer)(JSContextGroupRef group, void *data);
void JSContextGroupAddHeapFinalizer(JSContextGroupRef group, JSHeapFinalizer finalizer, void *data);
void JSReportExtraMemoryCost(JSContextRef ctx, size_t size);
void JSLock(JSContextRef ctx);
void JSUnlock(JSContextRef ctx);

#endif
