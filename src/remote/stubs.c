/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/stubs.h"

#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
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
    cn_envelope_back(&dispatch->envelope);
    return dispatch;
}

/* CN_FAULT_UNSENT, if it is an event. */
static unsigned unsent(const struct cn_dispatch *dispatch)
{
    return dispatch->serial ? 0 : CN_FAULT_UNSENT;
}

static void fail(struct sent *sent, unsigned faults, int code, const char *text)
{
    cn_envelope_refuse(&release(sent)->envelope, faults, code, text);
}

/* An event that was refused, or that a node of an earlier release does not know. */
static bool has_not_begun(const struct cn_reply *reply)
{
    bool unread = reply->code == CN_EPROTOCOL || reply->code == CN_EVERSION;
    return reply->type == CN_REPLY_REFUSED || (unread && !(reply->faults & CN_FAULT_REMOTE));
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
        dispatch->envelope.faults = reply->faults | (has_not_begun(reply) ? unsent(dispatch) : 0);
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
    unsigned lost = CN_FAULT_RETRYABLE | (end == CN_PIPE_UNSENT ? unsent(sent->dispatch) : 0);
    if (!sent->lane->pipes)
        fail(sent, lost, CN_ECLOSED, "the server is stopping");
    else if (end != CN_PIPE_ANSWERED)
        fail(sent, lost, CN_ECLOSED, "Network connection lost.");
    else if (cn_reply_get(&reply, bytes, size, &body, &body_size) < 0)
        fail(sent, CN_FAULT_REMOTE, CN_EPROTOCOL, "another node's answer cannot be read");
    else
        finish(release(sent), &reply, body, body_size);
    cn_reply_clear(&reply);
    cn_free(bytes);
}

static void cannot_send(struct sent *sent, int rc)
{
    unsigned faults = unsent(sent->dispatch);
    if (rc == CN_EOVERLOADED)
        fail(sent, faults | CN_FAULT_OVERLOADED, rc,
             "Too much is under way to the node of this stub.");
    else if (rc == CN_ENOTFOUND) /* no session of its disk is live */
        fail(sent, faults | CN_FAULT_RETRYABLE | CN_FAULT_RESET, CN_ECLOSED, ENDED);
    else
        fail(sent, faults | CN_FAULT_RETRYABLE, rc, "The node of this stub cannot be reached.");
}

void cn_stubs_carry(struct cn_remote_lane *lane, struct cn_dispatch *dispatch)
{
    const struct cn_place *to = &dispatch->envelope.to;
    bool event = !dispatch->serial;
    struct cn_question question = {.type = event ? CN_QUESTION_EVENT : CN_QUESTION_TARGET,
                                   .life = to->life,
                                   .lane = to->lane,
                                   .serial = dispatch->serial,
                                   .method = event ? dispatch->script : dispatch->method,
                                   .origin = dispatch->envelope.origin};
    if (event) {
        const char *word = cn_event_word(dispatch->handler);
        question.name = (uint8_t *)word;
        question.name_size = strlen(word);
    }
    struct sent *sent = CN_NEW(struct sent);
    sent->lane = lane;
    sent->dispatch = dispatch;
    cn_question_put(&question, &sent->head);
    sent->question =
        (struct cn_pipe_question){.head = sent->head.data,
                                  .head_size = sent->head.size,
                                  .body = dispatch->bytes,
                                  .body_size = dispatch->size,
                                  .order = event ? 0 : (uint64_t)dispatch->serial << 32 | 1,
                                  .done = on_done};
    /* Not in turn: whoever asks takes nodes in turn, and would meet the same lane of each. */
    uint64_t hash =
        event ? cn_hash_bytes(1, &lane->last_event, sizeof(lane->last_event)) : to->lane;
    lane->last_event += event;
    int rc = lane->pipes ? cn_pipes_ask(lane->pipes, to->disk, hash, &sent->question) : CN_ECLOSED;
    if (rc < 0)
        cannot_send(sent, rc);
}

void cn_stubs_lend(struct cn_object_lane *objects, const struct cn_object_key *object,
                   uint32_t serial, double number, const char *mark)
{
    struct cn_lease_owner owner = {.serial = object ? 0 : serial};
    struct cn_lease_holder to;
    if (object)
        owner.key = *object;
    if (cn_lent_mark_read(mark, &to.disk, &to.session))
        cn_leases_lend(cn_remote_lane_of(objects), &owner, number, &to);
}

