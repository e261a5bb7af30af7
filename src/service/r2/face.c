/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/face.c - buckets for code in C (module/face.h): head, get, put, delete, list. Bodies
 * are whole, BODY_MAX bytes at most, or streams, of any size.
 *
 *     put, short    ──► PUT
 *     put, long     ──► ANNOUNCE ──► a thread writes the blob ──► PUT ──► (it failed: FORGET)
 *     put, streamed ──► ANNOUNCE ──► a piece ──► a thread writes it ──► a piece ... ──► PUT ──► ...
 *     get           ──► GET ──► a thread reads the blob, unless the index has the body
 *     get, streamed ──► GET ──► told; a thread reads a piece whenever one is asked for */
#include "module/face.h"
#include "service/r2/r2.h"
#include "service/r2/r2_writer.h"

#include <string.h>

#include "base/mem.h"
#include "module/json.h"
#include "module/stream.h"
#include "object/node.h"
#include "service/pool.h"
#include "text/base64.h"
#include "text/hex.h"

#define BODY_MAX ((size_t)16 << 20)
#define PIECE_SIZE ((size_t)256 << 10)

enum step { NOTED, TAKING, WRITTEN, PUT, FORGOTTEN };

struct state {
    enum step step;
    struct cn_r2_call *put; /* owned; NULL: sent */
    struct cn_r2_writer writer;
    bool has_writer;
    uint8_t *bytes; /* owned: what is written, or was read */
    size_t size;
    uint64_t offset;
    struct cn_r2_body body; /* of a get */
    struct cn_buf json;     /* of a get: what it is */
    bool has_range;
    bool streamed;
    uint64_t length;       /* of a get that is streamed */
    struct cn_err failure; /* of a put */
};

static void free_state(void *data)
{
    struct state *state = data;
    if (state->put)
        cn_service_call_free(&state->put->base);
    if (state->has_writer)
        cn_r2_writer_fini(&state->writer);
    cn_r2_body_fini(&state->body);
    cn_buf_fini(&state->json);
    cn_free(state->bytes);
    cn_free(state);
}

static struct state *make_state(struct cn_face_work *work)
{
    struct state *state = CN_NEW(struct state);
    work->state = state;
    work->free = free_state;
    return state;
}

static struct cn_r2_call *call_of(struct cn_service_call *base)
{
    return CN_CONTAINER_OF(base, struct cn_r2_call, base);
}

/* --- what an object is ----------------------------------------------------------------------- */

static void copy(cairn_builder *b, const char *name, const cairn_value *value)
{
    cn_build_name(b, name);
    cn_build_value(b, value);
}

/* All but the end of the object, so that a body can follow. */
static void build_open(cairn_builder *b, const cairn_value *fields)
{
    static const char *const same[] = {"key", "version", "size", "etag"};
    const cairn_value *http = cn_value_get(fields, "http"),
                      *custom = cn_value_get(fields, "custom");
    const cairn_value *class_ = cn_value_get(fields, "class");
    double uploaded = 0;
    cn_build_object(b);
    for (size_t i = 0; i < CN_ARRAY_COUNT(same); i++)
        copy(b, same[i], cn_value_get(fields, same[i]));
    cn_value_number(cn_value_get(fields, "uploaded"), &uploaded);
    cn_build_name(b, "uploaded");
    cn_build_date(b, uploaded);
    if (!cn_face_absent(http))
        copy(b, "httpMetadata", http);
    if (!cn_face_absent(custom))
        copy(b, "customMetadata", custom);
    if (!cn_face_absent(class_))
        copy(b, "storageClass", class_);
}

/* JSON as a document, while `use` looks at it. */
static int with_json(const struct cn_buf *json, struct cn_err *err, void *data,
                     void (*use)(void *data, const cairn_value *root))
{
    struct cn_document document = {0};
    cairn_builder builder;
    cn_builder_init(&builder, 64u << 20);
    int rc = cn_build_json(&builder, (const char *)json->data, json->size, err);
    if (rc == 0)
        rc = cn_builder_finish(&builder, err);
    if (rc == 0)
        rc = cn_document_read(&document, builder.bytes.data, builder.bytes.size, err);
    if (rc == 0)
        use(data, document.root);
    cn_document_fini(&document);
    cn_builder_fini(&builder);
    return rc;
}

