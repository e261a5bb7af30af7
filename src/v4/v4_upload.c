/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_upload.c - a script is uploaded: PUT .../scripts/NAME (and deployed) and POST
 * .../scripts/NAME/versions (and kept).
 *
 * The body is multipart: "metadata", JSON (or many parts, metadata[...]: formtree.h), and a part
 * for each module, whose name is that of the part and whose kind is its content type. What becomes
 * of it is a version: files below code/ID/ and versions/ID.json (depot.h); only then the state is
 * changed.
 *
 *   U1  A name of a module is a path inside the version's folder, and each has one (D5).
 *   U2  A binding that is inherited is taken from the version before, as it is there: a secret is
 *       not decrypted for it.
 *   U3  A script with the content of another upload under way is nothing special: each has an id
 *       of its own.
 *   U4  What of the metadata is read is of the kind that it must be: nothing is passed over because
 *       it is not. What goes into the state, which is written as a whole, is short. */
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/mem.h"
#include "base/multipart.h"
#include "v4/formtree.h"
#include "v4/v4.h"

static const char *const migration_keys[] = {"new_classes", "new_sqlite_classes", "renamed_classes",
                                             "deleted_classes", "transferred_classes"};

struct upload {
    struct cn_control_call *call;
    struct cn_v4 *v4;
    const char *worker;
    struct cn_json *metadata;              /* owned */
    struct cn_formtree fields;             /* of which it is made, if it comes so */
    struct cn_json *previous;              /* owned: the version before, or NULL */
    const struct cn_depot_version *before; /* of the state that is changed; or NULL */
    char id[CN_DEPOT_ID_SIZE];
    struct cn_buf modules, bindings; /* lists of JSON, without brackets */
    struct cn_depot_texts names;     /* of modules and of bindings, to find doubles */
    size_t binding_count;
    bool has_main;
};

static void fini(struct upload *upload)
{
    cn_json_free(upload->metadata);
    cn_formtree_fini(&upload->fields);
    cn_json_free(upload->previous);
    cn_buf_fini(&upload->modules);
    cn_buf_fini(&upload->bindings);
    cn_depot_texts_clear(&upload->names);
}

/* Whether one is a file where the other needs a folder: "a" and "a/b". */
static const char *find_clash(const struct cn_depot_texts *names, const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < names->count; i++) {
        const char *other = names->items[i];
        size_t other_size = strlen(other), shorter = size < other_size ? size : other_size;
        const char *longer = size < other_size ? other : name;
        if (size != other_size && memcmp(name, other, shorter) == 0 && longer[shorter] == '/')
            return other;
    }
    return NULL;
}

static bool has_text(const struct cn_depot_texts *texts, const char *text)
{
    for (size_t i = 0; i < texts->count; i++) {
        if (strcmp(texts->items[i], text) == 0)
            return true;
    }
    return false;
}

/* --- parts ---------------------------------------------------------------------------------------
 */

bool cn_v4_boundary(const char *content_type, char text[80])
{
    static const char word[] = "boundary=";
    if (!content_type || strncasecmp(content_type, "multipart/form-data", 19) != 0)
        return false;
    const char *at = strcasestr(content_type, word);
    if (!at)
        return false;
    at += sizeof(word) - 1;
    bool quoted = *at == '"';
    at += quoted;
    size_t size = strcspn(at, quoted ? "\"" : "; \t");
    if (size == 0 || size > 70)
        return false;
    memcpy(text, at, size);
    text[size] = 0;
    return true;
}

/* The API's own client says another type for a body that is multipart: its first line has the
 * boundary. */
