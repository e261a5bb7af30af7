/* SPDX-License-Identifier: Apache-2.0 */
/* membership/member.c - the session of a node: its link, its batches, its lease.
 *
 * M1  Answers are taken of the present link only, and in the order of the statements (E2). Anything
 *     else ends the link.
 * M2  What is known to be durable only grows: `seq` by answers of APPEND and by `head` of HELLO,
 *     both of which were replicated (E3). Batches are durable in their order.
 * M3  A batch once sent is sent again as it was, or never: until HELLO has told which are there,
 *     nothing but HELLO is sent.
 * M4  The lease is counted from before the statement left, so whatever delays it makes it shorter.
 *     No other time than the caller's is known. */
#include "membership/member.h"

#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"
#include "membership/member_private.h"

#ifdef CN_SIMULATION
int cn_member_broken;
#endif

#define TO(state) (1u << (state))

static const unsigned moves[CN_MEMBER_STATES] = {
    [CN_MEMBER_AWAY] = TO(CN_MEMBER_JOINING) | TO(CN_MEMBER_GONE),
    [CN_MEMBER_JOINING] = TO(CN_MEMBER_LIVE) | TO(CN_MEMBER_AWAY) | TO(CN_MEMBER_GONE),
    [CN_MEMBER_LIVE] =
        TO(CN_MEMBER_DOUBT) | TO(CN_MEMBER_AWAY) | TO(CN_MEMBER_LEAVING) | TO(CN_MEMBER_GONE),
    [CN_MEMBER_DOUBT] =
        TO(CN_MEMBER_LIVE) | TO(CN_MEMBER_AWAY) | TO(CN_MEMBER_LEAVING) | TO(CN_MEMBER_GONE),
    [CN_MEMBER_LEAVING] = TO(CN_MEMBER_GONE) | TO(CN_MEMBER_AWAY),
    [CN_MEMBER_GONE] = 0,
};

bool cn_member_may_change(enum cn_member_state from, enum cn_member_state to)
{
    return moves[from] & TO(to);
}

static void set_state(struct cn_member *member, enum cn_member_state state)
{
    CN_ASSERT(moves[member->state] & TO(state));
    member->state = state;
}

static bool has_session(const struct cn_member *member)
{
    return member->state == CN_MEMBER_LIVE || member->state == CN_MEMBER_DOUBT;
}

/* --- statements ------------------------------------------------------------------------------ */

static struct cn_member_out *out_at(const struct cn_member *member, unsigned index)
{
    return &member->outs[(member->out_first + index) % CN_MEMBER_OUTS_MAX];
}

static void send(struct cn_member *member, int64_t now_ms, struct cn_engine_statement *statement)
{
    CN_ASSERT(member->link_up && member->out_count < CN_MEMBER_OUTS_MAX);
    statement->link = member->link;
    statement->number = ++member->number;
    statement->session = member->session;
    statement->disk = member->config.disk;
    int64_t late_ms =
        now_ms + member->config.link_ms + (int64_t)(member->flight / CN_MEMBER_BYTES_PER_MS);
    *out_at(member, member->out_count++) =
        (struct cn_member_out){statement->number, now_ms, late_ms, statement->kind};
    member->host->send(member->host->data, statement);
}

/* C15 */
static bool waits_for_disk(const struct cn_member *member)
{
    return member->remembering && !BROKEN(UNREMEMBERED);
}

bool cn_member_send(struct cn_member *member, int64_t now_ms, enum cn_engine_kind kind,
                    const struct cn_engine_item *items, size_t count)
{
    /* Some room is kept for beats: without them all else is in vain. */
    if (member->state != CN_MEMBER_LIVE || member->settling || waits_for_disk(member) ||
        member->out_count + 4 > CN_MEMBER_OUTS_MAX)
        return false;
    CN_ASSERT(count > 0 && count <= CN_ENGINE_ITEMS_MAX);
    struct cn_engine_statement statement = {.kind = kind, .items = items, .count = count};
    send(member, now_ms, &statement);
    return true;
}

static void send_beat(struct cn_member *member, int64_t now_ms, enum cn_engine_kind kind)
{
    /* The whole map, where it has to settle what a broken link left open. */
    struct cn_engine_statement statement = {
        .kind = kind, .version = member->seen && !member->settling ? member->version : 0};
    if (!BROKEN(OLDER_MAP))
        statement.seen = member->highest;
    send(member, now_ms, &statement);
    member->beating = true;
    member->barrier = false;
    member->beat_at_ms = now_ms + member->config.beat_ms;
}

