/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners of all messages: what they get, what they are told that they did not get, and that
 * nobody who logs waits for them. */
#include "admin/tail.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "test/lib/http_rig.h"

static struct rig rig;
static struct cn_tail tail;
static unsigned strangers; /* aborts of requests that are no listener's */

static void on_request(struct rig *own, struct cn_http_request *http)
{
    (void)own;
    if (memcmp(http->target.data, "/api/tail", 9) == 0)
        cn_tail_add(&tail, http);
    else
        rig.held = http;
}

static void on_abort(struct cn_http_server *server, struct cn_http_request *http, int status)
{
    (void)server, (void)status;
    if (!cn_tail_abort(&tail, http)) {
        strangers++;
        cn_http_request_release(http);
    }
}

static void begin(void)
{
    tail = (struct cn_tail){0};
    strangers = 0;
    rig_open(&rig, on_request, NULL);
    rig.on_abort = on_abort;
    CHECK_INT(0, cn_tail_init(&tail, &rig.loop, NULL));
}

static void end(void)
{
    RIG_UNTIL(&rig, tail.listener_count == 0);
    CHECK(!cn_diag_tapped());
    cn_tail_close(&tail);
    rig_close(&rig);
    cn_tail_fini(&tail);
}

static void listen_in(struct rig_client *client)
{
    rig_connect(&rig, client);
    rig_send(client, "GET /api/tail HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, rig_has(client, "{\"listening\":true}\n"));
}

/* Not on standard error. */
#define LOG(...) cn_diag(CN_DIAG_DEBUG, __VA_ARGS__)

TEST(tail, every_listener_gets_every_message_while_it_listens)
{
    struct rig_client a, b;
    begin();
    CHECK(!cn_diag_tapped()); /* nobody listens: nothing is made */
    LOG("before anybody");
    listen_in(&a);
    CHECK(cn_diag_tapped());
    LOG("first \"quoted\"\n and more");
    RIG_UNTIL(&rig, rig_has(&a, "first"));
    listen_in(&b);
    LOG("second");
    struct cn_diag_field fields[] = {{"worker", "shop", 0, false}, {"object", NULL, 0, false}};
    cn_diag_tap_fields(CN_DIAG_INFO, fields, 2, "GET / 200", 9); /* a request */
    RIG_UNTIL(&rig, rig_has(&a, "GET / 200") && rig_has(&b, "GET / 200"));
    CHECK(rig_has(&a, "first \\\"quoted\\\"\\n and more"));
    CHECK(!rig_has(&a, "before anybody") && !rig_has(&b, "first"));
    CHECK(rig_has(&b, "second") && rig_has(&b, "\"worker\":\"shop\"") && !rig_has(&b, "object"));
    rig_disconnect(&a);
    RIG_UNTIL(&rig, tail.listener_count == 1);
    CHECK(cn_diag_tapped());
    LOG("third");
    RIG_UNTIL(&rig, rig_has(&b, "third"));
    CHECK(!rig_has(&b, "dropped"));
    rig_disconnect(&b);
    end();
}

