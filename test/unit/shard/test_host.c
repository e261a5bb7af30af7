/* SPDX-License-Identifier: Apache-2.0 */
/* A host on a real engine, with stores that are lists in memory: what lanes may do and when, what a
 * failing disk does, how it leaves, a copy to a second node. Faults of processes and of the engine
 * under load are test/cluster's. */
#include "shard/host.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "peer/frame.h"
#include "peer/link.h"
#include "test/lib/postgres.h"
#include "test/lib/test.h"

enum { SHARDS = 4, RECORDS = 4000 };

struct record {
    uint64_t lsn;
    char body[200];
};

struct store {
    bool here, open;
    uint64_t total, durable, coming;
    struct record log[RECORDS + 1];
};

struct node {
    struct cn_host *host;
    struct store stores[SHARDS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock */
    bool served[SHARDS], left, fail_settle, fail_write;
    unsigned serves, closes, stops, wakes, failures, creates, copies;
    bool keep_stopping; /* what runs does not end */
    uint64_t stop_ticket;
    uint32_t stop_shard;
    char failure[CN_ERR_TEXT_MAX];
    struct cn_engine_seen seen; /* that was remembered */
    unsigned remembers;
    bool fail_remember, fail_close;
};

static struct test_postgres server;

/* --- the disk ----------------------------------------------------------------------------------
 */

static int disk_create(void *data, uint32_t shard, struct cn_err *err)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    node->stores[shard].here = true;
    node->stores[shard].total = node->stores[shard].durable = 0;
    node->creates++;
    pthread_mutex_unlock(&node->lock);
    return 0;
}

static int disk_write(void *data, uint32_t shard, const void *records, size_t size,
                      struct cn_err *err)
{
    struct node *node = data;
    struct store *store = &node->stores[shard];
    const struct record *all = records;
    pthread_mutex_lock(&node->lock);
    bool fails = node->fail_write;
    CHECK(size % sizeof(*all) == 0 && store->here && !store->open);
    for (size_t i = 0; i < size / sizeof(*all) && !fails; i++) {
        if (all[i].lsn <= store->total)
            continue;
        CHECK_INT(store->total + 1, all[i].lsn);
        store->log[++store->total] = all[i];
    }
    store->durable = store->total;
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
    return fails ? cn_err_set(err, CN_EREADONLY, "the disk is full") : 0;
}

static int disk_open(void *data, uint32_t shard, uint64_t lsn, struct cn_err *err)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    CHECK(node->stores[shard].here && !node->stores[shard].open);
    CHECK_INT(lsn, node->stores[shard].total);
    node->stores[shard].open = true;
    pthread_mutex_unlock(&node->lock);
    return 0;
}

static int disk_close(void *data, uint32_t shard, struct cn_err *err)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    CHECK(node->stores[shard].open && !node->served[shard]);
    node->stores[shard].open = false;
    node->stores[shard].total = node->stores[shard].durable;
    bool fails = node->fail_close;
    pthread_mutex_unlock(&node->lock);
    return fails ? cn_err_set(err, CN_EREADONLY, "the disk is broken") : 0;
}

static int disk_discard(void *data, uint32_t shard, struct cn_err *err)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    memset(&node->stores[shard], 0, sizeof(struct store));
    pthread_mutex_unlock(&node->lock);
    return 0;
}

static uint64_t disk_appended(void *data, uint32_t shard)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    uint64_t total = node->stores[shard].total;
    pthread_mutex_unlock(&node->lock);
    return total;
}

static uint64_t disk_records(void *data, uint32_t shard, uint64_t from, uint64_t to, size_t max,
                             struct cn_buf *out)
{
    struct node *node = data;
    struct store *store = &node->stores[shard];
    uint64_t last = 0;
    pthread_mutex_lock(&node->lock);
    for (size_t size = 0; from <= to && from <= store->total; from++) {
        size += sizeof(struct record);
        if (last && size > max)
            break;
        cn_buf_append(out, &store->log[from], sizeof(struct record));
        last = from;
    }
    pthread_mutex_unlock(&node->lock);
    return last;
}

