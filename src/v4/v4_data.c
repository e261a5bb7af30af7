/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_data.c - namespaces of KV: what was created has an id and a name in the state
 * (depot.h); the data itself is the control API's, which is asked for it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/multipart.h"
#include "text/base64.h"
#include "text/percent.h"
#include "v4/v4.h"

#define VALUE_MAX (26u << 20)
#define BULK_MAX 10000
#define BULK_READ_MAX 100
#define BULK_READ_BYTES_MAX (25 << 20)
#define TITLE_MAX 500

/* --- shared with v4_services.c and v4_d1.c
 * -------------------------------------------------------------------
 */

void cn_v4_segment(struct cn_buf *target, const void *bytes, size_t size)
{
    cn_buf_append_byte(target, '/');
    cn_percent_encode(target, bytes, size, "-_");
}

int cn_v4_forwarded(struct cn_control_call *call, int status, struct cn_buf *out, int code,
                    struct cn_err *err)
{
    if (status < 400)
        return 0;
    if (status == 403 && !cn_control_is_good(call)) {
        cn_buf_clear(out);
        return cn_control_check_good(call, err);
    }
    struct cn_json *json = cn_json_parse((const char *)out->data, out->size, NULL);
    const char *text = cn_json_text(cn_json_find(json, "error"), "message");
    int rc = status == 404   ? CN_ENOTFOUND
             : status == 413 ? CN_ELIMIT
             : status < 500  ? CN_EINVALID
                             : CN_EOVERLOADED;
    cn_v4_fail(call, err, rc, code, "%s", text ? text : "the call failed");
    cn_json_free(json);
    cn_buf_clear(out);
    return rc;
}

int cn_v4_list(struct cn_control_call *call, struct cn_buf *items, size_t count)
{
    struct cn_buf out = {0};
    cn_buf_append_str(&out, "{\"success\":true,\"errors\":[],\"messages\":[],\"result\":[");
    cn_buf_append(&out, items->data, items->size);
    cn_buf_printf(
        &out,
        "],\"result_info\":{\"page\":1,\"per_page\":%zu,\"count\":%zu,\"total_count\":%zu,"
        "\"total_pages\":1}}",
        count ? count : 1, count, count);
    cn_buf_fini(items);
    int rc = cn_control_answer(call, &out);
    cn_buf_fini(&out);
    return rc;
}

bool cn_v4_is_first_page(const struct cn_control_call *call)
{
    const char *page = cn_control_param(call, "page");
    return !page || strcmp(page, "1") == 0;
}

int cn_v4_create(struct cn_control_call *call, const char *kind, const char *name, const char *id,
                 int taken_code, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_v4_change(call, err);
    if (!state)
        return err->code;
    int rc = 0;
    if (cn_depot_resource(state, kind, NULL, name))
        rc = cn_v4_fail(call, err, CN_EEXISTS, taken_code, "there is one named %.60s", name);
    else if (state->resource_count >= CN_DEPOT_RESOURCE_MAX)
        rc = cn_v4_fail(call, err, CN_ELIMIT, 10021, "there are %d already", CN_DEPOT_RESOURCE_MAX);
    if (rc < 0) {
        cn_depot_change_drop(v4->depot, state);
        return rc;
    }
    cn_depot_add_resource(state, kind, id, name, cn_v4_now());
    char *what = cn_sprintf("%s %s", kind, name);
    cn_v4_note(call, state, "create", "", what);
    cn_free(what);
    return cn_v4_keep(call, state, err);
}

int cn_v4_forget(struct cn_control_call *call, const char *kind, const char *id, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_v4_change(call, err);
    if (!state)
        return err->code;
    if (!cn_depot_resource(state, kind, id, NULL)) {
        cn_depot_change_drop(v4->depot, state);
        return cn_v4_fail(call, err, CN_ENOTFOUND, 10013, "there is none with this id");
    }
    char *what = cn_sprintf("%s %s", kind, cn_depot_resource(state, kind, id, NULL)->name);
    cn_v4_note(call, state, "delete", "", what);
    cn_free(what);
    cn_depot_remove_resource(state, kind, id);
    return cn_v4_keep(call, state, err);
}

