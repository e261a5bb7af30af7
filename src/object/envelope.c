/* SPDX-License-Identifier: Apache-2.0 */
#include "object/envelope.h"

#include "base/assert.h"
#include "base/loop.h"
#include "object/object.h"

#define TO(state) (1u << (state))
static const unsigned moves[CN_ENVELOPE_STATES] = {
    [CN_ENVELOPE_OPEN] = TO(CN_ENVELOPE_GATED) | TO(CN_ENVELOPE_SENT),
    [CN_ENVELOPE_GATED] = TO(CN_ENVELOPE_SENT) | TO(CN_ENVELOPE_DONE),
    [CN_ENVELOPE_SENT] = TO(CN_ENVELOPE_ARRIVED) | TO(CN_ENVELOPE_RETURNING),
    [CN_ENVELOPE_ARRIVED] =
        TO(CN_ENVELOPE_AWAY) | TO(CN_ENVELOPE_ANSWERED) | TO(CN_ENVELOPE_RETURNING),
    [CN_ENVELOPE_AWAY] = TO(CN_ENVELOPE_ARRIVED),
    [CN_ENVELOPE_ANSWERED] = TO(CN_ENVELOPE_RETURNING),
    [CN_ENVELOPE_RETURNING] = TO(CN_ENVELOPE_DONE),
    [CN_ENVELOPE_DONE] = TO(CN_ENVELOPE_GATED) | TO(CN_ENVELOPE_SENT),
};

bool cn_envelope_may_move(enum cn_envelope_state from, enum cn_envelope_state to)
{
    return moves[from] & TO(to);
}

static void set_state(struct cn_envelope *envelope, enum cn_envelope_state state)
{
    CN_ASSERT(moves[envelope->state] & TO(state));
    envelope->state = state;
}

static void fail(struct cn_envelope *envelope, unsigned faults, int code, const char *text)
{
    cn_err_set(&envelope->err, code, "%s", text);
    envelope->faults = faults;
}

/* --- the way there and back ------------------------------------------------------------------ */

static void deliver(struct cn_mail *mail, void *data);

static void enlist(struct cn_desk *desk, struct cn_envelope *envelope)
{
    cn_list_push_back(&desk->ready, &envelope->link);
    cn_desk_kick(desk);
}

/* From the desk of the lane that runs, to that of the place. False: its lane has ended. */
static bool post(struct cn_envelope *envelope, struct cn_desk *here, const struct cn_place *place)
{
    if (place->desk == here) {
        enlist(here, envelope);
        return true;
    }
    envelope->mail.deliver = deliver;
    return cn_mailbox_send(place->desk->mailbox, &envelope->mail);
}

/* P2: by way of a list or a mailbox, not from inside whatever runs now. */
static void go_back(struct cn_envelope *envelope)
{
    set_state(envelope, CN_ENVELOPE_RETURNING);
    if (post(envelope, envelope->to.desk, &envelope->from))
        return;
    set_state(envelope, CN_ENVELOPE_DONE);
    envelope->drop(envelope);
}

/* Refused before it has left. */
static void bounce(struct cn_envelope *envelope, unsigned faults, int code, const char *text)
{
    fail(envelope, faults, code, text);
    set_state(envelope, CN_ENVELOPE_RETURNING);
    enlist(envelope->from.desk, envelope);
}

static void leave(struct cn_envelope *envelope)
{
    struct cn_desk *desk = envelope->from.desk;
    set_state(envelope, CN_ENVELOPE_SENT);
    if (desk->out++ >= CN_DESK_OUT_MAX) /* P5 */
        bounce(envelope, CN_FAULT_OVERLOADED, CN_EOVERLOADED,
               "Too many calls are under way on this thread of the server.");
    else if (!post(envelope, desk, &envelope->to))
        bounce(envelope, CN_FAULT_RETRYABLE, CN_ECLOSED, "the server is stopping");
}

void cn_envelope_carry(struct cn_envelope *envelope)
{
    struct cn_carrier *carrier = envelope->to.desk->carrier;
    CN_ASSERT(envelope->to.kind == CN_PLACE_NODE);
    set_state(envelope, CN_ENVELOPE_AWAY);
    envelope->to.desk->away++;
    carrier->carry(carrier, envelope);
}

void cn_envelope_back(struct cn_envelope *envelope)
{
    cn_loop_assert_owner(envelope->to.desk->spin.loop);
    CN_ASSERT(envelope->to.kind == CN_PLACE_NODE && envelope->to.desk->away > 0);
    set_state(envelope, CN_ENVELOPE_ARRIVED);
    envelope->to.desk->away--;
}

static void arrive(struct cn_envelope *envelope)
{
    set_state(envelope, CN_ENVELOPE_ARRIVED);
    if (envelope->to.kind == CN_PLACE_LANE)
        envelope->arrive(envelope);
    else if (envelope->to.kind == CN_PLACE_ENDED)
        cn_envelope_refuse(envelope, CN_FAULT_RETRYABLE | CN_FAULT_RESET, CN_ECLOSED,
                           CN_PLACE_ENDED_TEXT);
    else if (envelope->to.desk->carrier)
        cn_envelope_carry(envelope);
    else
        cn_envelope_refuse(envelope, CN_FAULT_RETRYABLE, CN_ECLOSED,
                           "This node is not in a cluster: it reaches no others."); /* P9 */
}

