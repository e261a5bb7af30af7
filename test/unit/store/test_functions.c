/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of SQL that take long texts: what they give is SQLite's, and what they take grows with
 * the texts. Sizes are such that the square of them would be minutes. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "store/functions.h"
#include "store/sqlite.h"
#include "store/sqlite/engine.h"
#include "test/lib/test.h"

static sqlite3 *connection;

static void connect(void)
{
    struct cn_err err;
    CHECK_INT(0, cn_sqlite_setup(&err));
    CHECK_INT(SQLITE_OK, sqlite3_open(":memory:", &connection));
}

/* The first column of the only row, or the message in angle brackets; texts are bound in order. */
static const char *ask(const char *sql, const char *first, const char *second, const char *third)
{
    static char result[256];
    const char *values[] = {first, second, third};
    sqlite3_stmt *statement;
    CHECK_INT(SQLITE_OK, sqlite3_prepare_v2(connection, sql, -1, &statement, NULL));
    for (int i = 0; i < sqlite3_bind_parameter_count(statement); i++)
        sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW)
        snprintf(result, sizeof(result), "%s",
                 sqlite3_column_type(statement, 0) == SQLITE_NULL
                     ? "NULL"
                     : (const char *)sqlite3_column_text(statement, 0));
    else
        snprintf(result, sizeof(result), "<%s>", sqlite3_errmsg(connection));
    sqlite3_finalize(statement);
    return result;
}

static const char *value(const char *sql)
{
    return ask(sql, NULL, NULL, NULL);
}

TEST(functions, give_what_they_gave)
{
    static const struct {
        const char *sql, *wanted;
    } cases[] = {
        {"instr('abcabc', 'ca')", "3"},
        {"instr('abc', 'abcd')", "0"},
        {"instr('abc', '')", "1"},
        {"instr('', 'a')", "0"},
        {"instr(NULL, 'a')", "NULL"},
        {"instr('a', NULL)", "NULL"},
        {"instr('\xc3\xa9\xc3\xa9x', 'x')", "3"},
        {"instr(x'c3a978', x'78')", "3"},
        {"instr(x'c3a978', '\x78')", "2"},
        {"instr('\xc3\xa9', CAST(x'a9' AS TEXT))", "0"},
        {"instr(12345, 34)", "3"},
        {"replace('aaa', 'aa', 'b')", "ba"},
        {"replace('abc', '', 'x')", "abc"},
        {"replace(121, 1, 33)", "33233"},
        {"typeof(replace(5, '', 'x'))", "text"},
        {"replace('abc', NULL, 'x')", "NULL"},
        {"replace('abc', 'b', NULL)", "NULL"},
        {"replace('abc', 'abcd', 'x')", "abc"},
        {"replace('abab', 'ab', '')", ""},
        {"hex(replace('', 'a', 'b'))", ""},
        {"'[' || trim('  a b  ') || ']'", "[a b]"},
        {"'[' || ltrim('  a  ') || ']'", "[a  ]"},
        {"'[' || rtrim('  a  ') || ']'", "[  a]"},
        {"trim('xyaxby', 'yx')", "axb"},
        {"trim('\xc3\xa9"
         "a\xc3\xa8\xc3\xa9', '\xc3\xa8\xc3\xa9')",
         "a"},
        {"trim('\xc3\xa9"
         "a', '\xc3\xa8')",
         "\xc3\xa9"
         "a"},
        {"trim('aaa', 'a')", ""},
        {"trim('abc', '')", "abc"},
        {"trim(NULL, 'a')", "NULL"},
        {"trim('a', NULL)", "NULL"},
        {"trim('\xf0\x9f\x98\x80"
         "a\xf0\x9f\x98\x80', '\xf0\x9f\x98\x80')",
         "a"},
        {"json_patch('{\"a\":1,\"b\":2}', '{\"a\":null,\"c\":3}')", "{\"b\":2,\"c\":3}"},
        {"json_patch(NULL, '{}')", "NULL"},
        {"hex(unhex('41 42', ' '))", "4142"},
    };
    char sql[128];
    connect();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        snprintf(sql, sizeof(sql), "SELECT %s", cases[i].sql);
        if (strcmp(cases[i].wanted, value(sql)) != 0)
            test_fail(__FILE__, __LINE__, "%s gives %s", cases[i].sql, value(sql));
    }
    /* They may be used where SQLite's own may: in an index. */
    CHECK_STR("<no more rows available>",
              value("CREATE TABLE t(a, b AS (trim(a, 'x')), c AS (instr(a, 'x')) STORED)"));
    CHECK_STR("<no more rows available>", value("CREATE INDEX i ON t(replace(a, 'a', 'b'))"));
    sqlite3_close(connection);
}

