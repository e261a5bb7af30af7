/* SPDX-License-Identifier: Apache-2.0 */
/* test/bench/bench_shards.c - what many shards cost a process that has nothing to do for them.
 *
 * Opens a data directory with COUNT (256) replicas, as followers and then as owners, each with an
 * object in it, and prints for either form: time to open, memory, descriptors, threads, and CPU
 * while idle for some seconds.
 *
 *     bench_shards [COUNT [SECONDS]] */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/disk.h"
#include "store/database.h"
#include "store/replica.h"
#include "store/store.h"

static double now_ms(void)
{
    return (double)cn_clock_mono_ns(cn_clock_system()) / 1e6;
}

static double cpu_ms(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = -2; /* . and .. */
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

/* What is allocated now. */
static long memory_kb(void)
{
    struct mallinfo2 info = mallinfo2();
    return (long)((info.uordblks + info.hblkhd) >> 10);
}

static void must(int rc, const struct cn_err *err)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "bench_shards: %s\n", err->text);
    exit(1);
}

static void report(const char *what, int count, double ms, long before_kb, int seconds)
{
    double cpu = cpu_ms();
    printf("%-34s %8.1f ms\n", "open", ms);
    printf("%-34s %8.1f KB each\n", "memory", (double)(memory_kb() - before_kb) / count);
    printf("%-34s %8d\n", "descriptors", entries("/proc/self/fd"));
    printf("%-34s %8d\n", "threads", entries("/proc/self/task"));
    (void)sleep((unsigned)seconds);
    printf("%-34s %8.2f %% of a core\n", "idle", (cpu_ms() - cpu) / seconds / 10);
    printf("    (%d %s)\n", count, what);
}

static struct cn_replicas *replicas_open(struct cn_disk *disk)
{
    struct cn_replicas_config config = {.disk = disk};
    struct cn_replicas *replicas;
    struct cn_err err = {0};
    must(cn_replicas_open(&config, &replicas, &err), &err);
    return replicas;
}

static struct cn_replica *promote(struct cn_replicas *replicas, uint32_t shard)
{
    struct cn_replica *replica = cn_replicas_find(replicas, shard);
    struct cn_replica_state state;
    struct cn_store *store;
    struct cn_err err = {0};
    cn_replica_state(replica, &state);
    must(cn_replica_promote(replica, state.have, NULL, &store, &err), &err);
    return replica;
}

/* One object in every shard. */
static void fill(struct cn_disk *disk, int count)
{
    struct cn_replicas *replicas = replicas_open(disk);
    for (int i = 0; i < count; i++) {
        struct cn_replica *replica;
        struct cn_err err = {0};
        struct cn_database *db;
        struct cn_object_key key = {.namespace_id = 1, .id = {1}};
        uint64_t lsn;
        must(cn_replicas_create(replicas, (uint32_t)i, &replica, &err), &err);
        (void)promote(replicas, (uint32_t)i);
        must(cn_database_open(cn_replica_store(replica), &key, NULL, &db, &err), &err);
        must(cn_database_exec(db, "CREATE TABLE t(x); INSERT INTO t VALUES(1)", &err), &err);
        must(cn_database_commit(db, &lsn, &err), &err);
        must(cn_replica_settled(replica, lsn, &err), &err);
        cn_database_close(db);
    }
    cn_replicas_close(replicas);
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 256, seconds = argc > 2 ? atoi(argv[2]) : 2;
    char root[] = "/tmp/cairn-bench-shards-XXXXXX";
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR);
    if (count < 1 || count > CN_REPLICA_SHARDS_MAX || !mkdtemp(root))
        return 1;
    struct cn_disk *disk = cn_disk_system_new(root);
    fill(disk, count);

    long before_kb = memory_kb();
    double start = now_ms();
    struct cn_replicas *replicas = replicas_open(disk);
    report("shards that follow", count, now_ms() - start, before_kb, seconds);
    before_kb = memory_kb();
    start = now_ms();
    for (int i = 0; i < count; i++)
        (void)promote(replicas, (uint32_t)i);
    report("shards that are owned", count, now_ms() - start, before_kb, seconds);
    cn_replicas_close(replicas);
    for (int i = 0; i < count; i++) { /* and nothing stays behind */
        struct cn_err err = {0};
        replicas = i == 0 ? replicas_open(disk) : replicas;
        must(cn_replicas_discard(replicas, (uint32_t)i, &err), &err);
    }
    cn_replicas_close(replicas);
    cn_disk_system_free(disk);
    char command[80];
    snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command) != 0;
}
