/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket connections over the real HTTP server: a raw client on one side, an end in C on the
 * other. */
#include <string.h>
#include <sys/socket.h>

#include "base/diag.h"
#include "base/mem.h"
#include "net/ws_conn.h"
#include "net/ws_end.h"
#include "test/lib/http_rig.h"
#include "test/lib/scarce.h"

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define REQUEST(more)                                         \
    "GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n" \
    "Connection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n" KEY more "\r\n"

struct ws_rig {
    struct rig rig;
    struct cn_ws_lane *lane;
    struct cn_ws_end *end; /* the program's */
    struct cn_buf seen;    /* "t:hello c1000:bye" */
    bool gone, echo, manual;
    int upgrade_status;
};

static void take_all(struct ws_rig *w)
{
    struct cn_ws_item *item;
    while ((item = cn_ws_end_take(w->end))) {
        if (w->seen.size)
            cn_buf_append_byte(&w->seen, ' ');
        if (item->message) {
            cn_buf_printf(&w->seen, "%c:", item->message->text ? 't' : 'b');
            if (item->message->size > 64)
                cn_buf_printf(&w->seen, "%zu", item->message->size);
            else
                cn_buf_append(&w->seen, item->message->bytes, item->message->size);
            if (w->echo)
                CHECK_INT(0, cn_ws_end_send(w->end, item->message));
        } else {
            cn_buf_printf(&w->seen, "c%u:%.*s%s", item->close.code,
                          item->close.clean ? (int)item->close.reason_size : 0, item->close.reason,
                          item->close.clean ? "" : "!");
            if (item->close.error)
                cn_buf_printf(&w->seen, "(%s)", item->close.error);
        }
        cn_ws_item_free(item);
    }
}

static void on_ready(struct cn_ws_end *end)
{
    struct ws_rig *w = end->owner;
    if (!w->manual)
        take_all(w);
}

static void on_gone(struct cn_ws_end *end)
{
    ((struct ws_rig *)end->owner)->gone = true;
}

static const struct cn_ws_end_ops ops = {on_ready, NULL, on_gone};

static void handle(struct rig *rig, struct cn_http_request *req)
{
    struct ws_rig *w = rig->extra;
    struct cn_ws_end *theirs;
    cn_ws_pair_new(&w->end, &theirs);
    cn_ws_end_claim(w->end, &ops, w);
    struct cn_http_header headers[] = {{"X-Mine", "1", 6, 1},
                                       {"Sec-WebSocket-Protocol", "chat", 22, 4},
                                       {"Connection", "close", 10, 5}};
    w->upgrade_status = cn_ws_upgrade(w->lane, req, headers, 3, theirs);
    if (w->upgrade_status != 0) {
        cn_ws_end_release(theirs);
        cn_ws_end_release(w->end);
        w->end = NULL;
        int status = w->upgrade_status > 0 ? w->upgrade_status : 500;
        rig_answer(req, status, "no");
        return;
    }
    cn_http_request_release(req);
}

static void open_rig(struct ws_rig *w, const struct cn_ws_options *options)
{
    *w = (struct ws_rig){.echo = true};
    rig_open(&w->rig, handle, NULL);
    w->rig.extra = w;
    struct cn_ws_options none = {0};
    w->lane = cn_ws_lane_new(&w->rig.loop, options ? options : &none);
}

static void close_rig(struct ws_rig *w)
{
    if (w->end)
        cn_ws_end_release(w->end);
    RIG_UNTIL(&w->rig, cn_ws_lane_count(w->lane) == 0);
    cn_ws_lane_free(w->lane);
    rig_close(&w->rig);
    cn_buf_fini(&w->seen);
}

static void send_bytes(struct rig_client *client, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        size_t sent = rig_send_some(client, at, size);
        at += sent;
        size -= sent;
        rig_turn(client->rig);
    }
}

static void send_frame(struct rig_client *client, uint8_t first, const void *bytes, size_t size)
{
    static const uint8_t key[4] = {1, 2, 3, 4};
    uint8_t *frame = cn_alloc(CN_WS_HEAD_MAX + size);
    size_t head = cn_ws_head(frame, CN_WS_OP_TEXT, false, size, key);
    frame[0] = first;
    cn_ws_mask(frame + head, bytes, size, key, 0);
    send_bytes(client, frame, head + size);
    cn_free(frame);
}

static void connect_ws(struct ws_rig *w, struct rig_client *client)
{
    rig_connect(&w->rig, client);
    rig_send(client, REQUEST(""));
    RIG_UNTIL(&w->rig, rig_has(client, "\r\n\r\n"));
    CHECK(rig_has(client, "101"));
    cn_buf_clear(&client->got);
}

