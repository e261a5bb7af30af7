/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/alloc.c - see alloc.h.
 *
 * The definitions at the end take the place of the library's functions; each calls the library's
 * own. The common way through is a subtraction and a comparison in the thread's own memory; one in
 * about 128 KB takes the lock below, which is a leaf: nothing of the engine is called under it.
 *
 * Freeing asks a filter first (a byte for many addresses), so that the lock is taken for what was
 * noted and rarely else. */
#include "js/engine/alloc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/account.h"
#include "base/assert.h"
#include "base/mem.h"
#include "js/context.h"
#include "js/vm.h"

#define PERIOD (128 << 10)      /* bytes between two notes, on the average */
#define LARGE ((size_t)1 << 20) /* M2 is asked for these */
#define FILTER_SIZE (1u << 16)
#define TAG_MAX 65536u

struct note {
    uintptr_t address; /* 0: free */
    uint32_t tag;
    uint32_t vm;
    int64_t bytes;
};

struct tag {
    int64_t bytes;
    uint32_t heir; /* once its meter has ended: the tag that has its bytes; 0: nobody */
    bool ended;
    uint32_t note_count; /* of itself, and one for each tag whose heir it is */
    uint32_t next_free;
};

struct vm {
    bool open;
    size_t bound;
    _Atomic int64_t bytes;
};

static struct {
    pthread_mutex_t lock;
    struct note *notes; /* owned; open addressing by address */
    size_t note_count, capacity;
    struct tag *tags; /* owned; [0] is nobody's */
    uint32_t tag_count, free_tag;
    struct vm vms[CN_JS_ALLOC_VM_MAX]; /* [0] is of threads without one */
    _Atomic int64_t bytes;
} book = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_uchar filter[FILTER_SIZE]; /* how many notes an address may have; 255: many */
static atomic_bool on;

static _Thread_local struct {
    int64_t left;  /* until the next note */
    int64_t since; /* bytes since the last one */
    uint32_t vm, seed;
    bool over; /* this turn has been told (M3) */
    struct cn_js_meter *meter;
    void (*on_over)(void *data);
    void *data;
} mine;

static size_t hash_of(uintptr_t address)
{
    return (size_t)((address >> 4) * 0x9e3779b97f4a7c15u >> 20);
}

/* Neighbours share a cache line of the filter, as what is freed together mostly was made together.
 */
static atomic_uchar *filter_of(uintptr_t address)
{
    return &filter[(address >> 5) % FILTER_SIZE];
}

/* --- the book, under its lock ------------------------------------------------------------------
 */

static void filter_count(uintptr_t address, int by)
{
    atomic_uchar *count = filter_of(address);
    unsigned char now = atomic_load_explicit(count, memory_order_relaxed);
    if (now != 255) /* saturated: stays so */
        atomic_store_explicit(count, (unsigned char)(now + by), memory_order_relaxed);
}

static struct note *find(uintptr_t address)
{
    for (size_t i = hash_of(address);; i++) {
        struct note *note = &book.notes[i & (book.capacity - 1)];
        if (note->address == address || !note->address)
            return note;
    }
}

static void grow(void)
{
    struct note *old = book.notes;
    size_t count = book.capacity;
    book.capacity = count ? count * 2 : 4096;
    book.notes = cn_alloc_zero(book.capacity * sizeof(*book.notes));
    for (size_t i = 0; i < count; i++) {
        if (old[i].address)
            *find(old[i].address) = old[i];
    }
    cn_free(old);
}

/* The tag that has the bytes noted for `tag` by now. */
static uint32_t holder_of(uint32_t tag)
{
    while (tag && book.tags[tag].ended)
        tag = book.tags[tag].heir;
    return tag;
}

static void release_tag(uint32_t tag)
{
    book.tags[tag] = (struct tag){.next_free = book.free_tag};
    book.free_tag = tag;
}

