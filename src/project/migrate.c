/* SPDX-License-Identifier: Apache-2.0 */
#include "project/migrate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "object/shard.h"
#include "store/store.h"

enum progress { WAITING, PLANNING, PLANNED };

struct planner {
    struct cn_plan *plan;
    struct cn_classes *next; /* the plan's, being changed */
    const struct cn_classes *before;
    const struct cn_migrate_project *projects;
    size_t project_count;
    enum progress *progress; /* by project */
    const struct cn_migrate_options *options;
    bool adopts; /* the first migrations of a worker that had none are planned (M4) */
};

static void add_line(struct planner *planner, enum cn_plan_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_line(struct planner *planner, enum cn_plan_kind kind, const char *format, ...)
{
    struct cn_plan *plan = planner->plan;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    plan->lines = cn_realloc(plan->lines, (plan->line_count + 1) * sizeof(*plan->lines));
    plan->lines[plan->line_count++] = (struct cn_plan_line){kind, cn_strdup(text)};
    if (kind == CN_PLAN_REFUSE)
        plan->refused++;
}

#define refuse(planner, ...) add_line(planner, CN_PLAN_REFUSE, __VA_ARGS__)
#define note(planner, ...) add_line(planner, CN_PLAN_NOTE, __VA_ARGS__)

static bool contains(const char *const *items, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(items[i], text) == 0)
            return true;
    }
    return false;
}

/* Is the class named by an option, alone or with its worker? */
static bool is_named(const char *const *items, size_t count, const struct cn_class_entry *entry)
{
    char *full = cn_sprintf("%s/%s", entry->script, entry->name);
    bool found = contains(items, count, entry->name) || contains(items, count, full);
    cn_free(full);
    return found;
}

static const struct cn_migrate_project *find_project(const struct planner *planner,
                                                     const char *script, size_t *index)
{
    for (size_t i = 0; i < planner->project_count; i++) {
        if (strcmp(planner->projects[i].config->name, script) == 0) {
            *index = i;
            return &planner->projects[i];
        }
    }
    return NULL;
}

static void plan_project(struct planner *planner, size_t index);

/* What is done to another worker's classes needs that one's own changes first. */
static void plan_script_first(struct planner *planner, const char *script)
{
    size_t index;
    if (find_project(planner, script, &index))
        plan_project(planner, index);
}

/* ---- steps ---- */

/* A deleted class that may be taken back, or NULL. Not after its time (K3): some of its objects may
 * be gone. */
static struct cn_class_entry *find_recoverable(struct planner *planner, const char *script,
                                               const char *name)
{
    const struct cn_migrate_options *options = planner->options;
    struct cn_class_entry *newest = NULL;
    for (size_t i = 0; i < planner->next->entry_count; i++) {
        struct cn_class_entry *entry = &planner->next->entries[i];
        if (entry->deleted_ms && strcmp(entry->script, script) == 0 &&
            strcmp(entry->name, name) == 0 &&
            options->now_ms - entry->deleted_ms <= options->retention_ms &&
            is_named(options->recover, options->recover_count, entry) &&
            (!newest || entry->deleted_ms > newest->deleted_ms))
            newest = entry;
    }
    return newest;
}

static void create_class(struct planner *planner, const char *script, const char *name,
                         const char *storage)
{
    const struct cn_class_entry *there = cn_classes_find(planner->next, script, name);
    if (there && planner->adopts && strcmp(there->storage, storage) == 0)
        return; /* M4 */
    if (there) {
        refuse(planner, "%s: the class \"%s\" exists already and cannot be created again", script,
               name);
        return;
    }
    struct cn_class_entry *old = find_recoverable(planner, script, name);
    if (old)
        old->deleted_ms = 0;
    else
        cn_classes_add(planner->next, script, name, storage);
}

static void move_class(struct planner *planner, const char *from_script, const char *from,
                       const char *to_script, const char *to)
{
    struct cn_class_entry *entry = cn_classes_find(planner->next, from_script, from);
    if (!entry)
        refuse(planner, "%s: the class \"%s\"%s%s cannot become \"%s\": it does not exist",
               to_script, from, from_script == to_script ? "" : " of ",
               from_script == to_script ? "" : from_script, to);
    else if (cn_classes_find(planner->next, to_script, to))
        refuse(planner,
               "%s: the class \"%s\"%s%s cannot become \"%s\": a class of that name exists; "
               "do not create it before",
               to_script, from, from_script == to_script ? "" : " of ",
               from_script == to_script ? "" : from_script, to);
    else
        cn_classes_move(planner->next, entry, to_script, to);
}

