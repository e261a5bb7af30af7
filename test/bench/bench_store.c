/* SPDX-License-Identifier: Apache-2.0 */
/* What the store costs, beside stock SQLite (WAL, synchronous=FULL) in the same program:
 *
 *     build/bench/bench_store [word...]     only figures whose name contains a word
 *
 * One line per figure: name, value, unit, and, where there is one, the goal. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/mem.h"
#include "base/rand.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/kvtable.h"
#include "store/sqlite.h"
#include "store/store.h"

enum { OBJECTS = 1000, FLIGHT_MAX = 512, LANES = 2 };

static char root[256];
static char **words;
static int word_count;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_store: %s: %s\n", what, why);
    exit(1);
}

#define MUST(call)                \
    do {                          \
        struct cn_err err = {0};  \
        if ((call) < 0)           \
            die(#call, err.text); \
    } while (0)

static double now_us(void)
{
    return (double)cn_clock_mono_ns(cn_clock_system()) / 1000.0;
}

static double cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static bool wanted(const char *name)
{
    for (int i = 0; i < word_count; i++) {
        if (strstr(name, words[i]))
            return true;
    }
    return word_count == 0;
}

static void figure(const char *name, double value, const char *unit, const char *goal)
{
    printf("%-44s %12.2f %-10s %s\n", name, value, unit, goal ? goal : "");
    fflush(stdout);
}

static char *fresh_dir(const char *name)
{
    char *path = cn_sprintf("%s/%s", root, name);
    if (mkdir(path, 0700) != 0)
        die("mkdir", path);
    return path;
}

static struct cn_disk *disk_at(const char *path)
{
    struct cn_disk *disk = cn_disk_system_new(path);
    if (!disk)
        die("disk", path);
    return disk;
}

static struct cn_store *store_at(struct cn_disk *disk, const struct cn_store_config *base)
{
    struct cn_store_config config = base ? *base : (struct cn_store_config){0};
    struct cn_store *store;
    uint32_t namespace_id;
    config.disk = disk;
    MUST(cn_store_open(&config, &store, &err));
    MUST(cn_store_namespace(store, "bench/Object", &namespace_id, &err));
    return store;
}

static struct cn_object_key key_of(unsigned number)
{
    struct cn_object_key key = {.namespace_id = 1};
    struct cn_rand rand;
    cn_rand_init(&rand, number);
    for (size_t i = 0; i < sizeof(key.id); i += 8) {
        uint64_t word = cn_rand_next(&rand);
        memcpy(key.id + i, &word, 8);
    }
    return key;
}

static struct cn_database *open_object(struct cn_store *store, unsigned number)
{
    struct cn_object_key key = key_of(number);
    struct cn_database *db;
    MUST(cn_database_open(store, &key, NULL, &db, &err));
    return db;
}

static const char make_table[] =
    "CREATE TABLE counters(id INTEGER PRIMARY KEY, value INTEGER, note TEXT);"
    "INSERT INTO counters VALUES(1, 0, 'a counter'), (2, 0, 'another'), (3, 0, 'a third')";
static const char update[] = "UPDATE counters SET value = value + 1 WHERE id = 1";

static struct cn_database *make_object(struct cn_store *store, unsigned number)
{
    struct cn_database *db = open_object(store, number);
    uint64_t lsn;
    MUST(cn_database_exec(db, make_table, &err));
    MUST(cn_database_commit(db, &lsn, &err));
    return db;
}

static uint64_t commit_update(struct cn_database *db)
{
    struct cn_statement *statement;
    size_t used;
    uint64_t lsn;
    MUST(
        cn_database_prepare(db, update, sizeof(update) - 1, CN_SQL_GUEST, &statement, &used, &err));
    MUST(cn_statement_step(statement, &err));
    cn_statement_release(statement);
    MUST(cn_database_commit(db, &lsn, &err));
    return lsn;
}

/* ---- Stock SQLite ---- */

static sqlite3 *stock_open(const char *dir, unsigned number)
{
    char *path = cn_sprintf("%s/%u.db", dir, number);
    sqlite3 *db;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        "unix") != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", NULL, NULL,
                     NULL) ||
        sqlite3_exec(db, make_table, NULL, NULL, NULL))
        die("stock SQLite", sqlite3_errmsg(db));
    cn_free(path);
    return db;
}

