/* SPDX-License-Identifier: Apache-2.0 */
#include "service/ratelimit/ratelimit.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/wire.h"
#include "store/database.h"

static const char *const schema[] = {
    "CREATE TABLE counter (key BLOB PRIMARY KEY, period INTEGER NOT NULL, number INTEGER NOT NULL,"
    " count INTEGER NOT NULL) WITHOUT ROWID",
};

enum { SQL_LOAD, SQL_SAVE, SQL_EXPIRE, SQL_COUNT };
static const char *const sql_texts[SQL_COUNT] = {
    [SQL_LOAD] = "SELECT key, period, number, count FROM counter",
    [SQL_SAVE] = "INSERT OR REPLACE INTO counter VALUES (?1, ?2, ?3, ?4)",
    [SQL_EXPIRE] = "DELETE FROM counter WHERE number != ?1 / period",
};

struct counter {
    struct cn_list link; /* in limiter->dirty, or alone */
    unsigned period_s;
    int64_t number; /* of the period, since 1970 */
    uint64_t count;
    size_t key_size;
    uint8_t key[]; /* the period and the script's key: one id may be bound with both periods */
};

struct limiter {
    struct cn_object *object;
    struct cn_service_sql sql;
    struct cn_map counters; /* key -> struct counter, owned */
    struct cn_list dirty;   /* of struct counter, changed since the last flush */
    uv_timer_t *timer;
    int64_t swept_s; /* when sweep() last ran */
    bool holding;
    bool full_told;
};

static int64_t now_s(struct limiter *limiter)
{
    return cn_clock_wall_ms(cn_node_clock(limiter->object->lane->node)) / 1000;
}

/* A count is of one period. One of a later period is there when the clock was set back: it says
 * nothing about this one. */
static bool is_of(const struct counter *counter, int64_t now)
{
    return counter->period_s && counter->number == now / counter->period_s;
}

static struct counter *add_counter(struct limiter *limiter, const void *key, size_t size)
{
    struct counter *counter = cn_alloc_zero(sizeof(*counter) + size);
    cn_list_init(&counter->link);
    memcpy(counter->key, key, size);
    counter->key_size = size;
    cn_map_set(&limiter->counters, key, size, counter);
    return counter;
}

/* Takes away what no period needs any more. */
static void sweep(struct limiter *limiter, int64_t now)
{
    struct cn_list over;
    limiter->swept_s = now;
    cn_list_init(&over);
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&limiter->counters, &cursor, &entry)) {
        struct counter *counter = entry->value;
        if (is_of(counter, now))
            continue;
        cn_list_remove(&counter->link);
        cn_list_push_back(&over, &counter->link);
    }
    struct cn_list *node;
    while ((node = cn_list_take_front(&over))) {
        struct counter *counter = CN_CONTAINER_OF(node, struct counter, link);
        cn_map_take(&limiter->counters, counter->key, counter->key_size);
        cn_free(counter);
    }
}

