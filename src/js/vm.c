/* SPDX-License-Identifier: Apache-2.0 */
#include "js/vm.h"

#include <dlfcn.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/account.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "js/context.h"
#include "js/engine/clock.h"
#include "js/engine/lock.h"
#include "js/engine/memory.h"
#include "js/engine/names.h"
#include "js/engine/regexp.h"
#include "js/engine/patch.h"
#include "js/value.h"

/* The engine looks at the budget whenever this much CPU time has gone by: seldom, since each look
 * wakes a thread of its; often while memory is short or a turn has lasted for an interval, so that
 * one that takes much is ended before it has taken all. With its own clock it counts anew at every
 * microtask: then it has to be less than what many of them take. */
#define WATCH_INTERVAL_SECONDS 0.05
#define WATCH_INTERVAL_CLOSE_SECONDS 0.01
#define WATCH_INTERVAL_OWN_CLOCK_SECONDS 0.005
/* CPU time of what the engine has deferred, in one go. */
#define PUMP_NS_MAX 1000000000u

/* One VM per thread, so native functions can find theirs. */
static _Thread_local struct cn_js_vm *current;

static uint64_t thread_cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A turn cannot have used its budget of CPU before it has lasted that long, and the monotonic clock
 * is no system call, as the thread's CPU clock is (0.3 us). Past that, half of the budget counts as
 * used and the rest is measured: a turn that others kept from running is not ended for it. */
static enum cn_js_end over_budget(struct cn_js_vm *vm, uint64_t now_mono_ns)
{
    if (vm->watched_turn != vm->turn_count) {
        vm->watched_turn = vm->turn_count;
        vm->watched_mono_ns = now_mono_ns;
        vm->cpu_deadline_ns = 0;
    }
    if (vm->ending)
        return CN_JS_END_ASKED;
    struct cn_js_pulse *pulse = vm->pulse;
    if (atomic_load_explicit(&pulse->unwanted, memory_order_relaxed) ==
        atomic_load_explicit(&pulse->running, memory_order_relaxed) + 1)
        return atomic_load_explicit(&pulse->why, memory_order_relaxed);
    if (!vm->budget_ns || now_mono_ns - vm->watched_mono_ns < vm->budget_ns)
        return CN_JS_END_NONE;
    uint64_t cpu_ns = thread_cpu_ns();
    if (!vm->cpu_deadline_ns)
        vm->cpu_deadline_ns = cpu_ns + vm->budget_ns / 2;
    return cpu_ns >= vm->cpu_deadline_ns ? CN_JS_END_CPU : CN_JS_END_NONE;
}

static bool should_terminate(JSContextRef ctx, void *context);

/* The engine asks at once, and then ends the turn. */
static void hurry(struct cn_js_vm *vm)
{
    if (vm->hurried)
        return;
    vm->hurried = true; /* first: the call below reads the engine's clock, and comes back here */
    JSContextGroupSetExecutionTimeLimit(vm->group, 0, should_terminate, vm);
}

static bool is_over(uint64_t now_mono_ns)
{
    return current && over_budget(current, now_mono_ns);
}

/* engine/clock.h asks whenever the engine reads its clock. A time past every deadline is not
 * enough: a tick counts only if no microtask has begun since, so the engine is also told to tick at
 * once until it asks. */
static bool is_overdue(uint64_t now_mono_ns)
{
    if (!is_over(now_mono_ns))
        return false;
    hurry(current);
    return true;
}

/* The same without engine/clock.h, when the heap has been collected: an endless chain of microtasks
 * makes garbage without end. (P4) */
static void on_collected(JSContextGroupRef group, void *data)
{
    struct cn_js_vm *vm = data;
    if (vm == current && vm->entered && !cn_js_engine_clock_used() &&
        over_budget(vm, cn_clock_mono_ns(cn_clock_system())))
        hurry(vm);
}

/* In a child: a VM, whose first act is to prove the patches. */
static void try_out(void)
{
    JSDisableGCTimer();
    cn_js_vm_new(NULL);
}

