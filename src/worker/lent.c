/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/lent.h"

#include "base/mem.h"
#include "object/node.h"
#include "worker/dispatch.h"
#include "worker/lane.h"

static void on_done(struct cn_dispatch *dispatch)
{
    struct cn_lent_letter *letter = dispatch->envelope.data;
    letter->done(letter, &dispatch->envelope, dispatch->result, dispatch->result_size);
    cn_dispatch_free(dispatch);
}

static void on_drop(struct cn_dispatch *dispatch)
{
    struct cn_lent_letter *letter = dispatch->envelope.data;
    letter->dropped(letter);
}

static struct cn_lane *lane_at(struct cn_lane *lane, unsigned index)
{
    if (index == lane->options.index)
        return lane;
    struct cn_object_lane *other = cn_node_lane(lane->options.node, index);
    return other ? other->data : NULL;
}

bool cn_lent_send(struct cn_object_lane *objects, struct cn_lent_letter *letter,
                  struct cn_object *gate)
{
    struct cn_lane *lane = objects->data;
    struct cn_lane *to = letter->disk ? lane : lane_at(lane, letter->lane);
    if (!to || !letter->serial)
        return false;
    struct cn_dispatch *dispatch = cn_dispatch_new(lane, to);
    if (letter->disk)
        dispatch->envelope.to =
            cn_node_place_of(&lane->desk, letter->disk, letter->life, letter->lane);
    dispatch->serial = letter->serial;
    dispatch->handler = "target";
    dispatch->method = cn_strdup(letter->method);
    dispatch->bytes = letter->bytes;
    dispatch->size = letter->size;
    letter->bytes = NULL;
    dispatch->envelope.origin = letter->origin;
    dispatch->envelope.data = letter;
    dispatch->on_done = on_done;
    dispatch->on_drop = on_drop;
    cn_dispatch_send(dispatch, gate);
    return true;
}
