/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/control.c - D1 databases: scripts of SQL, and the moments of their past.
 *
 * A script runs as one transaction. In a server it is a call like a worker's, so it takes its turn
 * among the others and leaves the lane when it is long (service/d1/d1.h); without one the database
 * is opened here. A database that does not exist yet comes into being. */
#include <string.h>
#include <unistd.h>

#include "admin/handler.h"
#include "base/clock.h"
#include "base/mem.h"
#include "object/node.h"
#include "object/secret.h"
#include "object/shard.h"
#include "service/d1/d1.h"
#include "store/history.h"
#include "store/store.h"

#define SCRIPT_NS (600ull * 1000000000)
#define LOOK_US 1000 /* between two looks at whether it is done */

/* The object of the database path[2], which need not exist. */
static int find_key(struct cn_control_call *call, struct cn_object_key *key, struct cn_err *err)
{
    const struct cn_control *control = call->control;
    struct cn_id_keys keys;
    uint8_t secret[CN_SIPHASH_KEY_SIZE];
    char *name = cn_sprintf("$d1/%s", call->path[2]);
    int rc;
    if (control->node) {
        struct cn_namespace *ns;
        rc = cn_node_namespace(control->node, name, &ns, err);
        if (rc == 0) {
            key->namespace_id = ns->id;
            keys = ns->keys;
        }
    } else {
        rc = cn_shards_number(control->shards, name, &key->namespace_id, err);
        if (rc == 0)
            rc = cn_secret_load(control->disk, secret, err);
        if (rc == 0)
            cn_id_keys_init(&keys, secret, key->namespace_id);
    }
    if (rc == 0)
        cn_id_from_name(&keys, CN_JURISDICTION_NONE, CN_D1_OBJECT, strlen(CN_D1_OBJECT), key->id);
    cn_free(name);
    return rc;
}

/* --- in a server ----------------------------------------------------------------------------- */

struct errand {
    struct cn_mail mail;
    struct cn_d1_call *d1;
    struct cn_object_lane *lane; /* of the object; the call is made there */
    uv_sem_t done;
};

static void on_done(struct cn_service_call *base)
{
    struct errand *errand = base->call.envelope.data;
    uv_sem_post(&errand->done);
}

static void deliver_errand(struct cn_mail *mail, void *data)
{
    (void)data;
    struct errand *errand = CN_CONTAINER_OF(mail, struct errand, mail);
    struct cn_object_lane *lane = errand->lane;
    cn_service_call_send(&errand->d1->base, lane, on_done);
    cn_object_lane_step(lane);
}

static int run_online(struct cn_control_call *call, struct cn_d1_call *d1, struct cn_err *err)
{
    struct errand errand = {.mail = {.deliver = deliver_errand},
                            .d1 = d1,
                            .lane = cn_node_owner(call->control->node, &d1->base.call.key)};
    d1->base.call.envelope.data = &errand;
    uv_sem_init(&errand.done, 0);
    int rc = 0;
    if (!cn_mailbox_send(errand.lane->mailbox, &errand.mail)) {
        rc = cn_err_set(err, CN_ECLOSED, "the server is stopping");
    } else {
        while (uv_sem_trywait(&errand.done) != 0) {
            if (call->cancelled && call->cancelled(call))
                atomic_store(&d1->cancelled, true);
            usleep(LOOK_US);
        }
        if (d1->base.call.envelope.err.code) {
            *err = d1->base.call.envelope.err;
            rc = err->code;
        }
    }
    uv_sem_destroy(&errand.done);
    return rc;
}

/* --- without one ----------------------------------------------------------------------------- */

static int run_alone(struct cn_control_call *call, struct cn_d1_call *d1,
                     const struct cn_object_key *key, struct cn_err *err)
{
    struct cn_database_options options = {.limits = cn_d1_limits};
    struct cn_database *db;
    uint64_t lsn = 0, now_ns = cn_clock_mono_ns(cn_clock_system());
    int rc = cn_control_hold(call, key, err);
    if (rc < 0)
        return rc;
    struct cn_store *store = call->shard->store;
    rc = cn_database_open(store, key, &options, &db, err);
    if (rc < 0)
        return rc;
    rc = cn_d1_run(db, d1, now_ns + SCRIPT_NS, err);
    if (rc == 0 && cn_database_in_transaction(db))
        rc = cn_database_set_name(db, CN_D1_OBJECT, strlen(CN_D1_OBJECT), err);
    if (rc == 0)
        rc = cn_database_commit(db, &lsn, err);
    cn_database_close(db);
    return rc == 0 ? cn_store_wait(store, lsn, err) : rc;
}