/* Whether its meter has ended and its last note is gone: then it goes, and is an heir's no more. */
static void drop_if_done(uint32_t tag)
{
    while (tag && book.tags[tag].ended && !book.tags[tag].note_count) {
        uint32_t heir = book.tags[tag].heir;
        release_tag(tag);
        if (heir)
            book.tags[heir].note_count--;
        tag = heir;
    }
}

static uint32_t new_tag(void)
{
    uint32_t tag = book.free_tag;
    if (tag) {
        book.free_tag = book.tags[tag].next_free;
    } else {
        if (!book.tags) {
            book.tags = cn_alloc_zero(TAG_MAX * sizeof(*book.tags));
            book.tag_count = 1;
        }
        if (book.tag_count == TAG_MAX)
            return 0; /* nobody's, then */
        tag = book.tag_count++;
    }
    book.tags[tag] = (struct tag){0};
    return tag;
}

static void count(uint32_t tag, uint32_t vm, int64_t bytes)
{
    uint32_t holder = holder_of(tag);
    if (holder)
        book.tags[holder].bytes += bytes;
    atomic_fetch_add_explicit(&book.vms[vm].bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&book.bytes, bytes, memory_order_relaxed);
}

/* Bytes of a note or a reserve begin to count for its tag, and no longer do. */
static void count_in(uint32_t tag, uint32_t vm, int64_t bytes)
{
    if (tag)
        book.tags[tag].note_count++;
    count(tag, vm, bytes);
}

static void count_out(uint32_t tag, uint32_t vm, int64_t bytes)
{
    count(tag, vm, -bytes);
    if (tag) {
        book.tags[tag].note_count--;
        drop_if_done(tag);
    }
}

/* M1. Closes the gap, so that whatever was put there by way of it is found. */
static void strike(struct note *note)
{
    count_out(note->tag, note->vm, note->bytes);
    filter_count(note->address, -1);
    size_t mask = book.capacity - 1, hole = (size_t)(note - book.notes);
    book.note_count--;
    for (size_t i = (hole + 1) & mask; book.notes[i].address; i = (i + 1) & mask) {
        size_t home = hash_of(book.notes[i].address) & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* its home is behind the hole */
        book.notes[hole] = book.notes[i];
        hole = i;
    }
    book.notes[hole].address = 0;
}

/* --- notes ---------------------------------------------------------------------------------------
 */

static uint32_t next_random(void)
{
    mine.seed = mine.seed * 1664525u + 1013904223u;
    return mine.seed >> 8;
}

static uint32_t tag_of_turn(void)
{
    struct cn_js_meter *meter = mine.meter;
    if (!meter)
        return 0;
    if (!meter->tag)
        meter->tag = new_tag();
    return meter->tag;
}

static void write_note(void *block)
{
    uintptr_t address = (uintptr_t)block;
    pthread_mutex_lock(&book.lock);
    if ((book.note_count + 1) * 2 > book.capacity)
        grow();
    struct note *note = find(address);
    if (note->address)
        strike(note); /* its end was not seen */
    note = find(address);
    *note = (struct note){address, tag_of_turn(), mine.vm, mine.since};
    book.note_count++;
    filter_count(address, 1);
    count_in(note->tag, note->vm, note->bytes);
    pthread_mutex_unlock(&book.lock);
    mine.since = 0;
    mine.left = PERIOD / 2 + (int64_t)(next_random() % PERIOD);
}

/* M3 */
static void tell_if_over(void)
{
    const struct vm *vm = &book.vms[mine.vm];
    if (mine.over || !vm->bound || !mine.on_over ||
        (uint64_t)atomic_load_explicit(&vm->bytes, memory_order_relaxed) <= vm->bound)
        return;
    mine.over = true;
    mine.on_over(mine.data);
}

static inline void *noted(void *block, size_t size)
{
    mine.left -= (int64_t)size;
    mine.since += (int64_t)size;
    if (__builtin_expect(mine.left <= 0, 0) && block) {
        if (!atomic_load_explicit(&on, memory_order_relaxed)) {
            mine.left = PERIOD;
            mine.since = 0;
            return block;
        }
        write_note(block);
        tell_if_over();
    }
    return block;
}

