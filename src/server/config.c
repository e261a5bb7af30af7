/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "server/compat.h"
#include "server/confnode.h"
#include "server/files.h"
#include "server/findconf.h"
#include "server/service_config.h"

/* What is passed around while one configuration is read. */
struct loader {
    struct cn_schema_reader reader; /* first: on_hosted() gets at the rest through it */
    struct cn_config *config;
    const struct cn_confnode *env;      /* the chosen [env.NAME], or NULL */
    const struct cn_confnode **refused; /* owned: what cannot be honoured, as they stand there */
    size_t refused_count;
};

/* ---- warnings --------------------------------------------------------------- */

void cn_config_warn(struct cn_config *config, const char *format, ...)
{
    char sentence[CN_ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    config->warnings.items =
        cn_realloc(config->warnings.items, (config->warnings.count + 1) * sizeof(char *));
    config->warnings.items[config->warnings.count++] = cn_strdup(sentence);
}

/* Collects "account_id, placement" for one line in the log. */
static void on_hosted(struct cn_schema_reader *reader, const char *key)
{
    struct cn_config *config = ((struct loader *)reader)->config;
    char *longer =
        config->hosted ? cn_sprintf("%s, %s", config->hosted, key) : cn_sprintf("%s", key);
    cn_free(config->hosted);
    config->hosted = longer;
}

/* ---- keys that cannot be honoured ------------------------------------------------ */

static void on_refused(struct cn_schema_reader *reader, const char *key,
                       const struct cn_confnode *node)
{
    struct loader *loader = (struct loader *)reader;
    (void)key; /* only keys of the top level are refused so */
    loader->refused =
        cn_realloc(loader->refused, (loader->refused_count + 1) * sizeof(*loader->refused));
    loader->refused[loader->refused_count++] = node;
}

/* Whether `word` is in "a,b,c". */
static bool is_listed(const char *list, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, ",");
        if (length == size && memcmp(at, word, size) == 0)
            return true;
        at += length + (at[length] == ',');
    }
    return false;
}

static void add_missing(struct cn_config *config, const char *key, const char *binding)
{
    config->missing.items = cn_realloc(config->missing.items, (config->missing.count + 1) *
                                                                  sizeof(struct cn_config_missing));
    config->missing.items[config->missing.count++] = (struct cn_config_missing){
        .key = cn_strdup(key), .binding = binding ? cn_strdup(binding) : NULL};
}

/* The names that a key puts on `env`: each table's "binding", or else its "name". */
static void add_missing_bindings(struct cn_config *config, const char *key,
                                 const struct cn_confnode *node)
{
    if (node->kind != CN_CONF_TABLE && node->kind != CN_CONF_ARRAY)
        return;
    const struct cn_confnode *name = NULL;
    if (node->kind == CN_CONF_TABLE) {
        name = cn_confnode_find(node, "binding");
        if (!name || name->kind != CN_CONF_STRING)
            name = cn_confnode_find(node, "name");
    }
    if (name && name->kind == CN_CONF_STRING) {
        add_missing(config, key, name->text);
        return;
    }
    for (size_t i = 0; i < node->count; i++)
        add_missing_bindings(config, key, node->items[i]);
}

/* All that is refused is told at once; what was allowed to be missing (--allow-missing) is not. */
static int check_refused(struct loader *loader, const char *allowed, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    const struct cn_confnode *first = NULL;
    struct cn_buf keys = {0}, flag = {0};
    for (size_t i = 0; i < loader->refused_count; i++) {
        const struct cn_confnode *node = loader->refused[i];
        if (is_listed(allowed, node->key)) {
            add_missing(config, node->key, NULL);
            cn_config_warn(config,
                           "%s:%d: \"%s\" is not there (--allow-missing): what uses it fails",
                           loader->reader.file, node->line, node->key);
            if (strcmp(node->key, "containers") != 0) /* these have names, but none on `env` */
                add_missing_bindings(config, node->key, node);
            continue;
        }
        if (!first)
            cn_buf_printf(&keys, "\"%s\"", node->key);
        else
            cn_buf_printf(&keys, ", \"%s\" (line %d)", node->key, node->line);
        cn_buf_printf(&flag, "%s%s", first ? "," : "", node->key);
        if (!first)
            first = node;
    }
    int rc = 0;
    if (first) {
        bool several = strchr(cn_buf_text(&flag), ',') != NULL;
        cn_schema_fail(&loader->reader, first, err,
                       "%s %s that cairn does not run yet (--allow-missing %s starts without %s)",
                       cn_buf_text(&keys),
                       several ? "are keys of wrangler" : "is a key of wrangler",
                       cn_buf_text(&flag), several ? "them" : "it");
        if (err)
            err->code = CN_EUNSUPPORTED;
        rc = CN_EUNSUPPORTED;
    }
    cn_buf_fini(&keys);
    cn_buf_fini(&flag);
    return rc;
}

/* ---- keys and environments ---------------------------------------------------- */

/* The keys of the top level: those of config_keys.c, then those of services, which *def says. NULL:
 * there are no more. */
