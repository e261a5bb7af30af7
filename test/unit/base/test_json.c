/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON reader takes what RFC 8259 allows, within its bounds, and nothing else. */
#include "base/json.h"

#include <stdio.h>
#include <malloc.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "test/lib/test.h"

static struct cn_json *parse(const char *text)
{
    struct cn_err err = {0};
    return cn_json_parse(text, strlen(text), &err);
}

TEST(json, reads_every_kind_of_value)
{
    struct cn_json *root =
        parse(" {\"a\":[1,-2.5e1,true,false,null,\"x\"],\"b\":{\"c\":9223372036854775807}} ");
    CHECK(root);
    const struct cn_json *item = cn_json_find(root, "a")->first;
    CHECK(item->kind == CN_JSON_INT && item->integer == 1);
    item = item->next;
    CHECK(item->kind == CN_JSON_NUMBER && item->number == -25.0);
    item = item->next;
    CHECK(item->kind == CN_JSON_BOOL && item->boolean);
    item = item->next->next;
    CHECK(item->kind == CN_JSON_NULL);
    CHECK_STR("x", item->next->text);
    CHECK(!item->next->next);
    CHECK_INT(INT64_MAX, cn_json_find(cn_json_find(root, "b"), "c")->integer);
    CHECK(!cn_json_find(root, "c") && !cn_json_text(root, "a"));
    cn_json_free(root);
    root = parse("9223372036854775808");
    CHECK(root->kind == CN_JSON_NUMBER);
    cn_json_free(root);
}

TEST(json, decodes_escapes)
{
    struct cn_json *root = parse("\"\\u00fc\\ud83d\\ude00\\n\\\\\\/\\u0000!\"");
    CHECK_INT(11, root->size);
    CHECK(memcmp(root->text, "\xc3\xbc\xf0\x9f\x98\x80\n\\/\0!", 11) == 0);
    cn_json_free(root);
}

TEST(json, refuses_what_is_not_json)
{
    static const char *const wrong[] = {
        "",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "'a'",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "-",
        "nul",
        "truex",
        "[1 2]",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\n\"",
        "\"\xff\"",
        "1 2",
        "{\"a\":1,\"a\":2}",
        "\"a",
        "1e999",
        "{\"a\" 1}",
        "\"\\ud800\\u0041\"",
        "[",
        "\"\\",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct cn_json *root = parse(wrong[i]);
        if (root)
            test_fail(__FILE__, __LINE__, "accepted: %s", wrong[i]);
    }
}

TEST(json, is_bounded_in_values)
{
    static const char text[] = "{\"a\":[1,[],\"x\"],\"b\":null}"; /* six of them */
    struct cn_err err = {0};
    struct cn_json *root = cn_json_parse_some(text, sizeof(text) - 1, 6, &err);
    CHECK(root);
    cn_json_free(root);
    CHECK(!cn_json_parse_some(text, sizeof(text) - 1, 5, &err));
    CHECK(strstr(err.text, "too many values"));
}

TEST(json, is_bounded_in_depth)
{
    char text[2 * CN_JSON_DEPTH_MAX + 3];
    for (int depth = CN_JSON_DEPTH_MAX; depth <= CN_JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = 0;
        struct cn_json *root = parse(text);
        CHECK((root != NULL) == (depth == CN_JSON_DEPTH_MAX));
        cn_json_free(root);
    }
}

/* {"000000":0,"000001":0,...}, with `last` as the last name. */
static struct cn_json *parse_members(unsigned count, const char *last, struct cn_err *err)
{
    struct cn_buf text = {0};
    for (unsigned i = 0; i < count; i++)
        cn_buf_printf(&text, "%s\"%06u\":0", i ? "," : "{", i);
    cn_buf_printf(&text, ",\"%s\":0}", last);
    struct cn_json *root = cn_json_parse((const char *)text.data, text.size, err);
    cn_buf_fini(&text);
    return root;
}

TEST(json, finds_a_name_that_is_there_twice_among_any_number)
{
    static const unsigned counts[] = {1, 31, 32, 33, 34, 100, 100000};
    for (size_t i = 0; i < CN_ARRAY_COUNT(counts); i++) {
        struct cn_err err = {0};
        char name[16];
        struct cn_json *root = parse_members(counts[i], "another", &err);
        CHECK(root);
        cn_json_free(root);
        snprintf(name, sizeof(name), "%06u", counts[i] / 2);
        CHECK(!parse_members(counts[i], name, &err));
        CHECK(strstr(err.text, "twice"));
    }
}

TEST(json, refuses_an_object_with_too_many_members)
{
    struct cn_err err = {0};
    CHECK(!parse_members(CN_JSON_MEMBER_MAX, "last", &err));
    CHECK(strstr(err.text, "too many members"));
}

/* What the tree of `unit`, so many times in a list, takes, and what cn_json_cost() says of it. */
static void check_cost(const char *unit, size_t count, size_t *took, size_t *said)
{
    size_t one = strlen(unit), size = 0;
    char *text = cn_alloc(count * (one + 1) + 2);
    text[size++] = '[';
    for (size_t i = 0; i < count; i++) {
        memcpy(text + size, unit, one);
        size += one;
        text[size++] = i + 1 < count ? ',' : ']';
    }
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    struct cn_json *json = cn_json_parse(text, size, NULL);
    CHECK(json);
    *took = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    *said = cn_json_cost(text, size, SIZE_MAX);
    cn_json_free(json);
    cn_free(text);
}

TEST(json, tells_what_a_tree_takes_at_the_most_before_there_is_one)
{
    static const char *const units[] = {
        "0",         "\"\"",          "{}",      "[]",
        "{\"a\":1}", "\"a,[\\\"{,\"", "[1,2,3]", "{\"name\":{\"b\":[\"text\"]}}"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(units); i++) {
        size_t took, said;
        check_cost(units[i], 50000, &took, &said);
        CHECK(said >= took);
        CHECK(said < 4 * took); /* what is in a text is no value */
    }
    CHECK(cn_json_cost("[0,0,0,0]", 9, 2) < cn_json_cost("[0,0,0,0]", 9, 100));
}
