/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing sockets against a scripted peer on the same loop. */
#include "net/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/trust.h"
#include "test/lib/origin.h"
#include "test/lib/test.h"

struct bench {
    uv_loop_t loop;
    struct origin origin;
    struct cn_sockets_options options;
    struct cn_sockets *sockets;
    struct cn_trust *trust;
    char ca_path[300];
    struct cn_buf got; /* what the peer received */
    size_t got_size;   /* counted instead, when counting */
    bool peer_saw_end, peer_got_all;
    size_t want_size;
};

/* What the owner saw. */
struct seen {
    struct cn_socket *socket;
    bool open, data_seen, drained, ended, closed;
    unsigned open_count, closed_count;
    struct cn_buf in;
    struct cn_err error;
    bool close_at_data, pause_at_data;
    char alpn[32], remote[64];
};

static void on_open(struct cn_socket *socket, void *data)
{
    struct seen *seen = data;
    seen->open = true;
    seen->open_count++;
    snprintf(seen->alpn, sizeof(seen->alpn), "%s", cn_socket_alpn(socket));
    snprintf(seen->remote, sizeof(seen->remote), "%s", cn_socket_remote(socket));
}

static void on_data(struct cn_socket *socket, const void *bytes, size_t size, void *data)
{
    struct seen *seen = data;
    CHECK(seen->open && !seen->closed && !seen->ended);
    seen->data_seen = true;
    cn_buf_append(&seen->in, bytes, size);
    if (seen->pause_at_data)
        cn_socket_pause(socket);
    if (seen->close_at_data)
        cn_socket_close(socket);
}

static void on_drain(struct cn_socket *socket, void *data)
{
    ((struct seen *)data)->drained = true;
}

static void on_end(struct cn_socket *socket, void *data)
{
    struct seen *seen = data;
    CHECK(!seen->ended);
    seen->ended = true;
}

static void on_closed(struct cn_socket *socket, const struct cn_err *error, void *data)
{
    struct seen *seen = data;
    seen->closed = true;
    seen->closed_count++;
    if (error)
        seen->error = *error;
}

static const struct cn_socket_callbacks callbacks = {on_open, on_data, on_drain, on_end, on_closed};

static void bench_tls(struct bench *bench, const char *alpn)
{
    snprintf(bench->ca_path, sizeof(bench->ca_path), "%s/ca.pem", test_dir());
    origin_use_tls(&bench->origin, bench->ca_path, alpn);
}

static void bench_open(struct bench *bench, void (*script)(struct origin_conn *))
{
    CHECK_INT(0, cn_loop_init(&bench->loop, NULL));
    bench->origin.data = bench;
    origin_start(&bench->origin, &bench->loop, script);
    bench->trust = cn_trust_new(bench->ca_path[0] ? bench->ca_path : NULL, NULL);
    bench->options.trust = bench->trust;
    bench->sockets = cn_sockets_new(&bench->loop, &bench->options);
}

static void on_flag(void *data)
{
    *(bool *)data = true;
}

static void bench_close(struct bench *bench)
{
    bool closed = false;
    cn_sockets_close(bench->sockets, on_flag, &closed);
    LOOP_UNTIL(&bench->loop, &closed);
    origin_stop(&bench->origin);
    cn_trust_free(bench->trust);
    cn_buf_fini(&bench->got);
    while (uv_run(&bench->loop, UV_RUN_NOWAIT))
        ;
    CHECK_INT(0, uv_loop_close(&bench->loop));
}

static void start(struct bench *bench, struct seen *seen, struct cn_socket_params params)
{
    struct cn_err err = {0};
    if (!params.host)
        params.host = "127.0.0.1";
    if (!params.port)
        params.port = (uint16_t)bench->origin.port;
    seen->socket = cn_socket_connect(bench->sockets, &params, &callbacks, seen, &err);
    if (!seen->socket)
        test_fail(__FILE__, __LINE__, "refused: %s", err.text);
}

static void seen_fini(struct seen *seen)
{
    CHECK_INT(1, seen->closed_count);
    cn_buf_fini(&seen->in);
}

static const char *in_text(struct seen *seen)
{
    return cn_buf_text(&seen->in);
}