static bool link_is_older(const struct cn_member *member)
{
    return member->link_timeline < member->timeline;
}

static void send_join(struct cn_member *member, int64_t now_ms)
{
    struct cn_engine_statement statement = {.kind = CN_ENGINE_JOIN, .life = ++member->config.life};
    if (!BROKEN(JOIN_LESS))
        statement.seen = member->highest;
    if (link_is_older(member)) /* C11 */
        statement.seen.version = CN_ENGINE_VERSION_MAX;
    set_state(member, CN_MEMBER_JOINING);
    send(member, now_ms, &statement);
}

/* --- batches --------------------------------------------------------------------------------- */

static struct cn_member_batch *batch_at(struct cn_member *member, unsigned index)
{
    return &member->batches[(member->batch_first + index) % CN_MEMBER_BATCHES_MAX];
}

static void send_batch(struct cn_member *member, int64_t now_ms, struct cn_member_batch *batch)
{
    struct cn_engine_statement statement = {
        .kind = CN_ENGINE_APPEND, .seq = batch->seq, .items = batch->items, .count = batch->count};
    send(member, now_ms, &statement);
    if (BROKEN(FEED_EARLY))
        for (unsigned i = 0; i < batch->count; i++)
            cn_shard_feed(member, batch->items[i].shard, batch->items[i].from, batch->items[i].to);
}

/* Up to which record of the shard the batch has room, which is counted in: the first of a batch
 * always has. */
static uint64_t fill(struct cn_member *member, struct cn_member_batch *batch, uint32_t index)
{
    const struct cn_member_shard *shard = &member->shards[index];
    uint64_t to = shard->sent;
    while (to < shard->appended && to - shard->sent < CN_MEMBER_BATCH_RECORDS) {
        uint64_t bytes = member->host->weigh(member->host->data, index, to + 1);
        if (batch->bytes && batch->bytes + bytes > CN_MEMBER_BATCH_BYTES)
            break;
        batch->bytes += bytes;
        to++;
    }
    return to;
}

static void gather(struct cn_member *member, struct cn_member_batch *batch)
{
    unsigned total = member->config.shard_count;
    uint32_t next = member->append_next;
    bool full = false;
    for (unsigned i = 0;
         i < total && member->dirty && !full && batch->count < CN_MEMBER_BATCH_SHARDS; i++) {
        uint32_t index = (member->append_next + i) % total;
        struct cn_member_shard *shard = &member->shards[index];
        if (shard->appended == shard->sent)
            continue;
        uint64_t to = fill(member, batch, index);
        full = to < shard->appended && to - shard->sent < CN_MEMBER_BATCH_RECORDS;
        next = to == shard->sent ? index : (index + 1) % total; /* who found no room is next */
        if (to == shard->sent)
            break;
        batch->items[batch->count++] = (struct cn_engine_item){
            .shard = index, .epoch = shard->epoch, .from = shard->sent, .to = to};
        shard->sent = to;
        if (to == shard->appended)
            member->dirty--;
    }
    CN_ASSERT(batch->count > 0 && batch->bytes > 0);
    member->append_next = next;
    member->flight += batch->bytes;
}

static void pump_batches(struct cn_member *member, int64_t now_ms)
{
    while (member->state == CN_MEMBER_LIVE && member->dirty &&
           member->batch_count < CN_MEMBER_BATCHES_MAX && member->flight < CN_MEMBER_FLIGHT_BYTES &&
           member->out_count + 4 <= CN_MEMBER_OUTS_MAX) {
        struct cn_member_batch *batch = batch_at(member, member->batch_count);
        *batch = (struct cn_member_batch){.seq = member->seq + member->batch_count + 1};
        member->batch_count++;
        gather(member, batch);
        send_batch(member, now_ms, batch);
    }
}

/* All up to `seq` are durable: M2. */
static void batches_durable(struct cn_member *member, uint64_t seq)
{
    while (member->batch_count && batch_at(member, 0)->seq <= seq) {
        struct cn_member_batch *batch = batch_at(member, 0);
        member->seq = batch->seq;
        member->flight -= batch->bytes;
        for (unsigned i = 0; i < batch->count; i++)
            cn_shard_durable(member, &batch->items[i]);
        member->batch_first = (member->batch_first + 1) % CN_MEMBER_BATCHES_MAX;
        member->batch_count--;
    }
}

