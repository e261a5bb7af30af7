/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing HTTP against a scripted origin on the same loop. Each test says in its
 * script what the origin does, then what the owner of the request must see. */
#include "net/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/trust.h"
#include "test/lib/deflated.h"
#include "test/lib/origin.h"
#include "test/lib/seen.h"
#include "test/lib/test.h"

/* What one test has: an origin, a client, and what came out of it. */
struct bench {
    uv_loop_t loop;
    struct origin origin;
    struct cn_client_options options;
    struct cn_client *client;
    char url[200];
    char ca_path[300];        /* the origin's certificate, if it speaks TLS */
    struct cn_buf head, body; /* the request, as the origin saw it */
};

static void start(struct bench *bench, struct seen *seen, struct cn_client_params params)
{
    if (!params.url)
        params.url = bench->url;
    seen_start(seen, bench->client, params);
}

static void bench_open(struct bench *bench, void (*script)(struct origin_conn *))
{
    CHECK_INT(0, cn_loop_init(&bench->loop, NULL));
    bench->origin.data = bench;
    origin_start(&bench->origin, &bench->loop, script);
    struct cn_err err = {0};
    if (!bench->options.trust)
        bench->options.trust = cn_trust_new(bench->origin.tls ? bench->ca_path : NULL, &err);
    CHECK_STR("", err.text);
    bench->client = cn_client_new(&bench->loop, &bench->options);
    snprintf(bench->url, sizeof(bench->url), "%s://127.0.0.1:%d/path?q=1",
             bench->origin.tls ? "https" : "http", bench->origin.port);
}

static void on_client_closed(void *data)
{
    *(bool *)data = true;
}

static void bench_close(struct bench *bench)
{
    bool closed = false;
    cn_client_close(bench->client, on_client_closed, &closed);
    LOOP_UNTIL(&bench->loop, &closed);
    origin_stop(&bench->origin);
    cn_trust_free(bench->options.trust);
    cn_buf_fini(&bench->head);
    cn_buf_fini(&bench->body);
    while (uv_run(&bench->loop, UV_RUN_NOWAIT))
        ;
    CHECK_INT(0, uv_loop_close(&bench->loop)); /* nothing is left on it */
}

static void tls_setup(struct bench *bench, const char *alpn)
{
    snprintf(bench->ca_path, sizeof(bench->ca_path), "%s/ca.pem", test_dir());
    origin_use_tls(&bench->origin, bench->ca_path, alpn);
}

/* One request through a script, to its end. */
static void exchange(void (*script)(struct origin_conn *), struct seen *seen,
                     struct cn_client_params params)
{
    struct bench bench = {0};
    bench_open(&bench, script);
    start(&bench, seen, params);
    LOOP_UNTIL(&bench.loop, &seen->done);
    bench_close(&bench);
}

static struct bench *bench_of(struct origin_conn *conn)
{
    return conn->origin->data;
}

static bool take(struct origin_conn *conn)
{
    struct bench *bench = bench_of(conn);
    return origin_take_request(conn, &bench->head, &bench->body);
}

/* ---- heads ---- */

static void script_hello(struct origin_conn *conn)
{
    while (take(conn))
        origin_print(conn, "HTTP/1.1 200 Fine\r\nContent-Length: 5\r\nSet-Cookie: a=1\r\n"
                           "set-cookie: b=2\r\nX-Empty:\r\n\r\nhello");
}

TEST(client, delivers_head_and_body)
{
    struct seen seen = {0};
    exchange(script_hello, &seen, (struct cn_client_params){0});
    CHECK_INT(0, seen.error.code);
    CHECK_INT(200, seen.status);
    CHECK_INT(11, seen.http_version);
    CHECK_STR("Fine", seen.reason);
    CHECK_STR("Content-Length=5\nSet-Cookie=a=1\nset-cookie=b=2\nX-Empty=\n",
              cn_buf_text(&seen.headers));
    CHECK_STR("hello", seen_body(&seen));
    seen_fini(&seen);
}

static void script_echo_head(struct origin_conn *conn)
{
    struct bench *bench = bench_of(conn);
    if (take(conn))
        origin_print(conn, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", bench->head.size,
                     cn_buf_text(&bench->head));
}

