/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/event_life.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "assets/assets.h"
#include "base/account.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/rand.h"
#include "js/value.h"
#include "net/server.h"
#include "object/node.h"
#include "store/blob.h"
#include "worker/advice.h"
#include "worker/compiled.h"
#include "worker/error_page.h"
#include "worker/hold.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/relief.h"
#include "worker/rollout.h"
#include "worker/runtime.h"
#include "worker/trace.h"

/* What a script may go on doing after its response (WK-2). */
#define WAIT_UNTIL_MS_MAX 30000

static void answer_plain(struct cn_http_request *http, int status, const char *text)
{
    struct cn_http_header headers[] = {
        {"content-type", "text/plain;charset=UTF-8", 12, 24},
        {"cache-control", "no-store", 13, 8},
        {"retry-after", "1", 11, 1},
    };
    struct cn_http_head head = {status, headers, status == 503 ? 3 : 2, NULL};
    /* If the client is gone there is nobody to tell. */
    (void)cn_http_respond(http, &head, text, strlen(text), NULL, NULL);
}

/* The node that has the object of a call that was refused: "NAME HOST:PORT" in the text, or none.
 */
static size_t find_owner(const char *text, size_t size, const char **owner)
{
    const char mark[] = "(" CN_SHARD_OWNER;
    const char *at = memmem(text, size, mark, sizeof(mark) - 1);
    if (!at)
        return 0;
    *owner = at + sizeof(mark) - 1;
    const char *end = memchr(*owner, ')', size - (size_t)(*owner - text));
    return end ? (size_t)(end - *owner) : 0;
}

/* A script lets out that an object is another node's (object/shard.h), or a body is (store/blob.h).
 */
static void answer_away(struct cn_http_request *http, const char *text, size_t size)
{
    bool bodies = memmem(text, size, CN_BLOB_AWAY, sizeof(CN_BLOB_AWAY) - 1);
    bool unknown = memmem(text, size, CN_SHARD_UNKNOWN, sizeof(CN_SHARD_UNKNOWN) - 1);
    const char *body = unknown  ? CN_SHARD_CUT "\n"
                       : bodies ? CN_BLOB_AWAY "\n"
                                : CN_SHARD_AWAY "\n";
    const char *owner = NULL;
    size_t owner_size = find_owner(text, size, &owner);
    struct cn_http_header headers[] = {
        {"content-type", "text/plain;charset=UTF-8", 12, 24},
        {"cache-control", "no-store", 13, 8},
        {"retry-after", "1", 11, 1},
        {"cairn-owner", owner, 11, (uint32_t)owner_size},
    };
    struct cn_http_head head = {503, headers, owner_size ? 4 : 3, NULL};
    (void)cn_http_respond(http, &head, body, strlen(body), NULL, NULL); /* as above */
}

/* Of a node of a cluster alone: whether the text says so. */
static bool is_away(const struct cn_event *event, const char *text, size_t size)
{
    struct cn_node *node = event->instance->lane->options.node;
    return node && cn_shards_numbered(cn_node_shards(node)) &&
           (memmem(text, size, CN_SHARD_AWAY, sizeof(CN_SHARD_AWAY) - 1) ||
            memmem(text, size, CN_BLOB_AWAY, sizeof(CN_BLOB_AWAY) - 1));
}

static void refuse(struct cn_lane *lane, enum cn_refusal reason, struct cn_http_request *http,
                   int status, const char *text)
{
    cn_counter_add(&lane->metrics.refusals[reason], 1);
    answer_plain(http, status, text);
    cn_http_request_release(http);
}

/* F1. Why is the operator's to know: the log, the API and the dashboard have it. */
static void refuse_broken(struct cn_lane *lane, const struct cn_script *script,
                          struct cn_http_request *http)
{
    char *text = cn_sprintf("cairn: the worker %s cannot be served: its version %s\n", script->name,
                            script->broken ? "cannot be opened" : "does not start");
    refuse(lane, CN_REFUSAL_BROKEN, http, 503, text);
    cn_free(text);
}

static void begin_trace(struct cn_event *event)
{
    struct cn_origin origin = {.request = event->id};
    const struct cn_http_request *http = event->http;
    for (size_t i = 0; i < http->header_count; i++) {
        const struct cn_http_header *header = &http->headers[i];
        if (header->name_size == 11 && strncasecmp(header->name, "traceparent", 11) == 0)
            (void)cn_trace_parse_parent(header->value, header->value_size, &origin); /* or new */
    }
    event->unsampled = origin.unsampled;
    event->trace = cn_trace_begin(event->instance, CN_TRACE_FETCH, NULL, NULL, &origin);
}

