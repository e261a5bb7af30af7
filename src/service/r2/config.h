/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/config.h - `r2_buckets` of the configuration. */
#ifndef CN_SERVICE_R2_CONFIG_H
#define CN_SERVICE_R2_CONFIG_H
#include <stddef.h>

#include "config/config.h"

struct cn_node;
struct cn_project;
struct cn_script;

struct cn_config_r2 {
    const char *binding;
    const char *bucket_name; /* NULL: one bucket per binding */
    const char *jurisdiction;
};

struct cn_r2_entries {
    struct cn_config_r2 *items;
    size_t count;
};

const struct cn_r2_entries *cn_r2_entries(const struct cn_config *config);

/* The script behind [cairn.s3] (config_s3.c): config/service_config.h, own_script. */
int cn_r2_s3_script(const struct cn_project *projects, size_t count, struct cn_node *node,
                    struct cn_script **script, struct cn_err *err);

#endif
