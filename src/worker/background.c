/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/background.h"

#include "base/mem.h"
#include "worker/dispatch.h"
#include "worker/lane.h"

struct sent {
    void (*done)(void *data, const struct cn_background_answer *answer);
    void *data;
};

static void post(struct cn_lane *lane, const struct cn_background_event *event, struct sent *sent);

/* B2 */
static bool is_run_here(const struct cn_lane *lane, const struct cn_dispatch *dispatch)
{
    const struct cn_envelope *envelope = &dispatch->envelope;
    return envelope->err.code && (envelope->faults & CN_FAULT_UNSENT) && !lane->draining;
}

static void run_here(struct cn_lane *lane, struct cn_dispatch *dispatch)
{
    struct cn_background_event event = {.script = dispatch->script,
                                        .handler = dispatch->handler,
                                        .bytes = dispatch->bytes,
                                        .size = dispatch->size};
    dispatch->bytes = NULL;
    post(lane, &event, dispatch->envelope.data);
    cn_dispatch_free(dispatch);
}

static void on_done(struct cn_dispatch *dispatch)
{
    struct cn_lane *lane = dispatch->envelope.from.desk->data;
    if (is_run_here(lane, dispatch)) {
        run_here(lane, dispatch);
        return;
    }
    struct sent sent = *(struct sent *)dispatch->envelope.data;
    struct cn_background_answer answer = {dispatch->result, dispatch->result_size,
                                          dispatch->envelope.faults, dispatch->envelope.err};
    cn_free(dispatch->envelope.data);
    sent.done(sent.data, &answer);
    cn_dispatch_free(dispatch);
}

static void post(struct cn_lane *lane, const struct cn_background_event *event, struct sent *sent)
{
    struct cn_dispatch *dispatch = cn_dispatch_new(lane, lane);
    dispatch->script = cn_strdup(event->script);
    dispatch->handler = event->handler;
    dispatch->bytes = event->bytes;
    dispatch->size = event->size;
    if (event->at.kind == CN_PLACE_NODE)
        dispatch->envelope.to = event->at;
    dispatch->on_done = on_done;
    dispatch->envelope.data = sent;
    cn_dispatch_send(dispatch, NULL);
}

static void send_event(struct cn_background *background, const struct cn_background_event *event)
{
    struct sent *sent = CN_NEW(struct sent);
    *sent = (struct sent){event->done, event->data};
    post(CN_CONTAINER_OF(background, struct cn_lane, background), event, sent);
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
