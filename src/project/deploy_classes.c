/* SPDX-License-Identifier: Apache-2.0 */
#include "project/deploy_classes.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/confnode.h"
#include "module/module.h"
#include "object/node.h"
#include "project/project.h"
#include "store/catalog.h"
#include "store/history.h"
#include "store/store.h"
#include "worker/script.h"

#define REQUEST_FILE "deploy.json"
/* Objects of classes past their time that one deployment removes. */
#define PURGE_MAX 10000
#define CLOCKS_MS \
    3600000 /* what clocks of nodes may differ by: who takes a class back is another */

/* ---- what may be deleted or taken back ---- */

struct wishes {
    char *allow_delete, *recover; /* owned: the texts that the lists point into */
    const char **allowed, **recovered;
    size_t allowed_count, recovered_count;
};

/* Appends the names of "A,B" to a list. */
static void split(char *text, const char ***list, size_t *count)
{
    char *state = NULL;
    for (char *word = text ? strtok_r(text, ", ", &state) : NULL; word;
         word = strtok_r(NULL, ", ", &state)) {
        *list = cn_realloc(*list, (*count + 1) * sizeof(**list));
        (*list)[(*count)++] = word;
    }
}

static char *join(const char *a, const char *b)
{
    return cn_sprintf("%s,%s", a ? a : "", b ? b : "");
}

static void read_wishes(struct wishes *wishes, const struct cn_deploy_wishes *asked,
                        struct cn_disk *disk)
{
    struct cn_buf text = {0};
    struct cn_confnode *root = NULL, *allow = NULL, *recover = NULL;
    *wishes = (struct wishes){0};
    /* A wish that is damaged is none: it may name a class to be deleted. */
    if (disk && cn_classes_read_file(disk, REQUEST_FILE, &text, NULL) == 1 &&
        cn_classes_unseal(&text, REQUEST_FILE, NULL) == 1)
        root = cn_jsonc_parse(REQUEST_FILE, (const char *)text.data, text.size, NULL);
    if (root && root->kind == CN_CONF_TABLE) {
        allow = cn_confnode_find(root, "allow_delete");
        recover = cn_confnode_find(root, "recover");
    }
    wishes->allow_delete =
        join(asked->allow_delete, allow && allow->kind == CN_CONF_STRING ? allow->text : NULL);
    wishes->recover =
        join(asked->recover, recover && recover->kind == CN_CONF_STRING ? recover->text : NULL);
    split(wishes->allow_delete, &wishes->allowed, &wishes->allowed_count);
    split(wishes->recover, &wishes->recovered, &wishes->recovered_count);
    cn_confnode_free(root);
    cn_buf_fini(&text);
}

static void free_wishes(struct wishes *wishes)
{
    cn_free(wishes->allow_delete);
    cn_free(wishes->recover);
    cn_free(wishes->allowed);
    cn_free(wishes->recovered);
}

int cn_deploy_leave_request(const struct cn_deploy_wishes *asked, struct cn_disk *disk,
                            struct cn_err *err)
{
    if (!asked->allow_delete && !asked->recover)
        return 0;
    struct cn_buf json = {0};
    const char *allow = asked->allow_delete ? asked->allow_delete : "";
    const char *recover = asked->recover ? asked->recover : "";
    cn_buf_append_str(&json, "{\"allow_delete\": ");
    cn_buf_append_json(&json, allow, strlen(allow));
    cn_buf_append_str(&json, ", \"recover\": ");
    cn_buf_append_json(&json, recover, strlen(recover));
    cn_buf_append_str(&json, "}\n");
    cn_classes_seal(&json);
    int rc = cn_disk_replace(disk, REQUEST_FILE, json.data, json.size);
    cn_buf_fini(&json);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write " REQUEST_FILE) : 0;
}

/* ---- planning ---- */

/* The names in the manifest's list of exports, and of the classes of modules; the caller frees the
 * items. */
static bool read_exported(const struct cn_project *project, struct cn_strings *names)
{
    const struct cn_confnode *manifest = project->bundle.manifest;
    const struct cn_confnode *list = manifest ? cn_confnode_find(manifest, "exports") : NULL;
    *names = (struct cn_strings){0};
    if (!list || list->kind != CN_CONF_ARRAY)
        return false;
    size_t compiled = cn_modules_class_count(project->modules);
    names->items = cn_alloc_zero((list->count + compiled + 1) * sizeof(*names->items));
    for (size_t i = 0; i < compiled; i++)
        names->items[names->count++] = cn_modules_class_name(project->modules, i);
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i]->kind == CN_CONF_STRING)
            names->items[names->count++] = list->items[i]->text;
    }
    return true;
}

static int64_t retention(const struct cn_deploy_wishes *asked)
{
    return asked->history_ms ? asked->history_ms : CN_HISTORY_RETENTION_MS_DEFAULT;
}