static bool own_boundary(const char *content_type, const struct cn_buf *body, char text[80])
{
    if (content_type && strncasecmp(content_type, "multipart/", 10) == 0)
        return false; /* who says so must say how */
    const uint8_t *end = body->size > 2 ? memchr(body->data, '\r', body->size) : NULL;
    size_t size = end ? (size_t)(end - body->data) : 0;
    if (size < 3 || size - 2 > 70 || memcmp(body->data, "--", 2) != 0)
        return false;
    memcpy(text, body->data + 2, size - 2);
    text[size - 2] = 0;
    return strlen(text) == size - 2;
}

/* That client names the parts of modules "files[]" or "files[NAME]": the module is then known by
 * the name of its file. */
static void name_by_file(struct cn_multipart_part *part)
{
    bool own = part->name_size > 6 && memcmp(part->name, "files[", 6) == 0 &&
               part->name[part->name_size - 1] == ']';
    if (!own || !part->filename || !part->filename_size)
        return;
    part->name = part->filename;
    part->name_size = part->filename_size;
}

/* The kind of a module, by the content type of its part; NULL: there is none. */
static const char *module_kind(const struct cn_multipart_part *part)
{
    static const struct {
        const char *type, *kind;
    } kinds[] = {
        {"application/javascript+module", "ESModule"}, {"application/javascript", "CommonJS"},
        {"text/javascript+module", "ESModule"},        {"text/javascript", "CommonJS"},
        {"application/wasm", "CompiledWasm"},          {"text/plain", "Text"},
        {"application/octet-stream", "Data"},          {"application/json", "JSON"},
        {"application/source-map", "SourceMap"},
    };
    size_t size = 0;
    while (size < part->type_size && part->type[size] != ';')
        size++;
    for (size_t i = 0; i < CN_ARRAY_COUNT(kinds); i++) {
        if (strlen(kinds[i].type) == size && strncasecmp(kinds[i].type, part->type, size) == 0)
            return kinds[i].kind;
    }
    return NULL;
}

static const char *main_name(const struct upload *upload)
{
    const char *name = cn_json_text(upload->metadata, "main_module");
    return name ? name : cn_json_text(upload->metadata, "body_part");
}

/* "./a/b.wasm" is a/b.wasm. */
static const char *plain_name(const char *name)
{
    return strncmp(name, "./", 2) == 0 ? name + 2 : name;
}

static int take_module(struct upload *upload, const struct cn_multipart_part *part,
                       const uint8_t *bytes, struct cn_err *err)
{
    char *text = cn_strndup(part->name, part->name_size);
    const char *name = plain_name(text), *kind = module_kind(part);
    int rc = 0;
    if (!cn_depot_path_is_good(name, strlen(name)) || strlen(text) != part->name_size)
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                        "the name of a module must be a path inside the script: \"%.60s\"", text);
    else if (has_text(&upload->names, name))
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10021, "there are two modules named %.60s",
                        name);
    else if (find_clash(&upload->names, name))
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                        "the modules %.60s and %.60s cannot both be: one is the other's folder",
                        name, find_clash(&upload->names, name));
    else if (!kind)
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                        "the module %.60s has the type %.*s, which cairn does not run", name,
                        (int)(part->type_size < 60 ? part->type_size : 60),
                        part->type ? part->type : "");
    if (rc == 0)
        rc = cn_depot_put_file(upload->v4->depot, upload->id, "src", name, bytes + part->start,
                               part->end - part->start, err);
    if (rc == 0) {
        const char *entry = main_name(upload);
        upload->has_main |= entry && strcmp(plain_name(entry), name) == 0;
        cn_depot_texts_add(&upload->names, name);
        cn_buf_append_str(&upload->modules, upload->modules.size ? ",{" : "{");
        cn_v4_put_text(&upload->modules, "name", name);
        cn_v4_put_text(&upload->modules, "type", kind);
        cn_buf_printf(&upload->modules, ",\"size\":%zu}", part->end - part->start);
    }
    cn_free(text);
    return rc;
}

