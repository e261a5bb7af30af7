/* SPDX-License-Identifier: Apache-2.0 */
#include "base/holding.h"

#include <malloc.h>

#include "base/mem.h"

void *cn_holding_alloc(void *data, size_t size)
{
    struct cn_holding *holding = data;
    if (!holding)
        return cn_try_alloc(size);
    if (!holding->take(holding, size))
        return NULL;
    void *block = cn_try_alloc(size);
    if (!block) {
        holding->give(holding, size);
        return NULL;
    }
    size_t more = malloc_usable_size(block) - size; /* what free() will tell (H1) */
    if (more && !holding->take(holding, more)) {
        cn_free(block);
        holding->give(holding, size);
        return NULL;
    }
    return block;
}

void *cn_holding_alloc_always(void *data, size_t size)
{
    struct cn_holding *holding = data;
    if (!holding)
        return cn_try_alloc(size);
    holding->must = true;
    void *block = cn_holding_alloc(holding, size);
    holding->must = false;
    return block;
}

bool cn_holding_has_room(struct cn_holding *holding, size_t bytes)
{
    if (!holding)
        return true;
    bool has = holding->take(holding, bytes);
    if (has)
        holding->give(holding, bytes);
    return has;
}

void *cn_holding_alloc_items(void *holding, unsigned count, unsigned size)
{
    size_t bytes;
    return __builtin_mul_overflow((size_t)count, (size_t)size, &bytes)
               ? NULL
               : cn_holding_alloc(holding, bytes);
}

void cn_holding_free(void *data, void *block)
{
    struct cn_holding *holding = data;
    if (holding && block)
        holding->give(holding, malloc_usable_size(block));
    cn_free(block);
}