/* --- scripts --------------------------------------------------------------------------------- */

/* A query of each statement. */
static void add_statements(struct cn_d1_call *d1, const char *sql, size_t size)
{
    while (size > 0) {
        size_t used = cn_sql_first(sql, size);
        if (!cn_sql_blank(sql, used))
            cn_d1_call_query(d1, sql, used);
        sql += used;
        size -= used;
    }
}

/* The line of the script on which a statement begins. */
static size_t line_of(const char *sql, size_t size, int64_t index)
{
    const char *at = sql;
    while (size > 0) {
        size_t used = cn_sql_first(at, size);
        if (!cn_sql_blank(at, used) && index-- == 0)
            break;
        at += used;
        size -= used;
    }
    while (size > 0 && (*at == ' ' || (*at >= '\t' && *at <= '\r'))) {
        at++;
        size--;
    }
    size_t line = 1;
    for (; sql < at; sql++)
        line += *sql == '\n';
    return line;
}

/* {"error","index"} of a statement that failed, as an error with its line; `sql` NULL: it has none.
 */
static int check_failed(const struct cn_buf *json, const char *sql, size_t size, struct cn_err *err)
{
    static const char start[] = "{\"error\":";
    if (json->size < sizeof(start) || memcmp(json->data, start, sizeof(start) - 1) != 0)
        return 0;
    struct cn_json *failed = cn_json_parse((const char *)json->data, json->size, err);
    const char *text = cn_json_text(failed, "error");
    const struct cn_json *index = cn_json_find(failed, "index");
    int rc = cn_err_set(err, CN_ESQL, "%s", text ? text : "the script failed");
    if (sql)
        rc = cn_err_set(err, CN_ESQL, "%s (line %zu)", text ? text : "the script failed",
                        line_of(sql, size, index ? index->integer : 0));
    cn_json_free(failed);
    return rc;
}

/* A call of the database path[2]; NULL with an error. */
static struct cn_d1_call *new_call(struct cn_control_call *call, enum cn_d1_format format,
                                   struct cn_object_key *key, struct cn_namespace *nowhere,
                                   struct cn_err *err)
{
    if (find_key(call, key, err) < 0)
        return NULL;
    *nowhere = (struct cn_namespace){.id = key->namespace_id, .name = ""};
    struct cn_namespace *ns = call->control->node
                                  ? cn_node_namespace_find(call->control->node, key->namespace_id)
                                  : nowhere;
    struct cn_d1_call *d1 = cn_d1_call_new(ns, format);
    d1->trusted = d1->plain = true;
    d1->limit_ns = SCRIPT_NS;
    return d1;
}

/* Runs it, and answers {"results":...}. The call is freed. */
static int run_call(struct cn_control_call *call, struct cn_d1_call *d1,
                    const struct cn_object_key *key, const char *sql, size_t size,
                    struct cn_err *err)
{
    int rc = call->control->node ? run_online(call, d1, err) : run_alone(call, d1, key, err);
    if (rc == 0)
        rc = check_failed(&d1->json, sql, size, err);
    if (rc == 0) {
        cn_buf_append_str(&call->scratch, "{\"results\":");
        cn_buf_append(&call->scratch, d1->json.data, d1->json.size);
        cn_buf_append_byte(&call->scratch, '}');
        rc = cn_control_answer(call, &call->scratch);
    }
    cn_service_call_free(&d1->base);
    return rc;
}

static int add_param(struct cn_d1_call *d1, const struct cn_json *value, struct cn_err *err)
{
    switch (value->kind) {
    case CN_JSON_NULL:
        cn_d1_call_value(d1, CN_SQL_NULL);
        return 0;
    case CN_JSON_BOOL:
        cn_d1_call_number(d1, value->boolean);
        return 0;
    case CN_JSON_INT:
        cn_d1_call_number(d1, (double)value->integer);
        return 0;
    case CN_JSON_NUMBER:
        cn_d1_call_number(d1, value->number);
        return 0;
    case CN_JSON_STRING:
        cn_d1_call_bytes(d1, CN_SQL_TEXT, value->text, value->size);
        return 0;
    default:
        return cn_err_set(err, CN_EINVALID, "a parameter is a text, a number or null");
    }
}