static void delete_class(struct planner *planner, const char *script, const char *name)
{
    struct cn_class_entry *entry = cn_classes_find(planner->next, script, name);
    if (!entry)
        refuse(planner, "%s: the class \"%s\" cannot be deleted: it does not exist", script, name);
    else
        cn_classes_delete(planner->next, entry, planner->options->now_ms);
}

/* ---- migrations ---- */

static void apply_migration(struct planner *planner, const char *script,
                            const struct cn_config_migration *migration)
{
    for (size_t i = 0; i < migration->deleted_classes.count; i++)
        delete_class(planner, script, migration->deleted_classes.items[i]);
    for (size_t i = 0; i < migration->renamed_classes.count; i++)
        move_class(planner, script, migration->renamed_classes.items[i].from, script,
                   migration->renamed_classes.items[i].to);
    for (size_t i = 0; i < migration->transferred_classes.count; i++) {
        const struct cn_config_transferred *item = &migration->transferred_classes.items[i];
        if (strcmp(item->from_script, script) == 0)
            refuse(planner, "%s: \"%s\" is its own class: use renamed_classes", script, item->from);
        else
            move_class(planner, item->from_script, item->from, script, item->to);
    }
    for (size_t i = 0; i < migration->new_sqlite_classes.count; i++)
        create_class(planner, script, migration->new_sqlite_classes.items[i], "sqlite");
    for (size_t i = 0; i < migration->new_classes.count; i++)
        create_class(planner, script, migration->new_classes.items[i], "legacy-kv");
    cn_classes_add_tag(planner->next, script, migration->tag);
}

/* The index of the first migration to apply, or SIZE_MAX if the list is refused (M1). */
static size_t first_new(struct planner *planner, const struct cn_config *config)
{
    const struct cn_class_script *script = cn_classes_find_script(planner->next, config->name);
    static const struct cn_strings none;
    const struct cn_strings *applied = script ? &script->tags : &none;
    const struct cn_config_migration *items = config->migrations.items;
    size_t count = config->migrations.count, first = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(items[i].tag, items[k].tag) == 0) {
                refuse(planner, "%s: two migrations have the tag \"%s\"", config->name,
                       items[i].tag);
                return SIZE_MAX;
            }
        }
    }
    if (!applied->count)
        return 0;
    const char *last = applied->items[applied->count - 1];
    while (first < count && strcmp(items[first].tag, last) != 0)
        first++;
    if (first == count) {
        refuse(planner,
               "%s: the migration \"%s\" has been applied here, but the configuration no longer "
               "has it; put it back, new migrations behind it",
               config->name, last);
        return SIZE_MAX;
    }
    for (size_t i = 0; i < count; i++) {
        bool was_applied = contains(applied->items, applied->count, items[i].tag);
        if (was_applied == (i <= first))
            continue;
        refuse(planner,
               was_applied ? "%s: the migration \"%s\" has been applied already, but stands behind "
                             "\"%s\", the last one applied"
                           : "%s: the migration \"%s\" is new, but stands before \"%s\", the last "
                             "one applied; put it behind",
               config->name, items[i].tag, last);
        return SIZE_MAX;
    }
    return first + 1;
}

static bool has_classes(const struct cn_classes *classes, const char *script)
{
    for (size_t i = 0; i < classes->entry_count; i++) {
        if (!classes->entries[i].deleted_ms && strcmp(classes->entries[i].script, script) == 0)
            return true;
    }
    return false;
}

/* Neither `migrations` nor `exports`: as in development, what is bound exists. */
static void plan_bindings(struct planner *planner, const struct cn_config *config)
{
    for (size_t i = 0; i < config->durable_objects.bindings.count; i++) {
        const struct cn_config_object *object = &config->durable_objects.bindings.items[i];
        if ((object->script_name && strcmp(object->script_name, config->name) != 0) ||
            cn_classes_find(planner->next, config->name, object->class_name))
            continue;
        note(planner,
             "%s: no migration creates \"%s\"; it is created because it is bound. Before it is "
             "deployed, its configuration needs [[migrations]], tag = \"v1\", new_sqlite_classes "
             "= [\"%s\"]",
             config->name, object->class_name, object->class_name);
        create_class(planner, config->name, object->class_name, "sqlite");
    }
}

