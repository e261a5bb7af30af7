/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies on the disks of several nodes, in one process: each node has real files, the links between
 * them are calls that can be cut or lose frames, the map and what indexes know is the test's. What
 * is put is on two disks before it is acknowledged; what is known stays on every replica, what is
 * not goes; and what is damaged is mended. */
#include "shard/bodies.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/err.h"
#include "base/rand.h"
#include "test/lib/test.h"

enum { NODES = 4, SHARDS = 3, KNOWN_MAX = 4000 };

struct node {
    unsigned index;
    uint64_t id; /* of its disk */
    struct cn_disk *disk;
    struct cn_blobs *local, *front;
    struct cn_bodies *bodies; /* NULL: it is down; guarded by the gate */
    pthread_rwlock_t gate;    /* held while frames are given to it */
    struct cn_host_view views[SHARDS];
    uint64_t whole[SHARDS][CN_CLUSTER_REPLICAS_MAX];
    unsigned whole_count[SHARDS];
};

static struct node nodes[NODES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* guarded by lock */
static bool up[NODES][NODES];
static struct cn_blob_id known[KNOWN_MAX];
static unsigned known_count, asked;
static bool deaf; /* indexes do not answer */
static unsigned lose_every, sent;
static char folder[300];

static struct node *node_of(uint64_t disk)
{
    return disk >= 1 && disk <= NODES ? &nodes[disk - 1] : NULL;
}

/* --- hands ------------------------------------------------------------------------------------ */

static bool hand_send(void *data, uint64_t disk, enum cn_frame_kind kind, const void *head,
                      size_t head_size, const void *more, size_t more_size)
{
    struct node *from = data, *to = node_of(disk);
    CHECK(to && to != from);
    pthread_mutex_lock(&lock);
    bool linked = up[from->index][to->index];
    bool lost = lose_every && ++sent % lose_every == 0;
    pthread_mutex_unlock(&lock);
    if (!linked)
        return false;
    if (lost)
        return true;
    uint8_t *body = malloc(head_size + more_size);
    memcpy(body, head, head_size);
    if (more_size)
        memcpy(body + head_size, more, more_size);
    struct cn_frame frame = {kind, 0, body, head_size + more_size};
    CHECK(frame.size <= CN_FRAME_BODY_MAX);
    pthread_rwlock_rdlock(&to->gate);
    if (to->bodies)
        CHECK(cn_bodies_frame(to->bodies, from->id, &frame));
    pthread_rwlock_unlock(&to->gate);
    free(body);
    return true;
}

static bool hand_view(void *data, uint32_t shard, struct cn_host_view *view)
{
    pthread_mutex_lock(&lock);
    *view = ((struct node *)data)->views[shard];
    pthread_mutex_unlock(&lock);
    return true;
}

static unsigned hand_linked(void *data, uint64_t disks[CN_CLUSTER_NODES_MAX])
{
    struct node *node = data;
    unsigned count = 0;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < NODES; i++)
        if (up[node->index][i])
            disks[count++] = nodes[i].id;
    pthread_mutex_unlock(&lock);
    return count;
}

static bool is_known(const struct cn_blob_id *id)
{
    for (unsigned i = 0; i < known_count; i++)
        if (memcmp(&known[i], id, sizeof(*id)) == 0)
            return true;
    return false;
}

static int hand_known(void *data, uint32_t shard, const struct cn_blob_id *ids, size_t count,
                      uint8_t *bits, struct cn_err *err)
{
    pthread_mutex_lock(&lock);
    asked++;
    bool silent = deaf;
    for (size_t i = 0; i < count; i++)
        bits[i] = is_known(&ids[i]);
    pthread_mutex_unlock(&lock);
    return silent ? cn_err_set(err, CN_EOVERLOADED, "not now") : 0;
}

static void hand_whole(void *data, uint32_t shard, uint64_t epoch, const uint64_t *disks,
                       unsigned count)
{
    struct node *node = data;
    (void)epoch;
    pthread_mutex_lock(&lock);
    memcpy(node->whole[shard], disks, count * sizeof(*disks));
    node->whole_count[shard] = count;
    pthread_mutex_unlock(&lock);
}