/* "metadata", or a field of it: metadata[main_module]. */
static bool is_metadata(const struct cn_multipart_part *part)
{
    static const char name[] = "metadata";
    return (part->name_size == sizeof(name) - 1 &&
            memcmp(part->name, name, part->name_size) == 0) ||
           (!part->filename && cn_formtree_has(name, part->name, part->name_size));
}

static int parse_metadata(struct upload *upload, const char *text, size_t size, struct cn_err *err)
{
    if (upload->metadata)
        return cn_v4_fail(upload->call, err, CN_EINVALID, 10021, "there are two metadata parts");
    if (cn_control_take(upload->call, cn_json_cost(text, size, CN_JSON_ASKED_MAX), err) < 0)
        return err->code;
    upload->metadata = cn_json_parse_some(text, size, CN_JSON_ASKED_MAX, err);
    if (!upload->metadata)
        return cn_err_context(err, "metadata");
    if (upload->metadata->kind != CN_JSON_OBJECT)
        return cn_v4_fail(upload->call, err, CN_EINVALID, 10021, "metadata must be an object");
    return 0;
}

static int take_metadata(struct upload *upload, const struct cn_multipart_part *part,
                         const uint8_t *bytes, struct cn_err *err)
{
    const char *text = (const char *)bytes + part->start;
    size_t size = part->end - part->start;
    if (part->name[part->name_size - 1] != ']')
        return parse_metadata(upload, text, size, err);
    return cn_formtree_add(&upload->fields, part->name, part->name_size, text, size, err);
}

/* After the last part: the metadata, however it came. */
static int end_metadata(struct upload *upload, struct cn_err *err)
{
    int rc = 0;
    if (upload->fields.root) {
        struct cn_buf json = {0};
        cn_formtree_write(&upload->fields, &json);
        rc = parse_metadata(upload, (const char *)json.data, json.size, err);
        cn_buf_fini(&json);
    }
    if (rc == 0 && !upload->metadata)
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10021, "the part \"metadata\" is missing");
    return rc;
}

static const char *annotation(const struct upload *upload, const char *name)
{
    const char *text = cn_json_text(cn_json_find(upload->metadata, "annotations"), name);
    return text ? text : "";
}

static int check_kind(struct upload *upload, const struct cn_json *object, const char *name,
                      enum cn_json_kind kind, struct cn_err *err)
{
    const struct cn_json *value = cn_json_find(object, name);
    if (!value || value->kind == CN_JSON_NULL || value->kind == kind)
        return 0;
    return cn_v4_fail(upload->call, err, CN_EINVALID, 10021, "\"%s\" of the metadata must be %s",
                      name, kind == CN_JSON_ARRAY ? "a list" : "an object");
}

static int check_step(struct upload *upload, const struct cn_json *step, struct cn_err *err)
{
    int rc = step->kind == CN_JSON_OBJECT
                 ? 0
                 : cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                              "a step of the migrations must be an object");
    for (size_t i = 0; i < CN_ARRAY_COUNT(migration_keys) && rc == 0; i++)
        rc = check_kind(upload, step, migration_keys[i], CN_JSON_ARRAY, err);
    return rc;
}

/* What is noted of them in the state. */
static int check_migrations(struct upload *upload, const struct cn_json *migrations,
                            struct cn_err *err)
{
    const struct cn_json *steps = cn_json_find(migrations, "steps");
    const struct cn_json *tag = cn_json_find(migrations, "new_tag");
    struct cn_buf text = {0};
    cn_json_write(&text, migrations);
    size_t size = text.size;
    cn_buf_fini(&text);
    int rc = check_kind(upload, migrations, "steps", CN_JSON_ARRAY, err);
    if (rc == 0 && size > CN_V4_MIGRATIONS_MAX)
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                        "the migrations have more than %u bytes", CN_V4_MIGRATIONS_MAX);
    if (rc == 0 && tag && tag->kind == CN_JSON_STRING &&
        (tag->size > CN_V4_MESSAGE_MAX || strlen(tag->text) != tag->size))
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                        "the tag of a migration has at most %u bytes, and no NUL",
                        CN_V4_MESSAGE_MAX);
    if (rc == 0)
        rc = check_step(upload, migrations, err);
    for (const struct cn_json *step = rc == 0 && steps ? steps->first : NULL; step && rc == 0;
         step = step->next)
        rc = check_step(upload, step, err);
    return rc;
}