/* Everything received is exactly these bytes. */
#define UNTIL_GOT(w, client, bytes)                                       \
    do {                                                                  \
        RIG_UNTIL(&(w)->rig, (client)->got.size >= sizeof(bytes) - 1);    \
        CHECK_INT(sizeof(bytes) - 1, (client)->got.size);                 \
        CHECK(memcmp((client)->got.data, bytes, sizeof(bytes) - 1) == 0); \
        cn_buf_clear(&(client)->got);                                     \
    } while (0)
#define UNTIL_SEEN(w, text) RIG_UNTIL(&(w)->rig, strstr(cn_buf_text(&(w)->seen), text) != NULL)

TEST(ws_conn, handshake)
{
    struct ws_rig w;
    struct rig_client client;
    open_rig(&w, NULL);
    rig_connect(&w.rig, &client);
    rig_send(&client, REQUEST("Sec-WebSocket-Extensions: permessage-deflate\r\n"));
    RIG_UNTIL(&w.rig, rig_has(&client, "\r\n\r\n"));
    CHECK(rig_has(&client, "HTTP/1.1 101 Switching Protocols\r\n"));
    CHECK(rig_has(&client, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    CHECK(rig_has(&client, "Sec-WebSocket-Extensions: permessage-deflate; "));
    CHECK(rig_has(&client, "X-Mine: 1\r\n"));
    CHECK_INT(1, rig_count(&client, "Connection:"));
    CHECK_STR("chat", w.end->protocol);
    CHECK(w.end->deflate);
    rig_disconnect(&client);
    close_rig(&w);
}

TEST(ws_conn, handshake_refused)
{
    static const struct {
        const char *request;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", CN_EINVALID},
        {"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n" KEY "\r\n",
         CN_EINVALID},
        {"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
         "Sec-WebSocket-Version: 8\r\n" KEY "\r\n",
         426},
        {"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
         "Sec-WebSocket-Version: 13\r\nContent-Length: 0\r\n" KEY "\r\n",
         400},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ws_rig w;
        struct rig_client client;
        open_rig(&w, NULL);
        rig_connect(&w.rig, &client);
        rig_send(&client, cases[i].request);
        RIG_UNTIL(&w.rig, w.upgrade_status != 0);
        CHECK_INT(cases[i].status, w.upgrade_status);
        rig_disconnect(&client);
        close_rig(&w);
    }
}

TEST(ws_conn, echo_ping_and_close_by_the_client)
{
    struct ws_rig w;
    struct rig_client client;
    open_rig(&w, NULL);
    connect_ws(&w, &client);
    send_frame(&client, 0x81, "hello", 5);
    UNTIL_GOT(&w, &client, "\x81\x05hello");
    send_frame(&client, 0x89, "hm", 2);
    UNTIL_GOT(&w, &client, "\x8a\x02hm");
    send_frame(&client, 0x88,
               "\x03\xe9"
               "bye",
               5);
    UNTIL_SEEN(&w, "t:hello c1001:bye");
    rig_turn(&w.rig);
    CHECK_INT(0, client.got.size); /* the program has not answered yet */
    struct cn_ws_close close = {1001, true, "ok", 2, NULL};
    cn_ws_end_close(w.end, &close);
    UNTIL_GOT(&w, &client, "\x88\x04\x03\xe9ok");
    RIG_UNTIL(&w.rig, client.ended);
    CHECK(w.gone);
    rig_disconnect(&client);
    close_rig(&w);
}

TEST(ws_conn, close_by_the_program)
{
    struct ws_rig w;
    struct rig_client client;
    open_rig(&w, NULL);
    w.echo = false;
    connect_ws(&w, &client);
    struct cn_ws_close close = {4001, true, "go", 2, NULL};
    cn_ws_end_close(w.end, &close);
    struct cn_ws_message *late = cn_ws_message_new(true, "late", 4);
    CHECK_INT(CN_ECLOSED, cn_ws_end_send(w.end, late));
    cn_ws_message_unref(late);
    UNTIL_GOT(&w, &client, "\x88\x04\x0f\xa1go");
    send_frame(&client, 0x81, "still sent", 10); /* before it saw the close: still a message */
    send_frame(&client, 0x88, "\x0f\xa1", 2);
    UNTIL_SEEN(&w, "c4001:");
    CHECK_STR("t:still sent c4001:", cn_buf_text(&w.seen));
    RIG_UNTIL(&w.rig, client.ended);
    rig_disconnect(&client);
    close_rig(&w);
}

TEST(ws_conn, a_cut_connection_is_1006)
{
    struct ws_rig w;
    struct rig_client client;
    open_rig(&w, NULL);
    connect_ws(&w, &client);
    rig_disconnect(&client);
    UNTIL_SEEN(&w, "c1006:!");
    close_rig(&w);
    open_rig(&w, NULL);
    connect_ws(&w, &client);
    struct linger reset = {1, 0};
    setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    rig_disconnect(&client);
    UNTIL_SEEN(&w, "c1006:!");
    close_rig(&w);
}

TEST(ws_conn, a_broken_frame_gets_its_code)
{
    struct ws_rig w;
    struct rig_client client;
    open_rig(&w, NULL);
    connect_ws(&w, &client);
    send_frame(&client, 0x81, "\xff", 1);
    RIG_UNTIL(&w.rig, client.ended);
    CHECK(client.got.size > 4 && memcmp(client.got.data + 2, "\x03\xef", 2) == 0); /* 1007 */
    UNTIL_SEEN(&w, "c1006:!(the text is not UTF-8)");
    rig_disconnect(&client);
    close_rig(&w);
}

TEST(ws_conn, silence_is_pinged_then_cut)
{
    struct ws_rig w;
    struct rig_client client;
    open_rig(&w, NULL);
    connect_ws(&w, &client);
    uint64_t now = uv_now(&w.rig.loop);
    cn_ws_lane_tick(w.lane, now + 29000);
    rig_turn(&w.rig);
    CHECK_INT(0, client.got.size);
    cn_ws_lane_tick(w.lane, now + 31000);
    UNTIL_GOT(&w, &client, "\x89\0");
    send_frame(&client, 0x8a, "", 0);
    rig_turn(&w.rig);
    rig_turn(&w.rig);
    cn_ws_lane_tick(w.lane, now + 62000); /* it has answered: pinged again */
    UNTIL_GOT(&w, &client, "\x89\0");
    cn_ws_lane_tick(w.lane, now + 93000);
    UNTIL_SEEN(&w, "c1006:!");
    RIG_UNTIL(&w.rig, client.ended);
    rig_disconnect(&client);
    close_rig(&w);
}

TEST(ws_conn, a_close_without_answer_is_given_up)
{
    struct ws_rig w;
    struct rig_client client;
    open_rig(&w, NULL);
    connect_ws(&w, &client);
    struct cn_ws_close close = {1000, true, "", 0, NULL};
    cn_ws_end_close(w.end, &close);
    UNTIL_GOT(&w, &client, "\x88\x02\x03\xe8");
    cn_ws_lane_tick(w.lane, uv_now(&w.rig.loop) + 11000);
    cn_ws_lane_check(w.lane); /* cut, and its wire has not closed yet */
    UNTIL_SEEN(&w, "c1006:!");
    RIG_UNTIL(&w.rig, client.ended);
    rig_disconnect(&client);
    close_rig(&w);
    /* The other way round: the program never answers. */
    open_rig(&w, NULL);
    connect_ws(&w, &client);
    send_frame(&client, 0x88, "", 0);
    UNTIL_SEEN(&w, "c1005:");
    CHECK(!w.gone);
    cn_ws_lane_tick(w.lane, uv_now(&w.rig.loop) + 11000);
    cn_ws_lane_check(w.lane);
    RIG_UNTIL(&w.rig, client.ended);
    CHECK(w.gone);
    CHECK_INT(0, client.got.size);
    rig_disconnect(&client);
    close_rig(&w);
}

TEST(ws_conn, a_slow_reader_gets_1013)
{
    struct cn_ws_options options = {.output_size_max = 1 << 20};
    struct ws_rig w;
    struct rig_client client;
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR); /* the warning is expected */
    open_rig(&w, &options);
    rig_connect_small(&w.rig, &client, 4096);
    rig_send(&client, REQUEST(""));
    RIG_UNTIL(&w.rig, rig_has(&client, "\r\n\r\n"));
    rig_pause(&client, true);
    uint8_t *bytes = cn_alloc_zero(100000);
    struct cn_ws_message *message = cn_ws_message_new(false, bytes, 100000);
    int sent = 0;
    while (cn_ws_end_send(w.end, message) == 0 && sent < 1000) {
        sent++;
        rig_turn(&w.rig);
    }
    CHECK(sent > 10 && sent < 1000);
    CHECK_STR("c1013:!", cn_buf_text(&w.seen));
    CHECK(w.gone && message->refs > 1);
    cn_buf_clear(&client.got);
    rig_pause(&client, false);
    /* All that was taken comes, and then the close frame: nothing is cut in the middle. */
    RIG_UNTIL(&w.rig, client.got.size >= 2 &&
                          memmem(client.got.data, client.got.size, "\x03\xf5the messages", 14));
    rig_disconnect(&client);
    cn_ws_message_unref(message);
    cn_free(bytes);
    close_rig(&w);
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_INFO);
}