/* --- the link -------------------------------------------------------------------------------- */

static void link_forget(struct cn_member *member)
{
    member->link_up = member->link_asked = false;
    member->out_count = 0;
    member->beating = member->claiming = member->fencing = member->settling = false;
    cn_shard_link_lost(member);
}

static void session_end(struct cn_member *member, int64_t now_ms, enum cn_member_state state);

static void link_break(struct cn_member *member, int64_t now_ms)
{
    link_forget(member);
    member->link_at_ms = now_ms + member->link_wait_ms;
    member->link_wait_ms *= 2;
    if (member->link_wait_ms > 10 * member->config.retry_ms)
        member->link_wait_ms = 10 * member->config.retry_ms;
    switch (member->state) {
    case CN_MEMBER_JOINING:
        set_state(member, CN_MEMBER_AWAY);
        break;
    case CN_MEMBER_LIVE:
        set_state(member, CN_MEMBER_DOUBT);
        break;
    case CN_MEMBER_LEAVING: /* if it did not happen, others will find it still (C2) */
        session_end(member, now_ms, member->leaving ? CN_MEMBER_GONE : CN_MEMBER_AWAY);
        if (member->leaving)
            member->host->note(member->host->data, CN_NOTE_LEFT);
        break;
    default:
        break;
    }
}

static void link_open(struct cn_member *member, int64_t now_ms)
{
    member->link++;
    member->link_asked = true;
    member->link_at_ms = now_ms + member->config.link_ms;
    member->host->connect(member->host->data, member->link);
}

static void pump(struct cn_member *member, int64_t now_ms);

/* C11. A server that was replaced has an older timeline than its successor. One that was restored
 * from a backup may have a later one, and may be replaced by the right one: only what an answer has
 * proved is seen. */
static bool link_is_good(const struct cn_member *member, const struct cn_engine_link *info)
{
    if (info->flaws & ~member->config.allow_flaws && !BROKEN(FLAWED_ENGINE))
        return false;
    return !link_is_older(member) || (member->state == CN_MEMBER_AWAY && !BROKEN(OLDER_TIMELINE));
}

static void link_refuse(struct cn_member *member, int64_t now_ms)
{
    bool over = link_is_older(member) && member->state == CN_MEMBER_DOUBT &&
                now_ms - member->heard_ms >= member->config.ttl_ms;
    member->host->note(member->host->data, CN_NOTE_REFUSED);
    if (over && !BROKEN(OLDER_TIMELINE))
        session_end(member, now_ms, CN_MEMBER_AWAY);
    else
        link_break(member, now_ms);
}

void cn_member_link_up(struct cn_member *member, int64_t now_ms, uint64_t link,
                       const struct cn_engine_link *info)
{
    if (link != member->link || !member->link_asked || member->link_up)
        return;
    member->link_timeline = info->timeline;
    if (!link_is_good(member, info)) {
        link_refuse(member, now_ms);
        return;
    }
    member->link_up = true;
    if (member->state == CN_MEMBER_AWAY)
        send_join(member, now_ms);
    else if (member->state == CN_MEMBER_DOUBT)
        send_beat(member, now_ms, CN_ENGINE_HELLO); /* C1, M3 */
    pump(member, now_ms);
}

void cn_member_link_down(struct cn_member *member, int64_t now_ms, uint64_t link)
{
    if (link == member->link && member->link_asked)
        link_break(member, now_ms);
}

/* --- the session ----------------------------------------------------------------------------- */

/* C15 */
static void remember(struct cn_member *member)
{
    member->remember = false;
    member->host->remember(member->host->data, &member->highest);
}

/* Nothing of it counts any more; what was not durable never was. */
static void session_end(struct cn_member *member, int64_t now_ms, enum cn_member_state state)
{
    set_state(member, state);
    if (member->remember)
        remember(member);
    member->session = 0;
    member->remembering = false;
    member->lease_ms = 0;
    member->confirm = member->confirmed;
    member->batch_count = 0;
    member->flight = 0;
    member->peer_count = 0;
    member->seen = false;
    member->version = 0;
    cn_shard_fenced(member, now_ms);
    link_forget(member);
    member->link_at_ms = now_ms;
}

