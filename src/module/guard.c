/* SPDX-License-Identifier: Apache-2.0 */
#include "module/guard.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/mem.h"
#include "module/crash.h"
#include "module/internal.h"

#define LINES_MAX 20

#define PLACE_BITS 26
#define THREAD_BITS 8
#define GENERATION_BITS 29
#define PLACE_MAX ((uintptr_t)1 << PLACE_BITS)
_Static_assert(sizeof(uintptr_t) == 8, "a handle is as large as a pointer");

struct slot {
    uintptr_t handle; /* 0: free */
    void *thing;
    union {
        const cairn_object *owner;
        size_t next_free; /* place + 1; 0: none */
    };
    enum cn_guard_kind kind;
};

/* G1. It goes with the last that is in it; the generation goes on (G4). */
static _Thread_local struct {
    struct slot *slots; /* owned; NULL: nothing is live */
    size_t room, used;  /* places; those that were ever used */
    size_t count;       /* of live ones */
    size_t free;        /* the first free one + 1; 0: none but those behind `used` */
    uintptr_t generation;
    uintptr_t thread; /* 0: not known yet */
} live;

static uintptr_t thread_number(void)
{
    static atomic_uint last;
    if (!live.thread)
        live.thread = 1 + atomic_fetch_add(&last, 1) % ((1u << THREAD_BITS) - 1);
    return live.thread;
}

/* A place in the table. */
static size_t take_place(void)
{
    if (live.free) {
        size_t place = live.free - 1;
        live.free = live.slots[place].next_free;
        return place;
    }
    CN_GROW(live.slots, live.used, live.room);
    CN_ASSERT(live.used < PLACE_MAX); /* memory ends before */
    return live.used++;
}

void cn_guard_add(void *thing, enum cn_guard_kind kind, const cairn_object *owner)
{
    uintptr_t *handle = thing; /* G5 */
    CN_ASSERT(!*handle);
    size_t place = take_place();
    live.generation = (live.generation + 1) & (((uintptr_t)1 << GENERATION_BITS) - 1);
    *handle = (uintptr_t)1 << 63 | live.generation << (THREAD_BITS + PLACE_BITS) |
              thread_number() << PLACE_BITS | place;
    live.slots[place] =
        (struct slot){.handle = *handle, .thing = thing, .owner = owner, .kind = kind};
    live.count++;
}

static struct slot *find(uintptr_t handle)
{
    size_t place = handle & (PLACE_MAX - 1);
    return handle && place < live.used && live.slots[place].handle == handle ? &live.slots[place]
                                                                             : NULL;
}

void cn_guard_remove(void *thing)
{
    uintptr_t *handle = thing; /* G5 */
    if (!*handle)
        return;
    struct slot *slot = find(*handle);
    CN_ASSERT(slot);
    *handle = slot->handle = 0;
    slot->next_free = live.free;
    live.free = (size_t)(slot - live.slots) + 1;
    if (--live.count > 0)
        return;
    cn_free(live.slots);
    live.slots = NULL;
    live.room = live.used = live.free = 0;
}

/* --- telling --------------------------------------------------------------------------------- */

/* The name of the module that has the address: what its copy in memory is called (module.c). */
static bool module_at(const void *from, char *name, size_t size)
{
    static const char prefix[] = "/memfd:";
    char link[256];
    Dl_info info;
    if (!dladdr(from, &info) || !info.dli_fname || strncmp(info.dli_fname, "/proc/", 6) != 0)
        return false;
    ssize_t length = readlink(info.dli_fname, link, sizeof(link) - 1);
    if (length <= 0)
        return false;
    link[length] = '\0';
    if (strncmp(link, prefix, sizeof(prefix) - 1) != 0)
        return false;
    const char *start = link + sizeof(prefix) - 1, *end = strstr(start, " (deleted)");
    snprintf(name, size, "%.*s", end ? (int)(end - start) : (int)strlen(start), start);
    return true;
}

bool cn_guard_tell(const char *function, const void *from, const char *what)
{
    static _Thread_local unsigned told;
    const struct cn_module_class *class_ = cn_module_crash_running();
    char name[128] = "?";
    if (++told > LINES_MAX && told % 1000 != 0)
        return false;
    if (class_)
        cn_error("module \"%s\", class %s: %s() of cairn.h was refused: %s", class_->module,
                 class_->name, function, what);
    else
        cn_error("module \"%s\": %s() of cairn.h was refused: %s",
                 module_at(from, name, sizeof(name)) ? name : "?", function, what);
    return false;
}

static const char *name_of(enum cn_guard_kind kind)
{
    static const char *const names[] = {
        [CN_GUARD_OBJECT] = "object",   [CN_GUARD_EVENT] = "event",
        [CN_GUARD_BUILDER] = "builder", [CN_GUARD_STATEMENT] = "statement",
        [CN_GUARD_REMOTE] = "remote",   [CN_GUARD_STREAM] = "stream"};
    return names[kind];
}

static const struct slot *known(const void *handle, enum cn_guard_kind kind, const char *function,
                                const void *from)
{
    char what[160];
    const struct slot *slot = find((uintptr_t)handle);
    if (slot && slot->kind == kind)
        return slot;
    snprintf(what, sizeof(what), "the %s is gone, or another thread's, or none", name_of(kind));
    cn_guard_tell(function, from, what);
    return NULL;
}

void *cn_guard_find(const void *handle, enum cn_guard_kind kind, const char *function,
                    const void *from)
{
    const struct slot *slot = known(handle, kind, function, from);
    return slot ? slot->thing : NULL;
}

void *cn_guard_take(const void *handle, enum cn_guard_kind kind, const char *function,
                    const void *from)
{
    const struct slot *slot = known(handle, kind, function, from);
    if (!slot)
        return NULL;
    if (slot->owner->running || slot->owner->going)
        return slot->thing;
    cn_guard_tell(function, from, "no function of that object's class is running"); /* G2 */
    return NULL;
}
