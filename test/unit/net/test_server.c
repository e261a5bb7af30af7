/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server as a client sees it: requests in any pieces, answers of every kind, bodies both
 * ways with back-pressure, aborts, upgrades. */
#include "net/server.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/mem.h"
#include "net/http_conn.h"
#include "test/lib/http_rig.h"
#include "test/lib/scarce.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

static struct cn_http_header header(const char *name, const char *value)
{
    return (struct cn_http_header){.name = name,
                                   .name_size = (uint32_t)strlen(name),
                                   .value = value,
                                   .value_size = (uint32_t)strlen(value)};
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* --- requests and whole answers --------------------------------------------------------- */

TEST(server, answers_requests_one_after_the_other_on_one_connection)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, NULL, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, GET("/one"));
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "\r\n\r\n/one"));
    CHECK(strncmp(rig_got(&client), "HTTP/1.1 200 OK\r\n", 17) == 0);
    CHECK(rig_has(&client, "\r\nContent-Length: 4\r\n"));
    CHECK(rig_has(&client, "\r\nDate: "));
    CHECK(!rig_has(&client, "Connection:"));
    rig_send(&client, GET("/two"));
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "\r\n\r\n/two"));
    struct cn_http_stats stats;
    cn_http_server_stats(rig.server, &stats);
    CHECK_INT(2, stats.request_count);
    CHECK_INT(1, stats.connection_count);
    CHECK_INT(0, stats.busy_count);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, does_not_mind_bytes_that_come_one_by_one)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_echo, NULL);
    rig_connect(&rig, &client);
    const char *text = "\r\nPOST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: u\r\n\r\n"
                       "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfghij" GET("/c");
    for (const char *at = text; *at; at++) {
        CHECK_INT(1, rig_send_some(&client, at, 1));
        rig_turn(&rig);
    }
    RIG_UNTIL(&rig, rig_count(&client, "HTTP/1.1 200 OK") == 3);
    CHECK(rig_has(&client, "\r\n\r\nabcdeHTTP/1.1"));
    CHECK(rig_has(&client, "\r\n\r\nfghijHTTP/1.1"));
    CHECK_INT(3, rig.request_count);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, answers_pipelined_requests_in_order)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, NULL, NULL);
    rig_connect(&rig, &client);
    struct cn_buf text = {0};
    for (int i = 0; i < 500; i++)
        cn_buf_printf(&text, "GET /%03d HTTP/1.1\r\nHost: a\r\n\r\n", i);
    rig_send(&client, cn_buf_text(&text));
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "\r\n\r\n/499"));
    const char *at = rig_got(&client);
    for (int i = 0; i < 500; i++) {
        char want[32];
        snprintf(want, sizeof(want), "\r\n\r\n/%03d", i);
        at = strstr(at, want);
        CHECK(at != NULL);
    }
    cn_buf_fini(&text);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, holds_pipelined_requests_until_a_late_answer)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_hold, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, GET("/1") GET("/2") GET("/3"));
    RIG_UNTIL(&rig, rig.request_count == 1);
    rig_turn(&rig);
    CHECK_INT(1, rig.request_count); /* the others wait for their turn */
    for (unsigned i = 1; i <= 3; i++) {
        RIG_UNTIL(&rig, rig.request_count == i);
        CHECK_INT(0, rig_answer(rig.held, 200, "late"));
        CHECK_INT(i, rig.request_count); /* never inside the call that answers */
    }
    RIG_UNTIL(&rig, rig_count(&client, "\r\n\r\nlate") == 3);
    rig_disconnect(&client);
    rig_close(&rig);
}

static void expect_facts(struct rig *rig, struct cn_http_request *req)
{
    uint16_t port = 0;
    CHECK_INT(CN_HTTP_OTHER, req->method);
    CHECK(req->method_text.size == 8 && memcmp(req->method_text.data, "PROPFIND", 8) == 0);
    CHECK(req->target.size == 4 && memcmp(req->target.data, "/x?y", 4) == 0);
    CHECK(req->host.size == 9 && memcmp(req->host.data, "b.example", 9) == 0);
    CHECK_INT(1, req->version_minor);
    CHECK(!req->https && !req->upgrade);
    CHECK_STR("127.0.0.1", cn_http_request_remote(req, &port));
    CHECK(port > 0);
    const struct cn_http_header *found = cn_http_request_find(req, "x-thing");
    CHECK(found && found->value_size == 3 && memcmp(found->value, "a b", 3) == 0);
    CHECK(cn_http_request_find(req, "x-thin") == NULL);
    CHECK(cn_http_request_body_done(req));
    const uint8_t *bytes;
    size_t size;
    CHECK_INT(CN_HTTP_READ_END, cn_http_request_read(req, &bytes, &size, NULL));
    rig_answer(req, 200, "seen");
}

