/* SPDX-License-Identifier: Apache-2.0 */
/* What the dashboard's charts begin with: a point at once, others as time goes on, none more than
 * the ring has room for. */
#include "admin/recent.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/loop.h"
#include "test/lib/test.h"

static const struct cn_json *item(const struct cn_json *list, int index)
{
    const struct cn_json *each = list->first;
    while (each && index-- > 0)
        each = each->next;
    return each;
}

static int length(const struct cn_json *list)
{
    int count = 0;
    for (const struct cn_json *each = list->first; each; each = each->next)
        count++;
    return count;
}

/* A server without lanes and data still has a process. */
TEST(recent, keeps_what_the_charts_need)
{
    static struct cn_recent recent;
    struct cn_metrics_sources sources = {0};
    struct cn_buf out = {0};
    struct cn_err err;
    uv_loop_t loop;
    CHECK_INT(0, cn_loop_init(&loop, NULL));
    cn_recent_start(&recent, &loop, &sources);
    for (int i = 1; i < CN_RECENT_COUNT + 7; i++)
        recent.timer.timer_cb(&recent.timer);
    cn_recent_append(&recent, &out);
    struct cn_json *json = cn_json_parse((char *)out.data, out.size, &err);
    CHECK(json);
    const struct cn_json *points = cn_json_find(json, "points");
    CHECK_INT(CN_RECENT_COUNT, length(points));
    CHECK_INT(CN_RECENT_VALUES, length(cn_json_find(json, "values")));
    CHECK_INT(CN_HISTOGRAM_BOUNDS, length(cn_json_find(json, "bounds")));
    int64_t last = 0;
    for (const struct cn_json *point = points->first; point; point = point->next) {
        CHECK_INT(1 + CN_RECENT_VALUES + CN_RECENT_HISTOGRAMS, length(point));
        CHECK(item(point, 0)->integer >= last); /* the oldest first */
        last = item(point, 0)->integer;
        CHECK_INT(CN_HISTOGRAM_BOUNDS + 1, length(item(point, 1 + CN_RECENT_VALUES)));
    }
    /* memory is the eighth value */
    CHECK_STR("memory", item(cn_json_find(json, "values"), 7)->text);
    CHECK(item(points->first, 8)->integer > 1000000);
    cn_json_free(json);
    cn_buf_fini(&out);
    cn_recent_close(&recent);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(0, uv_loop_close(&loop));
}
