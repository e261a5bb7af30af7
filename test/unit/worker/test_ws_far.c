/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends on different nodes: what is sent comes in order and as it was, whoever goes takes the
 * other side with it, a failed question ends all that shared it, and bytes of a peer are input. The
 * two lanes of the rig are the two nodes; questions wait in a list until the test carries them. */
#include "worker/ws_far.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/wire.h"
#include "net/ws_conn.h"
#include "test/lib/worker_rig.h"
#include "test/lib/ws_side.h"
#include "worker/websocket.h"

/* The client's node and the object's: also the lanes of the rig, which are lane 0 and 1. */
enum { A, B };

enum { FARS_MAX = 3 };

static struct worker_rig rig;
static struct ws_side near[FARS_MAX], far[FARS_MAX];
static char addresses[FARS_MAX][CN_SOCKET_ADDRESS_SIZE];

/* --- the way ---------------------------------------------------------------------------------- */

struct question {
    unsigned from, to;
    uint8_t *bytes;
    size_t size;
    void (*done)(struct cn_lane *lane, void *asked, const uint8_t *answer, size_t size);
    void *asked;
    struct cn_buf answer;
    bool good;
};

static struct question questions[64];
static unsigned question_count, carried_count;
static pthread_mutex_t questions_lock = PTHREAD_MUTEX_INITIALIZER;

static void ask(void *data, struct cn_lane *lane, const struct cn_ws_asking *asking)
{
    (void)data;
    pthread_mutex_lock(&questions_lock);
    CHECK(asking->disk == asking->to + 1 && question_count < 64);
    questions[question_count++] =
        (struct question){lane->options.index, asking->to,    asking->bytes, asking->size,
                          asking->done,        asking->asked, {0},           false};
    pthread_mutex_unlock(&questions_lock);
}

static struct cn_ws_carrier carriers[2] = {{1, 7, 10000, NULL, ask}, {2, 7, 10000, NULL, ask}};

static void arrive(struct cn_lane *lane, void *data)
{
    struct question *question = data;
    question->good = cn_ws_far_asked(lane, question->from + 1, question->bytes, question->size,
                                     &question->answer);
}

static void answer(struct cn_lane *lane, void *data)
{
    struct question *question = data;
    question->done(lane, question->asked,
                   question->answer.data ? question->answer.data : (const uint8_t *)"",
                   question->answer.size);
}

static void fail(struct cn_lane *lane, void *data)
{
    struct question *question = data;
    question->done(lane, question->asked, NULL, 0);
}

static void question_fini(struct question *question)
{
    cn_free(question->bytes);
    cn_buf_fini(&question->answer);
}

/* All that is under way, and what that causes, arrives and is answered. */
static void settle(void)
{
    for (; carried_count < question_count; carried_count++) {
        struct question *question = &questions[carried_count];
        worker_rig_run(&rig, question->to, arrive, question);
        CHECK(question->good);
        worker_rig_run(&rig, question->from, answer, question);
        question_fini(question);
    }
}

/* All that is under way is lost. */
static void lose(void)
{
    unsigned count = question_count;
    for (; carried_count < count; carried_count++) {
        worker_rig_run(&rig, questions[carried_count].from, fail, &questions[carried_count]);
        question_fini(&questions[carried_count]);
    }
}

/* --- conversations ---------------------------------------------------------------------------- */

static void set_carrier(struct cn_lane *lane, void *data)
{
    (void)data;
    lane->carrier = &carriers[lane->options.index];
}

static void make_far(struct cn_lane *lane, void *data)
{
    int i = *(int *)data;
    struct cn_ws_end *waits;
    cn_ws_pair_new(&far[i].end, &waits);
    CHECK(cn_websocket_number(lane, far[i].end));
    CHECK(cn_websocket_number(lane, waits));
    cn_websocket_transit(lane, waits, addresses[i]);
    cn_ws_end_claim(far[i].end, &ws_side_ops, &far[i]);
}

