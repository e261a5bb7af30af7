/* SPDX-License-Identifier: Apache-2.0 */
/* remote/outgoing.c - calls that go to other nodes. See remote.h.
 *
 *     a call's state   it is in      moves to
 *     HELD             way->held     SENT; ends: its time is over, the lane ends; goes back into
 *                                    its own lane, if the shard is here now
 *     SENT             way->sent     HELD, if nothing has happened; ends: answered, lost */
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/message.h"
#include "object/node.h"
#include "remote/private.h"
#include "remote/question.h"
#include "service/def.h"
#include "service/service.h"
#include "service/wire.h"

enum { CHECK_MS = 10, ORDER_MS = 1000 /* O4 */ };

#define STOPPING "the server is stopping"
#define LOST "Network connection lost."

struct cn_outgoing_call {
    struct cn_list link;
    struct cn_outgoing *way;
    struct cn_call *call;
    uint64_t number; /* rises on a lane, in the order in which calls came */
    uint64_t disk;   /* whom it was sent to, */
    uint32_t turn;   /* and in which turn: O3 */
    uint64_t came_ms;
    bool stale;         /* O4: it is not tried again */
    struct cn_buf body; /* of a service's call; others lend their own bytes */
    struct cn_buf head;
    struct cn_pipe_question question;
};

static bool is_service(const struct cn_call *call)
{
    return cn_service_owns(call->ns->name);
}

static struct cn_lane_shard *shard_of(const struct cn_outgoing *way)
{
    return &way->lane->objects->shards[way->shard];
}

static bool is_here(const struct cn_outgoing *way)
{
    return cn_lane_shard_is_here(shard_of(way));
}

/* --- O3, O4: calls of one object that were sent elsewhere, or in an earlier turn ---------------
 */

static bool went(const struct cn_outgoing_call *sent, uint64_t disk, uint32_t turn)
{
    return sent->disk == disk && sent->turn == turn;
}

/* It comes back, or ends. */
static void forget_sent(struct cn_outgoing_call *sent)
{
    struct cn_outgoing *way = sent->way;
    if (sent->disk && !went(sent, way->disk, way->sent_turn))
        way->others--;
    sent->disk = 0;
}

static void count_sent(struct cn_outgoing_call *sent, uint64_t disk)
{
    struct cn_outgoing *way = sent->way;
    sent->disk = disk;
    sent->turn = way->turn;
    if (disk == way->disk && way->turn == way->sent_turn)
        return;
    way->disk = disk;
    way->sent_turn = way->turn;
    way->others = 0;
    CN_LIST_FOREACH(&way->sent, node)
    way->others +=
        !went(CN_CONTAINER_OF(node, struct cn_outgoing_call, link), disk, way->sent_turn);
}

static bool is_same(const struct cn_outgoing_call *one, const struct cn_outgoing_call *other)
{
    return memcmp(&one->call->key, &other->call->key, sizeof(one->call->key)) == 0;
}

/* Whether calls to its object that came before it have not come back from another disk than this
 * one (0: this node), or from an earlier turn, of which the owner may refuse them and take this one.
 * After a while they are not waited for, and not tried again. */
static bool is_before_elsewhere(const struct cn_outgoing_call *call, uint64_t disk, uint32_t turn)
{
    const struct cn_outgoing *way = call->way;
    if (disk && disk == way->disk && turn == way->sent_turn && !way->others)
        return false;
    bool waits = uv_now(way->lane->objects->loop) - call->came_ms < ORDER_MS;
    bool found = false;
    CN_LIST_FOREACH(&way->sent, node)
    {
        struct cn_outgoing_call *sent = CN_CONTAINER_OF(node, struct cn_outgoing_call, link);
        if (sent->stale || went(sent, disk, turn) || !is_same(sent, call))
            continue;
        found = true;
        sent->stale = !waits;
    }
    return found && waits;
}

/* --- ends ------------------------------------------------------------------------------------ */

