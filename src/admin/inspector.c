/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/inspector.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "admin/cdp.h"
#include "admin/control.h"
#include "admin/cpuprofile.h"
#include "admin/guard.h"
#include "admin/job.h"
#include "base/account.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/rand.h"
#include "net/server.h"
#include "net/ws_conn.h"
#include "net/ws_end.h"
#include "text/base64.h"
#include "text/hex.h"
#include "worker/metrics.h"
#include "worker/profile.h"
#include "worker/script.h"
#include "worker/sourcemap.h"
#include "worker/server.h"

#define TICK_MS 300
#define CONTEXT_MAX 1000 /* workers that are told */

/* What a worker said. */
struct kept {
    struct cn_list link;
    uint64_t number;
    int64_t time_ms;
    enum cn_diag_level level;
    bool exception;
    size_t size;
    char *worker, *text; /* owned */
};

struct client {
    struct cn_list link;
    struct cn_inspector *inspector;
    struct cn_ws_end *end, *wire;
    bool busy, over;        /* it has ended while something was done with it */
    bool runtime, debugger; /* enabled */
    uint64_t next;          /* the number of the message that it gets next */
};

/* --- messages (any thread) ------------------------------------------------------------------- */

static void free_kept(struct kept *kept)
{
    cn_free(kept->worker);
    cn_free(kept->text);
    cn_free(kept);
}

/* I3; with the lock. */
static void drop_oldest(struct cn_inspector *inspector)
{
    struct kept *kept = CN_CONTAINER_OF(inspector->kept.next, struct kept, link);
    cn_list_remove(&kept->link);
    inspector->kept_count--;
    inspector->kept_bytes -= kept->size;
    free_kept(kept);
}

static void on_note(struct cn_diag_tap *tap, const struct cn_diag_note *note)
{
    struct cn_inspector *inspector = CN_CONTAINER_OF(tap, struct cn_inspector, tap);
    const struct cn_diag_field *worker = NULL;
    bool exception = false;
    for (size_t i = 0; i < note->count; i++) {
        if (strcmp(note->fields[i].name, "worker") == 0 && note->fields[i].text)
            worker = &note->fields[i];
        exception |= strcmp(note->fields[i].name, CN_DIAG_EXCEPTION) == 0;
    }
    if (!worker)
        return; /* the server's own */
    size_t size = note->length < CN_INSPECTOR_TEXT_MAX ? note->length : CN_INSPECTOR_TEXT_MAX;
    struct kept *kept = CN_NEW(struct kept);
    *kept = (struct kept){
        .time_ms = note->time_ms,
        .level = note->level,
        .exception = exception,
        .size = size,
        .worker = cn_strndup(worker->text, worker->length ? worker->length : strlen(worker->text)),
        .text = cn_strndup(note->text, size)};
    kept->size = strlen(kept->text);
    pthread_mutex_lock(&inspector->lock);
    kept->number = inspector->next_number++;
    cn_list_push_back(&inspector->kept, &kept->link);
    inspector->kept_count++;
    inspector->kept_bytes += kept->size;
    while (inspector->kept_count > CN_INSPECTOR_KEPT_MAX ||
           inspector->kept_bytes > CN_INSPECTOR_KEPT_BYTES)
        drop_oldest(inspector);
    pthread_mutex_unlock(&inspector->lock);
    uv_async_send(&inspector->async);
}

/* --- sending --------------------------------------------------------------------------------- */

static void send_text(struct client *client, struct cn_buf *text)
{
    struct cn_ws_message *message = cn_ws_message_new(true, text->data, text->size);
    if (message && !client->over)
        (void)cn_ws_end_send(client->end, message); /* or its close comes to us */
    cn_ws_message_unref(message);
    cn_buf_clear(text);
}

/* The number of a worker's context: its place in the deployment, from 1. */
static unsigned context_of(const struct cn_inspector *inspector, const char *worker)
{
    const struct cn_deployment *shown = inspector->shown;
    for (size_t i = 0; shown && i < shown->script_count; i++) {
        if (strcmp(shown->scripts[i]->name, worker) == 0)
            return (unsigned)i + 1;
    }
    return 1;
}