static void build_alone(void *data, const cairn_value *fields)
{
    build_open(data, fields);
    cn_build_end(data);
}

/* --- head, get ------------------------------------------------------------------------------- */

static const char *key_of(const cairn_value *arguments, size_t *size, struct cn_err *err)
{
    const char *key = cn_value_text(cn_value_at(arguments, 0), size);
    if (!key || !*size || *size > CN_R2_KEY_SIZE_MAX || strlen(key) != *size) {
        cn_err_set(err, CN_EINVALID, "a key of R2 is a text of 1 to %d bytes", CN_R2_KEY_SIZE_MAX);
        return NULL;
    }
    return key;
}

static void read_condition(struct cn_r2_call *call, const cairn_value *options)
{
    const cairn_value *only_if = cn_value_get(options, "onlyIf");
    const char *match = cn_value_text(cn_value_get(only_if, "etagMatches"), NULL);
    const char *none = cn_value_text(cn_value_get(only_if, "etagDoesNotMatch"), NULL);
    call->only_if.match = match ? cn_strdup(match) : NULL;
    call->only_if.none_match = none ? cn_strdup(none) : NULL;
}

static int begin_look(struct cn_face_work *work, const cairn_value *arguments, enum cn_r2_op op,
                      struct cn_err *err)
{
    size_t size;
    const char *key = key_of(arguments, &size, err);
    if (!key)
        return err->code;
    struct state *state = make_state(work);
    const cairn_value *options = cn_value_at(arguments, 1);
    const cairn_value *range = cn_value_get(options, "range");
    int64_t offset = 0, length = (int64_t)BODY_MAX;
    cn_value_int(cn_value_get(range, "offset"), &offset);
    cn_value_int(cn_value_get(range, "length"), &length);
    if (offset < 0 || length < 0)
        return cn_err_set(err, CN_EINVALID, "a range has an offset and a length from 0 on");
    state->has_range = !cn_face_absent(range);
    state->streamed = cn_value_bool(cn_value_get(options, "streamed"));
    state->length = cn_face_absent(cn_value_get(range, "length")) ? UINT64_MAX : (uint64_t)length;
    state->offset = (uint64_t)offset;
    state->size = (uint64_t)length < BODY_MAX ? (size_t)length : BODY_MAX;
    struct cn_r2_call *call = cn_r2_call_new(work->ns, op);
    cn_buf_append(&call->key, key, size);
    read_condition(call, options);
    work->call = &call->base;
    return 0;
}

static int begin_head(struct cn_face_work *work, const cairn_value *arguments,
                      cairn_builder *result, struct cn_err *err)
{
    (void)result;
    return begin_look(work, arguments, CN_R2_HEAD, err);
}

static int begin_get(struct cn_face_work *work, const cairn_value *arguments, cairn_builder *result,
                     struct cn_err *err)
{
    (void)result;
    return begin_look(work, arguments, CN_R2_GET, err);
}

static int next_head(struct cn_face_work *work, struct cn_service_call *base, cairn_builder *result,
                     struct cn_err *err)
{
    (void)work;
    if (call_of(base)->found)
        return with_json(&call_of(base)->json, err, result, build_alone);
    cn_build_null(result);
    return 0;
}

static void read_blob(struct cn_face_work *work)
{
    struct state *state = work->state;
    state->bytes = cn_alloc(state->size + 1);
    int64_t count = cn_r2_read(work->services->blobs, &state->body, state->bytes, state->size,
                               state->offset, &work->run_err);
    state->size = count < 0 ? 0 : (size_t)count;
}

struct got {
    cairn_builder *result;
    const void *bytes; /* NULL: a condition did not hold */
    size_t size;
};

static void build_with_body(void *data, const cairn_value *fields)
{
    const struct got *got = data;
    build_open(got->result, fields);
    cn_build_name(got->result, "body");
    if (got->bytes)
        cn_build_bytes(got->result, got->bytes, got->size);
    else
        cn_build_null(got->result);
    cn_build_end(got->result);
}

/* --- a body as a stream ---------------------------------------------------------------------- */

