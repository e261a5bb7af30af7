/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/hung.h"

#include <stdlib.h>

#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/envelope.h"
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

/* Something that is under way for a request: an event without an answer, or a pin through which
 * something comes. */
struct work {
    uint64_t request;
    struct cn_instance *instance;
    uint32_t depth; /* of the event; PIN */
};
#define PIN UINT32_MAX

static bool is_open(const struct cn_event *event)
{
    return cn_event_is_running(event) && !cn_event_is_canceled(event);
}

/* The youngest without an answer (N2); NULL: none. */
static struct cn_event *youngest(struct cn_instance *instance)
{
    struct cn_event *found = NULL;
    CN_LIST_FOREACH(&instance->events, node)
    {
        struct cn_event *event = CN_CONTAINER_OF(node, struct cn_event, link);
        if (is_open(event))
            found = event;
    }
    return found;
}

/* What is in C has no pins: it goes on by itself. */
static bool has_open_in_c(struct cn_instance *instance)
{
    CN_LIST_FOREACH(&instance->events, node)
    {
        struct cn_event *event = CN_CONTAINER_OF(node, struct cn_event, link);
        if (event->in_c && is_open(event))
            return true;
    }
    return false;
}

static bool is_candidate(struct cn_instance *instance)
{
    return instance->state != CN_INSTANCE_STARTING && instance->runtime->context->waiting == 0 &&
           youngest(instance) && !has_open_in_c(instance);
}

static int compare(const void *a, const void *b)
{
    const struct work *left = a, *right = b;
    return (left->request > right->request) - (left->request < right->request);
}

/* What is under way on the lane, by request, to `work`; with NULL, how much that is. */
static size_t gather(struct cn_lane *lane, struct work *work)
{
    size_t count = 0;
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        CN_LIST_FOREACH(&instance->events, at)
        {
            struct cn_event *event = CN_CONTAINER_OF(at, struct cn_event, link);
            if (!is_open(event))
                continue;
            if (work)
                work[count] = (struct work){event->id, instance, event->depth};
            count++;
        }
        CN_LIST_FOREACH(&instance->runtime->context->pins, at)
        {
            struct cn_js_pin *pin = CN_CONTAINER_OF(at, struct cn_js_pin, link);
            if (pin->passive || pin->orphan || !pin->cause.request)
                continue;
            if (work)
                work[count] = (struct work){pin->cause.request, instance, PIN};
            count++;
        }
    }
    if (work)
        qsort(work, count, sizeof(*work), compare);
    return count;
}

/* The first entry of the request; `count`: none. */
static size_t first_of(const struct work *work, size_t count, uint64_t request)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (work[middle].request < request)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && work[low].request == request ? low : count;
}

/* Another instance's work that the event may wait for: of its request, and not what has called it.
 */
static bool is_for(const struct work *work, const struct cn_event *event)
{
    return work->instance != event->instance && work->depth > event->depth;
}

/* N3: whether anything may come to what `instance` has under way. */
static bool may_go_on(struct cn_instance *instance, const struct work *work, size_t count)
{
    CN_LIST_FOREACH(&instance->events, node)
    {
        struct cn_event *event = CN_CONTAINER_OF(node, struct cn_event, link);
        if (!is_open(event))
            continue;
        for (size_t i = first_of(work, count, event->id); i < count && work[i].request == event->id;
             i++) {
            if (work[i].instance->may_go_on && is_for(&work[i], event))
                return true;
        }
    }
    return false;
}

/* Whether what it waits for is itself without an answer, elsewhere: that one fails first (N2). */
static bool waits_for_another(const struct cn_event *event, const struct work *work, size_t count)
{
    for (size_t i = first_of(work, count, event->id); i < count && work[i].request == event->id;
         i++) {
        if (is_for(&work[i], event))
            return true;
    }
    return false;
}

/* False: there is something on the desk of which nobody knows for whom. */
static bool mark_sent(struct cn_lane *lane, const struct work *work, size_t count)
{
    CN_LIST_FOREACH(&lane->desk.ready, node)
    {
        uint64_t request = CN_CONTAINER_OF(node, struct cn_envelope, link)->origin.request;
        if (!request)
            return false;
        for (size_t i = first_of(work, count, request); i < count && work[i].request == request;
             i++)
            work[i].instance->may_go_on = true;
    }
    return true;
}

/* Which instances may go on, by N3: those to which something comes, then those that wait for them.
 */
static bool mark(struct cn_lane *lane, const struct work *work, size_t count)
{
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        instance->may_go_on = !is_candidate(instance);
    }
    if (!mark_sent(lane, work, count))
        return false;
    for (bool more = true; more;) {
        more = false;
        CN_LIST_FOREACH(&lane->instances, node)
        {
            struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
            if (!instance->may_go_on && may_go_on(instance, work, count))
                instance->may_go_on = more = true;
        }
    }
    return true;
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

static bool has_candidate(struct cn_lane *lane)
{
    CN_LIST_FOREACH(&lane->instances, node)
    {
        if (is_candidate(CN_CONTAINER_OF(node, struct cn_instance, link)))
            return true;
    }
    return false;
}

void cn_hung_sweep(struct cn_lane *lane)
{
    cn_loop_assert_owner(&lane->loop);
    if (lane->vm->entered || !has_candidate(lane))
        return;
    size_t count = gather(lane, NULL);
    struct work *work = cn_alloc(count * sizeof(*work));
    gather(lane, work);
    if (mark(lane, work, count)) {
        CN_LIST_FOREACH(&lane->instances, node)
        {
            struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
            struct cn_event *event = instance->may_go_on ? NULL : youngest(instance);
            if (event && !waits_for_another(event, work, count))
                fail(event);
        }
    }
    cn_free(work);
}
