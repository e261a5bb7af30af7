/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_secrets.c - secrets of a worker. Each change is a version with the code of the one
 * before, and is deployed at once, as the platform does it; or, if that is asked for, waits as one
 * that was uploaded does.
 *
 *   S1  A secret goes in and never comes out but to the worker: lists have names. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/mem.h"
#include "base/multipart.h"
#include "v4/v4.h"

#define SECRET_MAX (64u << 10)

/* A secret that is asked for: NULL text deletes it. */
struct wish {
    const char *name;
    const struct cn_json *text;
};

struct change {
    const struct wish *wishes;
    size_t count;
    bool waits; /* the version is not deployed */
    const char *message, *tag;
    char id[CN_DEPOT_ID_SIZE]; /* of the version that was made */
};

static int list_secrets(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    struct cn_json *file = NULL;
    struct cn_buf json = {0};
    if (script && script->version_count)
        file =
            cn_depot_read_version(v4->depot, script->versions[script->version_count - 1].id, err);
    if (file) {
        const struct cn_json *list = cn_json_find(file, "bindings");
        cn_buf_append_byte(&json, '[');
        for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
            const char *type = cn_json_text(item, "type"), *name = cn_json_text(item, "name");
            if (!type || !name || strcmp(type, "secret_text") != 0)
                continue;
            cn_buf_append_str(&json, json.size > 1 ? ",{" : "{");
            cn_v4_put_text(&json, "name", name);
            cn_v4_put_text(&json, "type", type);
            cn_buf_append_byte(&json, '}');
        }
        cn_buf_append_byte(&json, ']');
    }
    cn_json_free(file);
    cn_depot_state_unref(state);
    return json.size ? cn_control_result(call, &json) : err->code;
}

static const struct wish *find_wish(const struct wish *wishes, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(wishes[i].name, name) == 0)
            return &wishes[i];
    }
    return NULL;
}

static void append_sealed(struct cn_v4 *v4, const char *worker, const struct wish *wish,
                          struct cn_buf *list)
{
    struct cn_buf sealed = {0};
    cn_depot_seal(v4->depot, worker, wish->name, wish->text->text, wish->text->size, &sealed);
    cn_buf_append_str(list, list->size ? ",{" : "{");
    cn_v4_put_text(list, "type", "secret_text");
    cn_v4_put_text(list, "name", wish->name);
    cn_v4_put_text(list, "sealed", cn_buf_text(&sealed));
    cn_buf_append_byte(list, '}');
    cn_buf_fini(&sealed);
}

/* The bindings of the version before with the wishes in them. */
static int make_bindings(struct cn_control_call *call, const struct cn_json *file,
                         const struct wish *wishes, size_t count, struct cn_buf *list,
                         struct cn_err *err)
{
    const struct cn_json *old = cn_json_find(file, "bindings");
    size_t removed = 0, total = 0;
    for (const struct cn_json *item = old ? old->first : NULL; item; item = item->next, total++) {
        const char *name = cn_json_text(item, "name"), *type = cn_json_text(item, "type");
        const struct wish *wish = name ? find_wish(wishes, count, name) : NULL;
        if (wish && type && strcmp(type, "secret_text") != 0)
            return cn_v4_fail(call, err, CN_EINVALID, 10053,
                              "the binding %s is in use and is no secret", name);
        if (wish) {
            removed += !wish->text;
            continue;
        }
        if (list->size)
            cn_buf_append_byte(list, ',');
        cn_json_write(list, item);
    }
    for (size_t i = 0; i < count; i++) {
        if (wishes[i].text)
            append_sealed(cn_v4_of(call), call->path[6], &wishes[i], list);
        else if (count == 1 && !removed)
            return cn_v4_fail(call, err, CN_ENOTFOUND, 10056, "there is no secret %s",
                              wishes[i].name);
    }
    return total + count > CN_V4_BINDING_MAX
               ? cn_v4_fail(call, err, CN_ELIMIT, 10021, "a script has at most %d bindings",
                            CN_V4_BINDING_MAX)
               : 0;
}

/* Writes the version file ID with these bindings and all else as it was. */
static int write_version(struct cn_v4 *v4, const char *id, const struct cn_json *file,
                         const struct cn_buf *bindings, struct cn_err *err)
{
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '{');
    for (const struct cn_json *member = file->first; member; member = member->next) {
        if (strcmp(member->name, "bindings") == 0 || strcmp(member->name, "crc32c") == 0 ||
            strcmp(member->name, "annotations") == 0)
            continue;
        cn_buf_printf(&json, "%s\"%s\":", json.size > 1 ? "," : "", member->name);
        cn_json_write(&json, member);
    }
    cn_buf_append_str(&json, json.size > 1 ? ",\"bindings\":[" : "\"bindings\":[");
    cn_buf_append(&json, bindings->data, bindings->size);
    cn_buf_append_str(&json, "]}\n");
    int rc = cn_depot_put_version(v4->depot, id, &json, err);
    cn_buf_fini(&json);
    return rc;
}