static int disk_settled(void *data, uint32_t shard, uint64_t lsn, struct cn_err *err)
{
    struct node *node = data;
    struct store *store = &node->stores[shard];
    pthread_mutex_lock(&node->lock);
    bool fails = node->fail_settle;
    CHECK(store->open && lsn > store->durable && lsn <= store->total); /* H3 */
    if (!fails)
        store->durable = lsn;
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
    return fails ? cn_err_set(err, CN_EREADONLY, "the disk is broken") : 0;
}

static void disk_refuse(void *data, uint32_t shard, const char *reason)
{
}

static int disk_copy_out(void *data, uint32_t shard, cn_host_piece piece, void *copy,
                         struct cn_err *err)
{
    struct node *node = data;
    struct store *store = &node->stores[shard];
    pthread_mutex_lock(&node->lock);
    uint64_t count = store->durable;
    pthread_mutex_unlock(&node->lock);
    int rc = 0;
    for (uint64_t i = 1; i <= count && rc == 0; i++)
        rc = piece(copy, &store->log[i], sizeof(struct record)); /* the past does not change */
    return rc;
}

static int disk_copy_begin(void *data, uint32_t shard, struct cn_err *err)
{
    return disk_discard(data, shard, err);
}

static int disk_copy_take(void *data, uint32_t shard, const void *bytes, size_t size,
                          struct cn_err *err)
{
    struct node *node = data;
    struct store *store = &node->stores[shard];
    pthread_mutex_lock(&node->lock);
    memcpy((char *)&store->log[1] + store->coming, bytes, size);
    store->coming += size;
    pthread_mutex_unlock(&node->lock);
    return 0;
}

static int disk_copy_end(void *data, uint32_t shard, uint64_t *lsn, struct cn_err *err)
{
    struct node *node = data;
    struct store *store = &node->stores[shard];
    pthread_mutex_lock(&node->lock);
    store->here = true;
    *lsn = store->total = store->durable = store->coming / sizeof(struct record);
    node->copies++;
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
    return 0;
}

/* --- the front ---------------------------------------------------------------------------------
 */

static int front_serve(void *data, uint32_t shard, struct cn_err *err)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    CHECK(node->stores[shard].open && !node->served[shard]);
    node->served[shard] = true;
    node->serves++;
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
    return 0;
}

static void front_stop(void *data, uint32_t shard, uint64_t ticket)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    CHECK(node->served[shard]);
    node->stops++;
    node->stop_ticket = ticket;
    node->stop_shard = shard;
    bool keep = node->keep_stopping;
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
    if (!keep)
        cn_host_stopped(node->host, shard, ticket);
}

static void front_resume(void *data, uint32_t shard)
{
}

static void front_close(void *data, uint32_t shard)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    CHECK(node->served[shard]);
    CHECK(!cn_host_may_leave(node->host, shard)); /* H2 */
    node->served[shard] = false;
    node->closes++;
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
    cn_host_shut(node->host, shard);
}

static void front_wake(void *data)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    node->wakes++;
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
}

/* --- its life ----------------------------------------------------------------------------------
 */

static int on_joined(void *data, struct cn_host *host, const struct cn_engine_pg_info *info,
                     struct cn_err *err)
{
    return 0;
}

static void on_failed(void *data, const struct cn_err *err)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    node->failures++;
    snprintf(node->failure, sizeof(node->failure), "%s", err->text);
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
}

static void on_left(void *data)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    node->left = true;
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
}

static int disk_sync(void *data, uint32_t shard, struct cn_err *err)
{
    return 0;
}

static int disk_remember(void *data, const struct cn_engine_seen *seen, struct cn_err *err)
{
    struct node *node = data;
    pthread_mutex_lock(&node->lock);
    bool fails = node->fail_remember;
    node->seen = *seen;
    node->remembers++;
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
    return fails ? cn_err_set(err, CN_ECORRUPT, "the disk is broken") : 0;
}

