/* SPDX-License-Identifier: Apache-2.0 */
/* admin/control_services.c - which workers are served, what they are bound to, and the namespaces
 * of services: what the handlers of KV, R2, queues and D1 share. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/handler.h"
#include "admin/spread.h"
#include "base/mem.h"
#include "object/node.h"
#include "object/shard_list.h"
#include "service/service.h"
#include "store/catalog.h"
#include "store/store.h"
#include "worker/script.h"

/* --- namespaces ------------------------------------------------------------------------------ */

static struct cn_node *find_node(struct cn_control_call *call, struct cn_err *err)
{
    const struct cn_control *control = call->control;
    if (control->node)
        return control->node;
    if (control->services)
        return control->services(control->services_data, err);
    cn_err_set(err, CN_EUNSUPPORTED, "this needs a running server");
    return NULL;
}

int cn_control_service(struct cn_control_call *call, const char *service, const char *name,
                       struct cn_namespace **ns, struct cn_err *err)
{
    uint32_t id;
    char *full = cn_sprintf("$%s/%s", service, name);
    int rc = cn_control_namespace(call, full, &id, err);
    /* Of a cluster this node may have none of its objects; what is deployed it knows. */
    *ns = rc == CN_ENOTFOUND && call->control->node
              ? cn_node_namespace_named(call->control->node, full)
              : NULL;
    if (*ns) {
        cn_free(full);
        return 0;
    }
    if (rc == CN_ENOTFOUND)
        cn_err_set(err, rc, "there is no %s %s here", service, name);
    struct cn_node *node = rc == 0 ? find_node(call, err) : NULL;
    if (node)
        rc = cn_node_namespace_open(node, id, full, ns, err);
    else if (rc == 0)
        rc = err->code;
    cn_free(full);
    return rc;
}

int cn_control_service_make(struct cn_control_call *call, const char *service, const char *name,
                            struct cn_err *err)
{
    struct cn_namespace *ns;
    struct cn_node *node = find_node(call, err);
    if (!node)
        return err->code;
    char *full = cn_sprintf("$%s/%s", service, name);
    int rc = cn_node_namespace(node, full, &ns, err);
    cn_free(full);
    return rc;
}

int cn_control_ask(struct cn_control_call *call, struct cn_service_call *request,
                   struct cn_err *err)
{
    int rc = cn_control_check_good(call, err);
    return rc < 0 ? rc : cn_service_call_wait(request, request->call.ns->node, NULL, err);
}

/* Of a cluster this node may have none of its objects: the name of what is deployed. 1; 0: there is
 * no such. */
static int name_deployed(struct cn_control_call *call, uint32_t id,
                         char name[CN_OBJECT_NAME_MAX + 1])
{
    struct cn_node *node = call->control->node;
    const struct cn_namespace *ns = node ? cn_node_namespace_find(node, id) : NULL;
    if (ns)
        snprintf(name, CN_OBJECT_NAME_MAX + 1, "%s", ns->name);
    return ns != NULL;
}

/* Namespaces of all nodes. */
struct census {
    struct cn_control_call *call;
    const char *prefix;
    cn_control_each each;
    void *data;
    struct {
        uint32_t id;
        char *name; /* owned */
    } * items;      /* owned */
    size_t count;
};

static void count_in(struct census *census, int64_t id, const char *name)
{
    if (id < 1 || id > UINT32_MAX || strncmp(name, census->prefix, strlen(census->prefix)) != 0)
        return;
    size_t at = 0;
    while (at < census->count && census->items[at].id < id)
        at++;
    if (at < census->count && census->items[at].id == id)
        return;
    census->items = cn_realloc(census->items, (census->count + 1) * sizeof(*census->items));
    memmove(census->items + at + 1, census->items + at,
            (census->count++ - at) * sizeof(*census->items));
    census->items[at].id = (uint32_t)id;
    census->items[at].name = cn_strdup(name);
}