/* The next message as an event; false: there is none. */
static bool take_next(struct client *client, struct cn_buf *event)
{
    struct cn_inspector *inspector = client->inspector;
    struct kept *found = NULL;
    pthread_mutex_lock(&inspector->lock);
    CN_LIST_FOREACH(&inspector->kept, node)
    {
        struct kept *kept = CN_CONTAINER_OF(node, struct kept, link);
        if (!found && kept->number >= client->next)
            found = kept;
    }
    if (found) {
        struct cn_cdp_note note = {.time_ms = found->time_ms,
                                   .level = found->level,
                                   .exception = found->exception,
                                   .worker = found->worker,
                                   .context = context_of(inspector, found->worker),
                                   .text = found->text,
                                   .size = found->size};
        uint64_t dropped = found->number - client->next;
        char text[80];
        struct cn_cdp_note lost = note;
        lost.exception = false;
        lost.level = CN_DIAG_WARN;
        lost.size =
            (size_t)snprintf(text, sizeof(text), "%" PRIu64 " messages were dropped", dropped);
        lost.text = text;
        cn_cdp_append_note(event, dropped ? &lost : &note);
        client->next = dropped ? found->number : found->number + 1;
    }
    pthread_mutex_unlock(&inspector->lock);
    return found != NULL;
}

static void give_messages(struct client *client)
{
    struct cn_buf event = {0};
    while (client->runtime && !client->over &&
           cn_ws_waiting(client->wire) < CN_INSPECTOR_WAITING_MAX && take_next(client, &event))
        send_text(client, &event);
    cn_buf_fini(&event);
}

/* --- contexts and scripts -------------------------------------------------------------------- */

static void send_contexts(struct client *client)
{
    const struct cn_deployment *shown = client->inspector->shown;
    struct cn_buf event = {0};
    for (size_t i = 0; shown && i < shown->script_count && i < CONTEXT_MAX; i++) {
        const char *name = shown->scripts[i]->name;
        cn_buf_printf(&event,
                      "{\"method\":\"Runtime.executionContextCreated\",\"params\":{\"context\":{"
                      "\"id\":%zu,\"uniqueId\":\"%u.%zu\",\"origin\":\"\",\"name\":",
                      i + 1, client->inspector->generation, i);
        cn_buf_append_json(&event, name, strlen(name));
        cn_buf_append_str(&event, ",\"auxData\":{\"isDefault\":true}}}}");
        send_text(client, &event);
    }
    cn_buf_fini(&event);
}

/* As an address that holds it, so that nothing has to be fetched. */
static void append_map(struct cn_buf *event, const struct cn_script *script)
{
    struct cn_buf map = {0};
    FILE *file = script->map_path ? fopen(script->map_path, "re") : NULL;
    char piece[16384];
    size_t size;
    while (file && map.size <= CN_INSPECTOR_MAP_MAX &&
           (size = fread(piece, 1, sizeof(piece), file)) > 0)
        cn_buf_append(&map, piece, size);
    if (file)
        fclose(file);
    cn_buf_append_str(event, ",\"sourceMapURL\":\"");
    if (map.size && map.size <= CN_INSPECTOR_MAP_MAX) {
        cn_buf_append_str(event, "data:application/json;base64,");
        cn_base64_encode(event, map.data, map.size);
    }
    cn_buf_append_byte(event, '"');
    cn_buf_fini(&map);
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; (text = strchr(text, '\n')); text++)
        count++;
    return count;
}

static void send_scripts(struct client *client)
{
    const struct cn_inspector *inspector = client->inspector;
    const struct cn_deployment *shown = inspector->shown;
    struct cn_buf event = {0};
    for (size_t i = 0; shown && i < shown->script_count && i < CONTEXT_MAX; i++) {
        const struct cn_script *script = shown->scripts[i];
        if (!script->has_source || !script->source)
            continue;
        cn_buf_printf(&event,
                      "{\"method\":\"Debugger.scriptParsed\",\"params\":{\"scriptId\":\"%u.%zu\","
                      "\"url\":",
                      inspector->generation, i + 1);
        cn_cdp_append_url(&event, script->name, "worker.js", 9);
        cn_buf_printf(&event,
                      ",\"startLine\":0,\"startColumn\":0,\"endLine\":%zu,\"endColumn\":0,"
                      "\"executionContextId\":%zu,\"hash\":\"%u.%zu\",\"isLiveEdit\":false,"
                      "\"hasSourceURL\":false,\"isModule\":false,\"length\":%zu",
                      count_lines(script->source), i + 1, inspector->generation, i,
                      strlen(script->source));
        append_map(&event, script);
        cn_buf_append_str(&event, "}}");
        send_text(client, &event);
    }
    cn_buf_fini(&event);
}