/* --- the world -------------------------------------------------------------------------------- */

static void start(struct node *node, unsigned replicas)
{
    struct cn_bodies_config config = {
        .blobs = NULL,
        .disk = node->id,
        .shard_count = SHARDS,
        .replicas = replicas,
        .keep_ms = 20,
        .call_ms = 400,
        .rate = 1u << 30,
        .hands = {node, hand_send, hand_view, hand_linked, hand_known, hand_whole}};
    struct cn_bodies *bodies;
    CHECK_INT(0, cn_blobs_open_by_shard(node->disk, "blobs", &node->local, NULL));
    config.blobs = node->local;
    CHECK_INT(0, cn_bodies_new(&config, &bodies, NULL));
    node->front = cn_blobs_among(node->local, cn_bodies_peers(bodies));
    pthread_rwlock_wrlock(&node->gate);
    node->bodies = bodies;
    pthread_rwlock_unlock(&node->gate);
}

static void link_nodes(unsigned a, unsigned b, bool on)
{
    pthread_mutex_lock(&lock);
    bool was = up[a][b];
    up[a][b] = up[b][a] = on && nodes[a].bodies && nodes[b].bodies;
    bool is = up[a][b];
    pthread_mutex_unlock(&lock);
    if (was == is)
        return;
    for (unsigned i = 0; i < 2; i++) {
        struct node *node = &nodes[i ? a : b];
        pthread_rwlock_rdlock(&node->gate);
        if (node->bodies)
            cn_bodies_link(node->bodies, nodes[i ? b : a].id, is);
        pthread_rwlock_unlock(&node->gate);
    }
}

static void link_all(void)
{
    for (unsigned a = 0; a < NODES; a++)
        for (unsigned b = 0; b < a; b++)
            link_nodes(a, b, true);
}

static void stop(struct node *node)
{
    for (unsigned i = 0; i < NODES; i++)
        if (i != node->index)
            link_nodes(node->index, i, false);
    pthread_rwlock_wrlock(&node->gate);
    struct cn_bodies *bodies = node->bodies;
    node->bodies = NULL;
    pthread_rwlock_unlock(&node->gate);
    if (!bodies)
        return;
    cn_bodies_stop(bodies);
    cn_blobs_close(node->front);
    cn_bodies_free(bodies);
    cn_blobs_close(node->local);
}

/* The map of a shard, as everybody sees it; disks by number, 0 ends them. The first owns it. */
static void set_map(unsigned shard, uint64_t a, uint64_t b, uint64_t c)
{
    static uint64_t epoch;
    uint64_t disks[] = {a, b, c};
    struct cn_host_view view = {.owner = a, .epoch = ++epoch};
    for (unsigned i = 0; i < 3 && disks[i]; i++) {
        view.disks[view.count] = disks[i];
        view.good[view.count++] = true;
    }
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < NODES; i++)
        nodes[i].views[shard] = view;
    pthread_mutex_unlock(&lock);
}

static void world_with(unsigned replicas)
{
    static unsigned number;
    snprintf(folder, sizeof(folder), "%s/%u", test_dir(), number++);
    CHECK_INT(0, mkdir(folder, 0700));
    known_count = asked = lose_every = sent = 0;
    deaf = false;
    memset(up, 0, sizeof(up));
    for (unsigned i = 0; i < NODES; i++) {
        char path[340];
        snprintf(path, sizeof(path), "%s/%u", folder, i);
        CHECK_INT(0, mkdir(path, 0700));
        nodes[i] = (struct node){.index = i, .id = i + 1, .disk = cn_disk_system_new(path)};
        pthread_rwlock_init(&nodes[i].gate, NULL);
    }
    for (unsigned i = 0; i < SHARDS; i++)
        set_map(i, 1, 2, 0);
    for (unsigned i = 0; i < NODES; i++)
        start(&nodes[i], replicas);
    link_all();
}

static void world(void)
{
    world_with(2);
}

static void end_world(void)
{
    for (unsigned i = 0; i < NODES; i++)
        stop(&nodes[i]);
    for (unsigned i = 0; i < NODES; i++) {
        cn_disk_system_free(nodes[i].disk);
        pthread_rwlock_destroy(&nodes[i].gate);
    }
}

