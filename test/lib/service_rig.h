/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/service_rig.h - a node with one lane, run by hand, for the classes of service/.
 *
 *     struct service_rig rig;
 *     service_rig_open(&rig, storetest_disk(), &cn_kv_class, "$kv/test");
 *     ... fill a call with cn_service_call_init(..., rig.ns, ...)
 *     service_rig_call(&rig, &call->base);   runs the loop until it is answered
 *     cn_service_call_free(&call->base);
 *     service_rig_close(&rig);
 *
 * With CAIRN_TEST_WIRE in the environment the calls of service_rig_call() go as they would to
 * another node (service/wire.h): `make unit` runs the tests of services that way, too.
 *
 * Time stands still unless rig.wall_ms is moved; opening the same disk again is a restart. */
#ifndef CN_TEST_SERVICE_RIG_H
#define CN_TEST_SERVICE_RIG_H
#include <uv.h>

#include "base/clock.h"
#include "base/disk.h"
#include "base/mailbox.h"
#include "object/node.h"
#include "service/service.h"
#include "store/blob.h"
#include "store/history.h"
#include "store/store.h"
#include "worker/background.h"

struct service_rig {
    struct cn_clock clock;
    int64_t wall_ms;
    struct cn_disk *disk; /* the caller's */
    struct cn_history *history;
    struct cn_store *store;
    struct cn_shards *shards;
    struct cn_services services;
    struct cn_node *node;
    uv_loop_t loop;
    struct cn_mailbox mailbox;
    struct cn_desk desk;
    struct cn_object_lane lane;
    const struct cn_class *class_;
    struct cn_namespace *ns;
    bool stopped;
};

void service_rig_open(struct service_rig *rig, struct cn_disk *disk, const struct cn_class *class_,
                      const char *namespace_name);
void service_rig_close(struct service_rig *rig);
/* Sends it and runs the loop until it is answered. */
void service_rig_call(struct service_rig *rig, struct cn_service_call *call);
/* Its lane as background work sees it: events go to `send`. */
struct cn_background service_rig_background(struct service_rig *rig, const bool *draining,
                                            struct cn_deployment *const *deployment,
                                            void (*send)(struct cn_background *background,
                                                         const struct cn_background_event *event));
/* Runs the loop until *flag is set; fails the test after ten seconds. */
void service_rig_until(struct service_rig *rig, const bool *flag);
/* Moves the clock and lets alarms that are due fire. */
void service_rig_advance(struct service_rig *rig, int64_t ms);
/* Timers of the lane that would fire within so long fire with the loop's next turn. */
void service_rig_hurry(struct service_rig *rig, uint64_t within_ms);

#endif
