/* SPDX-License-Identifier: Apache-2.0 */
/* base/mem.h - allocation.
 *
 * Small, fixed-size allocations abort when they fail: there is nothing useful
 * to do then. Sizes chosen by a client, a script or a file go through
 * cn_try_alloc(), after a check against a limit, and their failure is an
 * answer (CN_ENOMEM). All memory is released with cn_free() (= free). */
#ifndef CN_BASE_MEM_H
#define CN_BASE_MEM_H
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
void *cn_try_realloc(void *ptr, size_t size);
void cn_free(void *ptr); /* NULL is fine */
char *cn_strdup(const char *text);
char *cn_strndup(const char *text, size_t length); /* adds the NUL */
void *cn_memdup(const void *bytes, size_t size);
char *cn_sprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CN_NEW(type) ((type *)cn_alloc_zero(sizeof(type)))

#endif
