/* SPDX-License-Identifier: Apache-2.0 */
/* membership/engine_pg_call.c - statements as parameters of SQL, results as answers.
 *
 * What an item of APPEND has (records of a shard, one after the other) is a run of bytes,
 *
 *     size (4 bytes, little-endian), body      for each record, in the order of their LSNs
 *
 * cut into rows that fit a page, since a row per record costs more of the engine's own log. A batch
 * is there as a whole or not at all, and READ asks for whole items. What comes from the engine is
 * checked like any input: CN_EPROTOCOL ends the link. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "membership/engine_pg_private.h"

#define TEXT(x) #x
#define NUMBER_TEXT(x) TEXT(x)
#define TAIL_ROWS NUMBER_TEXT(CN_ENGINE_PG_TAIL_ROWS)
#define CALL(arguments) "SELECT a.*, " CN_ENGINE_PG_FLAWS " FROM cairn." arguments " a"

const struct cn_engine_pg_call cn_engine_pg_calls[CN_ENGINE_PG_CALLS] = {
    [CN_ENGINE_JOIN] = {"join", CALL("join($1::bigint, $2::bigint, $3::bigint, $4::text, $5::text, "
                                     "$6::bigint[])")},
    [CN_ENGINE_HELLO] = {"hello", CALL("hello($1::bigint, $2::bigint, $3::bigint, $4::bigint)")},
    [CN_ENGINE_BEAT] = {"beat", CALL("beat($1::bigint, $2::bigint, $3::bigint, true, true)")},
    [CN_ENGINE_APPEND] =
        {"append",
         "WITH f AS (UPDATE cairn.session SET took = (head = $3::bigint - 1), "
         "head = CASE WHEN head = $3::bigint - 1 THEN $3::bigint ELSE head END, beat = beat + 1 "
         "WHERE id = $1::bigint AND live AND link = $2::bigint RETURNING took, head), "
         "l AS (INSERT INTO cairn.log(slot, shard, upto, part, after, body) "
         "SELECT c.slot, i.shard, i.upto, i.part, i.after, i.body FROM f, cairn.cluster c, "
         "unnest($4::int[], $5::bigint[], $6::int[], $7::bigint[], $8::bytea[]) "
         "AS i(shard, upto, part, after, body) WHERE f.took) "
         "SELECT true, took, NULL::bigint, head, NULL::text, NULL::bigint, NULL::text, "
         "NULL::text, NULL::text, " CN_ENGINE_PG_FLAWS " FROM f"},
    [CN_ENGINE_FENCE] = {"fence",
                         CALL("fence($1::bigint, $2::bigint, $3::bigint[], $4::bigint[])")},
    [CN_ENGINE_CLAIM] = {"claim",
                         CALL(
                             "claim($1::bigint, $2::bigint, $3::bigint, $4::int[], $5::bigint[])")},
    [CN_ENGINE_READ] = {"read",
                        "SELECT upto, after, body FROM (SELECT upto, part, after, body FROM "
                        "cairn.log WHERE shard = $1::int AND upto > $2::bigint ORDER BY upto "
                        "FETCH FIRST " TAIL_ROWS " ROWS WITH TIES) t ORDER BY upto, part"},
    [CN_ENGINE_MOVE] = {"move",
                        CALL("move($1::bigint, $2::bigint, $3::int, $4::bigint, $5::bigint)")},
    [CN_ENGINE_CHECKPOINT] = {"checkpoint", CALL("checkpoint($1::bigint, $2::bigint, $3::bigint, "
                                                 "$4::int[], $5::bigint[])")},
    [CN_ENGINE_ADD] = {"add", CALL("add($1::bigint, $2::bigint, $3::bigint, $4::int, $5::bigint)")},
    [CN_ENGINE_DROP] = {"drop",
                        CALL("drop($1::bigint, $2::bigint, $3::bigint, $4::int, $5::bigint)")},
    [CN_ENGINE_ADOPT] = {"adopt", CALL("adopt($1::bigint, $2::bigint, $3::bigint, $4::int, "
                                       "$5::bigint, $6::bigint)")},
    [CN_ENGINE_LEAVE] = {"leave", CALL("leave($1::bigint, $2::bigint)")},
    [CN_ENGINE_BURY] = {"bury", CALL("bury($1::bigint, $2::bigint)")},
    [CN_ENGINE_PG_TIDY] = {"tidy", "SELECT cairn.tidy($1::bigint)"},
    [CN_ENGINE_PG_TRIM] =
        {"trim", "SELECT coalesce((SELECT live AND link = $2::bigint FROM "
                 "cairn.session WHERE id = $1::bigint), false), "
                 "(SELECT trim FROM cairn.shard WHERE id = $3::int), "
                 "(SELECT max(upto) FROM cairn.log WHERE shard = $3::int), " CN_ENGINE_PG_FLAWS},
};

/* --- parameters ------------------------------------------------------------------------------ */

