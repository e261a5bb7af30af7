/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/far.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "object/node.h"
#include "remote/private.h"
#include "remote/question.h"
#include "worker/lane.h"
#include "worker/ws_far.h"
#include "worker/ws_move.h"

enum { KEEP_MS = 1000, ORDER = 2 /* even: those of calls are odd */ };

struct asked {
    struct cn_lane *lane;
    void (*done)(struct cn_lane *lane, void *asked, const uint8_t *answer, size_t size);
    void *data;
    uint8_t *bytes; /* owned */
    struct cn_buf head;
    struct cn_pipe_question question;
    uv_timer_t timer; /* of one that could not be asked */
};

static void asked_free(struct asked *asked)
{
    cn_free(asked->bytes);
    cn_buf_fini(&asked->head);
    cn_free(asked);
}

static void on_done(struct cn_pipe_question *question, enum cn_pipe_end end, uint8_t *bytes,
                    size_t size)
{
    struct asked *asked = CN_CONTAINER_OF(question, struct asked, question);
    struct cn_reply reply = {0};
    const uint8_t *body = NULL;
    size_t body_size = 0;
    bool good = end == CN_PIPE_ANSWERED &&
                cn_reply_get(&reply, bytes, size, &body, &body_size) == 0 &&
                reply.type == CN_REPLY_DONE;
    asked->done(asked->lane, asked->data, good ? body : NULL, good ? body_size : 0);
    cn_reply_clear(&reply);
    cn_free(bytes);
    asked_free(asked);
}

static void on_timer_closed(uv_handle_t *handle)
{
    asked_free(CN_CONTAINER_OF(handle, struct asked, timer));
}

static void on_failed(uv_timer_t *timer)
{
    struct asked *asked = CN_CONTAINER_OF(timer, struct asked, timer);
    asked->done(asked->lane, asked->data, NULL, 0);
    uv_close((uv_handle_t *)timer, on_timer_closed);
}

static void ask(void *data, struct cn_lane *worker, const struct cn_ws_asking *asking)
{
    struct cn_remote_lane *lane = worker->object_lane.remote;
    struct cn_question question = {.type = CN_QUESTION_SOCKETS, .lane = asking->to};
    struct asked *asked = CN_NEW(struct asked);
    (void)data;
    asked->lane = worker;
    asked->done = asking->done;
    asked->data = asking->asked;
    asked->bytes = asking->bytes;
    cn_question_put(&question, &asked->head);
    asked->question = (struct cn_pipe_question){.head = asked->head.data,
                                                .head_size = asked->head.size,
                                                .body = asking->bytes,
                                                .body_size = asking->size,
                                                .order = ORDER,
                                                .done = on_done};
    if (lane->pipes && cn_pipes_ask(lane->pipes, asking->disk, asking->to, &asked->question) == 0)
        return;
    uv_timer_init(&worker->loop, &asked->timer);
    uv_timer_start(&asked->timer, on_failed, 0, 0);
}

void cn_far_asked(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker, uint64_t ticket,
                  const struct cn_question *question, const uint8_t *body, size_t size)
{
    struct cn_reply reply = {.type = CN_REPLY_DONE};
    struct cn_buf answer = {0};
    if (!lane->worker || question->lane != lane->objects->index ||
        !cn_ws_far_asked(lane->worker, asker->disk, body, size, &answer))
        reply = (struct cn_reply){.type = CN_REPLY_FAILED, .code = CN_EPROTOCOL};
    size_t answer_size = answer.size;
    cn_served_reply(lane, ticket, &reply, cn_buf_take(&answer), answer_size);
}

void cn_far_break(struct cn_remote_lane *lane, uint64_t disk)
{
    if (lane->worker)
        cn_ws_far_break(lane->worker, disk);
}

void cn_far_open(struct cn_lane *worker)
{
    struct cn_remote_lane *lane = worker->object_lane.remote;
    const struct cn_remote_options *options = &lane->remote->options;
    lane->worker = worker;
    lane->carrier = (struct cn_ws_carrier){
        .disk = options->disk, .life = options->life, .keep_ms = KEEP_MS, .ask = ask};
    cn_ws_move_tie(worker, &lane->carrier);
}
