/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_bindings.c - what a worker finds on `env`: entries of services, bindings and their
 * names. See config_private.h. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "config/config_private.h"
#include "config/confnode.h"
#include "config/service_config.h"

/* ---- entries of services ----------------------------------------------- */

const void *cn_config_entries(const struct cn_config *config, const struct cn_service_def *def)
{
    return config->entries[cn_service_index(def)];
}

static size_t entries_size(const struct cn_service_config *service)
{
    return service->key.kind == CN_FIELD_LIST ? sizeof(struct cn_schema_list)
                                              : service->key.sub->size;
}

void cn_config_make_entries(struct cn_config *config)
{
    for (size_t i = 0; cn_service_table[i]; i++)
        if (cn_service_table[i]->config)
            config->entries[i] = cn_alloc_zero(entries_size(cn_service_table[i]->config));
}

void cn_config_free_entries(struct cn_config *config)
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

/* Where the key of a service stands. The root: it was not given. */
static const struct cn_confnode *service_node(struct cn_config_loader *loader,
                                              const struct cn_service_config *service)
{
    const struct cn_confnode *root = loader->config->root;
    if (!service->in_cairn)
        return cn_config_node_of(loader, service->key.name);
    const struct cn_confnode *table = cn_config_node_of(loader, "cairn");
    const struct cn_confnode *node =
        table != root ? cn_confnode_find(table, service->key.name) : NULL;
    return node ? node : root;
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
static int read_unsafe_item(struct cn_config_loader *loader, size_t service,
                            const struct cn_confnode *item, const char *path, struct cn_err *err)
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
int cn_config_read_unsafe(struct cn_config_loader *loader, struct cn_err *err)
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
        cn_config_refuse(&loader->reader, "unsafe", node);
    return 0;
}

/* ---- names on `env` ---------------------------------------------------- */

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
static int take_name(struct cn_config_loader *loader, struct cn_map *taken, const char *key,
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
static int take_names(struct cn_config_loader *loader, struct cn_map *taken, const char *key,
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

int cn_config_check_binding_names(struct cn_config_loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    struct cn_map taken;
    int rc = 0;
    cn_map_init(&taken);
    for (size_t i = 0; config->vars_node && i < config->vars_node->count; i++)
        cn_map_set(&taken, config->vars_node->items[i]->key,
                   strlen(config->vars_node->items[i]->key), (void *)"vars");
    for (size_t i = 0; i < CN_ARRAY_COUNT(binding_keys) && rc == 0; i++)
        rc = take_names(loader, &taken, binding_keys[i].key,
                        cn_config_node_of(loader, binding_keys[i].key), binding_keys[i].list,
                        binding_keys[i].name, err);
    for (size_t i = 0; cn_service_table[i] && rc == 0; i++) {
        const struct cn_service_config *service = cn_service_table[i]->config;
        if (service && service->name)
            rc = take_names(loader, &taken, service->key.name, service_node(loader, service),
                            service->list, service->name, err);
    }
    cn_map_fini(&taken);
    return rc;
}

/* ---- what bindings need ------------------------------------------------ */

int cn_config_check_bindings(struct cn_config_loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    if (config->assets_set && !config->assets.directory && !config->generated)
        return cn_schema_fail(&loader->reader, cn_config_node_of(loader, "assets"), err,
                              "\"assets\" needs the key \"directory\" (the Vite plugin writes it "
                              "when it builds: run that first)");
    if (!config->main && !config->assets.directory && !config->server.worker)
        return cn_err_set(err, CN_EINVALID,
                          "%s: the key \"main\" is missing: it names the worker's source file, "
                          "unless there are only assets, or [cairn] worker names a class in C",
                          loader->reader.file);
    if (cn_config_node_of(loader, "access") != config->root)
        cn_config_warn(
            config,
            "%s:%d: \"access\": nobody is authenticated by cairn: let a proxy in front do it",
            loader->reader.file, cn_config_node_of(loader, "access")->line);
    if (config->dev.local_protocol && strcmp(config->dev.local_protocol, "https") == 0)
        cn_config_warn(
            config,
            "%s:%d: \"dev.local_protocol\": https needs a certificate: --tls-cert and --tls-key",
            loader->reader.file, cn_config_node_of(loader, "dev")->line);
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
