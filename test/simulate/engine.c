/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/engine.c - an engine: a primary with a synchronous standby, and what becomes of
 * them.
 *
 * `primary` is what is seen, `standby` what was replicated. A statement that writes is carried out
 * on both and answered. While the standby is away, writes wait in order, unseen. A wait that is
 * cancelled, at the front of those, leaves the commit seen but not replicated (`ahead`), and breaks
 * its link. A promotion keeps some first part of what is ahead and waits, and loses the rest; the
 * old primary may live on as a zombie with all it has: it answers reads, and nothing else.
 *
 * It goes back (C15): `backup` was replicated once, and takes the place of everything. What every
 * disk remembers is more than that, else nobody could know. After a while the right one is back, or
 * an operator accepts what is there (C16): what was answered before counts for nothing then. */
#include <string.h>

#include "base/mem.h"
#include "test/simulate/world.h"

struct session {
    uint64_t disk, life, link, head, beat;
    bool live;
};
struct record {
    uint16_t lsn, op;
};
struct shard {
    uint64_t owner, epoch, trim;
    bool restored;
    unsigned count;
    uint64_t disks[CN_CLUSTER_REPLICAS_MAX], checkpoints[CN_CLUSTER_REPLICAS_MAX];
    unsigned log_count;
    struct record log[2 * OPS];
};
struct state {
    uint64_t version, decision;
    unsigned session_count;
    bool draining[DISKS];
    struct session sessions[SESSIONS];
    struct shard shards[SHARDS];
};
enum { PRIMARY, ZOMBIE, SERVERS };

static struct state states[3];
static struct state *primary = &states[0], *standby = &states[1], *zombie = &states[2];
static struct {
    bool up;
    bool flawed; /* does not wait for its standby: C11 */
    uint32_t life;
    uint64_t timeline;
} servers[SERVERS];
static bool stalled;
static struct state backup, right;
static uint64_t right_timeline;
static bool has_backup, is_back;
static int32_t back_at;
enum { QUEUE = 512 };
static struct statement *waiting[QUEUE], *ahead[QUEUE];
static unsigned waiting_count, ahead_count;
static struct statement *free_statements;
static struct answer *free_answers;

static struct statement *statement_new(void)
{
    struct statement *x = free_statements;
    if (x)
        free_statements = x->next;
    else
        x = cn_alloc(sizeof(*x));
    x->early = NULL;
    return x;
}

static void statement_free(struct statement *x)
{
    if (x->early)
        answer_free(x->early);
    x->early = NULL;
    x->next = free_statements;
    free_statements = x;
}

static struct answer *answer_new(void)
{
    struct answer *answer = free_answers;
    if (answer)
        free_answers = answer->next;
    else
        answer = cn_alloc(sizeof(*answer));
    return answer;
}

void answer_free(struct answer *answer)
{
    answer->next = free_answers;
    free_answers = answer;
}

/* --- statements ------------------------------------------------------------------------------- */

/* One that is not known here, since it was made elsewhere, is not live. */
static struct session *session_of(struct state *e, uint64_t id)
{
    static struct session unknown;
    unknown = (struct session){0};
    return id <= e->session_count ? &e->sessions[id] : &unknown;
}

static int replica_of(const struct shard *shard, uint64_t disk)
{
    for (unsigned i = 0; i < shard->count; i++)
        if (shard->disks[i] == disk)
            return (int)i;
    return -1;
}

static bool disk_lives(const struct state *e, uint64_t disk)
{
    for (unsigned i = 1; i <= e->session_count; i++)
        if (e->sessions[i].live && e->sessions[i].disk == disk)
            return true;
    return false;
}

static void cut(struct shard *shard)
{
    uint64_t all = UINT64_MAX, any = 0;
    for (unsigned i = 0; i < shard->count; i++) {
        all = shard->checkpoints[i] < all ? shard->checkpoints[i] : all;
        any = shard->checkpoints[i] > any ? shard->checkpoints[i] : any;
    }
    uint64_t trim = PLANTED(TRIM_EARLY) ? any : all;
    if (shard->count < replicas || trim <= shard->trim || shard->restored)
        return;
    shard->trim = trim;
    unsigned kept = 0;
    for (unsigned i = 0; i < shard->log_count; i++)
        if (shard->log[i].lsn > trim)
            shard->log[kept++] = shard->log[i];
    shard->log_count = kept;
}

/* E8 */
static bool knows_less(const struct state *e, uint64_t disk, const struct cn_engine_seen *seen)
{
    uint64_t life = 0;
    for (unsigned i = 1; i <= e->session_count; i++)
        if (e->sessions[i].disk == disk && e->sessions[i].life > life)
            life = e->sessions[i].life;
    if (e->version < seen->version || life < seen->life)
        return true;
    if (!seen->life || life > seen->life)
        return false;
    return seen->session > e->session_count || e->sessions[seen->session].disk != disk ||
           e->sessions[seen->session].beat < seen->beat;
}