static void plan_migrations(struct planner *planner, const struct cn_config *config)
{
    const struct cn_class_script *script = cn_classes_find_script(planner->next, config->name);
    bool had_rules = script && (script->declarative || script->tags.count);
    if (config->migrations.count && script && script->declarative) {
        refuse(planner,
               "%s: it was deployed with \"exports\" before and cannot go back to \"migrations\"",
               config->name);
    } else if (config->migrations.count) {
        planner->adopts = !had_rules;
        for (size_t i = first_new(planner, config); i < config->migrations.count; i++)
            apply_migration(planner, config->name, &config->migrations.items[i]);
        planner->adopts = false;
    } else if (had_rules && has_classes(planner->next, config->name)) {
        refuse(planner,
               "%s: it has classes with objects here, but its configuration has neither "
               "\"migrations\" nor \"exports\" any more",
               config->name);
    } else if (!had_rules) {
        plan_bindings(planner, config);
    }
}

/* ---- exports ---- */

static bool is_object(const struct cn_config_export *item)
{
    return strcmp(item->type, "durable-object") == 0;
}

static const char *state_of(const struct cn_config_export *item)
{
    return item->state ? item->state : "created";
}

/* "worker/Class", or "worker" with the class of the same name. The caller frees both. */
static void split_target(const char *text, const char *name, char **script, char **class_name)
{
    const char *slash = strchr(text, '/');
    *script = slash ? cn_strndup(text, (size_t)(slash - text)) : cn_strdup(text);
    *class_name = cn_strdup(slash ? slash + 1 : name);
}

static const struct cn_config_export *find_export(const struct cn_config *config, const char *name)
{
    for (size_t i = 0; i < config->exports.count; i++) {
        if (is_object(&config->exports.items[i]) &&
            strcmp(config->exports.items[i].name, name) == 0)
            return &config->exports.items[i];
    }
    return NULL;
}

/* Tombstones: what was `name` and is not any more. */
static void plan_renamed(struct planner *planner, const struct cn_config *config,
                         const struct cn_config_export *item)
{
    const struct cn_config_export *target = find_export(config, item->renamed_to);
    if (!target || strcmp(state_of(target), "created") != 0)
        refuse(planner, "%s: exports.%s is renamed to \"%s\", which must be declared too",
               config->name, item->name, item->renamed_to);
    else if (cn_classes_find(planner->next, config->name, item->name))
        move_class(planner, config->name, item->name, config->name, item->renamed_to);
    else
        note(planner, "%s: exports.%s (renamed) has been applied and can be removed", config->name,
             item->name);
}

static void plan_transferred(struct planner *planner, const struct cn_config *config,
                             const struct cn_config_export *item)
{
    char *script, *name;
    split_target(item->transferred_to, item->name, &script, &name);
    if (!cn_classes_find(planner->next, config->name, item->name)) {
        note(planner, "%s: exports.%s (transferred) has been applied and can be removed",
             config->name, item->name);
    } else {
        plan_script_first(planner, script);
        const struct cn_class_expected *expected = NULL;
        for (size_t i = 0; i < planner->next->expected_count; i++) {
            const struct cn_class_expected *each = &planner->next->expected[i];
            if (strcmp(each->script, script) == 0 && strcmp(each->name, name) == 0 &&
                strcmp(each->from_script, config->name) == 0 &&
                strcmp(each->from_name, item->name) == 0)
                expected = each;
        }
        if (!expected) {
            refuse(planner,
                   "%s: \"%s\" cannot be transferred to %s before that worker is deployed with "
                   "exports.%s, state \"expecting-transfer\", transfer_from \"%s\"",
                   config->name, item->name, script, name, config->name);
        } else {
            move_class(planner, config->name, item->name, script, name);
            cn_classes_unexpect(planner->next, script, name);
        }
    }
    cn_free(script);
    cn_free(name);
}

