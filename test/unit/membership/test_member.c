/* SPDX-License-Identifier: Apache-2.0 */
/* A node's decisions, step by step: each rule of membership/member.h where it is decided. What many
 * nodes make of them under faults is shown by the simulation (test/simulate/). */
#include "membership/member.h"

#include <string.h>

#include "base/err.h"
#include "test/lib/test.h"

enum { SHARDS = 3, LAST = 64 };

/* Writes down what the member wants, and answers as an engine with one row of each would. */
struct rig {
    struct cn_member member;
    struct cn_member_host host;
    struct cn_engine_statement sent[LAST];
    struct cn_engine_item items[LAST][CN_ENGINE_ITEMS_MAX];
    unsigned sent_count, answered;
    struct {
        enum cn_member_act act;
        uint32_t shard;
        uint64_t epoch, from, lsn;
    } acts[LAST];
    unsigned act_count;
    struct cn_member_message told[LAST];
    unsigned told_count;
    unsigned notes[CN_NOTES];
    uint64_t link;
    struct cn_engine_shard shards[SHARDS];
    struct cn_engine_session sessions[4];
    unsigned session_count;
    uint64_t version, head, beat; /* beat: of session 9, which each statement that writes raises */
    struct cn_engine_seen seen;   /* that it wants remembered */
    bool slow_disk, unwritten;    /* which is done when the disk is not slow */
    uint64_t weight;              /* of every record; 0: 100 bytes */
    int64_t now;
};
static struct rig rig;

static void on_send(void *data, const struct cn_engine_statement *statement)
{
    CHECK(rig.sent_count < LAST);
    rig.sent[rig.sent_count] = *statement;
    for (size_t i = 0; i < statement->count; i++)
        rig.items[rig.sent_count][i] = statement->items[i];
    rig.sent_count++;
}

static void on_connect(void *data, uint64_t link)
{
    rig.link = link;
    rig.answered = rig.sent_count; /* what was sent on the old one is not answered any more */
}

static void on_tell(void *data, uint64_t session, uint64_t disk,
                    const struct cn_member_message *message)
{
    CHECK(rig.told_count < LAST);
    rig.told[rig.told_count++] = *message;
}

static void on_act(void *data, enum cn_member_act act, uint32_t shard, uint64_t epoch,
                   uint64_t from, uint64_t lsn)
{
    CHECK(rig.act_count < LAST);
    rig.acts[rig.act_count].act = act;
    rig.acts[rig.act_count].shard = shard;
    rig.acts[rig.act_count].epoch = epoch;
    rig.acts[rig.act_count].from = from;
    rig.acts[rig.act_count++].lsn = lsn;
}

static void on_note(void *data, enum cn_member_note note)
{
    rig.notes[note]++;
}

static void on_remember(void *data, const struct cn_engine_seen *seen)
{
    rig.seen = *seen;
    rig.unwritten = true;
}

static void write_seen(void)
{
    if (!rig.unwritten || rig.slow_disk)
        return;
    rig.unwritten = false;
    cn_member_remembered(&rig.member, rig.now, &rig.seen);
}

static uint64_t on_weigh(void *data, uint32_t shard, uint64_t lsn)
{
    return rig.weight ? rig.weight : 100;
}

static struct cn_member_config config_of(bool verified)
{
    struct cn_member_config config = {
        .disk = 1, .life = 7, .shard_count = SHARDS, .verified = verified};
    cn_member_defaults(&config);
    return config;
}

static void begin(bool verified)
{
    struct cn_member_config config = config_of(verified);
    if (rig.member.shards)
        cn_member_fini(&rig.member);
    memset(&rig, 0, sizeof(rig));
    rig.host = (struct cn_member_host){on_send, on_connect, on_tell,     on_act,
                                       on_note, on_weigh,   on_remember, NULL};
    CHECK_INT(0, cn_member_init(&rig.member, &config, &rig.host));
    rig.now = 1000;
    rig.version = 1;
    for (unsigned i = 0; i < SHARDS; i++) { /* another node has them, and this disk is a replica */
        rig.shards[i] =
            (struct cn_engine_shard){.owner = 2, .epoch = 5, .replica_count = 2, .disks = {2, 1}};
        cn_member_found(&rig.member, i, 10, 10);
    }
    rig.sessions[0] = (struct cn_engine_session){.id = 2, .disk = 2, .beat = 1};
    rig.session_count = 1;
}

/* The oldest statement that was not answered; NULL: there is none. */
static struct cn_engine_statement *oldest(void)
{
    return rig.answered < rig.sent_count ? &rig.sent[rig.answered] : NULL;
}

static struct cn_engine_statement *expect(enum cn_engine_kind kind)
{
    struct cn_engine_statement *statement = oldest();
    CHECK(statement != NULL);
    CHECK_INT(kind, statement->kind);
    return statement;
}

static struct cn_engine_item *item_of(const struct cn_engine_statement *statement)
{
    return rig.items[statement - rig.sent];
}

static void give(struct cn_engine_answer *answer)
{
    struct cn_engine_statement *statement = oldest();
    CHECK(statement != NULL);
    answer->kind = statement->kind;
    answer->link = statement->link;
    answer->number = statement->number;
    rig.answered++;
    cn_member_answer(&rig.member, rig.now, answer);
    write_seen();
}

static void raise_beat(void)
{
    rig.beat++;
    for (unsigned i = 0; i < rig.session_count; i++)
        if (rig.sessions[i].id == 9)
            rig.sessions[i].beat = rig.beat;
}

static void answer_done(enum cn_engine_kind kind)
{
    struct cn_engine_statement *statement = expect(kind);
    struct cn_engine_item item = item_of(statement)[0];
    raise_beat();
    struct cn_engine_view view = {.version = rig.version,
                                  .sessions = rig.sessions,
                                  .session_count = rig.session_count,
                                  .shards = statement->version < rig.version ? rig.shards : NULL};
    give(&(struct cn_engine_answer){.live = true,
                                    .done = true,
                                    .session = 9,
                                    .head = rig.head,
                                    .beat = rig.beat,
                                    .count = 1,
                                    .items = &item,
                                    .view = kind == CN_ENGINE_BEAT ? &view : NULL});
}

static void answer_fenced(void)
{
    give(&(struct cn_engine_answer){.live = false});
}

static void answer_read(uint64_t to, bool more, uint64_t trim)
{
    struct cn_engine_item item = *item_of(expect(CN_ENGINE_READ));
    item.last = to > item.from ? to : item.from;
    item.from = trim;
    item.to = to;
    item.more = more;
    give(&(struct cn_engine_answer){.live = true, .done = true, .count = 1, .items = &item});
}

static void link_up(void)
{
    cn_member_link_up(&rig.member, rig.now, rig.link, &(struct cn_engine_link){.timeline = 1});
}

static void relink(void)
{
    cn_member_link_down(&rig.member, rig.now, rig.link);
    rig.now += 1000;
    cn_member_tick(&rig.member, rig.now);
    link_up();
}

/* Joined as session 9, with a first map. */
static void join(void)
{
    cn_member_start(&rig.member, rig.now);
    link_up();
    answer_done(CN_ENGINE_JOIN);
    rig.sessions[rig.session_count++] = (struct cn_engine_session){.id = 9, .disk = 1, .beat = 1};
    answer_done(CN_ENGINE_BEAT);
}

