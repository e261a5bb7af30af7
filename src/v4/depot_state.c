/* SPDX-License-Identifier: Apache-2.0 */
/* v4/depot_state.c - the state as structs and as JSON; see depot.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/rand.h"
#include "text/hex.h"
#include "v4/depot.h"

#define FORMAT 1

/* --- small things ------------------------------------------------------------------------------
 */

void cn_depot_digits(char text[33])
{
    uint8_t bytes[16];
    cn_rand_secure(bytes, sizeof(bytes));
    cn_hex_encode(bytes, sizeof(bytes), text);
    text[32] = 0;
}

void cn_depot_uuid(char text[CN_DEPOT_ID_SIZE])
{
    char digits[33];
    cn_depot_digits(digits);
    digits[12] = '4';
    digits[16] = "89ab"[(unsigned char)digits[16] % 4];
    snprintf(text, CN_DEPOT_ID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", digits, digits + 8, digits + 12,
             digits + 16, digits + 20);
}

void cn_depot_append_time(struct cn_buf *json, int64_t time_ms)
{
    char text[40];
    struct tm tm;
    time_t seconds = (time_t)(time_ms / 1000);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
    cn_buf_printf(json, "\"%s.%03d000Z\"", text, (int)(time_ms % 1000));
}

void cn_depot_texts_add(struct cn_depot_texts *texts, const char *text)
{
    texts->items = cn_realloc(texts->items, (texts->count + 1) * sizeof(*texts->items));
    texts->items[texts->count++] = cn_strdup(text);
}

void cn_depot_texts_clear(struct cn_depot_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        cn_free(texts->items[i]);
    cn_free(texts->items);
    *texts = (struct cn_depot_texts){0};
}

static void fini_version(struct cn_depot_version *version)
{
    cn_free(version->source);
    cn_free(version->author);
    cn_free(version->message);
    cn_free(version->tag);
}

static void fini_deployment(struct cn_depot_deployment *deployment)
{
    cn_free(deployment->source);
    cn_free(deployment->author);
    cn_free(deployment->message);
}

static void fini_script(struct cn_depot_script *script)
{
    cn_free(script->name);
    struct cn_depot_texts *const lists[] = {&script->crons, &script->routes, &script->domains,
                                            &script->migrations, &script->consumers};
    for (size_t i = 0; i < CN_ARRAY_COUNT(lists); i++)
        cn_depot_texts_clear(lists[i]);
    for (size_t i = 0; i < script->version_count; i++)
        fini_version(&script->versions[i]);
    for (size_t i = 0; i < script->deployment_count; i++)
        fini_deployment(&script->deployments[i]);
    cn_free(script->versions);
    cn_free(script->deployments);
}

static void fini_resource(struct cn_depot_resource *resource)
{
    cn_free(resource->kind);
    cn_free(resource->id);
    cn_free(resource->name);
}

struct cn_depot_state *cn_depot_state_new(void)
{
    struct cn_depot_state *state = CN_NEW(struct cn_depot_state);
    atomic_init(&state->refs, 1);
    cn_depot_digits(state->account);
    return state;
}

struct cn_depot_state *cn_depot_state_ref(struct cn_depot_state *state)
{
    atomic_fetch_add(&state->refs, 1);
    return state;
}

static void fini_note(struct cn_depot_note *note)
{
    cn_free(note->by);
    cn_free(note->action);
    cn_free(note->worker);
    cn_free(note->detail);
}

void cn_depot_state_unref(struct cn_depot_state *state)
{
    if (!state || atomic_fetch_sub(&state->refs, 1) != 1)
        return;
    for (size_t i = 0; i < state->script_count; i++)
        fini_script(&state->scripts[i]);
    for (size_t i = 0; i < state->resource_count; i++)
        fini_resource(&state->resources[i]);
    for (size_t i = 0; i < state->note_count; i++)
        fini_note(&state->notes[i]);
    cn_depot_texts_clear(&state->gone);
    cn_depot_texts_clear(&state->pullers);
    cn_free(state->notes);
    cn_free(state->scripts);
    cn_free(state->resources);
    cn_free(state);
}

/* --- changes -----------------------------------------------------------------------------------
 */

