/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_versions.c - versions of a worker, and which one serves. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/mem.h"
#include "v4/v4.h"
#include "worker/script.h"

static void append_annotations(struct cn_buf *json, const char *message, const char *tag,
                               const char *trigger)
{
    cn_buf_append_str(json, ",\"annotations\":{");
    cn_v4_put_text(json, "workers/triggered_by", trigger);
    if (message && *message)
        cn_v4_put_text(json, "workers/message", message);
    if (tag && *tag)
        cn_v4_put_text(json, "workers/tag", tag);
    cn_buf_append_byte(json, '}');
}

void cn_v4_append_bindings(struct cn_buf *json, const struct cn_json *file)
{
    const struct cn_json *list = cn_json_find(file, "bindings");
    cn_buf_append_str(json, ",\"bindings\":[");
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        const char *type = cn_json_text(item, "type"), *name = cn_json_text(item, "name");
        cn_buf_append_str(json, item == list->first ? "" : ",");
        if (type && name && strcmp(type, "secret_text") == 0) {
            cn_buf_append_byte(json, '{');
            cn_v4_put_text(json, "type", type);
            cn_v4_put_text(json, "name", name);
            cn_buf_append_byte(json, '}');
        } else {
            cn_json_write(json, item);
        }
    }
    cn_buf_append_byte(json, ']');
}

static void append_resources(struct cn_buf *json, const char *id, const struct cn_json *file)
{
    static const char *const keys[] = {"compatibility_date", "compatibility_flags", "limits"};
    cn_buf_append_str(json, ",\"startup_time_ms\":0,\"resources\":{\"script\":{");
    cn_v4_put_text(json, "etag", id);
    cn_buf_append_str(json, ",\"handlers\":[\"fetch\"],\"last_deployed_from\":\"wrangler\"},"
                            "\"script_runtime\":{\"usage_model\":\"standard\"");
    for (size_t i = 0; i < CN_ARRAY_COUNT(keys); i++) {
        const struct cn_json *value = cn_json_find(file, keys[i]);
        if (!value)
            continue;
        cn_buf_printf(json, ",\"%s\":", keys[i]);
        cn_json_write(json, value);
    }
    cn_buf_append_byte(json, '}');
    cn_v4_append_bindings(json, file);
    cn_buf_append_byte(json, '}');
}

void cn_v4_append_version(struct cn_buf *json, const struct cn_depot_version *version,
                          const struct cn_json *file)
{
    cn_buf_append_byte(json, '{');
    cn_v4_put_text(json, "id", version->id);
    cn_buf_printf(json, ",\"number\":%" PRId64 ",\"metadata\":{\"created_on\":", version->number);
    cn_depot_append_time(json, version->created_ms);
    cn_buf_append_str(json, ",\"modified_on\":");
    cn_depot_append_time(json, version->created_ms);
    cn_v4_put_text(json, "source", version->source);
    cn_v4_put_text(json, "author_id", "");
    cn_v4_put_text(json, "author_email", version->author);
    cn_buf_append_str(json, ",\"has_preview\":false}");
    append_annotations(json, version->message, version->tag,
                       strcmp(version->id, version->code) == 0 ? "upload" : "secret");
    if (file)
        append_resources(json, version->id, file);
    cn_buf_append_byte(json, '}');
}

int cn_v4_list_versions(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    struct cn_buf json = {0};
    if (script) {
        cn_buf_append_str(&json, "{\"items\":[");
        for (size_t i = script->version_count; i-- > 0;) {
            cn_v4_append_version(&json, &script->versions[i], NULL);
            cn_buf_append_str(&json, i ? "," : "");
        }
        cn_buf_append_str(&json, "]}");
    }
    cn_depot_state_unref(state);
    return json.size ? cn_control_result(call, &json) : err->code;
}

int cn_v4_answer_version(struct cn_control_call *call, const char *id, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    const struct cn_depot_version *version = script ? cn_depot_find_version(script, id) : NULL;
    struct cn_json *file = NULL;
    struct cn_buf json = {0};
    if (script && !version)
        cn_v4_fail(call, err, CN_ENOTFOUND, 10146, "there is no such version");
    if (version)
        file = cn_depot_read_version(v4->depot, version->id, err);
    if (file)
        cn_v4_append_version(&json, version, file);
    cn_json_free(file);
    cn_depot_state_unref(state);
    return json.size ? cn_control_result(call, &json) : err->code;
}

int cn_v4_get_version(struct cn_control_call *call, struct cn_err *err)
{
    return cn_v4_answer_version(call, call->path[8], err);
}

/* --- deployments
 * ----------------------------------------------------------------------------------- */

/* Why a version does not serve, and what can be done: members that only Cairn has. */
static void append_failure(struct cn_buf *json, const struct cn_deployment *served,
                           const char *version)
{
    for (size_t i = 0; served && i < served->script_count; i++) {
        struct cn_script *script = served->scripts[i];
        if (!script->version || strcmp(script->version, version) != 0)
            continue;
        char *failure = cn_script_failure(script);
        if (failure)
            cn_v4_put_text(json, "failure", failure);
        if (failure && script->way_back)
            cn_v4_put_text(json, "way_back", script->way_back);
        cn_free(failure);
    }
}

