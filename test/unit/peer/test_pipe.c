/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes between lanes, over loopback: questions and answers of every size, what is bounded, what
 * becomes of them when a pipe breaks, and what a bad peer can do. */
#include "peer/pipe.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/wire.h"
#include "net/stream.h"
#include "net/tls.h"
#include "test/lib/test.h"

static const char CLUSTER[] = "01234567-89ab-cdef-0123-456789abcdef";
static uv_loop_t loop;

#define UNTIL(condition) \
    while (!(condition)) \
    CHECK(uv_run(&loop, UV_RUN_ONCE) | 1)

struct got {
    uint64_t ticket;
    uint8_t *bytes;
    size_t size;
};

/* A node of one lane that keeps what it is asked until it is told to answer. */
struct node {
    struct cn_links *links;
    struct cn_pipes *pipes;
    struct cn_tls_context *tls;
    struct cn_pipe_budget budget;
    uint64_t disk;
    uint16_t port;
    bool echoes, dead;
    struct got got[4096];
    unsigned count, gone, handed;
    unsigned lane_of_last;
    uint64_t session_of_last;
    struct node *other; /* whom it knows */
    bool links_closed, pipes_closed;
};

static bool find_address(void *data, uint64_t disk, char address[CN_LINK_ADDRESS_MAX + 1])
{
    struct node *node = data;
    if (!node->other || node->other->disk != disk)
        return false;
    snprintf(address, CN_LINK_ADDRESS_MAX, "127.0.0.1:%u", node->other->port);
    return true;
}

static void on_asked(void *data, const struct cn_pipe_asker *asker, uint64_t ticket, uint8_t *bytes,
                     size_t size)
{
    struct node *node = data;
    CHECK(asker->disk == node->other->disk);
    node->session_of_last = asker->session;
    if (node->echoes) {
        CHECK(cn_pipes_answer(node->pipes, ticket, "<", 1, bytes, size));
        node->count++;
        return;
    }
    CHECK(node->count < 4096);
    node->got[node->count++] = (struct got){ticket, bytes, size};
}

static void on_gone(void *data, const struct cn_pipe_asker *asker)
{
    CHECK(asker->disk);
    ((struct node *)data)->gone++;
}

static void on_pipe(void *data, struct cn_stream_moved *moved, const uint8_t *body, size_t size)
{
    struct node *node = data;
    node->handed++;
    CHECK(cn_pipe_hello_lane(body, size, 1) == 0);
    if (node->dead)
        cn_stream_moved_drop(moved);
    else
        cn_pipes_accept(node->pipes, moved, body, size);
}

static void no_up(void *data, uint64_t disk)
{
}
static void no_down(void *data, uint64_t disk, bool silent, const char *why)
{
}
static bool no_frame(void *data, uint64_t disk, const struct cn_frame *frame)
{
    return false;
}
static void no_room(void *data, uint64_t disk)
{
}

static struct cn_pipes_config config_of(struct node *node, uint8_t key)
{
    struct cn_pipes_config config = {.disk = node->disk,
                                     .life = 1,
                                     .lane_count = 1,
                                     .budget = &node->budget,
                                     .retry_ms = 10,
                                     .retry_max_ms = 20,
                                     .hooks = {node, find_address, on_asked, on_gone}};
    uint8_t secret[CN_TLS_KEY_SIZE];
    struct cn_err err;
    memcpy(config.cluster, CLUSTER, sizeof(CLUSTER));
    memset(secret, key, sizeof(secret));
    CHECK_INT(0, cn_tls_context_new_keyed(secret, &node->tls, &err));
    config.tls = node->tls;
    return config;
}

static void open_links(struct node *node, uint8_t key)
{
    struct cn_err err;
    struct cn_links_config links = {
        .disk = node->disk, .life = 1, .hooks = {node, no_up, no_down, no_frame, no_room, on_pipe}};
    memcpy(links.cluster, CLUSTER, sizeof(CLUSTER));
    memset(links.key, key, sizeof(links.key));
    links.listen_fd = cn_links_bind("127.0.0.1", 0, &node->port, &err);
    CHECK_INT(0, cn_links_new(&loop, &links, &node->links, &err));
}

static void node_open_with(struct node *node, uint64_t disk, uint8_t key,
                           void (*change)(struct cn_pipes_config *config))
{
    *node = (struct node){.disk = disk};
    struct cn_pipes_config config = config_of(node, key);
    if (change)
        change(&config);
    node->pipes = cn_pipes_new(&loop, &config);
    open_links(node, key);
}

