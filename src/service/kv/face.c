/* SPDX-License-Identifier: Apache-2.0 */
/* service/kv/face.c - KV namespaces for code in C (module/face.h): get, getWithMetadata, put,
 * delete, list. Limits and sentences are those of prelude/workers/service/kv.js. */
#include "module/face.h"
#include "service/kv/kv.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "module/json.h"
#include "object/node.h"
#include "text/base64.h"

#define METADATA_BYTES_MAX 1024
#define TTL_MIN_S 60
#define CACHE_TTL_MIN_S 30

static struct cn_kv_call *call_of(struct cn_service_call *base)
{
    return CN_CONTAINER_OF(base, struct cn_kv_call, base);
}

/* The key, checked. NULL: `err`. */
static const char *key_of(const cairn_value *arguments, const char *method, size_t *size,
                          struct cn_err *err)
{
    const char *key = cn_value_text(cn_value_at(arguments, 0), size);
    if (!key || !*size)
        cn_err_set(err, CN_EINVALID, "Key name cannot be empty.");
    else if (strcmp(key, ".") == 0 || strcmp(key, "..") == 0)
        cn_err_set(err, CN_EINVALID, "\"%s\" is not allowed as a key name.", key);
    else if (*size > CN_KV_KEY_MAX)
        cn_err_set(err, CN_ELIMIT,
                   "KV %s failed: 414 UTF-8 encoded length of %zu exceeds key length limit of %d.",
                   method, *size, CN_KV_KEY_MAX);
    else
        return key;
    return NULL;
}

/* --- get ------------------------------------------------------------------------------------- */

enum { TEXT, BYTES, JSON };

struct get {
    int type;
    bool with_metadata;
};

static int build_value(const struct get *get, const struct cn_kv_call *call, cairn_builder *result,
                       struct cn_err *err)
{
    const char *bytes = call->value ? (const char *)call->value : "";
    if (!call->found)
        cn_build_null(result);
    else if (get->type == BYTES)
        cn_build_bytes(result, bytes, call->value_size);
    else if (get->type == TEXT)
        cn_build_text(result, bytes, call->value_size);
    else
        return cn_build_json(result, bytes, call->value_size, err);
    return 0;
}

static int build_get(const struct get *get, const struct cn_kv_call *call, cairn_builder *result,
                     struct cn_err *err)
{
    if (!get->with_metadata)
        return build_value(get, call, result, err);
    cn_build_object(result);
    cn_build_name(result, "value");
    int rc = build_value(get, call, result, err);
    cn_build_name(result, "metadata");
    if (rc == 0 && call->found && call->metadata.data)
        rc = cn_build_json(result, (const char *)call->metadata.data, call->metadata.size, err);
    else
        cn_build_null(result);
    cn_build_end(result);
    return rc;
}

static int read_type(const cairn_value *option, int *type, struct cn_err *err)
{
    static const char *const names[] = {"text", "arrayBuffer", "json"};
    const cairn_value *given =
        cn_value_kind(option) == CAIRN_OBJECT ? cn_value_get(option, "type") : option;
    const char *text = cn_value_text(given, NULL);
    for (int i = 0; i < 3; i++) {
        if (text && strcmp(text, names[i]) == 0) {
            *type = i;
            return 0;
        }
    }
    if (cn_face_absent(given))
        return 0;
    return cn_err_set(err, CN_EINVALID,
                      "Unknown response type. Possible types are \"text\", \"arrayBuffer\" and "
                      "\"json\".");
}

/* What a get allows on other nodes: service/kv/kv.h. */
static int64_t cache_ttl(const cairn_value *option)
{
    const cairn_value *given =
        cn_value_kind(option) == CAIRN_OBJECT ? cn_value_get(option, "cacheTtl") : NULL;
    double seconds;
    if (cn_value_number(given, &seconds) < 0)
        return 0;
    return seconds >= CACHE_TTL_MIN_S && seconds < 1e9 ? (int64_t)seconds : 0;
}

