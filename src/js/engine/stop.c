/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/stop.c - see stop.h.
 *
 * The library asks a running thread to stop by way of its stack limit, and takes that back.
 *
 * Up to 2.50 two functions do so. They end the process if a flag is raised again between the
 * thread's lowering it and its taking the request back. Compiled code and the interpreter look at
 * the engine's flags (JSC_usePollingTraps), so neither function is needed, and ours do nothing.
 *
 * From 2.52 on one function does both, under a lock, and is right: ours calls it. A call from
 * another thread than the VM's is a request, since a thread takes back what it was asked itself. */
#include "js/engine/stop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/assert.h"
#include "js/context.h"
#include "js/vm.h"

#define REQUEST "_ZN3JSC7VMTraps25requestThreadStopIfNeededEj"
#define CANCEL "_ZN3JSC7VMTraps24cancelThreadStopIfNeededEv"
#define UPDATE "_ZN3JSC7VMTraps31updateThreadStopRequestIfNeededEv" /* 2.52 */

static atomic_bool usable; /* asked on the engine's own threads too */
static atomic_uint requests;
static void (*library_request)(void *traps, unsigned event);
static void (*library_cancel)(void *traps);
static void (*library_update)(void *traps);

/* Who waits for a request, and where in a VM what is asked is, as the proof saw it. */
static pthread_mutex_t waits_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cn_list waits = {&waits, &waits};
static atomic_uint wait_count;
static _Atomic(const char *) last_traps;
static ptrdiff_t traps_at;

void cn_js_stop_wait_begin(struct cn_js_stop_wait *wait, struct cn_js_vm *vm)
{
    wait->vm = (const char *)vm->group;
    wait->asked = false;
    pthread_mutex_lock(&waits_lock);
    cn_list_push_back(&waits, &wait->link);
    wait_count++;
    pthread_mutex_unlock(&waits_lock);
}

bool cn_js_stop_wait_end(struct cn_js_stop_wait *wait, unsigned ms)
{
    for (unsigned i = 0; i < ms * 10 && !wait->asked; i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    pthread_mutex_lock(&waits_lock);
    if (wait->vm) {
        cn_list_remove(&wait->link);
        wait_count--;
    }
    wait->vm = NULL;
    pthread_mutex_unlock(&waits_lock);
    return wait->asked;
}

static void note_request(const char *traps)
{
    atomic_fetch_add_explicit(&requests, 1, memory_order_relaxed);
    last_traps = traps;
    if (!wait_count)
        return;
    pthread_mutex_lock(&waits_lock);
    CN_LIST_FOREACH(&waits, node)
    {
        struct cn_js_stop_wait *wait = CN_CONTAINER_OF(node, struct cn_js_stop_wait, link);
        if (wait->vm + traps_at == traps)
            wait->asked = true;
    }
    pthread_mutex_unlock(&waits_lock);
}

void cn_js_engine_request_stop(void *traps, unsigned event) __asm__(REQUEST);
void cn_js_engine_request_stop(void *traps, unsigned event)
{
    if (usable) {
        note_request(traps);
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

void cn_js_engine_update_stop(void *traps) __asm__(UPDATE);
void cn_js_engine_update_stop(void *traps)
{
    CN_ASSERT(library_update);
    library_update(traps);
    if (usable && !cn_js_vm_current())
        note_request(traps);
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
    traps_at = last_traps - (const char *)vm->group;
    return NULL;
}

static void found(void *const functions[])
{
    bool one = functions[0] == functions[1];
    *(void **)&library_request = one ? NULL : functions[0];
    *(void **)&library_cancel = one ? NULL : functions[1];
    *(void **)&library_update = one ? functions[0] : NULL;
}

static void use(bool on)
{
    usable = on;
}

const struct cn_js_patch cn_js_patch_stop = {
    .name = "stop",
    .replaces = "VMTraps::requestThreadStopIfNeeded and VMTraps::cancelThreadStopIfNeeded (2.50), "
                "VMTraps::updateThreadStopRequestIfNeeded (2.52)",
    .why = "if two requests to end a turn meet, the library ends the process (2.50); compiled code "
           "asks "
           "by itself and needs no request",
    .gain = "no CPU; the process stays alive",
    .without = "in rare cases, a turn that is ended for its CPU time ends the server",
    .symbols = {REQUEST "|" UPDATE, CANCEL "|" UPDATE},
    .found = found,
    .use = use,
    .prove = prove,
};
