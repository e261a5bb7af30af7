/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the HTTP server and the ends of its life: time-outs (the clock is moved by
 * cn_http_server_tick), bounds, drain, close. */
#include "base/loop.h"
#include "net/server.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "test/lib/http_rig.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

/* Moves the server's clock on. */
static void tick(struct rig *rig, uint64_t step_ms)
{
    if (rig->clock_ms == 0)
        rig->clock_ms = uv_now(&rig->loop);
    rig->clock_ms += step_ms;
    cn_http_server_tick(rig->server, rig->clock_ms);
}

static uint32_t open_count(struct rig *rig)
{
    struct cn_http_stats stats;
    cn_http_server_stats(rig->server, &stats);
    return stats.connection_count;
}

TEST(server_timeout, answers_408_to_a_head_that_does_not_end)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, NULL, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "GET / HTTP/1.1\r\nHost:");
    RIG_UNTIL(&rig, open_count(&rig) == 1);
    rig_turn(&rig);
    rig_turn(&rig);
    tick(&rig, 9000);
    rig_send(&client, " a\r\n"); /* more bytes do not buy more time */
    rig_turn(&rig);
    rig_turn(&rig);
    CHECK_INT(0, client.got.size);
    tick(&rig, 1001);
    RIG_UNTIL(&rig, rig_has(&client, "408 Request Timeout\n"));
    /* It lingers for a client that does not close, but not for ever. */
    CHECK_INT(1, open_count(&rig));
    tick(&rig, 2001);
    RIG_UNTIL(&rig, open_count(&rig) == 0);
    RIG_UNTIL(&rig, client.ended);
    CHECK(strncmp(rig_got(&client), "HTTP/1.1 408 ", 13) == 0);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server_timeout, closes_idle_connections_in_silence)
{
    struct rig rig;
    struct rig_client fresh, used;
    rig_open(&rig, NULL, NULL);
    rig_connect(&rig, &fresh);
    rig_connect(&rig, &used);
    rig_send(&used, GET("/"));
    RIG_UNTIL(&rig, rig_has(&used, "\r\n\r\n/"));
    RIG_UNTIL(&rig, open_count(&rig) == 2);
    cn_buf_clear(&used.got);
    tick(&rig, 70000);
    CHECK_INT(2, open_count(&rig));
    tick(&rig, 5001);
    RIG_UNTIL(&rig, fresh.ended && used.ended);
    CHECK_INT(0, fresh.got.size + used.got.size);
    CHECK(!fresh.reset && !used.reset);
    rig_disconnect(&fresh);
    rig_disconnect(&used);
    rig_close(&rig);
}