/* wrangler's two ways to run scheduled() while a project is developed. */
static bool is_by_hand(const struct cn_http_request *http)
{
    static const char *const paths[] = {"/cdn-cgi/handler/scheduled", "/__scheduled"};
    const char *query = memchr(http->target.data, '?', http->target.size);
    size_t size = query ? (size_t)(query - http->target.data) : http->target.size;
    for (size_t i = 0; i < CN_ARRAY_COUNT(paths); i++)
        if (size == strlen(paths[i]) && memcmp(http->target.data, paths[i], size) == 0)
            return true;
    return false;
}

void cn_event_request(struct cn_http_server *server, struct cn_http_request *http)
{
    struct cn_lane *lane = cn_http_server_data(server);
    if (!cn_hold_request(lane, http))
        cn_event_route(lane, http);
}

void cn_event_route(struct cn_lane *lane, struct cn_http_request *http)
{
    if (!lane->deployment)
        return refuse(lane, CN_REFUSAL_STARTING, http, 503, "cairn: starting\n");
    int index = lane->deployment->script_count == 1 && !lane->deployment->scripts[0]->route_count
                    ? 0
                    : cn_deployment_match(lane->deployment, http->host.data, http->host.size,
                                          http->target.data, http->target.size);
    if (index < 0)
        return refuse(lane, CN_REFUSAL_ROUTE, http, 404,
                      "cairn: no worker has a route for this host and path\n");
    index = (int)cn_rollout_request(lane->deployment, (size_t)index, http, &lane->rand);
    struct cn_script *script = lane->deployment->scripts[index];
    if (script->broken) /* F2: nothing of it, not even an asset */
        return refuse_broken(lane, script, http);
    if (lane->options.show_errors && lane->options.background && is_by_hand(http))
        return lane->options.background->scheduled(&lane->background, script, http);
    if (script->assets && cn_assets_respond(script->assets, !script->has_source, &lane->loop, http))
        return;
    struct cn_instance *instance = lane->current[index];
    if (!instance && lane->places[index].failed)
        return refuse_broken(lane, script, http);
    if (!instance) /* N2 */
        return refuse(lane, CN_REFUSAL_STARTING, http, 503,
                      "cairn: the worker is being restarted; try again\n");
    if (instance->over_memory)
        return refuse(lane, CN_REFUSAL_MEMORY, http, 503,
                      "cairn: the worker is out of memory; try again\n");
    if (cn_relief_refuses(instance)) {
        cn_account_relieved(CN_ACCOUNT_RELIEVE_REQUESTS, 1);
        return refuse(lane, CN_REFUSAL_MEMORY, http, 503,
                      "cairn: the server is short of memory; try again\n");
    }
    struct cn_event *event = cn_event_new(instance);
    if (!event)
        return refuse(lane, CN_REFUSAL_EVENTS, http, 503,
                      "cairn: too many requests are under way; try again\n");
    event->http = http;
    event->started_ns = uv_hrtime();
    http->data = event;
    if (cn_trace_is_watched(instance))
        begin_trace(event);
    cn_event_dispatch(event);
}

void cn_event_dispatch(struct cn_event *event)
{
    cn_loop_assert_owner(&event->instance->lane->loop);
    struct cn_instance *instance = event->instance;
    if (cn_compiled_takes_requests(instance)) {
        cn_compiled_request(event);
        return;
    }
    JSContextRef ctx = instance->runtime->context->ref;
    double handle = (double)event->handle;
    JSValueRef argv[1] = {JSValueMakeNumber(ctx, handle)};
    struct cn_err err;
    instance->lane->vm->cause = cn_event_cause(event);
    int rc = cn_instance_enter(instance, &instance->dispatch_fetch, 1, argv, &err);
    if (rc == 0)
        return;
    /* The event may be over already. */
    event = cn_event_find(instance->lane, handle);
    if (!event)
        return;
    if (!cn_event_is_answered(event))
        cn_event_fail(event, rc == CN_ELIMIT ? 503 : 500, err.text, strlen(err.text));
    cn_event_done(event);
}

void cn_event_id_text(uint64_t id, char text[17])
{
    snprintf(text, 17, "%016llx", (unsigned long long)id);
}