static int make_version(struct cn_control_call *call, const struct cn_depot_script *script,
                        const struct wish *wishes, size_t count, const char *id, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    const struct cn_depot_version *before = &script->versions[script->version_count - 1];
    struct cn_json *file = cn_depot_read_version(v4->depot, before->id, err);
    if (!file)
        return err->code;
    struct cn_buf list = {0};
    int rc = make_bindings(call, file, wishes, count, &list, err);
    if (rc == 0)
        rc = write_version(v4, id, file, &list, err);
    cn_buf_fini(&list);
    cn_json_free(file);
    return rc;
}

/* Names are told, one by one only if there is one. */
static void note_secrets(struct cn_control_call *call, struct cn_depot_state *state,
                         const char *worker, const struct wish *wishes, size_t count)
{
    char many[40];
    snprintf(many, sizeof(many), "%zu secrets", count);
    if (count == 1)
        cn_v4_note(call, state, wishes->text ? "secret put" : "secret delete", worker,
                   wishes->name);
    else
        cn_v4_note(call, state, "secret bulk", worker, many);
}

/* Whoever changes secrets deploys what the newest version has: it must be the one that serves. */
static int check_newest(struct cn_control_call *call, const struct cn_depot_script *script,
                        bool waits, struct cn_err *err)
{
    if (!script->version_count)
        return cn_v4_fail(call, err, CN_ENOTFOUND, 10007, "the worker has no version yet");
    if (!waits && (script->serving.count != 1 ||
                   !cn_depot_serves(script, script->versions[script->version_count - 1].id)))
        return cn_v4_fail(call, err, CN_EEXISTS, 10215,
                          "the newest version does not serve alone; deploy it first, or use "
                          "wrangler versions secret");
    return 0;
}

static int end_change(struct cn_control_call *call, struct cn_depot_state *state,
                      struct cn_depot_script *script, const struct change *change,
                      struct cn_err *err)
{
    note_secrets(call, state, script->name, change->wishes, change->count);
    if (change->waits)
        return cn_v4_keep(call, state, err);
    cn_depot_deploy_version(script, change->id, "api", call->who.name, NULL, cn_v4_now());
    return cn_v4_deploy(call, state, err);
}

static int change_secrets(struct cn_control_call *call, struct change *change, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_v4_change(call, err);
    if (!state)
        return err->code;
    struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    int rc = script ? check_newest(call, script, change->waits, err) : err->code;
    struct cn_depot_version version = {.created_ms = cn_v4_now(),
                                       .source = "api",
                                       .author = call->who.name,
                                       .message = (char *)change->message,
                                       .tag = (char *)change->tag};
    cn_depot_uuid(version.id);
    memcpy(change->id, version.id, sizeof(version.id));
    if (rc == 0) {
        memcpy(version.code, script->versions[script->version_count - 1].code,
               sizeof(version.code));
        rc = make_version(call, script, change->wishes, change->count, version.id, err);
    }
    if (rc == 0) {
        cn_depot_add_version(script, &version);
        rc = end_change(call, state, script, change, err);
    } else {
        cn_depot_change_drop(v4->depot, state);
    }
    if (rc < 0)
        cn_depot_remove_version(v4->depot, version.id);
    else
        cn_info("%s: secrets were changed by %s", call->path[6], call->who.name);
    return rc;
}

static int check_wish(struct cn_control_call *call, const struct wish *wish, struct cn_err *err)
{
    if (!wish->name || !*wish->name || strlen(wish->name) > 200)
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "a secret needs a name");
    if (wish->text && (wish->text->kind != CN_JSON_STRING || wish->text->size > SECRET_MAX))
        return cn_v4_fail(call, err, CN_EINVALID, 10021,
                          "the text of a secret has at most %u bytes", SECRET_MAX);
    return 0;
}

static int change_secret(struct cn_control_call *call, struct wish *wish, struct cn_err *err)
{
    int rc = check_wish(call, wish, err);
    return rc < 0 ? rc : change_secrets(call, &(struct change){.wishes = wish, .count = 1}, err);
}