/* `served`: what the lanes have, for the deployment that is current; else NULL. */
static void append_deployment(struct cn_buf *json, const struct cn_depot_deployment *deployment,
                              const struct cn_deployment *served)
{
    cn_buf_append_byte(json, '{');
    cn_v4_put_text(json, "id", deployment->id);
    cn_v4_put_text(json, "source", deployment->source);
    cn_v4_put_text(json, "strategy", "percentage");
    cn_v4_put_text(json, "author_email", deployment->author);
    cn_buf_append_str(json, ",\"created_on\":");
    cn_depot_append_time(json, deployment->created_ms);
    append_annotations(json, deployment->message, NULL,
                       strcmp(deployment->source, "api") == 0 ? "secret" : "upload");
    cn_buf_append_str(json, ",\"versions\":[");
    for (size_t i = 0; i < deployment->shares.count; i++) {
        const struct cn_depot_share *item = &deployment->shares.items[i];
        cn_buf_append_str(json, i ? ",{" : "{");
        cn_v4_put_text(json, "version_id", item->version);
        cn_buf_printf(json, ",\"percentage\":%u", item->share / 100);
        if (item->share % 100)
            cn_buf_printf(json, ".%02u", item->share % 100);
        append_failure(json, served, item->version);
        cn_buf_append_byte(json, '}');
    }
    cn_buf_append_str(json, "]}");
}

int cn_v4_list_deployments(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    struct cn_buf json = {0};
    if (script) {
        struct cn_deployment *served = cn_control_deployment(call);
        cn_buf_append_str(&json, "{\"deployments\":[");
        for (size_t i = script->deployment_count; i-- > 0;) {
            bool newest = i + 1 == script->deployment_count;
            append_deployment(&json, &script->deployments[i], newest ? served : NULL);
            cn_buf_append_str(&json, i ? "," : "");
        }
        cn_buf_append_str(&json, "]}");
        if (served)
            cn_deployment_unref(served);
    }
    cn_depot_state_unref(state);
    return json.size ? cn_control_result(call, &json) : err->code;
}

int cn_v4_get_deployment(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    struct cn_buf json = {0};
    for (size_t i = 0; script && i < script->deployment_count; i++) {
        if (strcmp(script->deployments[i].id, call->path[8]) == 0 && !json.size)
            append_deployment(&json, &script->deployments[i], NULL);
    }
    if (script && !json.size)
        cn_v4_fail(call, err, CN_ENOTFOUND, 10145, "there is no such deployment");
    cn_depot_state_unref(state);
    return json.size ? cn_control_result(call, &json) : err->code;
}

/* What the body asks for: versions with percentages of two digits at most behind the point. */
static int asked_shares(struct cn_control_call *call, struct cn_depot_shares *shares,
                        struct cn_err *err)
{
    const struct cn_json *list = cn_json_find(call->json, "versions");
    unsigned sum = 0;
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        const struct cn_json *percentage = cn_json_find(item, "percentage");
        const char *id = cn_json_text(item, "version_id");
        if (!id || !percentage ||
            (percentage->kind != CN_JSON_NUMBER && percentage->kind != CN_JSON_INT) ||
            percentage->number < 0 || percentage->number > 100)
            return cn_v4_fail(call, err, CN_EINVALID, 10021,
                              "a version of a deployment has a version_id and a percentage");
        if (shares->count == CN_DEPOT_ROLLOUT_MAX)
            return cn_v4_fail(call, err, CN_EINVALID, 10021, "a deployment has at most %d versions",
                              CN_DEPOT_ROLLOUT_MAX);
        struct cn_depot_share *share = &shares->items[shares->count++];
        snprintf(share->version, sizeof(share->version), "%s", id);
        share->share = (unsigned)(percentage->number * 100 + 0.5);
        sum += share->share;
        if (shares->count == 2 && strcmp(shares->items[0].version, share->version) == 0)
            return cn_v4_fail(call, err, CN_EINVALID, 10021, "the version %s is named twice",
                              share->version);
    }
    if (sum != CN_DEPOT_SHARE_ALL)
        return cn_v4_fail(call, err, CN_EINVALID, 10021,
                          "the percentages of a deployment make 100 together");
    return 0;
}

static int deploy_shares(struct cn_control_call *call, const struct cn_depot_shares *shares,
                         const char *message, struct cn_buf *json, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_v4_change(call, err);
    if (!state)
        return err->code;
    struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    for (size_t i = 0; script && i < shares->count; i++) {
        if (!cn_depot_find_version(script, shares->items[i].version)) {
            cn_v4_fail(call, err, CN_ENOTFOUND, 10146, "there is no such version");
            script = NULL;
        }
    }
    if (!script) {
        cn_depot_change_drop(v4->depot, state);
        return err->code;
    }
    for (size_t i = 0; i < shares->count; i++) {
        char *what = cn_sprintf("%s %u.%02u%%", shares->items[i].version,
                                shares->items[i].share / 100, shares->items[i].share % 100);
        cn_v4_note(call, state, "roll-out", script->name, what);
        cn_free(what);
    }
    cn_depot_deploy_shares(script, shares, "wrangler", call->who.name, message, cn_v4_now());
    append_deployment(json, &script->deployments[script->deployment_count - 1], NULL);
    return cn_v4_deploy(call, state, err);
}

int cn_v4_make_deployment(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_shares shares = {0};
    int rc = asked_shares(call, &shares, err);
    if (rc < 0)
        return rc;
    const char *message = cn_json_text(cn_json_find(call->json, "annotations"), "workers/message");
    if (message && strlen(message) > CN_V4_MESSAGE_MAX)
        return cn_v4_fail(call, err, CN_EINVALID, 10021, "a message has at most %u bytes",
                          CN_V4_MESSAGE_MAX);
    struct cn_buf json = {0};
    rc = deploy_shares(call, &shares, message, &json, err);
    if (rc < 0) {
        cn_buf_fini(&json);
        return rc;
    }
    for (size_t i = 0; i < shares.count; i++)
        cn_info("%s: version %s was deployed with %u.%02u %% by %s", call->path[6],
                shares.items[i].version, shares.items[i].share / 100, shares.items[i].share % 100,
                call->who.name);
    return cn_control_result(call, &json);
}
