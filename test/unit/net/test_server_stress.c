/* SPDX-License-Identifier: Apache-2.0 */
/* Many clients and a handler that do anything allowed, in random order: every request is answered
 * or aborted exactly once, owned bytes come back exactly once, nothing is left at the end. */
#include "net/server.h"

#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/rand.h"
#include "net/tls.h"
#include "test/lib/http_rig.h"
#include "test/lib/tls_rig.h"

#define CLIENTS 24

/* A request that the handler has not released. */
struct job {
    struct cn_list link;
    struct cn_http_request *req;
    bool begun, aborted, reading, answered;
};

static struct cn_rand dice;
static struct cn_list jobs;
static unsigned job_count, started_count, owned_count;

static unsigned roll(unsigned sides)
{
    return (unsigned)cn_rand_below(&dice, sides);
}

static void give_back(void *data)
{
    owned_count--;
    cn_free(data);
}

static void *own(size_t size)
{
    owned_count++;
    uint8_t *bytes = cn_alloc(size + 1);
    memset(bytes, 'o', size);
    return bytes;
}

static void job_free(struct job *job)
{
    cn_list_remove(&job->link);
    job_count--;
    cn_http_request_release(job->req);
    cn_free(job);
}

static void on_body(struct cn_http_request *req, int status, const uint8_t *bytes, size_t size)
{
    struct job *job = req->data;
    CHECK(job && !job->aborted && job->reading);
    job->reading = false;
}

static void job_read(struct job *job)
{
    const uint8_t *bytes;
    size_t size;
    while (!job->reading && roll(8) > 0) {
        int rc = cn_http_request_read(job->req, &bytes, &size, on_body);
        if (rc == CN_HTTP_READ_PENDING)
            job->reading = true;
        if (rc != CN_HTTP_READ_DATA)
            return;
    }
}

/* One random move of a handler. Frees the job sometimes. */
static void job_step(struct job *job)
{
    struct cn_http_head head = {.status = roll(8) ? 200 : 204};
    size_t size = roll(4) ? roll(2000) : roll(200000);
    int rc;
    switch (roll(8)) {
    case 0: {
        void *bytes = own(size);
        rc = cn_http_respond(job->req, &head, bytes, size, NULL, NULL);
        give_back(bytes); /* it was only borrowed */
        CHECK(rc == 0 || job->begun || job->aborted || job->answered);
        job->answered |= rc == 0;
        break;
    }
    case 1: {
        void *bytes = own(size);
        rc = cn_http_respond(job->req, &head, bytes, size, give_back, bytes);
        CHECK(rc == 0 || job->begun || job->aborted || job->answered);
        job->answered |= rc == 0;
        break;
    }
    case 2:
        rc = cn_http_begin(job->req, &head, -1);
        CHECK(rc == 0 || job->begun || job->aborted || job->answered);
        job->begun |= rc == 0;
        break;
    case 3: {
        void *bytes = own(size);
        rc = cn_http_write(job->req, bytes, size, give_back, bytes);
        CHECK(rc >= 0 || !job->begun || job->aborted || job->answered || rc == CN_EOVERLOADED);
        break;
    }
    case 4:
        if (job->begun && !job->answered && cn_http_end(job->req) == 0)
            job->answered = true;
        break;
    case 5:
        if (roll(8) == 0)
            cn_http_abort(job->req), job->aborted = true, job->reading = false;
        break;
    case 6:
        job_read(job);
        break;
    default:
        if (job->answered || job->aborted || roll(20) == 0)
            job_free(job);
        break;
    }
}

static void on_request(struct rig *rig, struct cn_http_request *req)
{
    struct job *job = CN_NEW(struct job);
    job->req = req;
    req->data = job;
    cn_list_push_back(&jobs, &job->link);
    job_count++;
    started_count++;
    if (roll(3) == 0) { /* the usual case: answered at once */
        rig_answer(req, 200, "at once");
        cn_list_remove(&job->link);
        job_count--;
        cn_free(job);
    } else if (roll(2))
        job_step(job);
}

static const char *const texts[] = {
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /h HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody",
    "GET / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "BAD\r\n\r\n",
};

/* A client of either kind: `raw` is used in both cases, the rest only over TLS. */
static void client_connect(struct rig *rig, struct rig_tls *client, bool tls)
{
    if (tls)
        rig_tls_connect(rig, client, 0);
    else
        rig_connect(rig, &client->raw);
}

static void client_disconnect(struct rig_tls *client, bool tls)
{
    if (tls)
        rig_tls_disconnect(client);
    else
        rig_disconnect(&client->raw);
}