/* What a client is told; the rest is in the log. */
static const char *summary_of(const struct cn_event *event, int status)
{
    if (status != 503)
        return "The worker threw an exception";
    return strcmp(event->outcome, "canceled") == 0
               ? "What the request waited for was lost, it can be sent again"
               : "The worker exceeded a limit";
}

void cn_event_fail(struct cn_event *event, int status, const char *text, size_t text_size)
{
    cn_event_fail_told(event, status, text, text_size, "");
}

void cn_event_fail_told(struct cn_event *event, int status, const char *text, size_t text_size,
                        const char *told)
{
    cn_loop_assert_owner(&event->instance->lane->loop);
    char reference[17];
    struct cn_buf explained = {0};
    cn_event_id_text(event->id, reference);
    bool away = is_away(event, told, strlen(told));
    cn_counter_add(away || status == 503 ? &event->instance->metrics->limits
                                         : &event->instance->metrics->exceptions,
                   1);
    if (event->instance->lane->options.show_errors)
        cn_advice_explain_end(event->instance->script, event->instance->lane->vm, text, text_size,
                              &explained);
    else
        cn_script_explain(event->instance->script, text, text_size, false, &explained);
    const char *reason = cn_buf_text(&explained);
    size_t reason_size = explained.size;
    struct cn_diag_field fields[] = {{"worker", event->instance->script->name, 0, false},
                                     {"request", reference, 0, false},
                                     {CN_DIAG_EXCEPTION, NULL, 0, false}};
    if (!away) /* it is nobody's mistake, and may be most requests of a node */
        cn_diag_fields(CN_DIAG_ERROR, fields, 3, reason, reason_size);
    if (cn_event_is_answered(event)) {
        cn_buf_fini(&explained);
        return;
    }
    if (cn_event_is_running(event))
        event->status = away ? 503 : status;
    if (!event->outcome)
        event->outcome = status == 503 ? "exceededCpu" : "exception";
    if (cn_event_is_streaming(event)) {
        cn_http_abort(event->http);
    } else if (away) {
        answer_away(event->http, told, strlen(told));
    } else if (event->instance->lane->options.show_errors) {
        cn_error_page(event->http, status, event->instance->script->name, reason, reason_size);
    } else {
        char short_text[128];
        snprintf(short_text, sizeof(short_text), "%s (reference %s)\n", summary_of(event, status),
                 reference);
        answer_plain(event->http, status, short_text);
    }
    cn_buf_fini(&explained);
    cn_event_answered(event);
}

/* The request line of `cairn dev`. */
static void log_request(const struct cn_event *event)
{
    const struct cn_http_request *http = event->http;
    cn_info("%.*s %.*s %d %.1f ms", (int)http->method_text.size, http->method_text.data,
            (int)http->target.size, http->target.data, event->status,
            (double)(uv_hrtime() - event->started_ns) / 1e6);
}

/* For those who listen: what was asked, and what came of it. */
static void tap_request(const struct cn_event *event)
{
    const struct cn_http_request *http = event->http;
    char id[17], status[8], duration[24], text[256];
    double ms = (double)(uv_hrtime() - event->started_ns) / 1e6;
    cn_event_id_text(event->id, id);
    snprintf(status, sizeof(status), "%d", event->status);
    snprintf(duration, sizeof(duration), "%.3f", ms);
    int size =
        snprintf(text, sizeof(text), "%.*s %.*s %d %.1f ms", (int)http->method_text.size,
                 http->method_text.data, (int)(http->target.size < 160 ? http->target.size : 160),
                 http->target.data, event->status, ms);
    struct cn_diag_field fields[] = {
        {"event", "request", 0, false},
        {"worker", event->instance->script->name, 0, false},
        {"request", id, 0, false},
        {"method", http->method_text.data, http->method_text.size, false},
        {"host", http->host.size ? http->host.data : NULL, http->host.size, false},
        {"target", http->target.data, http->target.size, false},
        {"status", status, 0, true},
        {"durationMs", duration, 0, true},
        {"outcome",
         cn_event_is_canceled(event) ? cn_event_canceled
         : event->status >= 500      ? "error"
                                     : "ok",
         0, false},
    };
    size_t length = size < (int)sizeof(text) ? (size_t)size : sizeof(text) - 1;
    cn_diag_tap_fields(CN_DIAG_INFO, fields, sizeof(fields) / sizeof(fields[0]), text, length);
}

