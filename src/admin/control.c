/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/handler.h"
#include "admin/relay.h"
#include "admin/spread.h"
#include "admin/tail.h"
#include "admin/target.h"
#include "base/account.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "object/access.h"
#include "object/id.h"
#include "object/node.h"
#include "object/shard.h"
#include "object/shard_list.h"
#include "service/def.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/store.h"
#include "text/hex.h"
#include "text/percent.h"
#include "text/utf16.h"

#define TURN_WAIT_US 5000000 /* for other calls on the same object */
#define LOOK_US 20000        /* between two looks at who has a shard */

/* Those of services are in their folders. */
static int get_cluster(struct cn_control_call *call, struct cn_err *err)
{
    const struct cn_control *control = call->control;
    int rc = 0;
    if (control->cluster)
        rc = control->cluster(control->cluster_data, &call->scratch, err);
    else
        cn_buf_append_str(&call->scratch, "{\"member\":false}");
    return rc < 0 ? rc : cn_control_answer(call, &call->scratch);
}

const struct cn_control_route cn_control_own_routes[] = {
    {"GET", {"api", "workers"}, cn_control_workers, CN_ROUTE_BARE},
    {"GET", {"api", "cluster"}, get_cluster, CN_ROUTE_BARE},
    {"GET", {"api", "namespaces"}, cn_control_namespaces, 0},
    {"GET", {"api", "objects"}, cn_control_list, 0},
    {"GET", {"api", "objects", "*", "*"}, cn_control_inspect, 0},
    {"DELETE", {"api", "objects", "*", "*"}, cn_control_delete, 0},
    {"GET", {"api", "objects", "*", "*", "export"}, cn_control_export, 0},
    {"POST", {"api", "objects", "*", "*", "restore"}, cn_control_restore, 0},
    {"GET", {"api", "objects", "*", "*", "history"}, cn_control_history, 0},
    {"PUT", {"api", "objects", "*", "*", "alarm"}, cn_control_alarm, 0},
    {"DELETE", {"api", "objects", "*", "*", "alarm"}, cn_control_alarm, 0},
    {"POST", {"api", "objects", "*", "*", "sql"}, cn_control_sql, 0},
    {"GET", {"api", "objects", "*", "*", "kv"}, cn_control_kv, 0},
    {"PUT", {"api", "objects", "*", "*", "kv", "**"}, cn_control_kv_put, 0},
    {"DELETE", {"api", "objects", "*", "*", "kv", "**"}, cn_control_kv_delete, 0},
    {"POST", {"api", "deploy"}, cn_control_deploy, 0},
    {"POST", {"api", "backup"}, cn_control_backup, 0},
    {"POST", {"api", "backup", "stream"}, cn_control_backup_stream, 0},
    {"PUT", {"api", "backup", "stream", "*"}, cn_control_backup_answer, CN_ROUTE_RAW},
    {"GET", {"node", "tail"}, cn_tail_relay, CN_ROUTE_BARE}, /* for other nodes */
    {0},
};

/* --- the request ----------------------------------------------------------------------------- */

/* Decodes %xx in place (and + in a query); returns the size, or -1: malformed. */
static ptrdiff_t decode(char *text, bool query)
{
    unsigned flags = CN_PERCENT_STRICT | (query ? CN_PERCENT_FORM : 0);
    ptrdiff_t size = cn_percent_decode(text, strlen(text), flags, text);
    if (size >= 0)
        text[size] = 0;
    return size;
}

/* The same for what may not hold a NUL. */
static bool decode_text(char *text, bool query)
{
    ptrdiff_t size = decode(text, query);
    return size >= 0 && strlen(text) == (size_t)size;
}

static int parse_query(struct cn_control_call *call, char *query, struct cn_err *err)
{
    char *state = NULL;
    for (char *part = strtok_r(query, "&", &state); part; part = strtok_r(NULL, "&", &state)) {
        if (call->param_count == CN_CONTROL_PARAM_MAX)
            return cn_err_set(err, CN_EINVALID, "too many parameters");
        struct cn_control_param *param = &call->params[call->param_count++];
        char *equals = strchr(part, '=');
        param->name = part;
        param->value = equals ? equals + 1 : part + strlen(part);
        if (equals)
            *equals = 0;
        if (!decode_text(param->name, true) || !decode_text(param->value, true))
            return cn_err_set(err, CN_EINVALID, "malformed percent-encoding in the query");
    }
    return 0;
}

