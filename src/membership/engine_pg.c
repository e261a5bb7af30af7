/* SPDX-License-Identifier: Apache-2.0 */
/* membership/engine_pg.c - a link to PostgreSQL and its life.
 *
 *     state       what happens                                       goes on to
 *     CONNECTING  libpq tries the hosts, one after the other         ASKING
 *     ASKING      settings are fixed; flaws and timeline are told    LOOKING, MAKING, SHUT
 *     MAKING      tables or functions are made                       LOOKING
 *     LOOKING     the cluster's row                                  READYING, MAKING, SHUT
 *     READYING    calls are prepared, in the pipeline                UP
 *     UP          statements and answers
 *     SHUT        the link is flawed: told so, and of no use
 *
 * and from each of them to nothing, when it fails or is closed. A link is a struct of its own: what
 * the loop still has of it when it ends (the handle that watches its socket) goes later, by itself.
 *
 * libpq may go to another socket, with the same number, in any step of connecting. So the watch is
 * made anew after each. */
#include "membership/engine_pg.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/hexdigit.h"
#include "base/loop.h"
#include "base/mem.h"
#include "membership/engine_pg_private.h"

enum { PENDING_MAX = 256, PARTS_MAX = 32, OPTIONS_MAX = 64 };
enum {
    TIDY_EVERY = 64
}; /* checkpoints; or appends of a quarter of a slot (D5): whichever is first */

enum link_state { CONNECTING, ASKING, MAKING, LOOKING, READYING, UP, SHUT };

struct watch {
    uv_poll_t poll;
    struct link *link; /* NULL: closed */
};

/* A call that is under way. */
struct pending {
    unsigned call; /* enum cn_engine_kind, or one of ours */
    uint64_t number, from;
    uint32_t shard;
    bool half; /* READ: the tail is there, the trim is not */
};

struct link {
    struct cn_engine_pg *pg;
    uint64_t number;
    enum link_state state;
    PGconn *conn;
    struct watch *watch;
    int watched;    /* events */
    bool warned;    /* G2 */
    bool doomed;    /* has failed, and on_failed() will tell */
    bool made;      /* tables were made on it */
    PGresult *last; /* of a simple query: rows that came, NULL: none yet */
    char warning[300];
    struct cn_engine_pg_info info;
    struct pending pending[PENDING_MAX];
    unsigned first, count;
};

struct cn_engine_pg {
    uv_loop_t *loop;
    const struct cn_pq *pq;
    struct cn_engine_pg_hooks hooks;
    struct link *link; /* NULL: none */
    unsigned links;    /* that were closed: whether one is still the same after a hook */
    unsigned watches;  /* that the loop has */
    bool freed, existing;
    void (*closed)(void *data);
    void *closed_data;
    uv_handle_t *last;    /* a timer: links that are doomed; counted among the watches */
    char *node, *address; /* node: after "cairn " */
    char cluster[CN_ENGINE_PG_ID_SIZE];
    unsigned shard_count, replicas, allow_flaws;
    uint64_t slot_size;
    unsigned checkpoints;      /* since the ring was looked at, */
    uint64_t appended;         /* and bytes */
    PQconninfoOption *options; /* as they were given */
    char *parts[3][PARTS_MAX]; /* host, hostaddr, port of each */
    unsigned part_counts[3];
    unsigned hosts, next_host;
    struct cn_engine_pg_params params;
    struct cn_engine_pg_answer *answer;
};

static const char *const part_names[3] = {"host", "hostaddr", "port"};

const char *cn_engine_flaw_text(enum cn_engine_flaw flaw)
{
    switch (flaw) {
    case CN_ENGINE_NO_STANDBY:
        return "synchronous_standby_names is empty: what was acknowledged is lost with the disk of "
               "its primary";
    case CN_ENGINE_ASYNC:
        return "synchronous_commit is below on: commits are acknowledged before a standby has them";
    case CN_ENGINE_NO_FSYNC:
        return "fsync is off: a power failure loses and damages what was acknowledged";
    case CN_ENGINE_TORN_PAGES:
        return "full_page_writes is off: a power failure may leave pages that are half written";
    case CN_ENGINE_OTHER_MAJOR:
        return "its tables were made by another major version";
    }
    return "unknown";
}

/* --- watching a socket ----------------------------------------------------------------------- */

static void tell_closed(struct cn_engine_pg *pg)
{
    void (*closed)(void *data) = pg->closed;
    void *data = pg->closed_data;
    for (int i = 0; i < 3; i++)
        for (unsigned k = 0; k < pg->part_counts[i]; k++)
            cn_free(pg->parts[i][k]);
    if (pg->options)
        pg->pq->PQconninfoFree(pg->options);
    cn_engine_pg_params_fini(&pg->params);
    cn_buf_fini(&pg->answer->body);
    cn_buf_fini(&pg->answer->records);
    cn_buf_fini(&pg->answer->words);
    cn_free(pg->answer);
    cn_free(pg->node);
    cn_free(pg->address);
    cn_free(pg->last);
    cn_free(pg);
    if (closed)
        closed(data);
}

