/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/tail.h"

#include <inttypes.h>
#include <stdio.h>

#include "admin/job.h"
#include "base/assert.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/server.h"

struct cn_tail_listener {
    struct cn_list link;
    struct cn_tail *tail;
    struct cn_http_request *http;
    bool full;        /* waits for the client to take what was sent */
    uint64_t dropped; /* lines, meanwhile */
};

/* On any thread, under the tap's lock. */
static void on_note(struct cn_diag_tap *tap, const struct cn_diag_note *note)
{
    struct cn_tail *tail = CN_CONTAINER_OF(tap, struct cn_tail, tap);
    struct cn_buf line = {0};
    cn_diag_append_note(&line, note);
    pthread_mutex_lock(&tail->lock);
    if (tail->pending.size + line.size <= CN_TAIL_PENDING_MAX)
        cn_buf_append(&tail->pending, line.data, line.size);
    else
        tail->dropped++;
    pthread_mutex_unlock(&tail->lock);
    cn_buf_fini(&line);
    uv_async_send(&tail->async);
}

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

static void on_async(uv_async_t *async)
{
    struct cn_tail *tail = async->data;
    pthread_mutex_lock(&tail->lock);
    struct cn_buf lines = tail->pending;
    uint64_t dropped = tail->dropped;
    tail->pending = (struct cn_buf){0};
    tail->dropped = 0;
    pthread_mutex_unlock(&tail->lock);
    CN_LIST_FOREACH(&tail->listeners, link)
    {
        struct cn_tail_listener *listener = CN_CONTAINER_OF(link, struct cn_tail_listener, link);
        listener->dropped += dropped;
        give(listener, &lines);
    }
    cn_buf_fini(&lines);
}

int cn_tail_init(struct cn_tail *tail, uv_loop_t *loop)
{
    cn_loop_assert_owner(loop);
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
    if (tail->listener_count++ == 0)
        cn_diag_tap_add(&tail->tap);
    /* So that the head goes out and whoever waits for it knows that the tap is on. */
    (void)cn_http_write(http, "{\"listening\":true}\n", 19, NULL, NULL);
}

bool cn_tail_abort(struct cn_tail *tail, struct cn_http_request *http)
{
    CN_LIST_FOREACH(&tail->listeners, link)
    {
        struct cn_tail_listener *listener = CN_CONTAINER_OF(link, struct cn_tail_listener, link);
        if (listener->http != http)
            continue;
        cn_list_remove(&listener->link);
        if (--tail->listener_count == 0)
            cn_diag_tap_remove(&tail->tap);
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
