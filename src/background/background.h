/* SPDX-License-Identifier: Apache-2.0 */
/* background/background.h - what a lane does for its scripts without being asked by a request:
 * queue consumers, cron triggers. For cn_server_options.background. */
#ifndef CN_BACKGROUND_BACKGROUND_H
#define CN_BACKGROUND_BACKGROUND_H
#include "worker/background.h"

extern const struct cn_background_operations cn_background;

#endif