int cn_js_setup(struct cn_err *err)
{
    /* The engine reads its options from the environment when it starts. A user's own setting
     * wins. Two marking threads: a script that allocates much runs 8 to 20 % faster than with one.
     */
    setenv("JSC_numberOfGCMarkers", "2", 0);
    /* How much a heap may grow before it is collected depends on the memory that the engine sees:
     * twice what lives below a quarter of it, half as much again below a half, then a quarter. The
     * machine's would let every lane's garbage grow to what a browser may have; with this, a
     * script that streams a million rows takes 50 MB less and 4 % more CPU. */
    setenv("JSC_forceRAMSize", "134217728", 0);
    /* A heap is first collected with 8 MB in it, not with 1, which the prelude alone passes four
     * times. One that lives is past it anyway. */
    setenv("JSC_smallHeapSize", "8388608", 0);
    /* A call in tail position would vanish from stacks: `return f()` is how most code is written.
     */
    setenv("JSC_useTailCalls", "0", 0);
    /* Scripts know the type; one that could wait for another thread is not there (the prelude
     * takes Atomics.wait away). */
    setenv("JSC_useSharedArrayBuffer", "1", 0);
    /* Compiled code looks whether it is to stop. Otherwise a thread of the engine must catch it
     * running, by signals, which for short microtasks takes many seconds; no cost was measured. */
    setenv("JSC_usePollingTraps", "1", 0);
    /* A function is interpreted for 1,000 calls or 10,000 rounds of its loops, not 50 and 500. Only
     * the interpreter notes what the elements of a `for (x of array)` are; a loop that it has not
     * seen once, since another before it in the function was compiled first, leaves compiled code
     * at its first element, in every call and for good, and runs at half its speed. The first
     * requests after a start also take half as much: less is compiled that is hardly used. */
    setenv("JSC_thresholdForJITAfterWarmUp", "10000", 0);
    /* A short pattern does not become part of the function that uses it: there nothing could end a
     * match (engine/regexp.h). */
    setenv("JSC_maximumRegExpTestInlineCodesize", "0", 0);
    setenv("TZ", "UTC", 1); /* as on the platform, whatever the machine's is (dates.h, D1) */
    tzset();
    cn_js_engine_clock_setup(is_overdue);
    cn_js_engine_names_setup(is_overdue);
    cn_js_engine_regexp_setup(is_over, is_overdue);
    int rc = cn_js_engine_setup(try_out, err);
    if (rc < 0)
        return rc;
    /* The engine's timer for full collections asks for the memory pressure of a main loop that
     * this program does not have, and crashes (2.50). The lane collects when it is idle. */
    JSDisableGCTimer();
    (void)cn_clock_ticks_ns(0); /* the rate is measured from here on */
    return 0;
}

static double watch_interval(const struct cn_js_vm *vm, uint64_t now_mono_ns)
{
    if (!cn_js_engine_clock_used())
        return WATCH_INTERVAL_OWN_CLOCK_SECONDS;
    bool lasts = vm->entered && vm->watched_turn == vm->turn_count &&
                 now_mono_ns - vm->watched_mono_ns >= WATCH_INTERVAL_CLOSE_SECONDS * 1e9;
    return lasts || cn_account_level() > CN_ACCOUNT_CALM ? WATCH_INTERVAL_CLOSE_SECONDS
                                                         : WATCH_INTERVAL_SECONDS;
}

static void watch(struct cn_js_vm *vm, uint64_t now_mono_ns)
{
    double seconds = watch_interval(vm, now_mono_ns);
    vm->closely = seconds == WATCH_INTERVAL_CLOSE_SECONDS;
    JSContextGroupSetExecutionTimeLimit(vm->group, seconds, should_terminate, vm);
}

#define PLACE_FRAMES_MAX 10
#define PLACE_COLUMN 100000 /* the end of the line: its column is not known */

/* The running script's stack, by a function of the C API that is in none of its installed headers
 * (as those of js/profile.h): without it the place stays unknown. */
