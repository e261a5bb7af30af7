/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: for whom and why they run, in what order the layer above is told, and how they end
 * (V1 to V3 of js/vm.h). */
#include "js/vm.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "js/value.h"
#include "test/lib/js_rig.h"

/* --- hooks that write down what they are told ---------------------------------------------------
 */

static char told[512];
static bool gone; /* the owner is: it cannot be entered */

static void note(const char *what, const void *owner)
{
    size_t at = strlen(told);
    snprintf(told + at, sizeof(told) - at, "%s%s%s%s", at ? " " : "", what, owner ? ":" : "",
             owner ? (const char *)owner : "");
}

static void on_begin(void *data)
{
    (void)data;
    note("begin", NULL);
}

static bool on_enter(void *owner)
{
    note(gone ? "gone" : "enter", owner);
    return !gone;
}

static void on_end(void *data)
{
    (void)data;
    note("end", NULL);
}

static void on_focus(void *data, void *owner)
{
    (void)data;
    note("focus", owner ? owner : "-");
}

static void on_terminated(void *data, void *culprit)
{
    (void)data;
    note("terminated", culprit);
}

static void on_hold(void *owner)
{
    note("hold", owner);
}

static void on_unhold(void *owner)
{
    note("unhold", owner);
}

static const struct cn_js_owner_hooks hooks = {on_begin,      on_enter, on_end,   on_focus,
                                               on_terminated, on_hold,  on_unhold};

static void on_turn_end(void *data)
{
    (void)data;
    note("turn", NULL);
}

static uint64_t costs[4];
static unsigned cost_count;

static void on_cost(void *data, uint64_t trace, uint64_t ticks)
{
    (void)data, (void)ticks;
    if (cost_count < 4)
        costs[cost_count++] = trace;
}

static struct js_rig rig;

static void begin(void)
{
    js_rig_open(&rig);
    rig.vm->hooks = &hooks;
    rig.vm->on_turn_end = on_turn_end;
    rig.vm->on_turn_cost = on_cost;
    gone = false;
    told[0] = '\0';
}

static void end(void)
{
    rig.vm->hooks = NULL;
    rig.vm->on_turn_end = NULL;
    js_rig_close(&rig);
}

#define CHECK_TOLD(want)       \
    do {                       \
        CHECK_STR(want, told); \
        told[0] = '\0';        \
    } while (0)

