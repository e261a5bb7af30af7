/* SPDX-License-Identifier: Apache-2.0 */
/* store/sqlite_memory.c - SQLite's memory, counted.
 *
 * SQLite's own statistics take a lock for every allocation. Here each thread counts for itself and
 * adds to the sum when it has 64 KB: what is read is right to that much per thread. */
#include "store/sqlite_memory.h"

#include <malloc.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>

#define STEP (64 << 10)

static _Atomic int64_t total;
static _Thread_local int64_t uncounted;

static void count(int64_t bytes)
{
    uncounted += bytes;
    if (uncounted < STEP && uncounted > -STEP)
        return;
    atomic_fetch_add_explicit(&total, uncounted, memory_order_relaxed);
    uncounted = 0;
}

static void *take(int size)
{
    void *memory = malloc((size_t)size);
    if (memory)
        count((int64_t)malloc_usable_size(memory));
    return memory;
}

static void give(void *memory)
{
    count(-(int64_t)malloc_usable_size(memory));
    free(memory);
}

static void *change(void *memory, int size)
{
    int64_t before = (int64_t)malloc_usable_size(memory);
    void *moved = realloc(memory, (size_t)size);
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

uint64_t cn_sqlite_memory_bytes(void)
{
    int64_t bytes = atomic_load_explicit(&total, memory_order_relaxed);
    return bytes > 0 ? (uint64_t)bytes : 0;
}
