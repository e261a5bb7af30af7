/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller asks of the client: URLs and headers that may go out, and those that may not. */
#include "net/client_params.h"

#include <string.h>

#include "base/mem.h"
#include "net/decode.h"
#include "test/lib/test.h"

static const char *refusal(const char *url)
{
    static struct cn_err err;
    CURLU *parsed;
    char *origin;
    CHECK_INT(CN_EINVALID, cn_client_params_url(url, &parsed, &origin, &err));
    return err.text;
}

TEST(client_params, the_origin_is_said_without_path_and_with_its_port)
{
    static const struct {
        const char *url, *origin;
    } cases[] = {{"http://a.test/secret?token=1", "http://a.test:80"},
                 {"https://a.test", "https://a.test:443"},
                 {"https://a.test:8443/x", "https://a.test:8443"},
                 {"http://[::1]:9/", "http://[::1]:9"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CURLU *url;
        char *origin;
        CHECK_INT(0, cn_client_params_url(cases[i].url, &url, &origin, NULL));
        CHECK_STR(cases[i].origin, origin);
        cn_free(origin);
        curl_url_cleanup(url);
    }
}

TEST(client_params, other_schemes_passwords_and_nonsense_are_refused)
{
    CHECK_STR("a URL with a user name or password cannot be fetched",
              refusal("http://me:pass@a.test/"));
    CHECK_STR("the scheme \"file\" cannot be fetched, only http and https can",
              refusal("file:///etc/passwd"));
    CHECK(strstr(refusal("gopher://a.test/"), "gopher"));
    CHECK(strstr(refusal("ftp://a.test/"), "ftp"));
    CHECK(strstr(refusal(""), "not a usable URL"));
    CHECK(strstr(refusal("http://"), "URL"));
    CHECK(strstr(refusal("http://a.test:99999/"), "not a usable URL"));
    CHECK(strstr(refusal("http://a b.test/"), "not a usable URL"));
}

static struct cn_client_header field(const char *name, const char *value)
{
    return (struct cn_client_header){
        .name = name, .name_length = strlen(name), .value = value, .value_length = strlen(value)};
}

static bool has(const struct curl_slist *list, const char *line)
{
    for (; list; list = list->next)
        if (strcmp(list->data, line) == 0)
            return true;
    return false;
}

TEST(client_params, what_frames_the_message_is_not_the_callers_to_say)
{
    const struct cn_client_header headers[] = {field("X-Own", "1"),
                                               field("Content-Length", "5"),
                                               field("transfer-encoding", "x"),
                                               field("CONNECTION", "close"),
                                               field("keep-alive", "1"),
                                               field("upgrade", "h2c"),
                                               field("te", "trailers"),
                                               field("trailer", "x"),
                                               field("http2-settings", "x"),
                                               field("proxy-connection", "x"),
                                               field("Empty", "")};
    struct cn_client_params params = {.headers = headers,
                                      .header_count = sizeof(headers) / sizeof(headers[0])};
    struct curl_slist *list, *each;
    unsigned count = 0;
    CHECK_INT(0, cn_client_params_headers(&params, &list, NULL));
    CHECK(has(list, "X-Own: 1"));
    CHECK(has(list, "Empty;")); /* curl's way to write an empty value */
    CHECK(has(list, "Accept:") && has(list, "Expect:") && has(list, "Content-Type:"));
    for (each = list; each; each = each->next)
        count++;
    CHECK_INT(5, count);
    curl_slist_free_all(list);
}

TEST(client_params, what_the_caller_gives_is_not_taken_away_and_codings_are_asked_for_once)
{
    const struct cn_client_header headers[] = {field("aCCept", "a/b"),
                                               field("content-type", "c/d")};
    struct cn_client_params params = {
        .headers = headers, .header_count = 2, .accept_encoding = true};
    struct curl_slist *list;
    CHECK_INT(0, cn_client_params_headers(&params, &list, NULL));
    CHECK(has(list, "aCCept: a/b") && !has(list, "Accept:"));
    CHECK(has(list, "content-type: c/d") && !has(list, "Content-Type:"));
    CHECK(has(list, "Accept-Encoding: " CN_DECODE_ACCEPT));
    curl_slist_free_all(list);
    const struct cn_client_header own = field("Accept-Encoding", "identity");
    params.headers = &own;
    params.header_count = 1;
    CHECK_INT(0, cn_client_params_headers(&params, &list, NULL));
    CHECK_STR("Accept-Encoding: identity", list->data);
    for (struct curl_slist *each = list->next; each; each = each->next)
        CHECK(!strstr(each->data, "gzip"));
    curl_slist_free_all(list);
}

TEST(client_params, no_name_or_value_can_begin_a_line_of_its_own)
{
    static const struct {
        const char *name, *value;
        size_t value_length;
    } bad[] = {{"", "x", 1},         {"a b", "x", 1},       {"a:", "x", 1},   {"a\r\nB", "x", 1},
               {"\xc3\xbc", "x", 1}, {"a", "x\r\nB: c", 7}, {"a", "x\ny", 3}, {"a", "x\0y", 3}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct cn_client_header header = field(bad[i].name, bad[i].value);
        header.value_length = bad[i].value_length;
        struct cn_client_params params = {.headers = &header, .header_count = 1};
        struct curl_slist *list;
        struct cn_err err;
        CHECK_INT(CN_EINVALID, cn_client_params_headers(&params, &list, &err));
        CHECK(strstr(err.text, "header"));
    }
}