static void do_join(struct state *e, struct statement *x, struct answer *answer)
{
    answer->a.less = knows_less(e, x->s.disk, &x->s.seen);
    answer->a.decision = e->decision;
    if (answer->a.less && e->decision <= x->s.seen.decision)
        return;
    for (unsigned i = 1; i <= e->session_count; i++)
        if (e->sessions[i].disk == x->s.disk && e->sessions[i].life >= x->s.life &&
            !PLANTED(NO_LIFE))
            return;
    if (e->session_count + 1 >= SESSIONS)
        return;
    for (unsigned i = 1; i <= e->session_count; i++)
        if (e->sessions[i].disk == x->s.disk)
            e->sessions[i].live = false;
    e->sessions[++e->session_count] = (struct session){
        .disk = x->s.disk, .life = x->s.life, .link = x->s.link, .beat = 1, .live = true};
    e->version++;
    answer->a.done = true;
    answer->a.session = e->session_count;
}

static void do_append(struct state *e, struct session *me, struct statement *x,
                      struct answer *answer)
{
    if (me->head != x->s.seq - 1 && !PLANTED(NO_HEAD))
        return;
    me->head = x->s.seq;
    const uint16_t *record = x->records;
    for (size_t i = 0; i < x->s.count; i++) {
        struct shard *shard = &e->shards[x->items[i].shard];
        for (uint64_t lsn = x->items[i].from + 1; lsn <= x->items[i].to; lsn++, record++)
            if (shard->log_count < 2 * OPS)
                shard->log[shard->log_count++] = (struct record){(uint16_t)lsn, *record};
    }
    answer->a.done = true;
}

static void do_claim(struct state *e, struct statement *x, struct answer *answer)
{
    for (size_t i = 0; i < x->s.count; i++) {
        struct shard *shard = &e->shards[x->items[i].shard];
        bool dead = !shard->owner || !session_of(e, shard->owner)->live;
        bool has = replica_of(shard, x->s.disk) >= 0;
        bool whole = (!shard->trim || shard->restored || PLANTED_MEMBER(CLAIM_CUT)) &&
                     shard->count < CN_CLUSTER_REPLICAS_MAX;
        if (((shard->epoch != x->items[i].epoch || !dead) && !PLANTED(CLAIM_BLIND)) ||
            (!has && !whole) || (x->items[i].fresh && shard->trim))
            continue;
        if (!has) {
            stats.fresh += shard->epoch && e == primary;
            shard->disks[shard->count] = x->s.disk;
            shard->checkpoints[shard->count++] = 0;
        } else if (x->items[i].fresh && !PLANTED(KEEP_CHECKPOINT)) {
            shard->checkpoints[replica_of(shard, x->s.disk)] = 0;
        }
        shard->owner = x->s.session;
        shard->epoch++;
        e->version++;
        answer->items[answer->a.count++] =
            (struct cn_engine_item){.shard = x->items[i].shard, .epoch = shard->epoch};
        answer->a.done = true;
    }
}

static void do_move(struct state *e, struct statement *x, struct answer *answer)
{
    struct shard *shard = &e->shards[x->items[0].shard];
    struct session *to = session_of(e, x->items[0].session);
    if (shard->owner != x->s.session || shard->epoch != x->items[0].epoch || !to->live ||
        replica_of(shard, to->disk) < 0)
        return;
    shard->owner = x->items[0].session;
    shard->epoch++;
    e->version++;
    answer->a.done = true;
}

static void do_checkpoint(struct state *e, struct statement *x, struct answer *answer)
{
    for (size_t i = 0; i < x->s.count; i++) {
        struct shard *shard = &e->shards[x->items[i].shard];
        int at = replica_of(shard, x->s.disk);
        if (at < 0)
            continue;
        if (shard->checkpoints[at] < x->items[i].to)
            shard->checkpoints[at] = x->items[i].to;
        cut(shard);
    }
    answer->a.done = true;
}

static void do_add(struct state *e, struct statement *x, struct answer *answer)
{
    struct shard *shard = &e->shards[x->items[0].shard];
    if (replica_of(shard, x->s.disk) >= 0 || shard->count == CN_CLUSTER_REPLICAS_MAX ||
        x->items[0].to < shard->trim)
        return;
    shard->disks[shard->count] = x->s.disk;
    shard->checkpoints[shard->count++] = x->items[0].to;
    e->version++;
    answer->a.done = true;
}

static void do_drop(struct state *e, struct statement *x, struct answer *answer)
{
    struct shard *shard = &e->shards[x->items[0].shard];
    uint64_t disk = x->items[0].disk;
    int at = replica_of(shard, disk);
    unsigned good = 0;
    for (unsigned i = 0; i < shard->count; i++)
        good += shard->disks[i] != disk && disk_lives(e, shard->disks[i]) &&
                !e->draining[shard->disks[i]];
    bool own = disk == x->s.disk, owner = shard->owner == x->s.session;
    if (at < 0 || (own ? owner : !owner || good < replicas))
        return;
    shard->count--;
    shard->disks[at] = shard->disks[shard->count];
    shard->checkpoints[at] = shard->checkpoints[shard->count];
    cut(shard);
    e->version++;
    answer->a.done = true;
}

