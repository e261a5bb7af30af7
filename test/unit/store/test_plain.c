/* SPDX-License-Identifier: Apache-2.0 */
/* Plain files of others: only read, and whole (G1); whatever they hold (G2), they become pages of
 * ours, the same each time (G3); an object comes whole, or is continued (G4). */
#include "store/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "store/kvtable.h"
#include "store/sqlite.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

struct world {
    char from[200], to[200];
};

/* The databases "from" and "to" of a test. */
static struct world world_of(const char *name)
{
    struct world world;
    struct cn_err err = {0};
    CHECK_INT(0, cn_sqlite_setup(&err));
    snprintf(world.from, sizeof(world.from), "%s/%s.from", test_dir(), name);
    snprintf(world.to, sizeof(world.to), "%s/%s.to", test_dir(), name);
    return world;
}

static sqlite3 *begin(const char *path, const char *sql)
{
    sqlite3 *connection;
    struct cn_err err = {0};
    CHECK_INT(SQLITE_OK, sqlite3_open(path, &connection));
    if (cn_sqlite_exec(connection, sql, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, err.text);
    return connection;
}

static void make(const char *path, const char *sql)
{
    CHECK_INT(SQLITE_OK, sqlite3_close(begin(path, sql)));
}

static int upper(void *data, const void *bytes, size_t size, struct cn_buf *out, struct cn_err *err)
{
    (void)data;
    if (size && *(const char *)bytes == '!')
        return cn_err_set(err, CN_EUNSUPPORTED, "no form");
    for (size_t i = 0; i < size; i++)
        cn_buf_append_byte(out, (uint8_t)(((const uint8_t *)bytes)[i] ^ 0x20));
    return 0;
}

/* Copies, rewrites and settles: pages, or the failure. */
static int64_t settle(const struct world *world, struct cn_err *err)
{
    struct cn_plain *plain = NULL;
    uint32_t pages = 0;
    *err = (struct cn_err){0};
    int rc = cn_plain_copy(world->from, world->to, err);
    if (rc == 0)
        rc = cn_plain_open(world->to, &plain, err);
    if (rc == 0)
        rc = cn_plain_rewrite(plain, upper, NULL, err);
    if (rc == 0)
        rc = cn_plain_settle(plain, &pages, err);
    cn_plain_close(plain);
    CHECK_INT(rc, err->code);
    return rc < 0 ? rc : (int64_t)pages;
}

static enum cn_plain_outcome keep(struct cn_store *store, const struct world *world,
                                  unsigned number, uint32_t pages, bool look)
{
    struct cn_replace_meta meta = {true, 12345, "n", 1};
    struct cn_object_key key = storetest_key(number);
    struct cn_plain_file file = {world->to, pages, &meta, look};
    enum cn_plain_outcome outcome = CN_PLAIN_OTHER;
    struct cn_err err = {0};
    if (cn_plain_store(store, &key, &file, &outcome, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return outcome;
}

TEST(plain, a_database_becomes_an_object_with_its_log_and_the_source_stays)
{
    struct world world = world_of("wal");
    struct stat before, after;
    struct cn_err err;
    sqlite3 *writer = begin(
        world.from, "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
                    "CREATE TABLE t (a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (7, 'x');"
                    "CREATE TABLE _cf_KV (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;"
                    "CREATE TABLE _cf_METADATA (key INTEGER PRIMARY KEY, value BLOB);"
                    "CREATE TABLE __miniflare_do_name (id INTEGER PRIMARY KEY, name TEXT);"
                    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE"
                    " i < 499) INSERT INTO _cf_KV SELECT printf('k%03d', i), 'abc' FROM n");
    CHECK_INT(0, stat(world.from, &before));
    int64_t pages = settle(&world, &err);
    CHECK(pages > 0);
    CHECK_INT(0, stat(world.from, &after));
    CHECK(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec && before.st_size == after.st_size);
    CHECK_INT(SQLITE_OK, sqlite3_close(writer));
    struct cn_store *store = storetest_open(storetest_disk(), NULL);
    CHECK_INT(CN_PLAIN_OTHER, keep(store, &world, 1, (uint32_t)pages, true));
    CHECK_INT(CN_PLAIN_CAME, keep(store, &world, 1, (uint32_t)pages, false));
    CHECK_INT(CN_PLAIN_THERE, keep(store, &world, 1, (uint32_t)pages, false));
    CHECK_INT(pages, settle(&world, &err)); /* checkpointed since: the same pages (G3) */
    CHECK_INT(CN_PLAIN_THERE, keep(store, &world, 1, (uint32_t)pages, true));
    struct cn_database *db = storetest_database(store, 1);
    struct cn_kv_bytes value;
    CHECK_STR("x", storetest_text(db, "SELECT b FROM t WHERE a = 7"));
    CHECK_INT(2, storetest_int(db, "SELECT count(*) FROM sqlite_schema"));
    CHECK_INT(1, cn_kvtable_get(db, (struct cn_kv_bytes){"k499", 4}, &value, &err));
    CHECK(value.size == 3 && memcmp(value.data, "ABC", 3) == 0);
    CHECK_INT(12345, cn_database_alarm(db));
    storetest_exec(db, "INSERT INTO t VALUES (8, 'y')");
    storetest_commit(db);
    cn_database_close(db);
    CHECK_INT(CN_PLAIN_OTHER, keep(store, &world, 1, (uint32_t)pages, false));
    cn_store_close(store);
}

TEST(plain, other_page_sizes_and_vacuums_are_brought_into_form)
{
    struct world world = world_of("form");
    struct cn_err err;
    make(world.from, "PRAGMA page_size = 1024; PRAGMA auto_vacuum = FULL;"
                     "CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(10000))");
    int64_t pages = settle(&world, &err);
    CHECK_INT(4, pages);
    struct cn_store *store = storetest_open(storetest_disk(), NULL);
    CHECK_INT(CN_PLAIN_CAME, keep(store, &world, 1, (uint32_t)pages, false));
    struct cn_database *db = storetest_database(store, 1);
    CHECK_INT(10000, storetest_int(db, "SELECT length(a) FROM t"));
    cn_database_close(db);
    cn_store_close(store);
}

TEST(plain, an_object_that_is_too_large_for_a_commit_is_continued)
{
    struct world world = world_of("large");
    struct cn_err err;
    make(world.from, "CREATE TABLE t (a); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
                     " FROM n WHERE i < 40) INSERT INTO t SELECT zeroblob(1000000) FROM n");
    int64_t pages = settle(&world, &err);
    CHECK(pages > 8192);
    struct cn_disk *disk = storetest_disk();
    struct cn_store *store = storetest_open(disk, NULL);
    struct cn_object_key key = storetest_key(1);
    /* What an interruption leaves: the first part, as it is in the source. */
    uint8_t *part = cn_alloc(8192u * 4096);
    int fd = open(world.to, O_RDONLY);
    CHECK_INT(8192 * 4096, pread(fd, part, 8192u * 4096, 0));
    close(fd);
    uint64_t lsn;
    CHECK_INT(0, cn_store_extend(store, &key, part, 8192, NULL, &lsn, &err));
    cn_free(part);
    CHECK_INT(CN_PLAIN_OTHER, keep(store, &world, 1, (uint32_t)pages, true));
    CHECK_INT(CN_PLAIN_CAME, keep(store, &world, 1, (uint32_t)pages, false));
    CHECK_INT(CN_PLAIN_THERE, keep(store, &world, 1, (uint32_t)pages, false));
    struct cn_database *db = storetest_database(store, 1);
    CHECK_INT(40, storetest_int(db, "SELECT count(*) FROM t WHERE length(a) = 1000000"));
    CHECK_INT(12345, cn_database_alarm(db));
    cn_database_close(db);
    cn_store_close(store);
}

TEST(plain, what_is_damaged_or_no_table_is_refused)
{
    struct world world = world_of("bad");
    struct cn_err err;
    static const char *const tables[] = {
        "CREATE TABLE _cf_KV (key TEXT PRIMARY KEY, value BLOB);"
        "CREATE TRIGGER x AFTER UPDATE ON _cf_KV BEGIN INSERT INTO _cf_KV VALUES ('a', 'b'); END",
        "CREATE VIEW _cf_KV AS SELECT 1 AS key, 2 AS value",
        "CREATE VIRTUAL TABLE _cf_KV USING fts5(key, value)",
        "CREATE TABLE _cf_KV (key TEXT PRIMARY KEY, value BLOB);"
        "CREATE INDEX i ON _cf_KV (key) WHERE value > zeroblob(1000)",
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        (void)unlink(world.from);
        make(world.from, tables[i]);
        CHECK_INT(CN_ECORRUPT, settle(&world, &err));
    }
    /* A value without a form. */
    (void)unlink(world.from);
    make(world.from, "CREATE TABLE _cf_KV (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;"
                     "INSERT INTO _cf_KV VALUES ('bad key', '!x')");
    CHECK_INT(CN_EUNSUPPORTED, settle(&world, &err));
    CHECK(strstr(err.text, "bad key"));
    (void)unlink(world.from);
    make(world.from, "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a)");
    CHECK_INT(CN_EUNSUPPORTED, settle(&world, &err));
    /* Not there, a folder, a link, a pipe. */
    (void)unlink(world.from);
    CHECK_INT(CN_ENOTFOUND, settle(&world, &err));
    CHECK_INT(0, symlink("/etc/passwd", world.from));
    CHECK(settle(&world, &err) < 0);
    (void)unlink(world.from);
    CHECK_INT(0, mkfifo(world.from, 0600));
    CHECK_INT(CN_EINVALID, settle(&world, &err));
    (void)unlink(world.from);
}

/* Whatever bytes of a database are changed, it is refused or is a database. */
TEST(plain, any_damage_is_refused_or_harmless)
{
    struct world world = world_of("flips");
    struct cn_err err;
    make(world.from, "CREATE TABLE t (a PRIMARY KEY, b); CREATE TABLE _cf_KV (key TEXT PRIMARY KEY,"
                     " value BLOB) WITHOUT ROWID; INSERT INTO _cf_KV VALUES ('k', 'v');"
                     "INSERT INTO t VALUES (1, zeroblob(9000)), (2, 'x')");
    uint64_t state = test_seed();
    unsigned refused = 0;
    for (int i = 0; i < 300; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        off_t at = (off_t)(state >> 33) % (i % 2 ? 200 : 5 * 4096);
        uint8_t byte, other = (uint8_t)(state >> 20);
        int fd = open(world.from, O_RDWR);
        CHECK_INT(1, pread(fd, &byte, 1, at));
        CHECK_INT(1, pwrite(fd, &other, 1, at));
        int64_t pages = settle(&world, &err);
        refused += pages < 0;
        CHECK_INT(1, pwrite(fd, &byte, 1, at));
        close(fd);
    }
    CHECK(refused > 20);
    CHECK(settle(&world, &err) > 0);
}

TEST(plain, a_file_that_is_written_to_meanwhile_is_refused)
{
    struct world world = world_of("busy");
    struct cn_err err = {0};
    char wal[256];
    make(world.from, "CREATE TABLE t (a)");
    /* Its size is another than what was read: a file that a write has cut. */
    snprintf(wal, sizeof(wal), "%s-wal", world.from);
    int fd = open(wal, O_RDWR | O_CREAT, 0600);
    CHECK_INT(0, ftruncate(fd, 64 << 20));
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            if (pwrite(fd, "x", 1, 0) != 1)
                _exit(1);
    }
    int rc = 0;
    for (int i = 0; i < 100 && rc == 0; i++)
        rc = cn_plain_copy(world.from, world.to, &err);
    kill(child, SIGKILL);
    CHECK_INT(child, waitpid(child, NULL, 0));
    close(fd);
    CHECK_INT(CN_ELOCKED, rc);
    CHECK(strstr(err.text, "stop who writes"));
}

TEST(plain, a_full_disk_is_told_and_the_next_run_succeeds)
{
    struct world world = world_of("full");
    struct rlimit before, small = {.rlim_cur = 8192};
    struct cn_err err;
    make(world.from, "CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(100000))");
    CHECK_INT(0, getrlimit(RLIMIT_FSIZE, &before));
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(0, setrlimit(RLIMIT_FSIZE, &small));
    int64_t pages = settle(&world, &err);
    CHECK_INT(0, setrlimit(RLIMIT_FSIZE, &before));
    CHECK_INT(-EFBIG, pages);
    CHECK(strstr(err.text, "cannot write"));
    pages = settle(&world, &err);
    CHECK(pages > 0);
}

TEST(plain, statements_of_others_stay_in_their_file)
{
    struct world world = world_of("stream");
    struct cn_plain *plain;
    struct cn_err err = {0};
    uint32_t pages;
    static const char *const refused[] = {
        "ATTACH '/tmp/x' AS y",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = WAL",
        "COMMIT",
        "SAVEPOINT a",
        "CREATE TABLE _cf_KV (key, value)",
        "CREATE TABLE _CF_other (a)",
        "CREATE TEMP TABLE t (a)",
        "SELECT load_extension('x')",
        "CREATE TABLE a (b); DROP TABLE a",
        "UPDATE sqlite_schema SET sql = ''",
        "nonsense",
        "",
    };
    CHECK_INT(0, cn_plain_make(world.to, &plain, &err));
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (cn_plain_run(plain, refused[i], NULL, 0, &err) == 0)
            test_fail(__FILE__, __LINE__, "not refused: %s", refused[i]);
    CHECK_INT(0, cn_plain_run(plain, "CREATE TABLE t (a, b, c, d, e)", NULL, 0, &err));
    CHECK_INT(0, cn_plain_run(plain, "CREATE VIRTUAL TABLE w USING fts5 (text)", NULL, 0, &err));
    struct cn_plain_cell cells[] = {{.type = CN_SQL_INT, .integer = INT64_MIN},
                                    {.type = CN_SQL_REAL, .real = 0.1},
                                    {.type = CN_SQL_TEXT, .bytes = "a\0b", .size = 3},
                                    {.type = CN_SQL_BLOB, .bytes = NULL, .size = 0},
                                    {.type = CN_SQL_NULL}};
    const char *insert = "INSERT INTO t VALUES (?, ?, ?, ?, ?)";
    CHECK_INT(0, cn_plain_run(plain, insert, cells, 5, &err));
    CHECK_INT(0, cn_plain_run(plain, insert, cells, 5, &err));
    CHECK_INT(CN_EINVALID, cn_plain_run(plain, insert, cells, 4, &err));
    CHECK_INT(0, cn_plain_put(plain, "k", 1, "v", 1, &err));
    CHECK_INT(CN_ECORRUPT, cn_plain_put(plain, "k", 1, "v", 1, &err)); /* twice */
    CHECK_INT(0, cn_plain_run(plain, insert, cells, 5, &err));
    CHECK(cn_plain_run(plain, "INSERT INTO _cf_KV VALUES ('a', 'b')", NULL, 0, &err) < 0);
    CHECK_INT(0, cn_plain_settle(plain, &pages, &err));
    cn_plain_close(plain);
    struct cn_store *store = storetest_open(storetest_disk(), NULL);
    CHECK_INT(CN_PLAIN_CAME, keep(store, &world, 1, pages, false));
    struct cn_database *db = storetest_database(store, 1);
    CHECK_INT(3,
              storetest_int(db, "SELECT count(*) FROM t WHERE a = -9223372036854775808 AND b ="
                                " 0.1 AND length(CAST(c AS BLOB)) = 3 AND d = x'' AND e IS NULL"));
    CHECK_STR("v", storetest_text(db, "SELECT value FROM _cf_KV"));
    cn_database_close(db);
    cn_store_close(store);
}