static void begin(struct cn_engine_pg_params *params)
{
    CN_ASSERT(params->count < CN_ENGINE_PG_PARAMS_MAX);
    params->offsets[params->count] = params->text.size;
    params->formats[params->count] = 0;
    params->lengths[params->count] = 0;
}

static void end(struct cn_engine_pg_params *params)
{
    cn_buf_append_byte(&params->text, 0);
    params->count++;
}

static void number(struct cn_engine_pg_params *params, uint64_t value)
{
    begin(params);
    cn_buf_printf(&params->text, "%lld", (long long)value); /* bigint has a sign */
    end(params);
}

static void words(struct cn_engine_pg_params *params, const char *value)
{
    begin(params);
    cn_buf_append_str(&params->text, value);
    end(params);
}

enum field { SHARD, EPOCH, FROM, TO, SESSION, BEAT };

static int64_t field_of(const struct cn_engine_item *item, enum field field)
{
    const uint64_t fields[] = {item->shard, item->epoch,   item->from,
                               item->to,    item->session, item->beat};
    int64_t value = (int64_t)fields[field];
    return field == EPOCH && item->fresh ? -value : value; /* cairn.claim() tells them apart */
}

static void list(struct cn_engine_pg_params *params, const struct cn_engine_statement *statement,
                 enum field field)
{
    begin(params);
    for (size_t i = 0; i < statement->count; i++)
        cn_buf_printf(&params->text, "%c%lld", i ? ',' : '{',
                      (long long)field_of(&statement->items[i], field));
    cn_buf_append_str(&params->text, statement->count ? "}" : "{}");
    end(params);
}

static void seen_list(struct cn_engine_pg_params *params, const struct cn_engine_seen *seen)
{
    begin(params);
    cn_buf_printf(&params->text, "{%lld,%lld,%lld,%lld,%lld}", (long long)seen->version,
                  (long long)seen->life, (long long)seen->session, (long long)seen->beat,
                  (long long)seen->decision);
    end(params);
}

static void put_be32(struct cn_buf *buf, uint32_t value)
{
    uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                        (uint8_t)value};
    cn_buf_append(buf, bytes, sizeof(bytes));
}

/* The bytes of an item, as READ finds them. */
static void frame_item(struct cn_engine_pg_params *params, const struct cn_engine_item *item,
                       const struct cn_engine_pg_hooks *hooks)
{
    struct cn_buf *frames = &params->frames;
    cn_buf_clear(frames);
    for (uint64_t lsn = item->from + 1; lsn <= item->to; lsn++) {
        struct cn_engine_record record = hooks->record(hooks->data, item->shard, lsn);
        CN_ASSERT(record.size <= CN_ENGINE_PG_RECORD_MAX);
        if (!record.body) {
            params->lacking = true;
            return;
        }
        uint8_t size[4] = {(uint8_t)record.size, (uint8_t)(record.size >> 8),
                           (uint8_t)(record.size >> 16), (uint8_t)(record.size >> 24)};
        cn_buf_append(frames, size, sizeof(size));
        cn_buf_append(frames, record.body, record.size);
    }
}

