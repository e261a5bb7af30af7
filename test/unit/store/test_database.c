/* SPDX-License-Identifier: Apache-2.0 */
/* Databases: turns commit as one, roll back as one, survive a restart; a guest's
 * SQL is kept inside its limits. */
#include "store/database.h"

#include <stdio.h>
#include <string.h>

#include "base/account.h"
#include "base/clock.h"
#include "store/catalog.h"
#include "store/kvtable.h"
#include "store/log.h"
#include "store/sqlite_memory.h"
#include "test/lib/simdisk.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

/* A store with one database, number 1. */
struct bed {
    struct cn_disk *disk;
    struct cn_store *store;
    struct cn_database *db;
};

static struct bed bed_open(void)
{
    struct bed bed = {.disk = storetest_disk()};
    bed.store = storetest_open(bed.disk, NULL);
    bed.db = storetest_database(bed.store, 1);
    return bed;
}

static void bed_restart(struct bed *bed)
{
    cn_database_close(bed->db);
    cn_store_close(bed->store);
    bed->store = storetest_open(bed->disk, NULL);
    bed->db = storetest_database(bed->store, 1);
}

static void bed_close(struct bed *bed)
{
    cn_database_close(bed->db);
    cn_store_close(bed->store);
    cn_disk_system_free(bed->disk);
}

/* Runs a guest's statement to its end; its result code, its message in `err`. */
static int guest(struct cn_database *db, const char *sql, struct cn_err *err)
{
    struct cn_statement *statement;
    size_t used;
    *err = (struct cn_err){0};
    int rc = cn_database_prepare(db, sql, strlen(sql), CN_SQL_GUEST, &statement, &used, err);
    if (rc < 0 || !statement)
        return rc;
    while ((rc = cn_statement_step(statement, err)) == 1)
        ;
    cn_statement_release(statement);
    return rc;
}

TEST(database, committed_rows_survive_a_restart)
{
    struct bed bed = bed_open();
    storetest_exec(bed.db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)");
    storetest_exec(bed.db, "INSERT INTO t VALUES(1, 'one'), (2, 'two')");
    uint64_t lsn = storetest_commit(bed.db);
    CHECK_INT(0, cn_store_wait(bed.store, lsn, NULL));
    storetest_exec(bed.db, "UPDATE t SET b = 'zwei' WHERE a = 2");
    CHECK(storetest_commit(bed.db) == lsn + 1);
    bed_restart(&bed);
    CHECK_STR("one,zwei", storetest_text(bed.db, "SELECT group_concat(b) FROM t"));
    CHECK_STR("ok", storetest_text(bed.db, "PRAGMA integrity_check"));
    bed_close(&bed);
}

TEST(database, rollback_undoes_the_whole_turn)
{
    struct bed bed = bed_open();
    storetest_exec(bed.db, "CREATE TABLE t(a)");
    uint64_t lsn = storetest_commit(bed.db);
    storetest_exec(bed.db, "INSERT INTO t VALUES(1)");
    CHECK_INT(0, cn_database_set_alarm(bed.db, 1000, NULL));
    CHECK(cn_database_in_transaction(bed.db));
    cn_database_rollback(bed.db);
    CHECK_INT(0, storetest_int(bed.db, "SELECT count(*) FROM t"));
    CHECK(cn_database_alarm(bed.db) == CN_ALARM_NONE);
    CHECK(storetest_commit(bed.db) == lsn); /* nothing to write */
    bed_close(&bed);
}

