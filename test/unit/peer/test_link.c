/* SPDX-License-Identifier: Apache-2.0 */
/* Links between nodes, over loopback: who gets one, what is bounded, what a bad peer can do. */
#include "peer/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "net/tls.h"
#include "test/lib/test.h"

static const char CLUSTER[] = "01234567-89ab-cdef-0123-456789abcdef";

struct node {
    struct cn_links *links;
    uint64_t disk;
    uint16_t port;
    char address[40];
    unsigned ups, downs, silents, rooms, frames, troubles, strangers;
    char why[80], stranger[48];
    uint64_t last_disk;
    uint8_t last_kind;
    struct cn_buf got;
    bool closed;
};
static uv_loop_t loop;

static void on_up(void *data, uint64_t disk)
{
    ((struct node *)data)->ups++;
    ((struct node *)data)->last_disk = disk;
}

static void on_down(void *data, uint64_t disk, bool silent, const char *why)
{
    CHECK(*why);
    ((struct node *)data)->downs++;
    ((struct node *)data)->silents += silent;
}

static bool on_frame(void *data, uint64_t disk, const struct cn_frame *frame)
{
    struct node *node = data;
    node->frames++;
    node->last_kind = (uint8_t)frame->kind;
    cn_buf_append(&node->got, frame->body, frame->size);
    return frame->size != 13; /* is none, these tests say */
}

static void on_room(void *data, uint64_t disk)
{
    ((struct node *)data)->rooms++;
}

static void on_trouble(void *data, uint64_t disk, const char *why)
{
    struct node *node = data;
    node->troubles++;
    snprintf(node->why, sizeof(node->why), "%d %s", (int)disk, why);
}

static void on_stranger(void *data, const char *address)
{
    struct node *node = data;
    node->strangers++;
    snprintf(node->stranger, sizeof(node->stranger), "%s", address);
}

static void on_closed(void *data)
{
    ((struct node *)data)->closed = true;
}

static struct cn_links_config config_of(struct node *node, uint64_t disk, uint8_t key)
{
    struct cn_err err;
    struct cn_links_config config = {
        .disk = disk,
        .life = 1,
        .trouble_ms = 200,
        .hooks = {node, on_up, on_down, on_frame, on_room, NULL, on_trouble, on_stranger}};
    memcpy(config.cluster, CLUSTER, sizeof(CLUSTER));
    memset(config.key, key, sizeof(config.key));
    config.listen_fd = cn_links_bind("127.0.0.1", 0, &node->port, &err);
    CHECK(config.listen_fd >= 0);
    *node = (struct node){.disk = disk, .port = node->port};
    snprintf(node->address, sizeof(node->address), "127.0.0.1:%u", node->port);
    config.retry_ms = 20;
    config.retry_max_ms = 40;
    return config;
}

static void node_open_on(uv_loop_t *on, struct node *node, const struct cn_links_config *config)
{
    struct cn_err err = {0};
    CHECK_INT(0, cn_links_new(on, config, &node->links, &err));
}

static void node_open(struct node *node, uint64_t disk, uint8_t key)
{
    struct cn_links_config config = config_of(node, disk, key);
    node_open_on(&loop, node, &config);
}

static void know(struct node *node, const struct node *other)
{
    struct cn_link_peer peer = {other->disk, other->address};
    cn_links_know(node->links, &peer, 1);
}

#define UNTIL(condition) \
    while (!(condition)) \
    CHECK(uv_run(&loop, UV_RUN_ONCE) | 1)

static void begin(void)
{
    CHECK_INT(0, cn_loop_init(&loop, NULL));
}

static void node_close(struct node *node)
{
    cn_links_free(node->links, on_closed, node);
    UNTIL(node->closed);
    cn_buf_fini(&node->got);
}

static void end(void)
{
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(0, uv_loop_close(&loop));
}

static void pair(struct node *a, struct node *b)
{
    begin();
    node_open(a, 1, 7);
    node_open(b, 2, 7);
    know(a, b);
    know(b, a);
    UNTIL(a->ups == 1 && b->ups == 1);
}