static const struct cn_schema_field *key_at(size_t index, const struct cn_service_def **def)
{
    *def = NULL;
    if (index < cn_config_schema.count)
        return &cn_config_schema.fields[index];
    index -= cn_config_schema.count;
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_config *config = cn_service_table[i]->config;
        if (!config || config->in_cairn || index-- > 0)
            continue;
        *def = cn_service_table[i];
        return &config->key;
    }
    return NULL;
}

static const struct cn_schema_field *find_key(const char *name)
{
    const struct cn_service_def *def;
    const struct cn_schema_field *field;
    for (size_t i = 0; (field = key_at(i, &def)); i++)
        if (strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

static const char *key_name_at(const void *data, size_t index)
{
    (void)data;
    const struct cn_service_def *def;
    const struct cn_schema_field *field = key_at(index, &def);
    return field ? field->name : NULL;
}

/* Services have keys in [cairn] too. */
static int on_other(struct cn_schema_reader *reader, const char *key,
                    const struct cn_confnode *node, struct cn_err *err)
{
    struct cn_config *config = ((struct loader *)reader)->config;
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_config *service = cn_service_table[i]->config;
        if (!service || !service->in_cairn || strncmp(key, "cairn.", 6) != 0 ||
            strcmp(key + 6, service->key.name) != 0)
            continue;
        int rc = cn_schema_read_field(reader, &service->key, node, key, config->entries[i], err);
        return rc < 0 ? rc : 1;
    }
    return 0;
}

/* Every key of the top level or of an environment must be known, whether it is
 * used in the end or not. */
static int check_keys(struct loader *loader, const struct cn_confnode *table, const char *env,
                      struct cn_err *err)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct cn_confnode *node = table->items[i];
        const struct cn_schema_field *field = find_key(node->key);
        if (!env && (strcmp(node->key, "env") == 0 || strcmp(node->key, "$schema") == 0))
            continue;
        if (!field && loader->config->generated && cn_schema_is_nothing(node))
            continue; /* a default of a tool that is newer than this table */
        if (!field) {
            const char *meant = cn_suggest(node->key, key_name_at, NULL);
            return cn_schema_fail(&loader->reader, node, err, "unknown key \"%s%s%s%s\"%s%s%s",
                                  env ? "env." : "", env ? env : "", env ? "." : "", node->key,
                                  meant ? " (did you mean \"" : "", meant ? meant : "",
                                  meant ? "\"?)" : "");
        }
        if (env && (field->flags & CN_FIELD_TOP_ONLY))
            return cn_schema_fail(&loader->reader, node, err,
                                  "\"%s\" must stand at the top level, not in [env.%s]", node->key,
                                  env);
    }
    return 0;
}

/* A generated configuration is that of one environment, chosen when it was made. */
static int check_target(struct loader *loader, const char *chosen, struct cn_err *err)
{
    const struct cn_confnode *target = cn_confnode_find(loader->config->root, "targetEnvironment");
    if (target && target->kind == CN_CONF_STRING && strcmp(target->text, chosen) == 0)
        return 0;
    return cn_err_set(err, CN_EINVALID,
                      "%s was generated %s%s, and --env asks for %s: build the project for that "
                      "environment (CLOUDFLARE_ENV=%s with the Vite plugin)",
                      loader->reader.file,
                      target && target->kind == CN_CONF_STRING ? "for the environment "
                                                               : "without an environment",
                      target && target->kind == CN_CONF_STRING ? target->text : "", chosen, chosen);
}

static int check_environments(struct loader *loader, const char *chosen, struct cn_err *err)
{
    const struct cn_confnode *root = loader->config->root;
    const struct cn_confnode *envs = cn_confnode_find(root, "env");
    char names[200] = "";
    size_t used = 0;
    if (loader->config->generated && chosen)
        return check_target(loader, chosen, err);
    if (envs && envs->kind != CN_CONF_TABLE)
        return cn_schema_fail(&loader->reader, envs, err, "\"env\" must be a table");
    for (size_t i = 0; envs && i < envs->count; i++) {
        const struct cn_confnode *env = envs->items[i];
        if (env->kind != CN_CONF_TABLE)
            return cn_schema_fail(&loader->reader, env, err, "\"env.%s\" must be a table",
                                  env->key);
        int rc = check_keys(loader, env, env->key, err);
        if (rc < 0)
            return rc;
        if (chosen && strcmp(chosen, env->key) == 0)
            loader->env = env;
        int size = snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", env->key);
        used += size > 0 && (size_t)size < sizeof(names) - used ? (size_t)size : 0;
    }
    if (chosen && !loader->env)
        return cn_err_set(err, CN_ENOTFOUND, "%s: there is no [env.%s]%s%s", loader->reader.file,
                          chosen, *names ? "; the file has " : " in it", names);
    return 0;
}

/* Reads each key from the environment if it has it, else from the top level
 * unless it is one that environments do not inherit. */
