/* SPDX-License-Identifier: Apache-2.0 */
/* A control call on a thread of its own, a client that reads and writes as it likes: J1 to J4 of
 * admin/job.h. What the call does is this file's: it has its own cn_control_run(). */
#include "admin/job.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/guard.h"
#include "admin/handler.h"
#include "base/loop.h"
#include "base/mem.h"
#include "test/lib/http_rig.h"

static struct rig rig;
static struct cn_mailbox mailbox;
static struct cn_list jobs;
static unsigned ended;

/* What the call saw and did; read once it has ended, or atomically. */
static atomic_size_t was_read, was_written, waiting_max;
static atomic_int last_read, last_write;
static atomic_bool go, at_gate;
static atomic_bool on_loop; /* it ran where it should not */
static char asked[256];

static void wait_for_go(struct cn_control_call *call)
{
    atomic_store(&at_gate, true);
    while (!atomic_load(&go) && !call->cancelled(call))
        uv_sleep(1);
}

static void write_all(struct cn_control_call *call, size_t size)
{
    static const char piece[10000] = "x";
    while (size > 0) {
        size_t part = size < sizeof(piece) ? size : sizeof(piece);
        int rc = call->write(call, piece, part);
        atomic_store(&last_write, rc);
        if (rc < 0)
            return;
        atomic_fetch_add(&was_written, part);
        struct cn_job *job = (struct cn_job *)call;
        pthread_mutex_lock(&job->lock);
        size_t waiting = job->ready.size;
        pthread_mutex_unlock(&job->lock);
        if (waiting > atomic_load(&waiting_max))
            atomic_store(&waiting_max, waiting);
        size -= part;
    }
}

static void read_all(struct cn_control_call *call, bool echo)
{
    char piece[7000];
    int64_t got;
    while ((got = call->read(call, piece, sizeof(piece))) > 0) {
        atomic_fetch_add(&was_read, (size_t)got);
        if (echo && call->write(call, piece, (size_t)got) < 0)
            return;
    }
    atomic_store(&last_read, (int)got);
}

void cn_control_run(struct cn_control_call *call)
{
    if (cn_loop_is_mine(&rig.loop))
        atomic_store(&on_loop, true);
    snprintf(asked, sizeof(asked), "%s %s %s %lld", call->method, call->target,
             call->content_type ? call->content_type : "-", (long long)call->body_size);
    call->status = 200;
    call->type = "text/plain";
    call->length = -1;
    if (strncmp(call->target, "/echo", 5) == 0) {
        read_all(call, true);
    } else if (strncmp(call->target, "/take", 5) == 0) {
        wait_for_go(call);
        read_all(call, false);
    } else if (strncmp(call->target, "/give/", 6) == 0) {
        write_all(call, (size_t)strtoull(call->target + 6, NULL, 10));
    } else if (strncmp(call->target, "/wait", 5) == 0) {
        wait_for_go(call);
        (void)call->write(call, "late", 4);
    } else if (strncmp(call->target, "/short", 6) == 0) {
        call->length = 100;
        (void)call->write(call, "short", 5);
    } else {
        call->status = 404;
        call->length = 5;
        cn_buf_append(&call->fields, "x-more\0yes\0x-other\0", 19);
        cn_buf_append(&call->fields, "two", 4);
        (void)call->write(call, "none\n", 5);
    }
}

static atomic_bool is_bad; /* who asks may no longer */

bool cn_control_is_good(const struct cn_control_call *call)
{
    (void)call;
    return !atomic_load(&is_bad);
}

bool cn_control_is_read(const struct cn_control_call *call)
{
    return strcmp(call->method, "GET") == 0;
}

void cn_control_append_platform_error(struct cn_buf *out, int status, int code, const char *text)
{
    cn_buf_printf(out, "platform %d %d %s\n", status, code, text);
}

/* --- the loop's side ---------------------------------------------------------------------------
 */

static void on_end(struct cn_job *job, void *data)
{
    (void)job;
    CHECK(data == &ended);
    ended++;
}

static void on_request(struct rig *own, struct cn_http_request *http)
{
    (void)own;
    static const struct cn_control control;
    static const struct cn_guard_who who;
    cn_job_start(&control, &mailbox, http, &who, &jobs, on_end, &ended);
}

static void on_abort(struct cn_http_server *server, struct cn_http_request *http, int status)
{
    (void)server, (void)status;
    if (http->data)
        cn_job_cancel(http->data);
}

static void begin(void)
{
    rig_open(&rig, on_request, NULL);
    rig.on_abort = on_abort;
    CHECK_INT(0, cn_mailbox_open(&mailbox, &rig.loop, NULL));
    cn_list_init(&jobs);
    ended = 0;
    was_read = was_written = waiting_max = 0;
    last_read = last_write = 0;
    go = at_gate = on_loop = is_bad = false;
}

