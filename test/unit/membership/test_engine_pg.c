/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL as an engine, and as the same engine that the simulation runs on: one table of
 * statements and what they are answered with is carried out by both. Then what only a real one can
 * do to its links: not to wait for its standby, to warn, to die, to be promoted, to be another. */
#include "membership/engine_pg.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mem.h"
#include "test/lib/postgres.h"
#include "test/lib/test.h"

/* The simulated engine, without its world. */
#include "test/simulate/engine.c"
int32_t now;
bool calm = true, verified, may_accept, trace_on;
unsigned replicas = 2;
struct node nodes[NODES];
struct stats stats;
uint32_t rnd(uint32_t n)
{
    return n - 1;
}
void trace(const char *format, ...)
{
}
void push(int32_t at, enum event_kind kind, int node, uint32_t a, uint32_t b, void *p)
{
}
int node_of_disk(uint64_t disk)
{
    return 0;
}
const struct cn_engine_seen *node_remembers(int n)
{
    return &nodes[n].seen;
}
void node_crash(int n)
{
}
void check_accepted(void)
{
}
void fail(const char *format, ...)
{
    test_fail(__FILE__, __LINE__, "%s", format);
}

/* --- answers as text ------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void put_map(struct cn_buf *text, const struct cn_engine_view *view)
{
    cn_buf_printf(text, " sessions");
    for (size_t i = 0; i < view->session_count; i++)
        cn_buf_printf(text, " %d/%d/%d%s", (int)view->sessions[i].id, (int)view->sessions[i].disk,
                      (int)view->sessions[i].beat, view->sessions[i].draining ? "!" : "");
    for (size_t i = 0; i < view->session_count; i++)
        if (view->sessions[i].shut)
            cn_buf_printf(text, " %d shut", (int)view->sessions[i].id);
    for (size_t i = 0; view->shards && i < SHARDS; i++) {
        struct cn_engine_shard shard = view->shards[i];
        qsort(shard.disks, shard.replica_count, sizeof(shard.disks[0]), by_number);
        cn_buf_printf(text, "; %d.%d%s cut %d on", (int)shard.owner, (int)shard.epoch,
                      shard.restored ? " restored" : "", (int)shard.trim);
        for (unsigned k = 0; k < shard.replica_count; k++)
            cn_buf_printf(text, " %d", (int)shard.disks[k]);
    }
}

/* Everything that the kind of statement answers, and nothing else. */
static void put_answer(struct cn_buf *text, const struct cn_engine_answer *a)
{
    cn_buf_printf(text, "%s%s", a->live ? "live" : "not live", a->done ? " done" : "");
    cn_buf_append_str(text, a->less ? " less" : "");
    if (a->kind == CN_ENGINE_JOIN && a->done)
        cn_buf_printf(text, " session %d%s", (int)a->session, a->decision ? " decided" : "");
    if ((a->kind == CN_ENGINE_HELLO || a->kind == CN_ENGINE_BEAT) && a->live)
        cn_buf_printf(text, " head %d", (int)a->head);
    if (a->kind == CN_ENGINE_HELLO && a->live)
        cn_buf_printf(text, " beat %d", (int)a->beat);
    for (size_t i = 0; i < a->count; i++) {
        cn_buf_printf(text, " shard %u", a->items[i].shard);
        if (a->kind == CN_ENGINE_CLAIM)
            cn_buf_printf(text, " epoch %d", (int)a->items[i].epoch);
        if (a->kind == CN_ENGINE_READ)
            cn_buf_printf(text, " to %d of %d cut %d%s", (int)a->items[i].to, (int)a->items[i].last,
                          (int)a->items[i].from, a->items[i].more ? " more" : "");
    }
    if (a->view)
        put_map(text, a->view);
}

/* --- the table ------------------------------------------------------------------------------- */

enum { WHOLE = 0, KNOWN = 1 }; /* the map that a BEAT asks for */
#define ITEM(...)       \
    1,                  \
    {                   \
        {               \
            __VA_ARGS__ \
        }               \
    }
#define SEEN(version_, life_, session_, beat_)                                           \
    0,                                                                                   \
    {                                                                                    \
        {                                                                                \
            .epoch = (version_), .from = (life_), .session = (session_), .beat = (beat_) \
        }                                                                                \
    }
#define ITEMS2(...) \
    2,              \
    {               \
        __VA_ARGS__ \
    }