TEST(ws_conn, large_messages_both_ways)
{
    struct ws_rig w;
    struct rig_client client;
    open_rig(&w, NULL);
    connect_ws(&w, &client);
    size_t size = 3 << 20;
    uint8_t *bytes = cn_alloc_zero(size);
    send_frame(&client, 0x82, bytes, size);
    RIG_UNTIL(&w.rig, client.got.size == size + 10);
    CHECK(memcmp(client.got.data, "\x82\x7f\0\0\0\0\0\x30\0\0", 10) == 0);
    cn_free(bytes);
    rig_disconnect(&client);
    close_rig(&w);
}

TEST(ws_conn, a_program_that_holds_back_stops_the_client)
{
    struct ws_rig w;
    struct rig_client client;
    open_rig(&w, NULL);
    connect_ws(&w, &client);
    cn_ws_end_hold(w.end, true);
    send_frame(&client, 0x81, "one", 3);
    for (int i = 0; i < 5; i++)
        rig_turn(&w.rig);
    CHECK_INT(0, w.seen.size);
    cn_ws_end_hold(w.end, false);
    UNTIL_SEEN(&w, "t:one");
    rig_disconnect(&client);
    close_rig(&w);
}

TEST(ws_conn, shutdown_tells_clients_to_come_again)
{
    struct ws_rig w;
    struct rig_client client;
    open_rig(&w, NULL);
    connect_ws(&w, &client);
    cn_ws_lane_shutdown(w.lane);
    UNTIL_GOT(&w, &client, "\x88\x02\x03\xf4");
    send_frame(&client, 0x88, "\x03\xf4", 2);
    UNTIL_SEEN(&w, "c1012:");
    RIG_UNTIL(&w.rig, client.ended);
    rig_disconnect(&client);
    close_rig(&w);
}