static inline void freed(void *block)
{
    uintptr_t address = (uintptr_t)block;
    if (!atomic_load_explicit(filter_of(address), memory_order_relaxed) || !block)
        return;
    pthread_mutex_lock(&book.lock);
    struct note *note = book.capacity ? find(address) : NULL;
    if (note && note->address)
        strike(note);
    pthread_mutex_unlock(&book.lock);
}

void cn_js_alloc_lent(void *block, size_t size)
{
    (void)noted(block, size);
}

void cn_js_alloc_returned(void *block)
{
    freed(block);
}

static uint64_t left_of(uint64_t bound, uint64_t bytes)
{
    if (!bound)
        return SIZE_MAX;
    return bytes < bound ? bound - bytes : 0;
}

static size_t room_of(uint32_t vm)
{
    if (!vm || !atomic_load_explicit(&on, memory_order_relaxed))
        return SIZE_MAX;
    uint64_t all = cn_js_alloc_bytes_all(), used = cn_account_used();
    uint64_t heap = left_of(book.vms[vm].bound, cn_js_alloc_bytes_of(vm));
    uint64_t process = left_of(cn_account_limit(), all > used ? all : used);
    return heap < process ? heap : process;
}

size_t cn_js_alloc_room(void)
{
    return room_of(mine.vm);
}

/* M2 */
static bool refused(size_t size)
{
    return size >= LARGE && size > cn_js_alloc_room();
}

bool cn_js_alloc_reserve(struct cn_js_reserve *reserve, size_t bytes)
{
    *reserve = (struct cn_js_reserve){0};
    if (refused(bytes))
        return false;
    if (!atomic_load_explicit(&on, memory_order_relaxed))
        return true;
    pthread_mutex_lock(&book.lock);
    *reserve = (struct cn_js_reserve){tag_of_turn(), mine.vm, (int64_t)bytes};
    count_in(reserve->tag, reserve->vm, reserve->bytes);
    pthread_mutex_unlock(&book.lock);
    tell_if_over();
    return true;
}

void cn_js_alloc_release(struct cn_js_reserve *reserve)
{
    if (!reserve->bytes)
        return;
    pthread_mutex_lock(&book.lock);
    count_out(reserve->tag, reserve->vm, reserve->bytes);
    pthread_mutex_unlock(&book.lock);
    *reserve = (struct cn_js_reserve){0};
}

/* M7. The tag is kept for as long as the holding is there. */
static bool take_held(struct cn_holding *base, size_t bytes)
{
    struct cn_js_holding *holding = CN_CONTAINER_OF(base, struct cn_js_holding, base);
    if (!holding->counts)
        return true;
    if (!base->must && bytes > room_of(holding->vm))
        return false;
    pthread_mutex_lock(&book.lock);
    count(holding->tag, holding->vm, (int64_t)bytes);
    pthread_mutex_unlock(&book.lock);
    holding->bytes += (int64_t)bytes;
    if (mine.vm == holding->vm)
        tell_if_over();
    return true;
}

static void give_held(struct cn_holding *base, size_t bytes)
{
    struct cn_js_holding *holding = CN_CONTAINER_OF(base, struct cn_js_holding, base);
    if (!holding->counts)
        return;
    pthread_mutex_lock(&book.lock);
    count(holding->tag, holding->vm, -(int64_t)bytes);
    pthread_mutex_unlock(&book.lock);
    holding->bytes -= (int64_t)bytes;
}

void cn_js_holding_begin(struct cn_js_holding *holding)
{
    *holding =
        (struct cn_js_holding){.base = {.take = take_held, .give = give_held}, .vm = mine.vm};
    holding->counts = atomic_load_explicit(&on, memory_order_relaxed);
    if (!holding->counts)
        return;
    pthread_mutex_lock(&book.lock);
    holding->tag = tag_of_turn();
    count_in(holding->tag, holding->vm, 0);
    pthread_mutex_unlock(&book.lock);
}