static void do_adopt(struct state *e, struct statement *x, struct answer *answer)
{
    struct shard *shard = &e->shards[x->items[0].shard];
    if (!shard->restored || shard->owner != x->s.session || shard->epoch != x->items[0].epoch ||
        x->items[0].to < shard->trim)
        return;
    shard->restored = false;
    shard->count = 1;
    shard->disks[0] = x->s.disk;
    shard->checkpoints[0] = shard->trim = x->items[0].to;
    shard->log_count = 0; /* its owner has read all of it */
    e->version++;
    answer->a.done = true;
}

static void do_fence(struct state *e, struct statement *x, struct answer *answer)
{
    struct session *other = session_of(e, x->items[0].session);
    if (!other->live || (other->beat != x->items[0].beat && !PLANTED(BLIND_FENCE)))
        return;
    other->live = false;
    e->version++;
    answer->a.done = true;
}

static void do_read(struct state *e, struct statement *x, struct answer *answer)
{
    struct shard *shard = &e->shards[x->items[0].shard];
    uint64_t lsn = x->items[0].from;
    unsigned count = 0, most = 1 + rnd(8);
    bool more = true;
    while (more && count < most) {
        more = false;
        for (unsigned i = 0; i < shard->log_count && !more; i++)
            if (shard->log[i].lsn == lsn + 1) {
                answer->records[count++] = shard->log[i].op;
                lsn++;
                more = true;
            }
    }
    uint64_t last = shard->trim;
    for (unsigned i = 0; i < shard->log_count; i++)
        last = shard->log[i].lsn > last ? shard->log[i].lsn : last;
    answer->items[0] = (struct cn_engine_item){
        .shard = x->items[0].shard, .from = shard->trim, .to = lsn, .last = last, .more = more};
    answer->record_count = (uint16_t)count;
    answer->a.count = 1;
    answer->a.done = true;
}

static void see(struct state *e, struct statement *x, struct answer *answer)
{
    struct cn_engine_view *view = &answer->view;
    *view = (struct cn_engine_view){.version = e->version, .sessions = answer->sessions};
    for (unsigned i = 1; i <= e->session_count; i++)
        if (e->sessions[i].live && view->session_count < NODES + 2)
            answer->sessions[view->session_count++] =
                (struct cn_engine_session){i, e->sessions[i].disk, e->sessions[i].beat,
                                           e->draining[e->sessions[i].disk], false};
    if (x->s.version < e->version) {
        for (unsigned i = 0; i < SHARDS; i++) {
            const struct shard *shard = &e->shards[i];
            struct cn_engine_shard *row = &answer->shards[i];
            row->owner = shard->owner;
            row->epoch = shard->epoch;
            row->trim = shard->trim;
            row->restored = shard->restored;
            row->replica_count = shard->count;
            memcpy(row->disks, shard->disks, sizeof(row->disks));
        }
        view->shards = answer->shards;
    }
    answer->a.view = view;
}

static void execute(struct state *e, struct statement *x, struct answer *answer)
{
    struct session *me = session_of(e, x->s.session);
    answer->a = (struct cn_engine_answer){
        .kind = x->s.kind, .link = x->s.link, .number = x->s.number, .items = answer->items};
    if (x->s.kind == CN_ENGINE_JOIN) {
        do_join(e, x, answer);
        return;
    }
    if (x->s.kind == CN_ENGINE_BURY) {
        for (unsigned i = 1; i <= e->session_count; i++)
            if (e->sessions[i].disk == x->s.disk && e->sessions[i].life <= x->s.life &&
                e->sessions[i].live) {
                e->sessions[i].live = false;
                e->version++;
                answer->a.done = true;
            }
        return;
    }
    bool linked = me->link == x->s.link || PLANTED(NO_LINK) ||
                  (x->s.kind == CN_ENGINE_HELLO && me->link < x->s.link);
    bool hello = x->s.kind == CN_ENGINE_HELLO;
    bool other = hello && (me->disk != x->s.disk || me->beat < x->s.seen.beat);
    bool live = (me->live && !other) || (PLANTED(NO_FENCE) && x->s.kind == CN_ENGINE_APPEND);
    if (x->s.kind == CN_ENGINE_READ) {
        answer->a.live = live && linked;
        do_read(e, x, answer);
        if (PLANTED_MEMBER(UNSYNCED_VIEW))
            see(e, x, answer);
        return;
    }
    /* E6 */
    if (x->s.kind == CN_ENGINE_MOVE || x->s.kind == CN_ENGINE_ADD || x->s.kind == CN_ENGINE_DROP ||
        x->s.kind == CN_ENGINE_ADOPT) {
        answer->items[0] = (struct cn_engine_item){.shard = x->items[0].shard};
        answer->a.count = 1;
    }
    answer->a.live = live && linked;
    answer->a.less = hello && me->disk == x->s.disk && me->beat < x->s.seen.beat;
    if (!answer->a.live)
        return;
    if (x->s.link > me->link)
        me->link = x->s.link;
    me->beat++; /* E5 */
    switch (x->s.kind) {
    case CN_ENGINE_APPEND:
        do_append(e, me, x, answer);
        break;
    case CN_ENGINE_FENCE:
        do_fence(e, x, answer);
        break;
    case CN_ENGINE_CLAIM:
        do_claim(e, x, answer);
        break;
    case CN_ENGINE_MOVE:
        do_move(e, x, answer);
        break;
    case CN_ENGINE_CHECKPOINT:
        do_checkpoint(e, x, answer);
        break;
    case CN_ENGINE_ADD:
        do_add(e, x, answer);
        break;
    case CN_ENGINE_DROP:
        do_drop(e, x, answer);
        break;
    case CN_ENGINE_ADOPT:
        do_adopt(e, x, answer);
        break;
    case CN_ENGINE_LEAVE:
        me->live = false;
        e->version++;
        answer->a.done = true;
        break;
    default: /* HELLO, BEAT */
        answer->a.done = true;
        break;
    }
    answer->a.head = me->head;
    answer->a.beat = me->beat;
}