static void fenced(struct cn_member *member, int64_t now_ms)
{
    session_end(member, now_ms, CN_MEMBER_AWAY);
    member->host->note(member->host->data, CN_NOTE_FENCED);
}

void cn_member_lost_data(struct cn_member *member, int64_t now_ms)
{
    member->remember = true;
    session_end(member, now_ms, CN_MEMBER_GONE);
    member->host->note(member->host->data, CN_NOTE_ENGINE_LOST_DATA);
}

/* The gate is closed before the statement leaves: others need not wait for the lease then (C5). */
static void send_leave(struct cn_member *member, int64_t now_ms)
{
    struct cn_engine_statement statement = {.kind = CN_ENGINE_LEAVE};
    if (!BROKEN(LEAVE_OPEN)) {
        cn_shard_fenced(member, now_ms);
        member->lease_ms = 0;
    }
    member->batch_count = 0;
    member->flight = 0;
    set_state(member, CN_MEMBER_LEAVING);
    send(member, now_ms, &statement);
}

void cn_member_resign(struct cn_member *member, int64_t now_ms)
{
    if (member->state == CN_MEMBER_LIVE && member->out_count < CN_MEMBER_OUTS_MAX)
        send_leave(member, now_ms);
}

/* Of this session, as the map tells; 0: it does not. */
static uint64_t own_beat(const struct cn_member *member, const struct cn_engine_view *view)
{
    for (size_t i = 0; i < view->session_count; i++)
        if (view->sessions[i].id == member->session)
            return view->sessions[i].beat;
    return 0;
}

/* C15. Asked before the answer counts for anything. A beat in a map may be as of the statement's
 * begin, before this statement has raised it (E7). */
static bool went_back(const struct cn_member *member, const struct cn_engine_answer *answer)
{
    const struct cn_engine_seen *highest = &member->highest;
    if (BROKEN(OLDER_MAP))
        return false;
    if (answer->kind != CN_ENGINE_BEAT || !answer->view)
        return answer->less;
    uint64_t beat = own_beat(member, answer->view);
    return answer->view->version < highest->version || (beat && beat < highest->beat);
}

/* A statement that proved the session live, and was replicated, was answered: C5, C2. */
static void proved(struct cn_member *member, int64_t now_ms, const struct cn_member_out *out)
{
    int64_t from = BROKEN(LEASE_FROM_ANSWER) ? now_ms : out->sent_ms;
    if (from + member->config.lease_ms > member->lease_ms)
        member->lease_ms = from + member->config.lease_ms;
    member->confirmed = out->number;
    member->timeline = member->link_timeline; /* C11 */
    member->highest.beat++;                   /* E5 */
    if (now_ms - member->heard_ms > member->config.ttl_ms / 2) {
        member->steady_ms = now_ms;
        for (unsigned i = 0; i < member->peer_count; i++)
            member->peers[i].seen_ms = now_ms;
    }
    member->heard_ms = now_ms;
    member->link_wait_ms = member->config.retry_ms;
}

/* C15. What a restored engine tells takes the place of what was seen once it was accepted. */
static void saw_session(struct cn_member *member, const struct cn_engine_answer *answer)
{
    struct cn_engine_seen *seen = &member->highest;
    if (answer->less) {
        seen->version = 0;
        member->host->note(member->host->data, CN_NOTE_ENGINE_ACCEPTED);
    }
    seen->life = member->config.life;
    seen->session = answer->session;
    seen->beat = 0; /* proved() counts this one */
    if (answer->decision > seen->decision || answer->less)
        seen->decision = answer->decision;
}

static void joined(struct cn_member *member, int64_t now_ms, const struct cn_engine_answer *answer,
                   const struct cn_member_out *out)
{
    if (!answer->done && answer->less) {
        if (link_is_older(member)) /* C11: nobody has accepted it */
            link_refuse(member, now_ms);
        else
            cn_member_lost_data(member, now_ms);
        return;
    }
    if (!answer->done) { /* C14: this disk has lived on elsewhere, or was set back */
        session_end(member, now_ms, CN_MEMBER_GONE);
        member->host->note(member->host->data, CN_NOTE_DISPLACED);
        return;
    }
    set_state(member, CN_MEMBER_LIVE);
    member->session = answer->session;
    member->seq = 0;
    member->lease_ms = 0;
    member->steady_ms = member->heard_ms = now_ms;
    saw_session(member, answer);
    proved(member, now_ms, out);
    member->remembering = true;
    remember(member);
    member->barrier = true;
}

