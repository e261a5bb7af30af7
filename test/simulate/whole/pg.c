/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/whole/pg.c - the driver of the engine: that of test/simulate/engine.c, by the
 * functions of membership/engine_pg.h. Bodies of records are kept here, and have numbers there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "membership/engine_pg.h"
#include "membership/registry.h"
#include "test/simulate/whole/loop.h"
#include "test/simulate/whole/whole.h"

enum { BODIES = 65536 };

const char WHOLE_CLUSTER[CN_ENGINE_PG_ID_SIZE] = "01234567-89ab-cdef-0123-456789abcdef";

/* By number, from 1. */
static struct body {
    uint32_t shard;
    uint64_t lsn;
    uint8_t *bytes;
    size_t size;
} * bodies;
static unsigned body_count;

/* What the engine has told, and the loop has not. */
struct news {
    struct news *next;
    enum { NEWS_UP, NEWS_DOWN, NEWS_ANSWER, NEWS_HINT } kind;
    uint64_t link;
    uint32_t about;
    struct answer *answer;
};

struct cn_engine_pg {
    struct pending pending; /* first */
    struct loop *loop;
    int node;
    unsigned allow_flaws;
    struct cn_engine_pg_hooks hooks;
    uint64_t link; /* 0: none */
    bool up, freed;
    struct news *news, **news_end;
    void (*closed)(void *data);
    void *closed_data;
};

void pg_reset(void)
{
    if (!bodies)
        bodies = calloc(BODIES, sizeof(*bodies));
    body_count = 0;
}

static uint16_t body_keep(uint32_t shard, uint64_t lsn, struct cn_engine_record record)
{
    for (unsigned i = body_count; i > 0; i--) /* H4: as often as it is sent, the same bytes */
        if (bodies[i].shard == shard && bodies[i].lsn == lsn && bodies[i].size == record.size &&
            memcmp(bodies[i].bytes, record.body, record.size) == 0)
            return (uint16_t)i;
    if (++body_count == BODIES)
        abort();
    bodies[body_count] = (struct body){.shard = shard,
                                       .lsn = lsn,
                                       .bytes = cn_memdup(record.body, record.size),
                                       .size = record.size};
    return (uint16_t)body_count;
}

/* --- what is told ----------------------------------------------------------------------------- */

static void tell_up(struct cn_engine_pg *pg, const struct news *news)
{
    struct cn_engine_pg_info info = {.link = {.timeline = news->about & ~(1u << 31),
                                              .flaws = news->about >> 31 ? CN_ENGINE_ASYNC : 0},
                                     .shard_count = SHARDS,
                                     .replicas = replicas};
    memcpy(info.cluster, WHOLE_CLUSTER, sizeof(info.cluster));
    pg->up = true;
    pg->hooks.up(pg->hooks.data, news->link, &info);
}

static void tell_nodes(struct cn_engine_pg *pg, const struct cn_engine_view *view)
{
    struct cn_engine_pg_node all[NODES + 2] = {{0}};
    static char names[NODES][20], addresses[NODES][20];
    size_t count = 0;
    for (size_t i = 0; i < view->session_count; i++) {
        int n = node_of_disk(view->sessions[i].disk);
        if (n < 0)
            continue;
        snprintf(names[n], sizeof(names[n]), "node-%d", n);
        snprintf(addresses[n], sizeof(addresses[n]), "node-%d:1", n);
        all[count++] = (struct cn_engine_pg_node){view->sessions[i].disk, names[n], addresses[n]};
    }
    pg->hooks.nodes(pg->hooks.data, all, count);
}

static void tell_answer(struct cn_engine_pg *pg, struct answer *answer)
{
    struct cn_engine_record records[OPS + 1];
    bool reads = answer->a.kind == CN_ENGINE_READ;
    for (unsigned i = 0; reads && i < answer->record_count; i++)
        records[i] = (struct cn_engine_record){bodies[answer->records[i]].bytes,
                                               bodies[answer->records[i]].size};
    if (answer->a.view && answer->a.view->shards)
        tell_nodes(pg, answer->a.view);
    pg->hooks.answer(pg->hooks.data, &answer->a, records, reads ? answer->record_count : 0);
}

static void tell(struct cn_engine_pg *pg, struct news *news)
{
    bool current = pg->link && news->link == pg->link && !pg->freed; /* G5 */
    if (news->kind == NEWS_UP && current) {
        tell_up(pg, news);
    } else if (news->kind == NEWS_DOWN && current) {
        pg->link = 0;
        pg->up = false;
        pg->hooks.down(pg->hooks.data, news->link, "it broke");
    } else if (news->kind == NEWS_ANSWER && current && pg->up) {
        tell_answer(pg, news->answer);
    } else if (news->kind == NEWS_HINT && pg->up && !pg->freed) {
        pg->hooks.hint(pg->hooks.data);
    }
    if (news->answer)
        answer_free(news->answer);
    free(news);
}