static int take_census(void *data, const char *node, const struct cn_json *answer,
                       struct cn_err *err)
{
    const struct cn_json *list = cn_json_find(answer, "namespaces");
    (void)node;
    (void)err;
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        const char *name = cn_json_text(item, "name");
        if (name)
            count_in(data, cn_json_int(item, "number"), name);
    }
    return 0;
}

static int each_of_all(struct census *census, struct cn_err *err)
{
    struct cn_control_call *call = census->call;
    char name[CN_OBJECT_NAME_MAX + 1];
    int rc = cn_spread_get(call, "/api/namespaces", take_census, NULL, census, err);
    for (uint32_t id = 1; rc == 0 && id <= cn_node_namespace_last(call->control->node); id++) {
        if (name_deployed(call, id, name))
            count_in(census, id, name);
    }
    for (size_t i = 0; i < census->count; i++) {
        if (rc >= 0)
            rc = census->each(call, census->items[i].id,
                              census->items[i].name + strlen(census->prefix), census->data, err);
        cn_free(census->items[i].name);
    }
    cn_free(census->items);
    return rc < 0 ? rc : 0;
}

int cn_control_each_service(struct cn_control_call *call, const char *service, cn_control_each each,
                            void *data, struct cn_err *err)
{
    struct cn_shards *shards = call->control->shards;
    char name[CN_OBJECT_NAME_MAX + 1], prefix[32];
    int prefix_size = snprintf(prefix, sizeof(prefix), "$%s/", service);
    uint32_t last;
    if (cn_spread_is(call)) {
        struct census census = {.call = call, .prefix = prefix, .each = each, .data = data};
        return each_of_all(&census, err);
    }
    int rc = cn_shards_namespace_last(shards, &last, err);
    uint32_t known = call->control->node ? cn_node_namespace_last(call->control->node) : 0;
    for (uint32_t id = 1; rc >= 0 && (id <= last || id <= known); id++) {
        rc = cn_shards_namespace_name(shards, id, name, err);
        if (rc == 0)
            rc = name_deployed(call, id, name);
        if (rc == 1 && strncmp(name, prefix, (size_t)prefix_size) == 0)
            rc = each(call, id, name + prefix_size, data, err);
    }
    return rc < 0 ? rc : 0;
}

/* --- bindings -------------------------------------------------------------------------------- */

struct cn_deployment *cn_control_deployment(struct cn_control_call *call)
{
    const struct cn_control *control = call->control;
    return control->deployment ? control->deployment(control->deploy_data) : NULL;
}

/* The bindings of a script, in options.bindings of the prelude (deploy/deploy_env.h). The caller
 * frees the tree. */
static const struct cn_json *read_bindings(const struct cn_script *script, struct cn_json **tree)
{
    struct cn_err err;
    const char *options = script->options_json;
    *tree = options ? cn_json_parse(options, strlen(options), &err) : NULL;
    const struct cn_json *bindings = cn_json_find(*tree, "bindings");
    return bindings ? bindings->first : NULL;
}

void cn_control_append_bindings(struct cn_control_call *call, struct cn_buf *out, uint32_t id,
                                char **title)
{
    struct cn_deployment *deployment = cn_control_deployment(call);
    bool first = true;
    cn_buf_append_str(out, ",\"bindings\":[");
    for (size_t i = 0; deployment && i < deployment->script_count; i++) {
        const struct cn_script *script = deployment->scripts[i];
        struct cn_json *tree;
        if (script->beside)
            continue;
        for (const struct cn_json *each = read_bindings(script, &tree); each; each = each->next) {
            const char *name = cn_json_text(each, "name"), *called = cn_json_text(each, "title");
            if (cn_json_int(each, "ns") != id || !name || script->name[0] == '$')
                continue;
            cn_buf_append_str(out, first ? "{\"worker\":" : ",{\"worker\":");
            cn_buf_append_json(out, script->name, strlen(script->name));
            cn_buf_append_str(out, ",\"name\":");
            cn_buf_append_json(out, name, strlen(name));
            cn_buf_append_byte(out, '}');
            first = false;
            if (title && !*title)
                *title = cn_strdup(called ? called : name);
        }
        cn_json_free(tree);
    }
    cn_buf_append_byte(out, ']');
    if (deployment)
        cn_deployment_unref(deployment);
}