TEST(server, tells_the_handler_what_was_asked)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, expect_facts, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "PROPFIND http://b.example/x?y HTTP/1.1\r\nHost: a\r\nX-Thing: a b \r\n\r\n");
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "seen"));
    rig_disconnect(&client);
    rig_close(&rig);
}

static void expect_many_headers(struct rig *rig, struct cn_http_request *req)
{
    CHECK_INT(201, req->header_count);
    CHECK_INT(500, req->headers[200].value_size);
    rig_answer(req, 200, "many");
}

TEST(server, takes_heads_larger_than_its_usual_buffers)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, expect_many_headers, NULL);
    rig_connect(&rig, &client);
    struct cn_buf text = {0};
    cn_buf_append_str(&text, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 200; i++)
        cn_buf_printf(&text, "X-%d: %0500d\r\n", i, i);
    cn_buf_append_str(&text, "\r\n");
    rig_send(&client, cn_buf_text(&text));
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "many"));
    cn_buf_fini(&text);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, closes_when_the_client_asks_for_it)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, NULL, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    RIG_UNTIL(&rig, client.ended);
    CHECK(!client.reset);
    CHECK(rig_has(&client, "Connection: close\r\n"));
    CHECK(ends_with(rig_got(&client), "/a"));
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, speaks_http_1_0)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, NULL, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "/a"));
    CHECK(rig_has(&client, "Connection: keep-alive\r\n"));
    rig_send(&client, "GET /b HTTP/1.0\r\n\r\n");
    RIG_UNTIL(&rig, client.ended);
    CHECK(rig_has(&client, "Connection: close\r\n"));
    CHECK(ends_with(rig_got(&client), "/b"));
    rig_disconnect(&client);
    rig_close(&rig);
}

/* --- what may be answered --------------------------------------------------------------- */

static void answer_by_target(struct rig *rig, struct cn_http_request *req)
{
    struct cn_http_header headers[] = {header("X-Ours", "1"), header("Content-Length", "77"),
                                       header("Connection", "x"),
                                       header("Transfer-Encoding", "gzip")};
    struct cn_http_head head = {.status = 200, .headers = headers, .header_count = 4};
    if (memcmp(req->target.data, "/204", 4) == 0)
        head.status = 204;
    if (memcmp(req->target.data, "/304", 4) == 0)
        head.status = 304;
    CHECK_INT(0, cn_http_respond(req, &head, head.status == 200 ? "body" : "",
                                 head.status == 200 ? 4 : 0, NULL, NULL));
    cn_http_request_release(req);
}

TEST(server, frames_answers_itself_and_sends_no_body_where_none_may_be)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, answer_by_target, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, GET("/200"));
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "body"));
    CHECK(rig_has(&client, "Content-Length: 4\r\n"));
    CHECK(rig_has(&client, "X-Ours: 1\r\n"));
    CHECK(!rig_has(&client, "77") && !rig_has(&client, "gzip") && !rig_has(&client, "Connection"));
    cn_buf_clear(&client.got);
    rig_send(&client, "HEAD /200 HTTP/1.1\r\nHost: a\r\n\r\n" GET("/204"));
    RIG_UNTIL(&rig, rig_count(&client, "\r\n\r\n") == 2);
    CHECK_INT(1, rig_count(&client, "Content-Length: 4\r\n"));
    CHECK(rig_has(&client, "\r\n\r\nHTTP/1.1 204 No Content\r\n"));
    cn_buf_clear(&client.got);
    rig_send(&client, GET("/304") GET("/200"));
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "body"));
    CHECK_INT(1, rig_count(&client, "Content-Length: 77\r\n")); /* what a 200 would have had */
    rig_disconnect(&client);
    rig_close(&rig);
}

static void respond_badly(struct rig *rig, struct cn_http_request *req)
{
    static const char *const bad_values[] = {"a\r\nX-Evil: 1", "a\nb", "a\rb", "a\x01"};
    static const char *const bad_names[] = {"", "a b", "a:", "a\r\n", "\xc3\xa9"};
    for (size_t i = 0; i < 4; i++) {
        struct cn_http_header one = header("X", bad_values[i]);
        struct cn_http_head head = {.status = 200, .headers = &one, .header_count = 1};
        CHECK_INT(CN_EINVALID, cn_http_respond(req, &head, NULL, 0, NULL, NULL));
        CHECK_INT(CN_EINVALID, cn_http_begin(req, &head, -1));
        struct cn_http_head reason = {.status = 200, .reason = bad_values[i]};
        CHECK_INT(CN_EINVALID, cn_http_respond(req, &reason, NULL, 0, NULL, NULL));
    }
    struct cn_http_header nul = {.name = "X", .name_size = 1, .value = "a\0b", .value_size = 3};
    CHECK_INT(CN_EINVALID, cn_http_respond(req, &(struct cn_http_head){200, &nul, 1, NULL}, NULL, 0,
                                           NULL, NULL));
    for (size_t i = 0; i < 5; i++) {
        struct cn_http_header one = header(bad_names[i], "v");
        struct cn_http_head head = {.status = 200, .headers = &one, .header_count = 1};
        CHECK_INT(CN_EINVALID, cn_http_respond(req, &head, NULL, 0, NULL, NULL));
    }
    static const int bad_statuses[] = {0, 100, 101, 199, 600, -1, 1000};
    for (size_t i = 0; i < 7; i++)
        CHECK_INT(CN_EINVALID,
                  cn_http_respond(req, &(struct cn_http_head){.status = bad_statuses[i]}, NULL, 0,
                                  NULL, NULL));
    CHECK_INT(CN_EINVALID, cn_http_write(req, "x", 1, NULL, NULL)); /* before begin */
    rig_answer(req, 200, "after all");
}