static int read_keys(struct loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    const struct cn_schema_field *field;
    const struct cn_service_def *def;
    for (size_t i = 0; (field = key_at(i, &def)); i++) {
        const struct cn_confnode *top = cn_confnode_find(config->root, field->name);
        const struct cn_confnode *own =
            loader->env ? cn_confnode_find(loader->env, field->name) : NULL;
        const struct cn_confnode *node = own ? own : top;
        if (loader->env && top && !own && (field->flags & CN_FIELD_OWN)) {
            cn_config_warn(config,
                           "%s:%d: \"%s\" is not inherited by [env.%s]; repeat it there if needed",
                           loader->reader.file, top->line, field->name, loader->env->key);
            continue;
        }
        if (!node || node->kind == CN_CONF_NULL)
            continue;
        void *out = def ? config->entries[cn_service_index(def)] : config;
        int rc = cn_schema_read_field(&loader->reader, field, node, field->name, out, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Where a key stands, for complaints found after reading. */
static const struct cn_confnode *node_of(struct loader *loader, const char *key)
{
    const struct cn_confnode *node = loader->env ? cn_confnode_find(loader->env, key) : NULL;
    const struct cn_schema_field *field = find_key(key);
    bool inherits = !loader->env || !(field->flags & CN_FIELD_OWN);
    if (!node && inherits)
        node = cn_confnode_find(loader->config->root, key);
    return node ? node : loader->config->root;
}

const struct cn_confnode *cn_config_key(const struct cn_config *config, const char *key)
{
    const struct cn_confnode *envs = cn_confnode_find(config->root, "env");
    const struct cn_confnode *env =
        config->env && !config->generated && envs ? cn_confnode_find(envs, config->env) : NULL;
    const struct cn_confnode *node = env ? cn_confnode_find(env, key) : NULL;
    const struct cn_schema_field *field = find_key(key);
    if (!node && (!env || !field || !(field->flags & CN_FIELD_OWN)))
        node = cn_confnode_find(config->root, key);
    return node && node->kind != CN_CONF_NULL ? node : NULL;
}

/* The same for the key of a service. */
static const struct cn_confnode *service_node(struct loader *loader,
                                              const struct cn_service_config *service)
{
    const struct cn_confnode *root = loader->config->root;
    if (!service->in_cairn)
        return node_of(loader, service->key.name);
    const struct cn_confnode *table = node_of(loader, "cairn");
    const struct cn_confnode *node =
        table != root ? cn_confnode_find(table, service->key.name) : NULL;
    return node ? node : root;
}

const void *cn_config_entries(const struct cn_config *config, const struct cn_service_def *def)
{
    return config->entries[cn_service_index(def)];
}

static size_t entries_size(const struct cn_service_config *service)
{
    return service->key.kind == CN_FIELD_LIST ? sizeof(struct cn_schema_list)
                                              : service->key.sub->size;
}

static void make_entries(struct cn_config *config)
{
    for (size_t i = 0; cn_service_table[i]; i++)
        if (cn_service_table[i]->config)
            config->entries[i] = cn_alloc_zero(entries_size(cn_service_table[i]->config));
}

static void free_entries(struct cn_config *config)
{
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_config *service = cn_service_table[i]->config;
        if (!service)
            continue;
        struct cn_schema schema = {entries_size(service), &service->key, 1};
        cn_schema_fini(&schema, config->entries[i]);
        cn_free(config->entries[i]);
    }
}

/* ---- single keys ---------------------------------------------------------------- */

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

static int check_name(struct loader *loader, struct cn_err *err)
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
        return cn_schema_fail(&loader->reader, node_of(loader, "name"), err,
                              "\"name\" is \"%.80s\", but a worker's name has only lower case "
                              "letters, digits, '-' and '_', and does not begin with '-'",
                              config->name);
    return 0;
}

/* Dates as texts are in order. A day in advance is today elsewhere. */
static bool is_future(const char *date)
{
    char tomorrow[16];
    struct tm tm;
    time_t then = time(NULL) + 24 * 60 * 60;
    strftime(tomorrow, sizeof(tomorrow), "%Y-%m-%d", gmtime_r(&then, &tm));
    return strcmp(date, tomorrow) > 0;
}

static int check_compatibility(struct loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    if (!config->compatibility_date)
        cn_config_warn(config,
                       "%s: no compatibility_date; behaviour that a date turns on stays off",
                       loader->reader.file);
    else if (!cn_compat_date_valid(config->compatibility_date))
        return cn_schema_fail(&loader->reader, node_of(loader, "compatibility_date"), err,
                              "compatibility_date is \"%.40s\", but must be a date YYYY-MM-DD",
                              config->compatibility_date);
    else if (is_future(config->compatibility_date))
        cn_config_warn(
            config, "%s:%d: compatibility_date %s lies in the future: what it turns on may change",
            loader->reader.file, node_of(loader, "compatibility_date")->line,
            config->compatibility_date);
    const struct cn_confnode *node = node_of(loader, "compatibility_flags");
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

static int add_route(struct loader *loader, const struct cn_confnode *node, const char *path,
                     struct cn_err *err)
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

static int read_routes(struct loader *loader, struct cn_err *err)
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

/* What an export of a Durable Object must say in each of its states. */
static int check_exports(struct loader *loader, struct cn_err *err)
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
            return cn_schema_fail(&loader->reader, node_of(loader, "exports")->items[i], err,
                                  "\"exports.%s\": %s are not supported yet", item->name,
                                  item->container ? "containers" : "workflows");
        if (strcmp(item->type, "durable-object") != 0)
            continue;
        has_objects = true;
        for (size_t j = 0; j < CN_ARRAY_COUNT(needs); j++) {
            const char *value = *(const char *const *)((const char *)item + needs[j].offset);
            if (strcmp(state, needs[j].state) == 0 && !value)
                return cn_schema_fail(&loader->reader, node_of(loader, "exports")->items[i], err,
                                      "\"exports.%s\" needs the key \"%s\"", item->name,
                                      needs[j].key);
        }
    }
    if (has_objects && config->migrations.count)
        return cn_schema_fail(&loader->reader, node_of(loader, "exports"), err,
                              "\"exports\" and \"migrations\" exclude each other");
    return 0;
}

