/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of recordings: the three forms, what of them is sent again, and lines of somebody else. */
#include "cli/recording.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "test/lib/test.h"

static int parse(struct cn_record *record, const char *line)
{
    struct cn_err err = {0};
    int rc = cn_record_parse(record, line, strlen(line), &err);
    CHECK(rc >= 0 || (err.code == rc && err.text[0]));
    if (rc <= 0) /* nothing is left to free */
        CHECK(!record->method && !record->target && !record->host && !record->headers &&
              !record->body.data);
    return rc;
}

static const char *header(const struct cn_record *record, const char *name)
{
    for (size_t i = 0; i < record->header_count; i++)
        if (strcmp(record->headers[i].name, name) == 0)
            return record->headers[i].value;
    return NULL;
}

TEST(recording, a_line_of_cairn_tail)
{
    struct cn_record record;
    CHECK_INT(1, parse(&record, "{\"event\":\"request\",\"method\":\"POST\",\"host\":\"h.example\","
                                "\"target\":\"/a?b=1\",\"status\":201,\"time\":1700000000123}"));
    CHECK_STR("POST", record.method);
    CHECK_STR("h.example", record.host);
    CHECK_STR("/a?b=1", record.target);
    CHECK_INT(201, record.status);
    CHECK_INT(1700000000123, record.time_ms);
    CHECK(record.body_missing && !record.header_count && !record.body.size);
    cn_record_fini(&record);
    /* As the server writes it. */
    CHECK_INT(1, parse(&record, "{\"time\":\"2026-01-31T12:00:00.000Z\",\"level\":\"info\","
                                "\"event\":\"request\",\"method\":\"GET\",\"target\":\"/\","
                                "\"status\":404,\"durationMs\":2.1}"));
    CHECK_INT(404, record.status);
    cn_record_fini(&record);
    CHECK_INT(1, parse(&record, "{\"event\":\"request\",\"method\":\"GET\",\"target\":\"/\","
                                "\"status\":\"404\"}")); /* a text is fine too */
    CHECK_INT(404, record.status);
    cn_record_fini(&record);
    CHECK_INT(1, parse(&record, "{\"event\":\"request\",\"method\":\"GET\",\"target\":\"/\","
                                "\"host\":\"\"}"));
    CHECK(!record.host && !record.body_missing && record.status == 0 && record.time_ms == -1);
    cn_record_fini(&record);
    cn_record_fini(&record); /* what is empty may be freed again */
}

TEST(recording, a_trace_of_wrangler_tail)
{
    struct cn_record record;
    CHECK_INT(1, parse(&record,
                       "{\"event\":{\"request\":{\"url\":\"https://h.example:8/p?q#f\",\"method\":"
                       "\"PUT\",\"headers\":{\"X-A\":\"1\",\"Host\":\"other\",\"content-length\":"
                       "\"0\",\"n\":7}},\"response\":{\"status\":404}},\"eventTimestamp\":5.5}"));
    CHECK_STR("h.example:8", record.host);
    CHECK_STR("/p?q", record.target);
    CHECK_STR("PUT", record.method);
    CHECK_INT(1, record.header_count);
    CHECK_STR("1", header(&record, "X-A"));
    CHECK(!record.body_missing); /* its length says so */
    CHECK_INT(404, record.status);
    CHECK_INT(5, record.time_ms);
    cn_record_fini(&record);
    /* A method that has no body had one all the same. */
    CHECK_INT(1, parse(&record, "{\"event\":{\"request\":{\"url\":\"https://h/\",\"headers\":"
                                "{\"Transfer-Encoding\":\"chunked\"}}}}"));
    CHECK_STR("GET", record.method);
    CHECK(record.body_missing && !record.header_count);
    cn_record_fini(&record);
    CHECK_INT(0, parse(&record, "{\"event\":{\"scheduledTime\":1}}"));
    CHECK_INT(0, parse(&record, "{\"event\":{\"request\":{\"method\":\"GET\"}}}"));
    CHECK_INT(0, parse(&record, "{\"event\":{\"request\":7}}"));
}

TEST(recording, a_plain_line_and_its_body)
{
    struct cn_record record;
    CHECK_INT(1, parse(&record, "{\"method\":\"POST\",\"url\":\"/x\",\"headers\":[[\"a\",\"1\"],"
                                "[\"a\",\"2\"],[\"Connection\",\"close\"],[\"b\"],7,[1,2]],"
                                "\"body\":\"t\\u0000x\",\"time\":\"2023-11-14T22:13:20Z\"}"));
    CHECK(!record.host && !record.body_missing);
    CHECK_INT(2, record.header_count);
    CHECK_INT(3, record.body.size);
    CHECK(memcmp(record.body.data, "t\0x", 3) == 0);
    CHECK_INT(1700000000000, record.time_ms);
    cn_record_fini(&record);
    CHECK_INT(1, parse(&record, "{\"url\":\"/x\",\"bodyBase64\":\"AP+A\"}"));
    CHECK_STR("GET", record.method);
    CHECK(record.body.size == 3 && memcmp(record.body.data, "\0\xff\x80", 3) == 0);
    cn_record_fini(&record);
    CHECK_INT(1, parse(&record, "{\"url\":\"/x\",\"body\":{\"a\":[1,null]}}"));
    CHECK_STR("{\"a\":[1,null]}", cn_buf_text(&record.body));
    cn_record_fini(&record);
    CHECK_INT(1, parse(&record, "{\"url\":\"/x\",\"body\":null}"));
    CHECK_INT(0, record.body.size);
    cn_record_fini(&record);
    CHECK_INT(CN_EINVALID, parse(&record, "{\"url\":\"/x\",\"bodyBase64\":\"A%\"}"));
    CHECK_INT(CN_EINVALID, parse(&record, "{\"url\":\"/x\",\"bodyBase64\":7}"));
}