TEST(server_timeout, takes_an_empty_line_for_no_request)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, NULL, NULL);
    rig_connect(&rig, &client);
    RIG_UNTIL(&rig, open_count(&rig) == 1);
    rig_send(&client, "\r");
    rig_turn(&rig);
    rig_turn(&rig);
    rig_send(&client, "\n");
    rig_turn(&rig);
    rig_turn(&rig);
    tick(&rig, 20000); /* idle, not in the middle of a head */
    rig_send(&client, GET("/x"));
    RIG_UNTIL(&rig, client.got.size > 0);
    CHECK(rig_has(&client, "\r\n\r\n/x"));
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server_timeout, gives_up_a_body_that_stops)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_hold, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    RIG_UNTIL(&rig, rig.request_count == 1);
    tick(&rig, 1000000); /* the handler thinks: no clock runs */
    CHECK_INT(0, rig.abort_count);
    rig_read_all(rig.held);
    CHECK_INT(3, rig.body.size);
    tick(&rig, 59000);
    CHECK_INT(0, rig.abort_count);
    tick(&rig, 1001);
    CHECK_INT(1, rig.abort_count);
    CHECK_INT(CN_ETIMEOUT, rig.abort_status);
    cn_http_request_release(rig.held);
    RIG_UNTIL(&rig, rig_has(&client, "408 Request Timeout\n"));
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server_timeout, gives_up_a_client_that_takes_nothing)
{
    enum { BODY = 24 << 20 };
    static uint8_t body[BODY];
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_hold, NULL);
    rig_connect_small(&rig, &client, 4096);
    rig_pause(&client, true);
    rig_send(&client, GET("/"));
    RIG_UNTIL(&rig, rig.request_count == 1);
    struct cn_http_head head = {.status = 200};
    CHECK_INT(0, cn_http_begin(rig.held, &head, BODY));
    CHECK_INT(0, cn_http_write(rig.held, body, BODY, NULL, NULL));
    tick(&rig, 59000);
    CHECK_INT(0, rig.abort_count);
    rig_pause(&client, false);
    RIG_UNTIL(&rig, client.got.size > 100000);
    rig_pause(&client, true);
    for (int i = 0; i < 50; i++)
        rig_turn(&rig);
    tick(&rig, 1001); /* it took something since the clock was started: once more */
    CHECK_INT(0, rig.abort_count);
    tick(&rig, 60001); /* nothing since */
    CHECK_INT(1, rig.abort_count);
    CHECK_INT(CN_ETIMEOUT, rig.abort_status);
    cn_http_request_release(rig.held);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server_timeout, runs_by_its_own_timer)
{
    struct rig rig;
    struct rig_client client;
    struct cn_http_server_options options = {.limits = {.idle_timeout_ms = 20}};
    rig_open(&rig, NULL, &options);
    rig_connect(&rig, &client);
    RIG_UNTIL(&rig, client.ended);
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server_limit, answers_413_to_a_chunked_body_past_the_limit)
{
    struct rig rig;
    struct rig_client client;
    struct cn_http_server_options options = {.limits = {.body_size_max = 100}};
    rig_open(&rig, rig_echo, &options);
    rig_connect(&rig, &client);
    rig_send(&client, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "50\r\n0123456789012345678901234567890123456789"
                      "0123456789012345678901234567890123456789\r\n");
    RIG_UNTIL(&rig, rig.body.size == 80);
    rig_send(&client, "50\r\n0123456789012345678901234567890123456789");
    RIG_UNTIL(&rig, rig.abort_count == 1);
    CHECK_INT(CN_ELIMIT, rig.read_status);
    cn_http_request_release(rig.held);
    RIG_UNTIL(&rig, rig_has(&client, "413 Content Too Large\n"));
    rig_disconnect(&client);
    rig_close(&rig);
}

TEST(server_limit, answers_503_when_there_are_too_many_connections)
{
    struct rig rig;
    struct rig_client clients[3], more;
    struct cn_http_server_options options = {.limits = {.connection_count_max = 2}};
    rig_open(&rig, NULL, &options);
    for (int i = 0; i < 3; i++) {
        rig_connect(&rig, &clients[i]);
        rig_send(&clients[i], GET("/x"));
        RIG_UNTIL(&rig, clients[i].got.size > 0);
    }
    CHECK(rig_has(&clients[0], "200 OK") && rig_has(&clients[1], "200 OK"));
    CHECK(strncmp(rig_got(&clients[2]), "HTTP/1.1 503 ", 13) == 0);
    CHECK(rig_has(&clients[2], "Connection: close\r\n"));
    shutdown(clients[2].fd, SHUT_WR);
    RIG_UNTIL(&rig, clients[2].ended);
    CHECK(!clients[2].reset);
    rig_disconnect(&clients[0]);
    RIG_UNTIL(&rig, open_count(&rig) == 1);
    rig_connect(&rig, &more); /* there is room again */
    rig_send(&more, GET("/y"));
    RIG_UNTIL(&rig, rig_has(&more, "\r\n\r\n/y"));
    rig_disconnect(&more);
    rig_disconnect(&clients[1]);
    rig_disconnect(&clients[2]);
    rig_close(&rig);
}

