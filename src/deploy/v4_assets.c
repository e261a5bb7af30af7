/* SPDX-License-Identifier: Apache-2.0 */
/* deploy/v4_assets.c - files of assets are uploaded before the version that has them.
 *
 *     POST .../scripts/NAME/assets-upload-session   the manifest: which files are not here yet?
 *     POST .../workers/assets/upload                some of them, as base64, with the session's
 * token PUT  .../scripts/NAME                         metadata.assets.jwt: the session's token
 *
 *   A1  Files are kept for each worker by the hash that its sender gave them: who lies about a
 *       hash deceives their own worker only.
 *   A2  A session is good for its worker, for an hour, and for one version. It is in memory: after
 *       a restart wrangler begins again.
 *   A3  Paths of the manifest are checked before anything is kept (D5).
 *
 * wrangler reads when a token expires, as from a JWT: HEADER.PAYLOAD.TOKEN. The signature that
 * counts is that the token is known here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/multipart.h"
#include "deploy/v4.h"
#include "text/base64.h"

#define HASH_SIZE 32
#define BUCKET_MAX 50 /* files that one request of wrangler carries */
#define UPLOAD_MAX (100u << 20)

static bool hash_is_good(const char *hash)
{
    return hash && strlen(hash) == HASH_SIZE && strspn(hash, "0123456789abcdef") == HASH_SIZE;
}

static int check_manifest(struct cn_control_call *call, const struct cn_json *manifest,
                          struct cn_err *err)
{
    size_t count = 0;
    if (!manifest || manifest->kind != CN_JSON_OBJECT)
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "the manifest of the assets is missing");
    for (const struct cn_json *file = manifest->first; file; file = file->next) {
        const char *path = file->name[0] == '/' ? file->name + 1 : file->name;
        if (++count > CN_V4_ASSET_MAX)
            return cn_v4_fail(call, err, CN_ELIMIT, 10021, "there are more than %d assets",
                              CN_V4_ASSET_MAX);
        if (!cn_depot_path_is_good(path, strlen(path)))
            return cn_v4_fail(call, err, CN_EINVALID, 10021,
                              "the path of an asset must stay inside its folder: %.60s",
                              file->name);
        if (!hash_is_good(cn_json_text(file, "hash")))
            return cn_v4_fail(call, err, CN_EINVALID, 10021, "the hash of %.60s is none",
                              file->name);
        if (cn_json_int(file, "size") > (int64_t)CN_V4_ASSET_SIZE_MAX)
            return cn_v4_fail(call, err, CN_ELIMIT, 10021, "%.60s is larger than %u MiB",
                              file->name, CN_V4_ASSET_SIZE_MAX >> 20);
    }
    return 0;
}