/* --- to here --------------------------------------------------------------------------------- */

struct ticket {
    struct cn_remote_lane *lane;
    uint64_t number;           /* 0: nobody waits */
    struct cn_lease_holder by; /* who asks */
    uint32_t serial;
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
    if (dispatch->lent.count) {
        struct cn_lease_owner owner = {.serial = ticket->serial};
        bool waits = ticket->lane->pipes && cn_pipes_waits(ticket->lane->pipes, ticket->number);
        cn_leases_given(ticket->lane, &ticket->by, &owner, &dispatch->lent, result && waits);
    }
    cn_incoming_reply(ticket->lane, ticket->number, &reply, result,
                      result ? dispatch->result_size : 0);
    cn_free(ticket);
    cn_dispatch_free(dispatch);
}

static struct cn_dispatch *new_dispatch(const struct ticket *ticket, const char *handler,
                                        const uint8_t *body, size_t size,
                                        const struct cn_origin *origin)
{
    struct cn_lane *own = ticket->lane->objects->data;
    struct cn_dispatch *dispatch = cn_dispatch_new(own, own);
    dispatch->handler = handler;
    dispatch->bytes = cn_memdup(body, size);
    dispatch->size = size;
    dispatch->envelope.origin = *origin;
    dispatch->envelope.data = cn_memdup(ticket, sizeof(*ticket));
    dispatch->on_done = on_answered;
    dispatch->on_drop = on_drop;
    return dispatch;
}

static void deliver(const struct ticket *ticket, char *method, const uint8_t *body, size_t size,
                    const struct cn_origin *origin)
{
    struct cn_dispatch *dispatch = new_dispatch(ticket, "target", body, size, origin);
    dispatch->serial = ticket->serial;
    dispatch->method = method;
    dispatch->lent.wanted = ticket->number != 0;
    cn_dispatch_send(dispatch, NULL);
}

void cn_stubs_note(struct cn_remote_lane *lane, uint32_t serial, const char *method,
                   const uint8_t *bytes, size_t size)
{
    struct ticket nobody = {.lane = lane, .serial = serial};
    struct cn_origin origin = {0};
    deliver(&nobody, cn_strdup(method), bytes, size, &origin);
}

static void fail_here(struct cn_remote_lane *lane, uint64_t ticket, const char *text)
{
    struct cn_reply reply = {.type = CN_REPLY_FAILED,
                             .code = CN_ECLOSED,
                             .faults = CN_FAULT_RETRYABLE | CN_FAULT_RESET,
                             .text = (char *)text};
    cn_incoming_reply(lane, ticket, &reply, NULL, 0);
}

void cn_stubs_asked(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker, uint64_t ticket,
                    struct cn_question *question, const uint8_t *body, size_t size)
{
    struct ticket own = {lane, ticket, {asker->disk, asker->session}, question->serial};
    struct cn_lease_owner owner = {.serial = question->serial};
    struct cn_reply noted = {.type = CN_REPLY_DONE};
    if (question->life != lane->remote->options.life || question->lane != lane->objects->index) {
        fail_here(lane, ticket, ENDED);
        return;
    }
    switch (cn_leases_asked(lane, &own.by, &owner, question->method, body, size)) {
    case CN_LEASE_NOTED:
        cn_incoming_reply(lane, ticket, &noted, NULL, 0);
        return;
    case CN_LEASE_REFUSED:
        fail_here(lane, ticket, CN_PLACE_ENDED_TEXT);
        return;
    default:
        deliver(&own, question->method, body, size, &question->origin);
        question->method = NULL;
    }
}

void cn_event_asked(struct cn_remote_lane *lane, uint64_t ticket, struct cn_question *question,
                    const uint8_t *body, size_t size)
{
    const struct cn_remote_options *options = &lane->remote->options;
    struct ticket own = {.lane = lane, .number = ticket};
    struct cn_reply refused = {.type = CN_REPLY_REFUSED};
    const char *handler = cn_event_handler(question->name, question->name_size);
    if (!handler || lane->objects->stopping ||
        (options->is_ready && !options->is_ready(options->data)) ||
        !cn_dispatch_has_taker(lane->objects->data, question->method)) {
        cn_incoming_reply(lane, ticket, &refused, NULL, 0);
        return;
    }
    struct cn_dispatch *dispatch = new_dispatch(&own, handler, body, size, &question->origin);
    dispatch->script = question->method;
    question->method = NULL;
    cn_dispatch_send(dispatch, NULL);
}
