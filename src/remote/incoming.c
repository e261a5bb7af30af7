/* SPDX-License-Identifier: Apache-2.0 */
/* remote/incoming.c - calls that other nodes make here. See remote.h.
 *
 * A pipe comes to the lane that has the objects it is for, so a call is handed in without a further
 * step; a question that cannot be taken is answered at once. */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "object/message.h"
#include "object/node.h"
#include "remote/private.h"
#include "remote/question.h"
#include "service/def.h"
#include "service/service.h"
#include "service/wire.h"

/* A call to a class of a worker; of a service's the `data` of its envelope has the second half. */
struct ticket {
    struct cn_remote_lane *lane;
    uint64_t number;           /* 0: nobody waits */
    struct cn_lease_holder by; /* who asks */
};

struct served {
    struct cn_message message;
    struct ticket ticket;
};

/* --- answers --------------------------------------------------------------------------------- */

void cn_incoming_reply(struct cn_remote_lane *lane, uint64_t ticket, const struct cn_reply *reply,
                       uint8_t *body, size_t size)
{
    static const struct cn_reply too_much = {.type = CN_REPLY_FAILED,
                                             .code = CN_EOVERLOADED,
                                             .faults = CN_FAULT_OVERLOADED,
                                             .text =
                                                 (char *)"The call was carried out, but too much "
                                                         "waits to be sent to the node that made "
                                                         "it: its result is lost."};
    struct cn_buf head = {0};
    if (!lane->pipes) {
        cn_free(body);
        return;
    }
    cn_reply_put(reply, &head);
    if (size > CN_PIPE_MESSAGE_MAX - head.size ||
        !cn_pipes_answer(lane->pipes, ticket, head.data, head.size, body, size)) {
        cn_free(body);
        cn_buf_clear(&head);
        cn_reply_put(&too_much, &head);
        (void)cn_pipes_answer(lane->pipes, ticket, head.data, head.size, NULL, 0); /* or no answer
                                                                                    */
    }
    cn_buf_fini(&head);
}

static void reply_error(struct cn_remote_lane *lane, uint64_t ticket, unsigned faults, int code,
                        const char *text)
{
    struct cn_reply reply = {
        .type = CN_REPLY_FAILED, .code = code, .faults = faults, .text = (char *)text};
    cn_incoming_reply(lane, ticket, &reply, NULL, 0);
}

static void refuse(struct cn_remote_lane *lane, uint64_t ticket, unsigned shard)
{
    const struct cn_remote_options *options = &lane->remote->options;
    struct cn_remote_owner owner = options->owner(options->data, shard);
    struct cn_reply reply = {.type = CN_REPLY_REFUSED, .owner = owner.here ? 0 : owner.disk};
    cn_incoming_reply(lane, ticket, &reply, NULL, 0);
}

/* What has become of a call. */
static struct cn_reply reply_of(const struct cn_envelope *envelope)
{
    struct cn_reply reply = {.type = CN_REPLY_DONE};
    if (envelope->err.code)
        reply = (struct cn_reply){.type = CN_REPLY_FAILED,
                                  .code = envelope->err.code,
                                  .faults = envelope->faults,
                                  .text = (char *)envelope->err.text};
    return reply;
}

/* --- O3 -------------------------------------------------------------------------------------- */

/* Turns up to this one are refused, by shard. */
static uint32_t *turns_of(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker)
{
    uint32_t *turns = cn_map_find(&lane->askers, &asker->number, sizeof(asker->number));
    if (turns)
        return turns;
    turns = cn_alloc_zero(lane->objects->shard_count * sizeof(*turns));
    (void)cn_map_set(&lane->askers, &asker->number, sizeof(asker->number), turns);
    return turns;
}

void cn_incoming_gone(void *data, const struct cn_pipe_asker *asker)
{
    struct cn_remote_lane *lane = data;
    cn_free(cn_map_take(&lane->askers, &asker->number, sizeof(asker->number)));
    cn_node_calls_gone(lane, asker);
}

static bool is_taken(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker, unsigned shard,
                     uint32_t turn)
{
    uint32_t *turns = turns_of(lane, asker);
    if (turn > turns[shard] && !lane->objects->stopping &&
        cn_lane_shard_is_here(&lane->objects->shards[shard]))
        return true;
    if (turn > turns[shard])
        turns[shard] = turn;
    return false;
}

/* --- calls ----------------------------------------------------------------------------------- */