void cn_js_holding_end(struct cn_js_holding *holding)
{
    if (!holding->counts)
        return;
    pthread_mutex_lock(&book.lock);
    count_out(holding->tag, holding->vm, holding->bytes);
    pthread_mutex_unlock(&book.lock);
    holding->counts = false;
}

/* --- meters and VMs
 * ------------------------------------------------------------------------------- */

bool cn_js_alloc_on(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed);
}

void cn_js_alloc_use(bool use)
{
    atomic_store_explicit(&on, use, memory_order_relaxed);
}

unsigned cn_js_alloc_open(size_t bound, void (*on_over)(void *data), void *data)
{
    CN_ASSERT(!mine.vm);
    pthread_mutex_lock(&book.lock);
    uint32_t vm = 1;
    while (vm < CN_JS_ALLOC_VM_MAX && book.vms[vm].open)
        vm++;
    if (vm == CN_JS_ALLOC_VM_MAX)
        vm = 0; /* counted among nobody's */
    else {
        book.vms[vm].open = true;
        book.vms[vm].bound = bound;
    }
    pthread_mutex_unlock(&book.lock);
    mine.vm = vm;
    mine.left = PERIOD;
    mine.since = 0;
    mine.seed = vm * 7919u;
    mine.on_over = on_over;
    mine.data = data;
    return vm;
}

void cn_js_alloc_close(void)
{
    pthread_mutex_lock(&book.lock);
    book.vms[mine.vm].open = false;
    pthread_mutex_unlock(&book.lock);
    mine.vm = 0;
    mine.meter = NULL;
    mine.on_over = NULL;
}

size_t cn_js_alloc_bound(size_t bound)
{
    size_t before = book.vms[mine.vm].bound;
    if (mine.vm)
        book.vms[mine.vm].bound = bound;
    return before;
}

void cn_js_alloc_begin(struct cn_js_meter *meter)
{
    mine.meter = meter;
    mine.over = false;
}

void cn_js_alloc_switch(struct cn_js_meter *meter)
{
    mine.meter = meter;
}

void cn_js_alloc_end(void)
{
    mine.meter = NULL;
}

void cn_js_meter_end(struct cn_js_meter *meter)
{
    if (mine.meter == meter)
        mine.meter = meter->parent;
    if (!meter->tag)
        return;
    pthread_mutex_lock(&book.lock);
    struct tag *tag = &book.tags[meter->tag];
    tag->ended = true;
    if (tag->note_count && meter->parent) { /* M1 */
        if (!meter->parent->tag)
            meter->parent->tag = new_tag();
        tag->heir = meter->parent->tag;
    }
    if (tag->heir) {
        book.tags[tag->heir].bytes += tag->bytes;
        book.tags[tag->heir].note_count++;
    }
    tag->bytes = 0;
    drop_if_done(meter->tag);
    pthread_mutex_unlock(&book.lock);
    meter->tag = 0;
}