TEST(database, a_turn_larger_than_the_page_cache_commits_and_rolls_back)
{
    struct bed bed = bed_open();
    storetest_exec(bed.db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB)");
    storetest_exec(bed.db,
                   "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n LIMIT 2000)"
                   " INSERT INTO t SELECT i, randomblob(3000) FROM n");
    storetest_commit(bed.db);
    char before[64];
    strcpy(before, storetest_text(bed.db, "SELECT sum(length(hex(b)) + unicode(hex(b))) FROM t"));
    storetest_exec(bed.db, "UPDATE t SET b = zeroblob(3000)"); /* spills */
    storetest_exec(bed.db, "INSERT INTO t SELECT a + 5000, randomblob(2000) FROM t");
    cn_database_rollback(bed.db);
    CHECK_STR(before,
              storetest_text(bed.db, "SELECT sum(length(hex(b)) + unicode(hex(b))) FROM t"));
    CHECK_STR("ok", storetest_text(bed.db, "PRAGMA integrity_check"));
    storetest_exec(bed.db, "DELETE FROM t WHERE a % 2");
    storetest_commit(bed.db);
    bed_restart(&bed);
    CHECK_INT(1000, storetest_int(bed.db, "SELECT count(*) FROM t"));
    CHECK_STR("ok", storetest_text(bed.db, "PRAGMA integrity_check"));
    bed_close(&bed);
}

TEST(database, savepoints_nest_and_carry_metadata)
{
    struct bed bed = bed_open();
    storetest_exec(bed.db, "CREATE TABLE t(a)");
    int outer = cn_database_savepoint(bed.db, NULL);
    CHECK_INT(1, outer);
    storetest_exec(bed.db, "INSERT INTO t VALUES(1)");
    CHECK_INT(0, cn_database_set_alarm(bed.db, 500, NULL));
    int inner = cn_database_savepoint(bed.db, NULL);
    CHECK_INT(2, inner);
    storetest_exec(bed.db, "INSERT INTO t VALUES(2)");
    CHECK_INT(0, cn_database_set_alarm(bed.db, 700, NULL));
    CHECK_INT(0, cn_database_savepoint_rollback(bed.db, inner, NULL));
    CHECK_INT(500, cn_database_alarm(bed.db));
    CHECK_INT(0, cn_database_savepoint_release(bed.db, outer, NULL));
    storetest_commit(bed.db);
    bed_restart(&bed);
    CHECK_STR("1", storetest_text(bed.db, "SELECT group_concat(a) FROM t"));
    CHECK_INT(500, cn_database_alarm(bed.db));
    bed_close(&bed);
}

TEST(database, metadata_alone_is_a_commit)
{
    struct bed bed = bed_open();
    CHECK_INT(0, cn_database_set_alarm(bed.db, 12345, NULL));
    CHECK_INT(0, cn_database_set_name(bed.db, "chat-7", 6, NULL));
    uint64_t lsn = storetest_commit(bed.db);
    CHECK(lsn > 0);
    CHECK_INT(0, cn_database_set_alarm(bed.db, 12345, NULL));
    CHECK(storetest_commit(bed.db) == lsn); /* nothing new */
    bed_restart(&bed);
    struct cn_database_meta meta;
    cn_database_meta(bed.db, &meta);
    CHECK(meta.alarm_ms == 12345 && meta.has_name);
    CHECK_STR("chat-7", meta.name);
    bed_close(&bed);
}

TEST(database, one_owner_at_a_time)
{
    struct bed bed = bed_open();
    struct cn_object_key key = storetest_key(1);
    struct cn_database *second;
    struct cn_err err = {0};
    CHECK_INT(CN_ELOCKED, cn_database_open(bed.store, &key, NULL, &second, &err));
    CHECK_STR("the object's database is open already", err.text);
    struct cn_database_options options = {.must_exist = true};
    key = storetest_key(2);
    CHECK_INT(CN_ENOTFOUND, cn_database_open(bed.store, &key, &options, &second, &err));
    bed_close(&bed);
}