TEST(server, refuses_headers_that_would_inject_others)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, respond_badly, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, GET("/"));
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "after all"));
    CHECK_INT(1, rig_count(&client, "HTTP/1.1"));
    rig_disconnect(&client);
    rig_close(&rig);
}

static unsigned release_count;
static void on_release(void *data)
{
    release_count++;
    cn_free(data);
}

static void respond_large(struct rig *rig, struct cn_http_request *req)
{
    size_t size = (size_t)(uintptr_t)rig->extra;
    uint8_t *body = cn_alloc(size);
    for (size_t i = 0; i < size; i++)
        body[i] = (uint8_t)('a' + i % 23);
    struct cn_http_head head = {.status = 200};
    bool owned = memcmp(req->target.data, "/owned", 6) == 0;
    CHECK_INT(0, cn_http_respond(req, &head, body, size, owned ? on_release : NULL, body));
    if (!owned)
        cn_free(body);
    cn_http_request_release(req);
}

TEST(server, sends_large_bodies_borrowed_or_owned)
{
    static const size_t sizes[] = {1, 3000, 4096, 5000, 16384, 70000, 1 << 20, 9 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int owned = 0; owned < 2; owned++) {
            struct rig rig;
            struct rig_client client;
            rig_open(&rig, respond_large, NULL);
            rig.extra = (void *)(uintptr_t)sizes[i];
            release_count = 0;
            rig_connect(&rig, &client);
            rig_send(&client, owned ? GET("/owned") GET("/owned") : GET("/") GET("/"));
            RIG_UNTIL(&rig, rig_count(&client, "HTTP/1.1 200") == 2);
            const char *first_end = strstr(rig_got(&client), "\r\n\r\n");
            size_t head_size = (size_t)(first_end + 4 - rig_got(&client));
            RIG_UNTIL(&rig, client.got.size == 2 * (head_size + sizes[i]));
            for (size_t j = 0; j < sizes[i]; j++)
                CHECK(client.got.data[head_size + j] == 'a' + j % 23);
            RIG_UNTIL(&rig, release_count == (owned ? 2 : 0));
            rig_disconnect(&client);
            rig_close(&rig);
        }
    }
}

/* --- request bodies --------------------------------------------------------------------- */

TEST(server, gives_a_body_that_came_with_the_head_at_once)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_echo, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "\r\n\r\nhello"));
    CHECK_INT(2, rig.read_count); /* the data and the end, in the same turn */
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, looks_at_a_body_without_waiting_for_it)
{
    struct rig rig;
    struct rig_client client;
    const uint8_t *bytes;
    size_t size;
    rig_open(&rig, rig_hold, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
    RIG_UNTIL(&rig, rig.request_count == 1);
    CHECK_INT(CN_HTTP_READ_DATA, cn_http_request_read(rig.held, &bytes, &size, NULL));
    CHECK(size == 3 && memcmp(bytes, "abc", 3) == 0);
    CHECK_INT(CN_HTTP_READ_PENDING, cn_http_request_read(rig.held, &bytes, &size, NULL));
    uv_update_time(&rig.loop);
    cn_http_server_tick(rig.server, uv_now(&rig.loop) + 1000000); /* nobody waits: no clock */
    CHECK_INT(0, rig.abort_count);
    rig_read_all(rig.held);
    rig_send(&client, "def");
    RIG_UNTIL(&rig, rig.read_status == CN_HTTP_READ_END);
    CHECK_STR("def", cn_buf_text(&rig.body));
    rig_answer(rig.held, 200, "ok");
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "ok"));
    rig_disconnect(&client);
    rig_close(&rig);
}

static void never_read(struct cn_http_request *req, int status, const uint8_t *bytes, size_t size)
{
    (void)req, (void)status, (void)bytes, (void)size;
    CHECK(false);
}

