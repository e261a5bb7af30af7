/* SPDX-License-Identifier: Apache-2.0 */
/* store/sqlite_memory.c - SQLite's memory, counted.
 *
 * SQLite's own statistics take a lock for every allocation. Here each thread counts for itself and
 * adds to the sum when it has 64 KB: what is read is right to that much per thread. */
#include "store/sqlite_memory.h"

#include <malloc.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/account.h"
#include "base/mem.h"

#define STEP (64 << 10)

static _Atomic int64_t total;
static _Thread_local int64_t uncounted;
static _Atomic int64_t guests;       /* what their statements have, to STEP for each */
static _Thread_local int64_t *guest; /* the statement that runs; NULL: none */
static _Thread_local int64_t guest_uncounted;

/* Adds what a thread has counted to the sum of all, when it is much. */
static inline void add(int64_t *counted, int64_t bytes, _Atomic int64_t *sum)
{
    *counted += bytes;
    if (*counted<STEP && * counted> - STEP)
        return;
    atomic_fetch_add_explicit(sum, *counted, memory_order_relaxed);
    *counted = 0;
}

static bool is_guest_refused(size_t size)
{
    uint64_t limit = cn_account_limit();
    if (!limit || *guest + (int64_t)size <= CN_GUEST_FREE)
        return false;
    uint64_t all = (uint64_t)atomic_load_explicit(&guests, memory_order_relaxed) + size;
    return cn_account_level() >= CN_ACCOUNT_RELIEVE_BODIES ||
           (all > limit / 4 && cn_account_used() > limit / 2);
}

/* Q1 */
static inline bool is_refused(size_t size)
{
    return guest && is_guest_refused(size);
}

static inline void count(int64_t bytes)
{
    add(&uncounted, bytes, &total);
    if (!guest)
        return;
    *guest += bytes;
    add(&guest_uncounted, bytes, &guests);
}

static void *take(int size)
{
    void *memory = is_refused((size_t)size) ? NULL : cn_try_alloc((size_t)size);
    if (memory)
        count((int64_t)malloc_usable_size(memory));
    return memory;
}

static void give(void *memory)
{
    count(-(int64_t)malloc_usable_size(memory));
    cn_free(memory);
}

static void *change(void *memory, int size)
{
    int64_t before = (int64_t)malloc_usable_size(memory);
    bool grows = size > before;
    void *moved =
        grows && is_refused((size_t)(size - before)) ? NULL : cn_try_realloc(memory, (size_t)size);
    if (moved)
        count((int64_t)malloc_usable_size(moved) - before);
    return moved;
}

static int size_of(void *memory)
{
    return memory ? (int)malloc_usable_size(memory) : 0;
}

static int round_up(int size)
{
    return (size + 7) & ~7;
}

static int begin(void *data)
{
    (void)data;
    return SQLITE_OK;
}

static void end(void *data)
{
    (void)data;
}

int cn_sqlite_memory_setup(void)
{
    static const sqlite3_mem_methods methods = {take,     give,  change, size_of,
                                                round_up, begin, end,    NULL};
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

void cn_sqlite_memory_begin(int64_t *bytes)
{
    guest = bytes;
}

void cn_sqlite_memory_end(void)
{
    guest = NULL;
}

void cn_sqlite_memory_forget(int64_t *bytes)
{
    atomic_fetch_sub_explicit(&guests, *bytes, memory_order_relaxed);
    *bytes = 0;
}

uint64_t cn_sqlite_memory_bytes(void)
{
    int64_t bytes = atomic_load_explicit(&total, memory_order_relaxed);
    return bytes > 0 ? (uint64_t)bytes : 0;
}
