/* SPDX-License-Identifier: Apache-2.0 */
/* Where a statement of a script ends: quotes, comments and triggers have semicolons of their own.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "store/database.h"
#include "test/lib/test.h"

/* Checks that `sql` begins with exactly this statement. */
static void check_first(const char *statement, const char *rest)
{
    char sql[2048];
    snprintf(sql, sizeof(sql), "%s%s", statement, rest);
    size_t size = cn_sql_first(sql, strlen(sql));
    if (size != strlen(statement))
        test_fail(__FILE__, __LINE__, "first of <%s> is <%.*s>", sql, (int)size, sql);
}

TEST(sqltext, ends_at_the_semicolon)
{
    check_first("SELECT 1;", " SELECT 2;");
    check_first("SELECT 1", "");
    check_first(" -- a;b\n SELECT 1;", ";");
    check_first("/* ; */ SELECT 1 /* ; ", "");
    check_first(";", "SELECT 1;");
    check_first("", "");
}

TEST(sqltext, quotes_hide_semicolons)
{
    check_first("SELECT 'a;''b;', \"c;\", `d;`, [e;];", "SELECT 2");
    check_first("INSERT INTO t VALUES ('-- no comment;');", "x");
    check_first("SELECT 'unclosed; SELECT 2;", "");
}

TEST(sqltext, a_trigger_ends_with_its_end)
{
    check_first("CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE b SET c = 1; DELETE FROM d; END;",
                " SELECT 1;");
    check_first("create temp trigger t after insert on a begin select case when 1 then 2 end; end;",
                " SELECT 1;");
    check_first("EXPLAIN CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1;; END ;", "SELECT 1");
    check_first("CREATE TABLE trigger_like(end, x);", "SELECT 1;");
    check_first("CREATE TABLE IF NOT EXISTS t(a);", "END;");
}

TEST(sqltext, blank)
{
    static const char *const blank[] = {"", " \n\t", ";;", "-- x", "/* x */;", "-- x\n ; /* y"};
    static const char *const full[] = {"x", "-- x\nSELECT 1", ";;SELECT", "/* x */ 1"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(blank); i++)
        CHECK(cn_sql_blank(blank[i], strlen(blank[i])));
    for (size_t i = 0; i < CN_ARRAY_COUNT(full); i++)
        CHECK(!cn_sql_blank(full[i], strlen(full[i])));
}