int cn_v4_answer_null(struct cn_control_call *call)
{
    struct cn_buf json = {0};
    cn_buf_append_str(&json, "null");
    return cn_control_result(call, &json);
}

/* --- KV: namespaces
 * ------------------------------------------------------------------------------- */

static void append_namespace(struct cn_buf *json, const char *id, const char *title)
{
    cn_buf_append_byte(json, '{');
    cn_v4_put_text(json, "id", id);
    cn_v4_put_text(json, "title", title);
    cn_buf_append_str(json, ",\"supports_url_encoding\":true}");
}

static int create_namespace(struct cn_control_call *call, struct cn_err *err)
{
    const char *title = cn_json_text(call->json, "title");
    struct cn_buf target = {0}, out = {0};
    char id[33];
    if (!title || !*title || strlen(title) > TITLE_MAX)
        return cn_v4_fail(call, err, CN_EINVALID, 10019, "a namespace needs a title");
    cn_depot_digits(id);
    cn_buf_append_str(&target, "/api/kv");
    cn_v4_segment(&target, id, strlen(id));
    static const struct cn_buf none = {0};
    int status = cn_v4_forward(call, "PUT", cn_buf_text(&target), &none, &out);
    int rc = cn_v4_forwarded(call, status, &out, 10013, err);
    if (rc == 0)
        rc = cn_v4_create(call, "kv", title, id, 10014, err);
    cn_buf_fini(&target);
    cn_buf_fini(&out);
    if (rc < 0)
        return rc;
    struct cn_buf json = {0};
    append_namespace(&json, id, title);
    return cn_control_result(call, &json);
}

int cn_v4_kv_namespaces(struct cn_control_call *call, struct cn_err *err)
{
    if (strcmp(call->method, "POST") == 0)
        return create_namespace(call, err);
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    struct cn_buf items = {0};
    size_t count = 0;
    for (size_t i = 0; i < state->resource_count && cn_v4_is_first_page(call); i++) {
        const struct cn_depot_resource *resource = &state->resources[i];
        if (strcmp(resource->kind, "kv") != 0)
            continue;
        cn_buf_append_str(&items, count++ ? "," : "");
        append_namespace(&items, resource->id, resource->name);
    }
    cn_depot_state_unref(state);
    return cn_v4_list(call, &items, count);
}

/* Its id, by which workers are bound to it, stays. */
static int rename_namespace(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    const char *id = call->path[7], *title = cn_json_text(call->json, "title");
    if (!title || !*title || strlen(title) > TITLE_MAX)
        return cn_v4_fail(call, err, CN_EINVALID, 10019, "a namespace needs a title");
    struct cn_depot_state *state = cn_v4_change(call, err);
    if (!state)
        return err->code;
    const struct cn_depot_resource *taken = cn_depot_resource(state, "kv", NULL, title);
    int rc = 0;
    if (!cn_depot_resource(state, "kv", id, NULL))
        rc = cn_v4_fail(call, err, CN_ENOTFOUND, 10013, "there is no such namespace");
    else if (taken && strcmp(taken->id, id) != 0)
        rc = cn_v4_fail(call, err, CN_EEXISTS, 10014, "there is one named %.60s", title);
    if (rc < 0) {
        cn_depot_change_drop(v4->depot, state);
        return rc;
    }
    char *what = cn_sprintf("kv %s", title);
    cn_depot_rename_resource(state, "kv", id, title);
    cn_v4_note(call, state, "rename", "", what);
    cn_free(what);
    rc = cn_v4_keep(call, state, err);
    if (rc < 0)
        return rc;
    struct cn_buf json = {0};
    append_namespace(&json, id, title);
    return cn_control_result(call, &json);
}

/* Its data stays until somebody reuses the id: `cairn kv` has it. */
int cn_v4_kv_namespace(struct cn_control_call *call, struct cn_err *err)
{
    const char *id = call->path[7];
    if (strcmp(call->method, "PUT") == 0)
        return rename_namespace(call, err);
    if (strcmp(call->method, "DELETE") == 0) {
        int rc = cn_v4_forget(call, "kv", id, err);
        return rc < 0 ? rc : cn_v4_answer_null(call);
    }
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_resource *resource = cn_depot_resource(state, "kv", id, NULL);
    struct cn_buf json = {0};
    if (resource)
        append_namespace(&json, resource->id, resource->name);
    cn_depot_state_unref(state);
    return json.size ? cn_control_result(call, &json)
                     : cn_v4_fail(call, err, CN_ENOTFOUND, 10013, "there is no such namespace");
}