/* U4 */
static int check_metadata(struct upload *upload, struct cn_err *err)
{
    const struct cn_json *metadata = upload->metadata;
    const struct cn_json *migrations = cn_json_find(metadata, "migrations");
    int rc = check_kind(upload, metadata, "bindings", CN_JSON_ARRAY, err);
    if (rc == 0)
        rc = check_kind(upload, metadata, "keep_bindings", CN_JSON_ARRAY, err);
    if (rc == 0)
        rc = check_kind(upload, metadata, "assets", CN_JSON_OBJECT, err);
    if (rc == 0)
        rc = check_kind(upload, metadata, "annotations", CN_JSON_OBJECT, err);
    if (rc == 0)
        rc = check_kind(upload, metadata, "migrations", CN_JSON_OBJECT, err);
    if (rc == 0 && migrations && migrations->kind == CN_JSON_OBJECT)
        rc = check_migrations(upload, migrations, err);
    if (rc == 0 && (strlen(annotation(upload, "workers/message")) > CN_V4_MESSAGE_MAX ||
                    strlen(annotation(upload, "workers/tag")) > CN_V4_MESSAGE_MAX))
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                        "a message or a tag has at most %u bytes", CN_V4_MESSAGE_MAX);
    return rc;
}

/* Calls `take` for every part; with `metadata` only for that one, without for the others. */
static int each_part(struct upload *upload, bool metadata, struct cn_err *err)
{
    const struct cn_control_call *call = upload->call;
    struct cn_multipart parser;
    struct cn_multipart_part part;
    char boundary[80];
    if (!cn_v4_boundary(call->content_type, boundary) &&
        !own_boundary(call->content_type, &call->body, boundary))
        return cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                          "the body must be multipart/form-data");
    const uint8_t *bytes = call->body.data ? call->body.data : (const uint8_t *)"";
    cn_multipart_init(&parser, bytes, call->body.size, boundary, strlen(boundary));
    int rc;
    size_t count = 0;
    while ((rc = cn_multipart_next(&parser, &part, err)) > 0) {
        name_by_file(&part);
        bool is_module = !is_metadata(&part);
        rc = is_module == metadata ? 0
             : metadata            ? take_metadata(upload, &part, bytes, err)
                                   : take_module(upload, &part, bytes, err);
        count += is_module;
        if (rc == 0 && count > CN_V4_MODULE_MAX) /* before anything is written */
            rc = cn_v4_fail(upload->call, err, CN_ELIMIT, 10027, "a script has at most %d modules",
                            CN_V4_MODULE_MAX);
        if (rc < 0)
            break;
    }
    cn_multipart_fini(&parser);
    return rc;
}

/* --- bindings ------------------------------------------------------------------------------------
 */

static const struct cn_json *find_binding(const struct cn_json *version, const char *name)
{
    const struct cn_json *list = cn_json_find(version, "bindings");
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        const char *own = cn_json_text(item, "name");
        if (own && strcmp(own, name) == 0)
            return item;
    }
    return NULL;
}

static int add_binding(struct upload *upload, const char *name, struct cn_err *err)
{
    if (++upload->binding_count > CN_V4_BINDING_MAX)
        return cn_v4_fail(upload->call, err, CN_ELIMIT, 10021, "a script has at most %d bindings",
                          CN_V4_BINDING_MAX);
    if (has_text(&upload->names, name))
        return cn_v4_fail(upload->call, err, CN_EINVALID, 10021, "there are two bindings named %s",
                          name);
    cn_depot_texts_add(&upload->names, name);
    if (upload->bindings.size)
        cn_buf_append_byte(&upload->bindings, ',');
    return 0;
}

