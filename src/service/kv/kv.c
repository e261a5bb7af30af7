/* SPDX-License-Identifier: Apache-2.0 */
#include "service/kv/kv.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "object/alarm.h"
#include "object/node.h"
#include "object/object.h"
#include "service/kv/kvcache.h"
#include "service/wire.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/store.h"

/* Rows that one run of the alarm removes; the rest goes with the next, a second later. */
#define COLLECT_MAX 500
/* Expired rows wait this long, so that many go together. */
#define COLLECT_DELAY_MS 5000

static const char *const schema[] = {
    "CREATE TABLE entries(key BLOB PRIMARY KEY NOT NULL, expires INTEGER, metadata TEXT,"
    " value BLOB, body INTEGER) WITHOUT ROWID;"
    "CREATE INDEX entries_expires ON entries(expires) WHERE expires IS NOT NULL;"
    "CREATE TABLE bodies(id INTEGER PRIMARY KEY, value BLOB NOT NULL);",
};

enum {
    SQL_GET,
    SQL_GET_BODY,
    SQL_FIND_BODY,
    SQL_PUT,
    SQL_PUT_BODY,
    SQL_DELETE,
    SQL_DELETE_BODY,
    SQL_LIST,
    SQL_EXPIRED,
    SQL_NEXT_EXPIRY,
    SQL_COUNT,
};

static const char *const texts[SQL_COUNT] = {
    [SQL_GET] = "SELECT value, body, metadata, expires FROM entries WHERE key = ?1",
    [SQL_GET_BODY] = "SELECT value FROM bodies WHERE id = ?1",
    [SQL_FIND_BODY] = "SELECT body FROM entries WHERE key = ?1",
    [SQL_PUT] = ("INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (key) DO UPDATE SET"
                 " expires = ?2, metadata = ?3, value = ?4, body = ?5"),
    [SQL_PUT_BODY] = "INSERT INTO bodies(value) VALUES (?1)",
    [SQL_DELETE] = "DELETE FROM entries WHERE key = ?1",
    [SQL_DELETE_BODY] = "DELETE FROM bodies WHERE id = ?1",
    [SQL_LIST] = "SELECT key, expires, metadata FROM entries WHERE key >= ?1 ORDER BY key",
    [SQL_EXPIRED] = "SELECT key, body FROM entries WHERE expires <= ?1 LIMIT ?2",
    [SQL_NEXT_EXPIRY] = "SELECT min(expires) FROM entries WHERE expires IS NOT NULL",
};

struct shard {
    struct cn_object *object;
    struct cn_kvcache *cache; /* borrowed */
    uint64_t start_lsn;       /* of its last commit when it started */
    struct cn_service_sql sql;
    int64_t alarm_ms; /* as it is stored; CN_ALARM_NONE: none */
};

/* --- calls ----------------------------------------------------------------------------------- */

static void call_fini(struct cn_service_call *base)
{
    struct cn_kv_call *call = (struct cn_kv_call *)base;
    cn_buf_fini(&call->key);
    cn_buf_fini(&call->after);
    cn_free(call->value);
    cn_buf_fini(&call->metadata);
    cn_buf_fini(&call->names);
}

struct cn_kv_call *cn_kv_list_new(struct cn_namespace *ns, unsigned shard)
{
    CN_ASSERT(shard < CN_KV_SHARDS);
    struct cn_kv_call *call = CN_NEW(struct cn_kv_call);
    char name[16];
    snprintf(name, sizeof(name), "%u", shard);
    cn_service_call_init(&call->base, ns, name, CN_KV_LIST, call_fini);
    return call;
}

struct cn_kv_call *cn_kv_call_new(struct cn_namespace *ns, enum cn_kv_op op, const void *key,
                                  size_t key_size)
{
    uint8_t hash[CN_SIPHASH_SIZE];
    cn_siphash(ns->keys.name, key, key_size, hash);
    struct cn_kv_call *call = cn_kv_list_new(ns, hash[0] % CN_KV_SHARDS);
    call->base.call.op = op;
    cn_buf_append(&call->key, key, key_size);
    return call;
}