static void learn(const struct cn_blob_id *id)
{
    pthread_mutex_lock(&lock);
    CHECK(known_count < KNOWN_MAX);
    known[known_count++] = *id;
    pthread_mutex_unlock(&lock);
}

static void unlearn(const struct cn_blob_id *id)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < known_count; i++)
        if (memcmp(&known[i], id, sizeof(*id)) == 0)
            known[i] = known[--known_count];
    pthread_mutex_unlock(&lock);
}

static uint8_t byte_at(const struct cn_blob_id *id, size_t at)
{
    return (uint8_t)(id->bytes[at % 10] + at * 7 + (at >> 9));
}

/* Noted first, as an index does (Z2). */
static int put(struct node *node, unsigned shard, size_t size, struct cn_blob_id *id,
               struct cn_err *err)
{
    struct cn_blob_writer *writer;
    struct cn_blob_id written;
    cn_blob_id_draw(id);
    cn_blob_id_place(id, 7, shard);
    learn(id);
    uint8_t *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(id, i);
    CHECK_INT(0, cn_blob_create_as(node->front, id, &writer, err));
    CHECK_INT(0, cn_blob_write(writer, bytes, size, err));
    free(bytes);
    int rc = cn_blob_finish(writer, &written, err);
    if (rc < 0)
        unlearn(id);
    return rc;
}

static bool reads_right(struct cn_blobs *blobs, const struct cn_blob_id *id, size_t size)
{
    struct cn_blob_reader *reader;
    struct cn_err err;
    if (cn_blob_open(blobs, id, &reader, &err) < 0)
        return false;
    bool right = cn_blob_size(reader) == size;
    uint8_t bytes[5000];
    for (size_t at = 0; at < size && right;) {
        int64_t got = cn_blob_read(reader, bytes, sizeof(bytes), at, &err);
        right = got > 0;
        for (int64_t i = 0; i < got && right; i++)
            right = bytes[i] == byte_at(id, at + (size_t)i);
        at += right ? (size_t)got : 0;
    }
    cn_blob_close(reader);
    return right;
}

static bool has(unsigned node, const struct cn_blob_id *id)
{
    return cn_blob_is_here(nodes[node].local, id);
}

/* Waits for a condition, in the end in vain. */
static bool comes(bool (*holds)(const void *data), const void *data, unsigned ms)
{
    for (unsigned i = 0; i < ms; i++) {
        if (holds(data))
            return true;
        usleep(1000);
    }
    return holds(data);
}

/* So many rounds of every keeper that runs. */
static void rounds(unsigned count)
{
    uint64_t until[NODES];
    struct cn_bodies_stats stats;
    for (unsigned i = 0; i < NODES; i++) {
        if (!nodes[i].bodies)
            continue;
        cn_bodies_stats(nodes[i].bodies, &stats);
        until[i] = stats.rounds + count + 1;
    }
    for (unsigned i = 0; i < NODES; i++)
        for (unsigned ms = 0; nodes[i].bodies && ms < 60000; ms++) {
            cn_bodies_stats(nodes[i].bodies, &stats);
            if (stats.rounds >= until[i])
                break;
            CHECK(ms < 59999);
            usleep(1000);
        }
}

struct expected {
    struct cn_blob_id id;
    size_t size;
    unsigned on; /* a bit for each node */
};

static bool is_as_expected(const void *data)
{
    const struct expected *expected = data;
    unsigned on = 0;
    for (unsigned i = 0; i < NODES; i++)
        on |= (unsigned)(nodes[i].bodies && has(i, &expected->id)) << i;
    return on == expected->on;
}

/* --- tests ------------------------------------------------------------------------------------ */

TEST(bodies, a_put_is_on_every_replica_when_it_is_over)
{
    static const size_t sizes[] = {
        0, 1, 20000, CN_FRAME_BODY_PIECE_MAX, CN_FRAME_BODY_PIECE_MAX + 1, 3000001};
    struct cn_err err;
    world();
    set_map(1, 1, 2, 3);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct cn_blob_id id;
        CHECK_INT(0, put(&nodes[0], i % 2, sizes[i], &id, &err));
        for (unsigned j = 0; j < NODES; j++) {
            CHECK_INT(j < 2 + i % 2, has(j, &id));
            CHECK(reads_right(nodes[j].front, &id, sizes[i])); /* from anywhere */
            CHECK(!has(j, &id) || reads_right(nodes[j].local, &id, sizes[i]));
        }
    }
    end_world();
}

