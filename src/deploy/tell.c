/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/tell.h"

#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/confnode.h"
#include "deploy/deploy.h"
#include "v4/depot.h"

#define NAME_WIDTH_MAX 40
#define VALUE_SIZE_MAX 60

/* What people call it, and which members of its entry say which one it is: the first that is given.
 * By the type in an upload. */
static const struct {
    const char *type, *title, *members[3];
} titles[] = {
    {"durable_object_namespace", "Durable Object", {"class_name"}},
    {"kv_namespace", "KV namespace", {"id"}},
    {"r2_bucket", "R2 bucket", {"bucket_name"}},
    {"d1", "D1 database", {"database_name", "database_id"}},
    {"queue", "queue", {"queue"}},
    {"service", "worker", {"service"}},
    {"analytics_engine", "Analytics Engine", {"dataset"}},
    {"ratelimit", "rate limit", {"namespace_id"}},
    {"send_email", "email", {"destination_address"}},
    {"hyperdrive", "Hyperdrive", {"id"}},
    {"version_metadata", "version", {NULL}},
    {"ai", "AI", {NULL}},
};

struct row {
    const char *name, *title; /* borrowed from the configuration, or static */
    char *value;              /* owned */
};

struct table {
    struct row *rows; /* owned */
    size_t count, name_width, title_width;
};

static void add(struct table *table, const char *name, const char *title, char *value)
{
    size_t width = strlen(name), title_width = strlen(title);
    if (width > table->name_width && width <= NAME_WIDTH_MAX)
        table->name_width = width;
    if (title_width > table->title_width)
        table->title_width = title_width;
    table->rows = cn_realloc(table->rows, (table->count + 1) * sizeof(*table->rows));
    table->rows[table->count++] = (struct row){name, title, value};
}

static const char *text_of(const struct cn_confnode *entry, const char *key)
{
    const struct cn_confnode *node = key ? cn_confnode_find(entry, key) : NULL;
    return node && node->kind == CN_CONF_STRING ? node->text : NULL;
}

static void add_entry(struct table *table, const struct cn_depot_kind *kind,
                      const struct cn_confnode *entry)
{
    const char *title = kind->type, *value = NULL, *name = NULL;
    if (entry->kind != CN_CONF_TABLE)
        return;
    for (size_t i = 0; i < CN_ARRAY_COUNT(titles); i++) {
        if (strcmp(titles[i].type, kind->type) != 0)
            continue;
        title = titles[i].title;
        for (size_t j = 0; j < CN_ARRAY_COUNT(titles[i].members) && !value; j++)
            value = text_of(entry, titles[i].members[j]);
    }
    for (size_t i = 0; i < CN_DEPOT_FIELD_MAX && kind->fields[i].from && !name; i++) {
        if (strcmp(kind->fields[i].from, "name") == 0)
            name = text_of(entry, kind->fields[i].to);
    }
    const char *script = text_of(entry, "script_name");
    if (name)
        add(table, name, title,
            cn_sprintf("%s%s%s", value ? value : "", script ? " of " : "", script ? script : ""));
}

static void add_kind(struct table *table, const struct cn_config *config,
                     const struct cn_depot_kind *kind)
{
    const struct cn_confnode *node = cn_config_at(config, kind->key);
    if (node && node->kind == CN_CONF_TABLE)
        add_entry(table, kind, node);
    for (size_t i = 0; node && node->kind == CN_CONF_ARRAY && i < node->count; i++)
        add_entry(table, kind, node->items[i]);
}

/* A value as one short line. */
static char *shorten(const struct cn_config_var *var)
{
    struct cn_buf text = {0};
    size_t size = var->length < VALUE_SIZE_MAX ? var->length : VALUE_SIZE_MAX;
    while (size < var->length && size && ((unsigned char)var->text[size] & 0xC0) == 0x80)
        size--; /* not within a character */
    if (var->kind == CN_VAR_TEXT)
        cn_buf_append_json(&text, var->text, size);
    else
        cn_buf_append(&text, var->text, size);
    cn_buf_append_str(&text, size < var->length ? "..." : "");
    cn_buf_text(&text);
    return (char *)cn_buf_take(&text);
}

/* Later ones win, and a name has one line. */
static bool is_last(const struct cn_config *config, size_t index)
{
    for (size_t i = index + 1; i < config->vars.count; i++) {
        if (strcmp(config->vars.items[i].name, config->vars.items[index].name) == 0)
            return false;
    }
    return true;
}

static void add_vars(struct table *table, const struct cn_config *config)
{
    const char *slash = config->secrets_path ? strrchr(config->secrets_path, '/') : NULL;
    for (size_t i = 0; i < config->vars.count; i++) {
        const struct cn_config_var *var = &config->vars.items[i];
        if (!is_last(config, i))
            continue;
        if (var->kind == CN_VAR_SECRET)
            add(table, var->name, "secret",
                slash ? cn_sprintf("from %s", slash + 1) : cn_strdup("hidden"));
        else
            add(table, var->name, "variable", shorten(var));
    }
}

static void tell_project(const struct cn_config *config, struct cn_buf *out)
{
    struct table table = {0};
    const struct cn_depot_kind *kind;
    for (size_t i = 0; (kind = cn_depot_kind_at(i)); i++)
        add_kind(&table, config, kind);
    if (config->assets.binding)
        add(&table, config->assets.binding, "assets",
            cn_strdup(config->assets.directory ? config->assets.directory : ""));
    add_vars(&table, config);
    if (table.count)
        cn_buf_printf(out, "%s has\n", config->name);
    for (size_t i = 0; i < table.count; i++) {
        struct row *row = &table.rows[i];
        cn_buf_printf(out, "  env.%-*s  %-*s  %s\n", (int)table.name_width, row->name,
                      *row->value ? (int)table.title_width : 0, row->title, row->value);
        cn_free(row->value);
    }
    cn_free(table.rows);
}

void cn_deployer_tell(struct cn_deployer *deployer, struct cn_buf *out)
{
    pthread_mutex_lock(&deployer->lock);
    for (size_t i = 0; i < deployer->project_count; i++)
        tell_project(deployer->projects[i].config, out);
    pthread_mutex_unlock(&deployer->lock);
}
