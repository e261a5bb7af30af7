/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_scripts.c - what is deployed, and what belongs to a worker beside its versions:
 * schedules, routes, host names. */
#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/mem.h"
#include "v4/v4.h"

#define LIST_MAX 1000 /* entries of a request's list */

static const char *migration_tag(const struct cn_depot_script *script, struct cn_json **root)
{
    *root = NULL;
    if (!script->migrations.count)
        return NULL;
    const char *text = script->migrations.items[script->migrations.count - 1];
    *root = cn_json_parse(text, strlen(text), NULL);
    return cn_json_text(*root, "tag");
}

/* The members of a script as the platform lists it, without braces. */
static void append_script(struct cn_buf *json, const struct cn_depot_script *script)
{
    struct cn_json *root;
    const char *tag = migration_tag(script, &root);
    cn_v4_put_text(json, "id", script->name);
    cn_v4_put_text(json, "tag", script->id);
    cn_v4_put_text(json, "etag", cn_depot_serving(script));
    if (tag)
        cn_v4_put_text(json, "migration_tag", tag);
    cn_buf_append_str(json, ",\"created_on\":");
    cn_depot_append_time(json, script->created_ms);
    cn_buf_append_str(json, ",\"modified_on\":");
    cn_depot_append_time(json, script->modified_ms);
    cn_buf_append_str(json, ",\"tags\":[],\"usage_model\":\"standard\",\"last_deployed_from\":"
                            "\"wrangler\",\"logpush\":false,\"handlers\":[\"fetch\"]");
    cn_json_free(root);
}

static void append_environment(struct cn_buf *json, const struct cn_depot_script *script)
{
    cn_buf_append_str(json, "{\"environment\":\"production\",\"created_on\":");
    cn_depot_append_time(json, script->created_ms);
    cn_buf_append_str(json, ",\"modified_on\":");
    cn_depot_append_time(json, script->modified_ms);
    cn_buf_append_str(json, ",\"script\":{");
    append_script(json, script);
    cn_buf_append_str(json, "}}");
}

/* The service, or its one environment. */
int cn_v4_get_service(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_script *script = cn_depot_find(state, call->path[6]);
    struct cn_buf json = {0};
    int rc = 0;
    if (!script) {
        rc = cn_v4_fail(call, err, CN_ENOTFOUND, 10090,
                        "This Worker does not exist on this server.");
    } else if (call->path_count > 7) {
        append_environment(&json, script);
    } else {
        cn_buf_append_byte(&json, '{');
        cn_v4_put_text(&json, "id", script->name);
        cn_buf_append_str(&json, ",\"created_on\":");
        cn_depot_append_time(&json, script->created_ms);
        cn_buf_append_str(&json, ",\"modified_on\":");
        cn_depot_append_time(&json, script->modified_ms);
        cn_buf_append_str(&json, ",\"default_environment\":");
        append_environment(&json, script);
        cn_buf_append_str(&json, ",\"environments\":[");
        append_environment(&json, script);
        cn_buf_append_str(&json, "]}");
    }
    cn_depot_state_unref(state);
    return rc < 0 ? rc : cn_control_result(call, &json);
}

int cn_v4_list_scripts(struct cn_control_call *call, struct cn_err *err)
{
    (void)err;
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '[');
    for (size_t i = 0; i < state->script_count; i++) {
        cn_buf_append_str(&json, i ? ",{" : "{");
        append_script(&json, &state->scripts[i]);
        cn_buf_append_byte(&json, '}');
    }
    cn_buf_append_byte(&json, ']');
    cn_depot_state_unref(state);
    return cn_control_result(call, &json);
}

/* A worker as the newer part of the platform's API has it. Its address is known here, and wrangler
 * shows it. */
static void append_worker(struct cn_v4 *v4, struct cn_buf *json,
                          const struct cn_depot_script *script)
{
    const char *domain = cn_depot_domain(v4->depot);
    char *url = cn_sprintf("https://%s.%s", script->name, domain ? domain : "localhost");
    cn_buf_append_byte(json, '{');
    cn_v4_put_text(json, "id", script->id);
    cn_v4_put_text(json, "name", script->name);
    cn_buf_append_str(json, ",\"created_on\":");
    cn_depot_append_time(json, script->created_ms);
    cn_buf_append_str(json, ",\"updated_on\":");
    cn_depot_append_time(json, script->modified_ms);
    cn_buf_printf(json,
                  ",\"tags\":[],\"tail_consumers\":[],\"logpush\":false,"
                  "\"subdomain\":{\"enabled\":%s,\"previews_enabled\":%s",
                  script->subdomain ? "true" : "false", script->previews ? "true" : "false");
    cn_v4_put_text(json, "url", url);
    cn_buf_append_str(json, "}}");
    cn_free(url);
}