static bool is_rest(const struct cn_control_route *route, size_t index)
{
    return index < CN_CONTROL_PATH_MAX && route->path[index] &&
           strcmp(route->path[index], "**") == 0;
}

static int take_rest(struct cn_control_call *call, char *text, struct cn_err *err)
{
    const char *key = cn_control_param(call, "key");
    ptrdiff_t size = decode(text, false);
    if (size == 0 && key) {
        text = (char *)key;
        size = (ptrdiff_t)strlen(key);
    }
    if (size < 0)
        return cn_err_set(err, CN_EINVALID, "malformed percent-encoding in the path");
    if (size == 0)
        return cn_err_set(err, CN_EINVALID, "a key cannot be empty");
    if (!cn_utf8_valid(text, (size_t)size))
        return cn_err_set(err, CN_EINVALID, "a key must be UTF-8");
    cn_buf_append(&call->rest, text, (size_t)size);
    return 0;
}

/* Takes the path of a route that fits apart. */
static int parse_path(struct cn_control_call *call, char *path,
                      const struct cn_control_route *route, struct cn_err *err)
{
    while (!is_rest(route, call->path_count)) {
        path += strspn(path, "/");
        if (!*path)
            return 0;
        CN_ASSERT(call->path_count < CN_CONTROL_PATH_MAX);
        char *part = path;
        path += strcspn(path, "/");
        bool last = !*path;
        *path = 0;
        if (!decode_text(part, false))
            return cn_err_set(err, CN_EINVALID, "malformed percent-encoding in the path");
        call->path[call->path_count++] = part;
        if (last)
            return 0;
        path++; /* past the end of this segment */
    }
    return take_rest(call, path, err);
}

/* --- what another node has ------------------------------------------------------------------- */

static bool is_over(const struct cn_control_call *call, uint64_t deadline_ns)
{
    return cn_clock_mono_ns(cn_clock_system()) >= deadline_ns ||
           (call->cancelled && call->cancelled((struct cn_control_call *)call));
}

/* Once more, from the beginning of the handler. */
static int run_again(struct cn_control_call *call, const struct cn_control_route *route,
                     struct cn_err *err)
{
    cn_control_release(call);
    cn_buf_clear(&call->scratch);
    cn_buf_clear(&call->fields);
    call->away = false;
    call->platform_code = 0;
    return route->run(call, err);
}

/* The shard is not here: R1, R2 of relay.h. */
static int run_elsewhere(struct cn_control_call *call, const struct cn_control_route *route,
                         struct cn_err *err)
{
    const struct cn_relay_net *net = call->control->relay;
    uint64_t deadline_ns = cn_clock_mono_ns(cn_clock_system()) + (uint64_t)net->wait_ms * 1000000;
    struct cn_err why = {0};
    if (!call->body_read && call->read) {
        int rc = cn_control_read_body(call, CN_CONTROL_BODY_MAX, err);
        if (rc < 0)
            return rc;
    }
    for (;;) {
        bool here = false;
        int good = cn_control_check_good(call, err);
        if (good < 0)
            return good;
        uint64_t disk = net->owner(net->data, call->away_shard, &here);
        if (here) {
            int rc = run_again(call, route, err);
            if (rc != CN_ECLOSED || !call->away)
                return rc;
        } else if (disk) {
            cn_control_release(call);
            enum cn_relay_end end = cn_relay_call(call, net, disk, &why);
            if (end == CN_RELAY_DONE)
                return 0;
            if (end == CN_RELAY_LOST && strcmp(call->method, "GET") != 0)
                return cn_err_set(err, CN_ECLOSED, "%s; whether it was carried out is not known",
                                  why.text);
        }
        if (is_over(call, deadline_ns))
            return cn_err_set(err, CN_ECLOSED,
                              "no node answers for it at the moment; try again%s%s%s",
                              why.code ? " (" : "", why.text, why.code ? ")" : "");
        usleep(LOOK_US);
    }
}