/* --- links ------------------------------------------------------------------------------------ */

static bool link_is(const struct node *node, const struct statement *x)
{
    return node->up && node->life == x->life && node->link == x->s.link && !node->link_dead;
}

/* Both ends find out, or only time tells. */
static void link_breaks(int n, uint64_t link)
{
    struct node *node = &nodes[n];
    if (node->link != link)
        return;
    node->link_dead = true;
    if (one_in(2))
        push(now + 1 + (int32_t)rnd(60), EVENT_LINK_DOWN, n, (uint32_t)link, 0, NULL);
}

static void reply(struct statement *x, struct answer *answer)
{
    if (x->node >= NODES || !link_is(&nodes[x->node], x)) {
        answer_free(answer);
        return;
    }
    struct node *node = &nodes[x->node];
    if (node->no_engine || (!calm && one_in(200))) {
        TRACE("engine: the answer to node %d is lost", x->node);
        link_breaks(x->node, x->s.link);
        answer_free(answer);
        return;
    }
    int32_t at = now + 1 + (int32_t)rnd(one_in(12) && !calm ? 250 : 3);
    if (at < node->link_answer_at)
        at = node->link_answer_at;
    node->link_answer_at = at;
    node->heard_back |= is_back;
    push(at, EVENT_ANSWER, x->node, 0, 0, answer);
}

static void trace_statement(const char *where, struct statement *x, struct answer *answer)
{
    static const char *const names[] = {"join",  "hello", "beat",  "append",     "fence",
                                        "claim", "read",  "move",  "checkpoint", "add",
                                        "drop",  "adopt", "leave", "bury"};
    if (!trace_on || x->s.kind == CN_ENGINE_BEAT || x->s.kind == CN_ENGINE_CHECKPOINT)
        return;
    struct cn_engine_item none = {0}, *item = x->s.count ? &x->items[0] : &none;
    trace("%s: node %d link %d session %d %s seq %d, %d item(s): shard %u epoch %d (%d..%d] "
          "session %d disk %d: %s%s",
          where, x->node, (int)x->s.link, (int)x->s.session, names[x->s.kind], (int)x->s.seq,
          (int)x->s.count, item->shard, (int)item->epoch, (int)item->from, (int)item->to,
          (int)item->session, (int)item->disk, answer->a.live ? "live" : "not live",
          answer->a.done ? ", done" : "");
}

static void replicate(void)
{
    struct answer *scratch = answer_new();
    for (unsigned i = 0; i < ahead_count; i++) {
        execute(standby, ahead[i], scratch);
        statement_free(ahead[i]);
    }
    ahead_count = 0;
    answer_free(scratch);
}

/* Seen, not replicated, and whoever sent it is told nothing. */
static void commit_ahead(struct statement *x)
{
    struct answer *answer = answer_new();
    execute(primary, x, answer);
    trace_statement("engine, wait cancelled", x, answer);
    stats.cancelled++;
    if (PLANTED(WARNING))
        reply(x, answer);
    else {
        answer_free(answer);
        if (x->node < NODES)
            link_breaks(x->node, x->s.link);
    }
    ahead[ahead_count++] = x;
}

static bool tells_map(const struct statement *x)
{
    return x->s.kind == CN_ENGINE_BEAT ||
           (PLANTED_MEMBER(HELLO_VIEW) && x->s.kind == CN_ENGINE_HELLO);
}

