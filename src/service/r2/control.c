/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/control.c - buckets of R2: which there are, their keys, their objects.
 *
 * Bodies pass through in pieces, whatever their size. What is stored is not trusted: a page that
 * somebody has uploaded must not run as if it were the dashboard, so bodies are sent as something
 * to be saved, in a sandbox. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "admin/handler.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/http.h"
#include "object/node.h"
#include "service/r2/r2.h"
#include "service/r2/r2_writer.h"
#include "text/hex.h"

#define PIECE_SIZE ((size_t)256 << 10)
#define METADATA_MAX 8192

/* --- buckets --------------------------------------------------------------------------------- */

static int append_bucket(struct cn_control_call *call, const char *name, struct cn_err *err)
{
    struct cn_buf *out = &call->scratch;
    struct cn_namespace *ns;
    int rc = cn_control_service(call, "r2", name, &ns, err);
    if (rc < 0)
        return rc;
    struct cn_r2_call *request = cn_r2_call_new(ns, CN_R2_TOTALS);
    rc = cn_control_ask(call, &request->base, err);
    if (rc == 0) {
        cn_buf_append_str(out, "{\"name\":");
        cn_buf_append_json(out, name, strlen(name));
        cn_buf_printf(out, ",\"objects\":%" PRIu64 ",\"bytes\":%" PRIu64, request->total_objects,
                      request->total_bytes);
        cn_control_append_bindings(call, out, ns->id, NULL);
        cn_buf_append_byte(out, '}');
    }
    cn_service_call_free(&request->base);
    return rc;
}

static int append_each(struct cn_control_call *call, uint32_t id, const char *name, void *data,
                       struct cn_err *err)
{
    (void)id;
    bool *first = data;
    cn_buf_append_str(&call->scratch, *first ? "" : ",");
    *first = false;
    return append_bucket(call, name, err);
}

