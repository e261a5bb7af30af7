/* SPDX-License-Identifier: Apache-2.0 */
/* cli/import_services.c - KV, D1 and R2 of the local simulator. Each keeps an index in an object of
 * miniflare's own, whose id comes from the name of the namespace, and bodies in files beside it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/import.h"
#include "config/service_config.h"
#include "object/shard.h"
#include "service/def.h"
#include "store/catalog.h"
#include "store/plain.h"
#include "store/store.h"

#define EXPIRES_SOON_S 60
#define PARTS_MAX 10000

/* A namespace, bucket or database of the source. */
struct place {
    struct cn_import *import;
    enum cn_import_kind kind;
    const char *local, *id; /* borrowed */
    int rc;                 /* of what cannot go on */
    struct cn_err err;
    struct cn_plain *index;
    struct cn_buf target;
};

static const struct {
    const char *service, *folder, *class_name;
} services[CN_IMPORT_KINDS] = {
    [CN_IMPORT_KV] = {"kv", "kv", "miniflare-KVNamespaceObject"},
    [CN_IMPORT_D1] = {"d1", "d1", "miniflare-D1DatabaseObject"},
    [CN_IMPORT_R2] = {"r2", "r2", "miniflare-R2BucketObject"},
};

static char *index_path(const struct place *place)
{
    char hex[CN_OBJECT_HEX_SIZE + 1];
    cn_import_own_id(services[place->kind].class_name, place->local, hex);
    return cn_sprintf("%s/%s/%s/%s.sqlite", place->import->source, services[place->kind].folder,
                      services[place->kind].class_name, hex);
}

/* --- bodies ---------------------------------------------------------------------------------- */

/* Files, one after the other, as a body. */
struct files {
    char **paths; /* owned */
    size_t count, at;
    int fd;
    int64_t size; /* of all */
};

static void files_fini(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        cn_free(files->paths[i]);
    cn_free(files->paths);
    if (files->fd >= 0)
        close(files->fd);
}

/* Adds SOURCE/FOLDER/LOCAL/blobs/BLOB. A blob's name is made of hexadecimal digits. */
static int files_add(struct files *files, const struct place *place, const char *blob,
                     struct cn_err *err)
{
    struct stat info;
    size_t size = strlen(blob);
    if (!size || size > 200 || strspn(blob, "0123456789abcdef") != size)
        return cn_err_set(err, CN_ECORRUPT, "its body has no good name");
    char *path = cn_sprintf("%s/%s/%s/blobs/%s", place->import->source,
                            services[place->kind].folder, place->local, blob);
    files->paths = cn_realloc(files->paths, (files->count + 1) * sizeof(*files->paths));
    files->paths[files->count++] = path;
    if (lstat(path, &info) < 0)
        return cn_err_errno(err, errno, "its body cannot be read");
    int rc = cn_import_check_path(place->import, path, err);
    if (rc < 0)
        return rc;
    if (!S_ISREG(info.st_mode))
        return cn_err_set(err, CN_EINVALID, "its body is no file");
    files->size += info.st_size;
    return 0;
}