/* One statement with its parameters, or a script without any: {"sql","params"}. */
static int add_query(struct cn_d1_call *d1, const struct cn_json *query, struct cn_err *err)
{
    const struct cn_json *sql = cn_json_find(query, "sql"), *params = cn_json_find(query, "params");
    size_t before = d1->query_count;
    int rc = 0;
    if (!sql || sql->kind != CN_JSON_STRING)
        return cn_err_set(err, CN_EINVALID, "\"sql\" must be a text");
    if (params && params->kind != CN_JSON_ARRAY && params->kind != CN_JSON_NULL)
        return cn_err_set(err, CN_EINVALID, "\"params\" must be a list");
    add_statements(d1, sql->text, sql->size);
    if (params && params->first && d1->query_count != before + 1)
        return cn_err_set(err, CN_EINVALID, "parameters belong to one statement");
    for (const struct cn_json *each = params ? params->first : NULL; each && rc == 0;
         each = each->next)
        rc = add_param(d1, each, err);
    return rc;
}

static bool is_set(const struct cn_control_call *call, const char *name)
{
    const struct cn_json *value = cn_json_find(call->json, name);
    return value && value->kind == CN_JSON_BOOL && value->boolean;
}

/* {"sql","params"} or {"batch":[{"sql","params"},...]}: all statements; with "count" without their
 * rows, with "rows" with the names of their columns apart. */
static int run_query(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_object_key key;
    struct cn_namespace nowhere;
    const struct cn_json *batch = cn_json_find(call->json, "batch");
    const struct cn_json *sql = batch ? NULL : cn_json_find(call->json, "sql");
    if (batch && batch->kind != CN_JSON_ARRAY)
        return cn_err_set(err, CN_EINVALID, "\"batch\" must be a list");
    enum cn_d1_format format = is_set(call, "count")  ? CN_D1_COUNT
                               : is_set(call, "rows") ? CN_D1_ROWS
                                                      : CN_D1_OBJECTS;
    struct cn_d1_call *d1 = new_call(call, format, &key, &nowhere, err);
    if (!d1)
        return err->code;
    int rc = batch ? 0 : add_query(d1, call->json, err);
    for (const struct cn_json *each = batch ? batch->first : NULL; each && rc == 0;
         each = each->next)
        rc = add_query(d1, each, err);
    if (rc < 0) {
        cn_service_call_free(&d1->base);
        return rc;
    }
    return run_call(call, d1, &key, sql ? sql->text : NULL, sql ? sql->size : 0, err);
}

/* The body is a script of SQL; its statements are counted. */
static int run_import(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_object_key key;
    struct cn_namespace nowhere;
    int rc = cn_control_read_body(call, CN_CONTROL_BODY_MAX, err);
    if (rc < 0)
        return rc;
    struct cn_d1_call *d1 = new_call(call, CN_D1_COUNT, &key, &nowhere, err);
    if (!d1)
        return err->code;
    const char *sql = call->body.size ? (const char *)call->body.data : "";
    add_statements(d1, sql, call->body.size);
    return run_call(call, d1, &key, sql, call->body.size, err);
}

/* --- moments --------------------------------------------------------------------------------- */

/* ?time=T: the bookmark of that moment, else of this one. */
static int get_bookmark(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_object_key key;
    char bookmark[CN_BOOKMARK_SIZE];
    const char *time = cn_control_param(call, "time");
    int rc = find_key(call, &key, err);
    if (rc == 0 && time)
        rc = cn_control_moment(call, &key, NULL, time, bookmark, err);
    if (rc > 0) /* whoever asks by a time restores by the bookmark */
        rc = cn_control_had_data(call, &key, bookmark, err);
    else if (rc == 0)
        rc = cn_control_hold(call, &key, err);
    if (rc < 0)
        return rc;
    if (!time)
        cn_history_bookmark_now(call->shard->history, call->shard->store, &key, 0, bookmark);
    cn_buf_printf(&call->scratch, "{\"bookmark\":\"%s\"}", bookmark);
    return cn_control_answer(call, &call->scratch);
}

/* GET /api/d1 */
static int list_databases(struct cn_control_call *call, struct cn_err *err)
{
    return cn_control_list_service(call, "d1", "databases", "name", err);
}

static const struct cn_control_route routes[] = {
    {"GET", {"api", "d1"}, list_databases, 0},
    {"POST", {"api", "d1", "*", "query"}, run_query, 0},
    {"POST", {"api", "d1", "*", "import"}, run_import, CN_ROUTE_RAW},
    {"GET", {"api", "d1", "*", "bookmark"}, get_bookmark, 0},
    {0},
};
const struct cn_control_routes cn_d1_routes = {routes};
