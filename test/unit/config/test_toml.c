/* SPDX-License-Identifier: Apache-2.0 */
/* TOML and JSONC give the same tree, and refuse what their standards refuse
 * with a line and a column. */
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/confnode.h"
#include "test/lib/test.h"

typedef struct cn_confnode *(*parse_fn)(const char *, const char *, size_t, struct cn_err *);

static void check_json(parse_fn parse, const char *text, const char *want)
{
    struct cn_err err = {0};
    struct cn_confnode *root = parse("f", text, strlen(text), &err);
    if (!root)
        test_fail(__FILE__, __LINE__, "%s\n--- %s", text, err.text);
    struct cn_buf out = {0};
    cn_confnode_write_json(root, &out);
    CHECK_STR(want, cn_buf_text(&out));
    cn_buf_fini(&out);
    cn_confnode_free(root);
}

static void check_refused(parse_fn parse, const char *text, const char *place)
{
    struct cn_err err = {0};
    struct cn_confnode *root = parse("f", text, strlen(text), &err);
    if (root)
        test_fail(__FILE__, __LINE__, "accepted: %s", text);
    if (strncmp(err.text, place, strlen(place)) != 0)
        test_fail(__FILE__, __LINE__, "%s\n--- want %s, got %s", text, place, err.text);
}

TEST(toml, reads_scalars)
{
    check_json(cn_toml_parse, "a = 1\nb=+1_000\nc = 0xdead_BEEF\nd = 0o17\ne = 0b11\nf = -0\n",
               "{\"a\":1,\"b\":1000,\"c\":3735928559,\"d\":15,\"e\":3,\"f\":0}");
    check_json(cn_toml_parse, "a = 1.5\nb = 1e3\nc = 6.25E-2\nd = 9_224.5\n",
               "{\"a\":1.5,\"b\":1000,\"c\":0.0625,\"d\":9224.5}");
    check_json(cn_toml_parse, "a = true\nb = false # no\n", "{\"a\":true,\"b\":false}");
    check_json(cn_toml_parse, "a = inf\nb = -nan\n", "{\"a\":null,\"b\":null}");
    check_json(cn_toml_parse,
               "a = 1979-05-27T07:32:00Z\nb = 1979-05-27 07:32:00.5-07:00\nc = 1979-05-27\n"
               "d = 07:32:00\n",
               "{\"a\":\"1979-05-27T07:32:00Z\",\"b\":\"1979-05-27 "
               "07:32:00.5-07:00\",\"c\":\"1979-05-27\",\"d\":\"07:32:00\"}");
}

TEST(toml, reads_strings)
{
    check_json(cn_toml_parse, "a = \"x\\t\\u00e9\\U0001F600\\\"\"\n",
               "{\"a\":\"x\\u0009\xc3\xa9\xf0\x9f\x98\x80\\\"\"}");
    check_json(cn_toml_parse, "a = 'C:\\n'\n", "{\"a\":\"C:\\\\n\"}");
    check_json(cn_toml_parse, "a = \"\"\"\none\r\ntwo \\\n   \n   three\"\"\"\"\"\n",
               "{\"a\":\"one\\ntwo three\\\"\\\"\"}");
    check_json(cn_toml_parse, "a = '''\n'x'\\'''\n", "{\"a\":\"'x'\\\\\"}");
    check_json(cn_toml_parse, "a = \"\"\nb = ''\nc = \"\"\"\"\"\"",
               "{\"a\":\"\",\"b\":\"\",\"c\":\"\"}");
}

TEST(toml, reads_tables_and_arrays)
{
    check_json(cn_toml_parse, "a.b.c = 1\na.\"d e\" = 2\n[x.y]\nz = 3\n[x]\nw = 4\n",
               "{\"a\":{\"b\":{\"c\":1},\"d e\":2},\"x\":{\"y\":{\"z\":3},\"w\":4}}");
    check_json(cn_toml_parse, "a = [ 1, [2, 3], # c\n {b = 4, c.d = 5},\n]\n",
               "{\"a\":[1,[2,3],{\"b\":4,\"c\":{\"d\":5}}]}");
    check_json(cn_toml_parse, "[[k]]\nn = 1\n[k.sub]\nx = 1\n[[k]]\nn = 2\n[[k.t]]\n[[k.t]]\n",
               "{\"k\":[{\"n\":1,\"sub\":{\"x\":1}},{\"n\":2,\"t\":[{},{}]}]}");
    check_json(cn_toml_parse, "[fruit]\napple.color = 1\n[fruit.apple.texture]\ns = 1\n",
               "{\"fruit\":{\"apple\":{\"color\":1,\"texture\":{\"s\":1}}}}");
    check_json(cn_toml_parse,
               "\xef\xbb\xbf"
               "3.14 = 1\r\n",
               "{\"3\":{\"14\":1}}");
}