/* E7: the map as it was when the statement began, if it had to wait. */
static void tell_map(struct statement *x, struct answer *answer)
{
    if (!x->early) {
        see(primary, x, answer);
        return;
    }
    memcpy(answer->sessions, x->early->sessions, sizeof(answer->sessions));
    memcpy(answer->shards, x->early->shards, sizeof(answer->shards));
    answer->view = x->early->view;
    answer->view.sessions = answer->sessions;
    if (answer->view.shards)
        answer->view.shards = answer->shards;
    answer->a.view = &answer->view;
}

static void commit(struct statement *x)
{
    if (servers[PRIMARY].flawed && ahead_count < QUEUE) { /* acknowledged, and not replicated */
        struct answer *answer = answer_new();
        execute(primary, x, answer);
        trace_statement("engine, without its standby", x, answer);
        if (tells_map(x) && answer->a.live)
            tell_map(x, answer);
        reply(x, answer);
        ahead[ahead_count++] = x;
        return;
    }
    if (!calm && one_in(250) && ahead_count < QUEUE) {
        commit_ahead(x);
        return;
    }
    struct answer *answer = answer_new();
    replicate();
    execute(standby, x, answer);
    execute(primary, x, answer);
    trace_statement("engine", x, answer);
    if (tells_map(x) && answer->a.live)
        tell_map(x, answer);
    if (x->s.kind == CN_ENGINE_CLAIM && answer->a.done)
        stats.takeovers++;
    stats.moves += x->s.kind == CN_ENGINE_MOVE && answer->a.done;
    stats.fenced += x->s.kind == CN_ENGINE_FENCE && answer->a.done;
    stats.copies += x->s.kind == CN_ENGINE_ADD && answer->a.done;
    reply(x, answer);
    statement_free(x);
}

/* A link does one thing at a time: it begins unless another of the same waits. */
static bool begins(const struct statement *x)
{
    for (unsigned i = 0; i < waiting_count; i++)
        if (waiting[i]->node == x->node && waiting[i]->life == x->life &&
            waiting[i]->s.link == x->s.link)
            return false;
    return true;
}

static bool copied[DISKS];

void engine_disk_copied(uint64_t disk)
{
    copied[disk] = true;
}

/* C8: an owner never has less than what was cut, since it owns by a replica; nor less than it
 * counts as having, or more would be cut. */
static void check_read(const struct statement *x)
{
    const struct shard *shard = &primary->shards[x->items[0].shard];
    if (shard->owner == x->s.session && x->items[0].from < shard->trim)
        fail("shard %u was given to node %d, which has %d of it, and %d are cut", x->items[0].shard,
             x->node, (int)x->items[0].from, (int)shard->trim);
    int at = replica_of(shard, x->s.disk);
    if (shard->owner == x->s.session && at >= 0 && !copied[x->s.disk] &&
        x->items[0].from < shard->checkpoints[at])
        fail("shard %u was given to node %d, which has %d of it, and counts as having %d",
             x->items[0].shard, x->node, (int)x->items[0].from, (int)shard->checkpoints[at]);
}

static void arrive(struct statement *x)
{
    bool current = x->node >= NODES || link_is(&nodes[x->node], x);
    if (current && x->node < NODES) { /* the server it goes to may have become a zombie meanwhile */
        x->server = nodes[x->node].link_server;
        x->server_life = nodes[x->node].link_server_life;
    }
    if (servers[x->server].life != x->server_life || !servers[x->server].up) {
        if (current && x->node < NODES)
            link_breaks(x->node, x->s.link);
        statement_free(x);
        return;
    }
    if (!current && one_in(3)) { /* the server has noticed that nobody is there */
        statement_free(x);
        return;
    }
    stats.late += !current;
    if (x->s.kind == CN_ENGINE_READ) {
        struct answer *answer = answer_new();
        execute(x->server == ZOMBIE ? zombie : primary, x, answer);
        trace_statement(x->server == ZOMBIE ? "zombie" : "engine", x, answer);
        if (x->server == PRIMARY && current && answer->a.live)
            check_read(x);
        reply(x, answer);
        statement_free(x);
    } else if (x->server == ZOMBIE) { /* waits for a standby that is none any more */
        struct answer *answer = answer_new();
        if (one_in(3)) {
            execute(zombie, x, answer);
            trace_statement("zombie, wait cancelled", x, answer);
            link_breaks(x->node, x->s.link);
        }
        answer_free(answer);
        statement_free(x);
    } else if (stalled || waiting_count) {
        if (waiting_count == QUEUE) {
            statement_free(x);
            return;
        }
        if (tells_map(x) && begins(x)) {
            x->early = answer_new();
            see(primary, x, x->early);
        }
        waiting[waiting_count++] = x;
    } else {
        commit(x);
    }
}