static struct cn_host_disk disks[3];
static struct cn_host_front fronts[3];
static struct node nodes[3];

static struct node *node_open_with(unsigned n, const struct cn_host_config *with)
{
    struct node *node = &nodes[n];
    struct cn_err err = {0};
    char conninfo[200], address[40], name[20];
    uint16_t port;
    memset(node, 0, sizeof(*node));
    pthread_mutex_init(&node->lock, NULL);
    pthread_cond_init(&node->changed, NULL);
    disks[n] = (struct cn_host_disk){
        node,          disk_create,   disk_write,      disk_open,      disk_close,
        disk_discard,  disk_sync,     disk_appended,   disk_records,   disk_settled,
        disk_refuse,   disk_copy_out, disk_copy_begin, disk_copy_take, disk_copy_end,
        disk_remember, NULL};
    fronts[n] = (struct cn_host_front){node,         front_serve, front_stop,
                                       front_resume, front_close, front_wake};
    snprintf(conninfo, sizeof(conninfo), "host=%s user=cairn dbname=postgres", server.dir);
    snprintf(name, sizeof(name), "node-%u", n);
    struct cn_host_config config = *with;
    config.conninfo = conninfo;
    config.node = name;
    config.listen_fd = cn_links_bind("127.0.0.1", 0, &port, &err);
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    config.address = address;
    config.disk = n + 1;
    config.life = 1 << 20;
    config.shard_count = SHARDS;
    config.disk_hands = &disks[n];
    config.front = &fronts[n];
    config.data = node;
    config.joined = on_joined;
    config.failed = on_failed;
    config.left = on_left;
    CHECK_INT(0, cn_host_new(&config, &node->host, &err));
    CHECK_INT(0, cn_host_start(node->host, &err));
    return node;
}

/* One server: it cannot lose what it acknowledges but with its disk. */
static struct node *node_open(unsigned n)
{
    struct cn_host_config config = {.allow_flaws = CN_ENGINE_NO_STANDBY,
                                    .times = {.settle_ms = 300, .replace_ms = 500}};
    return node_open_with(n, &config);
}

#define WAIT(node, condition)                                   \
    do {                                                        \
        pthread_mutex_lock(&(node)->lock);                      \
        while (!(condition))                                    \
            pthread_cond_wait(&(node)->changed, &(node)->lock); \
        pthread_mutex_unlock(&(node)->lock);                    \
    } while (0)

static void node_close(struct node *node)
{
    cn_host_leave(node->host, true);
    WAIT(node, node->left);
    cn_host_free(node->host);
    for (unsigned i = 0; i < SHARDS; i++)
        CHECK(!node->stores[i].open && !node->served[i]);
}

static uint64_t append(struct node *node, uint32_t shard)
{
    struct store *store = &node->stores[shard];
    pthread_mutex_lock(&node->lock);
    CHECK(store->open && store->total < RECORDS);
    uint64_t lsn = ++store->total;
    store->log[lsn] = (struct record){.lsn = lsn};
    snprintf(store->log[lsn].body, sizeof(store->log[lsn].body), "%llu of %u",
             (unsigned long long)lsn, shard);
    pthread_mutex_unlock(&node->lock);
    cn_host_appended(node->host, shard);
    return lsn;
}

static void begin(void)
{
    test_postgres_need();
    test_postgres_make(&server, "");
}

static void end(void)
{
    test_postgres_end(&server);
}