static void make_near(struct cn_lane *lane, void *data)
{
    int i = *(int *)data;
    unsigned long long handle, disk, life;
    struct cn_ws_site site;
    CHECK_INT(4, sscanf(addresses[i], "%u:%llu@%llu.%llu", &site.lane, &handle, &disk, &life));
    site.handle = handle;
    site.disk = disk;
    site.life = life;
    CHECK(site.lane == B && disk == 2 && life == 7);
    near[i].end = cn_ws_far_new(lane, &site);
    CHECK(near[i].end && cn_websocket_number(lane, near[i].end));
    cn_ws_end_claim(near[i].end, &ws_side_ops, &near[i]);
}

static void attach(struct cn_lane *lane, void *data)
{
    (void)lane;
    cn_websocket_attach(near[*(int *)data].end);
}

static void open_fars(int count)
{
    rig = (struct worker_rig){.objects = true};
    memset(near, 0, sizeof(near));
    memset(far, 0, sizeof(far));
    question_count = carried_count = 0;
    worker_rig_open(&rig, 2);
    worker_rig_run(&rig, A, set_carrier, NULL);
    worker_rig_run(&rig, B, set_carrier, NULL);
    for (int i = 0; i < count; i++) {
        worker_rig_run(&rig, B, make_far, &i);
        worker_rig_run(&rig, A, make_near, &i);
        worker_rig_run(&rig, A, attach, &i);
    }
}

struct saying {
    struct ws_side *side;
    const char *text;
};

static void say_on_lane(struct cn_lane *lane, void *data)
{
    (void)lane;
    struct saying *saying = data;
    ws_side_say(saying->side, saying->text);
}

static void say(struct ws_side *side, const char *text)
{
    struct saying saying = {side, text};
    worker_rig_run(&rig, side >= near && side < near + FARS_MAX ? A : B, say_on_lane, &saying);
}

static void let_go(struct cn_lane *lane, void *data)
{
    (void)lane;
    struct ws_side *side = data;
    cn_ws_end_release(side->end);
    side->end = NULL;
}

static void count_ends(struct cn_lane *lane, void *data)
{
    *(unsigned *)data = lane->ends.live;
}

static unsigned ends_of(unsigned lane)
{
    unsigned count;
    worker_rig_run(&rig, lane, count_ends, &count);
    return count;
}

static void no_more(struct cn_lane *lane, void *data)
{
    (void)lane, (void)data;
}

static void no_trunks(struct cn_lane *lane, void *data)
{
    (void)data;
    CHECK(cn_list_empty(&lane->far_trunks));
}

static void close_fars(int count)
{
    for (int i = 0; i < count; i++) {
        if (near[i].end)
            worker_rig_run(&rig, A, let_go, &near[i]);
        settle();
        if (far[i].end)
            worker_rig_run(&rig, B, let_go, &far[i]);
        settle();
    }
    CHECK_INT(0, ends_of(A));
    CHECK_INT(0, ends_of(B));
    worker_rig_run(&rig, A, no_trunks, NULL);
    worker_rig_run(&rig, B, no_trunks, NULL);
    worker_rig_close(&rig);
}

TEST(ws_far, what_is_sent_comes_in_order_both_ways_and_both_closes_end_it)
{
    open_fars(1);
    settle();
    say(&far[0], "one");
    say(&near[0], "hello");
    say(&far[0], "#two");
    say(&far[0], "");
    say(&near[0], "again");
    settle();
    CHECK_STR("m:one b:#two m:", near[0].seen);
    CHECK_STR("m:hello m:again", far[0].seen);
    say(&near[0], "!");
    settle();
    CHECK_STR("m:hello m:again c4001:done:clean", far[0].seen);
    say(&far[0], "last");
    say(&far[0], "!");
    settle();
    CHECK_STR("m:one b:#two m: m:last c4001:done:clean", near[0].seen);
    CHECK_INT(1, ends_of(A)); /* both have closed: the far ends have gone by themselves */
    CHECK_INT(1, ends_of(B));
    close_fars(1);
}

/* What an object has sent before somebody reached out waits for it. */
TEST(ws_far, what_was_sent_early_is_not_lost)
{
    open_fars(1);
    say(&far[0], "early");
    CHECK_STR("", near[0].seen);
    settle();
    CHECK_STR("m:early", near[0].seen);
    close_fars(1);
}