static void count(const struct cn_event *event)
{
    struct cn_worker_metrics *metrics = event->instance->metrics;
    int status = cn_event_is_canceled(event) || event->status < 100 ? 0 : event->status / 100;
    cn_counter_add(&metrics->statuses[status <= 5 ? status : 0], 1);
    cn_histogram_note(&metrics->latency, cn_histogram_us, (uv_hrtime() - event->started_ns) / 1000);
    if (event->instance->lane->options.show_errors)
        log_request(event);
    if (cn_diag_tapped())
        tap_request(event);
}

void cn_event_answered(struct cn_event *event)
{
    if (cn_event_is_answered(event))
        return; /* E2 */
    if (event->started_ns)
        count(event);
    cn_event_complete(event);
    event->answered_ms = uv_now(&event->instance->lane->loop);
    cn_js_pin_clear(&event->drain);
    cn_event_settle(event);
}

void cn_event_done(struct cn_event *event)
{
    cn_event_leave(event);
    cn_event_settle(event);
}

void cn_event_settle(struct cn_event *event)
{
    if (event->state != CN_EVENT_OVER)
        return;
    struct cn_lane *lane = event->instance->lane;
    struct cn_trace *trace = cn_trace_find(lane, event->trace);
    if (trace) {
        if (event->http && (!event->outcome || cn_event_is_canceled(event)))
            trace->status = event->status;
        cn_trace_end(lane, event->trace, event->outcome);
    }
    if (event->http) {
        event->http->data = NULL;
        cn_http_request_release(event->http);
        event->http = NULL;
    }
    cn_event_free(event);
    /* An instance that is not current goes with its last event; not from inside its own
     * JavaScript, so the house-keeping timer does it (lane.c). */
}

/* A callback of the prelude that waits for something of this event. */
static void call_waiting(struct cn_event *event, struct cn_js_pin *pin, size_t argc,
                         const JSValueRef argv[])
{
    if (!pin->context)
        return;
    struct cn_js_pin function;
    cn_js_pin_set(&function, pin->context, pin->value);
    cn_js_pin_clear(pin);
    struct cn_err err;
    if (cn_instance_enter(event->instance, &function, argc, argv, &err) < 0)
        cn_error("%s", err.text);
    cn_js_pin_clear(&function);
}

void cn_event_abort(struct cn_http_server *server, struct cn_http_request *http, int status)
{
    (void)server, (void)status;
    struct cn_event *event = http->data;
    if (!event)
        return;
    event->outcome = cn_event_canceled;
    if (event->in_c) {
        cn_compiled_aborted(event);
        return;
    }
    struct cn_lane *lane = event->instance->lane;
    struct cn_js_context *context = event->instance->runtime->context;
    double handle = (double)event->handle;
    struct cn_js_cause cause = cn_event_cause(event);
    cn_js_enter_cause(context, &cause);
    JSValueRef argv[2] = {JSValueMakeUndefined(context->ref),
                          cn_js_text_z(context->ref, "The client disconnected")};
    /* Each call may end the event. */
    call_waiting(event, &event->read, 2, argv);
    if ((event = cn_event_find(lane, handle)))
        call_waiting(event, &event->drain, 2, argv);
    if ((event = cn_event_find(lane, handle)))
        call_waiting(event, &event->pipe, 1, &argv[1]);
    if ((event = cn_event_find(lane, handle)))
        call_waiting(event, &event->abort, 0, NULL);
    cn_js_leave(context);
    if ((event = cn_event_find(lane, handle)))
        cn_event_answered(event);
}

void cn_event_sweep(struct cn_lane *lane)
{
    cn_loop_assert_owner(&lane->loop);
    uint64_t now = uv_now(&lane->loop);
    struct cn_event *event;
    uint32_t cursor = 0;
    while ((event = cn_handles_next(&lane->events, &cursor))) {
        if (event->state != CN_EVENT_ANSWERED)
            continue;
        if (now - event->answered_ms > WAIT_UNTIL_MS_MAX) {
            struct cn_diag_field fields[] = {{"worker", event->instance->script->name, 0, false}};
            static const char text[] = "waitUntil() promises were given up 30 s after the response";
            cn_diag_fields(CN_DIAG_WARN, fields, 1, text, sizeof(text) - 1);
            cn_event_done(event);
        }
    }
}