static int save(struct limiter *limiter, const struct counter *counter, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_service_sql_get(&limiter->sql, limiter->object->db, SQL_SAVE, &statement, err);
    if (rc == 0)
        rc = cn_statement_bind_blob(statement, 1, counter->key, counter->key_size, true, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 2, counter->period_s, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 3, counter->number, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 4, (int64_t)counter->count, err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

static int flush(struct limiter *limiter, struct cn_err *err)
{
    if (!cn_object_database(limiter->object, err))
        return err->code;
    int rc = 0;
    struct cn_list *node;
    while (rc == 0 && (node = cn_list_take_front(&limiter->dirty)))
        rc = save(limiter, CN_CONTAINER_OF(node, struct counter, link), err);
    struct cn_statement *statement;
    if (rc == 0)
        rc = cn_service_sql_get(&limiter->sql, limiter->object->db, SQL_EXPIRE, &statement, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 1, now_s(limiter), err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

static void stop_timer(struct limiter *limiter)
{
    uv_timer_stop(limiter->timer);
    if (!limiter->holding)
        return;
    limiter->holding = false;
    if (limiter->object->holds) /* a lane that stops has dropped them all */
        cn_object_unhold(limiter->object);
}

static void on_flush(uv_timer_t *timer)
{
    struct limiter *limiter = timer->data;
    struct cn_object *object = limiter->object;
    struct cn_err err;
    cn_object_enter(object);
    int rc = flush(limiter, &err);
    sweep(limiter, now_s(limiter));
    stop_timer(limiter);
    if (rc < 0)
        cn_object_reset(object, CN_FAULT_RESET, rc, "%s", err.text);
    cn_object_leave(object);
}

static void count(struct limiter *limiter, struct cn_ratelimit_call *call)
{
    int64_t now = now_s(limiter);
    struct counter *counter = cn_map_find(&limiter->counters, call->key.data, call->key.size);
    if (!counter && limiter->counters.count >= CN_RATELIMIT_KEYS_MAX && now != limiter->swept_s)
        sweep(limiter, now); /* once a second: it looks at all of them */
    if (!counter && limiter->counters.count >= CN_RATELIMIT_KEYS_MAX) {
        if (!limiter->full_told)
            cn_warn("rate limit %s: more than %d keys in one period; further ones are not counted",
                    limiter->object->ns->name, CN_RATELIMIT_KEYS_MAX * CN_RATELIMIT_SHARDS);
        limiter->full_told = true;
        call->success = true;
        return;
    }
    if (!counter)
        counter = add_counter(limiter, call->key.data, call->key.size);
    if (!is_of(counter, now)) {
        counter->period_s = call->period_s;
        counter->number = now / call->period_s;
        counter->count = 0;
    }
    call->success = counter->count < call->limit;
    if (!call->success)
        return;
    counter->count++;
    cn_list_remove(&counter->link);
    cn_list_push_back(&limiter->dirty, &counter->link);
    if (limiter->holding)
        return;
    limiter->holding = true;
    cn_object_hold(limiter->object);
    uv_timer_start(limiter->timer, on_flush, CN_RATELIMIT_FLUSH_MS, 0);
}

/* --- the class ------------------------------------------------------------------------------- */

static int load(struct limiter *limiter, struct cn_err *err)
{
    struct cn_statement *statement;
    int64_t now = now_s(limiter);
    int rc = cn_service_sql_get(&limiter->sql, limiter->object->db, SQL_LOAD, &statement, err);
    while (rc == 0 && (rc = cn_statement_step(statement, err)) > 0) {
        size_t size;
        const void *key = cn_statement_column_blob(statement, 0, &size);
        struct counter loaded = {.period_s = (unsigned)cn_statement_column_int(statement, 1),
                                 .number = cn_statement_column_int(statement, 2),
                                 .count = (uint64_t)cn_statement_column_int(statement, 3)};
        rc = 0;
        if (!is_of(&loaded, now) || limiter->counters.count >= CN_RATELIMIT_KEYS_MAX)
            continue;
        struct counter *counter = add_counter(limiter, key, size);
        counter->period_s = loaded.period_s;
        counter->number = loaded.number;
        counter->count = loaded.count;
    }
    if (rc == 0)
        cn_statement_reset(statement);
    return rc;
}

static int limiter_create(struct cn_object *object, void *class_data, void **instance,
                          struct cn_err *err)
{
    (void)class_data;
    if (!cn_service_open(object, schema, CN_ARRAY_COUNT(schema), err))
        return err->code;
    struct limiter *limiter = CN_NEW(struct limiter);
    limiter->object = object;
    cn_map_init(&limiter->counters);
    cn_list_init(&limiter->dirty);
    cn_service_sql_init(&limiter->sql, sql_texts, SQL_COUNT);
    limiter->timer = CN_NEW(uv_timer_t);
    uv_timer_init(object->lane->loop, limiter->timer);
    limiter->timer->data = limiter;
    *instance = limiter;
    return load(limiter, err);
}

static void limiter_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    (void)object;
    count(instance, CN_CONTAINER_OF(cn_service_request(call), struct cn_ratelimit_call, base));
    cn_call_reply(call, NULL);
}

static void limiter_release(struct cn_object *object, void *instance)
{
    (void)object;
    struct limiter *limiter = instance;
    cn_service_sql_release(&limiter->sql);
    stop_timer(limiter);
}

static void on_timer_closed(uv_handle_t *handle)
{
    cn_free(handle);
}

static void limiter_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    struct limiter *limiter = instance;
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&limiter->counters, &cursor, &entry))
        cn_free(entry->value);
    cn_map_fini(&limiter->counters);
    cn_service_sql_fini(&limiter->sql);
    uv_close((uv_handle_t *)limiter->timer, on_timer_closed);
    cn_free(limiter);
}

const struct cn_class cn_ratelimit_class = {
    .create = limiter_create,
    .deliver = limiter_deliver,
    .release = limiter_release,
    .destroy = limiter_destroy,
};

/* --- calls ----------------------------------------------------------------------------------- */

static void fini(struct cn_service_call *base)
{
    cn_buf_fini(&CN_CONTAINER_OF(base, struct cn_ratelimit_call, base)->key);
}

struct cn_ratelimit_call *cn_ratelimit_call_new(struct cn_namespace *ns, const void *key,
                                                size_t key_size, uint64_t limit, unsigned period_s)
{
    struct cn_ratelimit_call *call = CN_NEW(struct cn_ratelimit_call);
    uint8_t hash[CN_SIPHASH_SIZE];
    char shard[8];
    cn_siphash(ns->keys.name, key, key_size, hash);
    snprintf(shard, sizeof(shard), "%u", hash[0] % CN_RATELIMIT_SHARDS);
    cn_service_call_init(&call->base, ns, shard, 0, fini);
    cn_buf_append_byte(&call->key, (uint8_t)period_s);
    cn_buf_append(&call->key, key, key_size);
    call->limit = limit;
    call->period_s = period_s;
    return call;
}

/* --- to other nodes: service/wire.h ---------------------------------------------------------- */

static const struct cn_wire_field asked[] = {
    CN_WIRE_BUF(1, struct cn_ratelimit_call, key, 1 + CN_RATELIMIT_KEY_SIZE_MAX),
    CN_WIRE_UINT(2, struct cn_ratelimit_call, limit, UINT64_MAX),
    CN_WIRE_UINT(3, struct cn_ratelimit_call, period_s, UINT8_MAX), CN_WIRE_END};

static const struct cn_wire_field answered[] = {CN_WIRE_BOOL(1, struct cn_ratelimit_call, success),
                                                CN_WIRE_END};

/* As cn_ratelimit_call_new() makes them. */
static bool check(const struct cn_service_call *base)
{
    const struct cn_ratelimit_call *call = (const struct cn_ratelimit_call *)base;
    return call->period_s && call->key.size && call->key.data[0] == call->period_s;
}

static const struct cn_service_wire wire = {
    .size = sizeof(struct cn_ratelimit_call),
    .ops = 1u << 0,
    .asked = asked,
    .answered = answered,
    .fini = fini,
    .check = check,
};

/* --- the descriptor -------------------------------------------------------------------------- */

const struct cn_service_def cn_service_ratelimit = {
    .name = "ratelimit",
    .title = "Rate limiting",
    .about = "so many calls per key and period",
    .page = "reference/rate-limiting.md",
    .class_ = &cn_ratelimit_class,
    .operations = {"limit"},
    .wire = &wire,
    .config = &cn_ratelimit_config,
    .natives = &cn_ratelimit_natives,
};
