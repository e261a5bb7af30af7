/* SPDX-License-Identifier: Apache-2.0 */
/* object/press.c - back-pressure: an object that writes more than the disk takes waits, and nobody
 * else of its lane does. See O8 of object/object.h.
 *
 * `lane->pressed` has the objects that wait, oldest first. A step lets them go on one at a time,
 * each as soon as the store of its shard has room: what one writes at once may be enough for the
 * next one to wait again. Flushers wake lanes with such objects (lane_shard.c), and the lane's
 * clock looks too, for room that others have made. */
#include <inttypes.h>

#include "base/diag.h"
#include "base/loop.h"
#include "object/internal.h"
#include "object/node.h"
#include "store/store.h"

/* After how long somebody who looks at the messages should know. */
#define SAY_MS 5000

static bool is_pressed(const struct cn_object *object)
{
    return !cn_list_empty(&object->press_link);
}

void cn_object_press(struct cn_object *object)
{
    struct cn_object_lane *lane = object->lane;
    if (is_pressed(object))
        return;
    if (cn_list_empty(&lane->pressed))
        lane->pressed_since_ms = uv_now(lane->loop);
    cn_list_push_back(&lane->pressed, &object->press_link);
    atomic_fetch_add(&object->shard->pressed_count, 1);
    cn_object_lock(object);
    if (object->ns)
        cn_counter_add(&cn_object_metrics(object)->held, 1);
    cn_object_lane_wake(lane, object); /* its class is to know */
}

void cn_object_press_forget(struct cn_object *object)
{
    struct cn_object_lane *lane = object->lane;
    if (!is_pressed(object))
        return;
    cn_list_remove(&object->press_link);
    atomic_fetch_sub(&object->shard->pressed_count, 1);
    cn_object_unlock(object);
    if (cn_list_empty(&lane->pressed) && lane->pressed_said)
        cn_info("the disk keeps up again: objects waited for it for %" PRIu64 " s",
                (uv_now(lane->loop) - lane->pressed_since_ms) / 1000);
    if (cn_list_empty(&lane->pressed))
        lane->pressed_said = false;
}

/* A log that takes nothing any more refuses them. */
static bool may_go_on(const struct cn_object *object)
{
    struct cn_err err;
    struct cn_store *store = object->shard->store;
    return cn_store_pressure(store) == CN_LOG_ROOMY || cn_store_status(store, &err) < 0;
}

bool cn_object_lane_unpress(struct cn_object_lane *lane)
{
    CN_LIST_FOREACH(&lane->pressed, node)
    {
        struct cn_object *object = CN_CONTAINER_OF(node, struct cn_object, press_link);
        if (!may_go_on(object))
            continue;
        cn_object_press_forget(object);
        cn_object_lane_wake(lane, object);
        return true;
    }
    return false;
}

bool cn_object_press_tell(struct cn_object *object)
{
    bool pressed = is_pressed(object);
    if (object->press_told == pressed || cn_object_is_broken(object) || !object->instance ||
        !object->class_->press)
        return false;
    object->press_told = pressed;
    cn_object_enter(object);
    object->class_->press(object, object->instance, pressed);
    cn_object_leave(object);
    return true;
}

void cn_object_press_tick(struct cn_object_lane *lane)
{
    if (cn_list_empty(&lane->pressed) || lane->pressed_said ||
        uv_now(lane->loop) - lane->pressed_since_ms < SAY_MS)
        return;
    const struct cn_object *first =
        CN_CONTAINER_OF(lane->pressed.next, struct cn_object, press_link);
    lane->pressed_said = true;
    cn_warn(
        "the disk does not keep up with what is written: %zu objects of lane %u wait, the first "
        "of them of %s; cairn_objects_held_total counts them",
        cn_list_length(&lane->pressed), lane->index, first->ns ? first->ns->name : "no worker");
}