static void end_pair(struct node *a, struct node *b)
{
    node_close(a);
    node_close(b);
    end();
}

TEST(link, carries_frames_both_ways_in_order)
{
    struct node a, b;
    pair(&a, &b);
    CHECK(a.last_disk == 2 && b.last_disk == 1);
    CHECK_INT(CN_LINK_UP, cn_links_state(a.links, 2));
    CHECK_INT(CN_LINK_NONE, cn_links_state(a.links, 3));
    CHECK(!cn_links_send(a.links, 3, CN_FRAME_MESSAGE, "x", 1, NULL, 0));
    for (int i = 0; i < 100; i++) {
        char text[12];
        snprintf(text, sizeof(text), "%03d", i);
        CHECK(cn_links_send(a.links, 2, CN_FRAME_MESSAGE, text, 2, text + 2, 1));
    }
    CHECK(cn_links_send(b.links, 1, CN_FRAME_COPY, "back", 4, NULL, 0));
    UNTIL(b.frames == 100 && a.frames == 1);
    CHECK_INT(300, b.got.size);
    CHECK_INT(0, memcmp(b.got.data, "000001002", 9));
    CHECK_INT(0, memcmp(b.got.data + 297, "099", 3));
    CHECK_INT(CN_FRAME_COPY, a.last_kind);
    end_pair(&a, &b);
}

/* L1 */
TEST(link, is_not_made_with_one_who_has_another_key)
{
    struct node a, b, c;
    begin();
    node_open(&a, 1, 7);
    node_open(&b, 2, 8);
    node_open(&c, 3, 7);
    struct cn_link_peer both[] = {{2, b.address}, {3, c.address}};
    cn_links_know(a.links, both, 2);
    know(&b, &a);
    know(&c, &a);
    struct cn_links_stats stats = {0};
    UNTIL(a.ups == 1 && c.ups == 1);
    for (int i = 0; i < 30; i++) /* and b has been tried */
        uv_run(&loop, UV_RUN_ONCE);
    cn_links_stats(b.links, &stats);
    CHECK_INT(0, stats.up);
    CHECK_INT(0, b.ups);
    CHECK_INT(3, a.last_disk);
    node_close(&a);
    node_close(&b);
    node_close(&c);
    end();
}

/* L8: by both ends, once, with the reason; and who has no key, once for its address. */
TEST(link, that_is_not_made_is_told_once_with_the_reason)
{
    struct node a, b, c;
    begin();
    node_open(&a, 1, 7);
    node_open(&b, 2, 8);
    node_open(&c, 3, 7);
    struct cn_link_peer other = {2, b.address}, nobody = {9, "127.0.0.1:1"};
    cn_links_know(a.links, &other, 1);
    know(&b, &a);
    cn_links_know(c.links, &nobody, 1);
    UNTIL(a.troubles && b.troubles && c.troubles && b.strangers);
    CHECK_STR("2 it does not have the key of this cluster", a.why);
    CHECK_STR("1 it does not connect to this node", b.why);
    CHECK_STR("9 connection refused", c.why);
    CHECK_STR("127.0.0.1", b.stranger);
    struct cn_links_stats stats;
    do { /* it is tried again, and not told again */
        uv_run(&loop, UV_RUN_ONCE);
        cn_links_stats(b.links, &stats);
    } while (stats.strangers < 5);
    CHECK_INT(1, a.troubles);
    CHECK_INT(1, b.troubles);
    CHECK_INT(1, b.strangers);
    CHECK_INT(1, stats.troubled);
    cn_links_know(a.links, NULL, 0); /* who is not known is no trouble */
    do {
        uv_run(&loop, UV_RUN_ONCE);
        cn_links_stats(a.links, &stats);
    } while (stats.troubled);
    node_close(&a);
    node_close(&b);
    node_close(&c);
    end();
}

/* L2: an address may have a new tenant; another cluster may have the same key by a copied engine.
 */
