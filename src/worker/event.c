/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/event.h"

#include "base/account.h"
#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "module/worker.h"
#include "worker/compiled_body.h"
#include "worker/instance.h"
#include "worker/lane.h"

_Static_assert(CN_EVENTS_MAX <= CN_HANDLES_MAX, "each has a number");

const char cn_event_canceled[] = "canceled";

#define TO(state) (1u << (state))
static const unsigned moves[CN_EVENT_STATES] = {
    [CN_EVENT_RUNNING] = TO(CN_EVENT_STREAMING) | TO(CN_EVENT_ANSWERED) | TO(CN_EVENT_LEFT),
    [CN_EVENT_STREAMING] = TO(CN_EVENT_ANSWERED) | TO(CN_EVENT_LEFT_STREAMING),
    [CN_EVENT_ANSWERED] = TO(CN_EVENT_OVER),
    [CN_EVENT_LEFT] = TO(CN_EVENT_LEFT_STREAMING) | TO(CN_EVENT_OVER),
    [CN_EVENT_LEFT_STREAMING] = TO(CN_EVENT_OVER),
};

static void set_state(struct cn_event *event, enum cn_event_state state)
{
    CN_ASSERT(moves[event->state] & TO(state));
    event->state = state;
}

void cn_event_begin(struct cn_event *event)
{
    CN_ASSERT(cn_event_is_running(event)); /* E2 */
    set_state(event, event->state == CN_EVENT_LEFT ? CN_EVENT_LEFT_STREAMING : CN_EVENT_STREAMING);
}

void cn_event_complete(struct cn_event *event)
{
    if (cn_event_is_answered(event))
        return;
    bool left = event->state == CN_EVENT_LEFT || event->state == CN_EVENT_LEFT_STREAMING;
    set_state(event, left ? CN_EVENT_OVER : CN_EVENT_ANSWERED);
}

void cn_event_leave(struct cn_event *event)
{
    static const enum cn_event_state next[CN_EVENT_STATES] = {
        [CN_EVENT_RUNNING] = CN_EVENT_LEFT,
        [CN_EVENT_STREAMING] = CN_EVENT_LEFT_STREAMING,
        [CN_EVENT_ANSWERED] = CN_EVENT_OVER,
    };
    if (next[event->state])
        set_state(event, next[event->state]);
}

struct cn_event *cn_event_new(struct cn_instance *instance)
{
    cn_loop_assert_owner(&instance->lane->loop);
    struct cn_lane *lane = instance->lane;
    if (lane->events.live == CN_EVENTS_MAX)
        return NULL;
    struct cn_event *event = CN_NEW(struct cn_event);
    event->handle = cn_handles_add(&lane->events, event);
    event->instance = instance;
    event->id = cn_rand_next(&lane->rand);
    event->born_turn = lane->vm->turn_count;
    cn_list_push_back(&instance->events, &event->link);
    return event;
}

struct cn_event *cn_event_find(const struct cn_lane *lane, double handle)
{
    return cn_handles_find(&lane->events, handle);
}

void cn_event_gathered(struct cn_event *event)
{
    cn_account_add(CN_ACCOUNT_BODIES, -(int64_t)event->gathered);
    event->gathered = 0;
    event->give_up = NULL;
}

void cn_event_free(struct cn_event *event)
{
    cn_loop_assert_owner(&event->instance->lane->loop);
    CN_ASSERT(event->state == CN_EVENT_OVER && !event->http);
    if (event->source)
        event->source_gone(event->source); /* E3 */
    if (event->body)
        cn_compiled_body_gone(event->body);
    if (event->compiled)
        cn_compiled_forget(event->compiled);
    cn_event_gathered(event);
    cn_handles_remove(&event->instance->lane->events, event->handle);
    cn_buf_fini(&event->early);
    cn_js_pin_clear(&event->read);
    cn_js_pin_clear(&event->drain);
    cn_js_pin_clear(&event->pipe);
    cn_js_pin_clear(&event->abort);
    cn_list_remove(&event->link);
    cn_free(event);
}