/* Microseconds per commit over `objects` databases in random order. */
static double stock_run(unsigned objects, int commits)
{
    char *name = cn_sprintf("stock-%u", objects);
    char *dir = fresh_dir(name);
    sqlite3 **dbs = cn_alloc(objects * sizeof(*dbs));
    sqlite3_stmt **statements = cn_alloc(objects * sizeof(*statements));
    for (unsigned i = 0; i < objects; i++) {
        dbs[i] = stock_open(dir, i);
        sqlite3_prepare_v2(dbs[i], update, -1, &statements[i], NULL);
    }
    struct cn_rand rand;
    cn_rand_init(&rand, 7);
    double start = now_us();
    for (int i = 0; i < commits; i++) {
        sqlite3_stmt *statement = statements[cn_rand_below(&rand, objects)];
        if (sqlite3_step(statement) != SQLITE_DONE)
            die("stock SQLite", "update");
        sqlite3_reset(statement);
    }
    double each = (now_us() - start) / commits;
    for (unsigned i = 0; i < objects; i++) {
        sqlite3_finalize(statements[i]);
        sqlite3_close(dbs[i]);
    }
    cn_free(dbs);
    cn_free(statements);
    cn_free(name);
    cn_free(dir);
    return each;
}

/* ---- Ours ---- */

struct lane {
    struct cn_store *store;
    unsigned first, count; /* objects of this lane */
    int commits;
    int in_flight; /* commits whose answers wait for the disk */
    pthread_t thread;
};

static void *lane_run(void *arg)
{
    struct lane *lane = arg;
    struct cn_database **dbs = cn_alloc(lane->count * sizeof(*dbs));
    for (unsigned i = 0; i < lane->count; i++)
        dbs[i] = open_object(lane->store, lane->first + i);
    uint64_t flight[FLIGHT_MAX] = {0};
    struct cn_rand rand;
    cn_rand_init(&rand, lane->first + 1);
    for (int i = 0; i < lane->commits; i++) {
        /* The answer to the commit `in_flight` before this one must have gone out. */
        MUST(cn_store_wait(lane->store, flight[i % lane->in_flight], &err));
        flight[i % lane->in_flight] = commit_update(dbs[cn_rand_below(&rand, lane->count)]);
    }
    for (int i = 0; i < lane->in_flight; i++)
        MUST(cn_store_wait(lane->store, flight[i], &err));
    for (unsigned i = 0; i < lane->count; i++)
        cn_database_close(dbs[i]);
    cn_free(dbs);
    return NULL;
}

static void ours_run(struct cn_store *store, unsigned objects, int lanes, int in_flight,
                     int commits, double *each_us, double *each_cpu_us, double *log_bytes)
{
    struct lane lane[LANES];
    struct cn_store_stats before, after;
    cn_store_stats(store, &before);
    double start = now_us(), cpu = cpu_us();
    for (int i = 0; i < lanes; i++) {
        unsigned share = objects / (unsigned)lanes;
        lane[i] = (struct lane){store, (unsigned)i * share, share, commits / lanes, in_flight, 0};
        pthread_create(&lane[i].thread, NULL, lane_run, &lane[i]);
        pthread_setname_np(lane[i].thread, "lane");
    }
    for (int i = 0; i < lanes; i++)
        pthread_join(lane[i].thread, NULL);
    *each_us = (now_us() - start) / commits;
    *each_cpu_us = (cpu_us() - cpu) / commits;
    cn_store_stats(store, &after);
    *log_bytes = (double)(after.log_bytes - before.log_bytes) / commits;
    printf("  (%llu flushes, %.1f commits each, %llu checkpoints)\n",
           (unsigned long long)(after.flush_count - before.flush_count),
           (double)commits / (double)(after.flush_count - before.flush_count),
           (unsigned long long)(after.checkpoint_count - before.checkpoint_count));
}

static void bench_commits(void)
{
    char *dir = fresh_dir("commits");
    struct cn_disk *disk = disk_at(dir);
    struct cn_store *store = store_at(disk, NULL);
    for (unsigned i = 0; i < OBJECTS; i++)
        cn_database_close(make_object(store, i));
    double each, cpu, bytes, stock;
    if (wanted("one object")) {
        stock = stock_run(1, 1000);
        ours_run(store, 1, 1, 64, 200000, &each, &cpu, &bytes);
        figure("one object, stock SQLite WAL FULL", stock, "us/commit", NULL);
        figure("one object, 64 in flight", each, "us/commit", NULL);
        figure("one object, ratio to stock", stock / each, "x", ">= 30");
        figure("one object, CPU", cpu, "us/commit", "< 8");
        figure("one object, log", bytes, "bytes/commit", "< 512");
    }
    if (wanted("many objects")) {
        stock = stock_run(OBJECTS, 1500);
        ours_run(store, OBJECTS, LANES, FLIGHT_MAX, 600000, &each, &cpu, &bytes);
        figure("many objects (1000), stock SQLite", stock, "us/commit", NULL);
        figure("many objects (1000), 2 x 512 in flight", each, "us/commit", NULL);
        figure("many objects (1000), ratio to stock", stock / each, "x", ">= 100");
        figure("many objects (1000), CPU", cpu, "us/commit", "< 8");
        figure("many objects (1000), log", bytes, "bytes/commit", "< 512");
    }
    cn_store_close(store);
    cn_disk_system_free(disk);
    cn_free(dir);
}