TEST(host, makes_a_cluster_serves_it_settles_what_is_appended_and_leaves)
{
    begin();
    struct node *node = node_open(0);
    WAIT(node, node->serves == SHARDS);
    CHECK_INT(SHARDS, node->creates);
    for (unsigned i = 0; i < 300; i++)
        append(node, i % SHARDS);
    for (unsigned i = 0; i < SHARDS; i++) {
        WAIT(node, node->stores[i].durable == 75);
        CHECK(cn_host_may_take(node->host, i) && cn_host_may_leave(node->host, i));
        CHECK(cn_host_owner(node->host, i).here);
    }
    node_close(node);
    CHECK_INT(SHARDS, node->closes);
    CHECK_STR("75", test_postgres_ask(&server, "SELECT max(upto) FROM cairn.log WHERE shard = 2"));
    CHECK_STR("0", test_postgres_ask(&server, "SELECT count(*) FROM cairn.session WHERE live"));
    end();
}

/* C11 */
TEST(host, refuses_an_engine_that_would_lose_data_with_a_sentence)
{
    begin();
    struct node *node = node_open_with(0, &(struct cn_host_config){0});
    WAIT(node, node->left);
    CHECK_INT(1, node->failures);
    CHECK(strstr(node->failure, "synchronous_standby_names is empty") != NULL);
    CHECK_INT(0, node->serves);
    cn_host_free(node->host);
    end();
}

/* H7 */
TEST(host, gives_its_session_back_when_its_disk_fails)
{
    begin();
    struct node *node = node_open(0);
    WAIT(node, node->serves == SHARDS);
    pthread_mutex_lock(&node->lock);
    node->fail_settle = true;
    pthread_mutex_unlock(&node->lock);
    append(node, 1);
    WAIT(node, node->left);
    CHECK_STR("the disk is broken", node->failure);
    CHECK(!cn_host_may_leave(node->host, 0) && !cn_host_may_leave(node->host, 1));
    CHECK_INT(SHARDS, node->closes);
    cn_host_free(node->host);
    CHECK_STR("0", test_postgres_ask(&server, "SELECT count(*) FROM cairn.session WHERE live"));
    CHECK_STR("1", test_postgres_ask(&server, "SELECT max(upto) FROM cairn.log WHERE shard = 1"));
    end();
}

/* H8: it leaves all the same. */
TEST(host, H8_leaves_although_its_disk_fails_while_stores_are_closed)
{
    begin();
    struct node *node = node_open(0);
    WAIT(node, node->serves == SHARDS);
    pthread_mutex_lock(&node->lock);
    node->fail_settle = node->fail_close = true;
    pthread_mutex_unlock(&node->lock);
    append(node, 1);
    WAIT(node, node->left);
    CHECK_INT(SHARDS, node->closes);
    cn_host_free(node->host);
    end();
}

/* C5: the clock alone ends a lease; nobody has to tell the lanes. */
/* Joins, appends, and leaves: what it has seen is written before it tells that it has left. */
TEST(host, H10_keeps_what_it_has_seen_of_the_engine_and_refuses_one_that_knows_less)
{
    begin();
    struct node *node = node_open(0);
    WAIT(node, node->served[0]);
    append(node, 0);
    WAIT(node, node->stores[0].durable == 1);
    node_close(node);
    struct cn_engine_seen seen = node->seen;
    CHECK(seen.version > 0 && seen.life > 1 << 20 && seen.session == 1 && seen.beat > 2);

    /* Its own next process is let in, by what it has seen. */
    struct cn_host_config config = {.allow_flaws = CN_ENGINE_NO_STANDBY,
                                    .seen = seen,
                                    .times = {.settle_ms = 300, .replace_ms = 500}};
    test_postgres_ask(&server, "UPDATE cairn.disk SET life = life - 100");
    config.seen.life -= 100;
    node = node_open_with(0, &config);
    WAIT(node, node->remembers > 0);
    node_close(node);
    seen = node->seen;

    config.seen = seen;
    config.seen.version += 1000;
    node = node_open_with(0, &config);
    WAIT(node, node->failures > 0);
    CHECK(strstr(node->failure, "the engine knows less than it has told this node") != NULL);
    node_close(node);
    CHECK(memcmp(&config.seen, &node->seen, sizeof(seen)) == 0); /* it stays what it was */
    CHECK_INT(0, node->creates);
    end();
}

