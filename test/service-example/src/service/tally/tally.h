/* SPDX-License-Identifier: Apache-2.0 */
/* service/tally/tally.h - counters that stay: an example of a service (service/def.h).
 *
 * A tally is one object, "$tally/NAME". Threads and ownership: service/service.h. */
#ifndef CN_SERVICE_TALLY_TALLY_H
#define CN_SERVICE_TALLY_TALLY_H
#include "service/def.h"
#include "service/service.h"

enum cn_tally_op { CN_TALLY_GET, CN_TALLY_ADD };

struct cn_tally_call {
    struct cn_service_call base;
    int64_t by;    /* asked */
    int64_t count; /* answered */
};

struct cn_tally_call *cn_tally_call_new(struct cn_namespace *ns, enum cn_tally_op op, int64_t by);

extern const struct cn_service_config cn_tally_config;
extern const struct cn_js_natives cn_tally_natives;
extern const struct cn_control_routes cn_tally_routes;
extern const struct cn_command cn_tally_command;

#endif