TEST(link, is_not_made_with_another_disk_or_another_cluster)
{
    struct node a, b;
    begin();
    node_open(&a, 1, 7);
    struct cn_links_config config = config_of(&b, 2, 7);
    config.cluster[0] = 'x';
    node_open_on(&loop, &b, &config);
    know(&a, &b);
    struct cn_links_stats stats = {0};
    while (stats.malformed == 0) {
        uv_run(&loop, UV_RUN_ONCE);
        cn_links_stats(b.links, &stats);
    }
    CHECK_INT(0, a.ups + b.ups);
    node_close(&b);
    node_open(&b, 5, 7);
    struct cn_link_peer old = {2, b.address};
    cn_links_know(a.links, &old, 1);
    for (stats.malformed = 0; stats.malformed == 0;) {
        uv_run(&loop, UV_RUN_ONCE);
        cn_links_stats(b.links, &stats);
    }
    CHECK_INT(0, a.ups + b.ups);
    end_pair(&a, &b);
}

/* A process that was killed and is back: its old connection may linger. */
TEST(link, of_a_later_life_takes_the_place_of_the_old_one)
{
    struct node a, b, again;
    pair(&a, &b);
    struct cn_links_config config = config_of(&again, 1, 7);
    config.life = 2;
    node_open_on(&loop, &again, &config);
    know(&again, &b);
    UNTIL(b.ups == 2 && again.ups == 1);
    CHECK_INT(1, b.downs);
    unsigned ups = a.ups; /* the old one dials in vain */
    UNTIL(a.downs == ups);
    for (int i = 0; i < 20; i++)
        uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(2, b.ups);
    CHECK(cn_links_send(b.links, 1, CN_FRAME_MESSAGE, "x", 1, NULL, 0));
    UNTIL(again.frames == 1);
    node_close(&again);
    end_pair(&a, &b);
}

TEST(link, is_made_again_after_it_broke)
{
    struct node a, b;
    pair(&a, &b);
    node_close(&b);
    UNTIL(a.downs == 1);
    CHECK_INT(0, cn_links_room(a.links, 2));
    node_open(&b, 2, 7);
    know(&a, &b); /* another port */
    UNTIL(a.ups == 2 && b.ups == 1);
    end_pair(&a, &b);
}

/* L4 */
TEST(link, refuses_what_does_not_fit_and_says_when_there_is_room)
{
    static uint8_t body[30000];
    struct node a, b;
    begin();
    struct cn_links_config config = config_of(&a, 1, 7);
    config.queue_max = 64 << 10;
    node_open_on(&loop, &a, &config);
    node_open(&b, 2, 7);
    know(&a, &b);
    UNTIL(a.ups == 1 && b.ups == 1);
    unsigned sent = 0;
    while (cn_links_send(a.links, 2, CN_FRAME_COPY, body, sizeof(body), NULL, 0))
        sent++;
    CHECK_INT(2, sent);
    CHECK(cn_links_room(a.links, 2) < sizeof(body));
    UNTIL(a.rooms == 1);
    CHECK(cn_links_room(a.links, 2) > sizeof(body));
    UNTIL(b.frames == 2);
    end_pair(&a, &b);
}

/* L4: in total, whoever it is for. */
TEST(link, has_a_bound_for_all_of_them)
{
    static uint8_t body[30000];
    struct node a, b, c;
    begin();
    struct cn_links_config config = config_of(&a, 1, 7);
    config.queue_total_max = 64 << 10;
    node_open_on(&loop, &a, &config);
    node_open(&b, 2, 7);
    node_open(&c, 3, 7);
    struct cn_link_peer both[] = {{2, b.address}, {3, c.address}};
    cn_links_know(a.links, both, 2);
    UNTIL(a.ups == 2 && b.ups == 1 && c.ups == 1);
    CHECK(cn_links_send(a.links, 2, CN_FRAME_COPY, body, sizeof(body), NULL, 0));
    CHECK(cn_links_send(a.links, 3, CN_FRAME_COPY, body, sizeof(body), NULL, 0));
    CHECK(!cn_links_send(a.links, 3, CN_FRAME_COPY, body, sizeof(body), NULL, 0));
    UNTIL(b.frames == 1 && c.frames == 1 && a.rooms == 1);
    node_close(&c);
    end_pair(&a, &b);
}