struct owned_watch {
    struct watch watch;
    struct cn_engine_pg *pg;
};

static void on_watch_close(uv_handle_t *handle)
{
    struct owned_watch *owned = (struct owned_watch *)handle;
    struct cn_engine_pg *pg = owned->pg;
    cn_free(owned);
    if (!--pg->watches && pg->freed)
        tell_closed(pg);
}

static void watch_end(struct link *link)
{
    if (!link->watch)
        return;
    uv_poll_stop(&link->watch->poll);
    link->watch->link = NULL;
    uv_close((uv_handle_t *)&link->watch->poll, on_watch_close);
    link->watch = NULL;
    link->watched = 0;
}

static void on_socket(uv_poll_t *poll, int status, int events);

static int watch_begin(struct link *link)
{
    struct owned_watch *owned = CN_NEW(struct owned_watch);
    int rc = uv_poll_init(link->pg->loop, &owned->watch.poll, link->pg->pq->PQsocket(link->conn));
    if (rc < 0) {
        cn_free(owned);
        return rc;
    }
    owned->watch.link = link;
    owned->pg = link->pg;
    link->pg->watches++;
    link->watch = &owned->watch;
    return 0;
}

/* --- ends ------------------------------------------------------------------------------------ */

static void link_close(struct cn_engine_pg *pg)
{
    struct link *link = pg->link;
    if (!link)
        return;
    pg->link = NULL;
    pg->links++;
    watch_end(link);
    pg->pq->PQclear(link->last);
    if (link->conn)
        pg->pq->PQfinish(link->conn);
    cn_free(link);
}

static bool host_is(const struct cn_engine_pg *pg, unsigned at, const char *host, const char *port)
{
    int names = pg->part_counts[0] ? 0 : 1; /* of hosts, or their addresses */
    if (pg->part_counts[2] == pg->hosts && (!port || strcmp(pg->parts[2][at], port) != 0))
        return false;
    return host && pg->part_counts[names] == pg->hosts && !strcmp(pg->parts[names][at], host);
}

/* The next link begins with the host after the one that this one is at: that did not answer, or is
 * of no use any more. Hosts before it were tried, and said so. */
static void pass_over(struct link *link)
{
    struct cn_engine_pg *pg = link->pg;
    const char *host = pg->pq->PQhost(link->conn), *port = pg->pq->PQport(link->conn);
    unsigned i = 0;
    while (i < pg->hosts && !host_is(pg, (pg->next_host + i) % pg->hosts, host, port))
        i++;
    if (pg->hosts > 1)
        pg->next_host = (pg->next_host + (i < pg->hosts ? i : 0) + 1) % pg->hosts;
}

/* G5. */
static void link_fail(struct link *link, const char *why)
{
    struct cn_engine_pg *pg = link->pg;
    uint64_t number = link->number;
    char text[CN_ERR_TEXT_MAX];
    snprintf(text, sizeof(text), "%s", why && *why ? why : "the connection is lost");
    size_t length = strlen(text);
    while (length && text[length - 1] == '\n')
        text[--length] = 0;
    pass_over(link);
    link_close(pg);
    pg->hooks.down(pg->hooks.data, number, text);
}

static void link_lost(struct link *link)
{
    link_fail(link, link->pg->pq->PQerrorMessage(link->conn));
}

/* --- sending --------------------------------------------------------------------------------- */

static bool watch_for(struct link *link, int events)
{
    if (!link->watch && watch_begin(link) < 0)
        return false;
    if (events == link->watched)
        return true;
    link->watched = events;
    return uv_poll_start(&link->watch->poll, events, on_socket) == 0;
}

static bool flush(struct link *link)
{
    int left = link->pg->pq->PQflush(link->conn);
    return left >= 0 && watch_for(link, left ? UV_READABLE | UV_WRITABLE : UV_READABLE);
}

/* From the loop. False: the link has failed. */
static bool flush_or_fail(struct link *link)
{
    if (flush(link))
        return true;
    link_lost(link);
    return false;
}

static void on_failed(uv_timer_t *timer)
{
    struct cn_engine_pg *pg = timer->data;
    if (pg->link && pg->link->doomed)
        link_fail(pg->link, pg->link->warning);
}

/* G6: the link is of no use, and is told so by the loop. */
static void link_doom(struct link *link, const char *why)
{
    snprintf(link->warning, sizeof(link->warning), "%s", why);
    link->doomed = true;
    watch_end(link);
    uv_timer_start((uv_timer_t *)link->pg->last, on_failed, 0, 0);
}