/* --- workers --------------------------------------------------------------------------------- */

/* ,"NAME":TEXT */
static void append_member(struct cn_buf *out, const char *name, const char *text)
{
    cn_buf_printf(out, ",\"%s\":", name);
    if (text)
        cn_buf_append_json(out, text, strlen(text));
    else
        cn_buf_append_str(out, "null");
}

/* What a binding leads to: a namespace, by its name without the service; a worker; a dataset. */
static void append_target(struct cn_control_call *call, struct cn_buf *out,
                          const struct cn_json *binding)
{
    const char *title = cn_json_text(binding, "title"), *worker = cn_json_text(binding, "worker");
    const char *entrypoint = cn_json_text(binding, "entrypoint");
    int64_t id = cn_json_int(binding, "ns");
    char name[CN_OBJECT_NAME_MAX + 1];
    struct cn_err err;
    const char *target = title ? title : worker;
    if (id && call->control->shards &&
        (cn_shards_namespace_name(call->control->shards, (uint32_t)id, name, &err) == 1 ||
         name_deployed(call, (uint32_t)id, name))) {
        const char *slash = name[0] == '$' ? strchr(name, '/') : NULL;
        target = slash ? slash + 1 : name;
    }
    append_member(out, "target", target);
    if (entrypoint)
        append_member(out, "entrypoint", entrypoint);
}

static void append_worker_bindings(struct cn_control_call *call, struct cn_buf *out,
                                   const struct cn_script *script)
{
    struct cn_json *tree;
    struct cn_err err;
    bool first = true;
    cn_buf_append_str(out, ",\"bindings\":[");
    for (const struct cn_json *each = read_bindings(script, &tree); each; each = each->next) {
        cn_buf_append_str(out, first ? "{\"type\":" : ",{\"type\":");
        const char *type = cn_json_text(each, "type"), *name = cn_json_text(each, "name");
        cn_buf_append_json(out, type ? type : "", type ? strlen(type) : 0);
        append_member(out, "name", name);
        append_target(call, out, each);
        cn_buf_append_byte(out, '}');
        first = false;
    }
    cn_json_free(tree);
    /* Of variables only the names: a secret is one of them. */
    const char *env = script->env_json;
    tree = env ? cn_json_parse(env, strlen(env), &err) : NULL;
    for (const struct cn_json *each = tree ? tree->first : NULL; each; each = each->next) {
        cn_buf_append_str(out, first ? "{\"type\":\"var\"" : ",{\"type\":\"var\"");
        append_member(out, "name", each->name);
        cn_buf_append_str(out, ",\"target\":null}");
        first = false;
    }
    cn_json_free(tree);
    cn_buf_append_byte(out, ']');
}

static bool is_class(const struct cn_script *script, const char *name)
{
    for (size_t i = 0; i < script->class_count; i++) {
        if (strcmp(script->classes[i].name, name) == 0)
            return true;
    }
    return false;
}

/* What the script exports besides its classes of objects. */
static void append_entrypoints(struct cn_buf *out, const struct cn_script *script,
                               const struct cn_json *about)
{
    const struct cn_json *exports = cn_json_find(about, "exports");
    bool first = true;
    cn_buf_append_str(out, ",\"entrypoints\":[");
    for (const struct cn_json *each = exports ? exports->first : NULL; each; each = each->next) {
        if (each->kind != CN_JSON_STRING || is_class(script, each->text))
            continue;
        cn_buf_append_str(out, first ? "" : ",");
        cn_buf_append_json(out, each->text, each->size);
        first = false;
    }
    cn_buf_append_byte(out, ']');
}

static void append_classes(struct cn_buf *out, const struct cn_script *script)
{
    cn_buf_append_str(out, ",\"classes\":[");
    for (size_t i = 0; i < script->class_count; i++) {
        const struct cn_script_class *class_ = &script->classes[i];
        const char *full = class_->ns->name;
        cn_buf_append_str(out, i ? ",{\"name\":" : "{\"name\":");
        cn_buf_append_json(out, class_->name, strlen(class_->name));
        append_member(out, "namespace", full);
        cn_buf_append_byte(out, '}');
    }
    cn_buf_append_byte(out, ']');
}