TEST(recording, a_url_is_a_host_and_a_target_that_begins_with_a_slash)
{
    static const char *const rows[][3] = {
        {"https://h/a/b?c", "h", "/a/b?c"},
        {"https://h", "h", "/"},
        {"https://h?q", "h", "/?q"},
        {"https://h#f", "h", "/"},
        {"https://h/#f?x", "h", "/"},
        {"/a?u=http://x/", NULL, "/a?u=http://x/"},
        {"?q", NULL, "/?q"},
        {"", NULL, "/"},
        {"https://h/http://x", "h", "/http://x"},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(rows); i++) {
        struct cn_record record;
        char line[256];
        snprintf(line, sizeof(line), "{\"url\":\"%s\"}", rows[i][0]);
        CHECK_INT(1, parse(&record, line));
        CHECK_STR(rows[i][2], record.target);
        CHECK(!record.host == !rows[i][1]);
        if (rows[i][1])
            CHECK_STR(rows[i][1], record.host);
        cn_record_fini(&record);
    }
    struct cn_record record;
    CHECK_INT(CN_EINVALID, parse(&record, "{\"url\":\"h.example/a\"}"));
    CHECK_INT(CN_EINVALID,
              parse(&record, "{\"event\":\"request\",\"method\":\"GET\",\"target\":\"*\"}"));
    CHECK_INT(CN_EINVALID, parse(&record, "{\"event\":{\"request\":{\"url\":\"a:b\"}}}"));
}

TEST(recording, numbers_that_are_no_times_and_no_statuses_count_as_not_recorded)
{
    static const char *const times[] = {"-1",    "-1e300", "1e300", "9223372036854775807",
                                        "-0.01", "true",   "\"\"",  "\"yesterday\""};
    for (size_t i = 0; i < CN_ARRAY_COUNT(times); i++) {
        struct cn_record record;
        char line[128];
        snprintf(line, sizeof(line), "{\"url\":\"/\",\"time\":%s,\"status\":200}", times[i]);
        CHECK_INT(1, parse(&record, line));
        CHECK_INT(-1, record.time_ms);
        CHECK_INT(200, record.status);
        cn_record_fini(&record);
    }
    static const char *const statuses[] = {"0",        "99",      "1000",   "-200", "4294967496",
                                           "\"2000\"", "\"+20\"", "\"ok\"", "2e2"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(statuses); i++) {
        struct cn_record record;
        char line[128];
        snprintf(line, sizeof(line), "{\"url\":\"/\",\"time\":0,\"status\":%s}", statuses[i]);
        CHECK_INT(1, parse(&record, line));
        CHECK_INT(0, record.status);
        CHECK_INT(0, record.time_ms);
        cn_record_fini(&record);
    }
}

TEST(recording, other_lines_are_no_requests_and_broken_ones_are_refused)
{
    static const char *const others[] = {
        "{}",
        "[]",
        "7",
        "null",
        "{\"event\":\"message\",\"method\":\"GET\",\"target\":\"/\"}",
        "{\"event\":7,\"url\":\"/\"}",
        "{\"event\":null,\"url\":\"/\"}",
        "{\"url\":7}"};
    static const char *const broken[] = {"",
                                         " ",
                                         "{",
                                         "{\"url\":\"/\"} x",
                                         "{\"url\":\"/\",\"url\":\"/\"}",
                                         "{\"event\":\"request\",\"method\":\"GET\"}",
                                         "{\"event\":\"request\",\"target\":\"/\"}"};
    struct cn_record record;
    for (size_t i = 0; i < CN_ARRAY_COUNT(others); i++)
        CHECK_INT(0, parse(&record, others[i]));
    for (size_t i = 0; i < CN_ARRAY_COUNT(broken); i++)
        CHECK_INT(CN_EINVALID, parse(&record, broken[i]));
}

TEST(recording, headers_have_a_bound)
{
    struct cn_record record;
    struct cn_buf line = {0};
    cn_buf_append_str(&line, "{\"url\":\"/\",\"headers\":[");
    for (int i = 0; i < 300; i++)
        cn_buf_printf(&line, "%s[\"a%d\",\"1\"]", i ? "," : "", i);
    cn_buf_append_str(&line, "]}");
    CHECK_INT(1, parse(&record, cn_buf_text(&line)));
    CHECK_INT(256, record.header_count);
    cn_record_fini(&record);
    cn_buf_fini(&line);
}