/* Answers others until one of this kind is the oldest. */
static struct cn_engine_statement *next_of(enum cn_engine_kind kind)
{
    while (oldest() && oldest()->kind != kind)
        answer_done(oldest()->kind);
    return expect(kind);
}

static void answer_all(void)
{
    while (oldest()) {
        if (oldest()->kind == CN_ENGINE_READ)
            answer_read(10, false, 0);
        else
            answer_done(oldest()->kind);
    }
}

/* Shard 0 was handed to this node, which serves it now. */
static void serve(void)
{
    answer_all();
    rig.shards[0].owner = 9;
    rig.shards[0].epoch++;
    rig.version++;
    cn_member_hint(&rig.member, rig.now);
    answer_all();
    CHECK_INT(CN_ROLE_SERVING, rig.member.shards[0].role);
}

static bool acted(enum cn_member_act act, uint32_t shard)
{
    for (unsigned i = 0; i < rig.act_count; i++)
        if (rig.acts[i].act == act && rig.acts[i].shard == shard)
            return true;
    return false;
}

static bool may_leave(uint64_t lsn, uint64_t ticket)
{
    return cn_member_may_leave(&rig.member, rig.now, 0, rig.shards[0].epoch, lsn, ticket);
}

TEST(member_init, refuses_what_cannot_be_right)
{
    struct cn_member member;
    struct cn_member_config config = config_of(false);
    config.lease_ms = config.ttl_ms;
    CHECK_INT(CN_EINVALID, cn_member_init(&member, &config, &rig.host));
    config = config_of(false);
    config.shard_count = CN_CLUSTER_SHARDS_MAX + 1;
    CHECK_INT(CN_EINVALID, cn_member_init(&member, &config, &rig.host));
    config = config_of(false);
    config.disk = 0;
    CHECK_INT(CN_EINVALID, cn_member_init(&member, &config, &rig.host));
}

TEST(member_states, are_those_of_the_header)
{
    CHECK(cn_member_may_change(CN_MEMBER_DOUBT, CN_MEMBER_LIVE));
    CHECK(!cn_member_may_change(CN_MEMBER_GONE, CN_MEMBER_JOINING));
    CHECK(!cn_member_may_change(CN_MEMBER_LEAVING, CN_MEMBER_LIVE));
    for (int to = 0; to < CN_ROLES; to++) {
        CHECK_INT(to == CN_ROLE_TAKING, cn_role_may_change(to, CN_ROLE_SERVING) &&
                                            to != CN_ROLE_STOPPING && to != CN_ROLE_MOVING);
        CHECK_INT(to == CN_ROLE_STOPPING, cn_role_may_change(to, CN_ROLE_MOVING));
    }
}

/* C3, C4, C9 */
TEST(member_take, serves_after_a_read_and_a_barrier_of_its_own)
{
    begin(false);
    join();
    answer_all();
    rig.shards[0].owner = 9;
    rig.shards[0].epoch = 6;
    rig.version++;
    cn_member_hint(&rig.member, rig.now);
    answer_done(CN_ENGINE_BEAT);
    CHECK_INT(CN_ROLE_TAKING, rig.member.shards[0].role);
    CHECK_INT(10, item_of(expect(CN_ENGINE_READ))->from);
    answer_read(12, true, 0);
    CHECK(!acted(CN_ACT_APPLY, 0));
    answer_done(CN_ENGINE_BEAT);
    CHECK(acted(CN_ACT_APPLY, 0));
    CHECK(!acted(CN_ACT_SERVE, 0)); /* there is more of it */
    answer_read(13, false, 0);
    CHECK(!acted(CN_ACT_SERVE, 0));
    answer_done(CN_ENGINE_BEAT);
    CHECK(acted(CN_ACT_SERVE, 0));
    CHECK_INT(13, rig.acts[rig.act_count - 1].lsn);
    CHECK_INT(6, rig.acts[rig.act_count - 1].epoch);
}

/* C4 */
TEST(member_take, does_not_use_what_another_link_has_read)
{
    begin(false);
    join();
    answer_all();
    rig.shards[0].owner = 9;
    rig.shards[0].epoch = 6;
    rig.version++;
    cn_member_hint(&rig.member, rig.now);
    answer_done(CN_ENGINE_BEAT);
    answer_read(12, false, 0);
    relink();
    answer_done(CN_ENGINE_HELLO);
    answer_done(CN_ENGINE_BEAT);
    CHECK(!acted(CN_ACT_APPLY, 0));
    CHECK(acted(CN_ACT_FORGET, 0));
    CHECK_INT(10, item_of(next_of(CN_ENGINE_READ))->from);
}

/* C3: what was being read as a follower is no tail. */
TEST(member_take, forgets_a_read_that_began_before_it_was_its_own)
{
    begin(false);
    join();
    answer_all();
    struct cn_member_message feed = {.kind = CN_MESSAGE_FEED, .from = 11, .to = 12};
    cn_member_message(&rig.member, rig.now, &feed);
    cn_member_hint(&rig.member, rig.now);
    struct cn_engine_statement *old = expect(CN_ENGINE_READ);
    struct cn_engine_item late = {.shard = 0, .to = 11};
    give(&(struct cn_engine_answer){.live = true, .done = true, .count = 1, .items = &late});
    CHECK_INT(CN_READ_HELD, rig.member.shards[0].read);
    rig.shards[0].owner = 9;
    rig.shards[0].epoch = 6;
    rig.version++;
    answer_done(CN_ENGINE_BEAT); /* sent before the read was answered: tells of the gift */
    CHECK(!acted(CN_ACT_APPLY, 0));
    CHECK(old != expect(CN_ENGINE_READ));
}

/* C5 */
TEST(member_gate, opens_when_durable_and_while_the_lease_lasts)
{
    begin(false);
    join();
    serve();
    int64_t sent = rig.now;
    CHECK(cn_member_may_take(&rig.member, rig.now, 0));
    cn_member_appended(&rig.member, rig.now, 0, 11);
    CHECK(!may_leave(11, 0));
    CHECK(may_leave(10, 0));
    rig.now += 700; /* the answer takes long: the lease counts from when it was sent */
    answer_done(CN_ENGINE_APPEND);
    CHECK(may_leave(11, 0));
    rig.now = sent + 2099;
    CHECK(may_leave(11, 0));
    rig.now = sent + 2100;
    CHECK(!may_leave(11, 0));
    CHECK(!cn_member_may_take(&rig.member, rig.now, 0));
}

/* C5, C9: what ran under another epoch does not leave. */
TEST(member_gate, is_closed_to_another_epoch)
{
    begin(false);
    join();
    serve();
    CHECK(!cn_member_may_leave(&rig.member, rig.now, 0, rig.shards[0].epoch - 1, 10, 0));
    CHECK(!cn_member_may_leave(&rig.member, rig.now, 1, rig.shards[1].epoch, 10, 0));
}

/* C5: no clock has a part in it. */
TEST(member_gate, with_verified_reads_waits_for_a_statement_sent_later)
{
    begin(true);
    join();
    serve();
    answer_all();
    cn_member_hint(&rig.member, rig.now); /* a beat is under way already */
    uint64_t ticket = cn_member_ticket(&rig.member, rig.now);
    CHECK(!may_leave(10, ticket));
    answer_done(CN_ENGINE_BEAT);
    CHECK(!may_leave(10, ticket));
    rig.now += 100000;
    answer_done(CN_ENGINE_BEAT); /* sent for the ticket's sake */
    CHECK(may_leave(10, ticket));
}