static int put_secret(struct cn_control_call *call, struct cn_err *err)
{
    struct wish wish = {cn_json_text(call->json, "name"), cn_json_find(call->json, "text")};
    const char *type = cn_json_text(call->json, "type");
    if (!wish.text || (type && strcmp(type, "secret_text") != 0))
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "a secret has a text");
    int rc = change_secret(call, &wish, err);
    if (rc < 0)
        return rc;
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '{');
    cn_v4_put_text(&json, "name", wish.name);
    cn_v4_put_text(&json, "type", "secret_text");
    cn_buf_append_byte(&json, '}');
    return cn_control_result(call, &json);
}

/* {NAME: {"type","name","text"}, a text, or null} */
static int read_secrets(struct cn_control_call *call, const struct cn_json *all,
                        struct wish wishes[CN_V4_BINDING_MAX], size_t *count, struct cn_err *err)
{
    int rc = 0;
    for (const struct cn_json *item = all ? all->first : NULL; item && rc == 0; item = item->next) {
        const struct cn_json *text = item->kind == CN_JSON_STRING ? item
                                     : item->kind == CN_JSON_NULL ? NULL
                                                                  : cn_json_find(item, "text");
        const char *name = item->name ? item->name : cn_json_text(item, "name");
        if (*count == CN_V4_BINDING_MAX)
            return cn_v4_fail(call, err, CN_ELIMIT, 10021, "there are too many secrets");
        if (item->kind == CN_JSON_OBJECT && !text)
            return cn_v4_fail(call, err, CN_EINVALID, 10021, "a secret has a text");
        wishes[*count] = (struct wish){name, text};
        rc = check_wish(call, &wishes[(*count)++], err);
    }
    return rc;
}

/* {"secrets": {...}}, or those members themselves. */
static int put_secrets(struct cn_control_call *call, struct cn_err *err)
{
    const struct cn_json *all = cn_json_find(call->json, "secrets");
    struct wish wishes[CN_V4_BINDING_MAX];
    size_t count = 0;
    int rc = read_secrets(call, all ? all : call->json, wishes, &count, err);
    if (rc == 0 && count)
        rc = change_secrets(call, &(struct change){.wishes = wishes, .count = count}, err);
    return rc < 0 ? rc : list_secrets(call, err);
}

/* PATCH workers/workers/NAME/versions/latest: {"env": {...}, "annotations": {...}}, as `wrangler
 * versions secret` sends it: a version that waits. */
int cn_v4_patch_version(struct cn_control_call *call, struct cn_err *err)
{
    const struct cn_json *env = cn_json_find(call->json, "env");
    const struct cn_json *notes = cn_json_find(call->json, "annotations");
    struct wish wishes[CN_V4_BINDING_MAX];
    struct change change = {.wishes = wishes,
                            .waits = true,
                            .message = cn_json_text(notes, "workers/message"),
                            .tag = cn_json_text(notes, "workers/tag")};
    if (!env || env->kind != CN_JSON_OBJECT || !env->first)
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "\"env\" must name the secrets to change");
    if ((change.message && strlen(change.message) > CN_V4_MESSAGE_MAX) ||
        (change.tag && strlen(change.tag) > CN_V4_MESSAGE_MAX))
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "a message or a tag has at most %u bytes",
                          CN_V4_MESSAGE_MAX);
    for (const struct cn_json *item = call->json->first; item; item = item->next) {
        if (item != env && item != notes)
            return cn_v4_fail(call, err, CN_EINVALID, 10021,
                              "of a version only secrets (\"env\") are changed: upload it anew");
    }
    for (const struct cn_json *item = env->first; item; item = item->next) {
        const char *type = cn_json_text(item, "type");
        if (item->kind != CN_JSON_NULL && (!type || strcmp(type, "secret_text") != 0))
            return cn_v4_fail(call, err, CN_EINVALID, 10021,
                              "of a version only secrets are changed: %.60s is none", item->name);
    }
    int rc = read_secrets(call, env, wishes, &change.count, err);
    if (rc == 0)
        rc = change_secrets(call, &change, err);
    return rc < 0 ? rc : cn_v4_answer_version(call, change.id, err);
}

int cn_v4_secrets(struct cn_control_call *call, struct cn_err *err)
{
    if (strcmp(call->method, "GET") == 0)
        return list_secrets(call, err);
    if (strcmp(call->method, "PATCH") == 0)
        return put_secrets(call, err);
    if (strcmp(call->method, "PUT") == 0)
        return put_secret(call, err);
    struct wish wish = {call->path[8], NULL};
    int rc = change_secret(call, &wish, err);
    if (rc < 0)
        return rc;
    struct cn_buf json = {0};
    cn_buf_append_str(&json, "null");
    return cn_control_result(call, &json);
}

