/* SPDX-License-Identifier: Apache-2.0 */
/* config/service_config.h - what a service (service/def.h) adds to the configuration, and how its
 * bindings come to a script.
 *
 * A service has one key, a list of tables or a table, which is read by a schema (config/keys.h)
 * into a struct of its own; cn_config_entries() gives it back. At a deployment `bind` writes an
 * entry for each binding into options.bindings: {"name", "type", "part", ...}, and makeBinding()
 * of prelude/workers/service/NAME.js makes the object of it.
 *
 *     int bind(struct cn_bindings *list, const void *entries, struct cn_err *err)
 *         for each entry:
 *             cn_binding_begin_service(list, entry->binding, "tally", entry->name, err);
 *             cn_binding_end(list);
 *
 * Threads:   the deploying one.
 * Ownership: a configuration owns the structs; texts in them are those of its nodes. */
#ifndef CN_CONFIG_SERVICE_CONFIG_H
#define CN_CONFIG_SERVICE_CONFIG_H
#include <stdbool.h>
#include <stddef.h>

#include "config/schema.h"

struct cn_buf;
struct cn_config;
struct cn_confnode;
struct cn_err;
struct cn_namespace;
struct cn_node;
struct cn_project;
struct cn_script;
struct cn_service_def;

/* The bindings of a script that is deployed. */
struct cn_bindings {
    const struct cn_config *config;
    struct cn_script *script;
    struct cn_node *node; /* NULL: the server has no data directory */
    const char *service;  /* whose bindings are written; NULL: no service's */
    struct cn_buf *json;
};

typedef void (*cn_service_local)(void *data, const char *local, const char *id);

struct cn_service_config {
    /* The key: a CN_FIELD_LIST, whose struct is {items, count}, or a CN_FIELD_TABLE, whose struct
     * is its schema's. The offset is 0. */
    struct cn_schema_field key;
    bool in_cairn; /* a key of [cairn], not of wrangler */
    /* Where the names on `env` are: in this list of the table (NULL: in the table or list itself),
     * under this key. NULL: it puts none there. */
    const char *list, *name;
    /* Entries of unsafe.bindings with this type go to the list too. NULL: none. */
    const char *unsafe_type;
    const struct cn_schema *unsafe;

    /* After reading; `node` is the key's, or the file's if it is not given. May be NULL. */
    int (*check)(const struct cn_schema_reader *reader, const struct cn_confnode *node,
                 const struct cn_config *config, const void *entries, struct cn_err *err);
    /* Whether the project needs a data directory for them. NULL: never. */
    bool (*wants_node)(const void *entries);
    /* Writes the bindings, and whatever else a script must know. May be NULL. */
    int (*bind)(struct cn_bindings *list, const void *entries, struct cn_err *err);
    /* A script of the server's own for what the projects have; *script stays NULL if there is
     * none. `node` may be NULL. May be NULL. */
    int (*own_script)(const struct cn_project *projects, size_t count, struct cn_node *node,
                      struct cn_script **script, struct cn_err *err);
    /* Calls back for what each binding is to: what the local simulator calls it, and its id here
     * ("$SERVICE/ID"). NULL: the simulator keeps nothing that could move. */
    void (*local)(const struct cn_config *config, cn_service_local each, void *data);
};

/* What was read for a service: zeros if its key is not there. */
const void *cn_config_entries(const struct cn_config *config, const struct cn_service_def *def);

/* For wants_node of a list: whether it has entries. */
bool cn_service_config_any(const void *entries);

/* Begins {"name":NAME,"type":TYPE; the service is told too, as "part". */
void cn_binding_begin(struct cn_bindings *list, const char *name, const char *type);
/* The same with the namespace "$SERVICE/ID" (service/service.h) as "ns", which is made if it does
 * not exist, and which the script may use from then on. */
int cn_binding_begin_service(struct cn_bindings *list, const char *name, const char *type,
                             const char *id, struct cn_err *err);
/* ,"KEY":VALUE */
void cn_binding_member(struct cn_bindings *list, const char *key, const char *value);
void cn_binding_number(struct cn_bindings *list, const char *key, int64_t value);
void cn_binding_end(struct cn_bindings *list);

/* The namespace "$SERVICE/ID", made if it does not exist, without a binding. `what` ("cron triggers
 * were added") is told if the server has begun without a data directory. */
int cn_binding_namespace(struct cn_bindings *list, const char *what, const char *id,
                         struct cn_namespace **ns, struct cn_err *err);
/* That sentence: "the binding NAME was added; restart the server to use it". */
int cn_binding_refuse_new(const char *name, struct cn_err *err);

#endif
