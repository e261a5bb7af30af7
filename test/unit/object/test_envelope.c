/* SPDX-License-Identifier: Apache-2.0 */
/* Envelopes without objects: two lanes, run by hand on one thread, and what happens to an envelope
 * in each state when either of them ends. The numbers are those of object/envelope.h; its gates are
 * in test_gate.c and, with the reset of a sender, below. */
#include "base/loop.h"
#include "object/envelope.h"

#include "base/mem.h"
#include "object/object.h"
#include "store/database.h"
#include "test/unit/object/world.h"

struct place {
    uv_loop_t loop;
    struct cn_mailbox mailbox;
    struct cn_desk desk;
    bool open;
};

/* What its places do with a letter, and what became of it. */
struct letter {
    struct cn_envelope envelope;
    int number;
    struct letter *kept; /* arrived, and not answered yet: the next one of its place */
};

static struct {
    struct letter *kept; /* newest first */
    bool keep;           /* do not answer what arrives */
    int arrived[64], arrived_count;
    int done[64], done_count, dropped;
    unsigned faults; /* of the last that was done */
    int code;
} seen;

static void step(struct cn_desk *desk)
{
    if (desk->stepping)
        return;
    desk->stepping = true;
    while (cn_desk_step_one(desk)) {
    }
    desk->stepping = false;
}

static void place_open(struct place *place, unsigned index)
{
    CHECK_INT(0, cn_loop_init(&place->loop, NULL));
    CHECK_INT(0, cn_mailbox_open(&place->mailbox, &place->loop, place));
    cn_desk_open(&place->desk, index, &place->loop, &place->mailbox, step, place);
    place->open = true;
}

static void place_close(struct place *place)
{
    cn_desk_close(&place->desk);
    cn_mailbox_close(&place->mailbox, NULL);
    uv_run(&place->loop, UV_RUN_DEFAULT);
    CHECK_INT(0, uv_loop_close(&place->loop)); /* no handle is active any more */
    place->open = false;
}

static void run(struct place *place)
{
    for (int i = 0; i < 5; i++)
        uv_run(&place->loop, UV_RUN_NOWAIT);
}

static void arrive(struct cn_envelope *envelope)
{
    struct letter *letter = (struct letter *)envelope;
    CHECK_INT(CN_ENVELOPE_ARRIVED, envelope->state);
    if (seen.arrived_count < 64)
        seen.arrived[seen.arrived_count++] = letter->number;
    if (!seen.keep) {
        cn_envelope_answer(envelope, NULL);
        return;
    }
    letter->kept = seen.kept;
    seen.kept = letter;
}

static void on_letter_done(struct cn_envelope *envelope)
{
    struct letter *letter = (struct letter *)envelope;
    CHECK_INT(CN_ENVELOPE_DONE, envelope->state);
    if (seen.done_count < 64)
        seen.done[seen.done_count] = letter->number;
    seen.done_count++;
    seen.faults = envelope->faults;
    seen.code = envelope->err.code;
    cn_free(letter);
}

static void on_letter_drop(struct cn_envelope *envelope)
{
    CHECK_INT(CN_ENVELOPE_DONE, envelope->state);
    seen.dropped++;
    cn_free(envelope);
}

static struct letter *write_letter(struct place *from, struct place *to, int number)
{
    struct letter *letter = CN_NEW(struct letter);
    letter->number = number;
    letter->envelope.from = cn_desk_place(&from->desk);
    letter->envelope.to = cn_desk_place(&to->desk);
    letter->envelope.arrive = arrive;
    letter->envelope.on_done = on_letter_done;
    letter->envelope.drop = on_letter_drop;
    return letter;
}

static void send_letter(struct place *from, struct place *to, int number)
{
    int done = seen.done_count, arrived = seen.arrived_count;
    cn_envelope_send(&write_letter(from, to, number)->envelope, NULL);
    CHECK_INT(done, seen.done_count); /* P2: never from inside */
    CHECK_INT(arrived, seen.arrived_count);
}

static void begin(struct place *a, struct place *b)
{
    seen = (typeof(seen)){0};
    place_open(a, 0);
    place_open(b, 1);
}

static void end(struct place *a, struct place *b)
{
    if (a->open)
        place_close(a);
    if (b->open)
        place_close(b);
}