static int run_handler(struct cn_control_call *call, const struct cn_control_route *route,
                       struct cn_err *err)
{
    int rc = route->run(call, err);
    if (rc != CN_ECLOSED || !call->away || !call->control->relay)
        return rc;
    if (!call->relayed)
        return run_elsewhere(call, route, err);
    call->refused = true;
    return rc;
}

/* --- routes ---------------------------------------------------------------------------------- */

/* The tree of a body is many times its size: it is in the account before it is there. */
static int parse_body(struct cn_control_call *call, struct cn_err *err)
{
    const char *text = (const char *)call->body.data;
    int rc = cn_control_take(call, cn_json_cost(text, call->body.size, CN_JSON_ASKED_MAX), err);
    if (rc < 0)
        return rc;
    call->json = cn_json_parse_some(text, call->body.size, CN_JSON_ASKED_MAX, err);
    return call->json ? 0 : CN_EINVALID;
}

static int run_route(struct cn_control_call *call, const struct cn_control_route *route, char *path,
                     struct cn_err *err)
{
    int rc = parse_path(call, path, route, err);
    if (rc < 0)
        return rc;
    if (!(call->who.scopes & (route->flags >> 8 | CN_SCOPE_ADMIN))) {
        call->platform_code = 10000;
        return cn_err_set(err, CN_EDENIED, "the token is not good for this request");
    }
    if (call->control->check && cn_target_pattern_is_platform(route->path)) { /* P1 */
        rc = call->control->check(call, err);
        if (rc < 0)
            return rc;
    }
    if (!call->control->shards && !(route->flags & CN_ROUTE_BARE))
        return cn_err_set(err, CN_ENOTFOUND, "this server keeps no data: it has no objects");
    if (!(route->flags & CN_ROUTE_RAW)) {
        rc = cn_control_read_body(call, CN_CONTROL_BODY_MAX, err);
        if (rc < 0)
            return rc;
        if (call->body.size > 0)
            rc = parse_body(call, err);
        if (rc < 0)
            return rc;
    }
    return run_handler(call, route, err);
}

/* The route of a table that fits path and method, or NULL; *path_known if one fits but for the
 * method. */
static const struct cn_control_route *find_route(const struct cn_control_route *table,
                                                 const struct cn_control_call *call,
                                                 bool *path_known)
{
    for (; table->method; table++) {
        if (!cn_target_fits(call->text, strlen(call->text), table->path))
            continue;
        *path_known = true;
        if (strcmp(table->method, call->method) == 0)
            return table;
    }
    return NULL;
}

/* Who asks for a part of the platform's API that is not here is told which one. */
static int fail_unknown(const struct cn_control_call *call, struct cn_err *err)
{
    const char *at = call->text;
    static const char *const account[CN_TARGET_SEGMENT_MAX] = {"client", "v4", "accounts", "*",
                                                               "**"};
    size_t size = strlen(at);
    if (!cn_target_is_platform(at, size))
        return cn_err_set(err, CN_ENOTFOUND, "there is no such path");
    at = cn_target_segment(at, size, cn_target_fits(at, size, account) ? 4 : 2, &size);
    return cn_err_set(
        err, CN_ENOTFOUND,
        "\"%.100s\" of the platform's API is not built here; docs/reference/deploy.md "
        "says what is",
        at);
}

static int run(struct cn_control_call *call, struct cn_err *err)
{
    call->text = cn_strdup(call->target);
    char *query = strchr(call->text, '?');
    if (query)
        *query++ = 0;
    int rc = query ? parse_query(call, query, err) : 0;
    if (rc < 0)
        return rc;
    bool path_known = false;
    const struct cn_control_route *route = find_route(cn_control_own_routes, call, &path_known);
    for (size_t i = 0; !route && cn_service_table[i]; i++) {
        if (cn_service_table[i]->routes)
            route = find_route(cn_service_table[i]->routes->items, call, &path_known);
    }
    if (!route && call->control->more)
        route = find_route(call->control->more, call, &path_known);
    if (route)
        return run_route(call, route, call->text, err);
    if (path_known)
        return cn_err_set(err, CN_EUNSUPPORTED, "%s is not possible here", call->method);
    return fail_unknown(call, err);
}