static struct cn_kvcache *cache_of(const struct cn_kv_call *call)
{
    return ((struct cn_services *)cn_node_data(call->base.call.ns->node))->kv_cache;
}

#define AGE_S_MAX (365 * 86400ll)

bool cn_kv_cached(struct cn_kv_call *call, struct cn_object_lane *lane, int64_t age_s)
{
    struct cn_namespace *ns = call->base.call.ns;
    struct cn_clock *clock = cn_node_clock(ns->node);
    int64_t now = cn_clock_wall_ms(clock) / 1000;
    bool cached = false;
    if (cn_object_lane_verifies(lane, &call->base.call.key)) {
        cn_kvcache_pass(call);
    } else if (cn_object_lane_serves(lane, &call->base.call.key)) {
        cached = cn_kvcache_get(cache_of(call), call, now);
    } else if (age_s > 0) {
        uint64_t age_ns = (uint64_t)(age_s < AGE_S_MAX ? age_s : AGE_S_MAX) * 1000000000u;
        cached = cn_kvcache_get_far(cache_of(call), call, now, cn_clock_mono_ns(clock), age_ns);
    } else {
        cn_kvcache_pass(call);
    }
    if (cached)
        cn_counter_add(&ns->metrics[lane->index].ops[CN_KV_GET], 1);
    return cached;
}

void cn_kv_writes(const struct cn_kv_call *call)
{
    cn_kvcache_drop(cache_of(call), call);
}

void cn_kv_answered(const struct cn_kv_call *call)
{
    if (call->base.call.op == CN_KV_GET)
        cn_kvcache_keep(cache_of(call), call);
    else if (call->base.call.op != CN_KV_LIST)
        cn_kvcache_drop(cache_of(call), call); /* C6 of service/kv/kvcache.h */
}

/* --- rows ------------------------------------------------------------------------------------ */

static int64_t now_s(struct shard *shard)
{
    return cn_clock_wall_ms(cn_node_clock(shard->object->lane->node)) / 1000;
}

static int statement(struct shard *shard, unsigned which, struct cn_statement **statement,
                     struct cn_err *err)
{
    return cn_service_sql_get(&shard->sql, shard->object->db, which, statement, err);
}

static bool is_expired(struct cn_statement *row, int column, int64_t now)
{
    return cn_statement_column_type(row, column) != CN_SQL_NULL &&
           cn_statement_column_int(row, column) <= now;
}

/* Copies a value; CN_ENOMEM if there is no room for it. */
static int take_value(struct cn_kv_call *call, struct cn_statement *row, struct cn_err *err)
{
    size_t size;
    const void *bytes = cn_statement_column_blob(row, 0, &size);
    call->value = cn_try_alloc(size ? size : 1);
    if (!call->value)
        return cn_err_set(err, CN_ENOMEM, "no memory for a value of %zu bytes", size);
    if (size)
        memcpy(call->value, bytes, size);
    call->value_size = size;
    return 0;
}