/* A place for a session: a free one, else the one that ends first. With the lock held. */
static struct cn_v4_session *find_place(struct cn_v4 *v4)
{
    struct cn_v4_session *place = &v4->sessions[0];
    for (size_t i = 0; i < CN_V4_SESSION_MAX; i++) {
        if (v4->sessions[i].until_ms < place->until_ms)
            place = &v4->sessions[i];
    }
    return place;
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
static void append_missing(struct cn_v4 *v4, const char *worker, const struct cn_json *manifest,
                           struct cn_buf *json)
{
    size_t count = 0;
    cn_buf_append_str(json, ",\"buckets\":[");
    for (const struct cn_json *file = manifest->first; file; file = file->next) {
        const char *hash = cn_json_text(file, "hash");
        char quoted[HASH_SIZE + 3];
        snprintf(quoted, sizeof(quoted), "\"%s\"", hash);
        if (cn_depot_has_asset(v4->depot, worker, hash) ||
            memmem(json->data, json->size, quoted, strlen(quoted)))
            continue;
        cn_buf_append_str(json, count % BUCKET_MAX ? "," : count ? "],[" : "[");
        cn_buf_append_str(json, quoted);
        count++;
    }
    cn_buf_append_str(json, count ? "]]" : "]");
}

/* What is kept of it for an hour: nothing that its sender could add. */
static void write_manifest(const struct cn_json *manifest, struct cn_buf *text)
{
    cn_buf_append_byte(text, '{');
    for (const struct cn_json *file = manifest->first; file; file = file->next) {
        cn_buf_append_str(text, file == manifest->first ? "" : ",");
        cn_buf_append_json(text, file->name, strlen(file->name));
        cn_buf_append_str(text, ":{");
        cn_v4_put_text(text, "hash", cn_json_text(file, "hash"));
        cn_buf_printf(text, ",\"size\":%" PRId64 "}", cn_json_int(file, "size"));
    }
    cn_buf_append_byte(text, '}');
}

int cn_v4_assets_session(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    const char *worker = call->path[6];
    const struct cn_json *manifest = cn_json_find(call->json, "manifest");
    if (!cn_v4_name_is_good(worker))
        return cn_v4_fail(call, err, CN_EINVALID, 10016,
                          "a worker's name has letters a to z, digits, - and _");
    int rc = check_manifest(call, manifest, err); /* A3 */
    if (rc < 0)
        return rc;
    struct cn_buf text = {0}, json = {0};
    write_manifest(manifest, &text);
    if (text.size > CN_V4_MANIFEST_MAX) {
        cn_buf_fini(&text);
        return cn_v4_fail(call, err, CN_ELIMIT, 10021, "the manifest is larger than %u MiB",
                          CN_V4_MANIFEST_MAX >> 20);
    }
    pthread_mutex_lock(&v4->lock);
    struct cn_v4_session *session = find_place(v4);
    cn_free(session->manifest);
    *session = (struct cn_v4_session){.until_ms = cn_v4_now() + CN_V4_SESSION_MS,
                                      .manifest = cn_strdup(cn_buf_text(&text))};
    cn_depot_digits(session->token);
    cn_depot_digits(session->token + 32);
    snprintf(session->worker, sizeof(session->worker), "%s", worker);
    snprintf(session->by, sizeof(session->by), "%s", call->who.id);
    cn_buf_append_byte(&json, '{');
    append_jwt(&json, session);
    pthread_mutex_unlock(&v4->lock);
    append_missing(v4, worker, manifest, &json);
    cn_buf_append_byte(&json, '}');
    cn_buf_fini(&text);
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

/* The session of the call: its worker and its manifest, owned. */
static int take_session(struct cn_control_call *call, char worker[64], char **manifest,
                        struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    pthread_mutex_lock(&v4->lock);
    const struct cn_v4_session *session = find_session(v4, call->who.id);
    if (session) {
        snprintf(worker, 64, "%s", session->worker);
        *manifest = cn_strdup(session->manifest);
    }
    pthread_mutex_unlock(&v4->lock);
    return session ? 0 : cn_v4_fail(call, err, CN_EDENIED, 10000, "the upload session has ended");
}

static bool names_hash(const char *manifest, const char *hash)
{
    char quoted[HASH_SIZE + 3];
    snprintf(quoted, sizeof(quoted), "\"%s\"", hash);
    return strstr(manifest, quoted) != NULL;
}

static int take_file(struct cn_control_call *call, const struct cn_multipart_part *part,
                     const uint8_t *body, const char *worker, const char *manifest,
                     struct cn_err *err)
{
    struct cn_buf bytes = {0};
    char *hash = cn_strndup(part->name, part->name_size);
    const char *base64 = cn_control_param(call, "base64");
    size_t size = part->end - part->start;
    int rc = 0;
    if (!hash_is_good(hash) || !names_hash(manifest, hash))
        rc = cn_v4_fail(call, err, CN_EINVALID, 10021, "%.40s is not in the manifest", hash);
    else if (base64 && strcmp(base64, "true") == 0
                 ? !cn_base64_decode(&bytes, (const char *)body + part->start, size)
                 : !cn_buf_try_append(&bytes, body + part->start, size))
        rc = cn_v4_fail(call, err, CN_EINVALID, 10021, "%.40s is not base64", hash);
    else if (bytes.size > CN_V4_ASSET_SIZE_MAX)
        rc = cn_v4_fail(call, err, CN_ELIMIT, 10021, "%.40s is too large", hash);
    else
        rc = cn_depot_put_asset(cn_v4_of(call)->depot, worker, hash,
                                bytes.data ? bytes.data : (const uint8_t *)"", bytes.size, err);
    cn_free(hash);
    cn_buf_fini(&bytes);
    return rc;
}

static int take_files(struct cn_control_call *call, const char *worker, const char *manifest,
                      struct cn_err *err)
{
    struct cn_multipart parser;
    struct cn_multipart_part part;
    char boundary[80];
    if (!cn_v4_boundary(call->content_type, boundary))
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "the body must be multipart/form-data");
    const uint8_t *bytes = call->body.data ? call->body.data : (const uint8_t *)"";
    cn_multipart_init(&parser, bytes, call->body.size, boundary, strlen(boundary));
    int rc;
    while ((rc = cn_multipart_next(&parser, &part, err)) > 0) {
        rc = take_file(call, &part, bytes, worker, manifest, err);
        if (rc < 0)
            break;
    }
    cn_multipart_fini(&parser);
    return rc;
}

int cn_v4_assets_upload(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    char worker[64], *manifest = NULL;
    int rc = cn_control_read_body(call, UPLOAD_MAX, err);
    if (rc == 0)
        rc = take_session(call, worker, &manifest, err);
    if (rc == 0)
        rc = take_files(call, worker, manifest, err);
    cn_free(manifest);
    if (rc < 0)
        return rc;
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

struct cn_json *cn_v4_assets_take(struct cn_v4 *v4, const char *token, const char *worker,
                                  struct cn_err *err)
{
    struct cn_json *manifest = NULL;
    pthread_mutex_lock(&v4->lock);
    struct cn_v4_session *session = find_session(v4, token);
    if (session && strcmp(session->worker, worker) == 0) {
        manifest = cn_json_parse(session->manifest, strlen(session->manifest), err);
        CN_ASSERT(manifest); /* it was written from one */
        cn_free(session->manifest);
        *session = (struct cn_v4_session){0}; /* A2 */
    } else {
        cn_err_set(err, CN_EINVALID, "the upload of the assets has ended or is another worker's");
    }
    pthread_mutex_unlock(&v4->lock);
    return manifest;
}
