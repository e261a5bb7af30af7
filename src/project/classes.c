/* SPDX-License-Identifier: Apache-2.0 */
#include "project/classes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/sealed.h"
#include "config/confnode.h"
#include "object/shard.h"
#include "store/catalog.h"
#include "store/store.h"

#define VERSION 2 /* 1 had no checksum */

/* ---- the file ---- */

#define FIELD(kind_, type, member, ...)                                                        \
    {                                                                                          \
        .name = #member, .kind = kind_, .offset = offsetof(struct type, member), ##__VA_ARGS__ \
    }
#define TEXT(type, member) FIELD(CN_FIELD_STRING, type, member, .flags = CN_FIELD_REQUIRED)
#define SCHEMA(name, type, ...)                                                 \
    static const struct cn_schema_field name##_fields[] = {__VA_ARGS__};        \
    static const struct cn_schema name##_schema = {sizeof(type), name##_fields, \
                                                   CN_ARRAY_COUNT(name##_fields)}
#define LIST(member, sub_)                                             \
    {                                                                  \
        .name = #member, .kind = CN_FIELD_LIST, .sub = &sub_##_schema, \
        .offset = offsetof(struct table, member)                       \
    }

struct list {
    void *items;
    size_t count;
};
struct table {
    const char *crc32c;
    int64_t version;
    struct list classes, scripts, forwards, expected;
};

/* clang-format off */
SCHEMA(entry, struct cn_class_entry,
    {.name = "namespace", .kind = CN_FIELD_INT, .flags = CN_FIELD_REQUIRED, .min = 1,
     .max = UINT32_MAX, .offset = offsetof(struct cn_class_entry, ns)},
    TEXT(cn_class_entry, script),
    {.name = "class", .kind = CN_FIELD_STRING, .flags = CN_FIELD_REQUIRED,
     .offset = offsetof(struct cn_class_entry, name)},
    TEXT(cn_class_entry, storage),
    FIELD(CN_FIELD_INT, cn_class_entry, deleted_ms));
SCHEMA(script, struct cn_class_script,
    TEXT(cn_class_script, name),
    FIELD(CN_FIELD_STRINGS, cn_class_script, tags),
    FIELD(CN_FIELD_BOOL, cn_class_script, declarative));
SCHEMA(forward, struct cn_class_forward,
    TEXT(cn_class_forward, script),
    {.name = "class", .kind = CN_FIELD_STRING, .flags = CN_FIELD_REQUIRED,
     .offset = offsetof(struct cn_class_forward, name)},
    {.name = "namespace", .kind = CN_FIELD_INT, .flags = CN_FIELD_REQUIRED, .min = 1,
     .max = UINT32_MAX, .offset = offsetof(struct cn_class_forward, ns)});
SCHEMA(expected, struct cn_class_expected,
    TEXT(cn_class_expected, script),
    {.name = "class", .kind = CN_FIELD_STRING, .flags = CN_FIELD_REQUIRED,
     .offset = offsetof(struct cn_class_expected, name)},
    TEXT(cn_class_expected, from_script),
    {.name = "from_class", .kind = CN_FIELD_STRING, .flags = CN_FIELD_REQUIRED,
     .offset = offsetof(struct cn_class_expected, from_name)});
SCHEMA(table, struct table,
    FIELD(CN_FIELD_STRING, table, crc32c),
    {.name = "version", .kind = CN_FIELD_INT, .flags = CN_FIELD_REQUIRED,
     .offset = offsetof(struct table, version)},
    LIST(classes, entry),
    LIST(scripts, script),
    LIST(forwards, forward),
    LIST(expected, expected));
/* clang-format on */

int cn_classes_read_file(struct cn_disk *disk, const char *name, struct cn_buf *text,
                         struct cn_err *err)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk, name, CN_DISK_READONLY, &file);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open %s", name);
    int64_t size = cn_disk_size(file);
    if (size > CN_CONF_SIZE_MAX)
        rc = cn_err_set(err, CN_ECORRUPT, "%s is too large", name);
    else if (size >= 0) {
        cn_buf_reserve(text, (size_t)size + 1);
        size = cn_disk_read(file, text->data, (size_t)size, 0);
        text->size = size > 0 ? (size_t)size : 0;
    }
    if (size < 0)
        rc = cn_err_errno(err, (int)-size, "cannot read %s", name);
    cn_disk_close(file);
    return rc < 0 ? rc : 1;
}