TEST(server, a_read_that_was_stopped_is_not_called_and_another_may_follow)
{
    struct rig rig;
    struct rig_client client;
    const uint8_t *bytes;
    size_t size;
    rig_open(&rig, rig_hold, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
    RIG_UNTIL(&rig, rig.request_count == 1);
    cn_http_request_read_stop(rig.held); /* nothing pends */
    CHECK_INT(CN_HTTP_READ_PENDING, cn_http_request_read(rig.held, &bytes, &size, never_read));
    cn_http_request_read_stop(rig.held);
    uv_update_time(&rig.loop);
    cn_http_server_tick(rig.server, uv_now(&rig.loop) + 1000000); /* nobody waits: no clock */
    CHECK_INT(0, rig.abort_count);
    rig_read_all(rig.held);
    rig_send(&client, "def");
    RIG_UNTIL(&rig, rig.read_status == CN_HTTP_READ_END);
    CHECK_STR("def", cn_buf_text(&rig.body));
    rig_answer(rig.held, 200, "ok");
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "ok"));
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, does_not_call_a_cut_body_whole)
{
    struct rig rig;
    struct rig_client client;
    const uint8_t *bytes;
    size_t size;
    struct cn_http_head head = {.status = 200};
    rig_open(&rig, rig_hold, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
    RIG_UNTIL(&rig, rig.request_count == 1);
    CHECK_INT(0, cn_http_respond(rig.held, &head, "x", 1, NULL, NULL));
    CHECK(!cn_http_request_body_done(rig.held));
    CHECK_INT(CN_ECLOSED, cn_http_request_read(rig.held, &bytes, &size, NULL));
    cn_http_request_release(rig.held);
    rig_send(&client, "def" GET("/"));
    RIG_UNTIL(&rig, rig.request_count == 2);
    CHECK_INT(0, cn_http_respond(rig.held, &head, "x", 1, NULL, NULL));
    CHECK(cn_http_request_body_done(rig.held)); /* there was none */
    CHECK_INT(CN_HTTP_READ_END, cn_http_request_read(rig.held, &bytes, &size, NULL));
    cn_http_request_release(rig.held);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, holds_a_client_back_while_nobody_reads_its_body)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_hold, NULL);
    rig_connect(&rig, &client);
    enum { BODY = 64 << 20 };
    char head[128];
    snprintf(head, sizeof(head), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", BODY);
    rig_send(&client, head);
    static uint8_t block[1 << 16];
    memset(block, 'z', sizeof(block));
    size_t sent = 0, stuck = 0;
    while (stuck < 50) { /* until neither the kernel nor the server takes any more */
        size_t count = rig_send_some(&client, block, sizeof(block));
        stuck = count == 0 ? stuck + 1 : 0;
        sent += count;
        CHECK(sent < BODY);
        rig_turn(&rig);
    }
    CHECK_INT(1, rig.request_count);
    rig_read_all(rig.held); /* now it flows */
    rig_guard_start(&rig);
    while (sent < BODY) {
        size_t want = BODY - sent < sizeof(block) ? BODY - sent : sizeof(block);
        sent += rig_send_some(&client, block, want);
        rig_turn(&rig);
    }
    RIG_UNTIL(&rig, rig.read_status == CN_HTTP_READ_END);
    CHECK_INT(BODY, rig.body.size);
    rig_answer(rig.held, 200, "thanks");
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "thanks"));
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, invites_a_body_only_when_it_is_wanted)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_hold, NULL);
    rig_connect(&rig, &client);
    const char *head =
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    rig_send(&client, head);
    RIG_UNTIL(&rig, rig.request_count == 1);
    rig_turn(&rig);
    CHECK_INT(0, client.got.size);
    rig_read_all(rig.held);
    RIG_UNTIL(&rig, client.got.size > 0);
    CHECK_STR("HTTP/1.1 100 Continue\r\n\r\n", rig_got(&client));
    rig_send(&client, "abc");
    RIG_UNTIL(&rig, rig.read_status == CN_HTTP_READ_END);
    rig_answer(rig.held, 200, "ok");
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "ok"));
    CHECK(!rig_has(&client, "Connection: close"));
    /* Answered without reading: nobody knows whether the body follows, so the server closes. */
    rig_send(&client, head);
    RIG_UNTIL(&rig, rig.request_count == 2);
    rig_answer(rig.held, 403, "no");
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "no"));
    CHECK(rig_has(&client, "Connection: close"));
    CHECK_INT(1, rig_count(&client, "100 Continue"));
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, skips_a_small_unread_body_and_keeps_the_connection)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, NULL, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
    RIG_UNTIL(&rig, rig_has(&client, "\r\n\r\n/a"));
    rig_send(&client, "56789" GET("/b"));
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "\r\n\r\n/b"));
    rig_send(&client, "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe");
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "\r\n\r\n/c"));
    rig_send(&client, "llo\r\n0\r\n\r\n" GET("/d"));
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "\r\n\r\n/d"));
    CHECK_INT(4, rig.request_count);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, closes_rather_than_skip_a_large_unread_body)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, NULL, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\nxxx");
    RIG_UNTIL(&rig, rig_has(&client, "\r\n\r\n/a"));
    CHECK(rig_has(&client, "Connection: close"));
    static uint8_t block[1 << 16];
    for (int i = 0; i < 8; i++) { /* the answer survives what the client still sends */
        rig_send_some(&client, block, sizeof(block));
        rig_turn(&rig);
    }
    shutdown(client.fd, SHUT_WR);
    RIG_UNTIL(&rig, client.ended);
    CHECK(!client.reset);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, reports_broken_framing_to_the_reader_and_to_the_client)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_echo, NULL);
    rig_connect(&rig, &client);
    rig_send(&client,
             "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    RIG_UNTIL(&rig, rig.body.size == 5);
    rig_send(&client, "zz\r\n");
    RIG_UNTIL(&rig, rig.abort_count == 1);
    CHECK_INT(CN_EPROTOCOL, rig.read_status);
    CHECK_INT(CN_EPROTOCOL, rig.abort_status);
    cn_http_request_release(rig.held);
    RIG_UNTIL(&rig, rig_has(&client, "\r\n\r\n400 Bad Request\n"));
    shutdown(client.fd, SHUT_WR);
    RIG_UNTIL(&rig, client.ended);
    CHECK(strncmp(rig_got(&client), "HTTP/1.1 400 ", 13) == 0);
    rig_disconnect(&client);

    /* The same, found by a direct read: all of it was there at once. */
    rig.abort_count = 0;
    rig_connect(&rig, &client);
    rig_send(&client,
             "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nhh\r\n");
    RIG_UNTIL(&rig, rig.abort_count == 1);
    cn_http_request_release(rig.held);
    RIG_UNTIL(&rig, rig_has(&client, "400 Bad Request\n"));
    rig_disconnect(&client);
    rig_close(&rig);
}

