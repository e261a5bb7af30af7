/* SPDX-License-Identifier: Apache-2.0 */
#include "module/guard.h"

#include <dlfcn.h>
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
#define SLOTS_MIN 64

struct slot {
    const void *handle; /* NULL: free */
    const cairn_object *owner;
    enum cn_guard_kind kind;
};

/* G1: open addressing, never more than half full. */
static _Thread_local struct {
    struct slot *slots; /* owned; NULL: nothing is live */
    size_t room, count;
} live;

static size_t place_of(const void *handle)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle >> 4;
    return (size_t)((bits * 0x9e3779b97f4a7c15u) >> 20) & (live.room - 1);
}

static struct slot *find(const void *handle)
{
    if (!live.slots || !handle)
        return NULL;
    for (size_t i = place_of(handle); live.slots[i].handle; i = (i + 1) & (live.room - 1)) {
        if (live.slots[i].handle == handle)
            return &live.slots[i];
    }
    return NULL;
}

static void insert(const struct slot *slot)
{
    size_t i = place_of(slot->handle);
    while (live.slots[i].handle)
        i = (i + 1) & (live.room - 1);
    live.slots[i] = *slot;
}

static void resize(size_t room)
{
    struct slot *old = live.slots;
    size_t old_room = live.room;
    live.slots = cn_alloc_zero(room * sizeof(*live.slots));
    live.room = room;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].handle)
            insert(&old[i]);
    }
    cn_free(old);
}

void cn_guard_add(const void *handle, enum cn_guard_kind kind, const cairn_object *owner)
{
    CN_ASSERT(!find(handle));
    if (!live.slots || 2 * (live.count + 1) > live.room)
        resize(live.room ? 2 * live.room : SLOTS_MIN);
    live.count++;
    insert(&(struct slot){handle, owner, kind});
}

void cn_guard_remove(const void *handle)
{
    struct slot *slot = find(handle);
    CN_ASSERT(slot);
    size_t hole = (size_t)(slot - live.slots), mask = live.room - 1;
    live.slots[hole].handle = NULL;
    /* Those that were pushed past it come back. */
    for (size_t i = (hole + 1) & mask; live.slots[i].handle; i = (i + 1) & mask) {
        struct slot moved = live.slots[i];
        live.slots[i].handle = NULL;
        insert(&moved);
    }
    if (--live.count == 0) {
        cn_free(live.slots);
        live.slots = NULL;
        live.room = 0;
    }
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

void cn_guard_tell(const char *function, const void *from, const char *what)
{
    static _Thread_local unsigned told;
    const struct cn_module_class *class_ = cn_module_crash_running();
    char name[128] = "?";
    if (++told > LINES_MAX && told % 1000 != 0)
        return;
    if (class_)
        cn_error("module \"%s\", class %s: %s() of cairn.h was refused: %s", class_->module,
                 class_->name, function, what);
    else
        cn_error("module \"%s\": %s() of cairn.h was refused: %s",
                 module_at(from, name, sizeof(name)) ? name : "?", function, what);
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
    const struct slot *slot = find(handle);
    if (slot && slot->kind == kind)
        return slot;
    snprintf(what, sizeof(what), "the %s is gone, or another thread's, or none", name_of(kind));
    cn_guard_tell(function, from, what);
    return NULL;
}

bool cn_guard_knows(const void *handle, enum cn_guard_kind kind, const char *function,
                    const void *from)
{
    return known(handle, kind, function, from);
}

bool cn_guard_allows(const void *handle, enum cn_guard_kind kind, const char *function,
                     const void *from)
{
    const struct slot *slot = known(handle, kind, function, from);
    if (!slot)
        return false;
    if (slot->owner->running || slot->owner->going)
        return true;
    cn_guard_tell(function, from, "no function of that object's class is running"); /* G2 */
    return false;
}