/* Its own, until it is stopped and no thread reads for it. */
struct download {
    cairn_stream *stream; /* NULL: not opened yet, or stopped */
    bool stopped, reading;
    struct cn_object_lane *lane;
    struct cn_services *services;
    struct cn_r2_body body;
    uint64_t offset, left;
    uint8_t *piece; /* owned */
    size_t size;    /* of what is in there */
    struct cn_pool_job job;
    struct cn_err err;
};

static void free_download(struct download *download)
{
    cn_r2_body_fini(&download->body);
    cn_free(download->piece);
    cn_free(download);
}

static struct download *download_of(struct cn_pool_job *job)
{
    return CN_CONTAINER_OF(job, struct download, job);
}

static size_t piece_size(const struct download *download)
{
    return download->left < PIECE_SIZE ? (size_t)download->left : PIECE_SIZE;
}

static void read_piece(struct cn_pool_job *job)
{
    struct download *download = download_of(job);
    int64_t count = cn_r2_read(download->services->blobs, &download->body, download->piece,
                               piece_size(download), download->offset, &download->err);
    if (count == 0)
        cn_err_set(&download->err, CN_ECORRUPT, "get: the body of the object is cut off");
    download->size = count < 0 ? 0 : (size_t)count;
}

static void on_piece(struct cn_mail *mail, void *data)
{
    struct download *download = download_of(CN_CONTAINER_OF(mail, struct cn_pool_job, mail));
    (void)data;
    download->reading = false;
    if (download->stopped)
        free_download(download);
    else
        cn_stream_ready(download->stream);
}

static void on_piece_lost(struct cn_pool_job *job)
{
    free_download(download_of(job)); /* its reader has gone with the lane */
}

static int ask_piece(void *data)
{
    struct download *download = data;
    download->size = 0;
    if (!download->left || download->err.code)
        return 1;
    if (!download->piece)
        download->piece = cn_alloc(PIECE_SIZE);
    if (!download->body.segments) {
        download->size = piece_size(download);
        memcpy(download->piece, download->body.bytes + download->offset, download->size);
        return 1;
    }
    download->reading = true;
    download->job = (struct cn_pool_job){.run = read_piece,
                                         .mail.deliver = on_piece,
                                         .mailbox = download->lane->mailbox,
                                         .lost = on_piece_lost};
    cn_pool_start(download->services->pool, &download->job);
    return 0;
}

static void take_piece(void *data, struct cn_stream_piece *piece)
{
    struct download *download = data;
    piece->error = download->err.code ? download->err.text : NULL;
    piece->over = !piece->error && !download->size;
    piece->bytes = download->size ? download->piece : NULL;
    piece->size = download->size;
    download->offset += download->size;
    download->left -= download->size;
}

static void stop_download(void *data, const char *reason)
{
    struct download *download = data;
    (void)reason;
    download->stopped = true;
    if (!download->reading)
        free_download(download);
}

static const struct cn_stream_source download_source = {ask_piece, take_piece, stop_download};

static void opened(void *data, cairn_stream *stream)
{
    ((struct download *)data)->stream = stream;
}

/* `left`: from the offset that was asked for. */
static void leave_download(struct cn_face_work *work, struct cn_r2_body *body, uint64_t left)
{
    const struct state *state = work->state;
    struct download *download = CN_NEW(struct download);
    download->lane = work->lane;
    download->services = work->services;
    download->offset = state->offset;
    download->left = left < state->length ? left : state->length;
    download->body = *body;
    *body = (struct cn_r2_body){0};
    work->source = &download_source;
    work->source_data = download;
    work->opened = opened;
}

/* What the index says: nothing, the body itself, or where it is. */
static int take_get(struct cn_face_work *work, struct cn_r2_call *call, cairn_builder *result,
                    struct cn_err *err)
{
    struct state *state = work->state;
    uint64_t total = call->body.size;
    uint64_t left = state->offset < total ? total - state->offset : 0;
    if (call->problem)
        return cn_err_set(err, CN_EINVALID, "get: the object is encrypted with a key of its own");
    if (!call->failed && state->streamed) {
        leave_download(work, &call->body, left);
        return with_json(&call->json, err, result, build_alone);
    }
    if (!call->failed && !state->has_range && total > BODY_MAX)
        return cn_err_set(
            err, CN_ELIMIT,
            "get: the object has more than 16 MiB: C reads a range of it, or a stream");
    state->size = left < state->size ? (size_t)left : state->size;
    if (call->body.segments && !call->failed) {
        state->body = call->body;
        call->body = (struct cn_r2_body){0};
        cn_buf_append(&state->json, call->json.data, call->json.size);
        work->run = read_blob;
        return 0;
    }
    const uint8_t *bytes = call->body.bytes ? call->body.bytes + (total - left) : NULL;
    struct got got = {result,
                      call->failed ? NULL
                      : bytes      ? bytes
                                   : (const uint8_t *)"",
                      bytes ? state->size : 0};
    return with_json(&call->json, err, &got, build_with_body);
}

