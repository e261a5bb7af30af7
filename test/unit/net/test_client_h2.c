/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing HTTP/2 against Node's server, a second implementation of the protocol:
 * what test_client.c shows for HTTP/1.1 holds here too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/loop.h"
#include "base/mem.h"
#include "net/trust.h"
#include "test/lib/origin.h"
#include "test/lib/seen.h"
#include "test/lib/test.h"

struct bench {
    uv_loop_t loop;
    uv_process_t process;
    uv_pipe_t in, out;
    struct cn_buf said;
    bool ready, exited;
    struct cn_trust *trust;
    struct cn_client *client;
    char url[100];
};

static void on_exit_(uv_process_t *process, int64_t status, int signal)
{
    ((struct bench *)process->data)->exited = true;
    uv_close((uv_handle_t *)process, NULL);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct bench *bench = handle->data;
    cn_buf_reserve(&bench->said, 100);
    *buf = uv_buf_init((char *)bench->said.data + bench->said.size, 100);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct bench *bench = stream->data;
    if (size > 0)
        bench->said.size += (size_t)size;
    if (size < 0)
        uv_read_stop(stream);
    if (size < 0 || strchr(cn_buf_text(&bench->said), '\n'))
        bench->ready = true;
}

static void bench_open(struct bench *bench)
{
    char cert[300], key[300], line[200];
    const char *dir = test_dir();
    snprintf(cert, sizeof(cert), "%s/cert.pem", dir);
    snprintf(key, sizeof(key), "%s/key.pem", dir);
    origin_write_cert(cert, key);
    CHECK_INT(0, cn_loop_init(&bench->loop, NULL));
    uv_pipe_init(&bench->loop, &bench->in, 0);
    uv_pipe_init(&bench->loop, &bench->out, 0);
    bench->in.data = bench->out.data = bench->process.data = bench;
    char *args[] = {"node", "test/lib/h2origin.mjs", cert, key, NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&bench->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&bench->out},
        {.flags = UV_INHERIT_FD, .data.fd = 2},
    };
    uv_process_options_t options = {
        .file = "node", .args = args, .stdio = stdio, .stdio_count = 3, .exit_cb = on_exit_};
    if (uv_spawn(&bench->loop, &bench->process, &options) < 0)
        test_skip("node cannot be started");
    uv_read_start((uv_stream_t *)&bench->out, on_alloc, on_read);
    LOOP_UNTIL(&bench->loop, &bench->ready);
    snprintf(line, sizeof(line), "%s", cn_buf_text(&bench->said));
    CHECK(atoi(line) > 0);
    snprintf(bench->url, sizeof(bench->url), "https://localhost:%d", atoi(line));
    struct cn_err err = {0};
    bench->trust = cn_trust_new(cert, &err);
    CHECK_STR("", err.text);
    bench->client = cn_client_new(&bench->loop, &(struct cn_client_options){.trust = bench->trust});
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
    uv_close((uv_handle_t *)&bench->in, NULL); /* the origin ends with it */
    LOOP_UNTIL(&bench->loop, &bench->exited);
    uv_close((uv_handle_t *)&bench->out, NULL);
    while (uv_run(&bench->loop, UV_RUN_NOWAIT))
        ;
    CHECK_INT(0, uv_loop_close(&bench->loop));
    cn_trust_free(bench->trust);
    cn_buf_fini(&bench->said);
}

static void start(struct bench *bench, struct seen *seen, const char *path,
                  struct cn_client_params params)
{
    char url[200];
    snprintf(url, sizeof(url), "%s%s", bench->url, path);
    params.url = url;
    seen_start(seen, bench->client, params);
}

static const struct cn_client_params stream_post = {
    .method = "POST", .body_kind = CN_CLIENT_BODY_STREAM, .body_length = CN_CLIENT_LENGTH_UNKNOWN};