/* Z1 */
TEST(bodies, a_put_is_on_two_disks_or_refused)
{
    struct cn_blob_id id;
    struct cn_err err;
    world();
    deaf = true; /* nothing is moved afterwards */
    link_nodes(0, 1, false);
    CHECK_INT(0, put(&nodes[0], 0, 50000, &id, &err)); /* another takes it */
    CHECK(has(0, &id) && !has(1, &id) && has(2, &id) + has(3, &id) == 1);
    CHECK(reads_right(nodes[1].front, &id, 50000));
    for (unsigned i = 1; i < NODES; i++)
        link_nodes(0, i, false);
    CHECK_INT(CN_EOVERLOADED, put(&nodes[0], 0, 50000, &id, &err));
    CHECK(strstr(err.text, CN_BLOB_AWAY));
    for (unsigned i = 0; i < NODES; i++)
        CHECK(!has(i, &id));
    CHECK_INT(CN_EOVERLOADED, put(&nodes[0], 0, 3000000, &id, &err));
    CHECK(!has(0, &id));
    end_world();
    world_with(1); /* then one is enough */
    set_map(0, 1, 0, 0);
    for (unsigned i = 1; i < NODES; i++)
        link_nodes(0, i, false);
    CHECK_INT(0, put(&nodes[0], 0, 50000, &id, &err));
    end_world();
}

/* Z3: missed puts and deletes. Z5: who stood in for a replica loses it when the replicas have it.
 */
TEST(bodies, a_disk_that_was_away_gets_what_it_lacks_and_loses_what_is_nobodys)
{
    struct expected kept[12], gone[4];
    struct cn_err err;
    world();
    for (unsigned i = 0; i < 4; i++) {
        CHECK_INT(0, put(&nodes[0], 0, 30000, &gone[i].id, &err));
        gone[i].on = 0;
    }
    stop(&nodes[1]);
    for (unsigned i = 0; i < 12; i++) {
        kept[i].size = i % 4 ? 30000 : 700000;
        CHECK_INT(0, put(&nodes[0], i % SHARDS, kept[i].size, &kept[i].id, &err));
        kept[i].on = 3;
        CHECK(has(2, &kept[i].id) || has(3, &kept[i].id));
    }
    for (unsigned i = 0; i < 4; i++) {
        unlearn(&gone[i].id);
        CHECK_INT(0, cn_blob_delete(nodes[0].front, &gone[i].id, &err));
    }
    start(&nodes[1], 2);
    CHECK(has(1, &gone[0].id));
    link_all();
    for (unsigned i = 0; i < 12; i++) {
        CHECK(comes(is_as_expected, &kept[i], 30000));
        CHECK(reads_right(nodes[1].local, &kept[i].id, kept[i].size));
    }
    for (unsigned i = 0; i < 4; i++)
        CHECK(comes(is_as_expected, &gone[i], 30000));
    end_world();
}

/* A disk that was emptied, and a crash that left files that nobody has noted. */
TEST(bodies, an_empty_disk_is_filled_and_what_nobody_knows_is_collected)
{
    struct expected kept, orphan = {.on = 0};
    struct cn_err err;
    char command[400];
    world();
    kept = (struct expected){.size = 400000, .on = 3};
    CHECK_INT(0, put(&nodes[0], 2, kept.size, &kept.id, &err));
    CHECK_INT(0, put(&nodes[0], 2, 1000, &orphan.id, &err));
    unlearn(&orphan.id);
    rounds(3); /* both disks have it, so nobody asks before a start */
    stop(&nodes[0]);
    stop(&nodes[1]);
    snprintf(command, sizeof(command), "rm -rf %s/1/blobs", folder);
    CHECK_INT(0, system(command));
    start(&nodes[0], 2);
    start(&nodes[1], 2);
    CHECK(!has(1, &kept.id));
    link_all();
    CHECK(comes(is_as_expected, &kept, 30000));
    CHECK(comes(is_as_expected, &orphan, 30000));
    CHECK(reads_right(nodes[1].local, &kept.id, kept.size));
    end_world();
}