/* L5: its kernel acknowledges, and nobody is there. */
TEST(link, of_a_frozen_process_is_closed_and_told_as_silent)
{
    struct node a, b;
    uv_loop_t frozen;
    begin();
    CHECK_INT(0, cn_loop_init(&frozen, NULL));
    struct cn_links_config config = config_of(&a, 1, 7), other = config_of(&b, 2, 7);
    config.beat_ms = 20;
    config.silent_ms = 200;
    node_open_on(&loop, &a, &config);
    node_open_on(&frozen, &b, &other);
    know(&a, &b);
    while (!a.ups || !b.ups) {
        uv_run(&loop, UV_RUN_NOWAIT);
        uv_run(&frozen, UV_RUN_NOWAIT);
    }
    UNTIL(a.downs == 1);
    CHECK_INT(1, a.silents);
    while (a.ups < 2) { /* it goes on */
        uv_run(&loop, UV_RUN_NOWAIT);
        uv_run(&frozen, UV_RUN_NOWAIT);
    }
    CHECK_INT(0, b.silents); /* what had come while it slept was read before it judged */
    node_close(&a);
    cn_links_free(b.links, on_closed, &b);
    uv_run(&frozen, UV_RUN_DEFAULT);
    CHECK(b.closed);
    cn_buf_fini(&b.got);
    CHECK_INT(0, uv_loop_close(&frozen));
    end();
}

/* --- a peer that has the key and no manners --------------------------------------------------- */

struct raw {
    int fd;
    struct cn_tls_context *context;
    struct cn_tls *tls;
    struct cn_buf got;
    bool ended;
};

static void raw_open(struct raw *raw, const struct node *to)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(to->port)};
    uint8_t key[CN_TLS_KEY_SIZE];
    struct cn_err err;
    memset(key, 7, sizeof(key));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *raw = (struct raw){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    CHECK_INT(0, connect(raw->fd, (struct sockaddr *)&address, sizeof(address)));
    CHECK_INT(0, cn_tls_context_new_keyed(key, &raw->context, &err));
    raw->tls = cn_tls_new_keyed(raw->context);
}

static bool raw_step(struct raw *raw)
{
    uint8_t bytes[4096];
    ssize_t size = recv(raw->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno == ECONNRESET))
        raw->ended = true;
    if (size > 0)
        cn_tls_feed(raw->tls, bytes, (size_t)size);
    int got = cn_tls_read(raw->tls, bytes, sizeof(bytes));
    if (got > 0)
        cn_buf_append(&raw->got, bytes, (size_t)got);
    while ((size = (ssize_t)cn_tls_take_output(raw->tls, bytes, sizeof(bytes))) > 0)
        (void)!send(raw->fd, bytes, (size_t)size, MSG_NOSIGNAL);
    uv_run(&loop, UV_RUN_NOWAIT);
    return true;
}

static void raw_send(struct raw *raw, const void *bytes, size_t size)
{
    while (!cn_tls_is_secure(raw->tls))
        raw_step(raw);
    CHECK_INT(size, cn_tls_write(raw->tls, bytes, size));
    raw_step(raw);
}

static void raw_hello(struct raw *raw, uint64_t disk, uint64_t to)
{
    struct cn_frame_hello hello = {.version = CN_FRAME_VERSION, .disk = disk, .life = 1, .to = to};
    uint8_t frame[CN_FRAME_HEAD_SIZE + CN_FRAME_HELLO_SIZE];
    memcpy(hello.cluster, CLUSTER, CN_FRAME_CLUSTER_SIZE);
    cn_frame_put_head(frame, CN_FRAME_HELLO, 0, CN_FRAME_HELLO_SIZE);
    cn_frame_put_hello(frame + CN_FRAME_HEAD_SIZE, &hello);
    raw_send(raw, frame, sizeof(frame));
}