static int next_get(struct cn_face_work *work, struct cn_service_call *base, cairn_builder *result,
                    struct cn_err *err)
{
    struct state *state = work->state;
    if (!base) {
        struct got got = {result, state->bytes, state->size};
        return with_json(&state->json, err, &got, build_with_body);
    }
    if (call_of(base)->found)
        return take_get(work, call_of(base), result, err);
    cn_build_null(result);
    return 0;
}

/* --- put ------------------------------------------------------------------------------------- */

static struct cn_r2_call *note(struct cn_face_work *work, enum cn_r2_op op)
{
    const struct state *state = work->state;
    struct cn_r2_call *call = cn_r2_call_new(work->ns, op);
    call->body.segments = CN_NEW(struct cn_r2_segment);
    call->body.segments->blob = state->writer.id;
    call->body.count = 1;
    return call;
}

/* Says in the call what has been written. */
static int refer(struct state *state, struct cn_err *err)
{
    struct cn_r2_call *put = state->put;
    struct cn_r2_written written = {0};
    struct cn_buf md5 = {0};
    int rc = cn_r2_writer_finish(&state->writer, &written, err);
    if (rc < 0)
        return rc;
    cn_hex_append(&md5, written.md5, written.md5_size);
    cn_buf_text(&md5);
    put->etag = (char *)cn_buf_take(&md5);
    put->checksums = cn_sprintf("{\"md5\":\"%s\"}", put->etag);
    put->body.size = state->writer.size;
    if (written.in_blob) {
        put->body.segments = CN_NEW(struct cn_r2_segment);
        *put->body.segments = (struct cn_r2_segment){written.blob, state->writer.size};
        put->body.count = 1;
    } else {
        put->body.bytes = state->writer.size ? cn_buf_take(&state->writer.head) : cn_alloc(1);
    }
    return 0;
}

static void write_blob(struct cn_face_work *work)
{
    struct state *state = work->state;
    if (cn_r2_writer_append(&state->writer, state->bytes, state->size, &work->run_err) == 0)
        (void)refer(state, &work->run_err); /* run_err says it */
}

/* Of a stream: the piece that has come, and at its end what is left to do. */
static void write_piece(struct cn_face_work *work)
{
    struct state *state = work->state;
    int rc =
        cn_r2_writer_append(&state->writer, work->piece.data, work->piece.size, &work->run_err);
    cn_buf_fini(&work->piece);
    if (rc == 0 && work->is_over)
        (void)refer(state, &work->run_err); /* run_err says it */
}

static int take_json(const cairn_value *value, char **text, struct cn_err *err)
{
    struct cn_buf json = {0};
    if (cn_face_absent(value))
        return 0;
    int rc = cn_value_append_json(value, &json, err);
    cn_buf_text(&json);
    *text = (char *)cn_buf_take(&json);
    return rc;
}

static void send_put(struct cn_face_work *work)
{
    struct state *state = work->state;
    state->step = PUT;
    work->call = &state->put->base;
    state->put = NULL;
}

