/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/otlp.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <uv.h>

#include "admin/otlp_json.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/client.h"

#define TICK_MS 1000
#define DELAY_MS_MIN 1000
#define DELAY_MS_MAX 60000
#define ANSWER_MAX (64u << 10)

const char *const cn_otlp_signal_names[CN_OTLP_SIGNALS] = {"traces", "logs", "metrics"};

struct signal {
    struct cn_otlp *otlp;
    enum cn_otlp_signal kind;
    char *url; /* owned */
    /* Guarded by otlp->lock: elements, comma-separated, and their number. */
    struct cn_buf pending;
    size_t pending_count;
    /* The thread's own: what is being sent, or is to be sent again. */
    struct cn_buf body; /* empty: nothing */
    size_t body_count;
    struct cn_client_request *request; /* under way; NULL: none */
    unsigned attempts;
    uint64_t first_ms,
        due_ms; /* loop time of the first attempt, and before which no other is made */
    int status; /* of the answer; 0: none */
    uint64_t retry_after_ms;
    struct cn_buf answer;
    bool unreachable; /* the last attempt failed, and it was said */
};

struct cn_otlp {
    struct cn_otlp_pair *headers, *resource; /* owned */
    size_t header_count, resource_count;
    bool enabled[CN_OTLP_SIGNALS];
    unsigned interval_ms, timeout_ms;
    struct cn_trust *trust;
    struct cn_trace_exporter exporter;
    struct cn_diag_tap tap;
    int64_t started_ms;
    pthread_mutex_t lock; /* guards pending of signals and stats */
    struct cn_otlp_stats stats;
    pthread_mutex_t sources_lock; /* guards the next two; held while metrics are read */
    struct cn_metrics_sources sources;
    bool has_sources;
    struct cn_buf last_metrics; /* read by cn_otlp_detach(); the thread's after `closing` */
    size_t last_count;
    atomic_bool closing;
    uv_thread_t thread;
    uv_loop_t loop;
    uv_async_t async;
    uv_timer_t tick, end;
    bool finished; /* handles are being closed */
    uint64_t metrics_due_ms;
    struct cn_client *client;
    struct signal signals[CN_OTLP_SIGNALS];
};

/* --- what is exported ------------------------------------------------------------------------ */

static void count(struct cn_otlp *otlp, uint64_t *number, uint64_t by)
{
    pthread_mutex_lock(&otlp->lock);
    *number += by;
    pthread_mutex_unlock(&otlp->lock);
}

/* E1. Takes the element over. Any thread. */
static void add(struct cn_otlp *otlp, enum cn_otlp_signal kind, struct cn_buf *elements,
                size_t count)
{
    struct signal *signal = &otlp->signals[kind];
    bool early = false;
    pthread_mutex_lock(&otlp->lock);
    if (signal->pending.size + elements->size > CN_OTLP_PENDING_MAX) {
        otlp->stats.dropped[kind] += count;
    } else {
        size_t before = signal->pending.size;
        if (signal->pending_count)
            cn_buf_append_byte(&signal->pending, ',');
        signal->pending_count += count;
        cn_buf_append(&signal->pending, elements->data, elements->size);
        early = before < CN_OTLP_SEND_EARLY && signal->pending.size >= CN_OTLP_SEND_EARLY;
    }
    pthread_mutex_unlock(&otlp->lock);
    if (early)
        uv_async_send(&otlp->async);
    cn_buf_fini(elements);
}

static void on_trace(void *data, const struct cn_trace *trace)
{
    struct cn_buf span = {0};
    cn_otlp_append_span(&span, trace);
    add(data, CN_OTLP_TRACES, &span, 1);
    struct cn_buf own = {0};
    size_t count = trace->spans.size ? cn_otlp_append_own_spans(&own, trace) : 0;
    if (count)
        add(data, CN_OTLP_TRACES, &own, count);
    cn_buf_fini(&own);
}

static void on_note(struct cn_diag_tap *tap, const struct cn_diag_note *note)
{
    struct cn_buf record = {0};
    cn_otlp_append_log(&record, note);
    add(CN_CONTAINER_OF(tap, struct cn_otlp, tap), CN_OTLP_LOGS, &record, 1);
}