static bool call(struct link *link, const struct cn_engine_statement *statement)
{
    struct cn_engine_pg *pg = link->pg;
    struct cn_engine_pg_params *params = &pg->params;
    cn_engine_pg_encode(params, statement, &pg->hooks);
    if (params->lacking)
        return false;
    return pg->pq->PQsendQueryPrepared(link->conn, cn_engine_pg_calls[statement->kind].name,
                                       params->count, params->values, params->lengths,
                                       params->formats, statement->kind == CN_ENGINE_READ) == 1;
}

static bool link_send(struct link *link, const struct cn_engine_statement *statement)
{
    bool sent = call(link, statement);
    if (sent && statement->kind == CN_ENGINE_READ) {
        struct cn_engine_statement trim = *statement;
        trim.kind = (enum cn_engine_kind)CN_ENGINE_PG_TRIM;
        sent = call(link, &trim);
    }
    if (!sent || !link->pg->pq->PQpipelineSync(link->conn))
        return false;
    if (statement->kind == CN_ENGINE_APPEND)
        link->pg->appended += link->pg->params.bodies.size;
    struct pending *pending = &link->pending[(link->first + link->count++) % PENDING_MAX];
    *pending = (struct pending){.call = statement->kind, .number = statement->number};
    if (statement->count) {
        pending->shard = statement->items[0].shard;
        pending->from = statement->items[0].from;
    }
    return true;
}

void cn_engine_pg_send(struct cn_engine_pg *pg, const struct cn_engine_statement *statement)
{
    cn_loop_assert_owner(pg->loop);
    struct link *link = pg->link;
    if (!link || link->state != UP || link->doomed || link->number != statement->link)
        return;
    if (link->count == PENDING_MAX)
        link_doom(link, "too many statements are under way");
    else if (!link_send(link, statement) || !flush(link))
        link_doom(link, pg->params.lacking ? "a record that is to be appended is not there"
                                           : pg->pq->PQerrorMessage(link->conn));
}

void cn_engine_pg_ask(struct cn_engine_pg *pg, uint64_t number, const char *sql,
                      const char *const *values, size_t count)
{
    cn_loop_assert_owner(pg->loop);
    struct link *link = pg->link;
    if (!link || link->state != UP || link->doomed || link->number != number)
        return;
    CN_ASSERT(link->count < PENDING_MAX); /* who asks waits for the answer */
    struct cn_buf text = {0};
    cn_buf_printf(&text, "SELECT (%s), " CN_ENGINE_PG_FLAWS, sql);
    bool sent = pg->pq->PQsendQueryParams(link->conn, cn_buf_text(&text), (int)count, NULL, values,
                                          NULL, NULL, 0) == 1 &&
                pg->pq->PQpipelineSync(link->conn);
    cn_buf_fini(&text);
    link->pending[(link->first + link->count++) % PENDING_MAX] =
        (struct pending){.call = CN_ENGINE_PG_ASK};
    if (!sent || !flush(link))
        link_doom(link, pg->pq->PQerrorMessage(link->conn));
}

/* --- the first words of a link --------------------------------------------------------------- */

static bool ask(struct link *link, enum link_state state, const char *sql)
{
    link->state = state;
    if (link->pg->pq->PQsendQuery(link->conn, sql) != 1) {
        link_lost(link);
        return false;
    }
    return flush_or_fail(link);
}

static const char asking[] =
    "SET client_min_messages = warning; SET statement_timeout = 0; SET lock_timeout = 0; "
    "SET idle_in_transaction_session_timeout = 0; SET search_path = pg_catalog; "
    "SET jit = off; " /* compiling a question for people takes seconds, and no other gains by it */
    "SET default_transaction_isolation = 'read committed'; LISTEN cairn; "
    /* Else an APPEND of few rows is planned each time: a list of unknown length is taken for ten
     * rows, and a plan for the one that is there seems worth the planning. That is 85 us. */
    "SET plan_cache_mode = force_generic_plan; "
    /* G3: a new value in the server's configuration does not come to this session any more. */
    "SELECT set_config('synchronous_commit', current_setting('synchronous_commit'), false); "
    "SELECT " CN_ENGINE_PG_FLAWS
    ", ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint, "
    "to_regclass('cairn.cluster') IS NOT NULL";

static const char looking[] =
    "SELECT id::text, major, minor, shards, replicas, secret FROM cairn.cluster";

static void link_up(struct link *link, enum link_state state)
{
    struct cn_engine_pg *pg = link->pg;
    link->state = state;
    if (state == UP)
        memcpy(pg->cluster, link->info.cluster, sizeof(pg->cluster));
    struct cn_engine_pg_info info = link->info;
    pg->hooks.up(pg->hooks.data, link->number, &info);
}