static int begin_put(struct cn_face_work *work, const cairn_value *arguments, cairn_builder *result,
                     struct cn_err *err)
{
    size_t key_size, size = 0;
    const void *bytes = NULL;
    const cairn_value *value = cn_value_at(arguments, 1), *options = cn_value_at(arguments, 2);
    bool streamed = cn_value_kind(value) == CAIRN_STREAM;
    const char *key = key_of(arguments, &key_size, err);
    (void)result;
    if (!key)
        return err->code;
    if (!streamed && !cn_face_bytes(value, &bytes, &size))
        return cn_err_set(err, CN_EINVALID, "put() takes a text, bytes or a stream in C");
    if (size > BODY_MAX)
        return cn_err_set(err, CN_ELIMIT, "put() takes 16 MiB at most in C: a stream has no limit");
    struct state *state = make_state(work);
    state->put = cn_r2_call_new(work->ns, CN_R2_PUT);
    cn_buf_append(&state->put->key, key, key_size);
    read_condition(state->put, options);
    if (take_json(cn_value_get(options, "httpMetadata"), &state->put->http, err) < 0 ||
        take_json(cn_value_get(options, "customMetadata"), &state->put->custom, err) < 0)
        return err->code;
    cn_r2_writer_init(&state->writer, work->ns, NULL, streamed, NULL);
    state->has_writer = true;
    state->streamed = streamed;
    if (streamed && cn_face_take_stream(work, value, err) < 0)
        return err->code;
    if (!streamed && cn_r2_writer_in_memory(&state->writer, size)) {
        int rc = cn_r2_writer_append(&state->writer, bytes, size, err);
        if (rc == 0)
            rc = refer(state, err);
        if (rc == 0)
            send_put(work);
        return rc;
    }
    if (!streamed)
        state->bytes = cn_memdup(bytes, size);
    state->size = size;
    state->step = NOTED;
    work->takes_failures = true;
    work->call = &note(work, CN_R2_ANNOUNCE)->base;
    return 0;
}

/* Of a stream: the next piece is waited for, or written. */
static void take_next(struct cn_face_work *work)
{
    struct state *state = work->state;
    state->step = work->is_over ? WRITTEN : TAKING;
    if (work->piece.size || work->is_over)
        work->run = write_piece;
    else
        work->wants = true;
}

static int next_put(struct cn_face_work *work, struct cn_service_call *base, cairn_builder *result,
                    struct cn_err *err)
{
    struct state *state = work->state;
    const struct cn_err *failure = base                    ? &base->call.envelope.err
                                   : work->upload_err.code ? &work->upload_err
                                                           : &work->run_err;
    if (state->step == FORGOTTEN) {
        *err = state->failure;
        return err->code;
    }
    if (failure->code) {
        state->failure = *failure;
        if (state->step == NOTED && base) { /* there is no blob, and no note */
            *err = state->failure;
            return err->code;
        }
        state->step = FORGOTTEN;
        cn_r2_writer_abandon(&state->writer);
        work->run_err.code = work->upload_err.code = 0;
        work->call = &note(work, CN_R2_FORGET)->base;
        return 0;
    }
    if (state->streamed && (state->step == NOTED || state->step == TAKING)) {
        take_next(work);
        return 0;
    }
    if (state->step == NOTED && base) {
        work->run = write_blob;
        state->step = WRITTEN;
        return 0;
    }
    if (state->step == WRITTEN) {
        send_put(work);
        return 0;
    }
    if (!call_of(base)->failed)
        return with_json(&call_of(base)->json, err, result, build_alone);
    cn_build_null(result);
    return 0;
}

/* --- delete, list ---------------------------------------------------------------------------- */

static int begin_delete(struct cn_face_work *work, const cairn_value *arguments,
                        cairn_builder *result, struct cn_err *err)
{
    const cairn_value *given = cn_value_at(arguments, 0);
    size_t count = cn_value_kind(given) == CAIRN_ARRAY ? cn_value_count(given) : 1, size;
    struct cn_r2_call *call = cn_r2_call_new(work->ns, CN_R2_DELETE);
    (void)result;
    for (size_t i = 0; i < count; i++) {
        const cairn_value *each =
            cn_value_kind(given) == CAIRN_ARRAY ? cn_value_at(given, i) : given;
        const char *key = cn_value_text(each, &size);
        if (!key || strlen(key) != size || count > CN_R2_LIST_MAX) {
            cn_service_call_free(&call->base);
            return cn_err_set(err, CN_EINVALID, "delete() takes a key, or up to 1000 of them");
        }
        cn_buf_append(&call->key, key, size + 1);
    }
    work->call = &call->base;
    return 0;
}

static void append_text(struct cn_buf *out, const cairn_value *value)
{
    size_t size = 0;
    const char *text = cn_value_text(value, &size);
    cn_buf_append(out, text ? text : "", size);
    cn_buf_text(out);
}

