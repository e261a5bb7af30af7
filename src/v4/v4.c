/* SPDX-License-Identifier: Apache-2.0 */
#include "v4/v4.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "v4/manifest.h"
#include "v4/tokens.h"

#define ACCOUNT_NAME "cairn"

void cn_v4_init(struct cn_v4 *v4)
{
    *v4 = (struct cn_v4){.no_depot = "this server takes no deployments"};
    pthread_mutex_init(&v4->lock, NULL);
}

void cn_v4_fini(struct cn_v4 *v4)
{
    for (size_t i = 0; i < CN_V4_SESSION_MAX; i++)
        cn_manifest_unref(v4->sessions[i].manifest);
    pthread_mutex_destroy(&v4->lock);
}

struct cn_v4 *cn_v4_of(const struct cn_control_call *call)
{
    return call->control->more_data;
}

int64_t cn_v4_now(void)
{
    return cn_clock_wall_ms(cn_clock_system());
}

int cn_v4_fail(struct cn_control_call *call, struct cn_err *err, int rc, int code,
               const char *format, ...)
{
    char text[CN_ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    call->platform_code = code;
    return cn_err_set(err, rc, "%s", text);
}

int cn_v4_invalid(struct cn_control_call *call, int rc)
{
    if ((rc == CN_EINVALID || rc == CN_ELIMIT) && !call->platform_code)
        call->platform_code = 10021;
    return rc;
}

void cn_v4_put_text(struct cn_buf *json, const char *name, const char *text)
{
    cn_buf_printf(json, "%s\"%s\":", json->data[json->size - 1] == '{' ? "" : ",", name);
    cn_buf_append_json(json, text, strlen(text));
}

bool cn_v4_name_is_good(const char *name)
{
    size_t size = strlen(name);
    return size > 0 && size < 64 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == size && name[0] != '-' &&
           name[0] != '_';
}

struct cn_depot_script *cn_v4_script(struct cn_control_call *call,
                                     const struct cn_depot_state *state, size_t index,
                                     struct cn_err *err)
{
    struct cn_depot_script *script = cn_depot_find(state, call->path[index]);
    if (!script)
        cn_v4_fail(call, err, CN_ENOTFOUND, 10007, "This Worker does not exist on this server.");
    return script;
}

static bool may_still(void *data)
{
    return cn_control_is_good(data);
}

struct cn_depot_state *cn_v4_change(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot *depot = cn_v4_of(call)->depot;
    struct cn_depot_state *state = cn_depot_change_begin(depot, err);
    if (!state)
        return NULL;
    cn_depot_change_guard(depot, may_still, call);
    if (cn_control_check_good(call, err) == 0)
        return state;
    cn_depot_change_drop(depot, state); /* it has waited for its turn */
    return NULL;
}

int cn_v4_keep(struct cn_control_call *call, struct cn_depot_state *state, struct cn_err *err)
{
    int rc = cn_depot_change_end(cn_v4_of(call)->depot, state, NULL, NULL, err);
    return rc == CN_EDENIED ? cn_control_check_good(call, err) : rc;
}

int cn_v4_deploy(struct cn_control_call *call, struct cn_depot_state *state, struct cn_err *err)
{
    const struct cn_control *control = call->control;
    CN_ASSERT(control->deploy);
    int rc = cn_depot_change_end(cn_v4_of(call)->depot, state, control->deploy,
                                 control->deploy_data, err);
    if (rc == CN_EDENIED && !cn_control_is_good(call))
        return cn_control_check_good(call, err);
    return cn_v4_refused(call, rc, err);
}

int cn_v4_refused(struct cn_control_call *call, int rc, struct cn_err *err)
{
    char text[CN_ERR_TEXT_MAX];
    if (rc != CN_EJS && rc != CN_EDENIED && rc != CN_ENOTFOUND && rc != CN_EUNSUPPORTED)
        return rc;
    cn_depot_hide_place(cn_v4_of(call)->depot, err);
    snprintf(text, sizeof(text), "%s", err->text);
    return cn_v4_fail(call, err, CN_EINVALID, call->platform_code ? call->platform_code : 10021,
                      "%s", text);
}

/* --- who may ------------------------------------------------------------------------------------
 */

int cn_v4_check(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    bool account = call->path_count > 3 && strcmp(call->path[2], "accounts") == 0;
    if (account && call->path_count > 4 && strcmp(call->path[4], "analytics_engine") == 0)
        return 0; /* one set of data points, whatever the account is called */
    if (!v4->depot || !call->control->deploy)
        return cn_v4_fail(call, err, CN_EUNSUPPORTED, 10013, "%s", v4->no_depot);
    if (!account)
        return 0;
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    bool own = strcmp(call->path[3], state->account) == 0;
    cn_depot_state_unref(state);
    return own ? 0
               : cn_v4_fail(call, err, CN_EDENIED, 9109,
                            "the account %.40s is not that of this server", call->path[3]); /* W1 */
}

void cn_v4_pause(void *data, bool on)
{
    struct cn_v4 *v4 = data;
    if (v4->depot)
        cn_depot_pause(v4->depot, on);
}

/* Whether the token that began it is still one. */
static bool is_begun_well(struct cn_v4 *v4, const struct cn_v4_session *session)
{
    return !session->by[0] ||
           (v4->tokens &&
            (cn_tokens_scopes_of(v4->tokens, session->by, cn_v4_now()) & CN_SCOPE_DEPLOY));
}

bool cn_v4_is_good(void *data, const struct cn_guard_who *who)
{
    struct cn_v4 *v4 = data;
    if (!who->id[0])
        return true; /* the operator, or what he asked for */
    if (!(who->scopes & CN_SCOPE_UPLOAD))
        return v4->tokens && cn_tokens_scopes_of(v4->tokens, who->id, cn_v4_now());
    bool good = true; /* one that has ended is told so by who looks for it */
    pthread_mutex_lock(&v4->lock);
    for (size_t i = 0; i < CN_V4_SESSION_MAX; i++) {
        const struct cn_v4_session *session = &v4->sessions[i];
        if (session->token[0] && strncmp(session->token, who->id, sizeof(who->id) - 1) == 0)
            good &= is_begun_well(v4, session);
    }
    pthread_mutex_unlock(&v4->lock);
    return good;
}

static bool is_session(struct cn_v4 *v4, const char *token, size_t size)
{
    bool found = false;
    pthread_mutex_lock(&v4->lock);
    for (size_t i = 0; i < CN_V4_SESSION_MAX && !found; i++) {
        const struct cn_v4_session *session = &v4->sessions[i];
        found = session->token[0] && session->until_ms > cn_v4_now() &&
                cn_guard_equal(session->token, token, size) && is_begun_well(v4, session);
    }
    pthread_mutex_unlock(&v4->lock);
    return found;
}

void cn_v4_find_token(void *data, const char *token, size_t size, struct cn_guard_who *who)
{
    struct cn_v4 *v4 = data;
    if (!v4 || (v4->depot && cn_v4_transfer_find(v4, token, size, who)))
        return;
    if (v4->tokens)
        who->scopes = cn_tokens_check(v4->tokens, token, size, cn_v4_now(), who->id, who->name);
    /* What wrangler takes for a JWT ends in the session's token (v4_assets.c). */
    const char *dot = memrchr(token, '.', size);
    size_t rest = dot ? size - (size_t)(dot + 1 - token) : 0;
    if (!who->scopes && rest && is_session(v4, dot + 1, rest)) {
        who->scopes = CN_SCOPE_UPLOAD;
        snprintf(who->name, sizeof(who->name), "upload");
        snprintf(who->id, sizeof(who->id), "%.*s", (int)(rest < 32 ? rest : 32), dot + 1);
    }
}

/* --- who am I ------------------------------------------------------------------------------------
 */

static int verify_token(struct cn_control_call *call, struct cn_err *err)
{
    (void)err;
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '{');
    cn_v4_put_text(&json, "id", call->who.id[0] ? call->who.id : "admin");
    cn_v4_put_text(&json, "status", "active");
    cn_buf_append_byte(&json, '}');
    return cn_control_result(call, &json);
}