void cn_member_remembered(struct cn_member *member, int64_t now_ms,
                          const struct cn_engine_seen *seen)
{
    if (!member->remembering || seen->life != member->config.life)
        return;
    member->remembering = false;
    member->barrier = member->barrier || !member->beating; /* for a map that is taken */
    pump(member, now_ms);
}

/* What became of batches is known; what became of all else, a map will tell that is asked for now.
 */
static void said_hello(struct cn_member *member, int64_t now_ms,
                       const struct cn_engine_answer *answer)
{
    uint64_t last = member->seq + member->batch_count;
    uint64_t head = answer->head;
    if (BROKEN(RESEND_BLIND))
        head = member->seq;
    else if (head < member->seq || head > last) {
        /* Acknowledged batches are gone, or there are some that we never sent. */
        cn_member_lost_data(member, now_ms);
        return;
    }
    member->highest.beat = answer->beat;
    set_state(member, CN_MEMBER_LIVE);
    member->settling = member->barrier = true;
    batches_durable(member, head);
    for (unsigned i = 0; i < member->batch_count; i++)
        send_batch(member, now_ms, batch_at(member, i));
}

static void note_map(struct cn_member *member, const struct cn_engine_view *view)
{
    struct cn_engine_seen *highest = &member->highest;
    uint64_t beat = own_beat(member, view);
    highest->beat = beat > highest->beat ? beat : highest->beat;
    if (view->version <= highest->version)
        return;
    highest->version = view->version;
    remember(member);
}

static void saw_map(struct cn_member *member, int64_t now_ms, const struct cn_engine_view *view)
{
    bool settling = member->settling;
    note_map(member, view);
    if (waits_for_disk(member))
        return;
    member->settling = false;
    if (settling)
        cn_shard_before_settling(member, now_ms);
    cn_shard_view(member, now_ms, view);
    if (settling)
        cn_shard_after_settling(member, now_ms);
}

/* C2: who has not been heard of, or has not heard himself, waits. */
static void consider_fences(struct cn_member *member, int64_t now_ms)
{
    int64_t ttl = BROKEN(HASTY_FENCE) ? member->config.ttl_ms / 3 : member->config.ttl_ms;
    if (member->fencing || member->state != CN_MEMBER_LIVE)
        return;
    for (unsigned i = 0; i < member->peer_count; i++) {
        struct cn_member_peer *peer = &member->peers[i];
        bool silent = now_ms - peer->seen_ms >= ttl && now_ms - member->steady_ms >= ttl;
        bool hinted = peer->suspected && (member->config.verified || BROKEN(FORGED_HINT));
        if (peer->id == member->session || (!silent && !hinted))
            continue;
        struct cn_engine_item item = {.session = peer->id, .beat = peer->beat};
        peer->suspected = false;
        member->fencing = cn_member_send(member, now_ms, CN_ENGINE_FENCE, &item, 1);
        return;
    }
}

static void took_answer(struct cn_member *member, int64_t now_ms,
                        const struct cn_engine_answer *answer)
{
    switch (answer->kind) {
    case CN_ENGINE_HELLO:
        member->beating = false;
        said_hello(member, now_ms, answer);
        if (BROKEN(HELLO_VIEW) && member->settling && answer->view)
            saw_map(member, now_ms, answer->view);
        break;
    case CN_ENGINE_BEAT:
        member->beating = false;
        saw_map(member, now_ms, answer->view);
        cn_shard_barrier(member, now_ms, answer->number);
        break;
    case CN_ENGINE_APPEND:
        if (!member->remember) /* C15 */
            member->remember_at_ms = now_ms + member->config.remember_ms;
        member->remember = true;
        if (answer->done && member->batch_count)
            batches_durable(member, batch_at(member, 0)->seq);
        else
            link_break(member, now_ms); /* not as it should be: HELLO tells how it is */
        break;
    case CN_ENGINE_FENCE:
        member->fencing = false;
        member->barrier = true;
        break;
    default:
        cn_shard_answer(member, now_ms, answer);
        break;
    }
    if (member->state == CN_MEMBER_LIVE && answer->view) {
        consider_fences(member, now_ms);
        cn_place_plan(member, now_ms);
    }
}