/* "GENERATION.INDEX" of the deployment that is shown; NULL: of none. */
static const struct cn_script *find_script(const struct cn_inspector *inspector, const char *id)
{
    unsigned generation;
    size_t index;
    char rest;
    if (!id || sscanf(id, "%u.%zu%c", &generation, &index, &rest) != 2 || !inspector->shown)
        return NULL;
    return generation == inspector->generation && index >= 1 &&
                   index <= inspector->shown->script_count
               ? inspector->shown->scripts[index - 1]
               : NULL;
}

/* --- commands -------------------------------------------------------------------------------- */

static void answer(struct client *client, int64_t id, const char *result)
{
    struct cn_buf text = {0};
    cn_buf_printf(&text, "{\"id\":%" PRId64 ",\"result\":%s}", id, result);
    send_text(client, &text);
    cn_buf_fini(&text);
}

static void refuse(struct client *client, int64_t id, int code, const char *sentence)
{
    struct cn_buf text = {0};
    cn_buf_printf(&text, "{\"id\":%" PRId64 ",\"error\":{\"code\":%d,\"message\":", id, code);
    cn_buf_append_json(&text, sentence, strlen(sentence));
    cn_buf_append_str(&text, "}}");
    send_text(client, &text);
    cn_buf_fini(&text);
}

static void enable_runtime(struct client *client, int64_t id, const struct cn_json *params)
{
    (void)params;
    answer(client, id, "{}");
    send_contexts(client);
    if (!client->runtime) { /* what came before it too */
        pthread_mutex_lock(&client->inspector->lock);
        client->next = client->inspector->next_number - client->inspector->kept_count;
        pthread_mutex_unlock(&client->inspector->lock);
    }
    client->runtime = true;
    give_messages(client);
}

static void disable_runtime(struct client *client, int64_t id, const struct cn_json *params)
{
    (void)params;
    client->runtime = false;
    answer(client, id, "{}");
}

static void enable_debugger(struct client *client, int64_t id, const struct cn_json *params)
{
    (void)params;
    client->debugger = true;
    answer(client, id, "{\"debuggerId\":\"cairn\"}");
    send_scripts(client);
}

static void disable_debugger(struct client *client, int64_t id, const struct cn_json *params)
{
    (void)params;
    client->debugger = false;
    answer(client, id, "{}");
}

static void get_script(struct client *client, int64_t id, const struct cn_json *params)
{
    const struct cn_script *script =
        find_script(client->inspector, cn_json_text(params, "scriptId"));
    if (!script || !script->source) {
        refuse(client, id, -32000, "there is no such script; it may have been deployed anew");
        return;
    }
    struct cn_buf text = {0};
    cn_buf_printf(&text, "{\"id\":%" PRId64 ",\"result\":{\"scriptSource\":", id);
    cn_buf_append_json(&text, script->source, strlen(script->source));
    cn_buf_append_str(&text, "}}");
    send_text(client, &text);
    cn_buf_fini(&text);
}

/* Of all lanes together, as they have told last. */
static void get_heap(struct client *client, int64_t id, const struct cn_json *params)
{
    (void)params;
    const struct cn_server *server = client->inspector->server;
    unsigned long long used = 0, held = 0;
    char text[200];
    for (unsigned i = 0; server && i < cn_server_lane_count(server); i++) {
        used += cn_counter_get(&cn_server_metrics(server, i)->heap_bytes);
        held += cn_counter_get(&cn_server_metrics(server, i)->heap_capacity);
    }
    snprintf(text, sizeof(text),
             "{\"usedSize\":%llu,\"totalSize\":%llu,\"embedderHeapUsedSize\":%llu,"
             "\"backingStorageSize\":0}",
             used, held, (unsigned long long)cn_account_used());
    answer(client, id, text);
}

