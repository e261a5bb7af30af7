/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that go from one database to another: nobody notices, nothing comes along. The same
 * of templates, which give new databases their first pages (store/template.h). */
#include "store/pool.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "store/database_private.h"
#include "store/kvtable.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

enum { COUNT = 12, ANSWER_MAX = 4000 };

/* The same databases twice: with connections of a pool, and each with its own. */
struct side {
    struct cn_disk *disk;
    struct cn_store *store;
    struct cn_database_pool *pool; /* NULL: none */
    struct cn_database *db[COUNT];
    char answer[ANSWER_MAX];
};

static struct cn_object_key key_of(unsigned index)
{
    struct cn_object_key key = {.namespace_id = 1 + index % 2};
    key.id[0] = (uint8_t)(index + 1);
    return key;
}

static void side_database(struct side *side, unsigned index)
{
    struct cn_object_key key = key_of(index);
    struct cn_database_options options = {.pool = side->pool};
    struct cn_err err;
    if (cn_database_open(side->store, &key, &options, &side->db[index], &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void side_open(struct side *side, unsigned wanted)
{
    *side = (struct side){.disk = storetest_disk()};
    side->store = storetest_open(side->disk, NULL);
    side->pool = wanted ? cn_database_pool_new(wanted) : NULL;
    for (unsigned i = 0; i < COUNT; i++)
        side_database(side, i);
}

static void side_close(struct side *side)
{
    for (unsigned i = 0; i < COUNT; i++)
        cn_database_close(side->db[i]);
    cn_database_pool_free(side->pool);
    cn_store_close(side->store);
    cn_disk_system_free(side->disk);
}

static void say(struct side *side, const char *text)
{
    size_t used = strlen(side->answer);
    snprintf(side->answer + used, sizeof(side->answer) - used, "%s|", text);
}

static void say_number(struct side *side, const char *name, uint64_t number)
{
    char text[64];
    snprintf(text, sizeof(text), "%s %llu", name, (unsigned long long)number);
    say(side, text);
}

/* A guest's statement: rows, or the error, and what is counted. */
static void run(struct side *side, unsigned index, const char *sql)
{
    struct cn_database *db = side->db[index];
    struct cn_statement *statement;
    struct cn_err err;
    size_t used;
    int rc = cn_database_prepare(db, sql, strlen(sql), CN_SQL_GUEST, &statement, &used, &err);
    while (rc == 0 && (rc = cn_statement_step(statement, &err)) == 1) {
        for (int i = 0; i < cn_statement_column_count(statement); i++) {
            size_t size;
            char cell[200];
            const char *text = cn_statement_column_text(statement, i, &size);
            snprintf(cell, sizeof(cell), "%s=%.*s", cn_statement_column_name(statement, i),
                     (int)size, text);
            say(side, cell);
        }
        rc = 0;
    }
    say(side, rc < 0 ? err.text : "done");
    if (rc < 0)
        return;
    say_number(side, "read", cn_statement_rows_read(statement));
    say_number(side, "written", cn_statement_rows_written(statement));
    say_number(side, "changed", (uint64_t)cn_statement_changes(statement));
    say_number(side, "defines", cn_statement_defines(statement));
    cn_statement_release(statement);
}

/* A script of several statements, as a guest runs it. */
static void run_all(struct side *side, unsigned index, const char *sql)
{
    size_t left = strlen(sql), used;
    while (left > 0) {
        struct cn_statement *statement;
        struct cn_err err;
        int rc =
            cn_database_prepare(side->db[index], sql, left, CN_SQL_GUEST, &statement, &used, &err);
        if (rc == 0 && statement) {
            rc = cn_statement_step(statement, &err);
            say_number(side, "written", cn_statement_rows_written(statement));
            cn_statement_release(statement);
        }
        if (rc < 0) {
            say(side, err.text);
            return;
        }
        sql += used;
        left -= used;
    }
    say(side, "all done");
}

/* The pages of both, byte by byte, but for the counter of changes, which a connection raises when
 * it first writes to a database. */
static void pages_compare(struct side *a, struct side *b, unsigned index)
{
    uint32_t count = cn_image_page_count(a->db[index]->image);
    CHECK_INT(count, cn_image_page_count(b->db[index]->image));
    for (uint32_t page = 1; page <= count; page++) {
        uint8_t one[CN_PAGE_SIZE], two[CN_PAGE_SIZE];
        CHECK_INT(0, cn_image_read(a->db[index]->image, page, 0, CN_PAGE_SIZE, one, NULL));
        CHECK_INT(0, cn_image_read(b->db[index]->image, page, 0, CN_PAGE_SIZE, two, NULL));
        for (unsigned i = 0; i < CN_PAGE_SIZE; i++)
            if (one[i] != two[i] && !(page == 1 && ((i >= 24 && i < 28) || (i >= 92 && i < 96))))
                test_fail(__FILE__, __LINE__, "database %u: page %u differs at %u: %u and %u",
                          index, page, i, one[i], two[i]);
    }
}

/* A text that is not cached: the pragma does not change what was compiled before it. */
static void ask(struct side *side, unsigned index, unsigned step)
{
    char sql[300];
    snprintf(sql, sizeof(sql),
             "SELECT changes() AS c, total_changes() AS t, last_insert_rowid() AS l,"
             " (SELECT data_version FROM pragma_data_version) AS v,"
             " (SELECT foreign_keys FROM pragma_foreign_keys) AS f, 'A' LIKE 'a' AS k, %u AS s",
             step);
    run(side, index, sql);
}

static void commit(struct side *side, unsigned index)
{
    struct cn_err err;
    uint64_t lsn;
    say(side, cn_database_commit(side->db[index], &lsn, &err) < 0 ? err.text : "committed");
    cn_database_rest(side->db[index]);
}

static void kv(struct side *side, unsigned index, unsigned key, bool put)
{
    char text[32];
    struct cn_err err;
    snprintf(text, sizeof(text), "key%u", key % 5);
    struct cn_kv_bytes name = {text, strlen(text)}, value = {text, 1 + key % 4};
    int rc = put ? cn_kvtable_put(side->db[index], name, value, &err)
                 : cn_kvtable_get(side->db[index], name, &value, &err);
    snprintf(text, sizeof(text), "%d:%zu", rc, rc == 1 ? value.size : 0);
    say(side, rc < 0 ? err.text : text);
}

struct act {
    unsigned index, what, number, step;
};

static void act(struct side *side, struct act act)
{
    char sql[200];
    struct cn_err err;
    unsigned index = act.index, number = act.number;
    side->answer[0] = '\0';
    switch (act.what) {
    case 0:
        run(side, index, "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b TEXT)");
        break;
    case 1:
    case 2:
    case 3:
        snprintf(sql, sizeof(sql), "INSERT INTO t(b) VALUES('%u of %u')", number, index);
        run(side, index, sql);
        break;
    case 4:
        snprintf(sql, sizeof(sql), "UPDATE t SET b = b || '.' WHERE a %% 3 = %u", number % 3);
        run(side, index, sql);
        break;
    case 5:
    case 6:
        run(side, index, "SELECT count(*) AS n, max(b) AS b, sum(a) AS a FROM t");
        break;
    case 7:
        run(side, index, "SELECT * FROM t ORDER BY a DESC LIMIT 3");
        break;
    case 8:
        kv(side, index, number, true);
        break;
    case 9:
        kv(side, index, number, false);
        break;
    case 10:
        if (number % 100 == 0)
            run(side, index, "ALTER TABLE t ADD COLUMN c DEFAULT 7");
        else if (number % 100 == 1)
            run(side, index, "CREATE INDEX IF NOT EXISTS i ON t(b)");
        break;
    case 11:
        if (number % 200 == 0)
            run(side, index, "PRAGMA foreign_keys = off");
        else if (number % 200 == 1)
            run(side, index, "PRAGMA case_sensitive_like = on");
        else if (number % 200 == 2)
            run(side, index, "CREATE VIRTUAL TABLE IF NOT EXISTS f USING fts5(x)");
        else if (number % 200 == 3)
            run(side, index, "ANALYZE");
        break;
    case 12:
        run(side, index, "INSERT INTO f VALUES('word')");
        run(side, index, "SELECT count(*) FROM f WHERE f MATCH 'word'");
        break;
    case 13:
        cn_database_rollback(side->db[index]);
        cn_database_rest(side->db[index]);
        return;
    case 14:
        if (number % 60 == 0)
            say(side, cn_database_delete_all(side->db[index], true, &err) < 0 ? err.text : "gone");
        break;
    case 15:
        if (number % 3)
            break;
        cn_database_close(side->db[index]);
        side_database(side, index);
        return;
    case 16:
        snprintf(sql, sizeof(sql), "DELETE FROM t WHERE a %% 4 = %u", number % 4);
        run(side, index, sql);
        break;
    default:
        ask(side, index, act.step);
    }
    if (number % 5)
        commit(side, index);
    else
        cn_database_rest(side->db[index]); /* although its turn goes on */
}

/* How often a connection has moved. */
static size_t compare(unsigned wanted, uint64_t seed)
{
    struct side pooled, alone;
    struct cn_rand rand;
    cn_rand_init(&rand, seed);
    side_open(&pooled, wanted);
    side_open(&alone, 0);
    for (unsigned i = 0; i < 6000; i++) {
        struct act next = {.step = i};
        next.index = (unsigned)cn_rand_below(&rand, COUNT);
        next.what = i < 2 * COUNT ? 0 : (unsigned)cn_rand_below(&rand, 19);
        next.number = (unsigned)cn_rand_below(&rand, 1000);
        act(&pooled, next);
        act(&alone, next);
        if (strcmp(pooled.answer, alone.answer) != 0)
            test_fail(__FILE__, __LINE__, "seed %llu, step %u, database %u, act %u: %s and %s",
                      (unsigned long long)seed, i, next.index, next.what, pooled.answer,
                      alone.answer);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK_STR("ok", storetest_text(pooled.db[i], "PRAGMA integrity_check"));
    }
    struct cn_database_pool_stats stats;
    cn_database_pool_stats(pooled.pool, &stats);
    size_t moved = stats.moved;
    side_close(&pooled);
    side_close(&alone);
    return moved;
}

TEST(pool, answers_are_those_of_connections_of_their_own)
{
    size_t moved = 0;
    for (uint64_t seed = 1; seed <= 4; seed++)
        moved += compare(1 + (unsigned)seed % 4, seed);
    moved += compare(2, test_seed());
    CHECK(moved > 1000);
}

/* Two databases of a class, with one connection between them. */
static void pair_open(struct side *side, const char *sql)
{
    side_open(side, 1);
    for (unsigned i = 0; i < 4; i += 2) {
        run(side, i, sql);
        commit(side, i);
    }
}

static size_t pair_moves(struct side *side)
{
    struct cn_database_pool_stats before, after;
    cn_database_pool_stats(side->pool, &before);
    for (unsigned i = 0; i < 10; i++) {
        run(side, i % 2 * 2, "SELECT 1");
        commit(side, i % 2 * 2);
    }
    cn_database_pool_stats(side->pool, &after);
    return after.moved - before.moved;
}

TEST(pool, a_connection_goes_to_and_fro_between_databases_of_the_same_schema)
{
    struct side side;
    pair_open(&side, "CREATE TABLE t(a)");
    CHECK_INT(10, pair_moves(&side));
    struct cn_database_pool_stats stats;
    cn_database_pool_stats(side.pool, &stats);
    CHECK_INT(1, stats.connections);
    side_close(&side);
}

TEST(pool, another_schema_has_a_connection_of_its_own)
{
    struct side side;
    pair_open(&side, "CREATE TABLE t(a)");
    run(&side, 0, "CREATE TABLE u(b)");
    commit(&side, 0);
    CHECK_INT(0, pair_moves(&side));
    side_close(&side);
}

TEST(pool, a_schema_of_several_pages_does_not_move)
{
    static char sql[6000];
    struct side side;
    snprintf(sql, sizeof(sql), "CREATE TABLE t(a DEFAULT '%0*d')", 5000, 1);
    pair_open(&side, sql);
    CHECK_INT(0, pair_moves(&side));
    side_close(&side);
}

TEST(pool, what_a_script_has_set_keeps_a_connection_where_it_is)
{
    static const char *const settings[] = {
        "PRAGMA foreign_keys = off",
        "PRAGMA case_sensitive_like = on",
        "PRAGMA reverse_unordered_selects = on",
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(settings); i++) {
        struct side side;
        pair_open(&side, "CREATE TABLE t(a)");
        run(&side, 0, settings[i]);
        commit(&side, 0);
        run(&side, 2, settings[i]);
        commit(&side, 2);
        CHECK_INT(0, pair_moves(&side));
        side_close(&side);
    }
}

TEST(pool, virtual_tables_and_statistics_do_not_move)
{
    struct side side;
    pair_open(&side, "CREATE VIRTUAL TABLE f USING fts5(x)");
    CHECK_INT(0, pair_moves(&side));
    side_close(&side);
    pair_open(&side, "CREATE TABLE t(a PRIMARY KEY)");
    for (unsigned i = 0; i < 4; i += 2) {
        run(&side, i, "INSERT INTO t VALUES(1)");
        run(&side, i, "ANALYZE");
        commit(&side, i);
    }
    CHECK_INT(0, pair_moves(&side));
    side_close(&side);
}

TEST(pool, a_cursor_or_a_transaction_keeps_its_connection)
{
    struct side side;
    struct cn_statement *statement;
    struct cn_err err;
    size_t used;
    pair_open(&side, "CREATE TABLE t(a)");
    run(&side, 0, "INSERT INTO t VALUES('mine')");
    commit(&side, 0);
    static const char sql[] = "SELECT a FROM t";
    CHECK_INT(0, cn_database_prepare(side.db[0], sql, sizeof(sql) - 1, CN_SQL_GUEST, &statement,
                                     &used, &err));
    cn_database_rest(side.db[0]);
    run(&side, 2, "INSERT INTO t VALUES('yours')");
    commit(&side, 2);
    CHECK_INT(1, cn_statement_step(statement, &err));
    CHECK_STR("mine", cn_statement_column_text(statement, 0, &used));
    cn_statement_release(statement);
    run(&side, 0, "INSERT INTO t VALUES('too')");
    cn_database_rest(side.db[0]);
    run(&side, 2, "SELECT 1");
    commit(&side, 2);
    commit(&side, 0);
    CHECK_INT(2, storetest_int(side.db[0], "SELECT count(*) FROM t"));
    CHECK_INT(1, storetest_int(side.db[2], "SELECT count(*) FROM t"));
    side_close(&side);
}

/* P4: opened, used and at rest, one after the other. */
TEST(pool, databases_that_are_used_once_share_few_connections)
{
    struct side side;
    struct cn_database_pool_stats stats;
    side_open(&side, 64); /* some: two */
    for (unsigned i = 0; i < COUNT; i += 2) {
        run(&side, i, "CREATE TABLE t(a)");
        run(&side, i, "INSERT INTO t VALUES(1)");
        commit(&side, i);
    }
    for (unsigned i = 0; i < COUNT; i += 2) { /* from disk, as after a start */
        cn_database_close(side.db[i]);
        side.db[i] = NULL;
    }
    cn_database_pool_trim(side.pool);
    for (unsigned i = 0; i < COUNT; i += 2) {
        side_database(&side, i);
        CHECK_INT(1, storetest_int(side.db[i], "SELECT count(*) FROM t"));
        cn_database_rest(side.db[i]);
    }
    cn_database_pool_stats(side.pool, &stats);
    CHECK_INT(2, stats.connections);
    /* Those that come again are given their own; nobody's is taken for that. */
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < COUNT; i += 2) {
            CHECK_INT(1, storetest_int(side.db[i], "SELECT count(*) FROM t"));
            cn_database_rest(side.db[i]);
        }
    cn_database_pool_stats(side.pool, &stats);
    CHECK_INT(COUNT / 2, stats.connections);
    side_close(&side);
}

TEST(pool, connections_of_closed_databases_are_used_again_and_can_be_given_back)
{
    struct side side;
    struct cn_database_pool_stats stats;
    side_open(&side, 8);
    run(&side, 0, "CREATE TABLE t(a)");
    commit(&side, 0);
    cn_database_close(side.db[0]);
    cn_database_pool_stats(side.pool, &stats);
    CHECK_INT(1, stats.free);
    side_database(&side, 0);
    CHECK_INT(0, storetest_int(side.db[0], "SELECT count(*) FROM t"));
    cn_database_pool_stats(side.pool, &stats);
    CHECK_INT(1, stats.moved);
    CHECK_INT(0, stats.free);
    cn_database_close(side.db[0]);
    cn_database_pool_trim(side.pool);
    cn_database_pool_stats(side.pool, &stats);
    CHECK_INT(0, stats.connections);
    side_database(&side, 0);
    side_close(&side);
}

/* ---- Templates ---- */

static const char table_t[] = "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b TEXT)";
static const char index_t[] = "CREATE INDEX IF NOT EXISTS i ON t(b)";
static const char both[] = "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b TEXT);\n"
                           "  CREATE UNIQUE INDEX IF NOT EXISTS u ON t(b);\n";
static const char counted[] = "create table if not exists n(a integer primary key autoincrement)";

/* What an object does when it is new, by number; `rows` after it. */
static void begin_life(struct side *side, unsigned index, unsigned kind)
{
    struct cn_err err;
    int level;
    switch (kind) {
    case 0:
        run(side, index, table_t);
        break;
    case 1:
        run(side, index, table_t);
        run(side, index, index_t);
        break;
    case 2:
        run_all(side, index, both);
        break;
    case 3: /* begins like 1, and goes on like 0 */
        run(side, index, table_t);
        run(side, index, "INSERT INTO t(b) VALUES('early')");
        run(side, index, index_t);
        break;
    case 4:
        run(side, index, table_t);
        run(side, index, table_t);
        run(side, index, "CREATE TABLE IF NOT EXISTS other(x)");
        break;
    case 5:
        run(side, index, table_t);
        cn_database_rollback(side->db[index]);
        run(side, index, "SELECT count(*) AS n FROM sqlite_schema");
        run(side, index, "CREATE TABLE IF NOT EXISTS t(z)");
        break;
    case 6:
        run(side, index, table_t);
        say_number(side, "size", cn_database_size(side->db[index]));
        run(side, index, index_t);
        break;
    case 7:
        run(side, index, table_t);
        level = cn_database_savepoint(side->db[index], &err);
        run(side, index, index_t);
        say_number(side, "level", (uint64_t)level);
        if (level > 0)
            (void)cn_database_savepoint_rollback(side->db[index], level, &err);
        break;
    case 8: /* rows of its own, and none of others (T6) */
        kv(side, index, index, true);
        for (unsigned key = 0; key < 5; key++)
            kv(side, index, key, false);
        break;
    case 9:
        kv(side, index, 2, false);
        run(side, index, table_t);
        kv(side, index, 2, true);
        break;
    case 10:
        run(side, index, counted);
        run(side, index, "INSERT INTO n DEFAULT VALUES");
        break;
    case 11:
        run(side, index, "CREATE TABLE IF NOT EXISTS t(a, b) AS SELECT 1");
        run(side, index, "CREATE TABLE IF NOT EXISTS _cf_x(a)");
        run(side, index, "CREATE TABLE IF NOT EXISTS t(");
        run(side, index, table_t);
        break;
    case 12:
        run(side, index, table_t);
        say(side,
            cn_database_delete_all(side->db[index], true, &err) < 0 ? err.text : "all is gone");
        run(side, index, "CREATE TABLE IF NOT EXISTS t(b)");
        break;
    case 13:
        run(side, index, table_t);
        (void)cn_database_set_alarm(side->db[index], 77, &err);
        break;
    case 14: /* a statement that is prepared and runs later, or never */
    case 15: {
        struct cn_statement *statement;
        size_t used;
        run(side, index, table_t);
        CHECK_INT(0, cn_database_prepare(side->db[index], index_t, sizeof(index_t) - 1,
                                         CN_SQL_GUEST, &statement, &used, &err));
        run(side, index, "SELECT count(*) AS n FROM sqlite_schema");
        if (kind == 14)
            say_number(side, "later", (uint64_t)cn_statement_step(statement, &err));
        cn_statement_release(statement);
        break;
    }
    case 16:
        run(side, index, "PRAGMA case_sensitive_like = on");
        run(side, index, table_t);
        break;
    default:
        run(side, index, "SELECT name FROM sqlite_schema");
    }
}

static void look(struct side *side, unsigned index)
{
    run(side, index, "SELECT type, name, sql, rootpage FROM sqlite_schema ORDER BY 2");
    run(side, index, "INSERT INTO t(b) VALUES('x')");
    run(side, index, "SELECT * FROM t ORDER BY a DESC");
    kv(side, index, 1, false);
}

/* Objects that are made, used and deleted, of which many begin alike: each page is the one that a
 * connection of its own would have made. */
static size_t compare_lives(unsigned wanted, uint64_t seed, unsigned kinds)
{
    struct side pooled, alone, *sides[] = {&pooled, &alone};
    struct cn_rand rand;
    struct cn_err err;
    cn_rand_init(&rand, seed);
    side_open(&pooled, wanted);
    side_open(&alone, 0);
    for (unsigned i = 0; i < 1000; i++) {
        unsigned index = (unsigned)cn_rand_below(&rand, COUNT), what;
        unsigned kind = (unsigned)cn_rand_below(&rand, kinds);
        what = (unsigned)cn_rand_below(&rand, 8);
        for (unsigned s = 0; s < 2; s++) {
            struct side *side = sides[s];
            side->answer[0] = '\0';
            if (what < 4) {
                (void)cn_database_delete_all(side->db[index], true, &err);
                commit(side, index);
                cn_database_close(side->db[index]);
                side_database(side, index);
                begin_life(side, index, kind);
            }
            if (what > 0)
                look(side, index);
            if (what == 1) {
                cn_database_rollback(side->db[index]);
                cn_database_rest(side->db[index]);
            } else if (what == 2) {
                kv(side, index, 1, true);
                cn_database_rest(side->db[index]); /* although its turn goes on */
            } else {
                commit(side, index);
            }
            if (what > 5) {
                cn_database_close(side->db[index]);
                side_database(side, index);
            }
        }
        if (strcmp(pooled.answer, alone.answer) != 0)
            test_fail(__FILE__, __LINE__, "seed %llu, step %u, database %u, kind %u: %s and %s",
                      (unsigned long long)seed, i, index, kind, pooled.answer, alone.answer);
        pages_compare(&pooled, &alone, index);
    }
    struct cn_database_pool_stats stats;
    cn_database_pool_stats(pooled.pool, &stats);
    side_close(&pooled);
    side_close(&alone);
    return stats.templated;
}

TEST(pool, objects_that_begin_by_a_template_are_those_that_began_by_themselves)
{
    CHECK(compare_lives(8, 1, 1) > 70);
    CHECK(compare_lives(8, 2, 3) > 30);
    size_t templated = 0;
    for (uint64_t seed = 3; seed < 7; seed++)
        templated += compare_lives(2 * (unsigned)seed, seed, 18);
    templated += compare_lives(8, test_seed(), 18);
    CHECK(templated > 60);
}

/* T6. Each object begins by a row of its own in the key-value table. */
TEST(pool, a_template_has_no_row_of_the_object_that_it_was_learnt_from)
{
    struct side side;
    struct cn_err err;
    side_open(&side, 8);
    for (unsigned i = 0; i < 200; i++) {
        unsigned index = i % COUNT;
        (void)cn_database_delete_all(side.db[index], true, &err);
        commit(&side, index);
        cn_database_close(side.db[index]);
        side_database(&side, index);
        side.answer[0] = '\0';
        kv(&side, index, i, true);
        commit(&side, index);
        for (unsigned key = 0; key < 5; key++) {
            char text[8];
            snprintf(text, sizeof(text), "key%u", key);
            struct cn_kv_bytes name = {text, strlen(text)}, value;
            int rc = cn_kvtable_get(side.db[index], name, &value, &err);
            if (rc != (key == i % 5))
                test_fail(__FILE__, __LINE__, "object %u: key%u: %d", i, key, rc);
        }
        cn_database_rest(side.db[index]);
    }
    struct cn_database_pool_stats stats;
    cn_database_pool_stats(side.pool, &stats);
    side_close(&side);
    CHECK(stats.templated > 50);
}

/* P2: a database that rests in the middle of a transaction has a schema that is in no page yet. */
TEST(pool, a_schema_that_is_not_committed_is_not_taken_for_the_page_before_it)
{
    struct side side;
    struct cn_err err;
    struct cn_kv_bytes name = {"key1", 4}, value;
    side_open(&side, 32); /* so that one that rests is enough to take another's: P4 */
    run(&side, 0, table_t);
    commit(&side, 0);
    cn_database_rest(side.db[0]);
    kv(&side, 0, 1, true); /* makes the table, and does not end its transaction */
    cn_database_rest(side.db[0]);
    run(&side, 4, table_t); /* looks for a connection that has this schema and no other table */
    commit(&side, 4);
    commit(&side, 0);
    cn_database_rest(side.db[0]);
    for (unsigned index = 6; index < COUNT; index += 2) { /* again: none gets that of the first */
        run(&side, index, table_t);
        CHECK_INT(0, cn_kvtable_get(side.db[index], name, &value, &err));
        CHECK_INT(0, cn_kvtable_put(side.db[index], name, name, &err));
        CHECK_INT(1, cn_kvtable_get(side.db[index], name, &value, &err));
        commit(&side, index);
        cn_database_rest(side.db[index]);
    }
    side_close(&side);
}