TEST(ws_end, an_unclaimed_end_keeps_what_it_gets)
{
    struct ws_rig w = {0};
    struct cn_ws_end *a;
    cn_ws_pair_new(&a, &w.end);
    struct cn_ws_message *message = cn_ws_message_new(true, "kept", 4);
    CHECK_INT(0, cn_ws_end_send(a, message));
    cn_ws_message_unref(message);
    cn_ws_end_release(a);
    cn_ws_end_claim(w.end, &ops, &w);
    CHECK_STR("t:kept c1006:!", cn_buf_text(&w.seen));
    cn_ws_end_release(w.end);
    cn_buf_fini(&w.seen);
}

TEST(ws_end, a_full_queue_ends_the_pair)
{
    struct cn_ws_end *a, *b;
    cn_ws_pair_new(&a, &b);
    uint8_t *bytes = cn_alloc_zero(1 << 20);
    struct cn_ws_message *message = cn_ws_message_new(false, bytes, 1 << 20);
    int rc = 0, sent = 0;
    while ((rc = cn_ws_end_send(a, message)) == 0)
        sent++;
    CHECK_INT(CN_EOVERLOADED, rc);
    CHECK(sent >= 48 && sent < 50);
    CHECK(cn_ws_end_closed(a) && cn_ws_end_closed(b));
    struct cn_ws_item *item = cn_ws_end_take(a);
    CHECK_INT(1013, item->close.code);
    cn_ws_item_free(item);
    cn_ws_end_release(a);
    cn_ws_end_release(b);
    CHECK_INT(1, message->refs);
    cn_ws_message_unref(message);
    cn_free(bytes);
}

/* A message in fragments and a long one, while the n-th allocation fails. False: there were fewer. */
static bool talk_with_little_memory(uint64_t at, bool sticky)
{
    static char large[200000];
    struct ws_rig w;
    struct rig_client client;
    open_rig(&w, NULL);
    connect_ws(&w, &client);
    memset(large, 'x', sizeof(large));
    scarce_set(at, sticky);
    send_frame(&client, CN_WS_OP_TEXT, large, 70000);
    if (!client.ended)
        send_frame(&client, 0x80, "end", 3);
    if (!client.ended)
        send_frame(&client, 0x80 | CN_WS_OP_TEXT, large, sizeof(large));
    if (!client.ended)
        send_frame(&client, 0x88, "\x03\xe8", 2);
    RIG_UNTIL(&w.rig, client.ended);
    bool failed = scarce_count() >= at;
    scarce_set(0, false);
    /* Everything came back, or the connection was closed before its time. */
    CHECK(failed || strstr(cn_buf_text(&w.seen), "t:70003 t:200000 c1000:"));
    rig_disconnect(&client);
    close_rig(&w);
    return failed;
}

TEST(ws_conn, memory_that_runs_out_ends_the_connection_and_nothing_else)
{
    for (uint64_t at = 1; talk_with_little_memory(at, false); at++)
        continue;
    for (uint64_t at = 1; talk_with_little_memory(at, true); at++)
        continue;
}