struct cn_depot_script *cn_depot_find(const struct cn_depot_state *state, const char *name)
{
    for (size_t i = 0; i < state->script_count; i++) {
        if (strcmp(state->scripts[i].name, name) == 0)
            return &state->scripts[i];
    }
    return NULL;
}

struct cn_depot_script *cn_depot_add_script(struct cn_depot_state *state, const char *name,
                                            int64_t now_ms)
{
    size_t at = 0;
    while (at < state->script_count && strcmp(state->scripts[at].name, name) < 0)
        at++;
    state->scripts =
        cn_realloc(state->scripts, (state->script_count + 1) * sizeof(*state->scripts));
    memmove(state->scripts + at + 1, state->scripts + at,
            (state->script_count++ - at) * sizeof(*state->scripts));
    struct cn_depot_script *script = &state->scripts[at];
    *script = (struct cn_depot_script){.name = cn_strdup(name),
                                       .created_ms = now_ms,
                                       .modified_ms = now_ms,
                                       .next_number = 1,
                                       .subdomain = true};
    cn_depot_digits(script->id);
    for (size_t i = 0; i < state->gone.count; i++) {
        if (strcmp(state->gone.items[i], name) != 0)
            continue;
        cn_free(state->gone.items[i]);
        state->gone.items[i] = state->gone.items[--state->gone.count];
        break;
    }
    return script;
}

void cn_depot_remove_script(struct cn_depot_state *state, const char *name)
{
    struct cn_depot_script *script = cn_depot_find(state, name);
    CN_ASSERT(script);
    size_t at = (size_t)(script - state->scripts);
    cn_depot_texts_add(&state->gone, name);
    fini_script(script);
    memmove(script, script + 1, (--state->script_count - at) * sizeof(*script));
}

const struct cn_depot_version *cn_depot_find_version(const struct cn_depot_script *script,
                                                     const char *id)
{
    for (size_t i = 0; i < script->version_count; i++) {
        if (strcmp(script->versions[i].id, id) == 0)
            return &script->versions[i];
    }
    return NULL;
}

static char *copy_text(const char *text)
{
    return cn_strdup(text ? text : "");
}

static struct cn_depot_version *push_version(struct cn_depot_script *script,
                                             const struct cn_depot_version *from)
{
    script->versions =
        cn_realloc(script->versions, (script->version_count + 1) * sizeof(*script->versions));
    struct cn_depot_version *version = &script->versions[script->version_count++];
    *version = *from;
    version->source = copy_text(from->source);
    version->author = copy_text(from->author);
    version->message = copy_text(from->message);
    version->tag = copy_text(from->tag);
    return version;
}

bool cn_depot_serves(const struct cn_depot_script *script, const char *version)
{
    for (size_t i = 0; i < script->serving.count; i++) {
        if (strcmp(script->serving.items[i].version, version) == 0)
            return true;
    }
    return false;
}

const char *cn_depot_serving(const struct cn_depot_script *script)
{
    return script->serving.count ? script->serving.items[0].version : "";
}

/* The oldest version that nothing needs goes when there are too many; those that serve stay. */
static void drop_old_version(struct cn_depot_script *script)
{
    if (script->version_count <= CN_DEPOT_VERSION_MAX)
        return;
    size_t at = 0;
    while (cn_depot_serves(script, script->versions[at].id))
        at++;
    fini_version(&script->versions[at]);
    memmove(script->versions + at, script->versions + at + 1,
            (--script->version_count - at) * sizeof(*script->versions));
}

struct cn_depot_version *cn_depot_add_version(struct cn_depot_script *script,
                                              const struct cn_depot_version *from)
{
    struct cn_depot_version *version = push_version(script, from);
    version->number = script->next_number++;
    script->modified_ms = from->created_ms;
    drop_old_version(script);
    return &script->versions[script->version_count - 1];
}

static struct cn_depot_deployment *push_deployment(struct cn_depot_script *script,
                                                   const struct cn_depot_deployment *from)
{
    script->deployments = cn_realloc(script->deployments,
                                     (script->deployment_count + 1) * sizeof(*script->deployments));
    struct cn_depot_deployment *to = &script->deployments[script->deployment_count++];
    *to = *from;
    to->source = copy_text(from->source);
    to->author = copy_text(from->author);
    to->message = copy_text(from->message);
    return to;
}

