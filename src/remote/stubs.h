/* SPDX-License-Identifier: Apache-2.0 */
/* remote/stubs.h - calls to what workers of other nodes have lent, by address (object/lent.h). See
 * remote.h. */
#ifndef CN_REMOTE_STUBS_H
#define CN_REMOTE_STUBS_H

#include <stdint.h>

struct cn_object_key;
struct cn_object_lane;

/* What struct cn_lane_remote.lend is (worker/remote.h). */
void cn_stubs_lend(struct cn_object_lane *objects, const struct cn_object_key *object,
                   uint32_t serial, double number, const char *mark);

#endif
