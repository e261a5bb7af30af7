/* SPDX-License-Identifier: Apache-2.0 */
/* Bookmarks: the documented shape, ordered as text like in time, refused when they are not ours. */
#include "store/bookmark.h"

#include <string.h>

#include "test/lib/test.h"

static const struct cn_object_key one = {.namespace_id = 1, .id = {1, 2, 3}};
static const struct cn_object_key two = {.namespace_id = 1, .id = {1, 2, 4}};

TEST(bookmark, has_the_shape_and_reads_back)
{
    struct cn_bookmark bookmark = {.lsn = 0x1234567890ull, .time_ms = 1700000000000}, back;
    char text[CN_BOOKMARK_SIZE];
    cn_bookmark_format(&bookmark, &one, text);
    CHECK_INT(59, strlen(text));
    CHECK_INT(8, strspn(text, "0123456789abcdef"));
    CHECK_INT(8, strspn(text + 9, "0123456789abcdef"));
    CHECK_INT(8, strspn(text + 18, "0123456789abcdef"));
    CHECK_INT(32, strspn(text + 27, "0123456789abcdef"));
    CHECK_INT(0, cn_bookmark_parse(text, strlen(text), &one, &back, NULL));
    CHECK(back.lsn == bookmark.lsn && back.time_ms == bookmark.time_ms && !back.before_restore);
}

TEST(bookmark, sorts_as_text_like_in_time)
{
    static const struct cn_bookmark in_order[] = {
        {.lsn = 0},  {.lsn = 9, .time_ms = 5}, {.lsn = 9, .time_ms = 5, .before_restore = true},
        {.lsn = 10}, {.lsn = 0xffffffff},      {.lsn = 0x100000000},
    };
    char before[CN_BOOKMARK_SIZE] = "", text[CN_BOOKMARK_SIZE];
    for (size_t i = 0; i < sizeof(in_order) / sizeof(in_order[0]); i++) {
        cn_bookmark_format(&in_order[i], &one, text);
        CHECK(strcmp(before, text) < 0);
        memcpy(before, text, sizeof(text));
    }
}

TEST(bookmark, refuses_every_mistyped_digit_and_other_objects)
{
    struct cn_bookmark bookmark = {.lsn = 77, .time_ms = 1700000000000}, back;
    char text[CN_BOOKMARK_SIZE];
    struct cn_err err = {0};
    cn_bookmark_format(&bookmark, &one, text);
    for (size_t i = 0; i < strlen(text); i++) {
        char right = text[i];
        text[i] = right == '1' ? '2' : '1';
        CHECK_INT(CN_EINVALID, cn_bookmark_parse(text, strlen(text), &one, &back, NULL));
        text[i] = right;
    }
    CHECK_INT(CN_EINVALID, cn_bookmark_parse(text, strlen(text) - 1, &one, &back, NULL));
    CHECK_INT(CN_EINVALID, cn_bookmark_parse("", 0, &one, &back, NULL));
    CHECK_INT(CN_EINVALID, cn_bookmark_parse(text, strlen(text), &two, &back, &err));
    CHECK_STR("the bookmark belongs to another object", err.text);
}