void cn_member_answer(struct cn_member *member, int64_t now_ms,
                      const struct cn_engine_answer *answer)
{
    if (answer->link != member->link || !member->link_up) /* M1 */
        return;
    struct cn_member_out out = *out_at(member, 0);
    if (!member->out_count || out.number != answer->number || out.kind != answer->kind ||
        (answer->kind == CN_ENGINE_BEAT && answer->live && !answer->view)) {
        link_break(member, now_ms);
        return;
    }
    member->out_first = (member->out_first + 1) % CN_MEMBER_OUTS_MAX;
    member->out_count--;
    if (member->state == CN_MEMBER_LEAVING) {
        if (answer->kind == CN_ENGINE_LEAVE) {
            bool leaves = member->leaving;
            session_end(member, now_ms, leaves ? CN_MEMBER_GONE : CN_MEMBER_AWAY);
            if (leaves)
                member->host->note(member->host->data, CN_NOTE_LEFT);
        }
    } else if (answer->kind == CN_ENGINE_JOIN) {
        joined(member, now_ms, answer, &out);
    } else if (went_back(member, answer)) {
        cn_member_lost_data(member, now_ms);
    } else if (!answer->live) {
        fenced(member, now_ms);
    } else {
        if (answer->kind != CN_ENGINE_READ) /* E3 */
            proved(member, now_ms, &out);
        took_answer(member, now_ms, answer);
    }
    pump(member, now_ms);
    member->host->note(member->host->data, CN_NOTE_GATE);
}

/* --- time ------------------------------------------------------------------------------------ */

static void pump_leave(struct cn_member *member, int64_t now_ms)
{
    if (!member->leaving)
        return;
    bool owns = false, alone = true;
    for (unsigned i = 0; i < member->config.shard_count && !owns; i++)
        owns = cn_role_owns(member->shards[i].role);
    for (unsigned i = 0; i < member->peer_count; i++)
        alone = alone && member->peers[i].id == member->session;
    if (member->state == CN_MEMBER_LIVE && (!owns || alone || now_ms >= member->leave_at_ms))
        cn_member_resign(member, now_ms);
    else if (member->state == CN_MEMBER_AWAY ||
             (member->state == CN_MEMBER_DOUBT && now_ms >= member->leave_at_ms)) {
        session_end(member, now_ms, CN_MEMBER_GONE);
        member->host->note(member->host->data, CN_NOTE_LEFT);
    }
}

static void pump(struct cn_member *member, int64_t now_ms)
{
    pump_leave(member, now_ms);
    if (member->state != CN_MEMBER_LIVE || !member->link_up)
        return;
    pump_batches(member, now_ms);
    cn_shard_pump(member, now_ms);
    bool asked = member->barrier || member->confirm > member->confirmed;
    if (!member->beating && (asked || now_ms >= member->beat_at_ms))
        send_beat(member, now_ms, CN_ENGINE_BEAT);
}

static void feed_all(struct cn_member *member, int64_t now_ms)
{
    if (now_ms < member->feed_at_ms)
        return;
    member->feed_at_ms = now_ms + member->config.feed_ms;
    for (unsigned i = 0; i < member->config.shard_count; i++)
        if (member->shards[i].role == CN_ROLE_SERVING)
            cn_shard_feed(member, i, member->shards[i].have, member->shards[i].have);
}

void cn_member_tick(struct cn_member *member, int64_t now_ms)
{
    if (member->state == CN_MEMBER_GONE)
        return;
    if (member->link_up) {
        if (member->out_count && now_ms >= out_at(member, 0)->late_ms)
            link_break(member, now_ms);
    } else if (member->link_asked && now_ms >= member->link_at_ms) {
        link_break(member, now_ms);
    }
    if (!member->link_asked && now_ms >= member->link_at_ms && member->state != CN_MEMBER_GONE)
        link_open(member, now_ms);
    feed_all(member, now_ms);
    if (member->remember && now_ms >= member->remember_at_ms)
        remember(member);
    pump(member, now_ms);
}