TEST(tail, no_more_listeners_than_there_may_be)
{
    struct rig_client clients[CN_TAIL_LISTENER_MAX + 1];
    begin();
    for (int i = 0; i < CN_TAIL_LISTENER_MAX; i++)
        listen_in(&clients[i]);
    struct rig_client *last = &clients[CN_TAIL_LISTENER_MAX];
    rig_connect(&rig, last);
    rig_send(last, "GET /api/tail HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, rig_has(last, "too many listeners"));
    CHECK(rig_has(last, "HTTP/1.1 503 "));
    rig_disconnect(&clients[3]);
    RIG_UNTIL(&rig, tail.listener_count == CN_TAIL_LISTENER_MAX - 1);
    rig_send(last, "GET /api/tail HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, rig_has(last, "{\"listening\":true}\n"));
    for (int i = 0; i <= CN_TAIL_LISTENER_MAX; i++)
        if (i != 3)
            rig_disconnect(&clients[i]);
    end();
}

static unsigned long count_lines(struct rig_client *client, unsigned long *dropped)
{
    unsigned long lines = 0;
    *dropped = 0;
    for (const char *at = rig_got(client); (at = strstr(at, "{\"")); at += 2) {
        if (strncmp(at, "{\"dropped\":", 11) == 0)
            *dropped += strtoul(at + 11, NULL, 10);
        else if (strncmp(at, "{\"time\":", 8) == 0)
            lines++;
    }
    return lines;
}

/* The loop does not run: what finds no room in the buffer is dropped, and counted. */
TEST(tail, what_finds_no_room_is_dropped_and_told)
{
    struct rig_client client;
    begin();
    listen_in(&client);
    static char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    enum { LINES = 1000 }; /* twice what there is room for */
    for (int i = 0; i < LINES; i++)
        cn_diag_fields(CN_DIAG_DEBUG, NULL, 0, text, strlen(text));
    CHECK(tail.pending.size <= CN_TAIL_PENDING_MAX);
    CHECK(tail.dropped > 100 && tail.dropped < LINES);
    unsigned long lines, dropped;
    RIG_UNTIL(&rig, (lines = count_lines(&client, &dropped)) + dropped == LINES);
    CHECK(lines > 300);
    LOG("afterwards");
    RIG_UNTIL(&rig, rig_has(&client, "afterwards"));
    rig_disconnect(&client);
    end();
}

/* Whether it is among the last things received. */
static bool ends_in(struct rig_client *client, const char *text)
{
    const char *all = rig_got(client);
    return strstr(client->got.size > 2000 ? all + client->got.size - 2000 : all, text) != NULL;
}

/* A client that does not read: its queue is bounded, others get all, and it is told later. */
TEST(tail, a_slow_listener_loses_lines_and_holds_nobody_up)
{
    struct rig_client slow, quick;
    begin();
    rig_connect_small(&rig, &slow, 4096);
    rig_send(&slow, "GET /api/tail HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, rig_has(&slow, "{\"listening\":true}\n"));
    listen_in(&quick);
    rig_pause(&slow, true);
    static char text[10000];
    memset(text, 'y', sizeof(text) - 1);
    enum { LINES = 1200 }; /* 12 MB: more than the kernel takes */
    for (size_t i = 1; i <= LINES; i++) {
        cn_diag_fields(CN_DIAG_DEBUG, NULL, 0, text, strlen(text));
        if (i % 50 == 0)
            RIG_UNTIL(&rig, quick.got.size >= i * strlen(text));
    }
    CHECK(cn_http_server_bytes(rig.server) < (8u << 20));
    rig_pause(&slow, false);
    /* What is dropped is told with the next line that finds room. */
    unsigned long more = 0, lines, dropped;
    rig_guard_start(&rig);
    while (!ends_in(&slow, "once more")) {
        LOG("once more");
        more++;
        CHECK(rig_guard_wait(&rig));
    }
    lines = count_lines(&slow, &dropped);
    CHECK(dropped > 0 && lines > 0);
    CHECK(lines + dropped > LINES && lines + dropped <= LINES + more);
    CHECK(!rig_has(&quick, "dropped"));
    rig_disconnect(&slow);
    rig_disconnect(&quick);
    end();
}

static void *log_lines(void *data)
{
    for (int i = 0; i < 300; i++)
        LOG("thread %s line %d.", (const char *)data, i);
    return NULL;
}

TEST(tail, lines_of_several_threads_are_whole_and_in_order)
{
    struct rig_client client;
    begin();
    listen_in(&client);
    static char names[3][2] = {"a", "b", "c"};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK_INT(0, pthread_create(&threads[i], NULL, log_lines, names[i]));
    unsigned long dropped;
    RIG_UNTIL(&rig, count_lines(&client, &dropped) == 900);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(0, dropped);
    for (int i = 0; i < 3; i++) {
        const char *at = rig_got(&client);
        for (int line = 0; line < 300; line++) {
            char want[64];
            snprintf(want, sizeof(want), "thread %s line %d.\"", names[i], line);
            at = strstr(at, want);
            CHECK(at);
        }
    }
    rig_disconnect(&client);
    end();
}

TEST(tail, another_requests_end_is_not_its_business)
{
    struct rig_client listener, other;
    begin();
    listen_in(&listener);
    rig_connect(&rig, &other);
    rig_send(&other, "GET /other HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, rig.held);
    rig_disconnect(&other);
    RIG_UNTIL(&rig, strangers == 1);
    CHECK_INT(1, tail.listener_count);
    rig_disconnect(&listener);
    end();
}