TEST(database, delete_all_starts_anew_and_can_be_rolled_back)
{
    struct bed bed = bed_open();
    storetest_exec(bed.db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    CHECK_INT(0, cn_database_set_alarm(bed.db, 99, NULL));
    storetest_commit(bed.db);
    CHECK_INT(0, cn_database_delete_all(bed.db, true, NULL));
    CHECK_INT(0, storetest_int(bed.db, "SELECT count(*) FROM sqlite_schema"));
    storetest_exec(bed.db, "CREATE TABLE u(b)");
    cn_database_rollback(bed.db);
    CHECK_STR("t", storetest_text(bed.db, "SELECT group_concat(name) FROM sqlite_schema"));
    CHECK_INT(99, cn_database_alarm(bed.db));

    CHECK_INT(0, cn_database_delete_all(bed.db, false, NULL));
    storetest_exec(bed.db, "CREATE TABLE u(b); INSERT INTO u VALUES(2)");
    storetest_commit(bed.db);
    CHECK_INT(99, cn_database_alarm(bed.db));
    storetest_exec(bed.db, "INSERT INTO u VALUES(3)");
    storetest_commit(bed.db);
    bed_restart(&bed);
    CHECK_STR("u", storetest_text(bed.db, "SELECT group_concat(name) FROM sqlite_schema"));
    CHECK_STR("2,3", storetest_text(bed.db, "SELECT group_concat(b) FROM u"));

    CHECK_INT(0, cn_database_delete_all(bed.db, true, NULL)); /* alone in its turn */
    storetest_commit(bed.db);
    CHECK_INT(0, (long long)cn_database_size(bed.db));
    bed_restart(&bed);
    CHECK_INT(0, storetest_int(bed.db, "SELECT count(*) FROM sqlite_schema"));
    CHECK(cn_database_alarm(bed.db) == CN_ALARM_NONE);
    bed_close(&bed);
}

TEST(database, delete_all_inside_a_savepoint_is_refused)
{
    struct bed bed = bed_open();
    struct cn_err err = {0};
    storetest_exec(bed.db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    storetest_commit(bed.db);
    int level = cn_database_savepoint(bed.db, NULL);
    storetest_exec(bed.db, "INSERT INTO t VALUES(2)");
    CHECK_INT(CN_EINVALID, cn_database_delete_all(bed.db, true, &err));
    CHECK_STR("Cannot call deleteAll() within a transaction", err.text);
    CHECK_INT(0, cn_database_savepoint_release(bed.db, level, NULL));
    storetest_commit(bed.db);
    bed_restart(&bed);
    CHECK_INT(2, storetest_int(bed.db, "SELECT count(*) FROM t"));
    bed_close(&bed);
}

TEST(database, guests_cannot_leave_their_database)
{
    static const char *const refused[] = {
        "BEGIN",
        "COMMIT",
        "SAVEPOINT s",
        "ATTACH ':memory:' AS x",
        "VACUUM",
        "SELECT * FROM _cf_KV",
        "CREATE TABLE _CF_x(a)",
        "DROP TABLE _cf_KV",
        "INSERT INTO _cf_KV VALUES('a', 'b')",
        "ALTER TABLE t RENAME TO _cf_t",
        "/**/ALTER TABLE t RENAME TO _cf_KV2",
        "-- a comment\nALTER TABLE t RENAME TO _cf_t",
        "ALTER/**/TABLE t RENAME/**/TO/**/\"_cf_t\"",
        "ALTER TABLE t RENAME TO [_Cf_t]",
        "ALTER TABLE t RENAME TO `_cF_t`",
        "ALTER TABLE t RENAME TO '_cf_t'",
        "ALTER TABLE main.\"t\" RENAME TO _cf_t",
        "ALTER TABLE _cf_KV RENAME TO mine",
        "ALTER TABLE \"_CF_kv\" RENAME COLUMN value TO v",
        "ALTER TABLE _cf_KV ADD COLUMN more",
        "CREATE VIRTUAL TABLE f1 USING fts5(x); ALTER TABLE f1 RENAME TO _cf_f",
        "CREATE VIRTUAL TABLE r1 USING rtree(id, a, b); /**/ALTER TABLE r1 RENAME TO _cf_r",
        "CREATE VIRTUAL TABLE f1 USING fts5(value, content='_cf_KV', content_rowid='key');"
        " INSERT INTO f1(f1) VALUES('rebuild')",
        "CREATE VIRTUAL TABLE \"_cf_f\" USING fts5(x)",
        "CREATE VIEW /* here */ _cf_v AS SELECT 1",
        "CREATE TRIGGER _cf_g AFTER INSERT ON t BEGIN SELECT 1; END",
        "CREATE TRIGGER g AFTER INSERT ON _cf_KV BEGIN SELECT 1; END",
        "CREATE INDEX [_cf_i] ON t(a)",
        "CREATE TABLE n AS SELECT * FROM _cf_KV",
        "CREATE TABLE c(k TEXT REFERENCES _cf_KV(key)); INSERT INTO c VALUES('k')",
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM _cf_KV; END; INSERT INTO t VALUES(1)",
        "CREATE VIEW w1 AS SELECT a FROM t; SELECT * FROM w1; DROP VIEW w1;"
        " CREATE VIEW w1 AS SELECT value AS a FROM _cf_KV; SELECT * FROM w1",
        "CREATE INDEX i ON _cf_KV(value)",
        "CREATE VIEW v AS SELECT * FROM _cf_KV; SELECT * FROM v",
        "PRAGMA journal_mode = WAL",
        "PRAGMA page_size = 512",
        "PRAGMA writable_schema = 1",
        "SELECT * FROM pragma_journal_mode",
        "PRAGMA table_info(_cf_KV)",
        "CREATE TEMP TABLE x(a)",
        "CREATE VIRTUAL TABLE x USING dbstat",
        "SELECT load_extension('x')",
    };
    static const char *const allowed[] = {
        "SELECT a FROM t",
        "PRAGMA table_info(t)",
        "PRAGMA foreign_keys",
        "PRAGMA page_count",
        "SELECT * FROM pragma_table_info('t')",
        "CREATE VIRTUAL TABLE f USING fts5(x)",
        "INSERT INTO f VALUES('some words')",
        "SELECT * FROM f('words')",
        "CREATE VIRTUAL TABLE r USING rtree(id, x0, x1)",
        "SELECT jsonb('[1]'), sqrt(2)",
        "CREATE TABLE u(a UNIQUE)",
        "ALTER TABLE u RENAME TO w",
        "ALTER TABLE f RENAME TO f2",
        "SELECT * FROM f2('words')",
        "ALTER TABLE w RENAME COLUMN a TO _cf_column",
        "ALTER TABLE w ADD COLUMN b",
        "PRAGMA optimize",
        "PRAGMA quick_check",
        "DELETE FROM t WHERE a > 1 ORDER BY a LIMIT 1",
        "CREATE TRIGGER tr AFTER INSERT ON t BEGIN UPDATE w SET b = 1; END",
    };
    struct bed bed = bed_open();
    struct cn_err err = {0};
    storetest_exec(bed.db, "CREATE TABLE t(a)");
    CHECK_INT(0, cn_kvtable_put(bed.db, (struct cn_kv_bytes){"k", 1}, (struct cn_kv_bytes){"v", 1},
                                NULL));
    storetest_commit(bed.db);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const char *sql = refused[i];
        int rc = 0;
        struct cn_statement *statement = NULL;
        size_t used = 0, left = strlen(sql);
        while (left && rc >= 0) { /* a text may hold two statements */
            rc = cn_database_prepare(bed.db, sql, left, CN_SQL_GUEST, &statement, &used, &err);
            while (rc >= 0 && statement && (rc = cn_statement_step(statement, &err)) == 1)
                ;
            if (statement)
                cn_statement_release(statement);
            statement = NULL;
            sql += used;
            left -= used;
        }
        if (rc != CN_ESQL)
            test_fail(__FILE__, __LINE__, "not refused: %s (%d)", refused[i], rc);
        cn_database_rollback(bed.db);
    }
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
        if (guest(bed.db, allowed[i], &err) < 0)
            test_fail(__FILE__, __LINE__, "refused: %s: %s", allowed[i], err.text);
        storetest_commit(bed.db);
    }
    CHECK_INT(CN_ESQL, guest(bed.db, "BEGIN", &err));
    CHECK(strstr(err.text, "storage.transaction()") && err.text[strlen(err.text) - 1] == '.');
    CHECK_INT(CN_ESQL, guest(bed.db, "ATTACH ':memory:' AS a", &err));
    CHECK(strstr(err.text, "SQLITE_AUTH"));
    bed_close(&bed);
}