const struct cn_trace_exporter *cn_otlp_exporter(const struct cn_otlp *otlp)
{
    return otlp && otlp->enabled[CN_OTLP_TRACES] ? &otlp->exporter : NULL;
}

void cn_otlp_attach(struct cn_otlp *otlp, const struct cn_metrics_sources *sources)
{
    if (!otlp)
        return;
    pthread_mutex_lock(&otlp->sources_lock);
    otlp->sources = *sources;
    otlp->has_sources = true;
    pthread_mutex_unlock(&otlp->sources_lock);
}

static int64_t now_wall_ms(void)
{
    return cn_clock_wall_ms(cn_clock_system());
}

void cn_otlp_detach(struct cn_otlp *otlp)
{
    if (!otlp)
        return;
    pthread_mutex_lock(&otlp->sources_lock);
    if (otlp->has_sources && otlp->enabled[CN_OTLP_METRICS])
        otlp->last_count = cn_otlp_append_metrics(&otlp->last_metrics, &otlp->sources,
                                                  otlp->started_ms, now_wall_ms());
    otlp->has_sources = false;
    pthread_mutex_unlock(&otlp->sources_lock);
}

void cn_otlp_stats(struct cn_otlp *otlp, struct cn_otlp_stats *stats)
{
    *stats = (struct cn_otlp_stats){0};
    if (!otlp)
        return;
    pthread_mutex_lock(&otlp->lock);
    *stats = otlp->stats;
    pthread_mutex_unlock(&otlp->lock);
}

/* --- requests -------------------------------------------------------------------------------- */

static void step(struct signal *signal);

static void forget_body(struct signal *signal)
{
    cn_buf_clear(&signal->body);
    signal->body_count = 0;
    signal->attempts = 0;
}

/* How many of the elements the collector did not take, by its answer. */
static uint64_t rejected(const struct signal *signal)
{
    static const char *const names[] = {"rejectedSpans", "rejectedLogRecords",
                                        "rejectedDataPoints"};
    struct cn_err err;
    struct cn_buf copy = {0};
    cn_buf_append(&copy, signal->answer.data, signal->answer.size);
    struct cn_json *json = cn_json_parse(cn_buf_text(&copy), copy.size, &err);
    const struct cn_json *partial = cn_json_find(json, "partialSuccess");
    const char *text = cn_json_text(partial, names[signal->kind]);
    uint64_t number =
        text ? strtoull(text, NULL, 10) : (uint64_t)cn_json_int(partial, names[signal->kind]);
    cn_json_free(json);
    cn_buf_fini(&copy);
    return number < signal->body_count ? number : signal->body_count;
}

static void succeeded(struct signal *signal)
{
    struct cn_otlp *otlp = signal->otlp;
    uint64_t lost = rejected(signal);
    count(otlp, &otlp->stats.sent[signal->kind], signal->body_count - lost);
    count(otlp, &otlp->stats.dropped[signal->kind], lost);
    if (signal->unreachable)
        cn_info("OTLP: %s are taken again by %s", cn_otlp_signal_names[signal->kind], signal->url);
    signal->unreachable = false;
    forget_body(signal);
}

static uint64_t delay_ms(const struct signal *signal)
{
    uint64_t delay = DELAY_MS_MIN;
    for (unsigned i = 1; i < signal->attempts && delay < DELAY_MS_MAX; i++)
        delay *= 2;
    if (delay > DELAY_MS_MAX)
        delay = DELAY_MS_MAX;
    return signal->retry_after_ms > delay ? signal->retry_after_ms : delay;
}

static void failed(struct signal *signal, const char *why)
{
    struct cn_otlp *otlp = signal->otlp;
    uint64_t now = uv_now(&otlp->loop);
    int status = signal->status;
    bool again = !status || status == 429 || status == 502 || status == 503 || status == 504;
    count(otlp, &otlp->stats.failures[signal->kind], 1);
    if (!signal->unreachable && !otlp->finished) {
        if (status)
            cn_warn("OTLP: %s answers %d to %s%s", signal->url, status,
                    cn_otlp_signal_names[signal->kind], again ? "; it is tried again" : "");
        else
            cn_warn("OTLP: %s cannot be reached: %s", signal->url, why);
    }
    signal->unreachable = true;
    signal->due_ms = now + (again ? delay_ms(signal) : 0);
    if (again && signal->kind != CN_OTLP_METRICS && !atomic_load(&otlp->closing) &&
        now - signal->first_ms < CN_OTLP_KEEP_MS)
        return; /* E2 */
    count(otlp, &otlp->stats.dropped[signal->kind], signal->body_count);
    unsigned attempts = signal->attempts;
    forget_body(signal);
    signal->attempts = again ? attempts : 0; /* the delay goes on growing */
}