static const struct step {
    enum cn_engine_kind kind;
    uint64_t session, link, disk, more; /* life, seq or version */
    const char *want;
    size_t count;
    struct cn_engine_item items[2]; /* of JOIN and HELLO: what was seen */
} steps[] = {
    /* E4: lives of a disk, links of a session. */
    {CN_ENGINE_JOIN, 0, 1, 11, 5, "not live done session 1", 0, {}},
    {CN_ENGINE_JOIN, 0, 1, 11, 5, "not live", 0, {}},
    {CN_ENGINE_JOIN, 0, 1, 11, 4, "not live", 0, {}},
    {CN_ENGINE_JOIN, 0, 1, 12, 1, "not live done session 2", 0, {}},
    {CN_ENGINE_BEAT,
     1,
     1,
     11,
     WHOLE,
     "live done head 0 sessions 1/11/2 2/12/1; 0.0 cut 0 on; 0.0 cut 0 on; 0.0 cut 0 on",
     0,
     {}},
    {CN_ENGINE_BEAT, 1, 1, 11, KNOWN, "live done head 0 sessions 1/11/3 2/12/1", 0, {}},
    {CN_ENGINE_BEAT, 1, 2, 11, KNOWN, "not live", 0, {}},
    {CN_ENGINE_BEAT, 7, 1, 11, KNOWN, "not live", 0, {}},
    {CN_ENGINE_HELLO, 1, 3, 11, 0, "live done head 0 beat 4", 0, {}},
    {CN_ENGINE_HELLO, 1, 3, 11, 0, "live done head 0 beat 5", 0, {}},
    {CN_ENGINE_HELLO, 1, 2, 11, 0, "not live", 0, {}},
    {CN_ENGINE_BEAT, 1, 1, 11, KNOWN, "not live", 0, {}},
    {CN_ENGINE_APPEND, 1, 1, 11, 1, "not live", ITEM(.shard = 0, .from = 0, .to = 1)},
    /* CLAIM: what nobody had; with the right epoch only; not from the living. */
    {CN_ENGINE_CLAIM, 1, 3, 11, 0, "live done shard 0 epoch 1 shard 1 epoch 1",
     ITEMS2({.shard = 0}, {.shard = 1})},
    {CN_ENGINE_CLAIM, 2, 1, 12, 0, "live", ITEM(.shard = 0, .epoch = 0)},
    {CN_ENGINE_CLAIM, 2, 1, 12, 0, "live", ITEM(.shard = 0, .epoch = 1)},
    {CN_ENGINE_CLAIM, 2, 1, 12, 0, "live", ITEM(.shard = 2, .epoch = 1)},
    {CN_ENGINE_CLAIM, 2, 1, 12, 0, "live done shard 2 epoch 1",
     ITEMS2({.shard = 1, .epoch = 1}, {.shard = 2, .epoch = 0})},
    {CN_ENGINE_BEAT,
     1,
     3,
     11,
     KNOWN,
     "live done head 0 sessions 1/11/7 2/12/5; 1.1 cut 0 on 11; 1.1 cut 0 on 11; 2.1 cut 0 on 12",
     0,
     {}},
    /* APPEND: in order, once. */
    {CN_ENGINE_APPEND, 1, 3, 11, 1, "live done",
     ITEMS2({.shard = 0, .from = 0, .to = 2}, {.shard = 1, .from = 0, .to = 1})},
    {CN_ENGINE_APPEND, 1, 3, 11, 1, "live", ITEM(.shard = 0, .from = 2, .to = 3)},
    {CN_ENGINE_APPEND, 1, 3, 11, 3, "live", ITEM(.shard = 0, .from = 2, .to = 3)},
    {CN_ENGINE_APPEND, 1, 3, 11, 2, "live done", ITEM(.shard = 0, .from = 2, .to = 3)},
    {CN_ENGINE_HELLO, 1, 4, 11, 0, "live done head 2 beat 12", 0, {}},
    {CN_ENGINE_READ, 1, 4, 11, 0, "live done shard 0 to 3 of 3 cut 0", ITEM(.shard = 0, .from = 0)},
    {CN_ENGINE_READ, 1, 4, 11, 0, "live done shard 0 to 3 of 3 cut 0", ITEM(.shard = 0, .from = 1)},
    {CN_ENGINE_READ, 1, 4, 11, 0, "live done shard 0 to 3 of 3 cut 0", ITEM(.shard = 0, .from = 3)},
    {CN_ENGINE_READ, 1, 4, 11, 0, "live done shard 2 to 0 of 0 cut 0", ITEM(.shard = 2, .from = 0)},
    {CN_ENGINE_READ, 1, 3, 11, 0, "not live done shard 1 to 1 of 1 cut 0",
     ITEM(.shard = 1, .from = 0)},
    /* MOVE: to a session that lives and whose disk has it. */
    {CN_ENGINE_MOVE, 1, 4, 11, 0, "live shard 0", ITEM(.shard = 0, .epoch = 1, .session = 2)},
    {CN_ENGINE_ADD, 2, 1, 12, 0, "live done shard 0", ITEM(.shard = 0, .to = 3)},
    {CN_ENGINE_ADD, 2, 1, 12, 0, "live shard 0", ITEM(.shard = 0, .to = 3)},
    {CN_ENGINE_MOVE, 1, 4, 11, 0, "live shard 0", ITEM(.shard = 0, .epoch = 2, .session = 2)},
    {CN_ENGINE_MOVE, 1, 4, 11, 0, "live shard 0", ITEM(.shard = 0, .epoch = 1, .session = 9)},
    {CN_ENGINE_MOVE, 2, 1, 12, 0, "live shard 0", ITEM(.shard = 0, .epoch = 1, .session = 2)},
    {CN_ENGINE_MOVE, 1, 4, 11, 0, "live done shard 0", ITEM(.shard = 0, .epoch = 1, .session = 2)},
    /* CHECKPOINT: cut is what all have, once there are as many as are wanted. */
    {CN_ENGINE_CHECKPOINT, 1, 4, 11, 0, "live done",
     ITEMS2({.shard = 0, .to = 2}, {.shard = 1, .to = 1})},
    {CN_ENGINE_CHECKPOINT, 1, 4, 11, 0, "live done", ITEM(.shard = 2, .to = 9)},
    {CN_ENGINE_BEAT,
     1,
     4,
     11,
     WHOLE,
     "live done head 2 sessions 1/11/19 2/12/8; 2.2 cut 2 on 11 12; 1.1 cut 0 on 11; 2.1 cut 0 on "
     "12",
     0,
     {}},
    {CN_ENGINE_READ, 1, 4, 11, 0, "live done shard 0 to 3 of 3 cut 2", ITEM(.shard = 0, .from = 2)},
    {CN_ENGINE_CHECKPOINT, 1, 4, 11, 0, "live done", ITEM(.shard = 0, .to = 1)},
    {CN_ENGINE_CHECKPOINT, 1, 4, 11, 0, "live done", ITEM(.shard = 0, .to = 3)},
    {CN_ENGINE_READ, 1, 4, 11, 0, "live done shard 0 to 3 of 3 cut 3", ITEM(.shard = 0, .from = 3)},
    /* ADD: not of what is older than the cut. */
    {CN_ENGINE_JOIN, 0, 1, 13, 1, "not live done session 3", 0, {}},
    {CN_ENGINE_ADD, 3, 1, 13, 0, "live shard 0", ITEM(.shard = 0, .to = 2)},
    {CN_ENGINE_ADD, 3, 1, 13, 0, "live done shard 0", ITEM(.shard = 0, .to = 3)},
    /* DROP: one's own unless one owns it; another's by the owner, if enough remain. */
    {CN_ENGINE_DROP, 2, 1, 12, 0, "live shard 0", ITEM(.shard = 0, .disk = 12)},
    {CN_ENGINE_DROP, 3, 1, 13, 0, "live shard 0", ITEM(.shard = 0, .disk = 11)},
    {CN_ENGINE_DROP, 2, 1, 12, 0, "live done shard 0", ITEM(.shard = 0, .disk = 11)},
    {CN_ENGINE_DROP, 2, 1, 12, 0, "live shard 0", ITEM(.shard = 0, .disk = 13)},
    {CN_ENGINE_DROP, 2, 1, 12, 0, "live shard 0", ITEM(.shard = 0, .disk = 11)},
    {CN_ENGINE_DROP, 3, 1, 13, 0, "live done shard 0", ITEM(.shard = 0, .disk = 13)},
    /* FENCE: of a beat that is still that. */
    {CN_ENGINE_BEAT,
     3,
     1,
     13,
     WHOLE,
     "live done head 0 sessions 1/11/21 2/12/12 3/13/6; 2.2 cut 3 on 12; 1.1 cut 0 on 11; "
     "2.1 cut 0 on 12",
     0,
     {}},
    {CN_ENGINE_FENCE, 3, 1, 13, 0, "live", ITEM(.session = 1, .beat = 20)},
    {CN_ENGINE_FENCE, 3, 1, 13, 0, "live", ITEM(.session = 9, .beat = 1)},
    {CN_ENGINE_FENCE, 3, 1, 13, 0, "live done", ITEM(.session = 1, .beat = 21)},
    {CN_ENGINE_FENCE, 3, 1, 13, 0, "live", ITEM(.session = 1, .beat = 21)},
    {CN_ENGINE_BEAT, 1, 4, 11, KNOWN, "not live", 0, {}},
    {CN_ENGINE_APPEND, 1, 4, 11, 3, "not live", ITEM(.shard = 1, .from = 1, .to = 2)},
    {CN_ENGINE_CLAIM, 1, 4, 11, 0, "not live", ITEM(.shard = 1, .epoch = 1)},
    {CN_ENGINE_HELLO, 1, 5, 11, 0, "not live", 0, {}},
    /* CLAIM: with nothing, if the log is whole. */
    {CN_ENGINE_CLAIM, 3, 1, 13, 0, "live done shard 1 epoch 2", ITEM(.shard = 1, .epoch = 1)},
    {CN_ENGINE_READ, 3, 1, 13, 0, "live done shard 1 to 1 of 1 cut 0", ITEM(.shard = 1, .from = 0)},
    {CN_ENGINE_LEAVE, 2, 1, 12, 0, "live done", 0, {}},
    {CN_ENGINE_LEAVE, 2, 1, 12, 0, "not live", 0, {}},
    {CN_ENGINE_CLAIM, 3, 1, 13, 0, "live done shard 2 epoch 2",
     ITEMS2({.shard = 0, .epoch = 2}, {.shard = 2, .epoch = 1})},
    /* A new life of a disk ends the old one; BURY ends up to a life. */
    {CN_ENGINE_JOIN, 0, 1, 13, 2, "not live done session 4", 0, {}},
    {CN_ENGINE_BEAT, 3, 1, 13, KNOWN, "not live", 0, {}},
    {CN_ENGINE_JOIN, 0, 1, 12, 2, "not live done session 5", 0, {}},
    {CN_ENGINE_CLAIM, 5, 1, 12, 0, "live done shard 0 epoch 3", ITEM(.shard = 0, .epoch = 2)},
    {CN_ENGINE_BURY, 0, 0, 13, 1, "not live", 0, {}},
    {CN_ENGINE_BEAT,
     4,
     1,
     13,
     KNOWN,
     "live done head 0 sessions 4/13/2 5/12/2; 5.3 cut 3 on 12; 3.2 cut 0 on 11 13; "
     "3.2 cut 0 on 12 13",
     0,
     {}},
    {CN_ENGINE_BURY, 0, 0, 13, 2, "not live done", 0, {}},
    {CN_ENGINE_BEAT, 4, 1, 13, KNOWN, "not live", 0, {}},
    {CN_ENGINE_BEAT,
     5,
     1,
     12,
     KNOWN,
     "live done head 0 sessions 5/12/3; 5.3 cut 3 on 12; 3.2 cut 0 on 11 13; 3.2 cut 0 on 12 13",
     0,
     {}},
    /* E8: HELLO of another disk, or with a beat that was never told. */
    {CN_ENGINE_HELLO, 5, 2, 13, 0, "not live", 0, {}},
    {CN_ENGINE_HELLO, 5, 2, 12, 0, "not live less", SEEN(0, 0, 0, 4)},
    {CN_ENGINE_HELLO, 5, 2, 12, 0, "live done head 0 beat 4", SEEN(0, 0, 0, 3)},
    /* JOIN: with a version, a life, a session or a beat that was never told. */
    {CN_ENGINE_JOIN, 0, 1, 12, 3, "not live less", SEEN(999, 0, 0, 0)},
    {CN_ENGINE_JOIN, 0, 1, 12, 9, "not live less", SEEN(1, 8, 0, 0)},
    {CN_ENGINE_JOIN, 0, 1, 12, 3, "not live less", SEEN(1, 2, 9, 1)},
    {CN_ENGINE_JOIN, 0, 1, 12, 3, "not live less", SEEN(1, 2, 4, 1)},
    {CN_ENGINE_JOIN, 0, 1, 12, 3, "not live less", SEEN(1, 2, 5, 5)},
    {CN_ENGINE_JOIN, 0, 1, 14, 3, "not live less", SEEN(1, 1, 1, 1)},
    {CN_ENGINE_JOIN, 0, 1, 12, 3, "not live done session 6", SEEN(1, 2, 5, 4)},
    /* A later life of the disk has joined since: what was seen before it does not matter. */
    {CN_ENGINE_JOIN, 0, 1, 12, 4, "not live done session 7", SEEN(1, 2, 5, 4)},
    /* C16: only what is restored. */
    {CN_ENGINE_ADOPT, 7, 1, 12, 0, "live shard 0", ITEM(.shard = 0, .epoch = 3, .to = 3)},
};