static void script_echo(struct origin_conn *conn)
{
    origin_write(conn, conn->in.data, conn->in.size);
    cn_buf_clear(&conn->in);
    if (conn->ended)
        origin_shutdown(conn);
}

static void script_silent(struct origin_conn *conn)
{
}

/* Writes "hello", reads the echo, ends, and sees the peer end. */
static void check_echo(struct bench *bench, struct cn_socket_params params)
{
    struct seen seen = {0};
    start(bench, &seen, params);
    CHECK_INT(1, cn_socket_write(seen.socket, "hel", 3, NULL)); /* before it is open */
    LOOP_UNTIL(&bench->loop, &seen.open);
    LOOP_UNTIL(&bench->loop, &seen.drained);
    char remote[64];
    snprintf(remote, sizeof(remote), "127.0.0.1:%d", bench->origin.port);
    CHECK_STR(remote, seen.remote);
    CHECK(strncmp(cn_socket_local(seen.socket), "127.0.0.1:", 10) == 0);
    CHECK_INT(0, cn_socket_write(seen.socket, "lo", 2, NULL)); /* the kernel takes it at once */
    while (seen.in.size < 5) {
        seen.data_seen = false;
        LOOP_UNTIL(&bench->loop, &seen.data_seen);
    }
    CHECK_STR("hello", in_text(&seen));
    cn_socket_end(seen.socket);
    CHECK_INT(CN_ECLOSED, cn_socket_write(seen.socket, "x", 1, NULL));
    LOOP_UNTIL(&bench->loop, &seen.closed);
    CHECK(seen.ended);
    CHECK_STR("", seen.error.text);
    seen_fini(&seen);
}

TEST(socket, plain_both_ways)
{
    struct bench bench = {0};
    bench_open(&bench, script_echo);
    check_echo(&bench, (struct cn_socket_params){0});
    check_echo(&bench, (struct cn_socket_params){.allow_half_open = true});
    check_echo(&bench, (struct cn_socket_params){.host = "localhost"});
    CHECK_INT(0, cn_sockets_count(bench.sockets));
    bench_close(&bench);
}

TEST(socket, tls_both_ways)
{
    struct bench bench = {0};
    bench_tls(&bench, NULL);
    bench_open(&bench, script_echo);
    check_echo(&bench, (struct cn_socket_params){.secure = CN_SOCKET_TLS});
    check_echo(&bench, (struct cn_socket_params){.secure = CN_SOCKET_TLS, .host = "localhost"});
    bench_close(&bench);
}

TEST(socket, alpn_is_agreed_upon)
{
    struct bench bench = {0};
    struct seen agreed = {0}, other = {0};
    bench_tls(&bench, "http/1.1");
    bench_open(&bench, script_echo);
    start(&bench, &agreed, (struct cn_socket_params){.secure = CN_SOCKET_TLS, .alpn = "http/1.1"});
    start(&bench, &other, (struct cn_socket_params){.secure = CN_SOCKET_TLS, .alpn = "imap"});
    LOOP_UNTIL(&bench.loop, &agreed.open);
    LOOP_UNTIL(&bench.loop, &other.open);
    CHECK_STR("http/1.1", agreed.alpn);
    CHECK_STR("", other.alpn);
    bench_close(&bench);
    seen_fini(&agreed);
    seen_fini(&other);
}

/* A mail server's way: a greeting, STARTTLS, "go ahead", then TLS. */
static void script_starttls(struct origin_conn *conn)
{
    const char *text = cn_buf_text(&conn->in);
    if (conn->step == 0 && strcmp(text, "STARTTLS\r\n") == 0) {
        conn->step = 1;
        cn_buf_clear(&conn->in);
        origin_print(conn, "220 go ahead\r\n");
        origin_starttls(conn);
    } else if (conn->step == 1) {
        script_echo(conn);
    }
}

static void greet(struct origin_conn *conn)
{
    origin_print(conn, "220 hello\r\n");
}

