/* SPDX-License-Identifier: Apache-2.0 */
/* The header by which traces go on from one service to the next. */
#include <string.h>

#include "test/lib/test.h"
#include "worker/trace.h"

static bool parse(const char *text, struct cn_origin *origin)
{
    *origin = (struct cn_origin){.request = 7};
    return cn_trace_parse_parent(text, strlen(text), origin);
}

TEST(trace_parent, has_two_ids)
{
    struct cn_origin origin;
    CHECK(parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", &origin));
    CHECK(origin.trace[0] == 0x0af7651916cd43ddu && origin.trace[1] == 0x8448eb211c80319cu);
    CHECK(origin.span == 0xb7ad6b7169203331u && origin.request == 7);
    CHECK(!origin.unsampled);
    CHECK(parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", &origin));
    CHECK(origin.unsampled);
    /* A later version may say more. */
    CHECK(parse("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what", &origin));
}

TEST(trace_parent, refuses_what_is_none)
{
    static const char *const bad[] = {
        "",
        "00",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    };
    struct cn_origin origin;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK(!parse(bad[i], &origin));
        CHECK(!origin.trace[0] && !origin.trace[1] && !origin.span);
    }
}