/* --- streamed answers ------------------------------------------------------------------- */

static void stream_three(struct rig *rig, struct cn_http_request *req)
{
    struct cn_http_head head = {.status = 200};
    bool known = memcmp(req->target.data, "/known", 6) == 0;
    CHECK_INT(0, cn_http_begin(req, &head, known ? 9 : -1));
    CHECK_INT(CN_EINVALID, cn_http_begin(req, &head, -1));
    CHECK_INT(1, cn_http_write(req, "one", 3, NULL, NULL));
    CHECK_INT(1, cn_http_write(req, "", 0, NULL, NULL)); /* must not end a chunked body */
    CHECK_INT(1, cn_http_write(req, "two", 3, NULL, NULL));
    CHECK_INT(1, cn_http_write(req, "end", 3, NULL, NULL));
    if (known && req->method != CN_HTTP_HEAD)
        CHECK_INT(CN_EINVALID, cn_http_write(req, "x", 1, NULL, NULL));
    CHECK_INT(0, cn_http_end(req));
    CHECK_INT(CN_ECLOSED, cn_http_end(req));
    cn_http_request_release(req);
}

TEST(server, streams_with_a_length_in_chunks_or_until_the_close)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, stream_three, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, GET("/known"));
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "\r\n\r\nonetwoend"));
    CHECK(rig_has(&client, "Content-Length: 9\r\n"));
    cn_buf_clear(&client.got);
    rig_send(&client, GET("/"));
    RIG_UNTIL(&rig,
              ends_with(rig_got(&client), "\r\n\r\n3\r\none\r\n3\r\ntwo\r\n3\r\nend\r\n0\r\n\r\n"));
    CHECK(rig_has(&client, "Transfer-Encoding: chunked\r\n"));
    cn_buf_clear(&client.got);
    rig_send(&client, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" GET("/known"));
    RIG_UNTIL(&rig, ends_with(rig_got(&client), "\r\n\r\nonetwoend"));
    CHECK_INT(1, rig_count(&client, "one"));
    cn_buf_clear(&client.got);
    rig_send(&client, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    RIG_UNTIL(&rig, client.ended);
    CHECK(ends_with(rig_got(&client), "\r\n\r\nonetwoend"));
    CHECK(!rig_has(&client, "Transfer-Encoding") && rig_has(&client, "Connection: close"));
    rig_disconnect(&client);
    rig_close(&rig);
}

static size_t pump_left;
static unsigned full_count;
static void pump(struct cn_http_request *req)
{
    size_t piece = 50000;
    while (pump_left > 0) {
        if (piece > pump_left)
            piece = pump_left;
        uint8_t *bytes = cn_alloc(piece);
        for (size_t i = 0; i < piece; i++)
            bytes[i] = (uint8_t)('a' + (pump_left - i) % 26);
        pump_left -= piece;
        int rc = cn_http_write(req, bytes, piece, on_release, bytes);
        CHECK(rc >= 0);
        if (rc == 0) {
            full_count++;
            cn_http_on_drain(req, pump);
            return;
        }
    }
    CHECK_INT(0, cn_http_end(req));
    cn_http_request_release(req);
}

static void start_pump(struct rig *rig, struct cn_http_request *req)
{
    struct cn_http_head head = {.status = 200};
    CHECK_INT(0, cn_http_begin(req, &head, (int64_t)pump_left));
    pump(req);
}

TEST(server, holds_a_writer_back_while_the_client_does_not_read)
{
    struct rig rig;
    struct rig_client client;
    enum { BODY = 32 << 20 };
    rig_open(&rig, start_pump, NULL);
    pump_left = BODY;
    full_count = release_count = 0;
    rig_connect(&rig, &client);
    rig_pause(&client, true);
    rig_send(&client, GET("/"));
    RIG_UNTIL(&rig, full_count > 0);
    for (int i = 0; i < 200; i++)
        rig_turn(&rig);
    size_t left = pump_left;
    CHECK(left > BODY / 2); /* kernel buffers and the queue, not more */
    rig_pause(&client, false);
    RIG_UNTIL(&rig, pump_left == 0);
    const char *end = strstr(rig_got(&client), "\r\n\r\n");
    size_t head_size = (size_t)(end + 4 - rig_got(&client));
    RIG_UNTIL(&rig, client.got.size == head_size + BODY);
    for (size_t i = 0; i < BODY; i++)
        CHECK(client.got.data[head_size + i] == 'a' + (BODY - i) % 26);
    CHECK_INT((BODY + 49999) / 50000, release_count);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, refuses_writes_past_its_bound)
{
    struct rig rig;
    struct rig_client client;
    struct cn_http_server_options options = {.limits = {.output_size_max = 1 << 20}};
    rig_open(&rig, rig_hold, &options);
    rig_connect(&rig, &client);
    rig_pause(&client, true);
    rig_send(&client, GET("/"));
    RIG_UNTIL(&rig, rig.request_count == 1);
    struct cn_http_head head = {.status = 200};
    CHECK_INT(0, cn_http_begin(rig.held, &head, -1));
    int rc = 1;
    release_count = 0;
    unsigned tries = 0;
    while (rc >= 0) { /* a writer that does not listen */
        void *bytes = cn_alloc_zero(100000);
        rc = cn_http_write(rig.held, bytes, 100000, on_release, bytes);
        CHECK(++tries < 1000);
    }
    CHECK_INT(CN_EOVERLOADED, rc);
    cn_http_abort(rig.held);
    cn_http_request_release(rig.held);
    rig_pause(&client, false);
    RIG_UNTIL(&rig, client.ended);
    CHECK_INT(0, rig.abort_count);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server, cuts_an_answer_so_that_the_client_sees_it)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_hold, NULL);
    struct cn_http_head head = {.status = 200};
    for (int how = 0; how < 3; how++) {
        rig.request_count = 0;
        rig_connect(&rig, &client);
        rig_send(&client, GET("/"));
        RIG_UNTIL(&rig, rig.request_count == 1);
        CHECK_INT(0, cn_http_begin(rig.held, &head, how == 0 ? -1 : 10));
        CHECK_INT(1, cn_http_write(rig.held, "half", 4, NULL, NULL));
        RIG_UNTIL(&rig, rig_has(&client, "half"));
        if (how == 0)
            cn_http_abort(rig.held);
        else if (how == 1)
            CHECK_INT(CN_EINVALID, cn_http_end(rig.held)); /* too short */
        cn_http_request_release(rig.held);                 /* how == 2: given up */
        RIG_UNTIL(&rig, client.ended);
        CHECK(client.reset);
        rig_disconnect(&client);
    }
    CHECK_INT(0, rig.abort_count); /* the handler did it and knows */
    rig_close(&rig);
}

