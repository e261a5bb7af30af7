/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter and a scripted collector: what several threads log arrives once, what finds no room
 * is counted, and the end neither loses nor waits. What the JSON holds is checked by
 * test/integration/admin/otlp.test.mjs. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "admin/otlp.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/trust.h"
#include "test/lib/origin.h"
#include "test/lib/test.h"

/* A collector on a thread of its own: the exporter has its own loop as well. */
struct collector {
    uv_loop_t loop;
    uv_thread_t thread;
    uv_async_t stop;
    struct origin origin;
    const char *answer;
    uv_mutex_t lock; /* guards the next one */
    unsigned records;
};

static void on_data(struct origin_conn *conn)
{
    struct collector *collector = conn->origin->data;
    struct cn_buf head = {0}, body = {0};
    while (origin_take_request(conn, &head, &body)) {
        struct cn_err err;
        struct cn_json *json = cn_json_parse(cn_buf_text(&body), body.size, &err);
        CHECK(json != NULL);
        const struct cn_json *groups = cn_json_find(json, "resourceLogs");
        const struct cn_json *scopes = cn_json_find(groups->first, "scopeLogs");
        uv_mutex_lock(&collector->lock);
        for (const struct cn_json *each = cn_json_find(scopes->first, "logRecords")->first; each;
             each = each->next)
            collector->records++;
        uv_mutex_unlock(&collector->lock);
        cn_json_free(json);
        origin_print(conn, "%s", collector->answer);
    }
    cn_buf_fini(&head);
    cn_buf_fini(&body);
}

static void on_stop(uv_async_t *async)
{
    uv_stop(async->loop);
}

static void collector_main(void *arg)
{
    struct collector *collector = arg;
    uv_run(&collector->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&collector->stop, NULL);
    origin_stop(&collector->origin);
    CHECK(uv_loop_close(&collector->loop) == 0);
}

static void collector_start(struct collector *collector, const char *answer)
{
    *collector = (struct collector){.answer = answer};
    CHECK_INT(0, cn_loop_init(&collector->loop, NULL));
    uv_mutex_init(&collector->lock);
    uv_async_init(&collector->loop, &collector->stop, on_stop);
    collector->origin.data = collector;
    origin_start(&collector->origin, &collector->loop, on_data);
    uv_thread_create(&collector->thread, collector_main, collector);
}

static void collector_stop(struct collector *collector)
{
    uv_async_send(&collector->stop);
    uv_thread_join(&collector->thread);
    uv_mutex_destroy(&collector->lock);
}

static struct cn_otlp *start(const struct collector *collector, struct cn_trust **trust)
{
    char endpoint[64];
    struct cn_err err;
    struct cn_otlp *otlp = NULL;
    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", collector->origin.port);
    *trust = cn_trust_new(NULL, &err);
    CHECK(*trust != NULL);
    struct cn_otlp_options options = {.endpoint = endpoint,
                                      .signals = {[CN_OTLP_LOGS] = true},
                                      .interval_ms = 1000,
                                      .timeout_ms = 5000,
                                      .trust = *trust};
    CHECK(cn_otlp_start(&options, &otlp, &err) == 0);
    return otlp;
}

#define THREADS 4
#define LINES 500

static void log_lines(void *arg)
{
    (void)arg;
    for (int i = 0; i < LINES; i++)
        cn_diag(CN_DIAG_DEBUG, "line %d of a thread, \"quoted\"", i); /* not on standard error */
}

TEST(otlp, what_several_threads_log_arrives_once)
{
    struct collector collector;
    struct cn_trust *trust;
    collector_start(&collector, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    struct cn_otlp *otlp = start(&collector, &trust);
    uv_thread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        uv_thread_create(&threads[i], log_lines, NULL);
    for (int i = 0; i < THREADS; i++)
        uv_thread_join(&threads[i]);
    struct cn_otlp_stats stats = {0};
    for (int i = 0; i < 6000 && stats.sent[CN_OTLP_LOGS] < THREADS * LINES; i++) {
        uv_sleep(10);
        cn_otlp_stats(otlp, &stats);
    }
    CHECK_INT(THREADS * LINES, (int)stats.sent[CN_OTLP_LOGS]);
    cn_diag(CN_DIAG_DEBUG, "the last");
    cn_otlp_stop(otlp); /* E3 */
    collector_stop(&collector);
    CHECK_INT(THREADS * LINES + 1, collector.records);
    cn_trust_free(trust);
}

TEST(otlp, what_finds_no_room_is_dropped_and_counted)
{
    struct collector collector;
    struct cn_trust *trust;
    struct cn_otlp_stats stats;
    collector_start(&collector, ""); /* it takes everything and never answers */
    struct cn_otlp *otlp = start(&collector, &trust);
    char *text = cn_alloc(100000);
    memset(text, 'x', 100000);
    unsigned given = 200; /* 20 MB */
    for (unsigned i = 0; i < given; i++)
        cn_diag_fields(CN_DIAG_DEBUG, NULL, 0, text, 100000);
    cn_free(text);
    cn_otlp_stats(otlp, &stats);
    /* One request may be under way, as much again waits. */
    CHECK(stats.dropped[CN_OTLP_LOGS] > given - 2 * (CN_OTLP_PENDING_MAX / 100000 + 1));
    CHECK(stats.dropped[CN_OTLP_LOGS] < given);
    CHECK_INT(0, (int)stats.sent[CN_OTLP_LOGS]);
    cn_otlp_stop(otlp); /* does not wait for the answer for long */
    collector_stop(&collector);
    cn_trust_free(trust);
}

TEST(otlp, a_refusal_drops_what_was_sent)
{
    struct collector collector;
    struct cn_trust *trust;
    collector_start(&collector, "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n");
    struct cn_otlp *otlp = start(&collector, &trust);
    struct cn_otlp_stats stats = {0};
    cn_diag(CN_DIAG_DEBUG, "refused");
    for (int i = 0; i < 6000 && !stats.dropped[CN_OTLP_LOGS]; i++) {
        uv_sleep(10);
        cn_otlp_stats(otlp, &stats);
    }
    CHECK_INT(1, (int)stats.dropped[CN_OTLP_LOGS]);
    CHECK_INT(1, (int)stats.failures[CN_OTLP_LOGS]);
    cn_otlp_stop(otlp);
    collector_stop(&collector);
    cn_trust_free(trust);
}