static int64_t files_read(void *data, void *bytes, size_t size, struct cn_err *err)
{
    struct files *files = data;
    while (files->at < files->count) {
        if (files->fd < 0)
            files->fd = open(files->paths[files->at], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        ssize_t count = files->fd < 0 ? -1 : read(files->fd, bytes, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return cn_err_errno(err, errno, "its body cannot be read");
        if (count > 0)
            return count;
        close(files->fd);
        files->fd = -1;
        files->at++;
    }
    return 0;
}

/* Compares an answer with the files. */
struct comparison {
    struct files *files;
    bool differs;
};

static int compare_piece(void *data, const void *bytes, size_t size, struct cn_err *err)
{
    struct comparison *comparison = data;
    char own[16 << 10];
    for (size_t done = 0; done < size && !comparison->differs;) {
        size_t want = size - done < sizeof(own) ? size - done : sizeof(own);
        int64_t got = files_read(comparison->files, own, want, err);
        if (got < 0)
            return (int)got;
        comparison->differs = got == 0 || memcmp(own, (const char *)bytes + done, (size_t)got) != 0;
        done += (size_t)got;
    }
    return 0;
}

/* Whether what the target has is what the files have. */
static int compare_body(struct place *place, struct files *files, bool *same, struct cn_err *err)
{
    struct comparison comparison = {files, false};
    char byte;
    int rc = cn_api_fetch(&place->import->api, cn_buf_text(&place->target), compare_piece,
                          &comparison, err);
    if (rc == 0 && !comparison.differs)
        comparison.differs = files_read(files, &byte, 1, err) != 0;
    *same = !comparison.differs;
    return rc;
}

/* --- targets --------------------------------------------------------------------------------- */

static void begin_target(struct place *place, const char *group)
{
    cn_buf_clear(&place->target);
    cn_buf_printf(&place->target, "/api/%s/", services[place->kind].service);
    cn_api_append_param(&place->target, NULL, place->id);
    cn_buf_append_str(&place->target, group);
}

static void add_param(struct place *place, char mark, const char *name, const char *value)
{
    cn_buf_append_byte(&place->target, (uint8_t)mark);
    cn_api_append_param(&place->target, name, value);
}

/* The entry of this key in the target's list, or NULL. `answer` is the caller's to free. */
static int find_entry(struct place *place, const char *key, size_t size, struct cn_json **answer,
                      const struct cn_json **entry, struct cn_err *err)
{
    bool kv = place->kind == CN_IMPORT_KV;
    *entry = NULL;
    *answer = NULL;
    begin_target(place, kv ? "/keys" : "/objects");
    cn_buf_append_str(&place->target, "?limit=1&prefix=");
    cn_api_append_bytes(&place->target, key, size);
    int rc =
        cn_api_call(&place->import->api, "GET", cn_buf_text(&place->target), NULL, answer, err);
    if (rc == CN_ENOTFOUND && place->import->verify)
        return 0; /* there is no such namespace */
    if (rc < 0)
        return rc;
    const struct cn_json *list = cn_json_find(*answer, kv ? "keys" : "objects");
    const struct cn_json *first = list ? list->first : NULL;
    const struct cn_json *found = first ? cn_json_find(first, kv ? "name" : "key") : NULL;
    if (found && found->kind == CN_JSON_STRING && found->size == size &&
        memcmp(found->text, key, size) == 0)
        *entry = first;
    return 0;
}

/* JSON of both, in the form of one writer. An absent one is `none`. */
static bool is_same_json(const struct cn_json *have, const char *want, const char *none)
{
    struct cn_buf a = {0}, b = {0};
    struct cn_json *tree = cn_json_parse(want, strlen(want), NULL);
    if (have)
        cn_json_write(&a, have);
    else
        cn_buf_append_str(&a, none);
    if (tree)
        cn_json_write(&b, tree);
    bool same = tree && a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
    cn_json_free(tree);
    cn_buf_fini(&a);
    cn_buf_fini(&b);
    return same;
}

/* What became of a thing; negative: the data directory has failed. */
static int conclude(struct place *place, const char *key, int rc, enum cn_import_outcome outcome,
                    const char *left, struct cn_err *why, struct cn_err *err)
{
    struct cn_import *import = place->import;
    if (rc < 0 && cn_import_is_fatal(import, rc)) {
        *err = *why;
        return rc;
    }
    char *what = cn_sprintf("%s %.300s", place->local, key);
    cn_import_tell(import, place->kind, rc < 0 ? CN_IMPORT_FAILED : outcome, what,
                   rc < 0 ? why->text : left);
    cn_free(what);
    return 0;
}

/* --- KV -------------------------------------------------------------------------------------- */

struct key {
    const char *text; /* borrowed */
    size_t size;
    int64_t expires_s;    /* 0: never */
    const char *metadata; /* JSON; borrowed */
};

static int put_key(struct place *place, const struct key *key, struct files *files,
                   struct cn_err *err)
{
    struct cn_json *answer = NULL;
    char number[24];
    begin_target(place, "/values/");
    cn_api_append_bytes(&place->target, key->text, key->size);
    add_param(place, '?', "metadata", key->metadata);
    if (key->expires_s) {
        snprintf(number, sizeof(number), "%" PRId64, key->expires_s);
        add_param(place, '&', "expiration", number);
    }
    struct cn_api_body body = {files->size, files_read, files};
    int rc = cn_api_put(&place->import->api, cn_buf_text(&place->target), &body, &answer, err);
    cn_json_free(answer);
    return rc;
}

static int import_key(struct place *place, const struct key *key, struct files *files,
                      enum cn_import_outcome *outcome, struct cn_err *err)
{
    const struct cn_json *entry;
    struct cn_json *answer;
    bool same = false;
    int rc = find_entry(place, key->text, key->size, &answer, &entry, err);
    *outcome = CN_IMPORT_CONFLICT;
    if (rc == 0 && entry && cn_json_int(entry, "expiration") == key->expires_s &&
        is_same_json(cn_json_find(entry, "metadata"), key->metadata, "null")) {
        begin_target(place, "/values/");
        cn_api_append_bytes(&place->target, key->text, key->size);
        rc = compare_body(place, files, &same, err);
        if (same)
            *outcome = CN_IMPORT_THERE;
    } else if (rc == 0 && !entry && !place->import->verify) {
        rc = put_key(place, key, files, err);
        *outcome = CN_IMPORT_CAME;
    }
    cn_json_free(answer);
    return rc;
}

static int each_key(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    struct place *place = data;
    struct files files = {.fd = -1};
    struct cn_err why = {0};
    enum cn_import_outcome outcome = CN_IMPORT_FAILED;
    const char *left = NULL;
    struct key key = {.metadata = cn_plain_null(row, 3) ? "null" : cn_plain_text(row, 3, NULL),
                      .expires_s = cn_plain_null(row, 2) ? 0 : cn_plain_int(row, 2) / 1000};
    key.text = cn_plain_text(row, 0, &key.size);
    int rc = 0;
    if (!cn_plain_null(row, 2) &&
        key.expires_s < cn_clock_wall_ms(cn_clock_system()) / 1000 + EXPIRES_SOON_S) {
        outcome = CN_IMPORT_LEFT;
        left = "it has expired, or does within a minute";
    } else {
        rc = files_add(&files, place, cn_plain_text(row, 1, NULL), &why);
        if (rc == 0)
            rc = import_key(place, &key, &files, &outcome, &why);
    }
    rc = conclude(place, key.text, rc, outcome, left, &why, err);
    files_fini(&files);
    return rc;
}

int cn_import_kv_key(struct cn_import *import, const char *namespace_id,
                     const struct cn_import_key *key, struct cn_err *err)
{
    struct place place = {
        .import = import, .kind = CN_IMPORT_KV, .local = namespace_id, .id = namespace_id};
    struct key own = {key->text, key->size, key->expires_s, key->metadata};
    struct files files = {.fd = -1};
    struct stat info;
    struct cn_err why = {0};
    enum cn_import_outcome outcome = CN_IMPORT_FAILED;
    files.paths = cn_alloc(sizeof(*files.paths));
    files.paths[files.count++] = cn_strdup(key->path);
    int rc =
        lstat(key->path, &info) < 0 ? cn_err_errno(&why, errno, "cannot read %s", key->path) : 0;
    files.size = rc == 0 ? info.st_size : 0;
    if (rc == 0)
        rc = import_key(&place, &own, &files, &outcome, &why);
    rc = conclude(&place, key->text, rc, outcome, NULL, &why, err);
    files_fini(&files);
    cn_buf_fini(&place.target);
    return rc;
}

/* --- R2 -------------------------------------------------------------------------------------- */

static int each_part(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    struct {
        struct place *place;
        struct files *files;
    } *parts = data;
    if (parts->files->count == PARTS_MAX)
        return cn_err_set(err, CN_ELIMIT, "it has more parts than can be");
    return files_add(parts->files, parts->place, cn_plain_text(row, 0, NULL), err);
}

static void add_http(struct place *place, const char *text)
{
    struct cn_json *http = cn_json_parse(text, strlen(text), NULL);
    for (const struct cn_json *each = http ? http->first : NULL; each; each = each->next) {
        struct cn_buf value = {0};
        if (each->kind == CN_JSON_STRING)
            cn_buf_append(&value, each->text, each->size);
        else
            cn_json_write(&value, each);
        cn_buf_append_byte(&place->target, '&');
        cn_api_append_param(&place->target, NULL, each->name);
        cn_buf_append_byte(&place->target, '=');
        cn_api_append_bytes(&place->target, value.data, value.size);
        cn_buf_fini(&value);
    }
    cn_json_free(http);
}

static int put_object(struct place *place, const struct cn_plain_row *row, struct files *files,
                      struct cn_err *err)
{
    struct cn_json *answer = NULL;
    size_t size;
    const char *key = cn_plain_text(row, 0, &size);
    begin_target(place, "/objects/");
    cn_api_append_bytes(&place->target, key, size);
    add_param(place, '?', "metadata", cn_plain_text(row, 6, NULL));
    add_param(place, '&', "etag", cn_plain_text(row, 3, NULL));
    add_param(place, '&', "uploaded", cn_plain_text(row, 4, NULL));
    add_http(place, cn_plain_text(row, 5, NULL));
    struct cn_api_body body = {files->size, files_read, files};
    int rc = cn_api_put(&place->import->api, cn_buf_text(&place->target), &body, &answer, err);
    cn_json_free(answer);
    return rc;
}

static bool is_same_object(const struct cn_json *entry, const struct cn_plain_row *row)
{
    const char *etag = cn_json_text(entry, "etag");
    return cn_json_int(entry, "size") == cn_plain_int(row, 2) && etag &&
           strcmp(etag, cn_plain_text(row, 3, NULL)) == 0 &&
           cn_json_int(entry, "uploaded") == cn_plain_int(row, 4) &&
           is_same_json(cn_json_find(entry, "http"), cn_plain_text(row, 5, NULL), "{}") &&
           is_same_json(cn_json_find(entry, "custom"), cn_plain_text(row, 6, NULL), "{}");
}

static int import_one(struct place *place, const struct cn_plain_row *row, struct files *files,
                      enum cn_import_outcome *outcome, struct cn_err *err)
{
    const struct cn_json *entry;
    struct cn_json *answer;
    bool same = true;
    size_t size;
    const char *key = cn_plain_text(row, 0, &size);
    int rc = find_entry(place, key, size, &answer, &entry, err);
    *outcome = CN_IMPORT_CONFLICT;
    if (rc == 0 && entry && is_same_object(entry, row)) {
        begin_target(place, "/objects/");
        cn_api_append_bytes(&place->target, key, size);
        if (place->import->verify) /* the etag says it of most */
            rc = compare_body(place, files, &same, err);
        if (same)
            *outcome = CN_IMPORT_THERE;
    } else if (rc == 0 && !entry && !place->import->verify) {
        rc = put_object(place, row, files, err);
        *outcome = CN_IMPORT_CAME;
    }
    cn_json_free(answer);
    return rc;
}

static int each_object(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    struct place *place = data;
    struct files files = {.fd = -1};
    struct cn_err why = {0};
    enum cn_import_outcome outcome = CN_IMPORT_FAILED;
    struct {
        struct place *place;
        struct files *files;
    } parts = {place, &files};
    const char *key = cn_plain_text(row, 0, NULL);
    int rc = !cn_plain_null(row, 1)
                 ? files_add(&files, place, cn_plain_text(row, 1, NULL), &why)
                 : cn_plain_query(place->index,
                                  "SELECT blob_id FROM _mf_multipart_parts WHERE object_key = ?1"
                                  " ORDER BY part_number",
                                  key, each_part, &parts, &why);
    if (rc == 0 && files.size != cn_plain_int(row, 2))
        rc = cn_err_set(&why, CN_ECORRUPT, "its body has another size than its entry says");
    if (rc == 0)
        rc = import_one(place, row, &files, &outcome, &why);
    rc = conclude(place, key, rc, outcome, NULL, &why, err);
    files_fini(&files);
    return rc;
}

static int each_upload(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    struct cn_err none = {0};
    return conclude(data, cn_plain_text(row, 0, NULL), 0, CN_IMPORT_LEFT,
                    "an upload in parts that was not completed", &none, err);
}

static int put_fetched(struct place *place, struct cn_import_object *object, struct files *files,
                       struct cn_err *err)
{
    struct cn_json *answer = NULL;
    char number[24];
    snprintf(number, sizeof(number), "%" PRId64, object->uploaded_ms);
    begin_target(place, "/objects/");
    cn_api_append_bytes(&place->target, object->key, strlen(object->key));
    add_param(place, '?', "metadata", cn_buf_text(&object->custom));
    add_param(place, '&', "etag", object->etag);
    add_param(place, '&', "uploaded", number);
    add_http(place, cn_buf_text(&object->http));
    struct cn_api_body body = {files->size, files_read, files};
    int rc = cn_api_put(&place->import->api, cn_buf_text(&place->target), &body, &answer, err);
    cn_json_free(answer);
    return rc;
}

static int fetch_object(struct place *place, struct cn_import_object *object, struct files *files,
                        struct cn_err *err)
{
    struct stat info;
    int rc = object->fetch(object, object->data, err);
    if (rc == 0 && lstat(place->import->scratch, &info) < 0)
        rc = cn_err_errno(err, errno, "cannot read %s", place->import->scratch);
    if (rc < 0)
        return rc;
    files->paths = cn_alloc(sizeof(*files->paths));
    files->paths[files->count++] = cn_strdup(place->import->scratch);
    files->size = info.st_size;
    return info.st_size == object->size
               ? 0
               : cn_err_set(err, CN_ECORRUPT, "its body has another size than the list says");
}

static int move_object(struct place *place, struct cn_import_object *object, struct files *files,
                       enum cn_import_outcome *outcome, struct cn_err *err)
{
    const struct cn_json *entry;
    struct cn_json *answer;
    bool same = true;
    size_t size = strlen(object->key);
    int rc = find_entry(place, object->key, size, &answer, &entry, err);
    const char *etag = entry ? cn_json_text(entry, "etag") : NULL;
    *outcome = CN_IMPORT_CONFLICT;
    if (rc == 0 && etag && cn_json_int(entry, "size") == object->size &&
        strcmp(etag, object->etag) == 0) {
        if (place->import->verify)
            rc = fetch_object(place, object, files, err);
        begin_target(place, "/objects/");
        cn_api_append_bytes(&place->target, object->key, size);
        if (rc == 0 && place->import->verify)
            rc = compare_body(place, files, &same, err);
        if (same)
            *outcome = CN_IMPORT_THERE;
    } else if (rc == 0 && !entry && !place->import->verify) {
        rc = fetch_object(place, object, files, err);
        if (rc == 0)
            rc = put_fetched(place, object, files, err);
        *outcome = CN_IMPORT_CAME;
    }
    cn_json_free(answer);
    return rc;
}

int cn_import_r2_object(struct cn_import *import, const char *bucket,
                        struct cn_import_object *object, struct cn_err *err)
{
    struct place place = {.import = import, .kind = CN_IMPORT_R2, .local = bucket, .id = bucket};
    struct files files = {.fd = -1};
    struct cn_err why = {0};
    enum cn_import_outcome outcome = CN_IMPORT_FAILED;
    int rc = move_object(&place, object, &files, &outcome, &why);
    rc = conclude(&place, object->key, rc, outcome, NULL, &why, err);
    files_fini(&files);
    cn_buf_fini(&place.target);
    return rc;
}

/* --- D1 -------------------------------------------------------------------------------------- */

/* The object of a database is named "db": docs/reference/data-format.md. */
static int store_database(struct place *place, enum cn_import_outcome *outcome, struct cn_err *err)
{
    struct cn_import *import = place->import;
    struct cn_object_key key;
    struct cn_id_keys keys;
    struct cn_replace_meta meta = {.alarm_ms = CN_ALARM_NONE, .name = "db", .name_size = 2};
    uint32_t page_count = 0;
    char *name = cn_sprintf("$d1/%s", place->id);
    int rc = cn_plain_settle(place->index, &page_count, err);
    if (rc == 0)
        rc = cn_shards_number(import->api.dir.shards, name, &key.namespace_id, err);
    cn_free(name);
    if (rc == 0 && page_count == 0) {
        *outcome = CN_IMPORT_LEFT;
        return 0;
    }
    if (rc < 0)
        return rc;
    cn_id_keys_init(&keys, import->secret, key.namespace_id);
    cn_id_from_name(&keys, CN_JURISDICTION_NONE, meta.name, meta.name_size, key.id);
    struct cn_plain_file file = {import->scratch, page_count, &meta, import->verify};
    rc = cn_import_store(import, &key, &file, outcome, err);
    if (rc == 0 && *outcome == CN_IMPORT_CAME)
        rc = cn_import_sync(import, err);
    return rc;
}

static int import_database(struct place *place, struct cn_err *err)
{
    enum cn_import_outcome outcome = CN_IMPORT_FAILED;
    struct cn_err why = {0};
    int rc = store_database(place, &outcome, &why);
    return conclude(place, "", rc, outcome, outcome == CN_IMPORT_LEFT ? "it has nothing" : NULL,
                    &why, err);
}

/* --- places ---------------------------------------------------------------------------------- */

static int import_index(struct place *place, struct cn_err *err)
{
    struct cn_json *answer = NULL;
    if (place->kind == CN_IMPORT_D1)
        return import_database(place, err);
    const char *table = place->kind == CN_IMPORT_KV ? "_mf_entries" : "_mf_objects";
    int rc = cn_plain_has(place->index, table, err);
    if (rc <= 0)
        return rc;
    begin_target(place, "");
    rc = place->import->verify ? 0
                               : cn_api_call(&place->import->api, "PUT",
                                             cn_buf_text(&place->target), NULL, &answer, err);
    cn_json_free(answer);
    if (rc == 0 && place->kind == CN_IMPORT_KV)
        return cn_plain_query(
            place->index, "SELECT key, blob_id, expiration, metadata FROM _mf_entries ORDER BY key",
            NULL, each_key, place, err);
    if (rc == 0)
        rc = cn_plain_has(place->index, "_mf_multipart_parts", err);
    if (rc >= 0)
        rc = cn_plain_query(place->index,
                            "SELECT key, blob_id, size, etag, uploaded, http_metadata,"
                            " custom_metadata FROM _mf_objects ORDER BY key",
                            NULL, each_object, place, err);
    if (rc == 0 && cn_plain_has(place->index, "_mf_multipart_uploads", err) > 0)
        rc = cn_plain_query(place->index,
                            "SELECT key FROM _mf_multipart_uploads WHERE state = 0 ORDER BY key",
                            NULL, each_upload, place, err);
    return rc;
}

static void import_place(struct place *place)
{
    struct cn_err why = {0};
    struct cn_import *import = place->import;
    char *path = index_path(place);
    if (access(path, F_OK) == 0) {
        int rc = cn_import_open(import, path, &place->index, &why);
        if (rc == 0)
            rc = import_index(place, &why);
        if (rc < 0)
            place->rc = conclude(place, "", rc, CN_IMPORT_FAILED, NULL, &why, &place->err);
        cn_plain_close(place->index);
        place->index = NULL;
    }
    cn_buf_fini(&place->target);
    cn_free(path);
}

static void each_binding(void *data, const char *local, const char *id)
{
    struct place *place = data;
    if (place->rc < 0)
        return;
    place->local = local;
    place->id = id;
    if (strchr(local, '/') || local[0] == '.')
        return; /* no folder of the simulator */
    import_place(place);
}

/* Indexes that no binding of the project leads to are told. */
struct search {
    const struct place *place;
    const char *file;
    bool found;
};

static void look_for(void *data, const char *local, const char *id)
{
    struct search *search = data;
    (void)id;
    char hex[CN_OBJECT_HEX_SIZE + 1];
    cn_import_own_id(services[search->place->kind].class_name, local, hex);
    search->found |= strncmp(search->file, hex, CN_OBJECT_HEX_SIZE) == 0;
}

static int tell_others(struct place *place, const struct cn_service_config *config,
                       struct cn_err *err)
{
    struct cn_strings_owned files = {0};
    char *below =
        cn_sprintf("%s/%s", services[place->kind].folder, services[place->kind].class_name);
    int rc = cn_import_list(place->import, below, &files, err);
    for (size_t i = 0; i < files.count && rc == 0; i++) {
        const char *name = files.items[i], *end = strstr(name, ".sqlite");
        struct search search = {place, name, false};
        if (!end || strcmp(end, ".sqlite") != 0 || strcmp(name, "metadata.sqlite") == 0)
            continue;
        config->local(place->import->project.config, look_for, &search);
        if (!search.found)
            cn_import_tell(place->import, place->kind, CN_IMPORT_FAILED, name,
                           "no binding of the project is to it");
    }
    cn_import_list_free(&files);
    cn_free(below);
    return rc;
}

int cn_import_services(struct cn_import *import, struct cn_err *err)
{
    int rc = 0;
    for (int kind = 0; kind < CN_IMPORT_KINDS && rc == 0; kind++) {
        const char *name = services[kind].service;
        const struct cn_service_def *def = name ? cn_service_named(name, strlen(name)) : NULL;
        struct place place = {.import = import, .kind = (enum cn_import_kind)kind};
        if (!def || !def->config || !def->config->local)
            continue;
        rc = tell_others(&place, def->config, err);
        if (rc == 0)
            def->config->local(import->project.config, each_binding, &place);
        if (rc == 0 && place.rc < 0) {
            *err = place.err;
            rc = place.rc;
        }
    }
    return rc;
}
