/* SPDX-License-Identifier: Apache-2.0 */
/* cli/import_stream.c - Durable Objects as lines of JSON (examples/moving/export.js):
 *
 *     {"class":NAME}                                      of the project, for what follows
 *     {"object":ID,"name":NAME|null,"alarm":MS|null}      begins one
 *     {"sql":STATEMENT}
 *     {"insert":STATEMENT} {"row":TYPES,"cells":[...]}    what rows that follow are for; and a row
 *     {"key":KEY,"value":BASE64 of V8's form}
 *     {"end":COUNT of the lines between} or {"failed":WHY}
 *
 * The file is read twice: ids come before objects (V3 of object/moved.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/import.h"
#include "config/config.h"
#include "import/v8value.h"
#include "store/catalog.h"
#include "store/plain.h"
#include "store/store.h"
#include "text/base64.h"

#define SYNC_EVERY 64
#define CELLS_MAX 200
#define CLASSES_MAX 100

struct class_ids {
    const struct cn_class_entry *class_;
    struct cn_import_ids ids;
};

struct stream {
    struct cn_import *import;
    FILE *file;
    uint64_t line_number;
    bool gathers; /* the first time */
    struct class_ids classes[CLASSES_MAX];
    size_t class_count;
    struct class_ids *current; /* NULL: its class is not known */
    char class_name[200];
    /* The object that has begun. */
    bool begun, bad; /* bad: it was told, and its lines are skipped */
    char id[CN_OBJECT_HEX_SIZE + 1];
    struct cn_object_key key;
    struct cn_replace_meta meta;
    char name[CN_OBJECT_NAME_MAX + 1];
    struct cn_plain *plain;
    struct cn_buf insert;
    uint64_t lines, came;
};

static void tell(struct stream *stream, enum cn_import_outcome outcome, const char *why)
{
    char *what = cn_sprintf("%s %s", stream->class_name, stream->id);
    cn_import_tell(stream->import, CN_IMPORT_OBJECTS, outcome, what, why);
    cn_free(what);
}

static void drop(struct stream *stream)
{
    cn_plain_close(stream->plain);
    stream->plain = NULL;
    cn_buf_clear(&stream->insert);
    stream->begun = false;
}

/* --- lines ----------------------------------------------------------------------------------- */

static int begin_class(struct stream *stream, const char *name, struct cn_err *err)
{
    struct cn_import *import = stream->import;
    snprintf(stream->class_name, sizeof(stream->class_name), "%s", name);
    const struct cn_class_entry *class_ =
        cn_classes_find(&import->classes, import->project.config->name, name);
    stream->current = NULL;
    for (size_t i = 0; i < stream->class_count; i++) {
        if (stream->classes[i].class_ == class_)
            stream->current = &stream->classes[i];
    }
    if (stream->current || !class_ || class_->ns <= 0 || stream->class_count == CLASSES_MAX)
        return 0; /* of one that is not known each object is told */
    stream->current = &stream->classes[stream->class_count++];
    stream->current->class_ = class_;
    return cn_import_ids_begin(import, &stream->current->ids, (uint32_t)class_->ns, NULL, err);
}

static int read_head(struct stream *stream, const struct cn_json *line, struct cn_err *err)
{
    const struct cn_json *name = cn_json_find(line, "name"), *alarm = cn_json_find(line, "alarm");
    const char *id = cn_json_text(line, "object");
    snprintf(stream->id, sizeof(stream->id), "%.64s", id ? id : "");
    stream->meta = (struct cn_replace_meta){.alarm_ms = CN_ALARM_NONE};
    if (!id || !cn_id_from_hex(id, strlen(id), stream->key.id))
        return cn_err_set(err, CN_EINVALID, "it has no good id");
    if (!stream->current)
        return cn_err_set(err, CN_ENOTFOUND, "the project has no such class");
    stream->key.namespace_id = stream->current->ids.ids.namespace_id;
    if (name && name->kind == CN_JSON_STRING) {
        if (name->size > CN_OBJECT_NAME_MAX || memchr(name->text, 0, name->size))
            return cn_err_set(err, CN_ELIMIT, "its name is too long, or holds a NUL");
        memcpy(stream->name, name->text, name->size + 1);
        stream->meta.name = name->size ? stream->name : NULL;
        stream->meta.name_size = (uint16_t)name->size;
    }
    if (alarm && alarm->kind == CN_JSON_INT) {
        stream->meta.has_alarm = true;
        stream->meta.alarm_ms = alarm->integer;
    }
    return 0;
}