static void append_secret(struct upload *upload, const char *name, const struct cn_json *text)
{
    struct cn_buf sealed = {0};
    cn_depot_seal(upload->v4->depot, upload->worker, name, text->text, text->size, &sealed);
    cn_buf_append_byte(&upload->bindings, '{');
    cn_v4_put_text(&upload->bindings, "type", "secret_text");
    cn_v4_put_text(&upload->bindings, "name", name);
    cn_v4_put_text(&upload->bindings, "sealed", cn_buf_text(&sealed));
    cn_buf_append_byte(&upload->bindings, '}');
    cn_buf_fini(&sealed);
}

/* A binding says what it is to: nothing is found for it by another name. */
static int check_target(struct upload *upload, const struct cn_json *binding, const char *name,
                        const char *type, struct cn_err *err)
{
    static const struct {
        const char *type, *member;
    } targets[] = {{"kv_namespace", "namespace_id"}, {"d1", "id"},
                   {"r2_bucket", "bucket_name"},     {"queue", "queue_name"},
                   {"service", "service"},           {"durable_object_namespace", "class_name"}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(targets); i++) {
        if (strcmp(targets[i].type, type) != 0)
            continue;
        const struct cn_json *value = cn_json_find(binding, targets[i].member);
        bool good = value && value->kind == CN_JSON_STRING && value->size > 0 &&
                    value->size <= CN_V4_MESSAGE_MAX && strlen(value->text) == value->size;
        if (!good)
            return cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                              "the binding %s of type %s must have a valid \"%s\"", name, type,
                              targets[i].member);
    }
    return 0;
}

static int take_binding(struct upload *upload, const struct cn_json *binding, struct cn_err *err)
{
    const char *name = cn_json_text(binding, "name"), *type = cn_json_text(binding, "type");
    if (!name || !*name || strlen(name) > 200 || !type)
        return cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                          "a binding needs a name and a type");
    const struct cn_json *text = cn_json_find(binding, "text"), *old = NULL;
    bool secret = strcmp(type, "secret_text") == 0;
    if (secret && (!text || text->kind != CN_JSON_STRING))
        return cn_v4_fail(upload->call, err, CN_EINVALID, 10021, "the secret %s has no text", name);
    if (strcmp(type, "inherit") == 0) {
        const char *from = cn_json_text(binding, "old_name");
        old = find_binding(upload->previous, from ? from : name);
        if (!old || from)
            return cn_v4_fail(upload->call, err, CN_EINVALID, 10057,
                              "the binding %s cannot be inherited: the version before has none",
                              name);
    }
    int rc = check_target(upload, binding, name, type, err);
    if (rc == 0)
        rc = add_binding(upload, name, err);
    if (rc < 0)
        return rc;
    if (secret)
        append_secret(upload, name, text);
    else
        cn_json_write(&upload->bindings, old ? old : binding); /* U2 */
    return 0;
}

/* Whether the list of what is kept speaks of secrets: one of keys ("secret_key", which are not
 * here) and not of texts lets go of the texts. `wrangler versions secret delete` says so. */
static bool names_secrets(const struct cn_json *kept)
{
    for (const struct cn_json *item = kept->first; item; item = item->next) {
        if (item->kind == CN_JSON_STRING && strncmp(item->text, "secret_", 7) == 0)
            return true;
    }
    return false;
}

/* Secrets are not in anybody's configuration: they stay until they are deleted, or somebody who
 * says what stays does not name them. */
static bool is_kept(const struct upload *upload, const char *type)
{
    const struct cn_json *kept = cn_json_find(upload->metadata, "keep_bindings");
    if (strcmp(type, "secret_text") == 0 && (!kept || !names_secrets(kept)))
        return true;
    for (const struct cn_json *item = kept ? kept->first : NULL; item; item = item->next) {
        if (item->kind == CN_JSON_STRING && strcmp(item->text, type) == 0)
            return true;
    }
    return false;
}

