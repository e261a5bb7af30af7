/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/compiled.h"

#include <stdio.h>
#include <string.h>

#include "base/account.h"
#include "base/assert.h"
#include "base/mem.h"
#include "module/worker.h"
#include "net/server.h"
#include "object/envelope.h"
#include "net/ws_end.h"
#include "worker/address.h"
#include "worker/compiled_body.h"
#include "worker/dispatch.h"
#include "worker/event.h"
#include "worker/event_life.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/trace.h"
#include "worker/websocket.h"

#define LINGER_MS_MAX 30000 /* F3 */
#define HEADERS_MAX 256
#define COPIED_BODY_MAX (16u << 10) /* a longer one is given away */

int cn_compiled_start(struct cn_instance *instance, struct cn_err *err)
{
    instance->compiled = cn_compiled_worker_new(instance->script->front, &instance->lane->host,
                                                instance->serial, &instance->metrics->ticks, err);
    return instance->compiled ? 0 : err->code;
}

bool cn_compiled_lingers(const struct cn_instance *instance)
{
    return instance->compiled && cn_compiled_worker_waits(instance->compiled) &&
           instance->state == CN_INSTANCE_RETIRED &&
           uv_now(&instance->lane->loop) - instance->retired_ms < LINGER_MS_MAX;
}

static struct cn_origin origin_of(const struct cn_event *event)
{
    struct cn_origin origin = {
        .request = event->id, .depth = event->depth, .unsampled = event->unsampled};
    const struct cn_trace *trace = cn_trace_find(event->instance->lane, event->trace);
    if (trace) {
        memcpy(origin.trace, trace->origin.trace, sizeof(origin.trace));
        origin.span = trace->span;
    }
    return origin;
}

/* Gives the event to the class. It may be over when this returns. */
static void ask(struct cn_event *event, struct cn_compiled_question *question)
{
    question->origin = origin_of(event);
    question->trace = event->trace;
    question->data = event;
    cn_compiled_ask(event->instance->compiled, question, &event->compiled);
}

/* --- requests -------------------------------------------------------------------------------- */

static void release_body(void *data)
{
    cn_free(data);
}

/* "name\0value\0" ... Returns how many, or -1. */
static int split_headers(const struct cn_buf *text, struct cn_http_header *headers)
{
    int count = 0;
    for (size_t at = 0; text && at < text->size; count++) {
        if (count == HEADERS_MAX)
            return -1;
        const char *name = (const char *)text->data + at;
        size_t name_size = strlen(name);
        const char *value = name + name_size + 1;
        size_t value_size = strlen(value);
        headers[count] =
            (struct cn_http_header){name, value, (uint32_t)name_size, (uint32_t)value_size};
        at += name_size + value_size + 2;
    }
    return count;
}

/* Whether what it is answered with has one. */
static bool has_body(const struct cn_event *event)
{
    int status = event->status;
    return event->http->method != CN_HTTP_HEAD && status != 204 && status != 205 && status != 304;
}

static int respond(struct cn_event *event, struct cn_compiled_answer *answer)
{
    struct cn_http_request *http = event->http;
    struct cn_http_header headers[HEADERS_MAX];
    int count = split_headers(answer->headers, headers);
    if (count < 0)
        return CN_ELIMIT;
    struct cn_http_head head = {answer->status, headers, (size_t)count, NULL};
    if (answer->stream && has_body(event)) {
        int rc = cn_compiled_body_respond(event, &head, answer->stream);
        if (rc == 0)
            answer->stream = NULL;
        return rc;
    }
    size_t size = answer->body->size;
    if (size <= COPIED_BODY_MAX)
        return cn_http_respond(http, &head, answer->body->data, size, NULL, NULL);
    uint8_t *body = cn_buf_take(answer->body);
    return cn_http_respond(http, &head, body, size, release_body, body);
}

static void fail_request(struct cn_event *event, int status, const char *type, const char *text)
{
    char reason[CN_ERR_TEXT_MAX + 80];
    int size = snprintf(reason, sizeof(reason), "%s: %s", type, text);
    cn_event_fail(event, status, reason, (size_t)size < sizeof(reason) ? (size_t)size : 0);
}

/* The client gets the WebSocket that an object, or the class, has for it. */
static void respond_socket(struct cn_event *event, struct cn_compiled_answer *answer)
{
    struct cn_http_header headers[HEADERS_MAX];
    int count = split_headers(answer->headers, headers);
    uint64_t number = cn_websocket_claim(event->instance, answer->socket);
    struct cn_ws_end *end = cn_websocket_find(event->instance->lane, (double)number);
    event->status = 0;
    if (!end || count < 0) {
        if (end)
            cn_ws_end_release(end);
        fail_request(event, 500, "Error",
                     end ? "the response has more than 256 headers"
                         : "The WebSocket of the response is gone.");
        return;
    }
    int rc = cn_websocket_respond(event, headers, (size_t)count, end);
    if (rc != 0)
        cn_ws_end_release(end);
    if (rc == CN_EINVALID) {
        fail_request(event, 500, "TypeError",
                     "Worker tried to return WebSocket in a response to a request which did not "
                     "contain the header \"Upgrade: websocket\".");
        return;
    }
    if (rc > 0) {
        cn_websocket_refuse(event, rc);
        return;
    }
    event->status = 101;
    cn_event_answered(event);
}

