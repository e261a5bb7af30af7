/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/job.h"

#include <stdio.h>
#include <string.h>

#include "admin/handler.h"
#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/server.h"

static struct cn_http_header header(const char *name, const char *value)
{
    return (struct cn_http_header){name, value, (uint32_t)strlen(name), (uint32_t)strlen(value)};
}

void cn_job_refuse(struct cn_http_request *http, int status, const char *code, const char *sentence,
                   unsigned retry_seconds)
{
    struct cn_buf body = {0};
    char seconds[16];
    snprintf(seconds, sizeof(seconds), "%u", retry_seconds);
    struct cn_http_header headers[] = {
        header("content-type", "application/json"), header("cache-control", "no-store"),
        status == 401 ? header("www-authenticate", "Bearer") : header("retry-after", seconds)};
    struct cn_http_head head = {status, headers, status == 401 || retry_seconds ? 3 : 2, NULL};
    if (cn_target_is_platform(http->target.data, http->target.size)) {
        cn_control_append_platform_error(&body, status, 0, sentence);
    } else {
        cn_buf_append_str(&body, "{\"error\":{\"code\":");
        cn_buf_append_json(&body, code, strlen(code));
        cn_buf_append_str(&body, ",\"message\":");
        cn_buf_append_json(&body, sentence, strlen(sentence));
        cn_buf_append_str(&body, "}}\n");
    }
    (void)cn_http_respond(http, &head, body.data, body.size, NULL, NULL); /* or it is gone */
    cn_buf_fini(&body);
    cn_http_request_release(http);
}

static void free_job(struct cn_job *job)
{
    cn_list_remove(&job->link);
    cn_buf_fini(&job->method);
    cn_buf_fini(&job->target);
    cn_buf_fini(&job->content_type);
    cn_buf_fini(&job->host);
    cn_buf_fini(&job->sent);
    cn_buf_fini(&job->call.fields);
    cn_buf_fini(&job->ready);
    cn_buf_fini(&job->incoming);
    pthread_mutex_destroy(&job->lock);
    pthread_cond_destroy(&job->room);
    pthread_cond_destroy(&job->more);
    job->on_end(job, job->data);
    cn_free(job);
}

/* --- the thread ------------------------------------------------------------------------------ */

/* With the lock held. */
static void post(struct cn_job *job)
{
    if (job->posted)
        return;
    job->posted = true;
    bool sent = cn_mailbox_send(job->mailbox, &job->mail);
    CN_ASSERT(sent); /* the loop ends after its last job */
}

/* With the lock held: as much of it as there is room for (J2), once there is. 0: the reader is
 * gone. */
static size_t write_piece(struct cn_job *job, const uint8_t *bytes, size_t size)
{
    while (job->ready.size >= CN_JOB_READY_MAX && !job->gone)
        pthread_cond_wait(&job->room, &job->lock);
    if (job->gone)
        return 0;
    size_t room = CN_JOB_READY_MAX - job->ready.size, count = size < room ? size : room;
    cn_buf_append(&job->ready, bytes, count);
    if (job->call.length < 0 || job->ready.size < (size_t)job->call.length)
        post(job); /* what is whole goes out with the end */
    return count;
}

static int on_write(struct cn_control_call *call, const void *bytes, size_t size)
{
    struct cn_job *job = (struct cn_job *)call;
    size_t at = 0, count = 1;
    /* J5 */
    bool denied = call->status < 400 && cn_control_is_read(call) && !cn_control_is_good(call);
    pthread_mutex_lock(&job->lock);
    call->cut |= denied;
    for (; at < size && count && !denied; at += count)
        count = write_piece(job, (const uint8_t *)bytes + at, size - at);
    bool gone = job->gone || denied;
    pthread_mutex_unlock(&job->lock);
    return gone ? CN_ECLOSED : 0;
}

static int64_t on_read(struct cn_control_call *call, void *bytes, size_t size)
{
    struct cn_job *job = (struct cn_job *)call;
    pthread_mutex_lock(&job->lock);
    while (!job->incoming.size && !job->body_whole && !job->gone)
        pthread_cond_wait(&job->more, &job->lock);
    int64_t count = job->gone ? CN_ECLOSED : 0;
    if (job->incoming.size && !job->gone) {
        if (job->incoming.size >= CN_JOB_READY_MAX)
            post(job); /* J3: there is room again */
        count = (int64_t)(size < job->incoming.size ? size : job->incoming.size);
        memcpy(bytes, job->incoming.data, (size_t)count);
        cn_buf_consume(&job->incoming, (size_t)count);
    }
    pthread_mutex_unlock(&job->lock);
    return count;
}