/* Four lists of numbers as text, and the bodies as an array in the binary format. */
static void append_lists(struct cn_engine_pg_params *params,
                         const struct cn_engine_statement *statement,
                         const struct cn_engine_pg_hooks *hooks)
{
    struct cn_buf lists[4] = {{0}};
    uint32_t count = 0;
    cn_buf_clear(&params->bodies);
    put_be32(&params->bodies, 1);  /* dimensions */
    put_be32(&params->bodies, 0);  /* no NULLs */
    put_be32(&params->bodies, 17); /* bytea */
    put_be32(&params->bodies, 0);  /* how many: below */
    put_be32(&params->bodies, 1);  /* from 1 on */
    for (size_t i = 0; i < statement->count; i++) {
        const struct cn_engine_item *item = &statement->items[i];
        frame_item(params, item, hooks);
        if (params->lacking)
            break;
        unsigned part = 0;
        for (size_t at = 0; at < params->frames.size; at += CN_ENGINE_PG_CHUNK, part++, count++) {
            size_t size = params->frames.size - at;
            size = size < CN_ENGINE_PG_CHUNK ? size : CN_ENGINE_PG_CHUNK;
            const uint64_t row[4] = {item->shard, item->to, part, item->from};
            for (int k = 0; k < 4; k++)
                cn_buf_printf(&lists[k], "%c%lld", count ? ',' : '{', (long long)row[k]);
            put_be32(&params->bodies, (uint32_t)size);
            cn_buf_append(&params->bodies, params->frames.data + at, size);
        }
    }
    /* What a message may have. */
    CN_ASSERT(params->lacking || (count > 0 && params->bodies.size < 1u << 30));
    for (int k = 0; k < 4; k++)
        params->bodies.data[12 + k] = (uint8_t)(count >> (24 - 8 * k));
    for (int k = 0; k < 4; k++) {
        cn_buf_append_str(&lists[k], "}");
        begin(params);
        cn_buf_append(&params->text, lists[k].data, lists[k].size);
        end(params);
        cn_buf_fini(&lists[k]);
    }
    begin(params);
    params->formats[params->count] = 1;
    params->lengths[params->count++] = (int)params->bodies.size;
}

static void encode_items(struct cn_engine_pg_params *params,
                         const struct cn_engine_statement *statement,
                         const struct cn_engine_pg_hooks *hooks)
{
    const struct cn_engine_item *first = statement->items;
    switch (statement->kind) {
    case CN_ENGINE_HELLO:
        number(params, statement->disk);
        number(params, statement->seen.beat);
        break;
    case CN_ENGINE_BEAT:
        number(params, statement->version);
        break;
    case CN_ENGINE_APPEND:
        number(params, statement->seq);
        append_lists(params, statement, hooks);
        break;
    case CN_ENGINE_FENCE:
        list(params, statement, SESSION);
        list(params, statement, BEAT);
        break;
    case CN_ENGINE_CLAIM:
    case CN_ENGINE_CHECKPOINT:
        number(params, statement->disk);
        list(params, statement, SHARD);
        list(params, statement, statement->kind == CN_ENGINE_CLAIM ? EPOCH : TO);
        break;
    case CN_ENGINE_MOVE:
        number(params, first->shard);
        number(params, first->epoch);
        number(params, first->session);
        break;
    case CN_ENGINE_ADOPT:
        number(params, statement->disk);
        number(params, first->shard);
        number(params, first->epoch);
        number(params, first->to);
        break;
    case CN_ENGINE_ADD:
    case CN_ENGINE_DROP:
        number(params, statement->disk);
        number(params, first->shard);
        number(params, statement->kind == CN_ENGINE_ADD ? first->to : first->disk);
        break;
    default: /* LEAVE */
        break;
    }
}

void cn_engine_pg_encode(struct cn_engine_pg_params *params,
                         const struct cn_engine_statement *statement,
                         const struct cn_engine_pg_hooks *hooks)
{
    params->count = 0;
    params->lacking = false;
    cn_buf_clear(&params->text);
    unsigned kind = statement->kind;
    if (kind == CN_ENGINE_JOIN || kind == CN_ENGINE_BURY) {
        number(params, statement->disk);
        number(params, statement->life);
        if (kind == CN_ENGINE_JOIN) {
            number(params, statement->link);
            words(params, params->node);
            words(params, params->address);
            seen_list(params, &statement->seen);
        }
    } else if (kind == CN_ENGINE_READ) {
        number(params, statement->items[0].shard);
        number(params, statement->items[0].from);
    } else if (kind == CN_ENGINE_PG_TIDY) {
        number(params, statement->version);
    } else {
        number(params, statement->session);
        number(params, statement->link);
        if (kind == CN_ENGINE_PG_TRIM)
            number(params, statement->items[0].shard);
        else
            encode_items(params, statement, hooks);
    }
    for (int i = 0; i < params->count; i++)
        params->values[i] =
            (const char *)(params->formats[i] ? params->bodies.data
                                              : params->text.data + params->offsets[i]);
}