/* --- clients that go away --------------------------------------------------------------- */

TEST(server, tells_the_handler_when_the_client_goes_away)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_hold, NULL);
    struct cn_http_head head = {.status = 200};
    for (int how = 0; how < 3; how++) {
        rig.request_count = rig.abort_count = 0;
        rig_connect(&rig, &client);
        rig_send(&client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc");
        RIG_UNTIL(&rig, rig.request_count == 1);
        if (how == 1)
            rig_read_all(rig.held);
        if (how == 2)
            CHECK_INT(0, cn_http_begin(rig.held, &head, -1));
        rig_disconnect(&client);
        RIG_UNTIL(&rig, rig.abort_count == 1);
        /* Everything is harmless now. */
        const uint8_t *bytes;
        size_t size;
        CHECK_INT(CN_ECLOSED, cn_http_request_read(rig.held, &bytes, &size, NULL));
        CHECK_INT(CN_ECLOSED, cn_http_write(rig.held, "x", 1, NULL, NULL));
        CHECK_INT(CN_ECLOSED, cn_http_end(rig.held));
        CHECK_STR("127.0.0.1", cn_http_request_remote(rig.held, NULL)); /* C6 */
        CHECK(rig.held->target.size == 1); /* its text is still there */
        cn_http_abort(rig.held);
        CHECK_INT(CN_ECLOSED, rig_answer(rig.held, 200, "too late"));
        cn_buf_clear(&rig.body);
    }
    rig_close(&rig);
}

