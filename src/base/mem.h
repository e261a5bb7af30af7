/* SPDX-License-Identifier: Apache-2.0 */
/* base/mem.h - allocation.
 *
 * Small, fixed-size allocations abort when they fail: there is nothing useful
 * to do then. Sizes chosen by a client, a script or a file go through
 * cn_try_alloc(), after a check against a limit, and their failure is an
 * answer (CN_ENOMEM). All memory is released with cn_free() (= free). */
#ifndef CN_BASE_MEM_H
#define CN_BASE_MEM_H
#include <stdarg.h>
#include <stddef.h>

void *cn_alloc(size_t size);              /* never NULL; contents undefined */
void *cn_alloc_zero(size_t size);         /* never NULL; zeroed */
void *cn_realloc(void *ptr, size_t size); /* never NULL */
void *cn_try_alloc(size_t size);          /* NULL on failure */
/* The same; megabytes come in huge pages, or are a block that cn_free_large() kept: whoever uses
 * it writes all that he shows. */
void *cn_try_alloc_large(size_t size);
void cn_free_large(void *ptr); /* any block; keeps a few large ones for the next, from any thread */
void cn_free_kept(void);
size_t cn_kept_bytes(void);
/* Before the threads start: of what was freed, each thread's part of malloc() keeps no more than
 * this. By itself it would keep the largest blocks that were ever freed, 32 MB each, and
 * malloc_trim() does not give back what lies at the end of a part. */
void cn_mem_keep(size_t bytes);
void *cn_try_realloc(void *ptr, size_t size);
void cn_free(void *ptr); /* NULL is fine */
char *cn_strdup(const char *text);
char *cn_strndup(const char *text, size_t length); /* adds the NUL */
void *cn_memdup(const void *bytes, size_t size);
char *cn_vsprintf(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
char *cn_sprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The largest block that a thread keeps for its next allocation (glibc's tcache): a larger one costs
 * a lock and a search for each. What is made for every request stays below, asserted where it is
 * declared. */
#define CN_ALLOC_CACHED_MAX 1032

#define CN_NEW(type) ((type *)cn_alloc_zero(sizeof(type)))

/* Room for one more at the end of an array that has `count` items in room for `capacity`: doubles
 * what is full. Each argument may be evaluated more than once. */
#define CN_GROW(items, count, capacity)                                           \
    do {                                                                          \
        if ((count) == (capacity)) {                                              \
            (capacity) = (capacity) ? (capacity)*2 : 8;                           \
            (items) = cn_realloc((items), (size_t)(capacity) * sizeof(*(items))); \
        }                                                                         \
    } while (0)
/* The same of an array that nothing else has made, and so needs no capacity: it is full at 0 and at
 * powers of two. */
#define CN_GROW_COUNTED(items, count)                                                            \
    do {                                                                                         \
        if (((count) & ((count)-1)) == 0)                                                        \
            (items) = cn_realloc((items), (size_t)((count) ? (count)*2 : 1) * sizeof(*(items))); \
    } while (0)

#endif