/* GET /api/r2 */
static int list_buckets(struct cn_control_call *call, struct cn_err *err)
{
    bool first = true;
    cn_buf_append_str(&call->scratch, "{\"buckets\":[");
    int rc = cn_control_each_service(call, "r2", append_each, &first, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(&call->scratch, "]}");
    return cn_control_answer(call, &call->scratch);
}

/* The platform's rule: 3 to 63 lower-case letters, digits and hyphens, none of these at an end. */
static bool name_valid(const char *name)
{
    size_t size = strlen(name);
    return size >= 3 && size <= 63 && name[0] != '-' && name[size - 1] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == size;
}

/* GET /api/r2/BUCKET; PUT makes it. */
static int handle_bucket(struct cn_control_call *call, struct cn_err *err)
{
    int rc = 0;
    if (strcmp(call->method, "PUT") == 0) {
        if (!name_valid(call->path[2]))
            return cn_err_set(err, CN_EINVALID,
                              "a bucket's name has 3 to 63 lower-case letters, digits and hyphens");
        rc = cn_control_service_make(call, "r2", call->path[2], err);
    }
    if (rc == 0)
        rc = append_bucket(call, call->path[2], err);
    return rc < 0 ? rc : cn_control_answer(call, &call->scratch);
}

/* --- keys ------------------------------------------------------------------------------------ */

/* GET /api/r2/BUCKET/objects */
static int list_objects(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_namespace *ns;
    struct cn_buf *out = &call->scratch;
    const char *prefix = cn_control_param(call, "prefix");
    const char *delimiter = cn_control_param(call, "delimiter");
    int64_t limit;
    int rc = cn_control_service(call, "r2", call->path[2], &ns, err);
    if (rc == 0)
        rc = cn_control_param_number(call, "limit", CN_R2_LIST_MAX, 100, &limit, err);
    if (rc < 0)
        return rc;
    struct cn_r2_call *request = cn_r2_call_new(ns, CN_R2_LIST);
    cn_buf_append_str(&request->prefix, prefix ? prefix : "");
    cn_buf_append_str(&request->delimiter, delimiter ? delimiter : "");
    request->limit = limit ? (unsigned)limit : 1;
    request->include_http = request->include_custom = true;
    rc = cn_control_read_cursor(call, "kp", &request->after, err);
    request->after_prefix = rc == 'p';
    if (rc >= 0)
        rc = cn_control_ask(call, &request->base, err);
    if (rc == 0) {
        cn_buf_append(out, request->json.data, request->json.size - 1); /* without its brace */
        cn_buf_append_str(out, ",\"cursor\":");
        if (request->truncated)
            cn_control_append_cursor(out, request->last_prefix ? 'p' : 'k', request->last.data,
                                     request->last.size);
        else
            cn_buf_append_str(out, "null");
        cn_buf_printf(out, ",\"complete\":%s}", request->truncated ? "false" : "true");
        rc = cn_control_answer(call, out);
    }
    cn_service_call_free(&request->base);
    return rc;
}

/* --- reading --------------------------------------------------------------------------------- */

static int check_key(const struct cn_buf *key, struct cn_err *err)
{
    if (key->size > CN_R2_KEY_SIZE_MAX)
        return cn_err_set(err, CN_EINVALID, "a key has at most %d bytes", CN_R2_KEY_SIZE_MAX);
    return memchr(key->data, 0, key->size)
               ? cn_err_set(err, CN_EINVALID, "a key of R2 cannot hold a NUL")
               : 0;
}

/* The bucket of a path with a key that could be one of its objects. */
static int find_bucket(struct cn_control_call *call, struct cn_namespace **ns, struct cn_err *err)
{
    int rc = check_key(&call->rest, err);
    return rc < 0 ? rc : cn_control_service(call, "r2", call->path[2], ns, err);
}

static struct cn_blobs *blobs_of(const struct cn_namespace *ns)
{
    return ((struct cn_services *)cn_node_data(ns->node))->blobs;
}

static void add_json_field(struct cn_control_call *call, const char *name,
                           const struct cn_json *value)
{
    struct cn_buf json = {0}, ascii = {0};
    if (value && value->first) {
        cn_json_write(&json, value);
        cn_control_append_ascii(&ascii, (char *)json.data, json.size);
        cn_control_field(call, name, cn_buf_text(&ascii));
    }
    cn_buf_fini(&json);
    cn_buf_fini(&ascii);
}

/* What is known of the object, as fields of the head: the last ones. */
static void describe(struct cn_control_call *call, const struct cn_json *about)
{
    char text[64];
    struct tm tm;
    const char *etag = cn_json_text(about, "etag");
    const struct cn_json *http = cn_json_find(about, "http");
    const char *type = cn_json_text(http, "contentType");
    time_t uploaded = (time_t)(cn_json_int(about, "uploaded") / 1000);
    snprintf(text, sizeof(text), "\"%.60s\"", etag ? etag : "");
    cn_control_field(call, "etag", text);
    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&uploaded, &tm));
    cn_control_field(call, "last-modified", text);
    cn_control_field(call, "content-security-policy", "sandbox; default-src 'none'");
    cn_control_field(call, "content-disposition", "attachment");
    add_json_field(call, "x-cairn-http-metadata", http);
    add_json_field(call, "x-cairn-custom-metadata", cn_json_find(about, "custom"));
    call->type = "application/octet-stream";
    if (type && *type && cn_http_value_valid(type, strlen(type))) {
        /* It must live as long as the fields do, so it is one of them. */
        cn_control_field(call, "x-cairn-content-type", type);
        call->type = (char *)call->fields.data + call->fields.size - strlen(type) - 1;
    }
}

static int send_body(struct cn_control_call *call, struct cn_r2_call *request, uint64_t offset,
                     uint64_t length, struct cn_err *err)
{
    struct cn_blobs *blobs = blobs_of(request->base.call.ns);
    uint8_t *bytes = cn_alloc(PIECE_SIZE);
    int64_t count = 0;
    uint64_t sent = 0;
    call->length = (int64_t)length;
    while (sent < length) {
        size_t piece = length - sent < PIECE_SIZE ? (size_t)(length - sent) : PIECE_SIZE;
        count = cn_r2_read(blobs, &request->body, bytes, piece, offset + sent, err);
        if (count <= 0 || call->write(call, bytes, (size_t)count) < 0)
            break; /* past the first piece the reader finds out by the length */
        sent += (uint64_t)count;
    }
    cn_free(bytes);
    return count < 0 && sent == 0 ? (int)count : 0;
}