/* The newest first; there are few. */
static void sort_shares(const struct cn_depot_script *script, struct cn_depot_shares *shares)
{
    for (size_t i = 1; i < shares->count; i++) {
        for (size_t k = i; k > 0; k--) {
            struct cn_depot_share *a = &shares->items[k - 1], *b = &shares->items[k];
            if (cn_depot_find_version(script, a->version)->number >=
                cn_depot_find_version(script, b->version)->number)
                break;
            struct cn_depot_share c = *a;
            *a = *b;
            *b = c;
        }
    }
}

/* What a deployment can be made of: versions that are there, each once, all of the share. */
static bool shares_are_good(const struct cn_depot_script *script,
                            const struct cn_depot_shares *shares)
{
    unsigned sum = 0;
    for (size_t i = 0; i < shares->count; i++) {
        if (!cn_depot_find_version(script, shares->items[i].version) ||
            shares->items[i].share > CN_DEPOT_SHARE_ALL)
            return false;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(shares->items[i].version, shares->items[k].version) == 0)
                return false;
        }
        sum += shares->items[i].share;
    }
    return shares->count == 0 || sum == CN_DEPOT_SHARE_ALL;
}

void cn_depot_deploy_version(struct cn_depot_script *script, const char *version,
                             const char *source, const char *author, const char *message,
                             int64_t now_ms)
{
    struct cn_depot_shares shares = {.count = 1};
    snprintf(shares.items[0].version, sizeof(shares.items[0].version), "%s", version);
    shares.items[0].share = CN_DEPOT_SHARE_ALL;
    cn_depot_deploy_shares(script, &shares, source, author, message, now_ms);
}

void cn_depot_deploy_shares(struct cn_depot_script *script, const struct cn_depot_shares *shares,
                            const char *source, const char *author, const char *message,
                            int64_t now_ms)
{
    CN_ASSERT(shares->count && shares_are_good(script, shares));
    struct cn_depot_deployment deployment = {.shares = *shares,
                                             .created_ms = now_ms,
                                             .source = (char *)source,
                                             .author = (char *)author,
                                             .message = (char *)message};
    cn_depot_uuid(deployment.id);
    sort_shares(script, &deployment.shares);
    script->serving = deployment.shares;
    push_deployment(script, &deployment);
    if (script->deployment_count > CN_DEPOT_VERSION_MAX) {
        fini_deployment(&script->deployments[0]);
        memmove(script->deployments, script->deployments + 1,
                --script->deployment_count * sizeof(*script->deployments));
    }
    script->modified_ms = now_ms;
}

const struct cn_depot_resource *cn_depot_resource(const struct cn_depot_state *state,
                                                  const char *kind, const char *id,
                                                  const char *name)
{
    for (size_t i = 0; i < state->resource_count; i++) {
        const struct cn_depot_resource *resource = &state->resources[i];
        if (strcmp(resource->kind, kind) == 0 && (!id || strcmp(resource->id, id) == 0) &&
            (!name || strcmp(resource->name, name) == 0))
            return resource;
    }
    return NULL;
}

void cn_depot_add_resource(struct cn_depot_state *state, const char *kind, const char *id,
                           const char *name, int64_t now_ms)
{
    state->resources =
        cn_realloc(state->resources, (state->resource_count + 1) * sizeof(*state->resources));
    state->resources[state->resource_count++] =
        (struct cn_depot_resource){cn_strdup(kind), cn_strdup(id), cn_strdup(name), now_ms};
}

void cn_depot_remove_resource(struct cn_depot_state *state, const char *kind, const char *id)
{
    const struct cn_depot_resource *resource = cn_depot_resource(state, kind, id, NULL);
    if (!resource)
        return;
    size_t at = (size_t)(resource - state->resources);
    fini_resource(&state->resources[at]);
    memmove(state->resources + at, state->resources + at + 1,
            (--state->resource_count - at) * sizeof(*state->resources));
}

void cn_depot_rename_resource(struct cn_depot_state *state, const char *kind, const char *id,
                              const char *name)
{
    const struct cn_depot_resource *resource = cn_depot_resource(state, kind, id, NULL);
    CN_ASSERT(resource);
    struct cn_depot_resource *own = &state->resources[resource - state->resources];
    cn_free(own->name);
    own->name = cn_strdup(name);
}