static int get_user(struct cn_control_call *call, struct cn_err *err)
{
    (void)err;
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '{');
    cn_v4_put_text(&json, "id", call->who.id[0] ? call->who.id : "admin");
    cn_v4_put_text(&json, "email", call->who.name);
    cn_buf_append_byte(&json, '}');
    return cn_control_result(call, &json);
}

static void append_account(struct cn_control_call *call, struct cn_buf *json)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    cn_buf_append_byte(json, '{');
    cn_v4_put_text(json, "id", state->account);
    cn_v4_put_text(json, "name", ACCOUNT_NAME);
    cn_v4_put_text(json, "type", "standard");
    cn_buf_append_byte(json, '}');
    cn_depot_state_unref(state);
}

static int list_accounts(struct cn_control_call *call, struct cn_err *err)
{
    (void)err;
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '[');
    if (cn_v4_is_first_page(call)) /* who asks for pages asks until one is empty */
        append_account(call, &json);
    cn_buf_append_byte(&json, ']');
    return cn_control_result(call, &json);
}

static int get_account(struct cn_control_call *call, struct cn_err *err)
{
    (void)err;
    struct cn_buf json = {0};
    append_account(call, &json);
    return cn_control_result(call, &json);
}

static int list_memberships(struct cn_control_call *call, struct cn_err *err)
{
    (void)err;
    struct cn_buf json = {0};
    if (!cn_v4_is_first_page(call)) {
        cn_buf_append_str(&json, "[]");
        return cn_control_result(call, &json);
    }
    cn_buf_append_str(&json, "[{\"id\":\"operator\",\"status\":\"accepted\",\"roles\":[],"
                             "\"account\":");
    append_account(call, &json);
    cn_buf_append_str(&json, "}]");
    return cn_control_result(call, &json);
}