/* GET, HEAD /api/r2/BUCKET/objects/KEY, of a body the part ?offset=&length= */
static int get_object(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_namespace *ns;
    bool head = strcmp(call->method, "HEAD") == 0;
    int64_t offset, length;
    int rc = find_bucket(call, &ns, err);
    if (rc == 0)
        rc = cn_control_param_number(call, "offset", INT64_MAX, 0, &offset, err);
    if (rc == 0)
        rc = cn_control_param_number(call, "length", INT64_MAX, INT64_MAX, &length, err);
    if (rc < 0)
        return rc;
    struct cn_r2_call *request = cn_r2_call_new(ns, head ? CN_R2_HEAD : CN_R2_GET);
    cn_buf_append(&request->key, call->rest.data, call->rest.size);
    rc = cn_control_ask(call, &request->base, err);
    if (rc == 0 && !request->found)
        rc = cn_err_set(err, CN_ENOTFOUND, "there is no such object");
    if (rc == 0 && request->problem == CN_R2_BAD_KEY)
        rc = cn_err_set(err, CN_EDENIED,
                        "the body is encrypted with a customer's key, which is not kept here");
    struct cn_json *about =
        rc == 0 ? cn_json_parse((char *)request->json.data, request->json.size, err) : NULL;
    if (rc == 0 && !about)
        rc = err->code;
    if (rc == 0) {
        int64_t size = cn_json_int(about, "size"), left = size > offset ? size - offset : 0;
        char text[32];
        snprintf(text, sizeof(text), "%" PRId64, size);
        if (head)
            cn_control_field(call, "content-length", text);
        describe(call, about);
        if (!head)
            rc = send_body(call, request, (uint64_t)offset,
                           (uint64_t)(length < left ? length : left), err);
    }
    cn_json_free(about);
    cn_service_call_free(&request->base);
    return rc;
}

/* --- writing --------------------------------------------------------------------------------- */

/* The parameters that are HTTP metadata, and Content-Type of the request, as JSON. */
static int read_http(struct cn_control_call *call, char **json, struct cn_err *err)
{
    static const char *const names[] = {"contentType",     "contentLanguage", "contentDisposition",
                                        "contentEncoding", "cacheControl",    "cacheExpiry"};
    struct cn_buf out = {0};
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        const char *value = cn_control_param(call, names[i]);
        if (!value && i == 0)
            value = call->content_type;
        if (!value)
            continue;
        int64_t time_ms;
        bool is_time = i == CN_ARRAY_COUNT(names) - 1;
        int rc =
            !is_time ? 0 : cn_control_param_number(call, names[i], INT64_MAX, 0, &time_ms, err);
        if (rc == 0 && !cn_http_value_valid(value, strlen(value)))
            rc = cn_err_set(err, CN_EINVALID, "%s cannot be sent as a header", names[i]);
        if (rc < 0) {
            cn_buf_fini(&out);
            return rc;
        }
        cn_buf_printf(&out, "%c\"%s\":", out.size ? ',' : '{', names[i]);
        if (is_time)
            cn_buf_printf(&out, "%" PRId64, time_ms);
        else
            cn_buf_append_json(&out, value, strlen(value));
    }
    cn_buf_append_str(&out, out.size ? "}" : "{}");
    cn_buf_text(&out);
    *json = (char *)cn_buf_take(&out);
    return 0;
}