static void get_isolate(struct client *client, int64_t id, const struct cn_json *params)
{
    (void)params;
    char text[80];
    snprintf(text, sizeof(text), "{\"id\":\"%s\"}", client->inspector->id);
    answer(client, id, text);
}

/* --- profiles (I4) ---------------------------------------------------------------------------- */

/* Of the scripts that are shown; what is not theirs is Cairn's own. */
static void resolve_place(void *data, const char *url, uint32_t line, uint32_t column,
                          struct cn_cpuprofile_place *place)
{
    struct cn_inspector *inspector = data;
    const struct cn_deployment *shown = inspector->shown;
    struct cn_sourcemap_place found;
    place->line = line;
    place->column = column;
    for (size_t i = 0; shown && i < shown->script_count; i++) {
        struct cn_script *script = shown->scripts[i];
        if (strcmp(script->url, url) != 0)
            continue;
        if (line && cn_script_find_place(script, line, column, &found)) {
            cn_cdp_append_url(&place->url, script->name, found.source, strlen(found.source));
            place->line = found.line;
            place->column = found.column;
        } else if (line) {
            cn_cdp_append_url(&place->url, script->name, "worker.js", 9);
        }
        return;
    }
    cn_buf_append_json(&place->url, url, strlen(url));
}

static void wake_for_samples(void *data)
{
    struct cn_inspector *inspector = data;
    uv_async_send(&inspector->async);
}

static void drop_profile(struct cn_inspector *inspector)
{
    if (!inspector->profile)
        return;
    cn_profile_leave(inspector->profile);
    cn_server_profile(inspector->server, NULL);
    cn_profile_unref(inspector->profile);
    cn_cpuprofile_free(inspector->tree);
    inspector->profile = NULL;
    inspector->tree = NULL;
    inspector->profiler = NULL;
}

/* What lanes have given; and the answer, if it is asked for and whole. */
static void give_profile(struct cn_inspector *inspector)
{
    struct cn_buf text = {0};
    unsigned lane;
    while (inspector->profile && cn_profile_take(inspector->profile, &text, &lane)) {
        cn_cpuprofile_add(inspector->tree, lane, (const char *)text.data, text.size);
        cn_buf_fini(&text);
    }
    if (!inspector->profile || inspector->profile_id < 0 || !cn_profile_is_done(inspector->profile))
        return;
    struct client *client = inspector->profiler;
    int64_t id = inspector->profile_id;
    if (cn_profile_is_refused(inspector->profile)) {
        drop_profile(inspector);
        refuse(client, id, -32000, "this JavaScriptCore has no sampling profiler");
        return;
    }
    cn_buf_printf(&text, "{\"id\":%" PRId64 ",\"result\":{\"profile\":", id);
    cn_cpuprofile_write(inspector->tree, &text);
    cn_buf_append_str(&text, "}}");
    drop_profile(inspector);
    send_text(client, &text);
    cn_buf_fini(&text);
}

static void start_profile(struct client *client, int64_t id, const struct cn_json *params)
{
    struct cn_inspector *inspector = client->inspector;
    (void)params;
    if (!inspector->server || inspector->profile) {
        refuse(client, id, -32000, "a profile is being made already; there is one at a time");
        return;
    }
    inspector->profile = cn_profile_new(wake_for_samples, inspector);
    inspector->tree = cn_cpuprofile_new(resolve_place, inspector);
    inspector->profiler = client;
    inspector->profile_id = -1;
    cn_server_profile(inspector->server, inspector->profile);
    answer(client, id, "{}");
}

static void stop_profile(struct client *client, int64_t id, const struct cn_json *params)
{
    struct cn_inspector *inspector = client->inspector;
    (void)params;
    if (inspector->profiler != client || inspector->profile_id >= 0) {
        refuse(client, id, -32000, "no profile was started");
        return;
    }
    inspector->profile_id = id >= 0 ? id : 0;
    cn_server_profile(inspector->server, NULL); /* give_profile() answers when all lanes are done */
}

static void get_nothing(struct client *client, int64_t id, const struct cn_json *params)
{
    (void)params;
    answer(client, id, "{\"result\":[],\"names\":[],\"locations\":[]}");
}