int64_t cn_member_next(const struct cn_member *member)
{
    if (member->state == CN_MEMBER_GONE)
        return INT64_MAX;
    int64_t next = member->feed_at_ms;
    if (!member->link_up && member->link_at_ms < next)
        next = member->link_at_ms;
    if (member->link_up && member->out_count && out_at(member, 0)->late_ms < next)
        next = out_at(member, 0)->late_ms;
    if (member->state == CN_MEMBER_LIVE && !member->beating && member->beat_at_ms < next)
        next = member->beat_at_ms;
    if (member->remember && member->remember_at_ms < next)
        next = member->remember_at_ms;
    /* A session that is asked for is given back when it has come: pump_leave(). */
    bool gives_up = member->state == CN_MEMBER_LIVE || member->state == CN_MEMBER_DOUBT;
    if (member->leaving && gives_up && member->leave_at_ms < next)
        next = member->leave_at_ms;
    return next;
}

/* --- from outside ---------------------------------------------------------------------------- */

void cn_member_hint(struct cn_member *member, int64_t now_ms)
{
    member->barrier = true;
    pump(member, now_ms);
}

/* C13 */
void cn_member_is_over(struct cn_member *member, int64_t now_ms, uint64_t session)
{
    if (member->state == CN_MEMBER_DOUBT && session == member->session)
        fenced(member, now_ms);
    else
        cn_member_hint(member, now_ms);
}

void cn_member_silent(struct cn_member *member, int64_t now_ms, uint64_t session)
{
    struct cn_member_peer *peer = cn_member_peer_find(member, session);
    if (peer)
        peer->suspected = true;
    cn_member_hint(member, now_ms);
}

static void note_appended(struct cn_member *member, uint32_t index, uint64_t lsn)
{
    CN_ASSERT(index < member->config.shard_count);
    struct cn_member_shard *shard = &member->shards[index];
    if (shard->role != CN_ROLE_SERVING && shard->role != CN_ROLE_STOPPING)
        return; /* it was closed meanwhile: what was appended never was */
    CN_ASSERT(lsn >= shard->appended);
    if (lsn == shard->appended)
        return;
    if (shard->appended == shard->sent)
        member->dirty++;
    shard->appended = lsn;
}

void cn_member_appended_all(struct cn_member *member, int64_t now_ms,
                            const struct cn_member_appends *appends, size_t count)
{
    for (size_t i = 0; i < count; i++)
        note_appended(member, appends[i].shard, appends[i].lsn);
    if (member->dirty)
        pump(member, now_ms);
}

void cn_member_appended(struct cn_member *member, int64_t now_ms, uint32_t index, uint64_t lsn)
{
    cn_member_appended_all(member, now_ms, &(struct cn_member_appends){index, lsn}, 1);
}

void cn_member_checkpointed(struct cn_member *member, int64_t now_ms, uint32_t index, uint64_t lsn)
{
    CN_ASSERT(index < member->config.shard_count);
    struct cn_member_shard *shard = &member->shards[index];
    CN_ASSERT(lsn <= shard->have || shard->role < CN_ROLE_FOLLOWING); /* C6 */
    if (shard->role >= CN_ROLE_FOLLOWING && lsn > shard->checkpoint)
        shard->checkpoint = lsn;
}

void cn_member_busy(struct cn_member *member, int64_t now_ms, uint32_t index, bool busy)
{
    CN_ASSERT(index < member->config.shard_count);
    if (member->shards[index].busy == busy)
        return;
    member->shards[index].busy = busy;
    cn_shard_pump(member, now_ms);
}

void cn_member_leave(struct cn_member *member, int64_t now_ms, bool hand_over)
{
    if (member->state == CN_MEMBER_GONE || (member->leaving && hand_over))
        return;
    member->leave_at_ms = hand_over ? now_ms + member->config.leave_ms : now_ms;
    member->leaving = true;
    member->barrier = true;
    pump(member, now_ms);
}

/* --- the gate: C5 ---------------------------------------------------------------------------- */

bool cn_member_may_take(const struct cn_member *member, int64_t now_ms, uint32_t index)
{
    const struct cn_member_shard *shard = &member->shards[index];
    bool open =
        shard->role == CN_ROLE_SERVING || (BROKEN(MOVE_OPEN) && shard->role >= CN_ROLE_STOPPING);
    bool session = has_session(member) || BROKEN(LEAVE_OPEN);
    return open && session &&
           (member->config.verified || now_ms < member->lease_ms || BROKEN(NO_LEASE));
}

uint64_t cn_member_ticket(struct cn_member *member, int64_t now_ms)
{
    uint64_t ticket = member->number;
    if (member->config.verified) {
        member->confirm = ticket + 1;
        pump(member, now_ms);
    }
    return BROKEN(CONFIRM_OLD) && ticket > 4 ? ticket - 4 : ticket;
}

