/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of workers by name: made once on a lane, and kept while it lasts. */
#include "worker/metrics.h"

#include <string.h>

#include "test/lib/test.h"

TEST(worker_metrics, a_worker_has_the_same_counters_after_a_reload)
{
    struct cn_lane_metrics metrics = {0};
    struct cn_worker_metrics *a = cn_lane_metrics_worker(&metrics, "a");
    struct cn_worker_metrics *b = cn_lane_metrics_worker(&metrics, "b");
    CHECK(a != b);
    cn_counter_add(&a->limits, 3);
    CHECK(cn_lane_metrics_worker(&metrics, "a") == a);
    CHECK(cn_lane_metrics_worker(&metrics, "") != a);
    CHECK_INT(3, cn_counter_get(&cn_lane_metrics_worker(&metrics, "a")->limits));
    unsigned count = 0;
    for (struct cn_worker_metrics *each = atomic_load(&metrics.workers); each; each = each->next)
        count++;
    CHECK_INT(3, count);
    cn_lane_metrics_fini(&metrics);
    CHECK(!atomic_load(&metrics.workers));
    cn_lane_metrics_fini(&metrics);
}

TEST(worker_metrics, every_reason_for_a_refusal_has_a_name_of_its_own)
{
    for (int i = 0; i < CN_REFUSAL_COUNT; i++)
        for (int k = 0; k < i; k++)
            CHECK(cn_refusal_names[i][0] && strcmp(cn_refusal_names[i], cn_refusal_names[k]) != 0);
}