/* C1 */
TEST(member_append, after_a_broken_link_sends_again_what_is_not_there)
{
    begin(false);
    join();
    serve();
    cn_member_appended(&rig.member, rig.now, 0, 11);
    cn_member_appended(&rig.member, rig.now, 0, 13);
    relink();
    CHECK(expect(CN_ENGINE_HELLO) != NULL);
    CHECK_INT(1, rig.sent_count - rig.answered); /* M3: nothing but that */
    rig.head = 1;
    answer_done(CN_ENGINE_HELLO);
    CHECK(may_leave(11, 0));
    CHECK(!may_leave(12, 0));
    struct cn_engine_statement *again = expect(CN_ENGINE_APPEND);
    CHECK_INT(2, again->seq);
    CHECK_INT(11, item_of(again)->from);
    CHECK_INT(13, item_of(again)->to);
    answer_done(CN_ENGINE_APPEND);
    CHECK(may_leave(13, 0));
}

TEST(member_append, has_a_bound_on_what_is_under_way)
{
    begin(false);
    join();
    serve();
    for (uint64_t lsn = 11; lsn < 40; lsn++)
        cn_member_appended(&rig.member, rig.now, 0, lsn);
    CHECK_INT(CN_MEMBER_BATCHES_MAX, rig.sent_count - rig.answered);
    answer_done(CN_ENGINE_APPEND);
    CHECK_INT(39, rig.items[rig.sent_count - 1][0].to); /* the rest in one */
}

TEST(member_append, takes_what_several_shards_have_in_one_batch)
{
    begin(false);
    join();
    answer_all();
    for (unsigned i = 0; i < SHARDS; i++) {
        rig.shards[i].owner = 9;
        rig.shards[i].epoch++;
    }
    rig.version++;
    cn_member_hint(&rig.member, rig.now);
    answer_all();
    const struct cn_member_appends appends[] = {{2, 12}, {0, 11}, {1, 10}}; /* 1 has nothing new */
    cn_member_appended_all(&rig.member, rig.now, appends, 3);
    CHECK_INT(1, rig.sent_count - rig.answered);
    const struct cn_engine_statement *batch = expect(CN_ENGINE_APPEND);
    CHECK_INT(2, batch->count);
    CHECK_INT(0, rig.items[rig.answered][0].shard);
    CHECK_INT(11, rig.items[rig.answered][0].to);
    CHECK_INT(2, rig.items[rig.answered][1].shard);
    CHECK_INT(12, rig.items[rig.answered][1].to);
    answer_done(CN_ENGINE_APPEND);
    cn_member_appended_all(&rig.member, rig.now, NULL, 0);
    CHECK_INT(0, rig.sent_count - rig.answered);
}

TEST(member_append, bounds_a_batch_by_bytes_and_lets_one_large_record_go_alone)
{
    begin(false);
    join();
    serve();
    rig.weight = CN_MEMBER_BATCH_BYTES / 4 - 1;
    cn_member_appended(&rig.member, rig.now, 0, 19);
    CHECK_INT(14, item_of(expect(CN_ENGINE_APPEND))->to);
    CHECK_INT(2, rig.sent_count - rig.answered);
    answer_all();
    CHECK(may_leave(19, 0));
    rig.weight = CN_MEMBER_BATCH_BYTES * 3;
    cn_member_appended(&rig.member, rig.now, 0, 24);
    CHECK_INT(20, item_of(expect(CN_ENGINE_APPEND))->to);
    CHECK_INT(2, rig.sent_count - rig.answered); /* 24 MiB are under way: enough */
    answer_done(CN_ENGINE_APPEND);
    CHECK_INT(2, rig.sent_count - rig.answered);
    answer_all();
    CHECK(may_leave(24, 0));
    CHECK_INT(0, rig.member.flight);
}

/* Else a large commit would never get through: its link would be given up again and again. */
TEST(member_append, gives_an_answer_the_time_that_its_bytes_take)
{
    begin(false);
    join();
    serve();
    answer_all();
    rig.weight = CN_MEMBER_BATCH_BYTES * 3;
    cn_member_appended(&rig.member, rig.now, 0, 11);
    int64_t extra = (int64_t)rig.weight / CN_MEMBER_BYTES_PER_MS;
    rig.now += rig.member.config.link_ms + extra - 1;
    cn_member_tick(&rig.member, rig.now);
    CHECK_INT(CN_MEMBER_LIVE, rig.member.state);
    rig.now++;
    cn_member_tick(&rig.member, rig.now);
    CHECK_INT(CN_MEMBER_DOUBT, rig.member.state);
    CHECK_INT(rig.weight, rig.member.flight); /* it goes out again */
}

TEST(member_follow, asks_for_no_tail_while_its_store_has_enough_to_write)
{
    begin(false);
    join();
    answer_all();
    cn_member_busy(&rig.member, rig.now, 0, true);
    struct cn_member_message feed = {.kind = CN_MESSAGE_FEED, .from = 12, .to = 13};
    cn_member_message(&rig.member, rig.now, &feed);
    answer_all();
    CHECK_INT(CN_READ_WANTED, rig.member.shards[0].read);
    cn_member_busy(&rig.member, rig.now, 0, false);
    CHECK_INT(10, item_of(expect(CN_ENGINE_READ))->from);
}

TEST(member_append, stops_for_good_if_the_engine_has_lost_what_it_acknowledged)
{
    begin(false);
    join();
    serve();
    cn_member_appended(&rig.member, rig.now, 0, 11);
    answer_done(CN_ENGINE_APPEND);
    relink();
    rig.head = 0;
    answer_done(CN_ENGINE_HELLO);
    CHECK_INT(1, rig.notes[CN_NOTE_ENGINE_LOST_DATA]);
    CHECK_INT(CN_MEMBER_GONE, rig.member.state);
    CHECK(!may_leave(11, 0));
    CHECK(acted(CN_ACT_CLOSE, 0));
}

/* C1: what was never durable is dropped. */
TEST(member_fenced, closes_its_shards_at_what_is_durable_and_joins_anew)
{
    begin(false);
    join();
    serve();
    cn_member_appended(&rig.member, rig.now, 0, 11);
    answer_done(CN_ENGINE_APPEND);
    cn_member_appended(&rig.member, rig.now, 0, 14);
    answer_fenced();
    CHECK_INT(1, rig.notes[CN_NOTE_FENCED]);
    CHECK_INT(CN_ACT_CLOSE, rig.acts[rig.act_count - 1].act);
    CHECK_INT(11, rig.acts[rig.act_count - 1].lsn);
    CHECK(!may_leave(11, 0));
    cn_member_appended(&rig.member, rig.now, 0, 15); /* its lane has not heard yet */
    cn_member_tick(&rig.member, rig.now);
    link_up();
    CHECK_INT(9, expect(CN_ENGINE_JOIN)->life); /* the second of this process */
}

/* C2 */
TEST(member_fence, repeats_a_beat_that_was_seen_for_a_whole_ttl)
{
    begin(false);
    join();
    answer_all();
    for (int i = 0; i < 5; i++) {
        rig.now += 500;
        cn_member_tick(&rig.member, rig.now);
        answer_all();
    }
    for (unsigned i = 0; i < rig.sent_count; i++)
        CHECK(rig.sent[i].kind != CN_ENGINE_FENCE);
    rig.now += 500;
    cn_member_tick(&rig.member, rig.now);
    answer_done(CN_ENGINE_BEAT);
    struct cn_engine_statement *fence = expect(CN_ENGINE_FENCE);
    CHECK_INT(2, item_of(fence)->session);
    CHECK_INT(1, item_of(fence)->beat);
}

