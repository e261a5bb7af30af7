/* SPDX-License-Identifier: Apache-2.0 */
/* Samples become a tree of calls with times, whatever the text is (C1 to C3). */
#include "admin/cpuprofile.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "test/lib/test.h"

static void resolve(void *data, const char *url, uint32_t line, uint32_t column,
                    struct cn_cpuprofile_place *place)
{
    ++*(int *)data;
    cn_buf_append_json(&place->url, url, strlen(url));
    place->line = line;
    place->column = column;
}

static struct cn_json *write_and_read(struct cn_cpuprofile *profile)
{
    struct cn_buf text = {0};
    struct cn_err err = {0};
    cn_cpuprofile_write(profile, &text);
    struct cn_json *json = cn_json_parse((const char *)text.data, text.size, &err);
    CHECK(json);
    cn_buf_fini(&text);
    return json;
}

static void add(struct cn_cpuprofile *profile, const char *json)
{
    cn_cpuprofile_add(profile, 0, json, strlen(json));
}

static const struct cn_json *find_node(const struct cn_json *json, const char *name)
{
    for (const struct cn_json *node = cn_json_find(json, "nodes")->first; node; node = node->next) {
        if (strcmp(cn_json_text(cn_json_find(node, "callFrame"), "functionName"), name) == 0)
            return node;
    }
    return NULL;
}

static size_t count(const struct cn_json *list)
{
    size_t count = 0;
    for (const struct cn_json *each = list->first; each; each = each->next)
        count++;
    return count;
}

#define FRAME(name, tier, line)                                                                \
    "{\"sourceID\":2,\"name\":\"" name "\",\"location\":\"#" name ":" tier "\",\"line\":" line \
    ",\"column\":5}"
#define SOURCES "\"sources\":[{\"sourceID\":2,\"url\":\"w.js\"}]}"

TEST(cpuprofile, a_function_is_one_node_whichever_tier_ran_it)
{
    int asked = 0;
    struct cn_cpuprofile *profile = cn_cpuprofile_new(resolve, &asked);
    add(profile, "{\"interval\":0.001,\"traces\":["
                 "{\"timestamp\":1.000,\"frames\":[" FRAME("in", "LLInt", "8") "," FRAME(
                     "out", "LLInt",
                     "3") "]},"
                          "{\"timestamp\":1.001,\"frames\":[" FRAME("in", "DFG", "7") "," FRAME(
                              "out", "LLInt", "3") "]},"
                                                   "{\"timestamp\":1.050,\"frames\":[" FRAME(
                                                       "in", "FTL",
                                                       "4294967295") "," FRAME("out", "DFG",
                                                                               "3") "]}]," SOURCES);
    struct cn_json *json = write_and_read(profile);
    CHECK_INT(5, count(cn_json_find(json, "nodes"))); /* (root), (idle), lane 0, out, in */
    const struct cn_json *in = find_node(json, "in"), *out = find_node(json, "out");
    CHECK_INT(3, cn_json_int(in, "hitCount"));
    CHECK_INT(0, cn_json_int(out, "hitCount"));
    CHECK_INT(6, cn_json_int(cn_json_find(in, "callFrame"), "lineNumber")); /* the first seen */
    CHECK_INT(2, count(cn_json_find(in, "positionTicks")));
    CHECK_INT(cn_json_int(in, "id"), cn_json_find(out, "children")->first->integer);
    /* Between the second and the third nothing ran. */
    CHECK_INT(4, count(cn_json_find(json, "samples")));
    CHECK_INT(2, cn_json_find(json, "samples")->first->next->next->integer);
    int64_t sum = 0;
    for (const struct cn_json *each = cn_json_find(json, "timeDeltas")->first; each;
         each = each->next)
        sum += each->integer;
    CHECK_INT(50000, sum);
    CHECK_INT(6, asked);
    cn_json_free(json);
    cn_cpuprofile_free(profile);
}

TEST(cpuprofile, samples_of_lanes_come_in_order_of_time)
{
    int asked = 0;
    struct cn_cpuprofile *profile = cn_cpuprofile_new(resolve, &asked);
    static const char late[] =
        "{\"traces\":[{\"timestamp\":3,\"frames\":[" FRAME("late", "LLInt", "1") "]}]," SOURCES;
    static const char early[] =
        "{\"traces\":[{\"timestamp\":1,\"frames\":[" FRAME("early", "LLInt", "1") "]}]," SOURCES;
    cn_cpuprofile_add(profile, 1, late, strlen(late));
    cn_cpuprofile_add(profile, 0, early, strlen(early));
    struct cn_json *json = write_and_read(profile);
    CHECK_INT(cn_json_int(find_node(json, "early"), "id"),
              cn_json_find(json, "samples")->first->integer);
    CHECK(find_node(json, "lane 0") && find_node(json, "lane 1"));
    cn_json_free(json);
    cn_cpuprofile_free(profile);
}

TEST(cpuprofile, whatever_the_text_is_the_file_is_one)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "7",
        "{\"traces\":7,\"sources\":[[]]}",
        "{\"traces\":[7,{},{\"timestamp\":\"x\"},{\"timestamp\":-1},{\"timestamp\":1e300}]}",
        "{\"traces\":[{\"timestamp\":1,\"frames\":[7,{},{\"name\":5,\"location\":[]}]}]}",
        "{\"interval\":-1,\"traces\":[{\"timestamp\":1}]}",
    };
    int asked = 0;
    struct cn_cpuprofile *profile = cn_cpuprofile_new(resolve, &asked);
    cn_json_free(write_and_read(profile)); /* without any */
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        add(profile, texts[i]);
        cn_json_free(write_and_read(profile));
    }
    cn_cpuprofile_free(profile);
}

/* C2 */
TEST(cpuprofile, a_stack_without_end_and_functions_without_end_are_bounded)
{
    int asked = 0;
    struct cn_cpuprofile *profile = cn_cpuprofile_new(resolve, &asked);
    struct cn_buf text = {0};
    for (unsigned round = 0; round < 300; round++) {
        cn_buf_clear(&text);
        cn_buf_append_str(&text, "{\"traces\":[{\"timestamp\":1,\"frames\":[");
        for (unsigned i = 0; i < 1000; i++)
            cn_buf_printf(&text, "%s{\"name\":\"f%u.%u\"}", i ? "," : "", round, i);
        cn_buf_append_str(&text, "]}]}");
        cn_cpuprofile_add(profile, 0, (const char *)text.data, text.size);
    }
    struct cn_json *json = write_and_read(profile);
    CHECK_INT(CN_CPUPROFILE_NODES_MAX, count(cn_json_find(json, "nodes")));
    CHECK_INT(300, count(cn_json_find(json, "samples")));
    cn_json_free(json);
    cn_buf_fini(&text);
    cn_cpuprofile_free(profile);
}