/* --- KV: keys
 * -------------------------------------------------------------------------------------- */

/* /api/kv/ID/values/KEY */
static void value_target(struct cn_control_call *call, struct cn_buf *target, const void *key,
                         size_t size)
{
    cn_buf_append_str(target, "/api/kv");
    cn_v4_segment(target, call->path[7], strlen(call->path[7]));
    cn_buf_append_str(target, "/values");
    cn_v4_segment(target, key, size);
}

static void add_param(struct cn_buf *target, const char *name, const char *value, size_t size)
{
    cn_buf_printf(target, "%c%s=", memchr(target->data, '?', target->size) ? '&' : '?', name);
    cn_percent_encode(target, value, size, "-_");
}

static void pass_param(struct cn_control_call *call, struct cn_buf *target, const char *name)
{
    const char *value = cn_control_param(call, name);
    if (value)
        add_param(target, name, value, strlen(value));
}

int cn_v4_kv_keys(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_buf target = {0}, out = {0}, items = {0};
    cn_buf_append_str(&target, "/api/kv");
    cn_v4_segment(&target, call->path[7], strlen(call->path[7]));
    cn_buf_append_str(&target, "/keys");
    pass_param(call, &target, "prefix");
    pass_param(call, &target, "cursor");
    pass_param(call, &target, "limit");
    int status = cn_v4_forward(call, "GET", cn_buf_text(&target), NULL, &out);
    int rc = cn_v4_forwarded(call, status, &out, 10013, err);
    cn_buf_fini(&target);
    struct cn_json *json = rc == 0 ? cn_json_parse((const char *)out.data, out.size, err) : NULL;
    cn_buf_clear(&out);
    if (!json) {
        cn_buf_fini(&out);
        return rc < 0 ? rc : CN_ECORRUPT;
    }
    const struct cn_json *keys = cn_json_find(json, "keys");
    const char *cursor = cn_json_text(json, "cursor");
    size_t count = 0;
    for (const struct cn_json *key = keys ? keys->first : NULL; key; key = key->next) {
        cn_buf_append_str(&items, count++ ? "," : "");
        cn_json_write(&items, key);
    }
    cn_buf_append_str(&out, "{\"success\":true,\"errors\":[],\"messages\":[],\"result\":[");
    cn_buf_append(&out, items.data, items.size);
    cn_buf_printf(&out, "],\"result_info\":{\"count\":%zu", count);
    cn_v4_put_text(&out, "cursor", cursor ? cursor : "");
    cn_buf_append_str(&out, "}}");
    cn_buf_fini(&items);
    cn_json_free(json);
    rc = cn_control_answer(call, &out);
    cn_buf_fini(&out);
    return rc;
}

/* wrangler sends a value with metadata as a form: "value" and "metadata". */
static int take_form(struct cn_control_call *call, struct cn_buf *target, struct cn_buf *value,
                     struct cn_err *err)
{
    struct cn_multipart parser;
    struct cn_multipart_part part;
    char boundary[80];
    const uint8_t *bytes = call->body.data ? call->body.data : (const uint8_t *)"";
    if (!cn_v4_boundary(call->content_type, boundary)) {
        cn_buf_append(value, bytes, call->body.size);
        return 0;
    }
    cn_multipart_init(&parser, bytes, call->body.size, boundary, strlen(boundary));
    int rc;
    while ((rc = cn_multipart_next(&parser, &part, err)) > 0) {
        if (part.name_size == 5 && memcmp(part.name, "value", 5) == 0)
            cn_buf_append(value, bytes + part.start, part.end - part.start);
        else if (part.name_size == 8 && memcmp(part.name, "metadata", 8) == 0)
            add_param(target, "metadata", (const char *)bytes + part.start, part.end - part.start);
    }
    cn_multipart_fini(&parser);
    return rc;
}