TEST(client_h2, requests_share_one_connection)
{
    struct bench bench = {0};
    bench_open(&bench);
    struct seen first = {0}, many[20] = {{0}};
    start(&bench, &first, "/hello", (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &first.done);
    CHECK_STR("", first.error.text);
    CHECK_INT(20, first.http_version);
    CHECK_STR("hello over h2, session 1", seen_body(&first));
    CHECK(strstr(cn_buf_text(&first.headers), "set-cookie=a=1\nset-cookie=b=2\n"));
    seen_fini(&first);
    for (int i = 0; i < 20; i++)
        start(&bench, &many[i], "/hello", (struct cn_client_params){0});
    for (int i = 0; i < 20; i++) {
        LOOP_UNTIL(&bench.loop, &many[i].done);
        CHECK_STR("hello over h2, session 1", seen_body(&many[i]));
        seen_fini(&many[i]);
    }
    bench_close(&bench);
}

TEST(client_h2, a_paused_download_goes_on_and_others_are_not_held)
{
    struct bench bench = {0};
    bench_open(&bench);
    struct seen big = {.pause_at_body = true}, other = {0};
    start(&bench, &big, "/big", (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &big.body_seen);
    size_t size = big.body.size;
    start(&bench, &other, "/hello", (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &other.done);
    CHECK_STR("", other.error.text);
    CHECK_INT(size, big.body.size);
    big.pause_at_body = false;
    cn_client_resume(big.request);
    LOOP_UNTIL(&bench.loop, &big.done);
    CHECK_STR("", big.error.text);
    CHECK_INT(8 << 20, big.body.size);
    seen_fini(&big);
    seen_fini(&other);
    bench_close(&bench);
}

TEST(client_h2, uploads_stream)
{
    struct bench bench = {0};
    bench_open(&bench);
    struct seen unknown = {.upload_left = 3000000, .upload_piece = 50000};
    struct seen known = {.upload_left = 200000, .upload_piece = 7000};
    start(&bench, &unknown, "/count", stream_post);
    LOOP_UNTIL(&bench.loop, &unknown.done);
    CHECK_STR("", unknown.error.text);
    CHECK_STR("unknown 3000000", seen_body(&unknown));
    start(&bench, &known, "/count",
          (struct cn_client_params){
              .method = "PUT", .body_kind = CN_CLIENT_BODY_STREAM, .body_length = 200000});
    LOOP_UNTIL(&bench.loop, &known.done);
    CHECK_STR("200000 200000", seen_body(&known));
    seen_fini(&unknown);
    seen_fini(&known);
    bench_close(&bench);
}

TEST(client_h2, both_directions_stream_at_once)
{
    struct bench bench = {0};
    bench_open(&bench);
    struct seen seen = {.upload_hold = true};
    start(&bench, &seen, "/echo", stream_post);
    LOOP_UNTIL(&bench.loop, &seen.wanted);
    CHECK_INT(0, cn_client_write(seen.request, "ping ", 5, NULL));
    LOOP_UNTIL(&bench.loop, &seen.body_seen);
    CHECK_STR("ping ", seen_body(&seen));
    CHECK_INT(0, cn_client_write(seen.request, "pong", 4, NULL));
    cn_client_end(seen.request);
    LOOP_UNTIL(&bench.loop, &seen.done);
    CHECK_STR("", seen.error.text);
    CHECK_STR("ping pong", seen_body(&seen));
    seen_fini(&seen);
    bench_close(&bench);
}

TEST(client_h2, a_reset_or_aborted_stream_leaves_the_connection)
{
    struct bench bench = {0};
    bench_open(&bench);
    struct seen reset = {0}, aborted = {.abort_at_body = true}, after = {0};
    start(&bench, &reset, "/reset", (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &reset.done);
    CHECK_INT(CN_EPROTOCOL, reset.error.code);
    start(&bench, &aborted, "/big", (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &aborted.done);
    CHECK_INT(CN_EABORTED, aborted.error.code);
    start(&bench, &after, "/hello", (struct cn_client_params){0});
    LOOP_UNTIL(&bench.loop, &after.done);
    CHECK_STR("hello over h2, session 1", seen_body(&after));
    seen_fini(&reset);
    seen_fini(&aborted);
    seen_fini(&after);
    bench_close(&bench);
}