static int ask(struct cn_face_work *work, const cairn_value *arguments, bool with_metadata,
               cairn_builder *result, struct cn_err *err)
{
    size_t size;
    const char *key = key_of(arguments, "GET", &size, err);
    if (!key)
        return err->code;
    struct get *get = CN_NEW(struct get);
    work->state = get;
    work->free = cn_free;
    get->with_metadata = with_metadata;
    if (read_type(cn_value_at(arguments, 1), &get->type, err) < 0)
        return err->code;
    struct cn_kv_call *call = cn_kv_call_new(work->ns, CN_KV_GET, key, size);
    if (!cn_kv_cached(call, work->lane, cache_ttl(cn_value_at(arguments, 1)))) {
        work->call = &call->base;
        return 0;
    }
    int rc = build_get(get, call, result, err);
    cn_service_call_free(&call->base);
    return rc;
}

static int begin_get(struct cn_face_work *work, const cairn_value *arguments, cairn_builder *result,
                     struct cn_err *err)
{
    return ask(work, arguments, false, result, err);
}

static int begin_get_with(struct cn_face_work *work, const cairn_value *arguments,
                          cairn_builder *result, struct cn_err *err)
{
    return ask(work, arguments, true, result, err);
}

static int next_get(struct cn_face_work *work, struct cn_service_call *base, cairn_builder *result,
                    struct cn_err *err)
{
    cn_kv_answered(call_of(base));
    return build_get(work->state, call_of(base), result, err);
}

/* --- put, delete ----------------------------------------------------------------------------- */

static int bad_put(struct cn_err *err, const char *what, int64_t value, const char *text)
{
    return cn_err_set(err, CN_EINVALID, "KV PUT failed: 400 Invalid %s of %lld. %s", what,
                      (long long)value, text);
}

static int read_expiration(struct cn_kv_call *call, const cairn_value *options, int64_t now_s,
                           struct cn_err *err)
{
    const cairn_value *ttl = cn_value_get(options, "expirationTtl");
    const cairn_value *time = cn_value_get(options, "expiration");
    int64_t value = 0;
    call->ttl = !cn_face_absent(ttl);
    if (!call->ttl && cn_face_absent(time))
        return 0;
    const char *name = call->ttl ? "expiration_ttl" : "expiration";
    cn_value_int(call->ttl ? ttl : time, &value);
    if (call->ttl && value <= 0)
        return bad_put(err, name, value, "Please specify integer greater than 0.");
    if (call->ttl && value < TTL_MIN_S)
        return bad_put(err, name, value, "Expiration TTL must be at least 60.");
    if (!call->ttl && value <= now_s)
        return bad_put(err, name, value,
                       "Please specify integer greater than the current number of seconds since "
                       "the UNIX epoch.");
    if (!call->ttl && value < now_s + TTL_MIN_S)
        return bad_put(err, name, value,
                       "Expiration times must be at least 60 seconds in the future.");
    if (value > CN_KV_TIME_MAX_S)
        return bad_put(err, name, value, "Please specify seconds, not milliseconds.");
    call->expires_s = value;
    return 0;
}

static int read_options(struct cn_kv_call *call, const cairn_value *options, int64_t now_s,
                        struct cn_err *err)
{
    const cairn_value *metadata = cn_value_get(options, "metadata");
    int rc = read_expiration(call, options, now_s, err);
    if (rc == 0 && !cn_face_absent(metadata))
        rc = cn_value_append_json(metadata, &call->metadata, err);
    if (rc == 0 && call->metadata.size > METADATA_BYTES_MAX)
        rc = cn_err_set(err, CN_ELIMIT,
                        "KV PUT failed: 413 Metadata length of %zu exceeds limit of %d.",
                        call->metadata.size, METADATA_BYTES_MAX);
    return rc;
}

