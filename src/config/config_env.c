/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_env.c - which keys of a file count: every one must be known, and each is read from
 * the chosen environment or from the top level. See config_private.h. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config_private.h"
#include "config/confnode.h"
#include "config/service_config.h"

/* ---- keys that cannot be honoured -------------------------------------- */

void cn_config_refuse(struct cn_schema_reader *reader, const char *key,
                      const struct cn_confnode *node)
{
    struct cn_config_loader *loader = (struct cn_config_loader *)reader;
    loader->refused =
        cn_realloc(loader->refused, (loader->refused_count + 1) * sizeof(*loader->refused));
    loader->refused[loader->refused_count++] = (struct cn_config_refused){cn_strdup(key), node};
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

int cn_config_check_refused(struct cn_config_loader *loader, const char *allowed,
                            struct cn_err *err)
{
    struct cn_config *config = loader->config;
    const struct cn_confnode *first = NULL;
    struct cn_buf keys = {0}, flag = {0};
    for (size_t i = 0; i < loader->refused_count; i++) {
        const struct cn_confnode *node = loader->refused[i].node;
        const char *key = loader->refused[i].key;
        if (is_listed(allowed, key)) {
            add_missing(config, key, NULL);
            cn_config_warn(config,
                           "%s:%d: \"%s\" is not there (--allow-missing): what uses it fails",
                           loader->reader.file, node->line, key);
            if (strcmp(key, "containers") != 0 && !strchr(key, '.'))
                add_missing_bindings(config, key, node); /* the others have no names on `env` */
            continue;
        }
        if (!first)
            cn_buf_printf(&keys, "\"%s\"", key);
        else
            cn_buf_printf(&keys, ", \"%s\" (line %d)", key, node->line);
        cn_buf_printf(&flag, "%s%s", first ? "," : "", key);
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

/* ---- keys and environments --------------------------------------------- */

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
    struct cn_config *config = ((struct cn_config_loader *)reader)->config;
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

/* Keys that nobody knows are passed over, as wrangler does, and told at once in the end. Not so in
 * [cairn], which is nobody else's: what stands there is a mistake, perhaps one in a limit. */
static bool on_unknown(struct cn_schema_reader *reader, const char *key,
                       const struct cn_confnode *node, const char *meant)
{
    struct cn_buf *unknown = &((struct cn_config_loader *)reader)->unknown;
    if (strncmp(key, "cairn.", 6) == 0)
        return false;
    cn_buf_printf(unknown, "%s\"%s\" (line %d%s%s%s)", unknown->size ? ", " : "", key, node->line,
                  meant ? "; did you mean \"" : "", meant ? meant : "", meant ? "\"?" : "");
    return true;
}

static void tell_unknown(struct cn_config_loader *loader)
{
    if (loader->unknown.size)
        cn_config_warn(loader->config, "%s: unknown keys, passed over: %s", loader->reader.file,
                       cn_buf_text(&loader->unknown));
}

/* Collects "account_id, placement" for one line in the log. */
static void on_hosted(struct cn_schema_reader *reader, const char *key)
{
    struct cn_config *config = ((struct cn_config_loader *)reader)->config;
    char *longer =
        config->hosted ? cn_sprintf("%s, %s", config->hosted, key) : cn_sprintf("%s", key);
    cn_free(config->hosted);
    config->hosted = longer;
}

void cn_config_loader_init(struct cn_config_loader *loader, struct cn_config *config)
{
    *loader = (struct cn_config_loader){.reader = {.file = config->path,
                                                   .on_hosted = on_hosted,
                                                   .on_refused = cn_config_refuse,
                                                   .on_unknown = on_unknown,
                                                   .on_other = on_other},
                                        .config = config};
}

void cn_config_loader_fini(struct cn_config_loader *loader)
{
    for (size_t i = 0; i < loader->refused_count; i++)
        cn_free(loader->refused[i].key);
    cn_free(loader->refused);
    cn_buf_fini(&loader->unknown);
}

/* Every key of the top level or of an environment must be known, whether it is
 * used in the end or not. */
static int check_keys(struct cn_config_loader *loader, const struct cn_confnode *table,
                      const char *env, struct cn_err *err)
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
            char *key = env ? cn_sprintf("env.%s.%s", env, node->key) : cn_strdup(node->key);
            int rc = cn_schema_unknown(&loader->reader, key, node, meant, err);
            cn_free(key);
            if (rc < 0)
                return rc;
            continue;
        }
        if (env && (field->flags & CN_FIELD_TOP_ONLY))
            return cn_schema_fail(&loader->reader, node, err,
                                  "\"%s\" must stand at the top level, not in [env.%s]", node->key,
                                  env);
    }
    return 0;
}

/* A generated configuration is that of one environment, chosen when it was made. */
static int check_target(struct cn_config_loader *loader, const char *chosen, struct cn_err *err)
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

static int check_environments(struct cn_config_loader *loader, const char *chosen,
                              struct cn_err *err)
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
static int pick_keys(struct cn_config_loader *loader, struct cn_err *err)
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

int cn_config_read_keys(struct cn_config_loader *loader, const char *chosen, struct cn_err *err)
{
    int rc = check_keys(loader, loader->config->root, NULL, err);
    if (rc == 0)
        rc = check_environments(loader, chosen, err);
    if (rc == 0)
        rc = pick_keys(loader, err);
    if (rc == 0)
        tell_unknown(loader);
    return rc;
}

const struct cn_confnode *cn_config_node_of(struct cn_config_loader *loader, const char *key)
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

const struct cn_confnode *cn_config_at(const struct cn_config *config, const char *path)
{
    size_t size = strcspn(path, ".!");
    char *key = cn_strndup(path, size);
    const struct cn_confnode *node = cn_config_key(config, key);
    cn_free(key);
    if (node && path[size] == '.')
        node = node->kind == CN_CONF_TABLE ? cn_confnode_find(node, path + size + 1) : NULL;
    return node;
}
