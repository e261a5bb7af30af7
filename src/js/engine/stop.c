/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/stop.c - see stop.h.
 *
 * Two functions of the library ask a running thread to stop by way of its stack limit, and take
 * that back. Compiled code and the interpreter look at the engine's flags (JSC_usePollingTraps), so
 * the request is not needed; and it ends the process if a flag is raised again between the thread's
 * lowering it and its taking the request back (2.50). */
#include "js/engine/stop.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"
#include "js/context.h"
#include "js/vm.h"

#define REQUEST "_ZN3JSC7VMTraps25requestThreadStopIfNeededEj"
#define CANCEL "_ZN3JSC7VMTraps24cancelThreadStopIfNeededEv"

static atomic_bool usable; /* asked on the engine's own threads too */
static atomic_uint requests;
static void (*library_request)(void *traps, unsigned event);
static void (*library_cancel)(void *traps);

void cn_js_engine_request_stop(void *traps, unsigned event) __asm__(REQUEST);
void cn_js_engine_request_stop(void *traps, unsigned event)
{
    if (usable) {
        atomic_fetch_add_explicit(&requests, 1, memory_order_relaxed);
        return;
    }
    CN_ASSERT(library_request);
    library_request(traps, event);
}

void cn_js_engine_cancel_stop(void *traps) __asm__(CANCEL);
void cn_js_engine_cancel_stop(void *traps)
{
    if (usable)
        return;
    CN_ASSERT(library_cancel);
    library_cancel(traps);
}

static JSValueRef end_turn(JSContextRef ctx, JSObjectRef function, JSObjectRef this_object,
                           size_t argc, const JSValueRef argv[], JSValueRef *exception)
{
    cn_js_end_turn(cn_js_vm_current());
    return JSValueMakeUndefined(ctx);
}

/* A loop that is to be ended is. It ends itself after some seconds, if nobody does. */
static const char *prove(struct cn_js_vm *vm)
{
    struct cn_js_context context = {.vm = vm, .ref = vm->bare};
    static const char source[] =
        "(end => { end(); const last = Date.now() + 5000; while (Date.now() < last); })";
    unsigned before = atomic_load_explicit(&requests, memory_order_relaxed);
    JSStringRef text = JSStringCreateWithUTF8CString(source);
    cn_js_enter(&context);
    JSValueRef function = JSEvaluateScript(vm->bare, text, NULL, NULL, 1, NULL);
    JSValueRef argument = JSObjectMakeFunctionWithCallback(vm->bare, NULL, end_turn);
    if (function && JSValueIsObject(vm->bare, function))
        JSObjectCallAsFunction(vm->bare, (JSObjectRef)function, NULL, 1, &argument, NULL);
    cn_js_leave(&context);
    JSStringRelease(text);
    if (!context.cut)
        return "a loop that is to be ended goes on";
    if (atomic_load_explicit(&requests, memory_order_relaxed) == before)
        return "the library does not call what is put in the place of its functions";
    return NULL;
}

static void found(void *const functions[])
{
    *(void **)&library_request = functions[0];
    *(void **)&library_cancel = functions[1];
}

static void use(bool on)
{
    usable = on;
}

const struct cn_js_patch cn_js_patch_stop = {
    .name = "stop",
    .replaces = "VMTraps::requestThreadStopIfNeeded, VMTraps::cancelThreadStopIfNeeded",
    .why = "if two requests to end a turn meet, the library ends the process (2.50); compiled code "
           "asks "
           "by itself and needs no request",
    .gain = "no CPU; the process stays alive",
    .without = "in rare cases, a turn that is ended for its CPU time ends the server",
    .symbols = {REQUEST, CANCEL},
    .found = found,
    .use = use,
    .prove = prove,
};