TEST(member_fence, waits_anew_after_the_engine_was_away)
{
    begin(false);
    join();
    answer_all();
    rig.now += 10000; /* no answer in all that time: the other could not beat either */
    relink();
    answer_done(CN_ENGINE_HELLO);
    answer_done(CN_ENGINE_BEAT);
    answer_all();
    for (unsigned i = 0; i < rig.sent_count; i++)
        CHECK(rig.sent[i].kind != CN_ENGINE_FENCE);
}

TEST(member_fence, is_not_hastened_by_a_hint_unless_reads_are_verified)
{
    for (int verified = 0; verified < 2; verified++) {
        begin(verified);
        join();
        answer_all();
        cn_member_silent(&rig.member, rig.now, 2);
        answer_done(CN_ENGINE_BEAT);
        CHECK_INT(verified, oldest() && oldest()->kind == CN_ENGINE_FENCE);
    }
}

TEST(member_claim, takes_what_a_dead_session_had)
{
    begin(false);
    join();
    answer_all();
    rig.sessions[0] = rig.sessions[1];
    rig.session_count = 1;
    rig.version++;
    cn_member_hint(&rig.member, rig.now);
    answer_done(CN_ENGINE_BEAT);
    struct cn_engine_statement *claim = expect(CN_ENGINE_CLAIM);
    CHECK_INT(SHARDS, claim->count);
    CHECK_INT(5, item_of(claim)->epoch);
    struct cn_engine_item won = {.shard = 1, .epoch = 6}; /* another was first with the others */
    give(&(struct cn_engine_answer){.live = true, .done = true, .count = 1, .items = &won});
    CHECK_INT(CN_ROLE_FOLLOWING, rig.member.shards[0].role);
    CHECK_INT(CN_ROLE_TAKING, rig.member.shards[1].role);
}

/* C7 */
TEST(member_move, waits_until_all_is_durable_and_nothing_runs)
{
    begin(false);
    join();
    serve();
    answer_all();
    CHECK(!cn_member_move(&rig.member, rig.now, 1, 2)); /* not its own */
    CHECK(cn_member_move(&rig.member, rig.now, 0, 2));
    CHECK(acted(CN_ACT_STOP, 0));
    CHECK(!cn_member_may_take(&rig.member, rig.now, 0));
    cn_member_appended(&rig.member, rig.now, 0, 11); /* by what still runs */
    cn_member_stopped(&rig.member, rig.now, 0);
    CHECK_INT(CN_ENGINE_APPEND, rig.sent[rig.sent_count - 1].kind);
    answer_done(CN_ENGINE_APPEND);
    CHECK_INT(2, item_of(expect(CN_ENGINE_MOVE))->session);
    CHECK(!may_leave(10, 0));
    answer_done(CN_ENGINE_MOVE);
    CHECK_INT(CN_ROLE_FOLLOWING, rig.member.shards[0].role);
    CHECK(acted(CN_ACT_CLOSE, 0));
}

static void lose_a_move(void)
{
    begin(false);
    join();
    serve();
    answer_all();
    CHECK(cn_member_move(&rig.member, rig.now, 0, 2));
    cn_member_stopped(&rig.member, rig.now, 0);
    CHECK_INT(CN_ROLE_MOVING, rig.member.shards[0].role);
    relink();
    answer_done(CN_ENGINE_HELLO);
    CHECK_INT(CN_ROLE_MOVING, rig.member.shards[0].role); /* E7: HELLO does not tell */
    CHECK_INT(0, expect(CN_ENGINE_BEAT)->version);
}

TEST(member_move, goes_on_serving_if_the_map_after_hello_says_so)
{
    lose_a_move();
    answer_done(CN_ENGINE_BEAT);
    CHECK_INT(CN_ROLE_SERVING, rig.member.shards[0].role);
    CHECK(acted(CN_ACT_RESUME, 0));
}

TEST(member_move, is_done_if_the_map_after_hello_says_so)
{
    lose_a_move();
    rig.shards[0].owner = 2;
    rig.shards[0].epoch++;
    rig.version++;
    answer_done(CN_ENGINE_BEAT);
    CHECK_INT(CN_ROLE_FOLLOWING, rig.member.shards[0].role);
    CHECK(acted(CN_ACT_CLOSE, 0));
}

/* C9 */
TEST(member_move, reads_anew_what_came_back_under_another_epoch)
{
    lose_a_move();
    rig.shards[0].epoch += 2; /* there and back */
    rig.version++;
    answer_done(CN_ENGINE_BEAT);
    CHECK_INT(CN_ROLE_TAKING, rig.member.shards[0].role);
    CHECK(acted(CN_ACT_CLOSE, 0));
    CHECK(!may_leave(10, 0));
    CHECK(next_of(CN_ENGINE_READ) != NULL);
}

/* C6 */
TEST(member_feed, tells_followers_what_is_durable_and_not_before)
{
    begin(false);
    join();
    serve();
    rig.told_count = 0;
    cn_member_appended(&rig.member, rig.now, 0, 12);
    CHECK_INT(0, rig.told_count);
    answer_done(CN_ENGINE_APPEND);
    CHECK_INT(1, rig.told_count);
    CHECK_INT(10, rig.told[0].from);
    CHECK_INT(12, rig.told[0].to);
}

TEST(member_feed, is_applied_without_gaps)
{
    begin(false);
    join();
    answer_all();
    struct cn_member_message feed = {.kind = CN_MESSAGE_FEED, .shard = 1, .from = 8, .to = 12};
    cn_member_message(&rig.member, rig.now, &feed);
    CHECK(acted(CN_ACT_FED, 1));
    CHECK_INT(10, rig.acts[rig.act_count - 1].from);
    CHECK_INT(12, rig.member.shards[1].have);
    feed.from = 13;
    feed.to = 14;
    cn_member_message(&rig.member, rig.now, &feed);
    CHECK_INT(12, rig.member.shards[1].have);
    CHECK_INT(12, item_of(expect(CN_ENGINE_READ))->from); /* from the engine */
}

TEST(member_message, bears_what_makes_no_sense)
{
    begin(false);
    join();
    answer_all();
    unsigned acts = rig.act_count;
    struct cn_member_message bad = {.kind = CN_MESSAGE_FEED, .shard = SHARDS, .to = 99};
    cn_member_message(&rig.member, rig.now, &bad);
    bad = (struct cn_member_message){.kind = CN_MESSAGE_KINDS, .to = 99};
    cn_member_message(&rig.member, rig.now, &bad);
    bad = (struct cn_member_message){.kind = CN_MESSAGE_FEED, .from = 99, .to = 20};
    cn_member_message(&rig.member, rig.now, &bad);
    bad = (struct cn_member_message){.kind = CN_MESSAGE_ASK, .session = 77};
    cn_member_message(&rig.member, rig.now, &bad);
    CHECK_INT(acts, rig.act_count);
    CHECK_INT(10, rig.member.shards[0].have);
}