/* ---- checksums of JSON ---- */

void cn_classes_seal(struct cn_buf *json)
{
    cn_sealed_put(json);
}

int cn_classes_unseal(const struct cn_buf *text, const char *name, struct cn_err *err)
{
    int rc = cn_sealed_check(text);
    if (rc < 0)
        return cn_err_set(err, rc, "%s is damaged: it does not match its checksum", name);
    return rc;
}

/* ---- reading and writing ---- */

int cn_classes_parse(struct cn_classes *classes, const struct cn_buf *text, struct cn_err *err)
{
    struct table table = {0};
    struct cn_schema_reader reader = {.file = CN_CLASSES_FILE};
    *classes = (struct cn_classes){0};
    int sealed = cn_classes_unseal(text, CN_CLASSES_FILE, err);
    if (sealed < 0)
        return sealed;
    struct cn_confnode *root =
        cn_jsonc_parse(CN_CLASSES_FILE, (const char *)text->data, text->size, err);
    int rc = root ? 0 : CN_ECORRUPT;
    if (rc == 0 && root->kind != CN_CONF_TABLE)
        rc = cn_err_set(err, CN_ECORRUPT, CN_CLASSES_FILE " is not a table");
    if (rc == 0)
        rc = cn_schema_read(&reader, &table_schema, root, "", &table, err);
    if (rc == 0 && (table.version < 1 || table.version > VERSION))
        rc = cn_err_set(err, CN_EVERSION, CN_CLASSES_FILE " has version %" PRId64 ", not %d",
                        table.version, VERSION);
    if (rc == 0 && table.version == VERSION && !sealed)
        rc = cn_err_set(err, CN_ECORRUPT,
                        CN_CLASSES_FILE " is damaged: its checksum is missing (who edits it removes"
                                        " \"crc32c\" and makes the version 1)");
    if (rc < 0) {
        cn_schema_fini(&table_schema, &table);
        cn_confnode_free(root);
        return rc;
    }
    *classes = (struct cn_classes){table.classes.items,  table.classes.count,  table.scripts.items,
                                   table.scripts.count,  table.forwards.items, table.forwards.count,
                                   table.expected.items, table.expected.count, .root = root};
    return 0;
}

int cn_classes_load(struct cn_classes *classes, struct cn_disk *disk, struct cn_err *err)
{
    struct cn_buf text = {0};
    *classes = (struct cn_classes){0};
    int rc = cn_classes_read_file(disk, CN_CLASSES_FILE, &text, err);
    if (rc == 1)
        rc = cn_classes_parse(classes, &text, err);
    cn_buf_fini(&text);
    return rc < 0 ? rc : 0;
}

/* ,"key":"text" */
static void put_text(struct cn_buf *json, const char *key, const char *text)
{
    cn_buf_printf(json, "%s\"%s\": ", json->data[json->size - 1] == '{' ? "" : ", ", key);
    cn_buf_append_json(json, text, strlen(text));
}

static void begin_item(struct cn_buf *json, size_t index)
{
    cn_buf_append_str(json, index ? ",\n    {" : "\n    {");
}

static void put_scripts(struct cn_buf *json, const struct cn_classes *classes)
{
    cn_buf_append_str(json, "\n  ],\n  \"scripts\": [");
    for (size_t i = 0; i < classes->script_count; i++) {
        const struct cn_class_script *script = &classes->scripts[i];
        begin_item(json, i);
        put_text(json, "name", script->name);
        cn_buf_append_str(json, ", \"tags\": [");
        for (size_t k = 0; k < script->tags.count; k++) {
            cn_buf_append_str(json, k ? ", " : "");
            cn_buf_append_json(json, script->tags.items[k], strlen(script->tags.items[k]));
        }
        cn_buf_printf(json, "], \"declarative\": %s}", script->declarative ? "true" : "false");
    }
}