TEST(socket, upgrades_to_tls)
{
    struct bench bench = {0};
    struct seen seen = {0};
    bench_tls(&bench, NULL);
    bench.origin.on_connect = greet;
    bench_open(&bench, script_starttls);
    start(&bench, &seen, (struct cn_socket_params){.secure = CN_SOCKET_STARTTLS});
    LOOP_UNTIL(&bench.loop, &seen.data_seen);
    CHECK_STR("220 hello\r\n", in_text(&seen));
    seen.data_seen = false;
    CHECK_INT(0, cn_socket_write(seen.socket, "STARTTLS\r\n", 10, NULL));
    LOOP_UNTIL(&bench.loop, &seen.data_seen);
    CHECK(strstr(in_text(&seen), "go ahead"));
    seen.open = seen.data_seen = false;
    cn_buf_clear(&seen.in);
    CHECK_INT(0, cn_socket_start_tls(seen.socket, "localhost", NULL));
    CHECK_INT(1, cn_socket_write(seen.socket, "secret", 6, NULL)); /* waits for TLS (S5) */
    LOOP_UNTIL(&bench.loop, &seen.open);
    LOOP_UNTIL(&bench.loop, &seen.data_seen);
    CHECK_STR("secret", in_text(&seen));
    CHECK_INT(2, seen.open_count);
    CHECK_INT(CN_EINVALID, cn_socket_start_tls(seen.socket, NULL, NULL));
    cn_socket_close(seen.socket);
    LOOP_UNTIL(&bench.loop, &seen.closed);
    CHECK_STR("", seen.error.text);
    seen_fini(&seen);
    bench_close(&bench);
}

TEST(socket, upgrade_is_refused_where_it_makes_no_sense)
{
    struct bench bench = {0};
    struct seen plain = {0}, early = {0};
    struct cn_err err;
    bench_open(&bench, script_echo);
    start(&bench, &plain, (struct cn_socket_params){0});
    start(&bench, &early, (struct cn_socket_params){.secure = CN_SOCKET_STARTTLS});
    CHECK_INT(CN_EINVALID, cn_socket_start_tls(early.socket, NULL, &err));
    LOOP_UNTIL(&bench.loop, &plain.open);
    CHECK_INT(CN_EINVALID, cn_socket_start_tls(plain.socket, NULL, &err));
    CHECK_STR("the socket was not opened for an upgrade to TLS", err.text);
    bench_close(&bench);
    seen_fini(&plain);
    seen_fini(&early);
}

/* ---- certificates ---- */

TEST(socket, tls_refuses_what_it_cannot_verify)
{
    struct bench bench = {0};
    struct seen unknown = {0}, wrong = {0};
    bench_tls(&bench, NULL);
    bench_open(&bench, script_echo);
    bench.origin.on_connect = origin_starttls;
    struct cn_socket_params params = {.secure = CN_SOCKET_STARTTLS};
    start(&bench, &wrong, params); /* the authority is known, the name is another */
    LOOP_UNTIL(&bench.loop, &wrong.open);
    CHECK_INT(0, cn_socket_start_tls(wrong.socket, "elsewhere.example", NULL));
    CHECK_INT(1, cn_socket_write(wrong.socket, "secret", 6, NULL));
    LOOP_UNTIL(&bench.loop, &wrong.closed);
    CHECK_INT(CN_ETLS, wrong.error.code);
    CHECK(strstr(wrong.error.text, "ostname mismatch"));
    CHECK_INT(1, wrong.open_count);
    seen_fini(&wrong);
    bench_close(&bench);

    struct bench other = {0}; /* nobody vouches for the certificate */
    bench_tls(&other, NULL);
    other.ca_path[0] = 0;
    bench_open(&other, script_echo);
    params.secure = CN_SOCKET_TLS;
    start(&other, &unknown, params);
    LOOP_UNTIL(&other.loop, &unknown.closed);
    CHECK_INT(CN_ETLS, unknown.error.code);
    CHECK(strstr(unknown.error.text, "self-signed certificate"));
    CHECK(!unknown.open);
    seen_fini(&unknown);
    bench_close(&other);
}

static void say_nonsense(struct origin_conn *conn)
{
    origin_print(conn, "SSH-2.0-nonsense\r\n");
}

