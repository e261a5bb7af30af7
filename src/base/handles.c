/* SPDX-License-Identifier: Apache-2.0 */
#include "base/handles.h"

#include "base/assert.h"
#include "base/mem.h"

#define INDEX_BITS 21
#define INDEX_MASK ((1u << INDEX_BITS) - 1)
#define GENERATION_FIRST (1u << (32 - INDEX_BITS)) /* H2 */
#define NUMBER_END 9007199254740992.0              /* 2^53 */

_Static_assert(CN_HANDLES_MAX == INDEX_MASK, "an index fits into its bits");

static uint32_t slot_take(struct cn_handles *handles)
{
    if (handles->free) {
        uint32_t index = handles->free - 1;
        handles->free = handles->slots[index].next_free;
        return index;
    }
    CN_GROW(handles->slots, handles->count, handles->capacity);
    handles->slots[handles->count].generation = GENERATION_FIRST - 1;
    return handles->count++;
}

uint64_t cn_handles_add(struct cn_handles *handles, void *value)
{
    CN_ASSERT(value);
    if (!handles->free && handles->count == CN_HANDLES_MAX)
        return 0;
    uint32_t index = slot_take(handles);
    struct cn_handle_slot *slot = &handles->slots[index];
    slot->generation++;
    slot->value = value;
    handles->live++;
    return (uint64_t)slot->generation << INDEX_BITS | index;
}

void *cn_handles_find(const struct cn_handles *handles, double number)
{
    if (!(number > 0 && number < NUMBER_END))
        return NULL;
    uint64_t handle = (uint64_t)number;
    uint32_t index = (uint32_t)handle & INDEX_MASK;
    if ((double)handle != number || index >= handles->count ||
        handles->slots[index].generation != handle >> INDEX_BITS)
        return NULL;
    return handles->slots[index].value;
}

void cn_handles_remove(struct cn_handles *handles, uint64_t number)
{
    CN_ASSERT(cn_handles_find(handles, (double)number));
    uint32_t index = (uint32_t)number & INDEX_MASK;
    struct cn_handle_slot *slot = &handles->slots[index];
    slot->value = NULL;
    handles->live--;
    if (slot->generation == UINT32_MAX)
        return; /* H1 */
    slot->next_free = handles->free;
    handles->free = index + 1;
}

void *cn_handles_next(const struct cn_handles *handles, uint32_t *cursor)
{
    while (*cursor < handles->count) {
        void *value = handles->slots[(*cursor)++].value;
        if (value)
            return value;
    }
    return NULL;
}

void cn_handles_fini(struct cn_handles *handles)
{
    cn_free(handles->slots);
    *handles = (struct cn_handles){0};
}

void cn_handles_check(const struct cn_handles *handles)
{
    uint32_t used = 0, worn = 0, free = 0;
    for (uint32_t i = 0; i < handles->count; i++) {
        used += handles->slots[i].value != NULL;
        worn += !handles->slots[i].value && handles->slots[i].generation == UINT32_MAX; /* H1 */
    }
    for (uint32_t at = handles->free; at; at = handles->slots[at - 1].next_free) {
        CN_ASSERT(at <= handles->count && !handles->slots[at - 1].value);
        CN_ASSERT(++free <= handles->count); /* no circle */
    }
    CN_ASSERT(handles->live == used);
    CN_ASSERT(handles->count == used + worn + free);
}