static int begin_put(struct cn_face_work *work, const cairn_value *arguments, cairn_builder *result,
                     struct cn_err *err)
{
    size_t size, value_size;
    const void *value;
    const char *key = key_of(arguments, "PUT", &size, err);
    (void)result;
    if (!key)
        return err->code;
    if (!cn_face_bytes(cn_value_at(arguments, 1), &value, &value_size))
        return cn_err_set(err, CN_EINVALID, "KV put() takes a text or bytes in C.");
    if (value_size > CN_KV_VALUE_MAX)
        return cn_err_set(err, CN_ELIMIT,
                          "KV PUT failed: 413 Value length of %zu exceeds limit of %u.", value_size,
                          CN_KV_VALUE_MAX);
    struct cn_kv_call *call = cn_kv_call_new(work->ns, CN_KV_PUT, key, size);
    int64_t now_s = cn_clock_wall_ms(cn_node_clock(work->lane->node)) / 1000;
    if (read_options(call, cn_value_at(arguments, 2), now_s, err) < 0) {
        cn_service_call_free(&call->base);
        return err->code;
    }
    call->value = value_size ? cn_memdup(value, value_size) : cn_alloc(1);
    call->value_size = call->base.call.size = value_size;
    cn_kv_writes(call);
    work->call = &call->base;
    return 0;
}

static int next_written(struct cn_face_work *work, struct cn_service_call *base,
                        cairn_builder *result, struct cn_err *err)
{
    cn_kv_answered(call_of(base));
    return cn_face_nothing(work, base, result, err);
}

static int begin_delete(struct cn_face_work *work, const cairn_value *arguments,
                        cairn_builder *result, struct cn_err *err)
{
    size_t size;
    const char *key = key_of(arguments, "DELETE", &size, err);
    (void)result;
    if (!key)
        return err->code;
    struct cn_kv_call *call = cn_kv_call_new(work->ns, CN_KV_DELETE, key, size);
    cn_kv_writes(call);
    work->call = &call->base;
    return 0;
}

/* --- list ------------------------------------------------------------------------------------
 *
 * Shard after shard is asked for as many as are wanted, and one more; the first of all are the
 * answer. */

struct name {
    const char *text;
    size_t size;
    const cairn_value *entry;
};

struct list {
    struct cn_buf prefix, after;
    bool has_after, more;
    unsigned limit, shard;
    cairn_builder builders[CN_KV_SHARDS]; /* with the bytes of */
    struct cn_document documents[CN_KV_SHARDS];
};

static void free_list(void *state)
{
    struct list *list = state;
    for (unsigned i = 0; i < CN_KV_SHARDS; i++) {
        cn_document_fini(&list->documents[i]);
        cn_builder_fini(&list->builders[i]);
    }
    cn_buf_fini(&list->prefix);
    cn_buf_fini(&list->after);
    cn_free(list);
}

static void ask_shard(struct cn_face_work *work)
{
    const struct list *list = work->state;
    struct cn_kv_call *call = cn_kv_list_new(work->ns, list->shard);
    cn_buf_append(&call->key, list->prefix.data, list->prefix.size);
    if (list->has_after) {
        cn_buf_append(&call->after, list->after.data, list->after.size);
        cn_buf_text(&call->after);
    }
    call->limit = list->limit;
    work->call = &call->base;
}