/* It is where it was to go. */
static void step(struct cn_desk *desk, struct cn_envelope *envelope)
{
    if (envelope->state == CN_ENVELOPE_RETURNING) {
        CN_ASSERT(envelope->from.desk == desk && desk->out > 0);
        desk->out--;
        set_state(envelope, CN_ENVELOPE_DONE);
        envelope->on_done(envelope);
    } else if (desk->closed) {
        cn_envelope_refuse(envelope, CN_FAULT_RETRYABLE, CN_ECLOSED, "the server is stopping");
    } else {
        arrive(envelope);
    }
}

static void deliver(struct cn_mail *mail, void *data)
{
    (void)data;
    struct cn_envelope *envelope = CN_CONTAINER_OF(mail, struct cn_envelope, mail);
    step(envelope->state == CN_ENVELOPE_RETURNING ? envelope->from.desk : envelope->to.desk,
         envelope);
}

/* A gate has opened, or will not: `err` says why. */
static void on_gate(struct cn_output *output, const struct cn_err *err)
{
    struct cn_envelope *envelope = CN_CONTAINER_OF(output, struct cn_envelope, output);
    if (envelope->state == CN_ENVELOPE_ANSWERED) {
        if (err && !envelope->err.code) {
            envelope->err = *err;
            envelope->faults = CN_FAULT_RESET;
            if (err->code == CN_ECLOSED)
                envelope->faults |= CN_FAULT_RETRYABLE; /* S2: another node may answer */
        }
        go_back(envelope);
    } else if (err) {
        set_state(envelope, CN_ENVELOPE_DONE); /* P6: the sender was reset */
        envelope->drop(envelope);
    } else {
        leave(envelope);
    }
}

static void begin(struct cn_envelope *envelope)
{
    CN_ASSERT(envelope->on_done && envelope->from.kind == CN_PLACE_LANE);
    CN_ASSERT(envelope->to.kind != CN_PLACE_NOWHERE);
    envelope->err.code = 0;
    envelope->faults = 0;
    cn_list_init(&envelope->link);
}

void cn_envelope_send(struct cn_envelope *envelope, struct cn_object *gate)
{
    cn_loop_assert_owner(envelope->from.desk->spin.loop);
    begin(envelope);
    CN_ASSERT(envelope->arrive);
    CN_ASSERT(envelope->drop || (!gate && cn_place_is_desk(&envelope->to, envelope->from.desk)));
    if (!gate) {
        leave(envelope);
        return;
    }
    set_state(envelope, CN_ENVELOPE_GATED);
    cn_object_output(gate, &envelope->output, on_gate); /* DO-TX-5 */
}

void cn_envelope_hand_in(struct cn_envelope *envelope)
{
    cn_loop_assert_owner(envelope->from.desk->spin.loop);
    begin(envelope);
    CN_ASSERT(cn_place_is_desk(&envelope->to, envelope->from.desk));
    envelope->from.desk->out++;
    set_state(envelope, CN_ENVELOPE_SENT);
    set_state(envelope, CN_ENVELOPE_ARRIVED);
}

void cn_envelope_answer(struct cn_envelope *envelope, struct cn_object *gate)
{
    cn_loop_assert_owner(envelope->to.desk->spin.loop);
    set_state(envelope, CN_ENVELOPE_ANSWERED);
    if (gate)
        cn_object_output(gate, &envelope->output, on_gate);
    else
        go_back(envelope);
}

void cn_envelope_refuse(struct cn_envelope *envelope, unsigned faults, int code, const char *text)
{
    cn_loop_assert_owner(envelope->to.desk->spin.loop);
    fail(envelope, faults, code, text);
    go_back(envelope);
}

/* --- desks ----------------------------------------------------------------------------------- */

void cn_desk_open(struct cn_desk *desk, unsigned index, uv_loop_t *loop, struct cn_mailbox *mailbox,
                  void (*step_)(struct cn_desk *desk), void *data)
{
    cn_loop_assert_owner(loop);
    *desk = (struct cn_desk){.index = index, .mailbox = mailbox, .step = step_, .data = data};
    cn_list_init(&desk->ready);
    uv_idle_init(loop, &desk->spin);
    desk->spin.data = desk;
}

static void on_spin(uv_idle_t *spin)
{
    struct cn_desk *desk = spin->data;
    uv_idle_stop(spin);
    desk->step(desk);
}

void cn_desk_kick(struct cn_desk *desk)
{
    cn_loop_assert_owner(desk->spin.loop);
    if (!desk->stepping && !desk->closed && !uv_is_active((uv_handle_t *)&desk->spin))
        uv_idle_start(&desk->spin, on_spin);
}

bool cn_desk_step_one(struct cn_desk *desk)
{
    struct cn_list *node = cn_list_take_front(&desk->ready);
    if (node)
        step(desk, CN_CONTAINER_OF(node, struct cn_envelope, link));
    return node;
}

void cn_desk_close(struct cn_desk *desk)
{
    cn_loop_assert_owner(desk->spin.loop);
    CN_ASSERT(!desk->closed && !desk->stepping);
    desk->closed = true;
    while (cn_desk_step_one(desk)) {
    }
    CN_ASSERT(!desk->away); /* P8 */
    uv_close((uv_handle_t *)&desk->spin, NULL);
}

void cn_desk_check(const struct cn_desk *desk, size_t others)
{
    CN_LIST_FOREACH(&desk->ready, node)
    {
        const struct cn_envelope *envelope = CN_CONTAINER_OF(node, struct cn_envelope, link);
        CN_ASSERT(envelope->from.desk == desk);
        CN_ASSERT(envelope->state == CN_ENVELOPE_SENT || envelope->state == CN_ENVELOPE_RETURNING);
    }
    CN_ASSERT(desk->out >= cn_list_length(&desk->ready) + others);
}