static struct cn_engine_statement statement_of(const struct step *step, uint64_t known)
{
    struct cn_engine_statement statement = {.kind = step->kind,
                                            .session = step->session,
                                            .link = step->link,
                                            .disk = step->disk,
                                            .count = step->count,
                                            .items = step->items,
                                            .seen = {.version = step->items[0].epoch,
                                                     .life = step->items[0].from,
                                                     .session = step->items[0].session,
                                                     .beat = step->items[0].beat}};
    if (step->kind == CN_ENGINE_JOIN || step->kind == CN_ENGINE_BURY)
        statement.life = step->more;
    else if (step->kind == CN_ENGINE_APPEND)
        statement.seq = step->more;
    else if (step->kind == CN_ENGINE_BEAT && step->more == KNOWN)
        statement.version = known;
    return statement;
}

/* Which record is at an LSN of a shard: so that a tail can be compared. */
static unsigned op_of(uint32_t shard, uint64_t lsn)
{
    return 100 * shard + (unsigned)lsn;
}

static void check_step(size_t i, struct cn_buf *text)
{
    if (strcmp(steps[i].want, cn_buf_text(text)) != 0)
        test_fail(__FILE__, __LINE__, "step %zu (kind %d): want \"%s\", got \"%s\"", i,
                  steps[i].kind, steps[i].want, cn_buf_text(text));
    cn_buf_clear(text);
}

TEST(engine_cases, are_answered_so_by_the_simulated_engine)
{
    struct cn_buf text = {0};
    uint64_t known = 0;
    engine_reset();
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct statement *x = statement_new();
        struct answer *answer = answer_new();
        unsigned count = 0;
        x->s = statement_of(&steps[i], known);
        for (size_t k = 0; k < x->s.count; k++) {
            x->items[k] = steps[i].items[k];
            for (uint64_t lsn = x->items[k].from + 1; lsn <= x->items[k].to; lsn++)
                x->records[count++] = (uint16_t)op_of(x->items[k].shard, lsn);
        }
        execute(primary, x, answer);
        if (x->s.kind == CN_ENGINE_BEAT && answer->a.live) {
            see(primary, x, answer);
            known = answer->view.version;
        }
        put_answer(&text, &answer->a);
        check_step(i, &text);
        for (unsigned k = 0; k < answer->record_count && x->s.kind == CN_ENGINE_READ; k++)
            CHECK_INT(op_of(x->items[0].shard, x->items[0].from + 1 + k), answer->records[k]);
        statement_free(x);
        answer_free(answer);
    }
    cn_buf_fini(&text);
}

/* --- a rig with a real one ------------------------------------------------------------------- */

static struct test_postgres first, second, alone;
static uv_loop_t loop;

/* A driver, and what it has told. */
struct rig {
    struct cn_engine_pg *pg;
    bool up, down, closed;
    struct cn_engine_pg_info info;
    char why[300];
    unsigned answers, hints;
    struct cn_buf text; /* of the last answer */
    uint64_t version, head, session;
    bool live, done;
    char records[20000];
    unsigned record_count;
    uint64_t link, number;
    size_t body_size; /* 0: the number of the record */
    char *body;
    char nodes[200]; /* as they were told last */
    bool lacks;      /* records are not there */
};

static void on_nodes(void *data, const struct cn_engine_pg_node *all, size_t count)
{
    struct rig *rig = data;
    size_t at = 0;
    rig->nodes[0] = 0;
    for (size_t i = 0; i < count && at < sizeof(rig->nodes); i++)
        at += (size_t)snprintf(rig->nodes + at, sizeof(rig->nodes) - at, "%llu=%s@%s ",
                               (unsigned long long)all[i].disk, all[i].node, all[i].address);
}