/* --- calls within -------------------------------------------------------------------------------
 */

struct inner {
    struct cn_control_call call; /* first */
    struct cn_control_call *outer;
    const struct cn_buf *body;
    size_t at;
    struct cn_buf *out;
    bool adopted, streams;   /* streams: a good answer goes out as it comes */
    struct cn_v4_sink *sink; /* where a good answer goes; NULL: nowhere */
    bool refused;            /* there is no memory for its answer */
};

static int64_t read_inner(struct cn_control_call *call, void *bytes, size_t size)
{
    struct inner *inner = (struct inner *)call;
    if (!inner->body) {
        return inner->outer->read ? inner->outer->read(inner->outer, bytes, size) : 0;
    }
    size_t left = inner->body->size - inner->at, count = size < left ? size : left;
    if (count)
        memcpy(bytes, inner->body->data + inner->at, count);
    inner->at += count;
    return (int64_t)count;
}

/* The head of the answer becomes the outer call's, with the buffer that its texts may be in. */
static void adopt_head(struct inner *inner)
{
    struct cn_control_call *call = &inner->call, *outer = inner->outer;
    if (inner->adopted)
        return;
    inner->adopted = true;
    outer->status = call->status;
    outer->type = call->type;
    outer->length = call->length;
    CN_ASSERT(!outer->fields.size);
    cn_buf_fini(&outer->fields);
    outer->fields = call->fields;
    call->fields = (struct cn_buf){0};
}

static int write_inner(struct cn_control_call *call, const void *bytes, size_t size)
{
    struct inner *inner = (struct inner *)call;
    struct cn_control_call *outer = inner->outer;
    struct cn_v4_sink *sink = inner->sink;
    if (sink && call->status < 400) {
        if (!sink->err.code)
            (void)sink->write(sink->data, bytes, size, &sink->err);
        return sink->err.code ? CN_ECLOSED : 0;
    }
    if (inner->out && !(inner->streams && call->status < 400)) {
        struct cn_err err;
        inner->refused |= cn_control_take(outer, size, &err) < 0; /* H1 */
        if (inner->refused)
            return CN_EOVERLOADED;
        cn_buf_append(inner->out, bytes, size);
        return 0;
    }
    adopt_head(inner);
    return outer->write(outer, bytes, size);
}

