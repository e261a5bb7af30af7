/* SPDX-License-Identifier: Apache-2.0 */
/* Whose memory it is that the engine takes: invariants M1 to M7 of js/engine/alloc.h. */
#include "js/engine/alloc.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/account.h"
#include "base/mem.h"
#include "js/context.h"
#include "js/value.h"
#include "test/lib/test.h"

#define MB ((uint64_t)1 << 20)

static struct cn_js_vm *vm;

static void begin(void)
{
    static bool set_up;
    struct cn_err err;
    if (!set_up)
        CHECK_INT(0, cn_js_setup(&err));
    set_up = true;
    vm = cn_js_vm_new(NULL);
}

/* Evaluates as a turn of `meter` (NULL: the context's); the result as text. */
static const char *run(struct cn_js_context *context, struct cn_js_meter *meter, const char *source)
{
    static char text[256];
    struct cn_err err = {0};
    JSValueRef value;
    vm->meter = meter;
    cn_js_enter(context);
    int rc = cn_js_evaluate(context, source, "test", &value, &err);
    if (rc == 0) {
        JSStringRef string = JSValueToStringCopy(context->ref, value, NULL);
        JSStringGetUTF8CString(string, text, sizeof(text));
        JSStringRelease(string);
    } else {
        snprintf(text, sizeof(text), "%.200s", err.text);
    }
    cn_js_leave(context);
    return text;
}

static bool about(uint64_t want, uint64_t got)
{
    return got > want - want / 4 - MB && got < want + want / 2 + MB;
}

TEST(js_alloc, what_a_turn_keeps_is_on_its_meter_and_goes_when_it_is_freed)
{
    static const char *const keepers[] = {
        "globalThis.kept = Array.from({length: 64}, () => new Uint8Array(1 << 20))",
        "globalThis.kept = Array.from({length: 64 * 256}, (_, i) => new Uint8Array(4096).fill(i))",
        "globalThis.kept = Array.from({length: 64}, (_, i) => 'x'.repeat((1 << 20) - 20) + i)"
        ".map((s) => (s.charCodeAt(3), s))",
        /* 300,000 strings of 200 bytes */
        "globalThis.kept = Array.from({length: 300000}, (_, i) => ('y'.repeat(190) + "
        "String(1e9 + i)).replace('z', ''))",
        "globalThis.kept = new Array(8 << 20).fill(1.5)",
        /* objects of 64 bytes */
        "globalThis.kept = Array.from({length: 850000}, (_, i) => ({a: i, b: {c: i + 0.5, d: 1}}))",
    };
    for (size_t i = 0; i < sizeof(keepers) / sizeof(keepers[0]); i++) {
        begin();
        struct cn_js_context *a = cn_js_context_new(vm, NULL), *b = cn_js_context_new(vm, NULL);
        run(b, NULL,
            "globalThis.make = () => { for (let i = 0; i < 400; i++) new Uint8Array(1 << 20); }");
        run(a, NULL, keepers[i]);
        run(b, NULL, "make()"); /* another, who allocates far more and keeps nothing */
        run(b, NULL, "0");
        cn_js_vm_collect(vm);
        uint64_t kept = cn_js_meter_bytes(&a->meter), other = cn_js_meter_bytes(&b->meter);
        if (!about(64 * MB, kept) || other > 6 * MB)
            test_fail(__FILE__, __LINE__, "case %zu: %llu bytes kept, other %llu", i,
                      (unsigned long long)kept, (unsigned long long)other);
        run(a, NULL, "kept = null");
        /* The collector takes what the stack still has for a reference: other calls write over it.
         */
        for (unsigned tries = 0; tries < 20 && cn_js_meter_bytes(&a->meter) >= 8 * MB; tries++) {
            run(b, NULL, "(function deep(n) { return n ? [deep(n - 1)] : 0; })(200)");
            cn_js_vm_collect(vm);
        }
        CHECK(cn_js_meter_bytes(&a->meter) < 8 * MB); /* M1 */
        cn_js_context_free(a);
        cn_js_context_free(b);
        cn_js_vm_free(vm);
    }
}

/* In a function of its own: the collector looks at what the stack still has. */
__attribute__((noinline)) static void lend(struct cn_js_context *a)
{
    vm->meter = NULL;
    cn_js_enter(a);
    JSValueRef kept = cn_js_get(a->ref, JSContextGetGlobalObject(a->ref), "kept");
    for (unsigned i = 0; i < 64; i++) {
        void *bytes = cn_alloc_zero(MB);
        JSValueRef lent = i % 2 ? cn_js_uint8array_take(a->ref, bytes, MB)
                                : cn_js_arraybuffer_take(a->ref, bytes, MB);
        JSObjectSetPropertyAtIndex(a->ref, cn_js_object(a->ref, kept), i, lent, NULL);
    }
    cn_js_leave(a);
}

