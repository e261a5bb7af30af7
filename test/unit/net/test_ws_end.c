/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of a WebSocket: who has them, what they may still say, and how much waits. */
#include "net/ws_end.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "test/lib/test.h"

struct owner {
    unsigned ready, gone;
    int held; /* -1: never asked */
};

static void on_ready(struct cn_ws_end *end)
{
    ((struct owner *)end->owner)->ready++;
}

static void on_hold(struct cn_ws_end *end, bool hold)
{
    ((struct owner *)end->owner)->held = hold;
}

static void on_gone(struct cn_ws_end *end)
{
    ((struct owner *)end->owner)->gone++;
}

static const struct cn_ws_end_ops ops = {on_ready, on_hold, on_gone};

struct couple {
    struct cn_ws_end *a, *b;
    struct owner of_a, of_b;
};

static void couple_open(struct couple *couple)
{
    *couple = (struct couple){.of_a = {.held = -1}, .of_b = {.held = -1}};
    cn_ws_pair_new(&couple->a, &couple->b);
    cn_ws_end_claim(couple->a, &ops, &couple->of_a);
    cn_ws_end_claim(couple->b, &ops, &couple->of_b);
}

static int say(struct cn_ws_end *end, const char *text)
{
    struct cn_ws_message *message = cn_ws_message_new(true, text, strlen(text));
    int rc = cn_ws_end_send(end, message);
    cn_ws_message_unref(message);
    return rc;
}

/* All that waits at an end: "hello 1000:bye ". */
static const char *heard(struct cn_ws_end *end)
{
    static struct cn_buf text;
    struct cn_ws_item *item;
    cn_buf_clear(&text);
    while ((item = cn_ws_end_take(end))) {
        if (item->message)
            cn_buf_append(&text, item->message->bytes, item->message->size);
        else
            cn_buf_printf(&text, "%u:%.*s%s%s", item->close.code, (int)item->close.reason_size,
                          item->close.reason, item->close.error ? "!" : "",
                          item->close.error ? item->close.error : "");
        cn_buf_append_byte(&text, ' ');
        cn_ws_item_free(item);
    }
    return cn_buf_text(&text);
}

static void bye(struct cn_ws_end *end)
{
    cn_ws_end_close(end, &(struct cn_ws_close){CN_WS_NORMAL, true, "bye", 3, NULL});
}

TEST(ws_end, E1_what_is_sent_waits_in_order_for_an_owner_who_is_told)
{
    struct couple c = {.of_b = {.held = -1}};
    cn_ws_pair_new(&c.a, &c.b);
    cn_ws_end_claim(c.a, &ops, &c.of_a);
    CHECK_INT(0, say(c.a, "one"));
    cn_ws_end_depart(c.b); /* E1: kept by an end without an owner, on its way too */
    CHECK_INT(0, say(c.a, "two"));
    cn_ws_end_arrive(c.b);
    CHECK_INT(0, c.of_b.ready);
    cn_ws_end_claim(c.b, &ops, &c.of_b);
    CHECK_INT(1, c.of_b.ready); /* once for all that waits */
    CHECK_INT(0, say(c.a, "three"));
    CHECK_INT(2, c.of_b.ready);
    CHECK_STR("one two three ", heard(c.b));
    CHECK_INT(0, c.b->queue_bytes);
    cn_ws_end_release(c.a);
    cn_ws_end_release(c.b);
}

TEST(ws_end, E2_after_its_close_an_end_says_nothing_and_the_pair_is_over_when_both_have)
{
    struct couple c;
    couple_open(&c);
    CHECK_INT(0, say(c.a, "last"));
    cn_ws_end_closing(c.a);
    CHECK(cn_ws_end_close_asked(c.a) && !cn_ws_end_closed(c.a));
    CHECK_INT(0, say(c.a, "held")); /* what its program had said before its close */
    bye(c.a);
    bye(c.a); /* once */
    CHECK_INT(CN_ECLOSED, say(c.a, "unheard"));
    CHECK_INT(0, say(c.b, "still")); /* the other may still speak */
    CHECK_STR("last held 1000:bye ", heard(c.b));
    CHECK(!cn_ws_end_over(c.b));
    bye(c.b);
    CHECK(cn_ws_end_over(c.b) && !cn_ws_end_over(c.a));
    CHECK_STR("still 1000:bye ", heard(c.a));
    CHECK(cn_ws_end_over(c.a));
    cn_ws_end_release(c.a);
    cn_ws_end_release(c.b);
    CHECK_INT(1, c.of_b.gone);
}