TEST(socket, tls_to_something_else_fails)
{
    struct bench bench = {0};
    struct seen seen = {0};
    bench_open(&bench, script_silent);
    bench.origin.on_connect = say_nonsense;
    start(&bench, &seen, (struct cn_socket_params){.secure = CN_SOCKET_TLS});
    LOOP_UNTIL(&bench.loop, &seen.closed);
    CHECK_INT(CN_ETLS, seen.error.code);
    seen_fini(&seen);
    bench_close(&bench);
}

static void script_cut_tls(struct origin_conn *conn)
{
    origin_print(conn, "part");
    cn_buf_clear(&conn->in);
    origin_shutdown_tcp(conn);
}

TEST(socket, a_cut_tls_stream_is_not_taken_for_its_end)
{
    struct bench bench = {0};
    struct seen seen = {0};
    bench_tls(&bench, NULL);
    bench_open(&bench, script_cut_tls);
    start(&bench, &seen, (struct cn_socket_params){.secure = CN_SOCKET_TLS});
    cn_socket_write(seen.socket, "x", 1, NULL);
    LOOP_UNTIL(&bench.loop, &seen.closed);
    CHECK_STR("part", in_text(&seen));
    CHECK(!seen.ended);
    CHECK_INT(CN_EPROTOCOL, seen.error.code);
    seen_fini(&seen);
    bench_close(&bench);
}

/* ---- back-pressure ---- */

#define BIG (8u << 20)

static void script_big(struct origin_conn *conn)
{
    if (conn->step++ > 0)
        return;
    char *bytes = cn_alloc(BIG);
    memset(bytes, 'b', BIG);
    origin_write(conn, bytes, BIG);
    cn_free(bytes);
    cn_buf_clear(&conn->in);
}

static void check_paused_reading(enum cn_socket_secure secure)
{
    struct bench bench = {0};
    struct seen seen = {.pause_at_data = true};
    if (secure == CN_SOCKET_TLS)
        bench_tls(&bench, NULL);
    bench_open(&bench, script_big);
    start(&bench, &seen, (struct cn_socket_params){.secure = secure});
    cn_socket_write(seen.socket, "go", 2, NULL);
    LOOP_UNTIL(&bench.loop, &seen.data_seen);
    size_t size = seen.in.size;
    loop_linger(&bench.loop, 30);
    CHECK_INT(size, seen.in.size);
    struct origin_conn *conn = CN_CONTAINER_OF(bench.origin.conns.next, struct origin_conn, link);
    CHECK(conn->unsent > 0); /* the peer is held back */
    while (seen.in.size < BIG) {
        seen.data_seen = false;
        cn_socket_resume(seen.socket);
        CHECK(!seen.data_seen); /* S1 */
        LOOP_UNTIL(&bench.loop, &seen.data_seen);
        seen.pause_at_data = seen.in.size < BIG / 2; /* piece by piece, then freely */
    }
    CHECK_INT(BIG, seen.in.size);
    bench_close(&bench);
    seen_fini(&seen);
}

TEST(socket, a_paused_socket_holds_the_peer_back)
{
    check_paused_reading(CN_SOCKET_PLAIN);
    check_paused_reading(CN_SOCKET_TLS);
}

static void script_count(struct origin_conn *conn)
{
    struct bench *bench = conn->origin->data;
    for (size_t i = 0; i < conn->in.size; i++)
        CHECK(conn->in.data[i] == 'w');
    bench->got_size += conn->in.size;
    cn_buf_clear(&conn->in);
    if (bench->got_size >= bench->want_size)
        bench->peer_got_all = true;
    if (conn->ended)
        bench->peer_saw_end = true;
}

static void stop_reading(struct origin_conn *conn)
{
    uv_read_stop((uv_stream_t *)&conn->tcp);
}

TEST(socket, a_full_queue_refuses_more_until_it_drains)
{
    struct bench bench = {0};
    struct seen seen = {0};
    bench.origin.on_connect = stop_reading;
    bench_open(&bench, script_count);
    start(&bench, &seen, (struct cn_socket_params){0});
    LOOP_UNTIL(&bench.loop, &seen.open);
    char *bytes = cn_alloc(1 << 19);
    memset(bytes, 'w', 1 << 19);
    size_t taken = 0;
    int rc;
    while ((rc = cn_socket_write(seen.socket, bytes, 1 << 19, NULL)) >= 0) {
        taken += 1 << 19;
        CHECK(taken < 64u << 20);
    }
    CHECK_INT(CN_EOVERLOADED, rc);
    CHECK(!seen.drained);
    bench.want_size = taken;
    bench_close(&bench); /* with a full queue: nothing is left, nothing leaks */
    seen_fini(&seen);
    cn_free(bytes);
}