int cn_v4_kv_value(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_buf target = {0}, value = {0}, out = {0};
    bool puts = strcmp(call->method, "PUT") == 0, gets = strcmp(call->method, "GET") == 0;
    value_target(call, &target, call->rest.data, call->rest.size);
    int rc = puts ? cn_control_read_body(call, VALUE_MAX, err) : 0;
    if (puts && rc == 0) {
        pass_param(call, &target, "expiration");
        pass_param(call, &target, "expiration_ttl");
        rc = take_form(call, &target, &value, err);
    }
    if (rc == 0) {
        int status = cn_v4_forward(call, call->method, cn_buf_text(&target), &value, &out);
        rc = cn_v4_forwarded(call, status, &out, 10009, err);
    }
    cn_buf_fini(&target);
    cn_buf_fini(&value);
    if (rc == 0 && gets) {
        call->type = "application/octet-stream";
        call->length = (int64_t)out.size;
        (void)call->write(call, out.data, out.size); /* whoever is gone needs none */
    } else if (rc == 0) {
        rc = cn_v4_answer_null(call);
    }
    cn_buf_fini(&out);
    return rc;
}

/* --- KV: many at once
 * ------------------------------------------------------------------------------ */

static void param_of(struct cn_buf *target, const struct cn_json *entry, const char *name)
{
    const struct cn_json *value = cn_json_find(entry, name);
    struct cn_buf text = {0};
    if (!value || value->kind == CN_JSON_NULL)
        return;
    cn_json_write(&text, value);
    add_param(target, name, (const char *)text.data, text.size);
    cn_buf_fini(&text);
}

static int put_entry(struct cn_control_call *call, const struct cn_json *entry, struct cn_err *err)
{
    const struct cn_json *key = cn_json_find(entry, "key"), *value = cn_json_find(entry, "value");
    const struct cn_json *base64 = cn_json_find(entry, "base64");
    struct cn_buf target = {0}, bytes = {0}, out = {0};
    if (!key || key->kind != CN_JSON_STRING || !value || value->kind != CN_JSON_STRING)
        return cn_v4_fail(call, err, CN_EINVALID, 10012, "an entry has a key and a value");
    if (base64 && base64->kind == CN_JSON_BOOL && base64->boolean) {
        if (!cn_base64_decode(&bytes, value->text, value->size))
            return cn_v4_fail(call, err, CN_EINVALID, 10012, "the value of %.60s is not base64",
                              key->text);
    } else {
        cn_buf_append(&bytes, value->text, value->size);
    }
    value_target(call, &target, key->text, key->size);
    param_of(&target, entry, "expiration");
    param_of(&target, entry, "expiration_ttl");
    param_of(&target, entry, "metadata");
    int status = cn_v4_forward(call, "PUT", cn_buf_text(&target), &bytes, &out);
    int rc = cn_v4_forwarded(call, status, &out, 10012, err);
    cn_buf_fini(&target);
    cn_buf_fini(&bytes);
    cn_buf_fini(&out);
    return rc;
}

static int delete_entry(struct cn_control_call *call, const struct cn_json *key, struct cn_err *err)
{
    struct cn_buf target = {0}, out = {0};
    const struct cn_json *name = key->kind == CN_JSON_OBJECT ? cn_json_find(key, "name") : key;
    if (!name || name->kind != CN_JSON_STRING)
        return cn_v4_fail(call, err, CN_EINVALID, 10012, "a key is a text");
    value_target(call, &target, name->text, name->size);
    static const struct cn_buf none = {0};
    int status = cn_v4_forward(call, "DELETE", cn_buf_text(&target), &none, &out);
    int rc = cn_v4_forwarded(call, status, &out, 10012, err);
    cn_buf_fini(&target);
    cn_buf_fini(&out);
    return rc;
}

/* {"keys":[...]}: values as texts, null if absent. */
/* A bulk read: the values together have a bound, and none is there twice. */
struct bulk {
    struct cn_control_call *call;
    const struct cn_json *keys[BULK_READ_MAX];
    struct cn_buf values[BULK_READ_MAX];
    bool found[BULK_READ_MAX];
    size_t count, size;
};