void cn_depot_add_note(struct cn_depot_state *state, const struct cn_depot_note *from)
{
    if (state->note_count == CN_DEPOT_NOTE_MAX) {
        fini_note(&state->notes[0]);
        memmove(state->notes, state->notes + 1, --state->note_count * sizeof(*state->notes));
    }
    state->notes = cn_realloc(state->notes, (state->note_count + 1) * sizeof(*state->notes));
    struct cn_depot_note *note = &state->notes[state->note_count++];
    *note = *from;
    note->by = copy_text(from->by);
    note->action = copy_text(from->action);
    note->worker = copy_text(from->worker);
    note->detail = copy_text(from->detail);
}

/* --- as JSON -----------------------------------------------------------------------------------
 */

/* ,"NAME":"TEXT" */
static void put_text(struct cn_buf *json, const char *name, const char *text)
{
    cn_buf_printf(json, "%s\"%s\":", json->data[json->size - 1] == '{' ? "" : ",", name);
    cn_buf_append_json(json, text, strlen(text));
}

static void put_int(struct cn_buf *json, const char *name, int64_t value)
{
    cn_buf_printf(json, ",\"%s\":%" PRId64, name, value);
}

static void put_texts(struct cn_buf *json, const char *name, const struct cn_depot_texts *texts)
{
    cn_buf_printf(json, ",\"%s\":[", name);
    for (size_t i = 0; i < texts->count; i++) {
        if (i)
            cn_buf_append_byte(json, ',');
        cn_buf_append_json(json, texts->items[i], strlen(texts->items[i]));
    }
    cn_buf_append_byte(json, ']');
}

static void put_version(struct cn_buf *json, const struct cn_depot_version *version)
{
    cn_buf_append_byte(json, '{');
    put_text(json, "id", version->id);
    put_text(json, "code", version->code);
    put_int(json, "number", version->number);
    put_int(json, "created", version->created_ms);
    put_text(json, "source", version->source);
    put_text(json, "author", version->author);
    put_text(json, "message", version->message);
    put_text(json, "tag", version->tag);
    cn_buf_append_byte(json, '}');
}

/* One version by its name alone; of several, that of the newest, and a list. */
static void put_shares(struct cn_buf *json, const char *name, const struct cn_depot_shares *shares)
{
    put_text(json, name, shares->count ? shares->items[0].version : "");
    if (shares->count < 2)
        return;
    cn_buf_append_str(json, ",\"shares\":[");
    for (size_t i = 0; i < shares->count; i++) {
        cn_buf_append_str(json, i ? ",{" : "{");
        put_text(json, "version", shares->items[i].version);
        put_int(json, "share", shares->items[i].share);
        cn_buf_append_byte(json, '}');
    }
    cn_buf_append_byte(json, ']');
}

static void put_deployment(struct cn_buf *json, const struct cn_depot_deployment *deployment)
{
    cn_buf_append_byte(json, '{');
    put_text(json, "id", deployment->id);
    put_shares(json, "version", &deployment->shares);
    put_int(json, "created", deployment->created_ms);
    put_text(json, "source", deployment->source);
    put_text(json, "author", deployment->author);
    put_text(json, "message", deployment->message);
    cn_buf_append_byte(json, '}');
}

static void put_script(struct cn_buf *json, const struct cn_depot_script *script)
{
    cn_buf_append_byte(json, '{');
    put_text(json, "name", script->name);
    put_text(json, "id", script->id);
    put_int(json, "created", script->created_ms);
    put_int(json, "modified", script->modified_ms);
    put_int(json, "next_number", script->next_number);
    put_shares(json, "serving", &script->serving);
    put_int(json, "subdomain", script->subdomain);
    put_int(json, "previews", script->previews);
    put_texts(json, "crons", &script->crons);
    put_texts(json, "routes", &script->routes);
    put_texts(json, "domains", &script->domains);
    put_texts(json, "migrations", &script->migrations);
    put_texts(json, "consumers", &script->consumers);
    cn_buf_append_str(json, ",\"versions\":[");
    for (size_t i = 0; i < script->version_count; i++) {
        cn_buf_append_str(json, i ? ",\n" : "\n");
        put_version(json, &script->versions[i]);
    }
    cn_buf_append_str(json, "],\"deployments\":[");
    for (size_t i = 0; i < script->deployment_count; i++) {
        cn_buf_append_str(json, i ? ",\n" : "\n");
        put_deployment(json, &script->deployments[i]);
    }
    cn_buf_append_str(json, "]}");
}