static void plan_deleted(struct planner *planner, const struct cn_migrate_project *project,
                         const struct cn_config_export *item)
{
    const struct cn_config *config = project->config;
    if (!cn_classes_find(planner->next, config->name, item->name))
        note(planner, "%s: exports.%s (deleted) has been applied and can be removed", config->name,
             item->name);
    else if (project->exported &&
             contains(project->exported->items, project->exported->count, item->name))
        refuse(planner, "%s: the class \"%s\" cannot be deleted while the code exports it",
               config->name, item->name);
    else
        delete_class(planner, config->name, item->name);
}

static void plan_live(struct planner *planner, const struct cn_config *config,
                      const struct cn_config_export *item)
{
    const struct cn_class_entry *entry = cn_classes_find(planner->next, config->name, item->name);
    if (strcmp(state_of(item), "expecting-transfer") == 0 && !entry) {
        char *script, *name;
        split_target(item->transfer_from, item->name, &script, &name);
        note(planner, "%s: \"%s\" will be %s/%s once that worker has transferred it", config->name,
             item->name, script, name);
        cn_classes_expect(planner->next, config->name, item->name, script, name);
        cn_free(script);
        cn_free(name);
    } else if (!entry) {
        create_class(planner, config->name, item->name, item->storage);
    } else if (item->storage && strcmp(entry->storage, item->storage) != 0) {
        refuse(planner, "%s: the storage of \"%s\" is %s and cannot become %s", config->name,
               item->name, entry->storage, item->storage);
    }
}

static void plan_exports(struct planner *planner, const struct cn_migrate_project *project)
{
    const struct cn_config *config = project->config;
    for (size_t i = 0; i < config->exports.count; i++) {
        const struct cn_config_export *item = &config->exports.items[i];
        if (!is_object(item))
            continue;
        if (strcmp(state_of(item), "renamed") == 0)
            plan_renamed(planner, config, item);
        else if (strcmp(state_of(item), "transferred") == 0)
            plan_transferred(planner, config, item);
        else if (strcmp(state_of(item), "deleted") == 0)
            plan_deleted(planner, project, item);
    }
    for (size_t i = 0; i < config->exports.count; i++) {
        const struct cn_config_export *item = &config->exports.items[i];
        if (is_object(item) && (strcmp(state_of(item), "created") == 0 ||
                                strcmp(state_of(item), "expecting-transfer") == 0))
            plan_live(planner, config, item);
    }
    for (size_t i = 0; i < planner->next->entry_count; i++) { /* M2 */
        const struct cn_class_entry *entry = &planner->next->entries[i];
        if (!entry->deleted_ms && strcmp(entry->script, config->name) == 0 &&
            !find_export(config, entry->name))
            refuse(planner,
                   "%s: the class \"%s\" has objects here, but \"exports\" does not mention it; "
                   "declare it, or say with a state what became of it",
                   config->name, entry->name);
    }
    cn_classes_script(planner->next, config->name)->declarative = true;
}

/* ---- a project, and all ---- */

static bool uses_exports(const struct cn_config *config)
{
    for (size_t i = 0; i < config->exports.count; i++) {
        if (is_object(&config->exports.items[i]))
            return true;
    }
    return false;
}

static void plan_project(struct planner *planner, size_t index)
{
    const struct cn_migrate_project *project = &planner->projects[index];
    const struct cn_config *config = project->config;
    if (planner->progress[index] != WAITING)
        return;
    planner->progress[index] = PLANNING;
    for (size_t i = 0; i < config->migrations.count; i++) {
        const struct cn_config_migration *migration = &config->migrations.items[i];
        for (size_t k = 0; k < migration->transferred_classes.count; k++)
            plan_script_first(planner, migration->transferred_classes.items[k].from_script);
    }
    if (uses_exports(config))
        plan_exports(planner, project);
    else
        plan_migrations(planner, config);
    planner->progress[index] = PLANNED;
}