static void on_up(void *data, uint64_t link, const struct cn_engine_pg_info *info)
{
    struct rig *rig = data;
    CHECK_INT(rig->link, link);
    rig->up = true;
    rig->info = *info;
}

static void on_down(void *data, uint64_t link, const char *why)
{
    struct rig *rig = data;
    CHECK_INT(rig->link, link);
    rig->down = true;
    snprintf(rig->why, sizeof(rig->why), "%s", why);
}

static void on_answer(void *data, const struct cn_engine_answer *answer,
                      const struct cn_engine_record *records, size_t count)
{
    struct rig *rig = data;
    CHECK_INT(rig->link, answer->link);
    cn_buf_clear(&rig->text);
    put_answer(&rig->text, answer);
    rig->live = answer->live;
    rig->done = answer->done;
    rig->session = answer->session;
    rig->head = answer->head;
    if (answer->view)
        rig->version = answer->view->version;
    rig->records[0] = 0;
    rig->record_count = (unsigned)count;
    for (size_t i = 0; i < count && records[i].size < 20; i++)
        snprintf(rig->records + strlen(rig->records), sizeof(rig->records) - strlen(rig->records),
                 "%.*s ", (int)records[i].size, (const char *)records[i].body);
    for (size_t i = 0; i < count && rig->body_size; i++) {
        CHECK_INT(rig->body_size, records[i].size);
        CHECK(!memcmp(rig->body, records[i].body, rig->body_size));
    }
    rig->answers++;
}

static void on_hint(void *data)
{
    ((struct rig *)data)->hints++;
}

static struct cn_engine_record on_record(void *data, uint32_t shard, uint64_t lsn)
{
    if (((struct rig *)data)->lacks)
        return (struct cn_engine_record){NULL, 0};
    static char text[20];
    struct rig *rig = data;
    if (rig->body_size)
        return (struct cn_engine_record){rig->body, rig->body_size};
    return (struct cn_engine_record){text,
                                     (size_t)snprintf(text, sizeof(text), "%u", op_of(shard, lsn))};
}

static void on_closed(void *data)
{
    ((struct rig *)data)->closed = true;
}

