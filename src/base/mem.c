/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"

static _Noreturn void out_of_memory(size_t size)
{
    fprintf(stderr, "cairn: out of memory (%zu bytes wanted)\n", size);
    abort();
}

void *cn_alloc(size_t size)
{
    void *ptr = malloc(size ? size : 1);
    if (!ptr)
        out_of_memory(size);
    return ptr;
}

/* The largest block that malloc() keeps for each thread, without a lock. calloc() of glibc 2.36
 * does not look there, which makes a small block three times as dear, and the next free() too. */
#define CACHED_SIZE_MAX 1032

void *cn_alloc_zero(size_t size)
{
    if (size <= CACHED_SIZE_MAX)
        return memset(cn_alloc(size), 0, size);
    void *ptr = calloc(1, size);
    if (!ptr)
        out_of_memory(size);
    return ptr;
}

void *cn_realloc(void *ptr, size_t size)
{
    void *moved = realloc(ptr, size ? size : 1);
    if (!moved)
        out_of_memory(size);
    return moved;
}

void *cn_try_alloc(size_t size)
{
    return malloc(size ? size : 1);
}

/* ---- large blocks ----
 *
 * The kernel clears the pages of a new block: 10 MB take as long as encrypting 10 MB. So the last
 * few that were freed are kept for the next of about the same size, until a quiet moment. */

#define HUGE_PAGE ((size_t)2 << 20)
#define LARGE (2 * HUGE_PAGE)
#define KEPT_COUNT_MAX 12
#define KEPT_BYTES_MAX ((size_t)128 << 20)

static struct {
    pthread_mutex_t lock;
    void *blocks[KEPT_COUNT_MAX];
    size_t count, bytes;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Only this file makes blocks at such addresses, but any block there may be kept. */
static bool is_large(const void *ptr)
{
    return ptr && ((uintptr_t)ptr & (HUGE_PAGE - 1)) == 0 &&
           malloc_usable_size((void *)(uintptr_t)ptr) >= LARGE;
}

static void *take_kept(size_t size)
{
    void *found = NULL;
    pthread_mutex_lock(&kept.lock);
    for (size_t i = 0; i < kept.count && !found; i++) {
        size_t usable = malloc_usable_size(kept.blocks[i]);
        if (usable < size || usable / 2 > size)
            continue;
        found = kept.blocks[i];
        kept.blocks[i] = kept.blocks[--kept.count];
        kept.bytes -= usable;
    }
    pthread_mutex_unlock(&kept.lock);
    return found;
}

void *cn_try_alloc_large(size_t size)
{
    if (size < LARGE)
        return cn_try_alloc(size);
    void *memory = take_kept(size);
    if (memory)
        return memory;
    if (posix_memalign(&memory, HUGE_PAGE, size) != 0)
        return NULL;
    (void)madvise(memory, size, MADV_HUGEPAGE); /* a wish */
    return memory;
}

void cn_free_large(void *ptr)
{
    if (is_large(ptr)) {
        size_t usable = malloc_usable_size(ptr);
        pthread_mutex_lock(&kept.lock);
        bool keep = kept.count < KEPT_COUNT_MAX && kept.bytes + usable <= KEPT_BYTES_MAX;
        if (keep) {
            kept.blocks[kept.count++] = ptr;
            kept.bytes += usable;
        }
        pthread_mutex_unlock(&kept.lock);
        if (keep)
            return;
    }
    free(ptr);
}

void cn_mem_keep(size_t bytes)
{
    int most = bytes < INT_MAX ? (int)bytes : INT_MAX;
    (void)mallopt(M_TRIM_THRESHOLD, most);
    (void)mallopt(M_MMAP_THRESHOLD, most); /* what is larger goes back when it is freed */
}

void cn_free_kept(void)
{
    pthread_mutex_lock(&kept.lock);
    while (kept.count)
        free(kept.blocks[--kept.count]);
    kept.bytes = 0;
    pthread_mutex_unlock(&kept.lock);
}

size_t cn_kept_bytes(void)
{
    pthread_mutex_lock(&kept.lock);
    size_t bytes = kept.bytes;
    pthread_mutex_unlock(&kept.lock);
    return bytes;
}

void *cn_try_realloc(void *ptr, size_t size)
{
    return realloc(ptr, size ? size : 1);
}

void cn_free(void *ptr)
{
    free(ptr);
}

char *cn_strndup(const char *text, size_t length)
{
    char *copy = cn_alloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

char *cn_strdup(const char *text)
{
    return cn_strndup(text, strlen(text));
}

void *cn_memdup(const void *bytes, size_t size)
{
    void *copy = cn_alloc(size);
    if (size)
        memcpy(copy, bytes, size);
    return copy;
}

char *cn_vsprintf(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    CN_ASSERT(length >= 0);
    char *text = cn_alloc((size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

char *cn_sprintf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = cn_vsprintf(format, args);
    va_end(args);
    return text;
}