/* Z2: who cannot be asked has not said no. */
TEST(bodies, nothing_is_deleted_while_the_owner_cannot_say)
{
    struct cn_blob_id id;
    struct cn_err err;
    world();
    CHECK_INT(0, put(&nodes[0], 0, 1000, &id, &err));
    deaf = true;
    unlearn(&id);
    stop(&nodes[1]);
    start(&nodes[1], 2);
    link_all();
    set_map(0, 3, 4, 0); /* neither disk that has it is a replica */
    rounds(4);
    CHECK(has(0, &id) && has(1, &id));
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < NODES; i++)
        nodes[i].views[0].owner = 0;
    deaf = false;
    pthread_mutex_unlock(&lock);
    rounds(4);
    CHECK(has(0, &id) && has(1, &id));
    end_world();
}

/* Z4 */
TEST(bodies, what_is_damaged_is_read_elsewhere_and_mended)
{
    static const long places[] = {100, 90000, -20, -5}; /* body, checksums, footer */
    struct cn_err err;
    world();
    for (unsigned i = 0; i < 4; i++) {
        struct cn_blob_id id;
        struct cn_bodies_stats stats;
        char path[400], hex[33];
        CHECK_INT(0, put(&nodes[0], 0, 200000, &id, &err));
        for (unsigned j = 0; j < 16; j++)
            snprintf(hex + 2 * j, 3, "%02x", id.bytes[j]);
        snprintf(path, sizeof(path), "%s/0/blobs/0/%.2s/%s", folder, hex, hex);
        FILE *file = fopen(path, "r+");
        CHECK(file && fseek(file, places[i], places[i] < 0 ? SEEK_END : SEEK_SET) == 0);
        int byte = fgetc(file);
        CHECK(fseek(file, -1, SEEK_CUR) == 0 && fputc(byte ^ 1, file) != EOF);
        fclose(file);
        CHECK(!reads_right(nodes[0].local, &id, 200000));
        CHECK(reads_right(nodes[0].front, &id, 200000));
        for (unsigned ms = 0; ms < 20000 && !reads_right(nodes[0].local, &id, 200000); ms++)
            usleep(1000);
        CHECK(reads_right(nodes[0].local, &id, 200000));
        for (unsigned ms = 0; ms < 20000; ms++) {
            cn_bodies_stats(nodes[0].bodies, &stats);
            if (!stats.damaged)
                break;
            usleep(1000);
        }
        CHECK_INT(0, stats.damaged);
    }
    end_world();
}

/* Z5: a replica that has not got it yet. */
TEST(bodies, who_is_no_replica_keeps_it_until_every_replica_has_it)
{
    struct cn_blob_id id;
    struct cn_err err;
    world_with(1);
    set_map(0, 1, 2, 0);
    CHECK_INT(0, put(&nodes[0], 0, 100, &id, &err));
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < NODES; i++)
        nodes[i].views[0].owner = 3;
    for (unsigned i = 0; i < 2; i++) { /* to them 3 and 4 are the replicas; those do not know */
        nodes[i].views[0].count = 2;
        nodes[i].views[0].disks[0] = 3;
        nodes[i].views[0].disks[1] = 4;
    }
    pthread_mutex_unlock(&lock);
    rounds(3);
    CHECK(has(0, &id) && has(1, &id) && !has(2, &id) && !has(3, &id));
    set_map(0, 3, 4, 0);
    CHECK(comes(is_as_expected, &(struct expected){.id = id, .on = 12}, 40000));
    end_world();
}

