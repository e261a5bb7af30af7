/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL of Analytics Engine: what queries answer, and what wrong ones are told (AE-3, AE-4,
 * AE-5). */
#include "analytics/asql.h"

#include <stdio.h>
#include <string.h>

#include "analytics/points.h"
#include "base/buf.h"
#include "base/clock.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

#define NOW_MS 1767225600000 /* 2026-01-01 00:00:00 */

static struct simdisk *sim;
static char answer[1 << 16];

static int keep(void *data, const char *type, const void *bytes, size_t size)
{
    (void)type;
    struct cn_buf *out = data;
    cn_buf_append(out, bytes, size);
    return 0;
}

/* The answer, or the error, as a text. */
static const char *ask(const char *sql)
{
    struct cn_buf out = {0};
    struct cn_err err = {0};
    struct cn_asql asql = {
        .disk = simdisk_disk(sim), .now_ms = NOW_MS, .write = keep, .data = &out};
    int rc = cn_asql_run(&asql, sql, strlen(sql), &err);
    CHECK(rc == 0 || (rc < 0 && err.code == rc && err.text[0]));
    snprintf(answer, sizeof(answer), "%s", rc < 0 ? err.text : cn_buf_text(&out));
    cn_buf_fini(&out);
    return answer;
}

/* As TabSeparated, without the last line end. */
static const char *tabs(const char *sql)
{
    char text[4096];
    snprintf(text, sizeof(text), "%s FORMAT TabSeparated", sql);
    ask(text);
    size_t size = strlen(answer);
    if (size && answer[size - 1] == '\n')
        answer[size - 1] = 0;
    return answer;
}

/* One value, computed without a dataset. */
static const char *value(const char *expression)
{
    char text[4096];
    snprintf(text, sizeof(text), "SELECT %s", expression);
    return tabs(text);
}

static int64_t then(struct cn_clock *clock)
{
    (void)clock;
    return NOW_MS;
}

/* 120 points, one a minute up to NOW: blob1 is one of three towns, double1 counts from 0. */
static void fill(void)
{
    static const char *const towns[] = {"Bonn", "Kiel", "Ulm"};
    sim = simdisk_new();
    struct cn_clock clock = {.wall_ms = then};
    struct cn_points_options options = {
        .disk = simdisk_disk(sim), .clock = &clock, .lane_count = 1};
    struct cn_points *points = cn_points_new(&options);
    uint32_t dataset, other;
    CHECK_INT(0, cn_points_dataset(points, "visits", &dataset, NULL));
    CHECK_INT(0, cn_points_dataset(points, "empty-one", &other, NULL));
    for (int i = 0; i < 120; i++) {
        const char *town = towns[i % 3];
        struct cn_point point = {.time_ms = NOW_MS - (120 - i) * 60000,
                                 .index = {"i", 1},
                                 .blobs = {{town, strlen(town)}},
                                 .blob_count = 1,
                                 .doubles = {i, i % 3},
                                 .double_count = 2};
        cn_points_write(points, 0, dataset, &point);
    }
    cn_points_free(points);
}

static void empty(void)
{
    simdisk_free(sim);
}

