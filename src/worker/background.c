/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/background.h"

#include "base/mem.h"
#include "worker/dispatch.h"
#include "worker/lane.h"

struct sent {
    void (*done)(void *data, const struct cn_background_answer *answer);
    void *data;
};

static void on_done(struct cn_dispatch *dispatch)
{
    struct sent sent = *(struct sent *)dispatch->envelope.data;
    struct cn_background_answer answer = {dispatch->result, dispatch->result_size,
                                          dispatch->envelope.faults, dispatch->envelope.err};
    cn_free(dispatch->envelope.data);
    sent.done(sent.data, &answer);
    cn_dispatch_free(dispatch);
}

static void send_event(struct cn_background *background, const struct cn_background_event *event)
{
    struct cn_lane *lane = CN_CONTAINER_OF(background, struct cn_lane, background);
    struct sent *sent = CN_NEW(struct sent);
    *sent = (struct sent){event->done, event->data};
    struct cn_dispatch *dispatch = cn_dispatch_new(lane, lane);
    dispatch->script = cn_strdup(event->script);
    dispatch->handler = event->handler;
    dispatch->bytes = event->bytes;
    dispatch->size = event->size;
    dispatch->on_done = on_done;
    dispatch->envelope.data = sent;
    cn_dispatch_send(dispatch, NULL);
}

void cn_background_init(struct cn_background *background, struct cn_lane *lane)
{
    *background = (struct cn_background){
        .loop = &lane->loop,
        .node = lane->options.node,
        .objects = &lane->object_lane,
        .index = lane->options.index,
        .draining = &lane->draining,
        .deployment = &lane->deployment,
        .send = send_event,
    };
}

const struct cn_background_operations *cn_background_of(struct cn_lane *lane,
                                                        struct cn_background **background)
{
    *background = &lane->background;
    return lane->options.background;
}