/* A1: SQLite compiles a kept statement again when the schema has changed; a view that has changed
 * its meaning is judged again with it. */
TEST(database, a_statement_compiled_again_is_still_the_guests)
{
    static const char read[] = "SELECT a FROM v", write[] = "INSERT INTO t VALUES('x')";
    struct bed bed = bed_open();
    struct cn_err err = {0};
    struct cn_kv_bytes key = {"k", 1}, value;
    storetest_exec(bed.db, "CREATE TABLE t(a); CREATE VIEW v AS SELECT a FROM t");
    CHECK_INT(0, cn_kvtable_put(bed.db, key, (struct cn_kv_bytes){"v", 1}, NULL));
    storetest_commit(bed.db);
    struct cn_statement *reads, *writes;
    size_t used;
    CHECK_INT(0,
              cn_database_prepare(bed.db, read, strlen(read), CN_SQL_GUEST, &reads, &used, &err));
    CHECK_INT(
        0, cn_database_prepare(bed.db, write, strlen(write), CN_SQL_GUEST, &writes, &used, &err));
    CHECK_INT(0, guest(bed.db, "DROP VIEW v", &err));
    CHECK_INT(0, guest(bed.db, "CREATE VIEW v AS SELECT value AS a FROM _cf_KV", &err));
    CHECK_INT(
        0, guest(bed.db, "CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM _cf_KV; END", &err));
    CHECK_INT(CN_ESQL, cn_statement_step(reads, &err));
    CHECK_INT(CN_ESQL, cn_statement_step(writes, &err));
    cn_statement_release(reads);
    cn_statement_release(writes);
    CHECK_INT(1, cn_kvtable_get(bed.db, key, &value, &err));
    bed_close(&bed);
}