static void set_true(void *data)
{
    *(bool *)data = true;
}

static void close_pipes(struct node *node)
{
    cn_pipes_free(node->pipes, set_true, &node->pipes_closed);
    UNTIL(node->pipes_closed);
    node->pipes = NULL;
}

static void node_close(struct node *node)
{
    cn_links_free(node->links, set_true, &node->links_closed);
    if (node->pipes)
        close_pipes(node);
    UNTIL(node->links_closed);
    for (unsigned i = 0; i < node->count && !node->echoes; i++)
        cn_free(node->got[i].bytes);
    cn_tls_context_unref(node->tls);
    CHECK_INT(0, atomic_load(&node->budget.used));
}

static struct node *a, *b;

static void pair_with(void (*change)(struct cn_pipes_config *config))
{
    CHECK_INT(0, cn_loop_init(&loop, NULL));
    a = CN_NEW(struct node);
    b = CN_NEW(struct node);
    node_open_with(a, 1, 7, change);
    node_open_with(b, 2, 7, change);
    a->other = b;
    b->other = a;
}

static void pair(void)
{
    pair_with(NULL);
}

static void end_pair(void)
{
    node_close(a);
    node_close(b);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(0, uv_loop_close(&loop));
    cn_free(a);
    cn_free(b);
}

struct ask {
    struct cn_pipe_question question;
    bool ended;
    unsigned place; /* in the order of ends */
    enum cn_pipe_end end;
    uint8_t *bytes, *sent;
    size_t size;
};
static unsigned ends;

static void on_done(struct cn_pipe_question *question, enum cn_pipe_end end, uint8_t *bytes,
                    size_t size)
{
    struct ask *ask = CN_CONTAINER_OF(question, struct ask, question);
    CHECK(!ask->ended);
    ask->ended = true;
    ask->end = end;
    ask->bytes = bytes;
    ask->size = size;
    ask->place = ends++;
}

static int ask_bytes(struct ask *ask, size_t head, size_t body, uint64_t order)
{
    *ask = (struct ask){0};
    ask->sent = cn_alloc(head + body + 1);
    for (size_t i = 0; i < head + body; i++)
        ask->sent[i] = (uint8_t)(i * 7 + i / 251);
    ask->question = (struct cn_pipe_question){.head = ask->sent,
                                              .head_size = head,
                                              .body = ask->sent + head,
                                              .body_size = body,
                                              .order = order,
                                              .done = on_done};
    return cn_pipes_ask(a->pipes, 2, 5, &ask->question);
}

static void ask_end(struct ask *ask)
{
    cn_free(ask->bytes);
    cn_free(ask->sent);
}

static void ask_check_echo(struct ask *ask)
{
    size_t size = ask->question.head_size + ask->question.body_size;
    CHECK_INT(CN_PIPE_ANSWERED, ask->end);
    CHECK_INT(size + 1, ask->size);
    CHECK(ask->bytes[0] == '<' && memcmp(ask->bytes + 1, ask->sent, size) == 0);
    ask_end(ask);
}

/* T4: around the bounds of pieces, and the largest. */
TEST(pipe, carries_messages_of_every_size_there_and_back)
{
    static const size_t sizes[] = {0,
                                   1,
                                   CN_PIPE_PIECE_MAX - 3,
                                   CN_PIPE_PIECE_MAX - 2,
                                   CN_PIPE_PIECE_MAX - 1,
                                   CN_PIPE_PIECE_MAX,
                                   2 * CN_PIPE_PIECE_MAX - 2,
                                   2 * CN_PIPE_PIECE_MAX,
                                   5000000,
                                   CN_PIPE_MESSAGE_MAX - 3};
    pair();
    b->echoes = true;
    for (size_t i = 0; i < CN_ARRAY_COUNT(sizes); i++) {
        struct ask ask;
        CHECK_INT(0, ask_bytes(&ask, 2, sizes[i], 0));
        UNTIL(ask.ended);
        ask_check_echo(&ask);
    }
    struct cn_pipes_stats stats;
    cn_pipes_stats(a->pipes, &stats);
    CHECK_INT(1, stats.out_up);
    CHECK_INT(0, stats.asked_bytes);
    CHECK_INT(1, b->handed); /* one connection for all of them */
    end_pair();
}