/* --- the answer ------------------------------------------------------------------------------ */

/* One line for every code of err.h (the compiler asks for it): 500 is for what is the server's own
 * fault and would be again, never for what was asked or for what passes. */
int cn_control_status(int code)
{
    switch ((enum cn_err_code)code) {
    case CN_EINVALID:
    case CN_ESQL:
        return 400;
    case CN_EDENIED:
        return 403;
    case CN_ENOTFOUND:
        return 404;
    case CN_EUNSUPPORTED:
        return 405;
    case CN_ELOCKED:
    case CN_EEXISTS:
    case CN_EABORTED: /* a statement or a transaction was undone */
        return 409;
    case CN_ELIMIT:
        return 413;
    case CN_EPROTOCOL:
    case CN_ETLS:
        return 502;
    case CN_EOVERLOADED:
    case CN_ENOMEM:
    case CN_EREADONLY:
    case CN_ECLOSED:
    case CN_EOLDER: /* until somebody decides: C16 of membership/member.h */
        return 503;
    case CN_ETIMEOUT:
        return 504;
    case CN_ECORRUPT:
    case CN_EVERSION:
    case CN_EJS:
        return 500;
    }
    return code == -ENOSPC || code == -EDQUOT ? 507 : code == -ENOMEM ? 503 : 500;
}

static void write_answer(struct cn_control_call *call, struct cn_buf *json)
{
    cn_control_release(call); /* the reader may be slow */
    cn_buf_append_byte(json, '\n');
    call->length = (int64_t)json->size;
    (void)call->write(call, json->data, json->size); /* whoever is gone needs no answer */
    cn_buf_clear(json);
}

static void answer_error(struct cn_control_call *call, int rc, const struct cn_err *err)
{
    struct cn_buf *out = &call->scratch;
    cn_buf_clear(&call->fields);
    cn_buf_clear(out);
    call->status = cn_control_status(rc);
    call->type = "application/json";
    if (cn_target_is_platform(call->target, strlen(call->target))) {
        cn_control_append_platform_error(out, call->status, call->platform_code, err->text);
        return write_answer(call, out);
    }
    const char *name = cn_err_name(rc);
    cn_buf_append_str(out, "{\"error\":{\"code\":");
    cn_buf_append_json(out, name, strlen(name));
    cn_buf_append_str(out, ",\"message\":");
    cn_buf_append_json(out, err->text, strlen(err->text));
    cn_buf_append_str(out, "}}");
    write_answer(call, out);
}

/* What was only read goes to nobody who may not read it any more; what was done is told. */
int cn_control_answer(struct cn_control_call *call, struct cn_buf *json)
{
    struct cn_err err = {0};
    int rc = cn_control_is_read(call) ? cn_control_check_good(call, &err) : 0;
    if (rc == 0) {
        write_answer(call, json);
        return 0;
    }
    cn_buf_clear(json);
    answer_error(call, rc, &err);
    return 0;
}

int cn_control_result(struct cn_control_call *call, struct cn_buf *result)
{
    struct cn_buf out = {0};
    cn_buf_append_str(&out, "{\"success\":true,\"errors\":[],\"messages\":[],\"result\":");
    cn_buf_append(&out, result->data, result->size);
    cn_buf_append_byte(&out, '}');
    int rc = cn_control_answer(call, &out);
    cn_buf_fini(&out);
    cn_buf_fini(result);
    return rc;
}

void cn_control_append_platform_error(struct cn_buf *out, int status, int code, const char *text)
{
    if (!code) /* what wrangler knows: authentication, a path or thing that is not there, a body */
        code = status == 401 || status == 403   ? 10000
               : status == 404 || status == 405 ? 10007
               : status < 500                   ? 10021
                                                : 10013;
    cn_buf_printf(out, "{\"success\":false,\"errors\":[{\"code\":%d,\"message\":", code);
    cn_buf_append_json(out, text, strlen(text));
    cn_buf_append_str(out, "}],\"messages\":[],\"result\":null}");
}