/* Letters gather while questions are under way, and go together. */
TEST(ws_far, letters_share_questions)
{
    open_fars(3);
    settle();
    unsigned before = question_count;
    for (int i = 0; i < 12; i++)
        say(&far[i % 3], "x");
    CHECK_INT(4, question_count - before); /* ASKED_MAX */
    settle();
    CHECK_INT(5, question_count - before);
    for (int i = 0; i < 3; i++)
        CHECK_STR("m:x m:x m:x m:x", near[i].seen);
    close_fars(3);
}

static void hold_back(struct cn_lane *lane, void *data)
{
    (void)lane;
    cn_ws_end_hold(near[0].end, *(bool *)data);
}

TEST(ws_far, a_wish_to_hold_back_crosses_it)
{
    bool hold = true;
    open_fars(1);
    settle();
    worker_rig_run(&rig, A, hold_back, &hold);
    settle();
    hold = false;
    worker_rig_run(&rig, A, hold_back, &hold);
    settle();
    CHECK_STR("hold go", far[0].seen);
    close_fars(1);
}

static void send_large(struct cn_lane *lane, void *data)
{
    (void)lane;
    struct ws_side *side = data;
    static char bytes[300 << 10];
    memset(bytes, 'x', sizeof(bytes));
    struct cn_ws_message *message = cn_ws_message_new(false, bytes, sizeof(bytes));
    for (int i = 0; i < 20; i++)
        CHECK_INT(0, cn_ws_end_send(side->end, message));
    cn_ws_message_unref(message);
}

/* F5: no more than a mebibyte and a message gathers; the rest stays in the end's queue, and its
 * owner is asked to hold back. */
TEST(ws_far, what_gathers_is_bounded)
{
    open_fars(1);
    settle();
    unsigned before = question_count;
    worker_rig_run(&rig, B, send_large, &far[0]);
    CHECK_INT(4, question_count - before);
    CHECK_STR("hold", far[0].seen);
    settle();
    CHECK_STR("hold go", far[0].seen);
    for (unsigned i = before; i < question_count; i++)
        CHECK(questions[i].size <= (1 << 20) + (400 << 10));
    CHECK(strlen(near[0].seen) == sizeof(near[0].seen) - 1); /* they came, and do not fit */
    close_fars(1);
}

#define LOST "c1006:WebSocket disconnected without sending Close frame.:cut"

TEST(ws_far, who_lets_go_of_either_side_ends_the_other)
{
    open_fars(2);
    settle();
    worker_rig_run(&rig, A, let_go, &near[0]);
    worker_rig_run(&rig, B, let_go, &far[1]);
    settle();
    CHECK_STR(LOST, far[0].seen);
    CHECK_STR(LOST, near[1].seen);
    close_fars(2);
}

TEST(ws_far, a_cut_arrives_with_its_error)
{
    open_fars(1);
    settle();
    say(&far[0], "?");
    settle();
    CHECK_STR("c1006::cutwire", near[0].seen);
    close_fars(1);
}

static void tick(struct cn_lane *lane, void *data)
{
    (void)data;
    cn_ws_far_lane_tick(lane);
}

/* F1, F4: clients are told to connect again, objects that their clients are gone; and the other
 * side, which has not noticed, learns it from the next letter. */
TEST(ws_far, a_question_that_fails_ends_all_that_shared_it)
{
    open_fars(2);
    settle();
    say(&near[0], "lost");
    lose();
    CHECK_STR("c1012::clean", near[0].seen);
    CHECK_STR("c1012::clean", near[1].seen);
    CHECK_STR("", far[0].seen);
    say(&far[0], "who is there?");
    settle();
    CHECK_STR("", far[0].seen); /* it may be told how it ended yet */
    worker_rig_run(&rig, B, tick, NULL);
    worker_rig_run(&rig, B, tick, NULL);
    settle();
    CHECK_STR("c1006::cut", far[0].seen);
    CHECK_STR("", far[1].seen); /* it has said nothing yet */
    close_fars(2);
}

/* F2: one that says nothing is asked about. */
TEST(ws_far, silent_ones_are_asked_about)
{
    open_fars(1);
    settle();
    say(&near[0], "lost");
    lose();
    CHECK_STR("", far[0].seen);
    worker_rig_run(&rig, B, tick, NULL);
    CHECK_INT(carried_count, question_count); /* it is not time yet */
    carriers[B].keep_ms = 0;
    worker_rig_run(&rig, B, tick, NULL);
    settle();
    carriers[B].keep_ms = 10000;
    worker_rig_run(&rig, B, tick, NULL);
    worker_rig_run(&rig, B, tick, NULL);
    CHECK_STR("c1006::cut", far[0].seen);
    close_fars(1);
}