TEST(pipe, carries_many_at_once_by_turns)
{
    enum { COUNT = 400 };
    static struct ask asks[COUNT];
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    pair();
    b->echoes = true;
    for (unsigned i = 0; i < COUNT; i++) {
        size_t size = cn_rand_below(&rand, i % 20 ? 2000 : 300000);
        CHECK_INT(0, ask_bytes(&asks[i], cn_rand_below(&rand, 100000), size, i % 3));
    }
    for (unsigned i = 0; i < COUNT; i++)
        UNTIL(asks[i].ended);
    for (unsigned i = 0; i < COUNT; i++)
        ask_check_echo(&asks[i]);
    end_pair();
}

/* A small one does not wait for a large one before it, unless it must (T3). */
TEST(pipe, lets_small_ones_pass_large_ones_but_keeps_what_is_in_order)
{
    struct ask large, other, same, same_large, last;
    pair();
    ends = 0;
    CHECK_INT(0, ask_bytes(&large, 1, 20 << 20, 9));
    CHECK_INT(0, ask_bytes(&other, 1, 10, 8));
    CHECK_INT(0, ask_bytes(&same, 1, 11, 9));
    CHECK_INT(0, ask_bytes(&same_large, 1, 1 << 20, 9));
    CHECK_INT(0, ask_bytes(&last, 1, 12, 9));
    UNTIL(b->count == 5);
    CHECK_INT(11, b->got[0].size);
    CHECK_INT((20 << 20) + 1, b->got[1].size);
    CHECK_INT(12, b->got[2].size);
    CHECK_INT((1 << 20) + 1, b->got[3].size);
    CHECK_INT(13, b->got[4].size);
    for (unsigned i = 0; i < 5; i++)
        CHECK(cn_pipes_answer(b->pipes, b->got[i].ticket, "ok", 2, NULL, 0));
    UNTIL(ends == 5);
    struct ask *all[] = {&large, &other, &same, &same_large, &last};
    for (unsigned i = 0; i < 5; i++)
        ask_end(all[i]);
    end_pair();
}

/* T5: two large ones that do not fit the budget together come one after the other. */
TEST(pipe, grants_room_by_its_budget)
{
    struct ask asks[6];
    pair();
    b->echoes = true;
    a->budget.max = b->budget.max = 3 << 20;
    for (unsigned i = 0; i < 6; i++)
        CHECK_INT(0, ask_bytes(&asks[i], 1, 2 << 20, 0));
    size_t most = 0;
    for (unsigned i = 0; i < 6; i++) {
        while (!asks[i].ended) {
            uv_run(&loop, UV_RUN_ONCE);
            size_t used = atomic_load(&b->budget.used);
            most = used > most ? used : most;
        }
    }
    CHECK(most > 0 && most <= 3 << 20);
    for (unsigned i = 0; i < 6; i++)
        ask_check_echo(&asks[i]);
    end_pair();
}

static void make_small(struct cn_pipes_config *config)
{
    config->asked_max = 1000;
    config->answers_max = 100;
}

TEST(pipe, refuses_questions_and_answers_beyond_its_bounds)
{
    struct ask first, second, third;
    pair_with(make_small);
    CHECK_INT(0, ask_bytes(&first, 1, 5000, 0)); /* a single one always fits */
    CHECK_INT(CN_EOVERLOADED, ask_bytes(&second, 1, 10, 0));
    ask_end(&second);
    UNTIL(b->count == 1);
    uint8_t *large = cn_alloc_zero(30 << 20);
    CHECK(cn_pipes_answer(b->pipes, b->got[0].ticket, "", 0, large, 30 << 20));
    UNTIL(first.ended);
    CHECK_INT(30 << 20, first.size);
    CHECK_INT(0, ask_bytes(&second, 1, 10, 0));
    CHECK_INT(0, ask_bytes(&third, 1, 10, 0));
    UNTIL(b->count == 3);
    CHECK(cn_pipes_answer(b->pipes, b->got[1].ticket, "", 0, cn_alloc_zero(30 << 20), 30 << 20));
    uint8_t *more = cn_alloc_zero(CN_PIPE_SMALL_MAX + 1);
    CHECK(!cn_pipes_answer(b->pipes, b->got[2].ticket, "", 0, more, CN_PIPE_SMALL_MAX + 1));
    cn_free(more);
    CHECK(cn_pipes_waits(b->pipes, b->got[2].ticket)); /* it is still to be answered */
    /* A small one always fits, or nobody would tell who asked. */
    CHECK(cn_pipes_answer(b->pipes, b->got[2].ticket, "less", 4, NULL, 0));
    UNTIL(second.ended && third.ended);
    CHECK(third.end == CN_PIPE_ANSWERED && third.size == 4);
    ask_end(&first);
    ask_end(&second);
    ask_end(&third);
    end_pair();
}