static uint64_t parse_retry_after(const char *text)
{
    char *end;
    unsigned long long seconds = strtoull(text, &end, 10);
    if (end != text)
        return (seconds < 3600 ? seconds : 3600) * 1000;
    struct tm tm = {0};
    if (!strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm))
        return 0;
    int64_t wait = (int64_t)timegm(&tm) * 1000 - now_wall_ms();
    return wait < 0 ? 0 : wait < 3600000 ? (uint64_t)wait : 3600000;
}

static void on_head(struct cn_client_request *request, const struct cn_client_head *head,
                    void *data)
{
    (void)request;
    struct signal *signal = data;
    signal->status = head->status;
    for (size_t i = 0; i < head->header_count; i++) {
        if (strcasecmp(head->headers[i].name, "retry-after") == 0)
            signal->retry_after_ms = parse_retry_after(head->headers[i].value);
    }
}

static void on_body(struct cn_client_request *request, const void *bytes, size_t size, void *data)
{
    (void)request;
    struct signal *signal = data;
    if (signal->answer.size + size <= ANSWER_MAX)
        cn_buf_append(&signal->answer, bytes, size);
}

static void check_finished(struct cn_otlp *otlp);

static void on_done(struct cn_client_request *request, const struct cn_err *error, void *data)
{
    (void)request;
    struct signal *signal = data;
    signal->request = NULL;
    if (error)
        signal->status = 0;
    if (!error && signal->status >= 200 && signal->status < 300)
        succeeded(signal);
    else
        failed(signal, error ? error->text : "");
    if (signal->otlp->finished)
        return;
    if (atomic_load(&signal->otlp->closing)) {
        step(signal);
        check_finished(signal->otlp);
    }
}

static void send_body(struct signal *signal)
{
    static const struct cn_client_callbacks callbacks = {on_head, on_body, NULL, on_done};
    struct cn_otlp *otlp = signal->otlp;
    struct cn_err err;
    struct cn_client_header *headers = cn_alloc_zero((otlp->header_count + 2) * sizeof(*headers));
    size_t header_count = 0;
    headers[header_count++] = (struct cn_client_header){"content-type", "application/json", 12, 16};
    headers[header_count++] = (struct cn_client_header){"user-agent", "cairn/" CN_VERSION, 10,
                                                        strlen("cairn/" CN_VERSION)};
    for (size_t i = 0; i < otlp->header_count; i++)
        headers[header_count++] = (struct cn_client_header){
            otlp->headers[i].name, otlp->headers[i].value, strlen(otlp->headers[i].name),
            strlen(otlp->headers[i].value)};
    struct cn_client_params params = {.method = "POST",
                                      .url = signal->url,
                                      .headers = headers,
                                      .header_count = header_count,
                                      .body_kind = CN_CLIENT_BODY_BYTES,
                                      .body = signal->body.data,
                                      .body_size = signal->body.size,
                                      .total_timeout_ms = otlp->timeout_ms};
    if (!signal->attempts++)
        signal->first_ms = uv_now(&otlp->loop);
    signal->status = 0;
    signal->retry_after_ms = 0;
    cn_buf_clear(&signal->answer);
    signal->request = cn_client_fetch(otlp->client, &params, &callbacks, signal, &err);
    cn_free(headers);
    if (!signal->request)
        failed(signal, err.text);
}

/* --- the thread ------------------------------------------------------------------------------ */

static void begin(struct signal *signal)
{
    cn_otlp_begin(&signal->body, signal->kind, signal->otlp->resource,
                  signal->otlp->resource_count);
}

