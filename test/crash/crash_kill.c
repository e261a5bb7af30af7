/* SPDX-License-Identifier: Apache-2.0 */
/* test/crash/crash_kill.c - kills a process that commits, and looks what it left on the real disk.
 *
 * A child runs lanes that count upwards in many objects, each turn one commit of a row, a
 * key-value pair and an alarm, with checkpoints all the while. Before a commit it notes in
 * shared memory what it is about to write, and what is durable after it is. It is killed with
 * SIGKILL at a random moment. Then the store is opened and every object must hold a number
 * between the last one acknowledged and the last one tried, the same in row, pair, alarm and
 * catalog. The next round goes on in the same directory.
 *
 *     crash_kill            a few rounds; part of `make test`
 *     crash_kill long       100 rounds */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/mem.h"
#include "base/rand.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/kvtable.h"
#include "store/store.h"

enum { LANES = 2, PER_LANE = 12, OBJECTS = LANES * PER_LANE };

/* Shared with the child: survives it. */
struct ledger {
    atomic_llong tried[OBJECTS], acked[OBJECTS];
    atomic_int ready;
};
static struct ledger *ledger;

static struct cn_object_key key_of(int number)
{
    struct cn_object_key key = {.namespace_id = 1};
    memset(key.id, number * 7 + 1, sizeof(key.id));
    return key;
}

static struct cn_store *store_open(struct cn_disk *disk)
{
    struct cn_store_config config = {
        .disk = disk,
        .segment_size = 256 << 10,
        .log_live_size = 1 << 20,
        .dirty_size_max = 256 << 10,
        .open_files_max = 8,
    };
    struct cn_store *store;
    struct cn_err err = {0};
    uint32_t namespace_id;
    if (cn_store_open(&config, &store, &err) < 0 ||
        cn_store_namespace(store, "kill/Counter", &namespace_id, &err) < 0) {
        printf("FAIL open: %s\n", err.text);
        return NULL;
    }
    return store;
}

/* ---- The child ---- */

struct lane {
    struct cn_store *store;
    int first;
    uint64_t seed;
    pthread_t thread;
};

static int turn(struct cn_database *db, long long value, uint64_t *lsn, struct cn_err *err)
{
    char sql[160];
    snprintf(sql, sizeof(sql),
             "INSERT OR REPLACE INTO t VALUES(%lld %% 50, %lld, randomblob(%lld))", value, value,
             value % 1500);
    int rc = cn_database_exec(db, "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, n, b)", err);
    if (rc == 0)
        rc = cn_database_exec(db, sql, err);
    if (rc == 0)
        rc = cn_kvtable_put(db, (struct cn_kv_bytes){"n", 1},
                            (struct cn_kv_bytes){&value, sizeof(value)}, err);
    if (rc == 0)
        rc = cn_database_set_alarm(db, value, err);
    return rc < 0 ? rc : cn_database_commit(db, lsn, err);
}

/* Runs until the process is killed. */
static void *lane_run(void *arg)
{
    struct lane *lane = arg;
    struct cn_database *dbs[PER_LANE] = {0};
    struct cn_rand rand;
    struct cn_err err = {0};
    uint64_t waiting[PER_LANE] = {0};
    cn_rand_init(&rand, lane->seed);
    for (;;) {
        int n = (int)cn_rand_below(&rand, PER_LANE), object = lane->first + n;
        struct cn_object_key key = key_of(object);
        long long value = atomic_load(&ledger->tried[object]) + 1;
        if (!dbs[n] && cn_database_open(lane->store, &key, NULL, &dbs[n], &err) < 0)
            break;
        atomic_store(&ledger->tried[object], value);
        if (turn(dbs[n], value, &waiting[n], &err) < 0)
            break;
        if (cn_rand_below(&rand, 8) == 0) {
            if (cn_store_wait(lane->store, waiting[n], &err) < 0)
                break;
            atomic_store(&ledger->acked[object], value);
        }
        if (cn_rand_below(&rand, 16) == 0) {
            cn_database_close(dbs[n]);
            dbs[n] = NULL;
        }
        atomic_store(&ledger->ready, 1);
    }
    fprintf(stderr, "crash_kill: %s\n", err.text);
    abort();
}

static void child_run(const char *path, uint64_t seed)
{
    struct cn_store *store = store_open(cn_disk_system_new(path));
    struct lane lanes[LANES];
    if (!store)
        abort();
    for (int i = 0; i < LANES; i++) {
        lanes[i] = (struct lane){store, i * PER_LANE, seed + (uint64_t)i, 0};
        pthread_create(&lanes[i].thread, NULL, lane_run, &lanes[i]);
    }
    for (int i = 0; i < LANES; i++)
        pthread_join(lanes[i].thread, NULL);
}