static void gather(struct stream *stream)
{
    const struct cn_moved_ids *before =
        cn_moved_find(stream->import->moved, stream->key.namespace_id);
    struct cn_import_ids *ids = &stream->current->ids;
    struct cn_moved_entry entry = {.name = {0}};
    if (before && cn_moved_valid(before, stream->key.id))
        return;
    memcpy(entry.id, stream->key.id, sizeof(entry.id));
    if (stream->meta.name)
        cn_id_name_hash(&ids->keys, stream->meta.name, stream->meta.name_size, entry.name);
    cn_import_ids_add(ids, &entry);
}

/* Its name leads to another object here. */
static int check_name(struct stream *stream, struct cn_err *err)
{
    const struct cn_import_ids *ids = &stream->current->ids;
    uint8_t hash[CN_SIPHASH_SIZE], leads_to[CN_OBJECT_ID_SIZE];
    if (!stream->meta.name)
        return 0;
    cn_id_name_hash(&ids->keys, stream->meta.name, stream->meta.name_size, hash);
    if (cn_moved_named(&ids->ids, hash, stream->meta.name, stream->meta.name_size, leads_to) &&
        memcmp(leads_to, stream->key.id, sizeof(leads_to)) != 0)
        return cn_err_set(err, CN_EEXISTS, "the name \"%.100s\" is that of another object here",
                          stream->meta.name);
    return 0;
}

static int read_cell(char type, const struct cn_json *cell, struct cn_buf *bytes,
                     struct cn_plain_cell *out, struct cn_err *err)
{
    char *end;
    *out = (struct cn_plain_cell){.type = CN_SQL_NULL};
    if (type == 'n')
        return 0;
    if (cell->kind != CN_JSON_STRING)
        return cn_err_set(err, CN_EINVALID, "a cell is no text");
    out->bytes = cell->text;
    out->size = cell->size;
    if (type == 't') {
        out->type = CN_SQL_TEXT;
        return 0;
    }
    if (type == 'i') {
        errno = 0;
        out->type = CN_SQL_INT;
        out->integer = strtoll(cell->text, &end, 10);
        return errno || end == cell->text || *end
                   ? cn_err_set(err, CN_EINVALID, "a cell is no integer")
                   : 0;
    }
    if (!cn_base64_decode(bytes, cell->text, cell->size) || (type == 'r' && bytes->size != 8))
        return cn_err_set(err, CN_EINVALID, "a cell is no base64");
    out->type = type == 'r' ? CN_SQL_REAL : CN_SQL_BLOB;
    if (type == 'r')
        memcpy(&out->real, bytes->data, 8);
    out->bytes = bytes->data;
    out->size = bytes->size;
    return 0;
}

static int add_row(struct stream *stream, const char *types, const struct cn_json *cells,
                   struct cn_err *err)
{
    struct cn_plain_cell *out = cn_alloc_zero(CELLS_MAX * sizeof(*out));
    struct cn_buf *bytes = cn_alloc_zero(CELLS_MAX * sizeof(*bytes));
    size_t count = 0, type_count = strlen(types);
    int rc = stream->insert.size && cells && cells->kind == CN_JSON_ARRAY && type_count <= CELLS_MAX
                 ? 0
                 : cn_err_set(err, CN_EINVALID, "a row is not one");
    for (const struct cn_json *each = rc == 0 ? cells->first : NULL; each && rc == 0;
         each = each->next, count++)
        rc = count < type_count ? read_cell(types[count], each, &bytes[count], &out[count], err)
                                : cn_err_set(err, CN_EINVALID, "a row has too many cells");
    if (rc == 0)
        rc = cn_plain_run(stream->plain, cn_buf_text(&stream->insert), out, count, err);
    for (size_t i = 0; i < CELLS_MAX; i++)
        cn_buf_fini(&bytes[i]);
    cn_free(bytes);
    cn_free(out);
    return rc;
}