TEST(server, keeps_a_request_for_its_handler_after_the_answer)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_hold, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, GET("/first"));
    RIG_UNTIL(&rig, rig.request_count == 1);
    struct cn_http_request *first = rig.held;
    struct cn_http_head head = {.status = 200};
    CHECK_INT(0, cn_http_respond(first, &head, "x", 1, NULL, NULL));
    CHECK_INT(CN_ECLOSED, cn_http_respond(first, &head, "x", 1, NULL, NULL));
    rig_send(&client, GET("/second"));
    RIG_UNTIL(&rig, rig.request_count == 2);
    CHECK(rig.held != first);
    CHECK(first->target.size == 6 && memcmp(first->target.data, "/first", 6) == 0);
    uint16_t port = 0;
    CHECK_STR("127.0.0.1", cn_http_request_remote(first, &port)); /* C6 */
    CHECK(port != 0);
    rig_answer(rig.held, 200, "y");
    RIG_UNTIL(&rig, rig_count(&client, "HTTP/1.1 200") == 2);
    rig_disconnect(&client);
    cn_http_request_release(first);
    rig_close(&rig);
}

/* --- refusals --------------------------------------------------------------------------- */

TEST(server, refuses_bad_requests_with_a_status_and_a_close)
{
    static const struct {
        const char *status, *text;
    } cases[] = {
        {"HTTP/1.1 400 ", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"},
        {"HTTP/1.1 400 ", "GET / HTTP/1.1\r\n\r\n"},
        {"HTTP/1.1 400 ", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                          "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {"HTTP/1.1 413 ", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 104857601\r\n\r\n"},
        {"HTTP/1.1 417 ",
         "POST / HTTP/1.1\r\nHost: a\r\nExpect: more\r\nContent-Length: 1\r\n\r\n"},
        {"HTTP/1.1 501 ", "BREW / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {"HTTP/1.1 505 ", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    };
    struct rig rig;
    rig_open(&rig, NULL, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig_client client;
        const char *got = rig_exchange(&rig, &client, cases[i].text);
        CHECK(strncmp(got, cases[i].status, strlen(cases[i].status)) == 0);
        CHECK(strstr(got, "Connection: close\r\n") != NULL);
        CHECK_INT(1, rig_count(&client, "HTTP/1.1"));
        rig_disconnect(&client);
    }
    CHECK_INT(0, rig.request_count);
    rig_close(&rig);
}

TEST(server, does_not_read_a_second_request_after_a_bad_one)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, NULL, NULL);
    rig_exchange(
        &rig, &client,
        GET("/ok") "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n" GET("/smuggled"));
    CHECK(rig_has(&client, "\r\n\r\n/ok"));
    CHECK(rig_has(&client, "HTTP/1.1 400 "));
    CHECK(!rig_has(&client, "smuggled"));
    CHECK_INT(1, rig.request_count);
    rig_disconnect(&client);
    rig_close(&rig);
}

/* --- upgrades --------------------------------------------------------------------------- */

struct taken {
    struct cn_stream *stream;
    struct cn_buf got;
    bool ended, closed;
};

static void taken_data(struct cn_stream *stream, const uint8_t *bytes, size_t size)
{
    struct taken *taken = cn_stream_owner(stream);
    cn_buf_append(&taken->got, bytes, size);
    cn_stream_write(stream, bytes, size);
}

static void taken_end(struct cn_stream *stream, int status)
{
    ((struct taken *)cn_stream_owner(stream))->ended = true;
}

static void taken_closed(struct cn_stream *stream)
{
    ((struct taken *)cn_stream_owner(stream))->closed = true;
}

static const struct cn_stream_callbacks taken_callbacks = {
    .on_data = taken_data, .on_end = taken_end, .on_closed = taken_closed};

static void upgrade(struct rig *rig, struct cn_http_request *req)
{
    struct taken *taken = rig->extra;
    CHECK(req->upgrade);
    struct cn_http_header headers[] = {header("Upgrade", "echo"), header("Connection", "Upgrade")};
    struct cn_http_head head = {.status = 101, .headers = headers, .header_count = 2};
    CHECK_INT(0, cn_http_upgrade(req, &head, &taken_callbacks, taken, &taken->stream));
    cn_stream_resume(taken->stream);
    cn_http_request_release(req);
}

#define UPGRADE "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

static void upgrade_later(struct rig *rig, struct cn_http_request *req)
{
    rig->held = req;
}

TEST(server, hands_an_upgraded_connection_on)
{
    for (int late = 0; late < 2; late++) {
        struct rig rig;
        struct rig_client client;
        struct taken taken = {0};
        rig_open(&rig, late ? upgrade_later : upgrade, NULL);
        rig.extra = &taken;
        rig_connect(&rig, &client);
        rig_send(&client, UPGRADE "early ");
        if (late) {
            RIG_UNTIL(&rig, rig.held != NULL);
            upgrade(&rig, rig.held);
        }
        RIG_UNTIL(&rig, ends_with(rig_got(&client), "\r\n\r\nearly "));
        CHECK(strncmp(rig_got(&client), "HTTP/1.1 101 Switching Protocols\r\n", 34) == 0);
        CHECK(rig_has(&client, "Upgrade: echo\r\nConnection: Upgrade\r\n"));
        rig_send(&client, "later");
        RIG_UNTIL(&rig, ends_with(rig_got(&client), "early later"));
        CHECK_STR("early later", cn_buf_text(&taken.got));
        struct cn_http_stats stats;
        cn_http_server_stats(rig.server, &stats);
        CHECK_INT(1, stats.connection_count);
        CHECK_INT(0, stats.busy_count);
        shutdown(client.fd, SHUT_WR);
        RIG_UNTIL(&rig, taken.ended);
        cn_stream_close(taken.stream, false);
        RIG_UNTIL(&rig, taken.closed);
        rig_disconnect(&client);
        rig_close(&rig);
        cn_buf_fini(&taken.got);
    }
}

static void check(void *data)
{
    cn_http_server_check(data);
}

static void answer_elsewhere(void *data)
{
    rig_answer(data, 200, "no");
}

/* W3 and W1 of base/loop.h */
TEST(server, connections_and_requests_are_counted_and_the_loops)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_hold, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, rig.held);
    cn_http_server_check(rig.server);
    struct cn_http_server *server = rig.server;
    server->conn_count++;
    CHECK_ASSERTS("server->conn_count == count", check, server);
    server->conn_count--;
    server->stats.busy_count--;
    CHECK_ASSERTS("server->stats.busy_count == busy", check, server);
    server->stats.busy_count++;
    server->spare_request_count++;
    CHECK_ASSERTS("server->spare_request_count == cn_list_length", check, server);
    server->spare_request_count--;
    cn_loop_give(&rig.loop);
    CHECK_ASSERTS("cn_loop_is_mine(loop)", answer_elsewhere, rig.held);
    cn_loop_take(&rig.loop);
    rig_answer(rig.held, 200, "yes");
    RIG_UNTIL(&rig, rig_has(&client, "yes"));
    cn_http_server_check(server);
    rig_disconnect(&client);
    rig_close(&rig);
}