void cn_deploy_plan(const struct cn_deploy_input *input, const struct cn_classes *classes,
                    struct cn_plan *plan)
{
    const struct cn_project *projects = input->projects;
    size_t count = input->count;
    const struct cn_deploy_wishes *asked = input->asked;
    struct cn_disk *disk = input->disk;
    struct wishes wishes;
    struct cn_migrate_project *inputs = cn_alloc_zero((count + 1) * sizeof(*inputs));
    struct cn_strings *exported = cn_alloc_zero((count + 1) * sizeof(*exported));
    for (size_t i = 0; i < count; i++) {
        inputs[i].config = projects[i].config;
        if (read_exported(&projects[i], &exported[i]))
            inputs[i].exported = &exported[i];
    }
    read_wishes(&wishes, asked, disk);
    struct cn_migrate_options options = {
        .allow_delete = wishes.allowed,
        .allow_delete_count = wishes.allowed_count,
        .recover = wishes.recovered,
        .recover_count = wishes.recovered_count,
        .now_ms = cn_clock_wall_ms(cn_clock_system()),
        .retention_ms = retention(asked),
    };
    cn_plan_make(plan, classes, inputs, count, &options);
    free_wishes(&wishes);
    for (size_t i = 0; i < count; i++)
        cn_free(exported[i].items);
    cn_free(exported);
    cn_free(inputs);
}

/* ---- the end of deleted classes ---- */

struct batch {
    struct cn_object_key keys[100];
    int count;
};

static int collect(void *data, const struct cn_catalog_entry *entry)
{
    struct batch *batch = data;
    batch->keys[batch->count++] = entry->key;
    return batch->count == (int)CN_ARRAY_COUNT(batch->keys);
}

/* Removes objects of the namespace from one store. 1: all are gone; 0: enough for now. */
static int purge_store(struct cn_store *store, uint32_t ns, size_t *left, struct cn_err *err)
{
    for (;;) {
        struct batch batch = {0};
        uint64_t lsn;
        int rc = cn_catalog_list(cn_store_catalog(store), ns, NULL, CN_ARRAY_COUNT(batch.keys),
                                 collect, &batch, err);
        if (rc < 0)
            return rc;
        if (batch.count == 0)
            return 1;
        for (int i = 0; i < batch.count; i++, --*left) {
            if (*left == 0)
                return 0;
            rc = cn_store_delete(store, &batch.keys[i], &lsn, err);
            if (rc < 0)
                return rc;
        }
    }
}

static int purge(struct cn_shards *shards, uint32_t ns, size_t *left, struct cn_err *err)
{
    int rc = 1;
    for (unsigned i = 0; i < cn_shards_count(shards) && rc == 1; i++) {
        struct cn_shard *shard = cn_shards_hold_index(shards, i);
        if (!shard)
            return 0; /* whoever has it may have some */
        rc = purge_store(shard->store, ns, left, err);
        cn_shard_release(shard);
    }
    return rc;
}

/* Objects of classes that can no longer be taken back go, some with every deployment (K3). */
static int purge_old(struct cn_classes *classes, int64_t retention_ms, struct cn_disk *disk,
                     struct cn_shards *shards, struct cn_err *err)
{
    int64_t limit = cn_clock_wall_ms(cn_clock_system()) - retention_ms;
    size_t left = PURGE_MAX;
    bool changed = false;
    for (size_t i = 0; i < classes->entry_count;) {
        struct cn_class_entry *entry = &classes->entries[i];
        int rc = 0;
        if (entry->deleted_ms && entry->deleted_ms < limit)
            rc = purge(shards, (uint32_t)entry->ns, &left, err);
        if (rc < 0)
            return rc;
        if (rc == 1) {
            cn_info("%s/%s: the last objects of the deleted class are gone", entry->script,
                    entry->name);
            *entry = classes->entries[--classes->entry_count];
            changed = true;
        } else {
            i++;
        }
    }
    return changed ? cn_classes_save(classes, disk, err) : 0;
}

/* The same on a node of several: of the shards that it has. The table is all nodes', so the entry
 * stays: no node knows that all objects are gone. */
static void purge_here(const struct cn_classes *classes, int64_t retention_ms,
                       struct cn_shards *shards)
{
    int64_t limit = cn_clock_wall_ms(cn_clock_system()) - retention_ms - CLOCKS_MS;
    size_t left = PURGE_MAX;
    for (size_t i = 0; i < classes->entry_count; i++) {
        const struct cn_class_entry *entry = &classes->entries[i];
        if (!entry->deleted_ms || entry->deleted_ms >= limit)
            continue;
        for (unsigned k = 0; k < cn_shards_count(shards) && left; k++) {
            struct cn_shard *shard = cn_shards_hold_index(shards, k);
            struct cn_err err = {0};
            if (!shard)
                continue;
            if (purge_store(shard->store, (uint32_t)entry->ns, &left, &err) < 0)
                cn_warn("%s/%s: objects of the deleted class are left: %s", entry->script,
                        entry->name, err.text);
            cn_shard_release(shard);
        }
    }
}

/* ---- applying ---- */

/* Every line but notes that repeat themselves with each start. */
static void tell(const struct cn_plan *plan)
{
    struct cn_buf text = {0};
    cn_plan_print(plan, &text);
    char *state = NULL;
    for (char *line = strtok_r(cn_buf_text(&text), "\n", &state); line;
         line = strtok_r(NULL, "\n", &state)) {
        if (strncmp(line, "refused", 7) == 0)
            cn_error("%s", line);
        else if (plan->changes || strncmp(line, "note", 4) != 0)
            cn_info("%s", line);
    }
    cn_buf_fini(&text);
}