/* ---- Opening and memory ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void bench_open(void)
{
    enum { COUNT = 2000 };
    char *dir = fresh_dir("open");
    struct cn_disk *disk = disk_at(dir);
    struct cn_store *store = store_at(disk, NULL);
    for (unsigned i = 0; i < COUNT; i++)
        cn_database_close(make_object(store, i));
    MUST(cn_store_checkpoint(store, &err));
    static double times[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        struct cn_statement *statement;
        size_t used;
        static const char sql[] = "SELECT value FROM counters WHERE id = 1";
        double start = now_us();
        struct cn_database *db = open_object(store, i);
        MUST(cn_database_prepare(db, sql, sizeof(sql) - 1, CN_SQL_GUEST, &statement, &used, &err));
        MUST(cn_statement_step(statement, &err));
        times[i] = now_us() - start;
        cn_statement_release(statement);
        cn_database_close(db);
    }
    qsort(times, COUNT, sizeof(times[0]), compare_doubles);
    figure("open a small database and read, p50", times[COUNT / 2], "us", "< 150");
    figure("open a small database and read, p99", times[COUNT * 99 / 100], "us", NULL);

    /* Memory: 2,000 open databases that have read and written, then closed. */
    static struct cn_database *dbs[COUNT];
    size_t before = mallinfo2().uordblks;
    for (unsigned i = 0; i < COUNT; i++) {
        dbs[i] = open_object(store, i);
        commit_update(dbs[i]);
    }
    MUST(cn_store_checkpoint(store, &err));
    figure("memory of an open database", (double)(mallinfo2().uordblks - before) / COUNT, "bytes",
           NULL);
    for (unsigned i = 0; i < COUNT; i++)
        cn_database_close(dbs[i]);
    MUST(cn_store_checkpoint(store, &err));
    double left = (double)((long long)mallinfo2().uordblks - (long long)before) / COUNT;
    figure("memory of a closed database", left, "bytes", "0");
    struct cn_store_stats stats;
    cn_store_stats(store, &stats);
    figure("images in memory after closing", (double)stats.image_count, "", "0");
    cn_store_close(store);
    cn_disk_system_free(disk);
    cn_free(dir);
}

/* ---- Recovery ---- */

/* In a child that is killed: fills the log to 256 MB with updates. */
static void recovery_fill(const char *dir)
{
    struct cn_store_config config = {
        .sync = CN_LOG_OS, .log_live_size = 1ull << 30, .manual = true};
    struct cn_store *store = store_at(disk_at(dir), &config);
    static struct cn_database *dbs[OBJECTS];
    struct cn_store_stats stats;
    struct cn_rand rand;
    cn_rand_init(&rand, 3);
    for (unsigned i = 0; i < OBJECTS; i++)
        dbs[i] = make_object(store, i);
    uint64_t lsn;
    do {
        for (int i = 0; i < 1000; i++)
            lsn = commit_update(dbs[cn_rand_below(&rand, OBJECTS)]);
        MUST(cn_store_wait(store, lsn, &err));
        cn_store_stats(store, &stats);
    } while (stats.log_live_bytes < 256u << 20);
    _exit(0);
}

static void bench_recovery(void)
{
    char *dir = fresh_dir("recovery");
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR);
    pid_t child = fork();
    if (child == 0)
        recovery_fill(dir);
    int status;
    waitpid(child, &status, 0);
    if (status != 0)
        die("recovery", "the child failed");
    struct cn_disk *disk = disk_at(dir);
    double start = now_us();
    struct cn_store *store = store_at(disk, NULL);
    double took = now_us() - start;
    struct cn_store_stats stats;
    cn_store_stats(store, &stats);
    figure("recovery, records", (double)stats.recovered_records, "", NULL);
    figure("recovery of a 256 MB log", took / 1e6, "s", "< 3");
    cn_store_close(store);
    cn_disk_system_free(disk);
    cn_free(dir);
}

/* ---- Catalog ---- */

static int count_each(void *data, const struct cn_catalog_entry *entry)
{
    (*(int *)data)++;
    return 0;
}