/* Z5: two disks that each take the other for the replica. One of them may go, never both. */
TEST(bodies, two_that_rely_on_each_other_do_not_both_leave)
{
    struct cn_blob_id ids[20];
    struct cn_err err;
    world_with(1);
    set_map(0, 1, 2, 0);
    for (unsigned i = 0; i < 20; i++)
        CHECK_INT(0, put(&nodes[0], 0, 100, &ids[i], &err));
    for (unsigned turn = 0; turn < 6; turn++) {
        pthread_mutex_lock(&lock);
        for (unsigned i = 0; i < 2; i++) {
            nodes[i].views[0].count = 1;
            nodes[i].views[0].disks[0] = nodes[1 - i].id;
            nodes[i].views[0].owner = nodes[2].id;
        }
        nodes[2].views[0].owner = nodes[2].id;
        nodes[2].views[0].count = nodes[3].views[0].count = 0;
        pthread_mutex_unlock(&lock);
        rounds(2);
        for (unsigned i = 0; i < 20; i++)
            CHECK(has(0, &ids[i]) || has(1, &ids[i]));
        set_map(0, 1, 2, 0); /* both are to have all again */
        for (unsigned i = 0; i < 20; i++) {
            struct expected both = {.id = ids[i], .on = 3};
            CHECK(comes(is_as_expected, &both, 30000));
        }
    }
    end_world();
}

static bool is_whole(const void *data)
{
    const unsigned *want = data; /* bits of disks, of shard 0 on its owner, node 0 */
    unsigned on = 0;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < nodes[0].whole_count[0]; i++)
        on |= 1u << (nodes[0].whole[0][i] - 1);
    pthread_mutex_unlock(&lock);
    return on == *want;
}

/* So many shards of node 0 lack something. */
static bool is_lacking(const void *data)
{
    struct cn_bodies_stats stats;
    cn_bodies_stats(nodes[0].bodies, &stats);
    return stats.lacking == *(const unsigned *)data;
}

/* Z6 */
TEST(bodies, a_replica_is_whole_when_it_has_caught_up_and_until_it_misses_a_put)
{
    struct cn_blob_id id;
    struct cn_err err;
    world();
    CHECK(comes(is_whole, &(unsigned){3}, 20000)); /* nothing is there */
    CHECK_INT(0, put(&nodes[0], 0, 500000, &id, &err));
    link_nodes(0, 2, false);
    link_nodes(1, 2, false);
    link_nodes(3, 2, false);
    set_map(0, 1, 2, 3);
    CHECK(comes(is_whole, &(unsigned){3}, 20000)); /* 3 has nothing yet */
    rounds(3);
    CHECK(is_whole(&(unsigned){3}) && is_lacking(&(unsigned){1}));
    link_all();
    CHECK(comes(is_whole, &(unsigned){7}, 20000));
    CHECK(comes(is_lacking, &(unsigned){0}, 20000));
    CHECK(has(2, &id));
    link_nodes(0, 1, false);
    CHECK_INT(0, put(&nodes[0], 0, 1000, &id, &err));
    CHECK(is_whole(&(unsigned){5}));
    link_nodes(0, 1, true);
    CHECK(comes(is_whole, &(unsigned){7}, 20000));
    CHECK(has(1, &id));
    end_world();
}

/* Z7 */
TEST(bodies, questions_beyond_the_bound_are_refused_and_strange_ones_ignored)
{
    struct cn_frame_body ask = {.op = CN_BODY_READ, .shard = 0, .size = 10};
    uint8_t head[CN_FRAME_BODY_SIZE];
    struct cn_frame frame = {CN_FRAME_BODY_ASK, 0, head, sizeof(head)};
    struct cn_blob_id id;
    struct cn_err err;
    world();
    for (unsigned i = 0; i < 4000; i++) { /* what they are answered, node 1 did not ask for */
        ask.number = i;
        cn_frame_put_body(head, &ask);
        CHECK(cn_bodies_frame(nodes[0].bodies, 2, &frame));
    }
    ask.shard = SHARDS; /* there is none */
    cn_frame_put_body(head, &ask);
    CHECK(!cn_bodies_frame(nodes[0].bodies, 2, &frame));
    ask.shard = 1; /* the id is of another */
    cn_frame_put_body(head, &ask);
    CHECK(!cn_bodies_frame(nodes[0].bodies, 2, &frame));
    frame.size--;
    CHECK(!cn_bodies_frame(nodes[0].bodies, 2, &frame));
    CHECK_INT(0, put(&nodes[1], 0, 1000, &id, &err));
    CHECK(has(0, &id) && has(1, &id));
    end_world();
}