static int add_pair(struct stream *stream, const struct cn_json *key, const char *value,
                    struct cn_err *err)
{
    struct cn_buf v8 = {0}, bytes = {0};
    int rc = key->kind == CN_JSON_STRING && value && cn_base64_decode(&v8, value, strlen(value))
                 ? 0
                 : cn_err_set(err, CN_EINVALID, "a value is no base64");
    if (rc == 0)
        rc = cn_v8value_convert(v8.data, v8.size, &bytes, err);
    if (rc == 0)
        rc = cn_plain_put(stream->plain, key->text, key->size, bytes.data, bytes.size, err);
    if (rc < 0 && key->kind == CN_JSON_STRING)
        cn_err_context(err, "the key \"%.100s\"", key->text);
    cn_buf_fini(&v8);
    cn_buf_fini(&bytes);
    return rc;
}

static int end_object(struct stream *stream, int64_t count, enum cn_import_outcome *outcome,
                      struct cn_err *err)
{
    struct cn_import *import = stream->import;
    struct cn_plain_file file = {import->scratch, 0, &stream->meta, import->verify};
    if (count != (int64_t)stream->lines)
        return cn_err_set(err, CN_ECORRUPT, "lines of it are missing");
    int rc = cn_plain_settle(stream->plain, &file.page_count, err);
    if (rc < 0)
        return rc;
    if (file.page_count == 0 && !stream->meta.has_alarm) {
        *outcome = CN_IMPORT_LEFT;
        return 0;
    }
    rc = cn_import_store(import, &stream->key, &file, outcome, err);
    return rc == 0 && ++stream->came % SYNC_EVERY == 0 ? cn_import_sync(import, err) : rc;
}

/* A line of the object that has begun. 1: it was the last. */
static int read_part(struct stream *stream, const struct cn_json *line,
                     enum cn_import_outcome *outcome, struct cn_err *err)
{
    const struct cn_json *key = cn_json_find(line, "key");
    const char *text;
    if ((text = cn_json_text(line, "failed")))
        return cn_err_set(err, CN_ECORRUPT, "%.200s", text);
    if (cn_json_find(line, "end")) {
        int rc = end_object(stream, cn_json_int(line, "end"), outcome, err);
        return rc < 0 ? rc : 1;
    }
    stream->lines++;
    if ((text = cn_json_text(line, "sql")))
        return cn_plain_run(stream->plain, text, NULL, 0, err);
    if ((text = cn_json_text(line, "insert"))) {
        cn_buf_clear(&stream->insert);
        cn_buf_append_str(&stream->insert, text);
        return 0;
    }
    if ((text = cn_json_text(line, "row")))
        return add_row(stream, text, cn_json_find(line, "cells"), err);
    if (key)
        return add_pair(stream, key, cn_json_text(line, "value"), err);
    return cn_err_set(err, CN_EINVALID, "line %llu is none of a stream of objects",
                      (unsigned long long)stream->line_number);
}

/* Ends it with what went wrong; negative: the import cannot go on. */
static int give_up(struct stream *stream, int rc, struct cn_err *why, struct cn_err *err)
{
    drop(stream);
    stream->bad = true;
    if (!stream->gathers && cn_import_is_fatal(stream->import, rc)) {
        *err = *why;
        return rc;
    }
    if (!stream->gathers)
        tell(stream, rc == CN_EEXISTS ? CN_IMPORT_CONFLICT : CN_IMPORT_FAILED, why->text);
    return 0;
}

static int begin_object(struct stream *stream, const struct cn_json *line, struct cn_err *err)
{
    struct cn_err why = {0};
    if (stream->begun) {
        int rc = cn_err_set(&why, CN_ECORRUPT, "it has no end: export it again");
        rc = give_up(stream, rc, &why, err);
        if (rc < 0)
            return rc;
    }
    stream->bad = false;
    stream->lines = 0;
    int rc = read_head(stream, line, &why);
    if (rc == 0 && stream->gathers) {
        gather(stream);
        return 0;
    }
    if (rc == 0)
        rc = check_name(stream, &why);
    if (rc == 0)
        rc = cn_plain_make(stream->import->scratch, &stream->plain, &why);
    stream->begun = rc == 0;
    return rc < 0 ? give_up(stream, rc, &why, err) : 0;
}

