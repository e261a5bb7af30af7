/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of servers have one form (N3), and tokens are kept where only their owner reads (N1).
 */
#include "cli/logins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "test/lib/test.h"

static void check_normal(const char *want, const char *given)
{
    struct cn_err err = {0};
    char *text = cn_logins_normal(given, &err);
    CHECK_STR(want, text ? text : "");
    CHECK((text == NULL) == (err.code != 0));
    cn_free(text);
}

TEST(logins_normal, is_one_form_of_an_address)
{
    unsetenv("CAIRN_PLAIN_HTTP");
    check_normal("https://host:8788", "https://host:8788");
    check_normal("https://host:8788", "HTTPS://Host:8788/");
    check_normal("https://host", "https://host/client/v4/");
    check_normal("http://127.0.0.1:1", "http://127.0.0.1:1//");
    check_normal("http://[::1]:8788", "http://[::1]:8788");
    check_normal("http://localhost:8788", "http://LOCALHOST:8788/client/v4");
}

TEST(logins_normal, refuses_what_a_token_must_not_go_to)
{
    static const char *const bad[] = {"",
                                      "host:8788",
                                      "ftp://host",
                                      "https://",
                                      "https://user@host",
                                      "https://host/path",
                                      "https://host?x",
                                      "https://host\\@other",
                                      "https://host name",
                                      "https://host\r\nX: y",
                                      "http://host:8788",
                                      "http://127.0.0.1.example.com",
                                      "http://localhost.example.com",
                                      "http://[::2]:1"};
    unsetenv("CAIRN_PLAIN_HTTP");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        check_normal("", bad[i]);
    setenv("CAIRN_PLAIN_HTTP", "1", 1);
    check_normal("http://host:8788", "http://host:8788");
    unsetenv("CAIRN_PLAIN_HTTP");
}

TEST(logins_set, keeps_the_newest_last_and_forgets)
{
    char dir[] = "/tmp/cairn-logins-XXXXXX";
    struct cn_err err = {0};
    struct stat info;
    CHECK(mkdtemp(dir));
    setenv("XDG_CONFIG_HOME", dir, 1);
    CHECK(!cn_logins_last(&err) && !err.code);
    CHECK_INT(CN_ENOTFOUND, cn_logins_set("https://a", NULL, &err));
    CHECK_INT(0, cn_logins_set("https://a", "one", &err));
    CHECK_INT(0, cn_logins_set("https://b", "two", &err));
    CHECK_INT(0, cn_logins_set("https://a", "three", &err));
    char *last = cn_logins_last(&err), *token = cn_logins_token("https://a", &err);
    CHECK_STR("https://a", last);
    CHECK_STR("three", token);
    cn_free(last);
    cn_free(token);
    char *path = cn_logins_path();
    CHECK_INT(0, stat(path, &info));
    CHECK_INT(0600, info.st_mode & 0777);
    CHECK_INT(0, cn_logins_set("https://a", NULL, &err));
    CHECK(!cn_logins_token("https://a", &err));
    CHECK_INT(0, chmod(path, 0640));
    err = (struct cn_err){0};
    CHECK(!cn_logins_token("https://b", &err));
    CHECK_INT(CN_EDENIED, err.code);
    remove(path);
    cn_free(path);
    char *folder = cn_sprintf("%s/cairn", dir);
    remove(folder);
    remove(dir);
    cn_free(folder);
}