/* Everything at once. Whatever happened, once it stops every body that was acknowledged and not
 * deleted is on all replicas, byte for byte, and none else is anywhere. */
TEST(bodies, after_any_faults_all_that_was_acknowledged_is_on_every_replica_and_nothing_else)
{
    enum { STEPS = 150, MAX = 400 };
    static struct expected kept[MAX];
    unsigned count = 0, refused = 0, acknowledged = 0;
    struct cn_rand rand;
    struct cn_err err;
    cn_rand_init(&rand, test_seed());
    world();
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned what = (unsigned)(cn_rand_next(&rand) % 20),
                 a = (unsigned)(cn_rand_next(&rand) % NODES);
        unsigned b = (a + 1 + (unsigned)(cn_rand_next(&rand) % (NODES - 1))) % NODES,
                 shard = (unsigned)(cn_rand_next(&rand) % SHARDS);
        pthread_mutex_lock(&lock);
        lose_every = cn_rand_next(&rand) % 3 ? 0 : 20;
        struct node *owner = node_of(nodes[0].views[shard].owner);
        pthread_mutex_unlock(&lock);
        if (what < 10 && owner->bodies && count < MAX) {
            struct expected *one = &kept[count];
            one->size = cn_rand_next(&rand) % 5 ? cn_rand_next(&rand) % 40000
                                                : cn_rand_next(&rand) % 900000;
            int rc = put(owner, shard, one->size, &one->id, &err);
            count += rc == 0;
            acknowledged += rc == 0;
            refused += rc < 0;
        } else if (what < 13 && count) {
            unsigned at = (unsigned)(cn_rand_next(&rand) % count);
            owner = node_of(nodes[0].views[cn_blob_id_shard(&kept[at].id)].owner);
            if (!owner->bodies)
                continue;
            unlearn(&kept[at].id);
            CHECK_INT(0, cn_blob_delete(owner->front, &kept[at].id, &err));
            kept[at] = kept[--count];
        } else if (what < 15) {
            link_nodes(a, b, cn_rand_next(&rand) % 3 != 0);
        } else if (what < 17 && nodes[a].bodies) {
            stop(&nodes[a]);
            if (cn_rand_next(&rand) % 2) {
                start(&nodes[a], 2);
                link_all();
            }
        } else if (what == 17 && !nodes[a].bodies) {
            start(&nodes[a], 2);
            link_all();
        } else if (what == 18) {
            set_map(shard, nodes[a].id, nodes[b].id, 0);
        } else {
            link_all();
        }
    }
    pthread_mutex_lock(&lock);
    lose_every = 0;
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < NODES; i++)
        if (!nodes[i].bodies)
            start(&nodes[i], 2);
    link_all();
    for (unsigned i = 0; i < count; i++) {
        const struct cn_host_view *view = &nodes[0].views[cn_blob_id_shard(&kept[i].id)];
        kept[i].on = 0;
        for (unsigned j = 0; j < view->count; j++)
            kept[i].on |= 1u << (view->disks[j] - 1);
        if (!comes(is_as_expected, &kept[i], 60000))
            test_fail(__FILE__, __LINE__, "body %u of %u is on %d%d%d%d, not on %x", i, count,
                      has(0, &kept[i].id), has(1, &kept[i].id), has(2, &kept[i].id),
                      has(3, &kept[i].id), kept[i].on);
        for (unsigned j = 0; j < NODES; j++)
            CHECK(!has(j, &kept[i].id) || reads_right(nodes[j].local, &kept[i].id, kept[i].size));
    }
    rounds(2);
    uint64_t want = 0, total = 0;
    for (unsigned i = 0; i < count; i++)
        want += (unsigned)__builtin_popcount(kept[i].on);
    for (unsigned ms = 0; ms < 30000; ms++) {
        total = 0;
        for (unsigned i = 0; i < NODES; i++) {
            struct cn_bodies_stats stats;
            cn_bodies_stats(nodes[i].bodies, &stats);
            total += stats.count;
        }
        if (total == want)
            break;
        usleep(1000);
    }
    CHECK_INT(want, total);
    CHECK(acknowledged > 0 && refused < STEPS);
    end_world();
}
