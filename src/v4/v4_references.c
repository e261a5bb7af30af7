/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_references.c - who needs a worker: by a service binding, by a Durable Object of its
 * class, or as the one that is told of invocations. wrangler asks before it deletes.
 *
 *   Q1  A worker that another one needs is deleted only if that is asked for (force=true): the
 *       other one cannot be served without it. What serves counts, in every version that has a
 *       share. */
#include <string.h>

#include "base/mem.h"
#include "v4/v4.h"

enum kind { SERVICE, OBJECT, TAIL };

struct search {
    const char *worker;
    enum kind kind;
    struct cn_buf items;
    size_t count;
    const char *first; /* a script that needs it, or NULL */
};

/* {"name","service","environment"}, and the class of an object. */
static void append_reference(struct search *search, const char *script,
                             const struct cn_json *binding)
{
    const char *name = cn_json_text(binding, "name"), *class = cn_json_text(binding, "class_name");
    struct cn_buf *json = &search->items;
    search->first = search->first ? search->first : script;
    cn_buf_append_str(json, search->count++ ? ",{" : "{");
    if (search->kind == TAIL) {
        cn_buf_append_str(json, "\"consumer\":{");
        cn_v4_put_text(json, "service", search->worker);
        cn_v4_put_text(json, "environment", "production");
        cn_buf_append_str(json, "},\"producer\":{");
        cn_v4_put_text(json, "service", script);
        cn_v4_put_text(json, "environment", "production");
        cn_buf_append_str(json, "}}");
        return;
    }
    cn_v4_put_text(json, "name", name ? name : "");
    cn_v4_put_text(json, "service", script);
    cn_v4_put_text(json, "environment", "production");
    if (search->kind == OBJECT)
        cn_v4_put_text(json, "durable_object_namespace_name", class ? class : "");
    cn_buf_append_byte(json, '}');
}

static bool names(const struct cn_json *entry, const char *member, const char *worker)
{
    const char *text = cn_json_text(entry, member);
    return text && strcmp(text, worker) == 0;
}

static void search_version(struct search *search, const char *script, const struct cn_json *file)
{
    static const struct {
        const char *list, *type, *member;
    } places[] = {[SERVICE] = {"bindings", "service", "service"},
                  [OBJECT] = {"bindings", "durable_object_namespace", "script_name"},
                  [TAIL] = {"tail_consumers", NULL, "service"}};
    const struct cn_json *list = cn_json_find(file, places[search->kind].list);
    for (const struct cn_json *item = list && list->kind == CN_JSON_ARRAY ? list->first : NULL;
         item; item = item->next) {
        if ((!places[search->kind].type || names(item, "type", places[search->kind].type)) &&
            names(item, places[search->kind].member, search->worker))
            append_reference(search, script, item);
    }
}

static void search_scripts(struct cn_v4 *v4, const struct cn_depot_state *state,
                           struct search *search)
{
    for (size_t i = 0; i < state->script_count; i++) {
        const struct cn_depot_script *script = &state->scripts[i];
        for (size_t k = 0; k < script->serving.count && strcmp(script->name, search->worker) != 0;
             k++) {
            struct cn_err err = {0}; /* one that cannot be read needs nobody */
            struct cn_json *file =
                cn_depot_read_version(v4->depot, script->serving.items[k].version, &err);
            search_version(search, script->name, file);
            cn_json_free(file);
        }
    }
}

int cn_v4_check_needed(struct cn_control_call *call, const struct cn_depot_state *state,
                       const char *worker, struct cn_err *err)
{
    const char *force = cn_control_param(call, "force");
    int rc = 0;
    for (int kind = SERVICE; kind <= TAIL && rc == 0 && !(force && strcmp(force, "true") == 0);
         kind++) {
        struct search search = {.worker = worker, .kind = (enum kind)kind};
        search_scripts(cn_v4_of(call), state, &search);
        if (search.first)
            rc = cn_v4_fail(call, err, CN_EEXISTS, 10064,
                            "%s cannot be served without %s (%s): delete that first, or ask for "
                            "it with force=true",
                            search.first, worker,
                            kind == SERVICE  ? "a service binding"
                            : kind == OBJECT ? "a Durable Object"
                                             : "a tail consumer");
        cn_buf_fini(&search.items);
    }
    return rc;
}

/* The service bindings of the worker itself. */
static void append_outgoing(struct cn_v4 *v4, const struct cn_depot_script *script,
                            struct cn_buf *json)
{
    struct cn_err err = {0};
    struct cn_json *file = script->serving.count
                               ? cn_depot_read_version(v4->depot, cn_depot_serving(script), &err)
                               : NULL;
    const struct cn_json *list = cn_json_find(file, "bindings");
    size_t count = 0;
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        const char *service = cn_json_text(item, "service"), *name = cn_json_text(item, "name");
        if (!names(item, "type", "service") || !service || !name)
            continue;
        cn_buf_append_str(json, count++ ? ",{" : "{");
        cn_v4_put_text(json, "name", name);
        cn_v4_put_text(json, "service", service);
        cn_v4_put_text(json, "environment", "production");
        cn_buf_append_byte(json, '}');
    }
    cn_json_free(file);
}

static void append_search(struct cn_v4 *v4, const struct cn_depot_state *state, const char *worker,
                          enum kind kind, struct cn_buf *json)
{
    struct search search = {.worker = worker, .kind = kind};
    search_scripts(v4, state, &search);
    cn_buf_append(json, search.items.data, search.items.size);
    cn_buf_fini(&search.items);
}

int cn_v4_references(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    struct cn_buf json = {0};
    if (script) {
        cn_buf_append_str(&json, "{\"services\":{\"incoming\":[");
        append_search(v4, state, script->name, SERVICE, &json);
        cn_buf_append_str(&json, "],\"outgoing\":[");
        append_outgoing(v4, script, &json);
        cn_buf_append_str(&json, "]},\"durable_objects\":[");
        append_search(v4, state, script->name, OBJECT, &json);
        cn_buf_append_str(&json, "],\"dispatch_outbounds\":[]}");
    }
    cn_depot_state_unref(state);
    return json.size ? cn_control_result(call, &json) : err->code;
}

/* Who tells the worker of its invocations. */
int cn_v4_producers(struct cn_control_call *call, struct cn_err *err)
{
    (void)err;
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '[');
    append_search(v4, state, call->path[7], TAIL, &json);
    cn_buf_append_byte(&json, ']');
    cn_depot_state_unref(state);
    return cn_control_result(call, &json);
}