static void get_domains(struct client *client, int64_t id, const struct cn_json *params)
{
    (void)params;
    answer(client, id,
           "{\"domains\":[{\"name\":\"Runtime\",\"version\":\"1.3\"},{\"name\":"
           "\"Debugger\",\"version\":\"1.3\"},{\"name\":\"Profiler\",\"version\":\"1.3\"}]}");
}

static const struct {
    const char *name;
    void (*run)(struct client *client, int64_t id, const struct cn_json *params);
} methods[] = {
    {"Runtime.enable", enable_runtime},       {"Runtime.disable", disable_runtime},
    {"Debugger.enable", enable_debugger},     {"Debugger.disable", disable_debugger},
    {"Debugger.getScriptSource", get_script}, {"Debugger.getPossibleBreakpoints", get_nothing},
    {"Runtime.getHeapUsage", get_heap},       {"Runtime.getIsolateId", get_isolate},
    {"Runtime.getProperties", get_nothing},   {"Runtime.globalLexicalScopeNames", get_nothing},
    {"Profiler.start", start_profile},        {"Profiler.stop", stop_profile},
    {"Schema.getDomains", get_domains},
};

static void run_method(struct client *client, int64_t id, const char *method,
                       const struct cn_json *params)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(methods); i++) {
        if (strcmp(methods[i].name, method) == 0) {
            methods[i].run(client, id, params);
            return;
        }
    }
    const char *why = cn_cdp_refusal(method);
    if (cn_cdp_is_wish(method)) {
        answer(client, id, "{}");
    } else if (why) {
        refuse(client, id, -32000, why);
    } else {
        char text[140];
        snprintf(text, sizeof(text), "'%.100s' wasn't found", method);
        refuse(client, id, -32601, text);
    }
}

static void run_message(struct client *client, const struct cn_ws_message *message)
{
    struct cn_err err;
    struct cn_json *json =
        cn_json_parse_some((const char *)message->bytes, message->size, CN_JSON_ASKED_MAX, &err);
    const struct cn_json *id = cn_json_find(json, "id");
    const char *method = cn_json_text(json, "method");
    if (!id || id->kind != CN_JSON_INT || !method)
        refuse(client, 0, -32700, "a message is {\"id\", \"method\", \"params\"}");
    else
        run_method(client, id->integer, method, cn_json_find(json, "params"));
    cn_json_free(json);
}

/* --- clients --------------------------------------------------------------------------------- */

static void forget_shown(struct cn_inspector *inspector)
{
    if (inspector->shown)
        cn_deployment_unref(inspector->shown);
    inspector->shown = NULL;
}

static void close_client(struct client *client)
{
    struct cn_inspector *inspector = client->inspector;
    struct cn_ws_close close = {.code = CN_WS_NORMAL, .clean = true, .reason = ""};
    if (inspector->profiler == client)
        drop_profile(inspector);
    client->busy = true; /* the connection may end with it */
    cn_ws_end_close(client->end, &close);
    cn_list_remove(&client->link);
    cn_ws_end_release(client->end);
    cn_free(client);
    if (--inspector->client_count == 0) {
        uv_timer_stop(&inspector->timer);
        forget_shown(inspector);
    }
}

static void finish(struct client *client)
{
    if (client->busy)
        client->over = true;
    else
        close_client(client);
}

static void on_ready(struct cn_ws_end *end)
{
    struct client *client = end->owner;
    struct cn_ws_item *item;
    if (client->busy)
        return; /* whoever is busy with it looks again */
    client->busy = true;
    while (!client->over && (item = cn_ws_end_take(end))) {
        if (item->message)
            run_message(client, item->message);
        else
            client->over = true;
        cn_ws_item_free(item);
    }
    client->busy = false;
    if (client->over)
        close_client(client);
}

static void on_gone(struct cn_ws_end *end)
{
    finish(end->owner);
}

static const struct cn_ws_end_ops ops = {on_ready, NULL, on_gone};

/* Takes what is served now; true: it is another. */
static bool look_again(struct cn_inspector *inspector)
{
    const struct cn_control *control = inspector->control;
    struct cn_deployment *now =
        control->deployment ? control->deployment(control->deploy_data) : NULL;
    bool other = now != inspector->shown;
    forget_shown(inspector);
    inspector->shown = now;
    inspector->generation += other;
    return other;
}

