/* SPDX-License-Identifier: Apache-2.0 */
/* A server as a node, without lanes, on a real engine. What nodes do to each other under faults is
 * in test/cluster. */
#include "fleet/cluster.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "object/shard.h"
#include "project/deploy_classes.h"
#include "server/data.h"
#include "shard/host.h"
#include "test/lib/postgres.h"
#include "test/lib/test.h"

enum { SHARDS = 4 };

static struct test_postgres server;
static char conninfo[200];

struct node {
    struct cn_disk *disk;
    struct cn_cluster *cluster;
    struct cn_err err;
};

static void begin(void)
{
    test_postgres_need();
    test_postgres_make(&server, "");
    snprintf(conninfo, sizeof(conninfo), "host=%s user=cairn dbname=postgres", server.dir);
}

static int node_open(struct node *node, const char *dir, const char *name, bool allow_async)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), dir);
    (void)mkdir(path, 0700); /* it may be there */
    *node = (struct node){.disk = cn_disk_system_new(path)};
    struct cn_cluster_options options = {.url = conninfo,
                                         .node = name,
                                         .peer = "127.0.0.1:0",
                                         .shard_count = SHARDS,
                                         .allow_async = allow_async,
                                         .disk = node->disk};
    int rc = cn_cluster_open(&options, &node->cluster, &node->err);
    if (rc == 0)
        cn_host_open(cn_cluster_host(node->cluster)); /* N10: its code runs */
    if (rc < 0)
        cn_disk_system_free(node->disk);
    return rc;
}

static void node_close(struct node *node)
{
    cn_cluster_leave(node->cluster);
    cn_cluster_free(node->cluster);
    cn_disk_system_free(node->disk);
}

static unsigned open_count(struct node *node)
{
    unsigned count = 0;
    for (unsigned i = 0; i < SHARDS; i++)
        count += cn_shards_state(cn_cluster_shards(node->cluster), i) == CN_SHARD_OPEN;
    return count;
}

TEST(cluster, nodes_share_shards_and_agree_on_ids_numbers_and_classes)
{
    struct node a, b;
    uint8_t secrets[3][CN_SIPHASH_KEY_SIZE];
    uint32_t numbers[2];
    begin();
    CHECK_INT(0, node_open(&a, "a", "a", true));
    while (open_count(&a) < SHARDS)
        usleep(1000);
    CHECK_INT(0, node_open(&b, "b", "b", true));
    while (open_count(&a) == SHARDS || open_count(&a) + open_count(&b) < SHARDS)
        usleep(1000);
    cn_cluster_secret(a.cluster, secrets[0]);
    cn_cluster_secret(b.cluster, secrets[1]);
    CHECK(memcmp(secrets[0], secrets[1], sizeof(secrets[0])) == 0);
    struct cn_shards *sets[] = {cn_cluster_shards(a.cluster), cn_cluster_shards(b.cluster)};
    CHECK_INT(0, cn_shards_number(sets[0], "w/A", &numbers[0], &a.err));
    CHECK_INT(0, cn_shards_number(sets[1], "w/A", &numbers[1], &b.err));
    CHECK_INT(numbers[0], numbers[1]);
    CHECK_INT(0, cn_shards_named(sets[1], numbers[1], "w/B", &b.err));
    CHECK_INT(0, cn_shards_number(sets[0], "w/A", &numbers[1], &a.err));
    CHECK(numbers[0] != numbers[1]); /* the name was free again */

    const struct cn_ledger *mine = cn_cluster_ledger(a.cluster),
                           *other = cn_cluster_ledger(b.cluster);
    struct cn_buf one = {0}, two = {0};
    cn_buf_append_str(&one, "{\"one\": 1}");
    cn_buf_append_str(&two, "{\"two\": 2}");
    CHECK_INT(0, mine->fetch(mine->data, a.disk, &a.err));
    CHECK_INT(0, other->fetch(other->data, b.disk, &b.err));
    CHECK_INT(0, mine->keep(mine->data, &one, &a.err));
    CHECK_INT(CN_EEXISTS, other->keep(other->data, &two, &b.err));
    CHECK_INT(0, other->fetch(other->data, b.disk, &b.err));
    CHECK_INT(0, other->keep(other->data, &two, &b.err));
    cn_buf_fini(&one);
    cn_buf_fini(&two);

    node_close(&a); /* hands over */
    while (open_count(&b) < SHARDS)
        usleep(1000);
    node_close(&b);
    CHECK_INT(0, node_open(&b, "b", "b", true));
    cn_cluster_secret(b.cluster, secrets[2]);
    CHECK(memcmp(secrets[0], secrets[2], sizeof(secrets[0])) == 0);
    node_close(&b);
    test_postgres_end(&server);
}

TEST(cluster, refuses_an_engine_that_would_lose_data_another_version_and_a_second_node_of_its_name)
{
    struct node a, b;
    begin();
    CHECK_INT(CN_EDENIED, node_open(&a, "a", "a", false));
    CHECK(strstr(a.err.text, "synchronous_standby_names is empty") &&
          strstr(a.err.text, "allow_async"));
    CHECK_INT(0, node_open(&a, "a", "a", true));
    test_postgres_await(&server, "SELECT count(*) FROM cairn.session WHERE live", "1");
    CHECK_INT(CN_EEXISTS, node_open(&b, "b", "a", true));
    CHECK(strstr(b.err.text, "is called a and is alive, at 127.0.0.1:"));
    node_close(&a);
    CHECK_INT(0, node_open(&b, "b", "a", true)); /* the name is free */
    node_close(&b);
    test_postgres_ask(&server, "UPDATE cairn.cluster SET major = major + 1");
    CHECK_INT(CN_EVERSION, node_open(&b, "b", "a", true));
    test_postgres_end(&server);
}

TEST(cluster, a_data_directory_is_of_one_kind)
{
    struct cn_err err = {0};
    struct cn_disk *disk = cn_disk_system_new(test_dir());
    CHECK_INT(0, cn_data_check(disk, true, &err));
    CHECK_INT(0, cn_data_check(disk, false, &err));
    CHECK_INT(0, cn_disk_replace(disk, "FORMAT", "x", 1));
    CHECK_INT(CN_EINVALID, cn_data_check(disk, true, &err));
    CHECK(strstr(err.text, "of a single server"));
    CHECK_INT(0, cn_disk_unlink(disk, "FORMAT"));
    CHECK_INT(0, cn_disk_mkdirs(disk, "shards"));
    CHECK_INT(0, cn_disk_replace(disk, "shards/DISK", "x", 1));
    CHECK_INT(CN_EINVALID, cn_data_check(disk, false, &err));
    CHECK(strstr(err.text, "of a node of a cluster"));
    cn_disk_system_free(disk);
}