TEST(envelope, the_moves_are_those_of_the_table)
{
    static const char *const table[CN_ENVELOPE_STATES] = {
        /* to: OPEN GATED SENT ARRIVED AWAY ANSWERED RETURNING DONE */
        [CN_ENVELOPE_OPEN] = ".GS.....",      [CN_ENVELOPE_GATED] = "..S....D",
        [CN_ENVELOPE_SENT] = "...A..R.",      [CN_ENVELOPE_ARRIVED] = "....WAR.",
        [CN_ENVELOPE_AWAY] = "...A....",      [CN_ENVELOPE_ANSWERED] = "......R.",
        [CN_ENVELOPE_RETURNING] = ".......D", [CN_ENVELOPE_DONE] = ".GS.....",
    };
    for (int from = 0; from < CN_ENVELOPE_STATES; from++) {
        for (int to = 0; to < CN_ENVELOPE_STATES; to++)
            CHECK_INT(table[from][to] != '.', cn_envelope_may_move(from, to));
    }
}

TEST(envelope, P3_what_a_lane_sends_arrives_and_comes_back_in_order)
{
    struct place a, b;
    begin(&a, &b);
    for (int i = 0; i < 20; i++) {
        send_letter(&a, &a, 2 * i); /* to itself */
        send_letter(&a, &b, 2 * i + 1);
    }
    run(&a);
    run(&b);
    run(&a);
    CHECK_INT(40, seen.arrived_count);
    CHECK_INT(40, seen.done_count);
    for (int i = 0; i < 20; i++) {
        CHECK_INT(2 * i, seen.arrived[i]);
        CHECK_INT(2 * i + 1, seen.arrived[20 + i]);
        CHECK_INT(2 * i, seen.done[i]);
        CHECK_INT(2 * i + 1, seen.done[20 + i]);
    }
    CHECK_INT(0, (int)a.desk.out);
    end(&a, &b);
}

TEST(envelope, P5_more_than_a_lane_may_have_out_is_refused_as_overloaded)
{
    struct place a, b;
    begin(&a, &b);
    a.desk.out = CN_DESK_OUT_MAX - 1;
    send_letter(&a, &b, 1);
    send_letter(&a, &b, 2);
    run(&a);
    CHECK_INT(1, seen.done_count);
    CHECK_INT(2, seen.done[0]);
    CHECK_INT(CN_FAULT_OVERLOADED, seen.faults);
    CHECK_INT(CN_EOVERLOADED, seen.code);
    run(&b);
    run(&a);
    CHECK_INT(2, seen.done_count);
    CHECK_INT(0, seen.code);
    CHECK_INT(CN_DESK_OUT_MAX - 1, (int)a.desk.out);
    a.desk.out = 0;
    end(&a, &b);
}

/* P6, the target's lane: in the mailbox when it closes, and afterwards. */
TEST(envelope, P6_what_is_sent_to_a_lane_that_has_ended_comes_back_with_an_error)
{
    struct place a, b;
    begin(&a, &b);
    send_letter(&a, &b, 1); /* is in there when the mailbox closes */
    place_close(&b);
    CHECK_INT(0, seen.arrived_count);
    run(&a);
    CHECK_INT(1, seen.done_count);
    CHECK_INT(CN_ECLOSED, seen.code);
    CHECK_INT(CN_FAULT_RETRYABLE, seen.faults);
    end(&a, &b);
}

TEST(envelope, P6_what_is_on_the_list_of_a_lane_that_ends_is_told)
{
    struct place a, b;
    begin(&a, &b);
    send_letter(&a, &a, 1);
    place_close(&a);
    CHECK_INT(0, seen.arrived_count);
    CHECK_INT(1, seen.done_count);
    CHECK_INT(CN_ECLOSED, seen.code);
    end(&a, &b);
}

/* P2: the answer is back in the mailbox when its lane ends: it is told. Later: it is dropped. */
TEST(envelope, P2_an_answer_is_told_or_dropped_once_when_the_senders_lane_ends)
{
    struct place a, b;
    begin(&a, &b);
    seen.keep = true;
    send_letter(&a, &b, 1);
    send_letter(&a, &b, 2);
    run(&b);
    struct letter *second = seen.kept, *first = second->kept;
    CHECK_INT(2, seen.arrived_count);
    cn_envelope_answer(&first->envelope, NULL);
    CHECK_INT(0, seen.done_count);
    place_close(&a);
    CHECK_INT(1, seen.done_count);
    CHECK_INT(1, seen.done[0]);
    CHECK_INT(0, seen.code);
    cn_envelope_answer(&second->envelope, NULL);
    CHECK_INT(1, seen.dropped);
    CHECK_INT(1, seen.done_count);
    end(&a, &b);
}