static void end(void)
{
    CHECK(cn_list_empty(&jobs));
    CHECK(!on_loop);
    cn_mailbox_close(&mailbox, NULL);
    rig_close(&rig);
}

TEST(job, a_call_is_asked_as_the_request_was_and_answers_with_its_fields)
{
    struct rig_client client;
    begin();
    rig_connect(&rig, &client);
    rig_send(&client, "POST /nothing?a=%20b HTTP/1.1\r\nHost: a\r\nContent-Type: text/x\r\n"
                      "Content-Length: 0\r\n\r\n");
    RIG_UNTIL(&rig, ended == 1);
    CHECK_STR("POST /nothing?a=%20b text/x 0", asked);
    RIG_UNTIL(&rig, rig_has(&client, "none\n"));
    CHECK(rig_has(&client, "HTTP/1.1 404 "));
    CHECK(rig_has(&client, "content-length: 5") || rig_has(&client, "Content-Length: 5"));
    CHECK(rig_has(&client, "x-more: yes\r\n") && rig_has(&client, "x-other: two\r\n"));
    CHECK(rig_has(&client, "cache-control: no-store") &&
          rig_has(&client, "x-content-type-options: nosniff"));
    /* The connection can be used again. */
    rig_send(&client, "GET /give/3 HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, ended == 2);
    CHECK_STR("GET /give/3 - 0", asked);
    rig_disconnect(&client);
    end();
}

TEST(job, a_body_and_an_answer_pass_each_other)
{
    struct rig_client client;
    begin();
    rig_connect(&rig, &client);
    enum { SIZE = 1 << 20 };
    char head[128];
    snprintf(head, sizeof(head),
             "PUT /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n",
             SIZE);
    rig_send(&client, head);
    char *bytes = cn_alloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)('a' + i % 23);
    size_t sent = 0;
    rig_guard_start(&rig);
    while (sent < SIZE) {
        size_t took = rig_send_some(&client, bytes + sent, SIZE - sent);
        sent += took;
        if (took)
            rig_guard_start(&rig); /* it goes on, however slowly */
        CHECK(rig_guard_wait(&rig));
    }
    RIG_UNTIL(&rig, client.ended);
    CHECK_INT(1, ended);
    CHECK_INT(SIZE, was_read);
    CHECK_INT(0, last_read);
    cn_free(bytes);
    /* In chunks, for its length was not known; all bytes, in order. */
    size_t letters = 0;
    const char *at = strstr(rig_got(&client), "\r\n\r\n") + 4;
    char *next;
    for (unsigned long size; (size = strtoul(at, &next, 16)) > 0; at = next + 2 + size + 2) {
        for (size_t i = 0; i < size; i++)
            CHECK(next[2 + i] == (char)('a' + letters++ % 23));
    }
    CHECK_INT(SIZE, letters);
    rig_disconnect(&client);
    end();
}

TEST(job, J2_a_call_waits_for_a_client_that_does_not_read)
{
    struct rig_client client;
    begin();
    rig_connect_small(&rig, &client, 4096);
    rig_pause(&client, true);
    enum { SIZE = 16 << 20 };
    char head[64];
    snprintf(head, sizeof(head), "GET /give/%d HTTP/1.1\r\nHost: a\r\n\r\n", SIZE);
    rig_send(&client, head);
    /* Until it stands still: the queue of the connection, the kernel's, and what is ready. */
    size_t before = 1;
    RIG_UNTIL(&rig, was_written > 0);
    rig_guard_start(&rig);
    for (int still = 0; still < 50;) {
        still = was_written == before ? still + 1 : 0;
        before = was_written;
        uv_sleep(1);
        rig_turn(&rig);
    }
    CHECK(was_written < SIZE / 2);
    CHECK(waiting_max <= CN_JOB_READY_MAX + 10000);
    rig_pause(&client, false);
    RIG_UNTIL(&rig, ended == 1);
    CHECK_INT(SIZE, was_written);
    rig_disconnect(&client);
    end();
}

