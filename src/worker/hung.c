/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/hung.h"

#include <string.h>

#include "base/diag.h"
#include "base/loop.h"
#include "object/call.h"
#include "worker/dispatch.h"
#include "worker/event.h"
#include "worker/event_life.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/runtime.h"

static const char text[] =
    "The Workers runtime canceled this request because it detected that your Worker's code had "
    "hung and would never generate a response. Refer to: "
    "https://developers.cloudflare.com/workers/observability/errors/";

/* The youngest without an answer (N2); NULL: none. */
static struct cn_event *youngest(struct cn_instance *instance)
{
    struct cn_event *found = NULL;
    CN_LIST_FOREACH(&instance->events, node)
    {
        struct cn_event *event = CN_CONTAINER_OF(node, struct cn_event, link);
        if (cn_event_is_running(event) && !cn_event_is_canceled(event) && !event->in_c)
            found = event;
    }
    return found;
}

static bool has_event_of(struct cn_instance *instance, uint64_t request)
{
    CN_LIST_FOREACH(&instance->events, node)
    {
        struct cn_event *event = CN_CONTAINER_OF(node, struct cn_event, link);
        if (cn_event_is_running(event) && event->id == request)
            return true;
    }
    return false;
}

static bool has_pin_of(struct cn_instance *instance, uint64_t request)
{
    CN_LIST_FOREACH(&instance->runtime->context->pins, node)
    {
        struct cn_js_pin *pin = CN_CONTAINER_OF(node, struct cn_js_pin, link);
        if (!pin->passive && !pin->orphan && pin->cause.request == request)
            return true;
    }
    return false;
}

/* Whether something elsewhere on the lane works for the event's request (N1). */
static bool is_worked_for(const struct cn_lane *lane, const struct cn_event *event)
{
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *other = CN_CONTAINER_OF(node, struct cn_instance, link);
        if (other != event->instance &&
            (has_event_of(other, event->id) || has_pin_of(other, event->id)))
            return true;
    }
    return false;
}

static void fail(struct cn_event *event)
{
    cn_event_leave(event); /* nothing of it can run any more, so that its answer is its end */
    if (event->http) {
        cn_event_fail(event, 500, text, sizeof(text) - 1);
        return;
    }
    struct cn_diag_field fields[] = {{"worker", event->instance->script->name, 0, false}};
    cn_diag_fields(CN_DIAG_ERROR, fields, 1, text, sizeof(text) - 1);
    cn_dispatch_fail(event, CN_FAULT_REMOTE, CN_EJS, text, NULL, 0);
}

void cn_hung_sweep(struct cn_lane *lane)
{
    cn_loop_assert_owner(&lane->loop);
    if (!cn_list_empty(&lane->desk.ready) || lane->vm->entered)
        return;
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        if (instance->state == CN_INSTANCE_STARTING || instance->runtime->context->waiting > 0)
            continue;
        struct cn_event *event = youngest(instance);
        if (event && !is_worked_for(lane, event))
            fail(event);
    }
}