void cn_engine_pg_params_fini(struct cn_engine_pg_params *params)
{
    cn_buf_fini(&params->text);
    cn_buf_fini(&params->bodies);
    cn_buf_fini(&params->frames);
}

/* --- results --------------------------------------------------------------------------------- */

static int nonsense(struct cn_err *err, const char *what)
{
    return cn_err_set(err, CN_EPROTOCOL, "the engine's answer makes no sense: %s", what);
}

/* The number at *text, which goes on behind it and one separator. */
static bool take_number(const char **text, uint64_t *value)
{
    char *rest;
    errno = 0;
    long long number_here = strtoll(*text, &rest, 10);
    if (rest == *text || errno || (*rest && *rest != ' ' && *rest != ','))
        return false;
    *value = (uint64_t)number_here;
    *text = *rest ? rest + 1 : rest;
    return true;
}

static bool take_numbers(const char **text, uint64_t *values, int count)
{
    for (int i = 0; i < count; i++)
        if (!take_number(text, &values[i]))
            return false;
    return true;
}

enum column {
    LIVE,
    DONE,
    ANSWER_SESSION,
    HEAD,
    ITEMS,
    VERSION,
    SESSIONS,
    SHARDS,
    NODES,
    FLAWS,
    COLUMNS
};

static bool column_number(const struct cn_pq *pq, const PGresult *result, int column,
                          uint64_t *value)
{
    if (pq->PQgetisnull(result, 0, column))
        return true; /* stays as it is */
    const char *text = pq->PQgetvalue(result, 0, column);
    return take_number(&text, value) && !*text;
}

static const char *column_text(const struct cn_pq *pq, const PGresult *result, int column)
{
    return pq->PQgetisnull(result, 0, column) ? NULL : pq->PQgetvalue(result, 0, column);
}

static bool decode_items(struct cn_engine_pg_answer *answer, const char *text)
{
    answer->a.count = 0;
    while (*text) {
        uint64_t values[2];
        if (answer->a.count == CN_ENGINE_ITEMS_MAX || !take_numbers(&text, values, 2) ||
            values[0] >= CN_CLUSTER_SHARDS_MAX)
            return false;
        answer->items[answer->a.count++] =
            (struct cn_engine_item){.shard = (uint32_t)values[0], .epoch = values[1]};
    }
    return true;
}

/* What BEAT tells besides: "0 session" of a node that does not serve yet (C12), with every answer;
 * "1 shard" of one that is `restored` (C16), with the map. Behind sessions and shards, which both
 * are put into. */
static bool decode_marks(struct cn_engine_pg_answer *answer, const char *text, unsigned total)
{
    while (*text) {
        uint64_t values[2];
        if (!take_numbers(&text, values, 2) || values[0] > 1)
            return false;
        if (values[0] == 1) {
            if (values[1] >= total || !answer->view.shards)
                return false;
            answer->shards[values[1]].restored = true;
            continue;
        }
        for (size_t i = 0; i < answer->view.session_count; i++)
            if (answer->sessions[i].id == values[1])
                answer->sessions[i].shut = true;
    }
    return true;
}

/* What JOIN and HELLO tell besides: whether it knew less, and its decision or the beat. */
static bool decode_seen(struct cn_engine_answer *a, const char *text)
{
    uint64_t values[2];
    if (!take_numbers(&text, values, 2) || *text)
        return false;
    a->less = values[0] != 0;
    *(a->kind == CN_ENGINE_JOIN ? &a->decision : &a->beat) = values[1];
    return true;
}

static bool decode_items_of(struct cn_engine_pg_answer *answer, const char *text, unsigned total)
{
    if (answer->a.kind == CN_ENGINE_JOIN || answer->a.kind == CN_ENGINE_HELLO)
        return decode_seen(&answer->a, text);
    if (answer->a.kind == CN_ENGINE_BEAT)
        return decode_marks(answer, text, total);
    return decode_items(answer, text);
}

/* What is missing there would be taken for the better case: that it knows all (C15), that no shard
 * is restored (C16). */