/* --- making tables --------------------------------------------------------------------------- */

static void script_append(struct cn_buf *sql, const char *script, const struct cn_engine_pg *pg)
{
    const struct {
        const char *name;
        unsigned value;
    } numbers[] = {{"$REPLICASMAX", CN_CLUSTER_REPLICAS_MAX},
                   {"$REPLICAS", pg->replicas},
                   {"$SHARDS", pg->shard_count},
                   {"$MAJOR", CN_ENGINE_PG_MAJOR},
                   {"$MINOR", CN_ENGINE_PG_MINOR}};
    while (*script) {
        size_t i = 0;
        while (i < CN_ARRAY_COUNT(numbers) &&
               strncmp(script, numbers[i].name, strlen(numbers[i].name)) != 0)
            i++;
        if (i == CN_ARRAY_COUNT(numbers)) {
            cn_buf_append_byte(sql, (uint8_t)*script++);
            continue;
        }
        cn_buf_printf(sql, "%u", numbers[i].value);
        script += strlen(numbers[i].name);
    }
}

static void make(struct link *link, bool tables)
{
    struct cn_buf sql = {0};
    if (tables && *link->pg->cluster) { /* G4 */
        link_fail(link, "the database has no tables of a cluster, and this node is of one: is it "
                        "the right database?");
        return;
    }
    if (link->pg->existing) {
        link_fail(link, tables ? "the database has no tables of a cluster"
                               : "the tables of the cluster are of an older version: nodes that "
                                 "are started make them anew");
        return;
    }
    if (link->made) {
        link_fail(link, "the tables of the cluster were made and are not there");
        return;
    }
    link->made = true;
    if (tables)
        script_append(&sql, cn_engine_pg_schema, link->pg);
    else
        cn_buf_append_str(&sql, "BEGIN; SELECT pg_advisory_xact_lock(4847251);");
    script_append(&sql, cn_engine_pg_functions, link->pg);
    script_append(&sql, cn_engine_pg_depot, link->pg);
    script_append(&sql, cn_engine_pg_end, link->pg);
    ask(link, MAKING, cn_buf_text(&sql));
    cn_buf_fini(&sql);
}

static void prepare(struct link *link)
{
    const struct cn_pq *pq = link->pg->pq;
    link->state = READYING;
    bool sent = pq->PQenterPipelineMode(link->conn) == 1;
    for (size_t i = 0; i < CN_ENGINE_PG_CALLS && sent; i++)
        sent = pq->PQsendPrepare(link->conn, cn_engine_pg_calls[i].name, cn_engine_pg_calls[i].sql,
                                 0, NULL) == 1;
    if (!sent || !pq->PQpipelineSync(link->conn))
        link_lost(link);
    else
        flush_or_fail(link);
}

static uint64_t result_number(struct link *link, const PGresult *result, int column)
{
    return strtoull(link->pg->pq->PQgetvalue(result, 0, column), NULL, 10);
}

static void asked(struct link *link, const PGresult *result)
{
    const struct cn_pq *pq = link->pg->pq;
    link->info.link.flaws = (unsigned)result_number(link, result, 0);
    link->info.link.timeline = result_number(link, result, 1);
    if (link->info.link.flaws & ~link->pg->allow_flaws)
        link_up(link, SHUT); /* no table is made in what would lose it */
    else if (*pq->PQgetvalue(result, 0, 2) == 't')
        ask(link, LOOKING, looking);
    else
        make(link, true);
}