/* C8 */
TEST(member_replica, throws_away_what_is_older_than_the_trim)
{
    begin(false);
    join();
    answer_all();
    struct cn_member_message feed = {.kind = CN_MESSAGE_FEED, .shard = 1, .from = 40, .to = 41};
    cn_member_message(&rig.member, rig.now, &feed);
    answer_read(10, false, 30);
    CHECK(acted(CN_ACT_DISCARD, 1));
    CHECK_INT(CN_ROLE_NONE, rig.member.shards[1].role);
    cn_member_hint(&rig.member, rig.now);
    answer_done(CN_ENGINE_BEAT);
    CHECK_INT(1, item_of(expect(CN_ENGINE_DROP))->disk);
}

TEST(member_replica, is_thrown_away_when_the_map_does_not_name_its_disk)
{
    begin(false);
    rig.shards[2].disks[1] = 3;
    join();
    CHECK(acted(CN_ACT_DISCARD, 2));
    CHECK(!acted(CN_ACT_DISCARD, 1));
}

TEST(member_replica, is_copied_from_the_owner_and_then_added)
{
    begin(false);
    rig.shards[2].replica_count = 1;
    join();
    CHECK_INT(CN_ROLE_COPYING, rig.member.shards[2].role);
    CHECK_INT(CN_MESSAGE_ASK, rig.told[rig.told_count - 1].kind);
    answer_all();
    cn_member_copied(&rig.member, rig.now, 2, 20);
    CHECK_INT(20, item_of(expect(CN_ENGINE_ADD))->to);
    answer_done(CN_ENGINE_ADD);
    CHECK_INT(CN_ROLE_FOLLOWING, rig.member.shards[2].role);
}

static unsigned asks(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < rig.told_count; i++)
        count += rig.told[i].kind == CN_MESSAGE_ASK;
    return count;
}

static void pass_beats(int count)
{
    rig.now += count * rig.member.config.beat_ms;
    cn_member_hint(&rig.member, rig.now);
    answer_all();
}

/* P4 */
TEST(member_replica, that_does_not_begin_to_come_is_asked_for_again)
{
    begin(false);
    rig.shards[2].replica_count = 1;
    join();
    answer_all();
    CHECK_INT(1, asks());
    pass_beats(1);
    CHECK_INT(1, asks());
    pass_beats(3);
    CHECK_INT(2, asks());
    cn_member_copy_begun(&rig.member, 2);
    pass_beats(4);
    CHECK_INT(2, asks());
    CHECK_INT(CN_ROLE_COPYING, rig.member.shards[2].role);
}

/* The answer of ADD is lost, and one map tells both that it was done and that the shard was handed
 * over since: there is no later map to wait for. */
TEST(member_replica, that_was_added_and_handed_over_unheard_is_taken)
{
    begin(false);
    rig.shards[2].replica_count = 1;
    join();
    answer_all();
    cn_member_copied(&rig.member, rig.now, 2, 20);
    CHECK(expect(CN_ENGINE_ADD) != NULL);
    relink();
    answer_done(CN_ENGINE_HELLO);
    rig.shards[2].replica_count = 2;
    rig.shards[2].owner = 9;
    rig.shards[2].epoch++;
    rig.version++;
    answer_done(CN_ENGINE_BEAT);
    CHECK_INT(CN_ROLE_TAKING, rig.member.shards[2].role);
}

/* P2 */
TEST(member_balance, counts_what_is_under_way)
{
    begin(false);
    for (unsigned i = 0; i < SHARDS; i++)
        rig.shards[i].owner = 9;
    join();
    answer_all();
    for (int i = 0; i < 12; i++) {
        rig.now += 500;
        rig.sessions[0].beat++;
        cn_member_tick(&rig.member, rig.now);
        answer_all();
    }
    CHECK_INT(1, rig.member.moves); /* a second one would come back: 1 and 2 are even enough */
}

/* S5 */
TEST(member_replica, keeps_a_copy_that_may_have_been_added)
{
    begin(false);
    rig.shards[2].replica_count = 1;
    join();
    answer_all();
    cn_member_copied(&rig.member, rig.now, 2, 20);
    rig.act_count = 0;
    answer_fenced();
    CHECK(!acted(CN_ACT_DISCARD, 2));
    CHECK_INT(20, rig.member.shards[2].have);
}

/* C11 */
TEST(member_link, is_refused_to_an_engine_that_would_lose_data)
{
    begin(false);
    cn_member_start(&rig.member, rig.now);
    cn_member_link_up(&rig.member, rig.now, rig.link,
                      &(struct cn_engine_link){.timeline = 3, .flaws = CN_ENGINE_NO_STANDBY});
    CHECK_INT(0, rig.sent_count);
    CHECK_INT(1, rig.notes[CN_NOTE_REFUSED]);
    rig.now += 1000;
    cn_member_tick(&rig.member, rig.now);
    cn_member_link_up(&rig.member, rig.now, rig.link, &(struct cn_engine_link){.timeline = 3});
    answer_done(CN_ENGINE_JOIN);
    cn_member_link_down(&rig.member, rig.now, rig.link);
    rig.now += 1000;
    cn_member_tick(&rig.member, rig.now);
    cn_member_link_up(&rig.member, rig.now, rig.link, &(struct cn_engine_link){.timeline = 2});
    CHECK_INT(2, rig.notes[CN_NOTE_REFUSED]);
    CHECK(!oldest());
    CHECK_INT(CN_MEMBER_DOUBT, rig.member.state);
}

/* A member that had a session on timeline 3, and meets an engine of timeline 2 later than its
 * session can have lasted. */
static void meet_older_timeline(void)
{
    const struct cn_engine_link older = {.timeline = 2};
    begin(false);
    cn_member_start(&rig.member, rig.now);
    cn_member_link_up(&rig.member, rig.now, rig.link, &(struct cn_engine_link){.timeline = 3});
    answer_done(CN_ENGINE_JOIN);
    cn_member_link_down(&rig.member, rig.now, rig.link);
    rig.now += 3000;
    cn_member_tick(&rig.member, rig.now);
    cn_member_link_up(&rig.member, rig.now, rig.link, &older);
    CHECK_INT(CN_MEMBER_AWAY, rig.member.state);
    cn_member_tick(&rig.member, rig.now);
    cn_member_link_up(&rig.member, rig.now, rig.link, &older);
    CHECK(expect(CN_ENGINE_JOIN)->seen.version == CN_ENGINE_VERSION_MAX);
}

TEST(member_timeline, C11_an_older_one_that_nobody_has_accepted_is_asked_again_later)
{
    meet_older_timeline();
    give(&(struct cn_engine_answer){.less = true});
    CHECK_INT(CN_MEMBER_AWAY, rig.member.state);
    CHECK_INT(2, rig.notes[CN_NOTE_REFUSED]);
    CHECK_INT(0, rig.notes[CN_NOTE_ENGINE_LOST_DATA]);
    rig.now += 1000;
    cn_member_tick(&rig.member, rig.now);
    cn_member_link_up(&rig.member, rig.now, rig.link, &(struct cn_engine_link){.timeline = 3});
    CHECK(expect(CN_ENGINE_JOIN)->seen.version < CN_ENGINE_VERSION_MAX); /* the right one is back */
    answer_done(CN_ENGINE_JOIN);
    CHECK_INT(CN_MEMBER_LIVE, rig.member.state);
}

