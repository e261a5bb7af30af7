/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_worker.c - what a worker is: its name, compatibility, routes and exports. See
 * config_private.h. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/compat.h"
#include "config/config_private.h"
#include "config/confnode.h"

/* ---- its name ---------------------------------------------------------- */

char *cn_config_name_from(const char *folder)
{
    size_t size = strlen(folder);
    while (size > 0 && folder[size - 1] == '/')
        size--;
    const char *base = folder + size;
    while (base > folder && base[-1] != '/')
        base--;
    char *name = cn_strndup(base, size - (size_t)(base - folder));
    bool any = false;
    for (char *c = name; *c; c++) {
        if (*c >= 'A' && *c <= 'Z')
            *c |= 32;
        bool good = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9');
        any |= good;
        if (!good)
            *c = c == name ? '_' : '-';
    }
    if (any)
        return name;
    cn_free(name);
    return cn_strdup("worker");
}

int cn_config_check_name(struct cn_config_loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    const char *own = loader->env && cn_confnode_find(loader->env, "name") ? config->name : NULL;
    if (!config->name)
        config->name = config->name_owned = cn_config_name_from(config->dir);
    if (loader->env && !own) {
        char *composed = cn_sprintf("%s-%s", config->name, loader->env->key);
        cn_free(config->name_owned);
        config->name = config->name_owned = composed;
    }
    size_t valid = strspn(config->name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    if (!*config->name || *config->name == '-' || config->name[valid])
        return cn_schema_fail(&loader->reader, cn_config_node_of(loader, "name"), err,
                              "\"name\" is \"%.80s\", but a worker's name has only lower case "
                              "letters, digits, '-' and '_', and does not begin with '-'",
                              config->name);
    return 0;
}

/* ---- compatibility ----------------------------------------------------- */

/* Dates as texts are in order. A day in advance is today elsewhere. */
static bool is_future(const char *date)
{
    char tomorrow[16];
    struct tm tm;
    time_t then = time(NULL) + 24 * 60 * 60;
    strftime(tomorrow, sizeof(tomorrow), "%Y-%m-%d", gmtime_r(&then, &tm));
    return strcmp(date, tomorrow) > 0;
}

int cn_config_check_compatibility(struct cn_config_loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    if (!config->compatibility_date)
        cn_config_warn(config,
                       "%s: no compatibility_date; behaviour that a date turns on stays off",
                       loader->reader.file);
    else if (!cn_compat_date_valid(config->compatibility_date))
        return cn_schema_fail(&loader->reader, cn_config_node_of(loader, "compatibility_date"), err,
                              "compatibility_date is \"%.40s\", but must be a date YYYY-MM-DD",
                              config->compatibility_date);
    else if (is_future(config->compatibility_date))
        cn_config_warn(
            config, "%s:%d: compatibility_date %s lies in the future: what it turns on may change",
            loader->reader.file, cn_config_node_of(loader, "compatibility_date")->line,
            config->compatibility_date);
    const struct cn_confnode *node = cn_config_node_of(loader, "compatibility_flags");
    const struct cn_compat_flag *seen[256];
    size_t seen_count = 0;
    for (size_t i = 0; i < config->compatibility_flags.count; i++) {
        const char *name = config->compatibility_flags.items[i];
        bool enables;
        const struct cn_compat_flag *flag = cn_compat_find(name, &enables);
        if (!flag) {
            const char *meant = cn_compat_suggest(name);
            return cn_schema_fail(
                &loader->reader, node->items[i], err, "unknown compatibility flag \"%.80s\"%s%s%s",
                name, meant ? " (did you mean \"" : "", meant ? meant : "", meant ? "\"?)" : "");
        }
        for (size_t j = 0; j < seen_count; j++)
            if (seen[j] == flag)
                return cn_schema_fail(&loader->reader, node->items[i], err,
                                      "compatibility flag \"%s\" is given twice, or together with "
                                      "its opposite",
                                      name);
        if (seen_count < CN_ARRAY_COUNT(seen))
            seen[seen_count++] = flag;
        if (!cn_compat_is_built(flag, enables))
            cn_config_warn(config,
                           "%s:%d: compatibility flag \"%s\" is accepted, but cairn does not have "
                           "that behaviour",
                           loader->reader.file, node->items[i]->line, name);
    }
    return 0;
}

/* ---- routes ------------------------------------------------------------ */

static const struct cn_schema_field route_fields[] = {
    {.name = "pattern",
     .kind = CN_FIELD_STRING,
     .flags = CN_FIELD_REQUIRED,
     .offset = offsetof(struct cn_config_route, pattern)},
    {.name = "custom_domain",
     .kind = CN_FIELD_BOOL,
     .offset = offsetof(struct cn_config_route, custom_domain)},
    {.name = "zone_id", .kind = CN_FIELD_NODE, .flags = CN_FIELD_HOSTED},
    {.name = "zone_name", .kind = CN_FIELD_NODE, .flags = CN_FIELD_HOSTED},
    {.name = "enabled", .kind = CN_FIELD_NODE, .flags = CN_FIELD_HOSTED},
    {.name = "previews_enabled", .kind = CN_FIELD_NODE, .flags = CN_FIELD_HOSTED},
};
static const struct cn_schema route_schema = {sizeof(struct cn_config_route), route_fields,
                                              CN_ARRAY_COUNT(route_fields)};

static int add_route(struct cn_config_loader *loader, const struct cn_confnode *node,
                     const char *path, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    struct cn_config_route route = {0};
    if (node->kind == CN_CONF_STRING) {
        route.pattern = node->text;
    } else {
        int rc = cn_schema_read(&loader->reader, &route_schema, node, path, &route, err);
        if (rc < 0)
            return rc;
    }
    if (!*route.pattern)
        return cn_schema_fail(&loader->reader, node, err, "a route must not be empty");
    if (route.custom_domain && strpbrk(route.pattern, "*/"))
        return cn_schema_fail(&loader->reader, node, err,
                              "a custom domain is a host name, without path and '*'");
    config->routes.items = cn_realloc(config->routes.items,
                                      (config->routes.count + 1) * sizeof(struct cn_config_route));
    config->routes.items[config->routes.count++] = route;
    return 0;
}

int cn_config_read_routes(struct cn_config_loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    if (config->route_node && config->routes_node)
        return cn_schema_fail(&loader->reader, config->route_node, err,
                              "\"route\" and \"routes\" exclude each other");
    if (config->route_node)
        return add_route(loader, config->route_node, "route", err);
    if (!config->routes_node)
        return 0;
    if (config->routes_node->kind != CN_CONF_ARRAY)
        return cn_schema_fail(&loader->reader, config->routes_node, err,
                              "\"routes\" must be an array");
    for (size_t i = 0; i < config->routes_node->count; i++) {
        char path[40];
        snprintf(path, sizeof(path), "routes[%zu]", i);
        int rc = add_route(loader, config->routes_node->items[i], path, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- exports ----------------------------------------------------------- */

/* What an export of a Durable Object must say in each of its states. */
int cn_config_check_exports(struct cn_config_loader *loader, struct cn_err *err)
{
    static const struct {
        const char *state, *key;
        size_t offset;
    } needs[] = {
        {"created", "storage", offsetof(struct cn_config_export, storage)},
        {"renamed", "renamed_to", offsetof(struct cn_config_export, renamed_to)},
        {"transferred", "transferred_to", offsetof(struct cn_config_export, transferred_to)},
        {"expecting-transfer", "transfer_from", offsetof(struct cn_config_export, transfer_from)},
    };
    struct cn_config *config = loader->config;
    bool has_objects = false;
    for (size_t i = 0; i < config->exports.count; i++) {
        const struct cn_config_export *item = &config->exports.items[i];
        const char *state = item->state ? item->state : "created";
        if (strcmp(item->type, "workflow") == 0 || item->container)
            return cn_schema_fail(&loader->reader, cn_config_node_of(loader, "exports")->items[i],
                                  err, "\"exports.%s\": %s are not supported yet", item->name,
                                  item->container ? "containers" : "workflows");
        if (strcmp(item->type, "durable-object") != 0)
            continue;
        has_objects = true;
        for (size_t j = 0; j < CN_ARRAY_COUNT(needs); j++) {
            const char *value = *(const char *const *)((const char *)item + needs[j].offset);
            if (strcmp(state, needs[j].state) == 0 && !value)
                return cn_schema_fail(
                    &loader->reader, cn_config_node_of(loader, "exports")->items[i], err,
                    "\"exports.%s\" needs the key \"%s\"", item->name, needs[j].key);
        }
    }
    if (has_objects && config->migrations.count)
        return cn_schema_fail(&loader->reader, cn_config_node_of(loader, "exports"), err,
                              "\"exports\" and \"migrations\" exclude each other");
    return 0;
}