TEST(host, H10_ends_when_what_it_has_seen_cannot_be_written)
{
    begin();
    struct node *node = node_open(0);
    WAIT(node, node->served[0]);
    pthread_mutex_lock(&node->lock);
    node->fail_remember = true;
    pthread_mutex_unlock(&node->lock);
    append(node, 0);
    WAIT(node, node->failures > 0);
    CHECK(strstr(node->failure, "the disk is broken") != NULL);
    node_close(node);
    end();
}

TEST(host, lets_nothing_leave_without_its_engine_and_all_when_it_is_back)
{
    begin();
    struct node *node = node_open(0);
    WAIT(node, node->serves == SHARDS);
    append(node, 0);
    WAIT(node, node->stores[0].durable == 1);
    test_postgres_kill(&server);
    while (cn_host_may_leave(node->host, 0))
        usleep(1000);
    CHECK(!cn_host_may_take(node->host, 0));
    append(node, 0); /* by what still runs */
    CHECK_INT(1, node->stores[0].durable);
    pthread_mutex_lock(&node->lock);
    unsigned wakes = node->wakes;
    pthread_mutex_unlock(&node->lock);
    test_postgres_start(&server);
    WAIT(node, node->wakes > wakes);
    WAIT(node, node->stores[0].durable == 2);
    CHECK(cn_host_may_leave(node->host, 0));
    node_close(node);
    end();
}

/* C7, C8: a second node gets copies, then its share, and all of it when the first one leaves. */
TEST(host, copies_shards_to_a_second_node_feeds_it_and_hands_over_when_it_leaves)
{
    begin();
    struct node *first = node_open(0);
    WAIT(first, first->serves == SHARDS);
    for (unsigned i = 0; i < 4 * 2000; i++) /* 400 KB of each */
        append(first, i % SHARDS);
    for (unsigned i = 0; i < SHARDS; i++) {
        WAIT(first, first->stores[i].durable == 2000);
        cn_host_checkpointed(first->host, i, 2000);
    }
    struct node *second = node_open(1);
    WAIT(second, second->serves >= SHARDS / 2);
    for (unsigned i = 0; i < SHARDS; i++) {
        struct node *owner = cn_host_owner(second->host, i).here ? second : first;
        if (!owner->served[i])
            continue;
        append(owner, i);
    }
    cn_host_leave(first->host, true);
    WAIT(first, first->left);
    WAIT(second, second->served[0] && second->served[1] && second->served[2] && second->served[3]);
    for (unsigned i = 0; i < SHARDS; i++) {
        CHECK(second->stores[i].total >= 2000);
        CHECK_INT(0, memcmp(&first->stores[i].log[1], &second->stores[i].log[1],
                            2000 * sizeof(struct record)));
    }
    cn_host_free(first->host);
    node_close(second);
    end();
}

/* --- beside the stores -------------------------------------------------------------------------
 */

struct beside {
    struct node *node; /* the rest is with its lock */
    unsigned links, frames;
    uint64_t from;
    char text[32];
};

static bool beside_frame(void *data, uint64_t disk, const struct cn_frame *frame)
{
    struct beside *beside = data;
    pthread_mutex_lock(&beside->node->lock);
    CHECK(frame->kind == CN_FRAME_BODY_ASK || frame->kind == CN_FRAME_BODY_ANSWER);
    beside->frames++;
    beside->from = disk;
    memcpy(beside->text, frame->body, frame->size < 31 ? frame->size : 31);
    pthread_cond_broadcast(&beside->node->changed);
    pthread_mutex_unlock(&beside->node->lock);
    return true;
}

static void beside_link(void *data, uint64_t disk, bool up)
{
    struct beside *beside = data;
    (void)disk;
    pthread_mutex_lock(&beside->node->lock);
    beside->links += up ? 1u : -1u;
    pthread_cond_broadcast(&beside->node->changed);
    pthread_mutex_unlock(&beside->node->lock);
}