static void on_time(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* Runs the loop until it is so; a test fails that waits for a minute. */
static void wait_for(const bool *flag, const unsigned *count, unsigned least)
{
    bool late = false;
    uv_timer_t timer;
    uv_timer_init(&loop, &timer);
    timer.data = &late;
    uv_timer_start(&timer, on_time, 60000, 0);
    while (!late && !(flag ? *flag : *count >= least))
        uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(!late);
}

static void conninfo_of(char *text, size_t size, const struct test_postgres *a,
                        const struct test_postgres *b)
{
    snprintf(text, size, "host=%s%s%s user=cairn dbname=postgres", a->dir, b ? "," : "",
             b ? b->dir : "");
}

static uint64_t slot_size; /* 0: as it is */

static void open_driver(struct rig *rig, const char *conninfo, unsigned allow, const char *cluster)
{
    struct cn_err err = {0};
    *rig = (struct rig){0};
    struct cn_engine_pg_config config = {
        .conninfo = conninfo,
        .node = "test",
        .address = "127.0.0.1:7",
        .cluster = cluster,
        .shard_count = SHARDS,
        .allow_flaws = allow,
        .slot_size = slot_size,
        .hooks = {rig, on_up, on_down, on_answer, on_hint, on_nodes, on_record}};
    if (!loop.data)
        CHECK_INT(0, cn_loop_init(&loop, NULL));
    if (cn_engine_pg_new(&loop, &config, &rig->pg, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void close_driver(struct rig *rig)
{
    cn_engine_pg_free(rig->pg, on_closed, rig);
    wait_for(&rig->closed, NULL, 0);
    cn_buf_fini(&rig->text);
    cn_free(rig->body);
}

/* One try. */
static void connect_once(struct rig *rig)
{
    unsigned told = 0;
    rig->up = rig->down = false;
    cn_engine_pg_connect(rig->pg, ++rig->link);
    for (bool late = false; !told && !late;) {
        uv_run(&loop, UV_RUN_ONCE);
        told = rig->up || rig->down;
    }
}

/* Tries until there is a link: with pauses, as a member does. */
static void connect_for_ever(struct rig *rig)
{
    for (int i = 0; i < 600; i++) {
        connect_once(rig);
        if (rig->up)
            return;
        usleep(100000);
    }
    test_fail(__FILE__, __LINE__, "no link: %s", rig->why);
}

static void send_now(struct rig *rig, struct cn_engine_statement *statement)
{
    statement->number = ++rig->number;
    cn_engine_pg_send(rig->pg, statement);
}

static const char *call_now(struct rig *rig, struct cn_engine_statement *statement)
{
    unsigned answers = rig->answers;
    send_now(rig, statement);
    wait_for(NULL, &rig->answers, answers + 1);
    return cn_buf_text(&rig->text);
}

static void join(struct rig *rig, uint64_t disk, uint64_t life)
{
    struct cn_engine_statement statement = {
        .kind = CN_ENGINE_JOIN, .link = rig->link, .disk = disk, .life = life};
    call_now(rig, &statement);
    CHECK(rig->done);
}

/* A primary with a standby that it waits for. Servers are made once, and cleared for each test. */
static void begin_pair(void)
{
    test_postgres_need();
    if (!first.pid) {
        test_postgres_make(&first, "*");
        test_postgres_copy(&second, &first, "second");
    }
    if (!second.pid)
        test_postgres_start(&second);
    test_postgres_ask(&first, "ALTER SYSTEM RESET ALL");
    test_postgres_ask(&first, "SELECT pg_reload_conf()");
    test_postgres_ask(&first, "DROP SCHEMA IF EXISTS cairn CASCADE");
}

/* One that waits for nobody. */
static void begin_alone(void)
{
    test_postgres_need();
    if (!alone.pid)
        test_postgres_make(&alone, "");
    test_postgres_ask(&alone, "ALTER ROLE cairn RESET ALL");
    test_postgres_ask(&alone, "DROP SCHEMA IF EXISTS cairn CASCADE");
}

/* --- the same table -------------------------------------------------------------------------- */

/* The links of the table are those of several nodes; a driver has one after the other. */
static void run_steps(struct rig *rig)
{
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct cn_engine_statement statement = statement_of(&steps[i], rig->version);
        if (!steps[i].link) {
            statement.link = rig->link; /* of no session */
        } else if (rig->link != steps[i].link) {
            rig->link = steps[i].link - 1;
            connect_once(rig);
            CHECK(rig->up);
        }
        call_now(rig, &statement);
        check_step(i, &rig->text);
        if (steps[i].kind != CN_ENGINE_READ)
            continue;
        char want[200] = "";
        for (unsigned k = 1; k <= rig->record_count; k++)
            snprintf(want + strlen(want), sizeof(want) - strlen(want), "%u ",
                     op_of(steps[i].items[0].shard, steps[i].items[0].from + k));
        CHECK_STR(want, rig->records);
    }
}

TEST(engine_pg, answers_the_cases_as_the_simulated_engine_does)
{
    struct rig rig;
    char conninfo[300];
    begin_pair();
    conninfo_of(conninfo, sizeof(conninfo), &first, NULL);
    open_driver(&rig, conninfo, 0, NULL);
    connect_once(&rig);
    if (!rig.up)
        test_fail(__FILE__, __LINE__, "%s", rig.why);
    CHECK_INT(0, rig.info.link.flaws);
    CHECK_INT(1, rig.info.link.timeline);
    CHECK_INT(SHARDS, rig.info.shard_count);
    CHECK_INT(2, rig.info.replicas);
    run_steps(&rig);
    close_driver(&rig);
}

/* --- what an engine may do ------------------------------------------------------------------- */

static void append(struct rig *rig, uint64_t session, uint64_t seq)
{
    struct cn_engine_item item = {.shard = 0, .from = seq - 1, .to = seq};
    struct cn_engine_statement statement = {.kind = CN_ENGINE_APPEND,
                                            .session = session,
                                            .link = rig->link,
                                            .seq = seq,
                                            .count = 1,
                                            .items = &item};
    send_now(rig, &statement);
}

static uint64_t say_hello(struct rig *rig, uint64_t session, uint64_t disk)
{
    struct cn_engine_statement hello = {
        .kind = CN_ENGINE_HELLO, .session = session, .link = rig->link, .disk = disk};
    call_now(rig, &hello);
    CHECK(rig->live);
    return rig->head;
}

/* The records of shard 0 after `from`, in pieces, each checked against what was appended. */
static uint64_t read_all(struct rig *rig, uint64_t session, uint64_t from)
{
    for (bool more = true; more;) {
        struct cn_engine_item item = {.shard = 0, .from = from};
        struct cn_engine_statement read = {.kind = CN_ENGINE_READ,
                                           .session = session,
                                           .link = rig->link,
                                           .count = 1,
                                           .items = &item};
        more = strstr(call_now(rig, &read), " more") != NULL;
        CHECK(rig->live);
        const char *text = rig->records;
        for (unsigned i = 0; i < rig->record_count; i++)
            CHECK_INT(op_of(0, ++from), strtoul(text, (char **)&text, 10));
    }
    return from;
}

TEST(engine_pg, does_not_answer_what_its_standby_does_not_have)
{
    struct rig rig;
    char conninfo[300];
    begin_pair();
    conninfo_of(conninfo, sizeof(conninfo), &first, NULL);
    open_driver(&rig, conninfo, 0, NULL);
    connect_for_ever(&rig);
    join(&rig, 1, 1);
    uint64_t session = rig.session;
    append(&rig, session, 1);
    wait_for(NULL, &rig.answers, 2);
    test_postgres_kill(&second);
    append(&rig, session, 2);
    test_postgres_await(&first,
                        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", "1");
    CHECK_INT(2, rig.answers);
    /* G2: the wait is cancelled. PostgreSQL reports success with a warning. */
    test_postgres_ask(&first,
                      "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event "
                      "= 'SyncRep'");
    wait_for(&rig.down, NULL, 0);
    CHECK_INT(2, rig.answers);
    CHECK(strstr(rig.why, "canceling wait for synchronous replication") != NULL);
    /* It is there all the same, and HELLO tells so once the standby has it. */
    test_postgres_start(&second);
    connect_for_ever(&rig);
    CHECK_INT(2, say_hello(&rig, session, 1));
    CHECK_INT(2, read_all(&rig, session, 0));
    close_driver(&rig);
}

TEST(engine_pg, that_would_lose_data_is_told_and_nothing_is_made_in_it)
{
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, 0, NULL);
    connect_once(&rig);
    CHECK(rig.up);
    CHECK_INT(CN_ENGINE_NO_STANDBY, rig.info.link.flaws);
    CHECK_STR("t", test_postgres_ask(&alone, "SELECT to_regnamespace('cairn') IS NULL"));
    test_postgres_ask(&alone, "ALTER ROLE cairn SET synchronous_commit = local");
    connect_once(&rig);
    CHECK_INT(CN_ENGINE_NO_STANDBY | CN_ENGINE_ASYNC, rig.info.link.flaws);
    close_driver(&rig);
    /* Who allows it gets it. */
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY | CN_ENGINE_ASYNC, NULL);
    connect_for_ever(&rig);
    join(&rig, 1, 1);
    close_driver(&rig);
}

TEST(engine_pg, that_stops_to_wait_for_its_standby_loses_the_link)
{
    struct rig rig;
    char conninfo[300];
    begin_pair();
    conninfo_of(conninfo, sizeof(conninfo), &first, NULL);
    open_driver(&rig, conninfo, 0, NULL);
    connect_for_ever(&rig);
    join(&rig, 1, 1);
    uint64_t session = rig.session;
    test_postgres_ask(&first, "ALTER SYSTEM SET synchronous_standby_names = ''");
    test_postgres_ask(&first, "SELECT pg_reload_conf()");
    test_postgres_await(&first, "SHOW synchronous_standby_names", "");
    for (uint64_t seq = 1; !rig.down; seq++) { /* until its backend has heard of it */
        unsigned answers = rig.answers;
        append(&rig, session, seq);
        while (!rig.down && rig.answers == answers)
            uv_run(&loop, UV_RUN_ONCE);
    }
    CHECK(strstr(rig.why, "stopped to wait for its standby") != NULL);
    connect_once(&rig);
    CHECK_INT(CN_ENGINE_NO_STANDBY, rig.info.link.flaws);
    close_driver(&rig);
}

TEST(engine_pg, of_another_cluster_or_another_major_version_is_refused)
{
    struct rig rig;
    char conninfo[300], cluster[CN_ENGINE_PG_ID_SIZE];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&rig);
    memcpy(cluster, rig.info.cluster, sizeof(cluster));
    close_driver(&rig);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, cluster);
    connect_once(&rig);
    CHECK(rig.up);
    test_postgres_ask(&alone, "UPDATE cairn.cluster SET major = 2");
    connect_once(&rig);
    CHECK(rig.up);
    CHECK_INT(CN_ENGINE_NO_STANDBY | CN_ENGINE_OTHER_MAJOR, rig.info.link.flaws);
    test_postgres_ask(&alone, "UPDATE cairn.cluster SET major = 1, id = gen_random_uuid()");
    connect_once(&rig);
    CHECK(rig.down);
    CHECK(strstr(rig.why, "another cluster") != NULL);
    test_postgres_ask(&alone, "DROP SCHEMA cairn CASCADE");
    connect_once(&rig);
    CHECK(rig.down);
    CHECK(strstr(rig.why, "no tables of a cluster") != NULL);
    CHECK_STR("t", test_postgres_ask(&alone, "SELECT to_regnamespace('cairn') IS NULL"));
    close_driver(&rig);
}

TEST(engine_pg, whose_functions_are_of_an_older_minor_version_gets_ours)
{
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&rig);
    test_postgres_ask(&alone, "UPDATE cairn.cluster SET minor = 0");
    test_postgres_ask(&alone, "DROP FUNCTION cairn.join(bigint, bigint, bigint, text, text)");
    connect_once(&rig);
    CHECK(rig.up);
    join(&rig, 1, 1);
    /* A newer one is left as it is. */
    test_postgres_ask(&alone, "UPDATE cairn.cluster SET minor = 99");
    connect_once(&rig);
    CHECK(rig.up);
    CHECK_STR("99", test_postgres_ask(&alone, "SELECT minor FROM cairn.cluster"));
    close_driver(&rig);
}

