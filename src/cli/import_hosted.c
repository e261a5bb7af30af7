/* SPDX-License-Identifier: Apache-2.0 */
/* cli/import_hosted.c - KV namespaces and messages of queues by the API of the hosted platform. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/import.h"
#include "config/files.h"
#include "net/caller.h"
#include "text/base64.h"

#define ANSWER_MAX ((size_t)64 << 20)
#define EXPIRES_SOON_S 60

struct hosted {
    struct cn_import *import;
    const struct cn_import_hosted *from;
    struct cn_buf url, answer, body;
};

static void begin_url(struct hosted *hosted, const char *path)
{
    cn_buf_clear(&hosted->url);
    cn_buf_printf(&hosted->url, "%s/accounts/", hosted->from->api);
    cn_api_append_param(&hosted->url, NULL, hosted->from->account);
    cn_buf_append_str(&hosted->url, path);
}

/* The body of a good answer is in `answer`. */
static int ask(struct hosted *hosted, const char *method, struct cn_err *err)
{
    struct cn_caller_request request = {.method = method,
                                        .url = cn_buf_text(&hosted->url),
                                        .token = hosted->from->token,
                                        .answer_max = ANSWER_MAX};
    if (strcmp(method, "POST") == 0) {
        request.content_type = "application/json";
        request.body = hosted->body.data;
        request.body_size = hosted->body.size;
    }
    cn_buf_clear(&hosted->answer);
    int status = cn_caller_ask(&request, &hosted->answer, err);
    if (status < 0 || status == 200)
        return status < 0 ? status : 0;
    struct cn_json *json = cn_json_parse((char *)hosted->answer.data, hosted->answer.size, NULL);
    const struct cn_json *errors = cn_json_find(json, "errors");
    const char *message = errors && errors->first ? cn_json_text(errors->first, "message") : NULL;
    int rc = cn_err_set(err, status == 404 ? CN_ENOTFOUND : CN_EPROTOCOL,
                        "the platform's API answers %d: %.300s", status, message ? message : "");
    cn_json_free(json);
    return rc;
}

/* The same for JSON; the caller frees. NULL: it failed. */
static struct cn_json *ask_json(struct hosted *hosted, const char *method, struct cn_err *err)
{
    if (ask(hosted, method, err) < 0)
        return NULL;
    return cn_json_parse((char *)hosted->answer.data, hosted->answer.size, err);
}

/* What it goes to, if it is not here yet. */
static int make_target(struct hosted *hosted, const char *path, const char *name,
                       struct cn_err *err)
{
    struct cn_json *answer = NULL;
    struct cn_buf target = {0};
    cn_buf_append_str(&target, path);
    cn_api_append_param(&target, NULL, name);
    int rc = cn_api_call(&hosted->import->api, "PUT", cn_buf_text(&target), "{}", &answer, err);
    cn_json_free(answer);
    cn_buf_fini(&target);
    return rc;
}

/* --- KV -------------------------------------------------------------------------------------- */

static int import_key(struct hosted *hosted, const char *id, const struct cn_json *entry,
                      struct cn_err *err)
{
    struct cn_import *import = hosted->import;
    const struct cn_json *name = cn_json_find(entry, "name");
    const struct cn_json *metadata = cn_json_find(entry, "metadata");
    struct cn_buf text = {0};
    if (!name || name->kind != CN_JSON_STRING)
        return cn_err_set(err, CN_EPROTOCOL, "the platform's API lists a key without a name");
    if (metadata)
        cn_json_write(&text, metadata);
    struct cn_import_key key = {.text = name->text,
                                .size = name->size,
                                .expires_s = cn_json_int(entry, "expiration"),
                                .metadata = metadata ? cn_buf_text(&text) : "null",
                                .path = import->scratch};
    char *path = cn_sprintf("/storage/kv/namespaces/%s/values/", id);
    begin_url(hosted, path);
    cn_api_append_bytes(&hosted->url, name->text, name->size);
    cn_free(path);
    int rc = ask(hosted, "GET", err);
    bool gone = rc == CN_ENOTFOUND ||
                (key.expires_s &&
                 key.expires_s < cn_clock_wall_ms(cn_clock_system()) / 1000 + EXPIRES_SOON_S);
    if (gone) {
        cn_import_tell(import, CN_IMPORT_KV, CN_IMPORT_LEFT, name->text,
                       "it has expired, or does within a minute, or was deleted");
        rc = 0;
    } else if (rc == 0) {
        rc = cn_files_write(import->scratch, hosted->answer.data, hosted->answer.size, err);
        if (rc == 0)
            rc = cn_import_kv_key(import, id, &key, err);
    }
    cn_buf_fini(&text);
    return rc;
}