TEST(server_limit, stops_parsing_ahead_of_a_client_that_does_not_read)
{
    struct rig rig;
    struct rig_client client;
    struct cn_http_server_options options = {.limits = {.output_high_bytes = 20000}};
    rig_open(&rig, NULL, &options);
    rig_connect_small(&rig, &client, 4096);
    rig_pause(&client, true);
    /* Each answer repeats a target of 10,000 bytes: the client asks for far more than it takes. */
    static char text[10100];
    memcpy(text, "GET /", 5);
    memset(text + 5, 'a', 10000);
    strcpy(text + 10005, " HTTP/1.1\r\nHost: a\r\n\r\n");
    size_t size = strlen(text), sent = 0, stuck = 0;
    while (stuck < 50) {
        size_t count = rig_send_some(&client, text + sent % size, size - sent % size);
        sent += count;
        stuck = count == 0 ? stuck + 1 : 0;
        CHECK(sent < (64u << 20));
        rig_turn(&rig);
    }
    rig_pause(&client, false);
    rig_send(&client, text + sent % size);
    size_t count = sent / size + (sent % size != 0);
    RIG_UNTIL(&rig, rig.request_count == count);
    RIG_UNTIL(&rig, rig_count(&client, "HTTP/1.1 200") == count);
    rig_disconnect(&client);
    rig_close(&rig);
}

/* --- the end ---------------------------------------------------------------------------- */

static void hold_or_answer(struct rig *rig, struct cn_http_request *req)
{
    if (memcmp(req->target.data, "/hold", 5) == 0)
        rig->held = req;
    else
        rig_answer(req, 200, "now");
}

TEST(server_drain, closes_idle_connections_and_lets_requests_finish)
{
    struct rig rig;
    struct rig_client idle, busy, partial;
    rig_open(&rig, hold_or_answer, NULL);
    rig_connect(&rig, &idle);
    rig_connect(&rig, &busy);
    rig_connect(&rig, &partial);
    rig_send(&idle, GET("/"));
    rig_send(&busy, GET("/hold"));
    rig_send(&partial, "GET /p HTTP/1.1\r\n");
    RIG_UNTIL(&rig, rig.held && rig_has(&idle, "now") && open_count(&rig) == 3);
    rig_turn(&rig);
    rig_turn(&rig);
    rig_drain(&rig);
    RIG_UNTIL(&rig, idle.ended);
    CHECK(!idle.reset && !rig.drained);
    rig_send(&partial, "Host: a\r\n\r\n"); /* a request that had begun is still served */
    RIG_UNTIL(&rig, partial.ended);
    CHECK(rig_has(&partial, "now") && rig_has(&partial, "Connection: close\r\n"));
    CHECK(!rig.drained && !busy.ended);
    CHECK_INT(0, rig_answer(rig.held, 200, "at last"));
    RIG_UNTIL(&rig, rig.drained);
    RIG_UNTIL(&rig, busy.ended);
    CHECK(rig_has(&busy, "at last") && rig_has(&busy, "Connection: close\r\n"));
    CHECK(!busy.reset);
    struct rig_client late;
    rig_connect(&rig, &late);
    RIG_UNTIL(&rig, late.ended); /* refused: nobody listens */
    CHECK(late.reset);
    rig_disconnect(&late);
    rig_disconnect(&idle);
    rig_disconnect(&busy);
    rig_disconnect(&partial);
    rig_close(&rig);
}

TEST(server_drain, is_done_at_once_when_nothing_is_open)
{
    struct rig rig;
    rig_open(&rig, NULL, NULL);
    rig_drain(&rig);
    CHECK(!rig.drained); /* never inside the call */
    RIG_UNTIL(&rig, rig.drained);
    rig_close(&rig);
}

static void on_closed(void *data)
{
    ((struct rig *)data)->closed = true;
}

TEST(server_close, aborts_what_runs_and_waits_for_its_release)
{
    struct rig rig;
    struct rig_client client;
    rig_open(&rig, rig_hold, NULL);
    rig_connect(&rig, &client);
    rig_send(&client, GET("/"));
    RIG_UNTIL(&rig, rig.request_count == 1);
    cn_http_server_close(rig.server, on_closed, &rig);
    CHECK_INT(1, rig.abort_count);
    RIG_UNTIL(&rig, client.ended);
    for (int i = 0; i < 20; i++)
        rig_turn(&rig);
    CHECK(!rig.closed);
    cn_http_request_release(rig.held);
    RIG_UNTIL(&rig, rig.closed);
    rig_disconnect(&client);
    rig_close(&rig);
}