/* The call is its lane's again (P8). */
static struct cn_call *release(struct cn_outgoing_call *sent)
{
    struct cn_call *call = sent->call;
    forget_sent(sent);
    cn_list_remove(&sent->link);
    cn_buf_fini(&sent->head);
    cn_buf_fini(&sent->body);
    cn_free(sent);
    cn_call_back(call);
    return call;
}

static void fail(struct cn_outgoing_call *sent, unsigned faults, int code, const char *text)
{
    cn_call_turn_away(release(sent), faults, code, text);
}

static unsigned lost_faults(const struct cn_call *call)
{
    /* What an object has lent is gone with it. */
    bool lent = call->kind == CN_CALL_OTHER && !is_service(call);
    return CN_FAULT_RETRYABLE | (lent ? CN_FAULT_RESET : 0u);
}

/* The result of one that went well. False: it is none. */
static bool take_result(struct cn_call *call, const struct cn_reply *reply, const uint8_t *body,
                        size_t size)
{
    if (is_service(call)) {
        const struct cn_service_def *def = cn_service_of(call->ns->name);
        return reply->type != CN_REPLY_DONE ||
               cn_service_wire_answered(def->wire, cn_service_request(call), body, size,
                                        call->ns->node) == 0;
    }
    struct cn_message *message = cn_message_of(&call->envelope);
    if (!reply->has_bytes)
        return true;
    message->result = cn_try_alloc(size + 1);
    if (!message->result)
        return false;
    memcpy(message->result, body, size);
    message->result_size = size;
    return true;
}

static void finish(struct cn_call *call, const struct cn_reply *reply, const uint8_t *body,
                   size_t size)
{
    if (!take_result(call, reply, body, size)) {
        cn_call_turn_away(call, CN_FAULT_REMOTE, CN_EPROTOCOL,
                          "another node's answer cannot be read");
        return;
    }
    if (reply->type == CN_REPLY_FAILED) {
        (void)cn_err_set(&call->envelope.err, reply->code, "%s", reply->text ? reply->text : "");
        call->envelope.faults = reply->faults;
    } else if (!is_service(call)) {
        call->result = call->payload;
    }
    cn_envelope_answer(&call->envelope, NULL);
}

/* --- holding --------------------------------------------------------------------------------- */

static void on_time(uv_timer_t *timer)
{
    struct cn_remote_lane *lane = CN_CONTAINER_OF(timer, struct cn_remote_lane, timer);
    cn_outgoing_check(lane);
}

static void uncount(struct cn_remote_lane *lane, const struct cn_outgoing_call *held)
{
    lane->held_count--;
    cn_remote_add(&lane->remote->numbers.held, -1);
    lane->held_bytes -= held->call->size;
}

/* In its place by number: those that come back do so in any order. */
static void put_in_order(struct cn_list *list, struct cn_outgoing_call *held)
{
    struct cn_list *before = list->prev;
    while (before != list &&
           CN_CONTAINER_OF(before, struct cn_outgoing_call, link)->number > held->number)
        before = before->prev;
    cn_list_push_front(before, &held->link); /* behind it */
}

static void hold(struct cn_outgoing_call *call)
{
    struct cn_outgoing *way = call->way;
    struct cn_remote_lane *lane = way->lane;
    const struct cn_remote_options *options = &lane->remote->options;
    cn_list_remove(&call->link);
    forget_sent(call);
    if (lane->held_count >= options->held_max ||
        (lane->held_count && lane->held_bytes + call->call->size > options->held_bytes_max)) {
        fail(call, CN_FAULT_OVERLOADED | CN_FAULT_RETRYABLE, CN_EOVERLOADED,
             "Too many calls wait for objects that no node answers for at the moment.");
        return;
    }
    lane->held_count++;
    cn_remote_add(&lane->remote->numbers.held, 1);
    lane->held_bytes += call->call->size;
    if (cn_list_empty(&way->held))
        cn_list_push_back(&lane->blocked, &way->link);
    put_in_order(&way->held, call);
    if (!uv_is_active((uv_handle_t *)&lane->timer))
        uv_timer_start(&lane->timer, on_time, CHECK_MS, CHECK_MS);
}