/* ?metadata={"name":"text",...} */
static int read_custom(struct cn_control_call *call, char **json, struct cn_err *err)
{
    const char *text = cn_control_param(call, "metadata");
    struct cn_buf out = {0};
    if (!text)
        return 0;
    struct cn_json *tree = cn_json_parse(text, strlen(text), err);
    if (!tree)
        return cn_err_context(err, "metadata");
    bool good = tree->kind == CN_JSON_OBJECT;
    for (const struct cn_json *each = tree->first; each; each = each->next)
        good = good && each->kind == CN_JSON_STRING;
    cn_json_write(&out, tree);
    cn_json_free(tree);
    size_t size = out.size;
    cn_buf_text(&out);
    *json = (char *)cn_buf_take(&out);
    if (!good)
        return cn_err_set(err, CN_EINVALID, "metadata must be an object of texts");
    return size > METADATA_MAX
               ? cn_err_set(err, CN_ELIMIT, "metadata has at most %d bytes", METADATA_MAX)
               : 0;
}

static int read_metadata(struct cn_control_call *call, struct cn_r2_call *request,
                         struct cn_err *err)
{
    const char *storage_class = cn_control_param(call, "storageClass");
    if (storage_class && strcmp(storage_class, "Standard") != 0 &&
        strcmp(storage_class, "InfrequentAccess") != 0)
        return cn_err_set(err, CN_EINVALID, "storageClass must be Standard or InfrequentAccess");
    request->storage_class = storage_class ? cn_strdup(storage_class) : NULL;
    int rc = read_http(call, &request->http, err);
    if (rc == 0)
        rc = cn_control_param_number(call, "uploaded", INT64_MAX / 1000, 0, &request->uploaded_ms,
                                     err);
    return rc < 0 ? rc : read_custom(call, &request->custom, err);
}

/* ?etag=: what it was where the object comes from. Of an object that was put as one it is the MD5 of
 * its body, which is compared; otherwise "MD5-PARTS", and no digest is known. */
static int keep_etag(struct cn_control_call *call, struct cn_r2_call *request, struct cn_err *err)
{
    const char *etag = cn_control_param(call, "etag");
    size_t digits = etag ? strspn(etag, "0123456789abcdef") : 0;
    if (!etag)
        return 0;
    if (digits != 32 || (etag[digits] && (etag[digits] != '-' || strlen(etag) > 40 ||
                                          strspn(etag + 33, "0123456789") != strlen(etag + 33))))
        return cn_err_set(err, CN_EINVALID, "etag must be an MD5, or MD5-PARTS");
    if (!etag[digits])
        return strcmp(etag, request->etag) == 0
                   ? 0
                   : cn_err_set(err, CN_EINVALID, "the body is not the one with this etag");
    cn_free(request->etag);
    cn_free(request->checksums);
    request->etag = cn_strdup(etag);
    request->checksums = cn_strdup("{}");
    return 0;
}

/* Tells the index that a blob is on its way, or that its put has failed (R3 of r2.h). */
static int note_blob(struct cn_control_call *call, struct cn_namespace *ns, enum cn_r2_op op,
                     const struct cn_blob_id *id, struct cn_err *err)
{
    struct cn_r2_call *note = cn_r2_call_new(ns, op);
    note->body.segments = CN_NEW(struct cn_r2_segment);
    note->body.segments->blob = *id;
    note->body.count = 1;
    int rc = cn_control_ask(call, &note->base, err);
    cn_service_call_free(&note->base);
    return rc;
}

/* Moves the body of the request to where it stays. */
static int write_body(struct cn_control_call *call, struct cn_namespace *ns,
                      struct cn_r2_writer *writer, struct cn_r2_written *written,
                      struct cn_err *err)
{
    uint8_t *bytes = cn_alloc(PIECE_SIZE);
    int64_t count = 0;
    int rc = 0;
    while (rc == 0 && call->read && (count = call->read(call, bytes, PIECE_SIZE)) > 0) {
        if (writer->size + (uint64_t)count > CN_CONTROL_R2_MAX)
            rc = cn_err_set(err, CN_ELIMIT, "an object has at most 5 GiB");
        else
            rc = cn_r2_writer_append(writer, bytes, (size_t)count, err);
    }
    cn_free(bytes);
    if (rc == 0 && count < 0)
        rc = cn_err_set(err, CN_ECLOSED, "the body did not come to its end");
    if (rc == 0 && !cn_r2_writer_in_memory(writer, 0))
        rc = note_blob(call, ns, CN_R2_ANNOUNCE, &writer->id, err);
    return rc < 0 ? rc : cn_r2_writer_finish(writer, written, err);
}

