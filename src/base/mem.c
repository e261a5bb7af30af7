/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdarg.h>
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

void *cn_alloc_zero(size_t size)
{
    void *ptr = calloc(1, size ? size : 1);
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

void *cn_try_alloc_large(size_t size)
{
    const size_t huge_page = 2u << 20;
    if (size < 2 * huge_page)
        return cn_try_alloc(size);
    void *memory = NULL;
    if (posix_memalign(&memory, huge_page, size) != 0)
        return NULL;
    (void)madvise(memory, size, MADV_HUGEPAGE); /* a wish */
    return memory;
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

char *cn_sprintf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    CN_ASSERT(length >= 0);
    char *text = cn_alloc((size_t)length + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}
