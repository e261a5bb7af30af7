/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/target.h"

#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "object/node.h"
#include "remote/private.h"
#include "remote/question.h"
#include "worker/dispatch.h"
#include "worker/lane.h"

#define ENDED "The worker that this stub belongs to has ended."

/* --- from here ------------------------------------------------------------------------------- */

struct sent {
    struct cn_remote_lane *lane;
    struct cn_dispatch *dispatch;
    struct cn_buf head;
    struct cn_pipe_question question;
};

static struct cn_dispatch *release(struct sent *sent)
{
    struct cn_dispatch *dispatch = sent->dispatch;
    cn_buf_fini(&sent->head);
    cn_free(sent);
    return dispatch;
}

static void fail(struct sent *sent, unsigned faults, int code, const char *text)
{
    cn_envelope_refuse(&release(sent)->envelope, faults, code, text);
}

static void finish(struct cn_dispatch *dispatch, const struct cn_reply *reply, const uint8_t *body,
                   size_t size)
{
    if (reply->has_bytes) {
        dispatch->result = cn_memdup(body, size);
        dispatch->result_size = size;
    }
    if (reply->type != CN_REPLY_DONE) {
        (void)cn_err_set(&dispatch->envelope.err, reply->code ? reply->code : CN_ECLOSED, "%s",
                         reply->text ? reply->text : "");
        dispatch->envelope.faults = reply->faults;
    }
    cn_envelope_answer(&dispatch->envelope, NULL);
}

static void on_done(struct cn_pipe_question *question, enum cn_pipe_end end, uint8_t *bytes,
                    size_t size)
{
    struct sent *sent = CN_CONTAINER_OF(question, struct sent, question);
    struct cn_reply reply = {0};
    const uint8_t *body;
    size_t body_size;
    if (!sent->lane->pipes)
        fail(sent, CN_FAULT_RETRYABLE, CN_ECLOSED, "the server is stopping");
    else if (end != CN_PIPE_ANSWERED)
        fail(sent, CN_FAULT_RETRYABLE, CN_ECLOSED, "Network connection lost.");
    else if (cn_reply_get(&reply, bytes, size, &body, &body_size) < 0)
        fail(sent, CN_FAULT_REMOTE, CN_EPROTOCOL, "another node's answer cannot be read");
    else
        finish(release(sent), &reply, body, body_size);
    cn_reply_clear(&reply);
    cn_free(bytes);
}

void cn_target_send(struct cn_object_lane *objects, struct cn_dispatch *dispatch)
{
    struct cn_remote_lane *lane = objects->remote;
    struct cn_question question = {.type = CN_QUESTION_TARGET,
                                   .life = dispatch->life,
                                   .lane = dispatch->lane,
                                   .serial = dispatch->serial,
                                   .method = dispatch->method,
                                   .origin = dispatch->envelope.origin};
    struct sent *sent = CN_NEW(struct sent);
    sent->lane = lane;
    sent->dispatch = dispatch;
    cn_question_put(&question, &sent->head);
    sent->question = (struct cn_pipe_question){.head = sent->head.data,
                                               .head_size = sent->head.size,
                                               .body = dispatch->bytes,
                                               .body_size = dispatch->size,
                                               .order = (uint64_t)dispatch->serial << 32 | 1,
                                               .done = on_done};
    int rc = lane->pipes
                 ? cn_pipes_ask(lane->pipes, dispatch->disk, dispatch->lane, &sent->question)
                 : CN_ECLOSED;
    if (rc == CN_EOVERLOADED)
        fail(sent, CN_FAULT_OVERLOADED, rc, "Too much is under way to the node of this stub.");
    else if (rc == CN_ENOTFOUND)
        fail(sent, CN_FAULT_RETRYABLE, CN_ECLOSED, ENDED);
    else if (rc < 0)
        fail(sent, CN_FAULT_RETRYABLE, rc, "The node of this stub cannot be reached.");
}

/* --- to here --------------------------------------------------------------------------------- */

struct ticket {
    struct cn_remote_lane *lane;
    uint64_t number;
};

static void on_drop(struct cn_dispatch *dispatch)
{
    cn_free(dispatch->envelope.data);
}

static void on_answered(struct cn_dispatch *dispatch)
{
    struct ticket *ticket = dispatch->envelope.data;
    const struct cn_envelope *envelope = &dispatch->envelope;
    struct cn_reply reply = {.type = CN_REPLY_DONE, .has_bytes = dispatch->result != NULL};
    if (envelope->err.code) {
        reply.type = CN_REPLY_FAILED;
        reply.code = envelope->err.code;
        reply.faults = envelope->faults;
        reply.text = (char *)envelope->err.text;
    }
    uint8_t *result = dispatch->result;
    dispatch->result = NULL;
    cn_served_reply(ticket->lane, ticket->number, &reply, result,
                    result ? dispatch->result_size : 0);
    cn_free(ticket);
    cn_dispatch_free(dispatch);
}

void cn_target_asked(struct cn_remote_lane *lane, uint64_t ticket, struct cn_question *question,
                     const uint8_t *body, size_t size)
{
    struct cn_lane *own = lane->objects->data;
    if (question->life != lane->remote->options.life || question->lane != lane->objects->index) {
        struct cn_reply reply = {.type = CN_REPLY_FAILED,
                                 .code = CN_ECLOSED,
                                 .faults = CN_FAULT_RETRYABLE,
                                 .text = (char *)ENDED};
        cn_served_reply(lane, ticket, &reply, NULL, 0);
        return;
    }
    struct ticket *mine = CN_NEW(struct ticket);
    *mine = (struct ticket){lane, ticket};
    struct cn_dispatch *dispatch = cn_dispatch_new(own, own);
    dispatch->serial = question->serial;
    dispatch->handler = "target";
    dispatch->method = question->method;
    question->method = NULL;
    dispatch->bytes = cn_memdup(body, size);
    dispatch->size = size;
    dispatch->envelope.origin = question->origin;
    dispatch->envelope.data = mine;
    dispatch->on_done = on_answered;
    dispatch->on_drop = on_drop;
    cn_dispatch_send(dispatch, NULL);
}