static void evaluate(const char *source)
{
    struct cn_err err;
    if (cn_js_evaluate(rig.context, source, "test", NULL, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static int count_done(void)
{
    JSContextRef ctx = rig.context->ref;
    return cn_js_to_int32(ctx, cn_js_get(ctx, JSContextGetGlobalObject(ctx), "done"));
}

TEST(js_vm, a_turn_is_told_from_its_beginning_to_the_end_of_its_microtasks)
{
    begin();
    cn_js_enter(rig.context);
    CHECK_TOLD("begin");
    CHECK_INT(rig.vm->turn_count + 1, atomic_load(&rig.vm->pulse->running));
    CHECK(atomic_load(&rig.vm->pulse->context) == rig.context);
    evaluate("globalThis.done = 0; Promise.resolve().then(() => done++).then(() => done++)");
    cn_js_enter(rig.context); /* inside of a turn: no other one */
    CHECK_INT(0, count_done());
    CHECK_INT(CN_JS_END_NONE, cn_js_leave(rig.context));
    CHECK_TOLD("");
    uint64_t turns = rig.vm->turn_count;
    CHECK_INT(CN_JS_END_NONE, cn_js_leave(rig.context));
    CHECK_TOLD("end turn");
    CHECK_INT(turns + 1, rig.vm->turn_count);
    CHECK_INT(0, atomic_load(&rig.vm->pulse->running));
    CHECK_STR("2", js_rig_run(&rig, "done"));
    end();
}

/* --- owners and causes --------------------------------------------------------------------------
 */

TEST(js_vm, V1_the_clock_says_for_whom_and_why)
{
    begin();
    struct cn_js_cause cause = {.request = 0x123456789abcdef0,
                                .trace = (uint64_t)1 << 52,
                                .unsampled = true,
                                .event = 77,
                                .depth = 5};
    *rig.vm->mark = 9;
    double wall = (double)cn_clock_wall_ms(cn_clock_system());
    cn_js_enter_cause(rig.context, &cause);
    CHECK(*rig.vm->mark == 0);
    CHECK(rig.vm->clock[CN_JS_TIME] >= wall);
    CHECK(rig.vm->clock[CN_JS_REQUEST_HIGH] == 0x12345678 &&
          rig.vm->clock[CN_JS_REQUEST_LOW] == 0x9abcdef0);
    CHECK(rig.vm->clock[CN_JS_HOPS] == 11); /* twice the depth, and one */
    struct cn_js_cause now = cn_js_cause(rig.vm);
    CHECK(now.request == cause.request && now.trace == cause.trace && now.unsampled &&
          now.event == 77 && now.depth == 5);
    /* Inside, a cause does not change: a turn has one. */
    struct cn_js_cause other = {.request = 1};
    cn_js_enter_cause(rig.context, &other);
    CHECK(cn_js_cause(rig.vm).request == cause.request);
    cn_js_leave(rig.context);
    cn_js_leave(rig.context);
    now = cn_js_cause(rig.vm);
    CHECK(!now.request && !now.trace && !now.event && !now.depth && !now.unsampled);
    cn_js_enter(rig.context); /* and the next turn has none of it */
    CHECK(!cn_js_cause(rig.vm).request);
    cn_js_leave(rig.context);
    end();
}

TEST(js_vm, a_turn_for_an_owner_is_not_begun_when_he_is_gone)
{
    begin();
    rig.vm->cause = (struct cn_js_cause){.request = 5};
    gone = true;
    CHECK(!cn_js_enter_for(rig.context, "a"));
    CHECK_TOLD("gone:a");
    CHECK(!rig.vm->entered && !rig.vm->owner);
    CHECK(!rig.vm->cause.request); /* or the next turn would have it */
    gone = false;
    CHECK(cn_js_enter_for(rig.context, "a"));
    CHECK_STR("a", rig.vm->owner);
    CHECK(cn_js_enter_for(rig.context, rig.vm->owner)); /* his own may be nested */
    cn_js_leave(rig.context);
    cn_js_leave(rig.context);
    CHECK_TOLD("enter:a end turn");
    CHECK(!rig.vm->owner);
    CHECK(cn_js_enter_for(rig.context, NULL)); /* for nobody */
    cn_js_leave(rig.context);
    CHECK_TOLD("begin end turn");
    end();
}

static void enter_for_another(void *data)
{
    (void)cn_js_enter_for(rig.context, data);
}

TEST(js_vm, a_turn_of_one_owner_is_not_entered_for_another)
{
    begin();
    CHECK(cn_js_enter_for(rig.context, "a"));
    CHECK_ASSERTS("vm->owner == owner", enter_for_another, "b");
    cn_js_leave(rig.context);
    end();
}

TEST(js_vm, V1_code_of_another_owner_goes_on_where_it_says_so)
{
    begin();
    CHECK(cn_js_enter_for(rig.context, "a"));
    cn_js_switch(rig.vm, "b");
    CHECK_STR("b", rig.vm->owner);
    cn_js_switch(rig.vm, rig.vm->owner); /* nothing changes */
    cn_js_switch(rig.vm, NULL);
    cn_js_leave(rig.context);
    CHECK_TOLD("enter:a focus:b focus:- end turn");
    end();
}

/* Another context's function, called inside of a turn, is nobody's, and what was comes back. */
TEST(js_vm, a_context_entered_inside_of_anothers_turn_puts_all_aside_and_back)
{
    begin();
    struct cn_js_context *inner = cn_js_context_new(rig.vm, NULL);
    struct cn_js_cause cause = {.request = 42, .event = 3};
    rig.vm->cause = cause;
    CHECK(cn_js_enter_for(rig.context, "a"));
    *rig.vm->mark = 12;
    rig.vm->clock[CN_JS_OBJECT] = 6;
    rig.vm->clock[CN_JS_LAST_CONTEXT] = 100;
    told[0] = '\0';
    cn_js_enter(inner);
    CHECK(rig.vm->inside == inner && !rig.vm->owner);
    CHECK(!cn_js_cause(rig.vm).request && rig.vm->clock[CN_JS_OBJECT] == 0 && *rig.vm->mark == 0);
    rig.vm->clock[CN_JS_LAST_CONTEXT] = 105; /* V2: five were given inside */
    cn_js_enter(inner);                      /* the same once more: nothing to put aside */
    cn_js_leave(inner);
    CHECK(rig.vm->inside == inner);
    cn_js_leave(inner);
    CHECK(rig.vm->inside == rig.context);
    CHECK_STR("a", rig.vm->owner);
    CHECK(cn_js_cause(rig.vm).request == 42 && cn_js_cause(rig.vm).event == 3);
    CHECK(*rig.vm->mark == 12 && rig.vm->clock[CN_JS_OBJECT] == 6);
    CHECK(rig.vm->clock[CN_JS_LAST_CONTEXT] == 105); /* V2: never again */
    cn_js_leave(rig.context);
    CHECK_TOLD("focus:- focus:a end turn");
    cn_js_context_free(inner);
    end();
}

/* CPU time goes to the trace whose code ran. */
TEST(js_vm, what_a_turn_costs_is_told_by_trace)
{
    begin();
    cost_count = 0;
    struct cn_js_cause cause = {.trace = 7};
    cn_js_enter_cause(rig.context, &cause);
    rig.vm->clock[CN_JS_TRACE] = 8; /* as the prelude does before it calls the guest */
    cn_js_switch(rig.vm, "b");
    rig.vm->clock[CN_JS_TRACE] = 0;
    cn_js_switch(rig.vm, NULL);
    cn_js_leave(rig.context);
    CHECK_INT(2, cost_count); /* not for what has none */
    CHECK(costs[0] == 7 && costs[1] == 8);
    end();
}

/* --- the end of a turn ---------------------------------------------------------------------------
 */

#define LOOP "{ const last = Date.now() + 30000; while (Date.now() < last); } 'whole'"

TEST(js_vm, V3_a_turn_past_its_budget_ends_and_the_vm_lives_on)
{
    begin();
    enum cn_js_end ended;
    rig.context->budget_ns = 20000000;
    js_rig_evaluate(rig.context, LOOP, &ended);
    CHECK_INT(CN_JS_END_CPU, ended);
    CHECK_TOLD("begin terminated end turn");
    CHECK(rig.context->cut && rig.context->end == CN_JS_END_CPU);
    rig.context->cut = false;
    CHECK_STR("3", js_rig_evaluate(rig.context, "1 + 2", &ended));
    CHECK_INT(CN_JS_END_NONE, ended);
    CHECK(!rig.context->cut);
    end();
}

static void *unwant_soon(void *data)
{
    struct cn_js_pulse *pulse = data;
    uint64_t turn;
    while (!(turn = atomic_load(&pulse->running)))
        sched_yield();
    cn_js_unwant(pulse, turn, CN_JS_END_WALL);
    cn_js_unwant(pulse, turn, CN_JS_END_STOP); /* the first reason stays */
    return NULL;
}

/* From another thread, as a watchdog does. */
TEST(js_vm, V3_a_turn_that_is_not_wanted_any_more_ends)
{
    begin();
    pthread_t thread;
    enum cn_js_end ended;
    CHECK_INT(0, pthread_create(&thread, NULL, unwant_soon, rig.vm->pulse));
    CHECK(cn_js_enter_for(rig.context, "a"));
    struct cn_err err;
    CHECK(cn_js_evaluate(rig.context, LOOP, "test", NULL, &err) < 0);
    ended = cn_js_leave(rig.context);
    pthread_join(thread, NULL);
    CHECK_INT(CN_JS_END_WALL, ended);
    CHECK_TOLD("enter:a terminated:a end turn"); /* whose code it was */
    CHECK_INT(0, rig.context->cut_event);
    /* The number of a turn that has ended is no other's, and 0 is no turn. */
    cn_js_unwant(rig.vm->pulse, rig.vm->turn_count, CN_JS_END_STOP);
    cn_js_unwant(rig.vm->pulse, 0, CN_JS_END_STOP);
    CHECK_STR("3", js_rig_evaluate(rig.context, "for (let i = 0; i < 1e6; i++); 3", &ended));
    CHECK_INT(CN_JS_END_NONE, ended);
    end();
}

TEST(js_vm, the_event_whose_code_was_ended_is_remembered)
{
    begin();
    struct cn_js_cause cause = {.event = 1234};
    rig.context->budget_ns = 20000000;
    cn_js_enter_cause(rig.context, &cause);
    struct cn_err err;
    CHECK(cn_js_evaluate(rig.context, LOOP, "test", NULL, &err) < 0);
    CHECK_INT(CN_JS_END_CPU, cn_js_leave(rig.context));
    CHECK(rig.context->cut && rig.context->cut_event == 1234);
    end();
}

/* A budget is of CPU time: one who waits has used none. */
TEST(js_vm, a_turn_that_only_waits_is_not_ended)
{
    begin();
    enum cn_js_end ended;
    rig.context->budget_ns = 50000000;
    /* Shared memory is the one thing on which a script can wait here, without the prelude. */
    CHECK_STR("timed-out", js_rig_evaluate(rig.context,
                                           "Atomics.wait(new Int32Array(new "
                                           "SharedArrayBuffer(4)), 0, 0, 300)",
                                           &ended));
    CHECK_INT(CN_JS_END_NONE, ended);
    end();
}

TEST(js_vm, why_a_turn_was_ended_is_said)
{
    static const struct {
        enum cn_js_end end;
        const char *part;
    } texts[] = {
        {CN_JS_END_CPU, "50 ms"}, {CN_JS_END_MEMORY, "memory"}, {CN_JS_END_WALL, ""},
        {CN_JS_END_STOP, ""},     {CN_JS_END_ASKED, ""},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = cn_js_end_text(texts[i].end, 50);
        CHECK(text && *text && strstr(text, texts[i].part));
        for (size_t k = 0; k < i; k++) {
            char before[128];
            snprintf(before, sizeof(before), "%s", cn_js_end_text(texts[k].end, 50));
            CHECK(strcmp(before, cn_js_end_text(texts[i].end, 50)) != 0 ||
                  texts[i].end == CN_JS_END_ASKED || texts[k].end == CN_JS_END_ASKED);
        }
    }
}

/* --- the rest -----------------------------------------------------------------------------------
 */

TEST(js_vm, memory_is_what_the_scripts_hold)
{
    begin();
    struct cn_js_memory before, with, after;
    js_rig_run(&rig, "0");
    cn_js_vm_collect(rig.vm);
    cn_js_vm_memory(rig.vm, &before);
    js_rig_run(&rig, "globalThis.kept = Array.from({ length: 200000 }, (_, i) => ({ i }))");
    cn_js_vm_memory(rig.vm, &with);
    CHECK(with.heap_bytes > before.heap_bytes + (3u << 20));
    CHECK(with.capacity_bytes >= with.heap_bytes / 2);
    js_rig_run(&rig, "kept = null");
    js_rig_run(&rig, "(function deep(n) { return n ? [deep(n - 1)] : 0; })(200)");
    cn_js_vm_collect(rig.vm);
    cn_js_vm_memory(rig.vm, &after);
    CHECK(after.heap_bytes < with.heap_bytes - (3u << 20));
    cn_js_context_free(rig.context);
    cn_js_vm_memory(rig.vm, &after); /* without a context there is nothing to ask */
    CHECK_INT(0, after.heap_bytes);
    rig.context = cn_js_context_new(rig.vm, NULL);
    end();
}

/* What the engine has put off runs as a turn of nobody's; one that is ended there cuts no event. */
TEST(js_vm, what_the_engine_put_off_is_nobodys)
{
    begin();
    cn_js_vm_pump(rig.vm);
    CHECK_TOLD("begin end turn");
    CHECK(!rig.vm->house->cut);
    end();
}

static void free_with_context(void *data)
{
    cn_js_vm_free(((struct js_rig *)data)->vm);
}

static void second_vm(void *data)
{
    (void)data;
    cn_js_vm_new(NULL);
}

static void leave_twice(void *data)
{
    struct js_rig *own = data;
    cn_js_enter(own->context);
    cn_js_leave(own->context);
    cn_js_leave(own->context);
}

TEST(js_vm, mistakes_of_ours_are_found)
{
    begin();
    CHECK(cn_js_vm_current() == rig.vm);
    CHECK_ASSERTS("cn_list_empty(&vm->contexts)", free_with_context, &rig);
    CHECK_ASSERTS("!current", second_vm, NULL);
    CHECK_ASSERTS("vm->entered > 0", leave_twice, &rig);
    end();
    CHECK(!cn_js_vm_current());
}