void engine_send(int n, const struct cn_engine_statement *statement, const uint16_t *records)
{
    struct node *node = &nodes[n];
    if (node->link != statement->link || node->link_dead)
        return;
    struct statement *x = statement_new();
    size_t total = 0;
    x->s = *statement;
    for (size_t i = 0; i < statement->count; i++) {
        x->items[i] = statement->items[i];
        total += statement->items[i].to - statement->items[i].from;
    }
    if (statement->kind == CN_ENGINE_APPEND)
        memcpy(x->records, records, total * sizeof(*records));
    x->node = n;
    x->life = node->life;
    x->server = node->link_server;
    x->server_life = node->link_server_life;
    int32_t at = now + 1 + (int32_t)rnd(one_in(15) && !calm ? 300 : 3);
    if (node->no_engine) { /* it may get there when the way is open again, long after its link */
        if (one_in(2)) {
            node->link_dead = true;
            statement_free(x);
            return;
        }
        at = now + 200 + (int32_t)rnd(5000);
    } else if (!calm && one_in(statement->kind == CN_ENGINE_JOIN ? 6 : 150)) {
        at = now + 500 + (int32_t)rnd(5000);
    }
    if (at < node->link_send_at)
        at = node->link_send_at;
    node->link_send_at = at;
    push(at, EVENT_ARRIVE, n, 0, 0, x);
}

void engine_connect(int n, uint64_t link)
{
    struct node *node = &nodes[n];
    unsigned server = servers[ZOMBIE].up && !calm && one_in(2) ? ZOMBIE : PRIMARY;
    node->link = link;
    node->link_dead = false;
    node->link_server = (uint8_t)server;
    node->link_server_life = servers[server].life;
    node->link_send_at = node->link_answer_at = 0;
    if (node->no_engine || !servers[server].up) {
        node->link_dead = true;
        if (one_in(2))
            push(now + 1 + (int32_t)rnd(100), EVENT_LINK_DOWN, n, (uint32_t)link, 0, NULL);
        return;
    }
    push(now + 1 + (int32_t)rnd(4), EVENT_LINK_UP, n, (uint32_t)link,
         (uint32_t)servers[server].timeline | (servers[server].flawed ? 1u << 31 : 0), NULL);
}

/* The parent of a process has seen it end: of that process, and not of a later one. */
void engine_bury(uint64_t disk, uint64_t disk_life)
{
    struct statement *x = statement_new();
    x->s = (struct cn_engine_statement){
        .kind = CN_ENGINE_BURY, .disk = disk, .life = (disk_life << 20) + 0xfffff};
    x->node = NODES;
    x->server = PRIMARY;
    x->server_life = servers[PRIMARY].life;
    push(now + 2 + (int32_t)rnd(one_in(6) ? 3000 : 60), EVENT_ARRIVE, NODES, 0, 0, x);
}

/* --- what becomes of its servers -------------------------------------------------------------- */

static void cancel_some(void)
{
    unsigned count = waiting_count ? 1 + rnd(waiting_count) : 0;
    for (unsigned i = 0; i < count && ahead_count < QUEUE; i++)
        commit_ahead(waiting[i]);
    memmove(waiting, waiting + count, (waiting_count - count) * sizeof(*waiting));
    waiting_count -= count;
}

/* What had reached the standby, a first part of all there was, is there; the rest never was. */
static void standby_keeps_some(void)
{
    struct answer *scratch = answer_new();
    bool going = true;
    for (unsigned i = 0; i < ahead_count; i++) {
        going = going && !one_in(3);
        if (going)
            execute(standby, ahead[i], scratch);
        statement_free(ahead[i]);
    }
    for (unsigned i = 0; i < waiting_count; i++) {
        going = going && one_in(2);
        if (going)
            execute(standby, waiting[i], scratch);
        statement_free(waiting[i]);
    }
    ahead_count = waiting_count = 0;
    answer_free(scratch);
}

static void promote(void)
{
    bool lives_on = one_in(2);
    TRACE("engine: the standby is promoted%s", lives_on ? ", the old primary lives on" : "");
    stats.promotions++;
    if (lives_on) {
        struct state *old = zombie;
        for (unsigned i = 0; i < waiting_count; i++) /* whoever waits there still waits */
            TRACE("engine: a statement of node %d waits at the zombie", waiting[i]->node);
        zombie = primary;
        primary = old;
        servers[ZOMBIE].up = true;
        servers[ZOMBIE].timeline = servers[PRIMARY].timeline;
        servers[ZOMBIE].life++;
        for (int n = 0; n < NODES; n++) /* links stay where they are */
            if (nodes[n].link_server == PRIMARY &&
                nodes[n].link_server_life == servers[PRIMARY].life) {
                nodes[n].link_server = ZOMBIE;
                nodes[n].link_server_life = servers[ZOMBIE].life;
            }
        push(now + 1000 + (int32_t)rnd(8000), EVENT_ZOMBIE_ENDS, NODES, servers[ZOMBIE].life, 0,
             NULL);
    }
    standby_keeps_some();
    *primary = *standby;
    servers[PRIMARY].timeline++;
    servers[PRIMARY].flawed = false;
    if (!calm && one_in(6)) {
        servers[PRIMARY].flawed = true;
        TRACE("engine: its primary does not wait for a standby");
        push(now + 1000 + (int32_t)rnd(3000), EVENT_ENGINE_MENDED, NODES, 0, 0, NULL);
    }
}

