/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/scarce.h"

#include <stdatomic.h>
#include <stddef.h>

static atomic_uint_fast64_t asked, failing;
static atomic_bool stays;

void *__real_cn_try_alloc(size_t size);
void *__real_cn_try_alloc_large(size_t size);
void *__real_cn_try_realloc(void *ptr, size_t size);
void *__wrap_cn_try_alloc(size_t size);
void *__wrap_cn_try_alloc_large(size_t size);
void *__wrap_cn_try_realloc(void *ptr, size_t size);

void scarce_set(uint64_t at, bool sticky)
{
    atomic_store(&failing, 0);
    atomic_store(&asked, 0);
    atomic_store(&stays, sticky);
    atomic_store(&failing, at);
}

uint64_t scarce_count(void)
{
    return atomic_load(&asked);
}

static bool fails(void)
{
    uint64_t number = atomic_fetch_add(&asked, 1) + 1, at = atomic_load(&failing);
    return at && (number == at || (number > at && atomic_load(&stays)));
}

void *__wrap_cn_try_alloc(size_t size)
{
    return fails() ? NULL : __real_cn_try_alloc(size);
}

void *__wrap_cn_try_alloc_large(size_t size)
{
    return fails() ? NULL : __real_cn_try_alloc_large(size);
}

void *__wrap_cn_try_realloc(void *ptr, size_t size)
{
    return fails() ? NULL : __real_cn_try_realloc(ptr, size);
}