static void note_place(struct cn_js_vm *vm, JSContextRef ctx)
{
    JSStringRef (*backtrace)(JSContextRef ctx, unsigned frames_max);
    struct cn_buf text = {0};
    cn_buf_clear(&vm->place);
    *(void **)&backtrace = dlsym(RTLD_DEFAULT, "JSContextCreateBacktrace");
    JSStringRef string = backtrace ? backtrace(ctx, PLACE_FRAMES_MAX) : NULL;
    if (!string)
        return;
    cn_js_append_string(string, &text);
    JSStringRelease(string);
    char *state = NULL; /* lines "#0 NAME() at URL:LINE" */
    for (char *line = strtok_r((char *)cn_buf_text(&text), "\n", &state); line;
         line = strtok_r(NULL, "\n", &state)) {
        char *name = strchr(line, ' '), *at = strstr(line, "() at ");
        if (!name || !at || at <= name || at[6] == ':')
            continue; /* the engine's own */
        *at = 0;
        cn_buf_printf(&vm->place, "\n    at %s (%s:%d)", name[1] ? name + 1 : "anonymous", at + 6,
                      PLACE_COLUMN);
    }
    cn_buf_fini(&text);
}

static bool should_terminate(JSContextRef ctx, void *context)
{
    struct cn_js_vm *vm = context;
    uint64_t now = cn_clock_mono_ns(cn_clock_system());
    enum cn_js_end end = over_budget(vm, now);
    if (end && !vm->terminated) {
        vm->terminated = true;
        vm->end = end;
        if (vm->tells_place)
            note_place(vm, ctx);
    }
    vm->hurried = false;
    /* The engine asks once for each limit that was set. */
    watch(vm, now);
    return vm->terminated;
}

static JSValueRef do_nothing(JSContextRef ctx, JSObjectRef function, JSObjectRef this_object,
                             size_t argc, const JSValueRef argv[], JSValueRef *exception)
{
    return JSValueMakeUndefined(ctx);
}

/* The heap is past its bound, in the middle of a turn. */
static void on_over(void *data)
{
    struct cn_js_vm *vm = data;
    if (!vm->entered)
        return;
    cn_js_unwant(vm->pulse, atomic_load_explicit(&vm->pulse->running, memory_order_relaxed),
                 CN_JS_END_MEMORY);
}

struct cn_js_vm *cn_js_vm_new(void *data)
{
    CN_ASSERT(!current);
    struct cn_js_vm *vm = CN_NEW(struct cn_js_vm);
    cn_list_init(&vm->contexts);
    cn_list_init(&vm->loans);
    vm->data = data;
    vm->clock = cn_alloc_zero(CN_JS_CLOCK_COUNT * sizeof(*vm->clock));
    vm->clock[CN_JS_TIME] = (double)cn_clock_wall_ms(cn_clock_system());
    vm->mark = cn_alloc_zero(sizeof(*vm->mark));
    /* The engine posts its timers to the thread's default GLib context at creation. */
    vm->glib = g_main_context_new();
    g_main_context_push_thread_default(vm->glib);
    vm->group = JSContextGroupCreate();
    vm->bare = JSGlobalContextCreateInGroup(vm->group, NULL);
    vm->nothing = JSObjectMakeFunctionWithCallback(vm->bare, NULL, do_nothing);
    JSValueProtect(vm->bare, vm->nothing);
    JSContextGroupAddHeapFinalizer(vm->group, on_collected, vm);
    vm->house = CN_NEW(struct cn_js_context);
    *vm->house = (struct cn_js_context){.vm = vm, .ref = vm->bare, .budget_ns = PUMP_NS_MAX};
    vm->watched_turn = UINT64_MAX;
    vm->pulse = &vm->own_pulse;
    vm->alloc = cn_js_alloc_open(0, on_over, vm);
    current = vm;
    watch(vm, cn_clock_mono_ns(cn_clock_system()));
    cn_js_engine_prove(vm);
    watch(vm, cn_clock_mono_ns(cn_clock_system()));
    return vm;
}