/* Keys that put names on `env`, besides those of services: where the items are (a list in the
 * table, or the table itself) and which of their keys is the name. */
static const struct {
    const char *key, *list, *name;
} binding_keys[] = {
    {"durable_objects", "bindings", "name"},
    {"assets", NULL, "binding"},
    {"services", NULL, "binding"},
    {"workflows", NULL, "binding"},
    {"dispatch_namespaces", NULL, "binding"},
    {"unsafe", "bindings", "name"},
    {"worker_loaders", NULL, "binding"},
    {"version_metadata", NULL, "binding"},
};

/* Takes a name on `env`; refuses one that is taken. `item` may lack the key. */
static int take_name(struct loader *loader, struct cn_map *taken, const char *key,
                     const struct cn_confnode *item, const char *name_key, struct cn_err *err)
{
    const struct cn_confnode *name =
        item->kind == CN_CONF_TABLE ? cn_confnode_find(item, name_key) : NULL;
    if (!name || name->kind != CN_CONF_STRING)
        return 0;
    const char *other = cn_map_set(taken, name->text, name->length, (void *)key);
    if (!other)
        return 0;
    return cn_schema_fail(&loader->reader, name, err,
                          "the name \"%.80s\" is given twice, in \"%s\" and in \"%s\"", name->text,
                          other, key);
}

/* Takes the names of a key's items; `list` is where they are. */
static int take_names(struct loader *loader, struct cn_map *taken, const char *key,
                      const struct cn_confnode *node, const char *list, const char *name_key,
                      struct cn_err *err)
{
    int rc = 0;
    if (node == loader->config->root)
        return 0; /* not given */
    if (list)
        node = node->kind == CN_CONF_TABLE ? cn_confnode_find(node, list) : NULL;
    if (node && node->kind == CN_CONF_TABLE)
        rc = take_name(loader, taken, key, node, name_key, err);
    for (size_t i = 0; node && node->kind == CN_CONF_ARRAY && i < node->count && rc == 0; i++)
        rc = take_name(loader, taken, key, node->items[i], name_key, err);
    return rc;
}

static int check_binding_names(struct loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    struct cn_map taken;
    int rc = 0;
    cn_map_init(&taken);
    for (size_t i = 0; config->vars_node && i < config->vars_node->count; i++)
        cn_map_set(&taken, config->vars_node->items[i]->key,
                   strlen(config->vars_node->items[i]->key), (void *)"vars");
    for (size_t i = 0; i < CN_ARRAY_COUNT(binding_keys) && rc == 0; i++)
        rc = take_names(loader, &taken, binding_keys[i].key, node_of(loader, binding_keys[i].key),
                        binding_keys[i].list, binding_keys[i].name, err);
    for (size_t i = 0; cn_service_table[i] && rc == 0; i++) {
        const struct cn_service_config *service = cn_service_table[i]->config;
        if (service && service->name)
            rc = take_names(loader, &taken, service->key.name, service_node(loader, service),
                            service->list, service->name, err);
    }
    cn_map_fini(&taken);
    return rc;
}

