/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/pages.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/mem.h"
#include "js/context.h"
#include "js/engine/alloc.h"
#include "js/vm.h"

#define RESERVE_NAME "_ZN8Gigacage29tryAllocateZeroedVirtualPagesENS_4KindEm"
#define RELEASE_NAME "_ZN8Gigacage16freeVirtualPagesENS_4KindEPvm"
#define PROTECT_NAME "_ZN3WTF11OSAllocator7protectEPvmbb"
#define RAM_SIZE_NAME "_ZN3WTF7ramSizeEv"
#define HANDLE_END_NAME "_ZN3JSC18BufferMemoryHandleD1Ev"

struct region {
    uintptr_t base;
    size_t size;   /* reserved */
    size_t usable; /* from the base on */
};

static struct {
    pthread_mutex_t lock;   /* a leaf but for alloc.c's */
    struct region *regions; /* owned; by base */
    size_t count, capacity;
    _Atomic uint64_t usable; /* of all of them */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_bool on;
/* The calling thread gives one back: it makes all of it usable first, and nothing is written. */
static _Thread_local unsigned ending;

/* --- the regions, under the lock -----------------------------------------------------------------
 */

/* How many begin at `address` or before. */
static size_t place_of(uintptr_t address)
{
    size_t low = 0, high = table.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table.regions[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The one with the address in it, or NULL. */
static struct region *find(uintptr_t address)
{
    size_t place = place_of(address);
    struct region *region = place ? &table.regions[place - 1] : NULL;
    return region && address - region->base < region->size ? region : NULL;
}

/* E1 */
static void set_usable(struct region *region, size_t usable)
{
    cn_js_alloc_returned((void *)region->base);
    if (usable)
        cn_js_alloc_lent((void *)region->base, usable);
    atomic_fetch_add_explicit(&table.usable, (uint64_t)usable - (uint64_t)region->usable,
                              memory_order_relaxed);
    region->usable = usable;
}

static void add(uintptr_t base, size_t size)
{
    CN_GROW(table.regions, table.count, table.capacity);
    size_t place = place_of(base);
    memmove(&table.regions[place + 1], &table.regions[place],
            (table.count - place) * sizeof(*table.regions));
    table.count++;
    table.regions[place] = (struct region){.base = base, .size = size};
    /* More than there may be cannot be meant for use as it is: most of it is protected next. */
    if (size <= cn_js_alloc_room())
        set_usable(&table.regions[place], size);
}

static void drop(uintptr_t base)
{
    struct region *region = find(base);
    if (!region || region->base != base)
        return;
    set_usable(region, 0);
    size_t place = (size_t)(region - table.regions);
    table.count--;
    memmove(region, region + 1, (table.count - place) * sizeof(*region));
}

/* --- in place of the library's functions ---------------------------------------------------------
 */

typedef void *(*reserve)(size_t kind, size_t size);
typedef void (*release)(size_t kind, void *base, size_t size);
typedef void (*protect)(void *address, size_t size, bool readable, bool writable);
typedef size_t (*ram_size)(void);
typedef void (*end_handle)(void *handle);

void *engine_reserve(size_t kind, size_t size) __asm__(RESERVE_NAME);
void *engine_reserve(size_t kind, size_t size)
{
    CN_JS_ORIGINAL(reserve, RESERVE_NAME);
    void *base = original(kind, size);
    if (!base)
        return NULL;
    pthread_mutex_lock(&table.lock);
    add((uintptr_t)base, size);
    pthread_mutex_unlock(&table.lock);
    return base;
}

void engine_release(size_t kind, void *base, size_t size) __asm__(RELEASE_NAME);
void engine_release(size_t kind, void *base, size_t size)
{
    CN_JS_ORIGINAL(release, RELEASE_NAME);
    pthread_mutex_lock(&table.lock);
    drop((uintptr_t)base);
    pthread_mutex_unlock(&table.lock);
    original(kind, base, size);
}

/* Usable memory is one part from the base on: this moves its end. */
static void move_end(uintptr_t address, size_t size, bool usable)
{
    pthread_mutex_lock(&table.lock);
    struct region *region = find(address);
    if (region) {
        if (!usable)
            (void)madvise((void *)address, size, MADV_DONTNEED); /* E3; else it stays for a while */
        set_usable(region, address - region->base + (usable ? size : 0));
    }
    pthread_mutex_unlock(&table.lock);
}

void engine_protect(void *address, size_t size, bool readable, bool writable) __asm__(PROTECT_NAME);
void engine_protect(void *address, size_t size, bool readable, bool writable)
{
    CN_JS_ORIGINAL(protect, PROTECT_NAME);
    if (!ending)
        move_end((uintptr_t)address, size, writable);
    original(address, size, readable, writable);
}

void engine_end_handle(void *handle) __asm__(HANDLE_END_NAME);
void engine_end_handle(void *handle)
{
    CN_JS_ORIGINAL(end_handle, HANDLE_END_NAME);
    ending++;
    original(handle);
    ending--;
}

/* E2 */
size_t engine_ram_size(void) __asm__(RAM_SIZE_NAME);
size_t engine_ram_size(void)
{
    CN_JS_ORIGINAL(ram_size, RAM_SIZE_NAME);
    size_t all = original(), room = cn_js_alloc_room();
    if (room == SIZE_MAX || !atomic_load_explicit(&on, memory_order_relaxed))
        return all;
    uint64_t third = (cn_js_pages_bytes() + room) / 3;
    return third < all ? (size_t)third : all;
}

uint64_t cn_js_pages_bytes(void)
{
    return atomic_load_explicit(&table.usable, memory_order_relaxed);
}

/* --- the patch -----------------------------------------------------------------------------------
 */

static void use(bool wanted)
{
    atomic_store_explicit(&on, wanted, memory_order_relaxed);
}

/* What grows is seen, what is given back is too, and what is too much is refused. */
static const char *prove(struct cn_js_vm *vm)
{
    static const struct {
        const char *source;
        size_t usable; /* after it, in pages of WebAssembly */
        bool refused;
    } steps[] = {
        {"globalThis.b = new ArrayBuffer(64 << 10, {maxByteLength: 640 << 10})", 1, false},
        {"b.resize(640 << 10)", 10, false},
        {"b.resize(64 << 10)", 1, false},
        {"globalThis.m = new WebAssembly.Memory({initial: 4, maximum: 9000})", 5, false},
        {"m.grow(3)", 8, false},
        {"m.grow(4096)", 8, true},
        {"new WebAssembly.Memory({initial: 4096})", 8, true},
        {"globalThis.m = globalThis.b = 0", 8, false},
    };
    struct cn_js_context context = {.vm = vm, .ref = vm->bare};
    const char *problem = NULL;
    uint64_t before = cn_js_pages_bytes();
    size_t bound = cn_js_alloc_bound(cn_js_alloc_bytes() + (64u << 20));
    for (size_t i = 0; i < CN_ARRAY_COUNT(steps) && !problem; i++) {
        if (cn_js_engine_evaluates(&context, steps[i].source) == steps[i].refused)
            problem = "memory that grows is not refused, or not made";
        else if (cn_js_pages_bytes() - before != steps[i].usable << 16)
            problem = "memory that grows is not seen";
    }
    (void)cn_js_alloc_bound(bound);
    JSGarbageCollect(vm->bare);
    cn_js_meter_end(&context.meter);
    return problem;
}

const struct cn_js_patch cn_js_patch_pages = {
    .name = "pages",
    .replaces = "WTF::OSAllocator::protect, WTF::ramSize, Gigacage::tryAllocateZeroedVirtualPages "
                "and freeVirtualPages, the end of JSC::BufferMemoryHandle",
    .why = "WebAssembly.Memory and resizable buffers are not taken from the allocator",
    .gain = "no speed; they count and are refused as any other memory of a script",
    .without = "they are seen in the memory of the process alone",
    .needs = "alloc",
    .symbols = {RESERVE_NAME, RELEASE_NAME, PROTECT_NAME, RAM_SIZE_NAME, HANDLE_END_NAME},
    .use = use,
    .prove = prove,
};