void cn_js_vm_free(struct cn_js_vm *vm)
{
    CN_ASSERT(current == vm && cn_list_empty(&vm->contexts) && cn_list_empty(&vm->loans) &&
              !vm->entered);
    cn_free(vm->house);
    JSValueUnprotect(vm->bare, vm->nothing);
    JSGlobalContextRelease(vm->bare);
    JSContextGroupRelease(vm->group);
    g_main_context_pop_thread_default(vm->glib);
    g_main_context_unref(vm->glib);
    cn_free(vm->clock);
    cn_free(vm->mark);
    cn_buf_fini(&vm->place);
    cn_free(vm);
    cn_js_alloc_close();
    current = NULL;
}

struct cn_js_vm *cn_js_vm_current(void)
{
    return current;
}

/* --- entering -------------------------------------------------------------------------------- */

/* What an enter inside a turn has put aside: it is another context's, or for another owner. */
struct cn_js_nested {
    struct cn_js_nested *outer;
    unsigned depth; /* of vm->entered, inside */
    struct cn_js_context *context;
    void *owner;
    double mark;
    double clock[CN_JS_CLOCK_COUNT];
};

struct cn_js_cause cn_js_cause(const struct cn_js_vm *vm)
{
    const double *clock = vm->clock;
    uint64_t request =
        (uint64_t)clock[CN_JS_REQUEST_HIGH] << 32 | (uint32_t)clock[CN_JS_REQUEST_LOW];
    uint32_t hops = (uint32_t)clock[CN_JS_HOPS];
    return (struct cn_js_cause){request, (uint64_t)clock[CN_JS_TRACE], (uint64_t)clock[CN_JS_EVENT],
                                hops >> 1, (hops & 1) != 0};
}

/* V1. The number of the owner is the hooks' to write. */
static void write_clock(struct cn_js_vm *vm, const struct cn_js_cause *cause)
{
    double *clock = vm->clock;
    *vm->mark = 0;
    clock[CN_JS_TRACE] = (double)cause->trace;
    clock[CN_JS_REQUEST_HIGH] = (double)(cause->request >> 32);
    clock[CN_JS_REQUEST_LOW] = (double)(uint32_t)cause->request;
    clock[CN_JS_HOPS] = (double)(2 * cause->depth + (cause->unsampled ? 1 : 0));
    clock[CN_JS_EVENT] = (double)cause->event;
}

/* The CPU time since the last change was for this trace. */
static void count_cost(struct cn_js_vm *vm, double trace)
{
    uint64_t now = cn_clock_ticks();
    if (trace != 0)
        vm->on_turn_cost(vm->data, (uint64_t)trace, now - vm->cost_ticks);
    vm->cost_ticks = now;
}

/* What is allocated from now on is the owner's, or the context's. */
static void set_meter(struct cn_js_vm *vm)
{
    cn_js_alloc_switch(vm->meter ? vm->meter : &vm->inside->meter);
}

static void begin_turn(struct cn_js_context *context)
{
    struct cn_js_vm *vm = context->vm;
    vm->budget_ns = context->budget_ns;
    vm->terminated = vm->ending = false;
    vm->hurried = false; /* the engine may have ended the last turn without asking */
    cn_js_alloc_begin(vm->meter ? vm->meter : &context->meter);
    struct cn_js_pulse *pulse = vm->pulse;
    atomic_store_explicit(&pulse->budget_ns, vm->budget_ns, memory_order_relaxed);
    atomic_store_explicit(&pulse->context, context, memory_order_relaxed);
    atomic_store_explicit(&pulse->running, vm->turn_count + 1, memory_order_release);
    JSLock(context->ref);
    cn_js_engine_lock_held(true);
    vm->clock[CN_JS_TIME] = (double)cn_clock_wall_ms(cn_clock_system());
    write_clock(vm, &vm->cause);
    vm->cost_trace = (double)vm->cause.trace;
    vm->turn_ticks = vm->cost_ticks = cn_clock_ticks();
}

static void begin_nested(struct cn_js_context *context)
{
    struct cn_js_vm *vm = context->vm;
    struct cn_js_nested *nested = CN_NEW(struct cn_js_nested);
    nested->outer = vm->nested;
    nested->depth = vm->entered;
    nested->context = vm->inside;
    nested->owner = vm->owner;
    nested->mark = *vm->mark;
    memcpy(nested->clock, vm->clock, sizeof(nested->clock));
    vm->nested = nested;
    write_clock(vm, &(struct cn_js_cause){0});
    vm->clock[CN_JS_OBJECT] = 0;
    cn_js_switch(vm, NULL);
}

