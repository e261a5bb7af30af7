/* SPDX-License-Identifier: Apache-2.0 */
/* Promises that C settles, and work on other threads: W1 to W5 of js/work.h. */
#include "js/work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/loop.h"
#include "base/mem.h"
#include "js/engine/alloc.h"
#include "js/value.h"
#include "test/lib/js_rig.h"
#include "test/lib/threadless.h"

static struct js_rig rig;
static uv_loop_t loop;

static void begin(void)
{
    js_rig_open(&rig);
    CHECK_INT(0, cn_loop_init(&loop, NULL));
}

static void end(void)
{
    CHECK_INT(0, uv_loop_close(&loop));
    js_rig_close(&rig);
}

/* Puts the promise where a script can see how it ended: globalThis[name] = "ok:..." or "no:...". */
static void watch(JSValueRef promise, const char *name)
{
    JSContextRef ctx = rig.context->ref;
    cn_js_set(ctx, JSContextGetGlobalObject(ctx), "promise", promise);
    struct cn_err err;
    char source[256];
    snprintf(source, sizeof(source),
             "promise.then((v) => { globalThis.%s = 'ok:' + v; }, (e) => { globalThis.%s = 'no:' + "
             "e; }); promise = null",
             name, name);
    CHECK_INT(0, cn_js_evaluate(rig.context, source, "test", NULL, &err));
}

static const char *outcome(const char *name)
{
    char source[64];
    snprintf(source, sizeof(source), "String(globalThis.%s)", name);
    return js_rig_run(&rig, source);
}

/* --- deferred ----------------------------------------------------------------------------------
 */

TEST(js_deferred, of_a_turn_that_is_being_ended_is_no_assertion)
{
    begin();
    struct cn_js_deferred deferred = {0};
    struct cn_err err;
    cn_js_enter(rig.context);
    cn_js_end_turn(rig.vm);
    CHECK_INT(CN_EJS, cn_js_evaluate(rig.context, "for (;;);", "test", NULL, &err));
    JSValueRef promise = cn_js_deferred_init(rig.context, &deferred);
    CHECK(promise && (JSValueIsUndefined(rig.context->ref, promise) || deferred.resolve.context));
    cn_js_leave(rig.context);
    cn_js_deferred_resolve(&deferred, JSValueMakeNumber(rig.context->ref, 1));
    CHECK(!deferred.resolve.context && !deferred.reject.context);
    CHECK_STR("3", js_rig_run(&rig, "1 + 2"));
    end();
}

TEST(js_deferred, is_settled_once_and_empty_then)
{
    begin();
    struct cn_js_deferred good = {0}, bad = {0}, left = {0};
    cn_js_enter(rig.context);
    watch(cn_js_deferred_init(rig.context, &good), "a");
    watch(cn_js_deferred_init(rig.context, &bad), "b");
    watch(cn_js_deferred_init(rig.context, &left), "c");
    JSValueRef text = cn_js_text_z(rig.context->ref, "text");
    JSValueProtect(rig.context->ref, text);
    cn_js_leave(rig.context);
    CHECK_STR("undefined", outcome("a"));
    CHECK_INT(6, rig.context->waiting); /* something will come: worker/hung.h */
    cn_js_deferred_resolve(&good, text);
    cn_js_deferred_reject(&bad, text); /* each a turn of its own: the reactions have run */
    CHECK_STR("ok:text", outcome("a"));
    CHECK_STR("no:text", outcome("b"));
    CHECK(!good.resolve.context && !good.reject.context && !bad.resolve.context);
    cn_js_deferred_reject(&good, text); /* nothing is left to settle */
    cn_js_deferred_resolve(&bad, text);
    CHECK_STR("ok:text", outcome("a"));
    CHECK_STR("no:text", outcome("b"));
    cn_js_deferred_drop(&left);
    cn_js_deferred_drop(&left);
    CHECK_STR("undefined", outcome("c"));
    CHECK_INT(0, rig.context->waiting);
    cn_js_context_check(rig.context);
    JSValueUnprotect(rig.context->ref, text);
    end();
}

/* --- work --------------------------------------------------------------------------------------
 */

struct job {
    struct cn_js_work work;
    pthread_t thread; /* where it ran */
    atomic_bool *go;  /* it waits for this */
    bool fails;
};

static atomic_uint ran, finished, finished_without;
static pthread_t last_thread;

static void run(struct cn_js_work *work)
{
    struct job *job = (struct job *)work;
    job->thread = pthread_self();
    while (job->go && !atomic_load(job->go))
        uv_sleep(1);
    atomic_fetch_add(&ran, 1);
}

static JSValueRef finish(struct cn_js_work *work, JSContextRef ctx, JSValueRef *exception)
{
    struct job *job = (struct job *)work;
    last_thread = job->thread;
    if (!ctx) {
        CHECK(!exception);
        atomic_fetch_add(&finished_without, 1);
        return NULL;
    }
    atomic_fetch_add(&finished, 1);
    CHECK(cn_js_vm_current()->entered);
    if (job->fails)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "no luck");
    return cn_js_text_z(ctx, "done");
}