TEST(ws_end, E3_an_owner_who_lets_go_makes_the_other_see_1006)
{
    struct couple c;
    couple_open(&c);
    CHECK_INT(0, say(c.b, "never read"));
    cn_ws_end_release(c.a);
    CHECK_INT(1, c.of_b.gone);
    CHECK_INT(CN_ECLOSED, say(c.b, "nobody"));
    CHECK_STR("1006:WebSocket disconnected without sending Close frame. ", heard(c.b));
    CHECK(cn_ws_end_over(c.b));
    cn_ws_end_release(c.b);
}

TEST(ws_end, E3_after_a_close_letting_go_is_no_second_one)
{
    struct couple c;
    couple_open(&c);
    bye(c.a);
    cn_ws_end_release(c.a);
    CHECK_STR("1000:bye ", heard(c.b));
    cn_ws_end_release(c.b);
}

TEST(ws_end, a_cut_ends_both_directions_and_carries_its_error)
{
    struct couple c;
    couple_open(&c);
    cn_ws_end_abort(c.a, "the network went away");
    CHECK_INT(CN_ECLOSED, say(c.b, "unheard"));
    CHECK_INT(CN_ECLOSED, say(c.a, "unheard"));
    CHECK_STR("1006:WebSocket disconnected without sending Close frame.!the network went away ",
              heard(c.b));
    CHECK_STR("", heard(c.a));
    cn_ws_end_release(c.a);
    cn_ws_end_release(c.b);
}

TEST(ws_end, E4_an_owner_may_ask_the_other_to_hold_back_before_there_is_one)
{
    struct couple c = {.of_a = {.held = -1}, .of_b = {.held = -1}};
    cn_ws_pair_new(&c.a, &c.b);
    cn_ws_end_claim(c.a, &ops, &c.of_a);
    cn_ws_end_hold(c.a, true);
    CHECK_INT(-1, c.of_b.held);
    cn_ws_end_claim(c.b, &ops, &c.of_b);
    CHECK_INT(1, c.of_b.held);
    c.of_b.held = -1;
    cn_ws_end_hold(c.a, true); /* it knows */
    CHECK_INT(-1, c.of_b.held);
    cn_ws_end_hold(c.a, false);
    CHECK_INT(0, c.of_b.held);
    cn_ws_end_release(c.a);
    cn_ws_end_release(c.b);
}

TEST(ws_end, E4_one_that_does_not_hold_back_is_cut_off_with_1013)
{
    struct couple c;
    couple_open(&c);
    size_t size = 1 << 20;
    uint8_t *bytes = cn_alloc_zero(size);
    struct cn_ws_message *message = cn_ws_message_new(false, bytes, size);
    cn_free(bytes);
    int rc = 0;
    unsigned sent = 0;
    while ((rc = cn_ws_end_send(c.a, message)) == 0)
        CHECK(++sent <= CN_WS_QUEUE_MAX / size + 1);
    CHECK_INT(CN_EOVERLOADED, rc);
    CHECK(c.b->queue_bytes <= CN_WS_QUEUE_MAX + size + 1000);
    CHECK_INT(CN_ECLOSED, cn_ws_end_send(c.a, message));
    CHECK_STR("1013:the other side does not read ", heard(c.a));
    cn_ws_message_unref(message);
    cn_ws_end_release(c.a);
    cn_ws_end_release(c.b); /* with all that nobody took */
}

static void note_released(struct cn_ws_end *end, void *data)
{
    CHECK_INT(CN_WS_END_RELEASED, end->state);
    ++*(unsigned *)data;
}

TEST(ws_end, E5_owner_and_functions_are_set_while_it_is_claimed_and_memory_stays_while_referred_to)
{
    struct couple c;
    couple_open(&c);
    unsigned released = 0;
    c.a->on_released = note_released;
    c.a->released_data = &released;
    CHECK(c.a->ops && c.a->owner);
    cn_ws_end_ref(c.a);
    cn_ws_end_release(c.b);
    cn_ws_end_release(c.a);
    CHECK_INT(1, released);
    CHECK(!c.a->ops && !c.a->owner);
    CHECK(cn_list_empty(&c.a->queue));
    cn_ws_end_unref(c.a);
}