/* The target ends: refused, with its reason, and only then. */
TEST(envelope, P6_a_target_that_ends_refuses_what_it_works_on)
{
    struct place a, b;
    begin(&a, &b);
    seen.keep = true;
    send_letter(&a, &b, 1);
    send_letter(&a, &a, 2);
    run(&a);
    run(&b);
    for (struct letter *letter = seen.kept, *next; letter; letter = next) {
        next = letter->kept;
        cn_envelope_refuse(&letter->envelope, CN_FAULT_RESET, CN_EABORTED, "on purpose");
    }
    CHECK_INT(0, seen.done_count);
    run(&a);
    CHECK_INT(2, seen.done_count);
    CHECK_INT(CN_EABORTED, seen.code);
    CHECK_INT(CN_FAULT_RESET, seen.faults);
    end(&a, &b);
}

/* A sender may send the same one again from on_done, as events of WebSockets do. */
static struct cn_envelope *again;
static void send_again(struct cn_envelope *envelope)
{
    envelope->on_done = on_letter_done;
    again = envelope;
    cn_envelope_send(envelope, NULL);
}

TEST(envelope, one_that_is_done_can_be_sent_anew)
{
    struct place a, b;
    begin(&a, &b);
    struct letter *letter = write_letter(&a, &b, 7);
    letter->envelope.on_done = send_again;
    letter->envelope.err.code = -1; /* of the time before: it is gone */
    cn_envelope_send(&letter->envelope, NULL);
    for (int i = 0; i < 2; i++) {
        run(&b);
        run(&a);
    }
    CHECK(again == &letter->envelope);
    CHECK_INT(2, seen.arrived_count);
    CHECK_INT(1, seen.done_count);
    CHECK_INT(0, seen.code);
    end(&a, &b);
}

/* Every way to end, at every moment of the life of an envelope: it is told or dropped, once. */
TEST(envelope, P2_whatever_ends_when_each_is_told_or_dropped_once)
{
    for (int moment = 0; moment < 6; moment++) {
        for (int order = 0; order < 2; order++) {
            struct place a, b;
            begin(&a, &b);
            seen.keep = true;
            send_letter(&a, &b, 1);
            send_letter(&b, &a, 2);
            send_letter(&a, &a, 3);
            if (moment > 0)
                run(&b);
            if (moment > 1)
                run(&a);
            for (int i = 2; seen.kept && i < moment; i++) {
                struct letter *letter = seen.kept;
                seen.kept = letter->kept;
                cn_envelope_answer(&letter->envelope, NULL);
            }
            struct place *first = order ? &a : &b;
            /* As a lane does: what it works on is refused before its desk closes. */
            for (struct place *place = first; place;
                 place = place == first ? (order ? &b : &a) : NULL) {
                for (struct letter **link = &seen.kept; *link;) {
                    struct letter *letter = *link;
                    if (letter->envelope.to.desk != &place->desk) {
                        link = &letter->kept;
                        continue;
                    }
                    *link = letter->kept;
                    cn_envelope_refuse(&letter->envelope, CN_FAULT_RETRYABLE, CN_ECLOSED, "ends");
                }
                place_close(place);
            }
            CHECK_INT(3, seen.done_count + seen.dropped);
        }
    }
}

/* --- other nodes ------------------------------------------------------------------------------ */

static struct cn_envelope *carried[2];
static unsigned carried_count;

static void carry(struct cn_carrier *carrier, struct cn_envelope *envelope)
{
    CHECK(carrier == envelope->to.desk->carrier);
    CHECK_INT(CN_ENVELOPE_AWAY, envelope->state);
    CHECK(carried_count < 2);
    carried[carried_count++] = envelope;
}

static void send_to_node(struct place *from, int number, struct cn_place to)
{
    struct letter *letter = write_letter(from, from, number);
    letter->envelope.to = to;
    cn_envelope_send(&letter->envelope, NULL);
    CHECK_INT(0, (int)carried_count); /* from a step, never from inside */
}

