/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/event.h"

#include "base/assert.h"
#include "base/mem.h"
#include "worker/instance.h"
#include "worker/lane.h"

/* A handle is generation << INDEX_BITS | index + 1, all of it a positive 31-bit integer, which
 * the engine keeps unboxed. */
#define INDEX_BITS 20
#define INDEX_MASK ((1u << INDEX_BITS) - 1)
#define GENERATION_MAX ((1u << (31 - INDEX_BITS)) - 1)

struct cn_event *cn_event_new(struct cn_events *events, struct cn_instance *instance)
{
    struct cn_event *event;
    uint32_t index;
    if (events->free) {
        index = events->free - 1;
        event = events->slots[index];
        events->free = event->next_free;
    } else {
        if (events->count >= INDEX_MASK - 1)
            return NULL;
        if (events->count == events->capacity) {
            events->capacity = events->capacity ? events->capacity * 2 : 64;
            events->slots = cn_realloc(events->slots, events->capacity * sizeof(*events->slots));
        }
        index = (uint32_t)events->count++;
        event = events->slots[index] = CN_NEW(struct cn_event);
    }
    uint32_t generation = event->handle >> INDEX_BITS;
    generation = generation == GENERATION_MAX ? 1 : generation + 1;
    *event =
        (struct cn_event){.handle = generation << INDEX_BITS | (index + 1), .instance = instance};
    event->id = cn_rand_next(&instance->lane->rand);
    cn_list_init(&event->link);
    events->live++;
    cn_allowance_add(&instance->allowance, instance->script, ++instance->event_count);
    return event;
}

struct cn_event *cn_event_find(const struct cn_events *events, double handle)
{
    if (!(handle > 0 && handle < 2147483648.0))
        return NULL;
    uint32_t number = (uint32_t)handle;
    uint32_t index = (number & INDEX_MASK) - 1;
    if (index >= events->count)
        return NULL;
    struct cn_event *event = events->slots[index];
    return event->handle == number && event->instance ? event : NULL;
}

void cn_event_free(struct cn_events *events, struct cn_event *event)
{
    CN_ASSERT(event->instance && !event->http);
    cn_buf_fini(&event->early);
    cn_js_pin_clear(&event->read);
    cn_js_pin_clear(&event->drain);
    cn_js_pin_clear(&event->pipe);
    cn_js_pin_clear(&event->abort);
    cn_list_remove(&event->link);
    event->instance->event_count--;
    event->instance = NULL;
    event->next_free = events->free;
    events->free = (event->handle & INDEX_MASK);
    events->live--;
}

void cn_events_fini(struct cn_events *events)
{
    CN_ASSERT(events->live == 0);
    for (size_t i = 0; i < events->count; i++)
        cn_free(events->slots[i]);
    cn_free(events->slots);
    *events = (struct cn_events){0};
}