/* Of its versions, those that do not serve (worker/script.h, F3). */
static void append_failures(struct cn_buf *out, const struct cn_deployment *deployment,
                            size_t first)
{
    bool any = false;
    cn_buf_append_str(out, ",\"failures\":[");
    for (size_t at = first;; at = deployment->scripts[at]->next) {
        struct cn_script *script = deployment->scripts[at];
        char *failure = cn_script_failure(script);
        if (failure) {
            cn_buf_append_str(out, any ? ",{\"text\":" : "{\"text\":");
            cn_buf_append_json(out, failure, strlen(failure));
            append_member(out, "version", script->version);
            append_member(out, "wayBack", script->way_back);
            cn_buf_append_byte(out, '}');
            any = true;
        }
        cn_free(failure);
        if (!script->next)
            break;
    }
    cn_buf_append_byte(out, ']');
}

static void append_worker(struct cn_control_call *call, struct cn_buf *out,
                          const struct cn_deployment *deployment, size_t at)
{
    const struct cn_script *script = deployment->scripts[at];
    struct cn_err err;
    struct cn_json *about = NULL, *options = NULL;
    if (script->about_json)
        about = cn_json_parse(script->about_json, strlen(script->about_json), &err);
    if (script->options_json)
        options = cn_json_parse(script->options_json, strlen(script->options_json), &err);
    cn_buf_append_str(out, "{\"name\":");
    cn_buf_append_json(out, script->name, strlen(script->name));
    append_member(out, "main", cn_json_text(about, "main"));
    append_member(out, "compiled", cn_json_text(about, "worker"));
    append_failures(out, deployment, at);
    append_member(out, "compatibilityDate", cn_json_text(options, "compatibilityDate"));
    const struct cn_json *routes = cn_json_find(about, "routes");
    cn_buf_append_str(out, ",\"routes\":[");
    for (const struct cn_json *each = routes ? routes->first : NULL; each; each = each->next) {
        cn_buf_append_json(out, each->text, each->size);
        cn_buf_append_str(out, each->next ? "," : "");
    }
    cn_buf_append_byte(out, ']');
    append_worker_bindings(call, out, script);
    append_entrypoints(out, script, about);
    append_classes(out, script);
    cn_buf_append_str(out, ",\"crons\":[");
    for (size_t i = 0; i < script->cron_count; i++) {
        cn_buf_append_str(out, i ? "," : "");
        cn_buf_append_json(out, script->crons[i], strlen(script->crons[i]));
    }
    cn_buf_printf(out, "],\"deployedAt\":%" PRId64 "}", cn_json_int(about, "deployedAt"));
    cn_json_free(about);
    cn_json_free(options);
}

/* GET /api/workers */
int cn_control_workers(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_deployment *deployment = cn_control_deployment(call);
    struct cn_buf *out = &call->scratch;
    if (!deployment)
        return call->control->deployment
                   ? cn_err_set(err, CN_ECLOSED, "the server is starting")
                   : cn_err_set(err, CN_EUNSUPPORTED, "this needs a running server");
    bool first = true;
    cn_buf_append_byte(out, '[');
    for (size_t i = 0; i < deployment->script_count; i++) {
        if (deployment->scripts[i]->name[0] == '$' || deployment->scripts[i]->beside)
            continue; /* the server's own, and further versions */
        cn_buf_append_str(out, first ? "" : ",");
        append_worker(call, out, deployment, i);
        first = false;
    }
    cn_buf_append_byte(out, ']');
    cn_deployment_unref(deployment);
    return cn_control_answer(call, out);
}

/* --- lists ----------------------------------------------------------------------------------- */

struct listing {
    const char *title; /* what a binding calls it, as a member */
    bool first;
};