/* ---- The judge ---- */

static int fail(int object, const char *what, long long got)
{
    printf("FAIL object %d: %s %lld; acknowledged %lld, tried %lld\n", object, what, got,
           atomic_load(&ledger->acked[object]), atomic_load(&ledger->tried[object]));
    return -1;
}

static int check_object(struct cn_store *store, int object)
{
    struct cn_object_key key = key_of(object);
    struct cn_database *db;
    struct cn_statement *statement = NULL;
    struct cn_catalog_entry entry;
    struct cn_kv_bytes pair;
    char name[CN_OBJECT_NAME_MAX + 1];
    size_t used;
    static const char sql[] = "SELECT max(n), (SELECT integrity_check FROM pragma_integrity_check)"
                              " FROM t";
    long long acked = atomic_load(&ledger->acked[object]), got = 0, kv = 0;
    if (atomic_load(&ledger->tried[object]) == 0)
        return 0;
    if (cn_database_open(store, &key, NULL, &db, NULL) < 0)
        return fail(object, "cannot be opened", 0);
    bool sound = true;
    if (cn_database_prepare(db, sql, strlen(sql), 0, &statement, &used, NULL) == 0) {
        size_t size;
        sound = cn_statement_step(statement, NULL) == 1 &&
                strcmp(cn_statement_column_text(statement, 1, &size), "ok") == 0;
        got = cn_statement_column_int(statement, 0);
        cn_statement_release(statement);
    }
    if (cn_kvtable_get(db, (struct cn_kv_bytes){"n", 1}, &pair, NULL) == 1 &&
        pair.size == sizeof(kv))
        memcpy(&kv, pair.data, sizeof(kv));
    int64_t alarm = cn_database_alarm(db);
    cn_database_close(db);
    if (!sound)
        return fail(object, "is damaged at", got);
    if (got < acked || got > atomic_load(&ledger->tried[object]))
        return fail(object, "holds", got);
    if (kv != got || alarm != (got ? got : CN_ALARM_NONE))
        return fail(object, "has another pair or alarm:", kv != got ? kv : (long long)alarm);
    int found = cn_catalog_find(cn_store_catalog(store), &key, &entry, name, NULL);
    if (found != (got > 0) || (found && entry.alarm_ms != got))
        return fail(object, "is not in the catalog as", found ? (long long)entry.alarm_ms : 0);
    atomic_store(&ledger->tried[object], got); /* the next round counts on from here */
    atomic_store(&ledger->acked[object], got);
    return 0;
}

static int round_run(const char *path, struct cn_rand *rand)
{
    atomic_store(&ledger->ready, 0);
    pid_t child = fork();
    if (child == 0) {
        child_run(path, cn_rand_next(rand));
        _exit(1);
    }
    while (!atomic_load(&ledger->ready)) { /* it has recovered and commits */
        int status;
        if (waitpid(child, &status, WNOHANG) == child) {
            printf("FAIL the child ended by itself\n");
            return -1;
        }
        usleep(1000);
    }
    usleep((useconds_t)cn_rand_below(rand, 60000)); /* any moment will do */
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    struct cn_disk *disk = cn_disk_system_new(path);
    struct cn_store *store = store_open(disk);
    int rc = store ? 0 : -1;
    for (int i = 0; i < OBJECTS && rc == 0; i++)
        rc = check_object(store, i);
    if (store)
        cn_store_close(store);
    cn_disk_system_free(disk);
    return rc;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 && strcmp(argv[1], "long") == 0 ? 100 : 4;
    const char *given = getenv("CAIRN_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    char path[] = "build/crash-kill-XXXXXX";
    struct cn_rand rand;
    cn_rand_init(&rand, seed);
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR);
    setvbuf(stdout, NULL, _IOLBF, 0);
    ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ledger == MAP_FAILED || !mkdtemp(path))
        return 1;
    int done = 0, rc = 0;
    for (; done < rounds && rc == 0; done += rc == 0)
        rc = round_run(path, &rand);
    long long commits = 0;
    for (int i = 0; i < OBJECTS; i++)
        commits += atomic_load(&ledger->acked[i]);
    printf("%d kills, %lld commits (CAIRN_TEST_SEED=%llu)\n", done, commits,
           (unsigned long long)seed);
    printf("%d passed, %d failed, 0 skipped\n", done, rc < 0);
    if (rc == 0) {
        char *remove = cn_sprintf("rm -rf '%s'", path);
        rc = system(remove);
        cn_free(remove);
    }
    return rc == 0 ? 0 : 1;
}