static void hand_in(struct cn_remote_lane *lane, struct cn_call *call, size_t size)
{
    cn_remote_add(&lane->remote->numbers.served, 1);
    call->size = size;
    call->envelope.from = call->envelope.to = cn_desk_place(lane->objects->desk);
    cn_envelope_hand_in(&call->envelope);
    cn_call_take_in(call);
}

static void message_drop(struct cn_envelope *envelope)
{
    struct served *served = CN_CONTAINER_OF(cn_message_of(envelope), struct served, message);
    cn_message_fini(&served->message);
    cn_free(served);
}

/* What the answer has by reference. An answer that was held back for ever (`there` is false) has
 * given nothing away. */
static void give(const struct ticket *ticket, const struct cn_message *message, bool there)
{
    struct cn_remote_lane *lane = ticket->lane;
    struct cn_lease_owner owner = {.key = message->call.key};
    bool waits = there && lane->pipes && cn_pipes_waits(lane->pipes, ticket->number);
    cn_leases_given(lane, &ticket->by, &owner, &message->lent, waits);
}

static void message_done(struct cn_envelope *envelope)
{
    struct cn_message *message = cn_message_of(envelope);
    struct served *served = CN_CONTAINER_OF(message, struct served, message);
    cn_message_settle(message);
    struct cn_reply reply = reply_of(envelope);
    reply.has_bytes = message->result != NULL;
    uint8_t *result = message->result;
    message->result = NULL;
    if (message->lent.count)
        give(&served->ticket, message, result != NULL);
    cn_incoming_reply(served->ticket.lane, served->ticket.number, &reply, result,
                      result ? message->result_size : 0);
    message_drop(envelope);
}

/* A call to something lent. False: it has been answered. */
static bool is_for_owner(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker,
                         uint64_t ticket, const struct cn_question *question, const uint8_t *body,
                         size_t size)
{
    struct cn_lease_owner owner = {.key.namespace_id = question->namespace_id};
    struct cn_lease_holder by = {asker->disk, asker->session};
    struct cn_reply noted = {.type = CN_REPLY_DONE};
    memcpy(owner.key.id, question->id, sizeof(owner.key.id));
    switch (cn_leases_asked(lane, &by, &owner, question->method, body, size)) {
    case CN_LEASE_NOTED:
        cn_incoming_reply(lane, ticket, &noted, NULL, 0);
        return false;
    case CN_LEASE_REFUSED:
        reply_error(lane, ticket, CN_FAULT_RETRYABLE | CN_FAULT_RESET, CN_ECLOSED,
                    CN_PLACE_ENDED_TEXT);
        return false;
    default:
        return true;
    }
}

static void take_message(struct cn_remote_lane *lane, struct cn_namespace *ns,
                         const struct ticket *ticket, struct cn_question *question,
                         const uint8_t *body, size_t size)
{
    struct served *served = CN_NEW(struct served);
    struct cn_message *message = &served->message;
    struct cn_call *call = &message->call;
    served->ticket = *ticket;
    message->lent.wanted = ticket->number != 0;
    call->kind = (enum cn_call_kind)question->kind;
    call->ns = ns;
    call->key.namespace_id = ns->id;
    memcpy(call->key.id, question->id, sizeof(call->key.id));
    call->payload = message;
    call->envelope.origin = question->origin;
    call->envelope.on_done = message_done;
    call->envelope.drop = message_drop;
    call->name = (char *)question->name; /* with a NUL behind it */
    call->name_size = question->name_size;
    message->method = question->method;
    question->name = NULL;
    question->method = NULL;
    message->bytes = cn_memdup(body, size);
    message->size = size;
    hand_in(lane, call, size);
}

static void service_done(struct cn_service_call *call)
{
    struct ticket *ticket = call->call.envelope.data;
    struct cn_reply reply = reply_of(&call->call.envelope);
    struct cn_buf body = {0};
    if (reply.type == CN_REPLY_DONE)
        cn_service_wire_answer(cn_service_of(call->call.ns->name)->wire, call, &body);
    size_t size = body.size;
    cn_incoming_reply(ticket->lane, ticket->number, &reply, cn_buf_take(&body), size);
    cn_free(ticket);
    cn_service_call_free(call);
}

static void service_drop(struct cn_envelope *envelope)
{
    cn_free(envelope->data);
    cn_service_call_free(cn_service_call_of(envelope));
}

