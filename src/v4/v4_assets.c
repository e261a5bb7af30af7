/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_assets.c - files of assets are uploaded before the version that has them.
 *
 *     POST .../scripts/NAME/assets-upload-session   the manifest: which files are not here yet?
 *     POST .../workers/assets/upload                some of them, as base64, with the token of
 *                                                   the session
 *     PUT  .../scripts/NAME                         metadata.assets.jwt: that token
 *
 *   A1  Files are kept for each worker by the hash that its sender gave them: who lies about a
 *       hash deceives their own worker only.
 *   A2  A session is good for its worker, for an hour, and for one version. It is in memory: after
 *       a restart wrangler begins again.
 *   A3  The manifest is checked before anything is kept (manifest.h), and a file that does not have
 *       the size which it says is refused.
 *   A4  The files of a request are kept when all of them have come and are durable. One that is
 *       found under its hash is whole.
 *
 * wrangler reads when a token expires, as from a JWT: HEADER.PAYLOAD.TOKEN. The signature that
 * counts is that the token is known here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/multipart.h"
#include "text/base64.h"
#include "v4/manifest.h"
#include "v4/v4.h"

/* What one request of wrangler carries: files, and bytes of theirs before base64 (one file may be
 * larger). */
#define BUCKET_MAX 500
#define BUCKET_BYTES_MAX (16u << 20)
#define UPLOAD_MAX (100u << 20)

static void end_session(struct cn_v4_session *session)
{
    cn_manifest_unref(session->manifest);
    *session = (struct cn_v4_session){0};
}

/* A place for a session with so large a manifest: the sessions that end first give way, if need be.
 * With the lock held. */
static struct cn_v4_session *find_place(struct cn_v4 *v4, size_t memory)
{
    for (;;) {
        struct cn_v4_session *first = NULL, *place = NULL;
        size_t sum = memory;
        for (size_t i = 0; i < CN_V4_SESSION_MAX; i++) {
            struct cn_v4_session *session = &v4->sessions[i];
            if (session->token[0] && session->until_ms <= cn_v4_now())
                end_session(session);
            if (!session->token[0]) {
                place = session;
                continue;
            }
            sum += session->manifest->memory;
            if (!first || session->until_ms < first->until_ms)
                first = session;
        }
        if (place && sum <= CN_V4_SESSIONS_MEMORY_MAX)
            return place;
        CN_ASSERT(first); /* CN_MANIFEST_SIZE_MAX alone is allowed */
        end_session(first);
    }
}

/* Base64 as URLs have it, without padding. */
static void append_url64(struct cn_buf *out, const char *text)
{
    struct cn_buf plain = {0};
    cn_base64_encode(&plain, text, strlen(text));
    for (size_t i = 0; i < plain.size && plain.data[i] != '='; i++)
        cn_buf_append_byte(out, plain.data[i] == '+'   ? '-'
                                : plain.data[i] == '/' ? '_'
                                                       : plain.data[i]);
    cn_buf_fini(&plain);
}

static void append_jwt(struct cn_buf *json, const struct cn_v4_session *session)
{
    char payload[80];
    snprintf(payload, sizeof(payload), "{\"exp\":%" PRId64 "}", session->until_ms / 1000);
    cn_buf_append_str(json, "\"jwt\":\"");
    append_url64(json, "{\"alg\":\"none\",\"typ\":\"JWT\"}");
    cn_buf_append_byte(json, '.');
    append_url64(json, payload);
    cn_buf_printf(json, ".%s\"", session->token);
}

/* The hashes that are not here, in buckets. */
static void append_missing(struct cn_v4 *v4, const char *worker, const struct cn_manifest *manifest,
                           struct cn_buf *json)
{
    size_t count = 0, bytes = 0;
    cn_buf_append_str(json, ",\"buckets\":[");
    for (size_t i = 0; i < manifest->count; i++) {
        const struct cn_manifest_file *file = &manifest->files[i];
        if ((i > 0 && strcmp(file->hash, file[-1].hash) == 0) ||
            cn_depot_has_asset(v4->depot, worker, file->hash))
            continue;
        bool full = count % BUCKET_MAX == 0 || bytes + file->size > BUCKET_BYTES_MAX;
        if (full) {
            cn_buf_append_str(json, json->data[json->size - 1] == '[' ? "[" : "],[");
            count = bytes = 0;
        }
        cn_buf_printf(json, "%s\"%s\"", full ? "" : ",", file->hash);
        bytes += file->size;
        count++;
    }
    cn_buf_append_str(json, json->data[json->size - 1] == '[' ? "]" : "]]");
}