static void put_note(struct cn_buf *json, const struct cn_depot_note *note, bool further)
{
    cn_buf_append_str(json, further ? ",\n{" : "\n{");
    put_text(json, "by", note->by);
    put_text(json, "token", note->token);
    put_int(json, "time", note->time_ms);
    put_text(json, "action", note->action);
    put_text(json, "worker", note->worker);
    put_text(json, "detail", note->detail);
    cn_buf_append_byte(json, '}');
}

void cn_depot_state_write(const struct cn_depot_state *state, struct cn_buf *json)
{
    cn_buf_append_byte(json, '{');
    put_text(json, "account", state->account);
    put_int(json, "format", FORMAT);
    cn_buf_append_str(json, ",\"scripts\":[");
    for (size_t i = 0; i < state->script_count; i++) {
        cn_buf_append_str(json, i ? ",\n" : "\n");
        put_script(json, &state->scripts[i]);
    }
    cn_buf_append_str(json, "],\"resources\":[");
    for (size_t i = 0; i < state->resource_count; i++) {
        const struct cn_depot_resource *resource = &state->resources[i];
        cn_buf_append_str(json, i ? ",\n{" : "\n{");
        put_text(json, "kind", resource->kind);
        put_text(json, "id", resource->id);
        put_text(json, "name", resource->name);
        put_int(json, "created", resource->created_ms);
        cn_buf_append_byte(json, '}');
    }
    cn_buf_append_str(json, "],\"notes\":[");
    for (size_t i = 0; i < state->note_count; i++)
        put_note(json, &state->notes[i], i > 0);
    cn_buf_append_byte(json, ']');
    put_texts(json, "gone", &state->gone);
    put_texts(json, "pullers", &state->pullers);
    cn_buf_append_str(json, "}\n");
}

/* --- and back ----------------------------------------------------------------------------------
 */

static const char *text_of(const struct cn_json *object, const char *name)
{
    const char *text = cn_json_text(object, name);
    return text ? text : "";
}

static bool take_id(const struct cn_json *object, const char *name, char *id, size_t size)
{
    const char *text = text_of(object, name);
    snprintf(id, size, "%s", text);
    return strlen(text) == size - 1 && strspn(text, "0123456789abcdef-") == size - 1;
}

static void read_texts(const struct cn_json *object, const char *name, struct cn_depot_texts *texts)
{
    const struct cn_json *list = cn_json_find(object, name);
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        if (item->kind == CN_JSON_STRING)
            cn_depot_texts_add(texts, item->text);
    }
}

static bool read_versions(const struct cn_json *object, struct cn_depot_script *script)
{
    const struct cn_json *list = cn_json_find(object, "versions");
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        struct cn_depot_version version = {
            .number = cn_json_int(item, "number"),
            .created_ms = cn_json_int(item, "created"),
            .source = (char *)cn_json_text(item, "source"),
            .author = (char *)cn_json_text(item, "author"),
            .message = (char *)cn_json_text(item, "message"),
            .tag = (char *)cn_json_text(item, "tag"),
        };
        if (!take_id(item, "id", version.id, sizeof(version.id)) ||
            !take_id(item, "code", version.code, sizeof(version.code)))
            return false;
        push_version(script, &version);
    }
    return true;
}

static bool read_shares(const struct cn_json *object, const char *name,
                        struct cn_depot_shares *shares)
{
    const struct cn_json *list = cn_json_find(object, "shares");
    *shares = (struct cn_depot_shares){0};
    if (!list) {
        shares->items[0].share = CN_DEPOT_SHARE_ALL;
        shares->count = *text_of(object, name) != 0;
        return !shares->count || take_id(object, name, shares->items[0].version, CN_DEPOT_ID_SIZE);
    }
    for (const struct cn_json *item = list->first; item; item = item->next) {
        int64_t share = cn_json_int(item, "share");
        if (shares->count == CN_DEPOT_ROLLOUT_MAX || share < 0 || share > CN_DEPOT_SHARE_ALL ||
            !take_id(item, "version", shares->items[shares->count].version, CN_DEPOT_ID_SIZE))
            return false;
        shares->items[shares->count++].share = (unsigned)share;
    }
    return shares->count > 0;
}

