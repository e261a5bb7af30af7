/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that own a struct: who is given it, and when it is freed (N1, N2 of js/handle.h). */
#include "js/handle.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "js/value.h"
#include "test/lib/js_rig.h"

struct thing {
    struct cn_js_handle handle;
    uint64_t check; /* so that memory that is freed twice or early is seen */
};
#define ALIVE 0x616c697665u

static atomic_uint freed; /* on any thread */

static void thing_free(void *data)
{
    struct thing *thing = data;
    if (thing->check == ALIVE)
        atomic_fetch_add(&freed, 1);
    thing->check = 0;
    cn_free(thing);
}

static const struct cn_js_handle_type kind = {.name = "thing", .free = thing_free};
static const struct cn_js_handle_type other = {.name = "thing",
                                               .free = thing_free}; /* the name does not count */

static JSValueRef make(JSContextRef ctx, const struct cn_js_handle_type *type, size_t cost)
{
    struct thing *thing = CN_NEW(struct thing);
    thing->check = ALIVE;
    return cn_js_handle_make(ctx, &thing->handle, type, cost);
}

TEST(js_handle, N2_only_its_own_type_is_given_the_struct)
{
    struct js_rig rig;
    js_rig_open(&rig);
    JSContextRef ctx = rig.context->ref;
    cn_js_enter(rig.context);
    /* Before any was made. */
    CHECK(!cn_js_handle_find(ctx, JSObjectMake(ctx, NULL, NULL), &kind));
    JSValueRef value = make(ctx, &kind, 0);
    struct thing *thing = cn_js_handle_find(ctx, value, &kind);
    CHECK(thing && thing->check == ALIVE && thing->handle.type == &kind);
    CHECK(!cn_js_handle_find(ctx, value, &other));
    cn_js_set(ctx, JSContextGetGlobalObject(ctx), "handle", value);
    static const char *const strangers[] = {
        "undefined",
        "null",
        "true",
        "7",
        "NaN",
        "'NativeHandle'",
        "Symbol('x')",
        "12n",
        "({})",
        "[]",
        "() => 1",
        "new Proxy({}, {})",
        /* what is made of a handle is none */
        "Object.create(handle)",
        "Object.setPrototypeOf({}, handle)",
        "new Proxy(handle, {})",
        "structuredClone",
        "Object.assign({}, handle)",
    };
    struct cn_err err;
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
        JSValueRef stranger;
        if (cn_js_evaluate(rig.context, strangers[i], "test", &stranger, &err) < 0)
            stranger = JSValueMakeUndefined(ctx);
        if (cn_js_handle_find(ctx, stranger, &kind))
            test_fail(__FILE__, __LINE__, "%s is taken for a handle", strangers[i]);
    }
    /* Frozen, with properties and another prototype it is still the same. */
    CHECK_INT(0, cn_js_evaluate(rig.context,
                                "handle.x = 1; Object.setPrototypeOf(handle, Array.prototype); "
                                "Object.freeze(handle)",
                                "test", &value, &err));
    CHECK(cn_js_handle_find(ctx, value, &kind) == thing);
    cn_js_leave(rig.context);
    js_rig_close(&rig);
}

__attribute__((noinline)) static void make_many(struct js_rig *rig, unsigned count)
{
    cn_js_enter(rig->context);
    for (unsigned i = 0; i < count; i++)
        (void)make(rig->context->ref, i % 2 ? &kind : &other, 1000);
    cn_js_leave(rig->context);
}

TEST(js_handle, N1_what_is_collected_is_freed_once_and_the_rest_with_its_vm)
{
    enum { COUNT = 2000 };
    struct js_rig rig;
    js_rig_open(&rig);
    atomic_store(&freed, 0);
    make_many(&rig, COUNT);
    cn_js_enter(rig.context);
    cn_js_set(rig.context->ref, JSContextGetGlobalObject(rig.context->ref), "kept",
              make(rig.context->ref, &kind, 0));
    cn_js_leave(rig.context);
    js_rig_run(&rig, "(function deep(n) { return n ? [deep(n - 1)] : 0; })(200)");
    cn_js_vm_collect(rig.vm);
    /* The collector may take an old word of the stack for a pointer to one or the other. */
    CHECK(atomic_load(&freed) > COUNT / 2 && atomic_load(&freed) <= COUNT);
    cn_js_enter(rig.context);
    CHECK(cn_js_handle_find(
        rig.context->ref,
        cn_js_get(rig.context->ref, JSContextGetGlobalObject(rig.context->ref), "kept"), &kind));
    cn_js_leave(rig.context);
    js_rig_close(&rig);
    CHECK_INT(COUNT + 1, atomic_load(&freed));
}

/* What a handle holds outside of the heap makes the collector come. */
TEST(js_handle, the_collector_knows_what_it_costs)
{
    struct js_rig rig;
    js_rig_open(&rig);
    atomic_store(&freed, 0);
    for (int i = 0; i < 400 && atomic_load(&freed) == 0; i++) {
        cn_js_enter(rig.context);
        (void)make(rig.context->ref, &kind, 4 << 20);
        cn_js_leave(rig.context);
        js_rig_run(&rig, "for (let i = 0; i < 1000; i++) ({})");
    }
    CHECK(atomic_load(&freed) > 0);
    js_rig_close(&rig);
}

static void *make_elsewhere(void *data)
{
    (void)data;
    struct js_rig rig;
    js_rig_open(&rig);
    cn_js_enter(rig.context);
    JSContextRef ctx = rig.context->ref;
    bool good = !cn_js_handle_find(ctx, JSValueMakeNumber(ctx, 1), &kind);
    JSValueRef value = make(ctx, &kind, 0);
    good = good && cn_js_handle_find(ctx, value, &kind);
    cn_js_leave(rig.context);
    js_rig_close(&rig);
    return good ? data : NULL;
}

TEST(js_handle, lanes_share_the_class_and_nothing_else)
{
    pthread_t threads[2];
    struct js_rig rig;
    js_rig_open(&rig); /* sets the engine up */
    js_rig_close(&rig);
    for (int i = 0; i < 2; i++)
        CHECK_INT(0, pthread_create(&threads[i], NULL, make_elsewhere, &threads));
    for (int i = 0; i < 2; i++) {
        void *good;
        pthread_join(threads[i], &good);
        CHECK(good);
    }
}