static int take_bindings(struct upload *upload, struct cn_err *err)
{
    const struct cn_json *list = cn_json_find(upload->metadata, "bindings");
    int rc = 0;
    cn_depot_texts_clear(&upload->names); /* from here on of bindings */
    for (const struct cn_json *item = list ? list->first : NULL; item && rc == 0; item = item->next)
        rc = take_binding(upload, item, err);
    list = cn_json_find(upload->previous, "bindings");
    for (const struct cn_json *item = list ? list->first : NULL; item && rc == 0;
         item = item->next) {
        const char *name = cn_json_text(item, "name"), *type = cn_json_text(item, "type");
        if (!name || !type || !is_kept(upload, type) || has_text(&upload->names, name))
            continue;
        rc = add_binding(upload, name, err);
        if (rc == 0)
            cn_json_write(&upload->bindings, item);
    }
    return rc;
}

/* --- the version ---------------------------------------------------------------------------------
 */

static void put_members(struct upload *upload, struct cn_buf *json)
{
    static const char *const keys[] = {
        "compatibility_date", "compatibility_flags", "limits",  "observability",
        "tail_consumers",     "placement",           "logpush", "usage_model",
        "annotations"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(keys); i++) {
        const struct cn_json *value = cn_json_find(upload->metadata, keys[i]);
        if (!value || value->kind == CN_JSON_NULL)
            continue;
        cn_buf_printf(json, ",\"%s\":", keys[i]);
        cn_json_write(json, value);
    }
}

static int write_version(struct upload *upload, struct cn_err *err)
{
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '{');
    cn_v4_put_text(&json, "worker", upload->worker);
    const char *entry = main_name(upload);
    if (entry)
        cn_v4_put_text(&json, "main", plain_name(entry));
    put_members(upload, &json);
    int rc = cn_v4_assets_keep(upload->v4, upload->id, upload->worker, upload->metadata,
                               upload->previous, &json, err);
    if (rc == 0) {
        cn_buf_append_str(&json, ",\"modules\":[");
        cn_buf_append(&json, upload->modules.data, upload->modules.size);
        cn_buf_append_str(&json, "],\"bindings\":[");
        cn_buf_append(&json, upload->bindings.data, upload->bindings.size);
        cn_buf_append_str(&json, "]}\n");
        rc = cn_depot_put_version(upload->v4->depot, upload->id, &json, err);
    }
    cn_buf_fini(&json);
    return rc;
}

/* The newest version whose file can be read: one that is damaged must not be in the way of the one
 * that mends it. */
static void find_previous(struct upload *upload, const struct cn_depot_script *script)
{
    for (size_t i = script ? script->version_count : 0; i-- > 0 && !upload->previous;) {
        struct cn_err err = {0};
        upload->before = &script->versions[i];
        upload->previous = cn_depot_read_version(upload->v4->depot, upload->before->id, &err);
        if (!upload->previous)
            cn_warn("%s: its secrets and what else is kept are those of an earlier version, if any",
                    err.text);
    }
    if (!upload->previous)
        upload->before = NULL;
}

/* Writes everything of the version but the state. */
static int make_version(struct upload *upload, const struct cn_depot_script *script,
                        struct cn_err *err)
{
    find_previous(upload, script);
    int rc = each_part(upload, true, err);
    if (rc == 0)
        rc = end_metadata(upload, err);
    if (rc == 0)
        rc = check_metadata(upload, err);
    if (rc == 0)
        rc = each_part(upload, false, err);
    if (rc == 0 && main_name(upload) && !upload->has_main)
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                        "the main module %.60s is not among the modules", main_name(upload));
    if (rc == 0 && !main_name(upload) && !cn_json_find(upload->metadata, "assets"))
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10021,
                        "metadata names no main_module, and there are no assets");
    if (rc == 0)
        rc = take_bindings(upload, err);
    if (rc == 0)
        rc = write_version(upload, err);
    return cn_v4_invalid(upload->call, rc);
}