TEST(member_timeline, C11_an_older_one_that_an_operator_has_accepted_is_joined)
{
    meet_older_timeline();
    raise_beat();
    give(&(struct cn_engine_answer){.less = true, .done = true, .session = 9, .decision = 77});
    CHECK_INT(CN_MEMBER_LIVE, rig.member.state);
    CHECK_INT(1, rig.notes[CN_NOTE_ENGINE_ACCEPTED]);
    CHECK_INT(77, (long long)rig.seen.decision);
    cn_member_link_down(&rig.member, rig.now, rig.link);
    rig.now += 1000;
    cn_member_tick(&rig.member, rig.now);
    cn_member_link_up(&rig.member, rig.now, rig.link, &(struct cn_engine_link){.timeline = 2});
    expect(CN_ENGINE_HELLO);
}

/* M1 */
TEST(member_link, takes_no_answer_of_another_link_or_out_of_order)
{
    begin(false);
    join();
    answer_all();
    cn_member_hint(&rig.member, rig.now);
    struct cn_engine_statement *beat = expect(CN_ENGINE_BEAT);
    struct cn_engine_answer old = {
        .kind = CN_ENGINE_BEAT, .link = beat->link - 1, .number = beat->number, .live = false};
    cn_member_answer(&rig.member, rig.now, &old);
    CHECK_INT(CN_MEMBER_LIVE, rig.member.state);
    old.link = beat->link;
    old.number = beat->number + 1;
    cn_member_answer(&rig.member, rig.now, &old);
    CHECK_INT(CN_MEMBER_DOUBT, rig.member.state);
}

TEST(member_link, that_does_not_answer_is_given_up)
{
    begin(false);
    join();
    answer_all();
    cn_member_hint(&rig.member, rig.now);
    uint64_t link = rig.link;
    CHECK_INT(rig.now + 1000, cn_member_next(&rig.member));
    rig.now += 1000;
    cn_member_tick(&rig.member, rig.now);
    CHECK_INT(CN_MEMBER_DOUBT, rig.member.state);
    rig.now = cn_member_next(&rig.member);
    cn_member_tick(&rig.member, rig.now);
    CHECK_INT(link + 1, rig.link);
}

TEST(member_leave, hands_over_closes_the_gate_and_ends_its_session)
{
    begin(false);
    join();
    serve();
    answer_all();
    cn_member_leave(&rig.member, rig.now, true);
    answer_done(CN_ENGINE_BEAT);
    CHECK(acted(CN_ACT_STOP, 0));
    cn_member_stopped(&rig.member, rig.now, 0);
    answer_done(CN_ENGINE_MOVE);
    CHECK(expect(CN_ENGINE_LEAVE) != NULL);
    CHECK(!cn_member_may_take(&rig.member, rig.now, 0));
    answer_done(CN_ENGINE_LEAVE);
    CHECK_INT(1, rig.notes[CN_NOTE_LEFT]);
    CHECK_INT(CN_MEMBER_GONE, rig.member.state);
}

TEST(member_leave, ends_its_session_at_once_if_nothing_is_to_be_handed_over)
{
    begin(false);
    join();
    serve();
    answer_all();
    cn_member_leave(&rig.member, rig.now, false);
    CHECK(acted(CN_ACT_CLOSE, 0));
    CHECK(!cn_member_may_take(&rig.member, rig.now, 0));
    answer_done(CN_ENGINE_LEAVE);
    CHECK_INT(1, rig.notes[CN_NOTE_LEFT]);
}

/* Nothing can be done about it before JOIN is answered: the time to look again is a later one. */
TEST(member_leave, waits_for_the_session_that_it_has_asked_for)
{
    begin(false);
    cn_member_start(&rig.member, rig.now);
    link_up();
    CHECK_INT(CN_MEMBER_JOINING, rig.member.state);
    cn_member_leave(&rig.member, rig.now, false);
    cn_member_tick(&rig.member, rig.now);
    CHECK_INT(CN_MEMBER_JOINING, rig.member.state);
    CHECK(cn_member_next(&rig.member) > rig.now);
}

TEST(member_leave, does_not_wait_for_others_if_there_are_none)
{
    begin(false);
    join();
    serve();
    answer_all();
    rig.sessions[0] = rig.sessions[--rig.session_count];
    cn_member_hint(&rig.member, rig.now);
    answer_done(CN_ENGINE_BEAT);
    cn_member_leave(&rig.member, rig.now, true);
    CHECK(acted(CN_ACT_CLOSE, 0));
    CHECK(next_of(CN_ENGINE_LEAVE) != NULL);
}

TEST(member_drain, gives_away_what_it_has_and_says_when_nothing_is_left)
{
    begin(false);
    join();
    serve();
    answer_all();
    rig.sessions[1].draining = true;
    cn_member_hint(&rig.member, rig.now);
    answer_done(CN_ENGINE_BEAT);
    CHECK(acted(CN_ACT_STOP, 0));
    CHECK_INT(0, rig.notes[CN_NOTE_DRAINED]);
    cn_member_stopped(&rig.member, rig.now, 0);
    answer_done(CN_ENGINE_MOVE);
    for (unsigned i = 0; i < SHARDS; i++) { /* others have been found for all of them */
        rig.shards[i].owner = 2;
        rig.shards[i].disks[1] = 3;
    }
    rig.shards[0].epoch++;
    rig.version++;
    cn_member_hint(&rig.member, rig.now);
    answer_all();
    CHECK_INT(1, rig.notes[CN_NOTE_DRAINED]);
    CHECK(acted(CN_ACT_DISCARD, 1));
}

TEST(member_balance, moves_only_between_nodes_that_differ_by_two)
{
    for (unsigned mine = 2; mine <= 3; mine++) {
        begin(false);
        for (unsigned i = 0; i < mine; i++)
            rig.shards[i].owner = 9;
        join();
        answer_all();
        for (int i = 0; i < 12; i++) {
            rig.now += 500;
            rig.sessions[0].beat++;
            cn_member_tick(&rig.member, rig.now);
            answer_all();
        }
        CHECK_INT(mine == 3,
                  acted(CN_ACT_STOP, 0) || acted(CN_ACT_STOP, 1) || acted(CN_ACT_STOP, 2));
    }
}

/* Whether the owner of shard 0 has asked for this disk's replica of it to be dropped. */
static bool drops(uint64_t disk)
{
    rig.now += 500;
    for (unsigned i = 0; i < rig.session_count; i++)
        rig.sessions[i].beat++;
    cn_member_tick(&rig.member, rig.now);
    bool found = false;
    while (oldest()) {
        found = found || (oldest()->kind == CN_ENGINE_DROP && item_of(oldest())->disk == disk);
        if (oldest()->kind == CN_ENGINE_READ)
            answer_read(10, false, 0);
        else
            answer_done(oldest()->kind);
    }
    rig.sent_count = rig.answered = rig.act_count = rig.told_count = 0; /* room for more */
    return found;
}

/* Serves shard 0, which has replicas here, on disk 2, which is being drained, and on disk 3. */
static void serve_while_another_drains(bool waits)
{
    begin(false);
    rig.member.config.waits_for_whole = waits;
    rig.sessions[1] = (struct cn_engine_session){.id = 3, .disk = 3, .beat = 1};
    rig.session_count = 2;
    rig.shards[0].replica_count = 3;
    rig.shards[0].disks[2] = 3;
    join();
    serve();
    rig.sent_count = rig.answered = 0;
    rig.sessions[0].draining = true;
}