/* Makes the next body of spans or logs from what waits. */
static void take_pending(struct signal *signal)
{
    struct cn_otlp *otlp = signal->otlp;
    pthread_mutex_lock(&otlp->lock);
    struct cn_buf pending = signal->pending;
    signal->body_count = signal->pending_count;
    signal->pending = (struct cn_buf){0};
    signal->pending_count = 0;
    pthread_mutex_unlock(&otlp->lock);
    if (signal->body_count) {
        begin(signal);
        cn_buf_append(&signal->body, pending.data, pending.size);
        cn_otlp_end(&signal->body);
    }
    cn_buf_fini(&pending);
}

static void take_metrics(struct signal *signal)
{
    struct cn_otlp *otlp = signal->otlp;
    uint64_t now = uv_now(&otlp->loop);
    bool closing = atomic_load(&otlp->closing);
    if (!closing && now < otlp->metrics_due_ms)
        return;
    otlp->metrics_due_ms = now + otlp->interval_ms;
    pthread_mutex_lock(&otlp->sources_lock);
    if (otlp->last_count) {
        begin(signal);
        cn_buf_append(&signal->body, otlp->last_metrics.data, otlp->last_metrics.size);
        signal->body_count = otlp->last_count;
        otlp->last_count = 0;
    } else if (otlp->has_sources) {
        begin(signal);
        signal->body_count =
            cn_otlp_append_metrics(&signal->body, &otlp->sources, otlp->started_ms, now_wall_ms());
    }
    pthread_mutex_unlock(&otlp->sources_lock);
    if (signal->body.size)
        cn_otlp_end(&signal->body);
}

static void step(struct signal *signal)
{
    struct cn_otlp *otlp = signal->otlp;
    if (signal->request || !otlp->enabled[signal->kind] || otlp->finished)
        return;
    if (uv_now(&otlp->loop) < signal->due_ms && !atomic_load(&otlp->closing))
        return;
    if (!signal->body.size) {
        if (signal->kind == CN_OTLP_METRICS)
            take_metrics(signal);
        else
            take_pending(signal);
    }
    if (signal->body.size)
        send_body(signal);
}

static void on_tick(uv_timer_t *timer)
{
    struct cn_otlp *otlp = timer->data;
    for (size_t i = 0; i < CN_OTLP_SIGNALS; i++)
        step(&otlp->signals[i]);
}

static void on_client_closed(void *data)
{
    (void)data; /* the loop ends with its last handle */
}

static void finish(struct cn_otlp *otlp)
{
    if (otlp->finished)
        return;
    otlp->finished = true;
    uv_close((uv_handle_t *)&otlp->async, NULL);
    uv_close((uv_handle_t *)&otlp->tick, NULL);
    uv_close((uv_handle_t *)&otlp->end, NULL);
    cn_client_close(otlp->client, on_client_closed, NULL);
}

static void check_finished(struct cn_otlp *otlp)
{
    for (size_t i = 0; i < CN_OTLP_SIGNALS; i++) {
        if (otlp->signals[i].request)
            return;
    }
    finish(otlp);
}

static void on_end(uv_timer_t *timer)
{
    finish(timer->data); /* E3: time is over */
}

static void on_async(uv_async_t *async)
{
    struct cn_otlp *otlp = async->data;
    on_tick(&otlp->tick);
    if (!atomic_load(&otlp->closing) || otlp->finished)
        return;
    uv_timer_start(&otlp->end, on_end, CN_OTLP_STOP_MS, 0);
    check_finished(otlp);
}

static void otlp_main(void *arg)
{
    struct cn_otlp *otlp = arg;
    cn_loop_take(&otlp->loop);
    uv_run(&otlp->loop, UV_RUN_DEFAULT);
}

static struct cn_otlp_pair *copy_pairs(const struct cn_otlp_pair *pairs, size_t pair_count)
{
    struct cn_otlp_pair *copy = cn_alloc_zero((pair_count + 1) * sizeof(*copy));
    for (size_t i = 0; i < pair_count; i++)
        copy[i] = (struct cn_otlp_pair){cn_strdup(pairs[i].name), cn_strdup(pairs[i].value)};
    return copy;
}