/* Hexadecimal digits, two for each byte. */
static bool secret_read(uint8_t secret[CN_ENGINE_PG_SECRET_SIZE], const char *text)
{
    if (strlen(text) != 2 * CN_ENGINE_PG_SECRET_SIZE)
        return false;
    for (size_t i = 0; i < CN_ENGINE_PG_SECRET_SIZE; i++) {
        int high = cn_hexdigit_value((unsigned char)text[2 * i]),
            low = cn_hexdigit_value((unsigned char)text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        secret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static void looked(struct link *link, const PGresult *result)
{
    struct cn_engine_pg *pg = link->pg;
    struct cn_engine_pg_info *info = &link->info;
    snprintf(info->cluster, sizeof(info->cluster), "%s", pg->pq->PQgetvalue(result, 0, 0));
    info->shard_count = (unsigned)result_number(link, result, 3);
    info->replicas = (unsigned)result_number(link, result, 4);
    bool secret = secret_read(info->secret, pg->pq->PQgetvalue(result, 0, 5));
    if (*pg->cluster && strcmp(pg->cluster, info->cluster) != 0) {
        link_fail(link, "the database is of another cluster than this node");
    } else if (result_number(link, result, 1) != CN_ENGINE_PG_MAJOR) {
        info->link.flaws |= CN_ENGINE_OTHER_MAJOR;
        link_up(link, SHUT);
    } else if (result_number(link, result, 2) < CN_ENGINE_PG_MINOR) {
        make(link, false);
    } else if (!info->shard_count || info->shard_count > CN_CLUSTER_SHARDS_MAX) {
        link_fail(link, "the cluster has a number of shards that this version does not know");
    } else if (!secret) {
        link_fail(link, "the cluster's secret is none");
    } else {
        prepare(link);
    }
}

/* What was asked in simple words is answered: `rows` is NULL if nothing was. */
static void simple_done(struct link *link, const PGresult *rows)
{
    if (link->warned)
        link_fail(link, link->warning); /* G2 */
    else if (link->state == MAKING)
        ask(link, LOOKING, looking);
    else if (!rows || link->pg->pq->PQntuples(rows) != 1)
        link_fail(link, "the engine does not tell what it was asked");
    else if (link->state == ASKING)
        asked(link, rows);
    else
        looked(link, rows);
}

/* The last of the results that has rows counts. */
static void simple_results(struct link *link)
{
    const struct cn_pq *pq = link->pg->pq;
    while (!pq->PQisBusy(link->conn)) {
        PGresult *result = pq->PQgetResult(link->conn);
        if (!result) {
            PGresult *rows = link->last;
            link->last = NULL;
            simple_done(link, rows);
            pq->PQclear(rows);
            return;
        }
        ExecStatusType status = pq->PQresultStatus(result);
        if (status == PGRES_TUPLES_OK) {
            pq->PQclear(link->last);
            link->last = result;
            continue;
        }
        if (status != PGRES_COMMAND_OK)
            link_fail(link, pq->PQresultErrorMessage(result));
        pq->PQclear(result);
        if (status != PGRES_COMMAND_OK)
            return;
    }
}

/* --- answers --------------------------------------------------------------------------------- */

/* Now and then the ring is asked to go on: by who writes and by who cuts. */
static void tidy(struct link *link)
{
    struct cn_engine_pg *pg = link->pg;
    struct cn_engine_statement statement = {.kind = (enum cn_engine_kind)CN_ENGINE_PG_TIDY,
                                            .version = pg->slot_size};
    bool due = pg->checkpoints >= TIDY_EVERY || pg->appended >= pg->slot_size / 4;
    if (!due || link->count == PENDING_MAX)
        return;
    pg->checkpoints = 0;
    pg->appended = 0;
    if (!link_send(link, &statement))
        link_lost(link);
    else
        flush_or_fail(link);
}

/* G1: the transaction is over. */
static void answered(struct link *link)
{
    struct cn_engine_pg *pg = link->pg;
    struct pending pending = link->pending[link->first];
    struct cn_engine_pg_answer *answer = pg->answer;
    link->first = (link->first + 1) % PENDING_MAX;
    link->count--;
    if (pending.call == CN_ENGINE_PG_TIDY)
        return;
    if (answer->flaws & ~pg->allow_flaws) { /* G3 */
        link_fail(link, "the engine has stopped to wait for its standby, or to sync");
        return;
    }
    if (pending.call == CN_ENGINE_PG_ASK) {
        pg->hooks.told(pg->hooks.data, answer->told ? cn_buf_text(&answer->words) : NULL);
        return;
    }
    answer->a.items = answer->items;
    bool read = pending.call == CN_ENGINE_READ;
    unsigned links = pg->links;
    if (answer->told_nodes && pending.call == CN_ENGINE_BEAT && pg->hooks.nodes)
        pg->hooks.nodes(pg->hooks.data, answer->nodes, answer->node_count);
    pg->hooks.answer(pg->hooks.data, &answer->a,
                     read ? (const struct cn_engine_record *)answer->records.data : NULL,
                     read ? answer->record_count : 0);
    pg->checkpoints += pending.call == CN_ENGINE_CHECKPOINT;
    if (pg->links == links && !link->doomed &&
        (pending.call == CN_ENGINE_CHECKPOINT || pending.call == CN_ENGINE_APPEND))
        tidy(link);
}

static void answer_begin(struct link *link, const struct pending *pending)
{
    struct cn_engine_pg_answer *answer = link->pg->answer;
    answer->a = (struct cn_engine_answer){.kind = (enum cn_engine_kind)pending->call,
                                          .link = link->number,
                                          .number = pending->number};
    answer->flaws = 0;
    answer->items[0] = (struct cn_engine_item){.shard = pending->shard};
    answer->a.count = pending->call == CN_ENGINE_READ || pending->call == CN_ENGINE_MOVE ||
                      pending->call == CN_ENGINE_ADD || pending->call == CN_ENGINE_DROP ||
                      pending->call == CN_ENGINE_ADOPT; /* E6 */
}

/* A text and the flaws. */
static int take_text(struct link *link, const PGresult *result, struct cn_err *err)
{
    const struct cn_pq *pq = link->pg->pq;
    struct cn_engine_pg_answer *answer = link->pg->answer;
    if (pq->PQntuples(result) != 1 || pq->PQnfields(result) != 2)
        return cn_err_set(err, CN_EPROTOCOL, "the engine does not tell what it was asked");
    answer->flaws = (unsigned)strtoul(pq->PQgetvalue(result, 0, 1), NULL, 10);
    answer->told = !pq->PQgetisnull(result, 0, 0);
    cn_buf_clear(&answer->words);
    cn_buf_append_str(&answer->words, pq->PQgetvalue(result, 0, 0));
    return 0;
}

/* Of the oldest call. Negative: it makes no sense. */
static int take_rows(struct link *link, const PGresult *result, struct cn_err *err)
{
    struct cn_engine_pg *pg = link->pg;
    struct pending *pending = &link->pending[link->first];
    if (pending->call == CN_ENGINE_PG_ASK)
        return take_text(link, result, err);
    if (pending->half)
        return cn_engine_pg_decode_trim(pg->pq, result, pg->answer, err);
    answer_begin(link, pending);
    if (pending->call == CN_ENGINE_PG_TIDY)
        return 0;
    if (pending->call != CN_ENGINE_READ)
        return cn_engine_pg_decode(pg->pq, result, pg->answer, link->info.shard_count, err);
    pending->half = true;
    return cn_engine_pg_decode_tail(pg->pq, result, pending->from, pg->answer, err);
}

static void pipeline_result(struct link *link, const PGresult *result)
{
    struct cn_err err = {0};
    switch (link->pg->pq->PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
        if (!link->count || take_rows(link, result, &err) < 0)
            link_fail(link, err.text);
        break;
    case PGRES_COMMAND_OK: /* prepared */
        break;
    case PGRES_PIPELINE_SYNC:
        if (link->warned)
            link_fail(link, link->warning); /* G2 */
        else if (link->state == READYING)
            link_up(link, UP);
        else if (link->count)
            answered(link);
        break;
    default:
        link_fail(link, link->pg->pq->PQresultErrorMessage(result));
        break;
    }
}

static void pipeline_results(struct link *link)
{
    struct cn_engine_pg *pg = link->pg;
    bool nothing = false; /* between two calls; twice: there is no more */
    unsigned links = pg->links;
    while (pg->links == links && !link->doomed && !pg->pq->PQisBusy(link->conn)) {
        PGresult *result = pg->pq->PQgetResult(link->conn);
        if (!result && nothing)
            return;
        nothing = !result;
        if (result)
            pipeline_result(link, result);
        pg->pq->PQclear(result);
    }
}

/* What is no wish is a hint. */
static void take_wish(struct cn_engine_pg *pg, const char *text)
{
    const char move[] = "move ";
    char *node;
    if (!pg->hooks.wish || strncmp(text, move, sizeof(move) - 1) != 0)
        return;
    unsigned long shard = strtoul(text + sizeof(move) - 1, &node, 10);
    if (*node == ' ' && cn_engine_pg_is_node(node + 1) && shard < CN_CLUSTER_SHARDS_MAX)
        pg->hooks.wish(pg->hooks.data, (uint32_t)shard, node + 1);
}

static void take_hints(struct link *link)
{
    struct cn_engine_pg *pg = link->pg;
    unsigned links = pg->links;
    bool any = false;
    for (PGnotify *hint; pg->links == links && (hint = pg->pq->PQnotifies(link->conn));
         any = true) {
        if (link->state == UP)
            take_wish(pg, hint->extra);
        pg->pq->PQfreemem(hint);
    }
    if (any && pg->links == links && link->state == UP)
        pg->hooks.hint(pg->hooks.data);
}

static void on_readable(struct link *link)
{
    struct cn_engine_pg *pg = link->pg;
    unsigned links = pg->links;
    if (!pg->pq->PQconsumeInput(link->conn)) {
        link_lost(link);
        return;
    }
    if (link->state < READYING)
        simple_results(link);
    else
        pipeline_results(link);
    if (pg->links == links && !link->doomed)
        take_hints(link);
    if (pg->links == links && !link->doomed)
        flush_or_fail(link);
}

/* --- connecting ------------------------------------------------------------------------------ */

static void on_notice(void *data, const PGresult *result)
{
    struct link *link = data;
    const struct cn_pq *pq = link->pg->pq;
    const char *severity = pq->PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (!severity || strcmp(severity, "WARNING") != 0)
        return;
    const char *text = pq->PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    link->warned = true;
    snprintf(link->warning, sizeof(link->warning), "the engine warns: %s", text ? text : "");
}

static void connect_step(struct link *link)
{
    const struct cn_pq *pq = link->pg->pq;
    watch_end(
        link); /* before the number may be another thread's file: this may go to the next host */
    PostgresPollingStatusType status = pq->PQconnectPoll(link->conn);
    if (status == PGRES_POLLING_FAILED) {
        link_lost(link);
    } else if (status != PGRES_POLLING_OK) {
        if (!watch_for(link, status == PGRES_POLLING_READING ? UV_READABLE : UV_WRITABLE))
            link_fail(link, "the connection cannot be watched");
    } else if (pq->PQserverVersion(link->conn) < 130000) {
        link_fail(link, "the engine is older than PostgreSQL 13");
    } else {
        pq->PQsetnonblocking(link->conn, 1);
        ask(link, ASKING, asking);
    }
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct link *link = ((struct watch *)poll)->link;
    if (!link)
        return;
    if (link->state == CONNECTING)
        connect_step(link);
    else if (status < 0)
        link_fail(link, uv_strerror(status));
    else if (events & UV_READABLE)
        on_readable(link);
    else
        flush_or_fail(link);
}

/* A list of hosts, ports or addresses, beginning with the next host; one for all is as it is. */
static char *rotated(const struct cn_engine_pg *pg, int part)
{
    unsigned count = pg->part_counts[part];
    struct cn_buf list = {0};
    for (unsigned i = 0; i < count; i++) {
        unsigned at = count == pg->hosts ? (pg->next_host + i) % count : i;
        cn_buf_printf(&list, "%s%s", i ? "," : "", pg->parts[part][at]);
    }
    return cn_buf_text(&list);
}

static PGconn *connect_start(struct cn_engine_pg *pg)
{
    const char *keys[OPTIONS_MAX + 6], *values[OPTIONS_MAX + 6];
    char *lists[3] = {NULL, NULL, NULL};
    int count = 0;
    for (PQconninfoOption *option = pg->options; option->keyword && count < OPTIONS_MAX; option++) {
        bool part = false;
        for (int i = 0; i < 3; i++)
            part = part || !strcmp(option->keyword, part_names[i]);
        if (part || !option->val || !strcmp(option->keyword, "target_session_attrs") ||
            !strcmp(option->keyword, "application_name"))
            continue;
        keys[count] = option->keyword;
        values[count++] = option->val;
    }
    for (int i = 0; i < 3; i++)
        if (pg->part_counts[i]) {
            lists[i] = rotated(pg, i);
            keys[count] = part_names[i];
            values[count++] = lists[i];
        }
    keys[count] = "target_session_attrs";
    values[count++] = "read-write";
    keys[count] = "application_name";
    values[count++] = pg->node;
    keys[count] = values[count] = NULL;
    PGconn *conn = pg->pq->PQconnectStartParams(keys, values, 0);
    for (int i = 0; i < 3; i++)
        cn_free(lists[i]);
    return conn;
}

static void on_tick_close(uv_handle_t *handle)
{
    struct cn_engine_pg *pg = handle->data;
    if (!--pg->watches && pg->freed)
        tell_closed(pg);
}

void cn_engine_pg_connect(struct cn_engine_pg *pg, uint64_t number)
{
    cn_loop_assert_owner(pg->loop);
    CN_ASSERT(!pg->freed);
    if (pg->link) /* given up */
        pass_over(pg->link);
    link_close(pg);
    struct link *link = CN_NEW(struct link);
    pg->link = link;
    link->pg = pg;
    link->number = number;
    link->conn = connect_start(pg);
    CN_ASSERT(link->conn); /* NULL: no memory */
    pg->pq->PQsetNoticeReceiver(link->conn, on_notice, link);
    if (pg->pq->PQstatus(link->conn) == CONNECTION_BAD || !watch_for(link, UV_WRITABLE))
        link_doom(link, pg->pq->PQerrorMessage(link->conn));
}

/* --- its life -------------------------------------------------------------------------------- */

static int split(struct cn_engine_pg *pg, int part, const char *text, struct cn_err *err)
{
    while (text) {
        const char *comma = strchr(text, ',');
        size_t length = comma ? (size_t)(comma - text) : strlen(text);
        if (pg->part_counts[part] == PARTS_MAX)
            return cn_err_set(err, CN_EINVALID, "more than %d hosts of the engine", PARTS_MAX);
        pg->parts[part][pg->part_counts[part]++] = cn_strndup(text, length);
        text = comma ? comma + 1 : NULL;
    }
    return 0;
}

static int parse(struct cn_engine_pg *pg, const char *conninfo, struct cn_err *err)
{
    char *message = NULL;
    pg->options = pg->pq->PQconninfoParse(conninfo, &message);
    if (!pg->options) {
        /* The message may quote the string, which may have a password. */
        pg->pq->PQfreemem(message);
        return cn_err_set(err, CN_EINVALID,
                          "the connection string of the cluster is none that "
                          "PostgreSQL's client library understands");
    }
    for (PQconninfoOption *option = pg->options; option->keyword; option++) {
        if (!option->val)
            continue;
        for (int i = 0; i < 3; i++)
            if (!strcmp(option->keyword, part_names[i]) && split(pg, i, option->val, err) < 0)
                return CN_EINVALID;
        if (!strcmp(option->keyword, "target_session_attrs") &&
            strcmp(option->val, "read-write") != 0 && strcmp(option->val, "primary") != 0)
            return cn_err_set(err, CN_EINVALID,
                              "target_session_attrs=%s: a cluster needs read-write", option->val);
    }
    pg->hosts = pg->part_counts[0] > pg->part_counts[1] ? pg->part_counts[0] : pg->part_counts[1];
    return 0;
}

bool cn_engine_pg_is_node(const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("-_.", name[i]))
            return false;
    return size > 0 && size <= CN_ENGINE_PG_NODE_MAX;
}

/* What a list of words in the engine can have: no spaces, no commas. */
bool cn_engine_pg_is_address(const char *address)
{
    size_t size = strlen(address);
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)address[i]) && !strchr("-_.:[]%", address[i]))
            return false;
    const char *colon = strrchr(address, ':');
    return colon && colon > address && colon[1] && size <= CN_ENGINE_PG_ADDRESS_MAX;
}