/* P3 of member_place.c: as many as are wanted remain, and have what lies beside the store. */
TEST(member_replica, is_dropped_when_those_that_remain_are_whole)
{
    static const uint64_t all[] = {1, 3}, without_other[] = {1}, without_own[] = {3, 2};
    serve_while_another_drains(false);
    CHECK(drops(2));

    serve_while_another_drains(true);
    uint64_t epoch = rig.shards[0].epoch;
    CHECK(!drops(2)); /* nothing is known of them */
    cn_member_whole(&rig.member, 0, epoch, without_other, 1);
    CHECK(!drops(2));
    cn_member_whole(&rig.member, 0, epoch, without_own, 2);
    CHECK(!drops(2)); /* the one that drains does not count */
    cn_member_whole(&rig.member, 0, epoch - 1, all, 2);
    CHECK(!drops(2)); /* as it was under another owner, perhaps */
    cn_member_whole(&rig.member, 1, epoch, all, 2);
    CHECK(!drops(2)); /* another shard */
    cn_member_whole(&rig.member, 0, epoch, all, 2);
    cn_member_whole(&rig.member, 0, epoch, without_other, 1);
    CHECK(!drops(2)); /* it has fallen behind since */
    cn_member_whole(&rig.member, 0, epoch, all, 2);
    CHECK(drops(2));
}

/* Everything that would harm a disk, or be acknowledged, has not happened. */
static void check_refused(void)
{
    CHECK_INT(1, rig.notes[CN_NOTE_ENGINE_LOST_DATA]);
    CHECK_INT(CN_MEMBER_GONE, rig.member.state);
    for (unsigned i = 0; i < SHARDS; i++)
        CHECK(!acted(CN_ACT_DISCARD, i) && !acted(CN_ACT_CREATE, i));
    CHECK(!cn_member_may_take(&rig.member, rig.now, 0));
}

TEST(member_seen, C15_is_remembered_with_a_join_a_map_and_a_second_after_appends)
{
    begin(false);
    join();
    CHECK_INT(1, (long long)rig.seen.version);
    CHECK_INT(8, (long long)rig.seen.life);
    CHECK_INT(9, (long long)rig.seen.session);
    serve();
    CHECK_INT(2, (long long)rig.seen.version);
    uint64_t beat = rig.seen.beat;
    cn_member_appended(&rig.member, rig.now, 0, 11);
    rig.head = 1;
    answer_done(CN_ENGINE_APPEND);
    CHECK_INT((long long)beat, (long long)rig.seen.beat); /* not with each */
    rig.now += rig.member.config.remember_ms;
    CHECK(cn_member_next(&rig.member) <= rig.now);
    cn_member_tick(&rig.member, rig.now);
    CHECK(rig.seen.beat > beat && rig.seen.beat <= rig.beat);
}

TEST(member_seen, C15_no_map_is_taken_before_the_disk_remembers_the_join)
{
    begin(false);
    rig.slow_disk = true;
    rig.shards[1].replica_count = 1; /* what is here of it would be thrown away */
    rig.shards[0].owner = 9;
    join();
    for (int i = 0; i < 5; i++) {
        rig.now += rig.member.config.beat_ms;
        cn_member_tick(&rig.member, rig.now);
        CHECK_INT(CN_ENGINE_BEAT, oldest()->kind); /* it lives, and does nothing else */
        answer_done(CN_ENGINE_BEAT);
        CHECK(!oldest());
    }
    struct cn_engine_seen before = {.version = 1, .life = 7}; /* of the JOIN before */
    cn_member_remembered(&rig.member, rig.now, &before);
    CHECK(!oldest() && !rig.act_count);
    relink(); /* nor by another link */
    rig.head = 0;
    answer_done(CN_ENGINE_HELLO);
    answer_done(CN_ENGINE_BEAT);
    CHECK(!oldest() && !rig.act_count);
    rig.slow_disk = false;
    write_seen();
    answer_all();
    CHECK(acted(CN_ACT_DISCARD, 1));
    CHECK_INT(CN_ROLE_SERVING, rig.member.shards[0].role);
}

TEST(member_seen, C15_an_engine_that_refuses_to_be_joined_ends_the_node)
{
    begin(false);
    rig.member.highest = (struct cn_engine_seen){.version = 5, .life = 7, .session = 4, .beat = 3};
    cn_member_start(&rig.member, rig.now);
    link_up();
    CHECK_INT(5, (long long)expect(CN_ENGINE_JOIN)->seen.version);
    give(&(struct cn_engine_answer){.less = true});
    check_refused();
    CHECK_INT(5, (long long)rig.seen.version); /* what it has seen stays */
}

TEST(member_seen, C15_an_engine_that_was_accepted_is_joined_and_remembered)
{
    begin(false);
    rig.member.highest = (struct cn_engine_seen){.version = 5, .life = 7, .session = 4, .beat = 3};
    cn_member_start(&rig.member, rig.now);
    link_up();
    expect(CN_ENGINE_JOIN);
    raise_beat();
    give(&(struct cn_engine_answer){.less = true, .done = true, .session = 9, .decision = 77});
    CHECK_INT(1, rig.notes[CN_NOTE_ENGINE_ACCEPTED]);
    CHECK_INT(77, (long long)rig.seen.decision);
    CHECK_INT(0, (long long)rig.seen.version);
    answer_done(CN_ENGINE_BEAT);
    CHECK_INT(1, (long long)rig.seen.version);
}

TEST(member_seen, C15_hello_to_an_engine_that_went_back_ends_the_node)
{
    begin(false);
    join();
    serve();
    relink();
    CHECK_INT((long long)rig.beat, (long long)expect(CN_ENGINE_HELLO)->seen.beat);
    give(&(struct cn_engine_answer){.less = true});
    check_refused();
}

TEST(member_seen, C15_an_older_map_is_not_acted_on)
{
    begin(false);
    join();
    serve();
    rig.version--;
    for (unsigned i = 0; i < SHARDS; i++)
        rig.shards[i].replica_count = 1; /* it does not name this disk */
    cn_member_hint(&rig.member, rig.now);
    answer_done(CN_ENGINE_BEAT);
    check_refused();
}

TEST(member_seen, C15_a_map_with_an_older_beat_is_not_acted_on)
{
    begin(false);
    join();
    serve();
    rig.beat -= 3;
    cn_member_hint(&rig.member, rig.now);
    answer_done(CN_ENGINE_BEAT);
    check_refused();
}

TEST(member_seen, C15_a_log_that_ends_before_what_is_here_ends_the_node_after_its_barrier)
{
    begin(false);
    join();
    rig.shards[0].owner = 9;
    rig.shards[0].epoch++;
    rig.version++;
    cn_member_hint(&rig.member, rig.now);
    struct cn_engine_item item = *item_of(next_of(CN_ENGINE_READ));
    item.to = item.from;
    item.from = 0;
    item.last = 8;
    give(&(struct cn_engine_answer){.live = true, .done = true, .count = 1, .items = &item});
    CHECK_INT(0, rig.notes[CN_NOTE_ENGINE_LOST_DATA]); /* C4: it may be one that was replaced */
    while (rig.member.state == CN_MEMBER_LIVE && oldest()) {
        if (oldest()->kind == CN_ENGINE_READ)
            answer_read(10, false, 0);
        else
            answer_done(oldest()->kind);
    }
    check_refused();
}

