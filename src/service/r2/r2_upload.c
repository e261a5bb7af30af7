/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/r2_upload.c - multipart uploads of a bucket (R2-6).
 *
 * Parts are blobs of their own from the start; completing an upload makes them the segments of an
 * object, in the order of their numbers. The ETag of such an object is computed by the caller,
 * who knows MD5, from those that it names for the parts: they must be the stored ones. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "object/object.h"
#include "service/r2/r2_private.h"
#include "store/database.h"
#include "text/hex.h"

/* Uploads that one run of the alarm aborts. */
#define EXPIRE_STEP 10

int cn_r2_upload_create(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    uint8_t bytes[32];
    char id[65];
    cn_rand_secure(bytes, sizeof(bytes));
    cn_hex_encode(bytes, sizeof(bytes), id);
    struct cn_statement *statement;
    int rc = cn_r2_sql(bucket, CN_R2_SQL_UPLOAD_CREATE, &statement, err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 1, id, err);
    if (rc == 0)
        rc = cn_r2_bind_key(statement, 2, call->key.data, call->key.size, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 3, cn_r2_now(bucket), err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 4, call->http, err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 5, call->custom, err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 6, call->storage_class ? call->storage_class : "Standard",
                             err);
    if (rc == 0)
        rc = cn_r2_bind_ssec(statement, 7, call->ssec, err);
    if (rc == 0)
        rc = cn_service_sql_run(statement, err);
    if (rc == 0)
        rc = cn_r2_wake_by(bucket, cn_r2_now(bucket) + CN_R2_UPLOAD_MS_MAX, err);
    cn_buf_printf(&call->json, "\"%s\"", id);
    return rc;
}

/* 1: there is such an upload of this key, and the statement is at it. 0: call->problem says so. */
static int find_upload(struct cn_r2_bucket *bucket, struct cn_r2_call *call,
                       struct cn_statement **statement, struct cn_err *err)
{
    int rc = cn_r2_sql(bucket, CN_R2_SQL_UPLOAD_GET, statement, err);
    if (rc == 0)
        rc = cn_r2_bind_text(*statement, 1, call->upload, err);
    if (rc == 0)
        rc = cn_statement_step(*statement, err);
    if (rc < 0)
        return rc;
    size_t size = 0;
    const void *key = rc ? cn_statement_column_blob(*statement, 0, &size) : NULL;
    if (rc && size == call->key.size && memcmp(key, call->key.data, size) == 0)
        return 1;
    cn_statement_reset(*statement);
    call->problem = CN_R2_NO_UPLOAD;
    return 0;
}

static int has_upload(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = find_upload(bucket, call, &statement, err);
    if (rc > 0)
        cn_statement_reset(statement);
    return rc;
}

/* A part as it is stored; false in *found: there is none. */
static int get_part(struct cn_r2_bucket *bucket, const char *upload, unsigned number,
                    struct cn_r2_segment *segment, char etag[40], bool *found, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_r2_sql(bucket, CN_R2_SQL_PART_GET, &statement, err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 1, upload, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 2, number, err);
    if (rc == 0)
        rc = cn_statement_step(statement, err);
    if (rc < 0)
        return rc;
    *found = rc > 0;
    if (*found) {
        size_t size;
        const void *bytes = cn_statement_column_blob(statement, 2, &size);
        memcpy(segment, bytes, sizeof(*segment));
        snprintf(etag, 40, "%s", cn_statement_column_text(statement, 0, &size));
    }
    cn_statement_reset(statement);
    return 0;
}