static void raw_close(struct raw *raw)
{
    close(raw->fd);
    cn_tls_free(raw->tls);
    cn_tls_context_unref(raw->context);
    cn_buf_fini(&raw->got);
}

/* L6 */
TEST(link, is_closed_by_a_malformed_frame_and_the_others_are_not)
{
    struct node a, b;
    struct raw raw;
    static const uint8_t wrong[CN_FRAME_HEAD_SIZE] = {1, 2, 3, 4};
    pair(&a, &b);
    raw_open(&raw, &b);
    raw_hello(&raw, 9, 2);
    while (b.ups < 2)
        raw_step(&raw);
    raw_send(&raw, wrong, sizeof(wrong));
    while (!raw.ended)
        raw_step(&raw);
    CHECK_INT(1, b.downs);
    raw_close(&raw);
    raw_open(&raw, &b);
    raw_hello(&raw, 9, 2);
    raw_hello(&raw, 9, 2); /* twice */
    while (!raw.ended)
        raw_step(&raw);
    CHECK_INT(2, b.downs);
    raw_close(&raw);
    raw_open(&raw, &b);
    raw_send(&raw, wrong, sizeof(wrong)); /* instead of HELLO */
    while (!raw.ended)
        raw_step(&raw);
    raw_close(&raw);
    CHECK_INT(2, b.downs);
    uint8_t body[CN_FRAME_HEAD_SIZE + 13] = {0}; /* is of no message, says who has the links */
    cn_frame_put_head(body, CN_FRAME_MESSAGE, 0, 13);
    raw_open(&raw, &b);
    raw_hello(&raw, 9, 2);
    raw_send(&raw, body, sizeof(body));
    while (!raw.ended)
        raw_step(&raw);
    raw_close(&raw);
    CHECK_INT(3, b.downs);
    b.frames = 0;
    struct cn_links_stats stats;
    cn_links_stats(b.links, &stats);
    CHECK_INT(4, stats.malformed);
    CHECK_INT(1, stats.up);
    CHECK(cn_links_send(a.links, 2, CN_FRAME_MESSAGE, "x", 1, NULL, 0));
    UNTIL(b.frames == 1);
    end_pair(&a, &b);
}

/* L4: and one that says HELLO is served all the same. */
TEST(link, lets_the_oldest_give_way_of_too_many_who_say_nothing)
{
    enum { MANY = CN_LINKS_GREETING_MAX + 20 };
    struct node a, b;
    int fds[MANY];
    struct sockaddr_in address = {.sin_family = AF_INET};
    begin();
    node_open(&b, 2, 7);
    address.sin_port = htons(b.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    unsigned closed = 0;
    for (int i = 0; i < MANY; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_INT(0, connect(fds[i], (struct sockaddr *)&address, sizeof(address)));
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    while (closed < MANY - CN_LINKS_GREETING_MAX) {
        char byte;
        uv_run(&loop, UV_RUN_NOWAIT);
        closed = 0;
        for (int i = 0; i < MANY; i++)
            closed += recv(fds[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0 || errno == ECONNRESET;
    }
    node_open(&a, 1, 7);
    know(&a, &b);
    UNTIL(a.ups == 1 && b.ups == 1);
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
    end_pair(&a, &b);
}

TEST(link, can_be_freed_in_the_middle_of_dialing)
{
    struct node a;
    begin();
    node_open(&a, 1, 7);
    struct cn_link_peer peers[] = {
        {2, "127.0.0.1:1"}, {3, "no-such-host.invalid:1"}, {4, "nonsense"}, {5, "192.0.2.1:9"}};
    cn_links_know(a.links, peers, 4);
    for (int i = 0; i < 5; i++)
        uv_run(&loop, UV_RUN_ONCE);
    node_close(&a);
    end();
}