static int read_line(struct stream *stream, const struct cn_json *line, struct cn_err *err)
{
    struct cn_err why = {0};
    enum cn_import_outcome outcome = CN_IMPORT_FAILED;
    const char *class_name = cn_json_text(line, "class");
    if (class_name)
        return begin_class(stream, class_name, err);
    if (cn_json_find(line, "object"))
        return begin_object(stream, line, err);
    if (stream->gathers || stream->bad)
        return 0;
    int rc = stream->begun ? read_part(stream, line, &outcome, &why)
                           : cn_err_set(&why, CN_EINVALID, "line %llu belongs to no object",
                                        (unsigned long long)stream->line_number);
    if (rc < 0)
        return give_up(stream, rc, &why, err);
    if (rc > 0) {
        tell(stream, outcome, outcome == CN_IMPORT_LEFT ? "it has nothing" : NULL);
        drop(stream);
    }
    return 0;
}

/* --- the file -------------------------------------------------------------------------------- */

static int read_all(struct stream *stream, struct cn_err *err)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t size;
    int rc = 0;
    rewind(stream->file);
    stream->line_number = 0;
    stream->begun = stream->bad = false;
    stream->current = NULL;
    while (rc == 0 && (size = getline(&text, &room, stream->file)) >= 0) {
        struct cn_err why = {0};
        struct cn_json *line = cn_json_parse(text, (size_t)size, &why);
        stream->line_number++;
        if (line && line->kind == CN_JSON_OBJECT)
            rc = read_line(stream, line, err);
        else if (stream->begun)
            rc = give_up(stream, CN_ECORRUPT,
                         (cn_err_set(&why, CN_ECORRUPT, "a line of it is no JSON: cut?"), &why),
                         err);
        else if (!stream->gathers)
            rc = cn_err_set(err, CN_EINVALID,
                            "line %llu is no JSON object: this is no stream of"
                            " objects",
                            (unsigned long long)stream->line_number);
        cn_json_free(line);
    }
    if (rc == 0 && ferror(stream->file))
        rc = cn_err_errno(err, errno, "cannot read %s", stream->import->source);
    if (rc == 0 && stream->begun) {
        struct cn_err why = {0};
        cn_err_set(&why, CN_ECORRUPT, "it has no end: export it again");
        rc = give_up(stream, CN_ECORRUPT, &why, err);
    }
    drop(stream);
    free(text);
    return rc;
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, CN_OBJECT_ID_SIZE);
}

/* An object that is there twice is listed once. */
static int keep_ids(struct stream *stream, struct cn_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < stream->class_count && rc == 0; i++) {
        struct cn_moved_ids *ids = &stream->classes[i].ids.ids;
        size_t kept = 0;
        if (ids->count)
            qsort(ids->entries, ids->count, sizeof(*ids->entries), compare_ids);
        for (size_t k = 0; k < ids->count; k++) {
            if (kept == 0 || compare_ids(&ids->entries[kept - 1], &ids->entries[k]) != 0)
                ids->entries[kept++] = ids->entries[k];
        }
        ids->count = kept;
        if (!stream->import->verify)
            rc = cn_moved_keep(cn_offline_disk(&stream->import->api.dir), ids, err);
        if (rc < 0)
            cn_err_context(err, "%s", stream->classes[i].class_->name);
    }
    return rc;
}

int cn_import_stream(struct cn_import *import, struct cn_err *err)
{
    struct stream *stream = CN_NEW(struct stream);
    stream->import = import;
    stream->file = fopen(import->source, "re");
    int rc = stream->file ? 0 : cn_err_errno(err, errno, "cannot read %s", import->source);
    stream->gathers = true;
    if (rc == 0)
        rc = read_all(stream, err);
    if (rc == 0)
        rc = keep_ids(stream, err);
    stream->gathers = false;
    if (rc == 0)
        rc = read_all(stream, err);
    if (rc == 0)
        rc = cn_import_sync(import, err);
    for (size_t i = 0; i < stream->class_count; i++)
        cn_import_ids_fini(&stream->classes[i].ids);
    if (stream->file)
        fclose(stream->file);
    cn_buf_fini(&stream->insert);
    cn_free(stream);
    return rc;
}