int cn_v4_workers(struct cn_control_call *call, struct cn_err *err)
{
    (void)err;
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    struct cn_buf items = {0};
    size_t count = 0;
    for (size_t i = 0; i < state->script_count && cn_v4_is_first_page(call); i++) {
        cn_buf_append_str(&items, count++ ? "," : "");
        append_worker(cn_v4_of(call), &items, &state->scripts[i]);
    }
    cn_depot_state_unref(state);
    return cn_v4_list(call, &items, count);
}

/* By its name or its id. */
int cn_v4_worker(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_script *script = cn_depot_find(state, call->path[6]);
    for (size_t i = 0; !script && i < state->script_count; i++) {
        if (strcmp(state->scripts[i].id, call->path[6]) == 0)
            script = &state->scripts[i];
    }
    struct cn_buf json = {0};
    if (script)
        append_worker(cn_v4_of(call), &json, script);
    cn_depot_state_unref(state);
    return json.size ? cn_control_result(call, &json)
                     : cn_v4_fail(call, err, CN_ENOTFOUND, 10007,
                                  "This Worker does not exist on this server.");
}

int cn_v4_delete_script(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_v4_change(call, err);
    if (!state)
        return err->code;
    int rc = cn_v4_script(call, state, 6, err) ? cn_v4_check_needed(call, state, call->path[6], err)
                                               : err->code;
    if (rc < 0) {
        cn_depot_change_drop(v4->depot, state);
        return rc;
    }
    cn_depot_remove_script(state, call->path[6]);
    cn_v4_note(call, state, "delete", call->path[6], "");
    rc = cn_v4_deploy(call, state, err);
    if (rc < 0)
        return rc;
    cn_info("%s was deleted by %s", call->path[6], call->who.name);
    struct cn_buf json = {0};
    cn_buf_append_str(&json, "null");
    return cn_control_result(call, &json);
}

/* --- settings ------------------------------------------------------------------------------------
 */

/* Of the version that serves. */
int cn_v4_settings(struct cn_control_call *call, struct cn_err *err)
{
    static const char *const keys[] = {"compatibility_date", "compatibility_flags", "limits",
                                       "observability",      "tail_consumers",      "placement"};
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    struct cn_json *file = script && script->serving.count
                               ? cn_depot_read_version(v4->depot, cn_depot_serving(script), err)
                               : NULL;
    struct cn_buf json = {0};
    if (script && (file || !script->serving.count)) {
        cn_buf_append_str(&json, "{\"usage_model\":\"standard\",\"tags\":[],\"logpush\":false");
        cn_v4_append_bindings(&json, file);
        for (size_t i = 0; i < CN_ARRAY_COUNT(keys); i++) {
            const struct cn_json *value = cn_json_find(file, keys[i]);
            if (!value)
                continue;
            cn_buf_printf(&json, ",\"%s\":", keys[i]);
            cn_json_write(&json, value);
        }
        cn_buf_append_byte(&json, '}');
    }
    cn_json_free(file);
    cn_depot_state_unref(state);
    return json.size ? cn_control_result(call, &json) : err->code;
}

/* wrangler sends here, after a deployment by version, what it has sent with the version too:
 * observability, logpush, tail consumers. What a version has stays. */
int cn_v4_patch_settings(struct cn_control_call *call, struct cn_err *err)
{
    return cn_v4_settings(call, err);
}

/* --- host names
 * ----------------------------------------------------------------------------------- */

int cn_v4_subdomain(struct cn_control_call *call, struct cn_err *err)
{
    (void)err;
    const char *domain = cn_depot_domain(cn_v4_of(call)->depot);
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '{');
    cn_v4_put_text(&json, "subdomain", domain ? domain : "localhost");
    cn_buf_append_byte(&json, '}');
    return cn_control_result(call, &json);
}