/* More than a link's queue holds waits for room, in order, and all of it comes. */
TEST(host, carries_frames_of_any_thread_and_tells_the_map)
{
    static struct beside besides[2];
    static struct cn_host_beside hands[2];
    static uint8_t large[CN_FRAME_BODY_MAX - 8];
    uint64_t linked[CN_CLUSTER_NODES_MAX];
    struct cn_host_view view;
    begin();
    struct node *opened[2];
    for (unsigned i = 0; i < 2; i++) {
        struct cn_host_config config = {.allow_flaws = CN_ENGINE_NO_STANDBY,
                                        .times = {.settle_ms = 300, .replace_ms = 500}};
        hands[i] = (struct cn_host_beside){&besides[i], beside_frame, beside_link};
        besides[i] = (struct beside){.node = &nodes[i]};
        config.beside = &hands[i];
        opened[i] = node_open_with(i, &config);
    }
    for (unsigned i = 0; i < 2; i++)
        WAIT(opened[i], besides[i].links == 1);
    CHECK_INT(1, cn_host_linked(opened[0]->host, linked));
    CHECK_INT(2, linked[0]);
    CHECK(!cn_host_send(opened[0]->host, 77, CN_FRAME_BODY_ASK, "x", 1, NULL, 0));
    CHECK(cn_host_send(opened[0]->host, 2, CN_FRAME_BODY_ASK, "hel", 3, "lo", 2));
    WAIT(opened[1], besides[1].frames == 1);
    pthread_mutex_lock(&opened[1]->lock);
    CHECK_STR("hello", besides[1].text);
    CHECK_INT(1, besides[1].from);
    pthread_mutex_unlock(&opened[1]->lock);
    for (unsigned i = 0; i < 40; i++)
        CHECK(cn_host_send(opened[0]->host, 2, CN_FRAME_BODY_ANSWER, &i, sizeof(i), large,
                           sizeof(large)));
    WAIT(opened[1], besides[1].frames == 41);
    pthread_mutex_lock(&opened[1]->lock);
    CHECK_INT(39, besides[1].text[0]);
    pthread_mutex_unlock(&opened[1]->lock);
    for (unsigned i = 0; i < SHARDS; i++) /* a copy is of something */
        for (unsigned tries = 0;; tries++) {
            struct cn_host_owner owner = cn_host_owner(opened[0]->host, i);
            CHECK(tries < 20000);
            usleep(1000);
            if (!owner.disk)
                continue;
            struct node *node = opened[owner.disk - 1];
            pthread_mutex_lock(&node->lock);
            bool open = node->served[i] && node->stores[i].open;
            pthread_mutex_unlock(&node->lock);
            if (!open)
                continue;
            append(node, i);
            break;
        }
    for (unsigned tries = 0; !cn_host_view(opened[0]->host, 0, &view) || view.count < 2; tries++) {
        CHECK(tries < 20000);
        usleep(1000);
    }
    CHECK(view.owner == 1 || view.owner == 2);
    CHECK(view.good[0] && view.good[1] && view.epoch > 0);
    CHECK(!cn_host_view(opened[0]->host, SHARDS, &view));
    node_close(opened[1]);
    WAIT(opened[0], besides[0].links == 0);
    CHECK(!cn_host_send(opened[0]->host, 2, CN_FRAME_BODY_ASK, "x", 1, NULL, 0));
    node_close(opened[0]);
    end();
}

/* H2, C7: what runs does not end, and the other node takes over all the same when it is told to. */
TEST(host, keeps_the_gate_open_while_it_stops_and_shuts_it_for_good_when_fenced)
{
    begin();
    struct node *node = node_open(0);
    WAIT(node, node->serves == SHARDS);
    test_postgres_ask(&server, "UPDATE cairn.session SET live = false");
    WAIT(node, node->closes == SHARDS && node->serves == 2 * SHARDS); /* fenced, and anew */
    append(node, 3);
    WAIT(node, node->stores[3].durable == 1);
    node_close(node);
    end();
}