void cn_classes_write(const struct cn_classes *classes, struct cn_buf *text)
{
    struct cn_buf json = {0};
    cn_buf_printf(&json, "{\n  \"version\": %d,\n  \"classes\": [", VERSION);
    for (size_t i = 0; i < classes->entry_count; i++) {
        const struct cn_class_entry *entry = &classes->entries[i];
        CN_ASSERT(entry->ns > 0);
        begin_item(&json, i);
        cn_buf_printf(&json, "\"namespace\": %" PRId64, entry->ns);
        put_text(&json, "script", entry->script);
        put_text(&json, "class", entry->name);
        put_text(&json, "storage", entry->storage);
        if (entry->deleted_ms)
            cn_buf_printf(&json, ", \"deleted_ms\": %" PRId64, entry->deleted_ms);
        cn_buf_append_byte(&json, '}');
    }
    put_scripts(&json, classes);
    cn_buf_append_str(&json, "\n  ],\n  \"forwards\": [");
    for (size_t i = 0; i < classes->forward_count; i++) {
        const struct cn_class_forward *forward = &classes->forwards[i];
        begin_item(&json, i);
        put_text(&json, "script", forward->script);
        put_text(&json, "class", forward->name);
        cn_buf_printf(&json, ", \"namespace\": %" PRId64 "}", forward->ns);
    }
    cn_buf_append_str(&json, "\n  ],\n  \"expected\": [");
    for (size_t i = 0; i < classes->expected_count; i++) {
        const struct cn_class_expected *expected = &classes->expected[i];
        begin_item(&json, i);
        put_text(&json, "script", expected->script);
        put_text(&json, "class", expected->name);
        put_text(&json, "from_script", expected->from_script);
        put_text(&json, "from_class", expected->from_name);
        cn_buf_append_byte(&json, '}');
    }
    cn_buf_append_str(&json, "\n  ]\n}\n");
    cn_classes_seal(&json);
    cn_buf_append(text, json.data, json.size);
    cn_buf_fini(&json);
}

int cn_classes_save(const struct cn_classes *classes, struct cn_disk *disk, struct cn_err *err)
{
    struct cn_buf text = {0};
    cn_classes_write(classes, &text);
    int rc = cn_disk_replace(disk, CN_CLASSES_FILE, text.data, text.size);
    cn_buf_fini(&text);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write " CN_CLASSES_FILE) : 0;
}

static void *copy_array(const void *items, size_t count, size_t size)
{
    return count ? cn_memdup(items, count * size) : NULL;
}

void cn_classes_copy(struct cn_classes *to, const struct cn_classes *from)
{
    *to = *from;
    to->root = NULL;
    to->texts = NULL;
    to->text_count = 0;
    to->entries = copy_array(from->entries, from->entry_count, sizeof(*from->entries));
    to->scripts = copy_array(from->scripts, from->script_count, sizeof(*from->scripts));
    to->forwards = copy_array(from->forwards, from->forward_count, sizeof(*from->forwards));
    to->expected = copy_array(from->expected, from->expected_count, sizeof(*from->expected));
    for (size_t i = 0; i < to->script_count; i++) {
        struct cn_strings *tags = &to->scripts[i].tags;
        tags->items = copy_array(tags->items, tags->count, sizeof(*tags->items));
    }
}

void cn_classes_fini(struct cn_classes *classes)
{
    for (size_t i = 0; i < classes->script_count; i++)
        cn_free(classes->scripts[i].tags.items);
    for (size_t i = 0; i < classes->text_count; i++)
        cn_free(classes->texts[i]);
    cn_free(classes->entries);
    cn_free(classes->scripts);
    cn_free(classes->forwards);
    cn_free(classes->expected);
    cn_free(classes->texts);
    cn_confnode_free(classes->root);
    *classes = (struct cn_classes){0};
}

/* ---- names in the store ---- */

static char *name_of(const struct cn_class_entry *entry)
{
    return entry->deleted_ms
               ? cn_sprintf("%s/%s (deleted, %" PRId64 ")", entry->script, entry->name, entry->ns)
               : cn_sprintf("%s/%s", entry->script, entry->name);
}

/* Puts whoever has the name aside, so that it is free. */
static int free_name(struct cn_store *store, const char *name, struct cn_err *err)
{
    uint32_t other;
    int rc = cn_catalog_namespace_find(cn_store_catalog(store), name, strlen(name), &other, err);
    if (rc != 1)
        return rc;
    char aside[32];
    snprintf(aside, sizeof(aside), "~%u", other);
    return cn_store_namespace_rename(store, name, aside, err);
}