/* How the other side has ended is told, not that it is not there any more: an answer may overtake
 * the letter that says so. */
TEST(ws_far, a_close_that_an_answer_overtakes_is_not_lost)
{
    open_fars(1);
    settle();
    say(&far[0], "crosses");
    say(&near[0], "!");
    worker_rig_run(&rig, A, let_go, &near[0]);
    /* What B has asked is carried first, and finds nobody. */
    settle();
    worker_rig_run(&rig, B, tick, NULL);
    settle();
    CHECK_STR("c4001:done:clean", far[0].seen);
    close_fars(1);
}

static void break_other(struct cn_lane *lane, void *data)
{
    (void)data;
    cn_ws_far_break(lane, lane->options.index == A ? 2 : 1);
}

TEST(ws_far, a_node_that_is_gone_takes_its_conversations_with_it)
{
    open_fars(2);
    settle();
    worker_rig_run(&rig, A, break_other, NULL);
    worker_rig_run(&rig, B, break_other, NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_STR("c1012::clean", near[i].seen);
        CHECK_STR("c1006::cut", far[i].seen);
    }
    close_fars(2);
}

/* --- moves: F7 -------------------------------------------------------------------------------- */

static int parked; /* 1: it is, -1: it is lost */

static void on_parked(void *data, bool is_parked)
{
    (void)data;
    parked = is_parked ? 1 : -1;
}

static void ask_park(struct cn_lane *lane, void *data)
{
    (void)lane, (void)data;
    struct cn_ws_far *own = cn_ws_far_of(far[0].end->peer);
    CHECK(own && !cn_ws_far_is_near(own));
    cn_ws_far_ask_park(own, on_parked, NULL);
}

/* The object's new place: the same lane, by another end. */
static void resume_there(struct cn_lane *lane, void *data)
{
    (void)data;
    struct cn_ws_far *own = cn_ws_far_of(far[0].end->peer);
    struct cn_ws_site site = cn_ws_far_site(own);
    cn_ws_end_let_go(far[0].end);
    cn_ws_far_hand_over(own);
    cn_ws_end_release(far[0].end);
    far[0].end = NULL;
    far[1].end = cn_ws_far_resume(lane, &site);
    CHECK(far[1].end && cn_websocket_number(lane, far[1].end));
    cn_ws_end_claim(far[1].end, &ws_side_ops, &far[1]);
}

TEST(ws_far, a_side_that_is_parked_keeps_what_comes_and_goes_on_with_another)
{
    open_fars(1);
    settle();
    parked = 0;
    say(&near[0], "before");
    worker_rig_run(&rig, B, ask_park, NULL);
    say(&near[0], "just before");
    settle();
    CHECK_INT(1, parked);
    CHECK_STR("m:before m:just before", far[0].seen);
    say(&near[0], "kept");
    settle();
    CHECK_STR("m:before m:just before", far[0].seen);
    worker_rig_run(&rig, B, resume_there, NULL);
    say(&far[1], "hello again");
    settle();
    say(&near[0], "after");
    settle();
    CHECK_STR("m:kept m:after", far[1].seen);
    CHECK_STR("hold go m:hello again", near[0].seen);
    close_fars(2);
}

/* F8 */
TEST(ws_far, who_is_asked_to_park_has_got_what_waited_because_others_sent_much)
{
    open_fars(2);
    settle();
    parked = 0;
    worker_rig_run(&rig, B, send_large, &far[1]);
    say(&far[0], "late");
    worker_rig_run(&rig, B, ask_park, NULL);
    CHECK_INT(0, parked);
    settle();
    CHECK_INT(1, parked);
    CHECK_STR("m:late", near[0].seen);
    close_fars(2);
}

TEST(ws_far, one_that_is_parked_and_then_closed_is_lost_at_once)
{
    open_fars(1);
    settle();
    worker_rig_run(&rig, B, ask_park, NULL);
    settle();
    say(&near[0], "kept");
    say(&far[0], "!");
    settle();
    CHECK_STR("hold c1012::clean", near[0].seen);
    close_fars(1);
}

