/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration as JSON with comments: what is read, and where a mistake is said to be. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "config/confnode.h"
#include "test/lib/conftest.h"
#include "test/lib/test.h"

/* The same as plain JSON, or the sentence of the error. */
static const char *read_text(const char *text, size_t size)
{
    struct cn_err err = {0};
    struct cn_confnode *root = cn_jsonc_parse("w.jsonc", text, size, &err);
    return conftest_text(root, &err);
}

static const char *read_json(const char *text)
{
    return read_text(text, strlen(text));
}

TEST(jsonc, comments_and_commas_at_the_end_are_fine)
{
    CHECK_STR("{\"a\":[1,true,null],\"b\":\"x // no comment\"}",
              read_json("// first\n{ \"a\": [1, true, null,], /* in\n between */ \"b\": \"x // no "
                        "comment\", } // last"));
    CHECK_STR("{}", read_json("\xef\xbb\xbf{}")); /* a byte order mark */
}

TEST(jsonc, strings_with_every_escape)
{
    CHECK_STR("[\"\\\"\\\\/\\u0008\\u000c\\n\\u000d\\u0009\"]",
              read_json("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"));
    CHECK_STR("[\"\xe2\x82\xac \xf0\x9f\x98\x80\"]", read_json("[\"\\u20ac \\ud83d\\ude00\"]"));
}

static void check_refused(const char *text, const char *place)
{
    const char *said = read_json(text);
    if (strncmp(said, "w.jsonc:", 8) != 0 || !strstr(said, place))
        test_fail(__FILE__, __LINE__, "%s: said %s, not %s", text, said, place);
}

TEST(jsonc, a_mistake_is_named_with_its_line)
{
    check_refused("", "w.jsonc:1");
    check_refused("{\n  \"a\": 1\n  \"b\": 2\n}", "w.jsonc:3");
    check_refused("{\"a\": \n\n oops}", "w.jsonc:3");
    check_refused("{\"a\": 1", "w.jsonc:1");
    check_refused("{a: 1}", "w.jsonc:1");
    check_refused("[1 2]", "w.jsonc:1");
    check_refused("[01]", "w.jsonc:1");
    check_refused("[+1]", "w.jsonc:1");
    check_refused("[1.]", "w.jsonc:1");
    check_refused("[.5]", "w.jsonc:1");
    check_refused("[\"\\x41\"]", "escape");
    check_refused("[\"\\ud83d\"]", "w.jsonc:1");
    check_refused("[\"a\nb\"]", "w.jsonc:1");
    check_refused("[\"a", "w.jsonc:1");
    check_refused("{} {}", "w.jsonc:1");
    check_refused("/* never ended", "w.jsonc:1");
    check_refused("{\"a\": 1, \"a\": 2}", "a");
}

TEST(jsonc, bytes_that_are_no_utf_8_and_nesting_without_end_are_refused)
{
    CHECK(strstr(read_text("{\"a\": \"\xff\"}", 11), "w.jsonc"));
    CHECK(strncmp(read_text("{}\0", 3), "w.jsonc:1", 9) == 0);
    enum { DEEP = 100000 };
    char *deep = cn_alloc(DEEP);
    memset(deep, '[', DEEP);
    CHECK(strncmp(read_text(deep, DEEP), "w.jsonc:1", 9) == 0);
    cn_free(deep);
}
