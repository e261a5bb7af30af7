/* SPDX-License-Identifier: Apache-2.0 */
#include "config/schema.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/confnode.h"

#define PATH_MAX_TEXT 256

int cn_schema_fail(const struct cn_schema_reader *reader, const struct cn_confnode *node,
                   struct cn_err *err, const char *format, ...)
{
    char sentence[CN_ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    return cn_err_set(err, CN_EINVALID, "%s:%d:%d: %s", reader->file, node->line, node->column,
                      sentence);
}

/* ---- suggestions ---------------------------------------------------------- */

#define WORD_MAX 64

/* Edits (insert, delete, replace, swap of neighbours) between two words, or a
 * large number if one is too long. */
static unsigned edit_distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b);
    unsigned rows[3][WORD_MAX + 1];
    if (m > WORD_MAX || n > WORD_MAX)
        return WORD_MAX;
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= m; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        unsigned *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[n];
}

const char *cn_suggest(const char *word, const char *(*next)(const void *data, size_t index),
                       const void *data)
{
    unsigned best_distance = (unsigned)strlen(word) / 3 + 1;
    const char *best = NULL, *candidate;
    for (size_t i = 0; (candidate = next(data, i)); i++) {
        unsigned distance = edit_distance(word, candidate);
        if (distance <= best_distance && (!best || distance < best_distance)) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

static const char *field_name_at(const void *data, size_t index)
{
    const struct cn_schema *schema = data;
    return index < schema->count ? schema->fields[index].name : NULL;
}

/* ---- reading -------------------------------------------------------------- */

const struct cn_schema_field *cn_schema_find(const struct cn_schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->count; i++)
        if (strcmp(schema->fields[i].name, name) == 0)
            return &schema->fields[i];
    return NULL;
}

static int fail_kind(struct cn_schema_reader *reader, const struct cn_confnode *node,
                     const char *path, const char *want, struct cn_err *err)
{
    return cn_schema_fail(reader, node, err, "\"%s\" must be %s, not %s", path, want,
                          cn_confnode_kind_name(node->kind));
}

static int read_text(struct cn_schema_reader *reader, const struct cn_confnode *node,
                     const char *path, const char **out, struct cn_err *err)
{
    if (node->kind != CN_CONF_STRING)
        return fail_kind(reader, node, path, "a string", err);
    if (strlen(node->text) != node->length)
        return cn_schema_fail(reader, node, err, "\"%s\" must not hold a NUL character", path);
    *out = node->text;
    return 0;
}

static int check_choice(struct cn_schema_reader *reader, const struct cn_schema_field *field,
                        const struct cn_confnode *node, const char *path, struct cn_err *err)
{
    char all[200] = "";
    size_t used = 0;
    for (const char *const *choice = field->choices; *choice; choice++) {
        if (strcmp(*choice, node->text) == 0)
            return 0;
        int size = snprintf(all + used, sizeof(all) - used, "%s\"%s\"", used ? ", " : "", *choice);
        used += size > 0 && (size_t)size < sizeof(all) - used ? (size_t)size : 0;
    }
    return cn_schema_fail(reader, node, err, "\"%s\" must be one of %s, not \"%.60s\"", path, all,
                          node->text);
}

static int read_strings(struct cn_schema_reader *reader, const struct cn_confnode *node,
                        const char *path, struct cn_strings *out, struct cn_err *err)
{
    if (node->kind != CN_CONF_ARRAY)
        return fail_kind(reader, node, path, "an array of strings", err);
    const char **items = cn_alloc_zero((node->count + 1) * sizeof(char *));
    for (size_t i = 0; i < node->count; i++) {
        int rc = read_text(reader, node->items[i], path, &items[i], err);
        if (rc < 0) {
            cn_free(items);
            return rc;
        }
    }
    *out = (struct cn_strings){.items = items, .count = node->count};
    return 0;
}

static int read_list(struct cn_schema_reader *reader, const struct cn_schema_field *field,
                     const struct cn_confnode *node, const char *path, struct cn_schema_list *out,
                     struct cn_err *err)
{
    bool is_map = field->kind == CN_FIELD_MAP;
    if (node->kind != (is_map ? CN_CONF_TABLE : CN_CONF_ARRAY))
        return fail_kind(reader, node, path, is_map ? "a table" : "an array of tables", err);
    size_t size = field->sub->size;
    out->items = cn_alloc_zero(node->count ? node->count * size : 1);
    for (size_t i = 0; i < node->count; i++) {
        const struct cn_confnode *item = node->items[i];
        char item_path[PATH_MAX_TEXT];
        if (is_map)
            snprintf(item_path, sizeof(item_path), "%s.%s", path, item->key);
        else
            snprintf(item_path, sizeof(item_path), "%s[%zu]", path, i);
        void *slot = (char *)out->items + i * size;
        out->count = i + 1;
        int rc = cn_schema_read(reader, field->sub, item, item_path, slot, err);
        if (rc < 0)
            return rc;
        if (is_map)
            *(const char **)slot = item->key;
    }
    return 0;
}

static int check_string_map(struct cn_schema_reader *reader, const struct cn_confnode *node,
                            const char *path, struct cn_err *err)
{
    if (node->kind != CN_CONF_TABLE)
        return fail_kind(reader, node, path, "a table of strings", err);
    for (size_t i = 0; i < node->count; i++) {
        char item_path[PATH_MAX_TEXT];
        const char *text;
        snprintf(item_path, sizeof(item_path), "%s.%s", path, node->items[i]->key);
        int rc = read_text(reader, node->items[i], item_path, &text, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_int(struct cn_schema_reader *reader, const struct cn_schema_field *field,
                    const struct cn_confnode *node, const char *path, int64_t *out,
                    struct cn_err *err)
{
    if (node->kind != CN_CONF_INTEGER)
        return fail_kind(reader, node, path, "an integer", err);
    if ((field->min || field->max) && (node->integer < field->min || node->integer > field->max))
        return cn_schema_fail(reader, node, err,
                              "\"%s\" must be between %" PRId64 " and %" PRId64 ", not %" PRId64,
                              path, field->min, field->max, node->integer);
    *out = node->integer;
    return 0;
}

bool cn_schema_is_nothing(const struct cn_confnode *node)
{
    switch (node->kind) {
    case CN_CONF_NULL:
        return true;
    case CN_CONF_BOOL:
        return !node->boolean;
    case CN_CONF_TABLE:
    case CN_CONF_ARRAY:
        for (size_t i = 0; i < node->count; i++)
            if (!cn_schema_is_nothing(node->items[i]))
                return false;
        return true;
    default:
        return false;
    }
}

int cn_schema_read_field(struct cn_schema_reader *reader, const struct cn_schema_field *field,
                         const struct cn_confnode *node, const char *path, void *out,
                         struct cn_err *err)
{
    void *slot = (char *)out + field->offset;
    int rc = 0;
    if (field->flags & CN_FIELD_QUIET)
        return 0;
    if (field->flags & CN_FIELD_HOSTED) {
        if (reader->on_hosted && !cn_schema_is_nothing(node))
            reader->on_hosted(reader, path);
        return 0;
    }
    if (field->set_offset)
        *(bool *)((char *)out + field->set_offset) = true;
    switch (field->kind) {
    case CN_FIELD_DATE:
        if (node->kind == CN_CONF_DATETIME) {
            *(const char **)slot = node->text;
            break;
        }
        rc = read_text(reader, node, path, slot, err);
        break;
    case CN_FIELD_STRING:
        rc = read_text(reader, node, path, slot, err);
        if (rc == 0 && field->choices)
            rc = check_choice(reader, field, node, path, err);
        break;
    case CN_FIELD_INT:
        rc = read_int(reader, field, node, path, slot, err);
        break;
    case CN_FIELD_NUMBER:
        if (node->kind != CN_CONF_INTEGER && node->kind != CN_CONF_FLOAT)
            return fail_kind(reader, node, path, "a number", err);
        *(double *)slot = node->kind == CN_CONF_FLOAT ? node->number : (double)node->integer;
        break;
    case CN_FIELD_BOOL:
        if (node->kind != CN_CONF_BOOL)
            return fail_kind(reader, node, path, "true or false", err);
        *(bool *)slot = node->boolean;
        break;
    case CN_FIELD_STRING_OR_STRINGS:
        if (node->kind == CN_CONF_STRING) {
            struct cn_strings one = {.items = cn_alloc_zero(sizeof(char *)), .count = 1};
            *(struct cn_strings *)slot = one;
            rc = read_text(reader, node, path, &one.items[0], err);
            break;
        }
        rc = read_strings(reader, node, path, slot, err);
        break;
    case CN_FIELD_STRINGS:
        rc = read_strings(reader, node, path, slot, err);
        break;
    case CN_FIELD_BOOL_OR_STRINGS:
        if (node->kind != CN_CONF_BOOL) {
            struct cn_strings strings = {0};
            rc = read_strings(reader, node, path, &strings, err);
            cn_free(strings.items);
        }
        *(const struct cn_confnode **)slot = node;
        break;
    case CN_FIELD_STRING_MAP:
        rc = check_string_map(reader, node, path, err);
        *(const struct cn_confnode **)slot = node;
        break;
    case CN_FIELD_NODE:
        *(const struct cn_confnode **)slot = node;
        break;
    case CN_FIELD_TABLE:
        rc = cn_schema_read(reader, field->sub, node, path, slot, err);
        break;
    case CN_FIELD_LIST:
    case CN_FIELD_MAP:
        rc = read_list(reader, field, node, path, slot, err);
        break;
    }
    if (rc < 0)
        return rc;
    if ((field->flags & CN_FIELD_UNBUILT) && !cn_schema_is_nothing(node)) {
        if (reader->on_refused) {
            reader->on_refused(reader, path, node);
            return 0;
        }
        cn_schema_fail(reader, node, err, "\"%s\" is a key of wrangler that cairn does not run yet",
                       path);
        if (err)
            err->code = CN_EUNSUPPORTED;
        return CN_EUNSUPPORTED;
    }
    return 0;
}

int cn_schema_unknown(struct cn_schema_reader *reader, const char *key,
                      const struct cn_confnode *node, const char *meant, struct cn_err *err)
{
    if (reader->on_unknown && reader->on_unknown(reader, key, node, meant))
        return 0;
    return cn_schema_fail(reader, node, err, "unknown key \"%s\"%s%s%s", key,
                          meant ? " (did you mean \"" : "", meant ? meant : "",
                          meant ? "\"?)" : "");
}

int cn_schema_read(struct cn_schema_reader *reader, const struct cn_schema *schema,
                   const struct cn_confnode *table, const char *path, void *out, struct cn_err *err)
{
    if (table->kind != CN_CONF_TABLE)
        return fail_kind(reader, table, path, "a table", err);
    for (size_t i = 0; i < table->count; i++) {
        const struct cn_confnode *node = table->items[i];
        char key_path[PATH_MAX_TEXT];
        snprintf(key_path, sizeof(key_path), "%s%s%s", path, *path ? "." : "", node->key);
        const struct cn_schema_field *field = cn_schema_find(schema, node->key);
        int other = field || !reader->on_other ? 0 : reader->on_other(reader, key_path, node, err);
        if (other < 0)
            return other;
        if (other)
            continue;
        int rc = field ? cn_schema_read_field(reader, field, node, key_path, out, err)
                       : cn_schema_unknown(reader, key_path, node,
                                           cn_suggest(node->key, field_name_at, schema), err);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < schema->count; i++) {
        const struct cn_schema_field *field = &schema->fields[i];
        if ((field->flags & CN_FIELD_REQUIRED) && !cn_confnode_find(table, field->name))
            return cn_schema_fail(reader, table, err, "%s%s%s needs the key \"%s\"",
                                  *path ? "\"" : "the file", path, *path ? "\"" : "", field->name);
    }
    return 0;
}

void cn_schema_fini(const struct cn_schema *schema, void *out)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct cn_schema_field *field = &schema->fields[i];
        void *slot = (char *)out + field->offset;
        if (field->flags & (CN_FIELD_HOSTED | CN_FIELD_QUIET))
            continue;
        switch (field->kind) {
        case CN_FIELD_STRINGS:
        case CN_FIELD_STRING_OR_STRINGS: {
            struct cn_strings *strings = slot;
            cn_free(strings->items);
            *strings = (struct cn_strings){0};
            break;
        }
        case CN_FIELD_TABLE:
            cn_schema_fini(field->sub, slot);
            break;
        case CN_FIELD_LIST:
        case CN_FIELD_MAP: {
            struct cn_schema_list *list = slot;
            for (size_t j = 0; j < list->count; j++)
                cn_schema_fini(field->sub, (char *)list->items + j * field->sub->size);
            cn_free(list->items);
            *list = (struct cn_schema_list){0};
            break;
        }
        default:
            break;
        }
    }
}