static const char *call_shard(struct rig *rig, enum cn_engine_kind kind, uint64_t disk,
                              struct cn_engine_item item)
{
    char sql[100];
    snprintf(sql, sizeof(sql), "SELECT coalesce(max(id), 0) FROM cairn.session WHERE disk = %d",
             (int)disk);
    struct cn_engine_statement statement = {.kind = kind,
                                            .session =
                                                strtoull(test_postgres_ask(&alone, sql), NULL, 10),
                                            .link = rig->link,
                                            .disk = disk,
                                            .count = kind != CN_ENGINE_BEAT,
                                            .items = &item};
    return call_now(rig, &statement);
}

/* C16: disk 1 had shard 0 and 5 records of it were cut; disk 2 got it after the backup. */
TEST(engine_pg, that_went_back_and_is_accepted_goes_on_with_the_copy_of_who_adopts_it)
{
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&rig);
    join(&rig, 1, 1);
    call_shard(&rig, CN_ENGINE_CLAIM, 1, (struct cn_engine_item){.shard = 0});
    test_postgres_ask(&alone, "UPDATE cairn.shard SET trim = 5 WHERE id = 0");
    /* A node lives: its beat is not what it was. */
    CHECK_STR("", test_postgres_ask(&alone, "SELECT cairn.accept('')"));
    CHECK_STR("3", test_postgres_ask(&alone, "SELECT cairn.accept(cairn.beats())"));
    CHECK_STR("not live", call_shard(&rig, CN_ENGINE_BEAT, 1, (struct cn_engine_item){0}));
    /* A disk that has seen more joins once, by that decision. */
    struct cn_engine_statement again = {.kind = CN_ENGINE_JOIN,
                                        .link = rig.link,
                                        .disk = 2,
                                        .life = 8,
                                        .seen = {.version = 99, .life = 7}};
    CHECK(strstr(call_now(&rig, &again), "not live done less session 1000"));
    CHECK(strstr(rig.text.data ? cn_buf_text(&rig.text) : "", "decided"));
    CHECK(strstr(call_shard(&rig, CN_ENGINE_BEAT, 2, (struct cn_engine_item){0}),
                 ".1 restored cut 5 on 1; 0.0 restored cut 0 on"));
    /* The map does not name it, and not all of the log is there. */
    CHECK_STR("live done shard 0 epoch 2",
              call_shard(&rig, CN_ENGINE_CLAIM, 2, (struct cn_engine_item){.epoch = 1}));
    CHECK_STR("live shard 0",
              call_shard(&rig, CN_ENGINE_ADOPT, 2, (struct cn_engine_item){.epoch = 2, .to = 4}));
    CHECK_STR("live done shard 0",
              call_shard(&rig, CN_ENGINE_ADOPT, 2, (struct cn_engine_item){.epoch = 2, .to = 9}));
    CHECK(strstr(call_shard(&rig, CN_ENGINE_BEAT, 2, (struct cn_engine_item){0}),
                 ".2 cut 9 on 2; 0.0 restored cut 0 on"));
    CHECK_STR("live shard 0",
              call_shard(&rig, CN_ENGINE_ADOPT, 2, (struct cn_engine_item){.epoch = 2, .to = 9}));
    close_driver(&rig);
}

/* C16: the map names the disk, with what it had of the shard once; it has nothing now. */
TEST(engine_pg, that_was_accepted_cuts_nothing_that_who_claims_with_nothing_lacks)
{
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&rig);
    test_postgres_ask(&alone, "UPDATE cairn.shard SET epoch = 1, disks = '{2,1}', "
                              "checkpoints = '{4,3}' WHERE id = 0");
    CHECK_STR("3", test_postgres_ask(&alone, "SELECT cairn.accept('')"));
    join(&rig, 1, 1);
    CHECK_STR(
        "live done shard 0 epoch 2",
        call_shard(&rig, CN_ENGINE_CLAIM, 1, (struct cn_engine_item){.epoch = 1, .fresh = true}));
    CHECK_STR("{4,0}",
              test_postgres_ask(&alone, "SELECT checkpoints FROM cairn.shard WHERE id = 0"));
    close_driver(&rig);
}

/* C16: whom the map names need not have anything, so it may be only the log that has it. */
TEST(engine_pg, that_was_accepted_cuts_nothing_of_a_shard_before_it_is_adopted)
{
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&rig);
    test_postgres_ask(&alone, "UPDATE cairn.shard SET epoch = 1, disks = '{2,1,3}', "
                              "checkpoints = '{4,3,4}' WHERE id < 2");
    CHECK_STR("3", test_postgres_ask(&alone, "SELECT cairn.accept('')"));
    test_postgres_ask(&alone, "DELETE FROM cairn.restored WHERE shard = 1");
    join(&rig, 1, 1);
    for (uint32_t i = 0; i < 2; i++)
        call_shard(&rig, CN_ENGINE_CHECKPOINT, 1, (struct cn_engine_item){.shard = i, .to = 9});
    CHECK_STR("0 4", test_postgres_ask(&alone, "SELECT string_agg(trim::text, ' ' ORDER BY id) "
                                               "FROM cairn.shard WHERE id < 2"));
    CHECK_STR("{4,9,4}",
              test_postgres_ask(&alone, "SELECT checkpoints FROM cairn.shard WHERE id = 0"));
    close_driver(&rig);
}

/* C12 beside C16: both are marks of a BEAT, and neither hides the other. */
TEST(engine_pg, tells_which_nodes_do_not_serve_yet_with_every_map_and_without)
{
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&rig);
    join(&rig, 1, 1);
    struct cn_engine_statement whole = {
        .kind = CN_ENGINE_BEAT, .link = rig.link, .session = rig.session};
    CHECK(!strstr(call_now(&rig, &whole), "shut")); /* nothing is deployed that it had to have */
    test_postgres_ask(&alone,
                      "INSERT INTO cairn.depot(version, serial, state) VALUES (1, 1, '{}')");
    test_postgres_ask(&alone, "INSERT INTO cairn.restored VALUES (1)");
    const char *text = call_now(&rig, &whole);
    CHECK(strstr(text, " 1 shut") && strstr(text, "restored"));
    struct cn_engine_statement known = whole;
    known.version = rig.version;
    CHECK(strstr(call_now(&rig, &known), " 1 shut"));
    test_postgres_ask(&alone, "INSERT INTO cairn.follower(disk, version) VALUES (1, 1)");
    text = call_now(&rig, &whole);
    CHECK(!strstr(text, "shut") && strstr(text, "restored"));
    CHECK(!strstr(call_now(&rig, &known), "shut"));
    close_driver(&rig);
}

TEST(engine_pg, of_which_a_disk_was_forgotten_does_not_tell_that_disk_less)
{
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&rig);
    join(&rig, 1, 5);
    call_shard(&rig, CN_ENGINE_LEAVE, 1, (struct cn_engine_item){0});
    test_postgres_ask(&alone, "SELECT cairn.forget(node) FROM cairn.disk");
    struct cn_engine_statement again = {.kind = CN_ENGINE_JOIN,
                                        .link = rig.link,
                                        .disk = 1,
                                        .life = 6,
                                        .seen = {.version = 2, .life = 5, .session = 1, .beat = 1}};
    CHECK_STR("not live done session 2", call_now(&rig, &again));
    close_driver(&rig);
}