uint64_t cn_js_meter_bytes(const struct cn_js_meter *meter)
{
    if (!meter->tag)
        return 0;
    pthread_mutex_lock(&book.lock);
    int64_t bytes = book.tags[meter->tag].bytes;
    pthread_mutex_unlock(&book.lock);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

uint64_t cn_js_alloc_bytes_of(unsigned vm)
{
    int64_t bytes = atomic_load_explicit(&book.vms[vm].bytes, memory_order_relaxed);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

uint64_t cn_js_alloc_bytes(void)
{
    return cn_js_alloc_bytes_of(mine.vm);
}

uint64_t cn_js_alloc_bytes_all(void)
{
    int64_t bytes = atomic_load_explicit(&book.bytes, memory_order_relaxed);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

/* --- in place of the library's functions
 * ----------------------------------------------------------- */

typedef void *(*allocate)(size_t size);
typedef void *(*allocate_2)(size_t first, size_t size);   /* an alignment or a kind comes first */
typedef void *(*try_allocate)(void **block, size_t size); /* the result is in memory */
typedef void *(*try_reallocate)(void **block, void *old, size_t size);
typedef void *(*reallocate)(void *old, size_t size);
typedef void (*release)(void *block);
typedef void (*release_2)(size_t kind, void *block);

#define ALLOCATE(function, name)               \
    void *function(size_t size) __asm__(name); \
    void *function(size_t size)                \
    {                                          \
        CN_JS_ORIGINAL(allocate, name);        \
        return noted(original(size), size);    \
    }
ALLOCATE(engine_malloc, "_ZN3WTF10fastMallocEm")
ALLOCATE(engine_zeroed_malloc, "_ZN3WTF16fastZeroedMallocEm")
ALLOCATE(engine_compact_malloc, "_ZN3WTF17fastCompactMallocEm")

#define TRY_ALLOCATE(function, name)                               \
    void *function(void **block, size_t size) __asm__(name);       \
    void *function(void **block, size_t size)                      \
    {                                                              \
        if (__builtin_expect(size >= LARGE, 0) && refused(size)) { \
            *block = NULL;                                         \
            return block;                                          \
        }                                                          \
        CN_JS_ORIGINAL(try_allocate, name);                        \
        void *result = original(block, size);                      \
        (void)noted(*block, size);                                 \
        return result;                                             \
    }
TRY_ALLOCATE(engine_try_malloc, "_ZN3WTF13tryFastMallocEm")
TRY_ALLOCATE(engine_try_compact_malloc, "_ZN3WTF20tryFastCompactMallocEm")

/* A kind of cage comes first: bytes of typed arrays. */
#define CAGE_ALLOCATE(function, name)                            \
    void *function(size_t kind, size_t size) __asm__(name);      \
    void *function(size_t kind, size_t size)                     \
    {                                                            \
        if (__builtin_expect(size >= LARGE, 0) && refused(size)) \
            return NULL;                                         \
        CN_JS_ORIGINAL(allocate_2, name);                        \
        return noted(original(kind, size), size);                \
    }
CAGE_ALLOCATE(engine_cage_zeroed_malloc, "_ZN8Gigacage15tryZeroedMallocENS_4KindEm")
CAGE_ALLOCATE(engine_cage_malloc, "_ZN8Gigacage9tryMallocENS_4KindEm")

/* Blocks of 16 KB for small objects: the engine cannot do without. */
void *engine_aligned_malloc(size_t alignment,
                            size_t size) __asm__("_ZN3WTF27tryFastCompactAlignedMallocEmm");
void *engine_aligned_malloc(size_t alignment, size_t size)
{
    CN_JS_ORIGINAL(allocate_2, "_ZN3WTF27tryFastCompactAlignedMallocEmm");
    return noted(original(alignment, size), size);
}

void *engine_realloc(void *old, size_t size) __asm__("_ZN3WTF11fastReallocEPvm");
void *engine_realloc(void *old, size_t size)
{
    CN_JS_ORIGINAL(reallocate, "_ZN3WTF11fastReallocEPvm");
    freed(old);
    return noted(original(old, size), size);
}

/* If it fails the old block is there still, and is nobody's: that errs on the right side. */
void *engine_try_realloc(void **block, void *old,
                         size_t size) __asm__("_ZN3WTF21tryFastCompactReallocEPvm");
void *engine_try_realloc(void **block, void *old, size_t size)
{
    if (__builtin_expect(size >= LARGE, 0) && refused(size)) {
        *block = NULL;
        return block;
    }
    CN_JS_ORIGINAL(try_reallocate, "_ZN3WTF21tryFastCompactReallocEPvm");
    freed(old);
    void *result = original(block, old, size);
    (void)noted(*block, size);
    return result;
}

#define RELEASE(function, name)               \
    void function(void *block) __asm__(name); \
    void function(void *block)                \
    {                                         \
        CN_JS_ORIGINAL(release, name);        \
        freed(block);                         \
        original(block);                      \
    }
RELEASE(engine_free, "_ZN3WTF8fastFreeEPv")
RELEASE(engine_aligned_free, "_ZN3WTF15fastAlignedFreeEPv")

void engine_cage_free(size_t kind, void *block) __asm__("_ZN8Gigacage4freeENS_4KindEPv");
void engine_cage_free(size_t kind, void *block)
{
    CN_JS_ORIGINAL(release_2, "_ZN8Gigacage4freeENS_4KindEPv");
    freed(block);
    original(kind, block);
}

/* --- the patch
 * --------------------------------------------------------------------------------------- */

/* What a turn takes is on its meter, of each kind; a block that is too large is refused, and then
 * things go on as before. The blocks are some PERIODs large, so that they are noted, and no larger:
 * every start takes them, and the engine's allocator keeps what they leave until the lane is quiet.
 */
static const char *prove(struct cn_js_vm *vm)
{
    static const char *const takers[] = {
        "globalThis.a = new Uint8Array(288 << 10)",
        "globalThis.b = ('x'.repeat(288 << 10) + 1).at(-1) + 'x'.repeat(288 << 10).replace('y', "
        "'z')",
        "globalThis.c = new Array(36 << 10).fill(0.5)",
    };
    struct cn_js_context context = {.vm = vm, .ref = vm->bare};
    uint64_t before = 0;
    const char *problem = NULL;
    for (size_t i = 0; i < CN_ARRAY_COUNT(takers) && !problem; i++) {
        cn_js_engine_evaluates(&context, takers[i]);
        uint64_t now = cn_js_meter_bytes(&context.meter);
        if (now < before + 2 * PERIOD)
            problem = "memory is taken that is not seen";
        before = now;
    }
    size_t bound = cn_js_alloc_bound(cn_js_alloc_bytes() + (16u << 20));
    if (!problem && cn_js_engine_evaluates(&context, "new Uint8Array(256 << 20)"))
        problem = "a block that is refused is made";
    cn_js_alloc_bound(bound);
    if (!problem &&
        !cn_js_engine_evaluates(&context, "globalThis.a = globalThis.b = globalThis.c = 0"))
        problem = "nothing works after a block was refused";
    JSGarbageCollect(vm->bare);
    cn_js_meter_end(&context.meter);
    return problem;
}

/* The library's functions are looked for at their first call, which may be before this. */
const struct cn_js_patch cn_js_patch_alloc = {
    .name = "alloc",
    .replaces = "WTF::fastMalloc, fastFree and their like, Gigacage::tryMalloc and its like",
    .why = "the engine does not say whose memory it has, and nothing bounds a single block",
    .gain = "no speed; one script or object answers for its memory, and a turn that takes too much "
            "is ended in milliseconds",
    .without = "memory is watched for the whole process; the script that used most CPU time is "
               "restarted when it is short",
    .symbols = {"_ZN3WTF10fastMallocEm", "_ZN3WTF16fastZeroedMallocEm",
                "_ZN3WTF17fastCompactMallocEm", "_ZN3WTF13tryFastMallocEm",
                "_ZN3WTF20tryFastCompactMallocEm", "_ZN3WTF27tryFastCompactAlignedMallocEmm",
                "_ZN3WTF11fastReallocEPvm", "_ZN3WTF21tryFastCompactReallocEPvm",
                "_ZN8Gigacage15tryZeroedMallocENS_4KindEm", "_ZN8Gigacage9tryMallocENS_4KindEm",
                "_ZN3WTF8fastFreeEPv",
                "_ZN3WTF15fastAlignedFreeEPv|_ZN3WTF8fastFreeEPv" /* one for both: 2.54 */,
                "_ZN8Gigacage4freeENS_4KindEPv"},
    .use = cn_js_alloc_use,
    .prove = prove,
};