static struct cn_outgoing_call *first_held(const struct cn_outgoing *way)
{
    return cn_list_empty(&way->held)
               ? NULL
               : CN_CONTAINER_OF(way->held.next, struct cn_outgoing_call, link);
}

static void unhold(struct cn_outgoing_call *held)
{
    uncount(held->way->lane, held);
    cn_list_remove(&held->link);
    if (cn_list_empty(&held->way->held))
        cn_list_remove(&held->way->link);
}

/* --- sending --------------------------------------------------------------------------------- */

static void go_on(struct cn_outgoing *way);

static void on_refused(struct cn_outgoing_call *sent, uint64_t owner)
{
    struct cn_outgoing *way = sent->way;
    cn_remote_add(&way->lane->remote->numbers.refused, 1);
    if (sent->stale) { /* O4 */
        fail(sent, CN_FAULT_RETRYABLE | CN_FAULT_REMOTE, CN_ECLOSED, CN_SHARD_AWAY);
        return;
    }
    uint64_t now = uv_now(way->lane->objects->loop);
    uint64_t disk = sent->disk;
    if (owner && owner != disk && owner != way->lane->remote->options.disk &&
        now - way->hinted_ms >= CHECK_MS) { /* two with stale maps may name each other */
        way->hint = owner;                  /* O5 */
        way->hinted_ms = now;
    }
    hold(sent);
    if (way->hint)
        go_on(way);
}

static void on_done(struct cn_pipe_question *question, enum cn_pipe_end end, uint8_t *bytes,
                    size_t size)
{
    struct cn_outgoing_call *sent = CN_CONTAINER_OF(question, struct cn_outgoing_call, question);
    struct cn_remote_lane *lane = sent->way->lane;
    struct cn_reply reply = {0};
    const uint8_t *body;
    size_t body_size;
    if (!lane->pipes) {
        fail(sent, CN_FAULT_RETRYABLE, CN_ECLOSED, STOPPING); /* O7 */
    } else if (end == CN_PIPE_UNSENT) {
        on_refused(sent, 0);
    } else if (end == CN_PIPE_LOST) {
        cn_remote_add(&lane->remote->numbers.lost, 1);
        fail(sent, lost_faults(sent->call), CN_ECLOSED, LOST); /* O1 */
    } else if (cn_reply_get(&reply, bytes, size, &body, &body_size) < 0) {
        fail(sent, CN_FAULT_REMOTE, CN_EPROTOCOL, "another node's answer cannot be read");
    } else if (reply.type == CN_REPLY_REFUSED) {
        on_refused(sent, reply.owner);
    } else {
        finish(release(sent), &reply, body, body_size);
    }
    cn_reply_clear(&reply);
    cn_free(bytes);
}

static uint64_t order_of(const struct cn_object_key *key)
{
    return cn_hash_bytes(1, key, sizeof(*key)) | 1;
}

/* The fields of its question, for this turn. */
static void write_head(struct cn_outgoing_call *sent)
{
    const struct cn_call *call = sent->call;
    bool service = is_service(call);
    const struct cn_message *message = service ? NULL : cn_message_of(&sent->call->envelope);
    struct cn_question question = {.type = service ? CN_QUESTION_SERVICE : CN_QUESTION_CALL,
                                   .kind = call->kind,
                                   .namespace_id = call->ns->id,
                                   .name = (uint8_t *)call->name,
                                   .name_size = call->name_size,
                                   .turn = sent->way->turn,
                                   .op = service ? call->op : 0,
                                   .method = message ? message->method : (char *)call->ns->name,
                                   .origin = call->envelope.origin};
    memcpy(question.id, call->key.id, sizeof(question.id));
    cn_buf_clear(&sent->head);
    cn_question_put(&question, &sent->head);
    sent->question =
        (struct cn_pipe_question){.head = sent->head.data,
                                  .head_size = sent->head.size,
                                  .body = service ? sent->body.data : message->bytes,
                                  .body_size = service ? sent->body.size : message->size,
                                  .order = order_of(&call->key),
                                  .done = on_done};
}