static void park_here(struct cn_lane *lane, void *data)
{
    struct cn_ws_site *site = data;
    cn_ws_end_let_go(far[0].end);
    cn_ws_far_park(lane, far[0].end, site);
}

static void resume_site(struct cn_lane *lane, void *data)
{
    far[1].end = cn_ws_far_resume(lane, data);
    CHECK(far[1].end && cn_websocket_number(lane, far[1].end));
    cn_ws_end_claim(far[1].end, &ws_side_ops, &far[1]);
}

/* A client of the node that the object leaves, and one whose object comes back to its node: by
 * mail, since no question goes to oneself. */
TEST(ws_far, one_that_is_parked_where_it_is_resumed_is_reached_by_mail)
{
    struct cn_ws_site site;
    open_fars(1);
    settle();
    say(&near[0], "before");
    settle();
    worker_rig_run(&rig, B, park_here, &site);
    CHECK(site.disk == 2 && site.lane == B);
    say(&near[0], "kept");
    settle();
    worker_rig_run(&rig, B, resume_site, &site);
    for (int i = 0; i < 3; i++)
        worker_rig_run(&rig, B, no_more, NULL);
    settle();
    say(&near[0], "after");
    settle();
    for (int i = 0; i < 3; i++)
        worker_rig_run(&rig, B, no_more, NULL);
    CHECK_STR("m:kept m:after", far[1].seen);
    far[0].end = NULL; /* it is a far end's now */
    worker_rig_run(&rig, B, let_go, &far[1]);
    for (int i = 0; i < 3; i++)
        worker_rig_run(&rig, B, no_more, NULL);
    settle();
    CHECK_STR("hold go " LOST, near[0].seen);
    close_fars(1);
}

static void unpark(struct cn_lane *lane, void *data)
{
    cn_ws_far_unpark(lane, ((struct cn_ws_site *)data)->handle);
}

TEST(ws_far, one_that_nobody_resumes_is_lost)
{
    struct cn_ws_site site;
    open_fars(1);
    settle();
    worker_rig_run(&rig, B, park_here, &site);
    far[0].end = NULL;
    worker_rig_run(&rig, B, unpark, &site);
    settle();
    CHECK_STR("c1012::clean", near[0].seen);
    worker_rig_run(&rig, B, unpark, &site); /* it stands for nothing any more */
    close_fars(1);
}

/* --- strangers -------------------------------------------------------------------------------- */

struct strange {
    const uint8_t *bytes;
    size_t size;
    uint64_t disk;
    struct cn_buf answer;
    bool good;
};

static void arrive_strange(struct cn_lane *lane, void *data)
{
    struct strange *strange = data;
    strange->good =
        cn_ws_far_asked(lane, strange->disk, strange->bytes, strange->size, &strange->answer);
}

/* F3, F6: cut anywhere it is refused, or does less; of another disk or for another life it finds
 * nobody. */
TEST(ws_far, bytes_of_others_are_input)
{
    open_fars(1);
    settle();
    say(&near[0], "hello");
    struct question *question = &questions[carried_count];
    for (size_t size = 0; size < question->size; size++) {
        struct strange cut = {question->bytes, size, 1, {0}, false};
        worker_rig_run(&rig, B, arrive_strange, &cut);
        CHECK_STR("", far[0].seen);
        cn_buf_fini(&cut.answer);
    }
    struct strange other = {question->bytes, question->size, 9, {0}, false};
    worker_rig_run(&rig, B, arrive_strange, &other);
    CHECK(other.good && other.answer.size > 0);
    CHECK_STR("", far[0].seen);
    cn_buf_fini(&other.answer);
    settle();
    CHECK_STR("m:hello", far[0].seen);
    close_fars(1);
}

/* Lanes stop with questions under way: their answers come later, or never. */
TEST(ws_far, lanes_stop_with_one_open)
{
    open_fars(1);
    settle();
    say(&near[0], "under way");
    worker_rig_run(&rig, A, let_go, &near[0]);
    worker_rig_run(&rig, B, let_go, &far[0]);
    for (unsigned i = carried_count; i < question_count; i++) {
        worker_rig_run(&rig, questions[i].from, fail, &questions[i]);
        question_fini(&questions[i]);
    }
    worker_rig_close(&rig);
}
