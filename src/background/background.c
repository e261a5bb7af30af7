/* SPDX-License-Identifier: Apache-2.0 */
#include "background/background.h"

#include "background/consumers.h"
#include "background/crons.h"

static void update(struct cn_lane *lane)
{
    cn_consumers_update(lane);
    cn_crons_update(lane);
}

static void stop(struct cn_lane *lane)
{
    cn_consumers_stop(lane);
    cn_crons_stop(lane);
}

static void free_all(struct cn_lane *lane)
{
    cn_consumers_free(lane);
    cn_crons_free(lane);
}

const struct cn_lane_background cn_background = {
    .update = update,
    .stop = stop,
    .free = free_all,
    .scheduled = cn_crons_request,
    .trigger = cn_crons_trigger,
    .schedules = cn_crons_each,
};