/* Begins a session; its token goes to `json`. The manifest's reference is the session's. */
static void begin_session(struct cn_control_call *call, const char *worker,
                          struct cn_manifest *manifest, struct cn_buf *json)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    pthread_mutex_lock(&v4->lock);
    struct cn_v4_session *session = find_place(v4, manifest->memory);
    *session =
        (struct cn_v4_session){.until_ms = cn_v4_now() + CN_V4_SESSION_MS, .manifest = manifest};
    cn_depot_digits(session->token);
    cn_depot_digits(session->token + 32);
    snprintf(session->worker, sizeof(session->worker), "%s", worker);
    snprintf(session->by, sizeof(session->by), "%s", call->who.id);
    append_jwt(json, session);
    pthread_mutex_unlock(&v4->lock);
}

int cn_v4_assets_session(struct cn_control_call *call, struct cn_err *err)
{
    const char *worker = call->path[6];
    struct cn_manifest *manifest;
    struct cn_buf json = {0};
    if (!cn_v4_name_is_good(worker))
        return cn_v4_fail(call, err, CN_EINVALID, 10016,
                          "a worker's name has letters a to z, digits, - and _");
    int rc = cn_manifest_new(cn_json_find(call->json, "manifest"), &manifest, err); /* A3 */
    if (rc < 0)
        return cn_v4_invalid(call, rc);
    cn_buf_append_byte(&json, '{');
    begin_session(call, worker, cn_manifest_ref(manifest), &json);
    append_missing(cn_v4_of(call), worker, manifest, &json);
    cn_buf_append_byte(&json, '}');
    cn_manifest_unref(manifest);
    return cn_control_result(call, &json);
}

/* With the lock held. `token` is a whole JWT, or the first digits of what it ends in. */
static struct cn_v4_session *find_session(struct cn_v4 *v4, const char *token)
{
    const char *dot = strrchr(token, '.');
    const char *digits = dot ? dot + 1 : token;
    size_t size = strlen(digits);
    for (size_t i = 0; i < CN_V4_SESSION_MAX && size >= 32; i++) {
        struct cn_v4_session *session = &v4->sessions[i];
        if (session->token[0] && session->until_ms > cn_v4_now() &&
            strncmp(session->token, digits, size) == 0)
            return session;
    }
    return NULL;
}

/* What a request with files is about. */
struct arrival {
    struct cn_control_call *call;
    char worker[64];
    struct cn_manifest *manifest; /* a reference */
    struct cn_depot_arrival *files;
};

/* The session of the call. */
static int take_session(struct arrival *arrival, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(arrival->call);
    pthread_mutex_lock(&v4->lock);
    const struct cn_v4_session *session = find_session(v4, arrival->call->who.id);
    if (session) {
        snprintf(arrival->worker, sizeof(arrival->worker), "%s", session->worker);
        arrival->manifest = cn_manifest_ref(session->manifest);
    }
    pthread_mutex_unlock(&v4->lock);
    return session
               ? 0
               : cn_v4_fail(arrival->call, err, CN_EDENIED, 10000, "the upload session has ended");
}