static bool read_deployments(const struct cn_json *object, struct cn_depot_script *script)
{
    const struct cn_json *list = cn_json_find(object, "deployments");
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        struct cn_depot_deployment deployment = {
            .created_ms = cn_json_int(item, "created"),
            .source = (char *)cn_json_text(item, "source"),
            .author = (char *)cn_json_text(item, "author"),
            .message = (char *)cn_json_text(item, "message"),
        };
        if (!take_id(item, "id", deployment.id, sizeof(deployment.id)) ||
            !read_shares(item, "version", &deployment.shares) || !deployment.shares.count)
            return false;
        push_deployment(script, &deployment);
    }
    return true;
}

static bool read_script(const struct cn_json *object, struct cn_depot_state *state)
{
    const char *name = cn_json_text(object, "name");
    if (!name || !*name || cn_depot_find(state, name))
        return false;
    struct cn_depot_script *script =
        cn_depot_add_script(state, name, cn_json_int(object, "created"));
    script->modified_ms = cn_json_int(object, "modified");
    script->next_number = cn_json_int(object, "next_number");
    script->subdomain = cn_json_int(object, "subdomain") != 0;
    script->previews = cn_json_int(object, "previews") != 0;
    read_texts(object, "crons", &script->crons);
    read_texts(object, "routes", &script->routes);
    read_texts(object, "domains", &script->domains);
    read_texts(object, "migrations", &script->migrations);
    read_texts(object, "consumers", &script->consumers);
    bool good = take_id(object, "id", script->id, sizeof(script->id)) &&
                read_versions(object, script) && read_deployments(object, script);
    return good && read_shares(object, "serving", &script->serving) &&
           shares_are_good(script, &script->serving);
}

static void read_note(const struct cn_json *object, struct cn_depot_state *state)
{
    struct cn_depot_note note = {.time_ms = cn_json_int(object, "time"),
                                 .by = (char *)cn_json_text(object, "by"),
                                 .action = (char *)cn_json_text(object, "action"),
                                 .worker = (char *)cn_json_text(object, "worker"),
                                 .detail = (char *)cn_json_text(object, "detail")};
    snprintf(note.token, sizeof(note.token), "%s", text_of(object, "token"));
    cn_depot_add_note(state, &note);
}

static bool read_state(const struct cn_json *root, struct cn_depot_state *state)
{
    bool good = take_id(root, "account", state->account, sizeof(state->account));
    const struct cn_json *list = cn_json_find(root, "scripts");
    for (const struct cn_json *item = list ? list->first : NULL; item && good; item = item->next)
        good = read_script(item, state);
    list = cn_json_find(root, "resources");
    for (const struct cn_json *item = list ? list->first : NULL; item && good; item = item->next)
        cn_depot_add_resource(state, text_of(item, "kind"), text_of(item, "id"),
                              text_of(item, "name"), cn_json_int(item, "created"));
    list = cn_json_find(root, "notes");
    for (const struct cn_json *item = list ? list->first : NULL; item && good; item = item->next)
        read_note(item, state);
    read_texts(root, "gone", &state->gone);
    read_texts(root, "pullers", &state->pullers);
    return good;
}

struct cn_depot_state *cn_depot_state_read(const char *text, size_t size, struct cn_err *err)
{
    struct cn_json *root = cn_json_parse(text, size, err);
    if (!root)
        return NULL;
    struct cn_depot_state *state = NULL;
    int64_t format = cn_json_int(root, "format");
    if (format > FORMAT) {
        cn_err_set(err, CN_EVERSION, "it has format %" PRId64 ", not %d", format, FORMAT);
    } else {
        state = cn_depot_state_new();
        if (format != FORMAT || !read_state(root, state)) {
            cn_err_set(err, CN_ECORRUPT, "it is not complete");
            cn_depot_state_unref(state);
            state = NULL;
        }
    }
    cn_json_free(root);
    return state;
}

struct cn_depot_state *cn_depot_state_copy(const struct cn_depot_state *state)
{
    struct cn_buf json = {0};
    cn_depot_state_write(state, &json);
    struct cn_depot_state *copy = cn_depot_state_read((const char *)json.data, json.size, NULL);
    cn_buf_fini(&json);
    CN_ASSERT(copy); /* what we write we can read */
    return copy;
}