static JSValueRef start(bool slow, bool fails, atomic_bool *go)
{
    struct job *job = CN_NEW(struct job);
    job->work.slow = slow;
    job->work.run = run;
    job->work.finish = finish;
    job->fails = fails;
    job->go = go;
    return cn_js_work_start(rig.context, &loop, &job->work);
}

static void start_as(const char *name, bool slow, bool fails, atomic_bool *go)
{
    cn_js_enter(rig.context);
    watch(start(slow, fails, go), name);
    cn_js_leave(rig.context);
}

static void reset_counts(void)
{
    atomic_store(&ran, 0);
    atomic_store(&finished, 0);
    atomic_store(&finished_without, 0);
}

TEST(js_work, runs_elsewhere_and_its_result_is_made_on_the_lane)
{
    for (int slow = 0; slow < 2; slow++) {
        begin();
        reset_counts();
        start_as("a", slow, false, NULL);
        start_as("b", slow, true, NULL);
        CHECK_STR("undefined", outcome("a"));
        uv_run(&loop, UV_RUN_DEFAULT);
        CHECK_STR("ok:done", outcome("a"));
        CHECK_STR("no:TypeError: no luck", outcome("b"));
        CHECK(!pthread_equal(last_thread, pthread_self()));
        CHECK_INT(2, atomic_load(&finished));
        CHECK_INT(0, rig.context->waiting);
        end();
    }
}

/* One that was given and makes so many bytes. */
static void start_large(const char *name, size_t given, size_t made, atomic_bool *go)
{
    struct job *job = CN_NEW(struct job);
    job->work.run = run;
    job->work.finish = finish;
    job->work.given = given;
    job->work.made = made;
    job->go = go;
    cn_js_enter(rig.context);
    watch(cn_js_work_start(rig.context, &loop, &job->work), name);
    cn_js_leave(rig.context);
}

#define MB ((size_t)1 << 20)

TEST(js_work, what_is_made_is_reserved_as_it_runs_and_the_rest_waits)
{
    begin();
    reset_counts();
    atomic_bool go = false;
    uint64_t before = cn_js_alloc_bytes();
    for (unsigned i = 0; i < 8; i++) { /* W5 */
        char name[8];
        snprintf(name, sizeof(name), "w%u", i);
        start_large(name, 0, 12 * MB, &go);
    }
    start_large("large", 0, 64 * MB, &go);
    CHECK_INT(24 * MB, rig.context->work_bytes);
    CHECK(cn_js_alloc_bytes() - before >= 24 * MB && cn_js_alloc_bytes() - before < 30 * MB);
    atomic_store(&go, true);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(9, atomic_load(&finished));
    CHECK_STR("ok:done", outcome("w7"));
    CHECK_STR("ok:done", outcome("large"));
    CHECK_INT(0, rig.context->work_bytes);
    CHECK(cn_js_alloc_bytes() - before < 6 * MB);
    end();
}