static void on_ended(void *data, struct cn_compiled_answer *answer)
{
    struct cn_event *event = data;
    bool answered = cn_event_is_answered(event);
    event->compiled = NULL;
    if (answered) { /* F2 */
        cn_event_done(event);
        return;
    }
    cn_event_leave(event); /* so that its answer is its end */
    if (answer->error) {
        fail_request(event, answer->status ? answer->status : 500, answer->error_type,
                     answer->error);
        return;
    }
    event->status = answer->status;
    if (answer->socket) {
        respond_socket(event, answer);
        return;
    }
    bool streams = answer->stream && has_body(event);
    int rc = respond(event, answer);
    if (rc == CN_EINVALID || rc == CN_ELIMIT) {
        event->status = 0;
        fail_request(event, 500, "TypeError",
                     rc == CN_ELIMIT ? "the response has more than 256 headers"
                                     : "HTTP does not allow this response");
        return;
    }
    if (rc < 0 || !streams) /* else the stream's end is the event's */
        cn_event_answered(event);
}

static void give_request(struct cn_event *event)
{
    char address[CN_ADDRESS_SIZE];
    struct cn_compiled_question question = {
        .kind = CN_COMPILED_FETCH,
        .http = event->http,
        .address = cn_event_address(event, address) ? address : "",
        .size = event->early.size,
        .ended = on_ended,
    };
    cn_event_gathered(event); /* it becomes the class's */
    if (event->http->content_length != 0 && cn_compiled_streams(event->instance->script->front)) {
        question.open_body = cn_compiled_body_open;
    } else if (event->http->content_length != 0) {
        question.bytes = cn_buf_take(&event->early);
        if (!question.bytes)
            question.bytes = cn_alloc(1);
    }
    ask(event, &question);
}

static void refuse_body(struct cn_event *event, int status, const char *text)
{
    cn_buf_fini(&event->early);
    cn_event_gathered(event);
    event->body_lost = true;
    cn_http_request_read_stop(event->http);
    cn_event_leave(event);
    cn_event_fail(event, status, text, strlen(text));
}

static void give_up_body(struct cn_event *event)
{
    cn_account_relieved(CN_ACCOUNT_RELIEVE_BODIES, 1);
    refuse_body(event, 503, "the server is short of memory; the request body was not taken");
}

static void answer_too_large(struct cn_event *event)
{
    static const char text[] = "A worker in C takes request bodies of 16 MiB at most.\n";
    struct cn_http_header headers[] = {{"content-type", "text/plain;charset=UTF-8", 12, 24}};
    struct cn_http_head head = {413, headers, 1, NULL};
    cn_buf_fini(&event->early);
    cn_event_gathered(event);
    cn_http_request_read_stop(event->http);
    event->status = 413;
    cn_event_leave(event);
    (void)cn_http_respond(event->http, &head, text, sizeof(text) - 1, NULL,
                          NULL); /* or it is gone */
    cn_event_answered(event);
}

/* F1: takes what there is of the body, and goes on when it has all come. */
static void on_body(struct cn_http_request *http, int status, const uint8_t *bytes, size_t size)
{
    struct cn_event *event = http->data;
    if (!event || event->body_lost)
        return;
    while (status == CN_HTTP_READ_DATA) {
        if (size > CN_COMPILED_BODY_MAX || event->early.size > CN_COMPILED_BODY_MAX - size) {
            answer_too_large(event);
            return;
        }
        if (!cn_account_take(CN_ACCOUNT_BODIES, size)) {
            give_up_body(event);
            return;
        }
        event->gathered += size;
        cn_buf_append(&event->early, bytes, size);
        status = cn_http_request_read(http, &bytes, &size, on_body);
    }
    if (status == CN_HTTP_READ_END)
        give_request(event);
    else if (status < 0 && cn_event_is_running(event)) {
        /* The server has answered it; on_abort follows. */
        event->body_lost = true;
    }
}

bool cn_compiled_fetches(const struct cn_script *script)
{
    return script->front && cn_compiled_takes(script->front, CN_COMPILED_FETCH);
}

bool cn_compiled_takes_requests(const struct cn_instance *instance)
{
    return instance->compiled && cn_compiled_fetches(instance->script);
}