static void take_service(struct cn_remote_lane *lane, struct cn_namespace *ns, uint64_t ticket,
                         const struct cn_question *question, const uint8_t *body, size_t size)
{
    const struct cn_service_def *def = cn_service_of(ns->name);
    if (!def || !cn_service_wire_has(def->wire, question->op) || !question->name) {
        reply_error(lane, ticket, 0, CN_EVERSION,
                    "the node that has the object does not know this operation");
        return;
    }
    struct cn_service_call *call = cn_alloc_zero(def->wire->size);
    cn_service_call_init(call, ns, (const char *)question->name, question->op, def->wire->fini);
    int rc = cn_service_wire_asked(def->wire, call, body, size, ns->node);
    if (rc < 0 || memcmp(call->call.key.id, question->id, sizeof(question->id)) != 0) {
        cn_service_call_free(call);
        reply_error(lane, ticket, 0, rc < 0 ? rc : CN_EPROTOCOL,
                    "the node that has the object cannot read what is asked of it");
        return;
    }
    struct ticket *own = CN_NEW(struct ticket);
    *own = (struct ticket){.lane = lane, .number = ticket};
    call->call.envelope.data = own;
    call->call.envelope.origin = question->origin;
    call->call.envelope.drop = service_drop;
    call->done = service_done;
    hand_in(lane, &call->call, size);
}

/* That of a service may have been made on another node just now, by its API. */
static struct cn_namespace *find_namespace(struct cn_node *node, const struct cn_question *question)
{
    struct cn_namespace *ns = cn_node_namespace_find(node, question->namespace_id);
    return !ns && question->type == CN_QUESTION_SERVICE && question->method
               ? cn_service_namespace(node, question->namespace_id, question->method)
               : ns;
}

static void take_call(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker,
                      uint64_t ticket, struct cn_question *question, const uint8_t *body,
                      size_t size)
{
    struct cn_node *node = lane->objects->node;
    struct cn_object_key key;
    memcpy(key.id, question->id, sizeof(key.id));
    unsigned shard = cn_shard_index(&key, lane->objects->shard_count);
    if (!is_taken(lane, asker, shard, question->turn)) {
        refuse(lane, ticket, shard);
        return;
    }
    struct cn_namespace *ns = find_namespace(node, question);
    key.namespace_id = question->namespace_id;
    bool service = ns && cn_service_owns(ns->name);
    if (!ns || service != (question->type == CN_QUESTION_SERVICE) ||
        cn_node_owner(node, &key) != lane->objects) {
        reply_error(lane, ticket, CN_FAULT_RETRYABLE, CN_ENOTFOUND,
                    "the node that has the object does not know its class: not every node has the "
                    "same deployment yet");
        return;
    }
    struct ticket own = {lane, ticket, {asker->disk, asker->session}};
    if (service)
        take_service(lane, ns, ticket, question, body, size);
    else if (question->kind != CN_CALL_OTHER ||
             is_for_owner(lane, asker, ticket, question, body, size))
        take_message(lane, ns, &own, question, body, size);
}

void cn_incoming_note(struct cn_remote_lane *lane, const struct cn_object_key *key,
                      const char *method, const uint8_t *bytes, size_t size)
{
    struct cn_namespace *ns = cn_node_namespace_find(lane->objects->node, key->namespace_id);
    struct cn_question question = {.kind = CN_CALL_OTHER, .method = cn_strdup(method)};
    struct ticket nobody = {.lane = lane};
    memcpy(question.id, key->id, sizeof(question.id));
    unsigned shard = cn_shard_index(key, lane->objects->shard_count);
    if (ns && cn_lane_shard_is_here(&lane->objects->shards[shard]))
        take_message(lane, ns, &nobody, &question, bytes, size);
    cn_question_clear(&question);
}

void cn_incoming_asked(void *data, const struct cn_pipe_asker *asker, uint64_t ticket,
                       uint8_t *bytes, size_t size)
{
    struct cn_remote_lane *lane = data;
    struct cn_question question = {0};
    const uint8_t *body;
    size_t body_size;
    int rc = cn_question_get(&question, bytes, size, &body, &body_size);
    if (rc < 0)
        reply_error(lane, ticket, 0, rc, "the node that was asked cannot read the question");
    else if (question.type == CN_QUESTION_TARGET)
        cn_stubs_asked(lane, asker, ticket, &question, body, body_size);
    else if (question.type == CN_QUESTION_EVENT)
        cn_event_asked(lane, ticket, &question, body, body_size);
    else if (question.type == CN_QUESTION_NODE)
        cn_node_calls_asked(lane, asker, ticket, &question, body, body_size);
    else if (question.type == CN_QUESTION_SOCKETS)
        cn_remote_sockets_asked(lane, asker, ticket, &question, body, body_size);
    else
        take_call(lane, asker, ticket, &question, body, body_size);
    cn_question_clear(&question);
    cn_free(bytes);
}
