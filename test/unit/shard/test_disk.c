/* SPDX-License-Identifier: Apache-2.0 */
/* A host with real replicas, alone on a real engine: commits of databases become durable by it, are
 * there after a restart, and after the loss of the disk; and a disk knows its cluster. */
#include "shard/disk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk.h"
#include "peer/link.h"
#include "store/database.h"
#include "store/store.h"
#include "test/lib/postgres.h"
#include "test/lib/test.h"

enum { SHARDS = 2 };

static struct test_postgres server;
static struct cn_cluster_disk disk;
static struct cn_host *host;
static char conninfo[200];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool served[SHARDS], left; /* guarded by lock */
static char failure[CN_ERR_TEXT_MAX];

static int front_serve(void *data, uint32_t shard, struct cn_err *err)
{
    pthread_mutex_lock(&lock);
    served[shard] = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

static void front_stop(void *data, uint32_t shard, uint64_t ticket)
{
    cn_host_stopped(host, shard, ticket);
}

static void front_resume(void *data, uint32_t shard)
{
}

static void front_close(void *data, uint32_t shard)
{
    pthread_mutex_lock(&lock);
    served[shard] = false;
    pthread_mutex_unlock(&lock);
    cn_host_shut(host, shard);
}

static void front_wake(void *data)
{
    /* Nobody waits: the test asks again. */
}

static const struct cn_host_front front = {NULL,         front_serve, front_stop,
                                           front_resume, front_close, front_wake};

static int on_joined(void *data, struct cn_host *of, const struct cn_engine_pg_info *info,
                     struct cn_err *err)
{
    return cn_cluster_disk_join(&disk, of, info, err);
}

static void on_failed(void *data, const struct cn_err *err)
{
    snprintf(failure, sizeof(failure), "%s", err->text);
}

static void on_left(void *data)
{
    pthread_mutex_lock(&lock);
    left = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* A disk on which nothing is written, for as long as `held`. */
static bool held; /* guarded by lock */
static int (*remember)(void *data, const struct cn_engine_seen *seen, struct cn_err *err);

static int remember_late(void *data, const struct cn_engine_seen *seen, struct cn_err *err)
{
    pthread_mutex_lock(&lock);
    while (held)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return remember(data, seen, err);
}

static _Atomic unsigned tidied;

static void tidy(void *data)
{
    tidied++;
}

static void set_held(bool now)
{
    pthread_mutex_lock(&lock);
    held = now;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void open_node(const char *dir)
{
    struct cn_err err = {0};
    uint16_t port;
    char address[40];
    struct cn_replicas_config replicas = {.disk = cn_disk_system_new(dir)};
    left = served[0] = served[1] = false;
    failure[0] = 0;
    CHECK(replicas.disk != NULL);
    CHECK_INT(0, cn_cluster_disk_open(&disk, &replicas, &err));
    remember = disk.hands.remember;
    disk.hands.remember = remember_late;
    disk.hands.tidy = tidy;
    struct cn_host_config config = {.conninfo = conninfo,
                                    .node = "node",
                                    .address = address,
                                    .listen_fd = cn_links_bind("127.0.0.1", 0, &port, &err),
                                    .cluster = *disk.cluster ? disk.cluster : NULL,
                                    .disk = disk.id,
                                    .life = disk.life,
                                    .seen = disk.seen,
                                    .shard_count = SHARDS,
                                    .replicas = 1,
                                    .times = {.replace_ms = 500, .remember_ms = 10},
                                    .tidy_ms = 500,
                                    .allow_flaws = CN_ENGINE_NO_STANDBY,
                                    .disk_hands = &disk.hands,
                                    .front = &front,
                                    .joined = on_joined,
                                    .failed = on_failed,
                                    .left = on_left};
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    CHECK_INT(0, cn_host_new(&config, &host, &err));
    CHECK_INT(0, cn_host_start(host, &err));
}

static void await_served(void)
{
    pthread_mutex_lock(&lock);
    while (!served[0] || !served[1])
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void close_node(void)
{
    cn_host_leave(host, true);
    pthread_mutex_lock(&lock);
    while (!left)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    cn_host_free(host);
    cn_cluster_disk_close(&disk);
    cn_disk_system_free(disk.files);
}

static struct cn_database *open_object(uint32_t shard)
{
    struct cn_err err = {0};
    struct cn_object_key key = {0};
    struct cn_database *db;
    struct cn_store *store = cn_cluster_disk_store(&disk, shard);
    CHECK(store != NULL);
    CHECK_INT(0, cn_store_namespace(store, "test/Object", &key.namespace_id, &err));
    CHECK_INT(0, cn_database_open(store, &key, NULL, &db, &err));
    return db;
}

static void add_rows(uint32_t shard, unsigned count)
{
    struct cn_err err = {0};
    struct cn_database *db = open_object(shard);
    uint64_t lsn = 0;
    CHECK_INT(0, cn_database_exec(db, "CREATE TABLE IF NOT EXISTS t(x)", &err));
    for (unsigned i = 0; i < count; i++) {
        CHECK_INT(0, cn_database_exec(db, "INSERT INTO t VALUES (randomblob(3000))", &err));
        CHECK_INT(0, cn_database_commit(db, &lsn, &err));
    }
    CHECK_INT(0, cn_store_wait(cn_cluster_disk_store(&disk, shard), lsn, &err));
    CHECK(cn_store_may_leave(cn_cluster_disk_store(&disk, shard), lsn)); /* the lease is there */
    cn_database_close(db);
}

static int64_t count_rows(uint32_t shard)
{
    static const char sql[] = "SELECT count(*) FROM t";
    struct cn_err err = {0};
    struct cn_database *db = open_object(shard);
    int64_t count = -1;
    CHECK_INT(0, cn_database_number(db, sql, sizeof(sql) - 1, &count, &err));
    cn_database_close(db);
    return count;
}

static void begin(void)
{
    test_postgres_need();
    test_postgres_make(&server, "");
    snprintf(conninfo, sizeof(conninfo), "host=%s user=cairn dbname=postgres", server.dir);
}

TEST(cluster_disk, keeps_what_is_settled_over_a_restart_and_over_the_loss_of_the_disk)
{
    begin();
    char one[200], two[200];
    snprintf(one, sizeof(one), "%s/one", test_dir());
    snprintf(two, sizeof(two), "%s/two", test_dir());
    CHECK_INT(0, mkdir(one, 0700) | mkdir(two, 0700));
    open_node(one);
    await_served();
    add_rows(0, 200);
    add_rows(1, 3);
    close_node();
    open_node(one);
    await_served();
    CHECK_INT(200, count_rows(0));
    add_rows(0, 1);
    close_node();
    open_node(two); /* its log is whole in the engine: C8 */
    await_served();
    CHECK_INT(201, count_rows(0));
    CHECK_INT(3, count_rows(1));
    close_node();
    CHECK_STR("", failure);
    test_postgres_end(&server);
}

/* What was set aside goes also while the node always has something to remember. */
TEST(cluster_disk, is_tidied_though_it_is_written_to_all_the_time)
{
    begin();
    char dir[200];
    snprintf(dir, sizeof(dir), "%s/one", test_dir());
    CHECK_INT(0, mkdir(dir, 0700));
    open_node(dir);
    await_served();
    for (unsigned end = tidied + 2; tidied < end;)
        add_rows(0, 1);
    close_node();
    CHECK_STR("", failure);
    test_postgres_end(&server);
}

/* An hour later, and the node had ended meanwhile, perhaps because its disk was full. */
TEST(cluster_disk, is_tidied_when_it_is_opened)
{
    char dir[200], path[300];
    struct cn_err err = {0};
    struct stat info;
    snprintf(dir, sizeof(dir), "%s", test_dir());
    struct cn_replicas_config replicas = {.disk = cn_disk_system_new(dir)};
    CHECK_INT(0, cn_disk_mkdirs(replicas.disk, "shards/aside/0001-1000"));
    CHECK_INT(0, cn_disk_mkdirs(replicas.disk, "shards/aside/0001-99999999999999"));
    CHECK_INT(0, cn_cluster_disk_open(&disk, &replicas, &err));
    snprintf(path, sizeof(path), "%s/shards/aside/0001-1000", dir);
    CHECK(stat(path, &info) != 0);
    snprintf(path, sizeof(path), "%s/shards/aside/0001-99999999999999", dir);
    CHECK_INT(0, stat(path, &info));
    cn_cluster_disk_close(&disk);
    cn_disk_system_free(replicas.disk);
}

/* G4: an engine that knows nothing of this disk would let it be thrown away. */
TEST(cluster_disk, does_not_join_another_cluster_than_its_own)
{
    begin();
    char dir[200];
    snprintf(dir, sizeof(dir), "%s/one", test_dir());
    CHECK_INT(0, mkdir(dir, 0700));
    open_node(dir);
    await_served();
    add_rows(0, 5);
    close_node();
    test_postgres_ask(&server, "UPDATE cairn.cluster SET id = gen_random_uuid()");
    open_node(dir);
    struct cn_host_status status = {0};
    while (!strstr(status.engine, "another cluster"))
        cn_host_status(host, &status);
    CHECK(!served[0]);
    close_node();
    test_postgres_end(&server);
}

static uint64_t beats(void)
{
    return strtoull(test_postgres_ask(&server, "SELECT coalesce(max(beat), 0) FROM cairn.session"),
                    NULL, 10);
}

/* C15: whoever has acted for an engine can tell when it has gone back, however slow the disk is. */
TEST(cluster_disk, serves_nothing_before_it_remembers_its_engine)
{
    begin();
    char dir[200], path[240], text[200] = "";
    snprintf(dir, sizeof(dir), "%s/one", test_dir());
    snprintf(path, sizeof(path), "%s/shards/SEEN", dir);
    CHECK_INT(0, mkdir(dir, 0700));
    set_held(true);
    open_node(dir);
    struct cn_host_status status = {0};
    while (status.state != CN_MEMBER_LIVE)
        cn_host_status(host, &status);
    for (uint64_t end = beats() + 4; beats() < end;)
        usleep(1000); /* it has had the map for long */
    pthread_mutex_lock(&lock);
    CHECK(!served[0] && !served[1]);
    pthread_mutex_unlock(&lock);
    CHECK_STR("0", test_postgres_ask(&server, "SELECT max(epoch) FROM cairn.shard"));
    CHECK(access(path, F_OK) != 0);
    set_held(false);
    await_served();
    FILE *file = fopen(path, "r");
    CHECK(file && fgets(text, sizeof(text), file));
    fclose(file);
    unsigned long long version = 0, life = 0;
    CHECK_INT(2, sscanf(text, "cairn seen version %llu life %llu", &version, &life));
    CHECK(life > disk.life); /* of this JOIN */
    close_node();
    test_postgres_end(&server);
}

static int open_with_seen(const char *dir, const char *text, struct cn_engine_seen *seen)
{
    struct cn_err err = {0};
    struct cn_replicas_config replicas = {.disk = cn_disk_system_new(dir)};
    CHECK_INT(0, cn_disk_replace(replicas.disk, "shards/SEEN", text, strlen(text)));
    int rc = cn_cluster_disk_open(&disk, &replicas, &err);
    *seen = disk.seen;
    if (rc == 0)
        cn_cluster_disk_close(&disk);
    else
        CHECK(strstr(err.text, "shards/SEEN is damaged"));
    cn_disk_system_free(replicas.disk);
    return rc;
}

/* Any byte of it: a number that has become smaller would let an older engine in. */
TEST(cluster_disk, is_refused_if_what_it_remembers_is_damaged)
{
    char dir[200], text[200] = "", bad[200];
    struct cn_err err = {0};
    struct cn_engine_seen seen = {.version = 57, .life = 9, .session = 3, .beat = 88};
    snprintf(dir, sizeof(dir), "%s", test_dir());
    struct cn_replicas_config replicas = {.disk = cn_disk_system_new(dir)};
    CHECK_INT(0, cn_cluster_disk_open(&disk, &replicas, &err));
    CHECK_INT(0, disk.hands.remember(disk.hands.data, &seen, &err));
    cn_cluster_disk_close(&disk);
    struct cn_disk_file *file;
    CHECK_INT(0, cn_disk_open(replicas.disk, "shards/SEEN", CN_DISK_READONLY, &file));
    int64_t size = cn_disk_read(file, text, sizeof(text) - 1, 0);
    cn_disk_close(file);
    cn_disk_system_free(replicas.disk);
    CHECK(size > 40);
    CHECK_INT(0, open_with_seen(dir, text, &seen));
    CHECK_INT(57, (long long)seen.version);
    CHECK_INT(88, (long long)seen.beat);
    for (int64_t i = 0; i < size; i++) {
        memcpy(bad, text, sizeof(bad));
        bad[i] = (char)(bad[i] ^ 1 << i % 6);
        CHECK_INT(CN_ECORRUPT, open_with_seen(dir, bad, &seen));
    }
    CHECK_INT(CN_ECORRUPT, open_with_seen(dir, "", &seen));
    static const char before[] = "cairn seen version 5 life 4 session 3 beat 2 decision 1\n";
    CHECK_INT(0, open_with_seen(dir, before, &seen)); /* of a build before the checksum */
    CHECK_INT(5, (long long)seen.version);
}
