/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/allowance.h"

#include "object/object.h"
#include "worker/instance.h"
#include "worker/jsclass.h"
#include "worker/lane.h"
#include "worker/script.h"

static void add(uint64_t *left, uint64_t each, size_t under_way)
{
    uint64_t most = each * under_way;
    *left = *left + each < most ? *left + each : most;
}

void cn_allowance_add(struct cn_allowance *allowance, const struct cn_script *script,
                      size_t under_way)
{
    add(&allowance->points_left, CN_EVENT_POINTS_MAX, under_way);
    add(&allowance->subrequests_left, script->subrequests_max, under_way);
}

struct cn_allowance *cn_allowance_current(struct cn_instance *instance)
{
    const struct cn_object *object = instance->lane->object_lane.current;
    return object ? &((struct cn_jsobject *)object->instance)->allowance : &instance->allowance;
}

bool cn_allowance_take_subrequest(struct cn_instance *instance)
{
    struct cn_allowance *allowance = cn_allowance_current(instance);
    if (allowance->subrequests_left == 0)
        return false;
    allowance->subrequests_left--;
    return true;
}