int cn_engine_pg_new(uv_loop_t *loop, const struct cn_engine_pg_config *config,
                     struct cn_engine_pg **out, struct cn_err *err)
{
    cn_loop_assert_owner(loop);
    const struct cn_pq *pq;
    int rc = cn_pq_load(&pq, err);
    if (rc < 0)
        return rc;
    struct cn_engine_pg *pg = CN_NEW(struct cn_engine_pg);
    pg->loop = loop;
    pg->pq = pq;
    pg->hooks = config->hooks;
    pg->shard_count = config->shard_count ? config->shard_count : 256;
    pg->replicas = config->replicas ? config->replicas : 2;
    pg->allow_flaws = config->allow_flaws & ~(unsigned)CN_ENGINE_OTHER_MAJOR;
    pg->existing = config->existing;
    pg->slot_size = config->slot_size ? config->slot_size : 64u << 20;
    pg->node = cn_sprintf("cairn %s", config->node ? config->node : "");
    pg->address = cn_strdup(config->address ? config->address : "");
    pg->params.node = pg->node + strlen("cairn ");
    pg->params.address = pg->address;
    pg->answer = CN_NEW(struct cn_engine_pg_answer);
    if (config->cluster)
        snprintf(pg->cluster, sizeof(pg->cluster), "%s", config->cluster);
    uv_timer_t *timer = CN_NEW(uv_timer_t);
    pg->last = (uv_handle_t *)timer;
    rc = parse(pg, config->conninfo, err);
    if (rc == 0 && *pg->params.node && !cn_engine_pg_is_node(pg->params.node))
        rc = cn_err_set(err, CN_EINVALID,
                        "the name of a node has up to %d letters, digits, '-', '_' and '.'",
                        CN_ENGINE_PG_NODE_MAX);
    if (rc == 0 && *pg->address && !cn_engine_pg_is_address(pg->address))
        rc =
            cn_err_set(err, CN_EINVALID, "\"%.100s\" is no HOST:PORT for other nodes", pg->address);
    if (rc == 0 &&
        (pg->shard_count > CN_CLUSTER_SHARDS_MAX || pg->replicas >= CN_CLUSTER_REPLICAS_MAX))
        rc = cn_err_set(err, CN_EINVALID, "a cluster has up to %d shards and %d replicas",
                        CN_CLUSTER_SHARDS_MAX, CN_CLUSTER_REPLICAS_MAX - 1);
    if (rc < 0) {
        tell_closed(pg);
        return rc;
    }
    uv_timer_init(loop, timer);
    timer->data = pg;
    pg->watches = 1;
    *out = pg;
    return 0;
}

void cn_engine_pg_free(struct cn_engine_pg *pg, void (*closed)(void *data), void *data)
{
    cn_loop_assert_owner(pg->loop);
    CN_ASSERT(!pg->freed);
    link_close(pg);
    pg->freed = true;
    pg->closed = closed;
    pg->closed_data = data;
    uv_close(pg->last, on_tick_close);
}
