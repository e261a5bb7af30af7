/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/config.h - `d1_databases` of the configuration, for who looks for one of them. */
#ifndef CN_SERVICE_D1_CONFIG_H
#define CN_SERVICE_D1_CONFIG_H
#include <stddef.h>

#include "config/config.h"

struct cn_config_d1 {
    const char *binding;
    const char *database_name, *database_id;
    const char *migrations_table, *migrations_dir, *migrations_pattern;
};

struct cn_d1_entries {
    struct cn_config_d1 *items;
    size_t count;
};

const struct cn_d1_entries *cn_d1_entries(const struct cn_config *config);
/* What identifies a database on this node: database_id, else database_name, else the worker and the
 * binding. Owned. */
char *cn_config_d1_id(const struct cn_config *config, const struct cn_config_d1 *d1);

#endif