static void tell_deployment(struct client *client)
{
    struct cn_buf event = {0};
    client->busy = true;
    if (client->runtime) {
        cn_buf_append_str(&event,
                          "{\"method\":\"Runtime.executionContextsCleared\",\"params\":{}}");
        send_text(client, &event);
        send_contexts(client);
    }
    if (client->debugger)
        send_scripts(client);
    client->busy = false;
    cn_buf_fini(&event);
    if (client->over)
        close_client(client);
    else
        on_ready(client->end);
}

static void on_timer(uv_timer_t *timer)
{
    struct cn_inspector *inspector = timer->data;
    if (!look_again(inspector))
        return;
    CN_LIST_FOREACH(&inspector->clients, node)
    tell_deployment(CN_CONTAINER_OF(node, struct client, link));
}

static void give(struct client *client)
{
    client->busy = true;
    give_messages(client);
    client->busy = false;
    if (client->over)
        close_client(client);
    else
        on_ready(client->end);
}

static void on_async(uv_async_t *async)
{
    struct cn_inspector *inspector = async->data;
    give_profile(inspector);
    CN_LIST_FOREACH(&inspector->clients, node)
    give(CN_CONTAINER_OF(node, struct client, link));
}

static void upgrade(struct cn_inspector *inspector, struct cn_http_request *http)
{
    if (inspector->client_count == CN_INSPECTOR_CLIENT_MAX)
        return cn_job_refuse(http, 503, "overloaded", "too many are connected", 1);
    struct client *client = CN_NEW(struct client);
    *client = (struct client){.inspector = inspector};
    cn_ws_pair_new(&client->end, &client->wire);
    int rc = cn_ws_upgrade(inspector->ws, http, NULL, 0, client->wire);
    if (rc != 0) {
        cn_ws_end_release(client->end);
        cn_ws_end_release(client->wire);
        cn_free(client);
        return cn_job_refuse(http, rc > 0 ? rc : 400, "invalid", "no WebSocket was asked for", 0);
    }
    cn_http_request_release(http);
    if (inspector->client_count++ == 0) {
        (void)look_again(inspector);
        uv_timer_start(&inspector->timer, on_timer, TICK_MS, TICK_MS);
    }
    cn_list_push_back(&inspector->clients, &client->link);
    cn_ws_end_claim(client->end, &ops, client);
}

/* --- requests -------------------------------------------------------------------------------- */

/* I1 */
static bool may_ask(const struct cn_http_request *http)
{
    static const char devtools[] = "devtools://";
    const struct cn_http_header *origin = cn_http_request_find(http, "origin");
    return cn_guard_host_is_loopback(&http->host) &&
           (!origin || (origin->value_size > sizeof(devtools) - 1 &&
                        memcmp(origin->value, devtools, sizeof(devtools) - 1) == 0));
}

static bool is_path(const struct cn_http_request *http, const char *path)
{
    size_t size = strlen(path);
    return http->target.size >= size && memcmp(http->target.data, path, size) == 0 &&
           (http->target.size == size || http->target.data[size] == '?' ||
            (http->target.data[size] == '/' && http->target.size == size + 1));
}

static void answer_json(struct cn_http_request *http, struct cn_buf *json)
{
    struct cn_http_header fields[] = {
        {"content-type", "application/json; charset=UTF-8", 12, 31},
        {"cache-control", "no-store", 13, 8},
    };
    struct cn_http_head head = {200, fields, 2, NULL};
    (void)cn_http_respond(http, &head, json->data, json->size, NULL, NULL); /* or it is gone */
    cn_http_request_release(http);
    cn_buf_fini(json);
}

static void answer_list(struct cn_inspector *inspector, struct cn_http_request *http)
{
    struct cn_buf json = {0};
    cn_buf_printf(&json,
                  "[{\"id\":\"%s\",\"title\":\"cairn\",\"type\":\"node\",\"description\":\"workers "
                  "of cairn\",\"url\":\"file://\",\"devtoolsFrontendUrl\":\"devtools://devtools/"
                  "bundled/js_app.html?experiments=true&v8only=true&ws=127.0.0.1:%u/%s\","
                  "\"webSocketDebuggerUrl\":\"ws://127.0.0.1:%u/%s\"}]\n",
                  inspector->id, inspector->port, inspector->id, inspector->port, inspector->id);
    answer_json(http, &json);
}