static int check_bindings(struct loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    if (config->assets_set && !config->assets.directory && !config->generated)
        return cn_schema_fail(&loader->reader, node_of(loader, "assets"), err,
                              "\"assets\" needs the key \"directory\" (the Vite plugin writes it "
                              "when it builds: run that first)");
    if (!config->main && !config->assets.directory && !config->server.worker)
        return cn_err_set(err, CN_EINVALID,
                          "%s: the key \"main\" is missing: it names the worker's source file, "
                          "unless there are only assets, or [cairn] worker names a class in C",
                          loader->reader.file);
    if (node_of(loader, "access") != config->root)
        cn_config_warn(
            config,
            "%s:%d: \"access\": nobody is authenticated by cairn: let a proxy in front do it",
            loader->reader.file, node_of(loader, "access")->line);
    if (config->dev.local_protocol && strcmp(config->dev.local_protocol, "https") == 0)
        cn_config_warn(
            config,
            "%s:%d: \"dev.local_protocol\": https needs a certificate: --tls-cert and --tls-key",
            loader->reader.file, node_of(loader, "dev")->line);
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_config *service = cn_service_table[i]->config;
        if (!service || !service->check)
            continue;
        int rc = service->check(&loader->reader, service_node(loader, service), config,
                                config->entries[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static size_t find_unsafe(const struct cn_confnode *type)
{
    size_t i = 0;
    for (; cn_service_table[i]; i++) {
        const struct cn_service_config *service = cn_service_table[i]->config;
        if (service && service->unsafe_type && type && type->kind == CN_CONF_STRING &&
            strcmp(type->text, service->unsafe_type) == 0)
            break;
    }
    return i;
}

/* Reads an item of `unsafe` as one more entry of a service. */
static int read_unsafe_item(struct loader *loader, size_t service, const struct cn_confnode *item,
                            const char *path, struct cn_err *err)
{
    const struct cn_schema *schema = cn_service_table[service]->config->unsafe;
    struct cn_schema_list *list = loader->config->entries[service];
    list->items = cn_realloc(list->items, (list->count + 1) * schema->size);
    void *entry = (char *)list->items + list->count * schema->size;
    memset(entry, 0, schema->size);
    int rc = cn_schema_read(&loader->reader, schema, item, path, entry, err);
    list->count += rc == 0;
    return rc;
}

/* What services know of `unsafe` (rate limits have stood there once); whatever else stands there is
 * refused. */
static int read_unsafe(struct loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    const struct cn_confnode *node = config->unsafe_node;
    if (!node || cn_schema_is_nothing(node))
        return 0;
    if (node->kind != CN_CONF_TABLE)
        return cn_schema_fail(&loader->reader, node, err, "\"unsafe\" must be a table");
    const struct cn_confnode *list = cn_confnode_find(node, "bindings");
    bool refused = cn_confnode_find(node, "capnp") != NULL;
    for (size_t i = 0; list && list->kind == CN_CONF_ARRAY && i < list->count; i++) {
        const struct cn_confnode *item = list->items[i];
        const struct cn_confnode *type =
            item->kind == CN_CONF_TABLE ? cn_confnode_find(item, "type") : NULL;
        size_t service = find_unsafe(type);
        if (!cn_service_table[service]) {
            refused = true;
            continue;
        }
        char path[40];
        snprintf(path, sizeof(path), "unsafe.bindings[%zu]", i);
        int rc = read_unsafe_item(loader, service, item, path, err);
        if (rc < 0)
            return rc;
    }
    if (refused)
        on_refused(&loader->reader, "unsafe", node);
    return 0;
}

/* ---- vars and secrets --------------------------------------------------------- */

/* Sets a variable; a later one with the same name replaces the earlier. */
static void set_var(struct cn_config *config, const struct cn_config_var *var)
{
    for (size_t i = 0; i < config->vars.count; i++) {
        if (strcmp(config->vars.items[i].name, var->name) == 0) {
            config->vars.items[i] = *var;
            return;
        }
    }
    config->vars.items =
        cn_realloc(config->vars.items, (config->vars.count + 1) * sizeof(struct cn_config_var));
    config->vars.items[config->vars.count++] = *var;
}

static char *keep_text(struct cn_config *config, char *text)
{
    config->var_texts =
        cn_realloc(config->var_texts, (config->var_text_count + 1) * sizeof(char *));
    return config->var_texts[config->var_text_count++] = text;
}

static int read_vars(struct loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    const struct cn_confnode *vars = config->vars_node;
    if (!vars)
        return 0;
    if (vars->kind != CN_CONF_TABLE)
        return cn_schema_fail(&loader->reader, vars, err, "\"vars\" must be a table");
    for (size_t i = 0; i < vars->count; i++) {
        const struct cn_confnode *node = vars->items[i];
        struct cn_config_var var = {.name = node->key, .kind = CN_VAR_TEXT};
        if (node->kind == CN_CONF_STRING) {
            var.text = node->text;
            var.length = node->length;
        } else {
            struct cn_buf json = {0};
            cn_confnode_write_json(node, &json);
            cn_buf_text(&json);
            var.kind = CN_VAR_JSON;
            var.length = json.size;
            var.text = keep_text(config, (char *)cn_buf_take(&json));
        }
        set_var(config, &var);
    }
    return 0;
}

static int read_var_options(struct cn_config *config, const struct cn_config_options *options,
                            struct cn_err *err)
{
    for (size_t i = 0; options && i < options->var_count; i++) {
        const char *text = options->vars[i];
        size_t name_size = strcspn(text, "=:");
        if (name_size == 0 || !text[name_size])
            return cn_err_set(err, CN_EINVALID, "--var %s: must have the form NAME=VALUE", text);
        const char *value = text + name_size + 1;
        set_var(config,
                &(struct cn_config_var){.name = keep_text(config, cn_strndup(text, name_size)),
                                        .kind = CN_VAR_TEXT,
                                        .text = keep_text(config, cn_strdup(value)),
                                        .length = strlen(value)});
    }
    return 0;
}

/* Adds what the file `name` of the folder holds to secrets_node. 0: there is no such file. */
static int read_secret_file(struct cn_config *config, const char *folder, const char *name,
                            struct cn_err *err)
{
    struct cn_buf text = {0};
    char *path = cn_sprintf("%s/%s", folder, name);
    int rc = cn_files_read(path, CN_CONF_SIZE_MAX, &text, NULL);
    if (rc == -ENOENT) {
        cn_free(path);
        return 0;
    }
    struct cn_confnode *table = NULL;
    if (rc < 0) {
        cn_err_errno(err, -rc, "%s: cannot be read", path);
        goto out;
    }
    table = cn_dotenv_parse(path, (const char *)text.data, text.size, err);
    if (!table) {
        rc = CN_EINVALID;
        goto out;
    }
    if (!config->secrets_node) {
        config->secrets_node = cn_confnode_new(CN_CONF_TABLE, 1, 1);
        config->secrets_path = cn_strdup(path);
    }
    for (size_t i = 0; i < table->count; i++) {
        struct cn_confnode *from = table->items[i];
        struct cn_confnode *to = cn_confnode_find(config->secrets_node, from->key);
        if (to) {
            cn_free(to->text);
            to->text = cn_strndup(from->text, from->length);
            to->length = from->length;
        } else {
            cn_confnode_add(
                config->secrets_node, from->key,
                cn_confnode_new_text(CN_CONF_STRING, from->text, from->length, from->line, 1));
        }
    }
    rc = 1;
out:
    cn_confnode_free(table);
    cn_buf_fini(&text);
    cn_free(path);
    return rc;
}

/* As wrangler: .dev.vars.ENV, or else .dev.vars, or else the .env files, of
 * which the more special ones win. */
static int read_secret_files(struct cn_config *config, const char *folder, struct cn_err *err)
{
    char name[4][160];
    const char *env = config->env ? config->env : "";
    snprintf(name[0], sizeof(name[0]), ".dev.vars.%s", env);
    int rc = *env ? read_secret_file(config, folder, name[0], err) : 0;
    if (rc == 0)
        rc = read_secret_file(config, folder, ".dev.vars", err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    size_t count = 2;
    snprintf(name[0], sizeof(name[0]), ".env");
    snprintf(name[1], sizeof(name[1]), ".env.local");
    if (*env) {
        snprintf(name[2], sizeof(name[2]), ".env.%s", env);
        snprintf(name[3], sizeof(name[3]), ".env.%s.local", env);
        count = 4;
    }
    for (size_t i = 0; i < count; i++) {
        rc = read_secret_file(config, folder, name[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool is_required_secret(const struct cn_config *config, const char *name)
{
    for (size_t i = 0; i < config->secrets.required.count; i++)
        if (strcmp(config->secrets.required.items[i], name) == 0)
            return true;
    return false;
}

static void apply_secrets(struct cn_config *config)
{
    const struct cn_strings *required = &config->secrets.required;
    for (size_t i = 0; config->secrets_node && i < config->secrets_node->count; i++) {
        const struct cn_confnode *node = config->secrets_node->items[i];
        if (required->count && !is_required_secret(config, node->key))
            continue; /* "secrets.required" says which ones there are */
        set_var(config, &(struct cn_config_var){.name = node->key,
                                                .kind = CN_VAR_SECRET,
                                                .text = node->text,
                                                .length = node->length});
    }
    for (size_t i = 0; i < required->count; i++)
        if (!config->secrets_node || !cn_confnode_find(config->secrets_node, required->items[i]))
            cn_config_warn(config, "%s: the required secret \"%s\" is in no .dev.vars or .env file",
                           config->path, required->items[i]);
}

/* ---- Pages ------------------------------------------------------------------------ */

/* The folder's own file, if there is one. Owned. */
static char *existing(const char *folder, const char *name, bool is_folder)
{
    char *path = cn_sprintf("%s/%s", folder, name);
    struct stat info;
    if (stat(path, &info) == 0 && (is_folder ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode)))
        return path;
    cn_free(path);
    return NULL;
}

static void push_text(struct cn_confnode *list, const char *mark, const char *text)
{
    char *whole = cn_sprintf("%s%s", mark, text);
    cn_confnode_push(list, cn_confnode_new_text(CN_CONF_STRING, whole, strlen(whole), 1, 1));
    cn_free(whole);
}

static void push_routes(struct cn_confnode *list, const char *mark, const struct cn_confnode *from)
{
    for (size_t i = 0; from && from->kind == CN_CONF_ARRAY && i < from->count; i++)
        if (from->items[i]->kind == CN_CONF_STRING)
            push_text(list, mark, from->items[i]->text);
}

/* Which requests the worker gets: _routes.json says it, or all of them. */
static int read_pages_routes(struct cn_config *config, const char *folder, struct cn_err *err)
{
    struct cn_confnode *first = cn_confnode_new(CN_CONF_ARRAY, 1, 1);
    struct cn_buf text = {0};
    char *path = existing(folder, "_routes.json", false);
    config->pages_node = first;
    config->assets.run_worker_first = first;
    int rc = path ? cn_files_read(path, CN_CONF_SIZE_MAX, &text, err) : 0;
    struct cn_confnode *root =
        path && rc == 0 ? cn_jsonc_parse(path, (const char *)text.data, text.size, err) : NULL;
    if (path && rc == 0 && (!root || root->kind != CN_CONF_TABLE)) {
        rc = root ? cn_err_set(err, CN_EINVALID, "%s: the file must hold an object", path)
                  : CN_EINVALID;
    } else if (root) {
        push_routes(first, "", cn_confnode_find(root, "include"));
        push_routes(first, "!", cn_confnode_find(root, "exclude"));
    } else if (rc == 0) {
        push_text(first, "", "/*");
    }
    cn_confnode_free(root);
    cn_buf_fini(&text);
    cn_free(path);
    return rc;
}

/* A Pages project is assets with a worker before them: _worker.js among the assets (a file, or a
 * folder with index.js), else `functions` beside the configuration, else none. */
static int read_pages(struct cn_config *config, struct cn_err *err)
{
    const char *name = config->pages_build_output_dir;
    if (!name || !*config->dir)
        return 0;
    char *folder = *name == '/' ? cn_strdup(name) : cn_sprintf("%s/%s", config->dir, name);
    char *script = existing(folder, "_worker.js", false);
    char *page = existing(folder, "404.html", false);
    if (!script)
        script = existing(folder, "_worker.js/index.js", false);
    char *functions = script ? NULL : existing(config->dir, "functions", true);
    if (functions)
        config->functions = keep_text(config, cn_strdup(functions));
    config->main =
        script || functions ? keep_text(config, cn_strdup(script ? script : functions)) : NULL;
    config->assets = (struct cn_config_assets){
        .directory = name,
        .binding = "ASSETS",
        .not_found_handling = page ? "404-page" : "single-page-application",
    };
    config->assets_set = true;
    int rc = config->main ? read_pages_routes(config, folder, err) : 0;
    cn_free(functions);
    cn_free(script);
    cn_free(page);
    cn_free(folder);
    return rc;
}

/* A site is a worker that reads its files as if they were in a KV namespace: they are assets that
 * no request reaches by itself. */
static int read_site(struct loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    if (!config->site.bucket)
        return 0;
    if (config->assets_set)
        return cn_schema_fail(&loader->reader, node_of(loader, "site"), err,
                              "\"site\" and \"%s\" exclude each other",
                              config->pages_build_output_dir ? "pages_build_output_dir" : "assets");
    if (!config->main && config->site.entry_point)
        config->main = keep_text(config, cn_sprintf("%s/index.js", config->site.entry_point));
    struct cn_confnode *first = cn_confnode_new(CN_CONF_BOOL, 1, 1);
    first->boolean = true;
    config->pages_node = first;
    config->assets = (struct cn_config_assets){.directory = config->site.bucket,
                                               .html_handling = "none",
                                               .not_found_handling = "none",
                                               .run_worker_first = first};
    config->assets_set = true;
    if (!config->main)
        return cn_schema_fail(&loader->reader, node_of(loader, "site"), err,
                              "\"site\" needs a worker: the key \"main\" is missing");
    return 0;
}

/* ---- the whole ------------------------------------------------------------------ */

static int load(struct cn_config *config, const struct cn_config_options *options,
                struct cn_err *err)
{
    struct loader loader = {.reader = {.file = config->path,
                                       .on_hosted = on_hosted,
                                       .on_refused = on_refused,
                                       .on_other = on_other},
                            .config = config};
    if (config->root->kind != CN_CONF_TABLE)
        return cn_err_set(err, CN_EINVALID, "%s: the file must hold an object", config->path);
    const struct cn_confnode *origin = cn_confnode_find(config->root, "userConfigPath");
    config->generated = origin && origin->kind == CN_CONF_STRING;
    int rc = check_keys(&loader, config->root, NULL, err);
    if (rc == 0)
        rc = check_environments(&loader, options ? options->env : NULL, err);
    if (rc == 0)
        rc = read_keys(&loader, err);
    if (rc == 0)
        rc = read_unsafe(&loader, err);
    if (rc == 0)
        rc = check_refused(&loader, options ? options->allow_missing : NULL, err);
    cn_free(loader.refused);
    if (rc < 0)
        return rc;
    if (options && options->main)
        config->main = keep_text(config, cn_strdup(options->main));
    if (config->generated) { /* its defaults are nobody's wish */
        cn_free(config->hosted);
        config->hosted = NULL;
    }
    if (config->pages_build_output_dir && (config->main || config->assets_set))
        return cn_schema_fail(&loader.reader, node_of(&loader, "pages_build_output_dir"), err,
                              "\"pages_build_output_dir\" and \"%s\" exclude each other",
                              config->main ? "main" : "assets");
    rc = read_pages(config, err);
    if (rc == 0)
        rc = read_site(&loader, err);
    if (rc < 0)
        return rc;
    config->env = loader.env ? loader.env->key : NULL;
    int (*const steps[])(struct loader *, struct cn_err *) = {
        check_name,    check_compatibility, read_routes,        check_bindings,
        check_exports, read_vars,           check_binding_names};
    for (size_t i = 0; i < CN_ARRAY_COUNT(steps); i++) {
        rc = steps[i](&loader, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* What the server is told stands in the project's own file, which tools do not copy. */
static void adopt_server(struct cn_config *config, const char *own)
{
    struct cn_buf text = {0};
    if (cn_confnode_find(config->root, "cairn") ||
        cn_files_read(own, CN_CONF_SIZE_MAX, &text, NULL) < 0)
        return;
    bool is_toml = strlen(own) > 5 && strcmp(own + strlen(own) - 5, ".toml") == 0;
    struct cn_confnode *root = is_toml
                                   ? cn_toml_parse(own, (const char *)text.data, text.size, NULL)
                                   : cn_jsonc_parse(own, (const char *)text.data, text.size, NULL);
    for (size_t i = 0; root && root->kind == CN_CONF_TABLE && i < root->count; i++) {
        if (strcmp(root->items[i]->key, "cairn") != 0)
            continue;
        struct cn_confnode *server = root->items[i];
        root->items[i] = cn_confnode_new(CN_CONF_NULL, 1, 1);
        cn_free(server->key);
        server->key = NULL;
        cn_confnode_add(config->root, "cairn", server);
    }
    cn_confnode_free(root);
    cn_buf_fini(&text);
}

int cn_config_load_text(const char *path, bool is_toml, const char *text, size_t length,
                        const struct cn_config_options *options, struct cn_config **out,
                        struct cn_err *err)
{
    struct cn_config *config = CN_NEW(struct cn_config);
    const char *slash = strrchr(path, '/');
    config->path = cn_strdup(path);
    config->dir = !slash          ? cn_strdup(".")
                  : slash == path ? cn_strdup("/")
                                  : cn_strndup(path, (size_t)(slash - path));
    config->home = cn_strdup(config->dir);
    config->keep_names = true;
    make_entries(config);
    config->root =
        is_toml ? cn_toml_parse(path, text, length, err) : cn_jsonc_parse(path, text, length, err);
    if (config->root && config->root->kind == CN_CONF_TABLE && options && options->own)
        adopt_server(config, options->own);
    int rc = config->root ? load(config, options, err) : CN_EINVALID;
    if (rc == 0)
        rc = read_var_options(config, options, err);
    if (rc < 0) {
        cn_config_free(config);
        return rc;
    }
    *out = config;
    return 0;
}

/* A source file without a configuration: what wrangler takes for granted. */
static void write_plain(struct cn_buf *text)
{
    char today[16];
    struct tm tm;
    time_t now = time(NULL);
    strftime(today, sizeof(today), "%Y-%m-%d", gmtime_r(&now, &tm));
    cn_buf_printf(text, "{\"compatibility_date\":\"%s\"}", today);
}

static int read_text(const struct cn_findconf *found, struct cn_buf *text, bool *is_toml,
                     struct cn_err *err)
{
    *is_toml = false;
    if (!found->path) {
        write_plain(text);
        return 0;
    }
    const char *dot = strrchr(found->path, '.');
    *is_toml = dot && strcmp(dot, ".toml") == 0;
    if (!dot || (!*is_toml && strcmp(dot, ".json") != 0 && strcmp(dot, ".jsonc") != 0))
        return cn_err_set(err, CN_EINVALID,
                          "%s: a configuration is a .toml, .json or .jsonc file, a source file is "
                          ".js or .ts",
                          found->path);
    return cn_files_read(found->path, CN_CONF_SIZE_MAX, text, err);
}

int cn_config_load(const char *project, const struct cn_config_options *options,
                   struct cn_config **out, struct cn_err *err)
{
    struct cn_buf text = {0};
    struct cn_config *config = NULL;
    struct cn_findconf found;
    bool is_toml;
    int rc = cn_findconf(project, &found, err);
    if (rc < 0)
        return rc;
    struct cn_config_options all = options ? *options : (struct cn_config_options){0};
    all.main = found.script;
    all.own = found.own;
    rc = read_text(&found, &text, &is_toml, err);
    char *path = found.path ? cn_strdup(found.path) : cn_sprintf("%s/wrangler.json", found.home);
    if (rc == 0)
        rc = cn_config_load_text(path, is_toml, (const char *)text.data, text.size, &all, &config,
                                 err);
    if (rc == 0) {
        cn_free(config->home);
        config->home = cn_strdup(found.home);
        config->note = found.own || config->generated ? cn_findconf_note(found.home) : NULL;
        rc = read_secret_files(config, config->home, err);
    }
    if (rc == 0 && !config->secrets_node && strcmp(config->home, config->dir) != 0)
        rc = read_secret_files(config, config->dir, err); /* what the build tool has copied */
    if (rc == 0) {
        apply_secrets(config);
        rc = read_var_options(config, options, err); /* again: --var wins over secrets too */
    }
    if (rc == 0)
        *out = config;
    else
        cn_config_free(config);
    cn_buf_fini(&text);
    cn_free(path);
    cn_findconf_fini(&found);
    return rc;
}

void cn_config_free(struct cn_config *config)
{
    if (!config)
        return;
    cn_schema_fini(&cn_config_schema, config);
    free_entries(config);
    for (size_t i = 0; i < config->warnings.count; i++)
        cn_free(config->warnings.items[i]);
    cn_free(config->warnings.items);
    for (size_t i = 0; i < config->var_text_count; i++)
        cn_free(config->var_texts[i]);
    cn_free(config->var_texts);
    cn_free(config->vars.items);
    cn_free(config->routes.items);
    cn_free(config->hosted);
    cn_free(config->name_owned);
    cn_free(config->secrets_path);
    cn_free(config->path);
    cn_free(config->dir);
    cn_free(config->home);
    cn_free(config->note);
    for (size_t i = 0; i < config->missing.count; i++) {
        cn_free(config->missing.items[i].key);
        cn_free(config->missing.items[i].binding);
    }
    cn_free(config->missing.items);
    cn_confnode_free(config->root);
    cn_confnode_free(config->secrets_node);
    cn_confnode_free(config->pages_node);
    cn_free(config);
}