bool cn_member_may_leave(const struct cn_member *member, int64_t now_ms, uint32_t index,
                         uint64_t epoch, uint64_t lsn, uint64_t ticket)
{
    const struct cn_member_shard *shard = &member->shards[index];
    if (shard->role != CN_ROLE_SERVING && shard->role != CN_ROLE_STOPPING &&
        !(BROKEN(MOVE_OPEN) && shard->role == CN_ROLE_MOVING))
        return false;
    if (shard->epoch != epoch && !BROKEN(EPOCH)) /* C9 */
        return false;
    if (lsn > shard->have && !BROKEN(EARLY_ACK))
        return false;
    if (BROKEN(NO_LEASE))
        return true;
    return member->config.verified ? member->confirmed > ticket : now_ms < member->lease_ms;
}

uint64_t cn_member_owner(const struct cn_member *member, uint32_t index, uint64_t *disk)
{
    const struct cn_engine_shard *row = &member->shards[index].row;
    for (unsigned i = 0; i < member->peer_count; i++)
        if (member->peers[i].id == row->owner) {
            *disk = member->peers[i].disk;
            return row->owner;
        }
    return 0;
}

/* --- its life -------------------------------------------------------------------------------- */

struct cn_member_peer *cn_member_peer_find(struct cn_member *member, uint64_t session)
{
    for (unsigned i = 0; i < member->peer_count; i++)
        if (member->peers[i].id == session)
            return &member->peers[i];
    return NULL;
}

struct cn_member_peer *cn_member_peer_of_disk(struct cn_member *member, uint64_t disk)
{
    for (unsigned i = 0; i < member->peer_count; i++)
        if (member->peers[i].disk == disk)
            return &member->peers[i];
    return NULL;
}

void cn_member_defaults(struct cn_member_config *config)
{
    const struct {
        int64_t *field, value;
    } times[] = {
        {&config->ttl_ms, 3000},      {&config->lease_ms, 2100},    {&config->beat_ms, 500},
        {&config->link_ms, 1000},     {&config->retry_ms, 100},     {&config->settle_ms, 5000},
        {&config->replace_ms, 30000}, {&config->copy_ms, 60000},    {&config->feed_ms, 1000},
        {&config->leave_ms, 10000},   {&config->remember_ms, 1000},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(times); i++)
        if (!*times[i].field)
            *times[i].field = times[i].value;
    if (!config->replicas)
        config->replicas = 2;
}

int cn_member_init(struct cn_member *member, const struct cn_member_config *config,
                   const struct cn_member_host *host)
{
    if (!config->disk || !config->shard_count || config->shard_count > CN_CLUSTER_SHARDS_MAX ||
        !config->replicas || config->replicas >= CN_CLUSTER_REPLICAS_MAX ||
        config->lease_ms >= config->ttl_ms || config->beat_ms * 2 > config->lease_ms)
        return CN_EINVALID;
    *member = (struct cn_member){.config = *config, .host = host, .highest = config->seen};
    member->shards = cn_alloc_zero(config->shard_count * sizeof(*member->shards));
    member->outs = cn_alloc_zero(CN_MEMBER_OUTS_MAX * sizeof(*member->outs));
    return 0;
}

void cn_member_fini(struct cn_member *member)
{
    cn_free(member->shards);
    cn_free(member->outs);
    member->shards = NULL;
    member->outs = NULL;
}

void cn_member_found(struct cn_member *member, uint32_t index, uint64_t have, uint64_t checkpoint)
{
    CN_ASSERT(index < member->config.shard_count && member->state == CN_MEMBER_AWAY);
    CN_ASSERT(checkpoint <= have);
    struct cn_member_shard *shard = &member->shards[index];
    shard->role = CN_ROLE_FOLLOWING;
    shard->have = have;
    shard->checkpoint = checkpoint;
}

void cn_member_open(struct cn_member *member, int64_t now_ms)
{
    if (!member->config.shut)
        return;
    member->config.shut = false;
    cn_shard_opened(member);
    cn_member_hint(member, now_ms);
}

void cn_member_start(struct cn_member *member, int64_t now_ms)
{
    member->link_wait_ms = member->config.retry_ms;
    member->link_at_ms = member->changed_ms = now_ms;
    member->feed_at_ms = now_ms + member->config.feed_ms;
    cn_member_tick(member, now_ms);
}
