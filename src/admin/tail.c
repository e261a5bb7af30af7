/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/tail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "admin/gather.h"
#include "admin/job.h"
#include "base/assert.h"
#include "base/cond.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/server.h"

struct cn_tail_listener {
    struct cn_list link;
    struct cn_tail *tail;
    struct cn_http_request *http;
    bool told;        /* that it is heard */
    bool full;        /* waits for the client to take what was sent */
    uint64_t dropped; /* lines, meanwhile */
};

/* Appends a line, which is an object, with the name of its node. On any thread. */
static void add_line(struct cn_tail *tail, const char *node, const char *text, size_t size)
{
    struct cn_buf line = {0};
    if (node && size > 2) {
        cn_buf_append_str(&line, "{\"node\":");
        cn_buf_append_json(&line, node, strlen(node));
        cn_buf_append_byte(&line, ',');
        text++;
        size--;
    }
    cn_buf_append(&line, text, size);
    pthread_mutex_lock(&tail->lock);
    if (tail->pending.size + line.size <= CN_TAIL_PENDING_MAX)
        cn_buf_append(&tail->pending, line.data, line.size);
    else
        tail->dropped++;
    pthread_mutex_unlock(&tail->lock);
    cn_buf_fini(&line);
    uv_async_send(&tail->async);
}

/* On any thread, under the tap's lock. */
static void on_note(struct cn_diag_tap *tap, const struct cn_diag_note *note)
{
    struct cn_tail *tail = CN_CONTAINER_OF(tap, struct cn_tail, tap);
    struct cn_buf line = {0};
    cn_diag_append_note(&line, note);
    add_line(tail, tail->node, (const char *)line.data, line.size);
    cn_buf_fini(&line);
}

/* --- other nodes: on the gatherer's thread --- */

static void on_far_line(void *data, const char *node, const char *text, size_t size)
{
    struct cn_buf line = {0};
    if (size < 3 || text[0] != '{' || text[size - 1] != '}')
        return; /* of no release that we know */
    cn_buf_append(&line, text, size);
    cn_buf_append_byte(&line, '\n');
    add_line(data, node, (const char *)line.data, line.size);
    cn_buf_fini(&line);
}

static void on_far_note(void *data, const char *node, const char *text)
{
    struct timespec now;
    struct cn_buf line = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    struct cn_diag_note note = {.time_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000,
                                .level = CN_DIAG_WARN,
                                .text = text,
                                .length = strlen(text)};
    cn_diag_append_note(&line, &note);
    add_line(data, node, (const char *)line.data, line.size);
    cn_buf_fini(&line);
}

static void on_far_ready(void *data)
{
    struct cn_tail *tail = data;
    pthread_mutex_lock(&tail->lock);
    tail->heard = true;
    pthread_mutex_unlock(&tail->lock);
    uv_async_send(&tail->async);
}

static const struct cn_gather_ops far_ops = {.method = "GET",
                                             .target = "/node/tail",
                                             .line = on_far_line,
                                             .note = on_far_note,
                                             .ready = on_far_ready};

/* --- the loop --- */

static uint64_t count_lines(const struct cn_buf *lines)
{
    uint64_t count = 0;
    for (size_t i = 0; i < lines->size; i++)
        count += lines->data[i] == '\n';
    return count;
}

static void on_drain(struct cn_http_request *http)
{
    struct cn_tail_listener *listener = http->data;
    listener->full = false;
}

static void give(struct cn_tail_listener *listener, const struct cn_buf *lines)
{
    if (listener->full) {
        listener->dropped += count_lines(lines);
        return;
    }
    int rc = 1;
    if (listener->dropped) {
        char text[64];
        int size = snprintf(text, sizeof(text), "{\"dropped\":%" PRIu64 "}\n", listener->dropped);
        rc = cn_http_write(listener->http, text, (size_t)size, NULL, NULL);
        listener->dropped = 0;
    }
    if (rc >= 0 && lines->size)
        rc = cn_http_write(listener->http, lines->data, lines->size, NULL, NULL);
    if (rc == 0) {
        listener->full = true;
        cn_http_on_drain(listener->http, on_drain);
    }
}

/* So that the head goes out and whoever waits for it knows that it is on. */
static void tell(struct cn_tail_listener *listener)
{
    if (!listener->told)
        (void)cn_http_write(listener->http, "{\"listening\":true}\n", 19, NULL, NULL);
    listener->told = true;
}

static void on_async(uv_async_t *async)
{
    struct cn_tail *tail = async->data;
    pthread_mutex_lock(&tail->lock);
    struct cn_buf lines = tail->pending;
    uint64_t dropped = tail->dropped;
    bool heard = tail->heard;
    tail->pending = (struct cn_buf){0};
    tail->dropped = 0;
    pthread_mutex_unlock(&tail->lock);
    CN_LIST_FOREACH(&tail->listeners, link)
    {
        struct cn_tail_listener *listener = CN_CONTAINER_OF(link, struct cn_tail_listener, link);
        listener->dropped += dropped;
        if (heard)
            tell(listener);
        give(listener, &lines);
    }
    cn_buf_fini(&lines);
}