/* Says in the call what has been written. */
static void refer_to_body(struct cn_r2_call *request, struct cn_r2_writer *writer,
                          const struct cn_r2_written *written)
{
    struct cn_buf md5 = {0};
    cn_hex_append(&md5, written->md5, written->md5_size);
    cn_buf_text(&md5);
    request->etag = (char *)cn_buf_take(&md5);
    request->checksums = cn_sprintf("{\"md5\":\"%s\"}", request->etag);
    request->body.size = writer->size;
    if (written->in_blob) {
        request->body.segments = CN_NEW(struct cn_r2_segment);
        *request->body.segments = (struct cn_r2_segment){written->blob, writer->size};
        request->body.count = 1;
    } else {
        request->body.bytes = writer->size ? cn_buf_take(&writer->head) : cn_alloc(1);
    }
}

/* PUT /api/r2/BUCKET/objects/KEY */
static int put_object(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_namespace *ns;
    int rc = find_bucket(call, &ns, err);
    if (rc < 0)
        return rc;
    struct cn_r2_call *request = cn_r2_call_new(ns, CN_R2_PUT);
    struct cn_r2_writer writer;
    struct cn_r2_written written = {0};
    cn_r2_writer_init(&writer, ns, NULL, false, NULL);
    cn_buf_append(&request->key, call->rest.data, call->rest.size);
    rc = read_metadata(call, request, err);
    if (rc == 0)
        rc = write_body(call, ns, &writer, &written, err);
    if (rc == 0) {
        refer_to_body(request, &writer, &written);
        rc = keep_etag(call, request, err);
        if (rc == 0)
            rc = cn_control_ask(call, &request->base, err);
        if (rc < 0 && written.in_blob) /* if it cannot be told now, its next start finds out */
            (void)note_blob(call, ns, CN_R2_FORGET, &written.blob, &(struct cn_err){0});
    }
    cn_r2_writer_fini(&writer);
    if (rc == 0) {
        cn_buf_append(&call->scratch, request->json.data, request->json.size);
        rc = cn_control_answer(call, &call->scratch);
    }
    cn_service_call_free(&request->base);
    return rc;
}

/* DELETE /api/r2/BUCKET/objects/KEY */
static int delete_object(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_namespace *ns;
    int rc = find_bucket(call, &ns, err);
    if (rc < 0)
        return rc;
    struct cn_r2_call *request = cn_r2_call_new(ns, CN_R2_DELETE);
    cn_buf_append(&request->key, call->rest.data, call->rest.size);
    cn_buf_append_byte(&request->key, 0);
    rc = cn_control_ask(call, &request->base, err);
    if (rc == 0) {
        cn_buf_printf(&call->scratch, "{\"deleted\":%s}", request->found ? "true" : "false");
        rc = cn_control_answer(call, &call->scratch);
    }
    cn_service_call_free(&request->base);
    return rc;
}

static const struct cn_control_route routes[] = {
    {"GET", {"api", "r2"}, list_buckets, 0},
    {"GET", {"api", "r2", "*"}, handle_bucket, 0},
    {"PUT", {"api", "r2", "*"}, handle_bucket, 0},
    {"GET", {"api", "r2", "*", "objects"}, list_objects, 0},
    {"GET", {"api", "r2", "*", "objects", "**"}, get_object, 0},
    {"HEAD", {"api", "r2", "*", "objects", "**"}, get_object, 0},
    {"PUT", {"api", "r2", "*", "objects", "**"}, put_object, CN_ROUTE_RAW},
    {"DELETE", {"api", "r2", "*", "objects", "**"}, delete_object, 0},
    {0},
};
const struct cn_control_routes cn_r2_routes = {routes};