static void free_pairs(struct cn_otlp_pair *pairs, size_t pair_count)
{
    for (size_t i = 0; i < pair_count; i++) {
        cn_free(pairs[i].name);
        cn_free(pairs[i].value);
    }
    cn_free(pairs);
}

static void free_otlp(struct cn_otlp *otlp)
{
    for (size_t i = 0; i < CN_OTLP_SIGNALS; i++) {
        struct signal *signal = &otlp->signals[i];
        cn_free(signal->url);
        cn_buf_fini(&signal->pending);
        cn_buf_fini(&signal->body);
        cn_buf_fini(&signal->answer);
    }
    free_pairs(otlp->headers, otlp->header_count);
    free_pairs(otlp->resource, otlp->resource_count);
    cn_buf_fini(&otlp->last_metrics);
    pthread_mutex_destroy(&otlp->lock);
    pthread_mutex_destroy(&otlp->sources_lock);
    cn_free(otlp);
}

static struct cn_otlp *make(const struct cn_otlp_options *options)
{
    struct cn_otlp *otlp = CN_NEW(struct cn_otlp);
    otlp->headers = copy_pairs(options->headers, options->header_count);
    otlp->header_count = options->header_count;
    otlp->resource = copy_pairs(options->resource, options->resource_count);
    otlp->resource_count = options->resource_count;
    otlp->interval_ms = options->interval_ms;
    otlp->timeout_ms = options->timeout_ms;
    otlp->exporter = (struct cn_trace_exporter){on_trace, otlp};
    otlp->tap = (struct cn_diag_tap){.note = on_note};
    otlp->started_ms = now_wall_ms();
    pthread_mutex_init(&otlp->lock, NULL);
    pthread_mutex_init(&otlp->sources_lock, NULL);
    size_t length = strlen(options->endpoint);
    while (length && options->endpoint[length - 1] == '/')
        length--;
    for (size_t i = 0; i < CN_OTLP_SIGNALS; i++) {
        otlp->enabled[i] = options->signals[i];
        otlp->signals[i].otlp = otlp;
        otlp->signals[i].kind = (enum cn_otlp_signal)i;
        otlp->signals[i].url =
            cn_sprintf("%.*s/v1/%s", (int)length, options->endpoint, cn_otlp_signal_names[i]);
    }
    return otlp;
}

int cn_otlp_start(const struct cn_otlp_options *options, struct cn_otlp **out, struct cn_err *err)
{
    struct cn_otlp *otlp = make(options);
    int rc = cn_loop_init(&otlp->loop, err);
    if (rc < 0) {
        free_otlp(otlp);
        return rc;
    }
    rc = uv_async_init(&otlp->loop, &otlp->async, on_async);
    CN_ASSERT(rc == 0);
    uv_timer_init(&otlp->loop, &otlp->tick);
    uv_timer_init(&otlp->loop, &otlp->end);
    otlp->async.data = otlp->tick.data = otlp->end.data = otlp;
    uv_timer_start(&otlp->tick, on_tick, TICK_MS, TICK_MS);
    otlp->metrics_due_ms = uv_now(&otlp->loop) + otlp->interval_ms;
    struct cn_client_options client = {.trust = options->trust};
    otlp->client = cn_client_new(&otlp->loop, &client);
    cn_loop_give(&otlp->loop);
    rc = uv_thread_create(&otlp->thread, otlp_main, otlp);
    if (rc < 0) {
        cn_loop_take(&otlp->loop);
        finish(otlp);
        uv_run(&otlp->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&otlp->loop);
        free_otlp(otlp);
        return cn_err_set(err, rc, "cannot start a thread");
    }
    if (otlp->enabled[CN_OTLP_LOGS])
        cn_diag_tap_add(&otlp->tap);
    *out = otlp;
    return 0;
}

void cn_otlp_stop(struct cn_otlp *otlp)
{
    if (!otlp)
        return;
    if (otlp->enabled[CN_OTLP_LOGS])
        cn_diag_tap_remove(&otlp->tap);
    atomic_store(&otlp->closing, true);
    uv_async_send(&otlp->async);
    uv_thread_join(&otlp->thread);
    CN_ASSERT(uv_loop_close(&otlp->loop) == 0);
    free_otlp(otlp);
}
