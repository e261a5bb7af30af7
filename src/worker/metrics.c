/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/metrics.h"

#include <string.h>

#include "base/mem.h"
#include "js/engine/patch.h"

const char *const cn_refusal_names[CN_REFUSAL_COUNT] = {"starting", "no_route", "memory", "events",
                                                        "broken"};

struct cn_worker_metrics *cn_lane_metrics_worker(struct cn_lane_metrics *metrics, const char *name)
{
    struct cn_worker_metrics *first = atomic_load(&metrics->workers);
    for (struct cn_worker_metrics *worker = first; worker; worker = worker->next) {
        if (strcmp(worker->worker, name) == 0)
            return worker;
    }
    struct cn_worker_metrics *worker = CN_NEW(struct cn_worker_metrics);
    worker->worker = cn_strdup(name);
    worker->next = first;
    atomic_store(&metrics->workers, worker); /* readers see it whole */
    return worker;
}

void cn_lane_metrics_fini(struct cn_lane_metrics *metrics)
{
    struct cn_worker_metrics *worker = atomic_exchange(&metrics->workers, NULL);
    while (worker) {
        struct cn_worker_metrics *next = worker->next;
        cn_free(worker->worker);
        cn_free(worker);
        worker = next;
    }
}

void cn_worker_each_patch(void (*each)(void *data, const char *patch, bool on), void *data)
{
    size_t count;
    const struct cn_js_patch_status *patches = cn_js_engine_patches(&count);
    for (size_t i = 0; i < count; i++)
        each(data, patches[i].patch->name, patches[i].on || patches[i].is_unneeded);
}
