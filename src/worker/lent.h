/* SPDX-License-Identifier: Apache-2.0 */
/* worker/lent.h - calls of classes without JavaScript to what workers have lent. */
#ifndef CN_WORKER_LENT_H
#define CN_WORKER_LENT_H
#include <stdbool.h>

#include "object/lent.h"

struct cn_object;
struct cn_object_lane;

/* What struct cn_object_lane.send_lent is: sends the letter when the gate of `gate` opens; NULL: at
 * once. False: there is no such lane, and the letter is as it was. */
bool cn_lent_send(struct cn_object_lane *lane, struct cn_lent_letter *letter,
                  struct cn_object *gate);

#endif