static void bench_catalog(void)
{
    enum { COUNT = 1000000 };
    char *dir = fresh_dir("catalog");
    struct cn_disk *disk = disk_at(dir);
    struct cn_store *store = store_at(disk, NULL);
    struct cn_catalog *catalog = cn_store_catalog(store);
    double start = now_us();
    for (unsigned i = 0; i < COUNT; i++) {
        char name[32];
        int size = snprintf(name, sizeof(name), "object-%u", i);
        struct cn_catalog_change change = {
            .key = key_of(i),
            .lsn = 1,
            .time_ms = 1,
            .page_count = 3,
            .has_alarm = i % 10 == 0,
            .alarm_ms = i,
            .name = name,
            .name_size = (uint16_t)size,
        };
        MUST(cn_catalog_apply(catalog, &change, &err));
    }
    figure("catalog, enter one of a million", (now_us() - start) / COUNT, "us", NULL);
    cn_store_close(store);
    start = now_us();
    store = store_at(disk, NULL);
    figure("start with a million objects", (now_us() - start) / 1e6, "s", "< 1");
    catalog = cn_store_catalog(store);
    int seen = 0;
    start = now_us();
    MUST(cn_catalog_list_alarms(catalog, INT64_MAX, NULL, 1000, count_each, &seen, &err));
    figure("catalog, the next 1000 alarms", (now_us() - start) / 1e3, "ms", NULL);
    seen = 0;
    start = now_us();
    struct cn_catalog_listing listing = {
        .namespace_id = 1, .limit = 1000, .each = count_each, .data = &seen};
    MUST(cn_catalog_list_names(catalog, &listing, "object-77", 9, NULL, 0, &err));
    figure("catalog, 1000 names by prefix", (now_us() - start) / 1e3, "ms", NULL);
    cn_store_close(store);
    cn_disk_system_free(disk);
    cn_free(dir);
}

/* ---- Memory of a large transaction ---- */

/* The most that this process had in memory since peak_forget(). */
static double peak_bytes(void)
{
    char line[128];
    double kb = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof(line), status))
        sscanf(line, "VmHWM: %lf", &kb);
    if (status)
        fclose(status);
    return kb * 1024;
}

static double peak_forget(void)
{
    malloc_trim(0);
    FILE *refs = fopen("/proc/self/clear_refs", "w");
    if (!refs || fputs("5", refs) < 0 || fclose(refs) != 0)
        die("clear_refs", "it cannot be written");
    return peak_bytes();
}

/* Runs the SQL as one commit that changes `bytes` of pages. */
static void transaction(struct cn_store *store, struct cn_database *db, const char *name,
                        const char *sql, double bytes)
{
    uint64_t lsn;
    double before = peak_forget();
    MUST(cn_database_exec(db, sql, &err));
    MUST(cn_database_commit(db, &lsn, &err));
    MUST(cn_store_wait(store, lsn, &err));
    figure(name, (peak_bytes() - before) / bytes, "x pages", "2");
    MUST(cn_store_checkpoint(store, &err));
}

static void bench_transaction(void)
{
    enum { ROWS = 8000 }; /* a page each */
    const double bytes = ROWS * 4096.0;
    char *path = fresh_dir("transaction"), sql[512];
    struct cn_disk *disk = disk_at(path);
    struct cn_store *store = store_at(disk, NULL);
    struct cn_database *db = make_object(store, 1);
    snprintf(sql, sizeof(sql),
             "CREATE TABLE large(id INTEGER PRIMARY KEY, number, bytes);"
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             "INSERT INTO large SELECT i, 0, randomblob(3900) FROM n",
             ROWS);
    transaction(store, db, "transaction: new pages, random", sql, bytes);
    transaction(store, db, "transaction: all of every page, random",
                "UPDATE large SET bytes = randomblob(3900)", bytes);
    transaction(store, db, "transaction: a number in every page",
                "UPDATE large SET number = number + 1", bytes);
    transaction(
        store, db, "transaction: all of every page, text",
        "UPDATE large SET bytes = replace(hex(zeroblob(195)), '00', 'a text of 20 letters')",
        bytes);
    cn_database_close(db);
    cn_store_close(store);
    cn_disk_system_free(disk);
    cn_free(path);
}

int main(int argc, char **argv)
{
    words = argv + 1;
    word_count = argc - 1;
    const char *base = getenv("CAIRN_BENCH_DIR") ? getenv("CAIRN_BENCH_DIR") : "build";
    snprintf(root, sizeof(root), "%s/bench-store-XXXXXX", base);
    if (!mkdtemp(root))
        die("mkdtemp", root);
    MUST(cn_sqlite_setup(&err));
    if (wanted("one object") || wanted("many objects"))
        bench_commits();
    if (wanted("open"))
        bench_open();
    if (wanted("recovery"))
        bench_recovery();
    if (wanted("catalog"))
        bench_catalog();
    if (wanted("transaction"))
        bench_transaction();
    char *remove = cn_sprintf("rm -rf '%s'", root);
    int rc = system(remove);
    cn_free(remove);
    return rc;
}
