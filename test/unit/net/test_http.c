/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of HTTP: tokens, values, lists, reasons, limits. */
#include "net/http.h"

#include <string.h>

#include "test/lib/test.h"

TEST(http, every_byte_is_in_a_token_or_a_value_as_rfc_9110_says)
{
    for (unsigned c = 0; c < 256; c++) {
        char text[3] = {'a', (char)c, 'z'};
        bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        CHECK_INT(letter || (c && strchr("!#$%&'*+-.^_`|~", (int)c)), cn_http_token_valid(text, 3));
        CHECK_INT(c == '\t' || (c >= 0x20 && c != 0x7f), cn_http_value_valid(text, 3));
    }
    CHECK(!cn_http_token_valid("", 0));
    CHECK(cn_http_value_valid("", 0));
}

TEST(http, names_are_equal_whatever_their_case_in_ascii_alone)
{
    CHECK(cn_http_name_equal("Content-TYPE", 12, "content-type", 12));
    CHECK(!cn_http_name_equal("Content-TYPE", 11, "content-type", 12));
    CHECK(!cn_http_name_equal("content_type", 12, "content-type", 12));
    CHECK(!cn_http_name_equal("@", 1, "`", 1)); /* 0x20 apart, and no letters */
    CHECK(!cn_http_name_equal("[", 1, "{", 1));
    CHECK(!cn_http_name_equal("\xc4", 1, "\xe4", 1));
}

TEST(http, a_list_has_an_item_only_as_a_whole)
{
    static const struct {
        const char *list;
        bool has;
    } cases[] = {
        {"close", true},   {"keep-alive, Close", true}, {" close\t,x", true}, {",,close,,", true},
        {"closed", false}, {"not-close", false},        {"close;q=1", false}, {"", false},
        {",", false},      {"clo,se", false},           {"x, close", true},   {"c l o s e", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK_INT(cases[i].has, cn_http_list_has(cases[i].list, strlen(cases[i].list), "close"));
    CHECK(!cn_http_list_has("close", 4, "close")); /* not past its end */
}

TEST(http, every_status_has_a_reason)
{
    CHECK_STR("OK", cn_http_reason(200));
    CHECK_STR("Content Too Large", cn_http_reason(413));
    CHECK_STR("Unknown", cn_http_reason(299));
    for (int status = -1; status < 1001; status++)
        CHECK(cn_http_value_valid(cn_http_reason(status), strlen(cn_http_reason(status))));
}

/* docs/reference/limits.md */
TEST(http, the_defaults_are_those_that_are_documented)
{
    const struct cn_http_limits *limits = &cn_http_limits_default;
    CHECK_INT(16 * 1024, limits->target_size_max);
    CHECK_INT(128 * 1024, limits->head_size_max);
    CHECK_INT(256, limits->header_count_max);
    CHECK_INT(100 * 1024 * 1024, limits->body_size_max);
    CHECK_INT(10000, limits->connection_count_max);
    CHECK_INT(10000, limits->head_timeout_ms);
    CHECK_INT(75000, limits->idle_timeout_ms);
    CHECK_INT(60000, limits->body_timeout_ms);
    CHECK_INT(60000, limits->write_timeout_ms);
}