static bool is_cancelled(struct cn_control_call *call)
{
    struct cn_job *job = (struct cn_job *)call;
    pthread_mutex_lock(&job->lock);
    bool gone = job->gone;
    pthread_mutex_unlock(&job->lock);
    return gone;
}

static void job_main(void *arg)
{
    struct cn_job *job = arg;
    cn_control_run(&job->call);
    pthread_mutex_lock(&job->lock);
    job->ended = true;
    post(job);
    pthread_mutex_unlock(&job->lock);
}

/* --- the loop -------------------------------------------------------------------------------- */

static void finish(struct cn_job *job)
{
    uv_thread_join(&job->thread);
    job->http->data = NULL;
    cn_http_request_release(job->http);
    free_job(job);
}

static void send_ready(struct cn_job *job);

static void on_drain(struct cn_http_request *http)
{
    struct cn_job *job = http->data;
    job->full = false;
    send_ready(job);
}

#define FIELDS_MAX 16

/* The fields of the answer; returns how many. */
static size_t make_headers(const struct cn_control_call *call,
                           struct cn_http_header headers[FIELDS_MAX])
{
    size_t count = 0;
    headers[count++] = header("content-type", call->type);
    headers[count++] = header("cache-control", "no-store");
    headers[count++] = header("x-content-type-options", "nosniff");
    const char *at = (const char *)call->fields.data, *end = at + call->fields.size;
    while (at < end) {
        const char *name = at, *value = at + strlen(at) + 1;
        CN_ASSERT(count < FIELDS_MAX);
        headers[count++] = header(name, value);
        at = value + strlen(value) + 1;
    }
    return count;
}

static void send_answer(struct cn_job *job, const struct cn_buf *ready, bool ended)
{
    const struct cn_control_call *call = &job->call;
    struct cn_http_header headers[FIELDS_MAX];
    struct cn_http_head head = {call->status, headers, make_headers(call, headers), NULL};
    bool whole = call->length < 0 || (uint64_t)call->length == ready->size ||
                 job->http->method == CN_HTTP_HEAD; /* J4 */
    if (!job->begun && ended && whole && !call->cut) {
        (void)cn_http_respond(job->http, &head, ready->data, ready->size, NULL, NULL);
        return;
    }
    int rc = job->begun ? 1 : cn_http_begin(job->http, &head, call->length);
    job->begun = true;
    if (rc >= 0 && ready->size)
        rc = cn_http_write(job->http, ready->data, ready->size, NULL, NULL);
    if (rc == 0 && !ended) {
        job->full = true;
        cn_http_on_drain(job->http, on_drain);
    }
    if (ended && rc >= 0 && !call->cut) /* else its release cuts the connection */
        (void)cn_http_end(job->http);   /* shorter than announced: the connection is cut */
}

/* Moves what the thread has made to the connection. The last call of a job frees it. */
static void send_ready(struct cn_job *job)
{
    struct cn_buf ready = {0};
    pthread_mutex_lock(&job->lock);
    bool ended = job->ended && !job->posted; /* else its mail is still to come */
    bool gone = job->gone;
    if (!job->full) {
        ready = job->ready;
        job->ready = (struct cn_buf){0};
        pthread_cond_signal(&job->room);
    }
    pthread_mutex_unlock(&job->lock);
    if (job->full && !gone)
        return; /* on_drain() comes back */
    if (!gone && (ended || ready.size))
        send_answer(job, &ready, ended);
    cn_buf_fini(&ready);
    if (ended)
        finish(job);
}

/* Takes a piece of the body, or (size 0) its end. */
static void take_body(struct cn_job *job, const uint8_t *bytes, size_t size)
{
    pthread_mutex_lock(&job->lock);
    if (size)
        cn_buf_append(&job->incoming, bytes, size);
    else
        job->body_whole = true;
    pthread_cond_signal(&job->more);
    pthread_mutex_unlock(&job->lock);
}

static bool wants_body(struct cn_job *job)
{
    pthread_mutex_lock(&job->lock);
    bool wants = !job->body_whole && !job->gone && !job->ended &&
                 job->incoming.size < CN_JOB_READY_MAX; /* J3 */
    pthread_mutex_unlock(&job->lock);
    return wants && !job->reading;
}

