/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_zones.c - zones and domains as wrangler asks for them before it changes routes. A
 * server answers for every host name that leads to it: each is a zone of its own, whose id is made
 * of the name, and whose routes are those of all workers.
 *
 *   Z1  A custom domain is one worker's. Who asks for one that another has gets it only if they say
 *       so (override_existing_origin, which wrangler sends when nobody can be asked). */
#include <string.h>

#include "v4/v4.h"

#define HOST_SIZE_MAX 253

static void append_id(struct cn_buf *json, const char *key, const char *text)
{
    char id[33];
    cn_depot_hash(text, strlen(text), id);
    cn_v4_put_text(json, key, id);
}

/* GET /zones?name=HOST&account.id=ID */
int cn_v4_zones(struct cn_control_call *call, struct cn_err *err)
{
    (void)err;
    const char *name = cn_control_param(call, "name"),
               *account = cn_control_param(call, "account.id");
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    bool own = !account || strcmp(account, state->account) == 0; /* W1 */
    struct cn_buf items = {0};
    bool found = own && name && *name && strlen(name) <= HOST_SIZE_MAX && cn_v4_is_first_page(call);
    if (found) {
        cn_buf_append_byte(&items, '{');
        append_id(&items, "id", name);
        cn_v4_put_text(&items, "name", name);
        cn_v4_put_text(&items, "status", "active");
        cn_buf_append_str(&items, ",\"account\":{");
        cn_v4_put_text(&items, "id", state->account);
        cn_buf_append_str(&items, "}}");
    }
    cn_depot_state_unref(state);
    return cn_v4_list(call, &items, found);
}

/* GET /zones/ID/workers/routes */
int cn_v4_zone_routes(struct cn_control_call *call, struct cn_err *err)
{
    (void)err;
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    struct cn_buf items = {0};
    size_t count = 0;
    for (size_t i = 0; i < state->script_count && cn_v4_is_first_page(call); i++) {
        const struct cn_depot_script *script = &state->scripts[i];
        for (size_t k = 0; k < script->routes.count; k++) {
            cn_buf_append_str(&items, count++ ? ",{" : "{");
            append_id(&items, "id", script->routes.items[k]);
            cn_v4_put_text(&items, "pattern", script->routes.items[k]);
            cn_v4_put_text(&items, "script", script->name);
            cn_buf_append_byte(&items, '}');
        }
    }
    cn_depot_state_unref(state);
    return cn_v4_list(call, &items, count);
}

/* --- custom domains ----------------------------------------------------------------------------
 */

const struct cn_depot_script *cn_v4_domain_owner(const struct cn_depot_state *state,
                                                 const char *hostname)
{
    for (size_t i = 0; i < state->script_count; i++) {
        const struct cn_depot_texts *domains = &state->scripts[i].domains;
        for (size_t k = 0; k < domains->count; k++) {
            if (strcasecmp(domains->items[k], hostname) == 0)
                return &state->scripts[i];
        }
    }
    return NULL;
}

static void append_domain(struct cn_buf *json, const char *hostname, const char *service,
                          bool modified)
{
    cn_buf_append_str(json, json->size && json->data[json->size - 1] == '}' ? ",{" : "{");
    append_id(json, "id", hostname);
    append_id(json, "zone_id", hostname);
    cn_v4_put_text(json, "zone_name", hostname);
    cn_v4_put_text(json, "hostname", hostname);
    cn_v4_put_text(json, "service", service);
    cn_v4_put_text(json, "environment", "production");
    cn_buf_append_str(json, modified ? ",\"modified\":true}" : "}");
}

/* POST .../domains/changeset: what would change if these host names were the script's. */
int cn_v4_domains_changeset(struct cn_control_call *call, struct cn_err *err)
{
    const char *worker = call->path[6];
    struct cn_buf added = {0}, updated = {0}, json = {0};
    if (!call->json || call->json->kind != CN_JSON_ARRAY)
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "the body must be a list");
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    for (const struct cn_json *origin = call->json->first; origin; origin = origin->next) {
        const char *hostname = cn_json_text(origin, "hostname");
        const struct cn_depot_script *owner = hostname ? cn_v4_domain_owner(state, hostname) : NULL;
        if (hostname && !owner)
            append_domain(&added, hostname, worker, false);
        else if (owner && strcmp(owner->name, worker) != 0)
            append_domain(&updated, hostname, owner->name, true);
    }
    cn_depot_state_unref(state);
    cn_buf_printf(&json, "{\"added\":[%.*s],\"removed\":[],\"updated\":[%.*s],\"conflicting\":[]}",
                  (int)added.size, added.data ? (const char *)added.data : "", (int)updated.size,
                  updated.data ? (const char *)updated.data : "");
    cn_buf_fini(&added);
    cn_buf_fini(&updated);
    return cn_control_result(call, &json);
}

/* GET .../workers/domains (all of them) and .../workers/domains/records/ID */
int cn_v4_domains(struct cn_control_call *call, struct cn_err *err)
{
    const char *asked = call->path_count == 8 ? call->path[7] : NULL;
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    struct cn_buf items = {0};
    size_t count = 0;
    for (size_t i = 0; i < state->script_count && cn_v4_is_first_page(call); i++) {
        const struct cn_depot_texts *domains = &state->scripts[i].domains;
        for (size_t k = 0; k < domains->count; k++) {
            char id[33];
            cn_depot_hash(domains->items[k], strlen(domains->items[k]), id);
            if (asked && strcmp(asked, id) != 0)
                continue;
            append_domain(&items, domains->items[k], state->scripts[i].name, false);
            count++;
        }
    }
    cn_depot_state_unref(state);
    if (!asked)
        return cn_v4_list(call, &items, count);
    if (count == 1)
        return cn_control_result(call, &items);
    cn_buf_fini(&items);
    return cn_v4_fail(call, err, CN_ENOTFOUND, 100114, "there is no such domain");
}