static int take_body(struct shard *shard, struct cn_kv_call *call, int64_t body, struct cn_err *err)
{
    struct cn_statement *row;
    int rc = statement(shard, SQL_GET_BODY, &row, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_bind_int(row, 1, body, err);
    if (rc == 0)
        rc = cn_statement_step(row, err);
    if (rc == 0)
        rc = cn_err_set(err, CN_ECORRUPT, "a value is missing");
    else if (rc > 0)
        rc = take_value(call, row, err);
    cn_statement_reset(row);
    return rc;
}

static int get(struct shard *shard, struct cn_kv_call *call, struct cn_err *err)
{
    struct cn_statement *row;
    int rc = statement(shard, SQL_GET, &row, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_bind_blob(row, 1, call->key.data, call->key.size, true, err);
    if (rc == 0)
        rc = cn_statement_step(row, err);
    if (rc <= 0 || is_expired(row, 3, now_s(shard)))
        goto reset;
    rc = cn_statement_column_type(row, 1) == CN_SQL_NULL
             ? take_value(call, row, err)
             : take_body(shard, call, cn_statement_column_int(row, 1), err);
    if (rc < 0)
        goto reset;
    if (cn_statement_column_type(row, 2) != CN_SQL_NULL) {
        size_t size;
        const char *text = cn_statement_column_text(row, 2, &size);
        cn_buf_append(&call->metadata, text, size);
    }
    call->expires_s = cn_statement_column_int(row, 3); /* 0 for NULL */
    call->found = true;
reset:
    cn_statement_reset(row);
    return rc < 0 ? rc : 0;
}

static int delete_body(struct shard *shard, int64_t body, struct cn_err *err)
{
    struct cn_statement *delete;
    int rc = statement(shard, SQL_DELETE_BODY, &delete, err);
    if (rc == 0)
        rc = cn_statement_bind_int(delete, 1, body, err);
    return rc < 0 ? rc : cn_service_sql_run(delete, err);
}

/* Removes the body of a key, if it has one. */
static int drop_body(struct shard *shard, const struct cn_buf *key, struct cn_err *err)
{
    struct cn_statement *row;
    int rc = statement(shard, SQL_FIND_BODY, &row, err);
    if (rc == 0)
        rc = cn_statement_bind_blob(row, 1, key->data, key->size, true, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_step(row, err);
    bool has = rc > 0 && cn_statement_column_type(row, 0) != CN_SQL_NULL;
    int64_t body = has ? cn_statement_column_int(row, 0) : 0;
    cn_statement_reset(row);
    if (rc < 0)
        return rc;
    return has ? delete_body(shard, body, err) : 0;
}

/* Stores a large value and gives its number. */
static int put_body(struct shard *shard, struct cn_kv_call *call, int64_t *body, struct cn_err *err)
{
    struct cn_statement *insert;
    int rc = statement(shard, SQL_PUT_BODY, &insert, err);
    if (rc == 0)
        rc = cn_statement_bind_blob(insert, 1, call->value, call->value_size, true, err);
    if (rc == 0)
        rc = cn_service_sql_run(insert, err);
    if (rc == 0)
        *body = cn_database_last_rowid(shard->object->db);
    return rc;
}

/* The alarm rings no later than needed for a row that expires then. */
static int expect_expiry(struct shard *shard, int64_t expires_s, struct cn_err *err)
{
    int64_t alarm_ms = expires_s * 1000 + COLLECT_DELAY_MS;
    if (shard->alarm_ms != CN_ALARM_NONE && shard->alarm_ms <= alarm_ms)
        return 0;
    int rc = cn_object_alarm_set(shard->object, alarm_ms, err);
    if (rc == 0)
        shard->alarm_ms = alarm_ms;
    return rc;
}

static int put(struct shard *shard, struct cn_kv_call *call, struct cn_err *err)
{
    struct cn_statement *row;
    int64_t body = 0, expires = call->ttl ? now_s(shard) + call->expires_s : call->expires_s;
    bool large = call->value_size > CN_KV_INLINE_MAX;
    int rc = drop_body(shard, &call->key, err);
    if (rc == 0 && large)
        rc = put_body(shard, call, &body, err);
    if (rc == 0)
        rc = statement(shard, SQL_PUT, &row, err);
    if (rc == 0)
        rc = cn_statement_bind_blob(row, 1, call->key.data, call->key.size, true, err);
    if (rc == 0)
        rc = expires ? cn_statement_bind_int(row, 2, expires, err)
                     : cn_statement_bind_null(row, 2, err);
    if (rc == 0)
        rc = call->metadata.data ? cn_statement_bind_text(row, 3, (char *)call->metadata.data,
                                                          call->metadata.size, true, err)
                                 : cn_statement_bind_null(row, 3, err);
    if (rc == 0)
        rc = large ? cn_statement_bind_null(row, 4, err)
                   : cn_statement_bind_blob(row, 4, call->value, call->value_size, true, err);
    if (rc == 0)
        rc = large ? cn_statement_bind_int(row, 5, body, err) : cn_statement_bind_null(row, 5, err);
    if (rc == 0)
        rc = cn_service_sql_run(row, err);
    return rc == 0 && expires ? expect_expiry(shard, expires, err) : rc;
}

static int delete_key(struct shard *shard, const struct cn_buf *key, struct cn_err *err)
{
    struct cn_statement *delete;
    int rc = drop_body(shard, key, err);
    if (rc == 0)
        rc = statement(shard, SQL_DELETE, &delete, err);
    if (rc == 0)
        rc = cn_statement_bind_blob(delete, 1, key->data, key->size, true, err);
    return rc < 0 ? rc : cn_service_sql_run(delete, err);
}

/* --- lists ----------------------------------------------------------------------------------- */

static void append_entry(struct cn_buf *json, struct cn_statement *row)
{
    size_t size;
    if (json->data[json->size - 1] != '[')
        cn_buf_append_byte(json, ',');
    const char *key = cn_statement_column_blob(row, 0, &size);
    cn_buf_append_str(json, "{\"name\":");
    cn_buf_append_json(json, key, size);
    if (cn_statement_column_type(row, 1) != CN_SQL_NULL)
        cn_buf_printf(json, ",\"expiration\":%lld", (long long)cn_statement_column_int(row, 1));
    if (cn_statement_column_type(row, 2) != CN_SQL_NULL) {
        const char *metadata = cn_statement_column_text(row, 2, &size);
        cn_buf_append_str(json, ",\"metadata\":");
        cn_buf_append(json, metadata, size); /* JSON that the face has made */
    }
    cn_buf_append_byte(json, '}');
}

static bool same(const struct cn_buf *buf, const void *bytes, size_t size)
{
    return buf->data && buf->size == size && memcmp(buf->data, bytes, size) == 0;
}

static int list(struct shard *shard, struct cn_kv_call *call, struct cn_err *err)
{
    struct cn_statement *row;
    const struct cn_buf *prefix = &call->key;
    int64_t now = now_s(shard);
    unsigned count = 0;
    int rc = statement(shard, SQL_LIST, &row, err);
    if (rc < 0)
        return rc;
    /* `after` begins with the prefix, so it is the later start of the two. */
    const struct cn_buf *start = call->after.data ? &call->after : prefix;
    rc = cn_statement_bind_blob(row, 1, start->data, start->size, true, err);
    cn_buf_append_byte(&call->names, '[');
    while (rc == 0 && (rc = cn_statement_step(row, err)) > 0) {
        rc = 0;
        size_t size;
        const uint8_t *key = cn_statement_column_blob(row, 0, &size);
        if (size < prefix->size || (prefix->size && memcmp(key, prefix->data, prefix->size) != 0))
            break;
        if (is_expired(row, 1, now) || same(&call->after, key, size))
            continue;
        if (count == call->limit) {
            call->more = true;
            break;
        }
        append_entry(&call->names, row);
        count++;
    }
    cn_buf_append_byte(&call->names, ']');
    cn_statement_reset(row);
    return rc;
}

/* --- expiry ---------------------------------------------------------------------------------- */

static int next_expiry(struct shard *shard, int64_t *expires_s, struct cn_err *err)
{
    struct cn_statement *row;
    int rc = statement(shard, SQL_NEXT_EXPIRY, &row, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_step(row, err);
    *expires_s = rc > 0 ? cn_statement_column_int(row, 0) : 0;
    cn_statement_reset(row);
    return rc < 0 ? rc : 0;
}

/* Removes rows that have expired, up to COLLECT_MAX. */
static int collect(struct shard *shard, struct cn_err *err)
{
    struct cn_buf keys[COLLECT_MAX] = {0};
    size_t count = 0;
    struct cn_statement *row;
    int rc = statement(shard, SQL_EXPIRED, &row, err);
    if (rc == 0)
        rc = cn_statement_bind_int(row, 1, now_s(shard), err);
    if (rc == 0)
        rc = cn_statement_bind_int(row, 2, COLLECT_MAX, err);
    if (rc < 0)
        return rc;
    while (count < COLLECT_MAX && (rc = cn_statement_step(row, err)) > 0) {
        size_t size;
        const void *key = cn_statement_column_blob(row, 0, &size);
        cn_buf_append(&keys[count++], key, size);
    }
    cn_statement_reset(row);
    for (size_t i = 0; i < count; i++) {
        if (rc >= 0)
            rc = delete_key(shard, &keys[i], err);
        cn_buf_fini(&keys[i]);
    }
    return rc < 0 ? rc : 0;
}

static void ring(struct shard *shard, struct cn_call *call)
{
    struct cn_err err;
    int64_t expires_s;
    cn_alarm_begin(shard->object, call->payload);
    shard->alarm_ms = CN_ALARM_NONE;
    int rc = collect(shard, &err);
    if (rc == 0)
        rc = next_expiry(shard, &expires_s, &err);
    if (rc == 0 && expires_s) {
        int64_t soon_s = now_s(shard) + 1;
        rc = expect_expiry(shard, expires_s > soon_s ? expires_s : soon_s, &err);
    }
    if (rc < 0) {
        cn_database_rollback(shard->object->db);
        cn_service_call_fail(call, &err);
        return;
    }
    cn_alarm_succeeded(shard->object);
    cn_call_reply(call, NULL);
}

/* --- the class ------------------------------------------------------------------------------- */

/* 0: none, or not known. */
static uint64_t last_commit(struct cn_object *object)
{
    struct cn_catalog *catalog = cn_store_catalog(object->shard->store);
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1];
    return cn_catalog_find(catalog, &object->key, &entry, name, NULL) == 1 ? entry.lsn : 0;
}

static int create(struct cn_object *object, void *class_data, void **instance, struct cn_err *err)
{
    struct cn_services *services = class_data;
    struct cn_database *db = cn_service_open(object, schema, CN_ARRAY_COUNT(schema), err);
    if (!db)
        return err->code;
    struct shard *shard = CN_NEW(struct shard);
    shard->object = object;
    shard->cache = services->kv_cache;
    shard->start_lsn = last_commit(object);
    cn_kvcache_start(shard->cache, &object->key, shard->start_lsn);
    shard->alarm_ms = cn_database_alarm(db);
    cn_service_sql_init(&shard->sql, texts, SQL_COUNT);
    *instance = shard;
    return 0;
}

static void deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    static int (*const operations[])(struct shard * shard, struct cn_kv_call * call,
                                     struct cn_err * err) = {
        [CN_KV_GET] = get, [CN_KV_PUT] = put, [CN_KV_LIST] = list};
    struct shard *shard = instance;
    if (call->kind == CN_CALL_ALARM) {
        ring(shard, call);
        return;
    }
    struct cn_kv_call *kv = (struct cn_kv_call *)cn_service_request(call);
    struct cn_err err;
    if (kv->base.call.op == CN_KV_PUT || kv->base.call.op == CN_KV_DELETE)
        cn_kvcache_drop(shard->cache, kv); /* before the turn ends: C1 */
    int rc = kv->base.call.op == CN_KV_DELETE ? delete_key(shard, &kv->key, &err)
                                              : operations[kv->base.call.op](shard, kv, &err);
    cn_service_answer(object, call, rc, &err);
}

static void release(struct cn_object *object, void *instance)
{
    (void)object;
    cn_service_sql_release(&((struct shard *)instance)->sql);
}

static void destroy(struct cn_object *object, void *instance)
{
    struct shard *shard = instance;
    uint64_t lsn = object->lsn > shard->start_lsn ? object->lsn : shard->start_lsn;
    /* One that was reset may have been ahead of what stays. */
    cn_kvcache_end(shard->cache, &object->key, cn_object_is_broken(object) ? UINT64_MAX : lsn);
    cn_service_sql_fini(&shard->sql);
    cn_free(shard);
}

/* A row is a key, its metadata and a value, and a little more. */
static const struct cn_database_limits limits = {.value_size = CN_KV_VALUE_MAX + (64 << 10)};

const struct cn_class cn_kv_class = {.create = create,
                                     .deliver = deliver,
                                     .release = release,
                                     .destroy = destroy,
                                     .limits = &limits};

/* --- to other nodes: service/wire.h ---------------------------------------------------------- */

/* Keys and metadata of CN_KV_LIST_MAX fit well; and more than any face takes. */
#define NAMES_MAX (32u << 20)
#define METADATA_MAX 4096

static const struct cn_wire_field asked[] = {
    CN_WIRE_BUF(1, struct cn_kv_call, key, CN_KV_KEY_MAX),
    CN_WIRE_BUF(2, struct cn_kv_call, after, CN_KV_KEY_MAX),
    CN_WIRE_UINT(3, struct cn_kv_call, limit, CN_KV_LIST_MAX),
    CN_WIRE_BYTES(4, struct cn_kv_call, value, value_size, CN_KV_VALUE_MAX),
    CN_WIRE_BUF(5, struct cn_kv_call, metadata, METADATA_MAX),
    CN_WIRE_INT(6, struct cn_kv_call, expires_s),
    CN_WIRE_BOOL(7, struct cn_kv_call, ttl),
    CN_WIRE_END};

static const struct cn_wire_field answered[] = {
    CN_WIRE_BYTES(1, struct cn_kv_call, value, value_size, CN_KV_VALUE_MAX),
    CN_WIRE_BUF(2, struct cn_kv_call, metadata, METADATA_MAX),
    CN_WIRE_INT(3, struct cn_kv_call, expires_s),
    CN_WIRE_BOOL(4, struct cn_kv_call, found),
    CN_WIRE_BUF(5, struct cn_kv_call, names, NAMES_MAX),
    CN_WIRE_BOOL(6, struct cn_kv_call, more),
    CN_WIRE_END};

/* Times are reckoned with. */
static bool check(const struct cn_service_call *base)
{
    const struct cn_kv_call *call = (const struct cn_kv_call *)base;
    return call->expires_s >= 0 && call->expires_s <= CN_KV_TIME_MAX_S &&
           (base->call.op == CN_KV_LIST || call->key.size);
}

static bool check_answer(const struct cn_service_call *base)
{
    const struct cn_kv_call *call = (const struct cn_kv_call *)base;
    return !call->found || (base->call.op == CN_KV_GET && call->value);
}

static void trim(struct cn_service_call *base)
{
    struct cn_kv_call *call = (struct cn_kv_call *)base;
    if (base->call.op == CN_KV_GET)
        return;
    cn_free(call->value);
    call->value = NULL;
    call->value_size = 0;
    call->expires_s = 0;
    cn_buf_fini(&call->metadata);
}

static const struct cn_service_wire wire = {
    .size = sizeof(struct cn_kv_call),
    .ops = 1u << CN_KV_GET | 1u << CN_KV_PUT | 1u << CN_KV_DELETE | 1u << CN_KV_LIST,
    .asked = asked,
    .answered = answered,
    .fini = call_fini,
    .check = check,
    .check_answer = check_answer,
    .trim = trim,
};

/* --- the descriptor -------------------------------------------------------------------------- */

const struct cn_service_def cn_service_kv = {
    .name = "kv",
    .title = "KV",
    .about = "namespaces of keys and values",
    .page = "reference/kv.md",
    .class_ = &cn_kv_class,
    .operations = {"get", "put", "delete", "list"},
    .wire = &wire,
    .config = &cn_kv_config,
    .natives = &cn_kv_natives,
    .face = &cn_kv_face,
    .routes = &cn_kv_routes,
    .command = &cn_kv_command,
    .cache = cn_kv_cache_numbers,
};