TEST(js_alloc, bytes_that_a_native_has_lent_are_on_the_meter_of_who_holds_them)
{
    begin();
    struct cn_js_context *a = cn_js_context_new(vm, NULL);
    run(a, NULL, "globalThis.kept = []");
    lend(a); /* M5 */
    cn_js_vm_collect(vm);
    CHECK(about(64 * MB, cn_js_meter_bytes(&a->meter)));
    CHECK(about(64 * MB, cn_js_alloc_bytes()));
    run(a, NULL, "for (let i = 0; i < 64; i++) kept[i] = null");
    run(a, NULL, "0");
    cn_js_vm_collect(vm);
    CHECK(cn_js_meter_bytes(&a->meter) < 6 * MB);
    cn_js_context_free(a);
    cn_js_vm_free(vm);
}

TEST(js_alloc, what_an_ended_meter_left_is_its_parents)
{
    begin();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    struct cn_js_meter objects[3] = {
        {0, &context->meter}, {0, &context->meter}, {0, &context->meter}};
    for (int i = 0; i < 3; i++) {
        char text[96];
        snprintf(text, sizeof(text), "globalThis.kept%d = new Uint8Array(%d << 20); 0", i,
                 10 * (i + 1));
        run(context, &objects[i], text);
        uint64_t got = cn_js_meter_bytes(&objects[i]);
        if (!about(10 * MB * (uint64_t)(i + 1), got))
            test_fail(__FILE__, __LINE__, "object %d: %llu", i, (unsigned long long)got);
    }
    CHECK(cn_js_meter_bytes(&context->meter) < 4 * MB);
    cn_js_meter_end(&objects[1]);
    CHECK_INT(0, cn_js_meter_bytes(&objects[1]));
    CHECK(about(20 * MB, cn_js_meter_bytes(&context->meter)));
    run(context, NULL, "kept0 = kept1 = kept2 = null");
    run(context, NULL, "0");
    cn_js_vm_collect(vm);
    CHECK(cn_js_meter_bytes(&context->meter) < 4 * MB); /* what the heir has is taken off it */
    CHECK(cn_js_meter_bytes(&objects[2]) < 2 * MB);
    cn_js_meter_end(&objects[0]);
    cn_js_meter_end(&objects[2]);
    cn_js_context_free(context);
    cn_js_vm_free(vm);
}

TEST(js_alloc, a_block_past_the_bound_is_a_RangeError)
{
    begin();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    cn_js_alloc_bound(100 * MB);
    static const char *const large[] = {
        "new Uint8Array(200 << 20)",
        "new ArrayBuffer(2 ** 31)",
        "'x'.repeat(200 << 20).at(-1)",
        "new Float64Array(50 << 20)",
        "new Array(30 << 20).fill(1.5)",
        "new Uint8Array(new ArrayBuffer(90 << 20)).slice()",
        "[].concat(new Array(30 << 20).fill(0.5))",
    };
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) { /* M2 */
        char source[256];
        snprintf(source, sizeof(source),
                 "try { %s; 'done' } catch (e) { e.name + ': ' + e.message }", large[i]);
        const char *got = run(context, NULL, source);
        if (!strstr(got, "Error"))
            test_fail(__FILE__, __LINE__, "%s: %s", large[i], got);
        run(context, NULL, "0");
        cn_js_vm_collect(vm);
    }
    CHECK_STR("20971520", run(context, NULL, "new Uint8Array(20 << 20).length"));
    cn_js_context_free(context);
    cn_js_vm_free(vm);
}

TEST(js_alloc, a_block_past_the_limit_of_the_process_is_refused)
{
    begin();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    cn_account_set_limit(500 * MB);
    (void)cn_account_look(450 * MB);
    CHECK_STR(
        "Out of memory",
        run(context, NULL, "try { new Uint8Array(60 << 20); 'done' } catch (e) { e.message }"));
    CHECK_STR("done", run(context, NULL, "new Uint8Array(20 << 20); 'done'"));
    cn_account_set_limit(0);
    cn_js_context_free(context);
    cn_js_vm_free(vm);
}