static bool tells_items(const struct cn_engine_answer *a, bool map)
{
    return a->kind == CN_ENGINE_JOIN || a->kind == CN_ENGINE_HELLO ||
           (a->kind == CN_ENGINE_BEAT && map);
}

/* More nodes than CN_CLUSTER_NODES_MAX are cut, as the member does. */
static bool decode_sessions(struct cn_engine_pg_answer *answer, const char *text)
{
    answer->view.session_count = 0;
    while (*text && answer->view.session_count < CN_CLUSTER_NODES_MAX) {
        uint64_t values[4];
        if (!take_numbers(&text, values, 4))
            return false;
        answer->sessions[answer->view.session_count++] =
            (struct cn_engine_session){values[0], values[1], values[2], values[3] != 0, false};
    }
    answer->view.sessions = answer->sessions;
    return true;
}

static bool decode_shards(struct cn_engine_pg_answer *answer, const char *text, unsigned total)
{
    for (unsigned i = 0; i < total; i++) {
        struct cn_engine_shard *shard = &answer->shards[i];
        uint64_t values[5];
        if (!take_numbers(&text, values, 5) || values[0] != i ||
            values[4] > CN_CLUSTER_REPLICAS_MAX)
            return false;
        *shard = (struct cn_engine_shard){.owner = values[1],
                                          .epoch = values[2],
                                          .trim = values[3],
                                          .replica_count = (unsigned)values[4]};
        if (!take_numbers(&text, shard->disks, (int)values[4]))
            return false;
        if (!values[4] && *text == ',') /* behind an empty list */
            text++;
    }
    answer->view.shards = answer->shards;
    return !*text;
}

/* A disk, and two words, for each. */
static bool decode_nodes(struct cn_engine_pg_answer *answer, const char *text)
{
    answer->node_count = 0;
    cn_buf_clear(&answer->words);
    cn_buf_append(&answer->words, text, strlen(text) + 1);
    char *at = (char *)answer->words.data;
    while (*at && answer->node_count < CN_CLUSTER_NODES_MAX) {
        struct cn_engine_pg_node *node = &answer->nodes[answer->node_count++];
        const char *rest = at;
        char *space, *comma = strchr(at, ',');
        if (comma)
            *comma = 0;
        if (!take_number(&rest, &node->disk) || !(space = strchr(rest, ' ')))
            return false;
        *space = 0;
        node->node = rest;
        node->address = space + 1;
        at = comma ? comma + 1 : space + 1 + strlen(space + 1);
    }
    return true;
}

int cn_engine_pg_decode(const struct cn_pq *pq, const PGresult *result,
                        struct cn_engine_pg_answer *answer, unsigned shard_count,
                        struct cn_err *err)
{
    struct cn_engine_answer *a = &answer->a;
    answer->view = (struct cn_engine_view){0};
    answer->told_nodes = false;
    if (!pq->PQntuples(result) && a->kind == CN_ENGINE_APPEND)
        return 0; /* of a session that is not live */
    if (pq->PQntuples(result) != 1 || pq->PQnfields(result) != COLUMNS)
        return nonsense(err, "its shape");
    uint64_t flaws = 0;
    a->live = *pq->PQgetvalue(result, 0, LIVE) == 't';
    a->done = *pq->PQgetvalue(result, 0, DONE) == 't';
    if (!column_number(pq, result, ANSWER_SESSION, &a->session) ||
        !column_number(pq, result, HEAD, &a->head) ||
        !column_number(pq, result, VERSION, &answer->view.version) ||
        !column_number(pq, result, FLAWS, &flaws))
        return nonsense(err, "a number");
    answer->flaws = (unsigned)flaws;
    const char *items = column_text(pq, result, ITEMS);
    const char *sessions = column_text(pq, result, SESSIONS);
    const char *shards = column_text(pq, result, SHARDS);
    const char *nodes = column_text(pq, result, NODES);
    if (sessions && !decode_sessions(answer, sessions))
        return nonsense(err, "its sessions");
    if (shards && !decode_shards(answer, shards, shard_count))
        return nonsense(err, "its shards");
    if (!items && tells_items(a, shards != NULL))
        return nonsense(err, "what it leaves out");
    if (items && !decode_items_of(answer, items, shard_count))
        return nonsense(err, "its items");
    answer->told_nodes = nodes != NULL;
    if (nodes && !decode_nodes(answer, nodes))
        return nonsense(err, "its nodes");
    if (a->kind == CN_ENGINE_BEAT && a->live) {
        if (!sessions)
            return nonsense(err, "a map without sessions");
        a->view = &answer->view;
    }
    return 0;
}