int cn_r2_upload_part(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_r2_settle(bucket, &call->body, err);
    if (rc == 0)
        rc = find_upload(bucket, call, &statement, err);
    if (rc < 0)
        return rc;
    if (rc > 0 && !cn_r2_key_fits(call, statement, 4))
        call->problem = CN_R2_BAD_KEY;
    cn_statement_reset(statement);
    if (call->problem)
        return cn_r2_discard(bucket, call->body.segments, call->body.count, err);
    struct cn_r2_segment old;
    char etag[40];
    bool found;
    rc = get_part(bucket, call->upload, call->part, &old, etag, &found, err);
    if (rc == 0 && found)
        rc = cn_r2_discard(bucket, &old, 1, err);
    if (rc == 0)
        rc = cn_r2_sql(bucket, CN_R2_SQL_PART_PUT, &statement, err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 1, call->upload, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 2, call->part, err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 3, call->etag, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 4, (int64_t)call->body.size, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 5, cn_r2_now(bucket), err);
    if (rc == 0)
        rc = cn_statement_bind_blob(statement, 6, call->body.segments, sizeof(struct cn_r2_segment),
                                    false, err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

/* Reads "number etag\n"... and checks every part; fills call->body. */
static int gather(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    unsigned before = 0;
    uint64_t common = 0, last = 0;
    for (const char *at = call->parts; *at;) {
        char *end;
        unsigned number = (unsigned)strtoul(at, &end, 10);
        if (*end != ' ') { /* what a script gave may end here */
            call->problem = CN_R2_BAD_PART;
            return 0;
        }
        size_t size = strcspn(end + 1, "\n");
        struct cn_r2_segment segment;
        char etag[40];
        bool found = false;
        int rc = number > before && number <= CN_R2_PARTS_MAX
                     ? get_part(bucket, call->upload, number, &segment, etag, &found, err)
                     : 0;
        if (rc < 0)
            return rc;
        if (!found || strlen(etag) != size || memcmp(etag, end + 1, size) != 0) {
            call->problem = CN_R2_BAD_PART;
            return 0;
        }
        /* All have one size but the last, which is the smallest, and the others 5 MiB at least. */
        if (before && last < CN_R2_PART_SIZE_MIN)
            call->problem = CN_R2_TOO_SMALL;
        else if (before && (last != common || segment.size > common))
            call->problem = CN_R2_UNEQUAL;
        if (call->problem)
            return 0;
        common = before ? common : segment.size;
        last = segment.size;
        before = number;
        call->body.segments =
            cn_realloc(call->body.segments, (call->body.count + 1) * sizeof(*call->body.segments));
        call->body.segments[call->body.count++] = segment;
        call->body.size += segment.size;
        at = end + 1 + size + (end[1 + size] == '\n');
    }
    if (!call->body.count)
        call->problem = CN_R2_BAD_PART;
    return 0;
}

static int run_for_upload(struct cn_r2_bucket *bucket, unsigned which, const char *upload,
                          struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_r2_sql(bucket, which, &statement, err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 1, upload, err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

/* Whether the segment is among those of the new object. */
static bool is_used(const struct cn_r2_body *body, const struct cn_r2_segment *segment)
{
    for (size_t i = 0; i < body->count; i++) {
        if (memcmp(&body->segments[i].blob, &segment->blob, sizeof(segment->blob)) == 0)
            return true;
    }
    return false;
}

/* The upload goes, and with it the parts that are not in `body`. */
static int end_upload(struct cn_r2_bucket *bucket, const char *upload,
                      const struct cn_r2_body *body, struct cn_err *err)
{
    struct cn_statement *statement;
    struct cn_r2_segment *left = NULL;
    size_t count = 0;
    int rc = cn_r2_sql(bucket, CN_R2_SQL_PARTS, &statement, err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 1, upload, err);
    while (rc == 0 && (rc = cn_statement_step(statement, err)) > 0) {
        size_t size;
        const struct cn_r2_segment *stored = cn_statement_column_blob(statement, 3, &size);
        struct cn_r2_segment segment;
        memcpy(&segment, stored, sizeof(segment));
        rc = 0;
        if (is_used(body, &segment))
            continue;
        left = cn_realloc(left, (count + 1) * sizeof(*left));
        left[count++] = segment;
    }
    if (rc == 0) {
        cn_statement_reset(statement);
        rc = cn_r2_discard(bucket, left, count, err);
    }
    cn_free(left);
    if (rc == 0)
        rc = run_for_upload(bucket, CN_R2_SQL_PARTS_DELETE, upload, err);
    return rc < 0 ? rc : run_for_upload(bucket, CN_R2_SQL_UPLOAD_DELETE, upload, err);
}

int cn_r2_upload_complete(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = find_upload(bucket, call, &statement, err);
    if (rc <= 0)
        return rc;
    size_t size;
    char **const texts[] = {&call->http, &call->custom, &call->storage_class};
    for (int i = 0; i < 3; i++) {
        const char *text = cn_statement_column_text(statement, i + 1, &size);
        cn_free(*texts[i]);
        *texts[i] = cn_strndup(text, size);
    }
    if (cn_statement_column_type(statement, 4) != CN_SQL_NULL) {
        const char *ssec = cn_statement_column_text(statement, 4, &size);
        call->ssec = cn_strndup(ssec, size);
    }
    cn_statement_reset(statement);
    rc = gather(bucket, call, err);
    if (rc < 0 || call->problem)
        return rc;
    rc = cn_r2_store(bucket, call, err);
    return rc < 0 ? rc : end_upload(bucket, call->upload, &call->body, err);
}

int cn_r2_upload_abort(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    int rc = has_upload(bucket, call, err);
    return rc <= 0 ? rc : end_upload(bucket, call->upload, &call->body, err);
}

/* One that began at `before_ms` at the latest, for the caller to free; NULL: there is none. */
static int find_old(struct cn_r2_bucket *bucket, int64_t before_ms, char **upload,
                    struct cn_err *err)
{
    struct cn_statement *statement;
    *upload = NULL;
    int rc = cn_r2_sql(bucket, CN_R2_SQL_UPLOAD_OLD, &statement, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 1, before_ms, err);
    if (rc == 0)
        rc = cn_statement_step(statement, err);
    if (rc < 0)
        return rc;
    size_t size;
    if (rc > 0) {
        const char *text = cn_statement_column_text(statement, 0, &size);
        *upload = cn_strndup(text, size);
    }
    cn_statement_reset(statement);
    return 0;
}

int cn_r2_upload_expire(struct cn_r2_bucket *bucket, int64_t *next_ms, struct cn_err *err)
{
    const struct cn_r2_body nothing = {0};
    for (int i = 0; i < EXPIRE_STEP; i++) {
        char *upload;
        int rc = find_old(bucket, cn_r2_now(bucket) - CN_R2_UPLOAD_MS_MAX, &upload, err);
        if (rc == 0 && upload)
            rc = end_upload(bucket, upload, &nothing, err);
        bool more = upload != NULL;
        cn_free(upload);
        if (rc < 0)
            return rc;
        if (!more)
            break;
    }
    int64_t oldest;
    int rc = cn_r2_number(bucket, CN_R2_SQL_UPLOAD_OLDEST, &oldest, err);
    *next_ms = rc > 0 ? oldest + CN_R2_UPLOAD_MS_MAX : INT64_MAX;
    return rc < 0 ? rc : 0;
}

int cn_r2_upload_list(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_r2_sql(bucket, CN_R2_SQL_UPLOAD_LIST, &statement, err);
    cn_buf_append_byte(&call->json, '[');
    unsigned count = 0;
    while (rc == 0 && (rc = cn_statement_step(statement, err)) > 0) {
        size_t size;
        rc = 0;
        if (count++ == CN_R2_LIST_MAX) {
            call->truncated = true;
            break;
        }
        cn_buf_append_str(&call->json, count > 1 ? ",{\"id\":" : "{\"id\":");
        const char *text = cn_statement_column_text(statement, 0, &size);
        cn_buf_append_json(&call->json, text, size);
        cn_buf_append_str(&call->json, ",\"key\":");
        text = cn_statement_column_blob(statement, 1, &size);
        cn_buf_append_json(&call->json, text, size);
        cn_buf_printf(&call->json, ",\"started\":%" PRId64 "}",
                      cn_statement_column_int(statement, 2));
    }
    if (rc == 0)
        cn_statement_reset(statement);
    cn_buf_append_byte(&call->json, ']');
    return rc;
}

int cn_r2_upload_parts(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err)
{
    int rc = has_upload(bucket, call, err);
    if (rc <= 0)
        return rc;
    struct cn_statement *statement;
    rc = cn_r2_sql(bucket, CN_R2_SQL_PARTS, &statement, err);
    if (rc == 0)
        rc = cn_r2_bind_text(statement, 1, call->upload, err);
    cn_buf_append_byte(&call->json, '[');
    while (rc == 0 && (rc = cn_statement_step(statement, err)) > 0) {
        size_t size;
        rc = 0;
        const char *etag = cn_statement_column_text(statement, 1, &size);
        cn_buf_printf(&call->json,
                      "%s{\"number\":%" PRId64 ",\"etag\":\"%.*s\",\"size\":%" PRId64
                      ",\"uploaded\":%" PRId64 "}",
                      call->json.size > 1 ? "," : "", cn_statement_column_int(statement, 0),
                      (int)size, etag, cn_statement_column_int(statement, 2),
                      cn_statement_column_int(statement, 4));
    }
    if (rc == 0)
        cn_statement_reset(statement);
    cn_buf_append_byte(&call->json, ']');
    return rc;
}