TEST(socket, what_was_accepted_arrives_before_the_end)
{
    enum cn_socket_secure kinds[] = {CN_SOCKET_PLAIN, CN_SOCKET_TLS};
    for (size_t i = 0; i < 2; i++) {
        struct bench bench = {.want_size = BIG};
        struct seen seen = {0};
        if (kinds[i] == CN_SOCKET_TLS)
            bench_tls(&bench, NULL);
        bench_open(&bench, script_count);
        start(&bench, &seen, (struct cn_socket_params){.secure = kinds[i]});
        LOOP_UNTIL(&bench.loop, &seen.open);
        char *bytes = cn_alloc(BIG);
        memset(bytes, 'w', BIG);
        CHECK_INT(1, cn_socket_write(seen.socket, bytes, BIG, NULL));
        cn_free(bytes);
        cn_socket_end(seen.socket);
        LOOP_UNTIL(&bench.loop, &bench.peer_saw_end);
        CHECK(bench.peer_got_all);
        LOOP_UNTIL(&bench.loop, &seen.drained);
        bench_close(&bench);
        seen_fini(&seen);
    }
}

/* ---- ends ---- */

static void script_end_first(struct origin_conn *conn)
{
    struct bench *bench = conn->origin->data;
    if (conn->step++ == 0) {
        origin_print(conn, "bye");
        origin_shutdown(conn);
    }
    if (conn->in.size > 0) {
        cn_buf_append(&bench->got, conn->in.data, conn->in.size);
        cn_buf_clear(&conn->in);
    }
    if (conn->ended)
        bench->peer_saw_end = true;
}

TEST(socket, half_open_or_not)
{
    struct bench bench = {0};
    struct seen half = {0}, both = {0};
    bench_open(&bench, script_end_first);
    start(&bench, &half, (struct cn_socket_params){.allow_half_open = true});
    cn_socket_write(half.socket, "1", 1, NULL);
    LOOP_UNTIL(&bench.loop, &half.ended);
    loop_linger(&bench.loop, 20);
    CHECK(!half.closed && !bench.peer_saw_end);
    CHECK_INT(0, cn_socket_write(half.socket, "2", 1, NULL)); /* our side is still open */
    cn_socket_end(half.socket);
    LOOP_UNTIL(&bench.loop, &half.closed);
    LOOP_UNTIL(&bench.loop, &bench.peer_saw_end);
    CHECK_STR("12", cn_buf_text(&bench.got));
    CHECK_STR("", half.error.text);

    start(&bench, &both, (struct cn_socket_params){0});
    cn_socket_write(both.socket, "1", 1, NULL);
    LOOP_UNTIL(&bench.loop, &both.closed); /* by itself */
    CHECK(both.ended);
    CHECK_STR("bye", in_text(&both));
    CHECK_STR("", both.error.text);
    seen_fini(&half);
    seen_fini(&both);
    bench_close(&bench);
}

static void script_reset(struct origin_conn *conn)
{
    origin_reset(conn);
}

TEST(socket, a_reset_is_an_error)
{
    struct bench bench = {0};
    struct seen seen = {0};
    bench_open(&bench, script_reset);
    start(&bench, &seen, (struct cn_socket_params){0});
    cn_socket_write(seen.socket, "x", 1, NULL);
    LOOP_UNTIL(&bench.loop, &seen.closed);
    CHECK_INT(UV_ECONNRESET, seen.error.code);
    CHECK(strstr(seen.error.text, "127.0.0.1:"));
    seen_fini(&seen);
    bench_close(&bench);
}

