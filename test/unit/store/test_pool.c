/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that go from one database to another: nobody notices, nothing comes along. */
#include "store/pool.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "store/database.h"
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

/* A guest's statement: rows, or the error, and what SQL can ask of the connection. */
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
    if (rc == 0)
        cn_statement_release(statement);
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