static void on_body(struct cn_http_request *http, int status, const uint8_t *bytes, size_t size);

static void read_body(struct cn_job *job)
{
    while (wants_body(job)) {
        const uint8_t *bytes;
        size_t size;
        int rc = cn_http_request_read(job->http, &bytes, &size, on_body);
        job->reading = rc == CN_HTTP_READ_PENDING;
        if (rc == CN_HTTP_READ_DATA)
            take_body(job, bytes, size);
        else if (rc == CN_HTTP_READ_END)
            take_body(job, NULL, 0);
        else if (rc < 0)
            return; /* on_abort follows */
    }
}

static void on_body(struct cn_http_request *http, int status, const uint8_t *bytes, size_t size)
{
    struct cn_job *job = http->data;
    if (!job)
        return; /* it has been answered without */
    job->reading = false;
    if (status == CN_HTTP_READ_END)
        take_body(job, NULL, 0);
    else if (status == CN_HTTP_READ_DATA)
        take_body(job, bytes, size);
    if (status >= 0)
        read_body(job);
}

static void deliver(struct cn_mail *mail, void *data)
{
    (void)data;
    struct cn_job *job = CN_CONTAINER_OF(mail, struct cn_job, mail);
    pthread_mutex_lock(&job->lock);
    job->posted = false;
    pthread_mutex_unlock(&job->lock);
    read_body(job);
    send_ready(job);
}

void cn_job_cancel(struct cn_job *job)
{
    cn_loop_assert_owner(job->mailbox->async.loop);
    pthread_mutex_lock(&job->lock);
    job->gone = true;
    pthread_cond_signal(&job->room);
    pthread_cond_signal(&job->more);
    /* Nothing more comes but a reader who would take the rest. */
    bool over = job->ended && !job->posted;
    pthread_mutex_unlock(&job->lock);
    if (over)
        finish(job);
}

/* What the request says of its body; a value has no NUL (http.h). */
static void take_sent(struct cn_job *job, const struct cn_http_request *http)
{
    static const char *const names[] = CN_CONTROL_SENT;
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        const struct cn_http_header *field = cn_http_request_find(http, names[i]);
        if (!field || memchr(field->value, 0, field->value_size))
            continue;
        cn_buf_append(&job->sent, names[i], strlen(names[i]) + 1);
        cn_buf_append(&job->sent, field->value, field->value_size);
        cn_buf_append_byte(&job->sent, 0);
    }
}

void cn_job_start(const struct cn_control *control, struct cn_mailbox *mailbox,
                  struct cn_http_request *http, const struct cn_guard_who *who,
                  struct cn_list *jobs, void (*on_end)(struct cn_job *job, void *data), void *data)
{
    cn_loop_assert_owner(mailbox->async.loop);
    struct cn_job *job = CN_NEW(struct cn_job);
    const struct cn_http_header *type = cn_http_request_find(http, "content-type");
    job->mailbox = mailbox;
    job->http = http;
    job->on_end = on_end;
    job->data = data;
    cn_list_push_back(jobs, &job->link);
    pthread_mutex_init(&job->lock, NULL);
    pthread_cond_init(&job->room, NULL);
    pthread_cond_init(&job->more, NULL);
    cn_buf_append(&job->method, http->method_text.data, http->method_text.size);
    cn_buf_append(&job->target, http->target.data, http->target.size);
    if (http->host.size)
        cn_buf_append(&job->host, http->host.data, http->host.size);
    if (type)
        cn_buf_append(&job->content_type, type->value, type->value_size);
    take_sent(job, http);
    job->call = (struct cn_control_call){
        .control = control,
        .method = cn_buf_text(&job->method),
        .target = cn_buf_text(&job->target),
        .content_type = type ? cn_buf_text(&job->content_type) : NULL,
        .host = cn_buf_text(&job->host),
        .https = http->https,
        .sent = &job->sent,
        .body_size = http->content_length,
        .who = *who,
        .read = on_read,
        .write = on_write,
        .cancelled = is_cancelled,
    };
    job->mail.deliver = deliver;
    int rc = uv_thread_create(&job->thread, job_main, job);
    if (rc < 0) {
        free_job(job);
        cn_job_refuse(http, 503, "overloaded", "cannot start a thread", 1);
        return;
    }
    http->data = job;
    read_body(job);
}