TEST(database, limits_of_the_platform_hold)
{
    struct bed bed = bed_open();
    struct cn_err err;
    CHECK_INT(CN_ESQL,
              guest(bed.db, "SELECT 'x' LIKE '012345678901234567890123456789012345678901234567891'",
                    &err));
    CHECK_INT(
        CN_ESQL,
        guest(bed.db,
              "SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6",
              &err));
    CHECK_INT(CN_ESQL, guest(bed.db, "SELECT ?101", &err));
    CHECK_INT(CN_ESQL, guest(bed.db, "SELECT length(zeroblob(5000000))", &err));
    CHECK(strstr(err.text, "SQLITE_TOOBIG") != NULL);
    storetest_exec(bed.db, "CREATE TABLE p(a PRIMARY KEY); CREATE TABLE c(a REFERENCES p)");
    CHECK_INT(CN_ESQL, guest(bed.db, "INSERT INTO c VALUES(1)", &err));
    CHECK_STR("FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: "
              "SQLITE_CONSTRAINT_FOREIGNKEY)",
              err.text);
    bed_close(&bed);
}

TEST(database, a_transaction_that_changes_too_much_is_undone)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store_config config = {.manual = true, .commit_size_max = 50 * CN_PAGE_SIZE};
    struct cn_store *store = storetest_open(simdisk_disk(sim), &config);
    struct cn_database *db = storetest_database(store, 1);
    struct cn_err err = {0};
    uint64_t lsn;
    storetest_exec(db, "CREATE TABLE t(a)");
    storetest_commit(db);
    int rc = guest(db,
                   "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 200) "
                   "INSERT INTO t SELECT randomblob(4000) FROM c",
                   &err);
    if (rc == 0)
        rc = cn_database_commit(db, &lsn, &err);
    CHECK(rc < 0);
    cn_database_rollback(db);
    CHECK_INT(0, storetest_int(db, "SELECT count(*) FROM t"));
    storetest_exec(db, "INSERT INTO t VALUES(1)");
    storetest_commit(db);
    cn_database_close(db);
    cn_store_close(store);
    simdisk_free(sim);
}

