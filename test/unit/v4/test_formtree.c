/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a form become the JSON that they stand for, and what stands for none is refused. */
#include "v4/formtree.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "test/lib/test.h"

/* Adds pairs of names and values, up to a NULL. */
static int add_all(struct cn_formtree *tree, const char *const *pairs, struct cn_err *err)
{
    int rc = 0;
    for (size_t i = 0; pairs[i] && rc == 0; i += 2) {
        CHECK(cn_formtree_has("m", pairs[i], strlen(pairs[i])));
        rc = cn_formtree_add(tree, pairs[i], strlen(pairs[i]), pairs[i + 1], strlen(pairs[i + 1]),
                             err);
    }
    return rc;
}

static void check_json(const char *want, const char *const *pairs)
{
    struct cn_formtree tree = {0};
    struct cn_buf json = {0};
    struct cn_err err = {0};
    CHECK_INT(0, add_all(&tree, pairs, &err));
    cn_formtree_write(&tree, &json);
    CHECK_STR(want, cn_buf_text(&json));
    struct cn_json *root = cn_json_parse((const char *)json.data, json.size, &err);
    CHECK(root);
    cn_json_free(root);
    cn_buf_fini(&json);
    cn_formtree_fini(&tree);
}
#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(formtree, members_and_elements)
{
    check_json("{\"a\":\"1\",\"b\":{\"c\":\"x\\\"y\",\"d\":\"\"}}",
               PAIRS("m[a]", "1", "m[b][c]", "x\"y", "m[b][d]", ""));
    check_json("{\"l\":[\"1\",\"2\"]}", PAIRS("m[l][]", "1", "m[l][]", "2"));
    check_json("{\"l\":[\"1\",\"2\"]}", PAIRS("m[l][0]", "1", "m[l][1]", "2"));
    check_json("{\"l\":[{\"a\":\"1\",\"b\":\"2\"},{\"a\":\"3\"}]}",
               PAIRS("m[l][0][a]", "1", "m[l][1][a]", "3", "m[l][0][b]", "2"));
}

TEST(formtree, a_member_that_is_there_begins_the_next_element)
{
    check_json("{\"b\":[{\"t\":\"1\",\"n\":\"2\"},{\"t\":\"3\",\"n\":\"4\",\"x\":\"5\"}]}",
               PAIRS("m[b][][t]", "1", "m[b][][n]", "2", "m[b][][t]", "3", "m[b][][n]", "4",
                     "m[b][][x]", "5"));
    check_json("{\"b\":[{\"n\":\"A\",\"l\":[\"1\",\"2\"]},{\"n\":\"B\",\"l\":[\"3\"]}]}",
               PAIRS("m[b][][n]", "A", "m[b][][l][]", "1", "m[b][][l][]", "2", "m[b][][n]", "B",
                     "m[b][][l][]", "3"));
    check_json("{\"b\":[{\"o\":{\"x\":\"1\",\"y\":\"2\"}},{\"o\":{\"x\":\"3\"}}]}",
               PAIRS("m[b][][o][x]", "1", "m[b][][o][y]", "2", "m[b][][o][x]", "3"));
}

TEST(formtree, values_are_text_except_where_they_never_are)
{
    check_json("{\"text\":\"5\",\"enabled\":true,\"limits\":{\"cpu_ms\":50},\"logpush\":\"maybe\"}",
               PAIRS("m[text]", "5", "m[enabled]", "true", "m[limits][cpu_ms]", "50", "m[logpush]",
                     "maybe"));
    check_json("{\"json\":{\"a\":[1,\"x\",false,null,\"[]\",\"\"]}}",
               PAIRS("m[json][a][]", "1", "m[json][a][]", "x", "m[json][a][]", "false",
                     "m[json][a][]", "null", "m[json][a][]", "[]", "m[json][a][]", ""));
}

static void check_refused(const char *const *pairs)
{
    struct cn_formtree tree = {0};
    struct cn_err err = {0};
    CHECK_INT(CN_EINVALID, add_all(&tree, pairs, &err));
    CHECK(err.text[0]);
    cn_formtree_fini(&tree);
}

TEST(formtree, refuses_what_is_two_things)
{
    check_refused(PAIRS("m[a]", "1", "m[a]", "2"));
    check_refused(PAIRS("m[a]", "", "m[b]", "", "m[a]", ""));
    check_refused(PAIRS("m[a]", "1", "m[a][b]", "2"));
    check_refused(PAIRS("m[a][b]", "1", "m[a]", "2"));
    check_refused(PAIRS("m[a][b]", "1", "m[a][]", "2"));
    check_refused(PAIRS("m[a][]", "1", "m[a][b]", "2"));
    check_refused(PAIRS("m[a][]", "1", "m[a][][b]", "2"));
    check_refused(PAIRS("m[]", "1", "m[b]", "2"));
    check_refused(PAIRS("m[a][0]", "1", "m[a][0]", "2"));
}

TEST(formtree, refuses_names_that_are_none)
{
    static const char *const wrong[] = {"m[", "m[a", "m[a]b", "m[a][", "m[a]]", "m[a]b[c]"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(wrong); i++)
        check_refused(PAIRS(wrong[i], "1"));
    struct cn_formtree tree = {0};
    struct cn_err err = {0};
    CHECK_INT(CN_EINVALID, cn_formtree_add(&tree, "m[a\0b]", 6, "1", 1, &err));
    cn_formtree_fini(&tree);
    CHECK(!cn_formtree_has("m", "m", 1));
    CHECK(!cn_formtree_has("m", "mm[a]", 5));
    CHECK(!cn_formtree_has("m", "[a]", 3));
}

TEST(formtree, has_bounds)
{
    struct cn_formtree tree = {0};
    struct cn_err err = {0};
    char name[200] = "m";
    for (int i = 0; i < CN_FORMTREE_DEPTH_MAX; i++)
        memcpy(name + 1 + (size_t)i * 3, "[a]", 4);
    CHECK_INT(0, cn_formtree_add(&tree, name, strlen(name), "1", 1, &err));
    memcpy(name + 1 + (size_t)CN_FORMTREE_DEPTH_MAX * 3, "[a]", 4);
    CHECK_INT(CN_ELIMIT, cn_formtree_add(&tree, name, strlen(name), "1", 1, &err));
    for (size_t i = tree.count; i < CN_FORMTREE_FIELD_MAX; i++) {
        snprintf(name, sizeof(name), "m[n%zu]", i);
        CHECK_INT(0, cn_formtree_add(&tree, name, strlen(name), "1", 1, &err));
    }
    CHECK_INT(CN_ELIMIT, cn_formtree_add(&tree, "m[x]", 4, "1", 1, &err));
    cn_formtree_fini(&tree);
}