TEST(js_alloc, a_burst_in_small_pieces_ends_its_turn)
{
    static const char *const bursts[] = {
        "const kept = []; for (;;) kept.push(new Uint8Array(100000).fill(1))",
        "const kept = []; for (;;) kept.push({a: kept.length})",
        "let kept = []; for (let i = 0;; i++) kept.push('x'.repeat(1000) + i)",
        "const kept = new Map(); for (let i = 0;; i++) kept.set(i, [i])",
    };
    int ended = 0;
    for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
        begin();
        struct cn_js_context *context = cn_js_context_new(vm, NULL);
        cn_js_alloc_bound(100 * MB);
        const char *got = run(context, NULL, bursts[i]);
        /* M3; or M2, if it was the array of what is kept that had to grow */
        if (!strstr(got, "Out of memory")) {
            CHECK(vm->terminated);
            CHECK_INT(CN_JS_END_MEMORY, vm->end);
            ended++;
        }
        CHECK(cn_js_alloc_bytes() < 400 * MB);
        run(context, NULL, "0");
        CHECK(!vm->terminated);
        cn_js_context_free(context);
        cn_js_vm_free(vm);
    }
    CHECK(ended > 0);
}

TEST(js_alloc, garbage_does_not_end_a_turn)
{
    begin();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    cn_js_alloc_bound(200 * MB);
    static const char *const makers[] = {
        "for (let i = 0; i < 3000; i++) new Uint8Array(1 << 20); 'done'",
        "for (let i = 0; i < 100; i++) new Uint8Array(20 << 20).fill(1); 'done'",
        "for (let i = 0; i < 5e6; i++) ({a: i, b: [i]}); 'done'",
        "let s; for (let i = 0; i < 3000; i++) s = ('x'.repeat(1 << 20) + i).at(-1); 'done'",
    };
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        const char *got = run(context, NULL, makers[i]);
        if (strcmp(got, "done") != 0)
            test_fail(__FILE__, __LINE__, "%s: %s (%llu bytes)", makers[i], got,
                      (unsigned long long)cn_js_alloc_bytes());
    }
    cn_js_context_free(context);
    cn_js_vm_free(vm);
}

TEST(js_alloc, switched_off_it_shows_and_refuses_nothing)
{
    begin();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    cn_js_alloc_use(false);
    cn_js_alloc_bound(50 * MB);
    CHECK_STR("done", run(context, NULL, "globalThis.kept = new Uint8Array(60 << 20); 'done'"));
    CHECK_INT(0, cn_js_meter_bytes(&context->meter)); /* M4 */
    cn_js_alloc_use(true);
    cn_js_context_free(context);
    cn_js_vm_free(vm);
}

static void *give_elsewhere(void *data)
{
    struct cn_js_holding *holding = data;
    CHECK(holding->base.take(&holding->base, 10 * MB));
    holding->base.give(&holding->base, 20 * MB);
    return NULL;
}

TEST(js_alloc, M7_what_a_library_holds_is_on_the_meter_of_who_asked_on_any_thread)
{
    begin();
    struct cn_js_context *context = cn_js_context_new(vm, NULL);
    struct cn_js_holding holding, none;
    vm->meter = NULL;
    cn_js_enter(context);
    cn_js_holding_begin(&holding);
    cn_js_holding_begin(&none);
    cn_js_leave(context);
    uint64_t before = cn_js_meter_bytes(&context->meter);
    CHECK(holding.base.take(&holding.base, 30 * MB));
    CHECK_INT(30 * MB, cn_js_meter_bytes(&context->meter) - before);
    pthread_t thread;
    CHECK_INT(0, pthread_create(&thread, NULL, give_elsewhere, &holding));
    pthread_join(thread, NULL);
    CHECK_INT(20 * MB, cn_js_meter_bytes(&context->meter) - before);

    size_t bound = cn_js_alloc_bound(cn_js_alloc_bytes() + MB);
    CHECK(!none.base.take(&none.base, 2 * MB)); /* however small */
    CHECK(none.base.take(&none.base, MB / 2));
    cn_js_alloc_bound(bound);
    cn_account_set_limit(500 * MB);
    (void)cn_account_look(499 * MB);
    CHECK(!none.base.take(&none.base, 2 * MB));
    cn_account_set_limit(0);

    cn_js_holding_end(&holding); /* with what is left */
    none.base.give(&none.base, MB / 2);
    cn_js_holding_end(&none);
    CHECK_INT(before, cn_js_meter_bytes(&context->meter));
    cn_js_context_free(context);
    cn_js_vm_free(vm);
}