static void pg_run(struct pending *pending)
{
    struct cn_engine_pg *pg = (struct cn_engine_pg *)pending;
    while (pg->news) {
        struct news *news = pg->news;
        pg->news = news->next;
        if (!pg->news)
            pg->news_end = &pg->news;
        tell(pg, news);
    }
    if (!pg->freed)
        return;
    void (*closed)(void *) = pg->closed;
    void *data = pg->closed_data;
    wholes[pg->node].engine = NULL;
    pg->loop->others--;
    free(pg);
    if (closed)
        closed(data);
}

static void news_put(struct cn_engine_pg *pg, struct news news)
{
    struct news *kept = malloc(sizeof(*kept));
    *kept = news;
    kept->next = NULL;
    *pg->news_end = kept;
    pg->news_end = &kept->next;
    loop_pend(pg->loop, &pg->pending);
}

/* Of the engine, for a node. */
void pg_event(struct event *event)
{
    struct node *node = &nodes[event->node];
    struct cn_engine_pg *pg = wholes[event->node].engine;
    if (!node->up || event->life != node->life || !pg) {
        if (event->kind == EVENT_ANSWER)
            answer_free(event->p);
        return;
    }
    if (event->kind == EVENT_LINK_UP) {
        if (!node->link_dead)
            news_put(pg, (struct news){.kind = NEWS_UP, .link = event->a, .about = event->b});
    } else if (event->kind == EVENT_LINK_DOWN) {
        news_put(pg, (struct news){.kind = NEWS_DOWN, .link = event->a});
    } else {
        struct answer *answer = event->p;
        news_put(pg, (struct news){.kind = NEWS_ANSWER, .link = answer->a.link, .answer = answer});
    }
}

void pg_hint_all(void)
{
    for (int n = 0; n < NODES; n++)
        if (nodes[n].up && wholes[n].engine && !nodes[n].link_dead && !nodes[n].no_engine &&
            (calm || !one_in(5)))
            news_put(wholes[n].engine, (struct news){.kind = NEWS_HINT});
}

/* --- membership/engine_pg.h ------------------------------------------------------------------- */

int cn_engine_pg_new(uv_loop_t *loop, const struct cn_engine_pg_config *config,
                     struct cn_engine_pg **result, struct cn_err *err)
{
    (void)err;
    struct cn_engine_pg *pg = cn_alloc_zero(sizeof(*pg));
    *pg = (struct cn_engine_pg){.pending.run = pg_run,
                                .loop = loop_of(loop),
                                .node = process_current()->index,
                                .hooks = config->hooks};
    pg->news_end = &pg->news;
    pg->loop->others++;
    wholes[pg->node].engine = pg;
    *result = pg;
    return 0;
}

void cn_engine_pg_free(struct cn_engine_pg *pg, void (*closed)(void *data), void *data)
{
    pg->freed = true;
    pg->closed = closed;
    pg->closed_data = data;
    nodes[pg->node].link_dead = true;
    loop_pend(pg->loop, &pg->pending);
}

void cn_engine_pg_connect(struct cn_engine_pg *pg, uint64_t link)
{
    pg->link = link;
    pg->up = false;
    engine_connect(pg->node, link);
    TRACE("node %d: link %d to the engine", pg->node, (int)link);
}

void cn_engine_pg_send(struct cn_engine_pg *pg, const struct cn_engine_statement *statement)
{
    uint16_t records[OPS + 1];
    unsigned count = 0;
    if (statement->link != pg->link || !pg->up)
        return;
    for (size_t i = 0; i < statement->count && statement->kind == CN_ENGINE_APPEND; i++) {
        const struct cn_engine_item *item = &statement->items[i];
        for (uint64_t lsn = item->from + 1; lsn <= item->to; lsn++) {
            struct cn_engine_record record = pg->hooks.record(pg->hooks.data, item->shard, lsn);
            if (!record.body) {
                news_put(pg, (struct news){.kind = NEWS_DOWN, .link = pg->link});
                nodes[pg->node].link_dead = true;
                return;
            }
            if (count > OPS)
                abort();
            records[count++] = body_keep(item->shard, lsn, record);
        }
    }
    engine_send(pg->node, statement, records);
}

bool cn_engine_pg_is_node(const char *name)
{
    return name && *name;
}

const char *cn_engine_flaw_text(enum cn_engine_flaw flaw)
{
    (void)flaw;
    return "it is flawed";
}

/* What `cairn cluster status` shows is not simulated. */
int cn_registry_ask(const struct cn_registry *registry, const char *sql, const char *const *values,
                    size_t count, struct cn_buf *text, struct cn_err *err)
{
    (void)registry, (void)sql, (void)values, (void)count, (void)text;
    return cn_err_set(err, CN_ECLOSED, "nothing is asked");
}