static int begin_list(struct cn_face_work *work, const cairn_value *arguments,
                      cairn_builder *result, struct cn_err *err)
{
    const cairn_value *options = cn_value_at(arguments, 0);
    size_t prefix_size = 0, cursor_size = 0;
    const char *prefix = cn_value_text(cn_value_get(options, "prefix"), &prefix_size);
    const char *cursor = cn_value_text(cn_value_get(options, "cursor"), &cursor_size);
    int64_t limit = CN_KV_LIST_MAX;
    (void)result;
    cn_value_int(cn_value_get(options, "limit"), &limit);
    if (limit < 1 || limit > CN_KV_LIST_MAX)
        return cn_err_set(err, CN_EINVALID,
                          "KV GET failed: 400 Invalid key_count_limit of %lld. Please specify an "
                          "integer from 1 to %d.",
                          (long long)limit, CN_KV_LIST_MAX);
    struct list *list = CN_NEW(struct list);
    work->state = list;
    work->free = free_list;
    list->limit = (unsigned)limit;
    for (unsigned i = 0; i < CN_KV_SHARDS; i++)
        cn_builder_init(&list->builders[i], 64u << 20);
    cn_buf_append(&list->prefix, prefix ? prefix : "", prefix_size);
    cn_buf_text(&list->prefix);
    list->has_after = cursor && cursor_size;
    if (list->has_after &&
        (!cn_base64_decode(&list->after, cursor, cursor_size) || list->after.size < prefix_size ||
         memcmp(list->after.data, list->prefix.data, prefix_size) != 0))
        return cn_err_set(err, CN_EINVALID, "KV LIST failed: 400 Invalid cursor.");
    ask_shard(work);
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
    return order ? order : x->size < y->size ? -1 : x->size > y->size;
}

static size_t gather(const struct list *list, struct name *names)
{
    size_t count = 0;
    for (unsigned i = 0; i < CN_KV_SHARDS; i++) {
        const cairn_value *keys = list->documents[i].root;
        for (size_t k = 0; k < cn_value_count(keys); k++) {
            struct name *name = &names[count++];
            name->entry = cn_value_at(keys, k);
            name->text = cn_value_text(cn_value_get(name->entry, "name"), &name->size);
        }
    }
    qsort(names, count, sizeof(*names), compare);
    return count;
}

static void build_list(const struct list *list, cairn_builder *result)
{
    struct name *names = cn_alloc(CN_KV_SHARDS * (list->limit + 1) * sizeof(*names));
    size_t count = gather(list, names), shown = count < list->limit ? count : list->limit;
    bool complete = count <= list->limit && !list->more;
    cn_build_object(result);
    cn_build_name(result, "keys");
    cn_build_array(result);
    for (size_t i = 0; i < shown; i++)
        cn_build_value(result, names[i].entry);
    cn_build_end(result);
    cn_build_name(result, "list_complete");
    cn_build_bool(result, complete);
    if (!complete && shown) {
        struct cn_buf cursor = {0};
        cn_base64_encode(&cursor, names[shown - 1].text, names[shown - 1].size);
        cn_build_name(result, "cursor");
        cn_build_text(result, (const char *)cursor.data, cursor.size);
        cn_buf_fini(&cursor);
    }
    cn_build_end(result);
    cn_free(names);
}

static int next_list(struct cn_face_work *work, struct cn_service_call *base, cairn_builder *result,
                     struct cn_err *err)
{
    struct list *list = work->state;
    const struct cn_kv_call *call = call_of(base);
    cairn_builder *builder = &list->builders[list->shard];
    struct cn_document *document = &list->documents[list->shard];
    int rc = cn_build_json(builder, (const char *)call->names.data, call->names.size, err);
    if (rc == 0)
        rc = cn_builder_finish(builder, err);
    if (rc == 0)
        rc = cn_document_read(document, builder->bytes.data, builder->bytes.size, err);
    if (rc < 0)
        return rc;
    list->more |= call->more;
    if (++list->shard < CN_KV_SHARDS)
        ask_shard(work);
    else
        build_list(list, result);
    return 0;
}

static const struct cn_face_method methods[] = {
    {"get", begin_get, next_get, "KV GET failed: 500 "},
    {"getWithMetadata", begin_get_with, next_get, "KV GET failed: 500 "},
    {"put", begin_put, next_written, "KV PUT failed: 500 "},
    {"delete", begin_delete, next_written, "KV DELETE failed: 500 "},
    {"list", begin_list, next_list, "KV LIST failed: 500 "},
    {0},
};
const struct cn_service_face cn_kv_face = {methods};