TEST(client, adds_nothing_but_host_and_framing)
{
    struct bench bench = {0};
    struct seen seen = {0};
    bench_open(&bench, script_echo_head);
    start(&bench, &seen, (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &seen.done);
    char want[200];
    snprintf(want, sizeof(want), "GET /path?q=1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
             bench.origin.port);
    CHECK_STR(want, seen_body(&seen));
    seen_fini(&seen);
    bench_close(&bench);
}

TEST(client, sends_the_callers_headers_and_frames_the_body_itself)
{
    struct cn_client_header headers[] = {
        {"X-One", "1", 5, 1},
        {"x-one", "2", 5, 1},
        {"Content-Length", "999", 14, 3},
        {"Connection", "close", 10, 5},
        {"X-Empty", "", 7, 0},
        {"Accept", "text/x", 6, 6},
        {"transfer-encoding", "x", 17, 1},
    };
    struct seen seen = {0};
    exchange(script_echo_head, &seen,
             (struct cn_client_params){.method = "PATCH",
                                       .headers = headers,
                                       .header_count = 7,
                                       .accept_encoding = true,
                                       .body_kind = CN_CLIENT_BODY_BYTES,
                                       .body = "four",
                                       .body_size = 4});
    const char *text = seen_body(&seen);
    CHECK(strncmp(text, "PATCH /path?q=1 HTTP/1.1\r\n", 26) == 0);
    CHECK(strstr(text, "\r\nX-One: 1\r\nx-one: 2\r\nX-Empty:\r\nAccept: text/x\r\n"));
    CHECK(strstr(text, "\r\nContent-Length: 4\r\n"));
    CHECK(strstr(text, "\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n"));
    CHECK(!strstr(text, ": 999") &&
          !strcasestr(text, "transfer-encoding")); /* a port may have 999 */
    CHECK(!strcasestr(text, "connection:") && !strcasestr(text, "expect:"));
    CHECK(!strcasestr(text, "content-type:"));
    seen_fini(&seen);
}

TEST(client, post_without_a_body_has_length_zero)
{
    struct seen seen = {0};
    exchange(script_echo_head, &seen, (struct cn_client_params){.method = "POST"});
    CHECK(strstr(seen_body(&seen), "\r\nContent-Length: 0\r\n"));
    seen_fini(&seen);
}

static void script_interim(struct origin_conn *conn)
{
    if (take(conn))
        origin_print(conn,
                     "HTTP/1.1 100 Continue\r\nX-Interim: 1\r\n\r\nHTTP/1.1 103 Early "
                     "Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 204 No Content\r\nX-Real: 1\r\n\r\n");
}

TEST(client, interim_answers_are_not_shown)
{
    struct seen seen = {0};
    exchange(script_interim, &seen, (struct cn_client_params){0});
    CHECK_INT(0, seen.error.code);
    CHECK_INT(204, seen.status);
    CHECK_STR("X-Real=1\n", cn_buf_text(&seen.headers));
    seen_fini(&seen);
}

static void script_redirect(struct origin_conn *conn)
{
    while (take(conn))
        origin_print(conn,
                     "HTTP/1.1 302 Found\r\nLocation: /else\r\nContent-Length: 4\r\n\r\nmove");
}

TEST(client, redirects_are_shown_not_followed)
{
    struct seen seen = {0};
    exchange(script_redirect, &seen, (struct cn_client_params){0});
    CHECK_INT(302, seen.status);
    CHECK_STR("Location=/else\nContent-Length=4\n", cn_buf_text(&seen.headers));
    CHECK_STR("move", seen_body(&seen));
    seen_fini(&seen);
}

static void script_head(struct origin_conn *conn)
{
    if (take(conn))
        origin_print(conn,
                     "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Encoding: gzip\r\n\r\n");
}

TEST(client, head_answers_have_no_body)
{
    struct seen seen = {0};
    exchange(script_head, &seen, (struct cn_client_params){.method = "HEAD", .decode = true});
    CHECK_INT(0, seen.error.code);
    CHECK_INT(0, seen.body.size);
    seen_fini(&seen);
}

static void script_huge_head(struct origin_conn *conn)
{
    if (!take(conn))
        return;
    origin_print(conn, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 5000; i++)
        origin_print(conn, "X-Header-%d: 0123456789012345678901234567890123456789\r\n", i);
    origin_print(conn, "\r\n");
}

TEST(client, refuses_a_head_past_the_limit)
{
    struct seen seen = {0};
    exchange(script_huge_head, &seen, (struct cn_client_params){0});
    CHECK_INT(CN_ELIMIT, seen.error.code);
    CHECK(strstr(seen.error.text, "headers exceed 131072 bytes"));
    CHECK_INT(0, seen.head_count);
    seen_fini(&seen);
}

static void script_garbage(struct origin_conn *conn)
{
    if (take(conn)) {
        origin_print(conn, "220 smtp.example ESMTP\r\n");
        origin_shutdown(conn);
    }
}

static void script_bad_header(struct origin_conn *conn)
{
    if (take(conn))
        origin_print(conn, "HTTP/1.1 200 OK\r\nNo colon here\r\nContent-Length: 0\r\n\r\n");
}

static void script_bad_chunk(struct origin_conn *conn)
{
    if (take(conn))
        origin_print(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n");
}

TEST(client, malformed_answers_are_protocol_errors)
{
    void (*scripts[])(struct origin_conn *) = {script_garbage, script_bad_header, script_bad_chunk};
    for (size_t i = 0; i < CN_ARRAY_COUNT(scripts); i++) {
        struct seen seen = {0};
        exchange(scripts[i], &seen, (struct cn_client_params){0});
        CHECK_INT(CN_EPROTOCOL, seen.error.code);
        seen_fini(&seen);
    }
}

/* ---- bodies ---- */

static void script_chunked(struct origin_conn *conn)
{
    if (take(conn))
        origin_print(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "5\r\nhello\r\n1;ext=1\r\n \r\n5\r\nworld\r\n0\r\nX-Trailer: t\r\n\r\n");
}

TEST(client, joins_chunks)
{
    struct seen seen = {0};
    exchange(script_chunked, &seen, (struct cn_client_params){0});
    CHECK_INT(0, seen.error.code);
    CHECK_STR("hello world", seen_body(&seen));
    seen_fini(&seen);
}

static void script_truncated(struct origin_conn *conn)
{
    if (take(conn)) {
        origin_print(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
        origin_shutdown(conn);
    }
}

TEST(client, a_cut_body_is_an_error_after_what_came)
{
    struct seen seen = {0};
    exchange(script_truncated, &seen, (struct cn_client_params){0});
    CHECK_STR("only this", seen_body(&seen));
    CHECK_INT(CN_EPROTOCOL, seen.error.code);
    CHECK(strstr(seen.error.text, "cut short"));
    seen_fini(&seen);
}

static void script_reset(struct origin_conn *conn)
{
    if (take(conn))
        origin_reset(conn);
}

static void script_close(struct origin_conn *conn)
{
    if (take(conn))
        origin_close(conn);
}

TEST(client, a_connection_lost_before_the_answer_is_an_error)
{
    void (*scripts[])(struct origin_conn *) = {script_reset, script_close};
    for (size_t i = 0; i < CN_ARRAY_COUNT(scripts); i++) {
        struct seen seen = {0};
        exchange(scripts[i], &seen, (struct cn_client_params){0});
        CHECK_INT(CN_EPROTOCOL, seen.error.code);
        CHECK_INT(0, seen.head_count);
        seen_fini(&seen);
    }
}

#define BIG (8u << 20)

static void script_big(struct origin_conn *conn)
{
    if (!take(conn))
        return;
    origin_print(conn, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", BIG);
    char *bytes = cn_alloc(BIG);
    memset(bytes, 'b', BIG);
    origin_write(conn, bytes, BIG);
    cn_free(bytes);
}

TEST(client, a_paused_download_stops_and_goes_on)
{
    struct bench bench = {0};
    struct seen seen = {.pause_at_body = true};
    bench_open(&bench, script_big);
    start(&bench, &seen, (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &seen.body_seen);
    unsigned calls = seen.body_calls;
    loop_linger(&bench.loop, 50);
    CHECK_INT(calls, seen.body_calls); /* C4 */
    /* The origin could not get rid of everything: its kernel buffers are full. */
    struct origin_conn *conn = CN_CONTAINER_OF(bench.origin.conns.next, struct origin_conn, link);
    CHECK(conn->unsent > 0);
    for (int i = 0; i < 3; i++) { /* one at a time */
        seen.body_seen = false;
        cn_client_resume(seen.request);
        LOOP_UNTIL(&bench.loop, &seen.body_seen);
    }
    seen.pause_at_body = false;
    cn_client_resume(seen.request);
    LOOP_UNTIL(&bench.loop, &seen.done);
    CHECK_INT(0, seen.error.code);
    CHECK_INT(BIG, seen.body.size);
    seen_fini(&seen);
    bench_close(&bench);
}

/* ---- content codings ---- */

static void send_gzip(struct origin_conn *conn, size_t plain_size, size_t cut)
{
    char *plain = cn_alloc(plain_size);
    memset(plain, 'z', plain_size);
    struct cn_buf coded = deflated(plain, plain_size, DEFLATED_GZIP);
    cn_free(plain);
    coded.size -= cut;
    origin_print(conn, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
                 coded.size);
    origin_write(conn, coded.data, coded.size);
    cn_buf_fini(&coded);
}

static void script_gzip(struct origin_conn *conn)
{
    if (take(conn))
        send_gzip(conn, 1000, 0);
}

TEST(client, decodes_and_keeps_the_header)
{
    struct seen seen = {0};
    exchange(script_gzip, &seen, (struct cn_client_params){.decode = true});
    CHECK_INT(0, seen.error.code);
    CHECK_INT(1000, seen.body.size);
    CHECK(strstr(cn_buf_text(&seen.headers), "Content-Encoding=gzip\n"));
    seen_fini(&seen);
}

TEST(client, leaves_the_body_coded_unless_asked)
{
    struct seen seen = {0};
    exchange(script_gzip, &seen, (struct cn_client_params){0});
    CHECK_INT(0, seen.error.code);
    CHECK(seen.body.size < 100 && seen.body.data[0] == 0x1f);
    seen_fini(&seen);
}

TEST(client, decoding_can_be_decided_while_paused_after_the_head)
{
    struct bench bench = {0};
    struct seen seen = {.pause_at_head = true};
    bench_open(&bench, script_gzip);
    start(&bench, &seen, (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &seen.head_seen);
    loop_linger(&bench.loop, 20);
    CHECK_INT(0, seen.body.size);
    cn_client_set_decode(seen.request, true);
    cn_client_resume(seen.request);
    LOOP_UNTIL(&bench.loop, &seen.done);
    CHECK_INT(1000, seen.body.size);
    seen_fini(&seen);
    bench_close(&bench);
}

static void script_gzip_big(struct origin_conn *conn)
{
    if (take(conn))
        send_gzip(conn, BIG, 0);
}

TEST(client, a_paused_decoder_keeps_the_rest_coded)
{
    struct bench bench = {0};
    struct seen seen = {.pause_at_body = true};
    bench_open(&bench, script_gzip_big);
    start(&bench, &seen, (struct cn_client_params){.decode = true});
    while (!seen.done) {
        LOOP_UNTIL(&bench.loop, &seen.body_seen);
        loop_linger(&bench.loop, 1);
        CHECK(seen.body.size <= seen.body_calls * 65536u);
        seen.body_seen = false;
        if (seen.done)
            break;
        cn_client_resume(seen.request);
        if (seen.body.size == BIG)
            LOOP_UNTIL(&bench.loop, &seen.done);
    }
    CHECK_INT(0, seen.error.code);
    CHECK_INT(BIG, seen.body.size);
    CHECK_INT(BIG / 65536, seen.body_calls);
    seen_fini(&seen);
    bench_close(&bench);
}

static void script_gzip_cut(struct origin_conn *conn)
{
    if (take(conn))
        send_gzip(conn, 1000, 5);
}

static void script_gzip_false(struct origin_conn *conn)
{
    if (take(conn))
        origin_print(conn,
                     "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 9\r\n\r\nplain "
                     "text");
}

TEST(client, damaged_coding_is_a_protocol_error)
{
    void (*scripts[])(struct origin_conn *) = {script_gzip_cut, script_gzip_false};
    for (size_t i = 0; i < CN_ARRAY_COUNT(scripts); i++) {
        struct seen seen = {0};
        exchange(scripts[i], &seen, (struct cn_client_params){.decode = true});
        CHECK_INT(CN_EPROTOCOL, seen.error.code);
        seen_fini(&seen);
    }
}

static void script_unknown_coding(struct origin_conn *conn)
{
    if (take(conn))
        origin_print(conn,
                     "HTTP/1.1 200 OK\r\nContent-Encoding: utf-8\r\nContent-Length: 2\r\n\r\nok");
}

TEST(client, unknown_coding_is_delivered_as_it_is)
{
    struct seen seen = {0};
    exchange(script_unknown_coding, &seen, (struct cn_client_params){.decode = true});
    CHECK_INT(0, seen.error.code);
    CHECK_STR("ok", seen_body(&seen));
    seen_fini(&seen);
}

/* ---- uploads ---- */

static void script_count_body(struct origin_conn *conn)
{
    struct bench *bench = bench_of(conn);
    if (take(conn)) {
        const char *how = strcasestr(cn_buf_text(&bench->head), "chunked") ? "chunked" : "length";
        char text[100];
        snprintf(text, sizeof(text), "%s %zu", how, bench->body.size);
        origin_print(conn, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
    }
}

TEST(client, streams_an_upload_of_unknown_length)
{
    struct seen seen = {.upload_left = 3000000, .upload_piece = 100000};
    exchange(script_count_body, &seen,
             (struct cn_client_params){.method = "POST",
                                       .body_kind = CN_CLIENT_BODY_STREAM,
                                       .body_length = CN_CLIENT_LENGTH_UNKNOWN});
    CHECK_INT(0, seen.error.code);
    CHECK_STR("chunked 3000000", seen_body(&seen));
    seen_fini(&seen);
}

TEST(client, streams_an_upload_of_known_length)
{
    struct seen seen = {.upload_left = 3000000, .upload_piece = 70000};
    exchange(script_count_body, &seen,
             (struct cn_client_params){
                 .method = "PUT", .body_kind = CN_CLIENT_BODY_STREAM, .body_length = 3000000});
    CHECK_INT(0, seen.error.code);
    CHECK_STR("length 3000000", seen_body(&seen));
    seen_fini(&seen);
}

TEST(client, sends_bytes)
{
    char *bytes = cn_alloc(2000000);
    memset(bytes, 'x', 2000000);
    struct seen seen = {0};
    exchange(script_count_body, &seen,
             (struct cn_client_params){.method = "POST",
                                       .body_kind = CN_CLIENT_BODY_BYTES,
                                       .body = bytes,
                                       .body_size = 2000000});
    cn_free(bytes);
    CHECK_STR("length 2000000", seen_body(&seen));
    seen_fini(&seen);
}

TEST(client, an_upload_waits_for_its_owner)
{
    struct bench bench = {0};
    struct seen seen = {.upload_hold = true};
    bench_open(&bench, script_count_body);
    start(&bench, &seen,
          (struct cn_client_params){.method = "POST",
                                    .body_kind = CN_CLIENT_BODY_STREAM,
                                    .body_length = CN_CLIENT_LENGTH_UNKNOWN,
                                    .head_timeout_ms = 300});
    for (int i = 0; i < 2; i++) {
        LOOP_UNTIL(&bench.loop, &seen.wanted);
        seen.wanted = false;
        loop_linger(&bench.loop,
                    400); /* longer than the time-out: it is not the origin that is slow */
        CHECK(!seen.done);
        CHECK_INT(0, cn_client_write(seen.request, "12345", 5, NULL));
    }
    LOOP_UNTIL(&bench.loop, &seen.wanted);
    cn_client_end(seen.request);
    LOOP_UNTIL(&bench.loop, &seen.done);
    CHECK_INT(0, seen.error.code);
    CHECK_STR("chunked 10", seen_body(&seen));
    seen_fini(&seen);
    bench_close(&bench);
}

TEST(client, an_upload_keeps_to_its_length)
{
    struct bench bench = {0};
    struct seen more = {.upload_hold = true}, less = {.upload_hold = true};
    struct cn_client_params params = {
        .method = "POST", .body_kind = CN_CLIENT_BODY_STREAM, .body_length = 4};
    bench_open(&bench, script_count_body);
    start(&bench, &more, params);
    start(&bench, &less, params);
    LOOP_UNTIL(&bench.loop, &more.wanted);
    LOOP_UNTIL(&bench.loop, &less.wanted);
    struct cn_err err;
    CHECK_INT(CN_EINVALID, cn_client_write(more.request, "12345", 5, &err));
    CHECK(strstr(err.text, "longer than the 4 bytes"));
    CHECK_INT(0, cn_client_write(more.request, "1234", 4, NULL));
    cn_client_end(more.request);
    CHECK_INT(0, cn_client_write(less.request, "123", 3, NULL));
    cn_client_end(less.request);
    LOOP_UNTIL(&bench.loop, &more.done);
    LOOP_UNTIL(&bench.loop, &less.done);
    CHECK_INT(0, more.error.code);
    CHECK_STR("length 4", seen_body(&more));
    CHECK_INT(CN_EINVALID, less.error.code);
    CHECK(strstr(less.error.text, "after 3 of 4"));
    seen_fini(&more);
    seen_fini(&less);
    bench_close(&bench);
}

static void script_early_answer(struct origin_conn *conn)
{
    if (conn->step++ == 0)
        origin_print(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
    cn_buf_clear(&conn->in);
}

TEST(client, an_answer_before_the_upload_ends_is_delivered)
{
    struct seen seen = {.upload_left = 50000000, .upload_piece = 500000};
    exchange(script_early_answer, &seen,
             (struct cn_client_params){.method = "POST",
                                       .body_kind = CN_CLIENT_BODY_STREAM,
                                       .body_length = CN_CLIENT_LENGTH_UNKNOWN});
    CHECK_INT(0, seen.error.code);
    CHECK_INT(413, seen.status);
    CHECK_STR("big", seen_body(&seen));
    seen_fini(&seen);
}

static void script_echo_stream(struct origin_conn *conn)
{
    if (conn->step == 0) {
        char *end = strstr(cn_buf_text(&conn->in), "\r\n\r\n");
        if (!end)
            return;
        cn_buf_consume(&conn->in, (size_t)(end + 4 - (char *)conn->in.data));
        conn->step = 1;
        origin_print(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    }
    origin_write(conn, conn->in.data, conn->in.size); /* chunks in, chunks out */
    cn_buf_clear(&conn->in);
}

TEST(client, both_directions_stream_at_once)
{
    struct bench bench = {0};
    struct seen seen = {.upload_hold = true};
    bench_open(&bench, script_echo_stream);
    start(&bench, &seen,
          (struct cn_client_params){.method = "POST",
                                    .body_kind = CN_CLIENT_BODY_STREAM,
                                    .body_length = CN_CLIENT_LENGTH_UNKNOWN});
    LOOP_UNTIL(&bench.loop, &seen.wanted);
    CHECK_INT(0, cn_client_write(seen.request, "ping ", 5, NULL));
    LOOP_UNTIL(&bench.loop, &seen.body_seen); /* while the upload is still open */
    CHECK_STR("ping ", seen_body(&seen));
    CHECK_INT(0, cn_client_write(seen.request, "pong", 4, NULL));
    cn_client_end(seen.request);
    LOOP_UNTIL(&bench.loop, &seen.done);
    CHECK_INT(0, seen.error.code);
    CHECK_STR("ping pong", seen_body(&seen));
    seen_fini(&seen);
    bench_close(&bench);
}

/* ---- aborts, limits, time ---- */

static void script_silent(struct origin_conn *conn)
{
}

TEST(client, abort_works_in_every_state)
{
    struct bench bench = {0};
    bench_open(&bench, script_silent);
    struct seen queued = {0}, waiting = {0};
    start(&bench, &waiting, (struct cn_client_params){0});
    loop_linger(&bench.loop, 20); /* connected, no answer */
    start(&bench, &queued, (struct cn_client_params){0});
    cn_client_abort(queued.request);
    cn_client_abort(waiting.request);
    cn_client_abort(waiting.request);
    CHECK(!queued.done && !waiting.done); /* C1 */
    LOOP_UNTIL(&bench.loop, &queued.done);
    LOOP_UNTIL(&bench.loop, &waiting.done);
    CHECK_INT(CN_EABORTED, queued.error.code);
    CHECK_INT(CN_EABORTED, waiting.error.code);
    seen_fini(&queued);
    seen_fini(&waiting);
    bench_close(&bench);

    struct seen at_head = {.abort_at_head = true}, at_body = {.abort_at_body = true};
    exchange(script_big, &at_head, (struct cn_client_params){0});
    exchange(script_gzip_big, &at_body, (struct cn_client_params){.decode = true});
    CHECK_INT(CN_EABORTED, at_head.error.code);
    CHECK_INT(0, at_head.body_calls);
    CHECK_INT(CN_EABORTED, at_body.error.code);
    CHECK_INT(1, at_body.body_calls);
    seen_fini(&at_head);
    seen_fini(&at_body);
}

TEST(client, closing_ends_what_is_under_way)
{
    struct bench bench = {0};
    struct seen waiting = {0}, paused = {.pause_at_body = true};
    bench_open(&bench, script_silent);
    start(&bench, &waiting, (struct cn_client_params){0});
    loop_linger(&bench.loop, 10);
    bench.origin.on_data = script_big;
    start(&bench, &paused, (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &paused.body_seen);
    bench_close(&bench);
    CHECK_INT(CN_ECLOSED, waiting.error.code);
    CHECK_INT(CN_ECLOSED, paused.error.code);
    seen_fini(&waiting);
    seen_fini(&paused);
}

static void script_half(struct origin_conn *conn)
{
    if (take(conn))
        origin_print(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
}

TEST(client, silence_is_a_time_out)
{
    struct seen head = {0}, body = {0}, total = {0};
    exchange(script_silent, &head, (struct cn_client_params){.head_timeout_ms = 40});
    CHECK_INT(CN_ETIMEOUT, head.error.code);
    CHECK(strstr(head.error.text, "waiting for the answer"));
    exchange(script_half, &body, (struct cn_client_params){.idle_timeout_ms = 40});
    CHECK_INT(CN_ETIMEOUT, body.error.code);
    CHECK(strstr(body.error.text, "the body was read"));
    exchange(script_half, &total, (struct cn_client_params){.total_timeout_ms = 40});
    CHECK_INT(CN_ETIMEOUT, total.error.code);
    seen_fini(&head);
    seen_fini(&body);
    seen_fini(&total);
}

TEST(client, a_pause_is_not_a_time_out)
{
    struct bench bench = {0};
    struct seen seen = {.pause_at_body = true};
    bench_open(&bench, script_big);
    start(&bench, &seen, (struct cn_client_params){.idle_timeout_ms = 300});
    LOOP_UNTIL(&bench.loop, &seen.body_seen);
    loop_linger(&bench.loop, 500);
    CHECK(!seen.done);
    seen.pause_at_body = false;
    cn_client_resume(seen.request);
    LOOP_UNTIL(&bench.loop, &seen.done);
    CHECK_INT(0, seen.error.code);
    seen_fini(&seen);
    bench_close(&bench);
}

TEST(client, refused_and_unknown_hosts_are_told_apart)
{
    struct bench bench = {0};
    bench_open(&bench, script_hello);
    struct origin closed = {0}; /* a port nobody listens on any more */
    origin_start(&closed, &bench.loop, script_hello);
    char url[100];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", closed.port);
    origin_stop(&closed);
    struct seen refused = {0}, unknown = {0};
    start(&bench, &refused, (struct cn_client_params){.url = url});
    start(&bench, &unknown, (struct cn_client_params){.url = "http://no-such-host.invalid/"});
    LOOP_UNTIL(&bench.loop, &refused.done);
    LOOP_UNTIL(&bench.loop, &unknown.done);
    CHECK_INT(UV_ECONNREFUSED, refused.error.code);
    CHECK_INT(UV_EAI_NONAME, unknown.error.code);
    CHECK_STR("http://no-such-host.invalid:80: the host name cannot be resolved",
              unknown.error.text);
    seen_fini(&refused);
    seen_fini(&unknown);
    bench_close(&bench);
}

static bool deny(const struct sockaddr *address, void *data)
{
    ++*(int *)data;
    return false;
}

TEST(client, the_address_filter_decides)
{
    int asked = 0;
    struct bench bench = {.options = {.address_allowed = deny, .address_data = &asked}};
    struct seen seen = {0};
    bench_open(&bench, script_hello);
    start(&bench, &seen, (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &seen.done);
    CHECK_INT(CN_EDENIED, seen.error.code);
    CHECK_INT(1, asked);
    CHECK_INT(0, bench.origin.conn_count);
    seen_fini(&seen);
    bench_close(&bench);
}

TEST(client, bad_parameters_are_refused_at_once)
{
    struct bench bench = {.options = {.requests_max = 1}};
    bench_open(&bench, script_silent);
    struct cn_client_header header = {"X-A", "b\r\nX-Evil: 1", 3, 12}, name = {"X A", "b", 3, 1};
    struct cn_client_params bad[] = {
        {.method = "GET", .url = "ftp://127.0.0.1/"},
        {.method = "GET", .url = "file:///etc/passwd"},
        {.method = "GET", .url = "http://user:secret@127.0.0.1/"},
        {.method = "GET", .url = "nonsense"},
        {.method = "GET", .url = ""},
        {.method = "G T", .url = bench.url},
        {.method = "", .url = bench.url},
        {.method = "CONNECT", .url = bench.url},
        {.method = "GET", .url = bench.url, .headers = &header, .header_count = 1},
        {.method = "GET", .url = bench.url, .headers = &name, .header_count = 1},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(bad); i++) {
        struct cn_err err = {0};
        if (cn_client_fetch(bench.client, &bad[i], &seen_callbacks, NULL, &err))
            test_fail(__FILE__, __LINE__, "case %zu was accepted", i);
        CHECK_INT(CN_EINVALID, err.code);
        CHECK(!strstr(err.text, "secret"));
    }
    struct seen seen = {0};
    start(&bench, &seen, (struct cn_client_params){0});
    struct cn_err err = {0};
    struct cn_client_params good = {.method = "GET", .url = bench.url};
    CHECK(!cn_client_fetch(bench.client, &good, &seen_callbacks, NULL, &err));
    CHECK_INT(CN_EOVERLOADED, err.code);
    bench_close(&bench);
    seen_fini(&seen);
}

/* ---- connections ---- */

TEST(client, connections_are_used_again)
{
    struct bench bench = {0};
    bench_open(&bench, script_hello);
    for (int i = 0; i < 5; i++) {
        struct seen seen = {0};
        start(&bench, &seen, (struct cn_client_params){0});
        LOOP_UNTIL(&bench.loop, &seen.done);
        CHECK_INT(0, seen.error.code);
        seen_fini(&seen);
    }
    CHECK_INT(1, bench.origin.conn_count);
    CHECK_INT(1, cn_client_stats(bench.client).connections_total);
    CHECK_INT(5, cn_client_stats(bench.client).requests_total);
    CHECK_INT(25, cn_client_stats(bench.client).bytes_in);
    bench_close(&bench);
}

TEST(client, a_discarded_answer_leaves_its_connection_usable)
{
    struct bench bench = {0};
    bench_open(&bench, script_redirect);
    for (int i = 0; i < 3; i++) {
        struct seen seen = {.discard_at_head = true};
        start(&bench, &seen, (struct cn_client_params){0});
        LOOP_UNTIL(&bench.loop, &seen.done);
        CHECK_INT(0, seen.error.code);
        CHECK_INT(0, seen.body_calls);
        seen_fini(&seen);
    }
    CHECK_INT(1, bench.origin.conn_count);
    bench.origin.on_data = script_big;
    struct seen big = {.discard_at_head = true};
    start(&bench, &big, (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &big.done);
    CHECK_INT(CN_EABORTED, big.error.code);
    seen_fini(&big);
    bench_close(&bench);
}

TEST(client, the_limit_per_host_queues_the_rest)
{
    struct bench bench = {.options = {.connections_host_max = 2}};
    struct seen seen[10] = {{0}};
    bench_open(&bench, script_hello);
    for (int i = 0; i < 10; i++)
        start(&bench, &seen[i], (struct cn_client_params){0});
    CHECK_INT(10, cn_client_stats(bench.client).requests_running);
    for (int i = 0; i < 10; i++) {
        LOOP_UNTIL(&bench.loop, &seen[i].done);
        CHECK_INT(0, seen[i].error.code);
        seen_fini(&seen[i]);
    }
    CHECK(bench.origin.conn_count <= 2);
    bench_close(&bench);
}

TEST(client, a_request_can_be_started_from_a_callback)
{
    struct bench bench = {0};
    struct seen second = {0}, first = {.again = &second};
    bench_open(&bench, script_hello);
    first.again_url = bench.url;
    start(&bench, &first, (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &first.done);
    LOOP_UNTIL(&bench.loop, &second.done);
    CHECK_INT(0, second.error.code);
    CHECK_STR("hello", seen_body(&second));
    seen_fini(&first);
    seen_fini(&second);
    bench_close(&bench);
}

static void script_hello_then_close(struct origin_conn *conn)
{
    if (conn->step++ == 0) {
        CHECK(take(conn));
        origin_print(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    } else {
        cn_buf_clear(&conn->in);
        origin_close(conn); /* an idle connection dies as the next request arrives */
    }
}

TEST(client, a_body_of_bytes_is_sent_again_when_a_pooled_connection_is_dead)
{
    struct bench bench = {0};
    bench_open(&bench, script_hello_then_close);
    for (int i = 0; i < 2; i++) {
        struct seen seen = {0};
        start(
            &bench, &seen,
            (struct cn_client_params){
                .method = "PUT", .body_kind = CN_CLIENT_BODY_BYTES, .body = "abc", .body_size = 3});
        LOOP_UNTIL(&bench.loop, &seen.done);
        CHECK_INT(0, seen.error.code);
        CHECK_STR("abc", cn_buf_text(&bench.body));
        seen_fini(&seen);
    }
    CHECK_INT(2, bench.origin.conn_count);
    bench_close(&bench);
}

/* ---- TLS ---- */

TEST(client, tls_with_an_extra_authority)
{
    struct bench bench = {0};
    struct seen seen = {0};
    tls_setup(&bench, NULL);
    bench_open(&bench, script_hello);
    start(&bench, &seen, (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &seen.done);
    CHECK_STR("", seen.error.text);
    CHECK_STR("hello", seen_body(&seen));
    seen_fini(&seen);
    bench_close(&bench);
}

TEST(client, tls_refuses_an_unknown_authority)
{
    struct bench bench = {0};
    struct seen seen = {0};
    tls_setup(&bench, NULL);
    bench.options.trust = cn_trust_new(NULL, NULL);
    bench_open(&bench, script_hello);
    start(&bench, &seen, (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &seen.done);
    CHECK_INT(CN_ETLS, seen.error.code);
    CHECK(strstr(seen.error.text, "self-signed certificate"));
    CHECK_INT(0, seen.head_count);
    seen_fini(&seen);
    bench_close(&bench);
}

TEST(client, tls_refuses_the_wrong_name)
{
    struct bench bench = {0};
    struct seen seen = {0};
    tls_setup(&bench, NULL);
    bench_open(&bench, script_hello);
    char url[100]; /* another address of the same machine: not in the certificate */
    snprintf(url, sizeof(url), "https://[::ffff:127.0.0.1]:%d/", bench.origin.port);
    start(&bench, &seen, (struct cn_client_params){.url = url});
    LOOP_UNTIL(&bench.loop, &seen.done);
    CHECK_INT(CN_ETLS, seen.error.code);
    seen_fini(&seen);
    bench_close(&bench);
}

static void script_plain_on_connect(struct origin_conn *conn)
{
    origin_print(conn, "HTTP/1.1 400 This is not TLS\r\n\r\n");
}

TEST(client, tls_to_a_plain_port_fails)
{
    struct bench bench = {0};
    struct seen seen = {0};
    bench_open(&bench, script_silent);
    bench.origin.on_connect = script_plain_on_connect;
    char url[100];
    snprintf(url, sizeof(url), "https://127.0.0.1:%d/", bench.origin.port);
    start(&bench, &seen, (struct cn_client_params){.url = url});
    LOOP_UNTIL(&bench.loop, &seen.done);
    CHECK_INT(CN_ETLS, seen.error.code);
    seen_fini(&seen);
    bench_close(&bench);
}

TEST(trust, a_missing_authority_file_is_named)
{
    struct cn_err err = {0};
    CHECK(!cn_trust_new("/nowhere/ca.pem", &err));
    CHECK_INT(CN_EINVALID, err.code);
    CHECK_STR("/nowhere/ca.pem: no certificates can be read from it: No such file or directory",
              err.text);
}
