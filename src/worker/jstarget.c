/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jstarget.h"

#include "base/mem.h"

static void remove_number(struct cn_jstargets *targets, uint64_t number)
{
    struct cn_jstarget *target = cn_handles_find(&targets->table, (double)number);
    cn_handles_remove(&targets->table, number);
    cn_free(target->name);
    cn_free(target);
}

uint64_t cn_jstarget_add(struct cn_jstargets *targets, struct cn_namespace *ns,
                         const struct cn_object_key *key, char *name, size_t name_size,
                         uint32_t home_serial)
{
    uint64_t *place = &targets->ring[targets->next];
    targets->next = (targets->next + 1) % CN_JSTARGETS_MAX;
    if (*place)
        remove_number(targets, *place);
    struct cn_jstarget *target = CN_NEW(struct cn_jstarget);
    *target = (struct cn_jstarget){
        .ns = ns, .key = *key, .name = name, .name_size = name_size, .home_serial = home_serial};
    return *place = cn_handles_add(&targets->table, target);
}

struct cn_jstarget *cn_jstarget_find(const struct cn_jstargets *targets, double number)
{
    return cn_handles_find(&targets->table, number);
}

void cn_jstargets_fini(struct cn_jstargets *targets)
{
    for (unsigned i = 0; i < CN_JSTARGETS_MAX; i++) {
        if (targets->ring[i])
            remove_number(targets, targets->ring[i]);
    }
    cn_handles_fini(&targets->table);
}