static int append_listed(struct cn_control_call *call, uint32_t id, const char *name, void *data,
                         struct cn_err *err)
{
    struct cn_buf *out = &call->scratch, bindings = {0};
    struct listing *listing = data;
    uint64_t count, bytes;
    char *title = NULL;
    int rc = cn_shards_count_objects(call->control->shards, id, &count, &bytes, err);
    if (rc < 0)
        return rc;
    cn_control_append_bindings(call, &bindings, id, &title);
    cn_buf_append_str(out, listing->first ? "{\"id\":" : ",{\"id\":");
    cn_buf_append_json(out, name, strlen(name));
    append_member(out, listing->title, title ? title : name);
    cn_buf_printf(out, ",\"bytes\":%" PRIu64, bytes);
    if (call->relayed)
        cn_buf_printf(out, ",\"number\":%" PRIu32, id);
    cn_buf_append(out, bindings.data, bindings.size);
    cn_buf_append_byte(out, '}');
    cn_buf_fini(&bindings);
    cn_free(title);
    listing->first = false;
    return 0;
}

/* --- lists of all nodes ---------------------------------------------------------------------- */

struct sum {
    const struct cn_json *entry; /* of the answer that had it first */
    int64_t number, bytes;
};

struct sums {
    struct cn_control_call *call;
    const char *member;
    struct sum *items; /* owned */
    size_t count;
};

static int take_listed(void *data, const char *node, const struct cn_json *answer,
                       struct cn_err *err)
{
    struct sums *sums = data;
    const struct cn_json *list = cn_json_find(answer, sums->member);
    (void)node;
    (void)err;
    for (const struct cn_json *each = list ? list->first : NULL; each; each = each->next) {
        int64_t number = cn_json_int(each, "number");
        size_t at = 0;
        while (at < sums->count && sums->items[at].number != number)
            at++;
        if (at == sums->count) {
            sums->items = cn_realloc(sums->items, ++sums->count * sizeof(*sums->items));
            sums->items[at] = (struct sum){.entry = each, .number = number};
        }
        sums->items[at].bytes += cn_json_int(each, "bytes");
    }
    return 0;
}

static int compare_sums(const void *a, const void *b)
{
    int64_t one = ((const struct sum *)a)->number, two = ((const struct sum *)b)->number;
    return one < two ? -1 : one > two;
}

static int append_sums(void *data, struct cn_err *err)
{
    struct sums *sums = data;
    struct cn_buf *out = &sums->call->scratch;
    (void)err;
    if (sums->count)
        qsort(sums->items, sums->count, sizeof(*sums->items), compare_sums);
    for (size_t i = 0; i < sums->count; i++) {
        bool first = true;
        cn_buf_append_str(out, i ? ",{" : "{");
        for (const struct cn_json *each = sums->items[i].entry->first; each; each = each->next) {
            if (strcmp(each->name, "number") == 0)
                continue;
            cn_buf_append_str(out, first ? "" : ",");
            first = false;
            cn_buf_append_json(out, each->name, strlen(each->name));
            cn_buf_append_byte(out, ':');
            if (strcmp(each->name, "bytes") == 0)
                cn_buf_printf(out, "%" PRId64, sums->items[i].bytes);
            else
                cn_json_write(out, each);
        }
        cn_buf_append_byte(out, '}');
    }
    return 0;
}

int cn_control_list_service(struct cn_control_call *call, const char *service, const char *member,
                            const char *title, struct cn_err *err)
{
    struct listing listing = {title, true};
    struct sums sums = {.call = call, .member = member};
    struct cn_spread_marks marks;
    cn_spread_marks_take(&marks, call);
    cn_buf_printf(&call->scratch, "{\"%s\":[", member);
    int rc = cn_spread_is(call)
                 ? cn_spread_get(call, call->target, take_listed, append_sums, &sums, err)
                 : cn_control_each_service(call, service, append_listed, &listing, err);
    cn_free(sums.items);
    if (rc < 0) {
        cn_spread_marks_fini(&marks);
        return rc;
    }
    cn_buf_append_byte(&call->scratch, ']');
    cn_spread_marks_append(&marks, call, &call->scratch);
    cn_buf_append_byte(&call->scratch, '}');
    return cn_control_answer(call, &call->scratch);
}