/* --- lanes ------------------------------------------------------------------------------ */

struct lane {
    uv_thread_t thread;
    uv_async_t stop;
    int fd;
    uint64_t request_count; /* read after the thread has been joined */
    uv_sem_t ready;
};

static void lane_request(struct cn_http_server *server, struct cn_http_request *req)
{
    struct lane *lane = cn_http_server_data(server);
    lane->request_count++;
    rig_answer(req, 200, "lane");
}

static void lane_stop(uv_async_t *async)
{
    cn_http_server_close(async->data, NULL, NULL);
    uv_close((uv_handle_t *)async, NULL);
}

static void lane_run(void *data)
{
    struct lane *lane = data;
    uv_loop_t loop;
    struct cn_http_server *server;
    struct cn_http_server_options options = {.callbacks = {.on_request = lane_request},
                                             .data = lane};
    CHECK_INT(0, cn_loop_init(&loop, NULL));
    CHECK_INT(0, cn_http_server_new(&loop, &options, &server, NULL));
    CHECK_INT(0, cn_http_server_listen(server, lane->fd, NULL));
    uv_async_init(&loop, &lane->stop, lane_stop);
    lane->stop.data = server;
    uv_sem_post(&lane->ready);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(0, uv_loop_close(&loop));
}

TEST(server_lanes, share_the_connections_of_one_port)
{
    enum { CLIENTS = 64 };
    int fds[2];
    struct rig rig; /* for its loop; its own server has no part in this */
    static struct rig_client clients[CLIENTS];
    static struct lane lanes[2];
    rig_open(&rig, NULL, NULL);
    CHECK_INT(0, cn_http_bind("127.0.0.1", 0, fds, 2, &rig.port, NULL));
    for (int i = 0; i < 2; i++) {
        lanes[i] = (struct lane){.fd = fds[i]};
        uv_sem_init(&lanes[i].ready, 0);
        CHECK_INT(0, uv_thread_create(&lanes[i].thread, lane_run, &lanes[i]));
        uv_sem_wait(&lanes[i].ready);
    }
    for (int i = 0; i < CLIENTS; i++) {
        rig_connect(&rig, &clients[i]);
        rig_send(&clients[i], GET("/"));
    }
    for (int i = 0; i < CLIENTS; i++)
        RIG_UNTIL(&rig, rig_has(&clients[i], "\r\n\r\nlane"));
    for (int i = 0; i < CLIENTS; i++)
        rig_disconnect(&clients[i]);
    for (int i = 0; i < 2; i++) {
        uv_async_send(&lanes[i].stop);
        uv_thread_join(&lanes[i].thread);
        uv_sem_destroy(&lanes[i].ready);
        CHECK(lanes[i].request_count > 0);
    }
    CHECK_INT(CLIENTS, lanes[0].request_count + lanes[1].request_count);
    rig_close(&rig);
}

TEST(server_bind, shares_a_port_among_lanes_and_with_nobody_else)
{
    int fds[3], other;
    uint16_t port = 0, other_port;
    struct cn_err err = {0};
    CHECK_INT(0, cn_http_bind("127.0.0.1", 0, fds, 3, &port, &err));
    CHECK(port > 0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(0, listen(fds[i], 1));
    CHECK_INT(UV_EADDRINUSE, cn_http_bind("127.0.0.1", port, &other, 1, &other_port, &err));
    CHECK(strstr(err.text, " is taken by ") != NULL);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    CHECK_INT(0, cn_http_bind("127.0.0.1", port, fds, 1, &other_port, &err));
    CHECK_INT(port, other_port);
    close(fds[0]);
    CHECK(cn_http_bind("no.such.host.invalid", 0, fds, 1, &other_port, &err) < 0);
}