static int import_namespace(struct hosted *hosted, const char *id, struct cn_err *err)
{
    char *cursor = NULL;
    int rc = strspn(id, "0123456789abcdef") == strlen(id) && *id
                 ? 0
                 : cn_err_set(err, CN_EINVALID, "the id of a namespace is hexadecimal digits");
    if (rc == 0 && !hosted->import->verify)
        rc = make_target(hosted, "/api/kv/", id, err);
    do {
        if (rc < 0)
            break;
        char *path = cn_sprintf("/storage/kv/namespaces/%s/keys?limit=1000", id);
        begin_url(hosted, path);
        cn_free(path);
        if (cursor) {
            cn_buf_append_byte(&hosted->url, '&');
            cn_api_append_param(&hosted->url, "cursor", cursor);
        }
        cn_free(cursor);
        cursor = NULL;
        struct cn_json *page = ask_json(hosted, "GET", err);
        rc = page ? 0 : err->code;
        const struct cn_json *list = cn_json_find(page, "result");
        for (const struct cn_json *each = list ? list->first : NULL; each && rc == 0;
             each = each->next)
            rc = import_key(hosted, id, each, err);
        const char *next = cn_json_text(cn_json_find(page, "result_info"), "cursor");
        if (next && *next)
            cursor = cn_strdup(next);
        cn_json_free(page);
    } while (rc == 0 && cursor);
    cn_free(cursor);
    return rc;
}

/* --- queues ---------------------------------------------------------------------------------- */

/* The id of the queue with this name; owned. */
static char *find_queue(struct hosted *hosted, const char *name, struct cn_err *err)
{
    char *id = NULL;
    begin_url(hosted, "/queues?per_page=100");
    struct cn_json *page = ask_json(hosted, "GET", err);
    const struct cn_json *list = cn_json_find(page, "result");
    for (const struct cn_json *each = list ? list->first : NULL; each && !id; each = each->next) {
        const char *found = cn_json_text(each, "queue_name");
        if (found && strcmp(found, name) == 0 && cn_json_text(each, "queue_id"))
            id = cn_strdup(cn_json_text(each, "queue_id"));
    }
    if (page && !id)
        cn_err_set(err, CN_ENOTFOUND, "the platform has no queue \"%.100s\"", name);
    cn_json_free(page);
    return id;
}

/* Sends a message here; durable when it returns. 1: it has a type that cannot be sent so. */
static int send_message(struct hosted *hosted, const char *name, const struct cn_json *message,
                        struct cn_err *err)
{
    const struct cn_json *body = cn_json_find(message, "body");
    const char *type = cn_json_text(cn_json_find(message, "metadata"), "CF-Content-Type");
    bool text = type && strcmp(type, "text") == 0;
    struct cn_buf decoded = {0}, target = {0}, json = {0};
    struct cn_json *answer = NULL;
    if (!body || body->kind != CN_JSON_STRING || (type && !text && strcmp(type, "json") != 0))
        return 1;
    cn_buf_printf(&json, "{\"content_type\":\"%s\",\"body\":", text ? "text" : "json");
    int rc = 0;
    if (text) {
        cn_buf_append_json(&json, body->text, body->size);
    } else if (cn_base64_decode(&decoded, body->text, body->size)) {
        struct cn_json *tree = cn_json_parse((char *)decoded.data, decoded.size, err);
        rc = tree ? 0 : 1;
        if (tree)
            cn_json_write(&json, tree);
        cn_json_free(tree);
    } else {
        rc = 1;
    }
    cn_buf_append_byte(&json, '}');
    cn_buf_append_str(&target, "/api/queues/");
    cn_api_append_param(&target, NULL, name);
    cn_buf_append_str(&target, "/messages");
    if (rc == 0)
        rc = cn_api_call(&hosted->import->api, "POST", cn_buf_text(&target), cn_buf_text(&json),
                         &answer, err);
    cn_json_free(answer);
    cn_buf_fini(&decoded);
    cn_buf_fini(&target);
    cn_buf_fini(&json);
    return rc;
}