static void end_nested(struct cn_js_vm *vm)
{
    struct cn_js_nested *nested = vm->nested;
    vm->nested = nested->outer;
    vm->inside = nested->context;
    *vm->mark = nested->mark;
    double last = vm->clock[CN_JS_LAST_CONTEXT]; /* V2 */
    memcpy(vm->clock, nested->clock, sizeof(nested->clock));
    vm->clock[CN_JS_LAST_CONTEXT] = last;
    cn_js_switch(vm, nested->owner);
    set_meter(vm);
    cn_free(nested);
}

void cn_js_enter(struct cn_js_context *context)
{
    struct cn_js_vm *vm = context->vm;
    CN_ASSERT(vm == current);
    if (vm->entered++ == 0) {
        if (vm->hooks && !vm->owner)
            vm->hooks->begin(vm->data);
        begin_turn(context);
    } else if (vm->inside != context) {
        begin_nested(context);
    }
    vm->inside = context;
    if (vm->nested)
        set_meter(vm);
}

void cn_js_enter_cause(struct cn_js_context *context, const struct cn_js_cause *cause)
{
    if (!context->vm->entered)
        context->vm->cause = *cause;
    cn_js_enter(context);
}

bool cn_js_enter_for(struct cn_js_context *context, void *owner)
{
    struct cn_js_vm *vm = context->vm;
    if (vm->entered) {
        /* Only its own turns may be nested: another's would end with somebody else's. */
        CN_ASSERT(vm->owner == owner);
    } else if (owner) {
        if (!vm->hooks->enter(owner)) {
            vm->cause = (struct cn_js_cause){0};
            return false;
        }
        vm->owner = owner;
    }
    cn_js_enter(context);
    return true;
}

void cn_js_switch(struct cn_js_vm *vm, void *owner)
{
    CN_ASSERT(vm == current && vm->entered);
    count_cost(vm, vm->cost_trace);
    vm->cost_trace = vm->clock[CN_JS_TRACE];
    if (vm->owner == owner)
        return;
    vm->owner = owner;
    if (vm->hooks)
        vm->hooks->focus(vm->data, owner);
    set_meter(vm);
}

void cn_js_end_turn(struct cn_js_vm *vm)
{
    CN_ASSERT(vm == current && vm->entered);
    vm->ending = vm->hurried = true;
    JSContextGroupSetExecutionTimeLimit(vm->group, 0, should_terminate, vm);
}

/* If it was a microtask that was ended, the engine may keep its exception for the next one who
 * enters: that must not be another event. */
static void absorb_termination(struct cn_js_context *context)
{
    context->vm->budget_ns = 0;
    context->vm->ending = false;
    JSStringRef nothing = JSStringCreateWithUTF8CString("0");
    JSLock(context->ref);
    JSEvaluateScript(context->ref, nothing, NULL, NULL, 0, NULL);
    JSUnlock(context->ref);
    JSStringRelease(nothing);
}

/* The engine has ended the turn, and dropped the microtasks that were left. */
static void settle_termination(struct cn_js_context *context)
{
    struct cn_js_vm *vm = context->vm;
    absorb_termination(context);
    context->cut = true;
    context->cut_ns = cn_clock_mono_ns(cn_clock_system());
    context->cut_turn = vm->turn_count;
    context->end = vm->end;
    context->cut_event = vm->owner ? 0 : cn_js_cause(vm).event;
    if (vm->hooks)
        vm->hooks->terminated(vm->data, vm->owner);
}