/* M2: what lives must be in the code. */
static void check_code(struct planner *planner, const struct cn_migrate_project *project)
{
    for (size_t i = 0; project->exported && i < planner->next->entry_count; i++) {
        const struct cn_class_entry *entry = &planner->next->entries[i];
        if (entry->deleted_ms || strcmp(entry->script, project->config->name) != 0 ||
            contains(project->exported->items, project->exported->count, entry->name))
            continue;
        refuse(planner,
               entry->ns > 0 ? "%s: the code no longer exports the class \"%s\", which has objects "
                               "here; rename, transfer or delete it by a migration"
                             : "%s: the code exports no class \"%s\": the main module needs an "
                               "`export class`, or `export { ... }`, with this name",
               entry->script, entry->name);
    }
}

char *cn_migrate_owner(const struct cn_config *config, const struct cn_config_object *object)
{
    if (!object->script_name)
        return cn_strdup(config->name);
    return object->environment ? cn_sprintf("%s-%s", object->script_name, object->environment)
                               : cn_strdup(object->script_name);
}

/* M3 */
static void check_bindings(struct planner *planner, const struct cn_config *config)
{
    for (size_t i = 0; i < config->durable_objects.bindings.count; i++) {
        const struct cn_config_object *object = &config->durable_objects.bindings.items[i];
        char *owner = cn_migrate_owner(config, object);
        const struct cn_class_entry *entry =
            cn_classes_resolve(planner->next, owner, object->class_name);
        size_t index;
        if (entry &&
            (strcmp(entry->script, owner) != 0 || strcmp(entry->name, object->class_name) != 0)) {
            note(planner, "%s: the binding \"%s\" to %s/%s leads to %s/%s", config->name,
                 object->name, owner, object->class_name, entry->script, entry->name);
        } else if (!entry) {
            bool own = strcmp(owner, config->name) == 0;
            refuse(planner,
                   "%s: the binding \"%s\" is to the class \"%s\"%s%s, which does not "
                   "exist%s",
                   config->name, object->name, object->class_name, own ? "" : " of ",
                   own ? "" : owner,
                   own                                    ? "; create it by a migration"
                   : find_project(planner, owner, &index) ? ""
                                                          : "; serve that worker too");
        }
        cn_free(owner);
    }
}

/* "2026-01-31 12:00 UTC" */
static void format_time(int64_t time_ms, char text[40])
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm tm;
    strftime(text, 40, "%Y-%m-%d %H:%M UTC", gmtime_r(&seconds, &tm));
}

static void tell_delete(struct planner *planner, const struct cn_class_entry *was)
{
    const struct cn_migrate_options *options = planner->options;
    char until[40];
    format_time(options->now_ms + options->retention_ms, until);
    if (is_named(options->allow_delete, options->allow_delete_count, was))
        add_line(planner, CN_PLAN_DELETE, "%s/%s (can be taken back until %s)", was->script,
                 was->name, until);
    else
        refuse(planner,
               "%s: deleting the class \"%s\" takes all its objects away; allow it with "
               "--allow-delete %s",
               was->script, was->name, was->name);
}

/* The differences, as lines. Entries keep their place: only new ones come behind. */
static void tell_differences(struct planner *planner)
{
    for (size_t i = 0; i < planner->next->entry_count; i++) {
        const struct cn_class_entry *is = &planner->next->entries[i];
        if (i >= planner->before->entry_count) {
            add_line(planner, CN_PLAN_CREATE, "%s/%s (%s)", is->script, is->name, is->storage);
            continue;
        }
        const struct cn_class_entry *was = &planner->before->entries[i];
        CN_ASSERT(was->ns == is->ns);
        if (was->deleted_ms && !is->deleted_ms)
            add_line(planner, CN_PLAN_RECOVER, "%s/%s", is->script, is->name);
        bool same_script = strcmp(was->script, is->script) == 0;
        if (!same_script || strcmp(was->name, is->name) != 0)
            add_line(planner, same_script ? CN_PLAN_RENAME : CN_PLAN_TRANSFER, "%s/%s -> %s/%s",
                     was->script, was->name, is->script, is->name);
        if (!was->deleted_ms && is->deleted_ms)
            tell_delete(planner, is);
    }
}