TEST(asql, expressions)
{
    fill();
    static const char *const cases[][2] = {
        {"1 + 2 * 3", "7"},
        {"(1 + 2) * 3", "9"},
        {"7 / 2", "3.5"},
        {"7 % 4", "3"},
        {"-3 - -4", "1"},
        {"intDiv(7, 2)", "3"},
        {"intDiv(-7, 2)", "-4"},
        {"intDiv(1, 0)", "0"},
        {"round(5.5)", "6"},
        {"round(3.14, 1)", "3.1"},
        {"floor(3.19, 1)", "3.1"},
        {"ceil(3.14, 1)", "3.2"},
        {"pow(2, 10)", "1024"},
        {"abs(-2)", "2"},
        {"0.1 + 0.2", "0.30000000000000004"},
        {"1 = 1 AND NOT 2 < 1", "1"},
        {"2 BETWEEN 1 AND 3", "1"},
        {"2 NOT BETWEEN 1 AND 3", "0"},
        {"'b' IN ('a', 'b')", "1"},
        {"3 NOT IN (1, 2)", "1"},
        {"'error 7' LIKE 'err%7'", "1"},
        {"'Error' LIKE 'err%'", "0"},
        {"'Error' ILIKE 'err__'", "1"},
        {"'x' NOT LIKE '%y%'", "1"},
        {"if(1 > 2, 'yes', 'no')", "no"},
        {"if(1 < 2, 1, 0.5)", "1"},
        {"length('Gr\xc3\xb6\xc3\x9f"
         "e')",
         "5"},
        {"lower('ABC') || upper('def')", "abcDEF"},
        {"substring('hello world', 7)", "world"},
        {"substring('hello', 2, 3)", "ell"},
        {"position(':' IN 'hello: world')", "6"},
        {"startsWith('prefix', 'pre') + endsWith('suffix', 'fix')", "2"},
        {"empty('')", "1"},
        {"format('{}-{}', 'a', 7)", "a-7"},
        {"concat('a', 1, '-', 2.5, 'b', 'c')", "a1-2.5bc"},
        {"hex(255)", "FF"},
        {"bin(5)", "00000101"},
        {"bitAnd(6, 3)", "2"},
        {"bitXor(6, 3)", "5"},
        {"bitShiftLeft(1, 4)", "16"},
        {"bitCount(7)", "3"},
        {"bitTest(5, 2)", "1"},
        {"bitRotateLeft(129, 1)", "3"},
        {"toUInt8('12')", "12"},
        {"toUInt32(3.9)", "3"},
        {"toDateTime('1981-04-12 12:00:04')", "1981-04-12 12:00:04"},
        {"toDateTime(355924804)", "1981-04-12 12:00:04"},
        {"toUnixTimestamp(toDateTime('1981-04-12 12:00:04'))", "355924804"},
        {"now()", "2026-01-01 00:00:00"},
        {"today()", "2026-01-01"},
        {"NOW() - INTERVAL '1' DAY", "2025-12-31 00:00:00"},
        {"now() + INTERVAL 2 MONTH", "2026-03-01 00:00:00"},
        {"toDateTime('2025-03-31 00:00:00') - INTERVAL '1' MONTH", "2025-02-28 00:00:00"},
        {"toStartOfInterval(toDateTime('2025-10-27 16:55:25'), INTERVAL '15' MINUTE)",
         "2025-10-27 16:45:00"},
        {"toStartOfInterval(toDateTime('2025-10-29 16:55:25'), INTERVAL '1' WEEK)",
         "2025-10-27 00:00:00"},
        {"toStartOfMonth(toDateTime('2025-10-27 16:55:25'))", "2025-10-01 00:00:00"},
        {"toStartOfFiveMinutes(toDateTime('2025-10-27 16:58:25'))", "2025-10-27 16:55:00"},
        {"toDayOfWeek(toDateTime('2025-11-02 00:00:00'))", "7"},
        {"toYYYYMM(toDateTime('2025-10-27 16:55:25'))", "202510"},
        {"extract(SECOND from toDateTime('2022-06-06 11:30:15'))", "15"},
        {"formatDateTime(now(), '%Y-%m-%d %H:%i')", "2026-01-01 00:00"},
        {"'it''s \\'so\\''", "it's 'so'"},
        {"'tab\there'", "tab\\there"},
        {"true /* a comment */ -- and another", "1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char sql[256];
        snprintf(sql, sizeof(sql), "%s\n", cases[i][0]);
        CHECK_STR(cases[i][1], value(sql));
    }
    empty();
}

TEST(asql, groups_orders_and_limits)
{
    fill();
    CHECK_STR("Bonn\t40\t2340\nKiel\t40\t2380\nUlm\t40\t2420",
              tabs("SELECT blob1 AS town, count() AS n, sum(double1) FROM visits GROUP BY town "
                   "ORDER BY town"));
    CHECK_STR("Ulm\t60.5\nKiel\t59.5",
              tabs("SELECT blob1, avg(double1) AS a FROM visits GROUP BY blob1 HAVING a > 59 "
                   "ORDER BY a DESC"));
    CHECK_STR("Kiel", tabs("SELECT blob1 FROM visits GROUP BY 1 ORDER BY 1 LIMIT 1 OFFSET 1"));
    CHECK_STR("2025-12-31 22:00:00\t60\n2025-12-31 23:00:00\t60",
              tabs("SELECT toStartOfInterval(timestamp, INTERVAL '1' HOUR) AS hour, "
                   "sum(_sample_interval) FROM visits GROUP BY hour ORDER BY hour ASC"));
    CHECK_STR("10", tabs("SELECT count() FROM visits WHERE timestamp >= NOW() - INTERVAL '10' "
                         "MINUTE"));
    CHECK_STR("1", tabs("SELECT count() FROM visits WHERE timestamp = '2025-12-31 23:59:00'"));
    CHECK_STR("0", tabs("SELECT count() FROM visits WHERE timestamp > now()"));
    CHECK_STR("119\n118", tabs("SELECT double1 FROM visits ORDER BY double1 DESC LIMIT 2"));
    CHECK_STR("0\n1\n2", tabs("SELECT DISTINCT double2 FROM visits"));
    CHECK_STR("2", tabs("SELECT count() FROM (SELECT blob1 AS town, count() AS n FROM visits "
                        "WHERE double1 < 2 GROUP BY town) WHERE n = 1"));
    CHECK_STR("120\tvisits", tabs("SELECT count(), max(dataset) FROM visits"));
    CHECK_STR("0\t0\tnan\t", tabs("SELECT count(), sum(double1), avg(double1), max(blob1) FROM "
                                  "`empty-one`"));
    CHECK_STR("", tabs("SELECT blob1 FROM visits WHERE blob1 = 'Rom'"));
    CHECK_STR("1\t1\n2\t1", tabs("SELECT double1 + 1 AS double1, count() FROM visits GROUP BY "
                                 "double1 ORDER BY double1 LIMIT 2"));
    CHECK_STR("1\t1\n2\t1", tabs("SELECT double1 + 1 AS double1, count() FROM visits GROUP BY 1 "
                                 "ORDER BY 1 LIMIT 2"));
    /* A name inside its own alias is the column. */
    CHECK_STR("1", tabs("SELECT double1 + 1 AS double1 FROM visits ORDER BY timestamp LIMIT 1"));
    empty();
}

TEST(asql, aggregates)
{
    fill();
    static const char *const cases[][2] = {
        {"count(DISTINCT blob1)", "3"},
        {"sum(DISTINCT double2)", "3"},
        {"avg(DISTINCT double2)", "1"},
        {"min(double1)", "0"},
        {"max(blob1)", "Ulm"},
        {"max(timestamp)", "2025-12-31 23:59:00"},
        {"quantileExactWeighted(0.5)(double1, _sample_interval)", "59"},
        {"quantileWeighted(0.95)(double1, _sample_interval)", "113"},
        {"quantileWeighted(0.95, double1, _sample_interval)", "113"},
        {"quantileExactWeighted(0)(double1, 1)", "0"},
        {"quantileExactWeighted(1)(double1, 1)", "119"},
        {"argMax(blob1, double1)", "Ulm"},
        {"argMin(blob1, double1)", "Bonn"},
        {"first_value(double1)", "0"},
        {"last_value(double1)", "119"},
        {"countIf(double1 < 10)", "10"},
        {"sumIf(double1, blob1 = 'Bonn')", "2340"},
        {"avgIf(double1, double1 < 3)", "1"},
        {"topK(2)(blob1)", "['Bonn','Kiel']"},
        {"topKWeighted(1)(blob1, double1)", "['Ulm']"},
        {"sum(_sample_interval * double1) / sum(_sample_interval)", "59.5"},
        {"count(*) + count()", "240"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char sql[256];
        snprintf(sql, sizeof(sql), "SELECT %s FROM visits", cases[i][0]);
        if (strncmp(cases[i][0], "topK(2)", 7) == 0) { /* which two is not said */
            CHECK(strlen(tabs(sql)) >= strlen("['Ulm','Bonn']"));
            continue;
        }
        CHECK_STR(cases[i][1], tabs(sql));
    }
    empty();
}

TEST(asql, formats)
{
    fill();
    CHECK_STR(
        "{\"meta\":[{\"name\":\"town\",\"type\":\"String\"},{\"name\":\"n\",\"type\":\"UInt64\"},"
        "{\"name\":\"avg(double1)\",\"type\":\"Float64\"},{\"name\":\"t\",\"type\":\"DateTime\"}],"
        "\"data\":[{\"town\":\"Bonn\",\"n\":\"40\",\"avg(double1)\":58.5,\"t\":\"2025-12-31 "
        "22:00:00\"}],"
        "\"rows\":1,\"rows_before_limit_at_least\":3}\n",
        ask("SELECT blob1 AS town, count() AS n, avg(double1), min(timestamp) AS t FROM visits "
            "GROUP BY town ORDER BY town LIMIT 1;"));
    CHECK_STR("{\"blob1\":\"Bonn\",\"_sample_interval\":1}\n{\"blob1\":\"Kiel\",\"_sample_"
              "interval\":1}\n",
              ask("select blob1, _sample_interval from visits limit 2 format JSONEachRow"));
    CHECK_STR("empty-one\nvisits\n", ask("SHOW TABLES FORMAT TabSeparated"));
    CHECK_STR("Etc/UTC\n", ask("SHOW TIMEZONE FORMAT TabSeparated"));
    ask("SELECT * FROM visits LIMIT 1 FORMAT JSONEachRow");
    CHECK(strstr(answer, "\"blob20\":\"\"") && strstr(answer, "\"double20\":0"));
    empty();
}

TEST(asql, wrong_queries_are_told_what_is_wrong)
{
    fill();
    static const char *const cases[][2] = {
        {"", "SELECT or SHOW is expected"},
        {"SELECT", "line 1, column 7: an expression is expected"},
        {"SELECT 1 +\n  FROM visits", "line 2, column 3: an expression is expected"},
        {"SELECT 'abc", "this text does not end"},
        {"SELECT 1 FROM visits WHERE", "an expression is expected"},
        {"SELECT nothing FROM visits", "there is no column nothing"},
        {"SELECT sleep(1)", "there is no function sleep()"},
        {"SELECT count() FROM none", "there is no dataset \"none\""},
        {"SELECT count() FROM \"../../etc\"", "there is no dataset"},
        {"SELECT blob1, count() FROM visits", "the column blob1 is neither in GROUP BY"},
        {"SELECT blob1 FROM visits WHERE count() > 1", "WHERE: the aggregate function count()"},
        {"SELECT sum(blob1) FROM visits", "sum: argument 1 does not have a type that fits"},
        {"SELECT blob1 + 1 FROM visits", "+: the arguments do not have types that fit"},
        {"SELECT blob1 = 1 FROM visits", "=: the arguments do not have types that fit"},
        {"SELECT lower()", "lower: an argument is missing"},
        {"SELECT lower('a', 'b')", "lower: there are too many arguments"},
        {"SELECT 1 FROM visits LIMIT x", "a whole number is expected"},
        {"SELECT 1 FORMAT CSV", "the format is one of"},
        {"SELECT 1 SELECT 2", "the query should end here"},
        {"SELECT now() - INTERVAL '1' FORTNIGHT", "a unit of time is expected"},
        {"SELECT INTERVAL x DAY", "INTERVAL is followed by a whole number"},
        {"SELECT 1 FROM a JOIN b", "the query should end here"},
        {"DROP TABLE visits", "SELECT or SHOW is expected"},
        {"SELECT quantileWeighted(2)(double1, 1) FROM visits",
         "the quantile is a number from 0 to 1"},
        {"SELECT toDateTime('2022-12-01 16:17:00', 'America/New_York')", "the only time zone here"},
        {"SELECT ((((1", "')' is expected"},
        {"SELECT 1 FROM visits GROUP BY 9", "GROUP BY: SELECT has no item 9"},
        {"SELECT b + 1 AS a, a + 1 AS b", "there is no column"},
        {"SELECT 1 \xff", "this character has no meaning here"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (!strstr(ask(cases[i][0]), cases[i][1]))
            printf("%s -> %s\n", cases[i][0], answer);
        CHECK(strstr(answer, cases[i][1]) != NULL);
    }
    empty();
}

/* Q2: nothing that a text can say overflows the stack or the memory. */
TEST(asql, large_queries_are_refused)
{
    fill();
    struct cn_buf sql = {0};
    cn_buf_append_str(&sql, "SELECT ");
    for (int i = 0; i < 10000; i++)
        cn_buf_append_byte(&sql, '(');
    CHECK(strstr(ask(cn_buf_text(&sql)), "nested too deeply") != NULL);
    cn_buf_clear(&sql);
    cn_buf_append_str(&sql, "SELECT 1");
    for (int i = 0; i < 10000; i++)
        cn_buf_append_str(&sql, "+1");
    CHECK(strstr(ask(cn_buf_text(&sql)), "too many parts") != NULL);
    cn_buf_clear(&sql);
    cn_buf_append_str(&sql, "SELECT double1 + double1 AS a0");
    for (int i = 1; i < 60; i++)
        cn_buf_printf(&sql, ", a%d + a%d AS a%d", i - 1, i - 1, i);
    cn_buf_append_str(&sql, " FROM visits");
    CHECK(strstr(ask(cn_buf_text(&sql)), "too complex") != NULL);
    cn_buf_clear(&sql);
    cn_buf_append_str(&sql, "SELECT ");
    for (int i = 0; i < 24; i++)
        cn_buf_append_str(&sql, "concat('aa', ");
    cn_buf_append_str(&sql, "blob1");
    for (int i = 0; i < 24; i++)
        cn_buf_append_str(&sql, ")");
    cn_buf_append_str(&sql, " FROM visits LIMIT 1 FORMAT TabSeparated");
    CHECK(strstr(ask(cn_buf_text(&sql)), "aaBonn") != NULL);
    cn_buf_fini(&sql);
    empty();
}