static void on_request(struct cn_http_server *server, struct cn_http_request *http)
{
    struct cn_inspector *inspector = cn_http_server_data(server);
    struct cn_buf json = {0};
    if (!may_ask(http))
        return cn_job_refuse(http, 403, "denied", "the inspector is for this machine's DevTools",
                             0);
    if (http->method != CN_HTTP_GET)
        return cn_job_refuse(http, 405, "method", "only GET is possible here", 0);
    if (is_path(http, "/json") || is_path(http, "/json/list"))
        return answer_list(inspector, http);
    if (is_path(http, "/json/version")) {
        cn_buf_append_str(&json,
                          "{\"Browser\":\"cairn/" CN_VERSION "\",\"Protocol-Version\":\"1.3\"}\n");
        return answer_json(http, &json);
    }
    if (http->target.size == 33 && http->target.data[0] == '/' &&
        cn_guard_equal(inspector->id, http->target.data + 1, 32)) {
        if (http->upgrade)
            return upgrade(inspector, http);
        return cn_job_refuse(http, 426, "upgrade", "this is a WebSocket", 0);
    }
    cn_job_refuse(http, 404, "not_found", "there is /json", 0);
}

/* --- start and stop -------------------------------------------------------------------------- */

int cn_inspector_open(struct cn_inspector *inspector, uv_loop_t *loop,
                      const struct cn_control *control, struct cn_server *server, uint16_t port,
                      struct cn_err *err)
{
    int fd;
    uint8_t random[16];
    *inspector = (struct cn_inspector){.control = control, .server = server};
    int rc = cn_http_bind("127.0.0.1", port, &fd, 1, &inspector->port, err);
    if (rc < 0)
        return cn_err_context(err, "inspector");
    cn_rand_secure(random, sizeof(random));
    cn_hex_encode(random, sizeof(random), inspector->id);
    inspector->id[32] = 0;
    cn_list_init(&inspector->clients);
    cn_list_init(&inspector->kept);
    pthread_mutex_init(&inspector->lock, NULL);
    struct cn_ws_options ws = {.message_size_max = CN_INSPECTOR_SENT_MAX, .any_mask = true};
    inspector->ws = cn_ws_lane_new(loop, &ws);
    rc = uv_async_init(loop, &inspector->async, on_async);
    CN_ASSERT(rc == 0);
    rc = uv_timer_init(loop, &inspector->timer);
    CN_ASSERT(rc == 0);
    inspector->async.data = inspector->timer.data = inspector;
    struct cn_http_server_options options = {
        .limits = {.connection_count_max = 32, .body_size_max = 1024},
        .callbacks = {.on_request = on_request},
        .data = inspector,
    };
    rc = cn_http_server_new(loop, &options, &inspector->http, err);
    CN_ASSERT(rc == 0); /* without TLS nothing can fail */
    inspector->tap.note = on_note;
    cn_diag_tap_add(&inspector->tap);
    return cn_http_server_listen(inspector->http, fd, err);
}

bool cn_inspector_stop(struct cn_inspector *inspector, void (*closed)(void *data), void *data)
{
    if (!inspector->http)
        return false;
    cn_diag_tap_remove(&inspector->tap);
    CN_LIST_FOREACH(&inspector->clients, node)
    close_client(CN_CONTAINER_OF(node, struct client, link));
    cn_ws_lane_abort(inspector->ws);
    cn_http_server_close(inspector->http, closed, data);
    return true;
}

void cn_inspector_close(struct cn_inspector *inspector)
{
    if (!inspector->http)
        return;
    CN_ASSERT(inspector->client_count == 0);
    cn_ws_lane_free(inspector->ws);
    uv_close((uv_handle_t *)&inspector->async, NULL);
    uv_close((uv_handle_t *)&inspector->timer, NULL);
}

void cn_inspector_fini(struct cn_inspector *inspector)
{
    if (!inspector->http)
        return;
    while (inspector->kept_count)
        drop_oldest(inspector);
    pthread_mutex_destroy(&inspector->lock);
}