static bool cancelled_inner(struct cn_control_call *call)
{
    struct inner *inner = (struct inner *)call;
    return inner->outer->cancelled && inner->outer->cancelled(inner->outer);
}

static int forward(struct cn_control_call *call, const char *method, const char *target,
                   const struct cn_buf *body, struct cn_buf *out, bool streams,
                   struct cn_v4_sink *sink)
{
    struct inner inner = {
        .sink = sink,
        .streams = streams,
        .call = {.control = call->control,
                 .method = method,
                 .target = target,
                 .content_type = body ? "application/json" : call->content_type,
                 .body_size = body ? (int64_t)body->size : call->body_size,
                 .read = read_inner,
                 .write = write_inner,
                 .cancelled = cancelled_inner},
        .outer = call,
        .body = body,
        .out = out,
    };
    inner.call.who = call->who;
    inner.call.who.scopes |= CN_SCOPE_ADMIN; /* W2 was checked with the route; T2 is of the token */
    if (cn_control_is_read(&inner.call) && !cn_control_is_read(call))
        cn_guard_operator(&inner.call.who); /* what was done is told: T2 is of what is done */
    cn_control_run(&inner.call);
    if (!out || (streams && inner.call.status < 400))
        adopt_head(&inner); /* an answer without a body */
    cn_buf_fini(&inner.call.fields);
    if (inner.call.cut && inner.adopted) {
        call->cut = true;
    } else if (inner.call.cut || inner.refused) { /* a part is of no use (R3 of admin/relay.h) */
        cn_buf_clear(out);
        cn_buf_printf(out, "{\"error\":{\"code\":\"closed\",\"message\":\"%s\"}}",
                      inner.refused ? "the server has no memory for this call now"
                                    : "the node that has it was lost");
        return 503;
    }
    return sink && sink->err.code ? 507 : inner.call.status;
}

int cn_v4_forward(struct cn_control_call *call, const char *method, const char *target,
                  const struct cn_buf *body, struct cn_buf *out)
{
    return forward(call, method, target, body, out, false, NULL);
}

int cn_v4_forward_out(struct cn_control_call *call, const char *method, const char *target,
                      struct cn_buf *out)
{
    return forward(call, method, target, NULL, out, true, NULL);
}

int cn_v4_forward_to(struct cn_control_call *call, const char *method, const char *target,
                     struct cn_v4_sink *sink, struct cn_buf *out)
{
    static const struct cn_buf none = {0};
    return forward(call, method, target, &none, out, false, sink);
}

/* --- the table ----------------------------------------------------------------------------------
 */

#define RAW CN_ROUTE_RAW
#define FOR(scopes) CN_ROUTE_FOR(scopes)
#define READ CN_SCOPE_READ
#define DEPLOY CN_SCOPE_DEPLOY
#define DATA CN_SCOPE_DATA
#define ANYONE (CN_SCOPE_TOKENS)
#define V4(...)                     \
    {                               \
        "client", "v4", __VA_ARGS__ \
    }
#define ACCOUNT(...) V4("accounts", "*", __VA_ARGS__)
#define SCRIPT(...) ACCOUNT("workers", "scripts", "*", __VA_ARGS__)

