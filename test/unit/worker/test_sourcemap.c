/* SPDX-License-Identifier: Apache-2.0 */
/* Places in a bundle are found in the user's files, and stacks name them. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "test/lib/test.h"
#include "worker/sourcemap.h"

/* Line 1: nothing. Line 2: columns 0 -> a.ts 1:0, 4 -> a.ts 1:8 "foo", 9 -> b.ts 3:2.
 * Line 3: column 2 -> nothing. */
static const char sample[] =
    "{\"version\":3,\"x\":{\"y\":[1,{\"z\":null}]},\"sources\":[\"src/a.ts\",\"src/b.ts\"],"
    "\"sourcesContent\":[\"one\\ntwo \\u00e9\\n\\tthrow x\\nfour\",null],\"names\":[\"foo\"],"
    "\"mappings\":\";AACA,IAAQA,KCEN;E\"}";

static struct cn_sourcemap *load(const char *json)
{
    struct cn_err err = {0};
    struct cn_sourcemap *map = cn_sourcemap_parse("m", json, strlen(json), &err);
    if (!map)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return map;
}

TEST(sourcemap, finds_the_segment_at_or_before)
{
    struct cn_sourcemap *map = load(sample);
    struct cn_sourcemap_place place;
    CHECK(!cn_sourcemap_find(map, 1, 1, &place));
    CHECK(cn_sourcemap_find(map, 2, 1, &place));
    CHECK_STR("src/a.ts", place.source);
    CHECK_INT(2, place.line);
    CHECK_INT(1, place.column);
    CHECK(!place.name);
    CHECK(cn_sourcemap_find(map, 2, 4, &place));
    CHECK_INT(1, place.column);
    CHECK(cn_sourcemap_find(map, 2, 5, &place));
    CHECK_INT(9, place.column);
    CHECK_STR("foo", place.name);
    CHECK(cn_sourcemap_find(map, 2, 5000, &place));
    CHECK_STR("src/b.ts", place.source);
    CHECK_INT(4, place.line);
    CHECK(!cn_sourcemap_find(map, 3, 10, &place));
    CHECK(!cn_sourcemap_find(map, 4, 1, &place));
    CHECK(!cn_sourcemap_find(map, 0, 0, &place));
    cn_sourcemap_free(map);
}

TEST(sourcemap, rewrites_both_forms_of_stack)
{
    struct cn_sourcemap *map = load(sample);
    struct cn_buf out = {0};
    struct cn_sourcemap_place first;
    static const char text[] = "Error: w.js:x\nfoo@w.js:2:5\n@w.js:2:1\n    at f (w.js:2:10)\n"
                               "at w.js:1:1 w.js:2:99999999999 w.js";
    cn_sourcemap_rewrite(map, "w.js", text, strlen(text), &first, &out);
    CHECK_STR("Error: w.js:x\n    at foo (src/a.ts:2:9)\n    at src/a.ts:2:1\n"
              "    at f (src/b.ts:4:3)\nat w.js:1:1 w.js:2:99999999999 w.js",
              cn_buf_text(&out));
    CHECK_STR("src/a.ts", first.source);
    CHECK_INT(9, first.column);
    cn_buf_fini(&out);
    cn_sourcemap_free(map);
}

TEST(sourcemap, shows_the_lines_around)
{
    struct cn_sourcemap *map = load(sample);
    struct cn_buf out = {0};
    struct cn_sourcemap_place place = {.source = "src/a.ts", .line = 3, .column = 2};
    cn_sourcemap_frame(map, &place, &out);
    CHECK_STR(
        "     1 | one\n     2 | two \xc3\xa9\n>    3 | \tthrow x\n       | \t^\n     4 | four\n",
        cn_buf_text(&out));
    cn_buf_clear(&out);
    place.source = "src/b.ts"; /* its text is null */
    cn_sourcemap_frame(map, &place, &out);
    CHECK_INT(0, out.size);
    cn_buf_fini(&out);
    cn_sourcemap_free(map);
}

TEST(sourcemap, locates_places_that_were_explained)
{
    struct cn_sourcemap *map = load(sample);
    struct cn_sourcemap_place place;
    static const char *const found[] = {
        "Error: x\n    at f (src/a.ts:3:2)\n    at src/b.ts:1:1",
        "    at src/a.ts:3:2",
        "E: (src/b.ts:9:9)\n    at node:x:1:1\n    at a (b) (src/a.ts:3:2)\n",
    };
    for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
        CHECK(cn_sourcemap_locate(map, found[i], strlen(found[i]), &place));
        CHECK_STR("src/a.ts", place.source);
        CHECK_INT(3, place.line);
        CHECK_INT(2, place.column);
    }
    static const char *const none[] = {"",
                                       "    at ",
                                       "    at :",
                                       "    at ::",
                                       "    at (",
                                       "    at )",
                                       "    at f (src/a.ts:3)",
                                       "    at f (src/a.ts:3:)",
                                       "    at f (src/a.ts:3:2x)",
                                       "    at f (src/c.ts:3:2)",
                                       "    at f (src/a.ts:99999999999:2)"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        CHECK(!cn_sourcemap_locate(map, none[i], strlen(none[i]), &place));
    cn_sourcemap_free(map);
}

TEST(sourcemap, refuses_what_is_malformed)
{
    static const char *const cases[] = {
        "",
        "[]",
        "{}",
        "{\"mappings\":\"\"",
        "{\"mappings\":5}",
        "{\"sources\":[\"a\"],\"mappings\":\"!\"}",
        "{\"sources\":[\"a\"],\"mappings\":\"AA\"}",
        "{\"sources\":[\"a\"],\"mappings\":\"ACAA\"}",
        "{\"sources\":[\"a\"],\"mappings\":\"ADAA\"}",
        "{\"sources\":[\"a\"],\"mappings\":\"AAAAA\"}",
        "{\"sources\":[\"a\"],\"mappings\":\"gggggggggggA\"}",
        "{\"sources\":[\"a\"],\"mappings\":\"IAAA,JAAA\"}",
        "{\"sources\":[\"a\\",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cn_err err = {0};
        if (cn_sourcemap_parse("m", cases[i], strlen(cases[i]), &err))
            test_fail(__FILE__, __LINE__, "accepted: %s", cases[i]);
        CHECK_STR("m: not a source map", err.text);
    }
}