/* 0; or, and it is where it was: negative. */
static int send_to(struct cn_outgoing_call *call, uint64_t disk)
{
    struct cn_outgoing *way = call->way;
    uint64_t hash;
    memcpy(&hash, call->call->key.id + CN_OBJECT_ID_SIZE - sizeof(hash), sizeof(hash));
    write_head(call);
    int rc = cn_pipes_ask(way->lane->pipes, disk, hash, &call->question);
    if (rc < 0)
        return rc;
    count_sent(call, disk);
    cn_remote_add(&way->lane->remote->numbers.sent, 1);
    return 0;
}

/* O3: something that came after it is still on its way to the same object. */
static bool is_overtaken(const struct cn_outgoing_call *held)
{
    const struct cn_outgoing *way = held->way;
    for (const struct cn_list *node = way->sent.prev; node != &way->sent; node = node->prev) {
        const struct cn_outgoing_call *sent = CN_CONTAINER_OF(node, struct cn_outgoing_call, link);
        if (sent->number < held->number)
            return false;
        if (is_same(sent, held))
            return true;
    }
    return false;
}

/* Whom to ask; 0: nobody, at the moment. */
static uint64_t find_owner(struct cn_outgoing *way)
{
    const struct cn_remote_options *options = &way->lane->remote->options;
    uint64_t hint = way->hint;
    way->hint = 0;
    if (hint)
        return hint;
    struct cn_remote_owner owner = options->owner(options->data, way->shard);
    return owner.here || owner.disk == options->disk ? 0 : owner.disk;
}

/* As the mailbox of an object of this node says it. */
static void too_much(struct cn_outgoing_call *call)
{
    fail(call, CN_FAULT_OVERLOADED, CN_EOVERLOADED,
         "Durable Object is overloaded. Too much data queued.");
}

/* Sends what is held, as far as it goes. */
static void send_held(struct cn_outgoing *way, uint64_t disk)
{
    struct cn_outgoing_call *held;
    uint32_t turn = way->turn + 1 ? way->turn + 1 : 1;
    while ((held = first_held(way)) && !is_overtaken(held) &&
           !is_before_elsewhere(held, disk, turn)) {
        way->turn = turn;
        int rc = send_to(held, disk);
        if (rc < 0 && rc != CN_EOVERLOADED)
            return;
        unhold(held);
        if (rc < 0)
            too_much(held);
        else
            put_in_order(&way->sent, held);
    }
}

/* The shard is here: those that are held go first (O4). Each may run code that makes others come.
 */
static void take_in_held(struct cn_outgoing *way)
{
    struct cn_outgoing_call *held;
    while ((held = first_held(way)) && is_here(way) && !is_overtaken(held) &&
           !is_before_elsewhere(held, 0, 0)) {
        unhold(held);
        cn_call_take_in(release(held));
    }
}

static void go_on(struct cn_outgoing *way)
{
    if (cn_list_empty(&way->held))
        return;
    if (is_here(way)) {
        take_in_held(way);
        return;
    }
    uint64_t disk = find_owner(way);
    if (disk)
        send_held(way, disk);
}

static void give_up(struct cn_outgoing_call *held)
{
    struct cn_remote_lane *lane = held->way->lane;
    unhold(held);
    cn_remote_add(&lane->remote->numbers.given_up, 1);
    struct cn_call *call = release(held);
    lane->remote->options.give_up(lane->remote->options.data, call);
}

