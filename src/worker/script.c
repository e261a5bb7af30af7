/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/script.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "assets/assets.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "module/module.h"
#include "worker/sourcemap.h"

struct cn_script *cn_script_new(void)
{
    struct cn_script *script = CN_NEW(struct cn_script);
    atomic_init(&script->refs, 1);
    script->share = CN_SHARE_ALL;
    pthread_mutex_init(&script->map_lock, NULL);
    return script;
}

struct cn_script *cn_script_ref(struct cn_script *script)
{
    atomic_fetch_add_explicit(&script->refs, 1, memory_order_relaxed);
    return script;
}

void cn_script_unref(struct cn_script *script)
{
    if (atomic_fetch_sub_explicit(&script->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < script->file_count; i++) {
        cn_free(script->files[i].name);
        cn_free(script->files[i].bytes);
    }
    for (size_t i = 0; i < script->route_count; i++) {
        cn_free(script->routes[i].host);
        cn_free(script->routes[i].path);
    }
    for (size_t i = 0; i < script->class_count; i++)
        cn_free(script->classes[i].name);
    cn_free(script->classes);
    cn_modules_unref(script->modules);
    cn_free(script->namespaces);
    cn_free(script->granted);
    cn_free(script->consumers);
    for (size_t i = 0; i < script->tail_count; i++)
        cn_free(script->tails[i]);
    cn_free(script->tails);
    for (size_t i = 0; i < script->cron_count; i++)
        cn_free(script->crons[i]);
    cn_free(script->crons);
    cn_free(script->files);
    cn_free(script->routes);
    cn_free(script->name);
    cn_free(script->version);
    cn_free(script->source);
    cn_free(script->url);
    cn_free(script->map_path);
    cn_assets_unref(script->assets);
    cn_sourcemap_free(script->map);
    pthread_mutex_destroy(&script->map_lock);
    cn_free(script->env_json);
    cn_free(script->email_dir);
    cn_free(script->options_json);
    cn_free(script->about_json);
    cn_free(script->broken);
    cn_free(script->way_back);
    cn_free(script->failure);
    cn_free(script);
}

bool cn_script_is_new(const struct cn_script *script)
{
    return script->version && !script->tolerated && !script->broken;
}

char *cn_script_failure(struct cn_script *script)
{
    if (script->broken)
        return cn_strdup(script->broken);
    pthread_mutex_lock(&script->map_lock);
    char *text = script->failed_lanes ? cn_strdup(script->failure) : NULL;
    pthread_mutex_unlock(&script->map_lock);
    return text;
}

bool cn_script_failed(struct cn_script *script, const char *text)
{
    pthread_mutex_lock(&script->map_lock);
    bool is_news = !script->failed_lanes++;
    cn_free(script->failure);
    script->failure = cn_strdup(text);
    pthread_mutex_unlock(&script->map_lock);
    return is_news;
}

void cn_script_recovered(struct cn_script *script)
{
    pthread_mutex_lock(&script->map_lock);
    CN_ASSERT(script->failed_lanes > 0);
    script->failed_lanes--;
    pthread_mutex_unlock(&script->map_lock);
}

void cn_script_add_file(struct cn_script *script, const char *name, uint8_t *bytes, size_t size)
{
    script->files = cn_realloc(script->files, (script->file_count + 1) * sizeof(*script->files));
    script->files[script->file_count++] = (struct cn_script_file){cn_strdup(name), bytes, size};
}

/* NULL: it has none that can be read. */
static struct cn_sourcemap *get_map(struct cn_script *script)
{
    pthread_mutex_lock(&script->map_lock);
    if (!script->map_tried && script->map_path) {
        script->map_tried = true;
        script->map = cn_sourcemap_open(script->map_path, NULL); /* without it: unexplained */
    }
    struct cn_sourcemap *map = script->map;
    pthread_mutex_unlock(&script->map_lock);
    return map;
}

bool cn_script_find_place(struct cn_script *script, uint32_t line, uint32_t column,
                          struct cn_sourcemap_place *place)
{
    struct cn_sourcemap *map = get_map(script);
    return map && cn_sourcemap_find(map, line, column, place) && place->source;
}

void cn_script_explain(struct cn_script *script, const char *text, size_t length, bool frame,
                       struct cn_buf *out)
{
    struct cn_sourcemap *map = get_map(script);
    if (!map) {
        cn_buf_append(out, text, length);
        return;
    }
    struct cn_sourcemap_place first;
    cn_sourcemap_rewrite(map, script->url, text, length, &first, out);
    if (frame && (first.source || cn_sourcemap_locate(map, text, length, &first))) {
        cn_buf_append_str(out, "\n\n");
        cn_sourcemap_frame(map, &first, out);
    }
}

void cn_script_add_route(struct cn_script *script, const char *pattern)
{
    const char *scheme = strstr(pattern, "://");
    if (scheme)
        pattern = scheme + 3;
    struct cn_route route = {0};
    route.any_prefix = pattern[0] == '*';
    if (route.any_prefix)
        pattern++;
    const char *slash = strchr(pattern, '/');
    size_t host_size = slash ? (size_t)(slash - pattern) : strlen(pattern);
    route.host = cn_strndup(pattern, host_size);
    for (char *c = route.host; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    route.path = cn_strdup(slash ? slash : "/*");
    size_t path_size = strlen(route.path);
    if (path_size && route.path[path_size - 1] == '*') {
        route.any_suffix = true;
        route.path[path_size - 1] = 0;
    }
    script->routes =
        cn_realloc(script->routes, (script->route_count + 1) * sizeof(*script->routes));
    script->routes[script->route_count++] = route;
}

void cn_script_drop_triggers(struct cn_script *script)
{
    for (size_t i = 0; i < script->cron_count; i++)
        cn_free(script->crons[i]);
    cn_free(script->crons);
    cn_free(script->consumers);
    script->crons = NULL;
    script->consumers = NULL;
    script->cron_count = script->consumer_count = 0;
}

void cn_script_add_class(struct cn_script *script, const char *name, struct cn_namespace *ns,
                         const struct cn_module_class *compiled)
{
    script->classes =
        cn_realloc(script->classes, (script->class_count + 1) * sizeof(*script->classes));
    script->classes[script->class_count++] =
        (struct cn_script_class){cn_strdup(name), ns, compiled};
}

size_t cn_script_add_namespace(struct cn_script *script, struct cn_namespace *ns)
{
    script->namespaces =
        cn_realloc(script->namespaces, (script->namespace_count + 1) * sizeof(*script->namespaces));
    script->namespaces[script->namespace_count] = ns;
    return script->namespace_count++;
}

void cn_script_grant(struct cn_script *script, uint32_t namespace_id)
{
    script->granted =
        cn_realloc(script->granted, (script->granted_count + 1) * sizeof(*script->granted));
    script->granted[script->granted_count++] = namespace_id;
}

bool cn_script_is_granted(const struct cn_script *script, uint32_t namespace_id)
{
    for (size_t i = 0; i < script->granted_count; i++)
        if (script->granted[i] == namespace_id)
            return true;
    return false;
}

struct cn_deployment *cn_deployment_new(void)
{
    struct cn_deployment *deployment = CN_NEW(struct cn_deployment);
    atomic_init(&deployment->refs, 1);
    return deployment;
}

/* R1: where its worker's last version so far is. */
static struct cn_script *last_version(const struct cn_deployment *deployment, const char *name)
{
    for (size_t i = 0; i < deployment->script_count; i++) {
        struct cn_script *script = deployment->scripts[i];
        if (script->beside || strcmp(script->name, name) != 0)
            continue;
        while (script->next)
            script = deployment->scripts[script->next];
        return script;
    }
    CN_UNREACHABLE();
}

void cn_deployment_add(struct cn_deployment *deployment, struct cn_script *script)
{
    if (script->beside)
        last_version(deployment, script->name)->next = deployment->script_count;
    deployment->scripts = cn_realloc(deployment->scripts,
                                     (deployment->script_count + 1) * sizeof(*deployment->scripts));
    deployment->scripts[deployment->script_count++] = script;
}

struct cn_deployment *cn_deployment_ref(struct cn_deployment *deployment)
{
    atomic_fetch_add_explicit(&deployment->refs, 1, memory_order_relaxed);
    return deployment;
}

void cn_deployment_unref(struct cn_deployment *deployment)
{
    if (atomic_fetch_sub_explicit(&deployment->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < deployment->script_count; i++)
        cn_script_unref(deployment->scripts[i]);
    cn_free(deployment->scripts);
    cn_free(deployment);
}

/* How well a route fits: 0 not at all, else more for a longer host and then a longer path. */
static size_t route_fit(const struct cn_route *route, const char *host, size_t host_size,
                        const char *path, size_t path_size)
{
    size_t want = strlen(route->host);
    if (route->any_prefix) {
        if (host_size < want || strncasecmp(host + host_size - want, route->host, want) != 0)
            return 0;
    } else if (host_size != want || strncasecmp(host, route->host, want) != 0) {
        return 0;
    }
    size_t path_want = strlen(route->path);
    if (route->any_suffix ? path_size < path_want : path_size != path_want)
        return 0;
    if (memcmp(path, route->path, path_want) != 0)
        return 0;
    return 2 + (want * 2 + !route->any_prefix) * 65536 + path_want * 2 + !route->any_suffix;
}

int cn_deployment_match(const struct cn_deployment *deployment, const char *host, size_t host_size,
                        const char *path, size_t path_size)
{
    const char *colon = memrchr(host, ':', host_size);
    if (colon && !memchr(colon, ']', host_size - (size_t)(colon - host)))
        host_size = (size_t)(colon - host);
    const char *query = memchr(path, '?', path_size);
    if (query)
        path_size = (size_t)(query - path);
    int best = -1;
    size_t best_fit = 0;
    for (size_t i = 0; i < deployment->script_count; i++) {
        const struct cn_script *script = deployment->scripts[i];
        if (script->beside)
            continue;
        if (!script->route_count && best_fit < 1) {
            best = (int)i;
            best_fit = 1;
        }
        for (size_t k = 0; k < script->route_count; k++) {
            size_t fit = route_fit(&script->routes[k], host, host_size, path, path_size);
            if (fit > best_fit) {
                best = (int)i;
                best_fit = fit;
            }
        }
    }
    return best;
}

size_t cn_deployment_pick(const struct cn_deployment *deployment, size_t first, uint64_t number)
{
    unsigned left = (unsigned)(number % CN_SHARE_ALL);
    size_t at = first;
    for (;;) {
        const struct cn_script *script = deployment->scripts[at];
        if (left < script->share || !script->next)
            return at;
        left -= script->share;
        at = script->next;
    }
}

int cn_deployment_find_version(const struct cn_deployment *deployment, size_t first, const char *id,
                               size_t id_size)
{
    for (size_t at = first;; at = deployment->scripts[at]->next) {
        const struct cn_script *script = deployment->scripts[at];
        if (script->version && strlen(script->version) == id_size &&
            memcmp(script->version, id, id_size) == 0)
            return (int)at;
        if (!script->next)
            return -1;
    }
}