/* --- migrations
 * ------------------------------------------------------------------------------------ */

static const char *last_tag(const struct cn_depot_script *script, struct cn_json **root)
{
    *root = NULL;
    if (!script->migrations.count)
        return NULL;
    const char *text = script->migrations.items[script->migrations.count - 1];
    *root = cn_json_parse(text, strlen(text), NULL);
    return cn_json_text(*root, "tag");
}

static void add_migration(struct cn_depot_script *script, const struct cn_json *step,
                          const char *tag)
{
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '{');
    cn_v4_put_text(&json, "tag", tag);
    for (size_t i = 0; i < CN_ARRAY_COUNT(migration_keys); i++) {
        const struct cn_json *value = cn_json_find(step, migration_keys[i]);
        if (!value || value->kind != CN_JSON_ARRAY)
            continue;
        cn_buf_printf(&json, ",\"%s\":", migration_keys[i]);
        cn_json_write(&json, value);
    }
    cn_buf_append_byte(&json, '}');
    cn_depot_texts_add(&script->migrations, cn_buf_text(&json));
    cn_buf_fini(&json);
}

/* Steps of one upload get tags of their own: the last one has the upload's. */
static int take_migrations(struct upload *upload, struct cn_depot_script *script,
                           struct cn_err *err)
{
    const struct cn_json *migrations = cn_json_find(upload->metadata, "migrations");
    if (!migrations || migrations->kind != CN_JSON_OBJECT)
        return 0;
    const char *old_tag = cn_json_text(migrations, "old_tag");
    const char *new_tag = cn_json_text(migrations, "new_tag");
    struct cn_json *root;
    const char *now = last_tag(script, &root);
    int rc = 0;
    if (!new_tag || !*new_tag)
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10021, "migrations need a new_tag");
    else if (strcmp(old_tag ? old_tag : "", now ? now : "") != 0)
        rc = cn_v4_fail(upload->call, err, CN_EINVALID, 10079,
                        "migrations begin at the tag \"%s\", but the worker is at \"%s\"",
                        old_tag ? old_tag : "", now ? now : "");
    cn_json_free(root);
    if (rc < 0)
        return rc;
    const struct cn_json *steps = cn_json_find(migrations, "steps");
    if (!steps) {
        add_migration(script, migrations, new_tag);
        return 0;
    }
    unsigned index = 0;
    for (const struct cn_json *step = steps->first; step; step = step->next) {
        char *tag = step->next ? cn_sprintf("%s/%u", new_tag, ++index) : cn_strdup(new_tag);
        add_migration(script, step, tag);
        cn_free(tag);
    }
    return 0;
}

/* --- both requests
 * --------------------------------------------------------------------------------- */

static void add_to_state(struct upload *upload, struct cn_depot_script *script)
{
    struct cn_depot_version version = {
        .created_ms = cn_v4_now(),
        .source = "wrangler",
        .author = upload->call->who.name,
        .message = (char *)annotation(upload, "workers/message"),
        .tag = (char *)annotation(upload, "workers/tag"),
    };
    memcpy(version.id, upload->id, sizeof(version.id));
    memcpy(version.code, upload->id, sizeof(version.code));
    cn_depot_add_version(script, &version);
}

/* D3: refused before the state is changed, with what esbuild or the configuration says. */
static int check_built(struct upload *upload, const struct cn_depot_script *script,
                       struct cn_err *err)
{
    int rc = cn_depot_put_sums(upload->v4->depot, upload->id, err);
    if (rc == 0)
        rc = upload->v4->build(upload->v4->build_data, script, upload->id, err);
    if (rc < 0 && !upload->call->platform_code)
        upload->call->platform_code = 10021;
    return cn_v4_refused(upload->call, rc, err);
}

