/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/event.h"

#include "base/assert.h"
#include "base/mem.h"
#include "worker/instance.h"
#include "worker/lane.h"

_Static_assert(CN_EVENTS_MAX <= CN_HANDLES_MAX, "each has a number");

struct cn_event *cn_event_new(struct cn_instance *instance)
{
    struct cn_lane *lane = instance->lane;
    if (lane->events.live == CN_EVENTS_MAX)
        return NULL;
    struct cn_event *event = CN_NEW(struct cn_event);
    event->handle = cn_handles_add(&lane->events, event);
    event->instance = instance;
    event->id = cn_rand_next(&lane->rand);
    cn_list_push_back(&instance->events, &event->link);
    return event;
}

struct cn_event *cn_event_find(const struct cn_lane *lane, double handle)
{
    return cn_handles_find(&lane->events, handle);
}

void cn_event_free(struct cn_event *event)
{
    CN_ASSERT(!event->http);
    cn_handles_remove(&event->instance->lane->events, event->handle);
    cn_buf_fini(&event->early);
    cn_js_pin_clear(&event->read);
    cn_js_pin_clear(&event->drain);
    cn_js_pin_clear(&event->pipe);
    cn_js_pin_clear(&event->abort);
    cn_list_remove(&event->link);
    cn_free(event);
}