/* Workers that were deleted. True: the table changes. */
static bool forget_gone(struct cn_classes *classes, const struct cn_deploy_wishes *asked)
{
    char *names = cn_strdup(asked->gone ? asked->gone : ""), *state = NULL;
    bool changed = false;
    for (char *name = strtok_r(names, ",", &state); name; name = strtok_r(NULL, ",", &state))
        changed |= cn_classes_forget_script(classes, name, cn_clock_wall_ms(cn_clock_system()));
    cn_free(names);
    return changed;
}

int cn_deploy_classes_commit(struct cn_disk *disk, const struct cn_ledger *ledger,
                             const struct cn_buf *pending, struct cn_err *err)
{
    int rc = ledger && pending->size ? ledger->keep(ledger->data, pending, err) : 0;
    if (rc < 0)
        return rc;
    rc = pending->size ? cn_disk_replace(disk, CN_CLASSES_FILE, pending->data, pending->size) : 0;
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot write " CN_CLASSES_FILE);
    (void)cn_disk_unlink(disk, REQUEST_FILE); /* usually there is none */
    if (ledger)
        ledger->served(ledger->data);
    return 0;
}

int cn_deploy_classes(const struct cn_deploy_input *input, bool tells, struct cn_shards *shards,
                      struct cn_classes *classes, struct cn_buf *pending, struct cn_err *err)
{
    struct cn_disk *disk = input->disk;
    struct cn_plan plan;
    cn_buf_clear(pending);
    int rc = input->ledger ? input->ledger->fetch(input->ledger->data, disk, err) : 0;
    if (rc == 0)
        rc = cn_classes_load(classes, disk, err);
    if (rc < 0)
        return rc;
    rc = cn_classes_settle(classes, shards, err);
    if (rc == 0 && input->ledger)
        purge_here(classes, retention(input->asked), shards);
    else if (rc == 0)
        rc = purge_old(classes, retention(input->asked), disk, shards, err);
    if (rc < 0)
        goto free_classes;
    bool forgot = forget_gone(classes, input->asked);
    cn_deploy_plan(input, classes, &plan);
    if (tells)
        tell(&plan);
    rc = cn_plan_check(&plan, err);
    if (rc == 0 && (plan.changes || forgot))
        rc = cn_plan_number(&plan, shards, err);
    struct cn_buf text = {0};
    if (rc == 0)
        cn_classes_write(&plan.next, &text);
    if (rc == 0 && (plan.changes || forgot))
        cn_buf_append(pending, text.data, text.size);
    cn_plan_fini(&plan);
    if (rc == 0) {
        cn_classes_fini(classes);
        rc = cn_classes_parse(classes, &text, err);
    }
    cn_buf_fini(&text);
    if (rc == 0)
        return 0;
free_classes:
    cn_classes_fini(classes);
    return rc;
}

/* ---- a script ---- */

static int open_namespace(struct cn_node *node, const struct cn_class_entry *entry,
                          struct cn_namespace **ns, struct cn_err *err)
{
    char *name = cn_sprintf("%s/%s", entry->script, entry->name);
    int rc = cn_node_namespace_open(node, (uint32_t)entry->ns, name, ns, err);
    cn_free(name);
    return rc;
}

int cn_deploy_objects(struct cn_script *script, const struct cn_config *config,
                      struct cn_node *node, const struct cn_classes *classes, struct cn_err *err)
{
    struct cn_namespace *ns;
    int rc = 0;
    if (!node && (config->durable_objects.bindings.count || config->migrations.count ||
                  config->exports.count))
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "Durable Objects were added; restart the server to use them");
    for (size_t i = 0; i < classes->entry_count && rc == 0; i++) {
        const struct cn_class_entry *entry = &classes->entries[i];
        if (entry->deleted_ms || strcmp(entry->script, config->name) != 0)
            continue;
        const struct cn_module_class *compiled = NULL;
        if (cn_module_names(entry->name) && !script->broken &&
            !(compiled = cn_modules_class(script->modules, entry->name, err)))
            return err->code;
        rc = open_namespace(node, entry, &ns, err);
        if (rc == 0)
            cn_script_add_class(script, entry->name, ns, compiled);
    }
    for (size_t i = 0; i < config->durable_objects.bindings.count && rc == 0; i++) {
        const struct cn_config_object *object = &config->durable_objects.bindings.items[i];
        char *owner = cn_migrate_owner(config, object);
        const struct cn_class_entry *entry = cn_classes_resolve(classes, owner, object->class_name);
        cn_free(owner);
        CN_ASSERT(entry); /* M3 */
        rc = open_namespace(node, entry, &ns, err);
        if (rc == 0)
            cn_script_add_namespace(script, ns);
        if (rc == 0 && script->modules && !cn_modules_are_bound(script->modules))
            cn_modules_bind(script->modules, object->name, ns);
    }
    return rc;
}