TEST(envelope, P8_what_is_for_another_node_is_its_carriers_until_it_is_back)
{
    struct place a, b;
    struct cn_carrier carrier = {carry};
    begin(&a, &b);
    a.desk.carrier = &carrier;
    carried_count = 0;
    send_to_node(&a, 1, cn_node_place_of(&a.desk, 7, 8, 9));
    send_to_node(&a, 2, cn_node_place_of(&a.desk, 7, 8, 9));
    run(&a);
    CHECK_INT(2, (int)carried_count); /* P3 */
    CHECK_INT(1, ((struct letter *)carried[0])->number);
    CHECK_INT(0, seen.arrived_count + seen.done_count);
    CHECK_INT(2, (int)a.desk.away);
    cn_envelope_back(carried[1]);
    cn_envelope_refuse(carried[1], CN_FAULT_RETRYABLE, CN_ECLOSED, "lost");
    cn_envelope_back(carried[0]);
    cn_envelope_answer(carried[0], NULL);
    CHECK_INT(0, (int)a.desk.away);
    CHECK_INT(0, seen.done_count); /* P2 */
    run(&a);
    CHECK_INT(2, seen.done_count);
    CHECK_INT(2, seen.done[0]);
    CHECK_INT(0, seen.arrived_count); /* at no target of this node */
    end(&a, &b);
}

TEST(envelope, P9_without_a_carrier_and_at_a_node_whose_session_is_over_it_is_refused)
{
    struct place a, b;
    begin(&a, &b);
    carried_count = 0;
    send_to_node(&a, 1, cn_node_place_of(&a.desk, 7, 8, 9));
    run(&a);
    CHECK_INT(1, seen.done_count);
    CHECK_INT(CN_FAULT_RETRYABLE, seen.faults);
    CHECK_INT(CN_ECLOSED, seen.code);
    send_to_node(&a, 2, (struct cn_place){.kind = CN_PLACE_ENDED, .desk = &a.desk});
    run(&a);
    CHECK_INT(2, seen.done_count);
    CHECK_INT(CN_FAULT_RETRYABLE | CN_FAULT_RESET, seen.faults);
    CHECK_INT(0, seen.arrived_count);
    end(&a, &b);
}

static void close_with_one_away(void *data)
{
    cn_desk_close(data);
}

TEST(envelope, P8_a_desk_does_not_close_while_something_is_away)
{
    struct place a, b;
    struct cn_carrier carrier = {carry};
    begin(&a, &b);
    a.desk.carrier = &carrier;
    carried_count = 0;
    send_to_node(&a, 1, cn_node_place_of(&a.desk, 7, 8, 9));
    run(&a);
    CHECK_ASSERTS("!desk->away", close_with_one_away, &a.desk);
    cn_envelope_back(carried[0]);
    cn_envelope_answer(carried[0], NULL);
    run(&a);
    end(&a, &b);
}

/* --- the sender's gate ----------------------------------------------------------------------- */

enum { SEND = 1, SEND_AND_ABORT };
static struct place other;

static int sender_create(struct cn_object *object, void *class_data, void **instance,
                         struct cn_err *err)
{
    *instance = class_data;
    return cn_object_database(object, err) ? 0 : err->code;
}

static void sender_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    (void)instance;
    struct cn_err err;
    struct place here = {.open = true};
    struct letter *letter = write_letter(&here, &other, 1);
    letter->envelope.from = cn_desk_place(object->lane->desk);
    CHECK_INT(0, cn_database_exec(object->db, "CREATE TABLE IF NOT EXISTS t(x)", &err));
    CHECK_INT(0, cn_database_exec(object->db, "INSERT INTO t VALUES(1)", &err));
    cn_envelope_send(&letter->envelope, object);
    CHECK_INT(CN_ENVELOPE_GATED, letter->envelope.state);
    if ((intptr_t)call->payload == SEND_AND_ABORT)
        cn_object_reset(object, CN_FAULT_RESET, CN_EABORTED, "aborted on purpose");
    else
        cn_call_reply(call, NULL);
}

static void sender_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    (void)instance;
}

static const struct cn_class sender = {
    .create = sender_create, .deliver = sender_deliver, .destroy = sender_destroy};

TEST(envelope, P6_a_sender_that_is_reset_before_its_gate_opens_has_sent_nothing)
{
    struct world world;
    seen = (typeof(seen)){0};
    place_open(&other, 1);
    world_open(&world, test_dir(), &sender);
    struct answer *aborted = post(&world, "a", SEND_AND_ABORT);
    run_until(&world, aborted);
    run(&other);
    CHECK_INT(0, seen.arrived_count);
    CHECK_INT(1, seen.dropped);
    ask(&world, "a", SEND);
    while (seen.arrived_count == 0) {
        uv_run(&world.loop, UV_RUN_NOWAIT);
        uv_run(&other.loop, UV_RUN_NOWAIT);
    }
    while (seen.done_count == 0)
        uv_run(&world.loop, UV_RUN_NOWAIT);
    CHECK_INT(1, seen.dropped);
    cn_free(aborted);
    world_close(&world);
    place_close(&other);
}
