/* SPDX-License-Identifier: Apache-2.0 */
/* service/ratelimit/config.h - `ratelimits` of the configuration. */
#ifndef CN_SERVICE_RATELIMIT_CONFIG_H
#define CN_SERVICE_RATELIMIT_CONFIG_H
#include <stddef.h>
#include <stdint.h>

struct cn_config_ratelimit {
    const char *name;
    const char *namespace_id;
    struct {
        int64_t limit;
        int64_t period; /* seconds: 10 or 60 */
    } simple;
};

struct cn_ratelimit_entries {
    struct cn_config_ratelimit *items;
    size_t count;
};

#endif
