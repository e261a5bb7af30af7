/* SPDX-License-Identifier: Apache-2.0 */
/* One reading of a path (target.h). */
#include "admin/target.h"

#include <string.h>

#include "test/lib/test.h"

#define PATTERN(...)                      \
    (const char *[CN_TARGET_SEGMENT_MAX]) \
    {                                     \
        __VA_ARGS__                       \
    }

static bool fits(const char *target, const char *const *pattern)
{
    return cn_target_fits(target, strlen(target), pattern);
}

TEST(target, P2_empty_segments_count_for_nothing)
{
    static const char *const same[] = {"/a/b",  "//a/b",       "/a//b",
                                       "/a/b/", "///a///b///", "/a/b?c/d"};
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
        if (!fits(same[i], PATTERN("a", "b")) || !fits(same[i], PATTERN("*", "b")))
            test_fail(__FILE__, __LINE__, "%s", same[i]);
    }
}

TEST(target, P2_a_word_stands_for_itself)
{
    static const char *const others[] = {"",       "/",      "/a",     "/a/b/c",    "/A/b",
                                         "/%61/b", "/a%2fb", "/./a/b", "/x/../a/b", "/a/b%00",
                                         "/a?/b",  "/?a/b",  "*",      "/ab",       "/a/bb"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        if (fits(others[i], PATTERN("a", "b")))
            test_fail(__FILE__, __LINE__, "%s", others[i]);
    }
}

TEST(target, a_key_has_all_that_is_left)
{
    CHECK(fits("/a/b", PATTERN("a", "**")) && fits("/a//", PATTERN("a", "**")));
    CHECK(fits("//a//b//c", PATTERN("a", "**")));
    CHECK(!fits("/a", PATTERN("a", "**")) && !fits("/a?/b", PATTERN("a", "**")));
}

TEST(target, segments_are_as_sent)
{
    size_t size;
    const char *target = "//a/%62//c?d";
    const char *segment = cn_target_segment(target, strlen(target), 1, &size);
    CHECK(size == 3 && memcmp(segment, "%62", 3) == 0);
    segment = cn_target_segment(target, strlen(target), 2, &size);
    CHECK(size == 1 && *segment == 'c');
    (void)cn_target_segment(target, strlen(target), 3, &size);
    CHECK_INT(0, (int)size);
}

/* What is of the platform is so by its text and by its route's pattern alike (P1). */
TEST(target, P1_the_platform_is_one)
{
    static const char *const of[] = {"/client/v4",   "//client/v4",       "/client//v4/",
                                     "/client/v4/x", "///client/v4//x/y", "/client/v4?x"};
    static const char *const not [] = {
        "/client/v40",    "/Client/v4",     "/client", "/x/client/v4",
        "/client/%764/x", "/api/client/v4", ""};
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
        CHECK(cn_target_is_platform(of[i], strlen(of[i])));
    for (size_t i = 0; i < sizeof(not ) / sizeof(*not ); i++)
        CHECK(!cn_target_is_platform(not [i], strlen(not [i])));
    CHECK(cn_target_pattern_is_platform(PATTERN("client", "v4", "accounts", "*")));
    CHECK(cn_target_pattern_is_platform(PATTERN("client", "v4")));
    CHECK(!cn_target_pattern_is_platform(PATTERN("client")));
    CHECK(!cn_target_pattern_is_platform(PATTERN("api", "tokens")));
}