/* The bytes of a part, which are of the size that the manifest says. */
static int read_file(const struct arrival *arrival, const struct cn_manifest_file *file,
                     const uint8_t *from, size_t size, struct cn_buf *bytes, struct cn_err *err)
{
    struct cn_control_call *call = arrival->call;
    const char *base64 = cn_control_param(call, "base64");
    if (base64 && strcmp(base64, "true") == 0) {
        if (size / 4 * 3 > (size_t)file->size + 3 ||
            !cn_base64_decode(bytes, (const char *)from, size))
            return cn_v4_fail(call, err, CN_EINVALID, 10021,
                              "%s is not base64, or too long for its file", file->hash);
    } else if (size > file->size || !cn_buf_try_append(bytes, from, size)) {
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "%s is too long for its file", file->hash);
    }
    if (bytes->size != file->size)
        return cn_v4_fail(call, err, CN_EINVALID, 10021,
                          "%s has %zu bytes, and %u in the manifest (%.60s)", file->hash,
                          bytes->size, file->size, file->path);
    return 0;
}

static int take_file(struct arrival *arrival, const struct cn_multipart_part *part,
                     const uint8_t *body, struct cn_err *err)
{
    struct cn_depot *depot = cn_v4_of(arrival->call)->depot;
    struct cn_buf bytes = {0};
    char *hash = cn_strndup(part->name, part->name_size);
    const struct cn_manifest_file *file = cn_manifest_find(arrival->manifest, hash);
    int rc = file ? 0
                  : cn_v4_fail(arrival->call, err, CN_EINVALID, 10021,
                               "%.40s is not in the manifest", hash);
    cn_free(hash);
    if (rc == 0)
        rc = read_file(arrival, file, body + part->start, part->end - part->start, &bytes, err);
    /* Nobody has asked for one that is here already; a request that is made again has such. */
    if (rc == 0 && !cn_depot_has_asset(depot, arrival->worker, file->hash))
        rc = cn_depot_arrival_put(arrival->files, file->hash,
                                  bytes.data ? bytes.data : (const uint8_t *)"", bytes.size, err);
    cn_buf_fini(&bytes);
    return rc;
}

static int take_files(struct arrival *arrival, struct cn_err *err)
{
    struct cn_control_call *call = arrival->call;
    struct cn_multipart parser;
    struct cn_multipart_part part;
    char boundary[80];
    if (!cn_v4_boundary(call->content_type, boundary))
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "the body must be multipart/form-data");
    const uint8_t *bytes = call->body.data ? call->body.data : (const uint8_t *)"";
    cn_multipart_init(&parser, bytes, call->body.size, boundary, strlen(boundary));
    int rc;
    while ((rc = cn_multipart_next(&parser, &part, err)) > 0) {
        rc = take_file(arrival, &part, bytes, err);
        if (rc < 0)
            break;
    }
    cn_multipart_fini(&parser);
    return rc;
}

/* A4 */
static int take_request(struct arrival *arrival, struct cn_err *err)
{
    struct cn_depot *depot = cn_v4_of(arrival->call)->depot;
    int rc = cn_depot_arrival_begin(depot, arrival->worker, &arrival->files, err);
    if (rc < 0)
        return rc;
    rc = take_files(arrival, err);
    if (rc == 0 && !cn_control_is_good(arrival->call)) /* T2 */
        rc = cn_v4_fail(arrival->call, err, CN_EDENIED, 10000, "the token was revoked");
    return cn_depot_arrival_end(arrival->files, rc, err);
}

int cn_v4_assets_upload(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct arrival arrival = {.call = call};
    int rc = cn_control_read_body(call, UPLOAD_MAX, err);
    if (rc == 0)
        rc = take_session(&arrival, err);
    if (rc == 0)
        rc = take_request(&arrival, err);
    cn_manifest_unref(arrival.manifest);
    if (rc < 0)
        return cn_v4_invalid(call, rc);
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '{');
    pthread_mutex_lock(&v4->lock);
    const struct cn_v4_session *session = find_session(v4, call->who.id);
    if (session)
        append_jwt(&json, session); /* the last answer's is what the script is uploaded with */
    pthread_mutex_unlock(&v4->lock);
    cn_buf_append_byte(&json, '}');
    call->status = 201;
    return cn_control_result(call, &json);
}

/* --- the files of a version --------------------------------------------------------------------
 */