const struct cn_control_route cn_v4_routes[] = {
    {"GET", {"api", "tokens"}, cn_v4_api_tokens, 0},
    {"POST", {"api", "tokens"}, cn_v4_api_tokens, 0},
    {"DELETE", {"api", "tokens", "*"}, cn_v4_api_tokens, 0},
    {"GET", {"api", "audit"}, cn_v4_api_audit, 0},
    {"POST", {"node", "taps"}, cn_v4_taps_relay, CN_ROUTE_BARE},

    {"GET", V4("user", "tokens", "verify"), verify_token, FOR(ANYONE)},
    {"GET", V4("user"), get_user, FOR(ANYONE)},
    {"GET", V4("accounts"), list_accounts, FOR(ANYONE)},
    {"GET", V4("accounts", "*"), get_account, FOR(ANYONE)},
    {"GET", V4("memberships"), list_memberships, FOR(ANYONE)},
    {"POST", V4("graphql"), cn_v4_graphql, FOR(READ | DATA)},

    {"GET", ACCOUNT("workers", "services", "*"), cn_v4_get_service, FOR(READ | DEPLOY)},
    {"GET", ACCOUNT("workers", "services", "*", "environments", "*"), cn_v4_get_service,
     FOR(READ | DEPLOY)},
    {"DELETE", ACCOUNT("workers", "services", "*"), cn_v4_delete_script, FOR(DEPLOY)},
    {"GET", ACCOUNT("workers", "scripts"), cn_v4_list_scripts, FOR(READ | DEPLOY)},
    {"GET", ACCOUNT("workers", "scripts", "*"), cn_v4_content, FOR(READ | DEPLOY)},
    {"PUT", ACCOUNT("workers", "scripts", "*"), cn_v4_put_script, RAW | FOR(DEPLOY)},
    {"DELETE", ACCOUNT("workers", "scripts", "*"), cn_v4_delete_script, FOR(DEPLOY)},
    {"GET", SCRIPT("content", "v2"), cn_v4_content, FOR(READ | DEPLOY)},
    {"GET", ACCOUNT("workers", "services", "*", "environments", "*", "content", "v2"),
     cn_v4_content, FOR(READ | DEPLOY)},
    {"GET", ACCOUNT("workers", "workers"), cn_v4_workers, FOR(READ | DEPLOY)},
    {"GET", ACCOUNT("workers", "workers", "*"), cn_v4_worker, FOR(READ | DEPLOY)},
    {"PATCH", ACCOUNT("workers", "workers", "*", "versions", "latest"), cn_v4_patch_version,
     FOR(DEPLOY)},
    {"GET", SCRIPT("settings"), cn_v4_settings, FOR(READ | DEPLOY)},
    {"GET", SCRIPT("script-settings"), cn_v4_settings, FOR(READ | DEPLOY)},
    {"PATCH", SCRIPT("settings"), cn_v4_patch_bindings, RAW | FOR(DEPLOY)},
    {"PATCH", SCRIPT("script-settings"), cn_v4_patch_settings, FOR(DEPLOY)},
    {"GET", SCRIPT("subdomain"), cn_v4_script_subdomain, FOR(READ | DEPLOY)},
    {"POST", SCRIPT("subdomain"), cn_v4_script_subdomain, FOR(DEPLOY)},
    {"GET", ACCOUNT("workers", "subdomain"), cn_v4_subdomain, FOR(READ | DEPLOY)},
    {"GET", SCRIPT("schedules"), cn_v4_schedules, FOR(READ | DEPLOY)},
    {"PUT", SCRIPT("schedules"), cn_v4_schedules, FOR(DEPLOY)},
    {"PUT", SCRIPT("routes"), cn_v4_routes_put, FOR(DEPLOY)},
    {"POST", SCRIPT("domains", "changeset"), cn_v4_domains_changeset, FOR(DEPLOY)},
    {"PUT", SCRIPT("domains", "records"), cn_v4_domains_put, FOR(DEPLOY)},
    {"GET", ACCOUNT("workers", "domains"), cn_v4_domains, FOR(READ | DEPLOY)},
    {"GET", ACCOUNT("workers", "domains", "records", "*"), cn_v4_domains, FOR(READ | DEPLOY)},
    {"GET", V4("zones"), cn_v4_zones, FOR(READ | DEPLOY)},
    {"GET", V4("zones", "*", "workers", "routes"), cn_v4_zone_routes, FOR(READ | DEPLOY)},
    {"GET", SCRIPT("references"), cn_v4_references, FOR(READ | DEPLOY)},
    {"GET", ACCOUNT("workers", "tails", "by-consumer", "*"), cn_v4_producers, FOR(READ | DEPLOY)},
    {"GET", SCRIPT("tails"), cn_v4_tails, FOR(READ | DEPLOY)},
    {"POST", SCRIPT("tails"), cn_v4_tails, FOR(READ | DEPLOY)},
    {"DELETE", SCRIPT("tails", "*"), cn_v4_tails, FOR(READ | DEPLOY)},
    {"GET", SCRIPT("secrets"), cn_v4_secrets, FOR(READ | DEPLOY)},
    {"PUT", SCRIPT("secrets"), cn_v4_secrets, FOR(DEPLOY)},
    {"PATCH", SCRIPT("secrets-bulk"), cn_v4_secrets, FOR(DEPLOY)},
    {"DELETE", SCRIPT("secrets", "*"), cn_v4_secrets, FOR(DEPLOY)},
    {"GET", SCRIPT("versions"), cn_v4_list_versions, FOR(READ | DEPLOY)},
    {"POST", SCRIPT("versions"), cn_v4_post_version, RAW | FOR(DEPLOY)},
    {"GET", SCRIPT("versions", "*"), cn_v4_get_version, FOR(READ | DEPLOY)},
    {"GET", SCRIPT("deployments"), cn_v4_list_deployments, FOR(READ | DEPLOY)},
    {"GET", SCRIPT("deployments", "*"), cn_v4_get_deployment, FOR(READ | DEPLOY)},
    {"POST", SCRIPT("deployments"), cn_v4_make_deployment, FOR(DEPLOY)},
    {"POST", SCRIPT("assets-upload-session"), cn_v4_assets_session, FOR(DEPLOY)},
    {"POST", ACCOUNT("workers", "assets", "upload"), cn_v4_assets_upload,
     RAW | FOR(CN_SCOPE_UPLOAD)},

    {"GET", ACCOUNT("storage", "kv", "namespaces"), cn_v4_kv_namespaces, FOR(READ | DATA)},
    {"POST", ACCOUNT("storage", "kv", "namespaces"), cn_v4_kv_namespaces, FOR(DATA | DEPLOY)},
    {"GET", ACCOUNT("storage", "kv", "namespaces", "*"), cn_v4_kv_namespace, FOR(READ | DATA)},
    {"PUT", ACCOUNT("storage", "kv", "namespaces", "*"), cn_v4_kv_namespace, FOR(DATA)},
    {"DELETE", ACCOUNT("storage", "kv", "namespaces", "*"), cn_v4_kv_namespace, FOR(DATA)},
    {"GET", ACCOUNT("storage", "kv", "namespaces", "*", "keys"), cn_v4_kv_keys, FOR(READ | DATA)},
    {"GET", ACCOUNT("storage", "kv", "namespaces", "*", "values", "**"), cn_v4_kv_value,
     RAW | FOR(READ | DATA)},
    {"PUT", ACCOUNT("storage", "kv", "namespaces", "*", "values", "**"), cn_v4_kv_value,
     RAW | FOR(DATA)},
    {"DELETE", ACCOUNT("storage", "kv", "namespaces", "*", "values", "**"), cn_v4_kv_value,
     RAW | FOR(DATA)},
    {"PUT", ACCOUNT("storage", "kv", "namespaces", "*", "bulk"), cn_v4_kv_bulk, FOR(DATA)},
    {"DELETE", ACCOUNT("storage", "kv", "namespaces", "*", "bulk"), cn_v4_kv_bulk, FOR(DATA)},
    {"POST", ACCOUNT("storage", "kv", "namespaces", "*", "bulk", "delete"), cn_v4_kv_bulk,
     FOR(DATA)},
    {"POST", ACCOUNT("storage", "kv", "namespaces", "*", "bulk", "get"), cn_v4_kv_bulk,
     FOR(READ | DATA)},

    {"GET", ACCOUNT("d1", "database"), cn_v4_d1_databases, FOR(READ | DATA | DEPLOY)},
    {"POST", ACCOUNT("d1", "database"), cn_v4_d1_databases, FOR(DATA | DEPLOY)},
    {"GET", ACCOUNT("d1", "database", "*"), cn_v4_d1_database, FOR(READ | DATA | DEPLOY)},
    {"DELETE", ACCOUNT("d1", "database", "*"), cn_v4_d1_database, FOR(DATA)},
    {"POST", ACCOUNT("d1", "database", "*", "query"), cn_v4_d1_query, FOR(DATA)},
    {"POST", ACCOUNT("d1", "database", "*", "raw"), cn_v4_d1_query, FOR(DATA)},
    {"POST", ACCOUNT("d1", "database", "*", "import"), cn_v4_d1_import, FOR(DATA)},
    {"POST", ACCOUNT("d1", "database", "*", "export"), cn_v4_d1_export, FOR(READ | DATA)},
    {"GET", ACCOUNT("d1", "database", "*", "time_travel", "bookmark"), cn_v4_d1_time_travel,
     FOR(READ | DATA)},
    {"POST", ACCOUNT("d1", "database", "*", "time_travel", "restore"), cn_v4_d1_time_travel,
     FOR(DATA)},
    {"PUT", V4("transfers", "*"), cn_v4_transfer, RAW | FOR(CN_SCOPE_TRANSFER)},
    {"GET", V4("transfers", "*"), cn_v4_transfer, RAW | FOR(CN_SCOPE_TRANSFER)},

    {"GET", ACCOUNT("r2", "buckets"), cn_v4_r2_buckets, FOR(READ | DATA | DEPLOY)},
    {"POST", ACCOUNT("r2", "buckets"), cn_v4_r2_buckets, FOR(DATA | DEPLOY)},
    {"GET", ACCOUNT("r2", "buckets", "*"), cn_v4_r2_bucket, FOR(READ | DATA | DEPLOY)},
    {"DELETE", ACCOUNT("r2", "buckets", "*"), cn_v4_r2_bucket, FOR(DATA)},
    {"GET", ACCOUNT("r2", "buckets", "*", "objects", "**"), cn_v4_r2_object,
     RAW | FOR(READ | DATA)},
    {"PUT", ACCOUNT("r2", "buckets", "*", "objects", "**"), cn_v4_r2_object, RAW | FOR(DATA)},
    {"DELETE", ACCOUNT("r2", "buckets", "*", "objects", "**"), cn_v4_r2_object, RAW | FOR(DATA)},

    {"GET", ACCOUNT("queues"), cn_v4_queues, FOR(READ | DATA | DEPLOY)},
    {"POST", ACCOUNT("queues"), cn_v4_queues, FOR(DATA | DEPLOY)},
    {"GET", ACCOUNT("queues", "*"), cn_v4_queue, FOR(READ | DATA | DEPLOY)},
    {"DELETE", ACCOUNT("queues", "*"), cn_v4_queue, FOR(DATA)},
    {"PATCH", ACCOUNT("queues", "*"), cn_v4_queue, FOR(DATA)},
    {"PUT", ACCOUNT("queues", "*"), cn_v4_queue, FOR(DATA)},
    {"POST", ACCOUNT("queues", "*", "purge"), cn_v4_queue_messages, FOR(DATA)},
    {"POST", ACCOUNT("queues", "*", "messages"), cn_v4_queue_messages, FOR(DATA)},
    {"POST", ACCOUNT("queues", "*", "messages", "batch"), cn_v4_queue_messages, FOR(DATA)},
    {"POST", ACCOUNT("queues", "*", "messages", "pull"), cn_v4_queue_messages, FOR(DATA)},
    {"POST", ACCOUNT("queues", "*", "messages", "ack"), cn_v4_queue_messages, FOR(DATA)},
    {"GET", ACCOUNT("queues", "*", "consumers"), cn_v4_consumers, FOR(READ | DEPLOY)},
    {"POST", ACCOUNT("queues", "*", "consumers"), cn_v4_consumers, FOR(DEPLOY)},
    {"PUT", ACCOUNT("queues", "*", "consumers", "*"), cn_v4_consumers, FOR(DEPLOY)},
    {"DELETE", ACCOUNT("queues", "*", "consumers", "*"), cn_v4_consumers, FOR(DEPLOY)},
    {0},
};