static void restart(void)
{
    struct answer *scratch = answer_new();
    TRACE("engine: the primary restarts");
    while (waiting_count && one_in(2)) { /* was in its log, and is there when it is back */
        execute(primary, waiting[0], scratch);
        ahead[ahead_count++] = waiting[0];
        memmove(waiting, waiting + 1, --waiting_count * sizeof(*waiting));
    }
    for (unsigned i = 0; i < waiting_count; i++)
        statement_free(waiting[i]);
    waiting_count = 0;
    answer_free(scratch);
}

static void links_break(void)
{
    servers[PRIMARY].life++;
    for (int n = 0; n < NODES; n++)
        if (nodes[n].link_server == PRIMARY)
            link_breaks(n, nodes[n].link);
}

/* --- it goes back ----------------------------------------------------------------------------- */

/* One server with one state, and nothing under way in it. */
static bool is_plain(void)
{
    return servers[PRIMARY].up && !servers[PRIMARY].flawed && !servers[ZOMBIE].up && !stalled &&
           !waiting_count && !ahead_count;
}

/* Every disk that may come has seen more than that, and has taken note of what an operator decided
 * before: else none could know. */
static bool all_know_more(const struct state *e)
{
    for (int n = 0; n < NODES; n++) {
        const struct cn_engine_seen *seen = node_remembers(n);
        bool more = knows_less(e, nodes[n].disk, seen) && e->decision <= seen->decision;
        if (seen->life ? !more : nodes[n].up)
            return false;
    }
    return true;
}

static void forget_queues(void)
{
    for (unsigned i = 0; i < ahead_count; i++)
        statement_free(ahead[i]);
    for (unsigned i = 0; i < waiting_count; i++)
        statement_free(waiting[i]);
    ahead_count = waiting_count = 0;
}

static void become(const struct state *state, uint64_t timeline)
{
    forget_queues(); /* of the other one */
    *primary = *standby = *state;
    servers[PRIMARY].timeline = timeline;
    links_break();
}

static void go_back(void)
{
    if (calm || is_back || !has_backup || !is_plain() || !all_know_more(&backup))
        return;
    TRACE("engine: goes back to version %d", (int)backup.version);
    stats.backs++;
    right = *primary;
    right_timeline = servers[PRIMARY].timeline;
    is_back = true;
    back_at = now;
    become(&backup, one_in(3) ? 1 : right_timeline + rnd(2));
    push(now + 500 + (int32_t)rnd(7000), EVENT_ENGINE_RIGHT, NODES, 0, 0, NULL);
}

static void put_right(void)
{
    if (!is_back)
        return;
    TRACE("engine: the right one is back");
    is_back = has_backup = false;
    become(&right, right_timeline);
}

/* An operator looks for so long whether a node is alive on it (`cairn cluster accept-engine`): no lease
 * that the lost engine gave is left by then. */
enum { ACCEPT_MS = 4000 };

/* An operator goes on with what is there: all nodes that reach it have ended by then. */
static void accept_it(void)
{
    struct state state = *primary;
    TRACE("engine: is accepted as it is");
    stats.accepted++;
    is_back = has_backup = false;
    state.decision = (uint64_t)now;
    state.version++;
    for (int i = 0; i < SHARDS; i++)
        state.shards[i].restored = true;
    become(&state, servers[PRIMARY].timeline);
    check_accepted();
    for (int n = 0; n < NODES; n++)
        if (nodes[n].up && nodes[n].frozen_until < now)
            node_crash(n);
}

static void back_ends(void)
{
    if (!is_back)
        return;
    if (may_accept && !calm && now < back_at + ACCEPT_MS)
        push(back_at + ACCEPT_MS, EVENT_ENGINE_RIGHT, NODES, 0, 0, NULL);
    else if (may_accept && !calm)
        accept_it();
    else
        put_right();
}

bool engine_is_back(void)
{
    return is_back;
}

void engine_fault(void)
{
    if (!servers[PRIMARY].up || is_back)
        return;
    if (one_in(2)) {
        stalled = true;
        TRACE("engine: the standby does not answer");
        int32_t ends = now + 50 + (int32_t)rnd(one_in(2) ? 5000 : 900);
        push(ends, EVENT_STALL_ENDS, NODES, 0, 0, NULL);
        for (int i = 0; i < 2; i++) /* seen from then on, and perhaps lost in the end */
            push(now + (int32_t)rnd((uint32_t)(ends - now)), EVENT_CANCEL, NODES, 0, 0, NULL);
        for (int i = 0; i < 3; i++) { /* what is under way then is what matters */
            push(now + (int32_t)rnd(40), EVENT_CLIENT, NODES, rnd(SHARDS), 0, NULL);
            push(now + (int32_t)rnd(20), EVENT_MOVE, (int)rnd(NODES), rnd(SHARDS), 0, NULL);
        }
        return;
    }
    if (one_in(2)) {
        cancel_some();
        promote();
    } else {
        restart();
    }
    stalled = false;
    servers[PRIMARY].up = false;
    links_break();
    push(now + 100 + (int32_t)rnd(one_in(3) ? 5000 : 600), EVENT_ENGINE_UP, NODES, 0, 0, NULL);
}