TEST(database, DO_LC_8_a_full_database_still_reads_and_deletes)
{
    struct bed bed = bed_open();
    struct cn_database_options options = {.limits.database_size = 20 * CN_PAGE_SIZE};
    struct cn_object_key key = storetest_key(5);
    struct cn_database *db;
    struct cn_err err = {0};
    CHECK_INT(0, cn_database_open(bed.store, &key, &options, &db, &err));
    storetest_exec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
    storetest_commit(db);
    int rc = 0;
    for (int i = 0; i < 100 && rc == 0; i++) {
        rc = guest(db, "INSERT INTO t(b) VALUES(randomblob(1500))", &err);
        if (rc == 0)
            storetest_commit(db);
    }
    CHECK_INT(CN_ESQL, rc);
    CHECK(strstr(err.text, "SQLITE_FULL") != NULL);
    cn_database_rollback(db);
    CHECK(storetest_int(db, "SELECT count(*) FROM t") > 20);
    storetest_exec(db, "DELETE FROM t WHERE a % 2");
    storetest_commit(db);
    CHECK_STR("ok", storetest_text(db, "PRAGMA integrity_check"));
    cn_database_close(db);
    bed_close(&bed);
}

TEST(database, a_runaway_statement_is_stopped)
{
    struct bed bed = bed_open();
    struct cn_err err;
    static const char forever[] =
        "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    cn_database_set_deadline(bed.db, cn_clock_mono_ns(cn_clock_system()) + 10000000);
    CHECK_INT(CN_ETIMEOUT, guest(bed.db, forever, &err));
    cn_database_set_deadline(bed.db, 0);
    CHECK_INT(0, guest(bed.db, "SELECT 1", &err));
    bed_close(&bed);
}

TEST(database, statements_are_cached_and_may_be_used_twice_at_once)
{
    struct bed bed = bed_open();
    struct cn_statement *first, *second, *again;
    size_t used;
    static const char sql[] = "SELECT a FROM t ORDER BY a";
    storetest_exec(bed.db, "CREATE TABLE t(a); INSERT INTO t VALUES(1), (2)");
    storetest_commit(bed.db);
    CHECK_INT(0, cn_database_prepare(bed.db, sql, strlen(sql), CN_SQL_GUEST, &first, &used, NULL));
    CHECK_INT(1, cn_statement_step(first, NULL));
    CHECK_INT(0, cn_database_prepare(bed.db, sql, strlen(sql), CN_SQL_GUEST, &second, &used, NULL));
    CHECK(first != second);
    CHECK_INT(1, cn_statement_step(second, NULL));
    CHECK_INT(1, cn_statement_column_int(second, 0));
    storetest_exec(bed.db, "INSERT INTO t VALUES(3)"); /* under an open cursor */
    storetest_commit(bed.db);
    CHECK_INT(1, cn_statement_step(first, NULL));
    CHECK_INT(2, cn_statement_column_int(first, 0));
    cn_statement_release(second);
    cn_statement_release(first);
    CHECK_INT(0, cn_database_prepare(bed.db, sql, strlen(sql), CN_SQL_GUEST, &again, &used, NULL));
    CHECK(again == first);
    cn_statement_release(again);
    for (int i = 0; i < 200; i++) { /* more than the cache keeps */
        char text[40];
        snprintf(text, sizeof(text), "SELECT %d", i);
        CHECK_INT(i, storetest_int(bed.db, text));
    }
    bed_close(&bed);
}