void cn_outgoing_check(struct cn_remote_lane *lane)
{
    uint64_t now = uv_now(lane->objects->loop);
    struct cn_list ways, *node;
    cn_list_init(&ways);
    cn_list_splice(&ways, &lane->blocked);
    while ((node = cn_list_take_front(&ways))) {
        struct cn_outgoing *way = CN_CONTAINER_OF(node, struct cn_outgoing, link);
        struct cn_outgoing_call *held;
        cn_list_push_back(&lane->blocked, &way->link);
        while ((held = first_held(way)) && now - held->came_ms >= lane->remote->options.wait_ms)
            give_up(held);
        go_on(way);
    }
    if (cn_list_empty(&lane->blocked))
        uv_timer_stop(&lane->timer);
}

/* --- calls ----------------------------------------------------------------------------------- */

/* Why it cannot travel; NULL: it can. */
static const char *cannot_travel(const struct cn_call *call)
{
    if (call->kind != CN_CALL_FETCH && call->kind != CN_CALL_RPC && call->kind != CN_CALL_OTHER &&
        call->kind != CN_CALL_ADOPT)
        return CN_SHARD_AWAY;
    if (is_service(call)) {
        const struct cn_service_def *def = cn_service_of(call->ns->name);
        return def && cn_service_wire_has(def->wire, call->op)
                   ? NULL
                   : "this operation is not carried to the node that has the object";
    }
    /* It was sent to an object of this very instance, which has moved since (bindings/localcall.c).
     */
    const struct cn_message *message = CN_CONTAINER_OF(call, struct cn_message, call);
    return message->home_serial ? CN_SHARD_AWAY : NULL;
}

void cn_outgoing_carry(struct cn_remote_lane *lane, struct cn_call *call)
{
    const struct cn_object_lane *objects = lane->objects;
    cn_loop_assert_owner(objects->loop);
    const char *refusal = lane->pipes ? cannot_travel(call) : CN_SHARD_AWAY;
    if (refusal) {
        cn_call_back(call);
        cn_call_turn_away(call, CN_FAULT_RETRYABLE, CN_ECLOSED, refusal);
        return;
    }
    struct cn_outgoing *way = &lane->ways[cn_shard_index(&call->key, objects->shard_count)];
    struct cn_outgoing_call *mine = CN_NEW(struct cn_outgoing_call);
    cn_list_init(&mine->link);
    mine->way = way;
    mine->call = call;
    mine->number = ++lane->last_number;
    mine->came_ms = uv_now(objects->loop);
    if (is_service(call))
        cn_service_wire_ask(cn_service_of(call->ns->name)->wire, cn_service_request(call),
                            &mine->body);
    bool first = cn_list_empty(&way->held);
    if (first && is_here(way) && !is_before_elsewhere(mine, 0, 0)) {
        cn_call_take_in(release(mine));
        return;
    }
    uint64_t disk = first && !is_here(way) ? find_owner(way) : 0;
    int rc = disk && !is_before_elsewhere(mine, disk, way->turn) ? send_to(mine, disk) : CN_ECLOSED;
    if (rc == 0)
        cn_list_push_back(&way->sent, &mine->link);
    else if (rc == CN_EOVERLOADED)
        too_much(mine);
    else
        hold(mine);
}

/* --- its life -------------------------------------------------------------------------------- */

void cn_outgoing_open(struct cn_remote_lane *lane)
{
    unsigned count = lane->objects->shard_count;
    lane->ways = cn_alloc_zero(count * sizeof(*lane->ways));
    cn_list_init(&lane->blocked);
    for (unsigned i = 0; i < count; i++) {
        struct cn_outgoing *way = &lane->ways[i];
        way->lane = lane;
        way->shard = i;
        way->turn = 1;
        cn_list_init(&way->link);
        cn_list_init(&way->held);
        cn_list_init(&way->sent);
    }
}

void cn_outgoing_close(struct cn_remote_lane *lane)
{
    for (unsigned i = 0; i < lane->objects->shard_count; i++) {
        struct cn_outgoing_call *held;
        while ((held = first_held(&lane->ways[i]))) {
            unhold(held);
            fail(held, CN_FAULT_RETRYABLE, CN_ECLOSED, STOPPING); /* O7 */
        }
    }
}
