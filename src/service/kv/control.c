/* SPDX-License-Identifier: Apache-2.0 */
/* service/kv/control.c - KV namespaces: their keys, their values. The limits are
 * those of the binding (prelude/workers/service/kv.js). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "admin/handler.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/kv/kv.h"

#define METADATA_MAX 1024
#define NAMESPACE_MAX 200
#define TTL_MIN_S 60

/* PUT /api/kv/NS */
static int make_namespace(struct cn_control_call *call, struct cn_err *err)
{
    const char *id = call->path[2];
    if (strlen(id) > NAMESPACE_MAX)
        return cn_err_set(err, CN_EINVALID, "the id of a namespace has at most %d bytes",
                          NAMESPACE_MAX);
    int rc = cn_control_service_make(call, "kv", id, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(&call->scratch, "{\"id\":");
    cn_buf_append_json(&call->scratch, id, strlen(id));
    cn_buf_append_byte(&call->scratch, '}');
    return cn_control_answer(call, &call->scratch);
}

/* --- keys ------------------------------------------------------------------------------------ */

/* The keys of one shard in order, asked for as they are needed. */
struct shard {
    struct cn_json *keys;       /* owned; the last answer */
    const struct cn_json *next; /* NULL: none left in it */
    bool more;                  /* the shard has more than that */
};

struct listing {
    struct cn_control_call *call;
    struct cn_namespace *ns;
    const char *prefix;
    struct cn_buf after; /* the last key that was listed */
    int64_t limit;
    struct shard shards[CN_KV_SHARDS];
};

static int ask_shard(struct listing *listing, unsigned number, struct cn_err *err)
{
    struct shard *shard = &listing->shards[number];
    struct cn_kv_call *request = cn_kv_list_new(listing->ns, number);
    cn_buf_append_str(&request->key, listing->prefix);
    if (listing->after.data)
        cn_buf_append(&request->after, listing->after.data, listing->after.size);
    /* Keys are spread evenly: a little more than a share of each is nearly always enough. */
    int64_t share = listing->limit * 5 / 4 / CN_KV_SHARDS + 8;
    request->limit = (unsigned)(share < listing->limit ? share : listing->limit);
    int rc = cn_control_ask(listing->call, &request->base, err);
    cn_json_free(shard->keys);
    shard->keys = NULL;
    if (rc == 0) {
        shard->keys = cn_json_parse((char *)request->names.data, request->names.size, err);
        rc = shard->keys ? 0 : err->code;
    }
    shard->next = rc == 0 ? shard->keys->first : NULL;
    shard->more = request->more;
    cn_service_call_free(&request->base);
    return rc;
}

static const struct cn_json *key_of(const struct shard *shard)
{
    const struct cn_json *name = cn_json_find(shard->next, "name");
    CN_ASSERT(name && name->kind == CN_JSON_STRING); /* kv.c has written it */
    return name;
}

static bool is_before(const struct shard *a, const struct shard *b)
{
    const struct cn_json *x = key_of(a), *y = key_of(b);
    size_t size = x->size < y->size ? x->size : y->size;
    int order = memcmp(x->text, y->text, size);
    return order ? order < 0 : x->size < y->size;
}

/* The shard with the first key of all that are left, or NULL. */
static int find_first(struct listing *listing, struct shard **first, struct cn_err *err)
{
    *first = NULL;
    for (unsigned i = 0; i < CN_KV_SHARDS; i++) {
        struct shard *shard = &listing->shards[i];
        int rc = !shard->next && shard->more ? ask_shard(listing, i, err) : 0;
        if (rc < 0)
            return rc;
        if (shard->next && (!*first || is_before(shard, *first)))
            *first = shard;
    }
    return 0;
}

static int merge(struct listing *listing, struct cn_err *err)
{
    struct cn_buf *out = &listing->call->scratch;
    struct shard *first;
    int rc = 0;
    for (unsigned i = 0; i < CN_KV_SHARDS && rc == 0; i++)
        rc = ask_shard(listing, i, err);
    if (rc == 0)
        rc = find_first(listing, &first, err);
    int64_t count = 0;
    cn_buf_append_str(out, "{\"keys\":[");
    while (rc == 0 && first && count < listing->limit) {
        cn_buf_append_str(out, count++ ? "," : "");
        cn_json_write(out, first->next);
        cn_buf_clear(&listing->after);
        cn_buf_append(&listing->after, key_of(first)->text, key_of(first)->size);
        first->next = first->next->next;
        rc = find_first(listing, &first, err);
    }
    if (rc < 0)
        return rc;
    cn_buf_append_str(out, "],\"cursor\":");
    if (first)
        cn_control_append_cursor(out, 'k', listing->after.data, listing->after.size);
    else
        cn_buf_append_str(out, "null");
    cn_buf_printf(out, ",\"complete\":%s}", first ? "false" : "true");
    return cn_control_answer(listing->call, out);
}

/* GET /api/kv/NS/keys */
static int list_keys(struct cn_control_call *call, struct cn_err *err)
{
    const char *prefix = cn_control_param(call, "prefix");
    struct listing listing = {.call = call, .prefix = prefix ? prefix : ""};
    int rc = cn_control_service(call, "kv", call->path[2], &listing.ns, err);
    if (rc == 0)
        rc = cn_control_param_number(call, "limit", CN_KV_LIST_MAX, 100, &listing.limit, err);
    if (rc == 0)
        rc = cn_control_read_cursor(call, "k", &listing.after, err);
    size_t prefix_size = strlen(listing.prefix);
    if (rc > 0 && (listing.after.size < prefix_size ||
                   memcmp(listing.after.data, listing.prefix, prefix_size) != 0))
        rc = cn_err_set(err, CN_EINVALID, "the cursor belongs to a list with another prefix");
    listing.limit = listing.limit ? listing.limit : 1;
    if (rc >= 0)
        rc = merge(&listing, err);
    for (unsigned i = 0; i < CN_KV_SHARDS; i++)
        cn_json_free(listing.shards[i].keys);
    cn_buf_fini(&listing.after);
    return rc;
}

/* --- values ---------------------------------------------------------------------------------- */

static int check_key(const struct cn_buf *key, struct cn_err *err)
{
    const char *text = (const char *)key->data;
    if (key->size > CN_KV_KEY_MAX)
        return cn_err_set(err, CN_EINVALID, "a key has at most %d bytes", CN_KV_KEY_MAX);
    if ((key->size == 1 && text[0] == '.') || (key->size == 2 && memcmp(text, "..", 2) == 0))
        return cn_err_set(err, CN_EINVALID, "\"%.*s\" is not allowed as a key", (int)key->size,
                          text);
    return 0;
}

/* ?expiration=SECONDS or ?expiration_ttl=SECONDS */
static int read_expiry(struct cn_control_call *call, struct cn_kv_call *request, struct cn_err *err)
{
    int64_t at, ttl, now = cn_clock_wall_ms(cn_clock_system()) / 1000;
    int rc = cn_control_param_number(call, "expiration", CN_KV_TIME_MAX_S, 0, &at, err);
    if (rc == 0)
        rc = cn_control_param_number(call, "expiration_ttl", CN_KV_TIME_MAX_S, 0, &ttl, err);
    if (rc < 0)
        return rc;
    if (cn_control_param(call, "expiration_ttl") && ttl < TTL_MIN_S)
        return cn_err_set(err, CN_EINVALID, "expiration_ttl must be at least %d seconds",
                          TTL_MIN_S);
    if (cn_control_param(call, "expiration") && at < now + TTL_MIN_S)
        return cn_err_set(err, CN_EINVALID, "expiration must be at least %d seconds from now",
                          TTL_MIN_S);
    request->ttl = ttl > 0;
    request->expires_s = ttl > 0 ? ttl : at;
    return 0;
}

static int read_metadata(struct cn_control_call *call, struct cn_kv_call *request,
                         struct cn_err *err)
{
    const char *text = cn_control_param(call, "metadata");
    if (!text || !*text)
        return 0;
    struct cn_json *json = cn_json_parse(text, strlen(text), err);
    if (!json)
        return cn_err_context(err, "metadata");
    if (json->kind != CN_JSON_NULL)
        cn_json_write(&request->metadata, json);
    cn_json_free(json);
    return request->metadata.size > METADATA_MAX
               ? cn_err_set(err, CN_ELIMIT, "metadata has at most %d bytes", METADATA_MAX)
               : 0;
}

static int put_value(struct cn_control_call *call, struct cn_kv_call *request, struct cn_err *err)
{
    int rc = read_expiry(call, request, err);
    if (rc == 0)
        rc = read_metadata(call, request, err);
    if (rc == 0)
        rc = cn_control_read_body(call, CN_KV_VALUE_MAX, err);
    if (rc < 0)
        return rc;
    size_t size = call->body.size;
    request->value_size = request->base.call.size = size;
    request->value = size ? cn_buf_take(&call->body) : cn_alloc(1);
    rc = cn_control_ask(call, &request->base, err);
    if (rc < 0)
        return rc;
    cn_kv_answered(request);
    cn_buf_printf(&call->scratch, "{\"bytes\":%zu}", size);
    return cn_control_answer(call, &call->scratch);
}

static int get_value(struct cn_control_call *call, struct cn_kv_call *request, struct cn_err *err)
{
    int rc = cn_control_ask(call, &request->base, err);
    if (rc < 0)
        return rc;
    if (!request->found)
        return cn_err_set(err, CN_ENOTFOUND, "there is no such key");
    struct cn_buf text = {0};
    if (request->metadata.data) {
        cn_control_append_ascii(&text, (char *)request->metadata.data, request->metadata.size);
        cn_control_field(call, "x-cairn-metadata", cn_buf_text(&text));
        cn_buf_clear(&text);
    }
    if (request->expires_s) {
        cn_buf_printf(&text, "%" PRId64, request->expires_s);
        cn_control_field(call, "x-cairn-expiration", cn_buf_text(&text));
    }
    cn_buf_fini(&text);
    call->type = "application/octet-stream";
    call->length = (int64_t)request->value_size;
    (void)call->write(call, request->value, request->value_size); /* whoever is gone needs none */
    return 0;
}

static int delete_value(struct cn_control_call *call, struct cn_kv_call *request,
                        struct cn_err *err)
{
    int rc = cn_control_ask(call, &request->base, err);
    if (rc < 0)
        return rc;
    cn_kv_answered(request);
    cn_buf_append_str(&call->scratch, "{\"deleted\":true}");
    return cn_control_answer(call, &call->scratch);
}

/* GET, PUT, DELETE /api/kv/NS/values/KEY */
static int handle_value(struct cn_control_call *call, struct cn_err *err)
{
    bool puts = strcmp(call->method, "PUT") == 0, gets = strcmp(call->method, "GET") == 0;
    struct cn_namespace *ns;
    int rc = check_key(&call->rest, err);
    if (rc == 0)
        rc = cn_control_service(call, "kv", call->path[2], &ns, err);
    if (rc < 0)
        return rc;
    struct cn_kv_call *request = cn_kv_call_new(ns,
                                                puts   ? CN_KV_PUT
                                                : gets ? CN_KV_GET
                                                       : CN_KV_DELETE,
                                                call->rest.data, call->rest.size);
    if (!gets)
        cn_kv_writes(request);
    rc = puts   ? put_value(call, request, err)
         : gets ? get_value(call, request, err)
                : delete_value(call, request, err);
    cn_service_call_free(&request->base);
    return rc;
}

/* GET /api/kv */
static int list_namespaces(struct cn_control_call *call, struct cn_err *err)
{
    return cn_control_list_service(call, "kv", "namespaces", "title", err);
}

static const struct cn_control_route routes[] = {
    {"GET", {"api", "kv"}, list_namespaces, 0},
    {"PUT", {"api", "kv", "*"}, make_namespace, 0},
    {"GET", {"api", "kv", "*", "keys"}, list_keys, 0},
    {"GET", {"api", "kv", "*", "values", "**"}, handle_value, CN_ROUTE_RAW},
    {"PUT", {"api", "kv", "*", "values", "**"}, handle_value, CN_ROUTE_RAW},
    {"DELETE", {"api", "kv", "*", "values", "**"}, handle_value, CN_ROUTE_RAW},
    {0},
};
const struct cn_control_routes cn_kv_routes = {routes};