/* The manifest of a finished session of the worker, a reference; NULL with an error. */
static struct cn_manifest *take_manifest(struct cn_v4 *v4, const char *token, const char *worker,
                                         struct cn_err *err)
{
    struct cn_manifest *manifest = NULL;
    pthread_mutex_lock(&v4->lock);
    struct cn_v4_session *session = find_session(v4, token);
    if (session && strcmp(session->worker, worker) == 0) {
        manifest = cn_manifest_ref(session->manifest);
        end_session(session); /* A2 */
    } else {
        cn_err_set(err, CN_EINVALID, "the upload of the assets has ended or is another worker's");
    }
    pthread_mutex_unlock(&v4->lock);
    return manifest;
}

/* _headers and _redirects, which come as texts. */
static int put_rules(struct cn_v4 *v4, const char *id, const struct cn_json *config,
                     struct cn_err *err)
{
    static const char *const names[] = {"_headers", "_redirects"};
    int rc = 0;
    for (size_t i = 0; i < CN_ARRAY_COUNT(names) && rc == 0; i++) {
        const struct cn_json *text = cn_json_find(config, names[i]);
        if (text && text->kind == CN_JSON_STRING)
            rc = cn_depot_put_file(v4->depot, id, "assets", names[i], text->text, text->size, err);
    }
    return rc;
}

/* Links each and writes "/PATH":{"hash","size"}. */
static int link_files(struct cn_v4 *v4, const char *id, const char *worker,
                      const struct cn_manifest *manifest, struct cn_buf *json, struct cn_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < manifest->count && rc == 0; i++) {
        const struct cn_manifest_file *file = &manifest->files[i];
        char *name = cn_sprintf("/%s", file->path);
        cn_buf_append_str(json, i ? "," : "");
        cn_buf_append_json(json, name, strlen(name));
        cn_buf_printf(json, ":{\"hash\":\"%s\",\"size\":%u}", file->hash, file->size);
        cn_free(name);
        rc = cn_depot_link_asset(v4->depot, id, worker, file->path, file->hash, err);
    }
    return rc;
}

/* A folder of assets with these files and rules, which may be none. */
static int make_folder(struct cn_v4 *v4, const char *id, const char *worker,
                       const struct cn_manifest *manifest, const struct cn_json *config,
                       struct cn_buf *json, struct cn_err *err)
{
    cn_buf_append_str(json, ",\"assets\":{\"config\":");
    if (config)
        cn_json_write(json, config);
    else
        cn_buf_append_str(json, "{}");
    cn_buf_append_str(json, ",\"files\":{");
    int rc = manifest ? link_files(v4, id, worker, manifest, json, err) : 0;
    cn_buf_append_str(json, "}}");
    if (rc == 0 && (!manifest || !manifest->count)) /* no file at all is a folder nonetheless */
        rc = cn_depot_put_file(v4->depot, id, "assets", "_headers", "", 0, err);
    return rc == 0 ? put_rules(v4, id, config, err) : rc;
}

int cn_v4_assets_keep(struct cn_v4 *v4, const char *id, const char *worker,
                      const struct cn_json *metadata, const struct cn_json *previous,
                      struct cn_buf *json, struct cn_err *err)
{
    const struct cn_json *assets = cn_json_find(metadata, "assets");
    const struct cn_json *keep = cn_json_find(metadata, "keep_assets");
    const struct cn_json *old = cn_json_find(previous, "assets");
    const struct cn_json *config = cn_json_find(assets, "config");
    const char *jwt = cn_json_text(assets, "jwt");
    struct cn_manifest *manifest = NULL;
    int rc = 0;
    if (jwt) {
        manifest = take_manifest(v4, jwt, worker, err);
        rc = manifest ? 0 : err->code;
    } else if (keep && keep->boolean && old) {
        rc = cn_manifest_new(cn_json_find(old, "files"), &manifest, err);
        config = config ? config : cn_json_find(old, "config");
    } else if (!assets || assets->kind == CN_JSON_NULL) {
        return 0;
    }
    if (rc == 0)
        rc = make_folder(v4, id, worker, manifest, config, json, err);
    cn_manifest_unref(manifest);
    return rc;
}