static char *repeated(const char *unit, size_t size, const char *end)
{
    struct cn_buf text = {0};
    while (text.size < size)
        cn_buf_append_str(&text, unit);
    cn_buf_append_str(&text, end);
    return (char *)cn_buf_take(&text);
}

TEST(functions, take_time_in_proportion_to_their_texts)
{
    connect();
    char *many = repeated("a", 2 << 20, ""), *most = repeated("a", 1 << 20, "b");
    CHECK_STR("0", ask("SELECT instr(?, ?)", many, most, NULL));
    CHECK_STR("2097152", ask("SELECT length(replace(?, ?, 'x'))", many, most, NULL));
    CHECK_STR("2097152", ask("SELECT length(replace(?, ?, 'x'))", many, "a", NULL));
    char *set = repeated("b", 1 << 20, "a");
    CHECK_STR("0", ask("SELECT length(trim(?, ?))", many, set, NULL));
    CHECK_STR("0", ask("SELECT length(rtrim(?, ?))", many, set, NULL));
    char *letters = repeated("\xc3\xa9", 2 << 20, ""),
         *others = repeated("\xc3\xa8", 1 << 20, "\xc3\xa9");
    CHECK_STR("0", ask("SELECT length(trim(?, ?))", letters, others, NULL));
    char *hex = repeated(" ", 2 << 20, "41"), *passed = repeated("b", 1 << 20, " ");
    CHECK_STR("<unhex(): too many characters that are passed over>",
              ask("SELECT unhex(?, ?)", hex, passed, NULL));
    cn_free(many), cn_free(most), cn_free(set), cn_free(letters), cn_free(others), cn_free(hex),
        cn_free(passed);

    struct cn_buf target = {0}, patch = {0};
    for (int i = 0; i < 100000; i++) {
        cn_buf_printf(&target, "%c\"a%d\":1", i ? ',' : '{', i);
        cn_buf_printf(&patch, "%c\"b%d\":1", i ? ',' : '{', i);
    }
    cn_buf_append_byte(&target, '}');
    cn_buf_append_byte(&patch, '}');
    static const char too_many[] = "<json_patch(): too many names>";
    CHECK_STR(too_many,
              ask("SELECT json_patch(?, ?)", cn_buf_text(&target), cn_buf_text(&patch), NULL));
    CHECK_STR(too_many, ask("SELECT json_patch(jsonb(?), jsonb(?))", cn_buf_text(&target),
                            cn_buf_text(&patch), NULL));
    CHECK_STR("100001", ask("SELECT count(*) FROM json_each(json_patch(?, '{\"x\":1}'))",
                            cn_buf_text(&target), NULL, NULL));
    cn_buf_fini(&target);
    cn_buf_fini(&patch);
    sqlite3_close(connection);
}

TEST(functions, queries_of_fts5_have_a_size)
{
    connect();
    cn_sqlite_configure(connection, 1000, 0);
    CHECK_STR("<no more rows available>", value("CREATE VIRTUAL TABLE t USING fts5(a)"));
    CHECK_STR("<no more rows available>", value("INSERT INTO t VALUES('a b a')"));
    char *most = repeated("a OR ", 4000, "b"), *many = repeated("a OR ", 5000, "b");
    char *near = repeated("a ", 2000, "");
    CHECK_STR("1", ask("SELECT count(*) FROM t(?)", most, NULL, NULL));
    CHECK_STR("<fts5: the query is too long>", ask("SELECT count(*) FROM t(?)", many, NULL, NULL));
    CHECK_STR("<fts5: the query is too long>",
              ask("SELECT count(*) FROM t WHERE t MATCH 'NEAR(' || ? || ')'", near, NULL, NULL));
    CHECK_STR("1", value("SELECT count(*) FROM t WHERE a MATCH 'NEAR(a b, 10) AND \"a b\"'"));
    sqlite3_close(connection);
    cn_free(most), cn_free(many), cn_free(near);
}

static int stop_after(void *left)
{
    return --*(int *)left < 0;
}

TEST(functions, a_snippet_asks_whether_it_may_go_on)
{
    connect();
    cn_sqlite_configure(connection, 1000, 0);
    char *text = repeated("a ", 20000, "");
    CHECK_STR("<no more rows available>", value("CREATE VIRTUAL TABLE t USING fts5(a)"));
    CHECK_STR("<no more rows available>", ask("INSERT INTO t VALUES(?)", text, NULL, NULL));
    CHECK_STR("[a] [a]..", value("SELECT snippet(t, 0, '[', ']', '..', 2) FROM t('a') LIMIT 1"));
    int left = 100; /* the statement's own program asks less often */
    sqlite3_progress_handler(connection, 10000, stop_after, &left);
    CHECK_STR("<interrupted>",
              value("SELECT snippet(t, 0, '[', ']', '..', 2) FROM t('a OR a OR a')"));
    sqlite3_close(connection);
    cn_free(text);
}