TEST(js_work, what_there_is_no_memory_for_is_a_RangeError_and_does_not_run)
{
    begin();
    reset_counts();
    size_t bound = cn_js_alloc_bound(cn_js_alloc_bytes() + 30 * MB);
    atomic_bool go = false;
    start_large("first", 20 * MB, 0, &go); /* W4, M6 */
    start_large("second", 20 * MB, 0, NULL);
    start_large("third", 0, 20 * MB, NULL);
    cn_js_vm_collect(rig.vm);
    CHECK_STR("no:RangeError: There is no memory for this now.", outcome("second"));
    CHECK_STR("no:RangeError: There is no memory for this now.", outcome("third"));
    atomic_store(&go, true);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_STR("ok:done", outcome("first"));
    start_large("again", 20 * MB, 0, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_STR("ok:done", outcome("again"));
    CHECK_INT(2, atomic_load(&ran));
    (void)cn_js_alloc_bound(bound);
    end();
}

/* W5: those that wait go with their context, and what runs meanwhile finds it gone. */
TEST(js_work, that_waits_is_dropped_with_its_context)
{
    begin();
    reset_counts();
    atomic_bool go = false;
    for (unsigned i = 0; i < 4; i++)
        start_large("a", 0, 20 * MB, &go);
    cn_js_context_free(rig.context);
    CHECK_INT(3, atomic_load(&finished_without));
    atomic_store(&go, true);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(4, atomic_load(&finished_without));
    CHECK_INT(1, atomic_load(&ran));
    rig.context = cn_js_context_new(rig.vm, NULL);
    end();
}

/* The context is gone when the work is done: released, and nothing of JavaScript is touched. */
TEST(js_work, of_a_context_that_has_gone_is_released)
{
    for (int slow = 0; slow < 2; slow++) {
        begin();
        reset_counts();
        atomic_bool go = false;
        start_as("a", slow, false, &go);
        cn_js_context_free(rig.context);
        atomic_store(&go, true);
        uv_run(&loop, UV_RUN_DEFAULT);
        CHECK(atomic_load(&ran) == 1 || (slow && atomic_load(&ran) == 0)); /* W3 */
        CHECK_INT(0, atomic_load(&finished));
        CHECK_INT(1, atomic_load(&finished_without));
        rig.context = cn_js_context_new(rig.vm, NULL);
        end();
    }
}

TEST(js_work, slow_work_without_a_thread_is_a_RangeError_and_does_not_run)
{
    begin();
    unsigned before;
    /* A thread that is about to end, of the test before this one, may take the work. */
    do {
        uv_run(&loop, UV_RUN_DEFAULT);
        before = atomic_load(&ran);
        threadless = true;
        start_as("a", true, false, NULL);
        threadless = false;
        uv_run(&loop, UV_RUN_DEFAULT);
    } while (strncmp(outcome("a"), "ok:", 3) == 0);
    CHECK_STR("RangeError", js_rig_run(&rig, "globalThis.a.slice(3, 13)"));
    CHECK_INT(before, atomic_load(&ran));
    start_as("b", true, false, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(before + 1, atomic_load(&ran));
    end();
}

/* W1: more slow work than libuv has threads, and short work is done all the same. */
TEST(js_work, W1_slow_work_does_not_keep_short_work_waiting)
{
    begin();
    reset_counts();
    atomic_bool go = false;
    char name[16];
    enum { SLOW = 20 };
    for (int i = 0; i < SLOW; i++) {
        snprintf(name, sizeof(name), "slow%d", i);
        start_as(name, true, false, &go);
    }
    start_as("quick", false, false, NULL);
    while (strcmp(outcome("quick"), "ok:done") != 0)
        uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(1, atomic_load(&ran)); /* of the slow ones none, they wait for `go` */
    atomic_store(&go, true);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(SLOW + 1, atomic_load(&finished));
    for (int i = 0; i < SLOW; i++) {
        snprintf(name, sizeof(name), "slow%d", i);
        CHECK_STR("ok:done", outcome(name));
    }
    end();
}

/* W2: past the bound a promise is rejected at once, and the work never runs. */
TEST(js_work, W2_more_than_may_wait_are_rejected)
{
    begin();
    reset_counts();
    atomic_bool go = false;
    /* As many run as there are threads; which have not taken one yet is not known. */
    enum { COUNT = CN_JS_SLOW_PENDING_MAX + CN_JS_SLOW_THREADS + 5 };
    cn_js_enter(rig.context);
    struct cn_err err;
    CHECK_INT(0, cn_js_evaluate(rig.context, "globalThis.good = 0; globalThis.bad = []", "test",
                                NULL, &err));
    for (int i = 0; i < COUNT; i++) {
        cn_js_set(rig.context->ref, JSContextGetGlobalObject(rig.context->ref), "promise",
                  start(true, false, &go));
        CHECK_INT(0, cn_js_evaluate(rig.context,
                                    "promise.then(() => good++, (e) => bad.push(String(e)))",
                                    "test", NULL, &err));
    }
    cn_js_leave(rig.context);
    unsigned refused = atomic_load(&finished_without);
    CHECK(refused >= 5 && refused <= 5 + CN_JS_SLOW_THREADS);
    CHECK_STR("true", js_rig_run(&rig, "bad.every((e) => e.startsWith('RangeError: Too many'))"));
    atomic_store(&go, true);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(COUNT - refused, atomic_load(&finished));
    CHECK_INT(COUNT - refused, atomic_load(&ran));
    char want[32];
    snprintf(want, sizeof(want), "%d,%u", (int)(COUNT - refused), refused);
    CHECK_STR(want, js_rig_run(&rig, "[good, bad.length].join()"));
    /* And there is room again. */
    start_as("again", true, false, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_STR("ok:done", outcome("again"));
    end();
}

static atomic_uint begun;

static void run_until_given_up(struct cn_js_work *work)
{
    atomic_fetch_add(&begun, 1);
    while (!atomic_load(&work->given_up))
        uv_sleep(1);
    atomic_fetch_add(&ran, 1);
}

/* W3: what runs is told, what waits is never begun, and another context's work is left alone. */
TEST(js_work, W3_slow_work_goes_with_its_context)
{
    begin();
    reset_counts();
    enum { COUNT = CN_JS_SLOW_THREADS + 3 };
    struct cn_js_context *gone = cn_js_context_new(rig.vm, NULL);
    for (int i = 0; i < COUNT; i++) {
        struct job *job = CN_NEW(struct job);
        job->work.slow = true;
        job->work.run = run_until_given_up;
        job->work.finish = finish;
        cn_js_enter(gone);
        (void)cn_js_work_start(gone, &loop, &job->work);
        cn_js_leave(gone);
    }
    start_as("other", true, false, NULL); /* behind them */
    while (atomic_load(&begun) < CN_JS_SLOW_THREADS)
        uv_sleep(1);
    cn_js_context_free(gone);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(CN_JS_SLOW_THREADS, atomic_load(&begun));
    CHECK_INT(COUNT, atomic_load(&finished_without));
    CHECK_STR("ok:done", outcome("other"));
    CHECK_INT(CN_JS_SLOW_THREADS + 1, atomic_load(&ran));
    end();
}