TEST(socket, close_works_in_every_state)
{
    struct bench bench = {0};
    struct seen resolving = {0}, at_data = {.close_at_data = true}, twice = {0};
    bench_open(&bench, script_big);
    start(&bench, &resolving, (struct cn_socket_params){.host = "localhost"});
    cn_socket_close(resolving.socket);
    CHECK(!resolving.closed); /* S1 */
    LOOP_UNTIL(&bench.loop, &resolving.closed);
    CHECK_INT(0, resolving.error.code);
    start(&bench, &at_data, (struct cn_socket_params){0});
    cn_socket_write(at_data.socket, "x", 1, NULL);
    LOOP_UNTIL(&bench.loop, &at_data.closed);
    CHECK(at_data.in.size <= 65536);
    start(&bench, &twice, (struct cn_socket_params){0});
    LOOP_UNTIL(&bench.loop, &twice.open);
    cn_socket_close(twice.socket);
    cn_socket_close(twice.socket);
    CHECK_INT(CN_ECLOSED, cn_socket_write(twice.socket, "x", 1, NULL));
    LOOP_UNTIL(&bench.loop, &twice.closed);
    seen_fini(&resolving);
    seen_fini(&at_data);
    seen_fini(&twice);
    bench_close(&bench);
}

/* ---- connecting ---- */

static bool deny(const struct sockaddr *address, void *data)
{
    return false;
}

TEST(socket, failures_to_connect_are_told_apart)
{
    struct bench bench = {.options = {.connect_timeout_ms = 600}};
    struct seen refused = {0}, unknown = {0}, silent = {0}, denied = {0};
    bench_open(&bench, script_silent);
    struct origin gone = {0};
    origin_start(&gone, &bench.loop, script_silent);
    start(&bench, &silent, (struct cn_socket_params){.secure = CN_SOCKET_TLS});
    uint16_t port = (uint16_t)gone.port;
    origin_stop(&gone);
    LOOP_UNTIL(&bench.loop, &silent.closed);
    CHECK_INT(CN_ETIMEOUT, silent.error.code);
    CHECK(strstr(silent.error.text, "while TLS was set up"));
    bench_close(&bench);
    seen_fini(&silent);

    struct bench other = {0};
    bench_open(&other, script_silent);
    start(&other, &refused, (struct cn_socket_params){.port = port});
    start(&other, &unknown, (struct cn_socket_params){.host = "no-such-host.invalid"});
    LOOP_UNTIL(&other.loop, &refused.closed);
    LOOP_UNTIL(&other.loop, &unknown.closed);
    CHECK_INT(UV_ECONNREFUSED, refused.error.code);
    CHECK(unknown.error.code <= UV_EAI_ADDRFAMILY && unknown.error.code >= UV_EAI_PROTOCOL);
    CHECK(strstr(unknown.error.text, "no-such-host.invalid:"));
    bench_close(&other);
    seen_fini(&refused);
    seen_fini(&unknown);

    struct bench closed = {.options = {.address_allowed = deny}};
    bench_open(&closed, script_silent);
    start(&closed, &denied, (struct cn_socket_params){0});
    LOOP_UNTIL(&closed.loop, &denied.closed);
    CHECK_INT(CN_EDENIED, denied.error.code);
    CHECK_INT(0, closed.origin.conn_count);
    bench_close(&closed);
    seen_fini(&denied);
}

TEST(socket, bad_parameters_and_too_many_are_refused_at_once)
{
    struct bench bench = {.options = {.count_max = 1}};
    struct seen seen = {0};
    struct cn_err err;
    bench_open(&bench, script_silent);
    struct cn_socket_params bad[] = {
        {.host = "", .port = 1}, {.host = NULL, .port = 1}, {.host = "localhost", .port = 0}};
    for (size_t i = 0; i < 3; i++) {
        CHECK(!cn_socket_connect(bench.sockets, &bad[i], &callbacks, NULL, &err));
        CHECK_INT(CN_EINVALID, err.code);
    }
    start(&bench, &seen, (struct cn_socket_params){0});
    struct cn_socket_params good = {.host = "[::1]", .port = 1};
    CHECK(!cn_socket_connect(bench.sockets, &good, &callbacks, NULL, &err));
    CHECK_INT(CN_EOVERLOADED, err.code);
    bench_close(&bench);
    CHECK_INT(CN_ECLOSED, seen.error.code);
    seen_fini(&seen);
}