void cn_control_run(struct cn_control_call *call)
{
    struct cn_err err = {0};
    call->status = 200;
    call->type = "application/json";
    call->length = -1;
    int rc = run(call, &err);
    if (rc < 0 && !call->refused)
        answer_error(call, rc, &err);
    cn_control_release(call);
    cn_json_free(call->json);
    cn_free(call->text);
    cn_buf_fini(&call->scratch);
    cn_buf_fini(&call->body);
    cn_account_add(CN_ACCOUNT_BODIES, -(int64_t)call->counted);
    call->counted = 0;
    cn_buf_fini(&call->rest);
    call->json = NULL;
    call->text = NULL;
}

/* --- what handlers share --------------------------------------------------------------------- */

int cn_control_take(struct cn_control_call *call, size_t bytes, struct cn_err *err)
{
    if (!cn_account_take(CN_ACCOUNT_BODIES, bytes))
        return cn_err_set(err, CN_EOVERLOADED, "the server has no memory for this call now");
    call->counted += bytes;
    return 0;
}

/* Where a piece of a text of at most `max` bytes ends: not within a character. */
static size_t piece_of(const char *text, size_t size, size_t max)
{
    if (size <= max)
        return size;
    size_t end = max;
    while (end > max - 4 && ((uint8_t)text[end] & 0xc0) == 0x80)
        end--;
    return end;
}

int cn_control_write_json(struct cn_control_call *call, const char *text, size_t size)
{
    struct cn_buf piece = {0};
    int rc = call->write(call, "\"", 1);
    for (size_t at = 0; at < size && rc == 0;) {
        size_t count = piece_of(text + at, size - at, 32 << 10);
        cn_buf_clear(&piece);
        cn_buf_append_json(&piece, text + at, count);
        rc = call->write(call, piece.data + 1, piece.size - 2); /* without its quotes */
        at += count;
    }
    cn_buf_fini(&piece);
    return rc < 0 ? rc : call->write(call, "\"", 1);
}

int cn_control_read_body(struct cn_control_call *call, size_t size_max, struct cn_err *err)
{
    uint8_t bytes[16 << 10];
    int64_t count;
    call->body_read = true;
    if (call->body_size > (int64_t)size_max) /* need not be sent at all */
        return cn_err_set(err, CN_ELIMIT, "the body is larger than %zu MiB", size_max >> 20);
    while (call->read && (count = call->read(call, bytes, sizeof(bytes))) != 0) {
        if (count < 0)
            return cn_err_set(err, CN_ECLOSED, "the body did not come to its end");
        if (call->body.size + (size_t)count > size_max)
            return cn_err_set(err, CN_ELIMIT, "the body is larger than %zu MiB", size_max >> 20);
        int rc = cn_control_take(call, (size_t)count, err);
        if (rc < 0)
            return rc;
        if (!cn_buf_try_append(&call->body, bytes, (size_t)count))
            return cn_err_set(err, CN_ENOMEM, "no memory for the body");
    }
    return cn_control_check_good(call, err);
}

bool cn_control_is_good(const struct cn_control_call *call)
{
    const struct cn_control *control = call->control;
    return !control->is_good || control->is_good(control->more_data, &call->who);
}

bool cn_control_is_read(const struct cn_control_call *call)
{
    return strcmp(call->method, "GET") == 0;
}

int cn_control_check_good(struct cn_control_call *call, struct cn_err *err)
{
    if (cn_control_is_good(call))
        return 0;
    call->platform_code = 10000;
    return cn_err_set(err, CN_EDENIED, "the token was revoked, or its time is over");
}

void cn_control_field(struct cn_control_call *call, const char *name, const char *value)
{
    cn_buf_append(&call->fields, name, strlen(name) + 1);
    cn_buf_append(&call->fields, value, strlen(value) + 1);
}