static int answer_subdomain(struct cn_control_call *call, const struct cn_depot_script *script)
{
    struct cn_buf json = {0};
    cn_buf_printf(&json, "{\"enabled\":%s,\"previews_enabled\":%s}",
                  script->subdomain ? "true" : "false", script->previews ? "true" : "false");
    return cn_control_result(call, &json);
}

int cn_v4_script_subdomain(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    const struct cn_json *enabled = cn_json_find(call->json, "enabled");
    const struct cn_json *previews = cn_json_find(call->json, "previews_enabled");
    if (strcmp(call->method, "GET") == 0) {
        struct cn_depot_state *state = cn_depot_take(v4->depot);
        const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
        int rc = script ? answer_subdomain(call, script) : err->code;
        cn_depot_state_unref(state);
        return rc;
    }
    if (!enabled || enabled->kind != CN_JSON_BOOL)
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "\"enabled\" must be true or false");
    struct cn_depot_state *state = cn_v4_change(call, err);
    if (!state)
        return err->code;
    struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    if (!script) {
        cn_depot_change_drop(v4->depot, state);
        return err->code;
    }
    bool changes = script->subdomain != enabled->boolean;
    script->subdomain = enabled->boolean;
    script->previews = previews && previews->boolean;
    if (changes)
        cn_v4_note(call, state, "subdomain", script->name, script->subdomain ? "on" : "off");
    struct cn_depot_script shown = {.subdomain = script->subdomain, .previews = script->previews};
    int rc = changes ? cn_v4_deploy(call, state, err) : cn_v4_keep(call, state, err);
    return rc < 0 ? rc : answer_subdomain(call, &shown);
}

/* Reads the texts of a list: items that are texts, or objects whose member is one. */
static int read_list(struct cn_control_call *call, const struct cn_json *list, const char *member,
                     struct cn_depot_texts *texts, struct cn_err *err)
{
    if (!list || list->kind != CN_JSON_ARRAY)
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "the body must be a list");
    for (const struct cn_json *item = list->first; item; item = item->next) {
        const struct cn_json *value =
            item->kind == CN_JSON_STRING ? item : cn_json_find(item, member);
        const char *text = value && value->kind == CN_JSON_STRING ? value->text : NULL;
        if (!text || !*text || strlen(text) != value->size || value->size > 1000 ||
            texts->count >= LIST_MAX)
            return cn_v4_fail(call, err, CN_EINVALID, 10021, "an entry of the list has no %s",
                              member);
        cn_depot_texts_add(texts, text);
    }
    return 0;
}

/* Whether it was there. */
static bool remove_text(struct cn_depot_texts *texts, const char *text)
{
    for (size_t i = 0; i < texts->count; i++) {
        if (strcasecmp(texts->items[i], text) != 0)
            continue;
        cn_free(texts->items[i]);
        texts->items[i] = texts->items[--texts->count];
        return true;
    }
    return false;
}

/* Z1: domains that others have are taken from them, if that is asked for. */
static int take_over(struct cn_control_call *call, struct cn_depot_state *state,
                     const struct cn_depot_script *script, const struct cn_depot_texts *domains,
                     struct cn_err *err)
{
    const struct cn_json *overrides = cn_json_find(call->json, "override_existing_origin");
    bool may = overrides && overrides->boolean;
    for (size_t i = 0; i < domains->count; i++) {
        for (size_t k = 0; k < state->script_count; k++) {
            struct cn_depot_script *other = &state->scripts[k];
            if (other != script && remove_text(&other->domains, domains->items[i]) && !may)
                return cn_v4_fail(call, err, CN_EEXISTS, 100117, "the domain %.60s is %s's already",
                                  domains->items[i], other->name);
        }
    }
    return 0;
}

/* A route is one worker's: who else has it must let go of it first. */
static int check_routes(struct cn_control_call *call, const struct cn_depot_state *state,
                        const struct cn_depot_script *script, const struct cn_depot_texts *routes,
                        struct cn_err *err)
{
    for (size_t i = 0; i < state->script_count; i++) {
        const struct cn_depot_script *other = &state->scripts[i];
        for (size_t k = 0; k < other->routes.count * routes->count && other != script; k++) {
            const char *route = routes->items[k % routes->count];
            if (strcmp(other->routes.items[k / routes->count], route) == 0)
                return cn_v4_fail(call, err, CN_EEXISTS, 10020,
                                  "the route %.60s is assigned to another worker already: %s",
                                  route, other->name);
        }
    }
    return 0;
}