static bool tables_differ(const struct cn_classes *a, const struct cn_classes *b)
{
    if (a->entry_count != b->entry_count || a->script_count != b->script_count ||
        a->forward_count != b->forward_count || a->expected_count != b->expected_count)
        return true;
    for (size_t i = 0; i < a->entry_count; i++) {
        if (strcmp(a->entries[i].script, b->entries[i].script) != 0 ||
            strcmp(a->entries[i].name, b->entries[i].name) != 0 ||
            a->entries[i].deleted_ms != b->entries[i].deleted_ms)
            return true;
    }
    for (size_t i = 0; i < a->script_count; i++) {
        if (a->scripts[i].tags.count != b->scripts[i].tags.count ||
            a->scripts[i].declarative != b->scripts[i].declarative)
            return true;
    }
    return false;
}

void cn_plan_make(struct cn_plan *plan, const struct cn_classes *classes,
                  const struct cn_migrate_project *projects, size_t project_count,
                  const struct cn_migrate_options *options)
{
    *plan = (struct cn_plan){0};
    cn_classes_copy(&plan->next, classes);
    struct planner planner = {.plan = plan,
                              .next = &plan->next,
                              .before = classes,
                              .projects = projects,
                              .project_count = project_count,
                              .progress = cn_alloc_zero(project_count * sizeof(enum progress)),
                              .options = options};
    for (size_t i = 0; i < project_count; i++)
        plan_project(&planner, i);
    for (size_t i = 0; i < project_count; i++) {
        check_code(&planner, &projects[i]);
        check_bindings(&planner, projects[i].config);
    }
    tell_differences(&planner);
    plan->changes = tables_differ(classes, &plan->next);
    cn_free(planner.progress);
}

void cn_plan_fini(struct cn_plan *plan)
{
    for (size_t i = 0; i < plan->line_count; i++)
        cn_free(plan->lines[i].text);
    cn_free(plan->lines);
    cn_classes_fini(&plan->next);
    *plan = (struct cn_plan){0};
}

void cn_plan_print(const struct cn_plan *plan, struct cn_buf *out)
{
    static const char *const words[] = {
        [CN_PLAN_CREATE] = "create",     [CN_PLAN_RECOVER] = "recover", [CN_PLAN_RENAME] = "rename",
        [CN_PLAN_TRANSFER] = "transfer", [CN_PLAN_DELETE] = "delete",   [CN_PLAN_NOTE] = "note",
        [CN_PLAN_REFUSE] = "refused"};
    for (size_t kind = 0; kind < CN_ARRAY_COUNT(words); kind++) {
        for (size_t i = 0; i < plan->line_count; i++) {
            if (plan->lines[i].kind == kind)
                cn_buf_printf(out, "%-9s %s\n", words[kind], plan->lines[i].text);
        }
    }
}

int cn_plan_check(const struct cn_plan *plan, struct cn_err *err)
{
    char more[40] = "";
    if (plan->refused > 1)
        snprintf(more, sizeof(more), " (and %zu more)", plan->refused - 1);
    for (size_t i = 0; i < plan->line_count; i++) {
        if (plan->lines[i].kind == CN_PLAN_REFUSE)
            return cn_err_set(err, CN_EDENIED, "%s%s", plan->lines[i].text, more);
    }
    return 0;
}

int cn_plan_number(struct cn_plan *plan, struct cn_shards *shards, struct cn_err *err)
{
    CN_ASSERT(!plan->refused);
    /* Names first, so that a new class cannot be taken for the one that had its name (K2: if this
     * ends here, the next start sets them back). */
    int rc = cn_classes_settle(&plan->next, shards, err);
    for (size_t i = 0; rc == 0 && i < plan->next.entry_count; i++) {
        struct cn_class_entry *entry = &plan->next.entries[i];
        if (entry->ns > 0)
            continue;
        /* Finds what a data directory of before this table has under the name. */
        uint32_t ns;
        char *name = cn_sprintf("%s/%s", entry->script, entry->name);
        rc = cn_shards_number(shards, name, &ns, err);
        cn_free(name);
        if (rc == 0)
            cn_classes_number(&plan->next, entry, ns);
    }
    return rc;
}

int cn_plan_apply(struct cn_plan *plan, struct cn_disk *disk, struct cn_shards *shards,
                  struct cn_err *err)
{
    if (!plan->changes)
        return 0;
    int rc = cn_plan_number(plan, shards, err);
    return rc < 0 ? rc : cn_classes_save(&plan->next, disk, err);
}