static bool includes(const cairn_value *list, const char *name)
{
    for (size_t i = 0; i < cn_value_count(list); i++) {
        const char *each = cn_value_text(cn_value_at(list, i), NULL);
        if (each && strcmp(each, name) == 0)
            return true;
    }
    return false;
}

/* A cursor is what came last, behind a letter for its kind, in base64. */
static int read_cursor(struct cn_r2_call *call, const cairn_value *options, struct cn_err *err)
{
    size_t size = 0;
    struct cn_buf text = {0};
    const char *cursor = cn_value_text(cn_value_get(options, "cursor"), &size);
    if (!cursor) {
        if (!cn_face_absent(cn_value_get(options, "startAfter")))
            append_text(&call->after, cn_value_get(options, "startAfter"));
        return 0;
    }
    bool good = cn_base64_decode(&text, cursor, size) && text.size;
    if (good) {
        call->after_prefix = text.data[0] == 'p';
        cn_buf_append(&call->after, text.data + 1, text.size - 1);
        cn_buf_text(&call->after);
    }
    cn_buf_fini(&text);
    return good ? 0 : cn_err_set(err, CN_EINVALID, "list: the cursor is none");
}

static int begin_list(struct cn_face_work *work, const cairn_value *arguments,
                      cairn_builder *result, struct cn_err *err)
{
    const cairn_value *options = cn_value_at(arguments, 0),
                      *include = cn_value_get(options, "include");
    int64_t limit = CN_R2_LIST_MAX;
    (void)result;
    cn_value_int(cn_value_get(options, "limit"), &limit);
    if (limit < 1 || limit > CN_R2_LIST_MAX)
        return cn_err_set(err, CN_EINVALID, "list: the limit is from 1 to %d", CN_R2_LIST_MAX);
    struct cn_r2_call *call = cn_r2_call_new(work->ns, CN_R2_LIST);
    if (read_cursor(call, options, err) < 0) {
        cn_service_call_free(&call->base);
        return err->code;
    }
    append_text(&call->prefix, cn_value_get(options, "prefix"));
    append_text(&call->delimiter, cn_value_get(options, "delimiter"));
    call->limit = (unsigned)limit;
    call->include_http = includes(include, "httpMetadata");
    call->include_custom = includes(include, "customMetadata");
    work->call = &call->base;
    return 0;
}

static void build_listed(void *data, const cairn_value *root)
{
    cairn_builder *result = data;
    const cairn_value *objects = cn_value_get(root, "objects");
    cn_build_object(result);
    cn_build_name(result, "objects");
    cn_build_array(result);
    for (size_t i = 0; i < cn_value_count(objects); i++)
        build_alone(result, cn_value_at(objects, i));
    cn_build_end(result);
    copy(result, "delimitedPrefixes", cn_value_get(root, "prefixes"));
}

static int next_list(struct cn_face_work *work, struct cn_service_call *base, cairn_builder *result,
                     struct cn_err *err)
{
    const struct cn_r2_call *call = call_of(base);
    (void)work;
    int rc = with_json(&call->json, err, result, build_listed);
    if (rc < 0)
        return rc;
    cn_build_name(result, "truncated");
    cn_build_bool(result, call->truncated);
    if (call->truncated) {
        struct cn_buf last = {0}, cursor = {0};
        cn_buf_append_byte(&last, call->last_prefix ? 'p' : 'k');
        cn_buf_append(&last, call->last.data, call->last.size);
        cn_base64_encode(&cursor, last.data, last.size);
        cn_build_name(result, "cursor");
        cn_build_text(result, (const char *)cursor.data, cursor.size);
        cn_buf_fini(&last);
        cn_buf_fini(&cursor);
    }
    cn_build_end(result);
    return 0;
}

static const struct cn_face_method methods[] = {
    {"head", begin_head, next_head, "head: "},
    {"get", begin_get, next_get, "get: "},
    {"put", begin_put, next_put, "put: "},
    {"delete", begin_delete, cn_face_nothing, "delete: "},
    {"list", begin_list, next_list, "list: "},
    {0},
};
const struct cn_service_face cn_r2_face = {methods};