static int change(struct upload *upload, struct cn_depot_state *state, bool deploys,
                  struct cn_err *err)
{
    struct cn_depot_script *script = cn_depot_find(state, upload->worker);
    if (!script && state->script_count >= CN_DEPOT_SCRIPT_MAX)
        return cn_v4_fail(upload->call, err, CN_ELIMIT, 10037, "there are %d workers already",
                          CN_DEPOT_SCRIPT_MAX);
    int rc = make_version(upload, script, err);
    if (rc < 0)
        return rc;
    if (!script)
        script = cn_depot_add_script(state, upload->worker, cn_v4_now());
    if (!deploys && cn_json_find(upload->metadata, "migrations"))
        return cn_v4_fail(upload->call, err, CN_EINVALID, 10211,
                          "a version with migrations must be deployed at once (wrangler deploy)");
    rc = take_migrations(upload, script, err);
    if (rc < 0)
        return rc;
    add_to_state(upload, script);
    return check_built(upload, script, err);
}

static int answer_upload(struct upload *upload)
{
    struct cn_buf json = {0};
    char digits[33] = "";
    size_t at = 0;
    for (const char *c = upload->id; *c; c++) {
        if (*c != '-')
            digits[at++] = *c;
    }
    digits[at] = 0;
    cn_buf_append_byte(&json, '{');
    cn_v4_put_text(&json, "id", upload->worker);
    cn_v4_put_text(&json, "etag", digits);
    cn_v4_put_text(&json, "deployment_id", digits);
    cn_buf_append_str(&json, ",\"available_on_subdomain\":true,\"startup_time_ms\":0}");
    return cn_control_result(upload->call, &json);
}

static int run_upload(struct cn_control_call *call, bool deploys, struct cn_err *err)
{
    struct upload upload = {.call = call, .v4 = cn_v4_of(call), .worker = call->path[6]};
    if (!cn_v4_name_is_good(upload.worker))
        return cn_v4_fail(call, err, CN_EINVALID, 10016,
                          "a worker's name has letters a to z, digits, - and _");
    if (upload.v4->no_build)
        return cn_v4_fail(call, err, CN_EUNSUPPORTED, 10013, "%s", upload.v4->no_build);
    int rc = cn_control_read_body(call, CN_V4_UPLOAD_MAX, err);
    if (rc < 0)
        return rc;
    cn_depot_uuid(upload.id);
    struct cn_depot_state *state = cn_v4_change(call, err);
    if (!state)
        return err->code;
    rc = change(&upload, state, deploys, err);
    if (rc == 0)
        cn_v4_note(call, state, deploys ? "deploy" : "upload", upload.worker, upload.id);
    if (rc == 0 && deploys) {
        cn_depot_deploy_version(cn_depot_find(state, upload.worker), upload.id, "wrangler",
                                call->who.name, annotation(&upload, "workers/message"),
                                cn_v4_now());
        rc = cn_v4_deploy(call, state, err);
    } else if (rc == 0) {
        rc = cn_v4_keep(call, state, err);
    } else {
        cn_depot_change_drop(upload.v4->depot, state);
    }
    if (rc == 0) {
        cn_info("%s: version %s was %s by %s", upload.worker, upload.id,
                deploys ? "deployed" : "uploaded", call->who.name);
        rc = deploys ? answer_upload(&upload) : cn_v4_answer_version(call, upload.id, err);
    } else {
        cn_depot_remove_version(upload.v4->depot, upload.id);
    }
    fini(&upload);
    return rc;
}

int cn_v4_put_script(struct cn_control_call *call, struct cn_err *err)
{
    return run_upload(call, true, err);
}

int cn_v4_post_version(struct cn_control_call *call, struct cn_err *err)
{
    return run_upload(call, false, err);
}
