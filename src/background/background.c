/* SPDX-License-Identifier: Apache-2.0 */
#include "background/background.h"

#include "background/consumers.h"
#include "background/crons.h"

static void update(struct cn_background *background)
{
    cn_consumers_update(background);
    cn_crons_update(background);
}

static void stop(struct cn_background *background)
{
    cn_consumers_stop(background);
    cn_crons_stop(background);
}

static void free_all(struct cn_background *background)
{
    cn_consumers_free(background);
    cn_crons_free(background);
}

const struct cn_background_operations cn_background = {
    .update = update,
    .stop = stop,
    .free = free_all,
    .scheduled = cn_crons_request,
    .trigger = cn_crons_trigger,
    .schedules = cn_crons_each,
};