TEST(engine_pg, tells_others_that_the_map_has_changed)
{
    struct rig one, other;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&one, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&one);
    open_driver(&other, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&other);
    join(&one, 1, 1);
    wait_for(NULL, &other.hints, 1);
    close_driver(&one);
    close_driver(&other);
}

/* With every map, and with it the secret that only nodes have. */
TEST(engine_pg, tells_nodes_where_the_others_are_and_what_they_share)
{
    struct rig one, other;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&one, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&one);
    open_driver(&other, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&other);
    CHECK_INT(0, memcmp(one.info.secret, other.info.secret, sizeof(one.info.secret)));
    CHECK(one.info.secret[0] || one.info.secret[1] || one.info.secret[2]);
    join(&one, 1, 1);
    join(&other, 2, 1);
    struct cn_engine_statement beat = {
        .kind = CN_ENGINE_BEAT, .link = one.link, .session = one.session};
    call_now(&one, &beat);
    CHECK_STR("1=test@127.0.0.1:7 2=test@127.0.0.1:7 ", one.nodes);
    one.nodes[0] = 0;
    beat.version = one.version;
    call_now(&one, &beat); /* nothing is newer */
    CHECK_STR("", one.nodes);
    close_driver(&one);
    close_driver(&other);
}

/* C15, C16: what is not told is not taken for the better case. */
TEST(engine_pg, ends_the_link_if_a_join_or_a_map_leaves_out_what_it_has_to_tell)
{
    static const char *const functions[] = {
        "cairn.join(_d bigint, _life bigint, _l bigint, _node text, _address text, _seen bigint[])",
        "cairn.beat(_s bigint, _l bigint, _known bigint, _all boolean, _marked boolean)"};
    static const char *const without[] = {"cairn.join(_d, _life, _l, _node, _address)",
                                          "cairn.beat(_s, _l, _known)"};
    for (int i = 0; i < 2; i++) {
        struct rig rig;
        char conninfo[300], sql[500];
        begin_alone();
        conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
        open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
        connect_for_ever(&rig);
        if (i)
            join(&rig, 1, 1);
        snprintf(sql, sizeof(sql),
                 "CREATE OR REPLACE FUNCTION %s RETURNS cairn.answer LANGUAGE plpgsql AS $$ "
                 "DECLARE a cairn.answer; BEGIN a := %s; a.items := NULL; RETURN a; END $$",
                 functions[i], without[i]);
        test_postgres_ask(&alone, sql);
        struct cn_engine_statement asked = {.kind = i ? CN_ENGINE_BEAT : CN_ENGINE_JOIN,
                                            .link = rig.link,
                                            .session = rig.session,
                                            .disk = 1,
                                            .life = 1};
        unsigned answers = rig.answers;
        send_now(&rig, &asked);
        wait_for(&rig.down, NULL, 0);
        CHECK(strstr(rig.why, "what it leaves out") != NULL);
        CHECK_INT(answers, rig.answers);
        close_driver(&rig);
    }
}

/* A shard was taken away by other hands: nothing is sent that is not what it should be. */
TEST(engine_pg, ends_the_link_rather_than_append_what_is_not_there)
{
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&rig);
    join(&rig, 1, 1);
    struct cn_engine_item item = {.shard = 0, .from = 0, .to = 2};
    struct cn_engine_statement append = {.kind = CN_ENGINE_APPEND,
                                         .link = rig.link,
                                         .session = rig.session,
                                         .seq = 1,
                                         .count = 1,
                                         .items = &item};
    rig.lacks = true;
    send_now(&rig, &append);
    wait_for(&rig.down, NULL, 0);
    CHECK_STR("a record that is to be appended is not there", rig.why);
    CHECK_STR("0", test_postgres_ask(&alone, "SELECT count(*) FROM cairn.log"));
    close_driver(&rig);
}

/* Large records are cut into rows, and come back as they were; small ones share a row. */
TEST(engine_pg, takes_records_of_any_size)
{
    static const size_t sizes[] = {1, 8091, 8092, 8093, 16188, 3000000};
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&rig);
    join(&rig, 1, 1);
    uint64_t session = rig.session;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        cn_free(rig.body);
        rig.body_size = sizes[i];
        rig.body = cn_alloc(sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            rig.body[k] = (char)(k * 7 + i);
        struct cn_engine_item item = {.shard = 1, .from = 2 * i, .to = 2 * i + 2};
        struct cn_engine_statement statement = {.kind = CN_ENGINE_APPEND,
                                                .session = session,
                                                .link = rig.link,
                                                .seq = i + 1,
                                                .count = 1,
                                                .items = &item};
        CHECK_STR("live done", call_now(&rig, &statement));
        statement.kind = CN_ENGINE_READ;
        call_now(&rig, &statement);
        CHECK_INT(2, rig.record_count);
        item.from++; /* the second alone */
        call_now(&rig, &statement);
        CHECK_INT(1, rig.record_count);
    }
    close_driver(&rig);
}

/* D5. */
TEST(engine_pg, empties_a_table_of_its_ring_only_when_all_have_what_is_in_it)
{
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&rig);
    join(&rig, 1, 1);
    uint64_t session = rig.session, seq = 0;
    unsigned answers = rig.answers;
    test_postgres_ask(&alone, "UPDATE cairn.cluster SET replicas = 1");
    struct cn_engine_item claim = {.shard = 0};
    struct cn_engine_statement statement = {.kind = CN_ENGINE_CLAIM,
                                            .session = session,
                                            .link = rig.link,
                                            .disk = 1,
                                            .count = 1,
                                            .items = &claim};
    CHECK_STR("live done shard 0 epoch 1", call_now(&rig, &statement));
    for (int table = 0; table < 3;
         table++) { /* what is in 0 stays needed: 3 is the last to go to */
        append(&rig, session, ++seq);
        answers = rig.answers;
        wait_for(NULL, &rig.answers, answers + 1);
        CHECK_STR("t", test_postgres_ask(&alone, "SELECT cairn.tidy(1)"));
    }
    append(&rig, session, ++seq);
    answers = rig.answers;
    wait_for(NULL, &rig.answers, answers + 1);
    CHECK_STR("f", test_postgres_ask(&alone, "SELECT cairn.tidy(1)"));
    CHECK_INT(4, read_all(&rig, session, 0)); /* across all of them */
    statement.kind = CN_ENGINE_CHECKPOINT;
    claim.to = 2;
    CHECK_STR("live done", call_now(&rig, &statement));
    CHECK_STR("t", test_postgres_ask(&alone, "SELECT cairn.tidy(1)"));
    CHECK_STR("0", test_postgres_ask(&alone, "SELECT count(*) FROM cairn.log_0"));
    CHECK_STR("3", test_postgres_ask(&alone, "SELECT count(*) FROM cairn.log"));
    CHECK_INT(4, read_all(&rig, session, 2));
    statement.kind = CN_ENGINE_READ; /* who has less than the cut is told of it */
    claim.from = 0;
    CHECK(strstr(call_now(&rig, &statement), "cut 2") != NULL);
    CHECK_INT(0, rig.record_count);
    close_driver(&rig);
}