/* A batch: sent here, then acknowledged there. *more: there was one. */
static int move_batch(struct hosted *hosted, const char *id, const char *name, bool *more,
                      struct cn_err *err)
{
    struct cn_buf acks = {0};
    char *pull = cn_sprintf("/queues/%s/messages/pull", id);
    char *ack = cn_sprintf("/queues/%s/messages/ack", id);
    int rc = 0;
    cn_buf_clear(&hosted->body);
    cn_buf_append_str(&hosted->body, "{\"batch_size\":100,\"visibility_timeout_ms\":60000}");
    begin_url(hosted, pull);
    struct cn_json *page = ask_json(hosted, "POST", err);
    const struct cn_json *list = cn_json_find(cn_json_find(page, "result"), "messages");
    *more = false;
    for (const struct cn_json *each = list ? list->first : NULL; each && rc >= 0;
         each = each->next) {
        const char *message = cn_json_text(each, "id"), *lease = cn_json_text(each, "lease_id");
        rc = send_message(hosted, name, each, err);
        if (rc >= 0)
            cn_import_tell(hosted->import, CN_IMPORT_QUEUES,
                           rc == 0 ? CN_IMPORT_CAME : CN_IMPORT_FAILED, message ? message : "?",
                           rc == 0 ? NULL
                                   : "its type can be sent by a worker alone; it stays there");
        if (rc == 0 && lease) {
            cn_buf_append_str(&acks, acks.size ? ",{\"lease_id\":" : "{\"lease_id\":");
            cn_buf_append_json(&acks, lease, strlen(lease));
            cn_buf_append_byte(&acks, '}');
        }
    }
    if (!page)
        rc = err->code;
    if (acks.size) { /* also of those before one that failed */
        struct cn_err late;
        cn_buf_clear(&hosted->body);
        cn_buf_printf(&hosted->body, "{\"acks\":[%s],\"retries\":[]}", cn_buf_text(&acks));
        begin_url(hosted, ack);
        *more = true;
        if (ask(hosted, "POST", rc < 0 ? &late : err) < 0 && rc >= 0)
            rc = err->code;
    }
    cn_json_free(page);
    cn_buf_fini(&acks);
    cn_free(pull);
    cn_free(ack);
    return rc < 0 ? rc : 0;
}

static int import_queue(struct hosted *hosted, const char *name, struct cn_err *err)
{
    bool more = true;
    char *id =
        hosted->import->verify
            ? (cn_err_set(err, CN_EINVALID, "messages that have moved cannot be compared"), NULL)
            : find_queue(hosted, name, err);
    int rc = id ? 0 : err->code;
    if (rc == 0)
        rc = make_target(hosted, "/api/queues/", name, err);
    while (rc == 0 && more)
        rc = move_batch(hosted, id, name, &more, err);
    cn_free(id);
    return rc;
}

int cn_import_hosted(struct cn_import *import, const struct cn_import_hosted *from,
                     struct cn_err *err)
{
    struct hosted hosted = {.import = import, .from = from};
    int rc;
    if (!from->account || !from->token)
        rc = cn_err_set(err, CN_EINVALID,
                        "CLOUDFLARE_ACCOUNT_ID and CLOUDFLARE_API_TOKEN say whose data it is");
    else if (strncmp(import->source, "kv:", 3) == 0)
        rc = import_namespace(&hosted, import->source + 3, err);
    else
        rc = import_queue(&hosted, import->source + 6, err);
    cn_buf_fini(&hosted.url);
    cn_buf_fini(&hosted.answer);
    cn_buf_fini(&hosted.body);
    return rc;
}