const char *cn_control_sent(const struct cn_control_call *call, const char *name)
{
    const char *at = call->sent ? (const char *)call->sent->data : NULL;
    const char *end = at ? at + call->sent->size : NULL;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        if (strcmp(at, name) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

const char *cn_control_param(const struct cn_control_call *call, const char *name)
{
    for (size_t i = 0; i < call->param_count; i++) {
        if (strcmp(call->params[i].name, name) == 0)
            return call->params[i].value;
    }
    return NULL;
}

int cn_control_param_number(const struct cn_control_call *call, const char *name, int64_t max,
                            int64_t fallback, int64_t *value, struct cn_err *err)
{
    const char *text = cn_control_param(call, name);
    char *end;
    *value = fallback;
    if (!text)
        return 0;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (!*text || *end || errno || *value < 0 || *value > max)
        return cn_err_set(err, CN_EINVALID, "%s must be a number from 0 to %lld", name,
                          (long long)max);
    return 0;
}

int cn_control_namespace(struct cn_control_call *call, const char *name, uint32_t *id,
                         struct cn_err *err)
{
    const struct cn_control *control = call->control;
    int rc = cn_shards_namespace_find(control->shards, name, id, err);
    if (rc == 0 && control->relay) { /* this node may have none of its objects */
        const struct cn_namespace *ns = cn_node_namespace_named(control->node, name);
        if (ns)
            *id = ns->id;
        rc = ns ? 1 : call->relayed ? 0 : cn_spread_namespace(call, name, id, err);
    }
    return rc == 0 ? cn_err_set(err, CN_ENOTFOUND, "there is no namespace %s", name)
                   : (rc < 0 ? rc : 0);
}

struct named {
    const char *name;
    struct cn_object_key key;
    bool found;
};

static int match_name(void *data, const struct cn_catalog_entry *entry)
{
    struct named *named = data;
    if (entry->name_size == strlen(named->name) &&
        memcmp(entry->name, named->name, entry->name_size) == 0) {
        named->key = entry->key;
        named->found = true;
    }
    return 1; /* the first with this prefix is the name itself, if it is there */
}

int cn_control_object(struct cn_control_call *call, size_t index, struct cn_object_key *key,
                      struct cn_err *err)
{
    CN_ASSERT(index + 1 < call->path_count);
    const char *namespace_name = call->path[index], *object = call->path[index + 1];
    *key = (struct cn_object_key){0};
    int rc = cn_control_namespace(call, namespace_name, &key->namespace_id, err);
    if (rc < 0 || cn_id_from_hex(object, strlen(object), key->id))
        return rc;
    struct named named = {.name = object};
    struct cn_catalog_listing first = {
        .namespace_id = key->namespace_id, .limit = 1, .each = match_name, .data = &named};
    rc = cn_shards_list_names(call->control->shards, &first, object, strlen(object), NULL, 0, err);
    if (rc < 0)
        return rc;
    if (!named.found && call->control->relay && !call->relayed) {
        rc = cn_spread_name(call, namespace_name, object, named.key.id, err);
        if (rc < 0)
            return rc;
        named.found = rc == 1;
        named.key.namespace_id = key->namespace_id;
    }
    if (!named.found)
        return cn_err_set(err, CN_ENOTFOUND, "%s has no object with the name or id %s",
                          namespace_name, object);
    *key = named.key;
    return 0;
}

int cn_control_hold(struct cn_control_call *call, const struct cn_object_key *key,
                    struct cn_err *err)
{
    struct cn_shards *shards = call->control->shards;
    if (call->shard) {
        CN_ASSERT(call->shard->index == cn_shard_index(key, cn_shards_count(shards)));
        return 0;
    }
    int rc = cn_shards_hold(shards, key, &call->shard, err);
    call->away = rc == CN_ECLOSED;
    call->away_shard = cn_shard_index(key, cn_shards_count(shards));
    return rc;
}

void cn_control_release(struct cn_control_call *call)
{
    if (call->shard)
        cn_shard_release(call->shard);
    call->shard = NULL;
}

struct errand {
    struct cn_control_call *call;
    cn_control_fn fn;
    void *data;
};

static int run_turn(struct cn_object *object, struct cn_database *db, void *data,
                    struct cn_err *err)
{
    struct errand *errand = data;
    int rc = cn_control_check_good(errand->call, err); /* it has waited for its turn */
    return rc < 0 ? rc : errand->fn(object, db, errand->data, err);
}

/* The caller is alone with the object. */
static int run_alone(struct cn_control_call *call, const struct cn_object_key *key,
                     struct errand *errand, struct cn_err *err)
{
    struct cn_store *store = call->shard->store;
    struct cn_database_options options = {.must_exist = true};
    struct cn_database *db;
    uint64_t lsn = 0;
    int rc = cn_database_open(store, key, &options, &db, err);
    if (rc < 0)
        return rc;
    rc = run_turn(NULL, db, errand, err);
    if (rc == 0)
        rc = cn_database_commit(db, &lsn, err);
    cn_database_close(db);
    return rc == 0 ? cn_store_wait(store, lsn, err) : rc;
}

/* Begins access when other calls have left the object, which they do soon: a page shows several
 * things of an object at once. One that stays long, such as a large restore, is not waited for. */
static int begin_access(struct cn_control_call *call, struct cn_access *access, struct cn_err *err)
{
    int rc = cn_access_begin(access, err);
    unsigned pause_us = 500, waited_us = 0;
    while (rc == CN_ELOCKED && waited_us < TURN_WAIT_US &&
           !(call->cancelled && call->cancelled(call))) {
        usleep(pause_us);
        waited_us += pause_us;
        pause_us = pause_us < 16000 ? pause_us * 2 : pause_us;
        rc = cn_access_begin(access, err);
    }
    return rc;
}

int cn_control_with_database(struct cn_control_call *call, const struct cn_object_key *key,
                             cn_control_fn fn, void *data, struct cn_err *err)
{
    struct errand errand = {call, fn, data};
    int rc = cn_control_hold(call, key, err);
    if (rc < 0)
        return rc;
    if (!call->control->node)
        return run_alone(call, key, &errand, err);
    struct cn_access access = {
        .node = call->control->node, .key = *key, .turn = run_turn, .data = &errand};
    rc = begin_access(call, &access, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = run_alone(call, key, &errand, err);
    cn_access_end(&access);
    return rc;
}

int cn_control_exclusive(struct cn_control_call *call, const struct cn_object_key *key,
                         const char *reason,
                         int (*fn)(struct cn_control_call *call, const struct cn_object_key *key,
                                   void *data, struct cn_err *err),
                         void *data, struct cn_err *err)
{
    int rc = cn_control_hold(call, key, err);
    if (rc < 0)
        return rc;
    if (!call->control->node)
        return fn(call, key, data, err);
    struct cn_access access = {
        .node = call->control->node, .key = *key, .exclusive = true, .reason = reason};
    rc = begin_access(call, &access, err);
    if (rc < 0)
        return rc;
    rc = cn_control_check_good(call, err);
    if (rc == 0)
        rc = fn(call, key, data, err);
    cn_access_end(&access);
    return rc;
}

void cn_control_append_cursor(struct cn_buf *out, char kind, const void *bytes, size_t size)
{
    cn_buf_printf(out, "\"%c", kind);
    cn_hex_append(out, bytes, size);
    cn_buf_append_byte(out, '"');
}

int cn_control_read_cursor(struct cn_control_call *call, const char *kinds, struct cn_buf *bytes,
                           struct cn_err *err)
{
    const char *text = cn_control_param(call, "cursor");
    if (!text || !*text)
        return 0;
    size_t size = strlen(text);
    bool good = strchr(kinds, text[0]) && size % 2 == 1 && size > 1;
    if (good) {
        cn_buf_reserve(bytes, size / 2);
        good = cn_hex_decode(text + 1, size / 2, bytes->data + bytes->size);
        bytes->size += good ? size / 2 : 0;
    }
    return good ? text[0] : cn_err_set(err, CN_EINVALID, "the cursor is not one of this list");
}

void cn_control_append_ascii(struct cn_buf *out, const char *json, size_t size)
{
    for (size_t i = 0; i < size;) {
        size_t length = cn_utf8_sequence(json + i, size - i);
        uint16_t units[2];
        if (length <= 1) {
            cn_buf_append_byte(out, length ? (uint8_t)json[i] : '?');
            i++;
            continue;
        }
        size_t count = cn_utf16_from_utf8(json + i, length, units);
        for (size_t k = 0; k < count; k++)
            cn_buf_printf(out, "\\u%04x", units[k]);
        i += length;
    }
}