void engine_heal(void)
{
    put_right();
    servers[PRIMARY].flawed = false;
    servers[ZOMBIE].up = false;
    servers[ZOMBIE].life++;
}

static void stall_ends(void)
{
    if (!stalled)
        return;
    if (!calm && one_in(2))
        cancel_some();
    if (!calm && servers[PRIMARY].up && one_in(4)) { /* it does not come back: another does */
        stalled = false;
        promote();
        links_break();
        return;
    }
    stalled = false;
    struct statement *all[QUEUE];
    unsigned count = waiting_count;
    memcpy(all, waiting, count * sizeof(*all));
    waiting_count = 0;
    for (unsigned i = 0; i < count; i++)
        commit(all[i]);
}

void engine_event(struct event *event)
{
    switch (event->kind) {
    case EVENT_ARRIVE:
        arrive(event->p);
        break;
    case EVENT_STALL_ENDS:
        stall_ends();
        break;
    case EVENT_CANCEL:
        if (stalled && !calm)
            cancel_some();
        break;
    case EVENT_ENGINE_UP:
        servers[PRIMARY].up = true;
        TRACE("engine: is back");
        break;
    case EVENT_BACKUP:
        if (!is_back && is_plain()) {
            backup = *standby;
            has_backup = true;
        }
        break;
    case EVENT_ENGINE_BACK:
        go_back();
        break;
    case EVENT_ENGINE_RIGHT:
        back_ends();
        break;
    case EVENT_ENGINE_MENDED:
        servers[PRIMARY].flawed = false;
        TRACE("engine: its primary waits for its standby");
        break;
    case EVENT_ZOMBIE_ENDS:
        if (servers[ZOMBIE].life == event->a) {
            servers[ZOMBIE].up = false;
            servers[ZOMBIE].life++;
            TRACE("engine: the zombie ends");
        }
        break;
    default:
        break;
    }
}

void engine_drain(uint64_t disk, bool draining)
{
    if (!servers[PRIMARY].up || stalled || is_back || primary->draining[disk] == draining)
        return;
    replicate();
    primary->draining[disk] = standby->draining[disk] = draining;
    primary->version++;
    standby->version++;
}

/* Every shard that the disk has, another disk has too, whoever is believed; or it is whole in the
 * engine, and will be until another disk has it: too few have it for any of it to be cut. */
bool engine_may_lose(uint64_t disk)
{
    for (int k = 0; k < 2; k++)
        for (unsigned i = 0; i < SHARDS; i++) {
            const struct shard *shard = &(k ? standby : primary)->shards[i];
            unsigned others = 0;
            for (unsigned r = 0; r < shard->count; r++)
                others += shard->disks[r] != disk && node_of_disk(shard->disks[r]) >= 0;
            bool whole = !shard->trim && shard->count < replicas;
            /* Of a restored shard nobody knows who has the last copy: C16. */
            if (shard->restored || (replica_of(shard, disk) >= 0 && !others && !whole))
                return false;
        }
    return true;
}

bool engine_up(void)
{
    return servers[PRIMARY].up && !stalled;
}

uint64_t engine_owner(int shard, uint64_t *disk)
{
    uint64_t owner = primary->shards[shard].owner;
    *disk = primary->sessions[owner].disk;
    return primary->sessions[owner].live ? owner : 0;
}

unsigned engine_replicas(int shard, uint64_t *disks)
{
    memcpy(disks, primary->shards[shard].disks, sizeof(primary->shards[shard].disks));
    return primary->shards[shard].count;
}

uint64_t engine_version(void)
{
    return primary->version;
}

uint64_t engine_trim(int shard)
{
    return primary->shards[shard].trim;
}

void engine_reset(void)
{
    forget_queues();
    stalled = has_backup = is_back = false;
    memset(copied, 0, sizeof(copied));
    for (int i = 0; i < 3; i++) {
        states[i].version = 1;
        states[i].decision = 0;
        states[i].session_count = 0;
        memset(states[i].draining, 0, sizeof(states[i].draining));
        memset(&states[i].sessions[0], 0, sizeof(states[i].sessions[0]));
        for (int s = 0; s < SHARDS; s++) {
            struct shard *shard = &states[i].shards[s];
            shard->owner = shard->epoch = shard->trim = 0;
            shard->restored = false;
            shard->count = shard->log_count = 0;
        }
    }
    memset(servers, 0, sizeof(servers));
    servers[PRIMARY].up = true;
    servers[PRIMARY].life = servers[PRIMARY].timeline = 1;
    servers[ZOMBIE].life = 1u << 20;
}
