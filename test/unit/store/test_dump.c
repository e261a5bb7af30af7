/* SPDX-License-Identifier: Apache-2.0 */
/* A database as SQL: read back, it is the same (X1), without what is not the user's (X2); errors of
 * the disk, of damage and of the writer come out (X3). */
#include "store/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "store/sqlite.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

struct world {
    struct simdisk *sim;
    struct cn_diskvfs *vfs;
    sqlite3 *from; /* "from.db" */
    struct cn_buf text;
    unsigned writes, fail_at;
};

static void exec(sqlite3 *connection, const char *sql)
{
    struct cn_err err = {0};
    if (cn_sqlite_exec(connection, sql, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, err.text);
}

static sqlite3 *open_database(const char *name)
{
    sqlite3 *connection;
    CHECK_INT(SQLITE_OK, sqlite3_open_v2(name, &connection,
                                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "test-dump"));
    return connection;
}

static void open_world(struct world *world, const char *sql)
{
    struct cn_err err = {0};
    *world = (struct world){.sim = simdisk_new()};
    CHECK_INT(0, cn_sqlite_setup(&err));
    world->vfs = cn_diskvfs_new(simdisk_disk(world->sim), "test-dump");
    world->from = open_database("from.db");
    exec(world->from, sql);
}

static void close_world(struct world *world)
{
    CHECK_INT(SQLITE_OK, sqlite3_close(world->from));
    cn_diskvfs_free(world->vfs);
    simdisk_free(world->sim);
    cn_buf_fini(&world->text);
}

static int collect(void *data, const void *bytes, size_t size, struct cn_err *err)
{
    struct world *world = data;
    CHECK(!world->fail_at || world->writes < world->fail_at); /* X3 */
    if (++world->writes == world->fail_at)
        return cn_err_set(err, -EPIPE, "nobody reads");
    cn_buf_append(&world->text, bytes, size);
    return 0;
}

static int dump_as(struct world *world, struct cn_dump dump, struct cn_err *err)
{
    dump.write = collect;
    dump.data = world;
    cn_buf_clear(&world->text);
    world->writes = 0;
    *err = (struct cn_err){0};
    int rc = cn_dump_sql(simdisk_disk(world->sim), "from.db", &dump, err);
    CHECK_INT(rc, err->code);
    return rc;
}

static const char *dump(struct world *world)
{
    struct cn_err err;
    if (dump_as(world, (struct cn_dump){0}, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return cn_buf_text(&world->text);
}

/* The first column of all rows, with '|' between them. */
static const char *query(sqlite3 *connection, const char *sql)
{
    static char rows[2][4096];
    static unsigned next;
    char *out = rows[next++ % 2];
    struct cn_err err = {0};
    sqlite3_stmt *stmt;
    if (cn_sqlite_prepare(connection, sql, &stmt, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, err.text);
    out[0] = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW)
        snprintf(out + strlen(out), sizeof(rows[0]) - strlen(out), "%s|",
                 sqlite3_column_text(stmt, 0) ? (const char *)sqlite3_column_text(stmt, 0)
                                              : "NULL");
    CHECK_INT(SQLITE_OK, sqlite3_finalize(stmt));
    return out;
}

/* Reads the dump into "to.db" and compares what each query gives. */
static void check_same(struct world *world, const char *const *queries)
{
    sqlite3 *to = open_database("to.db");
    exec(to, "BEGIN");
    exec(to, dump(world));
    exec(to, "COMMIT");
    for (; *queries; queries++)
        CHECK_STR(query(world->from, *queries), query(to, *queries));
    CHECK_INT(SQLITE_OK, sqlite3_close(to));
}

/* X1 */
TEST(dump, every_value_comes_back_as_it_was)
{
    struct world world;
    open_world(&world, "CREATE TABLE t (id INTEGER PRIMARY KEY, v);"
                       "INSERT INTO t (v) VALUES (NULL), (0), (-1), (9223372036854775807),"
                       "(-9223372036854775807 - 1), (0.1), (1.0), (-0.0), (1e300), (5e-324),"
                       "(123456789012345680.0), (9e999), (-9e999), (''), ('it''s'), ('\"'),"
                       "('a' || char(10) || char(13) || 'b;--'), (CAST(x'610062' AS TEXT)),"
                       "(CAST(x'00' AS TEXT)), (x''), (x'00ff'), ('x''00'''), ('1'), ('1.0'),"
                       "('\xe2\x82\xac'), (CAST(x'ff' AS TEXT)), (zeroblob(3))");
    static const char *const queries[] = {
        "SELECT id || ':' || typeof(v) || ':' || coalesce(hex(CAST(v AS BLOB)), 'NULL') FROM t",
        "SELECT quote(v) FROM t", "SELECT count(*) FROM t", NULL};
    check_same(&world, queries);
    close_world(&world);
}

TEST(dump, tables_keys_and_the_rest_of_a_schema)
{
    struct world world;
    open_world(
        &world,
        "CREATE TABLE child (id INTEGER PRIMARY KEY, p REFERENCES parent(id));"
        "CREATE TABLE parent (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE,"
        " twice AS (id * 2), kept TEXT GENERATED ALWAYS AS (name || '!') STORED);"
        "CREATE TABLE \"odd \"\"name'\" (\"a b\" TEXT, \"select\" TEXT, PRIMARY KEY (\"a b\"))"
        " WITHOUT ROWID;"
        "INSERT INTO parent (id, name) VALUES (7, 'x'), (9, 'y'); DELETE FROM parent WHERE id = 9;"
        "INSERT INTO child VALUES (1, 7);"
        "INSERT INTO \"odd \"\"name'\" VALUES ('k', 'v');"
        "CREATE INDEX by_name ON parent (name DESC) WHERE id > 3;"
        "CREATE VIEW seen AS SELECT name FROM parent;"
        "CREATE TABLE log (t);"
        "CREATE TRIGGER noted AFTER INSERT ON parent BEGIN INSERT INTO log VALUES (new.id); END;");
    static const char *const queries[] = {
        "SELECT sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY name",
        "SELECT id || name || twice || kept FROM parent",
        "SELECT seq FROM sqlite_sequence",
        "SELECT p FROM child",
        "SELECT \"a b\" || \"select\" FROM \"odd \"\"name'\"",
        "SELECT name FROM seen",
        "SELECT count(*) FROM log", /* triggers come last: they have not run */
        NULL};
    check_same(&world, queries);
    close_world(&world);
}

/* X2 */
TEST(dump, what_is_not_the_users_is_left_out)
{
    struct world world;
    struct cn_err err;
    open_world(&world, "CREATE TABLE _cf_KV (k); CREATE TABLE _CF_other (k); CREATE TABLE mine (k);"
                       "INSERT INTO _cf_KV VALUES ('secret'); INSERT INTO mine VALUES (1);"
                       "CREATE INDEX i ON _cf_KV (k); ANALYZE");
    CHECK_STR("PRAGMA defer_foreign_keys=TRUE;\nCREATE TABLE mine (k);\n"
              "INSERT INTO \"mine\" (\"k\") VALUES(1);\n",
              dump(&world));
    exec(world.from, "CREATE VIRTUAL TABLE words USING fts5(w)");
    CHECK_INT(CN_EUNSUPPORTED, dump_as(&world, (struct cn_dump){0}, &err));
    CHECK(strstr(err.text, "words is a virtual table"));
    /* One table of such a database can be. */
    CHECK_INT(0, dump_as(&world, (struct cn_dump){.table = "mine"}, &err));
    close_world(&world);
}

TEST(dump, one_table_only_rows_only_schema)
{
    struct world world;
    struct cn_err err;
    open_world(&world, "CREATE TABLE a (x INTEGER PRIMARY KEY AUTOINCREMENT); CREATE TABLE b (y);"
                       "INSERT INTO a VALUES (1); INSERT INTO b VALUES ('2');"
                       "CREATE INDEX ia ON a (x); CREATE INDEX ib ON b (y)");
    CHECK_INT(0, dump_as(&world, (struct cn_dump){.table = "b"}, &err));
    CHECK_STR("PRAGMA defer_foreign_keys=TRUE;\nCREATE TABLE b (y);\n"
              "INSERT INTO \"b\" (\"y\") VALUES('2');\nCREATE INDEX ib ON b (y);\n",
              cn_buf_text(&world.text));
    CHECK_INT(0, dump_as(&world, (struct cn_dump){.no_data = true}, &err));
    CHECK(!strstr(cn_buf_text(&world.text), "INSERT"));
    CHECK(strstr(cn_buf_text(&world.text), "CREATE INDEX ia"));
    CHECK(!strstr(cn_buf_text(&world.text), "sqlite_sequence"));
    CHECK_INT(0, dump_as(&world, (struct cn_dump){.no_schema = true}, &err));
    CHECK(!strstr(cn_buf_text(&world.text), "CREATE"));
    CHECK(strstr(cn_buf_text(&world.text), "DELETE FROM sqlite_sequence;\n"
                                           "INSERT INTO \"sqlite_sequence\""));
    CHECK_INT(0, dump_as(&world, (struct cn_dump){.table = "none"}, &err));
    CHECK_STR("PRAGMA defer_foreign_keys=TRUE;\n", cn_buf_text(&world.text));
    close_world(&world);
}

#define MANY                                                                                     \
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); WITH RECURSIVE n(i) AS (VALUES (1) UNION " \
    "ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO t SELECT i, hex(randomblob(50)) FROM n"

TEST(dump, rows_are_written_as_they_are_read)
{
    struct world world;
    open_world(&world, MANY);
    static const char *const queries[] = {"SELECT count(*) || sum(length(v)) FROM t",
                                          "SELECT v FROM t WHERE id IN (1, 2500, 5000)", NULL};
    check_same(&world, queries);
    CHECK(world.writes >= 8); /* of 64 KiB or little more */
    close_world(&world);
}

/* X3 */
TEST(dump, the_end_of_the_reader_ends_it)
{
    struct world world;
    struct cn_err err;
    open_world(&world, MANY);
    CHECK_INT(0, dump_as(&world, (struct cn_dump){0}, &err));
    unsigned writes = world.writes;
    for (world.fail_at = 1; world.fail_at <= writes; world.fail_at++) {
        CHECK_INT(-EPIPE, dump_as(&world, (struct cn_dump){0}, &err));
        CHECK_STR("nobody reads", err.text);
    }
    close_world(&world);
}

/* X3: the n-th read fails, for every n until it passes. */
TEST(dump, an_error_of_the_disk_is_the_result_wherever_it_comes)
{
    struct world world;
    struct cn_err err;
    unsigned failures = 0;
    open_world(&world, "CREATE TABLE t (v); INSERT INTO t VALUES (zeroblob(20000)), (1);"
                       "CREATE INDEX i ON t (v)");
    for (unsigned at = 1;; at++) {
        simdisk_set_fault(
            world.sim,
            &(struct simdisk_fault){.kinds = SIMDISK_OPEN | SIMDISK_READ, .at = at, .code = -EIO});
        int rc = dump_as(&world, (struct cn_dump){0}, &err);
        if (rc == 0)
            break;
        CHECK(err.text[0]);
        failures++;
    }
    CHECK(failures >= 5); /* the file, its header twice, its pages */
    CHECK(strstr(cn_buf_text(&world.text), "CREATE INDEX i"));
    simdisk_set_fault(world.sim, &(struct simdisk_fault){0});
    close_world(&world);
}

TEST(dump, a_file_that_is_no_database_or_not_there_is_an_error)
{
    struct world world;
    struct cn_err err = {0};
    struct cn_dump dump = {.write = collect, .data = &world};
    open_world(&world, "CREATE TABLE t (v)");
    CHECK(cn_dump_sql(simdisk_disk(world.sim), "none.db", &dump, &err) < 0);
    CHECK(err.text[0]);
    CHECK_INT(0, cn_disk_replace(simdisk_disk(world.sim), "text.db", "no database, but text", 21));
    CHECK(cn_dump_sql(simdisk_disk(world.sim), "text.db", &dump, &err) < 0);
    CHECK_INT(0, world.text.size);
    close_world(&world);
}