int cn_tail_init(struct cn_tail *tail, uv_loop_t *loop, struct cn_gather *gather)
{
    cn_loop_assert_owner(loop);
    tail->gather = gather;
    tail->node = gather && gather->net ? gather->net->name : NULL;
    cn_list_init(&tail->listeners);
    tail->tap = (struct cn_diag_tap){.requests = true, .note = on_note};
    pthread_mutex_init(&tail->lock, NULL);
    int rc = uv_async_init(loop, &tail->async, on_async);
    tail->async.data = tail;
    return rc;
}

void cn_tail_add(struct cn_tail *tail, struct cn_http_request *http)
{
    cn_loop_assert_owner(tail->async.loop);
    if (tail->listener_count == CN_TAIL_LISTENER_MAX)
        return cn_job_refuse(http, 503, "overloaded", "too many listeners", 1);
    struct cn_http_header headers[] = {{"content-type", "application/x-ndjson", 12, 20},
                                       {"cache-control", "no-store", 13, 8}};
    struct cn_http_head head = {200, headers, 2, NULL};
    if (cn_http_begin(http, &head, -1) < 0) {
        cn_http_request_release(http);
        return;
    }
    struct cn_tail_listener *listener = CN_NEW(struct cn_tail_listener);
    listener->tail = tail;
    listener->http = http;
    http->data = listener;
    cn_list_push_back(&tail->listeners, &listener->link);
    if (tail->listener_count++ == 0) {
        cn_diag_tap_add(&tail->tap);
        tail->subject = cn_gather_add(tail->gather, &far_ops, tail);
    }
    pthread_mutex_lock(&tail->lock);
    tail->heard |= !tail->subject;
    bool heard = tail->heard;
    pthread_mutex_unlock(&tail->lock);
    if (heard)
        tell(listener);
}

bool cn_tail_abort(struct cn_tail *tail, struct cn_http_request *http)
{
    CN_LIST_FOREACH(&tail->listeners, link)
    {
        struct cn_tail_listener *listener = CN_CONTAINER_OF(link, struct cn_tail_listener, link);
        if (listener->http != http)
            continue;
        cn_list_remove(&listener->link);
        if (--tail->listener_count == 0) {
            cn_diag_tap_remove(&tail->tap);
            if (tail->subject)
                cn_gather_remove(tail->gather, tail->subject);
            tail->subject = 0;
            tail->heard = false; /* nobody else looks at it now */
        }
        http->data = NULL;
        cn_http_request_release(http);
        cn_free(listener);
        return true;
    }
    return false;
}

void cn_tail_close(struct cn_tail *tail)
{
    cn_loop_assert_owner(tail->async.loop);
    CN_ASSERT(tail->listener_count == 0);
    uv_close((uv_handle_t *)&tail->async, NULL);
}

void cn_tail_fini(struct cn_tail *tail)
{
    pthread_mutex_destroy(&tail->lock);
    cn_buf_fini(&tail->pending);
}

/* --- for another node ------------------------------------------------------------------------ */

struct relay {
    struct cn_diag_tap tap;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t more;
    struct cn_buf pending;
    uint64_t dropped;
};

/* On any thread, under the tap's lock. */
static void on_relayed(struct cn_diag_tap *tap, const struct cn_diag_note *note)
{
    struct relay *relay = CN_CONTAINER_OF(tap, struct relay, tap);
    struct cn_buf line = {0};
    cn_diag_append_note(&line, note);
    pthread_mutex_lock(&relay->lock);
    if (relay->pending.size + line.size <= CN_TAIL_PENDING_MAX)
        cn_buf_append(&relay->pending, line.data, line.size);
    else
        relay->dropped++;
    pthread_cond_signal(&relay->more);
    pthread_mutex_unlock(&relay->lock);
    cn_buf_fini(&line);
}

/* What has come, or nothing after a moment. */
static void take_pending(struct relay *relay, struct cn_buf *lines)
{
    pthread_mutex_lock(&relay->lock);
    if (!relay->pending.size)
        (void)cn_cond_wait_ms(&relay->more, &relay->lock, 200); /* or who asks looks */
    cn_buf_append(lines, relay->pending.data, relay->pending.size);
    if (relay->dropped)
        cn_buf_printf(lines, "{\"dropped\":%" PRIu64 "}\n", relay->dropped);
    relay->dropped = 0;
    cn_buf_clear(&relay->pending);
    pthread_mutex_unlock(&relay->lock);
}

int cn_tail_relay(struct cn_control_call *call, struct cn_err *err)
{
    struct relay relay = {.tap = {.requests = true, .note = on_relayed}};
    struct cn_buf lines = {0};
    if (!call->relayed)
        return cn_err_set(err, CN_EUNSUPPORTED, "this is for nodes of a cluster");
    pthread_mutex_init(&relay.lock, NULL);
    cn_cond_init(&relay.more);
    cn_diag_tap_add(&relay.tap);
    call->type = "application/x-ndjson";
    cn_buf_append_str(&lines, "{\"listening\":true}\n");
    while (call->write(call, lines.data, lines.size) == 0 && !call->cancelled(call)) {
        cn_buf_clear(&lines);
        take_pending(&relay, &lines);
    }
    cn_diag_tap_remove(&relay.tap);
    cn_buf_fini(&lines);
    cn_buf_fini(&relay.pending);
    pthread_cond_destroy(&relay.more);
    pthread_mutex_destroy(&relay.lock);
    return 0;
}