TEST(member_timeline, C11_is_seen_when_an_answer_has_proved_it)
{
    begin(false);
    cn_member_start(&rig.member, rig.now);
    cn_member_link_up(&rig.member, rig.now, rig.link, &(struct cn_engine_link){.timeline = 3});
    cn_member_link_down(&rig.member, rig.now, rig.link);
    rig.now += 1000;
    cn_member_tick(&rig.member, rig.now);
    link_up(); /* of timeline 1: the one before has proved nothing */
    CHECK_INT(0, rig.notes[CN_NOTE_REFUSED]);
    answer_done(CN_ENGINE_JOIN);
    CHECK_INT(CN_MEMBER_LIVE, rig.member.state);
}

/* These shards are restored, and the map names this disk for all but shard 0. */
static void begin_restored(unsigned first, unsigned last)
{
    begin(false);
    for (unsigned i = first; i <= last; i++) {
        rig.shards[i].owner = 0;
        rig.shards[i].restored = true;
        rig.shards[i].replica_count = i > 0;
        rig.shards[i].disks[0] = 1;
    }
    join();
}

TEST(member_restored, C16_nothing_is_thrown_away_and_those_the_map_names_claim_first)
{
    begin_restored(0, 2);
    for (unsigned i = 0; i < SHARDS; i++)
        CHECK(!acted(CN_ACT_DISCARD, i));
    struct cn_engine_statement *claim = next_of(CN_ENGINE_CLAIM);
    CHECK_INT(2, claim->count);
    CHECK_INT(1, item_of(claim)[0].shard);
}

/* C16: the claim of a disk that the map names, and that has nothing; its answer is lost. */
TEST(member_restored, C16_a_claim_with_nothing_whose_answer_is_lost_goes_on)
{
    begin_restored(1, 1);
    cn_member_fini(&rig.member);
    struct cn_member_config config = config_of(false);
    CHECK_INT(0, cn_member_init(&rig.member, &config, &rig.host));
    rig.session_count = 1;
    rig.sent_count = rig.answered = rig.act_count = 0;
    rig.shards[0].replica_count = rig.shards[2].replica_count = 1; /* of another */
    join();
    rig.now += 3 * rig.member.config.replace_ms;
    cn_member_hint(&rig.member, rig.now);
    struct cn_engine_statement *claim = next_of(CN_ENGINE_CLAIM);
    CHECK_INT(1, item_of(claim)->shard);
    CHECK(item_of(claim)->fresh);
    rig.shards[1].owner = 9;
    rig.shards[1].epoch++;
    rig.version++;
    relink();
    answer_done(CN_ENGINE_HELLO);
    answer_done(CN_ENGINE_BEAT);
    CHECK(acted(CN_ACT_CREATE, 1));
    CHECK_INT(CN_ROLE_TAKING, rig.member.shards[1].role);
}

TEST(member_restored, C16_is_served_when_its_copy_was_synced_and_adopted)
{
    begin_restored(1, 1);
    struct cn_engine_item items[2] = {{.shard = 1, .epoch = 6}};
    next_of(CN_ENGINE_CLAIM);
    rig.shards[1].owner = 9;
    rig.shards[1].epoch = 6;
    rig.version++;
    raise_beat();
    give(&(struct cn_engine_answer){.live = true, .done = true, .count = 1, .items = items});
    struct cn_engine_item read = *item_of(next_of(CN_ENGINE_READ));
    read.to = read.from;
    read.from = 0;
    read.last = 8; /* the engine has less than this disk */
    give(&(struct cn_engine_answer){.live = true, .done = true, .count = 1, .items = &read});
    answer_all(); /* the barrier */
    CHECK(acted(CN_ACT_SYNC, 1) && !acted(CN_ACT_SERVE, 1));
    cn_member_synced(&rig.member, rig.now, 1, 10);
    struct cn_engine_statement *adopt = next_of(CN_ENGINE_ADOPT);
    CHECK_INT(10, (long long)item_of(adopt)->to);
    CHECK_INT(6, (long long)item_of(adopt)->epoch);
    rig.shards[1].restored = false;
    rig.version++;
    answer_done(CN_ENGINE_ADOPT);
    CHECK(!acted(CN_ACT_SERVE, 1));
    answer_all();
    CHECK_INT(CN_ROLE_SERVING, rig.member.shards[1].role);
    CHECK_INT(0, rig.notes[CN_NOTE_ENGINE_LOST_DATA]);
}

TEST(member_checkpoint, is_told_with_a_beat)
{
    begin(false);
    join();
    answer_all();
    struct cn_member_message feed = {.kind = CN_MESSAGE_FEED, .shard = 1, .from = 10, .to = 12};
    cn_member_message(&rig.member, rig.now, &feed);
    cn_member_checkpointed(&rig.member, rig.now, 1, 12);
    cn_member_hint(&rig.member, rig.now);
    answer_done(CN_ENGINE_BEAT);
    struct cn_engine_statement *checkpoint = expect(CN_ENGINE_CHECKPOINT);
    CHECK_INT(1, checkpoint->count);
    CHECK_INT(12, item_of(checkpoint)->to);
}

TEST(member_new, shard_is_created_by_whoever_claims_it_first)
{
    begin(false);
    cn_member_fini(&rig.member);
    struct cn_member_config config = config_of(false);
    CHECK_INT(0, cn_member_init(&rig.member, &config, &rig.host));
    memset(rig.shards, 0, sizeof(rig.shards));
    rig.session_count = 0;
    join();
    struct cn_engine_statement *claim = expect(CN_ENGINE_CLAIM);
    CHECK_INT(SHARDS, claim->count);
    struct cn_engine_item won[] = {{.shard = 0, .epoch = 1}, {.shard = 2, .epoch = 1}};
    give(&(struct cn_engine_answer){.live = true, .done = true, .count = 2, .items = won});
    CHECK(acted(CN_ACT_CREATE, 0));
    CHECK(!acted(CN_ACT_CREATE, 1));
    CHECK_INT(CN_ROLE_TAKING, rig.member.shards[2].role);
}

/* C8 */
static void all_replicas_are_away(uint64_t trim)
{
    begin(false);
    for (unsigned i = 0; i < SHARDS; i++) {
        rig.shards[i] = (struct cn_engine_shard){
            .owner = 3, .epoch = 1, .trim = trim, .replica_count = 1, .disks = {3}};
        rig.member.shards[i].role = CN_ROLE_NONE;
        rig.member.shards[i].have = rig.member.shards[i].checkpoint = 0;
    }
    join();
    answer_all();
}

/* With an engine that answers everything but claims. */
static bool claims_within(int64_t ms)
{
    for (int64_t end = rig.now + ms; rig.now < end; rig.now += 250) {
        cn_member_tick(&rig.member, rig.now);
        rig.sessions[0].beat++;
        while (oldest()) {
            if (oldest()->kind == CN_ENGINE_CLAIM)
                return true;
            answer_done(oldest()->kind);
        }
        rig.sent_count = rig.answered = 0;
    }
    return false;
}

TEST(member_claim, of_a_whole_log_whose_replicas_are_away_is_made_after_they_were_waited_for)
{
    all_replicas_are_away(0);
    CHECK(!claims_within(29000));
    CHECK(claims_within(5000));
}

TEST(member_claim, of_a_log_that_was_cut_is_never_made_with_nothing)
{
    all_replicas_are_away(1);
    CHECK(!claims_within(120000));
}

TEST(member_claim, of_a_whole_log_is_left_to_a_replica_that_lives)
{
    all_replicas_are_away(0);
    for (unsigned i = 0; i < SHARDS; i++)
        rig.shards[i].disks[0] = 2;
    rig.version++;
    CHECK(!claims_within(120000));
}