/* A download that has begun, and one whose answer was still to come. */
TEST(job, J5_who_may_not_read_any_more_gets_no_more)
{
    struct rig_client client;
    begin();
    rig_connect_small(&rig, &client, 4096);
    rig_pause(&client, true);
    rig_send(&client, "GET /give/16777216 HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, was_written > 0);
    is_bad = true;
    rig_pause(&client, false);
    RIG_UNTIL(&rig, client.ended && ended == 1);
    CHECK(was_written < 16777216);
    rig_disconnect(&client);
    is_bad = false;
    rig_connect(&rig, &client);
    rig_send(&client, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, at_gate);
    is_bad = true;
    go = true;
    RIG_UNTIL(&rig, client.ended && ended == 2);
    CHECK(!rig_has(&client, "late"));
    rig_disconnect(&client);
    end();
}

TEST(job, J3_a_client_waits_for_a_call_that_does_not_read)
{
    struct rig_client client;
    begin();
    rig_connect(&rig, &client);
    enum { SIZE = 32 << 20 };
    char head[128];
    snprintf(head, sizeof(head), "PUT /take HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
             SIZE);
    rig_send(&client, head);
    RIG_UNTIL(&rig, at_gate);
    static char bytes[1 << 16];
    size_t sent = 0;
    for (int still = 0; still < 100 && sent < SIZE;) {
        size_t took = rig_send_some(&client, bytes,
                                    SIZE - sent < sizeof(bytes) ? SIZE - sent : sizeof(bytes));
        still = took ? 0 : still + 1;
        sent += took;
        uv_sleep(took ? 0 : 1);
        rig_turn(&rig);
    }
    CHECK(sent < SIZE / 2); /* it was held back */
    struct cn_job *job = CN_CONTAINER_OF(jobs.next, struct cn_job, link);
    CHECK(job->incoming.size >= CN_JOB_READY_MAX && job->incoming.size < CN_JOB_READY_MAX * 4);
    atomic_store(&go, true);
    rig_guard_start(&rig);
    while (sent < SIZE) {
        size_t took = rig_send_some(&client, bytes,
                                    SIZE - sent < sizeof(bytes) ? SIZE - sent : sizeof(bytes));
        sent += took;
        if (took)
            rig_guard_start(&rig); /* it goes on, however slowly */
        CHECK(rig_guard_wait(&rig));
    }
    for (size_t read = was_read; !ended; read = was_read) /* as long as it reads */
        RIG_UNTIL(&rig, ended == 1 || was_read > read);
    CHECK_INT(SIZE, was_read);
    rig_disconnect(&client);
    end();
}

/* The client goes while the call works, writes, or reads: it is told, and the job ends once. */
TEST(job, a_client_that_goes_ends_its_call)
{
    static const char *const requests[] = {
        "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /give/100000000 HTTP/1.1\r\nHost: a\r\n\r\n",
        "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nonly this",
    };
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct rig_client client;
        begin();
        rig_connect_small(&rig, &client, 4096);
        rig_pause(&client, true);
        rig_send(&client, requests[i]);
        RIG_UNTIL(&rig, at_gate || was_written || was_read);
        rig_disconnect(&client);
        RIG_UNTIL(&rig, ended == 1);
        if (i == 1)
            CHECK_INT(CN_ECLOSED, last_write);
        if (i == 2)
            CHECK_INT(CN_ECLOSED, last_read);
        end();
    }
}

/* An export whose file cannot be read to its end, say: whether its first piece has left by then or
 * not, its reader sees that it is cut. */
TEST(job, J4_an_answer_that_is_too_short_is_cut)
{
    struct rig_client client;
    begin();
    rig_connect(&rig, &client);
    rig_send(&client, "GET /short HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, client.ended && ended == 1);
    CHECK(rig_has(&client, "ontent-length: 100") || rig_has(&client, "ontent-Length: 100") ||
          client.reset);
    rig_disconnect(&client);
    end();
}

static void refuse(struct rig *own, struct cn_http_request *http)
{
    (void)own;
    bool denied = memcmp(http->target.data, "/401", 4) == 0;
    cn_job_refuse(http, denied ? 401 : 503, "a \"code\"", "a\nsentence", denied ? 0 : 7);
}

TEST(job, a_refusal_is_json_and_says_when_to_come_back)
{
    struct rig_client client;
    rig_open(&rig, refuse, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "GET /503 HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, rig_has(&client, "}}\n"));
    CHECK(rig_has(&client, "HTTP/1.1 503 ") && rig_has(&client, "retry-after: 7\r\n"));
    CHECK(rig_has(&client,
                  "{\"error\":{\"code\":\"a \\\"code\\\"\",\"message\":\"a\\nsentence\"}}\n"));
    CHECK(!rig_has(&client, "www-authenticate"));
    rig_send(&client, "GET /401 HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, rig_count(&client, "}}\n") == 2);
    CHECK(rig_has(&client, "www-authenticate: Bearer\r\n"));
    CHECK_INT(1, rig_count(&client, "retry-after"));
    /* The platform's API has a form of its own. */
    rig_send(&client, "GET /client/v4 HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, rig_has(&client, "platform 503 0 a\nsentence\n"));
    rig_disconnect(&client);
    rig_close(&rig);
}