static bool is_named(const struct bulk *bulk, const struct cn_json *key)
{
    for (size_t i = 0; i < bulk->count; i++)
        if (bulk->keys[i]->size == key->size &&
            memcmp(bulk->keys[i]->text, key->text, key->size) == 0)
            return true;
    return false;
}

static int bulk_keys(struct bulk *bulk, struct cn_err *err)
{
    const struct cn_json *keys = cn_json_find(bulk->call->json, "keys");
    size_t count = 0;
    for (const struct cn_json *key = keys ? keys->first : NULL; key; key = key->next) {
        if (key->kind != CN_JSON_STRING || ++count > BULK_READ_MAX)
            return cn_v4_fail(bulk->call, err, CN_EINVALID, 10012, "keys are at most %d texts",
                              BULK_READ_MAX);
        if (!is_named(bulk, key))
            bulk->keys[bulk->count++] = key;
    }
    return 0;
}

static int bulk_value(struct bulk *bulk, size_t i, struct cn_err *err)
{
    struct cn_buf target = {0};
    value_target(bulk->call, &target, bulk->keys[i]->text, bulk->keys[i]->size);
    int status = cn_v4_forward(bulk->call, "GET", cn_buf_text(&target), NULL, &bulk->values[i]);
    cn_buf_fini(&target);
    bulk->found[i] = status == 200;
    bulk->size += bulk->found[i] ? bulk->values[i].size : 0;
    if (bulk->size > BULK_READ_BYTES_MAX)
        return cn_v4_fail(bulk->call, err, CN_ELIMIT, 10012,
                          "the values are more than %d MiB together: ask for fewer",
                          BULK_READ_BYTES_MAX >> 20);
    return status == 404 ? 0 : cn_v4_forwarded(bulk->call, status, &bulk->values[i], 10013, err);
}

static void bulk_write(const struct bulk *bulk)
{
    static const char head[] =
        "{\"success\":true,\"errors\":[],\"messages\":[],\"result\":{\"values\":{";
    struct cn_control_call *call = bulk->call;
    int rc = call->write(call, head, sizeof(head) - 1);
    for (size_t i = 0; i < bulk->count && rc == 0; i++) {
        struct cn_buf key = {0};
        cn_buf_append_str(&key, i ? "," : "");
        cn_buf_append_json(&key, bulk->keys[i]->text, bulk->keys[i]->size);
        cn_buf_append_str(&key, bulk->found[i] ? ":" : ":null");
        rc = call->write(call, key.data, key.size);
        cn_buf_fini(&key);
        if (rc == 0 && bulk->found[i])
            rc = cn_control_write_json(call, (const char *)bulk->values[i].data,
                                       bulk->values[i].size);
    }
    (void)call->write(call, "}}}\n", 4); /* whoever is gone needs no answer */
}

static int bulk_get(struct cn_control_call *call, struct cn_err *err)
{
    struct bulk bulk = {.call = call};
    int rc = bulk_keys(&bulk, err);
    for (size_t i = 0; i < bulk.count && rc == 0; i++)
        rc = bulk_value(&bulk, i, err);
    if (rc == 0)
        bulk_write(&bulk);
    for (size_t i = 0; i < bulk.count; i++)
        cn_buf_fini(&bulk.values[i]);
    return rc;
}

int cn_v4_kv_bulk(struct cn_control_call *call, struct cn_err *err)
{
    bool puts = strcmp(call->method, "PUT") == 0;
    if (call->path_count > 9 && strcmp(call->path[9], "get") == 0)
        return bulk_get(call, err);
    if (!call->json || call->json->kind != CN_JSON_ARRAY)
        return cn_v4_fail(call, err, CN_EINVALID, 10012, "the body must be a list");
    size_t count = 0;
    int rc = 0;
    for (const struct cn_json *item = call->json->first; item && rc == 0; item = item->next) {
        if (++count > BULK_MAX)
            return cn_v4_fail(call, err, CN_ELIMIT, 10012, "a list has at most %d entries",
                              BULK_MAX);
        rc = puts ? put_entry(call, item, err) : delete_entry(call, item, err);
    }
    if (rc < 0)
        return rc;
    struct cn_buf json = {0};
    cn_buf_printf(&json, "{\"successful_key_count\":%zu,\"unsuccessful_keys\":[]}", count);
    return cn_control_result(call, &json);
}