/* A request with a long head and a body on a connection of its own, while the n-th allocation fails.
 * False: there were fewer. */
static bool ask_with_little_memory(struct rig *rig, uint64_t at, bool sticky)
{
    struct rig_client client;
    struct cn_buf text = {0};
    cn_buf_append_str(&text, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n");
    for (int i = 0; i < 90; i++)
        cn_buf_printf(&text, "x-%02d: %0100d\r\n", i, i);
    cn_buf_append_str(&text, "Connection: close\r\n\r\nabc");
    scarce_set(at, sticky);
    const char *got = rig_exchange(rig, &client, cn_buf_text(&text));
    bool failed = scarce_count() >= at;
    scarce_set(0, false);
    /* It is echoed, or refused, or cut. */
    CHECK(!*got || strncmp(got, "HTTP/1.1 ", 9) == 0);
    CHECK(failed || ends_with(got, "\r\n\r\nabc"));
    rig_disconnect(&client);
    cn_buf_fini(&text);
    return failed;
}

TEST(server, memory_that_runs_out_refuses_a_request_and_nothing_else)
{
    struct rig rig;
    struct cn_http_stats stats;
    rig_open(&rig, rig_echo, NULL);
    for (uint64_t at = 1; ask_with_little_memory(&rig, at, false); at++)
        continue;
    for (uint64_t at = 1; ask_with_little_memory(&rig, at, true); at++)
        continue;
    cn_http_server_stats(rig.server, &stats);
    CHECK_INT(0, stats.busy_count);
    rig_close(&rig);
}