/* T2: what was sent may have happened, what was not has not. */
TEST(pipe, tells_what_was_lost_from_what_was_never_sent)
{
    struct ask sent, half, later;
    pair();
    CHECK_INT(0, ask_bytes(&sent, 1, 10, 0));
    UNTIL(b->count == 1);
    b->budget.max = 1;
    atomic_store(&b->budget.used, 1); /* no room but for one */
    struct ask holder;
    CHECK_INT(0, ask_bytes(&holder, 1, 30 << 20, 0));
    CHECK_INT(0, ask_bytes(&half, 1, 1 << 20, 0));
    struct cn_pipes_stats stats;
    do {
        uv_run(&loop, UV_RUN_ONCE);
        cn_pipes_stats(b->pipes, &stats);
    } while (stats.received_bytes < 1000);
    ends = 0;
    cn_pipes_break(b->pipes, 1);
    UNTIL(ends == 3);
    CHECK_INT(CN_PIPE_LOST, sent.end);
    CHECK_INT(CN_PIPE_UNSENT, holder.end);
    CHECK_INT(CN_PIPE_UNSENT, half.end);
    CHECK(sent.place < holder.place && holder.place < half.place); /* as they were asked */
    CHECK_INT(1, b->gone);
    CHECK(!cn_pipes_waits(b->pipes, b->got[0].ticket));
    CHECK(cn_pipes_answer(b->pipes, b->got[0].ticket, "late", 4, NULL, 0));
    atomic_store(&b->budget.used, 0);
    /* It pauses, and is dialed again. */
    int rc = ask_bytes(&later, 1, 10, 0);
    while (rc == CN_ECLOSED) {
        ask_end(&later);
        uv_run(&loop, UV_RUN_NOWAIT);
        rc = ask_bytes(&later, 1, 10, 0);
    }
    CHECK_INT(0, rc);
    UNTIL(b->count == 2);
    CHECK(cn_pipes_answer(b->pipes, b->got[1].ticket, "ok", 2, NULL, 0));
    UNTIL(later.ended);
    CHECK_INT(CN_PIPE_ANSWERED, later.end);
    ask_end(&sent);
    ask_end(&holder);
    ask_end(&half);
    ask_end(&later);
    end_pair();
}