/* `may_lack`: a store need not know a number yet that it has not given out itself. */
static int settle_name(const struct cn_class_entry *entry, struct cn_store *store, bool may_lack,
                       struct cn_err *err)
{
    char has[CN_OBJECT_NAME_MAX + 1];
    int rc = cn_store_namespace_name(store, (uint32_t)entry->ns, has, err);
    if (rc == CN_ENOTFOUND && may_lack)
        return 0;
    if (rc < 0)
        return rc;
    char *wanted = name_of(entry);
    if (strcmp(has, wanted) != 0) {
        rc = free_name(store, wanted, err);
        if (rc == 0)
            rc = cn_store_namespace_rename(store, has, wanted, err);
    }
    cn_free(wanted);
    return rc;
}

static int settle_store(const struct cn_classes *classes, struct cn_store *store, bool may_lack,
                        struct cn_err *err)
{
    int rc = 0;
    /* One may bear the name of another: that one's turn comes later, or it came and is set right
     * in the second round. */
    for (size_t round = 0; rc == 0 && round < 2; round++) {
        for (size_t i = 0; rc == 0 && i < classes->entry_count; i++) {
            if (classes->entries[i].ns >= 0)
                rc = settle_name(&classes->entries[i], store, may_lack, err);
        }
    }
    return rc;
}

int cn_classes_settle(const struct cn_classes *classes, struct cn_shards *shards,
                      struct cn_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < classes->entry_count && cn_shards_numbered(shards) && rc == 0; i++) {
        char *name = name_of(&classes->entries[i]);
        if (classes->entries[i].ns >= 0)
            rc = cn_shards_named(shards, (uint32_t)classes->entries[i].ns, name, err);
        cn_free(name);
    }
    for (unsigned i = 0; i < cn_shards_count(shards) && rc == 0; i++) {
        struct cn_shard *shard = cn_shards_hold_index(shards, i);
        if (!shard)
            continue; /* it learns the name that a number has when it uses it next */
        rc = settle_store(classes, shard->store, cn_shards_numbered(shards), err);
        cn_shard_release(shard);
    }
    return rc;
}

/* ---- looking ---- */

struct cn_class_entry *cn_classes_find(const struct cn_classes *classes, const char *script,
                                       const char *name)
{
    for (size_t i = 0; i < classes->entry_count; i++) {
        struct cn_class_entry *entry = &classes->entries[i];
        if (!entry->deleted_ms && strcmp(entry->script, script) == 0 &&
            strcmp(entry->name, name) == 0)
            return entry;
    }
    return NULL;
}

static struct cn_class_entry *find_number(const struct cn_classes *classes, int64_t ns)
{
    for (size_t i = 0; i < classes->entry_count; i++) {
        if (classes->entries[i].ns == ns && !classes->entries[i].deleted_ms)
            return &classes->entries[i];
    }
    return NULL;
}

static struct cn_class_expected *find_expected(const struct cn_classes *classes, const char *script,
                                               const char *name)
{
    for (size_t i = 0; i < classes->expected_count; i++) {
        struct cn_class_expected *expected = &classes->expected[i];
        if (strcmp(expected->script, script) == 0 && strcmp(expected->name, name) == 0)
            return expected;
    }
    return NULL;
}

struct cn_class_entry *cn_classes_resolve(const struct cn_classes *classes, const char *script,
                                          const char *name)
{
    struct cn_class_entry *entry = cn_classes_find(classes, script, name);
    for (size_t i = 0; !entry && i < classes->forward_count; i++) {
        const struct cn_class_forward *forward = &classes->forwards[i];
        if (strcmp(forward->script, script) == 0 && strcmp(forward->name, name) == 0)
            entry = find_number(classes, forward->ns);
    }
    if (entry)
        return entry;
    const struct cn_class_expected *expected = find_expected(classes, script, name);
    return expected ? cn_classes_find(classes, expected->from_script, expected->from_name) : NULL;
}

/* ---- changing ---- */

static const char *keep(struct cn_classes *classes, const char *text)
{
    classes->texts =
        cn_realloc(classes->texts, (classes->text_count + 1) * sizeof(*classes->texts));
    return classes->texts[classes->text_count++] = cn_strdup(text);
}

#define GROW(array, count) \
    ((array) = cn_realloc((array), ((count) + 1) * sizeof(*(array))), &(array)[(count)++])

const struct cn_class_script *cn_classes_find_script(const struct cn_classes *classes,
                                                     const char *name)
{
    for (size_t i = 0; i < classes->script_count; i++) {
        if (strcmp(classes->scripts[i].name, name) == 0)
            return &classes->scripts[i];
    }
    return NULL;
}