TEST(toml, refuses_what_the_standard_refuses)
{
    static const char *const cases[][2] = {
        {"a = 1\na = 2\n", "f:2:1: \"a\" is already defined on line 1"},
        {"[a]\n[a]\n", "f:2:2: \"a\" is already defined on line 1"},
        {"a.b = 1\n[a]\n", "f:2:2: "},
        {"[a]\nb.c = 1\n[a.b]\n", "f:3:4: "},
        {"[a.b]\n[a]\nb.c = 1\n", "f:3:1: "},
        {"a = {b = 1}\na.c = 2\n", "f:2:1: "},
        {"a = {b = 1}\n[a.c]\n", "f:2:2: "},
        {"a = [1]\n[[a]]\n", "f:2:3: "},
        {"[[a]]\n[a]\n", "f:2:2: "},
        {"[a]\n[[a]]\n", "f:2:3: "},
        {"a = {b = 1,}\n", "f:1:12: expected a key"},
        {"a = {b = 1\n}\n", "f:1:11: "},
        {"a = 01\n", "f:1:5: "},
        {"a = 1__0\n", "f:1:5: "},
        {"a = 1.\n", "f:1:5: "},
        {"a = .5\n", "f:1:5: "},
        {"a = 0x\n", "f:1:5: "},
        {"a = 9223372036854775808\n", "f:1:5: "},
        {"a = +0xf\n", "f:1:5: "},
        {"a = 1979-02-29\n", "f:1:5: "},
        {"a = 25:00:00\n", "f:1:5: "},
        {"a = \"x\n", "f:1:5: this string is never closed"},
        {"a = \"\\q\"\n", "f:1:7: unknown escape"},
        {"a = \"\\ud800\"\n", "f:1:12: "},
        {"a = '''x\n", "f:1:5: this string is never closed"},
        {"a = [1 2]\n", "f:1:8: expected ',' or ']'"},
        {"a = \n", "f:1:5: expected a value"},
        {"a 1\n", "f:1:3: expected '='"},
        {"= 1\n", "f:1:1: expected a key"},
        {"[a\n", "f:1:3: expected ']'"},
        {"[[a]\n", "f:1:4: expected ']]'"},
        {"a = 1 b = 2\n", "f:1:7: expected the end of the line"},
        {"a = nope\n", "f:1:5: \"nope\" is no number"},
        {"# \x01\n", "f:1:3: "},
        {"a = \"\xff\"", "f:1: the file is not valid UTF-8"},
        {"a = 1\r", "f:1:6: expected the end"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_refused(cn_toml_parse, cases[i][0], cases[i][1]);
}

TEST(toml, bounds_nesting)
{
    struct cn_buf deep = {0};
    cn_buf_append_str(&deep, "a = ");
    for (int i = 0; i < 5000; i++)
        cn_buf_append_byte(&deep, '[');
    check_refused(cn_toml_parse, cn_buf_text(&deep), "f:1:68: nested deeper than 64 levels");
    cn_buf_consume(&deep, 4);
    check_refused(cn_jsonc_parse, cn_buf_text(&deep), "f:1:65: nested deeper than 64 levels");
    cn_buf_fini(&deep);
}

TEST(toml, finds_keys_in_a_large_table)
{
    struct cn_buf text = {0};
    for (int i = 0; i < 1000; i++)
        cn_buf_printf(&text, "k%d = %d\n", i, i);
    struct cn_err err = {0};
    struct cn_confnode *root = cn_toml_parse("f", cn_buf_text(&text), text.size, &err);
    CHECK(root);
    CHECK_INT(1000, root->count);
    CHECK_INT(777, cn_confnode_find(root, "k777")->integer);
    CHECK_INT(778, cn_confnode_find(root, "k777")->line);
    CHECK(!cn_confnode_find(root, "k1000"));
    cn_confnode_free(root);
    cn_buf_fini(&text);
}

TEST(jsonc, reads_comments_and_trailing_commas)
{
    check_json(cn_jsonc_parse,
               "// head\n{ \"a\" : [1, 2.5, /* in */ -3e2,], \"b\": {\"c\": null,}, // x\n"
               "\"d\": \"\\u00e9\\ud83d\\ude00\\n\", \"e\": true, }\n/* end */",
               "{\"a\":[1,2.5,-300],\"b\":{\"c\":null},\"d\":\"\xc3\xa9\xf0\x9f\x98\x80\\n\","
               "\"e\":true}");
    check_json(cn_jsonc_parse, "[]", "[]");
    check_json(cn_jsonc_parse, "12345678901234567890", "1.2345678901234567e+19");
}

TEST(jsonc, refuses_what_is_not_json)
{
    static const char *const cases[][2] = {
        {"{\"a\": 1, \"a\": 2}", "f:1:10: the key \"a\" appears twice (first on line 1)"},
        {"{a: 1}", "f:1:2: expected a key in double quotes"},
        {"{'a': 1}", "f:1:2: "},
        {"[1 2]", "f:1:4: expected ',' or ']'"},
        {"[,]", "f:1:2: "},
        {"{\"a\" 1}", "f:1:6: expected ':'"},
        {"[1] 2", "f:1:5: nothing may follow"},
        {"", "f:1:1: the file ends"},
        {"[1", "f:1:3: expected"},
        {"[\n\"x", "f:2:1: this string is never closed"},
        {"/* x", "f:1:1: this comment is never closed"},
        {"01", "f:1:1: a number must not begin with zero"},
        {"1.", "f:1:3: digits must follow"},
        {"1e", "f:1:3: digits must follow"},
        {"-", "f:1:1: this is not"},
        {"nul", "f:1:1: this is not"},
        {"\"\\x\"", "f:1:3: unknown escape"},
        {"\"\\ud800\"", "f:1:8: a surrogate"},
        {"\"\t\"", "f:1:2: a control"},
        {"1e999", "f:1:1: this number is out of range"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_refused(cn_jsonc_parse, cases[i][0], cases[i][1]);
}