/* --- tails ----------------------------------------------------------------------------------- */

static bool row_number(const struct cn_pq *pq, const PGresult *result, int row, int column,
                       uint64_t *value)
{
    if (pq->PQgetlength(result, row, column) != 8)
        return false;
    const uint8_t *bytes = (const uint8_t *)pq->PQgetvalue(result, row, column);
    *value = 0;
    for (int i = 0; i < 8; i++)
        *value = *value << 8 | bytes[i];
    return true;
}

/* The records of one item, whose bytes are at data: those after *last. */
static bool take_records(struct cn_engine_pg_answer *answer, const uint8_t *data, size_t size,
                         uint64_t after, uint64_t upto, uint64_t *last)
{
    size_t at = 0;
    for (uint64_t lsn = after + 1; lsn <= upto; lsn++) {
        if (size - at < 4)
            return false;
        size_t length = (size_t)data[at] | (size_t)data[at + 1] << 8 | (size_t)data[at + 2] << 16 |
                        (size_t)data[at + 3] << 24;
        at += 4;
        if (length > size - at)
            return false;
        struct cn_engine_record record = {data + at, length};
        at += length;
        if (lsn <= *last)
            continue;
        *last = lsn;
        if (!cn_buf_try_append(&answer->records, &record, sizeof(record)))
            return false;
        answer->record_count++;
    }
    return at == size;
}

static bool gather_bodies(const struct cn_pq *pq, const PGresult *result,
                          struct cn_engine_pg_answer *answer)
{
    cn_buf_clear(&answer->body);
    for (int row = 0; row < pq->PQntuples(result); row++)
        if (!cn_buf_try_append(&answer->body, pq->PQgetvalue(result, row, 2),
                               (size_t)pq->PQgetlength(result, row, 2)))
            return false;
    return true;
}

int cn_engine_pg_decode_tail(const struct cn_pq *pq, const PGresult *result, uint64_t from,
                             struct cn_engine_pg_answer *answer, struct cn_err *err)
{
    int rows = pq->PQntuples(result);
    uint64_t last = from;
    cn_buf_clear(&answer->records);
    answer->record_count = 0;
    if (pq->PQnfields(result) != 3)
        return nonsense(err, "the shape of a tail");
    if (!gather_bodies(pq, result, answer))
        return cn_err_set(err, CN_ENOMEM, "no memory for a tail of the log");
    size_t at = 0;
    for (int row = 0; row < rows;) {
        uint64_t upto, after, same;
        if (!row_number(pq, result, row, 0, &upto) || !row_number(pq, result, row, 1, &after))
            return nonsense(err, "a number of a tail");
        size_t size = 0;
        do
            size += (size_t)pq->PQgetlength(result, row++, 2);
        while (row < rows && row_number(pq, result, row, 0, &same) && same == upto);
        if (after > last)
            break; /* what is between is cut: the trim tells */
        if (after >= upto ||
            !take_records(answer, answer->body.data + at, size, after, upto, &last))
            return nonsense(err, "a batch that is not whole");
        at += size;
    }
    answer->items[0].to = last;
    answer->items[0].more = rows >= CN_ENGINE_PG_TAIL_ROWS;
    return 0;
}

int cn_engine_pg_decode_trim(const struct cn_pq *pq, const PGresult *result,
                             struct cn_engine_pg_answer *answer, struct cn_err *err)
{
    uint64_t trim = 0, last = 0, flaws = 0;
    if (pq->PQntuples(result) != 1 || pq->PQnfields(result) != 4 ||
        !column_number(pq, result, 1, &trim) || !column_number(pq, result, 2, &last) ||
        !column_number(pq, result, 3, &flaws))
        return nonsense(err, "a trim");
    answer->a.live = *pq->PQgetvalue(result, 0, 0) == 't';
    answer->a.done = true;
    answer->items[0].from = trim;
    answer->items[0].last = last > trim ? last : trim;
    answer->flaws = (unsigned)flaws;
    return 0;
}