/* Replaces a list of the script and deploys. `offset` is that of its struct cn_depot_texts. */
static int replace_list(struct cn_control_call *call, size_t offset, struct cn_depot_texts *texts,
                        struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_v4_change(call, err);
    if (!state) {
        cn_depot_texts_clear(texts);
        return err->code;
    }
    struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    if (!script) {
        cn_depot_change_drop(v4->depot, state);
        cn_depot_texts_clear(texts);
        return err->code;
    }
    struct cn_depot_texts *list = (struct cn_depot_texts *)((char *)script + offset);
    bool same = list->count == texts->count;
    for (size_t i = 0; same && i < list->count; i++)
        same = strcmp(list->items[i], texts->items[i]) == 0;
    if (same) {
        cn_depot_change_drop(v4->depot, state);
        cn_depot_texts_clear(texts);
        return 0;
    }
    int rc = 0;
    if (offset == offsetof(struct cn_depot_script, domains))
        rc = take_over(call, state, script, texts, err);
    else if (offset == offsetof(struct cn_depot_script, routes))
        rc = check_routes(call, state, script, texts, err);
    if (rc < 0) {
        cn_depot_change_drop(v4->depot, state);
        cn_depot_texts_clear(texts);
        return rc;
    }
    cn_depot_texts_clear(list);
    *list = *texts; /* the state's from here on */
    *texts = (struct cn_depot_texts){0};
    cn_v4_note(call, state, call->path[7], script->name, list->count ? list->items[0] : "none");
    return cn_v4_deploy(call, state, err);
}

static void append_list(struct cn_buf *json, const struct cn_depot_texts *texts, const char *member)
{
    cn_buf_append_byte(json, '[');
    for (size_t i = 0; i < texts->count; i++) {
        cn_buf_append_str(json, i ? ",{" : "{");
        cn_v4_put_text(json, member, texts->items[i]);
        cn_buf_append_byte(json, '}');
    }
    cn_buf_append_byte(json, ']');
}

int cn_v4_schedules(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_texts texts = {0};
    if (strcmp(call->method, "PUT") == 0) {
        int rc = read_list(call, call->json, "cron", &texts, err);
        if (rc == 0)
            rc = replace_list(call, offsetof(struct cn_depot_script, crons), &texts, err);
        cn_depot_texts_clear(&texts);
        if (rc < 0)
            return rc;
    }
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    struct cn_buf json = {0};
    if (script) {
        cn_buf_append_str(&json, "{\"schedules\":");
        append_list(&json, &script->crons, "cron");
        cn_buf_append_byte(&json, '}');
    }
    cn_depot_state_unref(state);
    return json.size ? cn_control_result(call, &json) : err->code;
}

int cn_v4_routes_put(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_texts texts = {0};
    struct cn_buf json = {0};
    int rc = read_list(call, call->json, "pattern", &texts, err);
    if (rc == 0) {
        append_list(&json, &texts, "pattern");
        rc = replace_list(call, offsetof(struct cn_depot_script, routes), &texts, err);
    }
    cn_depot_texts_clear(&texts);
    if (rc == 0)
        return cn_control_result(call, &json);
    cn_buf_fini(&json);
    return rc;
}

static bool host_is_good(const char *host)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t size = strlen(host);
    return size <= 253 && strspn(host, letters) == size && host[0] != '.' &&
           host[size - 1] != '.' && !strstr(host, "..");
}

int cn_v4_domains_put(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_texts texts = {0};
    struct cn_buf json = {0};
    int rc = read_list(call, cn_json_find(call->json, "origins"), "hostname", &texts, err);
    for (size_t i = 0; i < texts.count && rc == 0; i++) {
        if (!host_is_good(texts.items[i]))
            rc = cn_v4_fail(call, err, CN_EINVALID, 10021, "%.60s is not the name of a host",
                            texts.items[i]);
    }
    if (rc == 0) {
        append_list(&json, &texts, "hostname");
        rc = replace_list(call, offsetof(struct cn_depot_script, domains), &texts, err);
    }
    cn_depot_texts_clear(&texts);
    if (rc == 0)
        return cn_control_result(call, &json);
    cn_buf_fini(&json);
    return rc;
}