TEST(pipe, fails_what_waits_when_nobody_is_there)
{
    struct ask first, second;
    pair();
    CHECK_INT(0, ask_bytes(&first, 1, 1, 0));
    b->dead = true;
    UNTIL(first.ended);
    CHECK_INT(CN_PIPE_UNSENT, first.end);
    ask_end(&first);
    a->other = NULL;
    int rc;
    while ((rc = ask_bytes(&second, 1, 1, 0)) == CN_ECLOSED) {
        ask_end(&second);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    CHECK_INT(CN_ENOTFOUND, rc);
    ask_end(&second);
    end_pair();
}

TEST(pipe, forgets_what_is_cancelled_in_every_state)
{
    struct ask waiting, whole, large, answered, after;
    pair();
    CHECK_INT(0, ask_bytes(&waiting, 1, 1, 0));
    cn_pipes_cancel(a->pipes, &waiting.question);
    ask_end(&waiting);
    CHECK_INT(0, ask_bytes(&whole, 1, 1, 0));
    UNTIL(b->count == 1);
    cn_pipes_cancel(a->pipes, &whole.question);
    ask_end(&whole);
    UNTIL(!cn_pipes_waits(b->pipes, b->got[0].ticket));
    /* In the middle of pieces. */
    struct cn_pipes_stats stats;
    CHECK_INT(0, ask_bytes(&large, 1, 30 << 20, 3));
    CHECK_INT(0, ask_bytes(&after, 1, 1, 3)); /* behind it */
    do {
        uv_run(&loop, UV_RUN_ONCE);
        cn_pipes_stats(b->pipes, &stats);
    } while (stats.received_bytes < 1 << 20);
    cn_pipes_cancel(a->pipes, &large.question);
    ask_end(&large);
    UNTIL(b->count == 2);
    CHECK_INT(2, b->got[1].size);
    CHECK(cn_pipes_answer(b->pipes, b->got[1].ticket, "ok", 2, NULL, 0));
    UNTIL(after.ended);
    ask_end(&after);
    /* In the middle of a large answer, and before it has room. */
    for (unsigned i = 0; i < 2; i++) {
        CHECK_INT(0, ask_bytes(&answered, 1, 1, 0));
        UNTIL(b->count == 3 + i);
        CHECK(cn_pipes_answer(b->pipes, b->got[2 + i].ticket, "", 0, cn_alloc_zero(30 << 20),
                              30 << 20));
        struct cn_pipes_stats before;
        cn_pipes_stats(a->pipes, &before);
        do {
            uv_run(&loop, UV_RUN_ONCE);
            cn_pipes_stats(a->pipes, &stats);
        } while (stats.received_bytes - before.received_bytes < (i ? 1 : 1 << 20));
        cn_pipes_cancel(a->pipes, &answered.question);
        ask_end(&answered);
    }
    /* Channels are free again, and nothing is counted twice. */
    b->echoes = false;
    CHECK_INT(0, ask_bytes(&after, 1, 1, 0));
    UNTIL(b->count == 5);
    CHECK(cn_pipes_answer(b->pipes, b->got[4].ticket, "ok", 2, NULL, 0));
    UNTIL(after.ended);
    CHECK_INT(CN_PIPE_ANSWERED, after.end);
    ask_end(&after);
    cn_pipes_stats(a->pipes, &stats);
    CHECK_INT(0, stats.asked_bytes);
    UNTIL(atomic_load(&a->budget.used) == 0 && atomic_load(&b->budget.used) == 0);
    do {
        cn_pipes_stats(b->pipes, &stats);
    } while (stats.answer_bytes && uv_run(&loop, UV_RUN_ONCE));
    CHECK_INT(0, stats.answer_bytes);
    CHECK_INT(0, stats.malformed);
    end_pair();
}

static void make_quick(struct cn_pipes_config *config)
{
    config->beat_ms = 20;
    config->silent_ms = 300;
}

/* T7: beats keep it; an asker that says nothing is closed. */
TEST(pipe, stays_while_both_beat)
{
    struct ask ask;
    pair_with(make_quick);
    b->echoes = true;
    CHECK_INT(0, ask_bytes(&ask, 1, 1, 0));
    UNTIL(ask.ended);
    ask_check_echo(&ask);
    uint64_t until = uv_hrtime() + 700000000;
    while (uv_hrtime() < until)
        uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(0, ask_bytes(&ask, 1, 1, 0));
    UNTIL(ask.ended);
    ask_check_echo(&ask);
    CHECK_INT(1, b->handed);
    end_pair();
}

static void make_three_lanes(struct cn_pipes_config *config)
{
    if (config->disk == 2) {
        config->lane_count = 3;
        config->lane = 2; /* 5 mod 3 */
    }
}

/* A node with another number of lanes says so, and is asked on the right one next time. */
TEST(pipe, learns_how_many_lanes_a_peer_has)
{
    struct ask ask;
    pair_with(make_three_lanes);
    b->echoes = true;
    int rc = ask_bytes(&ask, 1, 1, 0);
    CHECK_INT(0, rc);
    UNTIL(ask.ended);
    CHECK_INT(CN_PIPE_UNSENT, ask.end);
    do {
        ask_end(&ask);
        uv_run(&loop, UV_RUN_NOWAIT);
        rc = ask_bytes(&ask, 1, 1, 0);
    } while (rc == CN_ECLOSED);
    CHECK_INT(0, rc);
    UNTIL(ask.ended);
    ask_check_echo(&ask);
    end_pair();
}

static void set_other_cluster(struct cn_pipes_config *config)
{
    if (config->disk == 1)
        config->cluster[0] = 'x';
}

/* T1 */
TEST(pipe, is_refused_with_another_key_cluster_or_disk)
{
    struct ask ask;
    pair_with(set_other_cluster);
    CHECK_INT(0, ask_bytes(&ask, 1, 1, 0));
    UNTIL(ask.ended);
    CHECK_INT(CN_PIPE_UNSENT, ask.end);
    CHECK(b->handed == 1 && b->count == 0);
    ask_end(&ask);
    end_pair();

    pair();
    close_pipes(a);
    cn_tls_context_unref(a->tls);
    struct cn_pipes_config config = config_of(a, 8); /* an old key */
    a->pipes = cn_pipes_new(&loop, &config);
    a->pipes_closed = false;
    CHECK_INT(0, ask_bytes(&ask, 1, 1, 0));
    UNTIL(ask.ended);
    CHECK_INT(CN_PIPE_UNSENT, ask.end);
    CHECK(b->handed == 0 && b->count == 0);
    ask_end(&ask);
    end_pair();

    pair();
    a->other->disk = 3; /* a new tenant of the address */
    a->pipes_closed = false;
    *&ask = (struct ask){.sent = cn_alloc(1), .question = {.done = on_done}};
    CHECK_INT(0, cn_pipes_ask(a->pipes, 3, 0, &ask.question));
    UNTIL(ask.ended);
    CHECK_INT(CN_PIPE_UNSENT, ask.end);
    CHECK(b->handed == 1 && b->count == 0);
    ask_end(&ask);
    end_pair();
}

/* --- a bad peer: it has the key, and greets as it should ------------------------------------- */

struct bad {
    struct cn_stream_lane *lane;
    struct cn_stream *stream;
    struct cn_buf got;
    bool ended, closed, lane_closed;
};
static struct bad bad;

static void bad_data(struct cn_stream *stream, const uint8_t *bytes, size_t size)
{
    cn_buf_append(&bad.got, bytes, size);
}

static void bad_end(struct cn_stream *stream, int status)
{
    bad.ended = true;
}

static void bad_closed(struct cn_stream *stream)
{
    bad.closed = true;
}

static const struct cn_stream_callbacks bad_callbacks = {
    .on_data = bad_data, .on_end = bad_end, .on_closed = bad_closed};

static void bad_send(unsigned kind, uint32_t channel, const void *body, size_t size)
{
    uint8_t head[CN_FRAME_HEAD_SIZE];
    cn_frame_put_head(head, (enum cn_frame_kind)kind, channel, size);
    cn_stream_write(bad.stream, head, sizeof(head));
    cn_stream_write(bad.stream, body, size);
}

/* The fields of PIPE as pipe_ask.c writes them. */
static void bad_hello(void)
{
    struct cn_buf body = {0};
    static const char numbers[] = "\x04\x01\x08\x01\x0d\x24";
    cn_buf_append(&body, numbers, 6);
    cn_buf_append(&body, CLUSTER, CN_FRAME_CLUSTER_SIZE);
    cn_buf_append(&body, "\x10\x01\x14\x01\x18\x02", 6);
    bad_send(CN_FRAME_PIPE, 0, body.data, body.size);
    cn_buf_fini(&body);
}

static void bad_open(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(b->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bad = (struct bad){.lane = cn_stream_lane_new(&loop, NULL, NULL)};
    struct cn_stream_moved moved = {.fd = socket(AF_INET, SOCK_STREAM, 0),
                                    .tls = cn_tls_new_keyed(b->tls)};
    CHECK_INT(0, connect(moved.fd, (struct sockaddr *)&address, sizeof(address)));
    bad.stream = cn_stream_arrive(bad.lane, &moved, &bad_callbacks, NULL);
    cn_stream_resume(bad.stream);
    bad_hello();
    UNTIL(bad.got.size >= CN_FRAME_HEAD_SIZE);
    CHECK_INT(CN_FRAME_WELCOME, bad.got.data[4]);
}

static void bad_close(void)
{
    cn_stream_close(bad.stream, true);
    UNTIL(bad.closed);
    cn_stream_lane_free(bad.lane, set_true, &bad.lane_closed);
    UNTIL(bad.lane_closed);
    cn_buf_fini(&bad.got);
}

static void check_bad(void (*send)(void))
{
    struct cn_pipes_stats stats;
    bad_open();
    send();
    UNTIL(bad.ended);
    cn_pipes_stats(b->pipes, &stats);
    CHECK_INT(1, stats.malformed);
    CHECK_INT(0, stats.in_up);
    bad_close();
}

static void channel_zero(void)
{
    bad_send(CN_FRAME_WHOLE, 0, "x", 1);
}
static void channel_beyond(void)
{
    bad_send(CN_FRAME_WHOLE, CN_PIPE_CHANNELS_MAX + 1, "x", 1);
}
static void channel_twice(void)
{
    bad_send(CN_FRAME_WHOLE, 1, "x", 1);
    bad_send(CN_FRAME_WHOLE, 1, "x", 1);
}
static void too_large(void)
{
    uint32_t size = CN_PIPE_MESSAGE_MAX + 1;
    bad_send(CN_FRAME_LARGE, 1, &size, 4);
}
static void too_small(void)
{
    uint32_t size = CN_PIPE_PIECE_MAX;
    bad_send(CN_FRAME_LARGE, 1, &size, 4);
}
static void piece_of_nothing(void)
{
    bad_send(CN_FRAME_PIECE, 1, "x", 1);
}
static void piece_beyond(void)
{
    static uint8_t piece[CN_PIPE_PIECE_MAX];
    uint32_t size = CN_PIPE_PIECE_MAX + 1;
    bad_send(CN_FRAME_LARGE, 1, &size, 4);
    size_t had = bad.got.size;
    UNTIL(bad.got.size > had); /* ROOM */
    bad_send(CN_FRAME_PIECE, 1, piece, sizeof(piece));
    bad_send(CN_FRAME_PIECE, 1, piece, 2);
}
static void unasked_room(void)
{
    bad_send(CN_FRAME_WHOLE, 1, "x", 1);
    bad_send(CN_FRAME_ROOM, 1, NULL, 0);
}
static void hello_again(void)
{
    bad_hello();
}
static void of_a_link(void)
{
    bad_send(CN_FRAME_MESSAGE, 0, "x", 1);
}
static void fat_whole(void)
{
    static uint8_t body[CN_PIPE_PIECE_MAX + 1];
    bad_send(CN_FRAME_WHOLE, 1, body, sizeof(body));
}
static void no_frame_at_all(void)
{
    cn_stream_write(bad.stream, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
}

/* T6, while another asks in peace. */
TEST(pipe, closes_one_that_breaks_a_rule_and_nothing_else)
{
    static void (*const all[])(void) = {
        channel_zero, channel_beyond, channel_twice, too_large, too_small, piece_of_nothing,
        piece_beyond, unasked_room,   hello_again,   of_a_link, fat_whole, no_frame_at_all};
    for (size_t i = 0; i < CN_ARRAY_COUNT(all); i++) {
        pair();
        check_bad(all[i]);
        unsigned count = b->count;
        struct ask ask;
        CHECK_INT(0, ask_bytes(&ask, 1, 100000, 0));
        UNTIL(b->count == count + 1);
        CHECK(cn_pipes_answer(b->pipes, b->got[count].ticket, "ok", 2, NULL, 0));
        UNTIL(ask.ended);
        CHECK_INT(CN_PIPE_ANSWERED, ask.end);
        ask_end(&ask);
        end_pair();
    }
}

/* T5: one that has the key, and asks and asks. What it costs is bounded, whatever it sends. */
TEST(pipe, closes_one_that_asks_more_than_it_may)
{
    static uint8_t body[CN_PIPE_PIECE_MAX];
    struct cn_pipes_stats stats;
    pair();
    bad_open();
    for (uint32_t channel = 1; channel <= 4095 && !bad.ended; channel++) { /* 256 MiB */
        bad_send(CN_FRAME_WHOLE, channel, body, sizeof(body));
        while (cn_stream_queued(bad.stream) > 1 << 20 && !bad.ended)
            uv_run(&loop, UV_RUN_ONCE);
    }
    UNTIL(bad.ended);
    CHECK_INT(2048, b->count); /* twice 64 MiB */
    cn_pipes_stats(b->pipes, &stats);
    CHECK_INT(1, stats.malformed);
    bad_close();
    end_pair();
}

/* And takes back what it asks, without taking what it is told. */
TEST(pipe, closes_one_that_does_not_take_what_it_is_sent)
{
    enum { AT_ONCE = 1000 };
    struct cn_pipes_stats stats = {0};
    uint32_t size = CN_PIPE_PIECE_MAX + 1;
    pair();
    bad_open();
    cn_stream_pause(bad.stream);
    uint64_t rounds = 0;
    for (; !stats.malformed && rounds < 3000; rounds++) {
        for (uint32_t channel = 1; channel <= AT_ONCE; channel++) {
            bad_send(CN_FRAME_LARGE, channel, &size, 4);
            bad_send(CN_FRAME_CANCEL, channel, NULL, 0);
        }
        while (cn_stream_queued(bad.stream) && !stats.malformed) {
            uv_run(&loop, UV_RUN_ONCE);
            cn_pipes_stats(b->pipes, &stats);
        }
    }
    CHECK_INT(1, stats.malformed);
    CHECK_INT(0, stats.in_up);
    bad_close();
    end_pair();
}

/* T7: it beats, and that is all. */
static void check_stuck(unsigned kind)
{
    struct cn_pipes_stats stats;
    uint32_t size = CN_PIPE_MESSAGE_MAX;
    pair_with(make_quick);
    bad_open();
    if (kind == CN_FRAME_WHOLE)
        cn_stream_pause(bad.stream);
    bad_send(kind, 1, &size, 4);
    if (kind == CN_FRAME_WHOLE) {
        UNTIL(b->count == 1);
        uint8_t *answer = cn_alloc_zero(CN_PIPE_PIECE_MAX);
        CHECK(cn_pipes_answer(b->pipes, b->got[0].ticket, NULL, 0, answer, CN_PIPE_PIECE_MAX));
        for (uint32_t i = 2; i < 2000 && !b->gone; i++) { /* more than the kernel keeps */
            bad_send(CN_FRAME_WHOLE, i, "x", 1);
            UNTIL(b->count == i || b->gone);
            if (b->gone)
                break; /* that was soon */
            answer = cn_alloc_zero(CN_PIPE_PIECE_MAX);
            CHECK(cn_pipes_answer(b->pipes, b->got[i - 1].ticket, NULL, 0, answer,
                                  CN_PIPE_PIECE_MAX));
        }
    }
    uint64_t until = uv_hrtime() + 20000000000;
    do {
        bad_send(CN_FRAME_BEAT, 0, NULL, 0);
        uv_run(&loop, UV_RUN_ONCE);
        cn_pipes_stats(b->pipes, &stats);
    } while (stats.in_up && uv_hrtime() < until);
    CHECK_INT(0, stats.in_up);
    CHECK_INT(0, stats.malformed);
    CHECK_INT(0, stats.answer_bytes);
    CHECK_INT(0, atomic_load(&b->budget.used));
    bad_close();
    end_pair();
}

TEST(pipe, closes_one_that_beats_and_takes_nothing)
{
    check_stuck(CN_FRAME_WHOLE);
}

TEST(pipe, closes_one_that_beats_and_sends_nothing_of_what_it_announced)
{
    check_stuck(CN_FRAME_LARGE);
}

/* T8 */
TEST(pipe, takes_the_place_of_the_one_before)
{
    struct ask ask;
    pair();
    CHECK_INT(0, ask_bytes(&ask, 1, 1, 0));
    UNTIL(b->count == 1);
    bad_open(); /* of the same disk and lane */
    CHECK_INT(1, b->gone);
    UNTIL(ask.ended);
    CHECK_INT(CN_PIPE_LOST, ask.end);
    ask_end(&ask);
    bad_close();
    end_pair();
}

/* The end of a node in the middle of everything. */
/* T10 */
TEST(pipe, tells_the_session_that_asks_and_is_closed_with_it)
{
    struct ask first, second, third;
    pair();
    b->echoes = true;
    CHECK_INT(0, ask_bytes(&first, 3, 0, 0));
    UNTIL(first.ended);
    CHECK(b->session_of_last == 0);
    cn_pipes_session(a->pipes, 77);
    CHECK_INT(0, ask_bytes(&second, 3, 0, 0)); /* no pause: it was not the peer's fault */
    UNTIL(second.ended);
    CHECK(b->session_of_last == 77 && b->gone == 1);
    cn_pipes_session(a->pipes, 77); /* the same: nothing happens */
    b->echoes = false;
    b->count = 0;
    CHECK_INT(0, ask_bytes(&third, 3, 0, 0));
    UNTIL(b->count == 1);
    CHECK(b->gone == 1);
    cn_pipes_session(a->pipes, 0);
    CHECK(third.ended && third.end == CN_PIPE_LOST);
    UNTIL(b->gone == 2);
    ask_check_echo(&first);
    ask_check_echo(&second);
    ask_end(&third);
    end_pair();
}

TEST(pipe, ends_with_questions_under_way)
{
    enum { COUNT = 50 };
    static struct ask asks[COUNT];
    pair();
    for (unsigned i = 0; i < COUNT; i++)
        CHECK_INT(0, ask_bytes(&asks[i], 1, i % 2 ? 10 : 1 << 20, i % 4));
    UNTIL(b->count >= 5);
    close_pipes(a);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(asks[i].ended && asks[i].end != CN_PIPE_ANSWERED);
        ask_end(&asks[i]);
    }
    end_pair();
}