struct cn_class_script *cn_classes_script(struct cn_classes *classes, const char *name)
{
    const struct cn_class_script *found = cn_classes_find_script(classes, name);
    if (found)
        return &classes->scripts[found - classes->scripts];
    struct cn_class_script *script = GROW(classes->scripts, classes->script_count);
    *script = (struct cn_class_script){.name = keep(classes, name)};
    return script;
}

/* A name that lives again leads nowhere else. */
static void remove_forward(struct cn_classes *classes, const char *script, const char *name)
{
    for (size_t i = 0; i < classes->forward_count; i++) {
        struct cn_class_forward *forward = &classes->forwards[i];
        if (strcmp(forward->script, script) == 0 && strcmp(forward->name, name) == 0)
            *forward = classes->forwards[--classes->forward_count];
    }
}

struct cn_class_entry *cn_classes_add(struct cn_classes *classes, const char *script,
                                      const char *name, const char *storage)
{
    CN_ASSERT(!cn_classes_find(classes, script, name));
    remove_forward(classes, script, name);
    struct cn_class_entry *entry = GROW(classes->entries, classes->entry_count);
    *entry = (struct cn_class_entry){.ns = -++classes->provisional_count,
                                     .script = keep(classes, script),
                                     .name = keep(classes, name),
                                     .storage = keep(classes, storage)};
    return entry;
}

void cn_classes_move(struct cn_classes *classes, struct cn_class_entry *entry, const char *script,
                     const char *name)
{
    CN_ASSERT(!entry->deleted_ms && !cn_classes_find(classes, script, name));
    remove_forward(classes, entry->script, entry->name);
    struct cn_class_forward *forward = GROW(classes->forwards, classes->forward_count);
    *forward = (struct cn_class_forward){entry->script, entry->name, entry->ns};
    remove_forward(classes, script, name);
    entry->script = keep(classes, script);
    entry->name = keep(classes, name);
}

void cn_classes_delete(struct cn_classes *classes, struct cn_class_entry *entry, int64_t now_ms)
{
    CN_ASSERT(!entry->deleted_ms && now_ms > 0);
    for (size_t i = 0; i < classes->forward_count;) {
        if (classes->forwards[i].ns == entry->ns)
            classes->forwards[i] = classes->forwards[--classes->forward_count];
        else
            i++;
    }
    if (entry->ns > 0)
        entry->deleted_ms = now_ms;
    else
        *entry = classes->entries[--classes->entry_count];
}

void cn_classes_number(struct cn_classes *classes, struct cn_class_entry *entry, uint32_t ns)
{
    CN_ASSERT(entry->ns < 0);
    for (size_t i = 0; i < classes->forward_count; i++) {
        if (classes->forwards[i].ns == entry->ns)
            classes->forwards[i].ns = ns;
    }
    entry->ns = ns;
}

void cn_classes_add_tag(struct cn_classes *classes, const char *script, const char *tag)
{
    const char *text = keep(classes, tag);
    struct cn_strings *tags = &cn_classes_script(classes, script)->tags;
    *GROW(tags->items, tags->count) = text;
}

void cn_classes_expect(struct cn_classes *classes, const char *script, const char *name,
                       const char *from_script, const char *from_name)
{
    cn_classes_unexpect(classes, script, name);
    struct cn_class_expected *expected = GROW(classes->expected, classes->expected_count);
    *expected = (struct cn_class_expected){keep(classes, script), keep(classes, name),
                                           keep(classes, from_script), keep(classes, from_name)};
}

void cn_classes_unexpect(struct cn_classes *classes, const char *script, const char *name)
{
    struct cn_class_expected *expected = find_expected(classes, script, name);
    if (expected)
        *expected = classes->expected[--classes->expected_count];
}

bool cn_classes_forget_script(struct cn_classes *classes, const char *script, int64_t now_ms)
{
    bool changed = false;
    for (size_t i = 0; i < classes->entry_count; i++) {
        struct cn_class_entry *entry = &classes->entries[i];
        if (entry->deleted_ms || strcmp(entry->script, script) != 0)
            continue;
        cn_classes_delete(classes, entry, now_ms); /* it has a number: it comes from the file */
        changed = true;
    }
    for (size_t i = 0; i < classes->script_count; i++) {
        if (strcmp(classes->scripts[i].name, script) != 0)
            continue;
        cn_free(classes->scripts[i].tags.items);
        classes->scripts[i] = classes->scripts[--classes->script_count];
        return true;
    }
    return changed;
}