static void client_send(struct rig_tls *client, bool tls, const char *text, size_t size)
{
    if (!tls)
        rig_send_some(&client->raw, text, size);
    else if (roll(300) == 0)
        rig_send_some(&client->raw, text, size); /* breaks the record layer */
    else if (SSL_is_init_finished(client->ssl) && size > 0)
        (void)SSL_write(client->ssl, text, (int)size); /* fails once the server has gone */
}

static void client_step(struct rig *rig, struct rig_tls *client, bool tls)
{
    unsigned what = roll(10);
    if (what == 0 || client->raw.ended) {
        client_disconnect(client, tls);
        client_connect(rig, client, tls);
    } else if (what == 1) {
        rig_pause(&client->raw, !client->raw.paused);
    } else if (what == 2 && roll(2)) {
        shutdown(client->raw.fd, SHUT_WR);
    } else if (what < 9) {
        /* Mostly good requests, often several, sometimes cut. */
        for (unsigned count = 1 + roll(4); count > 0; count--) {
            const char *text = texts[roll(8) ? roll(6) : roll(9)];
            size_t size = strlen(text);
            client_send(client, tls, text, roll(10) ? size : roll((unsigned)size));
        }
    }
    if (tls && !client->raw.ended)
        rig_tls_step(client);
    if (client->raw.got.size > (1 << 20))
        cn_buf_clear(&client->raw.got);
    if (client->got.size > (1 << 20))
        cn_buf_clear(&client->got);
}

/* The rig counts aborts; the jobs must know of them too. */
static void mark_aborted(struct cn_http_server *server, struct cn_http_request *req, int status)
{
    struct job *job = req->data;
    CHECK(job && !job->answered && !job->aborted);
    job->aborted = true;
    job->reading = false;
}

static void stress(struct cn_tls_context *tls, int steps)
{
    struct rig rig;
    static struct rig_tls clients[CLIENTS];
    cn_rand_init(&dice, test_seed());
    cn_list_init(&jobs);
    job_count = started_count = owned_count = 0;
    struct cn_http_server_options options = {.tls = tls,
                                             .limits = {.output_high_bytes = 30000,
                                                        .output_size_max = 300000,
                                                        .input_high_bytes = 500,
                                                        .connection_count_max = CLIENTS + 4}};
    rig_open(&rig, on_request, &options);
    rig.on_abort = mark_aborted;
    for (int i = 0; i < CLIENTS; i++)
        client_connect(&rig, &clients[i], tls);
    for (int step = 0; step < steps; step++) {
        client_step(&rig, &clients[roll(CLIENTS)], tls);
        for (int i = 0; tls && i < CLIENTS; i++)
            if (!clients[i].raw.ended && !SSL_is_init_finished(clients[i].ssl))
                rig_tls_step(&clients[i]); /* handshakes go on, or nothing would get to HTTP */
        if (roll(2))
            rig_turn(&rig);
        for (unsigned count = roll(4); count > 0 && job_count > 0; count--) {
            struct cn_list *link = jobs.next;
            for (unsigned skip = roll(job_count); skip > 0; skip--)
                link = link->next;
            job_step(CN_CONTAINER_OF(link, struct job, link));
        }
        if (roll(500) == 0) {
            rig.clock_ms = uv_now(&rig.loop) + roll(80000);
            cn_http_server_tick(rig.server, rig.clock_ms);
        }
    }
    CHECK(started_count > (unsigned)steps / 20);
    if (roll(2))
        rig_drain(&rig);
    for (int i = 0; i < CLIENTS; i++)
        client_disconnect(&clients[i], tls);
    while (!cn_list_empty(&jobs))
        job_free(CN_CONTAINER_OF(jobs.next, struct job, link));
    struct cn_http_stats stats;
    RIG_UNTIL(&rig, (cn_http_server_stats(rig.server, &stats), stats.connection_count == 0));
    CHECK_INT(0, stats.busy_count);
    CHECK_INT(0, owned_count);
    rig_close(&rig); /* completes only if every request was released once */
}

TEST(server_stress, survives_anything_in_any_order)
{
    stress(NULL, 6000);
}

TEST(server_stress, survives_anything_over_tls)
{
    char cert[512], key[512];
    struct cn_tls_context *tls;
    rig_make_pair(1, cert, key, sizeof(cert));
    CHECK_INT(0, cn_tls_context_new(cert, key, &tls, NULL));
    stress(tls, 2000);
    cn_tls_context_unref(tls);
}