TEST(database, a_commit_ends_statements_that_write)
{
    struct bed bed = bed_open();
    struct cn_statement *insert;
    size_t used;
    static const char sql[] = "INSERT INTO t VALUES(1), (2) RETURNING a";
    storetest_exec(bed.db, "CREATE TABLE t(a)");
    CHECK_INT(0, cn_database_prepare(bed.db, sql, strlen(sql), 0, &insert, &used, NULL));
    CHECK_INT(1, cn_statement_step(insert, NULL));
    storetest_commit(bed.db);
    CHECK_INT(CN_ECLOSED, cn_statement_step(insert, NULL));
    cn_statement_release(insert);
    CHECK_INT(2, storetest_int(bed.db, "SELECT count(*) FROM t"));
    bed_close(&bed);
}

TEST(database, a_transaction_that_sqlite_rolled_back_cannot_commit)
{
    struct bed bed = bed_open();
    struct cn_err err;
    storetest_exec(bed.db, "CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES(1)");
    storetest_commit(bed.db);
    storetest_exec(bed.db, "INSERT INTO t VALUES(2)");
    CHECK_INT(CN_ESQL, guest(bed.db, "INSERT OR ROLLBACK INTO t VALUES(1)", &err));
    CHECK_INT(CN_EABORTED, guest(bed.db, "INSERT INTO t VALUES(3)", &err));
    uint64_t lsn;
    CHECK_INT(CN_EABORTED, cn_database_commit(bed.db, &lsn, &err));
    CHECK_INT(1, storetest_int(bed.db, "SELECT count(*) FROM t"));
    storetest_exec(bed.db, "INSERT INTO t VALUES(4)");
    storetest_commit(bed.db);
    bed_close(&bed);
}

/* rowsRead and rowsWritten of a statement that ran to its end. */
static void check_rows(struct cn_database *db, const char *sql, int read, int written)
{
    struct cn_statement *statement;
    struct cn_err err = {0};
    size_t used;
    int rc = cn_database_prepare(db, sql, strlen(sql), CN_SQL_GUEST, &statement, &used, &err);
    while (rc >= 0 && (rc = cn_statement_step(statement, &err)) == 1)
        ;
    if (rc < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, err.text);
    int got_read = (int)cn_statement_rows_read(statement);
    int got_written = (int)cn_statement_rows_written(statement);
    cn_statement_release(statement);
    if (got_read != read || got_written != written)
        test_fail(__FILE__, __LINE__, "%s: read %d, want %d; written %d, want %d", sql, got_read,
                  read, got_written, written);
}

TEST(database, rows_read_and_written_are_counted)
{
    struct bed bed = bed_open();
    storetest_exec(bed.db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c); CREATE INDEX i ON t(b)");
    check_rows(bed.db, "INSERT INTO t VALUES(1, 10, 0), (2, 20, 0), (3, 30, 0)", 0, 6);
    check_rows(bed.db, "SELECT * FROM t", 3, 0);
    check_rows(bed.db, "SELECT * FROM t", 3, 0); /* from the cache: counted anew */
    check_rows(bed.db, "SELECT * FROM t WHERE a = 2", 1, 0);
    check_rows(bed.db, "SELECT c FROM t WHERE b = 20", 1, 0);
    check_rows(bed.db, "UPDATE t SET c = 1 WHERE a = 1", 1, 1);
    check_rows(bed.db, "UPDATE t SET b = 11 WHERE a = 1", 1, 2);
    check_rows(bed.db, "DELETE FROM t WHERE a = 1", 1, 1);
    check_rows(bed.db, "DELETE FROM t", 0, 2);
    bed_close(&bed);
}