enum cn_js_end cn_js_leave(struct cn_js_context *context)
{
    struct cn_js_vm *vm = context->vm;
    CN_ASSERT(vm == current && vm->entered > 0);
    if (vm->entered > 1) {
        if (vm->nested && vm->nested->depth == vm->entered)
            end_nested(vm);
        vm->entered--;
        return vm->terminated ? vm->end : CN_JS_END_NONE;
    }
    /* Microtasks run inside this call; natives they call still count as entered. */
    JSUnlock(context->ref);
    cn_js_engine_lock_held(false);
    atomic_store_explicit(&vm->pulse->running, 0, memory_order_release);
    enum cn_js_end end = vm->terminated ? vm->end : CN_JS_END_NONE; /* V3 */
    if (end)
        settle_termination(context);
    count_cost(vm, vm->cost_trace);
    vm->entered = 0;
    vm->inside = NULL;
    vm->turn_count++;
    cn_js_alloc_end();
    vm->meter = NULL;
    context->ticks += cn_clock_ticks() - vm->turn_ticks;
    vm->cause = (struct cn_js_cause){0};
    write_clock(vm, &vm->cause);
    vm->clock[CN_JS_OBJECT] = 0;
    vm->owner = NULL;
    if (vm->hooks)
        vm->hooks->end(vm->data);
    if (vm->on_turn_end)
        vm->on_turn_end(vm->data);
    return end;
}

void cn_js_unwant(struct cn_js_pulse *pulse, uint64_t turn, enum cn_js_end why)
{
    /* Kept with one added, so that 0 is no turn. The first reason stays. */
    if (turn == 0 || atomic_load_explicit(&pulse->unwanted, memory_order_relaxed) == turn + 1)
        return;
    atomic_store_explicit(&pulse->why, why, memory_order_relaxed);
    atomic_store_explicit(&pulse->unwanted, turn + 1, memory_order_release);
}

const char *cn_js_end_text(enum cn_js_end end, uint64_t cpu_limit_ms)
{
    static _Thread_local char text[96];
    switch (end) {
    case CN_JS_END_MEMORY:
        return "took more memory than there may be";
    case CN_JS_END_WALL:
        return "ran for longer than a script may hold its lane in `cairn dev`";
    case CN_JS_END_STOP:
        return "was still running when it had to make way";
    case CN_JS_END_ASKED:
        return "was ended";
    case CN_JS_END_NONE:
    case CN_JS_END_CPU:
        break;
    }
    snprintf(text, sizeof(text), "used more than its CPU limit of %llu ms",
             (unsigned long long)cpu_limit_ms);
    return text;
}

static struct cn_js_context *any_context(struct cn_js_vm *vm)
{
    if (cn_list_empty(&vm->contexts))
        return NULL;
    return CN_CONTAINER_OF(vm->contexts.next, struct cn_js_context, link);
}

void cn_js_vm_memory(struct cn_js_vm *vm, struct cn_js_memory *memory)
{
    *memory = (struct cn_js_memory){0};
    struct cn_js_context *context = any_context(vm);
    if (!context)
        return;
    cn_js_enter(context);
    JSObjectRef stats = JSGetMemoryUsageStatistics(context->ref);
    memory->heap_bytes = cn_js_to_uint64(context->ref, cn_js_get(context->ref, stats, "heapSize"));
    memory->capacity_bytes =
        cn_js_to_uint64(context->ref, cn_js_get(context->ref, stats, "heapCapacity"));
    cn_js_leave(context);
}

void cn_js_vm_collect(struct cn_js_vm *vm)
{
    CN_ASSERT(vm == current);
    struct cn_js_context *context = any_context(vm);
    if (!context)
        return;
    JSSynchronousGarbageCollectForDebugging(context->ref);
    cn_js_engine_memory_release();
}

void cn_js_vm_pump(struct cn_js_vm *vm)
{
    cn_js_enter(vm->house);
    /* Bounded: a source that is always ready must not hold the lane. */
    for (int i = 0; i < 16 && g_main_context_iteration(vm->glib, FALSE); i++)
        ;
    cn_js_leave(vm->house);
    vm->house->cut = false; /* it was no event's */
    /* A turn that lasted had itself watched closely; those that are short are never asked, and
     * would be for good. */
    if (vm->closely && !vm->hurried && cn_account_level() == CN_ACCOUNT_CALM)
        watch(vm, cn_clock_mono_ns(cn_clock_system()));
}