/* A node that writes much and cuts seldom does not fill one table of the ring without end. */
TEST(engine_pg, lets_the_ring_go_on_by_what_was_appended)
{
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    slot_size = 8192;
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    slot_size = 0;
    connect_for_ever(&rig);
    join(&rig, 1, 1);
    uint64_t session = rig.session, seq = 0;
    while (strcmp(test_postgres_ask(&alone, "SELECT slot FROM cairn.cluster"), "2") != 0) {
        CHECK(seq < 2000); /* of three tables of 8 KB */
        unsigned answers = rig.answers;
        append(&rig, session, ++seq);
        wait_for(NULL, &rig.answers, answers + 1);
    }
    CHECK(test_postgres_ask(
              &alone, "SELECT pg_relation_size('cairn.log_0') BETWEEN 8192 AND 65536")[0] == 't');
    CHECK_INT(seq, read_all(&rig, session, 0));
    close_driver(&rig);
}

TEST(engine_pg, connection_string_is_checked_before_anything_else)
{
    struct cn_engine_pg *pg;
    struct cn_err err = {0};
    if (!loop.data)
        CHECK_INT(0, cn_loop_init(&loop, NULL));
    CHECK_INT(CN_EINVALID, cn_engine_pg_new(&loop,
                                            &(struct cn_engine_pg_config){.conninfo = "what="
                                                                                      "secret"},
                                            &pg, &err));
    CHECK(strstr(err.text, "secret") == NULL);
    CHECK_INT(CN_EINVALID, cn_engine_pg_new(&loop,
                                            &(struct cn_engine_pg_config){
                                                .conninfo = "host=x target_session_attrs=standby"},
                                            &pg, &err));
    CHECK_INT(CN_EINVALID,
              cn_engine_pg_new(
                  &loop, &(struct cn_engine_pg_config){.conninfo = "host=x", .shard_count = 5000},
                  &pg, &err));
    const char *const wrong[] = {"", "a:", ":1", "a b:1", "a,b:1", "host"};
    for (size_t i = 1; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_INT(CN_EINVALID,
                  cn_engine_pg_new(&loop,
                                   &(struct cn_engine_pg_config){
                                       .conninfo = "host=x", .node = "n", .address = wrong[i]},
                                   &pg, &err));
    CHECK_INT(CN_EINVALID,
              cn_engine_pg_new(
                  &loop, &(struct cn_engine_pg_config){.conninfo = "host=x", .node = "two words"},
                  &pg, &err));
    CHECK(cn_engine_pg_is_address("[::1]:80") && cn_engine_pg_is_node("eu-1.a_b"));
}

/* G6: a member that sends is not told of its link by the same call. */
TEST(engine_pg, bounds_what_is_under_way_and_tells_of_it_by_the_loop)
{
    struct rig rig;
    char conninfo[300];
    begin_alone();
    conninfo_of(conninfo, sizeof(conninfo), &alone, NULL);
    open_driver(&rig, conninfo, CN_ENGINE_NO_STANDBY, NULL);
    connect_for_ever(&rig);
    join(&rig, 1, 1);
    unsigned answers = rig.answers;
    struct cn_engine_statement beat = {
        .kind = CN_ENGINE_BEAT, .session = rig.session, .link = rig.link};
    for (int i = 0; i < 1000; i++)
        send_now(&rig, &beat);
    CHECK(!rig.down && rig.answers == answers);
    wait_for(&rig.down, NULL, 0);
    CHECK(strstr(rig.why, "too many") != NULL);
    CHECK_INT(answers, rig.answers); /* G5 */
    connect_for_ever(&rig);
    close_driver(&rig);
}

/* --- the engine's own fail-over -------------------------------------------------------------- */

/* A server that takes connections and says nothing: one that was frozen. */
static int silent_listen(const char *dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/.s.PGSQL.5432", dir) <
          sizeof(address.sun_path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 8));
    return fd;
}

/* Runs the loop until a connection has come to it. */
static void silent_accept(int fd)
{
    int peer;
    while ((peer = accept(fd, NULL, NULL)) < 0) {
        CHECK(errno == EAGAIN);
        uv_run(&loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
    close(peer);
}

TEST(engine_pg, passes_over_a_host_that_does_not_answer_or_whose_link_was_given_up)
{
    struct rig rig;
    char conninfo[700], silent[128];
    begin_pair();
    snprintf(silent, sizeof(silent), "%s/silent", test_dir());
    CHECK_INT(0, mkdir(silent, 0700));
    int fd = silent_listen(silent);
    snprintf(conninfo, sizeof(conninfo), "host=%s/none,%s,%s user=cairn dbname=postgres",
             test_dir(), silent, first.dir);
    open_driver(&rig, conninfo, 0, NULL);
    cn_engine_pg_connect(rig.pg, ++rig.link); /* the first refuses, the second is silent */
    silent_accept(fd);
    connect_once(&rig); /* so the third comes first */
    CHECK(rig.up);
    cn_engine_pg_connect(rig.pg, ++rig.link); /* given up, though it was up: others come first */
    silent_accept(fd);
    connect_once(&rig);
    CHECK(rig.up);
    close_driver(&rig);
    close(fd);
}

enum { ROUNDS = 2, WINDOW = 4 };

/* Appends with several under way until the engine dies in the middle; everything acknowledged must
 * be there in its successor, and nothing twice. */
TEST(engine_pg, has_all_it_acknowledged_after_its_primary_died_and_another_was_promoted)
{
    struct rig rig;
    char conninfo[300];
    struct test_postgres *primary_now = &first, *standby_now = &second;
    begin_pair();
    conninfo_of(conninfo, sizeof(conninfo), &first, &second);
    open_driver(&rig, conninfo, 0, NULL);
    connect_for_ever(&rig);
    join(&rig, 1, 1);
    uint64_t session = rig.session, acked = 0, sent = 0, timeline = rig.info.link.timeline;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned before = rig.answers;
        uint64_t base = acked;
        for (bool killed = false; !rig.down;) {
            while (!rig.down && sent < acked + WINDOW)
                append(&rig, session, ++sent);
            if (!rig.down)
                uv_run(&loop, UV_RUN_ONCE);
            acked = base + (rig.answers - before);
            if (!killed && acked > base + 150) {
                test_postgres_kill(primary_now);
                killed = true;
            }
        }
        test_postgres_promote(standby_now);
        test_postgres_end(primary_now);
        test_postgres_copy(primary_now, standby_now, "second");
        struct test_postgres *was = primary_now;
        primary_now = standby_now;
        standby_now = was;
        close_driver(&rig); /* the servers are elsewhere now */
        conninfo_of(conninfo, sizeof(conninfo), standby_now, primary_now); /* the wrong one first */
        uint64_t link = rig.link;
        open_driver(&rig, conninfo, 0, NULL);
        rig.link = link;
        connect_for_ever(&rig);
        CHECK(rig.info.link.timeline > timeline);
        timeline = rig.info.link.timeline;
        uint64_t head = say_hello(&rig, session, 1);
        CHECK(head >= acked && head <= sent);
        CHECK_INT(head, read_all(&rig, session, 0));
        acked = sent = head;
    }
    close_driver(&rig);
}