/* --- settings
 * ---------------------------------------------------------------------------------- */

/* The part "settings" of a multipart body, or the body itself; NULL with an error. */
static struct cn_json *read_settings(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_multipart parser;
    struct cn_multipart_part part;
    char boundary[80];
    const uint8_t *bytes = call->body.data ? call->body.data : (const uint8_t *)"";
    struct cn_json *json = NULL;
    if (cn_control_take(call, cn_json_cost((const char *)bytes, call->body.size, CN_JSON_ASKED_MAX),
                        err) < 0)
        return NULL;
    if (!cn_v4_boundary(call->content_type, boundary))
        return cn_json_parse_some((const char *)bytes, call->body.size, CN_JSON_ASKED_MAX, err);
    int rc;
    cn_multipart_init(&parser, bytes, call->body.size, boundary, strlen(boundary));
    while (!json && (rc = cn_multipart_next(&parser, &part, err)) > 0) {
        if (part.name_size != 8 || memcmp(part.name, "settings", 8) != 0)
            continue;
        json = cn_json_parse_some((const char *)bytes + part.start, part.end - part.start,
                                  CN_JSON_ASKED_MAX, err);
        if (!json)
            break;
    }
    cn_multipart_fini(&parser);
    if (!json && !err->code)
        cn_v4_fail(call, err, CN_EINVALID, 10021, "the part \"settings\" is missing");
    return json;
}

static bool is_listed(const struct cn_json *list, const char *name)
{
    for (const struct cn_json *item = list->first; item; item = item->next) {
        const char *own = cn_json_text(item, "name");
        if (own && strcmp(own, name) == 0)
            return true;
    }
    return false;
}

/* What is not in the list goes, if it is a secret; anything else belongs to an upload. */
static int add_removed(struct cn_control_call *call, const struct cn_json *list,
                       const struct cn_json *file, struct wish *wishes, size_t *count,
                       struct cn_err *err)
{
    const struct cn_json *old = cn_json_find(file, "bindings");
    for (const struct cn_json *item = old ? old->first : NULL; item; item = item->next) {
        const char *name = cn_json_text(item, "name"), *type = cn_json_text(item, "type");
        if (!name || !type || is_listed(list, name))
            continue;
        if (strcmp(type, "secret_text") != 0 || *count == CN_V4_BINDING_MAX)
            return cn_v4_fail(call, err, CN_EINVALID, 10021,
                              "the binding %s is changed by an upload, not by settings", name);
        wishes[(*count)++] = (struct wish){name, NULL};
    }
    return 0;
}

static int read_wishes(struct cn_control_call *call, const struct cn_json *list,
                       struct wish *wishes, size_t *count, struct cn_err *err)
{
    int rc = 0;
    for (const struct cn_json *item = list->first; item && rc == 0; item = item->next) {
        const char *type = cn_json_text(item, "type");
        const struct cn_json *text = cn_json_find(item, "text");
        if (!type || strcmp(type, "secret_text") != 0 || !text)
            continue; /* it stays as it is */
        if (*count == CN_V4_BINDING_MAX)
            return cn_v4_fail(call, err, CN_ELIMIT, 10021, "there are too many secrets");
        wishes[*count] = (struct wish){cn_json_text(item, "name"), text};
        rc = check_wish(call, &wishes[(*count)++], err);
    }
    return rc;
}

/* PATCH .../settings, as `wrangler secret bulk` sends it: bindings that stay, by name, and secrets
 * with their texts. */
int cn_v4_patch_bindings(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct wish wishes[CN_V4_BINDING_MAX];
    size_t count = 0;
    int rc = cn_control_read_body(call, CN_V4_UPLOAD_MAX, err);
    struct cn_json *settings = rc == 0 ? read_settings(call, err) : NULL;
    if (!settings)
        return err->code;
    const struct cn_json *list = cn_json_find(settings, "bindings");
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    struct cn_json *file =
        script && script->version_count
            ? cn_depot_read_version(v4->depot, script->versions[script->version_count - 1].id, err)
            : NULL;
    rc = script ? 0 : err->code;
    if (rc == 0 && list && list->kind == CN_JSON_ARRAY) {
        rc = read_wishes(call, list, wishes, &count, err);
        if (rc == 0 && file)
            rc = add_removed(call, list, file, wishes, &count, err);
    }
    if (rc == 0 && count)
        rc = change_secrets(call, &(struct change){.wishes = wishes, .count = count}, err);
    cn_json_free(file);
    cn_json_free(settings);
    cn_depot_state_unref(state);
    return rc < 0 ? rc : cn_v4_settings(call, err);
}
