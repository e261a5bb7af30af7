/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pagemap.h"

#include "base/assert.h"
#include "base/mem.h"

static uint32_t home_of(const struct cn_pagemap *map, uint32_t page_no)
{
    return (page_no * 2654435769u) >> (32 - __builtin_ctz(map->capacity));
}

/* The slot that holds the page, or the free one where it would go. */
static struct cn_page *slot_for(const struct cn_pagemap *map, uint32_t page_no)
{
    uint32_t mask = map->capacity - 1;
    for (uint32_t i = home_of(map, page_no);; i = (i + 1) & mask) {
        struct cn_page *slot = &map->slots[i];
        if (slot->page_no == page_no || slot->page_no == 0)
            return slot;
    }
}

struct cn_page *cn_pagemap_find(const struct cn_pagemap *map, uint32_t page_no)
{
    if (map->count == 0)
        return NULL;
    struct cn_page *slot = slot_for(map, page_no);
    return slot->page_no ? slot : NULL;
}

static void grow(struct cn_pagemap *map)
{
    struct cn_pagemap old = *map;
    map->capacity = old.capacity ? old.capacity * 2 : 4;
    map->slots = cn_alloc_zero(map->capacity * sizeof(*map->slots));
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].page_no)
            *slot_for(map, old.slots[i].page_no) = old.slots[i];
    }
    cn_free(old.slots);
}

struct cn_page *cn_pagemap_add(struct cn_pagemap *map, uint32_t page_no)
{
    CN_ASSERT(page_no != 0);
    if ((map->count + 1) * 4 > map->capacity * 3)
        grow(map);
    struct cn_page *slot = slot_for(map, page_no);
    if (!slot->page_no) {
        slot->page_no = page_no;
        map->count++;
    }
    return slot;
}

void cn_pagemap_remove(struct cn_pagemap *map, struct cn_page *page)
{
    uint32_t mask = map->capacity - 1;
    uint32_t hole = (uint32_t)(page - map->slots);
    CN_ASSERT(hole < map->capacity && page->page_no != 0);
    if (--map->count == 0) {
        cn_pagemap_clear(map);
        return;
    }
    /* Moves back every later page of the run that may lie in the hole. */
    for (uint32_t i = (hole + 1) & mask; map->slots[i].page_no; i = (i + 1) & mask) {
        uint32_t home = home_of(map, map->slots[i].page_no);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole] = (struct cn_page){0};
}

void cn_pagemap_cut(struct cn_pagemap *map, uint32_t limit,
                    void (*drop)(void *data, const struct cn_page *page), void *data)
{
    struct cn_pagemap kept = {0};
    uint32_t cursor = 0;
    for (struct cn_page *page; (page = cn_pagemap_next(map, &cursor));) {
        if (page->page_no > limit)
            drop(data, page);
        else
            *cn_pagemap_add(&kept, page->page_no) = *page;
    }
    cn_free(map->slots);
    *map = kept;
}

void cn_pagemap_clear(struct cn_pagemap *map)
{
    cn_free(map->slots);
    *map = (struct cn_pagemap){0};
}

struct cn_page *cn_pagemap_next(const struct cn_pagemap *map, uint32_t *cursor)
{
    while (*cursor < map->capacity) {
        struct cn_page *slot = &map->slots[(*cursor)++];
        if (slot->page_no)
            return slot;
    }
    return NULL;
}