TEST(database, one_number_is_asked_for_at_once)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store *store = storetest_open(simdisk_disk(sim), NULL);
    struct cn_database *db = storetest_database(store, 1);
    static const char seven[] = "SELECT 7, 8", none[] = "SELECT 1 WHERE 0", wrong[] = "SELECT x";
    int64_t number = -1;
    CHECK_INT(0, cn_database_number(db, none, sizeof(none) - 1, &number, NULL));
    CHECK_INT(-1, number); /* no row */
    CHECK_INT(0, cn_database_number(db, seven, sizeof(seven) - 1, &number, NULL));
    CHECK_INT(7, number);
    CHECK(cn_database_number(db, wrong, sizeof(wrong) - 1, &number, NULL) < 0);
    CHECK_INT(7, number);
    cn_database_close(db);
    cn_store_close(store);
    simdisk_free(sim);
}

TEST(database, a_failed_alter_says_why_although_it_runs_in_a_savepoint_of_ours)
{
    struct bed bed = bed_open();
    struct cn_err err;
    static const char alter[] = "ALTER TABLE t ADD COLUMN b";
    CHECK_INT(0, guest(bed.db, "CREATE TABLE t(a)", &err));
    CHECK_INT(0, guest(bed.db, alter, &err));
    CHECK(guest(bed.db, alter, &err) < 0); /* compiled before the column was there */
    CHECK_STR("duplicate column name: b: SQLITE_ERROR", err.text);
    bed_close(&bed);
}

TEST(database, a_turn_that_is_undone_takes_the_key_value_table_it_made_along)
{
    struct bed bed = bed_open();
    struct cn_err err;
    struct cn_kv_bytes key = {"k", 1}, value = {"v", 1};
    CHECK_INT(0, cn_kvtable_put(bed.db, key, value, &err));
    cn_database_rollback(bed.db);
    CHECK_INT(0, cn_kvtable_get(bed.db, key, &value, &err));
    CHECK_INT(0, cn_kvtable_put(bed.db, key, value, &err));
    storetest_commit(bed.db);
    CHECK_INT(1, cn_kvtable_get(bed.db, key, &value, &err));
    bed_close(&bed);
}

#define SORTED(rows)                                                                  \
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < " #rows \
    ") SELECT n, randomblob(100000) AS b FROM c ORDER BY b"

TEST(database, Q1_what_guests_sort_is_bounded_together_and_a_small_statement_always_runs)
{
    struct bed bed = bed_open();
    struct cn_err err;
    struct cn_statement *kept;
    size_t used;
    cn_account_set_limit((uint64_t)100 << 20);
    (void)cn_account_look((uint64_t)10 << 20);
    CHECK_INT(0, guest(bed.db, SORTED(400), &err)); /* there is room for 40 MB */
    CHECK_INT(0, cn_database_prepare(bed.db, SORTED(200), strlen(SORTED(200)), CN_SQL_GUEST, &kept,
                                     &used, &err));
    CHECK_INT(1, cn_statement_step(kept, &err));
    CHECK(cn_statement_memory(kept) > 20000000 && cn_statement_memory(kept) < 40000000);
    (void)cn_account_look((uint64_t)60 << 20);
    CHECK(guest(bed.db, SORTED(200), &err) < 0); /* 20 of 25 MB are taken */
    CHECK(strstr(err.text, "SQLITE_NOMEM"));
    CHECK_INT(0, guest(bed.db, SORTED(5), &err));
    cn_statement_release(kept);
    CHECK_INT(0, guest(bed.db, SORTED(150), &err)); /* all was given back */
    (void)cn_account_look((uint64_t)90 << 20);
    CHECK(guest(bed.db, SORTED(20), &err) < 0);
    CHECK_INT(0, guest(bed.db, SORTED(5), &err));
    (void)cn_account_look((uint64_t)10 << 20);
    CHECK_INT(0, guest(bed.db, SORTED(400), &err));
    cn_account_set_limit(0);
    bed_close(&bed);
}