void cn_compiled_request(struct cn_event *event)
{
    event->in_c = true;
    if (event->http->content_length == 0 || cn_compiled_streams(event->instance->script->front)) {
        give_request(event);
        return;
    }
    if (event->http->content_length > (int64_t)CN_COMPILED_BODY_MAX) {
        answer_too_large(event);
        return;
    }
    const uint8_t *bytes = NULL;
    size_t size = 0;
    event->give_up = give_up_body;
    int rc = cn_http_request_read(event->http, &bytes, &size, on_body);
    if (rc != CN_HTTP_READ_PENDING)
        on_body(event->http, rc, bytes, size);
}

void cn_compiled_aborted(struct cn_event *event)
{
    if (!event->compiled)
        cn_event_leave(event); /* the class has not seen it */
    cn_event_answered(event);
}

/* --- from inside the server ------------------------------------------------------------------ */

/* What the class would get it as; false: it is nothing for a class. */
static bool kind_of(const struct cn_dispatch *dispatch, enum cn_compiled_kind *kind)
{
    static const struct {
        const char *handler;
        enum cn_compiled_kind kind;
    } kinds[] = {
        {"fetch", CN_COMPILED_FETCH},         {"rpc", CN_COMPILED_CALL},
        {"scheduled", CN_COMPILED_SCHEDULED}, {"queue", CN_COMPILED_QUEUE},
        {"target", CN_COMPILED_TARGET},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(kinds) && !dispatch->entrypoint; i++) {
        if (strcmp(kinds[i].handler, dispatch->handler) == 0) {
            *kind = kinds[i].kind;
            return true;
        }
    }
    return false;
}

bool cn_compiled_takes_dispatch(const struct cn_event *event)
{
    enum cn_compiled_kind kind;
    const struct cn_dispatch *dispatch = event->dispatch;
    cairn_object *worker = event->instance->compiled;
    if (!worker || !kind_of(dispatch, &kind))
        return false;
    if (kind == CN_COMPILED_TARGET) /* or it is lent by JavaScript */
        return cn_compiled_has_lent(worker, dispatch->method, dispatch->bytes, dispatch->size);
    return cn_compiled_takes(event->instance->script->front, kind);
}

static void on_dispatch_ended(void *data, struct cn_compiled_answer *answer)
{
    struct cn_event *event = data;
    bool answered = cn_event_is_answered(event);
    event->compiled = NULL;
    if (answered) {
        cn_event_done(event);
        return;
    }
    cn_event_leave(event); /* so that its answer is its end */
    if (answer->error)
        cn_dispatch_fail(event, CN_FAULT_REMOTE, CN_EABORTED, answer->error, answer->bytes,
                         answer->size);
    else
        cn_dispatch_reply(event, answer->bytes, answer->size, false);
}

void cn_compiled_dispatch(struct cn_event *event)
{
    struct cn_dispatch *dispatch = event->dispatch;
    struct cn_compiled_question question = {.method = dispatch->method,
                                            .bytes = dispatch->bytes,
                                            .size = dispatch->size,
                                            .ended = on_dispatch_ended};
    bool is_known = kind_of(dispatch, &question.kind);
    CN_ASSERT(is_known);
    event->in_c = true;
    dispatch->bytes = NULL;
    ask(event, &question);
}

struct cn_ws_end *cn_compiled_find_socket(void *lane, uint64_t number)
{
    return cn_websocket_find(lane, (double)number);
}

/* --- to other workers ------------------------------------------------------------------------ */

static void on_sent_done(struct cn_dispatch *dispatch)
{
    struct cn_compiled_dispatch *sent = dispatch->envelope.data;
    const struct cn_err *err = &dispatch->envelope.err;
    sent->done(sent, err->code ? err : NULL, dispatch->envelope.faults, dispatch->result,
               dispatch->result_size);
    cn_dispatch_free(dispatch);
}

static void on_sent_dropped(struct cn_dispatch *dispatch)
{
    struct cn_compiled_dispatch *sent = dispatch->envelope.data;
    sent->lost(sent);
}

static uint8_t *take(uint8_t **bytes)
{
    uint8_t *taken = *bytes;
    *bytes = NULL;
    return taken;
}

void cn_compiled_send(void *data, struct cn_compiled_dispatch *sent, struct cn_object *gate)
{
    struct cn_lane *lane = data;
    struct cn_dispatch *dispatch = cn_dispatch_new(lane, lane);
    dispatch->script = cn_strdup(sent->worker);
    dispatch->handler = sent->method ? "rpc" : "fetch";
    dispatch->entrypoint = sent->entrypoint ? cn_strdup(sent->entrypoint) : NULL;
    dispatch->method = sent->method ? cn_strdup(sent->method) : NULL;
    dispatch->bytes = take(&sent->bytes);
    dispatch->size = sent->size;
    dispatch->props = take(&sent->props);
    dispatch->props_size = sent->props_size;
    dispatch->on_done = on_sent_done;
    dispatch->on_drop = on_sent_dropped;
    dispatch->envelope.origin = sent->origin;
    dispatch->envelope.data = sent;
    cn_dispatch_send(dispatch, gate);
}
